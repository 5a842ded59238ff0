// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages by SEND and RECV: see pair.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/pair.h"

#define BN_GRH 40
#define BN_SILENCE_NS 10000000000ULL

static char *bn_pair_place(const struct bn_pair *pair, uint64_t slot)
{
	return pair->memory + slot * (BN_PAIR_BYTES + pair->grh);
}

static void bn_pair_receive(struct bn_pair *pair, uint64_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)bn_pair_place(pair, slot),
			       .length = BN_PAIR_BYTES + pair->grh,
			       .lkey = pair->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(pair->qp, &wr, &bad))
		bn_die("ibv_post_recv");
}

void bn_pair_open(struct bn_pair *pair, struct rdma_cm_id *id, bool ud)
{
	size_t bytes;
	unsigned int i;

	bn_queue_pair(id, ud ? IBV_QPT_UD : IBV_QPT_RC);
	*pair = (struct bn_pair){ .qp = id->qp, .grh = ud ? BN_GRH : 0 };
	bytes = (size_t)(BN_PAIR_SLOTS + 1) * (BN_PAIR_BYTES + pair->grh);
	pair->memory = calloc(1, bytes);
	if (!pair->memory)
		bn_die("memory");
	pair->mr = ibv_reg_mr(id->pd, pair->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!pair->mr)
		bn_die("registering memory");
	for (i = 0; i < BN_PAIR_SLOTS; i++)
		bn_pair_receive(pair, i);
}

void bn_pair_reach(struct bn_pair *pair, const char *host, const char *port, bool ud)
{
	struct rdma_cm_id *id = bn_resolve(host, port, ud ? RDMA_PS_UDP : RDMA_PS_TCP);
	struct rdma_ud_param to;

	bn_pair_open(pair, id, ud);
	bn_connect(id, ud ? 0 : 1, ud ? &to : NULL, NULL, 0);
	if (!ud)
		return;
	pair->ah = ibv_create_ah(id->pd, &to.ah_attr);
	if (!pair->ah)
		bn_die("address handle");
	pair->qpn = to.qp_num;
	pair->qkey = to.qkey;
}

char *bn_pair_out(struct bn_pair *pair)
{
	return bn_pair_place(pair, BN_PAIR_SLOTS);
}

void bn_pair_send(struct bn_pair *pair, const char *data, uint32_t bytes, bool answer)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = bytes, .lkey = pair->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = answer ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (pair->grh) {
		wr.wr.ud.ah = pair->ah;
		wr.wr.ud.remote_qpn = pair->qpn;
		wr.wr.ud.remote_qkey = pair->qkey;
	}
	if (ibv_post_send(pair->qp, &wr, &bad))
		bn_die("ibv_post_send");
}

void bn_pair_sent(struct bn_pair *pair)
{
	struct ibv_wc wc;

	bn_poll(pair->qp->send_cq, &wc, 0);
}

uint32_t bn_pair_next(struct bn_pair *pair, uint64_t timeout_ns, struct ibv_wc *ret_wc,
		      char **ret_data)
{
	if (!bn_poll(pair->qp->recv_cq, ret_wc, timeout_ns))
		return 0;
	*ret_data = bn_pair_place(pair, ret_wc->wr_id) + pair->grh;
	return ret_wc->byte_len - pair->grh;
}

void bn_pair_again(struct bn_pair *pair, const struct ibv_wc *wc)
{
	bn_pair_receive(pair, wc->wr_id);
}

/* ---- the other end */

static void bn_pair_close(struct bn_pair *pair, struct rdma_cm_id *id)
{
	struct ibv_cq *send_cq = pair->qp->send_cq, *recv_cq = pair->qp->recv_cq;

	rdma_destroy_qp(id);
	ibv_destroy_cq(send_cq);
	ibv_destroy_cq(recv_cq);
	ibv_dereg_mr(pair->mr);
	free(pair->memory);
}

/* UD: the way to whom a message is from. */
static void bn_pair_back(struct bn_pair *pair, struct rdma_cm_id *id, struct ibv_wc *wc)
{
	if (!pair->grh || (pair->ah && pair->qpn == wc->src_qp))
		return;
	if (pair->ah)
		ibv_destroy_ah(pair->ah);
	pair->ah = ibv_create_ah_from_wc(
		id->pd, wc, (struct ibv_grh *)bn_pair_place(pair, wc->wr_id), id->port_num);
	if (!pair->ah)
		bn_die("address handle");
	pair->qpn = wc->src_qp;
	pair->qkey = RDMA_UDP_QKEY;
}

static void bn_pair_echo(struct bn_pair *pair, struct rdma_cm_id *id)
{
	struct ibv_wc wc;
	uint32_t bytes;
	char *data;

	while ((bytes = bn_pair_next(pair, BN_SILENCE_NS, &wc, &data))) {
		if (bytes != BN_PAIR_LAST && !(wc.wc_flags & IBV_WC_WITH_IMM)) {
			bn_pair_back(pair, id, &wc);
			bn_pair_send(pair, data, bytes, true);
			bn_pair_sent(pair);
		}
		bn_pair_again(pair, &wc);
		if (bytes == BN_PAIR_LAST)
			return;
	}
}

static void bn_pair_accept(struct bn_pair *pair, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1,
					 .initiator_depth = 1,
					 .rnr_retry_count = 7,
					 .qp_num = pair->qp->qp_num };

	if (rdma_accept(id, &param))
		bn_die("rdma_accept");
}

/* A peer comes: @pair is the one for all by UD, and its own by RC. */
static void bn_pair_request(struct bn_pair *pair, struct rdma_cm_id *listener,
			    struct rdma_cm_id *peer, bool ud)
{
	if (!ud)
		bn_pair_open(pair, peer, false);
	bn_pair_accept(pair, peer);
	bn_pair_echo(pair, ud ? listener : peer);
	if (!ud)
		bn_pair_close(pair, peer);
	rdma_destroy_id(peer);
}

void bn_pair_serve(const char *host, const char *port, bool ud)
{
	struct rdma_cm_id *listener = bn_listen(host, port, ud ? RDMA_PS_UDP : RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct bn_pair pair;

	if (ud)
		bn_pair_open(&pair, listener, true);
	printf("ready\n");
	fflush(stdout);
	while (!rdma_get_cm_event(listener->channel, &event)) {
		struct rdma_cm_id *peer = event->id;
		enum rdma_cm_event_type type = event->event;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			bn_pair_request(&pair, listener, peer, ud);
	}
	bn_die("rdma_get_cm_event");
}
