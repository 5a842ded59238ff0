/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the pool, shared by pool/pool.c, pool/channel.c, pool/flow.c,
 * pool/send.c, pool/recovery.c and pool/read.c. No other file includes it, except tests.
 *
 * Locking: each channel has a spinlock, taken with bottom halves off. It protects the
 * channel, and of the flows that are on it: list, waiting, replay, posted, deficit,
 * failed, held, end_status, and their requests. Functions declared here expect it held
 * unless they say otherwise, and assert it. The list of channels is read under RCU.
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
#include "pool/pool.h"

/* Largest segment of a request that is posted as one WQE, in bytes. */
#define KRC_SEGMENT_BYTES (256U << 10)
/* DRR cost of a segment besides its bytes: 64 small ones count as one full segment. */
#define KRC_COST_BYTES (4U << 10)
/* DRR quantum of a flow: enough for any segment. */
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

#define KRC_DRAIN_MS 100 /* limit of the wait for flushed completions before a reset */
#define KRC_RESET_TRIES 3
#define KRC_RESET_PAUSE_MS 10
#define KRC_DEAD_RETRY_MS 10000
#define KRC_FRUITLESS_MAX 8 /* consecutive resets without progress before DEAD */
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

/* One segment in the hardware. */
struct krc_wqe {
	struct krc_req *req;
	u32 length;
	bool unsignaled; /* a later completion may stand for it */
	bool leased;
	unsigned long expires; /* jiffies when it must be out of the hardware, if it is leased */
};

/* Counters of a channel; see struct krc_pool_stats. */
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
	u64 strays;
};

/**
 * struct krc_lease_bound - How a channel bounds the time of leased segments in the hardware.
 * @unrung: the doorbell has not been rung for a leased segment.
 * @bounded: @expiry is scheduled, at @bound.
 * @ring_by: jiffies by which the doorbell must be rung, if @unrung.
 * @bound: jiffies, no later than the first leased segment must be out of the hardware.
 * @expiry: work item that enforces it.
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
 * @ref: one of the pool's list, and one of each flow whose @channel it is. They keep the
 *	memory only.
 * @rcu: to free it when nobody reads the list any more.
 * @index: its number in the pool, for diagnostics too; unique while it is in the list.
 * @kind: enum krc_channel_kind.
 * @state: enum krc_channel_state.
 * @depth: most segments in the hardware at once.
 * @mask: size of @slots - 1; the size is a power of two.
 * @head: number of the oldest segment that is not known to be complete; also its cookie.
 * @tail: number of the next segment to be posted.
 * @rung: value of @tail at the last doorbell.
 * @bytes: of all segments in the hardware.
 * @progress: jiffies when something was last known to complete, or when it was last empty.
 * @turn: DRR list: flows that have something to post.
 * @held: flows that have, but wait for krc_flow_resume().
 * @finished: requests with a known outcome, in order.
 * @dispatching: some CPU is calling done().
 * @iop: irq_poll that serves it in softirq.
 * @lease: leased segments.
 * @arming: interrupts and pollers.
 * @failure: fault and recovery.
 * @stats: counters.
 * @slots: the segments, by number & mask.
 */
struct krc_channel {
	spinlock_t lock;
	struct krc_pool *pool;
	struct krc_hw_initiator *hw;
	struct kref ref;
	struct rcu_head rcu;
	u32 index;
	enum krc_channel_kind kind;
	enum krc_channel_state state;
	u32 depth;
	u32 mask;
	u32 head;
	u32 tail;
	u32 rung;
	u32 bytes;
	unsigned long progress;
	struct list_head turn;
	struct list_head held;
	struct list_head finished;
	bool dispatching;
	struct irq_poll iop;
	struct krc_lease_bound lease;
	struct krc_arming arming;
	struct krc_failure failure;
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

/* How many channels of a kind there are. Context: as krc_pool_channels() says. */
static inline u32 krc_channels_of(const struct krc_channels *all, enum krc_channel_kind kind)
{
	return all->first[kind + 1] - all->first[kind];
}

/* The i-th shared channel, modulo their number @nr. Context: as krc_pool_channels() says. */
static inline struct krc_channel *krc_channels_shared(const struct krc_channels *all, u32 i, u32 nr)
{
	return all->at[all->first[KRC_CHANNEL_SHARED] + i % nr];
}

/**
 * struct krc_channel_ops - What a kind of channels does its own way; krc_channel_kinds has one
 * for each kind.
 * @depth_max: most segments in the hardware at once; the pool's depth bounds it as well.
 * @pick: choose the channel for the next request of a flow of this kind, which has nothing
 *	outstanding. @to: the peer of that request, or NULL. RCU is read-locked, flow->lock held.
 * @create: make the send queue: @depth segments, upcalls to @owner. May sleep. Returns ERR_PTR on
 *	failure.
 *
 * A kind that serves one peer finds its channel by @to in @pick, and connects it in @create.
 */
struct krc_channel_ops {
	u32 depth_max;
	struct krc_channel *(*pick)(const struct krc_channels *all, const struct krc_flow *flow,
				    const struct krc_hw_address *to);
	struct krc_hw_initiator *(*create)(struct krc_rail *rail, u32 depth, u32 index,
					   struct krc_channel *owner);
};

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
	u32 depth;
	struct krc_channels __rcu *channels;
};

/* The list of channels. Context: RCU read-locked, krc_pool.lock held, or the pool is ending. */
static inline struct krc_channels *krc_pool_channels(struct krc_pool *pool)
{
	return rcu_dereference_check(pool->channels, lockdep_is_held(&pool->lock));
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
 * only one of its kind.
 */
int krc_pool_remove(struct krc_pool *pool, struct krc_channel *ch);

/* Find a channel by number. Context: RCU read-locked. Return: it, or NULL. */
struct krc_channel *krc_pool_find(struct krc_pool *pool, u32 index);

/* Make an empty list. Context: may sleep. Return: 0 or -ENOMEM. */
int krc_channels_create(struct krc_pool *pool);

/* Stop all channels and complete all requests with -ENODEV. Context: may sleep, pool->lock held. */
void krc_channels_stop(struct krc_pool *pool);

/* Drop stopped channels, and the list. Context: may sleep; nobody uses the pool any more. */
void krc_channels_destroy(struct krc_pool *pool);

/* Add counters of a channel to a sum. Context: any; no lock needed for @sum. */
void krc_channel_stats_add(struct krc_channel_stats *sum, const struct krc_channel_stats *more);

/* Nothing is in the hardware, and all that has ended was told. */
static inline bool krc_channel_told(const struct krc_channel *ch)
{
	return ch->head == ch->tail && list_empty(&ch->finished) && !ch->dispatching;
}

/* Take one more reference, which keeps the memory. Context: any; no lock needed. */
static inline void krc_channel_get(struct krc_channel *ch)
{
	kref_get(&ch->ref);
}

/* Drop a reference. Context: any; no lock needed. */
void krc_channel_put(struct krc_channel *ch);

/* Choose the channel of a flow; see struct krc_channel_ops. */
struct krc_channel *krc_pick_shared(const struct krc_channels *all, const struct krc_flow *flow,
				    const struct krc_hw_address *to);
struct krc_channel *krc_pick_probation(const struct krc_channels *all, const struct krc_flow *flow,
				       const struct krc_hw_address *to);

extern const struct krc_channel_ops krc_channel_kinds[KRC_CHANNEL_KINDS];

/* pool/flow.c */

/**
 * krc_flow_move_one() - Move a flow from a channel that is leaving to another.
 * @ch: channel with nothing in the hardware and nothing to tell.
 *
 * Called with bottom halves off and without the lock of @ch.
 * Return: whether a flow may still be there.
 */
bool krc_flow_move_one(struct krc_channel *ch);

/* pool/send.c */

/* Change the state. Return: whether the change is allowed from the present state. */
bool krc_channel_set_state(struct krc_channel *ch, enum krc_channel_state state);

/* Name of a state, for diagnostics; "?" if unknown. Context: any; no lock needed. */
const char *krc_channel_state_name(enum krc_channel_state state);

/* Post segments up to the capacity, flow after flow, and ring the doorbell once. */
void krc_channel_fill(struct krc_channel *ch);

/* Take completions from the hardware, at most @budget. Return: how many. */
int krc_channel_poll(struct krc_channel *ch, int budget);

/* The same in any state, for a caller that owns the hardware exclusively. */
int krc_channel_take(struct krc_channel *ch, int budget);

/*
 * Arm the CQ if something is in the hardware and no task busy-polls it (always on a
 * preemptible kernel); just after a poller has left, start the timer @linger instead.
 */
void krc_channel_arm(struct krc_channel *ch);

/* Call done() for the finished requests. Drops the lock meanwhile. */
void krc_channel_dispatch(struct krc_channel *ch);

/* Complete the segment at head with @fault. */
void krc_channel_retire(struct krc_channel *ch, enum krc_fault fault);

/* Poll, fill, arm, dispatch. Drops the lock while it dispatches. */
void krc_channel_run(struct krc_channel *ch, int budget);

/* Put a flow that has something to post on the DRR list. */
void krc_flow_activate(struct krc_channel *ch, struct krc_flow *flow);

/* Fail a flow: its queued requests complete with @status, after those in the hardware. */
void krc_flow_fail(struct krc_channel *ch, struct krc_flow *flow, int status);

/* Softirq handler (irq_poll) of a channel; lock not held. Return: completions taken. */
int krc_channel_softirq(struct irq_poll *iop, int budget);

/*
 * The caller is about to submit. If a poller left or submitted just now, the caller is taken to
 * be that poller in a burst, and arming is deferred further.
 */
void krc_channel_note_poller(struct krc_channel *ch);

/* Deferred arming is over: run the channel. hrtimer in softirq; lock not held. */
enum hrtimer_restart krc_channel_linger_over(struct hrtimer *timer);

/* Whether it works: READY, or LEAVING, which is the same but for new segments. */
static inline bool krc_channel_works(const struct krc_channel *ch)
{
	return ch->state == KRC_CHANNEL_READY || ch->state == KRC_CHANNEL_LEAVING;
}

/* pool/recovery.c */

/* Record a fault, and schedule recovery. @culprit: the request that failed, or NULL: none. */
void krc_channel_fault(struct krc_channel *ch, enum krc_fault fault, const struct krc_req *culprit);

/* Whether a flushed WRITE or atomic may have been executed. */
bool krc_channel_in_doubt(const struct krc_channel *ch, const struct krc_req *req);

/* Whether a flushed request has waited unanswered for as long as the one that timed out. */
bool krc_channel_silent(const struct krc_channel *ch, const struct krc_req *req);

/* Whether the doorbell was rung for the segment at head. */
static inline bool krc_channel_begun(const struct krc_channel *ch)
{
	return (s32)(ch->rung - ch->head) > 0;
}

/* Complete all requests with @status. The hardware touches none of them any more. */
void krc_channel_abort(struct krc_channel *ch, int status);

/* Work items: reset a failed channel; fault one with an expired lease. Lock not held. */
void krc_channel_recover(struct work_struct *work);
void krc_channel_expire(struct work_struct *work);

/* pool/read.c: READ slots. Context: may sleep, lock not held. Create: 0 or a negative errno. */
int krc_reader_create(struct krc_pool *pool);
void krc_reader_stop(struct krc_pool *pool); /* refuse READs, unqueue those that wait */
void krc_reader_end(struct krc_pool *pool); /* with the channels stopped: complete the rest */
void krc_reader_destroy(struct krc_pool *pool);

/* Negative errno of struct krp_cqe for a fault, or 0. Context: any; no lock needed. */
static inline int krc_fault_errno(enum krc_fault fault)
{
	switch (fault) {
	case KRC_FAULT_NONE:
		return 0;
	case KRC_FAULT_FLUSHED:
		return -ECANCELED;
	case KRC_FAULT_ACCESS:
		return -EREMOTEIO;
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

/* Whether a fault is the request's own. Context: any; no lock needed. */
static inline bool krc_fault_own(enum krc_fault fault)
{
	return fault != KRC_FAULT_NONE && fault != KRC_FAULT_FLUSHED && fault < KRC_FAULT_FATAL;
}

#endif /* KRC_POOL_PRIV_H */
