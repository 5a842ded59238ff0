/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: contexts and queues from the inside, shared by user/context.c, user/queue.c,
 * user/post.c, user/service.c and user/chardev.c.
 *
 * Locking, from the outside in: krc_queue.control (one connect at a time), krc_queue.post
 * (one poster at a time; holds the peer), then spinlocks: xarrays' own, krc_queue.lock
 * (state; bottom halves off), the ring's. None of the spinlocks is held when the pool is
 * called, since done() takes the last two.
 */
#ifndef KRC_QUEUE_H
#define KRC_QUEUE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "meta/changes.h"
#include "user/show.h"
#include "base/limits.h"
#include "mem/region.h"
#include "mem/remote.h"
#include "pool/pool.h"
#include "user/ring.h"

struct krc_mr;
struct krc_peer;
struct krc_port;
struct krc_queue;

/* A queue that is being closed; programs never see it. */
#define KRC_QUEUE_CLOSING KRP_QUEUE_STATES

/*
 * How long a poster waits for the memory directory of a peer. That the peer is silent is found
 * out by the hardware, much sooner; but a peer that has not proved itself may have to wait for
 * its turn to be asked.
 */
#define KRC_REMOTE_TIMEOUT_MS 60000

/**
 * struct krc_context - An open file.
 * @ref: the file, and each queue.
 * @list: in the list of all contexts.
 * @id: number, never used again.
 * @pid: who opened it.
 * @uid: its user.
 * @comm: its name.
 * @user: whom all is charged to.
 * @charge: the context itself.
 * @lock: setup.
 * @port: port, counted; NULL before setup; set once, with release.
 * @dead: the port is gone.
 * @watch: tells about that.
 * @ring: completions.
 * @posted_to: index of the initiator that was posted to last; a hint.
 * @wait: who waits for them.
 * @queues: by number.
 * @regions: by handle; struct krc_mr.
 * @follower: its place in the log of changed records, under @lock.
 * @release: work item that gives all back after the last close.
 */
struct krc_context {
	struct kref ref;
	struct list_head list;
	u64 id;
	pid_t pid;
	kuid_t uid;
	char comm[16];
	struct krc_user *user;
	struct krc_charge charge;
	struct mutex lock;
	struct krc_port *port;
	bool dead;
	struct krc_pool_watch watch;
	struct krc_ring ring;
	u32 posted_to;
	wait_queue_head_t wait;
	struct xarray queues;
	struct xarray regions;
	struct krc_follower follower;
	struct work_struct release;
};

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

/* What all contexts have done, by processor. */
struct krc_counts {
	u64 connects;
	u64 connects_cached;
	u64 connects_failed;
	u64 posts;
	u64 requests;
	u64 completions;
	u64 errors;
};

DECLARE_PER_CPU(struct krc_counts, krc_counts);
extern struct workqueue_struct *krc_context_wq; /* closed contexts and queues end here */
extern struct workqueue_struct *krc_renew_wq; /* old references are asked for anew here */

/* user/context.c */

/* A context for the calling process. Return: it, or ERR_PTR(-ENOMEM, -EDQUOT). */
struct krc_context *krc_context_open(void);

/* The file is closed. Requests under way end in the background. */
void krc_context_close(struct krc_context *ctx);
void krc_context_put(struct krc_context *ctx);

/* The ioctls, by name. Context: may sleep. Return: 0 or what krp_ioctl.h says. */
int krc_ioc_query(struct krc_context *ctx, struct krp_query *arg);
int krc_ioc_port(struct krc_context *ctx, struct krp_port_info *arg);
int krc_ioc_setup(struct krc_context *ctx, struct krp_setup *arg);
int krc_ioc_mr_reg(struct krc_context *ctx, struct krp_mr_reg *arg);
int krc_ioc_mr_dereg(struct krc_context *ctx, struct krp_mr_dereg *arg);
int krc_ioc_mr_dereg_many(struct krc_context *ctx, struct krp_mr_dereg_many *arg);

/**
 * krc_context_port() - The port of a context that was set up.
 * @ctx: context.
 *
 * Context: any.
 * Return: the port, or NULL.
 */
struct krc_port *krc_context_port(struct krc_context *ctx);

/**
 * krc_context_mr() - The region a handle names.
 * @ctx: context.
 * @handle: handle.
 *
 * Context: may not be called in interrupts.
 * Return: the region, counted, or NULL.
 */
struct krc_mr *krc_context_mr(struct krc_context *ctx, u32 handle);

/* user/queue.c */

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

/* user/post.c */

int krc_ioc_post(struct krc_context *ctx, struct krp_post *arg);
void krc_queue_done(struct krc_req *req); /* see krc_flow.done */
int krc_queue_check(struct krc_req *req); /* see krc_flow.check */

/* user/wait.c */

/**
 * struct krc_posted - What was posted with KRP_POST_WAIT.
 * @queue: where.
 * @index: initiator; krc_pool_awake() has been called for it.
 * @until: what krc_queue.told says when the ring has all of it.
 */
struct krc_posted {
	struct krc_queue *queue;
	u32 index;
	u64 until;
};

/* Wait awake for it. Context: may sleep, inside krc_port_enter(). */
void krc_wait_posted(struct krc_posted *posted);
int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg);

/* Completions of a queue; what they left behind is seen with it. */
static inline u64 krc_queue_completed(const struct krc_queue *queue)
{
	/* Pairs with krc_queue_done(). */
	return smp_load_acquire(&queue->completed);
}

/* See krc_queue.renew. To stop it, nothing may be outstanding. Context: may sleep. */
void krc_queue_renew_init(struct krc_queue *queue);
void krc_queue_renew_stop(struct krc_queue *queue);

/* user/service.c */

int krc_ioc_bind(struct krc_context *ctx, struct krp_bind *arg);
int krc_ioc_publish(struct krc_context *ctx, struct krp_record_publish *arg);

/* Withdraw all services of a context. Context: may sleep. */
void krc_bind_undo_all(struct krc_context *ctx);

#endif /* KRC_QUEUE_H */
