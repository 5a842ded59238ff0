// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: guest memory access and page-list rings. An access the bus refuses is
 * counted and reported to the caller. Runs under QEMU's big lock.
 */
#include "dev.h"

int cx_dma_read(struct cx_dev *dev, u64 addr, void *buf, u64 len)
{
	if (pci_dma_read(&dev->parent, addr, buf, len) == MEMTX_OK)
		return 0;
	cx_count(dev, CX_CTR_DMA_ERRORS, 1);
	memset(buf, 0, len);
	return -EFAULT;
}

int cx_dma_write(struct cx_dev *dev, u64 addr, const void *buf, u64 len)
{
	if (pci_dma_write(&dev->parent, addr, buf, len) == MEMTX_OK)
		return 0;
	cx_count(dev, CX_CTR_DMA_ERRORS, 1);
	return -EFAULT;
}

u32 cx_dma_read_be32(struct cx_dev *dev, u64 addr)
{
	u8 raw[4];

	cx_dma_read(dev, addr, raw, sizeof(raw));
	return ldl_be_p(raw);
}

int cx_ring_init(struct cx_ring *r, u32 page_shift, u32 parts, u64 bytes, const u8 *pas,
		 u64 pas_bytes)
{
	u64 offset = (u64)parts << (page_shift - 6);
	u64 nr = bytes ? (offset + bytes + (1ull << page_shift) - 1) >> page_shift : 0;
	u64 *page, i;

	if (nr > pas_bytes / 8)
		return -EINVAL;
	page = g_new(u64, nr);
	for (i = 0; i < nr; i++) {
		page[i] = ldq_be_p(pas + 8 * i);
		if (page[i] & 0xfff) {
			g_free(page);
			return -EINVAL;
		}
	}
	*r = (struct cx_ring){
		.page = page,
		.nr_pages = nr,
		.page_shift = page_shift,
		.offset = offset,
	};
	return 0;
}

void cx_ring_free(struct cx_ring *r)
{
	g_free(r->page);
	r->page = NULL;
	r->nr_pages = 0;
}

static int cx_ring_copy(struct cx_dev *dev, const struct cx_ring *r, u64 off, u8 *buf, u32 len,
			bool write)
{
	int err = 0;

	off += r->offset;
	while (len && !err) {
		u64 in = off & ((1ull << r->page_shift) - 1);
		u32 n = MIN((u64)len, (1ull << r->page_shift) - in);

		if (off >> r->page_shift >= r->nr_pages)
			return -EFAULT;
		in += r->page[off >> r->page_shift];
		err = write ? cx_dma_write(dev, in, buf, n) : cx_dma_read(dev, in, buf, n);
		off += n;
		buf += n;
		len -= n;
	}
	return err;
}

int cx_ring_read(struct cx_dev *dev, const struct cx_ring *r, u64 off, void *buf, u32 len)
{
	return cx_ring_copy(dev, r, off, buf, len, false);
}

int cx_ring_write(struct cx_dev *dev, const struct cx_ring *r, u64 off, const void *buf, u32 len)
{
	return cx_ring_copy(dev, r, off, (u8 *)buf, len, true);
}
