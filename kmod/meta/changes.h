/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the log of records that MetaServers said have changed, for who follows it. One log
 * for the node: what a change costs does not depend on how many follow, and a follower
 * holds no memory of it.
 * Locking: own spinlock, inside that of a MetaServer client.
 */
#ifndef KRC_CHANGES_H
#define KRC_CHANGES_H

#include <linux/types.h>
#include <linux/wait.h>

#include "krp_ioctl.h"
#include "krp_table.h"

/**
 * struct krc_follower - A place in the log; all zero follows nothing.
 * @on: between krc_changes_follow() and krc_changes_leave().
 * @lost: it has to be told that it missed something.
 * @at: number of the next change that it has not been told.
 *
 * Its functions are called by one thread at a time, but for krc_changes_pending().
 */
struct krc_follower {
	bool on;
	bool lost;
	u64 at;
};

/* Woken, with EPOLLPRI, a few milliseconds after a change, once for a burst. */
extern wait_queue_head_t krc_changes_wait;

/**
 * krc_changes_add() - A MetaServer told of a change.
 * @type: KRP_EVENT_*.
 * @key: which record; NULL with KRP_EVENT_RESYNC.
 * @generation: of the record; 0 with KRP_EVENT_RESYNC.
 *
 * Costs nothing while nobody follows. Each server tells each port, so the same change comes
 * several times: it is written once as long as nobody has read of it.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_changes_add(u8 type, const struct krp_key *key, u64 generation);

/**
 * krc_changes_follow() - Be told of changes from now on; KRP_EVENT_RESYNC comes first.
 * @follower: place, not on.
 *
 * Context: not in interrupts.
 */
void krc_changes_follow(struct krc_follower *follower);

/**
 * krc_changes_leave() - Undo krc_changes_follow().
 * @follower: place, on.
 *
 * Context: not in interrupts.
 */
void krc_changes_leave(struct krc_follower *follower);

/**
 * krc_changes_take() - What a follower has not been told yet, in order.
 * @follower: place, on.
 * @ret_events: out: changes; KRP_EVENT_RESYNC if the log does not hold them all any more.
 * @max: room there, from 1.
 *
 * Context: not in interrupts.
 * Return: how many there were.
 */
u32 krc_changes_take(struct krc_follower *follower, struct krp_event *ret_events, u32 max);

/**
 * krc_changes_pending() - Whether krc_changes_take() would find something.
 * @follower: place.
 *
 * Context: not in interrupts.
 * Return: true if it would.
 */
bool krc_changes_pending(const struct krc_follower *follower);

/**
 * krc_changes_wake() - Wake who waits, whatever there is.
 *
 * Context: any.
 */
void krc_changes_wake(void);

/* The module ends; nobody follows any more. Context: may sleep. */
void krc_changes_exit(void);

#endif /* KRC_CHANGES_H */
