/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of a node context; see node.c for memory and the ring, queue.c for
 * queues. Constant after krcore_node_open().
 */
#ifndef KRL_NODE_H
#define KRL_NODE_H

#include <stddef.h>

#include "client/include/krcore/queue.h"
#include "client/lib/ring.h"

/**
 * struct krcore_node - A node context.
 * @fd: the open device.
 * @map: mapping of the device.
 * @map_bytes: its size.
 * @ring: the completion ring in @map.
 */
struct krcore_node {
	int fd;
	void *map;
	size_t map_bytes;
	struct krl_ring ring;
};

/**
 * krl_node_call() - Issue an ioctl on the device.
 * @node: node.
 * @request: KRP_IOC_*.
 * @arg: its structure.
 *
 * Return: 0 or negative errno; the caller sets the error text.
 */
int krl_node_call(const struct krcore_node *node, unsigned long request, void *arg);

#endif /* KRL_NODE_H */
