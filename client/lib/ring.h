/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The consumer side of a completion ring: see CONTEXT and COMPLETION RING in
 * proto/krp_ioctl.h.
 *
 * No lock: any number of threads take completions at once. Each thread copies the
 * entries and then claims them by a compare-and-swap of head; a thread that loses
 * that race starts again. Head must not return to the same value while an entry is
 * copied (ABA), which would take 2^32 completions.
 */
#ifndef KRL_RING_H
#define KRL_RING_H

#include <stddef.h>
#include <stdint.h>

#include "client/include/krcore/queue.h"
#include "proto/krp_ioctl.h"

/**
 * struct krl_ring - A mapped ring.
 * @shared: the counters, written by program and module.
 * @cqes: the entries.
 * @mask: their number - 1.
 */
struct krl_ring {
	struct krp_ring *shared;
	const struct krp_cqe *cqes;
	uint32_t mask;
};

/**
 * krl_ring_init() - Check a mapping and set the ring up.
 * @ring: filled; untouched on failure.
 * @map: the mapping.
 * @map_bytes: its size.
 * @entries: entries that were asked for.
 *
 * Return: 0, or -EPROTO.
 */
int krl_ring_init(struct krl_ring *ring, void *map, size_t map_bytes, uint32_t entries);

/**
 * krl_ring_take() - Take completions.
 * @ring: ring.
 * @wcs: array to fill.
 * @nr: its length.
 *
 * Return: how many, or -EPROTO if the counters are inconsistent.
 */
int krl_ring_take(const struct krl_ring *ring, struct krcore_wc *wcs, uint32_t nr);

/**
 * krl_ring_ready() - Whether there is a completion.
 * @ring: ring.
 *
 * Return: 1 or 0.
 */
int krl_ring_ready(const struct krl_ring *ring);

#endif /* KRL_RING_H */
