// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: targets: what peers find behind their lanes, which are queue pairs of both ends; and the
 * receive buffers, which all lanes of a port share.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "base/log.h"
#include "hw/verbs/verbs.h"

static void krc_verbs_on_receive(struct ib_cq *cq, void *context)
{
	struct krc_verbs_target *target = context;

	if (target->srq)
		target->hw->events->received(target->recv_owner);
}

/* The completion queue is in error, which only a bug here can cause. */
static void krc_verbs_on_receive_error(struct ib_event *event, void *context)
{
	struct krc_verbs_target *target = context;

	krc_port_err_limited(target->hw->ibdev, target->port, "receives of lanes: event %d\n",
			     event->event);
	if (target->recv_owner)
		target->hw->events->receive_fatal(target->recv_owner);
}

static void krc_verbs_on_srq(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_SRQ_ERR)
		krc_verbs_on_receive_error(event, context);
}

/* Make what receives; a queue pair needs its completion queue even if it receives nothing. */
static int krc_verbs_receive_create(struct krc_verbs_target *target, u32 vector)
{
	struct krc_verbs *v = target->hw;
	struct ib_cq_init_attr attr = {
		.cqe = target->depth + 1,
		.comp_vector = vector % max(v->ibdev->num_comp_vectors, 1),
	};
	struct ib_srq_init_attr init = { .event_handler = krc_verbs_on_srq,
					 .srq_context = target,
					 .attr = { .max_wr = target->depth, .max_sge = 1 },
					 .srq_type = IB_SRQT_BASIC };
	int err;

	target->recv_cq = ib_create_cq(v->ibdev, krc_verbs_on_receive, krc_verbs_on_receive_error,
				       target, &attr);
	if (IS_ERR(target->recv_cq))
		return PTR_ERR(target->recv_cq);
	if (!target->depth)
		return 0;
	target->srq = ib_create_srq(v->pd, &init);
	if (!IS_ERR(target->srq))
		return 0;
	err = PTR_ERR(target->srq);
	target->srq = NULL;
	ib_destroy_cq(target->recv_cq);
	return err;
}

static void krc_verbs_receive_destroy(struct krc_verbs_target *target)
{
	if (target->srq)
		ib_destroy_srq(target->srq);
	ib_destroy_cq(target->recv_cq);
}

static int krc_verbs_target_objects(struct krc_verbs_target *target, u16 gid_index, u32 vector,
				    struct krp_value *value)
{
	struct krc_verbs *v = target->hw;
	struct krc_lanes_queues queues = { .ibdev = v->ibdev,
					   .pd = v->pd,
					   .pkey_index = v->ports[target->port].pkey_index,
					   .address = krc_verbs_address,
					   .send_depth = KRC_VERBS_SEND_DEPTH };
	int err;

	err = krc_verbs_receive_create(target, vector);
	if (err)
		return err;
	err = krc_verbs_cq_create(target);
	if (err)
		goto err_receive;
	queues.send_cq = target->send_cq;
	queues.recv_cq = target->recv_cq;
	queues.srq = target->srq;
	target->lanes =
		krc_lanes_create((struct krc_hw *)v, target->port, gid_index, &queues, value);
	err = PTR_ERR_OR_ZERO(target->lanes);
	if (!err)
		return 0;
	krc_verbs_cq_destroy(target);
err_receive:
	krc_verbs_receive_destroy(target);
	return err;
}

struct krc_hw_target *krc_verbs_target_create(struct krc_hw *hw, u32 port, u16 gid_index,
					      u64 dc_key, const struct krc_hw_receive *receive,
					      struct krp_value *value)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_verbs_target *target;
	struct krp_value filled = *value;
	int err;

	if (receive && receive->depth > v->attr.recv_depth_max)
		return ERR_PTR(-EINVAL);
	err = krc_verbs_own_address(hw, port, gid_index, &filled);
	if (err)
		return ERR_PTR(err);
	target = kzalloc(sizeof(*target), GFP_KERNEL);
	if (!target)
		return ERR_PTR(-ENOMEM);
	target->hw = v;
	target->port = port;
	target->calls = &krc_verbs_lane_calls;
	target->depth = receive ? receive->depth : 0;
	target->recv_owner = target->depth ? receive->owner : NULL;
	filled.kind = KRP_KIND_LANE;
	filled.len = 0;
	filled.dct.dctn = 0;
	filled.dct.dc_key = 0;
	err = krc_verbs_target_objects(target, gid_index, receive ? receive->vector : 0, &filled);
	if (err) {
		kfree(target);
		return ERR_PTR(err);
	}
	v->ports[port].target = target;
	*value = filled;
	return (struct krc_hw_target *)target;
}

void krc_verbs_target_destroy(struct krc_hw_target *target)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);

	t->hw->ports[t->port].target = NULL;
	krc_lanes_destroy(t->lanes);
	krc_verbs_cq_destroy(t);
	krc_verbs_receive_destroy(t);
	kfree(t);
}

int krc_verbs_lanes_start(struct krc_hw_target *target, const struct krc_hw_lanes *services)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);

	return krc_lanes_start(t->lanes, services);
}

void krc_verbs_lanes_stop(struct krc_hw_target *target)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);

	krc_lanes_stop(t->lanes);
}

void krc_verbs_lanes_stats(struct krc_hw_target *target, struct krc_lanes_stats *ret_stats)
{
	krc_lanes_stats(krc_verbs_target_of(target)->lanes, ret_stats);
}

/* ---- receives */

int krc_verbs_recv_post(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
			u32 bytes)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);
	struct ib_sge sge = { .addr = local_addr, .length = bytes, .lkey = lkey };
	struct ib_recv_wr wr = { .wr_id = cookie, .sg_list = &sge, .num_sge = 1 };
	int err;

	if (!t->srq || !bytes || bytes > t->hw->attr.length_max)
		return -EINVAL;
	if (t->used == t->depth)
		return -ENOSPC;
	err = ib_post_srq_recv(t->srq, &wr, NULL);
	if (err)
		return err == -ENOMEM ? -ENOSPC : -EINVAL;
	t->used++;
	return 0;
}

void krc_verbs_recv_ring(struct krc_hw_target *target)
{
}

static void krc_verbs_received(const struct ib_wc *from, struct krc_recv_wc *wc)
{
	*wc = (struct krc_recv_wc){ .cookie = from->wr_id, .fault = KRC_FAULT_NONE };
	if (from->status == IB_WC_SUCCESS && from->opcode == IB_WC_RECV &&
	    !(from->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE))) {
		wc->bytes = from->byte_len;
		return;
	}
	/* also what nobody of ours sends, such as immediates, and SENDs that invalidate a key */
	wc->fault = KRC_FAULT_FATAL;
	wc->syndrome = from->status;
	wc->vendor = from->vendor_err;
	/* the latter is what rxe says of a message that is longer than its buffer */
	if (krc_verbs_fault(from->status) == KRC_FAULT_LOCAL || from->status == IB_WC_LOC_QP_OP_ERR)
		wc->fault = KRC_FAULT_LOCAL;
}

int krc_verbs_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);
	struct ib_wc from;
	int n = 0;

	if (!t->srq)
		return 0;
	while (n < max && ib_poll_cq(t->recv_cq, 1, &from) > 0) {
		if (from.wc_flags & IB_WC_WITH_INVALIDATE && from.status == IB_WC_SUCCESS)
			krc_verbs_key_undone(t->hw, from.ex.invalidate_rkey);
		krc_verbs_received(&from, &wc[n++]);
		t->used -= !!t->used;
	}
	return n;
}

void krc_verbs_recv_arm(struct krc_hw_target *target)
{
	struct krc_verbs_target *t = krc_verbs_target_of(target);

	if (t->srq)
		ib_req_notify_cq(t->recv_cq, IB_CQ_NEXT_COMP);
}
