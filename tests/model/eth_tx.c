// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: sending of the netdev: inlined headers, checksums, segmentation of
 * large TCP packets. The netdev driver cannot be talked out of the last two.
 * Runs under QEMU's big lock.
 */
#include "dev.h"
#include "net/checksum.h"

#define CX_ETH_SEG 16
#define CX_ETH_HDR 14
#define CX_ETH_CSUM 0xc0 /* L3 and L4 checksum wanted */
#define CX_ETH_MAX_MESSAGE (128 * 1024)
#define CX_ETH_MAX_FRAME 9978

/* hand one whole frame to the fabric, and one for many to those here who want it */
static void cx_eth_send(struct cx_dev *dev, const struct cx_sq *sq, const u8 *frame, u32 len)
{
	g_autofree struct cx_frame *f = cx_frame_new(CX_FRAME_ETH, len);

	memcpy(f->data, frame, len);
	memcpy(f->dst, frame, 6);
	memcpy(f->src, frame + 6, 6);
	f->bytes = sizeof(*f) + len;
	cx_trace(dev, CX_TR_ETH, "tx %u bytes type 0x%04x", len, lduw_be_p(frame + 12));
	cx_count(dev, CX_CTR_ETH_TX, 1);
	cx_count(dev, CX_CTR_ETH_TX_BYTES, len);
	cx_fabric_send(dev, f);
	if (frame[0] & 1)
		cx_eth_rx_own(dev, frame, len, sq->td);
}

/* where the L3 header starts: after at most one VLAN tag */
static u32 cx_eth_l3(const u8 *hdr)
{
	return lduw_be_p(hdr + 12) == 0x8100 ? CX_ETH_HDR + 4 : CX_ETH_HDR;
}

/* Where the TCP header begins, if @bytes of a message hold it and all before it; else 0. */
static u32 cx_lso_tcp(const u8 *msg, u32 bytes)
{
	u32 l3 = cx_eth_l3(msg), l4;

	if (bytes < l3 + 20)
		return 0;
	l4 = l3 + (msg[l3] >> 4 == 6 ? 40 : (msg[l3] & 15) * 4);
	return bytes < l4 + 20 ? 0 : l4;
}

static void cx_lso_segment(u8 *frame, u32 hdr_len, u32 part, u32 at, bool last, u32 count)
{
	u32 l3 = cx_eth_l3(frame), l4 = cx_lso_tcp(frame, hdr_len);
	u8 *tcp = frame + l4;

	if (frame[l3] >> 4 == 6) {
		stw_be_p(frame + l3 + 4, hdr_len - l4 + part);
	} else {
		stw_be_p(frame + l3 + 2, hdr_len - l3 + part);
		stw_be_p(frame + l3 + 4, lduw_be_p(frame + l3 + 4) + count);
	}
	stl_be_p(tcp + 4, ldl_be_p(tcp + 4) + at);
	if (!last)
		tcp[13] &= ~0x09; /* FIN, PSH */
	if (at)
		tcp[13] &= ~0x80; /* CWR */
}

static void cx_lso(struct cx_dev *dev, const struct cx_sq *sq, const u8 *msg, u32 hdr_len, u32 len,
		   u32 mss)
{
	g_autofree u8 *frame = g_malloc(hdr_len + mss);
	u32 at, part, count = 0;

	for (at = 0; at < len; at += mss, count++) {
		part = MIN(mss, len - at);
		memcpy(frame, msg, hdr_len);
		memcpy(frame + hdr_len, msg + hdr_len + at, part);
		cx_lso_segment(frame, hdr_len, part, at, at + part == len, count);
		net_checksum_calculate(frame, hdr_len + part, CSUM_ALL);
		cx_eth_send(dev, sq, frame, hdr_len + part);
	}
}

static enum cx_syndrome cx_eth_message(struct cx_dev *dev, struct cx_sq *sq, struct cx_wqe *w)
{
	const u8 *seg = w->raw + CX_ETH_SEG;
	u32 inl = lduw_be_p(seg + 12) & 0x3ff, mss = lduw_be_p(seg + 6);
	u32 at = 2 * CX_ETH_SEG + (inl > 2 ? QEMU_ALIGN_UP(inl - 2, 16) : 0), total;
	g_autofree u8 *msg = NULL;

	if (at > w->raw_bytes || cx_wqe_data_list(w, at))
		return CX_SYN_LOCAL_QP_OP;
	total = inl + w->bytes;
	if (total < CX_ETH_HDR || total > CX_ETH_MAX_MESSAGE)
		return CX_SYN_LOCAL_LENGTH;
	msg = g_malloc(total);
	memcpy(msg, seg + 14, inl);
	if (cx_wqe_gather(dev, sq->wq.pdn, w, 0, msg + inl, w->bytes))
		return CX_SYN_LOCAL_PROT;
	if (w->opcode == CX_OP_LSO) {
		if (!mss || inl < CX_ETH_HDR + 4 || !cx_lso_tcp(msg, inl))
			return CX_SYN_LOCAL_QP_OP;
		cx_lso(dev, sq, msg, inl, w->bytes, mss);
		return CX_SYN_OK;
	}
	if (total > CX_ETH_MAX_FRAME)
		return CX_SYN_LOCAL_LENGTH;
	if (seg[4] & CX_ETH_CSUM)
		net_checksum_calculate(msg, total, CSUM_ALL);
	cx_eth_send(dev, sq, msg, total);
	return CX_SYN_OK;
}

static void cx_sq_one(struct cx_dev *dev, struct cx_sq *sq)
{
	enum cx_syndrome why = CX_SYN_OK;
	struct cx_wqe w;
	u8 ce;

	cx_sq_fetch(dev, &sq->wq, &sq->pushed, &w);
	w.opcode = w.raw[3];
	ce = w.raw[11] >> 2 & 3;
	if (ldl_be_p(w.raw + 4) >> 8 != sq->obj.id || lduw_be_p(w.raw + 1) != w.index)
		why = CX_SYN_LOCAL_QP_OP;
	else if (w.opcode == CX_OP_SEND || w.opcode == CX_OP_LSO)
		why = cx_eth_message(dev, sq, &w);
	else if (w.opcode != CX_OP_NOP)
		why = CX_SYN_LOCAL_QP_OP;
	if (why)
		cx_trace(dev, CX_TR_REFUSE, "SQ 0x%x request %u opcode 0x%x: syndrome 0x%x",
			 sq->obj.id, w.index, w.opcode, why);
	if (why || ce >= 2) {
		struct cx_cqe x = {
			.op = why ? CX_CQE_REQ_ERR : CX_CQE_REQ,
			.syndrome = why,
			.user_index = sq->user_index,
			.qpn = sq->obj.id,
			.wqe_opcode = w.opcode,
			.wqe_counter = w.index,
		};

		cx_cq_write(dev, sq->cq, &x);
	}
	if (why)
		sq->state = CX_ETHQ_ERR;
}

bool cx_sq_has_one_more(struct cx_dev *dev, const struct cx_sq *sq, u32 blocks)
{
	return sq->state == CX_ETHQ_RDY && (u16)(cx_wq_pi(dev, &sq->wq) - sq->wq.ci) == blocks;
}

void cx_sq_run(struct cx_dev *dev, struct cx_sq *sq, const u8 *raw)
{
	if (raw)
		cx_pushed_keep(dev, &sq->wq, &sq->pushed, raw);
	while (sq->state == CX_ETHQ_RDY && cx_wq_pi(dev, &sq->wq) != sq->wq.ci)
		cx_sq_one(dev, sq);
}
