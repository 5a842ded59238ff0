// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the accounts of payers, and whether anybody is isolated. See pool/isolation.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/lockdep.h>

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
				       unsigned long since)
{
	struct krc_stalls *stalls = krc_isolation_account(isolation, payer);

	lockdep_assert_held(&isolation->lock);
	krc_stalls_charge(stalls, since, KRC_PAYER_STALLS_MS);
	return krc_isolation_extend(isolation, krc_stalls_over_at(stalls, KRC_PAYER_STALLS_MS));
}

/* Charge a target. Return: whether it is isolated. */
static bool krc_isolation_charge_target(struct krc_isolation *isolation,
					struct krc_standing *target, unsigned long since)
{
	lockdep_assert_held(&isolation->lock);
	krc_standing_stalled(target, since);
	return krc_isolation_extend(isolation,
				    krc_stalls_over_at(&target->stalls, KRC_TARGET_STALLS_MS));
}

/* Charge whom it concerns. Return: whether any of them is isolated. */
static bool krc_isolation_charge_both(struct krc_channel *ch, const struct krc_flow *flow)
{
	struct krc_isolation *isolation = &ch->pool->isolation;
	bool over = false;

	if (flow->standing)
		over = krc_isolation_charge_target(isolation, flow->standing, ch->progress);
	/* what an isolated target stalls there is not the fault of those who have others as well */
	if (over && ch->kind == KRC_CHANNEL_ISOLATED)
		return true;
	return krc_isolation_charge_payer(isolation, krc_flow_payer(flow), ch->progress) || over;
}

void krc_isolation_charge(struct krc_channel *ch, const struct krc_flow *flow)
{
	struct krc_isolation *isolation = &ch->pool->isolation;
	bool before, over;

	lockdep_assert_held(&ch->lock);
	if (ch->kind != KRC_CHANNEL_SHARED && ch->kind != KRC_CHANNEL_ISOLATED)
		return;
	spin_lock(&isolation->lock);
	before = isolation->any;
	over = krc_isolation_charge_both(ch, flow);
	spin_unlock(&isolation->lock);
	ch->stats.isolated += over;
	if (over && !before)
		krc_port_info_limited(
			ch->pool->rail->ibdev, ch->pool->rail->num,
			"initiator %u is stalled too often: who does it is isolated\n", ch->index);
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
