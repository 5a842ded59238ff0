// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: shared receive queues. Their entries form a list: the entry just taken
 * names the next one. When fewer entries than the limit are left the driver is
 * told once. Entries can be forgotten on request, as a fault.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_WQ_LINKED 0x0
#define CX_WQ_CYCLIC 0x1

struct cx_srq *cx_srq_find(struct cx_dev *dev, u32 srqn)
{
	return cx_obj_find(dev, CX_SP_SRQ, srqn, 0);
}

static u16 cx_srq_posted(struct cx_dev *dev, const struct cx_srq *srq)
{
	return cx_wq_pi(dev, &srq->wq) - srq->wq.ci;
}

bool cx_srq_pop(struct cx_dev *dev, struct cx_srq *srq, struct cx_rwqe *r)
{
	if (!cx_rq_pop(dev, &srq->wq, r))
		return false;
	if (srq->limit && cx_srq_posted(dev, srq) < srq->limit) {
		srq->limit = 0;
		cx_event_queue(dev, CX_EV_SRQ_LIMIT, CX_EQT_RQ, srq->obj.id);
	}
	return true;
}

int cx_srq_drop(struct cx_dev *dev, u32 nr)
{
	struct cx_srq *most = NULL;
	struct cx_obj *obj;
	struct cx_rwqe r;
	u32 pos = 0, i;

	while ((obj = cx_obj_next(dev, CX_SP_SRQ, &pos))) {
		struct cx_srq *srq = container_of(obj, struct cx_srq, obj);

		if (!most || cx_srq_posted(dev, srq) > cx_srq_posted(dev, most))
			most = srq;
	}
	if (!most || cx_srq_posted(dev, most) < nr)
		return -ENOENT;
	for (i = 0; i < nr; i++)
		cx_rq_pop(dev, &most->wq, &r);
	cx_count(dev, CX_CTR_FAULT_RECEIVES, nr);
	cx_trace(dev, CX_TR_FAULT, "SRQ 0x%x forgets %u receive requests", most->obj.id, nr);
	return 0;
}

static void cx_srq_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_srq *srq = container_of(obj, struct cx_srq, obj);

	if (srq->pd)
		cx_obj_put(srq->pd);
	if (srq->xrcd)
		cx_obj_put(srq->xrcd);
	if (srq->cq)
		cx_obj_put(&srq->cq->obj);
	cx_ring_free(&srq->ring);
	g_free(srq);
}

int cx_wq_init(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_wq *wq, struct cx_ring *ring,
	       const u8 *ctx, u32 dbr_off)
{
	const u8 *pas = CX_ADDR(wq, ctx, pas);
	u32 page_shift = CX_GET(wq, ctx, log_wq_pg_sz) + 12;
	u32 pdn = CX_GET(wq, ctx, pd), type = CX_GET(wq, ctx, wq_type);
	u64 dbr = CX_GET64(wq, ctx, dbr_addr);

	if (type != CX_WQ_LINKED && type != CX_WQ_CYCLIC)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "work queue type %u", type);
	/* the netdev's queue for frames to be dropped has no PD and no entries */
	if (pdn && !cx_obj_find(dev, CX_SP_PD, pdn, CX_K_PD))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "PD 0x%x does not exist", pdn);
	if (dbr & 7)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "doorbell record is not aligned");
	*wq = (struct cx_wq){
		.ring = ring,
		.dbr = dbr + dbr_off,
		.log_size = CX_GET(wq, ctx, log_wq_sz),
		.log_stride = CX_GET(wq, ctx, log_wq_stride),
		.pdn = pdn,
		.linked = type == CX_WQ_LINKED,
		.signature = CX_GET(wq, ctx, wq_signature),
	};
	if (wq->log_size > 15 || wq->log_stride > 10)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_wq_sz %u log_wq_stride %u",
				 wq->log_size, wq->log_stride);
	if (cx_ring_init(ring, page_shift, CX_GET(wq, ctx, page_offset),
			 1ull << (wq->log_size + wq->log_stride), pas, cmd->in + cmd->inlen - pas))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page list too short or not aligned");
	return 0;
}

static int cx_srq_publish(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_srq *srq,
			  enum cx_kind kind)
{
	srq->obj.release = cx_srq_release;
	if (cx_obj_add(dev, CX_SP_SRQ, kind, &srq->obj)) {
		cx_srq_release(dev, &srq->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free SRQ");
	}
	stl_be_p(cmd->out + 8, srq->obj.id);
	return 0;
}

int cx_cmd_create_rmp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_rmp_in, cmd->in, ctx);
	struct cx_srq *srq;

	if (CX_GET(rmpc, c, state) != 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "state %u", CX_GET(rmpc, c, state));
	srq = g_new0(struct cx_srq, 1);
	if (cx_wq_init(dev, cmd, &srq->wq, &srq->ring, CX_ADDR(rmpc, c, wq), 0)) {
		cx_srq_release(dev, &srq->obj);
		return -1;
	}
	if (srq->wq.log_size > dev->prop.log_max_srq_sz) {
		cx_refuse(dev, cmd, CX_ST_LIMIT, "log_wq_sz %u", srq->wq.log_size);
		cx_srq_release(dev, &srq->obj);
		return -1;
	}
	srq->pd = cx_obj_find(dev, CX_SP_PD, srq->wq.pdn, CX_K_PD);
	if (!srq->pd) {
		cx_srq_release(dev, &srq->obj);
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "RMP without a PD");
	}
	cx_obj_get(srq->pd);
	srq->limit = CX_GET(wq, CX_ADDR(rmpc, c, wq), lwm);
	memcpy(srq->ctx, c, MIN(sizeof(srq->ctx), CX_SZ(rmpc)));
	return cx_srq_publish(dev, cmd, srq, CX_K_RMP);
}

static int cx_xrc_srq_queue(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_srq *srq, const u8 *c)
{
	const u8 *pas = CX_ADDR(create_xrc_srq_in, cmd->in, pas);
	u32 page_shift = CX_GET(xrc_srqc, c, log_page_size) + 12;

	srq->wq = (struct cx_wq){
		.ring = &srq->ring,
		.dbr = (u64)CX_GET(xrc_srqc, c, db_record_addr_h) << 32 |
		       (u64)CX_GET(xrc_srqc, c, db_record_addr_l) << 2,
		.log_size = CX_GET(xrc_srqc, c, log_xrc_srq_size),
		.log_stride = CX_GET(xrc_srqc, c, log_rq_stride) + 4,
		.pdn = CX_GET(xrc_srqc, c, pd),
		.linked = true,
	};
	if (srq->wq.log_size > dev->prop.log_max_srq_sz)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "log_xrc_srq_size %u", srq->wq.log_size);
	if (cx_ring_init(&srq->ring, page_shift, CX_GET(xrc_srqc, c, page_offset),
			 1ull << (srq->wq.log_size + srq->wq.log_stride), pas,
			 cmd->in + cmd->inlen - pas))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page list too short or not aligned");
	return 0;
}

int cx_cmd_create_xrc_srq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_xrc_srq_in, cmd->in, xrc_srq_context_entry);
	u32 pdn = CX_GET(xrc_srqc, c, pd), xrcdn = CX_GET(xrc_srqc, c, xrcd);
	struct cx_obj *pd = cx_obj_find(dev, CX_SP_PD, pdn, CX_K_PD);
	struct cx_obj *xrcd = cx_obj_find(dev, CX_SP_XRCD, xrcdn, CX_K_XRCD);
	struct cx_cq *cq = cx_cq_find(dev, CX_GET(xrc_srqc, c, cqn));
	struct cx_srq *srq;

	if (!pd)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "PD 0x%x does not exist", pdn);
	if (!xrcd)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "XRCD 0x%x does not exist", xrcdn);
	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist",
				 CX_GET(xrc_srqc, c, cqn));
	srq = g_new0(struct cx_srq, 1);
	if (cx_xrc_srq_queue(dev, cmd, srq, c)) {
		cx_srq_release(dev, &srq->obj);
		return -1;
	}
	srq->pd = pd;
	srq->xrcd = xrcd;
	srq->cq = cq;
	cx_obj_get(pd);
	cx_obj_get(xrcd);
	cx_obj_get(&cq->obj);
	srq->limit = CX_GET(xrc_srqc, c, lwm);
	memcpy(srq->ctx, c, MIN(sizeof(srq->ctx), CX_SZ(xrc_srqc)));
	if (cx_srq_publish(dev, cmd, srq, CX_K_XRC_SRQ))
		return -1;
	srq->user_index = CX_GET(xrc_srqc, c, user_index_equal_xrc_srqn)
				  ? srq->obj.id
				  : CX_GET(xrc_srqc, c, user_index);
	return 0;
}

static struct cx_srq *cx_srq_of(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 srqn = ldl_be_p(cmd->in + 8) & 0xffffff;
	struct cx_srq *srq = cx_srq_find(dev, srqn);

	if (!srq)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "SRQ 0x%x does not exist", srqn);
	return srq;
}

int cx_cmd_destroy_srq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_srq *srq = cx_srq_of(dev, cmd);

	if (!srq)
		return -1;
	if (srq->obj.refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "SRQ 0x%x has %u users", srq->obj.id,
				 srq->obj.refs);
	cx_obj_del(dev, &srq->obj);
	return 0;
}

int cx_cmd_query_srq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_srq *srq = cx_srq_of(dev, cmd);
	u8 *c;

	if (!srq)
		return -1;
	if (srq->obj.kind == CX_K_RMP) {
		c = CX_ADDR(query_rmp_out, cmd->out, rmp_context);
		memcpy(c, srq->ctx, MIN(sizeof(srq->ctx), CX_SZ(rmpc)));
		CX_SET(wq, CX_ADDR(rmpc, c, wq), lwm, srq->limit);
	} else {
		c = CX_ADDR(query_xrc_srq_out, cmd->out, xrc_srq_context_entry);
		memcpy(c, srq->ctx, MIN(sizeof(srq->ctx), CX_SZ(xrc_srqc)));
		CX_SET(xrc_srqc, c, lwm, srq->limit);
	}
	return 0;
}

int cx_cmd_arm_srq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_srq *srq = cx_srq_of(dev, cmd);

	if (!srq)
		return -1;
	srq->limit = CX_GET(arm_xrc_srq_in, cmd->in, lwm);
	return 0;
}

int cx_cmd_modify_rmp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(modify_rmp_in, cmd->in, ctx);
	struct cx_srq *srq = cx_srq_of(dev, cmd);

	if (!srq)
		return -1;
	if (CX_GET(rmp_bitmask, CX_ADDR(modify_rmp_in, cmd->in, bitmask), lwm))
		srq->limit = CX_GET(wq, CX_ADDR(rmpc, c, wq), lwm);
	return 0;
}
