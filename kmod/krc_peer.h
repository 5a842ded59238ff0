/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the peers that queues of this node are connected to. All queues of a port that
 * are connected to the same record share one peer, with its address vector and its cache
 * of memory references; a record that changed is another peer.
 * Locking: own spinlock for the table; peers are counted and do not change.
 */
#ifndef KRC_PEER_H
#define KRC_PEER_H

#include <linux/refcount.h>
#include <linux/types.h>

#include "krc_provider.h"

struct krc_port;
struct krc_remote;

/**
 * struct krc_peer - A peer.
 * @node: in the table.
 * @ref: queues connected to it.
 * @port: port used; counted.
 * @key: name of its record.
 * @value: its record.
 * @address: for requests.
 * @remote: its memory.
 * @rcu: frees it, for those who only look.
 */
struct krc_peer {
	struct hlist_node node;
	refcount_t ref;
	struct krc_port *port;
	struct krp_key key;
	struct krp_value value;
	struct krc_hw_address address;
	struct krc_remote *remote;
	struct rcu_head rcu;
};

/**
 * krc_peer_get() - The peer of a record, made if it is not there.
 * @port: port, entered.
 * @key: name of the record.
 * @value: the record; never trusted.
 *
 * Context: may sleep.
 * Return: the peer, counted, or ERR_PTR: -EPROTO (not a DC target), -ENOMEM, or what
 * ops->address() says.
 */
struct krc_peer *krc_peer_get(struct krc_port *port, const struct krp_key *key,
			      const struct krp_value *value);

/* One queue less. Context: may sleep. */
void krc_peer_put(struct krc_peer *peer);

/**
 * krc_peer_suspect() - A request to it failed: forget what the node has cached of it.
 * @peer: peer.
 * @fault: KRC_FAULT_TIMEOUT, KRC_FAULT_TARGET: its record and its memory;
 *	KRC_FAULT_ACCESS: its memory only; others: nothing.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_peer_suspect(struct krc_peer *peer, enum krc_fault fault);

#endif /* KRC_PEER_H */
