/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: access of the device to guest memory, and rings: queues whose memory
 * is given as a list of pages with an offset into the first.
 */
#ifndef CX_DMA_H
#define CX_DMA_H

#include "types.h"

/**
 * struct cx_ring - Memory of a queue: pages, and where it begins in the first.
 * @page: DMA addresses of the pages; owned.
 * @nr_pages: entries of @page.
 * @page_shift: log2 of the bytes of a page.
 * @offset: bytes into the first page.
 */
struct cx_ring {
	u64 *page;
	u32 nr_pages;
	u32 page_shift;
	u64 offset;
};

/**
 * cx_dma_read() - Read guest memory.
 * @dev: device.
 * @addr: DMA address.
 * @buf: room for @len bytes; zeroed on failure.
 * @len: bytes.
 *
 * A failure is counted.
 *
 * Return: 0, or -EFAULT.
 */
int cx_dma_read(struct cx_dev *dev, u64 addr, void *buf, u64 len);

/**
 * cx_dma_write() - Write guest memory.
 * @dev: device.
 * @addr: DMA address.
 * @buf: @len bytes.
 * @len: bytes.
 *
 * A failure is counted; a part may be written then.
 *
 * Return: 0, or -EFAULT.
 */
int cx_dma_write(struct cx_dev *dev, u64 addr, const void *buf, u64 len);

/**
 * cx_dma_read_be32() - Read a big-endian word of guest memory.
 * @dev: device.
 * @addr: DMA address.
 *
 * Return: the word, 0 if it cannot be read.
 */
u32 cx_dma_read_be32(struct cx_dev *dev, u64 addr);

/**
 * cx_ring_init() - Take over the page list of a queue.
 * @r: ring to fill, untouched on failure.
 * @page_shift: log2 of the page size in bytes.
 * @parts: where the queue starts in the first page, 64ths of it.
 * @bytes: size of the queue.
 * @pas: big-endian 64-bit page addresses.
 * @pas_bytes: room of @pas.
 *
 * Return: 0, or
 * * -EINVAL - the list is too short, or an address is not aligned to 4 KiB
 */
int cx_ring_init(struct cx_ring *r, u32 page_shift, u32 parts, u64 bytes, const u8 *pas,
		 u64 pas_bytes);

/**
 * cx_ring_free() - Free the page list of a ring.
 * @r: ring, also one that was freed or never filled.
 */
void cx_ring_free(struct cx_ring *r);

/**
 * cx_ring_read() - Read bytes of a queue.
 * @dev: device.
 * @r: ring.
 * @off: byte offset into the queue.
 * @buf: room for @len bytes.
 * @len: bytes; may cross pages, not the end.
 *
 * Return: 0, or a negative errno of cx_dma_read().
 */
int cx_ring_read(struct cx_dev *dev, const struct cx_ring *r, u64 off, void *buf, u32 len);

/**
 * cx_ring_write() - Write bytes of a queue.
 * @dev: device.
 * @r: ring.
 * @off: byte offset into the queue.
 * @buf: @len bytes.
 * @len: bytes; may cross pages, not the end.
 *
 * Return: 0, or a negative errno of cx_dma_write().
 */
int cx_ring_write(struct cx_dev *dev, const struct cx_ring *r, u64 off, const void *buf, u32 len);

#endif
