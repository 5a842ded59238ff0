// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the packets of lanes: the UD queue pair of a port, whom a packet is from, cookies, and the
 * look-ups that a REQUEST costs which no key proves. What a packet means is up to krp_lanes.h.
 *
 * Whatever comes costs a bounded time: a run of the work item takes so many packets, and beyond so many
 * a second they are dropped, before anything is computed for them, whether a key would prove them or
 * not: what is recorded and sent again is as cheap as what is forged. Those that name number and nonce
 * of a lane that there is count for that lane first, so that it has what it needs in a flood of others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/verbs/lanes_priv.h"

#define KRC_SHAKE_BATCH 8
#define KRC_SHAKE_SEND_FLAG 0x100 /* in wr_id: a packet that was sent, not a receive buffer */
#define KRC_SHAKE_KEPT 16 /* places for what lanes say, which answers to strangers do not get */
#define KRC_SHAKE_MEND_NS (10 * KRP_LANE_NS_PER_MS) /* from a failure to its repair */
#define KRC_SHAKE_SAY_NS (10000 * KRP_LANE_NS_PER_MS) /* that nobody's key proves packets */
#define KRC_SHAKE_QKEY_MASK 0x7fffffff /* the highest bit is for privileged users */

/* ---- out */

/* Return: a free place for a packet among the first ones, or NULL. */
static struct krc_shake_send *krc_shake_place(struct krc_shake *shake, u32 places)
{
	u32 i;

	for (i = 0; i < places; i++)
		if (!shake->sends[i].ah)
			return &shake->sends[i];
	return NULL;
}

static int krc_shake_post(struct krc_lanes *lanes, u32 i, const struct krc_lane_peer *peer)
{
	struct krc_shake *shake = &lanes->shake;
	u64 dma = shake->packets_dma + i * sizeof(struct krp_lane_packet);
	struct ib_sge sge = { .addr = dma,
			      .length = sizeof(struct krp_lane_packet),
			      .lkey = lanes->queues.pd->local_dma_lkey };
	struct ib_ud_wr wr = { .wr = { .wr_id = KRC_SHAKE_SEND_FLAG | i,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_SEND,
				       .send_flags = IB_SEND_SIGNALED },
			       .ah = shake->sends[i].ah,
			       .remote_qpn = peer->ud_qpn,
			       .remote_qkey = peer->ud_qkey };

	ib_dma_sync_single_for_device(lanes->queues.ibdev, dma, sge.length, DMA_TO_DEVICE);
	return ib_post_send(shake->qp, &wr.wr, NULL);
}

/* krc_shake_send() in one of the first places. */
static void krc_shake_out(struct krc_lanes *lanes, const struct krc_lane_peer *peer,
			  const u8 *key_id, const struct krp_lane_packet *packet, u32 places)
{
	const struct krc_hw_lanes *services = &lanes->services;
	struct krc_shake *shake = &lanes->shake;
	struct krc_shake_send *send = krc_shake_place(shake, places);
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	u32 i;

	if (!send) {
		shake->dropped++;
		return;
	}
	i = send - shake->sends;
	shake->packets[i] = *packet;
	if (services->has_keys(services->arg) &&
	    services->sign(services->arg, key_id, &shake->packets[i])) {
		shake->dropped++;
		return;
	}
	krc_lane_way(lanes, peer, &attr);
	ah = rdma_create_ah(lanes->queues.pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah)) {
		shake->dropped++;
		return;
	}
	send->ah = ah;
	if (!krc_shake_post(lanes, i, peer))
		return;
	send->ah = NULL;
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	shake->dropped++;
}

void krc_shake_send(struct krc_lanes *lanes, const struct krc_lane_peer *peer, const u8 *key_id,
		    const struct krp_lane_packet *packet)
{
	krc_shake_out(lanes, peer, key_id, packet, KRC_SHAKE_SENDS);
}

/* A packet has been sent, or not: it may be lost. */
static void krc_shake_sent(struct krc_shake *shake, u32 i)
{
	struct ib_ah *ah = i < KRC_SHAKE_SENDS ? shake->sends[i].ah : NULL;

	if (!ah)
		return;
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	shake->sends[i].ah = NULL;
}

/* Where a port is, by its record. Return: 0 or an errno. */
static int krc_shake_peer(struct krc_lanes *lanes, const u8 *gid, const struct krp_value *value,
			  struct krc_lane_peer *ret_peer)
{
	struct krc_hw_address address;
	union ib_gid to;
	int err;

	memcpy(to.raw, gid, sizeof(to.raw));
	err = lanes->queues.address(lanes->hw, lanes->port, lanes->gid_index, &to, value, &address);
	if (!err)
		memcpy(ret_peer, address.opaque, sizeof(*ret_peer));
	return err;
}

/* Answer by the key of what is answered. */
static void krc_shake_answer(struct krc_lanes *lanes, const struct krp_lane_packet *p,
			     const struct krp_value *value, const struct krp_lane_packet *answer)
{
	struct krc_lane_peer peer;

	if (!krc_shake_peer(lanes, p->gid, value, &peer))
		krc_shake_out(lanes, &peer, p->key_id, answer, KRC_SHAKE_SENDS - KRC_SHAKE_KEPT);
}

/* ---- what the port knows */

/* The record of a port. Return: 0, or -ENOENT: it is not cached. */
static int krc_shake_cached(struct krc_lanes *lanes, const u8 *gid, struct krp_value *ret_value)
{
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };

	memcpy(key.gid, gid, sizeof(key.gid));
	return lanes->services.cached(lanes->services.arg, &key, ret_value);
}

/* The proof of a cookie of this time, for the sender of a packet. */
static u64 krc_shake_proof(const struct krc_lanes *lanes, const struct krp_lane_packet *p,
			   __le64 stamp)
{
	u64 half[2];

	memcpy(half, p->gid, sizeof(half));
	return siphash_4u64(half[0], half[1], le64_to_cpu(p->generation), le64_to_cpu(stamp),
			    &lanes->shake.secret)
		       ?: 1;
}

/* What may come in this second. Return: how many packets, to be counted down. */
static u32 *krc_shake_tokens(struct krc_lanes *lanes, const struct krp_lane_packet *p)
{
	struct krc_shake *shake = &lanes->shake;
	u64 now_ns = ktime_get_ns();
	struct krp_value record;

	if (now_ns - shake->tokens_ns >= NSEC_PER_SEC) {
		shake->tokens_ns = now_ns;
		shake->tokens = KRC_SHAKE_PACKETS;
		shake->known_tokens = KRC_SHAKE_PACKETS;
	}
	/* a flood in other names leaves something for ports that this one knows */
	if (!shake->tokens && (krp_lanes_known_of(&lanes->table, p->gid) ||
			       !krc_shake_cached(lanes, p->gid, &record)))
		return &shake->known_tokens;
	return &shake->tokens;
}

/* Count one more packet of a lane that there is. Return: whether it may come on account of that. */
static bool krc_shake_of_lane(struct krc_lanes *lanes, const struct krp_lane_packet *p)
{
	const struct krp_lanes_entry *e = krp_lanes_of(&lanes->table, p);
	struct krc_lane_slot *slot = e ? krc_lane_slot_of(lanes, e) : NULL;
	u64 now_ns = ktime_get_ns();

	if (!slot)
		return false;
	if (now_ns - slot->heard_ns >= NSEC_PER_SEC) {
		slot->heard_ns = now_ns;
		slot->heard = 0;
	}
	if (slot->heard == KRC_SHAKE_OF_LANE)
		return false; /* whoever sends them has seen its nonce */
	slot->heard++;
	return true;
}

/* Count one more packet. Return: whether it may come. */
static bool krc_shake_count(struct krc_lanes *lanes, const struct krp_lane_packet *p)
{
	u32 *tokens;

	if (krc_shake_of_lane(lanes, p))
		return true;
	tokens = krc_shake_tokens(lanes, p);
	if (!*tokens) {
		lanes->shake.dropped++;
		return false;
	}
	--*tokens;
	return true;
}

/* Nodes with different keys hear nothing of each other, so it is said here, and not often. */
static void krc_shake_unproved(struct krc_lanes *lanes, const struct krp_lane_packet *p)
{
	struct krc_shake *shake = &lanes->shake;
	u64 now_ns = ktime_get_ns();

	shake->unproved++;
	if (shake->said_ns && now_ns - shake->said_ns < KRC_SHAKE_SAY_NS)
		return;
	shake->said_ns = now_ns;
	krc_port_warn_limited(lanes->queues.ibdev, lanes->port,
			      "no cluster key proves who asks as %pI6c, %llu so far\n", p->gid,
			      shake->unproved);
}

/* Whether a packet is from whom it says, as far as keys tell: krp_lane.h, WHO IT IS FROM. */
static bool krc_shake_proved(struct krc_lanes *lanes, const struct krp_lane_packet *p,
			     bool *ret_keys)
{
	const struct krc_hw_lanes *services = &lanes->services;

	*ret_keys = services->has_keys(services->arg);
	if (!*ret_keys && krp_is_zero(p->key_id, sizeof(p->key_id)))
		return true;
	if (*ret_keys && !services->verify(services->arg, p))
		return true;
	krc_shake_unproved(lanes, p);
	return false;
}

/* ---- REQUEST */

static void krc_shake_challenge(struct krc_lanes *lanes, const struct krp_lane_packet *p,
				const struct krp_value *value)
{
	struct krp_lane_packet answer;

	krp_lanes_answer(p, KRP_LANE_CHALLENGE, lanes->services.generation, &answer);
	answer.stamp = cpu_to_le64(ktime_get_ns() / KRP_LANE_NS_PER_MS);
	answer.proof = cpu_to_le64(krc_shake_proof(lanes, p, answer.stamp));
	krc_shake_answer(lanes, p, value, &answer);
}

static void krc_shake_refuse(struct krc_lanes *lanes, const struct krp_lane_packet *p,
			     const struct krp_value *value, u32 status)
{
	struct krp_lane_packet answer;

	krp_lanes_answer(p, KRP_LANE_REFUSE, lanes->services.generation, &answer);
	answer.status = cpu_to_le32(status);
	krc_shake_answer(lanes, p, value, &answer);
}

/* Note by which key a peer speaks. */
static void krc_shake_key(struct krc_lane_slot *slot, const struct krp_lane_packet *p)
{
	slot->keyed = !krp_is_zero(p->key_id, sizeof(p->key_id));
	memcpy(slot->key_id, p->key_id, sizeof(slot->key_id));
}

static void krc_shake_accept(struct krc_lanes *lanes, const struct krp_lane_packet *p,
			     const struct krp_value *value)
{
	struct krp_lanes_entry *e = krp_lanes_find(&lanes->table, p->gid, p->index);
	struct krp_lane_ports ports = { .mtu = lanes->services.value.dct.mtu,
					.max_rd_atomic = lanes->max_rd };
	struct krp_lane_end own = { .psn = get_random_u32() & 0xffffff };
	struct krc_lane_qp *qp = NULL;
	struct krc_lane_peer peer;

	if (krc_shake_peer(lanes, p->gid, value, &peer))
		return;
	ports.mtu = min(ports.mtu, peer.mtu);
	if (!e) {
		qp = krc_lane_qp_take(lanes);
		if (!qp)
			return; /* it comes again */
		own.qpn = qp->qp->qp_num;
	}
	spin_lock_bh(&lanes->lock);
	e = krp_lanes_accept(&lanes->table, ktime_get_ns(), p, &ports, &own);
	if (e && qp)
		krc_lane_adopt(lanes, e, qp, &peer);
	else if (e) /* this port has asked by a record that may be older */
		krc_lane_slot_of(lanes, e)->peer = peer;
	spin_unlock_bh(&lanes->lock);
	if (!e) {
		krc_lane_qp_put(lanes, qp);
		return;
	}
	krc_shake_key(krc_lane_slot_of(lanes, e), p);
	krc_lane_pull(lanes, e);
}

/* @index: as in krp_lanes_replace(). */
static void krc_shake_replace(struct krc_lanes *lanes, const struct krp_lane_packet *p, u32 index)
{
	struct krp_lanes_entry *e;
	u32 i;

	for (i = 0; i < KRC_LANES_MAX; i++) {
		spin_lock_bh(&lanes->lock);
		e = krp_lanes_replace(&lanes->table, p->gid, le64_to_cpu(p->generation), index);
		spin_unlock_bh(&lanes->lock);
		if (!e)
			return;
		krc_lane_pull(lanes, e);
	}
}

/* Have a work item READ the record of the sender of a REQUEST, unless too many are under way. */
static void krc_shake_look_up(struct krc_lanes *lanes, const struct krp_lane_packet *p, bool known)
{
	struct krc_shake *shake = &lanes->shake;
	u32 i;

	for (i = 0; i < KRC_LANES_LOOKS; i++) {
		struct krc_lane_look *look = &shake->looks[i];

		if (look->busy)
			continue;
		if (!krp_listen_look_begin(&shake->lookups, p->gid, known))
			return;
		look->busy = true;
		look->packet = *p;
		look->begun_ns = ktime_get_ns();
		queue_work(system_unbound_wq, &look->work);
		return;
	}
}

/* @record: of its GID, or NULL; @fresh: it was READ just now. */
static void krc_shake_request(struct krc_lanes *lanes, const struct krp_lane_packet *p,
			      const struct krp_value *record, bool proved, bool fresh)
{
	struct krp_lanes_facts facts = { .record = record,
					 .proof = krc_shake_proof(lanes, p, p->stamp),
					 .proved = proved,
					 .fresh = fresh };
	const struct krp_value *value = proved ? &p->value : record;
	struct krp_lanes_entry *pull, *e;
	enum krp_lanes_verdict verdict;
	u32 status = 0;

	spin_lock_bh(&lanes->lock);
	verdict = krp_lanes_judge(&lanes->table, ktime_get_ns(), p, &facts, &status, &pull);
	e = verdict == KRP_LANES_AGAIN ? krp_lanes_received(&lanes->table, ktime_get_ns(), p)
				       : NULL;
	spin_unlock_bh(&lanes->lock);
	if (pull)
		krc_lane_pull(lanes, pull);
	if (e)
		krc_lane_pull(lanes, e);
	switch (verdict) {
	case KRP_LANES_LOOK_UP:
		krc_shake_look_up(lanes, p, record);
		break;
	case KRP_LANES_CHALLENGE:
		krc_shake_challenge(lanes, p, value);
		break;
	case KRP_LANES_REFUSE:
		krc_shake_refuse(lanes, p, value, status);
		break;
	case KRP_LANES_REPLACE:
		krc_shake_replace(lanes, p, p->index);
		break;
	case KRP_LANES_ACCEPT:
		krc_shake_accept(lanes, p, value);
		break;
	default:
		break;
	}
}

/* ---- in */

/*
 * The peer of a lane may have said first which generation it has: lanes to an older one are over,
 * and no holder is to find that out by time-outs. What no key proves the table has to say, too.
 */
static void krc_shake_generation(struct krc_lanes *lanes, const struct krp_lane_packet *p,
				 bool keys)
{
	bool stale = p->type == KRP_LANE_REFUSE && le32_to_cpu(p->status) == KRP_LANE_STALE;
	struct krp_value record;

	if (p->type != KRP_LANE_ACCEPT && !stale)
		return;
	if (!keys &&
	    (krc_shake_cached(lanes, p->gid, &record) || record.generation != p->generation))
		return;
	krc_shake_replace(lanes, p, KRP_LANE_INDEXES);
}

/* @keys: a key proves it. */
static void krc_shake_other(struct krc_lanes *lanes, const struct krp_lane_packet *p, bool keys)
{
	struct krp_lane_packet answer;
	struct krp_lanes_entry *e;
	struct krp_value record;
	bool due = false;

	spin_lock_bh(&lanes->lock);
	e = krp_lanes_received(&lanes->table, ktime_get_ns(), p);
	if (!e)
		due = krp_lanes_unknown(&lanes->table, p, &answer);
	spin_unlock_bh(&lanes->lock);
	if (e) {
		krc_shake_key(krc_lane_slot_of(lanes, e), p);
		krc_lane_pull(lanes, e);
		krc_shake_generation(lanes, p, keys);
	} else if (due && !krc_shake_cached(lanes, p->gid, &record) &&
		   record.generation == p->generation) {
		krc_shake_answer(lanes, p, &record, &answer);
	}
}

static noinline void krc_shake_received(struct krc_lanes *lanes, const void *data, u32 bytes)
{
	struct krc_shake *shake = &lanes->shake;
	struct krp_lane_packet p;
	struct krp_value record;
	bool keys, known, fresh;

	if (bytes != sizeof(p)) {
		shake->malformed++;
		return;
	}
	memcpy(&p, data, sizeof(p));
	if (krp_lane_check(&p, sizeof(p)) != KRP_LANE_OK) {
		shake->malformed++;
		return;
	}
	if (memcmp(p.peer_gid, lanes->services.gid.raw, KRP_GID_BYTES) ||
	    !krc_shake_count(lanes, &p) || !krc_shake_proved(lanes, &p, &keys))
		return;
	if (p.type != KRP_LANE_REQUEST) {
		krc_shake_other(lanes, &p, keys);
		return;
	}
	known = !krc_shake_cached(lanes, p.gid, &record);
	fresh = krp_listen_fresh(&shake->lookups, ktime_get_ns(), p.gid);
	krc_shake_request(lanes, &p, known ? &record : NULL, keys, fresh);
}

/* Give a receive buffer to the device. Return: 0 or an errno. */
static int krc_shake_buffer(struct krc_lanes *lanes, u32 i)
{
	struct krc_shake *shake = &lanes->shake;
	struct ib_sge sge = { .addr = shake->recv_dma + i * KRC_SHAKE_STRIDE,
			      .length = KRC_SHAKE_STRIDE,
			      .lkey = lanes->queues.pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	ib_dma_sync_single_for_device(lanes->queues.ibdev, sge.addr, sge.length, DMA_FROM_DEVICE);
	return ib_post_recv(shake->qp, &wr, NULL);
}

static noinline void krc_shake_take(struct krc_lanes *lanes, const struct ib_wc *wc)
{
	struct krc_shake *shake = &lanes->shake;
	u32 i = wc->wr_id;

	shake->broken |= wc->status != IB_WC_SUCCESS;
	if (i & KRC_SHAKE_SEND_FLAG) {
		krc_shake_sent(shake, i & ~KRC_SHAKE_SEND_FLAG);
		return;
	}
	if (wc->status == IB_WC_SUCCESS && wc->byte_len > KRC_SHAKE_GRH) {
		ib_dma_sync_single_for_cpu(lanes->queues.ibdev,
					   shake->recv_dma + i * KRC_SHAKE_STRIDE, KRC_SHAKE_STRIDE,
					   DMA_FROM_DEVICE);
		krc_shake_received(lanes, shake->recv + i * KRC_SHAKE_STRIDE + KRC_SHAKE_GRH,
				   wc->byte_len - KRC_SHAKE_GRH);
	}
	if (!shake->broken && krc_shake_buffer(lanes, i))
		shake->broken = true;
}

/* Look-ups that are over: judge again what they were for. */
static void krc_shake_looked(struct krc_lanes *lanes)
{
	struct krc_shake *shake = &lanes->shake;
	u32 i;

	for (i = 0; i < KRC_LANES_LOOKS; i++) {
		struct krc_lane_look *look = &shake->looks[i];

		/* Pairs with the release in krc_shake_look(): what it has found is there. */
		if (!look->busy || !smp_load_acquire(&look->done))
			continue;
		krp_listen_look_end(&shake->lookups, look->begun_ns, look->packet.gid, look->err);
		/* with keys it has to come again: nobody has looked at its MAC */
		if (!look->err && !lanes->services.has_keys(lanes->services.arg))
			krc_shake_request(lanes, &look->packet, &look->value, false, true);
		look->done = false;
		look->busy = false;
	}
}

static void krc_shake_look(struct work_struct *work)
{
	struct krc_lane_look *look = container_of(work, struct krc_lane_look, work);
	const struct krc_hw_lanes *services = &look->lanes->services;
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };

	memcpy(key.gid, look->packet.gid, sizeof(key.gid));
	look->err = services->lookup(services->arg, &key, &look->value);
	smp_store_release(&look->done, true); /* with all that it has found */
	krc_lanes_kick(look->lanes);
}

/*
 * Make the queue pair work again, by the number and Q_Key that peers know: a packet that is longer
 * than a buffer breaks it on some devices (rxe of 6.1 checks no length), and anybody can send one.
 */
static void krc_shake_mend(struct krc_lanes *lanes)
{
	struct krc_shake *shake = &lanes->shake;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	u64 now_ns = ktime_get_ns();
	struct ib_wc wc;
	u32 i;

	/* rxe of 6.1 tells that it has failed before it is done with the packet: RESET were too early */
	if (!shake->broken_ns)
		shake->broken_ns = now_ns;
	if (now_ns - shake->broken_ns < KRC_SHAKE_MEND_NS)
		return;
	shake->broken_ns = 0;
	shake->mends++;
	krc_port_warn_limited(lanes->queues.ibdev, lanes->port,
			      "the queue pair of hand-shakes has failed, %llu times so far\n",
			      shake->mends);
	if (ib_modify_qp(shake->qp, &attr, IB_QP_STATE))
		return;
	for (i = 0; i < KRC_SHAKE_RECVS + KRC_SHAKE_SENDS && ib_poll_cq(shake->cq, 1, &wc) > 0; i++)
		; /* what was under way is lost, as packets are */
	for (i = 0; i < KRC_SHAKE_SENDS; i++)
		krc_shake_sent(shake, i);
	shake->broken = krc_shake_start(lanes);
}

bool krc_shake_broken(const struct krc_lanes *lanes)
{
	return lanes->shake.broken;
}

bool krc_shake_run(struct krc_lanes *lanes)
{
	struct krc_shake *shake = &lanes->shake;
	struct ib_wc wc[KRC_SHAKE_BATCH];
	u32 left = KRC_SHAKE_RECVS;
	int i, nr;

	krc_shake_looked(lanes);
	do {
		nr = ib_poll_cq(shake->cq, min_t(u32, left, ARRAY_SIZE(wc)), wc);
		for (i = 0; i < nr; i++)
			krc_shake_take(lanes, &wc[i]);
		left -= max(nr, 0);
	} while (nr > 0 && left);
	if (shake->broken)
		krc_shake_mend(lanes);
	if (!left)
		return true;
	return ib_req_notify_cq(shake->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/* ---- life */

/* Hard interrupt context, perhaps. */
static void krc_shake_completed(struct ib_cq *cq, void *context)
{
	krc_lanes_kick(context);
}

static int krc_shake_memory(struct krc_lanes *lanes)
{
	struct ib_device *ibdev = lanes->queues.ibdev;
	struct krc_shake *shake = &lanes->shake;
	size_t packets = KRC_SHAKE_SENDS * sizeof(*shake->packets);

	shake->recv = kzalloc(KRC_SHAKE_RECVS * KRC_SHAKE_STRIDE, GFP_KERNEL);
	shake->packets = kzalloc(packets, GFP_KERNEL);
	if (!shake->recv || !shake->packets)
		return -ENOMEM;
	shake->recv_dma = ib_dma_map_single(ibdev, shake->recv, KRC_SHAKE_RECVS * KRC_SHAKE_STRIDE,
					    DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(ibdev, shake->recv_dma)) {
		shake->recv_dma = 0;
		return -ENOMEM;
	}
	shake->packets_dma = ib_dma_map_single(ibdev, shake->packets, packets, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ibdev, shake->packets_dma)) {
		shake->packets_dma = 0;
		return -ENOMEM;
	}
	return 0;
}

int krc_shake_create(struct krc_lanes *lanes, struct krp_value *value)
{
	const struct ib_cq_init_attr cq_attr = { .cqe = KRC_SHAKE_RECVS + KRC_SHAKE_SENDS };
	struct krc_shake *shake = &lanes->shake;
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = KRC_SHAKE_SENDS,
			 .max_recv_wr = KRC_SHAKE_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
	};
	int err = krc_shake_memory(lanes);
	u32 i;

	if (err)
		return err;
	shake->cq = ib_create_cq(lanes->queues.ibdev, krc_shake_completed, NULL, lanes, &cq_attr);
	if (IS_ERR(shake->cq)) {
		err = PTR_ERR(shake->cq);
		shake->cq = NULL;
		return err;
	}
	init.send_cq = shake->cq;
	init.recv_cq = shake->cq;
	shake->qp = ib_create_qp(lanes->queues.pd, &init);
	if (IS_ERR(shake->qp)) {
		err = PTR_ERR(shake->qp);
		shake->qp = NULL;
		return err;
	}
	get_random_bytes(&shake->secret, sizeof(shake->secret));
	shake->lookups.seed = get_random_u64();
	shake->lookups.max = KRC_LANES_LOOKS;
	for (i = 0; i < KRC_LANES_LOOKS; i++) {
		shake->looks[i].lanes = lanes;
		INIT_WORK(&shake->looks[i].work, krc_shake_look);
	}
	shake->qkey = get_random_u32() & KRC_SHAKE_QKEY_MASK;
	value->dct.ud_qpn = cpu_to_le32(shake->qp->qp_num);
	value->dct.ud_qkey = cpu_to_le32(shake->qkey);
	return 0;
}

int krc_shake_start(struct krc_lanes *lanes)
{
	struct krc_shake *shake = &lanes->shake;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT,
				   .port_num = lanes->port,
				   .qkey = shake->qkey };
	int err = ib_modify_qp(shake->qp, &attr,
			       IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	u32 i;

	for (i = 0; i < KRC_SHAKE_RECVS && !err; i++)
		err = krc_shake_buffer(lanes, i);
	attr.qp_state = IB_QPS_RTR;
	err = err ?: ib_modify_qp(shake->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return err ?: ib_modify_qp(shake->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

void krc_shake_stop(struct krc_lanes *lanes)
{
	u32 i;

	for (i = 0; i < KRC_LANES_LOOKS; i++)
		cancel_work_sync(&lanes->shake.looks[i].work);
	cancel_delayed_work_sync(&lanes->work); /* which they may have woken */
}

void krc_shake_destroy(struct krc_lanes *lanes)
{
	struct ib_device *ibdev = lanes->queues.ibdev;
	struct krc_shake *shake = &lanes->shake;
	u32 i;

	if (shake->qp)
		ib_destroy_qp(shake->qp);
	for (i = 0; i < KRC_SHAKE_SENDS; i++)
		krc_shake_sent(shake, i);
	if (shake->cq)
		ib_destroy_cq(shake->cq);
	if (shake->recv_dma)
		ib_dma_unmap_single(ibdev, shake->recv_dma, KRC_SHAKE_RECVS * KRC_SHAKE_STRIDE,
				    DMA_FROM_DEVICE);
	if (shake->packets_dma)
		ib_dma_unmap_single(ibdev, shake->packets_dma,
				    KRC_SHAKE_SENDS * sizeof(*shake->packets), DMA_TO_DEVICE);
	kfree(shake->packets);
	kfree(shake->recv);
}
