/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the shared initiators of a port, and how requests of many queues share them:
 * credits, fairness, dispatch of completions, recovery and replay.
 *
 * A flow is one queue's (or the module's own) stream of requests. While it has requests
 * outstanding it stays on one initiator, which keeps their order; when it has none it
 * may move, to one that has less to do. What does not fit into the initiator waits in the
 * flow, and the initiator takes from its flows in turn, by bytes.
 *
 * Faults: the first failed request of an initiator is its flow's: it completes with
 * its error, and what the flow had behind it with -ECANCELED. The initiator is then
 * reset in the background, and the requests of the other flows that were flushed are
 * posted again in order: READs always; WRITEs and atomics if they can't have been
 * executed (another target than the failed one, or the target refused what was no
 * READ, and so did not go on), else they complete with -EREMCHG: outcome unknown. A WRITE
 * that its owner calls idempotent is posted again all the same.
 * Whatever ends a request: -ECANCELED, and -ENODEV and -EIO where nothing of its own failed,
 * are said of a WRITE or an atomic only if it has not been executed, not even in part.
 *
 * A silent peer makes all wait that share the initiator with those who ask it, since the
 * hardware serves one target after the other. So that this happens once and not once for
 * each of them, requests to a peer that has not answered for all the time they are on
 * their way, which was that of all retries, end with the first of them, as they would on
 * queue pairs of their own. And before anything is posted to a target, it has answered the
 * module a READ of its directory (krc_pool_read()): one that has not done so of late is
 * asked on an initiator that is there for that, where only those wait who ask the like.
 *
 * A lease bounds the stay in the hardware: a leased request is not handed over when its
 * lease is over, nor behind one that the hardware has been at for long, and if it is still
 * there some time after its lease, the initiator is reset: what was not begun is done when
 * its owner has asked again. So the owner of the memory can tell when nothing comes any more.
 *
 * Locking: krc_flow.lock, then krc_initiator.lock, both with bottom halves off. done() is
 * called without them; at any time at most one processor calls it for the flows of
 * an initiator.
 */
#ifndef KRC_POOL_H
#define KRC_POOL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"

struct krc_read_slot;
struct krc_flow;
struct krc_initiator;
struct krc_pool;
struct krc_rail;
struct krc_share;
struct krc_standing;

/**
 * enum krc_req_state - Where a request is; only the pool changes it.
 * @KRC_REQ_IDLE: its owner's.
 * @KRC_REQ_WAITING: in its flow, though a first part of it may be in the hardware.
 * @KRC_REQ_POSTED: all of it is in the hardware.
 * @KRC_REQ_FINISHED: its outcome is known, krc_flow.done() is about to be called.
 */
enum krc_req_state {
	KRC_REQ_IDLE,
	KRC_REQ_WAITING,
	KRC_REQ_POSTED,
	KRC_REQ_FINISHED,
};

/**
 * struct krc_req - One request on its way. Allocated by the flow's owner.
 * @flow: whose.
 * @list: where it waits; the pool's.
 * @wr: what is asked; wr.cookie is the pool's. What wr.address points to stays until
 *	the request is done.
 * @status: out: 0 or a negative errno of struct krp_cqe.
 * @fault: out: what the hardware said.
 * @state: the pool's.
 * @fenced: the fence has been posted; the pool's.
 * @begun: a part of it has been posted; the pool's.
 * @touched: a WRITE or an atomic that was in the hardware when that failed, and may have
 *	been executed; the pool's.
 * @idempotent: a WRITE that may be executed twice, set by its owner before he submits.
 * @leased: its key is good until @until only. This and the next two its owner sets before he
 *	submits, and may change while check() holds the flow.
 * @until: jiffies until which it may be handed to the hardware; see @leased.
 * @stay: jiffies for which it may be in the hardware after @until.
 * @slots: parts of it in the hardware; the pool's.
 * @next: bytes handed to the hardware; the pool's.
 * @done: bytes completed, always a first part; the pool's.
 * @since: jiffies when it was first posted, or when a part of it was last completed; the
 *	pool's.
 *
 * A large request is given to the hardware in parts of KRC_SEGMENT_BYTES, so that
 * it does not make its neighbours wait for all of it.
 */
struct krc_req {
	struct krc_flow *flow;
	struct list_head list;
	struct krc_hw_wr wr;
	int status;
	enum krc_fault fault;
	enum krc_req_state state;
	bool fenced;
	bool begun;
	bool touched;
	bool idempotent;
	bool leased;
	u16 slots;
	u32 next;
	u32 done;
	unsigned long since;
	unsigned long until;
	unsigned long stay;
};

/**
 * struct krc_flow - A stream of requests; embedded by its owner.
 * @lock: serialises those who submit, cancel, restart, resume; taken before the
 *	initiator's.
 * @pool: pool.
 * @initiator: where it is while it has requests outstanding; changes under @lock and
 *	only while there are none.
 * @list: in the initiator's turn, or among its held flows; the pool's.
 * @waiting: requests not posted yet.
 * @replay: requests that were flushed and are to be posted again, before @waiting.
 * @outstanding: requests submitted for which done() has not returned.
 * @posted: its parts of requests in the hardware.
 * @deficit: bytes it may post in its turn.
 * @failed: it had a fault or was cancelled; nothing more is accepted until
 *	krc_flow_restart().
 * @apart: 0, or 1 and more: on that of the initiators that are not shared; its owner's, set
 *	before the first submit.
 * @polled: set by its owner before it submits: he will poll for it, and has called
 *	krc_pool_poll_begin() by that; krc_pool_poll_end() is his to call if it was accepted.
 * @held: check() wants it to wait for krc_flow_resume().
 * @end_status: what the requests behind a failed one complete with.
 * @done: called once for each request, in order, with bottom halves off and no lock of
 *	the pool held; must not sleep; the request is the owner's again.
 * @check: called before a part of a request is posted, with the initiator's lock held;
 *	must not sleep, nor call the pool. 0 lets it be posted; -EAGAIN holds the flow
 *	until krc_flow_resume(); another errno fails the request. May be NULL.
 */
struct krc_flow {
	spinlock_t lock;
	struct krc_pool *pool;
	struct krc_initiator *initiator;
	struct list_head list;
	struct list_head waiting;
	struct list_head replay;
	atomic_t outstanding;
	u32 posted;
	u32 deficit;
	bool failed;
	u8 apart;
	bool polled;
	bool held;
	int end_status;
	void (*done)(struct krc_req *req);
	int (*check)(struct krc_req *req);
};

/**
 * struct krc_pool_watch - Somebody who wants to know that the pool is stopped.
 * @list: the pool's.
 * @stopped: called once, by krc_pool_stop(), after all requests have completed. May sleep.
 * @gone: completed after @stopped; who can't enter the port any more waits for it
 *	instead of calling krc_pool_unwatch().
 */
struct krc_pool_watch {
	struct list_head list;
	void (*stopped)(struct krc_pool_watch *watch);
	struct completion gone;
};

/**
 * krc_pool_create() - Make the initiators of a port.
 * @rail: through which they send; outlives the pool.
 * @initiators: how many are shared; those for krc_pool_read() of targets that have not proved
 *	themselves are made beside them.
 * @depth: requests of each.
 *
 * Context: may sleep.
 * Return: the pool or ERR_PTR.
 */
struct krc_pool *krc_pool_create(struct krc_rail *rail, u32 initiators, u32 depth);

/**
 * krc_pool_stop() - The device goes: complete all requests with -ENODEV, refuse new ones,
 * wake all waiters.
 * @pool: pool.
 *
 * Context: may sleep. May be called twice.
 */
void krc_pool_stop(struct krc_pool *pool);

/* Free a stopped pool that no flow uses any more. Context: may sleep. */
void krc_pool_destroy(struct krc_pool *pool);

/**
 * krc_pool_watch() - Have somebody told when the pool is stopped.
 * @pool: pool.
 * @watch: with stopped set.
 *
 * Context: may sleep. Inside krc_rail_enter().
 * Return: 0, or -ENODEV: it is stopped already.
 */
int krc_pool_watch(struct krc_pool *pool, struct krc_pool_watch *watch);

/**
 * krc_pool_unwatch() - Undo krc_pool_watch().
 * @pool: pool.
 * @watch: as given there; it is not called any more, or it has been.
 *
 * Context: may sleep. Inside krc_rail_enter().
 */
void krc_pool_unwatch(struct krc_pool *pool, struct krc_pool_watch *watch);

/**
 * krc_flow_init() - Make a flow.
 * @flow: flow.
 * @pool: its pool.
 * @done: see struct krc_flow.
 * @check: see struct krc_flow; may be NULL.
 *
 * Context: any.
 */
void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool, void (*done)(struct krc_req *req),
		   int (*check)(struct krc_req *req));

/**
 * krc_flow_submit() - Hand over requests, in order.
 * @flow: flow.
 * @reqs: list of krc_req.list with flow and wr set; emptied.
 *
 * Rings the doorbell if there is room in the hardware, then looks once for completions,
 * of any flow: it must not be called with a lock held that some done() takes.
 * Context: any in which bottom halves may be switched off. Inside krc_rail_enter().
 * Return: 0, -ENODEV (pool stopped), -EIO (no initiator works), -ENOTCONN (flow failed);
 * then nothing was taken.
 */
int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs);

/**
 * krc_flow_cancel() - Complete what waits with -ECANCELED, accept nothing more.
 * @flow: flow.
 *
 * What is posted completes by itself, and first. Same rules as krc_flow_submit().
 * Inside krc_rail_enter(); without it there is nothing to cancel: krc_pool_stop() does it.
 */
void krc_flow_cancel(struct krc_flow *flow);

/**
 * krc_flow_resume() - End what check() began with -EAGAIN.
 * @flow: flow.
 *
 * Same rules as krc_flow_submit(). Inside krc_rail_enter().
 */
void krc_flow_resume(struct krc_flow *flow);

/**
 * krc_flow_index() - Which initiator a flow is on.
 * @flow: flow that something was submitted to.
 *
 * Return: for krc_pool_poll(); a hint, it may move when nothing is outstanding.
 */
u32 krc_flow_index(const struct krc_flow *flow);

/**
 * krc_pool_poll_begin() - The caller polls an initiator from now on: no interrupts are asked
 * for meanwhile, if the kernel does not preempt its tasks.
 * @pool: pool.
 * @index: initiator.
 *
 * Context: task that does not sleep until it has called krc_pool_poll_end(). Inside
 * krc_rail_enter() for all of that.
 */
void krc_pool_poll_begin(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_end() - The caller does not poll any more.
 * @pool: pool.
 * @index: initiator.
 * @back: he does not sleep now, and may be back soon: for krc_spin_linger_ns() a timer
 *	stands for the interrupt.
 *
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll_end(struct krc_pool *pool, u32 index, bool back);

/**
 * krc_pool_poll() - Do what an interrupt of an initiator would do.
 * @pool: pool.
 * @index: initiator.
 *
 * For who waits awake. Finds nothing to do if somebody else is at it.
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_nearby() - krc_pool_poll() of an initiator, and of those that this processor
 * submits to if nobody else is at them.
 * @pool: pool.
 * @index: initiator.
 *
 * He is taken to look at those again soon, as with krc_pool_poll_end() and @back.
 * Context: as krc_pool_poll().
 */
void krc_pool_poll_nearby(struct krc_pool *pool, u32 index);

/**
 * krc_flow_drain() - Wait until nothing is outstanding.
 * @flow: flow.
 *
 * Touches nothing but the flow: may be called outside krc_rail_enter(). Ends soon after
 * krc_pool_stop(). Afterwards the flow may be freed. Context: may sleep.
 */
void krc_flow_drain(struct krc_flow *flow);

/**
 * krc_flow_drain_killable() - krc_flow_drain() that ends when the caller is killed.
 * @flow: flow.
 *
 * Context: may sleep.
 * Return: 0, or -ERESTARTSYS.
 */
int krc_flow_drain_killable(struct krc_flow *flow);

/**
 * krc_flow_restart() - Accept requests again after a fault or a cancel.
 * @flow: flow, drained.
 *
 * Context: any. Inside krc_rail_enter().
 */
void krc_flow_restart(struct krc_flow *flow);

#define KRC_READ_WAITS U32_MAX /* for an initiator: it waits for a slot */

/**
 * struct krc_read - A READ for the module itself; embedded by its owner.
 * @standing: of whom; its owner has counted it until done().
 * @payer: who wants it: has no more than his share of the slots. Only compared.
 * @remote_addr: address there.
 * @rkey: its key.
 * @bytes: how many, 1 to 256.
 * @done: called once, with bottom halves off and no lock of the pool held, perhaps before
 *	krc_pool_read() returns. err: 0, or why there are no @bytes: -EREMOTEIO (refused),
 *	-ETIMEDOUT (silent, or known to be so), -EIO (no initiator works), -ENODEV (the pool is
 *	stopped), -ENOMEM. Afterwards the READ is its owner's again, unless it returns true
 *	after an err of 0: then it is done once more, as soon as possible.
 * @start: out: jiffies when it was handed to the hardware: not later than what it says.
 * @list: where it waits; the pool's.
 * @share: whose turn it waits for; the pool's.
 * @slot: where it is under way; the pool's.
 * @queued: it has no slot yet, and its outcome is open; the pool's.
 * @err: its outcome, while it waits for done(); the pool's.
 */
struct krc_read {
	struct krc_standing *standing;
	const void *payer;
	u64 remote_addr;
	u32 rkey;
	u32 bytes;
	bool (*done)(struct krc_read *read, int err, const void *bytes);
	unsigned long start;
	struct list_head list;
	struct krc_share *share;
	struct krc_read_slot *slot;
	bool queued;
	int err;
};

/**
 * krc_pool_read() - READ for the module itself, without waiting.
 * @pool: pool.
 * @read: with the fields of its owner set.
 * @ret_index: out: initiator, for krc_pool_poll(), or KRC_READ_WAITS.
 *
 * From a target that has not proved itself of late there is one READ at a time, apart; the
 * others wait for it, and end with it if it fails. No READ ends because there is no slot.
 * Context: any but hard interrupts, no lock held that done() takes. Inside krc_rail_enter().
 * Return: 0: done() is called; else it is not: -ETIMEDOUT (the target was silent, and it is
 * not time to ask again), -ENODEV, -ENOMEM, -EINVAL.
 */
int krc_pool_read(struct krc_pool *pool, struct krc_read *read, u32 *ret_index);

/**
 * krc_pool_unread() - Nobody wants a READ any more.
 * @pool: pool.
 * @read: krc_pool_read() took it; done() has not freed it.
 *
 * Context: any but hard interrupts. Inside krc_rail_enter().
 * Return: whether it had not begun: done() is not called then. Else it is, or has been.
 */
bool krc_pool_unread(struct krc_pool *pool, struct krc_read *read);

/**
 * struct krc_pool_stats - Counters since creation.
 * @initiators: how many are shared by all.
 * @depth: requests of each.
 * @posted: requests posted to the hardware, in parts and with replays.
 * @completed: requests completed to flows.
 * @faults: requests that failed by themselves.
 * @recoveries: initiators reset.
 * @replayed: requests posted again.
 * @unknown: WRITEs and atomics completed with -EREMCHG.
 * @timeouts: of @recoveries, those since a target did not answer.
 * @refused_reads: those since a target refused a READ, behind which it may have gone on.
 * @expired: those since a request with a lease was in the hardware for too long.
 * @strays: completions that were nobody's.
 * @dead: initiators that can't be reset now, those that are not shared among them.
 * @outstanding: in the hardware now.
 */
struct krc_pool_stats {
	u32 initiators;
	u32 depth;
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
	u64 dead;
	u64 outstanding;
};

/* Counters, summed up. Context: any. Inside krc_rail_enter(). */
void krc_pool_stats(struct krc_pool *pool, struct krc_pool_stats *ret_stats);

/* Upcalls of the provider; see struct krc_hw_events. */
void krc_pool_on_completion(void *initiator_owner);
void krc_pool_on_fatal(void *initiator_owner);

#endif /* KRC_POOL_H */
