// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: which target a channel was posted to last, and what is chosen by that: the channel of a
 * flow, and which of several flows is next on a channel.
 *
 * A DC initiator is connected to one target at a time, and for another it waits until all before is
 * acknowledged, disconnects and connects. So a target stays on the channel that has it, while that
 * is not busy; another target comes to a channel that is not used just now, and only where there
 * is none, to one that a hash of its address says. And where flows wait for their turn anyhow, one
 * for the present target comes before those of others: requests of different flows have no order.
 *
 * Both are off until module parameter sticky_targets is set. They cost nobody a share: turns have
 * rounds, in each of which a payer has one turn, and of a payer's flows each is at the head once;
 * only flows of the round that is being served are taken before others, so that a flow waits for
 * each of the others once. And when a run of requests to one target has had KRC_STICK_QUOTA, the
 * flow that has waited longest is next, whatever its target.
 * Idea: UCX, which keeps its DC initiators by endpoint, with a quota while others wait.
 * Locking: see pool/pool_priv.h; a channel is chosen by hints, without its lock.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>

#include "pool/pool_priv.h"

bool krc_sticky;
module_param_named(sticky_targets, krc_sticky, bool, 0644);
MODULE_PARM_DESC(sticky_targets, "Requests stay where their peer is connected (default: N)");

/* A short form of an address vector, by which channels are compared without their locks. */
static u32 krc_hw_address_key(const struct krc_hw_address *to)
{
	const u64 *word = (const u64 *)to->opaque;
	u64 key = 0;
	u32 i;

	for (i = 0; i < sizeof(to->opaque) / sizeof(*word); i++)
		key = (key ^ word[i]) * GOLDEN_RATIO_64;
	return hash_64(key, 32);
}

void krc_channel_aim(struct krc_channel *ch, const struct krc_hw_address *to)
{
	struct krc_aim *aim = &ch->aim;

	lockdep_assert_held(&ch->lock);
	WRITE_ONCE(aim->by, to);
	if (aim->known && krc_hw_address_equal(&aim->target, to))
		return;
	if (!aim->known || !ch->pool->ops->same_target(&aim->target, to)) {
		ch->stats.target_changes += aim->known;
		aim->from = ch->tail;
	}
	aim->target = *to;
	WRITE_ONCE(aim->key, krc_hw_address_key(to));
	WRITE_ONCE(aim->known, true);
}

/* ---- which flow is next */

/* Whether flows of other targets may be passed over for one of the present target. */
static bool krc_channel_sticks(const struct krc_channel *ch)
{
	return READ_ONCE(krc_sticky) && ch->aim.known && ch->tail - ch->aim.from < KRC_STICK_QUOTA;
}

/* Whether the next request of a flow, which has one, is for the target that a channel has. */
static bool krc_flow_aims(const struct krc_channel *ch, const struct krc_flow *flow)
{
	const struct list_head *next = list_empty(&flow->replay) ? &flow->waiting : &flow->replay;
	const struct krc_hw_address *to = list_first_entry(next, struct krc_req, list)->wr.address;

	return krc_hw_address_equal(&ch->aim.target, to);
}

struct krc_flow *krc_flow_prefer(const struct krc_channel *ch, struct list_head *flows)
{
	struct krc_flow *first = list_first_entry(flows, struct krc_flow, list), *flow;
	u32 looks = 0;

	lockdep_assert_held(&ch->lock);
	if (list_is_singular(flows) || !krc_channel_sticks(ch))
		return first;
	list_for_each_entry(flow, flows, list) {
		if (flow->round != first->round || looks++ == KRC_STICK_LOOKS)
			break;
		if (krc_flow_aims(ch, flow))
			return flow;
	}
	return first;
}

/* ---- which channel a flow goes to */

/* Whether a channel's target counts no more: it has none, or nothing came for it lately. A hint. */
static bool krc_channel_vacant(const struct krc_channel *ch)
{
	return !READ_ONCE(ch->aim.known) ||
	       (READ_ONCE(ch->head) == READ_ONCE(ch->tail) &&
		time_after(jiffies, READ_ONCE(ch->progress) + msecs_to_jiffies(KRC_STICK_MS)));
}

struct krc_channel *krc_pick_sticky(const struct krc_channels *all, enum krc_channel_kind kind,
				    u32 start, const struct krc_hw_address *to)
{
	u32 nr = krc_channels_of(all, kind), span = min(nr, KRC_POOL_SPREAD), i, key, load;
	struct krc_channel *own = krc_channels_nth(all, kind, start, nr), *vacant = NULL;
	struct krc_channel *found = NULL, *ch;

	if (krc_channel_load(own) >= KRC_LOAD_BUSY)
		return NULL;
	/* by key, not by place: a packet and a READ of the module take the place of one before */
	key = krc_hw_address_key(to);
	for (i = 0; i < span; i++) {
		ch = krc_channels_nth(all, kind, start + i, nr);
		load = krc_channel_load(ch);
		if (load < KRC_LOAD_BUSY && !vacant && krc_channel_vacant(ch))
			vacant = ch;
		if (!READ_ONCE(ch->aim.known) || READ_ONCE(ch->aim.key) != key)
			continue;
		if (load < KRC_LOAD_BUSY && !found)
			found = ch;
		else if (load >= KRC_LOAD_SLOW && load < KRC_LOAD_UNREADY &&
			 krc_channel_waits_for(ch, to))
			return ch;
	}
	if (vacant == own || !found)
		found = vacant;
	if (found)
		return found;
	ch = krc_channels_nth(all, kind, start + key % span, nr);
	return krc_channel_load(ch) < KRC_LOAD_BUSY ? ch : own;
}
