// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records kept aside: see aside.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/aside.h"

#define MS_ASIDES_FIRST 16U

void ms_asides_init(struct ms_asides *a, __u32 max, __u64 secret)
{
	memset(a, 0, sizeof(*a));
	a->max = max;
	a->unused = MS_ASIDE_NIL;
	a->secret = secret;
}

void ms_asides_free(struct ms_asides *a)
{
	free(a->entries);
	free(a->heads);
	a->entries = NULL;
	a->heads = NULL;
	a->room = 0;
}

size_t ms_asides_bytes(const struct ms_asides *a)
{
	return (size_t)a->room * (sizeof(*a->entries) + sizeof(*a->heads));
}

static __u32 *ms_aside_head(const struct ms_asides *a, const struct krp_key *key)
{
	return &a->heads[krp_xxh64(key, sizeof(*key), a->secret) & (a->room - 1)];
}

static __u32 *ms_aside_of_gid(struct ms_asides *a, const struct krp_key *key)
{
	return &a->of_gid[krp_xxh64(key->gid, sizeof(key->gid), a->secret) % MS_ASIDE_GIDS];
}

static void ms_aside_chain(struct ms_asides *a, __u32 nr)
{
	__u32 *head = ms_aside_head(a, &a->entries[nr].record.key);

	a->entries[nr].chain = *head;
	*head = nr;
}

static void ms_aside_unchain(struct ms_asides *a, __u32 nr)
{
	__u32 *link = ms_aside_head(a, &a->entries[nr].record.key);

	while (*link != nr)
		link = &a->entries[*link].chain;
	*link = a->entries[nr].chain;
}

/* Double the capacity. Called when all entries are in use. */
static int ms_asides_grow(struct ms_asides *a)
{
	__u32 room = a->room ? a->room * 2 : MS_ASIDES_FIRST, nr;
	struct ms_aside *entries;
	__u32 *heads;

	if (room <= a->room)
		return -ENOMEM;
	heads = malloc(room * sizeof(*heads));
	if (!heads)
		return -ENOMEM;
	entries = realloc(a->entries, room * sizeof(*entries));
	if (!entries) {
		free(heads);
		return -ENOMEM;
	}
	free(a->heads);
	a->heads = heads;
	a->entries = entries;
	memset(heads, 0xff, room * sizeof(*heads)); /* MS_ASIDE_NIL */
	for (nr = room; nr-- > a->room;) {
		entries[nr].next = a->unused;
		a->unused = nr;
	}
	nr = a->room;
	a->room = room;
	while (nr--)
		ms_aside_chain(a, nr);
	return 0;
}

/* Note: Source - dynamic thresholds of shared packet buffers (Choudhury, Hahne, ToN '98). */
int ms_asides_reserve(struct ms_asides *a, const struct krp_key *key)
{
	if (a->nr >= a->max || *ms_aside_of_gid(a, key) > (a->max - a->nr) / MS_ASIDE_SHARE)
		return -ENOSPC;
	return a->unused == MS_ASIDE_NIL ? ms_asides_grow(a) : 0;
}

__u32 ms_asides_find(const struct ms_asides *a, const struct krp_key *key)
{
	__u32 nr = a->nr ? *ms_aside_head(a, key) : MS_ASIDE_NIL;

	while (nr != MS_ASIDE_NIL && memcmp(&a->entries[nr].record.key, key, sizeof(*key)) != 0)
		nr = a->entries[nr].chain;
	return nr;
}

/* Add at the end of the ring, so that all records get a chance when some fit into buckets. */
static void ms_ring_add(struct ms_asides *a, __u32 *ring, __u32 nr)
{
	struct ms_aside *e = &a->entries[nr];

	if (*ring == MS_ASIDE_NIL) {
		e->next = nr;
		e->prev = nr;
		*ring = nr;
		return;
	}
	e->next = *ring;
	e->prev = a->entries[*ring].prev;
	a->entries[e->prev].next = nr;
	a->entries[e->next].prev = nr;
}

static void ms_ring_del(struct ms_asides *a, __u32 *ring, __u32 nr)
{
	struct ms_aside *e = &a->entries[nr];

	a->entries[e->prev].next = e->next;
	a->entries[e->next].prev = e->prev;
	if (*ring == nr)
		*ring = e->next == nr ? MS_ASIDE_NIL : e->next;
}

void ms_asides_add(struct ms_asides *a, __u32 *ring, const struct ms_record *record)
{
	__u32 nr = a->unused;

	a->unused = a->entries[nr].next;
	a->entries[nr].record = *record;
	(*ms_aside_of_gid(a, &record->key))++;
	ms_aside_chain(a, nr);
	ms_ring_add(a, ring, nr);
	a->nr++;
}

void ms_asides_del(struct ms_asides *a, __u32 *ring, __u32 nr)
{
	(*ms_aside_of_gid(a, &a->entries[nr].record.key))--;
	ms_aside_unchain(a, nr);
	ms_ring_del(a, ring, nr);
	a->entries[nr].next = a->unused;
	a->unused = nr;
	a->nr--;
}

void ms_asides_move(struct ms_asides *a, __u32 *from, __u32 *to, __u32 nr)
{
	ms_ring_del(a, from, nr);
	ms_ring_add(a, to, nr);
}
