/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the sending half of a QP: requests in flight, their packets, answers,
 * retransmission, and the connection of a DC initiator.
 */
#ifndef CX_REQUESTER_H
#define CX_REQUESTER_H

#include "wqe.h"
#include "sched.h"
#include "pkt.h"

struct cx_qp;

/**
 * struct cx_sreq - One send request that was admitted and is not complete.
 * @link: in the requester's list.
 * @psn: of its first packet.
 * @nr_psn: sequence numbers it takes; 0 for what sends nothing.
 * @got_psn: answers of a READ or atomic received, packets.
 * @got_bytes: data of those that are written to memory.
 * @responds: READ or atomic: needs data back.
 * @sent: at least one packet of it was sent.
 * @done: answered; completes when all before it have.
 * @error: found before sending, or in the answer; CX_SYN_OK for none.
 * @w: the request.
 */
struct cx_sreq {
	QTAILQ_ENTRY(cx_sreq) link;
	u32 psn;
	u32 nr_psn;
	u32 got_psn;
	u32 got_bytes;
	bool responds;
	bool sent;
	bool done;
	enum cx_syndrome error;
	struct cx_wqe w;
};

/**
 * enum cx_dc_state - State of the connection of a DC initiator.
 * @CX_DC_IDLE: there is none.
 * @CX_DC_CONNECTING: asked for, not answered.
 * @CX_DC_CONNECTED: accepted: requests are sent.
 */
enum cx_dc_state {
	CX_DC_IDLE,
	CX_DC_CONNECTING,
	CX_DC_CONNECTED,
};

/**
 * struct cx_requester - The sending half of a queue pair.
 * @task: sends the requests.
 * @nr: requests in the list.
 * @nr_responds: READs and atomics of those.
 * @held: fetched, not admitted yet.
 * @cur: next packet: request, NULL when all in flight is sent ...
 * @cur_idx: ... and number of the packet in it.
 * @next_psn: of the next request.
 * @una: oldest number not acknowledged.
 * @implied: where the last implied retransmission began, so that it is not repeated; ~0: none.
 * @retries: time-outs since the last progress.
 * @rnr_retries: RNR NAKs since the last progress.
 * @rnr_wait: the receiver had no request: @timer says when to try again.
 * @stopped: a request failed before it was sent: no others are fetched.
 * @timer: ends the wait for an answer, or after an RNR NAK.
 * @dc_state: DC: state of the connection.
 * @dc_target: DC: address vector of the target.
 * @dc_aimed: @dc_target is that of a request since the reset.
 * @dc_conn: DC: number of the connection, cx_dev.dc_conns when it was asked for.
 */
struct cx_requester {
	struct cx_task task;
	/* private: not for kernel-doc: requests in flight, in order of their sequence numbers */
	QTAILQ_HEAD(, cx_sreq) list;
	/* public: */
	u32 nr;
	u32 nr_responds;
	struct cx_sreq *held;
	struct cx_sreq *cur;
	u32 cur_idx;
	u32 next_psn;
	u32 una;
	u32 implied;
	u32 retries;
	u32 rnr_retries;
	bool rnr_wait;
	bool stopped;
	QEMUTimer *timer;
	enum cx_dc_state dc_state;
	struct cx_av dc_target;
	bool dc_aimed;
	u32 dc_conn;
};

/**
 * cx_req_init() - Set the sending half of a queue pair up.
 * @dev: device.
 * @qp: queue pair, zeroed.
 */
void cx_req_init(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_fini() - End it: requests are forgotten.
 * @dev: device.
 * @qp: queue pair.
 */
void cx_req_fini(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_reset() - Forget all requests without a completion, and end a DC connection.
 * @dev: device.
 * @qp: queue pair.
 */
void cx_req_reset(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_start() - Have a queue pair send what was posted.
 * @dev: device.
 * @qp: queue pair; nothing happens if it has no send queue.
 */
void cx_req_start(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_flush() - Complete all requests, in flight and not, as flushed.
 * @dev: device.
 * @qp: queue pair.
 */
void cx_req_flush(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_idle() - Whether nothing is in flight.
 * @qp: queue pair.
 *
 * Return: true if no request is.
 */
bool cx_req_idle(const struct cx_qp *qp);

/**
 * cx_req_answer() - A response packet came for this QP.
 * @dev: device.
 * @qp: queue pair.
 * @p: packet.
 */
void cx_req_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p);

/* dci.c */
/**
 * cx_dci_ready() - May a request be admitted.
 * @dev: device.
 * @qp: initiator.
 * @r: request.
 *
 * Starts the connection if the request is the first one to its target.
 *
 * Return: false while requests to another target are in flight.
 */
bool cx_dci_ready(struct cx_dev *dev, struct cx_qp *qp, const struct cx_sreq *r);

/**
 * cx_dci_connect() - Ask, or ask again, for the connection to dc_target.
 * @dev: device.
 * @qp: initiator.
 */
void cx_dci_connect(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_dci_disconnect() - Give the connection up, and tell the target.
 * @dev: device.
 * @qp: initiator.
 */
void cx_dci_disconnect(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_dci_answer() - The target accepted or refused.
 * @dev: device.
 * @qp: initiator.
 * @p: packet.
 */
void cx_dci_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p);

/* requester.c, for dci.c */
/**
 * cx_req_address() - Fill source and destination of a packet.
 * @dev: device.
 * @qp: queue pair.
 * @av: address vector of the request; not used by connected services.
 * @f: frame with the packet.
 *
 * Return: 0, or -EINVAL if the source GID is not there.
 */
int cx_req_address(struct cx_dev *dev, struct cx_qp *qp, const struct cx_av *av,
		   struct cx_frame *f);

/**
 * cx_req_arm_timer() - Start, or start again, to wait for an answer.
 * @dev: device.
 * @qp: queue pair; its ack_timeout says for how long, but at least the device's floor.
 *
 * A timeout of 0 is for ever, but for an initiator without the property endless_timeout.
 */
void cx_req_arm_timer(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_req_go_back() - Send again from a sequence number on.
 * @dev: device.
 * @qp: queue pair.
 * @psn: number of the first packet to send again.
 */
void cx_req_go_back(struct cx_dev *dev, struct cx_qp *qp, u32 psn);

/**
 * cx_req_fail_head() - Complete the oldest request as failed, and stop the queue.
 * @dev: device.
 * @qp: queue pair; nothing happens if nothing is in flight.
 * @why: syndrome of its completion.
 */
void cx_req_fail_head(struct cx_dev *dev, struct cx_qp *qp, enum cx_syndrome why);

#endif
