/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: memory. The regions that programs of this node registered, the directory in
 * which peers find those open to them, and the check of references to peers' regions.
 *
 * Locking: a region is found under RCU and counted; see each function.
 */
#ifndef KRC_MR_H
#define KRC_MR_H

#include <linux/kref.h>
#include <linux/types.h>

#include "krc_provider.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

struct krc_mrdir;
struct krc_port;
struct krc_remote;

/**
 * struct krc_mr - A region.
 * @ref: users: the context, and every request under way.
 * @port: whose hardware knows it.
 * @umem: pinned pages.
 * @key: keys.
 * @addr: first byte, as the process sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_*.
 * @token: name for peers, 0 if closed to them.
 * @idle: completed when the last request has gone.
 * @list: in the directory's list of all regions of the port.
 */
struct krc_mr {
	struct kref ref;
	struct krc_port *port;
	struct ib_umem *umem;
	struct krc_hw_key key;
	u64 addr;
	u64 length;
	u32 access;
	u64 token;
	struct completion idle;
	struct list_head list;
};

/**
 * krc_mrdir_create() - Make the directory of a port: slots, published memory, key.
 * @port: port with ops and hw set.
 * @slots: power of two, at most 1 << KRP_MRDIR_LOG2_MAX.
 * @value: out: mrdir_addr and mrdir_rkey.
 *
 * Context: may sleep.
 * Return: the directory or ERR_PTR.
 */
struct krc_mrdir *krc_mrdir_create(struct krc_port *port, u32 slots, struct krp_value *value);

/**
 * krc_mrdir_destroy() - Release every region of the port (the device goes) and the
 * directory.
 * @mrdir: directory.
 *
 * All requests have been completed before (krc_pool_stop()); no lease is waited for.
 * Regions that contexts still hold stay as memory without key. Context: may sleep.
 */
void krc_mrdir_destroy(struct krc_mrdir *mrdir);

/**
 * krc_mr_reg() - Register memory of the calling process.
 * @port: port, entered.
 * @reg: in: addr, length, access; checked here. out: token. handle is the context's.
 *
 * Pins pages within RLIMIT_MEMLOCK. Context: may sleep.
 * Return: the region, or ERR_PTR: -EINVAL, -EFAULT, -ENOMEM (also: RLIMIT_MEMLOCK),
 * -ENOSPC (no slot), -ENODEV.
 */
struct krc_mr *krc_mr_reg(struct krc_port *port, struct krp_mr_reg *reg);

/**
 * krc_mr_dereg() - Take a region back and drop the context's reference.
 * @mr: region; no longer found by new requests.
 * @wait: wait until it is done; else it is done in the background (process death).
 *
 * Waits for requests under way, and KRP_MRDIR_LEASE_MS if it was open to peers.
 * Context: may sleep.
 */
void krc_mr_dereg(struct krc_mr *mr, bool wait);

/* One more, one less request that uses a region. Any context. */
void krc_mr_get(struct krc_mr *mr);
void krc_mr_put(struct krc_mr *mr);

/**
 * krc_mr_check() - Whether a request may use a region locally.
 * @mr: region.
 * @addr: first byte.
 * @length: bytes.
 * @write: the NIC will write there (READ, atomics).
 *
 * Return: 0, -ERANGE, -EACCES.
 */
int krc_mr_check(const struct krc_mr *mr, u64 addr, u32 length, bool write);

/**
 * krc_remote_create() - References to regions of one peer, with their cache.
 * @port: port used.
 * @value: the peer's record.
 * @address: its address vector.
 *
 * Shared by all queues of this port to that peer. Context: may sleep.
 * Return: it, or ERR_PTR(-ENOMEM).
 */
struct krc_remote *krc_remote_create(struct krc_port *port, const struct krp_value *value,
				     const struct krc_hw_address *address);
void krc_remote_destroy(struct krc_remote *remote);

/**
 * krc_remote_get() - Check a reference to a peer's memory and turn it into a key.
 * @remote: peer.
 * @token: region there.
 * @addr: first byte, as its owner sees it.
 * @length: bytes.
 * @access: KRP_ACCESS_REMOTE_* needed.
 * @timeout_ms: if the directory must be READ; 0: don't, return -EAGAIN.
 * @ret_rkey: out: key.
 * @ret_until: out: jiffies until which it may be posted.
 *
 * Context: may sleep if @timeout_ms; inside krc_port_enter().
 * Return: 0; -EAGAIN; -EBADR (no such region), -EPERM, -EOVERFLOW (outside it); the errors
 * of krc_pool_read().
 */
int krc_remote_get(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
		   u32 timeout_ms, u32 *ret_rkey, unsigned long *ret_until);

/* Forget what is cached of a peer: its generation changed or it does not answer. */
void krc_remote_forget(struct krc_remote *remote);

#endif /* KRC_MR_H */
