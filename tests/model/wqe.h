/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: work queue entries: fetching and parsing of send requests, popping of
 * receive requests, and the copies between messages and scatter lists.
 */
#ifndef CX_WQE_H
#define CX_WQE_H

#include "cq.h"
#include "uar.h"

/**
 * enum cx_opcode - Operations of send requests.
 * @CX_OP_NOP: sends nothing, only completes.
 * @CX_OP_SEND_INVAL: SEND that names a key for the receiver to invalidate.
 * @CX_OP_WRITE: RDMA WRITE.
 * @CX_OP_WRITE_IMM: RDMA WRITE with immediate data, which takes a receive request.
 * @CX_OP_SEND: SEND; of the netdev's queue, a frame.
 * @CX_OP_SEND_IMM: SEND with immediate data.
 * @CX_OP_LSO: large send offload: TCP data that the netdev's queue cuts into frames.
 * @CX_OP_READ: RDMA READ.
 * @CX_OP_ATOMIC_CS: compare and swap of 8 bytes.
 * @CX_OP_ATOMIC_FA: fetch and add of 8 bytes.
 * @CX_OP_UMR: changes a memory key; on queues of CX_SV_REG_UMR only.
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
 * @CX_SV_RC: reliable connection.
 * @CX_SV_UC: unreliable connection.
 * @CX_SV_UD: unreliable datagram.
 * @CX_SV_XRC: extended reliable connection: the sender names the SRQ.
 * @CX_SV_DCI: initiator of dynamically connected transport; packets of both sides say this.
 * @CX_SV_QP0: subnet management: queue pair 0 on the wire.
 * @CX_SV_QP1: general services: queue pair 1 on the wire.
 * @CX_SV_REG_UMR: no transport: a queue for memory key updates.
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
 * @addr: address under @lkey, or offset into the entry for inline data.
 * @bytes: length.
 * @lkey: memory key; not used for inline data.
 * @is_inline: the data are in the entry itself.
 */
struct cx_sge {
	u64 addr;
	u32 bytes;
	u32 lkey;
	bool is_inline;
};

/**
 * struct cx_av - An address vector.
 * @dc_key: DC access key; of a datagram, @qkey is in its upper half.
 * @qkey: Q_Key of a datagram; the highest bit set means the queue's own.
 * @dqpn: destination: queue pair or DC target, 24 bits.
 * @grh: a network header is to be sent; RoCE sends one anyway.
 * @lid: destination on InfiniBand.
 * @mac: destination in RoCE.
 * @sgid_index: source, in the GID table.
 * @tclass: traffic class of the network header.
 * @hop_limit: routers it may pass.
 * @flow_label: of the network header, 20 bits.
 * @rgid: GID of the destination.
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
 * @opcode: enum cx_opcode, or what else the driver wrote.
 * @fence: fence mode; from 2 on it waits for READs and atomics before it.
 * @signaled: completes with an entry even without an error.
 * @solicited: asks for a solicited event at the receiver.
 * @index: number of its first block, counts on over 16 bits.
 * @nr_bb: blocks of CX_WQE_BB bytes it takes, at least 1.
 * @imm: immediate data, or the key to invalidate; of a UMR request, the key to change.
 * @av: where it goes; of datagrams and DC initiators only.
 * @xrc_srqn: XRC: SRQ it is for.
 * @raddr: WRITE, READ, atomic: remote address.
 * @rkey: remote key for @raddr.
 * @swap_add: atomic: value to swap in, or to add.
 * @compare: atomic: value to compare with.
 * @bytes: length of the message; of what comes back, for READs and atomics.
 * @nr_sge: entries of @sge.
 * @sge: its data, or where the answer goes, in order.
 * @raw_bytes: length of @raw, a multiple of 16, as the request says.
 * @raw: the entry as it lies in guest memory.
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
 * @index: its number in the queue; of a linked queue, its place.
 * @nr_sge: entries of @sge.
 * @room: bytes it can take, over all of @sge.
 * @sge: buffers, in order; none is inline.
 */
struct cx_rwqe {
	u16 index;
	u32 nr_sge;
	u32 room;
	struct cx_sge sge[CX_MAX_RECV_SGE];
};

/**
 * struct cx_wq - One queue of work requests in guest memory.
 * @ring: memory; belongs to the owner of the queue.
 * @base: where it begins in the ring, bytes.
 * @dbr: address of its doorbell record.
 * @log_size: log2 of its entries; send queues count basic blocks.
 * @log_stride: log2 of the bytes of an entry.
 * @pdn: protection domain that its scatter entries are checked with, 0 for none.
 * @linked: SRQ: the entry names the next one.
 * @signature: entries begin with 16 bytes for a signature, which nothing checks.
 * @ci: entries taken, counts on.
 * @rung: send queue of a QP: entries before this may be taken.
 * @next: SRQ: next entry.
 */
struct cx_wq {
	const struct cx_ring *ring;
	u64 base;
	u64 dbr;
	u32 log_size;
	u32 log_stride;
	u32 pdn;
	bool linked;
	bool signature;
	u16 ci;
	u16 rung;
	u16 next;
};

/**
 * struct cx_pushed - A request that came through the register, not taken yet.
 * @bytes: its length in whole blocks, 0: there is none.
 * @index: number of its first block.
 * @raw: the request.
 */
struct cx_pushed {
	u32 bytes;
	u16 index;
	u8 raw[CX_BF_BYTES];
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
 * cx_pushed_keep() - Keep a request that came through the register until it is taken.
 * @dev: device.
 * @wq: send queue; the request is the next one to be taken.
 * @p: where it is kept.
 * @raw: the request, in whole blocks.
 */
void cx_pushed_keep(struct cx_dev *dev, const struct cx_wq *wq, struct cx_pushed *p, const u8 *raw);

/**
 * cx_sq_fetch() - Take the next entry of a send queue, block by block, since it may wrap around, or
 * as it came through the register.
 * @dev: device.
 * @wq: send queue that is not empty.
 * @p: what cx_pushed_keep() kept of it; empty afterwards.
 * @w: raw bytes and index are filled.
 */
void cx_sq_fetch(struct cx_dev *dev, struct cx_wq *wq, struct cx_pushed *p, struct cx_wqe *w);

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
