/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what mem/region.c and mem/directory.c share of a port's memory directory: its regions,
 * and the list of those whose key and pages are still to be released.
 *
 * Locking: krc_mrdir.lock guards the fields after it. It is never held across a firmware
 * command or while pages are pinned or unpinned, since registrations of others and the end
 * of the port wait for it.
 */
#ifndef KRC_MEM_PRIV_H
#define KRC_MEM_PRIV_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "base/turns.h"
#include "hw/rail.h"
#include "mem/directory.h"
#include "mem/region.h"

#define KRC_MRDIR_RELEASES 4 /* releases of regions that are under way, if no task waits for them */

/**
 * struct krc_mrdir - Memory directory of a port.
 * @ref: users: the port, and every region.
 * @rail: rail of the port; not counted here: the port and each region count it.
 * @lock: see above.
 * @retired: the port is ending: no region is published any more.
 * @dead: the device is gone; only memory is left.
 * @gone: woken when @dead is set, and when a region has been released.
 * @releasing: regions whose key and pages are being released.
 * @entries: KRP_MRDIR_SLOTS entries, which peers READ.
 * @pages: DMA addresses of the pages of @entries; NULL: no device reads them (tests).
 * @key: key of @entries.
 * @slots: usable slots: KRP_MRDIR_SLOTS, fewer in tests.
 * @next: slot at which the search for a free one begins.
 * @used: bitmap of slots in use.
 * @used_nr: number of slots in use.
 * @regions: regions with a key that contexts hold.
 * @dying: deregistered regions that requests or peers may still use.
 * @reap: has regions of @dying released that are unused.
 * @releases: turns at that, by payers: one with many regions, or large ones, delays others by the
 *	releases that are under way.
 * @wq: runs @reap and @releases.
 */
struct krc_mrdir {
	struct kref ref;
	struct krc_rail *rail;
	struct mutex lock; /* see the head of the file */
	bool retired;
	bool dead;
	wait_queue_head_t gone;
	u32 releasing;
	struct krp_mrdir_entry *entries;
	dma_addr_t *pages;
	struct krc_hw_key key;
	u32 slots;
	u32 next;
	DECLARE_BITMAP(used, KRP_MRDIR_SLOTS);
	u32 used_nr;
	struct list_head regions;
	struct list_head dying;
	struct delayed_work reap;
	struct krc_turns releases;
	struct workqueue_struct *wq;
};

/**
 * krc_mrdir_entry_make() - Build the directory entry of a region.
 * @mr: region with key and token.
 * @generation: boot generation of the node.
 * @margin_ms: time that the key outlives the lease.
 * @ret_entry: out: sealed entry.
 *
 * Context: any.
 */
void krc_mrdir_entry_make(const struct krc_mr *mr, u64 generation, u32 margin_ms,
			  struct krp_mrdir_entry *ret_entry);

/**
 * krc_mrdir_publish() - Open a region to peers: allocate slot and token, write the entry.
 * @dir: directory, locked, not dead.
 * @mr: region with its key, and charged to the user that pays for the slot; sets token,
 *	slot and published.
 *
 * Context: may sleep.
 * Return: 0, -ENODEV (the directory has been retired), or the errors of krc_charge_share().
 */
int krc_mrdir_publish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mrdir_unpublish() - Close a region to peers; sets until.
 * @dir: directory, locked, not dead.
 * @mr: region; if it never was published, until is set to now; if it was unpublished before,
 *	until stays.
 *
 * Context: may sleep.
 */
void krc_mrdir_unpublish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mr_open() - Create the key of a region and, if it is remote, its directory entry.
 * @mr: region with pinned pages, which nobody else knows.
 *
 * On failure the region has no key and no entry, and its pages are not mapped for the device; where
 * a key was made that can't be destroyed, umem is NULL, and the pages stay pinned and mapped for
 * good.
 * Context: may sleep; the port entered, the directory not locked.
 * Return: 0; -EIO (a part of a key can't be destroyed); the errors of krc_umem_map(),
 * krc_provider_ops.key_umem() and krc_mrdir_publish().
 */
int krc_mr_open(struct krc_mr *mr);

/**
 * krc_mr_reap() - Work: have dying regions released that nobody uses, each in a turn of its payer.
 * @work: krc_mrdir.reap.
 *
 * Context: process.
 */
void krc_mr_reap(struct work_struct *work);

/**
 * krc_mr_left() - How long peers may still refer to an unpublished region.
 * @mr: region; its directory is locked, or the caller has deregistered it.
 *
 * Context: any.
 * Return: jiffies, 0 if peers may not refer to it any more.
 */
unsigned long krc_mr_left(const struct krc_mr *mr);

/**
 * krc_mr_claim() - Claim the release of a region.
 * @mr: region, its directory locked.
 *
 * Context: may sleep.
 * Return: true: the caller must call krc_mr_release_claimed(); false: another task does.
 */
bool krc_mr_claim(struct krc_mr *mr);

/**
 * krc_mr_release_claimed() - Destroy the key of a region, unpin its memory, uncharge it.
 * @mr: region, claimed; peers and requests are done with it. Unless the caller holds it, it
 *	may be freed on return.
 *
 * Context: may sleep; the directory must not be locked.
 */
void krc_mr_release_claimed(struct krc_mr *mr);

/**
 * krc_mr_free() - Free a region that has no users, and whose key and pages are released.
 * @mr: region.
 *
 * Context: may sleep; the directory must not be locked.
 */
void krc_mr_free(struct krc_mr *mr);

#endif /* KRC_MEM_PRIV_H */
