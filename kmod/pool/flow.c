// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the operations of a flow's owner: submit, cancel, resume, drain, restart.
 *
 * A flow with nothing outstanding moves to the initiator of the submitting CPU, or to one of
 * the next few if that one is busy or stalled; while it has requests outstanding it stays,
 * which keeps its order. So a burst is spread over initiators: the hardware has a bounded
 * number of READs of an initiator in flight, and serves one of its targets at a time.
 * krc_flow.outstanding is decremented only after done() has returned, so the last done() on
 * one initiator is over before the first on another.
 * Locking: krc_flow.lock, then the initiator's; see pool/pool_priv.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>

#include "pool/pool_priv.h"

void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool,
		   void (*done)(struct krc_flow *flow, struct list_head *reqs, u32 nr),
		   int (*check)(struct krc_req *req))
{
	memset(flow, 0, sizeof(*flow));
	spin_lock_init(&flow->lock);
	flow->pool = pool;
	INIT_LIST_HEAD(&flow->list);
	INIT_LIST_HEAD(&flow->waiting);
	INIT_LIST_HEAD(&flow->replay);
	atomic_set(&flow->outstanding, 0);
	flow->done = done;
	flow->check = check;
}

/* Estimated wait of a new request on an initiator: a hint, without its lock. */
static u32 krc_initiator_load(const struct krc_initiator *ini)
{
	enum krc_initiator_state state = READ_ONCE(ini->state);
	u32 head = READ_ONCE(ini->head), load;

	if (state != KRC_INI_READY)
		return state == KRC_INI_DEAD ? KRC_LOAD_DEAD : KRC_LOAD_UNREADY;
	smp_rmb(); /* head before tail: the tail read below is not behind that head */
	load = min(READ_ONCE(ini->tail) - head, ini->depth);
	load = max(load, READ_ONCE(ini->bytes) / KRC_LOAD_BYTES);
	if (load && time_after(jiffies, READ_ONCE(ini->progress) + msecs_to_jiffies(KRC_SLOW_MS)))
		load += KRC_LOAD_SLOW;
	return load;
}

/* Whether the oldest segment of an initiator is for this peer. */
static bool krc_initiator_waits_for(struct krc_initiator *ini, const struct krc_hw_address *to)
{
	bool waits = false;

	spin_lock(&ini->lock);
	if (ini->head != ini->tail)
		waits = !memcmp(ini->slots[ini->head & ini->mask].req->wr.address, to, sizeof(*to));
	spin_unlock(&ini->lock);
	return waits;
}

/* The n-th initiator set apart, or the next of them that is not dead. */
static struct krc_initiator *krc_pool_pick_apart(struct krc_pool *pool, u32 apart)
{
	u32 i;

	for (i = 0; i < KRC_POOL_APART; i++) {
		u32 at = pool->nr + (apart - 1 + i) % KRC_POOL_APART;

		if (READ_ONCE(pool->ini[at].state) != KRC_INI_DEAD)
			return &pool->ini[at];
	}
	return &pool->ini[pool->nr + apart - 1];
}

/*
 * The initiator of this CPU, or a less loaded one. A request to the peer for which an initiator
 * is stalled goes to that same initiator, so that no other stalls on that peer as well.
 */
static struct krc_initiator *krc_pool_pick(struct krc_pool *pool, u32 apart,
					   const struct krc_hw_address *to)
{
	u32 start = raw_smp_processor_id() % pool->nr, least = U32_MAX, i;
	struct krc_initiator *best = &pool->ini[start];

	if (apart)
		return krc_pool_pick_apart(pool, apart);
	for (i = 0; i < pool->nr && least >= KRC_LOAD_BUSY; i++) {
		struct krc_initiator *ini = &pool->ini[(start + i) % pool->nr];
		u32 load = krc_initiator_load(ini);

		if (i >= KRC_POOL_SPREAD && least < KRC_LOAD_SLOW)
			break;
		if (to && load >= KRC_LOAD_SLOW && load < KRC_LOAD_UNREADY &&
		    krc_initiator_waits_for(ini, to))
			return ini;
		if (load < least) {
			least = load;
			best = ini;
		}
	}
	return best;
}

/*
 * Lock the initiator of a flow, flow->lock held. A flow without one is assigned one, and a flow
 * that may move and has nothing outstanding may get another. @to: the peer of its next request,
 * or NULL.
 */
static struct krc_initiator *krc_flow_lock(struct krc_flow *flow, bool may_move,
					   const struct krc_hw_address *to)
	__acquires(&flow->initiator->lock)
{
	lockdep_assert_held(&flow->lock);
	if (!flow->initiator || (may_move && !atomic_read_acquire(&flow->outstanding)))
		flow->initiator = krc_pool_pick(flow->pool, flow->apart, to);
	spin_lock(&flow->initiator->lock);
	return flow->initiator;
}

static int krc_flow_accepts(const struct krc_flow *flow, const struct krc_initiator *ini)
{
	if (ini->state == KRC_INI_STOPPED)
		return -ENODEV;
	if (flow->failed)
		return -ENOTCONN;
	return ini->state == KRC_INI_DEAD ? -EIO : 0;
}

static u32 krc_flow_prepare(struct krc_flow *flow, struct list_head *reqs)
{
	struct krc_req *req;
	u32 count = 0;

	list_for_each_entry(req, reqs, list) {
		req->flow = flow;
		req->status = 0;
		req->fault = KRC_FAULT_NONE;
		req->state = KRC_REQ_WAITING;
		req->fenced = false;
		req->begun = false;
		req->touched = false;
		req->slots = 0;
		req->next = 0;
		req->done = 0;
		count++;
	}
	return count;
}

int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs)
{
	struct krc_req *first = list_first_entry(reqs, struct krc_req, list);
	u32 count = krc_flow_prepare(flow, reqs);
	struct krc_initiator *ini;
	int err;

	if (!count)
		return 0;
	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, true, first->wr.address);
	krc_initiator_note_poller(ini);
	err = krc_flow_accepts(flow, ini);
	if (!err) {
		atomic_add(count, &flow->outstanding);
		list_splice_tail_init(reqs, &flow->waiting);
		ini->pollers += flow->polled;
		krc_flow_activate(ini, flow);
		krc_initiator_fill(ini);
	}
	spin_unlock(&flow->lock);
	krc_initiator_run(ini, KRC_POLL_BATCH);
	spin_unlock_bh(&ini->lock);
	return err;
}

void krc_flow_cancel(struct krc_flow *flow)
{
	struct krc_initiator *ini;

	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, false, NULL);
	krc_flow_fail(ini, flow, -ECANCELED);
	spin_unlock(&flow->lock);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

void krc_flow_resume(struct krc_flow *flow)
{
	struct krc_initiator *ini;

	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, false, NULL);
	if (flow->held) {
		flow->held = false;
		/* at the head of the DRR list: queued last, its lease might expire again */
		list_move(&flow->list, &ini->turn);
		krc_initiator_fill(ini);
		krc_initiator_arm(ini);
	}
	spin_unlock(&flow->lock);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

void krc_flow_restart(struct krc_flow *flow)
{
	struct krc_initiator *ini;

	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, true, NULL);
	flow->failed = false;
	flow->end_status = 0;
	spin_unlock(&flow->lock);
	spin_unlock_bh(&ini->lock);
}

u32 krc_flow_index(const struct krc_flow *flow)
{
	return READ_ONCE(flow->initiator)->index;
}

void krc_flow_drain(struct krc_flow *flow)
{
	wait_var_event(&flow->outstanding, !atomic_read_acquire(&flow->outstanding));
}

int krc_flow_drain_killable(struct krc_flow *flow)
{
	return wait_var_event_killable(&flow->outstanding,
				       !atomic_read_acquire(&flow->outstanding));
}
