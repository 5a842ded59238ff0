// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: event queues. An entry is written with its ownership bit last; the
 * interrupt is sent only when the driver has armed the queue, and arming a
 * queue with entries not consumed sends it at once.
 * Runs under QEMU's big lock.
 */
#include "dev.h"
#include "hw/pci/msix.h"

#define CX_EQE_BYTES 64

struct cx_eq *cx_eq_find(struct cx_dev *dev, u32 eqn)
{
	return cx_obj_find(dev, CX_SP_EQ, eqn, CX_K_EQ);
}

static bool cx_eq_wants(const struct cx_eq *eq, u8 type)
{
	return eq->events[type / 64] & 1ull << (type % 64);
}

bool cx_eq_has_command_eq(struct cx_dev *dev)
{
	struct cx_eq *eq;
	u32 pos = 0;

	while ((eq = cx_obj_next(dev, CX_SP_EQ, &pos))) {
		if (cx_eq_wants(eq, CX_EV_CMD))
			return true;
	}
	return false;
}

static void cx_eq_interrupt(struct cx_dev *dev, struct cx_eq *eq)
{
	eq->armed = false;
	cx_count(dev, CX_CTR_INTERRUPTS, 1);
	msix_notify(&dev->parent, eq->vector);
}

void cx_eq_post(struct cx_dev *dev, struct cx_eq *eq, u8 type, u8 sub, const u8 *data)
{
	u8 e[CX_EQE_BYTES] = { 0 };
	u64 off = (u64)(eq->pi & ((1u << eq->log_size) - 1)) * CX_EQE_BYTES;

	if (((eq->pi - eq->ci) & 0xffffff) >= 1u << eq->log_size) {
		if (!eq->overrun)
			cx_trace(dev, CX_TR_REFUSE, "EQ 0x%x overrun, event 0x%x lost", eq->obj.id,
				 type);
		eq->overrun = true;
		cx_count(dev, CX_CTR_EQ_OVERRUNS, 1);
		return;
	}
	e[1] = type;
	e[3] = sub;
	memcpy(e + 32, data, 28);
	e[63] = !!(eq->pi & 1u << eq->log_size);
	cx_ring_write(dev, &eq->ring, off, e, CX_EQE_BYTES - 1);
	cx_ring_write(dev, &eq->ring, off + CX_EQE_BYTES - 1, &e[63], 1);
	eq->pi++;
	if (eq->armed)
		cx_eq_interrupt(dev, eq);
}

void cx_eq_doorbell(struct cx_dev *dev, u32 uar, u32 val, bool arm)
{
	struct cx_eq *eq = cx_eq_find(dev, val >> 24);

	if (!eq || eq->uar != uar) {
		cx_count(dev, CX_CTR_DB_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "EQ doorbell 0x%08x on UAR 0x%x", val, uar);
		return;
	}
	eq->ci = val & 0xffffff;
	if (!arm)
		return;
	eq->armed = true;
	if ((eq->pi & 0xffffff) != eq->ci)
		cx_eq_interrupt(dev, eq);
}

static void cx_eq_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_eq *eq = container_of(obj, struct cx_eq, obj);

	cx_ring_free(&eq->ring);
	g_free(eq);
}

int cx_cmd_create_eq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_eq_in, cmd->in, eq_context_entry);
	u32 pas_off = CX_OFF(create_eq_in, pas) / 8, i;
	u32 log_size = CX_GET(eqc, c, log_eq_size), uarn = CX_GET(eqc, c, uar_page);
	struct cx_eq *eq;

	if (!cx_obj_find(dev, CX_SP_UAR, uarn, CX_K_UAR))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "UAR 0x%x does not exist", uarn);
	if (CX_GET(eqc, c, intr) >= cx_dev_vectors(dev))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "interrupt vector %u",
				 CX_GET(eqc, c, intr));
	if (log_size > 22 || CX_GET(eqc, c, page_offset))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "EQ size or page offset");
	eq = g_new0(struct cx_eq, 1);
	eq->log_size = log_size;
	eq->vector = CX_GET(eqc, c, intr);
	eq->page_shift = CX_GET(eqc, c, log_page_size) + 12;
	for (i = 0; i < 4; i++)
		eq->events[i] = ldq_be_p(CX_ADDR(create_eq_in, cmd->in, event_bitmask) + 8 * i);
	if (cx_ring_init(&eq->ring, eq->page_shift, 0, (u64)CX_EQE_BYTES << log_size,
			 cmd->in + pas_off, cmd->inlen - pas_off)) {
		g_free(eq);
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page list too short or not aligned");
	}
	eq->uar = uarn;
	eq->obj.release = cx_eq_release;
	if (cx_obj_add(dev, CX_SP_EQ, CX_K_EQ, &eq->obj)) {
		cx_eq_release(dev, &eq->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free EQ");
	}
	CX_SET(create_eq_out, cmd->out, eq_number, eq->obj.id);
	return 0;
}

int cx_cmd_destroy_eq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 eqn = CX_GET(destroy_eq_in, cmd->in, eq_number);
	struct cx_eq *eq = cx_eq_find(dev, eqn);

	if (!eq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "EQ 0x%x does not exist", eqn);
	if (eq->obj.refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "EQ 0x%x has %u users", eqn, eq->obj.refs);
	cx_obj_del(dev, &eq->obj);
	return 0;
}

int cx_cmd_query_eq(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 eqn = CX_GET(query_eq_in, cmd->in, eq_number);
	struct cx_eq *eq = cx_eq_find(dev, eqn);
	u8 *c = CX_ADDR(query_eq_out, cmd->out, eq_context_entry);

	if (!eq)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "EQ 0x%x does not exist", eqn);
	CX_SET(eqc, c, log_eq_size, eq->log_size);
	CX_SET(eqc, c, uar_page, eq->uar);
	CX_SET(eqc, c, intr, eq->vector);
	CX_SET(eqc, c, log_page_size, eq->page_shift - 12);
	CX_SET(eqc, c, consumer_counter, eq->ci);
	CX_SET(eqc, c, producer_counter, eq->pi & 0xffffff);
	CX_SET(eqc, c, st, eq->armed ? 0x9 : 0xa);
	CX_SET(eqc, c, status, eq->overrun ? 0xa : 0);
	CX_SET64(query_eq_out, cmd->out, event_bitmask, eq->events[0]);
	return 0;
}
