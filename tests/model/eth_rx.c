// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: receiving of the netdev: flow tables to TIR, TIR to queue, buffer,
 * completion with a correct full checksum (the driver hands it to the stack as
 * CHECKSUM_COMPLETE). Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_ETH_HDR 14
#define CX_CQE_L2_OK 1
#define CX_CQE_L3_OK 2
#define CX_CQE_L4_OK 4
#define CX_CQE_VLAN 1

/* one's complement sum of everything behind the Ethernet header */
static u16 cx_eth_checksum(const u8 *frame, u32 len)
{
	u32 sum = 0, i;

	for (i = CX_ETH_HDR; i + 1 < len; i += 2)
		sum += lduw_be_p(frame + i);
	if (i < len)
		sum += frame[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static struct cx_rq *cx_tir_queue(struct cx_dev *dev, const struct cx_tir *t, u32 hash)
{
	struct cx_rqt *rqt;
	u32 rqn;

	rqn = t->inline_rqn;
	if (t->indirect) {
		rqt = cx_obj_find(dev, CX_SP_RQT, t->rqtn, CX_K_RQT);
		if (!rqt)
			return NULL;
		rqn = rqt->rqn[hash % rqt->nr];
	}
	return cx_obj_find(dev, CX_SP_RQ, rqn, CX_K_RQ);
}

static void cx_eth_cqe(const u8 *frame, u32 len, const struct cx_frame_info *info, struct cx_cqe *x)
{
	bool ip = info->ip_version;

	x->bytes = len;
	x->check_sum = cx_eth_checksum(frame, len);
	x->hdr_ok = CX_CQE_L2_OK | (ip ? CX_CQE_L3_OK : 0);
	if (ip && !info->fragment && (info->ip_protocol == 6 || info->ip_protocol == 17))
		x->hdr_ok |= CX_CQE_L4_OK;
	x->hdr_type = info->ip_version == 4 ? 2 << 2 : info->ip_version == 6 ? 1 << 2 : 0;
	x->rss_hash = info->hash;
	x->rss_type = ip ? 1 << 6 : 0;
}

static void cx_rq_frame(struct cx_dev *dev, struct cx_rq *rq, const u8 *frame, u32 len,
			const struct cx_frame_info *info)
{
	struct cx_cqe x = { .op = CX_CQE_RESP_SEND, .user_index = rq->user_index };
	g_autofree u8 *untagged = NULL;
	struct cx_rwqe r;

	if (rq->state != CX_ETHQ_RDY || !cx_rq_pop(dev, &rq->wq, &r)) {
		cx_count(dev, CX_CTR_ETH_RX_NO_BUFFER, 1);
		cx_qcounter_add(dev, rq->counter_set, CX_QC_OUT_OF_BUFFER);
		return;
	}
	if (!rq->keep_vlan && lduw_be_p(frame + 12) == 0x8100 && len >= CX_ETH_HDR + 4) {
		untagged = g_malloc(len);
		memcpy(untagged, frame, 12);
		memcpy(untagged + 12, frame + 16, len - 16);
		x.vlan_info = lduw_be_p(frame + 14);
		frame = untagged;
		len -= 4;
	}
	cx_eth_cqe(frame, len, info, &x);
	if (untagged)
		x.hdr_type |= CX_CQE_VLAN;
	x.wqe_counter = r.index;
	x.qpn = rq->obj.id;
	if (cx_rq_scatter(dev, rq->wq.pdn, &r, 0, frame, len)) {
		x.op = CX_CQE_RESP_ERR;
		x.syndrome = len > r.room ? CX_SYN_LOCAL_LENGTH : CX_SYN_LOCAL_PROT;
		rq->state = CX_ETHQ_ERR;
	}
	cx_count(dev, CX_CTR_ETH_RX, 1);
	cx_count(dev, CX_CTR_ETH_RX_BYTES, len);
	cx_trace(dev, CX_TR_ETH, "rx %u bytes type 0x%04x rq=0x%x wqe=%u", len,
		 lduw_be_p(frame + 12), rq->obj.id, r.index);
	cx_cq_write(dev, rq->cq, &x);
}

static void cx_eth_steer(struct cx_dev *dev, const u8 *frame, u32 len, u32 own_td)
{
	struct cx_flow_verdict v = { .nr = 0 };
	struct cx_frame_info info;
	struct cx_tir *t;
	struct cx_rq *rq;
	u32 i;

	if (len < CX_ETH_HDR)
		return;
	cx_flow_lookup(dev, frame, len, &info, &v);
	if (!v.nr && !own_td)
		cx_count(dev, CX_CTR_ETH_RX_NO_RULE, 1);
	for (i = 0; i < v.nr; i++) {
		t = cx_obj_find(dev, CX_SP_TIR, v.tirn[i], CX_K_TIR);
		if (!t || (own_td == t->td && !(t->self_loopback & CX_SELF_LB_MC)))
			continue;
		rq = cx_tir_queue(dev, t, info.hash);
		if (rq)
			cx_rq_frame(dev, rq, frame, len, &info);
	}
}

void cx_eth_rx(struct cx_dev *dev, const u8 *frame, u32 len)
{
	cx_eth_steer(dev, frame, len, 0);
}

void cx_eth_rx_own(struct cx_dev *dev, const u8 *frame, u32 len, u32 td)
{
	if (td)
		cx_eth_steer(dev, frame, len, td);
}
