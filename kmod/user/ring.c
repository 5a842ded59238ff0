// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the completion ring of a context. Its pages are allocated one by one, because
 * vmalloc_user() does not charge them to the memory cgroup of the program.
 * Locking: see user/ring.h.
 */
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

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

/* Count completions that the program has not consumed; ignore a head outside what was written. */
static u32 krc_ring_unread(struct krc_ring *ring)
{
	/* Pairs with the program's release: it has read the entries before head. */
	u32 head = smp_load_acquire(&ring->shared->head);

	lockdep_assert_held(&ring->lock);
	if (ring->tail - head <= ring->tail - ring->head)
		ring->head = head;
	return ring->tail - ring->head;
}

u32 krc_ring_promise(struct krc_ring *ring, u32 count)
{
	spin_lock_bh(&ring->lock);
	count = min(count, ring->entries - krc_ring_unread(ring) - ring->promised);
	ring->promised += count;
	spin_unlock_bh(&ring->lock);
	return count;
}

void krc_ring_unpromise(struct krc_ring *ring, u32 count)
{
	spin_lock_bh(&ring->lock);
	ring->promised -= count;
	spin_unlock_bh(&ring->lock);
}

bool krc_ring_pending(struct krc_ring *ring)
{
	bool pending;

	spin_lock_bh(&ring->lock);
	pending = ring->shared && krc_ring_unread(ring);
	spin_unlock_bh(&ring->lock);
	return pending;
}
