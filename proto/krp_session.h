/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * A client's session with one MetaServer, as a state machine without any transport.
 * Normative: krp_msg.h says what the messages mean, this header how a client uses them.
 *
 * No lock, memory, clock, randomness or cryptography of its own, and no call-backs. The
 * caller says what has happened, and then pulls what is to be done until there is no more:
 *
 *	krp_session_received(&s, now_ns, msg, bytes);
 *	while (krp_session_next(&s, now_ns, &todo) != KRP_DO_WAIT)
 *		switch (todo.what) {
 *		case KRP_DO_SEND: post todo.msg; krp_session_sent() when the buffer is free
 *		...
 *		}
 *	come back at todo.until_ns, or when something has happened
 *
 * libkrcore (client/lib/session.c), the kernel module (kmod/meta/session.c), the unit tests,
 * KUnit and a fuzzer drive these lines.
 *
 * STATES
 *	DOWN -> CONNECTING -> HELLO -> PROVE -> AUTH -> VERIFY -> LOAD -> READY
 *	any but DOWN -> CLOSING -> DOWN
 *   CONNECTING is the caller's: names, routes, connection requests. PROVE and VERIFY, where
 *   an HMAC is computed, are passed over without a cluster key. LOAD ends with a copy of
 *   root, segments and directory (krp_load.h). Each step, and in CONNECTING and LOAD each one
 *   that krp_session_step() announces, must end within timeout_ms, and the look-up of the
 *   address among the neighbours within krp_addr_ms(). The first failure counts; the machine
 *   says CLOSE, and the caller takes the transport down and says krp_session_closed(). What is
 *   said that does not belong to the state is ignored: it may have been on its way.
 *
 * BACK-OFF
 *   The pause before another attempt begins with reconnect_min_ms and doubles up to
 *   reconnect_max_ms, with a quarter of jitter either way, so that clients spread. An attach
 *   that lasted for less than reconnect_max_ms does not reset it: two clients with one
 *   identity end each other's session as soon as they are attached.
 *
 * TRUST
 *   Whatever comes is checked by krp_msg_check(). A client with a key refuses a server that
 *   demands no proof. A message of another incarnation, an answer to nothing that was asked or
 *   of another type than it must have (also if nobody waits for it any more), a VALUE
 *   without a valid value, and any message that the step of the handshake does not await
 *   end the connection.
 *
 * REQUESTS
 *   A request has a slot, which is its credit and its buffer; its xid includes the slot. The
 *   slot is free when the answer has come and the transport has given the buffer back. There
 *   are as many as WELCOME.credits and the caller's buffers allow. A request without an
 *   answer for timeout_ms ends the connection.
 *   Order: RENEW, SUBSCRIBE, and then questions of callers and dirty records in turn, since
 *   callers may ask without end and records are what peers wait for.
 *   The rate stays a tenth below WELCOME.rate_max, counted over some 100 ms, or over the time
 *   that one message may take if that is longer.
 *
 * LEASE
 *   RENEW goes out at once after the attach, and then every third of the lease, but 100 ms at
 *   least, whatever lease the server grants, and KRP_RENEW_MAX_MS at most, since a server ends
 *   sessions that are silent. PUBLISH and RENEW extend the lease, WITHDRAW does not. What
 *   is sent again, and when, is in krp_records.h.
 *
 * CHANGES
 *   NOTIFYs count from the answer to SUBSCRIBE on. That answer is a RESYNC, a refusal, too:
 *   changes before it were not notified, and none will be after a refusal. A gap in the
 *   numbers is a RESYNC. A caller with a cache empties it at an attach to a new incarnation,
 *   or to a server that does not notify. The loss of a server is a RESYNC, too, which the caller
 *   says, if another one is ready: the lost one may have hung for a while, and what was READ there
 *   is older than what the other has notified meanwhile. If none is ready there is nothing better.
 *
 * WHOM TO ASK FIRST
 *   krp_better(): servers whose miss proves something before those that are settling or stand
 *   still, then by priority, then the one with the fewest recent failures, then the one with
 *   the shortest READs. Any message of a server shows that it does not stand still. How deep
 *   a directory may be is up to the caller's memory; it asks by message beyond.
 *
 * Locking: none here; a publisher and all its sessions are under one lock of the caller.
 */
#ifndef KRP_SESSION_H
#define KRP_SESSION_H

#include "krp_session_state.h"

/**
 * krp_session_connected() - The transport is up: HELLO is next.
 * @s: session, CONNECTING.
 * @now_ns: the clock.
 * @link: ends of the connection.
 * @nonce: random.
 * @key_id: of the client's first key; NULL: it has none.
 *
 * Context: any.
 */
static inline void krp_session_connected(struct krp_session *s, __u64 now_ns,
					 const struct krp_link *link, const __u8 *nonce,
					 const __u8 *key_id)
{
	const struct krp_session_conf *conf = s->conf;
	struct krp_hello *hello = &s->attach.hello;
	__u32 i;

	if (s->state != KRP_SESSION_CONNECTING)
		return;
	s->attach.link = *link;
	s->has_key = !!key_id;
	krp_msg_init(hello, KRP_MSG_HELLO, 1, KRP_ST_OK, 0);
	hello->features = krp_cpu_to_le64(conf->features);
	hello->generation = krp_cpu_to_le64(conf->generation);
	memcpy(hello->owner, conf->owner, sizeof(hello->owner));
	memcpy(hello->gid, link->client_gid, sizeof(hello->gid));
	memcpy(hello->name, conf->name, sizeof(hello->name) - 1);
	memcpy(hello->nonce, nonce, sizeof(hello->nonce));
	hello->lease_ms = krp_cpu_to_le32(conf->lease_ms);
	hello->version_min = KRP_MSG_VERSION;
	hello->version_max = KRP_MSG_VERSION;
	if (key_id)
		memcpy(hello->key_id, key_id, sizeof(hello->key_id));
	memset(s->slots.at, 0, sizeof(s->slots.at));
	krp_list_init(&s->slots.idle);
	krp_list_init(&s->slots.busy);
	for (i = 0; i < KRP_SLOTS_MAX; i++) {
		krp_list_init(&s->slots.at[i].link);
		if (i < conf->slots)
			krp_list_add(&s->slots.at[i].link, &s->slots.idle);
	}
	krp_session_enter(s, now_ns, KRP_SESSION_HELLO, KRP_DO_SEND);
}

/**
 * krp_session_sent() - The transport has given a buffer back.
 * @s: session.
 * @nr: number of the slot.
 *
 * Context: any.
 */
static inline void krp_session_sent(struct krp_session *s, __u32 nr)
{
	struct krp_slot *slot = &s->slots.at[nr % KRP_SLOTS_MAX];

	if (!slot->posted)
		return;
	slot->posted = 0;
	if (!slot->busy)
		krp_list_add(&slot->link, &s->slots.idle);
}

/** krp_session_send_auth() - Send AUTH. @s: session. @now_ns: the clock. @mac: of it, or NULL. */
static inline void krp_session_send_auth(struct krp_session *s, __u64 now_ns, const __u8 *mac)
{
	krp_msg_init(&s->attach.auth, KRP_MSG_AUTH, 2, KRP_ST_OK, 0);
	if (mac)
		memcpy(s->attach.auth.mac, mac, sizeof(s->attach.auth.mac));
	krp_session_enter(s, now_ns, KRP_SESSION_AUTH, KRP_DO_SEND);
}

/**
 * krp_session_prove() - Answer to KRP_DO_PROVE.
 * @s: session.
 * @now_ns: the clock.
 * @err: 0; %-ENOKEY: no key of ours has session.attach.challenge.key_id; or why there is no HMAC.
 * @mac: AUTH.mac.
 *
 * Context: any.
 */
static inline void krp_session_prove(struct krp_session *s, __u64 now_ns, int err, const __u8 *mac)
{
	const __u8 *id = s->attach.challenge.key_id, *own = s->attach.hello.key_id;

	if (s->state != KRP_SESSION_PROVE)
		return;
	if (!err)
		krp_session_send_auth(s, now_ns, mac);
	else if (err == -ENOKEY && !s->has_key)
		krp_session_fail(s, now_ns, -EACCES, "server demands a cluster key, we have none");
	else if (err == -ENOKEY)
		krp_session_fail(
			s, now_ns, -EACCES,
			"server has cluster key %02x%02x%02x%02x, we have %02x%02x%02x%02x", id[0],
			id[1], id[2], id[3], own[0], own[1], own[2], own[3]);
	else
		krp_session_fail(s, now_ns, err, "HMAC-SHA256 failed (%d)", err);
}

/** krp_session_challenged() - CHALLENGE has come. @s: session. @now_ns: the clock. @msg: it. */
static inline void krp_session_challenged(struct krp_session *s, __u64 now_ns,
					  const struct krp_challenge *msg)
{
	s->attach.challenge = *msg;
	s->incarnation = krp_le64_to_cpu(msg->hdr.incarnation);
	if (msg->flags & KRP_CHALLENGE_AUTH)
		krp_session_enter(s, now_ns, KRP_SESSION_PROVE, KRP_DO_PROVE);
	else if (s->has_key)
		krp_session_fail(s, now_ns, -EACCES, "we have a cluster key, this server has none");
	else
		krp_session_send_auth(s, now_ns, NULL);
}

/** krp_session_admitted() - The server is who it should be. @s: session. @now_ns: the clock. */
static inline void krp_session_admitted(struct krp_session *s, __u64 now_ns)
{
	const struct krp_welcome *msg = &s->attach.welcome;

	if (!s->incarnation || krp_le32_to_cpu(msg->root.bytes) != sizeof(struct krp_root)) {
		krp_session_fail(s, now_ns, -EPROTO, "WELCOME names no usable root");
		return;
	}
	s->step = "reading root and directory";
	krp_session_enter(s, now_ns, KRP_SESSION_LOAD, KRP_DO_LOAD);
}

/** krp_session_welcomed() - WELCOME has come. @s: session. @now_ns: the clock. @msg: it. */
static inline void krp_session_welcomed(struct krp_session *s, __u64 now_ns,
					const struct krp_welcome *msg)
{
	s->attach.welcome = *msg;
	if (s->attach.challenge.flags & KRP_CHALLENGE_AUTH)
		krp_session_enter(s, now_ns, KRP_SESSION_VERIFY, KRP_DO_VERIFY);
	else
		krp_session_admitted(s, now_ns);
}

/**
 * krp_session_verify() - Answer to KRP_DO_VERIFY.
 * @s: session.
 * @now_ns: the clock.
 * @mac: what WELCOME.mac must be; NULL: the key is gone, or there is no HMAC.
 *
 * Context: any. The comparison takes the same time whatever differs.
 */
static inline void krp_session_verify(struct krp_session *s, __u64 now_ns, const __u8 *mac)
{
	unsigned int i, differs = !mac;

	if (s->state != KRP_SESSION_VERIFY)
		return;
	for (i = 0; mac && i < KRP_MAC_BYTES; i++) {
		differs |= (unsigned int)(mac[i] ^ s->attach.welcome.mac[i]);
		__asm__("" : "+r"(differs)); /* the compiler may not end the loop early */
	}
	if (differs)
		krp_session_fail(s, now_ns, -EACCES,
				 "the server's proof does not hold: it lacks our cluster key, or "
				 "somebody is between us");
	else
		krp_session_admitted(s, now_ns);
}

/**
 * krp_session_loaded() - Answer to KRP_DO_LOAD.
 * @s: session.
 * @now_ns: the clock.
 * @err: 0: READY is next; else why the table cannot be read.
 *
 * Context: any.
 */
static inline void krp_session_loaded(struct krp_session *s, __u64 now_ns, int err)
{
	const struct krp_welcome *w = &s->attach.welcome;
	__u32 settling_ms = krp_le32_to_cpu(w->settling_ms);
	__u32 credits = krp_le16_to_cpu(w->credits);

	if (s->state != KRP_SESSION_LOAD)
		return;
	if (err) {
		krp_session_fail(s, now_ns, err, "the table cannot be read (%d)", err);
		return;
	}
	s->fresh = s->peer.incarnation != s->incarnation;
	s->peer.incarnation = s->incarnation;
	s->peer.lease_ms = krp_le32_to_cpu(w->lease_ms);
	memcpy(s->peer.token, w->token, sizeof(s->peer.token));
	s->rate_max = krp_le32_to_cpu(w->rate_max);
	s->slots.credits = credits < s->conf->slots ? credits : s->conf->slots;
	s->features = krp_le64_to_cpu(s->attach.challenge.features);
	krp_session_pulse(s, now_ns, 0, settling_ms);
	s->failure.error = 0;
	s->failure.reason[0] = '\0';
	s->attaches++;
	s->ready_ns = now_ns;
	s->lease.acked_ns = now_ns;
	s->lease.renew_ns = now_ns;
	s->pace.ns = now_ns;
	s->pace.nr = 2; /* HELLO and AUTH count at the server, too */
	s->notice.seq = 0;
	s->sub.due = s->sub.want && (s->features & KRP_FEATURE_NOTIFY);
	krp_records_mark(s->pub, s->peer.index, ~0U, KRP_AT_DIRTY);
	krp_session_enter(s, now_ns, KRP_SESSION_READY, KRP_DO_UP);
}

/**
 * krp_session_leave() - Withdraw everything from the server, and publish nothing any more.
 * @s: session.
 *
 * krp_session_left() says when that is over. Context: any.
 */
static inline void krp_session_leave(struct krp_session *s)
{
	s->peer.leaving = 1;
	/* dirty ones stay so: the server may have an older value */
	krp_records_mark(s->pub, s->peer.index, ~0U, KRP_AT_DIRTY);
}

/**
 * krp_session_left() - Whether the server has answered for every record, or is not attached.
 * @s: session.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_session_left(const struct krp_session *s)
{
	return s->state != KRP_SESSION_READY || !krp_records_open(&s->peer);
}

/**
 * krp_session_ask() - Put a question; it ends with KRP_DO_DONE.
 * @s: session.
 * @ask: @key and @type are set; stays until then, or until krp_session_give_up().
 *
 * Context: any.
 * Return: 0; %-ENOTCONN: not attached, or the server does not answer such questions.
 */
static inline int krp_session_ask(struct krp_session *s, struct krp_ask *ask)
{
	krp_list_init(&ask->link);
	ask->slot = 0;
	ask->err = -ENOTCONN;
	if (s->state != KRP_SESSION_READY ||
	    (ask->type == KRP_MSG_LOOKUP && !(s->features & KRP_FEATURE_LOOKUP)))
		return -ENOTCONN;
	ask->err = -EINPROGRESS;
	krp_list_add(&ask->link, &s->asks);
	return 0;
}

/**
 * krp_session_give_up() - Nobody waits for a question any more, which is the caller's again.
 * @s: session.
 * @ask: question; if it has not ended, its outcome is %-ETIMEDOUT.
 *
 * Context: any.
 */
static inline void krp_session_give_up(struct krp_session *s, struct krp_ask *ask)
{
	krp_list_del(&ask->link);
	if (ask->slot)
		s->slots.at[ask->slot - 1].ask = NULL;
	ask->slot = 0;
	if (ask->err == -EINPROGRESS)
		ask->err = -ETIMEDOUT;
}

/**
 * krp_session_subscribe() - Be notified, now and after each attach, or not any more.
 * @s: session.
 * @on: 1: be.
 *
 * session.sub.done reaches session.sub.nr when the server has answered with session.sub.err.
 * Context: any.
 * Return: 0; %-ENOTCONN: it can't be told now.
 */
static inline int krp_session_subscribe(struct krp_session *s, int on)
{
	s->sub.want = !!on;
	if (s->state != KRP_SESSION_READY || !(s->features & KRP_FEATURE_NOTIFY))
		return -ENOTCONN;
	s->sub.nr++;
	s->sub.due = 1;
	return 0;
}

/**
 * krp_session_renewed() - RENEW is answered.
 * @s: session.
 * @now_ns: the clock.
 * @slot: its slot.
 * @err: answer.
 * @records: krp_ack.records.
 *
 * The count is comparable only if no PUBLISH or WITHDRAW was in flight together with RENEW.
 * Context: any.
 */
static inline void krp_session_renewed(struct krp_session *s, __u64 now_ns,
				       const struct krp_slot *slot, int err, __u32 records)
{
	int late = now_ns - s->lease.acked_ns > s->peer.lease_ms * KRP_NS_PER_MS;
	int fewer = slot->mark == s->changes && !s->peer.live[KRP_AT_SENT] &&
		    records < s->peer.live[KRP_AT_ACKED];

	if (err && err != -ENOENT)
		return;
	s->lease.acked_ns = now_ns;
	if (late || err || fewer)
		krp_records_mark(s->pub, s->peer.index, 1U << KRP_AT_ACKED, KRP_AT_DIRTY);
}

/** krp_session_subscribed() - SUBSCRIBE is answered. @s: session. @slot: its slot. @err: answer. */
static inline void krp_session_subscribed(struct krp_session *s, const struct krp_slot *slot,
					  int err)
{
	int on = slot->flags & KRP_SUBSCRIBE_ALL;

	s->sub.done = slot->mark;
	s->sub.err = err;
	s->sub.on = on && !err;
	/* counted per session: a second SUBSCRIBE does not begin at 1 again */
	s->notice.seq = 0;
	if (on)
		s->notice.resync = 1;
}

/**
 * krp_session_judge() - Do what the answer to a request means.
 * @s: session.
 * @now_ns: the clock.
 * @slot: slot of the request, which is not busy any more.
 * @hdr: answer.
 * @err: its status.
 *
 * Context: any.
 */
static inline void krp_session_judge(struct krp_session *s, __u64 now_ns, struct krp_slot *slot,
				     const struct krp_msg_hdr *hdr, int err)
{
	int withdraw = slot->type == KRP_MSG_WITHDRAW;

	if (slot->ask) {
		if (hdr->type == KRP_MSG_VALUE && !err)
			slot->ask->value = ((const struct krp_value_msg *)(const void *)hdr)->value;
		krp_ask_end(s, slot->ask, err);
		slot->ask = NULL;
		return;
	}
	s->outcome.due = 1;
	s->outcome.type = slot->type;
	s->outcome.err = err;
	s->outcome.refusal = 0;
	s->outcome.key = slot->key;
	if (slot->type == KRP_MSG_PUBLISH && !err)
		s->lease.acked_ns = now_ns;
	if (slot->version)
		s->outcome.refusal = (__u8)krp_records_answered(s->pub, s->peer.index, &slot->key,
								slot->version, withdraw, err);
	s->failure.nr += s->outcome.refusal;
	if (slot->type == KRP_MSG_RENEW)
		krp_session_renewed(
			s, now_ns, slot, err,
			krp_le32_to_cpu(((const struct krp_ack *)(const void *)hdr)->records));
	else if (slot->type == KRP_MSG_SUBSCRIBE)
		krp_session_subscribed(s, slot, err);
}

/** krp_session_answer() - An answer has come. @s: session, READY. @now_ns: the clock. @hdr: it. */
static inline void krp_session_answer(struct krp_session *s, __u64 now_ns,
				      const struct krp_msg_hdr *hdr)
{
	__u32 xid = krp_le32_to_cpu(hdr->xid);
	struct krp_slot *slot = &s->slots.at[xid % KRP_SLOTS_MAX];
	unsigned int status = krp_le16_to_cpu(hdr->status);
	__u8 type = slot->type == KRP_MSG_LOOKUP ? KRP_MSG_VALUE : KRP_MSG_ACK;

	if (status == KRP_ST_SHUTDOWN) {
		krp_session_fail(s, now_ns, -ESHUTDOWN, "server is shutting down");
		return;
	}
	if (!slot->busy || slot->xid != xid || hdr->type != type) {
		krp_session_fail(s, now_ns, -EPROTO, "%s answers nothing that was asked",
				 krp_msg_name(hdr->type));
		return;
	}
	if (type == KRP_MSG_VALUE && !status &&
	    !krp_value_valid(&((const struct krp_value_msg *)(const void *)hdr)->value)) {
		krp_session_fail(s, now_ns, -EPROTO, "VALUE has no valid value");
		return;
	}
	slot->busy = 0;
	s->slots.busy_nr--;
	krp_list_del(&slot->link);
	if (!slot->posted)
		krp_list_add(&slot->link, &s->slots.idle);
	krp_session_judge(s, now_ns, slot, hdr, krp_status_errno(status));
}

/** krp_session_notified() - NOTIFY has come. @s: session, READY. @msg: it. Context: any. */
static inline void krp_session_notified(struct krp_session *s, const struct krp_notify *msg)
{
	__u64 seq = krp_le64_to_cpu(msg->seq);

	if (!s->sub.on)
		return;
	if (s->notice.seq && seq != s->notice.seq + 1)
		s->notice.resync = 1;
	s->notice.seq = seq;
	s->notice.msg = *msg;
	s->notice.at = 0;
}

/** krp_session_shake() - A message of the handshake. @s: session. @now_ns: the clock. @hdr: it. */
static inline void krp_session_shake(struct krp_session *s, __u64 now_ns,
				     const struct krp_msg_hdr *hdr)
{
	const char *what = s->state == KRP_SESSION_HELLO ? "HELLO" : "AUTH";
	unsigned int status = krp_le16_to_cpu(hdr->status);

	if (status)
		krp_session_fail(s, now_ns, krp_status_errno(status), "server refuses %s: %s", what,
				 krp_status_text(status));
	else if (s->state == KRP_SESSION_HELLO && s->act == KRP_DO_WAIT &&
		 hdr->type == KRP_MSG_CHALLENGE)
		krp_session_challenged(s, now_ns, (const struct krp_challenge *)(const void *)hdr);
	else if (s->state == KRP_SESSION_AUTH && s->act == KRP_DO_WAIT &&
		 hdr->type == KRP_MSG_WELCOME &&
		 krp_le64_to_cpu(hdr->incarnation) == s->incarnation)
		krp_session_welcomed(s, now_ns, (const struct krp_welcome *)(const void *)hdr);
	else
		krp_session_fail(s, now_ns, -EPROTO, "unexpected %s during the handshake",
				 krp_msg_name(hdr->type));
}

/**
 * krp_session_received() - The server has sent something.
 * @s: session.
 * @now_ns: the clock.
 * @msg: it, 8-byte aligned; never trusted.
 * @bytes: how many.
 *
 * Pull krp_session_next() before the next one. Context: any.
 */
static inline void krp_session_received(struct krp_session *s, __u64 now_ns, const void *msg,
					__u32 bytes)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)msg;
	unsigned int status;

	if (s->state < KRP_SESSION_HELLO || s->state > KRP_SESSION_READY)
		return;
	status = krp_msg_check(msg, bytes, 0);
	if (status == KRP_ST_VERSION) {
		krp_session_fail(s, now_ns, -EPROTONOSUPPORT,
				 "server sent a message of another protocol version");
		return;
	}
	if (status) {
		krp_session_fail(s, now_ns, -EPROTO, "server sent a malformed message");
		return;
	}
	s->still = 0;
	if (s->state != KRP_SESSION_READY)
		krp_session_shake(s, now_ns, hdr);
	else if (krp_le64_to_cpu(hdr->incarnation) != s->incarnation)
		krp_session_fail(s, now_ns, -ESTALE, "%s of another incarnation",
				 krp_msg_name(hdr->type));
	else if (hdr->type == KRP_MSG_NOTIFY)
		krp_session_notified(s, (const struct krp_notify *)msg);
	else
		krp_session_answer(s, now_ns, hdr);
}

/** krp_session_change() - Say the next change. @s: session. @ret: filled. Return: 0: none. */
static inline int krp_session_change(struct krp_session *s, struct krp_todo *ret)
{
	const struct krp_change *change;

	if (!s->notice.resync && s->notice.at >= s->notice.msg.nr)
		return 0;
	ret->what = KRP_DO_CHANGE;
	ret->event = KRP_EVENT_RESYNC;
	if (s->notice.resync) {
		s->notice.resync = 0;
		return 1;
	}
	change = &s->notice.msg.change[s->notice.at++];
	if (change->event == KRP_EVENT_RESYNC)
		return 1;
	ret->event = change->event;
	ret->key = change->key;
	ret->generation = krp_le64_to_cpu(change->generation);
	if (change->event == KRP_EVENT_GONE)
		krp_records_lost(s->pub, s->peer.index, &ret->key, ret->generation);
	return 1;
}

/** krp_session_news() - Say what has ended or changed. @s: session. @ret: filled. Return: 0: none. */
static inline int krp_session_news(struct krp_session *s, struct krp_todo *ret)
{
	struct krp_list *l = s->ended_asks.next;

	if (!krp_list_empty(&s->ended_asks)) {
		krp_list_del(l);
		ret->what = KRP_DO_DONE;
		ret->ask = krp_entry(l, struct krp_ask, link);
		ret->type = ret->ask->type;
		ret->err = ret->ask->err;
		ret->key = ret->ask->key;
		return 1;
	}
	if (!s->outcome.due)
		return krp_session_change(s, ret);
	s->outcome.due = 0;
	ret->what = KRP_DO_DONE;
	ret->type = s->outcome.type;
	ret->err = s->outcome.err;
	ret->refusal = s->outcome.refusal;
	ret->key = s->outcome.key;
	return 1;
}

/** krp_session_tick() - Do what the clock says. @s: session, READY. @now_ns: the clock. */
static inline void krp_session_tick(struct krp_session *s, __u64 now_ns)
{
	__u32 ms = s->peer.lease_ms / 3;
	const struct krp_slot *oldest = krp_entry(s->slots.busy.next, struct krp_slot, link);

	if (s->slots.busy_nr && now_ns - oldest->sent_ns > krp_session_timeout_ns(s)) {
		krp_session_fail(s, now_ns, -ETIMEDOUT, "no answer to a request for %u ms",
				 krp_session_timeout_ms(s));
		return;
	}
	if (now_ns < s->lease.renew_ns)
		return;
	ms = ms < KRP_RENEW_MAX_MS ? ms : KRP_RENEW_MAX_MS;
	ms = ms > KRP_RENEW_MIN_MS ? ms : KRP_RENEW_MIN_MS;
	s->lease.renew_ns = now_ns + ms * KRP_NS_PER_MS;
	s->lease.due = 1;
	krp_records_mark(s->pub, s->peer.index, 1U << KRP_AT_REFUSED, KRP_AT_DIRTY);
	krp_records_expire(s->pub, now_ns);
}

/** krp_session_due() - Do what the clock says in any state. @s: session. @now_ns: the clock. */
static inline void krp_session_due(struct krp_session *s, __u64 now_ns)
{
	static const char *const steps[] = {
		"waiting",   "connecting",	   "the answer to HELLO",
		"our proof", "the answer to AUTH", "the server's proof",
		"the load",
	};
	const char *step;

	switch (s->state) {
	case KRP_SESSION_DOWN:
		if (s->ended || now_ns < s->failure.retry_ns)
			return;
		s->step = "connecting";
		krp_session_enter(s, now_ns, KRP_SESSION_CONNECTING, KRP_DO_CONNECT);
		return;
	case KRP_SESSION_CLOSING:
		return;
	case KRP_SESSION_READY:
		krp_session_tick(s, now_ns);
		return;
	default:
		if (now_ns < s->deadline_ns)
			return;
		step = s->state == KRP_SESSION_CONNECTING || s->state == KRP_SESSION_LOAD
			       ? s->step
			       : steps[s->state];
		krp_session_fail(s, now_ns, -ETIMEDOUT, "%s took more than %u ms", step,
				 krp_session_timeout_ms(s));
		return;
	}
}

/** krp_session_interval_ns() - Interval of rate limiting. @s: session, with a rate.
 * @ret_most: messages in it. Return: ns.
 */
static inline __u64 krp_session_interval_ns(const struct krp_session *s, __u32 *ret_most)
{
	__u64 most = (__u64)s->rate_max * 9 / 100;

	most = most ? most : 1;
	*ret_most = (__u32)most;
	return (most * 10000 / (9ULL * s->rate_max) + 1) * KRP_NS_PER_MS;
}

/** krp_session_pace() - Whether the rate forbids a message. @s: session. @now_ns: the clock. */
static inline int krp_session_pace(struct krp_session *s, __u64 now_ns)
{
	__u32 most;

	if (!s->rate_max)
		return 0;
	if (now_ns - s->pace.ns >= krp_session_interval_ns(s, &most)) {
		s->pace.ns = now_ns;
		s->pace.nr = 0;
	}
	s->pace.full = s->pace.nr >= most;
	return s->pace.full;
}

/** krp_session_fill_record() - Build PUBLISH or WITHDRAW. @s: session. @slot: slot. @rec: record.
 * @msg: filled.
 */
static inline void krp_session_fill_record(struct krp_session *s, struct krp_slot *slot,
					   struct krp_record *rec, void *msg)
{
	struct krp_withdraw *withdraw = (struct krp_withdraw *)msg;
	struct krp_publish *publish = (struct krp_publish *)msg;

	slot->type = rec->gone || s->peer.leaving ? KRP_MSG_WITHDRAW : KRP_MSG_PUBLISH;
	slot->key = rec->key;
	slot->version = rec->version;
	s->changes++;
	rec->at[s->peer.index].there = 1;
	krp_record_set(s->pub, rec, s->peer.index, KRP_AT_SENT);
	krp_msg_init(msg, slot->type, 0, KRP_ST_OK, 0);
	if (slot->type == KRP_MSG_WITHDRAW) {
		withdraw->key = rec->key;
		krp_record_token(rec, s->incarnation, withdraw->token);
	} else {
		publish->key = rec->key;
		publish->value = rec->value;
	}
}

/** krp_session_fill_ask() - Build the question that has waited the longest. @s: session.
 * @slot: slot. @msg: filled.
 */
static inline void krp_session_fill_ask(struct krp_session *s, struct krp_slot *slot, void *msg)
{
	struct krp_ask *ask = krp_entry(s->asks.next, struct krp_ask, link);

	krp_list_del(&ask->link);
	ask->slot = (__u32)(slot - s->slots.at + 1);
	slot->ask = ask;
	slot->type = ask->type;
	krp_msg_init(msg, slot->type, 0, KRP_ST_OK, 0);
	if (slot->type == KRP_MSG_LOOKUP)
		((struct krp_lookup_msg *)msg)->key = ask->key;
	else
		((struct krp_withdraw *)msg)->key = ask->key;
	s->changes += slot->type == KRP_MSG_WITHDRAW;
}

/** krp_session_fill() - Build the next message that is due. @s: session. @slot: free slot.
 * @msg: filled. Return: 0: there is none.
 */
static inline int krp_session_fill(struct krp_session *s, struct krp_slot *slot, void *msg)
{
	struct krp_record *rec = krp_records_dirty(&s->peer);

	slot->ask = NULL;
	slot->version = 0;
	memset(&slot->key, 0, sizeof(slot->key));
	if (s->lease.due) {
		s->lease.due = 0;
		slot->mark = s->changes;
		slot->type = KRP_MSG_RENEW;
		krp_msg_init(msg, slot->type, 0, KRP_ST_OK, 0);
		return 1;
	}
	if (s->sub.due) {
		s->sub.due = 0;
		slot->mark = s->sub.nr;
		slot->type = KRP_MSG_SUBSCRIBE;
		slot->flags = s->sub.want ? KRP_SUBSCRIBE_ALL : 0;
		krp_msg_init(msg, slot->type, 0, KRP_ST_OK, 0);
		((struct krp_subscribe *)msg)->flags = slot->flags;
		return 1;
	}
	if (!krp_list_empty(&s->asks) && !(s->asked_last && rec)) {
		s->asked_last = 1;
		krp_session_fill_ask(s, slot, msg);
		return 1;
	}
	if (!rec)
		return 0;
	s->asked_last = 0;
	krp_session_fill_record(s, slot, rec, msg);
	return 1;
}

/** krp_session_idle() - Whether no request is due. @s: session. Context: any. Return: 1 or 0. */
static inline int krp_session_idle(const struct krp_session *s)
{
	return !s->lease.due && !s->sub.due && krp_list_empty(&s->asks) &&
	       !s->peer.count[KRP_AT_DIRTY];
}

/** krp_session_pump() - Send the next request, if that may be now. @s: session, READY.
 * @now_ns: the clock. @ret: filled. Return: 0: not now.
 */
static inline int krp_session_pump(struct krp_session *s, __u64 now_ns, struct krp_todo *ret)
{
	struct krp_msg_hdr *hdr = (struct krp_msg_hdr *)(void *)ret->msg;
	struct krp_slot *slot = krp_entry(s->slots.idle.next, struct krp_slot, link);

	s->pace.full = 0;
	if (krp_session_idle(s) || krp_list_empty(&s->slots.idle) ||
	    s->slots.busy_nr >= s->slots.credits || krp_session_pace(s, now_ns) ||
	    !krp_session_fill(s, slot, ret->msg))
		return 0;
	ret->what = KRP_DO_SEND;
	ret->slot = (__u32)(slot - s->slots.at);
	ret->type = slot->type;
	ret->bytes = krp_msg_bytes(slot->type);
	do {
		slot->xid = ++s->xid * KRP_SLOTS_MAX + ret->slot;
	} while (!slot->xid);
	hdr->xid = krp_cpu_to_le32(slot->xid);
	krp_session_take_slot(s, ret->slot);
	slot->busy = 1;
	slot->sent_ns = now_ns;
	krp_list_add(&slot->link, &s->slots.busy);
	s->slots.busy_nr++;
	s->pace.nr++;
	return 1;
}

/** krp_session_act() - Say the step that is to be taken. @s: session. @ret: filled. Return: 0: none. */
static inline int krp_session_act(struct krp_session *s, struct krp_todo *ret)
{
	int hello = s->state == KRP_SESSION_HELLO;

	if (s->act == KRP_DO_WAIT)
		return 0;
	ret->what = (enum krp_do)s->act;
	s->act = KRP_DO_WAIT;
	if (ret->what != KRP_DO_SEND)
		return 1;
	ret->slot = hello ? 0 : 1;
	ret->type = hello ? KRP_MSG_HELLO : KRP_MSG_AUTH;
	ret->bytes = krp_msg_bytes(ret->type);
	if (hello)
		memcpy(ret->msg, &s->attach.hello, sizeof(s->attach.hello));
	else
		memcpy(ret->msg, &s->attach.auth, sizeof(s->attach.auth));
	krp_session_take_slot(s, ret->slot);
	return 1;
}

/** krp_session_until_ns() - When the clock has something to say. @s: session. Return: ns. */
static inline __u64 krp_session_until_ns(const struct krp_session *s)
{
	const struct krp_slot *oldest = krp_entry(s->slots.busy.next, struct krp_slot, link);
	__u64 until_ns, at_ns;
	__u32 most;

	switch (s->state) {
	case KRP_SESSION_DOWN:
		return s->ended ? KRP_FOREVER_NS : s->failure.retry_ns;
	case KRP_SESSION_CLOSING:
		return KRP_FOREVER_NS;
	case KRP_SESSION_READY:
		break;
	default:
		return s->deadline_ns;
	}
	until_ns = s->lease.renew_ns;
	at_ns = s->slots.busy_nr ? oldest->sent_ns + krp_session_timeout_ns(s) + 1 : KRP_FOREVER_NS;
	until_ns = at_ns < until_ns ? at_ns : until_ns;
	at_ns = s->pace.full ? s->pace.ns + krp_session_interval_ns(s, &most) : KRP_FOREVER_NS;
	return at_ns < until_ns ? at_ns : until_ns;
}

/**
 * krp_session_next() - What is to be done next.
 * @s: session.
 * @now_ns: the clock, which never goes back.
 * @ret: filled.
 *
 * Pull until KRP_DO_WAIT whenever something was said to the session, and when a record of its
 * publisher has changed.
 *
 * Context: any.
 * Return: @ret->what.
 */
static inline enum krp_do krp_session_next(struct krp_session *s, __u64 now_ns,
					   struct krp_todo *ret)
{
	memset(ret, 0, sizeof(*ret));
	krp_session_due(s, now_ns);
	if (krp_session_news(s, ret) || krp_session_act(s, ret))
		return ret->what;
	if (s->state == KRP_SESSION_READY && krp_session_pump(s, now_ns, ret))
		return ret->what;
	ret->what = KRP_DO_WAIT;
	ret->until_ns = krp_session_until_ns(s);
	return ret->what;
}

#endif /* KRP_SESSION_H */
