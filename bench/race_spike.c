// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A spike of load, met by more workers: one guest's part of it.
 *
 *	bench_race spike SYSTEM=TARGET RECORDS INTERVAL_MS FIRST MORE MORE SECONDS SECONDS SECONDS
 *
 * FIRST workers start; when all work, and the gate "begin" is open (bn_gate()), time counts from
 * 0. After the first SECONDS the first MORE are forked at once, after the next the others, and
 * after the last all end. The parent goes before its workers, so that all of them contend for the
 * processor from the same moment on. Each worker is a process and wants an operation (workload B)
 * each INTERVAL_MS, from a moment of its own; how long one takes counts from when it was wanted,
 * so that a worker that gets no processor shows. If one took longer than the interval, what was to
 * come meanwhile is left out. Prints one JSON object a worker, times in us: when it was forked,
 * when its first answer came, and when its operations were wanted and what they took.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/race.h"
#include "bench/samples.h"

#define BN_STAGES 3
#define BN_WORKERS_MAX 512
#define BN_SPIKE_OPS 8192
#define BN_NS_MS 1000000ULL
#define BN_NS_S 1000000000ULL

/**
 * struct bn_spiker - What a worker tells; its parent reads it in the end.
 * @stage: with which it was forked.
 * @forked_ns: when.
 * @ready_ns: when its first answer had come.
 * @nr: operations.
 * @wanted_ns: when each was wanted.
 * @took_ns: from then on.
 */
struct bn_spiker {
	unsigned int stage;
	uint64_t forked_ns, ready_ns, nr;
	uint64_t wanted_ns[BN_SPIKE_OPS], took_ns[BN_SPIKE_OPS];
};

/**
 * struct bn_spikes - All of them, in memory that the processes share.
 * @end_ns: when to stop; 0 while it is not known.
 * @workers: they.
 */
struct bn_spikes {
	uint64_t end_ns;
	struct bn_spiker workers[BN_WORKERS_MAX];
};

/**
 * struct bn_crowd - What the workers are told.
 * @to: system.
 * @z: records.
 * @interval_ns: between operations.
 * @shared: what they tell.
 * @pids: they.
 * @nr: how many.
 */
struct bn_crowd {
	struct bn_kv_target to;
	struct bn_zipf z;
	uint64_t interval_ns;
	struct bn_spikes *shared;
	pid_t pids[BN_WORKERS_MAX];
	unsigned int nr;
};

static void bn_sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static uint64_t bn_end_ns(const struct bn_crowd *crowd)
{
	return __atomic_load_n(&crowd->shared->end_ns, __ATOMIC_RELAXED);
}

static void bn_spike_worker(const struct bn_crowd *crowd, struct bn_spiker *me, uint64_t random)
{
	struct bn_ycsb_op op;
	struct bn_kv *kv;
	uint64_t wanted, now;

	setpriority(PRIO_PROCESS, 0, 0);
	kv = bn_kv_open(&crowd->to);
	bn_kv_get(kv, bn_zipf_next(&crowd->z, &random));
	__atomic_store_n(&me->ready_ns, bn_now_ns(), __ATOMIC_RELEASE);
	wanted = bn_now_ns() + bn_random(&random) % crowd->interval_ns;
	while (me->nr < BN_SPIKE_OPS && (!bn_end_ns(crowd) || wanted < bn_end_ns(crowd))) {
		bn_ycsb_draw('B', &crowd->z, &random, &op);
		bn_sleep_until(wanted);
		bn_ycsb_do(kv, &op);
		now = bn_now_ns();
		me->wanted_ns[me->nr] = wanted;
		me->took_ns[me->nr++] = now - wanted;
		do
			wanted += crowd->interval_ns;
		while (wanted < now);
	}
	bn_kv_close(kv);
	_exit(0);
}

static void bn_spike_more(struct bn_crowd *crowd, unsigned int more, unsigned int stage)
{
	struct bn_spiker *worker;

	for (; more; more--, crowd->nr++) {
		worker = &crowd->shared->workers[crowd->nr];
		worker->stage = stage;
		worker->forked_ns = bn_now_ns();
		crowd->pids[crowd->nr] = fork();
		if (crowd->pids[crowd->nr] < 0)
			bn_die("fork");
		if (!crowd->pids[crowd->nr])
			bn_spike_worker(crowd, worker,
					krp_mix64(crowd->nr + 1) ^ worker->forked_ns);
	}
}

/* All must have ended well. */
static void bn_spike_wait(const struct bn_crowd *crowd)
{
	unsigned int i;
	int status;

	for (i = 0; i < crowd->nr; i++) {
		if (waitpid(crowd->pids[i], &status, 0) == crowd->pids[i] && !status)
			continue;
		fprintf(stderr, "worker %u failed\n", i);
		exit(1);
	}
}

static void bn_spike_list(const char *name, const uint64_t *ns, uint64_t nr, uint64_t base)
{
	uint64_t i;

	printf(", \"%s\": [", name);
	for (i = 0; i < nr; i++)
		printf("%s%" PRId64, i ? "," : "", ((int64_t)ns[i] - (int64_t)base) / 1000);
	putchar(']');
}

static void bn_spike_print(const struct bn_crowd *crowd, uint64_t base)
{
	const struct bn_spiker *w;
	unsigned int i;

	for (i = 0; i < crowd->nr; i++) {
		w = &crowd->shared->workers[i];
		printf("{\"system\": \"%s\", \"stage\": %u, \"forked\": %" PRId64
		       ", \"ready\": %" PRId64,
		       crowd->to.system, w->stage, ((int64_t)w->forked_ns - (int64_t)base) / 1000,
		       ((int64_t)w->ready_ns - (int64_t)base) / 1000);
		bn_spike_list("wanted", w->wanted_ns, w->nr, base);
		bn_spike_list("took", w->took_ns, w->nr, 0);
		printf("}\n");
	}
}

static void bn_spike_ready(const struct bn_crowd *crowd)
{
	unsigned int i;

	for (i = 0; i < crowd->nr; i++)
		while (!__atomic_load_n(&crowd->shared->workers[i].ready_ns, __ATOMIC_ACQUIRE)) {
			if (waitpid(crowd->pids[i], NULL, WNOHANG)) {
				fprintf(stderr, "worker %u ended\n", i);
				exit(1);
			}
			usleep(10000);
		}
}

int bn_spike(int argc, char **argv)
{
	static struct bn_crowd crowd;
	unsigned int counts[BN_STAGES], stage, all = 0;
	uint64_t ends_ns[BN_STAGES], base;

	if (argc != 3 + 2 * BN_STAGES)
		return 2;
	bn_kv_target(argv[0], &crowd.to);
	bn_zipf_init(&crowd.z, bn_number(argv[1], 2, 1ULL << 30, "RECORDS"));
	crowd.interval_ns = bn_number(argv[2], 1, 60000, "INTERVAL_MS") * BN_NS_MS;
	for (stage = 0; stage < BN_STAGES; stage++) {
		counts[stage] =
			(unsigned int)bn_number(argv[3 + stage], 0, BN_WORKERS_MAX, "workers");
		ends_ns[stage] =
			bn_number(argv[3 + BN_STAGES + stage], 1, 600, "SECONDS") * BN_NS_S;
		if (stage)
			ends_ns[stage] += ends_ns[stage - 1];
		all += counts[stage];
	}
	crowd.shared = mmap(NULL, sizeof(*crowd.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all > BN_WORKERS_MAX || crowd.shared == MAP_FAILED)
		bn_die("too many workers");
	setpriority(PRIO_PROCESS, 0, -20);
	bn_spike_more(&crowd, counts[0], 0);
	bn_spike_ready(&crowd);
	bn_gate("begin");
	base = bn_now_ns();
	__atomic_store_n(&crowd.shared->end_ns, base + ends_ns[BN_STAGES - 1], __ATOMIC_RELAXED);
	for (stage = 1; stage < BN_STAGES; stage++) {
		bn_sleep_until(base + ends_ns[stage - 1]);
		bn_spike_more(&crowd, counts[stage], stage);
	}
	bn_spike_wait(&crowd);
	bn_spike_print(&crowd, base);
	return 0;
}
