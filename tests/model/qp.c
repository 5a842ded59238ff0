// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: creation, destruction and query of queue pairs, and what an error does
 * to one: requests not executed are flushed, for the receive queue as long as
 * the queue stays in the error state, because a receive request rings no
 * doorbell. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_ERR_POLL_MS 2

struct cx_qp *cx_qp_find(struct cx_dev *dev, u32 qpn)
{
	return cx_obj_find(dev, CX_SP_QUEUE, qpn, CX_K_QP);
}

struct cx_qp *cx_qp_find_special(struct cx_dev *dev, u32 dqpn)
{
	enum cx_service sv = dqpn ? CX_SV_QP1 : CX_SV_QP0;
	struct cx_obj *obj;
	u32 pos = 0;

	while ((obj = cx_obj_next(dev, CX_SP_QUEUE, &pos))) {
		struct cx_qp *qp = container_of(obj, struct cx_qp, obj);

		if (obj->kind == CX_K_QP && qp->sv == sv && qp->state >= CX_QPS_RTR &&
		    qp->state != CX_QPS_ERR)
			return qp;
	}
	return NULL;
}

u32 cx_qp_mtu(const struct cx_qp *qp)
{
	u32 mtu = CX_QP_GET(qp, mtu);

	return mtu ? 128u << mtu : 4096;
}

bool cx_qp_is_datagram(const struct cx_qp *qp)
{
	return qp->sv == CX_SV_UD || qp->sv == CX_SV_QP0 || qp->sv == CX_SV_QP1;
}

bool cx_qp_is_connected(const struct cx_qp *qp)
{
	return qp->sv == CX_SV_RC || qp->sv == CX_SV_UC || qp->sv == CX_SV_XRC;
}

void cx_qp_flush_rq(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_rwqe r;

	if (qp->rq_type != CX_RQ_OWN)
		return;
	while (cx_rq_pop(dev, &qp->rq, &r)) {
		struct cx_cqe x = {
			.op = CX_CQE_RESP_ERR,
			.syndrome = CX_SYN_FLUSH,
			.user_index = qp->user_index,
			.qpn = qp->obj.id,
			.wqe_counter = r.index,
		};

		cx_cq_write(dev, qp->cq_recv, &x);
	}
}

static void cx_qp_err_list(struct cx_dev *dev, struct cx_qp *qp, bool on)
{
	if (on && !qp->err_listed && qp->rq_type == CX_RQ_OWN) {
		QTAILQ_INSERT_TAIL(&dev->err_qps, qp, err_link);
		qp->err_listed = true;
		timer_mod(dev->err_timer, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + CX_ERR_POLL_MS);
	} else if (!on && qp->err_listed) {
		QTAILQ_REMOVE(&dev->err_qps, qp, err_link);
		qp->err_listed = false;
	}
}

void cx_qp_err_poll(void *opaque)
{
	struct cx_dev *dev = opaque;
	struct cx_qp *qp;

	QTAILQ_FOREACH(qp, &dev->err_qps, err_link)
	cx_qp_flush_rq(dev, qp);
	if (!QTAILQ_EMPTY(&dev->err_qps))
		timer_mod(dev->err_timer, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + CX_ERR_POLL_MS);
	cx_dev_kick(dev);
}

/* the receive request of a message that will never be whole */
static void cx_qp_flush_partial(struct cx_dev *dev, struct cx_qp *qp)
{
	struct cx_cqe x = {
		.op = CX_CQE_RESP_ERR,
		.syndrome = CX_SYN_FLUSH,
		.user_index = qp->user_index,
		.qpn = qp->obj.id,
		.wqe_counter = qp->resp.rwqe.index,
	};

	if (!qp->resp.have_rwqe)
		return;
	qp->resp.have_rwqe = false;
	if (qp->cq_recv) /* not told: a request of the SRQ that an XRC message has named */
		cx_cq_write(dev, qp->cq_recv, &x);
}

void cx_qp_error(struct cx_dev *dev, struct cx_qp *qp)
{
	if (qp->state == CX_QPS_ERR)
		return;
	qp->state = CX_QPS_ERR;
	cx_trace(dev, CX_TR_EVENT, "QP 0x%x to ERR", qp->obj.id);
	cx_qp_flush_partial(dev, qp);
	cx_resp_reset(dev, &qp->resp);
	cx_req_flush(dev, qp);
	cx_qp_flush_rq(dev, qp);
	cx_qp_err_list(dev, qp, true);
	if (qp->srq && qp->sv != CX_SV_DCI)
		cx_event_queue(dev, CX_EV_SRQ_LAST_WQE, CX_EQT_QP, qp->obj.id);
}

void cx_qp_sq_error(struct cx_dev *dev, struct cx_qp *qp)
{
	if (qp->state != CX_QPS_RTS)
		return;
	qp->state = CX_QPS_SQER;
	cx_trace(dev, CX_TR_EVENT, "QP 0x%x to SQER", qp->obj.id);
	cx_req_flush(dev, qp);
}

/* a doorbell that no driver rings: told and counted */
static void cx_qp_odd_doorbell(struct cx_dev *dev, const struct cx_qp *qp, u16 pi, const char *why)
{
	cx_count(dev, CX_CTR_DB_ODD, 1);
	cx_trace(dev, CX_TR_REFUSE, "QP 0x%x doorbell, record %u, rung %u, taken %u: %s",
		 qp->obj.id, pi, qp->sq.rung, qp->sq.ci, why);
}

bool cx_qp_has_one_more(struct cx_dev *dev, const struct cx_qp *qp, u32 blocks)
{
	return !qp->no_sq && qp->state == CX_QPS_RTS && !cx_sq_left(&qp->sq) &&
	       (u16)(cx_wq_pi(dev, &qp->sq) - qp->sq.ci) == blocks;
}

void cx_qp_doorbell(struct cx_dev *dev, struct cx_qp *qp, u64 val, u16 pi, const u8 *raw)
{
	u16 ahead = pi - qp->sq.ci, last = val >> 40;

	if (qp->no_sq || qp->state == CX_QPS_RST)
		return;
	if (ahead < cx_sq_left(&qp->sq) || ahead > 1u << qp->sq.log_size) {
		cx_qp_odd_doorbell(dev, qp, pi, "the record went back");
		return;
	}
	if (pi != (u16)(last + DIV_ROUND_UP((val & 0x3f) * 16, CX_WQE_BB)))
		cx_qp_odd_doorbell(dev, qp, pi, "the request in the register ends elsewhere");
	qp->sq.rung = pi;
	if (raw)
		cx_pushed_keep(dev, &qp->sq, &qp->pushed, raw);
	if (qp->state == CX_QPS_ERR || qp->state == CX_QPS_SQER)
		cx_req_flush(dev, qp);
	else if (qp->state == CX_QPS_RTS)
		cx_req_start(dev, qp);
}

static void cx_qp_put_all(struct cx_qp *qp)
{
	struct cx_obj *held[] = {
		qp->pd,
		qp->xrcd,
		qp->cq_send ? &qp->cq_send->obj : NULL,
		qp->cq_recv ? &qp->cq_recv->obj : NULL,
		qp->srq ? &qp->srq->obj : NULL,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(held); i++) {
		if (held[i])
			cx_obj_put(held[i]);
	}
}

static void cx_qp_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_qp *qp = container_of(obj, struct cx_qp, obj);

	cx_qp_err_list(dev, qp, false);
	cx_mcg_forget_qp(dev, obj->id);
	cx_req_fini(dev, qp);
	cx_resp_fini(dev, &qp->resp);
	cx_qp_put_all(qp);
	cx_ring_free(&qp->ring);
	g_free(qp);
}

static bool cx_service_known(u32 st)
{
	switch (st) {
	case CX_SV_RC:
	case CX_SV_UC:
	case CX_SV_UD:
	case CX_SV_XRC:
	case CX_SV_DCI:
	case CX_SV_QP0:
	case CX_SV_QP1:
	case CX_SV_REG_UMR:
		return true;
	default:
		return false;
	}
}

/* find what the context refers to; references are taken by the caller */
static int cx_qp_refer(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	u32 pdn = CX_GET(qpc, c, pd), uarn = CX_GET(qpc, c, uar_page);
	u32 srqn = CX_GET(qpc, c, srqn_rmpn_xrqn), xrcdn = CX_GET(qpc, c, xrcd);

	qp->pd = cx_obj_find(dev, CX_SP_PD, pdn, CX_K_PD);
	qp->uar = uarn;
	qp->cq_send = cx_cq_find(dev, CX_GET(qpc, c, cqn_snd));
	qp->cq_recv = cx_cq_find(dev, CX_GET(qpc, c, cqn_rcv));
	if (!qp->pd && (pdn || qp->sv != CX_SV_REG_UMR))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "PD 0x%x does not exist", pdn);
	/* a target of XRC sends nothing and has no page */
	if (!qp->no_sq && !cx_obj_find(dev, CX_SP_UAR, uarn, CX_K_UAR))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "UAR 0x%x does not exist", uarn);
	if (!qp->cq_send && !qp->no_sq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "send CQ 0x%x does not exist",
				 CX_GET(qpc, c, cqn_snd));
	if (!qp->cq_recv && qp->rq_type != CX_RQ_NONE)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "receive CQ 0x%x does not exist",
				 CX_GET(qpc, c, cqn_rcv));
	if (qp->rq_type == CX_RQ_SRQ) {
		qp->srq = cx_srq_find(dev, srqn);
		if (!qp->srq)
			return cx_refuse(dev, cmd, CX_ST_BAD_RES, "SRQ 0x%x does not exist", srqn);
	}
	if (qp->sv == CX_SV_XRC) {
		qp->xrcd = cx_obj_find(dev, CX_SP_XRCD, xrcdn, CX_K_XRCD);
		if (!qp->xrcd)
			return cx_refuse(dev, cmd, CX_ST_BAD_RES, "XRCD 0x%x does not exist",
					 xrcdn);
	}
	return 0;
}

static int cx_qp_check_sizes(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	u32 most = dev->prop.log_max_qp_sz, sq = CX_GET(qpc, c, log_sq_size);
	u32 rq = CX_GET(qpc, c, log_rq_size), stride = CX_GET(qpc, c, log_rq_stride) + 4;

	if (!qp->no_sq && sq > most)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "log_sq_size %u", sq);
	if (qp->rq_type != CX_RQ_OWN)
		return 0;
	if (rq > most)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "log_rq_size %u", rq);
	if (stride > CX_LOG_MAX_RQ_WQE_BYTES)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "receive entries of %u bytes", 1 << stride);
	return 0;
}

static int cx_qp_queues(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	const u8 *pas = CX_ADDR(create_qp_in, cmd->in, pas);
	u32 page_shift = CX_GET(qpc, c, log_page_size) + 12;
	u64 dbr = CX_GET64(qpc, c, dbr_addr), rq_bytes = 0, sq_bytes = 0;

	if (dbr & 7)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "doorbell record is not aligned");
	qp->rq = (struct cx_wq){
		.ring = &qp->ring,
		.dbr = dbr,
		.log_size = CX_GET(qpc, c, log_rq_size),
		.log_stride = CX_GET(qpc, c, log_rq_stride) + 4,
		.signature = CX_GET(qpc, c, wq_signature),
		.pdn = cx_qp_pdn(qp),
	};
	if (qp->rq_type == CX_RQ_OWN)
		rq_bytes = 1ull << (qp->rq.log_size + qp->rq.log_stride);
	qp->sq = (struct cx_wq){
		.ring = &qp->ring,
		.base = rq_bytes,
		.dbr = dbr + 4,
		.log_size = CX_GET(qpc, c, log_sq_size),
		.log_stride = 6,
		.pdn = cx_qp_pdn(qp),
	};
	if (!qp->no_sq)
		sq_bytes = (u64)CX_WQE_BB << qp->sq.log_size;
	if (cx_ring_init(&qp->ring, page_shift, CX_GET(qpc, c, page_offset), rq_bytes + sq_bytes,
			 pas, cmd->in + cmd->inlen - pas))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page list too short or not aligned");
	return 0;
}

static int cx_qp_parse(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	u32 rq_type = CX_GET(qpc, c, rq_type);

	qp->dev = dev;
	qp->sv = CX_GET(qpc, c, st);
	qp->no_sq = CX_GET(qpc, c, no_sq);
	qp->rq_type = rq_type;
	qp->user_index = CX_GET(qpc, c, user_index);
	if (rq_type == CX_RQ_XRQ || rq_type > CX_RQ_NONE)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "rq_type %u", rq_type);
	if (cx_qp_refer(dev, cmd, qp, c) || cx_qp_check_sizes(dev, cmd, qp, c))
		return -1;
	return cx_qp_queues(dev, cmd, qp, c);
}

int cx_cmd_create_qp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_qp_in, cmd->in, qpc);
	struct cx_qp *qp;

	if (CX_GET(qpc, c, st) == CX_SV_DCI && !dev->prop.dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "the adapter has no DC");
	if (!cx_service_known(CX_GET(qpc, c, st)))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "service type 0x%x",
				 CX_GET(qpc, c, st));
	if (CX_GET(qpc, c, state))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "born in state %u",
				 CX_GET(qpc, c, state));
	qp = g_new0(struct cx_qp, 1);
	if (cx_qp_parse(dev, cmd, qp, c)) {
		cx_ring_free(&qp->ring);
		g_free(qp);
		return -1;
	}
	if (qp->pd)
		cx_obj_get(qp->pd);
	if (qp->xrcd)
		cx_obj_get(qp->xrcd);
	if (qp->cq_send)
		cx_obj_get(&qp->cq_send->obj);
	if (qp->cq_recv)
		cx_obj_get(&qp->cq_recv->obj);
	if (qp->srq)
		cx_obj_get(&qp->srq->obj);
	memcpy(qp->qpc, c, CX_SZ(qpc));
	cx_req_init(dev, qp);
	cx_resp_init(&qp->resp);
	qp->resp.qp = qp;
	qp->obj.release = cx_qp_release;
	if (cx_obj_add(dev, CX_SP_QUEUE, CX_K_QP, &qp->obj)) {
		cx_qp_release(dev, &qp->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free QP");
	}
	CX_SET(create_qp_out, cmd->out, qpn, qp->obj.id);
	return 0;
}

int cx_cmd_destroy_qp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 qpn = CX_GET(destroy_qp_in, cmd->in, qpn);
	struct cx_qp *qp = cx_qp_find(dev, qpn);

	if (!qp)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "QP 0x%x does not exist", qpn);
	cx_obj_del(dev, &qp->obj);
	return 0;
}

int cx_cmd_query_qp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 qpn = CX_GET(query_qp_in, cmd->in, qpn);
	struct cx_qp *qp = cx_qp_find(dev, qpn);
	u8 *c = CX_ADDR(query_qp_out, cmd->out, qpc);

	if (!qp)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "QP 0x%x does not exist", qpn);
	memcpy(c, qp->qpc, CX_SZ(qpc));
	CX_SET(qpc, c, state, qp->state);
	CX_SET(qpc, c, next_send_psn, qp->req.next_psn);
	CX_SET(qpc, c, last_acked_psn, cx_psn_add(qp->req.una, CX_PSN_MASK));
	CX_SET(qpc, c, next_rcv_psn, qp->resp.epsn);
	CX_SET(qpc, c, rmsn, qp->resp.msn);
	CX_SET(qpc, c, hw_sq_wqebb_counter, qp->sq.ci);
	CX_SET(qpc, c, hw_rq_counter, qp->rq.ci);
	return 0;
}

void cx_qp_reset(struct cx_dev *dev, struct cx_qp *qp)
{
	cx_qp_err_list(dev, qp, false);
	qp->state = CX_QPS_RST;
	qp->sq.ci = qp->rq.ci = qp->sq.rung = 0;
	qp->comm_est = false;
	qp->resp.have_rwqe = false;
	cx_req_reset(dev, qp);
	cx_resp_reset(dev, &qp->resp);
}

int cx_qp_break(struct cx_dev *dev, u32 qpn)
{
	struct cx_qp *qp = cx_qp_find(dev, qpn);

	if (!qp)
		return -ENOENT;
	cx_req_reset(dev, qp);
	qp->state = CX_QPS_ERR;
	qp->sq.ci = qp->sq.rung;
	cx_trace(dev, CX_TR_FAULT, "QP 0x%x broken", qpn);
	cx_event_queue(dev, CX_EV_WQ_CATAS, CX_EQT_QP, qpn);
	return 0;
}
