/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: memory for root, segments and directory of a MetaServer's table as krp_load.h
 * reads them.
 * Locking: none; a load belongs to one thread, a map to its owner.
 */
#ifndef KRC_MAP_H
#define KRC_MAP_H

#include "krp_load.h"

#define KRC_META_DEPTH_MAX 20 /* 8 MiB of directory; deeper tables are looked up by message */

/**
 * krc_meta_map_free() - Free a map.
 * @map: map or NULL.
 *
 * Context: may sleep.
 */
void krc_meta_map_free(struct krp_map *map);

/**
 * krc_meta_load_feed() - Check what a READ returned, and allocate what the load needs next.
 * @load: begun with krp_load_start(); krc_meta_map_free(krp_load_take()) ends it.
 * @bytes: result of the READ that krp_load_next() asked for; untrusted.
 *
 * Context: may sleep.
 * Return:
 * * 0 - go on.
 * * %-ESTALE, %-EPROTO, %-E2BIG - as krp_load_feed().
 * * %-ENOMEM - no memory.
 */
int krc_meta_load_feed(struct krp_load *load, const void *bytes);

#endif /* KRC_MAP_H */
