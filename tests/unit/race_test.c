// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-race's client over plain memory: what each operation does and costs, histories of
 * clients that interleave request by request, deaths and unknown outcomes at each step, and
 * faults that are planted and must be found.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/race_history.h"
#include "tests/unit/race_world.h"

#define MIB (1ULL << 20)
#define SEEDS 60
#define MUTANT_SEEDS 600
#define KEYS_MAX 48
#define WORKERS 4
#define LEASE_MS 4000

/* keys: every third has the fingerprint of the one before it */
static char names[KEYS_MAX][24];

static unsigned int name_fp(const char *name, uint64_t seed)
{
	return kr_hash_fp(krp_xxh64(name, strlen(name), seed));
}

static void make_names(uint64_t seed)
{
	unsigned int i, j;

	for (i = 0; i < KEYS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "key %u", i);
		for (j = 0; i % 3 == 2 && name_fp(names[i], seed) != name_fp(names[i - 1], seed);
		     j++)
			snprintf(names[i], sizeof(names[i]), "key %u %u", i, j);
	}
}

/* one client */

static void test_operations(void **state)
{
	struct rw_world *w = rw_new(4 * MIB, 4, 6, 1);
	struct kr_client *c = rw_open(w, 0);
	const void *value = NULL;

	(void)state;
	assert_int_equal(rw_get(c, "a", &value), -ENOENT);
	assert_int_equal(rw_put(c, KR_UPDATE, "a", "1", 1), -ENOENT);
	assert_int_equal(rw_put(c, KR_DELETE, "a", NULL, 0), -ENOENT);
	assert_int_equal(rw_put(c, KR_INSERT, "a", "one", 3), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "a", "two", 3), -EEXIST);
	assert_int_equal(rw_get(c, "a", &value), 3);
	assert_memory_equal(value, "one", 3);
	assert_int_equal(rw_put(c, KR_UPDATE, "a", "three", 5), 0);
	assert_int_equal(rw_put(c, KR_PUT, "b", "", 0), 0);
	assert_int_equal(rw_get(c, "b", &value), 0);
	assert_int_equal(rw_get(c, "a", &value), 5);
	assert_memory_equal(value, "three", 5);
	assert_int_equal(rw_entries(c), 2);
	assert_int_equal(rw_put(c, KR_DELETE, "a", NULL, 0), 0);
	assert_int_equal(rw_get(c, "a", &value), -ENOENT);
	assert_int_equal(rw_entries(c), 1);
	rw_free(w);
}

/* Each length comes back as it was, the longest key with the longest value, too. */
static void test_lengths(void **state)
{
	static const uint32_t lengths[] = { 1, 31, 32, 33, 500, 4063, 4064, 4065, 65535, 65536 };
	struct rw_world *w = rw_new(16 * MIB, 4, 6, 2);
	struct kr_client *c = rw_open(w, 0);
	uint8_t *bytes = malloc(2 * KR_KEY_MAX);
	struct kr_place p;
	unsigned int i, j;

	(void)state;
	for (i = 0; i < 2 * KR_KEY_MAX; i++)
		bytes[i] = (uint8_t)(krp_mix64(i) >> 8);
	for (i = 0; i < 100; i++) {
		uint32_t key = lengths[i / 10], value = lengths[i % 10];

		assert_int_equal(kr_modify(c, KR_PUT, bytes + i, key, bytes + 7 * i, value), 0);
		assert_int_equal(kr_find(c, bytes + i, key, &p), 0);
		assert_int_not_equal(p.slot_at, 0);
		assert_int_equal(c->found->value_bytes, value);
		assert_memory_equal((uint8_t *)(c->found + 1) + key, bytes + 7 * i, value);
	}
	for (j = 0; j < KR_CLASSES; j++)
		assert_int_equal(kr_class_of(kr_class_bytes(j)), j);
	free(bytes);
	rw_free(w);
}

/* A search is two READs of buckets and one of the block, nothing else: also after splits. */
static void test_three_reads(void **state)
{
	struct rw_world *w = rw_new(8 * MIB, 2, 8, 3);
	struct kr_client *c = rw_open(w, 0), *d;
	uint64_t reads, requests;
	const void *value = NULL;
	char key[24];
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_put(c, KR_INSERT, key, key, strlen(key)), 0);
	}
	assert_true(c->stats.splits > 15);
	d = rw_open(w, 1);
	assert_int_equal(w->clients[1].requests, 1); /* header and trie at once */
	for (i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%u", i);
		reads = d->stats.search_reads;
		requests = w->clients[1].requests;
		assert_int_equal(rw_get(d, key, &value), strlen(key));
		assert_memory_equal(value, key, strlen(key));
		assert_int_equal(d->stats.search_reads - reads, 3);
		assert_int_equal(w->clients[1].requests - requests, 3);
	}
	assert_int_equal(rw_entries(d), 1000);
	rw_free(w);
}

/* histories */

/**
 * struct plan - What a run draws from.
 * @keys: how many keys.
 * @ops: operations of each worker.
 * @unknown_odds: one of so many writing requests has an unknown outcome.
 * @kills: how many workers die.
 * @mutant: fault to be planted: 0 none, 1 no re-read, 2 no mark, 3 a WRITE is replayed.
 * @bytes: of each value, at most BYTES_MAX; 0: few, drawn.
 * @chunks: of the memory node, with the header, which is full soon; 0: as many as are needed.
 * @lease_ms: 0: none ever ends; else two clients reclaim all the time, and workers that are idle
 *	for long are taken for dead.
 */
struct plan {
	unsigned int keys, ops, unknown_odds, kills, mutant, bytes, chunks, lease_ms;
};

#define BYTES_MAX 40000 /* a chunk has five such blocks */

static struct rh_history history;
static const struct plan *plan_now;
static uint64_t reclaimed; /* blocks, in all runs */
static uint64_t removed; /* entries that were deleted without memory, in all runs */
static bool broken; /* an operation failed in a way that no fault explains */

static struct rh_op *begin(struct rw_client *me, enum rh_kind kind, unsigned int key)
{
	struct rh_op *op = &history.ops[history.nr++];

	op->kind = kind;
	op->key = key;
	op->value = kind == RH_GET || kind == RH_DELETE ? 0 : history.nr;
	op->found = false;
	op->pending = true;
	op->start = ++me->world->steps;
	op->end = 0;
	return op;
}

static void end(struct rw_client *me, struct rh_op *op, int err)
{
	op->end = ++me->world->steps;
	op->pending = err && err != -ENOENT && err != -EEXIST;
	op->found = op->kind == RH_INSERT ? err == -EEXIST : err != -ENOENT;
	if (err == -ENOSPC && plan_now->chunks && op->kind != RH_DELETE) {
		op->kind = RH_GET; /* whose result is not known: nothing was done */
		return;
	}
	if (op->pending && err != -ENODEV && err != -EREMCHG) {
		broken = true;
		if (!plan_now->mutant)
			fprintf(stderr, "client %u: operation %d of key %u: %d\n", me->index,
				(int)op->kind, op->key, err);
	}
}

static int one_op(struct rw_client *me, enum rh_kind kind, unsigned int key)
{
	static const enum kr_mode modes[] = {
		[RH_PUT] = KR_PUT,
		[RH_INSERT] = KR_INSERT,
		[RH_UPDATE] = KR_UPDATE,
		[RH_DELETE] = KR_DELETE,
	};
	struct rh_op *op = begin(me, kind, key);
	unsigned int bytes = plan_now->bytes ? plan_now->bytes : 8 + rw_draw(me->world, 180);
	static uint64_t words[BYTES_MAX / 8];
	const void *value = NULL;
	long got;
	int err;

	if (kind != RH_GET) {
		words[0] = op->value;
		err = rw_put(me->c, modes[kind], names[key], words, kind == RH_DELETE ? 0 : bytes);
		end(me, op, err);
		return err;
	}
	got = rw_get(me->c, names[key], &value);
	if (got >= 8)
		memcpy(&op->value, value, 8);
	end(me, op, got < 0 ? (int)got : 0);
	return got < 0 ? (int)got : 0;
}

/* Do nothing for up to four leases; time goes on by what others do. */
static void idle(struct rw_client *me, unsigned int lease_ms)
{
	uint64_t until = me->world->steps + rw_draw(me->world, 4 * lease_ms);

	while (me->world->steps < until)
		me->t.ops->pause(&me->t, 0);
}

/* Reclaim until all workers have ended. */
static void reclaimer(struct rw_client *me)
{
	struct kr_report report;
	unsigned int i;
	int err;

	do {
		memset(&report, 0, sizeof(report));
		err = kr_check(me->c, true, &report);
		if (err || report.damaged) {
			fprintf(stderr, "reclaim: %d, %llu damaged\n", err,
				(unsigned long long)report.damaged);
			broken = true;
		}
		reclaimed += report.reclaimed;
		for (i = 0; i < WORKERS && !me->world->clients[i].ready; i++)
			;
	} while (i < WORKERS && !err);
}

static void worker(struct rw_client *me)
{
	const struct plan *plan = me->arg;
	unsigned int i, key;

	for (i = 0; i < plan->ops; i++) {
		if (plan->lease_ms && !rw_draw(me->world, 20))
			idle(me, plan->lease_ms);
		key = rw_draw(me->world, plan->keys);
		if (one_op(me, (enum rh_kind)rw_draw(me->world, 5), key) == -ENODEV)
			return;
	}
}

/* Everybody is gone: what is there now must fit as well. */
static void final_gets(struct rw_world *w, unsigned int keys)
{
	unsigned int key;

	w->clients[WORKERS].c = NULL;
	rw_open(w, WORKERS);
	for (key = 0; key < keys; key++)
		one_op(&w->clients[WORKERS], RH_GET, key);
}

/* Entries of the table; fewer distinct ones mean that a key is there twice. */
static int unique_entry(void *arg, const struct kr_block *block)
{
	uint64_t *seen = arg;
	unsigned int key;

	for (key = 0; key < KEYS_MAX; key++)
		if (block->key_bytes == strlen(names[key]) &&
		    !memcmp(block + 1, names[key], block->key_bytes))
			break;
	if (key == KEYS_MAX || *seen >> key & 1)
		return 1;
	*seen |= 1ULL << key;
	return 0;
}

/* One run. Return: whether all is well. */
static bool run_history(const struct plan *plan, uint64_t seed)
{
	/* whoever was taken for dead holds chunks for two leases more */
	unsigned int chunks = plan->chunks ? plan->chunks : plan->lease_ms ? 48 : 24;
	struct rw_world *w = rw_new(chunks * KR_CHUNK_BYTES, 1, 5, seed);
	unsigned int i, key = 0;
	uint64_t seen = 0;
	bool good;

	memset(&history, 0, sizeof(history));
	plan_now = plan;
	broken = false;
	if (plan->lease_ms)
		rw_lease(w, plan->lease_ms);
	for (i = WORKERS; plan->lease_ms && i < RW_CLIENTS; i++) {
		rw_open(w, i);
		rw_spawn(w, i, reclaimer, NULL);
	}
	for (i = 0; i < WORKERS; i++) {
		struct kr_client *c = rw_open(w, i);

		c->no_reread = plan->mutant == 1;
		c->no_mark = plan->mutant == 2;
		w->clients[i].replays = plan->mutant == 3;
		w->clients[i].unknown_odds = plan->unknown_odds;
		if (i < plan->kills)
			w->clients[i].dies_at = 10 + rw_draw(w, 300);
		rw_spawn(w, i, worker, (void *)plan);
	}
	good = rw_run(w);
	for (i = 0; i < WORKERS; i++)
		removed += w->clients[i].c->stats.removed;
	if (good && !broken) {
		rw_close(w, WORKERS);
		final_gets(w, plan->keys);
		good = !broken && rh_linearizable(&history, &key) &&
		       !kr_walk(w->clients[WORKERS].c, unique_entry, &seen);
	}
	if (!plan->mutant && (!good || broken))
		fprintf(stderr, "seed %llu: not well, key %u\n", (unsigned long long)seed, key);
	rw_free(w);
	return good && !broken;
}

static void run_seeds(const struct plan *plan)
{
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++)
		assert_true(run_history(plan, seed));
}

static void test_histories(void **state)
{
	static const struct plan plans[] = {
		{ .keys = 1, .ops = 10 },
		{ .keys = 3, .ops = 25 },
		{ .keys = 12, .ops = 60 },
		{ .keys = 48, .ops = 90 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		run_seeds(&plans[i]);
}

static void test_histories_with_deaths(void **state)
{
	static const struct plan plans[] = {
		{ .keys = 2, .ops = 20, .kills = 2 },
		{ .keys = 48, .ops = 90, .kills = 3 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		run_seeds(&plans[i]);
}

static void test_histories_with_unknown_outcomes(void **state)
{
	static const struct plan plans[] = {
		{ .keys = 1, .ops = 10, .unknown_odds = 4 },
		{ .keys = 3, .ops = 25, .unknown_odds = 5 },
		{ .keys = 48, .ops = 90, .unknown_odds = 12, .kills = 1 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		run_seeds(&plans[i]);
}

/* Some clients have memory of some classes, others have none and can only delete. */
static void test_histories_on_a_full_node(void **state)
{
	static const struct plan plans[] = {
		{ .keys = 2, .ops = 20, .chunks = 3 },
		{ .keys = 6, .ops = 60, .chunks = 3, .unknown_odds = 6 },
		{ .keys = 12, .ops = 60, .chunks = 5, .unknown_odds = 12, .kills = 1 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		removed = 0;
		run_seeds(&plans[i]);
		assert_true(removed > SEEDS);
	}
}

/* Memory of the dead, and of those who are slow, is used again all the time. */
static void test_histories_with_reclaim(void **state)
{
	static const struct plan plans[] = {
		{ .keys = 3, .ops = 15, .lease_ms = LEASE_MS },
		{ .keys = 12, .ops = 40, .lease_ms = LEASE_MS, .bytes = BYTES_MAX },
		{ .keys = 48, .ops = 60, .lease_ms = LEASE_MS, .kills = 2 },
		{ .keys = 8, .ops = 30, .lease_ms = LEASE_MS, .unknown_odds = 8 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		reclaimed = 0;
		run_seeds(&plans[i]);
		assert_true(reclaimed > SEEDS);
	}
}

/* Each fault that is planted is found, and it is that fault: without it the history is well. */
static void find_mutant(const struct plan *plan)
{
	struct plan sound = *plan;
	uint64_t seed;

	sound.mutant = 0;
	for (seed = 0; seed < MUTANT_SEEDS; seed++) {
		if (run_history(plan, seed))
			continue;
		assert_true(run_history(&sound, seed));
		return;
	}
	fail_msg("mutant %u is not found in %u histories", plan->mutant, MUTANT_SEEDS);
}

static void test_mutant_no_reread(void **state)
{
	static const struct plan plan = { .keys = 2, .ops = 15, .mutant = 1 };

	(void)state;
	find_mutant(&plan);
}

static void test_mutant_no_mark(void **state)
{
	static const struct plan plan = { .keys = 1, .ops = 10, .unknown_odds = 4, .mutant = 2 };

	(void)state;
	find_mutant(&plan);
}

static void test_mutant_write_replayed(void **state)
{
	static const struct plan plan = { .keys = 1, .ops = 10, .unknown_odds = 4, .mutant = 3 };

	(void)state;
	find_mutant(&plan);
}

/* each step */

/* What happens to client 0 at a step of its operation. */
enum trouble {
	DIES,
	UNKNOWN_DONE,
	UNKNOWN_NOT_DONE,
	OVERTAKEN,
	LAPSES,
	TROUBLES,
};

#define STEP_LEASE_MS 2000

/* In LAPSES it has been at work before, and afterwards uses what it has given back. */
static void one_operation(struct rw_client *me)
{
	one_op(me, *(enum rh_kind *)me->arg, 0);
	if (me->lapses_at == RW_NEVER)
		return;
	one_op(me, RH_PUT, 46);
	one_op(me, RH_PUT, 47);
}

/* The path is gone for three leases, and others take client 0 for dead and use what it had. */
static void lapse(struct rw_client *me)
{
	struct rw_world *w = me->world;
	struct kr_report report = { 0 };
	unsigned int key;

	w->steps += 3 * STEP_LEASE_MS;
	if (kr_check(w->clients[1].c, true, &report))
		broken = true;
	rw_open(w, 2);
	for (key = 36; key < 46; key++)
		one_op(&w->clients[2], RH_PUT, key);
}

/* Client 1 changes the same entry, and inserts so much that subtables are split. */
static void others_go_on(struct rw_world *w, enum rh_kind kind)
{
	struct rw_client *other = &w->clients[1];
	unsigned int key;

	one_op(other, RH_GET, 0);
	one_op(other, kind, 0);
	for (key = 24; key < 36; key++)
		one_op(other, RH_INSERT, key);
	one_op(other, RH_PUT, 0);
	one_op(other, RH_GET, 0);
	for (; key < KEYS_MAX; key++)
		one_op(other, RH_INSERT, key);
	one_op(other, RH_DELETE, 0);
	one_op(other, RH_GET, 0);
}

/**
 * step_case() - One operation of client 0, in trouble at request @step.
 * @kind: of the operation.
 * @full: entries that are there: with 21 or more the next insertion splits.
 * @trouble: which.
 * @other: what client 1 does to the same entry.
 * @step: from 1.
 * @ret_past: set if the operation had fewer requests.
 *
 * Return: whether the history is linearizable, and no key is there twice.
 */
static bool step_case(enum rh_kind kind, unsigned int full, enum trouble trouble,
		      enum rh_kind other, unsigned int step, bool *ret_past)
{
	static const struct plan few, many = { .bytes = BYTES_MAX };
	struct rw_world *w = rw_new(24 * KR_CHUNK_BYTES, 1, 5, step);
	struct kr_report report = { 0 };
	unsigned int key;
	uint64_t seen = 0;
	bool good;

	memset(&history, 0, sizeof(history));
	plan_now = trouble == LAPSES ? &many : &few;
	broken = false;
	rw_lease(w, trouble == LAPSES ? STEP_LEASE_MS : 1000000);
	rw_open(w, 0);
	rw_open(w, 1);
	if (trouble == LAPSES)
		one_op(&w->clients[0], RH_PUT, 47);
	for (key = kind == RH_INSERT || kind == RH_PUT; key < full; key++)
		one_op(&w->clients[1], RH_INSERT, key);
	step += (unsigned int)w->clients[0].requests;
	if (trouble == DIES)
		w->clients[0].dies_at = step;
	if (trouble == UNKNOWN_DONE || trouble == UNKNOWN_NOT_DONE)
		w->clients[0].unknown_at = step;
	w->clients[0].unknown_done = trouble == UNKNOWN_DONE;
	if (trouble == LAPSES)
		w->clients[0].lapses_at = step;
	w->clients[0].lapse = lapse;
	rw_spawn(w, 0, one_operation, &kind);
	if (trouble == OVERTAKEN) {
		rw_step(w, 0, step);
		others_go_on(w, other);
	}
	good = rw_run(w);
	*ret_past = w->clients[0].requests < step;
	if (trouble != OVERTAKEN)
		others_go_on(w, other);
	final_gets(w, KEYS_MAX);
	good = good && !broken && !kr_check(w->clients[WORKERS].c, false, &report) &&
	       !report.damaged && rh_linearizable(&history, &key) &&
	       !kr_walk(w->clients[WORKERS].c, unique_entry, &seen);
	rw_free(w);
	return good;
}

/* Every step of an operation, and for an unknown outcome both that are possible. */
static void every_step(enum rh_kind kind, unsigned int full)
{
	unsigned int trouble, step, other;
	bool past;

	for (trouble = 0; trouble < TROUBLES; trouble++) {
		for (other = RH_PUT; other <= RH_DELETE; other++) {
			past = false;
			for (step = 1; !past; step++) {
				if (!step_case(kind, full, (enum trouble)trouble,
					       (enum rh_kind)other, step, &past))
					fail_msg("operation %d, trouble %u, other %u, step %u",
						 (int)kind, trouble, other, step);
			}
			assert_true(step > 4);
		}
	}
}

static void test_every_step_of_insert(void **state)
{
	(void)state;
	every_step(RH_INSERT, 10);
}

static void test_every_step_of_insert_that_splits(void **state)
{
	(void)state;
	every_step(RH_INSERT, 23);
}

static void test_every_step_of_update(void **state)
{
	(void)state;
	every_step(RH_UPDATE, 10);
}

static void test_every_step_of_delete(void **state)
{
	(void)state;
	every_step(RH_DELETE, 10);
}

/* What a dead client held can be used again, and if it was not dead it begins anew. */
static void test_reclaim(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 8);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1), *e;
	struct kr_report report = { 0 };
	static char value[30000];
	const void *got;
	char key[24];
	unsigned int i;
	int err = 0;

	(void)state;
	for (i = 0; i < 50; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_put(c, KR_INSERT, key, value, 100), 0);
	}
	w->clients[0].dies_at = w->clients[0].requests + 5; /* its slot is tentative */
	assert_int_equal(rw_put(c, KR_INSERT, "last", value, 100), -ENODEV);
	assert_int_equal(kr_check(d, false, &report), 0);
	assert_int_equal(report.entries, 50);
	assert_int_equal(report.tentative, 1);
	assert_int_equal(report.clients, 1);
	memset(&report, 0, sizeof(report));
	assert_int_equal(kr_check(d, true, &report), 0);
	assert_int_equal(report.dead, 1);
	assert_true(report.reclaimed > 0);
	/* its chunk is used again, when all others are taken */
	for (i = 0; !err; i++) {
		snprintf(key, sizeof(key), "new %u", i);
		err = rw_put(d, KR_INSERT, key, value, sizeof(value));
	}
	assert_int_equal(err, -ENOSPC);
	e = rw_open(w, 2);
	assert_int_equal(rw_put(e, KR_INSERT, "more", value, 100), 0);
	/* it was not dead: it does not use what is not its own any more */
	w->clients[0].dies_at = RW_NEVER;
	assert_int_equal(rw_put(c, KR_INSERT, "last", value, 100), -ENOSPC);
	for (i = 0; i < 50; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(rw_get(e, key, &got), 100);
	}
	memset(&report, 0, sizeof(report));
	assert_int_equal(kr_check(e, false, &report), 0);
	assert_int_equal(report.tentative, 0);
	assert_int_equal(report.damaged, 0);
	rw_free(w);
}

/* What a client had that died is free after a second reclaim, wherever the first one died. */
static void test_every_step_of_reclaim(void **state)
{
	struct kr_report report;
	struct rw_world *w;
	bool past = false;
	unsigned int step;
	int err;

	(void)state;
	for (step = 1; !past; step++) {
		w = rw_new(6 * KR_CHUNK_BYTES, 1, 4, step);
		rw_open(w, 0);
		assert_int_equal(rw_put(w->clients[0].c, KR_PUT, "a", "1", 1), 0);
		assert_int_equal(rw_put(w->clients[0].c, KR_PUT, "a", "2", 1), 0);
		w->clients[0].dies_at = 1;
		rw_open(w, 1);
		w->clients[1].dies_at = w->clients[1].requests + step;
		memset(&report, 0, sizeof(report));
		err = kr_check(w->clients[1].c, true, &report);
		past = w->clients[1].requests < w->clients[1].dies_at;
		assert_int_equal(err, past ? 0 : -ENODEV);
		rw_open(w, 2);
		memset(&report, 0, sizeof(report));
		assert_int_equal(kr_check(w->clients[2].c, true, &report), 0);
		assert_int_equal(report.entries, 1);
		assert_int_equal(rw_orphans(w), 0);
		rw_free(w);
	}
	assert_true(step > 12);
}

/* A damaged slot does not keep a reclaim from freeing what is sound. */
static void test_reclaim_beside_damage(void **state)
{
	struct rw_world *w = rw_new(6 * KR_CHUNK_BYTES, 4, 4, 11);
	struct kr_client *c = rw_open(w, 0), *d = rw_open(w, 1);
	struct kr_report report = { 0 };
	struct kr_place p, q;

	(void)state;
	assert_int_equal(rw_put(c, KR_INSERT, "a", "1", 1), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "b", "2", 1), 0);
	assert_int_equal(rw_put(c, KR_INSERT, "c", "3", 1), 0);
	assert_int_equal(kr_find(c, "a", 1, &p), 0);
	assert_int_equal(kr_find(c, "b", 1, &q), 0);
	*(uint64_t *)(w->memory + p.slot_at) |= 31ULL << 56; /* no such class */
	*(uint64_t *)(w->memory + q.slot_at) |= 0x3fffffff; /* nor such a block */
	w->clients[0].dies_at = 1;
	assert_int_equal(kr_check(d, true, &report), 0);
	assert_int_equal(report.damaged, 2);
	assert_int_equal(report.dead, 1);
	assert_int_equal(report.reclaimed, 1); /* that of b; a's may be where its slot says */
	assert_int_equal(rw_orphans(w), 0);
	memset(&report, 0, sizeof(report));
	assert_int_equal(kr_check(d, false, &report), 0);
	assert_int_equal(report.entries, 1);
	rw_free(w);
}

/* A header that is none is refused, each with its own error; damage of a block is found. */
static void test_damage(void **state)
{
	static const char *const key_of[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	enum {
		KEYS = sizeof(key_of) / sizeof(key_of[0])
	};
	unsigned int i, walked;
	struct rw_world *w = rw_new(2 * MIB, 4, 4, 9);
	struct kr_header *h = (struct kr_header *)w->memory;
	struct kr_client *c = rw_open(w, 0), *d;
	struct kr_report report = { 0 };
	const void *value = NULL;
	struct kr_place p;

	(void)state;
	for (i = 0; i < KEYS; i++)
		assert_int_equal(rw_put(c, KR_INSERT, key_of[i], "1", 1), 0);
	for (i = 0; i < KEYS; i++) {
		assert_int_equal(kr_find(c, key_of[i], 1, &p), 0);
		w->memory[kr_slot_at(p.slot) + sizeof(struct kr_block)] ^= 1;
		assert_int_equal(rw_get(c, key_of[i], &value), -EBADMSG);
		memset(&report, 0, sizeof(report));
		assert_int_equal(kr_check(c, false, &report), 0);
		assert_int_equal(report.damaged, 1);
		walked = 0;
		assert_int_equal(kr_walk(c, rw_count_entry, &walked), -EBADMSG);
		assert_int_equal(walked, KEYS - 1);
		w->memory[kr_slot_at(p.slot) + sizeof(struct kr_block)] ^= 1;
	}
	assert_int_equal(rw_entries(c), KEYS);
	w->memory[p.table] ^= 1; /* head of a bucket */
	assert_int_equal(kr_walk(c, rw_count_entry, &walked), -EBADMSG);
	assert_int_equal(kr_check(c, false, &report), -EBADMSG);
	h->groups++;
	assert_int_equal(kr_client_new(rw_transport(w, 1), &d), -EBADMSG);
	h->version++;
	assert_int_equal(kr_client_new(rw_transport(w, 1), &d), -EPROTONOSUPPORT);
	h->magic++;
	assert_int_equal(kr_client_new(rw_transport(w, 1), &d), -EPROTO);
	assert_int_equal(kr_format(w->memory, KR_CHUNK_BYTES, 4, 4, 0, 1), -ENOSPC);
	assert_int_equal(kr_format(w->memory, 2 * MIB, 0, 4, 0, 1), -EINVAL);
	assert_int_equal(kr_format(w->memory, 2 * MIB, 257, 4, 0, 1), -EINVAL);
	assert_int_equal(kr_format(w->memory, 2 * MIB, 4, 17, 0, 1), -EINVAL);
	rw_free(w);
}

static int setup(void **state)
{
	(void)state;
	make_names(RW_HASH_SEED);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_three_reads),
		cmocka_unit_test(test_histories),
		cmocka_unit_test(test_histories_with_deaths),
		cmocka_unit_test(test_histories_with_unknown_outcomes),
		cmocka_unit_test(test_histories_on_a_full_node),
		cmocka_unit_test(test_histories_with_reclaim),
		cmocka_unit_test(test_every_step_of_insert),
		cmocka_unit_test(test_every_step_of_insert_that_splits),
		cmocka_unit_test(test_every_step_of_update),
		cmocka_unit_test(test_every_step_of_delete),
		cmocka_unit_test(test_reclaim),
		cmocka_unit_test(test_every_step_of_reclaim),
		cmocka_unit_test(test_reclaim_beside_damage),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_mutant_no_reread),
		cmocka_unit_test(test_mutant_no_mark),
		cmocka_unit_test(test_mutant_write_replayed),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
