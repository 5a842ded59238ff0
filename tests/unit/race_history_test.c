// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The judge of histories itself, by histories written by hand of which one can see whether there
 * is an order: one that said always or never so would be seen here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/race_history.h"

#define NOBODY 99 /* a key that is in no history */

/* Judge operations. Return: the key without an order, or NOBODY. */
static unsigned int judge(const struct rh_op *ops, unsigned int nr)
{
	static struct rh_history h;
	unsigned int key = NOBODY;

	h.nr = nr;
	memcpy(h.ops, ops, nr * sizeof(*ops));
	return rh_linearizable(&h, &key) ? NOBODY : key;
}

#define JUDGE(...) \
	judge((const struct rh_op[]){ __VA_ARGS__ }, \
	      sizeof((const struct rh_op[]){ __VA_ARGS__ }) / sizeof(struct rh_op))

#define PUT(k, v, from, to) \
	{ \
		.kind = RH_PUT, .key = (k), .value = (v), .start = (from), .end = (to) \
	}
#define GET(k, v, from, to) \
	{ \
		.kind = RH_GET, .key = (k), .value = (v), .start = (from), .end = (to) \
	}
#define MAYBE_PUT(k, v, from) \
	{ \
		.kind = RH_PUT, .key = (k), .value = (v), .pending = true, .start = (from), \
		.end = (from) + 1 \
	}
#define CHANGE(how, k, v, was, from, to) \
	{ \
		.kind = (how), .key = (k), .value = (v), .found = (was), .start = (from), \
		.end = (to) \
	}

static void test_one_after_the_other(void **state)
{
	(void)state;
	assert_int_equal(JUDGE(GET(1, RH_ABSENT, 1, 2), PUT(1, 7, 3, 4), GET(1, 7, 5, 6)), NOBODY);
	/* a value that nobody wrote, and one that had been replaced */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), GET(1, 8, 3, 4)), 1);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), PUT(1, 8, 3, 4), GET(1, 7, 5, 6)), 1);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), GET(1, RH_ABSENT, 3, 4)), 1);
}

static void test_at_the_same_time(void **state)
{
	(void)state;
	/* a look-up beside a write sees either */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 4), GET(1, RH_ABSENT, 2, 3)), NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 4), GET(1, 7, 2, 3)), NOBODY);
	/* but once the new one was seen, the old one is gone */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 8), GET(1, 7, 2, 3), GET(1, RH_ABSENT, 4, 5)), 1);
	/* the order of two writes at once is that of whoever looks */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 4), PUT(1, 8, 2, 3), GET(1, 7, 5, 6)), NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 4), PUT(1, 8, 2, 3), GET(1, 8, 5, 6)), NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 4), PUT(1, 8, 2, 3), GET(1, 7, 5, 6), GET(1, 8, 7, 8)),
			 1);
}

static void test_what_they_found(void **state)
{
	(void)state;
	assert_int_equal(JUDGE(CHANGE(RH_INSERT, 1, 7, false, 1, 2),
			       CHANGE(RH_INSERT, 1, 8, true, 3, 4), GET(1, 7, 5, 6),
			       CHANGE(RH_UPDATE, 1, 9, true, 7, 8), GET(1, 9, 9, 10),
			       CHANGE(RH_DELETE, 1, 0, true, 11, 12),
			       CHANGE(RH_UPDATE, 1, 9, false, 13, 14), GET(1, RH_ABSENT, 15, 16)),
			 NOBODY);
	/* of two insertions at once one finds the other's */
	assert_int_equal(JUDGE(CHANGE(RH_INSERT, 1, 7, false, 1, 4),
			       CHANGE(RH_INSERT, 1, 8, true, 2, 3)),
			 NOBODY);
	assert_int_equal(JUDGE(CHANGE(RH_INSERT, 1, 7, false, 1, 4),
			       CHANGE(RH_INSERT, 1, 8, false, 2, 3)),
			 1);
	/* and of two deletions of one entry */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), CHANGE(RH_DELETE, 1, 0, true, 3, 6),
			       CHANGE(RH_DELETE, 1, 0, true, 4, 5)),
			 1);
	/* a lost update: both have changed what was there, and one change is not seen */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), CHANGE(RH_UPDATE, 1, 8, true, 3, 4),
			       CHANGE(RH_UPDATE, 1, 9, true, 5, 6), GET(1, 8, 7, 8)),
			 1);
}

static void test_unknown_outcomes(void **state)
{
	(void)state;
	/* it was done, or not, or later */
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), MAYBE_PUT(1, 8, 3), GET(1, 8, 5, 6)), NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), MAYBE_PUT(1, 8, 3), GET(1, 7, 5, 6)), NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), MAYBE_PUT(1, 8, 3), GET(1, 7, 5, 6),
			       GET(1, 8, 7, 8)),
			 NOBODY);
	/* but once, not before its call, and not twice */
	assert_int_equal(
		JUDGE(PUT(1, 7, 1, 2), MAYBE_PUT(1, 8, 3), GET(1, 8, 5, 6), GET(1, 7, 7, 8)), 1);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), GET(1, 8, 3, 4), MAYBE_PUT(1, 8, 5)), 1);
	assert_int_equal(
		JUDGE(MAYBE_PUT(1, 8, 1), GET(1, 8, 3, 4), PUT(1, 7, 5, 6), GET(1, 8, 7, 8)), 1);
}

/* Each key is judged by itself, and the one without an order is named. */
static void test_keys(void **state)
{
	(void)state;
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), PUT(2, 8, 3, 4), GET(1, 7, 5, 6), GET(2, 8, 7, 8)),
			 NOBODY);
	assert_int_equal(JUDGE(PUT(1, 7, 1, 2), PUT(2, 8, 3, 4), GET(1, 7, 5, 6), GET(2, 7, 7, 8)),
			 2);
}

/* As many at once as there may be: found, and refuted, without trying all orders. */
static void test_many_at_once(void **state)
{
	struct rh_op ops[RH_KEY_OPS_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; i < RH_KEY_OPS_MAX - 2; i++)
		ops[i] = (struct rh_op)PUT(1, i % 3 + 1, 1 + i, 200 + i);
	ops[i++] = (struct rh_op)GET(1, 2, 400, 401);
	ops[i++] = (struct rh_op)GET(1, 2, 402, 403);
	assert_int_equal(judge(ops, i), NOBODY);
	ops[i - 1].value = 4;
	assert_int_equal(judge(ops, 12), NOBODY);
	memmove(ops + 12, ops + i - 2, 2 * sizeof(*ops));
	assert_int_equal(judge(ops, 14), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_at_the_same_time),
		cmocka_unit_test(test_what_they_found),
		cmocka_unit_test(test_unknown_outcomes),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
