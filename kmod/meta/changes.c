// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the log of changed records; see meta/changes.h.
 */
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "krp_msg.h"
#include "meta/changes.h"

#define KRC_CHANGES_WAKE_MS 5

static void krc_changes_waker(struct work_struct *work);

/**
 * struct krc_changes - The log.
 * @lock: guards all of it, and all struct krc_follower.
 * @followers: number of followers.
 * @next: number of the next change, from 1.
 * @taken: number up to which the most advanced follower has read.
 * @log: the last changes, by number modulo its length.
 */
static struct krc_changes {
	spinlock_t lock;
	u32 followers;
	u64 next;
	u64 taken;
	struct krp_event log[KRP_EVENTS_MAX];
} krc_changes = {
	.lock = __SPIN_LOCK_UNLOCKED(krc_changes.lock),
	.next = 1,
	.taken = 1,
};

DECLARE_WAIT_QUEUE_HEAD(krc_changes_wait);
static DECLARE_DELAYED_WORK(krc_changes_work, krc_changes_waker);

static void krc_changes_waker(struct work_struct *work)
{
	krc_changes_wake();
}

void krc_changes_wake(void)
{
	wake_up_interruptible_poll(&krc_changes_wait, EPOLLPRI | EPOLLERR);
}

/* Whether the last change logged of this record is the same, and no follower has read it. */
static bool krc_changes_known(const struct krp_event *event)
{
	u64 oldest = krc_changes.taken, at = krc_changes.next;
	const struct krp_event *seen;

	lockdep_assert_held(&krc_changes.lock);
	if (at - oldest > KRP_EVENTS_MAX)
		oldest = at - KRP_EVENTS_MAX;
	while (at-- > oldest) {
		seen = &krc_changes.log[at % KRP_EVENTS_MAX];
		if (!memcmp(seen, event, sizeof(*event)))
			return true;
		if (seen->service == event->service &&
		    !memcmp(seen->gid, event->gid, sizeof(event->gid)))
			return false;
	}
	return false;
}

void krc_changes_add(u8 type, const struct krp_key *key, u64 generation)
{
	struct krp_event event = { .type = type, .generation = generation };
	bool fresh;

	if (key) {
		memcpy(event.gid, key->gid, sizeof(event.gid));
		event.service = le16_to_cpu(key->service);
	}
	spin_lock_bh(&krc_changes.lock);
	fresh = krc_changes.followers && !krc_changes_known(&event);
	if (fresh)
		krc_changes.log[krc_changes.next++ % KRP_EVENTS_MAX] = event;
	spin_unlock_bh(&krc_changes.lock);
	if (fresh)
		schedule_delayed_work(&krc_changes_work, msecs_to_jiffies(KRC_CHANGES_WAKE_MS));
}

void krc_changes_follow(struct krc_follower *follower)
{
	spin_lock_bh(&krc_changes.lock);
	follower->on = true;
	follower->lost = true;
	follower->at = krc_changes.next;
	krc_changes.followers++;
	spin_unlock_bh(&krc_changes.lock);
}

void krc_changes_leave(struct krc_follower *follower)
{
	spin_lock_bh(&krc_changes.lock);
	follower->on = false;
	krc_changes.followers--;
	spin_unlock_bh(&krc_changes.lock);
}

u32 krc_changes_take(struct krc_follower *follower, struct krp_event *ret_events, u32 max)
{
	u32 nr = 0;

	spin_lock_bh(&krc_changes.lock);
	if (krc_changes.next - follower->at > KRP_EVENTS_MAX)
		follower->lost = true;
	if (follower->lost) {
		follower->lost = false;
		follower->at = krc_changes.next; /* RESYNC covers all changes so far */
		ret_events[nr++] = (struct krp_event){ .type = KRP_EVENT_RESYNC };
	}
	while (nr < max && follower->at != krc_changes.next)
		ret_events[nr++] = krc_changes.log[follower->at++ % KRP_EVENTS_MAX];
	krc_changes.taken = max(krc_changes.taken, follower->at);
	spin_unlock_bh(&krc_changes.lock);
	return nr;
}

bool krc_changes_pending(const struct krc_follower *follower)
{
	bool pending;

	spin_lock_bh(&krc_changes.lock);
	pending = follower->on && (follower->lost || follower->at != krc_changes.next);
	spin_unlock_bh(&krc_changes.lock);
	return pending;
}

void krc_changes_exit(void)
{
	WARN_ON(krc_changes.followers);
	cancel_delayed_work_sync(&krc_changes_work);
}
