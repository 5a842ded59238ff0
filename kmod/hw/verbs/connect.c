// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the queue pairs of lanes, from one state to the next, and those that wait in INIT: to make
 * one takes longer than all that a lane needs besides, so some are made beforehand.
 *
 * All have the send queue, the completion queues and the receive queue of their port in common.
 * None is drained here: whoever holds a lane knows what is outstanding, and takes its completions.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "base/log.h"
#include "hw/verbs/lanes_priv.h"

#define KRC_LANE_RETRIES 6 /* 7 is for ever with soft RoCE */
/*
 * A lane waits at least so long for an answer, 134 ms (InfiniBand encoding): software that is kept
 * from running answers late, and a lane that breaks is broken for all that use it.
 */
#define KRC_LANE_ACK_TIMEOUT 15U
#define KRC_LANE_RNR_RETRIES 6 /* 7 would retry for ever */
#define KRC_LANE_RNR_TIMER 12 /* 0.64 ms, InfiniBand encoding */
#define KRC_LANE_HOP_LIMIT 64

void krc_lane_way(const struct krc_lanes *lanes, const struct krc_lane_peer *peer,
		  struct rdma_ah_attr *ret_attr)
{
	const struct ib_device *ibdev = lanes->queues.ibdev;
	bool ethernet = peer->flags & KRP_DCT_ETHERNET;
	union ib_gid gid;

	memset(ret_attr, 0, sizeof(*ret_attr));
	memcpy(gid.raw, peer->gid, sizeof(gid.raw));
	ret_attr->type = rdma_ah_find_type((struct ib_device *)ibdev, lanes->port);
	rdma_ah_set_port_num(ret_attr, lanes->port);
	rdma_ah_set_sl(ret_attr, peer->sl);
	if (ethernet || rdma_is_grh_required(ibdev, lanes->port))
		rdma_ah_set_grh(ret_attr, &gid, 0, lanes->gid_index, KRC_LANE_HOP_LIMIT,
				peer->traffic_class);
	if (ethernet)
		memcpy(ret_attr->roce.dmac, peer->mac, sizeof(peer->mac));
	else
		rdma_ah_set_dlid(ret_attr, peer->lid);
}

/* Event of a queue pair. Hard interrupt context, perhaps. */
static void krc_lane_qp_event(struct ib_event *event, void *context)
{
	struct krc_lane_qp *qp = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		WRITE_ONCE(qp->fatal, true);
		krc_lanes_kick(qp->lanes);
		break;
	default:
		break;
	}
}

static int krc_lane_qp_init(struct krc_lane_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = qp->lanes->port,
		.pkey_index = qp->lanes->queues.pkey_index,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	WRITE_ONCE(qp->fatal, false);
	return ib_modify_qp(qp->qp, &attr,
			    IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

/* Return: a queue pair in INIT, or NULL. */
static struct krc_lane_qp *krc_lane_qp_new(struct krc_lanes *lanes)
{
	const struct krc_lanes_queues *queues = &lanes->queues;
	struct ib_qp_init_attr init = {
		.event_handler = krc_lane_qp_event,
		.send_cq = queues->send_cq,
		.recv_cq = queues->recv_cq,
		.srq = queues->srq,
		.cap = { .max_send_wr = queues->send_depth,
			 .max_recv_wr = queues->srq ? 0 : 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct krc_lane_qp *qp;
	int err;

	if (atomic_read(&lanes->qps) >= KRC_LANES_QPS)
		return NULL; /* they are not destroyed as fast as lanes end */
	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	if (!qp)
		return NULL;
	qp->lanes = lanes;
	init.qp_context = qp;
	qp->qp = ib_create_qp(queues->pd, &init);
	err = PTR_ERR_OR_ZERO(qp->qp);
	if (!err) {
		err = krc_lane_qp_init(qp);
		if (!err) {
			atomic_inc(&lanes->qps);
			return qp;
		}
		ib_destroy_qp(qp->qp);
	}
	krc_port_err_limited(queues->ibdev, lanes->port, "no queue pair for a lane (%d)\n", err);
	kfree(qp);
	return NULL;
}

void krc_lane_qp_free(struct krc_lane_qp *qp)
{
	if (!qp)
		return;
	if (qp->qp)
		ib_destroy_qp(qp->qp);
	atomic_dec(&qp->lanes->qps);
	kfree(qp);
}

/* Work item: destroy what has rested, which may take long; see krc_lane_qp_put(). */
void krc_lane_qps_reap(struct work_struct *work)
{
	struct krc_lanes *lanes = container_of(work, struct krc_lanes, reap);
	struct krc_lane_qp *qp;

	do {
		spin_lock_bh(&lanes->lock);
		qp = list_first_entry_or_null(&lanes->dead, struct krc_lane_qp, list);
		if (qp)
			list_del(&qp->list);
		spin_unlock_bh(&lanes->lock);
		krc_lane_qp_free(qp);
	} while (qp);
}

void krc_lane_qps_refill(struct krc_lanes *lanes)
{
	struct krc_lane_qp *qp;

	while (lanes->spare_nr < KRC_LANES_SPARE) {
		qp = krc_lane_qp_new(lanes);
		if (!qp)
			return;
		list_add_tail(&qp->list, &lanes->spare);
		lanes->spare_nr++;
	}
}

struct krc_lane_qp *krc_lane_qp_take(struct krc_lanes *lanes)
{
	struct krc_lane_qp *qp = list_first_entry_or_null(&lanes->spare, struct krc_lane_qp, list);

	if (!qp)
		return krc_lane_qp_new(lanes);
	list_del(&qp->list);
	lanes->spare_nr--;
	return qp;
}

void krc_lane_qp_put(struct krc_lanes *lanes, struct krc_lane_qp *qp)
{
	if (!qp)
		return;
	/*
	 * One that was connected is not connected again: rxe (6.1 and 6.12) keeps some of what it knows
	 * of its last requests over RESET, and tells the first of the next ones a wrong outcome. One that
	 * has failed before is not in INIT.
	 */
	if (qp->used || lanes->stopping || lanes->spare_nr >= 2 * KRC_LANES_SPARE) {
		spin_lock_bh(&lanes->lock);
		list_add_tail(&qp->list, &lanes->dead);
		spin_unlock_bh(&lanes->lock);
		queue_work(system_unbound_wq, &lanes->reap);
		return;
	}
	list_add_tail(&qp->list, &lanes->spare);
	lanes->spare_nr++;
}

static int krc_lane_qp_rtr(struct krc_lanes *lanes, struct krc_lane_qp *qp,
			   const struct krc_lane_peer *to, const struct krp_lane_end *own,
			   const struct krp_lane_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = own->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = own->max_rd_atomic,
		.min_rnr_timer = KRC_LANE_RNR_TIMER,
	};

	qp->used = true;
	krc_lane_way(lanes, to, &attr.ah_attr);
	return ib_modify_qp(qp->qp, &attr,
			    IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

int krc_lane_qp_connect(struct krc_lanes *lanes, struct krc_lane_qp *qp,
			const struct krc_lane_peer *to, const struct krp_lane_end *own,
			const struct krp_lane_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = max(lanes->services.ack_timeout, KRC_LANE_ACK_TIMEOUT),
		.retry_cnt = KRC_LANE_RETRIES,
		.rnr_retry = KRC_LANE_RNR_RETRIES,
		.sq_psn = own->psn,
		.max_rd_atomic = min(peer->max_rd_atomic, lanes->max_rd),
	};
	int err = krc_lane_qp_rtr(lanes, qp, to, own, peer);

	if (err)
		return err;
	return ib_modify_qp(qp->qp, &attr,
			    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

int krc_lane_qp_move(struct krc_lane_qp *qp, enum ib_qp_state to)
{
	struct ib_qp_attr attr = { .qp_state = to };

	qp->used = true; /* it is not in INIT any more */
	return qp->qp ? ib_modify_qp(qp->qp, &attr, IB_QP_STATE) : 0;
}
