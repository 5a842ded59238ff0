// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: on whose account lanes are made: who has some, and how many that one may have.
 *
 * A payer may have as many lanes as are free, or else an equal part of all. So one alone has half of
 * what a port has, a second one a third of it, and one who comes finds some, however many others
 * have, and however often they use them (the dynamic thresholds of Choudhury and Hahne, 1998, for the
 * buffers of a switch). A payer at its limit closes own lanes for new ones (krp_lanes.h, ROOM). What
 * peers have made is one payer more, with a limit of its own.
 *
 * A payer is counted while it has lanes, or whoever comes to its key would have them; and a user who goes
 * and comes back finds the lanes that were made before. What is the module's own is on the account of
 * something in the port, which is there as long as the lanes are.
 *
 * Locking: krc_lanes.lock for what is in the table; the list is the work item's.
 */
#include <linux/slab.h>

#include "hw/verbs/lanes_priv.h"

/* The account of a key: of a payer that is @counted, or of nobody who is known. */
static struct krc_lane_payer *krc_lane_payer_find(struct krc_lanes *lanes, const void *who,
						  bool counted)
{
	struct krc_lane_payer *payer;

	list_for_each_entry(payer, &lanes->payers, list)
		if (payer->who == who && !!payer->counted.user == counted)
			return payer;
	return NULL;
}

/* @counted: that payer, or zero; it is the account's from now on. */
static struct krc_lane_payer *krc_lane_payer_new(struct krc_lanes *lanes, const void *who,
						 const struct krc_payer *counted)
{
	struct krc_lane_payer *payer;

	if (lanes->payers_nr >= 2 * KRC_LANES_MAX)
		return NULL; /* each has a lane, but those that the next round forgets */
	payer = kzalloc(sizeof(*payer), GFP_KERNEL);
	if (!payer)
		return NULL;
	payer->who = who;
	payer->counted = *counted;
	spin_lock_bh(&lanes->lock);
	krp_lanes_payer_init(&lanes->table, &payer->account, 1);
	spin_unlock_bh(&lanes->lock);
	list_add(&payer->list, &lanes->payers);
	lanes->payers_nr++;
	return payer;
}

/* The account of a key, which is made if there is none. Return: it, or NULL. */
static struct krc_lane_payer *krc_lane_payer_of(struct krc_lanes *lanes, const void *who)
{
	struct krc_lane_payer *payer = krc_lane_payer_find(lanes, who, true);
	struct krc_payer counted;

	if (payer)
		return payer;
	if (!krc_payer_find(who, &counted))
		payer = krc_lane_payer_find(lanes, who, false);
	if (!payer)
		payer = krc_lane_payer_new(lanes, who, &counted);
	if (!payer)
		krc_payer_put(&counted);
	return payer;
}

struct krp_lanes_payer *krc_lane_payer_get(struct krc_lanes *lanes, const void *who)
{
	struct krp_lanes *table = &lanes->table;
	struct krc_lane_payer *payer;
	u32 free;

	if (!who)
		return &lanes->users;
	payer = krc_lane_payer_of(lanes, who);
	if (!payer)
		return NULL;
	spin_lock_bh(&lanes->lock);
	free = table->conf.max - min(table->active, table->conf.max);
	/* peers are one more */
	payer->account.limit = max3(1U, free, table->conf.max / (lanes->payers_nr + 1));
	spin_unlock_bh(&lanes->lock);
	return &payer->account;
}

void krc_lane_payers_tend(struct krc_lanes *lanes)
{
	struct krc_lane_payer *payer, *next;
	bool over;

	list_for_each_entry_safe(payer, next, &lanes->payers, list) {
		spin_lock_bh(&lanes->lock);
		over = !payer->account.nr && !payer->account.closing;
		if (over)
			krp_lanes_payer_end(&lanes->table, &payer->account);
		spin_unlock_bh(&lanes->lock);
		if (!over)
			continue;
		list_del(&payer->list);
		lanes->payers_nr--;
		krc_payer_put(&payer->counted);
		kfree(payer);
	}
}
