// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Histories of a table in the memory of another guest: see krc_race.h.
 *
 * Each round has entries of its own, few, so that its threads meet at them. What an operation that
 * failed has done is what krcore/race.h says: nothing, or with -EREMCHG it was done or not; so it is
 * with the one during which a process was killed.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/module/krc_race.h"
#include "tests/unit/race_history.h"

#define RT_THREADS 4
#define RT_KEYS 2
#define RT_OPS 12 /* of a thread in a round; all together fewer than RH_KEY_OPS_MAX */
#define RT_STALE_ODDS 4
#define RT_FAILED_US 100000
#define RT_MORTALS_MAX 100 /* each keeps a chunk of the node for each size that it has written */
#define RT_LOOKS 5000 /* a millisecond apart, for the operation that was drawn to begin */
#define RT_MORTAL_US 20000 /* of life from then on, at most */

/**
 * struct rt_run - What the threads share, and a process that is killed.
 * @server: node of the table.
 * @pid: of the process that has the threads.
 * @barrier: all are between two rounds.
 * @history: of the round.
 * @clock: counts calls and returns.
 * @round: number.
 * @until: monotonic second of the end.
 * @over: this was the last round.
 * @how: see rt_history().
 * @mortals: processes so far that were to be killed.
 * @cut: of which so many were killed during an operation.
 * @ready: the one of this round has its client.
 * @go: and may begin.
 * @broken: one had ended by itself.
 * @ops: operations of all rounds.
 * @failed: of which so many failed and were not done.
 * @violations: rounds without an order.
 * @unknown: requests whose outcome was unknown, by thread.
 */
struct rt_run {
	const char *server;
	pid_t pid;
	pthread_barrier_t barrier;
	struct rh_history history;
	uint64_t clock;
	unsigned int round;
	time_t until;
	bool over;
	enum rt_how how;
	unsigned int mortals, cut;
	bool ready, go, broken;
	unsigned int ops, failed, violations;
	uint64_t unknown[RT_THREADS];
};

/**
 * struct rt_thread - One of them.
 * @run: all.
 * @index: which.
 * @random: its draws.
 * @race: its client.
 * @child: the process that does its part of the round, or 0.
 * @last: what it found last, by key.
 */
struct rt_thread {
	struct rt_run *run;
	unsigned int index;
	uint64_t random;
	struct krcore_race *race;
	pid_t child;
	uint64_t last[RT_KEYS];
};

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
	if (me->run->how == RT_STALE && !rt_draw(&me->random, RT_STALE_ODDS))
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

	op->pending = true; /* until it is over, if this process lives so long */
	op->kind = kinds[rt_draw(&me->random, sizeof(kinds) / sizeof(kinds[0]))];
	op->key = (unsigned int)rt_draw(&me->random, RT_KEYS);
	bytes = snprintf(key, sizeof(key), "%d.%u.%u", run->pid, run->round, op->key);
	__atomic_store_n(&op->start, rt_tick(run), __ATOMIC_RELEASE);
	op->value = op->kind == RH_GET || op->kind == RH_DELETE ? RH_ABSENT : op->start;
	err = rt_call(me, op, key, (size_t)bytes);
	op->end = rt_tick(run);
	op->found = op->kind == RH_INSERT ? err == -EEXIST : err != -ENOENT;
	__atomic_store_n(&op->pending, err == -EREMCHG, __ATOMIC_RELEASE);
	if (!err || err == -ENOENT || err == -EEXIST || op->pending)
		return;
	if (err == -EBADMSG || err == -EINVAL || err == -ENOSPC || err == -EUSERS ||
	    err == -EPROTO) { /* nothing that befalls the network */
		printf("%s: %s\n", key, krcore_race_strerror(err));
		run->broken = true;
	}
	op->kind = RH_GET; /* it was not done: a look-up of which nothing is known */
	op->pending = true;
	__atomic_add_fetch(&run->failed, 1, __ATOMIC_RELAXED);
	usleep(RT_FAILED_US);
}

/* The operations of a thread's round. */
static struct rh_op *rt_ops(const struct rt_thread *me)
{
	return &me->run->history.ops[me->index * RT_OPS];
}

static void rt_do_all(struct rt_thread *me)
{
	unsigned int i;

	for (i = 0; i < RT_OPS; i++)
		rt_one(me, &rt_ops(me)[i]);
}

static void rt_mortal(struct rt_thread *me)
{
	struct rt_run *run = me->run;

	me->race = rt_open(run->server);
	__atomic_store_n(&run->ready, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&run->go, __ATOMIC_ACQUIRE))
		usleep(100);
	rt_do_all(me);
	for (;;)
		pause();
}

/* Have a process that will do this thread's part of the round, with a client of its own. */
static void rt_bear(struct rt_thread *me)
{
	struct rt_run *run = me->run;
	unsigned int i;

	for (i = 0; i < RT_OPS; i++) /* what is not begun: look-ups of which nothing is known */
		rt_ops(me)[i] = (struct rh_op){ .kind = RH_GET, .pending = true };
	run->ready = false;
	run->go = false;
	me->child = fork();
	if (!me->child)
		rt_mortal(me);
	run->mortals++;
	while (me->child > 0 && !__atomic_load_n(&run->ready, __ATOMIC_ACQUIRE) &&
	       !waitpid(me->child, NULL, WNOHANG))
		usleep(1000);
}

/* Kill it soon after one of its operations has begun, the first and the last alike. */
static void rt_kill_it(struct rt_thread *me)
{
	const struct rh_op *op = &rt_ops(me)[rt_draw(&me->random, RT_OPS)];
	struct rt_run *run = me->run;
	unsigned int i;
	int status;

	__atomic_store_n(&run->go, true, __ATOMIC_RELEASE);
	for (i = 0; run->ready && i < RT_LOOKS && !__atomic_load_n(&op->start, __ATOMIC_ACQUIRE);
	     i++)
		usleep(1000);
	usleep((useconds_t)rt_draw(&me->random, RT_MORTAL_US));
	if (me->child > 0)
		kill(me->child, SIGKILL);
	if (me->child <= 0 || waitpid(me->child, &status, 0) != me->child || !WIFSIGNALED(status))
		run->broken = true;
	for (i = 0; i < RT_OPS; i++)
		if (rt_ops(me)[i].pending && rt_ops(me)[i].start)
			run->cut++;
	me->child = 0;
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
	run->over = rt_stop || run->broken || now.tv_sec >= run->until;
	run->round++;
}

static bool rt_is_mortal(const struct rt_thread *me)
{
	return me->run->how == RT_MORTAL && me->index == RT_THREADS - 1 &&
	       me->run->mortals < RT_MORTALS_MAX;
}

static void *rt_work(void *arg)
{
	struct krcore_race_stats stats = { .size = sizeof(stats) };
	struct rt_thread *me = arg;
	struct rt_run *run = me->run;

	me->race = rt_open(run->server);
	do {
		memset(me->last, 0, sizeof(me->last));
		if (rt_is_mortal(me))
			rt_bear(me);
		pthread_barrier_wait(&run->barrier);
		if (me->child)
			rt_kill_it(me);
		else
			rt_do_all(me);
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

/* Memory that a process shares with whom it begets. */
static struct rt_run *rt_new_run(const char *server, unsigned int seconds, enum rt_how how)
{
	struct rt_run *run =
		mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec now;

	if (run == MAP_FAILED)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	run->server = server;
	run->pid = getpid();
	run->until = now.tv_sec + (time_t)seconds;
	run->how = how;
	run->history.nr = RT_THREADS * RT_OPS;
	pthread_barrier_init(&run->barrier, NULL, RT_THREADS);
	return run;
}

int rt_history(const char *server, uint64_t seed, unsigned int seconds, enum rt_how how)
{
	struct rt_run *run = rt_new_run(server, seconds, how);
	struct rt_thread threads[RT_THREADS] = { 0 };
	pthread_t ids[RT_THREADS];
	uint64_t unknown = 0;
	unsigned int i;

	if (!run)
		return 1;
	signal(SIGTERM, rt_on_term);
	for (i = 0; i < RT_THREADS; i++) {
		threads[i].run = run;
		threads[i].index = i;
		threads[i].random = seed * RT_THREADS + i + 1;
		if (pthread_create(&ids[i], NULL, rt_work, &threads[i]))
			return 1;
	}
	for (i = 0; i < RT_THREADS; i++) {
		pthread_join(ids[i], NULL);
		unknown += run->unknown[i];
	}
	printf("rounds=%u ops=%u failed=%u unknown=%" PRIu64 " killed=%u cut=%u violations=%u\n",
	       run->round, run->ops, run->failed, unknown, run->mortals, run->cut, run->violations);
	return run->violations || run->broken ? 1 : 0;
}
