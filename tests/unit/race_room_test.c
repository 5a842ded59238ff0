// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory of krcore-race's node: what a full one says and still does, how memory is used again, and
 * what a client that ends gives back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/race_world.h"

#define MIB (1ULL << 20)

/* A full memory node says so to each client, keeps what it has, and can be emptied by any. */
static void test_full(void **state)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 4, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d;
	static char value[30000];
	const void *got;
	char key[24];
	unsigned int i, j;
	int err = 0;

	(void)state;
	for (i = 0; !err; i++) {
		snprintf(key, sizeof(key), "%u", i);
		err = rw_put(c, KR_INSERT, key, value, sizeof(value));
	}
	assert_int_equal(err, -ENOSPC);
	assert_true(i > 4);
	assert_int_equal(rw_entries(c), i - 1);
	for (j = 0; j < i - 1; j++) {
		snprintf(key, sizeof(key), "%u", j);
		assert_int_equal(rw_get(c, key, &got), sizeof(value));
	}
	/* another client has nothing to take either, and says the same */
	d = rw_open(w, 1);
	assert_int_equal(rw_put(d, KR_INSERT, "more", value, sizeof(value)), -ENOSPC);
	assert_int_equal(rw_put(d, KR_DELETE, "1", NULL, 0), 0);
	assert_int_equal(rw_get(c, "1", &got), -ENOENT);
	assert_int_equal(rw_put(d, KR_DELETE, "1", NULL, 0), -ENOENT);
	rw_close(w, 1); /* gives back what it has deleted */
	assert_int_equal(rw_put(c, KR_INSERT, "1", value, sizeof(value)), 0);
	assert_int_equal(rw_put(c, KR_DELETE, "0", NULL, 0), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "0", value, sizeof(value)), 0);
	assert_int_equal(rw_entries(c), i - 1);
	rw_free(w);
}

/* A deletion on a full node that was interrupted before or after its CAS is not said to be done. */
static void test_full_and_unknown(void **state)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 4, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d;
	static char value[30000];
	const void *got;
	char key[24];
	unsigned int i, done;
	int err = 0;

	(void)state;
	for (i = 0; !err; i++) {
		snprintf(key, sizeof(key), "%u", i);
		err = rw_put(c, KR_INSERT, key, value, sizeof(value));
	}
	assert_int_equal(err, -ENOSPC);
	for (done = 0; done < 2; done++) {
		snprintf(key, sizeof(key), "%u", done);
		/* as often as it takes to meet the CAS of the slot; READs are never unknown */
		for (i = 1, err = 0; !err && i < 40; i++) {
			d = rw_open(w, 1);
			w->clients[1].unknown_at = w->clients[1].requests + i;
			w->clients[1].unknown_done = done;
			err = rw_put(d, KR_DELETE, key, NULL, 0);
			w->clients[1].unknown_at = RW_NEVER;
			rw_close(w, 1); /* gives back what it has deleted */
			if (!err)
				assert_int_equal(rw_put(c, KR_INSERT, key, value, sizeof(value)),
						 0);
		}
		assert_int_equal(err,
				 done ? -EREMCHG : 0); /* not done is found out, and repeated */
		if (done)
			assert_int_equal(rw_get(c, key, &got), -ENOENT);
	}
	rw_free(w);
}

/* Memory is used again: by its owner at once, and after others have replaced what was there. */
static void test_memory_comes_back(void **state)
{
	struct rw_world *w = rw_new(8 * KR_CHUNK_BYTES, 4, 4, 5);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	static char value[15000];
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct kr_client *who = i & 1 ? c : d;

		assert_int_equal(rw_put(who, KR_PUT, "one", value, i % 2 ? 15000 : 900), 0);
		assert_int_equal(rw_put(who, i % 3 ? KR_PUT : KR_UPDATE, "one", value, 9000), 0);
		if (i % 5 == 0)
			assert_int_equal(rw_put(who, KR_DELETE, "one", NULL, 0), 0);
	}
	assert_true(c->stats.collected + d->stats.collected > 0);
	rw_free(w);
}

/* A table that cannot be split any more says that it is full. */
static void test_depth_max(void **state)
{
	struct rw_world *w = rw_new(4 * MIB, 1, 1, 6);
	struct kr_client *c = rw_open(w, 0);
	char key[24];
	unsigned int i;
	int err = 0;

	(void)state;
	for (i = 0; !err && i < 100; i++) {
		snprintf(key, sizeof(key), "%u", i);
		err = rw_put(c, KR_INSERT, key, "x", 1);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(rw_entries(c), i - 1);
	assert_in_range(i, 22, 43);
	rw_free(w);
}

/* A client that ends gives back what it has: many can come and go. */
static void test_end_gives_back(void **state)
{
	struct rw_world *w = rw_new(5 * KR_CHUNK_BYTES, 1, 7, 8);
	struct kr_report report = { 0 };
	const void *value = NULL;
	char key[24];
	unsigned int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		rw_open(w, 0);
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_put(w->clients[0].c, KR_INSERT, key, key, strlen(key)), 0);
		assert_int_equal(rw_put(w->clients[0].c, KR_UPDATE, key, "new", 3), 0);
		if (i % 3 == 0)
			assert_int_equal(rw_put(w->clients[0].c, KR_DELETE, key, NULL, 0), 0);
		rw_close(w, 0);
	}
	rw_open(w, 0);
	assert_int_equal(kr_check(w->clients[0].c, false, &report), 0);
	assert_int_equal(report.entries, 200);
	assert_int_equal(report.damaged, 0);
	assert_int_equal(report.clients, 0);
	for (i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_get(w->clients[0].c, key, &value), i % 3 ? 3 : -ENOENT);
	}
	rw_free(w);
}

/* A client that writes seldom keeps its memory and its id, and gives them back at its end. */
static void test_writes_seldom(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 10);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	const struct kr_header *h = (const struct kr_header *)w->memory;
	struct kr_report report = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		assert_int_equal(rw_put(c, KR_PUT, "one", &i, sizeof(i)), 0);
		w->steps += c->header.lease_ms;
	}
	assert_int_equal(kr_check(d, false, &report), 0);
	assert_int_equal(report.chunks_used, 1);
	assert_int_equal(report.clients, 1);
	rw_close(w, 0);
	memset(&report, 0, sizeof(report));
	assert_int_equal(kr_check(d, false, &report), 0);
	assert_int_equal(report.clients, 0);
	assert_int_equal(h->left, 1);
	rw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_full_and_unknown),
		cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_depth_max),
		cmocka_unit_test(test_end_gives_back),
		cmocka_unit_test(test_writes_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
