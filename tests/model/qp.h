/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: queue pairs: the object, its context and its state.
 */
#ifndef CX_QP_H
#define CX_QP_H

#include "requester.h"
#include "responder.h"
#include "srq.h"

/**
 * enum cx_qp_state - States of a queue pair, numbered as in its context.
 * @CX_QPS_RST: reset: sends and receives nothing.
 * @CX_QPS_INIT: initialised: receive requests may be posted, nothing is received.
 * @CX_QPS_RTR: ready to receive.
 * @CX_QPS_RTS: ready to send.
 * @CX_QPS_SQER: send queue error: sends nothing, receives.
 * @CX_QPS_SQD: send queue drained; no command leads there.
 * @CX_QPS_ERR: error: all requests are flushed.
 */
enum cx_qp_state {
	CX_QPS_RST = 0,
	CX_QPS_INIT = 1,
	CX_QPS_RTR = 2,
	CX_QPS_RTS = 3,
	CX_QPS_SQER = 4,
	CX_QPS_SQD = 5,
	CX_QPS_ERR = 6,
};

/**
 * enum cx_rq_type - Where a queue pair's receive requests come from.
 * @CX_RQ_OWN: from a receive queue of its own.
 * @CX_RQ_SRQ: from an RMP or XRC SRQ.
 * @CX_RQ_XRQ: from an extended receive queue: refused.
 * @CX_RQ_NONE: it takes none.
 */
enum cx_rq_type {
	CX_RQ_OWN = 0,
	CX_RQ_SRQ = 1,
	CX_RQ_XRQ = 2,
	CX_RQ_NONE = 3,
};

/**
 * struct cx_qp - A queue pair.
 * @obj: head.
 * @dev: device, for timers.
 * @sv: transport service it was created for.
 * @state: changed by the driver, and by errors.
 * @qpc: attributes as the driver set them.
 * @pd: protection domain, NULL for none; referenced.
 * @uar: page its doorbell has to be rung on.
 * @xrcd: XRC only: domain; referenced.
 * @cq_send: where sends complete, NULL only without @sq; referenced.
 * @cq_recv: where receives complete, NULL only for CX_RQ_NONE; referenced.
 * @srq: of CX_RQ_SRQ, else NULL; referenced.
 * @user_index: for completions: what the driver calls it by.
 * @no_sq: it has no send queue: target of XRC.
 * @rq_type: where its receive requests come from.
 * @ring: memory of @rq, and of @sq behind it.
 * @sq: send queue.
 * @pushed: the next request of @sq, if it came through the register.
 * @rq: receive queue of CX_RQ_OWN.
 * @req: sending half: requests, retransmission, DC connection.
 * @resp: receiving half: message in progress, answers.
 * @comm_est: CX_EV_COMM_EST was raised, since the reset.
 * @err_link: in cx_dev.err_qps: receive queue to be flushed on and on.
 * @err_listed: it is there.
 */
struct cx_qp {
	struct cx_obj obj;
	struct cx_dev *dev;
	enum cx_service sv;
	enum cx_qp_state state;
	u8 qpc[256];
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
	struct cx_pushed pushed;
	struct cx_wq rq;
	struct cx_requester req;
	struct cx_responder resp;
	bool comm_est;
	QTAILQ_ENTRY(cx_qp) err_link;
	bool err_listed;
};

/**
 * cx_qp_find() - Find a queue pair.
 * @dev: device.
 * @qpn: its number.
 *
 * Return: the queue pair, or NULL.
 */
struct cx_qp *cx_qp_find(struct cx_dev *dev, u32 qpn);

/**
 * cx_qp_find_special() - Find the queue pair of numbers 0 and 1 on the wire.
 * @dev: device.
 * @dqpn: 0 or 1.
 *
 * Return: the queue pair of that service that can receive, or NULL.
 */
struct cx_qp *cx_qp_find_special(struct cx_dev *dev, u32 dqpn);

/**
 * cx_qp_doorbell() - Requests were posted.
 * @dev: device.
 * @qp: queue pair.
 * @val: what was written to the register: the first 8 bytes of the last request.
 * @pi: what the doorbell record said then.
 * @raw: that request, in whole blocks, if it was pushed and is the only one posted since the
 *	doorbell before; else NULL: it is in memory.
 *
 * What the doorbell record said then is where the queue ends until the next doorbell: a
 * record that is written and not rung starts nothing. The last request has to end there
 * too, and a record may not go back, nor past the end of the ring.
 */
void cx_qp_doorbell(struct cx_dev *dev, struct cx_qp *qp, u64 val, u16 pi, const u8 *raw);

/**
 * cx_qp_has_one_more() - Whether what was posted since the last doorbell is all that is to do.
 * @dev: device.
 * @qp: queue pair.
 * @blocks: how many blocks that has to be.
 *
 * Return: true if so many blocks were posted, and no request before them waits to be taken.
 */
bool cx_qp_has_one_more(struct cx_dev *dev, const struct cx_qp *qp, u32 blocks);

/**
 * cx_qp_break() - A catastrophic error: nothing completes, an event tells of it.
 * @dev: device.
 * @qpn: queue pair.
 *
 * Return: 0, or -ENOENT.
 */
int cx_qp_break(struct cx_dev *dev, u32 qpn);

/**
 * cx_qp_error() - Move a queue pair to the error state and flush it.
 * @dev: device.
 * @qp: queue pair; stays as it is if it is there already.
 */
void cx_qp_error(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_qp_flush_rq() - Complete all receive requests as flushed, if the queue is the queue pair's
 * own.
 * @dev: device.
 * @qp: queue pair.
 */
void cx_qp_flush_rq(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_qp_sq_error() - Stop the send queue alone, as unreliable services do.
 * @dev: device.
 * @qp: queue pair; stays as it is unless it is ready to send.
 */
void cx_qp_sq_error(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_qp_mtu() - Path MTU of a queue pair.
 * @qp: queue pair.
 *
 * Return: bytes; 4096 where the driver has set none.
 */
u32 cx_qp_mtu(const struct cx_qp *qp);

/**
 * cx_qp_is_connected() - Whether a queue pair is of a connected service: RC, UC or XRC.
 * @qp: queue pair.
 *
 * Return: true if it is.
 */
bool cx_qp_is_connected(const struct cx_qp *qp);

/**
 * cx_qp_is_datagram() - Whether a queue pair is of a datagram service: UD, QP0 or QP1.
 * @qp: queue pair.
 *
 * Return: true if it is.
 */
bool cx_qp_is_datagram(const struct cx_qp *qp);

/**
 * cx_qp_reset() - Forget the state of a queue pair, as 2RST_QP does; its attributes stay.
 * @dev: device.
 * @qp: queue pair.
 */
void cx_qp_reset(struct cx_dev *dev, struct cx_qp *qp);

/**
 * cx_qp_err_poll() - Flush receive requests posted after the error; called by a timer.
 * @opaque: device.
 */
void cx_qp_err_poll(void *opaque);

/**
 * cx_qp_pdn() - Protection domain of a queue pair.
 * @qp: queue pair.
 *
 * Return: its number; 0 for the queue for memory key updates, which belongs to none.
 */
static inline u32 cx_qp_pdn(const struct cx_qp *qp)
{
	return qp->pd ? qp->pd->id : 0;
}

#define CX_QP_GET(qp, f) CX_GET(qpc, (qp)->qpc, f)
#define CX_QP_PATH(qp, f) CX_GET(ads, CX_ADDR(qpc, (qp)->qpc, primary_address_path), f)

/**
 * struct cx_mcg - Membership of a queue pair in a multicast group.
 * @gid: of the group.
 * @qpn: number of the queue pair, of service UD.
 */
struct cx_mcg {
	u8 gid[16];
	u32 qpn;
};
/**
 * cx_mcg_forget_qp() - Remove a queue pair from all multicast groups.
 * @dev: device.
 * @qpn: its number.
 */
void cx_mcg_forget_qp(struct cx_dev *dev, u32 qpn);

/**
 * cx_mcg_deliver() - Give a multicast datagram to every member here but its sender.
 * @dev: device.
 * @f: frame.
 * @p: its packet.
 */
void cx_mcg_deliver(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p);

/**
 * cx_mcg_loopback() - Give a multicast datagram that was sent here to this device, too, since the
 * fabric does not send a frame back to its node.
 * @dev: device.
 * @f: frame; copied. Nothing happens unless it is for a group.
 */
void cx_mcg_loopback(struct cx_dev *dev, const struct cx_frame *f);

#endif
