/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: how many segments of a shared channel the hardware has at once: no more than complete in
 * KRC_WINDOW_MS.
 *
 * The hardware works on the segments of a channel in order, so what is posted behind slow ones
 * waits for all of them. A queue of 256 in front of a target that takes 1.4 ms for each is longer
 * than the lease of whoever comes next: that ends in the hardware although something completes all
 * the time, and costs a reset, again and again. So the queue is measured in time, as dynamic queue
 * limits do it for network devices (lib/dynamic_queue_limits.c of the kernel): from time to time
 * somebody looks how many segments have completed, and until when. If not all of those that were
 * there at the last look have, the hardware never ran out of work, and that is its speed. If all
 * have, and as many as it may have complete in KRC_WINDOW_MS, the limit grows, slowly: a flow that
 * fills the queue as soon as it may again would cost one reset each time. A channel that stands
 * still is not slow but stalled, which is the business of pool/isolation.h.
 *
 * A look is taken by the work item that watches over leases (krc_channel_expire()): before it
 * resets a channel for one that has ended, and soon while the queue is full or limited, whether or not
 * anything is there, or was found to be slow. What is in the hardware when the limit falls stays there,
 * and may cost one reset; what is posted again obeys the limit. The watchdog looks at channels that are
 * idle, too. With the limit the cost of a segment changes in the turns of payers, as far as it is not for
 * their bytes that segments take long: what is shared then is their time.
 *
 * A completion that stands for several segments comes late where each of them is slow: that pause
 * would be taken for a stall. So once there is a limit it stands for a quarter of that at most. Until
 * then, where one flow alone has small segments that take 12 ms or more each, it takes some looks.
 *
 * Only a channel that completes less than its depth in KRC_WINDOW_MS is ever limited, or one that
 * has stood still for a part of the time between two looks, for a second or so. KRC_WINDOW_MIN
 * segments of a target that takes tens of milliseconds for each outlast a lease still, if its peer
 * gives the shortest there are.
 *
 * Locking: krc_channel.lock.
 */
#ifndef KRC_WINDOW_H
#define KRC_WINDOW_H

#include <linux/types.h>

struct krc_channel;

#define KRC_WINDOW_MS 100 /* so long what is in the hardware may take */
#define KRC_WINDOW_MIN 4U /* segments that it may have in any case */
#define KRC_WINDOW_LOOK_MS 50 /* between looks, while it is full or limited */

/**
 * struct krc_sample - When it was asked whose segment the hardware of a channel is at: see
 *	pool/isolation.h.
 * @at: jiffies.
 * @head: krc_channel.head then.
 * @slow: it had been at it for long: it is asked again soon.
 */
struct krc_sample {
	unsigned long at;
	u32 head;
	bool slow;
};

/**
 * struct krc_window - How many segments of a channel the hardware may have.
 * @limit: so many, KRC_WINDOW_MIN to krc_channel.depth; more may be there if it has just fallen.
 *	Read without the lock too, as a hint.
 * @cost: of a segment besides its bytes, in bytes of a turn.
 * @quantum: bytes of a payer's turn: enough for any segment.
 * @unsignaled: a segment whose number plus one has none of these bits is signaled in any case: 0 to
 *	KRC_UNSIGNALED_MAX - 1, a power of two less 1.
 * @soon: the work item that looks runs at @due, or before.
 * @due: jiffies, KRC_WINDOW_LOOK_MS after @soon was set.
 * @known: there was a look since the channel was made, or last did not work.
 * @head: krc_channel.head at the last look.
 * @tail: krc_channel.tail at the last look.
 * @looked: jiffies of the last completion at the last look, or of that.
 * @sample: when it was last asked whose segment the hardware is at.
 *
 * Protected by krc_channel.lock.
 */
struct krc_window {
	u32 limit;
	u32 cost;
	u32 quantum;
	u32 unsignaled;
	bool soon;
	unsigned long due;
	bool known;
	u32 head;
	u32 tail;
	unsigned long looked;
	struct krc_sample sample;
};

/**
 * krc_window_init() - Begin with the whole depth.
 * @ch: channel that is being made; its depth is set.
 *
 * Context: nobody else uses it yet.
 */
void krc_window_init(struct krc_channel *ch);

/**
 * krc_window_begin() - Begin to measure: nothing that was before counts.
 * @ch: channel that has just been filled; its limit stays.
 *
 * Context: channel's lock held.
 */
void krc_window_begin(struct krc_channel *ch);

/**
 * krc_window_look() - Measure how fast segments complete, and set the limit by that.
 * @ch: channel, of which all that is complete has just been polled. Of KRC_CHANNEL_SHARED and
 *	KRC_CHANNEL_ISOLATED; others keep their depth.
 *
 * Does nothing less than half of KRC_WINDOW_LOOK_MS after the last look, and forgets it while the
 * channel does not work.
 * Context: channel's lock held.
 */
void krc_window_look(struct krc_channel *ch);

/**
 * krc_window_full() - Note that nothing more may be posted: look soon whether it completes in time.
 * @ch: channel whose window is not looked at soon anyhow.
 *
 * Begins to measure. Does nothing if no lease of a segment is watched over.
 * Context: channel's lock held.
 */
void krc_window_full(struct krc_channel *ch);

/**
 * krc_window_wanted() - Check whether the channel is to be looked at soon, whatever leases there are.
 * @ch: channel.
 *
 * Context: channel's lock held.
 * Return: whether it is limited, flows are evicted, or somebody in it is slow or isolated.
 */
bool krc_window_wanted(const struct krc_channel *ch);

/**
 * krc_window_ask() - Have the channel be looked at soon, if that is wanted and not so anyhow.
 * @ch: channel.
 *
 * Context: channel's lock held.
 */
void krc_window_ask(struct krc_channel *ch);

/**
 * krc_window_next() - Tell when the work item that looks is to run.
 * @ch: channel.
 * @delay: jiffies until it has something else to do.
 *
 * Notes in krc_window.soon if that is for a look, which channels of the isolated always have; this stays
 * until the work item has run, which no lease puts off.
 * Context: channel's lock held.
 * Return: jiffies until then, at most @delay.
 */
unsigned long krc_window_next(struct krc_channel *ch, unsigned long delay);

/**
 * krc_window_schedule() - Have krc_channel_expire() run when a lease or a look is due.
 * @ch: channel whose lease.bound is set, or krc_window_wanted().
 *
 * Context: channel's lock held.
 */
void krc_window_schedule(struct krc_channel *ch);

#endif /* KRC_WINDOW_H */
