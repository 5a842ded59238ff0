/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: messages between the programs of nodes, for one port: connections, listeners, the pool of
 * receive buffers that all of them share, and what has come and waits for a program.
 *
 * proto/krp_message.h is what stands on the wire; proto/krp_stream.h and krp_listen.h decide what
 * an end does. This folder drives them: it gives them packets, the clock and random numbers, and
 * does what they say through the pool of channels.
 *
 * A stream is one end of a connection. What comes on it becomes letters in an inbox, which many
 * streams may share: a program that serves ten thousand peers has one inbox. A letter holds its
 * message until krc_letter_free(), which gives the peer credit again; so a program that
 * does not read fills the windows of its own streams, and nothing of others.
 * What a program sends is an out, which lives until krc_out.end().
 *
 * Contexts: calls that say "may sleep" need process context. Upcalls (krc_stream_ops,
 * krc_inbox.arrived, krc_out.end, krc_large.end) are made in process context, without a spinlock of
 * this folder, and may call every function of this header that does not say otherwise; they should
 * be short, since other streams wait meanwhile. Those of one stream come one after the other.
 *
 * Locking: krc_messages.open_mutex over the making of a stream from an OPEN; krc_stream.lock, then
 * krc_inbox.lock, then krc_messages.lock (these with bottom halves off). None of the spinlocks is
 * held over a call of the pool or an upcall.
 */
#ifndef KRC_MESSAGE_H
#define KRC_MESSAGE_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "krp_message.h"
#include "pool/pool.h"

struct krc_charge;
struct krc_hw_target;
struct krc_inbox;
struct krc_listener;
struct krc_messages;
struct krc_rail;
struct krc_stream;
struct mem_cgroup;

/**
 * struct krc_message_records - How records of other nodes are found.
 * @cached: get what the node has cached. Does not sleep. Returns 0, or -ENOENT.
 * @lookup: READ it from the table, whatever is cached. May sleep. Returns 0; -ENOENT: there is
 *	none; or why that is not known.
 * @arg: for both.
 */
struct krc_message_records {
	int (*cached)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	int (*lookup)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	void *arg;
};

/* ---- inbox */

/**
 * enum krc_letter_kind - What a letter says.
 * @KRC_LETTER_OFFER: an OPEN to a listener: krc_stream_accept() or krc_stream_refuse() @stream.
 * @KRC_LETTER_MESSAGE: a message, whose bytes are in @bytes.
 * @KRC_LETTER_LARGE: a message that the peer holds: krc_stream_fetch() or krc_stream_discard().
 * @KRC_LETTER_ENDED: the peer sends no more; all it has sent stands before this.
 */
enum krc_letter_kind {
	KRC_LETTER_OFFER,
	KRC_LETTER_MESSAGE,
	KRC_LETTER_LARGE,
	KRC_LETTER_ENDED,
};

/**
 * struct krc_letter - Something that has come for a program.
 * @list: entry of the inbox, then free for the task that has taken it.
 * @mine: entry of krc_stream.letters while it is in the inbox; under krc_inbox.lock. Not an OFFER.
 * @stream: which it came on; counted by the letter. OFFER: the new one; its reference passes to
 *	the task that accepts.
 * @kind: enum krc_letter_kind.
 * @notify: MESSAGE: the sender's WRITEs before it have been done.
 * @length: MESSAGE, LARGE: bytes of the message.
 * @imm: immediate of the message.
 * @seq: LARGE: its name.
 * @bytes: MESSAGE: the message.
 */
struct krc_letter {
	struct list_head list;
	struct list_head mine;
	struct krc_stream *stream;
	u8 kind;
	bool notify;
	u32 length;
	u32 imm;
	u64 seq;
	u8 bytes[];
};

/**
 * struct krc_inbox - Letters of streams and listeners, in the order they came; embedded by its
 *	owner.
 * @lock: guards all below; see above.
 * @letters: not taken yet.
 * @nr: how many.
 * @streams: streams that deliver here, and share @units_max.
 * @units_max: units of KRP_MESSAGE_UNIT bytes that all its streams together may have waiting. A
 *	stream gets its part of it as window, but never less than one message. It shrinks when
 *	others come: what has been granted stays, so it is a bound up to the logarithm of their
 *	number.
 * @arrived: something has been put in; see above for the context. May be called on several CPUs at
 *	once, for letters of different streams.
 * @unlistened: the last offer of a listener that was ended is answered: its @backlog places are
 *	free. NULL: nobody is told. Process context, no spinlock; the inbox outlives the call.
 * @memcg: what its letters and streams are charged to; the owner's reference. NULL: nothing.
 * @charge: on the account of whose payer packets of its streams are, and their turns on the channels:
 *	those of a port are shared by payers (krc_charge_payer()). Outlives the last call that gives a
 *	stream this inbox. NULL: the inbox is its own payer, and outlives its streams.
 */
struct krc_inbox {
	spinlock_t lock; /* see above */
	struct list_head letters;
	u32 nr;
	u32 streams;
	u32 units_max;
	void (*arrived)(struct krc_inbox *inbox);
	void (*unlistened)(struct krc_inbox *inbox, u32 backlog);
	struct mem_cgroup *memcg;
	const struct krc_charge *charge;
};

/**
 * krc_inbox_init() - Make an inbox.
 * @inbox: inbox.
 * @units_max: see struct krc_inbox; at least KRP_MESSAGE_UNITS_MAX.
 * @arrived: see struct krc_inbox.
 *
 * Context: any.
 */
void krc_inbox_init(struct krc_inbox *inbox, u32 units_max,
		    void (*arrived)(struct krc_inbox *inbox));

/**
 * krc_inbox_take() - Take the first letter.
 * @inbox: inbox.
 *
 * Context: any but hard interrupts.
 * Return: the letter, for krc_letter_free(), or NULL: there is none.
 */
struct krc_letter *krc_inbox_take(struct krc_inbox *inbox);

/**
 * krc_inbox_untake() - Put a letter back in front: there is no place for it yet.
 * @inbox: inbox.
 * @letter: as krc_inbox_take() returned it; the last one taken by the only task that takes.
 *
 * Context: any but hard interrupts.
 */
void krc_inbox_untake(struct krc_inbox *inbox, struct krc_letter *letter);

/**
 * krc_letter_free() - The program has a message; the peer may send another one.
 * @letter: taken letter. An OFFER that was neither accepted nor refused is refused.
 *
 * Context: may sleep.
 */
void krc_letter_free(struct krc_letter *letter);

/**
 * krc_inbox_end() - Free the letters of an inbox that nothing delivers to any more.
 * @inbox: all its streams are closed (krc_stream_close()), its listeners ended.
 *
 * Context: may sleep.
 */
void krc_inbox_end(struct krc_inbox *inbox);

/* ---- out */

/**
 * struct krc_out - A message that a program sends; embedded by nobody, see krc_out_alloc().
 * @list: of this folder while it is sent; else free.
 * @owner: the caller's.
 * @err: of this folder while it is sent.
 * @end: called once, in the order of krc_stream_send() for messages that are not large: the peer's
 *	kernel has it (err 0; a large one: the peer has READ it), or why that is not known: the error
 *	of the connection, -ECANCELED by krc_stream_cancel(), -ENOMSG: the peer's program did not want
 *	it, -EFAULT: its READ failed. The out is the caller's again, to be freed, also after
 *	krc_stream_close().
 * @length: bytes.
 * @imm: immediate.
 * @large: announce it: @addr and @rkey are where the peer READs, until end().
 * @hurry: ask for the acknowledgement at once.
 * @notify: not large: it is sent after WRITEs that it tells of; the letter says so.
 * @addr: large: address of its first byte under @rkey.
 * @rkey: large: remote key.
 * @bytes: not large: the message, which the caller fills.
 */
struct krc_out {
	struct list_head list;
	void *owner;
	int err;
	void (*end)(struct krc_out *out, int err);
	u32 length;
	u32 imm;
	bool large;
	bool hurry;
	bool notify;
	u64 addr;
	u32 rkey;
	u8 bytes[];
};

/**
 * krc_out_alloc() - Make an out.
 * @bytes: length of the message; 0 for a large one.
 * @gfp: how memory is got.
 *
 * Context: as @gfp says.
 * Return: the out, all zero but @length; NULL: no memory, or more than KRP_MESSAGE_DATA_MAX.
 */
struct krc_out *krc_out_alloc(u32 bytes, gfp_t gfp);

/**
 * krc_out_free() - Free an out.
 * @out: out that is not being sent, or NULL.
 *
 * Context: any.
 */
void krc_out_free(struct krc_out *out);

/* ---- stream */

/**
 * struct krc_stream_ops - Upcalls of a stream, all of them set; see the head of the file for the
 *	context. None comes after krc_stream_close().
 * @opened: the peer's program has accepted; what it says is in krc_stream_peer().
 * @withdrawn: large message @seq is void: its letter is dropped when it is freed, its
 *	fetch fails.
 * @died: the connection has failed with @err; nothing more comes. Before it the end() of each
 *	out has been called but those of large ones, whose memory a peer may still READ.
 */
struct krc_stream_ops {
	void (*opened)(struct krc_stream *stream);
	void (*withdrawn)(struct krc_stream *stream, u64 seq);
	void (*died)(struct krc_stream *stream, int err);
};

/**
 * struct krc_stream_conf - What the owner of a stream decides.
 * @inbox: where its letters go.
 * @ops: upcalls.
 * @owner: the caller's, for krc_stream_owner().
 * @user: what the program says to the peer's program at OPEN or ACCEPT.
 * @user_len: bytes of it, at most KRP_MESSAGE_USER_MAX.
 */
struct krc_stream_conf {
	struct krc_inbox *inbox;
	const struct krc_stream_ops *ops;
	void *owner;
	const void *user;
	u32 user_len;
};

/**
 * struct krc_stream_peer - Whom a stream is connected to.
 * @gid: GID of its node, verified with the table.
 * @generation: of its node.
 * @queue: number of its end; 0: not known yet.
 * @service: the service that the connection was opened to, at whichever end.
 * @opener: this end has opened it.
 * @state: enum krp_stream_state.
 * @err: why it is dead.
 * @user_len: bytes of @user; 0 until opened().
 * @user: what its program said in OPEN or ACCEPT.
 */
struct krc_stream_peer {
	u8 gid[KRP_GID_BYTES];
	u64 generation;
	u32 queue;
	u16 service;
	bool opener;
	u8 state;
	int err;
	u8 user_len;
	u8 user[KRP_MESSAGE_USER_MAX];
};

/**
 * krc_stream_connect() - Open a connection.
 * @messages: of the port.
 * @gid: GID of the peer.
 * @service: KRP_SERVICE_USER_MIN and above.
 * @value: record of that service, or of the peer's node: krp_kind_port().
 * @conf: see there; copied.
 * @first: first message, which travels with OPEN; or NULL. Its end() is called if the call
 *	succeeds, and only then.
 *
 * Does not wait for the peer: opened() or died() follows, after 10 s at the latest, perhaps before
 * the call returns. Outs that are handed in before wait.
 * Context: may sleep. Inside krc_rail_enter().
 * Return: the stream, for krc_stream_close(); or ERR_PTR: -EINVAL, -ENOMEM, -ENODEV (the port
 * ends), -EMSGSIZE (@first), -EDQUOT (the payer of @conf->inbox has as many streams as it may, with those
 * that are closing), -ENOSPC (so has the port), or the errors of ops->address().
 */
struct krc_stream *krc_stream_connect(struct krc_messages *messages, const union ib_gid *gid,
				      u16 service, const struct krp_value *value,
				      const struct krc_stream_conf *conf, struct krc_out *first);

/**
 * krc_stream_accept() - Take a connection that was offered.
 * @offer: taken letter, KRC_LETTER_OFFER; freed if the call succeeds.
 * @conf: see there; copied. A first message comes to its inbox at once.
 *
 * Context: may sleep.
 * Return: the stream, for krc_stream_close(); or ERR_PTR: -EINVAL, -ENOMEM, or why the connection has
 * ended meanwhile; then @offer is still the caller's.
 */
struct krc_stream *krc_stream_accept(struct krc_letter *offer, const struct krc_stream_conf *conf);

/**
 * krc_stream_refuse() - Refuse a connection that was offered.
 * @offer: taken letter, KRC_LETTER_OFFER; freed.
 * @status: KRP_REFUSE_PROGRAM, or another one of krp_message.h.
 *
 * Context: may sleep.
 */
void krc_stream_refuse(struct krc_letter *offer, u32 status);

/**
 * krc_stream_send() - Send a message.
 * @stream: stream.
 * @out: message, see there.
 *
 * What the peer's window has no room for waits here; the caller bounds how much it hands in.
 * Context: may sleep.
 * Return: 0: end() will be called, or has been. Else @out is still the caller's: -EPIPE (this end
 * is shut), -EMSGSIZE (length, or a large one of no bytes), -ENODEV, or why the connection is dead.
 */
int krc_stream_send(struct krc_stream *stream, struct krc_out *out);

/**
 * krc_stream_cancel() - Ask for the memory of a large message back.
 * @stream: stream.
 * @out: message that was sent; its end() follows, as it would have without this.
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT: it has ended.
 */
int krc_stream_cancel(struct krc_stream *stream, struct krc_out *out);

/**
 * struct krc_large - A READ of a large message; embedded by its owner.
 * @list: of this folder, as are those up to @err.
 * @stream: of the message, counted.
 * @flow: its own, so that a fault of one READ fails no other.
 * @req: the READ.
 * @held: it waits until the peer is heard.
 * @resume: it was, and is to be resumed.
 * @again: there was no answer: it is to be done again.
 * @tries: how often it was.
 * @failed_ns: when that was seen last.
 * @err: its outcome.
 * @seq: krc_letter.seq.
 * @offset: first byte that is wanted.
 * @length: bytes; @offset + @length is at most krc_letter.length. 0: the message is to be ended as
 *	fetched without a READ.
 * @local_addr: where they go, under @lkey.
 * @lkey: local key; valid until end().
 * @keep: more of the message is to be fetched afterwards; the peer goes on holding it.
 * @end: called once: the bytes are there (err 0), or why not: -ECANCELED (withdrawn), -EREMOTEIO
 *	(refused by the peer's NIC), -ETIMEDOUT, the error of the connection, -ENODEV.
 */
struct krc_large {
	struct list_head list;
	struct krc_stream *stream;
	struct krc_flow flow;
	struct krc_req req;
	bool held;
	bool resume;
	bool again;
	u8 tries;
	u64 failed_ns;
	int err;
	u64 seq;
	u64 offset;
	u32 length;
	u64 local_addr;
	u32 lkey;
	bool keep;
	void (*end)(struct krc_large *large, int err);
};

/**
 * krc_stream_fetch() - READ a large message.
 * @stream: stream.
 * @large: see there.
 *
 * Context: may sleep.
 * Return: 0: end() will be called, or has been; -ENOENT: no such message, or it was withdrawn;
 * -EBUSY: it is being fetched; -EINVAL: beyond its end.
 */
int krc_stream_fetch(struct krc_stream *stream, struct krc_large *large);

/**
 * krc_stream_discard() - A large message is not wanted; the sender gets its memory back.
 * @stream: stream.
 * @seq: krc_letter.seq.
 *
 * Context: may sleep.
 * Return: 0; -ENOENT: no such message, or it was withdrawn; -EBUSY: it is being fetched.
 */
int krc_stream_discard(struct krc_stream *stream, u64 seq);

/**
 * krc_stream_shut() - This end sends no more; what was handed in before is sent first.
 * @stream: stream.
 *
 * Context: may sleep.
 * Return: 0; -EALREADY; or why the connection is dead.
 */
int krc_stream_shut(struct krc_stream *stream);

/**
 * krc_stream_close() - The owner is done with a stream.
 * @stream: stream; not to be used any more, but by letters that were taken.
 * @abort: tell the peer that the program has ended, and end what is on its way; else what was
 *	handed in is sent first, and what comes is dropped.
 *
 * Its letters leave the inbox, and no upcall of krc_stream_ops comes when it has returned; end() of
 * outs and of READs still do. May be called from an upcall of the stream itself.
 * Context: may sleep.
 */
void krc_stream_close(struct krc_stream *stream, bool abort);

/**
 * krc_stream_owner() - Get the owner of a stream.
 * @stream: stream.
 *
 * Context: any.
 * Return: krc_stream_conf.owner; of one that is offered, that of krc_listen().
 */
void *krc_stream_owner(const struct krc_stream *stream);

/**
 * krc_stream_peer() - Whom a stream is connected to, and how it is.
 * @stream: stream.
 * @ret_peer: out.
 *
 * Context: any but hard interrupts.
 */
void krc_stream_peer(struct krc_stream *stream, struct krc_stream_peer *ret_peer);

/**
 * struct krc_stream_stats - How a stream is doing.
 * @sent: messages handed to the NIC for the first time.
 * @received: messages that became letters.
 * @waiting: outs that the window has no room for.
 * @unacked: numbered messages that the peer has not acknowledged.
 * @window: messages that it may still send.
 * @backlog: letters with messages that were not freed.
 * @ending: KRC_LETTER_ENDED was put in and not freed.
 * @repeats: see struct krp_stream.
 * @gaps: likewise.
 * @busy: likewise.
 * @foreign: likewise.
 */
struct krc_stream_stats {
	u64 sent;
	u64 received;
	u32 waiting;
	u32 unacked;
	u32 window;
	u32 backlog;
	bool ending;
	u32 repeats;
	u32 gaps;
	u32 busy;
	u32 foreign;
};

/**
 * krc_stream_stats() - How a stream is doing.
 * @stream: stream.
 * @ret_stats: out.
 *
 * Context: any but hard interrupts.
 */
void krc_stream_stats(struct krc_stream *stream, struct krc_stream_stats *ret_stats);

/* ---- listener */

/**
 * krc_listen() - Take connections to a service.
 * @messages: of the port.
 * @service: KRP_SERVICE_USER_MIN and above.
 * @backlog: how many may wait to be accepted, from 1.
 * @inbox: where offers go (KRC_LETTER_OFFER); outlives the answer to the last of them.
 * @owner: the caller's, for krc_stream_owner() of an offered stream.
 *
 * Context: may sleep; not in krc_inbox.arrived of an inbox that offers come to.
 * Return: the listener, or ERR_PTR: -EADDRINUSE, -EINVAL, -ENOMEM, -ENODEV (the port ends).
 */
struct krc_listener *krc_listen(struct krc_messages *messages, u16 service, u32 backlog,
				struct krc_inbox *inbox, void *owner);

/**
 * krc_unlisten() - Take no more.
 * @listener: freed. Offers that are in its inbox stay there; freeing them refuses them. When all
 *	have been answered, perhaps at once, krc_inbox.unlistened() is called.
 *
 * Nothing is put into its inbox when it has returned. Context: may sleep; not in krc_inbox.arrived
 * of that inbox.
 */
void krc_unlisten(struct krc_listener *listener);

/* ---- port */

/**
 * krc_messages_init() - Make what the messages of all ports share.
 *
 * Context: module init.
 * Return: 0, or -ENOMEM.
 */
int krc_messages_init(void);

/**
 * krc_messages_exit() - Wait for what is still being freed.
 *
 * Context: module exit; all messages are destroyed, all streams closed.
 */
void krc_messages_exit(void);

/**
 * krc_messages_create() - Make the messages of a port, before its target.
 * @rail: the port; outlives them.
 * @records: how records are found; copied.
 *
 * Context: may sleep.
 * Return: them, which are the owner of the target (krc_provider_ops.target_create); or
 * ERR_PTR(-ENOMEM).
 */
struct krc_messages *krc_messages_create(struct krc_rail *rail,
					 const struct krc_message_records *records);

/**
 * krc_messages_depth() - Receive buffers that the target of a port is to have.
 * @rail: port.
 *
 * Context: any.
 * Return: their number; 0: the device has no receive queue, and there are no messages.
 */
u32 krc_messages_depth(const struct krc_rail *rail);

/**
 * krc_messages_start() - Begin to receive.
 * @messages: messages.
 * @target: of the port, with receive queue; outlives krc_messages_stop().
 * @pool: of the port, likewise.
 * @value: record of the port.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or the errors of the provider.
 */
int krc_messages_start(struct krc_messages *messages, struct krc_hw_target *target,
		       struct krc_pool *pool, const struct krp_value *value);

/**
 * krc_messages_stop() - The port ends: all streams die with -ENODEV, nothing is received.
 * @messages: messages; krc_rail_enter() fails already, and the pool has been stopped.
 *
 * When it returns the owner of each stream has been told, whichever task was in an upcall of it; so it
 * is called by none.
 * Outs of large messages end once the target is gone, by krc_messages_destroy().
 * Context: may sleep. May be called twice, also without krc_messages_start().
 */
void krc_messages_stop(struct krc_messages *messages);

/**
 * krc_messages_destroy() - Free what the device has of them.
 * @messages: stopped; the target is destroyed. The memory stays as long as streams that owners have
 *	not closed.
 *
 * Context: may sleep.
 */
void krc_messages_destroy(struct krc_messages *messages);

/**
 * krc_messages_on_received() - Upcall of the provider: the receive queue has completions.
 * @target_owner: as given to target_create().
 *
 * Context: any, also hard interrupt.
 */
void krc_messages_on_received(void *target_owner);

/**
 * krc_messages_on_fatal() - Upcall of the provider: the receive queue is broken.
 * @target_owner: as given to target_create().
 *
 * Logged; streams die because nothing is heard. Context: any, also hard interrupt.
 */
void krc_messages_on_fatal(void *target_owner);

/**
 * struct krc_messages_stats - Counters since creation.
 * @packets: received.
 * @faults: received with an error.
 * @malformed: dropped by krp_message_check().
 * @unknown: for a queue that is not there.
 * @foreign: dropped because they were not their connection's: forged, late or of another life.
 * @opens: OPENs of no known connection.
 * @opens_dropped: of these, without an answer.
 * @challenges: sent.
 * @refusals: sent to OPENs.
 * @posted: SENDs posted.
 * @failed: SENDs that failed.
 * @replays: streams that began anew after a failed SEND.
 * @no_memory: messages that were put off for lack of memory.
 * @streams: there are now.
 * @listeners: likewise.
 */
struct krc_messages_stats {
	u64 packets;
	u64 faults;
	u64 malformed;
	u64 unknown;
	u64 foreign;
	u64 opens;
	u64 opens_dropped;
	u64 challenges;
	u64 refusals;
	u64 posted;
	u64 failed;
	u64 replays;
	u64 no_memory;
	u32 streams;
	u32 listeners;
};

/**
 * krc_messages_stats() - Read the counters.
 * @messages: messages.
 * @ret_stats: out; of different moments.
 *
 * Context: any.
 */
void krc_messages_stats(struct krc_messages *messages, struct krc_messages_stats *ret_stats);

#endif /* KRC_MESSAGE_H */
