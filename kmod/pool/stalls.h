/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: an account of stalls: how long somebody has held up channels that others share, beyond what
 * everybody may.
 *
 * It is a leaky bucket, kept as the one moment when all stalls would be made good at the rate at
 * which they are forgiven (the virtual scheduling algorithm of ITU-T I.371): a stall puts it off by
 * KRC_STALLS_SHARE times as long. So somebody who stalls for a KRC_STALLS_SHARE-th of the time for
 * ever is never overdrawn, and a burst is free. Stalls of several channels at once count once: what
 * is bounded is how long each of them stands still, and a short outage of a target that all ask is
 * no longer than it was.
 */
#ifndef KRC_STALLS_H
#define KRC_STALLS_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define KRC_STALLS_SHARE 20 /* one part in so many of the time is forgiven */
#define KRC_STALLS_MOST_MS 5000 /* of stalls beyond the burst that count at most */
#define KRC_STALLS_SLOW_MS 1000 /* the same, of slowness */

/**
 * struct krc_stalls - An account of stalls.
 * @good_at: jiffies when they are made good; in the past: there were none, or long ago.
 * @first: jiffies since when all time until @last is charged.
 * @last: jiffies of the last charge.
 *
 * The owner serialises changes; @good_at may be read without.
 */
struct krc_stalls {
	unsigned long good_at;
	unsigned long first;
	unsigned long last;
};

/**
 * krc_stalls_init() - Open an account.
 * @stalls: account.
 *
 * Context: any.
 */
static inline void krc_stalls_init(struct krc_stalls *stalls)
{
	stalls->good_at = jiffies;
	stalls->last = jiffies - MAX_JIFFY_OFFSET; /* never */
	stalls->first = stalls->last;
}

/**
 * krc_stalls_owed() - Check whether there is anything to make good.
 * @stalls: account.
 *
 * Context: any; no lock needed.
 * Return: whether there is.
 */
static inline bool krc_stalls_owed(const struct krc_stalls *stalls)
{
	return time_after(READ_ONCE(stalls->good_at), jiffies);
}

/**
 * krc_stalls_over_at() - Tell until when an account is overdrawn.
 * @stalls: account.
 * @free_ms: burst that is free, in milliseconds.
 *
 * Context: any; no lock needed.
 * Return: jiffies; in the past, if it is not.
 */
static inline unsigned long krc_stalls_over_at(const struct krc_stalls *stalls, u32 free_ms)
{
	return READ_ONCE(stalls->good_at) - msecs_to_jiffies(free_ms) * KRC_STALLS_SHARE;
}

/**
 * krc_stalls_overdrawn() - Check whether the stalls are more than what is forgiven.
 * @stalls: account.
 * @free_ms: burst that is free, in milliseconds.
 *
 * Context: any; no lock needed.
 * Return: whether they are.
 */
static inline bool krc_stalls_overdrawn(const struct krc_stalls *stalls, u32 free_ms)
{
	return time_after(krc_stalls_over_at(stalls, free_ms), jiffies);
}

/**
 * krc_stalls_new() - Tell how much of a stall that is over now is not charged yet.
 * @stalls: account; the stall is charged by that.
 * @since: jiffies when it began.
 *
 * What was charged before @stalls->first is forgotten: shorter stalls within a long one may count
 * twice, and none counts less than it was.
 * Context: any; the caller serialises.
 * Return: jiffies.
 */
static inline unsigned long krc_stalls_new(struct krc_stalls *stalls, unsigned long since)
{
	unsigned long now = jiffies, fresh = now - since;

	if (time_after(since, stalls->last)) {
		stalls->first = since;
	} else {
		fresh = now - stalls->last;
		if (time_before(since, stalls->first)) {
			fresh += stalls->first - since;
			stalls->first = since;
		}
	}
	stalls->last = now;
	return fresh;
}

/**
 * krc_stalls_charge() - Add a stall that is over now.
 * @stalls: account.
 * @since: jiffies when it began.
 * @most_ms: how much counts at most, with what was before, in milliseconds: the burst that is free and
 *	KRC_STALLS_MOST_MS or KRC_STALLS_SLOW_MS beyond.
 *
 * However many there were, @most_ms * KRC_STALLS_SHARE later all are made good, but those that were more
 * before stay so. Context: any; the caller serialises.
 */
static inline void krc_stalls_charge(struct krc_stalls *stalls, unsigned long since, u32 most_ms)
{
	unsigned long most = msecs_to_jiffies(most_ms) * KRC_STALLS_SHARE;
	unsigned long first = stalls->first, last = stalls->last;
	unsigned long took = min(krc_stalls_new(stalls, since), most); /* no overflow */
	unsigned long now = jiffies, owed = krc_stalls_owed(stalls) ? stalls->good_at - now : 0;
	unsigned long sum = owed + took * KRC_STALLS_SHARE;

	if (sum > most) { /* what does not count now may count in a stall that goes on */
		stalls->first = first;
		stalls->last = last;
	}
	WRITE_ONCE(stalls->good_at, now + max(owed, min(sum, most)));
}

#endif /* KRC_STALLS_H */
