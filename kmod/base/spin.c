// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: busy-polling with a time limit, and how long the interrupt is deferred afterwards.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "base/meter.h"
#include "base/spin.h"

#define KRC_SPIN_MAX_US 10000
#define KRC_SPIN_RELAX 1024 /* turns between two cpu_relax() */

static unsigned int krc_spin_us = 100;
module_param_named(spin_us, krc_spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "Microseconds to busy-poll before sleeping (0: never, at most 10000)");

static unsigned int krc_linger_us = 25;
module_param_named(linger_us, krc_linger_us, uint, 0644);
MODULE_PARM_DESC(linger_us, "Microseconds from the last busy-poll to interrupts (0 to 10000)");

static u64 krc_spin_ns(unsigned int us, u32 max_us)
{
	return (u64)min_t(u32, us, max_us) * NSEC_PER_USEC;
}

u64 krc_spin_linger_ns(void)
{
	u64 linger_ns = krc_spin_ns(READ_ONCE(krc_linger_us), KRC_SPIN_MAX_US);

	/* without high resolution timers it would be late; on RT a realtime task may delay it */
	return hrtimer_resolution > linger_ns || IS_ENABLED(CONFIG_PREEMPT_RT) ? 0 : linger_ns;
}

bool krc_spin(bool (*poll)(void *arg), void *arg)
{
	const u32 max_us = KRC_SPIN_MAX_US * KRC_METER_SPIN_TIMES;
	u64 spin_ns = krc_spin_ns(READ_ONCE(krc_spin_us), max_us), limit_ns = 0, now_ns;
	unsigned long taken;
	u32 turn;

	krc_meter_settle();
	if (!spin_ns)
		return false;
	taken = krc_meter_try();
	/* no might_sleep(): it may reschedule, and others wait for what the poller completes */
	for (turn = 1; !need_resched() && !signal_pending(current); turn++) {
		if (poll(arg))
			return true;
		/* seldom: in a virtual machine it may cause an exit to the hypervisor */
		if (turn % KRC_SPIN_RELAX == 0)
			cpu_relax();
		now_ns = ktime_get_ns();
		krc_meter_vain(taken);
		/* the time runs from the first poll on: what that finds needs no clock */
		if (turn == 1)
			limit_ns = now_ns + spin_ns;
		if (now_ns >= limit_ns)
			break;
		taken = krc_meter_try();
	}
	return false;
}
