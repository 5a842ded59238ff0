// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: DC targets and the initiators connected to them. Every connected
 * initiator has a responder context of its own. A wrong key, a target that
 * does not exist or is draining is refused; a wrong key also counts and, when
 * armed, raises an event. Draining takes no new connection, waits for messages
 * under way and then raises DCT_DRAINED. What comes from another partition is
 * dropped.
 * What real firmware answers to a wrong number or key is not documented in
 * public: the refusal is this model's choice.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_DCT_MAX_INITIATORS 4096
#define CX_DRAIN_MS 500

#define CX_DCT_GET(t, f) CX_GET(dctc, (t)->dctc, f)

struct cx_dct *cx_dct_find(struct cx_dev *dev, u32 dctn)
{
	return cx_obj_find(dev, CX_SP_QUEUE, dctn, CX_K_DCT);
}

void cx_rx_of_dct(struct cx_dev *dev, struct cx_dct *dct, struct cx_rx_queue *rx)
{
	*rx = (struct cx_rx_queue){
		.pdn = dct->pd->id,
		.cq = dct->cq,
		.srq = dct->srq,
		.user_index = dct->user_index,
		.qpn = dct->obj.id,
		.access = (CX_DCT_GET(dct, rre) ? CX_ACC_REMOTE_READ : 0) |
			  (CX_DCT_GET(dct, rwe) ? CX_ACC_REMOTE_WRITE : 0) |
			  (CX_DCT_GET(dct, rae) ? CX_ACC_ATOMIC : 0),
		.counter_set = CX_DCT_GET(dct, counter_set_id),
		.rnr_timer = CX_DCT_GET(dct, min_rnr_nak),
		.log_rra_max = CX_LOG_MAX_RD_ATOMIC,
	};
}

/* ---- connections */

static u64 cx_initiator_key(const struct cx_frame *f, const struct cx_pkt *p)
{
	return (u64)f->node << 24 | p->sqpn;
}

static void cx_initiator_free(struct cx_dct *dct, struct cx_responder *r)
{
	cx_resp_fini(dct->dev, r);
	g_free(r);
}

static void cx_dct_reply(struct cx_dev *dev, const struct cx_frame *to, const struct cx_pkt *p,
			 enum cx_pkt_op op, u8 reason)
{
	g_autofree struct cx_frame *f = cx_frame_new(CX_FRAME_RDMA, 0);
	struct cx_pkt *a = (struct cx_pkt *)f->data;

	memcpy(f->dst, to->src, 6);
	memcpy(f->src, to->dst, 6);
	memcpy(a->sgid, p->dgid, 16);
	memcpy(a->dgid, p->sgid, 16);
	a->l3 = p->l3;
	a->op = op;
	a->aeth = reason;
	a->service = CX_SV_DCI;
	a->sqpn = p->dqpn;
	a->dqpn = p->sqpn;
	a->conn = p->conn;
	f->bytes = sizeof(*f) + sizeof(*a);
	cx_trace(dev, CX_TR_PKT, "tx DC op=%u dct=0x%x dci=0x%x conn=0x%x reason=%u", op, a->sqpn,
		 a->dqpn, a->conn, reason);
	cx_count(dev, CX_CTR_TX_PACKETS, 1);
	cx_fabric_send(dev, f);
}

/* Why an initiator is refused, or 0. */
static u8 cx_dct_admission(struct cx_dev *dev, struct cx_dct *dct, const struct cx_pkt *p, u64 key)
{
	if (!dct)
		return CX_DC_NO_TARGET;
	if (dct->state != CX_DCT_ACTIVE)
		return CX_DC_DRAINING;
	if (dct->key != p->dc_key) {
		dct->key_violations++;
		if (dct->key_armed)
			cx_event_dct(dev, CX_EV_DCT_KEY, dct->obj.id);
		dct->key_armed = false;
		return CX_DC_KEY;
	}
	if (g_hash_table_size(dct->initiators) >= CX_DCT_MAX_INITIATORS &&
	    !g_hash_table_contains(dct->initiators, &key)) /* it has its place */
		return CX_DC_FULL;
	return 0;
}

static struct cx_responder *cx_initiator_new(struct cx_dct *dct, u64 key)
{
	struct cx_responder *r = g_new0(struct cx_responder, 1);

	cx_resp_init(r);
	r->dct = dct;
	g_hash_table_insert(dct->initiators, g_memdup2(&key, sizeof(key)), r);
	return r;
}

static void cx_dct_connect(struct cx_dev *dev, struct cx_dct *dct, const struct cx_frame *f,
			   const struct cx_pkt *p)
{
	u64 key = cx_initiator_key(f, p);
	u8 reason = cx_dct_admission(dev, dct, p, key);
	struct cx_responder *r;

	if (reason) {
		cx_count(dev, CX_CTR_DC_REJECTED, 1);
		/* a target that is full or ends says so even then: it knows the initiator's key */
		if (!dev->dc_silent || (reason != CX_DC_NO_TARGET && reason != CX_DC_KEY))
			cx_dct_reply(dev, f, p, CX_PKT_DC_REJECT, reason);
		return;
	}
	r = g_hash_table_lookup(dct->initiators, &key);
	/* a late double of one before: to take it would be to forget what was executed since */
	if (r && (s32)(p->conn - r->conn) < 0) {
		cx_count(dev, CX_CTR_DC_STALE, 1);
		return;
	}
	if (!r)
		r = cx_initiator_new(dct, key);
	/* the same connection asked again gets the same answer, no new start */
	if (r->conn != p->conn) {
		cx_resp_reset(dev, r);
		r->conn = p->conn;
		r->epsn = p->psn;
		r->have_rwqe = false;
		cx_count(dev, CX_CTR_DC_ACCEPTED, 1);
		cx_qcounter_add(dev, CX_DCT_GET(dct, counter_set_id), CX_QC_RX_DCT_CONNECT);
	}
	memcpy(r->dst, f->src, 6);
	memcpy(r->src, f->dst, 6);
	memcpy(r->sgid, p->dgid, 16);
	memcpy(r->dgid, p->sgid, 16);
	r->l3 = p->l3;
	r->peer_qpn = p->sqpn;
	r->mtu_in = 128u << CX_DCT_GET(dct, mtu);
	r->mtu = MIN(CLAMP(p->len, 256, 4096), r->mtu_in);
	cx_dct_reply(dev, f, p, CX_PKT_DC_ACCEPT, 0);
}

/* ---- draining */

static gboolean cx_initiator_is_idle(gpointer key, gpointer value, gpointer opaque)
{
	struct cx_responder *r = value;
	bool force = *(bool *)opaque;

	if (!force && (r->msg_op || !QTAILQ_EMPTY(&r->jobs)))
		return FALSE;
	cx_initiator_free(r->dct, r);
	return TRUE;
}

static void cx_dct_drain_step(struct cx_dct *dct, bool force)
{
	if (dct->state != CX_DCT_DRAINING)
		return;
	g_hash_table_foreach_remove(dct->initiators, cx_initiator_is_idle, &force);
	if (g_hash_table_size(dct->initiators))
		return;
	dct->state = CX_DCT_DRAINED;
	timer_del(dct->drain);
	cx_event_dct(dct->dev, CX_EV_DCT_DRAINED, dct->obj.id);
}

static void cx_dct_drain_timer(void *opaque)
{
	struct cx_dct *dct = opaque;
	bool first = g_hash_table_size(dct->initiators);

	cx_dct_drain_step(dct, first);
	cx_dev_kick(dct->dev);
}

int cx_cmd_drain_dct(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 dctn = CX_GET(drain_dct_in, cmd->in, dctn);
	struct cx_dct *dct = cx_dct_find(dev, dctn);

	if (!dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "DCT 0x%x does not exist", dctn);
	if (dct->state != CX_DCT_ACTIVE)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES_STATE, "DCT 0x%x is drained already",
				 dctn);
	dct->state = CX_DCT_DRAINING;
	timer_mod(dct->drain, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + CX_DRAIN_MS);
	cx_dct_drain_step(dct, false);
	return 0;
}

/* ---- packets */

static void cx_dct_request(struct cx_dev *dev, struct cx_dct *dct, const struct cx_frame *f,
			   const struct cx_pkt *p)
{
	u64 key = cx_initiator_key(f, p);
	struct cx_responder *r = dct ? g_hash_table_lookup(dct->initiators, &key) : NULL;

	if (!r || r->conn != p->conn) {
		if (dct || !dev->dc_silent)
			cx_dct_reply(dev, f, p, CX_PKT_DC_REJECT, CX_DC_NO_CONTEXT);
		return;
	}
	cx_resp_request(dev, r, p);
	cx_dct_drain_step(dct, false);
}

static void cx_dct_disconnect(struct cx_dct *dct, const struct cx_frame *f, const struct cx_pkt *p)
{
	u64 key = cx_initiator_key(f, p);
	struct cx_responder *r = dct ? g_hash_table_lookup(dct->initiators, &key) : NULL;

	if (!r || r->conn != p->conn)
		return;
	g_hash_table_remove(dct->initiators, &key);
	cx_initiator_free(dct, r);
	cx_dct_drain_step(dct, false);
}

void cx_dct_rx(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p)
{
	struct cx_dct *dct = cx_dct_find(dev, p->dqpn);

	if (dct && !cx_port_admits(dev, CX_DCT_GET(dct, pkey_index), p))
		return;
	switch (p->op) {
	case CX_PKT_DC_CONNECT:
		cx_dct_connect(dev, dct, f, p);
		break;
	case CX_PKT_DC_DISCONNECT:
		cx_dct_disconnect(dct, f, p);
		break;
	case CX_PKT_SEND:
	case CX_PKT_WRITE:
	case CX_PKT_READ:
	case CX_PKT_ATOMIC_CS:
	case CX_PKT_ATOMIC_FA:
		cx_dct_request(dev, dct, f, p);
		break;
	default:
		cx_count(dev, CX_CTR_RX_NO_QP, 1);
		break;
	}
}

/* ---- commands */

static gboolean cx_initiator_any(gpointer key, gpointer value, gpointer opaque)
{
	struct cx_responder *r = value;

	cx_initiator_free(r->dct, r);
	return TRUE;
}

static void cx_dct_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_dct *dct = container_of(obj, struct cx_dct, obj);

	g_hash_table_foreach_remove(dct->initiators, cx_initiator_any, NULL);
	g_hash_table_destroy(dct->initiators);
	timer_free(dct->drain);
	cx_obj_put(dct->pd);
	cx_obj_put(&dct->cq->obj);
	cx_obj_put(&dct->srq->obj);
	g_free(dct);
}

static int cx_dct_check(struct cx_dev *dev, struct cx_cmd *cmd, const u8 *c)
{
	u32 pdn = CX_GET(dctc, c, pd), cqn = CX_GET(dctc, c, cqn);
	u32 srqn = CX_GET(dctc, c, srqn_xrqn), mtu = CX_GET(dctc, c, mtu);
	u32 gid = CX_GET(dctc, c, my_addr_index);

	if (!cx_obj_find(dev, CX_SP_PD, pdn, CX_K_PD))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "PD 0x%x does not exist", pdn);
	if (!cx_cq_find(dev, cqn))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist", cqn);
	if (!cx_srq_find(dev, srqn))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "SRQ 0x%x does not exist", srqn);
	if (mtu < 1 || mtu > 5)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "mtu %u", mtu);
	if (CX_GET(dctc, c, port) != 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "port %u", CX_GET(dctc, c, port));
	if (dev->eth && (gid >= CX_ROCE_ENTRIES || !dev->gid[gid].valid))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "GID index %u is empty", gid);
	return 0;
}

int cx_cmd_create_dct(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_dct_in, cmd->in, dct_context_entry);
	struct cx_dct *dct;

	if (!dev->prop.dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_OP, "the adapter has no DC");
	if (cx_dct_check(dev, cmd, c))
		return -1;
	dct = g_new0(struct cx_dct, 1);
	dct->dev = dev;
	dct->pd = cx_obj_find(dev, CX_SP_PD, CX_GET(dctc, c, pd), CX_K_PD);
	dct->cq = cx_cq_find(dev, CX_GET(dctc, c, cqn));
	dct->srq = cx_srq_find(dev, CX_GET(dctc, c, srqn_xrqn));
	dct->user_index = CX_GET(dctc, c, user_index);
	dct->key = CX_GET64(dctc, c, dc_access_key);
	memcpy(dct->dctc, c, MIN(sizeof(dct->dctc), CX_SZ(dctc)));
	dct->initiators = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	dct->drain = timer_new_ms(QEMU_CLOCK_VIRTUAL, cx_dct_drain_timer, dct);
	dct->obj.release = cx_dct_release;
	cx_obj_get(dct->pd);
	cx_obj_get(&dct->cq->obj);
	cx_obj_get(&dct->srq->obj);
	if (cx_obj_add(dev, CX_SP_QUEUE, CX_K_DCT, &dct->obj)) {
		cx_dct_release(dev, &dct->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free DCT");
	}
	CX_SET(create_dct_out, cmd->out, dctn, dct->obj.id);
	return 0;
}

int cx_cmd_destroy_dct(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 dctn = CX_GET(destroy_dct_in, cmd->in, dctn);
	struct cx_dct *dct = cx_dct_find(dev, dctn);

	if (!dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "DCT 0x%x does not exist", dctn);
	if (dct->state != CX_DCT_DRAINED)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES_STATE, "DCT 0x%x is not drained", dctn);
	cx_obj_del(dev, &dct->obj);
	return 0;
}

int cx_cmd_query_dct(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 dctn = CX_GET(query_dct_in, cmd->in, dctn);
	struct cx_dct *dct = cx_dct_find(dev, dctn);
	u8 *c = CX_ADDR(query_dct_out, cmd->out, dct_context_entry);

	if (!dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "DCT 0x%x does not exist", dctn);
	memcpy(c, dct->dctc, MIN(sizeof(dct->dctc), CX_SZ(dctc)));
	CX_SET(dctc, c, state, dct->state);
	CX_SET(dctc, c, dc_access_key_violation_count, dct->key_violations);
	return 0;
}

int cx_cmd_arm_dct(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 dctn = CX_GET(arm_dct_in, cmd->in, dct_number);
	struct cx_dct *dct = cx_dct_find(dev, dctn);

	if (!dct)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "DCT 0x%x does not exist", dctn);
	dct->key_armed = true;
	return 0;
}
