// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: one working initiator: which segment is posted next, what a completion means, and
 * delivery of outcomes to the flows.
 *
 * Flows take turns by deficit round robin over bytes (Shreedhar and Varghese, SIGCOMM
 * '95). An initiator holds at most depth segments and KRC_WINDOW_BYTES at once, so one flow's
 * requests never delay the others for long. Completions come in the order of posting; the
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

#include "base/meter.h"
#include "base/spin.h"
#include "base/trace.h"
#include "krp_ioctl.h"
#include "pool/pool_priv.h"

/* From each state, the states that may follow it. */
static const u8 krc_initiator_next[KRC_INI_STATES] = {
	[KRC_INI_READY] = BIT(KRC_INI_FAILED) | BIT(KRC_INI_STOPPED),
	[KRC_INI_FAILED] = BIT(KRC_INI_RESETTING) | BIT(KRC_INI_STOPPED),
	[KRC_INI_RESETTING] = BIT(KRC_INI_READY) | BIT(KRC_INI_DEAD) | BIT(KRC_INI_STOPPED),
	[KRC_INI_DEAD] = BIT(KRC_INI_RESETTING) | BIT(KRC_INI_STOPPED),
};

static const char *const krc_initiator_names[KRC_INI_STATES] = {
	[KRC_INI_READY] = "ready", [KRC_INI_FAILED] = "failed",	  [KRC_INI_RESETTING] = "resetting",
	[KRC_INI_DEAD] = "dead",   [KRC_INI_STOPPED] = "stopped",
};

const char *krc_initiator_state_name(enum krc_initiator_state state)
{
	return state < KRC_INI_STATES ? krc_initiator_names[state] : "?";
}

bool krc_initiator_set_state(struct krc_initiator *ini, enum krc_initiator_state state)
{
	lockdep_assert_held(&ini->lock);
	if (!(krc_initiator_next[ini->state] & BIT(state)))
		return false;
	trace_krc_initiator_state(ini->pool->rail, ini->index, ini->state, state);
	WRITE_ONCE(ini->state, state);
	return true;
}

/* Completions can be polled: the hardware exists and is not being reset. */
static bool krc_initiator_pollable(const struct krc_initiator *ini)
{
	return ini->state == KRC_INI_READY || ini->state == KRC_INI_FAILED;
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

static void krc_req_finish(struct krc_initiator *ini, struct krc_req *req, int status)
{
	if (req->state != KRC_REQ_WAITING && req->state != KRC_REQ_POSTED)
		return; /* its outcome is set already */
	ini->stats.unknown += status == -EREMCHG;
	req->status = status;
	req->state = KRC_REQ_FINISHED;
	list_move_tail(&req->list, &ini->finished);
	ini->stats.completed++;
}

/* A failed flow has nothing in the hardware any more: complete its queued requests. */
static void krc_flow_flush(struct krc_initiator *ini, struct krc_flow *flow)
{
	struct krc_req *req, *tmp;

	list_splice_init(&flow->replay, &flow->waiting);
	list_for_each_entry_safe(req, tmp, &flow->waiting, list)
		krc_req_finish(ini, req, krc_req_outcome(req));
}

void krc_flow_fail(struct krc_initiator *ini, struct krc_flow *flow, int status)
{
	lockdep_assert_held(&ini->lock);
	if (!flow->failed) {
		flow->failed = true;
		flow->end_status = status;
	}
	flow->held = false;
	flow->deficit = 0;
	list_del_init(&flow->list);
	if (!flow->posted)
		krc_flow_flush(ini, flow);
}

void krc_flow_activate(struct krc_initiator *ini, struct krc_flow *flow)
{
	lockdep_assert_held(&ini->lock);
	if (flow->failed || !list_empty(&flow->list) ||
	    (list_empty(&flow->waiting) && list_empty(&flow->replay)))
		return;
	flow->deficit = KRC_QUANTUM_BYTES;
	list_add_tail(&flow->list, &ini->turn);
}

/* Whether a segment may be unsignaled: the next one of its flow is as small. */
static bool krc_initiator_unsignaled(const struct krc_initiator *ini, const struct krc_req *req,
				     u32 length)
{
	const struct krc_req *next = list_next_entry(req, list);

	return length < KRC_UNSIGNALED_BYTES && (ini->tail + 1) % KRC_UNSIGNALED_MAX &&
	       !list_is_last(&req->list, &req->flow->waiting) &&
	       next->wr.length - next->next < KRC_UNSIGNALED_BYTES;
}

/*
 * Ring the doorbell, which makes the last posted segment signaled. Leases were checked when
 * their segments were posted: if one has ended since (this CPU was away for that long), the
 * doorbell is not rung but the initiator faulted, and all of it is posted again. The peer's
 * margin covers a delay between this check and the doorbell.
 */
static void krc_initiator_ring(struct krc_initiator *ini)
{
	bool late = ini->leased && time_after(jiffies, ini->ring_by);

	ini->slots[(ini->tail - 1) & ini->mask].unsignaled = false;
	ini->leased = false;
	if (late)
		krc_initiator_fault(ini, KRC_FAULT_EXPIRED, NULL);
	if (ini->state != KRC_INI_READY)
		return;
	ini->rung = ini->tail;
	ini->pool->ops->ring(ini->hw);
}

/* A leased segment has been posted: bound the time to its doorbell and to its completion. */
static void krc_initiator_bound(struct krc_initiator *ini, const struct krc_req *req,
				unsigned long expires)
{
	unsigned long now = jiffies;

	if (!ini->leased || time_before(req->until, ini->ring_by))
		ini->ring_by = req->until;
	ini->leased = true;
	if (ini->bounded && !time_before(expires, ini->bound))
		return;
	ini->bounded = true;
	ini->bound = expires;
	mod_delayed_work(ini->pool->wq, &ini->expiry, time_after(expires, now) ? expires - now : 0);
}

/* Whether a leased request would queue behind a segment in the hardware for long. */
static bool krc_initiator_old(const struct krc_initiator *ini, const struct krc_req *req)
{
	return req->leased && ini->head != ini->tail &&
	       time_after(jiffies, ini->progress + req->stay);
}

/* The flow pauses: its last segment must not wait for another flow's completion. */
static void krc_initiator_speak(struct krc_initiator *ini)
{
	if (ini->head != ini->tail && ini->slots[(ini->tail - 1) & ini->mask].unsignaled)
		krc_initiator_ring(ini);
}

/* Fill in the hardware request of the next segment. */
static void krc_initiator_segment(const struct krc_initiator *ini, const struct krc_req *req,
				  u32 length, struct krc_hw_wr *wr)
{
	*wr = req->wr;
	wr->cookie = ini->tail;
	wr->remote_addr += req->next;
	wr->local_addr += req->next;
	wr->length = length;
	wr->fence = req->wr.fence && !req->fenced;
	wr->unsignaled = krc_initiator_unsignaled(ini, req, length);
}

/* Account for a posted segment. */
static void krc_initiator_posted(struct krc_initiator *ini, struct krc_flow *flow,
				 struct krc_req *req, const struct krc_hw_wr *wr)
{
	u32 length = wr->length;
	struct krc_wqe *slot = &ini->slots[ini->tail & ini->mask];

	if (ini->head == ini->tail)
		WRITE_ONCE(ini->progress, jiffies);
	slot->req = req;
	slot->length = length;
	slot->unsignaled = wr->unsignaled;
	slot->leased = req->leased;
	slot->expires = req->until + req->stay;
	if (req->leased)
		krc_initiator_bound(ini, req, slot->expires);
	WRITE_ONCE(ini->tail, ini->tail + 1);
	WRITE_ONCE(ini->bytes, ini->bytes + length);
	ini->stats.posted++;
	flow->posted++;
	flow->deficit -= length + KRC_COST_BYTES;
	req->slots++;
	req->next += length;
	if (!req->begun) {
		req->begun = true;
		req->since = jiffies;
	}
	req->fenced = true;
	if (req->next == req->wr.length) {
		list_del_init(&req->list);
		req->state = KRC_REQ_POSTED;
	}
	if (list_empty(&flow->waiting)) {
		list_del_init(&flow->list);
		flow->deficit = 0;
	}
}

/* Try to post for the first flow of the DRR list. False: nothing more can be posted now. */
static bool krc_initiator_post(struct krc_initiator *ini, bool *ret_posted)
{
	struct krc_flow *flow = list_first_entry(&ini->turn, struct krc_flow, list);
	struct krc_req *req;
	struct krc_hw_wr wr;
	u32 length;
	int err;

	list_splice_init(&flow->replay, &flow->waiting);
	req = list_first_entry(&flow->waiting, struct krc_req, list);
	length = min(req->wr.length - req->next, KRC_SEGMENT_BYTES);
	if (ini->head != ini->tail && ini->bytes + length > KRC_WINDOW_BYTES)
		return false;
	if (flow->deficit < length + KRC_COST_BYTES) {
		flow->deficit += KRC_QUANTUM_BYTES;
		if (!list_is_singular(&ini->turn))
			krc_initiator_speak(ini);
		list_move_tail(&flow->list, &ini->turn);
		return true;
	}
	if (krc_initiator_old(ini, req))
		return false; /* until something completes or fails */
	err = req->status;
	if (!err && flow->check)
		err = flow->check(req);
	if (err == -EAGAIN) {
		krc_initiator_speak(ini);
		flow->held = true;
		list_move_tail(&flow->list, &ini->held);
		return true;
	}
	if (!err) {
		krc_initiator_segment(ini, req, length, &wr);
		err = ini->pool->ops->post(ini->hw, &wr);
		if (err == -ENOSPC && ini->head != ini->tail)
			return false;
		if (err && err != -EINVAL) {
			krc_initiator_fault(ini, KRC_FAULT_FATAL, NULL);
			return false;
		}
		if (err)
			err = -EIO;
	}
	if (err) {
		krc_initiator_speak(ini);
		req->status = err;
		krc_flow_fail(ini, flow, -ECANCELED);
		return true;
	}
	trace_krc_post(ini->pool->rail, ini->index, &wr);
	krc_initiator_posted(ini, flow, req, &wr);
	*ret_posted = true;
	return true;
}

void krc_initiator_fill(struct krc_initiator *ini)
{
	bool posted = false;

	lockdep_assert_held(&ini->lock);
	while (ini->state == KRC_INI_READY && !list_empty(&ini->turn) &&
	       ini->tail - ini->head < ini->depth && krc_initiator_post(ini, &posted))
		;
	if (posted)
		krc_initiator_ring(ini);
}

/* What a failed segment means for its request and flow. */
static void krc_initiator_req_failed(struct krc_initiator *ini, struct krc_req *req,
				     enum krc_fault fault, bool begun)
{
	struct krc_flow *flow = req->flow;

	if (krc_fault_own(fault)) {
		ini->stats.faults++;
		if (!req->status) {
			req->status = krc_fault_errno(fault);
			req->fault = fault;
		}
	} else {
		req->touched = req->touched || (begun && krc_initiator_in_doubt(ini, req));
		if (flow->failed || req->status)
			return;
		if (krc_initiator_silent(ini, req)) {
			req->status = krc_fault_errno(ini->fault);
			req->fault = ini->fault;
		} else if (req->touched && !req->idempotent) {
			req->status = -EREMCHG;
			req->fault = KRC_FAULT_FLUSHED;
		} else {
			return;
		}
	}
	if (list_empty(&flow->replay))
		krc_flow_fail(ini, flow, -ECANCELED);
	/* else krc_initiator_post() fails it, after the requests in replay */
}

/* A posted request does not end now: queue it for replay, behind those before it. */
static void krc_initiator_requeue(struct krc_initiator *ini, struct krc_req *req)
{
	struct krc_flow *flow = req->flow;

	if (req->state == KRC_REQ_POSTED) {
		req->state = KRC_REQ_WAITING;
		list_add_tail(&req->list, &flow->replay);
	}
	if (req->next != req->done) {
		ini->stats.replayed += !req->status && !flow->failed;
		req->next = req->done;
		req->fenced = false;
	}
	krc_flow_activate(ini, flow);
}

/* A request without segments in the hardware: it is done, failed, or posted again. */
static void krc_initiator_settle(struct krc_initiator *ini, struct krc_req *req)
{
	struct krc_flow *flow = req->flow;

	if (!req->status && req->done == req->wr.length)
		krc_req_finish(ini, req, 0);
	else if (req->state == KRC_REQ_POSTED && flow->failed && list_empty(&flow->replay))
		krc_req_finish(ini, req, krc_req_outcome(req));
	else
		krc_initiator_requeue(ini, req);
}

void krc_initiator_retire(struct krc_initiator *ini, enum krc_fault fault)
{
	struct krc_wqe *slot = &ini->slots[ini->head & ini->mask];
	struct krc_req *req = slot->req;
	struct krc_flow *flow = req->flow;
	bool begun = krc_initiator_begun(ini);

	lockdep_assert_held(&ini->lock);
	WRITE_ONCE(ini->head, ini->head + 1);
	WRITE_ONCE(ini->bytes, ini->bytes - slot->length);
	WRITE_ONCE(ini->progress, jiffies);
	slot->req = NULL;
	req->slots--;
	if (fault == KRC_FAULT_NONE) {
		req->done += slot->length;
		req->since = jiffies;
		ini->fruitless = 0;
	} else {
		krc_initiator_req_failed(ini, req, fault, begun);
	}
	flow->posted--;
	if (!req->slots)
		krc_initiator_settle(ini, req);
	if (flow->failed && !flow->posted)
		krc_flow_flush(ini, flow);
}

/* Whether a segment may complete now: all segments before it are unsignaled. */
static bool krc_initiator_awaits(const struct krc_initiator *ini, u64 cookie)
{
	u32 at;

	for (at = ini->head; at != ini->tail; at++) {
		if (at == cookie)
			return true;
		if (!ini->slots[at & ini->mask].unsignaled)
			return false;
	}
	return false;
}

static void krc_initiator_complete(struct krc_initiator *ini, const struct krc_wc *wc)
{
	enum krc_fault passed = KRC_FAULT_NONE;
	unsigned long progress = ini->progress;
	struct krc_req *req;

	if (!krc_initiator_awaits(ini, wc->cookie)) {
		ini->stats.strays++;
		krc_initiator_fault(ini, KRC_FAULT_FATAL, NULL);
		return;
	}
	/* behind a fault nothing counts as done, even if the hardware skips over it */
	if (ini->state != KRC_INI_READY && krc_fault_own(ini->fault))
		passed = KRC_FAULT_FLUSHED;
	while (ini->head != wc->cookie)
		krc_initiator_retire(ini, passed);
	req = ini->slots[ini->head & ini->mask].req;
	if (wc->fault != KRC_FAULT_NONE) {
		/* when the segments before it completed is unknown */
		WRITE_ONCE(ini->progress, progress);
		trace_krc_fault(ini->pool->rail, ini->index, wc);
		krc_initiator_fault(ini, wc->fault, krc_fault_own(wc->fault) ? req : NULL);
	}
	krc_initiator_retire(ini, wc->fault);
}

int krc_initiator_take(struct krc_initiator *ini, int budget)
{
	struct krc_wc wc[KRC_POLL_BATCH];
	int total = 0;

	lockdep_assert_held(&ini->lock);
	while (total < budget) {
		int want = min(budget - total, KRC_POLL_BATCH);
		int i, n = ini->pool->ops->poll(ini->hw, wc, want);

		for (i = 0; i < n; i++)
			krc_initiator_complete(ini, &wc[i]);
		krc_meter_took(n);
		total += n;
		if (n < want)
			break;
	}
	return total;
}

int krc_initiator_poll(struct krc_initiator *ini, int budget)
{
	lockdep_assert_held(&ini->lock);
	return krc_initiator_pollable(ini) ? krc_initiator_take(ini, budget) : 0;
}

/*
 * Whether a task busy-polls. On a preemptible kernel a poller does not count: it may be
 * preempted for long, and the other flows must not wait for it.
 */
static bool krc_initiator_polled(const struct krc_initiator *ini)
{
	return ini->pollers && !preempt_model_preemptible();
}

/*
 * Defer the interrupt: a task that has just stopped polling, or polled this initiator nearby,
 * may poll again soon, and an interrupt before that would be wasted. The timer fires in any
 * case, which bounds the delay of what completes meanwhile. Return: whether it is deferred.
 */
static bool krc_initiator_linger(struct krc_initiator *ini)
{
	u64 until_ns = READ_ONCE(ini->polled_ns) + krc_spin_linger_ns(), now_ns = ktime_get_ns();

	lockdep_assert_held(&ini->lock);
	if (now_ns >= until_ns)
		return false;
	if (!ini->lingering) {
		ini->lingering = true;
		hrtimer_start(&ini->linger, ns_to_ktime(until_ns - now_ns), HRTIMER_MODE_REL_SOFT);
	}
	return true;
}

void krc_initiator_note_poller(struct krc_initiator *ini)
{
	u64 now_ns = ktime_get_ns();

	lockdep_assert_held(&ini->lock);
	if (now_ns - ini->polled_ns < krc_spin_linger_ns())
		WRITE_ONCE(ini->polled_ns, now_ns);
}

enum hrtimer_restart krc_initiator_linger_over(struct hrtimer *timer)
{
	struct krc_initiator *ini = container_of(timer, struct krc_initiator, linger);

	spin_lock_bh(&ini->lock);
	ini->lingering = false;
	krc_initiator_run(ini, KRC_POLL_BUDGET);
	spin_unlock_bh(&ini->lock);
	return HRTIMER_NORESTART;
}

void krc_initiator_arm(struct krc_initiator *ini)
{
	int n;

	lockdep_assert_held(&ini->lock);
	if (ini->armed || ini->head == ini->tail || krc_initiator_polled(ini) ||
	    !krc_initiator_pollable(ini) || krc_initiator_linger(ini))
		return;
	ini->armed = true;
	ini->pool->ops->arm(ini->hw);
	/* What completed before it was armed raises no interrupt: take all of it. */
	n = krc_initiator_poll(ini, KRC_POLL_BATCH);
	if (n)
		krc_initiator_fill(ini);
	if (n == KRC_POLL_BATCH)
		irq_poll_sched(&ini->iop);
}

/*
 * Move the requests at the head of @batch that belong to one flow to @reqs: they are idle from
 * here on. Return: number moved, from 1.
 */
static u32 krc_initiator_same(struct krc_initiator *ini, struct list_head *batch,
			      struct list_head *reqs)
{
	struct krc_req *req = list_first_entry(batch, struct krc_req, list);
	struct krc_flow *flow = req->flow;
	struct list_head *last = NULL;
	u32 nr = 0;

	list_for_each_entry(req, batch, list) {
		if (req->flow != flow)
			break;
		trace_krc_complete(ini->pool->rail, ini->index, req->wr.opcode, req->wr.length,
				   req->status);
		req->state = KRC_REQ_IDLE;
		last = &req->list;
		nr++;
	}
	list_cut_position(reqs, batch, last);
	return nr;
}

/* Call done() for a batch. Bottom halves are off, no lock is held. */
static void krc_initiator_tell(struct krc_initiator *ini, struct list_head *batch)
{
	while (!list_empty(batch)) {
		struct krc_flow *flow = list_first_entry(batch, struct krc_req, list)->flow;
		LIST_HEAD(reqs);
		u32 nr = krc_initiator_same(ini, batch, &reqs);

		flow->done(flow, &reqs, nr);
		/* The flow may be freed as soon as this is zero: only its address is used. */
		if (atomic_sub_and_test(nr, &flow->outstanding))
			wake_up_var(&flow->outstanding);
	}
}

void krc_initiator_dispatch(struct krc_initiator *ini) __must_hold(&ini->lock)
{
	LIST_HEAD(batch);
	int i;

	lockdep_assert_held(&ini->lock);
	if (ini->dispatching)
		return; /* the CPU that dispatches sees what was added */
	WRITE_ONCE(ini->dispatching, true);
	for (i = 0; !list_empty(&ini->finished); i++) {
		/* bound the work of one dispatcher, except at the stop, which waits for all */
		if (i == KRC_DISPATCH_MAX && ini->state != KRC_INI_STOPPED) {
			irq_poll_sched(&ini->iop);
			break;
		}
		list_splice_init(&ini->finished, &batch);
		spin_unlock(&ini->lock);
		krc_initiator_tell(ini, &batch);
		spin_lock(&ini->lock);
	}
	WRITE_ONCE(ini->dispatching, false);
}

/* Act on krc_pool_on_fatal(); the softirq that it schedules may come later, or not at all. */
static void krc_initiator_heed(struct krc_initiator *ini)
{
	if (unlikely(test_bit(0, &ini->fatal)) && test_and_clear_bit(0, &ini->fatal))
		krc_initiator_fault(ini, KRC_FAULT_FATAL, NULL);
}

void krc_initiator_run(struct krc_initiator *ini, int budget)
{
	krc_initiator_poll(ini, budget);
	krc_initiator_heed(ini);
	krc_initiator_fill(ini);
	krc_initiator_arm(ini);
	krc_initiator_dispatch(ini);
}

int krc_initiator_softirq(struct irq_poll *iop, int budget)
{
	struct krc_initiator *ini = container_of(iop, struct krc_initiator, iop);
	int n;

	spin_lock_bh(&ini->lock);
	ini->armed = false;
	n = krc_initiator_poll(ini, budget);
	krc_initiator_heed(ini);
	krc_initiator_fill(ini);
	if (n < budget) {
		irq_poll_complete(iop);
		krc_initiator_arm(ini);
	}
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
	return n;
}
