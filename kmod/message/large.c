// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: READs of large messages into memory of programs.
 *
 * The machine is asked before each part of a READ is handed to the hardware: the peer must have
 * been heard within the lease of its ANNOUNCE. If it was not, the READ is held, the machine asks
 * the peer, and what is heard lets the READ go on. When something was heard is not known but that
 * it was after the receive queue was last seen empty; so that is looked at before the peer is
 * asked, and its answer counts as later. The pool bounds how long it may be in the hardware.
 *
 * A READ without an answer is a loss like that of a SEND: a peer or a network that stood still does
 * not end a message whose connection lives on. It is done again when the peer has been heard since,
 * and a few times at most: what answers SENDs may not answer READs. A peer that refuses what it has
 * announced costs all flows of a channel a reset; one that is barred for it (pool/silence.h) is READ
 * no more: the READ fails at once, as if it had been refused.
 *
 * A message that fits a place which its program has posted (krc_inbox.place) is READ there as soon as
 * it is announced, by the runner of its stream; not that of a peer which does not answer, or is barred.
 * Locking: krc_stream.lock, also inside of a channel's lock, from krc_flow.check.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>

#include "krp_ioctl.h"
#include "message/message_priv.h"

/* The READ of a large message, if there is one. */
static struct krc_large *krc_large_of(const struct krc_stream *st, u64 seq)
{
	struct krc_large *large;

	lockdep_assert_held(&st->lock);
	list_for_each_entry(large, &st->in.larges, list)
		if (large->seq == seq)
			return large;
	return NULL;
}

/* krc_flow.check: may the next part be posted? */
static int krc_large_check(struct krc_req *req)
{
	struct krc_large *large = container_of(req, struct krc_large, req);
	struct krc_stream *st = large->stream;
	u64 now_ns = ktime_get_ns(), left_ns;
	const struct krp_fetch *f;
	int err;

	spin_lock(&st->lock);
	err = krp_stream_fetch(&st->s, now_ns, large->seq);
	if (!err && st->s.time.heard_ns < large->failed_ns) {
		krp_stream_inquire(&st->s, now_ns);
		err = -EAGAIN;
	}
	if (!err) {
		f = krp_stream_fetch_of(&st->s, large->seq);
		left_ns = f->lease_ms * KRP_STREAM_NS_PER_MS - (now_ns - st->s.time.heard_ns);
		req->until = jiffies + nsecs_to_jiffies(left_ns);
	} else if (err == -EAGAIN) {
		large->held = true;
		st->proof.reads_held = true;
	}
	spin_unlock(&st->lock);
	if (err == -EAGAIN)
		krc_stream_kick(st); /* to ask the peer */
	return err == -ENOENT ? -ECANCELED : err;
}

/* A READ is over, stream locked. One that may not go on ends as its connection, if that has died. */
static void krc_large_over(struct krc_stream *st, struct krc_large *large, int err)
{
	if (err == -ECANCELED && st->s.error && !st->end.closed)
		err = st->s.error;
	large->err = err;
	if (err || !large->keep || st->end.closed)
		krp_stream_fetched(&st->s, large->seq, err ? KRP_REFUSE_FAULT : 0);
	list_move_tail(&large->list, &st->in.larges_ended);
	st->run.events |= KRC_EVENT_LARGE;
	krc_stream_pull(st);
}

/* Whether a READ that has ended is to be done again: its runner sees to it, krc_large_tell(). */
static bool krc_large_repeats(struct krc_stream *st, struct krc_large *large)
{
	lockdep_assert_held(&st->lock);
	if (!large->req.status || large->req.fault != KRC_FAULT_TIMEOUT ||
	    large->tries >= KRC_LARGE_TRIES || st->end.closed || !krp_stream_live(st->s.state))
		return false;
	large->tries++;
	large->failed_ns = ktime_get_ns();
	large->due |= KRC_LARGE_AGAIN;
	st->run.events |= KRC_EVENT_LARGE;
	return true;
}

/* The pool is done with it: krc_flow.done. */
static void krc_large_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_large *large = container_of(flow, struct krc_large, flow);
	struct krc_stream *st = large->stream;

	list_del_init(&large->req.list);
	if (large->req.fault == KRC_FAULT_ACCESS) /* of what the peer has announced */
		krc_standing_refused(st->proof.standing);
	spin_lock_bh(&st->lock);
	/* without a fault: its target is barred, and nothing is posted to that */
	if (large->req.status == -ETIMEDOUT && large->req.fault == KRC_FAULT_NONE)
		large->req.status = krp_stream_live(st->s.state) ? -EREMOTEIO : -ECANCELED;
	if (!krc_large_repeats(st, large))
		krc_large_over(st, large, large->req.status);
	spin_unlock_bh(&st->lock);
	krc_stream_kick(st);
}

static void krc_large_prepare(struct krc_stream *st, struct krc_large *large,
			      const struct krp_fetch *f)
{
	struct krc_req *req = &large->req;

	memset(req, 0, sizeof(*req));
	req->wr.address = &st->address;
	req->wr.remote_addr = f->addr + large->offset;
	req->wr.rkey = f->rkey;
	req->wr.local_addr = large->local_addr;
	req->wr.lkey = large->lkey;
	req->wr.length = large->length;
	req->wr.opcode = KRP_OP_READ;
	req->leased = true;
	req->until = jiffies; /* krc_large_check() says */
	req->stay = msecs_to_jiffies(st->m->rail->margin_ms / 2);
}

/* Whether a part of a message may be READ now, stream locked. Return: 0, or why not. */
static int krc_large_refuses(struct krc_stream *st, u64 seq, u64 offset, u32 length)
{
	const struct krp_fetch *f = krp_stream_fetch_of(&st->s, seq);

	if (!f || f->state > KRP_FETCH_READING || st->end.closed || !krp_stream_live(st->s.state))
		return -ENOENT;
	if (krc_large_of(st, seq))
		return -EBUSY;
	return offset + length > f->length || offset > f->length ? -EINVAL : 0;
}

/* Take a READ in, stream locked, which krc_large_refuses() does not. */
static void krc_large_begin(struct krc_stream *st, struct krc_large *large)
{
	large->stream = krc_stream_get(st);
	large->held = false;
	large->due = 0;
	large->tries = 0;
	large->failed_ns = 0;
	large->err = 0;
	krc_flow_init(&large->flow, st->m->pool, krc_large_done, krc_large_check);
	large->flow.payer = st->share->payer;
	large->flow.standing = st->proof.standing; /* as long as the stream */
	krc_large_prepare(st, large, krp_stream_fetch_of(&st->s, large->seq));
	list_add_tail(&large->list, &st->in.larges);
	if (!large->length)
		krc_large_over(st, large, 0);
}

/* Hand a READ to the pool, or end it; @again: after one that has failed. */
static void krc_large_submit(struct krc_stream *st, struct krc_large *large, bool again)
{
	LIST_HEAD(reqs);
	int err = -ENODEV;

	list_add_tail(&large->req.list, &reqs);
	if (krc_rail_enter(st->m->rail)) {
		if (again)
			krc_flow_restart(&large->flow);
		err = krc_flow_submit(&large->flow, &reqs, NULL);
		krc_rail_exit(st->m->rail);
	}
	if (!err)
		return;
	list_del_init(&large->req.list);
	spin_lock_bh(&st->lock);
	krc_large_over(st, large, err);
	spin_unlock_bh(&st->lock);
}

int krc_stream_fetch(struct krc_stream *st, struct krc_large *large)
{
	bool read = large->length;
	int err;

	spin_lock_bh(&st->lock);
	err = krc_large_refuses(st, large->seq, large->offset, large->length);
	if (!err) {
		krc_large_begin(st, large);
		krc_stream_get(st); /* whoever is told of its end may close the stream */
	}
	spin_unlock_bh(&st->lock);
	if (err)
		return err;
	if (read)
		krc_large_submit(st, large, false);
	krc_stream_run(st);
	krc_stream_put(st);
	return 0;
}

void krc_large_place(struct krc_stream *st, struct krc_letter *letter)
{
	struct krc_inbox *inbox = st->inbox;
	struct krc_large *large;
	u64 seq = letter->seq;

	lockdep_assert_held(&st->lock);
	if (!inbox->place || krc_large_refuses(st, seq, 0, letter->length))
		return;
	if (krc_standing_now(st->proof.standing) == KRC_STANDING_SILENT)
		return; /* it would take places up, and let none be READ */
	large = inbox->place(inbox, letter);
	if (!large)
		return;
	large->seq = seq;
	large->offset = 0;
	large->length = letter->length;
	large->keep = false;
	krc_large_begin(st, large);
	large->due = KRC_LARGE_BEGIN;
	letter->posted = true;
	st->run.events |= KRC_EVENT_LARGE;
}

int krc_stream_discard(struct krc_stream *st, u64 seq)
{
	int err = -EBUSY;

	spin_lock_bh(&st->lock);
	if (!krc_large_of(st, seq))
		err = krp_stream_fetched(&st->s, seq, KRP_REFUSE_DISCARDED);
	krc_stream_pull(st);
	krc_stream_get(st); /* whoever is told of what this ends may close the stream */
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	krc_stream_put(st);
	return err;
}

void krc_large_unwant(struct krc_stream *st)
{
	u32 i;

	lockdep_assert_held(&st->lock);
	for (i = 0; i < st->s.larges; i++) {
		const struct krp_fetch *f = &st->s.fetch[i];

		if ((f->state == KRP_FETCH_OFFERED || f->state == KRP_FETCH_READING) &&
		    !krc_large_of(st, f->seq))
			krp_stream_fetched(&st->s, f->seq, KRP_REFUSE_DISCARDED);
	}
}

/* Let go of all READs that are held now; check() may hold them again. */
static void krc_large_unhold(struct krc_stream *st)
{
	struct krc_large *large;

	spin_lock_bh(&st->lock);
	list_for_each_entry(large, &st->in.larges, list) {
		if (large->held)
			large->due |= KRC_LARGE_RESUME;
		large->held = false;
	}
	st->proof.reads_held = false;
	spin_unlock_bh(&st->lock);
}

/* Return: a READ with which @what is to be done, KRC_LARGE_*, once; NULL: there is none. */
static struct krc_large *krc_large_next(struct krc_stream *st, u8 what)
{
	struct krc_large *large;

	spin_lock_bh(&st->lock);
	list_for_each_entry(large, &st->in.larges, list) {
		if (!(large->due & what))
			continue;
		large->due &= ~what;
		spin_unlock_bh(&st->lock);
		return large;
	}
	spin_unlock_bh(&st->lock);
	return NULL;
}

void krc_large_resume(struct krc_stream *st)
{
	struct krc_large *large;

	/* the pool ends it if the port does; end() is called by this task only, so it stays */
	if (!krc_rail_enter(st->m->rail))
		return;
	krc_large_unhold(st);
	while ((large = krc_large_next(st, KRC_LARGE_RESUME)))
		krc_flow_resume(&large->flow);
	krc_rail_exit(st->m->rail);
}

/* Do a READ again. The flow lets it begin when the peer has been heard. */
static void krc_large_repeat(struct krc_stream *st, struct krc_large *large)
{
	const struct krp_fetch *f;

	krc_flow_drain(&large->flow); /* until done() has returned */
	spin_lock_bh(&st->lock);
	f = krp_stream_fetch_of(&st->s, large->seq);
	if (f)
		krc_large_prepare(st, large, f);
	else
		krc_large_over(st, large, -ECANCELED);
	spin_unlock_bh(&st->lock);
	if (f)
		krc_large_submit(st, large, true);
}

void krc_large_tell(struct krc_stream *st)
{
	struct krc_large *large;

	while ((large = krc_large_next(st, KRC_LARGE_BEGIN)))
		krc_large_submit(st, large, false);
	while ((large = krc_large_next(st, KRC_LARGE_AGAIN))) /* for KRC_LARGE_TRIES times each */
		krc_large_repeat(st, large);
	for (;;) {
		spin_lock_bh(&st->lock);
		large = list_first_entry_or_null(&st->in.larges_ended, struct krc_large, list);
		if (large)
			list_del_init(&large->list);
		spin_unlock_bh(&st->lock);
		if (!large)
			return;
		krc_flow_drain(&large->flow); /* until done() has returned */
		krc_flow_release(&large->flow);
		large->end(large, large->err);
		krc_stream_put(st);
	}
}
