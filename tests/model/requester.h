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

/* one send request that was admitted and is not complete */
struct cx_sreq {
	QTAILQ_ENTRY(cx_sreq) link;
	u32 psn; /* of its first packet */
	u32 nr_psn; /* sequence numbers it takes; 0 for a NOP */
	u32 got_psn; /* answers of a READ or atomic received */
	u32 got_bytes;
	bool responds; /* READ or atomic: needs data back */
	bool sent; /* at least one packet of it was */
	bool done;
	enum cx_syndrome error; /* found before sending */
	struct cx_wqe w;
};

enum cx_dc_state {
	CX_DC_IDLE,
	CX_DC_CONNECTING,
	CX_DC_CONNECTED,
};

struct cx_requester {
	struct cx_task task;
	QTAILQ_HEAD(, cx_sreq) list; /* in order of their sequence numbers */
	u32 nr;
	u32 nr_responds;
	struct cx_sreq *held; /* fetched, not admitted yet */
	struct cx_sreq *cur; /* next packet: request ... */
	u32 cur_idx; /* ... and number of the packet in it */
	u32 next_psn; /* of the next request */
	u32 una; /* oldest number not acknowledged */
	u32 implied; /* last implied retransmission, ~0 for none */
	u32 retries;
	u32 rnr_retries;
	bool rnr_wait;
	bool stopped; /* a request failed before it was sent */
	QEMUTimer *timer;
	enum cx_dc_state dc_state;
	struct cx_av dc_target;
	u32 dc_conn;
};

void cx_req_init(struct cx_dev *dev, struct cx_qp *qp);
void cx_req_fini(struct cx_dev *dev, struct cx_qp *qp);
void cx_req_reset(struct cx_dev *dev, struct cx_qp *qp);
void cx_req_start(struct cx_dev *dev, struct cx_qp *qp);
void cx_req_flush(struct cx_dev *dev, struct cx_qp *qp);
bool cx_req_idle(const struct cx_qp *qp);
void cx_req_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p);

/* dci.c */
bool cx_dci_ready(struct cx_dev *dev, struct cx_qp *qp, const struct cx_sreq *r);
void cx_dci_connect(struct cx_dev *dev, struct cx_qp *qp);
void cx_dci_disconnect(struct cx_dev *dev, struct cx_qp *qp);
void cx_dci_answer(struct cx_dev *dev, struct cx_qp *qp, const struct cx_pkt *p);

/* requester.c, for dci.c */
int cx_req_address(struct cx_dev *dev, struct cx_qp *qp, const struct cx_av *av,
		   struct cx_frame *f);
void cx_req_arm_timer(struct cx_dev *dev, struct cx_qp *qp);
void cx_req_go_back(struct cx_dev *dev, struct cx_qp *qp, u32 psn);
void cx_req_fail_head(struct cx_dev *dev, struct cx_qp *qp, enum cx_syndrome why);

#endif
