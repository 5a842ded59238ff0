// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Torn-read stress: a writer at full rate, readers that copy in random 8-byte
 * steps, and a referee.
 *
 * A READ promises no order in which it samples memory, so each reader copies
 * the 32 words of a bucket in a random order, with pauses in random places.
 * The writer lets the table grow from one page through all doublings and
 * shrink again, round after round, each round a new incarnation of the server.
 *
 * The referee knows, for each key, the last change that was acknowledged and
 * the last that was begun. A look-up must answer with the state of some moment
 * between its start and its end:
 *   wrong value   a hit whose value the writer never wrote for that key
 *   backward      a hit older than what was acknowledged before the look-up
 *   ghost         a hit although the withdraw was acknowledged before
 *   false miss    a miss although the key was there all the time
 *   stray read    a READ outside the memory announced: a NIC would have broken
 *                 the connection
 *
 * With --expect-errors it exits 0 only if the referee found some, and ends when
 * it has: the build with KRP_WITHOUT_CHECKSUM runs so, to show that the stress
 * has teeth.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/table_fixture.h"

#define ROUND_KEYS 40000U
#define PERMANENT_KEYS 1500U /* put first and then only replaced */
#define ABSENT_KEYS 4000U
#define READERS_MAX 16

/*
 * State of a key as the referee sees it: version << 1 | present. @begun is
 * stored before the table is changed, @acked after.
 */
struct key_state {
	_Atomic __u32 begun;
	_Atomic __u32 acked;
};

struct counts {
	unsigned long lookups, hits, misses, gave_up, reads, roots;
	unsigned long wrong_value, backward, ghost, false_miss, stray_read;
};

struct reader {
	pthread_t thread;
	__u64 rnd;
	struct counts counts;
};

static struct tf_server server;
static struct key_state keys[ROUND_KEYS];
static _Atomic bool round_over;
static pthread_barrier_t round_start, round_end;
static _Atomic unsigned long lookups_done;
static unsigned long lookups_wanted = 10000000;
static _Atomic bool finished;
static struct ms_table_stats writer_stats; /* sums over all rounds */

static __u64 next_random(__u64 *rnd)
{
	*rnd += KRP_GOLDEN;
	return krp_mix64(*rnd);
}

/* ---- the hostile NIC ---- */

/*
 * In the middle of a copy. Seldom by giving the processor away: a reader that
 * always does gets one copy for each time slice of a writer that never does.
 */
static void hostile_pause(__u64 r)
{
	unsigned int spins = r & 0x7f;

	if (r >> 58 == 0)
		sched_yield();
	while (spins--)
		__asm__ volatile("" ::: "memory");
}

static void hostile_copy(void *to, const void *from, size_t bytes, void *arg)
{
	__u64 *rnd = arg, r = next_random(rnd);
	size_t words = bytes / sizeof(__u64), i, at;
	const __u64 *src = from;
	__u64 *dst = to;
	/* an odd step walks all words of a power of two, from anywhere */
	size_t step = (size_t)(r >> 8) | 1, start = (size_t)(r >> 40);
	size_t span = 1;

	while (span < words)
		span *= 2;
	for (i = 0; i < span; i++) {
		at = (start + i * step) & (span - 1);
		if (at < words)
			dst[at] = __atomic_load_n(&src[at], __ATOMIC_RELAXED);
		if ((r >> (i & 63) & 0x1f) == 0x1f)
			hostile_pause(r);
	}
}

/* ---- the referee ---- */

static void judge_hit(struct counts *c, __u32 before, __u32 after, long long version)
{
	if (version < 0)
		c->wrong_value++;
	else if (!(before & 1) && (__u32)version <= before >> 1 && before)
		c->ghost++;
	else if ((__u32)version < before >> 1)
		c->backward++;
	else if ((__u32)version > after >> 1)
		c->wrong_value++;
}

static void look_up_once(struct reader *r, struct tf_reader *tf)
{
	__u64 rnd = next_random(&r->rnd);
	__u32 id = (__u32)(rnd % (ROUND_KEYS + ABSENT_KEYS)), before = 0, after = 0;
	struct counts *c = &r->counts;
	struct krp_value value;
	struct krp_key key;
	int got;

	if (rnd >> 60 == 0)
		id %= PERMANENT_KEYS;
	tf_key(&key, id);
	if (id < ROUND_KEYS)
		before = atomic_load(&keys[id].acked);
	got = tf_lookup(tf, &key, &value);
	if (id < ROUND_KEYS)
		after = atomic_load(&keys[id].begun);

	c->lookups++;
	if (got == KRP_STEP_HIT) {
		c->hits++;
		judge_hit(c, before, after, tf_value_version(&value, id));
	} else if (got == KRP_STEP_MISS) {
		c->misses++;
		if (before & 1 && (before == after || id < PERMANENT_KEYS))
			c->false_miss++;
	} else if (got == -EAGAIN) {
		c->gave_up++; /* a real reader asks by message now */
	} else {
		c->stray_read++;
	}
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	for (;;) {
		struct tf_reader tf = { .copy = hostile_copy, .copy_arg = &r->rnd };
		unsigned int n = 0;

		pthread_barrier_wait(&round_start);
		if (atomic_load(&finished))
			return NULL;
		if (tf_reader_attach(&tf, &server) < 0)
			abort();
		while (!atomic_load_explicit(&round_over, memory_order_relaxed)) {
			look_up_once(r, &tf);
			if (++n % 1024 == 0)
				atomic_fetch_add(&lookups_done, 1024);
		}
		r->counts.reads += tf.reads;
		r->counts.roots += tf.roots;
		tf_reader_detach(&tf);
		pthread_barrier_wait(&round_end);
	}
}

/* ---- the writer ---- */

static void change(__u32 id, bool present)
{
	__u32 state = ((atomic_load(&keys[id].begun) >> 1) + 1) << 1 | present;
	struct krp_value value;
	struct krp_key key;
	int err;

	tf_key(&key, id);
	atomic_store(&keys[id].begun, state);
	if (present) {
		tf_value(&value, id, state >> 1);
		err = ms_table_put(server.table, &key, &value, id);
	} else {
		err = ms_table_del(server.table, &key);
	}
	if (err < 0 && err != -ENOENT) {
		fprintf(stderr, "writer: change of key %u: %s\n", id, strerror(-err));
		abort();
	}
	atomic_store(&keys[id].acked, state);
}

/* One incarnation of the server: grow from one page to all keys, then breathe. */
static void writer_round(__u64 *rnd, unsigned long until)
{
	bool growing = true;
	__u32 i, id;

	while (atomic_load(&lookups_done) < until) {
		for (i = 0; i < ROUND_KEYS && atomic_load(&lookups_done) < until; i++) {
			__u64 r = next_random(rnd);

			id = (__u32)(r % ROUND_KEYS);
			/* seven in eight changes go the way of this breath */
			change(id, id < PERMANENT_KEYS || (r >> 61 ? growing : !growing));
		}
		growing = !growing;
	}
}

static void round_begin(__u64 *rnd)
{
	struct ms_table_config config = { .incarnation = next_random(rnd) | 1,
					  .salt = next_random(rnd),
					  .log2_segment_pages = 7,
					  .segments_max = 512,
					  .depth_max = 18 };
	__u32 id;

	if (tf_server_init(&server, &config) < 0)
		abort();
	for (id = 0; id < ROUND_KEYS; id++) {
		atomic_store(&keys[id].begun, 0);
		atomic_store(&keys[id].acked, 0);
	}
	for (id = 0; id < PERMANENT_KEYS; id++)
		change(id, true);
	atomic_store(&round_over, false);
}

static void round_finish(void)
{
	struct ms_table_stats s;

	ms_table_stats(server.table, &s);
	writer_stats.bucket_writes += s.bucket_writes;
	writer_stats.reseeds += s.reseeds;
	writer_stats.splits += s.splits;
	writer_stats.merges += s.merges;
	writer_stats.doublings += s.doublings;
	tf_server_exit(&server);
}

static unsigned long errors_of(const struct counts *c)
{
	return c->wrong_value + c->backward + c->ghost + c->false_miss + c->stray_read;
}

static int report(const struct counts *c, unsigned int rounds, double seconds)
{
	printf("torn_read: %lu look-ups (%lu hits, %lu misses, %lu gave up) in %.1f s, "
	       "%.3f READs a look-up, %lu roots read\n",
	       c->lookups, c->hits, c->misses, c->gave_up, seconds,
	       (double)c->reads / (double)c->lookups, c->roots);
	printf("torn_read: meanwhile %u incarnations of the table, %llu bucket writes, "
	       "%llu reseeds, %llu splits, %llu merges, %llu doublings\n",
	       rounds, (unsigned long long)writer_stats.bucket_writes,
	       (unsigned long long)writer_stats.reseeds, (unsigned long long)writer_stats.splits,
	       (unsigned long long)writer_stats.merges, (unsigned long long)writer_stats.doublings);
	printf("torn_read: %lu wrong values, %lu backward, %lu ghosts, %lu false misses, "
	       "%lu stray reads\n",
	       c->wrong_value, c->backward, c->ghost, c->false_miss, c->stray_read);
	return errors_of(c) ? 1 : 0;
}

static void counts_add(struct counts *to, const struct counts *from)
{
	unsigned long *t = (unsigned long *)to;
	const unsigned long *f = (const unsigned long *)from;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

static void usage(void)
{
	fprintf(stderr, "usage: torn_read [--lookups N] [--readers N] [--seed N] "
			"[--expect-errors]\n");
	exit(2);
}

/* What the command line asks for, beside lookups_wanted. */
struct torn_options {
	unsigned int readers;
	__u64 seed;
	bool expect_errors;
};

static struct torn_options parse_options(int argc, char **argv)
{
	static const struct option options[] = { { "lookups", required_argument, NULL, 'l' },
						 { "readers", required_argument, NULL, 'r' },
						 { "seed", required_argument, NULL, 's' },
						 { "expect-errors", no_argument, NULL, 'e' },
						 { NULL, 0, NULL, 0 } };
	struct torn_options o = { .readers = 3, .seed = 1 };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'l')
			lookups_wanted = strtoul(optarg, NULL, 10);
		else if (opt == 'r')
			o.readers = (unsigned int)strtoul(optarg, NULL, 10);
		else if (opt == 's')
			o.seed = strtoull(optarg, NULL, 10);
		else if (opt == 'e')
			o.expect_errors = true;
		else
			usage();
	}
	if (optind != argc || !lookups_wanted || !o.readers || o.readers > READERS_MAX)
		usage();
	return o;
}

/* Rounds until the readers have done what is wanted; returns how many. */
static unsigned int rounds_run(const struct torn_options *o, __u64 *rnd,
			       const struct reader *readers)
{
	unsigned int rounds = 0, i;
	bool failed = false;

	while (atomic_load(&lookups_done) < lookups_wanted && !(o->expect_errors && failed)) {
		unsigned long part = lookups_wanted / 10 + 1;

		round_begin(rnd);
		pthread_barrier_wait(&round_start);
		writer_round(rnd, atomic_load(&lookups_done) + part);
		atomic_store(&round_over, true);
		pthread_barrier_wait(&round_end);
		round_finish();
		rounds++;
		/* between two rounds the readers' counts stand still */
		for (i = 0; i < o->readers; i++)
			failed |= errors_of(&readers[i].counts) != 0;
	}
	atomic_store(&finished, true);
	pthread_barrier_wait(&round_start);
	return rounds;
}

int main(int argc, char **argv)
{
	static struct reader readers[READERS_MAX];
	struct torn_options o = parse_options(argc, argv);
	unsigned int rounds, i;
	struct counts sum = { 0 };
	struct timespec t0, t1;
	__u64 rnd = o.seed;
	bool failed;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	pthread_barrier_init(&round_start, NULL, o.readers + 1);
	pthread_barrier_init(&round_end, NULL, o.readers + 1);
	for (i = 0; i < o.readers; i++) {
		readers[i].rnd = next_random(&rnd);
		if (pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]))
			abort();
	}
	rounds = rounds_run(&o, &rnd, readers);
	for (i = 0; i < o.readers; i++) {
		pthread_join(readers[i].thread, NULL);
		counts_add(&sum, &readers[i].counts);
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);

	failed = report(&sum, rounds,
			(double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
	if (o.expect_errors) {
		printf("torn_read: errors were expected and %s\n",
		       failed ? "found" : "NOT found: the stress has no teeth");
		return !failed;
	}
	return failed;
}
