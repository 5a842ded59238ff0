/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: work queue entries: fetching and parsing of send requests, popping of
 * receive requests, and the copies between messages and scatter lists.
 */
#ifndef CX_WQE_H
#define CX_WQE_H

#include "cq.h"

enum cx_opcode {
	CX_OP_NOP = 0x00,
	CX_OP_SEND_INVAL = 0x01,
	CX_OP_WRITE = 0x08,
	CX_OP_WRITE_IMM = 0x09,
	CX_OP_SEND = 0x0a,
	CX_OP_SEND_IMM = 0x0b,
	CX_OP_LSO = 0x0e,
	CX_OP_READ = 0x10,
	CX_OP_ATOMIC_CS = 0x11,
	CX_OP_ATOMIC_FA = 0x12,
	CX_OP_UMR = 0x25,
};

/* transport services, numbered as in the QP context */
enum cx_service {
	CX_SV_RC = 0x0,
	CX_SV_UC = 0x1,
	CX_SV_UD = 0x2,
	CX_SV_XRC = 0x3,
	CX_SV_DCI = 0x5,
	CX_SV_QP0 = 0x7,
	CX_SV_QP1 = 0x8,
	CX_SV_REG_UMR = 0xc,
};

#define CX_WQE_BB 64
#define CX_WQE_MAX 1024
#define CX_MAX_SGE 64
#define CX_MAX_RECV_SGE 32

struct cx_sge {
	u64 addr; /* offset into the entry for inline data */
	u32 bytes;
	u32 lkey;
	bool is_inline;
};

struct cx_av {
	u64 dc_key;
	u32 qkey;
	u32 dqpn;
	bool grh;
	u16 lid;
	u8 mac[6];
	u8 sgid_index;
	u8 tclass;
	u8 hop_limit;
	u32 flow_label;
	u8 rgid[16];
};

struct cx_wqe {
	u8 opcode;
	u8 fence;
	bool signaled;
	bool solicited;
	u16 index;
	u32 nr_bb;
	u32 imm;
	struct cx_av av;
	u32 xrc_srqn;
	u64 raddr;
	u32 rkey;
	u64 swap_add;
	u64 compare;
	u32 bytes;
	u32 nr_sge;
	struct cx_sge sge[CX_MAX_SGE];
	u32 raw_bytes;
	u8 raw[CX_WQE_MAX];
};

struct cx_rwqe {
	u16 index;
	u32 nr_sge;
	u32 room;
	struct cx_sge sge[CX_MAX_RECV_SGE];
};

/* one queue of work requests in guest memory */
struct cx_wq {
	const struct cx_ring *ring;
	u64 base; /* byte offset in the ring */
	u64 dbr; /* doorbell record of this queue */
	u32 log_size; /* entries; send queues count basic blocks */
	u32 log_stride;
	u32 pdn;
	bool linked; /* SRQ: the entry names the next one */
	bool signature;
	u16 ci; /* entries taken, counts on */
	u16 rung; /* send queue of a QP: entries before this may be taken */
	u16 next; /* SRQ: next entry */
};

/* blocks of a send queue that may be taken; an entry may claim more than was posted */
static inline u32 cx_sq_left(const struct cx_wq *wq)
{
	u16 left = wq->rung - wq->ci;

	return left <= 1u << wq->log_size ? left : 0;
}

const char *cx_wqe_opname(u8 opcode);
u16 cx_wq_pi(struct cx_dev *dev, const struct cx_wq *wq);
void cx_sq_fetch(struct cx_dev *dev, struct cx_wq *wq, struct cx_wqe *w);
enum cx_syndrome cx_wqe_parse(struct cx_dev *dev, enum cx_service sv, u32 qpn, struct cx_wqe *w);
int cx_wqe_data_list(struct cx_wqe *w, u32 at);
int cx_wqe_gather(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, u8 *buf, u32 len);
int cx_wqe_scatter(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, const u8 *buf,
		   u32 len);
bool cx_rq_pop(struct cx_dev *dev, struct cx_wq *wq, struct cx_rwqe *r);
int cx_rq_scatter(struct cx_dev *dev, u32 pdn, const struct cx_rwqe *r, u32 off, const u8 *buf,
		  u32 len);

#endif
