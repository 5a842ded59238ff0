/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What a client's session with a MetaServer is made of, how it changes its state, and which
 * session is asked first. krp_session.h, whose head is the contract, is what callers include:
 * it adds what comes in (handshake, answers, changes) and what is to be done next.
 *
 * krp_session_enter() is the one way from state to state.
 *
 * Locking: none here; a publisher and all its sessions are under one lock of the caller.
 */
#ifndef KRP_SESSION_STATE_H
#define KRP_SESSION_STATE_H

#include "krp_records.h"

#ifdef __KERNEL__
#include <linux/kernel.h>
#else
#include <stdio.h>
#endif

#define KRP_SLOTS_MAX 64 /* requests unanswered at most; a power of two */
#define KRP_RENEW_MAX_MS 15000
#define KRP_RENEW_MIN_MS 100
#define KRP_REASON_BYTES 128
#define KRP_BLAME 16 /* score of one failure */
#define KRP_BLAME_NS (10000 * KRP_NS_PER_MS) /* it halves in this time */

/**
 * enum krp_session_state - State of a session; see the head of krp_session.h.
 * @KRP_SESSION_DOWN: no transport; waiting for the next attempt, or ended.
 * @KRP_SESSION_CONNECTING: the caller is connecting.
 * @KRP_SESSION_HELLO: CHALLENGE is awaited.
 * @KRP_SESSION_PROVE: the caller computes our proof.
 * @KRP_SESSION_AUTH: WELCOME is awaited.
 * @KRP_SESSION_VERIFY: the caller computes the server's proof.
 * @KRP_SESSION_LOAD: the caller READs root, segments and directory.
 * @KRP_SESSION_READY: attached.
 * @KRP_SESSION_CLOSING: the caller takes the transport down.
 */
enum krp_session_state {
	KRP_SESSION_DOWN,
	KRP_SESSION_CONNECTING,
	KRP_SESSION_HELLO,
	KRP_SESSION_PROVE,
	KRP_SESSION_AUTH,
	KRP_SESSION_VERIFY,
	KRP_SESSION_LOAD,
	KRP_SESSION_READY,
	KRP_SESSION_CLOSING,
};

/**
 * enum krp_do - What is to be done next.
 * @KRP_DO_WAIT: nothing, until todo.until_ns.
 * @KRP_DO_CONNECT: connect; then krp_session_connected() or krp_session_lost().
 * @KRP_DO_SEND: send todo.msg; on failure krp_session_lost(), later krp_session_sent().
 * @KRP_DO_PROVE: answer with krp_session_prove(): AUTH.mac for link, hello and challenge of
 *	session.attach.
 * @KRP_DO_VERIFY: answer with krp_session_verify(): WELCOME.mac, of session.attach.welcome too.
 * @KRP_DO_LOAD: READ the table whose root session.attach.welcome names; then
 *	krp_session_loaded().
 * @KRP_DO_UP: the session is READY; session.fresh: with a new incarnation.
 * @KRP_DO_CHANGE: todo.event has happened to todo.key at this server.
 * @KRP_DO_DONE: todo.ask has ended, or a request for todo.key was answered with todo.err.
 * @KRP_DO_CLOSE: take the transport down: session.failure; then krp_session_closed().
 */
enum krp_do {
	KRP_DO_WAIT,
	KRP_DO_CONNECT,
	KRP_DO_SEND,
	KRP_DO_PROVE,
	KRP_DO_VERIFY,
	KRP_DO_LOAD,
	KRP_DO_UP,
	KRP_DO_CHANGE,
	KRP_DO_DONE,
	KRP_DO_CLOSE,
};

/**
 * struct krp_session_conf - Settings of a client; shared by its sessions, may change.
 * @owner: krp_hello.owner.
 * @name: krp_hello.name.
 * @generation: krp_hello.generation.
 * @features: krp_hello.features, host order.
 * @lease_ms: krp_hello.lease_ms.
 * @timeout_ms: longest step of an attach, and longest time for an answer.
 * @reconnect_min_ms: first pause before another attempt.
 * @reconnect_max_ms: longest.
 * @slots: buffers of the caller for requests, at least 2, up to KRP_SLOTS_MAX.
 */
struct krp_session_conf {
	__u8 owner[KRP_OWNER_BYTES];
	__u8 name[KRP_NAME_BYTES];
	__u64 generation;
	__u64 features;
	__u32 lease_ms;
	__u32 timeout_ms;
	__u32 reconnect_min_ms;
	__u32 reconnect_max_ms;
	__u32 slots;
};

#define KRP_ADDR_MS_MAX 5000

/**
 * krp_addr_ms() - How long a caller may wait for the address of a neighbour in one attempt.
 * @timeout_ms: of the session, in milliseconds.
 *
 * The kernel asks the network for a neighbour some three times, within seconds, and then
 * only waits for somebody else to ask. With a long @timeout_ms a server that was away for
 * so long would not be found before that time is over.
 *
 * Context: any.
 * Return: milliseconds, @timeout_ms or KRP_ADDR_MS_MAX.
 */
static inline __u32 krp_addr_ms(__u32 timeout_ms)
{
	return timeout_ms < KRP_ADDR_MS_MAX ? timeout_ms : KRP_ADDR_MS_MAX;
}

/**
 * struct krp_ask - A question of a caller who waits for the answer.
 * @link: in krp_session.asks, or in krp_session.ended_asks until KRP_DO_DONE.
 * @key: name of the record.
 * @value: out: of LOOKUP.
 * @type: KRP_MSG_LOOKUP, or KRP_MSG_WITHDRAW of a record that is none of the publisher's.
 * @slot: where it waits for its answer, from 1; 0: not sent.
 * @err: %-EINPROGRESS; then 0, the server's answer, %-ENOTCONN or %-ETIMEDOUT.
 */
struct krp_ask {
	struct krp_list link;
	struct krp_key key;
	struct krp_value value;
	__u8 type;
	__u32 slot;
	int err;
};

/**
 * struct krp_slot - A credit and its buffer.
 * @link: in krp_session.slots.idle or krp_session.slots.busy; in neither if only @posted.
 * @ask: the question; NULL: none, or the caller gave up.
 * @key: PUBLISH, WITHDRAW: record.
 * @version: PUBLISH, WITHDRAW: its version.
 * @mark: RENEW: session.changes when it was sent; SUBSCRIBE: session.sub.nr.
 * @sent_ns: when it was sent.
 * @xid: number of the request.
 * @type: KRP_MSG_*.
 * @flags: SUBSCRIBE: krp_subscribe.flags.
 * @busy: the answer is outstanding.
 * @posted: the buffer is the transport's.
 */
struct krp_slot {
	struct krp_list link;
	struct krp_ask *ask;
	struct krp_key key;
	__u64 version;
	__u64 mark;
	__u64 sent_ns;
	__u32 xid;
	__u8 type;
	__u8 flags;
	__u8 busy;
	__u8 posted;
};

/**
 * struct krp_todo - What is to be done.
 * @what: enum krp_do.
 * @until_ns: WAIT: when to come back; KRP_FOREVER_NS: only when something has happened.
 * @slot: SEND: number of the buffer.
 * @bytes: SEND: length of @msg.
 * @type: SEND: KRP_MSG_*; DONE: of the request.
 * @event: CHANGE: KRP_EVENT_*.
 * @refusal: DONE: the server refuses the record, for another reason than before.
 * @err: DONE: answer of the server, 0 or negative errno.
 * @generation: CHANGE: of the record.
 * @ask: DONE: the question, which the session does not use any more; NULL: of none.
 * @key: CHANGE, DONE: record; zero for RESYNC and for requests without a record.
 * @msg: SEND: the message.
 */
struct krp_todo {
	enum krp_do what;
	__u64 until_ns;
	__u32 slot;
	__u32 bytes;
	__u8 type;
	__u8 event;
	__u8 refusal;
	int err;
	__u64 generation;
	struct krp_ask *ask;
	struct krp_key key;
	__u64 msg[KRP_MSG_BYTES_MAX / sizeof(__u64)];
};

/**
 * struct krp_session_failure - What went wrong with a session, and when it is tried again.
 * @error: last failure, 0 once READY.
 * @reason: text of it.
 * @in_a_row: failures in a row.
 * @retry_ns: DOWN: when to try again.
 * @blame: score of recent failures, as of @blame_ns.
 * @blame_ns: when it was computed.
 * @nr: failures of an attached session, READs and refused records.
 */
struct krp_session_failure {
	int error;
	char reason[KRP_REASON_BYTES];
	__u32 in_a_row;
	__u64 retry_ns;
	__u32 blame;
	__u64 blame_ns;
	__u64 nr;
};

/**
 * struct krp_session_attach - What was said at the attach.
 * @link: ends of the connection.
 * @hello: as sent.
 * @challenge: as received.
 * @auth: as sent.
 * @welcome: as received.
 */
struct krp_session_attach {
	struct krp_link link;
	struct krp_hello hello;
	struct krp_challenge challenge;
	struct krp_auth auth;
	struct krp_welcome welcome;
};

/**
 * struct krp_session_lease - The lease of what is published.
 * @acked_ns: when the server last extended the lease.
 * @renew_ns: when to renew.
 * @due: RENEW is to be sent.
 */
struct krp_session_lease {
	__u64 acked_ns;
	__u64 renew_ns;
	__u8 due;
};

/**
 * struct krp_session_sub - The subscription to notifications.
 * @want: the caller wants to be notified.
 * @due: SUBSCRIBE is to be sent.
 * @on: NOTIFYs count.
 * @err: answer to SUBSCRIBE number @done.
 * @nr: counts krp_session_subscribe().
 * @done: number of the last one answered.
 */
struct krp_session_sub {
	__u8 want;
	__u8 due;
	__u8 on;
	int err;
	__u64 nr;
	__u64 done;
};

/**
 * struct krp_session_notice - The NOTIFY of which changes are being said.
 * @seq: number of the last NOTIFY; 0: none yet.
 * @msg: it, until all its changes were said.
 * @at: how many of them were.
 * @resync: KRP_EVENT_RESYNC is to be said.
 */
struct krp_session_notice {
	__u64 seq;
	struct krp_notify msg;
	__u32 at;
	__u8 resync;
};

/**
 * struct krp_session_outcome - A request that was answered, which is to be said with KRP_DO_DONE.
 * @due: there is one.
 * @type: its type.
 * @refusal: see krp_todo.refusal.
 * @err: the answer.
 * @key: its record, or zero.
 */
struct krp_session_outcome {
	__u8 due;
	__u8 type;
	__u8 refusal;
	int err;
	struct krp_key key;
};

/**
 * struct krp_session_pace - How many messages the server takes.
 * @ns: begin of the present interval.
 * @nr: messages sent in it.
 * @full: requests wait for the next interval.
 */
struct krp_session_pace {
	__u64 ns;
	__u32 nr;
	__u8 full;
};

/**
 * struct krp_session_slots - Requests in flight.
 * @credits: slots that may be busy.
 * @busy_nr: slots in @busy.
 * @idle: free slots.
 * @busy: slots with an outstanding answer, the oldest first.
 * @at: slots.
 */
struct krp_session_slots {
	__u32 credits;
	__u32 busy_nr;
	struct krp_list idle;
	struct krp_list busy;
	struct krp_slot at[KRP_SLOTS_MAX];
};

/**
 * struct krp_session - A session. Fields are for reading outside this header.
 * @conf: settings.
 * @pub: whose records are sent.
 * @peer: what is known of its records.
 * @state: enum krp_session_state.
 * @act: enum krp_do that is to be said next; KRP_DO_WAIT: none.
 * @has_key: the client has a cluster key.
 * @fresh: READY: the incarnation is another one than at the attach before.
 * @was_ready: CLOSING: it was READY before.
 * @ended: makes no connection any more.
 * @still: the server's process hangs, by its heartbeat; no message has come since.
 * @failure: what went wrong.
 * @step: CONNECTING and LOAD: what the caller is doing, for the text.
 * @ready_ns: when it was READY last.
 * @deadline_ns: when the step must be over.
 * @settle_ns: until then publishers may not have returned to the server; 0: it is settled.
 * @attaches: how often it became READY.
 * @attach: what was said when it attached.
 * @incarnation: of the present connection, from CHALLENGE on.
 * @features: KRP_FEATURE_* of the session.
 * @rate_max: messages a second that the server takes; 0: any number.
 * @xid: counts requests.
 * @changes: counts PUBLISH and WITHDRAW sent.
 * @lease: of what it publishes.
 * @asked_last: the last message was a question: a dirty record goes before the next.
 * @sub: subscription.
 * @notice: the NOTIFY that is being said.
 * @outcome: of the request that was answered last.
 * @pace: how many messages are sent.
 * @asks: questions that wait for a slot.
 * @ended_asks: questions that have ended.
 * @slots: requests in flight.
 */
struct krp_session {
	const struct krp_session_conf *conf;
	struct krp_publisher *pub;
	struct krp_peer peer;
	__u8 state;
	__u8 act;
	__u8 has_key;
	__u8 fresh;
	__u8 was_ready;
	__u8 ended;
	__u8 still;
	struct krp_session_failure failure;
	const char *step;
	__u64 ready_ns;
	__u64 deadline_ns;
	__u64 settle_ns;
	__u64 attaches;
	struct krp_session_attach attach;
	__u64 incarnation;
	__u64 features;
	__u32 rate_max;
	__u32 xid;
	__u64 changes;
	struct krp_session_lease lease;
	__u8 asked_last;
	struct krp_session_sub sub;
	struct krp_session_notice notice;
	struct krp_session_outcome outcome;
	struct krp_session_pace pace;
	struct krp_list asks;
	struct krp_list ended_asks;
	struct krp_session_slots slots;
};

/**
 * struct krp_candidate - The properties of a server by which it is chosen.
 * @doubtful: records may be missing there: krp_session_doubtful().
 * @priority: lower is better.
 * @blame: krp_session_blame(), or 0.
 * @rtt_ns: smoothed time of a READ; 0: unknown, sorts after all known ones.
 */
struct krp_candidate {
	__u8 doubtful;
	__u32 priority;
	__u32 blame;
	__u64 rtt_ns;
};

/**
 * krp_better() - Whether a server is to be asked before another.
 * @a: candidate.
 * @b: candidate.
 *
 * Context: any.
 * Return: 1 if @a is better than @b; 0 if not, also if they are equal.
 */
static inline int krp_better(const struct krp_candidate *a, const struct krp_candidate *b)
{
	if (a->doubtful != b->doubtful)
		return b->doubtful;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->blame != b->blame)
		return a->blame < b->blame;
	return a->rtt_ns && (!b->rtt_ns || a->rtt_ns < b->rtt_ns);
}

/**
 * krp_session_init() - A session that is DOWN and attaches at once.
 * @s: to set up.
 * @pub: publisher; the session joins it.
 * @index: place in the publisher, not in use.
 * @conf: settings, which must stay.
 *
 * krp_records_leave() takes it off the publisher. Context: any.
 */
static inline void krp_session_init(struct krp_session *s, struct krp_publisher *pub, __u32 index,
				    const struct krp_session_conf *conf)
{
	memset(s, 0, sizeof(*s));
	s->conf = conf;
	s->pub = pub;
	krp_list_init(&s->asks);
	krp_list_init(&s->ended_asks);
	krp_list_init(&s->slots.idle);
	krp_list_init(&s->slots.busy);
	krp_records_join(pub, &s->peer, index);
}

/** krp_session_timeout_ns() - Longest step. @s: session. Context: any. Return: ns. */
static inline __u64 krp_session_timeout_ns(const struct krp_session *s)
{
	return (s->conf->timeout_ms ? s->conf->timeout_ms : 1) * KRP_NS_PER_MS;
}

/** krp_session_timeout_ms() - The same for texts. @s: session. Context: any. Return: ms. */
static inline unsigned int krp_session_timeout_ms(const struct krp_session *s)
{
	return s->conf->timeout_ms ? s->conf->timeout_ms : 1;
}

/**
 * krp_blame_after() - What is left of a score of failures.
 * @blame: the score.
 * @passed_ns: time since it was computed.
 *
 * Context: any.
 * Return: @blame, halved every KRP_BLAME_NS.
 */
static inline __u32 krp_blame_after(__u32 blame, __u64 passed_ns)
{
	while (blame && passed_ns >= KRP_BLAME_NS) {
		blame >>= 1;
		passed_ns -= KRP_BLAME_NS;
	}
	return blame;
}

/**
 * krp_session_blame() - Score of recent failures.
 * @s: session.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: KRP_BLAME for each, halved every KRP_BLAME_NS.
 */
static inline __u32 krp_session_blame(const struct krp_session *s, __u64 now_ns)
{
	return krp_blame_after(s->failure.blame, now_ns - s->failure.blame_ns);
}

/** krp_session_blamed() - A READ has failed. @s: session. @now_ns: the clock. Context: any. */
static inline void krp_session_blamed(struct krp_session *s, __u64 now_ns)
{
	__u32 blame = krp_session_blame(s, now_ns) + KRP_BLAME;

	s->failure.nr++;
	s->failure.blame = blame < 1U << 20 ? blame : 1U << 20;
	s->failure.blame_ns = now_ns;
}

/**
 * krp_session_doubtful() - Whether a miss of the server proves little.
 * @s: session.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: 1 if its publishers may still be on their way back, or its process hangs.
 */
static inline int krp_session_doubtful(const struct krp_session *s, __u64 now_ns)
{
	return s->still || now_ns < s->settle_ns;
}

/**
 * krp_session_pulse() - The root was READ again after a miss.
 * @s: session.
 * @now_ns: the clock.
 * @still: krp_pulse.still.
 * @settling_ms: krp_pulse.settling_ms.
 *
 * Context: any.
 */
static inline void krp_session_pulse(struct krp_session *s, __u64 now_ns, int still,
				     __u32 settling_ms)
{
	s->still = !!still;
	s->settle_ns = settling_ms ? now_ns + settling_ms * KRP_NS_PER_MS : 0;
}

/**
 * krp_session_enter() - Change the state; the one place where this happens.
 * @s: session.
 * @now_ns: the clock.
 * @state: enum krp_session_state.
 * @act: what the caller is to do.
 *
 * Context: any.
 */
static inline void krp_session_enter(struct krp_session *s, __u64 now_ns,
				     enum krp_session_state state, enum krp_do act)
{
	s->state = (__u8)state;
	s->act = (__u8)act;
	s->deadline_ns = now_ns + krp_session_timeout_ns(s);
}

/** krp_ask_end() - A question has ended. @s: session. @ask: in no list. @err: outcome. */
static inline void krp_ask_end(struct krp_session *s, struct krp_ask *ask, int err)
{
	ask->err = err;
	ask->slot = 0;
	krp_list_add(&ask->link, &s->ended_asks);
}

/**
 * krp_session_drop_requests() - The connection is gone: no request will be answered.
 * @s: session.
 *
 * Context: any.
 */
static inline void krp_session_drop_requests(struct krp_session *s)
{
	struct krp_list *l;

	while (!krp_list_empty(&s->slots.busy)) {
		struct krp_slot *slot = krp_entry(s->slots.busy.next, struct krp_slot, link);

		if (slot->ask)
			krp_ask_end(s, slot->ask, -ENOTCONN);
		slot->ask = NULL;
		slot->busy = 0;
		krp_list_del(&slot->link);
	}
	s->slots.busy_nr = 0;
	while (!krp_list_empty(&s->asks)) {
		l = s->asks.next;
		krp_list_del(l);
		krp_ask_end(s, krp_entry(l, struct krp_ask, link), -ENOTCONN);
	}
	s->lease.due = 0;
	s->sub.due = 0;
	s->sub.on = 0;
	s->outcome.due = 0;
	s->notice.msg.nr = 0;
	s->pace.full = 0;
	krp_records_mark(s->pub, s->peer.index, 1U << KRP_AT_SENT, KRP_AT_DIRTY);
}

/**
 * krp_session_failed() - Begin to close, unless that has begun. The caller writes the reason.
 * @s: session.
 * @now_ns: the clock.
 * @err: negative errno.
 *
 * Context: any.
 * Return: 1; 0 if another failure was first.
 */
static inline int krp_session_failed(struct krp_session *s, __u64 now_ns, int err)
{
	if (s->state == KRP_SESSION_DOWN || s->state == KRP_SESSION_CLOSING)
		return 0;
	s->was_ready = s->state == KRP_SESSION_READY;
	if (s->was_ready)
		krp_session_blamed(s, now_ns);
	s->failure.error = err;
	krp_session_drop_requests(s);
	krp_session_enter(s, now_ns, KRP_SESSION_CLOSING, KRP_DO_CLOSE);
	return 1;
}

/* Begin to close with a text; the first failure counts. */
#define krp_session_fail(s, now_ns, err, ...) \
	do { \
		if (krp_session_failed(s, now_ns, err)) \
			snprintf((s)->failure.reason, sizeof((s)->failure.reason), __VA_ARGS__); \
	} while (0)

/**
 * krp_session_lost() - The transport has failed, could not be made, or is to be given up.
 * @s: session.
 * @now_ns: the clock.
 * @err: negative errno.
 * @why: text.
 *
 * Context: any.
 */
static inline void krp_session_lost(struct krp_session *s, __u64 now_ns, int err, const char *why)
{
	krp_session_fail(s, now_ns, err, "%s", why);
}

/**
 * krp_session_end() - Make no connection any more, and close the present one.
 * @s: session.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_session_end(struct krp_session *s, __u64 now_ns)
{
	s->ended = 1;
	if (s->state == KRP_SESSION_DOWN)
		s->act = KRP_DO_WAIT;
	krp_session_lost(s, now_ns, -ESHUTDOWN, "going away");
}

/**
 * krp_session_closed() - The transport is down.
 * @s: session.
 * @now_ns: the clock.
 * @dice: random.
 *
 * Context: any.
 */
static inline void krp_session_closed(struct krp_session *s, __u64 now_ns, __u32 dice)
{
	__u64 most_ms = s->conf->reconnect_max_ms ? s->conf->reconnect_max_ms : 1;
	__u64 ms = s->conf->reconnect_min_ms ? s->conf->reconnect_min_ms : 1;

	if (s->state != KRP_SESSION_CLOSING)
		return;
	if (s->was_ready && now_ns - s->ready_ns >= most_ms * KRP_NS_PER_MS)
		s->failure.in_a_row = 0;
	ms <<= s->failure.in_a_row < 20 ? s->failure.in_a_row : 20;
	if (ms > most_ms)
		ms = most_ms;
	s->failure.in_a_row++;
	krp_session_enter(s, now_ns, KRP_SESSION_DOWN, KRP_DO_WAIT);
	/* three quarters, and up to a half */
	s->failure.retry_ns = now_ns + ms * (KRP_NS_PER_MS / 4 * 3) +
			      ((ms * (KRP_NS_PER_MS / 2)) >> 16) * (dice >> 16);
}

/**
 * krp_session_retry() - Forget failures and attach at once: it is another server now.
 * @s: session.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_session_retry(struct krp_session *s, __u64 now_ns)
{
	s->failure.in_a_row = 0;
	s->failure.blame = 0;
	s->failure.retry_ns = now_ns;
}

/**
 * krp_session_step() - The caller begins the next step of connecting, or its next READ.
 * @s: session, CONNECTING or LOAD; otherwise nothing happens.
 * @now_ns: the clock.
 * @what: constant text of it.
 *
 * Context: any.
 */
static inline void krp_session_step(struct krp_session *s, __u64 now_ns, const char *what)
{
	if (s->state != KRP_SESSION_CONNECTING && s->state != KRP_SESSION_LOAD)
		return;
	s->step = what;
	s->deadline_ns = now_ns + krp_session_timeout_ns(s);
}

/**
 * krp_session_take_slot() - A buffer is the transport's.
 * @s: session.
 * @nr: number of the slot.
 *
 * Context: any.
 */
static inline void krp_session_take_slot(struct krp_session *s, __u32 nr)
{
	krp_list_del(&s->slots.at[nr].link);
	s->slots.at[nr].posted = 1;
}

#endif
