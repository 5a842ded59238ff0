/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: one RDMA port of the node with all that is built on it, from creation to end.
 *
 * Lifetime: struct krc_port is counted (krc_port_get/put); what it points to lives only until
 * krc_port_kill(). Pool, meta, messages, hw and the address of a port are used only between
 * krc_port_enter() and krc_port_exit(). Such a section is short, or ends soon after the port
 * has begun to die: then krc_port_enter() fails, and waiters of the pool and of the MetaServer
 * client are woken with an error. mrdir and cache live as long as the struct.
 * Locking: a port is created under krc_node's lock, and ends without it.
 */
#ifndef KRC_PORT_H
#define KRC_PORT_H

#include "hw/rail.h"
#include "node/node.h"

struct krc_cache;
struct krc_messages;
struct krc_meta;
struct krc_mrdir;
struct krc_pool;
struct krc_stream;
struct krp_list;

/**
 * struct krc_port - One RDMA port of the node.
 * @rail: the port of the device; holds the reference count of this struct.
 * @sgid_attr: the GID's entry in the device's table, counted: while targets and initiators use
 *	its index, no other address can take it.
 * @dc_key: secret of the target, random.
 * @value: the record that is published for KRP_SERVICE_NODE.
 * @target: DC target.
 * @pool: initiators.
 * @mrdir: memory regions open to peers.
 * @cache: the node's cache of records; lives as long as the module.
 * @meta: MetaServer client.
 * @messages: connections of programs; NULL: the device receives none.
 */
struct krc_port {
	struct krc_rail rail;
	const struct ib_gid_attr *sgid_attr;
	u64 dc_key;
	struct krp_value value;
	struct krc_hw_target *target;
	struct krc_pool *pool;
	struct krc_mrdir *mrdir;
	struct krc_cache *cache;
	struct krc_meta *meta;
	struct krc_messages *messages;
};

/**
 * krc_port_get() - Count a reference to the struct.
 * @port: port that the caller has a reference to.
 *
 * Context: any.
 * Return: @port.
 */
static inline struct krc_port *krc_port_get(struct krc_port *port)
{
	krc_rail_get(&port->rail);
	return port;
}

/**
 * krc_port_put() - Drop a reference; the last one frees the struct.
 * @port: port.
 *
 * Context: may sleep.
 */
static inline void krc_port_put(struct krc_port *port)
{
	krc_rail_put(&port->rail);
}

/**
 * krc_port_enter() - Begin to use what a port points to.
 * @port: port that the caller has a reference to.
 *
 * Context: any.
 * Return: true, until krc_port_exit(); false if it is dead or dying.
 */
static inline bool krc_port_enter(struct krc_port *port)
{
	return krc_rail_enter(&port->rail);
}

/**
 * krc_port_exit() - End the use that krc_port_enter() began.
 * @port: port.
 *
 * Context: any.
 */
static inline void krc_port_exit(struct krc_port *port)
{
	krc_rail_exit(&port->rail);
}

/**
 * krc_port_create() - Make a port: target, memory directory, initiators, MetaServer client.
 * @ibdev: device.
 * @ops: its provider.
 * @hw: open device.
 * @attr: capabilities of @hw; copied.
 * @num: port number, from 1.
 * @sgid_attr: GID to publish; the port takes its own reference.
 * @conf: configuration of the node.
 *
 * Context: may sleep, node lock held.
 * Return: the port, or ERR_PTR with the error of the part that failed.
 */
struct krc_port *krc_port_create(struct ib_device *ibdev, const struct krc_provider_ops *ops,
				 struct krc_hw *hw, const struct krc_hw_attr *attr, u32 num,
				 const struct ib_gid_attr *sgid_attr,
				 const struct krc_node_conf *conf);

/**
 * krc_port_kill() - Withdraw the port and destroy all that it points to.
 * @port: port; the caller's reference is dropped.
 * @left: out: orphaned records, which could not be withdrawn, are added here.
 *
 * Puts queues into ERROR with -ENODEV at once. Wakes the threads inside krc_port_enter() and
 * waits for them to leave; then, unless the device is down, waits until the lease of the last
 * region that a peer may know is over and the target has no connection.
 * Context: may sleep, for some seconds; no lock held.
 */
void krc_port_kill(struct krc_port *port, struct krp_list *left);

/**
 * krc_port_on_end() - Set the callback for the end of each port.
 * @fn: called after the last user has left the port, before its parts are destroyed; may sleep;
 *	NULL: none.
 *
 * For a layer above the ports that keeps state for each. Context: no port is up.
 */
void krc_port_on_end(void (*fn)(struct krc_rail *rail));

/**
 * krc_port_gid_wins() - Compare a GID with the best of those at lower indices.
 * @rank: its rank; higher is better, 0: unusable.
 * @best: rank of that one; 0: there is none.
 * @kept: it is the one that the port has.
 *
 * Context: any.
 * Return: whether it takes the place of that one.
 */
static inline bool krc_port_gid_wins(u32 rank, u32 best, bool kept)
{
	return rank > best || (kept && rank && rank == best);
}

/**
 * krc_port_pick_gid() - Choose the GID by which peers reach a port.
 * @ibdev: device.
 * @num: port number.
 * @keep: entry that the port has, or NULL; only compared.
 *
 * InfiniBand: the first. RoCE: a version 2 GID of the initial network namespace; the port's own
 * network device comes before devices stacked on it (VLANs, macvlans), then IPv4 before IPv6;
 * never a link-local address, from which no MetaServer can be reached. Of equal ones @keep, if
 * it is still in the table, since a port that changes its GID ends its queues and regions; else
 * that of the lowest index.
 * Context: may sleep.
 * Return: its entry, to be released by rdma_put_gid_attr(), or ERR_PTR(-EADDRNOTAVAIL).
 */
const struct ib_gid_attr *krc_port_pick_gid(struct ib_device *ibdev, u32 num,
					    const struct ib_gid_attr *keep);

/**
 * krc_port_messages_possible() - Check whether a port can receive messages.
 * @port: port that the caller has a reference to.
 *
 * Context: any.
 * Return: 0, -EOPNOTSUPP (its device receives none), -ENODEV (it is dead or dying).
 */
int krc_port_messages_possible(struct krc_port *port);

/**
 * krc_port_disbelieve() - Forget the record by which a connection was opened that has died, if it may be
 * that of an earlier generation of the peer.
 * @port: port.
 * @stream: connection.
 * @err: of what it has died: -ESTALE, -ETIMEDOUT and -ECONNREFUSED make the record doubtful.
 *
 * Context: process.
 */
void krc_port_disbelieve(struct krc_port *port, struct krc_stream *stream, int err);

#endif /* KRC_PORT_H */
