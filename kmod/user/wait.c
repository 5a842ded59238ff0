// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: waiting for completions: awake at first, polling the initiators that they are to
 * come from, then asleep.
 *
 * Which initiator that is, is known while posting, and else a hint, that which the
 * context posted to last, for which no interrupt is asked, and in any case those beside it,
 * to which a burst is spread: what completes on another one comes by its interrupt, as it
 * does for a program that sleeps in poll(2).
 * Locking: none of its own.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "base/spin.h"
#include "node/port.h"
#include "user/queue.h"
#include "user/wait.h"

static bool krc_wait_posted_poll(void *arg)
{
	const struct krc_posted *posted = arg;

	krc_pool_poll_nearby(posted->queue->ctx->port->pool, posted->index);
	/* Pairs with krc_queue_done(). */
	return smp_load_acquire(&posted->queue->told) >= posted->until;
}

void krc_wait_posted(struct krc_posted *posted)
{
	bool found = krc_spin(krc_wait_posted_poll, posted);

	krc_pool_poll_end(posted->queue->ctx->port->pool, posted->index, found);
}

/* The device is gone, or there is something to take. */
static bool krc_wait_over(struct krc_context *ctx)
{
	return krc_ring_pending(&ctx->ring) || READ_ONCE(ctx->dead);
}

/* Who waits, and the initiator he polls. */
struct krc_waiter {
	struct krc_context *ctx;
	u32 index;
};

static bool krc_wait_poll(void *arg)
{
	const struct krc_waiter *waiter = arg;

	krc_pool_poll_nearby(waiter->ctx->port->pool, waiter->index);
	return krc_wait_over(waiter->ctx);
}

static void krc_wait_polling(struct krc_context *ctx, bool once)
{
	struct krc_waiter waiter = { .ctx = ctx, .index = READ_ONCE(ctx->posted_to) };
	bool found;

	if (krc_wait_over(ctx) || !krc_port_enter(ctx->port))
		return;
	if (once) {
		krc_wait_poll(&waiter);
	} else {
		krc_pool_poll_begin(ctx->port->pool, waiter.index);
		found = krc_wait_poll(&waiter) || krc_spin(krc_wait_poll, &waiter);
		krc_pool_poll_end(ctx->port->pool, waiter.index, found);
	}
	krc_port_exit(ctx->port);
}

static int krc_wait_blocked(struct krc_context *ctx, u32 timeout_ms)
{
	long timeout = timeout_ms == KRP_WAIT_FOREVER ? MAX_SCHEDULE_TIMEOUT
						      : msecs_to_jiffies(timeout_ms);
	long left = wait_event_interruptible_timeout(ctx->wait, krc_wait_over(ctx), timeout);

	if (krc_ring_pending(&ctx->ring))
		return 0;
	if (left < 0)
		return -EINTR; /* like poll(2): not begun again with the whole time */
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	return left ? 0 : -ETIMEDOUT; /* 0: there was one, another thread has it */
}

int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg)
{
	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->flags)
		return -EINVAL;
	krc_wait_polling(ctx, !arg->timeout_ms);
	return krc_wait_blocked(ctx, arg->timeout_ms);
}
