// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the limit of what the hardware has of a channel. See pool/window.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/minmax.h>

#include "base/trace.h"
#include "pool/pool_priv.h"
#include "pool/window.h"

#define KRC_WINDOW_TURNS 4U /* that the hardware has of small segments, when it is limited */
#define KRC_WINDOW_COMPLETIONS 4U /* at least, that stand for all that it has then */

/*
 * The cost of a segment when the hardware has so many at most: a turn is a part of its time. What
 * segments take for their bytes is paid by these.
 */
static u32 krc_window_cost(const struct krc_channel *ch, u32 limit)
{
	u32 nr = ch->tail - ch->head, cost = KRC_SEGMENT_BYTES / max(limit / KRC_WINDOW_TURNS, 1U);

	if (limit == ch->depth)
		return KRC_COST_BYTES;
	if (!nr)
		return ch->window.cost; /* of what is unknown */
	return max(cost - min(ch->bytes / nr, cost), KRC_COST_BYTES);
}

/* The mask of segments that may be unsignaled when the hardware has so many at most. */
static u32 krc_window_unsignaled(const struct krc_channel *ch, u32 limit)
{
	u32 share = max(limit / KRC_WINDOW_COMPLETIONS, 1U);

	if (limit == ch->depth)
		return KRC_UNSIGNALED_MAX - 1;
	return min_t(u32, rounddown_pow_of_two(share), KRC_UNSIGNALED_MAX) - 1;
}

static void krc_window_set(struct krc_channel *ch, u32 limit)
{
	u32 cost = krc_window_cost(ch, limit);
	struct krc_flow *flow;

	if (cost < ch->window.cost) /* what is left of turns was for segments that cost more */
		list_for_each_entry(flow, &ch->turn, list)
			flow->deficit = min(flow->deficit, KRC_SEGMENT_BYTES + cost);
	ch->window.cost = cost;
	ch->window.quantum = KRC_SEGMENT_BYTES + cost;
	ch->window.unsignaled = krc_window_unsignaled(ch, limit);
	WRITE_ONCE(ch->window.limit, limit);
}

void krc_window_init(struct krc_channel *ch)
{
	ch->window.sample.at = jiffies;
	krc_window_set(ch, ch->depth);
}

void krc_window_begin(struct krc_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	ch->window.known = true;
	ch->window.head = ch->head;
	ch->window.tail = ch->tail;
	ch->window.looked = jiffies;
}

/* The least time between looks. */
static unsigned long krc_window_least(void)
{
	return msecs_to_jiffies(KRC_WINDOW_LOOK_MS / 2);
}

/* The limit after a look that finds nothing against more. */
static u32 krc_window_wider(const struct krc_channel *ch)
{
	return min(ch->window.limit + ch->window.limit / 8 + 1, ch->depth);
}

/* The limit that follows from what has completed in so many jiffies since the last look. */
static u32 krc_window_measure(const struct krc_channel *ch, u32 done, unsigned long took)
{
	const struct krc_window *window = &ch->window;
	unsigned long most = msecs_to_jiffies(KRC_WINDOW_MS);

	/* it may have run dry meanwhile, and be faster: if that is enough for what it may have */
	if ((s32)(window->tail - ch->head) <= 0)
		return done * most >= window->limit * took ? krc_window_wider(ch) : window->limit;
	if (took < krc_window_least())
		return window->limit;
	return clamp_t(unsigned long, done *most / took, min(KRC_WINDOW_MIN, ch->depth), ch->depth);
}

/*
 * Look at a channel that works. Time is measured from one completion to another, each of which may
 * stand for several segments, and not while nothing completes for long.
 */
static void krc_window_look_at(struct krc_channel *ch)
{
	struct krc_window *window = &ch->window;
	u32 done = ch->head - window->head, limit = window->limit;

	if (done)
		limit = krc_window_measure(ch, done, ch->progress - window->looked);
	else if (ch->head == ch->tail)
		limit = krc_window_wider(ch);
	else if (time_before(jiffies, ch->progress + msecs_to_jiffies(KRC_WINDOW_MS)))
		return; /* the next look counts from the last one, too */
	if (limit != window->limit)
		trace_krc_window(ch->pool->rail, ch->index, limit);
	krc_window_set(ch, limit);
	krc_window_begin(ch);
	if (done)
		window->looked = ch->progress;
}

void krc_window_look(struct krc_channel *ch)
{
	struct krc_window *window = &ch->window;

	lockdep_assert_held(&ch->lock);
	if (!krc_channel_is_common(ch))
		return;
	if (!krc_channel_works(ch))
		window->known = false;
	else if (!window->known)
		krc_window_begin(ch);
	else if (!time_before(jiffies, window->looked + krc_window_least()))
		krc_window_look_at(ch);
}

void krc_window_full(struct krc_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	if (!ch->lease.bounded || !krc_channel_is_common(ch))
		return;
	krc_window_begin(ch);
	krc_window_schedule(ch);
}

bool krc_window_wanted(const struct krc_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	if (!list_empty(&ch->evicted))
		return true;
	if (!krc_channel_is_common(ch) || !krc_channel_works(ch))
		return false;
	return ch->window.limit < ch->depth || ch->window.sample.slow ||
	       (ch->kind == KRC_CHANNEL_ISOLATED && ch->head != ch->tail);
}

unsigned long krc_window_next(struct krc_channel *ch, unsigned long delay)
{
	struct krc_window *window = &ch->window;
	unsigned long now = jiffies;

	lockdep_assert_held(&ch->lock);
	if (!window->soon &&
	    (krc_window_wanted(ch) || ch->kind == KRC_CHANNEL_ISOLATED ||
	     (krc_channel_is_common(ch) && ch->tail - ch->head >= window->limit))) {
		window->soon = true;
		window->due = now + msecs_to_jiffies(KRC_WINDOW_LOOK_MS);
	}
	if (!window->soon)
		return delay;
	return min(delay, time_after(window->due, now) ? window->due - now : 0);
}

void krc_window_ask(struct krc_channel *ch)
{
	if (krc_window_wanted(ch) && !ch->window.soon)
		krc_window_schedule(ch);
}

void krc_window_schedule(struct krc_channel *ch)
{
	unsigned long now = jiffies, bound = ch->lease.bound;

	lockdep_assert_held(&ch->lock);
	if (!ch->lease.bounded)
		bound = now + MAX_JIFFY_OFFSET;
	mod_delayed_work(ch->pool->wq, &ch->lease.expiry,
			 krc_window_next(ch, time_after(bound, now) ? bound - now : 0));
}
