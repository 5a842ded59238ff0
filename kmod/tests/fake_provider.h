/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a NIC in memory, for tests of the pool: it keeps what is posted in order, and
 * completes or fails it when the test says so, or by itself.
 *
 * As on a real one, what is posted behind a failed request is flushed, nothing works
 * until a reset, and a reset forgets everything that was not polled. Unsignaled requests have
 * completions of their own all the same, unless the test wants it otherwise. A SEND goes to
 * the target with the number of its address, on whichever NIC of this kind that is: a receive
 * buffer is filled when the test has the request carried out, or the SEND fails for want of one.
 * Locking: own spinlock in each initiator, inside it one for all targets; the controls may be
 * called in any context.
 */
#ifndef KRC_FAKE_PROVIDER_H
#define KRC_FAKE_PROVIDER_H

#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"

#define KRC_FAKE_INITIATORS 16
#define KRC_FAKE_LOG 4096
#define KRC_FAKE_FAR 0x1000

/**
 * struct krc_fake_initiator - One send queue.
 * @lock: protects all below.
 * @fake: its NIC.
 * @owner: for upcalls.
 * @depth: most requests.
 * @use: what it was made for.
 * @payer: on whose account the last one was that was posted.
 * @wrs: what is posted, by number % depth.
 * @wcs: completions, by number % depth.
 * @ends: requests that each of them ends, and all before them.
 * @polled: completions taken.
 * @made: completions made.
 * @freed: requests whose completion was taken.
 * @done: requests carried out, failed or flushed.
 * @rung: requests the hardware has seen.
 * @posted: requests appended.
 * @failed: it is in its error state.
 * @armed: an upcall is wanted.
 * @resets: how often it was reset.
 * @post_max: most requests ever outstanding.
 * @bytes_max: most bytes.
 * @log: requests that were carried out, in order: remote address.
 * @log_nr: how many, also beyond KRC_FAKE_LOG.
 */
struct krc_fake_initiator {
	spinlock_t lock;
	struct krc_fake *fake;
	void *owner;
	u32 depth;
	enum krc_hw_use use;
	const void *payer;
	struct krc_hw_wr *wrs;
	struct krc_wc *wcs;
	u64 *ends;
	u64 polled;
	u64 made;
	u64 freed;
	u64 done;
	u64 rung;
	u64 posted;
	bool failed;
	bool armed;
	u32 resets;
	u64 post_max;
	u64 bytes_max;
	u64 log[KRC_FAKE_LOG];
	u64 log_nr;
};

/**
 * struct krc_fake - The NIC.
 * @dev: device for DMA.
 * @lock: protects @ini, and keeps an initiator while it is controlled; outside its own lock.
 * @ini: the initiators, by the number that they were made with; NULL: none.
 * @reset_error: what a reset says.
 * @unsent: the device was given no request that has no outcome at a halt.
 * @post_error: what a post says.
 * @post_good: so many posts are taken before.
 * @late: so many of the oldest requests are carried out at the last moment before a halt.
 * @mute: no upcalls, as if interrupts were lost.
 * @sparse: unsignaled requests that succeed have no completion of their own.
 * @mean: nor have those that are flushed, against the rules.
 * @router: part of every address vector.
 * @at_once: what is posted from now on is carried out when the doorbell is rung.
 * @lose: so many SENDs that are carried out next complete without being received.
 * @twice: and so many after them are received twice, if there is a buffer.
 * @events: upcalls of targets; NULL: none, as if interrupts were lost.
 * @far: what krc_pool_read() finds at remote address KRC_FAKE_FAR and behind it; NULL: see
 *	krc_fake_complete().
 */
struct krc_fake {
	struct device *dev;
	spinlock_t lock;
	struct krc_fake_initiator *ini[KRC_FAKE_INITIATORS];
	int reset_error;
	bool unsent;
	int post_error;
	u32 post_good;
	u32 late;
	bool mute;
	bool sparse;
	bool mean;
	u8 router;
	bool at_once;
	atomic_t lose;
	atomic_t twice;
	const struct krc_hw_events *events;
	const void *far;
};

extern const struct krc_provider_ops krc_fake_ops;

/**
 * krc_fake_create() - Make the NIC, with a device for DMA.
 *
 * Context: may sleep.
 * Return: it, for krc_fake_destroy(); NULL: no memory.
 */
struct krc_fake *krc_fake_create(void);

/**
 * krc_fake_destroy() - Free the NIC.
 * @fake: NIC without initiators.
 *
 * Context: may sleep.
 */
void krc_fake_destroy(struct krc_fake *fake);

/**
 * krc_fake_hw() - Get the NIC as the provider's callers see it.
 * @fake: NIC.
 *
 * Return: the same object, for krc_rail.hw.
 */
static inline struct krc_hw *krc_fake_hw(struct krc_fake *fake)
{
	return (struct krc_hw *)fake;
}

/**
 * krc_fake_pending() - Count the requests of an initiator that the hardware has seen and not ended.
 * @fake: NIC.
 * @i: number of the initiator, below KRC_FAKE_INITIATORS.
 *
 * Context: any.
 * Return: their number; 0 also if there is no such initiator.
 */
u32 krc_fake_pending(struct krc_fake *fake, u32 i);

/**
 * krc_fake_complete() - Carry out the oldest requests of an initiator.
 * @fake: NIC.
 * @i: initiator.
 * @count: at most so many.
 *
 * READs into kernel memory of krc_pool_read() bring what is at krc_fake.far, or else the low byte
 * of their remote address everywhere; but READs of memory whose key was made by ops->key_pages()
 * bring what is there. WRITEs and atomics between memories under such keys, or those of
 * ops->key_umem(), are carried out; others change nothing. A SEND fills a buffer of its target; without one it fails with
 * KRC_FAULT_BUSY, without a target with KRC_FAULT_TIMEOUT, and if it does not fit with
 * KRC_FAULT_ACCESS, as if krc_fake_fail() had been called.
 * Return: how many were carried out or failed.
 */
u32 krc_fake_complete(struct krc_fake *fake, u32 i, u32 count);

/**
 * krc_fake_arrive() - Deliver the oldest request of an initiator, a SEND, but not its completion: as
 * if the answer were lost.
 * @fake: NIC.
 * @i: initiator.
 *
 * Return: whether there was one, and its target had a buffer.
 */
bool krc_fake_arrive(struct krc_fake *fake, u32 i);

/**
 * krc_fake_fail() - Fail the oldest request of an initiator; all behind it are flushed.
 * @fake: NIC.
 * @i: number of the initiator; nothing happens if there is none, it has failed, or it is
 *	idle.
 * @fault: what the request fails with.
 *
 * Context: any.
 */
void krc_fake_fail(struct krc_fake *fake, u32 i, enum krc_fault fault);

/**
 * krc_fake_fatal() - Report that an initiator is broken.
 * @fake: NIC.
 * @i: number of the initiator; nothing happens if there is none.
 *
 * Context: any.
 */
void krc_fake_fatal(struct krc_fake *fake, u32 i);

/**
 * krc_fake_stray() - Report a completion that no request is behind.
 * @fake: NIC.
 * @i: number of the initiator; nothing happens if there is none.
 *
 * Context: any.
 */
void krc_fake_stray(struct krc_fake *fake, u32 i);

#endif /* KRC_FAKE_PROVIDER_H */
