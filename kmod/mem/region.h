/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the regions of memory that programs of this node registered.
 *
 * Locking: a region belongs to its context, which finds it and counts its users; the
 * rest is the directory's mutex, see mem/mem_priv.h.
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

/**
 * struct krc_mr - A region.
 * @ref: users: the context, and every request under way.
 * @dir: directory of the port whose hardware knows it; counted with its rail, but it may be
 *	dead.
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
 * krc_mr_reg() - Register memory of the calling process.
 * @mrdir: directory of the port, which the caller counts and has not entered: the pages are
 *	waited for first, and how long that takes may be up to a program.
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
struct krc_mr *krc_mr_reg(struct krc_mrdir *mrdir, struct krc_user *user, struct krp_mr_reg *reg);

/**
 * krc_mr_dereg() - Take regions back and drop the context's references.
 * @mrs: regions, none of them twice; no longer found by new requests.
 * @count: how many.
 * @wait: wait until it is done; else it is done in the background (process death).
 *
 * Waits for requests under way, and, if one was open to peers, KRP_MRDIR_LEASE_MS and
 * krc_rail.margin_ms, once for all of them. A caller that is killed does not wait any longer.
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

#endif /* KRC_REGION_H */
