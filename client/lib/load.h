/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for root, segments and directory, which proto/krp_load.h reads: used by
 * attaching (event-driven), by a look-up (polling) and by a walk.
 *
 * Locking: none; a load belongs to one thread.
 */
#ifndef KRL_LOAD_H
#define KRL_LOAD_H

#include "proto/krp_load.h"

/**
 * struct krl_map - A map and the memory behind it.
 * @map: the map, first; its @dir and @segments belong to this.
 * @records: hint of the root.
 */
struct krl_map {
	struct krp_map map;
	__u64 records;
};

/** krl_map_free() - Free a map. @map: map or NULL. */
void krl_map_free(struct krl_map *map);

/**
 * krl_load_start() - Begin a load.
 * @load: state to set up.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: of the server, from its messages.
 * @chunk_bytes: longest READ, at least sizeof(struct krp_root).
 * @old: map of the same incarnation, whose directory and segments are reused as far as they
 *	go, or NULL to read all. Must exist until the load ends.
 */
void krl_load_start(struct krp_load *load, __u64 root_addr, __u32 root_rkey, __u64 incarnation,
		    __u32 chunk_bytes, const struct krl_map *old);

/**
 * krl_load_feed() - Check the data of a READ, and allocate the memory that the load needs next.
 * @load: load.
 * @bytes: data of the READ that krp_load_next() asked for; never trusted.
 *
 * Return:
 * * 0 - go on.
 * * %-ESTALE, %-EPROTO - as krp_load_feed().
 * * %-ENOMEM - no memory.
 */
int krl_load_feed(struct krp_load *load, const void *bytes);

/** krl_load_take() - Take the complete map out. @load: complete load. Return: the map. */
struct krl_map *krl_load_take(struct krp_load *load);

/** krl_load_drop() - End a load at any point. @load: load. */
void krl_load_drop(struct krp_load *load);

#endif /* KRL_LOAD_H */
