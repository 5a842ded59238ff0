/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the node's cache of peers' metadata. It outlives processes, is bounded, and
 * forgets the least recently used. Entries are invalidated by notification, by a newer
 * boot generation and by a failed contact.
 * Locking: own spinlock for changes, RCU for look-ups; every function may be called in
 * any context that can take a BH-safe spinlock, but for create and destroy.
 */
#ifndef KRC_CACHE_H
#define KRC_CACHE_H

#include <linux/types.h>

#include "krp_table.h"

struct krc_cache;

/**
 * struct krc_cache_stats - Counters, since creation.
 * @entries: in the cache now.
 * @entries_max: bound.
 * @hits: look-ups answered.
 * @misses: look-ups not answered.
 * @evictions: entries dropped for room.
 * @invalidations: entries dropped because they were old.
 */
struct krc_cache_stats {
	u64 entries;
	u64 entries_max;
	u64 hits;
	u64 misses;
	u64 evictions;
	u64 invalidations;
};

/**
 * krc_cache_create() - Make a cache.
 * @entries_max: bound, from 1.
 *
 * Context: may sleep.
 * Return: the cache or ERR_PTR(-ENOMEM).
 */
struct krc_cache *krc_cache_create(u32 entries_max);

/**
 * krc_cache_bound() - Change the bound; what is too much goes, least recently used first.
 * @cache: cache.
 * @entries_max: bound, from 1.
 */
void krc_cache_bound(struct krc_cache *cache, u32 entries_max);

/**
 * krc_cache_destroy() - Free a cache that nobody uses any more.
 * @cache: cache.
 *
 * Context: may sleep.
 */
void krc_cache_destroy(struct krc_cache *cache);

/**
 * krc_cache_get() - Look a record up.
 * @cache: cache.
 * @key: name.
 * @ret_value: out: value.
 *
 * Return: 0, or -ENOENT.
 */
int krc_cache_get(struct krc_cache *cache, const struct krp_key *key, struct krp_value *ret_value);

/**
 * krc_cache_put() - Remember a record, unless a newer generation is there already.
 * @cache: cache.
 * @key: name.
 * @value: value.
 * @epoch: krc_cache_epoch() from before the READ that brought it: what was invalidated
 *	since then is not put back.
 *
 * Return: 0, -ESTALE, or -ENOMEM (then it is not remembered, nor is an older one).
 */
int krc_cache_put(struct krc_cache *cache, const struct krp_key *key, const struct krp_value *value,
		  u64 epoch);

/* Counts invalidations; see krc_cache_put(). */
u64 krc_cache_epoch(struct krc_cache *cache);

/**
 * krc_cache_forget() - Drop a record.
 * @cache: cache.
 * @key: name.
 * @generation: drop it only if its generation is at most this; U64_MAX for any.
 */
void krc_cache_forget(struct krc_cache *cache, const struct krp_key *key, u64 generation);

/* Drop everything. */
void krc_cache_forget_all(struct krc_cache *cache);

/**
 * krc_cache_walk() - Show entries, for people.
 * @cache: cache.
 * @start: how many to leave out.
 * @fn: called with each, under the lock; non-zero ends the walk.
 * @arg: for @fn.
 *
 * Return: how many @fn accepted.
 */
u32 krc_cache_walk(struct krc_cache *cache, u32 start,
		   int (*fn)(const struct krp_key *key, const struct krp_value *value, u32 age_ms,
			     void *arg),
		   void *arg);

/* Counters. */
void krc_cache_stats(struct krc_cache *cache, struct krc_cache_stats *ret_stats);

#endif /* KRC_CACHE_H */
