// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: packets of messages: their memory, its key, and which are free.
 *
 * The memory is not contiguous; the key lists its pages, as that of the directory does
 * (mem/directory.c), and gives peers no access.
 * Locking: see pool/packets.h.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hw/dma.h"
#include "hw/rail.h"
#include "krp_ioctl.h"
#include "krp_message.h"
#include "pool/packets.h"

#define KRC_PACKETS_IOVA (1ULL << 32) /* of the first packet; any but 0 */

/**
 * struct krc_packets - Packets of a port.
 * @rail: port.
 * @lock: protects @free, and krc_packet.taken.
 * @free: the free ones, the last used first.
 * @free_nr: how many; written with the lock.
 * @memory: KRP_MESSAGE_PACKET_MAX bytes of each, in the order of their numbers.
 * @pages: DMA addresses of its pages.
 * @pages_nr: how many are mapped.
 * @key: of all of it.
 * @nr: how many packets.
 * @at: the packets.
 */
struct krc_packets {
	struct krc_rail *rail;
	spinlock_t lock;
	struct list_head free;
	u32 free_nr;
	void *memory;
	dma_addr_t *pages;
	u32 pages_nr;
	struct krc_hw_key key;
	u32 nr;
	struct krc_packet at[];
};

static struct device *krc_packets_device(const struct krc_packets *p)
{
	return p->rail->ops->dma_device(p->rail->hw);
}

/* Unmap and free the memory, which the device can't reach any more. */
static void krc_packets_unmake(struct krc_packets *p)
{
	while (p->pages_nr)
		krc_dma_unmap_page(krc_packets_device(p), p->pages[--p->pages_nr],
				   DMA_BIDIRECTIONAL);
	kvfree(p->pages);
	vfree(p->memory);
}

static int krc_packets_make(struct krc_packets *p)
{
	u32 pages = DIV_ROUND_UP((u64)p->nr * KRP_MESSAGE_PACKET_MAX, PAGE_SIZE);

	BUILD_BUG_ON(PAGE_SIZE % KRP_MESSAGE_PACKET_MAX); /* none is in two pages */
	p->memory = vzalloc((size_t)pages * PAGE_SIZE);
	p->pages = kvcalloc(pages, sizeof(*p->pages), GFP_KERNEL);
	if (!p->memory || !p->pages)
		return -ENOMEM;
	while (p->pages_nr < pages) {
		void *page = p->memory + (size_t)p->pages_nr * PAGE_SIZE;
		dma_addr_t *dma = &p->pages[p->pages_nr];

		if (krc_dma_map_page(krc_packets_device(p), vmalloc_to_page(page),
				     DMA_BIDIRECTIONAL, dma))
			return -ENOMEM;
		p->pages_nr++;
	}
	return p->rail->ops->key_pages(p->rail->hw, p->pages, pages, KRC_PACKETS_IOVA,
				       KRP_ACCESS_LOCAL_WRITE, &p->key);
}

struct krc_packets *krc_packets_create(struct krc_rail *rail, u32 nr)
{
	struct krc_packets *p;
	int err;
	u32 i;

	if (!nr || nr > U32_MAX / KRP_MESSAGE_PACKET_MAX)
		return ERR_PTR(-EINVAL);
	p = kvzalloc(struct_size(p, at, nr), GFP_KERNEL);
	if (!p)
		return ERR_PTR(-ENOMEM);
	p->rail = rail;
	p->nr = nr;
	spin_lock_init(&p->lock);
	INIT_LIST_HEAD(&p->free);
	err = krc_packets_make(p);
	if (err) {
		krc_packets_unmake(p);
		kvfree(p);
		return ERR_PTR(err);
	}
	for (i = 0; i < nr; i++) {
		p->at[i].all = p;
		p->at[i].index = i;
		p->at[i].data = p->memory + (size_t)i * KRP_MESSAGE_PACKET_MAX;
		list_add_tail(&p->at[i].list, &p->free);
	}
	p->free_nr = nr;
	return p;
}

void krc_packets_destroy(struct krc_packets *p)
{
	if (p->rail->ops->key_destroy(p->rail->hw, &p->key))
		krc_packets_unmake(p);
	else
		kvfree(p->pages); /* the memory itself stays, mapped as it is */
	kvfree(p);
}

/* Take the first packet; one is free. */
static struct krc_packet *krc_packet_take(struct krc_packets *p, u32 *taken)
{
	struct krc_packet *packet = list_first_entry(&p->free, struct krc_packet, list);

	lockdep_assert_held(&p->lock);
	list_del_init(&packet->list);
	packet->owner = NULL;
	packet->taken = taken;
	if (taken)
		WRITE_ONCE(*taken, *taken + 1);
	WRITE_ONCE(p->free_nr, p->free_nr - 1);
	return packet;
}

struct krc_packet *krc_packet_get(struct krc_packets *p)
{
	struct krc_packet *packet = NULL;

	spin_lock_bh(&p->lock);
	if (p->free_nr)
		packet = krc_packet_take(p, NULL);
	spin_unlock_bh(&p->lock);
	return packet;
}

struct krc_packet *krc_packet_get_of(struct krc_packets *p, u32 *taken)
{
	struct krc_packet *packet = NULL;

	spin_lock_bh(&p->lock);
	if (*taken && *taken >= p->free_nr)
		packet = ERR_PTR(-EDQUOT);
	else if (p->free_nr)
		packet = krc_packet_take(p, taken);
	spin_unlock_bh(&p->lock);
	return packet;
}

void krc_packet_put(struct krc_packet *packet)
{
	struct krc_packets *p = packet->all;

	spin_lock_bh(&p->lock);
	if (packet->taken)
		WRITE_ONCE(*packet->taken, *packet->taken - 1);
	packet->taken = NULL;
	list_add(&packet->list, &p->free);
	WRITE_ONCE(p->free_nr, p->free_nr + 1);
	spin_unlock_bh(&p->lock);
}

struct krc_packet *krc_packet_at(struct krc_packets *p, u64 index)
{
	return index < p->nr ? &p->at[index] : NULL;
}

u32 krc_packets_free(const struct krc_packets *p)
{
	return READ_ONCE(p->free_nr);
}

/* What the device reads or writes of a packet is what the CPU sees, from here on. */
static void krc_packet_sync(const struct krc_packet *packet, u32 bytes, bool for_device)
{
	const struct krc_packets *p = packet->all;
	size_t at = (size_t)packet->index * KRP_MESSAGE_PACKET_MAX;
	dma_addr_t page = p->pages[at / PAGE_SIZE];

	if (for_device)
		krc_dma_sync_for_device(krc_packets_device(p), page, offset_in_page(at), bytes,
					DMA_BIDIRECTIONAL);
	else
		krc_dma_sync_for_cpu(krc_packets_device(p), page, offset_in_page(at), bytes,
				     DMA_BIDIRECTIONAL);
}

static u64 krc_packet_iova(const struct krc_packet *packet)
{
	return KRC_PACKETS_IOVA + (u64)packet->index * KRP_MESSAGE_PACKET_MAX;
}

int krc_packet_post(struct krc_packet *packet, struct krc_hw_target *target)
{
	const struct krc_packets *p = packet->all;

	krc_packet_sync(packet, KRP_MESSAGE_PACKET_MAX, true);
	return p->rail->ops->recv_post(target, packet->index, krc_packet_iova(packet), p->key.lkey,
				       KRP_MESSAGE_PACKET_MAX);
}

void krc_packet_received(struct krc_packet *packet, u32 bytes)
{
	krc_packet_sync(packet, bytes, false);
}

void krc_packet_send(struct krc_packet *packet, const struct krc_hw_address *to, u32 bytes,
		     unsigned long until)
{
	const struct krc_packets *p = packet->all;

	krc_packet_sync(packet, bytes, true);
	packet->address = *to;
	packet->req.wr = (struct krc_hw_wr){
		.address = &packet->address,
		.local_addr = krc_packet_iova(packet),
		.lkey = p->key.lkey,
		.length = bytes,
		.opcode = KRC_HW_SEND,
	};
	packet->req.idempotent = false;
	packet->req.leased = true;
	packet->req.until = until;
	packet->req.stay = msecs_to_jiffies(p->rail->margin_ms / 2);
}
