// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How long it takes to be connected.
 *
 *	bench_connect WAY TARGET CASE SAMPLES
 *	bench_connect WAY TARGET rate THREADS SECONDS
 *	bench_connect spawn SAMPLES PROGRAM [ARGUMENT]	fresh_process of such a program
 *
 * WAY is krcore, rdma_cm or verbs; TARGET is what bench_connect_server stands
 * for, see way.h. Cases, each sample until the last thing named has happened:
 *	connect		a connection; krcore: the peer is in the node's cache
 *	lookup		krcore: a connection, with one look-up at a MetaServer
 *	first_byte	a connection (krcore: with a look-up) and a READ over it
 *	first_byte_cached  krcore: the same without the look-up
 *	first_contact	first_byte, from the first sample on: the caller sees to it that the
 *			node does not know the peer
 *	fresh_process	a new process that does first_byte
 *	once		what such a process does
 *	rate		connections a second by some threads at once, each closed before the next
 * What connections share is made before. Taking one down is counted in rate alone.
 */
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/meter.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_WARM 5
#define BN_THREADS_MAX 64

static void bn_latency(const struct bn_way *ops, const char *target, const char *what,
		       uint64_t samples)
{
	int contact = !strcmp(what, "first_contact");
	int fresh = contact || !strcmp(what, "lookup") || !strcmp(what, "first_byte");
	int with_read = contact || !strncmp(what, "first_byte", strlen("first_byte"));
	unsigned int flags = fresh ? BN_WAY_FRESH : 0;
	uint64_t warm = contact ? 0 : BN_WARM;
	void *way = ops->open(target);
	struct bn_samples took;
	uint64_t i, begin_ns;

	if (bn_samples_init(&took, samples))
		bn_die("memory");
	for (i = 0; i < warm + samples; i++) {
		begin_ns = bn_now_ns();
		BN_MARK(BEGIN);
		ops->connect(way, flags);
		if (with_read)
			ops->read(way);
		BN_MARK(END);
		if (i >= warm)
			bn_samples_add(&took, bn_now_ns() - begin_ns);
		ops->close(way);
	}
	bn_samples_print(&took, ops->name, what, 0, 0);
	bn_samples_done(&took);
	ops->done(way);
}

/* What a fresh process does; tells its parent as soon as it has read. */
static void bn_once(const struct bn_way *ops, const char *target)
{
	void *way = ops->open(target);

	ops->connect(way, BN_WAY_FRESH);
	ops->read(way);
	BN_MARK(END);
	if (write(STDOUT_FILENO, "", 1) != 1)
		bn_die("pipe");
	ops->close(way);
	ops->done(way);
}

static uint64_t bn_spawn(const char *path, char *const *args)
{
	posix_spawn_file_actions_t actions;
	uint64_t begin_ns, took_ns;
	int fds[2], status;
	char byte;
	pid_t pid;

	if (pipe(fds))
		bn_die("pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	begin_ns = bn_now_ns();
	BN_MARK(BEGIN); /* it ends in the new process */
	if (posix_spawn(&pid, path, &actions, NULL, args, environ))
		bn_die("spawn");
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		byte = 1;
	took_ns = bn_now_ns() - begin_ns;
	close(fds[0]);
	posix_spawn_file_actions_destroy(&actions);
	if (waitpid(pid, &status, 0) != pid || status || byte) {
		fprintf(stderr, "the process failed\n");
		exit(1);
	}
	return took_ns;
}

static void bn_fresh(const char *name, const char *path, char *const *args, uint64_t samples)
{
	struct bn_samples took;
	uint64_t i;

	if (bn_samples_init(&took, samples))
		bn_die("memory");
	bn_spawn(path, args);
	for (i = 0; i < samples; i++)
		bn_samples_add(&took, bn_spawn(path, args));
	bn_samples_print(&took, name, "fresh_process", 0, 0);
	bn_samples_done(&took);
}

/* One thread of `rate`: as fast as it can between the two moments. */
struct bn_worker {
	const struct bn_way *ops;
	const char *target;
	pthread_barrier_t *ready;
	uint64_t seconds;
	uint64_t done;
	pthread_t thread;
};

static void *bn_work(void *arg)
{
	struct bn_worker *worker = arg;
	void *way = worker->ops->open(worker->target);
	uint64_t end_ns;

	worker->ops->connect(way, 0);
	worker->ops->close(way);
	pthread_barrier_wait(worker->ready);
	end_ns = bn_now_ns() + worker->seconds * 1000000000ULL;
	do {
		worker->ops->connect(way, 0);
		worker->ops->close(way);
		worker->done++;
	} while (bn_now_ns() < end_ns);
	worker->ops->done(way);
	return NULL;
}

static void bn_rate(const struct bn_way *ops, const char *target, unsigned int threads,
		    uint64_t seconds)
{
	static struct bn_worker workers[BN_THREADS_MAX];
	uint64_t begin_ns, done = 0;
	pthread_barrier_t ready;
	double took_s;
	unsigned int i;

	pthread_barrier_init(&ready, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		workers[i].ops = ops;
		workers[i].target = target;
		workers[i].ready = &ready;
		workers[i].seconds = seconds;
		if (pthread_create(&workers[i].thread, NULL, bn_work, &workers[i]))
			bn_die("thread");
	}
	pthread_barrier_wait(&ready);
	begin_ns = bn_now_ns();
	for (i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		done += workers[i].done;
	}
	took_s = (double)(bn_now_ns() - begin_ns) / 1e9;
	printf("{\"system\": \"%s\", \"case\": \"rate\", \"threads\": %u, \"n\": %" PRIu64
	       ", \"per_second\": %.3f}\n",
	       ops->name, threads, done, (double)done / took_s);
}

int main(int argc, char **argv)
{
	const struct bn_way *ops = argc > 4 ? bn_way_find(argv[1]) : NULL;
	static const char *const cases[] = { "connect", "lookup", "first_byte", "first_byte_cached",
					     "first_contact" };
	char *const once[] = { argv[0],
			       argc > 1 ? argv[1] : NULL,
			       argc > 2 ? argv[2] : NULL,
			       (char[]){ "once" },
			       (char[]){ "1" },
			       NULL };
	unsigned int i;

	if (ops && argc == 6 && !strcmp(argv[3], "rate")) {
		bn_rate(ops, argv[2],
			(unsigned int)bn_number(argv[4], 1, BN_THREADS_MAX, "THREADS"),
			bn_number(argv[5], 1, 3600, "SECONDS"));
		return 0;
	}
	if (ops && argc == 5 && !strcmp(argv[3], "once")) {
		bn_once(ops, argv[2]);
		return 0;
	}
	if (ops && argc == 5 && !strcmp(argv[3], "fresh_process")) {
		bn_fresh(ops->name, "/proc/self/exe", once,
			 bn_number(argv[4], 1, 1000000, "SAMPLES"));
		return 0;
	}
	if (argc >= 4 && !strcmp(argv[1], "spawn")) {
		bn_fresh(argv[3], argv[3], argv + 3, bn_number(argv[2], 1, 1000000, "SAMPLES"));
		return 0;
	}
	for (i = 0; ops && argc == 5 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[3], cases[i]))
			continue;
		bn_latency(ops, argv[2], argv[3], bn_number(argv[4], 1, 10000000, "SAMPLES"));
		return 0;
	}
	fprintf(stderr,
		"usage: %s krcore|rdma_cm|verbs TARGET CASE SAMPLES\n"
		"       %s krcore|rdma_cm|verbs TARGET rate THREADS SECONDS\n"
		"       %s spawn SAMPLES PROGRAM [ARGUMENT]\n",
		argv[0], argv[0], argv[0]);
	return 2;
}
