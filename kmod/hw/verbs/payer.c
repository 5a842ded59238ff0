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
 * Locking: krc_lanes.lock for what is in the table; the list is the work item's.
 */
#include <linux/slab.h>

#include "hw/verbs/lanes_priv.h"

static struct krc_lane_payer *krc_lane_payer_new(struct krc_lanes *lanes, const void *who)
{
	struct krc_lane_payer *payer;

	if (lanes->payers_nr >= 2 * KRC_LANES_MAX)
		return NULL; /* each has a lane, but those that the next round forgets */
	payer = kzalloc(sizeof(*payer), GFP_KERNEL);
	if (!payer)
		return NULL;
	payer->who = who;
	spin_lock_bh(&lanes->lock);
	krp_lanes_payer_init(&lanes->table, &payer->account, 1);
	spin_unlock_bh(&lanes->lock);
	list_add(&payer->list, &lanes->payers);
	lanes->payers_nr++;
	return payer;
}

struct krp_lanes_payer *krc_lane_payer_get(struct krc_lanes *lanes, const void *who)
{
	struct krp_lanes *table = &lanes->table;
	struct krc_lane_payer *payer = NULL, *other;
	u32 free;

	if (!who)
		return &lanes->users;
	list_for_each_entry(other, &lanes->payers, list)
		if (other->who == who)
			payer = other;
	if (!payer)
		payer = krc_lane_payer_new(lanes, who);
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
		kfree(payer);
	}
}
