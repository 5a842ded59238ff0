/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a queue with its requests and states, from creation to close.
 *
 * Locking, from the outside in: krc_queue.control (one connect at a time), krc_queue.post
 * (one poster at a time; keeps the peer), then spinlocks: those of the xarrays, krc_queue.lock
 * (state; bottom halves off), that of the ring. None of the spinlocks is held when the pool is
 * called, since krc_flow.done takes the last two.
 */
#ifndef KRC_QUEUE_H
#define KRC_QUEUE_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "mem/region.h"
#include "mem/remote.h"
#include "pool/flow.h"
#include "user/context.h"

struct krc_peer;
struct krc_queue;
struct krc_queue_info;

/* State of a queue that is being closed; not visible to programs. */
#define KRC_QUEUE_CLOSING KRP_QUEUE_STATES

/*
 * How long a poster waits for the memory directory of a peer. The hardware detects an
 * unresponsive peer much sooner, but the READ from a peer that has not answered yet may wait
 * for those from other such peers (pool/silence.h).
 */
#define KRC_REMOTE_TIMEOUT_MS 60000

/**
 * struct krc_queue_req - A request of a queue; a queue has one for each unit of its depth.
 * @req: the request as the pool sees it.
 * @mr: local region, counted while the request is outstanding.
 * @user_data: returned in the completion.
 * @token: remote region.
 * @error: errno with which krc_queue_check() fails it; 0: none.
 */
struct krc_queue_req {
	struct krc_req req;
	struct krc_mr *mr;
	u64 user_data;
	u64 token;
	int error;
};

/**
 * struct krc_queue - A queue.
 * @ref: held by its entry in krc_context.queues and by each call that uses it.
 * @ctx: its context, counted.
 * @id: number.
 * @depth: capacity in requests.
 * @charge: charge for the queue.
 * @control: serialises connects.
 * @post: serialises posters; protects @peer and @posted.
 * @lock: protects @state, @error, @afters and @nr_afters.
 * @state: KRP_QUEUE_* or KRC_QUEUE_CLOSING; changed by krc_queue_set_state() only.
 * @error: errno that put it into ERROR, else 0.
 * @afters: struct krc_after of messages that wait for its requests, oldest first.
 * @nr_afters: how many, up to KRP_SEND_AFTER_MAX.
 * @flow: its requests in the pool.
 * @peer: peer it is connected to, or NULL; unchanged while requests are outstanding, and when it
 *	is being closed.
 * @grant: of the last remote region posted for, while @forgets is that of the peer. As @peer.
 * @forgets: krc_remote_forgets() before @grant was got. As @peer.
 * @posted: requests taken; the next is at posted % depth.
 * @completed: completions; written by krc_queue_done() only, with release.
 * @told: completions written to the ring; follows @completed, same rules.
 * @failed: completions with an error; written by krc_queue_failed() only.
 * @bytes: bytes transferred.
 * @renew: work item that renews remote references that expired before they were posted.
 * @held: request that the flow is held for; written by krc_queue_check(), before the flow is held.
 * @wait: waiter of @renew for the peer's directory.
 * @answer: error of that READ, until @renew has consumed it; 0: none.
 * @closer: work item that finishes a close whose caller was killed.
 * @reqs: ring of @depth requests.
 */
struct krc_queue {
	struct kref ref;
	struct krc_context *ctx;
	u32 id;
	u32 depth;
	struct krc_charge charge;
	struct mutex control;
	struct mutex post;
	spinlock_t lock;
	u32 state;
	int error;
	struct list_head afters;
	u32 nr_afters;
	struct krc_flow flow;
	struct krc_peer *peer;
	struct krc_grant grant;
	u64 forgets;
	u64 posted;
	u64 completed;
	u64 told;
	u64 failed;
	u64 bytes;
	struct work_struct renew;
	struct krc_queue_req *held;
	struct krc_remote_wait wait;
	int answer;
	struct work_struct closer;
	struct krc_queue_req reqs[];
};

/**
 * krc_ioc_queue_create() - KRP_IOC_QUEUE_CREATE: make a queue.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; out: queue, its number.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (flags, reserved field, depth), -EBADFD (no port), -ENOMEM, -EDQUOT (limit of
 * queues), -ENOSPC (the ring has too few entries left), -ENODEV, -EBUSY (no number is free).
 */
int krc_ioc_queue_create(struct krc_context *ctx, struct krp_queue_create *arg);

/**
 * krc_ioc_connect() - KRP_IOC_CONNECT: connect a queue to the service of a peer, with
 * KRP_CONNECT_CREATE a new one.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; out: queue, generation, reads.
 *
 * One connect of a queue at a time. An error of the look-up or of krc_peer_get() puts the queue
 * into ERROR; a new queue is closed again.
 * Context: may sleep.
 * Return: 0, -EINVAL, -ENOENT (no such queue, or no such record), -EISCONN, -ENODEV, -ECANCELED
 * (closed meanwhile), -EINTR or -ERESTARTSYS, an error of krc_lookup() or krc_peer_get(), or with
 * KRP_CONNECT_CREATE one of krc_ioc_queue_create().
 */
int krc_ioc_connect(struct krc_context *ctx, struct krp_connect *arg);

/**
 * krc_ioc_queue_query() - KRP_IOC_QUEUE_QUERY: tell state and counts of a queue.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Waits for a poster. Context: may sleep.
 * Return: 0, -EINVAL (reserved field), -ENOENT (no such queue, or it is being closed).
 */
int krc_ioc_queue_query(struct krc_context *ctx, struct krp_queue_query *arg);

/**
 * krc_ioc_queue_close() - KRP_IOC_QUEUE_CLOSE: close a queue.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Queued requests complete with -ECANCELED; waits for those in the hardware, unless the caller is
 * killed: then a work item does.
 * Context: may sleep.
 * Return: 0, -EINVAL (reserved field), -ENOENT (no such queue).
 */
int krc_ioc_queue_close(struct krc_context *ctx, struct krp_queue_close *arg);

/**
 * krc_queue_set_state() - Change the state of a queue.
 * @queue: queue.
 * @state: new state.
 * @error: errno kept with state ERROR, else ignored.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: true if the current state allowed the change and it was made.
 */
bool krc_queue_set_state(struct krc_queue *queue, u32 state, int error);

/**
 * krc_queue_get() - Look up a queue by number.
 * @ctx: context.
 * @id: number.
 *
 * Context: not in interrupts.
 * Return: the queue, counted, for krc_queue_put(); NULL: there is none.
 */
struct krc_queue *krc_queue_get(struct krc_context *ctx, u32 id);

/**
 * krc_queue_put() - Drop a reference; the last one frees the queue.
 * @queue: queue.
 *
 * Context: may sleep.
 */
void krc_queue_put(struct krc_queue *queue);

/**
 * krc_queue_close_all() - Close all queues of a context, and wait for their requests.
 * @ctx: context that no other thread uses.
 *
 * Context: may sleep, as long as the hardware needs.
 */
void krc_queue_close_all(struct krc_context *ctx);

/**
 * krc_queue_fail_all() - Put all queues of a context into ERROR.
 * @ctx: context.
 * @error: negative errno; kept by queues that are in ERROR already.
 *
 * Context: not in interrupts.
 */
void krc_queue_fail_all(struct krc_context *ctx, int error);

/**
 * krc_queue_describe() - Copy the state of a queue, for diagnostics.
 * @queue: queue, which the caller keeps from being freed.
 * @ret_info: out: all of it; the counts are read one after the other, without a lock.
 *
 * Context: not in interrupts.
 */
void krc_queue_describe(struct krc_queue *queue, struct krc_queue_info *ret_info);

/**
 * krc_queue_completed() - Count completed requests.
 * @queue: queue.
 *
 * Context: any; no lock needed.
 * Return: the count; all that those requests wrote is visible with it.
 */
static inline u64 krc_queue_completed(const struct krc_queue *queue)
{
	/* Pairs with krc_queue_done(). */
	return smp_load_acquire(&queue->completed);
}

#endif /* KRC_QUEUE_H */
