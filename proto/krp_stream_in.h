/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The half of a connection's machine that takes packets. Normative together with krp_stream.h,
 * whose head explains it.
 */
#ifndef KRP_STREAM_IN_H
#define KRP_STREAM_IN_H

#include "krp_stream_out.h"

/** krp_stream_ends() - Whether REFUSE with that status may come now. @s: connection. @m: it.
 *
 * What only answers an OPEN was overtaken by ACCEPT if it comes later.
 *
 * Context: any. Return: 1 or 0.
 */
static inline int krp_stream_ends(const struct krp_stream *s, const struct krp_message *m)
{
	__u32 status = krp_le32_to_cpu(m->imm);

	return s->state == KRP_STREAM_OPENING || status == KRP_REFUSE_UNKNOWN ||
	       status == KRP_REFUSE_ABORT || status == KRP_REFUSE_BROKEN;
}

/**
 * krp_stream_mine() - Whether a packet is of this connection.
 * @s: connection.
 * @m: packet, checked.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_stream_mine(const struct krp_stream *s, const struct krp_message *m)
{
	__u64 tag = krp_le64_to_cpu(m->tag);

	if (s->state != KRP_STREAM_OPENING && !krp_stream_live(s->state))
		return 0;
	/* the peer does not know the connection any more: its queue and generation may be others */
	if (m->type == KRP_MESSAGE_REFUSE && m->flags & KRP_MESSAGE_ECHO)
		return s->peer_tag && tag == s->peer_tag && krp_stream_ends(s, m);
	if (tag != s->tag || (m->type == KRP_MESSAGE_REFUSE && !krp_stream_ends(s, m)))
		return 0;
	if (s->state == KRP_STREAM_OPENING && m->type == KRP_MESSAGE_REFUSE)
		return 1; /* KRP_REFUSE_STALE is another generation's */
	if (krp_le64_to_cpu(m->generation) != s->peer_generation &&
	    !KRP_MUTANT("open for another generation"))
		return 0;
	if (s->state == KRP_STREAM_OPENING)
		return m->type == KRP_MESSAGE_CHALLENGE || m->type == KRP_MESSAGE_ACCEPT;
	return m->type != KRP_MESSAGE_CHALLENGE && krp_le32_to_cpu(m->src) == s->dst;
}

/** krp_stream_broken() - The peer has broken a rule. @s: connection. @now_ns: the clock.
 * Context: any.
 */
static inline void krp_stream_broken(struct krp_stream *s, __u64 now_ns)
{
	krp_stream_die(s, now_ns, -EPROTO, 0);
	if (s->state == KRP_STREAM_DEAD)
		s->owe.refuse = KRP_REFUSE_BROKEN;
}

/** krp_stream_fetching() - Whether the program, or a READ, is concerned with an announcement.
 * @s: connection. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_fetching(const struct krp_stream *s)
{
	__u32 i;

	for (i = 0; i < s->larges; i++)
		if (s->fetch[i].state != KRP_FETCH_FREE && s->fetch[i].state != KRP_FETCH_ENDED)
			return 1;
	return 0;
}

/** krp_stream_refused() - REFUSE has come. @s: connection. @now_ns: the clock. @m: it.
 * Context: any.
 */
static inline void krp_stream_refused(struct krp_stream *s, __u64 now_ns,
				      const struct krp_message *m)
{
	__u32 status = krp_le32_to_cpu(m->imm);

	/* it has had all, and has forgotten us before it could acknowledge CLOSE once more */
	if (s->state == KRP_STREAM_CLOSING && status == KRP_REFUSE_UNKNOWN &&
	    krp_le64_to_cpu(m->generation) == s->peer_generation &&
	    (s->tx.una == s->tx.next || (s->tx.una + 1 == s->tx.next &&
					 krp_stream_at(s, s->tx.una)->type == KRP_MESSAGE_CLOSE)) &&
	    s->tx.sent == s->tx.next && !krp_stream_holds(s) && !krp_stream_fetching(s)) {
		if (s->larges)
			memset(s->fetch, 0, s->larges * sizeof(*s->fetch));
		s->tx.una = s->tx.next;
		return;
	}
	/* what says of itself to be another generation may READ on: only the table is believed */
	krp_stream_die(s, now_ns, krp_refuse_errno(status), 0);
}

/** krp_stream_granted() - Take the grants of a header. @s: connection. @m: it, not an old one.
 * Context: any.
 */
static inline void krp_stream_granted(struct krp_stream *s, const struct krp_message *m)
{
	__u32 msgs = krp_le32_to_cpu(m->msgs), units = krp_le32_to_cpu(m->units);

	if ((__s32)(msgs - s->tx.msgs_max) > 0 && msgs - s->tx.msgs <= KRP_STREAM_WINDOW_MAX) {
		s->tx.msgs_max = msgs;
		s->starved = 0;
	}
	if ((__s32)(units - s->tx.units_max) > 0 &&
	    units - s->tx.units <= KRP_STREAM_WINDOW_MAX * KRP_MESSAGE_UNITS_MAX) {
		s->tx.units_max = units;
		s->starved = 0;
	}
}

/** krp_stream_acked() - Take acknowledgement and grants of a header. @s: connection.
 * @now_ns: the clock. @m: it. Context: any. Return: 0: it acknowledges what was never sent.
 */
static inline int krp_stream_acked(struct krp_stream *s, __u64 now_ns, const struct krp_message *m)
{
	__u64 ack = krp_le64_to_cpu(m->ack);

	if (ack > s->tx.high)
		return 0;
	if (ack < s->tx.una)
		return 1;
	krp_stream_granted(s, m);
	if (ack == s->tx.una)
		return 1;
	s->tx.una = ack;
	s->tx.sent = s->tx.sent > s->tx.una ? s->tx.sent : s->tx.una;
	s->time.pause_ns = s->conf->retry_ns;
	s->time.off_ns = 0;
	s->time.retry_at_ns = KRP_STREAM_FOREVER_NS;
	krp_stream_arm(s, now_ns);
	return 1;
}

/** krp_stream_credit() - CREDIT has come. @s: connection. @now_ns: the clock. @m: it.
 * Context: any.
 */
static inline void krp_stream_credit(struct krp_stream *s, __u64 now_ns,
				     const struct krp_message *m)
{
	if (krp_le64_to_cpu(m->ack) != s->tx.una || s->tx.una == s->tx.sent)
		return;
	if (m->flags & KRP_MESSAGE_BUSY) {
		s->tx.sent = s->tx.una;
		s->time.off_ns = now_ns + s->time.pause_ns;
		krp_stream_back_off(s);
	} else if (m->flags & KRP_MESSAGE_GAP && !KRP_MUTANT("do not repeat") &&
		   (s->again.back != s->tx.una || now_ns - s->again.back_ns >= s->conf->retry_ns)) {
		/* one gap is reported by each message behind it */
		s->tx.sent = s->tx.una;
		s->again.back = s->tx.una;
		s->again.back_ns = now_ns;
	}
}

/** krp_stream_accepted() - ACCEPT has come. @s: connection, OPENING. @now_ns: the clock. @m: it.
 * Context: any.
 */
static inline void krp_stream_accepted(struct krp_stream *s, __u64 now_ns,
				       const struct krp_message *m)
{
	const struct krp_message_accept *body =
		(const struct krp_message_accept *)(const void *)(m + 1);

	if (krp_le64_to_cpu(m->ack) != 2 || s->tx.high != 2) {
		s->dropped.foreign++;
		return;
	}
	krp_stream_enter(s, KRP_STREAM_OPEN);
	s->confirmed = 1;
	s->accept = *body;
	s->peer_tag = krp_le64_to_cpu(body->tag);
	s->dst = krp_le32_to_cpu(m->src);
	s->news |= 1U << KRP_STREAM_OPENED;
	krp_stream_acked(s, now_ns, m);
	s->owe.answer = 1; /* the peer does not repeat ACCEPT any more */
}

/** krp_stream_challenged() - CHALLENGE has come. @s: connection, OPENING. @m: it. Context: any. */
static inline void krp_stream_challenged(struct krp_stream *s, const struct krp_message *m)
{
	const struct krp_message_challenge *body =
		(const struct krp_message_challenge *)(const void *)(m + 1);

	/* a peer whose passes never please is not followed for ever */
	if (body->pass == s->open.pass || s->passes == 3)
		return;
	s->passes++;
	s->open.pass = body->pass;
	s->tx.sent = s->tx.una;
	s->news |= 1U << KRP_STREAM_PASS;
}

/** krp_stream_take_window() - Take DATA or ANNOUNCE, whose turn it is. @s: connection.
 * @now_ns: the clock. @m: it. @room: there is memory for it; ANNOUNCE needs
 * krp_stream_give_large(), too. Context: any. Return: enum krp_stream_verdict.
 */
static inline enum krp_stream_verdict krp_stream_take_window(struct krp_stream *s, __u64 now_ns,
							     const struct krp_message *m, int room)
{
	__u32 units = krp_message_units(m->type, krp_le32_to_cpu(m->length));
	const struct krp_message_announce *body =
		(const struct krp_message_announce *)(const void *)(m + 1);
	struct krp_fetch *f = NULL;
	int large = m->type == KRP_MESSAGE_ANNOUNCE;

	if (large && body->slot < s->larges)
		f = &s->fetch[body->slot];
	if ((s->state != KRP_STREAM_OPEN && s->state != KRP_STREAM_SHUT) ||
	    s->rx.told_msgs - s->rx.msgs < 1 || s->rx.told_units - s->rx.units < units ||
	    (f && f->state != KRP_FETCH_FREE && f->state != KRP_FETCH_ENDED)) {
		krp_stream_broken(s, now_ns);
		return KRP_STREAM_DROPPED;
	}
	if (!room || (large && !f)) {
		s->dropped.busy++;
		s->owe.busy = 1;
		s->rx.expect += !!KRP_MUTANT("busy is taken");
		return KRP_STREAM_DROPPED;
	}
	s->rx.msgs++;
	s->rx.units += units;
	s->rx.expect++;
	s->owe.hurry |= !!(m->flags & KRP_MESSAGE_HURRY);
	if (!f)
		return KRP_STREAM_MESSAGE;
	memset(f, 0, sizeof(*f)); /* that its slot is used again says that DONE has come */
	f->seq = krp_le64_to_cpu(m->seq);
	f->addr = krp_le64_to_cpu(body->addr);
	f->length = krp_le32_to_cpu(m->length);
	f->rkey = krp_le32_to_cpu(body->rkey);
	f->imm = krp_le32_to_cpu(m->imm);
	f->lease_ms = krp_le32_to_cpu(body->lease_ms);
	f->margin_ms = krp_le32_to_cpu(body->margin_ms);
	f->state = KRP_FETCH_OFFERED;
	return KRP_STREAM_ANNOUNCED;
}

/** krp_stream_refer_came() - DONE or CANCEL has come. @s: connection. @now_ns: the clock. @m: it.
 * Context: any.
 */
static inline void krp_stream_refer_came(struct krp_stream *s, __u64 now_ns,
					 const struct krp_message *m)
{
	const struct krp_message_ref *body = (const struct krp_message_ref *)(const void *)(m + 1);
	__u64 seq = krp_le64_to_cpu(body->seq);
	struct krp_fetch *f = krp_stream_fetch_of(s, seq);
	struct krp_hold *h = krp_stream_hold_of(s, seq);

	if (m->type == KRP_MESSAGE_CANCEL) {
		if (f && f->state == KRP_FETCH_OFFERED)
			f->state = KRP_FETCH_VOID;
		else if (f && f->state == KRP_FETCH_ENDED)
			f->due = 1;
		return;
	}
	if (seq >= s->tx.una) {
		krp_stream_broken(s, now_ns); /* of what it cannot have */
		return;
	}
	if (!h) {
		s->dropped.repeats++;
		s->owe.answer = 1; /* it has not heard that we know */
		return;
	}
	h->err = krp_refuse_errno(krp_le32_to_cpu(m->imm));
	h->state = KRP_HOLD_ENDED;
	s->time.pause_ns = s->conf->retry_ns;
	s->time.retry_at_ns = KRP_STREAM_FOREVER_NS;
	if (s->time.ack_at_ns == KRP_STREAM_FOREVER_NS)
		s->time.ack_at_ns = now_ns + s->conf->ack_ns;
}

/** krp_stream_released() - See which DONE the peer has, by what it holds. @s: connection.
 * @m: header. Context: any.
 */
static inline void krp_stream_released(struct krp_stream *s, const struct krp_message *m)
{
	__u32 held = krp_le16_to_cpu(m->held), i;

	for (i = 0; i < s->larges; i++)
		if (s->fetch[i].state == KRP_FETCH_ENDED && !(held >> i & 1) &&
		    krp_le64_to_cpu(m->seq) > s->fetch[i].seq)
			memset(&s->fetch[i], 0, sizeof(s->fetch[i]));
}

/** krp_stream_take() - Take a numbered message. @s: connection, live. @now_ns: the clock.
 * @m: it. @room: there is memory for it. Context: any. Return: enum krp_stream_verdict.
 */
static inline enum krp_stream_verdict krp_stream_take(struct krp_stream *s, __u64 now_ns,
						      const struct krp_message *m, int room)
{
	__u64 seq = krp_le64_to_cpu(m->seq);

	if (seq < s->rx.expect &&
	    !(KRP_MUTANT("take a repetition") && m->type == KRP_MESSAGE_DATA)) {
		s->dropped.repeats++;
		s->owe.answer = 1;
		return KRP_STREAM_DROPPED;
	}
	if (seq > s->rx.expect) {
		if (KRP_MUTANT("jump a gap"))
			s->rx.expect = seq;
		s->dropped.gaps++;
		/* once: if that is lost, the peer asks */
		s->owe.gap |= s->again.gap != s->rx.expect;
		s->again.gap = s->rx.expect;
		if (seq > s->rx.expect)
			return KRP_STREAM_DROPPED;
	}
	if (s->time.ack_at_ns == KRP_STREAM_FOREVER_NS)
		s->time.ack_at_ns = now_ns + s->conf->ack_ns;
	switch (m->type) {
	case KRP_MESSAGE_DATA:
	case KRP_MESSAGE_ANNOUNCE:
		return krp_stream_take_window(s, now_ns, m, room);
	case KRP_MESSAGE_CLOSE:
		s->rx.expect++;
		s->owe.hurry = 1;
		if (s->state != KRP_STREAM_OPEN && s->state != KRP_STREAM_SHUT) {
			krp_stream_broken(s, now_ns);
			return KRP_STREAM_DROPPED;
		}
		krp_stream_enter(s, s->state == KRP_STREAM_OPEN ? KRP_STREAM_PEER_SHUT
								: KRP_STREAM_CLOSING);
		s->news |= 1U << KRP_STREAM_ENDED;
		return KRP_STREAM_DROPPED;
	default: /* OPEN goes to krp_listen.h */
		return KRP_STREAM_DROPPED;
	}
}

/** krp_stream_idle() - For how long the peer may say nothing before it is asked. @s: connection.
 *
 * Up to an eighth is by the tag, so that those which were heard together are not asked together.
 * An end that has not opened waits a quarter longer: where both wait alike, the other one asks.
 *
 * Context: any. Return: ns.
 */
static inline __u64 krp_stream_idle(const struct krp_stream *s)
{
	__u64 idle_ns = s->conf->idle_ns;

	return idle_ns + (s->tag & 0xff) * (idle_ns >> 11) + (s->opener ? 0 : idle_ns >> 2);
}

/**
 * krp_stream_received() - A packet has come.
 * @s: connection.
 * @now_ns: the clock.
 * @arrived_ns: a moment before which it had not come: when the caller last found the receive
 *	queue empty. @now_ns would be too late, if the caller itself was: leases hang on it.
 * @m: packet, 8-byte aligned, which krp_message_check() has found right.
 * @room: there is memory for a message of its length. See krp_stream_give_large(), too.
 *
 * Pull krp_stream_next() before the next one: else it is dropped, as if it had been lost.
 *
 * Context: any.
 * Return: enum krp_stream_verdict.
 */
static inline enum krp_stream_verdict krp_stream_received(struct krp_stream *s, __u64 now_ns,
							  __u64 arrived_ns,
							  const struct krp_message *m, int room)
{
	int opening = s->state == KRP_STREAM_OPENING;

	if (s->tx.told != s->tx.una || !krp_stream_mine(s, m)) {
		s->dropped.foreign++;
		return KRP_STREAM_DROPPED;
	}
	s->time.heard_ns = arrived_ns > s->time.heard_ns ? arrived_ns : s->time.heard_ns;
	s->time.asked_ns = 0;
	s->time.doom_ns = 0;
	s->asking = 0;
	if (s->conf->idle_ns)
		s->time.idle_at_ns = now_ns + krp_stream_idle(s);
	if (m->type == KRP_MESSAGE_REFUSE)
		krp_stream_refused(s, now_ns, m);
	else if (opening && m->type == KRP_MESSAGE_ACCEPT)
		krp_stream_accepted(s, now_ns, m);
	else if (opening)
		krp_stream_challenged(s, m);
	if (opening || m->type == KRP_MESSAGE_REFUSE || m->type == KRP_MESSAGE_CHALLENGE ||
	    m->type == KRP_MESSAGE_OPEN)
		return KRP_STREAM_DROPPED;
	if (!krp_stream_acked(s, now_ns, m)) {
		s->dropped.foreign++;
		return KRP_STREAM_DROPPED;
	}
	s->confirmed = 1;
	s->owe.accept = 0;
	krp_stream_released(s, m);
	if (krp_message_numbered(m->type))
		return krp_stream_take(s, now_ns, m, room);
	if (m->type == KRP_MESSAGE_DONE || m->type == KRP_MESSAGE_CANCEL)
		krp_stream_refer_came(s, now_ns, m);
	if (m->type == KRP_MESSAGE_CREDIT)
		krp_stream_credit(s, now_ns, m);
	/* ACCEPT again: its sender does not know that it has been heard */
	if (m->type == KRP_MESSAGE_PROBE || m->type == KRP_MESSAGE_ACCEPT) {
		s->owe.answer = 1;
		s->owe.gap |= krp_le64_to_cpu(m->seq) > s->rx.expect;
	}
	return KRP_STREAM_DROPPED;
}

#endif /* KRP_STREAM_IN_H */
