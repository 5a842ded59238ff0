// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Look a key up: two combined buckets in one batch, then the block.
 *
 * A slot that is not frozen was so before its subtable was split; one that is frozen counts
 * if the trie, READ afterwards, still has the subtable.
 */
#include <errno.h>

#include "race/lib/client.h"

#define KR_FIND_TRIES 10000
#define KR_DAMAGED_TRIES 16

void kr_locate(const struct kr_client *c, struct kr_place *p)
{
	uint32_t bytes = kr_subtable_bytes(c->header.groups), depth;
	unsigned int bit;

	p->node = 1;
	p->table = c->header.root;
	for (depth = 0; depth < c->header.depth_max; depth++) {
		if ((c->dir[p->node] & KR_DIR_KIND) != KR_DIR_SPLIT)
			break;
		bit = p->hash >> depth & 1;
		p->table = (c->dir[p->node] & ~(uint64_t)KR_DIR_KIND) + bit * bytes;
		p->node = 2 * p->node + bit;
	}
	p->at[0] = p->table + kr_combined(c->header.groups, p->hash, 0);
	p->at[1] = p->table + kr_combined(c->header.groups, p->hash, 1);
}

void kr_buckets(struct kr_client *c, const struct kr_place *p, struct kr_req *reqs)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		reqs[i] = (struct kr_req){
			.op = KR_READ,
			.length = KR_COMBINED_BYTES,
			.remote = p->at[i],
			.local = c->combined + i * KR_COMBINED_WORDS,
		};
}

uint64_t kr_bucket_slot(const struct kr_client *c, const struct kr_place *p, unsigned int i,
			uint64_t *ret_at)
{
	unsigned int which = i / 14, word = i % 14 / 7 * 8 + 1 + i % 7;

	*ret_at = p->at[which] + word * 8;
	if (which && *ret_at >= p->at[0] && *ret_at < p->at[0] + KR_COMBINED_BYTES)
		*ret_at = 0; /* the overflow bucket that both share */
	return c->combined[which * KR_COMBINED_WORDS + word];
}

int kr_buckets_check(struct kr_client *c, struct kr_place *p)
{
	uint64_t head = kr_bucket_head(p->node), slot, at;
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (c->combined[i * 8] != head)
			return -EBADMSG;
	p->frozen = false;
	for (i = 0; i < KR_SLOTS; i++) {
		slot = kr_bucket_slot(c, p, i, &at);
		if (slot & KR_FROZEN)
			p->frozen = true;
		if (kr_slot_state(slot) != KR_EMPTY && !kr_slot_check(&c->header, slot))
			return -EBADMSG;
	}
	return 0;
}

int kr_find_block(struct kr_client *c, const void *key, uint32_t key_bytes, uint64_t hash,
		  uint64_t slot)
{
	uint32_t bytes = kr_class_bytes(kr_slot_class(slot));
	int err;

	err = kr_room(c, &c->found, &c->found_bytes, bytes);
	if (!err)
		err = kr_read(c, kr_slot_at(slot), c->found, bytes);
	if (err)
		return err;
	return (int)kr_block_check(c->found, slot, hash, key, key_bytes);
}

/* Once through the buckets. Return: KR_HIT, KR_OTHER: it is not there, KR_CHANGED, or errno. */
static int kr_find_once(struct kr_client *c, const void *key, uint32_t key_bytes,
			struct kr_place *p)
{
	struct kr_req reqs[2];
	uint64_t slot, at;
	unsigned int i;
	int err;

	kr_locate(c, p);
	kr_buckets(c, p, reqs);
	err = kr_reads(c, reqs, 2);
	if (!err)
		err = kr_buckets_check(c, p);
	if (err)
		return err;
	c->stats.search_reads += 2;
	for (i = 0; i < KR_SLOTS; i++) {
		slot = kr_bucket_slot(c, p, i, &at);
		if (!at || kr_slot_state(slot) != KR_LIVE ||
		    kr_slot_fp(slot) != kr_hash_fp(p->hash))
			continue;
		err = kr_find_block(c, key, key_bytes, p->hash, slot);
		if (err >= 0)
			c->stats.search_reads++;
		if (err == KR_OTHER)
			continue;
		p->slot_at = at;
		p->slot = slot;
		p->life = c->found->life;
		return err;
	}
	return KR_OTHER;
}

int kr_find(struct kr_client *c, const void *key, uint32_t key_bytes, struct kr_place *p)
{
	unsigned int attempt, damaged = 0;
	uint64_t last = 0;
	bool split;
	int got;

	p->hash = krp_xxh64(key, key_bytes, c->header.seed);
	c->stats.searches++;
	for (attempt = 0; attempt < KR_FIND_TRIES; attempt++) {
		p->slot_at = 0;
		got = kr_find_once(c, key, key_bytes, p);
		if (got < 0)
			return got;
		if (got != KR_CHANGED) {
			split = false;
			if (p->frozen)
				got = kr_dir_refresh(c, p->node, &split);
			if (got < 0 || !split)
				return got < 0 ? got : 0;
			continue;
		}
		if (p->frozen) {
			got = kr_dir_refresh(c, p->node, &split);
			if (got)
				return got;
			if (split)
				continue;
		}
		/* a block changes only when its slot has: one that stays is damaged */
		damaged = p->slot == last ? damaged + 1 : 0;
		last = p->slot;
		if (damaged == KR_DAMAGED_TRIES)
			return -EBADMSG;
		kr_pause(c, damaged);
	}
	return -EBUSY;
}
