/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading root, segments and directory: which READ comes next, and whether its
 * bytes can be believed. Without any transport, like proto/krp_lookup.h, so
 * that attaching (event-driven), a look-up (polling), a walk and the unit test
 * drive the same lines.
 *
 * Locking: none; a load belongs to one thread.
 */
#ifndef KRL_LOAD_H
#define KRL_LOAD_H

#include "proto/krp_lookup.h"

/**
 * struct krl_map - A map and the memory behind it.
 * @map: the map; its @dir and @segments belong to this.
 * @records: hint of the root.
 */
struct krl_map {
	struct krp_map map;
	__u64 records;
};

/**
 * struct krl_load - A load under way.
 * @map: map being made; NULL once krl_load_take() took it.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: life of the server that is expected.
 * @chunk_bytes: longest READ to ask for.
 * @stage: what is being read.
 * @at: first segment or directory entry not yet there.
 * @tries: READs that brought nothing.
 * @old: map to continue from, or NULL.
 * @bytes: bytes asked for so far.
 */
struct krl_load {
	struct krl_map *map;
	__u64 root_addr;
	__u32 root_rkey;
	__u64 incarnation;
	__u32 chunk_bytes;
	enum {
		KRL_LOAD_ROOT,
		KRL_LOAD_SEGMENTS,
		KRL_LOAD_DIR,
		KRL_LOAD_DONE
	} stage;
	__u64 at;
	unsigned int tries;
	const struct krl_map *old;
	__u64 bytes;
};

/** krl_map_free() - Give a map back. @map: map or NULL. */
void krl_map_free(struct krl_map *map);

/**
 * krl_load_start() - Begin.
 * @load: state to set up.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: life of the server, as its messages say.
 * @chunk_bytes: longest READ, at least sizeof(struct krp_root).
 * @old: map of the same incarnation whose directory and segments can be used
 *	as far as they go, or NULL to read all. Must stay until the end.
 */
void krl_load_start(struct krl_load *load, __u64 root_addr, __u32 root_rkey, __u64 incarnation,
		    __u32 chunk_bytes, const struct krl_map *old);

/**
 * krl_load_next() - What to READ next.
 * @load: load.
 * @ret_read: the READ.
 *
 * Return: 1 if @ret_read is to be done, 0 if the load is complete.
 */
int krl_load_next(struct krl_load *load, struct krp_read *ret_read);

/**
 * krl_load_feed() - Judge what a READ brought.
 * @load: load.
 * @read: as krl_load_next() asked.
 * @bytes: what came; never trusted.
 *
 * Return:
 * * 0 - go on.
 * * %-ESTALE - another incarnation.
 * * %-EPROTO - it stays torn or contradicts itself.
 * * %-ENOMEM - no memory.
 */
int krl_load_feed(struct krl_load *load, const struct krp_read *read, const void *bytes);

/** krl_load_take() - Take the complete map out. @load: complete load. Return: the map. */
struct krl_map *krl_load_take(struct krl_load *load);

/** krl_load_drop() - End a load at any point. @load: load. */
void krl_load_drop(struct krl_load *load);

#endif /* KRL_LOAD_H */
