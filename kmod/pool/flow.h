/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: requests, the flows that they are submitted to, and what the owner of a flow does with it. See
 * pool/pool.h for what becomes of them.
 * Locking: krc_flow.lock, then krc_channel.lock, both with bottom halves off. done() is called without
 * them; at any time at most one CPU calls it for the flows of a channel.
 */
#ifndef KRC_POOL_FLOW_H
#define KRC_POOL_FLOW_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"

struct krc_channel;
struct krc_flow;
struct krc_pool;
struct krc_standing;

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
 * @list: entry of the list it is queued in; the pool's. The first field, for those who walk lists.
 * @flow: the flow it was submitted to.
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
 * @next: bytes posted to the hardware; the pool's.
 * @done: bytes completed, always a prefix of the request; the pool's.
 * @slots: its segments in the hardware; the pool's.
 * @since: jiffies when it was first posted, or when a segment of it last completed; the
 *	pool's.
 *
 * A large request is posted in segments of KRC_SEGMENT_BYTES, so that the requests of other
 * flows need not wait for all of it.
 */
struct krc_req {
	struct list_head list;
	struct krc_flow *flow;
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
	u32 next;
	u32 done;
	u32 slots;
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
 * @refused: errno for which its first waiting request is not posted: both fail when nothing of the
 *	flow is in the hardware any more; 0: none. The pool's.
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
	int refused;
	int end_status;
	void (*done)(struct krc_flow *flow, struct list_head *reqs, u32 nr);
	int (*check)(struct krc_req *req);
};

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
 * krc_flow_submit() does it; a caller that fills requests in anyhow does it there, and saves a walk
 * over them.
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
	req->next = 0;
	req->done = 0;
	req->slots = 0;
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
 * krc_flow_where() - Which channel a flow is on, or was given last, for diagnostics.
 * @flow: flow.
 * @ret_index: out: index of the channel; untouched if there is none.
 * @ret_isolated: out: it is a channel of the isolated (pool/isolation.h); likewise.
 *
 * Context: any.
 * Return: whether there is one: something was submitted, cancelled or restarted.
 */
bool krc_flow_where(const struct krc_flow *flow, u32 *ret_index, bool *ret_isolated);

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

#endif /* KRC_POOL_FLOW_H */
