// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading root, segments and directory: see load.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/load.h"

#define KRL_LOAD_TRIES 64 /* a root is rewritten rarely: so many torn READs mean a fault */

void krl_map_free(struct krl_map *map)
{
	if (!map)
		return;
	free(map->map.dir);
	free(map->map.segments);
	free(map);
}

void krl_load_start(struct krl_load *load, __u64 root_addr, __u32 root_rkey, __u64 incarnation,
		    __u32 chunk_bytes, const struct krl_map *old)
{
	memset(load, 0, sizeof(*load));
	load->root_addr = root_addr;
	load->root_rkey = root_rkey;
	load->incarnation = incarnation;
	load->chunk_bytes = chunk_bytes;
	load->old = old;
	load->stage = KRL_LOAD_ROOT;
}

static __u32 krl_load_chunk(const struct krl_load *load, __u64 left, size_t size)
{
	__u64 most = load->chunk_bytes / size;

	return (__u32)((left < most ? left : most) * size);
}

int krl_load_next(struct krl_load *load, struct krp_read *ret_read)
{
	const struct krp_map *map;

	if (load->stage == KRL_LOAD_DONE)
		return 0;
	if (load->stage == KRL_LOAD_ROOT || !load->map) {
		ret_read->addr = load->root_addr;
		ret_read->rkey = load->root_rkey;
		ret_read->bytes = sizeof(struct krp_root);
		load->bytes += ret_read->bytes;
		return 1;
	}
	map = &load->map->map;
	if (load->stage == KRL_LOAD_SEGMENTS) {
		ret_read->addr = map->segments_addr + load->at * sizeof(struct krp_segment);
		ret_read->rkey = map->segments_rkey;
		ret_read->bytes = krl_load_chunk(load, map->segments_nr - load->at,
						 sizeof(struct krp_segment));
	} else {
		ret_read->addr = map->dir_addr + load->at * sizeof(struct krp_dir_entry);
		ret_read->rkey = map->dir_rkey;
		ret_read->bytes = krl_load_chunk(load, (1ULL << map->depth) - load->at,
						 sizeof(struct krp_dir_entry));
	}
	load->bytes += ret_read->bytes;
	return 1;
}

/* What the old map already has need not be READ again. */
static void krl_load_reuse(struct krl_load *load)
{
	const struct krp_map *old = &load->old->map;
	struct krp_map *map = &load->map->map;

	if (old->segments_addr == map->segments_addr && old->segments_nr <= map->segments_nr) {
		memcpy(map->segments, old->segments, old->segments_nr * sizeof(*map->segments));
		load->at = old->segments_nr;
	}
	if (old->depth <= map->depth)
		krp_dir_expand(map->dir, map->depth, old->dir, old->depth);
}

static void krl_load_advance(struct krl_load *load)
{
	const struct krp_map *map = &load->map->map;

	if (load->stage == KRL_LOAD_SEGMENTS && load->at == map->segments_nr) {
		load->at = 0;
		if (load->old && load->old->map.depth <= map->depth)
			load->stage = KRL_LOAD_DONE;
		else
			load->stage = KRL_LOAD_DIR;
	} else if (load->stage == KRL_LOAD_DIR && load->at == 1ULL << map->depth) {
		load->stage = KRL_LOAD_DONE;
	}
}

static int krl_load_root(struct krl_load *load, const struct krp_root *root)
{
	struct krl_map *map;

	if (!krp_root_valid(root))
		return ++load->tries < KRL_LOAD_TRIES ? 0 : -EPROTO;
	if (krp_le64_to_cpu(root->incarnation) != load->incarnation)
		return -ESTALE;

	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	krp_map_adopt(&map->map, root);
	map->records = krp_le64_to_cpu(root->records);
	map->map.segments = calloc(map->map.segments_nr, sizeof(*map->map.segments));
	map->map.dir = malloc(sizeof(*map->map.dir) << map->map.depth);
	if (!map->map.segments || !map->map.dir) {
		krl_map_free(map);
		return -ENOMEM;
	}
	krl_map_free(load->map);
	load->map = map;
	load->at = 0;
	load->stage = KRL_LOAD_SEGMENTS;
	if (load->old)
		krl_load_reuse(load);
	krl_load_advance(load);
	return 0;
}

static int krl_load_segments(struct krl_load *load, const struct krp_segment *segments, size_t nr)
{
	struct krp_map *map = &load->map->map;
	size_t i;

	for (i = 0; i < nr; i++) {
		__u32 check = krp_segment_check(&segments[i], (__u32)(load->at), map->incarnation);

		if (krp_le32_to_cpu(segments[i].check) != check || !segments[i].addr)
			break;
		map->segments[load->at++] = segments[i];
	}
	if (i < nr && ++load->tries >= KRL_LOAD_TRIES)
		return -EPROTO;
	krl_load_advance(load);
	return 0;
}

static int krl_load_dir(struct krl_load *load, const struct krp_dir_entry *entries, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (krp_dir_entry_moved(&entries[i])) {
			/* it doubled meanwhile: begin again from the root */
			load->stage = KRL_LOAD_ROOT;
			load->old = NULL;
			return ++load->tries < KRL_LOAD_TRIES ? 0 : -EPROTO;
		}
	memcpy(load->map->map.dir + load->at, entries, nr * sizeof(*entries));
	load->at += nr;
	krl_load_advance(load);
	return 0;
}

int krl_load_feed(struct krl_load *load, const struct krp_read *read, const void *bytes)
{
	switch (load->stage) {
	case KRL_LOAD_ROOT:
		return krl_load_root(load, bytes);
	case KRL_LOAD_SEGMENTS:
		return krl_load_segments(load, bytes, read->bytes / sizeof(struct krp_segment));
	case KRL_LOAD_DIR:
		return krl_load_dir(load, bytes, read->bytes / sizeof(struct krp_dir_entry));
	case KRL_LOAD_DONE:
		break;
	}
	return -EPROTO;
}

struct krl_map *krl_load_take(struct krl_load *load)
{
	struct krl_map *map = load->map;

	load->map = NULL;
	return map;
}

void krl_load_drop(struct krl_load *load)
{
	krl_map_free(load->map);
	load->map = NULL;
	load->stage = KRL_LOAD_DONE;
}
