// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what servers know of records, and the hand-over of what could not be withdrawn
 * from one port to another. The servers are never reached: their answers are given here.
 * Linked into krcore.ko.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "meta/meta_priv.h"

#define KRC_TEST_SERVERS 2
#define KRC_TEST_GENERATION 7
#define KRC_TEST_SERVICE 5

/**
 * struct krc_test_client - A port's client of two servers.
 * @meta: client.
 * @session: its sessions, in the state in which nothing is sent.
 */
struct krc_test_client {
	struct krc_meta meta;
	struct krc_meta_session session[KRC_TEST_SERVERS];
};

/* @last: of the address, so that clients differ. */
static struct krc_test_client *krc_test_client_new(struct kunit *test, u8 last)
{
	struct krc_test_client *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	spin_lock_init(&c->meta.lock);
	init_waitqueue_head(&c->meta.wait);
	INIT_LIST_HEAD(&c->meta.records);
	c->meta.gid.raw[0] = 0x20;
	c->meta.gid.raw[15] = last;
	c->meta.conf.generation = KRC_TEST_GENERATION;
	for (i = 0; i < KRC_TEST_SERVERS; i++) {
		c->session[i].meta = &c->meta;
		c->session[i].index = i;
		c->session[i].state = KRC_META_DOWN;
		c->session[i].incarnation = 1; /* it was attached before */
		INIT_LIST_HEAD(&c->session[i].asks);
		c->meta.sessions[i] = &c->session[i];
	}
	return c;
}

static struct krc_meta_record *krc_test_publish(struct kunit *test, struct krc_test_client *c,
						u16 service)
{
	static const struct krp_value value = {
		.kind = KRP_KIND_DCT,
		.dct = { .mtu = 3, .port = 1 },
	};
	struct krc_meta_record *rec;

	KUNIT_ASSERT_EQ(test, krc_meta_publish(&c->meta, service, &value), 0);
	spin_lock_bh(&c->meta.lock);
	rec = krc_meta_record_find(&c->meta, service);
	spin_unlock_bh(&c->meta.lock);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	return rec;
}

static u32 krc_test_count(const struct list_head *records)
{
	const struct list_head *at;
	u32 nr = 0;

	list_for_each(at, records) nr++;
	return nr;
}

/* The end of a client, all of whose servers are silent. */
static void krc_test_end(struct krc_test_client *c, struct list_head *left)
{
	u32 i;

	spin_lock_bh(&c->meta.lock);
	c->meta.closing = true;
	for (i = 0; i < KRC_TEST_SERVERS; i++)
		krc_meta_records_left(&c->session[i]);
	spin_unlock_bh(&c->meta.lock);
	krc_meta_take_orphans(&c->meta, left);
	krc_meta_records_free(&c->meta);
}

static void krc_test_what_is_left_goes_on(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b, *again;
	struct krc_meta_record *rec;
	LIST_HEAD(left);

	krc_test_publish(test, a, KRP_SERVICE_NODE)->at[0] = KRC_META_AT_ACKED;
	rec = krc_test_publish(test, a, KRC_TEST_SERVICE);
	rec->at[0] = KRC_META_AT_ACKED; /* its withdrawal, by both */
	rec->at[1] = KRC_META_AT_ACKED;
	krc_test_end(a, &left);
	KUNIT_ASSERT_EQ(test, krc_test_count(&left), 1U);

	b = krc_test_client_new(test, 2);
	krc_meta_adopt_orphans(&b->meta, &left, true);
	KUNIT_EXPECT_EQ(test, krc_test_count(&left), 1U); /* not of its address */
	krc_meta_adopt_orphans(&b->meta, &left, false);
	KUNIT_EXPECT_TRUE(test, list_empty(&left));
	KUNIT_ASSERT_EQ(test, krc_test_count(&b->meta.records), 1U);
	rec = list_first_entry(&b->meta.records, struct krc_meta_record, link);
	KUNIT_EXPECT_TRUE(test, rec->gone && rec->adopted);
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_DIRTY);
	KUNIT_EXPECT_EQ(test, rec->at[1], KRC_META_AT_DIRTY);

	/* that client reaches nobody either */
	krc_test_end(b, &left);
	KUNIT_ASSERT_EQ(test, krc_test_count(&left), 1U);

	again = krc_test_client_new(test, 1);
	rec = krc_test_publish(test, again, KRP_SERVICE_NODE);
	krc_meta_adopt_orphans(&again->meta, &left, true);
	KUNIT_EXPECT_TRUE(test, list_empty(&left));
	KUNIT_EXPECT_EQ(test, krc_test_count(&again->meta.records), 1U);
	KUNIT_EXPECT_FALSE(test, rec->gone);
	krc_meta_records_free(&again->meta);
}

static void krc_test_an_address_that_is_back(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b = krc_test_client_new(test, 2);
	struct krc_meta_record *own;
	LIST_HEAD(left);
	u32 round;

	own = krc_test_publish(test, b, KRP_SERVICE_NODE);
	for (round = 0; round < 3; round++) {
		krc_test_publish(test, a, KRP_SERVICE_NODE);
		krc_test_publish(test, a, KRC_TEST_SERVICE);
		krc_test_end(a, &left);
		a = krc_test_client_new(test, 1);
		krc_meta_adopt_orphans(&b->meta, &left, false);
		/* the same as before, not one more */
		KUNIT_EXPECT_EQ(test, krc_test_count(&b->meta.records), 3U);
	}
	krc_meta_release_orphans(&b->meta, &b->meta.gid, &left); /* its own are not adopted */
	KUNIT_EXPECT_TRUE(test, list_empty(&left));
	krc_meta_release_orphans(&b->meta, &a->meta.gid, &left);
	KUNIT_EXPECT_EQ(test, krc_test_count(&left), 2U);
	KUNIT_EXPECT_EQ(test, krc_test_count(&b->meta.records), 1U);
	KUNIT_EXPECT_FALSE(test, own->gone);

	own = krc_test_publish(test, a, KRP_SERVICE_NODE);
	krc_meta_adopt_orphans(&a->meta, &left, true);
	KUNIT_EXPECT_TRUE(test, list_empty(&left));
	KUNIT_EXPECT_EQ(test, krc_test_count(&a->meta.records), 2U); /* a service to withdraw */
	KUNIT_EXPECT_FALSE(test, own->gone);
	krc_meta_records_free(&a->meta);
	krc_meta_records_free(&b->meta);
}

/* Adopted, published again, and withdrawn, all before any server has been there. */
static void krc_test_withdrawn_before_a_server_is_back(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b = krc_test_client_new(test, 1);
	struct krc_meta_record *rec;
	LIST_HEAD(left);
	u32 i;

	krc_test_publish(test, a, KRC_TEST_SERVICE);
	krc_test_end(a, &left);
	for (i = 0; i < KRC_TEST_SERVERS; i++)
		b->session[i].incarnation = 0; /* never attached */
	krc_meta_adopt_orphans(&b->meta, &left, true);
	krc_test_publish(test, b, KRC_TEST_SERVICE);
	krc_meta_withdraw(&b->meta, KRC_TEST_SERVICE);
	spin_lock_bh(&b->meta.lock);
	rec = krc_meta_record_find(&b->meta, KRC_TEST_SERVICE);
	spin_unlock_bh(&b->meta.lock);
	KUNIT_ASSERT_NOT_NULL(test, rec); /* the servers may have it from the first client */
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_DIRTY);
	KUNIT_EXPECT_EQ(test, rec->at[1], KRC_META_AT_DIRTY);

	/* what no server can have is gone at once */
	krc_test_publish(test, b, KRC_TEST_SERVICE + 1);
	krc_meta_withdraw(&b->meta, KRC_TEST_SERVICE + 1);
	spin_lock_bh(&b->meta.lock);
	KUNIT_EXPECT_NULL(test, krc_meta_record_find(&b->meta, KRC_TEST_SERVICE + 1));
	spin_unlock_bh(&b->meta.lock);
	krc_meta_records_free(&b->meta);
}

static void krc_test_a_server_is_taken_off(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krc_meta_record *rec = krc_test_publish(test, c, KRP_SERVICE_NODE);
	LIST_HEAD(left);

	krc_test_publish(test, c, KRC_TEST_SERVICE);
	rec->at[0] = KRC_META_AT_ACKED;
	krc_meta_withdraw(&c->meta, KRC_TEST_SERVICE);
	spin_lock_bh(&c->meta.lock);
	krc_meta_records_left(&c->session[1]);
	krc_meta_record_find(&c->meta, KRC_TEST_SERVICE)->at[0] = KRC_META_AT_ACKED;
	krc_meta_records_left(&c->session[1]);
	KUNIT_EXPECT_NULL(test, krc_meta_record_find(&c->meta, KRC_TEST_SERVICE));
	spin_unlock_bh(&c->meta.lock);
	KUNIT_EXPECT_FALSE(test, rec->orphaned);
	KUNIT_EXPECT_EQ(test, rec->at[1], KRC_META_AT_NEVER);

	krc_test_end(c, &left);
	KUNIT_EXPECT_TRUE(test, list_empty(&left));
}

static void krc_test_what_is_lost_is_published_again(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krc_meta_session *s = &c->session[0];
	struct krc_meta_record *rec = krc_test_publish(test, c, KRP_SERVICE_NODE);
	struct krp_key other = rec->key;

	other.gid[15]++;
	spin_lock_bh(&c->meta.lock);
	s->dirty = false;
	rec->at[0] = KRC_META_AT_ACKED;
	rec->at[1] = KRC_META_AT_ACKED;
	krc_meta_record_lost(s, &other, KRC_TEST_GENERATION);
	krc_meta_record_lost(s, &rec->key, KRC_TEST_GENERATION - 1);
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_ACKED);
	krc_meta_record_lost(s, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_DIRTY);
	KUNIT_EXPECT_TRUE(test, s->dirty);
	KUNIT_EXPECT_EQ(test, rec->at[1], KRC_META_AT_ACKED);

	/* an answer will come; and what is withdrawn is to be gone */
	rec->at[0] = KRC_META_AT_SENT;
	krc_meta_record_lost(s, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_SENT);
	rec->at[0] = KRC_META_AT_ACKED;
	rec->gone = true;
	krc_meta_record_lost(s, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0], KRC_META_AT_ACKED);
	spin_unlock_bh(&c->meta.lock);
	krc_meta_records_free(&c->meta);
}

/* A failure counts, the less the longer it is ago, and not for ever. */
static void krc_test_blame_wears_off(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krc_meta_session *a = &c->session[0], *b = &c->session[1];
	unsigned long half = msecs_to_jiffies(KRC_META_BLAME_MS);
	u32 i;

	spin_lock_bh(&c->meta.lock);
	for (i = 0; i < 1000; i++)
		krc_meta_blamed(a);
	krc_meta_blamed(b);
	KUNIT_EXPECT_GT(test, krc_meta_blame(a), krc_meta_blame(b));
	KUNIT_EXPECT_GT(test, krc_meta_blame(b), 0U);
	a->blamed_at -= 12 * half;
	KUNIT_EXPECT_LT(test, krc_meta_blame(a), krc_meta_blame(b));
	a->blamed_at -= 40 * half;
	KUNIT_EXPECT_EQ(test, krc_meta_blame(a), 0U);
	KUNIT_EXPECT_EQ(test, a->failures, 1000ULL); /* people see all of them */
	spin_unlock_bh(&c->meta.lock);
}

static struct kunit_case krc_record_cases[] = {
	KUNIT_CASE(krc_test_blame_wears_off),
	KUNIT_CASE(krc_test_what_is_left_goes_on),
	KUNIT_CASE(krc_test_an_address_that_is_back),
	KUNIT_CASE(krc_test_withdrawn_before_a_server_is_back),
	KUNIT_CASE(krc_test_a_server_is_taken_off),
	KUNIT_CASE(krc_test_what_is_lost_is_published_again),
	{}
};

static struct kunit_suite krc_record_suite = {
	.name = "krcore_record",
	.test_cases = krc_record_cases,
};

kunit_test_suites(&krc_record_suite);
