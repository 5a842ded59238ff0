// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: where a packet of the RDMA transport goes, and what the unreliable
 * services do with it. A packet for no queue, for one in a wrong state or from
 * the wrong peer is dropped and counted. Runs under QEMU's big lock.
 */
#include "dev.h"

void cx_rx_of_qp(struct cx_dev *dev, struct cx_qp *qp, struct cx_rx_queue *rx)
{
	*rx = (struct cx_rx_queue){
		.pdn = cx_qp_pdn(qp),
		.cq = qp->cq_recv,
		.srq = qp->srq,
		.rq = qp->rq_type == CX_RQ_OWN ? &qp->rq : NULL,
		.user_index = qp->user_index,
		.qpn = qp->obj.id,
		.access = (CX_QP_GET(qp, rre) ? CX_ACC_REMOTE_READ : 0) |
			  (CX_QP_GET(qp, rwe) ? CX_ACC_REMOTE_WRITE : 0) |
			  (CX_QP_GET(qp, rae) ? CX_ACC_ATOMIC : 0),
		.counter_set = CX_QP_GET(qp, counter_set_id),
		.rnr_timer = CX_QP_GET(qp, min_rnr_nak),
		.log_rra_max = CX_QP_GET(qp, log_rra_max),
	};
	if (qp->srq)
		rx->pdn = qp->srq->wq.pdn;
}

bool cx_rx_pop(struct cx_dev *dev, const struct cx_rx_queue *rx, struct cx_rwqe *r)
{
	if (rx->srq)
		return cx_srq_pop(dev, rx->srq, r);
	return rx->rq && cx_rq_pop(dev, rx->rq, r);
}

/* ---- UD */

/* QP0 is in no partition and has no GRH; QP1 is in each partition that the port is in */
static bool cx_datagram_admitted(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	u32 index = qp->sv == CX_SV_QP1 ? CX_PKEY_INDEX_ANY : CX_QP_PATH(qp, pkey_index);

	return qp->sv == CX_SV_QP0 || cx_port_admits(dev, index, p);
}

static bool cx_datagram_allowed(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	u32 qkey = qp->sv == CX_SV_QP1 ? p->qkey : CX_QP_GET(qp, q_key);

	if (p->service != CX_SV_UD && p->service != CX_SV_QP0 && p->service != CX_SV_QP1)
		return false;
	if (!cx_datagram_admitted(dev, qp, p))
		return false;
	if (p->qkey == qkey)
		return true;
	cx_count(dev, CX_CTR_RX_BAD_KEY, 1);
	cx_trace(dev, CX_TR_REFUSE, "QP 0x%x: Q_Key 0x%x, not 0x%x", qp->obj.id, p->qkey, qkey);
	return false;
}

static void cx_datagram_cqe(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p, u16 slid,
			    u16 index, enum cx_syndrome why)
{
	struct cx_cqe x = {
		.op = p->flags & CX_PF_IMM ? CX_CQE_RESP_SEND_IMM : CX_CQE_RESP_SEND,
		.syndrome = why,
		.user_index = qp->user_index,
		.qpn = qp->obj.id,
		.wqe_counter = index,
		.bytes = p->len + CX_GRH_BYTES,
		.imm = p->flags & CX_PF_IMM ? p->imm : 0,
		.flags_rqpn = p->sqpn,
		.slid = slid,
		.solicited = p->flags & CX_PF_SOLICITED,
	};

	if (why)
		x.op = CX_CQE_RESP_ERR;
	if (qp->sv == CX_SV_QP1)
		x.imm = p->pkey;
	if (p->flags & CX_PF_GRH)
		x.flags_rqpn |= 1u << 28;
	if (dev->eth)
		x.flags_rqpn |= (u32)p->l3 << 24;
	cx_cq_write(dev, qp->cq_recv, &x);
}

void cx_rx_datagram(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p, u16 slid)
{
	enum cx_syndrome why = CX_SYN_OK;
	struct cx_rx_queue rx;
	struct cx_rwqe rwqe;
	u8 grh[CX_GRH_BYTES];
	int err;

	if (p->op != CX_PKT_SEND || !cx_datagram_allowed(dev, qp, p))
		return;
	cx_rx_of_qp(dev, qp, &rx);
	if (!cx_rx_pop(dev, &rx, &rwqe)) {
		cx_count(dev, CX_CTR_RX_NO_BUFFER, 1);
		cx_qcounter_add(dev, rx.counter_set, CX_QC_OUT_OF_BUFFER);
		return;
	}
	/* the first 40 bytes are left alone when there is no network header */
	err = rwqe.room < CX_GRH_BYTES + p->len ? -ENOSPC : 0;
	if (!err && p->flags & CX_PF_GRH) {
		cx_grh_build(p, grh);
		err = cx_rq_scatter(dev, rx.pdn, &rwqe, 0, grh, sizeof(grh));
	}
	if (!err)
		err = cx_rq_scatter(dev, rx.pdn, &rwqe, CX_GRH_BYTES, p->data, p->seg);
	if (err)
		why = err == -ENOSPC ? CX_SYN_LOCAL_LENGTH : CX_SYN_LOCAL_PROT;
	else
		cx_count_op(dev, CX_OP_SEND, true, p->len);
	cx_datagram_cqe(dev, qp, p, slid, rwqe.index, why);
	if (why)
		cx_qp_error(dev, qp);
}

/* ---- UC */

static void cx_uc_complete(struct cx_dev *dev, struct cx_qp *qp, const struct cx_rx_queue *rx,
			   const struct cx_pkt *p)
{
	struct cx_responder *r = &qp->resp;
	struct cx_cqe x = {
		.op = CX_CQE_RESP_SEND,
		.user_index = rx->user_index,
		.qpn = rx->qpn,
		.wqe_counter = r->rwqe.index,
		.bytes = r->msg_len,
		.imm = p->flags & CX_PF_IMM ? p->imm : 0,
		.solicited = p->flags & CX_PF_SOLICITED,
	};

	if (p->op == CX_PKT_WRITE)
		x.op = CX_CQE_RESP_WR_IMM;
	else if (p->flags & CX_PF_IMM)
		x.op = CX_CQE_RESP_SEND_IMM;
	r->have_rwqe = false;
	cx_cq_write(dev, rx->cq, &x);
}

/* false: the rest of the message is to be dropped */
static bool cx_uc_data(struct cx_dev *dev, struct cx_responder *r, const struct cx_rx_queue *rx,
		       const struct cx_pkt *p)
{
	if (p->op == CX_PKT_SEND)
		return !cx_rq_scatter(dev, rx->pdn, &r->rwqe, r->msg_off, p->data, p->seg);
	return rx->access & CX_ACC_REMOTE_WRITE &&
	       !cx_mkey_copy(dev, r->msg_rkey, rx->pdn, r->msg_va + r->msg_off, (u8 *)p->data,
			     p->seg, CX_ACC_REMOTE_WRITE);
}

void cx_rx_unreliable(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	struct cx_responder *r = &qp->resp;
	bool last = p->flags & CX_PF_LAST, needs;
	struct cx_rx_queue rx;

	cx_rx_of_qp(dev, qp, &rx);
	if (p->psn != r->epsn)
		r->msg_op = 0;
	r->epsn = cx_psn_add(p->psn, 1);
	if (p->flags & CX_PF_FIRST) {
		r->msg_op = p->op;
		r->msg_len = p->len;
		r->msg_off = 0;
		r->msg_va = p->va;
		r->msg_rkey = p->rkey;
	}
	if (p->seg > r->mtu_in)
		r->msg_op = 0;
	if (r->msg_op != p->op || (p->op != CX_PKT_SEND && p->op != CX_PKT_WRITE))
		return;
	needs = p->op == CX_PKT_SEND ? p->flags & CX_PF_FIRST : last && p->flags & CX_PF_IMM;
	if (needs && !r->have_rwqe) {
		r->have_rwqe = cx_rx_pop(dev, &rx, &r->rwqe);
		if (!r->have_rwqe) {
			cx_count(dev, CX_CTR_RX_NO_BUFFER, 1);
			r->msg_op = 0;
			return;
		}
	}
	if (!cx_uc_data(dev, r, &rx, p)) {
		r->msg_op = 0;
		return;
	}
	r->msg_off += p->seg;
	if (!last)
		return;
	r->msg_op = 0;
	cx_count_op(dev, p->op == CX_PKT_SEND ? CX_OP_SEND : CX_OP_WRITE, true, r->msg_len);
	if (p->op == CX_PKT_SEND || p->flags & CX_PF_IMM)
		cx_uc_complete(dev, qp, &rx, p);
}

/* ---- dispatch */

static bool cx_peer_matches(struct cx_dev *dev, const struct cx_qp *qp, const struct cx_frame *f)
{
	const u8 *path = CX_ADDR(qpc, qp->qpc, primary_address_path);

	if (dev->eth)
		return !memcmp(f->src, CX_ADDR(ads, path, rmac_47_32), 6);
	return cx_l2_lid(f->src) == CX_GET(ads, path, rlid);
}

/* first packet on a connection that is not in use yet */
static void cx_rx_established(struct cx_dev *dev, struct cx_qp *qp)
{
	if (qp->comm_est || qp->state != CX_QPS_RTR)
		return;
	qp->comm_est = true;
	cx_event_queue(dev, CX_EV_COMM_EST, CX_EQT_QP, qp->obj.id);
}

static void cx_rx_connected(struct cx_dev *dev, struct cx_qp *qp, const struct cx_frame *f,
			    const struct cx_pkt *p)
{
	struct cx_responder *r = &qp->resp;

	if (p->service != qp->sv || !cx_peer_matches(dev, qp, f))
		goto drop;
	if (p->op == CX_PKT_ACK || p->op == CX_PKT_READ_RESP || p->op == CX_PKT_ATOMIC_RESP) {
		cx_req_answer(dev, qp, p);
		return;
	}
	if (p->op > CX_PKT_ATOMIC_FA)
		goto drop;
	if (!cx_port_admits(dev, CX_QP_PATH(qp, pkey_index), p))
		return;
	cx_rx_established(dev, qp);
	memcpy(r->dst, f->src, 6);
	memcpy(r->src, f->dst, 6);
	memcpy(r->sgid, p->dgid, 16);
	memcpy(r->dgid, p->sgid, 16);
	r->l3 = p->l3;
	r->mtu = r->mtu_in = cx_qp_mtu(qp);
	if (qp->sv == CX_SV_UC)
		cx_rx_unreliable(dev, qp, p);
	else
		cx_resp_request(dev, r, p);
	return;
drop:
	cx_count(dev, CX_CTR_RX_NO_QP, 1);
}

static void cx_rx_qp(struct cx_dev *dev, struct cx_qp *qp, const struct cx_frame *f,
		     const struct cx_pkt *p)
{
	if (qp->state < CX_QPS_RTR || qp->state == CX_QPS_ERR) {
		cx_trace(dev, CX_TR_PKT, "QP 0x%x in state %u drops psn=0x%x", qp->obj.id,
			 qp->state, p->psn);
		cx_count(dev, CX_CTR_RX_NO_QP, 1);
	} else if (cx_qp_is_datagram(qp)) {
		cx_rx_datagram(dev, qp, p, dev->eth ? 0 : cx_l2_lid(f->src));
	} else if (qp->sv == CX_SV_DCI) {
		if (p->op == CX_PKT_DC_ACCEPT || p->op == CX_PKT_DC_REJECT)
			cx_dci_answer(dev, qp, p);
		else
			cx_req_answer(dev, qp, p);
	} else {
		cx_rx_connected(dev, qp, f, p);
	}
}

static bool cx_pkt_sane(const struct cx_pkt *p, u32 len)
{
	return len >= sizeof(*p) && p->seg <= len - sizeof(*p) && p->psn <= CX_PSN_MASK &&
	       p->seg <= 4096;
}

void cx_rdma_rx(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p, u32 len)
{
	struct cx_obj *obj;

	if (!cx_pkt_sane(p, len) || (p->flags & CX_PF_GRH && !cx_gid_accept(dev, p))) {
		cx_count(dev, CX_CTR_RX_FOREIGN, 1);
		return;
	}
	cx_count(dev, CX_CTR_RX_PACKETS, 1);
	cx_trace(dev, CX_TR_PKT, "rx op=%u node=%u sqpn=0x%x dqpn=0x%x psn=0x%x seg=%u aeth=%u",
		 p->op, f->node, p->sqpn, p->dqpn, p->psn, p->seg, p->aeth);
	if (p->dqpn == 0xffffff) {
		cx_mcg_deliver(dev, f, p);
		return;
	}
	if (p->dqpn < 2) {
		struct cx_qp *qp = cx_qp_find_special(dev, p->dqpn);

		obj = qp ? &qp->obj : NULL;
	} else {
		obj = cx_obj_find(dev, CX_SP_QUEUE, p->dqpn, 0);
	}
	if (obj && obj->kind == CX_K_QP)
		cx_rx_qp(dev, container_of(obj, struct cx_qp, obj), f, p);
	else if (p->service == CX_SV_DCI)
		cx_dct_rx(dev, f, p);
	else
		cx_count(dev, CX_CTR_RX_NO_QP, 1);
}
