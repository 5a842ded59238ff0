// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: the supervisor. It starts workers, kills them at any moment and
 * starts others in their place, and at the end reads all that is left at the peers.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/stress.h"

#define ST_END_MS 120000 /* for workers to come to their end */
#define ST_TICK_MS 20

struct st_run {
	struct st_shared *shared;
	struct st_counts counts; /* the supervisor's own */
	pid_t pids[ST_WORKERS_MAX];
	uint64_t random;
	uint64_t kills;
	uint64_t next_kill_ms;
};

static uint64_t *st_end_ms;
static pid_t st_end_pid;

static void st_on_term(int number)
{
	(void)number;
	if (getpid() == st_end_pid)
		__atomic_store_n(st_end_ms, st_now_ms(), __ATOMIC_RELAXED);
}

void st_end_at_term(uint64_t *end_ms)
{
	st_end_ms = end_ms;
	st_end_pid = getpid();
	signal(SIGTERM, st_on_term); /* system calls go on */
}

static void st_start(struct st_run *run, unsigned int number)
{
	pid_t pid;

	run->shared->workers[number].incarnation++;
	fflush(stdout);
	pid = fork();
	if (!pid)
		st_work(run->shared, number);
	if (pid < 0)
		st_violation(&run->counts, "fork: %s", strerror(errno));
	run->pids[number] = pid > 0 ? pid : 0;
}

/* What a process had under way may be done for a while after it is gone. */
static void st_quarantine(struct st_worker *worker)
{
	unsigned int peer, nr;

	for (peer = 0; peer < ST_PEERS_MAX; peer++)
		for (nr = 0; nr < ST_BANKS; nr++)
			if (worker->banks[peer][nr].free_at_ms == UINT64_MAX)
				worker->banks[peer][nr].free_at_ms = st_now_ms() + ST_QUIET_MS;
}

static void st_kill_one(struct st_run *run)
{
	unsigned int number = (unsigned int)st_random(&run->random, run->shared->nr_workers);
	pid_t pid = run->pids[number];

	run->next_kill_ms = st_now_ms() + 200 + st_random(&run->random, 2500);
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	run->kills++;
	st_quarantine(&run->shared->workers[number]);
	st_start(run, number);
}

/* Workers that ended. Return: how many still run. */
static unsigned int st_reap(struct st_run *run)
{
	unsigned int i, running = 0;
	int status;

	for (i = 0; i < run->shared->nr_workers; i++) {
		if (run->pids[i] && waitpid(run->pids[i], &status, WNOHANG) == run->pids[i]) {
			run->pids[i] = 0;
			if (status)
				st_violation(&run->counts, "worker %u ended with status %#x", i,
					     status);
		}
		running += run->pids[i] != 0;
	}
	return running;
}

static void st_supervise(struct st_run *run, bool kills)
{
	unsigned int i;

	run->next_kill_ms = st_now_ms() + 2000;
	for (i = 0; i < run->shared->nr_workers; i++)
		st_start(run, i);
	/* when they have ended, what is dead comes back, so that it can be read */
	while ((st_reap(run) || st_peers_troubled(run->shared)) &&
	       st_now_ms() < run->shared->end_ms + ST_END_MS) {
		st_peers_told(run->shared, &run->counts, ST_TICK_MS);
		if (kills && st_now_ms() >= run->next_kill_ms && st_now_ms() < run->shared->end_ms)
			st_kill_one(run);
	}
	for (i = 0; i < run->shared->nr_workers; i++) {
		if (!run->pids[i])
			continue;
		st_violation(&run->counts, "worker %u does not end", i);
		kill(run->pids[i], SIGKILL);
		waitpid(run->pids[i], NULL, 0);
	}
}

/* READ what is there, by a queue of the supervisor's own. */
static int st_fetch(struct st_run *run, struct krcore_node *node, uint32_t queue,
		    const struct krcore_mr *mr, const struct st_peer *peer, uint64_t offset,
		    uint32_t length)
{
	struct krcore_wc wc;
	int err = krcore_post_read(node, queue, mr, (void *)(uintptr_t)mr->addr, length,
				   &peer->region, offset, offset);

	if (!err)
		err = krcore_wait(node, ST_LOST_MS);
	if (!err) {
		int got = krcore_poll(node, &wc, 1);

		err = got == 1 ? wc.status : got < 0 ? got : -ENODATA;
	}
	if (err)
		st_violation(&run->counts, "reading what is left: %s", strerror(-err));
	return err;
}

static void st_verify_span(struct st_run *run, uint32_t nr, const char *name,
			   const struct st_span *span, uint64_t value)
{
	if (value < span->low || value > span->high)
		st_violation(&run->counts, "%s %u is %llu, must be %llu to %llu", name, nr,
			     (unsigned long long)value, (unsigned long long)span->low,
			     (unsigned long long)span->high);
}

static void st_verify_bank(struct st_run *run, struct krcore_node *node, uint32_t queue,
			   const struct krcore_mr *mr, unsigned int peer, uint32_t nr)
{
	const struct st_bank *bank =
		&run->shared->workers[nr / ST_BANKS].banks[peer][nr % ST_BANKS];
	const uint64_t *got = (const uint64_t *)(uintptr_t)mr->addr;
	uint32_t wrong;

	if (st_fetch(run, node, queue, mr, &run->shared->peers[peer], st_bank_offset(nr),
		     ST_BANK_BYTES))
		return;
	run->counts.words += ST_WORDS;
	wrong = st_compare((const uint8_t *)got, bank, nr, 0, ST_WORDS, bank->acked);
	if (wrong)
		st_violation(&run->counts, "peer %u: what is left in bank %u: %u words wrong", peer,
			     nr, wrong);
	if (st_fetch(run, node, queue, mr, &run->shared->peers[peer], st_counter_offset(nr), 16))
		return;
	st_verify_span(run, nr, "FETCH_ADD counter of bank", &bank->add, got[0]);
	st_verify_span(run, nr, "CMP_SWAP counter of bank", &bank->swap, got[1]);
}

/* Return: how much of the common counter is unknown. */
static uint64_t st_verify_peer(struct st_run *run, struct krcore_node *node,
			       const struct krcore_mr *mr, unsigned int peer)
{
	uint32_t queue, nr, banks = run->shared->nr_workers * ST_BANKS;
	struct st_span sum = { 0 };

	if (krcore_queue_open(node, 1, &run->shared->peers[peer].key, 0, 0, &queue, NULL)) {
		st_violation(&run->counts, "at the end: %s", krcore_error_text());
		return 0;
	}
	for (nr = 0; nr < banks; nr++) {
		struct st_bank *bank =
			&run->shared->workers[nr / ST_BANKS].banks[peer][nr % ST_BANKS];

		st_bank_renew(bank, run->shared->peers[peer].generation);
		sum.low += bank->sum.low;
		sum.high += bank->sum.high;
		st_verify_bank(run, node, queue, mr, peer, nr);
	}
	if (!st_fetch(run, node, queue, mr, &run->shared->peers[peer], ST_SUM_OFFSET, 8))
		st_verify_span(run, peer, "common counter of peer", &sum,
			       *(const uint64_t *)(uintptr_t)mr->addr);
	return sum.high - sum.low;
}

static uint64_t st_verify(struct st_run *run)
{
	void *mem = mmap(NULL, ST_BANK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct krcore_node *node;
	uint64_t unknown = 0;
	struct krcore_mr mr;
	unsigned int i;

	if (krcore_node_open(NULL, &node) ||
	    krcore_mr_reg(node, mem, ST_BANK_BYTES, KRCORE_ACCESS_LOCAL_WRITE, &mr)) {
		st_violation(&run->counts, "at the end: %s", krcore_error_text());
		return 0;
	}
	for (i = 0; i < run->shared->nr_peers; i++)
		unknown += st_verify_peer(run, node, &mr, i);
	krcore_node_close(node);
	return unknown;
}

static void st_add(struct st_counts *sum, const struct st_counts *counts)
{
	const uint64_t *from = (const uint64_t *)counts;
	uint64_t *to = (uint64_t *)sum;
	size_t i;

	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

int st_run(struct st_shared *shared, unsigned int seconds, bool kills)
{
	static struct st_run run;
	struct st_counts *c = &run.counts;
	uint64_t unknown;
	unsigned int i;

	run.shared = shared;
	run.random = ~shared->seed;
	printf("seed %llu, %u processes, %u s, %u peers\n", (unsigned long long)shared->seed,
	       shared->nr_workers, seconds, shared->nr_peers);
	shared->end_ms = st_now_ms() + 1000ULL * seconds;
	st_end_at_term(&shared->end_ms);
	st_supervise(&run, kills);
	signal(SIGTERM, SIG_IGN);
	if (run.kills)
		usleep(1000 * ST_QUIET_MS);
	unknown = st_verify(&run);
	for (i = 0; i < shared->nr_workers; i++)
		st_add(c, &shared->workers[i].counts);
#define ST_SAY(name) printf(#name "=%llu ", (unsigned long long)c->name)
	ST_SAY(done);
	ST_SAY(bytes);
	ST_SAY(atomics);
	ST_SAY(words);
	ST_SAY(connects);
	ST_SAY(closes);
	ST_SAY(cancelled);
	ST_SAY(regions);
	ST_SAY(refused);
	ST_SAY(passed);
	ST_SAY(gone);
	ST_SAY(late);
	ST_SAY(excused);
	ST_SAY(orphaned);
	ST_SAY(doubted);
	printf("kills=%llu unknown=%llu violations=%llu\n", (unsigned long long)run.kills,
	       (unsigned long long)unknown, (unsigned long long)c->violations);
	return c->violations != 0;
}
