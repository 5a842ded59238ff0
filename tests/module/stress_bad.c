// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: what goes wrong on purpose. A bad reference is refused with its
 * error and leaves its queue as it was; memory that its owner takes back is right until it
 * is refused.
 */
#include <errno.h>
#include <string.h>

#include "tests/module/stress.h"

#define ST_BAD_KINDS 11

/* Spoil a good WRITE of 64 bytes. Return: the error it must get. */
static int st_spoil(struct st_self *self, const struct st_queue *queue, struct krcore_wr *wr)
{
	const struct krcore_region_ref *region = &queue->region;
	const struct krcore_region_ref *fixed = &self->boards[queue->peer].fixed;
	uint64_t kind = st_random(&self->random, ST_BAD_KINDS);

	switch (kind) {
	case 0:
		wr->remote_token = st_random(&self->random, UINT64_MAX);
		return -EBADR;
	case 1:
		wr->remote_token ^= (1 + st_random(&self->random, 0xffff)) << 40;
		return -EBADR;
	case 2:
		wr->remote_addr = region->addr + region->length - st_random(&self->random, 64);
		return -EOVERFLOW;
	case 3:
		wr->remote_addr = region->addr - 1 - st_random(&self->random, 4096);
		return -EOVERFLOW;
	case 4:
		wr->local_mr ^= 0x10000;
		return -ENOENT;
	case 5:
		wr->local_addr -= ST_BANK_BYTES * 16ULL;
		return -ERANGE;
	case 6:
		wr->opcode = KRCORE_OP_READ;
		wr->local_mr = self->closed.handle;
		wr->local_addr = self->closed.addr;
		return -EACCES;
	case 7:
		wr->opcode = 9;
		return -EINVAL;
	case 8:
		wr->opcode = KRCORE_OP_FETCH_ADD;
		wr->length = 8;
		wr->remote_addr += 4;
		return -EINVAL;
	case 9:
		wr->length = 0;
		return -EINVAL;
	default:
		if (!fixed->token || self->peer_generations[queue->peer] != queue->generation)
			return 0;
		wr->remote_token = fixed->token;
		wr->remote_addr = fixed->addr;
		return -EPERM;
	}
}

void st_bad_request(struct st_self *self, struct st_queue *queue)
{
	struct st_counts *counts = &self->worker->counts;
	struct krcore_wr wr;
	struct st_req *req;
	int want, got;

	if (queue->tail - queue->head == queue->depth)
		return;
	req = st_req_new(self, queue, 0, KRCORE_OP_WRITE, 64);
	if (!req)
		return;
	krcore_wr_write(&wr, st_slot_mr(self, req->slot), req->at, 64, &queue->region,
			st_bank_offset(queue->bank_nr), req->user_data);
	want = st_spoil(self, queue, &wr);
	if (want) {
		got = krcore_post(self->node, queue->id, &wr, 1, NULL);
		if (got == want)
			counts->refused++;
		else if (st_excused(self, queue, got) || st_orphaned(self, queue, got))
			queue->ready = false;
		else
			st_violation(counts, "a bad request got %d instead of %d", got, want);
	}
	st_slot_put(self, req->slot);
}

static int st_visit_once(struct st_self *self, struct st_queue *queue, const struct st_board *board)
{
	static uint64_t got[ST_SMALL_BYTES / 8];
	uint32_t words = 1 + (uint32_t)st_random(&self->random, ST_SMALL_BYTES / 8), i;
	uint32_t word = (uint32_t)st_random(&self->random, ST_PASSING_BYTES / 8 - words);
	int err = st_read_now(self, queue, &board->passing, 8ULL * word, got, 8 * words);

	for (i = 0; !err && i < words; i++) {
		if (got[i] == st_passing_word(board->generation, word + i))
			continue;
		st_violation(&self->worker->counts, "passing region %llu word %u: %016llx%s",
			     (unsigned long long)board->generation, word + i,
			     (unsigned long long)got[i],
			     got[i] == ST_GONE ? ", memory that was taken back" : "");
		break;
	}
	return err;
}

void st_visit(struct st_self *self, struct st_queue *queue)
{
	struct st_counts *counts = &self->worker->counts;
	struct st_board board;
	unsigned int i;
	int err;

	if (st_read_now(self, queue, &queue->region, ST_BOARD_OFFSET, &board, sizeof(board)) ||
	    board.sum != st_board_sum(&board))
		return;
	self->boards[queue->peer] = board;
	self->peer_generations[queue->peer] = queue->generation;
	if (!board.passing.token)
		return;
	queue->visiting = true;
	for (i = 0; i < 6; i++) {
		err = st_visit_once(self, queue, &board);
		if (err)
			break;
		counts->passed++;
	}
	queue->visiting = false;
	/* what is sent again may come when the key has gone; nothing else may be refused there */
	counts->late += err == -EREMOTEIO;
	if (err != -EBADR)
		return;
	counts->gone++;
	if (!queue->first_error) { /* refused, and the queue is as it was */
		queue->ready = true;
		queue->known = true;
	}
}
