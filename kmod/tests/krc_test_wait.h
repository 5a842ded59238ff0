/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How KUnit suites wait for what another task, a work item or a timer does.
 * Locking: none; the condition reads what others write with READ_ONCE() or under a lock.
 */
#ifndef KRC_TEST_WAIT_H
#define KRC_TEST_WAIT_H

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>

#define KRC_TEST_WAIT_MS 20000 /* longest wait; reached only by a test that fails */

/**
 * krc_test_until_late() - Wait until a condition holds, or for too long.
 * @cond: condition; evaluated many times.
 */
#define krc_test_until_late(cond) \
	do { \
		unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS); \
		while (!(cond) && time_before(jiffies, limit)) \
			usleep_range(100, 200); \
	} while (0)

/**
 * krc_test_wait() - Wait until a condition holds, and expect that it does.
 * @test: the KUnit test.
 * @cond: condition; evaluated many times.
 */
#define krc_test_wait(test, cond) \
	do { \
		bool _is_so; \
		/* what has become true may be over before it is looked at again */ \
		krc_test_until_late((_is_so = (cond))); \
		KUNIT_EXPECT_TRUE_MSG(test, _is_so, "%s", #cond); \
	} while (0)

#endif /* KRC_TEST_WAIT_H */
