// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what happens after a fault of an initiator.
 *
 * READY -> FAILED at the first fault; a work item collects the flushed requests
 * (KRC_DRAIN_MS at most), resets the hardware (RESETTING), and only when the hardware
 * touches nothing any more it ends or replays what did not complete. An initiator that
 * can't be reset, or whose resets help nobody, is DEAD: its requests complete with -EIO,
 * new ones go elsewhere, and it is tried again later.
 * Locking: see krc_initiator.h. The hardware of an initiator in RESETTING is the work
 * item's alone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/lockdep.h>
#include <linux/ratelimit.h>

#include "krc_initiator.h"
#include "krc_trace.h"
#include "krp_ioctl.h"

void krc_initiator_fault(struct krc_initiator *ini, enum krc_fault fault,
			 const struct krc_req *culprit)
{
	lockdep_assert_held(&ini->lock);
	if (!krc_initiator_set_state(ini, KRC_INI_FAILED))
		return; /* not the first, or stopped */
	ini->fault = fault;
	ini->stalled = ini->progress;
	if (culprit) {
		ini->culprit = *culprit->wr.address;
		ini->culprit_reads = culprit->wr.opcode == KRP_OP_READ;
	}
	ini->stats.recoveries++;
	queue_delayed_work(ini->pool->wq, &ini->recover, 0);
}

bool krc_initiator_in_doubt(const struct krc_initiator *ini, const struct krc_req *req)
{
	if (req->wr.opcode == KRP_OP_READ || req->wr.opcode == KRP_OP_WRITE)
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

		if (!req->status)
			req->status = status;
		krc_flow_fail(ini, req->flow, status);
		krc_initiator_retire(ini, KRC_FAULT_FLUSHED);
	}
	list_for_each_entry_safe(flow, tmp, &ini->turn, list)
		krc_flow_fail(ini, flow, status);
	list_for_each_entry_safe(flow, tmp, &ini->held, list)
		krc_flow_fail(ini, flow, status);
}

/* Collect what the hardware flushes by itself. */
static void krc_recover_drain(struct krc_initiator *ini)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_DRAIN_MS);
	bool empty;

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

static int krc_recover_reset(struct krc_initiator *ini)
{
	int i, err = 0;

	for (i = 0; i < KRC_RESET_TRIES; i++) {
		if (READ_ONCE(ini->state) == KRC_INI_STOPPED)
			return -ENODEV;
		err = ini->pool->ops->initiator_reset(ini->hw);
		if (!err)
			return 0;
		msleep(KRC_RESET_PAUSE_MS);
	}
	pr_warn_ratelimited("initiator %u can't be reset: %d\n", ini->index, err);
	return err;
}

/* The hardware is still: end or replay what it did not complete, and go on. */
static void krc_recover_finish(struct krc_initiator *ini, int err)
{
	lockdep_assert_held(&ini->lock);
	if (ini->state != KRC_INI_RESETTING)
		return; /* stopped, and krc_pool_stop() does the rest */
	if (!err && ini->barren >= KRC_BARREN_MAX)
		err = -EIO;
	if (err) {
		krc_initiator_set_state(ini, KRC_INI_DEAD);
		krc_initiator_abort(ini, -EIO);
		ini->barren = 0;
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
	krc_initiator_expect(ini);
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
	if (ours && !krc_fault_own(fault))
		ini->barren++;
	spin_unlock_bh(&ini->lock);
	if (!ours)
		return;

	trace_krc_recovery_begin(ini->index, fault);
	err = krc_recover_reset(ini);
	spin_lock_bh(&ini->lock);
	krc_recover_finish(ini, err);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
	trace_krc_recovery_end(ini->index, err);
}
