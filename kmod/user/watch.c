// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: contexts that watch records; see user/watch.h.
 *
 * Any user may have thousands of contexts that watch. Were all their tasks in the log's wait queue,
 * each change would wake them with interrupts off. So the log wakes the module alone, and a
 * work item passes that on to one context after the other.
 * Locking: krc_context.lock for the position in the log; not held while waiting for a change.
 */
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "meta/changes.h"
#include "user/context.h"
#include "user/wait.h"
#include "user/watch.h"

#define KRC_WATCH_AT_ONCE 16 /* events on the stack */

static void krc_watch_pass_on(struct work_struct *work)
{
	krc_contexts_changed();
}

static DECLARE_WORK(krc_watch_work, krc_watch_pass_on);

/* Called when the log wakes its wait queue. */
static int krc_watch_heard(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	queue_work(system_unbound_wq, &krc_watch_work);
	return 0; /* nobody was woken yet */
}

static struct wait_queue_entry krc_watch_entry;

void krc_watch_init(void)
{
	init_waitqueue_func_entry(&krc_watch_entry, krc_watch_heard);
	add_wait_queue(&krc_changes_wait, &krc_watch_entry);
}

void krc_watch_exit(void)
{
	remove_wait_queue(&krc_changes_wait, &krc_watch_entry);
	cancel_work_sync(&krc_watch_work);
}

int krc_ioc_watch(struct krc_context *ctx, struct krp_record_watch *arg)
{
	bool on = !(arg->flags & KRP_WATCH_OFF);
	int err = 0;

	if (arg->flags & ~KRP_WATCH_OFF || arg->rsvd)
		return -EINVAL;
	if (!krc_context_port(ctx))
		return -EBADFD;
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	if (ctx->follower.on == on) {
		err = -EALREADY;
	} else if (on) {
		krc_changes_follow(&ctx->follower);
		krc_context_follows(ctx, true);
	} else {
		krc_context_follows(ctx, false);
		krc_changes_leave(&ctx->follower);
		krc_context_changed(ctx); /* end the wait of another thread's read */
	}
	mutex_unlock(&ctx->lock);
	return err;
}

void krc_watch_end(struct krc_context *ctx)
{
	if (!ctx->follower.on)
		return;
	krc_context_follows(ctx, false);
	krc_changes_leave(&ctx->follower);
}

/* Read without waiting. Return: bytes; 0: no change is pending; or an errno. */
static ssize_t krc_watch_read_now(struct krc_context *ctx, char __user *buf, size_t bytes)
{
	u32 most = min_t(size_t, bytes / sizeof(struct krp_event), KRC_WATCH_AT_ONCE);
	struct krp_event events[KRC_WATCH_AT_ONCE];
	struct krc_follower before;
	ssize_t ret = -EBADFD;

	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	if (!ctx->follower.on)
		goto out;
	before = ctx->follower;
	ret = krc_changes_take(&ctx->follower, events, most) * sizeof(events[0]);
	if (ret && copy_to_user(buf, events, ret)) {
		ctx->follower = before; /* the program did not get the events */
		ret = -EFAULT;
	}
out:
	mutex_unlock(&ctx->lock);
	return ret;
}

/* True if a read need not wait: a change is pending, or none can come any more. */
static bool krc_watch_over(struct krc_context *ctx)
{
	return krc_changes_pending(&ctx->follower) || READ_ONCE(ctx->dead) ||
	       !READ_ONCE(ctx->follower.on);
}

ssize_t krc_watch_read(struct krc_context *ctx, char __user *buf, size_t bytes, bool nonblock)
{
	ssize_t ret;

	if (!krc_context_port(ctx))
		return -EBADFD;
	if (bytes < sizeof(struct krp_event))
		return -EINVAL;
	for (;;) {
		ret = krc_watch_read_now(ctx, buf, bytes);
		if (ret)
			return ret;
		if (READ_ONCE(ctx->dead))
			return -ENODEV;
		if (nonblock)
			return -EAGAIN;
		if (!krc_wait_room(&ctx->changed))
			return -EBUSY;
		if (wait_event_interruptible(ctx->changed, krc_watch_over(ctx)))
			return -ERESTARTSYS;
	}
}

__poll_t krc_watch_poll(struct krc_context *ctx, struct file *file, poll_table *table)
{
	if (!READ_ONCE(ctx->follower.on))
		return 0;
	poll_wait(file, &ctx->changed, table);
	return krc_changes_pending(&ctx->follower) ? EPOLLPRI : 0;
}
