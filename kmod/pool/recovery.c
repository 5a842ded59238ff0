// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: recovery of an initiator from a fault.
 *
 * READY -> FAILED at the first fault; a work item collects the flushed requests
 * (KRC_DRAIN_MS at most), halts the hardware (RESETTING), takes the completions up to then,
 * and only when the hardware accesses no memory any more it ends or replays the rest. A WRITE
 * or an atomic that may have been executed is not replayed: the peer may have acted on its
 * effect since, and reused the memory. An initiator that can't be reset, or whose resets make
 * no progress, is DEAD: its requests complete with -EIO, new ones go to other initiators, and
 * the reset is retried later.
 * A leased request that is in the hardware for too long is such a fault (KRC_FAULT_EXPIRED),
 * but of no request.
 * Locking: see pool/pool_priv.h. In RESETTING only the work item uses the initiator's hardware.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/lockdep.h>
#include <linux/ratelimit.h>

#include "base/log.h"
#include "base/trace.h"
#include "krp_ioctl.h"
#include "pool/pool_priv.h"

void krc_initiator_fault(struct krc_initiator *ini, enum krc_fault fault,
			 const struct krc_req *culprit)
{
	bool first = krc_initiator_set_state(ini, KRC_INI_FAILED);

	lockdep_assert_held(&ini->lock);
	/* but a request's own fault, seen before the halt, replaces an expiry */
	if (!first && (ini->fault != KRC_FAULT_EXPIRED || !krc_fault_own(fault)))
		return; /* failed already, or stopped */
	ini->fault = fault;
	if (culprit) {
		ini->culprit = *culprit->wr.address;
		ini->culprit_reads = culprit->wr.opcode == KRP_OP_READ;
	}
	if (!first)
		return;
	ini->stalled = ini->progress;
	ini->stats.recoveries++;
	queue_delayed_work(ini->pool->wq, &ini->recover, 0);
}

/*
 * That other targets are not in doubt relies on an initiator being one stream: the hardware
 * connects it to one target after the other, and does not begin with the next before all
 * requests to the last are acknowledged. With DCI stream channels, which mlx5/initiator.c
 * does not use, several targets would be in flight at once, and each request to another target
 * would be in doubt as well.
 */
bool krc_initiator_in_doubt(const struct krc_initiator *ini, const struct krc_req *req)
{
	if (req->wr.opcode == KRP_OP_READ)
		return false;
	switch (ini->fault) {
	case KRC_FAULT_ACCESS:
	case KRC_FAULT_TARGET:
		/*
		 * The target executes nothing behind a request that it refuses. But it may refuse
		 * a READ late, while it sends the answer or when the READ is retransmitted after
		 * a lost answer: by then it may have executed requests behind it.
		 */
		if (!ini->culprit_reads)
			return false;
		fallthrough;
	case KRC_FAULT_EXPIRED:
	case KRC_FAULT_TIMEOUT: /* no other target is begun before this one is done */
	case KRC_FAULT_LOCAL:
		return !memcmp(&ini->culprit, req->wr.address, sizeof(ini->culprit));
	default:
		return true;
	}
}

bool krc_initiator_silent(const struct krc_initiator *ini, const struct krc_req *req)
{
	return ini->fault == KRC_FAULT_TIMEOUT &&
	       time_after(jiffies, ini->stalled + msecs_to_jiffies(KRC_SILENT_MS)) &&
	       time_before_eq(req->since, ini->stalled) &&
	       !memcmp(&ini->culprit, req->wr.address, sizeof(ini->culprit));
}

void krc_initiator_abort(struct krc_initiator *ini, int status)
{
	struct krc_flow *flow, *tmp;

	lockdep_assert_held(&ini->lock);
	while (ini->head != ini->tail) {
		struct krc_req *req = ini->slots[ini->head & ini->mask].req;

		if (req->wr.opcode != KRP_OP_READ && krc_initiator_begun(ini))
			req->touched = true; /* whether it was executed is unknown */
		if (!req->status)
			req->status = req->touched ? -EREMCHG : status;
		krc_flow_fail(ini, req->flow, status);
		krc_initiator_retire(ini, KRC_FAULT_FLUSHED);
	}
	list_for_each_entry_safe(flow, tmp, &ini->turn, list)
		krc_flow_fail(ini, flow, status);
	list_for_each_entry_safe(flow, tmp, &ini->held, list)
		krc_flow_fail(ini, flow, status);
}

/*
 * Collect what the hardware flushes on its own. Unless the hardware itself reported a request's
 * error, it may still be executing requests, and there may be no time to wait for them: poll
 * once.
 */
static void krc_recover_drain(struct krc_initiator *ini)
{
	unsigned long limit = jiffies;
	bool empty;

	if (krc_fault_own(READ_ONCE(ini->fault)))
		limit += msecs_to_jiffies(KRC_DRAIN_MS);

	do {
		spin_lock_bh(&ini->lock);
		krc_initiator_poll(ini, KRC_POLL_BUDGET);
		empty = ini->head == ini->tail || ini->state != KRC_INI_FAILED;
		krc_initiator_dispatch(ini);
		spin_unlock_bh(&ini->lock);
		if (!empty)
			usleep_range(20, 100);
	} while (!empty && time_before(jiffies, limit));
}

/* The hardware is halted: take what it completed, which must not count as not executed. */
static void krc_recover_take(struct krc_initiator *ini)
{
	spin_lock_bh(&ini->lock);
	if (ini->state == KRC_INI_RESETTING && ini->head != ini->tail)
		krc_initiator_take(ini, ini->depth);
	/* the oldest request's target was being served; no other target was begun */
	if (ini->fault == KRC_FAULT_EXPIRED && ini->head != ini->tail)
		ini->culprit = *ini->slots[ini->head & ini->mask].req->wr.address;
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

static int krc_recover_reset(struct krc_initiator *ini)
{
	int i, err = 0;

	for (i = 0; i < KRC_RESET_TRIES; i++) {
		if (READ_ONCE(ini->state) == KRC_INI_STOPPED)
			return -ENODEV;
		err = ini->pool->ops->initiator_halt(ini->hw);
		if (!err) {
			krc_recover_take(ini);
			err = ini->pool->ops->initiator_restart(ini->hw);
		}
		if (!err)
			return 0;
		msleep(KRC_RESET_PAUSE_MS);
	}
	krc_port_warn_limited(ini->pool->rail->ibdev, ini->pool->rail->num,
			      "initiator %u can't be reset: %d\n", ini->index, err);
	return err;
}

/* Count the reset by cause, which explains requests that end with -EREMCHG. */
static void krc_recover_count(struct krc_initiator *ini)
{
	switch (ini->fault) {
	case KRC_FAULT_TIMEOUT:
		ini->stats.timeouts++;
		break;
	case KRC_FAULT_EXPIRED:
		ini->stats.expired++;
		break;
	case KRC_FAULT_ACCESS:
	case KRC_FAULT_TARGET:
		ini->stats.refused_reads += ini->culprit_reads;
		break;
	default:
		break;
	}
}

/* The hardware is halted and reset, or @err: end or replay the rest, and resume. */
static void krc_recover_finish(struct krc_initiator *ini, int err)
{
	lockdep_assert_held(&ini->lock);
	if (ini->state != KRC_INI_RESETTING)
		return; /* stopped: krc_pool_stop() does the rest */
	krc_recover_count(ini);
	if (!err && ini->fruitless >= KRC_FRUITLESS_MAX)
		err = -EIO;
	if (err) {
		krc_initiator_set_state(ini, KRC_INI_DEAD);
		krc_initiator_abort(ini, -EIO);
		ini->fruitless = 0;
		queue_delayed_work(ini->pool->wq, &ini->recover,
				   msecs_to_jiffies(KRC_DEAD_RETRY_MS));
		return;
	}
	while (ini->head != ini->tail)
		krc_initiator_retire(ini, KRC_FAULT_FLUSHED);
	krc_initiator_set_state(ini, KRC_INI_READY);
	ini->armed = false; /* the reset disarmed the CQ */
	krc_initiator_poll(ini, KRC_POLL_BUDGET);
	krc_initiator_fill(ini);
	krc_initiator_arm(ini);
}

void krc_initiator_recover(struct work_struct *work)
{
	struct krc_initiator *ini =
		container_of(to_delayed_work(work), struct krc_initiator, recover);
	enum krc_fault fault;
	bool ours;
	int err;

	krc_recover_drain(ini);
	spin_lock_bh(&ini->lock);
	ours = krc_initiator_set_state(ini, KRC_INI_RESETTING);
	fault = ini->fault;
	if (ours && !krc_fault_own(fault) && fault != KRC_FAULT_EXPIRED)
		ini->fruitless++;
	spin_unlock_bh(&ini->lock);
	if (!ours)
		return;

	trace_krc_recovery_begin(ini->pool->rail, ini->index, fault);
	err = krc_recover_reset(ini);
	spin_lock_bh(&ini->lock);
	krc_recover_finish(ini, err);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
	trace_krc_recovery_end(ini->pool->rail, ini->index, err);
}

/* Jiffies when the first leased segment must be out of the hardware. Return: whether any is. */
static bool krc_initiator_first_bound(const struct krc_initiator *ini, unsigned long *ret_bound)
{
	bool found = false;
	u32 at;

	lockdep_assert_held(&ini->lock);
	for (at = ini->head; at != ini->tail; at++) {
		const struct krc_wqe *slot = &ini->slots[at & ini->mask];

		if (!slot->leased || (found && !time_before(slot->expires, *ret_bound)))
			continue;
		*ret_bound = slot->expires;
		found = true;
	}
	return found;
}

void krc_initiator_expire(struct work_struct *work)
{
	struct krc_initiator *ini =
		container_of(to_delayed_work(work), struct krc_initiator, expiry);
	unsigned long now, bound;

	spin_lock_bh(&ini->lock);
	krc_initiator_run(ini, ini->depth);
	now = jiffies;
	ini->bounded = ini->state == KRC_INI_READY && krc_initiator_first_bound(ini, &bound);
	if (ini->bounded && time_after(bound, now)) {
		ini->bound = bound;
		mod_delayed_work(ini->pool->wq, &ini->expiry, bound - now);
	} else if (ini->bounded) {
		ini->bounded = false;
		krc_initiator_fault(ini, KRC_FAULT_EXPIRED, NULL);
	}
	spin_unlock_bh(&ini->lock);
}
