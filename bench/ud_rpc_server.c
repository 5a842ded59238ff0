// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The paper's baseline: a meta server that is asked by messages. It polls one
 * unreliable-datagram queue pair and answers from a plain hash table.
 *
 *	bench_ud_rpc_server ADDRESS PORT RECORDS
 *
 * Note: Source - "KRCORE: A Microsecond-scale RDMA Control Plane for Elastic
 * Computing" (ATC '22), section 4.2, which compares one-sided look-ups with
 * such a server; two-sided design after FaSST (OSDI '16). One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/ud_rpc.h"

#define BN_IDLE_POLLS 4096 /* between two looks at connection requests */
#define BN_PEERS_MAX 64

struct bn_entry {
	struct krp_key key;
	__u8 used;
	struct krp_value value;
};

/** struct bn_rpc_peer - A client's address handle. @qpn: its queue pair. @ah: handle. */
struct bn_rpc_peer {
	uint32_t qpn;
	struct ibv_ah *ah;
};

struct bn_server {
	struct rdma_cm_id *id;
	struct bn_entry *table;
	uint64_t mask;
	struct bn_datagram *in;
	struct bn_answer *out;
	struct ibv_mr *mr_in;
	struct ibv_mr *mr_out;
	struct bn_rpc_peer peers[BN_PEERS_MAX];
	unsigned int peers_nr;
};

/* Slot of a key: where it is, or where it would go (linear probing). */
static struct bn_entry *bn_find(struct bn_server *s, const struct krp_key *key)
{
	uint64_t at = krp_key_hash(key, 1) & s->mask;

	while (s->table[at].used && memcmp(&s->table[at].key, key, sizeof(*key)))
		at = (at + 1) & s->mask;
	return &s->table[at];
}

static void bn_fill(struct bn_server *s, uint64_t records)
{
	struct bn_entry *e;
	struct krp_key key;
	uint64_t nr;

	s->mask = 15;
	while (s->mask < 2 * records)
		s->mask = 2 * s->mask + 1;
	s->table = calloc(s->mask + 1, sizeof(*s->table));
	if (!s->table)
		bn_die("memory");
	for (nr = 0; nr < records; nr++) {
		bn_key(nr, &key);
		e = bn_find(s, &key);
		e->key = key;
		e->used = 1;
		bn_value(nr, &e->value);
	}
}

static void bn_receive(struct bn_server *s, unsigned int slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&s->in[slot],
			       .length = sizeof(*s->in),
			       .lkey = s->mr_in->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(s->id->qp, &wr, &bad))
		bn_die("ibv_post_recv");
}

static void bn_prepare(struct bn_server *s)
{
	unsigned int i;

	bn_queue_pair(s->id, IBV_QPT_UD);
	s->in = calloc(BN_SLOTS, sizeof(*s->in));
	s->out = calloc(BN_SLOTS, sizeof(*s->out));
	if (!s->in || !s->out)
		bn_die("memory");
	s->mr_in = ibv_reg_mr(s->id->pd, s->in, BN_SLOTS * sizeof(*s->in), IBV_ACCESS_LOCAL_WRITE);
	s->mr_out =
		ibv_reg_mr(s->id->pd, s->out, BN_SLOTS * sizeof(*s->out), IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr_in || !s->mr_out)
		bn_die("registering memory");
	for (i = 0; i < BN_SLOTS; i++)
		bn_receive(s, i);
	if (fcntl(s->id->channel->fd, F_SETFL, O_NONBLOCK))
		bn_die("fcntl");
}

/* The way back to the sender of a datagram, made once for each of them. */
static struct ibv_ah *bn_way_back(struct bn_server *s, struct ibv_wc *wc, unsigned int slot)
{
	struct bn_rpc_peer *peer;
	unsigned int i;

	for (i = 0; i < s->peers_nr; i++)
		if (s->peers[i].qpn == wc->src_qp)
			return s->peers[i].ah;
	if (s->peers_nr == BN_PEERS_MAX) {
		fprintf(stderr, "more than %d clients\n", BN_PEERS_MAX);
		exit(1);
	}
	peer = &s->peers[s->peers_nr];
	peer->ah = ibv_create_ah_from_wc(s->id->pd, wc, (struct ibv_grh *)s->in[slot].grh,
					 s->id->port_num);
	if (!peer->ah)
		bn_die("address handle");
	peer->qpn = wc->src_qp;
	s->peers_nr++;
	return peer->ah;
}

static void bn_answer_call(struct bn_server *s, struct ibv_wc *wc)
{
	unsigned int slot = (unsigned int)wc->wr_id;
	const struct bn_call *call = &s->in[slot].call;
	struct bn_answer *answer = &s->out[slot];
	struct ibv_sge sge = { .addr = (uintptr_t)answer,
			       .length = sizeof(*answer),
			       .lkey = s->mr_out->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	const struct bn_entry *e = bn_find(s, &call->key);
	struct ibv_send_wr *bad;
	struct ibv_wc sent;

	answer->xid = call->xid;
	answer->found = krp_cpu_to_le32(e->used);
	answer->value = e->value;
	wr.wr.ud.ah = bn_way_back(s, wc, slot);
	wr.wr.ud.remote_qpn = wc->src_qp;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
	if (ibv_post_send(s->id->qp, &wr, &bad))
		bn_die("ibv_post_send");
	bn_receive(s, slot);
	bn_poll(s->id->qp->send_cq, &sent, 0);
}

/* Let a client know the queue pair. */
static void bn_connections(struct bn_server *s)
{
	struct rdma_conn_param param = { .qp_num = s->id->qp->qp_num };
	struct rdma_cm_event *event;
	struct rdma_cm_id *peer;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(s->id->channel, &event)) {
		if (errno != EAGAIN)
			bn_die("rdma_get_cm_event");
		return;
	}
	peer = event->id;
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && rdma_accept(peer, &param))
		bn_die("rdma_accept");
}

int main(int argc, char **argv)
{
	struct bn_server s = { 0 };
	unsigned int idle = 0;
	struct ibv_wc wc;
	int nr;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT RECORDS\n", argv[0]);
		return 2;
	}
	bn_fill(&s, bn_number(argv[3], 1, 1ULL << 26, "RECORDS"));
	s.id = bn_listen(argv[1], argv[2], RDMA_PS_UDP);
	bn_prepare(&s);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		nr = ibv_poll_cq(s.id->qp->recv_cq, 1, &wc);
		if (nr < 0 || (nr && wc.status != IBV_WC_SUCCESS))
			bn_die("ibv_poll_cq");
		if (nr)
			bn_answer_call(&s, &wc);
		else if (!(++idle % BN_IDLE_POLLS))
			bn_connections(&s);
	}
}
