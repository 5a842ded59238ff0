// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what a port has room for: neither a user nor a stranger takes all of it, or makes the way to it
 * longer for others.
 * Locking: a test runs alone.
 */
#include "krc_stream_test.h"

#define KRC_TEST_TAGS 8

/* Chains of streams that OPENs have made which are not empty. */
static u32 krc_test_chains(struct krc_messages *m)
{
	u32 i, chains = 0;

	spin_lock_bh(&m->lock);
	for (i = 0; i < HASH_SIZE(m->opens); i++)
		chains += !hlist_empty(&m->opens[i]);
	spin_unlock_bh(&m->lock);
	return chains;
}

/* Whoever knows the hash does not choose tags that all lie in one chain. */
static void krc_test_tags_that_meet(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[1].messages;
	struct krc_test_open packet;
	u64 tag;
	u32 nr;

	krc_test_listen(w, 4 * KRC_TEST_TAGS); /* of which no node gets more than half */
	krc_test_pair(w, 0);
	packet = krc_test_open_again(w, &w->side[0].end[0]);
	for (tag = 1, nr = 0; nr < KRC_TEST_TAGS; tag++) {
		if (hash_64(tag, HASH_BITS(m->opens)))
			continue;
		packet.open.tag = cpu_to_le64(tag);
		krc_test_forge(w, &packet, sizeof(packet));
		nr++;
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(m->streams_nr), 1U + KRC_TEST_TAGS);
	KUNIT_EXPECT_GT(test, krc_test_chains(m), 1U + KRC_TEST_TAGS / 4);
}

static struct kunit_case krc_room_cases[] = { KUNIT_CASE(krc_test_tags_that_meet), {} };

static struct kunit_suite krc_room_suite = {
	.name = "krcore_room",
	.init = krc_test_world_make,
	.exit = krc_test_world_end,
	.test_cases = krc_room_cases,
};
kunit_test_suite(krc_room_suite);
