/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * /dev/krcore: messages between programs. Normative; a part of krp_ioctl.h, which includes it.
 *
 * Besides its queues, which are one-sided, a context may have connections: reliable, ordered,
 * and a message that was sent arrives as one message, once. They share an inbox:
 * - KRP_IOC_INBOX makes it, once. All that comes for the context is a letter in it: offers of
 *   connections, messages, the end of a connection. KRP_IOC_RECV takes as many as there are and
 *   fit. What has not been taken fills the window of its own connection, and the peer waits;
 *   nothing of others does.
 * - KRP_IOC_BIND with KRP_BIND_LISTEN lets peers open connections to a service. Each one is a
 *   letter, KRP_LETTER_OFFER, with its number and who it is; KRP_IOC_ACCEPT takes or refuses it.
 * - KRP_IOC_OPEN opens one, with the first message if there is one, and does not wait for the
 *   peer: KRP_LETTER_OPENED or KRP_LETTER_DIED follows, within ten seconds. What is sent before
 *   waits.
 * - KRP_IOC_SEND sends. Up to KRP_SEND_COPY_MAX bytes are copied. A message from a region
 *   (KRP_ACCESS_MESSAGE) is announced, and not copied: the peer gets KRP_LETTER_LARGE, and
 *   has its node READ the bytes to where it wants them by KRP_IOC_LARGE, or discards them.
 * - KRP_IOC_POST_RECV lends memory for such messages before they come: the first that fits is READ
 *   there at once, of whichever connection, and more of them, if there is to be room for several.
 *   The letter says so (KRP_LETTER_POSTED), and a completion that the bytes are there, KRP_OP_RECV.
 * - Each message taken gets one completion in the ring, KRP_OP_SEND, when the peer's node has
 *   it (which says nothing of its program), or, if announced, when the peer's program is done
 *   with it; or with the error of the connection, after which it may or may not have arrived.
 *   Those of copied messages of a connection come in order. So does each READ of KRP_IOC_LARGE,
 *   KRP_OP_FETCH. So many may be under way as krp_inbox.depth and the depth of the connection
 *   say; then sending gives -EAGAIN until there are completions.
 * - A connection whose peer, or peer's node, ends, is reset, or does not answer for some seconds
 *   dies: KRP_LETTER_DIED, behind all that has come on it, is the last one of it. Its
 *   number is its owner's until KRP_IOC_SHUT.
 * A region that is announced is open to READs of the peer's node as long as it is registered,
 * the whole of it: a node that keeps the rules READs no more than it was told of.
 * What goes by different connections, or by a queue and a connection, has no order, but for a
 * message with KRP_SEND_AFTER: it is sent when what was posted to a queue before it has completed.
 * So a program WRITEs, and notifies the peer's program by krp_send_wr.imm, without waiting itself.
 */
#ifndef KRP_IOCTL_MESSAGE_H
#define KRP_IOCTL_MESSAGE_H

#include "krp_ioctl.h"

#define KRP_SEND_MAX 256 /* messages in one call */
#define KRP_SEND_COPY_MAX 4032 /* bytes of a message that is copied */
#define KRP_SEND_LARGE_MAX (1U << 30) /* bytes of one that is announced */
#define KRP_OPEN_FIRST_MAX 3896 /* bytes of the message that opens a connection */
#define KRP_OPEN_USER_MAX 32 /* bytes that both ends say to each other before */
#define KRP_RECV_MAX 1024 /* letters in one call */
#define KRP_INBOX_BYTES_MIN 4096
#define KRP_INBOX_BYTES_MAX (16U << 20)
#define KRP_INBOX_DEPTH_MAX 32768
#define KRP_CONN_DEPTH_MAX 1024
#define KRP_BACKLOG_MAX 1024

/**
 * struct krp_inbox - KRP_IOC_INBOX: make the inbox of a context, once.
 * @bytes: in: how much may wait in it, KRP_INBOX_BYTES_MIN to _MAX, a multiple of 4096. Its
 *	connections share it; each may have one message there whatever the others have.
 * @depth: in: messages and READs of all connections that may be under way at once, 1 to
 *	KRP_INBOX_DEPTH_MAX. So many entries of the ring are set aside for them.
 * @flags: in: zero.
 * @rsvd: zero.
 *
 * Returns 0, -EINVAL, -EBADFD (no setup), -EALREADY (there is one), -EOPNOTSUPP (the device
 * can't receive messages), -ENOSPC (the ring has too few entries left), -EDQUOT (the inboxes of
 * the user have as many bytes as they may), -ENOMEM, -ENODEV.
 */
struct krp_inbox {
	__u32 bytes;
	__u32 depth;
	__u32 flags;
	__u32 rsvd;
};

/* krp_open.flags */
#define KRP_OPEN_FRESH 0x1 /* use nothing that the node has long remembered of the peer */

/**
 * struct krp_open - KRP_IOC_OPEN: open a connection to a service.
 * @connection: in: zero; out: its number.
 * @flags: in: KRP_OPEN_*.
 * @gid: in: GID of the peer's port.
 * @service: in: a service that a program there listens to, 256 to 65535.
 * @user_len: in: bytes of @user, 0 to KRP_OPEN_USER_MAX.
 * @rsvd: zero.
 * @timeout_ms: in: how long a look-up may take, 1 to KRP_CONNECT_TIMEOUT_MS_MAX.
 * @reads: out: READs of a MetaServer that it took; 0 from the cache.
 * @depth: in: messages and READs of it that may be under way, 1 to KRP_CONN_DEPTH_MAX.
 * @rsvd2: zero.
 * @generation: out: boot generation of the peer.
 * @first: in: address of a struct krp_send_wr, which travels with the opening: krp_send_wr.mr
 *	and .connection are 0, .length is at most KRP_OPEN_FIRST_MAX; 0: none.
 * @user: in: told to the peer's program with the offer; zero past @user_len.
 *
 * Returns 0, -EINVAL, -EBADFD (no setup, or no inbox), -ENODEV, -EFAULT, -EMSGSIZE (@first),
 * -EAGAIN (@first: as much is under way as may be), -EDQUOT (limit of queues or
 * requests of the user), -ENOSPC (the port has as many connections as it may), -ENOENT (no such
 * record), -EPROTO (the record is not of a service that is bound), -ENOMEM,
 * -EINTR, and the errors of KRP_IOC_CONNECT. That nobody listens is told later: see
 * KRP_LETTER_DIED.
 */
struct krp_open {
	__u32 connection;
	__u32 flags;
	__u8 gid[KRP_GID_BYTES];
	__u16 service;
	__u8 user_len;
	__u8 rsvd;
	__u32 timeout_ms;
	__u32 reads;
	__u32 depth;
	__u64 rsvd2;
	__u64 generation;
	__u64 first;
	__u8 user[KRP_OPEN_USER_MAX];
};

/* krp_accept.flags */
#define KRP_ACCEPT_REFUSE 0x1 /* it is not wanted; all below is zero, and the number ends */

/**
 * struct krp_accept - KRP_IOC_ACCEPT: take or refuse a connection that was offered.
 * @connection: in: krp_letter.connection.
 * @flags: in: KRP_ACCEPT_*.
 * @depth: in: as in struct krp_open.
 * @rsvd2: zero.
 * @user_len: in: likewise.
 * @rsvd: zero.
 * @user: in: told to the peer's program with KRP_LETTER_OPENED; zero past @user_len.
 *
 * A first message comes into the inbox when it is accepted. An offer that is not answered holds
 * a place of the backlog; KRP_IOC_SHUT refuses it, too. Returns 0, -EINVAL, -ENOENT (no such
 * connection), -EISCONN (it was accepted), -EBADFD (no setup, or no inbox),
 * -EDQUOT (limit of queues), -ENOMEM; or why the connection has ended meanwhile:
 * then it stays an offer, of which KRP_IOC_SHUT is the end, and no letter says so.
 */
struct krp_accept {
	__u32 connection;
	__u32 flags;
	__u32 depth;
	__u32 rsvd2;
	__u8 user_len;
	__u8 rsvd[7];
	__u8 user[KRP_OPEN_USER_MAX];
};

/* krp_send_wr.flags */
#define KRP_SEND_HURRY 0x1 /* the program waits for the completion */
#define KRP_SEND_AFTER 0x2 /* after the requests of krp_send_wr.queue */

#define KRP_SEND_AFTER_MAX 64 /* messages that wait for one queue */

/**
 * struct krp_send_wr - One message.
 * @user_data: given back in the completion.
 * @addr: of its first byte; in the region, as the registering process sees it, if @mr is not 0.
 * @connection: by which.
 * @mr: 0: copy it; else the handle of a region with KRP_ACCESS_MESSAGE: announce it. Its bytes do
 *	not change before the completion.
 * @length: bytes: copied 0 to KRP_SEND_COPY_MAX, else 1 to KRP_SEND_LARGE_MAX.
 * @imm: given to the peer's program with it.
 * @flags: KRP_SEND_*.
 * @queue: KRP_SEND_AFTER, copied messages only: number of a queue of this context. The message is
 *	sent when all requests that were posted to it before have completed without an error, and
 *	those that are sent by the connection later wait behind it. Else zero.
 * @rsvd: zero.
 */
struct krp_send_wr {
	__u64 user_data;
	__u64 addr;
	__u32 connection;
	__u32 mr;
	__u32 length;
	__u32 imm;
	__u32 flags;
	__u32 queue;
	__u32 rsvd[2];
};

/**
 * struct krp_send - KRP_IOC_SEND: send messages, by one connection or by several.
 * @wrs: in: address of an array of struct krp_send_wr.
 * @count: in: how many, 1 to KRP_SEND_MAX.
 * @taken: in: zero; out: how many were taken.
 * @error: in: zero; out: why the next one was not: 0, or a negative errno.
 * @flags: in: zero.
 *
 * Does not wait for the peer. Returns 0 if at least one was taken, else the error: -EAGAIN
 * (as much of the connection or the context is under way as may be, the ring is full, or
 * KRP_SEND_AFTER_MAX messages wait for the queue), -EINVAL, -EBADFD (no setup, or no inbox),
 * -EMSGSIZE (@length), -ENOENT (no such connection, region or queue), -ECANCELED (the queue is in
 * ERROR), -ENOTCONN (it is an offer), -EPIPE (this end is shut), -EACCES (the region is without
 * KRP_ACCESS_MESSAGE), -ERANGE (outside the region), -EFAULT (@wrs or krp_send_wr.addr; or the
 * answer cannot be written, and then messages may have been taken), -EDQUOT (limit of requests of
 * the user), -ENOMEM, -EINTR; or what the connection has died of, see KRP_LETTER_DIED.
 *
 * Errors in the completion are those, and -ECANCELED (KRP_IOC_CANCEL; or with KRP_SEND_AFTER: a
 * request of the queue has failed, and the message was not sent, while those behind it are),
 * -ENOMSG (announced: the peer's program did not want it), -EFAULT (announced: the peer's READ
 * failed).
 */
struct krp_send {
	__u64 wrs;
	__u32 count;
	__u32 taken;
	__s32 error;
	__u32 flags;
};

/* krp_letter.kind */
#define KRP_LETTER_OFFER 1 /* a connection that waits for KRP_IOC_ACCEPT; bytes: krp_letter_peer */
#define KRP_LETTER_OPENED 2 /* the peer has accepted; bytes: krp_letter_peer */
#define KRP_LETTER_MESSAGE 3 /* bytes: the message */
#define KRP_LETTER_LARGE 4 /* a message that was announced: KRP_IOC_LARGE */
#define KRP_LETTER_ENDED 5 /* the peer sends no more; this end still may */
#define KRP_LETTER_DIED 6 /* krp_letter.status says of what */

/* krp_letter.flags */
#define KRP_LETTER_AFTER 0x1 /* MESSAGE: KRP_SEND_AFTER: the sender's WRITEs before it are done */
#define KRP_LETTER_POSTED 0x2 /* LARGE: it goes to a buffer of KRP_IOC_POST_RECV */

/**
 * struct krp_letter - What has come.
 * @seq: LARGE: its name for KRP_IOC_LARGE, or with KRP_LETTER_POSTED krp_post_recv.user_data of
 *	the buffer; MESSAGE: its number on the connection; else 0.
 * @connection: number of the connection; OFFER: of the new one.
 * @status: DIED: -ECONNREFUSED (nobody listens, or the program refused), -EBUSY (its backlog is
 *	full), -ESTALE (the peer's node was started anew since its record was cached: open again),
 *	-ECONNRESET (the peer's program or node has ended), -ETIMEDOUT (the peer does not
 *	answer), -EPROTO (it broke the rules), -ENODEV (the port of this context is gone); else 0.
 * @length: MESSAGE, LARGE: bytes of the message; else 0.
 * @imm: MESSAGE, LARGE: krp_send_wr.imm; else 0.
 * @offset: where its bytes are, from krp_recv.buffer; a multiple of 8. KRP_LETTER_POSTED: from the
 *	first byte of the buffer that it goes to.
 * @bytes: how many there are, from krp_recv.buffer.
 * @kind: KRP_LETTER_*.
 * @flags: KRP_LETTER_*.
 * @rsvd: zero.
 */
struct krp_letter {
	__u64 seq;
	__u32 connection;
	__s32 status;
	__u32 length;
	__u32 imm;
	__u32 offset;
	__u32 bytes;
	__u8 kind;
	__u8 flags;
	__u8 rsvd[6];
};

/**
 * struct krp_letter_peer - Whom a connection is with.
 * @gid: GID of its port, verified with the MetaServers' table.
 * @generation: boot generation of its node.
 * @queue: number of its end at that node.
 * @service: the service that was opened, at whichever end.
 * @user_len: bytes of @user.
 * @rsvd: zero.
 * @user: what its program has said; zero past @user_len.
 */
struct krp_letter_peer {
	__u8 gid[KRP_GID_BYTES];
	__u64 generation;
	__u32 queue;
	__u16 service;
	__u8 user_len;
	__u8 rsvd;
	__u8 user[KRP_OPEN_USER_MAX];
};

/**
 * struct krp_recv - KRP_IOC_RECV: take letters.
 * @letters: in: address of an array of struct krp_letter.
 * @buffer: in: address of memory for their bytes, any alignment.
 * @count: in: most letters, 1 to KRP_RECV_MAX.
 * @bytes: in: size of @buffer.
 * @timeout_ms: in: how long to wait for the first one; 0: only look; KRP_WAIT_FOREVER.
 * @flags: in: zero.
 * @taken: in: zero; out: how many were taken.
 * @used: in: zero; out: bytes of @buffer that they take; with -EMSGSIZE: that the first one needs.
 *
 * Those of a connection come in order. Takes what is there and fits, and waits for no more
 * than one. A buffer of KRP_SEND_COPY_MAX bytes fits any. At first it watches the inbox for as
 * long as KRP_IOC_WAIT busy-polls.
 * Returns 0, with @taken from 1; -EINVAL, -EBADFD (no setup, or no inbox), -EMSGSIZE (the first
 * one does not fit; it stays), -EFAULT (likewise; or the answer cannot be written, and then
 * letters may have been taken), -ETIMEDOUT (none came; with @timeout_ms 0 -EAGAIN), -EINTR,
 * -EBUSY (KRP_SLEEPERS_MAX wait), -ENOMEM, -ENODEV (the port is gone, and there is none).
 */
struct krp_recv {
	__u64 letters;
	__u64 buffer;
	__u32 count;
	__u32 bytes;
	__u32 timeout_ms;
	__u32 flags;
	__u32 taken;
	__u32 used;
};

/* krp_large.flags */
#define KRP_LARGE_KEEP 0x1 /* more of it is wanted afterwards: the peer goes on holding it */
#define KRP_LARGE_DISCARD 0x2 /* it is not wanted (any more): what is below @flags is zero */

/**
 * struct krp_large - KRP_IOC_LARGE: fetch a message that was announced, or discard it.
 * @seq: in: krp_letter.seq.
 * @connection: in: connection.
 * @flags: in: KRP_LARGE_*.
 * @user_data: in: given back in the completion.
 * @addr: in: where the bytes go: address in the region, as the registering process sees it.
 * @offset: in: first byte of the message that is wanted.
 * @mr: in: handle of a region with KRP_ACCESS_LOCAL_WRITE.
 * @length: in: bytes wanted, from 1.
 *
 * One READ of a message at a time. Without KRP_LARGE_KEEP the sender has its memory back when it
 * has ended, however much was wanted. A message is discarded without a completion.
 * Returns 0, -EINVAL (also: beyond its end), -EBADFD (no setup, or no inbox), -ENOENT
 * (no such connection or region; no such message, or it was fetched, or the sender has taken it
 * back), -EBUSY (it is being fetched), -EACCES, -ERANGE (of the region), -EAGAIN, -EDQUOT (as
 * KRP_IOC_SEND), -ENOMEM. Errors in the completion: -ECANCELED (taken back), -EREMOTEIO (refused),
 * -ETIMEDOUT, -EIO, or what the connection has died of.
 */
struct krp_large {
	__u64 seq;
	__u32 connection;
	__u32 flags;
	__u64 user_data;
	__u64 addr;
	__u64 offset;
	__u32 mr;
	__u32 length;
};

/* krp_post_recv.flags */
#define KRP_RECV_CANCEL 0x1 /* take back what was posted with @user_data; what is below is zero */

#define KRP_RECV_LOOKS 16 /* buffers that are looked at for a message, those posted first */
#define KRP_RECV_POSTED_MAX 1024 /* completions that buffers of a context may have to come */
#define KRP_RECV_MESSAGES_MAX 64 /* messages that a buffer takes */
#define KRP_RECV_ALIGN 64 /* bytes: where the next message begins in a buffer for several */

/**
 * struct krp_post_recv - KRP_IOC_POST_RECV: lend memory for a message that is announced, or take it
 *	back.
 * @user_data: in: given back in the completion, and in the letter.
 * @addr: in: where the bytes go: address in the region, as the registering process sees it.
 * @mr: in: handle of a region with KRP_ACCESS_LOCAL_WRITE.
 * @length: in: bytes, 1 to KRP_SEND_LARGE_MAX.
 * @messages: in: how many messages it takes, 1 to KRP_RECV_MESSAGES_MAX.
 * @least: in: of a buffer for several: it takes no more when it has fewer bytes left than this; at
 *	most @length. Zero if @messages is 1.
 * @flags: in: KRP_RECV_*.
 * @rsvd: zero.
 *
 * The next message of any connection that is announced, and not longer, is READ there as soon as it
 * has come, without a call: of the first KRP_RECV_LOOKS buffers that one which was posted first and
 * is large enough. If there is none, or it has come before, or its peer has not answered lately,
 * KRP_IOC_LARGE has it fetched. Where a context has several connections, messages of each go to at
 * most half of the buffers at once, and take up half of their bytes, so that a peer that does not
 * let them be READ leaves some to others; one buffer for one message a connection may always have.
 * Each buffer has one completion, KRP_OP_RECV: with the bytes of the message, whose letter comes in
 * the order of its connection, before or after that; or with an error of KRP_IOC_LARGE, or -ENODEV
 * (the port has ended). It names the connection, or 0 if it was never used.
 *
 * A buffer for several messages takes them one behind the other, each from a multiple of
 * KRP_RECV_ALIGN bytes on, until it has taken as many as it may, or has fewer bytes left than
 * @least. One that it has no place for goes by, and from then on buffers posted later come first;
 * @least should be the largest that is to be expected. Each message has a completion, in whichever order
 * they are done, with KRP_CQE_MORE, and krp_cqe.offset as krp_letter.offset. That of the buffer
 * comes last: without KRP_CQE_MORE, of connection 0, with all bytes that were taken up, and status
 * 0, or -ECANCELED or -ENODEV if it was taken back. Bytes of a message that has failed are not used
 * again.
 *
 * Each completion to come, of messages and of buffers, counts as a READ under way of
 * krp_inbox.depth; at most half of these are of buffers, and KRP_RECV_POSTED_MAX, but one may
 * always be.
 * KRP_RECV_CANCEL takes back those that no message goes to: their completions have -ECANCELED, and
 * are there when the call returns. A buffer for several takes no more messages, and completes when
 * those that go to it are done. KRP_IOC_MR_DEREG takes back those of its region likewise.
 *
 * Returns 0, -EINVAL (also: more messages than may ever be under way), -EBADFD (no setup, or no
 * inbox), -ENODEV, -ENOENT (no such region; KRP_RECV_CANCEL: no such buffer), -EACCES, -ERANGE (of
 * the region), -EAGAIN, -EDQUOT (as KRP_IOC_SEND), -ENOMEM.
 */
struct krp_post_recv {
	__u64 user_data;
	__u64 addr;
	__u32 mr;
	__u32 length;
	__u32 messages;
	__u32 least;
	__u32 flags;
	__u32 rsvd;
};

/**
 * struct krp_cancel - KRP_IOC_CANCEL: ask for the memory of announced messages back.
 * @user_data: in: those with this krp_send_wr.user_data.
 * @connection: in: connection.
 * @rsvd: zero.
 *
 * Their completions follow, with -ECANCELED or as they would have come without this, once the peer
 * does not READ any more. Returns 0, -EINVAL, -EBADFD (no setup, or no inbox), -ENOENT (no such
 * connection, or none is under way).
 */
struct krp_cancel {
	__u64 user_data;
	__u32 connection;
	__u32 rsvd;
};

/* krp_shut.how */
#define KRP_SHUT_SEND 1 /* send no more; what was taken is sent, and what comes is received */
#define KRP_SHUT_CLOSE 2 /* nor receive: what was taken is sent, for ten seconds at most */
#define KRP_SHUT_ABORT 3 /* end it now; the peer gets -ECONNRESET */

/**
 * struct krp_shut - KRP_IOC_SHUT: end a connection, or one direction of it.
 * @connection: in: connection; an offer is refused.
 * @how: in: KRP_SHUT_*.
 *
 * After CLOSE and ABORT no letter of it comes, and its number names nothing; what was sent still
 * completes, and an announced region is in use until then. Returns 0, -EINVAL, -EBADFD (no setup,
 * or no inbox), -ENOENT; SEND and CLOSE: -EBUSY (messages wait for a queue: KRP_SEND_AFTER); SEND
 * alone: -ENOTCONN (it is an offer), -EALREADY, or what the connection has died of.
 */
struct krp_shut {
	__u32 connection;
	__u32 how;
};

/* krp_conn_query.state */
#define KRP_CONN_OFFERED 0
#define KRP_CONN_OPENING 1
#define KRP_CONN_OPEN 2
#define KRP_CONN_DEAD 3

/**
 * struct krp_conn_query - KRP_IOC_CONN_QUERY: how a connection is.
 * @connection: in: connection; all else zero.
 * @state: out: KRP_CONN_*.
 * @error: out: DEAD: of what, as krp_letter.status; else 0.
 * @outstanding: out: messages and READs without completion.
 * @peer: out: whom it is with; what is not known yet is zero.
 * @sent: out: messages handed to the NIC, each once.
 * @received: out: messages that came into the inbox.
 * @waiting: out: messages that the peer has no room for yet.
 * @unacked: out: those that the peer's node has not acknowledged.
 * @window: out: messages that the peer still has room for.
 * @backlog: out: of @received, those that were not taken.
 * @repeats: out: messages, and answers to large ones, that have come again; dropped.
 * @gaps: out: messages dropped because others before them were missing.
 * @busy: out: messages dropped because this node had no room, though it had said so.
 * @foreign: out: packets that were dropped as forged, late or of another generation.
 *
 * Returns 0, -EINVAL, -EBADFD (no setup, or no inbox), -ENOENT.
 */
struct krp_conn_query {
	__u32 connection;
	__u32 state;
	__s32 error;
	__u32 outstanding;
	struct krp_letter_peer peer;
	__u64 sent;
	__u64 received;
	__u32 waiting;
	__u32 unacked;
	__u32 window;
	__u32 backlog;
	__u32 repeats;
	__u32 gaps;
	__u32 busy;
	__u32 foreign;
};

#define KRP_IOC_INBOX _IOW(KRP_IOC_MAGIC, 24, struct krp_inbox)
#define KRP_IOC_OPEN _IOWR(KRP_IOC_MAGIC, 25, struct krp_open)
#define KRP_IOC_ACCEPT _IOW(KRP_IOC_MAGIC, 26, struct krp_accept)
#define KRP_IOC_SEND _IOWR(KRP_IOC_MAGIC, 27, struct krp_send)
#define KRP_IOC_RECV _IOWR(KRP_IOC_MAGIC, 28, struct krp_recv)
#define KRP_IOC_LARGE _IOW(KRP_IOC_MAGIC, 29, struct krp_large)
#define KRP_IOC_CANCEL _IOW(KRP_IOC_MAGIC, 30, struct krp_cancel)
#define KRP_IOC_SHUT _IOW(KRP_IOC_MAGIC, 31, struct krp_shut)
#define KRP_IOC_CONN_QUERY _IOWR(KRP_IOC_MAGIC, 32, struct krp_conn_query)
#define KRP_IOC_POST_RECV _IOW(KRP_IOC_MAGIC, 33, struct krp_post_recv)

KRP_STATIC_ASSERT(sizeof(struct krp_inbox) == 16, "krp_inbox");
KRP_STATIC_ASSERT(sizeof(struct krp_open) == 96, "krp_open");
KRP_STATIC_ASSERT(sizeof(struct krp_accept) == 56, "krp_accept");
KRP_STATIC_ASSERT(sizeof(struct krp_send_wr) == 48, "krp_send_wr");
KRP_STATIC_ASSERT(sizeof(struct krp_send) == 24, "krp_send");
KRP_STATIC_ASSERT(sizeof(struct krp_letter) == 40, "krp_letter");
KRP_STATIC_ASSERT(sizeof(struct krp_letter_peer) == 64, "krp_letter_peer");
KRP_STATIC_ASSERT(sizeof(struct krp_recv) == 40, "krp_recv");
KRP_STATIC_ASSERT(sizeof(struct krp_large) == 48, "krp_large");
KRP_STATIC_ASSERT(sizeof(struct krp_cancel) == 16, "krp_cancel");
KRP_STATIC_ASSERT(sizeof(struct krp_shut) == 8, "krp_shut");
KRP_STATIC_ASSERT(sizeof(struct krp_conn_query) == 128, "krp_conn_query");
KRP_STATIC_ASSERT(sizeof(struct krp_post_recv) == 40, "krp_post_recv");

#endif /* KRP_IOCTL_MESSAGE_H */
