/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: completion queues: writing of completions, arming, moderation, resize.
 */
#ifndef CX_CQ_H
#define CX_CQ_H

#include "eq.h"

/**
 * enum cx_cqe_op - Opcodes of completions.
 * @CX_CQE_REQ: requester: a send request is complete.
 * @CX_CQE_RESP_WR_IMM: responder: WRITE with immediate data.
 * @CX_CQE_RESP_SEND: responder: SEND; a frame of the netdev, too.
 * @CX_CQE_RESP_SEND_IMM: responder: SEND with immediate data.
 * @CX_CQE_RESP_SEND_INV: responder: SEND with invalidate.
 * @CX_CQE_RESIZE: the last one of the old buffer: go on in the new one.
 * @CX_CQE_REQ_ERR: requester error.
 * @CX_CQE_RESP_ERR: responder error.
 * @CX_CQE_INVALID: not written yet; drivers fill buffers with it.
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
 * @CX_SYN_OK: no error.
 * @CX_SYN_LOCAL_LENGTH: local length error.
 * @CX_SYN_LOCAL_QP_OP: local QP operation error.
 * @CX_SYN_LOCAL_PROT: local protection error.
 * @CX_SYN_FLUSH: work request flushed error.
 * @CX_SYN_MW_BIND: memory window bind error; of a memory key update, too.
 * @CX_SYN_BAD_RESP: bad response error.
 * @CX_SYN_LOCAL_ACCESS: local access error; not raised here.
 * @CX_SYN_REMOTE_INVAL_REQ: remote invalid request error.
 * @CX_SYN_REMOTE_ACCESS: remote access error.
 * @CX_SYN_REMOTE_OP: remote operation error.
 * @CX_SYN_RETRY_EXC: transport retry counter exceeded.
 * @CX_SYN_RNR_EXC: RNR retry counter exceeded.
 * @CX_SYN_REMOTE_ABORT: remote aborted error; not raised here.
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
 * @op: kind of completion.
 * @syndrome: why, for CX_CQE_REQ_ERR and CX_CQE_RESP_ERR.
 * @user_index: what the driver calls the queue by, 24 bits.
 * @qpn: number of the queue pair, DC target or queue of the netdev.
 * @wqe_opcode: requester: enum cx_opcode of the request.
 * @wqe_counter: index of the request in its queue.
 * @bytes: length of the message; with the room for the GRH, of a datagram.
 * @imm: immediate data, key to invalidate, or P_Key of a datagram for QP1.
 * @flags_rqpn: responder: queue pair it is from, 24 bits; UD: L3 type and GRH above it.
 * @slid: responder: LID it is from, 0 in RoCE.
 * @ml_path: path bits of the LID; always 0 here.
 * @solicited: the sender asked for an event: not written, but wakes a queue armed for such.
 * @check_sum: Ethernet: one's complement sum of all behind the frame's header.
 * @hdr_ok: Ethernet: headers that are whole and right: 1 L2, 2 L3, 4 L4.
 * @hdr_type: Ethernet: 1 if a VLAN tag was taken out; 4 for IPv6, 8 for IPv4.
 * @vlan_info: Ethernet: the tag that was taken out.
 * @rss_hash: Ethernet: hash of addresses and ports; an indirect TIR chooses the queue by it.
 * @rss_type: Ethernet: what @rss_hash is of; 0 for nothing.
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
	u16 check_sum;
	u8 hdr_ok;
	u8 hdr_type;
	u16 vlan_info;
	u32 rss_hash;
	u8 rss_type;
};

/**
 * struct cx_cq - A completion queue.
 * @obj: head; queues that complete here hold references.
 * @dev: device, for @timer.
 * @ring: memory of the completions.
 * @eq: where it notifies; referenced.
 * @uar: page its doorbell has to be rung on.
 * @dbr: address of its doorbell record, whose first word is the consumer index.
 * @log_size: log2 of its entries.
 * @page_shift: log2 of the bytes of a page of @ring.
 * @cqe_bytes: 64 or 128; the completion is in the last 64.
 * @pi: producer index: completions written, counts on.
 * @solicited_pi: @pi after the last solicited or error completion.
 * @notified_pi: @pi at the last notification.
 * @armed: the next completion that counts notifies.
 * @armed_solicited: only solicited and error completions count.
 * @overrun_ignore: writes without a look at the consumer index.
 * @in_error: it was overrun: nothing is written any more.
 * @max_count: moderation: completions that are waited for, 0 or 1 for none.
 * @period_us: moderation: how long they are waited for, 0 for not at all.
 * @held: completions that came while it was armed and are not notified yet.
 * @timer: ends @period_us.
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
	u32 cqe_bytes;
	u32 pi;
	u32 solicited_pi;
	u32 notified_pi;
	bool armed;
	bool armed_solicited;
	bool overrun_ignore;
	bool in_error;
	u32 max_count;
	u32 period_us;
	u32 held;
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
