/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: bringing one port up and taking it down; struct krc_port is in node/node.h.
 * Locking: a port is made under krc_node's lock, and ends without it.
 */
#ifndef KRC_PORT_H
#define KRC_PORT_H

#include "node/node.h"

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
