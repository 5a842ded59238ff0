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
 * @psn: its sequence number.
 * @nr_psn: sequence numbers it took; 0: entry not used.
 * @result: of an atomic: the value before it.
 */
struct cx_replay {
	u32 psn;
	u32 nr_psn;
	u64 result;
};

/**
 * struct cx_job - An answer that waits for its turn.
 * @link: in the responder's list of jobs.
 * @op: CX_PKT_ACK, CX_PKT_READ_RESP or CX_PKT_ATOMIC_RESP.
 * @aeth: of CX_PKT_ACK: enum cx_aeth.
 * @rnr_timer: of CX_AETH_RNR: how long the requester waits, as coded in InfiniBand.
 * @again: asked for before: the requester may have gone on without it.
 * @psn: sequence number of the next packet to send.
 * @msn: messages executed when the answer was made.
 * @va: READ: address of the first byte.
 * @pdn: READ: protection domain the key was checked with.
 * @rkey: READ: memory key of @va; checked again when each packet leaves.
 * @len: READ: bytes of the whole answer.
 * @off: READ: bytes already sent.
 * @result: atomic: the value before it.
 */
struct cx_job {
	QTAILQ_ENTRY(cx_job) link;
	u8 op;
	u8 aeth;
	u8 rnr_timer;
	bool again;
	u32 psn;
	u32 msn;
	u64 va;
	u32 pdn;
	u32 rkey;
	u32 len;
	u32 off;
	u64 result;
};

/**
 * struct cx_responder - The receiving half of a queue pair, or of a connection to a DC target.
 * @task: sends the answers.
 * @qp: queue pair it is in, or NULL: exactly one of the two.
 * @dct: DC target it is connected to, or NULL.
 * @dst: link address of the requester.
 * @src: our link address that the requester sends to.
 * @sgid: our GID, as the requester names it.
 * @dgid: GID of the requester.
 * @l3: enum cx_l3 of the last request.
 * @peer_qpn: queue pair of the requester.
 * @conn: DC: number of the connection; 0 in a queue pair.
 * @mtu: most bytes of a packet it sends ...
 * @mtu_in: ... and of one it takes.
 * @epsn: sequence number of the packet that is expected.
 * @msn: messages executed, modulo 2^24.
 * @nak_sent: a NAK is out: no other for a hole before the expected packet comes.
 * @msg_op: message in progress: CX_PKT_SEND or CX_PKT_WRITE, 0 for none.
 * @msg_len: bytes of the message, as its first packet says.
 * @msg_off: bytes of it received.
 * @msg_va: WRITE: where it goes.
 * @msg_rkey: WRITE: memory key of @msg_va.
 * @have_rwqe: @rwqe is taken and not complete.
 * @rwqe: receive request of the message.
 * @slow_until: no answer of a slow target before, in us of the virtual clock.
 * @replay_next: entries of @replay ever written; the next one is at this, modulo their number.
 * @replay: the latest READs and atomics.
 */
struct cx_responder {
	struct cx_task task;
	struct cx_qp *qp;
	struct cx_dct *dct;
	u8 dst[6];
	u8 src[6];
	u8 sgid[16];
	u8 dgid[16];
	u8 l3;
	u32 peer_qpn;
	u32 conn;
	u32 mtu;
	u32 mtu_in;
	u32 epsn;
	u32 msn;
	bool nak_sent;
	u8 msg_op;
	u32 msg_len;
	u32 msg_off;
	u64 msg_va;
	u32 msg_rkey;
	bool have_rwqe;
	struct cx_rwqe rwqe;
	s64 slow_until;
	u32 replay_next;
	struct cx_replay replay[CX_NR_REPLAY];
	/* private: not for kernel-doc: answers, in the order in which they leave */
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
 * @pdn: protection domain that keys are checked with.
 * @cq: where it completes, NULL if nowhere.
 * @srq: shared receive queue it takes requests from, or NULL.
 * @rq: receive queue of its own, or NULL.
 * @user_index: for completions: what the driver calls it by.
 * @qpn: for completions: its number.
 * @access: rights it gives to the requester, mask of enum cx_access.
 * @counter_set: queue counter set, 0 for none.
 * @rnr_timer: how long a sender that finds no request is to wait, as coded in InfiniBand.
 * @log_rra_max: log2 of the READs and atomics that may wait for their answers.
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
