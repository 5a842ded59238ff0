// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the pool as a whole: creation, stop, watchdog, statistics and the upcalls of the
 * provider.
 *
 * Stop: no flow is accepted; the provider destroys the initiators, after which the hardware
 * accesses no memory of a request; only then the requests complete, each once. So stopping
 * does not depend on the hardware still answering.
 * Locking: krc_pool.lock (mutex) around the stop and the watches; else pool/pool_priv.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/log.h"
#include "base/spin.h"
#include "pool/pool_priv.h"

/*
 * Check one initiator for progress: it may have lost an interrupt, or the hardware is stuck. And
 * krc_pool_on_fatal() may have come too late for a softirq that was just ending.
 */
static void krc_watchdog_look(struct krc_initiator *ini)
{
	unsigned long now = jiffies;

	spin_lock_bh(&ini->lock);
	if (ini->state != KRC_INI_READY)
		goto out;
	if (!test_bit(0, &ini->fatal) &&
	    (ini->head == ini->tail ||
	     time_before(now, ini->progress + msecs_to_jiffies(KRC_WATCHDOG_MS))))
		goto out;
	ini->armed = false; /* if an interrupt was lost, ask for another */
	krc_initiator_run(ini, KRC_POLL_BUDGET);
	if (ini->state == KRC_INI_READY && ini->head != ini->tail &&
	    time_after(now, ini->progress + msecs_to_jiffies(KRC_STUCK_MS))) {
		krc_port_warn_limited(ini->pool->rail->ibdev, ini->pool->rail->num,
				      "initiator %u completes nothing, reset\n", ini->index);
		krc_initiator_fault(ini, KRC_FAULT_FATAL, NULL);
	}
out:
	spin_unlock_bh(&ini->lock);
}

static void krc_pool_watchdog(struct work_struct *work)
{
	struct krc_pool *pool = container_of(to_delayed_work(work), struct krc_pool, watchdog);
	u32 i;

	for (i = 0; i < pool->made; i++)
		krc_watchdog_look(&pool->ini[i]);
	queue_delayed_work(pool->wq, &pool->watchdog, msecs_to_jiffies(KRC_WATCHDOG_MS));
}

static int krc_initiator_init(struct krc_pool *pool, struct krc_initiator *ini, u32 depth)
{
	struct krc_rail *rail = pool->rail;
	u32 slots = roundup_pow_of_two(depth);

	spin_lock_init(&ini->lock);
	ini->pool = pool;
	ini->index = ini - pool->ini;
	ini->state = KRC_INI_READY;
	ini->depth = depth;
	ini->mask = slots - 1;
	ini->progress = jiffies;
	INIT_LIST_HEAD(&ini->turn);
	INIT_LIST_HEAD(&ini->held);
	INIT_LIST_HEAD(&ini->finished);
	INIT_DELAYED_WORK(&ini->recover, krc_initiator_recover);
	INIT_DELAYED_WORK(&ini->expiry, krc_initiator_expire);
	irq_poll_init(&ini->iop, KRC_POLL_BUDGET, krc_initiator_softirq);
	krc_compat_hrtimer(&ini->linger, krc_initiator_linger_over, HRTIMER_MODE_REL_SOFT);
	ini->slots = kvcalloc(slots, sizeof(*ini->slots), GFP_KERNEL);
	if (!ini->slots)
		return -ENOMEM;
	ini->hw = pool->ops->initiator_create(rail->hw, rail->num, rail->gid_index, depth,
					      rail->ack_timeout, ini->index, ini);
	if (IS_ERR(ini->hw)) {
		kvfree(ini->slots);
		return PTR_ERR(ini->hw);
	}
	return 0;
}

/* Stop the hardware: afterwards it accesses no memory of requests and makes no upcall. */
static void krc_initiator_quiesce(struct krc_initiator *ini)
{
	spin_lock_bh(&ini->lock);
	krc_initiator_poll(ini, ini->depth);
	krc_initiator_set_state(ini, KRC_INI_STOPPED);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
	cancel_delayed_work_sync(&ini->expiry);
	cancel_delayed_work_sync(&ini->recover);
	hrtimer_cancel(&ini->linger);
	ini->pool->ops->initiator_destroy(ini->hw);
	irq_poll_disable(&ini->iop);
}

static void krc_initiator_stop(struct krc_initiator *ini)
{
	krc_initiator_quiesce(ini);
	spin_lock_bh(&ini->lock);
	ini->hw = NULL;
	krc_initiator_abort(ini, -ENODEV);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

struct krc_pool *krc_pool_create(struct krc_rail *rail, u32 initiators, u32 depth)
{
	struct krc_pool *pool;
	int err;

	if (!initiators || !depth)
		return ERR_PTR(-EINVAL);
	pool = kvzalloc(struct_size(pool, ini, initiators + KRC_POOL_APART), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->rail = rail;
	pool->ops = rail->ops;
	pool->nr = initiators;
	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->watches);
	INIT_DELAYED_WORK(&pool->watchdog, krc_pool_watchdog);
	pool->wq = alloc_workqueue("krcore_pool", WQ_UNBOUND, 0);
	if (!pool->wq) {
		err = -ENOMEM;
		goto err_pool;
	}
	for (; pool->made < initiators + KRC_POOL_APART; pool->made++) {
		bool shared = pool->made < initiators;

		err = krc_initiator_init(pool, &pool->ini[pool->made],
					 shared ? depth : min(depth, KRC_APART_DEPTH));
		if (err)
			goto err_initiators;
	}
	err = krc_reader_create(pool);
	if (err)
		goto err_initiators;
	queue_delayed_work(pool->wq, &pool->watchdog, msecs_to_jiffies(KRC_WATCHDOG_MS));
	return pool;

err_initiators:
	while (pool->made--) {
		krc_initiator_stop(&pool->ini[pool->made]);
		kvfree(pool->ini[pool->made].slots);
	}
	destroy_workqueue(pool->wq);
err_pool:
	kvfree(pool);
	return ERR_PTR(err);
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
	u32 i;

	mutex_lock(&pool->lock);
	if (!pool->stopped) {
		WRITE_ONCE(pool->stopped, true);
		cancel_delayed_work_sync(&pool->watchdog);
		krc_reader_stop(pool);
		for (i = 0; i < pool->made; i++)
			krc_initiator_stop(&pool->ini[i]);
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
	u32 i;

	krc_reader_destroy(pool);
	for (i = 0; i < pool->made; i++)
		kvfree(pool->ini[i].slots);
	destroy_workqueue(pool->wq);
	mutex_destroy(&pool->lock);
	kvfree(pool);
}

void krc_pool_poll_begin(struct krc_pool *pool, u32 index)
{
	struct krc_initiator *ini = &pool->ini[index];

	spin_lock_bh(&ini->lock);
	ini->pollers++;
	spin_unlock_bh(&ini->lock);
}

void krc_pool_poll_end(struct krc_pool *pool, u32 index, bool back)
{
	struct krc_initiator *ini = &pool->ini[index];

	spin_lock_bh(&ini->lock);
	WARN_ON_ONCE(!ini->pollers);
	ini->pollers--;
	if (back)
		WRITE_ONCE(ini->polled_ns, ktime_get_ns());
	krc_initiator_arm(ini);
	krc_initiator_dispatch(ini);
	spin_unlock_bh(&ini->lock);
}

void krc_pool_poll(struct krc_pool *pool, u32 index)
{
	struct krc_initiator *ini = &pool->ini[index];

	if (READ_ONCE(ini->head) == READ_ONCE(ini->tail) || !spin_trylock_bh(&ini->lock))
		return;
	krc_initiator_run(ini, KRC_POLL_BATCH);
	spin_unlock_bh(&ini->lock);
}

void krc_pool_poll_nearby(struct krc_pool *pool, u32 index)
{
	u32 start = raw_smp_processor_id() % pool->nr, i;
	u64 now_ns;

	krc_pool_poll(pool, index);
	for (i = 0; i < min(pool->nr, KRC_POOL_SPREAD); i++) {
		u32 near = (start + i) % pool->nr;
		struct krc_initiator *ini = &pool->ini[near];

		if (near == index || READ_ONCE(ini->head) == READ_ONCE(ini->tail) ||
		    READ_ONCE(ini->pollers) || READ_ONCE(ini->dispatching))
			continue;
		now_ns = ktime_get_ns();
		/* a hint: written seldom, so that its cache line stays shared */
		if (now_ns - READ_ONCE(ini->polled_ns) > krc_spin_linger_ns() / 4)
			WRITE_ONCE(ini->polled_ns, now_ns);
		krc_pool_poll(pool, near);
	}
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
	struct krc_pool_stats sum = { .initiators = pool->nr };
	u32 i;

	for (i = 0; i < pool->made; i++) {
		struct krc_initiator *ini = &pool->ini[i];

		spin_lock_bh(&ini->lock);
		sum.depth = max(sum.depth, ini->depth);
		sum.posted += ini->stats.posted;
		sum.completed += ini->stats.completed;
		sum.faults += ini->stats.faults;
		sum.recoveries += ini->stats.recoveries;
		sum.replayed += ini->stats.replayed;
		sum.unknown += ini->stats.unknown;
		sum.timeouts += ini->stats.timeouts;
		sum.refused_reads += ini->stats.refused_reads;
		sum.expired += ini->stats.expired;
		sum.strays += ini->stats.strays;
		sum.dead += ini->state == KRC_INI_DEAD;
		sum.outstanding += ini->tail - ini->head;
		spin_unlock_bh(&ini->lock);
	}
	*ret_stats = sum;
}

void krc_pool_on_completion(void *initiator_owner)
{
	struct krc_initiator *ini = initiator_owner;

	irq_poll_sched(&ini->iop);
}

void krc_pool_on_fatal(void *initiator_owner)
{
	struct krc_initiator *ini = initiator_owner;

	set_bit(0, &ini->fatal);
	irq_poll_sched(&ini->iop);
}
