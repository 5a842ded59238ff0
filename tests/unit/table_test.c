// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table's writer, with a reader beside it: what is put is found, what is
 * not is proved absent, failure leaves all as it was, and the numbers that
 * docs/protocol.md states hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/aside.h"
#include "tests/unit/table_fixture.h"

static const struct ms_table_config small = {
	.incarnation = 0x1122334455667788ULL,
	.salt = 42,
	.log2_segment_pages = 5,
	.segments_max = 64,
	.depth_max = 16,
};

static struct tf_server server; /* large: holds every segment a table may have */

static void must_hit(struct tf_reader *r, __u64 id, __u32 version)
{
	struct krp_value value;
	struct krp_key key;

	tf_key(&key, id);
	assert_int_equal(tf_lookup(r, &key, &value), KRP_STEP_HIT);
	assert_int_equal(tf_value_version(&value, id), version);
}

static void must_miss(struct tf_reader *r, __u64 id)
{
	struct krp_key key;

	tf_key(&key, id);
	assert_int_equal(tf_lookup(r, &key, NULL), KRP_STEP_MISS);
}

static int put(__u64 id, __u32 version)
{
	struct krp_value value;
	struct krp_key key;

	tf_key(&key, id);
	tf_value(&value, id, version);
	return ms_table_put(server.table, &key, &value, id + 1);
}

static int del(__u64 id)
{
	struct krp_key key;

	tf_key(&key, id);
	return ms_table_del(server.table, &key);
}

static void test_bounds_are_checked(void **state)
{
	struct ms_table_config bad[6];
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		bad[i] = small;
	bad[0].incarnation = 0;
	bad[1].log2_segment_pages = 0;
	bad[2].log2_segment_pages = KRP_LOG2_SEGMENT_PAGES_MAX + 1;
	bad[3].segments_max = 0;
	bad[4].segments_max = KRP_SEGMENTS_MAX + 1;
	bad[5].depth_max = KRP_DEPTH_MAX + 1;
	for (i = 0; i < 6; i++) {
		server.table = (void *)1;
		assert_int_equal(tf_server_init(&server, &bad[i]), -EINVAL);
		assert_null(server.table); /* memset by the fixture, untouched by the table */
	}
}

static void test_empty_table_proves_a_miss_in_one_read(void **state)
{
	struct tf_reader r = { 0 };
	unsigned long reads;

	(void)state;
	assert_int_equal(tf_server_init(&server, &small), 0);
	assert_int_equal(tf_reader_attach(&r, &server), 0);
	reads = r.reads;
	must_miss(&r, 1);
	assert_int_equal(r.reads - reads, 1);
	tf_reader_detach(&r);
	tf_server_exit(&server);
}

static void test_put_replace_get_del(void **state)
{
	struct tf_reader r = { 0 };
	struct krp_value value;
	struct krp_key key;
	__u64 cookie = 0;

	(void)state;
	assert_int_equal(tf_server_init(&server, &small), 0);
	assert_int_equal(tf_reader_attach(&r, &server), 0);
	assert_int_equal(put(5, 1), 0);
	must_hit(&r, 5, 1);
	assert_int_equal(put(5, 2), 1);
	must_hit(&r, 5, 2);
	tf_key(&key, 5);
	assert_int_equal(ms_table_get(server.table, &key, &value, &cookie), 0);
	assert_int_equal(cookie, 6);
	assert_int_equal(ms_table_set_cookie(server.table, &key, 77), 0);
	assert_int_equal(ms_table_get(server.table, &key, NULL, &cookie), 0);
	assert_int_equal(cookie, 77);
	assert_int_equal(del(5), 0);
	must_miss(&r, 5);
	assert_int_equal(del(5), -ENOENT);
	assert_int_equal(ms_table_get(server.table, &key, &value, &cookie), -ENOENT);
	assert_int_equal(ms_table_set_cookie(server.table, &key, 1), -ENOENT);
	assert_int_equal(cookie, 77);
	tf_reader_detach(&r);
	tf_server_exit(&server);
}

#define MODEL_IDS 4000

/* Random operations beside the simplest possible model, read back by an old and a new reader. */
static void test_random_operations_match_a_model(void **state)
{
	static __u32 model[MODEL_IDS]; /* version, 0 = absent */
	struct tf_reader old = { 0 }, fresh = { 0 };
	struct ms_table_stats stats;
	unsigned int i, step, records = 0;
	__u64 rnd = 7, id;

	(void)state;
	memset(model, 0, sizeof(model));
	assert_int_equal(tf_server_init(&server, &small), 0);
	assert_int_equal(tf_reader_attach(&old, &server), 0);
	for (step = 1; step <= 60000; step++) {
		/* the share of deletions swings, so that the table grows and shrinks */
		unsigned int dels = step / 10000 % 2 ? 75 : 25;

		rnd = krp_mix64(rnd + step);
		id = rnd % MODEL_IDS;
		if (rnd >> 32 & 1 && (rnd >> 40) % 100 < dels) {
			assert_int_equal(del(id), model[id] ? 0 : -ENOENT);
			records -= !!model[id];
			model[id] = 0;
		} else if ((rnd >> 40) % 100 >= dels) {
			assert_int_equal(put(id, step), !!model[id]);
			records += !model[id];
			model[id] = step;
		}
		id = (rnd >> 20) % MODEL_IDS;
		if (model[id])
			must_hit(&old, id, model[id]);
		else
			must_miss(&old, id);
	}
	assert_int_equal(tf_reader_attach(&fresh, &server), 0);
	for (i = 0; i < MODEL_IDS; i++) {
		if (model[i])
			must_hit(&fresh, i, model[i]);
		else
			must_miss(&fresh, i);
	}
	ms_table_stats(server.table, &stats);
	assert_int_equal(stats.records, records);
	assert_true(stats.splits > 50);
	assert_true(stats.merges > 50);
	assert_true(stats.doublings > 3);
	assert_int_equal(old.bad_reads + fresh.bad_reads, 0);
	tf_reader_detach(&old);
	tf_reader_detach(&fresh);
	tf_server_exit(&server);
}

/* All that a reader can see, and the counts, as one number. */
static __u64 table_fingerprint(void)
{
	struct ms_table_geometry geo;
	struct ms_table_stats stats;
	size_t bytes;
	__u64 sum;
	unsigned int i;

	ms_table_geometry(server.table, &geo);
	ms_table_stats(server.table, &stats);
	sum = krp_xxh64(geo.dir, geo.dir_bytes, stats.records);
	sum = krp_xxh64(&server.root, sizeof(server.root), sum);
	for (i = 0; i < geo.segments_nr; i++) {
		void *seg = ms_table_segment(server.table, i, &bytes);

		sum = krp_xxh64(seg, bytes, sum);
	}
	return sum;
}

static void test_full_table_refuses_and_stays_as_it_was(void **state)
{
	struct ms_table_config config = small;
	struct tf_reader r = { 0 };
	__u64 id, before;
	int err = 0;

	(void)state;
	config.segments_max = 1;
	assert_int_equal(tf_server_init(&server, &config), 0);
	for (id = 0; id < 100000; id++) {
		before = table_fingerprint();
		err = put(id, 1);
		if (err < 0)
			break;
	}
	assert_int_equal(err, -ENOSPC);
	assert_true(id > 300); /* 32 pages: about 15 records each */
	assert_true(table_fingerprint() == before);
	assert_int_equal(tf_reader_attach(&r, &server), 0);
	must_miss(&r, id);
	while (id--)
		must_hit(&r, id, 1);
	tf_reader_detach(&r);
	tf_server_exit(&server);
}

/* No room aside: what no page of that depth has room for is refused. */
static void test_depth_limit_refuses_and_stays_as_it_was(void **state)
{
	struct ms_table_config config = small;
	__u64 id, before = 0;
	int err = 0;

	(void)state;
	config.depth_max = 2;
	assert_int_equal(tf_server_init(&server, &config), 0);
	for (id = 0; id < 1000 && err >= 0; id++) {
		before = table_fingerprint();
		err = put(id, 1);
	}
	assert_int_equal(err, -ENOSPC);
	assert_true(table_fingerprint() == before);
	tf_server_exit(&server);
}

static void test_owner_that_cannot_register_loses_nothing(void **state)
{
	struct tf_reader r = { 0 };
	unsigned int failures = 0;
	__u64 id, before;
	int err;

	(void)state;
	assert_int_equal(tf_server_init(&server, &small), 0);
	assert_int_equal(tf_reader_attach(&r, &server), 0);
	for (id = 0; id < 5000; id++) {
		before = table_fingerprint();
		server.fail = -ENOBUFS;
		err = put(id, 1);
		server.fail = 0;
		if (err == 0)
			continue;
		assert_int_equal(err, -ENOBUFS);
		assert_true(table_fingerprint() == before);
		must_miss(&r, id);
		assert_int_equal(put(id, 1), 0);
		must_hit(&r, id, 1);
		failures++;
	}
	assert_true(failures >= 10); /* segments and directories of 5000 records */
	for (id = 0; id < 5000; id++)
		must_hit(&r, id, 1);
	tf_reader_detach(&r);
	tf_server_exit(&server);
}

static bool count_visit(void *arg, const struct krp_key *key, const struct krp_value *value,
			__u64 cookie)
{
	__u8 *seen = arg;
	struct krp_key want;

	tf_key(&want, cookie - 1);
	assert_memory_equal(key, &want, sizeof(want));
	assert_true(tf_value_version(value, cookie - 1) >= 0);
	seen[cookie - 1]++;
	return false; /* page by page */
}

static void test_each_visits_every_record_once(void **state)
{
	static __u8 seen[3000];
	unsigned int page = 0, id, calls = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	assert_int_equal(tf_server_init(&server, &small), 0);
	for (id = 0; id < sizeof(seen); id++)
		assert_int_equal(put(id, id), 0);
	do {
		page = ms_table_each(server.table, page, count_visit, seen);
		calls++;
	} while (page);
	assert_true(calls > 100);
	for (id = 0; id < sizeof(seen); id++)
		assert_int_equal(seen[id], 1);
	tf_server_exit(&server);
}

static void test_emptied_table_gives_its_pages_back(void **state)
{
	struct ms_table_stats stats;
	unsigned int id;

	(void)state;
	assert_int_equal(tf_server_init(&server, &small), 0);
	for (id = 0; id < 3000; id++)
		assert_int_equal(put(id, 1), 0);
	for (id = 0; id < 3000; id++)
		assert_int_equal(del(id), 0);
	ms_table_stats(server.table, &stats);
	assert_int_equal(stats.records, 0);
	assert_true(stats.pages_used <= 4);
	tf_server_exit(&server);
}

#define MILLION 1000000

static double occupancy_of(const struct ms_table_stats *stats)
{
	return (double)stats->records / (double)(stats->pages_used * KRP_PAGE_RECORDS);
}

/* The figures of docs/memory.md. */
static void print_memory(void)
{
	struct ms_table_stats stats;

	ms_table_stats(server.table, &stats);
	print_message("%llu records: occupancy %.3f, %.1f MiB that readers reach, "
		      "%.1f MiB beside it, %.1f bytes a record\n",
		      (unsigned long long)stats.records, occupancy_of(&stats),
		      (double)stats.shared_bytes / 1048576, (double)stats.private_bytes / 1048576,
		      (double)(stats.shared_bytes + stats.private_bytes) / (double)stats.records);
}

/* A record that is kept aside: an entry, and its part of the heads of the chains. */
static void test_memory_of_a_record_aside(void **state)
{
	const struct ms_asides a = { .room = 4096 };

	(void)state;
	print_message("%zu bytes a record that is kept aside\n", ms_asides_bytes(&a) / a.room);
	assert_int_equal(ms_asides_bytes(&a), 4096 * 124);
}

static void test_a_million_records(void **state)
{
	struct ms_table_config config = { .incarnation = 9,
					  .salt = 4242,
					  .log2_segment_pages = 11,
					  .segments_max = 256,
					  .depth_max = 22 };
	double low = 1.0;
	struct tf_reader r = { 0 };
	struct ms_table_stats stats;
	unsigned int id;

	(void)state;
	assert_int_equal(tf_server_init(&server, &config), 0);
	for (id = 0; id < MILLION; id++) {
		assert_int_equal(put(id, 1), 0);
		if (id == 9999)
			print_memory();
		if (id >= 100000 && id % 5000 == 0) {
			ms_table_stats(server.table, &stats);
			low = occupancy_of(&stats) < low ? occupancy_of(&stats) : low;
		}
	}
	print_memory();
	print_message("lowest occupancy from 100 k records on: %.3f\n", low);
	assert_true(low >= 0.6);
	assert_int_equal(tf_reader_attach(&r, &server), 0);
	for (id = 0; id < MILLION; id += 7)
		must_hit(&r, id, 1);
	for (id = 0; id < 10000; id++)
		must_miss(&r, MILLION + id);
	assert_int_equal(r.bad_reads, 0);
	tf_reader_detach(&r);
	tf_server_exit(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds_are_checked),
		cmocka_unit_test(test_empty_table_proves_a_miss_in_one_read),
		cmocka_unit_test(test_put_replace_get_del),
		cmocka_unit_test(test_random_operations_match_a_model),
		cmocka_unit_test(test_full_table_refuses_and_stays_as_it_was),
		cmocka_unit_test(test_depth_limit_refuses_and_stays_as_it_was),
		cmocka_unit_test(test_owner_that_cannot_register_loses_nothing),
		cmocka_unit_test(test_each_visits_every_record_once),
		cmocka_unit_test(test_emptied_table_gives_its_pages_back),
		cmocka_unit_test(test_memory_of_a_record_aside),
		cmocka_unit_test(test_a_million_records),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
