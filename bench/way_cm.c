// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * An RC connection by rdma_cm: see way.h.
 *
 * What connections can share is made once and not counted: event channel, memory
 * and completion queue. A connection is an identifier, address and route, a queue
 * pair, and the handshake; what the server says of its memory comes with it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/way.h"

#define BN_STEP_MS 5000
#define BN_LOOK_EVERY 1024 /* polls between two looks for an event */

/* An instance: one connection at a time. */
struct bn_cm {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_in to;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct bn_region region;
	uint64_t *memory;
	int gone; /* the end of the connection was taken from the channel */
};

static void bn_cm_aim(void *arg, const char *target)
{
	struct bn_cm *way = arg;
	char *fields[2];

	bn_target_split(target, fields, 2);
	way->to.sin_family = AF_INET;
	way->to.sin_port = htons((uint16_t)bn_number(fields[1], 1, 65535, "PORT"));
	if (inet_pton(AF_INET, fields[0], &way->to.sin_addr) != 1)
		bn_die(fields[0]);
}

static void *bn_cm_open(const char *target)
{
	struct bn_cm *way = calloc(1, sizeof(*way));

	if (!way)
		bn_die("memory");
	bn_cm_aim(way, target);
	way->memory = calloc(1, BN_READ_BYTES);
	if (!way->memory)
		bn_die("memory");
	way->channel = rdma_create_event_channel();
	if (!way->channel)
		bn_die("rdma_create_event_channel");
	return way;
}

/* Wait for the one event that must come now. */
static void bn_cm_event(struct bn_cm *way, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(way->channel, &event))
		bn_die("rdma_get_cm_event");
	if (event->event != want) {
		fprintf(stderr, "%s instead of %s (status %d)\n", rdma_event_str(event->event),
			rdma_event_str(want), event->status);
		exit(1);
	}
	if (want == RDMA_CM_EVENT_ESTABLISHED &&
	    event->param.conn.private_data_len >= sizeof(way->region))
		memcpy(&way->region, event->param.conn.private_data, sizeof(way->region));
	rdma_ack_cm_event(event);
}

/* Once, as soon as the device is known. */
static void bn_cm_shared(struct bn_cm *way)
{
	if (way->cq)
		return;
	way->cq = ibv_create_cq(way->id->verbs, 16, NULL, NULL, 0);
	/* librdmacm's own domain changes when the last identifier goes */
	way->pd = ibv_alloc_pd(way->id->verbs);
	way->mr = way->pd ? ibv_reg_mr(way->pd, way->memory, BN_READ_BYTES, IBV_ACCESS_LOCAL_WRITE)
			  : NULL;
	if (!way->cq || !way->mr)
		bn_die("completion queue or memory");
}

static void bn_cm_connect(void *arg, unsigned int flags)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct bn_cm *way = arg;

	(void)flags;
	if (rdma_create_id(way->channel, &way->id, NULL, RDMA_PS_TCP))
		bn_die("rdma_create_id");
	if (rdma_resolve_addr(way->id, NULL, (struct sockaddr *)&way->to, BN_STEP_MS))
		bn_die("rdma_resolve_addr");
	bn_cm_event(way, RDMA_CM_EVENT_ADDR_RESOLVED);
	bn_cm_shared(way);
	if (rdma_resolve_route(way->id, BN_STEP_MS))
		bn_die("rdma_resolve_route");
	bn_cm_event(way, RDMA_CM_EVENT_ROUTE_RESOLVED);
	attr.send_cq = way->cq;
	attr.recv_cq = way->cq;
	if (rdma_create_qp(way->id, way->pd, &attr))
		bn_die("rdma_create_qp");
	if (rdma_connect(way->id, &param))
		bn_die("rdma_connect");
	bn_cm_event(way, RDMA_CM_EVENT_ESTABLISHED);
}

static void bn_cm_read(void *arg)
{
	struct bn_cm *way = arg;

	bn_read(way->id->qp, way->mr, way->memory, BN_READ_BYTES, be64toh(way->region.addr),
		be32toh(way->region.rkey));
}

/* Whether the peer has ended the connection: a program that watches its channel learns it. */
static int bn_cm_ended(struct bn_cm *way)
{
	struct pollfd channel = { .fd = way->channel->fd, .events = POLLIN };

	if (poll(&channel, 1, 0) == 1) {
		bn_cm_event(way, RDMA_CM_EVENT_DISCONNECTED);
		way->gone = 1;
	}
	return way->gone;
}

static int bn_cm_attempt(void *arg)
{
	struct bn_cm *way = arg;
	struct ibv_sge sge = { .addr = (uintptr_t)way->memory,
			       .length = BN_READ_BYTES,
			       .lkey = way->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	unsigned int polls = 0;
	struct ibv_wc wc;
	int nr;

	wr.wr.rdma.remote_addr = be64toh(way->region.addr);
	wr.wr.rdma.rkey = be32toh(way->region.rkey);
	if (ibv_post_send(way->id->qp, &wr, &bad))
		return -EIO;
	while (!(nr = ibv_poll_cq(way->cq, 1, &wc)))
		if (!(++polls % BN_LOOK_EVERY) && bn_cm_ended(way))
			return -ECONNRESET;
	return nr < 0 || wc.status != IBV_WC_SUCCESS ? -EIO : 0;
}

static void bn_cm_close(void *arg)
{
	struct bn_cm *way = arg;
	struct ibv_wc wc;

	rdma_disconnect(way->id);
	if (!way->gone)
		bn_cm_event(way, RDMA_CM_EVENT_DISCONNECTED);
	way->gone = 0;
	while (ibv_poll_cq(way->cq, 1, &wc) > 0)
		; /* what a failed attempt left */
	rdma_destroy_qp(way->id);
	rdma_destroy_id(way->id);
	way->id = NULL;
}

static void bn_cm_done(void *arg)
{
	struct bn_cm *way = arg;

	if (way->mr)
		ibv_dereg_mr(way->mr);
	if (way->pd)
		ibv_dealloc_pd(way->pd);
	if (way->cq)
		ibv_destroy_cq(way->cq);
	rdma_destroy_event_channel(way->channel);
	free(way->memory);
	free(way);
}

const struct bn_way bn_way_cm = {
	.name = "rdma_cm",
	.open = bn_cm_open,
	.connect = bn_cm_connect,
	.read = bn_cm_read,
	.attempt = bn_cm_attempt,
	.aim = bn_cm_aim,
	.close = bn_cm_close,
	.done = bn_cm_done,
};
