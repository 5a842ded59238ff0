// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-race beside what happens to a table: clients that stand still, damage that stays, and
 * strangers who change words all the time.
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

#define LEASE_MS 2000
#define LATE_MS 9000
#define MANY 700
#define TURNS 5000 /* more than two blocks have tags */
#define REQUESTS_MOST 200000 /* of one operation that a stranger keeps from ending */

static void put_many(struct kr_client *c, const char *name, unsigned int nr, int want)
{
	unsigned int i;
	char key[24];

	for (i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "%s%u", name, i);
		assert_int_equal(rw_put(c, KR_PUT, key, key, strlen(key)), want);
	}
}

static struct kr_report checked(struct kr_client *c, bool reclaim)
{
	struct kr_report report = { 0 };

	assert_int_equal(kr_check(c, reclaim, &report), 0);
	return report;
}

/*
 * A key that is put again and again never has the word again that its slot had, so that a CAS which
 * stood still meanwhile does not find it.
 */
static void test_a_word_does_not_come_back(void **state)
{
	struct rw_world *w = rw_new(4 * KR_CHUNK_BYTES, 4, 4, 1);
	struct kr_client *c = rw_open(w, 0);
	struct kr_place p;
	unsigned int i;
	uint64_t first;

	(void)state;
	put_many(c, "hot", 1, 0);
	assert_int_equal(kr_find(c, "hot0", 4, &p), 0);
	first = p.slot;
	for (i = 0; i < TURNS; i++) {
		put_many(c, "hot", 1, 0);
		assert_int_equal(kr_find(c, "hot0", 4, &p), 0);
		assert_true(p.slot && p.slot != first);
	}
	assert_int_equal(checked(c, false).chunks_used, 1);
	rw_free(w);
}

/* What a client has posted may still be under way: its memory is not freed before that is over. */
static void test_reclaim_waits_for_what_is_late(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 2);
	struct kr_client *c, *d;
	struct kr_report report;
	uint64_t start;

	(void)state;
	rw_lease(w, LEASE_MS);
	c = rw_open(w, 0);
	d = rw_open(w, 1);
	put_many(c, "a", 3, 0);
	w->clients[0].dies_at = 1;
	w->clients[1].t.late_ms = LATE_MS;
	start = w->steps;
	report = checked(d, true);
	assert_int_equal(report.dead, 1);
	assert_true(w->steps - start > LEASE_MS + LATE_MS);
	put_many(d, "b", 3, 0);
	assert_int_equal(checked(d, false).entries, 6);
	rw_free(w);
}

static void leaves(struct rw_client *me)
{
	kr_leave(me->c);
}

/* A batch of KR_BATCH_MAX takes two thirds of a lease. */
static void takes_long(struct rw_client *me)
{
	me->world->steps += LEASE_MS * 2 / 3 / KR_BATCH_MAX;
}

static void reclaims_and_fills(struct rw_client *me)
{
	while (me->world->clients[0].ready && !checked(me->c, true).dead)
		;
	put_many(me->c, "mine", MANY, 0);
}

/* Both go on: the first by a batch, the other for as long as that lasts. */
static void go_on(struct rw_world *w)
{
	unsigned int i;
	uint64_t from;

	while (w->clients[0].ready || w->clients[1].ready) {
		rw_step(w, 0, KR_BATCH_MAX + 1);
		from = w->steps;
		for (i = 0; i < 400 && w->steps - from < LEASE_MS * 2 / 3; i++)
			rw_step(w, 1, 1);
	}
}

/* A client whose end takes many leases lives until then: what it frees is its own. */
static void test_a_slow_end(void **state)
{
	struct rw_world *w = rw_new(8 * KR_CHUNK_BYTES, 64, 4, 3);
	struct kr_client *c, *d;
	unsigned int i;
	uint64_t start;
	char key[24];

	(void)state;
	rw_lease(w, LEASE_MS);
	c = rw_open(w, 0);
	d = rw_open(w, 1);
	put_many(c, "k", MANY, 0);
	for (i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		assert_int_equal(rw_put(c, KR_DELETE, key, NULL, 0), 0);
	}
	w->clients[0].meddle = takes_long;
	start = w->steps;
	rw_spawn(w, 0, leaves, NULL);
	rw_spawn(w, 1, reclaims_and_fills, NULL);
	go_on(w);
	assert_true(w->steps - start > 4 * LEASE_MS);
	assert_int_equal(checked(d, false).damaged, 0);
	assert_int_equal(rw_entries(d), MANY);
	rw_free(w);
}

/*
 * A damaged entry is found by whoever looks it up, and counted, but does not keep others in its
 * part of the table from being changed when that is full.
 */
static void damage_and_split(bool slot)
{
	struct rw_world *w = rw_new(8 * KR_CHUNK_BYTES, 1, 6, 4);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	struct kr_report report;
	const void *value;
	struct kr_place p;

	put_many(c, "k", 1, 0);
	assert_int_equal(kr_find(c, "k0", 2, &p), 0);
	if (slot)
		*(uint64_t *)(w->memory + p.slot_at) |= 31ULL << 56; /* no such class */
	else
		w->memory[kr_slot_at(p.slot) + offsetof(struct kr_block, hash) + 6] ^= 0xff;
	/* where a bucket has a slot that cannot be, nothing in it can be changed */
	if (!slot) {
		put_many(c, "n", MANY / 10, 0);
		put_many(d, "n", MANY / 10, 0);
		assert_int_equal(rw_put(d, KR_DELETE, "n0", NULL, 0), 0);
		assert_int_equal(rw_get(d, "n1", &value), 2);
		assert_int_equal(rw_get(d, "k0", &value), -EBADMSG);
		report = checked(d, false);
		assert_int_equal(report.entries, MANY / 10 - 1);
		assert_true(report.damaged && report.subtables > 4);
	} else {
		p.frozen = false;
		assert_int_equal(kr_split(c, &p), 0);
		assert_int_equal(checked(d, false).damaged, 2); /* in both halves */
	}
	rw_free(w);
}

static void test_a_split_beside_damage(void **state)
{
	(void)state;
	damage_and_split(false);
	damage_and_split(true);
}

static void meddle_with_the_trie(struct rw_client *me)
{
	const struct kr_header *h = (const struct kr_header *)me->world->memory;
	uint64_t *node = (uint64_t *)(me->world->memory + h->dir) + 1;

	*node = (*node >> 2 | 1 << 20) + 1;
	*node = *node << 2 | KR_DIR_CLAIM;
}

static void meddle_with_the_pairs(struct rw_client *me)
{
	struct kr_header *h = (struct kr_header *)me->world->memory;
	uint64_t *owners = (uint64_t *)(me->world->memory + h->owners);
	uint32_t i;

	h->left = 5;
	for (i = 0; i < h->nr_chunks; i++)
		if (owners[i] != ((uint64_t)me->c->id << 8 | 1)) /* it has its blocks */
			owners[i] = KR_OWNER_NOBODY | (KR_CLASS_SUBTABLES + 1);
}

static void meddle_with_the_counter(struct rw_client *me)
{
	((struct kr_header *)me->world->memory)->next_chunk = 0;
}

static void meddle_with_the_owners(struct rw_client *me)
{
	struct kr_header *h = (struct kr_header *)me->world->memory;
	uint64_t *owners = (uint64_t *)(me->world->memory + h->owners);
	uint32_t i;

	h->left = 5;
	for (i = 0; i < h->nr_chunks; i++)
		owners[i] = KR_OWNER_NOBODY | 1;
}

/* A stranger who changes a word before each request: an operation fails, and does not hang. */
static void test_words_that_do_not_stand_still(void **state)
{
	static rw_meddle_fn *const meddles[] = { meddle_with_the_trie, meddle_with_the_counter,
						 meddle_with_the_owners, meddle_with_the_pairs };
	unsigned int i, j;
	int err = 0;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct rw_world *w = rw_new(4 << 20, 1, 8, 5);
		const struct kr_header *h = (const struct kr_header *)w->memory;
		uint64_t *owners = (uint64_t *)(w->memory + h->owners);
		struct kr_client *c = rw_open(w, 0);
		char key[24];

		if (i == 3) /* it has blocks of its own */
			put_many(c, "own", 1, 0);
		for (j = i == 3; i && j < h->nr_chunks; j++) {
			owners[j] = 7 << 8 | 1;
			memset(w->memory + h->chunks + (uint64_t)j * KR_CHUNK_BYTES, 0x40,
			       KR_CHUNK_BYTES); /* blocks that are new, and in use */
		}
		w->clients[0].meddle = meddles[i];
		for (j = 0; j < MANY && !err; j++) {
			uint64_t before = w->clients[0].requests;

			snprintf(key, sizeof(key), "key%u", j);
			err = rw_put(c, KR_PUT, key, "v", 1);
			assert_true(w->clients[0].requests - before < REQUESTS_MOST);
		}
		assert_true(err == -EBUSY || err == -ENOSPC || err == -EBADMSG);
		err = 0;
		w->clients[0].meddle = NULL;
		rw_free(w);
	}
}

/* What is large is lost and what is small passes, or a card refuses atomics: an end, and soon. */
static void test_changes_that_never_get_through(void **state)
{
	static const enum kr_mode modes[] = { KR_PUT, KR_INSERT, KR_UPDATE, KR_DELETE };
	struct rw_world *w = rw_new(4 << 20, 4, 8, 7);
	struct kr_client *c = rw_open(w, 0);
	const void *value;
	unsigned int i;

	(void)state;
	put_many(c, "k", 1, 0);
	w->clients[0].refuses = true;
	for (i = 0; i < 4; i++) {
		uint64_t before = w->clients[0].requests;

		assert_int_equal(rw_put(c, modes[i], i == 1 ? "new" : "k0", "v", 1), -ETIMEDOUT);
		assert_true(w->clients[0].requests - before < 300);
		assert_int_equal(rw_get(c, "k0", &value), 2);
	}
	w->clients[0].refuses = false;
	assert_int_equal(rw_put(c, KR_UPDATE, "k0", "later", 5), 0);
	assert_int_equal(rw_entries(c), 1);
	rw_free(w);
}

/* Each beat finds that another has taken us for dead. */
static void takes_for_dead(struct rw_client *me)
{
	const struct kr_header *h = (const struct kr_header *)me->world->memory;

	me->world->steps += KR_BEAT_MS;
	memset(me->world->memory + h->clients, 0, h->nr_clients * 8ULL);
}

/* Whoever is taken for dead whenever it has found memory does not go on for ever. */
static void test_always_taken_for_dead(void **state)
{
	struct rw_world *w = rw_new(40 * KR_CHUNK_BYTES, 4, 8, 8);
	struct kr_client *c = rw_open(w, 0);

	(void)state;
	w->clients[0].meddle = takes_for_dead;
	assert_int_equal(rw_put(c, KR_PUT, "k", "v", 1), -EBUSY);
	w->clients[0].meddle = NULL;
	assert_int_equal(rw_put(c, KR_PUT, "k", "v", 1), 0);
	assert_in_range(checked(c, false).chunks_used, 2, 20);
	rw_free(w);
}

/* A lease that no table has is not waited for. */
static void test_the_lease_of_a_header(void **state)
{
	static const uint32_t bad[] = { 0, KR_LEASE_MAX_MS + 1, UINT32_MAX };
	struct rw_world *w = rw_new(4 << 20, 1, 8, 6);
	struct kr_client *c;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		rw_lease(w, bad[i]);
		assert_int_equal(kr_client_new(rw_transport(w, 0), &c), -EBADMSG);
		assert_int_equal(kr_format(w->memory, w->bytes, 1, 8, 1, bad[i]), -EINVAL);
	}
	rw_lease(w, KR_LEASE_MAX_MS);
	assert_int_equal(kr_client_new(rw_transport(w, 0), &c), 0);
	kr_client_free(c);
	rw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_word_does_not_come_back),
		cmocka_unit_test(test_reclaim_waits_for_what_is_late),
		cmocka_unit_test(test_a_slow_end),
		cmocka_unit_test(test_a_split_beside_damage),
		cmocka_unit_test(test_words_that_do_not_stand_still),
		cmocka_unit_test(test_changes_that_never_get_through),
		cmocka_unit_test(test_always_taken_for_dead),
		cmocka_unit_test(test_the_lease_of_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
