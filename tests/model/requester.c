// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the sending half of a QP. Requests are fetched, get sequence numbers,
 * are cut into packets of the path MTU and wait for their answers; several are
 * in flight at once. A time-out, a NAK or a hole in the answers of a READ makes
 * the requester go back to a sequence number and send again from there; data
 * is read from the guest's memory again each time. Completions are in order.
 * Source of the rules: InfiniBand specification, vol. 1, chapter 9.7.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_MAX_IN_FLIGHT 64 /* requests */
#define CX_WINDOW 512 /* sequence numbers */
#define CX_RNR_INFINITE 7
#define CX_FENCE_FULL 2

static struct cx_requester *cx_req_of(struct cx_task *task)
{
	return container_of(task, struct cx_requester, task);
}

static bool cx_req_reliable(const struct cx_qp *qp)
{
	return qp->sv == CX_SV_RC || qp->sv == CX_SV_XRC || qp->sv == CX_SV_DCI;
}

bool cx_req_idle(const struct cx_qp *qp)
{
	return QTAILQ_EMPTY(&qp->req.list);
}

static u32 cx_sreq_end(const struct cx_sreq *r)
{
	return cx_psn_add(r->psn, r->nr_psn);
}

static void cx_req_complete(struct cx_dev *dev, struct cx_qp *qp, const struct cx_wqe *w,
			    enum cx_syndrome why)
{
	struct cx_cqe x = {
		.op = why ? CX_CQE_REQ_ERR : CX_CQE_REQ,
		.syndrome = why,
		.user_index = qp->user_index,
		.qpn = qp->obj.id,
		.wqe_opcode = w->opcode,
		.wqe_counter = w->index,
		.bytes = w->bytes,
	};

	if (!why)
		cx_count_op(dev, w->opcode, false, w->bytes);
	if (why || w->signaled)
		cx_cq_write(dev, qp->cq_send, &x);
}

static void cx_req_unlink(struct cx_qp *qp, struct cx_sreq *r)
{
	struct cx_requester *q = &qp->req;

	if (q->cur == r) {
		q->cur = QTAILQ_NEXT(r, link);
		q->cur_idx = 0;
	}
	QTAILQ_REMOVE(&q->list, r, link);
	q->nr--;
	q->nr_responds -= r->responds;
	g_free(r);
}

void cx_req_fail_head(struct cx_dev *dev, struct cx_qp *qp, enum cx_syndrome why)
{
	struct cx_sreq *r = QTAILQ_FIRST(&qp->req.list);

	if (!r)
		return;
	cx_trace(dev, CX_TR_EVENT, "QP 0x%x request %u fails, syndrome 0x%x", qp->obj.id,
		 r->w.index, why);
	cx_req_complete(dev, qp, &r->w, why);
	cx_req_unlink(qp, r);
	if (cx_req_reliable(qp))
		cx_qp_error(dev, qp);
	else
		cx_qp_sq_error(dev, qp);
}

/* complete what can be completed, in order */
static void cx_req_advance(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_sreq *r;

	while ((r = QTAILQ_FIRST(&qp->req.list))) {
		if (r->error) {
			cx_req_fail_head(dev, qp, r->error);
			return;
		}
		if (!r->done)
			return;
		cx_req_complete(dev, qp, &r->w, CX_SYN_OK);
		cx_req_unlink(qp, r);
	}
}

/* ---- time */

void cx_req_arm_timer(struct cx_dev *dev, struct cx_qp *qp)
{
	u32 t = CX_QP_PATH(qp, ack_timeout);
	s64 us;

	/* 0 is for ever; an initiator is given the floor, unless it is to wait as hardware does */
	if (!t && (qp->sv != CX_SV_DCI || dev->prop.endless_timeout))
		return;
	us = MAX((4096ll << t) / 1000, (s64)dev->prop.timeout_floor_ms * 1000);
	timer_mod(qp->req.timer, qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + us);
}

static void cx_req_progress(struct cx_dev *dev, struct cx_qp *qp)
{
	qp->req.retries = 0;
	qp->req.rnr_retries = 0;
	if (qp->req.rnr_wait)
		return;
	if (qp->req.una == qp->req.next_psn)
		timer_del(qp->req.timer);
	else
		cx_req_arm_timer(dev, qp);
}

void cx_req_go_back(struct cx_dev *dev, struct cx_qp *qp, u32 psn)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r;

	QTAILQ_FOREACH(r, &q->list, link)
	{
		if (r->nr_psn && cx_psn_diff(cx_sreq_end(r), psn) > 0)
			break;
	}
	if (!r)
		return;
	q->cur = r;
	q->cur_idx = cx_psn_diff(psn, r->psn) > 0 ? cx_psn_diff(psn, r->psn) : 0;
	if (r->responds)
		q->cur_idx = r->got_psn;
	cx_count(dev, CX_CTR_RETRANSMITS, 1);
	cx_sched_add(dev, &q->task);
}

static void cx_req_timer(void *opaque)
{
	struct cx_qp *qp = opaque;
	struct cx_requester *q = &qp->req;
	struct cx_dev *dev = qp->dev;

	if (qp->state != CX_QPS_RTS || QTAILQ_EMPTY(&q->list))
		return;
	if (q->rnr_wait) {
		q->rnr_wait = false;
		cx_req_arm_timer(dev, qp);
		cx_req_go_back(dev, qp, q->una);
	} else if (q->retries++ >= CX_QP_GET(qp, retry_count)) {
		cx_req_fail_head(dev, qp, CX_SYN_RETRY_EXC);
	} else {
		cx_count(dev, CX_CTR_TIMEOUTS, 1);
		cx_qcounter_add(dev, CX_QP_GET(qp, counter_set_id), CX_QC_ACK_TIMEOUT);
		q->implied = ~0u;
		cx_req_arm_timer(dev, qp);
		if (qp->sv == CX_SV_DCI && q->dc_state != CX_DC_CONNECTED)
			cx_dci_connect(dev, qp);
		else
			cx_req_go_back(dev, qp, q->una);
	}
	cx_dev_kick(dev);
}

/* ---- fetching and admission */

static bool cx_op_responds(u8 op)
{
	return op == CX_OP_READ || op == CX_OP_ATOMIC_CS || op == CX_OP_ATOMIC_FA;
}

static void cx_req_check(struct cx_dev *dev, struct cx_qp *qp, struct cx_sreq *r)
{
	if (r->error)
		return;
	if (cx_qp_is_datagram(qp) && r->w.bytes > cx_qp_mtu(qp))
		r->error = CX_SYN_LOCAL_LENGTH;
	else if (r->w.bytes > 1u << CX_LOG_MAX_MSG)
		r->error = CX_SYN_LOCAL_LENGTH;
}

static struct cx_sreq *cx_req_fetch(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_sreq *r;
	u32 mtu;

	if (!cx_sq_left(&qp->sq))
		return NULL;
	r = g_malloc(sizeof(*r));
	memset(r, 0, offsetof(struct cx_sreq, w));
	cx_sq_fetch(dev, &qp->sq, &qp->pushed, &r->w);
	r->error = cx_wqe_parse(dev, qp->sv, qp->obj.id, &r->w);
	cx_req_check(dev, qp, r);
	r->responds = cx_op_responds(r->w.opcode);
	mtu = cx_qp_mtu(qp);
	if (r->error || r->w.opcode == CX_OP_NOP || r->w.opcode == CX_OP_UMR)
		r->nr_psn = 0;
	else if (r->w.opcode == CX_OP_ATOMIC_CS || r->w.opcode == CX_OP_ATOMIC_FA)
		r->nr_psn = 1;
	else
		r->nr_psn = MAX(1, DIV_ROUND_UP(r->w.bytes, mtu));
	return r;
}

static bool cx_req_may_admit(struct cx_dev *dev, struct cx_qp *qp, const struct cx_sreq *r)
{
	struct cx_requester *q = &qp->req;

	if (q->nr >= CX_MAX_IN_FLIGHT)
		return false;
	if (r->responds && q->nr_responds >= 1u << CX_QP_GET(qp, log_sra_max))
		return false;
	if (r->w.fence >= CX_FENCE_FULL && q->nr_responds)
		return false;
	return qp->sv != CX_SV_DCI || r->error || cx_dci_ready(dev, qp, r);
}

/* take the next request into flight; false: there is none, or it must wait */
static bool cx_req_admit(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r;

	if (q->stopped)
		return false;
	if (!q->held) {
		q->held = cx_req_fetch(dev, qp);
		/* nothing else is sent by its queue, so it need not wait for its turn */
		if (q->held && !q->held->error && q->held->w.opcode == CX_OP_UMR)
			q->held->error = cx_mkey_update(dev, q->held->w.imm, q->held->w.raw + 16);
	}
	r = q->held;
	if (!r || !cx_req_may_admit(dev, qp, r))
		return false;
	q->held = NULL;
	r->psn = q->next_psn;
	q->next_psn = cx_sreq_end(r);
	QTAILQ_INSERT_TAIL(&q->list, r, link);
	q->nr++;
	q->nr_responds += r->responds;
	q->stopped = r->error;
	if (!r->nr_psn) {
		r->done = !r->error;
		cx_req_advance(dev, qp);
		return !q->stopped;
	}
	q->cur = r;
	q->cur_idx = 0;
	return true;
}

/* ---- sending */

static const u8 cx_pkt_op_of[] = {
	[CX_OP_SEND_INVAL] = CX_PKT_SEND,     [CX_OP_WRITE] = CX_PKT_WRITE,
	[CX_OP_WRITE_IMM] = CX_PKT_WRITE,     [CX_OP_SEND] = CX_PKT_SEND,
	[CX_OP_SEND_IMM] = CX_PKT_SEND,	      [CX_OP_READ] = CX_PKT_READ,
	[CX_OP_ATOMIC_CS] = CX_PKT_ATOMIC_CS, [CX_OP_ATOMIC_FA] = CX_PKT_ATOMIC_FA,
};

static void cx_pkt_from_av(struct cx_dev *dev, const struct cx_av *av, struct cx_pkt *p, u8 *dst)
{
	p->tclass = av->tclass;
	p->hop_limit = av->hop_limit;
	p->flow_label = av->flow_label;
	memcpy(p->dgid, av->rgid, 16);
	if (av->grh || dev->eth)
		p->flags |= CX_PF_GRH;
	if (dev->eth)
		memcpy(dst, av->mac, 6);
	else
		cx_l2_from_lid(dst, av->lid);
}

static void cx_pkt_from_path(struct cx_dev *dev, const struct cx_qp *qp, struct cx_pkt *p, u8 *dst)
{
	const u8 *path = CX_ADDR(qpc, qp->qpc, primary_address_path);

	p->tclass = CX_GET(ads, path, tclass);
	p->hop_limit = CX_GET(ads, path, hop_limit);
	p->flow_label = CX_GET(ads, path, flow_label);
	memcpy(p->dgid, CX_ADDR(ads, path, rgid_rip), 16);
	if (CX_GET(ads, path, grh) || dev->eth)
		p->flags |= CX_PF_GRH;
	if (dev->eth)
		memcpy(dst, CX_ADDR(ads, path, rmac_47_32), 6);
	else
		cx_l2_from_lid(dst, CX_GET(ads, path, rlid));
}

/* where a request goes: link address */
static void cx_req_dst(struct cx_dev *dev, const struct cx_qp *qp, const struct cx_sreq *r, u8 *dst)
{
	struct cx_pkt scratch = { 0 };

	if (cx_qp_is_connected(qp))
		cx_pkt_from_path(dev, qp, &scratch, dst);
	else
		cx_pkt_from_av(dev, &r->w.av, &scratch, dst);
}

int cx_req_address(struct cx_dev *dev, struct cx_qp *qp, const struct cx_av *av, struct cx_frame *f)
{
	struct cx_pkt *p = (struct cx_pkt *)f->data;
	const u8 *src;

	if (cx_qp_is_connected(qp)) {
		cx_pkt_from_path(dev, qp, p, f->dst);
		src = cx_gid_source(dev, CX_QP_PATH(qp, src_addr_index), p);
	} else {
		cx_pkt_from_av(dev, av, p, f->dst);
		src = cx_gid_source(dev, av->sgid_index, p);
	}
	if (!src)
		return -EINVAL;
	memcpy(f->src, src, 6);
	return 0;
}

static void cx_req_header(struct cx_qp *qp, const struct cx_sreq *r, struct cx_pkt *p)
{
	const struct cx_wqe *w = &r->w;

	p->op = cx_pkt_op_of[w->opcode];
	p->service = qp->sv;
	p->pkey = cx_port_pkey(qp->dev, CX_QP_PATH(qp, pkey_index));
	p->sqpn = qp->sv == CX_SV_QP1 ? 1 : qp->sv == CX_SV_QP0 ? 0 : qp->obj.id;
	p->dqpn = cx_qp_is_connected(qp) ? CX_QP_GET(qp, remote_qpn) : w->av.dqpn;
	p->len = w->bytes;
	p->srqn = w->xrc_srqn;
	p->rkey = w->rkey;
	p->va = w->raddr;
	p->swap_add = w->swap_add;
	p->compare = w->compare;
	p->conn = qp->req.dc_conn;
	/* a set highest bit means "the queue's own" */
	p->qkey = w->av.qkey >> 31 ? CX_QP_GET(qp, q_key) : w->av.qkey;
}

/* flags and data of one packet of a SEND or WRITE; negative: local error */
static int cx_req_payload(struct cx_dev *dev, struct cx_qp *qp, const struct cx_sreq *r, u32 idx,
			  struct cx_pkt *p)
{
	const struct cx_wqe *w = &r->w;
	u32 mtu = cx_qp_mtu(qp), off = idx * mtu;

	p->seg = MIN(mtu, w->bytes - off);
	if (!idx)
		p->flags |= CX_PF_FIRST;
	if (idx + 1 == r->nr_psn) {
		p->flags |= CX_PF_LAST | CX_PF_ACK_REQ;
		if (w->opcode == CX_OP_SEND_IMM || w->opcode == CX_OP_WRITE_IMM)
			p->flags |= CX_PF_IMM;
		if (w->opcode == CX_OP_SEND_INVAL)
			p->flags |= CX_PF_INVALIDATE;
		if (w->solicited)
			p->flags |= CX_PF_SOLICITED;
		p->imm = w->imm;
	} else if (idx % 32 == 31) {
		p->flags |= CX_PF_ACK_REQ;
	}
	return cx_wqe_gather(dev, cx_qp_pdn(qp), w, off, p->data, p->seg);
}

static void cx_req_trace(struct cx_dev *dev, const struct cx_pkt *p)
{
	cx_trace(dev, CX_TR_PKT, "tx op=%u sqpn=0x%x dqpn=0x%x psn=0x%x seg=%u flags=0x%x", p->op,
		 p->sqpn, p->dqpn, p->psn, p->seg, p->flags);
}

/* send packet @idx of a request; returns how many sequence numbers it took */
static int cx_req_send(struct cx_dev *dev, struct cx_qp *qp, struct cx_sreq *r, u32 idx)
{
	u32 room = r->responds ? 0 : cx_qp_mtu(qp), mtu = cx_qp_mtu(qp);
	g_autofree struct cx_frame *f = cx_frame_new(CX_FRAME_RDMA, room);
	struct cx_pkt *p = (struct cx_pkt *)f->data;
	int err = cx_req_address(dev, qp, &r->w.av, f);

	if (err)
		return err;
	cx_req_header(qp, r, p);
	p->psn = cx_psn_add(r->psn, idx);
	if (r->responds) {
		p->flags |= CX_PF_FIRST | CX_PF_LAST;
		if (r->w.opcode == CX_OP_READ) {
			p->va += (u64)idx * mtu;
			p->len -= idx * mtu;
		}
	} else {
		err = cx_req_payload(dev, qp, r, idx, p);
		if (err)
			return err;
	}
	f->bytes = sizeof(*f) + sizeof(*p) + p->seg;
	cx_req_trace(dev, p);
	cx_count(dev, CX_CTR_TX_PACKETS, 1);
	if (cx_qp_is_datagram(qp))
		cx_mcg_loopback(dev, f);
	cx_fabric_send(dev, f);
	return r->responds ? (int)(r->nr_psn - idx) : 1;
}

static void cx_req_local_error(struct cx_dev *dev, struct cx_qp *qp, struct cx_sreq *r, int err)
{
	struct cx_requester *q = &qp->req;

	r->error = err == -EINVAL ? CX_SYN_LOCAL_QP_OP : CX_SYN_LOCAL_PROT;
	q->stopped = true;
	q->cur = NULL;
	cx_req_advance(dev, qp);
}

static void cx_req_sent(struct cx_dev *dev, struct cx_qp *qp, struct cx_sreq *r, u32 nr)
{
	struct cx_requester *q = &qp->req;

	r->sent = true;
	q->cur_idx += nr;
	if (q->cur_idx < r->nr_psn)
		return;
	q->cur = QTAILQ_NEXT(r, link);
	q->cur_idx = 0;
	if (!cx_req_reliable(qp)) {
		r->done = true;
		q->una = cx_sreq_end(r);
		cx_req_advance(dev, qp);
	}
}

static bool cx_req_may_send(struct cx_qp *qp)
{
	struct cx_requester *q = &qp->req;

	if (qp->state != CX_QPS_RTS || q->rnr_wait)
		return false;
	return qp->sv != CX_SV_DCI || !q->cur || q->dc_state == CX_DC_CONNECTED;
}

static enum cx_pump cx_req_pump(struct cx_dev *dev, struct cx_task *task, u32 budget)
{
	struct cx_requester *q = cx_req_of(task);
	struct cx_qp *qp = container_of(q, struct cx_qp, req);
	struct cx_sreq *r;
	u8 dst[6];
	int nr;

	while (budget--) {
		if (!cx_req_may_send(qp))
			return CX_PUMP_IDLE;
		if (!q->cur) {
			if (!cx_req_admit(dev, qp))
				return CX_PUMP_IDLE;
			continue;
		}
		r = q->cur;
		if (r->error) /* met again after going back */
			return CX_PUMP_IDLE;
		if (cx_req_reliable(qp) &&
		    cx_psn_diff(cx_psn_add(r->psn, q->cur_idx), q->una) >= CX_WINDOW)
			return CX_PUMP_IDLE;
		cx_req_dst(dev, qp, r, dst);
		if (!cx_fabric_room(dev, dst))
			return CX_PUMP_PARK;
		nr = cx_req_send(dev, qp, r, q->cur_idx);
		if (nr < 0) {
			cx_req_local_error(dev, qp, r, nr);
			return CX_PUMP_IDLE;
		}
		if (cx_req_reliable(qp) && !timer_pending(q->timer))
			cx_req_arm_timer(dev, qp);
		cx_req_sent(dev, qp, r, nr);
	}
	return CX_PUMP_MORE;
}

/* ---- answers */

/* everything before @psn has arrived, but a READ needs its data too */
static void cx_req_acked(struct cx_dev *dev, struct cx_qp *qp, u32 psn)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r;

	if (cx_psn_diff(psn, q->una) <= 0 || cx_psn_diff(psn, q->next_psn) > 0)
		return;
	QTAILQ_FOREACH(r, &q->list, link)
	{
		if (r->done)
			continue;
		if (r->responds && cx_psn_diff(psn, r->psn) > 0) {
			/* an answer was lost: ask again, once */
			psn = cx_psn_add(r->psn, r->got_psn);
			if (q->implied != psn) {
				q->implied = psn;
				cx_req_go_back(dev, qp, psn);
			}
			break;
		}
		if (cx_psn_diff(psn, cx_sreq_end(r)) < 0)
			break;
		r->done = true;
	}
	if (cx_psn_diff(psn, q->una) > 0) {
		q->una = psn;
		cx_req_progress(dev, qp);
	}
	cx_req_advance(dev, qp);
}

static struct cx_sreq *cx_req_awaiting(struct cx_qp *qp)
{
	struct cx_sreq *r;

	QTAILQ_FOREACH(r, &qp->req.list, link)
	{
		if (r->responds && !r->done)
			return r;
	}
	return NULL;
}

static void cx_req_data(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r = cx_req_awaiting(qp);
	u32 expected;

	if (!r)
		return;
	expected = cx_psn_add(r->psn, r->got_psn);
	if (cx_psn_diff(p->psn, expected) < 0)
		return;
	/* an answer acknowledges all requests before it */
	cx_req_acked(dev, qp, r->psn);
	if (qp->state != CX_QPS_RTS)
		return;
	if (p->psn != expected) {
		if (q->implied != expected) {
			q->implied = expected;
			cx_req_go_back(dev, qp, expected);
		}
		return;
	}
	/* all packets but the last one are as long as the path MTU */
	if (p->seg != MIN(cx_qp_mtu(qp), r->w.bytes - r->got_bytes)) {
		r->error = CX_SYN_BAD_RESP;
	} else if (cx_wqe_scatter(dev, cx_qp_pdn(qp), &r->w, r->got_bytes, p->data, p->seg)) {
		r->error = CX_SYN_LOCAL_PROT;
	} else {
		r->got_bytes += p->seg;
		r->got_psn++;
		r->done = r->got_psn == r->nr_psn;
		q->una = cx_psn_add(p->psn, 1);
		cx_req_progress(dev, qp);
	}
	cx_req_advance(dev, qp);
}

static const u32 cx_rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

static void cx_req_rnr(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	struct cx_requester *q = &qp->req;
	u32 limit = CX_QP_GET(qp, rnr_retry);

	if (limit != CX_RNR_INFINITE && q->rnr_retries++ >= limit) {
		cx_req_fail_head(dev, qp, CX_SYN_RNR_EXC);
		return;
	}
	q->rnr_wait = true;
	timer_mod(q->timer, qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + cx_rnr_us[p->rnr_timer & 31]);
}

static void cx_req_nak(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	struct cx_requester *q = &qp->req;

	/* a NAK says that everything before it arrived */
	cx_req_acked(dev, qp, p->psn);
	if (qp->state != CX_QPS_RTS || p->psn != q->una || QTAILQ_EMPTY(&q->list))
		return;
	switch (p->aeth) {
	case CX_AETH_RNR:
		if (!q->rnr_wait)
			cx_req_rnr(dev, qp, p);
		break;
	case CX_AETH_SEQ:
		cx_qcounter_add(dev, CX_QP_GET(qp, counter_set_id), CX_QC_PACKET_SEQ);
		cx_req_go_back(dev, qp, p->psn);
		break;
	case CX_AETH_INVAL:
		cx_req_fail_head(dev, qp, CX_SYN_REMOTE_INVAL_REQ);
		break;
	case CX_AETH_ACCESS:
		cx_req_fail_head(dev, qp, CX_SYN_REMOTE_ACCESS);
		break;
	default:
		cx_req_fail_head(dev, qp, CX_SYN_REMOTE_OP);
		break;
	}
}

void cx_req_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	if (qp->state != CX_QPS_RTS || !cx_req_reliable(qp))
		return;
	if (qp->sv == CX_SV_DCI &&
	    (qp->req.dc_state != CX_DC_CONNECTED || p->conn != qp->req.dc_conn))
		return;
	if (p->op != CX_PKT_ACK)
		cx_req_data(dev, qp, p);
	else if (p->aeth == CX_AETH_ACK)
		cx_req_acked(dev, qp, cx_psn_add(p->psn, 1));
	else
		cx_req_nak(dev, qp, p);
	if (qp->state == CX_QPS_RTS)
		cx_sched_add(dev, &qp->req.task);
}

/* ---- life */

void cx_req_start(struct cx_dev *dev, struct cx_qp *qp)
{
	if (qp->no_sq) /* the receiving side of XRC */
		return;
	cx_sched_add(dev, &qp->req.task);
}

void cx_req_flush(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r;

	if (qp->no_sq)
		return;
	timer_del(q->timer);
	cx_sched_remove(dev, &q->task);
	q->cur = NULL;
	while ((r = QTAILQ_FIRST(&q->list))) {
		cx_req_complete(dev, qp, &r->w, CX_SYN_FLUSH);
		cx_req_unlink(qp, r);
	}
	q->next_psn = q->una;
	while (q->held || (q->held = cx_req_fetch(dev, qp))) {
		cx_req_complete(dev, qp, &q->held->w, CX_SYN_FLUSH);
		g_free(q->held);
		q->held = NULL;
	}
	q->stopped = false;
	if (q->dc_state != CX_DC_IDLE)
		cx_dci_disconnect(dev, qp);
}

void cx_req_reset(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_requester *q = &qp->req;
	struct cx_sreq *r;

	timer_del(q->timer);
	cx_sched_remove(dev, &q->task);
	while ((r = QTAILQ_FIRST(&q->list)))
		cx_req_unlink(qp, r);
	g_free(q->held);
	q->held = NULL;
	qp->pushed.bytes = 0;
	q->cur = NULL;
	q->next_psn = q->una = 0;
	q->retries = q->rnr_retries = 0;
	q->implied = ~0u;
	q->rnr_wait = q->stopped = q->dc_aimed = false;
	if (q->dc_state != CX_DC_IDLE)
		cx_dci_disconnect(dev, qp);
}

void cx_req_init(struct cx_dev *dev, struct cx_qp *qp)
{
	QTAILQ_INIT(&qp->req.list);
	qp->req.task.pump = cx_req_pump;
	qp->req.implied = ~0u;
	qp->req.timer = timer_new_us(QEMU_CLOCK_VIRTUAL, cx_req_timer, qp);
}

void cx_req_fini(struct cx_dev *dev, struct cx_qp *qp)
{
	cx_req_reset(dev, qp);
	timer_free(qp->req.timer);
}
