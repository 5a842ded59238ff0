// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the receiving half of reliable services. Packets are executed in the
 * order of their sequence numbers; a hole is answered by one sequence NAK; a
 * duplicate SEND or WRITE is acknowledged, a duplicate READ executed again, a
 * duplicate atomic answered with the result of the first time. Answers leave
 * in order, a few packets at a turn.
 * Source of the rules: InfiniBand specification, vol. 1, chapter 9.7.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

struct cx_frame *cx_frame_new(enum cx_frame_kind kind, u32 data_bytes)
{
	struct cx_frame *f = g_malloc(sizeof(*f) + sizeof(struct cx_pkt) + data_bytes);

	memset(f, 0, sizeof(*f) + sizeof(struct cx_pkt));
	f->kind = kind;
	return f;
}

/* ---- answers */

static void cx_resp_header(struct cx_dev *dev, struct cx_responder *r, const struct cx_job *j,
			   struct cx_frame *f)
{
	struct cx_pkt *p = (struct cx_pkt *)f->data;

	memcpy(f->dst, r->dst, 6);
	memcpy(f->src, r->src, 6);
	memcpy(p->sgid, r->sgid, 16);
	memcpy(p->dgid, r->dgid, 16);
	p->l3 = r->l3;
	p->service = r->dct ? CX_SV_DCI : r->qp->sv;
	p->dqpn = r->peer_qpn;
	p->sqpn = r->dct ? r->dct->obj.id : r->qp->obj.id;
	p->conn = r->conn;
	p->op = j->op;
	p->aeth = j->aeth;
	p->psn = j->psn;
	p->msn = j->msn;
}

static void cx_resp_emit(struct cx_dev *dev, struct cx_frame *f)
{
	struct cx_pkt *p = (struct cx_pkt *)f->data;

	f->bytes = sizeof(*f) + sizeof(*p) + p->seg;
	cx_trace(dev, CX_TR_PKT, "tx answer op=%u dqpn=0x%x psn=0x%x aeth=%u seg=%u", p->op,
		 p->dqpn, p->psn, p->aeth, p->seg);
	cx_count(dev, CX_CTR_TX_PACKETS, 1);
	cx_fabric_send(dev, f);
}

/* send one packet of a job; true: the job is done */
static bool cx_job_step(struct cx_dev *dev, struct cx_responder *r, struct cx_job *j)
{
	g_autofree struct cx_frame *f = cx_frame_new(CX_FRAME_RDMA, MAX(r->mtu, 8));
	struct cx_pkt *p = (struct cx_pkt *)f->data;

	cx_resp_header(dev, r, j, f);
	p->rnr_timer = j->rnr_timer;
	if (j->op == CX_PKT_ATOMIC_RESP) {
		p->seg = 8;
		memcpy(p->data, &j->result, 8);
	} else if (j->op == CX_PKT_READ_RESP) {
		p->seg = MIN(r->mtu, j->len - j->off);
		if (cx_mkey_copy(dev, j->rkey, j->pdn, j->va + j->off, p->data, p->seg,
				 CX_ACC_REMOTE_READ)) {
			/* the key went away while the answer was under way */
			p->op = CX_PKT_ACK;
			p->aeth = CX_AETH_ACCESS;
			p->seg = 0;
			j->off = j->len;
		}
		j->off += p->seg;
		j->psn = cx_psn_add(j->psn, 1);
	}
	cx_resp_emit(dev, f);
	return j->op != CX_PKT_READ_RESP || j->off >= j->len;
}

/* a target may be slow: whether its next answer is not due yet */
static bool cx_resp_slow(struct cx_dev *dev, struct cx_responder *r)
{
	s64 now = qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);

	if (!r->dct || r->dct->obj.id != dev->slow.dctn)
		return false;
	if (now >= r->slow_until) {
		r->slow_until = now + dev->slow.us;
		return false;
	}
	if (!timer_pending(dev->slow.timer))
		timer_mod(dev->slow.timer, r->slow_until);
	return true;
}

void cx_resp_slow_over(void *opaque)
{
	struct cx_dev *dev = opaque;

	cx_sched_unpark(dev);
	cx_dev_kick(dev);
}

static enum cx_pump cx_resp_pump(struct cx_dev *dev, struct cx_task *task, u32 budget)
{
	struct cx_responder *r = container_of(task, struct cx_responder, task);
	struct cx_job *j;

	while (budget-- && (j = QTAILQ_FIRST(&r->jobs))) {
		if (!cx_fabric_room(dev, r->dst) || (!j->off && cx_resp_slow(dev, r)))
			return CX_PUMP_PARK;
		if (cx_job_step(dev, r, j)) {
			QTAILQ_REMOVE(&r->jobs, j, link);
			g_free(j);
		}
	}
	return QTAILQ_EMPTY(&r->jobs) ? CX_PUMP_IDLE : CX_PUMP_MORE;
}

static struct cx_job *cx_job_add(struct cx_dev *dev, struct cx_responder *r, u8 op, u32 psn)
{
	struct cx_job *j = g_new0(struct cx_job, 1);

	j->op = op;
	j->psn = psn;
	j->msn = r->msn;
	QTAILQ_INSERT_TAIL(&r->jobs, j, link);
	cx_sched_add(dev, &r->task);
	return j;
}

static void cx_resp_ack(struct cx_dev *dev, struct cx_responder *r, u32 psn)
{
	struct cx_job *last = QTAILQ_LAST(&r->jobs);

	if (last && last->op == CX_PKT_ACK && last->aeth == CX_AETH_ACK) {
		last->psn = psn;
		last->msn = r->msn;
	} else {
		cx_job_add(dev, r, CX_PKT_ACK, psn);
	}
}

static void cx_resp_nak(struct cx_dev *dev, struct cx_responder *r, u32 psn, enum cx_aeth why)
{
	cx_job_add(dev, r, CX_PKT_ACK, psn)->aeth = why;
	if (why == CX_AETH_SEQ)
		cx_count(dev, CX_CTR_NAKS_SEQ, 1);
	else if (why == CX_AETH_RNR)
		cx_count(dev, CX_CTR_NAKS_RNR, 1);
	else
		cx_count(dev, CX_CTR_NAKS_ERROR, 1);
}

/* an error NAK is the last thing this responder says: do not lose it in a flush */
static void cx_resp_drain(struct cx_dev *dev, struct cx_responder *r)
{
	struct cx_job *j;

	while ((j = QTAILQ_FIRST(&r->jobs))) {
		if (cx_job_step(dev, r, j)) {
			QTAILQ_REMOVE(&r->jobs, j, link);
			g_free(j);
		}
	}
	cx_sched_remove(dev, &r->task);
}

/* ---- execution */

void cx_resp_queue(struct cx_dev *dev, struct cx_responder *r, struct cx_rx_queue *rx)
{
	if (r->dct)
		cx_rx_of_dct(dev, r->dct, rx);
	else
		cx_rx_of_qp(dev, r->qp, rx);
}

/* an XRC message names the SRQ; keys are checked with its protection domain */
static bool cx_resp_xrc(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			struct cx_rx_queue *rx)
{
	struct cx_srq *srq = cx_srq_find(dev, p->srqn);

	if (!srq || srq->obj.kind != CX_K_XRC_SRQ || srq->xrcd != r->qp->xrcd)
		return false;
	rx->srq = srq;
	rx->cq = srq->cq;
	rx->pdn = srq->wq.pdn;
	rx->user_index = srq->user_index;
	return true;
}

static void cx_resp_cqe(struct cx_dev *dev, struct cx_responder *r, const struct cx_rx_queue *rx,
			const struct cx_pkt *p, enum cx_syndrome why)
{
	struct cx_cqe x = {
		.op = why ? CX_CQE_RESP_ERR : CX_CQE_RESP_SEND,
		.syndrome = why,
		.user_index = rx->user_index,
		.qpn = rx->qpn,
		.wqe_counter = r->rwqe.index,
		.bytes = r->msg_len,
		.imm = p->imm,
		.flags_rqpn = r->peer_qpn,
		.slid = dev->eth ? 0 : cx_l2_lid(r->dst),
		.solicited = p->flags & CX_PF_SOLICITED,
	};

	r->have_rwqe = false;
	if (!rx->cq)
		return;
	if (!why && r->msg_op == CX_PKT_WRITE)
		x.op = CX_CQE_RESP_WR_IMM;
	else if (!why && p->flags & CX_PF_IMM)
		x.op = CX_CQE_RESP_SEND_IMM;
	else if (!why && p->flags & CX_PF_INVALIDATE)
		x.op = CX_CQE_RESP_SEND_INV;
	else
		x.imm = p->flags & CX_PF_IMM ? p->imm : 0;
	cx_cq_write(dev, rx->cq, &x);
}

/* a request was wrong: answer, tell the driver, stop the queue */
static void cx_resp_fail(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			 enum cx_aeth why)
{
	struct cx_qp *qp = r->qp;

	if (why == CX_AETH_ACCESS && dev->access_silent) {
		cx_trace(dev, CX_TR_REFUSE, "request op=%u dqpn=0x%x psn=0x%x rkey=0x%x: dropped",
			 p->op, p->dqpn, p->psn, p->rkey);
		r->msg_op = 0;
		r->nak_sent = true; /* nor is anything said of what comes behind it */
		return;
	}
	cx_trace(dev, CX_TR_REFUSE,
		 "request op=%u dqpn=0x%x psn=0x%x va=0x%" PRIx64 " rkey=0x%x: NAK %u", p->op,
		 p->dqpn, p->psn, p->va, p->rkey, why);
	r->msg_op = 0;
	cx_resp_nak(dev, r, p->psn, why);
	r->nak_sent = true;
	if (!qp) /* a DC target goes on serving the others */
		return;
	cx_resp_drain(dev, r);
	if (why == CX_AETH_ACCESS)
		cx_event_queue(dev, CX_EV_WQ_ACCESS, CX_EQT_QP, qp->obj.id);
	else if (why == CX_AETH_INVAL)
		cx_event_queue(dev, CX_EV_WQ_INVAL, CX_EQT_QP, qp->obj.id);
	cx_qp_error(dev, qp);
}

/* get a receive request for the message; false: answered with RNR */
static bool cx_resp_take_rwqe(struct cx_dev *dev, struct cx_responder *r,
			      const struct cx_rx_queue *rx, const struct cx_pkt *p)
{
	if (r->have_rwqe)
		return true;
	if (cx_rx_pop(dev, rx, &r->rwqe)) {
		r->have_rwqe = true;
		return true;
	}
	cx_count(dev, CX_CTR_RX_NO_BUFFER, 1);
	cx_qcounter_add(dev, rx->counter_set, CX_QC_OUT_OF_BUFFER);
	cx_resp_nak(dev, r, p->psn, CX_AETH_RNR);
	QTAILQ_LAST(&r->jobs)->rnr_timer = rx->rnr_timer;
	r->nak_sent = true;
	return false;
}

static void cx_resp_next(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p)
{
	r->epsn = cx_psn_add(r->epsn, 1);
	r->msg_off += p->seg;
	if (p->flags & CX_PF_LAST) {
		r->msn = cx_psn_add(r->msn, 1);
		r->msg_op = 0;
	}
	if (p->flags & CX_PF_ACK_REQ)
		cx_resp_ack(dev, r, p->psn);
}

static void cx_resp_send(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			 const struct cx_rx_queue *rx)
{
	int err;

	if (p->flags & CX_PF_FIRST) {
		if (!cx_resp_take_rwqe(dev, r, rx, p))
			return;
		r->msg_op = CX_PKT_SEND;
		r->msg_len = p->len;
		r->msg_off = 0;
	}
	if (r->msg_op != CX_PKT_SEND) {
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
		return;
	}
	err = cx_rq_scatter(dev, rx->pdn, &r->rwqe, r->msg_off, p->data, p->seg);
	if (err) {
		cx_resp_cqe(dev, r, rx, p,
			    err == -ENOSPC ? CX_SYN_LOCAL_LENGTH : CX_SYN_LOCAL_PROT);
		cx_resp_fail(dev, r, p, err == -ENOSPC ? CX_AETH_INVAL : CX_AETH_OP);
		return;
	}
	if (p->flags & CX_PF_LAST) {
		cx_count_op(dev, p->flags & CX_PF_IMM ? CX_OP_SEND_IMM : CX_OP_SEND, true,
			    r->msg_len);
		cx_resp_cqe(dev, r, rx, p, CX_SYN_OK);
	}
	cx_resp_next(dev, r, p);
}

static void cx_resp_write(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			  const struct cx_rx_queue *rx)
{
	if (p->flags & CX_PF_FIRST) {
		if (!(rx->access & CX_ACC_REMOTE_WRITE) ||
		    (p->len &&
		     cx_mkey_check(dev, p->rkey, rx->pdn, p->va, p->len, CX_ACC_REMOTE_WRITE))) {
			cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
			return;
		}
		r->msg_op = CX_PKT_WRITE;
		r->msg_len = p->len;
		r->msg_off = 0;
		r->msg_va = p->va;
		r->msg_rkey = p->rkey;
		cx_qcounter_add(dev, rx->counter_set, CX_QC_RX_WRITE);
	}
	if (r->msg_op != CX_PKT_WRITE || r->msg_off + p->seg > r->msg_len) {
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
		return;
	}
	if (p->flags & CX_PF_LAST && p->flags & CX_PF_IMM && !cx_resp_take_rwqe(dev, r, rx, p))
		return;
	if (cx_mkey_copy(dev, r->msg_rkey, rx->pdn, r->msg_va + r->msg_off, (u8 *)p->data, p->seg,
			 CX_ACC_REMOTE_WRITE)) {
		cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
		return;
	}
	if (p->flags & CX_PF_LAST) {
		cx_count_op(dev, p->flags & CX_PF_IMM ? CX_OP_WRITE_IMM : CX_OP_WRITE, true,
			    r->msg_len);
		if (p->flags & CX_PF_IMM)
			cx_resp_cqe(dev, r, rx, p, CX_SYN_OK);
	}
	cx_resp_next(dev, r, p);
}

static void cx_resp_remember(struct cx_responder *r, u32 psn, u32 nr_psn, u64 result)
{
	r->replay[r->replay_next++ % CX_NR_REPLAY] = (struct cx_replay){
		.psn = psn,
		.nr_psn = nr_psn,
		.result = result,
	};
}

static struct cx_job *cx_resp_answer_read(struct cx_dev *dev, struct cx_responder *r,
					  const struct cx_pkt *p, u32 pdn)
{
	struct cx_job *j = cx_job_add(dev, r, CX_PKT_READ_RESP, p->psn);

	j->pdn = pdn;
	j->va = p->va;
	j->rkey = p->rkey;
	j->len = p->len;
	return j;
}

static struct cx_job *cx_resp_answer_atomic(struct cx_dev *dev, struct cx_responder *r, u32 psn,
					    u64 result)
{
	struct cx_job *j = cx_job_add(dev, r, CX_PKT_ATOMIC_RESP, psn);

	j->result = result;
	return j;
}

/*
 * READs and atomics that are asked for and not answered. An answer to a duplicate does
 * not count: the duplicate may be a late one, of a request that the requester has
 * finished with.
 */
static u32 cx_resp_pending(const struct cx_responder *r)
{
	struct cx_job *j;
	u32 nr = 0;

	QTAILQ_FOREACH(j, &r->jobs, link)
	nr += j->op != CX_PKT_ACK && !j->again;
	return nr;
}

static void cx_resp_read(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			 const struct cx_rx_queue *rx)
{
	u32 nr = MAX(1, DIV_ROUND_UP(p->len, r->mtu));

	if (r->msg_op || cx_resp_pending(r) >= 1u << rx->log_rra_max) {
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
		return;
	}
	if (!(rx->access & CX_ACC_REMOTE_READ) ||
	    (p->len && cx_mkey_check(dev, p->rkey, rx->pdn, p->va, p->len, CX_ACC_REMOTE_READ))) {
		cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
		return;
	}
	cx_count_op(dev, CX_OP_READ, true, p->len);
	cx_qcounter_add(dev, rx->counter_set, CX_QC_RX_READ);
	cx_resp_remember(r, p->psn, nr, 0);
	r->msn = cx_psn_add(r->msn, 1);
	r->epsn = cx_psn_add(r->epsn, nr);
	cx_resp_answer_read(dev, r, p, rx->pdn);
}

static void cx_resp_atomic(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			   const struct cx_rx_queue *rx)
{
	u64 old, new;

	if (r->msg_op || p->va & 7 || cx_resp_pending(r) >= 1u << rx->log_rra_max) {
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
		return;
	}
	if (!(rx->access & CX_ACC_ATOMIC) ||
	    cx_mkey_copy(dev, p->rkey, rx->pdn, p->va, &old, 8, CX_ACC_ATOMIC)) {
		cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
		return;
	}
	if (p->op == CX_PKT_ATOMIC_FA)
		new = old + p->swap_add;
	else
		new = old == p->compare ? p->swap_add : old;
	if (cx_mkey_copy(dev, p->rkey, rx->pdn, p->va, &new, 8,
			 CX_ACC_ATOMIC | CX_ACC_LOCAL_WRITE)) {
		cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
		return;
	}
	cx_count_op(dev, p->op == CX_PKT_ATOMIC_FA ? CX_OP_ATOMIC_FA : CX_OP_ATOMIC_CS, true, 8);
	cx_qcounter_add(dev, rx->counter_set, CX_QC_RX_ATOMIC);
	cx_resp_remember(r, p->psn, 1, old);
	r->msn = cx_psn_add(r->msn, 1);
	r->epsn = cx_psn_add(r->epsn, 1);
	cx_resp_answer_atomic(dev, r, p->psn, old);
}

/* ---- order */

static const struct cx_replay *cx_resp_recall(const struct cx_responder *r, u32 psn)
{
	u32 i;

	for (i = 0; i < CX_NR_REPLAY; i++) {
		const struct cx_replay *m = &r->replay[i];

		if (m->nr_psn && cx_psn_diff(psn, m->psn) >= 0 &&
		    cx_psn_diff(psn, cx_psn_add(m->psn, m->nr_psn)) < 0)
			return m;
	}
	return NULL;
}

/* the packets of a queued answer end before this number */
static u32 cx_job_end(const struct cx_responder *r, const struct cx_job *j)
{
	return cx_psn_add(j->psn, MAX(1, DIV_ROUND_UP(j->len - j->off, r->mtu)));
}

/* what is left of earlier answers to a request would only be in the way */
static void cx_resp_cancel(struct cx_responder *r, const struct cx_replay *m)
{
	u32 end = cx_psn_add(m->psn, m->nr_psn);
	struct cx_job *j, *next;

	QTAILQ_FOREACH_SAFE(j, &r->jobs, link, next)
	{
		if (j->op != CX_PKT_ACK && cx_job_end(r, j) == end) {
			QTAILQ_REMOVE(&r->jobs, j, link);
			g_free(j);
		}
	}
}

static void cx_resp_duplicate(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			      const struct cx_rx_queue *rx)
{
	const struct cx_replay *m;

	cx_count(dev, CX_CTR_DUPLICATES, 1);
	cx_qcounter_add(dev, rx->counter_set, CX_QC_DUPLICATE);
	if (p->op == CX_PKT_SEND || p->op == CX_PKT_WRITE) {
		if (p->flags & CX_PF_ACK_REQ)
			cx_resp_ack(dev, r, cx_psn_add(r->epsn, CX_PSN_MASK));
		return;
	}
	m = cx_resp_recall(r, p->psn);
	if (!m)
		return;
	cx_count(dev, CX_CTR_REPLAYS, 1);
	if (p->op != CX_PKT_READ) {
		cx_resp_cancel(r, m);
		cx_resp_answer_atomic(dev, r, p->psn, m->result)->again = true;
		return;
	}
	if (p->len && cx_mkey_check(dev, p->rkey, rx->pdn, p->va, p->len, CX_ACC_REMOTE_READ)) {
		cx_resp_fail(dev, r, p, CX_AETH_ACCESS);
		return;
	}
	cx_resp_cancel(r, m);
	cx_resp_answer_read(dev, r, p, rx->pdn)->again = true;
}

static void cx_resp_execute(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p,
			    struct cx_rx_queue *rx)
{
	/* more than its path MTU is an invalid request: chapter 9.7.4.1.6 */
	if (p->seg > r->mtu_in) {
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
		return;
	}
	switch (p->op) {
	case CX_PKT_SEND:
	case CX_PKT_WRITE:
		if (p->op == CX_PKT_SEND)
			cx_resp_send(dev, r, p, rx);
		else
			cx_resp_write(dev, r, p, rx);
		break;
	case CX_PKT_READ:
		cx_resp_read(dev, r, p, rx);
		break;
	default:
		cx_resp_atomic(dev, r, p, rx);
		break;
	}
}

void cx_resp_request(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p)
{
	s32 ahead = cx_psn_diff(p->psn, r->epsn);
	bool known = true;
	struct cx_rx_queue rx;

	cx_resp_queue(dev, r, &rx);
	if (r->qp && r->qp->sv == CX_SV_XRC)
		known = cx_resp_xrc(dev, r, p, &rx);
	if (ahead < 0) {
		cx_resp_duplicate(dev, r, p, &rx);
		return;
	}
	if (ahead > 0) {
		if (!r->nak_sent) {
			cx_qcounter_add(dev, rx.counter_set, CX_QC_OUT_OF_SEQUENCE);
			cx_resp_nak(dev, r, r->epsn, CX_AETH_SEQ);
		}
		r->nak_sent = true;
		return;
	}
	r->nak_sent = false;
	if (known)
		cx_resp_execute(dev, r, p, &rx);
	else
		cx_resp_fail(dev, r, p, CX_AETH_INVAL);
}

/* ---- life */

void cx_resp_init(struct cx_responder *r)
{
	QTAILQ_INIT(&r->jobs);
	r->task.pump = cx_resp_pump;
}

void cx_resp_reset(struct cx_dev *dev, struct cx_responder *r)
{
	struct cx_job *j;

	cx_sched_remove(dev, &r->task);
	while ((j = QTAILQ_FIRST(&r->jobs))) {
		QTAILQ_REMOVE(&r->jobs, j, link);
		g_free(j);
	}
	memset(r->replay, 0, sizeof(r->replay));
	r->msg_op = 0;
	r->nak_sent = false;
	r->msn = 0;
}

void cx_resp_fini(struct cx_dev *dev, struct cx_responder *r)
{
	cx_resp_reset(dev, r);
}
