// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Requests that come too late: a reader stands still, with its clock, while the memory that it
 * writes to is taken back, and goes on with references that have long ended. Meanwhile another
 * program has memory at the same addresses, whose keys have the places of those that are gone.
 * None of its bytes may change.
 *
 * The lender is told by lines of a pipe: "turn" takes the memory from one program and gives
 * its place to another; "look" has that one say whether it was touched, and begins again.
 *
 * Threads: none. Processes: the lender, and one that owns the memory just now.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define LATE_REGIONS 64U
#define LATE_PAGE 4096U
#define LATE_PLACE 0x600000000000ULL
#define LATE_VARIANTS 256U /* how many keys differ by what is not their place */
#define LATE_GONE_MS 1500 /* after this, all keys of a program that ended are gone */
#define LATE_STRANGER 0x11 /* fills memory that nobody may write to */
#define LATE_WRITTEN 0xee
#define LATE_QUEUES 8U
#define LATE_DEPTH 64U

/* What readers READ: tokens of the memory that there is, if @round is not 0. */
struct late_board {
	_Alignas(8) uint64_t round;
	uint64_t tokens[LATE_REGIONS];
};

static uint8_t *late_map(void)
{
	void *mem = mmap((void *)(uintptr_t)LATE_PLACE, LATE_REGIONS * LATE_PAGE,
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			 -1, 0);

	if (mem == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return mem;
}

static void late_register(struct dev *dev, uint8_t *mem, uint64_t *ret_tokens)
{
	struct dev_region region;
	unsigned int i;

	for (i = 0; i < LATE_REGIONS; i++) {
		int err = dev_register(dev, mem + (size_t)i * LATE_PAGE, LATE_PAGE,
				       KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_WRITE, &region);

		if (err) {
			fprintf(stderr, "region %u: %s\n", i, strerror(-err));
			exit(1);
		}
		ret_tokens[i] = region.token;
	}
}

/* The process that lends memory first; ends when it is killed. */
static void late_lend(struct late_board *board, uint64_t round)
{
	struct dev dev;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dev_open_or_die(&dev, 16);
	late_register(&dev, late_map(), board->tokens);
	__atomic_store_n(&board->round, round, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static unsigned int late_changed(const uint8_t *mem)
{
	unsigned int i, changed = 0;

	for (i = 0; i < LATE_REGIONS * LATE_PAGE; i++)
		changed += mem[i] != LATE_STRANGER;
	return changed;
}

/* The other one: so many keys are made and destroyed before that the names come around. */
static void late_stranger(int ready, int asked)
{
	static uint64_t tokens[LATE_REGIONS];
	struct dev_region region;
	unsigned int i, changed;
	uint8_t *mem;
	struct dev dev;
	char word;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dev_open_or_die(&dev, 16);
	mem = late_map();
	memset(mem, LATE_STRANGER, LATE_REGIONS * LATE_PAGE);
	for (i = 0; i < LATE_VARIANTS - LATE_REGIONS; i++)
		if (dev_register(&dev, mem, LATE_PAGE, 0, &region) ||
		    dev_deregister(&dev, region.handle))
			exit(1);
	late_register(&dev, mem, tokens);
	if (write(ready, "r", 1) != 1 || read(asked, &word, 1) != 1)
		exit(1);
	changed = late_changed(mem);
	if (write(ready, &changed, sizeof(changed)) != sizeof(changed))
		exit(1);
	exit(0);
}

static void late_end(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static pid_t late_fork(void)
{
	fflush(stdout);
	return fork();
}

int late_serve(const char *pipe_name)
{
	int ready[2], asked[2];
	struct dev_region region;
	unsigned int changed, sum = 0;
	uint64_t round = 1;
	struct late_board *board;
	pid_t owner = 0;
	FILE *orders;
	struct dev dev;
	char line[16], word;

	dev_open_or_die(&dev, 16);
	board = mmap(NULL, LATE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || pipe(ready) || pipe(asked) ||
	    dev_register(&dev, board, LATE_PAGE, KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_READ,
			 &region))
		return 1;
	printf("memory %#llx %#llx 0 0 %u\n", (unsigned long long)region.token,
	       (unsigned long long)(uintptr_t)board, LATE_PAGE);
	owner = late_fork();
	if (!owner)
		late_lend(board, round);
	fflush(stdout);
	orders = fopen(pipe_name, "r+");
	while (orders && fgets(line, sizeof(line), orders)) {
		if (!strcmp(line, "turn\n")) {
			late_end(&owner);
			__atomic_store_n(&board->round, 0, __ATOMIC_RELEASE);
			usleep(1000 * LATE_GONE_MS);
			owner = late_fork();
			if (!owner)
				late_stranger(ready[1], asked[0]);
			printf("%s\n", read(ready[0], &word, 1) == 1 ? "turned" : "lost");
		} else {
			if (write(asked[1], "l", 1) != 1 ||
			    read(ready[0], &changed, sizeof(changed)) != sizeof(changed))
				return 1;
			sum += changed;
			late_end(&owner);
			usleep(1000 * LATE_GONE_MS);
			owner = late_fork();
			if (!owner)
				late_lend(board, round + 1);
			round++;
			printf("looked changed=%u\n", sum);
		}
		fflush(stdout);
	}
	return 1;
}

/* ---- the reader */

struct late_reader {
	const struct dev_peer *peer;
	struct dev dev, asking;
	struct dev_region from, board;
	uint32_t ask;
	uint32_t queues[LATE_QUEUES];
	unsigned int outstanding[LATE_QUEUES];
	bool broken[LATE_QUEUES];
	uint64_t round;
	unsigned long done, refused, gone, doubted, other;
	unsigned int at;
	int last_error;
};

static void late_ask(struct late_reader *r)
{
	struct krp_wr wr = dev_wr(KRP_OP_READ, &r->board, 0, r->peer->rw, r->peer->rw_addr,
				  sizeof(struct late_board));
	const struct late_board *board = (const struct late_board *)r->board.mem;

	r->round = 0;
	if (!dev_do(&r->asking, r->ask, &wr))
		r->round = board->round;
	else
		dev_connect(&r->asking, r->ask, r->peer, 0);
}

static void late_post(struct late_reader *r, unsigned int q)
{
	const struct late_board *board = (const struct late_board *)r->board.mem;
	struct krp_wr wrs[LATE_DEPTH];
	unsigned int i, room = LATE_DEPTH - r->outstanding[q];
	int taken;

	for (i = 0; i < room; i++) {
		unsigned int nr = r->at++ % LATE_REGIONS;
		uint64_t addr =
			LATE_PLACE + (uint64_t)nr * LATE_PAGE + r->at / LATE_REGIONS % 64 * 64;

		wrs[i] = dev_wr(KRP_OP_WRITE, &r->from, 0, board->tokens[nr], addr, 64);
		wrs[i].user_data = q;
	}
	taken = dev_post(&r->dev, r->queues[q], wrs, room, NULL);
	if (taken > 0)
		r->outstanding[q] += (unsigned int)taken;
	else if (taken != -EAGAIN)
		r->round = 0;
	if (taken == -ENOTCONN)
		r->broken[q] = true;
	r->gone += taken == -EBADR;
}

static void late_complete(struct late_reader *r, const struct krp_cqe *cqe)
{
	r->outstanding[cqe->user_data]--;
	if (!cqe->status) {
		r->done++;
		return;
	}
	r->broken[cqe->user_data] = true;
	r->round = 0;
	switch (cqe->status) {
	case -EREMOTEIO:
		r->refused++;
		break;
	case -EBADR:
	case -ECANCELED:
		r->gone++;
		break;
	case -EREMCHG:
	case -ETIMEDOUT:
		r->doubted++;
		break;
	default:
		r->other++;
		r->last_error = cqe->status;
	}
}

static void late_turn(struct late_reader *r, bool more)
{
	struct krp_cqe cqe;
	unsigned int q;
	int wait_ms = 20;

	for (q = 0; q < LATE_QUEUES && more; q++) {
		if (r->broken[q] && !r->outstanding[q])
			r->broken[q] = dev_connect(&r->dev, r->queues[q], r->peer, 0);
		else if (r->round && !r->broken[q] && r->outstanding[q] <= LATE_DEPTH / 2)
			late_post(r, q);
	}
	while (dev_reap(&r->dev, &cqe, wait_ms)) {
		late_complete(r, &cqe);
		wait_ms = 0;
	}
}

int late_read(const struct dev_peer *peer, unsigned int seconds)
{
	static struct late_reader r;
	uint64_t end_ms = dev_end_ms(seconds);
	unsigned int q, busy;
	int over;

	r.peer = peer;
	dev_open_or_die(&r.asking, 16);
	dev_region_or_die(&r.asking, LATE_PAGE, KRP_ACCESS_LOCAL_WRITE, &r.board);
	r.ask = dev_connected_or_die(&r.asking, 1, peer);
	dev_open_or_die(&r.dev, LATE_QUEUES * LATE_DEPTH);
	dev_region_or_die(&r.dev, LATE_PAGE, 0, &r.from);
	memset(r.from.mem, LATE_WRITTEN, LATE_PAGE);
	for (q = 0; q < LATE_QUEUES; q++)
		r.queues[q] = dev_connected_or_die(&r.dev, LATE_DEPTH, peer);
	do {
		over = dev_over(end_ms);
		if (!r.round && !over)
			late_ask(&r);
		late_turn(&r, !over);
		for (busy = 0, q = 0; q < LATE_QUEUES; q++)
			busy += r.outstanding[q];
	} while (!over || busy);
	printf("done=%lu refused=%lu gone=%lu doubted=%lu other=%lu last_error=%d\n", r.done,
	       r.refused, r.gone, r.doubted, r.other, r.last_error);
	return 0;
}
