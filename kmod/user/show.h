/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what administrators and users are shown of contexts, queues and peers: walks over
 * copies; none of the objects themselves.
 */
#ifndef KRC_SHOW_H
#define KRC_SHOW_H

#include <linux/types.h>
#include <linux/uidgid.h>

#include "krp_ioctl.h"

/**
 * struct krc_queue_info - One queue, for people.
 * @context: number of its context, from 1, never used again.
 * @queue: number in the context.
 * @pid: process that opened the context, in the initial namespace.
 * @uid: its user.
 * @comm: its name.
 * @state: KRP_QUEUE_*.
 * @error: see struct krp_queue_query.
 * @gid: peer.
 * @service: peer's service.
 * @generation: peer's boot generation; 0 if there is no peer.
 * @depth: most requests.
 * @outstanding: now.
 * @posted: requests.
 * @completed: completions.
 * @failed: completions that were errors.
 * @bytes: transferred.
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
};

/**
 * struct krc_peer_info - One peer that queues are connected to, for people.
 * @gid: GID.
 * @service: service.
 * @generation: boot generation.
 * @queues: queues connected.
 * @regions: its regions in the cache.
 */
struct krc_peer_info {
	u8 gid[KRP_GID_BYTES];
	u16 service;
	u64 generation;
	u32 queues;
	u32 regions;
};

/* What all contexts hold and have done, for people. */
struct krc_context_stats {
	u64 contexts;
	u64 queues;
	u64 mrs;
	u64 pinned_bytes;
	u64 connects;
	u64 connects_cached;
	u64 connects_failed;
	u64 posts; /* system calls */
	u64 requests;
	u64 completions;
	u64 errors;
};

/* Walks: @start are left out; fn non-zero ends it. Context: may sleep, fn must not. */
u32 krc_queue_walk(u32 start, int (*fn)(const struct krc_queue_info *info, void *arg), void *arg);
u32 krc_peer_walk(u32 start, int (*fn)(const struct krc_peer_info *info, void *arg), void *arg);
void krc_context_stats(struct krc_context_stats *ret_stats);

/**
 * krc_peer_own_walk() - Show a user the peers that his own queues are connected to.
 * @start: how many to leave out.
 * @uid: the user.
 * @fn: called with each, its queues those of the user, regions 0; non-zero ends the walk.
 * @arg: for @fn.
 *
 * Context: may sleep.
 * Return: how many @fn accepted; 0 too if there is no memory.
 */
u32 krc_peer_own_walk(u32 start, kuid_t uid, int (*fn)(const struct krc_peer_info *info, void *arg),
		      void *arg);

#endif /* KRC_SHOW_H */
