// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory for blocks and subtables: a client takes chunks by one-sided requests, and blocks from
 * its chunks without any. Blocks that others have replaced it finds in its chunks by their `life`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "race/lib/client.h"

#define KR_COLLECT_SHARE 8 /* a chunk is worth searching if this part of it was free */

static uint64_t kr_chunk_at(const struct kr_client *c, uint32_t chunk)
{
	return c->header.chunks + (uint64_t)chunk * KR_CHUNK_BYTES;
}

static bool kr_is_mine(const struct kr_client *c, uint64_t at)
{
	uint64_t chunk = (at - c->header.chunks) / KR_CHUNK_BYTES;

	return c->mine[chunk];
}

void kr_forget(struct kr_client *c)
{
	unsigned int i;

	memset(c->mine, 0, c->header.nr_chunks);
	for (i = 0; i < KR_CLASSES; i++) {
		c->heaps[i].first = 0;
		c->heaps[i].nr = 0;
		c->heaps[i].next = 0;
		c->heaps[i].end = 0;
	}
	c->pair = 0;
	c->pair_end = 0;
	c->nr_frees = 0;
}

int kr_left(struct kr_client *c, int64_t more)
{
	struct kr_req req = {
		.op = KR_ADD,
		.length = 8,
		.remote = offsetof(struct kr_header, left),
		.local = c->words + KR_AT_ADD,
		.compare = (uint64_t)more,
	};
	int err = c->t->ops->submit(c->t, &req, 1);

	return kr_passing(err) ? 0 : err; /* it is a hint */
}

/* Make a chunk ours if its owner's word is @old. Return: 1, 0, or negative errno. */
static int kr_take_chunk(struct kr_client *c, uint32_t chunk, unsigned int class, uint64_t old)
{
	uint64_t was, word = (uint64_t)c->id << 8 | (class + 1);
	int got = kr_cas(c, c->header.owners + chunk * 8ULL, old, word, &was);

	if (got < 0)
		return got;
	if (!got)
		return 0;
	c->mine[chunk] = (uint8_t)(class + 1);
	return 1;
}

/*
 * Search all owners' words for a chunk that is nobody's, or (@fresh) free.
 * Return: 1, 0: adopted, -ENOSPC or another errno.
 */
static int kr_search_chunk(struct kr_client *c, unsigned int class, bool fresh, uint32_t *ret)
{
	uint64_t nobody = KR_OWNER_NOBODY | (class + 1), *words;
	uint32_t from, nr, i;
	int err = 0, got;

	for (from = 0; !err && from < c->header.nr_chunks; from += nr) {
		nr = c->header.nr_chunks - from;
		if (nr > KR_CHUNK_BYTES / 8)
			nr = KR_CHUNK_BYTES / 8;
		err = kr_read_work(c, c->header.owners + from * 8ULL, nr * 8);
		words = (uint64_t *)c->work;
		for (i = 0; !err && i < nr; i++) {
			if (words[i] != nobody && (words[i] || !fresh))
				continue;
			got = kr_take_chunk(c, from + i, class, words[i]);
			if (!got)
				continue;
			*ret = from + i;
			if (got < 0 || !words[i])
				return got;
			return kr_left(c, -1);
		}
	}
	return err ? err : -ENOSPC;
}

/*
 * A chunk for a class. The counter is set by others, too: whatever they set it to, it is not
 * believed more often than there are chunks.
 * Return: 1: it is new; 0: it was another's; or negative errno.
 */
static int kr_new_chunk(struct kr_client *c, unsigned int class, uint32_t *ret)
{
	uint64_t chunk;
	uint32_t turn;
	int got;

	got = kr_read(c, offsetof(struct kr_header, left), c->words, 8);
	if (got)
		return got;
	if (c->words[0]) {
		got = kr_search_chunk(c, class, false, ret);
		if (got != -ENOSPC)
			return got;
	}
	for (turn = 0; turn < c->header.nr_chunks; turn++) {
		got = kr_add(c, offsetof(struct kr_header, next_chunk), 1, &chunk);
		if (got)
			return got;
		if (chunk >= c->header.nr_chunks)
			break;
		got = kr_take_chunk(c, (uint32_t)chunk, class, 0);
		if (!got)
			continue;
		*ret = (uint32_t)chunk;
		return got;
	}
	return kr_search_chunk(c, class, true, ret);
}

int kr_release(struct kr_client *c, unsigned int class, const struct kr_free_block *block)
{
	struct kr_heap *heap = &c->heaps[class];
	struct kr_free_block *more;

	if (heap->nr == heap->room && heap->first > heap->room / 2) {
		heap->nr -= heap->first;
		memmove(heap->free, heap->free + heap->first, heap->nr * sizeof(*heap->free));
		heap->first = 0;
	}
	if (heap->nr == heap->room) {
		more = realloc(heap->free, (heap->room * 2ULL + 16) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		heap->free = more;
		heap->room = heap->room * 2 + 16;
	}
	heap->free[heap->nr++] = *block;
	return 0;
}

/*
 * Find blocks in a chunk of ours that others have freed. Only while the heap has no free block:
 * one that it has handed out is found again if it was never written.
 * Return: how many, or negative errno.
 */
static int kr_collect(struct kr_client *c, unsigned int class, uint32_t chunk)
{
	uint32_t bytes = kr_class_bytes(class), i, nr = 0;
	struct kr_free_block block;
	uint64_t life;
	int err;

	err = kr_read_work(c, kr_chunk_at(c, chunk), KR_CHUNK_BYTES);
	if (err)
		return err;
	for (i = 0; i < kr_class_blocks(class); i++) {
		life = *(uint64_t *)(c->work + i * bytes);
		if (life >> 62 != KR_FREED && life)
			continue; /* 0: never used */
		block.at = kr_chunk_at(c, chunk) + i * bytes;
		block.tag = life & KR_TAG_MASK;
		if (!kr_release(c, class, &block))
			nr++;
	}
	c->stats.collected += nr;
	return (int)nr;
}

/* Collect in the next of our chunks, or in each until there is one. Return: as kr_collect(). */
static int kr_collect_next(struct kr_client *c, unsigned int class, bool all)
{
	struct kr_heap *heap = &c->heaps[class];
	uint32_t i;
	int got;

	for (i = 0; i < c->header.nr_chunks; i++) {
		heap->chunk = (heap->chunk + 1) % c->header.nr_chunks;
		if (c->mine[heap->chunk] != class + 1)
			continue;
		got = kr_collect(c, class, heap->chunk);
		if (got || !all)
			return got;
	}
	return 0;
}

/*
 * Fill a heap that is empty. Return: 0; -EBUSY: of each chunk that was taken over all blocks were in
 * use; or another negative errno.
 */
static int kr_refill(struct kr_client *c, unsigned int class)
{
	struct kr_heap *heap = &c->heaps[class];
	uint32_t chunk, turn;
	int got;

	got = kr_collect_next(c, class, false);
	if (got < 0 || (uint32_t)got * KR_COLLECT_SHARE > kr_class_blocks(class))
		return got < 0 ? got : 0;
	for (turn = 0; turn <= c->header.nr_chunks; turn++) {
		got = kr_new_chunk(c, class, &chunk);
		if (got > 0) {
			heap->next = kr_chunk_at(c, chunk);
			heap->end = heap->next + kr_class_blocks(class) * kr_class_bytes(class);
			return 0;
		}
		if (heap->nr > heap->first)
			return 0;
		if (got == -ENOSPC) {
			got = kr_collect_next(c, class, true);
			return got > 0 ? 0 : got ? got : -ENOSPC;
		}
		if (!got)
			got = kr_collect(c, class, chunk);
		if (got)
			return got < 0 ? got : 0;
	}
	return -EBUSY;
}

/*
 * First what was never used, then what was freed first: so a slot has the same word again after 1024
 * turns through all free blocks of the chunk, not through the two that a key that is put again and
 * again would have. A CAS that stood still meanwhile must not find it; where nearly all blocks are in
 * use, and where a chunk has only one or two, 2048 changes are few for that.
 */
int kr_alloc(struct kr_client *c, unsigned int class, struct kr_free_block *ret)
{
	struct kr_heap *heap = &c->heaps[class];
	int err;

	if (heap->nr == heap->first && heap->next == heap->end) {
		err = kr_refill(c, class);
		if (err)
			return err;
	}
	if (heap->next < heap->end) {
		ret->at = heap->next;
		ret->tag = 0;
		heap->next += kr_class_bytes(class);
		return 0;
	}
	*ret = heap->free[heap->first++];
	return 0;
}

void kr_free(struct kr_client *c, uint64_t slot, uint64_t life)
{
	struct kr_free_block block = { .at = kr_slot_at(slot), .tag = kr_slot_tag(slot) };

	if (kr_is_mine(c, block.at)) {
		(void)kr_release(c, kr_slot_class(slot), &block); /* else it is lost */
		return;
	}
	if (c->nr_frees == KR_FREES_MAX)
		return; /* left to reclaim; an operation makes two at most, and gives them on */
	c->frees[c->nr_frees][0] = block.at;
	c->frees[c->nr_frees++][1] = kr_life(KR_COMMITTED, life);
}

unsigned int kr_frees(struct kr_client *c, struct kr_req *reqs)
{
	unsigned int i, nr = c->nr_frees;

	for (i = 0; i < nr; i++)
		reqs[i] = (struct kr_req){
			.op = KR_CAS,
			.length = 8,
			.remote = c->frees[i][0],
			.local = c->words + KR_AT_FREES + i,
			.compare = c->frees[i][1],
			.swap = kr_life(KR_FREED, c->frees[i][1]),
		};
	c->nr_frees = 0;
	return nr;
}

/* Where in a chunk that was another's no subtable has been written yet. */
static int kr_adopt_pairs(struct kr_client *c, uint32_t chunk)
{
	uint32_t bytes = 2 * kr_subtable_bytes(c->header.groups), at, end;
	int err;

	err = kr_read_work(c, kr_chunk_at(c, chunk), KR_CHUNK_BYTES);
	if (err)
		return err;
	for (at = 0, end = 0; at + bytes <= KR_CHUNK_BYTES; at += bytes)
		if (*(uint64_t *)(c->work + at))
			end = at + bytes;
	c->pair = kr_chunk_at(c, chunk) + end;
	c->pair_end = kr_chunk_at(c, chunk) + KR_CHUNK_BYTES;
	return 0;
}

int kr_alloc_pair(struct kr_client *c, uint64_t *ret)
{
	uint32_t bytes = 2 * kr_subtable_bytes(c->header.groups), chunk = 0, turn;
	int got;

	for (turn = 0; c->pair + bytes > c->pair_end; turn++) {
		if (turn > c->header.nr_chunks)
			return -EBUSY; /* each that was taken over was full: somebody gives them back */
		got = kr_new_chunk(c, KR_CLASS_SUBTABLES, &chunk);
		if (got < 0)
			return got;
		c->pair = kr_chunk_at(c, chunk);
		c->pair_end = c->pair + KR_CHUNK_BYTES;
		got = got ? 0 : kr_adopt_pairs(c, chunk);
		if (got)
			return got;
	}
	*ret = c->pair;
	c->pair += bytes;
	return 0;
}

/*
 * Make the free blocks of a heap KR_FREED. Return: 0; -ESTALE: another has taken us for dead, so that
 * the rest is its own; or another negative errno.
 */
static int kr_leave_heap(struct kr_client *c, struct kr_heap *heap)
{
	struct kr_req reqs[KR_BATCH_MAX];
	unsigned int nr;
	int err = 0;

	while (!err && heap->nr > heap->first) {
		err = kr_beat(c);
		if (err <= 0)
			return err ? err : -ESTALE;
		for (nr = 0; nr < KR_BATCH_MAX && heap->nr > heap->first; nr++) {
			heap->nr--;
			c->words[KR_AT_BATCH + nr] = kr_life(KR_FREED, heap->free[heap->nr].tag);
			reqs[nr] = (struct kr_req){
				.op = KR_WRITE,
				.length = 8,
				.remote = heap->free[heap->nr].at,
				.local = c->words + KR_AT_BATCH + nr,
			};
		}
		err = c->t->ops->submit(c->t, reqs, nr);
	}
	return err;
}

void kr_leave(struct kr_client *c)
{
	struct kr_req reqs[KR_FREES_MAX];
	uint64_t was, word;
	unsigned int nr;
	uint32_t i;
	int got = 0;

	if (!c->id || kr_beat(c) <= 0)
		return; /* it may be another's already */
	nr = kr_frees(c, reqs);
	if (nr)
		got = c->t->ops->submit(c->t, reqs, nr);
	for (i = 0; !got && i < KR_CLASSES; i++)
		got = kr_leave_heap(c, &c->heaps[i]);
	for (i = 0; got >= 0 && i < c->header.nr_chunks; i++) {
		if (!c->mine[i])
			continue;
		word = (uint64_t)c->id << 8 | c->mine[i];
		got = kr_cas(c, c->header.owners + i * 8ULL, word, KR_OWNER_NOBODY | c->mine[i],
			     &was);
		if (got > 0)
			got = kr_left(c, 1);
	}
	if (got >= 0)
		kr_unregister(c);
}
