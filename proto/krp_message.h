/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Messages between nodes: what stands on the wire. Normative.
 *
 * krp_stream.h and krp_listen.h say what an end does with it.
 *
 * TRANSPORT
 *   One message is one SEND over DC to the target of the receiver's record, into a receive
 *   buffer of KRP_MESSAGE_PACKET_MAX bytes. It is a struct krp_message, a body of fixed size
 *   that the type decides, and in OPEN and DATA what the program sends. All numbers are
 *   little-endian, all pads zero. What krp_message_check() refuses is counted and dropped,
 *   without an answer.
 *   The transport repeats lost packets, but a SEND may be lost or done twice when its
 *   initiator is reset, and SENDs of two initiators overtake each other. So nothing here
 *   relies on it: krp_stream.h says how messages arrive exactly once and in order.
 *   A SEND that has not left the NIC within half of margin_ms is taken back, as READs are
 *   (krp_mrdir.h); so nothing arrives later than margin_ms after it was handed to the NIC.
 *
 * CONNECTION
 *   OPEN       -->   to a service; carries the first message, if the program has one
 *   CHALLENGE  <--   come again with this pass (first contact of two nodes); with the pass of
 *                    the OPEN itself: it has come, and waits for the program
 *   ACCEPT     <--   or REFUSE
 *   then each end sends DATA, ANNOUNCE and CLOSE, which are numbered, as OPEN is, and DONE,
 *   CANCEL, CREDIT, PROBE and REFUSE, which are not: they say how things are, so they may be
 *   repeated, lost or late, and never wait behind a numbered message.
 *   Until ACCEPT has come the opener sends nothing but its OPEN, so an OPEN costs the
 *   receiver one message at most.
 *
 * WHO IT IS FROM
 *   A completion of a DC target does not tell which node has sent, and the key of a target
 *   stands in the table, where every node reads it. So the header alone is not believed:
 *   whoever may send raw DC packets can write any header. (Programs cannot: modules write
 *   the headers.) What binds a header to a node is that only the node itself receives what is
 *   sent to its record's target, and that the record is the node's: a MetaServer takes a
 *   record from nobody but the address that it names (krp_msg.h).
 *   1. Tags. Each end draws a random number for the connection, not zero, and tells the
 *      peer: the opener in OPEN, which goes to the record of the service, the other end in
 *      ACCEPT, which goes to the record of the opener. From then on each header carries the
 *      tag of the end that it is sent to. A header without it is dropped; 64 bits are not
 *      guessed.
 *   2. Pass. An OPEN carries nothing yet that only its sender could know. The receiver looks
 *      the opener's address up in the table - never in the OPEN - and sends a pass there: a
 *      number that the receiver computes from a secret of its own generation and from the
 *      opener's GID and generation by a keyed function that nobody else can compute (SipHash
 *      is one). The opener comes again with the pass. Nothing is stored meanwhile, so a flood
 *      of OPENs costs no memory, and the answer is shorter than the question. A pass is valid
 *      for all connections of the two nodes as long as both live, so it is one round trip at
 *      their first contact; all later OPENs are delivered as they come.
 *      Without a valid pass the receiver does nothing else about an OPEN for its own generation.
 *   3. The record in an OPEN is a hint: it tells the receiver whether what it has cached of
 *      the opener is still right. If they differ in generation, target or key it READs the
 *      table again; if they differ still, the OPEN is dropped.
 *   4. REFUSE of an end that knows no such connection, which therefore does not know the
 *      receiver's tag, has KRP_MESSAGE_ECHO and repeats the tag that came: it shows that its
 *      sender saw the message.
 *   READs of a node's directory cannot do the same: everybody may READ them, so what is there
 *   is no secret.
 *   A host that can answer for another's address on the fabric, or that sees or changes packets,
 *   is not kept out, as everywhere in krcore.
 *
 * GENERATIONS
 *   Each header has the generation of its sender, OPEN also that of the node it is for. An end
 *   whose peer has another generation than at OPEN has lost the connection. An OPEN for another
 *   generation of the receiver is refused (KRP_REFUSE_STALE): the one that is gone may have
 *   delivered it.
 *   An opener repeats its OPEN, for KRP_MESSAGE_OPEN_MS at most, until it is answered. The
 *   other end knows an OPEN again by GID, queue and tag of the opener. It goes on doing so
 *   after the connection has ended, until KRP_MESSAGE_OPEN_MS and KRP_MESSAGE_MARGIN_MS are
 *   over since the first one came: a late one would be a second connection, and its message
 *   would be delivered twice.
 *
 * NUMBERS
 *   seq: of this message, from 1 in each direction; in the others the first one that was
 *   never sent.
 *   ack: of the first numbered message that has not come; all before it have.
 *   msgs, units: how much the receiver of this header may have sent in all since the
 *   connection began: messages (OPEN with KRP_MESSAGE_PAYLOAD, DATA, ANNOUNCE), and units of
 *   KRP_MESSAGE_UNIT bytes of what they carry, see krp_message_units(). Both wrap and never go
 *   back; a header that is lost, late or doubled takes nothing and gives nothing. What is
 *   granted is not taken back.
 *
 * LARGE MESSAGES
 *   ANNOUNCE says where the bytes are; the receiver READs them when its program has a place
 *   for them, and says DONE, again and again until a header that is later than the ANNOUNCE
 *   (its seq is larger) does not have the bit of its slot in held any more. CANCEL asks for the
 *   memory back; it is repeated until it is answered by DONE. Both name the ANNOUNCE by its seq.
 *   There are KRP_MESSAGE_ANNOUNCED_MAX without DONE in each direction at most.
 *   The receiver hands a READ to its NIC only within lease_ms after it has last received
 *   anything of this connection; when that is over, it sends PROBE first. So the sender may
 *   give the memory to others when DONE has come, or when the peer has another generation,
 *   or, if the connection is dead, lease_ms and twice margin_ms after it has sent its last
 *   message: once for the way of that message, once for that of a READ. REFUSE is none of these
 *   messages, since it ends the lease; and another generation is what the table says, not what a
 *   packet does.
 *   All this is between nodes that keep the rules. What rkey covers a peer's node may READ as long
 *   as the key is valid, if it keeps none. So the key of an ANNOUNCE allows READ and nothing
 *   else, and covers no more than it has to: at best a key of exactly these bytes, made for them
 *   and invalid before the program is told that they are free. A module that announces by a
 *   key of the program's region says in its manual that this opens the whole region to the
 *   peer's node until it is deregistered.
 *
 * Note: Source - the pass after the cookie of TCP Fast Open (RFC 7413) and Retry of QUIC (RFC
 * 9000, section 8.1); tags and echo after SCTP (RFC 9260, sections 3.1 and 8.5.1); absolute
 * grants after QUIC's MAX_DATA (section 4.1).
 */
#ifndef KRP_MESSAGE_H
#define KRP_MESSAGE_H

#include "krp_mrdir.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#define KRP_MESSAGE_MAGIC 0x584bU /* "KX" */
#define KRP_MESSAGE_VERSION 1
#define KRP_MESSAGE_BYTES 64 /* header */
#define KRP_MESSAGE_PACKET_MAX 4096 /* header, body, and what DATA carries */
#define KRP_MESSAGE_DATA_MAX (KRP_MESSAGE_PACKET_MAX - KRP_MESSAGE_BYTES)
#define KRP_MESSAGE_FIRST_MAX (KRP_MESSAGE_DATA_MAX - 136) /* what OPEN carries */
#define KRP_MESSAGE_LARGE_MAX (1U << 30) /* bytes that one ANNOUNCE is about */
#define KRP_MESSAGE_USER_MAX 32 /* bytes of the program in OPEN and ACCEPT */
#define KRP_MESSAGE_UNIT 64 /* bytes that flow control counts as one */
#define KRP_MESSAGE_UNITS_MAX (KRP_MESSAGE_DATA_MAX / KRP_MESSAGE_UNIT) /* of one message */
#define KRP_MESSAGE_MARGIN_MS KRP_MRDIR_MARGIN_MS_MAX /* nothing is on its way for longer */
#define KRP_MESSAGE_OPEN_MS 10000 /* nobody repeats an OPEN for longer */
#define KRP_MESSAGE_ANNOUNCED_MAX 16 /* ANNOUNCEs of one direction that wait for DONE */

/* krp_message.type */
#define KRP_MESSAGE_OPEN 1
#define KRP_MESSAGE_DATA 2
#define KRP_MESSAGE_ANNOUNCE 3
#define KRP_MESSAGE_CLOSE 4
#define KRP_MESSAGE_ACCEPT 5 /* from here on without a number */
#define KRP_MESSAGE_DONE 6
#define KRP_MESSAGE_CANCEL 7
#define KRP_MESSAGE_CHALLENGE 8
#define KRP_MESSAGE_CREDIT 9
#define KRP_MESSAGE_PROBE 10
#define KRP_MESSAGE_REFUSE 11
#define KRP_MESSAGE_TYPES 12

/* krp_message.flags, and in which types they may stand */
#define KRP_MESSAGE_PAYLOAD 0x01 /* OPEN: it carries a message, maybe of no bytes */
#define KRP_MESSAGE_NOTIFY 0x02 /* DATA: WRITEs of the sender have been done before it */
#define KRP_MESSAGE_HURRY 0x04 /* DATA, ANNOUNCE: the sender waits for the ack */
#define KRP_MESSAGE_GAP 0x08 /* CREDIT: messages from ack on are missing, send them again */
#define KRP_MESSAGE_BUSY 0x10 /* CREDIT: there was no room, send again, but not at once */
#define KRP_MESSAGE_ECHO 0x20 /* REFUSE: the tag is the one that came */

/* krp_message.imm of REFUSE (1 to 7), and of DONE (0 for success, 8 to 10) */
#define KRP_REFUSE_SERVICE 1 /* nobody listens there */
#define KRP_REFUSE_BACKLOG 2 /* as many wait to be accepted as may */
#define KRP_REFUSE_PROGRAM 3 /* the program does not want it */
#define KRP_REFUSE_STALE 4 /* OPEN is for another generation of the node */
#define KRP_REFUSE_UNKNOWN 5 /* there is no such connection, or not any more */
#define KRP_REFUSE_ABORT 6 /* the program has ended the connection, or has ended */
#define KRP_REFUSE_BROKEN 7 /* the receiver of this has broken a rule */
#define KRP_REFUSE_CANCELLED 8 /* DONE: taken back by CANCEL */
#define KRP_REFUSE_DISCARDED 9 /* DONE: the program does not want the bytes */
#define KRP_REFUSE_FAULT 10 /* DONE: the READ has failed */
#define KRP_REFUSE_CODES 11
#define KRP_REFUSE_LAST KRP_REFUSE_BROKEN /* of REFUSE; the later ones are of DONE */

/**
 * struct krp_message - First bytes of every message between nodes.
 * @magic: KRP_MESSAGE_MAGIC.
 * @version: KRP_MESSAGE_VERSION.
 * @type: KRP_MESSAGE_*.
 * @flags: KRP_MESSAGE_PAYLOAD and so on.
 * @rsvd: zero.
 * @held: bit i: memory of the sender that ANNOUNCE with slot i is about is held; 0 in OPEN,
 *	CHALLENGE and REFUSE.
 * @tag: of the connection at its receiver; 0 in OPEN.
 * @src: number of the sender's queue.
 * @dst: number of the receiver's queue; in OPEN the service.
 * @generation: of the sender, not zero.
 * @seq: see NUMBERS; 0 in CHALLENGE and REFUSE.
 * @ack: likewise.
 * @msgs: grant; 0 in CHALLENGE and REFUSE.
 * @units: likewise.
 * @length: bytes of the message that the program sends; 0 in other types than OPEN, DATA and
 *	ANNOUNCE.
 * @imm: immediate of the program in OPEN with a message, DATA and ANNOUNCE, KRP_REFUSE_* in
 *	REFUSE and DONE, else 0.
 */
struct krp_message {
	__le16 magic;
	__u8 version;
	__u8 type;
	__u8 flags;
	__u8 rsvd;
	__le16 held;
	__le64 tag;
	__le32 src;
	__le32 dst;
	__le64 generation;
	__le64 seq;
	__le64 ack;
	__le32 msgs;
	__le32 units;
	__le32 length;
	__le32 imm;
};

/**
 * struct krp_message_open - Body of OPEN.
 * @gid: GID of the sender's record.
 * @value: that record, krp_kind_port(); a hint, see WHO IT IS FROM.
 * @tag: of the connection at the sender, not zero.
 * @pass: what CHALLENGE said, 0: none yet.
 * @peer_generation: of the receiver that it is for.
 * @user_len: bytes of @user in use.
 * @rsvd: zero.
 * @user: anything; zero past @user_len.
 */
struct krp_message_open {
	__u8 gid[KRP_GID_BYTES];
	struct krp_value value;
	__le64 tag;
	__le64 pass;
	__le64 peer_generation;
	__u8 user_len;
	__u8 rsvd[7];
	__u8 user[KRP_MESSAGE_USER_MAX];
};

/**
 * struct krp_message_accept - Body of ACCEPT.
 * @tag: of the connection at the sender, not zero.
 * @user_len: bytes of @user in use.
 * @rsvd: zero.
 * @user: anything; zero past @user_len.
 */
struct krp_message_accept {
	__le64 tag;
	__u8 user_len;
	__u8 rsvd[7];
	__u8 user[KRP_MESSAGE_USER_MAX];
};

/**
 * struct krp_message_challenge - Body of CHALLENGE.
 * @pass: not zero.
 */
struct krp_message_challenge {
	__le64 pass;
};

/**
 * struct krp_message_announce - Body of ANNOUNCE.
 * @addr: address of the first byte, for READs.
 * @rkey: remote key.
 * @slot: which bit of krp_message.held, below KRP_MESSAGE_ANNOUNCED_MAX.
 * @rsvd: zero.
 * @lease_ms: see LARGE MESSAGES, KRP_MRDIR_LEASE_MS_MIN to _MAX.
 * @margin_ms: likewise, KRP_MRDIR_MARGIN_MS_MIN to _MAX.
 */
struct krp_message_announce {
	__le64 addr;
	__le32 rkey;
	__u8 slot;
	__u8 rsvd[3];
	__le32 lease_ms;
	__le32 margin_ms;
};

/**
 * struct krp_message_ref - Body of DONE and CANCEL.
 * @seq: of the ANNOUNCE that it is about, not zero.
 */
struct krp_message_ref {
	__le64 seq;
};

KRP_STATIC_ASSERT(sizeof(struct krp_message) == KRP_MESSAGE_BYTES, "krp_message");
KRP_STATIC_ASSERT(offsetof(struct krp_message, tag) == 8, "krp_message.tag");
KRP_STATIC_ASSERT(offsetof(struct krp_message, seq) == 32, "krp_message.seq");
KRP_STATIC_ASSERT(sizeof(struct krp_message_open) == 136, "krp_message_open");
KRP_STATIC_ASSERT(sizeof(struct krp_message_accept) == 48, "krp_message_accept");
KRP_STATIC_ASSERT(sizeof(struct krp_message_challenge) == 8, "krp_message_challenge");
KRP_STATIC_ASSERT(sizeof(struct krp_message_announce) == 24, "krp_message_announce");
KRP_STATIC_ASSERT(sizeof(struct krp_message_ref) == 8, "krp_message_ref");
KRP_STATIC_ASSERT(KRP_MESSAGE_DATA_MAX % KRP_MESSAGE_UNIT == 0, "KRP_MESSAGE_UNITS_MAX");

/**
 * enum krp_message_field - Which field of a message is wrong.
 * @KRP_MESSAGE_OK: none.
 * @KRP_MESSAGE_BAD_BYTES: the packet is not as long as type and length say.
 * @KRP_MESSAGE_BAD_MAGIC: magic.
 * @KRP_MESSAGE_BAD_VERSION: version.
 * @KRP_MESSAGE_BAD_TYPE: type.
 * @KRP_MESSAGE_BAD_FLAGS: one that does not belong to the type.
 * @KRP_MESSAGE_BAD_RSVD: a reserved field, or what is behind the program's bytes.
 * @KRP_MESSAGE_BAD_HELD: held.
 * @KRP_MESSAGE_BAD_TAG: a tag, of the header or the body.
 * @KRP_MESSAGE_BAD_DST: OPEN to what is no service of programs.
 * @KRP_MESSAGE_BAD_GENERATION: a generation, of the header or the body.
 * @KRP_MESSAGE_BAD_SEQ: seq, or that of the ANNOUNCE in a body.
 * @KRP_MESSAGE_BAD_ACK: ack.
 * @KRP_MESSAGE_BAD_GRANT: msgs or units.
 * @KRP_MESSAGE_BAD_LENGTH: length.
 * @KRP_MESSAGE_BAD_IMM: imm.
 * @KRP_MESSAGE_BAD_VALUE: the record in OPEN.
 * @KRP_MESSAGE_BAD_USER: user_len.
 * @KRP_MESSAGE_BAD_PASS: CHALLENGE without one.
 * @KRP_MESSAGE_BAD_ADDR: ANNOUNCE of memory that wraps.
 * @KRP_MESSAGE_BAD_SLOT: slot.
 * @KRP_MESSAGE_BAD_LEASE: lease_ms or margin_ms.
 * @KRP_MESSAGE_FIELDS: how many there are.
 */
enum krp_message_field {
	KRP_MESSAGE_OK,
	KRP_MESSAGE_BAD_BYTES,
	KRP_MESSAGE_BAD_MAGIC,
	KRP_MESSAGE_BAD_VERSION,
	KRP_MESSAGE_BAD_TYPE,
	KRP_MESSAGE_BAD_FLAGS,
	KRP_MESSAGE_BAD_RSVD,
	KRP_MESSAGE_BAD_HELD,
	KRP_MESSAGE_BAD_TAG,
	KRP_MESSAGE_BAD_DST,
	KRP_MESSAGE_BAD_GENERATION,
	KRP_MESSAGE_BAD_SEQ,
	KRP_MESSAGE_BAD_ACK,
	KRP_MESSAGE_BAD_GRANT,
	KRP_MESSAGE_BAD_LENGTH,
	KRP_MESSAGE_BAD_IMM,
	KRP_MESSAGE_BAD_VALUE,
	KRP_MESSAGE_BAD_USER,
	KRP_MESSAGE_BAD_PASS,
	KRP_MESSAGE_BAD_ADDR,
	KRP_MESSAGE_BAD_SLOT,
	KRP_MESSAGE_BAD_LEASE,
	KRP_MESSAGE_FIELDS,
};

/**
 * krp_message_field_name() - Name of a field, human-readable.
 * @field: enum krp_message_field.
 *
 * Context: any.
 * Return: constant text.
 */
static inline const char *krp_message_field_name(unsigned int field)
{
	static const char *const names[KRP_MESSAGE_FIELDS] = {
		"none",	 "bytes", "magic",	"version", "type", "flags", "rsvd",   "held",
		"tag",	 "dst",	  "generation", "seq",	   "ack",  "grant", "length", "imm",
		"value", "user",  "pass",	"addr",	   "slot", "lease",
	};

	return field < KRP_MESSAGE_FIELDS ? names[field] : "unknown";
}

/**
 * krp_message_name() - Name of a type, human-readable.
 * @type: KRP_MESSAGE_*.
 *
 * Context: any.
 * Return: constant text; "unknown" for a type there is not.
 */
static inline const char *krp_message_name(unsigned int type)
{
	static const char *const names[KRP_MESSAGE_TYPES] = {
		"unknown", "OPEN",   "DATA",	  "ANNOUNCE", "CLOSE", "ACCEPT",
		"DONE",	   "CANCEL", "CHALLENGE", "CREDIT",   "PROBE", "REFUSE",
	};

	return type < KRP_MESSAGE_TYPES ? names[type] : names[0];
}

/**
 * krp_refuse_errno() - Negative errno for the status of a REFUSE or DONE.
 * @status: KRP_REFUSE_*, or 0.
 *
 * None is %-EAGAIN: that would say to a program that it has only to wait.
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
static inline int krp_refuse_errno(unsigned int status)
{
	static const short codes[KRP_REFUSE_CODES] = {
		0,	     -ECONNREFUSED, -EBUSY,	-ECONNREFUSED, -ESTALE, -ECONNRESET,
		-ECONNRESET, -EPROTO,	    -ECANCELED, -ENOMSG,       -EFAULT,
	};

	return status < KRP_REFUSE_CODES ? codes[status] : -EPROTO;
}

/**
 * krp_message_body() - Length of the body of a type.
 * @type: KRP_MESSAGE_*.
 *
 * Context: any.
 * Return: bytes; 0 also for a type there is not.
 */
static inline unsigned int krp_message_body(unsigned int type)
{
	switch (type) {
	case KRP_MESSAGE_OPEN:
		return sizeof(struct krp_message_open);
	case KRP_MESSAGE_ACCEPT:
		return sizeof(struct krp_message_accept);
	case KRP_MESSAGE_CHALLENGE:
		return sizeof(struct krp_message_challenge);
	case KRP_MESSAGE_ANNOUNCE:
		return sizeof(struct krp_message_announce);
	case KRP_MESSAGE_DONE:
	case KRP_MESSAGE_CANCEL:
		return sizeof(struct krp_message_ref);
	default:
		return 0;
	}
}

/**
 * krp_message_units() - What a message counts in flow control.
 * @type: KRP_MESSAGE_OPEN, DATA or ANNOUNCE.
 * @length: krp_message.length.
 *
 * An ANNOUNCE counts one: its bytes do not come before the receiver wants them.
 *
 * Context: any.
 * Return: 1 to KRP_MESSAGE_UNITS_MAX.
 */
static inline __u32 krp_message_units(unsigned int type, __u32 length)
{
	if (type == KRP_MESSAGE_ANNOUNCE || length <= KRP_MESSAGE_UNIT)
		return 1;
	return (length + KRP_MESSAGE_UNIT - 1) / KRP_MESSAGE_UNIT;
}

/** krp_message_numbered() - Whether messages of a type have numbers. @type: it. Return: 1 or 0. */
static inline int krp_message_numbered(unsigned int type)
{
	return type < KRP_MESSAGE_ACCEPT;
}

/** krp_message_bare() - Whether a type says nothing of the connection. @type: it. Context: any.
 * Return: 1 or 0.
 */
static inline int krp_message_bare(unsigned int type)
{
	return type == KRP_MESSAGE_CHALLENGE || type == KRP_MESSAGE_REFUSE;
}

/** krp_message_flags() - Flags that a type may have. @type: it. Context: any. Return: them. */
static inline unsigned int krp_message_flags(unsigned int type)
{
	switch (type) {
	case KRP_MESSAGE_OPEN:
		return KRP_MESSAGE_PAYLOAD;
	case KRP_MESSAGE_DATA:
		return KRP_MESSAGE_NOTIFY | KRP_MESSAGE_HURRY;
	case KRP_MESSAGE_ANNOUNCE:
		return KRP_MESSAGE_HURRY;
	case KRP_MESSAGE_CREDIT:
		return KRP_MESSAGE_GAP | KRP_MESSAGE_BUSY;
	case KRP_MESSAGE_REFUSE:
		return KRP_MESSAGE_ECHO;
	default:
		return 0;
	}
}

/** krp_message_check_user() - Check what the program says in OPEN or ACCEPT. @len: user_len.
 * @user: user. Context: any. Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_user(__u8 len, const __u8 *user)
{
	if (len > KRP_MESSAGE_USER_MAX)
		return KRP_MESSAGE_BAD_USER;
	return krp_is_zero(user + len, KRP_MESSAGE_USER_MAX - len) ? KRP_MESSAGE_OK
								   : KRP_MESSAGE_BAD_RSVD;
}

/** krp_message_check_open() - Check the body of OPEN. @m: header. @b: body. Context: any.
 * Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_open(const struct krp_message *m,
							    const struct krp_message_open *b)
{
	if (!krp_is_zero(b->rsvd, sizeof(b->rsvd)))
		return KRP_MESSAGE_BAD_RSVD;
	if (!b->tag)
		return KRP_MESSAGE_BAD_TAG;
	if (!krp_value_valid(&b->value) || !krp_kind_port(b->value.kind))
		return KRP_MESSAGE_BAD_VALUE;
	if (!b->peer_generation || b->value.generation != m->generation)
		return KRP_MESSAGE_BAD_GENERATION;
	return krp_message_check_user(b->user_len, b->user);
}

/** krp_message_check_announce() - Check the body of ANNOUNCE. @m: header. @b: body. Context: any.
 * Return: enum krp_message_field.
 */
static inline enum krp_message_field
krp_message_check_announce(const struct krp_message *m, const struct krp_message_announce *b)
{
	__u64 addr = krp_le64_to_cpu(b->addr), length = krp_le32_to_cpu(m->length);
	__u32 lease_ms = krp_le32_to_cpu(b->lease_ms), margin_ms = krp_le32_to_cpu(b->margin_ms);

	if (!krp_is_zero(b->rsvd, sizeof(b->rsvd)))
		return KRP_MESSAGE_BAD_RSVD;
	if (addr + length < addr)
		return KRP_MESSAGE_BAD_ADDR;
	if (b->slot >= KRP_MESSAGE_ANNOUNCED_MAX)
		return KRP_MESSAGE_BAD_SLOT;
	if (lease_ms < KRP_MRDIR_LEASE_MS_MIN || lease_ms > KRP_MRDIR_LEASE_MS_MAX ||
	    margin_ms < KRP_MRDIR_MARGIN_MS_MIN || margin_ms > KRP_MRDIR_MARGIN_MS_MAX)
		return KRP_MESSAGE_BAD_LEASE;
	return KRP_MESSAGE_OK;
}

/** krp_message_check_body() - Check a body. @m: header, checked; the body is behind it.
 * Context: any. Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_body(const struct krp_message *m)
{
	const void *body = m + 1;
	const struct krp_message_accept *accept = (const struct krp_message_accept *)body;

	switch (m->type) {
	case KRP_MESSAGE_OPEN:
		return krp_message_check_open(m, (const struct krp_message_open *)body);
	case KRP_MESSAGE_ANNOUNCE:
		return krp_message_check_announce(m, (const struct krp_message_announce *)body);
	case KRP_MESSAGE_ACCEPT:
		if (!accept->tag)
			return KRP_MESSAGE_BAD_TAG;
		if (!krp_is_zero(accept->rsvd, sizeof(accept->rsvd)))
			return KRP_MESSAGE_BAD_RSVD;
		return krp_message_check_user(accept->user_len, accept->user);
	case KRP_MESSAGE_CHALLENGE:
		return ((const struct krp_message_challenge *)body)->pass ? KRP_MESSAGE_OK
									  : KRP_MESSAGE_BAD_PASS;
	case KRP_MESSAGE_DONE:
	case KRP_MESSAGE_CANCEL:
		return ((const struct krp_message_ref *)body)->seq ? KRP_MESSAGE_OK
								   : KRP_MESSAGE_BAD_SEQ;
	default:
		return KRP_MESSAGE_OK;
	}
}

/** krp_message_check_imm() - Check immediate and status. @m: header, whose type is known.
 * Context: any. Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_imm(const struct krp_message *m)
{
	__u32 imm = krp_le32_to_cpu(m->imm);

	switch (m->type) {
	case KRP_MESSAGE_DATA:
	case KRP_MESSAGE_ANNOUNCE:
		return KRP_MESSAGE_OK;
	case KRP_MESSAGE_OPEN:
		return !imm || m->flags ? KRP_MESSAGE_OK : KRP_MESSAGE_BAD_IMM;
	case KRP_MESSAGE_REFUSE:
		return imm && imm <= KRP_REFUSE_LAST ? KRP_MESSAGE_OK : KRP_MESSAGE_BAD_IMM;
	case KRP_MESSAGE_DONE:
		return !imm || (imm > KRP_REFUSE_LAST && imm < KRP_REFUSE_CODES)
			       ? KRP_MESSAGE_OK
			       : KRP_MESSAGE_BAD_IMM;
	default:
		return imm ? KRP_MESSAGE_BAD_IMM : KRP_MESSAGE_OK;
	}
}

/** krp_message_check_numbers() - Check seq, ack and grants. @m: header, whose type is known.
 * Context: any. Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_numbers(const struct krp_message *m)
{
	__u64 seq = krp_le64_to_cpu(m->seq), ack = krp_le64_to_cpu(m->ack);

	if (krp_message_bare(m->type)) {
		if (seq || ack)
			return seq ? KRP_MESSAGE_BAD_SEQ : KRP_MESSAGE_BAD_ACK;
		return m->msgs || m->units ? KRP_MESSAGE_BAD_GRANT : KRP_MESSAGE_OK;
	}
	/* numbers do not come to their end in any generation of a node: far ones are forged */
	if (!seq || seq >> 62 || (m->type == KRP_MESSAGE_OPEN && seq != 1))
		return KRP_MESSAGE_BAD_SEQ;
	if (!ack || ack >> 62 || (m->type == KRP_MESSAGE_OPEN && ack != 1))
		return KRP_MESSAGE_BAD_ACK;
	return KRP_MESSAGE_OK;
}

/** krp_message_check_length() - Check length. @m: header, whose type is known. Context: any.
 * Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_length(const struct krp_message *m)
{
	__u32 length = krp_le32_to_cpu(m->length);
	int ok = !length;

	if (m->type == KRP_MESSAGE_DATA)
		ok = length <= KRP_MESSAGE_DATA_MAX;
	else if (m->type == KRP_MESSAGE_OPEN && m->flags)
		ok = length <= KRP_MESSAGE_FIRST_MAX;
	else if (m->type == KRP_MESSAGE_ANNOUNCE)
		ok = length && length <= KRP_MESSAGE_LARGE_MAX;
	return ok ? KRP_MESSAGE_OK : KRP_MESSAGE_BAD_LENGTH;
}

/** krp_message_check_header() - Check all of a header but magic, version and numbers.
 * @m: header. Context: any. Return: enum krp_message_field.
 */
static inline enum krp_message_field krp_message_check_header(const struct krp_message *m)
{
	int open = m->type == KRP_MESSAGE_OPEN;
	__u32 dst = krp_le32_to_cpu(m->dst);

	if (!m->type || m->type >= KRP_MESSAGE_TYPES)
		return KRP_MESSAGE_BAD_TYPE;
	if (m->flags & ~krp_message_flags(m->type))
		return KRP_MESSAGE_BAD_FLAGS;
	if (m->rsvd)
		return KRP_MESSAGE_BAD_RSVD;
	if (m->held && (open || krp_message_bare(m->type)))
		return KRP_MESSAGE_BAD_HELD;
	if (open != !m->tag)
		return KRP_MESSAGE_BAD_TAG;
	if (open && (dst < KRP_SERVICE_USER_MIN || dst > 0xffff))
		return KRP_MESSAGE_BAD_DST;
	return m->generation ? KRP_MESSAGE_OK : KRP_MESSAGE_BAD_GENERATION;
}

/** krp_message_payload() - Bytes of the program in a packet. @m: header, checked. Context: any.
 * Return: bytes.
 */
static inline __u32 krp_message_payload(const struct krp_message *m)
{
	return m->type == KRP_MESSAGE_ANNOUNCE ? 0 : krp_le32_to_cpu(m->length);
}

/**
 * krp_message_check() - Which field of a message is wrong.
 * @packet: bytes as received, 8-byte aligned; never trusted.
 * @bytes: how many.
 *
 * Context: any.
 * Return: the first one in the order of a header and its body, or KRP_MESSAGE_OK.
 */
static inline enum krp_message_field krp_message_check(const void *packet, __u32 bytes)
{
	const struct krp_message *m = (const struct krp_message *)packet;
	enum krp_message_field field;

	if (bytes < sizeof(*m))
		return KRP_MESSAGE_BAD_BYTES;
	if (krp_le16_to_cpu(m->magic) != KRP_MESSAGE_MAGIC)
		return KRP_MESSAGE_BAD_MAGIC;
	if (m->version != KRP_MESSAGE_VERSION)
		return KRP_MESSAGE_BAD_VERSION;
	field = krp_message_check_header(m);
	field = field ? field : krp_message_check_numbers(m);
	field = field ? field : krp_message_check_length(m);
	field = field ? field : krp_message_check_imm(m);
	if (field)
		return field;
	if (bytes != sizeof(*m) + krp_message_body(m->type) + krp_message_payload(m))
		return KRP_MESSAGE_BAD_BYTES;
	return krp_message_check_body(m);
}

#endif /* KRP_MESSAGE_H */
