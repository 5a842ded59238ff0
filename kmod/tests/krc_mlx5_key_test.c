// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: names of remote keys of mlx5: none comes again while a request that carries it may
 * be under way, whatever index the device gives out; and the parts of large ranges.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>

#include "hw/mlx5/mlx5.h"
#include "krp_ioctl.h"

#define KRC_TEST_START_S 1000
#define KRC_TEST_LONG_S 100000

static struct krc_hw *krc_test_hw(struct kunit *test)
{
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hw);
	xa_init(&hw->resting);
	return hw;
}

/* A key of the index is made, as often as it must be until its name is good. */
static u32 krc_test_key(struct kunit *test, struct krc_hw *hw, u32 index, u8 variant, u64 now_s)
{
	int tries;

	for (tries = 0; tries < 2; tries++) {
		u32 mkey = index << 8 | variant;

		if (!krc_mlx5_key_rested(hw, mkey, now_s, &variant))
			continue;
		KUNIT_EXPECT_EQ(test, krc_mlx5_key_begin(hw, mkey), 0);
		return mkey;
	}
	KUNIT_FAIL(test, "index 0x%x is refused twice", index);
	return 0;
}

static void krc_test_an_index_that_is_reused_at_once(struct kunit *test)
{
	struct krc_hw *hw = krc_test_hw(test);
	DECLARE_BITMAP(seen, 256) = {};
	u64 now_s = KRC_TEST_START_S;
	int i;

	/* whatever is asked for: 256 names, and then the first again */
	for (i = 0; i < 1000; i++) {
		u32 mkey = krc_test_key(test, hw, 0x1234, i * i, now_s + i / 4);

		if (i % 256 == 0)
			bitmap_zero(seen, 256);
		KUNIT_EXPECT_EQ(test, mkey >> 8, 0x1234);
		KUNIT_EXPECT_FALSE(test, __test_and_set_bit(mkey & 0xff, seen));
		krc_mlx5_key_rest(hw, mkey, true, now_s + i / 4);
	}
	xa_destroy(&hw->resting);
}

static void krc_test_names_that_nobody_knows(struct kunit *test)
{
	struct krc_hw *hw = krc_test_hw(test);
	u64 now_s = KRC_TEST_START_S;
	u32 first, mkey;
	u8 variant;
	int i;

	first = krc_test_key(test, hw, 7, 10, now_s);
	krc_mlx5_key_rest(hw, first, true, now_s);
	/* keys that no peer was told use no name up: who makes many does not bring one back */
	for (i = 0; i < 600; i++) {
		mkey = krc_test_key(test, hw, 7, i, now_s);
		KUNIT_EXPECT_EQ(test, mkey, first + 1);
		krc_mlx5_key_rest(hw, mkey, false, now_s);
	}
	/* nor do those that are closed to peers, which have any name */
	krc_mlx5_key_rest(hw, first, true, now_s);
	KUNIT_EXPECT_FALSE(test, krc_mlx5_key_rested(hw, first, now_s, &variant));
	KUNIT_EXPECT_EQ(test, variant, (u8)(first + 1));
	xa_destroy(&hw->resting);
}

static void krc_test_what_has_rested_is_forgotten(struct kunit *test)
{
	struct krc_hw *hw = krc_test_hw(test);
	u64 now_s = KRC_TEST_START_S;
	unsigned long index;
	u32 live, mkey, i;
	void *entry;
	u8 variant;

	live = krc_test_key(test, hw, 1, 200, now_s);
	for (i = 2; i < 3000; i++)
		krc_mlx5_key_rest(hw, krc_test_key(test, hw, i, i, now_s), true, now_s);
	now_s += KRC_TEST_LONG_S;
	KUNIT_EXPECT_TRUE(test, krc_mlx5_key_rested(hw, 5 << 8 | 77, now_s, &variant));
	KUNIT_EXPECT_FALSE(test, krc_mlx5_key_rested(hw, 1 << 8 | 77, now_s, &variant));
	for (i = 3000; i < 5000; i++)
		krc_mlx5_key_rest(hw, krc_test_key(test, hw, i, i, now_s), true, now_s);
	i = 0;
	xa_for_each(&hw->resting, index, entry)
		i++;
	KUNIT_EXPECT_EQ(test, i, 2001); /* those of now, and the one that lives */
	krc_mlx5_key_rest(hw, live, true, now_s);
	mkey = krc_test_key(test, hw, 1, 0, now_s);
	KUNIT_EXPECT_EQ(test, mkey, live + 1);
	xa_destroy(&hw->resting);
}

/* The parts of a range follow one another without gap, and none has more pages than it may. */
static void krc_test_tile(struct kunit *test, const struct krc_mlx5_range *r, u32 pages)
{
	u64 nr = DIV_ROUND_UP_ULL(krc_mlx5_range_pages(r), pages), at = r->iova;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct krc_mlx5_range part = krc_mlx5_range_part(r, pages, i);

		KUNIT_ASSERT_EQ(test, part.iova, at);
		KUNIT_ASSERT_GT(test, part.bytes, 0);
		KUNIT_EXPECT_LE(test, krc_mlx5_range_pages(&part), pages);
		KUNIT_EXPECT_EQ(test, part.page_shift, r->page_shift);
		KUNIT_EXPECT_EQ(test, part.access, r->access);
		if (i + 1 < nr)
			KUNIT_EXPECT_EQ(test, krc_mlx5_range_pages(&part), pages);
		at += part.bytes;
	}
	KUNIT_EXPECT_EQ(test, at, r->iova + r->bytes);
}

static void krc_test_parts_make_up_the_range(struct kunit *test)
{
	static const u32 page_shifts[] = { 12, 16, 21 };
	static const u64 sizes[] = { 1, 4095, 4096, 4097, 65536, 1 << 20, (5 << 20) + 77 };
	static const u32 pages[] = { 1, 2, 3, 16, KRC_MLX5_KEY_PAGES };
	static const u64 iovas[] = { 4096, 1, 4095, 0x7fff12345678, (1 << 30) - 1 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(page_shifts) * ARRAY_SIZE(sizes) * 5 * 5; i++) {
		struct krc_mlx5_range r = {
			.iova = iovas[i % 5],
			.bytes = sizes[i / 25 % ARRAY_SIZE(sizes)],
			.page_shift = page_shifts[i / 25 / ARRAY_SIZE(sizes)],
			.access = KRP_ACCESS_LOCAL_WRITE,
		};

		krc_test_tile(test, &r, pages[i / 5 % 5]);
	}
	/* 64 GiB of small pages, of which no part lists more than one key may */
	krc_test_tile(test,
		      &(struct krc_mlx5_range){
			      .iova = 0x7f0000000123, .bytes = 64ULL << 30, .page_shift = 12 },
		      KRC_MLX5_KEY_PAGES);
}

static struct kunit_case krc_mlx5_key_cases[] = { KUNIT_CASE(
							  krc_test_an_index_that_is_reused_at_once),
						  KUNIT_CASE(krc_test_names_that_nobody_knows),
						  KUNIT_CASE(krc_test_what_has_rested_is_forgotten),
						  KUNIT_CASE(krc_test_parts_make_up_the_range),
						  {} };

static struct kunit_suite krc_mlx5_key_suite = {
	.name = "krcore_mlx5_key",
	.test_cases = krc_mlx5_key_cases,
};
kunit_test_suite(krc_mlx5_key_suite);
