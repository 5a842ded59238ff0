// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the directory of a port's memory regions as peers READ it (krp_mrdir.h), its
 * slots and tokens, and its end, which is that of all regions of the port.
 * Locking: see krc_mrdir.h.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "krc_mrdir.h"
#include "krc_node.h"

#define KRC_MRDIR_BYTES ((size_t)KRP_MRDIR_SLOTS * KRP_MRDIR_ENTRY_BYTES)

static void krc_mrdir_free(struct kref *ref)
{
	kfree(container_of(ref, struct krc_mrdir, ref));
}

void krc_mrdir_put(struct krc_mrdir *dir)
{
	kref_put(&dir->ref, krc_mrdir_free);
}

static void krc_mrdir_entry_free(struct krp_mrdir_entry *ret_entry)
{
	memset(ret_entry, 0, sizeof(*ret_entry));
	ret_entry->state = KRP_MRDIR_FREE;
	krp_mrdir_seal(ret_entry);
}

void krc_mrdir_entry_make(const struct krc_mr *mr, u64 generation,
			  struct krp_mrdir_entry *ret_entry)
{
	memset(ret_entry, 0, sizeof(*ret_entry));
	ret_entry->token = cpu_to_le64(mr->token);
	ret_entry->addr = cpu_to_le64(mr->addr);
	ret_entry->length = cpu_to_le64(mr->length);
	ret_entry->rkey = cpu_to_le32(mr->key.rkey);
	ret_entry->access = mr->access;
	ret_entry->state = KRP_MRDIR_LIVE;
	ret_entry->lease_ms = cpu_to_le32(KRP_MRDIR_LEASE_MS);
	ret_entry->generation = cpu_to_le64(generation);
	krp_mrdir_seal(ret_entry);
}

/* Peers may READ the slot at any moment: the sum tells them if they met this. */
static void krc_mrdir_write(struct krc_mrdir *dir, u32 slot, const struct krp_mrdir_entry *entry)
{
	memcpy(&dir->entries[slot], entry, sizeof(*entry));
	mb(); /* seen by the NIC before the token is told, or the lease begins */
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

	/* in turn: a slot that was freed rests for as long as it can */
	slot = find_next_zero_bit(dir->used, dir->slots, dir->next);
	if (slot >= dir->slots)
		slot = find_first_zero_bit(dir->used, dir->slots);
	if (slot >= dir->slots)
		return -ENOSPC;
	__set_bit(slot, dir->used);
	dir->next = slot + 1 < dir->slots ? slot + 1 : 0;

	mr->token = krc_mrdir_token(slot);
	mr->published = true;
	krc_mrdir_entry_make(mr, dir->port->generation, &entry);
	krc_mrdir_write(dir, slot, &entry);
	return 0;
}

void krc_mrdir_unpublish(struct krc_mrdir *dir, struct krc_mr *mr)
{
	u32 slot = krp_mrdir_slot(mr->token);
	struct krp_mrdir_entry entry;

	mr->until = jiffies;
	if (!mr->published)
		return;
	krc_mrdir_entry_free(&entry);
	krc_mrdir_write(dir, slot, &entry);
	mr->published = false;
	mr->until = jiffies + msecs_to_jiffies(KRP_MRDIR_LEASE_MS + KRC_MR_MARGIN_MS) + 1;
	__clear_bit(slot, dir->used);
}

/* The memory that peers READ, full of free entries, and its key. */
static int krc_mrdir_map(struct krc_mrdir *dir)
{
	const struct krc_provider_ops *ops = dir->port->ops;
	struct device *dev = ops->dma_device(dir->port->hw);
	struct krp_mrdir_entry entry;
	u32 slot;
	int err;

	dir->entries = dma_alloc_coherent(dev, KRC_MRDIR_BYTES, &dir->dma, GFP_KERNEL);
	if (!dir->entries)
		return -ENOMEM;
	krc_mrdir_entry_free(&entry);
	for (slot = 0; slot < KRP_MRDIR_SLOTS; slot++)
		memcpy(&dir->entries[slot], &entry, sizeof(entry));
	err = ops->key_dma(dir->port->hw, dir->dma, KRC_MRDIR_BYTES, KRP_ACCESS_REMOTE_READ,
			   &dir->key);
	if (err)
		dma_free_coherent(dev, KRC_MRDIR_BYTES, dir->entries, dir->dma);
	return err;
}

static void krc_mrdir_unmap(struct krc_mrdir *dir)
{
	const struct krc_provider_ops *ops = dir->port->ops;

	if (ops->key_destroy(dir->port->hw, &dir->key))
		dma_free_coherent(ops->dma_device(dir->port->hw), KRC_MRDIR_BYTES, dir->entries,
				  dir->dma);
	dir->entries = NULL;
}

struct krc_mrdir *krc_mrdir_create(struct krc_port *port, u32 slots, struct krp_value *value)
{
	struct krc_mrdir *dir;
	int err;

	if (!slots)
		slots = KRP_MRDIR_SLOTS;
	if (slots > KRP_MRDIR_SLOTS)
		return ERR_PTR(-EINVAL);
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	kref_init(&dir->ref);
	dir->port = port;
	dir->slots = slots;
	mutex_init(&dir->lock);
	init_waitqueue_head(&dir->gone);
	INIT_LIST_HEAD(&dir->regions);
	INIT_LIST_HEAD(&dir->dying);
	INIT_DELAYED_WORK(&dir->reap, krc_mr_reap);
	dir->wq = alloc_workqueue("krcore_mr", WQ_UNBOUND, 1);
	if (!dir->wq) {
		err = -ENOMEM;
		goto err_free;
	}
	err = krc_mrdir_map(dir);
	if (err)
		goto err_wq;
	value->dct.mrdir_addr = cpu_to_le64(dir->dma);
	value->dct.mrdir_rkey = cpu_to_le32(dir->key.rkey);
	return dir;

err_wq:
	destroy_workqueue(dir->wq);
err_free:
	kfree(dir);
	return ERR_PTR(err);
}

/* Release the hardware of all regions; free those that no context holds. */
static void krc_mrdir_release_all(struct krc_mrdir *dir)
{
	struct krc_mr *mr, *next;
	LIST_HEAD(dying);

	mutex_lock(&dir->lock);
	list_splice_init(&dir->dying, &dying);
	list_for_each_entry_safe(mr, next, &dir->regions, list)
		krc_mr_release(mr);
	mutex_unlock(&dir->lock);

	list_for_each_entry_safe(mr, next, &dying, list) {
		/* its requests have been completed; one may be about to say so */
		wait_for_completion(&mr->idle);
		mutex_lock(&dir->lock);
		krc_mr_release(mr);
		mutex_unlock(&dir->lock);
		krc_mr_free(mr);
	}
}

void krc_mrdir_destroy(struct krc_mrdir *mrdir)
{
	mutex_lock(&mrdir->lock);
	mrdir->dead = true;
	mutex_unlock(&mrdir->lock);
	wake_up_all(&mrdir->gone);

	/* from here on nothing is added to dying or queued */
	cancel_delayed_work_sync(&mrdir->reap);
	krc_mrdir_release_all(mrdir);
	krc_mrdir_unmap(mrdir);
	destroy_workqueue(mrdir->wq);
	krc_mrdir_put(mrdir);
}
