// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Out of memory at every allocation; see fail_nth.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/fail_nth.h"

#define FAIL_NTH_RUNS_MAX 2000

static int fail_nth_file = -1;

static bool fail_nth_open(void)
{
	if (fail_nth_file < 0)
		fail_nth_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return fail_nth_file >= 0;
}

/* Copying the digits may be the one that fails; then it is over, and goes well again. */
static void fail_nth_set(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);
	ssize_t ret = pwrite(fail_nth_file, text, (size_t)len, 0);

	if (ret < 0 && errno == EFAULT)
		ret = pwrite(fail_nth_file, text, (size_t)len, 0);
	if (ret != len) {
		perror("fail-nth");
		exit(2);
	}
}

/*
 * How many allocations are still to come before the one that fails; 0: it did. Ends it.
 * Reading this copies bytes as well: if that is what fails, the step had none left.
 */
static unsigned int fail_nth_stop(void)
{
	char text[16] = "";
	ssize_t ret = pread(fail_nth_file, text, sizeof(text) - 1, 0);

	if (ret < 0 && errno == EFAULT) {
		snprintf(text, sizeof(text), "1");
	} else if (ret <= 0) {
		perror("fail-nth");
		exit(2);
	}
	fail_nth_set(0);
	return (unsigned int)strtoul(text, NULL, 10);
}

/* What has to go well for the rest to mean anything. */
static void fail_nth_must(const struct fail_nth_step *step, const char *what, int err)
{
	if (!err)
		return;
	printf("Bail out! %s: it cannot be %s: %s\n", step->name, what, strerror(-err));
	exit(2);
}

/* One run. Return: what the step said; @ret_left: as fail_nth_stop(). */
static int fail_nth_run(const struct fail_nth_step *step, void *arg, unsigned int nth,
			unsigned int *ret_left)
{
	int err;

	if (step->prepare)
		fail_nth_must(step, "prepared", step->prepare(arg));
	fail_nth_set(nth);
	err = step->run(arg);
	*ret_left = fail_nth_stop();
	if (!err && step->undo)
		fail_nth_must(step, "undone", step->undo(arg));
	if (err && step->undo_failed)
		step->undo_failed(arg);
	return err;
}

static void fail_nth_judge(const struct fail_nth_step *step, unsigned int nth, int err,
			   struct fail_nth_count *c)
{
	if (!err) {
		c->went_on++;
	} else if (err == -EFAULT || ((err == -ENOMEM || err == -ENOBUFS) && !step->never_fails)) {
		c->failed++;
	} else {
		printf("%s: allocation %u of %u fails: %s\n", step->name, nth, c->allocations,
		       strerror(-err));
		c->wrong++;
	}
}

int fail_nth_sweep(const struct fail_nth_step *step, void *arg, struct fail_nth_count *ret_count)
{
	unsigned int first = step->first ?: 1, nth, left;
	struct fail_nth_count c = { 0 };
	int err;

	if (!fail_nth_open())
		return -ENOTSUP;
	err = fail_nth_run(step, arg, FAIL_NTH_ALL, &left);
	if (err) {
		printf("%s: fails without a fault: %s\n", step->name, strerror(-err));
		return -EIO;
	}
	c.allocations = FAIL_NTH_ALL - left;
	/* one time it may make more allocations than another; it ends where none is left */
	for (nth = first; nth < FAIL_NTH_RUNS_MAX; nth += step->every ?: 1) {
		err = fail_nth_run(step, arg, nth, &left);
		if (left)
			break;
		fail_nth_judge(step, nth, err, &c);
	}
	err = fail_nth_run(step, arg, FAIL_NTH_ALL, &left);
	if (err)
		printf("%s: fails afterwards: %s\n", step->name, strerror(-err));
	*ret_count = c;
	if (nth == first || nth >= FAIL_NTH_RUNS_MAX) {
		printf("%s: %s\n", step->name,
		       nth < FAIL_NTH_RUNS_MAX ? "no allocation failed"
					       : "there are still more allocations");
		return -EIO;
	}
	return err || c.wrong ? -EIO : 0;
}

int fail_nth_once(int (*run)(void *arg), void *arg, unsigned int nth, unsigned int *ret_left)
{
	const struct fail_nth_step step = { .run = run };

	return fail_nth_open() ? fail_nth_run(&step, arg, nth, ret_left) : -ENOTSUP;
}
