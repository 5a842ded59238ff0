// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the accounts of payers, and whether anybody is isolated. See pool/isolation.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "base/log.h"
#include "pool/isolation.h"
#include "pool/pool_priv.h"
#include "pool/silence.h"

void krc_isolation_init(struct krc_isolation *isolation)
{
	spin_lock_init(&isolation->lock);
}

/* The account of a payer; a new one takes the place of that which is made good first. */
static struct krc_stalls *krc_isolation_account(struct krc_isolation *isolation, const void *payer)
{
	u32 first = 0, i;

	lockdep_assert_held(&isolation->lock);
	for (i = 0; i < KRC_ISOLATION_PAYERS; i++) {
		if (!isolation->payers[i].payer) {
			first = i;
			break;
		}
		if (isolation->payers[i].payer == payer)
			return &isolation->payers[i].stalls;
		if (time_before(isolation->payers[i].stalls.good_at,
				isolation->payers[first].stalls.good_at))
			first = i;
	}
	krc_stalls_init(&isolation->payers[first].stalls);
	WRITE_ONCE(isolation->payers[first].payer, payer);
	return &isolation->payers[first].stalls;
}

/* Somebody is isolated until then. Return: false: that is over. */
static bool krc_isolation_extend(struct krc_isolation *isolation, unsigned long until)
{
	lockdep_assert_held(&isolation->lock);
	if (!time_after(until, jiffies))
		return false;
	if (!isolation->any || time_after(until, isolation->until))
		WRITE_ONCE(isolation->until, until);
	WRITE_ONCE(isolation->any, true);
	return true;
}

/* Charge a payer. Return: whether it is isolated. */
static bool krc_isolation_charge_payer(struct krc_isolation *isolation, const void *payer,
				       unsigned long since, u32 beyond_ms)
{
	struct krc_stalls *stalls = krc_isolation_account(isolation, payer);

	lockdep_assert_held(&isolation->lock);
	krc_stalls_charge(stalls, since, KRC_PAYER_STALLS_MS + beyond_ms);
	return krc_isolation_extend(isolation, krc_stalls_over_at(stalls, KRC_PAYER_STALLS_MS));
}

/* Charge a target. Return: whether it is isolated. */
static bool krc_isolation_charge_target(struct krc_isolation *isolation,
					struct krc_standing *target, unsigned long since,
					u32 beyond_ms)
{
	lockdep_assert_held(&isolation->lock);
	krc_standing_stalled(target, since, beyond_ms);
	return krc_isolation_extend(isolation,
				    krc_stalls_over_at(&target->stalls, KRC_TARGET_STALLS_MS));
}

/* Charge whom it concerns. Return: whether any of them is isolated. */
static bool krc_isolation_charge_both(struct krc_channel *ch, const struct krc_flow *flow,
				      unsigned long since, u32 beyond_ms)
{
	struct krc_isolation *isolation = &ch->pool->isolation;
	struct krc_standing *target = flow->standing;
	bool known = target && krc_stalls_overdrawn(&target->stalls, KRC_TARGET_STALLS_MS);
	bool over = target && krc_isolation_charge_target(isolation, target, since, beyond_ms);

	/* what an isolated target holds up is not the fault of those who have others as well */
	if (known)
		return over;
	return krc_isolation_charge_payer(isolation, krc_flow_payer(flow), since, beyond_ms) ||
	       over;
}

/* Charge them, and say so if nobody was isolated before. Return: whether any of them is. */
static bool krc_isolation_charge_since(struct krc_channel *ch, const struct krc_flow *flow,
				       unsigned long since, u32 beyond_ms)
{
	struct krc_isolation *isolation = &ch->pool->isolation;
	bool before, over;

	spin_lock(&isolation->lock);
	before = isolation->any;
	over = krc_isolation_charge_both(ch, flow, since, beyond_ms);
	spin_unlock(&isolation->lock);
	if (over && !before)
		krc_port_info_limited(
			ch->pool->rail->ibdev, ch->pool->rail->num,
			"initiator %u is held up too often: who does it is isolated\n", ch->index);
	return over;
}

void krc_isolation_charge(struct krc_channel *ch, const struct krc_flow *flow)
{
	lockdep_assert_held(&ch->lock);
	if (krc_channel_is_common(ch))
		ch->stats.isolated +=
			krc_isolation_charge_since(ch, flow, ch->progress, KRC_STALLS_MOST_MS);
}

/* How many jiffies so many bytes may take: what KRC_WINDOW_BYTES take in KRC_WINDOW_MS. */
static unsigned long krc_isolation_worth(u32 bytes)
{
	return bytes * (u64)msecs_to_jiffies(KRC_WINDOW_MS) / KRC_WINDOW_BYTES;
}

/* Whether the hardware has been at its oldest segment for long. */
static bool krc_isolation_stands(const struct krc_channel *ch, u32 bytes)
{
	long took = jiffies - ch->progress - 1; /* at least */

	return took >= (long)(krc_isolation_worth(bytes) + msecs_to_jiffies(KRC_SLOW_MS));
}

/* Whether the hardware has been at work since the last sample without a pause, and completed little. */
static bool krc_isolation_crawls(const struct krc_channel *ch)
{
	unsigned long took = jiffies - ch->window.sample.at, most = msecs_to_jiffies(KRC_WINDOW_MS);
	u32 done = ch->head - ch->window.sample.head, nr = ch->tail - ch->head;

	if (!time_before(ch->busy, ch->window.sample.at))
		return false;
	/* the bytes of those that are done are not known any more: as many as the others have */
	return (u64)done * most <= (u64)took * (ch->depth / KRC_ISOLATION_FEW) &&
	       2 * (u64)(ch->bytes / nr) * (done + 1) * most <= (u64)took * KRC_WINDOW_BYTES;
}

/* Whom the hardware is at, if that takes long; or NULL. */
static const struct krc_flow *krc_isolation_slow(const struct krc_channel *ch)
{
	const struct krc_wqe *oldest = &ch->slots[ch->head & ch->mask];

	if (ch->head == ch->tail || !krc_channel_works(ch) ||
	    (!krc_isolation_stands(ch, oldest->length) && !krc_isolation_crawls(ch)))
		return NULL;
	return oldest->req->flow;
}

void krc_isolation_sample(struct krc_channel *ch)
{
	unsigned long now = jiffies, from = now - msecs_to_jiffies(KRC_ISOLATION_SAMPLE_MS);
	struct krc_sample *last = &ch->window.sample;
	const struct krc_flow *flow;
	bool before;

	lockdep_assert_held(&ch->lock);
	if (!krc_channel_is_common(ch))
		return;
	flow = krc_isolation_slow(ch);
	if (time_after(last->at, from))
		from = time_after(last->at, now) ? now : last->at;
	*last = (struct krc_sample){ .at = now, .head = ch->head, .slow = flow };
	if (!flow || from == now)
		return;
	before = krc_flow_isolated(flow);
	if (krc_isolation_charge_since(ch, flow, from, KRC_STALLS_SLOW_MS) && !before)
		ch->stats.isolated++;
}

/* Nobody is isolated any more, unless somebody is again. */
static void krc_isolation_end(struct krc_isolation *isolation)
{
	spin_lock_bh(&isolation->lock);
	if (!time_after(isolation->until, jiffies))
		WRITE_ONCE(isolation->any, false);
	spin_unlock_bh(&isolation->lock);
}

bool krc_flow_isolated(const struct krc_flow *flow)
{
	struct krc_isolation *isolation = &flow->pool->isolation;
	const void *payer = krc_flow_payer(flow);
	u32 i;

	if (!krc_isolation_any(isolation))
		return false;
	if (!time_after(READ_ONCE(isolation->until), jiffies)) {
		krc_isolation_end(isolation);
		return false;
	}
	if (flow->standing && krc_stalls_overdrawn(&flow->standing->stalls, KRC_TARGET_STALLS_MS))
		return true;
	for (i = 0; i < KRC_ISOLATION_PAYERS; i++)
		if (READ_ONCE(isolation->payers[i].payer) == payer)
			return krc_stalls_overdrawn(&isolation->payers[i].stalls,
						    KRC_PAYER_STALLS_MS);
	return false;
}
