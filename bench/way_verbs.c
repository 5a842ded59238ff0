// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * An RC connection by plain verbs: see way.h.
 *
 * As a program does it that has nothing yet: each connection opens the device,
 * registers memory, makes a completion queue and a queue pair, exchanges numbers
 * over TCP, and takes the queue pair to RTS.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/way.h"

/* An instance: one connection at a time. */
struct bn_verbs {
	struct sockaddr_in to;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct bn_hello peer;
	uint64_t *memory;
	int fd;
};

struct ibv_context *bn_verbs_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!verbs)
		bn_die("no RDMA device");
	ibv_free_device_list(list);
	return verbs;
}

unsigned int bn_verbs_gid(struct ibv_context *verbs, uint8_t *ret_gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	unsigned int i;

	for (i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(verbs, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, mapped, sizeof(mapped)) != 0)
			continue;
		memcpy(ret_gid, entry.gid.raw, sizeof(entry.gid.raw));
		return i;
	}
	fprintf(stderr, "no RoCE v2 GID of an IPv4 address\n");
	exit(1);
}

void bn_verbs_connect(struct ibv_qp *qp, unsigned int gid_index, uint32_t psn,
		      const struct bn_hello *peer)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)be32toh(peer->mtu),
		.dest_qp_num = be32toh(peer->qpn),
		.rq_psn = be32toh(peer->psn),
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
	};

	memcpy(rtr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	rtr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
	rtr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		bn_die("queue pair to INIT");
	if (ibv_modify_qp(qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		bn_die("queue pair to RTR");
	if (ibv_modify_qp(qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		bn_die("queue pair to RTS");
}

void bn_verbs_address(const char *target, struct sockaddr_in *ret)
{
	char *fields[2];

	bn_target_split(target, fields, 2);
	memset(ret, 0, sizeof(*ret));
	ret->sin_family = AF_INET;
	ret->sin_port = htons((uint16_t)bn_number(fields[1], 1, 65535, "PORT"));
	if (inet_pton(AF_INET, fields[0], &ret->sin_addr) != 1)
		bn_die(fields[0]);
}

int bn_verbs_reach(const struct sockaddr_in *to, struct ibv_qp *qp, struct bn_hello *ret_peer)
{
	struct bn_hello ours = { .psn = htobe32(1), .qpn = htobe32(qp->qp_num) };
	unsigned int gid_index = bn_verbs_gid(qp->context, ours.gid);
	struct ibv_port_attr port;
	int on = 1, fd;

	if (ibv_query_port(qp->context, 1, &port))
		bn_die("ibv_query_port");
	ours.mtu = htobe32((uint32_t)port.active_mtu);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		bn_die("connect");
	if (write(fd, &ours, sizeof(ours)) != sizeof(ours) ||
	    recv(fd, ret_peer, sizeof(*ret_peer), MSG_WAITALL) != sizeof(*ret_peer))
		bn_die("exchange of numbers");
	bn_verbs_connect(qp, gid_index, 1, ret_peer);
	return fd;
}

static void *bn_verbs_open(const char *target)
{
	struct bn_verbs *way = calloc(1, sizeof(*way));

	if (!way)
		bn_die("memory");
	bn_verbs_address(target, &way->to);
	way->memory = calloc(1, BN_READ_BYTES);
	if (!way->memory)
		bn_die("memory");
	return way;
}

static void bn_verbs_resources(struct bn_verbs *way)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	way->verbs = bn_verbs_device();
	way->pd = ibv_alloc_pd(way->verbs);
	if (!way->pd)
		bn_die("protection domain");
	way->mr = ibv_reg_mr(way->pd, way->memory, BN_READ_BYTES, IBV_ACCESS_LOCAL_WRITE);
	way->cq = ibv_create_cq(way->verbs, 16, NULL, NULL, 0);
	if (!way->mr || !way->cq)
		bn_die("memory or completion queue");
	attr.send_cq = way->cq;
	attr.recv_cq = way->cq;
	way->qp = ibv_create_qp(way->pd, &attr);
	if (!way->qp)
		bn_die("queue pair");
}

static void bn_verbs_connect_way(void *arg, unsigned int flags)
{
	struct bn_verbs *way = arg;

	(void)flags;
	bn_verbs_resources(way);
	way->fd = bn_verbs_reach(&way->to, way->qp, &way->peer);
}

static void bn_verbs_read(void *arg)
{
	struct bn_verbs *way = arg;

	bn_read(way->qp, way->mr, way->memory, BN_READ_BYTES, be64toh(way->peer.addr),
		be32toh(way->peer.rkey));
}

static void bn_verbs_close(void *arg)
{
	struct bn_verbs *way = arg;

	ibv_destroy_qp(way->qp);
	ibv_destroy_cq(way->cq);
	ibv_dereg_mr(way->mr);
	ibv_dealloc_pd(way->pd);
	ibv_close_device(way->verbs);
	close(way->fd);
}

static void bn_verbs_done(void *arg)
{
	struct bn_verbs *way = arg;

	free(way->memory);
	free(way);
}

const struct bn_way bn_way_verbs = {
	.name = "verbs",
	.open = bn_verbs_open,
	.connect = bn_verbs_connect_way,
	.read = bn_verbs_read,
	.close = bn_verbs_close,
	.done = bn_verbs_done,
};
