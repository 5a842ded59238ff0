/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what administrators and users are shown of contexts, queues, connections and their peers: the
 * walks hand out copies, never the objects themselves.
 */
#ifndef KRC_SHOW_H
#define KRC_SHOW_H

#include <linux/types.h>
#include <linux/uidgid.h>

#include "krp_ioctl.h"
#include "krp_ioctl_message.h"
#include "message/connect.h"
#include "peer/peer.h"

/**
 * struct krc_queue_info - One queue, for diagnostics.
 * @context: number of its context, from 1, never used again.
 * @queue: number in the context.
 * @pid: process that opened the context, as the calling task's namespace names it; 0: it has none there.
 * @uid: user of that process.
 * @comm: name of that process.
 * @state: KRP_QUEUE_*.
 * @error: see struct krp_queue_query.
 * @gid: GID of the peer.
 * @service: peer's service.
 * @generation: peer's boot generation; 0 if there is no peer.
 * @depth: capacity in requests.
 * @outstanding: @posted minus @completed.
 * @posted: requests taken so far.
 * @completed: completions so far.
 * @failed: completions that were errors.
 * @bytes: bytes transferred.
 * @initiator: index of the initiator, or lane, that its requests go through.
 * @placed: there is one: something was posted, or it was connected again.
 * @isolated: that initiator is one of those for whoever holds others up, see pool/isolation.h.
 */
struct krc_queue_info {
	u64 context;
	u32 queue;
	pid_t pid;
	kuid_t uid;
	char comm[16];
	u8 state;
	int error;
	u8 gid[KRP_GID_BYTES];
	u16 service;
	u64 generation;
	u32 depth;
	u32 outstanding;
	u64 posted;
	u64 completed;
	u64 failed;
	u64 bytes;
	u32 initiator;
	bool placed;
	bool isolated;
};

/**
 * struct krc_talk_info - One connection, for diagnostics.
 * @context: number of its context, from 1, never used again.
 * @pid: process that opened the context, as the calling task's namespace names it; 0: it has none there.
 * @uid: user of that process.
 * @comm: name of that process.
 * @depth: messages and READs that may be under way; 0 if it is an offer.
 * @where: what carries its messages; nothing if it is an offer.
 * @how: as KRP_IOC_CONN_QUERY tells; of an offer the connection and the state alone.
 */
struct krc_talk_info {
	u64 context;
	pid_t pid;
	kuid_t uid;
	char comm[16];
	u32 depth;
	struct krc_stream_where where;
	struct krp_conn_query how;
};

/**
 * struct krc_context_stats - What all contexts hold now and have done so far, for diagnostics.
 * @contexts: contexts, those being released included.
 * @queues: queues.
 * @mrs: memory regions.
 * @pinned_bytes: their sizes, added up.
 * @connects: as in struct krc_counts, like all below.
 * @connects_cached: connects answered by the node's cache.
 * @connects_failed: connects that failed.
 * @posts: system calls.
 * @requests: requests that those took.
 * @completions: requests completed.
 * @errors: of them, those with an error.
 */
struct krc_context_stats {
	u64 contexts;
	u64 queues;
	u64 mrs;
	u64 pinned_bytes;
	u64 connects;
	u64 connects_cached;
	u64 connects_failed;
	u64 posts;
	u64 requests;
	u64 completions;
	u64 errors;
};

/**
 * struct krc_queue_at - Where a walk of queues or connections goes on; zero: at the first one.
 * @context: number of a context.
 * @queue: number in the context.
 */
struct krc_queue_at {
	unsigned long context;
	unsigned long queue;
};

/**
 * krc_queue_walk() - Show the queues of all contexts, in the order of their contexts and numbers.
 * @at: in: the first one; out: that which @fn refused, for the next walk.
 * @uid: show only those of this user's processes; the locks of others are not taken. NULL: all.
 * @fn: called with a copy of each, with a spinlock held: must not sleep; non-zero ends the
 *	walk.
 * @arg: for @fn.
 *
 * Nobody waits for the whole of a walk: it breaks off between contexts, and between some queues.
 * Context: may sleep.
 */
void krc_queue_walk(struct krc_queue_at *at, const kuid_t *uid,
		    int (*fn)(const struct krc_queue_info *info, void *arg), void *arg);

/**
 * krc_talk_walk() - Show the connections of all contexts, in the order of their contexts and
 *	numbers.
 * @at: as that of krc_queue_walk().
 * @uid: likewise.
 * @fn: called with a copy of each, without a lock; non-zero ends the walk.
 * @arg: for @fn.
 *
 * It does not wait for programs: what is changing meanwhile may be missed. Context: may sleep.
 */
void krc_talk_walk(struct krc_queue_at *at, const kuid_t *uid,
		   int (*fn)(const struct krc_talk_info *info, void *arg), void *arg);

/**
 * krc_context_stats() - Sum up what all contexts hold and have done.
 * @ret_stats: out: sums.
 *
 * Context: may sleep.
 */
void krc_context_stats(struct krc_context_stats *ret_stats);

/**
 * krc_peer_own_walk() - Show a user the peers that the queues of this user are connected to.
 * @start: how many peers to skip.
 * @uid: the user.
 * @fn: called with each peer, its queues those of the user, regions 0; non-zero ends the walk.
 * @arg: for @fn.
 *
 * Context: may sleep.
 * Return: how many @fn accepted; 0 also without memory.
 */
u32 krc_peer_own_walk(u32 start, kuid_t uid, int (*fn)(const struct krc_peer_info *info, void *arg),
		      void *arg);

#endif /* KRC_SHOW_H */
