// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * READs and WRITEs: how long one takes, and how many there are a second.
 *
 *	bench_data krcore|verbs TARGET read|write SIZE BATCH QUEUES ROUNDS
 *
 * A round posts BATCH requests to each of QUEUES queues, with one call a queue,
 * and waits for all of them; one thread. krcore posts to queues of one node
 * context; verbs to RC queue pairs connected by rdma_cm, and asks for a completion
 * of the last request of a batch only. TARGET as for bench_connect, see way.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_BYTES (4U << 20) /* memory at each end */
#define BN_BATCH_MAX 64
#define BN_QUEUES_MAX 64

/* What is measured. */
struct bn_job {
	const char *target;
	int write;
	uint32_t size;
	unsigned int batch;
	unsigned int queues;
	uint64_t rounds;
	char *memory;
};

/* Where request `i` of queue `queue` has its bytes, at both ends. */
static uint64_t bn_place(const struct bn_job *job, unsigned int queue, unsigned int i)
{
	return (uint64_t)(queue * job->batch + i) * job->size % (BN_BYTES - job->size + 1) & ~7ULL;
}

static void bn_report(const struct bn_job *job, const char *system, struct bn_samples *took,
		      uint64_t took_ns)
{
	uint64_t requests = job->rounds * job->queues * job->batch;

	bn_samples_print(took, system, job->write ? "write" : "read", 0, 0);
	printf("{\"system\": \"%s\", \"case\": \"rate\", \"n\": %" PRIu64
	       ", \"per_second\": %.3f, \"mib_per_second\": %.3f}\n",
	       system, requests, (double)requests * 1e9 / (double)took_ns,
	       (double)requests * job->size * 1e9 / (double)took_ns / (1 << 20));
}

static uint32_t bn_power_of_two(uint32_t least)
{
	uint32_t n = 16;

	while (n < least)
		n *= 2;
	return n;
}

/* krcore: its state. */
struct bn_data_krcore {
	struct krcore_node *node;
	struct krcore_mr mr;
	uint32_t queue[BN_QUEUES_MAX];
	struct krcore_wr wrs[BN_QUEUES_MAX][BN_BATCH_MAX];
};

static void bn_krcore_prepare(struct bn_data_krcore *k, const struct bn_job *job)
{
	struct krcore_node_options opts = { .size = sizeof(opts) };
	struct krcore_region_ref ref;
	struct krcore_key peer;
	unsigned int q, i;
	char *fields[4];

	bn_target_split(job->target, fields, 4);
	ref.addr = bn_number(fields[1], 0, UINT64_MAX, "ADDR");
	ref.length = bn_number(fields[2], BN_BYTES, UINT64_MAX, "LENGTH");
	ref.token = bn_number(fields[3], 0, UINT64_MAX, "TOKEN");
	if (krcore_key_from_text(fields[0], KRCORE_SERVICE_NODE, &peer))
		bn_krcore_die(fields[0]);
	opts.ring_entries = bn_power_of_two(job->queues * job->batch);
	if (krcore_node_open(&opts, &k->node))
		bn_krcore_die("krcore_node_open");
	if (krcore_mr_reg(k->node, job->memory, BN_BYTES, KRCORE_ACCESS_LOCAL_WRITE, &k->mr))
		bn_krcore_die("krcore_mr_reg");
	for (q = 0; q < job->queues; q++) {
		if (krcore_queue_open(k->node, job->batch, &peer, 0, 0, &k->queue[q], NULL))
			bn_krcore_die("queue");
		for (i = 0; i < job->batch; i++) {
			uint64_t at = bn_place(job, q, i);

			if (job->write)
				krcore_wr_write(&k->wrs[q][i], &k->mr, job->memory + at, job->size,
						&ref, at, i);
			else
				krcore_wr_read(&k->wrs[q][i], &k->mr, job->memory + at, job->size,
					       &ref, at, i);
		}
	}
}

static void bn_krcore_wait(struct bn_data_krcore *k, unsigned int requests)
{
	struct krcore_wc wcs[BN_BATCH_MAX];
	unsigned int nr, i;

	while (requests) {
		nr = bn_krcore_next(k->node, wcs, BN_BATCH_MAX);
		for (i = 0; i < nr; i++) {
			if (!wcs[i].status)
				continue;
			fprintf(stderr, "completion: %s\n", strerror(-wcs[i].status));
			exit(1);
		}
		requests -= nr;
	}
}

static void bn_krcore_round(struct bn_data_krcore *k, const struct bn_job *job)
{
	unsigned int q, posted;

	for (q = 0; q < job->queues; q++) {
		/* after the last there is nothing to do but to wait */
		typeof(krcore_post) *post = q + 1 < job->queues ? krcore_post : krcore_post_wait;

		for (posted = 0; posted < job->batch;) {
			int nr = post(k->node, k->queue[q], k->wrs[q] + posted, job->batch - posted,
				      NULL);

			if (nr < 0)
				bn_krcore_die("krcore_post");
			posted += (unsigned int)nr;
		}
	}
	bn_krcore_wait(k, job->queues * job->batch);
}

/* RC queue pairs: their state. */
struct bn_data_verbs {
	struct rdma_cm_id *id[BN_QUEUES_MAX];
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_sge sge[BN_QUEUES_MAX][BN_BATCH_MAX];
	struct ibv_send_wr wrs[BN_QUEUES_MAX][BN_BATCH_MAX];
};

static void bn_verbs_queue(struct bn_data_verbs *v, const struct bn_job *job, unsigned int q,
			   char *const *fields)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = BN_BATCH_MAX,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct bn_region region;
	unsigned int i;

	v->id[q] = bn_resolve(fields[0], fields[1], RDMA_PS_TCP);
	if (!q) {
		v->cq = ibv_create_cq(v->id[q]->verbs, BN_QUEUES_MAX * 2, NULL, NULL, 0);
		v->mr = ibv_reg_mr(v->id[q]->pd, job->memory, BN_BYTES, IBV_ACCESS_LOCAL_WRITE);
	}
	if (!v->cq || !v->mr)
		bn_die("completion queue or memory");
	attr.send_cq = v->cq;
	attr.recv_cq = v->cq;
	if (rdma_create_qp(v->id[q], NULL, &attr))
		bn_die("queue pair");
	bn_connect(v->id[q], 16, NULL, &region, sizeof(region));
	for (i = 0; i < job->batch; i++) {
		struct ibv_send_wr *wr = &v->wrs[q][i];
		uint64_t at = bn_place(job, q, i);

		v->sge[q][i] = (struct ibv_sge){ .addr = (uintptr_t)job->memory + at,
						 .length = job->size,
						 .lkey = v->mr->lkey };
		wr->sg_list = &v->sge[q][i];
		wr->num_sge = 1;
		wr->opcode = job->write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		wr->wr.rdma.remote_addr = be64toh(region.addr) + at;
		wr->wr.rdma.rkey = be32toh(region.rkey);
		wr->next = i + 1 < job->batch ? wr + 1 : NULL;
		wr->send_flags = wr->next ? 0 : IBV_SEND_SIGNALED;
	}
}

static void bn_verbs_prepare(struct bn_data_verbs *v, const struct bn_job *job)
{
	char *fields[2];
	unsigned int q;

	bn_target_split(job->target, fields, 2);
	for (q = 0; q < job->queues; q++)
		bn_verbs_queue(v, job, q, fields);
}

static void bn_verbs_round(struct bn_data_verbs *v, const struct bn_job *job)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	unsigned int q;

	for (q = 0; q < job->queues; q++)
		if (!v->id[q] || ibv_post_send(v->id[q]->qp, v->wrs[q], &bad))
			bn_die("ibv_post_send");
	for (q = 0; q < job->queues; q++)
		bn_poll(v->cq, &wc, 0);
}

static void bn_run_krcore(const struct bn_job *job, struct bn_samples *took)
{
	struct bn_data_krcore *k = calloc(1, sizeof(*k));
	uint64_t i, begin_ns, at_ns;

	if (!k)
		bn_die("memory");
	bn_krcore_prepare(k, job);
	bn_krcore_round(k, job);
	begin_ns = bn_now_ns();
	for (i = 0; i < job->rounds; i++) {
		at_ns = bn_now_ns();
		bn_krcore_round(k, job);
		bn_samples_add(took, bn_now_ns() - at_ns);
	}
	bn_report(job, "krcore", took, bn_now_ns() - begin_ns);
	krcore_node_close(k->node);
	free(k);
}

static void bn_run_verbs(const struct bn_job *job, struct bn_samples *took)
{
	struct bn_data_verbs *v = calloc(1, sizeof(*v));
	uint64_t i, begin_ns, at_ns;

	if (!v)
		bn_die("memory");
	bn_verbs_prepare(v, job);
	bn_verbs_round(v, job);
	begin_ns = bn_now_ns();
	for (i = 0; i < job->rounds; i++) {
		at_ns = bn_now_ns();
		bn_verbs_round(v, job);
		bn_samples_add(took, bn_now_ns() - at_ns);
	}
	bn_report(job, "verbs", took, bn_now_ns() - begin_ns);
	free(v);
}

int main(int argc, char **argv)
{
	struct bn_samples took;
	struct bn_job job;

	if (argc != 8 || (strcmp(argv[1], "krcore") && strcmp(argv[1], "verbs")) ||
	    (strcmp(argv[3], "read") && strcmp(argv[3], "write"))) {
		fprintf(stderr,
			"usage: %s krcore|verbs TARGET read|write SIZE BATCH QUEUES ROUNDS\n",
			argv[0]);
		return 2;
	}
	job = (struct bn_job){
		.target = argv[2],
		.write = !strcmp(argv[3], "write"),
		.size = (uint32_t)bn_number(argv[4], 1, BN_BYTES, "SIZE"),
		.batch = (unsigned int)bn_number(argv[5], 1, BN_BATCH_MAX, "BATCH"),
		.queues = (unsigned int)bn_number(argv[6], 1, BN_QUEUES_MAX, "QUEUES"),
		.rounds = bn_number(argv[7], 1, 10000000, "ROUNDS"),
		.memory = aligned_alloc(4096, BN_BYTES),
	};
	if (!job.memory || bn_samples_init(&took, job.rounds))
		bn_die("memory");
	memset(job.memory, 0, BN_BYTES);
	if (!strcmp(argv[1], "krcore"))
		bn_run_krcore(&job, &took);
	else
		bn_run_verbs(&job, &took);
	bn_samples_done(&took);
	free(job.memory);
	return 0;
}
