// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Holds connections, so that what they take of a node's memory can be read.
 *
 *	bench_hold publish PEER PEERS	copies of PEER's record under PEERS other GIDs
 *	bench_hold cache PEERS		one queue, connected to each of them in turn
 *	bench_hold queues PEERS		a queue to each of them
 *	bench_hold idle PEER QUEUES	queues to one peer
 *	bench_hold rc PEERS		an RC queue pair a peer, connected
 *	bench_hold workers WAY PROCESSES TARGET...
 *					processes, each with a connection to each target, see way.h,
 *					over which it has READ
 *
 * Says "held" and sleeps. The other GIDs are fd00::1 and on; nothing is sent to
 * them. One thread in each process.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/way.h"

#define BN_ENTRIES_MAX 65536
#define BN_PROCESSES_MAX 1024

/* Peers of the subnet 10.78.0.0/16, in which the node has an address: see connect.py. */
static struct krcore_key bn_peer(uint64_t index)
{
	struct krcore_key key = { .gid = { [10] = 0xff, 0xff }, .service = KRCORE_SERVICE_NODE };
	uint32_t address = htobe32((10U << 24 | 78U << 16) + 256 + (uint32_t)index);

	memcpy(key.gid + 12, &address, sizeof(address));
	return key;
}

static void bn_publish(const char *peer, uint64_t peers)
{
	const struct krcore_options direct = { .size = sizeof(direct),
					       .flags = KRCORE_OPEN_DIRECT };
	struct krcore_value value;
	struct krcore_key key;
	struct krcore_ctx *ctx;
	uint64_t i;

	if (krcore_open(&direct, &ctx))
		bn_krcore_die("krcore_open");
	if (krcore_key_from_text(peer, KRCORE_SERVICE_NODE, &key) ||
	    krcore_lookup(ctx, &key, &value, NULL))
		bn_krcore_die(peer);
	for (i = 0; i < peers; i++) {
		key = bn_peer(i);
		if (krcore_publish(ctx, &key, &value) < 0)
			bn_krcore_die("krcore_publish");
	}
}

/* A node whose ring has room for so many queues of one request. */
static struct krcore_node *bn_node(uint64_t queues)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .ring_entries = 16 };
	struct krcore_node *node;

	while (opts.ring_entries < queues)
		opts.ring_entries *= 2;
	if (krcore_node_open(&opts, &node))
		bn_krcore_die("krcore_node_open");
	return node;
}

static void bn_idle(const char *peer, uint64_t queues)
{
	struct krcore_node *node = bn_node(queues);
	struct krcore_key key;
	uint32_t queue;
	uint64_t i;

	if (krcore_key_from_text(peer, KRCORE_SERVICE_NODE, &key))
		bn_krcore_die(peer);
	for (i = 0; i < queues; i++)
		if (krcore_queue_open(node, 1, &key, 10000, 0, &queue, NULL))
			bn_krcore_die("queue");
}

static void bn_queues(uint64_t peers, int one_each)
{
	struct krcore_node *node = bn_node(one_each ? peers : 1);
	uint32_t queue;
	uint64_t i;

	for (i = 0; i < peers; i++) {
		struct krcore_key key = bn_peer(i);

		if (krcore_queue_open(node, 1, &key, 10000, 0, &queue, NULL))
			bn_krcore_die("queue");
		if (!one_each && krcore_queue_close(node, queue))
			bn_krcore_die("krcore_queue_close");
	}
}

static void bn_pairs(uint64_t peers)
{
	struct ibv_context *verbs = bn_verbs_device();
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_cq *cq = ibv_create_cq(verbs, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct bn_hello peer = { .qpn = htobe32(1), .mtu = htobe32(IBV_MTU_1024) };
	unsigned int gid_index = bn_verbs_gid(verbs, peer.gid);
	uint64_t i;

	if (!pd || !cq)
		bn_die("device");
	for (i = 0; i < peers; i++) {
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		if (!qp)
			bn_die("queue pair");
		bn_verbs_connect(qp, gid_index, 1, &peer);
	}
}

/* One of the processes; tells its parent when it has READ from all of them. */
static void bn_worker(const struct bn_way *ops, char **targets, int nr, int ready)
{
	int i;

	for (i = 0; i < nr; i++) {
		void *way = ops->open(targets[i]);

		ops->connect(way, 0);
		ops->read(way);
	}
	if (write(ready, "", 1) != 1)
		bn_die("pipe");
	for (;;)
		pause();
}

static void bn_workers(const struct bn_way *ops, uint64_t processes, char **targets, int nr)
{
	int fds[2];
	uint64_t i;
	pid_t pid;
	char byte;

	if (pipe(fds))
		bn_die("pipe");
	for (i = 0; i < processes; i++) {
		pid = fork();
		if (pid < 0)
			bn_die("fork");
		if (!pid) {
			close(fds[0]);
			bn_worker(ops, targets, nr, fds[1]);
		}
	}
	close(fds[1]); /* so that the end of the last one is seen, if they fail */
	for (i = 0; i < processes; i++)
		if (read(fds[0], &byte, 1) != 1)
			bn_die("a process has failed");
}

static void bn_held(void) __attribute__((noreturn));
static void bn_held(void)
{
	printf("held\n");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t peers;

	if (!strcmp(what, "workers") && argc > 4 && bn_way_find(argv[2])) {
		bn_workers(bn_way_find(argv[2]),
			   bn_number(argv[3], 1, BN_PROCESSES_MAX, "PROCESSES"), argv + 4,
			   argc - 4);
		bn_held();
	}
	if (argc != (strcmp(what, "publish") && strcmp(what, "idle") ? 3 : 4)) {
		fprintf(stderr,
			"usage: %s publish|idle PEER PEERS\n"
			"       %s cache|queues|rc PEERS\n"
			"       %s workers WAY PROCESSES TARGET...\n",
			argv[0], argv[0], argv[0]);
		return 2;
	}
	peers = bn_number(argv[argc - 1], 0, BN_ENTRIES_MAX, "PEERS");
	if (!strcmp(what, "publish")) {
		bn_publish(argv[2], peers);
	} else if (!strcmp(what, "idle")) {
		bn_idle(argv[2], peers);
	} else if (!strcmp(what, "rc")) {
		bn_pairs(peers);
	} else if (!strcmp(what, "cache") || !strcmp(what, "queues")) {
		bn_queues(peers, !strcmp(what, "queues"));
	} else {
		fprintf(stderr, "'%s' is not publish, idle, cache, queues, rc or workers\n", what);
		return 2;
	}
	bn_held();
}
