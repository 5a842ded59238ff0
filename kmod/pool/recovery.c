// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: recovery of a channel from a fault.
 *
 * READY -> FAILED at the first fault; a work item collects the flushed requests
 * (KRC_DRAIN_MS at most), halts the hardware (RESETTING), takes the completions up to then,
 * and only when the hardware accesses no memory any more it ends or replays the rest. A WRITE
 * or an atomic that may have been executed is not replayed: the peer may have acted on its
 * effect since, and reused the memory. A channel that can't be reset, or whose resets make
 * no progress, is DEAD: its requests complete with -EIO, new ones go to other channels, and
 * the reset is retried later.
 * A leased request that is in the hardware for too long is such a fault (KRC_FAULT_EXPIRED),
 * but of no request. When the hardware is halted it is known which target is to blame: that of the
 * oldest request, for which all others wait. A stall is charged to the request's target and payer, and
 * what is isolated by that leaves a shared channel before it is READY again (pool/isolation.h). Without
 * a fault it is evicted: the work item of the leases looks for it, and moves it.
 * Locking: see pool/pool_priv.h. In RESETTING only the work item uses the channel's hardware.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/lockdep.h>
#include <linux/ratelimit.h>

#include "base/log.h"
#include "base/trace.h"
#include "krp_ioctl.h"
#include "pool/pool_priv.h"

/* Whether the time until a fault is the target's: also that of a refusal, which may come late. */
static bool krc_fault_stalls(const struct krc_channel *ch, enum krc_fault fault)
{
	if (fault == KRC_FAULT_LOST) /* at once: the way broke on this side */
		return time_after_eq(jiffies, ch->progress + msecs_to_jiffies(KRC_SILENT_MS));
	return fault != KRC_FAULT_LOCAL;
}

void krc_channel_fault(struct krc_channel *ch, enum krc_fault fault, const struct krc_req *culprit)
{
	bool first = krc_channel_set_state(ch, KRC_CHANNEL_FAILED);

	lockdep_assert_held(&ch->lock);
	/* but what is seen before the halt replaces an expiry, which names no target until then */
	if (!first && (ch->failure.fault != KRC_FAULT_EXPIRED || fault == KRC_FAULT_EXPIRED))
		return; /* failed already, or stopped */
	ch->failure.fault = fault;
	if (culprit) {
		ch->failure.culprit = *culprit->wr.address;
		ch->failure.culprit_reads = culprit->wr.opcode == KRP_OP_READ;
		if (krc_fault_stalls(ch, fault))
			krc_isolation_charge(ch, culprit->flow);
	}
	if (!first)
		return;
	ch->failure.stalled = ch->progress;
	ch->stats.recoveries++;
	queue_delayed_work(ch->pool->wq, &ch->failure.recover, 0);
}

/*
 * That other targets are not in doubt relies on a channel being one stream: the hardware
 * connects it to one target after the other, and does not begin with the next before all
 * requests to the last are acknowledged. With DCI stream channels, which hw/mlx5/initiator.c
 * does not use, several targets would be in flight at once, and each request to another target
 * would be in doubt as well.
 */
bool krc_channel_in_doubt(const struct krc_channel *ch, const struct krc_req *req)
{
	if (krc_req_harmless(req))
		return false;
	switch (ch->failure.fault) {
	case KRC_FAULT_ACCESS:
	case KRC_FAULT_TARGET:
		/*
		 * The target executes nothing behind a request that it refuses. But it may refuse
		 * a READ late, while it sends the answer or when the READ is retransmitted after
		 * a lost answer: by then it may have executed requests behind it.
		 */
		if (!ch->failure.culprit_reads)
			return false;
		fallthrough;
	case KRC_FAULT_EXPIRED:
	case KRC_FAULT_LOST:
	case KRC_FAULT_TIMEOUT: /* no other target is begun before this one is done */
	case KRC_FAULT_LOCAL:
		return ch->pool->ops->same_target(&ch->failure.culprit, req->wr.address);
	default:
		return true;
	}
}

bool krc_channel_silent(const struct krc_channel *ch, const struct krc_req *req)
{
	return ch->failure.fault == KRC_FAULT_TIMEOUT &&
	       time_after(jiffies, ch->failure.stalled + msecs_to_jiffies(KRC_SILENT_MS)) &&
	       time_before_eq(req->since, ch->failure.stalled) &&
	       !memcmp(&ch->failure.culprit, req->wr.address, sizeof(ch->failure.culprit));
}

void krc_channel_abort(struct krc_channel *ch, int status)
{
	struct krc_flow *flow, *tmp;

	lockdep_assert_held(&ch->lock);
	while (ch->head != ch->tail) {
		struct krc_req *req = ch->slots[ch->head & ch->mask].req;

		if (!krc_req_harmless(req) && krc_channel_begun(ch))
			req->touched = true; /* whether it was executed is unknown */
		if (!req->status)
			req->status = req->touched ? -EREMCHG : status;
		krc_flow_fail(ch, req->flow, status);
		krc_channel_retire(ch, KRC_FAULT_FLUSHED);
	}
	while ((flow = list_first_entry_or_null(&ch->turn, struct krc_flow, list)))
		krc_flow_fail(ch, flow, status);
	list_for_each_entry_safe(flow, tmp, &ch->held, list)
		krc_flow_fail(ch, flow, status);
	list_for_each_entry_safe(flow, tmp, &ch->evicted, list)
		krc_flow_fail(ch, flow, status);
}

/*
 * Collect what the hardware flushes on its own. Unless the hardware itself reported a request's
 * error, it may still be executing requests, and there may be no time to wait for them: poll
 * once.
 */
static void krc_recover_drain(struct krc_channel *ch)
{
	unsigned long limit = jiffies;
	bool empty;

	if (krc_fault_own(READ_ONCE(ch->failure.fault)))
		limit += msecs_to_jiffies(KRC_DRAIN_MS);

	do {
		spin_lock_bh(&ch->lock);
		krc_channel_poll(ch, KRC_POLL_BUDGET);
		empty = ch->head == ch->tail || ch->state != KRC_CHANNEL_FAILED;
		krc_channel_dispatch(ch);
		spin_unlock_bh(&ch->lock);
		if (!empty)
			usleep_range(20, 100);
	} while (!empty && time_before(jiffies, limit));
}

/*
 * Whether the halted hardware had begun the oldest request, and nothing had completed for some time:
 * its target did not answer. What has completed just now says that others kept the hardware, or that
 * this CPU was away, for longer than the lease.
 */
static bool krc_recover_unanswered(const struct krc_channel *ch)
{
	const struct krc_provider_ops *ops = ch->pool->ops;

	lockdep_assert_held(&ch->lock);
	return krc_channel_begun(ch) && (!ops->initiator_began || ops->initiator_began(ch->hw)) &&
	       time_after_eq(jiffies, ch->progress + msecs_to_jiffies(KRC_SILENT_MS));
}

/*
 * The hardware is halted at this request, and a lease has ended. That of the next attempt ends as
 * well if the fabric loses what the request needs, such as its large packets, and delivers what
 * renews the lease. So it is done again only KRC_EXPIRIES_MAX - 1 times without progress, and
 * then ends as one that the hardware gave up. A WRITE or an atomic that is in doubt ends at once
 * anyhow, whatever its status, and says if that is the fault of its target: else one that answers
 * nothing but what asks whether it is there would cost a reset for each. The stall is charged.
 */
static void krc_recover_expired(struct krc_channel *ch, struct krc_req *req)
{
	bool unanswered = krc_recover_unanswered(ch);

	lockdep_assert_held(&ch->lock);
	if (unanswered)
		krc_isolation_charge(ch, req->flow);
	if (!krc_req_harmless(req) && !req->idempotent) {
		if (unanswered)
			req->fault = KRC_FAULT_EXPIRED;
		return;
	}
	if (req->status || ++req->expired < KRC_EXPIRIES_MAX)
		return;
	req->status = krc_fault_errno(KRC_FAULT_TIMEOUT);
	req->fault = KRC_FAULT_TIMEOUT;
}

/* The hardware is halted: take what it completed, which must not count as not executed. */
static void krc_recover_take(struct krc_channel *ch)
{
	spin_lock_bh(&ch->lock);
	if (ch->state == KRC_CHANNEL_RESETTING && ch->head != ch->tail)
		krc_channel_take(ch, ch->depth);
	/* the oldest request's target was being served; no other target was begun */
	if (ch->failure.fault == KRC_FAULT_EXPIRED && ch->head != ch->tail) {
		struct krc_req *req = ch->slots[ch->head & ch->mask].req;

		ch->failure.culprit = *req->wr.address;
		krc_recover_expired(ch, req);
	}
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
}

static int krc_recover_reset(struct krc_channel *ch)
{
	int i, err = 0;

	for (i = 0; i < KRC_RESET_TRIES; i++) {
		if (READ_ONCE(ch->state) == KRC_CHANNEL_STOPPED)
			return -ENODEV;
		err = ch->pool->ops->initiator_halt(ch->hw);
		if (!err) {
			krc_recover_take(ch);
			err = ch->pool->ops->initiator_restart(ch->hw);
		}
		if (!err)
			return 0;
		msleep(KRC_RESET_PAUSE_MS);
	}
	krc_port_warn_limited(ch->pool->rail->ibdev, ch->pool->rail->num,
			      "initiator %u can't be reset: %d\n", ch->index, err);
	return err;
}

/* Count the reset by cause, which explains requests that end with -EREMCHG. */
static void krc_recover_count(struct krc_channel *ch)
{
	switch (ch->failure.fault) {
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_LOST: /* no answer either */
		ch->stats.timeouts++;
		break;
	case KRC_FAULT_EXPIRED:
		ch->stats.expired++;
		break;
	case KRC_FAULT_BUSY:
		ch->stats.busy++;
		break;
	case KRC_FAULT_ACCESS:
	case KRC_FAULT_TARGET:
		ch->stats.refused_reads += ch->failure.culprit_reads;
		break;
	default:
		break;
	}
}

/*
 * The hardware is halted and reset, or @err: end or replay the rest. Return: whether to resume, with
 * nothing in the hardware.
 */
static bool krc_recover_retire(struct krc_channel *ch, int err)
{
	lockdep_assert_held(&ch->lock);
	if (ch->state != KRC_CHANNEL_RESETTING)
		return false; /* stopped: krc_pool_stop() does the rest */
	krc_recover_count(ch);
	if (!err && ch->failure.fruitless >= KRC_FRUITLESS_MAX)
		err = -EIO;
	if (err) {
		krc_channel_set_state(ch, KRC_CHANNEL_DEAD);
		krc_channel_abort(ch, -EIO);
		ch->failure.fruitless = 0;
		queue_delayed_work(ch->pool->wq, &ch->failure.recover,
				   msecs_to_jiffies(KRC_DEAD_RETRY_MS));
		return false;
	}
	while (ch->head != ch->tail)
		krc_channel_retire(ch, KRC_FAULT_FLUSHED);
	return true;
}

/* Wait until all that has ended is told, for a bounded time: what waits may move then. */
static bool krc_recover_told(struct krc_channel *ch)
{
	bool told = false;
	u32 i;

	for (i = 0; i < KRC_ISOLATE_TRIES && !told; i++) {
		if (i)
			usleep_range(20, 100);
		spin_lock_bh(&ch->lock);
		krc_channel_dispatch(ch);
		told = krc_channel_told(ch);
		spin_unlock_bh(&ch->lock);
	}
	return told;
}

/* Before the channel is READY again: what is isolated does not stall it once more. */
static void krc_recover_isolate(struct krc_channel *ch)
{
	bool more;
	u32 i;

	if (ch->kind != KRC_CHANNEL_SHARED || !krc_isolation_any(&ch->pool->isolation) ||
	    !krc_pool_alive(ch->pool, KRC_CHANNEL_ISOLATED) || !krc_recover_told(ch))
		return;
	for (i = 0, more = true; i < KRC_ISOLATE_MAX && more; i++) {
		local_bh_disable();
		more = krc_flow_isolate_one(ch);
		local_bh_enable();
	}
}

static void krc_recover_resume(struct krc_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	if (!krc_channel_set_state(ch, KRC_CHANNEL_READY))
		return; /* stopped meanwhile */
	WRITE_ONCE(ch->aim.known, false); /* so the first target is a connection, and no change */
	ch->arming.armed = false; /* the reset disarmed the CQ */
	krc_channel_poll(ch, KRC_POLL_BUDGET);
	krc_channel_fill(ch);
	krc_window_begin(ch);
	krc_window_ask(ch);
	krc_channel_arm(ch);
}

void krc_channel_recover(struct work_struct *work)
{
	struct krc_channel *ch =
		container_of(to_delayed_work(work), struct krc_channel, failure.recover);
	enum krc_fault fault;
	bool ours, resume;
	int err;

	krc_recover_drain(ch);
	spin_lock_bh(&ch->lock);
	ours = krc_channel_set_state(ch, KRC_CHANNEL_RESETTING);
	fault = ch->failure.fault;
	if (ours && !krc_fault_own(fault) && fault != KRC_FAULT_EXPIRED)
		ch->failure.fruitless++;
	spin_unlock_bh(&ch->lock);
	if (!ours)
		return;

	trace_krc_recovery_begin(ch->pool->rail, ch->index, fault);
	err = krc_recover_reset(ch);
	spin_lock_bh(&ch->lock);
	resume = krc_recover_retire(ch, err);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
	if (resume) {
		krc_recover_isolate(ch);
		spin_lock_bh(&ch->lock);
		krc_recover_resume(ch);
		krc_channel_dispatch(ch);
		spin_unlock_bh(&ch->lock);
	}
	trace_krc_recovery_end(ch->pool->rail, ch->index, err);
}

/* Jiffies when the first leased segment must be out of the hardware. Return: whether any is. */
static bool krc_channel_first_bound(const struct krc_channel *ch, unsigned long *ret_bound)
{
	bool found = false;
	u32 at;

	lockdep_assert_held(&ch->lock);
	for (at = ch->head; at != ch->tail; at++) {
		const struct krc_wqe *slot = &ch->slots[at & ch->mask];

		if (!slot->leased || (found && !time_before(slot->expires, *ret_bound)))
			continue;
		*ret_bound = slot->expires;
		found = true;
	}
	return found;
}

/* Move the flows that are evicted and have nothing in the hardware any more. */
static void krc_channel_expel(struct krc_channel *ch)
{
	u32 moves = 0, tries = 0;
	int more;

	while (moves < KRC_ISOLATE_MAX && tries < KRC_ISOLATE_TRIES) {
		local_bh_disable();
		more = krc_flow_evict_one(ch);
		local_bh_enable();
		if (!more)
			return;
		moves += more > 0;
		tries += more < 0;
		if (more < 0)
			usleep_range(20, 100);
		cond_resched();
	}
}

/* Look whether the first lease of a segment has ended, and else when it will. */
static void krc_channel_bound_again(struct krc_channel *ch)
{
	unsigned long now = jiffies, bound;

	lockdep_assert_held(&ch->lock);
	ch->lease.bounded = krc_channel_works(ch) && krc_channel_first_bound(ch, &bound);
	if (ch->lease.bounded && time_after(bound, now)) {
		ch->lease.bound = bound;
	} else if (ch->lease.bounded) {
		ch->lease.bounded = false;
		krc_channel_fault(ch, KRC_FAULT_EXPIRED, NULL);
	}
	if (ch->lease.bounded || krc_window_wanted(ch))
		krc_window_schedule(ch);
}

void krc_channel_expire(struct work_struct *work)
{
	struct krc_channel *ch =
		container_of(to_delayed_work(work), struct krc_channel, lease.expiry);

	spin_lock_bh(&ch->lock);
	krc_channel_poll(ch, ch->depth);
	krc_isolation_sample(ch);
	krc_window_look(ch);
	krc_channel_evict(ch);
	krc_channel_run(ch, KRC_POLL_BATCH);
	ch->window.soon = false; /* until here this is the work item that runs soon */
	krc_channel_bound_again(ch);
	spin_unlock_bh(&ch->lock);
	krc_channel_expel(ch);
}
