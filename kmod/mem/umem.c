// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: pages of processes and of the kernel: pin or hold, map for a device, unmap, unpin. Modelled
 * on ib_umem_get() and __ib_umem_release() of ib_core.
 *
 * struct ib_umem is ib_core's, so that its helpers can find the best page size and walk it;
 * but it is allocated and freed here, and never passed to ib_umem_release().
 * Locking: none.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "mem/umem.h"

#define KRC_UMEM_BATCH (PAGE_SIZE / sizeof(struct page *)) /* pages pinned at once */

/* Charge @pages to the process, within RLIMIT_MEMLOCK. Return: 0, -ENOMEM. */
static int krc_umem_charge(struct mm_struct *mm, u64 pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if ((u64)atomic64_add_return(pages, &mm->pinned_vm) <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &mm->pinned_vm);
	return -ENOMEM;
}

/* Unpin the pages in the table, and free the table. */
static void krc_umem_empty(struct ib_umem *umem, bool dirty)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i) {
		unpin_user_page_range_dirty_lock(sg_page(sg), DIV_ROUND_UP(sg->length, PAGE_SIZE),
						 dirty);
		cond_resched();
	}
	sg_free_append_table(&umem->sgt_append);
}

/*
 * Fault pages in, on kernels where pinning would do so unkillably. A program can make them go
 * again before they are pinned; then its own call blocks unkillably.
 */
static int krc_umem_bring(const struct ib_umem *umem, unsigned long addr, size_t bytes)
{
	size_t left;

	if (umem->writable)
		left = fault_in_safe_writeable((const char __user *)addr, bytes);
	else
		left = fault_in_readable((const char __user *)addr, bytes);
	if (fatal_signal_pending(current))
		return -EINTR;
	return left ? -EFAULT : 0;
}

/* Pin some of @pages from @addr on. Return: number of pages, or a negative errno. */
static int krc_umem_grab(const struct ib_umem *umem, unsigned long addr, int pages,
			 unsigned int flags, struct page **batch)
{
	int pinned, err;

	if (KRC_COMPAT_PIN_UNKILLABLE) {
		/* faulting in what is there costs three times what pinning it does */
		pinned = krc_compat_pin_present(addr, pages, flags, batch);
		if (pinned)
			return pinned;
		err = krc_umem_bring(umem, addr, (size_t)pages << PAGE_SHIFT);
		if (err)
			return err;
	}
	return pin_user_pages_fast(addr, pages, flags, batch) ?: -EFAULT;
}

/* Append the next pages from @addr on. Return: number of pages, or a negative errno. */
static int krc_umem_append(struct ib_umem *umem, unsigned long addr, u64 pages, struct page **batch,
			   unsigned int segment_max)
{
	unsigned int flags = FOLL_LONGTERM;
	u64 some = min_t(u64, pages, KRC_UMEM_BATCH);
	int pinned, err;

	flags |= umem->writable ? FOLL_WRITE : KRC_COMPAT_PIN_TO_READ;
	pinned = krc_umem_grab(umem, addr, some, flags, batch);
	if (pinned < 0)
		return pinned;
	err = sg_alloc_append_table_from_pages(&umem->sgt_append, batch, pinned, 0,
					       (unsigned long)pinned << PAGE_SHIFT, segment_max,
					       pages - pinned, GFP_KERNEL);
	if (!err)
		return pinned;
	unpin_user_pages_dirty_lock(batch, pinned, false);
	return err;
}

static int krc_umem_fill(struct ib_umem *umem, u64 pages, unsigned int segment_max)
{
	struct page **batch = (struct page **)__get_free_page(GFP_KERNEL);
	unsigned long addr = umem->address & PAGE_MASK;
	int some = 0;

	if (!batch)
		return -ENOMEM;
	for (; pages && some >= 0; pages -= max(some, 0)) {
		cond_resched();
		some = krc_umem_append(umem, addr, pages, batch, segment_max);
		addr += (unsigned long)max(some, 0) << PAGE_SHIFT;
	}
	free_page((unsigned long)batch);
	return min(some, 0);
}

struct ib_umem *krc_umem_pin(u64 addr, u64 length, bool writable, unsigned int segment_max)
{
	struct ib_umem *umem;
	u64 pages;
	int err;

	umem = kzalloc(sizeof(*umem), GFP_KERNEL_ACCOUNT);
	if (!umem)
		return ERR_PTR(-ENOMEM);
	umem->address = addr;
	umem->iova = addr;
	umem->length = length;
	umem->writable = writable;
	pages = ib_umem_num_pages(umem);
	err = pages > UINT_MAX ? -ENOMEM : krc_umem_charge(current->mm, pages);
	if (err)
		goto err_free;
	umem->owning_mm = current->mm;
	mmgrab(umem->owning_mm);
	err = krc_umem_fill(umem, pages, segment_max);
	if (err)
		goto err_pages;
	return umem;

err_pages:
	krc_umem_empty(umem, false);
	atomic64_sub(pages, &umem->owning_mm->pinned_vm);
	mmdrop(umem->owning_mm);
err_free:
	kfree(umem);
	/* only a fatal signal ends it, so no errno reaches user space */
	return ERR_PTR(err == -ERESTARTSYS || err == -EAGAIN ? -EINTR : err);
}

/* Count one more user of a page. Return: false if that would not keep it from others. */
static bool krc_umem_take(struct page *page)
{
	struct page *head = compound_head(page);

	return !PageSlab(head) && get_page_unless_zero(head);
}

/* Drop the first @nr pages. */
static void krc_umem_drop(struct page *const *pages, u32 nr)
{
	while (nr)
		put_page(pages[--nr]);
}

/* Count @nr pages, or none. Return: 0 or -EINVAL. */
static int krc_umem_take_all(struct page *const *pages, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!krc_umem_take(pages[i])) {
			krc_umem_drop(pages, i);
			return -EINVAL;
		}
		if (i % KRC_UMEM_BATCH == 0)
			cond_resched();
	}
	return 0;
}

struct ib_umem *krc_umem_hold(struct page *const *pages, u32 nr, bool writable,
			      unsigned int segment_max)
{
	struct ib_umem *umem = kzalloc(sizeof(*umem), GFP_KERNEL);
	int err;

	if (!umem)
		return ERR_PTR(-ENOMEM);
	umem->length = (size_t)nr << PAGE_SHIFT;
	umem->writable = writable;
	err = krc_umem_take_all(pages, nr);
	if (err)
		goto err_free;
	/* it does not write to the array */
	err = sg_alloc_append_table_from_pages(&umem->sgt_append, (struct page **)pages, nr, 0,
					       umem->length, segment_max, 0, GFP_KERNEL);
	if (err)
		goto err_pages;
	return umem;

err_pages:
	krc_umem_drop(pages, nr);
err_free:
	kfree(umem);
	return ERR_PTR(err);
}

/* Drop the pages in the table that krc_umem_hold() counted, and free the table. */
static void krc_umem_release(struct ib_umem *umem)
{
	struct sg_page_iter it;

	for_each_sgtable_page(&umem->sgt_append.sgt, &it, 0) {
		put_page(sg_page_iter_page(&it));
		cond_resched();
	}
	sg_free_append_table(&umem->sgt_append);
}

int krc_umem_map(struct ib_umem *umem, struct ib_device *ibdev)
{
	int err = ib_dma_map_sgtable_attrs(ibdev, &umem->sgt_append.sgt, DMA_BIDIRECTIONAL, 0);

	if (!err)
		umem->ibdev = ibdev;
	return err;
}

void krc_umem_unmap(struct ib_umem *umem)
{
	if (umem->ibdev)
		ib_dma_unmap_sgtable_attrs(umem->ibdev, &umem->sgt_append.sgt, DMA_BIDIRECTIONAL,
					   0);
	umem->ibdev = NULL;
}

void krc_umem_unpin(struct ib_umem *umem)
{
	u64 pages = ib_umem_num_pages(umem);

	WARN_ON_ONCE(umem->ibdev);
	if (umem->owning_mm) {
		krc_umem_empty(umem, umem->writable);
		atomic64_sub(pages, &umem->owning_mm->pinned_vm);
		mmdrop(umem->owning_mm);
	} else {
		krc_umem_release(umem);
	}
	kfree(umem);
}
