// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: a worker, which does with its queues whatever its seed says until
 * the time is over or it is killed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "tests/module/stress.h"

#define ST_BATCH 12
#define ST_RING 256

static uint32_t st_draw_words(struct st_self *self)
{
	uint64_t kind = st_random(&self->random, 100);
	uint64_t most = kind < 25 ? 8 : kind < 65 ? 512 : kind < 90 ? 8192 : ST_WORDS;

	return 1 + (uint32_t)st_random(&self->random, most);
}

/* Memory for so many words at @ahead, or for a few if there is none for so many. */
static struct st_req *st_req_words(struct st_self *self, struct st_queue *queue, unsigned int ahead,
				   uint8_t opcode, uint32_t words)
{
	struct st_req *req = st_req_new(self, queue, ahead, opcode, 8 * words);

	return req ? req : st_req_new(self, queue, ahead, opcode, 8 * (1 + words % 512));
}

static void st_wr(struct st_self *self, struct st_queue *queue, const struct st_req *req,
		  uint64_t offset, struct krcore_wr *ret_wr)
{
	krcore_wr_read(ret_wr, st_slot_mr(self, req->slot), req->at, req->length, &queue->region,
		       offset, req->user_data);
	ret_wr->opcode = req->opcode;
	if (!st_random(&self->random, 8))
		ret_wr->flags = KRCORE_WR_FENCE;
}

static bool st_ask_write(struct st_self *self, struct st_queue *queue, unsigned int ahead,
			 struct krcore_wr *ret_wr)
{
	uint32_t words = st_draw_words(self), i;
	struct st_bank *bank = queue->bank;
	struct st_req *req = st_req_words(self, queue, ahead, KRCORE_OP_WRITE, words);

	if (!req)
		return false;
	words = req->length / 8;
	req->word = (uint32_t)st_random(&self->random, ST_WORDS - words + 1);
	req->bank = bank;
	req->seq = ++bank->seq;
	for (i = req->word; i < req->word + words; i++) {
		bank->begun[i] = req->seq;
		queue->live[i] = req->seq;
	}
	st_fill(req->at, queue->bank_nr, req->word, words, req->seq);
	st_wr(self, queue, req, st_bank_offset(queue->bank_nr) + 8ULL * req->word, ret_wr);
	return true;
}

static bool st_ask_read(struct st_self *self, struct st_queue *queue, unsigned int ahead,
			struct krcore_wr *ret_wr)
{
	/* a bank of its own, or one that another queue of the process writes */
	struct st_queue *owner = &self->queues[st_random(&self->random, ST_QUEUES)];
	struct st_req *req = st_req_words(self, queue, ahead, KRCORE_OP_READ, st_draw_words(self));
	const uint32_t *floor;
	uint32_t words;

	if (!req)
		return false;
	if (!owner->open || owner->peer != queue->peer || owner->generation != queue->generation)
		owner = queue;
	words = req->length / 8;
	req->word = (uint32_t)st_random(&self->random, ST_WORDS - words + 1);
	req->bank = owner->bank;
	req->bank_nr = owner->bank_nr;
	floor = owner == queue ? queue->live : owner->bank->acked;
	req->floor = malloc(words * sizeof(*floor));
	if (!req->floor)
		abort();
	memcpy(req->floor, floor + req->word, words * sizeof(*floor));
	memset(req->at, 0x55, req->length);
	st_wr(self, queue, req, st_bank_offset(owner->bank_nr) + 8ULL * req->word, ret_wr);
	return true;
}

/* The counter that all add to, one's own, or a compare-and-swap that may be in vain. */
static bool st_ask_atomic(struct st_self *self, struct st_queue *queue, unsigned int ahead,
			  struct krcore_wr *ret_wr)
{
	uint64_t kind = st_random(&self->random, 4), delta = 1 + st_random(&self->random, 100);
	struct st_bank *bank = queue->bank;
	uint64_t offset = kind ? st_counter_offset(queue->bank_nr) : ST_SUM_OFFSET;
	struct st_req *req = st_req_new(self, queue, ahead,
					kind < 2 ? KRCORE_OP_FETCH_ADD : KRCORE_OP_CMP_SWAP, 8);

	if (!req)
		return false;
	if (kind == 3)
		delta = 0;
	req->delta = delta;
	req->exact = kind;
	req->span = !kind ? &bank->sum : kind == 1 ? &bank->add : &bank->swap;
	req->expect = kind == 1 ? queue->add : queue->swap;
	req->span->high += delta;
	st_wr(self, queue, req, kind < 2 ? offset : offset + 8, ret_wr);
	if (kind < 2) {
		ret_wr->compare_add = delta;
		queue->add += kind ? delta : 0;
	} else {
		ret_wr->compare_add = kind == 3 ? queue->swap + 1 : queue->swap;
		ret_wr->swap = queue->swap + (delta ? delta : 7);
		queue->swap += delta;
	}
	return true;
}

static void st_post_batch(struct st_self *self, struct st_queue *queue)
{
	uint64_t room = queue->depth - (queue->tail - queue->head);
	unsigned int nr, most = 1 + (unsigned int)st_random(&self->random, ST_BATCH);
	struct krcore_wr wrs[ST_BATCH];

	if (!room || !queue->known)
		return;
	if (most > room)
		most = (unsigned int)room;
	for (nr = 0; nr < most; nr++) {
		uint64_t kind = st_random(&self->random, 10);
		bool made = kind < 4   ? st_ask_write(self, queue, nr, &wrs[nr])
			    : kind < 8 ? st_ask_read(self, queue, nr, &wrs[nr])
				       : st_ask_atomic(self, queue, nr, &wrs[nr]);

		if (!made)
			break; /* no memory: completions bring some */
	}
	if (nr)
		st_post(self, queue, wrs, nr);
}

static void st_look(struct st_self *self, const struct st_queue *queue)
{
	struct krcore_queue_info info = { .size = sizeof(info) };
	int err = krcore_queue_query(self->node, queue->id, &info);

	if (err || info.posted != queue->tail || info.completed < queue->head ||
	    info.outstanding != info.posted - info.completed)
		st_violation(&self->worker->counts,
			     "queue %u: %d, posted %llu of %llu, completed %llu, seen %llu",
			     queue->id, err, (unsigned long long)info.posted,
			     (unsigned long long)queue->tail, (unsigned long long)info.completed,
			     (unsigned long long)queue->head);
}

static void st_act(struct st_self *self, struct st_queue *queue)
{
	switch (st_random(&self->random, 100)) {
	case 0:
		/* a close ends what the card was not given, which has no room for all of these */
		st_post_flood(self, queue);
		st_queue_close(self, queue);
		break;
	case 1:
		st_queue_close(self, queue);
		break;
	case 2:
		st_arena_renew(self, &self->arenas[st_random(&self->random, ST_ARENAS)]);
		break;
	case 3:
		st_look(self, queue);
		break;
	case 4:
	case 5:
	case 6:
		st_visit(self, queue);
		break;
	case 7 ... 16:
		if (self->hostile)
			st_bad_request(self, queue);
		break;
	default:
		st_post_batch(self, queue);
		break;
	}
}

/* Nothing may be under way for longer than all retries there are. */
static bool st_lost(struct st_self *self)
{
	const struct st_queue *queue;

	for (queue = self->queues; queue < self->queues + ST_QUEUES; queue++) {
		if (!queue->open || queue->head == queue->tail ||
		    st_now_ms() - queue->reqs[queue->head % ST_DEPTH].posted_ms <= ST_LOST_MS)
			continue;
		st_violation(&self->worker->counts, "worker %u queue %u: a completion is lost",
			     self->number, queue->id);
		return true;
	}
	return false;
}

static void st_turn(struct st_self *self)
{
	unsigned int index = (unsigned int)st_random(&self->random, ST_QUEUES);
	struct st_queue *queue = &self->queues[index];
	int pause_ms = (int)st_random(&self->random, 20);

	if (!queue->open)
		st_queue_open(self, index);
	else if (queue->ready && queue->known)
		st_act(self, queue);
	else if (st_outlived(self, queue))
		st_queue_close(self, queue);
	else
		st_queue_reconnect(self, queue);
	if (pause_ms > 2)
		krcore_wait(self->node, pause_ms);
	st_poll(self);
}

static int st_begin(struct st_self *self)
{
	const struct krcore_node_options options = {
		.size = sizeof(options),
		.ring_entries = ST_RING,
	};
	static uint8_t closed[4096];
	unsigned int i;
	int err;

	err = krcore_node_open(&options, &self->node);
	for (i = 0; !err && i < ST_ARENAS; i++)
		err = st_arena_open(self, &self->arenas[i]);
	if (!err)
		err = krcore_mr_reg(self->node, closed, sizeof(closed), 0, &self->closed);
	if (!err)
		err = st_sink_open(self);
	for (i = 0; !err && i < ST_QUEUES; i++) {
		self->queues[i].live = malloc(ST_WORDS * sizeof(uint32_t));
		err = self->queues[i].live ? 0 : -ENOMEM;
	}
	if (err)
		st_violation(&self->worker->counts, "worker %u does not begin: %s", self->number,
			     krcore_error_text());
	return err;
}

void st_work(struct st_shared *shared, unsigned int number)
{
	struct st_worker *worker = &shared->workers[number];
	static struct st_self self;
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self = (struct st_self){
		.shared = shared,
		.worker = worker,
		.number = number,
		.random = shared->seed + ((uint64_t)number << 32) + worker->incarnation,
		.hostile = number % 4 == 3,
	};
	if (st_begin(&self))
		_exit(1);
	while (st_now_ms() < shared->end_ms)
		if (st_turn(&self), st_lost(&self))
			_exit(1);
	for (i = 0; i < ST_QUEUES; i++) {
		if (!self.queues[i].open)
			continue;
		if (st_random(&self.random, 2))
			st_drain(&self, &self.queues[i]);
		st_queue_close(&self, &self.queues[i]);
	}
	krcore_node_close(self.node);
	_exit(0);
}
