/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: which ports a process may use. The devices themselves are the node's own: node/node_priv.h.
 * Locking: krc_devices.ports, a spinlock; no caller waits for the node.
 */
#ifndef KRC_NODE_DEVICE_H
#define KRC_NODE_DEVICE_H

#include <linux/types.h>

struct krc_port;

/**
 * krc_port_first() - Find a port that is up and that the calling process may use.
 * @index: which one, from 1; ports whose link has gone down count. 0: the first whose link
 *	is up, else the first.
 *
 * Context: process; does not sleep.
 * Return: the port with a reference, or NULL.
 */
struct krc_port *krc_port_first(u32 index);

/**
 * krc_port_by_gid() - Find a port that is up and that the calling process may use, by GID.
 * @gid: GID, KRP_GID_BYTES.
 *
 * Context: process; does not sleep.
 * Return: the port with a reference, or NULL.
 */
struct krc_port *krc_port_by_gid(const u8 *gid);

/**
 * krc_port_count() - How many ports krc_port_first() can find.
 *
 * Context: process; does not sleep.
 * Return: their number.
 */
u32 krc_port_count(void);

#endif /* KRC_NODE_DEVICE_H */
