/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Control messages between a node and a MetaServer. Normative.
 *
 * TRANSPORT
 *   One RC queue pair made by rdma_cm (RDMA_PS_TCP, port KRP_PORT_DEFAULT). The
 *   same queue pair carries these messages as SENDs and, once the client is
 *   authenticated, its READs of the table. A message is a struct krp_msg_hdr
 *   and a body of fixed size that the type decides; KRP_MSG_BYTES_MAX holds any.
 *   All numbers are little-endian, all pads zero.
 *   The path MTU is KRP_MTU_MIN at least, else the server refuses the connection
 *   (krp_reject.h). So each message is one packet. With smaller packets a client could send
 *   the first half of one and keep a receive buffer of the server for ever; as it is, a
 *   packet that announces another one is longer than any buffer and ends the connection.
 *   The client asks rdma_connect() for as many READs in flight as it will post
 *   (initiator_depth, 1 to 16; the server may grant fewer), responder_resources
 *   0, retry_count 7 and rnr_retry_count 7: a server whose buffers are all taken
 *   is waited for. It keeps a receive posted for each request that is unanswered
 *   and at least KRP_NOTIFY_WINDOW for NOTIFY, of which the server has no more
 *   under way to a client. The server retries a client that has none six times, each
 *   time after what that client's queue pair asks for (0.66 s where rdma_cm sets
 *   it), and then ends the connection; it drops NOTIFYs, with RESYNC,
 *   before it comes to that. The connection is to have a global route header: see
 *   IDENTITY.
 *   A server ends a session from which nothing has come for its lease, but 5 s at
 *   least and its idle_timeout_ms (a minute unless configured otherwise) at most;
 *   READs do not count. A client that has nothing else to say sends RENEW every
 *   15 s, or sooner by its lease.
 *
 * ESTABLISHMENT                          client            server
 *   HELLO      who I am, nonce             ------------------>
 *   CHALLENGE  nonce, incarnation          <------------------
 *   AUTH       HMAC over all that          ------------------>
 *   WELCOME    HMAC back, where the root   <------------------   READs work from here
 *   Before WELCOME the queue pair takes no remote access at all; afterwards
 *   RDMA READ and nothing else.
 *
 * PROOF
 *   AUTH.mac    = HMAC-SHA256(key, KRP_LABEL_CLIENT || link || HELLO || CHALLENGE)
 *   WELCOME.mac = HMAC-SHA256(key, KRP_LABEL_SERVER || link || HELLO || CHALLENGE
 *                             || WELCOME with its mac zero)
 *   The key is the 16 to 64 bytes that the 32 to 128 hexadecimal digits of the key
 *   file stand for. Labels are taken without their NUL, messages whole, with
 *   their headers. The link is a struct krp_link: both ends of the connection
 *   as each side's own rdma_cm and queue pair say, never as a message does. So a
 *   proof holds on the one connection it was made for and a stranger that
 *   passes messages on between two connections gets nothing, and what WELCOME
 *   says of root, lease, rate and credits is the server's.
 *   An end may have several keys, to change them without a pause. It proves with
 *   one and accepts all. HELLO.key_id names the client's first. If the server
 *   has it, CHALLENGE.key_id repeats it, else it names the server's first; with
 *   the key of CHALLENGE.key_id both MACs are made. A client without that key
 *   does not send AUTH. The id of a key is the first KRP_KEY_ID_BYTES of its
 *   SHA-256; without a key it is zero.
 *   If the server has no key, CHALLENGE lacks KRP_CHALLENGE_AUTH and key id and
 *   MACs are zero on both sides. A client with a key refuses such a server.
 *
 * IDENTITY
 *   A client is known by the GID that its end of the connection has: that in
 *   the global route header of the queue pair. HELLO.gid is this GID as the client
 *   sees it; if the server sees another the answer is KRP_ST_FOREIGN_GID.
 *   Without a global route header (InfiniBand inside a subnet) the server knows no
 *   more than what the client has written into its connection request. Such a client
 *   may READ, LOOKUP and SUBSCRIBE; its PUBLISH is refused with KRP_ST_FOREIGN_GID.
 *   KRP_FEATURE_NODE says that the client is the node's kernel module, to which
 *   services below KRP_SERVICE_USER_MIN belong. Others are refused to publish them
 *   (KRP_ST_RESERVED). Nothing proves it: it keeps programs out by mistake, not by
 *   malice.
 *
 * REQUESTS, each answered by one message with the same xid
 *   PUBLISH    key, value       -> ACK      the value is in the table
 *   WITHDRAW   key, token       -> ACK      no READ that starts later finds it
 *   RENEW      -                -> ACK      lease extended; body says how many
 *                                           records of this owner there are
 *   ROOT       -                -> ROOT_REPLY  where the root is
 *   LOOKUP     key              -> VALUE    the slow way round a busy table, and the
 *                                           only one to a record that is kept aside
 *   SUBSCRIBE  flags            -> ACK      from now on NOTIFY, xid 0
 *   A client has at most WELCOME.credits requests unanswered.
 *
 * REFUSALS
 *   A refusal has the type and the full length that the answer would have had, the
 *   xid of what it answers, a status, and a body of zeros. What cannot be read is
 *   answered all the same: a message of unknown type with an ACK, one shorter than a
 *   header with an ACK and xid 0.
 *   After it the connection is closed by the server if
 *     - it answers HELLO or AUTH, whatever the status, or
 *     - the status is VERSION, MALFORMED, LIMIT_RATE or SHUTDOWN, or
 *     - it is STATE for a type that the session does not take at present; for one
 *       whose feature was not agreed on the session goes on.
 *   After NOT_OWNER, STALE_GENERATION, FOREIGN_GID, RESERVED, LIMIT_RECORDS,
 *   TABLE_FULL, NOT_FOUND and NO_MEMORY for a request it goes on.
 *   A message is malformed if its length, type, direction, pads or ranges are off,
 *   see krp_msg_check(), or if PUBLISH has another generation than HELLO.
 *
 * OWNERSHIP
 *   An owner is (HELLO.owner, GID of the connection, HELLO.generation): one of the
 *   kinds of publishers of a node, at one of its addresses, in one generation.
 *   HELLO.owner alone proves nothing, for anybody may write it: what is a client's
 *   follows from where it connects from. All records of an owner share one lease,
 *   which each of its PUBLISH and RENEW extends; nobody else's does.
 *   The same owner may publish the same key again. A newer generation of it takes a
 *   record over; an older one is refused with KRP_ST_STALE_GENERATION. Another
 *   HELLO.owner is refused with KRP_ST_NOT_OWNER until the lease has run out.
 *   A client may publish only for the GID of its connection (KRP_ST_FOREIGN_GID).
 *   WITHDRAW is answered with KRP_ST_NOT_FOUND if there is no such record, with
 *   KRP_ST_NOT_OWNER if it is another owner's, also when the lease is over, and with
 *   KRP_ST_STALE_GENERATION if it is a newer generation's. An imported record, whose
 *   owner is not known, may be withdrawn by any client that may publish it.
 *   An address may go from a node before its records are withdrawn. WELCOME.token,
 *   given to a client that connects from a GID with an owner, is good for this: WITHDRAW
 *   with it is judged as if it came from the GID of its key with the sender's HELLO.owner.
 *   Without a good token the answer is KRP_ST_FOREIGN_GID. A token holds as long as
 *   the incarnation.
 *   A server may be configured to let clients publish for any GID
 *   (publish_any_gid). Then an owner is (HELLO.owner, HELLO.generation), and neither
 *   global route header nor token nor KRP_FEATURE_NODE is asked for; HELLO.gid is as
 *   above.
 *
 * NOTIFICATIONS
 *   NOTIFY numbers its messages per session and tells of up to
 *   KRP_NOTIFY_CHANGES changes, oldest first. CHANGED and GONE name one key each.
 *   The server collects changes for some ten milliseconds, longer for an address
 *   that changes very many records; a key that changed several times meanwhile
 *   is told once, as it is. RESYNC, which comes alone, means that the client was
 *   too far behind to be told: forget every cached record.
 *   A publisher that is told that its own record is GONE, and has not withdrawn
 *   it, may publish it again: another session of its owner has withdrawn it, or the
 *   lease was over.
 *
 * RESTART
 *   Each run of a server has a new random incarnation, in every header it
 *   sends. A client that sees its connection break attaches again; if the
 *   incarnation is new, it publishes all its records again.
 *   Until they have had the time to do so a server is settling: it says for how
 *   long in WELCOME.settling_ms, and from then on in krp_root.settling_ms, since
 *   the time grows as long as publishers keep coming. A hit there is as good as
 *   any. A miss proves only that the record is not back yet. A server that has
 *   copied the whole table of a settled peer settles, too, if for a shorter time:
 *   what was published at the peer since is missing until its publisher comes.
 *
 * WHAT A READER MAY BELIEVE
 *   A hit, of any server. What a READ does not find in a crowded bucket (krp_table.h) is
 *   no miss: only this server's answer to LOOKUP is one. A miss of one server is no
 *   proof that there is no such record, since a publisher may be content with one
 *   server that took it: another has refused it, or is out of its reach. So a reader
 *   asks a second server that it
 *   is attached to, and all of them as long as those that do not have it are
 *   settling or stand still (krp_pulse.h).
 *
 * COMPATIBILITY
 *   HELLO carries the range of versions the client speaks, and in its header
 *   the highest of them, version_max. Header, version_min and version_max are at
 *   the same place in each version. A server that speaks none of them, or
 *   for whose version the message has another length, refuses with KRP_ST_VERSION.
 *   All other messages carry the version that CHALLENGE has in its header, but for
 *   a refusal with KRP_ST_VERSION: its header has the version of what it
 *   answers, so that its receiver can read it. HELLO is always judged by its range, not
 *   by its header.
 *   HELLO carries feature bits too, CHALLENGE those that both have. Unknown feature
 *   bits are ignored, unknown types refused.
 *   Version 2 binds the proof to the connection and is the only one spoken now.
 */
#ifndef KRP_MSG_H
#define KRP_MSG_H

#include "krp_table.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#define KRP_PORT_DEFAULT 18600
#define KRP_MSG_MAGIC 0x4d43524bU /* "KRCM" */
#define KRP_MSG_VERSION 2
#define KRP_MSG_BYTES_MAX 256
#define KRP_MTU_MIN 512 /* in bytes; more than KRP_MSG_BYTES_MAX */
#define KRP_NONCE_BYTES 32
#define KRP_MAC_BYTES 32
#define KRP_OWNER_BYTES 16
#define KRP_KEY_ID_BYTES 4
#define KRP_TOKEN_BYTES 16
#define KRP_LEASE_MS_MIN 300U /* a third of it is the least time between two RENEWs */
#define KRP_LEASE_MS_MAX 86400000U /* a day */
#define KRP_NAME_BYTES 64
#define KRP_LABEL_CLIENT "krcore auth client v2"
#define KRP_LABEL_SERVER "krcore auth server v2"

/* Feature bits, in HELLO and CHALLENGE. */
#define KRP_FEATURE_NOTIFY (1ULL << 0) /* SUBSCRIBE and NOTIFY */
#define KRP_FEATURE_LOOKUP (1ULL << 1) /* LOOKUP and VALUE */
#define KRP_FEATURE_NODE (1ULL << 2) /* the client is the node's kernel module */
#define KRP_FEATURES_ALL (KRP_FEATURE_NOTIFY | KRP_FEATURE_LOOKUP | KRP_FEATURE_NODE)
/* What a program has of them. */
#define KRP_FEATURES_PROGRAM (KRP_FEATURES_ALL & ~KRP_FEATURE_NODE)

/* krp_challenge.flags */
#define KRP_CHALLENGE_AUTH 0x01 /* the server demands an HMAC */

/* krp_subscribe.flags */
#define KRP_SUBSCRIBE_ALL 0x01 /* every record; without it: stop */

#define KRP_NOTIFY_CHANGES 6 /* in one NOTIFY */
#define KRP_NOTIFY_WINDOW 16U /* NOTIFYs under way to a client at most */

/* krp_change.event */
#define KRP_EVENT_CHANGED 1
#define KRP_EVENT_GONE 2
#define KRP_EVENT_RESYNC 3

/* krp_msg_hdr.type */
#define KRP_MSG_HELLO 1
#define KRP_MSG_CHALLENGE 2
#define KRP_MSG_AUTH 3
#define KRP_MSG_WELCOME 4
#define KRP_MSG_PUBLISH 5
#define KRP_MSG_WITHDRAW 6
#define KRP_MSG_RENEW 7
#define KRP_MSG_ROOT 8
#define KRP_MSG_SUBSCRIBE 9
#define KRP_MSG_LOOKUP 10
#define KRP_MSG_ACK 11
#define KRP_MSG_ROOT_REPLY 12
#define KRP_MSG_VALUE 13
#define KRP_MSG_NOTIFY 14
#define KRP_MSG_TYPES 15

/* krp_msg_hdr.status; names of the causes in krp_status_text() */
#define KRP_ST_OK 0
#define KRP_ST_VERSION 1
#define KRP_ST_MALFORMED 2
#define KRP_ST_AUTH 3
#define KRP_ST_STATE 4
#define KRP_ST_NOT_OWNER 5
#define KRP_ST_STALE_GENERATION 6
#define KRP_ST_FOREIGN_GID 7
#define KRP_ST_LIMIT_RECORDS 8
#define KRP_ST_LIMIT_CLIENTS 9
#define KRP_ST_LIMIT_RATE 10
#define KRP_ST_TABLE_FULL 11
#define KRP_ST_NOT_FOUND 12
#define KRP_ST_SHUTDOWN 13
#define KRP_ST_NO_MEMORY 14
#define KRP_ST_RESERVED 15
#define KRP_ST_CODES 16

/**
 * struct krp_msg_hdr - First bytes of every message.
 * @magic: KRP_MSG_MAGIC.
 * @version: KRP_MSG_VERSION.
 * @type: KRP_MSG_*.
 * @bytes: length of the whole message; the type decides it.
 * @xid: chosen by the requester, given back in the answer; 0 in NOTIFY.
 * @status: KRP_ST_*; 0 in requests.
 * @rsvd: zero.
 * @incarnation: of the server that sends; 0 from a client.
 * @rsvd2: zero.
 */
struct krp_msg_hdr {
	__le32 magic;
	__u8 version;
	__u8 type;
	__le16 bytes;
	__le32 xid;
	__le16 status;
	__u8 rsvd[2];
	__le64 incarnation;
	__u8 rsvd2[8];
};

/**
 * struct krp_hello - Client to server, first message.
 * @hdr: header.
 * @features: KRP_FEATURE_* the client has.
 * @generation: boot generation of the owner, not zero.
 * @owner: identity of the owner that lasts over boots, not all zero.
 * @gid: GID of the client's end of the connection, see IDENTITY.
 * @nonce: random.
 * @lease_ms: lease wished, in ms; 0 leaves it to the server.
 * @version_min: lowest version the client speaks.
 * @version_max: highest; that of the header.
 * @rsvd: zero.
 * @name: host name for diagnostics, NUL-padded, at least one NUL.
 * @key_id: id of the client's first key, zero if it has none.
 * @rsvd2: zero.
 */
struct krp_hello {
	struct krp_msg_hdr hdr;
	__le64 features;
	__le64 generation;
	__u8 owner[KRP_OWNER_BYTES];
	__u8 gid[KRP_GID_BYTES];
	__u8 nonce[KRP_NONCE_BYTES];
	__le32 lease_ms;
	__u8 version_min;
	__u8 version_max;
	__u8 rsvd[2];
	__u8 name[KRP_NAME_BYTES];
	__u8 key_id[KRP_KEY_ID_BYTES];
	__u8 rsvd2[4];
};

/**
 * struct krp_challenge - Server to client, answer to HELLO.
 * @hdr: header.
 * @features: KRP_FEATURE_* both have.
 * @nonce: random.
 * @flags: KRP_CHALLENGE_*.
 * @rsvd: zero.
 * @key_id: id of the key to prove with; zero without KRP_CHALLENGE_AUTH.
 */
struct krp_challenge {
	struct krp_msg_hdr hdr;
	__le64 features;
	__u8 nonce[KRP_NONCE_BYTES];
	__u8 flags;
	__u8 rsvd[3];
	__u8 key_id[KRP_KEY_ID_BYTES];
};

/**
 * struct krp_link - The connection that a proof is for. Never sent.
 * @client_gid: GID that the client's queue pair sends from; without a global route
 *	header the source GID of rdma_cm's path.
 * @server_gid: the same of the server's.
 * @client_qpn: number of the client's queue pair, 24 bits.
 * @server_qpn: of the server's.
 */
struct krp_link {
	__u8 client_gid[KRP_GID_BYTES];
	__u8 server_gid[KRP_GID_BYTES];
	__le32 client_qpn;
	__le32 server_qpn;
};

/**
 * struct krp_auth - Client to server: proof that it has the cluster key.
 * @hdr: header.
 * @mac: HMAC, or zero if the server demands none.
 */
struct krp_auth {
	struct krp_msg_hdr hdr;
	__u8 mac[KRP_MAC_BYTES];
};

/**
 * struct krp_root_ref - Where to READ struct krp_root.
 * @addr: its address.
 * @rkey: its remote key.
 * @bytes: its length.
 */
struct krp_root_ref {
	__le64 addr;
	__le32 rkey;
	__le32 bytes;
};

/**
 * struct krp_welcome - Server to client: READs work now.
 * @hdr: header.
 * @mac: HMAC, or zero without a cluster key.
 * @root: where the root is.
 * @lease_ms: lease granted, in ms, KRP_LEASE_MS_MIN to _MAX: RENEW well before it runs out.
 * @tick_ms: granularity of the lease sweep, in ms.
 * @records_max: records one owner may have.
 * @rate_max: messages a second before the client is cut off.
 * @credits: requests that may be unanswered at once.
 * @rsvd: zero.
 * @settling_ms: for how long from now publishers may still be on their way
 *	back to this server, in ms, at most KRP_SETTLING_MS_MAX; 0: it is settled.
 * @token: for WITHDRAW of this owner's records at this GID from another one.
 */
struct krp_welcome {
	struct krp_msg_hdr hdr;
	__u8 mac[KRP_MAC_BYTES];
	struct krp_root_ref root;
	__le32 lease_ms;
	__le32 tick_ms;
	__le32 records_max;
	__le32 rate_max;
	__le16 credits;
	__u8 rsvd[2];
	__le32 settling_ms;
	__u8 token[KRP_TOKEN_BYTES];
};

/**
 * struct krp_publish - Client to server: put a record into the table.
 * @hdr: header.
 * @key: name of the record.
 * @rsvd: zero.
 * @value: its value; value.generation is that of HELLO.
 */
struct krp_publish {
	struct krp_msg_hdr hdr;
	struct krp_key key;
	__u8 rsvd[6];
	struct krp_value value;
};

/**
 * struct krp_withdraw - Client to server: take a record of mine out.
 * @hdr: header.
 * @key: name of the record.
 * @rsvd: zero.
 * @token: WELCOME.token of a session from the GID of @key, with the same owner, in
 *	this incarnation; not looked at where that is the GID of this session.
 */
struct krp_withdraw {
	struct krp_msg_hdr hdr;
	struct krp_key key;
	__u8 rsvd[6];
	__u8 token[KRP_TOKEN_BYTES];
};

/**
 * struct krp_renew - Client to server: I am alive.
 * @hdr: header.
 */
struct krp_renew {
	struct krp_msg_hdr hdr;
};

/**
 * struct krp_root_get - Client to server: where is the root?
 * @hdr: header.
 */
struct krp_root_get {
	struct krp_msg_hdr hdr;
};

/**
 * struct krp_subscribe - Client to server: tell me what changes.
 * @hdr: header.
 * @flags: KRP_SUBSCRIBE_*.
 * @rsvd: zero.
 */
struct krp_subscribe {
	struct krp_msg_hdr hdr;
	__u8 flags;
	__u8 rsvd[7];
};

/**
 * struct krp_lookup_msg - Client to server: look up for me.
 * @hdr: header.
 * @key: name of the record.
 * @rsvd: zero.
 */
struct krp_lookup_msg {
	struct krp_msg_hdr hdr;
	struct krp_key key;
	__u8 rsvd[6];
};

/**
 * struct krp_ack - Server to client: outcome, in hdr.status.
 * @hdr: header.
 * @lease_ms: lease left to the owner from now, in ms.
 * @records: records of this owner in the table.
 */
struct krp_ack {
	struct krp_msg_hdr hdr;
	__le32 lease_ms;
	__le32 records;
};

/**
 * struct krp_root_reply - Server to client: the root is here.
 * @hdr: header.
 * @root: where.
 */
struct krp_root_reply {
	struct krp_msg_hdr hdr;
	struct krp_root_ref root;
};

/**
 * struct krp_value_msg - Server to client: answer to LOOKUP.
 * @hdr: header; KRP_ST_NOT_FOUND if there is no such record.
 * @value: the value, zero if there is none.
 */
struct krp_value_msg {
	struct krp_msg_hdr hdr;
	struct krp_value value;
};

/**
 * struct krp_change - What has become of one record.
 * @key: which record; zero with KRP_EVENT_RESYNC.
 * @event: KRP_EVENT_*.
 * @rsvd: zero.
 * @generation: generation of the record now or last.
 */
struct krp_change {
	struct krp_key key;
	__u8 event;
	__u8 rsvd[5];
	__le64 generation;
};

/**
 * struct krp_notify - Server to client: records have changed.
 * @hdr: header, xid 0.
 * @seq: counts the NOTIFYs of the session, from 1.
 * @nr: how many changes, 1 to KRP_NOTIFY_CHANGES; 1 with KRP_EVENT_RESYNC.
 * @rsvd: zero.
 * @change: the changes, oldest first; those from @nr on are zero.
 */
struct krp_notify {
	struct krp_msg_hdr hdr;
	__le64 seq;
	__u8 nr;
	__u8 rsvd[7];
	struct krp_change change[KRP_NOTIFY_CHANGES];
};

KRP_STATIC_ASSERT(KRP_MTU_MIN > KRP_MSG_BYTES_MAX, "each message is one packet");
KRP_STATIC_ASSERT(sizeof(struct krp_msg_hdr) == 32, "krp_msg_hdr");
KRP_STATIC_ASSERT(sizeof(struct krp_hello) == 192, "krp_hello");
KRP_STATIC_ASSERT(sizeof(struct krp_challenge) == 80, "krp_challenge");
KRP_STATIC_ASSERT(sizeof(struct krp_auth) == 64, "krp_auth");
KRP_STATIC_ASSERT(sizeof(struct krp_link) == 40, "krp_link");
KRP_STATIC_ASSERT(sizeof(struct krp_welcome) == 120, "krp_welcome");
KRP_STATIC_ASSERT(sizeof(struct krp_publish) == 112, "krp_publish");
KRP_STATIC_ASSERT(sizeof(struct krp_withdraw) == 72, "krp_withdraw");
KRP_STATIC_ASSERT(sizeof(struct krp_subscribe) == 40, "krp_subscribe");
KRP_STATIC_ASSERT(sizeof(struct krp_lookup_msg) == 56, "krp_lookup_msg");
KRP_STATIC_ASSERT(sizeof(struct krp_ack) == 40, "krp_ack");
KRP_STATIC_ASSERT(sizeof(struct krp_root_reply) == 48, "krp_root_reply");
KRP_STATIC_ASSERT(sizeof(struct krp_value_msg) == 88, "krp_value_msg");
KRP_STATIC_ASSERT(sizeof(struct krp_change) == 32, "krp_change");
KRP_STATIC_ASSERT(sizeof(struct krp_notify) == 240, "krp_notify");
KRP_STATIC_ASSERT(offsetof(struct krp_hello, version_min) == 116, "krp_hello.version_min");
KRP_STATIC_ASSERT(offsetof(struct krp_publish, value) == 56, "krp_publish.value");
KRP_STATIC_ASSERT(offsetof(struct krp_welcome, settling_ms) == 100, "krp_welcome.settling_ms");

/**
 * krp_msg_bytes() - Length of a message of a type.
 * @type: KRP_MSG_*.
 *
 * Context: any.
 * Return: bytes with the header, or 0 if there is no such type.
 */
static inline unsigned int krp_msg_bytes(unsigned int type)
{
	switch (type) {
	case KRP_MSG_HELLO:
		return sizeof(struct krp_hello);
	case KRP_MSG_CHALLENGE:
		return sizeof(struct krp_challenge);
	case KRP_MSG_AUTH:
		return sizeof(struct krp_auth);
	case KRP_MSG_WELCOME:
		return sizeof(struct krp_welcome);
	case KRP_MSG_PUBLISH:
		return sizeof(struct krp_publish);
	case KRP_MSG_WITHDRAW:
		return sizeof(struct krp_withdraw);
	case KRP_MSG_RENEW:
		return sizeof(struct krp_renew);
	case KRP_MSG_ROOT:
		return sizeof(struct krp_root_get);
	case KRP_MSG_SUBSCRIBE:
		return sizeof(struct krp_subscribe);
	case KRP_MSG_LOOKUP:
		return sizeof(struct krp_lookup_msg);
	case KRP_MSG_ACK:
		return sizeof(struct krp_ack);
	case KRP_MSG_ROOT_REPLY:
		return sizeof(struct krp_root_reply);
	case KRP_MSG_VALUE:
		return sizeof(struct krp_value_msg);
	case KRP_MSG_NOTIFY:
		return sizeof(struct krp_notify);
	default:
		return 0;
	}
}

/**
 * krp_msg_name() - Name of a message type, human-readable.
 * @type: KRP_MSG_*.
 *
 * Context: any.
 * Return: constant text; "unknown" for a type there is not.
 */
static inline const char *krp_msg_name(unsigned int type)
{
	static const char *const names[KRP_MSG_TYPES] = {
		"unknown", "HELLO",    "CHALLENGE",  "AUTH",  "WELCOME",
		"PUBLISH", "WITHDRAW", "RENEW",	     "ROOT",  "SUBSCRIBE",
		"LOOKUP",  "ACK",      "ROOT_REPLY", "VALUE", "NOTIFY",
	};

	return type < KRP_MSG_TYPES ? names[type] : names[0];
}

/**
 * krp_status_text() - What a status means, human-readable.
 * @status: KRP_ST_*.
 *
 * Context: any.
 * Return: constant text.
 */
static inline const char *krp_status_text(unsigned int status)
{
	static const char *const texts[KRP_ST_CODES] = {
		"success",
		"protocol version not supported",
		"malformed message",
		"authentication failed",
		"message not allowed in this state",
		"record belongs to another owner",
		"a newer boot generation of this owner is known",
		"GID is not the one of this connection",
		"owner has too many records",
		"server has too many clients",
		"message rate too high",
		"table is full",
		"no such record",
		"server is shutting down",
		"server is out of memory",
		"services below 256 are the node's own",
	};

	return status < KRP_ST_CODES ? texts[status] : "unknown status";
}

/**
 * krp_status_errno() - Negative errno for a status.
 * @status: KRP_ST_*.
 *
 * Context: any.
 * Return: 0 for KRP_ST_OK, else a negative errno, -EPROTO for unknown codes.
 */
static inline int krp_status_errno(unsigned int status)
{
	switch (status) {
	case KRP_ST_OK:
		return 0;
	case KRP_ST_VERSION:
		return -EPROTONOSUPPORT;
	case KRP_ST_AUTH:
		return -EACCES;
	case KRP_ST_NOT_OWNER:
		return -EEXIST;
	case KRP_ST_STALE_GENERATION:
		return -ESTALE;
	case KRP_ST_FOREIGN_GID:
		return -EPERM;
	case KRP_ST_LIMIT_RECORDS:
		return -EDQUOT;
	case KRP_ST_LIMIT_CLIENTS:
		return -EUSERS;
	case KRP_ST_LIMIT_RATE:
		return -EBUSY;
	case KRP_ST_TABLE_FULL:
		return -ENOSPC;
	case KRP_ST_NOT_FOUND:
		return -ENOENT;
	case KRP_ST_SHUTDOWN:
		return -ESHUTDOWN;
	case KRP_ST_NO_MEMORY:
		return -ENOMEM;
	case KRP_ST_RESERVED:
		return -EPERM;
	default:
		return -EPROTO;
	}
}

/**
 * krp_msg_init() - Zero a message and fill its header.
 * @msg: at least krp_msg_bytes(@type) bytes.
 * @type: KRP_MSG_*.
 * @xid: request number.
 * @status: KRP_ST_*.
 * @incarnation: of the server, 0 from a client.
 *
 * Context: any.
 */
static inline void krp_msg_init(void *msg, unsigned int type, __u32 xid, unsigned int status,
				__u64 incarnation)
{
	struct krp_msg_hdr *hdr = (struct krp_msg_hdr *)msg;

	memset(msg, 0, krp_msg_bytes(type));
	hdr->magic = krp_cpu_to_le32(KRP_MSG_MAGIC);
	hdr->version = KRP_MSG_VERSION;
	hdr->type = (__u8)type;
	hdr->bytes = krp_cpu_to_le16((__u16)krp_msg_bytes(type));
	hdr->xid = krp_cpu_to_le32(xid);
	hdr->status = krp_cpu_to_le16((__u16)status);
	hdr->incarnation = krp_cpu_to_le64(incarnation);
}

/**
 * krp_hello_check() - Ranges and pads of a HELLO's body.
 * @m: message whose header and length are good.
 *
 * Context: any.
 * Return: 1 if they are right, else 0.
 */
static inline int krp_hello_check(const struct krp_hello *m)
{
	return krp_is_zero(m->rsvd, sizeof(m->rsvd)) && krp_is_zero(m->rsvd2, sizeof(m->rsvd2)) &&
	       m->generation && m->hdr.version == m->version_max &&
	       !krp_is_zero(m->owner, sizeof(m->owner)) && !krp_is_zero(m->gid, sizeof(m->gid)) &&
	       !m->name[KRP_NAME_BYTES - 1] && m->version_min <= m->version_max;
}

/**
 * krp_notify_check() - Ranges and pads of a NOTIFY's body.
 * @m: message whose header and length are good.
 *
 * Context: any.
 * Return: 1 if they are right, else 0.
 */
static inline int krp_notify_check(const struct krp_notify *m)
{
	unsigned int i;

	if (!m->nr || m->nr > KRP_NOTIFY_CHANGES || !krp_is_zero(m->rsvd, sizeof(m->rsvd)))
		return 0;
	for (i = 0; i < KRP_NOTIFY_CHANGES; i++) {
		const struct krp_change *c = &m->change[i];

		if (i >= m->nr) {
			if (!krp_is_zero(c, sizeof(*c)))
				return 0;
			continue;
		}
		if (c->event < KRP_EVENT_CHANGED || c->event > KRP_EVENT_RESYNC ||
		    !krp_is_zero(c->rsvd, sizeof(c->rsvd)))
			return 0;
		if (c->event == KRP_EVENT_RESYNC && m->nr != 1)
			return 0;
	}
	return 1;
}

/**
 * krp_msg_check_body() - Ranges and pads of a message's body.
 * @msg: message whose header and length are good.
 *
 * Context: any.
 * Return: KRP_ST_OK or KRP_ST_MALFORMED.
 */
static inline unsigned int krp_msg_check_body(const void *msg)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)msg;
	int ok = 1;

#define KRP_PAD_ZERO(type, field) \
	krp_is_zero(((const struct type *)msg)->field, sizeof(((const struct type *)msg)->field))
	switch (hdr->type) {
	case KRP_MSG_HELLO:
		ok = krp_hello_check((const struct krp_hello *)msg);
		break;
	case KRP_MSG_CHALLENGE: {
		const struct krp_challenge *m = (const struct krp_challenge *)msg;

		ok = KRP_PAD_ZERO(krp_challenge, rsvd) && !(m->flags & ~KRP_CHALLENGE_AUTH) &&
		     ((m->flags & KRP_CHALLENGE_AUTH) || krp_is_zero(m->key_id, KRP_KEY_ID_BYTES));
		break;
	}
	case KRP_MSG_WELCOME: {
		const struct krp_welcome *m = (const struct krp_welcome *)msg;

		ok = KRP_PAD_ZERO(krp_welcome, rsvd) && m->credits &&
		     krp_le32_to_cpu(m->lease_ms) >= KRP_LEASE_MS_MIN &&
		     krp_le32_to_cpu(m->lease_ms) <= KRP_LEASE_MS_MAX &&
		     krp_le32_to_cpu(m->settling_ms) <= KRP_SETTLING_MS_MAX;
		break;
	}
	case KRP_MSG_PUBLISH:
		ok = KRP_PAD_ZERO(krp_publish, rsvd) &&
		     !krp_is_zero(((const struct krp_publish *)msg)->key.gid, KRP_GID_BYTES) &&
		     krp_value_valid(&((const struct krp_publish *)msg)->value);
		break;
	case KRP_MSG_WITHDRAW:
		ok = KRP_PAD_ZERO(krp_withdraw, rsvd);
		break;
	case KRP_MSG_SUBSCRIBE:
		ok = KRP_PAD_ZERO(krp_subscribe, rsvd) &&
		     !(((const struct krp_subscribe *)msg)->flags & ~KRP_SUBSCRIBE_ALL);
		break;
	case KRP_MSG_LOOKUP:
		ok = KRP_PAD_ZERO(krp_lookup_msg, rsvd);
		break;
	case KRP_MSG_NOTIFY:
		ok = krp_notify_check((const struct krp_notify *)msg);
		break;
	default: /* no pads and no ranges beyond the header's */
		break;
	}
#undef KRP_PAD_ZERO
	return ok ? KRP_ST_OK : KRP_ST_MALFORMED;
}

/**
 * krp_msg_version_ok() - Whether a message is one of our version.
 * @msg: bytes as received, at least a header of them.
 * @bytes: how many.
 * @from_client: 1 for a message to a server, 0 for one from a server.
 *
 * HELLO is if our version is in its range and it has our length. A refusal for the
 * version itself is readable whatever its sender speaks.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_msg_version_ok(const void *msg, unsigned int bytes, int from_client)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)msg;
	const struct krp_hello *hello = (const struct krp_hello *)msg;

	if (from_client && hdr->type == KRP_MSG_HELLO && bytes == sizeof(*hello))
		return hello->version_min <= KRP_MSG_VERSION &&
		       hello->version_max >= KRP_MSG_VERSION;
	if (!from_client && hdr->status == krp_cpu_to_le16(KRP_ST_VERSION))
		return 1;
	return hdr->version == KRP_MSG_VERSION;
}

/**
 * krp_msg_check() - Whether received bytes are a well-formed message.
 * @msg: bytes as received, at least 8-byte aligned; never trusted.
 * @bytes: how many were received.
 * @from_client: 1 for a message to a server, 0 for one from a server.
 *
 * Checks magic, version, type and its direction, length, pads, ranges. What a
 * session allows at the moment is the session's to decide.
 *
 * Context: any.
 * Return:
 * * KRP_ST_OK - the struct of hdr.type may be used; of a refusal, the header.
 * * KRP_ST_VERSION - another protocol version; HELLO: its range lacks ours.
 * * KRP_ST_MALFORMED - anything else.
 */
static inline unsigned int krp_msg_check(const void *msg, unsigned int bytes, int from_client)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)msg;

	if (bytes < sizeof(*hdr) || krp_le32_to_cpu(hdr->magic) != KRP_MSG_MAGIC)
		return KRP_ST_MALFORMED;
	if (!krp_msg_version_ok(msg, bytes, from_client))
		return KRP_ST_VERSION;
	if (!krp_msg_bytes(hdr->type) || bytes != krp_msg_bytes(hdr->type) ||
	    krp_le16_to_cpu(hdr->bytes) != bytes || krp_le16_to_cpu(hdr->status) >= KRP_ST_CODES ||
	    !krp_is_zero(hdr->rsvd, sizeof(hdr->rsvd)) ||
	    !krp_is_zero(hdr->rsvd2, sizeof(hdr->rsvd2)))
		return KRP_ST_MALFORMED;
	if (from_client) {
		if (hdr->type == KRP_MSG_CHALLENGE || hdr->type == KRP_MSG_WELCOME ||
		    hdr->type >= KRP_MSG_ACK || hdr->status || hdr->incarnation)
			return KRP_ST_MALFORMED;
	} else if (hdr->type != KRP_MSG_CHALLENGE && hdr->type != KRP_MSG_WELCOME &&
		   hdr->type < KRP_MSG_ACK) {
		return KRP_ST_MALFORMED;
	}
	if (hdr->status != krp_cpu_to_le16(KRP_ST_OK))
		return krp_is_zero(hdr + 1, bytes - sizeof(*hdr)) ? KRP_ST_OK : KRP_ST_MALFORMED;
	return krp_msg_check_body(msg);
}

#endif /* KRP_MSG_H */
