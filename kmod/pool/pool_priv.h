/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the pool, shared by pool/pool.c, pool/flow.c, pool/initiator.c,
 * pool/recovery.c and pool/read.c. No other file includes it, except tests.
 *
 * Locking: each initiator has a spinlock, taken with bottom halves off. It protects the
 * initiator, and of the flows that are on it: list, waiting, replay, posted, deficit,
 * failed, held, end_status, and their requests. Functions declared here expect it held
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

/* Largest segment of a request that is posted as one WQE, in bytes. */
#define KRC_SEGMENT_BYTES (256U << 10)
/* DRR cost of a segment besides its bytes: 64 small ones count as one full segment. */
#define KRC_COST_BYTES (4U << 10)
/* DRR quantum of a flow: enough for any segment. */
#define KRC_QUANTUM_BYTES (KRC_SEGMENT_BYTES + KRC_COST_BYTES)
/* Bytes in the hardware above which an initiator is full: bounds the wait of other flows. */
#define KRC_WINDOW_BYTES (2U << 20)

/* Segments that one completion may stand for, a power of two. */
#define KRC_UNSIGNALED_MAX 8U
/* Segments of this size or more are always signaled: each is progress. */
#define KRC_UNSIGNALED_BYTES (4U << 10)

#define KRC_POLL_BUDGET 64 /* completions per softirq run; each may stand for more segments */
#define KRC_POLL_BATCH 16 /* completions taken at once */
#define KRC_DISPATCH_MAX 8 /* batches that one dispatcher delivers before it reschedules */

/* Initiators that a CPU spreads its flows over while its own is busy. */
#define KRC_POOL_SPREAD 4U
/* The load of an initiator: its segments in the hardware, weighted as follows. */
#define KRC_LOAD_BUSY 12U /* busy: the hardware has at most 16 READs of it in flight */
#define KRC_LOAD_BYTES (64U << 10) /* bytes that count as one segment */
#define KRC_LOAD_SLOW (1U << 16) /* nothing has completed for KRC_SLOW_MS */
#define KRC_LOAD_UNREADY (1U << 30) /* it is being reset */
#define KRC_LOAD_DEAD (1U << 31)
#define KRC_SLOW_MS 20 /* far more than a full segment takes */

/* Initiators set apart, not shared: each serves the one READ of a slot; see pool/read.c. */
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
 * enum krc_initiator_state - State of an initiator; krc_initiator_set_state() owns it.
 * @KRC_INI_READY: takes requests.
 * @KRC_INI_FAILED: had a fault; flushed requests are being collected.
 * @KRC_INI_RESETTING: the hardware is being reset; only the work item touches it.
 * @KRC_INI_DEAD: could not be reset; retried every KRC_DEAD_RETRY_MS.
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

/* One segment in the hardware. */
struct krc_wqe {
	struct krc_req *req;
	u32 length;
	bool unsignaled; /* a later completion may stand for it */
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
 * @index: index in krc_pool.ini.
 * @state: enum krc_initiator_state.
 * @depth: most segments in the hardware at once.
 * @mask: size of @slots - 1; the size is a power of two.
 * @head: number of the oldest segment that is not known to be complete; also its cookie.
 * @tail: number of the next segment to be posted.
 * @rung: value of @tail at the last doorbell.
 * @ring_by: jiffies by which the doorbell must be rung for the segments from @rung on, if
 *	@leased.
 * @leased: there is a leased segment among those.
 * @bounded: @expiry is scheduled, at @bound.
 * @bound: jiffies, no later than the first leased segment must be out of the hardware.
 * @expiry: work item that enforces it.
 * @bytes: of all segments in the hardware.
 * @slots: the segments, by number & mask.
 * @turn: DRR list: flows that have something to post.
 * @held: flows that have, but wait for krc_flow_resume().
 * @finished: requests with a known outcome, in order.
 * @dispatching: some CPU is calling done().
 * @armed: the hardware was asked for an interrupt that has not been served.
 * @pollers: tasks that busy-poll it; see krc_initiator_arm().
 * @polled_ns: ktime_get_ns() when a poller that may be back soon last left, polled it nearby, or
 *	submitted soon after; a hint, accessed without the lock too.
 * @lingering: @linger is started.
 * @linger: timer of deferred arming: runs the initiator if no poller is back.
 * @fault: why it is not ready.
 * @culprit: target of the failed request, if the fault was a request's.
 * @culprit_reads: that request was a READ.
 * @stalled: value of @progress at the fault.
 * @fatal: bit 0: the provider reported it broken; set without the lock.
 * @fruitless: consecutive resets for no request's own fault, nor an expired lease, without
 *	a success between.
 * @progress: jiffies when something was last known to complete, or when it was last empty.
 * @iop: irq_poll that serves it in softirq.
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
 * @rail: port they send through; owns ops and hw.
 * @ops: provider.
 * @wq: for recovery and the watchdog.
 * @watchdog: polls initiators that make no progress, and resets stuck ones.
 * @lock: serialises stop; protects @watches and @stopped.
 * @watches: struct krc_pool_watch.
 * @stopped: nothing is accepted any more.
 * @reader: READ slots of krc_pool_read().
 * @nr: shared initiators.
 * @made: all initiators; KRC_POOL_APART more than @nr, for pool/read.c.
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

/* Name of a state, for diagnostics; "?" if unknown. Context: any; no lock needed. */
const char *krc_initiator_state_name(enum krc_initiator_state state);

/* Post segments up to the capacity, flow after flow, and ring the doorbell once. */
void krc_initiator_fill(struct krc_initiator *ini);

/* Take completions from the hardware, at most @budget. Return: how many. */
int krc_initiator_poll(struct krc_initiator *ini, int budget);

/* The same in any state, for a caller that owns the hardware exclusively. */
int krc_initiator_take(struct krc_initiator *ini, int budget);

/*
 * Arm the CQ if something is in the hardware and no task busy-polls it (always on a
 * preemptible kernel); just after a poller has left, start the timer @linger instead.
 */
void krc_initiator_arm(struct krc_initiator *ini);

/* Call done() for the finished requests. Drops the lock meanwhile. */
void krc_initiator_dispatch(struct krc_initiator *ini);

/* Complete the segment at head with @fault. */
void krc_initiator_retire(struct krc_initiator *ini, enum krc_fault fault);

/* Poll, fill, arm, dispatch. Drops the lock while it dispatches. */
void krc_initiator_run(struct krc_initiator *ini, int budget);

/* Put a flow that has something to post on the DRR list. */
void krc_flow_activate(struct krc_initiator *ini, struct krc_flow *flow);

/* Fail a flow: its queued requests complete with @status, after those in the hardware. */
void krc_flow_fail(struct krc_initiator *ini, struct krc_flow *flow, int status);

/* Softirq handler (irq_poll) of an initiator; lock not held. Return: completions taken. */
int krc_initiator_softirq(struct irq_poll *iop, int budget);

/*
 * The caller is about to submit. If a poller left or submitted just now, the caller is taken to
 * be that poller in a burst, and arming is deferred further.
 */
void krc_initiator_note_poller(struct krc_initiator *ini);

/* Deferred arming is over: run the initiator. hrtimer in softirq; lock not held. */
enum hrtimer_restart krc_initiator_linger_over(struct hrtimer *timer);

/* pool/recovery.c */

/* Record a fault, and schedule recovery. @culprit: the request that failed, or NULL: none. */
void krc_initiator_fault(struct krc_initiator *ini, enum krc_fault fault,
			 const struct krc_req *culprit);

/* Whether a flushed WRITE or atomic may have been executed. */
bool krc_initiator_in_doubt(const struct krc_initiator *ini, const struct krc_req *req);

/* Whether a flushed request has waited unanswered for as long as the one that timed out. */
bool krc_initiator_silent(const struct krc_initiator *ini, const struct krc_req *req);

/* Whether the doorbell was rung for the segment at head. */
static inline bool krc_initiator_begun(const struct krc_initiator *ini)
{
	return (s32)(ini->rung - ini->head) > 0;
}

/* Complete all requests with @status. The hardware touches none of them any more. */
void krc_initiator_abort(struct krc_initiator *ini, int status);

/* Work items: reset a failed initiator; fault one with an expired lease. Lock not held. */
void krc_initiator_recover(struct work_struct *work);
void krc_initiator_expire(struct work_struct *work);

/* pool/read.c: READ slots. Context: may sleep, lock not held. Create: 0 or a negative errno. */
int krc_reader_create(struct krc_pool *pool);
void krc_reader_stop(struct krc_pool *pool); /* refuse READs, unqueue those that wait */
void krc_reader_end(struct krc_pool *pool); /* with the initiators stopped: complete the rest */
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
