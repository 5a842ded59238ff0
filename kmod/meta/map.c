// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the memory of maps, see meta/map.h.
 * Locking: none.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "meta/map.h"

void krc_meta_map_free(struct krp_map *map)
{
	if (!map)
		return;
	kvfree(map->dir);
	kvfree(map->segments);
	kfree(map);
}

static struct krp_map *krc_meta_map_alloc(const struct krp_map *want)
{
	struct krp_map *map = kzalloc(sizeof(*map), GFP_KERNEL);

	if (!map)
		return NULL;
	map->segments = kvcalloc(want->segments_nr, sizeof(*map->segments), GFP_KERNEL);
	map->dir = kvcalloc(1UL << want->depth, sizeof(*map->dir), GFP_KERNEL);
	if (map->segments && map->dir)
		return map;
	krc_meta_map_free(map);
	return NULL;
}

int krc_meta_load_feed(struct krp_load *load, const void *bytes)
{
	struct krp_map *map;
	int step;

	step = krp_load_feed(load, bytes);
	if (step != KRP_LOAD_MEMORY)
		return step;
	map = krc_meta_map_alloc(&load->want);
	if (!map)
		return -ENOMEM;
	krc_meta_map_free(krp_load_give(load, map));
	return 0;
}
