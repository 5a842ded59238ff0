// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the completion ring of a context. Its pages are allocated one by one, because
 * vmalloc_user() does not charge them to the memory cgroup of the program.
 * Locking: see user/ring.h.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "base/compat.h"
#include "user/ring.h"

static void krc_ring_free_pages(struct page **pages, u32 nr)
{
	while (nr--)
		__free_page(pages[nr]);
	kvfree(pages);
}

static struct page **krc_ring_alloc_pages(u32 nr)
{
	struct page **pages = kvcalloc(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!pages)
		return NULL;
	for (i = 0; i < nr; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[i]) {
			krc_ring_free_pages(pages, i);
			return NULL;
		}
	}
	return pages;
}

int krc_ring_create(struct krc_ring *ring, u32 entries)
{
	struct krp_ring *shared;
	struct page **pages;
	u32 bytes;

	if (!is_power_of_2(entries) || entries < KRP_RING_ENTRIES_MIN ||
	    entries > KRP_RING_ENTRIES_MAX)
		return -EINVAL;
	bytes = PAGE_ALIGN(sizeof(struct krp_ring) + entries * sizeof(struct krp_cqe));
	pages = krc_ring_alloc_pages(bytes >> PAGE_SHIFT);
	if (!pages)
		return -ENOMEM;
	shared = vmap(pages, bytes >> PAGE_SHIFT, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	if (!shared) {
		krc_ring_free_pages(pages, bytes >> PAGE_SHIFT);
		return -ENOMEM;
	}
	ring->pages = pages;
	ring->shared = shared;
	ring->cqes = (struct krp_cqe *)(ring->shared + 1);
	ring->entries = entries;
	ring->bytes = bytes;
	ring->shared->entries = entries;
	ring->shared->offset = sizeof(struct krp_ring);
	return 0;
}

void krc_ring_destroy(struct krc_ring *ring)
{
	if (!ring->shared)
		return;
	vunmap(ring->shared);
	krc_ring_free_pages(ring->pages, ring->bytes >> PAGE_SHIFT);
	ring->shared = NULL;
}

int krc_ring_mmap(struct krc_ring *ring, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC || vma->vm_pgoff ||
	    vma->vm_end - vma->vm_start != ring->bytes)
		return -EINVAL;
	krc_compat_vma_never(vma, VM_MAYEXEC); /* nor by mprotect(2) */
	return remap_vmalloc_range(vma, ring->shared, 0);
}

int krc_ring_set_aside(struct krc_ring *ring, u32 depth)
{
	int err = -ENOSPC;

	spin_lock_bh(&ring->lock);
	if (depth <= ring->entries - ring->set_aside) {
		ring->set_aside += depth;
		err = 0;
	}
	spin_unlock_bh(&ring->lock);
	return err;
}

void krc_ring_give_back(struct krc_ring *ring, u32 depth)
{
	spin_lock_bh(&ring->lock);
	ring->set_aside -= depth;
	spin_unlock_bh(&ring->lock);
}

/*
 * What the program has consumed so far, or what it last said, if what it says now cannot be. Several
 * posters may come here at once: then the older value of two may stay for a while, which is as good.
 */
static u32 krc_ring_consumed(struct krc_ring *ring)
{
	/* Pairs with the program's release: it has read the entries before head. */
	u32 head = smp_load_acquire(&ring->shared->head);
	/* Pairs with the release below: a tail that is behind what is known would let any head pass. */
	u32 known = smp_load_acquire(&ring->head);
	/* Pairs with krc_ring_end(): all before it is claimed. */
	u32 tail = smp_load_acquire(&ring->tail);

	if (tail - head > tail - known || tail - head > ring->entries)
		return known;
	/* Pairs with the acquire of other posters above: they see a tail that is not behind it. */
	smp_store_release(&ring->head, head);
	return head;
}

u32 krc_ring_reserve(struct krc_ring *ring, u32 count)
{
	u32 head = krc_ring_consumed(ring), used, some;
	int claimed = atomic_read(&ring->claimed); /* after head, so that it is not behind it */

	do {
		used = (u32)claimed - head;
		/* more than there are: a poster that was away for long has brought an old head back */
		some = used < ring->entries ? min(count, ring->entries - used) : 0;
	} while (some && !atomic_try_cmpxchg(&ring->claimed, &claimed, claimed + some));
	return some;
}

void krc_ring_unreserve(struct krc_ring *ring, u32 count)
{
	atomic_sub(count, &ring->claimed);
}

bool krc_ring_pending(struct krc_ring *ring)
{
	/* of a ring whose entries are written just now either answer is right */
	return ring->shared && krc_ring_consumed(ring) != READ_ONCE(ring->tail);
}
