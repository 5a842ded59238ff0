// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the pure parts of krcore's memory and limits, without a device. Entries against
 * the golden vectors of user space (proto/vectors/mrdir.txt), slots and tokens of a
 * directory, local checks, references that must be refused before anything is READ, and
 * limits of a user.
 * In the module if it is made with KRC_KUNIT=y; runs when the module is loaded, after its
 * init, when no program has a context yet.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "base/limits.h"
#include "mem/mem_priv.h"
#include "mem/remote.h"
#include "fake_provider.h"
#include "krc_test_wait.h"

/* "live" of proto/vectors/mrdir.txt */
static const u8 krc_vector_live[KRP_MRDIR_ENTRY_BYTES] = {
	0x81, 0xb8, 0x5d, 0x41, 0x11, 0x88, 0x89, 0x19, 0x07, 0x00, 0x45, 0x23, 0x01,
	0xee, 0xff, 0xc0, 0x01, 0x60, 0x45, 0x23, 0x01, 0x7f, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x33, 0x32, 0x31, 0x07, 0x01, 0x00,
	0x00, 0xc8, 0x00, 0x00, 0x00, 0x2c, 0x01, 0x00, 0x00, 0x18, 0x17, 0x16, 0x15,
	0x14, 0x13, 0x12, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

#define KRC_VECTOR_TOKEN 0xc0ffee0123450007ULL
#define KRC_VECTOR_GENERATION 0x1112131415161718ULL
#define KRC_VECTOR_MARGIN_MS 300

static void krc_test_region(struct krc_mr *mr)
{
	memset(mr, 0, sizeof(*mr));
	mr->token = KRC_VECTOR_TOKEN;
	mr->addr = 0x7f0123456001ULL;
	mr->length = 0x10000;
	mr->key.rkey = 0x31323300;
	mr->access = KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_READ | KRP_ACCESS_REMOTE_WRITE;
}

static void krc_test_entry_is_the_vector(struct kunit *test)
{
	struct krp_mrdir_entry entry;
	struct krc_mr mr;

	krc_test_region(&mr);
	krc_mrdir_entry_make(&mr, KRC_VECTOR_GENERATION, KRC_VECTOR_MARGIN_MS, &entry);
	KUNIT_EXPECT_EQ(test, memcmp(&entry, krc_vector_live, sizeof(entry)), 0);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN), KRP_MRDIR_HIT);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN + 1), KRP_MRDIR_NONE);
	entry.rkey ^= cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN), KRP_MRDIR_TORN);
}

/* @nr regions, which are too large for a stack; they go with the test. */
static struct krc_mr *krc_test_regions(struct kunit *test, u32 nr)
{
	struct krc_mr *mr = kunit_kcalloc(test, nr, sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	krc_test_region(mr);
	return mr;
}

/* A directory of @slots slots without hardware; goes with the test. */
static struct krc_mrdir *krc_test_dir(struct kunit *test, u32 slots)
{
	struct krc_mrdir *dir = kunit_kzalloc(test, sizeof(*dir), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dir);
	dir->entries = kunit_kzalloc(test, slots * sizeof(*dir->entries), GFP_KERNEL);
	dir->rail = kunit_kzalloc(test, sizeof(*dir->rail), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dir->entries);
	KUNIT_ASSERT_NOT_NULL(test, dir->rail);
	mutex_init(&dir->lock);
	INIT_LIST_HEAD(&dir->regions);
	INIT_LIST_HEAD(&dir->dying);
	dir->slots = slots;
	dir->rail->generation = KRC_VECTOR_GENERATION;
	dir->rail->margin_ms = KRC_VECTOR_MARGIN_MS;
	return dir;
}

static void krc_test_slot_is_used_again_with_a_new_token(struct kunit *test)
{
	struct krc_mrdir *dir = krc_test_dir(test, 2);
	struct krc_user *user = krc_user_get_current();
	struct krc_mr *a = krc_test_regions(test, 3), *b = a + 1, *c = a + 2;
	unsigned long before;
	u64 old;

	KUNIT_ASSERT_NOT_NULL(test, user);
	a->charge.user = user;
	*b = *a;
	*c = *a;
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, a), 0);
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, b), 0);
	KUNIT_EXPECT_EQ(test, krc_mrdir_publish(dir, c), -ENOSPC);
	KUNIT_EXPECT_FALSE(test, c->published);
	KUNIT_EXPECT_TRUE(test, krp_mrdir_token_valid(a->token));
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(a->token), 0U);
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(b->token), 1U);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], a->token), KRP_MRDIR_HIT);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[1], b->token), KRP_MRDIR_HIT);

	old = a->token;
	before = jiffies;
	krc_mrdir_unpublish(dir, a);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], old), KRP_MRDIR_NONE);
	KUNIT_EXPECT_TRUE(test,
			  time_after(a->until, before + msecs_to_jiffies(KRP_MRDIR_LEASE_MS)));
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, c), 0);
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(c->token), 0U);
	KUNIT_EXPECT_NE(test, c->token, old);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], old), KRP_MRDIR_NONE);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], c->token), KRP_MRDIR_HIT);

	/* what the last of the two has not given back by itself goes with the region */
	krc_mrdir_unpublish(dir, c);
	KUNIT_EXPECT_EQ(test, dir->used_nr, 1U);
	krc_uncharge(&b->slot);
	krc_user_put(user);
}

static void krc_test_closed_region_has_no_lease(struct kunit *test)
{
	struct krc_mrdir *dir = krc_test_dir(test, 1);
	struct krc_mr mr;

	krc_test_region(&mr);
	mr.token = 0;
	krc_mrdir_unpublish(dir, &mr);
	KUNIT_EXPECT_TRUE(test, time_before_eq(mr.until, jiffies));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(dir->used, dir->slots));
}

/* The end of a port is told to peers, and gives them the time that they were promised. */
static void krc_test_a_retired_directory_keeps_leases(struct kunit *test)
{
	unsigned long lease = msecs_to_jiffies(KRP_MRDIR_LEASE_MS);
	struct krc_mrdir *dir = krc_test_dir(test, 2);
	struct krc_user *user = krc_user_get_current();
	struct krc_mr *known = krc_test_regions(test, 3), *closed = known + 1;
	struct krc_mr *late = known + 2;
	unsigned long before, until;

	KUNIT_ASSERT_NOT_NULL(test, user);
	known->charge.user = user;
	*closed = *known;
	closed->token = 0;
	*late = *known;
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, known), 0);
	list_add_tail(&known->list, &dir->regions);
	list_add_tail(&closed->list, &dir->regions);

	before = jiffies;
	krc_mrdir_retire(dir);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], known->token), KRP_MRDIR_NONE);
	KUNIT_EXPECT_TRUE(test, time_after(known->until, before + lease));
	KUNIT_EXPECT_EQ(test, krc_mr_left(closed), 0UL);
	KUNIT_EXPECT_EQ(test, krc_mrdir_publish(dir, late), -ENODEV);
	KUNIT_EXPECT_FALSE(test, late->published);

	/* its program takes it back meanwhile: that is not what ends the lease */
	until = known->until;
	krc_mrdir_unpublish(dir, known);
	KUNIT_EXPECT_EQ(test, known->until, until);
	krc_user_put(user);
}

/* Pinned memory of no page. */
static struct ib_umem *krc_test_umem(struct kunit *test)
{
	struct ib_umem *umem = kzalloc(sizeof(*umem), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, umem);
	umem->owning_mm = current->active_mm;
	mmgrab(umem->owning_mm);
	return umem;
}

/* A region that was taken back; @used: a request of it is under way. */
static struct krc_mr *krc_test_dying(struct kunit *test, struct krc_mrdir *dir, bool used)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	kref_init(&mr->ref);
	init_completion(&mr->idle);
	init_completion(&mr->released);
	mr->dir = dir;
	kref_get(&dir->ref);
	krc_rail_get(dir->rail);
	mr->umem = krc_test_umem(test);
	mr->until = jiffies;
	list_add_tail(&mr->list, &dir->dying);
	if (!used)
		krc_mr_put(mr, 1);
	return mr;
}

/* Have a directory reap. */
static void krc_test_reaper(struct kunit *test, struct krc_mrdir *dir,
			    const struct krc_provider_ops *ops)
{
	kref_init(&dir->ref);
	kref_init(&dir->rail->ref);
	dir->rail->ops = ops;
	init_waitqueue_head(&dir->gone);
	dir->wq = alloc_workqueue("krc_mr_test", WQ_UNBOUND, 1 + KRC_MRDIR_RELEASES);
	KUNIT_ASSERT_NOT_NULL(test, dir->wq);
	krc_turns_init(&dir->releases, KRC_MRDIR_RELEASES, dir->wq);
	INIT_DELAYED_WORK(&dir->reap, krc_mr_reap);
}

/* Wait until so many regions are being released, and what has been is freed. */
static void krc_test_releasing(struct kunit *test, struct krc_mrdir *dir, u32 nr)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS);

	while (READ_ONCE(dir->releasing) != nr && time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(test, READ_ONCE(dir->releasing), nr);
}

#define KRC_TEST_DYING 4096

/**
 * struct krc_test_reaped - What a device sees when keys of dying regions are destroyed.
 * @dir: their directory.
 * @keys: keys destroyed so far.
 * @left: regions that were still in the list at the first of them.
 */
static struct krc_test_reaped {
	struct krc_mrdir *dir;
	atomic_t keys;
	u32 left;
} krc_test_reaped;

static u32 krc_test_count_dying(struct krc_mrdir *dir)
{
	const struct krc_mr *mr;
	u32 nr = 0;

	mutex_lock(&dir->lock);
	list_for_each_entry(mr, &dir->dying, list)
		nr++;
	mutex_unlock(&dir->lock);
	return nr;
}

static bool krc_test_key_reaped(struct krc_hw *hw, const struct krc_hw_key *key)
{
	struct krc_test_reaped *r = &krc_test_reaped;

	if (atomic_inc_return(&r->keys) == 1)
		r->left = krc_test_count_dying(r->dir);
	return true;
}

/*
 * One look at those that were taken back lets go all that nobody uses, wherever they are: the
 * list has been walked to its end before the first is released, which others do not wait for.
 */
static void krc_test_dying_regions_are_one_pass(struct kunit *test)
{
	struct krc_mrdir *dir = krc_test_dir(test, 1);
	struct krc_provider_ops ops = krc_fake_ops;
	struct krc_mr *mr, *next;
	u32 i, left;

	ops.key_destroy = krc_test_key_reaped;
	krc_test_reaped.dir = dir;
	krc_test_reaped.left = 0;
	atomic_set(&krc_test_reaped.keys, 0);
	krc_test_reaper(test, dir, &ops);
	for (i = 0; i < KRC_TEST_DYING; i++)
		krc_test_dying(test, dir, i % 2);
	krc_mr_reap(&dir->reap.work);
	krc_test_releasing(test, dir, 0);
	flush_workqueue(dir->wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&krc_test_reaped.keys), KRC_TEST_DYING / 2);
	KUNIT_EXPECT_EQ(test, krc_test_reaped.left, KRC_TEST_DYING / 2U);
	left = krc_test_count_dying(dir);
	KUNIT_EXPECT_EQ(test, left, KRC_TEST_DYING / 2U);
	KUNIT_EXPECT_EQ(test, kref_read(&dir->ref), left + 1);
	KUNIT_EXPECT_EQ(test, dir->releasing, 0U);
	/* it will look again; it may be looking just now, which takes a slow machine some time */
	krc_test_wait(test, delayed_work_pending(&dir->reap));

	cancel_delayed_work_sync(&dir->reap);
	list_for_each_entry_safe(mr, next, &dir->dying, list)
		krc_mr_put(mr, 1);
	krc_mr_reap(&dir->reap.work);
	krc_test_releasing(test, dir, 0);
	destroy_workqueue(dir->wq);
	KUNIT_EXPECT_TRUE(test, list_empty(&dir->dying));
	KUNIT_EXPECT_EQ(test, kref_read(&dir->ref), 1U);
	KUNIT_EXPECT_EQ(test, kref_read(&dir->rail->ref), 1U);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&dir->reap));
}

#define KRC_TEST_MANY 8 /* regions of a payer, more than are released at once */

static DECLARE_COMPLETION(krc_test_firmware);

/* The device takes long for each of the keys that say so. */
static bool krc_test_key_slow(struct krc_hw *hw, const struct krc_hw_key *key)
{
	if (key->lkey)
		wait_for_completion(&krc_test_firmware);
	return true;
}

/* What a payer has released delays another one by the releases under way, of which it has not all. */
static void krc_test_releases_are_shared_by_payers(struct kunit *test)
{
	struct krc_provider_ops ops = krc_fake_ops;
	struct krc_mrdir *dir = krc_test_dir(test, 1);
	static const u8 payers[2];
	struct krc_mr *mr;
	u32 i;

	ops.key_destroy = krc_test_key_slow;
	reinit_completion(&krc_test_firmware);
	krc_test_reaper(test, dir, &ops);
	for (i = 0; i < KRC_TEST_MANY; i++) {
		mr = krc_test_dying(test, dir, false);
		mr->key.lkey = 1;
		mr->key.payer = &payers[0];
	}
	krc_test_dying(test, dir, false)->key.payer = &payers[1];
	queue_delayed_work(dir->wq, &dir->reap, 0);
	flush_delayed_work(&dir->reap);
	krc_test_releasing(test, dir, KRC_TEST_MANY);
	KUNIT_EXPECT_EQ(test, dir->releases.free, 1U);
	KUNIT_EXPECT_EQ(test, dir->releases.line.waiting, KRC_TEST_MANY - KRC_MRDIR_RELEASES + 1U);
	complete_all(&krc_test_firmware);
	krc_test_releasing(test, dir, 0);
	destroy_workqueue(dir->wq);
	KUNIT_EXPECT_EQ(test, dir->releases.free, KRC_MRDIR_RELEASES + 0U);
	KUNIT_EXPECT_EQ(test, kref_read(&dir->ref), 1U);
	KUNIT_EXPECT_EQ(test, kref_read(&dir->rail->ref), 1U);
}

static int krc_test_key_error;
static bool krc_test_key_gone;

static int krc_test_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
			     struct krc_hw_key *ret_key)
{
	return krc_test_key_error;
}

static bool krc_test_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	return krc_test_key_gone;
}

/*
 * A registration that ends behind @key_error of the device, or because the directory is @retired.
 * Return: whether the memory was given up as one that the device may still access.
 */
static bool krc_test_open_fails(struct kunit *test, int key_error, bool retired, bool gone, int err)
{
	struct krc_provider_ops ops = krc_fake_ops;
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	struct krc_mrdir *dir = krc_test_dir(test, 1);
	struct ib_umem *umem = krc_test_umem(test);
	struct krc_user *user = krc_user_get_current();
	struct scatterlist sg;
	struct krc_mr mr;
	bool given_up;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, user);
	ops.key_umem = krc_test_key_umem;
	ops.key_destroy = krc_test_key_destroy;
	krc_test_key_error = key_error;
	krc_test_key_gone = gone;
	dir->rail->ops = &ops;
	dir->rail->ibdev = ibdev;
	dir->retired = retired;
	sg_init_one(&sg, dir->entries, sizeof(*dir->entries));
	umem->sgt_append.sgt = (struct sg_table){ .sgl = &sg, .nents = 1, .orig_nents = 1 };
	krc_test_region(&mr);
	mr.dir = dir;
	mr.umem = umem;
	mr.charge.user = user;
	INIT_LIST_HEAD(&mr.list);
	KUNIT_EXPECT_EQ(test, krc_mr_open(&mr), err);
	given_up = !mr.umem;
	KUNIT_EXPECT_PTR_EQ(test, umem->ibdev, given_up ? ibdev : NULL);
	KUNIT_EXPECT_FALSE(test, mr.published);
	KUNIT_EXPECT_TRUE(test, list_empty(&mr.list) && list_empty(&dir->regions));
	KUNIT_EXPECT_EQ(test, dir->used_nr, 0U);
	mmdrop(umem->owning_mm);
	kfree(umem);
	krc_user_put(user);
	return given_up;
}

/* Memory is not given back while the device may have a key of it, and is in all other cases. */
static void krc_test_registrations_that_fail(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, krc_test_open_fails(test, -EUCLEAN, false, true, -EIO));
	KUNIT_EXPECT_FALSE(test, krc_test_open_fails(test, -ENOMEM, false, true, -ENOMEM));
	KUNIT_EXPECT_FALSE(test, krc_test_open_fails(test, 0, true, true, -ENODEV));
	KUNIT_EXPECT_TRUE(test, krc_test_open_fails(test, 0, true, false, -ENODEV));
}

static void krc_test_local_check(struct kunit *test)
{
	struct krc_mr mr;
	u64 end;

	krc_test_region(&mr);
	end = mr.addr + mr.length;
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr, 1, true), 0);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr, mr.length, true), 0);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, end - 1, 1, true), 0);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, end - 1, 2, false), -ERANGE);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr - 1, 2, false), -ERANGE);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, U64_MAX, 2, false), -ERANGE);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr, 0, false), -ERANGE);
	mr.access = KRP_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr, 1, false), 0);
	KUNIT_EXPECT_EQ(test, krc_mr_check(&mr, mr.addr, 1, true), -EACCES);
}

/* What is refused without a READ: with one, these would crash, for there is no pool. */
static void krc_test_hopeless_references(struct kunit *test)
{
	struct krc_hw_address address = {};
	struct krp_value value = {};
	struct krc_remote *remote;
	struct krc_grant grant = {};
	u64 token = 1ULL << KRP_MRDIR_LOG2_MAX;

	remote = krc_remote_create(NULL, NULL, &value, &address);
	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 0, 8, 0, &grant, NULL), -EBADR);
	krc_remote_put(remote);

	value.dct.mrdir_addr = cpu_to_le64(0x1000);
	value.dct.mrdir_rkey = cpu_to_le32(0x100);
	remote = krc_remote_create(NULL, NULL, &value, &address);
	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, 0, 0, 8, 0, &grant, NULL), -EBADR);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, 1, 0, 8, 0, &grant, NULL), -EBADR);
	KUNIT_EXPECT_EQ(test,
			krc_remote_get(remote, token | KRP_MRDIR_SLOTS, 0, 8, 0, &grant, NULL),
			-EBADR);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 0, 8, 0, &grant, NULL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 0U);
	krc_remote_put(remote);
}

/* What a call was allowed, the next ones are, as long as the lease lasts. */
static void krc_test_a_grant_is_asked_first(struct kunit *test)
{
	struct krp_value value = { .dct = { .mrdir_addr = cpu_to_le64(0x1000),
					    .mrdir_rkey = cpu_to_le32(0x100) } };
	u64 token = 1ULL << KRP_MRDIR_LOG2_MAX;
	struct krc_grant grant = { .token = token,
				   .addr = 4096,
				   .length = 64,
				   .until = jiffies + 60 * HZ,
				   .rkey = 7,
				   .access = KRP_ACCESS_REMOTE_READ };
	struct krc_hw_address address = {};
	struct krc_remote *remote = krc_remote_create(NULL, NULL, &value, &address);
	u32 access = KRP_ACCESS_REMOTE_READ;

	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 64, access, &grant, NULL), 0);
	KUNIT_EXPECT_EQ(test, grant.rkey, 7U);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 65, access, &grant, NULL),
			-EOVERFLOW);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4095, 8, access, &grant, NULL),
			-EOVERFLOW);
	KUNIT_EXPECT_EQ(
		test, krc_remote_get(remote, token, 4096, 8, KRP_ACCESS_REMOTE_WRITE, &grant, NULL),
		-EPERM);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token * 2, 4096, 8, access, &grant, NULL),
			-EAGAIN);
	grant.until = jiffies - 1;
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 8, access, &grant, NULL),
			-EAGAIN);
	krc_remote_put(remote);
}

static int krc_test_find_user(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	u64 *ret = arg;

	if (!uid_eq(uid, krc_owner_current()))
		return 0;
	memcpy(ret, held, sizeof(u64) * KRC_RES_NR);
	ret[KRC_RES_NR] = refused;
	return 1;
}

static void krc_test_limits_of_a_user(struct kunit *test)
{
	struct krc_charge queue[2] = {}, mr = {};
	u64 seen[KRC_RES_NR + 1] = {};
	u32 queues, mrs, requests;
	struct krc_user *user;

	krc_limits_get(&queues, &mrs, &requests);
	krc_limits_set(1, 0, 10);
	user = krc_user_get_current();
	KUNIT_EXPECT_NOT_NULL(test, user);
	if (!user)
		goto out;
	KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_QUEUE, &queue[0]), 0);
	KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_QUEUE, &queue[1]), -EDQUOT);
	KUNIT_EXPECT_NULL(test, queue[1].user);
	KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_MR, &mr), 0);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(user, 10), 10U);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(user, 1), 0U);
	krc_uncharge_requests(user, 3);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(user, 4), 3U);
	krc_limits_set(1, 0, 5); /* lowered: nothing is taken away */
	KUNIT_EXPECT_EQ(test, krc_charge_requests(user, 0), 0U);

	krc_limits_walk(0, krc_test_find_user, seen);
	KUNIT_EXPECT_EQ(test, seen[KRC_RES_QUEUE], 1ULL);
	KUNIT_EXPECT_EQ(test, seen[KRC_RES_MR], 1ULL);
	KUNIT_EXPECT_EQ(test, seen[KRC_RES_REQUEST], 10ULL);
	KUNIT_EXPECT_EQ(test, seen[KRC_RES_NR], 3ULL);

	krc_uncharge_requests(user, 10);
	krc_uncharge(&queue[0]);
	krc_uncharge(&queue[0]); /* nothing is left to give back */
	KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_QUEUE, &queue[1]), 0);
	krc_uncharge(&queue[1]);
	krc_uncharge(&mr);
	krc_user_put(user);
	KUNIT_EXPECT_EQ(test, krc_limits_walk(0, krc_test_find_user, seen), 0U);
out:
	krc_limits_set(queues, mrs, requests);
}

static u32 krc_test_publish(const struct krc_charge *payer, u32 nr_most, u64 now, u64 timeout)
{
	u32 nr = 0;

	while (nr < nr_most && krc_publish_turn(payer, now, timeout) >= 0)
		nr++;
	return nr;
}

/* Some publications at once, then as many a second as may be, also for a new process. */
static void krc_test_publications_of_a_user(struct kunit *test)
{
	u64 now = ktime_get_ns() + 1000ULL * NSEC_PER_SEC, each = KRC_PUBLISH_EACH_NS;
	u64 seen[KRC_RES_NR + 1] = {};
	struct krc_user *user = krc_user_get_current();
	struct krc_charge payer = { .user = user };

	KUNIT_ASSERT_NOT_NULL(test, user);
	KUNIT_EXPECT_EQ(test, krc_test_publish(&payer, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&payer, now, each - 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&payer, now, each), (s64)each);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&payer, now, 5 * each), (s64)(2 * each));
	/* a wait that was interrupted is not paid for */
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&payer, now, 5 * each), (s64)(3 * each));
	krc_publish_unturn(&payer);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&payer, now, 5 * each), (s64)(3 * each));
	krc_publish_unturn(&payer);
	/* nobody refers to the user any more: what it owes is not forgotten, nor is it listed */
	krc_user_put(user);
	KUNIT_EXPECT_EQ(test, krc_limits_walk(0, krc_test_find_user, seen), 0U);
	user = krc_user_get_current();
	KUNIT_ASSERT_NOT_NULL(test, user);
	payer.user = user;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&payer, 10000, now + 2 * each, 0), 0U);
	now += 12 * each;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&payer, 10000, now, 0), 10U);
	now += NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&payer, 10000, now, 0), (u32)KRC_PUBLISH_PER_S);
	now += 1000ULL * NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&payer, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	krc_user_put(user);
}

/* A container of root does not pay for what another one has published. */
static void krc_test_publications_of_a_cgroup(struct kunit *test)
{
	u64 now = ktime_get_ns() + 1000ULL * NSEC_PER_SEC, each = KRC_PUBLISH_EACH_NS;
	struct krc_user *user = krc_user_get_current();
	void *cgroups = kunit_kzalloc(test, 2, GFP_KERNEL);
	struct krc_charge one = { .user = user, .cgroup = cgroups };
	struct krc_charge other = { .user = user, .cgroup = cgroups + 1 };

	KUNIT_ASSERT_NOT_NULL(test, cgroups);
	KUNIT_ASSERT_NOT_NULL(test, user);
	if (!uid_eq(current_uid(), GLOBAL_ROOT_UID)) {
		krc_user_put(user);
		kunit_skip(test, "not run by root");
	}
	KUNIT_EXPECT_EQ(test, krc_test_publish(&one, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	KUNIT_EXPECT_EQ(test, krc_test_publish(&other, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	/* a wait that was interrupted is not paid for, and by nobody else */
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&one, now, 5 * each), (s64)each);
	krc_publish_unturn(&one);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&other, now, 5 * each), (s64)each);
	KUNIT_EXPECT_EQ(test, krc_publish_turn(&one, now, 5 * each), (s64)each);
	/* the debt outlives the context */
	krc_user_put(user);
	user = krc_user_get_current();
	KUNIT_ASSERT_NOT_NULL(test, user);
	one.user = user;
	other.user = user;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&one, 10000, now, 0), 0U);
	/* and one that is over is forgotten by the next payer */
	now += 1000ULL * NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, krc_test_publish(&other, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	KUNIT_EXPECT_EQ(test, krc_test_publish(&one, 10000, now, 0), (u32)KRC_PUBLISH_BURST);
	krc_user_put(user);
}

/* READ slots are counted by user, and root's containers by cgroup. */
static void krc_test_payer_of_a_context(struct kunit *test)
{
	struct krc_charge one = {}, other = {};
	struct krc_user *user = krc_user_get_current();
	void *cgroups = kunit_kzalloc(test, 2, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cgroups);
	KUNIT_ASSERT_NOT_NULL(test, user);
	if (!uid_eq(current_uid(), GLOBAL_ROOT_UID)) {
		krc_user_put(user);
		kunit_skip(test, "not run by root");
	}
	one.user = user;
	other.user = user;
	KUNIT_EXPECT_PTR_EQ(test, krc_charge_payer(&one), (const void *)user);
	one.cgroup = cgroups;
	other.cgroup = cgroups + 1;
	KUNIT_EXPECT_PTR_EQ(test, krc_charge_payer(&one), (const void *)cgroups);
	KUNIT_EXPECT_PTR_NE(test, krc_charge_payer(&one), krc_charge_payer(&other));
	krc_user_put(user);
}

/* A namespace of @owner in which 0 is @root (uid -1: nobody is); goes with the test. */
static struct user_namespace *krc_test_ns(struct kunit *test, struct user_namespace *parent,
					  uid_t owner, uid_t root)
{
	struct user_namespace *ns = kunit_kzalloc(test, sizeof(*ns), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ns);
	ns->parent = parent;
	ns->owner = KUIDT_INIT(owner);
	if (root == (uid_t)-1)
		return ns;
	ns->uid_map.nr_extents = 1;
	ns->uid_map.extent[0] = (struct uid_gid_extent){ .lower_first = root, .count = 65536 };
	return ns;
}

/* The ids of a user namespace that a user made are no further users. */
static void krc_test_owner_of_a_namespace(struct kunit *test)
{
	struct user_namespace *alices, *inner, *container, *empty;

	alices = krc_test_ns(test, &init_user_ns, 1000, 100000);
	inner = krc_test_ns(test, alices, 100007, 100100);
	container = krc_test_ns(test, &init_user_ns, 0, 200000);
	empty = krc_test_ns(test, &init_user_ns, 0, -1);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(&init_user_ns, KUIDT_INIT(1000))), 1000U);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(alices, KUIDT_INIT(100000))), 1000U);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(alices, KUIDT_INIT(165535))), 1000U);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(inner, KUIDT_INIT(100100))), 1000U);
	/* root's containers are no users of root's, and one user each */
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(container, KUIDT_INIT(200000))), 200000U);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(container, KUIDT_INIT(200033))), 200000U);
	inner = krc_test_ns(test, container, 200033, -1);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(inner, KUIDT_INIT(200033))), 200000U);
	KUNIT_EXPECT_EQ(test, __kuid_val(krc_owner(empty, KUIDT_INIT(7))), 7U);
}

/* However many come and take what they may, the next one finds a place. */
static void krc_test_share_of_a_table(struct kunit *test)
{
	u32 total = KRP_MRDIR_SLOTS, used = 0, held, users;

	for (users = 0; users < 4; users++) {
		for (held = 0; !krc_share_check(total, used, held, false); held++)
			used++;
		KUNIT_EXPECT_LE(test, held, total / KRC_SHARE_USER);
	}
	KUNIT_EXPECT_EQ(test, used, total - total / KRC_SHARE_SCARCE);
	for (; used < total - total / KRC_SHARE_RESERVE; users++) {
		for (held = 0; !krc_share_check(total, used, held, false); held++)
			used++;
		KUNIT_ASSERT_EQ(test, held, total / KRC_SHARE_LITTLE);
	}
	KUNIT_EXPECT_GE(test, users, 30U);
	KUNIT_EXPECT_EQ(test, krc_share_check(total, used, 0, false), -ENOSPC);
	KUNIT_EXPECT_EQ(test, krc_share_check(total, 0, total / KRC_SHARE_USER, false), -EDQUOT);
	for (held = 0; !krc_share_check(total, used, held, true); held++)
		used++;
	KUNIT_EXPECT_EQ(test, held, total / KRC_SHARE_RESERVE);
	/* tables too small to be divided */
	KUNIT_EXPECT_EQ(test, krc_share_check(2, 1, 0, false), 0);
	KUNIT_EXPECT_EQ(test, krc_share_check(2, 2, 0, true), -ENOSPC);
}

static struct kunit_case krc_mr_cases[] = { KUNIT_CASE(krc_test_entry_is_the_vector),
					    KUNIT_CASE(
						    krc_test_slot_is_used_again_with_a_new_token),
					    KUNIT_CASE(krc_test_closed_region_has_no_lease),
					    KUNIT_CASE(krc_test_a_retired_directory_keeps_leases),
					    KUNIT_CASE(krc_test_dying_regions_are_one_pass),
					    KUNIT_CASE(krc_test_releases_are_shared_by_payers),
					    KUNIT_CASE(krc_test_registrations_that_fail),
					    KUNIT_CASE(krc_test_local_check),
					    KUNIT_CASE(krc_test_hopeless_references),
					    KUNIT_CASE(krc_test_a_grant_is_asked_first),
					    KUNIT_CASE(krc_test_limits_of_a_user),
					    KUNIT_CASE(krc_test_publications_of_a_user),
					    KUNIT_CASE(krc_test_publications_of_a_cgroup),
					    KUNIT_CASE(krc_test_payer_of_a_context),
					    KUNIT_CASE(krc_test_owner_of_a_namespace),
					    KUNIT_CASE(krc_test_share_of_a_table),
					    {} };

static struct kunit_suite krc_mr_suite = {
	.name = "krcore_mr",
	.test_cases = krc_mr_cases,
};

kunit_test_suites(&krc_mr_suite);
