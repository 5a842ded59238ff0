// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: multicast groups of UD queues. A datagram goes to all nodes of the
 * fabric and, on the sending node, to the other members of the group there.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_MCG_QPN 0xffffff

static struct cx_mcg *cx_mcg_find(struct cx_dev *dev, const u8 *gid, u32 qpn)
{
	u32 i;

	for (i = 0; i < dev->mcg->len; i++) {
		struct cx_mcg *m = &g_array_index(dev->mcg, struct cx_mcg, i);

		if (m->qpn == qpn && !memcmp(m->gid, gid, 16))
			return m;
	}
	return NULL;
}

int cx_cmd_attach_mcg(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_mcg m = { .qpn = CX_GET(attach_to_mcg_in, cmd->in, qpn) };
	struct cx_qp *qp = cx_qp_find(dev, m.qpn);

	if (!qp)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "QP 0x%x does not exist", m.qpn);
	if (qp->sv != CX_SV_UD)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "QP 0x%x is not UD", m.qpn);
	memcpy(m.gid, CX_ADDR(attach_to_mcg_in, cmd->in, multicast_gid), 16);
	if (!cx_mcg_find(dev, m.gid, m.qpn))
		g_array_append_val(dev->mcg, m);
	return 0;
}

int cx_cmd_detach_mcg(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 qpn = CX_GET(detach_from_mcg_in, cmd->in, qpn);
	struct cx_mcg *m =
		cx_mcg_find(dev, CX_ADDR(detach_from_mcg_in, cmd->in, multicast_gid), qpn);

	if (!m)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "QP 0x%x is not attached", qpn);
	g_array_remove_index_fast(dev->mcg, m - (struct cx_mcg *)(void *)dev->mcg->data);
	return 0;
}

void cx_mcg_forget_qp(struct cx_dev *dev, u32 qpn)
{
	u32 i = 0;

	while (i < dev->mcg->len) {
		if (g_array_index(dev->mcg, struct cx_mcg, i).qpn == qpn)
			g_array_remove_index_fast(dev->mcg, i);
		else
			i++;
	}
}

void cx_mcg_deliver(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p)
{
	u32 i;

	for (i = 0; i < dev->mcg->len; i++) {
		struct cx_mcg m = g_array_index(dev->mcg, struct cx_mcg, i);
		struct cx_qp *qp = cx_qp_find(dev, m.qpn);

		if (!qp || qp->state < CX_QPS_RTR || qp->state == CX_QPS_ERR ||
		    memcmp(m.gid, p->dgid, 16))
			continue;
		if (f->node == dev->prop.node && (m.qpn == p->sqpn || CX_QP_GET(qp, block_lb_mc)))
			continue;
		cx_rx_datagram(dev, qp, p, dev->eth ? 0 : cx_l2_lid(f->src));
	}
}

void cx_mcg_loopback(struct cx_dev *dev, const struct cx_frame *f)
{
	const struct cx_pkt *p = (const struct cx_pkt *)f->data;
	g_autofree struct cx_frame *copy = NULL;

	if (p->dqpn != CX_MCG_QPN || !dev->mcg->len)
		return;
	copy = g_memdup2(f, f->bytes);
	copy->node = dev->prop.node;
	memcpy(copy->dst, dev->port.mac, 6);
	cx_fabric_route(dev, copy);
}
