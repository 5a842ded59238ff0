// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the state machine of queue pairs. One table says which command leads
 * from which states to which state, and what it sets without being asked; the
 * rest is set only if the optional parameter mask names it, and what a transition
 * or a service does not take there is refused. Which it takes is what mlx5_ib has
 * in its opt_mask, and the counter set that it changes while a queue is in use.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

/* bits of opt_param_mask */
enum {
	CX_OPT_ALT_PATH = 1 << 0,
	CX_OPT_RRE = 1 << 1,
	CX_OPT_RAE = 1 << 2,
	CX_OPT_RWE = 1 << 3,
	CX_OPT_PKEY = 1 << 4,
	CX_OPT_QKEY = 1 << 5,
	CX_OPT_RNR_TIMEOUT = 1 << 6,
	CX_OPT_PATH = 1 << 7,
	CX_OPT_SRA_MAX = 1 << 8,
	CX_OPT_RRA_MAX = 1 << 9,
	CX_OPT_PM_STATE = 1 << 10,
	CX_OPT_RETRY = 1 << 12,
	CX_OPT_RNR_RETRY = 1 << 13,
	CX_OPT_ACK_TIMEOUT = 1 << 14,
	CX_OPT_LAG = 1 << 15,
	CX_OPT_PORT = 1 << 16,
	CX_OPT_COUNTER = 1 << 25,
};

#define CX_OPT_ACCESS (CX_OPT_RRE | CX_OPT_RAE | CX_OPT_RWE)
#define CX_OPT_READY \
	(CX_OPT_ACCESS | CX_OPT_QKEY | CX_OPT_RNR_TIMEOUT | CX_OPT_PM_STATE | CX_OPT_ALT_PATH)

#define CX_FROM(s) (1u << CX_QPS_##s)
#define CX_FROM_ANY 0x7f

static const struct cx_transition {
	u16 opcode;
	u32 from;
	enum cx_qp_state to;
	u32 sets; /* as if named in opt_param_mask */
	u32 takes; /* may be named there */
} cx_transitions[] = {
	{ MLX5_CMD_OP_RST2INIT_QP, CX_FROM(RST), CX_QPS_INIT,
	  CX_OPT_ACCESS | CX_OPT_PKEY | CX_OPT_QKEY | CX_OPT_PORT | CX_OPT_COUNTER |
		  CX_OPT_PM_STATE,
	  0 },
	{ MLX5_CMD_OP_INIT2INIT_QP, CX_FROM(INIT), CX_QPS_INIT, 0,
	  CX_OPT_ACCESS | CX_OPT_PKEY | CX_OPT_QKEY | CX_OPT_PORT | CX_OPT_LAG },
	{ MLX5_CMD_OP_INIT2RTR_QP, CX_FROM(INIT), CX_QPS_RTR,
	  CX_OPT_PATH | CX_OPT_RRA_MAX | CX_OPT_RNR_TIMEOUT,
	  CX_OPT_ACCESS | CX_OPT_PKEY | CX_OPT_QKEY | CX_OPT_ALT_PATH | CX_OPT_LAG },
	{ MLX5_CMD_OP_RTR2RTS_QP, CX_FROM(RTR), CX_QPS_RTS,
	  CX_OPT_SRA_MAX | CX_OPT_RETRY | CX_OPT_RNR_RETRY | CX_OPT_ACK_TIMEOUT, CX_OPT_READY },
	{ MLX5_CMD_OP_RTS2RTS_QP, CX_FROM(RTS), CX_QPS_RTS, 0, CX_OPT_READY | CX_OPT_COUNTER },
	{ MLX5_CMD_OP_SQERR2RTS_QP, CX_FROM(SQER), CX_QPS_RTS, 0,
	  CX_OPT_ACCESS | CX_OPT_QKEY | CX_OPT_RNR_TIMEOUT },
	{ MLX5_CMD_OP_SQD_RTS_QP, CX_FROM(SQD), CX_QPS_RTS, 0,
	  CX_OPT_ACCESS | CX_OPT_QKEY | CX_OPT_RNR_TIMEOUT },
	{ MLX5_CMD_OP_2ERR_QP, CX_FROM_ANY, CX_QPS_ERR, 0, 0 },
	{ MLX5_CMD_OP_2RST_QP, CX_FROM_ANY, CX_QPS_RST, 0, 0 },
};

/* What a service has no use for cannot be asked for. UMR queues take nothing. */
static u32 cx_service_takes(const struct cx_qp *qp)
{
	const u32 any = CX_OPT_PKEY | CX_OPT_PORT | CX_OPT_COUNTER | CX_OPT_LAG;
	const u32 path = any | CX_OPT_RWE | CX_OPT_ALT_PATH | CX_OPT_PM_STATE;

	switch (qp->sv) {
	case CX_SV_RC:
	case CX_SV_XRC:
	case CX_SV_DCI:
		return path | CX_OPT_ACCESS | CX_OPT_RNR_TIMEOUT;
	case CX_SV_UC:
		return path;
	case CX_SV_REG_UMR:
		return 0;
	default:
		return any | CX_OPT_QKEY;
	}
}

static const struct cx_transition *cx_transition_find(u16 opcode)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cx_transitions); i++) {
		if (cx_transitions[i].opcode == opcode)
			return &cx_transitions[i];
	}
	g_assert_not_reached();
}

#define CX_TAKE(t, to, from, f) CX_SET(t, to, f, CX_GET(t, from, f))

static void cx_qp_set_path(u8 *qpc, const u8 *c, u32 mask)
{
	u8 *to = CX_ADDR(qpc, qpc, primary_address_path);
	const u8 *from = CX_ADDR(qpc, c, primary_address_path);
	u32 timeout = CX_GET(ads, to, ack_timeout), pkey = CX_GET(ads, to, pkey_index);
	u32 port = CX_GET(ads, to, vhca_port_num);

	if (mask & CX_OPT_PATH) {
		memcpy(to, from, CX_SZ(ads));
		CX_SET(ads, to, ack_timeout, timeout);
		CX_SET(ads, to, pkey_index, pkey);
		CX_SET(ads, to, vhca_port_num, port);
	}
	if (mask & CX_OPT_PKEY)
		CX_TAKE(ads, to, from, pkey_index);
	if (mask & CX_OPT_PORT)
		CX_TAKE(ads, to, from, vhca_port_num);
	if (mask & CX_OPT_ACK_TIMEOUT)
		CX_TAKE(ads, to, from, ack_timeout);
}

static void cx_qp_set_options(struct cx_qp *qp, const u8 *c, u32 mask)
{
	u8 *q = qp->qpc;

	cx_qp_set_path(q, c, mask);
	if (mask & CX_OPT_RRE)
		CX_TAKE(qpc, q, c, rre);
	if (mask & CX_OPT_RAE) {
		CX_TAKE(qpc, q, c, rae);
		CX_TAKE(qpc, q, c, atomic_mode);
	}
	if (mask & CX_OPT_RWE)
		CX_TAKE(qpc, q, c, rwe);
	if (mask & CX_OPT_QKEY)
		CX_TAKE(qpc, q, c, q_key);
	if (mask & CX_OPT_RNR_TIMEOUT)
		CX_TAKE(qpc, q, c, min_rnr_nak);
	if (mask & CX_OPT_SRA_MAX)
		CX_TAKE(qpc, q, c, log_sra_max);
	if (mask & CX_OPT_RRA_MAX)
		CX_TAKE(qpc, q, c, log_rra_max);
	if (mask & CX_OPT_PM_STATE)
		CX_TAKE(qpc, q, c, pm_state);
	if (mask & CX_OPT_RETRY)
		CX_TAKE(qpc, q, c, retry_count);
	if (mask & CX_OPT_RNR_RETRY)
		CX_TAKE(qpc, q, c, rnr_retry);
	if (mask & CX_OPT_COUNTER)
		CX_TAKE(qpc, q, c, counter_set_id);
}

/*
 * An initiator gets its peers with the requests. mlx5_ib wants the port at RST2INIT and
 * the path MTU at INIT2RTR of it (modify_dci_qp_is_ok()), and may or may not give a path;
 * rdma-core's own tests of DC give none. So nothing of the peer's is needed, but a path
 * that is given has to be one.
 */
static int cx_dci_check_path(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp,
			     const u8 *path)
{
	u32 sgid = CX_GET(ads, path, src_addr_index), port = CX_GET(ads, path, vhca_port_num);

	if (port > 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "port %u", port);
	if (CX_QP_PATH(qp, vhca_port_num) != 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "an initiator that got no port");
	if (!dev->eth || (!sgid && buffer_is_zero(CX_ADDR(ads, path, rgid_rip), 16)))
		return 0;
	if (sgid >= CX_ROCE_ENTRIES || !dev->gid[sgid].valid)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "GID index %u is empty", sgid);
	return 0;
}

static int cx_qp_to_rtr(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	const u8 *path = CX_ADDR(qpc, c, primary_address_path);
	u32 mtu = CX_GET(qpc, c, mtu), log_rra = CX_GET(qpc, c, log_rra_max);
	u32 sgid = CX_GET(ads, path, src_addr_index);

	if (mtu < 1 || mtu > 5)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "mtu %u", mtu);
	if (CX_GET(qpc, c, log_msg_max) > CX_LOG_MAX_MSG)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_msg_max %u",
				 CX_GET(qpc, c, log_msg_max));
	if (log_rra > CX_LOG_MAX_RD_ATOMIC)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_rra_max %u", log_rra);
	if (cx_qp_is_connected(qp) && dev->eth &&
	    (sgid >= CX_ROCE_ENTRIES || !dev->gid[sgid].valid))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "GID index %u is empty", sgid);
	if (cx_qp_is_connected(qp) && !dev->eth && !CX_GET(ads, path, rlid))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "remote LID 0");
	if (qp->sv == CX_SV_DCI && cx_dci_check_path(dev, cmd, qp, path))
		return -1;
	CX_TAKE(qpc, qp->qpc, c, mtu);
	CX_TAKE(qpc, qp->qpc, c, log_msg_max);
	CX_TAKE(qpc, qp->qpc, c, remote_qpn);
	CX_TAKE(qpc, qp->qpc, c, next_rcv_psn);
	qp->resp.epsn = CX_GET(qpc, c, next_rcv_psn);
	qp->resp.peer_qpn = CX_GET(qpc, c, remote_qpn);
	return 0;
}

static int cx_qp_to_rts(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp, const u8 *c)
{
	u32 log_sra = CX_GET(qpc, c, log_sra_max);

	if (log_sra > CX_LOG_MAX_RD_ATOMIC)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_sra_max %u", log_sra);
	CX_TAKE(qpc, qp->qpc, c, next_send_psn);
	CX_TAKE(qpc, qp->qpc, c, log_ack_req_freq);
	qp->req.next_psn = qp->req.una = CX_GET(qpc, c, next_send_psn);
	return 0;
}

static int cx_qp_check_context(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp,
			       const u8 *c)
{
	u32 pdn = CX_GET(qpc, c, pd), st = CX_GET(qpc, c, st);

	if (pdn && qp->pd && pdn != cx_qp_pdn(qp))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "PD 0x%x, created with 0x%x", pdn,
				 cx_qp_pdn(qp));
	if (st && st != qp->sv)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "service 0x%x, created with 0x%x", st,
				 qp->sv);
	return 0;
}

static int cx_qp_set_attributes(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_qp *qp,
				const struct cx_transition *t)
{
	const u8 *c = CX_ADDR(rst2init_qp_in, cmd->in, qpc);
	u32 mask = CX_GET(rst2init_qp_in, cmd->in, opt_param_mask) | t->sets;

	if (cx_qp_check_context(dev, cmd, qp, c))
		return -1;
	if (t->opcode == MLX5_CMD_OP_INIT2RTR_QP && cx_qp_to_rtr(dev, cmd, qp, c))
		return -1;
	if (t->opcode == MLX5_CMD_OP_RTR2RTS_QP && cx_qp_to_rts(dev, cmd, qp, c))
		return -1;
	cx_qp_set_options(qp, c, mask);
	return 0;
}

static int cx_qp_check_options(struct cx_dev *dev, struct cx_cmd *cmd, const struct cx_qp *qp,
			       const struct cx_transition *t)
{
	u32 mask;

	/* the commands to ERR and RST have no such field */
	if (t->to == CX_QPS_ERR || t->to == CX_QPS_RST)
		return 0;
	mask = CX_GET(rst2init_qp_in, cmd->in, opt_param_mask);
	if (mask & ~(t->takes & cx_service_takes(qp)))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "opt_param_mask 0x%x, service 0x%x",
				 mask, qp->sv);
	return 0;
}

int cx_cmd_modify_qp(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const struct cx_transition *t = cx_transition_find(cmd->opcode);
	u32 qpn = CX_GET(rst2init_qp_in, cmd->in, qpn);
	struct cx_qp *qp = cx_qp_find(dev, qpn);

	if (!qp)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "QP 0x%x does not exist", qpn);
	if (!(t->from & 1u << qp->state))
		return cx_refuse(dev, cmd, CX_ST_BAD_QP_STATE, "QP 0x%x is in state %u", qpn,
				 qp->state);
	if (cx_qp_check_options(dev, cmd, qp, t))
		return -1;
	switch (t->to) {
	case CX_QPS_ERR:
		cx_qp_error(dev, qp);
		return 0;
	case CX_QPS_RST:
		cx_qp_reset(dev, qp);
		return 0;
	default:
		if (cx_qp_set_attributes(dev, cmd, qp, t))
			return -1;
		qp->state = t->to;
		if (qp->state == CX_QPS_RTS)
			cx_req_start(dev, qp);
		return 0;
	}
}
