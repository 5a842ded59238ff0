// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which records servers do not have alike: client/metactl/diff.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/metactl/diff.h"

static void add(struct mc_diff *diff, unsigned int server, unsigned int service, uint8_t byte)
{
	struct krcore_key key = { .gid = { 0xfe, 0x80 }, .service = (uint16_t)service };
	struct krcore_value value = {
		.generation = 7, .kind = KRCORE_KIND_RAW, .raw_len = 1, .raw = { byte }
	};

	diff->servers |= 1ULL << server;
	assert_int_equal(mc_diff_add(diff, server, &key, &value), 0);
}

static void expect(struct mc_diff *diff, unsigned int service, uint64_t have, bool differs)
{
	struct mc_diff_row row;

	assert_true(mc_diff_next(diff, &row));
	assert_int_equal(row.key.service, service);
	assert_int_equal(row.have, have);
	assert_int_equal(row.differs, differs);
}

static void test_alike(void **state)
{
	struct mc_diff diff = { 0 };
	struct mc_diff_row row;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3000; i++)
		add(&diff, 0, i, (uint8_t)i);
	for (i = 3000; i--;)
		add(&diff, 63, i, (uint8_t)i);
	add(&diff, 0, 77, 77); /* it moved while the table was walked */
	assert_false(mc_diff_next(&diff, &row));
	mc_diff_free(&diff);
	assert_false(mc_diff_next(&diff, &row)); /* nothing at all */
}

static void test_not_alike(void **state)
{
	struct mc_diff diff = { .servers = 1ULL << 2 }; /* one that has nothing at all */
	struct mc_diff_row row;

	(void)state;
	add(&diff, 0, 300, 1);
	add(&diff, 1, 300, 2);
	add(&diff, 1, 256, 3);
	add(&diff, 0, 256, 3);
	add(&diff, 0, 5, 3);
	expect(&diff, 5, 1, false);
	expect(&diff, 256, 3, false);
	expect(&diff, 300, 3, true);
	assert_false(mc_diff_next(&diff, &row));
	mc_diff_free(&diff);
}

/* Records that no bucket has cannot be compared, and that is said; damage comes first. */
static void test_what_a_walk_does_not_bring(void **state)
{
	struct krcore_check check = { .size = sizeof(check), .records = 7, .torn = 1, .moved = 2 };

	(void)state;
	assert_null(mc_diff_unseen(&check));
	check.crowded = 1;
	assert_non_null(strstr(mc_diff_unseen(&check), "keeps aside"));
	check.bad = 1;
	assert_non_null(strstr(mc_diff_unseen(&check), "damaged"));
	check.bad = 0;
	check.directory_errors = 1;
	assert_non_null(strstr(mc_diff_unseen(&check), "damaged"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_not_alike),
		cmocka_unit_test(test_what_a_walk_does_not_bring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
