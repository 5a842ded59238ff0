/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the log of record changes that MetaServers have notified, for followers. One log for
 * the node: the cost of a change does not depend on the number of followers, and a follower
 * has no buffer of its own.
 * Locking: own spinlock, which nests in krc_meta.lock.
 */
#ifndef KRC_CHANGES_H
#define KRC_CHANGES_H

#include <linux/types.h>
#include <linux/wait.h>

#include "krp_ioctl.h"
#include "krp_table.h"

/**
 * struct krc_follower - A reader's position in the log; all zero: does not follow.
 * @on: between krc_changes_follow() and krc_changes_leave().
 * @lost: KRP_EVENT_RESYNC is due: the follower may have missed changes.
 * @at: number of the next change to read.
 *
 * The caller serializes all functions of one follower except krc_changes_pending().
 */
struct krc_follower {
	bool on;
	bool lost;
	u64 at;
};

/* Woken, with EPOLLPRI, a few milliseconds after a change, once for a burst. */
extern wait_queue_head_t krc_changes_wait;

/**
 * krc_changes_add() - Log a change that a MetaServer has notified.
 * @type: KRP_EVENT_*.
 * @key: record; NULL with KRP_EVENT_RESYNC.
 * @generation: generation of the record; 0 with KRP_EVENT_RESYNC.
 *
 * Logs nothing while there are no followers. Each server notifies each port, so the same
 * change arrives several times; it is logged once until a follower has read it.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_changes_add(u8 type, const struct krp_key *key, u64 generation);

/**
 * krc_changes_follow() - Read changes from now on; KRP_EVENT_RESYNC comes first.
 * @follower: follower, not on.
 *
 * Context: not in interrupts.
 */
void krc_changes_follow(struct krc_follower *follower);

/**
 * krc_changes_leave() - Undo krc_changes_follow().
 * @follower: follower, on.
 *
 * Context: not in interrupts.
 */
void krc_changes_leave(struct krc_follower *follower);

/**
 * krc_changes_take() - Read the next changes, in order.
 * @follower: follower, on.
 * @ret_events: out: changes; KRP_EVENT_RESYNC if the log does not hold them all any more.
 * @max: capacity of @ret_events, at least 1.
 *
 * Context: not in interrupts.
 * Return: number of events.
 */
u32 krc_changes_take(struct krc_follower *follower, struct krp_event *ret_events, u32 max);

/**
 * krc_changes_pending() - Whether krc_changes_take() would find something.
 * @follower: follower.
 *
 * Context: not in interrupts.
 * Return: true if it would.
 */
bool krc_changes_pending(const struct krc_follower *follower);

/**
 * krc_changes_wake() - Wake all waiters, whether or not there are changes.
 *
 * Context: any.
 */
void krc_changes_wake(void);

/**
 * krc_changes_exit() - End the log, at module exit.
 *
 * There are no followers any more. Context: may sleep.
 */
void krc_changes_exit(void);

#endif /* KRC_CHANGES_H */
