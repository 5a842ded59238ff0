/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the peers that queues of this node are connected to. All queues of a port that
 * are connected to the same record share one peer, with its address vector and its cache
 * of memory references; a changed record makes a new peer. Idle peers, without queues, are
 * kept for a while (a bounded number, none of a dead port), so that a loop of connect,
 * request, close reuses address and region cache. That a peer is unresponsive is remembered
 * elsewhere (pool/silence.h).
 * Locking: own spinlock for the table and the counts; other fields do not change.
 */
#ifndef KRC_PEER_H
#define KRC_PEER_H

#include <linux/list.h>
#include <linux/types.h>

#include "hw/provider.h"
#include "krp_table.h"

struct krc_port;
struct krc_rail;
struct krc_remote;
struct krc_standing;

/**
 * struct krc_peer - A peer.
 * @node: entry in the table.
 * @users: queues connected to it.
 * @made: jiffies of its creation.
 * @outdated: replaced, or to be replaced by the next connect; no new user gets it. Set
 *	without a lock.
 * @idle: entry in the list of peers without users, the longest idle first; or in that of the
 *	outdated peers with users, which are not in the table.
 * @idle_since: jiffies at which the last user left.
 * @port: port used; counted.
 * @key: GID and service of its record.
 * @value: its record.
 * @address: address vector for requests.
 * @remote: references to its memory.
 * @standing: whether its target answers; borrowed from @remote.
 * @rcu: frees it after RCU readers (krc_queue_describe()).
 */
struct krc_peer {
	struct hlist_node node;
	u32 users;
	unsigned long made;
	bool outdated;
	struct list_head idle;
	unsigned long idle_since;
	struct krc_port *port;
	struct krp_key key;
	struct krp_value value;
	struct krc_hw_address address;
	struct krc_remote *remote;
	struct krc_standing *standing;
	struct rcu_head rcu;
};

/**
 * krc_peer_get() - Get the peer of a record; make it if there is none.
 * @port: port, entered.
 * @key: GID and service of the record.
 * @value: the record; not trusted, so it is validated.
 * @fresh: take only a peer made within the last 100 ms, whose region cache is nearly empty;
 *	else make one that replaces the others of the record for later connects.
 *
 * Context: may sleep.
 * Return: the peer, counted, or ERR_PTR: -EPROTO (not a DC target), -ENOMEM, or the error of
 * ops->address().
 */
struct krc_peer *krc_peer_get(struct krc_port *port, const struct krp_key *key,
			      const struct krp_value *value, bool fresh);

/**
 * krc_peer_put() - Drop the user that krc_peer_get() counted.
 * @peer: peer; NULL is allowed.
 *
 * Without users a peer is kept for the next connect, for 10 s and as one of at most 256; one that
 * is outdated, or whose port is dying, is freed.
 * Context: may sleep, no lock held.
 */
void krc_peer_put(struct krc_peer *peer);

/**
 * krc_peers_drop() - Free the idle peers of a port, and what is known of its targets.
 * @rail: port that can't be entered any more; NULL: all ports.
 *
 * Context: may sleep, no lock held.
 */
void krc_peers_drop(struct krc_rail *rail);

/**
 * krc_peers_init() - Register for the end of ports, with krc_peers_drop().
 *
 * Context: module init; no port is up.
 */
void krc_peers_init(void);

/**
 * krc_peers_exit() - Free all peers.
 *
 * Context: module exit, may sleep; no port is up, no queue is left.
 */
void krc_peers_exit(void);

/**
 * krc_peer_suspect() - Drop what the node has cached of a peer after a failed request.
 * @peer: peer.
 * @fault: KRC_FAULT_TIMEOUT, KRC_FAULT_TARGET: drop its record, its address and its regions,
 *	and take it as unresponsive until it answers; KRC_FAULT_EXPIRED: drop these, and have it
 *	prove itself (krc_standing_expired()); KRC_FAULT_ACCESS: drop @token, or
 *	all regions if its refusals have become too many (pool/silence.h); others: nothing.
 * @token: region that the request was for.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_peer_suspect(struct krc_peer *peer, enum krc_fault fault, u64 token);

/**
 * krc_peer_disbelieve() - Take the record of a peer as stale: its directory could not be READ.
 * @peer: peer.
 *
 * Later connects look up the record and resolve the address anew. Does not change whether the
 * peer counts as unresponsive: the code that READs does (pool/read.c).
 * Context: any that may take a BH-safe spinlock.
 */
void krc_peer_disbelieve(struct krc_peer *peer);

/**
 * struct krc_peer_info - One peer that queues are connected to, for diagnostics.
 * @gid: GID.
 * @service: service.
 * @generation: boot generation.
 * @queues: queues connected.
 * @regions: its memory regions in the cache.
 */
struct krc_peer_info {
	u8 gid[KRP_GID_BYTES];
	u16 service;
	u64 generation;
	u32 queues;
	u32 regions;
};

/**
 * struct krc_peer_at - How far a walk of peers has come.
 * @bucket: of the table; behind it: those that are outdated.
 * @nth: peers of it that were shown, or are in no use.
 */
struct krc_peer_at {
	u32 bucket;
	u32 nth;
};

/**
 * krc_peer_walk() - Show the peers that queues are connected to, in no particular order.
 * @at: where to begin: all zero, or as an earlier walk has left it; moved behind what @fn accepts.
 * @fn: called with a copy of each, with a spinlock held: must not sleep; non-zero ends the walk.
 * @arg: for @fn.
 *
 * The lock is held for a part of the table at a time. What changes between two parts or walks may be
 * missed or shown twice.
 * Context: may sleep.
 */
void krc_peer_walk(struct krc_peer_at *at, int (*fn)(const struct krc_peer_info *info, void *arg),
		   void *arg);

#endif /* KRC_PEER_H */
