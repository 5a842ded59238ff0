// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: krc_pool_read(): memory of the kernel that the NIC may write to, in slots, one
 * for each READ under way, and who may have which.
 *
 * Slots are in sets. Targets that have answered lately are READ from by those of the first
 * set, on the shared initiators. Others are on probation (pool/silence.h): each slot of that
 * set has an initiator of its own, and a target is asked by one READ at a time, for which
 * its others wait. So is a silent one, in the set of quarantine. Nobody may have all slots
 * of a set for which others could be waiting: who pays for a READ has a share of them, and
 * who waits is served in turn by payers. To wait for a slot takes no task, and is no sign
 * of anything but that there is much to do.
 *
 * A slot belongs to its READ until the hardware has completed it. Each slot is a flow of
 * its own, so that one's fault is no other's.
 * Locking: krc_reader.lock (bottom halves off) for all of it; then krc_standing.lock.
 * done() is called, and requests are submitted, without it.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "krp_ioctl.h"
#include "pool/pool_priv.h"
#include "pool/silence.h"

#define KRC_READ_BYTES 256
#define KRC_READ_SLOTS_SHARED 64
#define KRC_SHARED_MOST 16 /* of one payer */
#define KRC_READ_SLOTS (KRC_READ_SLOTS_SHARED + KRC_POOL_APART)
#define KRC_READ_ELSEWHERE (-ERESTART) /* internal: not posted, to be asked elsewhere */
#define KRC_SHARE_LOG2 6

/* What a READ waits for a slot of. */
enum krc_slot_set {
	KRC_SLOTS_SHARED,
	KRC_SLOTS_PROBATION,
	KRC_SLOTS_QUARANTINE,
	KRC_SLOTS_SETS,
};

/* Slots of a set, the first of them, and how many one payer may have at once. */
static const struct {
	u8 first, nr, most;
} krc_slot_sets[KRC_SLOTS_SETS] = {
	[KRC_SLOTS_SHARED] = { 0, KRC_READ_SLOTS_SHARED, KRC_SHARED_MOST },
	[KRC_SLOTS_PROBATION] = { KRC_READ_SLOTS_SHARED, KRC_POOL_PROBATION, 1 },
	[KRC_SLOTS_QUARANTINE] = { KRC_READ_SLOTS_SHARED + KRC_POOL_PROBATION,
				   KRC_POOL_APART - KRC_POOL_PROBATION, 1 },
};

/**
 * struct krc_share - What a payer has and wants of a set; there only as long as that is
 * something.
 * @node: in krc_reader.shares.
 * @turn: in krc_reader.turn of its set, while it wants more and may have it; or empty.
 * @waiting: READs without a slot.
 * @payer: payer.
 * @set: enum krc_slot_set.
 * @used: slots it has.
 */
struct krc_share {
	struct hlist_node node;
	struct list_head turn;
	struct list_head waiting;
	const void *payer;
	u32 set;
	u32 used;
};

/*
 * A slot; @read, @share and @standing (counted) are set while it is used. @probes: others wait
 * for this READ of its target.
 */
struct krc_read_slot {
	struct krc_reader *reader;
	struct krc_flow flow;
	struct krc_req req;
	struct krc_hw_address address;
	struct krc_read *read;
	struct krc_share *share;
	struct krc_standing *standing;
	bool probes;
};

/**
 * struct krc_reader - Slots of a pool.
 * @pool: pool.
 * @lock: see above.
 * @stopped: no READ is taken any more.
 * @used: slots in use.
 * @turn: shares that wait, by set, whose turn it is first.
 * @shares: all shares, by payer.
 * @again: READs that waited for something that is over: they are looked at anew.
 * @more: work item that does, and hands slots to who waits.
 * @memory: their bytes.
 * @dma: their address for the device.
 * @key: their key.
 * @slots: the slots.
 */
struct krc_reader {
	struct krc_pool *pool;
	spinlock_t lock;
	bool stopped;
	DECLARE_BITMAP(used, KRC_READ_SLOTS);
	struct list_head turn[KRC_SLOTS_SETS];
	struct hlist_head shares[1 << KRC_SHARE_LOG2];
	struct list_head again;
	struct work_struct more;
	u8 *memory;
	dma_addr_t dma;
	struct krc_hw_key key;
	struct krc_read_slot slots[KRC_READ_SLOTS];
};

/* ---- who waits */

static struct krc_share *krc_share_find(struct krc_reader *reader, const void *payer, u32 set)
{
	struct krc_share *share;

	hlist_for_each_entry(share, &reader->shares[hash_ptr(payer, KRC_SHARE_LOG2)], node)
		if (share->payer == payer && share->set == set)
			return share;
	return NULL;
}

static struct krc_share *krc_share_get(struct krc_reader *reader, const void *payer, u32 set)
{
	struct krc_share *share = krc_share_find(reader, payer, set);

	lockdep_assert_held(&reader->lock);
	if (share)
		return share;
	share = kzalloc(sizeof(*share), GFP_ATOMIC | __GFP_NOWARN);
	if (!share)
		return NULL;
	share->payer = payer;
	share->set = set;
	INIT_LIST_HEAD(&share->turn);
	INIT_LIST_HEAD(&share->waiting);
	hlist_add_head(&share->node, &reader->shares[hash_ptr(payer, KRC_SHARE_LOG2)]);
	return share;
}

/* It has one slot or one READ more or less: is it its turn, or is it of no use any more? */
static void krc_share_settle(struct krc_reader *reader, struct krc_share *share)
{
	bool wants = !list_empty(&share->waiting) && share->used < krc_slot_sets[share->set].most;

	lockdep_assert_held(&reader->lock);
	if (!wants)
		list_del_init(&share->turn);
	else if (list_empty(&share->turn))
		list_add_tail(&share->turn, &reader->turn[share->set]);
	if (share->used || !list_empty(&share->waiting))
		return;
	hlist_del(&share->node);
	kfree(share);
}

static int krc_read_enqueue(struct krc_reader *reader, struct krc_read *read, u32 set)
{
	struct krc_share *share = krc_share_get(reader, read->payer, set);

	lockdep_assert_held(&reader->lock);
	if (!share)
		return -ENOMEM;
	read->share = share;
	list_add_tail(&read->list, &share->waiting);
	krc_share_settle(reader, share);
	return 0;
}

/* Whom a target was waiting for has ended, or will not begin: the others are looked at anew. */
static void krc_probe_over(struct krc_reader *reader, struct krc_standing *standing)
{
	lockdep_assert_held(&reader->lock);
	standing->probe = NULL;
	list_splice_tail_init(&standing->waiting, &reader->again);
	if (!list_empty(&reader->again) && !reader->stopped)
		queue_work(reader->pool->wq, &reader->more);
}

/* Take a READ that has no slot out of where it waits. */
static void krc_read_dequeue(struct krc_reader *reader, struct krc_read *read)
{
	struct krc_share *share = read->share;

	lockdep_assert_held(&reader->lock);
	list_del_init(&read->list);
	read->share = NULL;
	if (share)
		krc_share_settle(reader, share);
	if (read->standing->probe == read)
		krc_probe_over(reader, read->standing);
}

/* In place of a probe that has a slot: it is its owner's when it is over, and may be freed. */
static struct krc_read krc_probe_begun;

/*
 * A target is being asked already: wait for that. If whoever pays for it has others before it,
 * and this one has not, they change places.
 */
static int krc_read_join(struct krc_reader *reader, struct krc_read *read, u32 set)
{
	struct krc_standing *standing = read->standing;
	struct krc_read *probe = standing->probe;
	struct krc_share *share = krc_share_find(reader, read->payer, set);
	int err;

	lockdep_assert_held(&reader->lock);
	if (probe->share && probe->share->payer != read->payer &&
	    (!share || list_empty(&share->waiting))) {
		err = krc_read_enqueue(reader, read, set);
		if (err)
			return err;
		standing->probe = read;
		krc_read_dequeue(reader, probe);
		read = probe;
	}
	list_add_tail(&read->list, &standing->waiting);
	return 0;
}

/* Where a READ is to wait. Return: 0; or why it is not to be done. */
static int krc_read_admit(struct krc_reader *reader, struct krc_read *read)
{
	struct krc_standing *standing = read->standing;
	enum krc_standing_state state = krc_standing_now(standing);
	u32 set = state == KRC_STANDING_SILENT ? KRC_SLOTS_QUARANTINE : KRC_SLOTS_PROBATION;
	int err;

	lockdep_assert_held(&reader->lock);
	read->share = NULL;
	if (reader->stopped)
		return -ENODEV;
	if (state == KRC_STANDING_PROVEN)
		return krc_read_enqueue(reader, read, KRC_SLOTS_SHARED);
	if (standing->probe)
		return krc_read_join(reader, read, set);
	if (!krc_standing_due(standing))
		return -ETIMEDOUT;
	err = krc_read_enqueue(reader, read, set);
	if (!err)
		standing->probe = read;
	return err;
}

/* ---- who has a slot */

static struct krc_read_slot *krc_read_slot_take(struct krc_reader *reader, u32 set)
{
	u32 end = krc_slot_sets[set].first + krc_slot_sets[set].nr;
	u32 i = find_next_zero_bit(reader->used, end, krc_slot_sets[set].first);

	lockdep_assert_held(&reader->lock);
	if (i >= end)
		return NULL;
	__set_bit(i, reader->used);
	return &reader->slots[i];
}

static void krc_read_slot_free(struct krc_read_slot *slot)
{
	struct krc_reader *reader = slot->reader;

	lockdep_assert_held(&reader->lock);
	__clear_bit(slot - reader->slots, reader->used);
	slot->share->used--;
	krc_share_settle(reader, slot->share);
	if (slot->probes)
		krc_probe_over(reader, slot->standing);
	slot->read = NULL;
	slot->share = NULL;
}

/* The next of a set gets a slot. False: nobody waits, or there is none. */
static bool krc_read_slot_hand_out(struct krc_reader *reader, u32 set, struct list_head *started)
{
	struct krc_share *share =
		list_first_entry_or_null(&reader->turn[set], struct krc_share, turn);
	struct krc_read *read;
	struct krc_read_slot *slot;

	lockdep_assert_held(&reader->lock);
	if (!share)
		return false;
	read = list_first_entry(&share->waiting, struct krc_read, list);
	if (set == KRC_SLOTS_SHARED && krc_standing_now(read->standing) != KRC_STANDING_PROVEN) {
		krc_read_dequeue(reader, read); /* it was, when it began to wait */
		list_add_tail(&read->list, &reader->again);
		queue_work(reader->pool->wq, &reader->more);
		return true;
	}
	slot = krc_read_slot_take(reader, set);
	if (!slot)
		return false;
	list_move_tail(&read->list, started);
	read->share = NULL;
	slot->read = read;
	slot->share = share;
	slot->standing = read->standing;
	krc_standing_hold(slot->standing);
	slot->probes = read->standing->probe == read;
	if (slot->probes)
		read->standing->probe = &krc_probe_begun;
	read->slot = slot;
	read->queued = false;
	share->used++;
	list_del_init(&share->turn); /* and behind the others, if it wants more */
	krc_share_settle(reader, share);
	return true;
}

static void krc_read_slots_hand_out(struct krc_reader *reader, struct list_head *started)
{
	u32 set;

	for (set = 0; set < KRC_SLOTS_SETS; set++)
		while (krc_read_slot_hand_out(reader, set, started))
			;
}

/* ---- what is under way */

static void *krc_read_slot_bytes(const struct krc_read_slot *slot)
{
	return slot->reader->memory + (slot - slot->reader->slots) * KRC_READ_BYTES;
}

static void krc_reader_more(struct work_struct *work);

static int krc_read_slot_submit(struct krc_read_slot *slot)
{
	struct krc_reader *reader = slot->reader;
	struct krc_read *read = slot->read;
	LIST_HEAD(reqs);

	slot->address = read->standing->key.address;
	slot->req.wr = (struct krc_hw_wr){
		.address = &slot->address,
		.remote_addr = read->remote_addr,
		.rkey = read->rkey,
		.local_addr = reader->dma + (slot - reader->slots) * KRC_READ_BYTES,
		.lkey = reader->key.lkey,
		.length = read->bytes,
		.opcode = KRP_OP_READ,
	};
	read->start = jiffies;
	list_add_tail(&slot->req.list, &reqs);
	krc_flow_restart(&slot->flow);
	return krc_flow_submit(&slot->flow, &reqs);
}

/* What the outcome of a READ says about its target. */
static void krc_read_slot_judge(struct krc_read_slot *slot)
{
	switch (slot->req.fault) {
	case KRC_FAULT_NONE:
		if (!slot->req.status)
			krc_standing_answered(slot->standing);
		break;
	case KRC_FAULT_ACCESS: /* an answer, but one that costs all that share an initiator a reset */
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		krc_standing_failed(slot->standing, jiffies - slot->read->start);
		break;
	default: /* something here */
		break;
	}
}

/* The slot is free again; its READ, if it is not over, finds another place. */
static void krc_read_slot_leave(struct krc_read_slot *slot, struct krc_read *again)
{
	struct krc_reader *reader = slot->reader;
	struct krc_standing *standing = slot->standing;
	bool stopped;

	spin_lock_bh(&reader->lock);
	krc_read_slot_free(slot);
	if (again) {
		again->slot = NULL;
		again->queued = true;
		list_add_tail(&again->list, &reader->again);
	}
	stopped = reader->stopped;
	if (!stopped)
		queue_work(reader->pool->wq, &reader->more);
	spin_unlock_bh(&reader->lock);
	krc_standing_put(standing);
	if (stopped) /* nobody else ends those that waited for it */
		krc_reader_more(&reader->more);
}

/* The READ of a slot is over; begin it anew if its owner wants that. */
static void krc_read_slot_end(struct krc_read_slot *slot, int err)
{
	if (err == KRC_READ_ELSEWHERE) {
		krc_read_slot_leave(slot, slot->read);
		return;
	}
	while (slot->read->done(slot->read, err, krc_read_slot_bytes(slot))) {
		err = krc_read_slot_submit(slot);
		if (!err)
			return;
	}
	/* the READ is its owner's again, who may have freed it */
	krc_read_slot_leave(slot, NULL);
}

static void krc_read_slot_done(struct krc_req *req)
{
	struct krc_read_slot *slot = container_of(req, struct krc_read_slot, req);

	krc_read_slot_judge(slot);
	krc_read_slot_end(slot, req->status);
}

/*
 * Is asked before a READ is posted, also when that is for the second time: behind a neighbour's
 * fault to the same target, all that share the initiator would wait once more. One that has not
 * answered since is asked apart: a request with a lease takes the initiator back before the
 * hardware would say that the target is silent, and so it would be for ever.
 */
static int krc_read_slot_check(struct krc_req *req)
{
	struct krc_read_slot *slot = container_of(req, struct krc_read_slot, req);

	if (slot->flow.apart || krc_standing_now(slot->standing) == KRC_STANDING_PROVEN)
		return 0;
	return READ_ONCE(slot->standing->state) == KRC_STANDING_SILENT ? -ETIMEDOUT
								       : KRC_READ_ELSEWHERE;
}

/* No lock is held; the first of the READs may have been ended when this returns. */
static void krc_read_slots_start(struct list_head *started)
{
	struct krc_read *read, *next;

	list_for_each_entry_safe(read, next, started, list) {
		struct krc_read_slot *slot = read->slot;
		int err;

		list_del_init(&read->list);
		err = krc_read_slot_submit(slot);
		if (err)
			krc_read_slot_end(slot, err);
	}
}

/* Those that waited for a probe find their place, and whose turn it is gets a slot. */
static void krc_reader_more(struct work_struct *work)
{
	struct krc_reader *reader = container_of(work, struct krc_reader, more);
	struct krc_read *read, *next;
	LIST_HEAD(started);
	LIST_HEAD(again);
	LIST_HEAD(ended);

	local_bh_disable();
	spin_lock(&reader->lock);
	list_splice_init(&reader->again, &again);
	list_for_each_entry_safe(read, next, &again, list) {
		list_del_init(&read->list);
		read->err = krc_read_admit(reader, read);
		read->queued = !read->err;
		if (read->err)
			list_add_tail(&read->list, &ended);
	}
	krc_read_slots_hand_out(reader, &started);
	spin_unlock(&reader->lock);
	krc_read_slots_start(&started);
	list_for_each_entry_safe(read, next, &ended, list) {
		list_del_init(&read->list);
		read->done(read, read->err, NULL);
	}
	local_bh_enable();
}

int krc_pool_read(struct krc_pool *pool, struct krc_read *read, u32 *ret_index)
{
	struct krc_reader *reader = pool->reader;
	struct krc_read_slot *slot;
	LIST_HEAD(started);
	int err;

	*ret_index = KRC_READ_WAITS;
	if (!read->bytes || read->bytes > KRC_READ_BYTES)
		return -EINVAL;
	INIT_LIST_HEAD(&read->list);
	read->slot = NULL;
	spin_lock_bh(&reader->lock);
	err = krc_read_admit(reader, read);
	read->queued = !err;
	krc_read_slots_hand_out(reader, &started);
	slot = err ? NULL : read->slot;
	spin_unlock_bh(&reader->lock);
	krc_read_slots_start(&started);
	if (slot)
		*ret_index = krc_flow_index(&slot->flow);
	return err;
}

bool krc_pool_unread(struct krc_pool *pool, struct krc_read *read)
{
	struct krc_reader *reader = pool->reader;
	bool waits;

	spin_lock_bh(&reader->lock);
	waits = read->queued;
	if (waits)
		krc_read_dequeue(reader, read);
	read->queued = false;
	spin_unlock_bh(&reader->lock);
	return waits;
}

/* ---- begin and end */

static void krc_reader_init(struct krc_reader *reader, struct krc_pool *pool)
{
	int i;

	reader->pool = pool;
	spin_lock_init(&reader->lock);
	INIT_LIST_HEAD(&reader->again);
	INIT_WORK(&reader->more, krc_reader_more);
	for (i = 0; i < KRC_SLOTS_SETS; i++)
		INIT_LIST_HEAD(&reader->turn[i]);
	for (i = 0; i < KRC_READ_SLOTS; i++) {
		struct krc_read_slot *slot = &reader->slots[i];

		slot->reader = reader;
		krc_flow_init(&slot->flow, pool, krc_read_slot_done, krc_read_slot_check);
		slot->flow.apart = i < KRC_READ_SLOTS_SHARED ? 0 : 1 + i - KRC_READ_SLOTS_SHARED;
	}
}

int krc_reader_create(struct krc_pool *pool)
{
	struct device *dma = pool->ops->dma_device(pool->rail->hw);
	size_t bytes = KRC_READ_SLOTS * KRC_READ_BYTES;
	struct krc_reader *reader = kvzalloc(sizeof(*reader), GFP_KERNEL);
	int err = -ENOMEM;

	if (!reader)
		return -ENOMEM;
	krc_reader_init(reader, pool);
	reader->memory = dma_alloc_coherent(dma, bytes, &reader->dma, GFP_KERNEL);
	if (!reader->memory)
		goto err_scratch;
	err = pool->ops->key_dma(pool->rail->hw, reader->dma, bytes, KRP_ACCESS_LOCAL_WRITE,
				 &reader->key);
	if (err)
		goto err_memory;
	pool->reader = reader;
	return 0;

err_memory:
	dma_free_coherent(dma, bytes, reader->memory, reader->dma);
err_scratch:
	kvfree(reader);
	return err;
}

/* All READs that wait for a slot are to be looked at anew. */
static void krc_reader_flush(struct krc_reader *reader)
{
	struct krc_share *share;
	struct hlist_node *next;
	u32 i;

	lockdep_assert_held(&reader->lock);
	for (i = 0; i < ARRAY_SIZE(reader->shares); i++)
		hlist_for_each_entry_safe(share, next, &reader->shares[i], node) {
			struct krc_read *read, *tmp;
			LIST_HEAD(waiting);

			share->used++; /* it stays until here */
			list_splice_init(&share->waiting, &waiting);
			list_for_each_entry_safe(read, tmp, &waiting, list) {
				krc_read_dequeue(reader, read);
				list_add_tail(&read->list, &reader->again);
			}
			share->used--;
			krc_share_settle(reader, share);
		}
}

void krc_reader_stop(struct krc_pool *pool)
{
	struct krc_reader *reader = pool->reader;

	spin_lock_bh(&reader->lock);
	reader->stopped = true;
	krc_reader_flush(reader);
	spin_unlock_bh(&reader->lock);
}

void krc_reader_end(struct krc_pool *pool)
{
	struct krc_reader *reader = pool->reader;

	cancel_work_sync(&reader->more);
	krc_reader_more(&reader->more);
}

void krc_reader_destroy(struct krc_pool *pool)
{
	struct krc_reader *reader = pool->reader;

	WARN_ON(!bitmap_empty(reader->used, KRC_READ_SLOTS));
	if (pool->ops->key_destroy(pool->rail->hw, &reader->key))
		dma_free_coherent(pool->ops->dma_device(pool->rail->hw),
				  KRC_READ_SLOTS * KRC_READ_BYTES, reader->memory, reader->dma);
	kvfree(reader);
}
