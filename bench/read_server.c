// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The peer of a look-up: memory that others READ, without any table in it.
 *
 *	bench_read_server ADDRESS PORT MIB
 *
 * Registers MIB of memory for REMOTE_READ and accepts connections until it is
 * killed; the private data of the reply carries address and remote key. One
 * thread; the NIC alone serves the READs.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/keys.h"
#include "bench/link.h"

static void bn_accept(struct rdma_cm_id *id, const struct bn_region *region)
{
	struct rdma_conn_param param = {
		.private_data = region,
		.private_data_len = sizeof(*region),
		.responder_resources = 16,
		.initiator_depth = 16,
		.rnr_retry_count = 7,
	};

	bn_queue_pair(id, IBV_QPT_RC);
	if (rdma_accept(id, &param))
		bn_die("rdma_accept");
}

int main(int argc, char **argv)
{
	struct rdma_cm_event *event;
	struct bn_region region;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint64_t mib;
	void *memory;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT MIB\n", argv[0]);
		return 2;
	}
	mib = bn_number(argv[3], 1, 4096, "MIB");
	id = bn_listen(argv[1], argv[2], RDMA_PS_TCP);
	memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		bn_die("memory");
	mr = ibv_reg_mr(id->pd, memory, mib << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		bn_die("registering memory");
	region.addr = htobe64((uintptr_t)memory);
	region.rkey = htobe32(mr->rkey);
	region.mib = htobe32((uint32_t)mib);
	printf("ready\n");
	fflush(stdout);

	while (!rdma_get_cm_event(id->channel, &event)) {
		struct rdma_cm_id *peer = event->id;
		enum rdma_cm_event_type type = event->event;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			bn_accept(peer, &region);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(peer);
			rdma_destroy_qp(peer);
			rdma_destroy_id(peer);
		}
	}
	bn_die("rdma_get_cm_event");
}
