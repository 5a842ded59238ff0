// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the hand-over of what could not be withdrawn from one port to another, and what
 * servers know of records. The servers are never reached: their answers are given here. What
 * proto/krp_records.h decides is tested in user space, too; here it is the module that asks.
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
 * @session: its sessions, which make no connection.
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
	krp_publisher_init(&c->meta.pub, c->meta.chains, KRC_META_CHAINS, KRC_META_SERVERS_MAX);
	c->meta.gid.raw[0] = 0x20;
	c->meta.gid.raw[15] = last;
	c->meta.conf.generation = KRC_TEST_GENERATION;
	spin_lock_bh(&c->meta.lock);
	for (i = 0; i < KRC_TEST_SERVERS; i++) {
		struct krc_meta_session *s = &c->session[i];

		s->meta = &c->meta;
		s->index = i;
		s->armed_ns = KRP_FOREVER_NS;
		c->meta.sessions[i] = s;
		krp_session_init(&s->krp, &c->meta.pub, i, &c->meta.conf);
		krp_session_end(&s->krp, krc_meta_now_ns(&c->meta));
	}
	spin_unlock_bh(&c->meta.lock);
	return c;
}

static struct krp_record *krc_test_find(struct krc_test_client *c, u16 service)
{
	struct krp_record *rec;

	spin_lock_bh(&c->meta.lock);
	rec = krc_meta_record_find(&c->meta, service);
	spin_unlock_bh(&c->meta.lock);
	return rec;
}

static struct krp_record *krc_test_publish(struct kunit *test, struct krc_test_client *c,
					   u16 service)
{
	static const struct krp_value value = {
		.kind = KRP_KIND_DCT,
		.dct = { .mtu = 3, .port = 1 },
	};
	struct krp_record *rec;

	KUNIT_ASSERT_EQ(test, krc_meta_publish(&c->meta, service, &value), 0);
	rec = krc_test_find(c, service);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	return rec;
}

/* A server has got a record, and its answer is this state. */
static void krc_test_set(struct krc_test_client *c, struct krp_record *rec, u32 i, enum krp_at to)
{
	spin_lock_bh(&c->meta.lock);
	rec->at[i].there = 1;
	krp_record_set(&c->meta.pub, rec, i, to);
	spin_unlock_bh(&c->meta.lock);
}

static u32 krc_test_count(const struct krp_list *records)
{
	const struct krp_list *l;
	u32 nr = 0;

	for (l = records->next; l != records; l = l->next)
		nr++;
	return nr;
}

/* The end of a client, all of whose servers are silent. */
static void krc_test_end(struct krc_test_client *c, struct krp_list *left)
{
	u32 i;

	spin_lock_bh(&c->meta.lock);
	c->meta.closing = true;
	for (i = 0; i < KRC_TEST_SERVERS; i++)
		if (c->meta.pub.peer[i])
			krp_records_leave(&c->meta.pub, i, c->meta.closing);
	spin_unlock_bh(&c->meta.lock);
	krc_meta_take_orphans(&c->meta, left);
	krc_meta_records_free(&c->meta);
}

static void krc_test_what_is_left_goes_on(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b, *again;
	struct krp_list left = KRP_LIST_INIT(left);
	struct krp_record *rec;

	krc_test_set(a, krc_test_publish(test, a, KRP_SERVICE_NODE), 0, KRP_AT_ACKED);
	rec = krc_test_publish(test, a, KRC_TEST_SERVICE);
	krc_test_set(a, rec, 0, KRP_AT_ACKED); /* its withdrawal, by both */
	krc_test_set(a, rec, 1, KRP_AT_ACKED);
	krc_test_end(a, &left);
	KUNIT_ASSERT_EQ(test, krc_test_count(&left), 1U);

	b = krc_test_client_new(test, 2);
	krc_meta_adopt_orphans(&b->meta, &left, true);
	KUNIT_EXPECT_EQ(test, krc_test_count(&left), 1U); /* not of its address */
	krc_meta_adopt_orphans(&b->meta, &left, false);
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&left));
	KUNIT_ASSERT_EQ(test, b->meta.pub.nr, 1U);
	rec = krp_entry(b->meta.pub.records.next, struct krp_record, link);
	KUNIT_EXPECT_TRUE(test, rec->gone && rec->adopted);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_DIRTY);
	KUNIT_EXPECT_EQ(test, rec->at[1].state, KRP_AT_DIRTY);

	/* that client reaches nobody either */
	krc_test_end(b, &left);
	KUNIT_ASSERT_EQ(test, krc_test_count(&left), 1U);

	again = krc_test_client_new(test, 1);
	rec = krc_test_publish(test, again, KRP_SERVICE_NODE);
	krc_meta_adopt_orphans(&again->meta, &left, true);
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&left));
	KUNIT_EXPECT_EQ(test, again->meta.pub.nr, 1U);
	KUNIT_EXPECT_FALSE(test, rec->gone);
	krc_meta_records_free(&again->meta);
}

static void krc_test_an_address_that_is_back(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b = krc_test_client_new(test, 2);
	struct krp_list left = KRP_LIST_INIT(left);
	struct krp_record *own;
	u32 round;

	own = krc_test_publish(test, b, KRP_SERVICE_NODE);
	for (round = 0; round < 3; round++) {
		krc_test_publish(test, a, KRP_SERVICE_NODE);
		krc_test_publish(test, a, KRC_TEST_SERVICE);
		krc_test_end(a, &left);
		a = krc_test_client_new(test, 1);
		krc_meta_adopt_orphans(&b->meta, &left, false);
		/* the same as before, not one more */
		KUNIT_EXPECT_EQ(test, b->meta.pub.nr, 3U);
	}
	krc_meta_release_orphans(&b->meta, &b->meta.gid, &left); /* its own are not adopted */
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&left));
	krc_meta_release_orphans(&b->meta, &a->meta.gid, &left);
	KUNIT_EXPECT_EQ(test, krc_test_count(&left), 2U);
	KUNIT_EXPECT_EQ(test, b->meta.pub.nr, 1U);
	KUNIT_EXPECT_FALSE(test, own->gone);

	own = krc_test_publish(test, a, KRP_SERVICE_NODE);
	krc_meta_adopt_orphans(&a->meta, &left, true);
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&left));
	KUNIT_EXPECT_EQ(test, a->meta.pub.nr, 2U); /* a service to withdraw */
	KUNIT_EXPECT_FALSE(test, own->gone);
	krc_meta_records_free(&a->meta);
	krc_meta_records_free(&b->meta);
}

/* Adopted, published again, and withdrawn, all before any server has been there. */
static void krc_test_withdrawn_before_a_server_is_back(struct kunit *test)
{
	struct krc_test_client *a = krc_test_client_new(test, 1), *b = krc_test_client_new(test, 1);
	struct krp_list left = KRP_LIST_INIT(left);
	struct krp_record *rec;

	krc_test_publish(test, a, KRC_TEST_SERVICE);
	krc_test_end(a, &left);
	krc_meta_adopt_orphans(&b->meta, &left, true);
	krc_test_publish(test, b, KRC_TEST_SERVICE);
	krc_meta_withdraw(&b->meta, KRC_TEST_SERVICE);
	rec = krc_test_find(b, KRC_TEST_SERVICE);
	KUNIT_ASSERT_NOT_NULL(test, rec); /* the servers may have it from the first client */
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_DIRTY);
	KUNIT_EXPECT_EQ(test, rec->at[1].state, KRP_AT_DIRTY);

	/* what no server can have is gone at once */
	krc_test_publish(test, b, KRC_TEST_SERVICE + 1);
	krc_meta_withdraw(&b->meta, KRC_TEST_SERVICE + 1);
	KUNIT_EXPECT_NULL(test, krc_test_find(b, KRC_TEST_SERVICE + 1));
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&b->meta.pub.trash));
	krc_meta_records_free(&b->meta);
}

static void krc_test_a_server_is_taken_off(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krp_record *node = krc_test_publish(test, c, KRP_SERVICE_NODE);
	struct krp_record *rec = krc_test_publish(test, c, KRC_TEST_SERVICE);
	struct krp_list left = KRP_LIST_INIT(left);
	u32 i;

	for (i = 0; i < KRC_TEST_SERVERS; i++)
		krc_test_set(c, rec, i, KRP_AT_ACKED);
	krc_test_set(c, node, 0, KRP_AT_ACKED);
	krc_meta_withdraw(&c->meta, KRC_TEST_SERVICE);
	krc_test_set(c, rec, 0, KRP_AT_ACKED);
	spin_lock_bh(&c->meta.lock);
	c->meta.sessions[1] = NULL;
	krp_records_leave(&c->meta.pub, 1, c->meta.closing);
	krc_meta_records_trash(&c->meta);
	spin_unlock_bh(&c->meta.lock);
	KUNIT_EXPECT_NULL(test, krc_test_find(c, KRC_TEST_SERVICE));
	KUNIT_EXPECT_FALSE(test, node->orphaned);
	KUNIT_EXPECT_EQ(test, node->at[1].state, KRP_AT_NEVER);

	krc_test_end(c, &left);
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&left));
}

static void krc_test_what_is_lost_is_published_again(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krp_record *rec = krc_test_publish(test, c, KRP_SERVICE_NODE);
	struct krp_key other = rec->key;
	struct krp_publisher *pub = &c->meta.pub;

	other.gid[15]++;
	krc_test_set(c, rec, 0, KRP_AT_ACKED);
	krc_test_set(c, rec, 1, KRP_AT_ACKED);
	krp_records_lost(pub, 0, &other, KRC_TEST_GENERATION);
	krp_records_lost(pub, 0, &rec->key, KRC_TEST_GENERATION - 1);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_ACKED);
	krp_records_lost(pub, 0, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_DIRTY);
	KUNIT_EXPECT_PTR_EQ(test, krp_records_dirty(pub->peer[0]), rec);
	KUNIT_EXPECT_EQ(test, rec->at[1].state, KRP_AT_ACKED);

	/* an answer will come; and what is withdrawn is to be gone */
	krc_test_set(c, rec, 0, KRP_AT_SENT);
	krp_records_lost(pub, 0, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_SENT);
	krc_test_set(c, rec, 0, KRP_AT_ACKED);
	krp_record_mark_gone(pub, rec, 1);
	krp_records_lost(pub, 0, &rec->key, KRC_TEST_GENERATION);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_ACKED);
	krc_meta_records_free(&c->meta);
}

/* A failure counts, the less the longer it is ago, and not for ever. */
static void krc_test_blame_wears_off(struct kunit *test)
{
	struct krc_test_client *c = krc_test_client_new(test, 1);
	struct krp_session *a = &c->session[0].krp, *b = &c->session[1].krp;
	u64 now_ns = KRP_BLAME_NS;
	u32 i;

	for (i = 0; i < 1000; i++)
		krp_session_blamed(a, now_ns);
	krp_session_blamed(b, now_ns + 12 * KRP_BLAME_NS);
	KUNIT_EXPECT_GT(test, krp_session_blame(a, now_ns),
			krp_session_blame(b, now_ns + 12 * KRP_BLAME_NS));
	now_ns += 12 * KRP_BLAME_NS;
	KUNIT_EXPECT_GT(test, krp_session_blame(b, now_ns), 0U);
	KUNIT_EXPECT_LT(test, krp_session_blame(a, now_ns), krp_session_blame(b, now_ns));
	KUNIT_EXPECT_EQ(test, krp_session_blame(a, now_ns + 40 * KRP_BLAME_NS), 0U);
	KUNIT_EXPECT_EQ(test, a->failure.nr, 1000ULL); /* people see all of them */
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
