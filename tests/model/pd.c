// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the objects that are only a number: protection domains, UAR pages,
 * XRC domains, transport domains, PSVs and queue counters.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

static const struct cx_simple {
	u16 alloc;
	u16 dealloc;
	enum cx_space space;
	enum cx_kind kind;
} cx_simples[] = {
	{ MLX5_CMD_OP_ALLOC_PD, MLX5_CMD_OP_DEALLOC_PD, CX_SP_PD, CX_K_PD },
	{ MLX5_CMD_OP_ALLOC_UAR, MLX5_CMD_OP_DEALLOC_UAR, CX_SP_UAR, CX_K_UAR },
	{ MLX5_CMD_OP_ALLOC_XRCD, MLX5_CMD_OP_DEALLOC_XRCD, CX_SP_XRCD, CX_K_XRCD },
	{ MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN, MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, CX_SP_TD,
	  CX_K_TD },
	{ MLX5_CMD_OP_CREATE_PSV, MLX5_CMD_OP_DESTROY_PSV, CX_SP_PSV, CX_K_PSV },
};

static const struct cx_simple *cx_simple_find(u16 opcode)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cx_simples); i++) {
		if (cx_simples[i].alloc == opcode || cx_simples[i].dealloc == opcode)
			return &cx_simples[i];
	}
	g_assert_not_reached();
}

static void cx_simple_release(struct cx_dev *dev, struct cx_obj *obj)
{
	g_free(obj);
}

int cx_cmd_alloc_simple(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const struct cx_simple *s = cx_simple_find(cmd->opcode);
	bool page = s->kind == CX_K_UAR;
	struct cx_obj *obj = page ? cx_uar_new() : g_new0(struct cx_obj, 1);

	if (!page)
		obj->release = cx_simple_release;
	if (cx_obj_add(dev, s->space, s->kind, obj)) {
		obj->release(dev, obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free %s", cx_kind_name(s->kind));
	}
	/* all of them return their number in the low 24 bits of the third word */
	stl_be_p(cmd->out + 8, obj->id);
	return 0;
}

int cx_cmd_dealloc_simple(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const struct cx_simple *s = cx_simple_find(cmd->opcode);
	u32 id = ldl_be_p(cmd->in + 8) & 0xffffff;
	struct cx_obj *obj = cx_obj_find(dev, s->space, id, s->kind);

	if (!obj)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "%s 0x%x does not exist",
				 cx_kind_name(s->kind), id);
	if (obj->refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "%s 0x%x has %u users",
				 cx_kind_name(s->kind), id, obj->refs);
	cx_obj_del(dev, obj);
	return 0;
}

struct cx_qcounter {
	struct cx_obj obj;
	u32 val[CX_NR_QC];
};

static void cx_qcounter_release(struct cx_dev *dev, struct cx_obj *obj)
{
	g_free(container_of(obj, struct cx_qcounter, obj));
}

void cx_qcounter_add(struct cx_dev *dev, u32 set, enum cx_qc what)
{
	struct cx_qcounter *qc = cx_obj_find(dev, CX_SP_QCOUNTER, set, CX_K_QCOUNTER);

	if (qc)
		qc->val[what]++;
}

int cx_cmd_alloc_q_counter(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_qcounter *qc = g_new0(struct cx_qcounter, 1);

	qc->obj.release = cx_qcounter_release;
	if (cx_obj_add(dev, CX_SP_QCOUNTER, CX_K_QCOUNTER, &qc->obj)) {
		g_free(qc);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free counter set");
	}
	CX_SET(alloc_q_counter_out, cmd->out, counter_set_id, qc->obj.id);
	return 0;
}

int cx_cmd_dealloc_q_counter(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(dealloc_q_counter_in, cmd->in, counter_set_id);
	struct cx_obj *obj = cx_obj_find(dev, CX_SP_QCOUNTER, id, CX_K_QCOUNTER);

	if (!obj)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "counter set %u does not exist", id);
	cx_obj_del(dev, obj);
	return 0;
}

int cx_cmd_query_q_counter(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(query_q_counter_in, cmd->in, counter_set_id);
	struct cx_qcounter *qc = cx_obj_find(dev, CX_SP_QCOUNTER, id, CX_K_QCOUNTER);
	u8 *out = cmd->out;

	if (!qc)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "counter set %u does not exist", id);
	CX_SET(query_q_counter_out, out, rx_write_requests, qc->val[CX_QC_RX_WRITE]);
	CX_SET(query_q_counter_out, out, rx_read_requests, qc->val[CX_QC_RX_READ]);
	CX_SET(query_q_counter_out, out, rx_atomic_requests, qc->val[CX_QC_RX_ATOMIC]);
	CX_SET(query_q_counter_out, out, rx_dct_connect, qc->val[CX_QC_RX_DCT_CONNECT]);
	CX_SET(query_q_counter_out, out, out_of_buffer, qc->val[CX_QC_OUT_OF_BUFFER]);
	CX_SET(query_q_counter_out, out, out_of_sequence, qc->val[CX_QC_OUT_OF_SEQUENCE]);
	CX_SET(query_q_counter_out, out, duplicate_request, qc->val[CX_QC_DUPLICATE]);
	CX_SET(query_q_counter_out, out, packet_seq_err, qc->val[CX_QC_PACKET_SEQ]);
	CX_SET(query_q_counter_out, out, local_ack_timeout_err, qc->val[CX_QC_ACK_TIMEOUT]);
	if (CX_GET(query_q_counter_in, cmd->in, clear))
		memset(qc->val, 0, sizeof(qc->val));
	return 0;
}
