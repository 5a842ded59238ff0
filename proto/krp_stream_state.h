/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What the machine of one connection between two nodes consists of: its states, what it keeps,
 * and what it says. Normative together with krp_stream.h, whose head explains it.
 */
#ifndef KRP_STREAM_STATE_H
#define KRP_STREAM_STATE_H

#include "krp_message.h"

/*
 * A test may plant faults, to show that it finds them: it defines this before it includes the
 * header. Nothing else does.
 */
#ifndef KRP_MUTANT
#define KRP_MUTANT(what) ((void)(what), 0)
#endif

#define KRP_STREAM_NS_PER_MS 1000000ULL
#define KRP_STREAM_FOREVER_NS (~0ULL)
#define KRP_STREAM_RESERVED 1 /* slot that only CLOSE uses */
#define KRP_STREAM_SLOTS_MIN 4
#define KRP_STREAM_WINDOW_MAX 4096 /* messages that an end may grant at once */
#define KRP_STREAM_PAUSE_MAX_NS (3600000ULL * KRP_STREAM_NS_PER_MS)
#define KRP_STREAM_IDLE_MAX_NS (86400ULL * 1000 * KRP_STREAM_NS_PER_MS)
#define KRP_STREAM_OPEN_NS (KRP_MESSAGE_OPEN_MS * KRP_STREAM_NS_PER_MS)
/* an OPEN that comes later than this after the first one is nobody's */
#define KRP_STREAM_KNOWN_NS ((KRP_MESSAGE_OPEN_MS + KRP_MESSAGE_MARGIN_MS) * KRP_STREAM_NS_PER_MS)

/**
 * enum krp_stream_state - Where a connection is, as one end sees it.
 * @KRP_STREAM_NEW: nothing has been said.
 * @KRP_STREAM_OPENING: OPEN is not answered.
 * @KRP_STREAM_OFFERED: OPEN has come, the program has not decided.
 * @KRP_STREAM_OPEN: both ends may send messages.
 * @KRP_STREAM_SHUT: this end has sent its last message.
 * @KRP_STREAM_PEER_SHUT: the peer has.
 * @KRP_STREAM_CLOSING: both have, but not all is acknowledged or fetched.
 * @KRP_STREAM_LINGER: all is; what the peer repeats is still acknowledged.
 * @KRP_STREAM_DEAD: it has failed; memory may still have to be held.
 * @KRP_STREAM_GONE: over.
 * @KRP_STREAM_STATES: how many there are.
 */
enum krp_stream_state {
	KRP_STREAM_NEW,
	KRP_STREAM_OPENING,
	KRP_STREAM_OFFERED,
	KRP_STREAM_OPEN,
	KRP_STREAM_SHUT,
	KRP_STREAM_PEER_SHUT,
	KRP_STREAM_CLOSING,
	KRP_STREAM_LINGER,
	KRP_STREAM_DEAD,
	KRP_STREAM_GONE,
	KRP_STREAM_STATES,
};

/**
 * enum krp_stream_do - What the caller is to do.
 * @KRP_STREAM_WAIT: nothing until todo.until_ns.
 * @KRP_STREAM_SEND: SEND todo.bytes of todo.packet, and behind them todo.payload bytes of the
 *	message that todo.cookie names.
 * @KRP_STREAM_OPENED: ACCEPT has come; stream.accept has what the peer's program says.
 * @KRP_STREAM_PASS: keep todo.number as the pass for further OPENs to this generation of the node.
 * @KRP_STREAM_COMPLETE: a message has ended: the peer has it (todo.err 0), or the connection
 *	has died and it may or may not have it.
 * @KRP_STREAM_RELEASE: an announced message has ended as todo.err says, and its memory is free.
 * @KRP_STREAM_WITHDRAWN: announcement todo.number is void; nothing is to be fetched any more.
 * @KRP_STREAM_ENDED: the peer sends no message any more; all that it sent have come.
 * @KRP_STREAM_DIED: the connection has failed, see todo.err.
 * @KRP_STREAM_FORGET: the machine is not needed any more. Know an OPEN like stream.open again
 *	until todo.until_ns, if that is not 0, and refuse it with status todo.number.
 */
enum krp_stream_do {
	KRP_STREAM_WAIT,
	KRP_STREAM_SEND,
	KRP_STREAM_OPENED,
	KRP_STREAM_PASS,
	KRP_STREAM_COMPLETE,
	KRP_STREAM_RELEASE,
	KRP_STREAM_WITHDRAWN,
	KRP_STREAM_ENDED,
	KRP_STREAM_DIED,
	KRP_STREAM_FORGET,
};

/**
 * enum krp_stream_verdict - What has become of a packet.
 * @KRP_STREAM_DROPPED: nothing is to be delivered.
 * @KRP_STREAM_MESSAGE: its payload is the next message for the program.
 * @KRP_STREAM_ANNOUNCED: the next message is large: the program may have it fetched, or not.
 */
enum krp_stream_verdict {
	KRP_STREAM_DROPPED,
	KRP_STREAM_MESSAGE,
	KRP_STREAM_ANNOUNCED,
};

/**
 * struct krp_stream_conf - What a user of the machine decides; shared by connections.
 * @retry_ns: pause after which a first question follows, if nothing is heard.
 * @retry_max_ns: the longest pause between two, KRP_STREAM_PAUSE_MAX_NS at most.
 * @ack_ns: how long an acknowledgement may wait for company; likewise.
 * @silence_ns: a peer that is asked and not heard for that long is dead; 0: never.
 * @idle_ns: a peer of which nothing is awaited is asked when it was not heard for that long, see
 *	krp_stream_idle(); KRP_STREAM_IDLE_MAX_NS at most, 0: never.
 * @linger_ns: length of KRP_STREAM_LINGER; likewise.
 * @msgs: window in messages, 1 to KRP_STREAM_WINDOW_MAX.
 * @units: window in units, at least KRP_MESSAGE_UNITS_MAX.
 * @lease_ms: krp_message_announce.lease_ms.
 * @margin_ms: krp_message_announce.margin_ms.
 */
struct krp_stream_conf {
	__u64 retry_ns;
	__u64 retry_max_ns;
	__u64 ack_ns;
	__u64 silence_ns;
	__u64 idle_ns;
	__u64 linger_ns;
	__u32 msgs;
	__u32 units;
	__u32 lease_ms;
	__u32 margin_ms;
};

/**
 * struct krp_stream_slot - A numbered message that is not acknowledged.
 * @cookie: the caller's name of it.
 * @addr: of ANNOUNCE.
 * @length: krp_message.length.
 * @imm: krp_message.imm.
 * @rkey: of ANNOUNCE.
 * @type: KRP_MESSAGE_*.
 * @flags: krp_message.flags.
 * @hold: ANNOUNCE: index of its struct krp_hold.
 * @rsvd: unused.
 */
struct krp_stream_slot {
	__u64 cookie;
	__u64 addr;
	__u32 length;
	__u32 imm;
	__u32 rkey;
	__u8 type;
	__u8 flags;
	__u8 hold;
	__u8 rsvd;
};

/**
 * enum krp_fetch_state - Where an announcement of the peer is.
 * @KRP_FETCH_FREE: there is none.
 * @KRP_FETCH_OFFERED: it is the program's turn.
 * @KRP_FETCH_READING: READs may be under way.
 * @KRP_FETCH_VOID: the peer wants it back, or is dead, and the program has not been told.
 * @KRP_FETCH_ENDED: it is over, and the peer may not know.
 */
enum krp_fetch_state {
	KRP_FETCH_FREE,
	KRP_FETCH_OFFERED,
	KRP_FETCH_READING,
	KRP_FETCH_VOID,
	KRP_FETCH_ENDED,
};

/**
 * struct krp_fetch - A large message that the peer has announced.
 * @seq: of its ANNOUNCE; its name.
 * @addr: where it is.
 * @length: bytes.
 * @rkey: remote key.
 * @imm: immediate.
 * @lease_ms: see krp_message.h.
 * @margin_ms: a READ that has not left the NIC within half of it is taken back.
 * @state: enum krp_fetch_state.
 * @status: of DONE.
 * @due: DONE is to be sent.
 */
struct krp_fetch {
	__u64 seq;
	__u64 addr;
	__u32 length;
	__u32 rkey;
	__u32 imm;
	__u32 lease_ms;
	__u32 margin_ms;
	__u8 state;
	__u8 status;
	__u8 due;
};

/**
 * enum krp_hold_state - Where an announcement of this end is.
 * @KRP_HOLD_FREE: there is none.
 * @KRP_HOLD_HELD: the peer may READ.
 * @KRP_HOLD_ENDED: it does not any more, and the caller has not been told.
 */
enum krp_hold_state {
	KRP_HOLD_FREE,
	KRP_HOLD_HELD,
	KRP_HOLD_ENDED,
};

/* krp_hold.cancel */
#define KRP_HOLD_CANCEL 1 /* the caller wants it back */
#define KRP_HOLD_DUE 2 /* CANCEL is to be sent */

/**
 * struct krp_hold - A large message that this end has announced.
 * @seq: of its ANNOUNCE.
 * @cookie: the caller's name of it.
 * @err: how it ended.
 * @state: enum krp_hold_state.
 * @cancel: KRP_HOLD_CANCEL and KRP_HOLD_DUE, or 0.
 * @rsvd: unused.
 */
struct krp_hold {
	__u64 seq;
	__u64 cookie;
	int err;
	__u8 state;
	__u8 cancel;
	__u8 rsvd[2];
};

/**
 * struct krp_stream_large - Memory for announcements, see krp_stream_give_large().
 * @hold: of this end.
 * @fetch: of the peer.
 */
struct krp_stream_large {
	struct krp_hold hold[KRP_MESSAGE_ANNOUNCED_MAX];
	struct krp_fetch fetch[KRP_MESSAGE_ANNOUNCED_MAX];
};

/**
 * struct krp_stream_req - A message that a program sends.
 * @cookie: the caller's name of it.
 * @addr: a large one: where it is. Else unused.
 * @length: bytes.
 * @imm: immediate.
 * @rkey: a large one: remote key. Else unused.
 * @large: announce it.
 * @hurry: the program waits for it.
 * @notify: not before the WRITEs that krp_stream_write_begin() was told of have ended.
 * @rsvd: unused.
 */
struct krp_stream_req {
	__u64 cookie;
	__u64 addr;
	__u32 length;
	__u32 imm;
	__u32 rkey;
	__u8 large;
	__u8 hurry;
	__u8 notify;
	__u8 rsvd;
};

/**
 * struct krp_stream_todo - What krp_stream_next() or krp_stream_tell() says.
 * @what: enum krp_stream_do.
 * @err: outcome, negative errno or 0.
 * @number: pass, name of an announcement, or KRP_REFUSE_*.
 * @cookie: the caller's name of a message.
 * @until_ns: see enum krp_stream_do.
 * @bytes: of @packet.
 * @payload: bytes of the message that follow.
 * @packet: header and body.
 * @body: body, behind the header.
 */
struct krp_stream_todo {
	enum krp_stream_do what;
	int err;
	__u64 number;
	__u64 cookie;
	__u64 until_ns;
	__u32 bytes;
	__u32 payload;
	struct krp_message packet;
	union {
		struct krp_message_open open;
		struct krp_message_accept accept;
		struct krp_message_challenge challenge;
		struct krp_message_announce announce;
		struct krp_message_ref ref;
	} body;
};

/**
 * struct krp_stream_tx - Numbered messages to the peer.
 * @una: first message that the peer has not acknowledged.
 * @sent: first one that is to be sent.
 * @high: first one that was never sent.
 * @next: number of the next one.
 * @told: first one whose end the caller has not been told.
 * @acked: DEAD: what @una was.
 * @msgs: messages in all, see NUMBERS in krp_message.h.
 * @units: likewise.
 * @msgs_max: how many the peer has granted.
 * @units_max: likewise.
 * @writes: WRITEs of the queue that have not ended.
 */
struct krp_stream_tx {
	__u64 una;
	__u64 sent;
	__u64 high;
	__u64 next;
	__u64 told;
	__u64 acked;
	__u32 msgs;
	__u32 units;
	__u32 msgs_max;
	__u32 units_max;
	__u32 writes;
};

/**
 * struct krp_stream_rx - Numbered messages of the peer.
 * @expect: first message that has not come.
 * @told_ack: what the peer was told of that.
 * @msgs: messages that have come in all.
 * @units: likewise.
 * @used_msgs: messages that have left the windows.
 * @used_units: likewise.
 * @told_msgs: what was granted to the peer.
 * @told_units: likewise.
 * @budget_msgs: what user and port allow this connection.
 * @budget_units: likewise.
 */
struct krp_stream_rx {
	__u64 expect;
	__u64 told_ack;
	__u32 msgs;
	__u32 units;
	__u32 used_msgs;
	__u32 used_units;
	__u32 told_msgs;
	__u32 told_units;
	__u32 budget_msgs;
	__u32 budget_units;
};

/**
 * struct krp_stream_time - Moments at which something is due, and since when something is so.
 * @retry_at_ns: when to ask, while something is awaited; else KRP_STREAM_FOREVER_NS.
 * @pause_ns: pause after that.
 * @ack_at_ns: when to acknowledge, or KRP_STREAM_FOREVER_NS.
 * @off_ns: nothing numbered is sent until then, because the peer was busy.
 * @heard_ns: a moment before which the last message had not come.
 * @idle_at_ns: when it is asked though nothing is awaited, or KRP_STREAM_FOREVER_NS.
 * @asked_ns: since when the peer is asked and not heard; 0: it is not.
 * @posted_ns: when something that keeps a lease of the peer alive was last sent.
 * @doom_ns: a last question is asked, and not heard by then the peer is dead; 0: no.
 * @since_ns: when OPEN was first sent or came.
 * @forget_ns: LINGER: when that is over.
 */
struct krp_stream_time {
	__u64 retry_at_ns;
	__u64 pause_ns;
	__u64 ack_at_ns;
	__u64 off_ns;
	__u64 heard_ns;
	__u64 idle_at_ns;
	__u64 asked_ns;
	__u64 posted_ns;
	__u64 doom_ns;
	__u64 since_ns;
	__u64 forget_ns;
};

/**
 * struct krp_stream_again - What was missing, and is sent again.
 * @back_ns: when messages from @back on were last sent again because of a gap.
 * @back: see @back_ns.
 * @gap: which missing message was reported last.
 */
struct krp_stream_again {
	__u64 back_ns;
	__u64 back;
	__u64 gap;
};

/**
 * struct krp_stream_owe - What this end owes the peer.
 * @refuse: status of a REFUSE to be sent.
 * @close: CLOSE is to be sent.
 * @accept: ACCEPT is to be sent.
 * @wait: OFFERED: CHALLENGE, which says that this end is there, is.
 * @gap: CREDIT with KRP_MESSAGE_GAP is.
 * @busy: CREDIT with KRP_MESSAGE_BUSY is.
 * @answer: CREDIT is.
 * @probe: PROBE is.
 * @hurry: acknowledge at once.
 */
struct krp_stream_owe {
	__u32 refuse;
	__u8 close;
	__u8 accept;
	__u8 wait;
	__u8 gap;
	__u8 busy;
	__u8 answer;
	__u8 probe;
	__u8 hurry;
};

/**
 * struct krp_stream_dropped - What came and was dropped.
 * @repeats: messages and DONEs dropped because they had come before.
 * @gaps: messages dropped because others are missing before them.
 * @busy: messages dropped for lack of room.
 * @foreign: packets dropped that were not this connection's.
 */
struct krp_stream_dropped {
	__u32 repeats;
	__u32 gaps;
	__u32 busy;
	__u32 foreign;
};

/**
 * struct krp_stream - One end of a connection.
 * @conf: how it behaves.
 * @slot: numbered messages, by seq.
 * @slots: how many, a power of 2, KRP_STREAM_SLOTS_MIN at least.
 * @src: number of this end's queue.
 * @dst: of the peer's; while OPENING the service.
 * @state: enum krp_stream_state.
 * @opener: this end has opened it.
 * @confirmed: the peer has shown that it knows @tag.
 * @other_generation: DEAD: because the peer has another generation.
 * @error: why it is DEAD.
 * @tag: what headers to this end carry.
 * @peer_tag: what headers to the peer carry; 0: not known yet.
 * @generation: of this node.
 * @peer_generation: of the peer's.
 * @open: OPEN, of whichever end.
 * @accept: ACCEPT likewise.
 * @tx: messages to the peer.
 * @rx: messages of the peer.
 * @hold: announcements of this end, by slot.
 * @fetch: of the peer, by slot.
 * @larges: how many of each: KRP_MESSAGE_ANNOUNCED_MAX; 0: there is no memory for them.
 * @time: when what is due.
 * @again: what was missing.
 * @owe: what this end owes the peer.
 * @said: status of the first REFUSE that was sent.
 * @posting: packets between krp_stream_post_begin() and krp_stream_post_end().
 * @starved: the caller wants to send, and may not.
 * @asking: the peer is to be heard: it wants to fetch, and may not before, or it was idle for long.
 * @passes: CHALLENGEs that have come.
 * @news: 1 << enum krp_stream_do of events that carry nothing.
 * @dropped: counters of what was dropped.
 */
struct krp_stream {
	const struct krp_stream_conf *conf;
	struct krp_stream_slot *slot;
	__u32 slots;
	__u32 src;
	__u32 dst;
	__u8 state;
	__u8 opener;
	__u8 confirmed;
	__u8 other_generation;
	int error;
	__u64 tag;
	__u64 peer_tag;
	__u64 generation;
	__u64 peer_generation;
	struct krp_message_open open;
	struct krp_message_accept accept;
	struct krp_stream_tx tx;
	struct krp_stream_rx rx;
	struct krp_hold *hold;
	struct krp_fetch *fetch;
	__u32 larges;
	struct krp_stream_time time;
	struct krp_stream_again again;
	struct krp_stream_owe owe;
	__u32 said;
	__u32 posting;
	__u8 starved;
	__u8 asking;
	__u8 passes;
	__u32 news;
	struct krp_stream_dropped dropped;
};

KRP_STATIC_ASSERT(offsetof(struct krp_stream_todo, body) ==
			  offsetof(struct krp_stream_todo, packet) + KRP_MESSAGE_BYTES,
		  "krp_stream_todo.body is behind packet");
KRP_STATIC_ASSERT(KRP_STREAM_SLOTS_MIN > KRP_STREAM_RESERVED, "KRP_STREAM_SLOTS_MIN");

/** krp_stream_live() - Whether a state is one of a connection that both ends know.
 * @state: enum krp_stream_state. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_live(unsigned int state)
{
	return state >= KRP_STREAM_OPEN && state <= KRP_STREAM_LINGER;
}

/** krp_stream_unconfirmed() - Whether nothing shows yet that the opener has heard ACCEPT.
 * @s: connection. Context: any. Return: 1 or 0.
 */
static inline int krp_stream_unconfirmed(const struct krp_stream *s)
{
	return krp_stream_live(s->state) && !s->opener && !s->confirmed;
}

/**
 * krp_stream_enter() - The one place where the state changes.
 * @s: connection.
 * @to: new state.
 *
 * Context: any.
 * Return: 1; 0: there is no way from the old state to that one, and nothing has changed.
 */
static inline int krp_stream_enter(struct krp_stream *s, enum krp_stream_state to)
{
	static const unsigned short ways[KRP_STREAM_STATES] = {
		/* NEW */ 1U << KRP_STREAM_OPENING | 1U << KRP_STREAM_OFFERED,
		/* OPENING */ 1U << KRP_STREAM_OPEN | 1U << KRP_STREAM_DEAD,
		/* OFFERED */ 1U << KRP_STREAM_OPEN | 1U << KRP_STREAM_DEAD,
		/* OPEN */ 1U << KRP_STREAM_SHUT | 1U << KRP_STREAM_PEER_SHUT |
			1U << KRP_STREAM_DEAD,
		/* SHUT */ 1U << KRP_STREAM_CLOSING | 1U << KRP_STREAM_DEAD,
		/* PEER_SHUT */ 1U << KRP_STREAM_CLOSING | 1U << KRP_STREAM_DEAD,
		/* CLOSING */ 1U << KRP_STREAM_LINGER | 1U << KRP_STREAM_DEAD,
		/* LINGER */ 1U << KRP_STREAM_GONE,
		/* DEAD */ 1U << KRP_STREAM_GONE,
		/* GONE */ 0,
	};

	if (s->state >= KRP_STREAM_STATES || !(ways[s->state] >> to & 1))
		return 0;
	s->state = (__u8)to;
	return 1;
}

/** krp_stream_at() - Slot of a numbered message. @s: connection. @seq: number. Return: it. */
static inline struct krp_stream_slot *krp_stream_at(const struct krp_stream *s, __u64 seq)
{
	return &s->slot[seq & (s->slots - 1)];
}

/** krp_stream_windowed() - Whether flow control counts a slot. @slot: it. Return: 1 or 0. */
static inline int krp_stream_windowed(const struct krp_stream_slot *slot)
{
	return slot->type == KRP_MESSAGE_DATA || slot->type == KRP_MESSAGE_ANNOUNCE ||
	       (slot->type == KRP_MESSAGE_OPEN && slot->flags & KRP_MESSAGE_PAYLOAD);
}

/** krp_stream_fetches() - Announcements of the peer that are not over. @s: connection.
 * Context: any. Return: how many.
 */
static inline __u32 krp_stream_fetches(const struct krp_stream *s)
{
	__u32 i, nr = 0;

	for (i = 0; i < s->larges; i++)
		nr += s->fetch[i].state != KRP_FETCH_FREE;
	return nr;
}

/** krp_stream_holds() - Announcements of this end that are not over. @s: connection.
 * Context: any. Return: how many.
 */
static inline __u32 krp_stream_holds(const struct krp_stream *s)
{
	__u32 i, nr = 0;

	for (i = 0; i < s->larges; i++)
		nr += s->hold[i].state != KRP_HOLD_FREE;
	return nr;
}

/** krp_stream_fetch_of() - Announcement of the peer by its name. @s: connection. @seq: name.
 * Context: any. Return: it, or NULL.
 */
static inline struct krp_fetch *krp_stream_fetch_of(struct krp_stream *s, __u64 seq)
{
	__u32 i;

	for (i = 0; i < s->larges; i++)
		if (s->fetch[i].state != KRP_FETCH_FREE && s->fetch[i].seq == seq)
			return &s->fetch[i];
	return NULL;
}

/** krp_stream_hold_of() - Announcement of this end by number. @s: connection. @seq: number.
 * Context: any. Return: it, or NULL.
 */
static inline struct krp_hold *krp_stream_hold_of(struct krp_stream *s, __u64 seq)
{
	__u32 i;

	for (i = 0; i < s->larges; i++)
		if (s->hold[i].state == KRP_HOLD_HELD && s->hold[i].seq == seq)
			return &s->hold[i];
	return NULL;
}

/**
 * krp_stream_wrong() - Which invariant does not hold. For tests, and for a module in doubt.
 * @s: connection.
 *
 * What makes deadlock impossible is that DONE, CANCEL, CREDIT, PROBE, ACCEPT and REFUSE are made
 * of the state: they need no slot, no number and no grant, so they can always go. CLOSE has a
 * slot that messages do not take.
 *
 * Context: any.
 * Return: constant text, or NULL.
 */
static inline const char *krp_stream_wrong(const struct krp_stream *s)
{
	int closed = s->state == KRP_STREAM_SHUT || s->state == KRP_STREAM_CLOSING ||
		     s->state == KRP_STREAM_LINGER || s->state >= KRP_STREAM_DEAD;

	if (s->tx.next - s->tx.told >
	    s->slots - (closed && !s->owe.close ? 0 : KRP_STREAM_RESERVED))
		return "messages in reserved slots";
	if (s->tx.told > s->tx.una || s->tx.una > s->tx.sent || s->tx.sent > s->tx.high ||
	    s->tx.high > s->tx.next)
		return "order of numbers";
	if ((__s32)(s->tx.msgs_max - s->tx.msgs) < 0 || (__s32)(s->tx.units_max - s->tx.units) < 0)
		return "more sent than granted";
	if ((__s32)(s->rx.told_msgs - s->rx.msgs) < 0 ||
	    (__s32)(s->rx.told_units - s->rx.units) < 0)
		return "more came than granted";
	if ((__s32)(s->rx.msgs - s->rx.used_msgs) < 0 ||
	    (__s32)(s->rx.units - s->rx.used_units) < 0)
		return "more consumed than came";
	if (s->rx.told_msgs - s->rx.used_msgs > KRP_STREAM_WINDOW_MAX)
		return "size of the window";
	return NULL;
}

#endif /* KRP_STREAM_STATE_H */
