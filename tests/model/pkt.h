/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: what crosses the fabric. A frame is an Ethernet frame of the netdev or
 * a packet of the RDMA transport. The packet has the fields of the InfiniBand
 * headers (BTH, DETH, RETH, AETH, ...) in a form of its own, in the byte order
 * of the host: both ends run on one machine.
 */
#ifndef CX_PKT_H
#define CX_PKT_H

#include "types.h"

/**
 * enum cx_frame_kind - What a frame holds.
 * @CX_FRAME_ETH: Ethernet frame of the netdev, from its destination address on.
 * @CX_FRAME_RDMA: struct cx_pkt.
 */
enum cx_frame_kind {
	CX_FRAME_ETH = 1,
	CX_FRAME_RDMA = 2,
};

/**
 * struct cx_frame - A frame, as it crosses the fabric.
 * @bytes: of the whole frame, this header too.
 * @kind: enum cx_frame_kind.
 * @node: sender.
 * @dst: link address it goes to: MAC, or LID in the last two bytes.
 * @src: link address of the sender, likewise.
 * @data: what @kind says.
 */
struct cx_frame {
	u32 bytes;
	u16 kind;
	u16 node;
	u8 dst[6];
	u8 src[6];
	u8 data[];
} __packed;

/**
 * enum cx_pkt_op - Operations of packets.
 * @CX_PKT_SEND: packet of a SEND.
 * @CX_PKT_WRITE: packet of an RDMA WRITE.
 * @CX_PKT_READ: request of an RDMA READ.
 * @CX_PKT_ATOMIC_CS: request of a compare and swap.
 * @CX_PKT_ATOMIC_FA: request of a fetch and add.
 * @CX_PKT_READ_RESP: packet of the answer to a READ.
 * @CX_PKT_ATOMIC_RESP: answer to an atomic: the value before it.
 * @CX_PKT_ACK: acknowledgement or NAK, as its enum cx_aeth says.
 * @CX_PKT_DC_CONNECT: an initiator asks a target for a connection.
 * @CX_PKT_DC_ACCEPT: the target has it.
 * @CX_PKT_DC_REJECT: the target refuses, for its enum cx_dc_reason; answers requests, too.
 * @CX_PKT_DC_DISCONNECT: the initiator ends it; not answered.
 */
enum cx_pkt_op {
	CX_PKT_SEND = 1,
	CX_PKT_WRITE,
	CX_PKT_READ,
	CX_PKT_ATOMIC_CS,
	CX_PKT_ATOMIC_FA,
	CX_PKT_READ_RESP,
	CX_PKT_ATOMIC_RESP,
	CX_PKT_ACK,
	CX_PKT_DC_CONNECT,
	CX_PKT_DC_ACCEPT,
	CX_PKT_DC_REJECT,
	CX_PKT_DC_DISCONNECT,
};

/**
 * enum cx_pkt_flags - Flags of packets.
 * @CX_PF_FIRST: first packet of a message.
 * @CX_PF_LAST: last packet of a message.
 * @CX_PF_IMM: has immediate data.
 * @CX_PF_SOLICITED: asks for a solicited event.
 * @CX_PF_ACK_REQ: asks for an acknowledgement.
 * @CX_PF_GRH: has a network header.
 * @CX_PF_INVALIDATE: names a key to invalidate.
 */
enum cx_pkt_flags {
	CX_PF_FIRST = 1 << 0,
	CX_PF_LAST = 1 << 1,
	CX_PF_IMM = 1 << 2,
	CX_PF_SOLICITED = 1 << 3,
	CX_PF_ACK_REQ = 1 << 4,
	CX_PF_GRH = 1 << 5,
	CX_PF_INVALIDATE = 1 << 6,
};

/**
 * enum cx_aeth - What an acknowledgement says.
 * @CX_AETH_ACK: all up to this packet has arrived.
 * @CX_AETH_RNR: receiver not ready: there is no receive request.
 * @CX_AETH_SEQ: PSN sequence error: the packet with this number is missing.
 * @CX_AETH_INVAL: invalid request.
 * @CX_AETH_ACCESS: remote access error: the key or the queue does not allow it.
 * @CX_AETH_OP: remote operation error: the receiver's own buffer failed.
 */
enum cx_aeth {
	CX_AETH_ACK,
	CX_AETH_RNR,
	CX_AETH_SEQ,
	CX_AETH_INVAL,
	CX_AETH_ACCESS,
	CX_AETH_OP,
};

/**
 * enum cx_dc_reason - Why a DC target refuses.
 * @CX_DC_NO_TARGET: there is none of this number.
 * @CX_DC_KEY: the DC access key is wrong.
 * @CX_DC_DRAINING: it is drained, or being drained.
 * @CX_DC_FULL: it has as many initiators as it can.
 * @CX_DC_NO_CONTEXT: it has no such connection: answers a request, not a connect.
 */
enum cx_dc_reason {
	CX_DC_NO_TARGET = 1,
	CX_DC_KEY,
	CX_DC_DRAINING,
	CX_DC_FULL,
	CX_DC_NO_CONTEXT,
};

/**
 * struct cx_pkt - A packet of the RDMA transport, in a frame.
 * @op: enum cx_pkt_op.
 * @service: enum cx_service of the sender; a DC target says CX_SV_DCI.
 * @flags: mask of enum cx_pkt_flags.
 * @aeth: enum cx_aeth of an acknowledgement, enum cx_dc_reason of a refusal.
 * @rnr_timer: of CX_AETH_RNR: how long to wait, as coded in InfiniBand, 5 bits.
 * @l3: enum cx_l3.
 * @tclass: traffic class of the network header.
 * @hop_limit: routers it may pass.
 * @pkey: P_Key of requests and of what DC initiators send.
 * @flow_label: of the network header, 20 bits.
 * @dqpn: queue pair or DC target it is for; 0xffffff for a multicast group.
 * @sqpn: UD and DC: queue pair or DC target it is from.
 * @psn: sequence number, 24 bits; of a DC connect, that of the first request.
 * @msn: answers: number of messages executed.
 * @len: bytes of the message; of a READ, those still asked for; of a DC connect, the path MTU.
 * @seg: bytes of the data in this packet, at most 4096.
 * @imm: immediate data, or the key to invalidate.
 * @rkey: memory key of @va.
 * @qkey: UD: Q_Key.
 * @conn: DC: number of the connection.
 * @srqn: XRC: SRQ.
 * @va: WRITE, READ, atomic: address at the receiver.
 * @swap_add: atomic: value to swap in, or to add.
 * @compare: atomic: value to compare with.
 * @dc_key: DC access key of a connect or disconnect.
 * @sgid: GID of the sender.
 * @dgid: GID of the receiver, or of the multicast group.
 * @data: @seg bytes.
 */
struct cx_pkt {
	u8 op;
	u8 service;
	u8 flags;
	u8 aeth;
	u8 rnr_timer;
	u8 l3;
	u8 tclass;
	u8 hop_limit;
	u16 pkey;
	u32 flow_label;
	u32 dqpn;
	u32 sqpn;
	u32 psn;
	u32 msn;
	u32 len;
	u32 seg;
	u32 imm;
	u32 rkey;
	u32 qkey;
	u32 conn;
	u32 srqn;
	u64 va;
	u64 swap_add;
	u64 compare;
	u64 dc_key;
	u8 sgid[16];
	u8 dgid[16];
	u8 data[];
} __packed;

#define CX_FRAME_MAX (sizeof(struct cx_frame) + sizeof(struct cx_pkt) + 10240)

#endif
