/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the receiving half: one context for a connected QP, one for every
 * initiator that is connected to a DC target.
 */
#ifndef CX_RESPONDER_H
#define CX_RESPONDER_H

#include "wqe.h"
#include "sched.h"
#include "pkt.h"

struct cx_qp;
struct cx_dct;
struct cx_srq;

#define CX_NR_REPLAY 64

/**
 * struct cx_replay - A READ or atomic that was executed, in case the requester asks again.
 */
struct cx_replay {
	u32 psn;
	u32 nr_psn; /* 0: entry not used */
	u64 result; /* of an atomic */
};

/**
 * struct cx_job - An answer that waits for its turn.
 */
struct cx_job {
	QTAILQ_ENTRY(cx_job) link;
	u8 op; /* CX_PKT_ACK, CX_PKT_READ_RESP or CX_PKT_ATOMIC_RESP */
	u8 aeth;
	u8 rnr_timer;
	bool again; /* asked for before: the requester may have gone on without it */
	u32 psn;
	u32 msn;
	u64 va;
	u32 pdn; /* READ: protection domain the key was checked with */
	u32 rkey;
	u32 len; /* READ: bytes of the whole answer */
	u32 off; /* READ: bytes already sent */
	u64 result;
};

/**
 * struct cx_responder - The receiving half of a queue pair, or of a connection to a DC target.
 */
struct cx_responder {
	struct cx_task task;
	struct cx_qp *qp; /* exactly one of the two */
	struct cx_dct *dct;
	u8 dst[6]; /* link address of the requester */
	u8 src[6];
	u8 sgid[16];
	u8 dgid[16];
	u8 l3;
	u32 peer_qpn;
	u32 conn;
	u32 mtu; /* most bytes of a packet it sends ... */
	u32 mtu_in; /* ... and of one it takes */
	u32 epsn;
	u32 msn;
	bool nak_sent;
	u8 msg_op; /* message in progress, 0 for none */
	u32 msg_len;
	u32 msg_off;
	u64 msg_va;
	u32 msg_rkey;
	bool have_rwqe;
	struct cx_rwqe rwqe;
	s64 slow_until; /* us of the clock: no answer of a slow target before */
	u32 replay_next;
	struct cx_replay replay[CX_NR_REPLAY];
	QTAILQ_HEAD(, cx_job) jobs;
};

/**
 * cx_resp_init() - Set a responder up.
 * @r: responder, zeroed.
 */
void cx_resp_init(struct cx_responder *r);

/**
 * cx_resp_slow_over() - An answer of a slow target is due: cx_dev.slow.timer.
 * @opaque: device.
 */
void cx_resp_slow_over(void *opaque);

/**
 * cx_resp_fini() - End it: answers that wait are forgotten.
 * @dev: device.
 * @r: responder.
 */
void cx_resp_fini(struct cx_dev *dev, struct cx_responder *r);

/**
 * cx_resp_reset() - Forget message, answers and history.
 * @dev: device.
 * @r: responder.
 */
void cx_resp_reset(struct cx_dev *dev, struct cx_responder *r);

/**
 * cx_resp_request() - A request packet of a reliable service.
 * @dev: device.
 * @r: responder it is for.
 * @p: packet, its lengths are already checked.
 */
void cx_resp_request(struct cx_dev *dev, struct cx_responder *r, const struct cx_pkt *p);

/**
 * cx_rdma_rx() - A packet of the RDMA transport arrived.
 * @dev: device.
 * @f: its frame.
 * @p: packet.
 * @len: bytes of the packet.
 */
void cx_rdma_rx(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p, u32 len);

/**
 * cx_frame_new() - Allocate a frame.
 * @kind: kind.
 * @data_bytes: room behind the packet's header.
 *
 * Return: the frame, its headers zeroed but for the kind; to be freed with g_free().
 */
struct cx_frame *cx_frame_new(enum cx_frame_kind kind, u32 data_bytes);

/**
 * struct cx_rx_queue - What SEND and immediate data meet at the receiving queue.
 */
struct cx_rx_queue {
	u32 pdn;
	struct cx_cq *cq;
	struct cx_srq *srq;
	struct cx_wq *rq;
	u32 user_index;
	u32 qpn;
	u32 access;
	u32 counter_set;
	u8 rnr_timer;
	u32 log_rra_max;
};
/**
 * cx_resp_queue() - What SENDs to a responder meet: of its queue pair, or of its DC target.
 * @dev: device.
 * @r: responder.
 * @rx: filled.
 */
void cx_resp_queue(struct cx_dev *dev, struct cx_responder *r, struct cx_rx_queue *rx);

/**
 * cx_rx_of_qp() - What SENDs to a queue pair meet.
 * @dev: device.
 * @qp: queue pair.
 * @rx: filled.
 */
void cx_rx_of_qp(struct cx_dev *dev, struct cx_qp *qp, struct cx_rx_queue *rx);

/**
 * cx_rx_pop() - Take a receive request from wherever a queue has its own.
 * @dev: device.
 * @rx: receiving queue.
 * @r: filled.
 *
 * Return: false if there is none.
 */
bool cx_rx_pop(struct cx_dev *dev, const struct cx_rx_queue *rx, struct cx_rwqe *r);

/**
 * cx_rx_datagram() - A SEND for a UD queue.
 * @dev: device.
 * @qp: queue.
 * @p: packet.
 * @slid: LID of the sender, 0 in RoCE.
 */
void cx_rx_datagram(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p, u16 slid);

/**
 * cx_rx_unreliable() - Receive a packet of UC.
 * @dev: device.
 * @qp: queue pair.
 * @p: packet, its lengths are already checked.
 *
 * One out of order, or an error, drops the message and nothing else.
 */
void cx_rx_unreliable(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p);

#endif
