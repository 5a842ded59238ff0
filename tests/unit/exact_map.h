/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for a copy of a server's directory, of just the size that was asked for: a
 * sanitizer sees what goes past it. Only the memory is made; what a load has to fill in
 * is left 0. No threads.
 */
#ifndef EXACT_MAP_H
#define EXACT_MAP_H

#include <stdlib.h>

#include "proto/krp_load.h"

static inline void exact_map_free(struct krp_map *map)
{
	if (!map)
		return;
	free(map->segments);
	free(map->dir);
	free(map);
}

/* NULL if there is no memory. */
static inline struct krp_map *exact_map_new(__u32 segments_nr, unsigned int depth)
{
	struct krp_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->segments = malloc(segments_nr * sizeof(*map->segments));
	map->dir = malloc(sizeof(*map->dir) << depth);
	if (map->segments && map->dir)
		return map;
	exact_map_free(map);
	return NULL;
}

#endif /* EXACT_MAP_H */
