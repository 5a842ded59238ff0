// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The records a context keeps up: see store.h.
 *
 * A dense array for passes over all records, which removal keeps dense by
 * moving the last one, and chains for finding one. The counters let a pass over
 * a clean store cost nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "client/lib/store.h"

#define KRL_STORE_CHAINS_MIN 16

void krl_store_init(struct krl_store *store, unsigned int servers_nr)
{
	memset(store, 0, sizeof(*store));
	store->servers_nr = servers_nr;
}

void krl_store_fini(struct krl_store *store)
{
	unsigned int i;

	for (i = 0; i < store->nr; i++)
		free(store->records[i]);
	free(store->records);
	free(store->chains);
	krl_store_init(store, store->servers_nr);
}

static struct krl_record **krl_store_chain(const struct krl_store *store, const struct krp_key *key)
{
	return &store->chains[krp_key_hash(key, 0) & (store->chains_nr - 1)];
}

struct krl_record *krl_store_find(const struct krl_store *store, const struct krp_key *key)
{
	struct krl_record *rec;

	if (!store->chains_nr)
		return NULL;
	for (rec = *krl_store_chain(store, key); rec; rec = rec->next)
		if (!memcmp(&rec->key, key, sizeof(*key)))
			return rec;
	return NULL;
}

static int krl_store_grow(struct krl_store *store)
{
	unsigned int room = store->room ? 2 * store->room : KRL_STORE_CHAINS_MIN;
	struct krl_record **records, **chains;
	unsigned int i;

	if (store->nr < store->room)
		return 0;
	records = reallocarray(store->records, room, sizeof(struct krl_record *));
	if (!records)
		return -1;
	store->records = records;
	chains = calloc(room, sizeof(struct krl_record *));
	if (!chains)
		return -1;
	free(store->chains);
	store->chains = chains;
	store->chains_nr = room;
	store->room = room;
	for (i = 0; i < store->nr; i++) {
		struct krl_record **chain = krl_store_chain(store, &records[i]->key);

		records[i]->next = *chain;
		*chain = records[i];
	}
	return 0;
}

/* Enter a record into the counters (by 1) or take it out (by -1). */
static void krl_store_tally(struct krl_store *store, const struct krl_record *rec, int by)
{
	unsigned int i;

	for (i = 0; i < store->servers_nr; i++)
		store->count[i][rec->gone][rec->at[i]] += (unsigned int)by;
}

static void krl_store_renew(struct krl_store *store, struct krl_record *rec, bool gone)
{
	rec->gone = gone;
	rec->version = ++store->version;
	memset(rec->at, KRL_AT_DIRTY, store->servers_nr);
	krl_store_tally(store, rec, 1);
}

struct krl_record *krl_store_put(struct krl_store *store, const struct krp_key *key,
				 const struct krp_value *value)
{
	struct krl_record *rec = krl_store_find(store, key);
	struct krl_record **chain;

	if (rec) {
		krl_store_tally(store, rec, -1);
	} else {
		if (krl_store_grow(store) < 0)
			return NULL;
		rec = calloc(1, sizeof(*rec) + store->servers_nr);
		if (!rec)
			return NULL;
		rec->key = *key;
		rec->pos = store->nr;
		store->records[store->nr++] = rec;
		chain = krl_store_chain(store, key);
		rec->next = *chain;
		*chain = rec;
	}
	rec->value = *value;
	krl_store_renew(store, rec, false);
	return rec;
}

void krl_store_gone(struct krl_store *store, struct krl_record *rec, uint64_t gone_ns)
{
	krl_store_tally(store, rec, -1);
	rec->gone_ns = gone_ns;
	krl_store_renew(store, rec, true);
}

void krl_store_remove(struct krl_store *store, struct krl_record *rec)
{
	struct krl_record **at = krl_store_chain(store, &rec->key);
	struct krl_record *last = store->records[--store->nr];

	krl_store_tally(store, rec, -1);
	while (*at != rec)
		at = &(*at)->next;
	*at = rec->next;
	last->pos = rec->pos;
	store->records[rec->pos] = last;
	free(rec);
}

void krl_store_set(struct krl_store *store, struct krl_record *rec, unsigned int server,
		   enum krl_at at)
{
	store->count[server][rec->gone][rec->at[server]]--;
	rec->at[server] = (uint8_t)at;
	store->count[server][rec->gone][at]++;
}

void krl_store_set_all(struct krl_store *store, unsigned int server, unsigned int from,
		       enum krl_at to)
{
	unsigned int i;

	for (i = 0; i < store->nr; i++)
		if (from & (1U << store->records[i]->at[server]))
			krl_store_set(store, store->records[i], server, to);
}

struct krl_record *krl_store_dirty(struct krl_store *store, unsigned int server,
				   unsigned int *cursor)
{
	unsigned int i;

	if (!store->count[server][0][KRL_AT_DIRTY] && !store->count[server][1][KRL_AT_DIRTY])
		return NULL;
	for (i = 0; i < store->nr; i++) {
		if (*cursor >= store->nr)
			*cursor = 0;
		if (store->records[*cursor]->at[server] == KRL_AT_DIRTY)
			return store->records[*cursor];
		(*cursor)++;
	}
	return NULL;
}

bool krl_store_settled(struct krl_store *store, struct krl_record *rec)
{
	unsigned int i;

	if (!rec->gone)
		return false;
	for (i = 0; i < store->servers_nr; i++)
		if (rec->at[i] != KRL_AT_ACKED)
			return false;
	krl_store_remove(store, rec);
	return true;
}

void krl_store_expire(struct krl_store *store, uint64_t now_ns)
{
	unsigned int i = 0;

	while (i < store->nr) {
		if (store->records[i]->gone && store->records[i]->gone_ns <= now_ns)
			krl_store_remove(store, store->records[i]);
		else
			i++;
	}
}
