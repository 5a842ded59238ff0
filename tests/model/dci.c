// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the connection of a DC initiator. An initiator talks to one target at
 * a time. A request for another target waits until all before it are complete;
 * then the initiator disconnects, connects to the new target with its DC key,
 * and goes on when the target has accepted. A refusal fails the request as
 * "transport retry counter exceeded".
 * Runs under QEMU's big lock.
 */
#include "dev.h"

static bool cx_av_same_target(const struct cx_av *a, const struct cx_av *b)
{
	return a->dqpn == b->dqpn && a->dc_key == b->dc_key && a->lid == b->lid &&
	       !memcmp(a->mac, b->mac, 6) && !memcmp(a->rgid, b->rgid, 16);
}

static void cx_dci_send(struct cx_dev *dev, struct cx_qp *qp, enum cx_pkt_op op)
{
	struct cx_requester *q = &qp->req;
	g_autofree struct cx_frame *f = cx_frame_new(CX_FRAME_RDMA, 0);
	struct cx_pkt *p = (struct cx_pkt *)f->data;

	if (cx_req_address(dev, qp, &q->dc_target, f))
		return;
	p->op = op;
	p->service = CX_SV_DCI;
	p->pkey = cx_port_pkey(dev, CX_QP_PATH(qp, pkey_index));
	p->dqpn = q->dc_target.dqpn;
	p->sqpn = qp->obj.id;
	p->dc_key = q->dc_target.dc_key;
	p->conn = q->dc_conn;
	p->psn = q->una;
	p->len = cx_qp_mtu(qp);
	f->bytes = sizeof(*f) + sizeof(*p);
	cx_trace(dev, CX_TR_PKT, "tx DC op=%u dci=0x%x dctn=0x%x conn=0x%x psn=0x%x", op, p->sqpn,
		 p->dqpn, p->conn, p->psn);
	cx_count(dev, CX_CTR_TX_PACKETS, 1);
	cx_fabric_send(dev, f);
}

void cx_dci_connect(struct cx_dev *dev, struct cx_qp *qp)
{
	cx_count(dev, CX_CTR_DC_CONNECTS, 1);
	cx_dci_send(dev, qp, CX_PKT_DC_CONNECT);
	cx_req_arm_timer(dev, qp);
}

void cx_dci_disconnect(struct cx_dev *dev, struct cx_qp *qp)
{
	cx_dci_send(dev, qp, CX_PKT_DC_DISCONNECT);
	qp->req.dc_state = CX_DC_IDLE;
}

bool cx_dci_ready(struct cx_dev *dev, struct cx_qp *qp, const struct cx_sreq *r)
{
	struct cx_requester *q = &qp->req;

	if (r->w.opcode == CX_OP_NOP)
		return true;
	if (q->dc_state != CX_DC_IDLE && cx_av_same_target(&q->dc_target, &r->w.av))
		return true;
	if (!cx_req_idle(qp))
		return false;
	if (q->dc_state != CX_DC_IDLE)
		cx_dci_disconnect(dev, qp);
	if (q->dc_aimed && !cx_av_same_target(&q->dc_target, &r->w.av))
		cx_count(dev, CX_CTR_DC_CHANGES, 1);
	q->dc_aimed = true;
	q->dc_target = r->w.av;
	q->dc_state = CX_DC_CONNECTING;
	q->dc_conn = ++dev->dc_conns;
	q->retries = 0;
	cx_dci_connect(dev, qp);
	return true;
}

/*
 * Was something sent and not answered that must not be executed again? The target
 * that forgot the connection forgot the answers too, and cannot tell a second time
 * from the first one. READs may be repeated; so may WRITEs, whose memory nobody may
 * look at before they are complete.
 */
static bool cx_dci_doubtful(const struct cx_qp *qp)
{
	const struct cx_requester *q = &qp->req;
	const struct cx_sreq *r;

	QTAILQ_FOREACH(r, &q->list, link)
	{
		if (!r->done && r->sent && r->w.opcode != CX_OP_READ && r->w.opcode != CX_OP_WRITE)
			return true;
	}
	return false;
}

static void cx_dci_forgotten(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_requester *q = &qp->req;

	if (cx_dci_doubtful(qp)) {
		cx_count(dev, CX_CTR_DC_DOUBTS, 1);
		cx_trace(dev, CX_TR_REFUSE,
			 "DCI 0x%x: DCT 0x%x forgot the connection while a request was under way "
			 "that may not be executed twice",
			 qp->obj.id, q->dc_target.dqpn);
		q->dc_state = CX_DC_IDLE;
		cx_req_fail_head(dev, qp, CX_SYN_RETRY_EXC);
		return;
	}
	q->dc_state = CX_DC_CONNECTING;
	q->dc_conn = ++dev->dc_conns;
	cx_dci_connect(dev, qp);
}

static void cx_dci_rejected(struct cx_dev *dev, struct cx_qp *qp, u8 reason)
{
	struct cx_requester *q = &qp->req;

	cx_trace(dev, CX_TR_EVENT, "DCI 0x%x rejected by DCT 0x%x, reason %u", qp->obj.id,
		 q->dc_target.dqpn, reason);
	switch (reason) {
	case CX_DC_FULL: /* the timer asks again */
		break;
	case CX_DC_NO_CONTEXT:
		cx_dci_forgotten(dev, qp);
		break;
	default:
		q->dc_state = CX_DC_IDLE;
		cx_req_fail_head(dev, qp, CX_SYN_RETRY_EXC);
		break;
	}
}

void cx_dci_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p)
{
	struct cx_requester *q = &qp->req;

	if (qp->sv != CX_SV_DCI || qp->state != CX_QPS_RTS || p->conn != q->dc_conn)
		return;
	if (p->op == CX_PKT_DC_REJECT) {
		if (q->dc_state == CX_DC_CONNECTING || p->aeth == CX_DC_NO_CONTEXT)
			cx_dci_rejected(dev, qp, p->aeth);
		return;
	}
	if (q->dc_state != CX_DC_CONNECTING)
		return;
	q->dc_state = CX_DC_CONNECTED;
	q->retries = 0;
	q->implied = ~0u;
	if (q->cur != QTAILQ_FIRST(&q->list))
		cx_req_go_back(dev, qp, q->una);
	cx_req_start(dev, qp);
}
