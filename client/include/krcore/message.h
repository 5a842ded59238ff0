/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkrcore-queue: messages between programs, over /dev/krcore.
 *
 * A node (queue.h) may have connections beside its queues. A connection is reliable and ordered,
 * and keeps boundaries: what was sent as one message arrives as one message, once, also through
 * lost packets and resets of the hardware. All connections of a node share one inbox, which
 * krcore_inbox_create() makes. What comes for the program is a letter there: a connection that is
 * offered, a message, the end of a connection. krcore_recv() takes many of them with one system
 * call; krcore_node_fd() is readable as long as there is one. So a server of ten thousand peers has
 * one inbox and one descriptor, and memory for what waits in that inbox alone.
 *
 * Up to KRCORE_SEND_COPY_MAX bytes are copied at both ends (krcore_send()). A message in
 * registered memory is announced instead (krcore_send_large()): the receiver says where it wants
 * the bytes, and its NIC READs them to there (krcore_fetch()), without a copy at either end. It
 * may say so before: a buffer that was posted (krcore_post_recv()) gets the next message that fits,
 * without a call, and a large one many of them (krcore_post_recv_multi()).
 *
 * Each message sent has one completion, KRCORE_OP_SEND, taken by krcore_poll(): the peer's node
 * has the message, or the bytes that were announced are the sender's again. A peer that does not
 * read fills the room of its own connection, and then what is sent to it waits here; nobody else
 * notices.
 *
 * Threads, processes, errors: as in queue.h. Letters of a connection come in order; threads that
 * take letters at once decide among themselves who handles which first.
 */
#ifndef KRCORE_MESSAGE_H
#define KRCORE_MESSAGE_H

#include <krcore/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define KRCORE_SEND_MAX 256 /* messages in one krcore_send_many() */
#define KRCORE_SEND_COPY_MAX 4032 /* bytes of a message that is copied */
#define KRCORE_SEND_LARGE_MAX (1U << 30) /* bytes of one that is announced */
#define KRCORE_FIRST_MAX 3896 /* bytes of the message that travels with krcore_connect() */
#define KRCORE_USER_MAX 32 /* bytes that both ends say to each other before */
#define KRCORE_RECV_MAX 1024 /* letters in one krcore_recv() */
#define KRCORE_CONNECTION_DEPTH_MAX 1024
#define KRCORE_POSTED_MAX 1024 /* completions that buffers of krcore_post_recv() may have to come */
#define KRCORE_POSTED_MESSAGES_MAX 64 /* messages of a buffer of krcore_post_recv_multi() */
#define KRCORE_POSTED_ALIGN 64 /* bytes: where the next message begins in one */

/* krcore_wc.opcode, besides those of queue.h */
#define KRCORE_OP_SEND 5
#define KRCORE_OP_FETCH 6
#define KRCORE_OP_RECV 7 /* of krcore_post_recv() */

/* krcore_wc.flags */
#define KRCORE_WC_MORE 0x1 /* OP_RECV: the buffer has not completed yet */

/* krcore_letter.kind */
#define KRCORE_LETTER_OFFER 1 /* a peer wants to connect: krcore_accept() or krcore_refuse() */
#define KRCORE_LETTER_OPENED 2 /* the peer of krcore_connect() has accepted */
#define KRCORE_LETTER_MESSAGE 3 /* a message, whose bytes are in the buffer */
#define KRCORE_LETTER_LARGE 4 /* one that was announced: krcore_fetch() or krcore_discard() */
#define KRCORE_LETTER_ENDED 5 /* the peer sends no more; this end still may */
#define KRCORE_LETTER_DIED 6 /* the connection is over: krcore_shutdown() gives its number back */

/* krcore_send_wr.flags */
#define KRCORE_SEND_HURRY 0x1 /* the program waits for the completion */
#define KRCORE_SEND_AFTER 0x2 /* after the requests of krcore_send_wr.queue */

#define KRCORE_SEND_AFTER_MAX 64 /* messages that wait for one queue */

/* krcore_letter.flags */
#define KRCORE_LETTER_AFTER 0x1 /* MESSAGE: the sender's WRITEs before it are done */
#define KRCORE_LETTER_POSTED 0x2 /* LARGE: it goes to a buffer of krcore_post_recv() */

/* krcore_fetch() flags */
#define KRCORE_FETCH_KEEP 0x1 /* more of it is fetched later: the sender goes on waiting */

/* krcore_shutdown() */
#define KRCORE_SHUT_SEND 1 /* send no more; what comes is received */
#define KRCORE_SHUT_CLOSE 2 /* nor receive; what was sent arrives first */
#define KRCORE_SHUT_ABORT 3 /* end it now */

/* krcore_connection_info.state */
#define KRCORE_CONNECTION_OFFERED 0
#define KRCORE_CONNECTION_OPENING 1
#define KRCORE_CONNECTION_OPEN 2
#define KRCORE_CONNECTION_DEAD 3

/**
 * struct krcore_letter - What has come.
 * @seq: MESSAGE: its number on the connection; LARGE: its name, or with KRCORE_LETTER_POSTED
 *	user_data of krcore_post_recv(); else 0.
 * @connection: number of the connection; OFFER: of the new one.
 * @status: DIED: a negative errno: -ECONNREFUSED (nobody listens there, or the program refused),
 *	-EBUSY (as many wait to be accepted as may), -ESTALE (the peer's node was started anew:
 *	connect again with KRCORE_CONNECT_FRESH), -ECONNRESET (the peer's program or node has
 *	ended), -ETIMEDOUT (the peer does not answer), -EPROTO (it broke the rules), -ENODEV (the
 *	port is gone); else 0.
 * @length: MESSAGE, LARGE: bytes of the message; else 0.
 * @imm: MESSAGE, LARGE: krcore_send_wr.imm; else 0.
 * @offset: where its bytes are in the buffer of krcore_recv(); a multiple of 8. With
 *	KRCORE_LETTER_POSTED: in the buffer that it goes to.
 * @bytes: how many these are: MESSAGE: @length; OFFER, OPENED: see krcore_letter_peer(); else 0.
 * @kind: KRCORE_LETTER_*.
 * @flags: KRCORE_LETTER_*.
 * @rsvd: zero.
 */
struct krcore_letter {
	uint64_t seq;
	uint32_t connection;
	int32_t status;
	uint32_t length;
	uint32_t imm;
	uint32_t offset;
	uint32_t bytes;
	uint8_t kind;
	uint8_t flags;
	uint8_t rsvd[6];
};

/**
 * struct krcore_peer - Whom a connection is with.
 * @gid: GID of its port, verified with the MetaServers' table.
 * @generation: boot generation of its node.
 * @queue: number of its end at that node.
 * @service: the service that was connected to, at whichever end.
 * @user_len: bytes of @user.
 * @rsvd: zero.
 * @user: what its program has said in krcore_connect() or krcore_accept(); then zero.
 */
struct krcore_peer {
	uint8_t gid[KRCORE_GID_BYTES];
	uint64_t generation;
	uint32_t queue;
	uint16_t service;
	uint8_t user_len;
	uint8_t rsvd;
	uint8_t user[KRCORE_USER_MAX];
};

/**
 * struct krcore_send_wr - One message.
 * @user_data: given back in the completion.
 * @addr: address of its first byte.
 * @connection: by which.
 * @mr: 0: it is copied, and its bytes may be changed after the call; else krcore_mr.handle of a
 *	region with KRCORE_ACCESS_MESSAGE that has it: it is announced, and its bytes stay as they
 *	are until the completion.
 * @length: bytes: copied 0 to KRCORE_SEND_COPY_MAX, announced 1 to KRCORE_SEND_LARGE_MAX.
 * @imm: given to the peer's program with it.
 * @flags: KRCORE_SEND_*.
 * @queue: KRCORE_SEND_AFTER, with @mr 0: a queue of the node, see krcore_queue_create(). The
 *	message is sent when all requests that were posted to it before have completed without an
 *	error: a WRITE with notification. Messages that are sent by the connection later wait behind
 *	it. Else zero.
 * @rsvd: zero.
 */
struct krcore_send_wr {
	uint64_t user_data;
	uint64_t addr;
	uint32_t connection;
	uint32_t mr;
	uint32_t length;
	uint32_t imm;
	uint32_t flags;
	uint32_t queue;
	uint32_t rsvd[2];
};

/**
 * struct krcore_connection_options - What this end of a connection is to be like.
 * @size: sizeof(struct krcore_connection_options); lets later versions add fields.
 * @user: up to KRCORE_USER_MAX bytes for the peer's program, which gets them with the offer or
 *	with its acceptance; NULL: none.
 * @user_len: how many.
 * @depth: messages and READs of this end that may be under way, at most
 *	KRCORE_CONNECTION_DEPTH_MAX; 0 means 64.
 * @timeout_ms: krcore_connect(): how long a look-up may take, 1 to 60000; 0 means 5000.
 * @flags: krcore_connect(): KRCORE_CONNECT_FRESH.
 * @first: krcore_connect(): message of at most KRCORE_FIRST_MAX bytes, copied, that travels with
 *	the request; its krcore_send_wr.connection and .mr are 0. NULL: none.
 */
struct krcore_connection_options {
	size_t size;
	const void *user;
	uint32_t user_len;
	uint32_t depth;
	uint32_t timeout_ms;
	uint32_t flags;
	const struct krcore_send_wr *first;
};

/**
 * struct krcore_connection_info - How a connection is.
 * @size: sizeof(struct krcore_connection_info), set by the caller.
 * @peer: whom it is with; what is not known yet is zero.
 * @state: KRCORE_CONNECTION_*.
 * @error: DEAD: of what, as krcore_letter.status; else 0.
 * @outstanding: messages and READs without a completion.
 * @waiting: messages that the peer has no room for yet.
 * @sent: messages handed to the NIC, each once.
 * @received: messages that came into the inbox.
 * @unacked: messages that the peer's node has not acknowledged.
 * @window: messages that the peer still has room for.
 * @backlog: of @received, those that were not taken.
 * @repeats: messages, and answers to large ones, that have come again; dropped.
 * @gaps: messages dropped because others before them were missing.
 * @busy: messages dropped because this node had no room, though it had said so.
 * @foreign: packets that were dropped as forged, late or of another generation.
 * @rsvd: zero.
 */
struct krcore_connection_info {
	size_t size;
	struct krcore_peer peer;
	uint32_t state;
	int32_t error;
	uint32_t outstanding;
	uint32_t waiting;
	uint64_t sent;
	uint64_t received;
	uint32_t unacked;
	uint32_t window;
	uint32_t backlog;
	uint32_t repeats;
	uint32_t gaps;
	uint32_t busy;
	uint32_t foreign;
	uint32_t rsvd;
};

/**
 * krcore_inbox_create() - Make the inbox of a node, once.
 * @node: node.
 * @bytes: how much may wait in it for all connections together, a multiple of 4096, at most 16 MiB;
 *	0 means 1 MiB. Each connection may have one message there whatever the others have.
 * @depth: messages and READs of all connections that may be under way, at most 32768; 0 means 256.
 *	As many completions of the ring are reserved.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - a parameter is out of its range.
 * * %-EALREADY - it has one.
 * * %-EOPNOTSUPP - the device cannot receive messages.
 * * %-ENOSPC - the ring has fewer completions left.
 * * %-EDQUOT - limit of the user.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_inbox_create(struct krcore_node *node, uint32_t bytes, uint32_t depth);

/**
 * krcore_listen() - Let peers connect to a service of this node, and offer it to the program.
 * @node: node with an inbox.
 * @service: KRCORE_SERVICE_USER_MIN to 65535.
 * @backlog: connections that may wait to be accepted, 1 to 1024; 0 means 16. Each takes 4096 of
 *	the bytes of the inbox that are for that, which are as many as it has; further ones are told
 *	-EBUSY.
 * @timeout_ms: as in krcore_bind().
 *
 * Each that connects is a letter, KRCORE_LETTER_OFFER. It goes on until krcore_unbind() or
 * krcore_node_close().
 *
 * Return:
 * * 0 - success.
 * * %-EBADFD - @node has no inbox.
 * * %-ENOSPC - the inbox has no room for @backlog; or as krcore_bind() says.
 * * %-EINVAL - @backlog is more than 1024; or as krcore_bind() says.
 * * another error of krcore_bind().
 */
int krcore_listen(struct krcore_node *node, uint16_t service, uint32_t backlog,
		  uint32_t timeout_ms);

/**
 * krcore_connect() - Open a connection to a service that a program listens to.
 * @node: node with an inbox.
 * @peer: GID of the peer's port, and the service.
 * @opts: options, or NULL for the defaults.
 * @ret_connection: its number in this node; untouched on failure.
 *
 * Does not wait for the peer: KRCORE_LETTER_OPENED or KRCORE_LETTER_DIED follows, within ten
 * seconds. What is sent before waits.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option, or the service, is out of its range.
 * * %-EBADFD - @node has no inbox.
 * * %-EMSGSIZE - the first message is longer than KRCORE_FIRST_MAX.
 * * %-EFAULT - the first message, or what is said to the peer, cannot be read.
 * * %-EAGAIN - there is a first message, and as much is under way as may be.
 * * %-EDQUOT - limit of the user.
 * * %-ENOSPC - the port has as many connections as it may.
 * * %-ENOENT - there is no such service in the MetaServers' table.
 * * %-EPROTO - the record is not that of a service that is bound.
 * * %-ENOTCONN - no MetaServer is attached.
 * * %-ETIMEDOUT - the look-up took too long.
 * * %-EAFNOSUPPORT - one side is InfiniBand, the other Ethernet.
 * * %-ENETUNREACH - there is no route to the peer, or its MTU is below ours.
 * * %-ESHUTDOWN - the port went down meanwhile.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_connect(struct krcore_node *node, const struct krcore_key *peer,
		   const struct krcore_connection_options *opts, uint32_t *ret_connection);

/**
 * krcore_accept() - Take a connection that was offered.
 * @node: node.
 * @connection: krcore_letter.connection of the offer.
 * @opts: options, or NULL for the defaults.
 *
 * If the peer has sent a first message, that comes next on the connection.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option is out of its range.
 * * %-ENOENT - there is no such offer.
 * * %-EISCONN - it was accepted already.
 * * %-EBADFD - @node has no inbox.
 * * %-EFAULT - what is said to the peer cannot be read.
 * * %-EDQUOT - limit of the user.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 * * %-ECONNRESET, %-ETIMEDOUT, %-ECONNABORTED, %-EPROTO - it has ended meanwhile, for this reason;
 *   krcore_refuse() gives its number back.
 */
int krcore_accept(struct krcore_node *node, uint32_t connection,
		  const struct krcore_connection_options *opts);

/**
 * krcore_refuse() - Refuse a connection that was offered.
 * @node: node.
 * @connection: krcore_letter.connection of the offer.
 *
 * Return:
 * * 0 - success; the peer is told -ECONNREFUSED.
 * * %-ENOENT - there is no such offer.
 * * %-EISCONN - it was accepted.
 * * %-EBADFD - @node has no inbox.
 */
int krcore_refuse(struct krcore_node *node, uint32_t connection);

/**
 * krcore_send() - Send a message that is copied.
 * @node: node.
 * @connection: by which.
 * @data: first byte; may be changed after the call.
 * @bytes: how many, 0 to KRCORE_SEND_COPY_MAX.
 * @user_data: given back in the completion.
 *
 * Return: 0, or an error of krcore_send_many().
 */
int krcore_send(struct krcore_node *node, uint32_t connection, const void *data, size_t bytes,
		uint64_t user_data);

/**
 * krcore_send_large() - Announce a message, for the peer to fetch.
 * @node: node.
 * @connection: by which.
 * @mr: region with KRCORE_ACCESS_MESSAGE that the message is in.
 * @data: first byte; all stay as they are until the completion.
 * @bytes: how many, 1 to KRCORE_SEND_LARGE_MAX.
 * @user_data: given back in the completion.
 *
 * Return: 0, or an error of krcore_send_many().
 */
int krcore_send_large(struct krcore_node *node, uint32_t connection, const struct krcore_mr *mr,
		      const void *data, size_t bytes, uint64_t user_data);

/**
 * krcore_send_many() - Send messages, by one connection or by several, with one system call.
 * @node: node.
 * @wrs: messages; the array may be reused after the call.
 * @nr: how many, 1 to KRCORE_SEND_MAX.
 * @ret_error: NULL, or set to the error of the first message that was not taken, 0 if all were
 *	taken. Untouched on failure.
 *
 * Does not wait for a peer. A completion has the status 0, or that of krcore_letter.status with
 * which the connection has died: the message may or may not have arrived; of an announced one also
 * -ECANCELED (krcore_cancel()), -ENOMSG (the peer did not want it) or -EFAULT (its READ failed). With
 * KRCORE_SEND_AFTER, -ECANCELED says that a request of the queue has failed: the message was not
 * sent, those behind it are.
 *
 * Return:
 * * a positive number - messages taken; each of them gets a completion.
 *   The following errors mean that not even the first was taken:
 * * %-EAGAIN - as many are under way as may be, or KRCORE_SEND_AFTER_MAX wait for the queue: take
 *   completions first.
 * * %-EINVAL - flags, or @nr.
 * * %-EMSGSIZE - more bytes than there may be; or none, of an announced one.
 * * %-ENOENT - no such connection, region or queue.
 * * %-ECANCELED - the queue has failed.
 * * %-ENOTCONN - it was not accepted yet, at this end.
 * * %-EPIPE - this end was shut down.
 * * %-EACCES - the region is without KRCORE_ACCESS_MESSAGE.
 * * %-ERANGE - outside the region.
 * * %-EFAULT - @wrs, or the bytes of a message, cannot be read.
 * * %-EBADFD - @node has no inbox.
 * * %-EDQUOT - limit of the user.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 * * %-ECONNREFUSED, %-ECONNRESET, %-ETIMEDOUT, %-EBUSY, %-ESTALE, %-EPROTO - the connection has
 *   died, see krcore_letter.status.
 */
int krcore_send_many(struct krcore_node *node, const struct krcore_send_wr *wrs, unsigned int nr,
		     int *ret_error);

/**
 * krcore_recv() - Take letters.
 * @node: node.
 * @letters: array to fill.
 * @nr: its length, 1 to KRCORE_RECV_MAX.
 * @buffer: memory for the bytes of all of them; KRCORE_SEND_COPY_MAX are enough for one.
 * @bytes: its size.
 * @timeout_ms: how long to wait for the first one at most; negative for ever, 0 to look only.
 *
 * Takes as many as are there and fit, and waits for no more than one. It first watches the inbox for
 * as long as krcore_wait() busy-polls. krcore_wait_any() waits for completions, too.
 *
 * Return:
 * * a number - letters taken; 0, if @timeout_ms is 0, if there are none now.
 * * %-EINVAL - @nr is out of its range.
 * * %-EBADFD - @node has no inbox.
 * * %-EMSGSIZE - the first one does not fit into @buffer; it stays.
 * * %-EFAULT - @letters or @buffer cannot be written.
 * * %-ETIMEDOUT - none came in time.
 * * %-EINTR - a signal came.
 * * %-EBUSY - as many threads wait as may, see krcore_wait().
 * * %-ENODEV - the device is gone, and all letters have been taken.
 * * %-ENOMEM - no memory.
 */
int krcore_recv(struct krcore_node *node, struct krcore_letter *letters, unsigned int nr,
		void *buffer, size_t bytes, int timeout_ms);

/**
 * krcore_letter_peer() - Whom a connection is with, as an offer or an acceptance says.
 * @letter: KRCORE_LETTER_OFFER or KRCORE_LETTER_OPENED.
 * @buffer: that of the krcore_recv() that took it.
 * @ret_peer: filled; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @letter is of another kind.
 */
int krcore_letter_peer(const struct krcore_letter *letter, const void *buffer,
		       struct krcore_peer *ret_peer);

/**
 * krcore_fetch() - READ a message that was announced, or a part of it, to where it is wanted.
 * @node: node.
 * @letter: KRCORE_LETTER_LARGE.
 * @offset: first byte of the message that is wanted.
 * @mr: region with KRCORE_ACCESS_LOCAL_WRITE.
 * @local: where the bytes go, in @mr.
 * @bytes: how many, from 1.
 * @flags: KRCORE_FETCH_KEEP.
 * @user_data: given back in the completion, whose opcode is KRCORE_OP_FETCH.
 *
 * One READ of a message at a time. Without KRCORE_FETCH_KEEP the sender has its memory back
 * afterwards, however much was wanted. The completion has the status 0, -ECANCELED (the sender
 * took it back), -EREMOTEIO (it was refused, or that peer has refused too much lately),
 * -ETIMEDOUT, -EIO, or that of krcore_letter.status with which the connection has died.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - beyond the end of the message, @flags, or @letter is of another kind, or goes to a
 *   buffer that was posted.
 * * %-ENOENT - no such connection or region; or the message was fetched, discarded or taken back.
 * * %-EBUSY - it is being fetched.
 * * %-EACCES - the region does not allow it.
 * * %-ERANGE - outside the region.
 * * %-EAGAIN - as much is under way as may be: take completions first.
 * * %-EBADFD - @node has no inbox.
 * * %-EDQUOT - limit of the user.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_fetch(struct krcore_node *node, const struct krcore_letter *letter, uint64_t offset,
		 const struct krcore_mr *mr, void *local, uint32_t bytes, uint32_t flags,
		 uint64_t user_data);

/**
 * krcore_post_recv() - Lend a buffer for a message that will be announced.
 * @node: node.
 * @mr: region with KRCORE_ACCESS_LOCAL_WRITE.
 * @local: first byte of the buffer, in @mr.
 * @bytes: its size, 1 to KRCORE_SEND_LARGE_MAX.
 * @user_data: given back in the completion, whose opcode is KRCORE_OP_RECV, and in the letter.
 *
 * The next message of any connection that is announced, and not longer, is READ there as soon as it
 * has come. Buffers are used in the order in which they were posted; one that is too small is
 * passed over, of the first 16. If none of these fits, or the peer has not answered lately, the
 * letter is one for krcore_fetch(). Where a node has several connections, messages of each go to at
 * most half of the buffers at once, and take up half of their bytes; one buffer for one message a
 * connection may always have.
 *
 * Each buffer has one completion. Its krcore_wc.queue is the connection, or 0 if no message went
 * there; its status 0, -ECANCELED (queue 0: krcore_cancel_recv() or krcore_mr_dereg(); else: the
 * sender took the message back, or the connection was closed here), -ENODEV (the port has ended), or another one of krcore_fetch(). The letter of the
 * message, which has KRCORE_LETTER_POSTED and @user_data in krcore_letter.seq, comes in the order of
 * its connection, before the completion or after it; after krcore_shutdown() of the connection not
 * at all.
 *
 * At most half of what may be under way (krcore_inbox_create()) are buffers, and KRCORE_POSTED_MAX;
 * one may always be posted.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @bytes is out of its range.
 * * %-ENOENT - no such region.
 * * %-EACCES - the region does not allow it.
 * * %-ERANGE - outside the region.
 * * %-EAGAIN - as much is under way, or posted, as may be: take completions first.
 * * %-EBADFD - @node has no inbox.
 * * %-EDQUOT - limit of the user.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_post_recv(struct krcore_node *node, const struct krcore_mr *mr, void *local,
		     uint32_t bytes, uint64_t user_data);

/**
 * krcore_post_recv_multi() - Lend a buffer for several messages that will be announced.
 * @node: node.
 * @mr: region with KRCORE_ACCESS_LOCAL_WRITE.
 * @local: first byte of the buffer, in @mr.
 * @bytes: its size, 1 to KRCORE_SEND_LARGE_MAX.
 * @messages: how many it takes at most, 1 to KRCORE_POSTED_MESSAGES_MAX; 1: as krcore_post_recv().
 * @least: it takes no more when it has fewer bytes left than this, at most @bytes: as large as the
 *	messages that are expected; 0 if @messages is 1.
 * @user_data: given back in the completions, and in letters.
 *
 * Messages are READ there one behind the other, each from a multiple of KRCORE_POSTED_ALIGN bytes
 * on. One that the buffer has no place for goes by; buffers posted later come first then. Each has a completion, in whichever order they
 * are done, with KRCORE_WC_MORE; krcore_wc.offset and krcore_letter.offset say where it is. The
 * buffer has one of its own, without KRCORE_WC_MORE, behind those: with queue 0, the bytes that were
 * taken up, and status 0, or -ECANCELED if it was taken back. Bytes of a message that has failed are
 * not used again. Otherwise as krcore_post_recv(); each completion to come counts as one under way.
 * As in libfabric's FI_MULTI_RECV.
 *
 * Return: as krcore_post_recv(), and
 * * %-EINVAL - also: @messages or @least is out of its range, or half of what may be under way
 *   (krcore_inbox_create()) is less than @messages and one.
 */
int krcore_post_recv_multi(struct krcore_node *node, const struct krcore_mr *mr, void *local,
			   uint32_t bytes, uint32_t messages, uint32_t least, uint64_t user_data);

/**
 * krcore_cancel_recv() - Take back buffers that no message goes to.
 * @node: node.
 * @user_data: those with this user_data of krcore_post_recv().
 *
 * Their completions, with -ECANCELED, can be taken when this returns. A buffer of
 * krcore_post_recv_multi() takes no more messages; it completes when those that go there are done.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - there is none; a message goes to it, or it has completed.
 * * %-EBADFD - @node has no inbox.
 */
int krcore_cancel_recv(struct krcore_node *node, uint64_t user_data);

/**
 * krcore_discard() - Do without a message that was announced, or without the rest of it.
 * @node: node.
 * @letter: KRCORE_LETTER_LARGE.
 *
 * The sender has its memory back; there is no completion here.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @letter is of another kind, or goes to a buffer that was posted.
 * * %-ENOENT - no such connection; or the message was fetched, discarded or taken back.
 * * %-EBUSY - it is being fetched.
 * * %-EBADFD - @node has no inbox.
 */
int krcore_discard(struct krcore_node *node, const struct krcore_letter *letter);

/**
 * krcore_cancel() - Ask for the memory of announced messages back.
 * @node: node.
 * @connection: connection.
 * @user_data: of the messages.
 *
 * Their completions follow, with -ECANCELED or as they would have come without this, when the peer
 * does not READ any more.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - no such connection, or no such message is under way.
 * * %-EBADFD - @node has no inbox.
 */
int krcore_cancel(struct krcore_node *node, uint32_t connection, uint64_t user_data);

/**
 * krcore_shutdown() - End a connection, or one direction of it.
 * @node: node.
 * @connection: connection; an offer is refused.
 * @how: KRCORE_SHUT_SEND: the peer gets KRCORE_LETTER_ENDED behind all that was sent.
 *	KRCORE_SHUT_CLOSE: no letter of it comes any more; what was sent arrives, for ten seconds
 *	at most. KRCORE_SHUT_ABORT: likewise, but now; the peer gets -ECONNRESET.
 *
 * After KRCORE_SHUT_CLOSE and KRCORE_SHUT_ABORT the number names nothing; messages that were
 * sent still complete.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @how.
 * * %-ENOENT - no such connection.
 * * %-EBADFD - @node has no inbox.
 * * %-EBUSY - not KRCORE_SHUT_ABORT: messages wait for a queue, see KRCORE_SEND_AFTER.
 *   KRCORE_SHUT_SEND alone:
 * * %-ENOTCONN - it is an offer.
 * * %-EALREADY - it was done before.
 * * %-ECONNREFUSED, %-ECONNRESET, %-ETIMEDOUT, %-EBUSY, %-ESTALE, %-EPROTO, %-ENODEV - the
 *   connection has died, see krcore_letter.status.
 */
int krcore_shutdown(struct krcore_node *node, uint32_t connection, uint32_t how);

/**
 * krcore_connection_query() - How a connection is.
 * @node: node.
 * @connection: connection.
 * @ret_info: filled; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - the size of @ret_info is not valid.
 * * %-ENOENT - no such connection.
 * * %-EBADFD - @node has no inbox.
 */
int krcore_connection_query(struct krcore_node *node, uint32_t connection,
			    struct krcore_connection_info *ret_info);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* KRCORE_MESSAGE_H */
