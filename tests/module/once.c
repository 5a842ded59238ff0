// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Buffers handed over by WRITEs: data, then a flag. The consumer, a process at the peer,
 * sees the flag, takes the buffer for itself, and gives it back some time later. What the
 * producer asked for once must not come a second time, when the buffer is another's.
 *
 * A producer that does not know whether a hand-over was done waits until the consumer must
 * have given the buffer back, looks, and does it again if nothing came of it: that is right
 * only if what was reported is never done later. How long that is the consumer's clock says,
 * and how often it has looked at all buffers: either may stand still for a while.
 *
 * Threads: none.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define ONCE_SLOTS 4096U
#define ONCE_WORDS 14
#define ONCE_HOLD_MS 14000 /* longer than a request waits for retries and to be done again */
#define ONCE_PASSES 3 /* one that had begun, the one that takes a buffer, and one behind it */
#define ONCE_QUEUES 16U
#define ONCE_PAUSE_MS 60 /* between two hand-overs of a queue: there is always one to come */
#define ONCE_LOOK_MS 200
#define ONCE_MINE (1ULL << 63) /* in what the consumer writes */

/* A buffer, and which side has it: the consumer as long as @flag and @seen are not @seen + 1. */
struct once_slot {
	_Alignas(8) uint64_t data[ONCE_WORDS];
	_Alignas(8) uint64_t flag;
	uint64_t rsvd;
};

/**
 * struct once_state - What the producer READs.
 * @seen: how often each buffer was given back.
 * @passes: how often the consumer has looked at all of them.
 * @clock_ms: its clock when the last time began.
 */
struct once_state {
	_Alignas(8) uint64_t seen[ONCE_SLOTS];
	uint64_t passes, clock_ms;
};

/* What is lent. */
struct once_memory {
	struct once_slot slots[ONCE_SLOTS];
	struct once_state state;
};

static uint64_t once_word(uint64_t seq, unsigned int slot, unsigned int i)
{
	return seq << 24 | slot << 8 | i;
}

/* ---- the consumer */

struct once_owner {
	uint64_t seq, until_ms;
	bool mine;
};

static unsigned int once_differ(const struct once_slot *slot, uint64_t seq, unsigned int nr,
				uint64_t sign)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < ONCE_WORDS; i++)
		wrong += __atomic_load_n(&slot->data[i], __ATOMIC_RELAXED) !=
			 (once_word(seq, nr, i) | sign);
	return wrong;
}

static void once_take(struct once_slot *slot, struct once_owner *owner, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < ONCE_WORDS; i++)
		__atomic_store_n(&slot->data[i], once_word(owner->seq, nr, i) | ONCE_MINE,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&slot->flag, 0, __ATOMIC_RELEASE);
	owner->mine = true;
	owner->until_ms = dev_now_ms() + ONCE_HOLD_MS;
}

/* Return: how much was wrong. */
static unsigned int once_look(struct once_memory *mem, struct once_owner *owner, unsigned int nr)
{
	struct once_slot *slot = &mem->slots[nr];
	uint64_t flag = __atomic_load_n(&slot->flag, __ATOMIC_ACQUIRE);
	unsigned int wrong;

	if (!owner->mine) {
		if (!flag)
			return 0;
		wrong = flag != owner->seq + 1 || once_differ(slot, flag, nr, 0);
		if (wrong)
			printf("slot %u: flag %llu instead of %llu, or other data\n", nr,
			       (unsigned long long)flag, (unsigned long long)owner->seq + 1);
		owner->seq++;
		once_take(slot, owner, nr);
		return wrong;
	}
	wrong = flag || once_differ(slot, owner->seq, nr, ONCE_MINE);
	if (wrong) {
		printf("slot %u: hand-over %llu came again: flag %llu\n", nr,
		       (unsigned long long)owner->seq, (unsigned long long)flag);
		once_take(slot, owner, nr);
	}
	if (dev_now_ms() > owner->until_ms) {
		owner->mine = false;
		__atomic_store_n(&mem->state.seen[nr], owner->seq, __ATOMIC_RELEASE);
	}
	return wrong;
}

int once_consume(unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds);
	static struct once_owner owners[ONCE_SLOTS];
	size_t bytes = (sizeof(struct once_memory) + 4095) / 4096 * 4096;
	unsigned long wrong = 0, taken = 0;
	struct once_memory *mem;
	struct dev_region rw;
	struct dev dev;
	unsigned int i;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, bytes, KRP_ACCESS_ALL, &rw);
	mem = (struct once_memory *)rw.mem;
	printf("memory %#llx %#llx 0 0 %zu\n", (unsigned long long)rw.token,
	       (unsigned long long)(uintptr_t)rw.mem, bytes);
	fflush(stdout);
	while (!dev_over(end_ms)) {
		uint64_t began_ms = dev_now_ms();

		for (i = 0; i < ONCE_SLOTS; i++) {
			uint64_t before = owners[i].seq;

			wrong += once_look(mem, &owners[i], i);
			taken += owners[i].seq - before;
		}
		__atomic_store_n(&mem->state.clock_ms, began_ms, __ATOMIC_RELEASE);
		__atomic_store_n(&mem->state.passes, mem->state.passes + 1, __ATOMIC_RELEASE);
		usleep(500);
	}
	printf("taken=%lu wrong=%lu\n", taken, wrong);
	dev_close(&dev);
	return wrong != 0;
}

/* ---- the producer */

/**
 * struct once_queue - A queue, which hands over one buffer at a time.
 * @nr: queue.
 * @broken: it is in ERROR.
 * @outstanding: requests.
 * @slot: buffer it is busy with.
 * @bad: one of them failed.
 * @next_ms: when to begin with the next.
 */
struct once_queue {
	uint32_t nr;
	bool broken, bad;
	unsigned int outstanding, slot;
	uint64_t next_ms;
};

/**
 * struct once_known - What the producer knows of a buffer.
 * @sent: how often it was handed over.
 * @asks: @doubt: answers of the consumer that are to come first.
 * @passes: @doubt, 0 before that: the consumer's passes after which it had the buffer, if ever.
 * @clock_ms: @doubt, 0 before that: the consumer's clock after which it has given it back.
 * @last: @doubt, 0 before that: number of the answer that decides.
 * @doubt: not known whether the last hand-over was done.
 */
struct once_known {
	uint64_t sent, asks, passes, clock_ms, last;
	bool doubt;
};

struct once_producer {
	const struct dev_peer *peer;
	struct dev dev;
	struct dev_region local;
	struct once_queue queues[ONCE_QUEUES];
	struct once_known slots[ONCE_SLOTS];
	unsigned long done, doubted, silent, cancelled, other, redone, asks;
	int last_error;
	unsigned int at;
};

/* The place of a queue in local memory. */
static struct once_slot *once_buffer(struct once_producer *p, unsigned int queue)
{
	return (struct once_slot *)p->local.mem + queue;
}

/* What the consumer said last. */
static struct once_state *once_said(const struct once_producer *p)
{
	return (struct once_state *)(p->local.mem + ONCE_QUEUES * sizeof(struct once_slot));
}

static void once_send(struct once_producer *p, unsigned int queue, unsigned int slot)
{
	uint64_t remote = p->peer->rw_addr + slot * sizeof(struct once_slot);
	size_t offset = queue * sizeof(struct once_slot);
	const uint32_t data = ONCE_WORDS * sizeof(uint64_t);
	struct once_queue *q = &p->queues[queue];
	struct once_slot *buffer = once_buffer(p, queue);
	struct krp_wr wrs[2];
	unsigned int i;
	int taken;

	p->slots[slot].sent++;
	for (i = 0; i < ONCE_WORDS; i++)
		buffer->data[i] = once_word(p->slots[slot].sent, slot, i);
	buffer->flag = p->slots[slot].sent;
	wrs[0] = dev_wr(KRP_OP_WRITE, &p->local, offset, p->peer->rw, remote, data);
	wrs[1] = dev_wr(KRP_OP_WRITE, &p->local, offset + data, p->peer->rw, remote + data, 8);
	wrs[0].user_data = queue;
	wrs[1].user_data = queue;
	taken = dev_post(&p->dev, q->nr, wrs, 2, NULL);
	q->slot = slot;
	q->bad = taken < 2;
	q->broken = q->bad;
	q->outstanding = taken > 0 ? (unsigned int)taken : 0;
	if (taken < 0)
		p->last_error = taken;
}

/*
 * What was done before the doubt is taken by a pass that begins after it, so by the second that
 * ends after it, and before the third begins; from then on by the consumer's clock. Return:
 * whether it has been given back by now.
 */
static bool once_settled(const struct once_producer *p, struct once_known *known)
{
	const struct once_state *said = once_said(p);

	if (p->asks < known->asks)
		return false;
	if (!known->passes)
		known->passes = said->passes + ONCE_PASSES;
	if (said->passes < known->passes)
		return false;
	if (!known->clock_ms)
		known->clock_ms = said->clock_ms + ONCE_HOLD_MS;
	if (said->clock_ms <= known->clock_ms)
		return false;
	if (!known->last) /* words of one answer may be older than others of it */
		known->last = p->asks + 1;
	return p->asks >= known->last;
}

/* A buffer that is the producer's, or ONCE_SLOTS. */
static unsigned int once_free_slot(struct once_producer *p)
{
	unsigned int i;

	for (i = 0; i < ONCE_SLOTS; i++) {
		unsigned int slot = p->at++ % ONCE_SLOTS;
		struct once_known *known = &p->slots[slot];

		if (known->doubt && !once_settled(p, known))
			continue;
		if (known->doubt && once_said(p)->seen[slot] + 1 == known->sent) {
			known->sent--; /* nothing came of it, nor will there */
			p->redone++;
		}
		known->doubt = false;
		if (once_said(p)->seen[slot] == known->sent)
			return slot;
	}
	return ONCE_SLOTS;
}

static void once_over(struct once_producer *p, struct once_queue *q)
{
	struct once_known *known = &p->slots[q->slot];

	q->next_ms = dev_now_ms() + ONCE_PAUSE_MS;
	known->doubt = q->bad;
	known->asks = p->asks + 1;
	known->passes = 0;
	known->clock_ms = 0;
	known->last = 0;
}

static void once_complete(struct once_producer *p, const struct krp_cqe *cqe)
{
	struct once_queue *q = &p->queues[cqe->user_data];

	switch (cqe->status) {
	case 0:
		p->done++;
		break;
	case -EREMCHG:
		p->doubted++;
		break;
	case -ETIMEDOUT:
		p->silent++;
		break;
	case -ECANCELED:
		p->cancelled++;
		break;
	default:
		p->other++;
		p->last_error = cqe->status;
	}
	q->bad = q->bad || cqe->status;
	q->broken = q->broken || cqe->status;
	if (!--q->outstanding)
		once_over(p, q);
}

static void once_drain(struct once_producer *p, int timeout_ms)
{
	struct krp_cqe cqe;

	while (dev_reap(&p->dev, &cqe, timeout_ms)) {
		once_complete(p, &cqe);
		timeout_ms = 0;
	}
}

static void once_turn(struct once_producer *p, unsigned int queue)
{
	struct once_queue *q = &p->queues[queue];
	unsigned int slot;

	if (q->outstanding || q->next_ms > dev_now_ms())
		return;
	if (q->broken) {
		q->broken = dev_connect(&p->dev, q->nr, p->peer, 0);
		q->next_ms = dev_now_ms() + ONCE_PAUSE_MS;
		return;
	}
	slot = once_free_slot(p);
	if (slot == ONCE_SLOTS)
		return;
	once_send(p, queue, slot);
	if (!q->outstanding)
		once_over(p, q);
}

/* Ask what was given back, on a connection of its own, so that an answer is one for all. */
static void once_ask(struct once_producer *p, struct dev *dev, uint32_t queue,
		     const struct dev_region *local)
{
	uint64_t remote = p->peer->rw_addr + offsetof(struct once_memory, state);
	struct krp_wr wr =
		dev_wr(KRP_OP_READ, local, 0, p->peer->rw, remote, sizeof(struct once_state));

	if (dev_do(dev, queue, &wr)) {
		dev_connect(dev, queue, p->peer, 0);
		return;
	}
	memcpy(once_said(p), local->mem, sizeof(struct once_state));
	p->asks++;
}

int once_produce(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds), look_ms = 0;
	static struct once_producer p;
	struct dev_region seen;
	struct dev asking;
	uint32_t ask;
	unsigned int i, busy;

	p.peer = peer;
	dev_open_or_die(&asking, 16);
	dev_region_or_die(&asking, sizeof(struct once_state), KRP_ACCESS_LOCAL_WRITE, &seen);
	ask = dev_connected_or_die(&asking, 1, peer);
	dev_open_or_die(&p.dev, 64);
	dev_region_or_die(&p.dev,
			  ONCE_QUEUES * sizeof(struct once_slot) + sizeof(struct once_state),
			  KRP_ACCESS_LOCAL_WRITE, &p.local);
	for (i = 0; i < ONCE_QUEUES; i++)
		p.queues[i].nr = dev_connected_or_die(&p.dev, 2, peer);
	do {
		if (dev_now_ms() >= look_ms) {
			once_ask(&p, &asking, ask, &seen);
			look_ms = dev_now_ms() + ONCE_LOOK_MS;
		}
		for (busy = 0, i = 0; i < ONCE_QUEUES; i++) {
			if (!dev_over(end_ms))
				once_turn(&p, i);
			busy += p.queues[i].outstanding != 0;
		}
		once_drain(&p, 5);
	} while (!dev_over(end_ms) || busy);
	printf("done=%lu doubted=%lu silent=%lu cancelled=%lu other=%lu redone=%lu last_error=%d\n",
	       p.done, p.doubted, p.silent, p.cancelled, p.other, p.redone, p.last_error);
	return 0;
}
