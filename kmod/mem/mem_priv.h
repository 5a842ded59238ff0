/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what mem/region.c and mem/directory.c share of a port's memory directory: who is in it,
 * and the list of regions whose hardware is still to be released.
 *
 * Locking: krc_mrdir.lock guards everything below it. It is never held over a command to
 * the firmware nor while pages are pinned or given back: registrations of others, and the
 * end of the port, wait for it.
 */
#ifndef KRC_MEM_PRIV_H
#define KRC_MEM_PRIV_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "hw/rail.h"
#include "mem/directory.h"
#include "mem/region.h"

/**
 * struct krc_mrdir - Memory directory of a port.
 * @ref: the port, and every region.
 * @rail: of the port; not counted: the port and each region count it.
 * @lock: see above.
 * @retired: the port ends: nothing is opened to peers any more.
 * @dead: the device is gone; nothing but memory is left.
 * @gone: woken when @dead is set, and when a region has been released.
 * @releasing: regions whose key and pages are being released.
 * @entries: what peers READ; KRP_MRDIR_SLOTS.
 * @pages: DMA addresses of the pages that hold them; NULL: no device reads them (tests).
 * @key: its key.
 * @slots: how many there are: KRP_MRDIR_SLOTS, fewer in tests.
 * @next: where the search for a free slot begins.
 * @used: slots in use.
 * @used_nr: how many.
 * @regions: regions with hardware that contexts hold.
 * @dying: regions that nobody holds any more, but for requests and peers.
 * @reap: releases those of @dying whose time has come.
 * @wq: where it runs.
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
	struct workqueue_struct *wq;
};

/**
 * krc_mrdir_entry_make() - Form the entry of a region.
 * @mr: region with key and token.
 * @generation: boot generation of the node.
 * @margin_ms: how long the key outlives the lease.
 * @ret_entry: out: sealed entry.
 *
 * Context: any.
 */
void krc_mrdir_entry_make(const struct krc_mr *mr, u64 generation, u32 margin_ms,
			  struct krp_mrdir_entry *ret_entry);

/**
 * krc_mrdir_publish() - Open a region to peers: take a slot, a token, write the entry.
 * @dir: directory, locked, not dead.
 * @mr: region with its key and its user, who pays; gets token and published.
 *
 * Context: may sleep.
 * Return: 0, -ENODEV (the directory has been retired), or the errors of krc_charge_share().
 */
int krc_mrdir_publish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mrdir_unpublish() - Close a region to peers; sets until.
 * @dir: directory, locked, not dead.
 * @mr: region; if it never was published, until is now; if it is not any more, until stays.
 *
 * Context: may sleep.
 */
void krc_mrdir_unpublish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mr_reap() - Work: release dying regions.
 * @work: krc_mrdir.reap.
 *
 * Context: process.
 */
void krc_mr_reap(struct work_struct *work);

/**
 * krc_mr_left() - How long peers may still refer to a region that is closed to them.
 * @mr: region, closed, its directory locked or its context's.
 *
 * Context: any.
 * Return: jiffies, 0 if they may not any more.
 */
unsigned long krc_mr_left(const struct krc_mr *mr);

/**
 * krc_mr_claim() - Take it on oneself to release a region.
 * @mr: region, its directory locked.
 *
 * Context: may sleep.
 * Return: true: the caller must call krc_mr_release_claimed(); false: somebody else does.
 */
bool krc_mr_claim(struct krc_mr *mr);

/**
 * krc_mr_release_claimed() - Destroy the key of a region, unpin its memory, give back its
 * charge.
 * @mr: region, claimed; peers and requests are done with it. It may be gone afterwards, if
 *	the caller does not hold it.
 *
 * Context: may sleep; the directory must not be locked.
 */
void krc_mr_release_claimed(struct krc_mr *mr);

/**
 * krc_mr_free() - Free a region without users and hardware.
 * @mr: region.
 *
 * Context: may sleep; the directory must not be locked.
 */
void krc_mr_free(struct krc_mr *mr);

#endif /* KRC_MEM_PRIV_H */
