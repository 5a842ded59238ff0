// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: a processor that stands still; see stall.h.
 * Locking: the caller's. The handler of the probe runs on any processor; it takes its turn by an
 * exchange.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "stall.h"

#define PROBE_STALL_MS_MAX 10000 /* the kernel complains of twice as much */

static char probe_stall_function[KSYM_NAME_LEN];
static atomic_t probe_stall_ms;

static int probe_stall_here(struct kprobe *kp, struct pt_regs *regs)
{
	int ms = atomic_xchg(&probe_stall_ms, 0);

	if (!ms)
		return 0;
	mdelay(ms);
	pr_info("a processor stood still for %d ms in %s\n", ms, kp->symbol_name);
	return 0;
}

static struct kprobe probe_stall_at = { .pre_handler = probe_stall_here };
static bool probe_stalls;

void probe_stall_end(void)
{
	if (probe_stalls)
		unregister_kprobe(&probe_stall_at);
	probe_stalls = false;
}

int probe_stall(char *arg)
{
	char *function = strsep(&arg, " ");
	u32 ms;
	int err;

	if (!arg || kstrtou32(arg, 10, &ms) || !ms || ms > PROBE_STALL_MS_MAX ||
	    strscpy(probe_stall_function, function, sizeof(probe_stall_function)) < 0)
		return -EINVAL;
	probe_stall_end();
	probe_stall_at = (struct kprobe){
		.symbol_name = probe_stall_function,
		.pre_handler = probe_stall_here,
	};
	err = register_kprobe(&probe_stall_at);
	if (err)
		return err;
	probe_stalls = true;
	atomic_set(&probe_stall_ms, ms);
	return 0;
}
