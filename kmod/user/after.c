// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: messages that wait for the requests of a queue; see user/after.h.
 */
#include <linux/slab.h>

#include "user/after.h"
#include "user/queue.h"
#include "user/talk.h"

/* The outcome, now that what was awaited has completed. */
static int krc_after_good(const struct krc_after *after)
{
	return READ_ONCE(after->queue->failed) == after->failed ? 0 : -ECANCELED;
}

/* Put @after into the list of its queue. Return: 0, -ECANCELED, -EAGAIN. */
static int krc_after_add(struct krc_after *after, u64 posted)
{
	struct krc_queue *queue = after->queue;
	int err = 0;

	lockdep_assert_held(&queue->post);
	spin_lock_bh(&queue->lock);
	if (queue->state == KRP_QUEUE_ERROR || queue->state == KRC_QUEUE_CLOSING) {
		err = -ECANCELED;
	} else if (queue->nr_afters == KRP_SEND_AFTER_MAX) {
		err = -EAGAIN;
	} else {
		after->until = posted;
		/* what is counted has put the queue into ERROR before: see krc_queue_failed() */
		after->failed = READ_ONCE(queue->failed);
		list_add_tail(&after->list, &queue->afters);
		queue->nr_afters++;
	}
	spin_unlock_bh(&queue->lock);
	return err;
}

/* Wait for what is under way. Return: 0: as krc_after_add(); 1: nothing is; or its errors. */
static int krc_after_wait(struct krc_after *after)
{
	struct krc_queue *queue = after->queue;
	u64 posted;
	int err, outcome;

	if (mutex_lock_interruptible(&queue->post))
		return -EINTR;
	posted = queue->posted;
	err = krc_after_add(after, posted);
	mutex_unlock(&queue->post);
	if (err)
		return err;
	/* Pairs with the barrier before krc_after_told(): it sees the entry, or this the count. */
	smp_mb();
	if (krc_queue_completed(queue) < posted)
		return 0;
	outcome = krc_after_outcome(after);
	if (outcome == -EINPROGRESS)
		outcome = krc_after_good(after);
	return outcome ?: 1;
}

struct krc_after *krc_after_begin(struct krc_talk *talk, u32 id)
{
	struct krc_after *after = kzalloc(sizeof(*after), GFP_KERNEL_ACCOUNT);
	int err;

	if (!after)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&after->list);
	after->talk = talk;
	after->outcome = -EINPROGRESS;
	after->queue = krc_queue_get(talk->box->ctx, id);
	if (!after->queue) {
		kfree(after);
		return ERR_PTR(-ENOENT);
	}
	err = krc_after_wait(after);
	if (!err)
		return after;
	krc_after_end(after);
	return err < 0 ? ERR_PTR(err) : NULL;
}

/* Take @after out of the list of its queue, where it is. */
static void krc_after_remove(struct krc_after *after)
{
	lockdep_assert_held(&after->queue->lock);
	list_del_init(&after->list);
	after->queue->nr_afters--;
}

void krc_after_end(struct krc_after *after)
{
	if (!after)
		return;
	spin_lock_bh(&after->queue->lock);
	if (!list_empty(&after->list))
		krc_after_remove(after);
	spin_unlock_bh(&after->queue->lock);
	krc_queue_put(after->queue);
	kfree(after);
}

int krc_after_outcome(struct krc_after *after)
{
	int outcome;

	if (!after)
		return 0;
	spin_lock_bh(&after->queue->lock);
	outcome = after->outcome;
	spin_unlock_bh(&after->queue->lock);
	return outcome;
}

void krc_after_told(struct krc_queue *queue)
{
	u64 completed = krc_queue_completed(queue);
	struct krc_after *after, *tmp;

	spin_lock_bh(&queue->lock);
	list_for_each_entry_safe(after, tmp, &queue->afters, list) {
		if (after->until > completed)
			break;
		krc_after_remove(after);
		after->outcome = krc_after_good(after);
		krc_talk_release(after->talk);
	}
	spin_unlock_bh(&queue->lock);
}
