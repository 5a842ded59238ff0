// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Everybody connects to everybody: this guest's share of the workers.
 *
 *	bench_mesh krcore|rdma_cm WORKERS GUEST ADDRESS...
 *
 * Worker i of WORKERS lives on guest i % number of addresses; GUEST says which of
 * them this is. A worker is a thread, and waits for its peers at a service (or
 * port) of its own. When all of the guest's are ready it waits at the gate "begin"
 * (see samples.h), connects each to all others, prints how long it took, and keeps
 * the connections until the gate "end".
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/queue.h>
#include <rdma/rdma_cma.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_MESH_SERVICE 1000 /* of worker 0 */
#define BN_MESH_PORT 20000
#define BN_WORKERS_MAX 1024
#define BN_STEP_MS 30000

/* All of it: constant once the workers run. */
struct bn_mesh {
	unsigned int workers;
	unsigned int guest;
	unsigned int guests;
	char **address;
	struct rdma_event_channel *passive;
	struct ibv_cq *cq;
};

static struct bn_mesh bn_mesh;

/* A worker of this guest. */
struct bn_mesh_worker {
	unsigned int index;
	struct krcore_node *node;
	struct rdma_event_channel *channel;
	uint64_t took_ns;
	pthread_t thread;
};

static const char *bn_address_of(unsigned int worker)
{
	return bn_mesh.address[worker % bn_mesh.guests];
}

static void bn_open_krcore(struct bn_mesh_worker *worker)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .ring_entries = 16 };

	while (opts.ring_entries < bn_mesh.workers)
		opts.ring_entries *= 2;
	if (krcore_node_open(&opts, &worker->node))
		bn_krcore_die("krcore_node_open");
	if (krcore_bind(worker->node, (uint16_t)(BN_MESH_SERVICE + worker->index), 30000))
		bn_krcore_die("krcore_bind");
}

static void bn_connect_krcore(struct bn_mesh_worker *worker)
{
	struct krcore_key peer;
	unsigned int i;
	uint32_t queue;

	for (i = 0; i < bn_mesh.workers; i++) {
		if (i == worker->index)
			continue;
		if (krcore_key_from_text(bn_address_of(i), (uint16_t)(BN_MESH_SERVICE + i),
					 &peer) ||
		    krcore_queue_open(worker->node, 1, &peer, 30000, 0, &queue, NULL))
			bn_krcore_die("a queue of the mesh");
	}
}

static struct sockaddr_in bn_at(unsigned int worker)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons((uint16_t)(BN_MESH_PORT + worker));
	if (inet_pton(AF_INET, bn_address_of(worker), &at.sin_addr) != 1)
		bn_die(bn_address_of(worker));
	return at;
}

static void bn_open_cm(struct bn_mesh_worker *worker)
{
	struct sockaddr_in at = bn_at(worker->index);
	struct rdma_cm_id *id;

	worker->channel = rdma_create_event_channel();
	if (!worker->channel || rdma_create_id(bn_mesh.passive, &id, NULL, RDMA_PS_TCP))
		bn_die("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, BN_WORKERS_MAX))
		bn_die("rdma_listen");
	if (!bn_mesh.cq)
		bn_mesh.cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	if (!bn_mesh.cq)
		bn_die("completion queue");
}

static void bn_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = bn_mesh.cq,
		.recv_cq = bn_mesh.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, NULL, &attr))
		bn_die("rdma_create_qp");
}

/* The thread that accepts for all workers of the guest. */
static void *bn_accept_all(void *arg)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *event;

	(void)arg;
	while (!rdma_get_cm_event(bn_mesh.passive, &event)) {
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;

		rdma_ack_cm_event(event);
		if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		bn_pair(id);
		if (rdma_accept(id, &param))
			bn_die("rdma_accept");
	}
	return NULL;
}

static void bn_expect(struct bn_mesh_worker *worker, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(worker->channel, &event))
		bn_die("rdma_get_cm_event");
	if (event->event != want) {
		fprintf(stderr, "%s instead of %s (status %d)\n", rdma_event_str(event->event),
			rdma_event_str(want), event->status);
		exit(1);
	}
	rdma_ack_cm_event(event);
}

static void bn_connect_cm(struct bn_mesh_worker *worker)
{
	struct rdma_conn_param param = { .responder_resources = 1,
					 .initiator_depth = 1,
					 .retry_count = 7 };
	unsigned int i;

	for (i = 0; i < bn_mesh.workers; i++) {
		struct sockaddr_in to = bn_at(i);
		struct rdma_cm_id *id;

		if (i == worker->index)
			continue;
		if (rdma_create_id(worker->channel, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, BN_STEP_MS))
			bn_die("rdma_resolve_addr");
		bn_expect(worker, RDMA_CM_EVENT_ADDR_RESOLVED);
		if (rdma_resolve_route(id, BN_STEP_MS))
			bn_die("rdma_resolve_route");
		bn_expect(worker, RDMA_CM_EVENT_ROUTE_RESOLVED);
		bn_pair(id);
		if (rdma_connect(id, &param))
			bn_die("rdma_connect");
		bn_expect(worker, RDMA_CM_EVENT_ESTABLISHED);
	}
}

static void *bn_work(void *arg)
{
	struct bn_mesh_worker *worker = arg;
	uint64_t begin_ns = bn_now_ns();

	if (worker->node)
		bn_connect_krcore(worker);
	else
		bn_connect_cm(worker);
	worker->took_ns = bn_now_ns() - begin_ns;
	return NULL;
}

static void bn_run(const char *name, struct bn_mesh_worker *workers, unsigned int nr)
{
	uint64_t begin_ns, longest_ns = 0;
	unsigned int i;

	bn_gate("begin");
	begin_ns = bn_now_ns();
	for (i = 0; i < nr; i++)
		if (pthread_create(&workers[i].thread, NULL, bn_work, &workers[i]))
			bn_die("thread");
	for (i = 0; i < nr; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].took_ns > longest_ns)
			longest_ns = workers[i].took_ns;
	}
	printf("{\"system\": \"%s\", \"case\": \"mesh\", \"workers\": %u, \"connections\": %u, "
	       "\"ns\": %" PRIu64 ", \"longest_ns\": %" PRIu64 "}\n",
	       name, nr, nr * (bn_mesh.workers - 1), bn_now_ns() - begin_ns, longest_ns);
	bn_gate("end");
}

int main(int argc, char **argv)
{
	static struct bn_mesh_worker workers[BN_WORKERS_MAX];
	unsigned int i, nr = 0;
	pthread_t passive;
	int ours;

	ours = argc > 4 && !strcmp(argv[1], "krcore");
	if (argc < 5 || (!ours && strcmp(argv[1], "rdma_cm"))) {
		fprintf(stderr, "usage: %s krcore|rdma_cm WORKERS GUEST ADDRESS...\n", argv[0]);
		return 2;
	}
	bn_mesh.workers = (unsigned int)bn_number(argv[2], 2, BN_WORKERS_MAX, "WORKERS");
	bn_mesh.guests = (unsigned int)argc - 4;
	bn_mesh.guest = (unsigned int)bn_number(argv[3], 0, bn_mesh.guests - 1, "GUEST");
	bn_mesh.address = argv + 4;
	if (!ours)
		bn_mesh.passive = rdma_create_event_channel();
	for (i = bn_mesh.guest; i < bn_mesh.workers; i += bn_mesh.guests) {
		workers[nr].index = i;
		if (ours)
			bn_open_krcore(&workers[nr++]);
		else
			bn_open_cm(&workers[nr++]);
	}
	if (!ours && pthread_create(&passive, NULL, bn_accept_all, NULL))
		bn_die("thread");
	bn_run(argv[1], workers, nr);
	return 0;
}
