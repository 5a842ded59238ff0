/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the pool, shared by pool/pool.c, pool/channel.c, pool/flow.c,
 * pool/send.c, pool/run.c, pool/target.c, pool/recovery.c, pool/isolation.c, pool/window.c and
 * pool/read.c. No other file includes it, except tests.
 *
 * Locking: each channel has a spinlock, taken with bottom halves off. It protects the
 * channel, and of the flows that are on it: list, behind, waiting, replay, flight, posted, deficit,
 * round, lap, failed, held, refused, end_status, and their requests. Functions declared here expect
 * it held unless they say otherwise, and assert it. The list of channels is read under RCU.
 */
#ifndef KRC_POOL_PRIV_H
#define KRC_POOL_PRIV_H

#include <linux/hrtimer.h>
#include <linux/irq_poll.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "hw/rail.h"
#include "krp_ioctl.h"
#include "pool/flow.h"
#include "pool/isolation.h"
#include "pool/pool.h"
#include "pool/read.h"
#include "pool/window.h"

/* Largest segment of a request that is posted as one WQE, in bytes. */
#define KRC_SEGMENT_BYTES (256U << 10)
/*
 * DRR cost of a segment besides its bytes: 64 small ones count as one full segment. More where the
 * hardware is slow: krc_window.cost.
 */
#define KRC_COST_BYTES (4U << 10)
/* DRR quantum of a payer then: enough for any segment. Else krc_window.quantum. */
#define KRC_QUANTUM_BYTES (KRC_SEGMENT_BYTES + KRC_COST_BYTES)
/* Bytes in the hardware above which a channel is full: bounds the wait of other flows. */
#define KRC_WINDOW_BYTES (2U << 20)

/* Segments that one completion may stand for, a power of two. */
#define KRC_UNSIGNALED_MAX 8U
/* Segments of this size or more are always signaled: each is progress. */
#define KRC_UNSIGNALED_BYTES (4U << 10)

#define KRC_POLL_BUDGET 64 /* completions per softirq run; each may stand for more segments */
#define KRC_POLL_BATCH 16 /* completions taken at once */
#define KRC_DISPATCH_MAX 8 /* batches that one dispatcher delivers before it reschedules */
#define KRC_TELL_MAX 64 /* completions in one batch, but those of one flow stay together */

/* Channels that a CPU spreads its flows over while its own is busy. */
#define KRC_POOL_SPREAD 4U
/* The load of a channel: its segments in the hardware, weighted as follows. */
#define KRC_LOAD_BUSY 12U /* busy: the hardware has at most 16 READs of it in flight */
#define KRC_LOAD_BYTES (64U << 10) /* bytes that count as one segment */
#define KRC_LOAD_SLOW (1U << 16) /* nothing has completed for KRC_SLOW_MS */
#define KRC_LOAD_UNREADY (1U << 30) /* it is being reset */
#define KRC_LOAD_DEAD (1U << 31)
#define KRC_SLOW_MS 20 /* far more than a full segment takes */

/* Channels of KRC_CHANNEL_PROBATION: each serves the one READ of a slot; see pool/read.c. */
#define KRC_POOL_PROBATION 3U
#define KRC_POOL_APART 4U /* including the one of quarantine */
#define KRC_APART_DEPTH 16U

#define KRC_POOL_ISOLATED 2U /* channels of KRC_CHANNEL_ISOLATED */
#define KRC_POOL_OTHERS (KRC_POOL_APART + KRC_POOL_ISOLATED) /* that a pool begins with */
#define KRC_ISOLATE_MAX 256U /* flows that are moved to them or back at once, at most, ... */
#define KRC_ISOLATE_LOOKS 1024U /* ... of so many that are looked at */
#define KRC_ISOLATE_TRIES 16 /* to find all told that has ended */

/* Stickiness of targets: pool/target.c */
#define KRC_STICK_QUOTA 32U /* segments to one target, after which no flow is passed over */
#define KRC_STICK_LOOKS 8U /* flows that are looked at for the next turn */
#define KRC_STICK_MS 10 /* an idle channel keeps its target for so long */

#define KRC_DRAIN_MS 100 /* limit of the wait for flushed completions before a reset */
#define KRC_RESET_TRIES 3
#define KRC_RESET_PAUSE_MS 10
#define KRC_DEAD_RETRY_MS 10000
#define KRC_FRUITLESS_MAX 8 /* consecutive resets without progress before DEAD */
#define KRC_EXPIRIES_MAX 3 /* leases that end without progress before a request fails */
#define KRC_WATCHDOG_MS 1000
#define KRC_STUCK_MS 30000 /* longer than all retries of the hardware */
#define KRC_SILENT_MS 25 /* less than all retries: a stall below this is no unresponsive target */

/**
 * enum krc_channel_state - State of a channel; krc_channel_set_state() owns it.
 * @KRC_CHANNEL_READY: takes requests.
 * @KRC_CHANNEL_FAILED: had a fault; flushed requests are being collected.
 * @KRC_CHANNEL_RESETTING: the hardware is being reset; only the work item touches it.
 * @KRC_CHANNEL_DEAD: could not be reset; retried every KRC_DEAD_RETRY_MS.
 * @KRC_CHANNEL_STOPPED: the pool is stopped, or the channel was removed; final.
 * @KRC_CHANNEL_LEAVING: it is being removed: nothing more is posted, what is in the hardware
 *	completes, and the flows move to other channels.
 * @KRC_CHANNEL_STATES: how many there are.
 */
enum krc_channel_state {
	KRC_CHANNEL_READY,
	KRC_CHANNEL_FAILED,
	KRC_CHANNEL_RESETTING,
	KRC_CHANNEL_DEAD,
	KRC_CHANNEL_STOPPED,
	KRC_CHANNEL_LEAVING,
	KRC_CHANNEL_STATES,
};

/**
 * struct krc_wqe - One segment in the hardware.
 * @req: request that it is a part of.
 * @length: bytes.
 * @unsignaled: it has no completion of its own: a later one stands for it.
 * @leased: @expires counts.
 * @behind: unsignaled segments right before it, for which its completion stands as well. Of those
 *	that are not in the hardware any more some may be counted, too.
 * @expires: jiffies by which it must be out of the hardware.
 */
struct krc_wqe {
	struct krc_req *req;
	u32 length;
	bool unsignaled;
	bool leased;
	u8 behind;
	unsigned long expires;
};

/**
 * struct krc_channel_stats - Counters of a channel, from its creation; struct krc_pool_stats says
 * what each counts.
 * @posted: segments.
 * @completed: requests.
 * @faults: requests that failed by a fault of their own.
 * @recoveries: resets begun.
 * @replayed: requests posted again after a reset.
 * @unknown: requests that ended with -EREMCHG.
 * @timeouts: resets for KRC_FAULT_TIMEOUT.
 * @refused_reads: resets because a READ was refused.
 * @expired: resets for a lease that ended in the hardware.
 * @busy: resets for KRC_FAULT_BUSY.
 * @strays: completions for which no segment could be meant.
 * @target_changes: segments for another target than the one before.
 * @isolated: stalls for which a target or a payer is isolated, and the beginnings of that by slowness.
 *
 * Protected by krc_channel.lock.
 */
struct krc_channel_stats {
	u64 posted;
	u64 completed;
	u64 faults;
	u64 recoveries;
	u64 replayed;
	u64 unknown;
	u64 timeouts;
	u64 refused_reads;
	u64 expired;
	u64 busy;
	u64 strays;
	u64 target_changes;
	u64 isolated;
};

/**
 * struct krc_aim - Which target a channel was posted to last, since it was made or reset.
 * @by: address vector of the last segment, which is valid while that is in the hardware.
 * @key: short form of @target.
 * @from: number of the first segment of the run to @target.
 * @known: there was a segment.
 * @target: what was at @by.
 *
 * Protected by krc_channel.lock; @by, @key and @known are hints without it.
 */
struct krc_aim {
	const struct krc_hw_address *by;
	u32 key;
	u32 from;
	bool known;
	struct krc_hw_address target;
};

/**
 * struct krc_lease_bound - How a channel bounds the time of leased segments in the hardware.
 * @unrung: the doorbell has not been rung for a leased segment.
 * @bounded: @expiry is scheduled, at @bound or before. It may be for other reasons, too.
 * @ring_by: jiffies by which the doorbell must be rung, if @unrung.
 * @bound: jiffies, no later than the first leased segment must be out of the hardware.
 * @expiry: work item that enforces it, and looks how the channel is doing.
 *
 * Protected by krc_channel.lock.
 */
struct krc_lease_bound {
	bool unrung;
	bool bounded;
	unsigned long ring_by;
	unsigned long bound;
	struct delayed_work expiry;
};

/**
 * struct krc_arming - When a channel asks for interrupts; see krc_channel_arm().
 * @armed: the hardware was asked for an interrupt that has not been served.
 * @lingering: @linger is started.
 * @again: somebody has submitted since, and may poll: see krc_channel_note_poller().
 * @pollers: tasks that busy-poll the channel. They keep it from being removed.
 * @polled_ns: ktime_get_ns() when a poller that may be back soon last left, polled it nearby, or
 *	submitted soon after; a hint, accessed without the lock too.
 * @linger: timer of deferred arming: runs the channel if no poller is back.
 *
 * Protected by krc_channel.lock.
 */
struct krc_arming {
	bool armed;
	bool lingering;
	bool again;
	u32 pollers;
	u64 polled_ns;
	struct hrtimer linger;
};

/**
 * struct krc_failure - Why a channel is not ready, and its way back; see pool/recovery.c.
 * @fault: why it is not ready.
 * @culprit: target of the failed request, if the fault was a request's.
 * @culprit_reads: that request was a READ.
 * @stalled: value of krc_channel.progress at the fault.
 * @fatal: bit 0: the provider reported it broken; set without the lock.
 * @fruitless: consecutive resets for no request's own fault, nor an expired lease, without
 *	a success between.
 * @recover: work item that resets.
 *
 * Protected by krc_channel.lock, but @fatal.
 */
struct krc_failure {
	enum krc_fault fault;
	struct krc_hw_address culprit;
	bool culprit_reads;
	unsigned long stalled;
	unsigned long fatal;
	u32 fruitless;
	struct delayed_work recover;
};

/**
 * struct krc_channel - One send queue, with its slots, its turn and its recovery.
 * @lock: see above.
 * @pool: pool.
 * @hw: the provider's; NULL once the channel is stopped.
 * @ref: one of the pool's list, and one of each flow whose @channel it is; for the memory only.
 * @index: its number in the pool, for diagnostics too; unique while it is in the list.
 * @kind: enum krc_channel_kind.
 * @state: enum krc_channel_state.
 * @depth: most segments that the hardware has room for.
 * @window: how many of them it may have now.
 * @mask: size of @slots - 1; the size is a power of two.
 * @head: number of the oldest segment that is not known to be complete; also its cookie.
 * @tail: number of the next segment to be posted.
 * @rung: value of @tail at the last doorbell.
 * @bytes: of all segments in the hardware.
 * @progress: jiffies when something was last known to complete, or when it was last empty.
 * @busy: jiffies when it was last empty.
 * @turn: DRR list: of each payer with flows that have something to post, the first one; by round.
 * @round: krc_flow.round of the turn that was begun last.
 * @serving: the flow whose turn that was; only compared, since it may be gone.
 * @posting: the flow that post() is called for; of no meaning else.
 * @held: flows that have, but wait for krc_flow_resume().
 * @evicted: flows that have, but are to be on a channel of another kind (pool/isolation.h), and leave
 *	when none of their segments is in the hardware. While there are some, lease.expiry is scheduled.
 * @finished: requests with a known outcome, in order.
 * @dispatching: some CPU is calling done().
 * @rcu: to free it when nobody reads the list any more.
 * @iop: irq_poll that serves it in softirq.
 * @lease: leased segments.
 * @arming: interrupts and pollers.
 * @failure: fault and recovery.
 * @aim: the target of the last segment.
 * @stats: counters.
 * @slots: the segments, by number & mask.
 */
struct krc_channel {
	spinlock_t lock;
	struct krc_pool *pool;
	struct krc_hw_initiator *hw;
	struct kref ref;
	u32 index;
	enum krc_channel_kind kind;
	enum krc_channel_state state;
	u32 depth;
	u32 mask;
	struct krc_window window;
	u32 head;
	u32 tail;
	u32 rung;
	u32 bytes;
	unsigned long progress;
	unsigned long busy;
	struct list_head turn;
	u32 round;
	const struct krc_flow *serving;
	const struct krc_flow *posting;
	struct list_head held;
	struct list_head evicted;
	struct list_head finished;
	bool dispatching;
	struct rcu_head rcu;
	struct irq_poll iop;
	struct krc_lease_bound lease;
	struct krc_arming arming;
	struct krc_failure failure;
	struct krc_aim aim;
	struct krc_channel_stats stats;
	struct krc_wqe slots[];
} ____cacheline_aligned_in_smp;

/**
 * struct krc_channels - The list of a pool's channels: an array under RCU, replaced when one is
 * added or removed.
 * @rcu: to free it when nobody reads it any more.
 * @first: those of a kind are at[first[kind]] to at[first[kind + 1] - 1], in the order they were
 *	added; those that are being removed are behind all kinds.
 * @nr: all of them.
 * @past: counters of channels that were removed.
 * @at: the channels.
 */
struct krc_channels {
	struct rcu_head rcu;
	u32 first[KRC_CHANNEL_KINDS + 1];
	u32 nr;
	struct krc_channel_stats past;
	struct krc_channel *at[];
};

/**
 * krc_channels_of() - Count the channels of a kind.
 * @all: list of channels.
 * @kind: kind.
 *
 * Context: as krc_pool_channels() says.
 * Return: how many flows may choose from; those that are being removed do not count.
 */
static inline u32 krc_channels_of(const struct krc_channels *all, enum krc_channel_kind kind)
{
	return all->first[kind + 1] - all->first[kind];
}

/**
 * krc_channels_nth() - Get a channel of a kind by its position.
 * @all: list of channels.
 * @kind: kind.
 * @i: position; any number, taken modulo @nr.
 * @nr: krc_channels_of() of @kind, or a smaller number; not 0.
 *
 * Context: as krc_pool_channels() says.
 * Return: the channel, not counted.
 */
static inline struct krc_channel *krc_channels_nth(const struct krc_channels *all,
						   enum krc_channel_kind kind, u32 i, u32 nr)
{
	return all->at[all->first[kind] + i % nr];
}

/**
 * struct krc_channel_ops - What a kind of channels does its own way; krc_channel_kinds has one
 * for each kind.
 * @depth_max: most segments in the hardware at once; the pool's depth bounds it as well.
 * @use: what the provider is told that its initiator is for.
 * @pick: choose the channel for the next request of a flow of this kind, which has nothing
 *	outstanding. @to: the peer of that request, or NULL. RCU is read-locked, flow->lock held.
 * @create: make the send queue: @depth segments, upcalls to @owner, or ERR_PTR. May sleep.
 *
 * A kind that serves one peer finds its channel by @to in @pick, and connects it in @create.
 */
struct krc_channel_ops {
	u32 depth_max;
	enum krc_hw_use use;
	struct krc_channel *(*pick)(const struct krc_channels *all, const struct krc_flow *flow,
				    const struct krc_hw_address *to);
	struct krc_hw_initiator *(*create)(struct krc_rail *rail, u32 depth, u32 index,
					   struct krc_channel *owner);
};

/**
 * krc_flow_payer() - Tell who pays for a flow's requests.
 * @flow: flow.
 *
 * Context: its channel's lock held, or its own.
 * Return: krc_flow.bill, or krc_flow.payer if there is none; only to be compared.
 */
static inline const void *krc_flow_payer(const struct krc_flow *flow)
{
	return flow->bill ?: flow->payer;
}

struct krc_reader;

/**
 * struct krc_pool - Channels of a port.
 * @rail: port they send through; owns ops and hw.
 * @ops: provider.
 * @wq: for recovery and the watchdog.
 * @watchdog: polls channels that make no progress, and resets stuck ones.
 * @lock: serialises stop, and changes of @channels; protects @watches and @stopped.
 * @watches: struct krc_pool_watch.
 * @stopped: nothing is accepted any more.
 * @reader: READ slots of krc_pool_read().
 * @isolation: who is isolated.
 * @depth: most segments of a channel.
 * @channels: the channels.
 */
struct krc_pool {
	struct krc_rail *rail;
	const struct krc_provider_ops *ops;
	struct workqueue_struct *wq;
	struct delayed_work watchdog;
	struct mutex lock;
	struct list_head watches;
	bool stopped;
	struct krc_reader *reader;
	struct krc_isolation isolation;
	u32 depth;
	struct krc_channels __rcu *channels;
};

/**
 * krc_pool_channels() - Get the list of a pool's channels.
 * @pool: pool.
 *
 * Context: RCU read-locked, bottom halves off (which RCU waits for, too), krc_pool.lock held, or
 * nobody else uses the pool any more.
 * Return: the list, which is replaced and not changed: valid until the RCU section or the lock
 * ends.
 */
static inline struct krc_channels *krc_pool_channels(struct krc_pool *pool)
{
	return rcu_dereference_check(pool->channels,
				     rcu_read_lock_bh_held() || lockdep_is_held(&pool->lock));
}

/* pool/channel.c */

/**
 * krc_pool_add() - Add a channel to a pool.
 * @pool: pool.
 * @kind: kind of channel.
 *
 * Flows choose it from now on, as they do the others of its kind. Context: may sleep, inside
 * krc_rail_enter() unless the pool is being made.
 * Return: it; ERR_PTR(-ENODEV) (the pool is stopped), -ENOMEM, or the error of its ops->create().
 * Until it is removed it lives as long as the pool.
 */
struct krc_channel *krc_pool_add(struct krc_pool *pool, enum krc_channel_kind kind);

/**
 * krc_pool_remove() - Remove a channel from a pool while flows use it.
 * @pool: pool.
 * @ch: of krc_pool_add(); removed by nobody else, and gone when 0 is returned.
 *
 * What is in the hardware completes or fails first; requests that wait move to other channels with
 * their flows, in order. Waits for pollers of the channel, too.
 * Context: may sleep. Inside krc_rail_enter().
 * Return: 0, also if the pool is stopped meanwhile, which does the rest; -EBUSY: it is the
 * only one of its kind; -ENOMEM: nothing has changed.
 */
int krc_pool_remove(struct krc_pool *pool, struct krc_channel *ch);

/**
 * krc_pool_find() - Find a channel by number.
 * @pool: pool.
 * @index: krc_channel.index.
 *
 * Context: RCU read-locked, or krc_pool.lock held.
 * Return: the channel, not counted, also one that is being removed; or NULL.
 */
struct krc_channel *krc_pool_find(struct krc_pool *pool, u32 index);

/**
 * krc_channels_create() - Give a new pool its empty list of channels.
 * @pool: pool.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int krc_channels_create(struct krc_pool *pool);

/**
 * krc_channels_stop() - Stop all channels, and complete their requests with -ENODEV.
 * @pool: pool.
 *
 * Each send queue is destroyed first, so that the hardware accesses no memory of a request that has
 * completed. done() has been called for what this CPU dispatches; another CPU may still be in one.
 * Context: may sleep; pool->lock held.
 */
void krc_channels_stop(struct krc_pool *pool);

/**
 * krc_channels_destroy() - Drop the stopped channels of a pool, and its list.
 * @pool: pool.
 *
 * A channel that a flow still refers to lives, stopped, until that flow is released.
 * Context: any that may free memory; nobody else uses the pool.
 */
void krc_channels_destroy(struct krc_pool *pool);

/**
 * krc_channel_stats_add() - Add counters to a sum.
 * @sum: sum; the caller protects it.
 * @more: counters to add; krc_channel.lock held, if they are those of a live channel.
 *
 * Context: any.
 */
void krc_channel_stats_add(struct krc_channel_stats *sum, const struct krc_channel_stats *more);

/**
 * krc_channel_is_common() - Check whether a channel is for all targets and payers.
 * @ch: channel.
 *
 * Others have a depth for one target, or packets of their own. Context: any; no lock needed.
 * Return: whether it is one of the shared, or of the isolated.
 */
static inline bool krc_channel_is_common(const struct krc_channel *ch)
{
	return ch->kind == KRC_CHANNEL_SHARED || ch->kind == KRC_CHANNEL_ISOLATED;
}

/**
 * krc_channel_delivered() - Check whether all outcomes that are known have been told.
 * @ch: channel.
 *
 * Context: channel's lock held.
 * Return: true if done() has returned for all requests that ended.
 */
static inline bool krc_channel_delivered(const struct krc_channel *ch)
{
	return list_empty(&ch->finished) && !ch->dispatching;
}

/**
 * krc_channel_told() - Check whether a channel owes nobody an outcome.
 * @ch: channel.
 *
 * Context: channel's lock held.
 * Return: true if nothing is in the hardware, and done() has returned for all requests that ended.
 */
static inline bool krc_channel_told(const struct krc_channel *ch)
{
	return ch->head == ch->tail && krc_channel_delivered(ch);
}

/**
 * krc_channel_get() - Take one more reference.
 * @ch: channel, of which the caller has a reference, or finds in the list under RCU.
 *
 * It keeps the memory, not the send queue. Context: any; no lock needed.
 */
static inline void krc_channel_get(struct krc_channel *ch)
{
	kref_get(&ch->ref);
}

/**
 * krc_channel_put() - Drop a reference; the last one frees the memory after an RCU grace period.
 * @ch: channel.
 *
 * Context: any; no lock needed.
 */
void krc_channel_put(struct krc_channel *ch);

/**
 * krc_pick_shared() - Choose the channel of a flow of KRC_CHANNEL_SHARED; krc_channel_ops.pick.
 * @all: list of channels.
 * @flow: flow.
 * @to: peer of its next request, or NULL.
 *
 * With sticky_targets, one by target first (krc_pick_sticky()). The one of this CPU if it is not
 * busy, else the least loaded, looking on from there: at
 * KRC_POOL_SPREAD channels, and at all of them while none below KRC_LOAD_SLOW is found. A channel
 * that is stalled on @to itself is taken at once, so that no other stalls on that peer as well.
 * Loads are read without locks: hints. For a flow that is isolated likewise, among the channels of
 * KRC_CHANNEL_ISOLATED.
 * Context: RCU read-locked, flow->lock held.
 * Return: the channel, not counted; one that is dead or being reset only if all are.
 */
struct krc_channel *krc_pick_shared(const struct krc_channels *all, const struct krc_flow *flow,
				    const struct krc_hw_address *to);

/**
 * krc_pick_probation() - Choose the channel of a flow of KRC_CHANNEL_PROBATION;
 * krc_channel_ops.pick.
 * @all: list of channels.
 * @flow: flow; its nth, modulo their number, says which one.
 * @to: not used.
 *
 * Context: RCU read-locked, flow->lock held.
 * Return: that channel, or the next one that is not dead, or that one if all are; not counted.
 */
struct krc_channel *krc_pick_probation(const struct krc_channels *all, const struct krc_flow *flow,
				       const struct krc_hw_address *to);

/**
 * krc_pick_message() - Choose the channel of a flow of KRC_CHANNEL_MESSAGE; krc_channel_ops.pick.
 * @all: list of channels, after krc_pool_enable_messages().
 * @flow: not used.
 * @to: peer of its next request, or NULL.
 *
 * As krc_pick_shared(), among the channels of that kind.
 * Context: RCU read-locked, flow->lock held.
 * Return: the channel, not counted; one that is dead or being reset only if all are.
 */
struct krc_channel *krc_pick_message(const struct krc_channels *all, const struct krc_flow *flow,
				     const struct krc_hw_address *to);

extern const struct krc_channel_ops krc_channel_kinds[KRC_CHANNEL_KINDS];

/* pool/target.c */

extern bool krc_sticky; /* module parameter sticky_targets; may change at any time */

/**
 * krc_channel_aim() - Note the target of a segment that is posted now, and count its change.
 * @ch: channel.
 * @to: its address vector. Others may be ways to the same target; where this one was, there may be
 *	another when nothing is in the hardware.
 *
 * May be left out behind a segment in the hardware with the same @to. Context: channel's lock held.
 */
void krc_channel_aim(struct krc_channel *ch, const struct krc_hw_address *to);

/**
 * krc_flow_prefer() - Choose the next flow of a list: the first, or one of its round for the target
 * that the channel has.
 * @ch: channel.
 * @flows: krc_channel.turn or krc_flow.behind, not empty; all of them have something to post.
 *
 * Looks at KRC_STICK_LOOKS flows; and at none when the run to the target has had KRC_STICK_QUOTA.
 * Context: channel's lock held.
 * Return: the flow, still where it was.
 */
struct krc_flow *krc_flow_prefer(const struct krc_channel *ch, struct list_head *flows);

/**
 * krc_pick_sticky() - Choose a channel of a kind by target, if the first of this CPU is not busy.
 * @all: list of channels.
 * @kind: kind.
 * @start: position of that first one; KRC_POOL_SPREAD from there are looked at.
 * @to: target.
 *
 * That first one if it has this target, or none that counts; else another with this target that is
 * not busy, or is stalled on it; else one whose target does not count; else one by hash.
 * Context: RCU read-locked, no channel's lock held.
 * Return: the channel, not counted; NULL: choose by load alone.
 */
struct krc_channel *krc_pick_sticky(const struct krc_channels *all, enum krc_channel_kind kind,
				    u32 start, const struct krc_hw_address *to);

/* pool/flow.c */

/**
 * krc_channel_load() - Estimate the wait of a new request on a channel.
 * @ch: channel.
 *
 * Context: any; a hint, without the channel's lock.
 * Return: its segments in the hardware, weighted: see KRC_LOAD_BUSY and those behind it; more where
 * the hardware may have fewer.
 */
u32 krc_channel_load(const struct krc_channel *ch);

/**
 * krc_channel_waits_for() - Check whether the oldest segment of a channel is for a peer.
 * @ch: channel.
 * @to: address vector of the peer.
 *
 * Context: bottom halves off, channel's lock not held.
 * Return: true if it is.
 */
bool krc_channel_waits_for(struct krc_channel *ch, const struct krc_hw_address *to);

/**
 * krc_channel_next_flow() - Find a flow that has requests waiting on a channel.
 * @ch: channel.
 *
 * Context: channel's lock held.
 * Return: one that has its turn, is held or evicted; or NULL.
 */
struct krc_flow *krc_channel_next_flow(struct krc_channel *ch);

/**
 * krc_flow_move_one() - Move a flow from a channel that is leaving to another.
 * @ch: channel with nothing in the hardware and nothing to tell.
 *
 * Called with bottom halves off and without the lock of @ch.
 * Return: whether a flow may still be there.
 */
bool krc_flow_move_one(struct krc_channel *ch);

/**
 * krc_flow_isolate_one() - Move a flow that is isolated from a channel to one of that kind.
 * @ch: channel with nothing in the hardware and nothing to tell, which posts nothing now.
 *
 * Context: as krc_flow_move_one().
 * Return: whether another one may be there.
 */
bool krc_flow_isolate_one(struct krc_channel *ch);

/**
 * krc_channel_evict() - Give flows that are isolated no turn on a shared channel any more, nor others
 * on one of the isolated.
 * @ch: channel, of any kind.
 *
 * They are in krc_channel.evicted then, for krc_flow_evict_one(). Evicts nobody while all channels of the
 * kind that they are to go to are dead. The caller schedules lease.expiry. Context: channel's lock held.
 */
void krc_channel_evict(struct krc_channel *ch);

/**
 * krc_flow_evict_one() - Move an evicted flow that has nothing in the hardware to another channel.
 * @ch: channel.
 *
 * What others have there stays and goes on. Does nothing while the channel does not work: what was
 * flushed may not be posted elsewhere before the hardware is halted. Context: as krc_flow_move_one().
 * Return: 1: another one may be there; 0: none is; -EAGAIN: one is, and an outcome is being told that
 * may be its own.
 */
int krc_flow_evict_one(struct krc_channel *ch);

/**
 * krc_pool_alive() - Check whether there is a channel of a kind that is not DEAD.
 * @pool: pool.
 * @kind: kind.
 *
 * Context: any but hard interrupts.
 * Return: whether there is.
 */
bool krc_pool_alive(struct krc_pool *pool, enum krc_channel_kind kind);

/* pool/send.c */

/**
 * krc_channel_set_state() - Change the state of a channel.
 * @ch: channel.
 * @state: new state.
 *
 * Context: channel's lock held.
 * Return: true if it was changed; false if @state can't follow the present one (see
 * krc_channel_next in pool/send.c), then nothing is.
 */
bool krc_channel_set_state(struct krc_channel *ch, enum krc_channel_state state);

/**
 * krc_channel_state_name() - Name a state, for diagnostics.
 * @state: state; may be out of range.
 *
 * Context: any; no lock needed.
 * Return: a constant string; "?" if there is no such state.
 */
const char *krc_channel_state_name(enum krc_channel_state state);

/**
 * krc_channel_fill() - Post segments of the flows in turn, and ring the doorbell once for all of
 * them.
 * @ch: channel.
 *
 * Ends at the limit of krc_channel.window or KRC_WINDOW_BYTES, when no flow has more, or when the
 * channel is not READY. A request that check() or the provider refuses fails with its flow; finished
 * requests are for krc_channel_dispatch(). May fault the channel.
 * Context: channel's lock held.
 */
void krc_channel_fill(struct krc_channel *ch);

/**
 * krc_channel_poll() - Take completions from the hardware, unless it is being reset or destroyed.
 * @ch: channel.
 * @budget: most completions to take, from 1; each may stand for several segments.
 *
 * Context: channel's lock held.
 * Return: how many were taken, 0 to @budget; less than @budget: there were no more.
 */
int krc_channel_poll(struct krc_channel *ch, int budget);

/**
 * krc_channel_take() - Take completions from the hardware in any state of the channel.
 * @ch: channel, whose hardware the caller owns: it is pollable, or halted by the caller.
 * @budget: as in krc_channel_poll().
 *
 * An unexpected completion, which fits no segment in the hardware, is counted and faults the channel.
 * Context: channel's lock held.
 * Return: as krc_channel_poll().
 */
int krc_channel_take(struct krc_channel *ch, int budget);

/**
 * krc_channel_arm() - Ask the hardware for an interrupt, if anybody needs one.
 * @ch: channel.
 *
 * Nobody does if it is armed, nothing is in the hardware, it can't be polled, or a task busy-polls
 * it (which does not count on a preemptible kernel). Just after a poller left that may be back
 * soon, the timer @linger is started instead. What completed before the arming took effect is taken
 * here, and more is posted.
 * Context: channel's lock held.
 */
void krc_channel_arm(struct krc_channel *ch);

/**
 * krc_channel_dispatch() - Call krc_flow.done() for the finished requests, in the order in which
 * they ended.
 * @ch: channel.
 *
 * Drops the lock for each batch, and takes it again. Does nothing if another CPU dispatches: that
 * one sees what was added. After KRC_DISPATCH_MAX batches the rest is left to the softirq, but not
 * when the pool is stopping.
 * Context: channel's lock held, with bottom halves off; no lock held that some done() takes.
 */
void krc_channel_dispatch(struct krc_channel *ch);

/**
 * krc_channel_retire() - Complete the oldest segment in the hardware.
 * @ch: channel with a segment in the hardware (head != tail).
 * @fault: KRC_FAULT_NONE, the request's own fault, or KRC_FAULT_FLUSHED: the channel failed
 *	before it.
 *
 * With the last segment of a request in the hardware the request finishes, fails with its flow, or
 * is queued for replay.
 * Context: channel's lock held.
 */
void krc_channel_retire(struct krc_channel *ch, enum krc_fault fault);

/**
 * krc_channel_run() - Poll, act on krc_pool_on_fatal(), fill, arm and dispatch: all that an
 * interrupt would do.
 * @ch: channel.
 * @budget: as in krc_channel_poll().
 *
 * Context: as krc_channel_dispatch(), which drops the lock meanwhile.
 */
void krc_channel_run(struct krc_channel *ch, int budget);

/**
 * krc_channel_filled() - krc_channel_run() of a channel that has just been filled, and of which
 * nothing can have completed since.
 * @ch: channel.
 *
 * Context: as krc_channel_dispatch(), which drops the lock meanwhile.
 */
void krc_channel_filled(struct krc_channel *ch);

/**
 * krc_flow_activate() - Put a flow behind the others of its payer; if there are none, at the end of
 * the DRR list, with a full quantum.
 * @ch: channel it is on.
 * @flow: flow; nothing changes if it has failed or what it would post was refused, is in a list
 *	already (also that of held or evicted flows), or has nothing to post.
 *
 * Context: channel's lock held.
 */
void krc_flow_activate(struct krc_channel *ch, struct krc_flow *flow);

/**
 * krc_flow_begin() - Post what has just been submitted: krc_flow_activate() and krc_channel_fill().
 * @ch: channel it is on.
 * @flow: flow that has not failed and has something to post.
 *
 * Context: channel's lock held.
 */
void krc_flow_begin(struct krc_channel *ch, struct krc_flow *flow);

/**
 * krc_flow_deactivate() - Take a flow out of the list it is in; what is left of its turn is for the
 * next flow of its payer.
 * @ch: channel it is on.
 * @flow: flow; in the DRR list, behind another one, held, evicted, or in no list.
 *
 * Context: channel's lock held.
 */
void krc_flow_deactivate(const struct krc_channel *ch, struct krc_flow *flow);

/**
 * krc_flow_advance() - Put a flow, and its payer, at the head of the DRR list.
 * @ch: channel it is on.
 * @flow: flow that is held.
 *
 * If others of its payer wait for their turn, it comes before them, in the place that they have.
 * Context: channel's lock held.
 */
void krc_flow_advance(struct krc_channel *ch, struct krc_flow *flow);

/**
 * krc_flow_fail() - Fail a flow: it accepts and posts nothing until krc_flow_restart().
 * @ch: channel it is on.
 * @flow: flow.
 * @status: negative errno that its queued requests complete with, when none of its segments
 *	is in the hardware any more; one that may have changed the peer's memory completes with
 *	-EREMCHG. Ignored if it has failed before.
 *
 * Context: channel's lock held.
 */
void krc_flow_fail(struct krc_channel *ch, struct krc_flow *flow, int status);

/**
 * krc_channel_softirq() - Serve a channel in softirq: the handler of its irq_poll.
 * @iop: krc_channel.iop.
 * @budget: most completions to take.
 *
 * Context: softirq; channel's lock not held.
 * Return: completions taken; @budget: it is called again soon.
 */
int krc_channel_softirq(struct irq_poll *iop, int budget);

/**
 * krc_channel_note_poller() - Note that a task is about to submit.
 * @ch: channel it submits to.
 *
 * If a poller left or submitted less than krc_spin_linger_ns() ago, this one is taken to be the
 * same in a burst, and arming is deferred once more: from now on, or, where it is deferred already,
 * from when the timer fires.
 * Context: channel's lock held.
 */
void krc_channel_note_poller(struct krc_channel *ch);

/**
 * krc_channel_linger_over() - Run a channel whose deferred arming is over: the function of its
 * hrtimer.
 * @timer: krc_arming.linger.
 *
 * Context: hrtimer in softirq; channel's lock not held.
 * Return: HRTIMER_NORESTART.
 */
enum hrtimer_restart krc_channel_linger_over(struct hrtimer *timer);

/**
 * krc_channel_works() - Check whether a channel's hardware executes requests.
 * @ch: channel.
 *
 * Context: channel's lock held, else a hint.
 * Return: true in READY, and in LEAVING, which is the same but for new segments.
 */
static inline bool krc_channel_works(const struct krc_channel *ch)
{
	return ch->state == KRC_CHANNEL_READY || ch->state == KRC_CHANNEL_LEAVING;
}

/* pool/read.c */

/**
 * krc_reader_create() - Make the READ slots of a pool, with their memory and its key.
 * @pool: pool, with its channels.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or the error of ops->key_dma().
 */
int krc_reader_create(struct krc_pool *pool);

/**
 * krc_reader_stop() - Refuse READs from now on, and take from their shares those that wait for a
 * slot.
 * @pool: pool.
 *
 * They complete in krc_reader_end(). Context: any but hard interrupts; no lock held.
 */
void krc_reader_stop(struct krc_pool *pool);

/**
 * krc_reader_end() - Complete the READs that krc_reader_stop() left.
 * @pool: pool, whose channels are stopped.
 *
 * Context: may sleep; no lock held.
 */
void krc_reader_end(struct krc_pool *pool);

/**
 * krc_reader_destroy() - Free the READ slots of a pool.
 * @pool: pool, after krc_reader_end(), or before any READ.
 *
 * Memory whose key can't be destroyed is not freed: the hardware might still write it.
 * Context: may sleep; no lock held.
 */
void krc_reader_destroy(struct krc_pool *pool);

#include "pool/recovery.h" /* of what is above */

#endif /* KRC_POOL_PRIV_H */
