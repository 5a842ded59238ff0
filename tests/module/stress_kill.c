// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: many processes, each killed with requests under way. What they
 * leave behind is counted from outside.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/stress.h"

#define ST_VICTIMS_MAX 64
#define ST_VICTIM_BYTES (64U << 10)
#define ST_VICTIM_DEPTH 8
#define ST_VICTIM_MS 60000

struct st_victim {
	pid_t pid;
	int says; /* a byte when it has requests under way */
};

/* Limits count until all of an earlier process is given back; so try again. */
static int st_victim_begin(struct krcore_node **ret_node, struct krcore_mr *ret_mr, void *mem,
			   uint32_t access)
{
	uint64_t limit = st_now_ms() + ST_VICTIM_MS;
	int err = -EDQUOT;

	while (err == -EDQUOT && st_now_ms() < limit) {
		err = krcore_node_open(NULL, ret_node);
		if (!err)
			err = krcore_mr_reg(*ret_node, mem, ST_VICTIM_BYTES, access, ret_mr);
		if (err == -EDQUOT) {
			krcore_node_close(*ret_node);
			*ret_node = NULL;
			usleep(20000);
		}
	}
	return err;
}

static void st_victim_run(const struct st_shared *shared, unsigned int number, int say)
{
	uint64_t random = shared->seed + number, limit = st_now_ms() + ST_VICTIM_MS;
	const struct st_peer *peer = &shared->peers[number % shared->nr_peers];
	void *mem = mmap(NULL, ST_VICTIM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	uint32_t access = KRCORE_ACCESS_LOCAL_WRITE |
			  (st_random(&random, 2) ? KRCORE_ACCESS_REMOTE_READ : 0);
	struct krcore_wr wrs[ST_VICTIM_DEPTH];
	struct krcore_node *node = NULL;
	struct krcore_wc wcs[ST_VICTIM_DEPTH];
	struct krcore_mr mr;
	uint32_t queue;
	unsigned int i;
	int err, taken;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = st_victim_begin(&node, &mr, mem, access);
	if (!err)
		err = krcore_queue_open(node, ST_VICTIM_DEPTH, &peer->key, 0, 0, &queue, NULL);
	for (i = 0; !err && i < ST_VICTIM_DEPTH; i++) {
		krcore_wr_write(&wrs[i], &mr, mem, 1 + (uint32_t)st_random(&random, 32768),
				&peer->region, st_bank_offset(number % ST_WORKERS_MAX), i);
		if (st_random(&random, 2))
			wrs[i].opcode = KRCORE_OP_READ;
	}
	while (!err && st_now_ms() < limit) {
		taken = krcore_post(node, queue, wrs, ST_VICTIM_DEPTH, NULL);
		if (taken > 0 && say >= 0) {
			err = write(say, "!", 1) == 1 ? 0 : -EIO;
			say = -1;
		}
		if (taken < 0 && taken != -EAGAIN)
			err = taken;
		for (taken = krcore_poll(node, wcs, 2); taken > 0 && !err; taken--)
			err = wcs[taken - 1].status;
	}
	printf("process %u was not killed: %s: %s\n", number, strerror(-err), krcore_error_text());
	fflush(stdout);
	_exit(1);
}

static int st_victim_start(struct st_shared *shared, unsigned int number, struct st_victim *victim)
{
	int ends[2];

	if (pipe(ends))
		return -errno;
	fflush(stdout);
	victim->pid = fork();
	if (!victim->pid) {
		close(ends[0]);
		st_victim_run(shared, number, ends[1]);
	}
	close(ends[1]);
	victim->says = ends[0];
	return victim->pid > 0 ? 0 : -errno;
}

/* Return: whether it was killed with requests under way. */
static bool st_victim_end(struct st_victim *victim, uint64_t pause_us)
{
	struct pollfd p = { .fd = victim->says, .events = POLLIN };
	bool busy = poll(&p, 1, ST_VICTIM_MS) == 1 && p.revents & POLLIN;
	int status = 0;

	usleep((useconds_t)pause_us);
	kill(victim->pid, SIGKILL);
	waitpid(victim->pid, &status, 0);
	close(victim->says);
	victim->pid = 0;
	return busy && WIFSIGNALED(status);
}

int st_kill(struct st_shared *shared, unsigned int count, unsigned int at_once)
{
	struct st_victim victims[ST_VICTIMS_MAX] = { { 0 } };
	uint64_t random = shared->seed, start = st_now_ms();
	unsigned int i, busy = 0, failed = 0;

	if (at_once > ST_VICTIMS_MAX || !at_once)
		at_once = ST_VICTIMS_MAX;
	printf("seed %llu, %u processes, %u at once\n", (unsigned long long)shared->seed, count,
	       at_once);
	for (i = 0; i < count + at_once; i++) {
		struct st_victim *victim = &victims[i % at_once];

		if (victim->pid > 0) {
			if (st_victim_end(victim, st_random(&random, 20000)))
				busy++;
			else
				failed++;
		}
		if (i < count && st_victim_start(shared, i, victim))
			failed++;
	}
	printf("killed=%u failed=%u ms=%llu\n", busy, failed,
	       (unsigned long long)(st_now_ms() - start));
	return busy != count;
}
