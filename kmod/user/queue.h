/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a queue and its requests, its states, its way from creation to close.
 *
 * Locking, from the outside in: krc_queue.control (one connect at a time), krc_queue.post
 * (one poster at a time; holds the peer), then spinlocks: xarrays' own, krc_queue.lock
 * (state; bottom halves off), the ring's. None of the spinlocks is held when the pool is
 * called, since done() takes the last two.
 */
#ifndef KRC_QUEUE_H
#define KRC_QUEUE_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "mem/region.h"
#include "mem/remote.h"
#include "user/context.h"

struct krc_peer;
struct krc_queue;
struct krc_queue_info;

/* A queue that is being closed; programs never see it. */
#define KRC_QUEUE_CLOSING KRP_QUEUE_STATES

/*
 * How long a poster waits for the memory directory of a peer. That the peer is silent is found
 * out by the hardware, much sooner; but a peer that has not proved itself may have to wait for
 * its turn to be asked.
 */
#define KRC_REMOTE_TIMEOUT_MS 60000

/**
 * struct krc_queue_req - A request of a queue; queues have as many as they are deep.
 * @req: the pool's.
 * @queue: whose.
 * @mr: local region, counted.
 * @user_data: for the completion.
 * @token: remote region.
 * @access: what it must allow.
 * @error: why it can't be posted any more.
 */
struct krc_queue_req {
	struct krc_req req;
	struct krc_queue *queue;
	struct krc_mr *mr;
	u64 user_data;
	u64 token;
	u32 access;
	int error;
};

/**
 * struct krc_queue - A queue.
 * @ref: its number, and who uses it just now.
 * @ctx: its context, counted.
 * @id: number.
 * @depth: most requests.
 * @charge: for it.
 * @control: one connect at a time.
 * @post: one poster at a time; protects @peer and @posted.
 * @lock: protects @state and @error.
 * @state: KRP_QUEUE_* or KRC_QUEUE_CLOSING; krc_queue_set_state() owns it.
 * @error: why it is in ERROR.
 * @flow: its requests.
 * @peer: whom it is connected to; stays while requests are outstanding.
 * @posted: requests taken; the next is at posted % depth.
 * @completed: completions; written by done() only, with release.
 * @told: those that are in the ring; as @completed, and a little behind it.
 * @failed: those with an error.
 * @bytes: transferred.
 * @renew: work item that checks remote references again that got old while waiting.
 * @held: the request that the flow is held for; written while it is not held, or by @renew.
 * @wait: of @renew, for the peer's directory.
 * @answer: what came of that, if it failed; until @renew has seen it.
 * @closer: work item that ends a close whose caller was killed.
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
	struct krc_flow flow;
	struct krc_peer *peer;
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

/* The ioctls of queues. Context: may sleep. Return: 0 or what krp_ioctl.h says. */
int krc_ioc_queue_create(struct krc_context *ctx, struct krp_queue_create *arg);
int krc_ioc_connect(struct krc_context *ctx, struct krp_connect *arg);
int krc_ioc_queue_query(struct krc_context *ctx, struct krp_queue_query *arg);
int krc_ioc_queue_close(struct krc_context *ctx, struct krp_queue_close *arg);

/**
 * krc_queue_set_state() - Change the state of a queue.
 * @queue: queue.
 * @state: new state.
 * @error: why, if it is ERROR.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: whether the change is allowed from the present state.
 */
bool krc_queue_set_state(struct krc_queue *queue, u32 state, int error);

/* The queue a number names, counted, or NULL. Context: not in interrupts. */
struct krc_queue *krc_queue_get(struct krc_context *ctx, u32 id);
void krc_queue_put(struct krc_queue *queue);

/* Close all queues of a context. Context: may sleep. */
void krc_queue_close_all(struct krc_context *ctx);

/* The port is gone: all queues of a context are in ERROR. Context: may sleep. */
void krc_queue_fail_all(struct krc_context *ctx, int error);

/* For people: one queue. Context: not in interrupts. */
void krc_queue_describe(struct krc_queue *queue, struct krc_queue_info *ret_info);

/* Completions of a queue; what they left behind is seen with it. */
static inline u64 krc_queue_completed(const struct krc_queue *queue)
{
	/* Pairs with krc_queue_done(). */
	return smp_load_acquire(&queue->completed);
}

#endif /* KRC_QUEUE_H */
