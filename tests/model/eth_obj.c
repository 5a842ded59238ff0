// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: commands of the Ethernet queues and of the objects that lead to them:
 * SQ, RQ, TIS, RQT, TIR. Runs under QEMU's big lock.
 */
#include "dev.h"

/* ---- SQ */

static void cx_sq_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_sq *sq = container_of(obj, struct cx_sq, obj);

	if (sq->cq)
		cx_obj_put(&sq->cq->obj);
	cx_ring_free(&sq->ring);
	g_free(sq);
}

int cx_cmd_create_sq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_sq_in, cmd->in, ctx), *w = CX_ADDR(sqc, c, wq);
	struct cx_cq *cq = cx_cq_find(dev, CX_GET(sqc, c, cqn));
	u32 uar = CX_GET(wq, w, uar_page);
	struct cx_tis *tis = NULL;
	struct cx_sq *sq;

	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist",
				 CX_GET(sqc, c, cqn));
	if (!cx_obj_find(dev, CX_SP_UAR, uar, CX_K_UAR))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "UAR 0x%x does not exist", uar);
	if (CX_GET(sqc, c, tis_lst_sz))
		tis = cx_obj_find(dev, CX_SP_TIS, CX_GET(sqc, c, tis_num_0), CX_K_TIS);
	if (CX_GET(sqc, c, tis_lst_sz) && !tis)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "TIS 0x%x does not exist",
				 CX_GET(sqc, c, tis_num_0));
	if (CX_GET(sqc, c, state))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "born in state %u",
				 CX_GET(sqc, c, state));
	sq = g_new0(struct cx_sq, 1);
	if (cx_wq_init(dev, cmd, &sq->wq, &sq->ring, w, 4)) {
		g_free(sq);
		return -1;
	}
	sq->cq = cq;
	sq->uar = uar;
	sq->td = tis ? tis->td : 0;
	sq->user_index = CX_GET(sqc, c, user_index);
	sq->obj.release = cx_sq_release;
	cx_obj_get(&cq->obj);
	if (cx_obj_add(dev, CX_SP_QUEUE, CX_K_SQ, &sq->obj)) {
		cx_sq_release(dev, &sq->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free SQ");
	}
	CX_SET(create_sq_out, cmd->out, sqn, sq->obj.id);
	return 0;
}

static struct cx_sq *cx_sq_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 sqn = CX_GET(modify_sq_in, cmd->in, sqn);
	struct cx_sq *sq = cx_obj_find(dev, CX_SP_QUEUE, sqn, CX_K_SQ);

	if (!sq)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "SQ 0x%x does not exist", sqn);
	return sq;
}

int cx_cmd_modify_sq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_sq *sq = cx_sq_of(dev, cmd);
	u32 from = CX_GET(modify_sq_in, cmd->in, sq_state);
	u32 to = CX_GET(sqc, CX_ADDR(modify_sq_in, cmd->in, ctx), state);

	if (!sq)
		return -1;
	if (from != sq->state)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES_STATE, "SQ is in state %u, not %u",
				 sq->state, from);
	if (to != CX_ETHQ_RST && to != CX_ETHQ_RDY && to != CX_ETHQ_ERR)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "state %u", to);
	sq->state = to;
	if (to == CX_ETHQ_RST)
		sq->wq.ci = sq->pushed.bytes = 0;
	else if (to == CX_ETHQ_RDY)
		cx_sq_run(dev, sq, NULL);
	return 0;
}

int cx_cmd_destroy_sq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_sq *sq = cx_sq_of(dev, cmd);

	if (!sq)
		return -1;
	cx_obj_del(dev, &sq->obj);
	return 0;
}

int cx_cmd_query_sq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_sq *sq = cx_sq_of(dev, cmd);
	u8 *c = CX_ADDR(query_sq_out, cmd->out, sq_context);

	if (!sq)
		return -1;
	CX_SET(sqc, c, state, sq->state);
	CX_SET(sqc, c, cqn, sq->cq->obj.id);
	CX_SET(sqc, c, user_index, sq->user_index);
	return 0;
}

/* ---- RQ */

static void cx_rq_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_rq *rq = container_of(obj, struct cx_rq, obj);

	if (rq->cq)
		cx_obj_put(&rq->cq->obj);
	cx_ring_free(&rq->ring);
	g_free(rq);
}

int cx_cmd_create_rq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_rq_in, cmd->in, ctx);
	struct cx_cq *cq = cx_cq_find(dev, CX_GET(rqc, c, cqn));
	struct cx_rq *rq;

	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist",
				 CX_GET(rqc, c, cqn));
	if (CX_GET(rqc, c, mem_rq_type))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "mem_rq_type %u",
				 CX_GET(rqc, c, mem_rq_type));
	rq = g_new0(struct cx_rq, 1);
	if (cx_wq_init(dev, cmd, &rq->wq, &rq->ring, CX_ADDR(rqc, c, wq), 0)) {
		g_free(rq);
		return -1;
	}
	rq->cq = cq;
	rq->user_index = CX_GET(rqc, c, user_index);
	rq->counter_set = CX_GET(rqc, c, counter_set_id);
	rq->keep_vlan = CX_GET(rqc, c, vsd);
	rq->obj.release = cx_rq_release;
	cx_obj_get(&cq->obj);
	if (cx_obj_add(dev, CX_SP_RQ, CX_K_RQ, &rq->obj)) {
		cx_rq_release(dev, &rq->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free RQ");
	}
	CX_SET(create_rq_out, cmd->out, rqn, rq->obj.id);
	return 0;
}

static struct cx_rq *cx_rq_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 rqn = CX_GET(modify_rq_in, cmd->in, rqn);
	struct cx_rq *rq = cx_obj_find(dev, CX_SP_RQ, rqn, CX_K_RQ);

	if (!rq)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "RQ 0x%x does not exist", rqn);
	return rq;
}

#define CX_RQ_MODIFY_VSD 2
#define CX_RQ_MODIFY_COUNTER 8

int cx_cmd_modify_rq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(modify_rq_in, cmd->in, ctx);
	u64 mask = CX_GET64(modify_rq_in, cmd->in, modify_bitmask);
	struct cx_rq *rq = cx_rq_of(dev, cmd);
	u32 from = CX_GET(modify_rq_in, cmd->in, rq_state), to = CX_GET(rqc, c, state);

	if (!rq)
		return -1;
	if (from != rq->state)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES_STATE, "RQ is in state %u, not %u",
				 rq->state, from);
	if (to != CX_ETHQ_RST && to != CX_ETHQ_RDY && to != CX_ETHQ_ERR)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "state %u", to);
	rq->state = to;
	if (to == CX_ETHQ_RST)
		rq->wq.ci = rq->wq.next = 0;
	if (mask & CX_RQ_MODIFY_VSD)
		rq->keep_vlan = CX_GET(rqc, c, vsd);
	if (mask & CX_RQ_MODIFY_COUNTER)
		rq->counter_set = CX_GET(rqc, c, counter_set_id);
	return 0;
}

int cx_cmd_destroy_rq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_rq *rq = cx_rq_of(dev, cmd);

	if (!rq)
		return -1;
	cx_obj_del(dev, &rq->obj);
	return 0;
}

int cx_cmd_query_rq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_rq *rq = cx_rq_of(dev, cmd);
	u8 *c = CX_ADDR(query_rq_out, cmd->out, rq_context);

	if (!rq)
		return -1;
	CX_SET(rqc, c, state, rq->state);
	CX_SET(rqc, c, cqn, rq->cq->obj.id);
	CX_SET(rqc, c, user_index, rq->user_index);
	CX_SET(rqc, c, vsd, rq->keep_vlan);
	return 0;
}

/* ---- TIS */

static void cx_tis_release(struct cx_dev *dev, struct cx_obj *obj)
{
	g_free(container_of(obj, struct cx_tis, obj));
}

int cx_cmd_create_tis(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 td = CX_GET(tisc, CX_ADDR(create_tis_in, cmd->in, ctx), transport_domain);
	struct cx_tis *tis;

	if (!cx_obj_find(dev, CX_SP_TD, td, CX_K_TD))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "transport domain 0x%x does not exist",
				 td);
	tis = g_new0(struct cx_tis, 1);
	tis->td = td;
	tis->obj.release = cx_tis_release;
	if (cx_obj_add(dev, CX_SP_TIS, CX_K_TIS, &tis->obj)) {
		g_free(tis);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free TIS");
	}
	CX_SET(create_tis_out, cmd->out, tisn, tis->obj.id);
	return 0;
}

static struct cx_tis *cx_tis_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 tisn = CX_GET(modify_tis_in, cmd->in, tisn);
	struct cx_tis *tis = cx_obj_find(dev, CX_SP_TIS, tisn, CX_K_TIS);

	if (!tis)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "TIS 0x%x does not exist", tisn);
	return tis;
}

int cx_cmd_modify_tis(struct cx_dev *dev, struct cx_cmd *cmd)
{
	return cx_tis_of(dev, cmd) ? 0 : -1;
}

int cx_cmd_destroy_tis(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_tis *tis = cx_tis_of(dev, cmd);

	if (!tis)
		return -1;
	cx_obj_del(dev, &tis->obj);
	return 0;
}

/* ---- RQT */

static void cx_rqt_release(struct cx_dev *dev, struct cx_obj *obj)
{
	g_free(container_of(obj, struct cx_rqt, obj));
}

static int cx_rqt_fill(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_rqt *t, const u8 *c)
{
	u32 nr = CX_GET(rqtc, c, rqt_actual_size), i;
	const u8 *list = CX_ADDR(rqtc, c, rq_num);

	if (!nr || nr > ARRAY_SIZE(t->rqn) || list + 4 * nr > cmd->in + cmd->inlen)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "table of %u queues", nr);
	for (i = 0; i < nr; i++) {
		u32 rqn = ldl_be_p(list + 4 * i) & 0xffffff;

		if (!cx_obj_find(dev, CX_SP_RQ, rqn, CX_K_RQ))
			return cx_refuse(dev, cmd, CX_ST_BAD_RES, "RQ 0x%x does not exist", rqn);
	}
	for (i = 0; i < nr; i++)
		t->rqn[i] = ldl_be_p(list + 4 * i) & 0xffffff;
	t->nr = nr;
	return 0;
}

int cx_cmd_create_rqt(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_rqt *t = g_new0(struct cx_rqt, 1);

	t->obj.release = cx_rqt_release;
	if (cx_rqt_fill(dev, cmd, t, CX_ADDR(create_rqt_in, cmd->in, rqt_context)) ||
	    cx_obj_add(dev, CX_SP_RQT, CX_K_RQT, &t->obj)) {
		g_free(t);
		return cmd->status ? -1 : cx_refuse(dev, cmd, CX_ST_NO_RES, "no free RQT");
	}
	CX_SET(create_rqt_out, cmd->out, rqtn, t->obj.id);
	return 0;
}

static struct cx_rqt *cx_rqt_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 rqtn = CX_GET(modify_rqt_in, cmd->in, rqtn);
	struct cx_rqt *t = cx_obj_find(dev, CX_SP_RQT, rqtn, CX_K_RQT);

	if (!t)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "RQT 0x%x does not exist", rqtn);
	return t;
}

int cx_cmd_modify_rqt(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_rqt *t = cx_rqt_of(dev, cmd);

	if (!t)
		return -1;
	return cx_rqt_fill(dev, cmd, t, CX_ADDR(modify_rqt_in, cmd->in, ctx));
}

int cx_cmd_destroy_rqt(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_rqt *t = cx_rqt_of(dev, cmd);

	if (!t)
		return -1;
	if (t->obj.refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "RQT 0x%x has %u users", t->obj.id,
				 t->obj.refs);
	cx_obj_del(dev, &t->obj);
	return 0;
}

/* ---- TIR */

static void cx_tir_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_tir *t = container_of(obj, struct cx_tir, obj);
	struct cx_rqt *rqt = cx_obj_find(dev, CX_SP_RQT, t->rqtn, CX_K_RQT);

	if (t->indirect && rqt)
		cx_obj_put(&rqt->obj);
	g_free(t);
}

static int cx_tir_check(struct cx_dev *dev, struct cx_cmd *cmd, const u8 *c)
{
	u32 rqn = CX_GET(tirc, c, inline_rqn), rqtn = CX_GET(tirc, c, indirect_table);
	u32 td = CX_GET(tirc, c, transport_domain);

	if (!cx_obj_find(dev, CX_SP_TD, td, CX_K_TD))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "transport domain 0x%x does not exist",
				 td);
	if (CX_GET(tirc, c, disp_type) == MLX5_TIRC_DISP_TYPE_DIRECT) {
		if (!cx_obj_find(dev, CX_SP_RQ, rqn, CX_K_RQ))
			return cx_refuse(dev, cmd, CX_ST_BAD_RES, "RQ 0x%x does not exist", rqn);
	} else if (!cx_obj_find(dev, CX_SP_RQT, rqtn, CX_K_RQT)) {
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "RQT 0x%x does not exist", rqtn);
	}
	return 0;
}

int cx_cmd_create_tir(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_tir_in, cmd->in, ctx);
	struct cx_rqt *rqt;
	struct cx_tir *t;

	if (cx_tir_check(dev, cmd, c))
		return -1;
	t = g_new0(struct cx_tir, 1);
	t->inline_rqn = CX_GET(tirc, c, inline_rqn);
	t->rqtn = CX_GET(tirc, c, indirect_table);
	t->indirect = CX_GET(tirc, c, disp_type) == MLX5_TIRC_DISP_TYPE_INDIRECT;
	t->td = CX_GET(tirc, c, transport_domain);
	t->self_loopback = CX_GET(tirc, c, self_lb_block);
	t->obj.release = cx_tir_release;
	if (cx_obj_add(dev, CX_SP_TIR, CX_K_TIR, &t->obj)) {
		g_free(t);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free TIR");
	}
	rqt = cx_obj_find(dev, CX_SP_RQT, t->rqtn, CX_K_RQT);
	if (t->indirect && rqt)
		cx_obj_get(&rqt->obj);
	CX_SET(create_tir_out, cmd->out, tirn, t->obj.id);
	return 0;
}

static struct cx_tir *cx_tir_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 tirn = CX_GET(modify_tir_in, cmd->in, tirn);
	struct cx_tir *t = cx_obj_find(dev, CX_SP_TIR, tirn, CX_K_TIR);

	if (!t)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "TIR 0x%x does not exist", tirn);
	return t;
}

int cx_cmd_modify_tir(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_tir *t = cx_tir_of(dev, cmd);

	if (!t)
		return -1;
	if (CX_GET(modify_tir_bitmask, CX_ADDR(modify_tir_in, cmd->in, bitmask), self_lb_en))
		t->self_loopback =
			CX_GET(tirc, CX_ADDR(modify_tir_in, cmd->in, ctx), self_lb_block);
	return 0;
}

int cx_cmd_destroy_tir(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_tir *t = cx_tir_of(dev, cmd);

	if (!t)
		return -1;
	cx_obj_del(dev, &t->obj);
	return 0;
}
