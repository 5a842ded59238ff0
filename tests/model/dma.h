/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: access of the device to guest memory, and rings: queues whose memory
 * is given as a list of pages with an offset into the first.
 */
#ifndef CX_DMA_H
#define CX_DMA_H

#include "types.h"

struct cx_ring {
	u64 *page;
	u32 nr_pages;
	u32 page_shift;
	u32 offset; /* bytes into the first page */
};

int cx_dma_read(struct cx_dev *dev, u64 addr, void *buf, u64 len);
int cx_dma_write(struct cx_dev *dev, u64 addr, const void *buf, u64 len);
u32 cx_dma_read_be32(struct cx_dev *dev, u64 addr);

int cx_ring_init(struct cx_ring *r, u32 page_shift, u32 offset, u64 bytes, const u8 *pas,
		 u64 pas_bytes);
void cx_ring_free(struct cx_ring *r);
int cx_ring_read(struct cx_dev *dev, const struct cx_ring *r, u64 off, void *buf, u32 len);
int cx_ring_write(struct cx_dev *dev, const struct cx_ring *r, u64 off, const void *buf, u32 len);

#endif
