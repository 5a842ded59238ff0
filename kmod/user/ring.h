/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the completion ring of a context, which a program maps; see krp_ioctl.h.
 *
 * Only head is read back from the shared memory, and an impossible head is ignored. A
 * completion is written only into an entry that krc_ring_reserve() has reserved.
 * Locking: own spinlock, taken with bottom halves off, for writers; posters reserve without it.
 * Any context unless said otherwise.
 */
#ifndef KRC_RING_H
#define KRC_RING_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "krp_ioctl.h"

struct page;
struct vm_area_struct;

/**
 * struct krc_ring - A ring.
 * @lock: protects @tail and @set_aside.
 * @shared: memory that the program maps; NULL before krc_ring_create().
 * @pages: pages of @shared.
 * @cqes: entries in @shared.
 * @entries: number of entries, a power of two.
 * @bytes: size of the mapping, whole pages.
 * @tail: completions written so far; wraps. May be read without the lock.
 * @head: last valid head of the program, or one that was valid shortly before.
 * @claimed: completions written so far and entries reserved for others; wraps. A writer does not
 *	change it: what was reserved is written then.
 * @set_aside: sum of the depths of the queues, at most @entries.
 */
struct krc_ring {
	spinlock_t lock;
	struct krp_ring *shared;
	struct page **pages;
	struct krp_cqe *cqes;
	u32 entries;
	u32 bytes;
	u32 tail;
	u32 set_aside;
	u32 head;
	atomic_t claimed;
};

/**
 * krc_ring_create() - Allocate the memory of a ring.
 * @ring: zeroed but for its lock.
 * @entries: power of two, KRP_RING_ENTRIES_MIN to _MAX.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int krc_ring_create(struct krc_ring *ring, u32 entries);

/**
 * krc_ring_destroy() - Free the memory of a ring.
 * @ring: ring, with or without memory, that is neither mapped nor written any more.
 *
 * Context: may sleep.
 */
void krc_ring_destroy(struct krc_ring *ring);

/**
 * krc_ring_mmap() - Map a ring into a program.
 * @ring: ring.
 * @vma: must be shared, at offset 0, of exactly krc_ring.bytes, not executable.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, or the error of remap_vmalloc_range().
 */
int krc_ring_mmap(struct krc_ring *ring, struct vm_area_struct *vma);

/**
 * krc_ring_set_aside() - Set entries aside for a queue that is being made.
 * @ring: ring.
 * @depth: depth of the queue, in requests.
 *
 * Return: 0, or -ENOSPC: fewer are left, nothing was set aside.
 */
int krc_ring_set_aside(struct krc_ring *ring, u32 depth);

/**
 * krc_ring_give_back() - Give back what krc_ring_set_aside() took.
 * @ring: ring.
 * @depth: the same depth.
 */
void krc_ring_give_back(struct krc_ring *ring, u32 depth);

/**
 * krc_ring_reserve() - Reserve entries for completions.
 * @ring: ring.
 * @count: entries wanted.
 *
 * Return: how many were reserved, 0 to @count.
 */
u32 krc_ring_reserve(struct krc_ring *ring, u32 count);

/**
 * krc_ring_unreserve() - Release reserved entries for which no completion will come.
 * @ring: ring.
 * @count: entries, at most as many as krc_ring_reserve() reserved.
 */
void krc_ring_unreserve(struct krc_ring *ring, u32 count);

/**
 * krc_ring_begin() - Begin to write completions into reserved entries: takes the lock.
 * @ring: ring.
 *
 * Context: bottom halves off, until krc_ring_end().
 */
static inline void krc_ring_begin(struct krc_ring *ring) __acquires(&ring->lock)
{
	lockdep_assert(softirq_count());
	spin_lock(&ring->lock);
}

/**
 * krc_ring_entry() - An entry to write.
 * @ring: ring, between krc_ring_begin() and krc_ring_end().
 * @n: number of the completion, from 0.
 *
 * Return: the entry, in memory that the program reads and may have changed: only written.
 */
static inline struct krp_cqe *krc_ring_entry(struct krc_ring *ring, u32 n)
{
	return &ring->cqes[(ring->tail + n) & (ring->entries - 1)];
}

/**
 * struct krc_ring_at - Where the next completion of several goes: what krc_ring_entry() would read
 * from the ring again for each, since the compiler cannot tell entries from it.
 * @cqes: krc_ring.cqes.
 * @tail: number of the entry.
 * @mask: size of the ring - 1.
 */
struct krc_ring_at {
	struct krp_cqe *cqes;
	u32 tail;
	u32 mask;
};

/**
 * krc_ring_at() - Begin with the first entry to write.
 * @ring: ring, between krc_ring_begin() and krc_ring_end().
 *
 * Return: for krc_ring_next().
 */
static inline struct krc_ring_at krc_ring_at(const struct krc_ring *ring)
{
	return (struct krc_ring_at){
		.cqes = ring->cqes,
		.tail = ring->tail,
		.mask = ring->entries - 1,
	};
}

/**
 * krc_ring_next() - The next entry to write.
 * @at: of krc_ring_at().
 *
 * Return: as krc_ring_entry().
 */
static inline struct krp_cqe *krc_ring_next(struct krc_ring_at *at)
{
	return &at->cqes[at->tail++ & at->mask];
}

/**
 * krc_ring_end() - Let the program see what was written; drops the lock.
 * @ring: ring.
 * @count: completions written, at most as many as are reserved.
 *
 * Context: as krc_ring_begin().
 */
static inline void krc_ring_end(struct krc_ring *ring, u32 count) __releases(&ring->lock)
{
	lockdep_assert_held(&ring->lock);
	/* Pairs with krc_ring_consumed(). */
	smp_store_release(&ring->tail, ring->tail + count);
	/* Pairs with the program's acquire: the entries are whole before tail says so. */
	smp_store_release(&ring->shared->tail, ring->tail);
	spin_unlock(&ring->lock);
}

/**
 * krc_ring_pending() - Check for completions that the program has not consumed.
 * @ring: ring, with or without memory.
 *
 * Return: true if there are any.
 */
bool krc_ring_pending(struct krc_ring *ring);

#endif /* KRC_RING_H */
