/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: queue pairs: the object, its context and its state.
 */
#ifndef CX_QP_H
#define CX_QP_H

#include "requester.h"
#include "responder.h"
#include "srq.h"

enum cx_qp_state {
	CX_QPS_RST = 0,
	CX_QPS_INIT = 1,
	CX_QPS_RTR = 2,
	CX_QPS_RTS = 3,
	CX_QPS_SQER = 4,
	CX_QPS_SQD = 5,
	CX_QPS_ERR = 6,
};

enum cx_rq_type {
	CX_RQ_OWN = 0,
	CX_RQ_SRQ = 1,
	CX_RQ_XRQ = 2,
	CX_RQ_NONE = 3,
};

struct cx_qp {
	struct cx_obj obj;
	struct cx_dev *dev;
	enum cx_service sv;
	enum cx_qp_state state;
	u8 qpc[256]; /* attributes as the driver set them */
	struct cx_obj *pd;
	u32 uar;
	struct cx_obj *xrcd;
	struct cx_cq *cq_send;
	struct cx_cq *cq_recv;
	struct cx_srq *srq;
	u32 user_index;
	bool no_sq;
	enum cx_rq_type rq_type;
	struct cx_ring ring;
	struct cx_wq sq;
	struct cx_wq rq;
	struct cx_requester req;
	struct cx_responder resp;
	bool comm_est;
	QTAILQ_ENTRY(cx_qp) err_link; /* receive queue to be flushed on and on */
	bool err_listed;
};

struct cx_qp *cx_qp_find(struct cx_dev *dev, u32 qpn);
struct cx_qp *cx_qp_find_special(struct cx_dev *dev, u32 dqpn);
void cx_qp_doorbell(struct cx_dev *dev, struct cx_qp *qp, u64 val);
int cx_qp_break(struct cx_dev *dev, u32 qpn);
void cx_qp_error(struct cx_dev *dev, struct cx_qp *qp);
void cx_qp_flush_rq(struct cx_dev *dev, struct cx_qp *qp);
void cx_qp_sq_error(struct cx_dev *dev, struct cx_qp *qp);
u32 cx_qp_mtu(const struct cx_qp *qp);
bool cx_qp_is_connected(const struct cx_qp *qp);
bool cx_qp_is_datagram(const struct cx_qp *qp);
void cx_qp_reset(struct cx_dev *dev, struct cx_qp *qp);
void cx_qp_err_poll(void *opaque);

/* the queue for memory key updates belongs to no PD */
static inline u32 cx_qp_pdn(const struct cx_qp *qp)
{
	return qp->pd ? qp->pd->id : 0;
}

#define CX_QP_GET(qp, f) CX_GET(qpc, (qp)->qpc, f)
#define CX_QP_PATH(qp, f) CX_GET(ads, CX_ADDR(qpc, (qp)->qpc, primary_address_path), f)

/* mcg.c */
struct cx_mcg {
	u8 gid[16];
	u32 qpn;
};
void cx_mcg_forget_qp(struct cx_dev *dev, u32 qpn);
void cx_mcg_deliver(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p);
void cx_mcg_loopback(struct cx_dev *dev, const struct cx_frame *f);

#endif
