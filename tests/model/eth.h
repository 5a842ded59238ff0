/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the objects of the netdev: send and receive queues, TIS, TIR, RQT, and
 * the flow tables that choose a TIR.
 */
#ifndef CX_ETH_H
#define CX_ETH_H

#include "wqe.h"

/**
 * enum cx_ethq_state - States of the netdev's queues.
 * @CX_ETHQ_RST: reset: nothing is sent or received.
 * @CX_ETHQ_RDY: ready.
 * @CX_ETHQ_ERR: a request has failed, or the driver says so: nothing is sent or received.
 */
enum cx_ethq_state {
	CX_ETHQ_RST = 0,
	CX_ETHQ_RDY = 1,
	CX_ETHQ_ERR = 3,
};

/**
 * struct cx_sq - A send queue of the netdev.
 * @obj: head.
 * @state: changed by the driver, and to CX_ETHQ_ERR by an error.
 * @ring: memory of @wq.
 * @wq: queue.
 * @pushed: its next request, if it came through the register.
 * @cq: where it completes; referenced.
 * @uar: page its doorbell has to be rung on.
 * @user_index: for completions: what the driver calls it by.
 * @td: transport domain, 0: of none.
 */
struct cx_sq {
	struct cx_obj obj;
	enum cx_ethq_state state;
	struct cx_ring ring;
	struct cx_wq wq;
	struct cx_pushed pushed;
	struct cx_cq *cq;
	u32 uar;
	u32 user_index;
	u32 td;
};

/**
 * struct cx_tis - A transport interface, send side: the domain of a send queue.
 * @obj: head.
 * @td: transport domain.
 */
struct cx_tis {
	struct cx_obj obj;
	u32 td;
};

/**
 * struct cx_rq - A receive queue of the netdev.
 * @obj: head.
 * @state: changed by the driver, and to CX_ETHQ_ERR by an error.
 * @ring: memory of @wq.
 * @wq: queue.
 * @cq: where it completes; referenced.
 * @user_index: for completions: what the driver calls it by.
 * @counter_set: queue counter set, 0 for none.
 * @keep_vlan: a VLAN tag stays in the frame; else it goes into the completion.
 */
struct cx_rq {
	struct cx_obj obj;
	enum cx_ethq_state state;
	struct cx_ring ring;
	struct cx_wq wq;
	struct cx_cq *cq;
	u32 user_index;
	u32 counter_set;
	bool keep_vlan;
};

/**
 * struct cx_rqt - A table of receive queues, over which a TIR spreads frames.
 * @obj: head; TIRs hold references.
 * @nr: entries of @rqn, at least 1.
 * @rqn: numbers of receive queues; a frame goes to that at its hash modulo @nr.
 */
struct cx_rqt {
	struct cx_obj obj;
	u32 nr;
	u32 rqn[1024];
};

/**
 * struct cx_tir - A transport interface, receive side: where a flow's frames go.
 * @obj: head.
 * @inline_rqn: receive queue of a direct one.
 * @rqtn: table of receive queues of an indirect one; referenced.
 * @indirect: spreads over @rqtn.
 * @td: transport domain.
 * @self_loopback: takes from its own domain too: mask of CX_SELF_LB_.
 */
struct cx_tir {
	struct cx_obj obj;
	u32 inline_rqn;
	u32 rqtn;
	bool indirect;
	u32 td;
	u32 self_loopback;
};

/* called "block" in mlx5_ifc.h; set by drivers to allow it */
#define CX_SELF_LB_UC 1
#define CX_SELF_LB_MC 2

/**
 * struct cx_flow_verdict - Result of the flow tables: the TIRs that get a frame.
 * @tirn: numbers of TIRs; those that find no room are left out.
 * @nr: entries of @tirn.
 */
struct cx_flow_verdict {
	u32 tirn[16];
	u32 nr;
};

/**
 * struct cx_frame_info - What a receive completion says of a frame's headers.
 * @ethertype: behind a VLAN tag, if there is one.
 * @ip_version: 4 or 6, 0 if it is not IP.
 * @ip_protocol: protocol; next header of the first one, for IPv6.
 * @fragment: IPv4: it is a part of a packet; false for IPv6.
 * @hash: of IP addresses and, unless a fragment, ports of TCP or UDP; 0 without IP.
 */
struct cx_frame_info {
	u16 ethertype;
	u8 ip_version;
	u8 ip_protocol;
	bool fragment;
	u32 hash;
};

/**
 * cx_sq_has_one_more() - Whether what is to do is of one length.
 * @dev: device.
 * @sq: send queue.
 * @blocks: that length.
 *
 * Return: true if the queue is ready and so many blocks were posted.
 */
bool cx_sq_has_one_more(struct cx_dev *dev, const struct cx_sq *sq, u32 blocks);

/**
 * cx_sq_run() - Execute all requests of a send queue of the netdev.
 * @dev: device.
 * @sq: send queue; nothing happens unless it is ready.
 * @raw: the next request, in whole blocks, if it was pushed; NULL: it is in memory.
 */
void cx_sq_run(struct cx_dev *dev, struct cx_sq *sq, const u8 *raw);

/**
 * cx_eth_rx() - A frame for the netdev.
 * @dev: device.
 * @frame: whole frame without its check sequence.
 * @len: bytes.
 */
void cx_eth_rx(struct cx_dev *dev, const u8 *frame, u32 len);

/**
 * cx_eth_rx_own() - A multicast frame that was sent here.
 * @dev: device.
 * @frame: whole frame without its check sequence.
 * @len: bytes.
 * @td: transport domain of the sender; its own queues get nothing unless they ask for it.
 */
void cx_eth_rx_own(struct cx_dev *dev, const u8 *frame, u32 len, u32 td);

/**
 * cx_flow_lookup() - Where does a received frame go.
 * @dev: device.
 * @frame: Ethernet frame.
 * @len: bytes, at least 14.
 * @info: filled with what was found in the headers.
 * @v: TIRs are added; none if the frame is to be dropped.
 */
void cx_flow_lookup(struct cx_dev *dev, const u8 *frame, u32 len, struct cx_frame_info *info,
		    struct cx_flow_verdict *v);

#endif
