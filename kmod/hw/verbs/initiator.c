// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: initiators: rings of requests that are sent on lanes, one target after the other.
 *
 * What the pool relies on of a DC initiator (krc_channel_in_doubt()) holds here: requests are
 * taken in order; those to the next target are begun when all to the last one have completed; and
 * behind a failure nothing is begun until it was halted and restarted.
 *
 * krc_verbs_pump() alone takes and gives lanes and posts to them. It is run by whatever
 * rings, takes completions, or is called back by lanes; one at a time, others have it look
 * again. A request is done when the device has completed it, or it never was posted; what was
 * posted to a lane that is lost is waited for, since the device may still write its memory.
 *
 * The last request that can be sent now is signaled, and each KRC_VERBS_SIGNAL-th; the device tells
 * in the order of posting, so a completion also is that of the unsignaled ones before it.
 * Locking: see hw/verbs/verbs.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/verbs/verbs.h"

#define KRC_VERBS_SIGNAL 16
/* how long it rests before it asks again for a lane that there is none of, and how often */
#define KRC_VERBS_REST_MS 20
#define KRC_VERBS_TRIES 25
#define KRC_VERBS_REFUSALS 3 /* lanes in a row that do not take a request */

/* From each state, the states that may follow it. */
static const u8 krc_verbs_next[KRC_VERBS_STATES] = {
	[KRC_VERBS_IDLE] = BIT(KRC_VERBS_ASKS) | BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_ASKS] = BIT(KRC_VERBS_HAS) | BIT(KRC_VERBS_RESTS) | BIT(KRC_VERBS_FAILED) |
			   BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_HAS] = BIT(KRC_VERBS_IDLE) | BIT(KRC_VERBS_GONE) | BIT(KRC_VERBS_FAILED) |
			  BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_GONE] = BIT(KRC_VERBS_IDLE) | BIT(KRC_VERBS_RESTS) | BIT(KRC_VERBS_FAILED) |
			   BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_RESTS] = BIT(KRC_VERBS_IDLE) | BIT(KRC_VERBS_FAILED) | BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_FAILED] = BIT(KRC_VERBS_HALTED),
	[KRC_VERBS_HALTED] = BIT(KRC_VERBS_IDLE),
};

const struct krc_verbs_lane_calls krc_verbs_lane_calls = {
	.hold = krc_lanes_hold,
	.release = krc_lanes_release,
	.wanted = krc_lanes_wanted,
	.sync = krc_lanes_sync,
};

/* What krc_verbs_step() wants done without the lock. */
enum krc_verbs_deed {
	KRC_VERBS_NOTHING,
	KRC_VERBS_HOLD,
	KRC_VERBS_RELEASE,
	KRC_VERBS_BREAK, /* release it, and nobody gets it any more */
};

static bool krc_verbs_set_state(struct krc_verbs_initiator *ini, enum krc_verbs_state state)
{
	lockdep_assert_held(&ini->lock);
	if (!(krc_verbs_next[ini->state] & BIT(state)))
		return false;
	WRITE_ONCE(ini->state, state);
	return true;
}

static struct krc_verbs_slot *krc_verbs_at(struct krc_verbs_initiator *ini, u32 number)
{
	return &ini->slots[number & ini->mask];
}

/* ---- outcomes */

/* Have the owner told that there is something to poll, if it asked for that. */
static void krc_verbs_tell(struct krc_verbs_initiator *ini)
{
	lockdep_assert_held(&ini->lock);
	if (!ini->armed || ini->done == ini->polled)
		return;
	ini->armed = false;
	ini->target->hw->events->completion(ini->owner);
}

static void krc_verbs_end(struct krc_verbs_initiator *ini, enum krc_fault fault, u8 syndrome,
			  u8 vendor)
{
	struct krc_verbs_slot *slot = krc_verbs_at(ini, ini->done++);

	lockdep_assert_held(&ini->lock);
	slot->fault = fault;
	slot->syndrome = syndrome;
	slot->vendor = vendor;
}

/* Nothing is outstanding any more: what was not sent is flushed. */
static void krc_verbs_flush(struct krc_verbs_initiator *ini)
{
	while (ini->done != ini->rung)
		krc_verbs_end(ini, KRC_FAULT_FLUSHED, IB_WC_WR_FLUSH_ERR, 0);
	ini->sent = ini->done;
	krc_verbs_tell(ini);
}

/* The oldest request, which was not sent, fails. */
static void krc_verbs_deny(struct krc_verbs_initiator *ini, enum krc_fault fault)
{
	lockdep_assert_held(&ini->lock);
	if (!krc_verbs_set_state(ini, KRC_VERBS_FAILED))
		return;
	krc_verbs_end(ini, fault, IB_WC_RESP_TIMEOUT_ERR, 0);
	krc_verbs_flush(ini);
}

/* Whether it has tried for as long as it may: other targets wait behind this one. */
static bool krc_verbs_overdue(const struct krc_verbs_initiator *ini)
{
	return ini->asked &&
	       time_after_eq(jiffies, ini->since + msecs_to_jiffies(KRC_VERBS_TIMEOUT_MS));
}

/* There is no lane for the oldest request, if there is one, which was not sent. */
static void krc_verbs_laneless(struct krc_verbs_initiator *ini, int err)
{
	lockdep_assert_held(&ini->lock);
	if (ini->done == ini->rung) {
		krc_verbs_set_state(ini, KRC_VERBS_IDLE);
		return;
	}
	if (krc_verbs_overdue(ini))
		err = -ETIMEDOUT; /* a peer that says now this, now that keeps others waiting, too */
	switch (err) {
	case -EBUSY:
	case -ECONNRESET:
		if (ini->tries++ >= KRC_VERBS_TRIES)
			krc_verbs_deny(ini, KRC_FAULT_TIMEOUT);
		else if (krc_verbs_set_state(ini, KRC_VERBS_RESTS))
			mod_delayed_work(system_unbound_wq, &ini->rest,
					 msecs_to_jiffies(KRC_VERBS_REST_MS));
		break;
	case -ESTALE:
		krc_verbs_deny(ini, KRC_FAULT_TARGET);
		break;
	case -ETIMEDOUT:
		krc_verbs_deny(ini, KRC_FAULT_TIMEOUT);
		break;
	default:
		krc_verbs_deny(ini, KRC_FAULT_FATAL);
		break;
	}
}

/* A fault of a request that was sent, and what it means for the initiator. */
static enum krc_fault krc_verbs_failed(struct krc_verbs_initiator *ini, enum ib_wc_status status)
{
	enum krc_fault fault = krc_verbs_fault(status);

	lockdep_assert_held(&ini->lock);
	if (ini->state != KRC_VERBS_FAILED && fault == KRC_FAULT_FLUSHED)
		fault = KRC_FAULT_LOST;
	/* a peer of rxe says so, too, when its answer found no memory, or is longer than its MTU is now */
	if (fault == KRC_FAULT_BUSY && krc_verbs_at(ini, ini->done)->wr.opcode != KRC_HW_SEND)
		fault = KRC_FAULT_LOST;
	krc_verbs_set_state(ini, KRC_VERBS_FAILED);
	ini->broken = true;
	return fault;
}

/* The oldest request ended like this. */
static void krc_verbs_outcome(struct krc_verbs_initiator *ini, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS) {
		krc_verbs_end(ini, krc_verbs_failed(ini, wc->status), wc->status, wc->vendor_err);
		return;
	}
	krc_verbs_end(ini, KRC_FAULT_NONE, 0, 0);
	ini->asked = false;
}

void krc_verbs_completed(struct krc_verbs_initiator *ini, u32 number, const struct ib_wc *wc)
{
	spin_lock_bh(&ini->lock);
	if (number - ini->done >= ini->sent - ini->done)
		goto out; /* from before a restart */
	/* what a halt flushes may be posted again, or not: the owner decides about it */
	if (ini->state == KRC_VERBS_HALTED && wc->status == IB_WC_WR_FLUSH_ERR)
		goto out;
	/* the unsignaled ones before it have succeeded, but not before one that is flushed */
	while (ini->done != number) {
		if (wc->status == IB_WC_WR_FLUSH_ERR)
			krc_verbs_outcome(ini, wc);
		else
			krc_verbs_end(ini, KRC_FAULT_NONE, 0, 0);
	}
	krc_verbs_outcome(ini, wc);
	krc_verbs_tell(ini);
out:
	spin_unlock_bh(&ini->lock);
}

/* ---- sending */

static void krc_verbs_wr_fill(const struct krc_hw_wr *from, struct ib_sge *sge,
			      struct ib_atomic_wr *atomic, struct ib_rdma_wr *rdma)
{
	*sge = (struct ib_sge){ .addr = from->local_addr,
				.length = from->length,
				.lkey = from->lkey };
	rdma->remote_addr = from->remote_addr;
	rdma->rkey = from->rkey;
	atomic->remote_addr = from->remote_addr;
	atomic->rkey = from->rkey;
	atomic->compare_add = from->compare_add;
	atomic->swap = from->swap;
}

static int krc_verbs_send(struct krc_verbs_initiator *ini, u32 number, bool signal)
{
	const struct krc_hw_wr *from = &krc_verbs_at(ini, number)->wr;
	struct ib_atomic_wr atomic = {};
	struct ib_rdma_wr rdma = {};
	struct ib_send_wr *wr = &rdma.wr;
	struct ib_sge sge;

	krc_verbs_wr_fill(from, &sge, &atomic, &rdma);
	switch (from->opcode) {
	case KRP_OP_READ:
		wr->opcode = IB_WR_RDMA_READ;
		break;
	case KRP_OP_WRITE:
		wr->opcode = IB_WR_RDMA_WRITE;
		break;
	case KRP_OP_CMP_SWAP:
		wr = &atomic.wr;
		wr->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
		break;
	case KRP_OP_FETCH_ADD:
		wr = &atomic.wr;
		wr->opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		break;
	default:
		wr->opcode = IB_WR_SEND;
		break;
	}
	wr->wr_id = krc_verbs_wr_id(ini->id, number);
	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = (signal ? IB_SEND_SIGNALED : 0) | (from->fence ? IB_SEND_FENCE : 0);
	return ib_post_send(ini->holder.qp, wr, NULL);
}

/* Whether a request is for the port that the lane reaches. */
static bool krc_verbs_fits(struct krc_verbs_initiator *ini, u32 number)
{
	return krc_verbs_same_target(&krc_verbs_at(ini, number)->to, &ini->to);
}

/*
 * Up to which request may be sent on the lane now. A holder that waits gets the lane after some
 * requests, or some bytes; to one that ends nothing more is sent.
 */
static u32 krc_verbs_sendable(struct krc_verbs_initiator *ini)
{
	u32 room = KRC_VERBS_SEND_DEPTH - (ini->sent - ini->done), end = ini->sent;
	const struct krc_verbs_target *target = ini->target;
	u64 bytes = ini->bytes;
	enum krc_lane_wish wish;

	lockdep_assert_held(&ini->lock);
	if (end == ini->rung)
		return end;
	wish = target->calls->wanted(target->lanes, &ini->holder);
	if (wish == KRC_LANE_WISH_NOW)
		return end;
	if (wish == KRC_LANE_WISH_SOON)
		room = min(room, KRC_VERBS_QUOTA - min(KRC_VERBS_QUOTA, ini->used));
	while (end != ini->rung && end - ini->sent < room && krc_verbs_fits(ini, end)) {
		if (wish == KRC_LANE_WISH_SOON && bytes >= KRC_VERBS_QUOTA_BYTES)
			break;
		bytes += krc_verbs_at(ini, end++)->wr.length;
	}
	return end;
}

/*
 * The lane has not taken a request. It may be broken, and nobody knew; a request that several lanes
 * in a row do not take is itself at fault.
 */
static void krc_verbs_refused(struct krc_verbs_initiator *ini, u32 number)
{
	lockdep_assert_held(&ini->lock);
	if (ini->refused != number)
		ini->refusals = 0;
	ini->refused = number;
	ini->refusals++;
	ini->broken = true;
	ini->err = -ECONNRESET;
	if (ini->refusals >= KRC_VERBS_REFUSALS && ini->sent == ini->done)
		krc_verbs_deny(ini, KRC_FAULT_LOCAL);
	else
		krc_verbs_set_state(ini, KRC_VERBS_GONE);
}

/* Send what can be. Return: what is to be done then. */
static enum krc_verbs_deed krc_verbs_serve(struct krc_verbs_initiator *ini)
{
	u32 end = krc_verbs_sendable(ini);

	while (ini->sent != end) {
		u32 number = ini->sent;
		bool signal = !krc_verbs_at(ini, number)->wr.unsignaled || number + 1 == end ||
			      !((number + 1) % KRC_VERBS_SIGNAL);

		if (krc_verbs_send(ini, number, signal)) {
			krc_verbs_refused(ini, number);
			return KRC_VERBS_NOTHING; /* the next step sees to it */
		}
		ini->bytes += krc_verbs_at(ini, number)->wr.length;
		ini->sent++;
		ini->used++;
	}
	if (ini->sent != ini->done)
		return KRC_VERBS_NOTHING;
	krc_verbs_set_state(ini, KRC_VERBS_IDLE);
	return KRC_VERBS_RELEASE;
}

/* A lane is to be asked for, to the target of the oldest request. */
static void krc_verbs_ask(struct krc_verbs_initiator *ini)
{
	const struct krc_hw_address *to = &krc_verbs_at(ini, ini->done)->to;

	lockdep_assert_held(&ini->lock);
	if (!ini->asked || !krc_verbs_same_target(&ini->to, to)) {
		ini->asked = true;
		ini->since = jiffies;
		ini->tries = 0;
	}
	ini->used = 0;
	ini->bytes = 0;
	ini->broken = false;
	ini->to = *to;
	ini->holder.payer = krc_verbs_at(ini, ini->done)->payer;
	krc_verbs_set_state(ini, KRC_VERBS_ASKS);
}

/* One step. Return: what is to be done before the next; KRC_VERBS_NOTHING: there is none. */
static enum krc_verbs_deed krc_verbs_step(struct krc_verbs_initiator *ini)
{
	enum krc_verbs_deed deed = KRC_VERBS_NOTHING;

	lockdep_assert_held(&ini->lock);
	if (ini->state == KRC_VERBS_HAS)
		deed = krc_verbs_serve(ini);
	if (deed != KRC_VERBS_NOTHING || ini->state == KRC_VERBS_HALTED)
		return deed;
	if (ini->state == KRC_VERBS_IDLE && ini->done != ini->rung) {
		krc_verbs_ask(ini);
		return KRC_VERBS_HOLD;
	}
	if ((ini->state != KRC_VERBS_GONE && ini->state != KRC_VERBS_FAILED) ||
	    ini->sent != ini->done)
		return KRC_VERBS_NOTHING;
	if (ini->state == KRC_VERBS_FAILED)
		krc_verbs_flush(ini);
	if (ini->holds)
		return ini->broken ? KRC_VERBS_BREAK : KRC_VERBS_RELEASE;
	if (ini->state == KRC_VERBS_GONE)
		krc_verbs_laneless(ini, ini->err);
	return KRC_VERBS_NOTHING;
}

/* It waits for a lane: not for ever. */
static void krc_verbs_watch(struct krc_verbs_initiator *ini)
{
	unsigned long left = ini->since + msecs_to_jiffies(KRC_VERBS_TIMEOUT_MS) - jiffies;

	lockdep_assert_held(&ini->lock);
	mod_delayed_work(system_unbound_wq, &ini->rest, krc_verbs_overdue(ini) ? 0 : left + 1);
}

/* Only krc_verbs_pump() calls it, and changes ini->to. */
static void krc_verbs_do(struct krc_verbs_initiator *ini, enum krc_verbs_deed deed, u32 turn)
{
	const struct krc_verbs_target *target = ini->target;

	if (deed == KRC_VERBS_HOLD)
		target->calls->hold(target->lanes, (const struct krc_lane_peer *)ini->to.opaque,
				    ini->index, turn, &ini->holder);
	else
		target->calls->release(target->lanes, &ini->holder, deed == KRC_VERBS_BREAK);
}

void krc_verbs_pump(struct krc_verbs_initiator *ini)
{
	enum krc_verbs_deed deed;
	u32 turn;

	spin_lock_bh(&ini->lock);
	ini->again = true;
	while (!ini->pumping && ini->again) {
		ini->pumping = true;
		ini->again = false;
		deed = krc_verbs_step(ini);
		if (deed != KRC_VERBS_NOTHING) {
			ini->holds = deed == KRC_VERBS_HOLD;
			turn = ++ini->turn;
			ini->again = true;
			spin_unlock_bh(&ini->lock);
			krc_verbs_do(ini, deed, turn);
			spin_lock_bh(&ini->lock);
			if (ini->state == KRC_VERBS_ASKS)
				krc_verbs_watch(ini);
		}
		ini->pumping = false;
	}
	krc_verbs_tell(ini);
	spin_unlock_bh(&ini->lock);
}

static void krc_verbs_ready(struct krc_lane_holder *holder, u32 turn)
{
	struct krc_verbs_initiator *ini = container_of(holder, struct krc_verbs_initiator, holder);

	spin_lock_bh(&ini->lock);
	if (turn == ini->turn)
		krc_verbs_set_state(ini,
				    KRC_VERBS_HAS); /* else it is halted, which gives it back */
	spin_unlock_bh(&ini->lock);
	krc_verbs_pump(ini);
}

/* There is no lane for it, or the one that it has is given up. */
static void krc_verbs_take_away(struct krc_verbs_initiator *ini, int err)
{
	lockdep_assert_held(&ini->lock);
	ini->err = err;
	if (ini->state == KRC_VERBS_ASKS) {
		ini->holds = false; /* it has had nothing */
		krc_verbs_laneless(ini, err);
		return;
	}
	ini->broken = true;
	krc_verbs_set_state(ini, KRC_VERBS_GONE);
}

static void krc_verbs_lost(struct krc_lane_holder *holder, u32 turn, int err)
{
	struct krc_verbs_initiator *ini = container_of(holder, struct krc_verbs_initiator, holder);

	spin_lock_bh(&ini->lock);
	if (turn == ini->turn)
		krc_verbs_take_away(ini, err);
	spin_unlock_bh(&ini->lock);
	krc_verbs_pump(ini);
}

static void krc_verbs_rested(struct work_struct *work)
{
	struct krc_verbs_initiator *ini =
		container_of(to_delayed_work(work), struct krc_verbs_initiator, rest);

	spin_lock_bh(&ini->lock);
	if (ini->state == KRC_VERBS_RESTS)
		krc_verbs_set_state(ini, KRC_VERBS_IDLE);
	else if (ini->state == KRC_VERBS_ASKS && krc_verbs_overdue(ini))
		krc_verbs_deny(ini, KRC_FAULT_TIMEOUT);
	spin_unlock_bh(&ini->lock);
	krc_verbs_pump(ini);
}

/* ---- create, halt, destroy */

int krc_verbs_initiator_halt(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);
	const struct krc_verbs_target *target = ini->target;
	bool pumping, broken;

	spin_lock_bh(&ini->lock);
	krc_verbs_set_state(ini, KRC_VERBS_HALTED);
	spin_unlock_bh(&ini->lock);
	do { /* a pump does nothing that takes long, and has no next step now */
		spin_lock_bh(&ini->lock);
		pumping = ini->pumping;
		broken = ini->broken || ini->sent != ini->done;
		spin_unlock_bh(&ini->lock);
		if (pumping)
			usleep_range(5, 20);
	} while (pumping);
	cancel_delayed_work_sync(&ini->rest);
	target->calls->release(target->lanes, &ini->holder, broken);
	target->calls->sync(target->lanes, &ini->holder);
	/* what was executed until now is no request that was not */
	krc_verbs_cq_flush(ini->target);
	spin_lock_bh(&ini->lock);
	ini->holds = false;
	ini->began = ini->sent != ini->done;
	ini->sent = ini->done; /* later completions are of no request */
	spin_unlock_bh(&ini->lock);
	return 0;
}

bool krc_verbs_initiator_began(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);
	bool began;

	spin_lock_bh(&ini->lock);
	began = ini->began;
	spin_unlock_bh(&ini->lock);
	return began;
}

int krc_verbs_initiator_restart(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);

	spin_lock_bh(&ini->lock);
	ini->rung = ini->head;
	ini->sent = ini->head;
	ini->done = ini->head;
	ini->polled = ini->head;
	ini->armed = false;
	ini->asked = false;
	ini->err = 0;
	krc_verbs_set_state(ini, KRC_VERBS_IDLE);
	spin_unlock_bh(&ini->lock);
	return 0;
}

/*
 * Give an initiator its number, unless there are too many: each has something outstanding on one lane
 * at a time.
 */
static int krc_verbs_enlist(struct krc_verbs_target *target, struct krc_verbs_initiator *ini)
{
	u32 most = target->send_cq->cqe / KRC_VERBS_SEND_DEPTH;
	int err = -ENOSPC;

	if ((u32)atomic_inc_return(&target->made) <= most)
		err = xa_alloc_cyclic(&target->initiators, &ini->id, ini, XA_LIMIT(1, S32_MAX),
				      &target->next_id, GFP_KERNEL);
	if (err < 0)
		atomic_dec(&target->made);
	if (err == -ENOSPC)
		krc_port_err(target->hw->ibdev, target->port,
			     "more than %u initiators do not go with lanes here\n", most);
	return min(err, 0);
}

/* Which lane to a port is made for an initiator, unless another one is free. */
static u32 krc_verbs_index(enum krc_hw_use use, u32 id)
{
	BUILD_BUG_ON(KRP_LANE_INDEXES != 4);
	switch (use) {
	case KRC_HW_MESSAGES:
		return KRC_LANE_MESSAGES;
	case KRC_HW_PROBE:
		return KRC_LANE_PROBES;
	default:
		return id % KRC_LANE_PROBES;
	}
}

struct krc_hw_initiator *krc_verbs_initiator_create(struct krc_hw *hw, u32 port, u16 gid_index,
						    const struct krc_hw_send *send)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_verbs_initiator *ini;
	struct krc_verbs_target *target;
	u32 nr;
	int err;

	if (!send->depth || send->depth > v->attr.initiator_depth_max ||
	    !krc_verbs_is_port(v, port) || !v->ports[port].target)
		return ERR_PTR(-EINVAL);
	target = v->ports[port].target;
	nr = roundup_pow_of_two(send->depth);
	ini = kvzalloc(struct_size(ini, slots, nr), GFP_KERNEL);
	if (!ini)
		return ERR_PTR(-ENOMEM);
	ini->holder.ready = krc_verbs_ready;
	ini->holder.lost = krc_verbs_lost;
	ini->target = target;
	ini->owner = send->owner;
	ini->depth = send->depth;
	ini->mask = nr - 1;
	spin_lock_init(&ini->lock);
	INIT_DELAYED_WORK(&ini->rest, krc_verbs_rested);
	err = krc_verbs_enlist(target, ini);
	if (err) {
		kvfree(ini);
		return ERR_PTR(err);
	}
	ini->index = krc_verbs_index(send->use, ini->id);
	return (struct krc_hw_initiator *)ini;
}

void krc_verbs_initiator_destroy(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);

	krc_verbs_initiator_halt(initiator);
	xa_erase(&ini->target->initiators, ini->id);
	atomic_dec(&ini->target->made);
	synchronize_rcu(); /* a reader that has found it among completions */
	kvfree(ini);
}

/* ---- requests */

static bool krc_verbs_is_atomic(u8 opcode)
{
	return opcode == KRP_OP_CMP_SWAP || opcode == KRP_OP_FETCH_ADD;
}

static int krc_verbs_wr_check(const struct krc_verbs *v, const struct krc_hw_wr *wr)
{
	if (wr->opcode != KRC_HW_SEND &&
	    (wr->opcode < KRP_OP_READ || wr->opcode > KRP_OP_FETCH_ADD))
		return -EINVAL;
	if (!wr->length || wr->length > v->attr.length_max)
		return -EINVAL;
	if (krc_verbs_is_atomic(wr->opcode) &&
	    (!v->attr.atomics || wr->length != sizeof(u64) || wr->remote_addr % sizeof(u64)))
		return -EINVAL;
	return 0;
}

int krc_verbs_post(struct krc_hw_initiator *initiator, const struct krc_hw_wr *wr)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);
	const struct krc_hw_events *events = ini->target->hw->events;
	int err = krc_verbs_wr_check(ini->target->hw, wr);
	struct krc_verbs_slot *slot;

	if (err)
		return err;
	if (READ_ONCE(ini->state) == KRC_VERBS_HALTED)
		return -EIO;
	/* only a poll moves it, which the caller serialises with this */
	if (ini->head - READ_ONCE(ini->polled) >= ini->depth)
		return -ENOSPC;
	slot = krc_verbs_at(ini, ini->head);
	slot->wr = *wr;
	slot->to = *wr->address;
	slot->wr.address = &slot->to;
	slot->payer = events->payer ? events->payer(ini->owner) : NULL;
	ini->head++;
	return 0;
}

void krc_verbs_ring(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);

	spin_lock_bh(&ini->lock);
	if (ini->rung != ini->head && ini->state != KRC_VERBS_HALTED) {
		krc_verbs_at(ini, ini->head - 1)->wr.unsignaled = false;
		ini->rung = ini->head;
	}
	spin_unlock_bh(&ini->lock);
	krc_verbs_pump(ini);
}

int krc_verbs_poll(struct krc_hw_initiator *initiator, struct krc_wc *wc, int max)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);
	u32 at;
	int n = 0;

	krc_verbs_cq_poll(ini->target);
	spin_lock_bh(&ini->lock);
	for (at = ini->polled; n < max && at != ini->done; at++) {
		const struct krc_verbs_slot *slot = krc_verbs_at(ini, at);

		if (slot->fault == KRC_FAULT_NONE && slot->wr.unsignaled)
			continue; /* one that is told stands for it */
		wc[n++] = (struct krc_wc){ .cookie = slot->wr.cookie,
					   .fault = slot->fault,
					   .syndrome = slot->syndrome,
					   .vendor = slot->vendor };
		WRITE_ONCE(ini->polled, at + 1);
	}
	spin_unlock_bh(&ini->lock);
	return n;
}

void krc_verbs_arm(struct krc_hw_initiator *initiator)
{
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(initiator);

	spin_lock_bh(&ini->lock);
	ini->armed = true;
	spin_unlock_bh(&ini->lock);
}
