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
 */
enum cx_frame_kind {
	CX_FRAME_ETH = 1,
	CX_FRAME_RDMA = 2,
};

/**
 * struct cx_frame - A frame, as it crosses the fabric.
 */
struct cx_frame {
	u32 bytes; /* of the whole frame */
	u16 kind;
	u16 node; /* sender */
	u8 dst[6];
	u8 src[6];
	u8 data[];
} __packed;

/**
 * enum cx_pkt_op - Operations of packets.
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
 */
struct cx_pkt {
	u8 op;
	u8 service; /* enum cx_service of the sender */
	u8 flags;
	u8 aeth; /* enum cx_aeth or enum cx_dc_reason */
	u8 rnr_timer;
	u8 l3; /* enum cx_l3 */
	u8 tclass;
	u8 hop_limit;
	u16 pkey; /* of requests and DC connects */
	u32 flow_label;
	u32 dqpn;
	u32 sqpn; /* UD and DC */
	u32 psn;
	u32 msn;
	u32 len; /* of the message */
	u32 seg; /* of the data in this packet */
	u32 imm;
	u32 rkey;
	u32 qkey;
	u32 conn; /* DC: number of the connection */
	u32 srqn; /* XRC */
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
