// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: a queue and its bank, posting, and the completions, each of which
 * must be the next one of its queue, once, with what it was posted with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/stress.h"

#define ST_WAIT_MS 200

static struct st_counts *st_counts(struct st_self *self)
{
	return &self->worker->counts;
}

bool st_excused(const struct st_self *self, const struct st_queue *queue, int error)
{
	switch (error) {
	case -ETIMEDOUT:
	case -ECANCELED:
	case -EREMCHG:
	case -ENOTCONN:
		return st_now_ms() <=
		       __atomic_load_n(&self->shared->peers[queue->peer].window_until_ms,
				       __ATOMIC_RELAXED);
	default:
		return false;
	}
}

bool st_outlived(const struct st_self *self, const struct st_queue *queue)
{
	const struct st_peer *peer = &self->shared->peers[queue->peer];

	return __atomic_load_n(&peer->generation, __ATOMIC_ACQUIRE) != queue->generation;
}

/* The peer's node is there, so silence is no excuse. */
bool st_orphaned(const struct st_self *self, const struct st_queue *queue, int error)
{
	switch (error) {
	case -EBADR:
	case -EREMOTEIO:
	case -ECANCELED:
	case -ENOTCONN:
		return st_outlived(self, queue);
	default:
		return false;
	}
}

/* What is not done may have been done all the same: keep the bounds, forget the exact. */
static void st_queue_failed(struct st_queue *queue)
{
	queue->ready = false;
	queue->known = false;
}

static void st_done_well(struct st_self *self, struct st_queue *queue, struct st_req *req)
{
	struct st_counts *counts = st_counts(self);
	uint32_t words = req->length / 8, wrong, i;
	uint64_t old;

	counts->done++;
	if (req->span) {
		memcpy(&old, req->at, sizeof(old));
		counts->atomics++;
		req->span->low += req->delta;
		if (req->exact && old != req->expect)
			st_violation(counts, "bank %u: atomic %u found %llu instead of %llu",
				     queue->bank_nr, req->opcode, (unsigned long long)old,
				     (unsigned long long)req->expect);
		return;
	}
	counts->bytes += req->length;
	if (req->copy_to)
		memcpy(req->copy_to, req->at, req->length);
	if (!req->bank)
		return;
	if (req->opcode == KRCORE_OP_WRITE) {
		for (i = 0; i < words; i++)
			req->bank->acked[req->word + i] = req->seq;
		return;
	}
	if (req->bank->generation != queue->generation)
		return; /* another queue has had it meanwhile, for the peer's next generation */
	counts->words += words;
	wrong = st_compare(req->at, req->bank, req->bank_nr, req->word, words, req->floor);
	if (wrong)
		st_violation(counts, "READ of %u bytes of bank %u at word %u: %u words wrong",
			     req->length, req->bank_nr, req->word, wrong);
}

/* Whether a request may fail so; it is counted if it may. */
static bool st_pardon(struct st_self *self, const struct st_queue *queue, int error)
{
	if (st_orphaned(self, queue, error))
		st_counts(self)->orphaned++;
	else if (st_excused(self, queue, error))
		st_counts(self)->excused++;
	else if (error == -EREMCHG || (error == -ECANCELED && queue->first_error == -EREMCHG))
		st_counts(self)->doubted++; /* whether there was cause, the module can say */
	else
		return false;
	return true;
}

static void st_done_badly(struct st_self *self, struct st_queue *queue, const struct krcore_wc *wc)
{
	struct st_counts *counts = st_counts(self);
	bool first = !queue->first_error && queue->ready; /* nor did a post fail */

	if (!queue->first_error)
		queue->first_error = wc->status;
	st_queue_failed(queue);
	if (queue->closing && wc->status == -ECANCELED) {
		counts->cancelled++;
	} else if (queue->visiting && (wc->status == -EBADR || wc->status == -EREMOTEIO)) {
		return; /* its visitor counts it */
	} else if ((wc->status == -EREMCHG && wc->opcode == KRCORE_OP_READ) ||
		   !st_pardon(self, queue, wc->status)) {
		st_violation(counts, "worker %u queue %u to peer %u: opcode %u failed: %s",
			     self->number, queue->id, queue->peer, wc->opcode,
			     strerror(-wc->status));
	} else if (first && wc->status == -ECANCELED) {
		st_violation(counts, "queue %u: cancelled, but none before it failed", queue->id);
	}
}

static void st_req_end(struct st_self *self, struct st_req *req)
{
	free(req->floor);
	req->floor = NULL;
	if (req->slot != ST_SINK)
		st_slot_put(self, req->slot);
}

static void st_complete(struct st_self *self, const struct krcore_wc *wc)
{
	struct st_counts *counts = st_counts(self);
	struct st_queue *queue = NULL;
	struct st_req *req;
	unsigned int i;

	for (i = 0; i < ST_QUEUES; i++)
		if (self->queues[i].open && self->queues[i].id == wc->queue)
			queue = &self->queues[i];
	if (!queue || queue->head == queue->tail) {
		st_violation(counts, "worker %u: completion %#llx of queue %u is nobody's",
			     self->number, (unsigned long long)wc->user_data, wc->queue);
		return;
	}
	req = &queue->reqs[queue->head % ST_DEPTH];
	if (wc->user_data != req->user_data || wc->opcode != req->opcode ||
	    wc->bytes != (wc->status ? 0 : req->length))
		st_violation(counts, "queue %u: %#llx opcode %u %u bytes instead of %#llx %u %u",
			     queue->id, (unsigned long long)wc->user_data, wc->opcode, wc->bytes,
			     (unsigned long long)req->user_data, req->opcode, req->length);
	queue->head++;
	queue->last_status = wc->status;
	if (!wc->status && queue->first_error && !queue->closing)
		st_violation(counts, "queue %u: a request behind a failed one was done", queue->id);
	if (st_slot_touched(req->at, req->length))
		st_violation(counts, "queue %u: memory beside %u bytes was touched", queue->id,
			     req->length);
	if (wc->status)
		st_done_badly(self, queue, wc);
	else
		st_done_well(self, queue, req);
	st_req_end(self, req);
}

unsigned int st_poll(struct st_self *self)
{
	struct krcore_wc wcs[ST_DEPTH];
	unsigned int total = 0;
	int nr, i;

	while ((nr = krcore_poll(self->node, wcs, ST_DEPTH)) > 0) {
		for (i = 0; i < nr; i++)
			st_complete(self, &wcs[i]);
		total += (unsigned int)nr;
	}
	if (nr < 0)
		st_violation(st_counts(self), "krcore_poll: %s", strerror(-nr));
	return total;
}

int st_drain(struct st_self *self, struct st_queue *queue)
{
	uint64_t limit = st_now_ms() + ST_LOST_MS;

	while (queue->head != queue->tail) {
		if (st_poll(self))
			continue;
		if (st_now_ms() > limit) {
			st_violation(st_counts(self), "queue %u: %llu completions are lost",
				     queue->id, (unsigned long long)(queue->tail - queue->head));
			return -ETIMEDOUT;
		}
		krcore_wait(self->node, ST_WAIT_MS);
	}
	if (queue->owed && !queue->first_error)
		st_violation(st_counts(self), "queue %u: not connected, but nothing of it failed",
			     queue->id);
	queue->owed = false;
	return 0;
}

static struct st_req *st_req_at(struct st_self *self, struct st_queue *queue, unsigned int ahead,
				uint8_t opcode, uint32_t length, int slot, uint8_t *at)
{
	struct st_req *req = &queue->reqs[(queue->tail + ahead) % ST_DEPTH];

	*req = (struct st_req){
		.posted_ms = st_now_ms(),
		.user_data = (uint64_t)self->number << 56 |
			     (uint64_t)(self->worker->incarnation & 0xffff) << 40 |
			     (uint64_t)(queue->serial & 0xff) << 32 |
			     ((queue->tail + ahead) & UINT32_MAX),
		.opcode = opcode,
		.length = length,
		.slot = slot,
		.at = at,
	};
	return req;
}

struct st_req *st_req_new(struct st_self *self, struct st_queue *queue, unsigned int ahead,
			  uint8_t opcode, uint32_t length)
{
	uint8_t *at;
	int slot = st_slot_get(self, length, &at);

	return slot < 0 ? NULL : st_req_at(self, queue, ahead, opcode, length, slot, at);
}

unsigned int st_post_flood(struct st_self *self, struct st_queue *queue)
{
	unsigned int nr = (unsigned int)(queue->depth - (queue->tail - queue->head)), i;
	struct krcore_wr wrs[ST_DEPTH];

	for (i = 0; i < nr; i++) {
		struct st_req *req = st_req_at(self, queue, i, KRCORE_OP_READ, ST_BANK_BYTES,
					       ST_SINK, self->sink + ST_GUARD_BYTES);

		krcore_wr_read(&wrs[i], &self->sink_mr, req->at, req->length, &queue->region,
			       st_bank_offset(queue->bank_nr), req->user_data);
	}
	return nr ? st_post(self, queue, wrs, nr) : 0;
}

unsigned int st_post(struct st_self *self, struct st_queue *queue, struct krcore_wr *wrs,
		     unsigned int nr)
{
	int error = 0, taken = krcore_post(self->node, queue->id, wrs, nr, &error);
	unsigned int i, count = taken > 0 ? (unsigned int)taken : 0;

	for (i = count; i < nr; i++)
		st_req_end(self, &queue->reqs[(queue->tail + i) % ST_DEPTH]);
	queue->tail += count;
	queue->last_status = taken < 0 ? taken : error;
	if (count == nr)
		return count;
	st_queue_failed(queue);
	if (queue->visiting && queue->last_status == -EBADR)
		return count; /* its visitor counts it */
	queue->owed = queue->last_status == -ENOTCONN; /* a completion is to say why */
	if (!st_pardon(self, queue, queue->last_status) && !queue->owed)
		st_violation(st_counts(self), "worker %u queue %u to peer %u: post: %u of %u: %s",
			     self->number, queue->id, queue->peer, count, nr,
			     strerror(-queue->last_status));
	return count;
}

int st_read_now(struct st_self *self, struct st_queue *queue, const struct krcore_region_ref *ref,
		uint64_t offset, void *to, uint32_t length)
{
	struct krcore_wr wr;
	struct st_req *req;

	if (st_drain(self, queue))
		return -ETIMEDOUT;
	req = st_req_new(self, queue, 0, KRCORE_OP_READ, length);
	if (!req)
		return -EAGAIN;
	req->copy_to = to;
	krcore_wr_read(&wr, st_slot_mr(self, req->slot), req->at, length, ref, offset,
		       req->user_data);
	if (!st_post(self, queue, &wr, 1))
		return queue->last_status;
	if (st_drain(self, queue))
		return -ETIMEDOUT;
	return queue->last_status;
}

static void st_span_settle(struct st_self *self, struct st_queue *queue, const char *name,
			   struct st_span *span, uint64_t value)
{
	if (value < span->low || value > span->high)
		st_violation(st_counts(self), "bank %u: %s is %llu, must be %llu to %llu",
			     queue->bank_nr, name, (unsigned long long)value,
			     (unsigned long long)span->low, (unsigned long long)span->high);
	span->low = value;
	span->high = value;
}

/* A connection is there: from what is at the peer all goes on. */
static void st_queue_begin(struct st_self *self, struct st_queue *queue)
{
	uint64_t counters[2] = { 0 };

	queue->ready = true;
	queue->first_error = 0;
	memcpy(queue->live, queue->bank->acked, sizeof(queue->bank->acked));
	st_counts(self)->connects++;
	if (st_read_now(self, queue, &queue->region, st_counter_offset(queue->bank_nr), counters,
			sizeof(counters)))
		return;
	st_span_settle(self, queue, "FETCH_ADD counter", &queue->bank->add, counters[0]);
	st_span_settle(self, queue, "CMP_SWAP counter", &queue->bank->swap, counters[1]);
	queue->add = counters[0];
	queue->swap = counters[1];
	queue->known = true;
}

static int st_queue_connect(struct st_self *self, struct st_queue *queue)
{
	const struct st_peer *peer = &self->shared->peers[queue->peer];
	int err = krcore_queue_connect(self->node, queue->id, &peer->key, 0,
				       st_random(&self->random, 8) ? 0 : KRCORE_CONNECT_FRESH,
				       NULL);

	if (err == -ENOENT &&
	    st_now_ms() <= __atomic_load_n(&peer->away_until_ms, __ATOMIC_RELAXED))
		return err;
	if (err && !st_excused(self, queue, err))
		st_violation(st_counts(self), "worker %u: %s", self->number, krcore_error_text());
	return err;
}

void st_queue_reconnect(struct st_self *self, struct st_queue *queue)
{
	if (st_drain(self, queue))
		return;
	if (!st_queue_connect(self, queue))
		st_queue_begin(self, queue);
}

static struct st_bank *st_bank_take(struct st_self *self, unsigned int peer, uint32_t generation,
				    uint32_t *ret_nr)
{
	uint32_t start = (uint32_t)st_random(&self->random, ST_BANKS), i;

	for (i = 0; i < ST_BANKS; i++) {
		uint32_t nr = (start + i) % ST_BANKS;
		struct st_bank *bank = &self->worker->banks[peer][nr];

		if (bank->free_at_ms > st_now_ms())
			continue;
		bank->free_at_ms = UINT64_MAX;
		st_bank_renew(bank, generation);
		*ret_nr = self->number * ST_BANKS + nr;
		return bank;
	}
	return NULL;
}

int st_queue_open(struct st_self *self, unsigned int index)
{
	struct st_queue *queue = &self->queues[index];
	unsigned int peer = (unsigned int)st_random(&self->random, self->shared->nr_peers);
	struct krcore_region_ref region;
	struct st_bank *bank;
	uint32_t nr, generation;
	int err;

	if (!st_peer_look(&self->shared->peers[peer], &generation, &region))
		return -EAGAIN;
	bank = st_bank_take(self, peer, generation, &nr);
	if (!bank)
		return -EAGAIN;
	*queue = (struct st_queue){
		.serial = self->serial++,
		/* one in three is as deep as can be: st_post_flood() */
		.depth = st_random(&self->random, 3)
				 ? 1 + (uint32_t)st_random(&self->random, ST_DEPTH)
				 : ST_DEPTH,
		.peer = peer,
		.generation = generation,
		.region = region,
		.bank = bank,
		.bank_nr = nr,
		.live = queue->live,
	};
	err = krcore_queue_create(self->node, queue->depth, &queue->id);
	if (err) {
		st_violation(st_counts(self), "worker %u: %s", self->number, krcore_error_text());
		bank->free_at_ms = 0;
		return err;
	}
	queue->open = true;
	if (!st_queue_connect(self, queue))
		st_queue_begin(self, queue);
	return 0;
}

void st_queue_close(struct st_self *self, struct st_queue *queue)
{
	struct st_counts *counts = st_counts(self);
	int err;

	counts->closes += queue->head != queue->tail;
	queue->closing = true;
	err = krcore_queue_close(self->node, queue->id);
	if (err)
		st_violation(counts, "worker %u: %s", self->number, krcore_error_text());
	st_poll(self); /* all that is to come has come */
	if (queue->head != queue->tail)
		st_violation(counts, "queue %u: closed, and %llu of its completions never came",
			     queue->id, (unsigned long long)(queue->tail - queue->head));
	for (; queue->head != queue->tail; queue->head++)
		st_req_end(self, &queue->reqs[queue->head % ST_DEPTH]);
	queue->open = false;
	queue->bank->free_at_ms = 0;
}
