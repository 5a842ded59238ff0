/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * One connection between two nodes, as a state machine of one end without any transport.
 * Normative: krp_message.h says what the messages mean, this header how an end uses them.
 *
 * The module drives this in kmod/message; so do unit tests and a fuzzer.
 *
 * No lock, memory, clock, randomness or cryptography of its own, and no call-backs. The caller
 * says what has happened, and then pulls what is to be done until there is no more:
 *
 *	verdict = krp_stream_received(&s, now_ns, arrived_ns, packet, room);
 *	deliver what the verdict says
 *	while (krp_stream_next(&s, now_ns, &todo) != KRP_STREAM_WAIT)
 *		switch (todo.what) {
 *		case KRP_STREAM_SEND: post todo.packet, todo.bytes, and the payload behind it
 *		...
 *		}
 *	come back at todo.until_ns, or when something has happened
 *
 * A packet is given to krp_message_check() and krp_listen.h first; what has the number of a
 * queue in dst is for its machine. A caller without room to post pulls krp_stream_tell() in place of
 * krp_stream_next(), and is told of all but what it would send. One that has pulled SEND posts at
 * once, or says by krp_stream_post_begin() and _end() when it has.
 *
 * STATES
 *	NEW -> OPENING -> OPEN        the opener
 *	NEW -> OFFERED -> OPEN        the other end
 *	OPEN -> SHUT -> CLOSING       this end closes first
 *	OPEN -> PEER_SHUT -> CLOSING  the peer does
 *	CLOSING -> LINGER -> GONE
 *	any before LINGER -> DEAD -> GONE
 *   Announcements outlive CLOSE: CLOSING ends when all have been fetched, or discarded, and
 *   all that is numbered is acknowledged.
 *
 * EXACTLY ONCE, IN ORDER
 *   A numbered message that was not acknowledged may be sent again at any time: after a gap
 *   that the peer reports, when it was busy, and when an initiator was reset
 *   (krp_stream_replay()). All from the first missing one are sent again, in order. The
 *   receiver takes a message if its number is the expected one, and no other: smaller ones
 *   have come before, and are acknowledged again; larger ones are dropped, and the gap is
 *   reported. A message has ended for its sender when it is acknowledged: the peer's kernel has
 *   it. If the connection dies before, the message may or may not have arrived.
 *   An OPEN is never repeated to another generation of the receiver, nor longer than the receiver
 *   knows it again. One that was refused counts as such a connection: if an earlier copy of
 *   it arrives later, its message may be delivered after all.
 *
 * MEMORY
 *   An end that says little needs little: it begins with a few slots, KRP_STREAM_SLOTS_MIN at least,
 *   and nothing for announcements. The caller gives more when krp_stream_cramped() says so, or a
 *   large message is sent or comes, and takes it back when nothing is in it.
 *
 * FLOW CONTROL, at three levels
 *   Connection: what has come and has not been consumed (krp_stream_consumed()) is bounded by
 *   conf.msgs and conf.units. User: krp_stream_budget() makes the window smaller while the
 *   user has much in its backlog; 0 stops it. What has been granted stays granted, so a
 *   smaller budget works as fast as messages are consumed. Port: krp_stream_received() with
 *   room 0 drops a message that there is no memory for, unharmed; the sender comes again after
 *   a pause. No level keeps anything for peers that might come.
 *   A receiver tells what it grants in every header. It sends CREDIT alone when the peer may
 *   stand still, and when a quarter of the window has become free. CREDIT may be lost; so a
 *   sender that may not send asks by PROBE.
 *   krp_stream_send() refuses with %-EAGAIN what the window has no room for. The caller keeps
 *   such messages. So a number is given only to what may be sent.
 *   DONE, CANCEL, CREDIT, PROBE, ACCEPT and REFUSE need no grant, no number and no memory but
 *   the connection's state, and none of them waits behind a message for which the peer has no
 *   room. So two programs that read nothing before their own large messages have ended
 *   do not wait for each other. See krp_stream_wrong(). (For that the room of a port must come
 *   back without any program's doing: a budget is what stands for memory that only a
 *   program gives back.)
 *
 * WRITE WITH NOTIFICATION
 *   A notification, and any message that is to be later than a WRITE, is handed in after the
 *   WRITE has ended. It is not enough to post both on one initiator: when that is
 *   reset, both are repeated, and the WRITE would change memory that the peer's program has
 *   been told of already. krp_stream_write_begin() and _end() count WRITEs; a message
 *   with notify waits for them. This costs a round trip and is right.
 *
 * TIME
 *   While something is awaited - an acknowledgement, a grant, DONE, an answer to OPEN - the
 *   peer is asked after conf.retry_ns, and then in pauses that double up to conf.retry_max_ns:
 *   by OPEN again, or by PROBE, whose answer says what is missing. Progress begins the
 *   pauses anew. A peer that is asked and not heard for conf.silence_ns is dead. What is
 *   busy answers, so it is not: also an end whose program has not decided yet answers the
 *   OPEN that comes again, by CHALLENGE with the pass that it has.
 *   One of which nothing is awaited is asked, too, when it was not heard for conf.idle_ns: an end
 *   whose peer is gone, and whose REFUSE was lost or never sent, does not stay for want of words.
 *   No state is for ever. An opener gives up after KRP_MESSAGE_OPEN_MS; so what is OFFERED
 *   for as long has no opener any more and dies. An end that has accepted asks by ACCEPT until
 *   something shows that the opener has heard it, and dies as of silence if nothing does.
 *   Death by the clock takes two looks, conf.retry_ns apart, with a question between: a
 *   caller that has stood still first gives the machine what lies in its receive queue.
 *   What no machine can mend: between its last look at the clock and the doorbell a caller must not
 *   stand still for longer than half of the margin (of margin_ms; KRP_MESSAGE_MARGIN_MS with
 *   OPEN). What it finds to be older than a quarter is not posted (krp_stream_replay()).
 *
 * DEATH
 *   Of the peer: another generation in its record (krp_stream_lost()), REFUSE, silence. Every
 *   message that was not acknowledged ends with the error, each once; announced memory
 *   is released at once if the table says that the peer has another generation, else when no READ
 *   can come any more (LARGE MESSAGES in krp_message.h). What a dead end still says is REFUSE,
 *   which keeps no lease alive, so that a peer cannot put that moment off. READs of this end from
 *   the peer end by krp_stream_fetched() before the machine is GONE.
 *
 * Note: Source - go-back-N and delayed acknowledgements as in TCP (RFC 9293, RFC 1122 4.2.3.2);
 * the quarter after UCX's rc transport, whose deadlock of acknowledgements and READs (UCX
 * #6954) is excluded by their being made of the state.
 */
#ifndef KRP_STREAM_H
#define KRP_STREAM_H

#include "krp_stream_in.h"

/**
 * krp_stream_init() - Begin.
 * @s: connection.
 * @conf: how it behaves; stays.
 * @slot: memory for numbered messages; stays.
 * @slots: how many, a power of 2.
 *
 * Context: any.
 * Return: 0; %-EINVAL: @slots or a value of @conf is out of its range.
 */
static inline int krp_stream_init(struct krp_stream *s, const struct krp_stream_conf *conf,
				  struct krp_stream_slot *slot, __u32 slots)
{
	if (slots < KRP_STREAM_SLOTS_MIN || slots & (slots - 1) || !conf->retry_ns ||
	    conf->retry_max_ns < conf->retry_ns || !conf->msgs ||
	    conf->retry_max_ns > KRP_STREAM_PAUSE_MAX_NS ||
	    conf->idle_ns > KRP_STREAM_IDLE_MAX_NS || conf->ack_ns > KRP_STREAM_PAUSE_MAX_NS ||
	    conf->linger_ns > KRP_STREAM_PAUSE_MAX_NS || conf->msgs > KRP_STREAM_WINDOW_MAX ||
	    conf->units < KRP_MESSAGE_UNITS_MAX ||
	    conf->units > KRP_STREAM_WINDOW_MAX * KRP_MESSAGE_UNITS_MAX ||
	    conf->lease_ms < KRP_MRDIR_LEASE_MS_MIN || conf->lease_ms > KRP_MRDIR_LEASE_MS_MAX ||
	    conf->margin_ms < KRP_MRDIR_MARGIN_MS_MIN || conf->margin_ms > KRP_MRDIR_MARGIN_MS_MAX)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	s->conf = conf;
	s->slot = slot;
	s->slots = slots;
	s->tx.una = 1;
	s->tx.sent = 1;
	s->tx.high = 1;
	s->tx.next = 1;
	s->tx.told = 1;
	s->rx.expect = 1;
	s->rx.told_ack = 1;
	s->time.pause_ns = conf->retry_ns;
	s->time.retry_at_ns = KRP_STREAM_FOREVER_NS;
	s->time.ack_at_ns = KRP_STREAM_FOREVER_NS;
	s->time.idle_at_ns = KRP_STREAM_FOREVER_NS;
	s->rx.budget_msgs = conf->msgs;
	s->rx.budget_units = conf->units;
	return 0;
}

/**
 * krp_stream_connect() - Open a connection.
 * @s: connection, NEW.
 * @now_ns: the clock.
 * @src: number of this queue.
 * @service: of the peer.
 * @open: complete; with the pass for this generation of the peer, if one is known.
 * @first: first message, or NULL; not a large one.
 *
 * Context: any.
 * Return: 0; %-EMSGSIZE: @first is longer than KRP_MESSAGE_FIRST_MAX, or large; %-EINVAL: this
 * cannot be.
 */
static inline int krp_stream_connect(struct krp_stream *s, __u64 now_ns, __u32 src, __u32 service,
				     const struct krp_message_open *open,
				     const struct krp_stream_req *first)
{
	struct krp_stream_slot slot;

	if (s->state != KRP_STREAM_NEW || !open->tag || service < KRP_SERVICE_USER_MIN ||
	    service > 0xffff)
		return -EINVAL;
	if (first && (first->large || first->length > KRP_MESSAGE_FIRST_MAX))
		return -EMSGSIZE;
	memset(&slot, 0, sizeof(slot));
	slot.type = KRP_MESSAGE_OPEN;
	krp_stream_enter(s, KRP_STREAM_OPENING);
	s->opener = 1;
	s->src = src;
	s->dst = service;
	s->open = *open;
	s->tag = krp_le64_to_cpu(open->tag);
	s->generation = krp_le64_to_cpu(open->value.generation);
	s->peer_generation = krp_le64_to_cpu(open->peer_generation);
	s->time.since_ns = now_ns;
	s->time.heard_ns = now_ns;
	s->tx.msgs_max = 1;
	s->tx.units_max = KRP_MESSAGE_UNITS_MAX;
	if (first) {
		slot.cookie = first->cookie;
		slot.length = first->length;
		slot.imm = first->imm;
		slot.flags = KRP_MESSAGE_PAYLOAD;
	}
	krp_stream_push(s, &slot);
	krp_stream_arm(s, now_ns);
	return 0;
}

/**
 * krp_stream_offer() - Take an OPEN that krp_listen_judge() lets pass.
 * @s: connection, NEW.
 * @now_ns: the clock.
 * @arrived_ns: see krp_stream_received().
 * @m: OPEN, checked.
 * @src: number of this queue.
 * @tag: random, not zero.
 *
 * If it has KRP_MESSAGE_PAYLOAD, the message is the first one for the program, once that has
 * accepted.
 *
 * Context: any.
 */
static inline void krp_stream_offer(struct krp_stream *s, __u64 now_ns, __u64 arrived_ns,
				    const struct krp_message *m, __u32 src, __u64 tag)
{
	const struct krp_message_open *open =
		(const struct krp_message_open *)(const void *)(m + 1);

	if (!krp_stream_enter(s, KRP_STREAM_OFFERED))
		return;
	s->src = src;
	s->dst = krp_le32_to_cpu(m->src);
	s->tag = tag;
	s->peer_tag = krp_le64_to_cpu(open->tag);
	s->generation = krp_le64_to_cpu(open->peer_generation);
	s->peer_generation = krp_le64_to_cpu(m->generation);
	s->open = *open;
	s->time.since_ns = now_ns;
	s->time.heard_ns = arrived_ns;
	s->tx.msgs_max = krp_le32_to_cpu(m->msgs);
	s->tx.units_max = krp_le32_to_cpu(m->units);
	if (s->tx.msgs_max > KRP_STREAM_WINDOW_MAX)
		s->tx.msgs_max = KRP_STREAM_WINDOW_MAX;
	if (s->tx.units_max > KRP_STREAM_WINDOW_MAX * KRP_MESSAGE_UNITS_MAX)
		s->tx.units_max = KRP_STREAM_WINDOW_MAX * KRP_MESSAGE_UNITS_MAX;
	s->rx.expect = 2;
	s->rx.told_msgs = 1;
	s->rx.told_units = KRP_MESSAGE_UNITS_MAX;
	if (!(m->flags & KRP_MESSAGE_PAYLOAD))
		return;
	s->rx.msgs = 1;
	s->rx.units = krp_message_units(KRP_MESSAGE_OPEN, krp_le32_to_cpu(m->length));
}

/**
 * krp_stream_accept() - The program takes the connection.
 * @s: connection, OFFERED.
 * @user: what it says to the peer's program.
 * @len: bytes of it, at most KRP_MESSAGE_USER_MAX.
 *
 * Context: any.
 * Return: 0; %-EINVAL: it is not OFFERED, or @len is too large; stream.error: it has failed.
 */
static inline int krp_stream_accept(struct krp_stream *s, const void *user, __u32 len)
{
	if (s->error)
		return s->error;
	if (s->state != KRP_STREAM_OFFERED || len > KRP_MESSAGE_USER_MAX)
		return -EINVAL;
	krp_stream_enter(s, KRP_STREAM_OPEN);
	s->accept.tag = krp_cpu_to_le64(s->tag);
	s->accept.user_len = (__u8)len;
	if (len)
		memcpy(s->accept.user, user, len);
	s->owe.accept = 1;
	return 0;
}

/**
 * krp_stream_abort() - End the connection here and now: refuse it, or the program has ended.
 * @s: connection.
 * @now_ns: the clock.
 * @status: KRP_REFUSE_* for the peer.
 *
 * Context: any.
 */
static inline void krp_stream_abort(struct krp_stream *s, __u64 now_ns, __u32 status)
{
	krp_stream_die(s, now_ns, -ECONNABORTED, 0);
	if (s->state == KRP_STREAM_DEAD && s->peer_tag && !s->owe.refuse)
		s->owe.refuse = status;
}

/**
 * krp_stream_lost() - The peer is gone.
 * @s: connection.
 * @now_ns: the clock.
 * @err: negative errno, what messages end with.
 * @generation: that of its record now, 0: not known.
 *
 * If it is that of the connection nothing happens, for the peer is there.
 *
 * Context: any.
 */
static inline void krp_stream_lost(struct krp_stream *s, __u64 now_ns, int err, __u64 generation)
{
	if (generation && generation == s->peer_generation)
		return;
	if (s->state == KRP_STREAM_DEAD && generation)
		s->other_generation = 1; /* nothing READs what is held any more */
	krp_stream_die(s, now_ns, err, !!generation);
}

/**
 * krp_stream_replay() - What was posted may be lost: an initiator was reset, or exchanged.
 * @s: connection.
 *
 * Context: any.
 */
static inline void krp_stream_replay(struct krp_stream *s)
{
	if (!krp_stream_live(s->state) && s->state != KRP_STREAM_OPENING)
		return;
	s->tx.sent = s->tx.una;
	s->owe.answer = s->state != KRP_STREAM_OPENING;
	s->owe.accept |= !s->opener && !s->confirmed;
	if (krp_stream_waits(s) && s->state != KRP_STREAM_OPENING)
		krp_stream_ask(s);
}

/**
 * krp_stream_post_begin() - A packet that was pulled is not in the NIC yet.
 * @s: connection.
 * @m: its header.
 *
 * For a caller that does not post where it pulls, or that may stand still between the two. The
 * memory of announcements is not released before krp_stream_post_end() has been called as often.
 *
 * Context: any.
 */
static inline void krp_stream_post_begin(struct krp_stream *s, const struct krp_message *m)
{
	s->posting += !krp_message_bare(m->type);
}

/**
 * krp_stream_post_end() - It was posted, or is never going to be.
 * @s: connection.
 * @now_ns: the clock, read after that.
 * @m: its header.
 *
 * Context: any.
 */
static inline void krp_stream_post_end(struct krp_stream *s, __u64 now_ns,
				       const struct krp_message *m)
{
	if (krp_message_bare(m->type) || !s->posting)
		return;
	s->posting--;
	if (now_ns > s->time.posted_ns)
		s->time.posted_ns = now_ns;
}

/**
 * krp_stream_write_begin() - A WRITE of the queue is posted; see WRITE WITH NOTIFICATION.
 * @s: connection.
 *
 * Context: any.
 */
static inline void krp_stream_write_begin(struct krp_stream *s)
{
	s->tx.writes++;
}

/**
 * krp_stream_write_end() - A WRITE of the queue has ended.
 * @s: connection.
 *
 * Context: any.
 */
static inline void krp_stream_write_end(struct krp_stream *s)
{
	s->tx.writes -= s->tx.writes > 0;
}

/** krp_stream_cramped() - Whether messages wait for slots, whatever the peer has granted.
 * @s: connection. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_cramped(const struct krp_stream *s)
{
	return s->tx.next - s->tx.told >= s->slots - KRP_STREAM_RESERVED;
}

/**
 * krp_stream_move() - Exchange the memory for numbered messages.
 * @s: connection.
 * @slot: other memory; stays. What was there before is not used any more.
 * @slots: how many, a power of 2.
 *
 * Context: any.
 * Return: 0; %-EINVAL: @slots is none, or less than KRP_STREAM_SLOTS_MIN; %-EBUSY: less than what is
 * in use.
 */
static inline int krp_stream_move(struct krp_stream *s, struct krp_stream_slot *slot, __u32 slots)
{
	__u64 seq;

	if (slots < KRP_STREAM_SLOTS_MIN || slots & (slots - 1))
		return -EINVAL;
	if (s->tx.next - s->tx.told > slots - KRP_STREAM_RESERVED)
		return -EBUSY;
	for (seq = s->tx.told; seq != s->tx.next && !KRP_MUTANT("move no message"); seq++)
		slot[seq & (slots - 1)] = *krp_stream_at(s, seq);
	s->slot = slot;
	s->slots = slots;
	return 0;
}

/**
 * krp_stream_give_large() - Give memory for announcements of both ends, without which there are none.
 * @s: connection that has none.
 * @large: memory; stays.
 *
 * Until then krp_stream_send() refuses large messages, and an ANNOUNCE of the peer counts as one
 * that there is no room for.
 *
 * Context: any.
 */
static inline void krp_stream_give_large(struct krp_stream *s, struct krp_stream_large *large)
{
	memset(large, 0, sizeof(*large));
	s->hold = large->hold;
	s->fetch = large->fetch;
	s->larges = KRP_MESSAGE_ANNOUNCED_MAX;
}

/**
 * krp_stream_take_large() - Take it back, if there is no announcement of either end.
 * @s: connection.
 *
 * Context: any.
 * Return: 1; 0: it is in use, or was not given.
 */
static inline int krp_stream_take_large(struct krp_stream *s)
{
	if (!s->larges || krp_stream_holds(s) || krp_stream_fetches(s))
		return 0;
	s->hold = NULL;
	s->fetch = NULL;
	s->larges = 0;
	return 1;
}

/** krp_stream_full() - Whether the peer has to grant more before a message can go.
 * @s: connection. @req: message. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_full(const struct krp_stream *s, const struct krp_stream_req *req)
{
	__u32 units = krp_message_units(req->large ? KRP_MESSAGE_ANNOUNCE : KRP_MESSAGE_DATA,
					req->length);

	return s->tx.msgs_max - s->tx.msgs < 1 || s->tx.units_max - s->tx.units < units;
}

/**
 * krp_stream_may_send() - Why a message cannot be handed in.
 * @s: connection.
 * @req: message.
 *
 * Context: any.
 * Return: 0: it can; %-EAGAIN: not now: pull until something has changed; %-ENOTCONN: not before
 * it is OPEN; %-EPIPE: this end is shut; %-EMSGSIZE; %-ENOBUFS: a large one needs
 * krp_stream_give_large() first; stream.error, which is none of these: it has failed.
 */
static inline int krp_stream_may_send(const struct krp_stream *s, const struct krp_stream_req *req)
{
	if (s->error)
		return s->error;
	if (s->state != KRP_STREAM_OPEN && s->state != KRP_STREAM_PEER_SHUT)
		return s->state < KRP_STREAM_OPEN ? -ENOTCONN : -EPIPE;
	if (req->large ? !req->length || req->length > KRP_MESSAGE_LARGE_MAX ||
				 req->addr + req->length < req->addr
		       : req->length > KRP_MESSAGE_DATA_MAX)
		return -EMSGSIZE;
	if (req->notify && s->tx.writes)
		return -EAGAIN;
	if (req->large && !s->larges)
		return -ENOBUFS;
	if (req->large && krp_stream_holds(s) == s->larges)
		return -EAGAIN;
	if (krp_stream_cramped(s))
		return -EAGAIN;
	return krp_stream_full(s, req) ? -EAGAIN : 0;
}

/**
 * krp_stream_send() - Hand a message in.
 * @s: connection.
 * @now_ns: the clock.
 * @req: message; its bytes stay until it has ended (KRP_STREAM_COMPLETE, KRP_STREAM_RELEASE).
 *
 * Context: any.
 * Return: what krp_stream_may_send() says.
 */
static inline int krp_stream_send(struct krp_stream *s, __u64 now_ns,
				  const struct krp_stream_req *req)
{
	struct krp_stream_slot slot;
	int err = krp_stream_may_send(s, req);
	__u32 i = 0;

	/* of what this end itself waits for, the peer knows nothing */
	if (err == -EAGAIN && !s->starved && krp_stream_full(s, req)) {
		s->starved = 1;
		krp_stream_arm(s, now_ns);
	}
	if (err)
		return err;
	s->starved = 0;
	memset(&slot, 0, sizeof(slot));
	slot.cookie = req->cookie;
	slot.length = req->length;
	slot.imm = req->imm;
	slot.type = KRP_MESSAGE_DATA;
	slot.flags = req->hurry ? KRP_MESSAGE_HURRY : 0;
	if (req->large) {
		slot.type = KRP_MESSAGE_ANNOUNCE;
		slot.addr = req->addr;
		slot.rkey = req->rkey;
		while (s->hold[i].state != KRP_HOLD_FREE)
			i++;
		slot.hold = (__u8)i;
		s->hold[i].seq = s->tx.next;
		s->hold[i].cookie = req->cookie;
		s->hold[i].state = KRP_HOLD_HELD;
		s->hold[i].cancel = 0;
	} else if (req->notify) {
		slot.flags |= KRP_MESSAGE_NOTIFY;
	}
	krp_stream_push(s, &slot);
	krp_stream_arm(s, now_ns);
	return 0;
}

/**
 * krp_stream_cancel() - Ask for the memory of a large message back.
 * @s: connection.
 * @now_ns: the clock.
 * @cookie: its name.
 *
 * It ends by KRP_STREAM_RELEASE, as it would have without this.
 *
 * Context: any.
 * Return: 0; %-ENOENT: it has ended, or there is none.
 */
static inline int krp_stream_cancel(struct krp_stream *s, __u64 now_ns, __u64 cookie)
{
	__u32 i;

	for (i = 0; i < s->larges; i++) {
		if (s->hold[i].state != KRP_HOLD_HELD || s->hold[i].cookie != cookie)
			continue;
		s->hold[i].cancel = KRP_HOLD_CANCEL | KRP_HOLD_DUE;
		if (KRP_MUTANT("release at cancel"))
			s->hold[i].state = KRP_HOLD_ENDED;
		krp_stream_arm(s, now_ns);
		return 0;
	}
	return -ENOENT;
}

/**
 * krp_stream_shut() - This end sends no message any more; the peer may.
 * @s: connection.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: 0; %-ENOTCONN: it is not OPEN yet; %-EALREADY; stream.error: it has failed.
 */
static inline int krp_stream_shut(struct krp_stream *s, __u64 now_ns)
{
	if (s->error)
		return s->error;
	if (s->state < KRP_STREAM_OPEN)
		return -ENOTCONN;
	if (s->state != KRP_STREAM_OPEN && s->state != KRP_STREAM_PEER_SHUT)
		return -EALREADY;
	krp_stream_enter(s, s->state == KRP_STREAM_OPEN ? KRP_STREAM_SHUT : KRP_STREAM_CLOSING);
	s->starved = 0;
	s->owe.close = 1;
	krp_stream_arm(s, now_ns);
	return 0;
}

/**
 * krp_stream_consumed() - Messages have left the backlog: the program has them.
 * @s: connection.
 * @msgs: how many.
 * @units: what krp_message_units() says of them, in all.
 *
 * Context: any.
 */
static inline void krp_stream_consumed(struct krp_stream *s, __u32 msgs, __u32 units)
{
	__u32 have_msgs = s->rx.msgs - s->rx.used_msgs, have_units = s->rx.units - s->rx.used_units;

	if (KRP_MUTANT("keep a credit") && s->rx.used_msgs % 8 == 7)
		return;
	s->rx.used_msgs += msgs < have_msgs ? msgs : have_msgs;
	s->rx.used_units += units < have_units ? units : have_units;
}

/**
 * krp_stream_budget() - What user and port allow this connection.
 * @s: connection.
 * @msgs: messages that it may have in its backlog; 0: no new ones.
 * @units: units likewise; less than one message needs counts as that.
 *
 * Context: any.
 */
static inline void krp_stream_budget(struct krp_stream *s, __u32 msgs, __u32 units)
{
	s->rx.budget_msgs = msgs < s->conf->msgs ? msgs : s->conf->msgs;
	s->rx.budget_units = units < s->conf->units ? units : s->conf->units;
	if (s->rx.budget_units < KRP_MESSAGE_UNITS_MAX)
		s->rx.budget_units = KRP_MESSAGE_UNITS_MAX;
}

/**
 * krp_stream_inquire() - Ask the peer whether it is still there, unless it is being asked.
 * @s: connection that is live.
 * @now_ns: the clock.
 *
 * Pull krp_stream_next() then. One that is not heard for conf.silence_ns is dead.
 *
 * Context: any.
 */
static inline void krp_stream_inquire(struct krp_stream *s, __u64 now_ns)
{
	krp_stream_inquires(s);
	krp_stream_arm(s, now_ns);
}

/**
 * krp_stream_fetch() - The program has a place for a large message: may it be READ?
 * @s: connection.
 * @now_ns: the clock.
 * @seq: its name, from the header of ANNOUNCE.
 *
 * To be asked before each READ is handed to the NIC: what it says is over when lease_ms since
 * stream.heard_ns are, and a READ that has not left the NIC within half of krp_fetch.margin_ms
 * after that is taken back. krp_stream_fetched() ends it.
 *
 * Context: any.
 * Return: 0; %-EAGAIN: the peer is asked whether it is still there, pull until something has come;
 * %-ENOENT: it was withdrawn, or there is none.
 */
static inline int krp_stream_fetch(struct krp_stream *s, __u64 now_ns, __u64 seq)
{
	struct krp_fetch *f = krp_stream_fetch_of(s, seq);

	if (!f || f->state > KRP_FETCH_READING || !krp_stream_live(s->state))
		return -ENOENT;
	if (now_ns - s->time.heard_ns > f->lease_ms * KRP_STREAM_NS_PER_MS &&
	    !KRP_MUTANT("read after the lease")) {
		krp_stream_inquire(s, now_ns);
		return -EAGAIN;
	}
	f->state = KRP_FETCH_READING;
	return 0;
}

/**
 * krp_stream_fetched() - A large message is done with: READ, failed, or not wanted.
 * @s: connection.
 * @seq: its name; no READ of it is in the NIC any more.
 * @status: 0, KRP_REFUSE_DISCARDED, KRP_REFUSE_FAULT or KRP_REFUSE_CANCELLED.
 *
 * Context: any.
 * Return: 0; %-ENOENT: it was withdrawn, or there is none.
 */
static inline int krp_stream_fetched(struct krp_stream *s, __u64 seq, __u32 status)
{
	struct krp_fetch *f = krp_stream_fetch_of(s, seq);

	if (!f || f->state > KRP_FETCH_READING)
		return -ENOENT;
	krp_stream_end_fetch(s, f, status);
	return 0;
}

/**
 * krp_stream_again() - An OPEN has come that this connection was made of.
 * @s: connection; it is @s if krp_listen_same() says so.
 * @now_ns: the clock.
 *
 * One that comes later than an honest opener's can is not answered.
 *
 * Context: any.
 */
static inline void krp_stream_again(struct krp_stream *s, __u64 now_ns)
{
	s->dropped.repeats++;
	if (now_ns - s->time.since_ns >= KRP_STREAM_KNOWN_NS)
		return;
	s->owe.wait = s->state == KRP_STREAM_OFFERED && s->open.pass;
	if (s->state == KRP_STREAM_DEAD && !s->owe.refuse)
		s->owe.refuse = s->said ? s->said : KRP_REFUSE_ABORT;
	if (!krp_stream_unconfirmed(s))
		return;
	s->owe.accept = 1;
	s->time.asked_ns = 0; /* it is there */
	s->time.doom_ns = 0;
}

#endif /* KRP_STREAM_H */
