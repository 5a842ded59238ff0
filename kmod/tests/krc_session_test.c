// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the driver of the sessions, meta/session.c, between the machine of proto/krp_session.h
 * and a NIC in memory, which keeps what is sent. The server's words are given here: those of
 * the golden transcript, proto/vectors/session.txt, to which the answers must be those of the
 * transcript byte by byte, and words that no server should say.
 * The work item is the test: it does what meta/session.c would have it do.
 * Linked into krcore.ko.
 */
#include <linux/kernel.h>

#include "krc_session_test.h"
#include "krc_session_vectors.h"
#include "meta/changes.h"

/* LOOKUP of the next service. */
static void krc_test_ask(struct kunit *test, struct krc_test_link *l, struct krc_meta_ask *ask)
{
	memset(ask, 0, sizeof(*ask));
	init_completion(&ask->done);
	ask->krp.type = KRP_MSG_LOOKUP;
	memcpy(ask->krp.key.gid, l->meta.gid.raw, sizeof(ask->krp.key.gid));
	ask->krp.key.service = cpu_to_le16(KRC_TEST_SERVICE + 1);
	spin_lock_bh(&l->meta.lock);
	krc_line_add(&l->s.asks, &ask->place, NULL);
	krc_meta_session_run(&l->s);
	spin_unlock_bh(&l->meta.lock);
}

/* How often followers were told of a change. */
static u32 krc_test_told(const struct krp_event *events, u32 nr, u8 type)
{
	u32 i, told = 0;

	for (i = 0; i < nr; i++)
		told += events[i].type == type;
	return told;
}

static void krc_test_transcript(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);
	struct krp_value value = { .generation = cpu_to_le64(7), .kind = KRP_KIND_RAW, .len = 1 };
	struct krp_key key = { .service = cpu_to_le16(KRC_TEST_SERVICE) };
	struct krc_follower follower = {};
	struct krp_event events[8];
	struct krc_meta_ask ask;
	u32 nr;

	memcpy(key.gid, l->meta.gid.raw, sizeof(key.gid));
	krc_changes_follow(&follower);
	krc_changes_take(&follower, events, ARRAY_SIZE(events)); /* all that was before */
	krc_link_publish(test, l, KRC_TEST_SERVICE);
	krc_link_start(l);
	krc_link_lines(test, l, 1, 10);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	KUNIT_EXPECT_EQ(test, krc_meta_published(&l->meta, KRC_TEST_SERVICE, 0), 0);
	krc_cache_put(l->meta.cache, &key, &value, krc_cache_epoch(l->meta.cache));
	KUNIT_EXPECT_EQ(test, krc_cache_get(l->meta.cache, &key, &value), 0);
	krc_link_lines(test, l, 11, 14); /* it is gone, and published again */
	KUNIT_EXPECT_NE(test, krc_cache_get(l->meta.cache, &key, &value), 0);
	krc_test_ask(test, l, &ask);
	krc_link_lines(test, l, 15, 16);
	KUNIT_EXPECT_TRUE(test, completion_done(&ask.done));
	KUNIT_EXPECT_EQ(test, ask.krp.err, 0);
	KUNIT_EXPECT_EQ(test, ask.krp.value.raw[0], 43);
	krc_meta_withdraw(&l->meta, KRC_TEST_SERVICE);
	krc_link_lines(test, l, 17, ARRAY_SIZE(krc_session_lines));
	KUNIT_EXPECT_EQ(test, l->posts_nr, 0U);
	KUNIT_EXPECT_EQ(test, l->meta.pub.nr, 0U);

	nr = krc_changes_take(&follower, events, ARRAY_SIZE(events));
	KUNIT_EXPECT_GE(test, krc_test_told(events, nr, KRP_EVENT_RESYNC), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_told(events, nr, KRP_EVENT_CHANGED), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_told(events, nr, KRP_EVENT_GONE), 1U);
	krc_changes_leave(&follower);
	krc_link_free(l);
}

/* A server that says what it should not: nothing waits for it any more, and nothing is READ. */
static void krc_test_a_word_of_another_incarnation(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];
	struct krc_meta_ask ask;
	u32 bytes, posted;

	krc_link_publish(test, l, KRC_TEST_SERVICE);
	krc_link_start(l);
	krc_link_lines(test, l, 1, 10);
	krc_test_ask(test, l, &ask);
	KUNIT_EXPECT_FALSE(test, completion_done(&ask.done));
	posted = l->posts_nr;
	bytes = krc_link_unhex(test, krc_session_lines[10][1], msg, sizeof(msg));
	((struct krp_msg_hdr *)msg)->incarnation ^= cpu_to_le64(1);
	krc_meta_message(l->conn, msg, bytes);
	KUNIT_EXPECT_TRUE(test, completion_done(&ask.done));
	KUNIT_EXPECT_EQ(test, ask.krp.err, -ENOTCONN);
	KUNIT_EXPECT_TRUE(test, l->conn->broken);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), (u32)BIT(KRP_DO_CLOSE));

	/* neither its next words nor a change of a record do anything */
	((struct krp_msg_hdr *)msg)->incarnation ^= cpu_to_le64(1);
	krc_meta_message(l->conn, msg, bytes);
	krc_link_publish(test, l, KRC_TEST_SERVICE + 1);
	KUNIT_EXPECT_EQ(test, l->posts_nr, posted);
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ESTALE);
	krc_link_free(l);
}

static void krc_test_a_send_that_is_refused(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);
	struct krp_record *rec;

	krc_link_start(l);
	krc_link_lines(test, l, 1, 7);
	l->refuse = -ENOMEM;
	krc_link_publish(test, l, KRC_TEST_SERVICE);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ENOMEM);
	KUNIT_EXPECT_STREQ(test, l->s.krp.failure.reason, "sending PUBLISH failed (-12)");
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), (u32)BIT(KRP_DO_CLOSE));
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->posted), 0);
	spin_lock_bh(&l->meta.lock);
	rec = krc_meta_record_find(&l->meta, KRC_TEST_SERVICE);
	spin_unlock_bh(&l->meta.lock);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_DIRTY); /* the next attach sends it */
	krc_link_free(l);
}

/* Answer a message, which the NIC still has. */
static void krc_test_answer(struct krc_test_link *l, u32 i, u32 status)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)l->posts[i].msg;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];

	krp_msg_init(msg, KRP_MSG_ACK, le32_to_cpu(hdr->xid), status, l->s.krp.incarnation);
	krc_meta_message(l->conn, msg, sizeof(struct krp_ack));
}

static void krc_test_acknowledge(struct krc_test_link *l, u32 i)
{
	krc_test_answer(l, i, KRP_ST_OK);
}

/* Why the servers refuse a record, and what its owner is told. */
static const struct {
	u32 status;
	int err;
} krc_test_refusals[] = {
	{ KRP_ST_NOT_OWNER, -EEXIST },	   { KRP_ST_STALE_GENERATION, -ESTALE },
	{ KRP_ST_FOREIGN_GID, -EPERM },	   { KRP_ST_RESERVED, -EPERM },
	{ KRP_ST_LIMIT_RECORDS, -EDQUOT }, { KRP_ST_LIMIT_RATE, -EBUSY },
	{ KRP_ST_TABLE_FULL, -ENOSPC },	   { KRP_ST_NO_MEMORY, -ENOMEM },
};

static void krc_test_a_record_that_is_refused(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(krc_test_refusals); i++) {
		struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);

		krc_link_start(l);
		krc_link_lines(test, l, 1, 4);
		KUNIT_EXPECT_EQ(test, krc_link_work(test, l), 0U);
		KUNIT_ASSERT_EQ(test, l->posts_nr, 2U); /* RENEW, SUBSCRIBE */
		krc_link_complete(l, 0);
		krc_test_acknowledge(l, 0);
		krc_link_complete(l, 1);
		krc_test_acknowledge(l, 1);
		krc_link_publish(test, l, KRC_TEST_SERVICE);
		KUNIT_ASSERT_EQ(test, l->posts_nr, 3U);
		KUNIT_EXPECT_EQ(test, krc_meta_published(&l->meta, KRC_TEST_SERVICE, 0),
				-ETIMEDOUT);
		krc_test_answer(l, 2, krc_test_refusals[i].status);
		KUNIT_EXPECT_EQ(test, krc_meta_published(&l->meta, KRC_TEST_SERVICE, 0),
				krc_test_refusals[i].err);
		krc_link_free(l);
	}
}

/* An answer alone does not free a buffer, nor does the NIC alone. */
static void krc_test_a_buffer_is_the_nics(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, 2);
	u32 i;

	krc_link_start(l);
	krc_link_lines(test, l, 1, 4);
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), 0U);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 2U); /* RENEW, SUBSCRIBE: both buffers */
	for (i = 0; i < 3; i++)
		krc_link_publish(test, l, KRC_TEST_SERVICE + i);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U);
	krc_test_acknowledge(l, 0);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U); /* a credit, but no buffer */
	krc_link_complete(l, 1);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U); /* sent, but not answered */
	krc_link_complete(l, 0);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 3U);
	krc_test_acknowledge(l, 1);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 4U);
	krc_link_complete(l, 2);
	krc_test_acknowledge(l, 2);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 5U);
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), 0U);
	krc_link_free(l);
}

/* A path inside a subnet of InfiniBand gets a route header, by which the server knows our GID. */
static void krc_test_paths_have_a_route_header(struct kunit *test)
{
	static const struct {
		u32 protocol;
		u8 hops;
		u8 then;
	} rows[] = {
		{ RDMA_CORE_PORT_IBA_IB, 0, 1 },
		{ RDMA_CORE_PORT_IBA_IB, 7, 7 }, /* to another subnet: it has one */
		{ RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP, 0, 0 },
	};
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	struct sa_path_rec *path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_TRUE(test, ibdev && path);
	ibdev->port_data = kunit_kcalloc(test, 2, sizeof(*ibdev->port_data), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev->port_data);
	ibdev->phys_port_cnt = 1;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ibdev->port_data[1].immutable.core_cap_flags = rows[i].protocol;
		path->hop_limit = rows[i].hops;
		krc_meta_route_header(ibdev, 1, path);
		KUNIT_EXPECT_EQ(test, path->hop_limit, rows[i].then);
		krc_meta_route_header(ibdev, 1, NULL);
	}
}

static struct kunit_case krc_session_cases[] = { KUNIT_CASE(krc_test_transcript),
						 KUNIT_CASE(krc_test_a_word_of_another_incarnation),
						 KUNIT_CASE(krc_test_a_send_that_is_refused),
						 KUNIT_CASE(krc_test_a_buffer_is_the_nics),
						 KUNIT_CASE(krc_test_a_record_that_is_refused),
						 KUNIT_CASE(krc_test_paths_have_a_route_header),
						 {} };

static struct kunit_suite krc_session_suite = {
	.name = "krcore_session",
	.test_cases = krc_session_cases,
};

kunit_test_suites(&krc_session_suite);
