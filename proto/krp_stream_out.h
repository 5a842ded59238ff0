/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The half of a connection's machine that says what is to be done: events, and what is sent.
 * Normative together with krp_stream.h, whose head explains it.
 */
#ifndef KRP_STREAM_OUT_H
#define KRP_STREAM_OUT_H

#include "krp_stream_state.h"

/** krp_stream_waits() - Whether the peer has to be asked if it is silent. @s: connection.
 * Context: any. Return: 1 or 0.
 */
static inline int krp_stream_waits(const struct krp_stream *s)
{
	__u32 i;

	if (s->state == KRP_STREAM_OPENING)
		return 1;
	if (!krp_stream_live(s->state))
		return 0;
	for (i = 0; i < s->larges; i++)
		if (s->hold[i].state == KRP_HOLD_HELD || s->fetch[i].state == KRP_FETCH_ENDED)
			return 1;
	return s->tx.una < s->tx.next || s->starved || s->asking || s->owe.close ||
	       krp_stream_unconfirmed(s);
}

/** krp_stream_arm() - Set the alarm if something is awaited and none is set. @s: connection.
 * @now_ns: the clock. Context: any.
 */
static inline void krp_stream_arm(struct krp_stream *s, __u64 now_ns)
{
	if (!krp_stream_waits(s))
		s->time.retry_at_ns = KRP_STREAM_FOREVER_NS;
	else if (s->time.retry_at_ns == KRP_STREAM_FOREVER_NS)
		s->time.retry_at_ns = now_ns + s->time.pause_ns;
}

/** krp_stream_back_off() - Make the next pause longer. @s: connection. Context: any. */
static inline void krp_stream_back_off(struct krp_stream *s)
{
	s->time.pause_ns *= 2;
	if (s->time.pause_ns > s->conf->retry_max_ns)
		s->time.pause_ns = s->conf->retry_max_ns;
}

/** krp_stream_push() - Give a message its number. @s: connection, with a slot for it.
 * @slot: message. Context: any.
 */
static inline void krp_stream_push(struct krp_stream *s, const struct krp_stream_slot *slot)
{
	*krp_stream_at(s, s->tx.next++) = *slot;
	if (!krp_stream_windowed(slot))
		return;
	s->tx.msgs++;
	s->tx.units += krp_message_units(slot->type, slot->length);
}

/** krp_stream_hold_ns() - When no READ of the peer can come any more. @s: connection.
 * Context: any. Return: ns.
 */
static inline __u64 krp_stream_hold_ns(const struct krp_stream *s)
{
	__u64 ms = s->conf->lease_ms + 2ULL * s->conf->margin_ms;

	if (s->other_generation)
		return 0;
	if (s->posting)
		return KRP_STREAM_FOREVER_NS;
	return s->time.posted_ns + ms * KRP_STREAM_NS_PER_MS;
}

/**
 * krp_stream_die() - The connection has failed.
 * @s: connection.
 * @now_ns: the clock.
 * @err: negative errno.
 * @other_generation: the peer has another generation.
 *
 * Context: any.
 */
static inline void krp_stream_die(struct krp_stream *s, __u64 now_ns, int err, int other_generation)
{
	__u32 i;

	if (!krp_stream_enter(s, KRP_STREAM_DEAD))
		return;
	s->error = err;
	s->other_generation = (__u8) !!other_generation;
	for (i = 0; i < s->larges; i++) {
		struct krp_hold *h = &s->hold[i];
		struct krp_fetch *f = &s->fetch[i];

		if (h->state == KRP_HOLD_HELD) {
			h->err = err;
			h->state = h->seq < s->tx.high ? KRP_HOLD_HELD : KRP_HOLD_ENDED;
		}
		if (f->state == KRP_FETCH_OFFERED)
			f->state = KRP_FETCH_VOID;
		else if (f->state == KRP_FETCH_ENDED)
			f->state = KRP_FETCH_FREE;
	}
	s->tx.acked = s->tx.una;
	s->tx.una = s->tx.next;
	s->tx.sent = s->tx.next;
	s->tx.high = s->tx.next;
	s->owe.close = 0;
	s->starved = 0;
	s->asking = 0;
	s->time.doom_ns = 0;
	s->news |= 1U << KRP_STREAM_DIED;
	krp_stream_arm(s, now_ns);
}

/** krp_stream_linger() - See whether CLOSING or LINGER is over. @s: connection. @now_ns: the clock.
 * Context: any.
 */
static inline void krp_stream_linger(struct krp_stream *s, __u64 now_ns)
{
	if (s->state == KRP_STREAM_CLOSING && s->tx.una == s->tx.next && !s->owe.close &&
	    !krp_stream_holds(s) && !krp_stream_fetches(s)) {
		krp_stream_enter(s, KRP_STREAM_LINGER);
		s->time.forget_ns = now_ns + s->conf->linger_ns;
		krp_stream_arm(s, now_ns);
	}
	if (s->state == KRP_STREAM_LINGER && now_ns >= s->time.forget_ns &&
	    krp_stream_enter(s, KRP_STREAM_GONE))
		s->news |= 1U << KRP_STREAM_FORGET;
}

/** krp_stream_bury() - See whether DEAD is over. @s: connection, DEAD. @now_ns: the clock.
 * Context: any.
 */
static inline void krp_stream_bury(struct krp_stream *s, __u64 now_ns)
{
	__u32 i;

	for (i = 0; i < s->larges; i++)
		if (s->hold[i].state == KRP_HOLD_HELD && now_ns >= krp_stream_hold_ns(s))
			s->hold[i].state = KRP_HOLD_ENDED;
	if (s->news || s->owe.refuse || s->tx.told != s->tx.next || krp_stream_holds(s) ||
	    krp_stream_fetches(s))
		return;
	krp_stream_enter(s, KRP_STREAM_GONE);
	s->news |= 1U << KRP_STREAM_FORGET;
}

/** krp_stream_ask() - Say again what needs an answer. @s: connection, live. Context: any. */
static inline void krp_stream_ask(struct krp_stream *s)
{
	__u32 i;

	/* an opener that has not heard ACCEPT understands nothing else */
	if (krp_stream_unconfirmed(s))
		s->owe.accept = 1;
	s->owe.probe = !s->owe.accept;
	for (i = 0; i < s->larges; i++) {
		s->fetch[i].due = s->fetch[i].state == KRP_FETCH_ENDED;
		if (s->hold[i].cancel)
			s->hold[i].cancel |= KRP_HOLD_DUE;
	}
}

/** krp_stream_silent() - Whether the peer has been silent for too long. @s: connection.
 * @now_ns: the clock. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_silent(const struct krp_stream *s, __u64 now_ns)
{
	__u64 silence_ns = s->conf->silence_ns;

	if (s->state == KRP_STREAM_OPENING && now_ns - s->time.since_ns >= KRP_STREAM_OPEN_NS)
		return 1;
	if ((s->state != KRP_STREAM_OPENING && !krp_stream_live(s->state)) ||
	    s->state == KRP_STREAM_LINGER)
		return 0;
	/* an opener repeats its OPEN for no longer, so it is not there any more */
	if (krp_stream_unconfirmed(s) && (!silence_ns || silence_ns > KRP_STREAM_OPEN_NS))
		silence_ns = KRP_STREAM_OPEN_NS;
	return silence_ns && s->time.asked_ns && now_ns - s->time.asked_ns >= silence_ns;
}

/** krp_stream_doom() - Give up a peer that is silent, at the second look. @s: connection.
 * @now_ns: the clock.
 *
 * The first look may be that of a caller that has stood still, and has the answer in its receive
 * queue: it gets the time to say so.
 *
 * Context: any.
 */
static inline void krp_stream_doom(struct krp_stream *s, __u64 now_ns)
{
	if (!krp_stream_silent(s, now_ns))
		s->time.doom_ns = 0;
	else if (!s->time.doom_ns)
		s->time.doom_ns = now_ns + s->conf->retry_ns;
	else if (now_ns >= s->time.doom_ns)
		krp_stream_die(s, now_ns, -ETIMEDOUT, 0);
}

/** krp_stream_inquires() - Ask the peer, unless it is being asked. @s: connection, live.
 * krp_stream_arm() is to follow. Context: any.
 */
static inline void krp_stream_inquires(struct krp_stream *s)
{
	s->owe.probe |= !s->time.asked_ns;
	s->asking = 1;
}

/** krp_stream_idle_ns() - When the peer is asked though nothing is awaited of it. @s: connection.
 * Context: any. Return: ns.
 */
static inline __u64 krp_stream_idle_ns(const struct krp_stream *s)
{
	if (!krp_stream_live(s->state) || s->state == KRP_STREAM_LINGER || s->asking)
		return KRP_STREAM_FOREVER_NS;
	return s->time.idle_at_ns;
}

/** krp_stream_due() - Do what the clock says. @s: connection. @now_ns: the clock. Context: any. */
static inline void krp_stream_due(struct krp_stream *s, __u64 now_ns)
{
	/* its opener has given up, and has forgotten it */
	if (s->state == KRP_STREAM_OFFERED && now_ns - s->time.since_ns >= KRP_STREAM_OPEN_NS)
		krp_stream_die(s, now_ns, -ETIMEDOUT, 0);
	krp_stream_doom(s, now_ns);
	krp_stream_linger(s, now_ns);
	if (now_ns >= krp_stream_idle_ns(s))
		krp_stream_inquires(s);
	krp_stream_arm(s, now_ns);
	if (now_ns < s->time.retry_at_ns)
		return;
	if (s->state == KRP_STREAM_OPENING)
		s->tx.sent = s->tx.una;
	else
		krp_stream_ask(s);
	s->time.retry_at_ns = now_ns + s->time.pause_ns;
	krp_stream_back_off(s);
}

/** krp_stream_ended() - Say the end of a message. @s: connection. @ret: filled. Context: any.
 * Return: 0: there is none.
 */
static inline int krp_stream_ended(struct krp_stream *s, struct krp_stream_todo *ret)
{
	while (s->tx.told < s->tx.una) {
		const struct krp_stream_slot *slot = krp_stream_at(s, s->tx.told);
		__u64 seq = s->tx.told++;

		if (!krp_stream_windowed(slot) || slot->type == KRP_MESSAGE_ANNOUNCE)
			continue;
		ret->what = KRP_STREAM_COMPLETE;
		ret->cookie = slot->cookie;
		ret->err = s->error && seq >= s->tx.acked ? s->error : 0;
		return 1;
	}
	return 0;
}

/** krp_stream_end_fetch() - An announcement of the peer is over. @s: connection. @f: it.
 * @status: of DONE. Context: any.
 */
static inline void krp_stream_end_fetch(const struct krp_stream *s, struct krp_fetch *f,
					__u32 status)
{
	f->status = (__u8)status;
	f->due = 1;
	f->state = s->state == KRP_STREAM_DEAD ? KRP_FETCH_FREE : KRP_FETCH_ENDED;
}

/** krp_stream_large() - Say what has become of a large message. @s: connection. @ret: filled.
 * Context: any. Return: 0: there is none.
 */
static inline int krp_stream_large(struct krp_stream *s, struct krp_stream_todo *ret)
{
	__u32 i;

	for (i = 0; i < s->larges; i++) {
		struct krp_hold *h = &s->hold[i];
		struct krp_fetch *f = &s->fetch[i];

		if (h->state == KRP_HOLD_ENDED) {
			ret->what = KRP_STREAM_RELEASE;
			ret->cookie = h->cookie;
			ret->err = h->err;
			memset(h, 0, sizeof(*h));
			return 1;
		}
		if (f->state == KRP_FETCH_VOID) {
			ret->what = KRP_STREAM_WITHDRAWN;
			ret->number = f->seq;
			krp_stream_end_fetch(s, f, KRP_REFUSE_CANCELLED);
			return 1;
		}
	}
	return 0;
}

/** krp_stream_event() - Say what has happened. @s: connection. @now_ns: the clock. @ret: filled.
 * Context: any. Return: 0: nothing.
 */
static inline int krp_stream_event(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret)
{
	unsigned int what = KRP_STREAM_OPENED;

	if (krp_stream_ended(s, ret) || krp_stream_large(s, ret))
		return 1;
	if (!s->news)
		return 0;
	while (!(s->news >> what & 1))
		what++;
	s->news &= ~(1U << what);
	ret->what = (enum krp_stream_do)what;
	ret->err = what == KRP_STREAM_DIED ? s->error : 0;
	ret->number = what == KRP_STREAM_PASS ? krp_le64_to_cpu(s->open.pass) : 0;
	if (what != KRP_STREAM_FORGET || s->opener ||
	    now_ns - s->time.since_ns >= KRP_STREAM_KNOWN_NS)
		return 1;
	ret->until_ns = s->time.since_ns + KRP_STREAM_KNOWN_NS;
	ret->number = s->said ? s->said : KRP_REFUSE_ABORT;
	return 1;
}

/** krp_stream_stock() - Give CLOSE its number, if it is due. @s: connection, of which every end
 * of a message has been told. Context: any.
 */
static inline void krp_stream_stock(struct krp_stream *s)
{
	struct krp_stream_slot slot;

	memset(&slot, 0, sizeof(slot));
	slot.type = KRP_MESSAGE_CLOSE;
	if (s->owe.close)
		krp_stream_push(s, &slot);
	s->owe.close = 0;
}

/** krp_stream_grant() - How much the peer may have sent in all, now. @s: connection.
 * @ret_units: the same in units. Context: any. Return: messages.
 */
static inline __u32 krp_stream_grant(const struct krp_stream *s, __u32 *ret_units)
{
	__u32 msgs = s->rx.used_msgs + s->rx.budget_msgs,
	      units = s->rx.used_units + s->rx.budget_units;

	if ((__s32)(msgs - s->rx.told_msgs) < 0)
		msgs = s->rx.told_msgs;
	if ((__s32)(units - s->rx.told_units) < 0 || !s->rx.budget_msgs)
		units = s->rx.told_units;
	*ret_units = units;
	return msgs;
}

/** krp_stream_held() - What krp_message.held says. @s: connection. Context: any. Return: it. */
static inline __u16 krp_stream_held(const struct krp_stream *s)
{
	__u32 i, held = 0;

	for (i = 0; i < s->larges; i++)
		held |= s->hold[i].state == KRP_HOLD_HELD ? 1U << i : 0U;
	return (__u16)held;
}

/**
 * krp_stream_fill() - Make a header, which tells all that a header tells.
 * @s: connection.
 * @now_ns: the clock.
 * @ret: filled; SEND.
 * @type: KRP_MESSAGE_*.
 * @flags: krp_message.flags.
 *
 * Context: any.
 */
static inline void krp_stream_fill(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret,
				   unsigned int type, unsigned int flags)
{
	struct krp_message *m = &ret->packet;

	ret->what = KRP_STREAM_SEND;
	ret->bytes = (__u32)sizeof(*m) + krp_message_body(type);
	m->magic = krp_cpu_to_le16(KRP_MESSAGE_MAGIC);
	m->version = KRP_MESSAGE_VERSION;
	m->type = (__u8)type;
	m->flags = (__u8)flags;
	m->tag = krp_cpu_to_le64(type == KRP_MESSAGE_OPEN ? 0 : s->peer_tag);
	m->src = krp_cpu_to_le32(s->src);
	m->dst = krp_cpu_to_le32(s->dst);
	m->generation = krp_cpu_to_le64(s->generation);
	/* REFUSE ends the peer's READs; having it repeated must not make us hold memory */
	if (!krp_message_bare(type) || KRP_MUTANT("refuse holds"))
		s->time.posted_ns = now_ns;
	if (krp_message_bare(type))
		return;
	if (type != KRP_MESSAGE_OPEN)
		m->held = krp_cpu_to_le16(krp_stream_held(s));
	s->rx.told_msgs = krp_stream_grant(s, &s->rx.told_units);
	m->seq = krp_cpu_to_le64(s->tx.high);
	m->ack = krp_cpu_to_le64(s->rx.expect +
				 (type != KRP_MESSAGE_OPEN && KRP_MUTANT("acknowledge ahead")));
	m->msgs = krp_cpu_to_le32(s->rx.told_msgs);
	m->units = krp_cpu_to_le32(s->rx.told_units);
	s->rx.told_ack = s->rx.expect;
	s->time.ack_at_ns = KRP_STREAM_FOREVER_NS;
	s->owe.hurry = 0;
	s->owe.answer = 0;
}

/** krp_stream_pump() - Send the next numbered message, if one may go now. @s: connection.
 * @now_ns: the clock. @ret: filled. Context: any. Return: 0: none.
 */
static inline int krp_stream_pump(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret)
{
	const struct krp_stream_slot *slot = krp_stream_at(s, s->tx.sent);

	if (s->tx.sent == s->tx.next || now_ns < s->time.off_ns ||
	    (slot->type == KRP_MESSAGE_OPEN && now_ns - s->time.since_ns >= KRP_STREAM_OPEN_NS))
		return 0;
	krp_stream_fill(s, now_ns, ret, slot->type, slot->flags);
	ret->packet.seq = krp_cpu_to_le64(s->tx.sent);
	ret->packet.length = krp_cpu_to_le32(slot->length);
	ret->packet.imm = krp_cpu_to_le32(slot->imm);
	ret->cookie = slot->cookie;
	ret->payload = krp_message_payload(&ret->packet);
	switch (slot->type) {
	case KRP_MESSAGE_OPEN:
		ret->body.open = s->open;
		s->time.asked_ns = s->time.asked_ns ? s->time.asked_ns : now_ns;
		break;
	case KRP_MESSAGE_ANNOUNCE:
		ret->body.announce.addr = krp_cpu_to_le64(slot->addr);
		ret->body.announce.slot = slot->hold;
		ret->body.announce.rkey = krp_cpu_to_le32(slot->rkey);
		ret->body.announce.lease_ms = krp_cpu_to_le32(s->conf->lease_ms);
		ret->body.announce.margin_ms = krp_cpu_to_le32(s->conf->margin_ms);
		break;
	default:
		break;
	}
	s->tx.sent++;
	s->tx.high = s->tx.high > s->tx.sent ? s->tx.high : s->tx.sent;
	return 1;
}

/**
 * krp_stream_credit_due() - Whether CREDIT goes out alone.
 * @s: connection, live.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_stream_credit_due(const struct krp_stream *s, __u64 now_ns)
{
	__u32 quarter = s->conf->msgs / 4 + 1, units, msgs = krp_stream_grant(s, &units);
	__u32 left_units = s->rx.told_units - s->rx.units;

	if (s->owe.answer || now_ns >= s->time.ack_at_ns ||
	    (s->owe.hurry && s->rx.expect != s->rx.told_ack))
		return 1;
	if (s->rx.expect - s->rx.told_ack >= quarter || msgs - s->rx.told_msgs >= quarter ||
	    units - s->rx.told_units >= s->conf->units / 4 + 1)
		return 1;
	/* the peer may stand still: for the shorter of messages, and for the longest in units */
	return (msgs != s->rx.told_msgs && s->rx.told_msgs == s->rx.msgs) ||
	       (units != s->rx.told_units && left_units < KRP_MESSAGE_UNITS_MAX);
}

/** krp_stream_refer() - Send a DONE or CANCEL that is due. @s: connection, live.
 * @now_ns: the clock. @ret: filled. Context: any. Return: 0: none is.
 */
static inline int krp_stream_refer(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret)
{
	__u32 i;

	if (KRP_MUTANT("done waits for a window") && s->tx.msgs == s->tx.msgs_max)
		return 0;
	for (i = 0; i < s->larges; i++) {
		struct krp_hold *h = &s->hold[i];
		struct krp_fetch *f = &s->fetch[i];

		if (f->state == KRP_FETCH_ENDED && f->due) {
			f->due = 0;
			krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_DONE, 0);
			ret->packet.imm = krp_cpu_to_le32(f->status);
			ret->body.ref.seq = krp_cpu_to_le64(f->seq);
			return 1;
		}
		if (h->state == KRP_HOLD_HELD && h->cancel & KRP_HOLD_DUE && h->seq < s->tx.high) {
			h->cancel = KRP_HOLD_CANCEL;
			krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_CANCEL, 0);
			ret->body.ref.seq = krp_cpu_to_le64(h->seq);
			return 1;
		}
	}
	return 0;
}

/** krp_stream_answer() - Send what has no number and is due before numbered messages.
 * @s: connection. @now_ns: the clock. @ret: filled. Context: any. Return: 0: nothing.
 */
static inline int krp_stream_answer(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret)
{
	unsigned int flags = (s->owe.gap ? KRP_MESSAGE_GAP : 0U) |
			     (s->owe.busy ? KRP_MESSAGE_BUSY : 0U);

	if (s->owe.refuse && s->state == KRP_STREAM_DEAD) {
		krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_REFUSE, 0);
		ret->packet.imm = krp_cpu_to_le32(s->owe.refuse);
		s->said = s->said ? s->said : s->owe.refuse;
		s->owe.refuse = 0;
		return 1;
	}
	if (s->owe.wait && s->state == KRP_STREAM_OFFERED) {
		s->owe.wait = 0;
		krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_CHALLENGE, 0);
		ret->body.challenge.pass = s->open.pass;
		return 1;
	}
	if (!krp_stream_live(s->state))
		return 0;
	if (s->owe.accept) {
		s->owe.accept = 0;
		if (!s->confirmed && !s->time.asked_ns)
			s->time.asked_ns = now_ns;
		krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_ACCEPT, 0);
		ret->body.accept = s->accept;
		return 1;
	}
	if (krp_stream_refer(s, now_ns, ret))
		return 1;
	if (!flags)
		return 0;
	s->owe.gap = 0;
	s->owe.busy = 0;
	krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_CREDIT, flags);
	return 1;
}

/** krp_stream_rest() - Send what has no number and may ride on numbered messages.
 * @s: connection, live. @now_ns: the clock. @ret: filled. Context: any. Return: 0: nothing.
 */
static inline int krp_stream_rest(struct krp_stream *s, __u64 now_ns, struct krp_stream_todo *ret)
{
	if (s->owe.probe) {
		s->owe.probe = 0;
		s->time.asked_ns = s->time.asked_ns ? s->time.asked_ns : now_ns;
		krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_PROBE, 0);
		return 1;
	}
	if (!krp_stream_credit_due(s, now_ns))
		return 0;
	krp_stream_fill(s, now_ns, ret, KRP_MESSAGE_CREDIT, 0);
	return 1;
}

/** krp_stream_over_ns() - When the clock ends something, whatever is sent. @s: connection.
 * Context: any. Return: ns.
 */
static inline __u64 krp_stream_over_ns(const struct krp_stream *s)
{
	if (s->state == KRP_STREAM_LINGER)
		return s->time.forget_ns;
	if (s->state == KRP_STREAM_DEAD && krp_stream_holds(s))
		return krp_stream_hold_ns(s);
	if (s->time.doom_ns)
		return s->time.doom_ns;
	if (s->state == KRP_STREAM_OPENING || s->state == KRP_STREAM_OFFERED)
		return s->time.since_ns + KRP_STREAM_OPEN_NS;
	return KRP_STREAM_FOREVER_NS;
}

/** krp_stream_until_ns() - When the clock has something to say. @s: connection. Context: any.
 * Return: ns.
 */
static inline __u64 krp_stream_until_ns(const struct krp_stream *s)
{
	__u64 until_ns = s->time.retry_at_ns, at_ns = krp_stream_over_ns(s);

	until_ns = at_ns < until_ns ? at_ns : until_ns;
	if (!krp_stream_live(s->state))
		return until_ns;
	at_ns = krp_stream_idle_ns(s);
	until_ns = at_ns < until_ns ? at_ns : until_ns;
	until_ns = s->time.ack_at_ns < until_ns ? s->time.ack_at_ns : until_ns;
	return s->tx.sent < s->tx.next && s->time.off_ns < until_ns ? s->time.off_ns : until_ns;
}

/**
 * krp_stream_tell() - What is to be done next by a caller that has no room to post.
 * @s: connection.
 * @now_ns: the clock, which never goes back.
 * @ret: filled.
 *
 * As krp_stream_next(), but what would be sent stays as it is, and @ret->until_ns is when something else
 * is due. A live connection does not die of silence meanwhile: its peer can't be asked. A caller that
 * has room again pulls krp_stream_next(), whatever the clock says.
 *
 * Context: any.
 * Return: @ret->what, never SEND.
 */
static inline enum krp_stream_do krp_stream_tell(struct krp_stream *s, __u64 now_ns,
						 struct krp_stream_todo *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (krp_stream_live(s->state))
		krp_stream_linger(s, now_ns);
	else
		krp_stream_due(s, now_ns);
	if (s->state == KRP_STREAM_DEAD)
		krp_stream_bury(s, now_ns);
	if (krp_stream_event(s, now_ns, ret))
		return ret->what;
	ret->what = KRP_STREAM_WAIT;
	ret->until_ns = KRP_STREAM_FOREVER_NS;
	if (!krp_stream_live(s->state) || s->state == KRP_STREAM_LINGER)
		ret->until_ns = krp_stream_over_ns(s);
	return ret->what;
}

/**
 * krp_stream_next() - What is to be done next.
 * @s: connection.
 * @now_ns: the clock, which never goes back.
 * @ret: filled.
 *
 * Pull until KRP_STREAM_WAIT whenever something was said to the machine, before the next packet.
 *
 * Context: any.
 * Return: @ret->what.
 */
static inline enum krp_stream_do krp_stream_next(struct krp_stream *s, __u64 now_ns,
						 struct krp_stream_todo *ret)
{
	memset(ret, 0, sizeof(*ret));
	krp_stream_due(s, now_ns);
	if (s->state == KRP_STREAM_DEAD)
		krp_stream_bury(s, now_ns);
	if (krp_stream_event(s, now_ns, ret))
		return ret->what;
	if (krp_stream_live(s->state))
		krp_stream_stock(s);
	if (krp_stream_answer(s, now_ns, ret))
		return ret->what;
	if ((krp_stream_live(s->state) || s->state == KRP_STREAM_OPENING) &&
	    krp_stream_pump(s, now_ns, ret))
		return ret->what;
	if (krp_stream_live(s->state) && krp_stream_rest(s, now_ns, ret))
		return ret->what;
	if (s->state == KRP_STREAM_DEAD)
		krp_stream_bury(s, now_ns);
	if (krp_stream_event(s, now_ns, ret))
		return ret->what;
	krp_stream_arm(s, now_ns);
	ret->what = KRP_STREAM_WAIT;
	ret->until_ns = krp_stream_until_ns(s);
	return ret->what;
}

#endif /* KRP_STREAM_OUT_H */
