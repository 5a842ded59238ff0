/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * READs of a whole table in batches, concurrent with look-ups: for a walk and for a dump.
 *
 * Locking: server.io is held for one batch of READs at a time, so that look-ups go on between
 * them. A struct krl_bulk belongs to one thread.
 */
#ifndef KRL_BULK_H
#define KRL_BULK_H

#include "client/lib/lib.h"

/**
 * struct krl_bulk - READs of one incarnation of a server.
 * @srv: server.
 * @incarnation: that incarnation; READs fail once the server has another.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @bytes: bytes READ so far.
 */
struct krl_bulk {
	struct krl_server *srv;
	uint64_t incarnation;
	uint64_t root_addr;
	uint32_t root_rkey;
	uint64_t bytes;
};

/**
 * krl_bulk_begin() - Prepare READs of the server's current incarnation.
 * @bulk: to set up.
 * @srv: server.
 *
 * Return: 0, or %-ENOTCONN if it is not attached.
 */
int krl_bulk_begin(struct krl_bulk *bulk, struct krl_server *srv);

/**
 * krl_bulk_read() - READ one batch.
 * @bulk: as krl_bulk_begin() left it.
 * @reads: READs, together at most KRL_BOUNCE_BYTES.
 * @nr: how many, at most KRL_WALK_PAGES.
 * @to: where the bytes go, end to end; need not be registered.
 *
 * Return: 0, or %-ENOTCONN if the server failed or has another incarnation.
 */
int krl_bulk_read(struct krl_bulk *bulk, const struct krp_read *reads, unsigned int nr, void *to);

/**
 * krl_bulk_map() - READ root, segments and directory again.
 * @bulk: as krl_bulk_begin() left it.
 * @buf: KRL_BOUNCE_BYTES of memory to read into.
 * @ret_map: the map, for krl_map_free().
 *
 * Return: 0, %-ENOTCONN, %-ENOMEM, or what krp_load_feed() says.
 */
int krl_bulk_map(struct krl_bulk *bulk, void *buf, struct krl_map **ret_map);

#endif /* KRL_BULK_H */
