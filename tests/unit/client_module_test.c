// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records by way of the module: which calls publishing and withdrawing make, and what the module
 * has afterwards when it has refused some of them. The module is played by ioctl(), with one
 * service of one port; its device is a file in memory. Where no server is attached the clock is
 * played as well, and there are more services.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/include/krcore/krcore.h"
#include "proto/krp_ioctl.h"
#include "tests/unit/wrap_ioctl.h"
#include "tests/unit/wrap_open.h"
#include "tests/unit/wrap_poll.h"

#define SERVICE 4711
#define SERVICES 8
#define TURN_MS 1000 /* what the library's thread may take without a pause */
#define PAUSES_MAX 100000 /* after so many pauses of the test the thread does nothing any more */

static _Atomic int refuses; /* what the module answers to KRP_IOC_PUBLISH */
static _Atomic int undo_fails; /* and to KRP_BIND_UNDO */
static _Atomic int published; /* first byte of what it has; 0: nothing */
static _Atomic long clock_ms;
static _Atomic unsigned int tries[SERVICES]; /* in vain, by a service's number */
static _Atomic unsigned int turns; /* pauses of the library's thread */
static _Atomic unsigned int turn_ms; /* waited since the last pause */
static _Atomic unsigned int most_ms; /* at most between two of them */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	ret_now->tv_sec = clock_ms / 1000;
	ret_now->tv_nsec = clock_ms % 1000 * 1000000;
	return 0;
}

/* The thread of the library pauses; not as long as it would, since its clock is played. */
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	(void)timeout_ms;
	if (turn_ms > most_ms)
		most_ms = turn_ms;
	turn_ms = 0;
	turns++;
	return __real_poll(fds, nr, 1);
}

int __wrap_open(const char *path, int flags)
{
	(void)flags;
	assert_string_equal(path, "/dev/krcore");
	return memfd_create("krcore", 0);
}

static int publish(const struct krp_record_publish *arg)
{
	assert_in_range(arg->service, SERVICE, SERVICE + SERVICES - 1);
	if (refuses == -ETIMEDOUT) {
		clock_ms += arg->timeout_ms;
		turn_ms += arg->timeout_ms;
		tries[arg->service - SERVICE]++;
	}
	if (refuses)
		return refuses;
	published = arg->raw[0];
	return 0;
}

static int undo(const struct krp_bind *arg)
{
	assert_int_equal(arg->service, SERVICE);
	assert_int_equal(arg->flags, KRP_BIND_UNDO);
	if (undo_fails)
		return undo_fails;
	if (!published)
		return -ENOENT;
	published = 0;
	return 0;
}

static int answer(unsigned long request, void *arg)
{
	switch (request) {
	case KRP_IOC_QUERY:
		((struct krp_query *)arg)->abi = KRP_ABI_VERSION;
		((struct krp_query *)arg)->ports = 1;
		return 0;
	case KRP_IOC_PORT:
		((struct krp_port_info *)arg)->gid[15] = 1;
		return 0;
	case KRP_IOC_SETUP:
		return 0;
	case KRP_IOC_PUBLISH:
		return publish(arg);
	case KRP_IOC_BIND:
		return undo(arg);
	default:
		return -ENOTTY;
	}
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	int err = answer(request, arg);

	(void)fd;
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

static const struct krcore_key key = { .gid[15] = 1, .service = SERVICE };

static int put_at(struct krcore_ctx *ctx, const struct krcore_key *at, uint8_t byte)
{
	const struct krcore_value value = {
		.kind = KRCORE_KIND_RAW,
		.raw_len = 1,
		.raw[0] = byte,
	};

	return krcore_publish(ctx, at, &value);
}

static int put(struct krcore_ctx *ctx, uint8_t byte)
{
	return put_at(ctx, &key, byte);
}

static struct krcore_ctx *context(void)
{
	struct krcore_ctx *ctx = NULL;

	refuses = 0;
	undo_fails = 0;
	published = 0;
	assert_int_equal(krcore_open(NULL, &ctx), 0);
	return ctx;
}

static void test_publish_and_withdraw(void **state)
{
	struct krcore_ctx *ctx = context();

	(void)state;
	assert_int_equal(put(ctx, 1), 1);
	assert_int_equal(published, 1);
	assert_int_equal(krcore_withdraw(ctx, &key), 0);
	assert_int_equal(published, 0);
	assert_int_equal(krcore_withdraw(ctx, &key), -ENOENT);
	krcore_close(ctx);
}

/* No server acknowledged the second value: the module has the first one, which goes as well. */
static void test_withdraw_after_replacing_failed(void **state)
{
	struct krcore_ctx *ctx = context();

	(void)state;
	assert_int_equal(put(ctx, 1), 1);
	refuses = -ETIMEDOUT;
	assert_int_equal(put(ctx, 2), -EHOSTUNREACH);
	assert_int_equal(published, 1);
	assert_int_equal(krcore_withdraw(ctx, &key), 0);
	assert_int_equal(published, 0);
	krcore_close(ctx);
}

/* The module never had it, or the port is gone: there is nothing to take back. */
static void test_withdraw_what_was_never_published(void **state)
{
	struct krcore_ctx *ctx = context();

	(void)state;
	refuses = -ETIMEDOUT;
	assert_int_equal(put(ctx, 1), -EHOSTUNREACH);
	assert_int_equal(krcore_withdraw(ctx, &key), 0);
	assert_int_equal(put(ctx, 1), -EHOSTUNREACH);
	undo_fails = -ENODEV;
	assert_int_equal(krcore_withdraw(ctx, &key), 0);
	assert_int_equal(krcore_withdraw(ctx, &key), -ENOENT);
	krcore_close(ctx);
}

/* The port has gone in this moment, and the record with it: it is withdrawn. */
static void test_withdraw_from_a_port_that_goes(void **state)
{
	static const int gone[] = { -ENODEV, -ESHUTDOWN };
	struct krcore_ctx *ctx;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		ctx = context();
		assert_int_equal(put(ctx, 1), 1);
		undo_fails = gone[i];
		assert_int_equal(krcore_withdraw(ctx, &key), 0);
		assert_int_equal(krcore_withdraw(ctx, &key), -ENOENT);
		krcore_close(ctx);
	}
}

/* What the module says of a record that it should have reaches the caller. */
static void test_withdraw_fails(void **state)
{
	struct krcore_ctx *ctx = context();

	(void)state;
	assert_int_equal(put(ctx, 1), 1);
	undo_fails = -EBUSY;
	assert_int_equal(krcore_withdraw(ctx, &key), -EBUSY);
	krcore_close(ctx);
}

/* Whether the thread has tried each service again. */
static bool all_tried(void)
{
	unsigned int i;

	for (i = 0; i < SERVICES; i++)
		if (tries[i] < 2) /* the first was krcore_publish() */
			return false;
	return true;
}

/*
 * Without a server records are published again in turns that end, each record in one of them, and
 * so does krcore_close(), which waits for such a turn.
 */
static void test_no_server_takes_a_turn_at_most(void **state)
{
	struct krcore_ctx *ctx = context();
	struct krcore_key at = key;
	unsigned int i, before;

	(void)state;
	refuses = -ETIMEDOUT;
	for (i = 0; i < SERVICES; i++) {
		at.service = (uint16_t)(SERVICE + i);
		assert_int_equal(put_at(ctx, &at, 1), -EHOSTUNREACH);
	}
	before = turns;
	for (i = 0; i < PAUSES_MAX && turns < before + 2; i++)
		usleep(100);
	turn_ms = 0; /* what krcore_publish() itself waited for is not of a turn */
	most_ms = 0;
	before = turns;
	for (i = 0; i < PAUSES_MAX && (turns < before + 2 * SERVICES || !all_tried()); i++)
		usleep(100);
	assert_true(all_tried());
	assert_in_range(most_ms, 1, TURN_MS);
	krcore_close(ctx);
	assert_in_range(turn_ms, 0, TURN_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_publish_and_withdraw),
		cmocka_unit_test(test_withdraw_after_replacing_failed),
		cmocka_unit_test(test_withdraw_what_was_never_published),
		cmocka_unit_test(test_withdraw_from_a_port_that_goes),
		cmocka_unit_test(test_withdraw_fails),
		cmocka_unit_test(test_no_server_takes_a_turn_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
