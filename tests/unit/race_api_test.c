// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What libkrcore-race shows to clients, on a table in memory whose network is played: which
 * arguments are refused, when a table is looked up afresh, and structures of other versions.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <krcore/race.h>

#include "race/lib/layout.h"
#include "tests/unit/race_queue.h"

#define BYTES (4 << 20)
#define VALUE "the value"

static const struct krcore_race_options options = {
	.size = sizeof(options),
	.server = RQ_PEER,
};

static void begin(void)
{
	rq_begin(BYTES);
	assert_int_equal(kr_format(rq.memory, BYTES, 1, 4, 4711, 1000000), 0);
}

static struct krcore_race *attach(void)
{
	struct krcore_race *race;

	assert_int_equal(krcore_race_open(&options, &race), 0);
	return race;
}

static void end(struct krcore_race *race)
{
	krcore_race_close(race);
	rq_end();
}

static void test_options(void **state)
{
	struct krcore_race *race, *untouched = (struct krcore_race *)&rq;
	struct krcore_race_options opts = options;

	(void)state;
	begin();
	race = untouched;
	opts.size--;
	assert_int_equal(krcore_race_open(&opts, &race), -EINVAL);
	opts.size = 0;
	assert_int_equal(krcore_race_open(&opts, &race), -EINVAL);
	opts = options;
	opts.server = NULL;
	assert_int_equal(krcore_race_open(&opts, &race), -EINVAL);
	opts = options;
	opts.timeout_ms = 60001;
	assert_int_equal(krcore_race_open(&opts, &race), -EINVAL);
	assert_int_equal(rq.starts, 0);
	assert_ptr_equal(race, untouched);
	opts.timeout_ms = 60000;
	opts.size++; /* of a later version */
	opts.port = 2;
	assert_int_equal(krcore_race_open(&opts, &race), 0);
	assert_int_equal(rq.start.record, KRCORE_RACE_SERVICE);
	assert_int_equal(rq.start.timeout_ms, 60000);
	assert_int_equal(rq.node.port, 2);
	krcore_race_close(race);
	opts.service = 4711;
	assert_int_equal(krcore_race_open(&opts, &race), 0);
	assert_int_equal(rq.start.record, 4711);
	krcore_race_close(NULL);
	end(race);
}

/* What the node remembers is of an old table, whoever notices: it is looked up afresh, once. */
static void test_old_table(void **state)
{
	struct krcore_race_stats stats = { .size = sizeof(stats) };
	struct krcore_race *race;
	unsigned int late;

	(void)state;
	for (late = 0; late < 2; late++) {
		begin();
		rq.remembered = RQ_OLD_TOKEN;
		rq.late_refusal = late;
		race = attach();
		assert_int_equal(rq.starts, 2);
		assert_int_equal(rq.start.flags, KRCORE_CONNECT_FRESH);
		krcore_race_stats(race, &stats);
		assert_int_equal(stats.connect_reads, 2);
		end(race);
	}
}

/* It is used as long as it is right: nothing is looked up. */
static void test_remembered(void **state)
{
	struct krcore_race_stats stats = { .size = sizeof(stats), .connect_reads = 9 };
	struct krcore_race *race;

	(void)state;
	begin();
	rq.remembered = RQ_TOKEN;
	race = attach();
	assert_int_equal(rq.starts, 1);
	assert_int_equal(rq.start.flags, 0);
	krcore_race_stats(race, &stats);
	assert_int_equal(stats.connect_reads, 0);
	end(race);
}

/* Other failures are no reason, and neither is the second one. */
static void test_cannot_open(void **state)
{
	static const int errors[] = { -ENOENT, -ETIMEDOUT, -ENOMEM, -EPROTO };
	struct krcore_race *race, *untouched = (struct krcore_race *)&rq;
	size_t i;

	(void)state;
	race = untouched;
	begin();
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		rq.start_err = errors[i];
		assert_int_equal(krcore_race_open(&options, &race), errors[i]);
		assert_int_equal(rq.starts, i + 1);
	}
	rq.start_err = 0;
	rq.memory[0] ^= 1; /* it is no table */
	rq.starts = 0;
	assert_int_equal(krcore_race_open(&options, &race), -EPROTO);
	assert_int_equal(rq.starts, 1);
	rq.memory[0] ^= 1;
	for (i = 0; i < 2; i++) {
		rq.starts = 0;
		rq.start_err = i ? -EREMOTEIO : -EBADR;
		assert_int_equal(krcore_race_open(&options, &race), rq.start_err);
		assert_int_equal(rq.starts, 2);
	}
	assert_ptr_equal(race, untouched);
	rq_end();
}

static void test_room_of_a_value(void **state)
{
	struct krcore_race *race;
	char value[16];
	size_t bytes = 0;

	(void)state;
	begin();
	race = attach();
	assert_int_equal(krcore_race_put(race, "key", 3, VALUE, strlen(VALUE)), 0);
	memset(value, '#', sizeof(value));
	assert_int_equal(krcore_race_get(race, "key", 3, value, strlen(VALUE) - 1, &bytes),
			 -ENOBUFS);
	assert_int_equal(bytes, strlen(VALUE));
	assert_memory_equal(value, "################", sizeof(value));
	bytes = 0;
	assert_int_equal(krcore_race_get(race, "key", 3, NULL, 0, &bytes), -ENOBUFS);
	assert_int_equal(bytes, strlen(VALUE));
	bytes = 0;
	assert_int_equal(krcore_race_get(race, "key", 3, value, strlen(VALUE), &bytes), 0);
	assert_int_equal(bytes, strlen(VALUE));
	assert_memory_equal(value, VALUE "#######", sizeof(value));
	assert_int_equal(krcore_race_get(race, "kez", 3, value, sizeof(value), &bytes), -ENOENT);
	/* a value of no bytes needs no room */
	assert_int_equal(krcore_race_put(race, "key", 3, NULL, 0), 0);
	assert_int_equal(krcore_race_get(race, "key", 3, NULL, 0, &bytes), 0);
	assert_int_equal(bytes, 0);
	end(race);
}

/* Lengths are refused before anything is asked; the greatest are not. */
static void test_lengths(void **state)
{
	char *most = calloc(1, KRCORE_RACE_VALUE_MAX + 1);
	struct krcore_race *race;
	unsigned int requests;
	size_t bytes;

	(void)state;
	assert_non_null(most);
	begin();
	race = attach();
	requests = rq.requests;
	assert_int_equal(krcore_race_get(race, most, 0, most, 8, &bytes), -EINVAL);
	assert_int_equal(krcore_race_get(race, most, KRCORE_RACE_KEY_MAX + 1, most, 8, &bytes),
			 -EINVAL);
	assert_int_equal(krcore_race_put(race, most, 0, most, 8), -EINVAL);
	assert_int_equal(krcore_race_put(race, most, KRCORE_RACE_KEY_MAX + 1, most, 8), -EINVAL);
	assert_int_equal(krcore_race_put(race, most, 8, most, KRCORE_RACE_VALUE_MAX + 1), -EINVAL);
	assert_int_equal(krcore_race_insert(race, most, 0, most, 8), -EINVAL);
	assert_int_equal(krcore_race_update(race, most, 0, most, 8), -EINVAL);
	assert_int_equal(krcore_race_del(race, most, 0), -EINVAL);
	assert_int_equal(krcore_race_del(race, most, KRCORE_RACE_KEY_MAX + 1), -EINVAL);
	assert_int_equal(rq.requests, requests);
	assert_int_equal(
		krcore_race_put(race, most, KRCORE_RACE_KEY_MAX, most, KRCORE_RACE_VALUE_MAX), 0);
	assert_int_equal(krcore_race_get(race, most, KRCORE_RACE_KEY_MAX, most,
					 KRCORE_RACE_VALUE_MAX, &bytes),
			 0);
	assert_int_equal(bytes, KRCORE_RACE_VALUE_MAX);
	end(race);
	free(most);
}

static void test_modes(void **state)
{
	struct krcore_race *race;
	char value[16];
	size_t bytes;

	(void)state;
	begin();
	race = attach();
	assert_int_equal(krcore_race_update(race, "a", 1, "1", 1), -ENOENT);
	assert_int_equal(krcore_race_del(race, "a", 1), -ENOENT);
	assert_int_equal(krcore_race_insert(race, "a", 1, "2", 1), 0);
	assert_int_equal(krcore_race_insert(race, "a", 1, "3", 1), -EEXIST);
	assert_int_equal(krcore_race_get(race, "a", 1, value, sizeof(value), &bytes), 0);
	assert_memory_equal(value, "2", 1);
	assert_int_equal(krcore_race_update(race, "a", 1, "4", 1), 0);
	assert_int_equal(krcore_race_put(race, "b", 1, "5", 1), 0);
	assert_int_equal(krcore_race_put(race, "b", 1, "66", 2), 0);
	assert_int_equal(krcore_race_get(race, "a", 1, value, sizeof(value), &bytes), 0);
	assert_memory_equal(value, "4", 1);
	assert_int_equal(krcore_race_get(race, "b", 1, value, sizeof(value), &bytes), 0);
	assert_int_equal(bytes, 2);
	assert_memory_equal(value, "66", 2);
	assert_int_equal(krcore_race_del(race, "a", 1), 0);
	assert_int_equal(krcore_race_get(race, "a", 1, value, sizeof(value), &bytes), -ENOENT);
	end(race);
}

static int seen_entry(void *arg, const void *key, size_t key_bytes, const void *value,
		      size_t value_bytes)
{
	unsigned int *left = arg;

	assert_int_equal(key_bytes, 2);
	assert_int_equal(value_bytes, 3);
	assert_memory_equal(value, "v", 1);
	assert_memory_equal((const char *)value + 1, key, 2);
	return --*left ? 0 : 77;
}

static void test_scan(void **state)
{
	static const char *const entries[] = { "vk0", "vk1", "vk2" };
	struct krcore_race *race;
	unsigned int left = 4, i;

	(void)state;
	begin();
	race = attach();
	for (i = 0; i < 3; i++)
		assert_int_equal(krcore_race_put(race, entries[i] + 1, 2, entries[i], 3), 0);
	assert_int_equal(krcore_race_scan(race, seen_entry, &left), 0);
	assert_int_equal(left, 1);
	left = 2;
	assert_int_equal(krcore_race_scan(race, seen_entry, &left), 77);
	assert_int_equal(left, 0);
	end(race);
}

/* Structures of programs that were built with an earlier version, or a later one. */
static void test_sizes(void **state)
{
	struct {
		struct krcore_race_stats stats;
		uint64_t more;
	} stats;
	struct {
		struct krcore_race_report report;
		uint64_t more;
	} report;
	const size_t some = offsetof(struct krcore_race_stats, search_reads);
	const size_t few = offsetof(struct krcore_race_report, slots);
	struct krcore_race *race;
	size_t bytes;
	char value;

	(void)state;
	begin();
	race = attach();
	assert_int_equal(krcore_race_put(race, "a", 1, "1", 1), 0);
	assert_int_equal(krcore_race_get(race, "a", 1, &value, 1, &bytes), 0);
	memset(&stats, 0xa5, sizeof(stats));
	stats.stats.size = some;
	krcore_race_stats(race, &stats.stats);
	assert_int_equal(stats.stats.size, some);
	assert_int_equal(stats.stats.searches, 2);
	assert_int_equal(stats.stats.search_reads, 0xa5a5a5a5a5a5a5a5);
	stats.stats.size = sizeof(stats);
	krcore_race_stats(race, &stats.stats);
	assert_int_equal(stats.stats.size, sizeof(stats.stats)); /* so much of it is filled */
	assert_int_equal(stats.stats.search_reads, 5); /* two each, and the block that there is */
	assert_int_equal(stats.stats.connect_reads, 2);
	assert_int_equal(stats.more, 0xa5a5a5a5a5a5a5a5);

	memset(&report, 0xa5, sizeof(report));
	report.report.size = few;
	assert_int_equal(krcore_race_check(race, 0, &report.report), 0);
	assert_int_equal(report.report.size, few);
	assert_int_equal(report.report.subtables, 1);
	assert_int_equal(report.report.slots, 0xa5a5a5a5a5a5a5a5);
	report.report.size = sizeof(report);
	assert_int_equal(krcore_race_check(race, 0, &report.report), 0);
	assert_int_equal(report.report.size, sizeof(report.report));
	assert_int_equal(report.more, 0xa5a5a5a5a5a5a5a5);
	end(race);
}

static void test_report(void **state)
{
	struct krcore_race_report report = { .size = sizeof(report), .entries = 99 };
	struct krcore_race *race;

	(void)state;
	begin();
	race = attach();
	assert_int_equal(krcore_race_check(race, 2, &report), -EINVAL);
	assert_int_equal(krcore_race_check(race, 1U << 31 | KRCORE_RACE_RECLAIM, &report), -EINVAL);
	rq.fail_at = rq.requests + 1;
	rq.fail_status = -ENODEV;
	assert_int_equal(krcore_race_check(race, 0, &report), -ENODEV);
	assert_int_equal(report.entries, 99);
	report.size = 0;
	assert_int_equal(krcore_race_check(race, 0, &report), -EINVAL);
	assert_int_equal(report.entries, 99);
	report.size = sizeof(report);
	assert_int_equal(krcore_race_put(race, "a", 1, "1", 1), 0);
	assert_int_equal(krcore_race_put(race, "b", 1, "1", 1), 0);
	assert_int_equal(krcore_race_check(race, 0, &report), 0);
	assert_int_equal(report.subtables, 1);
	assert_int_equal(report.depth, 0);
	assert_int_equal(report.slots, 21);
	assert_int_equal(report.entries, 2);
	assert_int_equal(report.damaged, 0);
	assert_int_equal(report.tentative, 0);
	assert_int_equal(report.tombs, 0);
	assert_int_equal(report.chunks, ((const struct kr_header *)rq.memory)->nr_chunks);
	assert_int_equal(report.chunks_used, 1);
	assert_int_equal(report.clients, 1);
	assert_int_equal(report.dead, 0);
	assert_int_equal(report.reclaimed, 0);
	end(race);
}

/* The network fails in the middle of operations: they go on over the queue, connected again. */
static void test_network_fails(void **state)
{
	struct krcore_race_stats stats = { .size = sizeof(stats) };
	struct krcore_race *race;
	unsigned int nr, i;
	char value[8];
	size_t bytes;

	(void)state;
	begin();
	race = attach();
	assert_int_equal(krcore_race_put(race, "key", 3, "0", 1), 0);
	nr = rq.requests;
	assert_int_equal(krcore_race_put(race, "key", 3, "1", 1), 0);
	nr = rq.requests - nr; /* of an update */
	assert_true(nr > 3);
	for (i = 0; i < 2 * nr; i++) {
		rq.connects = 0;
		rq.fail_at = rq.requests + 1 + i / 2;
		rq.fail_status = -EREMCHG;
		rq.fail_done = i % 2;
		value[1] = (char)('a' + i);
		assert_int_equal(krcore_race_put(race, "key", 3, &value[1], 1), 0);
		assert_int_equal(krcore_race_get(race, "key", 3, value, 1, &bytes), 0);
		assert_int_equal(value[0], value[1]);
		assert_int_equal(rq.connects, 1);
		assert_int_equal(rq.starts, 1);
	}
	krcore_race_stats(race, &stats);
	assert_in_range(stats.unknown, 1, 2 * nr);
	assert_in_range(stats.retries, 1, 4 * nr);
	end(race);
}

static void test_strerror(void **state)
{
	static const int known[] = { 0,	       -ENOENT,	 -EEXIST, -ENOSPC,   -EUSERS,
				     -EREMCHG, -EBADMSG, -EBADR,  -EPROTO,   -EPROTONOSUPPORT,
				     -ENOBUFS, -EINVAL,	 -E2BIG,  -ETIMEDOUT };
	const size_t nr = sizeof(known) / sizeof(known[0]);
	const char *text;
	size_t i, k;

	(void)state;
	for (i = 0; i < nr; i++) {
		text = krcore_race_strerror(known[i]);
		assert_non_null(text);
		assert_true(*text && text[strlen(text) - 1] != '.');
		for (k = 0; k < i; k++)
			assert_string_not_equal(text, krcore_race_strerror(known[k]));
	}
	assert_string_equal(krcore_race_strerror(-EREMOTEIO), krcore_race_strerror(-EBADR));
	assert_string_equal(krcore_race_strerror(0), "success");
	/* what has no meaning of its own here has that of the system; nothing has none */
	assert_string_equal(krcore_race_strerror(-ETIMEDOUT), strerrordesc_np(ETIMEDOUT));
	assert_string_not_equal(krcore_race_strerror(-ENOENT), strerrordesc_np(ENOENT));
	assert_string_not_equal(krcore_race_strerror(-E2BIG), strerrordesc_np(E2BIG));
	assert_string_equal(krcore_race_strerror(-99999), "unknown error");
	assert_string_equal(krcore_race_strerror(ENOENT), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),		cmocka_unit_test(test_old_table),
		cmocka_unit_test(test_remembered),	cmocka_unit_test(test_cannot_open),
		cmocka_unit_test(test_room_of_a_value), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_modes),		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_sizes),		cmocka_unit_test(test_report),
		cmocka_unit_test(test_network_fails),	cmocka_unit_test(test_strerror),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
