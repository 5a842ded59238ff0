// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: the passive side. It lends memory and takes no part, but for one
 * region that it takes back and registers again, as a board in the lent memory says.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/module/stress.h"

#define ST_OPEN \
	(KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ | KRCORE_ACCESS_REMOTE_WRITE | \
	 KRCORE_ACCESS_REMOTE_ATOMIC)

struct st_lent {
	struct krcore_node *node;
	struct krcore_mr all, fixed, passing;
	struct st_board *board;
	uint64_t *memory; /* of the passing region */
};

static int st_register(struct krcore_node *node, size_t bytes, uint32_t access,
		       struct krcore_mr *ret_mr)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (mem == MAP_FAILED)
		return -1;
	err = krcore_mr_reg(node, mem, bytes, access, ret_mr);
	if (err)
		fprintf(stderr, "krc_stress: %s\n", krcore_error_text());
	return err;
}

static void st_board_write(struct st_lent *lent, uint64_t generation)
{
	struct st_board board = { .generation = generation };

	krcore_region_ref_of(&lent->fixed, &board.fixed);
	if (generation)
		krcore_region_ref_of(&lent->passing, &board.passing);
	board.sum = st_board_sum(&board);
	memcpy(lent->board, &board, sizeof(board));
}

static int st_passing_open(struct st_lent *lent, uint64_t generation)
{
	uint32_t i;
	int err;

	for (i = 0; i < ST_PASSING_BYTES / 8; i++)
		lent->memory[i] = st_passing_word(generation, i);
	err = krcore_mr_reg(lent->node, lent->memory, ST_PASSING_BYTES, KRCORE_ACCESS_REMOTE_READ,
			    &lent->passing);
	if (!err)
		st_board_write(lent, generation);
	return err;
}

/* The board says so only afterwards, so that visitors come with a reference that is old. */
static int st_passing_close(struct st_lent *lent)
{
	uint32_t i;
	int err = krcore_mr_dereg(lent->node, &lent->passing);

	for (i = 0; i < ST_PASSING_BYTES / 8; i++)
		lent->memory[i] = ST_GONE;
	usleep(50000);
	st_board_write(lent, 0);
	return err;
}

static int st_lend(struct st_lent *lent)
{
	if (krcore_node_open(NULL, &lent->node)) {
		fprintf(stderr, "krc_stress: %s\n", krcore_error_text());
		return -1;
	}
	if (st_register(lent->node, ST_REGION_BYTES, ST_OPEN, &lent->all) ||
	    st_register(lent->node, 4096, KRCORE_ACCESS_REMOTE_READ, &lent->fixed))
		return -1;
	lent->board = (struct st_board *)(uintptr_t)lent->all.addr;
	lent->memory = mmap(NULL, ST_PASSING_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lent->memory == MAP_FAILED)
		return -1;
	st_board_write(lent, 0);
	return 0;
}

/* The control of all checks: one word of each bank that was written to changes by itself. */
static void st_spoil_banks(const struct st_lent *lent, uint64_t *seed)
{
	uint8_t *all = (uint8_t *)(uintptr_t)lent->all.addr;
	uint32_t nr;

	for (nr = 0; nr < ST_WORKERS_MAX * ST_BANKS; nr++) {
		uint64_t *bank = (uint64_t *)(all + st_bank_offset(nr));

		if (bank[ST_WORDS / 2])
			bank[st_random(seed, ST_WORDS)] ^= 1;
	}
}

int st_serve(unsigned int seconds, uint64_t seed, uint16_t service, bool spoil)
{
	uint64_t end = st_now_ms() + 1000ULL * seconds, generation = 0;
	struct st_lent lent = { 0 };
	int err = st_lend(&lent);

	if (!err && service)
		err = krcore_bind(lent.node, service, 0);
	if (!err) {
		printf("region %#llx %#llx %llu\n", (unsigned long long)lent.all.token,
		       (unsigned long long)lent.all.addr, (unsigned long long)lent.all.length);
		fflush(stdout);
	}
	while (!err && st_now_ms() < end) {
		err = st_passing_open(&lent, ++generation);
		if (err)
			break;
		usleep((useconds_t)(300000 + st_random(&seed, 1500000)));
		err = st_passing_close(&lent);
		usleep((useconds_t)st_random(&seed, 300000));
		if (spoil)
			st_spoil_banks(&lent, &seed);
	}
	krcore_node_close(lent.node);
	if (err)
		fprintf(stderr, "krc_stress: serving ended: %s\n", krcore_error_text());
	return err != 0;
}
