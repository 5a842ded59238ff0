/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: diagnostics of the connections of clients in the kernel.
 */
#ifndef KRC_API_SHOW_H
#define KRC_API_SHOW_H

#include <linux/types.h>

#include "krcore/kernel.h"
#include "krp_ioctl_message.h"
#include "message/connect.h"

/**
 * struct krc_conn_info - One connection of a client in the kernel, for diagnostics.
 * @client: number of its client, from 1, never used again.
 * @name: name of that.
 * @depth: messages and READs that may be under way.
 * @where: what carries its messages.
 * @how: as KRP_IOC_CONN_QUERY tells of those of programs; its backlog also has the letters that the
 *	client keeps.
 */
struct krc_conn_info {
	u64 client;
	char name[KRCORE_NAME_BYTES];
	u32 depth;
	struct krc_stream_where where;
	struct krp_conn_query how;
};

/**
 * struct krc_conn_at - Where a walk of connections goes on; zero: at the first one.
 * @client: number of a client.
 * @conn: number of a connection of that.
 */
struct krc_conn_at {
	u64 client;
	u32 conn;
};

/**
 * krc_conn_walk() - Show the connections of all clients, in the order of their clients and numbers.
 * @at: in: the first one; out: that which @fn refused, for the next walk, or behind the last one.
 * @fn: called with a copy of each, with a spinlock held: must not sleep; non-zero ends the walk.
 * @arg: for @fn.
 *
 * Clients that open and close wait meanwhile. Context: may sleep.
 */
void krc_conn_walk(struct krc_conn_at *at, int (*fn)(const struct krc_conn_info *info, void *arg),
		   void *arg);

#endif /* KRC_API_SHOW_H */
