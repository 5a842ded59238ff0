/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: who is isolated: the requests of which payers, and to which targets, go through channels of
 * KRC_CHANNEL_ISOLATED, since they hold up too often what all share.
 *
 * A target may answer whatever asks it whether it is there, and none of the requests that matter: it
 * is proven each time, and stalls a shared channel each time until the retries or the lease of a
 * request end. Whether that is bad will or a path that loses some packets (one dead member of a
 * link aggregation) nobody can tell from here, so its requests are neither refused nor failed. But what
 * stalls beyond an account (pool/stalls.h) does so where only others like it wait. The stall is
 * charged to the target (krc_standing.stalls), and to the payer whose request it was: with the help
 * of a program here a host has as many targets as it likes.
 *
 * A flow with nothing outstanding moves when its next request is submitted; one that never rests
 * moves with what it has, when the channel has been reset after a stall, or when it is evicted (see
 * below). On the channels of the isolated stalls count as well, so that what goes on stays there. What a
 * target stalls that is overdrawn already is not charged to the payer: else one bad peer would isolate
 * all that its user does.
 *
 * Stalls are seen when they end with a reset: a request that the hardware gave up or the target
 * refused, however late, a way that was lost, or a lease that ended.
 *
 * What answers slowly, but in time, resets nothing. It is found by samples: when the work item of a channel
 * looks, whoever has the oldest segment in the hardware is charged the time since the last look, if the
 * hardware has been at that segment for KRC_SLOW_MS; or if it has been at work without a pause and
 * completed few: less than its depth / KRC_ISOLATION_FEW in KRC_WINDOW_MS. One sample may charge too much,
 * or the wrong one; many of them charge each for the time that it takes. Bytes may take as long as at
 * KRC_WINDOW_BYTES in KRC_WINDOW_MS. Slowness counts less than stalls (KRC_STALLS_SLOW_MS): so it is made
 * good some 20 s after the last of it.
 * With nothing reset, a flow that never rests is evicted: nothing more of it is posted, and it moves when
 * none of it is in the hardware. The same way it comes back when it is not isolated any more.
 * Where all targets are slow, it is this NIC or its network: then all are isolated, and share
 * KRC_POOL_ISOLATED channels until that is made good. Nobody looks at a channel that has no leased
 * segment, unless it is limited.
 *
 * A READ of a directory that several payers wait for is on the account, and the channel, of the first
 * that asked.
 *
 * Locking: krc_isolation.lock (bottom halves off) for changes, inside of krc_channel.lock; what
 * krc_isolation_any() and krc_flow_isolated() read are hints, since either kind of channel will do.
 */
#ifndef KRC_ISOLATION_H
#define KRC_ISOLATION_H

#include <linux/compiler.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "pool/stalls.h"

struct krc_channel;
struct krc_flow;

#define KRC_PAYER_STALLS_MS 4000 /* of stalls are free for a payer: it may have several targets */
#define KRC_ISOLATION_PAYERS 64 /* payers with stalls that are remembered */
#define KRC_ISOLATION_FEW 4U /* this part of a channel's depth */
#define KRC_ISOLATION_SAMPLE_MS 100 /* most that is charged by one sample */

/**
 * struct krc_isolation - Whose stalls a pool has seen lately.
 * @lock: protects changes.
 * @any: some target or payer may be isolated.
 * @until: jiffies until which, if @any.
 * @payers: payers with stalls; @payer NULL: unused. It is only compared: another one at the same
 *	address takes the stalls over, until they are made good.
 */
struct krc_isolation {
	spinlock_t lock;
	bool any;
	unsigned long until;
	struct {
		const void *payer;
		struct krc_stalls stalls;
	} payers[KRC_ISOLATION_PAYERS];
};

/**
 * krc_isolation_init() - Begin with nobody isolated.
 * @isolation: zeroed.
 *
 * Context: any.
 */
void krc_isolation_init(struct krc_isolation *isolation);

/**
 * krc_isolation_charge() - A request has stalled a channel.
 * @ch: channel, of any kind: only KRC_CHANNEL_SHARED and KRC_CHANNEL_ISOLATED count.
 * @flow: flow of the request.
 *
 * Charges the time since the last progress of the channel to the target of the flow, if it has one,
 * and to its payer, if the target was not overdrawn before.
 * Context: channel's lock held.
 */
void krc_isolation_charge(struct krc_channel *ch, const struct krc_flow *flow);

/**
 * krc_isolation_sample() - Charge whom the hardware of a channel is at, if that takes long.
 * @ch: channel, of which all that is complete has just been polled; of any kind, as above.
 *
 * Charges the time since the last sample, but no more than KRC_ISOLATION_SAMPLE_MS, as
 * krc_isolation_charge() does. Context: channel's lock held.
 */
void krc_isolation_sample(struct krc_channel *ch);

/**
 * krc_isolation_any() - Check whether krc_flow_isolated() is worth asking: for the data path.
 * @isolation: of the pool.
 *
 * Context: any; no lock needed.
 * Return: false: nobody is.
 */
static inline bool krc_isolation_any(const struct krc_isolation *isolation)
{
	return unlikely(READ_ONCE(isolation->any));
}

/**
 * krc_flow_isolated() - Check whether requests of a flow go through the channels of the isolated.
 * @flow: flow of KRC_CHANNEL_SHARED.
 *
 * Context: any but hard interrupts; @flow's target, if it has one, is counted.
 * Return: whether its target or its payer is isolated now.
 */
bool krc_flow_isolated(const struct krc_flow *flow);

#endif /* KRC_ISOLATION_H */
