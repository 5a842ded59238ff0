/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program's end of a completion ring: see CONTEXT and COMPLETION RING in
 * proto/krp_ioctl.h.
 *
 * No lock: any number of threads take completions at once. Each copies what is
 * there and then claims it by moving head; who loses that race starts again.
 * Head must not come back to the same value while an entry is copied, which
 * would take 2^32 completions.
 */
#ifndef KRL_RING_H
#define KRL_RING_H

#include <stddef.h>
#include <stdint.h>

#include "client/include/krcore/queue.h"
#include "proto/krp_ioctl.h"

/**
 * struct krl_ring - A mapped ring.
 * @shared: what program and module write.
 * @cqes: the entries.
 * @mask: their number - 1.
 */
struct krl_ring {
	struct krp_ring *shared;
	const struct krp_cqe *cqes;
	uint32_t mask;
};

/**
 * krl_ring_init() - Look at a mapping and see that it is a ring.
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
 * Return: how many, or -EPROTO if the counters make no sense.
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
