/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What a node does with messages that belong to no connection: OPEN, and what is for a queue
 * that is not there. Normative; WHO IT IS FROM in krp_message.h is why.
 *
 * ORDER
 *   An OPEN that a connection was made of is that connection's, and nothing else is asked.
 *   Any other one costs the receiver, in this order, and each step only if the one before let
 *   it pass:
 *     The look-up of its GID, if the record is not cached or differs. A node bounds how many of
 *     these are under way, one a GID, and drops OPENs beyond; it keeps some for GIDs that it
 *     knows, and does not look up again for a while what it has just looked up, whatever that
 *     said: struct krp_listen_lookups.
 *     A packet to the record's target: REFUSE, if the OPEN is for another generation, or
 *     CHALLENGE, if the pass is wrong. Both are shorter than the OPEN, so nobody makes a node
 *     flood another one.
 *     A packet: REFUSE, if it is known and over, if there is no such service, or if as many OPENs
 *     wait for the program, or the user has as much in its backlog, as may. No node gets
 *     the whole backlog of a service (krp_listen_room()).
 *     A machine (krp_stream_offer()), memory for one message, and what it takes to know the OPEN
 *     again when the connection is over (KRP_STREAM_FORGET): that is set aside now, and without it
 *     there is no room, since nothing may be forgotten early.
 */
#ifndef KRP_LISTEN_H
#define KRP_LISTEN_H

#include "krp_stream.h"

#define KRP_LISTEN_FRESH_MS 100 /* a record is not READ again for an OPEN that comes so soon */
#define KRP_LISTEN_ABSENT_MS 1000 /* nor is one that was not there */
#define KRP_LISTEN_MEMORY 64 /* GIDs that a lookups remembers */
#define KRP_LISTEN_KNOWN 4 /* one of so many look-ups is for GIDs that are known */

/**
 * enum krp_listen_verdict - What becomes of an OPEN.
 * @KRP_LISTEN_DROP: nothing; it is counted.
 * @KRP_LISTEN_LOOK_UP: READ the record of open.gid from the table, then judge again.
 * @KRP_LISTEN_CHALLENGE: send krp_listen_challenge() to the record's target.
 * @KRP_LISTEN_REFUSE: send krp_listen_refuse() there.
 * @KRP_LISTEN_OFFER: make a machine of it, krp_stream_offer().
 */
enum krp_listen_verdict {
	KRP_LISTEN_DROP,
	KRP_LISTEN_LOOK_UP,
	KRP_LISTEN_CHALLENGE,
	KRP_LISTEN_REFUSE,
	KRP_LISTEN_OFFER,
};

/**
 * struct krp_listen_facts - What a node knows when an OPEN has come.
 * @record: of open.gid with KRP_SERVICE_NODE; NULL: not cached, or there is none.
 * @pass: what open.pass must be, not zero.
 * @generation: of this node.
 * @status: what is said of @buried, todo.number of KRP_STREAM_FORGET; 0: KRP_REFUSE_ABORT.
 * @fresh: @record was READ after the OPEN had come, or krp_listen_fresh() says so; with NULL:
 *	there is none.
 * @buried: it was a connection, which has ended (KRP_STREAM_FORGET).
 * @service: a program listens there.
 * @room: krp_listen_room(), and its user has memory left.
 */
struct krp_listen_facts {
	const struct krp_value *record;
	__u64 pass;
	__u64 generation;
	__u32 status;
	__u8 fresh;
	__u8 buried;
	__u8 service;
	__u8 room;
};

/**
 * krp_listen_same() - Whether a connection was made of an OPEN.
 * @s: connection.
 * @m: OPEN, checked.
 *
 * Then krp_stream_again() is all that there is to do.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_listen_same(const struct krp_stream *s, const struct krp_message *m)
{
	const struct krp_message_open *open =
		(const struct krp_message_open *)(const void *)(m + 1);

	return s->state >= KRP_STREAM_OFFERED && !s->opener && s->open.tag == open->tag &&
	       s->dst == krp_le32_to_cpu(m->src) &&
	       !memcmp(s->open.gid, open->gid, sizeof(open->gid));
}

/**
 * krp_listen_judge() - What becomes of an OPEN that is no known connection's.
 * @m: OPEN, checked.
 * @facts: what the node knows.
 * @ret_status: set with KRP_LISTEN_REFUSE: why.
 *
 * Context: any.
 * Return: enum krp_listen_verdict.
 */
static inline enum krp_listen_verdict krp_listen_judge(const struct krp_message *m,
						       const struct krp_listen_facts *facts,
						       __u32 *ret_status)
{
	const struct krp_message_open *open =
		(const struct krp_message_open *)(const void *)(m + 1);
	const struct krp_value *record = facts->record;

	if (!record || !krp_kind_port(record->kind) || record->kind != open->value.kind ||
	    record->generation != open->value.generation ||
	    record->dct.dctn != open->value.dct.dctn ||
	    record->dct.dc_key != open->value.dct.dc_key ||
	    record->dct.ud_qpn != open->value.dct.ud_qpn)
		return facts->fresh ? KRP_LISTEN_DROP : KRP_LISTEN_LOOK_UP;
	if (krp_le64_to_cpu(open->peer_generation) != facts->generation &&
	    !KRP_MUTANT("open for another generation")) {
		*ret_status = KRP_REFUSE_STALE;
		return KRP_LISTEN_REFUSE;
	}
	if (krp_le64_to_cpu(open->pass) != facts->pass)
		return KRP_LISTEN_CHALLENGE;
	if (facts->buried && !KRP_MUTANT("forget at once"))
		*ret_status = facts->status ? facts->status : KRP_REFUSE_ABORT;
	else if (!facts->service)
		*ret_status = KRP_REFUSE_SERVICE;
	else if (!facts->room)
		*ret_status = KRP_REFUSE_BACKLOG;
	else
		return KRP_LISTEN_OFFER;
	return KRP_LISTEN_REFUSE;
}

/**
 * krp_listen_room() - Whether a backlog has room for one more OPEN of a node.
 * @backlog: how many may wait for the program.
 * @waiting: how many do.
 * @of_node: of them, those of that node.
 *
 * A node gets as many places as it leaves free, so that a few of them cannot fill it.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_listen_room(__u32 backlog, __u32 waiting, __u32 of_node)
{
	return waiting < backlog && of_node < backlog - waiting;
}

/**
 * struct krp_listen_look - A GID that is looked up, or was.
 * @gid: it.
 * @until_ns: what is known of it is fresh until then.
 * @busy: it is being looked up.
 * @known: its record was cached.
 */
struct krp_listen_look {
	__u8 gid[KRP_GID_BYTES];
	__u64 until_ns;
	__u8 busy;
	__u8 known;
};

/**
 * struct krp_listen_lookups - The look-ups for OPENs, and their memory; zero but for seed and max.
 * @seed: random, so that nobody chooses GIDs that put each other out.
 * @max: how many may be under way, below KRP_LISTEN_MEMORY.
 * @busy: how many are.
 * @strange: of them, those for GIDs without a cached record.
 * @look: by GID.
 */
struct krp_listen_lookups {
	__u64 seed;
	__u32 max;
	__u32 busy;
	__u32 strange;
	struct krp_listen_look look[KRP_LISTEN_MEMORY];
};

/** krp_listen_look_of() - Where a lookups has a GID, or would. @lookups: it. @gid: GID. Context: any.
 * Return: the place.
 */
static inline struct krp_listen_look *krp_listen_look_of(struct krp_listen_lookups *lookups,
							 const __u8 *gid)
{
	return &lookups->look[krp_xxh64(gid, KRP_GID_BYTES, lookups->seed) % KRP_LISTEN_MEMORY];
}

/**
 * krp_listen_fresh() - Whether a GID was looked up just now, so that krp_listen_facts.fresh holds.
 * @lookups: look-ups.
 * @now_ns: the clock.
 * @gid: GID.
 *
 * Context: any.
 * Return: 1 or 0.
 */
static inline int krp_listen_fresh(struct krp_listen_lookups *lookups, __u64 now_ns,
				   const __u8 *gid)
{
	const struct krp_listen_look *look = krp_listen_look_of(lookups, gid);

	return !look->busy && now_ns < look->until_ns && !memcmp(look->gid, gid, KRP_GID_BYTES) &&
	       !KRP_MUTANT("look up again");
}

/**
 * krp_listen_look_begin() - Whether a GID may be looked up now.
 * @lookups: look-ups.
 * @gid: GID.
 * @known: its record is cached, and differs.
 *
 * Context: any.
 * Return: 1: do, and say krp_listen_look_end(); 0: drop the OPEN, which comes again: the GID is
 * looked up already, or as many are as may.
 */
static inline int krp_listen_look_begin(struct krp_listen_lookups *lookups, const __u8 *gid,
					int known)
{
	struct krp_listen_look *look = krp_listen_look_of(lookups, gid);
	__u32 strangers = lookups->max - lookups->max / KRP_LISTEN_KNOWN;

	if ((look->busy && !KRP_MUTANT("look up again")) || lookups->busy >= lookups->max ||
	    (!known && lookups->strange >= strangers))
		return 0;
	memcpy(look->gid, gid, KRP_GID_BYTES);
	look->busy = 1;
	look->known = !!known;
	lookups->busy++;
	lookups->strange += !known;
	return 1;
}

/**
 * krp_listen_look_end() - A GID has been looked up.
 * @lookups: look-ups.
 * @now_ns: the clock, from before the look-up began.
 * @gid: GID.
 * @err: 0: there is a record; %-ENOENT: there is none; else it is not known.
 *
 * Context: any.
 */
static inline void krp_listen_look_end(struct krp_listen_lookups *lookups, __u64 now_ns,
				       const __u8 *gid, int err)
{
	struct krp_listen_look *look = krp_listen_look_of(lookups, gid);
	__u64 ms = err ? KRP_LISTEN_ABSENT_MS : KRP_LISTEN_FRESH_MS;

	look->busy = 0;
	lookups->busy--;
	lookups->strange -= !look->known;
	look->until_ns = err && err != -ENOENT ? 0 : now_ns + ms * KRP_STREAM_NS_PER_MS;
}

/** krp_listen_answer() - Begin an answer that no connection gives. @m: what came. @type: of the
 * answer. @generation: of this node. @ret: filled. Context: any.
 */
static inline void krp_listen_answer(const struct krp_message *m, unsigned int type,
				     __u64 generation, struct krp_message *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->magic = krp_cpu_to_le16(KRP_MESSAGE_MAGIC);
	ret->version = KRP_MESSAGE_VERSION;
	ret->type = (__u8)type;
	ret->tag = m->tag;
	ret->src = m->dst;
	ret->dst = m->src;
	ret->generation = krp_cpu_to_le64(generation);
}

/**
 * krp_listen_challenge() - Make CHALLENGE.
 * @m: OPEN.
 * @pass: for its sender.
 * @generation: of this node.
 * @ret: filled.
 * @ret_body: filled.
 *
 * Context: any.
 */
static inline void krp_listen_challenge(const struct krp_message *m, __u64 pass, __u64 generation,
					struct krp_message *ret,
					struct krp_message_challenge *ret_body)
{
	const struct krp_message_open *open =
		(const struct krp_message_open *)(const void *)(m + 1);

	krp_listen_answer(m, KRP_MESSAGE_CHALLENGE, generation, ret);
	ret->tag = open->tag;
	ret_body->pass = krp_cpu_to_le64(pass);
}

/**
 * krp_listen_refuse() - Make REFUSE for an OPEN.
 * @m: OPEN.
 * @status: KRP_REFUSE_*.
 * @generation: of this node.
 * @ret: filled.
 *
 * Context: any.
 */
static inline void krp_listen_refuse(const struct krp_message *m, __u32 status, __u64 generation,
				     struct krp_message *ret)
{
	const struct krp_message_open *open =
		(const struct krp_message_open *)(const void *)(m + 1);

	krp_listen_answer(m, KRP_MESSAGE_REFUSE, generation, ret);
	ret->tag = open->tag;
	ret->imm = krp_cpu_to_le32(status);
}

/**
 * krp_listen_unknown() - Make REFUSE for a message to a queue that is not there.
 * @m: message, checked.
 * @generation: of this node.
 * @ret: filled.
 *
 * It goes to the record of the node that the queue was connected to. Whoever cannot tell any
 * more which one that was, since it has restarted, sends nothing: the peer learns of the new
 * generation from the table.
 *
 * Context: any.
 * Return: 1; 0: no answer is due. REFUSE and CHALLENGE are not answered, or two nodes that have
 * both forgotten would never come to an end.
 */
static inline int krp_listen_unknown(const struct krp_message *m, __u64 generation,
				     struct krp_message *ret)
{
	if (m->type == KRP_MESSAGE_OPEN || m->type == KRP_MESSAGE_REFUSE ||
	    m->type == KRP_MESSAGE_CHALLENGE)
		return 0;
	krp_listen_answer(m, KRP_MESSAGE_REFUSE, generation, ret);
	ret->flags = KRP_MESSAGE_ECHO;
	ret->imm = krp_cpu_to_le32(KRP_REFUSE_UNKNOWN);
	return 1;
}

#endif /* KRP_LISTEN_H */
