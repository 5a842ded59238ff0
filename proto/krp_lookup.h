/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The reader's side of a look-up as a state machine without any transport.
 *
 * The caller owns memory and READs; this header decides what to READ next and
 * what the answer is. libkrcore, the kernel module, the torn-read stress and
 * the fuzzer drive the very same lines:
 *
 *	krp_lookup_start(&l, &map, &key);
 *	while ((step = krp_lookup_next(&l, &map, &read)) >= 0) {
 *		if (step == KRP_STEP_ROOT)
 *			refresh the map from the root, or fail
 *		else {
 *			READ read.bytes from read.addr/read.rkey into buf
 *			step = krp_lookup_feed(&l, &map, buf, &value);
 *			if (step == KRP_STEP_HIT || step == KRP_STEP_MISS)
 *				done
 *		}
 *	}
 *	-EAGAIN: out of READs, or READs cannot tell: ask the server by message
 *
 * In the common case that is one turn: one READ of 256 bytes.
 *
 * Locking: none here; a map must not be changed while another thread uses it.
 */
#ifndef KRP_LOOKUP_H
#define KRP_LOOKUP_H

#include "krp_table.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#define KRP_LOOKUP_READS_MAX 64 /* then the caller falls back to a message */
#define KRP_LOOKUP_ROOTS_MAX 4
#define KRP_LOOKUP_TORN_MAX 4 /* torn READs of one bucket before its entry is doubted */

/**
 * struct krp_map - A reader's copy of root, segments and directory.
 * @incarnation: of the server, host order like all numbers here.
 * @salt: seed of the hash of keys.
 * @dir_addr: remote address of the directory.
 * @segments_addr: remote address of the array of segments.
 * @dir_rkey: its remote key.
 * @segments_rkey: its remote key.
 * @segments_nr: entries of @segments.
 * @epoch: root.epoch of this copy.
 * @depth: log2 of the entries of @dir.
 * @log2_segment_pages: log2 of the pages of a segment.
 * @dir: 1 << @depth entries as they were READ; caller's memory.
 * @segments: @segments_nr entries whose check held; caller's memory.
 */
struct krp_map {
	__u64 incarnation;
	__u64 salt;
	__u64 dir_addr;
	__u64 segments_addr;
	__u32 dir_rkey;
	__u32 segments_rkey;
	__u32 segments_nr;
	__u32 epoch;
	__u8 depth;
	__u8 log2_segment_pages;
	struct krp_dir_entry *dir;
	struct krp_segment *segments;
};

/**
 * struct krp_read - A READ to be done.
 * @addr: remote address.
 * @rkey: remote key.
 * @bytes: length: KRP_BUCKET_BYTES or the 8 bytes of a directory entry.
 */
struct krp_read {
	__u64 addr;
	__u32 rkey;
	__u32 bytes;
};

/**
 * enum krp_step - What comes next.
 * @KRP_STEP_READ: do the READ and feed its bytes.
 * @KRP_STEP_ROOT: the map is old: READ the root, adopt it, go on.
 * @KRP_STEP_HIT: found.
 * @KRP_STEP_MISS: not in the table.
 */
enum krp_step {
	KRP_STEP_READ,
	KRP_STEP_ROOT,
	KRP_STEP_HIT,
	KRP_STEP_MISS,
};

/**
 * struct krp_lookup - One look-up in progress.
 * @key: key sought.
 * @hash: its hash.
 * @page: page of the READ in flight.
 * @index: bucket of the READ in flight.
 * @want_entry: the next READ is of the directory entry, not of a bucket.
 * @torn: torn READs in a row.
 * @roots: roots asked for.
 * @reads: READs asked for, over all.
 */
struct krp_lookup {
	struct krp_key key;
	__u64 hash;
	__u32 page;
	__u8 index;
	__u8 want_entry;
	__u8 torn;
	__u8 roots;
	__u32 reads;
};

/**
 * krp_map_adopt() - Take the fields of a root into a map.
 * @map: map; its @dir and @segments are the caller's to refill.
 * @root: a root for which krp_root_valid() held.
 *
 * Context: any.
 */
static inline void krp_map_adopt(struct krp_map *map, const struct krp_root *root)
{
	map->incarnation = krp_le64_to_cpu(root->incarnation);
	map->salt = krp_le64_to_cpu(root->salt);
	map->dir_addr = krp_le64_to_cpu(root->dir_addr);
	map->dir_rkey = krp_le32_to_cpu(root->dir_rkey);
	map->segments_nr = krp_le32_to_cpu(root->segments_nr);
	map->segments_addr = krp_le64_to_cpu(root->segments_addr);
	map->segments_rkey = krp_le32_to_cpu(root->segments_rkey);
	map->epoch = krp_le32_to_cpu(root->epoch);
	map->depth = root->depth;
	map->log2_segment_pages = root->log2_segment_pages;
}

/**
 * krp_dir_expand() - Fill a deeper directory from a shallower copy.
 * @to: 1 << @to_depth entries to fill.
 * @to_depth: not less than @from_depth.
 * @from: 1 << @from_depth entries.
 * @from_depth: depth of the copy.
 *
 * Entries that the server has changed since are repaired one by one when a
 * look-up meets them, so a doubling needs no bulk READ.
 *
 * Context: any.
 */
static inline void krp_dir_expand(struct krp_dir_entry *to, unsigned int to_depth,
				  const struct krp_dir_entry *from, unsigned int from_depth)
{
	__u64 i;

	for (i = 0; i < 1ULL << to_depth; i++)
		to[i] = from[i >> (to_depth - from_depth)];
}

/**
 * krp_dir_entry_moved() - Whether an entry belongs to a directory given up.
 * @e: the entry as READ.
 *
 * Context: any.
 * Return: 1 if the whole directory has moved, else 0.
 */
static inline int krp_dir_entry_moved(const struct krp_dir_entry *e)
{
	__u64 raw;

	memcpy(&raw, e, sizeof(raw));
	return raw == KRP_DIR_MOVED;
}

/**
 * krp_lookup_start() - Begin a look-up.
 * @l: state to set up.
 * @map: the reader's map.
 * @key: key sought; copied.
 *
 * Context: any.
 */
static inline void krp_lookup_start(struct krp_lookup *l, const struct krp_map *map,
				    const struct krp_key *key)
{
	memset(l, 0, sizeof(*l));
	l->key = *key;
	l->hash = krp_key_hash(key, map->salt);
}

/**
 * krp_lookup_next() - What to do next.
 * @l: look-up.
 * @map: the reader's map, of the depth its @dir really has.
 * @ret_read: the READ to do on KRP_STEP_READ; untouched otherwise.
 *
 * Context: any; takes no lock.
 * Return:
 * * KRP_STEP_READ - do @ret_read, then krp_lookup_feed().
 * * KRP_STEP_ROOT - refresh the map, then call again.
 * * %-EAGAIN - the table changes faster than this reader reads: ask by message.
 */
static inline int krp_lookup_next(struct krp_lookup *l, const struct krp_map *map,
				  struct krp_read *ret_read)
{
	__u32 slot = krp_hash_prefix(l->hash, map->depth);
	const struct krp_dir_entry *e = &map->dir[slot];
	const struct krp_segment *seg;
	__u32 page = krp_le32_to_cpu(e->page);
	__u32 nr = page >> map->log2_segment_pages;

	if (l->reads >= KRP_LOOKUP_READS_MAX)
		return -EAGAIN;

	if (!l->want_entry && krp_dir_entry_moved(e))
		l->want_entry = 1;
	if (l->want_entry) {
		l->reads++;
		ret_read->addr = map->dir_addr + (__u64)slot * sizeof(*e);
		ret_read->rkey = map->dir_rkey;
		ret_read->bytes = sizeof(*e);
		return KRP_STEP_READ;
	}
	if (nr >= map->segments_nr) {
		/* a segment newer than the map, or a torn entry: the next turn tells */
		if (l->roots >= KRP_LOOKUP_ROOTS_MAX)
			return -EAGAIN;
		l->roots++;
		l->want_entry = 1;
		return KRP_STEP_ROOT;
	}

	seg = &map->segments[nr];
	l->page = page;
	l->index = (__u8)krp_bucket_index(l->hash, krp_le16_to_cpu(e->seed));
	l->reads++;
	page &= (1U << map->log2_segment_pages) - 1;
	ret_read->addr = krp_le64_to_cpu(seg->addr) + (__u64)page * KRP_PAGE_BYTES +
			 (__u64)l->index * KRP_BUCKET_BYTES;
	ret_read->rkey = krp_le32_to_cpu(seg->rkey);
	ret_read->bytes = KRP_BUCKET_BYTES;
	return KRP_STEP_READ;
}

/**
 * krp_lookup_feed() - Judge the bytes a READ brought.
 * @l: look-up whose krp_lookup_next() asked for the READ.
 * @map: the reader's map; its entry for the key is repaired here.
 * @bytes: what the READ brought; never trusted.
 * @ret_value: the value on KRP_STEP_HIT; untouched otherwise. May be NULL.
 *
 * Context: any; takes no lock.
 * Return:
 * * KRP_STEP_HIT or KRP_STEP_MISS - the answer.
 * * KRP_STEP_READ - call krp_lookup_next() again.
 * * KRP_STEP_ROOT - refresh the map first.
 * * %-EAGAIN - as krp_lookup_next(), or the key may be kept aside (KRP_ASIDE): ask by
 *   message, and believe its answer only.
 */
static inline int krp_lookup_feed(struct krp_lookup *l, struct krp_map *map, const void *bytes,
				  struct krp_value *ret_value)
{
	const struct krp_bucket *b = (const struct krp_bucket *)bytes;
	const struct krp_dir_entry *e = (const struct krp_dir_entry *)bytes;

	if (l->want_entry) {
		l->want_entry = 0;
		l->torn = 0;
		if (!krp_dir_entry_moved(e)) {
			map->dir[krp_hash_prefix(l->hash, map->depth)] = *e;
			return KRP_STEP_READ;
		}
		if (l->roots >= KRP_LOOKUP_ROOTS_MAX)
			return -EAGAIN;
		l->roots++;
		l->want_entry = 1;
		return KRP_STEP_ROOT;
	}

	switch (krp_bucket_verdict(b, map->incarnation, l->page, l->index, l->hash, &l->key,
				   ret_value)) {
	case KRP_HIT:
		return KRP_STEP_HIT;
	case KRP_MISS:
		return KRP_STEP_MISS;
	case KRP_TORN:
		if (++l->torn < KRP_LOOKUP_TORN_MAX)
			return KRP_STEP_READ;
		break;
	case KRP_STALE:
		break;
	case KRP_ASIDE:
		return -EAGAIN;
	}
	l->want_entry = 1;
	return KRP_STEP_READ;
}

#endif /* KRP_LOOKUP_H */
