/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: reading root, segments and directory of a MetaServer's table: which READ comes
 * next, and whether its bytes can be believed. Without transport, like krp_lookup.h.
 * Locking: none; a load belongs to one thread, a map to its owner.
 */
#ifndef KRC_META_LOAD_H
#define KRC_META_LOAD_H

#include "krp_lookup.h"

#define KRC_META_DEPTH_MAX 20 /* 8 MiB of directory; deeper tables are asked by message */

/**
 * struct krc_meta_load - A load under way.
 * @map: map being made; NULL once krc_meta_load_take() took it.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: life of the server that is expected.
 * @chunk_bytes: longest READ to ask for.
 * @stage: what is being read.
 * @at: first segment or directory entry not yet there.
 * @tries: READs that brought nothing.
 * @old: map to continue from, or NULL.
 */
struct krc_meta_load {
	struct krp_map *map;
	u64 root_addr;
	u32 root_rkey;
	u64 incarnation;
	u32 chunk_bytes;
	enum {
		KRC_LOAD_ROOT,
		KRC_LOAD_SEGMENTS,
		KRC_LOAD_DIR,
		KRC_LOAD_DONE
	} stage;
	u64 at;
	unsigned int tries;
	const struct krp_map *old;
};

/**
 * krc_meta_map_free() - Give a map back.
 * @map: map or NULL.
 *
 * Context: may sleep.
 */
void krc_meta_map_free(struct krp_map *map);

/**
 * krc_meta_load_start() - Begin.
 * @load: state to set up.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: life of the server, as its messages say.
 * @chunk_bytes: longest READ, at least sizeof(struct krp_root).
 * @old: map of the same incarnation whose directory and segments are used as far as
 *	they go, or NULL to read all. Must stay until the end; its directory entries
 *	may be repaired meanwhile.
 */
void krc_meta_load_start(struct krc_meta_load *load, u64 root_addr, u32 root_rkey, u64 incarnation,
			 u32 chunk_bytes, const struct krp_map *old);

/**
 * krc_meta_load_next() - What to READ next.
 * @load: load.
 * @ret_read: the READ.
 *
 * Return: true if @ret_read is to be done, false if the load is complete.
 */
bool krc_meta_load_next(const struct krc_meta_load *load, struct krp_read *ret_read);

/**
 * krc_meta_load_feed() - Judge what a READ brought.
 * @load: load.
 * @read: as krc_meta_load_next() asked.
 * @bytes: what came; never trusted.
 *
 * Context: may sleep.
 * Return:
 * * 0 - go on.
 * * %-ESTALE - another incarnation.
 * * %-EPROTO - it stays torn or contradicts itself.
 * * %-E2BIG - a directory deeper than KRC_META_DEPTH_MAX.
 * * %-ENOMEM - no memory.
 */
int krc_meta_load_feed(struct krc_meta_load *load, const struct krp_read *read, const void *bytes);

/**
 * krc_meta_load_take() - Take the complete map out.
 * @load: complete load.
 *
 * Return: the map, now the caller's.
 */
struct krp_map *krc_meta_load_take(struct krc_meta_load *load);

/**
 * krc_meta_load_drop() - End a load at any point.
 * @load: load.
 *
 * Context: may sleep.
 */
void krc_meta_load_drop(struct krc_meta_load *load);

#endif /* KRC_META_LOAD_H */
