// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: parsing of work requests. An entry that is not well formed, that has
 * another queue's number or the wrong index, or an opcode the service does not
 * have, is a local QP operation error. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_INLINE (1u << 31)
#define CX_AV_EXTENDED (1u << 31)
#define CX_AV_GRH (1u << 30)
#define CX_DBR_RECV 0
#define CX_DBR_SEND 4
#define CX_WQE_TRACE_BYTES 128

const char *cx_wqe_opname(u8 opcode)
{
	switch (opcode) {
	case CX_OP_NOP:
		return "NOP";
	case CX_OP_SEND_INVAL:
		return "SEND_INVAL";
	case CX_OP_WRITE:
		return "WRITE";
	case CX_OP_WRITE_IMM:
		return "WRITE_IMM";
	case CX_OP_SEND:
		return "SEND";
	case CX_OP_SEND_IMM:
		return "SEND_IMM";
	case CX_OP_LSO:
		return "LSO";
	case CX_OP_READ:
		return "READ";
	case CX_OP_ATOMIC_CS:
		return "CMP_SWAP";
	case CX_OP_ATOMIC_FA:
		return "FETCH_ADD";
	case CX_OP_UMR:
		return "UMR";
	default:
		return "?";
	}
}

u16 cx_wq_pi(struct cx_dev *dev, const struct cx_wq *wq)
{
	return cx_dma_read_be32(dev, wq->dbr);
}

static u64 cx_wq_off(const struct cx_wq *wq, u16 index)
{
	return wq->base + ((u64)(index & ((1u << wq->log_size) - 1)) << wq->log_stride);
}

void cx_pushed_keep(struct cx_dev *dev, const struct cx_wq *wq, struct cx_pushed *p, const u8 *raw)
{
	u8 block[CX_WQE_BB];
	bool same = true;
	u32 i;

	p->bytes = QEMU_ALIGN_UP((raw[7] & 0x3f) * 16, CX_WQE_BB);
	g_assert(p->bytes <= sizeof(p->raw));
	p->index = wq->ci;
	if (lduw_be_p(raw + 1) != p->index) {
		p->bytes = 0; /* it is another one: what is in memory is looked at */
		return;
	}
	memcpy(p->raw, raw, p->bytes);
	for (i = 0; i < p->bytes && same; i += CX_WQE_BB) {
		cx_ring_read(dev, wq->ring, cx_wq_off(wq, wq->ci + i / CX_WQE_BB), block,
			     CX_WQE_BB);
		same = !memcmp(block, raw + i, CX_WQE_BB);
	}
	if (same)
		return;
	cx_count(dev, CX_CTR_BF_DIFFERS, 1);
	cx_trace(dev, CX_TR_DB, "request %u is pushed, and another one is in memory", p->index);
}

void cx_sq_fetch(struct cx_dev *dev, struct cx_wq *wq, struct cx_pushed *p, struct cx_wqe *w)
{
	bool pushed = p->bytes && p->index == wq->ci;
	u32 i;

	memset(w, 0, offsetof(struct cx_wqe, sge));
	w->index = wq->ci;
	if (pushed)
		memcpy(w->raw, p->raw, p->bytes);
	else
		cx_ring_read(dev, wq->ring, cx_wq_off(wq, wq->ci), w->raw, CX_WQE_BB);
	w->raw_bytes = (w->raw[7] & 0x3f) * 16;
	w->nr_bb = MAX(1, DIV_ROUND_UP(w->raw_bytes, CX_WQE_BB));
	for (i = 1; i < w->nr_bb && !pushed; i++)
		cx_ring_read(dev, wq->ring, cx_wq_off(wq, wq->ci + i), w->raw + i * CX_WQE_BB,
			     CX_WQE_BB);
	wq->ci += w->nr_bb;
	cx_count(dev, CX_CTR_BF_TAKEN, pushed);
	p->bytes = 0;
}

static u32 cx_wqe_parse_av(struct cx_wqe *w, u32 at)
{
	const u8 *p = w->raw + at;
	u32 dqpn = ldl_be_p(p + 8), gid_fl;

	w->av.dc_key = ldq_be_p(p);
	w->av.qkey = ldl_be_p(p);
	w->av.dqpn = dqpn & 0xffffff;
	w->av.lid = lduw_be_p(p + 14);
	if (!(dqpn & CX_AV_EXTENDED))
		return 16;
	gid_fl = ldl_be_p(p + 28);
	memcpy(w->av.mac, p + 20, 6);
	w->av.tclass = p[26];
	w->av.hop_limit = p[27];
	w->av.grh = gid_fl & CX_AV_GRH;
	w->av.sgid_index = gid_fl >> 20 & 0xff;
	w->av.flow_label = gid_fl & 0xfffff;
	memcpy(w->av.rgid, p + 32, 16);
	return 48;
}

int cx_wqe_data_list(struct cx_wqe *w, u32 at)
{
	struct cx_sge *s;
	u32 count;

	w->nr_sge = w->bytes = 0;
	while (at < w->raw_bytes) {
		if (w->nr_sge == CX_MAX_SGE)
			return -EINVAL;
		count = ldl_be_p(w->raw + at);
		s = &w->sge[w->nr_sge++];
		s->is_inline = count & CX_INLINE;
		s->bytes = count & ~CX_INLINE;
		if (s->is_inline) {
			s->bytes &= 0x3ff;
			s->addr = at + 4;
			if (s->addr + s->bytes > w->raw_bytes)
				return -EINVAL;
			at = QEMU_ALIGN_UP(at + 4 + s->bytes, 16);
		} else {
			s->lkey = ldl_be_p(w->raw + at + 4);
			s->addr = ldq_be_p(w->raw + at + 8);
			at += 16;
		}
		if (s->bytes > (1u << CX_LOG_MAX_MSG) - w->bytes)
			return -EINVAL;
		w->bytes += s->bytes;
	}
	return 0;
}

static bool cx_op_allowed(enum cx_service sv, u8 op)
{
	switch (op) {
	case CX_OP_NOP:
		return true;
	case CX_OP_UMR:
		return sv == CX_SV_REG_UMR;
	case CX_OP_SEND:
	case CX_OP_SEND_IMM:
		return sv != CX_SV_REG_UMR;
	case CX_OP_WRITE:
	case CX_OP_WRITE_IMM:
		return sv == CX_SV_RC || sv == CX_SV_UC || sv == CX_SV_XRC || sv == CX_SV_DCI;
	case CX_OP_SEND_INVAL:
	case CX_OP_READ:
	case CX_OP_ATOMIC_CS:
	case CX_OP_ATOMIC_FA:
		return sv == CX_SV_RC || sv == CX_SV_XRC || sv == CX_SV_DCI;
	default:
		return false;
	}
}

static bool cx_op_has_raddr(u8 op)
{
	return op == CX_OP_WRITE || op == CX_OP_WRITE_IMM || op == CX_OP_READ ||
	       op == CX_OP_ATOMIC_CS || op == CX_OP_ATOMIC_FA;
}

static const char *cx_wqe_check_ctrl(const struct cx_dev *dev, enum cx_service sv, u32 qpn,
				     const struct cx_wqe *w)
{
	u32 most = sv == CX_SV_DCI ? dev->prop.max_wqe_sz_sq_dc : dev->prop.max_wqe_sz_sq;

	if (ldl_be_p(w->raw + 4) >> 8 != qpn)
		return "number of another queue";
	if (lduw_be_p(w->raw + 1) != w->index)
		return "wrong index";
	if (!w->raw_bytes)
		return "no length";
	if (w->raw_bytes > most)
		return "longer than a request may be";
	if (!cx_op_allowed(sv, w->opcode))
		return "opcode not of this service";
	return NULL;
}

static const char *cx_wqe_segments(enum cx_service sv, struct cx_wqe *w)
{
	u32 at = 16;

	if (w->opcode == CX_OP_NOP)
		return NULL;
	if (w->opcode == CX_OP_UMR)
		return w->raw_bytes < at + CX_UMR_BYTES ? "too short for its segments" : NULL;
	if (sv == CX_SV_XRC) {
		w->xrc_srqn = ldl_be_p(w->raw + at) & 0xffffff;
		at += 16;
	}
	if (sv == CX_SV_UD || sv == CX_SV_DCI || sv == CX_SV_QP0 || sv == CX_SV_QP1)
		at += cx_wqe_parse_av(w, at);
	if (cx_op_has_raddr(w->opcode)) {
		w->raddr = ldq_be_p(w->raw + at);
		w->rkey = ldl_be_p(w->raw + at + 8);
		at += 16;
	}
	if (w->opcode == CX_OP_ATOMIC_CS || w->opcode == CX_OP_ATOMIC_FA) {
		w->swap_add = ldq_be_p(w->raw + at);
		w->compare = ldq_be_p(w->raw + at + 8);
		at += 16;
	}
	if (at > w->raw_bytes)
		return "too short for its segments";
	if (cx_wqe_data_list(w, at))
		return "data segments do not fit";
	if ((w->opcode == CX_OP_ATOMIC_CS || w->opcode == CX_OP_ATOMIC_FA) && w->bytes != 8)
		return "atomic of other than 8 bytes";
	return NULL;
}

/* with the bytes as the driver wrote them: others compare drivers by it */
static void cx_wqe_trace(struct cx_dev *dev, u32 qpn, const struct cx_wqe *w)
{
	char hex[2 * CX_WQE_TRACE_BYTES + 1];
	u32 i;

	if (!cx_trace_on(dev, CX_TR_WQE))
		return;
	hex[0] = 0;
	for (i = 0; i < MIN(w->raw_bytes, CX_WQE_TRACE_BYTES); i++)
		snprintf(hex + 2 * i, 3, "%02x", w->raw[i]);
	cx_trace(dev, CX_TR_WQE,
		 "qpn=0x%x wqe=%u %s bytes=%u sge=%u signaled=%u "
		 "raddr=0x%" PRIx64 " rkey=0x%x dqpn=0x%x raw=%s",
		 qpn, w->index, cx_wqe_opname(w->opcode), w->bytes, w->nr_sge, w->signaled,
		 w->raddr, w->rkey, w->av.dqpn, hex);
}

enum cx_syndrome cx_wqe_parse(struct cx_dev *dev, enum cx_service sv, u32 qpn, struct cx_wqe *w)
{
	const char *bad;
	u8 ce = w->raw[11] >> 2 & 3;

	w->bytes = w->nr_sge = w->rkey = 0;
	w->raddr = 0;
	w->opcode = w->raw[3];
	w->fence = w->raw[11] >> 5;
	w->signaled = ce >= 2;
	w->solicited = w->raw[11] >> 1 & 1;
	w->imm = ldl_be_p(w->raw + 12);
	bad = cx_wqe_check_ctrl(dev, sv, qpn, w);
	if (!bad)
		bad = cx_wqe_segments(sv, w);
	if (bad)
		cx_trace(dev, CX_TR_REFUSE, "QP 0x%x request %u opcode 0x%x: %s", qpn, w->index,
			 w->opcode, bad);
	else
		cx_wqe_trace(dev, qpn, w);
	return bad ? CX_SYN_LOCAL_QP_OP : CX_SYN_OK;
}

int cx_wqe_gather(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, u8 *buf, u32 len)
{
	u32 i, n;
	int err = 0;

	for (i = 0; i < w->nr_sge && len && !err; i++) {
		const struct cx_sge *s = &w->sge[i];

		if (off >= s->bytes) {
			off -= s->bytes;
			continue;
		}
		n = MIN(len, s->bytes - off);
		if (s->is_inline)
			memcpy(buf, w->raw + s->addr + off, n);
		else
			err = cx_mkey_copy(dev, s->lkey, pdn, s->addr + off, buf, n,
					   CX_ACC_LOCAL_READ);
		buf += n;
		len -= n;
		off = 0;
	}
	return err;
}

static int cx_sge_scatter(struct cx_dev *dev, u32 pdn, const struct cx_sge *s, u32 nr, u32 off,
			  const u8 *buf, u32 len)
{
	u32 i, n;
	int err;

	for (i = 0; i < nr && len; i++, s++) {
		if (off >= s->bytes) {
			off -= s->bytes;
			continue;
		}
		n = MIN(len, s->bytes - off);
		if (s->is_inline)
			return -EACCES;
		err = cx_mkey_copy(dev, s->lkey, pdn, s->addr + off, (u8 *)buf, n,
				   CX_ACC_LOCAL_WRITE);
		if (err)
			return err;
		buf += n;
		len -= n;
		off = 0;
	}
	return len ? -ENOSPC : 0;
}

int cx_wqe_scatter(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, const u8 *buf,
		   u32 len)
{
	return cx_sge_scatter(dev, pdn, w->sge, w->nr_sge, off, buf, len);
}

static void cx_rq_parse(const struct cx_wq *wq, const u8 *raw, struct cx_rwqe *r)
{
	u32 at = wq->linked ? 16 : 0, end = MIN(1u << wq->log_stride, CX_WQE_MAX);

	if (!wq->linked && wq->signature)
		at = 16;
	for (; at + 16 <= end && r->nr_sge < CX_MAX_RECV_SGE; at += 16) {
		u32 lkey = ldl_be_p(raw + at + 4);
		struct cx_sge *s = &r->sge[r->nr_sge];

		if (lkey == CX_LKEY_INVALID)
			break;
		/* the highest bit of the count is a hint of the netdev driver */
		s->bytes = ldl_be_p(raw + at) & ~CX_INLINE;
		s->lkey = lkey;
		s->addr = ldq_be_p(raw + at + 8);
		s->is_inline = false;
		r->room += s->bytes;
		r->nr_sge++;
	}
}

bool cx_rq_pop(struct cx_dev *dev, struct cx_wq *wq, struct cx_rwqe *r)
{
	u8 raw[CX_WQE_MAX];

	if (cx_wq_pi(dev, wq) == wq->ci)
		return false;
	r->index = wq->linked ? wq->next : wq->ci;
	r->nr_sge = r->room = 0;
	cx_ring_read(dev, wq->ring, cx_wq_off(wq, r->index), raw,
		     MIN(1u << wq->log_stride, sizeof(raw)));
	if (wq->linked)
		wq->next = lduw_be_p(raw + 2);
	wq->ci++;
	cx_rq_parse(wq, raw, r);
	return true;
}

int cx_rq_scatter(struct cx_dev *dev, u32 pdn, const struct cx_rwqe *r, u32 off, const u8 *buf,
		  u32 len)
{
	return cx_sge_scatter(dev, pdn, r->sge, r->nr_sge, off, buf, len);
}
