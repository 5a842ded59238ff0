// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the judgement of root, segments and directory, see krc_meta_load.h.
 * Locking: none.
 *
 * A refresh of a map READs only the root and new segments: a deeper directory is made
 * of the shallower copy, and look-ups repair its entries as they meet them.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "krc_meta_load.h"

#define KRC_LOAD_TRIES 64 /* a root is rewritten rarely: so many torn READs mean a fault */

void krc_meta_map_free(struct krp_map *map)
{
	if (!map)
		return;
	kvfree(map->dir);
	kvfree(map->segments);
	kfree(map);
}

void krc_meta_load_start(struct krc_meta_load *load, u64 root_addr, u32 root_rkey, u64 incarnation,
			 u32 chunk_bytes, const struct krp_map *old)
{
	memset(load, 0, sizeof(*load));
	load->root_addr = root_addr;
	load->root_rkey = root_rkey;
	load->incarnation = incarnation;
	load->chunk_bytes = chunk_bytes;
	load->old = old;
	load->stage = KRC_LOAD_ROOT;
}

static u32 krc_load_chunk(const struct krc_meta_load *load, u64 left, size_t size)
{
	u64 most = load->chunk_bytes / size;

	return (u32)(min(left, most) * size);
}

bool krc_meta_load_next(const struct krc_meta_load *load, struct krp_read *ret_read)
{
	const struct krp_map *map = load->map;

	switch (load->stage) {
	case KRC_LOAD_ROOT:
		ret_read->addr = load->root_addr;
		ret_read->rkey = load->root_rkey;
		ret_read->bytes = sizeof(struct krp_root);
		return true;
	case KRC_LOAD_SEGMENTS:
		ret_read->addr = map->segments_addr + load->at * sizeof(struct krp_segment);
		ret_read->rkey = map->segments_rkey;
		ret_read->bytes = krc_load_chunk(load, map->segments_nr - load->at,
						 sizeof(struct krp_segment));
		return true;
	case KRC_LOAD_DIR:
		ret_read->addr = map->dir_addr + load->at * sizeof(struct krp_dir_entry);
		ret_read->rkey = map->dir_rkey;
		ret_read->bytes = krc_load_chunk(load, (1ULL << map->depth) - load->at,
						 sizeof(struct krp_dir_entry));
		return true;
	case KRC_LOAD_DONE:
		break;
	}
	return false;
}

/* What the old map already has need not be READ again. */
static void krc_load_reuse(struct krc_meta_load *load)
{
	const struct krp_map *old = load->old;
	struct krp_map *map = load->map;

	if (old->segments_addr == map->segments_addr && old->segments_nr <= map->segments_nr) {
		memcpy(map->segments, old->segments, old->segments_nr * sizeof(*map->segments));
		load->at = old->segments_nr;
	}
	if (old->depth <= map->depth)
		krp_dir_expand(map->dir, map->depth, old->dir, old->depth);
}

static void krc_load_advance(struct krc_meta_load *load)
{
	const struct krp_map *map = load->map;

	if (load->stage == KRC_LOAD_SEGMENTS && load->at == map->segments_nr) {
		load->at = 0;
		if (load->old && load->old->depth <= map->depth)
			load->stage = KRC_LOAD_DONE;
		else
			load->stage = KRC_LOAD_DIR;
	} else if (load->stage == KRC_LOAD_DIR && load->at == 1ULL << map->depth) {
		load->stage = KRC_LOAD_DONE;
	}
}

static int krc_load_root(struct krc_meta_load *load, const struct krp_root *root)
{
	struct krp_map *map;

	if (!krp_root_valid(root))
		return ++load->tries < KRC_LOAD_TRIES ? 0 : -EPROTO;
	if (krp_le64_to_cpu(root->incarnation) != load->incarnation)
		return -ESTALE;
	if (root->depth > KRC_META_DEPTH_MAX)
		return -E2BIG;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	krp_map_adopt(map, root);
	map->segments = kvcalloc(map->segments_nr, sizeof(*map->segments), GFP_KERNEL);
	map->dir = kvcalloc(1UL << map->depth, sizeof(*map->dir), GFP_KERNEL);
	if (!map->segments || !map->dir) {
		krc_meta_map_free(map);
		return -ENOMEM;
	}
	krc_meta_map_free(load->map);
	load->map = map;
	load->at = 0;
	load->stage = KRC_LOAD_SEGMENTS;
	if (load->old)
		krc_load_reuse(load);
	krc_load_advance(load);
	return 0;
}

static int krc_load_segments(struct krc_meta_load *load, const struct krp_segment *segments,
			     size_t nr)
{
	struct krp_map *map = load->map;
	size_t i;

	for (i = 0; i < nr; i++) {
		u32 check = krp_segment_check(&segments[i], (u32)load->at, map->incarnation);

		if (krp_le32_to_cpu(segments[i].check) != check || !segments[i].addr)
			break;
		map->segments[load->at++] = segments[i];
	}
	if (i < nr && ++load->tries >= KRC_LOAD_TRIES)
		return -EPROTO;
	krc_load_advance(load);
	return 0;
}

static int krc_load_dir(struct krc_meta_load *load, const struct krp_dir_entry *entries, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (krp_dir_entry_moved(&entries[i])) {
			/* it doubled meanwhile: begin again from the root */
			load->stage = KRC_LOAD_ROOT;
			load->old = NULL;
			return ++load->tries < KRC_LOAD_TRIES ? 0 : -EPROTO;
		}
	memcpy(load->map->dir + load->at, entries, nr * sizeof(*entries));
	load->at += nr;
	krc_load_advance(load);
	return 0;
}

int krc_meta_load_feed(struct krc_meta_load *load, const struct krp_read *read, const void *bytes)
{
	switch (load->stage) {
	case KRC_LOAD_ROOT:
		return krc_load_root(load, bytes);
	case KRC_LOAD_SEGMENTS:
		return krc_load_segments(load, bytes, read->bytes / sizeof(struct krp_segment));
	case KRC_LOAD_DIR:
		return krc_load_dir(load, bytes, read->bytes / sizeof(struct krp_dir_entry));
	case KRC_LOAD_DONE:
		break;
	}
	return -EPROTO;
}

struct krp_map *krc_meta_load_take(struct krc_meta_load *load)
{
	struct krp_map *map = load->map;

	load->map = NULL;
	return map;
}

void krc_meta_load_drop(struct krc_meta_load *load)
{
	krc_meta_map_free(load->map);
	load->map = NULL;
	load->stage = KRC_LOAD_DONE;
}
