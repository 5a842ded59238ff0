// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Asks bench_ud_rpc_server, one request at a time, polling for the answer.
 *
 *	bench_ud_rpc_client ADDRESS PORT RECORDS SAMPLES hit|miss
 *
 * A datagram that gets lost is sent again and counted. One thread. Prints one
 * JSON object, times in ns.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/ud_rpc.h"

#define BN_TIMEOUT_NS 1000000000ULL
#define BN_TRIES 10
#define BN_WARM 50

struct bn_rpc_client {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	struct rdma_ud_param to;
	struct bn_datagram in[BN_SLOTS];
	struct bn_call out;
	struct ibv_mr *mr_in;
	struct ibv_mr *mr_out;
	uint32_t xid;
	uint64_t lost;
};

static void bn_receive(struct bn_rpc_client *c, unsigned int slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&c->in[slot],
			       .length = sizeof(c->in[slot]),
			       .lkey = c->mr_in->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		bn_die("ibv_post_recv");
}

static void bn_open(struct bn_rpc_client *c, const char *host, const char *port)
{
	unsigned int i;

	c->id = bn_resolve(host, port, RDMA_PS_UDP);
	bn_queue_pair(c->id, IBV_QPT_UD);
	c->mr_in = ibv_reg_mr(c->id->pd, c->in, sizeof(c->in), IBV_ACCESS_LOCAL_WRITE);
	c->mr_out = ibv_reg_mr(c->id->pd, &c->out, sizeof(c->out), IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr_in || !c->mr_out)
		bn_die("registering memory");
	for (i = 0; i < BN_SLOTS; i++)
		bn_receive(c, i);
	bn_connect(c->id, 0, &c->to, NULL, 0);
	c->ah = ibv_create_ah(c->id->pd, &c->to.ah_attr);
	if (!c->ah)
		bn_die("address handle");
}

static void bn_send(struct bn_rpc_client *c)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&c->out,
			       .length = sizeof(c->out),
			       .lkey = c->mr_out->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr.ud.ah = c->ah;
	wr.wr.ud.remote_qpn = c->to.qp_num;
	wr.wr.ud.remote_qkey = c->to.qkey;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		bn_die("ibv_post_send");
	bn_poll(c->id->qp->send_cq, &wc, 0);
}

/* Wait for the answer to the request in flight. Return: whether it came in time. */
static int bn_wait(struct bn_rpc_client *c, struct bn_answer *ret)
{
	struct ibv_wc wc;

	while (bn_poll(c->id->qp->recv_cq, &wc, BN_TIMEOUT_NS)) {
		*ret = c->in[wc.wr_id].answer;
		bn_receive(c, (unsigned int)wc.wr_id);
		if (ret->xid == c->out.xid)
			return 1;
	}
	return 0;
}

static void bn_ask(struct bn_rpc_client *c, uint64_t nr)
{
	struct bn_answer answer;
	unsigned int tries = 0;

	bn_key(nr, &c->out.key);
	c->out.xid = krp_cpu_to_le32(++c->xid);
	bn_send(c);
	while (!bn_wait(c, &answer)) {
		c->lost++;
		if (++tries == BN_TRIES) {
			fprintf(stderr, "no answer\n");
			exit(1);
		}
		bn_send(c);
	}
	if (krp_le32_to_cpu(answer.found) != (nr < BN_ABSENT) ||
	    (nr < BN_ABSENT && memcmp(answer.value.raw, &nr, sizeof(nr)))) {
		fprintf(stderr, "not the right answer\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	uint64_t records, samples, i, begin_ns, random = 88172645463325252ULL;
	static struct bn_rpc_client c;
	struct bn_samples took;
	uint64_t from;

	if (argc != 6 || (strcmp(argv[5], "hit") && strcmp(argv[5], "miss"))) {
		fprintf(stderr, "usage: %s ADDRESS PORT RECORDS SAMPLES hit|miss\n", argv[0]);
		return 2;
	}
	records = bn_number(argv[3], 1, 1ULL << 32, "RECORDS");
	samples = bn_number(argv[4], 1, 10000000, "SAMPLES");
	from = strcmp(argv[5], "miss") ? 0 : BN_ABSENT;
	if (bn_samples_init(&took, samples))
		bn_die("memory");
	bn_open(&c, argv[1], argv[2]);
	for (i = 0; i < BN_WARM; i++)
		bn_ask(&c, from + bn_random(&random) % records);
	c.lost = 0;
	bn_gate("begin");
	for (i = 0; i < samples; i++) {
		uint64_t nr = from + bn_random(&random) % records;

		begin_ns = bn_now_ns();
		bn_ask(&c, nr);
		bn_samples_add(&took, bn_now_ns() - begin_ns);
	}
	bn_gate("end");
	bn_samples_print(&took, "ud_rpc", argv[5], 0, c.lost);
	bn_samples_done(&took);
	return 0;
}
