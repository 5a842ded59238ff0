// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the session, the NIC and the server of the suites in krc_session_test.c and
 * krc_lookups_test.c; see krc_session_test.h.
 * Linked into krcore.ko.
 */
#include <linux/kernel.h>
#include <linux/slab.h>

#include "krc_session_test.h"
#include "krc_session_vectors.h"

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

u32 krc_link_unhex(struct kunit *test, const char *text, void *buf, size_t max)
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

void krc_link_complete(struct krc_test_link *l, u32 i)
{
	struct ib_wc wc = { .wr_cqe = l->posts[i].cqe, .status = IB_WC_SUCCESS };

	l->posts[i].cqe = NULL;
	if (wc.wr_cqe)
		wc.wr_cqe->done(&l->cq, &wc);
}

u32 krc_link_take(struct krc_test_link *l, void *ret)
{
	u32 bytes = l->posts[0].bytes;

	if (!l->posts_nr)
		return 0;
	krc_link_complete(l, 0);
	memcpy(ret, l->posts[0].msg, bytes);
	l->posts_nr--;
	memmove(&l->posts[0], &l->posts[1], l->posts_nr * sizeof(l->posts[0]));
	return bytes;
}

/* The clock is the host's, which may stand still for seconds: no lease is renewed but once. */
static void krc_test_no_renewal(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->s.krp.lease.renew_ns = KRP_FOREVER_NS;
	spin_unlock_bh(&l->meta.lock);
}

static void krc_link_connect(struct kunit *test, struct krc_test_link *l)
{
	u8 nonce[KRP_NONCE_BYTES];
	struct krp_link link;
	u32 i;

	for (i = 0; i < sizeof(nonce); i++)
		nonce[i] = 0x10 + i;
	krc_link_unhex(test, krc_session_link, &link, sizeof(link));
	spin_lock_bh(&l->meta.lock);
	l->s.conn = l->conn;
	spin_unlock_bh(&l->meta.lock);
	krc_meta_session_connected(&l->s, &link, nonce, l->conn->ring->id[0]);
}

u32 krc_link_work(struct kunit *test, struct krc_test_link *l)
{
	u32 duties;

	for (;;) {
		spin_lock_bh(&l->meta.lock);
		duties = l->s.duties;
		l->s.duties = 0;
		spin_unlock_bh(&l->meta.lock);
		if (duties & BIT(KRP_DO_CONNECT))
			krc_link_connect(test, l);
		else if (duties & BIT(KRP_DO_PROVE))
			krc_meta_attach_prove(&l->s);
		else if (duties & BIT(KRP_DO_VERIFY))
			krc_meta_attach_verify(&l->s);
		else if (duties & BIT(KRP_DO_LOAD))
			krc_meta_session_loaded(l->conn, 0);
		else
			return duties;
		krc_test_no_renewal(l);
	}
}

void krc_link_conn(struct kunit *test, struct krc_test_link *l)
{
	struct krc_meta_conf *conf = kunit_kzalloc(test, sizeof(*conf), GFP_KERNEL);
	void *zeros = kunit_kzalloc(test, KRC_META_BULK_BYTES, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, conf);
	KUNIT_ASSERT_NOT_NULL(test, zeros);
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
	for (i = 0; i < ARRAY_SIZE(l->conn->slots.at); i++)
		l->conn->slots.at[i].data = zeros;
	conf->keys_nr = 1;
	conf->keys[0].len = krc_link_unhex(test, krc_session_key, conf->keys[0].bytes,
					   sizeof(conf->keys[0].bytes));
	KUNIT_ASSERT_EQ(test, krc_meta_ring_new(conf, &l->conn->ring), 0);
}

struct krc_test_link *krc_link_new(struct kunit *test, u32 slots)
{
	struct krc_test_link *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct krp_link link;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	kref_init(&l->s.ref);
	krc_link_conn(test, l);
	krc_link_unhex(test, krc_session_link, &link, sizeof(link));
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
	krc_line_init(&l->s.asks);
	INIT_DELAYED_WORK(&l->s.work, krc_test_no_work);
	return l;
}

void krc_link_start(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->meta.sessions[0] = &l->s;
	krc_meta_session_start(&l->s);
	spin_unlock_bh(&l->meta.lock);
}

void krc_link_unplug(struct krc_meta_conn *conn)
{
	conn->id = NULL;
	conn->pd = NULL;
	conn->send_cq.ib = NULL;
	conn->send_buf.p = NULL;
}

void krc_link_free(struct krc_test_link *l)
{
	spin_lock_bh(&l->meta.lock);
	l->meta.sessions[0] = NULL;
	krc_meta_session_end(&l->s);
	spin_unlock_bh(&l->meta.lock);
	cancel_delayed_work_sync(&l->s.work);
	destroy_workqueue(l->meta.wq);
	if (l->conn) {
		krc_link_unplug(l->conn);
		krc_meta_conn_put(l->conn);
	}
	krc_meta_records_free(&l->meta);
	krc_cache_destroy(l->meta.cache);
}

void krc_link_publish(struct kunit *test, struct krc_test_link *l, u16 service)
{
	struct krp_value value = { .kind = KRP_KIND_RAW, .len = 1, .raw = { 42 } };

	KUNIT_ASSERT_EQ(test, krc_meta_publish(&l->meta, service, &value), 0);
}

/* Play a line of the transcript: give the server's words, or compare the driver's. */
static void krc_test_line(struct kunit *test, struct krc_test_link *l, u32 i)
{
	const char *name = krc_session_lines[i][0];
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)], wanted[KRP_MSG_BYTES_MAX / sizeof(u64)];
	u32 bytes = krc_link_unhex(test, krc_session_lines[i][1], wanted, sizeof(wanted));

	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), 0U);
	if (strstr(name, "_server_")) {
		KUNIT_EXPECT_EQ_MSG(test, l->posts_nr, 0U, "unexpected before %s", name);
		krc_meta_message(l->conn, wanted, bytes);
		return;
	}
	KUNIT_ASSERT_EQ_MSG(test, krc_link_take(l, msg), bytes, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(msg, wanted, bytes), 0, "%s", name);
}

void krc_link_lines(struct kunit *test, struct krc_test_link *l, u32 from, u32 to)
{
	u32 i;

	for (i = from; i <= to; i++)
		krc_test_line(test, l, i - 1); /* lines are numbered from 1 */
}

struct krc_test_link *krc_link_ready(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);

	krc_link_publish(test, l, KRC_TEST_SERVICE);
	krc_link_start(l);
	krc_link_lines(test, l, 1, 10);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	l->meta.order_nr = 1;
	return l;
}
