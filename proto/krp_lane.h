/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Lanes: the hand-shake by which two ports make a reliable connection. Normative.
 *
 * krp_lane_state.h and krp_lane_end.h say what an end does with it, krp_lanes.h what a port does
 * with all of its lanes. kmod/hw/verbs/ drives them.
 *
 * WHAT IT IS
 *   A lane is a queue pair of each of two ports, connected to each other (RC), and used by all
 *   programs of both nodes in both directions. Two ports have up to KRP_LANE_INDEXES of them,
 *   told apart by their index. A port without DC is reached by nothing else; one with DC
 *   may have lanes, too. Both queue pairs are in the protection domain of their port, so what
 *   krp_mrdir.h says of keys, leases and margins is the same on a lane.
 *   A lane of a port to itself needs no hand-shake, and none is defined.
 *
 * TRANSPORT
 *   One packet is one SEND of KRP_LANE_BYTES over UD, to krp_value.dct.ud_qpn of the receiver's
 *   record (KRP_SERVICE_NODE) with its ud_qkey, and by its address. All packets have the same
 *   length, so no answer is longer than what it answers. All numbers are little-endian, what a
 *   type does not use is zero. What krp_lane_check() refuses is counted and dropped, without an
 *   answer. Packets are lost, doubled and overtaken; nothing relies on them.
 *   A later version gets a queue pair of its own, which the record says.
 *
 * HAND-SHAKE
 *   REQUEST    -->   queue pair, first number of its packets, what it can
 *   ACCEPT     <--   the same of the other end; or CHALLENGE, or REFUSE
 *   Both ends bring their queue pairs to RTR and RTS at the same time: the accepter when it has
 *   sent ACCEPT, the requester when it has it. Each then says READY, again and again until
 *   HEARD has come. An end posts requests on the lane when its own queue pair is in RTS and
 *   the peer's READY has come: what is sent to a queue pair before RTR is dropped there, and
 *   costs the time-out of a retransmission.
 *   REQUEST is repeated, for a bounded time, until it is answered; one that comes again is
 *   answered by the same ACCEPT. So the first request leaves one round trip and the slower
 *   one of two changes of state after REQUEST.
 *   CHALLENGE says: come again with this cookie (see STATE FOR STRANGERS).
 *   CLOSE      -->   its sender has nothing outstanding on the lane and posts nothing any more
 *   CLOSED     <--   nor has the receiver: both reset their queue pairs
 *   CLOSE is repeated, for a bounded time, until CLOSED has come. The end that gets it posts
 *   nothing new, waits until what is outstanding has ended, and says CLOSED; each further CLOSE is
 *   answered likewise. If both say CLOSE, either is answered. READY for a lane that is not there is
 *   answered by CLOSE, CLOSE by CLOSED: so neither end believes in what the other has lost.
 *
 * NAMES
 *   A lane is named by its requester: GID, generation, and a number that a requester never
 *   uses again in its generation; of two REQUESTs for one index of the same two ports the later
 *   one has the larger number. The nonce is random and drawn for each number. All packets of a lane
 *   carry number and nonce; KRP_LANE_REQUESTER says which end has sent it.
 *   ACCEPT decides the MTU, which is not larger than that of REQUEST.
 *
 * BOTH AT ONCE
 *   If both ports REQUEST the same index, the REQUEST of the one with the smaller GID
 *   (as 16 bytes, the first one is the most significant) counts. Its sender drops the other
 *   one's. The other end gives its own up, and answers with the queue pair that it had in mind.
 *   Each ACCEPT says the largest number that its sender has given to any lane so far: all REQUESTs
 *   of it for this index up to that number are spent, whatever has become of them. One whose
 *   number is spent, or is not larger than the largest that was accepted for this index, is a
 *   late one: dropped.
 *
 * WHO IT IS FROM
 *   A UD packet says nothing of its sender that could be believed, and Q_Key and number of the
 *   queue pair stand in the table, where every node reads them.
 *   With a cluster key (krp_msg.h) each packet carries
 *     mac = HMAC-SHA256(key, KRP_LABEL_LANE || packet, its mac counting as zero)
 *   which covers both GIDs, both generations, index, number and nonce, so also the REQUEST that
 *   it belongs to, queue pair and first packet number. key_id names the key, as in HELLO. An
 *   end with keys drops what none of them proves; a packet proved by any of them is good; it
 *   answers with the key of what it answers, and may repeat REQUEST with its next key. One
 *   without keys drops what names one. The MAC is compared in constant time.
 *   A packet that is proved needs no look-up: REQUEST carries its sender's record.
 *   Without a key that record is a hint, as in OPEN (krp_message.h): the accepter finds the
 *   record of the GID in the table, and answers that one's queue pair; and each REQUEST has
 *   to carry a cookie. So whoever does not receive what is sent to a record makes no lane in
 *   its name. The nonce guards all further packets: it is not guessed.
 *   What comes again (a host that records packets):
 *     REQUEST: to another generation of the accepter: its peer_generation is wrong. To the same
 *     one: the number has been accepted; if the accepter has forgotten that, it wants a cookie
 *     that is younger than its forgetting.
 *     CHALLENGE: a cookie that is not younger than the last one is dropped.
 *     ACCEPT, REFUSE, READY, HEARD, CLOSE, CLOSED: each is true for the whole life of the
 *     lane of that number once it has been said, so it does nothing new.
 *   A packet that comes back to its sender has the wrong peer_gid.
 *
 * STATE FOR STRANGERS
 *   A cookie is a time of the accepter's clock, in ms, and a proof that it has computed from
 *   that time, the requester's GID and generation, and a secret of this generation, by a keyed
 *   function that nobody else can compute (SipHash is one). It is sent to the record, and nothing
 *   is stored. It is good for KRP_LANE_COOKIE_MS. An accepter wants one
 *     - always, if it has no cluster key,
 *     - from a port of whose numbers for this index it knows none, if it has ever forgotten
 *       any: younger than that,
 *     - when more lanes than it likes have been accepted whose requester has not said READY.
 *   So with a key the first contact of two nodes is one round trip, nearly always.
 *   A flood of REQUESTs that no key proves costs a computation each, of which an accepter
 *   bounds the rate, and no memory.
 *
 * GENERATIONS
 *   Each packet has the generations of both ends. A packet of an older generation of the peer is
 *   dropped. One of a newer generation, proved or found in the table, ends all lanes to the older
 *   one. One for another generation of the receiver is dropped, but REQUEST is refused
 *   (KRP_LANE_STALE): its sender READs the record again.
 *
 * QUEUE PAIRS
 *   One that is given up goes to ERR, is drained, and then goes to RESET. Its number is not used
 *   for another lane before KRP_LANE_REST_MS are over, and first packet numbers are random in
 *   each lane: packets of an old connection that are still under way are no packets of the new
 *   one.
 *
 * Note: Source - cookies that are asked for only under load after IKEv2 (RFC 7296, section 2.6);
 * the rest of numbers of queue pairs after TimeWait of the InfiniBand communication manager;
 * challenge and echo after SCTP (RFC 9260, section 5.1).
 */
#ifndef KRP_LANE_H
#define KRP_LANE_H

#include "krp_msg.h"

#define KRP_LANE_MAGIC 0x4c4bU /* "KL" */
#define KRP_LANE_VERSION 1
#define KRP_LANE_BYTES 200
#define KRP_LANE_INDEXES 4 /* lanes of two ports */
#define KRP_LANE_COOKIE_MS 10000U
#define KRP_LANE_REST_MS 1000U
#define KRP_LABEL_LANE "krcore lane v1"

/* krp_lane_packet.type */
#define KRP_LANE_REQUEST 1
#define KRP_LANE_CHALLENGE 2
#define KRP_LANE_ACCEPT 3
#define KRP_LANE_REFUSE 4
#define KRP_LANE_READY 5
#define KRP_LANE_HEARD 6
#define KRP_LANE_CLOSE 7
#define KRP_LANE_CLOSED 8
#define KRP_LANE_TYPES 9

/* krp_lane_packet.flags */
#define KRP_LANE_REQUESTER 0x01U /* the sender has requested the lane; not in 2 to 4, always in 1 */

/* krp_lane_packet.status of REFUSE */
#define KRP_LANE_STALE 1 /* REQUEST is for another generation of the node */
#define KRP_LANE_BUSY 2 /* no room for one more, and none is idle; later there may be */
#define KRP_LANE_INDEX 3 /* two ports have not so many lanes here */
#define KRP_LANE_SHUT 4 /* the port goes down */
#define KRP_LANE_CODES 5

/**
 * struct krp_lane_packet - What two ports say of a lane.
 * @magic: KRP_LANE_MAGIC.
 * @version: KRP_LANE_VERSION.
 * @type: KRP_LANE_REQUEST and so on.
 * @flags: KRP_LANE_REQUESTER.
 * @index: which lane of the two ports, below KRP_LANE_INDEXES.
 * @mtu: path MTU as enum ib_mtu, 1 (256) to 5 (4096): in REQUEST the largest that the sender
 *	can, in ACCEPT that of the lane; else 0.
 * @max_rd_atomic: REQUEST, ACCEPT: READs and atomics that the sender takes at once on this
 *	lane, 1 to 255; else 0.
 * @lane: number of the lane, not zero; see NAMES.
 * @nonce: random, not zero.
 * @generation: of the sender, not zero.
 * @peer_generation: of the receiver, not zero.
 * @gid: of the sender.
 * @peer_gid: of the receiver; another one.
 * @qpn: REQUEST, ACCEPT: the sender's queue pair, 2 to 0xfffffe; else 0.
 * @psn: REQUEST, ACCEPT: number of the first packet that it sends, 24 bits; else 0.
 * @spent: ACCEPT: largest number that its sender has given, 0: none; else 0. See BOTH AT ONCE.
 * @stamp: REQUEST, CHALLENGE: when the cookie was made, not zero; 0 in REQUEST without one and
 *	else.
 * @proof: REQUEST, CHALLENGE: the rest of the cookie; 0 if @stamp is, and only then.
 * @value: REQUEST: record of the sender; else zero.
 * @status: REFUSE: KRP_LANE_STALE and so on; else 0.
 * @key_id: id of the key that @mac is made with; zero: there is no key.
 * @mac: see WHO IT IS FROM; zero if @key_id is.
 */
struct krp_lane_packet {
	__le16 magic;
	__u8 version;
	__u8 type;
	__u8 flags;
	__u8 index;
	__u8 mtu;
	__u8 max_rd_atomic;
	__le64 lane;
	__le64 nonce;
	__le64 generation;
	__le64 peer_generation;
	__u8 gid[KRP_GID_BYTES];
	__u8 peer_gid[KRP_GID_BYTES];
	__le32 qpn;
	__le32 psn;
	__le64 spent;
	__le64 stamp;
	__le64 proof;
	struct krp_value value;
	__le32 status;
	__u8 key_id[KRP_KEY_ID_BYTES];
	__u8 mac[KRP_MAC_BYTES];
};

KRP_STATIC_ASSERT(sizeof(struct krp_lane_packet) == KRP_LANE_BYTES, "krp_lane_packet");
KRP_STATIC_ASSERT(offsetof(struct krp_lane_packet, lane) == 8, "krp_lane_packet.lane");
KRP_STATIC_ASSERT(offsetof(struct krp_lane_packet, gid) == 40, "krp_lane_packet.gid");
KRP_STATIC_ASSERT(offsetof(struct krp_lane_packet, qpn) == 72, "krp_lane_packet.qpn");
KRP_STATIC_ASSERT(offsetof(struct krp_lane_packet, value) == 104, "krp_lane_packet.value");
KRP_STATIC_ASSERT(offsetof(struct krp_lane_packet, mac) == 168, "krp_lane_packet.mac");

/**
 * enum krp_lane_field - Which field of a packet is wrong.
 * @KRP_LANE_OK: none.
 * @KRP_LANE_BAD_BYTES: its length.
 * @KRP_LANE_BAD_MAGIC: magic.
 * @KRP_LANE_BAD_VERSION: version.
 * @KRP_LANE_BAD_TYPE: type.
 * @KRP_LANE_BAD_FLAGS: one that does not belong to the type, or is missing there.
 * @KRP_LANE_BAD_INDEX: index.
 * @KRP_LANE_BAD_MTU: mtu.
 * @KRP_LANE_BAD_RD_ATOMIC: max_rd_atomic.
 * @KRP_LANE_BAD_LANE: lane.
 * @KRP_LANE_BAD_NONCE: nonce.
 * @KRP_LANE_BAD_GENERATION: a generation.
 * @KRP_LANE_BAD_GID: a GID, or both are the same.
 * @KRP_LANE_BAD_QPN: qpn.
 * @KRP_LANE_BAD_PSN: psn.
 * @KRP_LANE_BAD_SPENT: spent.
 * @KRP_LANE_BAD_COOKIE: stamp or proof.
 * @KRP_LANE_BAD_VALUE: the record in REQUEST, or there is one elsewhere.
 * @KRP_LANE_BAD_STATUS: status.
 * @KRP_LANE_BAD_MAC: there is one without a key id.
 * @KRP_LANE_FIELDS: how many there are.
 */
enum krp_lane_field {
	KRP_LANE_OK,
	KRP_LANE_BAD_BYTES,
	KRP_LANE_BAD_MAGIC,
	KRP_LANE_BAD_VERSION,
	KRP_LANE_BAD_TYPE,
	KRP_LANE_BAD_FLAGS,
	KRP_LANE_BAD_INDEX,
	KRP_LANE_BAD_MTU,
	KRP_LANE_BAD_RD_ATOMIC,
	KRP_LANE_BAD_LANE,
	KRP_LANE_BAD_NONCE,
	KRP_LANE_BAD_GENERATION,
	KRP_LANE_BAD_GID,
	KRP_LANE_BAD_QPN,
	KRP_LANE_BAD_PSN,
	KRP_LANE_BAD_SPENT,
	KRP_LANE_BAD_COOKIE,
	KRP_LANE_BAD_VALUE,
	KRP_LANE_BAD_STATUS,
	KRP_LANE_BAD_MAC,
	KRP_LANE_FIELDS,
};

/**
 * krp_lane_field_name() - Name of a field, human-readable.
 * @field: enum krp_lane_field.
 *
 * Context: any.
 * Return: constant text.
 */
static inline const char *krp_lane_field_name(unsigned int field)
{
	static const char *const names[KRP_LANE_FIELDS] = {
		"none", "bytes",	 "magic",  "version", "type",	    "flags", "index",
		"mtu",	"max_rd_atomic", "lane",   "nonce",   "generation", "gid",   "qpn",
		"psn",	"spent",	 "cookie", "value",   "status",	    "mac",
	};

	return field < KRP_LANE_FIELDS ? names[field] : "unknown";
}

/**
 * krp_lane_name() - Name of a type, human-readable.
 * @type: KRP_LANE_REQUEST and so on.
 *
 * Context: any.
 * Return: constant text; "unknown" for a type there is not.
 */
static inline const char *krp_lane_name(unsigned int type)
{
	static const char *const names[KRP_LANE_TYPES] = {
		"unknown", "REQUEST", "CHALLENGE", "ACCEPT", "REFUSE",
		"READY",   "HEARD",   "CLOSE",	   "CLOSED",
	};

	return type < KRP_LANE_TYPES ? names[type] : names[0];
}

/**
 * krp_lane_errno() - Negative errno for the status of a REFUSE.
 * @status: KRP_LANE_STALE and so on.
 *
 * Context: any.
 * Return: %-ESTALE, %-EBUSY, %-ENOSPC, %-ESHUTDOWN; %-EPROTO for a status there is not.
 */
static inline int krp_lane_errno(unsigned int status)
{
	static const short codes[KRP_LANE_CODES] = { -EPROTO, -ESTALE, -EBUSY, -ENOSPC,
						     -ESHUTDOWN };

	return status < KRP_LANE_CODES ? codes[status] : -EPROTO;
}

/** krp_lane_offers() - Whether packets of a type say what a queue pair is like. @type: it.
 * Context: any. Return: 1 or 0.
 */
static inline int krp_lane_offers(unsigned int type)
{
	return type == KRP_LANE_REQUEST || type == KRP_LANE_ACCEPT;
}

/** krp_lane_flags_valid() - Whether a type may have these flags. @type: it. @flags: them.
 * Context: any. Return: 1 or 0.
 */
static inline int krp_lane_flags_valid(unsigned int type, unsigned int flags)
{
	if (type == KRP_LANE_REQUEST)
		return flags == KRP_LANE_REQUESTER;
	if (type <= KRP_LANE_REFUSE)
		return !flags;
	return !(flags & ~KRP_LANE_REQUESTER);
}

/** krp_lane_check_head() - Check the first fields, as far as the GIDs. @p: packet, whose magic and
 * version are right. Context: any. Return: enum krp_lane_field.
 */
static inline enum krp_lane_field krp_lane_check_head(const struct krp_lane_packet *p)
{
	int offers = krp_lane_offers(p->type);

	if (!p->type || p->type >= KRP_LANE_TYPES)
		return KRP_LANE_BAD_TYPE;
	if (!krp_lane_flags_valid(p->type, p->flags))
		return KRP_LANE_BAD_FLAGS;
	if (p->index >= KRP_LANE_INDEXES)
		return KRP_LANE_BAD_INDEX;
	if (offers ? p->mtu < 1 || p->mtu > 5 : p->mtu)
		return KRP_LANE_BAD_MTU;
	if (offers != !!p->max_rd_atomic)
		return KRP_LANE_BAD_RD_ATOMIC;
	if (!p->lane)
		return KRP_LANE_BAD_LANE;
	if (!p->nonce)
		return KRP_LANE_BAD_NONCE;
	if (!p->generation || !p->peer_generation)
		return KRP_LANE_BAD_GENERATION;
	if (krp_is_zero(p->gid, sizeof(p->gid)) || krp_is_zero(p->peer_gid, sizeof(p->peer_gid)) ||
	    !memcmp(p->gid, p->peer_gid, sizeof(p->gid)))
		return KRP_LANE_BAD_GID;
	return KRP_LANE_OK;
}

/** krp_lane_check_offer() - Check qpn, psn and spent. @p: packet, whose type is known.
 * Context: any. Return: enum krp_lane_field.
 */
static inline enum krp_lane_field krp_lane_check_offer(const struct krp_lane_packet *p)
{
	__u32 qpn = krp_le32_to_cpu(p->qpn), psn = krp_le32_to_cpu(p->psn);
	int offers = krp_lane_offers(p->type);

	if (offers ? qpn < 2 || qpn > 0xfffffe : qpn)
		return KRP_LANE_BAD_QPN;
	if (offers ? psn >> 24 : psn)
		return KRP_LANE_BAD_PSN;
	if (p->spent && p->type != KRP_LANE_ACCEPT)
		return KRP_LANE_BAD_SPENT;
	return KRP_LANE_OK;
}

/** krp_lane_check_cookie() - Check stamp and proof. @p: packet, whose type is known.
 * Context: any. Return: enum krp_lane_field.
 */
static inline enum krp_lane_field krp_lane_check_cookie(const struct krp_lane_packet *p)
{
	int there = !!p->stamp;

	if (there != !!p->proof || (p->type == KRP_LANE_CHALLENGE && !there) ||
	    (p->type > KRP_LANE_CHALLENGE && there))
		return KRP_LANE_BAD_COOKIE;
	return KRP_LANE_OK;
}

/** krp_lane_check_value() - Check the record. @p: packet, whose type is known. Context: any.
 * Return: enum krp_lane_field.
 */
static inline enum krp_lane_field krp_lane_check_value(const struct krp_lane_packet *p)
{
	const struct krp_value *v = &p->value;
	int ok;

	if (p->type != KRP_LANE_REQUEST)
		ok = krp_is_zero(v, sizeof(*v));
	else
		ok = krp_value_valid(v) && krp_kind_port(v->kind) && v->dct.ud_qpn &&
		     v->generation == p->generation;
	return ok ? KRP_LANE_OK : KRP_LANE_BAD_VALUE;
}

/**
 * krp_lane_check() - Which field of a packet is wrong.
 * @packet: bytes as received, 8-byte aligned; never trusted.
 * @bytes: how many.
 *
 * It says nothing of the MAC, nor of whom the packet is for.
 *
 * Context: any.
 * Return: the first one in the order of the structure, or KRP_LANE_OK.
 */
static inline enum krp_lane_field krp_lane_check(const void *packet, __u32 bytes)
{
	const struct krp_lane_packet *p = (const struct krp_lane_packet *)packet;
	__u32 status;
	enum krp_lane_field field;

	if (bytes != sizeof(*p))
		return KRP_LANE_BAD_BYTES;
	if (krp_le16_to_cpu(p->magic) != KRP_LANE_MAGIC)
		return KRP_LANE_BAD_MAGIC;
	if (p->version != KRP_LANE_VERSION)
		return KRP_LANE_BAD_VERSION;
	field = krp_lane_check_head(p);
	field = field ? field : krp_lane_check_offer(p);
	field = field ? field : krp_lane_check_cookie(p);
	field = field ? field : krp_lane_check_value(p);
	if (field)
		return field;
	status = krp_le32_to_cpu(p->status);
	if (p->type == KRP_LANE_REFUSE ? !status || status >= KRP_LANE_CODES : status)
		return KRP_LANE_BAD_STATUS;
	if (krp_is_zero(p->key_id, sizeof(p->key_id)) && !krp_is_zero(p->mac, sizeof(p->mac)))
		return KRP_LANE_BAD_MAC;
	return KRP_LANE_OK;
}

#endif /* KRP_LANE_H */
