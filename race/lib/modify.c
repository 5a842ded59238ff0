// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Insert, update, delete.
 *
 * What becomes of an operation is decided by one CAS, of a slot to the word of a block that only
 * this operation has. If its outcome is unknown, the slot and the block tell it (layout.h). Only a
 * deletion on a full node has no block: see kr_remove().
 */
#include <errno.h>
#include <string.h>

#include "race/lib/client.h"

#define KR_MODIFY_TRIES 10000
#define KR_COMMIT_TRIES 8
#define KR_OWN_TRIES 8 /* times that another takes us for dead while we look for memory */
#define KR_FAILED_TRIES 8 /* batches that fail though the READs between them do not */

/* what became of a step */
enum kr_outcome {
	KR_DONE = 1,
	KR_NOT_DONE = 0,
};

/**
 * struct kr_op_state - An operation under way.
 * @c: client.
 * @mode: what it wants.
 * @key: key.
 * @key_bytes: its length.
 * @bytes: of the block.
 * @class: of the block.
 * @block: memory for it, @at is 0 if there is none yet.
 * @identity: of the block.
 * @p: where the key is.
 * @failed: batches that failed, as far as that may last.
 * @doubt: a slot may have the block, or not.
 */
struct kr_op_state {
	struct kr_client *c;
	enum kr_mode mode;
	const void *key;
	uint32_t key_bytes;
	uint32_t bytes;
	unsigned int class;
	struct kr_free_block block;
	uint64_t identity;
	struct kr_place p;
	unsigned int failed;
	bool doubt;
};

/* The slot word of our block. */
static uint64_t kr_own_slot(const struct kr_op_state *op, enum kr_state state)
{
	return kr_slot(state, op->class, kr_hash_fp(op->p.hash), (unsigned int)op->identity,
		       op->block.at);
}

static int kr_prepare(struct kr_op_state *op, const void *value, uint32_t value_bytes)
{
	struct kr_client *c = op->c;
	uint8_t *body;
	int err;

	op->bytes = (uint32_t)sizeof(struct kr_block) + op->key_bytes + value_bytes;
	op->class = kr_class_of(op->bytes);
	err = kr_room(c, &c->own, &c->own_bytes, op->bytes);
	if (err)
		return err;
	body = (uint8_t *)(c->own + 1);
	memcpy(body, op->key, op->key_bytes);
	if (value_bytes)
		memcpy(body + op->key_bytes, value, value_bytes);
	c->own->hash = krp_xxh64(op->key, op->key_bytes, c->header.seed);
	c->own->key_bytes = op->key_bytes;
	c->own->value_bytes = value_bytes;
	return 0;
}

/* Whether an operation has a block: not any more if another has taken us for dead meanwhile. */
static bool kr_has_block(const struct kr_op_state *op)
{
	return op->block.at && kr_identity_client(op->identity) == op->c->id;
}

/*
 * Memory for the block, and its identity, once an operation knows that it needs one. With each
 * attempt we prove to be alive, and afterwards, since taking memory may have lasted.
 */
static int kr_own_block(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	unsigned int tries;
	int err;

	err = kr_writer(c);
	for (tries = 0; !err && !kr_has_block(op); tries++) {
		if (tries == KR_OWN_TRIES)
			return -EBUSY;
		err = kr_alloc(c, op->class, &op->block);
		if (err)
			break;
		op->identity = kr_identity(c->id, ++c->count, op->block.tag + 1);
		c->own->life = kr_life(KR_NEW, op->identity);
		c->own->sum = kr_block_sum(c->own);
		err = kr_writer(c);
	}
	return err;
}

static void kr_req_own(const struct kr_op_state *op, struct kr_req *req)
{
	*req = (struct kr_req){
		.op = KR_WRITE,
		.length = op->bytes,
		.remote = op->block.at,
		.local = op->c->own,
	};
}

static void kr_req_cas(struct kr_req *req, uint64_t at, uint64_t *local, uint64_t old, uint64_t new)
{
	*req = (struct kr_req){
		.op = KR_CAS,
		.length = 8,
		.remote = at,
		.local = local,
		.compare = old,
		.swap = new,
	};
}

/*
 * Whether a slot got the word @mine of our block. Where the slot has another one, `life` tells: it is
 * ours, and not KR_NEW any more, if whoever has replaced us marked it. It is not ours at all if not
 * even the WRITE of the block was done, since of a batch in doubt nothing need have been. While we
 * live nobody else changes it; so that is proved afterwards.
 * Return: enum kr_outcome, or negative errno.
 */
static int kr_resolve(struct kr_op_state *op, uint64_t slot_at, uint64_t mine)
{
	struct kr_client *c = op->c;
	uint64_t *words = c->words + KR_AT_RESOLVE;
	int err;

	c->stats.unknown++;
	err = kr_read(c, slot_at, words, 8);
	if (err)
		return err;
	if ((words[0] & ~KR_FROZEN) == mine)
		return KR_DONE;
	if (kr_slot_state(mine) == KR_TENTATIVE)
		return KR_NOT_DONE; /* or taken back: it is the same */
	err = kr_read(c, op->block.at, words, 8);
	if (!err)
		err = kr_writer(c);
	if (err)
		return err;
	if (!kr_has_block(op))
		return -EREMCHG;
	return words[0] == kr_life(KR_COMMITTED, op->identity) ||
			       words[0] == kr_life(KR_FREED, op->identity)
		       ? KR_DONE
		       : KR_NOT_DONE;
}

/* Outcome of a CAS of a batch. Return: enum kr_outcome, or negative errno. */
static int kr_outcome(struct kr_op_state *op, const struct kr_req *cas)
{
	int got;

	if (!cas->status)
		return *(uint64_t *)cas->local == cas->compare ? KR_DONE : KR_NOT_DONE;
	if (cas->status == -ECANCELED)
		return KR_NOT_DONE;
	got = kr_resolve(op, cas->remote, cas->swap);
	op->doubt = got < 0;
	return op->doubt ? -EREMCHG : got;
}

/*
 * Whether an operation that was not done is worth another attempt after a batch failed. The READs of
 * the next one show whether the peer is there; but a network can lose what is large, and a card
 * refuse atomics, while READs pass. Return: 0: it is; or the failure.
 */
static int kr_failed(struct kr_op_state *op, int err)
{
	if (!kr_passing(err))
		return err;
	if (err == -ECANCELED || err == -EREMCHG || err == -EINTR)
		return 0;
	return ++op->failed > KR_FAILED_TRIES ? err : 0;
}

/* Empty slot @at if it still has the word @slot, and give its block back. */
static int kr_clear(struct kr_client *c, uint64_t at, uint64_t slot, uint64_t life)
{
	uint64_t was;
	int got;

	got = kr_cas(c, at, slot, 0, &was);
	if (got == 1 && life) /* not if another may have done it, and given the block back */
		kr_free(c, slot, life);
	return got < 0 ? got : 0;
}

/* Make a tomb's block KR_COMMITTED, then its slot empty. */
static int kr_clear_tomb(struct kr_client *c, uint64_t at, uint64_t slot)
{
	uint64_t life, was;
	int err;

	err = kr_read(c, kr_slot_at(slot), c->words, 8);
	if (err)
		return err;
	life = c->words[0];
	if ((life & KR_TAG_MASK) != kr_slot_tag(slot))
		return 0; /* it is gone already */
	if (life >> 62 == KR_NEW) {
		err = kr_cas(c, kr_slot_at(slot), life, kr_life(KR_COMMITTED, life), &was);
		if (err < 0)
			return err;
	}
	return kr_clear(c, at, slot, life);
}

/*
 * Our tomb is in place: empty its slot. Its block is free then, and also if the slot is frozen: a split
 * takes no tombs along, and nobody else gives it back. What fails is left to others.
 */
static void kr_bury(struct kr_op_state *op, uint64_t tomb)
{
	uint64_t was;
	int got = kr_cas(op->c, op->p.slot_at, tomb, 0, &was);

	if (got == 1 || (!got && was == (tomb | KR_FROZEN)))
		kr_free(op->c, tomb, kr_life(KR_COMMITTED, op->identity));
}

static void kr_req_mark(const struct kr_op_state *op, struct kr_req *req, uint64_t *local)
{
	kr_req_cas(req, kr_slot_at(op->p.slot), local, kr_life(KR_NEW, op->p.life),
		   kr_life(KR_COMMITTED, op->p.life));
}

/* Whether a mark has shown that the slot had been replaced before. */
static bool kr_mark_late(const struct kr_op_state *op, const struct kr_req *mark)
{
	uint64_t life = *(const uint64_t *)mark->local;

	return !mark->status && life != kr_life(KR_NEW, op->p.life) &&
	       life != kr_life(KR_COMMITTED, op->p.life);
}

/* An entry is removed: its block can be used again at once, and not with our next change. */
static void kr_removed(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	struct kr_req reqs[KR_FREES_MAX];
	unsigned int nr;

	c->stats.removed++;
	kr_free(c, op->p.slot, op->p.life);
	nr = kr_frees(c, reqs);
	if (nr)
		(void)c->t->ops->submit(c->t, reqs, nr); /* what fails is left to reclaim */
}

/*
 * Delete an entry when there is no memory for a tomb. A tomb would tell whose deletion it was, so
 * of an unknown outcome this finds out no more than that it was not done. Otherwise nobody knows
 * who is to free the block: that is left to reclaim, when the chunk's owner is dead.
 * Return: enum kr_outcome, -EREMCHG: it was done or not, or another negative errno.
 */
static int kr_remove(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	uint64_t *words = c->words + KR_AT_CHANGE;
	struct kr_req reqs[2];
	unsigned int nr = 0, cas;
	int err;

	if (!c->no_mark)
		kr_req_mark(op, &reqs[nr++], words);
	cas = nr;
	kr_req_cas(&reqs[nr++], op->p.slot_at, words + 1, op->p.slot, 0);
	err = c->t->ops->submit(c->t, reqs, nr);
	if (!reqs[cas].status && words[1] == op->p.slot) {
		kr_removed(op);
		return KR_DONE;
	}
	if (!reqs[cas].status || reqs[cas].status == -ECANCELED)
		return kr_failed(op, err);
	c->stats.unknown++;
	if (cas && kr_mark_late(op, &reqs[0]))
		return KR_NOT_DONE;
	if (kr_read(c, op->p.slot_at, words + 2, 8) || (words[2] & ~KR_FROZEN) != op->p.slot)
		return -EREMCHG;
	return KR_NOT_DONE;
}

/* Replace an entry by our block. Return: enum kr_outcome, or negative errno. */
static int kr_replace(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	uint64_t *words = c->words + KR_AT_CHANGE;
	struct kr_req reqs[3 + KR_FREES_MAX];
	unsigned int nr = 0, cas;
	int err, got;

	err = kr_own_block(op);
	if (err == -ENOSPC && c->id && op->mode == KR_DELETE)
		return kr_remove(op);
	if (err)
		return err;
	kr_req_own(op, &reqs[nr++]);
	if (!c->no_mark)
		kr_req_mark(op, &reqs[nr++], words);
	cas = nr;
	kr_req_cas(&reqs[nr++], op->p.slot_at, words + 1, op->p.slot,
		   kr_own_slot(op, op->mode == KR_DELETE ? KR_TOMB : KR_LIVE));
	nr += kr_frees(c, &reqs[nr]);
	err = c->t->ops->submit(c->t, reqs, nr);
	got = kr_outcome(op, &reqs[cas]);
	if (got != KR_DONE)
		return got < 0 ? got : kr_failed(op, err);
	kr_free(c, op->p.slot, op->p.life);
	if (op->mode == KR_DELETE)
		kr_bury(op, reqs[cas].swap);
	return KR_DONE;
}

/* The emptiest of both combined buckets has it. Return: offset of an empty slot, or 0. */
static uint64_t kr_empty_slot(const struct kr_client *c, const struct kr_place *p)
{
	unsigned int used[2] = { 0 }, i;
	uint64_t at, first[2] = { 0 };

	for (i = 0; i < KR_SLOTS; i++) {
		if (kr_bucket_slot(c, p, i, &at))
			used[i / 14]++;
		else if (at && !first[i / 14])
			first[i / 14] = at;
	}
	if (first[0] && (used[0] <= used[1] || !first[1]))
		return first[0];
	return first[1];
}

/* Make a slot empty that is in the way and no entry. Return: 1 if there was one, 0, or errno. */
static int kr_sweep(struct kr_client *c, const struct kr_place *p)
{
	uint64_t slot, at;
	unsigned int i;
	int err;

	for (i = 0; i < KR_SLOTS; i++) {
		slot = kr_bucket_slot(c, p, i, &at);
		if (!at || (kr_slot_state(slot) != KR_TENTATIVE && kr_slot_state(slot) != KR_TOMB))
			continue;
		if (kr_slot_state(slot) == KR_TOMB)
			err = kr_clear_tomb(c, at, slot);
		else
			err = kr_clear(c, at, slot, 0);
		return err ? err : 1;
	}
	return 0;
}

/*
 * Our tentative slot is in place, and both buckets were READ again: is another slot in our way?
 * Return: 0 no, 1 the key is there, or tentative slots had to be emptied that could not,
 * or negative errno.
 */
static int kr_rivals(struct kr_op_state *op, uint64_t mine_at, uint64_t mine)
{
	struct kr_client *c = op->c;
	uint64_t slot, at, was;
	bool held = false;
	unsigned int i;
	int got;

	got = kr_buckets_check(c, &op->p);
	if (got)
		return got;
	for (i = 0; i < KR_SLOTS; i++) {
		slot = kr_bucket_slot(c, &op->p, i, &at);
		if (at == mine_at)
			held = slot == mine;
		if (!at || at == mine_at || kr_slot_fp(slot) != kr_hash_fp(op->p.hash))
			continue;
		if (kr_slot_state(slot) == KR_LIVE) {
			got = kr_find_block(c, op->key, op->key_bytes, op->p.hash, slot);
			if (got != KR_OTHER)
				return got < 0 ? got : 1;
		}
		if (kr_slot_state(slot) != KR_TENTATIVE)
			continue;
		got = kr_cas(c, at, slot, 0, &was);
		if (got < 0)
			return got;
		if (!got && was) /* it has become an entry, or is frozen */
			return 1;
		c->stats.aborted++;
	}
	return held ? 0 : 1;
}

/* Put our tentative slot into @at, and READ the buckets again. Return: enum kr_outcome or errno. */
static int kr_announce(struct kr_op_state *op, uint64_t at)
{
	struct kr_client *c = op->c;
	struct kr_req reqs[4 + KR_FREES_MAX];
	unsigned int nr = 2;
	int err, got;

	kr_req_own(op, &reqs[0]);
	kr_req_cas(&reqs[1], at, c->words + KR_AT_CHANGE, 0, kr_own_slot(op, KR_TENTATIVE));
	if (!c->no_reread) {
		kr_buckets(c, &op->p, &reqs[2]);
		nr = 4;
	}
	nr += kr_frees(c, &reqs[nr]);
	err = c->t->ops->submit(c->t, reqs, nr);
	got = kr_outcome(op, &reqs[1]);
	if (got != KR_DONE)
		return got < 0 ? got : kr_failed(op, err);
	if (err && !c->no_reread) {
		kr_buckets(c, &op->p, &reqs[2]);
		err = kr_reads(c, &reqs[2], 2);
		if (err)
			return err;
	}
	return KR_DONE;
}

/* Take our tentative slot back, or see that it is gone. Return: 0 or negative errno. */
static int kr_retract(struct kr_op_state *op, uint64_t at)
{
	uint64_t was;
	int got = kr_cas(op->c, at, kr_own_slot(op, KR_TENTATIVE), 0, &was);

	return got < 0 ? got : 0;
}

/* Make our tentative slot an entry. Return: enum kr_outcome, or negative errno. */
static int kr_commit(struct kr_op_state *op, uint64_t at)
{
	struct kr_client *c = op->c;
	struct kr_req req;
	unsigned int attempt;
	int err, got;

	for (attempt = 0; attempt < KR_COMMIT_TRIES; attempt++) {
		got = kr_writer(c);
		if (got)
			return got;
		if (!kr_has_block(op))
			return kr_retract(op, at); /* another attempt takes a block of its own */
		kr_req_cas(&req, at, c->words + KR_AT_CHANGE, kr_own_slot(op, KR_TENTATIVE),
			   kr_own_slot(op, KR_LIVE));
		err = c->t->ops->submit(c->t, &req, 1);
		got = kr_outcome(op, &req);
		if (got || !err)
			return got;
		if (kr_failed(op, err))
			break;
		kr_pause(c, attempt);
	}
	return err;
}

/* Insert a key that was not there. Return: enum kr_outcome, or negative errno. */
static int kr_insert(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	uint64_t at = kr_empty_slot(c, &op->p);
	int got;

	if (!at) {
		got = kr_sweep(c, &op->p);
		if (!got)
			got = kr_split(c, &op->p);
		return got < 0 ? got : KR_NOT_DONE;
	}
	got = kr_own_block(op);
	if (got)
		return got;
	got = kr_announce(op, at);
	if (got != KR_DONE)
		return got;
	got = c->no_reread ? 0 : kr_rivals(op, at, kr_own_slot(op, KR_TENTATIVE));
	if (!got)
		return kr_commit(op, at);
	if (got > 0)
		got = kr_retract(op, at);
	return got < 0 ? got : KR_NOT_DONE;
}

/* One attempt. Return: enum kr_outcome, or negative errno. */
static int kr_attempt(struct kr_op_state *op)
{
	struct kr_client *c = op->c;
	int err;

	err = kr_find(c, op->key, op->key_bytes, &op->p);
	if (err)
		return err;
	if (op->p.slot_at && op->mode == KR_INSERT)
		return -EEXIST;
	if (!op->p.slot_at && (op->mode == KR_UPDATE || op->mode == KR_DELETE))
		return -ENOENT;
	if (op->p.frozen) {
		err = kr_split(c, &op->p);
		return err ? err : KR_NOT_DONE;
	}
	return op->p.slot_at ? kr_replace(op) : kr_insert(op);
}

int kr_modify(struct kr_client *c, enum kr_mode mode, const void *key, uint32_t key_bytes,
	      const void *value, uint32_t value_bytes)
{
	struct kr_op_state op = { .c = c, .mode = mode, .key = key, .key_bytes = key_bytes };
	unsigned int attempt;
	int got;

	got = kr_prepare(&op, value, value_bytes);
	if (got)
		return got;
	for (attempt = 0; attempt < KR_MODIFY_TRIES; attempt++) {
		got = kr_attempt(&op);
		if (got)
			break;
		kr_pause(c, attempt);
	}
	if (got == KR_DONE)
		return 0;
	/* no entry has the block: a tentative slot that still names it nobody makes one any more */
	if (kr_has_block(&op) && !op.doubt)
		(void)kr_release(c, op.class, &op.block);
	return got ? got : -EBUSY;
}
