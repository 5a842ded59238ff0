/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the notes of segments that are posted, and runs of requests that are posted together.
 */
#ifndef KRC_RUN_H
#define KRC_RUN_H

#include "pool/pool_priv.h"

/**
 * krc_channel_unsignaled() - Whether a segment may be unsignaled: the next one of its flow is as
 * small.
 * @flow: its flow.
 * @next: what is behind its request in krc_flow.waiting; its head, taken for a request, if nothing is.
 * @length: bytes of the segment.
 * @tail: its number.
 * @mask: krc_window.unsignaled.
 *
 * Context: channel's lock held.
 * Return: whether it may.
 */
static inline bool krc_channel_unsignaled(const struct krc_flow *flow, const struct krc_req *next,
					  u32 length, u32 tail, u32 mask)
{
	return length < KRC_UNSIGNALED_BYTES && ((tail + 1) & mask) &&
	       !list_entry_is_head(next, &flow->waiting, list) &&
	       next->wr.length - next->next < KRC_UNSIGNALED_BYTES;
}

/**
 * krc_channel_note() - Note a segment that has been posted in its slot.
 * @ch: channel.
 * @req: request that it is a part of.
 * @wr: the segment.
 * @expires: jiffies by which it must be out of the hardware, if @req is leased.
 *
 * Context: channel's lock held.
 */
void krc_channel_note(struct krc_channel *ch, struct krc_req *req, const struct krc_hw_wr *wr,
		      unsigned long expires);

/**
 * krc_channel_post_plain() - Post requests of a flow as long as each can be posted in one piece and
 * has nothing against it: no check() of its own, no failure, no lease that is over, and room.
 * @ch: channel.
 * @flow: flow that is on it; what it may post is in krc_flow.deficit.
 *
 * Those that are posted leave krc_flow.waiting together. To one target only: call it again for the
 * others. Context: channel's lock held.
 * Return: how many; 0: the first is not such a request; or an errno: what the provider has against the
 * first.
 */
int krc_channel_post_plain(struct krc_channel *ch, struct krc_flow *flow);

#endif /* KRC_RUN_H */
