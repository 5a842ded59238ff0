/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: waiting for completions: busy-polling, then blocking.
 */
#ifndef KRC_WAIT_H
#define KRC_WAIT_H

#include <linux/wait.h>

#include "krp_ioctl.h"
#include "user/queue.h"

/**
 * struct krc_posted - Requests posted with KRP_POST_WAIT.
 * @queue: queue they were posted to.
 * @index: channel; the submit counted as krc_pool_poll_begin() for it (krc_flow.polled).
 * @until: value of krc_queue.told once all of them are in the ring.
 */
struct krc_posted {
	struct krc_queue *queue;
	u32 index;
	u64 until;
};

/**
 * krc_posted_told() - Whether the completions of posted requests are in the ring.
 * @posted: what was posted.
 *
 * Context: any.
 * Return: true if all of them are.
 */
static inline bool krc_posted_told(const struct krc_posted *posted)
{
	/* Pairs with krc_queue_done(). */
	return smp_load_acquire(&posted->queue->told) >= posted->until;
}

/**
 * krc_wait_posted() - Busy-poll for the completions of posted requests, at most as long as
 * krc_spin() allows.
 * @posted: what was posted; ends its count as a poller.
 *
 * Context: task; inside krc_port_enter().
 */
void krc_wait_posted(struct krc_posted *posted);

/**
 * krc_wait_init() - Make the queue of sleepers of a context.
 * @ctx: new context.
 *
 * Context: any.
 */
void krc_wait_init(struct krc_context *ctx);

/**
 * krc_wait_end() - Nothing wakes the sleepers of a context any more when this returns.
 * @ctx: context whose queues are closed.
 *
 * Context: may sleep.
 */
void krc_wait_end(struct krc_context *ctx);

/**
 * krc_wait_wake_sleepers() - krc_wait_wake() where somebody sleeps.
 * @ctx: context.
 *
 * Context: any but hard interrupts.
 */
void krc_wait_wake_sleepers(struct krc_context *ctx);

/**
 * krc_wait_wake() - Completions are in the ring: wake those who wait for them.
 * @ctx: context.
 *
 * Takes a bounded time, however many sleep. With a full barrier first. Context: any but hard
 * interrupts.
 */
static inline void krc_wait_wake(struct krc_context *ctx)
{
	if (wq_has_sleeper(&ctx->wait))
		krc_wait_wake_sleepers(ctx);
}

/**
 * krc_wait_room() - Whether one more may sleep.
 * @wait: krc_context.wait or krc_context.changed.
 *
 * Context: may sleep.
 * Return: false if KRP_SLEEPERS_MAX do already.
 */
bool krc_wait_room(wait_queue_head_t *wait);

/**
 * krc_ioc_wait() - KRP_IOC_WAIT: wait until the program has completions to consume.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; timeout_ms 0 polls once, KRP_WAIT_FOREVER waits without limit.
 *
 * Context: may sleep.
 * Return: 0 (or another thread was faster), -EBADFD (no port), -EINVAL (flags), -ETIMEDOUT, -EINTR,
 * -ENODEV (the port is gone and the ring is empty), -EBUSY (KRP_SLEEPERS_MAX sleep already).
 */
int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg);

#endif /* KRC_WAIT_H */
