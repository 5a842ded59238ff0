/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: READs for the module itself: of directories of peers, and of tables.
 * Locking: none by the callers; see pool/read.c.
 */
#ifndef KRC_POOL_READ_H
#define KRC_POOL_READ_H

#include <linux/list.h>
#include <linux/types.h>

struct krc_pool;
struct krc_read_slot;
struct krc_share;
struct krc_standing;

#define KRC_READ_WAITS U32_MAX /* in place of the index of a channel: the READ waits for a slot */

/**
 * struct krc_read - A READ for the module itself; embedded by its owner.
 * @standing: the target; the owner holds a reference until done().
 * @payer: key of the share that its slot is charged to: each payer has a bounded number of
 *	slots. Only compared, never followed. krc_pool_read_also() may change it.
 * @remote_addr: address at the target.
 * @rkey: remote key.
 * @bytes: length, 1 to 256.
 * @done: called once, with bottom halves off and no lock of the pool held, perhaps before
 *	krc_pool_read() returns. err: 0, or why there are no @bytes: -EREMOTEIO (refused),
 *	-ETIMEDOUT (unresponsive, or known to be so), -EIO (no channel works), -ENODEV (the
 *	pool is stopped), -ENOMEM. Afterwards the READ is its owner's again, unless it returns
 *	true after an err of 0: then the READ is repeated, as soon as possible.
 * @start: out: jiffies when it was posted last, so no later than the state that @bytes show.
 * @list: entry of the list it waits in; the pool's.
 * @share: payer's share it waits in; the pool's.
 * @place: its number among those that have waited in @share; the pool's.
 * @slot: READ slot it is in flight in; the pool's.
 * @queued: it has no slot yet, and its outcome is open; the pool's.
 * @err: its outcome, while it waits for done(); the pool's.
 */
struct krc_read {
	struct krc_standing *standing;
	const void *payer;
	u64 remote_addr;
	u32 rkey;
	u32 bytes;
	bool (*done)(struct krc_read *read, int err, const void *bytes);
	unsigned long start;
	struct list_head list;
	struct krc_share *share;
	u32 place;
	struct krc_read_slot *slot;
	bool queued;
	int err;
};

/**
 * krc_pool_read() - Start a READ for the module itself, without waiting.
 * @pool: pool.
 * @read: with the owner's fields set.
 * @ret_index: out: index of the channel for krc_pool_poll(), or KRC_READ_WAITS.
 *
 * A target that has not answered lately is sent one READ at a time, on a channel set apart;
 * its other READs wait for that one, and fail with it. No READ fails for lack of a slot.
 * Context: any but hard interrupts, no lock held that done() takes. Inside krc_rail_enter().
 * Return: 0: done() will be called, or has been. Else it is not called: -ETIMEDOUT (the target
 * did not answer, and it is too early to try again), -ENODEV, -ENOMEM, -EINVAL (@bytes).
 */
int krc_pool_read(struct krc_pool *pool, struct krc_read *read, u32 *ret_index);

/**
 * krc_pool_read_also() - Somebody else wants a READ, too.
 * @pool: pool.
 * @read: krc_pool_read() is about to take it or took it; done() has not freed it.
 * @payer: as krc_read.payer, of the one that wants it now.
 *
 * A READ that has not begun is charged to @payer from now on, if it comes to its turn sooner so: a
 * payer does not wait for what another one has to wait for. Calls no done().
 * Context: any but hard interrupts. Inside krc_rail_enter().
 */
void krc_pool_read_also(struct krc_pool *pool, struct krc_read *read, const void *payer);

/**
 * krc_pool_unread() - Withdraw a READ that is no longer wanted.
 * @pool: pool.
 * @read: krc_pool_read() took it; done() has not freed it.
 *
 * Context: any but hard interrupts. Inside krc_rail_enter().
 * Return: true: the READ had not begun, done() is not called. False: done() will be or has been.
 */
bool krc_pool_unread(struct krc_pool *pool, struct krc_read *read);

#endif /* KRC_POOL_READ_H */
