/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the objects of the netdev: send and receive queues, TIS, TIR, RQT, and
 * the flow tables that choose a TIR.
 */
#ifndef CX_ETH_H
#define CX_ETH_H

#include "wqe.h"

enum cx_ethq_state {
	CX_ETHQ_RST = 0,
	CX_ETHQ_RDY = 1,
	CX_ETHQ_ERR = 3,
};

struct cx_sq {
	struct cx_obj obj;
	enum cx_ethq_state state;
	struct cx_ring ring;
	struct cx_wq wq;
	struct cx_cq *cq;
	u32 uar;
	u32 user_index;
	u32 td; /* transport domain, 0: of none */
};

struct cx_tis {
	struct cx_obj obj;
	u32 td;
};

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

struct cx_rqt {
	struct cx_obj obj;
	u32 nr;
	u32 rqn[1024];
};

struct cx_tir {
	struct cx_obj obj;
	u32 inline_rqn;
	u32 rqtn;
	bool indirect;
	u32 td;
	u32 self_loopback; /* takes from its own domain too: CX_SELF_LB_ */
};

/* called "block" in mlx5_ifc.h; set by drivers to allow it */
#define CX_SELF_LB_UC 1
#define CX_SELF_LB_MC 2

/* result of the flow tables */
struct cx_flow_verdict {
	u32 tirn[16];
	u32 nr;
};

struct cx_frame_info {
	u16 ethertype;
	u8 ip_version;
	u8 ip_protocol;
	bool fragment;
	u32 hash;
};

void cx_sq_run(struct cx_dev *dev, struct cx_sq *sq);
void cx_eth_rx(struct cx_dev *dev, const u8 *frame, u32 len);
void cx_eth_rx_own(struct cx_dev *dev, const u8 *frame, u32 len, u32 td);
void cx_flow_lookup(struct cx_dev *dev, const u8 *frame, u32 len, struct cx_frame_info *info,
		    struct cx_flow_verdict *v);

#endif
