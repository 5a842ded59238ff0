// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: the clients of a lock on one node, a process each, and what they have
 * counted.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/stress_lock.h"

static pid_t st_lock_start(struct st_lock_run *run, unsigned int number)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	st_lock_client(run, number);
	_exit(run->counts[number].violations != 0);
}

static void st_lock_add(struct st_lock_counts *sum, const struct st_lock_counts *counts)
{
	uint64_t last = counts->last > sum->last ? counts->last : sum->last;
	const uint64_t *from = (const uint64_t *)counts;
	uint64_t *to = (uint64_t *)sum;
	size_t i;

	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
	sum->last = last;
}

int st_lock(struct st_lock_run *run, unsigned int seconds, unsigned int processes)
{
	struct st_lock_counts sum = { 0 };
	pid_t pids[ST_WORKERS_MAX];
	unsigned int i;

	printf("seed %llu, clients %u to %u, %u s\n", (unsigned long long)run->seed, run->first,
	       run->first + processes - 1, seconds);
	run->end_ms = st_now_ms() + 1000ULL * seconds;
	st_end_at_term(&run->end_ms);
	for (i = 0; i < processes; i++)
		pids[i] = st_lock_start(run, i);
	for (i = 0; i < processes; i++) {
		int status = -1;

		/* each has an end of its own, also if nobody answers it any more */
		if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0 || status)
			printf("VIOLATION: client %u ended with status %#x\n", run->first + i,
			       (unsigned int)status);
		sum.violations += status && !run->counts[i].violations;
		st_lock_add(&sum, &run->counts[i]);
	}
#define ST_SAY(name) printf(#name "=%llu ", (unsigned long long)sum.name)
	ST_SAY(taken);
	ST_SAY(busy);
	ST_SAY(doubted);
	ST_SAY(doubted_gives);
	ST_SAY(done);
	ST_SAY(undone);
	ST_SAY(connects);
	ST_SAY(opens);
	ST_SAY(last);
	printf("violations=%llu\n", (unsigned long long)sum.violations);
	return sum.violations != 0;
}
