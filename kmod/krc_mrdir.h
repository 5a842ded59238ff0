/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what krc_mr.c and krc_mrdir.c share of a port's memory directory: who is in it,
 * and the list of regions whose hardware is still to be released.
 *
 * Locking: krc_mrdir.lock guards everything below it, and all calls of the provider's
 * key_umem and key_destroy. It may be held for as long as a firmware command takes.
 */
#ifndef KRC_MRDIR_H
#define KRC_MRDIR_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "krc_mr.h"

/**
 * struct krc_mrdir - Memory directory of a port.
 * @ref: the port, and every region.
 * @port: port; not counted: it outlives the directory until @dead.
 * @lock: see above.
 * @dead: the device is gone; nothing but memory is left.
 * @gone: woken when @dead is set.
 * @entries: what peers READ; KRP_MRDIR_SLOTS.
 * @dma: DMA address of it, which is also its address under the key.
 * @key: its key.
 * @slots: how many may be used.
 * @next: where the search for a free slot begins.
 * @used: slots in use.
 * @regions: regions with hardware that contexts hold.
 * @dying: regions that nobody holds any more, but for requests and peers.
 * @reap: releases those of @dying whose time has come.
 * @wq: where it runs.
 */
struct krc_mrdir {
	struct kref ref;
	struct krc_port *port;
	struct mutex lock; /* see the head of the file */
	bool dead;
	wait_queue_head_t gone;
	struct krp_mrdir_entry *entries;
	dma_addr_t dma;
	struct krc_hw_key key;
	u32 slots;
	u32 next;
	DECLARE_BITMAP(used, KRP_MRDIR_SLOTS);
	struct list_head regions;
	struct list_head dying;
	struct delayed_work reap;
	struct workqueue_struct *wq;
};

/**
 * krc_mrdir_entry_make() - Form the entry of a region.
 * @mr: region with key and token.
 * @generation: boot generation of the node.
 * @ret_entry: out: sealed entry.
 *
 * Context: any.
 */
void krc_mrdir_entry_make(const struct krc_mr *mr, u64 generation,
			  struct krp_mrdir_entry *ret_entry);

/**
 * krc_mrdir_publish() - Open a region to peers: take a slot, a token, write the entry.
 * @dir: directory, locked, not dead.
 * @mr: region with its key; gets token and published.
 *
 * Context: may sleep.
 * Return: 0, or -ENOSPC.
 */
int krc_mrdir_publish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mrdir_unpublish() - Close a region to peers; sets until.
 * @dir: directory, locked, not dead.
 * @mr: region; if it is not published, until is now.
 *
 * Context: may sleep.
 */
void krc_mrdir_unpublish(struct krc_mrdir *dir, struct krc_mr *mr);

/**
 * krc_mrdir_put() - One less user.
 * @dir: directory.
 *
 * Context: may sleep.
 */
void krc_mrdir_put(struct krc_mrdir *dir);

/**
 * krc_mr_reap() - Work: release dying regions.
 * @work: krc_mrdir.reap.
 *
 * Context: process.
 */
void krc_mr_reap(struct work_struct *work);

/**
 * krc_mr_release() - Destroy the key of a region and unpin its memory, if not done yet.
 * @mr: region, its directory locked.
 *
 * Context: may sleep.
 */
void krc_mr_release(struct krc_mr *mr);

/**
 * krc_mr_free() - Free a region without users and hardware.
 * @mr: region.
 *
 * Context: may sleep; the directory must not be locked.
 */
void krc_mr_free(struct krc_mr *mr);

#endif /* KRC_MRDIR_H */
