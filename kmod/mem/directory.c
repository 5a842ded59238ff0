// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the directory of a port's memory regions as peers READ it (krp_mrdir.h), its slots
 * and tokens, and its end, which releases all regions of the port.
 * Locking: see mem/mem_priv.h.
 */
#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hw/dma.h"
#include "mem/mem_priv.h"

#define KRC_MRDIR_DOWN_MS 50 /* how often to check whether the device is down */
#define KRC_MRDIR_BYTES ((size_t)KRP_MRDIR_SLOTS * KRP_MRDIR_ENTRY_BYTES)
#define KRC_MRDIR_PAGES DIV_ROUND_UP(KRC_MRDIR_BYTES, PAGE_SIZE)
#define KRC_MRDIR_IOVA (1ULL << 32) /* IOVA of the entries; any but 0 */

static void krc_mrdir_free(struct kref *ref)
{
	kfree(container_of(ref, struct krc_mrdir, ref));
}

void krc_mrdir_put(struct krc_mrdir *mrdir)
{
	kref_put(&mrdir->ref, krc_mrdir_free);
}

static void krc_mrdir_entry_free(struct krp_mrdir_entry *ret_entry)
{
	memset(ret_entry, 0, sizeof(*ret_entry));
	ret_entry->state = KRP_MRDIR_FREE;
	krp_mrdir_seal(ret_entry);
}

void krc_mrdir_entry_make(const struct krc_mr *mr, u64 generation, u32 margin_ms,
			  struct krp_mrdir_entry *ret_entry)
{
	memset(ret_entry, 0, sizeof(*ret_entry));
	ret_entry->token = cpu_to_le64(mr->token);
	ret_entry->addr = cpu_to_le64(mr->addr);
	ret_entry->length = cpu_to_le64(mr->length);
	ret_entry->rkey = cpu_to_le32(mr->key.rkey);
	ret_entry->access = mr->access & KRP_ACCESS_ALL;
	ret_entry->state = KRP_MRDIR_LIVE;
	ret_entry->lease_ms = cpu_to_le32(KRP_MRDIR_LEASE_MS);
	ret_entry->margin_ms = cpu_to_le32(margin_ms);
	ret_entry->generation = cpu_to_le64(generation);
	krp_mrdir_seal(ret_entry);
}

/* Peers may READ the slot at any moment: the checksum tells them of a torn entry. */
static void krc_mrdir_write(struct krc_mrdir *dir, u32 slot, const struct krp_mrdir_entry *entry)
{
	size_t at = slot * sizeof(*entry);

	memcpy(&dir->entries[slot], entry, sizeof(*entry));
	if (dir->pages)
		krc_dma_sync_for_device(dir->rail->ops->dma_device(dir->rail->hw),
					dir->pages[at >> PAGE_SHIFT], offset_in_page(at),
					sizeof(*entry), DMA_TO_DEVICE);
	mb(); /* visible to the NIC before the token is handed out or the lease begins */
}

static u64 krc_mrdir_token(u32 slot)
{
	u64 token;

	do {
		token = get_random_u64() >> KRP_MRDIR_LOG2_MAX << KRP_MRDIR_LOG2_MAX;
	} while (!token);
	return token | slot;
}

int krc_mrdir_publish(struct krc_mrdir *dir, struct krc_mr *mr)
{
	struct krp_mrdir_entry entry;
	u32 slot;
	int err;

	if (dir->retired)
		return -ENODEV;
	err = krc_charge_share(mr->charge.user, KRC_RES_SLOT, dir->slots, dir->used_nr, &mr->slot);
	if (err)
		return err;
	/* round robin: a freed slot is reused as late as possible */
	slot = find_next_zero_bit(dir->used, dir->slots, dir->next);
	if (slot >= dir->slots)
		slot = find_first_zero_bit(dir->used, dir->slots);
	__set_bit(slot, dir->used);
	dir->used_nr++;
	dir->next = slot + 1 < dir->slots ? slot + 1 : 0;

	mr->token = krc_mrdir_token(slot);
	mr->published = true;
	krc_mrdir_entry_make(mr, dir->rail->generation, dir->rail->margin_ms, &entry);
	krc_mrdir_write(dir, slot, &entry);
	return 0;
}

void krc_mrdir_unpublish(struct krc_mrdir *dir, struct krc_mr *mr)
{
	u32 slot = krp_mrdir_slot(mr->token);
	struct krp_mrdir_entry entry;

	if (!mr->token)
		mr->until = jiffies;
	if (!mr->published)
		return;
	krc_mrdir_entry_free(&entry);
	krc_mrdir_write(dir, slot, &entry);
	mr->published = false;
	mr->until = jiffies + msecs_to_jiffies(KRP_MRDIR_LEASE_MS + dir->rail->margin_ms) + 1;
	__clear_bit(slot, dir->used);
	dir->used_nr--;
	krc_uncharge(&mr->slot);
}

/* ---- memory: too large for one contiguous allocation, so the key maps single pages. */

static void krc_mrdir_free_memory(struct krc_mrdir *dir, u32 mapped)
{
	struct device *dev = dir->rail->ops->dma_device(dir->rail->hw);

	while (mapped)
		krc_dma_unmap_page(dev, dir->pages[--mapped], DMA_TO_DEVICE);
	kvfree(dir->pages);
	dir->pages = NULL;
	vfree(dir->entries);
	dir->entries = NULL;
}

/* Allocate the memory that peers READ, fill it with free entries, map it for the device. */
static int krc_mrdir_make_memory(struct krc_mrdir *dir)
{
	struct device *dev = dir->rail->ops->dma_device(dir->rail->hw);
	struct krp_mrdir_entry entry;
	u32 i;

	dir->entries = vzalloc(KRC_MRDIR_PAGES * PAGE_SIZE);
	dir->pages = kvcalloc(KRC_MRDIR_PAGES, sizeof(*dir->pages), GFP_KERNEL);
	if (!dir->entries || !dir->pages) {
		krc_mrdir_free_memory(dir, 0);
		return -ENOMEM;
	}
	krc_mrdir_entry_free(&entry);
	for (i = 0; i < KRP_MRDIR_SLOTS; i++)
		memcpy(&dir->entries[i], &entry, sizeof(entry));
	for (i = 0; i < KRC_MRDIR_PAGES; i++) {
		void *page = (void *)dir->entries + i * PAGE_SIZE;

		if (krc_dma_map_page(dev, vmalloc_to_page(page), DMA_TO_DEVICE, &dir->pages[i])) {
			krc_mrdir_free_memory(dir, i);
			return -ENOMEM;
		}
	}
	return 0;
}

static int krc_mrdir_map(struct krc_mrdir *dir)
{
	struct krc_rail *rail = dir->rail;
	int err = krc_mrdir_make_memory(dir);

	if (err)
		return err;
	err = rail->ops->key_pages(rail->hw, dir->pages, KRC_MRDIR_PAGES, KRC_MRDIR_IOVA,
				   KRP_ACCESS_REMOTE_READ, &dir->key);
	if (err)
		krc_mrdir_free_memory(dir, KRC_MRDIR_PAGES);
	return err;
}

/* If the key can't be destroyed, peers may still READ the memory, so it is not freed. */
static void krc_mrdir_unmap(struct krc_mrdir *dir)
{
	if (dir->rail->ops->key_destroy(dir->rail->hw, &dir->key))
		krc_mrdir_free_memory(dir, KRC_MRDIR_PAGES);
	dir->pages = NULL;
	dir->entries = NULL;
}

struct krc_mrdir *krc_mrdir_create(struct krc_rail *rail, struct krp_value *value)
{
	struct krc_mrdir *dir;
	int err;

	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	kref_init(&dir->ref);
	dir->rail = rail;
	dir->slots = KRP_MRDIR_SLOTS;
	mutex_init(&dir->lock);
	init_waitqueue_head(&dir->gone);
	INIT_LIST_HEAD(&dir->regions);
	INIT_LIST_HEAD(&dir->dying);
	INIT_DELAYED_WORK(&dir->reap, krc_mr_reap);
	dir->wq = alloc_workqueue("krcore_mr", WQ_UNBOUND, 1 + KRC_MRDIR_RELEASES);
	if (!dir->wq) {
		err = -ENOMEM;
		goto err_free;
	}
	krc_turns_init(&dir->releases, KRC_MRDIR_RELEASES, dir->wq);
	err = krc_mrdir_map(dir);
	if (err)
		goto err_wq;
	value->dct.mrdir_addr = cpu_to_le64(KRC_MRDIR_IOVA);
	value->dct.mrdir_rkey = cpu_to_le32(dir->key.rkey);
	return dir;

err_wq:
	destroy_workqueue(dir->wq);
err_free:
	kfree(dir);
	return ERR_PTR(err);
}

void krc_mrdir_retire(struct krc_mrdir *mrdir)
{
	struct krc_mr *mr;

	mutex_lock(&mrdir->lock);
	mrdir->retired = true;
	list_for_each_entry(mr, &mrdir->regions, list)
		krc_mrdir_unpublish(mrdir, mr);
	mutex_unlock(&mrdir->lock);
}

/* Jiffies until the last lease ends. Regions that are being released have none. */
static unsigned long krc_mrdir_left(struct krc_mrdir *dir)
{
	unsigned long left = 0;
	struct krc_mr *mr;

	mutex_lock(&dir->lock);
	list_for_each_entry(mr, &dir->regions, list)
		left = max(left, krc_mr_left(mr));
	list_for_each_entry(mr, &dir->dying, list)
		left = max(left, krc_mr_left(mr));
	mutex_unlock(&dir->lock);
	return left;
}

void krc_mrdir_wait(struct krc_mrdir *mrdir)
{
	const struct krc_rail *rail = mrdir->rail;
	unsigned long some = msecs_to_jiffies(KRC_MRDIR_DOWN_MS), left;

	while ((left = krc_mrdir_left(mrdir)) && !rail->ops->is_down(rail->hw))
		schedule_timeout_uninterruptible(min(left, some));
}

/* The first region of a list, claimed, or NULL. */
static struct krc_mr *krc_mrdir_claim(struct krc_mrdir *dir, struct list_head *list)
{
	struct krc_mr *mr;

	mutex_lock(&dir->lock);
	mr = list_first_entry_or_null(list, struct krc_mr, list);
	WARN_ON_ONCE(mr && !krc_mr_claim(mr)); /* a claimed region is in no list */
	mutex_unlock(&dir->lock);
	if (mr) /* the port serves all: its turns must not wait for those of one payer's tasks */
		mr->key.payer = NULL;
	return mr;
}

/* Release the hardware of all regions; free those that no context holds. */
static void krc_mrdir_release_all(struct krc_mrdir *dir)
{
	struct krc_mr *mr;

	while ((mr = krc_mrdir_claim(dir, &dir->dying))) {
		/* all requests have completed; the last may be about to drop @mr */
		wait_for_completion(&mr->idle);
		krc_mr_release_claimed(mr);
		krc_mr_free(mr);
	}
	while ((mr = krc_mrdir_claim(dir, &dir->regions)))
		krc_mr_release_claimed(mr);
	/* and wait for regions that contexts are releasing, or that have or await their turns */
	wait_event(dir->gone, !READ_ONCE(dir->releasing));
}

void krc_mrdir_end(struct krc_mrdir *mrdir)
{
	mutex_lock(&mrdir->lock);
	mrdir->dead = true;
	mutex_unlock(&mrdir->lock);
	wake_up_all(&mrdir->gone);

	/* @dead: from here on no region joins dying, and @reap is not queued */
	cancel_delayed_work_sync(&mrdir->reap);
	krc_mrdir_release_all(mrdir);
	krc_mrdir_unmap(mrdir);
	destroy_workqueue(mrdir->wq);
}
