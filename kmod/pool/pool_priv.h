/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the pool, shared by pool/pool.c, pool/flow.c, pool/initiator.c,
 * pool/recovery.c and pool/read.c. Nobody else includes it, but the tests.
 *
 * Locking: each initiator has a spinlock, taken with bottom halves off. It protects the
 * initiator, and of the flows that are on it: list, waiting, replay, posted, deficit,
 * failed, held, end_status, and their requests. Functions named here expect it held
 * unless they say otherwise, and assert it.
 */
#ifndef KRC_POOL_PRIV_H
#define KRC_POOL_PRIV_H

#include <linux/hrtimer.h>
#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "hw/rail.h"
#include "pool/pool.h"

/* Largest part of a request that is posted as one, in bytes. */
#define KRC_SEGMENT_BYTES (256U << 10)
/* What a request costs beside its bytes: 64 small ones count as one segment. */
#define KRC_COST_BYTES (4U << 10)
/* What a flow may post in its turn: enough for any part. */
#define KRC_QUANTUM_BYTES (KRC_SEGMENT_BYTES + KRC_COST_BYTES)
/* Bytes in the hardware above which an initiator is full: bounds what stands before others. */
#define KRC_WINDOW_BYTES (2U << 20)

/* Parts that one completion may stand for, a power of two. */
#define KRC_UNSIGNALED_MAX 8U
/* Parts of this size have completions of their own: each is progress. */
#define KRC_UNSIGNALED_BYTES (4U << 10)

#define KRC_POLL_BUDGET 64 /* completions of one soft interrupt, of some more requests */
#define KRC_POLL_BATCH 16 /* completions taken at once */
#define KRC_DISPATCH_MAX 8 /* times that one looks for more to tell before he lets others */

/* Initiators that a processor uses if its own has enough to do. */
#define KRC_POOL_SPREAD 4U
/* The load of an initiator, in parts that are in the hardware, and what counts beside. */
#define KRC_LOAD_BUSY 12U /* enough to do: it has 16 READs under way at once */
#define KRC_LOAD_BYTES (64U << 10) /* count as a part */
#define KRC_LOAD_SLOW (1U << 16) /* nothing has completed for KRC_SLOW_MS */
#define KRC_LOAD_UNREADY (1U << 30) /* it will be ready */
#define KRC_LOAD_DEAD (1U << 31)
#define KRC_SLOW_MS 20 /* far more than a large part takes */

/* Initiators that are not shared: each is for the one READ of a slot; see pool/read.c. */
#define KRC_POOL_PROBATION 3U
#define KRC_POOL_APART 4U /* with that of quarantine */
#define KRC_APART_DEPTH 16U

#define KRC_DRAIN_MS 100 /* wait so long for flushed requests before a reset */
#define KRC_RESET_TRIES 3
#define KRC_RESET_PAUSE_MS 10
#define KRC_DEAD_RETRY_MS 10000
#define KRC_FRUITLESS_MAX 8 /* resets in a row that helped nobody */
#define KRC_WATCHDOG_MS 1000
#define KRC_STUCK_MS 30000 /* longer than all retries of the hardware */
#define KRC_SILENT_MS 25 /* shorter than them: a fault that comes sooner is no silence */

/**
 * enum krc_initiator_state - State of an initiator; krc_initiator_set_state() owns it.
 * @KRC_INI_READY: takes requests.
 * @KRC_INI_FAILED: had a fault; flushed requests are being collected.
 * @KRC_INI_RESETTING: the hardware is being reset; nobody touches it but the work item.
 * @KRC_INI_DEAD: could not be reset; tried again now and then.
 * @KRC_INI_STOPPED: the pool is stopped; final.
 * @KRC_INI_STATES: how many there are.
 */
enum krc_initiator_state {
	KRC_INI_READY,
	KRC_INI_FAILED,
	KRC_INI_RESETTING,
	KRC_INI_DEAD,
	KRC_INI_STOPPED,
	KRC_INI_STATES,
};

/* One part of a request in the hardware. */
struct krc_wqe {
	struct krc_req *req;
	u32 length;
	bool unsignaled; /* a later one's completion may stand for it */
	bool leased;
	unsigned long expires; /* jiffies when it must be out of the hardware, if it is leased */
};

/* Counters of an initiator; see struct krc_pool_stats. */
struct krc_initiator_stats {
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
 * struct krc_initiator - One shared send queue.
 * @lock: see above.
 * @pool: pool.
 * @hw: the provider's.
 * @index: which of the pool.
 * @state: enum krc_initiator_state.
 * @depth: parts of requests in the hardware at once.
 * @mask: slots - 1; slots is a power of two.
 * @head: number of the oldest part that is not known to be complete; also its cookie.
 * @tail: number of the part that is posted next.
 * @rung: number of the part that the hardware was told of last, plus 1.
 * @ring_by: jiffies until when it must be told of what it was not, if @leased.
 * @leased: there is a leased part among them.
 * @bounded: @expiry is to come, at @bound.
 * @bound: no later than the first leased part must be out of the hardware.
 * @expiry: work item that sees to it.
 * @bytes: in the hardware.
 * @slots: by number & mask.
 * @turn: flows that have something to post, in turn.
 * @held: flows that have, but may not.
 * @finished: requests with outcome, in order.
 * @dispatching: somebody is calling done().
 * @armed: the hardware was asked for an interrupt, and that has not been served.
 * @pollers: tasks that look for completions themselves; see krc_initiator_arm().
 * @polled_ns: when one last stopped who may be back soon, or looked at it in passing, or
 *	posted soon after; no lock, a hint.
 * @lingering: @linger is to come.
 * @linger: serves the initiator if he is not back.
 * @fault: why it is not ready.
 * @culprit: whose target it was, if the fault was a request's.
 * @culprit_reads: that request was a READ.
 * @stalled: @progress at the fault.
 * @fatal: bit 0: the provider says that it is broken.
 * @fruitless: resets in a row without fault of a request and without success between.
 * @progress: jiffies when something was last known to complete, or when it was last empty.
 * @iop: soft interrupt.
 * @recover: work item that resets.
 * @stats: counters.
 */
struct krc_initiator {
	spinlock_t lock;
	struct krc_pool *pool;
	struct krc_hw_initiator *hw;
	u32 index;
	enum krc_initiator_state state;
	u32 depth;
	u32 mask;
	u32 head;
	u32 tail;
	u32 rung;
	u32 bytes;
	bool leased;
	bool bounded;
	unsigned long ring_by;
	unsigned long bound;
	struct delayed_work expiry;
	struct krc_wqe *slots;
	struct list_head turn;
	struct list_head held;
	struct list_head finished;
	bool dispatching;
	bool armed;
	u32 pollers;
	u64 polled_ns;
	bool lingering;
	struct hrtimer linger;
	enum krc_fault fault;
	struct krc_hw_address culprit;
	bool culprit_reads;
	unsigned long stalled;
	unsigned long fatal;
	u32 fruitless;
	unsigned long progress;
	struct irq_poll iop;
	struct delayed_work recover;
	struct krc_initiator_stats stats;
} ____cacheline_aligned_in_smp;

struct krc_reader;

/**
 * struct krc_pool - Initiators of a port.
 * @rail: through which they send; ops and hw are its.
 * @ops: provider.
 * @wq: for recovery and the watchdog.
 * @watchdog: looks for initiators that do not go on.
 * @lock: serialises stop; protects @watches and @stopped.
 * @watches: who wants to be told.
 * @stopped: nothing is accepted any more.
 * @reader: memory for krc_pool_read().
 * @nr: initiators that are shared by all.
 * @made: initiators; KRC_POOL_APART more than @nr, for pool/read.c.
 * @ini: the initiators.
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
	u32 nr;
	u32 made;
	struct krc_initiator ini[];
};

/* pool/initiator.c */

/* Change the state. Return: whether the change is allowed from the present state. */
bool krc_initiator_set_state(struct krc_initiator *ini, enum krc_initiator_state state);
const char *krc_initiator_state_name(enum krc_initiator_state state);

/* Post what there is room for, flow after flow, and ring once. */
void krc_initiator_fill(struct krc_initiator *ini);

/* Take completions from the hardware, at most @budget. Return: how many. */
int krc_initiator_poll(struct krc_initiator *ini, int budget);

/* The same, whatever the state; for who has the hardware for himself. */
int krc_initiator_take(struct krc_initiator *ini, int budget);

/*
 * Have an interrupt come for what is in the hardware, if there is something and nobody
 * polls, or who polls may be preempted; or a timer, if somebody has polled just now.
 */
void krc_initiator_arm(struct krc_initiator *ini);

/* Call done() for what is finished. Drops the lock meanwhile. */
void krc_initiator_dispatch(struct krc_initiator *ini);

/* What a completion does: the slot at head ends with @fault. */
void krc_initiator_retire(struct krc_initiator *ini, enum krc_fault fault);

/* Poll, fill, expect, dispatch. */
void krc_initiator_run(struct krc_initiator *ini, int budget);

/* Put a flow that has something to post into the turn. */
void krc_flow_activate(struct krc_initiator *ini, struct krc_flow *flow);

/* End a flow: what waits completes with @status, after what is in the hardware. */
void krc_flow_fail(struct krc_initiator *ini, struct krc_flow *flow, int status);

/* The soft interrupt of an initiator; lock not held. */
int krc_initiator_softirq(struct irq_poll *iop, int budget);

/*
 * Somebody is about to post and to look for completions. If a poller has been here just now it
 * is taken to be him, in a burst, and no interrupt is asked for as long as he goes on so.
 */
void krc_initiator_note_poller(struct krc_initiator *ini);

/* Timer in a soft interrupt; lock not held. */
enum hrtimer_restart krc_initiator_linger_over(struct hrtimer *timer);

/* pool/recovery.c */

/* The initiator does not work any more: why, and by which request (NULL: by none). */
void krc_initiator_fault(struct krc_initiator *ini, enum krc_fault fault,
			 const struct krc_req *culprit);

/* Whether a flushed WRITE or atomic may have been executed. */
bool krc_initiator_in_doubt(const struct krc_initiator *ini, const struct krc_req *req);

/* Whether a flushed request has waited in vain for as long as the one that failed. */
bool krc_initiator_silent(const struct krc_initiator *ini, const struct krc_req *req);

/* Whether the hardware was told of the part at head. */
static inline bool krc_initiator_begun(const struct krc_initiator *ini)
{
	return (s32)(ini->rung - ini->head) > 0;
}

/* Complete all requests with @status. The hardware touches none of them any more. */
void krc_initiator_abort(struct krc_initiator *ini, int status);

/* Work items; lock not held. */
void krc_initiator_recover(struct work_struct *work);
void krc_initiator_expire(struct work_struct *work);

/* pool/read.c; context: may sleep */
int krc_reader_create(struct krc_pool *pool);
void krc_reader_stop(struct krc_pool *pool); /* no READ is taken any more */
void krc_reader_end(struct krc_pool *pool); /* and now none is under way */
void krc_reader_destroy(struct krc_pool *pool);

/* Negative errno of struct krp_cqe for a fault of a request. */
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

/* Whether a fault is that of the request itself. */
static inline bool krc_fault_own(enum krc_fault fault)
{
	return fault != KRC_FAULT_NONE && fault != KRC_FAULT_FLUSHED && fault < KRC_FAULT_FATAL;
}

#endif /* KRC_POOL_PRIV_H */
