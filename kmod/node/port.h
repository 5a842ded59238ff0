/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: one RDMA port of the node with all that is built on it, its making and its end.
 *
 * Lifetime: struct krc_port is counted (krc_port_get/put); what it points to lives
 * only while the port is alive. Whoever uses pool, meta, hw or the address of a port does so
 * between krc_port_enter() and krc_port_exit(), which are short or end soon after the port
 * has begun to die (nobody enters any more, then waiters of the pool and of the MetaServer
 * client are woken with an error). mrdir is there as long as the port is.
 * Locking: a port is made under krc_node's lock, and ends without it.
 */
#ifndef KRC_PORT_H
#define KRC_PORT_H

#include "hw/rail.h"
#include "node/node.h"

struct krc_meta;
struct krc_mrdir;
struct krc_pool;

/**
 * struct krc_port - One RDMA port of the node.
 * @rail: the port of the device; counts the users of this struct.
 * @sgid_attr: entry of the device's table that the GID is in, counted: as long as targets and
 *	initiators name its index, nobody else's address gets it.
 * @dc_key: secret of the target, random.
 * @value: the record that is published for KRP_SERVICE_NODE.
 * @target: DC target.
 * @pool: initiators.
 * @mrdir: memory regions open to peers.
 * @meta: MetaServer client.
 */
struct krc_port {
	struct krc_rail rail;
	const struct ib_gid_attr *sgid_attr;
	u64 dc_key;
	struct krp_value value;
	struct krc_hw_target *target;
	struct krc_pool *pool;
	struct krc_mrdir *mrdir;
	struct krc_meta *meta;
};

static inline struct krc_port *krc_port_get(struct krc_port *port)
{
	krc_rail_get(&port->rail);
	return port;
}

/* Drop a reference. Context: may sleep. */
static inline void krc_port_put(struct krc_port *port)
{
	krc_rail_put(&port->rail);
}

/* Begin to use what a port points to; false if it is dead or dying. Any context. */
static inline bool krc_port_enter(struct krc_port *port)
{
	return krc_rail_enter(&port->rail);
}

/* End of the use. Any context. */
static inline void krc_port_exit(struct krc_port *port)
{
	krc_rail_exit(&port->rail);
}

/**
 * krc_port_create() - Target, memory directory, initiators and MetaServer client of a port.
 * @ibdev: device.
 * @ops: its provider.
 * @hw: open device.
 * @attr: what it can do.
 * @num: port number, from 1.
 * @sgid_attr: GID to publish; the port counts it for itself.
 * @conf: configuration of the node.
 *
 * Context: may sleep, node lock held.
 * Return: the port, or ERR_PTR with what a part said.
 */
struct krc_port *krc_port_create(struct ib_device *ibdev, const struct krc_provider_ops *ops,
				 struct krc_hw *hw, const struct krc_hw_attr *attr, u32 num,
				 const struct ib_gid_attr *sgid_attr,
				 const struct krc_node_conf *conf);

/**
 * krc_port_kill() - Withdraw the port and take away all that it points to.
 * @port: port; the caller's reference goes with it.
 * @left: records that could not be withdrawn are added here.
 *
 * Waits for everybody inside krc_port_enter(), after waking them, and, unless the device is
 * down, for peers: until the lease of the last region that one of them may know is over, and
 * until its target has no connection. Queues are left with -ENODEV at once. Context: may
 * sleep, for some seconds; nothing held.
 */
void krc_port_kill(struct krc_port *port, struct list_head *left);

/**
 * krc_port_on_end() - Be told of the end of each port.
 * @fn: called once the last user has left it, and before its parts go; NULL: nobody.
 *
 * For what is above the ports and keeps something for each. Context: no port is up.
 */
void krc_port_on_end(void (*fn)(struct krc_rail *rail));

/**
 * krc_port_pick_gid() - The GID by which peers reach a port.
 * @ibdev: device.
 * @num: port number.
 *
 * InfiniBand: the first. RoCE: version 2, of the initial network namespace; that of the port's
 * own network device before those of what is on top of it (VLANs, macvlans), an IPv4 address
 * before an IPv6 one; never a link-local one, by which no MetaServer is reached.
 * Context: may sleep.
 * Return: its entry, for rdma_put_gid_attr(), or ERR_PTR(-EADDRNOTAVAIL).
 */
const struct ib_gid_attr *krc_port_pick_gid(struct ib_device *ibdev, u32 num);

#endif /* KRC_PORT_H */
