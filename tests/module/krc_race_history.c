// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Histories of a table in the memory of another guest: see krc_race.h.
 *
 * Each round has entries of its own, few, so that its threads meet at them. What an operation that
 * failed has done is what krcore/race.h says: nothing, or with -EREMCHG it was done or not.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/module/krc_race.h"
#include "tests/unit/race_history.h"

#define RT_THREADS 4
#define RT_KEYS 2
#define RT_OPS 12 /* of a thread in a round; all together fewer than RH_KEY_OPS_MAX */
#define RT_STALE_ODDS 4
#define RT_FAILED_US 100000

/**
 * struct rt_run - What the threads share.
 * @server: node of the table.
 * @barrier: all are between two rounds.
 * @history: of the round.
 * @clock: counts calls and returns.
 * @round: number.
 * @until: monotonic second of the end.
 * @over: this was the last round.
 * @stale: see rt_history().
 * @ops: operations of all rounds.
 * @failed: of which so many failed and were not done.
 * @violations: rounds without an order.
 * @unknown: requests whose outcome was unknown, by thread.
 */
struct rt_run {
	const char *server;
	pthread_barrier_t barrier;
	struct rh_history history;
	uint64_t clock;
	unsigned int round;
	time_t until;
	bool over, stale;
	unsigned int ops, failed, violations;
	uint64_t unknown[RT_THREADS];
};

/**
 * struct rt_thread - One of them.
 * @run: all.
 * @index: which.
 * @random: its draws.
 * @race: its client.
 * @last: what it found last, by key.
 */
struct rt_thread {
	struct rt_run *run;
	unsigned int index;
	uint64_t random;
	struct krcore_race *race;
	uint64_t last[RT_KEYS];
};

static struct rt_run rt_run;
static volatile sig_atomic_t rt_stop;

static void rt_on_term(int signal)
{
	(void)signal;
	rt_stop = 1;
}

static uint64_t rt_tick(struct rt_run *run)
{
	return __atomic_add_fetch(&run->clock, 1, __ATOMIC_SEQ_CST);
}

static int rt_call(struct rt_thread *me, struct rh_op *op, const char *key, size_t key_bytes)
{
	uint64_t value[25] = { op->value };
	size_t bytes = 8 + rt_draw(&me->random, 190), got;
	int err;

	switch (op->kind) {
	case RH_PUT:
		return krcore_race_put(me->race, key, key_bytes, value, bytes);
	case RH_INSERT:
		return krcore_race_insert(me->race, key, key_bytes, value, bytes);
	case RH_UPDATE:
		return krcore_race_update(me->race, key, key_bytes, value, bytes);
	case RH_DELETE:
		return krcore_race_del(me->race, key, key_bytes);
	default:
		break;
	}
	err = krcore_race_get(me->race, key, key_bytes, value, sizeof(value), &got);
	op->value = err ? RH_ABSENT : value[0];
	if (me->run->stale && !rt_draw(&me->random, RT_STALE_ODDS))
		op->value = me->last[op->key];
	me->last[op->key] = op->value;
	return err;
}

static void rt_one(struct rt_thread *me, struct rh_op *op)
{
	static const enum rh_kind kinds[] = { RH_GET, RH_GET,	 RH_GET,    RH_PUT,
					      RH_PUT, RH_INSERT, RH_UPDATE, RH_DELETE };
	struct rt_run *run = me->run;
	char key[48];
	int bytes, err;

	op->kind = kinds[rt_draw(&me->random, sizeof(kinds) / sizeof(kinds[0]))];
	op->key = (unsigned int)rt_draw(&me->random, RT_KEYS);
	bytes = snprintf(key, sizeof(key), "%d.%u.%u", getpid(), run->round, op->key);
	op->start = rt_tick(run);
	op->value = op->kind == RH_GET || op->kind == RH_DELETE ? RH_ABSENT : op->start;
	err = rt_call(me, op, key, (size_t)bytes);
	op->end = rt_tick(run);
	op->found = op->kind == RH_INSERT ? err == -EEXIST : err != -ENOENT;
	op->pending = err == -EREMCHG;
	if (!err || err == -ENOENT || err == -EEXIST || op->pending)
		return;
	op->kind = RH_GET; /* it was not done: a look-up of which nothing is known */
	op->pending = true;
	__atomic_add_fetch(&run->failed, 1, __ATOMIC_RELAXED);
	usleep(RT_FAILED_US);
}

/* By one thread, while the others wait. */
static void rt_judge(struct rt_run *run)
{
	static uint64_t said;
	uint64_t unknown = 0;
	struct timespec now;
	unsigned int key, i;

	for (i = 0; i < RT_THREADS; i++)
		unknown += run->unknown[i];
	if (unknown != said)
		printf("unknown so far: %" PRIu64 "\n", unknown);
	said = unknown;
	run->ops += run->history.nr;
	if (!rh_linearizable(&run->history, &key)) {
		run->violations++;
		printf("round %u, entry %u: there is no order\n", run->round, key);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	run->over = rt_stop || now.tv_sec >= run->until;
	run->round++;
}

static void *rt_work(void *arg)
{
	struct krcore_race_stats stats = { .size = sizeof(stats) };
	struct rt_thread *me = arg;
	struct rt_run *run = me->run;
	unsigned int i;

	me->race = rt_open(run->server);
	do {
		memset(me->last, 0, sizeof(me->last));
		pthread_barrier_wait(&run->barrier);
		for (i = 0; i < RT_OPS; i++)
			rt_one(me, &run->history.ops[me->index * RT_OPS + i]);
		krcore_race_stats(me->race, &stats);
		run->unknown[me->index] = stats.unknown;
		pthread_barrier_wait(&run->barrier);
		if (!me->index)
			rt_judge(run);
		pthread_barrier_wait(&run->barrier);
	} while (!run->over);
	krcore_race_close(me->race);
	return NULL;
}

int rt_history(const char *server, uint64_t seed, unsigned int seconds, bool stale)
{
	struct rt_thread threads[RT_THREADS] = { 0 };
	pthread_t ids[RT_THREADS];
	uint64_t unknown = 0;
	struct timespec now;
	unsigned int i;

	signal(SIGTERM, rt_on_term);
	clock_gettime(CLOCK_MONOTONIC, &now);
	rt_run.server = server;
	rt_run.until = now.tv_sec + (time_t)seconds;
	rt_run.stale = stale;
	rt_run.history.nr = RT_THREADS * RT_OPS;
	pthread_barrier_init(&rt_run.barrier, NULL, RT_THREADS);
	for (i = 0; i < RT_THREADS; i++) {
		threads[i].run = &rt_run;
		threads[i].index = i;
		threads[i].random = seed * RT_THREADS + i + 1;
		if (pthread_create(&ids[i], NULL, rt_work, &threads[i]))
			return 1;
	}
	for (i = 0; i < RT_THREADS; i++) {
		pthread_join(ids[i], NULL);
		unknown += rt_run.unknown[i];
	}
	printf("rounds=%u ops=%u failed=%u unknown=%" PRIu64 " violations=%u\n", rt_run.round,
	       rt_run.ops, rt_run.failed, unknown, rt_run.violations);
	return rt_run.violations ? 1 : 0;
}
