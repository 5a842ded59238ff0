/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the node's cache of peers' metadata. It outlives processes, is bounded, and evicts
 * (roughly) the least recently used entry. Entries are invalidated by a notification or a newer
 * boot generation. If notifications may have been missed all entries are in doubt, and after a
 * failed contact with the peer its own is: they stay, and count again when a READ confirms them.
 * Locking: own spinlock for changes, RCU for look-ups; every function but create and destroy
 * may be called in any context that can take a BH-safe spinlock.
 */
#ifndef KRC_CACHE_H
#define KRC_CACHE_H

#include <linux/types.h>

#include "krp_table.h"

struct krc_cache;

/**
 * struct krc_cache_stats - Counters, since creation.
 * @entries: entries in the cache now.
 * @entries_max: bound on @entries.
 * @hits: look-ups answered.
 * @misses: look-ups not answered.
 * @evictions: entries dropped to make space.
 * @invalidations: entries dropped because they were outdated, or put in doubt.
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
 * krc_cache_create() - Create a cache.
 * @entries_max: largest number of entries, at least 1.
 *
 * Context: may sleep.
 * Return: the cache or ERR_PTR(-ENOMEM).
 */
struct krc_cache *krc_cache_create(u32 entries_max);

/**
 * krc_cache_bound() - Change the bound; surplus entries are evicted.
 * @cache: cache.
 * @entries_max: largest number of entries, at least 1.
 */
void krc_cache_bound(struct krc_cache *cache, u32 entries_max);

/**
 * krc_cache_destroy() - Free a cache that has no users any more.
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
 * Return: 0; -ENOENT; -ESTALE: it is in doubt, and @ret_value is set.
 */
int krc_cache_get(struct krc_cache *cache, const struct krp_key *key, struct krp_value *ret_value);

/**
 * krc_cache_put() - Cache a record, unless a newer generation is cached already.
 * @cache: cache.
 * @key: name.
 * @value: value.
 * @epoch: krc_cache_epoch() from before the READ that fetched it: a record invalidated since
 *	then is not cached.
 *
 * Return: 0, -ESTALE, or -ENOMEM (then neither it nor an older value is cached).
 */
int krc_cache_put(struct krc_cache *cache, const struct krp_key *key, const struct krp_value *value,
		  u64 epoch);

/**
 * krc_cache_epoch() - Number of invalidations so far; taken before a READ for krc_cache_put().
 * @cache: cache.
 *
 * Return: the number; it only rises.
 */
u64 krc_cache_epoch(struct krc_cache *cache);

/**
 * krc_cache_forget() - Invalidate a record.
 * @cache: cache.
 * @key: name.
 * @generation: drop it only if its generation is at most this; U64_MAX for any.
 */
void krc_cache_forget(struct krc_cache *cache, const struct krp_key *key, u64 generation);

/**
 * krc_cache_doubt() - Put a record in doubt: its peer does not answer.
 * @cache: cache.
 * @key: name.
 * @generation: only if its generation is at most this.
 *
 * It stays, for the case that no MetaServer can be asked; krc_cache_get() says -ESTALE until it is
 * put again from a READ that begins later. Raises the epoch.
 */
void krc_cache_doubt(struct krc_cache *cache, const struct krp_key *key, u64 generation);

/**
 * krc_cache_doubt_all() - Put all records in doubt that were READ until now, also those that
 * are not cached yet.
 * @cache: cache.
 *
 * They stay, and krc_cache_get() says -ESTALE for each until it is put again. Raises the
 * epoch.
 */
void krc_cache_doubt_all(struct krc_cache *cache);

/**
 * krc_cache_forget_all() - Invalidate all records, also those that were READ and not cached
 * yet.
 * @cache: cache.
 */
void krc_cache_forget_all(struct krc_cache *cache);

/**
 * struct krc_cache_at - How far a walk has come.
 * @bucket: bucket of the hash.
 * @nth: entries of it that were shown.
 */
struct krc_cache_at {
	u32 bucket;
	u32 nth;
};

/**
 * krc_cache_walk() - List entries in no order, for diagnostics.
 * @cache: cache.
 * @at: where to begin: all zero, or as an earlier walk has left it; moved behind what @fn accepts.
 * @fn: called with each, in an RCU section; non-zero ends the walk.
 * @arg: for @fn.
 *
 * No lock is held, so that nobody waits for a list of millions. What comes or goes between two calls may
 * be missed, or shown twice.
 * Context: may sleep.
 */
void krc_cache_walk(struct krc_cache *cache, struct krc_cache_at *at,
		    int (*fn)(const struct krp_key *key, const struct krp_value *value, u32 age_ms,
			      void *arg),
		    void *arg);

/**
 * krc_cache_stats() - Read the counters.
 * @cache: cache.
 * @ret_stats: out.
 */
void krc_cache_stats(struct krc_cache *cache, struct krc_cache_stats *ret_stats);

#endif /* KRC_CACHE_H */
