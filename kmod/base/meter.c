// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the settling time and the count of completions of the meter, see meter.h; only in a
 * module made with KRC_METER=y.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/processor.h>

#include "base/meter.h"

#define KRC_METER_SETTLE_MAX_US 50000

unsigned long krc_meter_completions;

static unsigned int krc_settle_us;
module_param_named(settle_us, krc_settle_us, uint, 0644);
MODULE_PARM_DESC(settle_us, "Meter: microseconds before the first poll, uncounted (at most 50000)");

void krc_meter_settle(void)
{
	u32 us = min_t(u32, READ_ONCE(krc_settle_us), KRC_METER_SETTLE_MAX_US);
	u64 until_ns;

	if (!us)
		return;
	krc_meter_mark(KRC_METER_PAUSE);
	until_ns = ktime_get_ns() + (u64)us * NSEC_PER_USEC;
	while (ktime_get_ns() < until_ns)
		cpu_relax();
	krc_meter_mark(KRC_METER_RESUME);
}
