// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: waiting for completions: the caller first busy-polls the channels from which they
 * should come, then blocks.
 *
 * A poster knows its channel; KRP_IOC_WAIT uses a hint, the one that the context last posted
 * to. Its interrupt is not armed meanwhile, unless the kernel is preemptible. The channels
 * that this CPU submits to, over which a burst is spread, are polled as well. Completions on
 * others arrive by interrupt, as for a program that blocks in poll(2).
 *
 * Completions are told with bottom halves off, while those of other programs on the same channel
 * wait. So the sleepers of a context are woken there if they are few; if a program has many, a
 * work item wakes them. How many there may be is bounded, too, because the kernel wakes a queue
 * of sleepers in one piece (since 6.7 with interrupts off).
 * Locking: none of its own; that of krc_context.wait.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "base/spin.h"
#include "node/port.h"
#include "user/mailbox.h"
#include "user/queue.h"
#include "user/wait.h"

#define KRC_WAKE_AT_ONCE 8 /* sleepers that are woken where a completion is told */

/* Count the sleepers of a queue, up to @most. */
static u32 krc_wait_sleepers(const wait_queue_head_t *wait, u32 most)
{
	const wait_queue_entry_t *at;
	u32 n = 0;

	lockdep_assert_held(&wait->lock);
	list_for_each_entry(at, &wait->head, entry)
		if (++n == most)
			break;
	return n;
}

bool krc_wait_room(wait_queue_head_t *wait)
{
	bool room;

	spin_lock_irq(&wait->lock);
	room = krc_wait_sleepers(wait, KRP_SLEEPERS_MAX) < KRP_SLEEPERS_MAX;
	spin_unlock_irq(&wait->lock);
	return room;
}

static void krc_wait_wake_all(struct work_struct *work)
{
	struct krc_context *ctx = container_of(work, struct krc_context, wake);

	wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}

void krc_wait_init(struct krc_context *ctx)
{
	init_waitqueue_head(&ctx->wait);
	INIT_WORK(&ctx->wake, krc_wait_wake_all);
}

void krc_wait_end(struct krc_context *ctx)
{
	cancel_work_sync(&ctx->wake);
}

void krc_wait_wake_sleepers(struct krc_context *ctx)
{
	unsigned long flags;
	bool few;

	spin_lock_irqsave(&ctx->wait.lock, flags);
	few = krc_wait_sleepers(&ctx->wait, KRC_WAKE_AT_ONCE + 1) <= KRC_WAKE_AT_ONCE;
	if (few)
		wake_up_locked_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
	spin_unlock_irqrestore(&ctx->wait.lock, flags);
	if (!few)
		queue_work(system_unbound_wq, &ctx->wake);
}

static bool krc_wait_posted_poll(void *arg)
{
	const struct krc_posted *posted = arg;

	return krc_pool_poll_until(posted->queue->ctx->port->pool, posted->index,
				   &posted->queue->told, posted->until);
}

void krc_wait_posted(struct krc_posted *posted)
{
	if (!krc_spin(krc_wait_posted_poll, posted)) /* else that was the end of its polling */
		krc_pool_poll_end(posted->queue->ctx->port->pool, posted->index,
				  krc_posted_told(posted));
}

/* Argument of krc_wait_poll(): the waiting context, the channel to poll, and KRP_WAIT_*. */
struct krc_waiter {
	struct krc_context *ctx;
	u32 index;
	u32 flags;
};

/* What was waited for is there. */
static bool krc_wait_there(const struct krc_waiter *waiter)
{
	return krc_ring_pending(&waiter->ctx->ring) ||
	       (waiter->flags & KRP_WAIT_LETTERS &&
		krc_mailbox_pending(krc_mailbox_of(waiter->ctx)));
}

/* True if the wait is over: that, or the port is gone. */
static bool krc_wait_over(const struct krc_waiter *waiter)
{
	return krc_wait_there(waiter) || READ_ONCE(waiter->ctx->dead);
}

static bool krc_wait_poll(void *arg)
{
	const struct krc_waiter *waiter = arg;

	krc_pool_poll_nearby(waiter->ctx->port->pool, waiter->index);
	return krc_wait_over(waiter);
}

static void krc_wait_polling(struct krc_waiter *waiter, bool once)
{
	struct krc_context *ctx = waiter->ctx;
	bool found;

	waiter->index = READ_ONCE(ctx->posted_to);
	if (krc_wait_over(waiter) || !krc_port_enter(ctx->port))
		return;
	if (once) {
		krc_wait_poll(waiter);
	} else {
		waiter->index = krc_pool_poll_begin(ctx->port->pool, waiter->index);
		found = krc_wait_poll(waiter) || krc_spin(krc_wait_poll, waiter);
		krc_pool_poll_end(ctx->port->pool, waiter->index, found);
	}
	krc_port_exit(ctx->port);
}

static int krc_wait_blocked(const struct krc_waiter *waiter, u32 timeout_ms)
{
	struct krc_context *ctx = waiter->ctx;
	long timeout = timeout_ms == KRP_WAIT_FOREVER ? MAX_SCHEDULE_TIMEOUT
						      : msecs_to_jiffies(timeout_ms);
	long left;

	if (!krc_wait_over(waiter) && !krc_wait_room(&ctx->wait))
		return -EBUSY;
	left = wait_event_interruptible_timeout(ctx->wait, krc_wait_over(waiter), timeout);
	if (krc_wait_there(waiter))
		return 0;
	if (left < 0)
		return -EINTR; /* as poll(2): a restart would wait the whole timeout again */
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	return left ? 0 : -ETIMEDOUT; /* 0: another thread consumed the completion */
}

int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg)
{
	struct krc_waiter waiter = { .ctx = ctx, .flags = arg->flags };

	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->flags & ~(u32)KRP_WAIT_LETTERS)
		return -EINVAL;
	krc_wait_polling(&waiter, !arg->timeout_ms);
	return krc_wait_blocked(&waiter, arg->timeout_ms);
}
