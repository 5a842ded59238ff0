/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: pages of programs for a NIC, in two steps that ib_umem_get() of ib_core takes at
 * once: they are pinned, for which no device is needed, and then mapped for one.
 *
 * The first step may last for ever, since it is up to who serves the pages, which may be a
 * program (FUSE, userfaultfd); nothing that others need may be held meanwhile, so neither
 * may a device. The second waits for nobody.
 * Locking: none; who makes it uses it alone.
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
 * @segment_max: most bytes in a row that the device will take, at least a page.
 *
 * Charged to the process's pinned_vm, within RLIMIT_MEMLOCK. A caller that is killed gives
 * up. Context: may sleep, for ever; nothing held.
 * Return: the memory, its pages known to no device, for the helpers of ib_core that say how
 * it lies; or ERR_PTR: -EFAULT (not mapped, or not writable), -ENOMEM (also: RLIMIT_MEMLOCK,
 * or 2^32 pages), -EINTR (killed).
 */
struct ib_umem *krc_umem_pin(u64 addr, u64 length, bool writable, unsigned int segment_max);

/**
 * krc_umem_map() - Make pinned memory known to a device's bus.
 * @umem: from krc_umem_pin(), not mapped.
 * @ibdev: device; must stay until krc_umem_unmap().
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, -EIO, -EREMOTEIO.
 */
int krc_umem_map(struct ib_umem *umem, struct ib_device *ibdev);

/**
 * krc_umem_unmap() - Undo krc_umem_map().
 * @umem: memory; nothing is done if it is not mapped.
 *
 * Context: may sleep.
 */
void krc_umem_unmap(struct ib_umem *umem);

/**
 * krc_umem_unpin() - Give the pages back, and what was charged for them.
 * @umem: memory, not mapped; gone afterwards.
 *
 * Context: may sleep; any process.
 */
void krc_umem_unpin(struct ib_umem *umem);

#endif /* KRC_UMEM_H */
