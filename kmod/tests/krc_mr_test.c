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
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "../krc_limits.h"
#include "../krc_mrdir.h"
#include "../krc_node.h"

/* "live" of proto/vectors/mrdir.txt */
static const u8 krc_vector_live[KRP_MRDIR_ENTRY_BYTES] = {
	0x5d, 0xa8, 0x73, 0x79, 0x7f, 0x23, 0x5a, 0x06, 0x07, 0x00, 0x45, 0x23, 0x01,
	0xee, 0xff, 0xc0, 0x01, 0x60, 0x45, 0x23, 0x01, 0x7f, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x33, 0x32, 0x31, 0x07, 0x01, 0x00,
	0x00, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x18, 0x17, 0x16, 0x15,
	0x14, 0x13, 0x12, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

#define KRC_VECTOR_TOKEN 0xc0ffee0123450007ULL
#define KRC_VECTOR_GENERATION 0x1112131415161718ULL

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
	krc_mrdir_entry_make(&mr, KRC_VECTOR_GENERATION, &entry);
	KUNIT_EXPECT_EQ(test, memcmp(&entry, krc_vector_live, sizeof(entry)), 0);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN), KRP_MRDIR_HIT);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN + 1), KRP_MRDIR_NONE);
	entry.rkey ^= cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&entry, KRC_VECTOR_TOKEN), KRP_MRDIR_TORN);
}

/* A directory of @slots slots without hardware; goes with the test. */
static struct krc_mrdir *krc_test_dir(struct kunit *test, u32 slots)
{
	struct krc_mrdir *dir = kunit_kzalloc(test, sizeof(*dir), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dir);
	dir->entries = kunit_kzalloc(test, slots * sizeof(*dir->entries), GFP_KERNEL);
	dir->port = kunit_kzalloc(test, sizeof(*dir->port), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dir->entries);
	KUNIT_ASSERT_NOT_NULL(test, dir->port);
	dir->slots = slots;
	dir->port->generation = KRC_VECTOR_GENERATION;
	return dir;
}

static void krc_test_slot_is_used_again_with_a_new_token(struct kunit *test)
{
	struct krc_mrdir *dir = krc_test_dir(test, 2);
	struct krc_mr a, b, c;
	u64 old;

	krc_test_region(&a);
	b = a;
	c = a;
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, &a), 0);
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, &b), 0);
	KUNIT_EXPECT_EQ(test, krc_mrdir_publish(dir, &c), -ENOSPC);
	KUNIT_EXPECT_FALSE(test, c.published);
	KUNIT_EXPECT_TRUE(test, krp_mrdir_token_valid(a.token));
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(a.token), 0U);
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(b.token), 1U);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], a.token), KRP_MRDIR_HIT);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[1], b.token), KRP_MRDIR_HIT);

	old = a.token;
	krc_mrdir_unpublish(dir, &a);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], old), KRP_MRDIR_NONE);
	KUNIT_EXPECT_TRUE(test,
			  time_after(a.until, jiffies + msecs_to_jiffies(KRP_MRDIR_LEASE_MS)));
	KUNIT_ASSERT_EQ(test, krc_mrdir_publish(dir, &c), 0);
	KUNIT_EXPECT_EQ(test, krp_mrdir_slot(c.token), 0U);
	KUNIT_EXPECT_NE(test, c.token, old);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], old), KRP_MRDIR_NONE);
	KUNIT_EXPECT_EQ(test, krp_mrdir_check(&dir->entries[0], c.token), KRP_MRDIR_HIT);
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

	remote = krc_remote_create(NULL, &value, &address);
	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 0, 8, 0, 1000, &grant), -EBADR);
	krc_remote_destroy(remote);

	value.dct.mrdir_addr = cpu_to_le64(0x1000);
	value.dct.mrdir_rkey = cpu_to_le32(0x100);
	remote = krc_remote_create(NULL, &value, &address);
	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, 0, 0, 8, 0, 1000, &grant), -EBADR);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, 1, 0, 8, 0, 1000, &grant), -EBADR);
	KUNIT_EXPECT_EQ(test,
			krc_remote_get(remote, token | KRP_MRDIR_SLOTS, 0, 8, 0, 1000, &grant),
			-EBADR);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 0, 8, 0, 0, &grant), -EAGAIN);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 0U);
	krc_remote_destroy(remote);
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
	struct krc_remote *remote = krc_remote_create(NULL, &value, &address);
	u32 access = KRP_ACCESS_REMOTE_READ;

	KUNIT_ASSERT_FALSE(test, IS_ERR(remote));
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 64, access, 0, &grant), 0);
	KUNIT_EXPECT_EQ(test, grant.rkey, 7U);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 65, access, 0, &grant),
			-EOVERFLOW);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4095, 8, access, 0, &grant),
			-EOVERFLOW);
	KUNIT_EXPECT_EQ(test,
			krc_remote_get(remote, token, 4096, 8, KRP_ACCESS_REMOTE_WRITE, 0, &grant),
			-EPERM);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token * 2, 4096, 8, access, 0, &grant),
			-EAGAIN);
	grant.until = jiffies - 1;
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 4096, 8, access, 0, &grant), -EAGAIN);
	krc_remote_destroy(remote);
}

static int krc_test_find_user(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	u64 *ret = arg;

	if (!uid_eq(uid, current_uid()))
		return 0;
	memcpy(ret, held, sizeof(u64) * KRC_RES_NR);
	ret[KRC_RES_NR] = refused;
	return 1;
}

static void krc_test_limits_of_a_user(struct kunit *test)
{
	struct krc_charge queue[2] = {}, mr = {}, *service;
	u64 seen[KRC_RES_NR + 1] = {};
	u32 queues, mrs, requests, i;
	struct krc_user *user;

	service = kunit_kcalloc(test, KRC_SERVICES_PER_USER, sizeof(*service), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, service);
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
	for (i = 0; i < KRC_SERVICES_PER_USER; i++)
		KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_SERVICE, &service[i]), 0);
	KUNIT_EXPECT_EQ(test, krc_charge(user, KRC_RES_SERVICE, &queue[1]), -EDQUOT);
	while (i--)
		krc_uncharge(&service[i]);
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
	KUNIT_EXPECT_EQ(test, seen[KRC_RES_NR], 4ULL);

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

static struct kunit_case krc_mr_cases[] = { KUNIT_CASE(krc_test_entry_is_the_vector),
					    KUNIT_CASE(
						    krc_test_slot_is_used_again_with_a_new_token),
					    KUNIT_CASE(krc_test_closed_region_has_no_lease),
					    KUNIT_CASE(krc_test_local_check),
					    KUNIT_CASE(krc_test_hopeless_references),
					    KUNIT_CASE(krc_test_a_grant_is_asked_first),
					    KUNIT_CASE(krc_test_limits_of_a_user),
					    {} };

static struct kunit_suite krc_mr_suite = {
	.name = "krcore_mr",
	.test_cases = krc_mr_cases,
};

kunit_test_suites(&krc_mr_suite);
