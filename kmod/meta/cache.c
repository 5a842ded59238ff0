// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the node's cache of peers' metadata, a bounded hash table.
 *
 * Look-ups walk RCU chains without a lock, and only mark the entry as used. Changes hold the
 * cache's spinlock. Eviction is second chance: an entry at the end of the list that was used
 * since it was placed moves to the front instead.
 *
 * An invalidation may overtake the READ of a value that is already outdated. So
 * invalidations are numbered by an epoch, and the latest are recorded: a value READ before
 * its key was invalidated is refused.
 */
#include <linux/bits.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "meta/cache.h"

#define KRC_CACHE_BUCKETS_MAX (1U << 20)
#define KRC_CACHE_RECENT 64 /* invalidations recorded one by one */
#define KRC_CACHE_CHANCES 32 /* entries checked before a used one is evicted */

/**
 * struct krc_cache_entry - One record.
 * @chain: in a bucket; RCU.
 * @age: in krc_cache.age.
 * @key: name.
 * @used: a look-up has hit it since it was placed in krc_cache.age.
 * @doubted: krc_cache_doubt() was called since it was put; readers hold no lock.
 * @value: value.
 * @put_at: jiffies when it was put, or put again unchanged.
 * @epoch: krc_cache.epoch before its last READ; readers hold no lock.
 * @rcu: frees it.
 */
struct krc_cache_entry {
	struct hlist_node chain;
	struct list_head age;
	struct krp_key key;
	bool used;
	bool doubted;
	struct krp_value value;
	unsigned long put_at;
	u64 epoch;
	struct rcu_head rcu;
};

/**
 * struct krc_cache_counts - Counters of look-ups, per CPU.
 * @hits: look-ups answered.
 * @misses: look-ups not answered.
 */
struct krc_cache_counts {
	u64 hits;
	u64 misses;
};

/**
 * struct krc_cache - A cache.
 * @lock: held for everything but look-ups.
 * @buckets: heads of the chains; changed under @lock.
 * @mask: number of buckets less one.
 * @entries_max: bound on @entries.
 * @entries: number of entries.
 * @evictions: see struct krc_cache_stats.
 * @invalidations: see struct krc_cache_stats.
 * @seed: random seed of the hash.
 * @epoch: counts invalidations.
 * @floor: values READ before this epoch are refused, whatever the key, and those that are
 *	cached are in doubt.
 * @recent: hashes of the keys invalidated last, by epoch modulo its length.
 * @age: all entries, the most recently placed first.
 * @counts: counters of look-ups.
 */
struct krc_cache {
	spinlock_t lock;
	struct hlist_head *buckets;
	u32 mask;
	u32 entries_max;
	u32 entries;
	u64 evictions;
	u64 invalidations;
	u64 seed;
	u64 epoch;
	u64 floor;
	u64 recent[KRC_CACHE_RECENT];
	struct list_head age;
	struct krc_cache_counts __percpu *counts;
};

static u64 krc_cache_hash(const struct krc_cache *cache, const struct krp_key *key)
{
	return krp_xxh64(key, sizeof(*key), cache->seed);
}

struct krc_cache *krc_cache_create(u32 entries_max)
{
	struct krc_cache *cache;
	u32 buckets;

	if (!entries_max)
		entries_max = 1;
	buckets = entries_max < KRC_CACHE_BUCKETS_MAX ? roundup_pow_of_two(entries_max)
						      : KRC_CACHE_BUCKETS_MAX;
	cache = kzalloc(sizeof(*cache), GFP_KERNEL);
	if (!cache)
		return ERR_PTR(-ENOMEM);
	cache->buckets = kvcalloc(buckets, sizeof(*cache->buckets), GFP_KERNEL);
	cache->counts = alloc_percpu(struct krc_cache_counts);
	if (!cache->buckets || !cache->counts) {
		free_percpu(cache->counts);
		kvfree(cache->buckets);
		kfree(cache);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_init(&cache->lock);
	INIT_LIST_HEAD(&cache->age);
	cache->mask = buckets - 1;
	cache->entries_max = entries_max;
	cache->seed = get_random_u64();
	return cache;
}

static void krc_cache_drop(struct krc_cache *cache, struct krc_cache_entry *entry)
{
	lockdep_assert_held(&cache->lock);
	hlist_del_rcu(&entry->chain);
	list_del(&entry->age);
	cache->entries--;
	kfree_rcu(entry, rcu);
}

static void krc_cache_drop_all(struct krc_cache *cache)
{
	struct krc_cache_entry *entry, *next;

	lockdep_assert_held(&cache->lock);
	list_for_each_entry_safe(entry, next, &cache->age, age)
		krc_cache_drop(cache, entry);
}

void krc_cache_destroy(struct krc_cache *cache)
{
	spin_lock_bh(&cache->lock);
	krc_cache_drop_all(cache);
	spin_unlock_bh(&cache->lock);
	free_percpu(cache->counts);
	kvfree(cache->buckets);
	kfree(cache);
}

/* Locks: RCU or cache.lock. */
static struct krc_cache_entry *krc_cache_find(struct krc_cache *cache, const struct krp_key *key,
					      u64 hash)
{
	struct krc_cache_entry *entry;

	hlist_for_each_entry_rcu(entry, &cache->buckets[hash & cache->mask], chain,
				 lockdep_is_held(&cache->lock))
		if (!memcmp(&entry->key, key, sizeof(*key)))
			return entry;
	return NULL;
}

int krc_cache_get(struct krc_cache *cache, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_cache_entry *entry;
	int err = -ENOENT;

	rcu_read_lock();
	entry = krc_cache_find(cache, key, krc_cache_hash(cache, key));
	if (entry) {
		*ret_value = entry->value; /* an entry never changes its value */
		err = READ_ONCE(entry->doubted) || READ_ONCE(entry->epoch) < READ_ONCE(cache->floor)
			      ? -ESTALE
			      : 0;
		if (!READ_ONCE(entry->used))
			WRITE_ONCE(entry->used, true);
	}
	rcu_read_unlock();
	if (err)
		this_cpu_inc(cache->counts->misses);
	else
		this_cpu_inc(cache->counts->hits);
	return err;
}

/* Whether a key was invalidated after an epoch. */
static bool krc_cache_overtaken(const struct krc_cache *cache, u64 hash, u64 epoch)
{
	u64 e;

	lockdep_assert_held(&cache->lock);
	if (epoch < cache->floor || cache->epoch - epoch > KRC_CACHE_RECENT)
		return true;
	for (e = epoch; e < cache->epoch; e++)
		if (cache->recent[e % KRC_CACHE_RECENT] == hash)
			return true;
	return false;
}

static void krc_cache_make_room(struct krc_cache *cache)
{
	struct krc_cache_entry *entry;
	int chances = KRC_CACHE_CHANCES;

	lockdep_assert_held(&cache->lock);
	while (cache->entries >= cache->entries_max) {
		entry = list_last_entry(&cache->age, struct krc_cache_entry, age);
		if (READ_ONCE(entry->used) && chances-- > 0) {
			WRITE_ONCE(entry->used, false);
			list_move(&entry->age, &cache->age);
			continue;
		}
		krc_cache_drop(cache, entry);
		cache->evictions++;
	}
}

void krc_cache_bound(struct krc_cache *cache, u32 entries_max)
{
	spin_lock_bh(&cache->lock);
	cache->entries_max = max(entries_max, 1U);
	krc_cache_make_room(cache);
	spin_unlock_bh(&cache->lock);
}

static int krc_cache_place(struct krc_cache *cache, struct krc_cache_entry *entry, u64 hash,
			   u64 epoch)
{
	struct krc_cache_entry *old;

	lockdep_assert_held(&cache->lock);
	if (krc_cache_overtaken(cache, hash, epoch))
		return -ESTALE;
	old = krc_cache_find(cache, &entry->key, hash);
	if (old && le64_to_cpu(old->value.generation) > le64_to_cpu(entry->value.generation))
		return -ESTALE;
	if (old)
		krc_cache_drop(cache, old);
	else
		krc_cache_make_room(cache);
	hlist_add_head_rcu(&entry->chain, &cache->buckets[hash & cache->mask]);
	list_add(&entry->age, &cache->age);
	cache->entries++;
	return 0;
}

/* No memory to cache a value: drop the older one, which is outdated. */
static void krc_cache_outdate(struct krc_cache *cache, const struct krp_key *key,
			      const struct krp_value *value)
{
	struct krc_cache_entry *old;

	spin_lock_bh(&cache->lock);
	old = krc_cache_find(cache, key, krc_cache_hash(cache, key));
	if (old && le64_to_cpu(old->value.generation) <= le64_to_cpu(value->generation))
		krc_cache_drop(cache, old);
	spin_unlock_bh(&cache->lock);
}

/* The cache has this very value: note that it was READ again. Return: false if it has not. */
static bool krc_cache_renew(struct krc_cache *cache, const struct krp_key *key, u64 hash,
			    const struct krp_value *value, u64 epoch)
{
	struct krc_cache_entry *entry;
	bool same;

	spin_lock_bh(&cache->lock);
	entry = krc_cache_find(cache, key, hash);
	same = entry && !memcmp(&entry->value, value, sizeof(*value)) &&
	       !krc_cache_overtaken(cache, hash, epoch);
	if (same) {
		WRITE_ONCE(entry->put_at, jiffies);
		WRITE_ONCE(entry->epoch, max(entry->epoch, epoch));
		WRITE_ONCE(entry->doubted, false);
		list_move(&entry->age, &cache->age);
	}
	spin_unlock_bh(&cache->lock);
	return same;
}

int krc_cache_put(struct krc_cache *cache, const struct krp_key *key, const struct krp_value *value,
		  u64 epoch)
{
	u64 hash = krc_cache_hash(cache, key);
	struct krc_cache_entry *entry;
	int err;

	if (krc_cache_renew(cache, key, hash, value, epoch))
		return 0;
	entry = kzalloc(sizeof(*entry), GFP_ATOMIC | __GFP_NOWARN);
	if (!entry) {
		krc_cache_outdate(cache, key, value);
		return -ENOMEM;
	}
	entry->key = *key;
	entry->value = *value;
	entry->put_at = jiffies;
	entry->epoch = epoch;
	spin_lock_bh(&cache->lock);
	err = krc_cache_place(cache, entry, hash, epoch);
	spin_unlock_bh(&cache->lock);
	if (err)
		kfree(entry);
	return err;
}

u64 krc_cache_epoch(struct krc_cache *cache)
{
	u64 epoch;

	spin_lock_bh(&cache->lock);
	epoch = cache->epoch;
	spin_unlock_bh(&cache->lock);
	return epoch;
}

/* Refuse what was READ of a key until now. Return: its entry, if that is no newer, or NULL. */
static struct krc_cache_entry *krc_cache_invalidate(struct krc_cache *cache,
						    const struct krp_key *key, u64 generation)
{
	u64 hash = krc_cache_hash(cache, key);
	struct krc_cache_entry *entry;

	lockdep_assert_held(&cache->lock);
	cache->recent[cache->epoch % KRC_CACHE_RECENT] = hash;
	cache->epoch++;
	entry = krc_cache_find(cache, key, hash);
	if (!entry || le64_to_cpu(entry->value.generation) > generation)
		return NULL;
	cache->invalidations++;
	return entry;
}

void krc_cache_forget(struct krc_cache *cache, const struct krp_key *key, u64 generation)
{
	struct krc_cache_entry *entry;

	spin_lock_bh(&cache->lock);
	entry = krc_cache_invalidate(cache, key, generation);
	if (entry)
		krc_cache_drop(cache, entry);
	spin_unlock_bh(&cache->lock);
}

void krc_cache_doubt(struct krc_cache *cache, const struct krp_key *key, u64 generation)
{
	struct krc_cache_entry *entry;

	spin_lock_bh(&cache->lock);
	entry = krc_cache_invalidate(cache, key, generation);
	if (entry)
		WRITE_ONCE(entry->doubted, true);
	spin_unlock_bh(&cache->lock);
}

/* Refuse what was READ until now, and doubt what is cached of it. */
static void krc_cache_raise(struct krc_cache *cache)
{
	lockdep_assert_held(&cache->lock);
	cache->epoch++;
	WRITE_ONCE(cache->floor, cache->epoch);
	cache->invalidations += cache->entries;
}

void krc_cache_doubt_all(struct krc_cache *cache)
{
	spin_lock_bh(&cache->lock);
	krc_cache_raise(cache);
	spin_unlock_bh(&cache->lock);
}

void krc_cache_forget_all(struct krc_cache *cache)
{
	spin_lock_bh(&cache->lock);
	krc_cache_raise(cache);
	krc_cache_drop_all(cache);
	spin_unlock_bh(&cache->lock);
}

/* Show a bucket. Return: what @fn has refused it with, or 0. */
static int krc_cache_walk_bucket(struct krc_cache *cache, struct krc_cache_at *at,
				 int (*fn)(const struct krp_key *key, const struct krp_value *value,
					   u32 age_ms, void *arg),
				 void *arg)
{
	struct krc_cache_entry *entry;
	unsigned long now = jiffies;
	u32 nth = 0;
	int ret = 0;

	rcu_read_lock();
	hlist_for_each_entry_rcu(entry, &cache->buckets[at->bucket], chain) {
		if (nth++ < at->nth)
			continue;
		ret = fn(&entry->key, &entry->value,
			 jiffies_to_msecs(now - READ_ONCE(entry->put_at)), arg);
		if (ret)
			break;
		at->nth = nth;
	}
	rcu_read_unlock();
	return ret;
}

void krc_cache_walk(struct krc_cache *cache, struct krc_cache_at *at,
		    int (*fn)(const struct krp_key *key, const struct krp_value *value, u32 age_ms,
			      void *arg),
		    void *arg)
{
	while (at->bucket <= cache->mask && !krc_cache_walk_bucket(cache, at, fn, arg)) {
		at->bucket++;
		at->nth = 0;
		cond_resched();
	}
}

void krc_cache_stats(struct krc_cache *cache, struct krc_cache_stats *ret_stats)
{
	int cpu;

	memset(ret_stats, 0, sizeof(*ret_stats));
	spin_lock_bh(&cache->lock);
	ret_stats->entries = cache->entries;
	ret_stats->entries_max = cache->entries_max;
	ret_stats->evictions = cache->evictions;
	ret_stats->invalidations = cache->invalidations;
	spin_unlock_bh(&cache->lock);
	for_each_possible_cpu(cpu) {
		const struct krc_cache_counts *counts = per_cpu_ptr(cache->counts, cpu);

		ret_stats->hits += counts->hits;
		ret_stats->misses += counts->misses;
	}
}
