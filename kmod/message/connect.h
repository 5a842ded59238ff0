/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the owner of a stream does with it: connect, accept, send, shut, close; what it is told,
 * and diagnostics.
 * Contexts and locking: see message/message.h.
 */
#ifndef KRC_MESSAGE_CONNECT_H
#define KRC_MESSAGE_CONNECT_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "krp_message.h"

struct krc_inbox;
struct krc_letter;
struct krc_messages;
struct krc_out;
struct krc_stream;

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
 * is shut), -EMSGSIZE (length, or a large one of no bytes), -ENOMEM, -ENODEV, or why the connection
 * is dead.
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
 * @repeats: see struct krp_stream_dropped.
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

/**
 * struct krc_stream_where - What carries the messages of a stream, for diagnostics.
 * @placed: there is something: one was sent.
 * @initiator: index of the initiator or lane. What the program READs may take another one.
 */
struct krc_stream_where {
	bool placed;
	u32 initiator;
};

/**
 * krc_stream_where() - Tell what carries the messages of a stream.
 * @stream: stream.
 *
 * Context: any.
 * Return: it; all zero if nothing was sent.
 */
struct krc_stream_where krc_stream_where(const struct krc_stream *stream);

#endif /* KRC_MESSAGE_CONNECT_H */
