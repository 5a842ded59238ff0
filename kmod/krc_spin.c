// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: how long a caller waits awake, and that it polls meanwhile.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "krc_spin.h"

static unsigned int krc_spin_us = 100;
module_param_named(spin_us, krc_spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "Microseconds to wait awake for a READ before sleeping (0: never)");

bool krc_spin(bool (*poll)(void *arg), void *arg)
{
	u64 limit_ns = ktime_get_ns() + (u64)READ_ONCE(krc_spin_us) * NSEC_PER_USEC;

	might_sleep();
	while (!need_resched() && !signal_pending(current) && ktime_get_ns() < limit_ns) {
		if (poll(arg))
			return true;
		cpu_relax();
	}
	return false;
}
