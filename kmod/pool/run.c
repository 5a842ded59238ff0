// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what is noted of segments as they are posted, and runs: requests of a flow that are posted
 * together, with one call of the provider.
 *
 * Nearly all requests are small and have nothing against them, so this is where the instructions of
 * a request go. A run is noted while it is collected, in slots and requests, and counts when the
 * provider has it: nobody looks behind krc_channel.tail. What the provider does not take is undone.
 * Locking: see pool/pool_priv.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>

#include "base/trace.h"
#include "pool/pool_priv.h"
#include "pool/run.h"

/* Have the time to the completion of a leased segment bounded. */
static noinline void krc_channel_bound_by(struct krc_channel *ch, unsigned long expires)
{
	ch->lease.bounded = true;
	ch->lease.bound = expires;
	krc_window_schedule(ch);
}

/* Leased segments have been posted: bound the time to their doorbell and to their completion. */
static __always_inline void krc_channel_bound(struct krc_channel *ch, unsigned long until,
					      unsigned long expires)
{
	if (!ch->lease.unrung || time_before(until, ch->lease.ring_by))
		ch->lease.ring_by = until;
	ch->lease.unrung = true;
	if (unlikely(!ch->lease.bounded || time_before(expires, ch->lease.bound)))
		krc_channel_bound_by(ch, expires);
}

/* How many unsignaled segments come right before the next one: see krc_wqe.behind. */
static __always_inline u8 krc_channel_behind(const struct krc_channel *ch)
{
	const struct krc_wqe *last = &ch->slots[(ch->tail - 1) & ch->mask];

	return last->unsignaled ? last->behind + 1 : 0;
}

/* The next segment, which is about to be counted, is for target @to. */
static __always_inline void krc_channel_aim_next(struct krc_channel *ch,
						 const struct krc_hw_address *to)
{
	bool idle = ch->head == ch->tail;

	if (idle) {
		ch->busy = jiffies;
		WRITE_ONCE(ch->progress, ch->busy);
	}
	if (idle || unlikely(to != ch->aim.by))
		krc_channel_aim(ch, to);
}

void krc_channel_note(struct krc_channel *ch, struct krc_req *req, const struct krc_hw_wr *wr,
		      unsigned long expires)
{
	struct krc_wqe *slot = &ch->slots[ch->tail & ch->mask];

	lockdep_assert_held(&ch->lock);
	krc_channel_aim_next(ch, req->wr.address);
	slot->req = req;
	slot->length = wr->length;
	slot->unsignaled = wr->unsignaled;
	slot->leased = req->leased;
	slot->behind = krc_channel_behind(ch);
	slot->expires = expires;
	if (req->leased)
		krc_channel_bound(ch, req->until, expires);
	WRITE_ONCE(ch->tail, ch->tail + 1);
	WRITE_ONCE(ch->bytes, ch->bytes + wr->length);
}

/**
 * struct krc_run - Requests of a flow that are posted together: each in one piece, all to one target,
 * and with nothing against them that krc_channel_post() would have to see to.
 * @first: the first; the others are linked to it by krc_hw_wr.next.
 * @last: the last.
 * @nr: how many.
 * @bytes: their lengths, added up.
 * @leased: some are leased.
 * @until: when the first of those leases ends.
 * @expires: when the first of them must be out of the hardware.
 */
struct krc_run {
	struct krc_req *first;
	struct krc_req *last;
	u32 nr;
	u32 bytes;
	bool leased;
	unsigned long until;
	unsigned long expires;
};

/*
 * Whether a leased request may be posted now: others have mostly the same lease as the last one.
 * @expires: when it must be out of the hardware.
 */
static __always_inline bool krc_run_lease(struct krc_run *run, const struct krc_req *req,
					  unsigned long expires, unsigned long now,
					  unsigned long progress)
{
	unsigned long until = req->until;

	if (likely(run->leased && until == run->until && expires == run->expires))
		return true;
	if (time_after(now, until) || time_after(now, progress + req->stay))
		return false;
	if (!run->leased || time_before(until, run->until))
		run->until = until;
	if (!run->leased || time_before(expires, run->expires))
		run->expires = expires;
	run->leased = true;
	return true;
}

/* Note a request as posted as segment @tail, which nobody looks at before krc_channel.tail says so. */
static __always_inline void krc_run_note(struct krc_wqe *slot, struct krc_req *req, u32 tail,
					 u8 behind, bool unsignaled, unsigned long expires)
{
	u32 length = req->wr.length;

	slot->req = req;
	slot->length = length;
	slot->unsignaled = unsignaled;
	slot->leased = req->leased;
	slot->behind = behind;
	slot->expires = expires;
	req->wr.cookie = tail;
	req->wr.unsignaled = unsignaled;
	req->state = KRC_REQ_POSTED;
	req->fenced = true;
	req->begun = true;
	req->slots = 1;
	req->next = length;
}

/* Collect requests of a flow. Leases are looked at once more by krc_channel_ring(). */
static __always_inline struct krc_run krc_run_collect(struct krc_channel *ch, struct krc_flow *flow)
{
	u32 tail = ch->tail, deficit = flow->deficit, cost = ch->window.cost;
	u32 mask = ch->window.unsignaled;
	s32 room = ch->window.limit - (tail - ch->head); /* less than 0: it has just fallen */
	u32 end = tail + max(room, 0);
	unsigned long now = jiffies, progress = ch->head == tail ? now : ch->progress;
	u32 window = KRC_WINDOW_BYTES - min(ch->bytes, KRC_WINDOW_BYTES), left = window;
	struct krc_run run = {}; /* nobody else has its address: it is in registers */
	u8 behind = krc_channel_behind(ch);
	const struct krc_hw_address *to;
	struct krc_req *req, *next;

	run.first = list_first_entry(&flow->waiting, struct krc_req, list);
	to = run.first->wr.address;
	list_for_each_entry_safe(req, next, &flow->waiting, list) {
		unsigned long expires = req->until + req->stay;
		u32 length = req->wr.length;
		bool unsignaled;

		if (tail == end || length > KRC_SEGMENT_BYTES || deficit < length + cost ||
		    length > left)
			break;
		if (req->begun || req->status || req->wr.opcode == KRC_HW_SEND ||
		    req->wr.address != to)
			break;
		if (req->leased ? !krc_run_lease(&run, req, expires, now, progress) : !!flow->check)
			break;
		unsignaled = krc_channel_unsignaled(flow, next, length, tail, mask);
		krc_run_note(&ch->slots[tail & ch->mask], req, tail, behind, unsignaled, expires);
		req->since = now;
		req->wr.next = &next->wr; /* not followed from the last one */
		behind = unsignaled ? behind + 1 : 0;
		run.last = req;
		deficit -= length + cost;
		left -= length;
		tail++;
	}
	run.nr = tail - ch->tail;
	run.bytes = window - left;
	return run;
}

/* Have the provider append a run. Return: how many it took, or an errno: none. */
static __always_inline int krc_run_append(struct krc_channel *ch, const struct krc_run *run)
{
	const struct krc_provider_ops *ops = ch->pool->ops;
	const struct krc_hw_wr *wr = &run->first->wr;
	int n, err;

	if (likely(ops->post_many))
		return ops->post_many(ch->hw, wr, run->nr);
	for (n = 0; n < (int)run->nr; n++, wr = wr->next) {
		err = ops->post(ch->hw, wr);
		if (err)
			return n ?: err;
	}
	return n;
}

/* The provider took only @taken requests of a run: the others wait as before. Return: what it took. */
static noinline struct krc_run krc_run_cut(struct krc_run run, u32 taken)
{
	struct krc_req *req = run.first;
	u32 n;

	for (n = 0; n < run.nr; n++, req = list_next_entry(req, list)) {
		if (n < taken) {
			run.last = req;
			continue;
		}
		run.bytes -= req->wr.length;
		req->state = KRC_REQ_WAITING;
		req->fenced = false;
		req->begun = false;
		req->slots = 0;
		req->next = 0;
	}
	run.nr = taken;
	return run;
}

static noinline void krc_run_trace(const struct krc_channel *ch, const struct krc_req *first,
				   u32 nr)
{
	const struct krc_hw_wr *wr = &first->wr;

	for (; nr; nr--, wr = wr->next)
		trace_krc_post(ch->pool->rail, ch->index, wr);
}

/* A run has been appended: the channel and the flow have it. */
static __always_inline void krc_run_posted(struct krc_channel *ch, struct krc_flow *flow,
					   const struct krc_run *run)
{
	LIST_HEAD(posted);

	if (trace_krc_post_enabled())
		krc_run_trace(ch, run->first, run->nr);
	krc_channel_aim_next(ch, run->first->wr.address);
	if (run->leased)
		krc_channel_bound(ch, run->until, run->expires);
	WRITE_ONCE(ch->tail, ch->tail + run->nr);
	WRITE_ONCE(ch->bytes, ch->bytes + run->bytes);
	ch->stats.posted += run->nr;
	list_cut_position(&posted, &flow->waiting, &run->last->list); /* perhaps all of them */
	list_splice_tail(&posted, &flow->flight);
	flow->posted += run->nr;
	flow->deficit -= run->bytes + run->nr * ch->window.cost;
	if (list_empty(&flow->waiting) && !list_empty(&flow->list))
		krc_flow_deactivate(ch, flow);
}

int krc_channel_post_plain(struct krc_channel *ch, struct krc_flow *flow)
{
	struct krc_run run;
	int taken;

	lockdep_assert_held(&ch->lock);
	if ((flow->check && !flow->lapses) || list_empty(&flow->waiting))
		return 0;
	run = krc_run_collect(ch, flow);
	if (!run.nr)
		return 0;
	ch->posting = flow;
	taken = krc_run_append(ch, &run);
	if (unlikely(taken != (int)run.nr))
		run = krc_run_cut(run, taken > 0 ? taken : 0);
	if (run.nr)
		krc_run_posted(ch, flow, &run);
	return taken;
}
