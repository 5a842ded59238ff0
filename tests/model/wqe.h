/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: work queue entries: fetching and parsing of send requests, popping of
 * receive requests, and the copies between messages and scatter lists.
 */
#ifndef CX_WQE_H
#define CX_WQE_H

#include "cq.h"

/**
 * enum cx_opcode - Operations of send requests.
 */
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

/**
 * enum cx_service - Transport services, numbered as in the QP context.
 */
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

/**
 * struct cx_sge - A part of a request's data.
 */
struct cx_sge {
	u64 addr; /* offset into the entry for inline data */
	u32 bytes;
	u32 lkey;
	bool is_inline;
};

/**
 * struct cx_av - An address vector.
 */
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

/**
 * struct cx_wqe - A send request.
 */
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

/**
 * struct cx_rwqe - A receive request.
 */
struct cx_rwqe {
	u16 index;
	u32 nr_sge;
	u32 room;
	struct cx_sge sge[CX_MAX_RECV_SGE];
};

/**
 * struct cx_wq - One queue of work requests in guest memory.
 */
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

/**
 * cx_sq_left() - Blocks of a send queue that may be taken.
 * @wq: send queue.
 *
 * Return: the number; 0 also if an entry has claimed more than was posted.
 */
static inline u32 cx_sq_left(const struct cx_wq *wq)
{
	u16 left = wq->rung - wq->ci;

	return left <= 1u << wq->log_size ? left : 0;
}

/**
 * cx_wqe_opname() - Name of an operation, for traces.
 * @opcode: enum cx_opcode.
 *
 * Return: constant text.
 */
const char *cx_wqe_opname(u8 opcode);

/**
 * cx_wq_pi() - Producer index of a queue: where the software is.
 * @dev: device.
 * @wq: queue.
 *
 * Return: its doorbell record, 16 bits of it.
 */
u16 cx_wq_pi(struct cx_dev *dev, const struct cx_wq *wq);

/**
 * cx_sq_fetch() - Take the next entry of a send queue, block by block, since it may wrap around.
 * @dev: device.
 * @wq: send queue that is not empty.
 * @w: raw bytes and index are filled.
 */
void cx_sq_fetch(struct cx_dev *dev, struct cx_wq *wq, struct cx_wqe *w);

/**
 * cx_wqe_parse() - Take a fetched send request apart.
 * @dev: device.
 * @sv: service of the queue.
 * @qpn: its number.
 * @w: request; @raw and @index are filled.
 *
 * Return: CX_SYN_OK, or the syndrome the request completes with.
 */
enum cx_syndrome cx_wqe_parse(struct cx_dev *dev, enum cx_service sv, u32 qpn, struct cx_wqe *w);

/**
 * cx_wqe_data_list() - Parse the data segments of a send request.
 * @w: request.
 * @at: where they start, bytes.
 *
 * Return: 0, or -EINVAL if they do not fit the entry.
 */
int cx_wqe_data_list(struct cx_wqe *w, u32 at);

/**
 * cx_wqe_gather() - Read a part of a message from the sender's memory.
 * @dev: device.
 * @pdn: protection domain of the queue.
 * @w: send request.
 * @off: first byte of the message wanted.
 * @buf: room for @len bytes.
 * @len: bytes.
 *
 * Return: 0, or a negative errno of cx_mkey_copy().
 */
int cx_wqe_gather(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, u8 *buf, u32 len);

/**
 * cx_wqe_scatter() - Write a part of a response to the memory that a READ or atomic names.
 * @dev: device.
 * @pdn: protection domain of the queue.
 * @w: request.
 * @off: first byte of the response.
 * @buf: data.
 * @len: bytes.
 *
 * Return: 0, or a negative errno of cx_mkey_copy().
 */
int cx_wqe_scatter(struct cx_dev *dev, u32 pdn, const struct cx_wqe *w, u32 off, const u8 *buf,
		   u32 len);

/**
 * cx_rq_pop() - Take the next receive request.
 * @dev: device.
 * @wq: receive queue or SRQ.
 * @r: filled.
 *
 * Return: false if there is none.
 */
bool cx_rq_pop(struct cx_dev *dev, struct cx_wq *wq, struct cx_rwqe *r);

/**
 * cx_rq_scatter() - Write a part of a message to a receive buffer.
 * @dev: device.
 * @pdn: protection domain of the queue.
 * @r: receive request.
 * @off: first byte of the buffer.
 * @buf: data.
 * @len: bytes.
 *
 * Return: 0, or
 * * -ENOSPC - the buffer is too small
 * * others of cx_mkey_copy().
 */
int cx_rq_scatter(struct cx_dev *dev, u32 pdn, const struct cx_rwqe *r, u32 off, const u8 *buf,
		  u32 len);

#endif
