/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: mapping the kernel's memory for a device of which krc_provider_ops.dma_device may say NULL:
 * one in software, to which addresses of the kernel are DMA addresses (ib_uses_virt_dma()).
 * Locking: none.
 */
#ifndef KRC_DMA_H
#define KRC_DMA_H

#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/mm.h>

/**
 * krc_dma_map_page() - Map a page.
 * @dev: device or NULL.
 * @page: it, of low memory.
 * @direction: of transfers.
 * @ret_dma: out: its DMA address.
 *
 * Context: any that dma_map_page() may be called in.
 * Return: 0 or %-ENOMEM.
 */
static inline int krc_dma_map_page(struct device *dev, struct page *page,
				   enum dma_data_direction direction, dma_addr_t *ret_dma)
{
	if (!dev) {
		*ret_dma = (dma_addr_t)(uintptr_t)page_address(page);
		return 0;
	}
	*ret_dma = dma_map_page(dev, page, 0, PAGE_SIZE, direction);
	return dma_mapping_error(dev, *ret_dma) ? -ENOMEM : 0;
}

/**
 * krc_dma_unmap_page() - Undo krc_dma_map_page().
 * @dev: device or NULL.
 * @dma: DMA address.
 * @direction: as before.
 *
 * Context: as krc_dma_map_page().
 */
static inline void krc_dma_unmap_page(struct device *dev, dma_addr_t dma,
				      enum dma_data_direction direction)
{
	if (dev)
		dma_unmap_page(dev, dma, PAGE_SIZE, direction);
}

/**
 * krc_dma_sync_for_device() - Let the device see what was written to a part of a page.
 * @dev: device or NULL.
 * @dma: DMA address of the page.
 * @offset: of the part.
 * @bytes: of the part.
 * @direction: as the page was mapped.
 *
 * Context: any.
 */
static inline void krc_dma_sync_for_device(struct device *dev, dma_addr_t dma, u32 offset,
					   u32 bytes, enum dma_data_direction direction)
{
	if (dev)
		dma_sync_single_range_for_device(dev, dma, offset, bytes, direction);
}

/**
 * krc_dma_sync_for_cpu() - See what the device has written to a part of a page.
 * @dev: device or NULL.
 * @dma: DMA address of the page.
 * @offset: of the part.
 * @bytes: of the part.
 * @direction: as the page was mapped.
 *
 * Context: any.
 */
static inline void krc_dma_sync_for_cpu(struct device *dev, dma_addr_t dma, u32 offset, u32 bytes,
					enum dma_data_direction direction)
{
	if (dev)
		dma_sync_single_range_for_cpu(dev, dma, offset, bytes, direction);
}

/**
 * krc_dma_alloc() - Allocate memory that needs no synchronisation, and map it.
 * @dev: device or NULL.
 * @bytes: of it.
 * @ret_dma: out: its DMA address.
 *
 * Context: may sleep.
 * Return: zeroed memory, or NULL.
 */
static inline void *krc_dma_alloc(struct device *dev, size_t bytes, dma_addr_t *ret_dma)
{
	void *memory;

	if (dev)
		return dma_alloc_coherent(dev, bytes, ret_dma, GFP_KERNEL);
	memory = alloc_pages_exact(bytes, GFP_KERNEL | __GFP_ZERO);
	*ret_dma = (dma_addr_t)(uintptr_t)memory;
	return memory;
}

/**
 * krc_dma_free() - Free what krc_dma_alloc() has given.
 * @dev: as before.
 * @bytes: as before.
 * @memory: it.
 * @dma: its DMA address.
 *
 * Context: as dma_free_coherent().
 */
static inline void krc_dma_free(struct device *dev, size_t bytes, void *memory, dma_addr_t dma)
{
	if (dev)
		dma_free_coherent(dev, bytes, memory, dma);
	else
		free_pages_exact(memory, bytes);
}

#endif /* KRC_DMA_H */
