// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the node's cache of metadata. What is put is got, an older generation never
 * replaces a newer one, an invalidation beats a READ that began before it, room is made
 * by forgetting what is not used.
 * Part of krcore_test.ko, which holds what it tests and needs no krcore.ko.
 */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/module.h>

#include "meta/cache.c"

static struct krp_key krc_test_key(u32 nr)
{
	struct krp_key key = { .gid = { 0xfe, 0x80 }, .service = cpu_to_le16(7) };

	memcpy(&key.gid[12], &nr, sizeof(nr));
	return key;
}

static int krc_test_put(struct krc_cache *cache, u32 nr, u64 generation, u64 epoch)
{
	struct krp_key key = krc_test_key(nr);
	struct krp_value value = { .generation = cpu_to_le64(generation), .kind = KRP_KIND_RAW };

	memcpy(value.raw, &nr, sizeof(nr));
	return krc_cache_put(cache, &key, &value, epoch);
}

/* Generation of an entry, 0 if there is none. */
static u64 krc_test_get(struct krc_cache *cache, u32 nr)
{
	struct krp_key key = krc_test_key(nr);
	struct krp_value value;

	if (krc_cache_get(cache, &key, &value))
		return 0;
	return memcmp(value.raw, &nr, sizeof(nr)) ? U64_MAX : le64_to_cpu(value.generation);
}

static struct krc_cache *krc_test_cache(struct kunit *test, u32 entries_max)
{
	struct krc_cache *cache = krc_cache_create(entries_max);

	KUNIT_ASSERT_FALSE(test, IS_ERR(cache));
	return cache;
}

static void krc_test_put_and_get(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);
	struct krc_cache_stats stats;

	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 2), 0ULL);
	krc_cache_stats(cache, &stats);
	KUNIT_EXPECT_EQ(test, stats.entries, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.entries_max, 8ULL);
	KUNIT_EXPECT_EQ(test, stats.hits, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.misses, 2ULL);
	krc_cache_destroy(cache);
}

static void krc_test_generations(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 9, 0), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 11, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 11ULL);
	krc_cache_destroy(cache);
}

/* A value that is READ again: the entry stays, is as young as a new one, and in doubt no more. */
static void krc_test_renew(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 2);
	struct krp_key key = krc_test_key(1);
	struct krc_cache_entry *entry;
	u64 epoch = krc_cache_epoch(cache);

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 10, epoch), 0);
	entry = list_last_entry(&cache->age, struct krc_cache_entry, age);
	krc_cache_doubt_all(cache);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	/* READ before the doubt: refused, and in doubt as before */
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	epoch = krc_cache_epoch(cache);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	KUNIT_EXPECT_PTR_EQ(test, entry,
			    list_first_entry(&cache->age, struct krc_cache_entry, age));
	KUNIT_EXPECT_EQ(test, cache->entries, 2U);
	/* a forgotten one is not renewed by what was READ before */
	krc_cache_forget(cache, &key, 10);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	krc_cache_destroy(cache);
}

/* The record of a peer that does not answer stays, in doubt, until it is READ again. */
static void krc_test_doubt_of_one(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);
	struct krp_key key = krc_test_key(1);
	u64 epoch = krc_cache_epoch(cache);
	struct krp_value value;

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 10, epoch), 0);
	krc_cache_doubt(cache, &key, 9); /* a newer one has come meanwhile */
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	krc_cache_doubt(cache, &key, 10);
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &key, &value), -ESTALE);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(value.generation), 10ULL);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 2), 10ULL);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), -ESTALE); /* READ before */
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &key, &value), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, krc_cache_epoch(cache)), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	krc_cache_doubt(cache, &key, U64_MAX);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 11, krc_cache_epoch(cache)), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 11ULL);
	krc_cache_destroy(cache);
}

static void krc_test_forget(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);
	struct krp_key key = krc_test_key(1);
	u64 epoch = krc_cache_epoch(cache);

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	krc_cache_forget(cache, &key, 9);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 10ULL);
	krc_cache_forget(cache, &key, 10);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	/* it was READ before it was invalidated; another key was not */
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, krc_cache_epoch(cache)), 0);
	krc_cache_forget_all(cache);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 3, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 3, 10, krc_cache_epoch(cache)), 0);
	krc_cache_destroy(cache);
}

/* Notifications may have been missed: nothing is lost, but nothing is believed unasked. */
static void krc_test_doubt(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);
	struct krp_key one = krc_test_key(1);
	struct krc_cache_stats stats;
	struct krp_value value = {};
	u64 epoch = krc_cache_epoch(cache);

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 20, epoch), 0);
	krc_cache_doubt_all(cache);
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &one, &value), -ESTALE);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(value.generation), 10ULL);
	krc_cache_stats(cache, &stats);
	KUNIT_EXPECT_EQ(test, stats.entries, 2ULL);
	KUNIT_EXPECT_EQ(test, stats.invalidations, 2ULL);
	KUNIT_EXPECT_EQ(test, stats.hits, 0ULL);
	/* what was READ before is no confirmation, what is READ now is, of the one record */
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 11, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, krc_cache_epoch(cache)), 0);
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &one, &value), 0);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 2), 0ULL);
	krc_cache_doubt_all(cache);
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &one, &value), -ESTALE);
	krc_cache_forget(cache, &one, 10);
	KUNIT_EXPECT_EQ(test, krc_cache_get(cache, &one, &value), -ENOENT);
	krc_cache_destroy(cache);
}

/* More invalidations than are remembered one by one: then no old READ is believed. */
static void krc_test_forget_many(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 8);
	u64 epoch = krc_cache_epoch(cache);
	struct krp_key key;
	u32 i;

	for (i = 0; i < 64; i++) {
		key = krc_test_key(100 + i);
		krc_cache_forget(cache, &key, U64_MAX);
	}
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 1, 10, epoch), 0);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 100, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 163, 10, epoch), -ESTALE);
	krc_cache_forget(cache, &key, U64_MAX);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 10, epoch), -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 2, 10, epoch + 1), 0);
	krc_cache_destroy(cache);
}

static int krc_test_count(const struct krp_key *key, const struct krp_value *value, u32 age_ms,
			  void *arg)
{
	u32 *left = arg;

	*left -= !!*left;
	return !*left;
}

static void krc_test_bounded(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 100);
	struct krc_cache_stats stats;
	struct krc_cache_at at = {};
	u32 i, left = 31;

	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 0, 1, 0), 0);
	for (i = 1; i < 1000; i++) {
		KUNIT_EXPECT_EQ(test, krc_test_put(cache, i, 1, 0), 0);
		KUNIT_EXPECT_EQ(test, krc_test_get(cache, 0), 1ULL); /* in use: it stays */
	}
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 999), 1ULL);
	KUNIT_EXPECT_EQ(test, krc_test_get(cache, 899), 0ULL);
	krc_cache_stats(cache, &stats);
	KUNIT_EXPECT_EQ(test, stats.entries, 100ULL);
	KUNIT_EXPECT_EQ(test, stats.evictions, 900ULL);
	krc_cache_walk(cache, &at, krc_test_count, &left); /* the 31st is refused */
	KUNIT_EXPECT_EQ(test, left, 0U);
	left = 1000;
	krc_cache_walk(cache, &at, krc_test_count, &left); /* and goes on with it */
	KUNIT_EXPECT_EQ(test, left, 1000U - 70);
	krc_cache_walk(cache, &at, krc_test_count, &left);
	KUNIT_EXPECT_EQ(test, left, 1000U - 70);
	krc_cache_destroy(cache);
}

/* All are in use: one has to go all the same. */
static void krc_test_all_in_use(struct kunit *test)
{
	struct krc_cache *cache = krc_test_cache(test, 64);
	struct krc_cache_stats stats;
	u32 i;

	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, krc_test_put(cache, i, 1, 0), 0);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, krc_test_get(cache, i), 1ULL);
	KUNIT_EXPECT_EQ(test, krc_test_put(cache, 64, 1, 0), 0);
	krc_cache_stats(cache, &stats);
	KUNIT_EXPECT_EQ(test, stats.entries, 64ULL);
	KUNIT_EXPECT_EQ(test, stats.evictions, 1ULL);
	krc_cache_destroy(cache);
}

static struct kunit_case krc_cache_cases[] = {
	KUNIT_CASE(krc_test_put_and_get),  KUNIT_CASE(krc_test_generations),
	KUNIT_CASE(krc_test_doubt_of_one), KUNIT_CASE(krc_test_forget),
	KUNIT_CASE(krc_test_renew),	   KUNIT_CASE(krc_test_doubt),
	KUNIT_CASE(krc_test_forget_many),  KUNIT_CASE(krc_test_bounded),
	KUNIT_CASE(krc_test_all_in_use),   {}
};

static struct kunit_suite krc_cache_suite = {
	.name = "krcore_cache",
	.test_cases = krc_cache_cases,
};

kunit_test_suites(&krc_cache_suite);

MODULE_DESCRIPTION("KUnit suites of krcore");
MODULE_LICENSE("GPL");
