// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory of maps: see load.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/lib/load.h"

KRP_STATIC_ASSERT(offsetof(struct krl_map, map) == 0, "a krp_map of a load is a krl_map");

void krl_map_free(struct krl_map *map)
{
	if (!map)
		return;
	free(map->map.dir);
	free(map->map.segments);
	free(map);
}

void krl_load_start(struct krp_load *load, __u64 root_addr, __u32 root_rkey, __u64 incarnation,
		    __u32 chunk_bytes, const struct krl_map *old)
{
	krp_load_start(load, root_addr, root_rkey, incarnation, chunk_bytes, KRP_DEPTH_MAX,
		       old ? &old->map : NULL);
}

static struct krl_map *krl_map_alloc(const struct krp_map *want)
{
	struct krl_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->map.segments = calloc(want->segments_nr, sizeof(*map->map.segments));
	map->map.dir = malloc(sizeof(*map->map.dir) << want->depth);
	if (map->map.segments && map->map.dir)
		return map;
	krl_map_free(map);
	return NULL;
}

int krl_load_feed(struct krp_load *load, const void *bytes)
{
	struct krl_map *map;
	int step;

	step = krp_load_feed(load, bytes);
	if (step != KRP_LOAD_MEMORY)
		return step;
	map = krl_map_alloc(&load->want);
	if (!map)
		return -ENOMEM;
	map->records = load->records;
	krl_map_free((struct krl_map *)krp_load_give(load, &map->map));
	return 0;
}

struct krl_map *krl_load_take(struct krp_load *load)
{
	return (struct krl_map *)krp_load_take(load);
}

void krl_load_drop(struct krp_load *load)
{
	krl_map_free(krl_load_take(load));
}
