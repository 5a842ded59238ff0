/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: references to regions of peers: the cache of a peer's directory, and the check of a
 * reference against it.
 */
#ifndef KRC_REMOTE_H
#define KRC_REMOTE_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/types.h>

#include "hw/provider.h"
#include "krp_mrdir.h"

struct krc_pool;
struct krc_rail;
struct krc_remote;
struct krc_standing;

/**
 * krc_remote_create() - Create the cache of one peer's region directory.
 * @rail: port through which the peer is reached; outlives the cache, or is entered at every
 *	use.
 * @pool: pool that READs the directory; used only with the rail entered.
 * @value: the peer's record: directory and generation.
 * @address: address of the peer; copied.
 *
 * Shared by all queues of this port to that peer. Context: may sleep.
 * Return: the cache, with one user, or ERR_PTR(-ENOMEM).
 */
struct krc_remote *krc_remote_create(struct krc_rail *rail, struct krc_pool *pool,
				     const struct krp_value *value,
				     const struct krc_hw_address *address);

/**
 * krc_remote_hold() - Take one more user.
 * @remote: cache that the caller is a user of.
 *
 * Context: any.
 */
void krc_remote_hold(struct krc_remote *remote);

/**
 * krc_remote_put() - Drop a user; the last one frees the cache.
 * @remote: cache.
 *
 * Context: any.
 */
void krc_remote_put(struct krc_remote *remote);

/**
 * krc_remote_standing() - Standing of the peer's target.
 * @remote: peer.
 *
 * Context: any.
 * Return: the standing, valid as long as @remote.
 */
struct krc_standing *krc_remote_standing(const struct krc_remote *remote);

/**
 * struct krc_grant - What a peer's directory entry allows, until @until.
 * @token: region; 0: nothing is allowed.
 * @addr: first byte of the region.
 * @length: length of the region in bytes.
 * @until: jiffies until which the key may be posted to the hardware.
 * @stay: jiffies after @until within which a posted request must have left the hardware: half
 *	of the entry's margin.
 * @rkey: remote key.
 * @access: KRP_ACCESS_*.
 */
struct krc_grant {
	u64 token;
	u64 addr;
	u64 length;
	unsigned long until;
	unsigned long stay;
	u32 rkey;
	u32 access;
};

/**
 * krc_grant_check() - Check a reference against an entry.
 * @grant: the entry.
 * @addr: first byte.
 * @length: bytes.
 * @access: KRP_ACCESS_REMOTE_*.
 *
 * Context: any.
 * Return: 0, -EPERM, -EOVERFLOW.
 */
static inline int krc_grant_check(const struct krc_grant *grant, u64 addr, u32 length, u32 access)
{
	if (access & ~grant->access)
		return -EPERM;
	if (!krp_mrdir_inside(grant->addr, grant->length, addr, length))
		return -EOVERFLOW;
	return 0;
}

/**
 * krc_grant_holds() - Whether a grant of an earlier request is for this token, too, and not over.
 * @grant: grant; with token 0 it is for none.
 * @token: region.
 *
 * Context: any.
 * Return: whether krc_grant_check() may be asked in place of krc_remote_get().
 */
static inline bool krc_grant_holds(const struct krc_grant *grant, u64 token)
{
	unsigned long now = jiffies;

	return token && grant->token == token && time_before(now, grant->until);
}

/**
 * struct krc_remote_wait - A request that waits for an entry of a peer's directory.
 * @list: in the entry's list of waits, or empty.
 * @token: token of the entry.
 * @payer: see struct krc_read.
 * @index: out: channel that the READ is on, for krc_pool_poll(), or KRC_READ_WAITS.
 * @ready: called once when the READ has ended, with 0 (ask again), or, as the final answer,
 *	the errors of struct krc_read or -EBADR (no such region). Runs with bottom halves off
 *	and krc_remote.lock held: must neither sleep nor call krc_remote_*().
 */
struct krc_remote_wait {
	struct list_head list;
	u64 token;
	const void *payer;
	u32 index;
	void (*ready)(struct krc_remote_wait *wait, int err);
};

/**
 * krc_remote_wait_init() - Initialize a wait.
 * @wait: out: a wait in no list.
 * @payer: its field of this name.
 * @ready: its field of this name.
 *
 * Context: any.
 */
void krc_remote_wait_init(struct krc_remote_wait *wait, const void *payer,
			  void (*ready)(struct krc_remote_wait *wait, int err));

/**
 * krc_remote_get() - Check a reference to a peer's memory and translate it into a key.
 * @remote: peer.
 * @token: region there.
 * @addr: first byte, as its owner sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_REMOTE_* needed.
 * @grant: in: an earlier answer of the same peer, or zeroes; checked first. Out, on success:
 *	the answer.
 * @wait: called when the directory had to be READ; not waiting now. NULL: do not READ.
 *
 * Concurrent callers that need the same entry share one READ. A caller whose @wait->ready got
 * 0 calls again.
 * Context: with @wait may sleep, for memory only; without, any that may take a BH-safe
 * spinlock. Inside krc_rail_enter().
 * Return: 0; -EINPROGRESS (@wait->ready will be called, or has been already); -EAGAIN (a READ
 * is needed, and @wait is NULL); -EBADR (no such region), -EPERM, -EOVERFLOW (outside it), -ENOMEM;
 * the errors of krc_pool_read().
 */
int krc_remote_get(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
		   struct krc_grant *grant, struct krc_remote_wait *wait);

/**
 * krc_remote_unwait() - Cancel a wait.
 * @remote: peer.
 * @wait: given to krc_remote_get() with the same @remote.
 *
 * Context: any that may take a BH-safe spinlock; the port must exist but need not be entered.
 * Afterwards ready() is not running and will not be called.
 */
void krc_remote_unwait(struct krc_remote *remote, struct krc_remote_wait *wait);

/**
 * krc_remote_forget() - Drop all cached entries of a peer.
 * @remote: peer whose generation changed or that does not answer.
 *
 * Entries being READ now are not cached either.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_remote_forget(struct krc_remote *remote);

/**
 * krc_remote_forget_token() - Drop the cached entry of one region, whose key was refused.
 * @remote: peer.
 * @token: region.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_remote_forget_token(struct krc_remote *remote, u64 token);

/**
 * krc_remote_forgets() - How often something of a peer was forgotten.
 * @remote: peer.
 *
 * A grant that was got since this number last changed is as good as one of the cache.
 * Context: any.
 * Return: the number.
 */
u64 krc_remote_forgets(const struct krc_remote *remote);

/**
 * krc_grant_refresh() - Give a grant up if something of its peer was forgotten since it was got.
 * @grant: grant of an earlier request of a queue.
 * @forgets: krc_remote_forgets() at the last call; brought up to date.
 * @remote: peer.
 *
 * Context: any; the caller serializes the uses of @grant.
 */
static inline void krc_grant_refresh(struct krc_grant *grant, u64 *forgets,
				     const struct krc_remote *remote)
{
	u64 now = krc_remote_forgets(remote);

	if (*forgets != now)
		grant->token = 0;
	*forgets = now;
}

/**
 * krc_remote_regions() - Number of a peer's regions that are cached, for diagnostics.
 * @remote: peer.
 *
 * Context: any.
 * Return: the number.
 */
u32 krc_remote_regions(struct krc_remote *remote);

#endif /* KRC_REMOTE_H */
