// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: keys of NICs without DC: that a key is of exactly its pages and rights, what it is called,
 * and that one that a peer has undone is made again. The device is the test's, in memory; the
 * queue pair that registers is there already.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "hw/verbs/verbs.h"
#include "tests/krc_test_wait.h"

#define KRC_TEST_PAGES 8
#define KRC_TEST_MRS 4
#define KRC_TEST_INDEX 0x777

/**
 * struct krc_test_mr - A list of the device.
 * @mr: ib_core's part.
 * @most: pages that it has room for.
 * @pages: their addresses.
 * @nr: how many.
 * @lives: it was not deregistered.
 * @valid: it is registered.
 * @access: with which rights, IB_ACCESS_*.
 * @registered: how often it was.
 */
struct krc_test_mr {
	struct ib_mr mr;
	u32 most;
	u64 pages[KRC_TEST_PAGES];
	u32 nr;
	bool lives;
	bool valid;
	int access;
	u32 registered;
};

/**
 * struct krc_test_keys_device - A device.
 * @ibdev: it; first, as ib_alloc_device() wants it.
 */
struct krc_test_keys_device {
	struct ib_device ibdev;
};

/**
 * struct krc_test_keys - What a test has.
 * @test: it.
 * @dev: device.
 * @v: the provider's part.
 * @driver: what its driver can.
 * @pd: protection domain.
 * @port_data: of the device, by port: it has no address by which another one could be made.
 * @qp: registers.
 * @fails: so many registrations fail; counted down.
 * @at: lists that were made, in order.
 * @nr: how many.
 */
struct krc_test_keys {
	struct kunit *test;
	struct krc_test_keys_device *dev;
	struct krc_verbs v;
	struct krc_verbs_driver driver;
	struct ib_pd pd;
	struct ib_port_data port_data[2];
	struct ib_qp qp;
	u32 fails;
	struct krc_test_mr at[KRC_TEST_MRS];
	u32 nr;
};

static struct krc_test_keys *krc_test_keys; /* the device's functions have no other way to it */

/* ---- the device */

static struct ib_mr *krc_test_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max)
{
	struct krc_test_keys *k = krc_test_keys;
	struct krc_test_mr *mr = &k->at[k->nr];

	if (k->nr == KRC_TEST_MRS || max > KRC_TEST_PAGES)
		return ERR_PTR(-ENOMEM);
	k->nr++;
	memset(mr, 0, sizeof(*mr));
	mr->most = max;
	mr->lives = true;
	/* one index again and again, as a device may choose it whose last key is gone */
	mr->mr.rkey = KRC_TEST_INDEX << 8 | 0x55;
	mr->mr.lkey = mr->mr.rkey;
	return &mr->mr;
}

static int krc_test_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct krc_test_mr *mr = container_of(ibmr, struct krc_test_mr, mr);

	if (mr->nr == mr->most)
		return -ENOMEM;
	mr->pages[mr->nr++] = addr;
	return 0;
}

static int krc_test_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			      unsigned int *offset)
{
	return ib_sg_to_pages(mr, sg, nents, offset, krc_test_set_page);
}

static int krc_test_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct krc_test_mr *mr = container_of(ibmr, struct krc_test_mr, mr);

	mr->lives = false;
	mr->valid = false;
	return 0;
}

static int krc_test_register(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad_wr)
{
	struct krc_test_mr *mr = container_of(reg_wr(wr)->mr, struct krc_test_mr, mr);
	struct ib_wc wc = { .wr_cqe = wr->wr_cqe, .status = IB_WC_SUCCESS };

	KUNIT_EXPECT_EQ(krc_test_keys->test, (u32)wr->opcode, (u32)IB_WR_REG_MR);
	KUNIT_EXPECT_TRUE(krc_test_keys->test, mr->lives && !mr->valid);
	KUNIT_EXPECT_EQ(krc_test_keys->test, reg_wr(wr)->key, mr->mr.rkey);
	if (krc_test_keys->fails) {
		WRITE_ONCE(krc_test_keys->fails, krc_test_keys->fails - 1);
		return -EINVAL;
	}
	mr->valid = true;
	mr->access = reg_wr(wr)->access;
	mr->registered++;
	wr->wr_cqe->done(NULL, &wc);
	return 0;
}

/* ---- the world */

static int krc_test_keys_init(struct kunit *test)
{
	struct krc_test_keys *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, k);
	krc_test_keys = k;
	test->priv = k;
	k->test = test;
	k->dev = ib_alloc_device(krc_test_keys_device, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, k->dev);
	k->dev->ibdev.ops.alloc_mr = krc_test_alloc_mr;
	k->dev->ibdev.ops.map_mr_sg = krc_test_map_mr_sg;
	k->dev->ibdev.ops.dereg_mr = krc_test_dereg_mr;
	k->dev->ibdev.ops.post_send = krc_test_register;
	k->dev->ibdev.port_data = k->port_data;
	k->pd.device = &k->dev->ibdev;
	k->qp.device = &k->dev->ibdev;
	atomic_set(&k->qp.usecnt, 1); /* it is no queue pair that could be destroyed */
	k->driver.key_pages = KRC_TEST_PAGES;
	k->v.ibdev = &k->dev->ibdev;
	k->v.pd = &k->pd;
	k->v.driver = &k->driver;
	k->v.attr.atomics = true;
	KUNIT_ASSERT_EQ(test, krc_verbs_keys_init(&k->v), 0);
	k->v.register_qp = &k->qp;
	return 0;
}

static void krc_test_keys_exit(struct kunit *test)
{
	struct krc_test_keys *k = krc_test_keys;
	u32 i;

	for (i = 0; i < k->nr; i++)
		KUNIT_EXPECT_FALSE(test, k->at[i].lives);
	KUNIT_EXPECT_TRUE(test, xa_empty(&k->v.keys));
	k->v.register_qp = NULL;
	krc_verbs_keys_fini(&k->v);
	k->dev->ibdev.port_data = NULL; /* ib_core would free it */
	ib_dealloc_device(&k->dev->ibdev);
	krc_test_keys = NULL;
}

static struct krc_hw *krc_test_keys_hw(struct krc_test_keys *k)
{
	return (struct krc_hw *)&k->v;
}

/* Memory of @bytes from @address on, whose pages are no neighbours to the device. */
static struct ib_umem *krc_test_keys_umem(struct kunit *test, u64 address, u64 bytes)
{
	struct ib_umem *umem = kunit_kzalloc(test, sizeof(*umem), GFP_KERNEL);
	struct scatterlist *sgl, *sg;
	u32 nr, i;

	KUNIT_ASSERT_NOT_NULL(test, umem);
	umem->address = address;
	umem->length = bytes;
	nr = ib_umem_num_pages(umem);
	sgl = kunit_kcalloc(test, nr, sizeof(*sgl), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sgl);
	sg_init_table(sgl, nr);
	for_each_sg(sgl, sg, nr, i) {
		sg_dma_address(sg) = (dma_addr_t)(2 * i + 1) << PAGE_SHIFT;
		sg_dma_len(sg) = PAGE_SIZE;
	}
	umem->sgt_append.sgt = (struct sg_table){ .sgl = sgl, .nents = nr, .orig_nents = nr };
	return umem;
}

/* ---- cases */

/* A range that begins and ends within pages: no byte before or behind it, and no right more. */
static void krc_test_a_range_exactly(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	struct ib_umem *umem = krc_test_keys_umem(test, 0x10123, 2 * PAGE_SIZE + 7);
	struct krc_hw_key key = {};
	const struct krc_test_mr *mr = &k->at[0];
	u32 i;

	KUNIT_ASSERT_EQ(test,
			krc_verbs_key_umem(krc_test_keys_hw(k), umem, 0x10123,
					   KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_WRITE, &key),
			0);
	KUNIT_EXPECT_EQ(test, mr->nr, 3U);
	for (i = 0; i < mr->nr; i++)
		KUNIT_EXPECT_EQ(test, mr->pages[i], (u64)(2 * i + 1) << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, mr->mr.iova, 0x10123ULL);
	KUNIT_EXPECT_EQ(test, mr->mr.length, 2 * PAGE_SIZE + 7ULL);
	KUNIT_EXPECT_TRUE(test, mr->valid);
	KUNIT_EXPECT_EQ(test, mr->access, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, key.rkey, mr->mr.rkey);
	KUNIT_EXPECT_EQ(test, key.lkey, mr->mr.lkey);
	KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
}

/* Each right is one right. */
static void krc_test_rights(struct kunit *test)
{
	static const struct {
		u32 access;
		int is;
	} rights[] = {
		{ KRP_ACCESS_LOCAL_WRITE, IB_ACCESS_LOCAL_WRITE },
		{ KRP_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_READ },
		{ KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_ATOMIC,
		  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC },
		{ 0, 0 },
	};
	struct krc_test_keys *k = test->priv;
	dma_addr_t pages[] = { 0x5000, 0x3000 };
	struct krc_hw_key key = {};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		KUNIT_ASSERT_EQ(test,
				krc_verbs_key_pages(krc_test_keys_hw(k), pages, 2, 0x100000,
						    rights[i].access, &key),
				0);
		KUNIT_EXPECT_EQ(test, k->at[i].access, rights[i].is);
		KUNIT_EXPECT_EQ(test, k->at[i].mr.iova, 0x100000ULL);
		KUNIT_EXPECT_EQ(test, k->at[i].mr.length, 2ULL * PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, k->at[i].pages[0], 0x5000ULL);
		KUNIT_EXPECT_EQ(test, k->at[i].pages[1], 0x3000ULL);
		KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
	}
}

/* What no key is made of: nothing is left of it. */
static void krc_test_no_key(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	struct krc_hw *hw = krc_test_keys_hw(k);
	struct ib_umem *umem = krc_test_keys_umem(test, 0x10000, PAGE_SIZE);
	struct krc_hw_key key = { .handle = 77 };
	dma_addr_t page = 0x1000;

	KUNIT_EXPECT_EQ(test, krc_verbs_key_umem(hw, umem, 0x10010, KRP_ACCESS_REMOTE_READ, &key),
			-EINVAL); /* another place in its page */
	KUNIT_EXPECT_EQ(test, krc_verbs_key_umem(hw, umem, 0x10000, KRP_ACCESS_REMOTE_WRITE, &key),
			-EINVAL); /* without the local right */
	KUNIT_EXPECT_EQ(test, krc_verbs_key_umem(hw, umem, 0x10000, 1U << 30, &key), -EINVAL);
	umem = krc_test_keys_umem(test, 0x10000, (KRC_TEST_PAGES + 1) * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, krc_verbs_key_umem(hw, umem, 0x10000, KRP_ACCESS_REMOTE_READ, &key),
			-E2BIG);
	KUNIT_EXPECT_EQ(test, krc_verbs_key_pages(hw, &page, 0, 0x10000, 0, &key), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_verbs_key_pages(hw, &page, 1, 0x10001, 0, &key), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_verbs_key_dma(hw, 0x1000, 0, 0, &key), -EINVAL);
	k->v.attr.atomics = false;
	KUNIT_EXPECT_EQ(test,
			krc_verbs_key_pages(hw, &page, 1, 0x10000,
					    KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_ATOMIC,
					    &key),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, key.handle, 77U);
	KUNIT_EXPECT_EQ(test, k->nr, 0U);
}

/* Contiguous memory, from within a page. */
static void krc_test_dma(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	struct krc_hw_key key = {};

	KUNIT_ASSERT_EQ(test,
			krc_verbs_key_dma(krc_test_keys_hw(k), 0x7010, PAGE_SIZE,
					  KRP_ACCESS_LOCAL_WRITE, &key),
			0);
	KUNIT_EXPECT_EQ(test, k->at[0].nr, 2U);
	KUNIT_EXPECT_EQ(test, k->at[0].mr.iova, 0x7010ULL);
	KUNIT_EXPECT_EQ(test, k->at[0].mr.length, (u64)PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
}

/* A device that chooses one index again: a name that peers know is not that of the next key. */
static void krc_test_the_next_name(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	dma_addr_t page = 0x1000;
	struct krc_hw_key key = {};
	u32 i, last = 0;

	for (i = 0; i < KRC_TEST_MRS; i++) {
		KUNIT_ASSERT_EQ(test,
				krc_verbs_key_pages(krc_test_keys_hw(k), &page, 1, 0x100000,
						    KRP_ACCESS_REMOTE_READ, &key),
				0);
		KUNIT_EXPECT_EQ(test, key.rkey >> 8, (u32)KRC_TEST_INDEX);
		if (i)
			KUNIT_EXPECT_EQ(test, key.rkey & 0xff, (last + 1) & 0xff);
		last = key.rkey;
		key.known = true;
		KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
	}
}

/* A peer takes the rights of a key: it has them again, and its name; one that is gone has none. */
static void krc_test_a_key_is_undone(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	struct krc_test_mr *mr = &k->at[0];
	dma_addr_t page = 0x1000;
	struct krc_hw_key key = {};
	u32 rkey;

	KUNIT_ASSERT_EQ(test,
			krc_verbs_key_pages(krc_test_keys_hw(k), &page, 1, 0x100000,
					    KRP_ACCESS_REMOTE_READ, &key),
			0);
	rkey = mr->mr.rkey;
	mr->valid = false;
	krc_verbs_key_undone(&k->v, key.rkey + (1 << 8)); /* another one */
	flush_delayed_work(&k->v.restore);
	KUNIT_EXPECT_FALSE(test, mr->valid);
	krc_verbs_key_undone(&k->v, key.rkey);
	flush_delayed_work(&k->v.restore);
	KUNIT_EXPECT_TRUE(test, mr->valid);
	KUNIT_EXPECT_EQ(test, mr->registered, 2U);
	KUNIT_EXPECT_EQ(test, mr->mr.rkey, rkey);
	KUNIT_EXPECT_EQ(test, mr->access, IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, mr->mr.iova, 0x100000ULL);
	KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
	krc_verbs_key_undone(&k->v, key.rkey);
	flush_delayed_work(&k->v.restore);
	KUNIT_EXPECT_FALSE(test, mr->valid);
	KUNIT_EXPECT_EQ(test, mr->registered, 2U);
}

/* Return: whether no key waits to be made again; while one is tried its mark is gone, too. */
static bool krc_test_none_waits(struct krc_verbs *v)
{
	bool none;

	mutex_lock(&v->register_lock);
	none = !v->restore_tries && !xa_marked(&v->keys, XA_MARK_0);
	mutex_unlock(&v->register_lock);
	return none;
}

/* The queue pair that registers fails just then: the key is made again when there is one. */
static void krc_test_a_key_is_made_again_later(struct kunit *test)
{
	struct krc_test_keys *k = test->priv;
	struct krc_test_mr *mr = &k->at[0];
	dma_addr_t page = 0x1000;
	struct krc_hw_key key = {};

	KUNIT_ASSERT_EQ(test,
			krc_verbs_key_pages(krc_test_keys_hw(k), &page, 1, 0x100000,
					    KRP_ACCESS_REMOTE_READ, &key),
			0);
	mr->valid = false;
	k->fails = 1;
	krc_verbs_key_undone(&k->v, key.rkey);
	krc_test_wait(test, !READ_ONCE(k->fails));
	mutex_lock(&k->v.register_lock);
	KUNIT_EXPECT_NULL(test, k->v.register_qp);
	KUNIT_EXPECT_FALSE(test, mr->valid);
	k->v.register_qp = &k->qp;
	mutex_unlock(&k->v.register_lock);
	krc_test_wait(test, READ_ONCE(mr->valid));
	KUNIT_EXPECT_EQ(test, mr->registered, 2U);
	/* but not for ever */
	mr->valid = false;
	k->v.register_qp = NULL;
	krc_verbs_key_undone(&k->v, key.rkey);
	krc_test_wait(test, krc_test_none_waits(&k->v));
	flush_delayed_work(&k->v.restore);
	KUNIT_EXPECT_EQ(test, k->v.restore_tries, 0U);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&k->v.restore));
	KUNIT_EXPECT_FALSE(test, mr->valid);
	KUNIT_EXPECT_TRUE(test, krc_verbs_key_destroy(krc_test_keys_hw(k), &key));
}

static struct kunit_case krc_verbs_key_cases[] = { KUNIT_CASE(krc_test_a_range_exactly),
						   KUNIT_CASE(krc_test_rights),
						   KUNIT_CASE(krc_test_no_key),
						   KUNIT_CASE(krc_test_dma),
						   KUNIT_CASE(krc_test_the_next_name),
						   KUNIT_CASE(krc_test_a_key_is_undone),
						   KUNIT_CASE(krc_test_a_key_is_made_again_later),
						   {} };

static struct kunit_suite krc_verbs_key_suite = {
	.name = "krcore_verbs_key",
	.init = krc_test_keys_init,
	.exit = krc_test_keys_exit,
	.test_cases = krc_verbs_key_cases,
};
kunit_test_suites(&krc_verbs_key_suite);
