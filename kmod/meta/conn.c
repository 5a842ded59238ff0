// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the RDMA resources of a connection: protection domain, completion queue, queue
 * pair, buffers. Generic verbs of ib_core only, so that it runs on any RDMA device.
 *
 * One queue pair carries READs and SENDs. The completion queue of receives is polled in
 * softirq; for that of READs and SENDs see meta/cq.c. Buffers are mapped once; the device's
 * local key covers them. Draining is bounded by a timeout: buffers are freed once the queue
 * pair is destroyed.
 * Locking: created and destroyed by the session's work item; SENDs under meta.lock, receives that
 * are posted again under slots.lock.
 */
#include <linux/slab.h>

#include "meta/meta_priv.h"

static int krc_meta_buf_alloc(struct krc_meta_conn *conn, struct krc_meta_buf *buf, size_t bytes,
			      enum dma_data_direction dir)
{
	struct ib_device *ibdev = conn->s->meta->ibdev;
	void *p = kzalloc(bytes, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	buf->dma = ib_dma_map_single(ibdev, p, bytes, dir);
	if (ib_dma_mapping_error(ibdev, buf->dma)) {
		kfree(p);
		return -ENOMEM;
	}
	buf->p = p;
	buf->bytes = bytes;
	buf->dir = dir;
	return 0;
}

static void krc_meta_buf_free(struct krc_meta_conn *conn, struct krc_meta_buf *buf)
{
	if (!buf->p)
		return;
	ib_dma_unmap_single(conn->s->meta->ibdev, buf->dma, buf->bytes, buf->dir);
	kfree_sensitive(buf->p);
	buf->p = NULL;
}

void krc_meta_conn_completed(struct krc_meta_conn *conn)
{
	if (atomic_dec_and_test(&conn->posted))
		wake_up_all(&conn->wait);
}

static int krc_meta_conn_recv(struct krc_meta_conn *conn, struct krc_meta_recv *recv)
{
	unsigned int nr = recv - conn->recv;
	struct ib_sge sge = {
		.addr = conn->recv_buf.dma + nr * KRP_MSG_BYTES_MAX,
		.length = KRP_MSG_BYTES_MAX,
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1 };
	int err;

	atomic_inc(&conn->posted);
	err = ib_post_recv(conn->id->qp, &wr, NULL);
	if (err)
		krc_meta_conn_completed(conn);
	return err;
}

/* Give a buffer back, unless krc_meta_conn_stop(), which destroys the queue pair, may be running. */
static int krc_meta_conn_recv_again(struct krc_meta_conn *conn, struct krc_meta_recv *recv)
{
	int err = 0;

	spin_lock_bh(&conn->slots.lock); /* as for READs: see krc_meta_reads_stop() */
	if (!READ_ONCE(conn->broken))
		err = krc_meta_conn_recv(conn, recv);
	spin_unlock_bh(&conn->slots.lock);
	return err;
}

static void krc_meta_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krc_meta_recv *recv = container_of(wc->wr_cqe, struct krc_meta_recv, cqe);
	struct krc_meta_conn *conn = recv->conn;
	unsigned int at = (recv - conn->recv) * KRP_MSG_BYTES_MAX;
	struct ib_device *ibdev = conn->s->meta->ibdev;
	int err;

	if (wc->status != IB_WC_SUCCESS) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			krc_meta_conn_fail(conn, -EIO, "receiving failed: %s",
					   ib_wc_status_msg(wc->status));
		krc_meta_conn_completed(conn);
		return;
	}
	ib_dma_sync_single_for_cpu(ibdev, conn->recv_buf.dma + at, KRP_MSG_BYTES_MAX,
				   DMA_FROM_DEVICE);
	krc_meta_message(conn, conn->recv_buf.p + at, wc->byte_len);
	ib_dma_sync_single_for_device(ibdev, conn->recv_buf.dma + at, KRP_MSG_BYTES_MAX,
				      DMA_FROM_DEVICE);
	err = krc_meta_conn_recv_again(conn, recv);
	if (err)
		krc_meta_conn_fail(conn, err, "posting a receive failed");
	krc_meta_conn_completed(conn);
}

static void krc_meta_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krc_meta_send *send = container_of(wc->wr_cqe, struct krc_meta_send, cqe);
	struct krc_meta_conn *conn = send->conn;
	struct krc_meta *meta = conn->s->meta;

	spin_lock_bh(&meta->lock);
	krc_meta_cq_expected(&conn->send_cq);
	if (conn->s->conn == conn && wc->status == IB_WC_SUCCESS)
		krc_meta_session_sent(conn->s, send - conn->send);
	else if (conn->s->conn == conn && wc->status != IB_WC_WR_FLUSH_ERR)
		krc_meta_session_fail_locked(conn->s, -EIO, "sending failed: %s",
					     ib_wc_status_msg(wc->status));
	spin_unlock_bh(&meta->lock);
	krc_meta_conn_completed(conn);
}

int krc_meta_conn_send(struct krc_meta_conn *conn, u32 slot, const void *msg, u32 bytes)
{
	struct ib_sge sge = {
		.addr = conn->send_buf.dma + slot * KRP_MSG_BYTES_MAX,
		.length = bytes,
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &conn->send[slot].cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	lockdep_assert_held(&conn->s->meta->lock);
	memcpy(conn->send_buf.p + slot * KRP_MSG_BYTES_MAX, msg, bytes);
	ib_dma_sync_single_for_device(conn->s->meta->ibdev, sge.addr, sge.length, DMA_TO_DEVICE);
	atomic_inc(&conn->posted);
	err = ib_post_send(conn->id->qp, &wr, NULL);
	if (err)
		krc_meta_conn_completed(conn);
	else
		krc_meta_cq_expect(&conn->send_cq);
	return err;
}

struct krc_meta_conn *krc_meta_conn_new(struct krc_meta_session *s)
{
	struct krc_meta_conn *conn = kvzalloc(sizeof(*conn), GFP_KERNEL);
	unsigned int i;

	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	conn->s = s;
	kref_get(&s->ref);
	init_waitqueue_head(&conn->wait);
	krc_line_init(&conn->slots.line);
	spin_lock_init(&conn->slots.lock);
	spin_lock_init(&conn->table.lock);
	INIT_WORK(&conn->table.work, krc_meta_table_work);
	init_waitqueue_head(&conn->table.wait);
	for (i = 0; i < KRC_META_SENDS; i++) {
		conn->send[i].conn = conn;
		conn->send[i].cqe.done = krc_meta_send_done;
	}
	for (i = 0; i < KRC_META_RECVS; i++) {
		conn->recv[i].conn = conn;
		conn->recv[i].cqe.done = krc_meta_recv_done;
	}
	for (i = 0; i < ARRAY_SIZE(conn->slots.at); i++) {
		conn->slots.at[i].conn = conn;
		conn->slots.at[i].cqe.done = krc_meta_read_done;
	}
	return conn;
}

static int krc_meta_conn_buffers(struct krc_meta_conn *conn)
{
	unsigned int i;
	int err;

	err = krc_meta_buf_alloc(conn, &conn->recv_buf, KRC_META_RECVS * KRP_MSG_BYTES_MAX,
				 DMA_FROM_DEVICE);
	if (!err)
		err = krc_meta_buf_alloc(conn, &conn->send_buf, KRC_META_SENDS * KRP_MSG_BYTES_MAX,
					 DMA_TO_DEVICE);
	if (!err)
		err = krc_meta_buf_alloc(conn, &conn->slots.buf, KRC_META_READS * KRP_BUCKET_BYTES,
					 DMA_FROM_DEVICE);
	if (!err)
		err = krc_meta_buf_alloc(conn, &conn->slots.bulk, KRC_META_BULK_BYTES,
					 DMA_FROM_DEVICE);
	if (err)
		return err;
	for (i = 0; i < KRC_META_READS; i++) {
		conn->slots.at[i].data = conn->slots.buf.p + i * KRP_BUCKET_BYTES;
		conn->slots.at[i].dma = conn->slots.buf.dma + i * KRP_BUCKET_BYTES;
	}
	conn->slots.at[KRC_META_READS].data = conn->slots.bulk.p;
	conn->slots.at[KRC_META_READS].dma = conn->slots.bulk.dma;
	return 0;
}

/* Context: hard interrupt with some drivers, so the work item handles the fault. */
static void krc_meta_qp_event(struct ib_event *event, void *context)
{
	struct krc_meta_conn *conn = context;

	if (event->event != IB_EVENT_QP_FATAL && event->event != IB_EVENT_QP_ACCESS_ERR &&
	    event->event != IB_EVENT_QP_REQ_ERR)
		return;
	WRITE_ONCE(conn->fault, true);
	mod_delayed_work(conn->s->meta->wq, &conn->s->work, 0);
}

static int krc_meta_conn_queues(struct krc_meta_conn *conn)
{
	struct ib_device *ibdev = conn->s->meta->ibdev;
	struct ib_qp_init_attr attr = {
		.event_handler = krc_meta_qp_event,
		.qp_context = conn,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = KRC_META_SENDS + KRC_META_READS + 1,
			 .max_recv_wr = KRC_META_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ib_cq *cq;
	int err;

	err = krc_meta_cq_create(&conn->send_cq, ibdev, attr.cap.max_send_wr);
	if (err)
		return err;
	cq = ib_alloc_cq_any(ibdev, conn, attr.cap.max_recv_wr, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->recv_cq = cq;
	attr.send_cq = conn->send_cq.ib;
	attr.recv_cq = cq;
	return rdma_create_qp(conn->id, conn->pd, &attr);
}

int krc_meta_conn_setup(struct krc_meta_conn *conn, const char **ret_step)
{
	struct ib_pd *pd;
	unsigned int i;
	int err;

	*ret_step = "protection domain";
	pd = ib_alloc_pd(conn->s->meta->ibdev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	conn->pd = pd;
	*ret_step = "queues";
	err = krc_meta_conn_queues(conn);
	if (err)
		return err;
	*ret_step = "buffers";
	err = krc_meta_conn_buffers(conn);
	for (i = 0; i < KRC_META_RECVS && !err; i++)
		err = krc_meta_conn_recv(conn, &conn->recv[i]);
	return err;
}

void krc_meta_conn_stop(struct krc_meta_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!conn->id || !conn->id->qp)
		return;
	rdma_disconnect(conn->id);
	ib_modify_qp(conn->id->qp, &attr, IB_QP_STATE);
	krc_meta_cq_expect(&conn->send_cq); /* interrupts for the flushed work requests */
	wait_event_timeout(conn->wait, !atomic_read(&conn->posted),
			   msecs_to_jiffies(KRC_META_DRAIN_MS));
	rdma_destroy_qp(conn->id);
}

void krc_meta_conn_end(struct krc_meta_conn *conn)
{
	krc_meta_cq_destroy(&conn->send_cq);
	if (conn->recv_cq)
		ib_free_cq(conn->recv_cq);
	krc_meta_buf_free(conn, &conn->slots.bulk);
	krc_meta_buf_free(conn, &conn->slots.buf);
	krc_meta_buf_free(conn, &conn->send_buf);
	krc_meta_buf_free(conn, &conn->recv_buf);
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	if (conn->id)
		rdma_destroy_id(conn->id);
}

static void krc_meta_conn_free(struct kref *ref)
{
	struct krc_meta_conn *conn = container_of(ref, struct krc_meta_conn, ref);

	krc_meta_map_free(conn->table.map);
	krc_meta_ring_put(conn->ring);
	krc_meta_session_put(conn->s);
	kvfree(conn);
}

void krc_meta_conn_put(struct krc_meta_conn *conn)
{
	kref_put(&conn->ref, krc_meta_conn_free);
}
