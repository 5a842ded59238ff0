// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which peer a starting server copies its table from: metaserver/peer.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "metaserver/peer.h"

#define UP .state = KRCORE_SERVER_UP

static void test_all_are_waited_for(void **state)
{
	struct krcore_server_info info[] = {
		{ UP },
		{ .state = KRCORE_SERVER_CONNECTING },
		{ .state = KRCORE_SERVER_DOWN, .last_error = -ECONNREFUSED },
	};

	(void)state;
	assert_false(ms_peers_known(info, 3));
	info[1].state = KRCORE_SERVER_DOWN; /* not tried yet */
	assert_false(ms_peers_known(info, 3));
	info[1].last_error = -ETIMEDOUT;
	assert_true(ms_peers_known(info, 3));
	info[1].state = KRCORE_SERVER_CONNECTING; /* once more, after a failure */
	assert_true(ms_peers_known(info, 3));
}

/* A rolling restart: the one that is up first was restarted just now. */
static void test_the_full_one_is_taken(void **state)
{
	const struct krcore_server_info info[] = {
		{ UP, .records = 900, .settling_ms = 20000 },
		{ UP, .records = 10 },
		{ .state = KRCORE_SERVER_DOWN, .records = 5000, .last_error = -ETIMEDOUT },
		{ UP, .records = 1000 },
		{ UP, .records = 1000 },
		{ UP, .records = 901, .settling_ms = 1 },
	};
	const int order[] = { 3, 4, 1, 5, 0, -1 };
	uint64_t tried = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		assert_int_equal(ms_peer_best(info, 6, tried), order[i]);
		tried |= order[i] < 0 ? 0 : 1ULL << order[i];
	}
	assert_int_equal(ms_peer_best(info, 0, 0), -1);
}

static void test_a_copy_that_is_not_whole(void **state)
{
	struct krcore_check check = { .pages = 4, .records = 9, .torn = 3, .moved = 2 };

	(void)state;
	assert_true(ms_copy_whole(&check));
	check.bad = 1;
	assert_false(ms_copy_whole(&check));
	check.bad = 0;
	check.directory_errors = 1;
	assert_false(ms_copy_whole(&check));
}

/* What is aside at the peer has to come from its publishers. */
static void test_a_copy_without_what_is_aside_is_not_settled(void **state)
{
	struct krcore_server_info peer = { 0 };
	struct krcore_check check = { .pages = 4, .records = 9 };

	(void)state;
	assert_true(ms_copy_settled(&check, &peer));
	peer.settling_ms = 1;
	assert_false(ms_copy_settled(&check, &peer));
	peer.settling_ms = 0;
	check.crowded = 1;
	assert_false(ms_copy_settled(&check, &peer));
	assert_true(ms_copy_whole(&check)); /* it is used all the same */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_waited_for),
		cmocka_unit_test(test_the_full_one_is_taken),
		cmocka_unit_test(test_a_copy_that_is_not_whole),
		cmocka_unit_test(test_a_copy_without_what_is_aside_is_not_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
