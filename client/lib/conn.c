// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The RDMA resources of a connection: queue pair, completion queues, buffers.
 *
 * One queue pair carries READs and SENDs. Both complete on the send queue's
 * completion queue, which a look-up busy-polls; the wr_id tells them apart. The
 * completion of a SEND is ignored: its slot is free again when the answer arrives.
 * Received messages have a completion queue and a channel for the thread.
 *
 * Threading: setup, free, recv: the context's thread. READs: server.io held.
 * SENDs: ctx.lock held.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "client/lib/lib.h"

#define KRL_WR_READ (1ULL << 32)
#define KRL_WR_SEND (2ULL << 32)
#define KRL_SPINS 1024 /* polls between two looks at the clock */

struct krl_conn *krl_conn_new(void)
{
	return calloc(1, sizeof(struct krl_conn));
}

static int krl_conn_memory(struct krl_conn *conn)
{
	conn->mem = mmap(NULL, sizeof(*conn->mem), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (conn->mem == MAP_FAILED) {
		conn->mem = NULL;
		return -errno;
	}
	/* a child of fork() must not take the pages that the NIC writes to */
	if (madvise(conn->mem, sizeof(*conn->mem), MADV_DONTFORK) < 0)
		return -errno;
	conn->mr = ibv_reg_mr(conn->id->pd, conn->mem, sizeof(*conn->mem), IBV_ACCESS_LOCAL_WRITE);
	return conn->mr ? 0 : -errno;
}

static int krl_conn_queues(struct krl_conn *conn)
{
	struct ibv_context *verbs = conn->id->verbs;
	int flags;

	conn->channel = ibv_create_comp_channel(verbs);
	if (!conn->channel)
		return -errno;
	flags = fcntl(conn->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(conn->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	conn->send_cq = ibv_create_cq(verbs, KRL_SQ_DEPTH, conn, conn->channel, 0);
	if (!conn->send_cq)
		return -errno;
	conn->recv_cq = ibv_create_cq(verbs, KRL_RECVS, conn, conn->channel, 0);
	if (!conn->recv_cq)
		return -errno;
	if (ibv_req_notify_cq(conn->recv_cq, 0) || ibv_req_notify_cq(conn->send_cq, 0))
		return -EIO;
	return 0;
}

/*
 * Create everything that is needed before rdma_connect(). What was created stays in
 * @conn for krl_conn_free() also on failure.
 */
int krl_conn_setup(struct krl_conn *conn, const char **ret_step)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = KRL_SQ_DEPTH,
			 .max_recv_wr = KRL_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	unsigned int i;
	int err;

	*ret_step = "completion queues";
	err = krl_conn_queues(conn);
	if (err)
		return err;
	*ret_step = "queue pair";
	attr.send_cq = conn->send_cq;
	attr.recv_cq = conn->recv_cq;
	if (rdma_create_qp(conn->id, NULL, &attr))
		return -errno;
	*ret_step = "registering memory (see 'ulimit -l')";
	err = krl_conn_memory(conn);
	if (err)
		return err;
	*ret_step = "receive buffers";
	for (i = 0; i < KRL_RECVS; i++) {
		err = krl_conn_recv(conn, i);
		if (err)
			return err;
	}
	return 0;
}

/* Is the local port down? False if that cannot be determined. */
bool krl_conn_port_down(const struct krl_conn *conn)
{
	struct ibv_port_attr attr;

	if (!conn || !conn->id || !conn->id->verbs ||
	    ibv_query_port(conn->id->verbs, conn->id->port_num, &attr))
		return false;
	return attr.state != IBV_PORT_ACTIVE && attr.state != IBV_PORT_ACTIVE_DEFER;
}

void krl_conn_free(struct krl_conn *conn)
{
	if (!conn)
		return;
	if (conn->id && conn->id->qp) {
		rdma_disconnect(conn->id);
		rdma_destroy_qp(conn->id);
	}
	if (conn->send_cq) {
		ibv_ack_cq_events(conn->send_cq, conn->events[0]);
		ibv_destroy_cq(conn->send_cq);
	}
	if (conn->recv_cq) {
		ibv_ack_cq_events(conn->recv_cq, conn->events[1]);
		ibv_destroy_cq(conn->recv_cq);
	}
	if (conn->channel)
		ibv_destroy_comp_channel(conn->channel);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	if (conn->mem)
		munmap(conn->mem, sizeof(*conn->mem));
	if (conn->id)
		rdma_destroy_id(conn->id);
	free(conn);
}

int krl_conn_recv(struct krl_conn *conn, unsigned int nr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)conn->mem->recv[nr],
		.length = KRP_MSG_BYTES_MAX,
		.lkey = conn->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = nr, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(conn->id->qp, &wr, &bad);
}

/* Send the message that was built in a slot's buffer. */
int krl_conn_send(struct krl_conn *conn, unsigned int slot)
{
	struct krp_msg_hdr *hdr = (struct krp_msg_hdr *)conn->mem->send[slot];
	struct ibv_sge sge = {
		.addr = (uintptr_t)hdr,
		.length = krp_le16_to_cpu(hdr->bytes),
		.lkey = conn->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = KRL_WR_SEND | slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr *bad;

	return -ibv_post_send(conn->id->qp, &wr, &bad);
}

/* Post READs as one list; their data is laid end to end from @to on. */
int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to)
{
	struct ibv_send_wr wr[KRL_WALK_PAGES];
	struct ibv_sge sge[KRL_WALK_PAGES];
	struct ibv_send_wr *bad;
	uintptr_t addr = (uintptr_t)to;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		sge[i].addr = addr;
		sge[i].length = reads[i].bytes;
		sge[i].lkey = conn->mr->lkey;
		addr += reads[i].bytes;
		wr[i].wr_id = KRL_WR_READ | i;
		wr[i].next = i + 1 < nr ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_READ;
		wr[i].send_flags = 0;
		wr[i].wr.rdma.remote_addr = reads[i].addr;
		wr[i].wr.rdma.rkey = reads[i].rkey;
	}
	return -ibv_post_send(conn->id->qp, wr, &bad);
}

/*
 * Reap completions of the send queue without waiting.
 * Return: 0, or -EIO if one failed; @reads_done grows by the READs among them.
 */
int krl_conn_poll_send(struct krl_conn *conn, unsigned int *reads_done)
{
	struct ibv_wc wc[4];
	int i, nr;

	nr = ibv_poll_cq(conn->send_cq, 4, wc);
	if (nr < 0)
		return -EIO;
	for (i = 0; i < nr; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return -EIO;
		if (wc[i].wr_id & KRL_WR_READ)
			(*reads_done)++;
	}
	return 0;
}

/*
 * Busy-poll until @nr READs are done.
 * Return: 0; -EIO if a completion failed or the connection broke; -ETIMEDOUT
 * after @timeout_ns: the NIC may still write to the buffers.
 */
int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t timeout_ns)
{
	unsigned int done = 0, spins = 0;
	uint64_t begin_ns = 0, now_ns;

	for (;;) {
		int err = krl_conn_poll_send(conn, &done);

		if (err)
			return err;
		if (done >= nr)
			return 0;
		if (++spins % KRL_SPINS)
			continue;
		if (atomic_load_explicit(&conn->broken, memory_order_relaxed))
			return -EIO;
		now_ns = krl_now_ns();
		if (!begin_ns)
			begin_ns = now_ns;
		else if (now_ns - begin_ns > timeout_ns)
			return -ETIMEDOUT;
		sched_yield(); /* a software NIC may need this CPU to make progress */
	}
}

/* Reap the completions of SENDs, to keep the send queue from filling up; look-ups do it too. */
void krl_conn_drain(struct krl_conn *conn)
{
	unsigned int ignored = 0;

	krl_conn_poll_send(conn, &ignored);
}
