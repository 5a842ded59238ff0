/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: completion queues: writing of completions, arming, moderation, resize.
 */
#ifndef CX_CQ_H
#define CX_CQ_H

#include "eq.h"

/**
 * enum cx_cqe_op - Opcodes of completions.
 */
enum cx_cqe_op {
	CX_CQE_REQ = 0x0,
	CX_CQE_RESP_WR_IMM = 0x1,
	CX_CQE_RESP_SEND = 0x2,
	CX_CQE_RESP_SEND_IMM = 0x3,
	CX_CQE_RESP_SEND_INV = 0x4,
	CX_CQE_RESIZE = 0x5,
	CX_CQE_REQ_ERR = 0xd,
	CX_CQE_RESP_ERR = 0xe,
	CX_CQE_INVALID = 0xf,
};

/**
 * enum cx_syndrome - Syndromes of error completions.
 */
enum cx_syndrome {
	CX_SYN_OK = 0x00,
	CX_SYN_LOCAL_LENGTH = 0x01,
	CX_SYN_LOCAL_QP_OP = 0x02,
	CX_SYN_LOCAL_PROT = 0x04,
	CX_SYN_FLUSH = 0x05,
	CX_SYN_MW_BIND = 0x06,
	CX_SYN_BAD_RESP = 0x10,
	CX_SYN_LOCAL_ACCESS = 0x11,
	CX_SYN_REMOTE_INVAL_REQ = 0x12,
	CX_SYN_REMOTE_ACCESS = 0x13,
	CX_SYN_REMOTE_OP = 0x14,
	CX_SYN_RETRY_EXC = 0x15,
	CX_SYN_RNR_EXC = 0x16,
	CX_SYN_REMOTE_ABORT = 0x22,
};

/**
 * struct cx_cqe - What a completion says; fields not set are zero.
 */
struct cx_cqe {
	enum cx_cqe_op op;
	enum cx_syndrome syndrome;
	u32 user_index;
	u32 qpn;
	u8 wqe_opcode;
	u16 wqe_counter;
	u32 bytes;
	u32 imm;
	u32 flags_rqpn;
	u16 slid;
	u8 ml_path;
	bool solicited;
	/* Ethernet */
	u16 check_sum;
	u8 hdr_ok;
	u8 hdr_type;
	u16 vlan_info;
	u32 rss_hash;
	u8 rss_type;
};

/**
 * struct cx_cq - A completion queue.
 */
struct cx_cq {
	struct cx_obj obj;
	struct cx_dev *dev;
	struct cx_ring ring;
	struct cx_eq *eq;
	u32 uar;
	u64 dbr;
	u32 log_size;
	u32 page_shift;
	u32 cqe_bytes; /* 64 or 128 */
	u32 pi;
	u32 solicited_pi; /* after the last solicited or error completion */
	u32 notified_pi; /* at the last notification */
	bool armed;
	bool armed_solicited;
	bool overrun_ignore;
	bool in_error;
	u32 max_count; /* moderation: completions, 0 or 1 for none */
	u32 period_us;
	u32 held; /* completions since the last notification */
	QEMUTimer *timer;
};

/**
 * cx_cq_find() - Find a completion queue.
 * @dev: device.
 * @cqn: its number.
 *
 * Return: the queue, or NULL.
 */
struct cx_cq *cx_cq_find(struct cx_dev *dev, u32 cqn);

/**
 * cx_cq_write() - Write one completion and notify.
 * @dev: device.
 * @cq: completion queue.
 * @x: the completion.
 */
void cx_cq_write(struct cx_dev *dev, struct cx_cq *cq, const struct cx_cqe *x);

/**
 * cx_cq_doorbell() - The consumer asks to be notified.
 * @dev: device.
 * @uar: page the doorbell was written to.
 * @val: arm sequence, kind and consumer index in the upper, cqn in the lower half.
 */
void cx_cq_doorbell(struct cx_dev *dev, u32 uar, u64 val);

#endif
