/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the memory regions that programs of this node, and clients in its kernel, have registered.
 *
 * Locking: the context that owns a region looks it up and counts its users; the rest is
 * guarded by the directory's mutex, see mem/mem_priv.h.
 */
#ifndef KRC_REGION_H
#define KRC_REGION_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

#include "base/limits.h"
#include "base/turns.h"
#include "hw/provider.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

struct krc_mrdir;
struct page;

/**
 * struct krc_mr - A region.
 * @ref: users: the context, and every request in flight.
 * @dir: directory of the port that holds the key; @dir and its rail are counted, but @dir may
 *	be dead.
 * @umem: pinned or held pages, mapped for the port's device.
 * @charge: charge of the region to its user, until the pages have been unpinned.
 * @key: local and remote key.
 * @addr: first byte, as the process sees it; 0 for pages of the kernel.
 * @length: bytes.
 * @access: KRP_ACCESS_*.
 * @token: name for peers, 0 if it never was open to them. Constant once registered.
 * @slot: charge of the directory slot, while @published.
 * @published: the region is in the directory.
 * @until: jiffies until which peers may refer to it after it was unpublished.
 * @idle: completed when the last user has gone.
 * @claimed: a task releases the region, or has released it.
 * @released: completed when key and pages are released.
 * @list: in krc_mrdir.regions or krc_mrdir.dying.
 * @turn: its release, if no task waits for it.
 *
 * claimed, slot, published, until and list are guarded by the directory's mutex; umem and
 * charge belong to the task that has claimed the region; the rest is constant.
 */
struct krc_mr {
	struct kref ref;
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
	struct krc_turn turn;
};

/**
 * krc_mr_reg() - Register memory of the calling process.
 * @mrdir: directory of the port; the caller counts the port but has not entered it, since
 *	pinning may wait for a program (FUSE, userfaultfd) without limit.
 * @user: user that the region is charged to.
 * @reg: in: addr, length, access; checked here. out: token. handle is set by the context.
 *
 * Pins pages within RLIMIT_MEMLOCK. Context: may sleep without limit, but killable; hold
 * nothing that others need.
 * Return: the region, or ERR_PTR: -EINVAL (length 0, past the end of the address space,
 * access bits that are unknown or need others), -EOPNOTSUPP (the device has no
 * atomics), -EDQUOT (limit or share of the user), -EFAULT (not mapped, or not writable), -ENOMEM
 * (also: RLIMIT_MEMLOCK), -ENOSPC (no slot for this user), -ENODEV, -EINTR (killed), the errors of
 * ops->key_umem().
 */
struct krc_mr *krc_mr_reg(struct krc_mrdir *mrdir, struct krc_user *user, struct krp_mr_reg *reg);

/**
 * krc_mr_reg_pages() - Register pages of the kernel.
 * @mrdir: directory of the port; the caller counts the port.
 * @user: user that the region is charged to.
 * @pages: see krc_umem_hold(); the array is not kept.
 * @nr: how many.
 * @access: KRP_ACCESS_*.
 *
 * The region begins at address 0, for its owner and for peers, so that nobody learns where it is in
 * the kernel. Its pages are counted until its end.
 * Context: may sleep.
 * Return: the region, or ERR_PTR: -EINVAL (@nr is 0, access bits as for krc_mr_reg(), or pages that
 * krc_umem_hold() does not take), -EOPNOTSUPP, -EDQUOT, -ENOMEM, -ENOSPC, -ENODEV, -EINTR (the
 * calling task was killed), the errors of ops->key_umem().
 */
struct krc_mr *krc_mr_reg_pages(struct krc_mrdir *mrdir, struct krc_user *user,
				struct page *const *pages, u32 nr, u32 access);

/**
 * krc_mr_dereg() - Deregister regions and drop the context's references.
 * @mrs: distinct regions, which new requests can't find any more.
 * @count: length of @mrs.
 * @wait: wait for completion; else it happens in the background (process death).
 *
 * Waits for requests in flight, and, if a region was open to peers, KRP_MRDIR_LEASE_MS and
 * krc_rail.margin_ms, once for all regions. A fatal signal ends the wait; the rest happens in
 * the background. A region is uncharged when its pages are unpinned. The port need not be
 * entered. Context: may sleep.
 */
void krc_mr_dereg(struct krc_mr **mrs, u32 count, bool wait);

/**
 * krc_mr_get() - Take references for requests.
 * @mr: region that has a user already.
 * @count: how many, from 1.
 *
 * Context: any.
 */
void krc_mr_get(struct krc_mr *mr, u32 count);

/**
 * krc_mr_put() - Drop references of requests.
 * @mr: region.
 * @count: how many, from 1.
 *
 * Context: any.
 */
void krc_mr_put(struct krc_mr *mr, u32 count);

/**
 * krc_mr_check() - Check a request's local use of a region.
 * @mr: region.
 * @addr: first byte.
 * @length: bytes.
 * @write: the NIC will write there (READ, atomics).
 *
 * Context: any.
 * Return: 0, -ERANGE (outside the region), -EACCES (not writable).
 */
static inline int krc_mr_check(const struct krc_mr *mr, u64 addr, u32 length, bool write)
{
	if (!krp_mrdir_inside(mr->addr, mr->length, addr, length))
		return -ERANGE;
	if (write && !(mr->access & KRP_ACCESS_LOCAL_WRITE))
		return -EACCES;
	return 0;
}

#endif /* KRC_REGION_H */
