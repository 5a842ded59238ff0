// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the table of targets and their transitions to proven and silent.
 * Locking: see pool/silence.h.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "pool/silence.h"

#define KRC_SILENCE_BITS 10

static DEFINE_HASHTABLE(krc_silence, KRC_SILENCE_BITS);
static LIST_HEAD(krc_silence_list); /* targets remembered without users */
static u32 krc_silence_nr;
static DEFINE_SPINLOCK(krc_silence_lock);

static u32 krc_standing_hash(const struct krc_standing_key *key)
{
	static u32 seed __read_mostly;

	get_random_once(&seed, sizeof(seed));
	return jhash(key, sizeof(*key), seed);
}

/* The target with one more user, or NULL. */
static struct krc_standing *krc_standing_find(const struct krc_standing_key *key)
{
	struct krc_standing *standing;

	lockdep_assert_held(&krc_silence_lock);
	hash_for_each_possible(krc_silence, standing, node, krc_standing_hash(key)) {
		if (memcmp(&standing->key, key, sizeof(*key)))
			continue;
		if (!standing->users++) {
			list_del_init(&standing->idle);
			krc_silence_nr--;
		}
		return standing;
	}
	return NULL;
}

static struct krc_standing *krc_standing_make(const struct krc_standing_key *key)
{
	struct krc_standing *standing = kzalloc(sizeof(*standing), GFP_KERNEL_ACCOUNT);

	if (!standing)
		return NULL;
	standing->users = 1;
	standing->key = *key;
	standing->state = KRC_STANDING_NEW;
	standing->expired = jiffies - msecs_to_jiffies(KRC_EXPIRED_MS); /* never */
	krc_stalls_init(&standing->stalls);
	spin_lock_init(&standing->lock);
	INIT_LIST_HEAD(&standing->idle);
	INIT_LIST_HEAD(&standing->waiting);
	return standing;
}

struct krc_standing *krc_standing_get(const struct krc_rail *rail,
				      const struct krc_hw_address *address, u64 mrdir_addr,
				      u32 mrdir_rkey)
{
	struct krc_standing_key key = { .rail = rail,
					.address = *address,
					.mrdir_addr = mrdir_addr,
					.mrdir_rkey = mrdir_rkey };
	struct krc_standing *standing, *made;

	spin_lock_bh(&krc_silence_lock);
	standing = krc_standing_find(&key);
	spin_unlock_bh(&krc_silence_lock);
	if (standing)
		return standing;
	made = krc_standing_make(&key);
	if (!made)
		return NULL;
	spin_lock_bh(&krc_silence_lock);
	standing = krc_standing_find(&key);
	if (!standing)
		hash_add(krc_silence, &made->node, krc_standing_hash(&key));
	spin_unlock_bh(&krc_silence_lock);
	if (!standing)
		return made;
	kfree(made); /* another task was faster */
	return standing;
}

void krc_standing_hold(struct krc_standing *standing)
{
	spin_lock_bh(&krc_silence_lock);
	standing->users++;
	spin_unlock_bh(&krc_silence_lock);
}

/* Remove a target without users from the table, and free it. */
static void krc_standing_forget(struct krc_standing *standing)
{
	lockdep_assert_held(&krc_silence_lock);
	hash_del(&standing->node);
	if (!list_empty(&standing->idle)) {
		list_del(&standing->idle);
		krc_silence_nr--;
	}
	kfree(standing);
}

/* Whether it has refused something lately. */
static bool krc_standing_refuses(const struct krc_standing *standing)
{
	return READ_ONCE(standing->refusals) &&
	       time_before(jiffies,
			   READ_ONCE(standing->refused) + msecs_to_jiffies(KRC_REFUSED_MS));
}

/* Whether a lease has ended lately before it answered. */
static bool krc_standing_expires(const struct krc_standing *standing)
{
	return time_before(jiffies,
			   READ_ONCE(standing->expired) + msecs_to_jiffies(KRC_EXPIRED_MS));
}

/* What is known of others is as good as nothing. */
static bool krc_standing_memorable(const struct krc_standing *standing)
{
	return READ_ONCE(standing->state) == KRC_STANDING_SILENT ||
	       krc_standing_refuses(standing) || krc_standing_expires(standing) ||
	       krc_stalls_owed(&standing->stalls);
}

/* The last user is gone. */
static void krc_standing_rest(struct krc_standing *standing)
{
	lockdep_assert_held(&krc_silence_lock);
	if (standing->orphan) {
		kfree(standing);
		return;
	}
	if (!krc_standing_memorable(standing)) {
		krc_standing_forget(standing);
		return;
	}
	list_add_tail(&standing->idle, &krc_silence_list);
	if (++krc_silence_nr > KRC_SILENT_MAX)
		krc_standing_forget(list_first_entry(&krc_silence_list, struct krc_standing, idle));
}

void krc_standing_put(struct krc_standing *standing)
{
	spin_lock_bh(&krc_silence_lock);
	if (!--standing->users)
		krc_standing_rest(standing);
	spin_unlock_bh(&krc_silence_lock);
}

/* It has answered. Nothing changes as long as it is barred. */
static void krc_standing_believe(struct krc_standing *standing)
{
	lockdep_assert_held(&standing->lock);
	if (krc_standing_barred(standing))
		return;
	WRITE_ONCE(standing->barred, false);
	WRITE_ONCE(standing->answered, jiffies);
	standing->failures = 0;
	WRITE_ONCE(standing->state, KRC_STANDING_PROVEN);
}

void krc_standing_prove(struct krc_standing *standing)
{
	spin_lock_bh(&standing->lock);
	krc_standing_believe(standing);
	spin_unlock_bh(&standing->lock);
}

bool krc_standing_due(struct krc_standing *standing)
{
	bool due;

	spin_lock_bh(&standing->lock);
	due = standing->state != KRC_STANDING_SILENT || time_after_eq(jiffies, standing->retry_at);
	spin_unlock_bh(&standing->lock);
	return due;
}

static void krc_standing_silence(struct krc_standing *standing, unsigned long pause)
{
	unsigned long retry_at = jiffies + clamp(pause, msecs_to_jiffies(KRC_BACKOFF_MIN_MS),
						 msecs_to_jiffies(KRC_BACKOFF_MAX_MS));

	lockdep_assert_held(&standing->lock);
	if (!krc_standing_barred(standing))
		WRITE_ONCE(standing->barred, false); /* its time is over */
	else if (time_before(retry_at, standing->retry_at))
		retry_at = standing->retry_at;
	WRITE_ONCE(standing->retry_at, retry_at);
	WRITE_ONCE(standing->state, KRC_STANDING_SILENT);
}

void krc_standing_failed(struct krc_standing *standing, unsigned long took)
{
	spin_lock_bh(&standing->lock);
	krc_standing_silence(standing, took << standing->failures);
	if (standing->failures < KRC_BACKOFF_DOUBLINGS)
		standing->failures++;
	spin_unlock_bh(&standing->lock);
}

void krc_standing_suspect(struct krc_standing *standing)
{
	spin_lock_bh(&standing->lock);
	if (standing->state != KRC_STANDING_SILENT)
		krc_standing_silence(standing, 0);
	spin_unlock_bh(&standing->lock);
}

void krc_standing_expired(struct krc_standing *standing)
{
	spin_lock_bh(&standing->lock);
	if (standing->state == KRC_STANDING_PROVEN) {
		if (krc_standing_expires(standing))
			krc_standing_silence(standing, 0);
		else
			WRITE_ONCE(standing->state, KRC_STANDING_NEW);
		WRITE_ONCE(standing->expired, jiffies);
	}
	spin_unlock_bh(&standing->lock);
}

void krc_standing_stalled(struct krc_standing *standing, unsigned long since, u32 beyond_ms)
{
	spin_lock_bh(&standing->lock);
	krc_stalls_charge(&standing->stalls, since, KRC_TARGET_STALLS_MS + beyond_ms);
	spin_unlock_bh(&standing->lock);
}

/* Its refusals are too many. */
static void krc_standing_bar(struct krc_standing *standing)
{
	u32 doublings = standing->refusals - KRC_REFUSED_FREE - 1;

	lockdep_assert_held(&standing->lock);
	WRITE_ONCE(standing->retry_at, jiffies + msecs_to_jiffies(KRC_BARRED_MS << doublings));
	WRITE_ONCE(standing->barred, true);
	WRITE_ONCE(standing->state, KRC_STANDING_SILENT);
}

bool krc_standing_refused(struct krc_standing *standing)
{
	bool barred;

	spin_lock_bh(&standing->lock);
	barred = krc_standing_barred(standing);
	if (!barred) { /* else it refuses what was posted before */
		if (!krc_standing_refuses(standing))
			WRITE_ONCE(standing->refusals, 0);
		if (standing->refusals <= KRC_REFUSED_FREE + KRC_BARRED_DOUBLINGS)
			WRITE_ONCE(standing->refusals, standing->refusals + 1);
		krc_standing_believe(standing);
		barred = standing->refusals > KRC_REFUSED_FREE;
		if (barred)
			krc_standing_bar(standing);
	}
	WRITE_ONCE(standing->refused, jiffies);
	spin_unlock_bh(&standing->lock);
	return barred;
}

void krc_silence_drop(const struct krc_rail *rail)
{
	struct krc_standing *standing;
	struct hlist_node *next;
	int bucket;

	spin_lock_bh(&krc_silence_lock);
	hash_for_each_safe(krc_silence, bucket, next, standing, node) {
		if (rail && standing->key.rail != rail)
			continue;
		if (!standing->users) {
			krc_standing_forget(standing);
			continue;
		}
		/* its last user frees it; a new port at the same address must not find it */
		hash_del(&standing->node);
		standing->orphan = true;
	}
	spin_unlock_bh(&krc_silence_lock);
}

u32 krc_silence_idle(void)
{
	return READ_ONCE(krc_silence_nr);
}
