// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the channels of a pool, from creation to end, and the list of them.
 *
 * The list is an array under RCU, so that a submitter finds its channel without a lock, and it is
 * replaced when a channel is added or removed. A channel that is removed is first taken from
 * those that flows choose from; then it is LEAVING: nothing more is posted, and what is in the
 * hardware completes. When all of it has been told, the flows that still have requests waiting
 * move to other channels. Until then the channel stays in the list, so that watchdog, stop and
 * statistics find it. The last step is as at the stop of the pool: the provider destroys the send
 * queue, after which the hardware accesses no memory of a request.
 * Locking: krc_pool.lock (mutex) for changes of the list; else pool/pool_priv.h.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "pool/pool_priv.h"

/* A DC initiator: it may address any target. */
static struct krc_hw_initiator *krc_channel_create_dc(struct krc_rail *rail, u32 depth, u32 index,
						      struct krc_channel *owner)
{
	const struct krc_hw_send send = { .depth = depth,
					  .ack_timeout = rail->ack_timeout,
					  .vector = index,
					  .use = krc_channel_kinds[owner->kind].use,
					  .owner = owner };

	return rail->ops->initiator_create(rail->hw, rail->num, rail->gid_index, &send);
}

const struct krc_channel_ops krc_channel_kinds[KRC_CHANNEL_KINDS] = {
	[KRC_CHANNEL_SHARED] = {
		.depth_max = U32_MAX,
		.use = KRC_HW_DATA,
		.pick = krc_pick_shared,
		.create = krc_channel_create_dc,
	},
	[KRC_CHANNEL_PROBATION] = {
		.depth_max = KRC_APART_DEPTH,
		.use = KRC_HW_PROBE,
		.pick = krc_pick_probation,
		.create = krc_channel_create_dc,
	},
	[KRC_CHANNEL_MESSAGE] = {
		.depth_max = U32_MAX,
		.use = KRC_HW_MESSAGES,
		.pick = krc_pick_message,
		.create = krc_channel_create_dc,
	},
	[KRC_CHANNEL_ISOLATED] = {
		.depth_max = U32_MAX,
		.use = KRC_HW_DATA,
		.pick = krc_pick_shared,
		.create = krc_channel_create_dc,
	},
};

/* ---- one channel */

static void krc_channel_free(struct kref *ref)
{
	struct krc_channel *ch = container_of(ref, struct krc_channel, ref);

	kvfree_rcu(ch, rcu);
}

void krc_channel_put(struct krc_channel *ch)
{
	kref_put(&ch->ref, krc_channel_free);
}

static struct krc_channel *krc_channel_create(struct krc_pool *pool, enum krc_channel_kind kind,
					      u32 index)
{
	const struct krc_channel_ops *ops = &krc_channel_kinds[kind];
	u32 depth = min(pool->depth, ops->depth_max), slots = roundup_pow_of_two(depth);
	struct krc_channel *ch;
	struct krc_hw_initiator *hw;

	ch = kvzalloc(struct_size(ch, slots, slots), GFP_KERNEL);
	if (!ch)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&ch->lock);
	kref_init(&ch->ref);
	ch->pool = pool;
	ch->index = index;
	ch->kind = kind;
	ch->state = KRC_CHANNEL_READY;
	ch->depth = depth;
	ch->mask = slots - 1;
	krc_window_init(ch);
	ch->progress = jiffies;
	INIT_LIST_HEAD(&ch->turn);
	INIT_LIST_HEAD(&ch->held);
	INIT_LIST_HEAD(&ch->evicted);
	INIT_LIST_HEAD(&ch->finished);
	INIT_DELAYED_WORK(&ch->failure.recover, krc_channel_recover);
	INIT_DELAYED_WORK(&ch->lease.expiry, krc_channel_expire);
	irq_poll_init(&ch->iop, KRC_POLL_BUDGET, krc_channel_softirq);
	krc_compat_hrtimer(&ch->arming.linger, krc_channel_linger_over, HRTIMER_MODE_REL_SOFT);
	hw = ops->create(pool->rail, depth, index, ch);
	if (IS_ERR(hw)) {
		kvfree(ch);
		return ERR_CAST(hw);
	}
	ch->hw = hw;
	return ch;
}

/* Stop the hardware: afterwards it accesses no memory of requests and makes no upcall. */
static void krc_channel_quiesce(struct krc_channel *ch)
{
	spin_lock_bh(&ch->lock);
	krc_channel_poll(ch, ch->depth);
	krc_channel_set_state(ch, KRC_CHANNEL_STOPPED);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
	cancel_delayed_work_sync(&ch->lease.expiry);
	cancel_delayed_work_sync(&ch->failure.recover);
	hrtimer_cancel(&ch->arming.linger);
	ch->pool->ops->initiator_destroy(ch->hw);
	irq_poll_disable(&ch->iop);
}

static void krc_channel_stop(struct krc_channel *ch)
{
	krc_channel_quiesce(ch);
	spin_lock_bh(&ch->lock);
	ch->hw = NULL;
	krc_channel_abort(ch, -ENODEV);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
}

/* ---- the list */

struct krc_channel *krc_pool_find(struct krc_pool *pool, u32 index)
{
	const struct krc_channels *all = krc_pool_channels(pool);
	u32 i;

	if (likely(index < all->nr && all->at[index]->index == index))
		return all->at[index];
	for (i = 0; i < all->nr; i++)
		if (all->at[i]->index == index)
			return all->at[i];
	return NULL;
}

static u32 krc_channels_unused_index(struct krc_pool *pool)
{
	u32 index = 0;

	lockdep_assert_held(&pool->lock);
	while (krc_pool_find(pool, index))
		index++;
	return index;
}

/* Put a channel into the list behind those of @section, which may be KRC_CHANNEL_KINDS: leaving. */
static void krc_channels_insert(struct krc_channels *all, struct krc_channel *ch, u32 section)
{
	u32 at = section < KRC_CHANNEL_KINDS ? all->first[section + 1] : all->nr;

	memmove(&all->at[at + 1], &all->at[at], (all->nr - at) * sizeof(all->at[0]));
	all->at[at] = ch;
	all->nr++;
	while (++section <= KRC_CHANNEL_KINDS)
		all->first[section]++;
}

static void krc_channels_erase(struct krc_channels *all, const struct krc_channel *ch)
{
	u32 at = 0, kind;

	while (all->at[at] != ch)
		at++;
	all->nr--;
	memmove(&all->at[at], &all->at[at + 1], (all->nr - at) * sizeof(all->at[0]));
	for (kind = 1; kind <= KRC_CHANNEL_KINDS; kind++)
		all->first[kind] -= all->first[kind] > at;
}

/* A copy of the list with room for one channel more. Return: it, or NULL. */
static struct krc_channels *krc_channels_copy(struct krc_pool *pool)
{
	const struct krc_channels *old = krc_pool_channels(pool);
	struct krc_channels *all = kzalloc(struct_size(all, at, old->nr + 1), GFP_KERNEL);

	if (all)
		memcpy(all, old, struct_size(old, at, old->nr));
	return all;
}

static void krc_channels_publish(struct krc_pool *pool, struct krc_channels *all)
{
	struct krc_channels *old = krc_pool_channels(pool);

	lockdep_assert_held(&pool->lock);
	rcu_assign_pointer(pool->channels, all);
	kfree_rcu(old, rcu);
}

int krc_channels_create(struct krc_pool *pool)
{
	struct krc_channels *all = kzalloc(sizeof(*all), GFP_KERNEL);

	if (!all)
		return -ENOMEM;
	rcu_assign_pointer(pool->channels, all);
	return 0;
}

static struct krc_channel *krc_pool_add_locked(struct krc_pool *pool, enum krc_channel_kind kind)
{
	struct krc_channels *all;
	struct krc_channel *ch;

	lockdep_assert_held(&pool->lock);
	if (pool->stopped)
		return ERR_PTR(-ENODEV);
	all = krc_channels_copy(pool);
	if (!all)
		return ERR_PTR(-ENOMEM);
	ch = krc_channel_create(pool, kind, krc_channels_unused_index(pool));
	if (IS_ERR(ch)) {
		kfree(all);
		return ch;
	}
	krc_channels_insert(all, ch, kind);
	krc_channels_publish(pool, all);
	return ch;
}

struct krc_channel *krc_pool_add(struct krc_pool *pool, enum krc_channel_kind kind)
{
	struct krc_channel *ch;

	mutex_lock(&pool->lock);
	ch = krc_pool_add_locked(pool, kind);
	mutex_unlock(&pool->lock);
	return ch;
}

/* ---- removal */

/* Let no flow choose a channel any more. Return: 0, -EBUSY, -ENOMEM, or -ENODEV: it is stopped. */
static int krc_channel_withdraw(struct krc_pool *pool, struct krc_channel *ch)
{
	struct krc_channels *all;
	int err = 0;

	mutex_lock(&pool->lock);
	if (pool->stopped)
		err = -ENODEV;
	else if (krc_channels_of(krc_pool_channels(pool), ch->kind) == 1)
		err = -EBUSY;
	all = err ? NULL : krc_channels_copy(pool);
	if (all) {
		krc_channels_erase(all, ch);
		krc_channels_insert(all, ch, KRC_CHANNEL_KINDS);
		krc_channels_publish(pool, all);
	} else if (!err) {
		err = -ENOMEM;
	}
	mutex_unlock(&pool->lock);
	return err;
}

/*
 * One step of a removal. Return: true when it is done: no flow has requests on the channel, and
 * its state is STOPPED.
 */
static bool krc_channel_leave(struct krc_channel *ch)
{
	bool told, over;

	spin_lock_bh(&ch->lock);
	krc_channel_set_state(ch, KRC_CHANNEL_LEAVING); /* if it is READY, perhaps after a reset */
	if (ch->state == KRC_CHANNEL_LEAVING)
		krc_channel_run(ch, KRC_POLL_BUDGET);
	told = krc_channel_told(ch) &&
	       (ch->state == KRC_CHANNEL_LEAVING || ch->state == KRC_CHANNEL_DEAD);
	over = told && !krc_channel_next_flow(ch) && !ch->arming.pollers &&
	       krc_channel_set_state(ch, KRC_CHANNEL_STOPPED);
	spin_unlock_bh(&ch->lock);
	if (told && !over) {
		local_bh_disable();
		while (krc_flow_move_one(ch))
			;
		local_bh_enable();
	}
	return over || READ_ONCE(ch->pool->stopped);
}

/* The last step: destroy the send queue, and drop the channel from the list. */
static void krc_channel_drop(struct krc_pool *pool, struct krc_channel *ch)
{
	struct krc_channels *all;

	lockdep_assert_held(&pool->lock);
	krc_channel_stop(ch);
	all = krc_channels_copy(pool);
	if (!all)
		return; /* stopped as it is it stays in the list, as long as the pool */
	krc_channels_erase(all, ch);
	krc_channel_stats_add(&all->past, &ch->stats);
	krc_channels_publish(pool, all);
	synchronize_rcu(); /* also a softirq that irq_poll_disable() did not wait for */
	krc_channel_put(ch);
}

int krc_pool_remove(struct krc_pool *pool, struct krc_channel *ch)
{
	int err = krc_channel_withdraw(pool, ch);

	if (err)
		return err == -ENODEV ? 0 : err;
	synchronize_rcu(); /* nobody chooses it any more */
	while (!krc_channel_leave(ch))
		usleep_range(20, 100);
	mutex_lock(&pool->lock);
	if (!pool->stopped)
		krc_channel_drop(pool, ch);
	mutex_unlock(&pool->lock);
	return 0;
}

/* ---- all channels */

void krc_channel_stats_add(struct krc_channel_stats *sum, const struct krc_channel_stats *more)
{
	sum->posted += more->posted;
	sum->completed += more->completed;
	sum->faults += more->faults;
	sum->recoveries += more->recoveries;
	sum->replayed += more->replayed;
	sum->unknown += more->unknown;
	sum->timeouts += more->timeouts;
	sum->refused_reads += more->refused_reads;
	sum->expired += more->expired;
	sum->busy += more->busy;
	sum->strays += more->strays;
	sum->target_changes += more->target_changes;
	sum->isolated += more->isolated;
}

void krc_channels_stop(struct krc_pool *pool)
{
	const struct krc_channels *all = krc_pool_channels(pool);
	u32 i;

	lockdep_assert_held(&pool->lock);
	for (i = 0; i < all->nr; i++)
		if (all->at[i]->hw)
			krc_channel_stop(all->at[i]);
}

void krc_channels_destroy(struct krc_pool *pool)
{
	struct krc_channels *all = rcu_dereference_protected(pool->channels, true);
	u32 i;

	for (i = 0; i < all->nr; i++)
		krc_channel_put(all->at[i]);
	RCU_INIT_POINTER(pool->channels, NULL);
	kfree(all);
}
