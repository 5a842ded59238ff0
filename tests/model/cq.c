// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: completion queues. A consumer may arm before or after it polls, so a
 * notification on arming is sent only if completions came since the last one
 * (the context's "last notified index"). Overrun moves the queue to the error
 * state and raises CQ_ERROR. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_CQ_DB_SOLICITED (1u << 24)
#define CX_CQ_ERR_OVERRUN 0x1

struct cx_cq *cx_cq_find(struct cx_dev *dev, u32 cqn)
{
	return cx_obj_find(dev, CX_SP_CQ, cqn, CX_K_CQ);
}

static void cx_cq_notify(struct cx_dev *dev, struct cx_cq *cq)
{
	cq->armed = false;
	cq->notified_pi = cq->pi;
	cq->held = 0;
	timer_del(cq->timer);
	cx_event_comp(dev, cq->eq, cq->obj.id);
}

static void cx_cq_period_over(void *opaque)
{
	struct cx_cq *cq = opaque;

	if (cq->armed && cq->held)
		cx_cq_notify(cq->dev, cq);
}

/* a completion came while the queue is armed */
static void cx_cq_moderate(struct cx_dev *dev, struct cx_cq *cq)
{
	cq->held++;
	if (cq->max_count <= 1 || !cq->period_us || cq->held >= cq->max_count)
		cx_cq_notify(dev, cq);
	else if (!timer_pending(cq->timer))
		timer_mod(cq->timer, qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + cq->period_us);
}

static void cx_cqe_fill(u8 *e, const struct cx_cqe *x)
{
	bool error = x->op == CX_CQE_REQ_ERR || x->op == CX_CQE_RESP_ERR;

	stl_be_p(e + 0x0c, x->rss_hash);
	e[0x10] = x->rss_type;
	e[0x11] = x->ml_path;
	stw_be_p(e + 0x14, x->check_sum);
	stw_be_p(e + 0x16, x->slid);
	stl_be_p(e + 0x18, x->flags_rqpn);
	e[0x1c] = x->hdr_ok;
	e[0x1d] = x->hdr_type;
	stw_be_p(e + 0x1e, x->vlan_info);
	stl_be_p(e + 0x20, x->user_index & 0xffffff);
	stl_be_p(e + 0x24, x->imm);
	stl_be_p(e + 0x2c, x->bytes);
	if (error)
		e[0x37] = x->syndrome;
	else
		stq_be_p(e + 0x30, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
	/* libmlx5 and mlx5_ib take the kind of a send completion from here */
	stl_be_p(e + 0x38, (u32)x->wqe_opcode << 24 | x->qpn);
	stw_be_p(e + 0x3c, x->wqe_counter);
}

static bool cx_cq_full(struct cx_dev *dev, struct cx_cq *cq)
{
	u32 ci = cx_dma_read_be32(dev, cq->dbr) & 0xffffff;

	return ((cq->pi - ci) & 0xffffff) >= 1u << cq->log_size;
}

void cx_cq_write(struct cx_dev *dev, struct cx_cq *cq, const struct cx_cqe *x)
{
	u64 at = (u64)(cq->pi & ((1u << cq->log_size) - 1)) * cq->cqe_bytes + cq->cqe_bytes - 64;
	bool urgent = x->solicited || x->op >= CX_CQE_REQ_ERR;
	u8 e[64] = { 0 };

	if (cq->in_error)
		return;
	if (!cq->overrun_ignore && cx_cq_full(dev, cq)) {
		cq->in_error = true;
		cx_count(dev, CX_CTR_CQ_OVERRUNS, 1);
		cx_event_cq_error(dev, cq->obj.id, CX_CQ_ERR_OVERRUN);
		return;
	}
	cx_cqe_fill(e, x);
	e[0x3f] = x->op << 4 | !!(cq->pi & 1u << cq->log_size);
	cx_ring_write(dev, &cq->ring, at, e, 63);
	cx_ring_write(dev, &cq->ring, at + 63, &e[63], 1);
	cq->pi++;
	if (urgent)
		cq->solicited_pi = cq->pi;
	cx_count(dev, CX_CTR_CQES, 1);
	if (x->op >= CX_CQE_REQ_ERR)
		cx_count(dev, CX_CTR_CQES_ERROR, 1);
	cx_trace(dev, CX_TR_CQE, "cq=0x%x op=%u qpn=0x%x wqe=%u wqe_op=%s bytes=%u syndrome=0x%x",
		 cq->obj.id, x->op, x->qpn, x->wqe_counter, cx_wqe_opname(x->wqe_opcode), x->bytes,
		 x->syndrome);
	if (cq->armed && (!cq->armed_solicited || urgent))
		cx_cq_moderate(dev, cq);
}

void cx_cq_doorbell(struct cx_dev *dev, u32 uar, u64 val)
{
	struct cx_cq *cq = cx_cq_find(dev, val & 0xffffff);
	u32 ci = val >> 32 & 0xffffff;
	bool pending;

	if (!cq || cq->uar != uar) {
		cx_count(dev, CX_CTR_DB_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "CQ doorbell 0x%" PRIx64 " on UAR 0x%x", val, uar);
		return;
	}
	cq->armed = true;
	cq->armed_solicited = val >> 32 & CX_CQ_DB_SOLICITED;
	if (cq->armed_solicited)
		pending = cx_psn_diff(cq->solicited_pi, ci) > 0;
	else
		pending = (cq->pi & 0xffffff) != ci;
	if (pending && cq->notified_pi != cq->pi)
		cx_cq_notify(dev, cq);
}

static void cx_cq_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_cq *cq = container_of(obj, struct cx_cq, obj);

	timer_free(cq->timer);
	cx_obj_put(&cq->eq->obj);
	cx_ring_free(&cq->ring);
	g_free(cq);
}

static int cx_cq_ring(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_cq *cq, const u8 *c)
{
	u32 pas_off = CX_OFF(create_cq_in, pas) / 8;
	u32 page_shift = CX_GET(cqc, c, log_page_size) + 12;
	u32 log_size = CX_GET(cqc, c, log_cq_size), cqe_sz = CX_GET(cqc, c, cqe_sz);
	struct cx_ring ring;

	if (log_size > 22 || cqe_sz > 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_cq_size %u cqe_sz %u", log_size,
				 cqe_sz);
	if (cx_ring_init(&ring, page_shift, CX_GET(cqc, c, page_offset),
			 (u64)(64 << cqe_sz) << log_size, cmd->in + pas_off, cmd->inlen - pas_off))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page list too short or not aligned");
	cx_ring_free(&cq->ring);
	cq->ring = ring;
	cq->page_shift = page_shift;
	cq->log_size = log_size;
	cq->cqe_bytes = 64 << cqe_sz;
	return 0;
}

int cx_cmd_create_cq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_cq_in, cmd->in, cq_context);
	u32 eqn = CX_GET(cqc, c, c_eqn_or_apu_element), uarn = CX_GET(cqc, c, uar_page);
	struct cx_eq *eq = cx_eq_find(dev, eqn);
	struct cx_cq *cq;

	if (!cx_obj_find(dev, CX_SP_UAR, uarn, CX_K_UAR))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "UAR 0x%x does not exist", uarn);
	if (!eq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "EQ 0x%x does not exist", eqn);
	if (CX_GET64(cqc, c, dbr_addr) & 7)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "doorbell record is not aligned");
	cq = g_new0(struct cx_cq, 1);
	if (cx_cq_ring(dev, cmd, cq, c)) {
		g_free(cq);
		return -1;
	}
	cq->dev = dev;
	cq->eq = eq;
	cq->uar = uarn;
	cq->dbr = CX_GET64(cqc, c, dbr_addr);
	cq->overrun_ignore = CX_GET(cqc, c, oi);
	cq->max_count = CX_GET(cqc, c, cq_max_count);
	cq->period_us = CX_GET(cqc, c, cq_period);
	cq->timer = timer_new_us(QEMU_CLOCK_VIRTUAL, cx_cq_period_over, cq);
	cq->obj.release = cx_cq_release;
	cx_obj_get(&eq->obj);
	if (cx_obj_add(dev, CX_SP_CQ, CX_K_CQ, &cq->obj)) {
		cx_cq_release(dev, &cq->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free CQ");
	}
	CX_SET(create_cq_out, cmd->out, cqn, cq->obj.id);
	return 0;
}

int cx_cmd_destroy_cq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 cqn = CX_GET(destroy_cq_in, cmd->in, cqn);
	struct cx_cq *cq = cx_cq_find(dev, cqn);

	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist", cqn);
	if (cq->obj.refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "CQ 0x%x has %u users", cqn, cq->obj.refs);
	cx_obj_del(dev, &cq->obj);
	return 0;
}

int cx_cmd_query_cq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 cqn = CX_GET(query_cq_in, cmd->in, cqn);
	struct cx_cq *cq = cx_cq_find(dev, cqn);
	u8 *c = CX_ADDR(query_cq_out, cmd->out, cq_context);

	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist", cqn);
	CX_SET(cqc, c, status, cq->in_error ? 0xa : 0);
	CX_SET(cqc, c, st, !cq->armed ? 0xa : cq->armed_solicited ? 0x6 : 0x9);
	CX_SET(cqc, c, cqe_sz, cq->cqe_bytes == 128);
	CX_SET(cqc, c, oi, cq->overrun_ignore);
	CX_SET(cqc, c, log_cq_size, cq->log_size);
	CX_SET(cqc, c, uar_page, cq->uar);
	CX_SET(cqc, c, cq_period, cq->period_us);
	CX_SET(cqc, c, cq_max_count, cq->max_count);
	CX_SET(cqc, c, c_eqn_or_apu_element, cq->eq->obj.id);
	CX_SET(cqc, c, log_page_size, cq->page_shift - 12);
	CX_SET(cqc, c, last_notified_index, cq->notified_pi);
	CX_SET(cqc, c, last_solicit_index, cq->solicited_pi);
	CX_SET(cqc, c, consumer_counter, cx_dma_read_be32(dev, cq->dbr) & 0xffffff);
	CX_SET(cqc, c, producer_counter, cq->pi);
	CX_SET64(cqc, c, dbr_addr, cq->dbr);
	return 0;
}

/* the last entry of the old buffer says that the rest is in the new one */
static int cx_cq_resize(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_cq *cq, const u8 *c)
{
	u64 at = (u64)(cq->pi & ((1u << cq->log_size) - 1)) * cq->cqe_bytes + cq->cqe_bytes - 1;
	u8 own = CX_CQE_RESIZE << 4 | !!(cq->pi & 1u << cq->log_size);
	u32 ci = cx_dma_read_be32(dev, cq->dbr) & 0xffffff, left = (cq->pi - ci) & 0xffffff;
	struct cx_ring old = cq->ring;

	if (left >= 1u << CX_GET(cqc, c, log_cq_size))
		return cx_refuse(dev, cmd, CX_ST_BAD_CQ_SIZE, "%u completions are not polled yet",
				 left);
	cq->ring.page = NULL;
	if (cx_cq_ring(dev, cmd, cq, c)) {
		cq->ring = old;
		return -1;
	}
	cx_ring_write(dev, &old, at, &own, 1);
	cx_ring_free(&old);
	cq->pi++;
	return 0;
}

int cx_cmd_modify_cq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(modify_cq_in, cmd->in, cq_context);
	u32 cqn = CX_GET(modify_cq_in, cmd->in, cqn);
	u32 select =
		ldl_be_p(CX_ADDR(modify_cq_in, cmd->in, modify_field_select_resize_field_select));
	struct cx_cq *cq = cx_cq_find(dev, cqn);

	if (!cq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "CQ 0x%x does not exist", cqn);
	if (cmd->op_mod == 1)
		return cx_cq_resize(dev, cmd, cq, c);
	if (cmd->op_mod)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "op_mod %u", cmd->op_mod);
	if (select & 1)
		cq->period_us = CX_GET(cqc, c, cq_period);
	if (select & 2)
		cq->max_count = CX_GET(cqc, c, cq_max_count);
	if (select & 4)
		cq->overrun_ignore = CX_GET(cqc, c, oi);
	return 0;
}
