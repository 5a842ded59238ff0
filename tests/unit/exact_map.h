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

/**
 * exact_map_free() - Free a map.
 * @map: map of exact_map_new(), or NULL.
 */
static inline void exact_map_free(struct krp_map *map)
{
	if (!map)
		return;
	free(map->segments);
	free(map->dir);
	free(map);
}

/**
 * exact_map_new() - Make a map whose arrays are as long as a load of that size needs, not a byte
 * longer.
 * @segments_nr: segments.
 * @depth: depth of the directory, which has 2^@depth entries.
 *
 * Return: it, for exact_map_free(); NULL: no memory.
 */
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
