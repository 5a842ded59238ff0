/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: faults of a channel, their meaning for requests, and the way back. pool/pool_priv.h includes
 * it, and is what others include.
 */
#ifndef KRC_RECOVERY_H
#define KRC_RECOVERY_H

#include "pool/pool_priv.h"

/**
 * krc_channel_fault() - Record a fault, and schedule the recovery.
 * @ch: channel.
 * @fault: what happened. The first one counts; but any other one, seen before the hardware is
 *	halted, replaces KRC_FAULT_EXPIRED.
 * @culprit: the request that failed, whose target and opcode decide what happens to the
 *	others; NULL: none.
 *
 * Does nothing in a channel that is stopped. Context: channel's lock held.
 */
void krc_channel_fault(struct krc_channel *ch, enum krc_fault fault, const struct krc_req *culprit);

/**
 * krc_channel_in_doubt() - Check whether a flushed request may have been executed, if only in part.
 * @ch: channel with a fault.
 * @req: request of which a segment was in the hardware.
 *
 * Context: channel's lock held.
 * Return: false for READs, for another target than the one that failed, and where the target
 * refused a request that was no READ; true otherwise.
 */
bool krc_channel_in_doubt(const struct krc_channel *ch, const struct krc_req *req);

/**
 * krc_channel_silent() - Check whether a flushed request failed with the one that timed out.
 * @ch: channel with a fault.
 * @req: request of which a segment was in the hardware.
 *
 * Context: channel's lock held.
 * Return: true after KRC_FAULT_TIMEOUT, if @req is for the same target, nothing of it has completed
 * since the stall began, and that is longer ago than KRC_SILENT_MS.
 */
bool krc_channel_silent(const struct krc_channel *ch, const struct krc_req *req);

/**
 * krc_channel_begun() - Check whether the doorbell was rung for the oldest segment.
 * @ch: channel with a segment in the hardware.
 *
 * Context: channel's lock held.
 * Return: true if the hardware may have begun it.
 */
static inline bool krc_channel_begun(const struct krc_channel *ch)
{
	return (s32)(ch->rung - ch->head) > 0;
}

/**
 * krc_channel_abort() - Complete all requests of all flows of a channel.
 * @ch: channel whose hardware touches no memory of them any more.
 * @status: negative errno; a WRITE or an atomic for which the doorbell was rung completes
 *	with -EREMCHG instead.
 *
 * The flows fail. What has ended is for krc_channel_dispatch(). Context: channel's lock held.
 */
void krc_channel_abort(struct krc_channel *ch, int status);

/**
 * krc_channel_recover() - Reset a failed channel: the function of krc_failure.recover.
 * @work: that work item.
 *
 * Collects what the hardware flushes, halts and restarts it, ends or replays the requests; DEAD if
 * it can't be reset, or after KRC_FRUITLESS_MAX resets without progress. Does nothing if the
 * channel is not FAILED (or DEAD, when it retries).
 * Context: work item, may sleep; channel's lock not held.
 */
void krc_channel_recover(struct work_struct *work);

/**
 * krc_channel_expire() - Enforce the leases of segments: the function of krc_lease_bound.expiry.
 * @work: that work item.
 *
 * Takes a sample of the channel, looks at its window, and evicts, first. Faults the channel with
 * KRC_FAULT_EXPIRED if a leased segment is still in the hardware after its time. Schedules itself for the
 * next one, or the next look. Moves what is evicted at last.
 * Context: work item, may sleep; channel's lock not held.
 */
void krc_channel_expire(struct work_struct *work);

/**
 * krc_fault_errno() - Translate a fault to an errno.
 * @fault: what the hardware reported.
 *
 * Context: any; no lock needed.
 * Return: negative errno of struct krp_cqe; 0 for KRC_FAULT_NONE.
 */
static inline int krc_fault_errno(enum krc_fault fault)
{
	switch (fault) {
	case KRC_FAULT_NONE:
		return 0;
	case KRC_FAULT_FLUSHED:
		return -ECANCELED;
	case KRC_FAULT_ACCESS:
		return -EREMOTEIO;
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		return -ETIMEDOUT;
	case KRC_FAULT_BUSY:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

/**
 * krc_req_harmless() - Check whether a request may be executed twice, or in part.
 * @req: request.
 *
 * Context: any; no lock needed.
 * Return: true for a READ, which changes nothing at the peer, and for a SEND, of which the peer
 * knows doubles.
 */
static inline bool krc_req_harmless(const struct krc_req *req)
{
	return req->wr.opcode == KRP_OP_READ || req->wr.opcode == KRC_HW_SEND;
}

/**
 * krc_fault_own() - Check whether a fault is that of the request that reports it.
 * @fault: what the hardware reported.
 *
 * Context: any; no lock needed.
 * Return: false for no fault, for KRC_FAULT_FLUSHED, and for what no request is to blame for (from
 * KRC_FAULT_LOST on).
 */
static inline bool krc_fault_own(enum krc_fault fault)
{
	return fault != KRC_FAULT_NONE && fault != KRC_FAULT_FLUSHED && fault < KRC_FAULT_LOST;
}

/**
 * krc_fault_aims() - Check whether a fault is about the target of the request that reports it.
 * @fault: what the hardware reported.
 *
 * Context: any; no lock needed.
 * Return: whether those to the same target are in doubt by it, or all.
 */
static inline bool krc_fault_aims(enum krc_fault fault)
{
	return krc_fault_own(fault) || fault == KRC_FAULT_LOST;
}

#endif /* KRC_RECOVERY_H */
