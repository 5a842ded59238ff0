/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: references to regions of peers: what is cached of a peer's directory, and the check of
 * a reference against it.
 */
#ifndef KRC_REMOTE_H
#define KRC_REMOTE_H

#include <linux/list.h>
#include <linux/types.h>

#include "hw/provider.h"
#include "krp_mrdir.h"

struct krc_pool;
struct krc_rail;
struct krc_remote;
struct krc_standing;

/**
 * krc_remote_create() - References to regions of one peer, with their cache.
 * @rail: through which it is reached; outlives it, or is entered in every use.
 * @pool: who READs its directory; used only with the rail entered.
 * @value: the peer's record: directory and generation.
 * @address: how it is reached; copied.
 *
 * Shared by all queues of this port to that peer. Context: may sleep.
 * Return: it, with one user, or ERR_PTR(-ENOMEM).
 */
struct krc_remote *krc_remote_create(struct krc_rail *rail, struct krc_pool *pool,
				     const struct krp_value *value,
				     const struct krc_hw_address *address);

/* One more user of what has one, and one less; the last frees it. Context: any. */
void krc_remote_hold(struct krc_remote *remote);
void krc_remote_put(struct krc_remote *remote);

/* What is known of its target; counted as long as the peer is. Context: any. */
struct krc_standing *krc_remote_standing(const struct krc_remote *remote);

/**
 * struct krc_grant - What a peer's directory allows until then.
 * @token: region; 0: nothing is allowed.
 * @addr: first byte.
 * @length: bytes.
 * @until: jiffies until which the key may be posted to the hardware.
 * @margin_ms: within that time more the request must have left the hardware.
 * @rkey: key.
 * @access: KRP_ACCESS_*.
 */
struct krc_grant {
	u64 token;
	u64 addr;
	u64 length;
	unsigned long until;
	u32 margin_ms;
	u32 rkey;
	u32 access;
};

/**
 * struct krc_remote_wait - Somebody who waits for an entry of a peer's directory.
 * @list: where he waits, or empty.
 * @token: which entry.
 * @payer: see struct krc_read.
 * @index: out: initiator that the READ is on, for krc_pool_poll(), or KRC_READ_WAITS.
 * @ready: called once when the READ has ended: 0, or the errors of struct krc_read and
 *	-EBADR (no such region), which are his answer. With bottom halves off and the peer's
 *	lock held: must not sleep, nor call the peer.
 */
struct krc_remote_wait {
	struct list_head list;
	u64 token;
	const void *payer;
	u32 index;
	void (*ready)(struct krc_remote_wait *wait, int err);
};

/* Make one; see there. Context: any. */
void krc_remote_wait_init(struct krc_remote_wait *wait, const void *payer,
			  void (*ready)(struct krc_remote_wait *wait, int err));

/**
 * krc_remote_get() - Check a reference to a peer's memory and turn it into a key.
 * @remote: peer.
 * @token: region there.
 * @addr: first byte, as its owner sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_REMOTE_* needed.
 * @grant: in: an earlier answer of the same peer, or zeroes; it is asked first. Out, unless
 *	it fails: the answer.
 * @wait: if the directory must be READ: who is called then; nobody waits with it now. NULL:
 *	it is not READ.
 *
 * Callers that need the same entry at once share one READ. Who waits asks again when he was
 * called with 0.
 * Context: may sleep if @wait, but for memory only, else any that may take a BH-safe
 * spinlock; inside krc_rail_enter().
 * Return: 0; -EINPROGRESS (@wait->ready is called, perhaps it has been); -EAGAIN (not without
 * a READ, and no @wait); -EBADR (no such region), -EPERM, -EOVERFLOW (outside it), -ENOMEM;
 * the errors of krc_pool_read().
 */
int krc_remote_get(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
		   struct krc_grant *grant, struct krc_remote_wait *wait);

/**
 * krc_remote_unwait() - Wait no longer.
 * @remote: peer.
 * @wait: given to krc_remote_get() there.
 *
 * Context: any that may take a BH-safe spinlock; the port need not be entered, but is there.
 * Afterwards ready() is not running, and is not called.
 */
void krc_remote_unwait(struct krc_remote *remote, struct krc_remote_wait *wait);

/**
 * krc_remote_forget() - Forget what is cached of a peer.
 * @remote: peer whose generation changed or that does not answer.
 *
 * What is being READ now is not remembered either.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_remote_forget(struct krc_remote *remote);

/* The same for one region, whose key was refused. Same context. */
void krc_remote_forget_token(struct krc_remote *remote, u64 token);

/**
 * krc_remote_regions() - How many of a peer's regions are cached, for people.
 * @remote: peer.
 *
 * Context: any.
 * Return: the number.
 */
u32 krc_remote_regions(struct krc_remote *remote);

#endif /* KRC_REMOTE_H */
