// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the driver of the sessions, meta/session.c, between the machine of proto/krp_session.h
 * and a NIC in memory, which keeps what is sent. The server's words are given here: those of
 * the golden transcript, proto/vectors/session.txt, to which the answers must be those of the
 * transcript byte by byte, and words that no server should say.
 * The work item is the test: it does what meta/session.c would have it do.
 * Linked into krcore.ko.
 */
#include <crypto/hash.h>
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "krc_session_vectors.h"
#include "krp_session.h"
#include "meta/changes.h"
#include "meta/meta_priv.h"

#define KRC_TEST_SERVICE 300
#define KRC_TEST_SLOTS 4
#define KRC_TEST_POSTS 16

/**
 * struct krc_test_post - What the NIC was given.
 * @cqe: completion; NULL once it was said.
 * @bytes: length.
 * @msg: message.
 */
struct krc_test_post {
	struct ib_cqe *cqe;
	u32 bytes;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];
};

/**
 * struct krc_test_link - A session with a server that the test plays.
 * @ibdev: NIC in memory.
 * @qp: queue pair.
 * @cq: completion queue.
 * @pd: protection domain.
 * @id: connection.
 * @meta: client.
 * @s: its session.
 * @conn: what the driver has of the connection.
 * @posts: messages, the oldest first.
 * @posts_nr: length of @posts.
 * @refuse: what posting returns; 0: it works.
 */
struct krc_test_link {
	struct ib_device ibdev;
	struct ib_qp qp;
	struct ib_cq cq;
	struct ib_pd pd;
	struct rdma_cm_id id;
	struct krc_meta meta;
	struct krc_meta_session s;
	struct krc_meta_conn *conn;
	struct krc_test_post posts[KRC_TEST_POSTS];
	u32 posts_nr;
	int refuse;
};

static int krc_test_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_send_wr **bad)
{
	struct krc_test_link *l = container_of(qp, struct krc_test_link, qp);
	struct krc_test_post *post = &l->posts[l->posts_nr];

	lockdep_assert_held(&l->meta.lock);
	if (l->refuse)
		return l->refuse;
	if (WARN_ON_ONCE(l->posts_nr == KRC_TEST_POSTS))
		return -ENOMEM;
	post->cqe = wr->wr_cqe;
	post->bytes = wr->sg_list->length;
	memcpy(post->msg, (void *)(uintptr_t)wr->sg_list->addr, post->bytes);
	l->posts_nr++;
	return 0;
}

static int krc_test_req_notify(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

/* Stands for the work item, which the test runs by hand. */
static void krc_test_no_work(struct work_struct *work)
{
}

/* Bytes of hex, which may have spaces. Return: how many. */
static u32 krc_test_unhex(struct kunit *test, const char *text, void *buf, size_t max)
{
	u8 *to = buf;
	size_t nr = 0;

	for (; *text; text += *text == ' ' ? 1 : 2) {
		if (*text == ' ')
			continue;
		KUNIT_ASSERT_LT(test, nr, max);
		KUNIT_ASSERT_EQ(test, hex2bin(&to[nr++], text, 1), 0);
	}
	return nr;
}

/* The NIC has sent a message, and does not need the buffer any more. */
static void krc_test_complete(struct krc_test_link *l, u32 i)
{
	struct ib_wc wc = { .wr_cqe = l->posts[i].cqe, .status = IB_WC_SUCCESS };

	l->posts[i].cqe = NULL;
	if (wc.wr_cqe)
		wc.wr_cqe->done(&l->cq, &wc);
}

/* Take the oldest message; @ret: KRP_MSG_BYTES_MAX. Return: its length; 0: there is none. */
static u32 krc_test_take(struct krc_test_link *l, void *ret)
{
	u32 bytes = l->posts[0].bytes;

	if (!l->posts_nr)
		return 0;
	krc_test_complete(l, 0);
	memcpy(ret, l->posts[0].msg, bytes);
	l->posts_nr--;
	memmove(&l->posts[0], &l->posts[1], l->posts_nr * sizeof(l->posts[0]));
	return bytes;
}

/* The clock is the host's, which may stand still for seconds: no lease is renewed but once. */
static void krc_test_no_renewal(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->s.krp.renew_ns = KRP_FOREVER_NS;
	spin_unlock_bh(&l->meta.lock);
}

static void krc_test_connect(struct kunit *test, struct krc_test_link *l)
{
	u8 nonce[KRP_NONCE_BYTES];
	struct krp_link link;
	u32 i;

	for (i = 0; i < sizeof(nonce); i++)
		nonce[i] = 0x10 + i;
	krc_test_unhex(test, krc_session_link, &link, sizeof(link));
	spin_lock_bh(&l->meta.lock);
	l->s.conn = l->conn;
	spin_unlock_bh(&l->meta.lock);
	krc_meta_session_connected(&l->s, &link, nonce, l->conn->ring->id[0]);
}

/* What the work item would do, until there is nothing. Return: BIT(KRP_DO_CLOSE) or 0. */
static u32 krc_test_work(struct kunit *test, struct krc_test_link *l)
{
	u32 duties;

	for (;;) {
		spin_lock_bh(&l->meta.lock);
		duties = l->s.duties;
		l->s.duties = 0;
		spin_unlock_bh(&l->meta.lock);
		if (duties & BIT(KRP_DO_CONNECT))
			krc_test_connect(test, l);
		else if (duties & BIT(KRP_DO_PROVE))
			krc_meta_attach_prove(&l->s);
		else if (duties & BIT(KRP_DO_VERIFY))
			krc_meta_attach_verify(&l->s);
		else if (duties & BIT(KRP_DO_LOAD))
			krc_meta_session_loaded(&l->s, 0);
		else
			return duties;
		krc_test_no_renewal(l);
	}
}

/* The parts of the connection that the driver touches. */
static void krc_test_conn(struct kunit *test, struct krc_test_link *l)
{
	struct krc_meta_conf *conf = kunit_kzalloc(test, sizeof(*conf), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conf);
	l->ibdev.ops.post_send = krc_test_post_send;
	l->ibdev.ops.req_notify_cq = krc_test_req_notify;
	l->ibdev.dev.init_name = "krc_test";
	l->qp.device = &l->ibdev;
	l->cq.device = &l->ibdev;
	l->id.qp = &l->qp;
	l->conn = krc_meta_conn_new(&l->s);
	KUNIT_ASSERT_NOT_NULL(test, l->conn);
	l->conn->id = &l->id;
	l->conn->pd = &l->pd;
	l->conn->send_cq.ib = &l->cq;
	l->conn->send_buf.p = kunit_kzalloc(test, KRC_META_SENDS * KRP_MSG_BYTES_MAX, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l->conn->send_buf.p);
	l->conn->send_buf.dma = (uintptr_t)l->conn->send_buf.p;
	conf->keys_nr = 1;
	conf->keys[0].len = krc_test_unhex(test, krc_session_key, conf->keys[0].bytes,
					   sizeof(conf->keys[0].bytes));
	KUNIT_ASSERT_EQ(test, krc_meta_ring_new(conf, &l->conn->ring), 0);
}

static struct krc_test_link *krc_test_link_new(struct kunit *test, u32 slots)
{
	struct krc_test_link *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct krp_link link;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	krc_test_conn(test, l);
	krc_test_unhex(test, krc_session_link, &link, sizeof(link));
	spin_lock_init(&l->meta.lock);
	init_waitqueue_head(&l->meta.wait);
	krp_publisher_init(&l->meta.pub, l->meta.chains, KRC_META_CHAINS, KRC_META_SERVERS_MAX);
	l->meta.ibdev = &l->ibdev;
	l->meta.port = 1;
	memcpy(l->meta.gid.raw, link.client_gid, sizeof(l->meta.gid.raw));
	l->meta.conf = (struct krp_session_conf){
		.name = "node1",
		.generation = 7,
		.features = KRP_FEATURES_ALL,
		.lease_ms = 3000,
		.timeout_ms = 3600 * 1000,
		.slots = slots,
	};
	for (i = 0; i < sizeof(l->meta.conf.owner); i++)
		l->meta.conf.owner[i] = i;
	l->meta.cache = krc_cache_create(16);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->meta.cache));
	l->meta.wq = alloc_workqueue("krc_test", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, l->meta.wq);
	l->s.meta = &l->meta;
	l->s.armed_ns = KRP_FOREVER_NS;
	INIT_DELAYED_WORK(&l->s.work, krc_test_no_work);
	return l;
}

static void krc_test_start(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->meta.sessions[0] = &l->s;
	krc_meta_session_start(&l->s);
	spin_unlock_bh(&l->meta.lock);
}

static void krc_test_link_free(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->meta.sessions[0] = NULL;
	krc_meta_session_end(&l->s);
	spin_unlock_bh(&l->meta.lock);
	cancel_delayed_work_sync(&l->s.work);
	destroy_workqueue(l->meta.wq);
	l->conn->id = NULL;
	l->conn->pd = NULL;
	l->conn->send_cq.ib = NULL;
	l->conn->send_buf.p = NULL;
	krc_meta_conn_free(l->conn);
	krc_meta_records_free(&l->meta);
	krc_cache_destroy(l->meta.cache);
}

static void krc_test_publish(struct kunit *test, struct krc_test_link *l, u16 service)
{
	struct krp_value value = { .kind = KRP_KIND_RAW, .len = 1, .raw = { 42 } };

	KUNIT_ASSERT_EQ(test, krc_meta_publish(&l->meta, service, &value), 0);
}

/* Play a line of the transcript: give the server's words, or compare the driver's. */
static void krc_test_line(struct kunit *test, struct krc_test_link *l, u32 i)
{
	const char *name = krc_session_lines[i][0];
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)], wanted[KRP_MSG_BYTES_MAX / sizeof(u64)];
	u32 bytes = krc_test_unhex(test, krc_session_lines[i][1], wanted, sizeof(wanted));

	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), 0U);
	if (strstr(name, "_server_")) {
		KUNIT_EXPECT_EQ_MSG(test, l->posts_nr, 0U, "unexpected before %s", name);
		krc_meta_message(l->conn, wanted, bytes);
		return;
	}
	KUNIT_ASSERT_EQ_MSG(test, krc_test_take(l, msg), bytes, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(msg, wanted, bytes), 0, "%s", name);
}

static void krc_test_lines(struct kunit *test, struct krc_test_link *l, u32 from, u32 to)
{
	u32 i;

	for (i = from; i <= to; i++)
		krc_test_line(test, l, i - 1); /* lines are numbered from 1 */
}

/* LOOKUP of the next service. */
static void krc_test_ask(struct kunit *test, struct krc_test_link *l, struct krc_meta_ask *ask)
{
	memset(ask, 0, sizeof(*ask));
	init_completion(&ask->done);
	ask->krp.type = KRP_MSG_LOOKUP;
	memcpy(ask->krp.key.gid, l->meta.gid.raw, sizeof(ask->krp.key.gid));
	ask->krp.key.service = cpu_to_le16(KRC_TEST_SERVICE + 1);
	spin_lock_bh(&l->meta.lock);
	KUNIT_EXPECT_EQ(test, krp_session_ask(&l->s.krp, &ask->krp), 0);
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
	struct krc_test_link *l = krc_test_link_new(test, KRC_TEST_SLOTS);
	struct krp_value value = { .generation = cpu_to_le64(7), .kind = KRP_KIND_RAW, .len = 1 };
	struct krp_key key = { .service = cpu_to_le16(KRC_TEST_SERVICE) };
	struct krc_follower follower = {};
	struct krp_event events[8];
	struct krc_meta_ask ask;
	u32 nr;

	memcpy(key.gid, l->meta.gid.raw, sizeof(key.gid));
	krc_changes_follow(&follower);
	krc_changes_take(&follower, events, ARRAY_SIZE(events)); /* all that was before */
	krc_test_publish(test, l, KRC_TEST_SERVICE);
	krc_test_start(l);
	krc_test_lines(test, l, 1, 10);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	KUNIT_EXPECT_EQ(test, krc_meta_published(&l->meta, KRC_TEST_SERVICE, 0), 0);
	krc_cache_put(l->meta.cache, &key, &value, krc_cache_epoch(l->meta.cache));
	KUNIT_EXPECT_EQ(test, krc_cache_get(l->meta.cache, &key, &value), 0);
	krc_test_lines(test, l, 11, 14); /* it is gone, and published again */
	KUNIT_EXPECT_NE(test, krc_cache_get(l->meta.cache, &key, &value), 0);
	krc_test_ask(test, l, &ask);
	krc_test_lines(test, l, 15, 16);
	KUNIT_EXPECT_TRUE(test, completion_done(&ask.done));
	KUNIT_EXPECT_EQ(test, ask.krp.err, 0);
	KUNIT_EXPECT_EQ(test, ask.krp.value.raw[0], 43);
	krc_meta_withdraw(&l->meta, KRC_TEST_SERVICE);
	krc_test_lines(test, l, 17, ARRAY_SIZE(krc_session_lines));
	KUNIT_EXPECT_EQ(test, l->posts_nr, 0U);
	KUNIT_EXPECT_EQ(test, l->meta.pub.nr, 0U);

	nr = krc_changes_take(&follower, events, ARRAY_SIZE(events));
	KUNIT_EXPECT_GE(test, krc_test_told(events, nr, KRP_EVENT_RESYNC), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_told(events, nr, KRP_EVENT_CHANGED), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_told(events, nr, KRP_EVENT_GONE), 1U);
	krc_changes_leave(&follower);
	krc_test_link_free(l);
}

/* A server that says what it should not: nothing waits for it any more, and nothing is READ. */
static void krc_test_a_word_of_another_life(struct kunit *test)
{
	struct krc_test_link *l = krc_test_link_new(test, KRC_TEST_SLOTS);
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];
	struct krc_meta_ask ask;
	u32 bytes, posted;

	krc_test_publish(test, l, KRC_TEST_SERVICE);
	krc_test_start(l);
	krc_test_lines(test, l, 1, 10);
	krc_test_ask(test, l, &ask);
	KUNIT_EXPECT_FALSE(test, completion_done(&ask.done));
	posted = l->posts_nr;
	bytes = krc_test_unhex(test, krc_session_lines[10][1], msg, sizeof(msg));
	((struct krp_msg_hdr *)msg)->incarnation ^= cpu_to_le64(1);
	krc_meta_message(l->conn, msg, bytes);
	KUNIT_EXPECT_TRUE(test, completion_done(&ask.done));
	KUNIT_EXPECT_EQ(test, ask.krp.err, -ENOTCONN);
	KUNIT_EXPECT_TRUE(test, l->conn->broken);
	KUNIT_EXPECT_EQ(test, l->s.krp.error, -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), (u32)BIT(KRP_DO_CLOSE));

	/* neither its next words nor a change of a record do anything */
	((struct krp_msg_hdr *)msg)->incarnation ^= cpu_to_le64(1);
	krc_meta_message(l->conn, msg, bytes);
	krc_test_publish(test, l, KRC_TEST_SERVICE + 1);
	KUNIT_EXPECT_EQ(test, l->posts_nr, posted);
	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.error, -ESTALE);
	krc_test_link_free(l);
}

static void krc_test_a_send_that_is_refused(struct kunit *test)
{
	struct krc_test_link *l = krc_test_link_new(test, KRC_TEST_SLOTS);
	struct krp_record *rec;

	krc_test_start(l);
	krc_test_lines(test, l, 1, 7);
	l->refuse = -ENOMEM;
	krc_test_publish(test, l, KRC_TEST_SERVICE);
	KUNIT_EXPECT_EQ(test, l->s.krp.error, -ENOMEM);
	KUNIT_EXPECT_STREQ(test, l->s.krp.reason, "sending PUBLISH failed (-12)");
	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), (u32)BIT(KRP_DO_CLOSE));
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->posted), 0);
	spin_lock_bh(&l->meta.lock);
	rec = krc_meta_record_find(&l->meta, KRC_TEST_SERVICE);
	spin_unlock_bh(&l->meta.lock);
	KUNIT_EXPECT_EQ(test, rec->at[0].state, KRP_AT_DIRTY); /* the next attach sends it */
	krc_test_link_free(l);
}

/* Answer the oldest message, which the NIC still has. */
static void krc_test_acknowledge(struct krc_test_link *l, u32 i)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)l->posts[i].msg;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];

	krp_msg_init(msg, KRP_MSG_ACK, le32_to_cpu(hdr->xid), KRP_ST_OK, l->s.krp.incarnation);
	krc_meta_message(l->conn, msg, sizeof(struct krp_ack));
}

/* An answer alone does not free a buffer, nor does the NIC alone. */
static void krc_test_a_buffer_is_the_nics(struct kunit *test)
{
	struct krc_test_link *l = krc_test_link_new(test, 2);
	u32 i;

	krc_test_start(l);
	krc_test_lines(test, l, 1, 4);
	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), 0U);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 2U); /* RENEW, SUBSCRIBE: both buffers */
	for (i = 0; i < 3; i++)
		krc_test_publish(test, l, KRC_TEST_SERVICE + i);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U);
	krc_test_acknowledge(l, 0);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U); /* a credit, but no buffer */
	krc_test_complete(l, 1);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 2U); /* sent, but not answered */
	krc_test_complete(l, 0);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 3U);
	krc_test_acknowledge(l, 1);
	KUNIT_ASSERT_EQ(test, l->posts_nr, 4U);
	krc_test_complete(l, 2);
	krc_test_acknowledge(l, 2);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 5U);
	KUNIT_EXPECT_EQ(test, krc_test_work(test, l), 0U);
	krc_test_link_free(l);
}

static struct kunit_case krc_session_cases[] = { KUNIT_CASE(krc_test_transcript),
						 KUNIT_CASE(krc_test_a_word_of_another_life),
						 KUNIT_CASE(krc_test_a_send_that_is_refused),
						 KUNIT_CASE(krc_test_a_buffer_is_the_nics),
						 {} };

static struct kunit_suite krc_session_suite = {
	.name = "krcore_session",
	.test_cases = krc_session_cases,
};

kunit_test_suites(&krc_session_suite);
