// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: one working channel: which segment is posted next, what a completion means, and
 * delivery of outcomes to the flows.
 *
 * Payers take turns by deficit round robin over bytes (Shreedhar and Varghese, SIGCOMM
 * '95), and in a payer's turn it is one flow's, or that of several which have little to post: what
 * one leaves the next may use. The first of a payer's flows stands for it in the DRR list and has
 * the deficit; the others are behind it. A flow that comes looks for its payer among those that
 * wait on the channel; nobody but root can be many of them.
 * A channel has at most krc_window.limit segments and KRC_WINDOW_BYTES in the hardware at once, so
 * one flow's requests never delay the others for long. Completions come in the order of posting; the
 * cookie is the number of the segment, and a completion that does not fit is unexpected.
 * Small consecutive segments of a flow share completions, up to KRC_UNSIGNALED_MAX: selective
 * signaling, which programs do on queue pairs of their own (Kalia et al., USENIX ATC '16).
 * Before another flow posts, and before a large segment, the last one is signaled, so that no
 * flow's completion waits for another flow.
 *
 * The CQ is polled in softirq by irq_poll: a provider's upcall may be in hard interrupt, and
 * irq_poll takes over without a context switch and has a budget. The CQ is armed only while
 * work is outstanding and no task busy-polls it (always on a preemptible kernel). When a
 * poller leaves that may be back soon, arming is deferred by linger_us with one hrtimer, which
 * covers everything posted meanwhile.
 * Locking: see pool/pool_priv.h.
 */
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "base/compat.h"
#include "base/meter.h"
#include "base/spin.h"
#include "base/trace.h"
#include "krp_ioctl.h"
#include "pool/pool_priv.h"
#include "pool/silence.h"
#include "pool/run.h"

/* From each state, the states that may follow it. */
static const u8 krc_channel_next[KRC_CHANNEL_STATES] = {
	[KRC_CHANNEL_READY] = BIT(KRC_CHANNEL_FAILED) | BIT(KRC_CHANNEL_LEAVING) |
			      BIT(KRC_CHANNEL_STOPPED),
	[KRC_CHANNEL_LEAVING] = BIT(KRC_CHANNEL_FAILED) | BIT(KRC_CHANNEL_STOPPED),
	[KRC_CHANNEL_FAILED] = BIT(KRC_CHANNEL_RESETTING) | BIT(KRC_CHANNEL_STOPPED),
	[KRC_CHANNEL_RESETTING] = BIT(KRC_CHANNEL_READY) | BIT(KRC_CHANNEL_DEAD) |
				  BIT(KRC_CHANNEL_STOPPED),
	[KRC_CHANNEL_DEAD] = BIT(KRC_CHANNEL_RESETTING) | BIT(KRC_CHANNEL_STOPPED),
};

static const char *const krc_channel_names[KRC_CHANNEL_STATES] = {
	[KRC_CHANNEL_READY] = "ready",	       [KRC_CHANNEL_FAILED] = "failed",
	[KRC_CHANNEL_RESETTING] = "resetting", [KRC_CHANNEL_DEAD] = "dead",
	[KRC_CHANNEL_STOPPED] = "stopped",     [KRC_CHANNEL_LEAVING] = "leaving",
};

const char *krc_channel_state_name(enum krc_channel_state state)
{
	return state < KRC_CHANNEL_STATES ? krc_channel_names[state] : "?";
}

bool krc_channel_set_state(struct krc_channel *ch, enum krc_channel_state state)
{
	lockdep_assert_held(&ch->lock);
	if (!(krc_channel_next[ch->state] & BIT(state)))
		return false;
	trace_krc_initiator_state(ch->pool->rail, ch->index, ch->state, state);
	WRITE_ONCE(ch->state, state);
	return true;
}

/* Completions can be polled: the hardware exists and is not being reset. */
static bool krc_channel_pollable(const struct krc_channel *ch)
{
	return krc_channel_works(ch) || ch->state == KRC_CHANNEL_FAILED;
}

/* Whether a request that ends now may have changed the peer's memory. */
static bool krc_req_touched(const struct krc_req *req)
{
	return req->touched || (req->done && req->wr.opcode == KRP_OP_WRITE);
}

/* The status that an unsuccessful request completes with. */
static int krc_req_outcome(const struct krc_req *req)
{
	if (req->status && req->status != -ECANCELED)
		return req->status;
	if (krc_req_touched(req))
		return -EREMCHG;
	return req->status ? req->status : req->flow->end_status;
}

static void krc_req_finish(struct krc_channel *ch, struct krc_req *req, int status)
{
	if (req->state != KRC_REQ_WAITING && req->state != KRC_REQ_POSTED)
		return; /* its outcome is set already */
	ch->stats.unknown += status == -EREMCHG;
	req->status = status;
	list_move_tail(&req->list, &ch->finished); /* from a list of its flow */
	req->state = KRC_REQ_FINISHED;
	ch->stats.completed++;
}

/* A failed flow has nothing in the hardware any more: complete its queued requests. */
static void krc_flow_flush(struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_req *req, *tmp;

	list_splice_init(&flow->replay, &flow->waiting);
	list_for_each_entry_safe(req, tmp, &flow->waiting, list)
		krc_req_finish(ch, req, krc_req_outcome(req));
}

void krc_flow_fail(struct krc_channel *ch, struct krc_flow *flow, int status)
{
	lockdep_assert_held(&ch->lock);
	if (!flow->failed) {
		flow->failed = true;
		flow->end_status = status;
	}
	flow->held = false;
	flow->refused = 0;
	krc_flow_deactivate(ch, flow);
	if (!flow->posted)
		krc_flow_flush(ch, flow);
}

/*
 * Nothing of a flow is in the hardware any more, and it has failed or was cancelled, or fails now,
 * since the first request that waits was refused.
 */
static noinline void krc_flow_end(struct krc_channel *ch, struct krc_flow *flow)
{
	if (flow->refused)
		list_first_entry(&flow->waiting, struct krc_req, list)->status = flow->refused;
	krc_flow_fail(ch, flow, -ECANCELED);
}

/* Segments of a flow have left the hardware. */
static __always_inline void krc_flow_left(struct krc_channel *ch, struct krc_flow *flow, u32 nr)
{
	flow->posted -= nr;
	if (unlikely(flow->failed || flow->refused) && !flow->posted)
		krc_flow_end(ch, flow);
}

/* The first of the flows of a payer that wait for their turn, or NULL. */
static struct krc_flow *krc_channel_first_of(const struct krc_channel *ch, const void *payer)
{
	struct krc_flow *first;

	list_for_each_entry(first, &ch->turn, list)
		if (first->payer == payer)
			return first;
	return NULL;
}

/*
 * The next flow of a payer is its first from now on, with what is left of the turn; @flow, which
 * was, is in no list any more.
 */
static struct krc_flow *krc_flow_succeed(const struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_flow *next = krc_flow_prefer(ch, &flow->behind);

	next->lap = next->round;
	next->round = flow->round;
	list_del(&next->list);
	list_splice_init(&flow->behind, &next->behind);
	list_replace_init(&flow->list, &next->list);
	next->deficit = flow->deficit;
	next->inherits = true;
	flow->deficit = 0;
	return next;
}

void krc_flow_deactivate(const struct krc_channel *ch, struct krc_flow *flow)
{
	lockdep_assert_held(&ch->lock);
	if (unlikely(!list_empty(&flow->behind)))
		krc_flow_succeed(ch, flow);
	else
		list_del_init(&flow->list);
}

void krc_flow_activate(struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_flow *first = NULL;

	lockdep_assert_held(&ch->lock);
	if (flow->failed || flow->refused || !list_empty(&flow->list) ||
	    (list_empty(&flow->waiting) && list_empty(&flow->replay)))
		return;
	if (unlikely(!list_empty(&ch->turn)))
		first = krc_channel_first_of(ch, flow->payer);
	flow->deficit = first ? 0 : ch->window.quantum;
	flow->round = (first ? first->lap : ch->round) + 1;
	list_add_tail(&flow->list, first ? &first->behind : &ch->turn);
}

void krc_flow_advance(struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_flow *first = krc_channel_first_of(ch, flow->payer);

	lockdep_assert_held(&ch->lock);
	list_del_init(&flow->list);
	if (first) {
		list_replace_init(&first->list, &flow->list);
		list_splice_init(&first->behind, &flow->behind);
		list_add(&first->list, &flow->behind);
		flow->deficit = first->deficit;
		first->deficit = 0;
		/* that may be too little: then the next turn is its own as well */
		flow->inherits = true;
		first->round = first->lap;
		flow->lap = first->lap;
	}
	flow->round = ch->round;
	ch->serving = flow;
	list_move(&flow->list, &ch->turn);
}

/*
 * The turn of a payer is over: the next one is that of its next flow, after those of others. A flow
 * that came to the rest of a turn has a whole one first: a rest is too little for large requests,
 * which would be passed over each time.
 */
static void krc_channel_turn(struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_flow *next = flow;

	if (!flow->inherits && !list_empty(&flow->behind)) {
		next = krc_flow_succeed(ch, flow);
		flow->round = next->lap + 1;
		list_add_tail(&flow->list, &next->behind);
	}
	next->inherits = false;
	next->deficit += ch->window.quantum;
	next->round = ch->round + 1;
	list_move_tail(&next->list, &ch->turn);
}

/* The flow whose turn it is: the one that has begun it, or a payer's of the same round. */
static struct krc_flow *krc_channel_served(struct krc_channel *ch)
{
	struct krc_flow *flow = list_first_entry(&ch->turn, struct krc_flow, list);

	if (likely(flow == ch->serving && flow->round == ch->round))
		return flow;
	if (unlikely(!list_is_singular(&ch->turn))) {
		flow = krc_flow_prefer(ch, &ch->turn);
		list_move(&flow->list, &ch->turn);
	}
	ch->round = flow->round;
	ch->serving = flow;
	return flow;
}

/*
 * Ring the doorbell, which makes the last posted segment signaled. Leases were checked when
 * their segments were posted: if one has ended since (this CPU was away for that long), the
 * doorbell is not rung but the channel faulted, and all of it is posted again. The peer's
 * margin covers a delay between this check and the doorbell.
 */
static void krc_channel_ring(struct krc_channel *ch)
{
	bool late = ch->lease.unrung && time_after(jiffies, ch->lease.ring_by);

	ch->slots[(ch->tail - 1) & ch->mask].unsignaled = false;
	ch->lease.unrung = false;
	if (late)
		krc_channel_fault(ch, KRC_FAULT_EXPIRED, NULL);
	if (ch->state != KRC_CHANNEL_READY)
		return;
	ch->rung = ch->tail;
	ch->pool->ops->ring(ch->hw);
}

/* By when a leased segment that is posted now must be out of the hardware. */
static unsigned long krc_req_expires(const struct krc_req *req)
{
	return (unlikely(req->wr.opcode == KRC_HW_SEND) ? jiffies : req->until) + req->stay;
}

/* Whether a SEND is not to be posted any more. */
static bool krc_req_late(const struct krc_req *req)
{
	return unlikely(req->wr.opcode == KRC_HW_SEND) && time_after(jiffies, req->until);
}

/* Whether the check of a request's flow has nothing against it, since its lease is not over. */
static bool krc_req_unlapsed(const struct krc_req *req)
{
	return req->flow->lapses && req->leased && time_before_eq(jiffies, req->until);
}

/* Whether a leased request would queue behind a segment in the hardware for long. */
static bool krc_channel_old(const struct krc_channel *ch, const struct krc_req *req)
{
	return req->leased && ch->head != ch->tail && time_after(jiffies, ch->progress + req->stay);
}

/* The flow pauses: its last segment must not wait for another flow's completion. */
static void krc_channel_speak(struct krc_channel *ch)
{
	if (ch->head != ch->tail && ch->slots[(ch->tail - 1) & ch->mask].unsignaled)
		krc_channel_ring(ch);
}

/*
 * The hardware request of the next segment: the request's own if it is all of it, else a part of
 * it, in @part.
 */
static const struct krc_hw_wr *krc_channel_segment(const struct krc_channel *ch,
						   struct krc_req *req, u32 length,
						   struct krc_hw_wr *part)
{
	struct krc_hw_wr *wr = &req->wr;

	if (unlikely(length != req->wr.length)) {
		*part = req->wr;
		part->remote_addr += req->next;
		part->local_addr += req->next;
		part->length = length;
		part->fence = req->wr.fence && !req->fenced;
		wr = part;
	}
	wr->cookie = ch->tail;
	wr->unsignaled = krc_channel_unsignaled(req->flow, list_next_entry(req, list), length,
						ch->tail, ch->window.unsignaled);
	return wr;
}

/* Account for a posted segment. */
static void krc_channel_posted(struct krc_channel *ch, struct krc_flow *flow, struct krc_req *req,
			       const struct krc_hw_wr *wr)
{
	krc_channel_note(ch, req, wr, krc_req_expires(req));
	ch->stats.posted++;
	flow->posted++;
	flow->deficit -= wr->length + ch->window.cost;
	req->slots++;
	req->next += wr->length;
	if (!req->begun) {
		req->begun = true;
		req->since = jiffies;
	}
	req->fenced = true;
	if (req->next == req->wr.length) {
		list_move_tail(&req->list, &flow->flight);
		req->state = KRC_REQ_POSTED;
	}
	if (list_empty(&flow->waiting))
		krc_flow_deactivate(ch, flow);
}

/*
 * The first request of a flow that waits is not to be posted, for @err: both fail. Those before it
 * that are in the hardware end by themselves first: a reset may have them posted again, and cancels
 * none of them.
 */
static void krc_channel_refuse(struct krc_channel *ch, struct krc_flow *flow, int err)
{
	krc_channel_speak(ch);
	flow->refused = err;
	if (flow->posted)
		krc_flow_deactivate(ch, flow);
	else
		krc_flow_end(ch, flow);
}

/* The provider did not take a segment. False: nothing more can be posted now. */
static bool krc_channel_unposted(struct krc_channel *ch, struct krc_req *req, int err)
{
	if (err == -ENOSPC && ch->head != ch->tail)
		return false;
	if (err != -EINVAL) {
		krc_channel_fault(ch, KRC_FAULT_FATAL, NULL);
		return false;
	}
	krc_channel_refuse(ch, req->flow, -EIO);
	return true;
}

/* Whether all requests of a flow are for a target that refuses too much. */
static bool krc_flow_barred(const struct krc_flow *flow)
{
	return flow->standing && unlikely(krc_standing_barred(flow->standing));
}

/* Try to post for the flow whose turn it is. False: nothing more can be posted now. */
static bool krc_channel_post(struct krc_channel *ch, struct krc_flow *flow, bool *ret_posted)
{
	struct krc_req *req = list_first_entry(&flow->waiting, struct krc_req, list);
	u32 length = min(req->wr.length - req->next, KRC_SEGMENT_BYTES);
	const struct krc_hw_wr *wr;
	struct krc_hw_wr part;
	int err;

	if (ch->head != ch->tail && ch->bytes + length > KRC_WINDOW_BYTES)
		return false;
	if (flow->deficit < length + ch->window.cost) {
		if (!list_is_singular(&ch->turn) || !list_empty(&flow->behind))
			krc_channel_speak(ch);
		krc_channel_turn(ch, flow);
		return true;
	}
	if (krc_channel_old(ch, req))
		return false; /* until something completes or fails */
	err = req->status;
	if (!err && krc_req_late(req))
		err = -ETIME;
	if (!err && flow->check && !krc_req_unlapsed(req))
		err = flow->check(req);
	if (err == -EAGAIN) {
		krc_channel_speak(ch);
		flow->held = true;
		krc_flow_deactivate(ch, flow);
		list_add_tail(&flow->list, &ch->held);
		return true;
	}
	if (err) {
		krc_channel_refuse(ch, flow, err);
		return true;
	}
	wr = krc_channel_segment(ch, req, length, &part);
	ch->posting = flow;
	err = ch->pool->ops->post(ch->hw, wr);
	if (err)
		return krc_channel_unposted(ch, req, err);
	trace_krc_post(ch->pool->rail, ch->index, wr);
	krc_channel_posted(ch, flow, req, wr);
	*ret_posted = true;
	return true;
}

/* Post for the flow whose turn it is. False: nothing more can be posted now. */
static bool krc_channel_serve(struct krc_channel *ch, bool *ret_posted)
{
	struct krc_flow *flow = krc_channel_served(ch);
	struct krc_req *next;
	int n;

	if (unlikely(!list_empty(&flow->replay)))
		list_splice_init(&flow->replay, &flow->waiting);
	if (krc_flow_barred(flow)) { /* what was posted before would be refused one by one */
		next = list_first_entry(&flow->waiting, struct krc_req, list);
		krc_channel_refuse(ch, flow, next->status ?: -ETIMEDOUT);
		return true;
	}
	n = krc_channel_post_plain(ch, flow);
	if (likely(n > 0)) {
		*ret_posted = true;
		return true;
	}
	if (!n)
		return krc_channel_post(ch, flow, ret_posted);
	next = list_first_entry(&flow->waiting, struct krc_req, list);
	return krc_channel_unposted(ch, next, n);
}

/* @posted: something has been posted for which the doorbell was not rung. */
static noinline void krc_channel_fill_more(struct krc_channel *ch, bool posted)
{
	lockdep_assert_held(&ch->lock);
	while (ch->state == KRC_CHANNEL_READY && !list_empty(&ch->turn) &&
	       ch->tail - ch->head < ch->window.limit && krc_channel_serve(ch, &posted))
		;
	if (ch->tail - ch->head >= ch->window.limit && !ch->window.soon)
		krc_window_full(ch);
	if (posted)
		krc_channel_ring(ch);
}

void krc_channel_fill(struct krc_channel *ch)
{
	if (!list_empty(&ch->turn))
		krc_channel_fill_more(ch, false);
}

/*
 * Where nobody has a turn, the flow's begins and ends here, if all of it can be posted: then the
 * flow is never in a list. What is left has the rest of that turn.
 */
void krc_flow_begin(struct krc_channel *ch, struct krc_flow *flow)
{
	bool posted = false;
	u32 rest;

	lockdep_assert_held(&ch->lock);
	if (list_empty(&ch->turn) && list_empty(&flow->list) && list_empty(&flow->replay) &&
	    ch->state == KRC_CHANNEL_READY && !flow->refused && !krc_flow_barred(flow)) {
		flow->deficit = ch->window.quantum;
		posted = krc_channel_post_plain(ch, flow) > 0; /* an error comes again below */
	}
	if (list_empty(&flow->waiting)) {
		krc_channel_ring(ch);
		return;
	}
	rest = flow->deficit;
	krc_flow_activate(ch, flow);
	if (posted)
		flow->deficit = rest;
	krc_channel_fill_more(ch, posted);
}

/* What a failed segment means for its request and flow. */
static void krc_channel_req_failed(struct krc_channel *ch, struct krc_req *req,
				   enum krc_fault fault, bool begun)
{
	struct krc_flow *flow = req->flow;

	if (krc_fault_own(fault)) {
		ch->stats.faults++;
		if (!req->status) {
			req->status = krc_fault_errno(fault);
			req->fault = fault;
		}
	} else {
		req->touched = req->touched || (begun && krc_channel_in_doubt(ch, req));
		if (flow->failed || req->status)
			return;
		if (krc_channel_silent(ch, req)) {
			req->status = krc_fault_errno(ch->failure.fault);
			req->fault = ch->failure.fault;
		} else if (req->touched && !req->idempotent) {
			req->status = -EREMCHG;
			if (req->fault != KRC_FAULT_EXPIRED) /* else its target is to blame */
				req->fault = KRC_FAULT_FLUSHED;
		} else {
			return;
		}
	}
	if (list_empty(&flow->replay))
		krc_flow_fail(ch, flow, -ECANCELED);
	/* else krc_channel_post() fails it, after the requests in replay */
}

/* A posted request does not end now: queue it for replay, behind those before it. */
static void krc_channel_requeue(struct krc_channel *ch, struct krc_req *req)
{
	struct krc_flow *flow = req->flow;

	if (req->state == KRC_REQ_POSTED) {
		req->state = KRC_REQ_WAITING;
		list_move_tail(&req->list, &flow->replay);
		flow->refused = 0; /* what was refused is looked at again, behind these */
	}
	if (req->next != req->done) {
		ch->stats.replayed += !req->status && !flow->failed;
		req->next = req->done;
		req->fenced = false;
	}
	krc_flow_activate(ch, flow);
}

/* A request without segments in the hardware: it is done, failed, or posted again. */
static void krc_channel_settle(struct krc_channel *ch, struct krc_req *req)
{
	struct krc_flow *flow = req->flow;

	if (!req->status && req->done == req->wr.length)
		krc_req_finish(ch, req, 0);
	else if (req->state == KRC_REQ_POSTED && flow->failed && list_empty(&flow->replay))
		krc_req_finish(ch, req, krc_req_outcome(req));
	else
		krc_channel_requeue(ch, req);
}

void krc_channel_retire(struct krc_channel *ch, enum krc_fault fault)
{
	struct krc_wqe *slot = &ch->slots[ch->head & ch->mask];
	struct krc_req *req = slot->req;
	struct krc_flow *flow = req->flow;
	bool begun = krc_channel_begun(ch);

	lockdep_assert_held(&ch->lock);
	WRITE_ONCE(ch->head, ch->head + 1);
	WRITE_ONCE(ch->bytes, ch->bytes - slot->length);
	WRITE_ONCE(ch->progress, jiffies);
	slot->req = NULL;
	req->slots--;
	if (fault == KRC_FAULT_NONE) {
		req->done += slot->length;
		req->expired = 0;
		req->since = jiffies;
		ch->failure.fruitless = 0;
	} else {
		krc_channel_req_failed(ch, req, fault, begun);
	}
	if (!req->slots)
		krc_channel_settle(ch, req);
	krc_flow_left(ch, flow, 1);
}

/* Whether a segment may complete now: it is there, and all segments before it are unsignaled. */
static bool krc_channel_awaits(const struct krc_channel *ch, u64 cookie)
{
	u32 before = (u32)cookie - ch->head;

	return cookie <= U32_MAX && before < ch->tail - ch->head &&
	       before <= ch->slots[cookie & ch->mask].behind;
}

/*
 * Complete requests of one flow that have succeeded and are of one segment each, from the oldest
 * segment up to @end, or up to one that is for krc_channel_retire(). They are the first of those of
 * the flow that are in the hardware, and leave that list together. Return: how many.
 */
static u32 krc_channel_retire_plain(struct krc_channel *ch, u32 end)
{
	u32 at = ch->head, mask = ch->mask, bytes = 0, n;
	struct krc_wqe *slot = &ch->slots[at & mask];
	struct krc_flow *flow = slot->req->flow;
	struct list_head *last = NULL;
	LIST_HEAD(done);

	for (; at != end; slot = &ch->slots[++at & mask]) {
		struct krc_req *req = slot->req;
		u32 length = slot->length, so_far = req->done + length;

		if (req->flow != flow || req->state != KRC_REQ_POSTED || req->slots != 1 ||
		    req->status || so_far != req->wr.length)
			break;
		slot->req = NULL;
		bytes += length;
		req->slots = 0;
		req->done = so_far;
		req->state = KRC_REQ_FINISHED;
		last = &req->list;
	}
	n = at - ch->head;
	if (!n)
		return 0;
	WRITE_ONCE(ch->head, at);
	WRITE_ONCE(ch->bytes, ch->bytes - bytes);
	WRITE_ONCE(ch->progress, jiffies);
	ch->failure.fruitless = 0;
	ch->stats.completed += n;
	list_cut_position(&done, &flow->flight, last);
	list_splice_tail(&done, &ch->finished);
	krc_flow_left(ch, flow, n);
	return n;
}

/* The segments before @end have succeeded. */
static void krc_channel_succeed(struct krc_channel *ch, u32 end)
{
	while (ch->head != end)
		if (!krc_channel_retire_plain(ch, end))
			krc_channel_retire(ch, KRC_FAULT_NONE);
}

/*
 * A READ, WRITE or atomic needs no receive buffer. But the memory of a peer may be paged on demand, or
 * the peer means harm, so that its NIC puts the request off until the retries are over: then it has
 * not answered, and nothing is known of the request.
 */
static enum krc_fault krc_channel_fault_of(const struct krc_req *req, enum krc_fault fault)
{
	return fault == KRC_FAULT_BUSY && req->wr.opcode != KRC_HW_SEND ? KRC_FAULT_TIMEOUT : fault;
}

/*
 * A completion that succeeded, or failed by itself, says that the unsignaled segments before it
 * have succeeded. One that was flushed does not, although a flushed segment has a completion even
 * if it is unsignaled (InfiniBand Architecture Specification, volume 1, on unsignaled completions):
 * what a NIC passes over is not to be told as done. So what was done may be in doubt then, or be
 * done again: KRC_UNSIGNALED_MAX - 1 segments at most, when the NIC fails without a fault of a
 * request.
 */
static void krc_channel_complete(struct krc_channel *ch, const struct krc_wc *wc)
{
	enum krc_fault passed = KRC_FAULT_NONE, fault;
	unsigned long progress = ch->progress;
	struct krc_req *req;

	if (!krc_channel_awaits(ch, wc->cookie)) {
		ch->stats.strays++;
		krc_channel_fault(ch, KRC_FAULT_FATAL, NULL);
		return;
	}
	/* behind a fault nothing counts as done, even if the hardware skips over it */
	if (!krc_channel_works(ch) && krc_fault_own(ch->failure.fault))
		passed = KRC_FAULT_FLUSHED;
	if (likely(passed == KRC_FAULT_NONE && wc->fault == KRC_FAULT_NONE)) {
		krc_channel_succeed(ch, (u32)wc->cookie + 1);
		return;
	}
	if (wc->fault == KRC_FAULT_FLUSHED) {
		/* by the fault those before it are judged, too */
		krc_channel_fault(ch, KRC_FAULT_FLUSHED, NULL);
		passed = KRC_FAULT_FLUSHED;
	}
	while (ch->head != wc->cookie)
		krc_channel_retire(ch, passed);
	req = ch->slots[ch->head & ch->mask].req;
	fault = krc_channel_fault_of(req, wc->fault);
	if (fault != KRC_FAULT_NONE) {
		/* when the segments before it completed is unknown */
		WRITE_ONCE(ch->progress, progress);
		trace_krc_fault(ch->pool->rail, ch->index, wc);
		krc_channel_fault(ch, fault, krc_fault_aims(fault) ? req : NULL);
	}
	krc_channel_retire(ch, fault);
}

int krc_channel_take(struct krc_channel *ch, int budget)
{
	struct krc_wc wc[KRC_POLL_BATCH] krc_uninitialized;
	int total = 0;

	lockdep_assert_held(&ch->lock);
	while (total < budget) {
		int want = min(budget - total, KRC_POLL_BATCH);
		int i, n = ch->pool->ops->poll(ch->hw, wc, want);

		for (i = 0; i < n; i++)
			krc_channel_complete(ch, &wc[i]);
		krc_meter_took(n);
		total += n;
		if (n < want)
			break;
	}
	return total;
}

int krc_channel_poll(struct krc_channel *ch, int budget)
{
	lockdep_assert_held(&ch->lock);
	return krc_channel_pollable(ch) ? krc_channel_take(ch, budget) : 0;
}

/*
 * Whether a task busy-polls. On a preemptible kernel a poller does not count: it may be
 * preempted for long, and the other flows must not wait for it.
 */
static bool krc_channel_polled(const struct krc_channel *ch)
{
	return ch->arming.pollers && !preempt_model_preemptible();
}

/*
 * Defer the interrupt: a task that has just stopped polling, or polled this channel nearby,
 * may poll again soon, and an interrupt before that would be wasted. The timer fires in any
 * case, which bounds the delay of what completes meanwhile. Return: whether it is deferred.
 */
static bool krc_channel_linger(struct krc_channel *ch)
{
	u64 until_ns = READ_ONCE(ch->arming.polled_ns) + krc_spin_linger_ns(),
	    now_ns = ktime_get_ns();

	lockdep_assert_held(&ch->lock);
	if (now_ns >= until_ns)
		return false;
	if (!ch->arming.lingering) {
		ch->arming.lingering = true;
		hrtimer_start(&ch->arming.linger, ns_to_ktime(until_ns - now_ns),
			      HRTIMER_MODE_REL_SOFT);
	}
	return true;
}

void krc_channel_note_poller(struct krc_channel *ch)
{
	u64 now_ns;

	lockdep_assert_held(&ch->lock);
	if (ch->arming.lingering) { /* noted when the timer fires: a burst reads no clock */
		ch->arming.again = true;
		return;
	}
	now_ns = ktime_get_ns();
	if (now_ns - ch->arming.polled_ns < krc_spin_linger_ns())
		WRITE_ONCE(ch->arming.polled_ns, now_ns);
}

enum hrtimer_restart krc_channel_linger_over(struct hrtimer *timer)
{
	struct krc_channel *ch = container_of(timer, struct krc_channel, arming.linger);

	spin_lock_bh(&ch->lock);
	ch->arming.lingering = false;
	if (ch->arming.again)
		WRITE_ONCE(ch->arming.polled_ns, ktime_get_ns());
	ch->arming.again = false;
	krc_channel_run(ch, KRC_POLL_BUDGET);
	spin_unlock_bh(&ch->lock);
	return HRTIMER_NORESTART;
}

/* krc_channel_arm(), if nothing but lingering speaks against it. */
static noinline void krc_channel_arm_idle(struct krc_channel *ch)
{
	int n;

	if (krc_channel_linger(ch))
		return;
	ch->arming.armed = true;
	ch->pool->ops->arm(ch->hw);
	/* What completed before it was armed raises no interrupt: take all of it. */
	n = krc_channel_poll(ch, KRC_POLL_BATCH);
	if (n)
		krc_channel_fill(ch);
	if (n == KRC_POLL_BATCH)
		irq_poll_sched(&ch->iop);
}

void krc_channel_arm(struct krc_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	/* a channel that lingers comes here again, by its timer */
	if (!ch->arming.armed && !ch->arming.lingering && ch->head != ch->tail &&
	    !krc_channel_polled(ch) && krc_channel_pollable(ch))
		krc_channel_arm_idle(ch);
}

/*
 * Move the requests at the head of @batch that belong to one flow to @reqs: they are idle from
 * here on. Return: number moved, from 1.
 */
static u32 krc_channel_same(struct krc_channel *ch, struct list_head *batch, struct list_head *reqs)
{
	struct krc_flow *flow = list_first_entry(batch, struct krc_req, list)->flow;
	struct krc_req *req;
	u32 nr = 0;

	list_for_each_entry(req, batch, list) {
		if (req->flow != flow)
			break;
		if (trace_krc_complete_enabled()) /* else the arguments are not wanted either */
			trace_krc_complete(ch->pool->rail, ch->index, req->wr.opcode,
					   req->wr.length, req->status);
		req->state = KRC_REQ_IDLE;
		nr++;
	}
	list_cut_before(reqs, batch, &req->list); /* perhaps all of them */
	return nr;
}

/*
 * Call done() for the requests of a batch, flow by flow, until KRC_TELL_MAX have been told, or all.
 * Bottom halves are off, no lock is held.
 */
static void krc_channel_tell(struct krc_channel *ch, struct list_head *batch)
{
	u32 told = 0;

	do {
		struct krc_flow *flow = list_first_entry(batch, struct krc_req, list)->flow;
		LIST_HEAD(reqs);
		u32 nr = krc_channel_same(ch, batch, &reqs);

		flow->done(flow, &reqs, nr);
		/* The flow may be freed as soon as this is zero: only its address is used. */
		if (atomic_sub_and_test(nr, &flow->outstanding))
			wake_up_var(&flow->outstanding);
		told += nr;
	} while (!list_empty(batch) && told < KRC_TELL_MAX);
}

/* krc_channel_dispatch() of what there is. */
static noinline void krc_channel_deliver(struct krc_channel *ch) __must_hold(&ch->lock)
{
	LIST_HEAD(batch);
	int i;

	lockdep_assert_held(&ch->lock);
	WRITE_ONCE(ch->dispatching, true);
	for (i = 0; !list_empty(&ch->finished); i++) {
		/* bound the work of one dispatcher, except at the stop, which waits for all */
		if (i == KRC_DISPATCH_MAX && ch->state != KRC_CHANNEL_STOPPED) {
			irq_poll_sched(&ch->iop);
			break;
		}
		list_splice_init(&ch->finished, &batch);
		spin_unlock(&ch->lock);
		krc_channel_tell(ch, &batch);
		spin_lock(&ch->lock);
		list_splice_init(&batch, &ch->finished); /* before what has finished since */
	}
	WRITE_ONCE(ch->dispatching, false);
}

void krc_channel_dispatch(struct krc_channel *ch) __must_hold(&ch->lock)
{
	lockdep_assert_held(&ch->lock);
	/* the CPU that dispatches sees what was added */
	if (!list_empty(&ch->finished) && !ch->dispatching)
		krc_channel_deliver(ch);
}

/* Act on krc_pool_on_fatal(); the softirq that it schedules may come later, or not at all. */
static __always_inline void krc_channel_heed(struct krc_channel *ch)
{
	if (unlikely(test_bit(0, &ch->failure.fatal)) && test_and_clear_bit(0, &ch->failure.fatal))
		krc_channel_fault(ch, KRC_FAULT_FATAL, NULL);
}

void krc_channel_run(struct krc_channel *ch, int budget)
{
	krc_channel_poll(ch, budget);
	krc_channel_heed(ch);
	krc_channel_fill(ch);
	krc_channel_arm(ch);
	krc_channel_dispatch(ch);
}

void krc_channel_filled(struct krc_channel *ch)
{
	krc_channel_heed(ch);
	krc_channel_arm(ch);
	krc_channel_dispatch(ch);
}

int krc_channel_softirq(struct irq_poll *iop, int budget)
{
	struct krc_channel *ch = container_of(iop, struct krc_channel, iop);
	int n;

	spin_lock_bh(&ch->lock);
	ch->arming.armed = false;
	n = krc_channel_poll(ch, budget);
	krc_channel_heed(ch);
	krc_channel_fill(ch);
	if (n < budget) {
		irq_poll_complete(iop);
		krc_channel_arm(ch);
	}
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
	return n;
}
