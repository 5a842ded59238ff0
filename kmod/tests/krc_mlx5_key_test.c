// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: names of remote keys of mlx5: none comes again while a request that carries it may
 * be under way, whatever index the device gives out; and the parts of large ranges.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>
#include <linux/sched/signal.h>

#include "hw/mlx5/mlx5.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

#define KRC_TEST_START_S 1000
#define KRC_TEST_LONG_S 100000

static struct krc_hw *krc_test_hw(struct kunit *test)
{
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hw);
	krc_rests_init(&hw->resting);
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
		KUNIT_EXPECT_EQ(test, krc_rests_begin(&hw->resting, mkey), 0);
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
		krc_rests_end(&hw->resting, mkey, true, now_s + i / 4);
	}
	krc_rests_fini(&hw->resting);
}

#define KRC_TEST_TURNS 10000

/*
 * The device gives out the same index at once, 10,000 times, and the one that asks for the keys
 * also chooses each low byte, and makes keys in between that no peer is told. A WRITE that was
 * posted in one lifetime of a name must find no key of that name for as long as a NIC holds it.
 */
static void krc_test_no_name_comes_back_in_time(struct kunit *test)
{
	u32 lifetime_ms = KRP_MRDIR_LEASE_MS + KRP_MRDIR_MARGIN_MS_MIN, i, n, mkey;
	struct krc_hw *hw = krc_test_hw(test);
	u64 *last = kunit_kcalloc(test, 256, sizeof(*last), GFP_KERNEL);
	u64 now_ms = KRC_TEST_START_S * MSEC_PER_SEC;

	KUNIT_ASSERT_NOT_NULL(test, last);
	for (i = 0; i < KRC_TEST_TURNS; i++) {
		for (n = i % 300; n; n -= min(n, 7U)) {
			mkey = krc_test_key(test, hw, 0x77, n, now_ms / MSEC_PER_SEC);
			krc_rests_end(&hw->resting, mkey, false, now_ms / MSEC_PER_SEC);
		}
		mkey = krc_test_key(test, hw, 0x77, 5, now_ms / MSEC_PER_SEC);
		if (last[mkey & 0xff])
			KUNIT_ASSERT_GE(test, now_ms, last[mkey & 0xff] + KRP_MRDIR_REST_MS);
		now_ms += lifetime_ms;
		last[mkey & 0xff] = now_ms;
		krc_rests_end(&hw->resting, mkey, true, now_ms / MSEC_PER_SEC);
	}
	krc_rests_fini(&hw->resting);
}

static void krc_test_names_that_nobody_knows(struct kunit *test)
{
	struct krc_hw *hw = krc_test_hw(test);
	u64 now_s = KRC_TEST_START_S;
	u32 first, mkey;
	u8 variant;
	int i;

	first = krc_test_key(test, hw, 7, 10, now_s);
	krc_rests_end(&hw->resting, first, true, now_s);
	/* keys that no peer was told use no name up: making many does not bring one back */
	for (i = 0; i < 600; i++) {
		mkey = krc_test_key(test, hw, 7, i, now_s);
		KUNIT_EXPECT_EQ(test, mkey, first + 1);
		krc_rests_end(&hw->resting, mkey, false, now_s);
	}
	/* nor do those that are closed to peers, which have any name */
	krc_rests_end(&hw->resting, first, true, now_s);
	KUNIT_EXPECT_FALSE(test, krc_mlx5_key_rested(hw, first, now_s, &variant));
	KUNIT_EXPECT_EQ(test, variant, (u8)(first + 1));
	krc_rests_fini(&hw->resting);
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
		krc_rests_end(&hw->resting, krc_test_key(test, hw, i, i, now_s), true, now_s);
	now_s += KRC_TEST_LONG_S;
	KUNIT_EXPECT_TRUE(test, krc_mlx5_key_rested(hw, 5 << 8 | 77, now_s, &variant));
	KUNIT_EXPECT_FALSE(test, krc_mlx5_key_rested(hw, 1 << 8 | 77, now_s, &variant));
	for (i = 3000; i < 5000; i++)
		krc_rests_end(&hw->resting, krc_test_key(test, hw, i, i, now_s), true, now_s);
	i = 0;
	xa_for_each(&hw->resting.at, index, entry)
		i++;
	KUNIT_EXPECT_EQ(test, i, 2001); /* those of now, and the one that lives */
	krc_rests_end(&hw->resting, live, true, now_s);
	mkey = krc_test_key(test, hw, 1, 0, now_s);
	KUNIT_EXPECT_EQ(test, mkey, live + 1);
	krc_rests_fini(&hw->resting);
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

#define KRC_TEST_PAGES 8

/* A device that can be asked what it can do, and nothing else. */
static struct krc_hw *krc_test_hw_large(struct kunit *test, u32 log_klms)
{
	struct mlx5_hca_cap *cap = kunit_kzalloc(test, sizeof(*cap), GFP_KERNEL);
	struct krc_hw *hw = krc_test_hw(test);

	hw->mdev = kunit_kzalloc(test, sizeof(*hw->mdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cap);
	KUNIT_ASSERT_NOT_NULL(test, hw->mdev);
	hw->mdev->caps.hca[MLX5_CAP_GENERAL] = cap;
	MLX5_SET(cmd_hca_cap, cap->cur, log_max_klm_list_size, log_klms);
	krc_turns_init(&hw->key_turns, 1, system_unbound_wq);
	hw->key_pages_max = 2;
	return hw;
}

/* Pages that no two are neighbours to the device. */
static struct ib_umem *krc_test_scattered(struct kunit *test)
{
	struct ib_umem *umem = kunit_kzalloc(test, sizeof(*umem), GFP_KERNEL);
	struct scatterlist *sgl = kunit_kcalloc(test, KRC_TEST_PAGES, sizeof(*sgl), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, umem);
	KUNIT_ASSERT_NOT_NULL(test, sgl);
	sg_init_table(sgl, KRC_TEST_PAGES);
	for (i = 0; i < KRC_TEST_PAGES; i++) {
		sgl[i].length = PAGE_SIZE;
		sg_dma_address(&sgl[i]) = (dma_addr_t)(2 * i + 1) << PAGE_SHIFT;
		sg_dma_len(&sgl[i]) = PAGE_SIZE;
	}
	umem->address = 0x10000;
	umem->iova = 0x10000;
	umem->length = KRC_TEST_PAGES * PAGE_SIZE;
	umem->sgt_append.sgt = (struct sg_table){ .sgl = sgl,
						  .nents = KRC_TEST_PAGES,
						  .orig_nents = KRC_TEST_PAGES };
	return umem;
}

static void krc_test_killed(bool yes)
{
	spin_lock_irq(&current->sighand->siglock);
	if (yes)
		sigaddset(&current->pending.signal, SIGKILL);
	else
		sigdelset(&current->pending.signal, SIGKILL);
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
}

/* A range of too many parts, and one whose task is killed: no key, no turn and no command. */
static void krc_test_large_ranges_that_fail(struct kunit *test)
{
	struct ib_umem *umem = krc_test_scattered(test);
	struct krc_hw_key key = { .handle = 77 };
	struct krc_hw *hw = krc_test_hw_large(test, 1);

	krc_test_killed(true);
	KUNIT_EXPECT_EQ(test, krc_mlx5_key_umem(hw, umem, umem->iova, KRP_ACCESS_LOCAL_WRITE, &key),
			-E2BIG);
	hw = krc_test_hw_large(test, 2);
	KUNIT_EXPECT_EQ(test, krc_mlx5_key_umem(hw, umem, umem->iova, KRP_ACCESS_LOCAL_WRITE, &key),
			-EINTR);
	krc_test_killed(false);
	KUNIT_EXPECT_EQ(test, key.handle, 77U);
	KUNIT_EXPECT_NULL(test, key.parts);
	KUNIT_EXPECT_EQ(test, hw->key_turns.free, 1U);
	KUNIT_EXPECT_TRUE(test, xa_empty(&hw->resting.at));
}

static struct kunit_case krc_mlx5_key_cases[] = { KUNIT_CASE(
							  krc_test_an_index_that_is_reused_at_once),
						  KUNIT_CASE(krc_test_no_name_comes_back_in_time),
						  KUNIT_CASE(krc_test_names_that_nobody_knows),
						  KUNIT_CASE(krc_test_large_ranges_that_fail),
						  KUNIT_CASE(krc_test_what_has_rested_is_forgotten),
						  KUNIT_CASE(krc_test_parts_make_up_the_range),
						  {} };

static struct kunit_suite krc_mlx5_key_suite = {
	.name = "krcore_mlx5_key",
	.test_cases = krc_mlx5_key_cases,
};
kunit_test_suite(krc_mlx5_key_suite);
