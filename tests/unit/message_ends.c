// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory that ends of message_world.h have, and two ends for a test to begin with.
 */
#include <stdlib.h>

#include "tests/unit/message_world.h"

void mw_lend_first(struct mw_world *w, struct mw_end *e)
{
	struct krp_stream_slot *slot = w->plan.thrifty ? e->few : e->slot;

	if (krp_stream_init(&e->s, &w->conf, slot,
			    w->plan.thrifty ? KRP_STREAM_SLOTS_MIN : MW_SLOTS))
		abort();
	if (!w->plan.thrifty)
		krp_stream_give_large(&e->s, &e->large);
}

void mw_lend(struct mw_world *w, struct mw_end *e, bool large)
{
	if (large && !e->s.larges)
		krp_stream_give_large(&e->s, &e->large);
	if (!krp_stream_cramped(&e->s) || e->s.slots == MW_SLOTS || mw_once_in(w, 8))
		return;
	if (krp_stream_move(&e->s, e->slot, MW_SLOTS))
		mw_break(w, "there is no moving to more slots", e->s.slots);
}

void mw_take_back(struct mw_world *w, struct mw_end *e)
{
	if (!w->plan.thrifty)
		return;
	if (krp_stream_take_large(&e->s))
		memset(&e->large, 0xa5, sizeof(e->large));
	if (e->s.slots == MW_SLOTS && !krp_stream_move(&e->s, e->few, KRP_STREAM_SLOTS_MIN))
		memset(e->slot, 0xa5, sizeof(e->slot));
}

struct mw_world *mw_opened(const struct mw_plan *plan, struct mw_end **ret_a, struct mw_end **ret_b)
{
	struct mw_plan stays = *plan;
	struct mw_world *w;

	stays.stays = true;
	w = mw_new(&stays, 2, 1);
	*ret_a = mw_open(w, 0, 1);
	mw_run(w, w->now_ns + 100 * MW_MS);
	*ret_b = mw_peer(w, *ret_a);
	if (!*ret_b || (*ret_a)->s.state != KRP_STREAM_OPEN || (*ret_b)->s.state != KRP_STREAM_OPEN)
		abort();
	memset(w->packets, 0, sizeof(w->packets));
	w->sent_packets = 0;
	return w;
}
