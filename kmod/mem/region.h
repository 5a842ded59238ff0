/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: memory. The regions that programs of this node registered, the directory in
 * which peers find those open to them, and the check of references to peers' regions.
 *
 * Locking: a region belongs to its context, which finds it and counts its users; the
 * rest is the directory's mutex. References to a peer have a BH-safe spinlock of their
 * own. See each function.
 */
#ifndef KRC_REGION_H
#define KRC_REGION_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

#include "base/limits.h"
#include "hw/provider.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

struct krc_mrdir;
struct krc_port;
struct krc_remote;
struct krc_standing;

/**
 * struct krc_mr - A region.
 * @ref: users: the context, and every request under way.
 * @port: whose hardware knows it; counted, but it may be dead.
 * @dir: directory of the port; counted, but it may be dead.
 * @umem: pinned pages, mapped for the port's device.
 * @charge: the region and whom it is charged to, until its pages have been given back.
 * @key: keys.
 * @addr: first byte, as the process sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_*.
 * @token: name for peers, 0 if closed to them. Does not change.
 * @slot: the slot and who pays for it, while it is published.
 * @published: it is in the directory now.
 * @until: jiffies until which peers may refer to it, once it is not published.
 * @idle: completed when the last user has gone.
 * @claimed: somebody releases it, or has done so.
 * @released: completed when neither key nor pages are left.
 * @list: of the directory's: all regions with hardware, or those that are dying.
 *
 * claimed, slot, published, until and list are under the directory's mutex; umem and charge are
 * its who releases it; the rest does not change.
 */
struct krc_mr {
	struct kref ref;
	struct krc_port *port;
	struct krc_mrdir *dir;
	struct ib_umem *umem;
	struct krc_charge charge;
	struct krc_hw_key key;
	u64 addr;
	u64 length;
	u32 access;
	u64 token;
	struct krc_charge slot;
	bool published;
	unsigned long until;
	struct completion idle;
	bool claimed;
	struct completion released;
	struct list_head list;
};

/**
 * krc_mrdir_create() - Make the directory of a port: slots, published memory, key.
 * @port: port with ops, hw, ibdev and generation set; outlives the directory.
 * @value: out: mrdir_addr and mrdir_rkey.
 *
 * Context: may sleep.
 * Return: the directory, or ERR_PTR: -ENOMEM, the errors of ops->key_pages().
 */
struct krc_mrdir *krc_mrdir_create(struct krc_port *port, struct krp_value *value);

/**
 * krc_mrdir_retire() - Close every region of the port to peers, and open none any more.
 * @mrdir: directory.
 *
 * Peers READ of each that it is not there. Context: may sleep.
 */
void krc_mrdir_retire(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_wait() - Wait until no peer may refer to a region any more.
 * @mrdir: directory, retired.
 *
 * At most KRP_MRDIR_LEASE_MS and krc_port.margin_ms; not at all if the device is down, or no
 * region was open. Context: may sleep.
 */
void krc_mrdir_wait(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_destroy() - Release every region of the port (the device goes) and the
 * directory.
 * @mrdir: directory.
 *
 * All requests have been completed before (krc_pool_stop()); leases are krc_mrdir_wait()'s,
 * and who waits for one in krc_mr_dereg() is woken. Regions that contexts still hold
 * stay as memory without key. Nothing is left to be done in the background. Context:
 * may sleep.
 */
void krc_mrdir_destroy(struct krc_mrdir *mrdir);

/**
 * krc_mr_reg() - Register memory of the calling process.
 * @port: port, counted by the caller, and not entered: the pages are waited for first, and
 *	how long that takes may be up to a program.
 * @user: whom the region is charged to.
 * @reg: in: addr, length, access; checked here. out: token. handle is the context's.
 *
 * Pins pages within RLIMIT_MEMLOCK. Context: may sleep, for ever but for a kill; nothing held
 * that others need.
 * Return: the region, or ERR_PTR: -EINVAL (length 0, past the end of the address space,
 * access bits that are unknown or need others), -EOPNOTSUPP (the device has no
 * atomics), -EDQUOT (limit or share of the user), -EFAULT (not mapped, or not writable), -ENOMEM
 * (also: RLIMIT_MEMLOCK), -ENOSPC (no slot for this user), -ENODEV, -EINTR (killed), the errors of
 * ops->key_umem().
 */
struct krc_mr *krc_mr_reg(struct krc_port *port, struct krc_user *user, struct krp_mr_reg *reg);

/**
 * krc_mr_dereg() - Take regions back and drop the context's references.
 * @mrs: regions, none of them twice; no longer found by new requests.
 * @count: how many.
 * @wait: wait until it is done; else it is done in the background (process death).
 *
 * Waits for requests under way, and, if one was open to peers, KRP_MRDIR_LEASE_MS and
 * krc_port.margin_ms, once for all of them. A caller that is killed does not wait any longer.
 * What was charged for a region is given back when its pages are. The port need not be
 * entered. Context: may sleep.
 */
void krc_mr_dereg(struct krc_mr **mrs, u32 count, bool wait);

/**
 * krc_mr_get() - One more request that uses a region.
 * @mr: region that has a user already.
 *
 * Context: any.
 */
void krc_mr_get(struct krc_mr *mr);

/**
 * krc_mr_put() - One less request that uses a region.
 * @mr: region.
 *
 * Context: any.
 */
void krc_mr_put(struct krc_mr *mr);

/**
 * krc_mr_check() - Whether a request may use a region locally.
 * @mr: region.
 * @addr: first byte.
 * @length: bytes.
 * @write: the NIC will write there (READ, atomics).
 *
 * Context: any.
 * Return: 0, -ERANGE, -EACCES.
 */
int krc_mr_check(const struct krc_mr *mr, u64 addr, u32 length, bool write);

/**
 * krc_remote_create() - References to regions of one peer, with their cache.
 * @port: port used; outlives it or is entered in every use.
 * @value: the peer's record: directory and generation.
 * @address: how it is reached; copied.
 *
 * Shared by all queues of this port to that peer. Context: may sleep.
 * Return: it, with one user, or ERR_PTR(-ENOMEM).
 */
struct krc_remote *krc_remote_create(struct krc_port *port, const struct krp_value *value,
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
 * spinlock; inside krc_port_enter().
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

#endif /* KRC_REGION_H */
