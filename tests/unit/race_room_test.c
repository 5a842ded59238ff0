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
#define MANY_CHUNKS 200
#define KR_FULL_TRIES 256 /* as in alloc.c */

static char filler[30000]; /* for values */

/*
 * Insert keys "0", "1", ... with values of so many bytes, at most @most, until one is refused for
 * want of room. Return: how many there are.
 */
static unsigned int fill(struct kr_client *c, size_t bytes, unsigned int most)
{
	unsigned int i;
	char key[24];
	int err = 0;

	for (i = 0; !err && i <= most; i++) {
		snprintf(key, sizeof(key), "%u", i);
		err = rw_put(c, KR_INSERT, key, filler, bytes);
	}
	assert_int_equal(err, -ENOSPC);
	return i - 1;
}

/* A full memory node says so to each client, keeps what it has, and can be emptied by any. */
static void test_full(void **state)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 4, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d;
	unsigned int nr = fill(c, sizeof(filler), 100), j;
	const void *got;
	char key[24];

	(void)state;
	assert_true(nr > 3);
	assert_int_equal(rw_entries(c), nr);
	for (j = 0; j < nr; j++) {
		snprintf(key, sizeof(key), "%u", j);
		assert_int_equal(rw_get(c, key, &got), sizeof(filler));
	}
	/* another client has nothing to take either, and says the same */
	d = rw_open(w, 1);
	assert_int_equal(rw_put(d, KR_INSERT, "more", filler, sizeof(filler)), -ENOSPC);
	assert_int_equal(rw_put(d, KR_DELETE, "1", NULL, 0), 0);
	assert_int_equal(rw_get(c, "1", &got), -ENOENT);
	assert_int_equal(rw_put(d, KR_DELETE, "1", NULL, 0), -ENOENT);
	rw_close(w, 1); /* gives back what it has deleted */
	assert_int_equal(rw_put(c, KR_INSERT, "1", filler, sizeof(filler)), 0);
	assert_int_equal(rw_put(c, KR_DELETE, "0", NULL, 0), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "0", filler, sizeof(filler)), 0);
	assert_int_equal(rw_entries(c), nr);
	/* what one deletes, and does nothing more, the owner of the memory can use */
	d = rw_open(w, 1);
	for (j = 0; j < nr; j++) {
		snprintf(key, sizeof(key), "%u", j);
		assert_int_equal(rw_put(d, KR_DELETE, key, NULL, 0), 0);
	}
	assert_int_equal(rw_entries(d), 0);
	for (j = 0; j < nr; j++) {
		snprintf(key, sizeof(key), "%u", j);
		assert_int_equal(rw_put(c, KR_INSERT, key, filler, sizeof(filler)), 0);
	}
	rw_free(w);
}

static void update_one(struct rw_client *me)
{
	*(int *)me->arg = rw_put(me->c, KR_UPDATE, "a", "new", 3);
}

/*
 * An update that does not know what became of its request number @at, while another client deletes
 * the entry on a full node. Return: whether there was such a request.
 */
static bool removed_meanwhile(unsigned int at, unsigned int *ret_done)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 4, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	struct rw_client *me = &w->clients[0];
	const void *got = NULL;
	bool mine, met;
	unsigned int i;
	int err = 0;

	assert_int_equal(rw_put(c, KR_INSERT, "a", "old", 3), 0);
	fill(c, sizeof(filler), 100);
	me->unknown_at = me->requests + at;
	me->unknown_done = true;
	rw_spawn(w, 0, update_one, &err);
	while (me->ready && me->requests < me->unknown_at)
		rw_step(w, 0, 1);
	met = me->ready;
	assert_int_equal(rw_get(d, "a", &got), 3);
	mine = !memcmp(got, "new", 3);
	assert_int_equal(rw_put(d, KR_DELETE, "a", NULL, 0), 0);
	assert_int_equal(d->stats.removed, 1);
	for (i = 0; i < 1000 && me->ready; i++)
		rw_step(w, 0, 1);
	assert_int_equal(err, mine ? 0 : -ENOENT);
	*ret_done += mine && met;
	rw_free(w);
	return met;
}

static void test_removed_before_it_is_known(void **state)
{
	unsigned int at = 1, done = 0;

	(void)state;
	while (at < 100 && removed_meanwhile(at, &done))
		at++;
	assert_in_range(at, 5, 99);
	assert_true(done);
}

/* A deletion on a full node that was interrupted before or after its CAS is not said to be done. */
static void test_full_and_unknown(void **state)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 4, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d;
	unsigned int i, done;
	const void *got;
	char key[24];
	int err = 0;

	(void)state;
	fill(c, sizeof(filler), 100);
	for (done = 0; done < 2; done++) {
		snprintf(key, sizeof(key), "%u", done);
		/* as often as it takes to meet the CAS of the slot; READs are never unknown */
		for (i = 1, err = 0; !err && i < 40; i++) {
			d = rw_open(w, 1);
			d->random = 0; /* the same requests each time */
			w->clients[1].unknown_at = w->clients[1].requests + i;
			w->clients[1].unknown_done = done;
			err = rw_put(d, KR_DELETE, key, NULL, 0);
			w->clients[1].unknown_at = RW_NEVER;
			rw_close(w, 1); /* gives back what it has deleted */
			/* what gives the block back comes last, and may be lost as well */
			if (!err && rw_put(c, KR_INSERT, key, filler, sizeof(filler)) == -ENOSPC)
				break;
		}
		assert_int_equal(err,
				 done ? -EREMCHG : 0); /* not done is found out, and repeated */
		if (done)
			assert_int_equal(rw_get(c, key, &got), -ENOENT);
	}
	rw_free(w);
}

/**
 * struct change - What a coroutine does, and what came of it.
 * @mode: how.
 * @key: key.
 * @err: result.
 */
struct change {
	enum kr_mode mode;
	char key[24];
	int err;
};

static void change_one(struct rw_client *me)
{
	struct change *change = me->arg;

	change->err = rw_put(me->c, change->mode, change->key, "x", 1);
}

/* Whether a slot beside an entry is frozen. */
static bool is_frozen(struct kr_client *c, const char *key)
{
	struct kr_place p;

	return !kr_find(c, key, (uint32_t)strlen(key), &p) && p.slot_at && p.frozen;
}

/* A subtable is being split by a client that has the memory for it: one that has none waits. */
static void test_full_and_split(void **state)
{
	struct rw_world *w = rw_new(3 * KR_CHUNK_BYTES, 1, 4, 4);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	struct change insert = { .mode = KR_INSERT }, delete = { .mode = KR_DELETE };
	struct rw_client *me = &w->clients[0];
	unsigned int i;

	(void)state;
	snprintf(delete.key, sizeof(delete.key), "0");
	/* two chunks: one of blocks, one of subtables; it is another split than the first one */
	for (i = 0; i < 200 && !me->ready; i++) {
		snprintf(insert.key, sizeof(insert.key), "%u", i);
		rw_spawn(w, 0, change_one, &insert);
		while (me->ready && !(c->stats.splits && is_frozen(d, "0")))
			rw_step(w, 0, 1);
	}
	assert_true(me->ready);
	rw_spawn(w, 1, change_one, &delete);
	rw_step(w, 1, 50); /* what it can do by itself */
	assert_true(rw_run(w));
	assert_int_equal(insert.err, 0);
	assert_int_equal(delete.err, 0);
	assert_false(is_frozen(d, "0"));
	assert_int_equal(rw_entries(d), i - 1);
	rw_free(w);
}

/* Memory is used again: by its owner at once, and after others have replaced what was there. */
static void test_memory_comes_back(void **state)
{
	struct rw_world *w = rw_new(8 * KR_CHUNK_BYTES, 4, 4, 5);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct kr_client *who = i & 1 ? c : d;

		assert_int_equal(rw_put(who, KR_PUT, "one", filler, i % 2 ? 15000 : 900), 0);
		assert_int_equal(rw_put(who, i % 3 ? KR_PUT : KR_UPDATE, "one", filler, 9000), 0);
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
	unsigned int nr = fill(c, 1, 99);

	(void)state;
	assert_int_equal(rw_entries(c), nr);
	assert_in_range(nr + 1, 22, 43);
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

/* The heir of one who has filled the node and ended is told that it is full. */
static void test_heir_of_a_full_node(void **state)
{
	struct rw_world *w = rw_new(4 * KR_CHUNK_BYTES, 4, 0, 12);
	unsigned int nr = fill(rw_open(w, 0), sizeof(filler), 100);
	struct kr_client *d;

	(void)state;
	rw_close(w, 0);
	d = rw_open(w, 1);
	assert_int_equal(rw_put(d, KR_INSERT, "more", filler, sizeof(filler)), -ENOSPC);
	assert_int_equal(rw_put(d, KR_DELETE, "0", NULL, 0), 0);
	assert_int_equal(rw_entries(d), nr - 1);
	rw_free(w);
}

static uint64_t requests_of_put(struct rw_world *w, unsigned int i, const char *key, int want)
{
	uint64_t before;

	rw_open(w, i);
	before = w->clients[i].requests;
	assert_int_equal(rw_put(w->clients[i].c, KR_PUT, key, filler, sizeof(filler)), want);
	rw_close(w, i); /* that it gives all back is part of what it costs */
	return w->clients[i].requests - before;
}

static unsigned int chunks_used(struct rw_world *w)
{
	struct kr_report report = { 0 };

	assert_int_equal(kr_check(rw_open(w, 5), false, &report), 0);
	rw_close(w, 5);
	return (unsigned int)report.chunks_used;
}

/*
 * Full chunks that others have left are not searched by each who comes, not even where a reclaim has
 * found them, and those who come one after another use the same one that has room.
 */
static void test_full_chunks_are_left_alone(void **state)
{
	struct rw_world *w = rw_new((MANY_CHUNKS + 30) * KR_CHUNK_BYTES, 64, 4, 14);
	struct kr_client *c = rw_open(w, 0);
	struct kr_report report = { 0 };
	unsigned int i, used;
	char key[24];

	(void)state;
	for (i = 0; i < MANY_CHUNKS * kr_class_blocks(kr_class_of(sizeof(filler))); i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_put(c, KR_INSERT, key, filler, sizeof(filler)), 0);
	}
	rw_close(w, 0);
	used = chunks_used(w);
	assert_true(requests_of_put(w, 1, "a", 0) < 40);
	for (i = 0; i < 5; i++)
		assert_true(requests_of_put(w, 1, "a", 0) < 40);
	assert_int_equal(chunks_used(w), used + 1);
	c = rw_open(w, 0);
	for (i = 0; i < MANY_CHUNKS; i++) { /* as if it had died */
		uint64_t *owner = (uint64_t *)(w->memory + c->header.owners) + i;

		*owner = 4711 << 8 | (*owner & 0xff);
	}
	assert_int_equal(kr_check(c, true, &report), 0);
	rw_close(w, 0);
	assert_int_equal(rw_orphans(w), 0);
	assert_true(requests_of_put(w, 1, "b", 0) < 40);
	rw_free(w);
}

/* Nor are chunks full of subtables, once somebody has seen that they are. */
static void test_full_pairs_are_left_alone(void **state)
{
	struct rw_world *w = rw_new((MANY_CHUNKS + 30) * KR_CHUNK_BYTES, 256, 4, 15);
	struct kr_client *c;
	uint64_t at = 0, before, last;
	unsigned int i;

	(void)state;
	c = rw_open(w, 0);
	assert_int_equal(kr_writer(c), 0);
	for (i = 0; i < MANY_CHUNKS * 2; i++) { /* two of them in a chunk */
		assert_int_equal(kr_alloc_pair(c, &at), 0);
		*(uint64_t *)(w->memory + at) = kr_bucket_head(2);
	}
	rw_close(w, 0);
	for (i = 0, last = 0; i < 2; i++, last = at) {
		c = rw_open(w, 1);
		before = w->clients[1].requests;
		assert_int_equal(kr_writer(c), 0);
		assert_int_equal(kr_alloc_pair(c, &at), 0);
		*(uint64_t *)(w->memory + at) = kr_bucket_head(2);
		rw_close(w, 1);
		assert_true(w->clients[1].requests - before < 40);
		assert_true(!last || at == last + 2ULL * kr_subtable_bytes(256));
	}
	rw_free(w);
}

/* Where no chunk is new a search has an end, too; and what was deleted in full chunks is found. */
static void test_full_chunks_of_a_full_node(void **state)
{
	struct rw_world *w = rw_new((KR_FULL_TRIES + 300ULL) * KR_CHUNK_BYTES, 256, 4, 16);
	struct kr_client *c = rw_open(w, 0);
	unsigned int nr = fill(c, sizeof(filler), 100000), i;
	uint64_t before;
	char key[24];

	(void)state;
	before = w->clients[0].requests;
	assert_int_equal(rw_put(c, KR_PUT, "more", filler, sizeof(filler)), -ENOSPC);
	assert_true(w->clients[0].requests - before < KR_FULL_TRIES + 40);
	rw_close(w, 0);
	assert_true(requests_of_put(w, 1, "more", -ENOSPC) < 5 * KR_FULL_TRIES);
	c = rw_open(w, 0);
	for (i = 0; i < nr; i += 30) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_put(c, KR_DELETE, key, NULL, 0), 0);
	}
	rw_close(w, 0);
	assert_true(requests_of_put(w, 1, "more", 0) < 5 * KR_FULL_TRIES);
	rw_free(w);
}

/* Blocks that a client can take without any request. */
static uint64_t free_blocks(const struct kr_client *c, unsigned int class)
{
	const struct kr_heap *heap = &c->heaps[class];

	return heap->nr - heap->first + (heap->end - heap->next) / kr_class_bytes(class);
}

static uint64_t *damaged_head; /* of a bucket, once a tentative slot is in the first subtable */

static void damages_once_announced(struct rw_client *me)
{
	const struct kr_header *h = (const struct kr_header *)me->world->memory;
	const uint64_t *words = (const uint64_t *)(me->world->memory + h->root);
	uint32_t i;

	for (i = 0; i < kr_subtable_bytes(h->groups) / 8; i++)
		if (i % 8 && kr_slot_state(words[i]) == KR_TENTATIVE)
			*damaged_head = 0;
}

/* An operation that was not done gives its block back, why ever it was not. */
static void test_a_failure_costs_no_block(void **state)
{
	struct rw_world *w = rw_new(20 * KR_CHUNK_BYTES, 1, 4, 17);
	struct kr_client *c = rw_open(w, 0);
	const struct kr_header *h = (const struct kr_header *)w->memory;
	uint64_t *words = (uint64_t *)(w->memory + h->root);
	unsigned int class = kr_class_of(sizeof(filler)), i, j;

	(void)state;
	assert_int_equal(rw_put(c, KR_INSERT, "a", filler, sizeof(filler)), 0);
	damaged_head = words + 8; /* the overflow bucket, which each key has */
	for (i = 0; i < 50; i++) {
		w->clients[0].meddle = damages_once_announced;
		assert_int_equal(rw_put(c, KR_INSERT, "b", filler, sizeof(filler)), -EBADMSG);
		w->clients[0].meddle = NULL;
		*damaged_head = kr_bucket_head(1);
		for (j = 0; j < kr_subtable_bytes(h->groups) / 8; j++)
			if (j % 8 && kr_slot_state(words[j]) == KR_TENTATIVE)
				words[j] = 0;
		assert_int_equal(free_blocks(c, class), kr_class_blocks(class) - 1);
	}
	assert_int_equal(rw_put(c, KR_INSERT, "b", filler, sizeof(filler)), 0);
	assert_int_equal(chunks_used(w), 1);
	rw_free(w);
}

/* A deletion beside a split, which begins when it has made @steps. Return: whether it had so many. */
static bool delete_beside_split(unsigned int steps)
{
	struct rw_world *w = rw_new(12 * KR_CHUNK_BYTES, 1, 4, 18);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	struct change delete = { .mode = KR_DELETE, .key = "gone" };
	struct kr_place p;
	uint64_t before;
	bool met;

	assert_int_equal(rw_put(c, KR_INSERT, "gone", "1", 1), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "stays", "1", 1), 0);
	assert_int_equal(kr_find(d, "gone", 4, &p), 0);
	before = free_blocks(c, 0);
	rw_spawn(w, 0, change_one, &delete);
	rw_step(w, 0, steps);
	met = w->clients[0].ready;
	assert_int_equal(kr_split(d, &p), 0);
	assert_true(rw_run(w));
	assert_int_equal(delete.err, 0);
	assert_int_equal(free_blocks(c, 0), before + 1);
	assert_int_equal(rw_entries(d), 1);
	rw_free(w);
	return met;
}

/* A split freezes the tomb of a deletion: its block is not lost. */
static void test_a_frozen_tomb_costs_no_block(void **state)
{
	unsigned int steps = 0;

	(void)state;
	while (delete_beside_split(steps))
		steps++;
	assert_in_range(steps, 6, 50);
}

/*
 * Where all words of clients are taken a writer is told so, a reader is not concerned, and what
 * the dead had can be had again.
 */
static void test_too_many_writers(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 11);
	const struct kr_header *h = (const struct kr_header *)w->memory;
	uint64_t *words = (uint64_t *)(w->memory + h->clients), *next;
	struct kr_client *c = rw_open(w, 0), *d;
	struct kr_report report = { 0 };
	const void *value;
	uint32_t i;

	(void)state;
	assert_int_equal(rw_put(c, KR_PUT, "one", "1", 1), 0);
	for (i = 0; i < h->nr_clients; i++)
		if (!words[i])
			words[i] = (uint64_t)(h->nr_clients + i) << 32 | 1;
	d = rw_open(w, 1);
	assert_int_equal(rw_put(d, KR_PUT, "one", "2", 1), -EUSERS);
	assert_int_equal(rw_put(d, KR_INSERT, "two", "2", 1), -EUSERS);
	assert_int_equal(rw_put(d, KR_DELETE, "one", NULL, 0), -EUSERS);
	assert_int_equal(rw_get(d, "one", &value), 1);
	assert_memory_equal(value, "1", 1);
	assert_int_equal(rw_entries(d), 1);
	assert_int_equal(rw_put(c, KR_UPDATE, "one", "3", 1), 0); /* it has its own */
	assert_int_equal(kr_check(d, true, &report), 0);
	assert_true(report.dead >= h->nr_clients - 1);
	assert_int_equal(rw_put(d, KR_PUT, "one", "4", 1), 0);
	/* ids are not used twice: when they are used up, nobody begins to write any more */
	rw_close(w, 1);
	next = (uint64_t *)(w->memory + offsetof(struct kr_header, next_client));
	*next = KR_CLIENT_MAX + 1ULL;
	d = rw_open(w, 1);
	assert_int_equal(rw_put(d, KR_PUT, "one", "5", 1), -EUSERS);
	assert_int_equal(rw_get(d, "one", &value), 1);
	assert_memory_equal(value, "4", 1);
	rw_free(w);
}

/* An id is never used again, so a client that finds no word free takes none, however often it tries. */
static void test_a_refusal_takes_no_ids(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 13);
	const struct kr_header *h = (const struct kr_header *)w->memory;
	uint64_t *words = (uint64_t *)(w->memory + h->clients), first = h->next_client;
	uint32_t i, last = h->nr_clients - 3;
	struct kr_client *c = rw_open(w, 0);

	(void)state;
	for (i = 0; i < h->nr_clients; i++)
		words[i] = (uint64_t)(h->nr_clients + i) << 32 | 1;
	for (i = 0; i < 100; i++)
		assert_int_equal(rw_put(c, KR_PUT, "one", "1", 1), -EUSERS);
	assert_true(w->clients[0].requests < 100 * 10);
	assert_in_range(h->next_client - first, 0, 10);
	/* the only free word is found at once, by one who has been refused and by one who has not */
	for (i = 0; i < 2; i++) {
		words[last] = 0;
		c = i ? rw_open(w, i) : c;
		w->clients[i].requests = 0;
		assert_int_equal(rw_put(c, KR_PUT, "one", "1", 1), 0);
		assert_true(w->clients[i].requests < 40);
		assert_int_equal(c->id % h->nr_clients, last);
		assert_int_equal(words[last] >> 32, c->id);
	}
	assert_in_range(h->next_client - first, 0, 3 * h->nr_clients);
	rw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_full_and_unknown),
		cmocka_unit_test(test_removed_before_it_is_known),
		cmocka_unit_test(test_full_and_split),
		cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_depth_max),
		cmocka_unit_test(test_end_gives_back),
		cmocka_unit_test(test_writes_seldom),
		cmocka_unit_test(test_heir_of_a_full_node),
		cmocka_unit_test(test_full_chunks_are_left_alone),
		cmocka_unit_test(test_full_pairs_are_left_alone),
		cmocka_unit_test(test_full_chunks_of_a_full_node),
		cmocka_unit_test(test_a_failure_costs_no_block),
		cmocka_unit_test(test_a_frozen_tomb_costs_no_block),
		cmocka_unit_test(test_too_many_writers),
		cmocka_unit_test(test_a_refusal_takes_no_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
