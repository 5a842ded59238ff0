// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the lanes of a port from their creation to their end, and which initiator holds which: lists of
 * the holders that wait and of those that are to be called.
 *
 * A task that has caused an upcall makes it, one at a time in a port: a task that comes meanwhile leaves
 * its own to the one that is at it. So they do not nest, however many holders pass a lane on to
 * each other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/verbs/lanes_priv.h"

#define KRC_LANES_SYNC_MS 10000
#define KRC_LANES_RD_ATOMIC 16

/*
 * Largest generation under which lanes of a port were ended. What ports of that one have accepted
 * is forgotten: a REQUEST of then could come again (krp_lanes.forgot_ms).
 */
static atomic64_t krc_lanes_ended = ATOMIC64_INIT(0);

void krc_lanes_kick(struct krc_lanes *lanes)
{
	mod_delayed_work(lanes->wq, &lanes->work, 0);
}

bool krc_lane_enter(struct krc_lane_slot *slot, enum krc_slot to)
{
	static const u8 ways[KRC_SLOT_STATES] = {
		[KRC_SLOT_SHUT] = BIT(KRC_SLOT_OPEN) | BIT(KRC_SLOT_STOPPING) |
				  BIT(KRC_SLOT_BROKEN) | BIT(KRC_SLOT_RESETTING),
		[KRC_SLOT_OPEN] = BIT(KRC_SLOT_STOPPING) | BIT(KRC_SLOT_BROKEN) |
				  BIT(KRC_SLOT_RESETTING),
		[KRC_SLOT_STOPPING] = BIT(KRC_SLOT_SHUT) | BIT(KRC_SLOT_BROKEN) |
				      BIT(KRC_SLOT_RESETTING),
		[KRC_SLOT_BROKEN] = BIT(KRC_SLOT_RESETTING),
		[KRC_SLOT_RESETTING] = BIT(KRC_SLOT_SHUT),
	};

	if (!(ways[slot->state] & BIT(to)))
		return false;
	slot->state = to;
	return true;
}

/* ---- holders */

/* Have a holder be called, unless that is due already: then the later reason counts. */
static void krc_lane_call(struct krc_lanes *lanes, struct krc_lane_holder *holder, int call)
{
	lockdep_assert_held(&lanes->lock);
	if (!holder->call)
		list_add_tail(&holder->calls, &lanes->calls);
	holder->call = call;
}

static void krc_lane_uncall(struct krc_lane_holder *holder)
{
	if (holder->call)
		list_del(&holder->calls);
	holder->call = 0;
}

void krc_lanes_call(struct krc_lanes *lanes)
{
	struct krc_lane_holder *holder;
	u32 turn;
	int call;

	spin_lock_bh(&lanes->lock);
	if (lanes->runs) {
		spin_unlock_bh(&lanes->lock);
		return;
	}
	lanes->runs = true;
	/* bottom halves stay off: a task that is kept from its processor would hold up calls of others */
	while ((holder = list_first_entry_or_null(&lanes->calls, struct krc_lane_holder, calls))) {
		call = holder->call;
		turn = holder->turn;
		krc_lane_uncall(holder);
		lanes->calling = holder;
		spin_unlock(&lanes->lock);
		if (call > 0)
			holder->ready(holder, turn);
		else
			holder->lost(holder, turn, call);
		spin_lock(&lanes->lock);
		lanes->calling = NULL;
		if (waitqueue_active(&lanes->wait)) /* a waiter looks under the lock first */
			wake_up_all(&lanes->wait);
	}
	lanes->runs = false;
	wake_up_all(&lanes->wait);
	spin_unlock_bh(&lanes->lock);
}

bool krc_lanes_called(struct krc_lanes *lanes)
{
	bool called;

	spin_lock_bh(&lanes->lock);
	called = !lanes->runs && list_empty(&lanes->calls);
	spin_unlock_bh(&lanes->lock);
	return called;
}

/* Nobody holds a lane any more. */
static void krc_lane_left(struct krc_lane_slot *slot)
{
	slot->holder = NULL;
	if (slot->e)
		krp_lanes_unuse(slot->e, ktime_get_ns());
}

void krc_lane_detach(struct krc_lane_slot *slot)
{
	struct krc_lane_holder *holder = slot->holder;

	if (!holder)
		return;
	holder->state = KRC_HOLD_NONE;
	holder->slot = NULL;
	/* the holder may still post to its queue pair, which is there until it was told */
	krc_lane_left(slot);
}

void krc_lane_lose(struct krc_lanes *lanes, struct krc_lane_holder *holder, int err)
{
	lockdep_assert_held(&lanes->lock);
	if (holder->state == KRC_HOLD_WAITS) {
		list_del(&holder->list);
		holder->state = KRC_HOLD_NONE;
	} else if (holder->state != KRC_HOLD_HAS || holder->told_lost) {
		return;
	} else if (holder->call > 0) {
		krc_lane_detach(holder->slot); /* it does not know yet that it had one */
	}
	holder->told_lost = true;
	krc_lane_call(lanes, holder, err);
}

/* Give a lane to a holder that waits for it. */
static void krc_lane_give(struct krc_lanes *lanes, struct krc_lane_slot *slot,
			  struct krc_lane_holder *holder)
{
	lockdep_assert_held(&lanes->lock);
	list_del(&holder->list);
	holder->state = KRC_HOLD_HAS;
	holder->slot = slot;
	holder->qp = slot->own->qp;
	slot->holder = holder;
	slot->spared = 0;
	if (slot->e)
		krp_lanes_use(slot->e, ktime_get_ns());
	krc_lane_call(lanes, holder, 1);
}

/*
 * Whether a lane reaches whom a holder wants, and is for what the holder sends: which of those it is
 * does not matter once they are there.
 */
static bool krc_lane_suits(const struct krc_lanes *lanes, const struct krc_lane_slot *slot,
			   const struct krc_lane_holder *holder)
{
	u32 index = slot->e ? slot->e->lane.ports.index : slot - lanes->loops;

	if (!krc_lanes_alike(index, holder->index))
		return false;
	if (!slot->e)
		return le64_to_cpu(holder->peer.generation) == lanes->services.generation &&
		       !memcmp(holder->peer.gid, slot->peer.gid, KRP_GID_BYTES);
	return le64_to_cpu(holder->peer.generation) == slot->e->lane.ports.peer_generation &&
	       !memcmp(holder->peer.gid, slot->e->lane.ports.peer_gid, KRP_GID_BYTES);
}

void krc_lane_offer(struct krc_lanes *lanes, struct krc_lane_slot *slot)
{
	struct krc_lane_holder *holder;

	lockdep_assert_held(&lanes->lock);
	if (slot->state != KRC_SLOT_OPEN || slot->holder)
		return;
	list_for_each_entry(holder, &lanes->waiting, list) {
		if (krc_lane_suits(lanes, slot, holder)) {
			krc_lane_give(lanes, slot, holder);
			return;
		}
	}
}

/* The lane of an index that a holder may have. Return: it, or NULL: there is none. */
static struct krc_lane_slot *krc_lane_find(struct krc_lanes *lanes,
					   const struct krc_lane_holder *holder, u32 index)
{
	struct krp_lanes_entry *e;

	lockdep_assert_held(&lanes->lock);
	if (!memcmp(holder->peer.gid, lanes->services.gid.raw, KRP_GID_BYTES))
		return &lanes->loops[index];
	e = krp_lanes_find(&lanes->table, holder->peer.gid, index);
	return e ? krc_lane_slot_of(lanes, e) : NULL;
}

/*
 * Give a holder a lane that is there, of its index first. Return: whether it has one, or one of its
 * index comes to it when those before it have had that.
 */
static bool krc_lane_serve(struct krc_lanes *lanes, struct krc_lane_holder *holder)
{
	struct krc_lane_slot *slot;
	bool comes = false;
	u32 i;

	lockdep_assert_held(&lanes->lock);
	for (i = 0; i < KRP_LANE_INDEXES && holder->state == KRC_HOLD_WAITS; i++) {
		slot = krc_lane_find(lanes, holder, (holder->index + i) % KRP_LANE_INDEXES);
		if (!slot || slot->state != KRC_SLOT_OPEN || !krc_lane_suits(lanes, slot, holder))
			continue;
		comes |= !i;
		krc_lane_offer(lanes, slot); /* to this one, or to one before it */
	}
	return comes || holder->state == KRC_HOLD_HAS;
}

void krc_lanes_hold(struct krc_lanes *lanes, const struct krc_lane_peer *peer, u32 index, u32 turn,
		    struct krc_lane_holder *holder)
{
	bool kick = false;

	spin_lock_bh(&lanes->lock);
	if (WARN_ON_ONCE(holder->state != KRC_HOLD_NONE)) {
		spin_unlock_bh(&lanes->lock);
		return;
	}
	krc_lane_uncall(holder);
	holder->peer = *peer;
	holder->turn = turn;
	holder->index = index % KRP_LANE_INDEXES;
	holder->since_ns = ktime_get_ns();
	holder->round = lanes->round - 1; /* it may have been that of other lanes */
	holder->fails = 0;
	holder->told_lost = false;
	holder->state = KRC_HOLD_WAITS;
	list_add_tail(&holder->list, &lanes->waiting);
	if (!lanes->started || lanes->stopping)
		krc_lane_lose(lanes, holder, -ESHUTDOWN);
	else
		kick = !krc_lane_serve(lanes, holder);
	spin_unlock_bh(&lanes->lock);
	if (kick)
		krc_lanes_kick(lanes);
	krc_lanes_call(lanes);
}

void krc_lanes_release(struct krc_lanes *lanes, struct krc_lane_holder *holder, bool broken)
{
	struct krc_lane_slot *slot;
	bool kick = false;

	spin_lock_bh(&lanes->lock);
	krc_lane_uncall(holder);
	slot = holder->slot;
	if (holder->state == KRC_HOLD_WAITS) {
		list_del(&holder->list);
	} else if (holder->state == KRC_HOLD_HAS) {
		krc_lane_left(slot);
		if (broken) {
			slot->breaker = holder;
			krc_lane_enter(slot, KRC_SLOT_BROKEN);
		}
		krc_lane_offer(lanes, slot);
		kick = slot->state != KRC_SLOT_OPEN;
	}
	holder->state = KRC_HOLD_NONE;
	holder->slot = NULL;
	holder->qp = NULL;
	spin_unlock_bh(&lanes->lock);
	if (kick)
		krc_lanes_kick(lanes);
	krc_lanes_call(lanes);
}

enum krc_lane_wish krc_lanes_wanted(struct krc_lanes *lanes, const struct krc_lane_holder *holder)
{
	enum krc_lane_wish wanted = KRC_LANE_WISH_NONE;
	const struct krc_lane_holder *other;

	spin_lock_bh(&lanes->lock);
	if (holder->state == KRC_HOLD_HAS) {
		list_for_each_entry(other, &lanes->waiting, list)
			if (krc_lane_suits(lanes, holder->slot, other))
				wanted = KRC_LANE_WISH_SOON;
		if (holder->slot->state != KRC_SLOT_OPEN)
			wanted = KRC_LANE_WISH_NOW;
	}
	spin_unlock_bh(&lanes->lock);
	return wanted;
}

/* Whether a holder is being called, or a lane that it has released as broken is not in RESET. */
static bool krc_lane_busy(struct krc_lanes *lanes, const struct krc_lane_holder *holder)
{
	bool busy;
	u32 i;

	spin_lock_bh(&lanes->lock);
	busy = lanes->calling == holder;
	for (i = 0; i < 2 * KRC_LANES_MAX && !busy; i++)
		busy = lanes->slots[i].breaker == holder;
	for (i = 0; i < KRP_LANE_INDEXES && !busy; i++)
		busy = lanes->loops[i].breaker == holder;
	spin_unlock_bh(&lanes->lock);
	return busy;
}

void krc_lanes_sync(struct krc_lanes *lanes, struct krc_lane_holder *holder)
{
	while (!wait_event_timeout(lanes->wait, !krc_lane_busy(lanes, holder),
				   msecs_to_jiffies(KRC_LANES_SYNC_MS)))
		krc_port_warn_limited(lanes->queues.ibdev, lanes->port,
				      "a lane is not in RESET after %d ms\n", KRC_LANES_SYNC_MS);
}

/* ---- life */

static int krc_lanes_tables(struct krc_lanes *lanes)
{
	struct krp_lanes_memory *mem = &lanes->table.mem;

	mem->chains_nr = KRC_LANES_CHAINS;
	mem->known_nr = KRC_LANES_KNOWN;
	mem->entry = kvcalloc(2 * KRC_LANES_MAX, sizeof(*mem->entry), GFP_KERNEL);
	mem->chains = kvcalloc(KRC_LANES_CHAINS, sizeof(*mem->chains), GFP_KERNEL);
	mem->known = kvcalloc(KRC_LANES_KNOWN, sizeof(*mem->known), GFP_KERNEL);
	lanes->slots = kvcalloc(2 * KRC_LANES_MAX, sizeof(*lanes->slots), GFP_KERNEL);
	lanes->wq = alloc_ordered_workqueue("krcore_lanes", WQ_HIGHPRI);
	if (!mem->entry || !mem->chains || !mem->known || !lanes->slots || !lanes->wq)
		return -ENOMEM;
	return 0;
}

struct krc_lanes *krc_lanes_create(struct krc_hw *hw, u32 port, u16 gid_index,
				   const struct krc_lanes_queues *queues, struct krp_value *value)
{
	const struct ib_device_attr *attr = &queues->ibdev->attrs;
	struct krc_lanes *lanes = kvzalloc(sizeof(*lanes), GFP_KERNEL);
	int err;

	if (!lanes)
		return ERR_PTR(-ENOMEM);
	lanes->hw = hw;
	lanes->port = port;
	lanes->gid_index = gid_index;
	lanes->queues = *queues;
	lanes->max_rd =
		clamp(min(attr->max_qp_rd_atom, attr->max_qp_init_rd_atom), 1, KRC_LANES_RD_ATOMIC);
	spin_lock_init(&lanes->lock);
	INIT_LIST_HEAD(&lanes->waiting);
	INIT_LIST_HEAD(&lanes->calls);
	INIT_LIST_HEAD(&lanes->payers);
	INIT_LIST_HEAD(&lanes->spare);
	INIT_LIST_HEAD(&lanes->dead);
	INIT_WORK(&lanes->reap, krc_lane_qps_reap);
	init_waitqueue_head(&lanes->wait);
	INIT_DELAYED_WORK(&lanes->work, krc_lanes_run);
	err = krc_lanes_tables(lanes);
	if (!err)
		err = krc_shake_create(lanes, value);
	if (err) {
		krc_lanes_destroy(lanes);
		return ERR_PTR(err);
	}
	value->dct.max_rd_atomic = lanes->max_rd;
	return lanes;
}

const struct krp_lanes_conf krc_lanes_conf = {
	.lane = { .retry_ns = 4 * KRP_LANE_NS_PER_MS,
		  .retry_max_ns = 256 * KRP_LANE_NS_PER_MS,
		  .drain_ns = 2000 * KRP_LANE_NS_PER_MS,
		  .rest_ns = KRP_LANE_REST_MS * KRP_LANE_NS_PER_MS,
		  .tries = 9 },
	.idle_min_ns = 10 * KRP_LANE_NS_PER_MS,
	.idle_ns = 30000 * KRP_LANE_NS_PER_MS,
	.max = KRC_LANES_MAX,
	.reserved = KRC_LANES_RESERVED,
	.of_pair = KRP_LANE_INDEXES,
	.half_max = 32,
};

int krc_lanes_start(struct krc_lanes *lanes, const struct krc_hw_lanes *services)
{
	struct krp_lanes_memory mem = lanes->table.mem;
	int err;
	u32 i;

	lanes->services = *services;
	err = krp_lanes_init(&lanes->table, &krc_lanes_conf, &mem, services->gid.raw,
			     services->generation, get_random_u64());
	if (err || !services->value.dct.ud_qpn ||
	    le64_to_cpu(services->value.generation) != services->generation)
		return -EINVAL;
	krp_lanes_payer_init(&lanes->table, &lanes->users, KRC_LANES_MAX);
	/* larger than any number that a port with this address has given in this generation */
	lanes->table.number = ktime_get_boottime_ns();
	if (services->generation <= (u64)atomic64_read(&krc_lanes_ended))
		lanes->table.forgot_ms = ktime_get_ns() / KRP_LANE_NS_PER_MS + 1;
	for (i = 0; i < 2 * KRC_LANES_MAX; i++)
		lanes->slots[i].e = &mem.entry[i];
	for (i = 0; i < KRP_LANE_INDEXES; i++)
		memcpy(lanes->loops[i].peer.gid, services->gid.raw, KRP_GID_BYTES);
	krc_lane_qps_refill(lanes);
	err = krc_shake_start(lanes);
	if (err)
		return err;
	spin_lock_bh(&lanes->lock);
	lanes->started = true;
	spin_unlock_bh(&lanes->lock);
	krc_lanes_kick(lanes);
	return 0;
}

void krc_lanes_stats(struct krc_lanes *lanes, struct krc_lanes_stats *ret_stats)
{
	const struct krc_shake *shake = &lanes->shake;

	spin_lock_bh(&lanes->lock);
	*ret_stats = (struct krc_lanes_stats){ .lanes = lanes->table.active,
					       .made = lanes->table.made,
					       .late = lanes->table.late };
	spin_unlock_bh(&lanes->lock);
	/* the work item counts these */
	ret_stats->malformed = READ_ONCE(shake->malformed);
	ret_stats->unproved = READ_ONCE(shake->unproved);
	ret_stats->dropped = READ_ONCE(shake->dropped);
	ret_stats->mends = READ_ONCE(shake->mends);
}

/* Whether no lane is left. */
static bool krc_lanes_quiet(struct krc_lanes *lanes)
{
	bool quiet;
	u32 i;

	spin_lock_bh(&lanes->lock);
	quiet = !lanes->table.active;
	for (i = 0; i < KRP_LANE_INDEXES; i++)
		quiet &= !lanes->loops[i].own;
	spin_unlock_bh(&lanes->lock);
	return quiet;
}

void krc_lanes_stop(struct krc_lanes *lanes)
{
	struct krc_lane_holder *holder, *next;
	u64 generation = lanes->services.generation;

	if (!lanes->started)
		return;
	spin_lock_bh(&lanes->lock);
	lanes->stopping = true;
	lanes->table.shut = 1;
	list_for_each_entry_safe(holder, next, &lanes->waiting, list)
		krc_lane_lose(lanes, holder, -ESHUTDOWN);
	spin_unlock_bh(&lanes->lock);
	krc_lanes_call(lanes);
	krc_lanes_kick(lanes);
	if (!wait_event_timeout(lanes->wait, krc_lanes_quiet(lanes),
				msecs_to_jiffies(KRC_LANES_STOP_MS) / 2)) {
		spin_lock_bh(&lanes->lock);
		lanes->killing = true;
		spin_unlock_bh(&lanes->lock);
		krc_lanes_kick(lanes);
		wait_event(lanes->wait, krc_lanes_quiet(lanes)); /* takes some commands */
	}
	spin_lock_bh(&lanes->lock);
	lanes->started = false;
	spin_unlock_bh(&lanes->lock);
	cancel_delayed_work_sync(&lanes->work);
	krc_shake_stop(lanes);
	krc_lane_payers_tend(lanes); /* no lane is left */
	krc_lanes_call(lanes);
	wait_event(lanes->wait, krc_lanes_called(lanes));
	if (generation > (u64)atomic64_read(&krc_lanes_ended))
		atomic64_set(&krc_lanes_ended, generation);
}

void krc_lanes_destroy(struct krc_lanes *lanes)
{
	struct krp_lanes_memory *mem = &lanes->table.mem;
	struct krc_lane_qp *qp, *next;
	u32 i;

	krc_lanes_stop(lanes);
	krc_shake_destroy(lanes);
	for (i = 0; lanes->slots && i < 2 * KRC_LANES_MAX; i++)
		krc_lane_qp_free(lanes->slots[i].own);
	cancel_work_sync(&lanes->reap);
	list_splice(&lanes->dead, &lanes->spare);
	list_for_each_entry_safe(qp, next, &lanes->spare, list)
		krc_lane_qp_free(qp);
	if (lanes->wq) {
		cancel_delayed_work_sync(&lanes->work); /* events of queue pairs have woken it */
		destroy_workqueue(lanes->wq);
	}
	kvfree(lanes->slots);
	kvfree(mem->known);
	kvfree(mem->chains);
	kvfree(mem->entry);
	kvfree(lanes);
}
