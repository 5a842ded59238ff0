/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Out of memory at every allocation: a step is run again and again, and each time another
 * of the allocations that the kernel makes for it fails, the first, the second, and so on.
 * Idea: /proc/self/fail-nth, Documentation/fault-injection/fault-injection.rst.
 * Needs a kernel with fault injection whose faults do not spare those who may wait
 * (ignore-gfp-wait = N) and are not logged (verbose = 0). One thread.
 */
#ifndef KRC_TESTS_FAIL_NTH_H
#define KRC_TESTS_FAIL_NTH_H

#include <stdbool.h>

#define FAIL_NTH_ALL 100000 /* more than any step has */

/**
 * struct fail_nth_step - What is tried.
 * @name: for diagnostics.
 * @prepare: before each run, without faults; 0 or a negative errno; or NULL.
 * @run: the step; 0 or a negative errno. A fault is -ENOMEM, -ENOBUFS in netlink, or
 *	-EFAULT where bytes of the program are copied; anything else is wrong.
 * @undo: after a run that succeeded; must succeed as well; or NULL.
 * @undo_failed: after a run that failed; may find nothing to undo; or NULL.
 * @never_fails: out of memory must not make @run fail.
 * @first: the first allocation that fails, from 1; 0: 1.
 * @every: one of so many fails; 0: each.
 */
struct fail_nth_step {
	const char *name;
	int (*prepare)(void *arg);
	int (*run)(void *arg);
	int (*undo)(void *arg);
	int (*undo_failed)(void *arg);
	bool never_fails;
	unsigned int first, every;
};

/**
 * struct fail_nth_count - What came of it.
 * @allocations: that the step makes.
 * @failed: runs that failed as they should.
 * @went_on: runs that did without.
 * @wrong: runs that ended in another way; printed.
 */
struct fail_nth_count {
	unsigned int allocations, failed, went_on, wrong;
};

/**
 * fail_nth_sweep() - Run a step with each of its allocations, or one of so many, failing once.
 * @step: step.
 * @arg: for its functions.
 * @ret_count: out: counts.
 *
 * Ends the program if the step cannot be prepared or undone.
 *
 * Return: 0 if an allocation failed, nothing was wrong, and the step succeeds before and
 * after; -EIO if not; -ENOTSUP on a kernel without fault injection.
 */
int fail_nth_sweep(const struct fail_nth_step *step, void *arg, struct fail_nth_count *ret_count);

/**
 * fail_nth_once() - Run a function with one of its allocations failing.
 * @run: function.
 * @arg: for it.
 * @nth: which allocation, from 1.
 * @ret_left: out: allocations that were still to come before that one; 0: it failed.
 *
 * Return: what @run says, or -ENOTSUP on a kernel without fault injection.
 */
int fail_nth_once(int (*run)(void *arg), void *arg, unsigned int nth, unsigned int *ret_left);

#endif /* KRC_TESTS_FAIL_NTH_H */
