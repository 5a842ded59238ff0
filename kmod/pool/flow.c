// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the operations of a flow's owner: submit, cancel, resume, drain, restart; and which channel
 * a flow is on.
 *
 * A flow with nothing outstanding moves to the shared channel of the submitting CPU, or to one of
 * the next few if that one is busy or stalled (with sticky_targets, if it has another target:
 * pool/target.c); while it has requests outstanding it stays, which keeps its order. So a burst is
 * spread over channels: the hardware has a bounded number of READs of a channel in flight, and
 * serves one of its targets at a time.
 * krc_flow.outstanding is decremented only after done() has returned, so the last done() on
 * one channel is over before the first on another. From a channel that is being removed, and from a
 * shared one that was reset if it is isolated (pool/isolation.h), a flow moves with the requests that
 * wait, when all before them have been told. One that is evicted moves so while others stay.
 * Locking: krc_flow.lock, then the channel's; see pool/pool_priv.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>

#include "pool/pool_priv.h"

void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool,
		   void (*done)(struct krc_flow *flow, struct list_head *reqs, u32 nr),
		   int (*check)(struct krc_req *req))
{
	memset(flow, 0, sizeof(*flow));
	spin_lock_init(&flow->lock);
	flow->pool = pool;
	flow->payer = flow;
	INIT_LIST_HEAD(&flow->list);
	INIT_LIST_HEAD(&flow->behind);
	INIT_LIST_HEAD(&flow->waiting);
	INIT_LIST_HEAD(&flow->replay);
	INIT_LIST_HEAD(&flow->flight);
	atomic_set(&flow->outstanding, 0);
	flow->done = done;
	flow->check = check;
}

u32 krc_channel_load(const struct krc_channel *ch)
{
	enum krc_channel_state state = READ_ONCE(ch->state);
	u32 head = READ_ONCE(ch->head), load, limit;

	if (state != KRC_CHANNEL_READY)
		return state == KRC_CHANNEL_DEAD ? KRC_LOAD_DEAD : KRC_LOAD_UNREADY;
	smp_rmb(); /* head before tail: the tail read below is not behind that head */
	load = min(READ_ONCE(ch->tail) - head, ch->depth);
	load = max(load, READ_ONCE(ch->bytes) / KRC_LOAD_BYTES);
	if (!load)
		return 0;
	limit = READ_ONCE(ch->window.limit);
	if (unlikely(limit != ch->depth)) /* what is there takes as long as more would elsewhere */
		load = min(load * ch->depth / limit, KRC_LOAD_SLOW - 1);
	if (time_after(jiffies, READ_ONCE(ch->progress) + msecs_to_jiffies(KRC_SLOW_MS)))
		load += KRC_LOAD_SLOW;
	return load;
}

bool krc_channel_waits_for(struct krc_channel *ch, const struct krc_hw_address *to)
{
	bool waits = false;

	spin_lock(&ch->lock);
	if (ch->head != ch->tail)
		waits = !memcmp(ch->slots[ch->head & ch->mask].req->wr.address, to, sizeof(*to));
	spin_unlock(&ch->lock);
	return waits;
}

/* The nth channel of probation, or the next of them that is not dead. */
struct krc_channel *krc_pick_probation(const struct krc_channels *all, const struct krc_flow *flow,
				       const struct krc_hw_address *to)
{
	u32 first = all->first[KRC_CHANNEL_PROBATION], i;
	u32 nr = krc_channels_of(all, KRC_CHANNEL_PROBATION);

	for (i = 0; i < nr; i++) {
		struct krc_channel *ch = all->at[first + (flow->nth + i) % nr];

		if (READ_ONCE(ch->state) != KRC_CHANNEL_DEAD)
			return ch;
	}
	return all->at[first + flow->nth % nr];
}

/*
 * Of a kind, the channel of this CPU, or a less loaded one; with sticky_targets one that has this
 * target comes first. A request to the peer for which a channel is stalled goes to that same
 * channel, so that no other stalls on that peer as well.
 */
static __always_inline struct krc_channel *krc_pick_of(const struct krc_channels *all,
						       enum krc_channel_kind kind,
						       const struct krc_hw_address *to)
{
	u32 nr = krc_channels_of(all, kind);
	u32 start = raw_smp_processor_id() % nr, at = start, least = U32_MAX, i;
	struct krc_channel *const *of = &all->at[all->first[kind]];
	struct krc_channel *best;

	if (to && unlikely(READ_ONCE(krc_sticky))) {
		best = krc_pick_sticky(all, kind, start, to);
		if (best)
			return best;
	}
	best = of[start];
	for (i = 0; i < nr && least >= KRC_LOAD_BUSY; i++) {
		struct krc_channel *ch = of[at];
		u32 load = krc_channel_load(ch);

		if (++at == nr)
			at = 0;
		if (i >= KRC_POOL_SPREAD && least < KRC_LOAD_SLOW)
			break;
		if (to && load >= KRC_LOAD_SLOW && load < KRC_LOAD_UNREADY &&
		    krc_channel_waits_for(ch, to))
			return ch;
		if (load < least) {
			least = load;
			best = ch;
		}
	}
	return best;
}

static noinline struct krc_channel *krc_pick_isolated(const struct krc_channels *all,
						      const struct krc_hw_address *to)
{
	return krc_pick_of(all, KRC_CHANNEL_ISOLATED, to);
}

struct krc_channel *krc_pick_shared(const struct krc_channels *all, const struct krc_flow *flow,
				    const struct krc_hw_address *to)
{
	if (krc_isolation_any(&flow->pool->isolation) && krc_flow_isolated(flow)) {
		struct krc_channel *ch = krc_pick_isolated(all, to);

		if (READ_ONCE(ch->state) != KRC_CHANNEL_DEAD)
			return ch;
	}
	return krc_pick_of(all, KRC_CHANNEL_SHARED, to);
}

struct krc_channel *krc_pick_message(const struct krc_channels *all, const struct krc_flow *flow,
				     const struct krc_hw_address *to)
{
	return krc_pick_of(all, KRC_CHANNEL_MESSAGE, to);
}

/* Choose the channel of a flow with nothing outstanding, or with requests that move with it. */
static void krc_flow_choose(struct krc_flow *flow, const struct krc_hw_address *to)
{
	struct krc_channel *old = flow->channel, *ch;
	const struct krc_channels *all;

	lockdep_assert_held(&flow->lock); /* bottom halves off: RCU waits for this */
	all = krc_pool_channels(flow->pool);
	if (likely(flow->kind == KRC_CHANNEL_SHARED))
		ch = krc_pick_shared(all, flow, to);
	else
		ch = krc_channel_kinds[flow->kind].pick(all, flow, to);
	if (ch != old) {
		krc_channel_get(ch);
		WRITE_ONCE(flow->channel, ch);
	}
	if (old && ch != old)
		krc_channel_put(old);
}

/* Choose the channel of a flow and lock it: one that is not removed meanwhile. */
static struct krc_channel *krc_flow_lock_chosen(struct krc_flow *flow,
						const struct krc_hw_address *to)
	__acquires(&flow->channel->lock)
{
	for (;;) {
		krc_flow_choose(flow, to);
		spin_lock(&flow->channel->lock);
		if (likely(flow->channel->state != KRC_CHANNEL_STOPPED ||
			   READ_ONCE(flow->pool->stopped)))
			return flow->channel;
		spin_unlock(&flow->channel->lock);
	}
}

/*
 * Lock the channel of a flow, flow->lock held. A flow without one is assigned one, and a flow
 * that may move and has nothing outstanding may get another. @to: the peer of its next request,
 * or NULL.
 */
static struct krc_channel *krc_flow_lock(struct krc_flow *flow, bool may_move,
					 const struct krc_hw_address *to)
	__acquires(&flow->channel->lock)
{
	lockdep_assert_held(&flow->lock);
	if (!flow->channel || (may_move && !atomic_read_acquire(&flow->outstanding)))
		return krc_flow_lock_chosen(flow, to);
	spin_lock(&flow->channel->lock);
	if (likely(flow->channel->state != KRC_CHANNEL_STOPPED || READ_ONCE(flow->pool->stopped)))
		return flow->channel;
	/* it was removed, so nothing of the flow is outstanding */
	spin_unlock(&flow->channel->lock);
	return krc_flow_lock_chosen(flow, to);
}

bool krc_pool_alive(struct krc_pool *pool, enum krc_channel_kind kind)
{
	const struct krc_channels *all;
	bool alive = false;
	u32 i;

	rcu_read_lock_bh();
	all = krc_pool_channels(pool);
	for (i = all->first[kind]; i < all->first[kind + 1]; i++)
		alive |= READ_ONCE(all->at[i]->state) != KRC_CHANNEL_DEAD;
	rcu_read_unlock_bh();
	return alive;
}

/* Whether flows of a channel may be of the wrong kind for it, and there is one of the right kind. */
static bool krc_channel_mixes(const struct krc_channel *ch)
{
	if (ch->kind == KRC_CHANNEL_SHARED)
		return krc_isolation_any(&ch->pool->isolation) &&
		       krc_pool_alive(ch->pool, KRC_CHANNEL_ISOLATED);
	return ch->kind == KRC_CHANNEL_ISOLATED && krc_pool_alive(ch->pool, KRC_CHANNEL_SHARED);
}

/* Whether a flow of such a channel is. */
static bool krc_flow_misplaced(const struct krc_channel *ch, const struct krc_flow *flow)
{
	return krc_flow_isolated(flow) != (ch->kind == KRC_CHANNEL_ISOLATED);
}

/* Nothing more of a flow is posted here: it leaves when nothing of it is in the hardware. */
static void krc_flow_evict(struct krc_channel *ch, struct krc_flow *flow)
{
	lockdep_assert_held(&ch->lock);
	krc_flow_deactivate(ch, flow);
	list_add_tail(&flow->list, &ch->evicted);
}

void krc_channel_evict(struct krc_channel *ch)
{
	struct krc_flow *flow, *next, *found, *tmp;
	u32 looks = KRC_ISOLATE_LOOKS;

	lockdep_assert_held(&ch->lock);
	if (list_empty(&ch->turn) || !krc_channel_mixes(ch))
		return;
	list_for_each_entry_safe(flow, next, &ch->turn, list) {
		list_for_each_entry_safe(found, tmp, &flow->behind, list) {
			if (!--looks)
				return;
			if (krc_flow_misplaced(ch, found))
				krc_flow_evict(ch, found);
		}
		if (!--looks)
			return;
		if (krc_flow_misplaced(ch, flow)) /* one from behind it, if any, has its place */
			krc_flow_evict(ch, flow);
	}
}

/*
 * What has just been submitted to a flow that has something in the hardware: if it is on a channel of the
 * wrong kind it is to leave. All of it may be in the hardware each time that somebody looks.
 */
static noinline bool krc_flow_leaves(struct krc_channel *ch, struct krc_flow *flow)
{
	lockdep_assert_held(&ch->lock);
	if (flow->failed || flow->held || !flow->posted || !krc_channel_mixes(ch) ||
	    !krc_flow_misplaced(ch, flow))
		return false;
	krc_flow_evict(ch, flow);
	krc_window_ask(ch);
	return true;
}

static int krc_flow_accepts(const struct krc_flow *flow, const struct krc_channel *ch)
{
	if (ch->state == KRC_CHANNEL_STOPPED)
		return -ENODEV;
	if (flow->failed)
		return -ENOTCONN;
	return ch->state == KRC_CHANNEL_DEAD ? -EIO : 0;
}

static u32 krc_flow_prepare(struct krc_flow *flow, struct list_head *reqs)
{
	struct krc_req *req;
	u32 count = 0;

	list_for_each_entry(req, reqs, list) {
		krc_req_renew(req, flow);
		count++;
	}
	return count;
}

int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs, u32 *ret_index)
{
	u32 count = krc_flow_prepare(flow, reqs);

	return count ? krc_flow_submit_many(flow, reqs, count, ret_index) : 0;
}

int krc_flow_submit_many(struct krc_flow *flow, struct list_head *reqs, u32 count, u32 *ret_index)
{
	struct krc_req *first = list_first_entry(reqs, struct krc_req, list);
	struct krc_channel *ch;
	bool idle;
	int err;

	spin_lock_bh(&flow->lock);
	ch = krc_flow_lock(flow, true, first->wr.address);
	idle = ch->head == ch->tail;
	if (!flow->polled) /* a poller is noted when it leaves */
		krc_channel_note_poller(ch);
	err = krc_flow_accepts(flow, ch);
	if (!err) {
		if (ret_index)
			*ret_index = ch->index;
		atomic_add(count, &flow->outstanding);
		list_splice_tail_init(reqs, &flow->waiting);
		ch->arming.pollers += flow->polled;
		if (likely(ch->kind != KRC_CHANNEL_ISOLATED &&
			   !krc_isolation_any(&ch->pool->isolation)) ||
		    !krc_flow_leaves(ch, flow))
			krc_flow_begin(ch, flow);
	}
	spin_unlock(&flow->lock);
	if (idle) /* what has just been posted is not complete yet */
		krc_channel_filled(ch);
	else
		krc_channel_run(ch, KRC_POLL_BATCH);
	spin_unlock_bh(&ch->lock);
	return err;
}

void krc_flow_cancel(struct krc_flow *flow)
{
	struct krc_channel *ch;
	int refused;

	spin_lock_bh(&flow->lock);
	ch = krc_flow_lock(flow, false, NULL);
	refused = flow->refused;
	krc_flow_fail(ch, flow, -ECANCELED);
	flow->refused = refused; /* that one is told why, if those before it are done */
	spin_unlock(&flow->lock);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
}

void krc_flow_resume(struct krc_flow *flow)
{
	struct krc_channel *ch;

	spin_lock_bh(&flow->lock);
	ch = krc_flow_lock(flow, false, NULL);
	if (flow->held) {
		flow->held = false;
		/* before others: queued last, its lease might expire again */
		krc_flow_advance(ch, flow);
		krc_channel_fill(ch);
		krc_channel_arm(ch);
	}
	spin_unlock(&flow->lock);
	krc_channel_dispatch(ch);
	spin_unlock_bh(&ch->lock);
}

void krc_flow_restart(struct krc_flow *flow)
{
	struct krc_channel *ch;

	spin_lock_bh(&flow->lock);
	ch = krc_flow_lock(flow, true, NULL);
	flow->failed = false;
	flow->end_status = 0;
	spin_unlock(&flow->lock);
	spin_unlock_bh(&ch->lock);
}

u32 krc_flow_index(const struct krc_flow *flow)
{
	u32 index;

	rcu_read_lock(); /* the flow may move, and its former channel be removed */
	index = READ_ONCE(flow->channel)->index;
	rcu_read_unlock();
	return index;
}

bool krc_flow_where(const struct krc_flow *flow, u32 *ret_index, bool *ret_isolated)
{
	const struct krc_channel *ch;

	rcu_read_lock(); /* as in krc_flow_index() */
	ch = READ_ONCE(flow->channel);
	if (ch) {
		*ret_index = ch->index;
		*ret_isolated = ch->kind == KRC_CHANNEL_ISOLATED;
	}
	rcu_read_unlock();
	return ch;
}

void krc_flow_release(struct krc_flow *flow)
{
	struct krc_channel *ch = flow->channel;

	WRITE_ONCE(flow->channel, NULL); /* krc_flow_where() may be reading it */
	if (ch)
		krc_channel_put(ch);
}

struct krc_flow *krc_channel_next_flow(struct krc_channel *ch)
{
	struct krc_flow *flow = list_first_entry_or_null(&ch->turn, struct krc_flow, list);

	lockdep_assert_held(&ch->lock);
	if (!flow)
		flow = list_first_entry_or_null(&ch->held, struct krc_flow, list);
	return flow ?: list_first_entry_or_null(&ch->evicted, struct krc_flow, list);
}

/* Put a flow that was taken from its channel on another, and drop flow->lock. */
static void krc_flow_settle(struct krc_flow *flow) __releases(&flow->lock)
{
	struct krc_req *first = list_first_entry_or_null(&flow->replay, struct krc_req, list);
	struct krc_channel *to;
	int err;

	lockdep_assert_held(&flow->lock);
	if (!first)
		first = list_first_entry(&flow->waiting, struct krc_req, list);
	to = krc_flow_lock_chosen(flow, first->wr.address);
	err = krc_flow_accepts(flow, to);
	if (err)
		krc_flow_fail(to, flow, err);
	else if (flow->held)
		list_add_tail(&flow->list, &to->held);
	else
		krc_flow_activate(to, flow);
	spin_unlock(&flow->lock);
	krc_channel_run(to, KRC_POLL_BATCH);
	krc_window_ask(to);
	spin_unlock(&to->lock);
}

/* The first flow in a list that is isolated, or NULL; *@looks: how many may be looked at yet. */
static struct krc_flow *krc_flow_first_isolated(struct list_head *flows, u32 *looks)
{
	struct krc_flow *flow, *found;

	list_for_each_entry(flow, flows, list) {
		if (!*looks || !--*looks)
			return NULL;
		if (krc_flow_isolated(flow))
			return flow;
		list_for_each_entry(found, &flow->behind, list) {
			if (!--*looks)
				return NULL;
			if (krc_flow_isolated(found))
				return found;
		}
	}
	return NULL;
}

/* The next flow that waits on a channel and is isolated, or NULL. */
static struct krc_flow *krc_channel_next_isolated(struct krc_channel *ch)
{
	u32 looks = KRC_ISOLATE_LOOKS;

	lockdep_assert_held(&ch->lock);
	return krc_flow_first_isolated(&ch->evicted, &looks)
		       ?: krc_flow_first_isolated(&ch->turn, &looks)
		       ?: krc_flow_first_isolated(&ch->held, &looks);
}

/* Move a flow that waits on a channel which owes it no outcome, or none. Drops the lock. */
static bool krc_flow_move(struct krc_channel *ch, struct krc_flow *flow) __releases(&ch->lock)
{
	lockdep_assert_held(&ch->lock);
	if (!flow) {
		spin_unlock(&ch->lock);
		return false;
	}
	if (!spin_trylock(&flow->lock)) { /* taken before the channel's by others: once more */
		spin_unlock(&ch->lock);
		cpu_relax();
		return true;
	}
	krc_flow_deactivate(ch, flow);
	spin_unlock(&ch->lock);
	krc_flow_settle(flow);
	return true;
}

bool krc_flow_move_one(struct krc_channel *ch)
{
	spin_lock(&ch->lock);
	return krc_flow_move(ch, krc_channel_told(ch) ? krc_channel_next_flow(ch) : NULL);
}

bool krc_flow_isolate_one(struct krc_channel *ch)
{
	spin_lock(&ch->lock);
	return krc_flow_move(ch, krc_channel_told(ch) ? krc_channel_next_isolated(ch) : NULL);
}

/* The first flow that is evicted and has nothing in the hardware, or NULL. */
static struct krc_flow *krc_channel_next_evicted(struct krc_channel *ch)
{
	struct krc_flow *flow;

	list_for_each_entry(flow, &ch->evicted, list)
		if (!flow->posted)
			return flow;
	return NULL;
}

int krc_flow_evict_one(struct krc_channel *ch)
{
	struct krc_flow *flow;

	spin_lock(&ch->lock);
	flow = krc_channel_works(ch) ? krc_channel_next_evicted(ch) : NULL;
	if (flow && !krc_channel_delivered(ch)) {
		spin_unlock(&ch->lock);
		return -EAGAIN;
	}
	return krc_flow_move(ch, flow);
}

void krc_flow_drain(struct krc_flow *flow)
{
	wait_var_event(&flow->outstanding, !atomic_read_acquire(&flow->outstanding));
}

int krc_flow_drain_killable(struct krc_flow *flow)
{
	return wait_var_event_killable(&flow->outstanding,
				       !atomic_read_acquire(&flow->outstanding));
}
