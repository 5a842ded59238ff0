// SPDX-License-Identifier: GPL-2.0-only
/*
 * A network in memory for the lanes of several ports: see krc_lane_net.h.
 */
#include <linux/slab.h>

#include "krp_hash.h"
#include "tests/krc_lane_net.h"
#include "tests/krc_test_wait.h"

#define KRC_NET_GRH_BYTES 40
#define KRC_NET_KEY_ID 7

/* ---- completions; the lock is held */

static struct krc_net_node *krc_net_node_of(const struct ib_device *ibdev)
{
	return container_of(ibdev, struct krc_net_device, ibdev)->node;
}

static void krc_net_complete(struct ib_cq *ibcq, const struct ib_wc *wc)
{
	struct krc_net_cq *cq = container_of(ibcq, struct krc_net_cq, cq);
	bool armed = cq->armed;

	if (cq->head - cq->tail == KRC_NET_WCS)
		return;
	cq->wc[cq->head++ % KRC_NET_WCS] = *wc;
	cq->armed = false;
	if (armed && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

/* All buffers of a queue pair come back unused. */
static void krc_net_flush(struct krc_net_qp *qp)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .qp = &qp->qp };

	for (; qp->tail != qp->head; qp->tail++) {
		wc.wr_id = qp->ids[qp->tail % KRC_SHAKE_RECVS];
		krc_net_complete(qp->qp.recv_cq, &wc);
	}
}

/* ---- packets; the lock is held */

static void krc_net_land(struct krc_net_qp *qp, const struct krc_net_held *packet)
{
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .qp = &qp->qp };
	u32 i = qp->tail % KRC_SHAKE_RECVS;

	if (qp->tail == qp->head)
		return; /* there is no buffer */
	qp->tail++;
	wc.wr_id = qp->ids[i];
	wc.byte_len = KRC_NET_GRH_BYTES + packet->bytes;
	if (wc.byte_len > KRC_SHAKE_STRIDE) { /* as rxe of 6.1 takes it */
		wc.status = IB_WC_LOC_QP_OP_ERR;
		qp->state = IB_QPS_ERR;
		krc_net_complete(qp->qp.recv_cq, &wc);
		krc_net_flush(qp);
		return;
	}
	memcpy((u8 *)(uintptr_t)qp->bufs[i] + KRC_NET_GRH_BYTES, packet->p, packet->bytes);
	krc_net_complete(qp->qp.recv_cq, &wc);
}

static void krc_net_deliver(struct krc_net *net, const struct krc_net_held *packet)
{
	struct krc_net_qp *qp;

	if (!packet->to || packet->to > KRC_NET_NODES)
		return;
	list_for_each_entry(qp, &net->at[packet->to - 1].qps, list)
		if (qp->qp.qp_num == packet->qpn && qp->qkey == packet->qkey &&
		    qp->qp.qp_type == IB_QPT_UD &&
		    (qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS))
			krc_net_land(qp, packet);
}

static u64 krc_net_draw(struct krc_net *net, u64 below)
{
	net->seed += KRP_GOLDEN;
	return krp_mix64(net->seed) % below;
}

static enum krc_net_fate krc_net_fate(struct krc_net *net, const struct krp_lane_packet *p)
{
	if (net->first[p->type]) {
		net->first[p->type]--;
		return KRC_NET_LOSE;
	}
	if (net->fate)
		return net->fate(net, p);
	if (!net->odds)
		return KRC_NET_PASS;
	if (!krc_net_draw(net, net->odds))
		return KRC_NET_LOSE;
	if (!krc_net_draw(net, net->odds))
		return KRC_NET_TWICE;
	return krc_net_draw(net, net->odds) ? KRC_NET_PASS : KRC_NET_HOLD;
}

static void krc_net_release(struct krc_net *net)
{
	while (net->held_nr)
		krc_net_deliver(net, &net->held[--net->held_nr]);
}

static void krc_net_fly(struct krc_net *net, const struct krc_net_held *packet)
{
	const struct krp_lane_packet *p = (const struct krp_lane_packet *)packet->p;

	if (p->type >= KRP_LANE_TYPES)
		return;
	net->count[p->type]++;
	net->last[p->type] = *p;
	switch (krc_net_fate(net, p)) {
	case KRC_NET_LOSE:
		net->lost++;
		break;
	case KRC_NET_HOLD:
		if (net->held_nr < KRC_NET_HELD)
			net->held[net->held_nr++] = *packet;
		break;
	case KRC_NET_TWICE:
		krc_net_deliver(net, packet);
		fallthrough;
	default:
		krc_net_deliver(net, packet);
		if (net->odds)
			krc_net_release(net); /* it has overtaken them */
		break;
	}
}

/* ---- the device */

static int krc_net_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad_wr)
{
	struct krc_net *net = krc_net_node_of(ibqp->device)->net;
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp);
	struct ib_wc wc = { .wr_id = wr->wr_id, .status = IB_WC_SUCCESS, .qp = ibqp };
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct krc_net_held packet = { .qpn = ud->remote_qpn, .qkey = ud->remote_qkey };
	int err = -EINVAL;

	if (ibqp->qp_type != IB_QPT_UD || wr->sg_list->length > sizeof(packet.p))
		return -EINVAL;
	packet.bytes = wr->sg_list->length;
	packet.to = container_of(ud->ah, struct krc_net_ah, ah)->lid;
	memcpy(packet.p, (const void *)(uintptr_t)wr->sg_list->addr, packet.bytes);
	spin_lock_bh(&net->lock);
	if (qp->state == IB_QPS_RTS) {
		krc_net_complete(ibqp->send_cq, &wc);
		krc_net_fly(net, &packet);
		err = 0;
	} else if (qp->state == IB_QPS_ERR) {
		wc.status = IB_WC_WR_FLUSH_ERR;
		krc_net_complete(ibqp->send_cq, &wc);
		err = 0;
	}
	spin_unlock_bh(&net->lock);
	return err;
}

static int krc_net_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr)
{
	struct krc_net *net = krc_net_node_of(ibqp->device)->net;
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp);
	int err = 0;

	spin_lock_bh(&net->lock);
	if (qp->state == IB_QPS_RESET)
		err = -EINVAL;
	else if (qp->head - qp->tail == KRC_SHAKE_RECVS)
		err = -ENOMEM;
	if (!err) {
		qp->bufs[qp->head % KRC_SHAKE_RECVS] = wr->sg_list->addr;
		qp->ids[qp->head++ % KRC_SHAKE_RECVS] = wr->wr_id;
		if (qp->state == IB_QPS_ERR)
			krc_net_flush(qp);
	}
	spin_unlock_bh(&net->lock);
	return err;
}

static int krc_net_poll_cq(struct ib_cq *ibcq, int max, struct ib_wc *wc)
{
	struct krc_net_node *node = krc_net_node_of(ibcq->device);
	struct krc_net_cq *cq = container_of(ibcq, struct krc_net_cq, cq);
	struct krc_net *net = node->net;
	int n = 0;

	spin_lock_bh(&net->lock);
	while (n < max && cq->tail != cq->head)
		wc[n++] = cq->wc[cq->tail++ % KRC_NET_WCS];
	WRITE_ONCE(node->taken, node->taken + n);
	spin_unlock_bh(&net->lock);
	return n;
}

static int krc_net_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct krc_net *net = krc_net_node_of(ibcq->device)->net;
	struct krc_net_cq *cq = container_of(ibcq, struct krc_net_cq, cq);
	int missed;

	spin_lock_bh(&net->lock);
	cq->armed = true;
	missed = cq->tail != cq->head;
	spin_unlock_bh(&net->lock);
	return missed;
}

/* The last argument has another type in later kernels. */
static int krc_net_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, void *rest)
{
	ibcq->cqe = KRC_NET_WCS;
	krc_net_node_of(ibcq->device)->cqs++;
	return 0;
}

static int krc_net_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	krc_net_node_of(ibcq->device)->cqs--;
	return 0;
}

static int krc_net_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
			     struct ib_udata *udata)
{
	struct krc_net_node *node = krc_net_node_of(ibqp->device);
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp);
	struct krc_net *net = node->net;

	spin_lock_bh(&net->lock);
	ibqp->qp_num = net->next_qpn++;
	qp->state = IB_QPS_RESET;
	list_add_tail(&qp->list, &node->qps);
	node->qps_nr++;
	spin_unlock_bh(&net->lock);
	return 0;
}

static int krc_net_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct krc_net_node *node = krc_net_node_of(ibqp->device);
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp);

	spin_lock_bh(&node->net->lock);
	list_del(&qp->list);
	node->qps_nr--;
	spin_unlock_bh(&node->net->lock);
	return 0;
}

static bool krc_net_way(enum ib_qp_state from, enum ib_qp_state to)
{
	switch (to) {
	case IB_QPS_RESET:
	case IB_QPS_ERR:
		return true;
	case IB_QPS_INIT:
		return from == IB_QPS_RESET;
	case IB_QPS_RTR:
		return from == IB_QPS_INIT;
	case IB_QPS_RTS:
		return from == IB_QPS_RTR;
	default:
		return false;
	}
}

static void krc_net_take_over(struct krc_net_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT)
		qp->port = attr->port_num;
	if (mask & IB_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		qp->lid = rdma_ah_get_dlid(&attr->ah_attr);
	if (mask & IB_QP_DEST_QPN)
		qp->dest = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		qp->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		qp->sq_psn = attr->sq_psn;
	if (mask & IB_QP_PATH_MTU)
		qp->mtu = attr->path_mtu;
}

static int krc_net_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			     struct ib_udata *udata)
{
	struct krc_net *net = krc_net_node_of(ibqp->device)->net;
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp);
	int err = -EINVAL;

	spin_lock_bh(&net->lock);
	if (mask & IB_QP_STATE && krc_net_way(qp->state, attr->qp_state)) {
		qp->state = attr->qp_state;
		if (qp->state == IB_QPS_RESET) {
			qp->tail = qp->head; /* without completions */
			qp->dest = 0;
		} else if (qp->state == IB_QPS_ERR) {
			krc_net_flush(qp);
		}
		krc_net_take_over(qp, attr, mask);
		err = 0;
	}
	spin_unlock_bh(&net->lock);
	return err;
}

static int krc_net_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
			     struct ib_udata *udata)
{
	struct krc_net_node *node = krc_net_node_of(ibah->device);

	container_of(ibah, struct krc_net_ah, ah)->lid = rdma_ah_get_dlid(attr->ah_attr);
	node->ahs++;
	return 0;
}

static int krc_net_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	krc_net_node_of(ibah->device)->ahs--;
	return 0;
}

static const struct ib_device_ops krc_net_ops = {
	.post_send = krc_net_post_send,
	.post_recv = krc_net_post_recv,
	.poll_cq = krc_net_poll_cq,
	.req_notify_cq = krc_net_req_notify_cq,
	.create_cq = (void *)krc_net_create_cq,
	.destroy_cq = krc_net_destroy_cq,
	.create_qp = krc_net_create_qp,
	.destroy_qp = krc_net_destroy_qp,
	.modify_qp = krc_net_modify_qp,
	.create_ah = krc_net_create_ah,
	.destroy_ah = krc_net_destroy_ah,
	INIT_RDMA_OBJ_SIZE(ib_cq, krc_net_cq, cq),
	INIT_RDMA_OBJ_SIZE(ib_qp, krc_net_qp, qp),
	INIT_RDMA_OBJ_SIZE(ib_ah, krc_net_ah, ah),
};

/* ---- what a node knows */

static struct krc_net_node *krc_net_find(struct krc_net *net, const u8 *gid)
{
	u32 i = gid[KRP_GID_BYTES - 1] - 1U;

	return i < KRC_NET_NODES ? &net->at[i] : NULL;
}

static int krc_net_cached(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_net_node *node = arg, *other = krc_net_find(node->net, key->gid);

	if (!READ_ONCE(node->knows) || !other || memcmp(other->gid, key->gid, KRP_GID_BYTES) ||
	    !other->record.generation)
		return -ENOENT;
	*ret_value = other->record;
	return 0;
}

static int krc_net_lookup(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_net_node *node = arg, *other = krc_net_find(node->net, key->gid);

	node->lookups++;
	if (node->learns)
		WRITE_ONCE(node->key, node->learns);
	if (!other || memcmp(other->gid, key->gid, KRP_GID_BYTES) || !other->record.generation)
		return -ENOENT;
	*ret_value = other->record;
	return 0;
}

static bool krc_net_has_keys(void *arg)
{
	return ((struct krc_net_node *)arg)->key;
}

void krc_net_sign(u64 key, struct krp_lane_packet *p)
{
	u64 mac;

	memset(p->key_id, 0, sizeof(p->key_id));
	memset(p->mac, 0, sizeof(p->mac));
	p->key_id[0] = KRC_NET_KEY_ID;
	mac = krp_xxh64(p, offsetof(struct krp_lane_packet, mac), key);
	memcpy(p->mac, &mac, sizeof(mac));
}

static int krc_net_sign_own(void *arg, const u8 *key_id, struct krp_lane_packet *p)
{
	krc_net_sign(((struct krc_net_node *)arg)->key, p);
	return 0;
}

static int krc_net_verify(void *arg, const struct krp_lane_packet *p)
{
	struct krp_lane_packet right = *p;
	struct krc_net_node *node = arg;

	WRITE_ONCE(node->verified, node->verified + 1);
	krc_net_sign(node->key, &right);
	return memcmp(&right, p, sizeof(right)) ? -EACCES : 0;
}

static int krc_net_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
			   const struct krp_value *value, struct krc_hw_address *ret_address)
{
	struct krc_lane_peer peer = { .generation = value->generation,
				      .ud_qpn = le32_to_cpu(value->dct.ud_qpn),
				      .ud_qkey = le32_to_cpu(value->dct.ud_qkey),
				      .lid = le16_to_cpu(value->dct.lid),
				      .mtu = value->dct.mtu };

	memcpy(peer.gid, gid->raw, sizeof(peer.gid));
	memcpy(ret_address, &peer, sizeof(peer));
	return 0;
}

/* ---- life */

static void krc_net_device_create(struct krc_net *net, struct krc_net_node *node)
{
	struct krc_net_device *dev = ib_alloc_device(krc_net_device, ibdev);

	KUNIT_ASSERT_NOT_NULL(net->test, dev);
	dev->node = node;
	dev_set_name(&dev->ibdev.dev, "krcnet%u", node->lid);
	dev->ibdev.ops = krc_net_ops;
	dev->ibdev.phys_port_cnt = 1;
	dev->ibdev.attrs.max_qp_rd_atom = 16;
	dev->ibdev.attrs.max_qp_init_rd_atom = 16;
	node->port_data[1].immutable.core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	dev->ibdev.port_data = node->port_data;
	node->dev = dev;
	node->pd.device = &dev->ibdev;
	node->rc_cq.device = &dev->ibdev;
	INIT_LIST_HEAD(&node->qps);
}

static void krc_net_ready(struct krc_lane_holder *holder, u32 turn)
{
	struct krc_net_holder *h = container_of(holder, struct krc_net_holder, holder);

	KUNIT_EXPECT_EQ(h->node->net->test, turn, h->turn);
	KUNIT_EXPECT_NE(h->node->net->test, softirq_count(), 0);
	WRITE_ONCE(h->ready, h->ready + 1);
}

static void krc_net_lost(struct krc_lane_holder *holder, u32 turn, int err)
{
	struct krc_net_holder *h = container_of(holder, struct krc_net_holder, holder);

	WRITE_ONCE(h->err, err);
	smp_store_release(&h->lost, h->lost + 1); /* with the reason */
}

struct krc_net *krc_net_create(struct kunit *test)
{
	struct krc_net *net = kvzalloc(sizeof(*net), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, net);
	net->test = test;
	spin_lock_init(&net->lock);
	net->next_qpn = 17;
	net->seed = 1;
	for (i = 0; i < KRC_NET_NODES; i++) {
		net->at[i].net = net;
		net->at[i].lid = i + 1;
		net->at[i].key = 0x6b6579;
		net->at[i].knows = true;
		/* generations of earlier tests are over */
		net->at[i].generation = ktime_get_boottime_ns();
		net->at[i].gid[0] = 0xfe;
		net->at[i].gid[KRP_GID_BYTES - 1] = i + 1;
		krc_net_device_create(net, &net->at[i]);
	}
	for (i = 0; i < KRC_NET_HOLDERS; i++) {
		net->holders[i].node = &net->at[0];
		net->holders[i].holder.ready = krc_net_ready;
		net->holders[i].holder.lost = krc_net_lost;
	}
	return net;
}

void krc_net_up(struct krc_net *net, u32 at)
{
	struct krc_net_node *node = &net->at[at];
	struct krc_lanes_queues queues = { .ibdev = &node->dev->ibdev,
					   .pd = &node->pd,
					   .address = krc_net_address,
					   .send_cq = &node->rc_cq,
					   .recv_cq = &node->rc_cq,
					   .send_depth = 16 };
	struct krc_hw_lanes services = { .ack_timeout = 14,
					 .cached = krc_net_cached,
					 .lookup = krc_net_lookup,
					 .has_keys = krc_net_has_keys,
					 .sign = krc_net_sign_own,
					 .verify = krc_net_verify,
					 .arg = node };
	struct krp_value value = { .kind = KRP_KIND_LANE };

	node->lanes = krc_lanes_create((struct krc_hw *)node, 1, 0, &queues, &value);
	KUNIT_ASSERT_FALSE(net->test, IS_ERR(node->lanes));
	value.generation = cpu_to_le64(node->generation + 100);
	value.dct.lid = cpu_to_le16(node->lid);
	value.dct.mtu = 4;
	value.dct.port = 1;
	node->record = value;
	node->generation += 100;
	services.generation = node->generation;
	memcpy(services.gid.raw, node->gid, KRP_GID_BYTES);
	services.value = value;
	KUNIT_ASSERT_EQ(net->test, krc_lanes_start(node->lanes, &services), 0);
}

void krc_net_down(struct krc_net *net, u32 at)
{
	struct krc_net_node *node = &net->at[at];

	if (!node->lanes)
		return;
	krc_lanes_stop(node->lanes);
	KUNIT_EXPECT_EQ(net->test, node->lanes->payers_nr, 0);
	KUNIT_EXPECT_EQ(net->test, node->lanes->table.active, 0);
	krc_lanes_destroy(node->lanes);
	node->lanes = NULL;
	KUNIT_EXPECT_EQ(net->test, node->qps_nr, 0);
	KUNIT_EXPECT_EQ(net->test, node->ahs, 0);
	KUNIT_EXPECT_EQ(net->test, node->cqs, 0);
}

void krc_net_destroy(struct krc_net *net)
{
	u32 i;

	if (!net)
		return;
	for (i = 0; i < KRC_NET_HOLDERS; i++)
		if (net->holders[i].node->lanes)
			krc_net_give_back(net, i, false);
	for (i = 0; i < KRC_NET_NODES; i++) {
		krc_net_down(net, i);
		net->at[i].dev->ibdev.port_data = NULL; /* ib_core would free it */
		ib_dealloc_device(&net->at[i].dev->ibdev);
	}
	kvfree(net);
}

/* ---- what a test does */

void krc_net_peer(struct krc_net *net, u32 at, struct krc_lane_peer *ret_peer)
{
	struct krc_hw_address address;
	union ib_gid gid;

	memcpy(gid.raw, net->at[at].gid, sizeof(gid.raw));
	krc_net_address(NULL, 1, 0, &gid, &net->at[at].record, &address);
	memcpy(ret_peer, &address, sizeof(*ret_peer));
}

void krc_net_want_peer(struct krc_net *net, u32 i, u32 from, const struct krc_lane_peer *peer,
		       u32 index)
{
	struct krc_net_holder *h = &net->holders[i];

	h->node = &net->at[from];
	h->ready = 0;
	h->lost = 0;
	h->err = 0;
	krc_lanes_hold(h->node->lanes, peer, index, ++h->turn, &h->holder);
}

void krc_net_want(struct krc_net *net, u32 i, u32 from, u32 to, u32 index)
{
	struct krc_lane_peer peer;

	krc_net_peer(net, to, &peer);
	krc_net_want_peer(net, i, from, &peer, index);
}

void krc_net_loses(struct krc_net *net, u32 i, int err)
{
	struct krc_net_holder *h = &net->holders[i];

	/* Pairs with the release in krc_net_lost(). */
	krc_test_wait(net->test, smp_load_acquire(&h->lost));
	KUNIT_EXPECT_EQ(net->test, READ_ONCE(h->err), err);
}

void krc_net_give_back(struct krc_net *net, u32 i, bool broken)
{
	struct krc_net_holder *h = &net->holders[i];

	krc_lanes_release(h->node->lanes, &h->holder, broken);
	krc_lanes_sync(h->node->lanes, &h->holder);
}

struct krc_net_qp *krc_net_joined(struct krc_net *net, struct ib_qp *ibqp)
{
	struct krc_net_qp *qp = container_of(ibqp, struct krc_net_qp, qp), *other, *found = NULL;
	u16 lid = krc_net_node_of(ibqp->device)->lid;

	spin_lock_bh(&net->lock);
	if (qp->state == IB_QPS_RTS && qp->lid && qp->lid <= KRC_NET_NODES)
		list_for_each_entry(other, &net->at[qp->lid - 1].qps, list)
			if (other->qp.qp_num == qp->dest && other->dest == ibqp->qp_num &&
			    other->lid == lid && other->mtu == qp->mtu &&
			    other->rq_psn == qp->sq_psn && other->sq_psn == qp->rq_psn &&
			    other->state == IB_QPS_RTS)
				found = other;
	spin_unlock_bh(&net->lock);
	return found;
}

void krc_net_has(struct krc_net *net, u32 i)
{
	struct krc_net_holder *h = &net->holders[i];

	krc_test_wait(net->test, READ_ONCE(h->ready));
	KUNIT_EXPECT_EQ(net->test, READ_ONCE(h->lost), 0);
	KUNIT_ASSERT_NOT_NULL(net->test, h->holder.qp);
	KUNIT_EXPECT_NOT_NULL(net->test, krc_net_joined(net, h->holder.qp));
}

void krc_net_send(struct krc_net *net, u32 to, const void *data, u32 bytes)
{
	const struct krp_value *record = &net->at[to].record;
	struct krc_net_held packet = { .bytes = bytes,
				       .to = net->at[to].lid,
				       .qpn = le32_to_cpu(record->dct.ud_qpn),
				       .qkey = le32_to_cpu(record->dct.ud_qkey) };

	memcpy(packet.p, data, min_t(u32, bytes, sizeof(packet.p)));
	spin_lock_bh(&net->lock);
	krc_net_deliver(net, &packet);
	spin_unlock_bh(&net->lock);
}

void krc_net_let_go(struct krc_net *net)
{
	spin_lock_bh(&net->lock);
	krc_net_release(net);
	spin_unlock_bh(&net->lock);
}

u32 krc_net_active(struct krc_net *net, u32 at)
{
	struct krc_lanes *lanes = net->at[at].lanes;
	u32 active;

	spin_lock_bh(&lanes->lock);
	active = lanes->table.active;
	spin_unlock_bh(&lanes->lock);
	return active;
}

u32 krc_net_sent(struct krc_net *net, u32 type)
{
	u32 sent;

	spin_lock_bh(&net->lock);
	sent = net->count[type];
	spin_unlock_bh(&net->lock);
	return sent;
}
