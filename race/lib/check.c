// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Judge a table, and take back what dead clients hold.
 *
 * A client whose word has not changed for a lease is dead: its word is set to 0, so that it
 * cannot come back under its id. Another lease later, and not before the transport's late_ms, nothing
 * of it is under way: with each change it has proved to be alive before. Then its blocks that no slot
 * has are free, and its chunks belong to nobody. What it had just replaced in the chunk of a client
 * that lives, and not yet freed, comes back when that one is dead, too.
 *
 * Nothing has to be remembered: a chunk whose owner has no word is a dead client's, whoever found
 * it dead, so what a reclaim that was interrupted has left is the next one's. Before it frees
 * blocks it takes the chunk by CAS, so that of several only one does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "race/lib/client.h"

#define KR_PAUSE_MS 50

/**
 * struct kr_checking - A check under way.
 * @report: what it found.
 * @used: bit of each unit of the chunks: a slot has a block there.
 * @before: words of clients.
 * @orphans: for each chunk: the word of its owner if that one is dead, else 0.
 * @nr_orphans: how many are not 0.
 */
struct kr_checking {
	struct kr_report *report;
	uint8_t *used;
	uint64_t *before;
	uint64_t *orphans;
	uint32_t nr_orphans;
};

static uint64_t kr_unit_of(const struct kr_client *c, uint64_t at)
{
	return (at - c->header.chunks) / KR_UNIT;
}

static int kr_check_slot(struct kr_client *c, uint32_t node, uint64_t table, uint32_t word,
			 uint64_t slot, struct kr_report *r)
{
	int got;

	switch (kr_slot_state(slot)) {
	case KR_LIVE:
		got = kr_walk_entry(c, node, table, word, slot);
		if (got == -EBADMSG)
			r->damaged++;
		else if (got == KR_HIT)
			r->entries++;
		return got == -EBADMSG || got >= 0 ? 0 : got;
	case KR_TENTATIVE:
		r->tentative++;
		return 0;
	case KR_TOMB:
		r->tombs++;
		return 0;
	default:
		return 0;
	}
}

static int kr_check_leaf(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
			 void *arg)
{
	uint32_t nr = kr_subtable_bytes(c->header.groups) / 8, i;
	struct kr_checking *k = arg;
	uint64_t depth = 31 - (uint64_t)__builtin_clz(node);
	int err;

	k->report->subtables++;
	if (depth > k->report->depth)
		k->report->depth = depth;
	for (i = 0; i < nr; i++) {
		if (i % 8 == 0)
			continue;
		k->report->slots++;
		err = kr_check_slot(c, node, table, i, words[i], k->report);
		if (err)
			return err;
	}
	return 0;
}

/* A slot has a block. If it is damaged, what it may have is noted as well, and so is not freed. */
static void kr_note_block(const struct kr_client *c, struct kr_checking *k, uint64_t slot)
{
	uint64_t end = c->header.chunks + (uint64_t)c->header.nr_chunks * KR_CHUNK_BYTES, unit;

	if (kr_slot_at(slot) < c->header.chunks || kr_slot_at(slot) >= end)
		return;
	unit = kr_unit_of(c, kr_slot_at(slot));
	k->used[unit / 8] |= (uint8_t)(1 << unit % 8);
}

/* A leaf on the way to reclaim: tentative slots become empty, blocks that others have are noted. */
static int kr_note_leaf(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
			void *arg)
{
	uint32_t nr = kr_subtable_bytes(c->header.groups) / 8, i;
	struct kr_checking *k = arg;
	uint64_t was;
	int got;

	(void)node;
	for (i = 0; i < nr; i++) {
		if (i % 8 == 0 || kr_slot_state(words[i]) == KR_EMPTY)
			continue;
		if (kr_slot_state(words[i]) == KR_TENTATIVE) {
			got = kr_cas(c, table + i * 8ULL, words[i], 0, &was);
			if (got < 0)
				return got;
			if (got)
				continue;
		}
		kr_note_block(c, k, words[i]);
	}
	return 0;
}

static int kr_read_words(struct kr_client *c, uint64_t at, uint64_t *to, uint32_t nr)
{
	uint32_t from, some;
	int err = 0;

	for (from = 0; !err && from < nr; from += some) {
		some = nr - from < KR_CHUNK_BYTES / 8 ? nr - from : KR_CHUNK_BYTES / 8;
		err = kr_read_work(c, at + from * 8ULL, some * 8);
		if (!err)
			memcpy(to + from, c->work, some * 8);
	}
	return err;
}

/* Wait longer than @ms. We prove to be alive meanwhile, if we are a client that writes. */
static int kr_wait(struct kr_client *c, uint32_t ms)
{
	uint64_t start = c->t->ops->now_ms(c->t);
	int err;

	while (c->t->ops->now_ms(c->t) - start < (uint64_t)ms + KR_BEAT_MS) {
		err = c->id ? kr_writer(c) : 0;
		if (err)
			return err;
		c->t->ops->pause(c->t, KR_PAUSE_MS);
	}
	return 0;
}

/* Set the words to 0 that have not changed for a lease. */
static int kr_find_dead(struct kr_client *c, struct kr_checking *k)
{
	uint32_t nr = c->header.nr_clients, i;
	uint64_t was;
	int got;

	got = kr_read_words(c, c->header.clients, k->before, nr);
	if (!got)
		got = kr_wait(c, c->header.lease_ms);
	for (i = 0; !got && i < nr; i++) {
		if (!k->before[i] || k->before[i] >> 32 == c->id)
			continue;
		got = kr_cas(c, c->header.clients + i * 8ULL, k->before[i], 0, &was);
		if (got < 0)
			return got;
		if (got)
			k->report->dead++;
		got = 0;
	}
	return got;
}

/*
 * Find the chunks of clients that have no word. An owner has its word before it takes a chunk,
 * so the owners are READ first.
 */
static int kr_find_orphans(struct kr_client *c, struct kr_checking *k)
{
	uint32_t i;
	uint64_t id;
	int err;

	err = kr_read_words(c, c->header.owners, k->orphans, c->header.nr_chunks);
	if (!err)
		err = kr_read_words(c, c->header.clients, k->before, c->header.nr_clients);
	for (i = 0; !err && i < c->header.nr_chunks; i++) {
		id = k->orphans[i] >> 8;
		if (k->orphans[i] & KR_OWNER_NOBODY ||
		    k->before[id % c->header.nr_clients] >> 32 == id)
			k->orphans[i] = 0;
		k->nr_orphans += k->orphans[i] != 0;
	}
	return err;
}

/* Free the blocks of a chunk that no slot has. Return: 1: it has free ones; 0; or negative errno. */
static int kr_reclaim_blocks(struct kr_client *c, struct kr_checking *k, uint32_t chunk,
			     unsigned int class)
{
	uint64_t base = c->header.chunks + (uint64_t)chunk * KR_CHUNK_BYTES, life, unit;
	uint32_t bytes = kr_class_bytes(class), i;
	uint8_t *copy = malloc(KR_CHUNK_BYTES);
	bool room = false;
	uint64_t was;
	int got;

	if (!copy)
		return -ENOMEM;
	got = kr_read_words(c, base, (uint64_t *)copy, KR_CHUNK_BYTES / 8);
	for (i = 0; got >= 0 && i < kr_class_blocks(class); i++) {
		unit = kr_unit_of(c, base + i * bytes);
		memcpy(&life, copy + i * bytes, sizeof(life));
		if (k->used[unit / 8] >> unit % 8 & 1)
			continue;
		room = true;
		if (life >> 62 == KR_FREED || !life)
			continue;
		got = kr_cas(c, base + i * bytes, life, kr_life(KR_FREED, life), &was);
		if (got == 1)
			k->report->reclaimed++;
	}
	free(copy);
	return got < 0 ? got : room;
}

/* A chunk of a dead client becomes nobody's, by way of us. Return: 0 or negative errno. */
static int kr_reclaim_chunk(struct kr_client *c, struct kr_checking *k, uint32_t chunk)
{
	uint64_t at = c->header.owners + chunk * 8ULL, word = k->orphans[chunk], mine, was;
	unsigned int class = (unsigned int)(word & 0xff) - 1;
	int got;

	if (class >= KR_CLASSES && class != KR_CLASS_SUBTABLES)
		return 0; /* damaged */
	got = kr_writer(c);
	if (got)
		return got;
	mine = (uint64_t)c->id << 8 | (class + 1);
	got = kr_cas(c, at, word, mine, &was);
	if (got <= 0)
		return got;
	got = class < KR_CLASSES ? kr_reclaim_blocks(c, k, chunk, class) : 1;
	return got < 0 ? got : kr_give_chunk(c, chunk, class, got);
}

static int kr_reclaim(struct kr_client *c, struct kr_checking *k)
{
	uint64_t units = (uint64_t)c->header.nr_chunks * (KR_CHUNK_BYTES / KR_UNIT);
	uint32_t i;
	int err = -ENOMEM;

	k->used = calloc(1, units / 8 + 1);
	k->before = calloc(c->header.nr_clients, sizeof(*k->before));
	k->orphans = calloc(c->header.nr_chunks, sizeof(*k->orphans));
	if (k->used && k->before && k->orphans)
		err = kr_find_dead(c, k);
	if (!err)
		err = kr_find_orphans(c, k);
	if (!err && k->nr_orphans)
		err = kr_wait(c, c->header.lease_ms > c->t->late_ms ? c->header.lease_ms
								    : c->t->late_ms);
	if (!err && k->nr_orphans)
		err = kr_leaves(c, kr_note_leaf, k);
	for (i = 0; !err && i < c->header.nr_chunks; i++)
		if (k->orphans[i])
			err = kr_reclaim_chunk(c, k, i);
	free(k->used);
	free(k->before);
	free(k->orphans);
	return err;
}

/* How many words of an array are not 0. */
static int kr_count(struct kr_client *c, uint64_t at, uint32_t nr, uint64_t *ret)
{
	uint64_t *words = malloc(nr * sizeof(*words));
	uint32_t i;
	int err;

	if (!words)
		return -ENOMEM;
	err = kr_read_words(c, at, words, nr);
	for (i = 0; !err && i < nr; i++)
		*ret += words[i] != 0;
	free(words);
	return err;
}

int kr_check(struct kr_client *c, bool reclaim, struct kr_report *report)
{
	struct kr_checking k = { .report = report };
	int err;

	err = kr_leaves(c, kr_check_leaf, &k);
	if (!err)
		err = kr_count(c, c->header.owners, c->header.nr_chunks, &report->chunks_used);
	if (!err)
		err = kr_count(c, c->header.clients, c->header.nr_clients, &report->clients);
	if (!err && reclaim)
		err = kr_reclaim(c, &k);
	return err;
}
