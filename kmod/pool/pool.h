/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the channels of a port, and how requests of many queues share them: capacity, fairness,
 * dispatch of completions, recovery and replay.
 *
 * A channel is a send queue with its slots, its turn and its recovery, of one of the kinds of
 * enum krc_channel_kind. A flow is one queue's (or the module's own) stream of requests. While it
 * has requests outstanding it stays on one channel, which keeps their order; when it has none it
 * may move to a less loaded one. Requests that do not fit into the channel wait in the
 * flow, and the channel serves the payers of its flows in turn, by bytes, and of each payer one
 * flow after the other (deficit round robin), so that many queues are no larger share than one.
 *
 * Faults: the first request of a channel that fails completes with its own error, and the
 * later requests of its flow with -ECANCELED. The channel is then reset in the background,
 * and the flushed requests of the other flows are posted again in order: READs always; WRITEs
 * and atomics if they can't have been executed (their target is not the failed one, or the
 * target refused a request that was no READ, and so executed nothing behind it), else they
 * complete with -EREMCHG: outcome unknown. The same holds for all requests to a target whose way
 * was given up under them (KRC_FAULT_LOST), with none that fails by that itself. A WRITE that its owner declared idempotent is
 * posted again all the same, and so is a SEND, since its receiver knows doubles.
 * However a request ends: a WRITE or an atomic completes with -ECANCELED, or with -ENODEV or
 * -EIO without a failure of its own, only if it has not been executed, not even in part.
 *
 * A channel serves one target at a time, so an unresponsive peer stalls every flow on it
 * until the hardware's retries run out. That price is paid once per peer: when a request to it
 * times out, the requests to it that were outstanding since before the stall fail with it, as
 * they would on queue pairs of their own. And nothing is posted to a target before it has
 * answered a READ of its directory by the module (krc_pool_read()): a target that has not
 * answered lately is asked on a channel set apart, where only such READs wait. What stalls channels
 * again and again all the same, or makes them slow, is isolated: see pool/isolation.h.
 *
 * A lease bounds the time in the hardware: a leased request is not posted once its lease is
 * over, nor behind a request that the hardware has been working on for long. If it is still
 * in the hardware some time after its lease, the channel is reset, and requests that were
 * not begun are posted after their owner has renewed the lease. So the owner of the memory
 * can tell when no more accesses can come. The target that the hardware was at is to blame, if it
 * had not answered for some time: a WRITE or an atomic to it says so (KRC_FAULT_EXPIRED), so that the
 * target has to prove itself; READs and what may be done twice end as if it had not answered when that
 * happens repeatedly (KRC_FAULT_TIMEOUT). The time of a SEND in the hardware is bounded from the
 * moment it is posted, each time anew.
 *
 * Locking: krc_flow.lock, then krc_channel.lock, both with bottom halves off. done() is
 * called without them; at any time at most one CPU calls it for the flows of a channel.
 */
#ifndef KRC_POOL_H
#define KRC_POOL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"

struct krc_channel;
struct krc_read_slot;
struct krc_flow;
struct krc_pool;
struct krc_rail;
struct krc_share;
struct krc_standing;

/**
 * enum krc_channel_kind - What a channel sends to.
 * @KRC_CHANNEL_SHARED: any target, for all flows; a DC initiator.
 * @KRC_CHANNEL_PROBATION: any target, one READ at a time, of a target that has not proved itself;
 *	a DC initiator set apart (pool/read.c).
 * @KRC_CHANNEL_MESSAGE: any target, for SENDs of messages (pool/packets.h) and nothing else; a DC
 *	initiator. A receiver without buffers delays other messages, but no READ, WRITE or atomic.
 *	A pool has none before krc_pool_enable_messages().
 * @KRC_CHANNEL_ISOLATED: any target, for flows of KRC_CHANNEL_SHARED whose target or payer stalls
 *	those too often (pool/isolation.h); a DC initiator.
 * @KRC_CHANNEL_KINDS: how many there are.
 *
 * A kind is a row of krc_channel_kinds (pool/channel.c), and is chosen by krc_flow.kind.
 */
enum krc_channel_kind {
	KRC_CHANNEL_SHARED,
	KRC_CHANNEL_PROBATION,
	KRC_CHANNEL_MESSAGE,
	KRC_CHANNEL_ISOLATED,
	KRC_CHANNEL_KINDS,
};

/**
 * enum krc_req_state - Where a request is; only the pool changes it.
 * @KRC_REQ_IDLE: with its owner.
 * @KRC_REQ_WAITING: queued in its flow, though its first segments may be in the hardware.
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
 * struct krc_req - One request. Allocated by the flow's owner.
 * @flow: the flow it was submitted to.
 * @list: entry of the list it is queued in; the pool's.
 * @wr: the operation; wr.cookie is the pool's. What wr.address points to stays valid until
 *	the request is done.
 * @status: out: 0 or a negative errno of struct krp_cqe.
 * @fault: out: what the hardware reported; or KRC_FAULT_EXPIRED: see there.
 * @state: the pool's.
 * @fenced: the fence has been posted; the pool's.
 * @begun: a segment has been posted; the pool's.
 * @expired: how often its lease ended while the hardware was at it, since @done last grew; the
 *	pool's.
 * @touched: a WRITE or an atomic that was in the hardware when the channel failed, and may
 *	have been executed; the pool's.
 * @idempotent: a WRITE that may be executed twice; set by its owner before submit.
 * @leased: its key is valid until @until only. The owner sets @leased, @until and @stay before
 *	submit, and may change them while check() holds the flow.
 * @until: jiffies until which it may be posted to the hardware; see @leased. A SEND is not posted
 *	later but ends with -ETIME; others are held or failed by check().
 * @stay: jiffies for which it may be in the hardware after @until; a SEND, since it was posted.
 * @slots: its segments in the hardware; the pool's.
 * @next: bytes posted to the hardware; the pool's.
 * @done: bytes completed, always a prefix of the request; the pool's.
 * @since: jiffies when it was first posted, or when a segment of it last completed; the
 *	pool's.
 *
 * A large request is posted in segments of KRC_SEGMENT_BYTES, so that the requests of other
 * flows need not wait for all of it.
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
	u8 expired;
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
 * @lock: serialises submit, cancel, restart and resume; taken before the channel's.
 * @pool: pool.
 * @channel: the channel it is on while it has requests outstanding, counted; changes under
 *	@lock, while there are none, when the channel is removed, or when the flow is isolated or not any
 *	more.
 * @kind: kind of channels it uses; set by the owner before the first submit.
 * @nth: of KRC_CHANNEL_PROBATION, which one, from 0; as @kind.
 * @payer: on whose account it is: the flows of one payer share its turns. Only compared; set by
 *	krc_flow_init() to the flow itself, and by the owner, if at all, while nothing is outstanding
 *	and nobody submits.
 * @list: entry of the channel's DRR list, of the @behind of another flow, or of the channel's held or
 *	evicted flows; the pool's.
 * @bill: on whose account it is with the provider, if that is another one; else NULL. As @payer.
 * @behind: if it is the first of its payer, in the DRR list: the other flows of the payer that
 *	have something to post, in the order in which they are served; else empty. The pool's.
 * @waiting: requests not posted yet.
 * @replay: requests that were flushed and are to be posted again, before @waiting.
 * @flight: requests that are all in the hardware (KRC_REQ_POSTED), in the order of posting.
 * @outstanding: requests submitted for which done() has not returned.
 * @posted: its segments in the hardware.
 * @deficit: bytes it may post in the turn of its payer; counts in the first of a payer.
 * @round: by which flows in one list are served: see pool/target.c; the pool's.
 * @lap: if it is the first of its payer: what its @round was behind another one.
 * @inherits: @deficit is what another flow of the payer has left of a turn, as far as it counts.
 * @failed: it had a fault or was cancelled; nothing more is accepted until
 *	krc_flow_restart().
 * @lapses: check() has nothing against a leased request before @until of that is over, and is not
 *	called until then; set by the owner before the first submit.
 * @standing: what is known of the target, if it does not change from one request to the next;
 *	nothing is posted while it is barred (pool/silence.h), and stalls are charged to it. Set by
 *	the owner while nothing is outstanding, which keeps it counted; NULL: the owner sees to that.
 * @polled: the submitter will busy-poll; set by the owner before submit. If submit succeeds,
 *	the submitter counts as a poller, as after krc_pool_poll_begin(), until it calls
 *	krc_pool_poll_end().
 * @held: check() returned -EAGAIN: the flow waits for krc_flow_resume().
 * @end_status: what the requests behind a failed one complete with.
 * @done: called with requests that ended together, in order, each once, with bottom halves
 *	off and no lock of the pool held; must not sleep. @reqs has @nr of them, from 1, and is a
 *	list of its own: the requests are the owner's again, which takes each off, or only ever adds
 *	it to another list, without a look at what it is linked to.
 * @check: called before a segment is posted (see @lapses), with the channel's lock held; must not
 *	sleep, nor call the pool. 0 lets it be posted; -EAGAIN holds the flow until
 *	krc_flow_resume(); another errno fails the request. May be NULL.
 */
struct krc_flow {
	spinlock_t lock;
	struct krc_pool *pool;
	struct krc_channel *channel;
	const void *payer;
	const void *bill;
	struct krc_standing *standing;
	struct list_head list;
	struct list_head behind;
	struct list_head waiting;
	struct list_head replay;
	struct list_head flight;
	atomic_t outstanding;
	u32 posted;
	u32 deficit;
	u32 round;
	u32 lap;
	bool inherits;
	u8 kind;
	u8 nth;
	bool lapses;
	bool failed;
	bool polled;
	bool held;
	int end_status;
	void (*done)(struct krc_flow *flow, struct list_head *reqs, u32 nr);
	int (*check)(struct krc_req *req);
};

/**
 * struct krc_pool_watch - A callback for the stop of the pool.
 * @list: the pool's.
 * @stopped: called once, by krc_pool_stop(), after all requests have completed. May sleep.
 * @gone: completed after @stopped. A watcher that can't enter the port any more waits for it
 *	instead of calling krc_pool_unwatch().
 */
struct krc_pool_watch {
	struct list_head list;
	void (*stopped)(struct krc_pool_watch *watch);
	struct completion gone;
};

/**
 * krc_pool_create() - Make the channels of a port.
 * @rail: port they send through; outlives the pool.
 * @initiators: how many are shared; those of probation, for krc_pool_read() of targets that have
 *	not answered lately, and of the isolated are made in addition.
 * @depth: requests of each.
 *
 * Context: may sleep.
 * Return: the pool or ERR_PTR.
 */
struct krc_pool *krc_pool_create(struct krc_rail *rail, u32 initiators, u32 depth);

/**
 * krc_pool_enable_messages() - Make channels of KRC_CHANNEL_MESSAGE, in addition to those there are.
 * @pool: pool.
 * @channels: how many, from 1.
 *
 * Before the first flow of that kind submits. Context: may sleep. Inside krc_rail_enter(), unless
 * the port is being made.
 * Return: 0, -EINVAL (@channels), -ENODEV (the pool is stopped), or the error of the first one that
 * could not be made; those before it stay.
 */
int krc_pool_enable_messages(struct krc_pool *pool, u32 channels);

/**
 * krc_pool_stop() - The device goes away: complete all requests with -ENODEV, refuse new ones,
 * call all watches.
 * @pool: pool.
 *
 * Context: may sleep. May be called twice.
 */
void krc_pool_stop(struct krc_pool *pool);

/**
 * krc_pool_destroy() - Free a pool.
 * @pool: pool, stopped; no flow uses it any more and no READ is outstanding.
 *
 * Context: may sleep.
 */
void krc_pool_destroy(struct krc_pool *pool);

/**
 * krc_pool_watch() - Register a callback for the stop of the pool.
 * @pool: pool.
 * @watch: with stopped set.
 *
 * Context: may sleep. Inside krc_rail_enter().
 * Return: 0, or -ENODEV: the pool is stopped already.
 */
int krc_pool_watch(struct krc_pool *pool, struct krc_pool_watch *watch);

/**
 * krc_pool_unwatch() - Undo krc_pool_watch().
 * @pool: pool.
 * @watch: as given there; it has been called, or never will be.
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
 * It is its own payer. Context: any.
 */
void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool,
		   void (*done)(struct krc_flow *flow, struct list_head *reqs, u32 nr),
		   int (*check)(struct krc_req *req));

/**
 * krc_reqs_open() - Begin to append requests to a list that only the caller sees.
 * @reqs: list of krc_req.list; to be used again after krc_reqs_close() only.
 *
 * These three are list_add_tail() without the call that CONFIG_DEBUG_LIST makes of each, which costs
 * as much as the rest of a request's way into its queue. Context: any.
 * Return: what krc_reqs_add() asks for first: the last request, or what stands for it.
 */
static inline struct krc_req *krc_reqs_open(struct list_head *reqs)
{
	return list_last_entry(reqs, struct krc_req, list);
}

/**
 * krc_reqs_add() - Append a request.
 * @last: the request before it: what the last of these functions returned.
 * @req: request, which is in no list.
 *
 * Context: any.
 * Return: @req.
 */
static inline struct krc_req *krc_reqs_add(struct krc_req *last, struct krc_req *req)
{
	last->list.next = &req->list;
	req->list.prev = &last->list;
	return req;
}

/**
 * krc_reqs_close() - The list is whole again.
 * @reqs: as in krc_reqs_open().
 * @last: the last request.
 *
 * Context: any.
 */
static inline void krc_reqs_close(struct list_head *reqs, struct krc_req *last)
{
	last->list.next = reqs;
	reqs->prev = &last->list;
}

/**
 * krc_flow_submit() - Submit requests, in order.
 * @flow: flow.
 * @reqs: list of krc_req.list with flow and wr set; emptied.
 * @ret_index: out: index of the channel, if they were taken; may be NULL.
 *
 * Rings the doorbell if the hardware has capacity, then polls once for completions of any
 * flow: it must not be called with a lock held that some done() takes.
 * Context: any in which bottom halves may be switched off. Inside krc_rail_enter().
 * Return: 0, -ENODEV (pool stopped), -EIO (no channel works), -ENOTCONN (flow failed);
 * then nothing was taken.
 */
int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs, u32 *ret_index);

/**
 * krc_req_renew() - Set what is the pool's of a request, as it is before the request is submitted.
 * @req: request that its owner has.
 * @flow: flow it is for.
 *
 * krc_flow_submit() does it; who fills requests in anyhow does it there, and saves a walk over them.
 * Context: any.
 */
static inline void krc_req_renew(struct krc_req *req, struct krc_flow *flow)
{
	req->flow = flow;
	req->status = 0;
	req->fault = KRC_FAULT_NONE;
	req->state = KRC_REQ_WAITING;
	req->fenced = false;
	req->begun = false;
	req->expired = 0;
	req->touched = false;
	req->slots = 0;
	req->next = 0;
	req->done = 0;
}

/**
 * krc_flow_submit_many() - krc_flow_submit() of requests that are renewed and counted.
 * @flow: flow.
 * @reqs: list of krc_req.list, after krc_req_renew() of each for @flow.
 * @count: how many, from 1.
 * @ret_index: as there.
 *
 * Context: as krc_flow_submit().
 * Return: as krc_flow_submit().
 */
int krc_flow_submit_many(struct krc_flow *flow, struct list_head *reqs, u32 count, u32 *ret_index);

/**
 * krc_flow_cancel() - Complete queued requests with -ECANCELED, accept nothing more.
 * @flow: flow.
 *
 * Posted requests complete on their own, and first. Same rules as krc_flow_submit(). Inside
 * krc_rail_enter(); outside there is nothing to cancel, since krc_pool_stop() does it.
 */
void krc_flow_cancel(struct krc_flow *flow);

/**
 * krc_flow_resume() - Let a flow go on that check() held with -EAGAIN.
 * @flow: flow.
 *
 * Same rules as krc_flow_submit(). Inside krc_rail_enter().
 */
void krc_flow_resume(struct krc_flow *flow);

/**
 * krc_flow_index() - Which channel a flow is on.
 * @flow: flow to which something was submitted.
 *
 * Return: index for krc_pool_poll(); a hint, since the flow may move.
 */
u32 krc_flow_index(const struct krc_flow *flow);

/**
 * krc_pool_poll_begin() - The caller busy-polls a channel from now on: meanwhile its CQ is
 * not armed, unless the kernel is preemptible.
 * @pool: pool.
 * @index: channel; if it has been removed, another is polled.
 *
 * Context: task that does not sleep until it has called krc_pool_poll_end(). Inside
 * krc_rail_enter() for all of that.
 * Return: index of the channel, which is not removed before krc_pool_poll_end().
 */
u32 krc_pool_poll_begin(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_end() - The caller stops busy-polling.
 * @pool: pool.
 * @index: channel.
 * @back: the caller does not block now, and may poll again soon: arming is deferred by
 *	krc_spin_linger_ns(), with a timer in place of the interrupt.
 *
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll_end(struct krc_pool *pool, u32 index, bool back);

/**
 * krc_pool_poll() - Do what an interrupt of a channel would do.
 * @pool: pool.
 * @index: channel.
 *
 * For busy-polling callers. Does nothing if another CPU holds the channel's lock, or there is no
 * such channel.
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_nearby() - krc_pool_poll() of a channel, and of those that this CPU submits
 * to and no other task polls or dispatches.
 * @pool: pool.
 * @index: channel.
 *
 * Also defers the arming of those others, as krc_pool_poll_end() with @back does.
 * Context: as krc_pool_poll().
 */
void krc_pool_poll_nearby(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_until() - krc_pool_poll_nearby() by a task that counts as a poller, and
 * krc_pool_poll_end() with @back as soon as it has what it wants.
 * @pool: pool.
 * @index: channel.
 * @told: what some done() counts up, with release.
 * @until: the caller wants it to get so far.
 *
 * Saves what krc_pool_poll_end() by itself takes: to lock the channel once more.
 * Context: as krc_pool_poll_end().
 * Return: true: it is so far, and the caller polls no more.
 */
bool krc_pool_poll_until(struct krc_pool *pool, u32 index, const u64 *told, u64 until);

/**
 * krc_flow_drain() - Wait until nothing is outstanding.
 * @flow: flow.
 *
 * Touches nothing but the flow: may be called outside krc_rail_enter(). Ends soon after
 * krc_pool_stop(). Afterwards the flow may be released. Context: may sleep.
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

/**
 * krc_flow_release() - The flow is not used any more.
 * @flow: flow, drained; or zeroed, or released before.
 *
 * Context: any. May be called outside krc_rail_enter(), and when there is no pool any more.
 */
void krc_flow_release(struct krc_flow *flow);

#define KRC_READ_WAITS U32_MAX /* in place of the index of a channel: the READ waits for a slot */

/**
 * struct krc_read - A READ for the module itself; embedded by its owner.
 * @standing: the target; the owner holds a reference until done().
 * @payer: key of the share that its slot is charged to: each payer has a bounded number of
 *	slots. Only compared, never followed. krc_pool_read_also() may change it.
 * @remote_addr: address at the target.
 * @rkey: remote key.
 * @bytes: length, 1 to 256.
 * @done: called once, with bottom halves off and no lock of the pool held, perhaps before
 *	krc_pool_read() returns. err: 0, or why there are no @bytes: -EREMOTEIO (refused),
 *	-ETIMEDOUT (unresponsive, or known to be so), -EIO (no channel works), -ENODEV (the
 *	pool is stopped), -ENOMEM. Afterwards the READ is its owner's again, unless it returns
 *	true after an err of 0: then the READ is repeated, as soon as possible.
 * @start: out: jiffies when it was posted last, so no later than the state that @bytes show.
 * @list: entry of the list it waits in; the pool's.
 * @share: payer's share it waits in; the pool's.
 * @place: its number among those that have waited in @share; the pool's.
 * @slot: READ slot it is in flight in; the pool's.
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
	u32 place;
	struct krc_read_slot *slot;
	bool queued;
	int err;
};

/**
 * krc_pool_read() - Start a READ for the module itself, without waiting.
 * @pool: pool.
 * @read: with the owner's fields set.
 * @ret_index: out: index of the channel for krc_pool_poll(), or KRC_READ_WAITS.
 *
 * A target that has not answered lately is sent one READ at a time, on a channel set apart;
 * its other READs wait for that one, and fail with it. No READ fails for lack of a slot.
 * Context: any but hard interrupts, no lock held that done() takes. Inside krc_rail_enter().
 * Return: 0: done() will be called, or has been. Else it is not called: -ETIMEDOUT (the target
 * did not answer, and it is too early to try again), -ENODEV, -ENOMEM, -EINVAL (@bytes).
 */
int krc_pool_read(struct krc_pool *pool, struct krc_read *read, u32 *ret_index);

/**
 * krc_pool_read_also() - Somebody else wants a READ, too.
 * @pool: pool.
 * @read: krc_pool_read() is about to take it or took it; done() has not freed it.
 * @payer: as krc_read.payer, of the one that wants it now.
 *
 * A READ that has not begun is charged to @payer from now on, if it comes to its turn sooner so: a
 * payer does not wait for what another one has to wait for. Calls no done().
 * Context: any but hard interrupts. Inside krc_rail_enter().
 */
void krc_pool_read_also(struct krc_pool *pool, struct krc_read *read, const void *payer);

/**
 * krc_pool_unread() - Withdraw a READ that is no longer wanted.
 * @pool: pool.
 * @read: krc_pool_read() took it; done() has not freed it.
 *
 * Context: any but hard interrupts. Inside krc_rail_enter().
 * Return: true: the READ had not begun, done() is not called. False: done() will be or has been.
 */
bool krc_pool_unread(struct krc_pool *pool, struct krc_read *read);

/**
 * struct krc_pool_stats - Counters since creation.
 * @initiators: shared channels.
 * @depth: segments that each holds at once.
 * @posted: segments posted to the hardware, replays included.
 * @completed: requests completed to flows.
 * @faults: requests that failed by themselves.
 * @recoveries: channels reset.
 * @replayed: requests posted again.
 * @unknown: WRITEs and atomics completed with -EREMCHG.
 * @timeouts: of @recoveries, those because a target did not answer.
 * @refused_reads: those because a target refused a READ, after which it may have gone on.
 * @expired: those because a leased request was in the hardware for too long.
 * @busy: those because a target had no buffer for a SEND.
 * @strays: unexpected completions, of no posted segment.
 * @target_changes: segments for another target than the one before on the same channel, since it
 *	was made or reset last: what a DC initiator pays a disconnect and a connect for.
 * @isolated: times that a request stalled a channel until it was reset, and its target or its payer is
 *	isolated for that and what was before; and that one of them came to be for being slow.
 * @dead: channels that can't be reset now, including those set apart.
 * @outstanding: segments in the hardware now.
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
	u64 busy;
	u64 strays;
	u64 target_changes;
	u64 isolated;
	u64 dead;
	u64 outstanding;
};

/**
 * krc_pool_stats() - Sum up the counters of all channels, those of removed ones included.
 * @pool: pool.
 * @ret_stats: out: counters; of different moments for different channels.
 *
 * Context: any but hard interrupts. Inside krc_rail_enter().
 */
void krc_pool_stats(struct krc_pool *pool, struct krc_pool_stats *ret_stats);

/**
 * krc_pool_on_completion() - Upcall of the provider: the CQ of a send queue has completions.
 * @initiator_owner: the channel, as given to initiator_create().
 *
 * Schedules the softirq that polls it. Context: any, also hard interrupt.
 */
void krc_pool_on_completion(void *initiator_owner);

/**
 * krc_pool_on_fatal() - Upcall of the provider: a send queue is broken and flushes nothing.
 * @initiator_owner: the channel, as given to initiator_create().
 *
 * Notes it in one bit and schedules the softirq, which resets the channel; if that softirq is just
 * ending, the watchdog does, a second later at most. Context: any, also hard interrupt.
 */
void krc_pool_on_fatal(void *initiator_owner);

/**
 * krc_pool_payer() - Upcall of the provider, within post(): on whose account the request is.
 * @initiator_owner: the channel, as given to initiator_create(); its lock is held.
 *
 * Context: as post().
 * Return: krc_flow.bill of its flow, or krc_flow.payer; only to be compared.
 */
const void *krc_pool_payer(void *initiator_owner);

#endif /* KRC_POOL_H */
