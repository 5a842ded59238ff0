/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the peers that queues of this node are connected to. All queues of a port that
 * are connected to the same record share one peer, with its address vector and its cache
 * of memory references; a record that changed is another peer. A peer that no queue is
 * connected to any more is kept for a while, so that who connects, asks and leaves again
 * and again finds what the one before left; a bounded number of them, and none of a port
 * that is gone. That one did not answer is remembered elsewhere (pool/silence.h).
 * Locking: own spinlock for the table and the counts; else peers do not change.
 */
#ifndef KRC_PEER_H
#define KRC_PEER_H

#include <linux/list.h>
#include <linux/types.h>

#include "hw/provider.h"

struct krc_port;
struct krc_rail;
struct krc_remote;
struct krc_standing;

/**
 * struct krc_peer - A peer.
 * @node: in the table.
 * @users: queues connected to it.
 * @made: jiffies.
 * @outdated: there is a fresher one, or it is time for one; nobody is given it any more. No
 *	lock to set it.
 * @idle: in the list of those without users, the longest idle first; or in that of the
 *	outdated ones that have some, which are not in the table.
 * @idle_since: jiffies.
 * @port: port used; counted.
 * @key: name of its record.
 * @value: its record.
 * @address: for requests.
 * @remote: its memory.
 * @standing: what is known of its target; of @remote.
 * @rcu: frees it, for those who only look.
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
 * krc_peer_get() - The peer of a record, made if it is not there.
 * @port: port, entered.
 * @key: name of the record.
 * @value: the record; never trusted.
 * @fresh: not one that has been there for long: next to nothing is known of its memory, and
 *	those who connect from now on share this one.
 *
 * Context: may sleep.
 * Return: the peer, counted, or ERR_PTR: -EPROTO (not a DC target), -ENOMEM, or what
 * ops->address() says.
 */
struct krc_peer *krc_peer_get(struct krc_port *port, const struct krp_key *key,
			      const struct krp_value *value, bool fresh);

/* One queue less. Context: may sleep. */
void krc_peer_put(struct krc_peer *peer);

/* Forget the idle peers of a port that nobody enters any more, or of all (NULL). */
void krc_peers_drop(struct krc_rail *rail);

/* Be told of the end of ports. Context: loading; no port is up. */
void krc_peers_init(void);

/* Forget all; no queue is left. Context: unloading, may sleep. */
void krc_peers_exit(void);

/**
 * krc_peer_suspect() - A request to it failed: forget what the node has cached of it.
 * @peer: peer.
 * @fault: KRC_FAULT_TIMEOUT, KRC_FAULT_TARGET: its record, how it is reached, and its memory,
 *	and it is silent until it answers; KRC_FAULT_ACCESS: what was refused; others: nothing.
 * @token: region that the request was for.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_peer_suspect(struct krc_peer *peer, enum krc_fault fault, u64 token);

/**
 * krc_peer_disbelieve() - Its record is old, since its directory could not be READ.
 * @peer: peer.
 *
 * Whoever connects from now on asks for the record anew, and finds out anew how the address
 * is reached. Whether it is silent, who READs knows.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_peer_disbelieve(struct krc_peer *peer);

#endif /* KRC_PEER_H */
