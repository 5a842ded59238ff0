// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: that messages go to no peer that has not answered lately.
 *
 * The hardware serves the targets of a channel one at a time, so a SEND to a peer that does not
 * answer stalls the messages of all others on its channel until the retries run out, and a stream
 * would repeat that for as long as it waits for its peer. So a peer is asked first, as for READs
 * and WRITEs of programs: by a READ of its directory, on a channel set apart (pool/silence.h).
 * Meanwhile a few packets wait, and others are lost, which the machine mends. What arrives in
 * either direction spares the question.
 * Locking: krc_stream.lock.
 */
#include <linux/lockdep.h>

#include "krp_mrdir.h"
#include "message/message_priv.h"
#include "pool/silence.h"

/* The question is answered, or can't be asked: the work item goes on. */
static void krc_proof_over(struct krc_stream *st)
{
	set_bit(KRC_STREAM_PROOF, &st->run.flags);
	krc_stream_kick(st);
	krc_stream_put(st);
}

/* krc_read.done: what was READ does not matter, the standing is what counts. */
static bool krc_proof_done(struct krc_read *read, int err, const void *bytes)
{
	krc_proof_over(container_of(read, struct krc_stream, proof.read));
	return false;
}

static void krc_proof_begin(struct krc_stream *st, const void *payer)
{
	struct krc_messages *m = st->m;
	int err = -ENODEV;
	u32 index;

	st->proof.read = (struct krc_read){
		.standing = st->proof.standing,
		.payer = payer,
		.remote_addr = st->proof.standing->key.mrdir_addr,
		.rkey = st->proof.standing->key.mrdir_rkey,
		.bytes = KRP_MRDIR_ENTRY_BYTES,
		.done = krc_proof_done,
	};
	krc_stream_get(st);
	if (krc_rail_enter(m->rail)) {
		err = krc_pool_read(m->pool, &st->proof.read, &index);
		krc_rail_exit(m->rail);
	}
	if (err)
		krc_proof_over(st);
}

/* Whether packets may wait: not for a peer that is silent, nor if others need them. */
static bool krc_proof_holds(const struct krc_stream *st)
{
	return READ_ONCE(st->proof.standing->state) != KRC_STANDING_SILENT &&
	       krc_packets_free(st->m->tx) > KRC_MESSAGES_TX / 2;
}

bool krc_proof_passes(struct krc_stream *st, struct list_head *packets)
{
	const void *payer;
	bool begin;

	spin_lock_bh(&st->lock);
	if (!st->proof.under_way && krc_standing_now(st->proof.standing) == KRC_STANDING_PROVEN) {
		spin_unlock_bh(&st->lock);
		return true;
	}
	if (krc_proof_holds(st))
		list_splice_tail_init(packets, &st->proof.unproven);
	else
		st->proof.lost = true;
	begin = !st->proof.under_way;
	st->proof.under_way = true;
	payer = st->share->payer;
	spin_unlock_bh(&st->lock);
	krc_stream_lose(st, packets);
	if (begin)
		krc_proof_begin(st, payer);
	return false;
}

void krc_proof_settle(struct krc_stream *st)
{
	LIST_HEAD(packets);
	bool proven;

	spin_lock_bh(&st->lock);
	proven = krc_standing_now(st->proof.standing) == KRC_STANDING_PROVEN;
	list_splice_init(&st->proof.unproven, proven ? &st->out.packets : &packets);
	if (proven && st->proof.lost)
		krp_stream_replay(&st->s);
	if (proven)
		st->proof.lost = false;
	st->proof.under_way = false;
	spin_unlock_bh(&st->lock);
	if (!proven)
		set_bit(KRC_STREAM_DOUBT, &st->run.flags);
	krc_stream_lose(st, &packets);
}

void krc_standing_outcome(struct krc_standing *standing, const struct krc_req *req)
{
	switch (req->fault) {
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		krc_standing_suspect(standing);
		break;
	case KRC_FAULT_NONE:
		if (req->status)
			break;
		fallthrough;
	case KRC_FAULT_BUSY: /* an answer, too */
		krc_standing_answered(standing);
		break;
	case KRC_FAULT_ACCESS:
		krc_standing_refused(standing);
		break;
	default:
		break;
	}
}

void krc_proof_heard(struct krc_stream *st)
{
	/* that it is heard does not say that it hears: one that is silent is asked all the same */
	if (READ_ONCE(st->proof.standing->state) == KRC_STANDING_PROVEN)
		krc_standing_answered(st->proof.standing);
}
