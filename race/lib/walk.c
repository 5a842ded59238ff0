// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All entries of a table: subtable by subtable.
 */
#include <errno.h>
#include <stdlib.h>

#include "race/lib/client.h"

#define KR_WALK_TRIES 1000
#define KR_WALK_DAMAGED 16

/* An entry of a subtable that was READ. Return: KR_HIT, KR_CHANGED, or negative errno. */
static int kr_walk_slot(struct kr_client *c, uint64_t slot)
{
	if (!kr_slot_check(&c->header, slot))
		return -EBADMSG;
	return kr_find_block(c, NULL, 0, 0, slot);
}

/**
 * struct kr_spot - A slot on a walk.
 * @node: leaf.
 * @table: its subtable.
 * @word: which word of it.
 * @slot: what it was.
 */
struct kr_spot {
	uint32_t node;
	uint64_t table;
	uint32_t word;
	uint64_t slot;
};

/* The subtable was split: an entry is in the same slot of one of the two after it. */
static int kr_walk_follow(struct kr_client *c, struct kr_spot *spot)
{
	uint64_t pair = c->dir[spot->node] & ~(uint64_t)KR_DIR_KIND, at;
	unsigned int bit, fp = kr_slot_fp(spot->slot);
	int err;

	spot->slot = 0;
	spot->node *= 2;
	for (bit = 0; bit < 2; bit++) {
		at = pair + bit * kr_subtable_bytes(c->header.groups);
		err = kr_read(c, at + spot->word * 8, c->words, 8);
		if (err)
			return err;
		if (kr_slot_state(c->words[0]) != KR_LIVE || kr_slot_fp(c->words[0]) != fp)
			continue;
		spot->slot = c->words[0];
		spot->node += bit;
		spot->table = at;
		return 0;
	}
	return 0;
}

/* READ a slot again after its block did not fit. Return: 0 or negative errno. */
static int kr_walk_reread(struct kr_client *c, struct kr_spot *spot)
{
	bool split = false;
	int err;

	err = kr_read(c, spot->table + spot->word * 8, c->words, 8);
	if (err)
		return err;
	spot->slot = c->words[0];
	if (!(spot->slot & KR_FROZEN))
		return 0;
	err = kr_dir_refresh(c, spot->node, &split);
	return err || !split ? err : kr_walk_follow(c, spot);
}

/* READ a slot's block until both fit. Return: KR_HIT, KR_OTHER: no entry, or negative errno. */
static int kr_walk_spot(struct kr_client *c, struct kr_spot *spot)
{
	unsigned int attempt, damaged = 0;
	uint64_t last;
	int got;

	for (attempt = 0; attempt < KR_WALK_TRIES; attempt++) {
		if (kr_slot_state(spot->slot) != KR_LIVE)
			return KR_OTHER;
		got = kr_walk_slot(c, spot->slot);
		if (got != KR_CHANGED)
			return got;
		kr_pause(c, attempt);
		last = spot->slot;
		got = kr_walk_reread(c, spot);
		if (got)
			return got;
		damaged = spot->slot == last ? damaged + 1 : 0;
		if (damaged == KR_WALK_DAMAGED)
			return -EBADMSG;
	}
	return -EBUSY;
}

/* READ a subtable. Return: 1: it is a leaf's; 0: it was split; or negative errno. */
static int kr_walk_read(struct kr_client *c, uint32_t node, uint64_t table, uint64_t *words)
{
	uint32_t bytes = kr_subtable_bytes(c->header.groups), i;
	bool frozen = false, split = false;
	int err;

	err = kr_read_work(c, table, bytes);
	if (err)
		return err;
	for (i = 0; i < bytes / 8; i++) {
		words[i] = ((uint64_t *)c->work)[i];
		if (i % 8 == 0 && words[i] != kr_bucket_head(node))
			return -EBADMSG;
		frozen |= i % 8 && words[i] & KR_FROZEN;
	}
	if (frozen)
		err = kr_dir_refresh(c, node, &split);
	return err ? err : !split;
}

int kr_walk_entry(struct kr_client *c, uint32_t node, uint64_t table, uint32_t word, uint64_t slot)
{
	struct kr_spot spot = { node, table, word, slot };

	return kr_walk_spot(c, &spot);
}

/**
 * struct kr_walk_state - A walk over all leaves.
 * @words: the subtable.
 * @fn: called for each.
 * @arg: its argument.
 */
struct kr_walk_state {
	uint64_t *words;
	int (*fn)(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
		  void *arg);
	void *arg;
};

static int kr_walk_node(struct kr_client *c, uint32_t node, uint64_t table, struct kr_walk_state *w)
{
	int got = 0;
	unsigned int bit;

	if ((c->dir[node] & KR_DIR_KIND) != KR_DIR_SPLIT)
		got = kr_walk_read(c, node, table, w->words);
	if (got)
		return got < 0 ? got : w->fn(c, node, table, w->words, w->arg);
	for (bit = 0; bit < 2 && !got; bit++) /* not deeper than KR_DEPTH_MAX */
		got = kr_walk_node(c, 2 * node + bit,
				   (c->dir[node] & ~(uint64_t)KR_DIR_KIND) +
					   bit * kr_subtable_bytes(c->header.groups),
				   w);
	return got;
}

int kr_leaves(struct kr_client *c,
	      int (*fn)(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
			void *arg),
	      void *arg)
{
	struct kr_walk_state w = { .fn = fn, .arg = arg };
	int got;

	w.words = calloc(1, kr_subtable_bytes(c->header.groups));
	if (!w.words)
		return -ENOMEM;
	got = kr_walk_node(c, 1, c->header.root, &w);
	free(w.words);
	return got;
}

/**
 * struct kr_walk_call - What kr_walk() calls.
 * @fn: function.
 * @arg: its argument.
 * @damaged: an entry was passed over that is.
 */
struct kr_walk_call {
	kr_entry_fn *fn;
	void *arg;
	bool damaged;
};

/* The entries of a leaf. */
static int kr_walk_leaf(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
			void *arg)
{
	uint32_t nr = kr_subtable_bytes(c->header.groups) / 8, i;
	struct kr_walk_call *call = arg;
	int got;

	for (i = 0; i < nr; i++) {
		if (i % 8 == 0 || kr_slot_state(words[i]) != KR_LIVE)
			continue;
		got = kr_walk_entry(c, node, table, i, words[i]);
		if (got == -EBADMSG) {
			call->damaged = true;
			continue;
		}
		if (got < 0)
			return got;
		if (got == KR_OTHER)
			continue;
		got = call->fn(call->arg, c->found);
		if (got)
			return got;
	}
	return 0;
}

int kr_walk(struct kr_client *c, kr_entry_fn *fn, void *arg)
{
	struct kr_walk_call call = { .fn = fn, .arg = arg };
	int got = kr_leaves(c, kr_walk_leaf, &call);

	return !got && call.damaged ? -EBADMSG : got;
}
