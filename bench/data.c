// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * READs, WRITEs and atomics: how long a round of them takes, and how many there are a second.
 *
 *	bench_data krcore|verbs|verbs_selective TARGET read|write|fetch_add SIZE BATCH QUEUES
 *		   ROUNDS [stream]
 *
 * A round posts BATCH requests to each of QUEUES queues, with one call a queue,
 * and waits for all of them; one thread. krcore posts to queues of one node
 * context; verbs to RC queue pairs connected by rdma_cm. Each request has a completion;
 * verbs_selective asks for one of the last request of a batch only, and is told no more
 * of the others than that they are done. As a stream, BATCH requests are outstanding all
 * the time, on one queue: another one is posted for each that has completed, as perftest
 * does it, and each has a completion. TARGET as for bench_connect, see way.h.
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
#include "bench/meter.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_BYTES (4U << 20) /* memory at each end */
#define BN_BATCH_MAX 64
#define BN_QUEUES_MAX 64

/* A kind of request, and its opcode in both worlds. */
struct bn_request {
	const char *name;
	uint8_t krcore;
	enum ibv_wr_opcode verbs;
};

static const struct bn_request bn_requests[] = {
	{ "read", KRCORE_OP_READ, IBV_WR_RDMA_READ },
	{ "write", KRCORE_OP_WRITE, IBV_WR_RDMA_WRITE },
	{ "fetch_add", KRCORE_OP_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD }, /* SIZE is 8 */
};

/* What is measured. */
struct bn_job {
	const char *target;
	const struct bn_request *what;
	uint32_t size;
	unsigned int batch;
	unsigned int queues;
	uint64_t rounds;
	int stream;
	char *memory;
};

/*
 * Where request `i` of queue `queue` has its bytes, at both ends. Those of a stream share
 * theirs, as perftest's of a page or more do: the same caches for all.
 */
static uint64_t bn_place(const struct bn_job *job, unsigned int queue, unsigned int i)
{
	if (job->stream)
		return 0;
	return (uint64_t)(queue * job->batch + i) * job->size % (BN_BYTES - job->size + 1) & ~7ULL;
}

static void bn_report(const struct bn_job *job, const char *system, struct bn_samples *took,
		      uint64_t took_ns)
{
	uint64_t requests = job->rounds * job->queues * job->batch;

	bn_samples_print(took, system, job->what->name, 0, 0);
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

			/* no KRCORE_WR_IDEMPOTENT: as much is promised as by verbs */
			krcore_wr_read(&k->wrs[q][i], &k->mr, job->memory + at, job->size, &ref, at,
				       i);
			k->wrs[q][i].opcode = job->what->krcore;
			k->wrs[q][i].compare_add = 1;
		}
	}
}

/* Wait for some completions. Return: how many. */
static unsigned int bn_krcore_some(struct bn_data_krcore *k)
{
	struct krcore_wc wcs[BN_BATCH_MAX];
	unsigned int nr, i;

	nr = bn_krcore_next(k->node, wcs, BN_BATCH_MAX);
	for (i = 0; i < nr; i++) {
		if (!wcs[i].status)
			continue;
		fprintf(stderr, "completion: %s\n", strerror(-wcs[i].status));
		exit(1);
	}
	return nr;
}

/* Post `nr` of a queue's requests, from `first` on. */
static void bn_krcore_post(struct bn_data_krcore *k, unsigned int queue, unsigned int first,
			   unsigned int nr, int wait)
{
	typeof(krcore_post) *post = wait ? krcore_post_wait : krcore_post;

	while (nr) {
		int taken = post(k->node, k->queue[queue], k->wrs[queue] + first, nr, NULL);

		if (taken < 0)
			bn_krcore_die("krcore_post");
		first += (unsigned int)taken;
		nr -= (unsigned int)taken;
	}
}

static void bn_krcore_round(void *state, const struct bn_job *job)
{
	struct bn_data_krcore *k = state;
	unsigned int q, left;

	for (q = 0; q < job->queues; q++) /* after the last there is nothing to do but to wait */
		bn_krcore_post(k, q, 0, job->batch, q + 1 == job->queues);
	for (left = job->queues * job->batch; left;)
		left -= bn_krcore_some(k);
}

static void bn_krcore_stream(void *state, const struct bn_job *job)
{
	struct bn_data_krcore *k = state;
	uint64_t left = job->rounds * job->batch, unposted = left - job->batch;
	unsigned int next = 0;

	bn_krcore_post(k, 0, 0, job->batch, 0);
	while (left) {
		unsigned int nr = bn_krcore_some(k);

		for (left -= nr; nr && unposted; nr--, unposted--) {
			bn_krcore_post(k, 0, next, 1, 0);
			next = (next + 1) % job->batch;
		}
	}
}

/* RC queue pairs: their state. */
struct bn_data_verbs {
	int selective;
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
		v->cq = ibv_create_cq(v->id[q]->verbs, BN_QUEUES_MAX * BN_BATCH_MAX, NULL, NULL, 0);
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
		wr->opcode = job->what->verbs;
		if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr->wr.atomic.remote_addr = be64toh(region.addr) + at;
			wr->wr.atomic.rkey = be32toh(region.rkey);
			wr->wr.atomic.compare_add = 1;
		} else {
			wr->wr.rdma.remote_addr = be64toh(region.addr) + at;
			wr->wr.rdma.rkey = be32toh(region.rkey);
		}
		wr->next = i + 1 < job->batch ? wr + 1 : NULL;
		wr->send_flags = wr->next && v->selective ? 0 : IBV_SEND_SIGNALED;
		if (job->stream)
			wr->next = NULL;
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

static void bn_verbs_post(struct bn_data_verbs *v, unsigned int queue, unsigned int first)
{
	struct ibv_send_wr *bad;

	if (!v->id[queue] || ibv_post_send(v->id[queue]->qp, &v->wrs[queue][first], &bad))
		bn_die("ibv_post_send");
}

/* Wait for some completions. Return: how many. */
static unsigned int bn_verbs_some(struct bn_data_verbs *v)
{
	struct ibv_wc wcs[BN_BATCH_MAX];
	int nr, i;

	bn_poll(v->cq, wcs, 0);
	nr = ibv_poll_cq(v->cq, BN_BATCH_MAX, wcs);
	if (nr < 0)
		bn_die("ibv_poll_cq");
	for (i = 0; i < nr; i++)
		bn_wc_check(&wcs[i]);
	return (unsigned int)nr + 1;
}

static void bn_verbs_round(void *state, const struct bn_job *job)
{
	struct bn_data_verbs *v = state;
	unsigned int q, left;

	for (q = 0; q < job->queues; q++)
		bn_verbs_post(v, q, 0);
	bn_settle();
	for (left = job->queues * (v->selective ? 1 : job->batch); left;)
		left -= bn_verbs_some(v);
}

static void bn_verbs_stream(void *state, const struct bn_job *job)
{
	struct bn_data_verbs *v = state;
	uint64_t left = job->rounds * job->batch, unposted = left;
	unsigned int room = job->batch, next = 0;

	while (left) {
		unsigned int nr;

		for (; unposted && room; unposted--, room--) {
			bn_verbs_post(v, 0, next);
			next = (next + 1) % job->batch;
		}
		nr = bn_verbs_some(v);
		room += nr;
		left -= nr;
	}
}

static void *bn_krcore_open(const struct bn_job *job)
{
	struct bn_data_krcore *k = calloc(1, sizeof(*k));

	if (!k)
		bn_die("memory");
	bn_krcore_prepare(k, job);
	return k;
}

static struct bn_data_verbs *bn_verbs_new(const struct bn_job *job, int selective)
{
	struct bn_data_verbs *v = calloc(1, sizeof(*v));

	if (!v)
		bn_die("memory");
	v->selective = selective;
	bn_verbs_prepare(v, job);
	return v;
}

static void *bn_verbs_open(const struct bn_job *job)
{
	return bn_verbs_new(job, 0);
}

static void *bn_verbs_selective_open(const struct bn_job *job)
{
	return bn_verbs_new(job, 1);
}

static void bn_krcore_close(void *state)
{
	struct bn_data_krcore *k = state;

	krcore_node_close(k->node);
	free(k);
}

/* One of those that are compared. */
struct bn_system {
	const char *name;
	void *(*open)(const struct bn_job *job);
	void (*round)(void *state, const struct bn_job *job);
	void (*stream)(void *state, const struct bn_job *job);
	void (*close)(void *state);
};

static const struct bn_system bn_systems[] = {
	{ "krcore", bn_krcore_open, bn_krcore_round, bn_krcore_stream, bn_krcore_close },
	{ "verbs", bn_verbs_open, bn_verbs_round, bn_verbs_stream, free },
	{ "verbs_selective", bn_verbs_selective_open, bn_verbs_round, bn_verbs_stream, free },
};

static void bn_run(const struct bn_system *system, const struct bn_job *job)
{
	void (*work)(void *, const struct bn_job *) = job->stream ? system->stream : system->round;
	struct bn_job once = *job;
	struct bn_samples took;
	uint64_t i, begin_ns, at_ns;
	void *state;

	if (bn_samples_init(&took, job->rounds))
		bn_die("memory");
	state = system->open(job);
	once.rounds = 1;
	work(state, &once); /* to warm up */
	begin_ns = bn_now_ns();
	for (i = 0; i < (job->stream ? 1 : job->rounds); i++) {
		at_ns = bn_now_ns();
		BN_MARK(BEGIN);
		work(state, job);
		BN_MARK(END);
		bn_samples_add(&took, bn_now_ns() - at_ns);
	}
	bn_report(job, system->name, &took, bn_now_ns() - begin_ns);
	bn_samples_done(&took);
	system->close(state);
}

static const struct bn_request *bn_request_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(bn_requests) / sizeof(bn_requests[0]); i++)
		if (!strcmp(bn_requests[i].name, name))
			return &bn_requests[i];
	return NULL;
}

static const struct bn_system *bn_system_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(bn_systems) / sizeof(bn_systems[0]); i++)
		if (!strcmp(bn_systems[i].name, name))
			return &bn_systems[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct bn_system *system = argc > 1 ? bn_system_find(argv[1]) : NULL;
	const struct bn_request *what = argc > 3 ? bn_request_find(argv[3]) : NULL;
	struct bn_job job;

	if ((argc != 8 && (argc != 9 || strcmp(argv[8], "stream"))) || !system || !what) {
		fprintf(stderr,
			"usage: %s krcore|verbs|verbs_selective TARGET read|write|fetch_add SIZE "
			"BATCH QUEUES ROUNDS [stream]\n",
			argv[0]);
		return 2;
	}
	job = (struct bn_job){
		.target = argv[2],
		.what = what,
		.size = (uint32_t)bn_number(argv[4], 1, BN_BYTES, "SIZE"),
		.batch = (unsigned int)bn_number(argv[5], 1, BN_BATCH_MAX, "BATCH"),
		.queues = (unsigned int)bn_number(argv[6], 1, argc == 9 ? 1 : BN_QUEUES_MAX,
						  "QUEUES"),
		.rounds = bn_number(argv[7], 1, 10000000, "ROUNDS"),
		.stream = argc == 9,
		.memory = aligned_alloc(4096, BN_BYTES),
	};
	if (!job.memory)
		bn_die("memory");
	memset(job.memory, 0, BN_BYTES);
	bn_run(system, &job);
	free(job.memory);
	return 0;
}
