/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: memory. The regions that programs of this node registered, the directory in
 * which peers find those open to them, and the check of references to peers' regions.
 *
 * Locking: a region belongs to its context, which finds it and counts its users; the
 * rest is the directory's mutex. References to a peer have a BH-safe spinlock of their
 * own. See each function.
 */
#ifndef KRC_MR_H
#define KRC_MR_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

#include "krc_provider.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

struct krc_mrdir;
struct krc_port;
struct krc_remote;

/*
 * How long the key of a region outlives KRP_MRDIR_LEASE_MS: for requests of peers that
 * are on their way, with retransmissions. One that comes later is refused by the NIC.
 */
#define KRC_MR_MARGIN_MS 100

/**
 * struct krc_mr - A region.
 * @ref: users: the context, and every request under way.
 * @port: whose hardware knows it; counted, but it may be dead.
 * @dir: directory of the port; counted, but it may be dead.
 * @umem: pinned pages; NULL once they and the key have been released.
 * @key: keys.
 * @addr: first byte, as the process sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_*.
 * @token: name for peers, 0 if closed to them. Does not change.
 * @published: it is in the directory now.
 * @until: jiffies until which peers may refer to it, once it is not published.
 * @idle: completed when the last user has gone.
 * @list: of the directory's: all regions with hardware, or those that are dying.
 *
 * umem, published, until and list are under the directory's mutex; the rest does not
 * change.
 */
struct krc_mr {
	struct kref ref;
	struct krc_port *port;
	struct krc_mrdir *dir;
	struct ib_umem *umem;
	struct krc_hw_key key;
	u64 addr;
	u64 length;
	u32 access;
	u64 token;
	bool published;
	unsigned long until;
	struct completion idle;
	struct list_head list;
};

/**
 * krc_mrdir_create() - Make the directory of a port: slots, published memory, key.
 * @port: port with ops, hw, ibdev and generation set; outlives the directory.
 * @slots: most regions open to peers at once, 1 to KRP_MRDIR_SLOTS; 0 takes
 *	KRP_MRDIR_SLOTS. Peers can READ KRP_MRDIR_SLOTS entries in any case.
 * @value: out: mrdir_addr and mrdir_rkey.
 *
 * Context: may sleep.
 * Return: the directory, or ERR_PTR: -EINVAL, -ENOMEM, the errors of ops->key_dma().
 */
struct krc_mrdir *krc_mrdir_create(struct krc_port *port, u32 slots, struct krp_value *value);

/**
 * krc_mrdir_destroy() - Release every region of the port (the device goes) and the
 * directory.
 * @mrdir: directory.
 *
 * All requests have been completed before (krc_pool_stop()); no lease is waited for,
 * and who waits for one in krc_mr_dereg() is woken. Regions that contexts still hold
 * stay as memory without key. Nothing is left to be done in the background. Context:
 * may sleep.
 */
void krc_mrdir_destroy(struct krc_mrdir *mrdir);

/**
 * krc_mr_reg() - Register memory of the calling process.
 * @port: port, entered.
 * @reg: in: addr, length, access; checked here. out: token. handle is the context's.
 *
 * Pins pages within RLIMIT_MEMLOCK. Context: may sleep.
 * Return: the region, or ERR_PTR: -EINVAL (length 0, past the end of the address space,
 * access bits that are unknown or need others), -EOPNOTSUPP (the device has no
 * atomics), -EFAULT (not mapped, or not writable), -ENOMEM (also: RLIMIT_MEMLOCK),
 * -ENOSPC (no slot), -ENODEV, the errors of ops->key_umem().
 */
struct krc_mr *krc_mr_reg(struct krc_port *port, struct krp_mr_reg *reg);

/**
 * krc_mr_dereg() - Take a region back and drop the context's reference.
 * @mr: region; no longer found by new requests.
 * @wait: wait until it is done; else it is done in the background (process death).
 *
 * Waits for requests under way, and, if it was open to peers, KRP_MRDIR_LEASE_MS and
 * KRC_MR_MARGIN_MS; regions that are taken back together wait together. A caller that
 * is killed does not wait any longer. The port need not be entered. Context: may sleep.
 */
void krc_mr_dereg(struct krc_mr *mr, bool wait);

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
 * Return: it, or ERR_PTR(-ENOMEM).
 */
struct krc_remote *krc_remote_create(struct krc_port *port, const struct krp_value *value,
				     const struct krc_hw_address *address);

/**
 * krc_remote_destroy() - Free it; nobody uses it any more.
 * @remote: peer.
 *
 * Context: may sleep.
 */
void krc_remote_destroy(struct krc_remote *remote);

/**
 * struct krc_grant - What a peer's directory allows until then.
 * @token: region; 0: nothing is allowed.
 * @addr: first byte.
 * @length: bytes.
 * @until: jiffies until which the key may be posted to the hardware.
 * @rkey: key.
 * @access: KRP_ACCESS_*.
 */
struct krc_grant {
	u64 token;
	u64 addr;
	u64 length;
	unsigned long until;
	u32 rkey;
	u32 access;
};

/**
 * krc_remote_get() - Check a reference to a peer's memory and turn it into a key.
 * @remote: peer.
 * @token: region there.
 * @addr: first byte, as its owner sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_REMOTE_* needed.
 * @timeout_ms: if the directory must be READ; 0: don't, return -EAGAIN.
 * @grant: in: an earlier answer of the same peer, or zeroes; it is asked first. Out, unless
 *	it fails: the answer.
 *
 * Callers that need the same entry at once share one READ.
 * Context: may sleep if @timeout_ms, else any that may take a BH-safe spinlock; inside
 * krc_port_enter().
 * Return: 0; -EAGAIN; -EBADR (no such region), -EPERM, -EOVERFLOW (outside it); the errors
 * of krc_pool_read().
 */
int krc_remote_get(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
		   u32 timeout_ms, struct krc_grant *grant);

/**
 * krc_remote_forget() - Forget what is cached of a peer.
 * @remote: peer whose generation changed or that does not answer.
 *
 * What is being READ now is not remembered either.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_remote_forget(struct krc_remote *remote);

/* Whether the peer did not answer when it was last asked: who asks it is in quarantine. */
bool krc_remote_silent(const struct krc_remote *remote);
void krc_remote_set_silent(struct krc_remote *remote, bool silent);

/**
 * krc_remote_regions() - How many of a peer's regions are cached, for people.
 * @remote: peer.
 *
 * Context: any.
 * Return: the number.
 */
u32 krc_remote_regions(struct krc_remote *remote);

#endif /* KRC_MR_H */
