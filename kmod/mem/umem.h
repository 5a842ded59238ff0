/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: pages for a NIC, in two steps that ib_umem_get() of ib_core takes at once: pinning those
 * of a process, or holding those of the kernel, which needs no device; and mapping for a device.
 *
 * Pinning may block without limit, since a program may serve the pages (FUSE, userfaultfd);
 * so nothing that others need may be held meanwhile, nor may a device. Mapping does not block
 * on other programs.
 * Locking: none; the creator of an umem is its only user.
 */
#ifndef KRC_UMEM_H
#define KRC_UMEM_H

#include <linux/types.h>
#include <rdma/ib_umem.h>

/**
 * krc_umem_pin() - Pin memory of the calling process.
 * @addr: first byte, any alignment.
 * @length: bytes, at least 1; @addr + @length does not wrap.
 * @writable: the NIC will write there.
 * @segment_max: longest contiguous segment of the device in bytes, at least a page.
 *
 * Charged to the process's pinned_vm, within RLIMIT_MEMLOCK. A fatal signal ends it.
 * Context: may sleep without limit; hold nothing.
 * Return: the memory, not mapped for any device, usable with the ib_umem helpers of ib_core;
 * or ERR_PTR: -EFAULT (not mapped, or not writable), -ENOMEM (also: RLIMIT_MEMLOCK,
 * or 2^32 pages), -EINTR (killed).
 */
struct ib_umem *krc_umem_pin(u64 addr, u64 length, bool writable, unsigned int segment_max);

/**
 * krc_umem_hold() - Hold pages of the kernel as memory from address 0 on.
 * @pages: whole pages, in order, each counted by itself: of alloc_page(), vmalloc(), or compound.
 * @nr: how many, at least 1.
 * @writable: the NIC will write there.
 * @segment_max: as for krc_umem_pin().
 *
 * Each page is counted until krc_umem_unpin(), and no process is charged.
 * Context: may sleep.
 * Return: as krc_umem_pin(), or ERR_PTR: -EINVAL (a page without a count of its own, or of a slab,
 * which would be given to others while it is held), -ENOMEM.
 */
struct ib_umem *krc_umem_hold(struct page *const *pages, u32 nr, bool writable,
			      unsigned int segment_max);

/**
 * krc_umem_map() - DMA-map pinned memory for a device.
 * @umem: from krc_umem_pin() or krc_umem_hold(), not mapped.
 * @ibdev: device; must stay until krc_umem_unmap().
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, -EIO, -EREMOTEIO.
 */
int krc_umem_map(struct ib_umem *umem, struct ib_device *ibdev);

/**
 * krc_umem_unmap() - Undo krc_umem_map().
 * @umem: memory; no-op if it is not mapped.
 *
 * Context: may sleep.
 */
void krc_umem_unmap(struct ib_umem *umem);

/**
 * krc_umem_unpin() - Unpin or drop the pages, uncharge them, free @umem.
 * @umem: memory, not mapped.
 *
 * Context: may sleep; any process, not only the one that pinned.
 */
void krc_umem_unpin(struct ib_umem *umem);

#endif /* KRC_UMEM_H */
