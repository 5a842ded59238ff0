/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * A reader's first and later copies of root, segments and directory, as a
 * state machine without any transport. Normative.
 *
 * The caller owns memory and READs, as in krp_lookup.h; this header decides
 * what to READ next, what of it can be believed, and how much memory the copy
 * takes. libkrcore, the kernel module, the unit tests, KUnit and the fuzzer
 * drive the very same lines:
 *
 *	krp_load_start(&load, root_addr, root_rkey, incarnation, chunk, depth_max, old);
 *	while (krp_load_next(&load, &read)) {
 *		READ read.bytes from read.addr/read.rkey into buf
 *		step = krp_load_feed(&load, buf);
 *		if (step < 0)
 *			fail
 *		if (step == KRP_LOAD_MEMORY)
 *			make a map for load.want, give it with krp_load_give()
 *	}
 *	map = krp_load_take(&load);
 *
 * WHAT A READER MUST CHECK
 *   root       krp_root_valid(), the incarnation that the server's messages
 *              carry, and a depth the reader has memory for. A root that is not
 *              valid is torn: READ it again.
 *   segment    its check word and an address that is not 0. One that fails is
 *              torn or not there yet: READ on from it again. No READ may go to
 *              an address that a failed check gave.
 *   directory  no entry is KRP_DIR_MOVED. Otherwise the directory has doubled
 *              meanwhile: begin again from the root. What else an entry says,
 *              its pad included, is a hint which look-ups verify.
 *   Torn and moved READs are counted together; KRP_LOAD_TRIES of them end the
 *   load, since each is rare.
 *
 * GOING ON FROM AN OLDER COPY
 *   Segments are only ever appended, and a directory only ever doubles in one
 *   incarnation of a server. So a copy of the same incarnation saves reading again the
 *   segments it has, and the whole directory: a deeper one is made of the
 *   shallower copy, and look-ups repair its entries as they meet them.
 *
 * Locking: none here; a load belongs to one thread. Entries of the directory of
 * the older copy may be repaired meanwhile.
 */
#ifndef KRP_LOAD_H
#define KRP_LOAD_H

#include "krp_lookup.h"

#define KRP_LOAD_TRIES 64 /* READs that bring nothing before the server is given up */
#define KRP_LOAD_MEMORY 1 /* krp_load_feed(): krp_load_give() comes next */

/**
 * enum krp_load_stage - What is being read.
 * @KRP_LOAD_ROOT: the root; also until memory for what it says is given.
 * @KRP_LOAD_SEGMENTS: segments.
 * @KRP_LOAD_DIR: the directory.
 * @KRP_LOAD_DONE: nothing more.
 */
enum krp_load_stage {
	KRP_LOAD_ROOT,
	KRP_LOAD_SEGMENTS,
	KRP_LOAD_DIR,
	KRP_LOAD_DONE,
};

/**
 * struct krp_load - A load in progress.
 * @want: what the last valid root said; its @dir and @segments are NULL.
 * @records: hint of that root: records in the table.
 * @heartbeat: of that root, for krp_pulse_start().
 * @map: map being filled, memory of the caller, or NULL.
 * @old: map to go on from, or NULL.
 * @root_addr: where the root is.
 * @incarnation: of the server, as it is expected, host order.
 * @at: first segment or directory entry that is not there yet.
 * @bytes: bytes fed so far.
 * @root_rkey: remote key of the root.
 * @chunk_bytes: longest READ to ask for.
 * @tries: READs that brought nothing.
 * @depth_max: deepest directory the reader has memory for.
 * @stage: what is being read.
 */
struct krp_load {
	struct krp_map want;
	__u64 records;
	__u64 heartbeat;
	struct krp_map *map;
	const struct krp_map *old;
	__u64 root_addr;
	__u64 incarnation;
	__u64 at;
	__u64 bytes;
	__u32 root_rkey;
	__u32 chunk_bytes;
	__u32 tries;
	__u32 depth_max;
	enum krp_load_stage stage;
};

/**
 * krp_load_start() - Begin.
 * @load: state to set up; what it held is forgotten, not given back.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: of the server, as its messages say, host order.
 * @chunk_bytes: longest READ to ask for, at least sizeof(struct krp_root).
 * @depth_max: deepest directory to accept, 0 to KRP_DEPTH_MAX.
 * @old: map to go on from, or NULL to read all; one of another incarnation is
 *	not used. Must stay until the load ends.
 *
 * Context: any.
 */
static inline void krp_load_start(struct krp_load *load, __u64 root_addr, __u32 root_rkey,
				  __u64 incarnation, __u32 chunk_bytes, __u32 depth_max,
				  const struct krp_map *old)
{
	memset(load, 0, sizeof(*load));
	load->root_addr = root_addr;
	load->root_rkey = root_rkey;
	load->incarnation = incarnation;
	load->chunk_bytes = chunk_bytes;
	load->depth_max = depth_max;
	load->old = old && old->incarnation == incarnation ? old : NULL;
	load->stage = KRP_LOAD_ROOT;
}

/**
 * krp_load_chunk() - How many entries one READ brings.
 * @load: load.
 * @left: entries that are missing.
 * @size: bytes of one.
 *
 * Context: any.
 * Return: at most @left, and no more than fit in chunk_bytes.
 */
static inline __u32 krp_load_chunk(const struct krp_load *load, __u64 left, size_t size)
{
	__u64 most = load->chunk_bytes / size;

	return (__u32)(left < most ? left : most);
}

/**
 * krp_load_entries() - How many segments or directory entries the READ in flight brings.
 * @load: load in one of these two stages.
 *
 * Context: any.
 * Return: at least 1.
 */
static inline __u32 krp_load_entries(const struct krp_load *load)
{
	if (load->stage == KRP_LOAD_SEGMENTS)
		return krp_load_chunk(load, load->map->segments_nr - load->at,
				      sizeof(struct krp_segment));
	return krp_load_chunk(load, (1ULL << load->map->depth) - load->at,
			      sizeof(struct krp_dir_entry));
}

/**
 * krp_load_next() - What to READ next.
 * @load: load.
 * @ret_read: the READ, of 1 to chunk_bytes bytes; untouched on 0.
 *
 * Asked twice, it says the same twice.
 *
 * Context: any.
 * Return: 1 if @ret_read is to be done, 0 if the load is complete.
 */
static inline int krp_load_next(const struct krp_load *load, struct krp_read *ret_read)
{
	const struct krp_map *map = load->map;

	switch (load->stage) {
	case KRP_LOAD_ROOT:
		ret_read->addr = load->root_addr;
		ret_read->rkey = load->root_rkey;
		ret_read->bytes = sizeof(struct krp_root);
		return 1;
	case KRP_LOAD_SEGMENTS:
		ret_read->addr = map->segments_addr + load->at * sizeof(struct krp_segment);
		ret_read->rkey = map->segments_rkey;
		ret_read->bytes = krp_load_entries(load) * (__u32)sizeof(struct krp_segment);
		return 1;
	case KRP_LOAD_DIR:
		ret_read->addr = map->dir_addr + load->at * sizeof(struct krp_dir_entry);
		ret_read->rkey = map->dir_rkey;
		ret_read->bytes = krp_load_entries(load) * (__u32)sizeof(struct krp_dir_entry);
		return 1;
	case KRP_LOAD_DONE:
		break;
	}
	return 0;
}

/**
 * krp_load_again() - What was READ brought nothing.
 * @load: load.
 *
 * Context: any.
 * Return: 0 to READ again, or %-EPROTO if that was done too often.
 */
static inline int krp_load_again(struct krp_load *load)
{
	return ++load->tries < KRP_LOAD_TRIES ? 0 : -EPROTO;
}

/**
 * krp_load_has_dir() - Whether the directory can be made of the older copy's.
 * @load: load with a map.
 *
 * Context: any.
 * Return: 1 if it needs no READ, else 0.
 */
static inline int krp_load_has_dir(const struct krp_load *load)
{
	return load->old && load->old->depth <= load->map->depth;
}

/**
 * krp_load_advance() - Go to the next stage if the present one has brought all.
 * @load: load with a map.
 *
 * Context: any.
 */
static inline void krp_load_advance(struct krp_load *load)
{
	const struct krp_map *map = load->map;

	if (load->stage == KRP_LOAD_SEGMENTS && load->at == map->segments_nr) {
		load->at = 0;
		load->stage = krp_load_has_dir(load) ? KRP_LOAD_DONE : KRP_LOAD_DIR;
	} else if (load->stage == KRP_LOAD_DIR && load->at == 1ULL << map->depth) {
		load->stage = KRP_LOAD_DONE;
	}
}

/**
 * krp_load_root() - krp_load_feed() for a root.
 * @load: load.
 * @root: what came; never trusted.
 *
 * Context: any.
 * Return: as krp_load_feed().
 */
static inline int krp_load_root(struct krp_load *load, const struct krp_root *root)
{
	if (!krp_root_valid(root))
		return krp_load_again(load);
	if (krp_le64_to_cpu(root->incarnation) != load->incarnation)
		return -ESTALE;
	if (root->depth > load->depth_max)
		return -E2BIG;
	krp_map_adopt(&load->want, root);
	load->records = krp_le64_to_cpu(root->records);
	load->heartbeat = krp_le64_to_cpu(root->heartbeat);
	return KRP_LOAD_MEMORY;
}

/**
 * krp_load_segments() - krp_load_feed() for segments.
 * @load: load.
 * @segments: what came; never trusted.
 * @nr: how many, as krp_load_entries().
 *
 * Context: any.
 * Return: 0 or %-EPROTO.
 */
static inline int krp_load_segments(struct krp_load *load, const struct krp_segment *segments,
				    __u32 nr)
{
	struct krp_map *map = load->map;
	__u32 i;

	for (i = 0; i < nr; i++) {
		__u32 check = krp_segment_check(&segments[i], (__u32)load->at, map->incarnation);

		if (krp_le32_to_cpu(segments[i].check) != check || !segments[i].addr)
			return krp_load_again(load);
		map->segments[load->at++] = segments[i];
	}
	krp_load_advance(load);
	return 0;
}

/**
 * krp_load_dir() - krp_load_feed() for entries of the directory.
 * @load: load.
 * @entries: what came; never trusted.
 * @nr: how many, as krp_load_entries().
 *
 * Context: any.
 * Return: 0 or %-EPROTO.
 */
static inline int krp_load_dir(struct krp_load *load, const struct krp_dir_entry *entries, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		if (krp_dir_entry_moved(&entries[i])) {
			load->stage = KRP_LOAD_ROOT;
			load->old = NULL;
			return krp_load_again(load);
		}
	memcpy(load->map->dir + load->at, entries, nr * sizeof(*entries));
	load->at += nr;
	krp_load_advance(load);
	return 0;
}

/**
 * krp_load_feed() - Judge what a READ brought.
 * @load: load whose krp_load_next() asked for the READ.
 * @bytes: as many bytes as it asked for; never trusted.
 *
 * Context: any; takes no lock, does not sleep.
 * Return:
 * * 0 - go on.
 * * KRP_LOAD_MEMORY - go on after krp_load_give() with a map for load->want.
 * * %-ESTALE - another incarnation.
 * * %-EPROTO - it stays torn or contradicts itself, or the load is complete.
 * * %-E2BIG - a directory deeper than the reader has memory for.
 */
static inline int krp_load_feed(struct krp_load *load, const void *bytes)
{
	struct krp_read read;

	if (!krp_load_next(load, &read))
		return -EPROTO;
	load->bytes += read.bytes;
	switch (load->stage) {
	case KRP_LOAD_ROOT:
		return krp_load_root(load, (const struct krp_root *)bytes);
	case KRP_LOAD_SEGMENTS:
		return krp_load_segments(load, (const struct krp_segment *)bytes,
					 krp_load_entries(load));
	case KRP_LOAD_DIR:
		return krp_load_dir(load, (const struct krp_dir_entry *)bytes,
				    krp_load_entries(load));
	case KRP_LOAD_DONE:
		break;
	}
	return -EPROTO;
}

/**
 * krp_load_give() - Give the memory that krp_load_feed() asked for.
 * @load: load whose krp_load_feed() said KRP_LOAD_MEMORY.
 * @map: map with room for 1 << load->want.depth entries at its @dir and
 *	load->want.segments_nr at its @segments; all else is filled in here.
 *
 * Context: any; takes no lock.
 * Return: the map given before, now the caller's to free, or NULL.
 */
static inline struct krp_map *krp_load_give(struct krp_load *load, struct krp_map *map)
{
	struct krp_map *before = load->map;
	const struct krp_map *old = load->old;
	struct krp_dir_entry *dir = map->dir;
	struct krp_segment *segments = map->segments;

	*map = load->want;
	map->dir = dir;
	map->segments = segments;
	load->map = map;
	load->at = 0;
	load->stage = KRP_LOAD_SEGMENTS;
	if (old && old->segments_addr == map->segments_addr &&
	    old->segments_nr <= map->segments_nr) {
		memcpy(segments, old->segments, old->segments_nr * sizeof(*segments));
		load->at = old->segments_nr;
	}
	if (old && krp_load_has_dir(load))
		krp_dir_expand(dir, map->depth, old->dir, old->depth);
	krp_load_advance(load);
	return before;
}

/**
 * krp_load_take() - Take the map out and end the load, at any point of it.
 * @load: load; it asks for nothing after this.
 *
 * Context: any.
 * Return: the map, the caller's; complete if krp_load_next() has returned 0. NULL
 *	if none was given.
 */
static inline struct krp_map *krp_load_take(struct krp_load *load)
{
	struct krp_map *map = load->map;

	load->map = NULL;
	load->stage = KRP_LOAD_DONE;
	return map;
}

#endif /* KRP_LOAD_H */
