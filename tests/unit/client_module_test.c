// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records by way of the module: which calls publishing and withdrawing make, and what the module
 * has afterwards when it has refused some of them. The module is played by ioctl(), with one
 * service of one port; its device is a file in memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
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

#define SERVICE 4711

static _Atomic int refuses; /* what the module answers to KRP_IOC_PUBLISH */
static _Atomic int undo_fails; /* and to KRP_BIND_UNDO */
static _Atomic int published; /* first byte of what it has; 0: nothing */

int __wrap_open(const char *path, int flags)
{
	(void)flags;
	assert_string_equal(path, "/dev/krcore");
	return memfd_create("krcore", 0);
}

static int publish(const struct krp_record_publish *arg)
{
	assert_int_equal(arg->service, SERVICE);
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

static int put(struct krcore_ctx *ctx, uint8_t byte)
{
	const struct krcore_value value = {
		.kind = KRCORE_KIND_RAW,
		.raw_len = 1,
		.raw[0] = byte,
	};

	return krcore_publish(ctx, &key, &value);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_publish_and_withdraw),
		cmocka_unit_test(test_withdraw_after_replacing_failed),
		cmocka_unit_test(test_withdraw_what_was_never_published),
		cmocka_unit_test(test_withdraw_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
