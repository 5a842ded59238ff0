// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Split a subtable in two, under traffic, without a lock.
 *
 * Its slots are frozen one by one; from then on nothing in it changes, so any client can make
 * the two that follow it, and the first that puts its own into the trie has split it. So that not
 * all do it at once, a client says in the trie that it does; if nothing comes of it for
 * KR_SPLIT_PAUSES, another takes over.
 */
#include <errno.h>
#include <string.h>

#include "race/lib/client.h"

#define KR_SPLIT_PAUSES 24 /* pauses, which grow to KR_SPLIT_PAUSE_MAX_MS */
#define KR_SPLIT_PAUSE_MAX_MS 8
#define KR_FREEZE_ROUNDS 1000
#define KR_CLAIM_ROUNDS 1000
#define KR_OTHERS_ROUNDS 20 /* times KR_SPLIT_PAUSES that a client without memory waits */

/**
 * struct kr_splitting - A split under way.
 * @c: client.
 * @id: of it as a writer, when it took @pair.
 * @node: leaf.
 * @depth: its depth.
 * @table: its subtable.
 * @bytes: of a subtable.
 * @old: the subtable, in kr_client.work; behind it the two new ones, then heads of blocks.
 * @claim: our word of the trie.
 * @pair: memory for the new ones.
 * @keep: slots whose entry is damaged are taken along.
 */
struct kr_splitting {
	struct kr_client *c;
	uint32_t id;
	uint32_t node;
	uint32_t depth;
	uint64_t table;
	uint32_t bytes;
	uint64_t *old;
	uint64_t claim;
	uint64_t pair;
	bool keep;
};

/* Whether a word of a subtable is a slot, not the head of a bucket. */
static bool kr_is_slot(uint32_t word)
{
	return word % 8 != 0;
}

/*
 * Prove to be alive while a split goes on. Return: 0; -ESTALE: another has taken us for dead, so
 * that @pair is not ours any more; or another negative errno.
 */
static int kr_split_beat(struct kr_splitting *s)
{
	int err = kr_writer(s->c);

	return err || s->c->id == s->id ? err : -ESTALE;
}

/* Wait until a word of the trie is not @was any more, or timeout is over. */
static int kr_await(struct kr_client *c, uint64_t at, uint64_t was, uint64_t *ret)
{
	unsigned int waited;
	int err;

	for (waited = 0; waited < KR_SPLIT_PAUSES; waited++) {
		c->t->ops->pause(c->t,
				 waited < KR_SPLIT_PAUSE_MAX_MS ? waited : KR_SPLIT_PAUSE_MAX_MS);
		err = kr_read(c, at, c->words, 8);
		if (err)
			return err;
		if (c->words[0] != was)
			break;
	}
	*ret = c->words[0];
	return 0;
}

/*
 * Say that we are splitting. Return: 1: we are; 0: it is split already; -EBUSY: the word was changed
 * all the time; or another negative errno.
 */
static int kr_claim(struct kr_splitting *s)
{
	struct kr_client *c = s->c;
	uint64_t at = c->header.dir + s->node * 8ULL, seen = 0, was;
	unsigned int round;
	bool split;
	int got;

	s->claim = (uint64_t)c->id << 2 | KR_DIR_CLAIM;
	for (round = 0; round < KR_CLAIM_ROUNDS; round++) {
		got = kr_split_beat(s);
		if (got)
			return got;
		got = kr_cas(c, at, seen, s->claim, &was);
		if (got || was == s->claim)
			return got < 0 ? got : 1;
		if ((was & KR_DIR_KIND) != KR_DIR_SPLIT) {
			got = kr_await(c, at, was, &seen);
			if (got)
				return got;
		}
		if ((was & KR_DIR_KIND) == KR_DIR_SPLIT || (seen & KR_DIR_KIND) == KR_DIR_SPLIT)
			return kr_dir_refresh(c, s->node, &split);
	}
	return -EBUSY;
}

/*
 * A subtable is frozen, and there is no memory to split it: wait until another has.
 * Return: 0: it is split; -ENOSPC: nobody does, or not soon; or another negative errno.
 */
static int kr_split_by_another(struct kr_client *c, uint32_t node)
{
	uint64_t at = c->header.dir + node * 8ULL, seen;
	unsigned int round;
	bool split;
	int err;

	for (round = 0; round < KR_OTHERS_ROUNDS; round++) {
		err = kr_dir_refresh(c, node, &split);
		if (err || split)
			return err;
		seen = c->words[0];
		if ((seen & KR_DIR_KIND) != KR_DIR_CLAIM)
			break;
		err = kr_await(c, at, seen, &seen);
		if (err)
			return err;
	}
	return -ENOSPC;
}

/* Freeze what is not frozen of the words from @from on. Return: how many, or negative errno. */
static int kr_freeze_some(struct kr_splitting *s, uint32_t *from)
{
	struct kr_req reqs[KR_BATCH_MAX];
	uint32_t words = s->bytes / 8, i;
	unsigned int nr = 0, j;
	uint64_t slot, frozen;
	int err;

	for (i = *from; i < words && nr < KR_BATCH_MAX; i++) {
		slot = s->old[i];
		if (!kr_is_slot(i) || slot & KR_FROZEN)
			continue;
		frozen = kr_slot_state(slot) == KR_TENTATIVE ? KR_FROZEN : slot | KR_FROZEN;
		reqs[nr] = (struct kr_req){
			.op = KR_CAS,
			.length = 8,
			.remote = s->table + i * 8ULL,
			.local = s->c->words + KR_AT_BATCH + nr,
			.compare = slot,
			.swap = frozen,
		};
		nr++;
	}
	*from = i;
	if (!nr)
		return 0;
	err = s->c->t->ops->submit(s->c->t, reqs, nr);
	if (err && !kr_passing(err))
		return err;
	if (err)
		*from = words; /* the READ of the next round says whether the peer is there */
	for (j = 0; j < nr; j++) /* what is not known now is READ in the next round */
		if (!reqs[j].status && *(uint64_t *)reqs[j].local == reqs[j].compare)
			s->old[(reqs[j].remote - s->table) / 8] = reqs[j].swap;
	return (int)nr;
}

/* Freeze the subtable; @old is it afterwards. Return: 0 or negative errno. */
static int kr_freeze(struct kr_splitting *s)
{
	unsigned int round;
	uint32_t from, i;
	int got;

	for (round = 0; round < KR_FREEZE_ROUNDS; round++) {
		got = kr_split_beat(s);
		if (!got)
			got = kr_read(s->c, s->table, s->old, s->bytes);
		if (got)
			return got;
		for (i = 0; i < s->bytes / 8; i++)
			if (kr_is_slot(i) && !(s->old[i] & KR_FROZEN))
				break;
		if (i == s->bytes / 8)
			return 0;
		for (from = 0; from < s->bytes / 8;) {
			got = kr_freeze_some(s, &from);
			if (got < 0)
				return got;
		}
	}
	return -EBUSY;
}

/* Put a slot into one of the new subtables, 0 or 1. */
static void kr_put_slot(struct kr_splitting *s, uint32_t word, uint64_t which)
{
	s->old[s->bytes / 8 * (1 + which) + word] = s->old[word] & ~KR_FROZEN;
}

/* A slot says nothing of use: into both, if it is to be kept. Return: whether it is. */
static bool kr_put_damaged(struct kr_splitting *s, uint32_t word)
{
	if (!s->keep)
		return false;
	kr_put_slot(s, word, 0);
	kr_put_slot(s, word, 1);
	return true;
}

/*
 * READ the heads of the blocks of the slots from @from on, and put the slots into the subtable
 * that their hash says; with @keep those that say none into both, where look-ups find the damage.
 * Return: 1, 0: a block is not what the slot said, or negative errno.
 */
static int kr_distribute_some(struct kr_splitting *s, uint32_t *from)
{
	struct kr_block *heads = (struct kr_block *)(s->old + s->bytes / 8 * 3);
	struct kr_req reqs[KR_BATCH_MAX];
	uint32_t words = s->bytes / 8, which[KR_BATCH_MAX], i;
	uint64_t slot;
	unsigned int nr = 0, j;
	int err;

	for (i = *from; i < words && nr < KR_BATCH_MAX; i++) {
		if (!kr_is_slot(i) || kr_slot_state(s->old[i]) != KR_LIVE)
			continue;
		if (!kr_slot_check(&s->c->header, s->old[i])) {
			if (!kr_put_damaged(s, i))
				return 0;
			continue;
		}
		which[nr] = i;
		reqs[nr] = (struct kr_req){
			.op = KR_READ,
			.length = sizeof(*heads),
			.remote = kr_slot_at(s->old[i]),
			.local = &heads[nr],
		};
		nr++;
	}
	*from = i;
	err = nr ? kr_reads(s->c, reqs, nr) : 0;
	if (err)
		return err;
	for (j = 0; j < nr; j++) {
		slot = s->old[which[j]];
		if ((heads[j].life & KR_TAG_MASK) == kr_slot_tag(slot) &&
		    kr_hash_fp(heads[j].hash) == kr_slot_fp(slot))
			kr_put_slot(s, which[j], heads[j].hash >> s->depth & 1);
		else if (!kr_put_damaged(s, which[j]))
			return 0;
	}
	return 1;
}

/* Make the two new subtables. Return: as kr_distribute_some(). */
static int kr_distribute(struct kr_splitting *s)
{
	uint32_t words = s->bytes / 8, from, i;
	int got;

	memset(s->old + words, 0, 2 * s->bytes);
	for (i = 0; i < words; i += 8) {
		s->old[words + i] = kr_bucket_head(2 * s->node);
		s->old[2 * words + i] = kr_bucket_head(2 * s->node + 1);
	}
	for (from = 0; from < words;) {
		got = kr_distribute_some(s, &from);
		if (got != 1)
			return got;
	}
	return 1;
}

static int kr_write_pair(struct kr_splitting *s)
{
	struct kr_req req = {
		.op = KR_WRITE,
		.length = 2 * s->bytes,
		.remote = s->pair,
		.local = s->old + s->bytes / 8,
	};
	unsigned int attempt;
	int err = -EBUSY;

	for (attempt = 0; attempt < 8; attempt++) {
		err = kr_split_beat(s);
		if (err)
			return err;
		err = s->c->t->ops->submit(s->c->t, &req, 1);
		if (!err || attempt >= kr_tries(err))
			return err;
		kr_pause(s->c, attempt);
	}
	return err;
}

/* So that clients that come later READ enough of the trie at once. It is a hint. */
static void kr_deeper(struct kr_client *c, uint32_t depth)
{
	uint64_t was;

	if (c->header.depth >= depth)
		return;
	if (kr_cas(c, offsetof(struct kr_header, depth), c->header.depth, depth, &was) == 0 &&
	    was < depth)
		(void)kr_cas(c, offsetof(struct kr_header, depth), was, depth, &was);
	c->header.depth = depth;
}

/* The subtable is frozen: make the new ones, and commit. Return: 0 or negative errno. */
static int kr_finish(struct kr_splitting *s)
{
	struct kr_client *c = s->c;
	uint64_t was;
	bool split;
	int got;

	got = kr_distribute(s);
	if (!got) { /* it is split already, and entries have changed; or it is damaged, for good */
		got = kr_dir_refresh(c, s->node, &split);
		if (got || split)
			return got;
		s->keep = true;
		got = kr_distribute(s);
	}
	if (got == 1)
		got = kr_write_pair(s);
	if (got)
		return got;
	got = kr_cas(c, c->header.dir + s->node * 8ULL, s->claim, s->pair | KR_DIR_SPLIT, &was);
	if (got < 0) {
		s->pair = 0; /* it may be in the trie */
		return got;
	}
	if (got) {
		c->stats.splits++;
		s->pair = 0;
		kr_deeper(c, s->depth + 1);
	}
	return kr_dir_refresh(c, s->node, &split);
}

int kr_split(struct kr_client *c, const struct kr_place *p)
{
	struct kr_splitting s = {
		.c = c,
		.node = p->node,
		.depth = 31 - (uint32_t)__builtin_clz(p->node),
		.table = p->table,
		.bytes = kr_subtable_bytes(c->header.groups),
	};
	int got;

	if (s.depth >= c->header.depth_max)
		return -ENOSPC;
	got = kr_writer(c);
	if (!got)
		got = kr_work(c);
	if (got)
		return got;
	s.id = c->id;
	/* first, because it may need the same buffer, and so that nothing is frozen in vain */
	got = kr_alloc_pair(c, &s.pair);
	if (got == -ENOSPC && p->frozen)
		return kr_split_by_another(c, s.node);
	if (got)
		return got;
	s.old = (uint64_t *)c->work;
	got = kr_claim(&s);
	if (got == 1) {
		got = kr_freeze(&s);
		if (!got)
			got = kr_finish(&s);
	}
	if (s.pair && c->id == s.id)
		c->pair = s.pair; /* another was faster, or took over, or it failed */
	return got == -ESTALE ? 0 : got; /* the operation is begun again */
}
