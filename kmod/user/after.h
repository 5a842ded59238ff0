/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: messages that wait for the requests of a queue (KRP_SEND_AFTER).
 *
 * A WRITE and a message travel on different channels, and a channel that is reset repeats what it
 * had: only what has completed is surely before a message (proto/krp_stream.h, WRITE WITH
 * NOTIFICATION). So the message stays here until then. A queue completes in order: what was
 * posted before is complete when so many are.
 *
 * Locking: krc_queue.lock, which the completions of a queue take when somebody waits for it, with
 * bottom halves off.
 */
#ifndef KRC_AFTER_H
#define KRC_AFTER_H

#include <linux/list.h>
#include <linux/types.h>

struct krc_queue;
struct krc_talk;

/**
 * struct krc_after - A message that waits for a queue.
 * @list: entry in krc_queue.afters; guarded by krc_queue.lock, as is all below.
 * @queue: queue, counted.
 * @talk: connection of the message, which counts it as long as this exists.
 * @until: krc_queue.completed that is awaited.
 * @failed: krc_queue.failed when the waiting began.
 * @outcome: -EINPROGRESS, then 0 or -ECANCELED.
 */
struct krc_after {
	struct list_head list;
	struct krc_queue *queue;
	struct krc_talk *talk;
	u64 until;
	u64 failed;
	int outcome;
};

/**
 * krc_after_begin() - Wait for what was posted to a queue.
 * @talk: connection of the message; its krc_talk.release is queued when the waiting is over.
 * @id: number of the queue.
 *
 * Context: may sleep; waits for a poster of the queue.
 * Return: it, for krc_after_end(); NULL: there is nothing to wait for; or ERR_PTR: -ENOENT (no such
 * queue), -ECANCELED (it is in ERROR, or being closed), -EAGAIN (KRP_SEND_AFTER_MAX wait for it),
 * -EINTR, -ENOMEM.
 */
struct krc_after *krc_after_begin(struct krc_talk *talk, u32 id);

/**
 * krc_after_end() - Wait no more.
 * @after: as krc_after_begin() returned it, or NULL.
 *
 * Context: may sleep; the queue may be freed.
 */
void krc_after_end(struct krc_after *after);

/**
 * krc_after_outcome() - Whether a message may be sent.
 * @after: as krc_after_begin() returned it, or NULL.
 *
 * Context: not in interrupts.
 * Return: 0: it may; -ECANCELED: a request of the queue has failed; -EINPROGRESS: not yet.
 */
int krc_after_outcome(struct krc_after *after);

/**
 * krc_after_told() - Requests of a queue have completed, and the program was told.
 * @queue: queue. krc_queue.completed was set before a full barrier.
 *
 * Context: bottom halves off, krc_queue.lock not held.
 */
void krc_after_told(struct krc_queue *queue);

#endif /* KRC_AFTER_H */
