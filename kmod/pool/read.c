// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: krc_pool_read(), the module's own READs: slots of DMA memory, one for each READ in
 * flight, and their allocation.
 *
 * Slots are in sets. Targets that have answered lately are READ with slots of the first set, on
 * the shared channels. Others are on probation (pool/silence.h): each slot of that set has a
 * channel of its own, and a target is asked by one READ at a time, its probe, for which its
 * other READs wait. The same holds for a silent target, in the quarantine set. No payer may hold
 * all slots of a set that others could need: each has a bounded share of them, and waiting
 * READs are served in turn by payers. Waiting for a slot blocks no task, and says nothing about
 * the target.
 *
 * A slot belongs to its READ until the hardware has completed it. Each slot is a flow of
 * its own, so that a fault of one READ fails no other.
 * Locking: krc_reader.lock (bottom halves off) for all of it; then krc_standing.lock.
 * done() is called, and requests are submitted, without it.
 */
#include <linux/bitmap.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "hw/dma.h"
#include "krp_ioctl.h"
#include "pool/pool_priv.h"
#include "pool/silence.h"

#define KRC_READ_BYTES 256
#define KRC_READ_SLOTS_SHARED 64
#define KRC_SHARED_MOST 16 /* slots of one payer */
#define KRC_READ_SLOTS (KRC_READ_SLOTS_SHARED + KRC_POOL_APART)
#define KRC_READ_ELSEWHERE (-ERESTART) /* internal: not posted, use another set of slots */
#define KRC_SHARE_LOG2 6

/* Set of slots that a READ waits for. */
enum krc_slot_set {
	KRC_SLOTS_SHARED,
	KRC_SLOTS_PROBATION,
	KRC_SLOTS_QUARANTINE,
	KRC_SLOTS_SETS,
};

/* Of each set: its first slot, its number of slots, and the most that one payer may hold. */
static const struct {
	u8 first, nr, most;
} krc_slot_sets[KRC_SLOTS_SETS] = {
	[KRC_SLOTS_SHARED] = { 0, KRC_READ_SLOTS_SHARED, KRC_SHARED_MOST },
	[KRC_SLOTS_PROBATION] = { KRC_READ_SLOTS_SHARED, KRC_POOL_PROBATION, 1 },
	[KRC_SLOTS_QUARANTINE] = { KRC_READ_SLOTS_SHARED + KRC_POOL_PROBATION,
				   KRC_POOL_APART - KRC_POOL_PROBATION, 1 },
};

/**
 * struct krc_share - Slots and waiting READs of a payer in one set; freed when it has neither.
 * @node: in krc_reader.shares.
 * @turn: in krc_reader.turn of its set, while it wants a slot and may have one; or empty.
 * @waiting: READs without a slot.
 * @payer: krc_read.payer.
 * @set: enum krc_slot_set.
 * @used: slots it holds.
 * @next: krc_read.place of the next READ that comes to wait.
 */
struct krc_share {
	struct hlist_node node;
	struct list_head turn;
	struct list_head waiting;
	const void *payer;
	u32 set;
	u32 used;
	u32 next;
};

/*
 * A READ slot; @read, @share and @standing (with a reference) are set while it is used. @probes:
 * its READ is the probe of the target, for which other READs wait.
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
 * struct krc_reader - READ slots of a pool.
 * @pool: pool.
 * @lock: see above.
 * @stopped: no READ is taken any more.
 * @used: slots in use.
 * @turn: by set, the shares that wait for a slot, in the order they are served.
 * @shares: all shares, hashed by payer.
 * @again: READs whose wait is over, to be admitted anew.
 * @more: work item that admits them, and hands out slots.
 * @memory: data of the slots, KRC_READ_BYTES each.
 * @dma: DMA address of @memory.
 * @key: memory key of @memory.
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

/* ---- waiting for a slot */

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

/* After a change of its slots or READs: queue or dequeue the share, or free an empty one. */
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

static void krc_share_add(struct krc_reader *reader, struct krc_share *share, struct krc_read *read)
{
	lockdep_assert_held(&reader->lock);
	read->share = share;
	read->place = share->next++;
	list_add_tail(&read->list, &share->waiting);
	krc_share_settle(reader, share);
}

/*
 * Count what a share holds and has to serve before a READ that waits in it, or, if @read is NULL,
 * before one that would come now. READs that were withdrawn from between others may count.
 */
static u32 krc_share_before(struct krc_share *share, const struct krc_read *read)
{
	const struct krc_read *first;

	if (!share)
		return 0;
	first = list_first_entry_or_null(&share->waiting, struct krc_read, list);
	return share->used + (first ? (read ? read->place : share->next) - first->place : 0);
}

/* Whether @payer would get a slot of a set for a READ sooner than the share in which it waits. */
static bool krc_read_sooner(struct krc_reader *reader, const struct krc_read *read,
			    const void *payer, u32 set)
{
	lockdep_assert_held(&reader->lock);
	return read->share && read->share->payer != payer &&
	       krc_share_before(krc_share_find(reader, payer, set), NULL) <
		       krc_share_before(read->share, read);
}

static int krc_read_enqueue(struct krc_reader *reader, struct krc_read *read, u32 set)
{
	struct krc_share *share = krc_share_get(reader, read->payer, set);

	lockdep_assert_held(&reader->lock);
	if (!share)
		return -ENOMEM;
	krc_share_add(reader, share, read);
	return 0;
}

/* A target's probe has ended, or will not begin: the READs that waited are admitted anew. */
static void krc_probe_over(struct krc_reader *reader, struct krc_standing *standing)
{
	lockdep_assert_held(&reader->lock);
	standing->probe = NULL;
	list_splice_tail_init(&standing->waiting, &reader->again);
	if (!list_empty(&reader->again) && !reader->stopped)
		queue_work(reader->pool->wq, &reader->more);
}

/* Remove a READ without a slot from the list it waits in. */
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

/* Stands for a probe that has a slot: the READ itself may be freed as soon as it is done. */
static struct krc_read krc_probe_begun;

/*
 * Have a READ, which is in no list, ask its target in place of the probe, which still waits for
 * a slot and from now on for this READ.
 */
static int krc_read_replace(struct krc_reader *reader, struct krc_read *read, u32 set)
{
	struct krc_standing *standing = read->standing;
	struct krc_read *probe = standing->probe;
	int err = krc_read_enqueue(reader, read, set);

	lockdep_assert_held(&reader->lock);
	if (err)
		return err;
	standing->probe = read;
	krc_read_dequeue(reader, probe);
	list_add_tail(&probe->list, &standing->waiting);
	return 0;
}

/*
 * A target is being asked already: wait for its probe. If the probe still waits for a slot, and
 * this payer would get one sooner, this READ becomes the probe.
 */
static int krc_read_join(struct krc_reader *reader, struct krc_read *read, u32 set)
{
	struct krc_standing *standing = read->standing;

	lockdep_assert_held(&reader->lock);
	if (krc_read_sooner(reader, standing->probe, read->payer, set))
		return krc_read_replace(reader, read, set);
	list_add_tail(&read->list, &standing->waiting);
	return 0;
}

/* Queue a READ where it has to wait. Return: 0, or the errno that it fails with. */
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

/* ---- slots */

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

/* Give a slot to the next READ of a set. False: no READ waits, or no slot is free. */
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
		krc_read_dequeue(reader, read); /* proven no longer: admit it anew */
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
	list_del_init(&share->turn); /* requeued behind the others, if it wants more */
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

/* ---- READs in flight */

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
	slot->flow.bill = read->payer ?: reader;
	if (slot->flow.kind == KRC_CHANNEL_SHARED)
		slot->flow.standing = slot->standing;
	list_add_tail(&slot->req.list, &reqs);
	krc_flow_restart(&slot->flow);
	return krc_flow_submit(&slot->flow, &reqs, NULL);
}

/* What the outcome of a READ says about its target. */
static void krc_read_slot_judge(struct krc_read_slot *slot)
{
	switch (slot->req.fault) {
	case KRC_FAULT_NONE:
		if (!slot->req.status)
			krc_standing_answered(slot->standing);
		break;
	case KRC_FAULT_ACCESS: /* an answer, but it costs all flows of a channel a reset */
		if (slot->flow.kind != KRC_CHANNEL_PROBATION)
			krc_standing_refused(slot->standing);
		fallthrough;
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		krc_standing_failed(slot->standing, jiffies - slot->read->start);
		break;
	default: /* a local cause */
		break;
	}
}

/* Whether READs wait, of which one may have a slot now. */
static bool krc_reader_has_more(const struct krc_reader *reader)
{
	u32 set;

	lockdep_assert_held(&reader->lock);
	for (set = 0; set < KRC_SLOTS_SETS; set++)
		if (!list_empty(&reader->turn[set]))
			return true;
	return !list_empty(&reader->again);
}

/* Free a slot; @again, unless NULL, is its READ, which is admitted anew. */
static void krc_read_slot_leave(struct krc_read_slot *slot, struct krc_read *again)
{
	struct krc_reader *reader = slot->reader;
	struct krc_standing *standing = slot->standing;
	bool stopped;

	spin_lock_bh(&reader->lock);
	slot->flow.standing = NULL;
	krc_read_slot_free(slot);
	if (again) {
		again->slot = NULL;
		again->queued = true;
		list_add_tail(&again->list, &reader->again);
	}
	stopped = reader->stopped;
	if (!stopped && krc_reader_has_more(reader))
		queue_work(reader->pool->wq, &reader->more);
	spin_unlock_bh(&reader->lock);
	krc_standing_put(standing);
	if (stopped) /* the work item is not queued any more: end the READs that waited */
		krc_reader_more(&reader->more);
}

/* The READ of a slot has ended: call done(), and repeat the READ if its owner wants that. */
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
	/* slot->read is its owner's again, and may have been freed */
	krc_read_slot_leave(slot, NULL);
}

/* krc_flow.done: a slot has one request. */
static void krc_read_slot_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_read_slot *slot = container_of(flow, struct krc_read_slot, flow);

	list_del_init(&slot->req.list);
	krc_read_slot_judge(slot);
	krc_read_slot_end(slot, slot->req.status);
}

/*
 * krc_flow.check: called before a READ is posted, and again before a replay: if another flow's
 * request to the same target has failed, a replayed READ would stall all flows of the channel
 * once more. A target that is not proven any more is asked apart: on a shared channel a leased
 * request might expire and reset it each time before the hardware reports the timeout, and the
 * target would never be found silent.
 */
static int krc_read_slot_check(struct krc_req *req)
{
	struct krc_read_slot *slot = container_of(req, struct krc_read_slot, req);

	/* a lease begins when its READ does, also after it waited its turn or for a reset */
	slot->read->start = jiffies;
	if (slot->flow.kind == KRC_CHANNEL_PROBATION ||
	    krc_standing_now(slot->standing) == KRC_STANDING_PROVEN)
		return 0;
	return READ_ONCE(slot->standing->state) == KRC_STANDING_SILENT ? -ETIMEDOUT
								       : KRC_READ_ELSEWHERE;
}

/*
 * Submit READs that got slots. No lock is held; some may have ended when this returns. They are
 * of all payers: the task that hands them out must not be preempted, for as long as its scheduler
 * likes, with READs of others in its hands.
 */
static void krc_read_slots_start(struct list_head *started)
{
	struct krc_read *read, *next;

	lockdep_assert(softirq_count());
	list_for_each_entry_safe(read, next, started, list) {
		struct krc_read_slot *slot = read->slot;
		int err;

		list_del_init(&read->list);
		err = krc_read_slot_submit(slot);
		if (err)
			krc_read_slot_end(slot, err);
	}
}

/* Admit the READs in @again anew, hand out slots, and end the READs that are refused. */
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
	local_bh_disable();
	spin_lock(&reader->lock);
	err = krc_read_admit(reader, read);
	read->queued = !err;
	krc_read_slots_hand_out(reader, &started);
	slot = err ? NULL : read->slot;
	spin_unlock(&reader->lock);
	krc_read_slots_start(&started);
	local_bh_enable();
	if (slot)
		*ret_index = krc_flow_index(&slot->flow);
	return err;
}

/* A READ that waits in no share: for the probe of its target, or to be admitted anew. */
static bool krc_read_also_waits(struct krc_reader *reader, struct krc_read *read, const void *payer)
{
	struct krc_standing *standing = read->standing;
	struct krc_read *probe = standing->probe;
	u32 shared = KRC_SLOTS_SHARED;
	bool sooner = probe && probe->share &&
		      krc_read_sooner(reader, probe, payer, probe->share->set);

	lockdep_assert_held(&reader->lock);
	if (!sooner) {
		/* it goes where proven targets are READ, if the probe is answered */
		if (krc_share_before(krc_share_find(reader, payer, shared), NULL) <
		    krc_share_before(krc_share_find(reader, read->payer, shared), NULL))
			read->payer = payer;
		return false;
	}
	list_del_init(&read->list);
	read->payer = payer;
	if (!krc_read_replace(reader, read, probe->share->set))
		return true;
	list_add_tail(&read->list, &standing->waiting);
	return false;
}

/* Return: whether the READ has moved, so that it may have its turn now. */
static bool krc_read_also(struct krc_reader *reader, struct krc_read *read, const void *payer)
{
	struct krc_share *from = read->share, *to;

	lockdep_assert_held(&reader->lock);
	if (!from)
		return krc_read_also_waits(reader, read, payer);
	if (!krc_read_sooner(reader, read, payer, from->set))
		return false;
	to = krc_share_get(reader, payer, from->set);
	if (!to)
		return false;
	list_del_init(&read->list);
	read->payer = payer;
	krc_share_add(reader, to, read);
	krc_share_settle(reader, from);
	return true;
}

void krc_pool_read_also(struct krc_pool *pool, struct krc_read *read, const void *payer)
{
	struct krc_reader *reader = pool->reader;

	spin_lock_bh(&reader->lock);
	if (read->queued && !reader->stopped && krc_read_also(reader, read, payer))
		queue_work(pool->wq, &reader->more);
	spin_unlock_bh(&reader->lock);
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

/* ---- create and destroy */

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
		if (i < KRC_READ_SLOTS_SHARED)
			continue;
		slot->flow.kind = KRC_CHANNEL_PROBATION;
		slot->flow.nth = i - KRC_READ_SLOTS_SHARED;
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
	reader->memory = krc_dma_alloc(dma, bytes, &reader->dma);
	if (!reader->memory)
		goto err_reader;
	err = pool->ops->key_dma(pool->rail->hw, reader->dma, bytes, KRP_ACCESS_LOCAL_WRITE,
				 &reader->key);
	if (err)
		goto err_memory;
	pool->reader = reader;
	return 0;

err_memory:
	krc_dma_free(dma, bytes, reader->memory, reader->dma);
err_reader:
	kvfree(reader);
	return err;
}

/* Move all READs that wait for a slot to @again. */
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

			share->used++; /* keeps the share until the settle below */
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
	u32 i;

	for (i = 0; i < KRC_READ_SLOTS; i++)
		krc_flow_release(&reader->slots[i].flow);
	WARN_ON(!bitmap_empty(reader->used, KRC_READ_SLOTS));
	if (pool->ops->key_destroy(pool->rail->hw, &reader->key))
		krc_dma_free(pool->ops->dma_device(pool->rail->hw), KRC_READ_SLOTS * KRC_READ_BYTES,
			     reader->memory, reader->dma);
	kvfree(reader);
}
