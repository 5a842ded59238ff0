// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the pool as a whole: creation, stop, watchdog, polling, statistics and the upcalls of the
 * provider.
 *
 * Stop: no flow is accepted; the provider destroys the send queues, after which the hardware
 * accesses no memory of a request; only then the requests complete, each once. So stopping
 * does not depend on the hardware still answering.
 * Locking: krc_pool.lock (mutex) around the stop and the watches; else pool/pool_priv.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "base/log.h"
#include "base/spin.h"
#include "pool/pool_priv.h"

/*
 * Check one channel for progress: it may have lost an interrupt, or the hardware is stuck. And
 * krc_pool_on_fatal() may have come too late for a softirq that was just ending.
 */
static void krc_watchdog_look(struct krc_channel *ch)
{
	unsigned long now = jiffies;

	spin_lock_bh(&ch->lock);
	if (!krc_channel_works(ch))
		goto out;
	if (ch->head == ch->tail)
		krc_window_look(ch);
	if (!test_bit(0, &ch->failure.fatal) &&
	    (ch->head == ch->tail ||
	     time_before(now, ch->progress + msecs_to_jiffies(KRC_WATCHDOG_MS))))
		goto out;
	ch->arming.armed = false; /* if an interrupt was lost, ask for another */
	krc_channel_run(ch, KRC_POLL_BUDGET);
	if (krc_channel_works(ch) && ch->head != ch->tail &&
	    time_after(now, ch->progress + msecs_to_jiffies(KRC_STUCK_MS))) {
		krc_port_warn_limited(ch->pool->rail->ibdev, ch->pool->rail->num,
				      "initiator %u completes nothing, reset\n", ch->index);
		krc_channel_fault(ch, KRC_FAULT_FATAL, NULL);
	}
out:
	spin_unlock_bh(&ch->lock);
}

static void krc_pool_watchdog(struct work_struct *work)
{
	struct krc_pool *pool = container_of(to_delayed_work(work), struct krc_pool, watchdog);
	const struct krc_channels *all;
	u32 i;

	rcu_read_lock();
	all = krc_pool_channels(pool);
	for (i = 0; i < all->nr; i++)
		krc_watchdog_look(all->at[i]);
	rcu_read_unlock();
	queue_delayed_work(pool->wq, &pool->watchdog, msecs_to_jiffies(KRC_WATCHDOG_MS));
}

/* Make the channels that a pool begins with. */
static int krc_pool_populate(struct krc_pool *pool, u32 initiators)
{
	const struct {
		enum krc_channel_kind kind;
		u32 nr;
	} made[] = { { KRC_CHANNEL_SHARED, initiators },
		     { KRC_CHANNEL_PROBATION, KRC_POOL_APART },
		     { KRC_CHANNEL_ISOLATED, KRC_POOL_ISOLATED } };
	struct krc_channel *ch;
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(made); i++) {
		for (j = 0; j < made[i].nr; j++) {
			ch = krc_pool_add(pool, made[i].kind);
			if (IS_ERR(ch))
				return PTR_ERR(ch);
		}
	}
	return 0;
}

struct krc_pool *krc_pool_create(struct krc_rail *rail, u32 initiators, u32 depth)
{
	struct krc_pool *pool;
	int err = -ENOMEM;

	if (!initiators || !depth)
		return ERR_PTR(-EINVAL);
	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->rail = rail;
	pool->ops = rail->ops;
	pool->depth = depth;
	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->watches);
	krc_isolation_init(&pool->isolation);
	INIT_DELAYED_WORK(&pool->watchdog, krc_pool_watchdog);
	pool->wq = alloc_workqueue("krcore_pool", WQ_UNBOUND, 0);
	if (!pool->wq)
		goto err_pool;
	err = krc_channels_create(pool);
	if (err)
		goto err_wq;
	err = krc_pool_populate(pool, initiators);
	if (err)
		goto err_channels;
	err = krc_reader_create(pool);
	if (err)
		goto err_channels;
	queue_delayed_work(pool->wq, &pool->watchdog, msecs_to_jiffies(KRC_WATCHDOG_MS));
	return pool;

err_channels:
	mutex_lock(&pool->lock);
	krc_channels_stop(pool);
	mutex_unlock(&pool->lock);
	krc_channels_destroy(pool);
err_wq:
	destroy_workqueue(pool->wq);
err_pool:
	mutex_destroy(&pool->lock);
	kfree(pool);
	return ERR_PTR(err);
}

int krc_pool_enable_messages(struct krc_pool *pool, u32 channels)
{
	struct krc_channel *ch;
	u32 i;

	for (i = 0; i < channels; i++) {
		ch = krc_pool_add(pool, KRC_CHANNEL_MESSAGE);
		if (IS_ERR(ch))
			return PTR_ERR(ch);
	}
	return channels ? 0 : -EINVAL;
}

static void krc_pool_tell(struct krc_pool *pool)
{
	struct krc_pool_watch *watch, *tmp;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry_safe(watch, tmp, &pool->watches, list) {
		list_del_init(&watch->list);
		watch->stopped(watch);
		complete(&watch->gone); /* the watch may be freed from here on */
	}
}

void krc_pool_stop(struct krc_pool *pool)
{
	mutex_lock(&pool->lock);
	if (!pool->stopped) {
		WRITE_ONCE(pool->stopped, true);
		cancel_delayed_work_sync(&pool->watchdog);
		krc_reader_stop(pool);
		krc_channels_stop(pool);
		/*
		 * A CPU that is still dispatching (a task that polls, or a softirq that
		 * irq_poll_disable() does not wait for) has its bottom halves off: after a grace
		 * period it has finished, and so has its last done().
		 */
		synchronize_rcu();
		krc_reader_end(pool);
		krc_pool_tell(pool);
	}
	mutex_unlock(&pool->lock);
}

void krc_pool_destroy(struct krc_pool *pool)
{
	krc_reader_destroy(pool);
	krc_channels_destroy(pool);
	destroy_workqueue(pool->wq);
	mutex_destroy(&pool->lock);
	kfree(pool);
}

/* A task busy-polls a channel no more; @back: it may be back soon. */
static void krc_channel_leave_poller(struct krc_channel *ch, bool back)
{
	lockdep_assert_held(&ch->lock);
	WARN_ON_ONCE(!ch->arming.pollers);
	ch->arming.pollers--;
	if (back)
		WRITE_ONCE(ch->arming.polled_ns, ktime_get_ns());
	krc_channel_arm(ch);
}

u32 krc_pool_poll_begin(struct krc_pool *pool, u32 index)
{
	struct krc_channel *ch;

	rcu_read_lock();
	for (;;) {
		ch = krc_pool_find(pool, index);
		if (!ch)
			ch = krc_pool_channels(pool)->at[0];
		spin_lock_bh(&ch->lock);
		if (likely(ch->state != KRC_CHANNEL_STOPPED || READ_ONCE(pool->stopped)))
			break;
		spin_unlock_bh(&ch->lock); /* removed since it was found: any other */
		index = U32_MAX;
	}
	ch->arming.pollers++;
	index = ch->index;
	spin_unlock_bh(&ch->lock);
	rcu_read_unlock();
	return index;
}

void krc_pool_poll_end(struct krc_pool *pool, u32 index, bool back)
{
	struct krc_channel *ch;

	rcu_read_lock();
	ch = krc_pool_find(pool, index); /* a channel with pollers is in the list */
	spin_lock_bh(&ch->lock);
	krc_channel_leave_poller(ch, back);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
	rcu_read_unlock();
}

/* Whether something may be found by polling a channel. A hint. */
static bool krc_channel_busy(const struct krc_channel *ch)
{
	return READ_ONCE(ch->head) != READ_ONCE(ch->tail);
}

static void krc_channel_try(struct krc_channel *ch)
{
	if (!krc_channel_busy(ch) || !spin_trylock_bh(&ch->lock))
		return;
	krc_channel_run(ch, KRC_POLL_BATCH);
	spin_unlock_bh(&ch->lock);
}

void krc_pool_poll(struct krc_pool *pool, u32 index)
{
	struct krc_channel *ch;

	rcu_read_lock();
	ch = krc_pool_find(pool, index);
	if (ch)
		krc_channel_try(ch);
	rcu_read_unlock();
}

/* Poll the channels that this CPU submits to and that nobody else polls, but @polled. */
static void krc_pool_poll_others(const struct krc_channels *all, const struct krc_channel *polled)
{
	struct krc_channel *const *of = &all->at[all->first[KRC_CHANNEL_SHARED]];
	u32 nr = krc_channels_of(all, KRC_CHANNEL_SHARED), span = min(nr, KRC_POOL_SPREAD), i;
	u32 start = nr > span ? raw_smp_processor_id() % nr : 0;
	u64 now_ns;

	for (i = start; i < start + span; i++) {
		struct krc_channel *ch = of[likely(i < nr) ? i : i - nr];

		if (!krc_channel_busy(ch) || ch == polled || READ_ONCE(ch->arming.pollers) ||
		    READ_ONCE(ch->dispatching))
			continue;
		now_ns = ktime_get_ns();
		/* a hint: written seldom, so that its cache line stays shared */
		if (now_ns - READ_ONCE(ch->arming.polled_ns) > krc_spin_linger_ns() / 4)
			WRITE_ONCE(ch->arming.polled_ns, now_ns);
		krc_channel_try(ch);
	}
}

void krc_pool_poll_nearby(struct krc_pool *pool, u32 index)
{
	struct krc_channel *ch;

	rcu_read_lock();
	ch = krc_pool_find(pool, index);
	if (ch)
		krc_channel_try(ch);
	krc_pool_poll_others(krc_pool_channels(pool), ch);
	rcu_read_unlock();
}

/* krc_channel_try() by a poller, who leaves if *@told is at @until then. Return: whether it left. */
static bool krc_channel_try_until(struct krc_channel *ch, const u64 *told, u64 until)
{
	bool left;

	if (!krc_channel_busy(ch) || !spin_trylock_bh(&ch->lock))
		return false;
	krc_channel_run(ch, KRC_POLL_BATCH);
	left = smp_load_acquire(told) >= until; /* pairs with done() */
	if (left) {
		krc_channel_leave_poller(ch, true);
		krc_channel_dispatch(ch);
	}
	spin_unlock_bh(&ch->lock);
	return left;
}

bool krc_pool_poll_until(struct krc_pool *pool, u32 index, const u64 *told, u64 until)
{
	struct krc_channel *ch;
	bool left;

	rcu_read_lock();
	ch = krc_pool_find(pool, index); /* a channel with pollers is in the list */
	left = krc_channel_try_until(ch, told, until);
	krc_pool_poll_others(krc_pool_channels(pool), ch);
	rcu_read_unlock();
	if (left || smp_load_acquire(told) < until) /* as above */
		return left;
	krc_pool_poll_end(pool, index, true);
	return true;
}

int krc_pool_watch(struct krc_pool *pool, struct krc_pool_watch *watch)
{
	int err = 0;

	INIT_LIST_HEAD(&watch->list);
	init_completion(&watch->gone);
	mutex_lock(&pool->lock);
	if (pool->stopped)
		err = -ENODEV;
	else
		list_add_tail(&watch->list, &pool->watches);
	mutex_unlock(&pool->lock);
	return err;
}

void krc_pool_unwatch(struct krc_pool *pool, struct krc_pool_watch *watch)
{
	mutex_lock(&pool->lock);
	list_del_init(&watch->list);
	mutex_unlock(&pool->lock);
}

void krc_pool_stats(struct krc_pool *pool, struct krc_pool_stats *ret_stats)
{
	struct krc_pool_stats found = {};
	const struct krc_channels *all;
	struct krc_channel_stats sum;
	u32 i;

	rcu_read_lock();
	all = krc_pool_channels(pool);
	found.initiators = krc_channels_of(all, KRC_CHANNEL_SHARED);
	sum = all->past;
	for (i = 0; i < all->nr; i++) {
		struct krc_channel *ch = all->at[i];

		spin_lock_bh(&ch->lock);
		found.depth = max(found.depth, ch->depth);
		found.dead += ch->state == KRC_CHANNEL_DEAD;
		found.outstanding += ch->tail - ch->head;
		krc_channel_stats_add(&sum, &ch->stats);
		spin_unlock_bh(&ch->lock);
	}
	rcu_read_unlock();
	found.posted = sum.posted;
	found.completed = sum.completed;
	found.faults = sum.faults;
	found.recoveries = sum.recoveries;
	found.replayed = sum.replayed;
	found.unknown = sum.unknown;
	found.timeouts = sum.timeouts;
	found.refused_reads = sum.refused_reads;
	found.expired = sum.expired;
	found.busy = sum.busy;
	found.strays = sum.strays;
	found.target_changes = sum.target_changes;
	found.isolated = sum.isolated;
	*ret_stats = found;
}

const void *krc_pool_payer(void *initiator_owner)
{
	const struct krc_channel *ch = initiator_owner;

	lockdep_assert_held(&ch->lock);
	return krc_flow_payer(ch->posting);
}

void krc_pool_on_completion(void *initiator_owner)
{
	struct krc_channel *ch = initiator_owner;

	irq_poll_sched(&ch->iop);
}

void krc_pool_on_fatal(void *initiator_owner)
{
	struct krc_channel *ch = initiator_owner;

	set_bit(0, &ch->failure.fatal);
	irq_poll_sched(&ch->iop);
}
