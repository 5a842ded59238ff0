// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what happens after a fault of an initiator.
 *
 * READY -> FAILED at the first fault; a work item collects the flushed requests
 * (KRC_DRAIN_MS at most), halts the hardware (RESETTING), takes what completed until then,
 * and only when the hardware touches nothing any more it ends or replays the rest. A WRITE
 * or an atomic that may have been executed is not replayed: who waits for its effect at the
 * peer may have gone on since, and given the memory to somebody else. An initiator that
 * can't be reset, or whose resets help nobody, is DEAD: its requests complete with -EIO,
 * new ones go elsewhere, and it is tried again later.
 * A leased request that is in the hardware for too long is such a fault, and nobody's.
 * Locking: see pool/pool_priv.h. The hardware of an initiator in RESETTING is the work
 * item's alone.
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
	/* but what the hardware says on its way to the halt is better than nobody's fault */
	if (!first && (ini->fault != KRC_FAULT_EXPIRED || !krc_fault_own(fault)))
		return; /* or it is stopped */
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
 * What is said of other targets holds because the requests of an initiator are one stream:
 * the hardware connects it to one target after the other, and does not begin with the next
 * before all of the last is acknowledged. With DCI stream channels, which mlx5/initiator.c
 * does without, several targets are under way at once, and each request of another target
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
		 * The target goes on with nothing behind what it refuses. But a READ it may refuse
		 * when it answers, or when it is asked again since an answer was lost: it has long
		 * gone on by then.
		 */
		if (!ini->culprit_reads)
			return false;
		fallthrough;
	case KRC_FAULT_EXPIRED:
	case KRC_FAULT_TIMEOUT: /* another target is not begun before this one is done */
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
			req->touched = true; /* nobody knows */
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
 * Collect what the hardware flushes by itself. If it did not say itself that it is in error,
 * it may go on with what it has, for which there may be no time.
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

/* The hardware is halted: what it completed before must not be taken for undone. */
static void krc_recover_take(struct krc_initiator *ini)
{
	spin_lock_bh(&ini->lock);
	if (ini->state == KRC_INI_RESETTING && ini->head != ini->tail)
		krc_initiator_take(ini, ini->depth);
	/* the hardware was busy with this target, and had not begun with any other */
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

/* Why it was reset: nobody can say why a WRITE is in doubt if this does not. */
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

/* The hardware is still: end or replay what it did not complete, and go on. */
static void krc_recover_finish(struct krc_initiator *ini, int err)
{
	lockdep_assert_held(&ini->lock);
	if (ini->state != KRC_INI_RESETTING)
		return; /* stopped, and krc_pool_stop() does the rest */
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
	ini->armed = false; /* the reset forgot it */
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

/* When the first leased part must be out of the hardware. Return: whether there is any. */
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
