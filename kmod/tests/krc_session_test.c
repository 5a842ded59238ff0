// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the driver of the sessions, meta/session.c, between the machine of proto/krp_session.h
 * and a NIC in memory, which keeps what is sent. The server's words are given here: those of
 * the golden transcript, proto/vectors/session.txt, to which the answers must be those of the
 * transcript byte by byte, and words that no server should say. Also what a miss is worth whose
 * server settles (meta/meta.c), and who gets a READ slot for which many wait (meta/read.c).
 * The work item is the test: it does what meta/session.c would have it do.
 * Linked into krcore.ko.
 */
#include <crypto/hash.h>
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "krc_session_vectors.h"
#include "krp_session.h"
#include "meta/changes.h"
#include "meta/meta_priv.h"

#define KRC_TEST_SERVICE 300
#define KRC_TEST_SLOTS 4
#define KRC_TEST_POSTS 16
#define KRC_TEST_READERS 4
#define KRC_TEST_WAIT_MS 5000
#define KRC_TEST_LONG_MS (3600 * 1000)

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
 * @read: READ that was posted last; NULL once it was completed.
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
	struct ib_cqe *read;
};

static int krc_test_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_send_wr **bad)
{
	struct krc_test_link *l = container_of(qp, struct krc_test_link, qp);
	struct krc_test_post *post = &l->posts[l->posts_nr];

	if (wr->opcode == IB_WR_RDMA_READ) {
		WRITE_ONCE(l->read, wr->wr_cqe);
		return 0;
	}
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

static int krc_test_poll_cq(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
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
	l->ibdev.ops.poll_cq = krc_test_poll_cq;
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

/* ---- tasks that look up */

/**
 * struct krc_test_reader - A task that asks the server.
 * @l: session.
 * @thread: the task.
 * @payer: on whose account.
 * @timeout_ms: how long it waits.
 * @err: what came of it, once @ended.
 * @ended: its place among those that have ended, from 1; 0: it has not.
 * @miss: what a miss is worth.
 */
struct krc_test_reader {
	struct krc_test_link *l;
	struct task_struct *thread;
	const void *payer;
	u32 timeout_ms;
	int err;
	u32 ended;
	enum krc_miss miss;
};

static atomic_t krc_test_ended;

static void krc_test_reader_end(struct krc_test_reader *reader, int err)
{
	reader->err = err;
	WRITE_ONCE(reader->ended, atomic_inc_return(&krc_test_ended));
	while (!kthread_should_stop()) {
		flush_signals(current);
		schedule_timeout_interruptible(1);
	}
}

/* READ the root, which is torn: nothing is learnt from it. */
static int krc_test_reads(void *arg)
{
	struct krc_test_reader *reader = arg;
	struct krc_meta_query q = { .payer = reader->payer,
				    .deadline = jiffies + msecs_to_jiffies(reader->timeout_ms) };
	struct krp_pulse pulse;

	allow_signal(SIGKILL);
	krc_test_reader_end(reader, krc_meta_read_pulse(reader->l->conn, &q, &pulse));
	return 0;
}

static int krc_test_asks(void *arg)
{
	struct krc_test_reader *reader = arg;
	struct krp_key key = { .gid = { 0xfe, 0x80 }, .service = cpu_to_le16(1) };
	struct krp_value value;

	krc_test_reader_end(reader, krc_meta_lookup(&reader->l->meta, reader->payer, &key,
						    KRC_TEST_LONG_MS, &value, NULL, &reader->miss));
	return 0;
}

static void krc_test_reader_begin(struct kunit *test, struct krc_test_link *l,
				  struct krc_test_reader *reader, int (*does)(void *arg))
{
	reader->l = l;
	reader->thread = kthread_run(does, reader, "krc_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(reader->thread));
}

/* Wait until a condition holds. */
#define krc_test_wait(test, cond) \
	do { \
		unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS); \
		while (!(cond) && time_before(jiffies, limit)) \
			usleep_range(100, 200); \
		KUNIT_EXPECT_TRUE(test, cond); \
	} while (0)

/* A session whose READ slots are all in use, so that tasks wait for one. */
static struct krc_test_link *krc_test_no_slot(struct kunit *test)
{
	struct krc_test_link *l = krc_test_link_new(test, KRC_TEST_SLOTS);
	struct krc_meta_conn *conn = l->conn;
	u32 i;

	conn->read[0].data = kunit_kzalloc(test, sizeof(struct krp_root), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn->read[0].data);
	krc_test_start(l);
	krp_pulse_start(&conn->pulse, 1, 0);
	krp_pulse_settling(&conn->pulse);
	for (i = 0; i < KRC_META_READS; i++)
		conn->read[i].taken = true;
	atomic_set(&krc_test_ended, 0);
	return l;
}

/* The NIC has done the READ that was posted last. */
static void krc_test_read_done(struct krc_test_link *l)
{
	struct ib_wc wc = { .wr_cqe = l->read, .status = IB_WC_SUCCESS };

	WRITE_ONCE(l->read, NULL);
	wc.wr_cqe->done(&l->cq, &wc);
}

/* The first slot is not used any more, by a task that waits no longer for its READ. */
static void krc_test_slot_free(struct krc_test_link *l)
{
	struct krc_meta_read *r = &l->conn->read[0];

	spin_lock_bh(&l->conn->read_lock);
	r->posted = true;
	r->abandoned = true;
	atomic_inc(&l->conn->posted);
	spin_unlock_bh(&l->conn->read_lock);
	l->read = &r->cqe;
	krc_test_read_done(l);
}

/* Nobody waits, nothing is posted, and of the slots only the first is free. */
static void krc_test_only_one_is_free(struct kunit *test, struct krc_test_link *l)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, l->conn->line.waiting, 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&l->conn->line.heads));
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->posted), 0);
	for (i = 0; i < KRC_META_READS; i++) {
		KUNIT_EXPECT_EQ(test, l->conn->read[i].taken, i != 0);
		KUNIT_EXPECT_FALSE(test, l->conn->read[i].posted || l->conn->read[i].abandoned);
	}
}

/* A payer with many tasks that wait for a slot delays another one by one of them. */
static void krc_test_slots_are_shared_by_payers(struct kunit *test)
{
	static const u8 payers[KRC_TEST_READERS] = { 0, 0, 0, 1 };
	static const u32 place[KRC_TEST_READERS] = { 1, 3, 4, 2 };
	struct krc_test_reader reader[KRC_TEST_READERS] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < KRC_TEST_READERS; i++) {
		reader[i].payer = &payers[payers[i] * 3];
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
		krc_test_wait(test, READ_ONCE(l->conn->line.waiting) == i + 1);
	}
	krc_test_slot_free(l);
	for (i = 1; i <= KRC_TEST_READERS; i++) {
		krc_test_wait(test, READ_ONCE(l->read));
		if (!l->read)
			break;
		krc_test_read_done(l);
		krc_test_wait(test, atomic_read(&krc_test_ended) == i);
	}
	for (i = 0; i < KRC_TEST_READERS; i++) {
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].ended, place[i]);
		KUNIT_EXPECT_EQ(test, reader[i].err, 0);
	}
	krc_test_only_one_is_free(test, l);
	krc_test_link_free(l);
}

/* A task that gives up its wait for a slot, or has one when it is killed, leaves nothing behind. */
static void krc_test_a_wait_for_a_slot_that_ends(struct kunit *test)
{
	struct krc_test_reader reader[3] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		reader[i].timeout_ms = i == 1 ? 1 : KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
	}
	krc_test_wait(test, READ_ONCE(l->conn->line.waiting) == 2 && READ_ONCE(reader[1].ended));
	KUNIT_EXPECT_EQ(test, reader[1].err, -ETIMEDOUT);
	send_sig(SIGKILL, reader[0].thread, 1);
	krc_test_wait(test, READ_ONCE(reader[0].ended));
	KUNIT_EXPECT_EQ(test, reader[0].err, -EINTR);
	KUNIT_EXPECT_EQ(test, l->conn->line.waiting, 1U);
	KUNIT_EXPECT_NULL(test, l->read);
	krc_test_slot_free(l);
	send_sig(SIGKILL, reader[2].thread, 1);
	krc_test_wait(test, READ_ONCE(reader[2].ended));
	KUNIT_EXPECT_EQ(test, reader[2].err, -EINTR);
	if (l->read) /* it was posted, and is the NIC's */
		krc_test_read_done(l);
	for (i = 0; i < ARRAY_SIZE(reader); i++)
		kthread_stop(reader[i].thread);
	krc_test_only_one_is_free(test, l);
	krc_test_link_free(l);
}

/* With the connection each wait for one of its slots ends. */
static void krc_test_no_slot_will_come(struct kunit *test)
{
	struct krc_test_reader reader[2] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
	}
	krc_test_wait(test, READ_ONCE(l->conn->line.waiting) == ARRAY_SIZE(reader));
	krc_meta_reads_stop(l->conn);
	krc_test_slot_free(l);
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		krc_test_wait(test, READ_ONCE(reader[i].ended));
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].err, -ENOTCONN);
	}
	krc_test_only_one_is_free(test, l);
	krc_test_link_free(l);
}

/* ---- misses */

/* The server has no such record. */
static void krc_test_not_found(struct krc_test_link *l)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)l->posts[0].msg;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];

	krp_msg_init(msg, KRP_MSG_VALUE, le32_to_cpu(hdr->xid), KRP_ST_NOT_FOUND,
		     l->s.krp.incarnation);
	krc_meta_message(l->conn, msg, sizeof(struct krp_value_msg));
}

/* What a miss of the only server is worth that settles until @before, and then until @after. */
static enum krc_miss krc_test_missed(struct kunit *test, u64 before, u64 after, bool still)
{
	struct krc_test_link *l = krc_test_link_new(test, KRC_TEST_SLOTS);
	struct krc_test_reader reader = {};

	krc_test_start(l);
	krc_test_lines(test, l, 1, 7);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	l->meta.order_nr = 1;
	l->s.krp.settle_ns = before;
	l->s.krp.still = still;
	krc_test_reader_begin(test, l, &reader, krc_test_asks);
	krc_test_wait(test, READ_ONCE(l->posts_nr) == 1);
	spin_lock_bh(&l->meta.lock);
	l->s.krp.settle_ns = after;
	l->s.krp.still = false;
	spin_unlock_bh(&l->meta.lock);
	krc_test_not_found(l);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	KUNIT_EXPECT_EQ(test, reader.err, -ENOENT);
	krc_test_complete(l, 0);
	krc_test_link_free(l);
	return reader.miss;
}

/* Settling that ended while a miss was on its way has not ended for that miss. */
static void krc_test_a_miss_of_who_settled(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 0, 0, false), KRC_MISS_PROVED);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 1, 1, false), KRC_MISS_PROVED);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, KRP_FOREVER_NS, 1, false), KRC_MISS_WEAK);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 1, KRP_FOREVER_NS, false), KRC_MISS_WEAK);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 0, 0, true), KRC_MISS_WEAK);
}

static struct kunit_case krc_session_cases[] = { KUNIT_CASE(krc_test_transcript),
						 KUNIT_CASE(krc_test_a_word_of_another_life),
						 KUNIT_CASE(krc_test_a_send_that_is_refused),
						 KUNIT_CASE(krc_test_a_buffer_is_the_nics),
						 KUNIT_CASE(krc_test_slots_are_shared_by_payers),
						 KUNIT_CASE(krc_test_a_wait_for_a_slot_that_ends),
						 KUNIT_CASE(krc_test_no_slot_will_come),
						 KUNIT_CASE(krc_test_a_miss_of_who_settled),
						 {} };

static struct kunit_suite krc_session_suite = {
	.name = "krcore_session",
	.test_cases = krc_session_cases,
};

kunit_test_suites(&krc_session_suite);
