// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two programs that share a node: a good one, which says how long its READs take, and a bad
 * one, which does what it can, without rights, to have peers that do not answer stand in the
 * way of the good one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/krp_mrdir.h"
#include "tests/module/dev.h"

#define TENANT_THREADS 4
#define TENANT_PERIOD_US 40000
#define TENANT_TIMEOUT_MS 120000
#define TENANT_SAMPLES_MAX 65536

#define SIEGE_THREADS 64
#define LIE_THREADS 16
#define LIE_NEXT 0x10001 /* LIAR_NEXT of tests/cluster/bin/liar.c */
#define LIE_PAUSE_US 1000
#define FLOOD_THREADS 8
#define FLOOD_DEPTH 128U
#define FLOOD_BATCH 32U
#define TRICKLE_DEPTH 3U
/* Of each READ: a trace tells by it whose that is. Entries of directories have 64. */
#define TENANT_BYTES 32
#define FLOOD_BYTES 96
#define SIEGE_PAUSE_US 500000 /* which task has the processors is another matter */
#define SIEGE_SERVICES 256 /* what a user may bind */
#define SIEGE_FIRST_SERVICE 20000

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_until_us(uint64_t at)
{
	struct timespec t = { .tv_sec = (time_t)(at / 1000000),
			      .tv_nsec = (long)(at % 1000000) * 1000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/**
 * struct tenant - A thread of the good program.
 * @thread: it.
 * @peer: whom it READs from.
 * @until_us: when it ends.
 * @taken_us: how long each READ took, from the moment at which it was to begin.
 * @count: READs.
 * @errors: those that failed, or were refused.
 * @error: the last of these.
 */
struct tenant {
	pthread_t thread;
	const struct dev_peer *peer;
	uint64_t until_us;
	uint32_t *taken_us;
	unsigned int count, errors;
	int error;
};

/*
 * A READ is due at every period, whatever became of the one before: what was late because
 * that one was has waited, too.
 */
static void *tenant_thread(void *arg)
{
	struct tenant *me = arg;
	struct dev_region local;
	uint64_t due_us;
	struct dev dev;
	uint32_t queue;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 16, me->peer);
	for (due_us = now_us(); due_us < me->until_us && me->count < TENANT_SAMPLES_MAX;
	     due_us += TENANT_PERIOD_US) {
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, me->peer->ro, me->peer->ro_addr,
					  TENANT_BYTES);
		struct krp_cqe cqe = { 0 };
		int err;

		sleep_until_us(due_us);
		err = dev_post(&dev, queue, &wr, 1, NULL);
		if (err == 1)
			err = dev_reap(&dev, &cqe, TENANT_TIMEOUT_MS) ? cqe.status : -ETIME;
		if (err) {
			me->errors++;
			me->error = err;
			break;
		}
		me->taken_us[me->count++] = (uint32_t)(now_us() - due_us);
	}
	dev_close(&dev);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* One line for all threads. */
static int tenant_report(struct tenant *tenants)
{
	uint32_t *all = calloc(TENANT_THREADS * TENANT_SAMPLES_MAX, sizeof(*all));
	unsigned int n = 0, errors = 0, i;
	int error = 0;

	if (!all)
		return 1;
	for (i = 0; i < TENANT_THREADS; i++) {
		memcpy(all + n, tenants[i].taken_us, tenants[i].count * sizeof(*all));
		n += tenants[i].count;
		errors += tenants[i].errors;
		error = tenants[i].errors ? tenants[i].error : error;
	}
	qsort(all, n, sizeof(*all), by_size);
	printf("done=%u errors=%u last_error=%d p50_us=%u p99_us=%u max_us=%u\n", n, errors, error,
	       n ? all[n / 2] : 0, n ? all[n * 99ULL / 100] : 0, n ? all[n - 1] : 0);
	free(all);
	return errors || !n;
}

int tenant(const struct dev_peer *peer, unsigned int seconds)
{
	struct tenant tenants[TENANT_THREADS] = { 0 };
	unsigned int i;
	int ret;

	for (i = 0; i < TENANT_THREADS; i++) {
		tenants[i].peer = peer;
		tenants[i].until_us = now_us() + seconds * 1000000ULL;
		tenants[i].taken_us = calloc(TENANT_SAMPLES_MAX, sizeof(uint32_t));
		if (!tenants[i].taken_us ||
		    pthread_create(&tenants[i].thread, NULL, tenant_thread, &tenants[i]))
			return 1;
	}
	for (i = 0; i < TENANT_THREADS; i++)
		pthread_join(tenants[i].thread, NULL);
	ret = tenant_report(tenants);
	for (i = 0; i < TENANT_THREADS; i++)
		free(tenants[i].taken_us);
	return ret;
}

/* Ask MetaServers for what is not there, with less time than they may take. */
int hasty(const struct dev_peer *peer, unsigned int count)
{
	unsigned int i, late = 0, other = 0;
	struct dev dev;
	uint32_t queue;

	dev_open_or_die(&dev, 64);
	if (dev_queue(&dev, 4, &queue))
		return 1;
	for (i = 0; i < count; i++) {
		struct krp_connect connect = { .queue = queue,
					       .flags = KRP_CONNECT_FRESH,
					       .service = peer->service,
					       .timeout_ms = 1 };
		int err;

		memcpy(connect.gid, peer->gid, sizeof(connect.gid));
		err = dev_ioctl(dev.fd, KRP_IOC_CONNECT, &connect);
		late += err == -ETIMEDOUT;
		other += err != -ETIMEDOUT && err != -ENOENT;
	}
	dev_close(&dev);
	printf("late=%u other=%u\n", late, other);
	return other != 0;
}

/**
 * struct siege - What the threads of the bad program share.
 * @peer: silent.
 * @flags: of each connect.
 * @targets: services from that of @peer on, all of them silent.
 * @round: counts what was tried.
 * @answered: requests that did not fail, of which there must be none.
 */
struct siege {
	struct dev_peer peer;
	uint32_t flags;
	unsigned int targets;
	atomic_uint thread, round, answered;
};

/* Connect to a silent peer and ask it for memory that it has perhaps; again and again. */
static void *siege_thread(void *arg)
{
	struct siege *siege = arg;
	unsigned int me = atomic_fetch_add(&siege->thread, 1);
	struct dev_peer peer = siege->peer;
	struct dev_region local;
	struct dev dev;

	peer.service = (uint16_t)(peer.service + me % siege->targets);
	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	for (;;) {
		uint64_t token = krp_mix64(atomic_fetch_add(&siege->round, 1)) |
				 1ULL << KRP_MRDIR_LOG2_MAX;
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, token, 4096, 64);
		struct krp_cqe cqe;
		uint32_t queue;

		if (!dev_queue_open(&dev, 16, &peer, siege->flags, &queue)) {
			if (dev_post(&dev, queue, &wr, 1, NULL) == 1 &&
			    dev_reap(&dev, &cqe, TENANT_TIMEOUT_MS) && !cqe.status)
				atomic_fetch_add(&siege->answered, 1);
			dev_queue_close(&dev, queue);
		}
		usleep(SIEGE_PAUSE_US);
	}
	return NULL;
}

/* Go to more peers than a node keeps when nobody uses them: itself, by 256 names. */
static void *siege_evict(void *arg)
{
	struct krp_port_info info = { .index = 1 };
	struct dev_peer peer = { 0 };
	unsigned int i;
	struct dev dev;

	(void)arg;
	dev_open_or_die(&dev, 64);
	if (dev_ioctl(dev.fd, KRP_IOC_PORT, &info))
		exit(1);
	memcpy(peer.gid, info.gid, sizeof(peer.gid));
	for (i = 0; i < SIEGE_SERVICES; i++) {
		if (dev_bind(dev.fd, (uint16_t)(SIEGE_FIRST_SERVICE + i), 0))
			break;
	}
	printf("bound=%u\n", i);
	fflush(stdout);
	for (;;) {
		uint32_t queue;

		peer.service = (uint16_t)(SIEGE_FIRST_SERVICE + --i);
		if (!dev_queue_open(&dev, 4, &peer, 0, &queue))
			dev_queue_close(&dev, queue);
		if (!i) {
			i = SIEGE_SERVICES;
			usleep(SIEGE_PAUSE_US);
		}
	}
	return NULL;
}

static int siege(const struct dev_peer *peer, uint32_t flags, unsigned int targets, int evict,
		 unsigned int seconds)
{
	struct siege siege = { .peer = *peer, .flags = flags, .targets = targets };
	unsigned int i, threads = evict ? TENANT_THREADS : SIEGE_THREADS;
	pthread_t thread;

	if (evict && pthread_create(&thread, NULL, siege_evict, NULL))
		return 1;
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, siege_thread, &siege))
			return 1;
	for (i = 0; i < seconds; i++) { /* it may be killed at any time */
		sleep(1);
		printf("rounds=%u answered=%u\n", atomic_load(&siege.round),
		       atomic_load(&siege.answered));
		fflush(stdout);
	}
	_exit(atomic_load(&siege.answered) != 0); /* threads may be under way for long */
}

int siege_plain(const struct dev_peer *peer, unsigned int seconds)
{
	return siege(peer, 0, 1, 0, seconds);
}

int siege_fresh(const struct dev_peer *peer, unsigned int seconds)
{
	return siege(peer, KRP_CONNECT_FRESH, 1, 0, seconds);
}

int siege_services(const struct dev_peer *peer, unsigned int seconds)
{
	return siege(peer, 0, 1, 1, seconds);
}

int siege_rack(const struct dev_peer *peer, unsigned int seconds)
{
	return siege(peer, 0, SIEGE_RACK, 0, seconds);
}

/**
 * struct lies - What the threads that ask a lying peer share.
 * @peer: its directory has an entry for each thread: the token of @peer is the first one's, and they
 *	are LIE_NEXT apart.
 * @thread: how many have begun.
 * @refused: READs that its NIC refused.
 * @silent: that it was not asked for.
 * @other: that ended otherwise, of which there must be none.
 */
struct lies {
	struct dev_peer peer;
	atomic_uint thread, refused, silent, other;
};

/* READ what the peer's directory allows, with a new queue each time. */
static void *lies_thread(void *arg)
{
	struct lies *lies = arg;
	uint64_t token = lies->peer.rw + atomic_fetch_add(&lies->thread, 1) * LIE_NEXT;
	struct dev_region local;
	struct dev dev;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	for (;;) {
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, token, lies->peer.rw_addr, 64);
		uint32_t queue;
		int err = dev_queue_open(&dev, 16, &lies->peer, 0, &queue);

		if (!err) {
			err = dev_do(&dev, queue, &wr);
			dev_queue_close(&dev, queue);
		}
		atomic_fetch_add(err == -EREMOTEIO   ? &lies->refused
				 : err == -ETIMEDOUT ? &lies->silent
						     : &lies->other,
				 1);
		usleep(LIE_PAUSE_US);
	}
	return NULL;
}

int lies(const struct dev_peer *peer, unsigned int seconds)
{
	struct lies lies = { .peer = *peer };
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < LIE_THREADS; i++)
		if (pthread_create(&thread, NULL, lies_thread, &lies))
			return 1;
	sleep(seconds);
	printf("refused=%u silent=%u other=%u\n", atomic_load(&lies.refused),
	       atomic_load(&lies.silent), atomic_load(&lies.other));
	fflush(stdout);
	_exit(atomic_load(&lies.other) != 0); /* threads may be under way */
}

/**
 * struct flood - What the threads of a program share that always has READs under way.
 * @peer: whom they READ from.
 * @depth: how many each of them has.
 * @batch: posted at once, at most FLOOD_BATCH.
 * @end_ms: when it ends.
 * @done: READs that succeeded.
 * @failed: others.
 */
struct flood {
	const struct dev_peer *peer;
	unsigned int depth, batch;
	uint64_t end_ms;
	atomic_uint done, failed;
};

static void *flood_thread(void *arg)
{
	struct krp_wr wrs[FLOOD_BATCH];
	struct flood *flood = arg;
	struct dev_region local;
	unsigned int busy = 0, i;
	struct krp_cqe cqe;
	struct dev dev;
	uint32_t queue;
	int n;

	dev_open_or_die(&dev, 2 * FLOOD_DEPTH);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, FLOOD_DEPTH, flood->peer);
	for (i = 0; i < flood->batch; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &local, FLOOD_BYTES * i, flood->peer->rw,
				flood->peer->rw_addr, FLOOD_BYTES);
	while (!dev_over(flood->end_ms)) {
		if (busy + flood->batch <= flood->depth) {
			n = dev_post(&dev, queue, wrs, flood->batch, NULL);
			if (n <= 0) { /* a request has failed, and so the queue has */
				atomic_fetch_add(&flood->failed, 1);
				break;
			}
			busy += (unsigned int)n;
		} else if (dev_reap(&dev, &cqe, 1000)) {
			busy--;
			atomic_fetch_add(cqe.status ? &flood->failed : &flood->done, 1);
		}
	}
	dev_close(&dev);
	return NULL;
}

/* Run so many threads, at most FLOOD_THREADS. Return: the program's status. */
static int flood_run(struct flood *flood, unsigned int nr, unsigned int seconds)
{
	pthread_t threads[FLOOD_THREADS];
	unsigned int i, made;

	flood->end_ms = dev_end_ms(seconds);
	for (made = 0; made < nr; made++)
		if (pthread_create(&threads[made], NULL, flood_thread, flood))
			break;
	for (i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	printf("done=%u failed=%u\n", atomic_load(&flood->done), atomic_load(&flood->failed));
	return made < nr;
}

int flood(const struct dev_peer *peer, unsigned int seconds)
{
	struct flood all = { .peer = peer, .depth = FLOOD_DEPTH, .batch = FLOOD_BATCH };

	return flood_run(&all, FLOOD_THREADS, seconds);
}

int trickle(const struct dev_peer *peer, unsigned int seconds)
{
	struct flood few = { .peer = peer, .depth = TRICKLE_DEPTH, .batch = 1 };

	return flood_run(&few, 1, seconds);
}
