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
 * @map: what is mapped of it.
 * @map_bytes: how much.
 * @ring: the ring in there.
 */
struct krcore_node {
	int fd;
	void *map;
	size_t map_bytes;
	struct krl_ring ring;
};

/**
 * krl_node_call() - A system call on the device.
 * @node: node.
 * @request: KRP_IOC_*.
 * @arg: its structure.
 *
 * Return: 0 or negative errno; the text of the error is the caller's.
 */
int krl_node_call(const struct krcore_node *node, unsigned long request, void *arg);

#endif /* KRL_NODE_H */
