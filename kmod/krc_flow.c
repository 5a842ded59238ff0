// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: flows as their owners use them: hand over, cancel, resume, wait.
 *
 * A flow that has nothing outstanding goes to the initiator of the processor that
 * submits, to one of the next few if that one has enough to do or stands still, or to that
 * of quarantine; as long as it has, it stays, which keeps its order. So a burst is spread:
 * the hardware has a bounded number of READs of an initiator under way, and serves one of
 * its targets after the other.
 * outstanding goes down only after done() has returned, so the last done() on one
 * initiator is over before the first on another.
 * Locking: krc_flow.lock, then the initiator's; see krc_initiator.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>

#include "krc_initiator.h"

void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool, void (*done)(struct krc_req *req),
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

#define KRC_LOAD_UNREADY (1U << 30) /* it will be */
#define KRC_LOAD_DEAD (1U << 31)

/* How long a request would wait on an initiator: a hint, without its lock. */
static u32 krc_initiator_load(const struct krc_initiator *ini)
{
	enum krc_initiator_state state = READ_ONCE(ini->state);
	u32 load = READ_ONCE(ini->tail) - READ_ONCE(ini->head);

	if (state != KRC_INI_READY)
		return state == KRC_INI_DEAD ? KRC_LOAD_DEAD : KRC_LOAD_UNREADY;
	if (load && time_after(jiffies, READ_ONCE(ini->progress) + msecs_to_jiffies(KRC_SLOW_MS)))
		load += KRC_LOAD_SLOW;
	return load;
}

/* The initiator of quarantine, this processor's, or one that works better. */
static struct krc_initiator *krc_pool_pick(struct krc_pool *pool, bool quarantined)
{
	u32 start = raw_smp_processor_id() % pool->nr;
	struct krc_initiator *best = &pool->ini[start];
	u32 least = krc_initiator_load(best), i;

	if (quarantined && READ_ONCE(pool->ini[pool->nr].state) != KRC_INI_DEAD)
		return &pool->ini[pool->nr];
	for (i = 1; i < pool->nr && least >= KRC_LOAD_BUSY; i++) {
		struct krc_initiator *ini = &pool->ini[(start + i) % pool->nr];
		u32 load;

		if (i >= KRC_POOL_SPREAD && least < KRC_LOAD_UNREADY)
			break;
		load = krc_initiator_load(ini);
		if (load < least) {
			least = load;
			best = ini;
		}
	}
	return best;
}

/* Lock the initiator a flow is on, flow->lock held. A flow that was never on one gets it. */
static struct krc_initiator *krc_flow_lock(struct krc_flow *flow, bool may_move)
	__acquires(&flow->initiator->lock)
{
	lockdep_assert_held(&flow->lock);
	if (!flow->initiator || (may_move && !atomic_read_acquire(&flow->outstanding)))
		flow->initiator = krc_pool_pick(flow->pool, flow->quarantined);
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
		req->slots = 0;
		req->next = 0;
		req->done = 0;
		count++;
	}
	return count;
}

int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs)
{
	u32 count = krc_flow_prepare(flow, reqs);
	struct krc_initiator *ini;
	int err;

	if (!count)
		return 0;
	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, true);
	err = krc_flow_accepts(flow, ini);
	if (!err) {
		atomic_add(count, &flow->outstanding);
		list_splice_tail_init(reqs, &flow->waiting);
		ini->pollers += flow->awake;
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
	ini = krc_flow_lock(flow, false);
	krc_flow_fail(ini, flow, -ECANCELED);
	spin_unlock(&flow->lock);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

void krc_flow_resume(struct krc_flow *flow)
{
	struct krc_initiator *ini;

	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, false);
	if (flow->held) {
		flow->held = false;
		/* It was its turn; behind the others it might get old again. */
		list_move(&flow->list, &ini->turn);
		krc_initiator_fill(ini);
		krc_initiator_expect(ini);
	}
	spin_unlock(&flow->lock);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

void krc_flow_restart(struct krc_flow *flow)
{
	struct krc_initiator *ini;

	spin_lock_bh(&flow->lock);
	ini = krc_flow_lock(flow, true);
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
