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
#define KR_LEFT_TRIES 8 /* chunks left with room that are searched before a new one is taken */
#define KR_FULL_TRIES 256 /* chunks of each kind that are searched before the node is full */
#define KR_OWNERS_WORDS 4096 /* of owners, that are READ at once */
#define KR_ROOM 0x80 /* in kr_client.mine, of one that ends: a block of the chunk is free */

/* Where a chunk is looked for, in this order. */
enum kr_source {
	KR_LEFT, /* nobody's, and had room */
	KR_UNUSED, /* by the header's counter */
	KR_SKIPPED, /* both that these did not find */
	KR_FULL, /* nobody's, and had no room; others may have freed blocks in it */
	KR_SOURCES,
};

/**
 * struct kr_quest - Looking for a chunk; for each source once at each owner's word, from somewhere on.
 * @class: of the chunk.
 * @source: enum kr_source.
 * @end: the first that is not looked through.
 * @at: owner whose word is next.
 * @done: words that were looked at for @source.
 * @tries: chunks that were found there.
 */
struct kr_quest {
	unsigned int class;
	unsigned int source, end;
	uint32_t at, done;
	unsigned int tries;
};

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

/* Count chunks that are nobody's and have room. @more: 1 or -1. */
static int kr_left(struct kr_client *c, int64_t more)
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
	int got = kr_cas(c, c->header.owners + chunk * 8ULL, old, word, &was), err;

	if (got <= 0)
		return got;
	c->mine[chunk] = (uint8_t)(class + 1);
	if (old & KR_OWNER_FULL || !old)
		return 1;
	err = kr_left(c, -1);
	return err ? err : 1;
}

int kr_give_chunk(struct kr_client *c, uint32_t chunk, unsigned int class, bool room)
{
	uint64_t word = (uint64_t)c->id << 8 | (class + 1), was;
	uint64_t nobody = KR_OWNER_NOBODY | (room ? 0 : KR_OWNER_FULL) | (class + 1);
	int got;

	c->mine[chunk] = 0; /* if its outcome is unknown it may be another's soon */
	got = kr_cas(c, c->header.owners + chunk * 8ULL, word, nobody, &was);
	return got > 0 && room ? kr_left(c, 1) : got < 0 ? got : 0;
}

/* Whether a chunk is what is looked for. @word: of its owner. */
static bool kr_is_wanted(const struct kr_quest *q, uint64_t word)
{
	uint64_t left = KR_OWNER_NOBODY | (q->class + 1);

	if (q->source == KR_FULL)
		return word == (left | KR_OWNER_FULL);
	return word == left || (q->source == KR_SKIPPED && !word);
}

/* Search the owners' words that were not looked at. Return: as kr_new_chunk(). */
static int kr_search_chunk(struct kr_client *c, struct kr_quest *q, uint32_t *ret)
{
	uint32_t all = c->header.nr_chunks, nr, i;
	const uint64_t *words;
	int got;

	while (q->done < all) {
		nr = all - q->at < all - q->done ? all - q->at : all - q->done;
		if (nr > KR_OWNERS_WORDS)
			nr = KR_OWNERS_WORDS;
		got = kr_read_work(c, c->header.owners + q->at * 8ULL, nr * 8);
		words = (const uint64_t *)c->work;
		for (i = 0; !got && i < nr; i++) {
			if (!kr_is_wanted(q, words[i]))
				continue;
			*ret = q->at + i;
			got = kr_take_chunk(c, *ret, q->class, words[i]);
			if (got)
				nr = i + 1;
		}
		q->at = (q->at + nr) % all;
		q->done += nr;
		if (got)
			return got < 0 ? got : !words[nr - 1];
	}
	return -ENOSPC;
}

/*
 * A chunk that was never used. The counter is set by others, too: whatever they set it to, it is not
 * believed more often than there are chunks. Return: as kr_new_chunk().
 */
static int kr_unused_chunk(struct kr_client *c, unsigned int class, uint32_t *ret)
{
	uint64_t chunk;
	uint32_t turn;
	int got;

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
	return -ENOSPC;
}

/* Begin to look for a chunk. Return: 0 or negative errno. */
static int kr_seek(struct kr_client *c, unsigned int class, enum kr_source end, struct kr_quest *q)
{
	int err = kr_read(c, offsetof(struct kr_header, left), c->words, 8);

	*q = (struct kr_quest){
		.class = class,
		.source = c->words[0] ? KR_LEFT : KR_UNUSED,
		.end = end,
		.at = (uint32_t)(kr_random(c) % c->header.nr_chunks),
	};
	return err;
}

/*
 * The next chunk that is found, which is ours then.
 * Return: 1: it is new; 0: it was another's; -ENOSPC: there is none any more; or another negative errno.
 */
static int kr_new_chunk(struct kr_client *c, struct kr_quest *q, uint32_t *ret)
{
	int got;

	for (; q->source < q->end; q->source++, q->done = 0, q->tries = 0) {
		if (q->tries++ == (q->source == KR_LEFT ? KR_LEFT_TRIES : KR_FULL_TRIES))
			continue;
		if (q->source == KR_UNUSED)
			got = kr_unused_chunk(c, q->class, ret);
		else
			got = kr_search_chunk(c, q, ret);
		if (got != -ENOSPC)
			return got;
	}
	return -ENOSPC;
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
 * Find blocks in a chunk of ours that others have freed. Only while the heap has no free block, or
 * the chunk is new to us: one that was handed out is found again if it was never written.
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

/* Collect in the next of our chunks, of @most at most, until there is one. Return: as kr_collect(). */
static int kr_collect_next(struct kr_client *c, unsigned int class, unsigned int most)
{
	struct kr_heap *heap = &c->heaps[class];
	uint32_t i;
	int got;

	for (i = 0; most && i < c->header.nr_chunks; i++) {
		heap->chunk = (heap->chunk + 1) % c->header.nr_chunks;
		if (c->mine[heap->chunk] != class + 1)
			continue;
		got = kr_collect(c, class, heap->chunk);
		if (got)
			return got;
		most--;
	}
	return 0;
}

/*
 * Add a chunk to a heap: a new one, or one that has a free block. One that has none is given back at
 * once, so that a client that dies while it searches takes no more than one with it.
 * Return: 0; -ENOSPC: there is no new one, and those that were searched have none; or another errno.
 */
static int kr_grow(struct kr_client *c, unsigned int class, enum kr_source end)
{
	struct kr_heap *heap = &c->heaps[class];
	struct kr_quest quest;
	uint32_t chunk = 0;
	int got;

	got = kr_seek(c, class, end, &quest);
	while (!got) {
		got = kr_new_chunk(c, &quest, &chunk);
		if (got > 0) {
			heap->next = kr_chunk_at(c, chunk);
			heap->end = heap->next + kr_class_blocks(class) * kr_class_bytes(class);
			return 0;
		}
		if (!got)
			got = kr_collect(c, class, chunk);
		if (got > 0)
			return 0;
		if (!got)
			got = kr_give_chunk(c, chunk, class, false);
	}
	return got;
}

/* Fill a heap that is empty. Return: 0; -ENOSPC: see kr_grow(); or another negative errno. */
static int kr_refill(struct kr_client *c, unsigned int class)
{
	struct kr_heap *heap = &c->heaps[class];
	int got, err;

	got = kr_collect_next(c, class, 1);
	if (got < 0 || (uint32_t)got * KR_COLLECT_SHARE > kr_class_blocks(class))
		return got < 0 ? got : 0;
	err = kr_grow(c, class, got ? KR_SKIPPED : KR_SOURCES);
	if (heap->nr > heap->first)
		return 0;
	if (err != -ENOSPC)
		return err;
	got = kr_collect_next(c, class, KR_FULL_TRIES);
	return got > 0 ? 0 : got ? got : -ENOSPC;
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

/* Whether there is room for two subtables where the last ones were. */
static bool kr_has_pair(const struct kr_client *c)
{
	return c->pair + 2 * kr_subtable_bytes(c->header.groups) <= c->pair_end;
}

/* Find a chunk with room for two subtables; one that is full remains so. Return: 0 or errno. */
static int kr_seek_pair(struct kr_client *c)
{
	struct kr_quest quest;
	uint32_t chunk = 0;
	int got;

	got = kr_seek(c, KR_CLASS_SUBTABLES, KR_FULL, &quest);
	while (!got) {
		got = kr_new_chunk(c, &quest, &chunk);
		if (got < 0)
			break;
		if (got) { /* never used */
			c->pair = kr_chunk_at(c, chunk);
			c->pair_end = c->pair + KR_CHUNK_BYTES;
			return 0;
		}
		got = kr_adopt_pairs(c, chunk);
		if (got || kr_has_pair(c))
			break;
		got = kr_give_chunk(c, chunk, KR_CLASS_SUBTABLES, false);
	}
	return got;
}

int kr_alloc_pair(struct kr_client *c, uint64_t *ret)
{
	int err = kr_has_pair(c) ? 0 : kr_seek_pair(c);

	if (err)
		return err;
	*ret = c->pair;
	c->pair += 2 * kr_subtable_bytes(c->header.groups);
	return 0;
}

/* Note that a chunk of ours, which is given back soon, has room at @at. */
static void kr_note_room(struct kr_client *c, uint64_t at)
{
	c->mine[(at - c->header.chunks) / KR_CHUNK_BYTES] |= KR_ROOM;
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

	if (heap->next < heap->end)
		kr_note_room(c, heap->next);
	while (!err && heap->nr > heap->first) {
		err = kr_beat(c);
		if (err <= 0)
			return err ? err : -ESTALE;
		for (nr = 0; nr < KR_BATCH_MAX && heap->nr > heap->first; nr++) {
			heap->nr--;
			kr_note_room(c, heap->free[heap->nr].at);
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
	if (kr_has_pair(c))
		kr_note_room(c, c->pair);
	for (i = 0; !got && i < c->header.nr_chunks; i++)
		if (c->mine[i])
			got = kr_give_chunk(c, i, (c->mine[i] & ~KR_ROOM) - 1U,
					    c->mine[i] & KR_ROOM);
	if (!got)
		kr_unregister(c);
}
