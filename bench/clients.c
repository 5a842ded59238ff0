// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Very many clients of one MetaServer in one process.
 *
 *	bench_clients HOST PORT CLIENTS
 *
 * Each client is what libkrcore would be, but small: a queue pair of its own,
 * the whole handshake without a key, a READ of the root, one record published,
 * and then a RENEW every third of its lease, for ever. BN_WINDOW of them attach
 * at once; one whose connection breaks before it is attached begins again. Says
 * each second how far it is, how long attaching took each client, "holding" when
 * all are attached, then every second how many renewals were acknowledged. Ends
 * with 1 and the cause if an attached client fails.
 *
 * One thread: one loop over the events of rdma_cm and the completions of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "proto/krp_msg.h"

#define BN_WINDOW 16
#define BN_STEP_MS 60000
#define BN_BATCH 64
#define BN_SERVICES (65536 - KRP_SERVICE_USER_MIN)
#define BN_SECOND_NS 1000000000ULL

enum bn_step {
	BN_CONNECTING,
	BN_HELLO,
	BN_AUTH,
	BN_ROOT,
	BN_PUBLISH,
	BN_READY,
	BN_RENEW,
};

/**
 * struct bn_peer - One client.
 * @id: connection.
 * @nr: which one.
 * @step: what it waits for.
 * @begin_ns: when it began to attach.
 * @renew_ns: when to renew; clients become ready in this order.
 * @next: list of those that are ready.
 * @out: messages to the server.
 * @in: messages from it, and the root.
 */
struct bn_peer {
	struct rdma_cm_id *id;
	uint32_t nr;
	enum bn_step step;
	uint64_t begin_ns;
	uint64_t renew_ns;
	struct bn_peer *next;
	__u64 out[KRP_MSG_BYTES_MAX / 8];
	__u64 in[KRP_MSG_BYTES_MAX / 8];
};

static struct rdma_addrinfo *bn_address;
static struct rdma_event_channel *bn_channel;
static struct ibv_comp_channel *bn_completions;
static struct ibv_cq *bn_cq;
static uint32_t bn_lkey;
static struct bn_peer *bn_peers, *bn_ready, **bn_ready_end = &bn_ready;
static uint32_t bn_nr, bn_begun, bn_attached;
static uint64_t bn_renewals, bn_again, bn_renew_every_ns;
static struct bn_samples bn_took;

static void bn_fail(const struct bn_peer *p, const char *what, const char *why)
{
	fprintf(stderr, "client %u of %u, %u attached: %s: %s\n", p->nr, bn_nr, bn_attached, what,
		why);
	exit(1);
}

/* A client that is ready, or has renewed, is the last that has to renew. */
static void bn_rest(struct bn_peer *p)
{
	p->step = BN_READY;
	p->renew_ns = bn_now_ns() + bn_renew_every_ns;
	p->next = NULL;
	*bn_ready_end = p;
	bn_ready_end = &p->next;
}

/* ---- the queue pair ---- */

static void bn_post_recv(struct bn_peer *p)
{
	struct ibv_sge sge = { (uintptr_t)p->in, sizeof(p->in), bn_lkey };
	struct ibv_recv_wr wr = { .wr_id = p->nr, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(p->id->qp, &wr, &bad))
		bn_fail(p, "ibv_post_recv", strerror(errno));
}

static void bn_post(struct bn_peer *p, struct ibv_sge *sge, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	sge->lkey = bn_lkey;
	wr->wr_id = p->nr;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(p->id->qp, wr, &bad))
		bn_fail(p, "ibv_post_send", strerror(errno));
}

static void bn_send(struct bn_peer *p, enum bn_step step)
{
	const struct krp_msg_hdr *hdr = (const void *)p->out;
	struct ibv_sge sge = { .addr = (uintptr_t)p->out, .length = krp_le16_to_cpu(hdr->bytes) };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	p->step = step;
	bn_post(p, &sge, &wr);
}

static void bn_send_hello(struct bn_peer *p)
{
	struct krp_hello *m = (void *)p->out;
	__le32 nr = krp_cpu_to_le32(p->nr);

	krp_msg_init(m, KRP_MSG_HELLO, 1, KRP_ST_OK, 0);
	m->features = krp_cpu_to_le64(KRP_FEATURES_PROGRAM);
	m->generation = krp_cpu_to_le64(1);
	memcpy(m->gid, p->id->route.addr.addr.ibaddr.sgid.raw, sizeof(m->gid));
	/* the same number on another node is another owner */
	memcpy(m->owner, m->gid, sizeof(m->owner));
	memcpy(m->owner, &nr, sizeof(nr));
	m->version_min = KRP_MSG_VERSION;
	m->version_max = KRP_MSG_VERSION;
	snprintf((char *)m->name, sizeof(m->name), "client-%u", p->nr);
	bn_send(p, BN_HELLO);
}

static void bn_send_publish(struct bn_peer *p)
{
	struct krp_publish *m = (void *)p->out;

	krp_msg_init(m, KRP_MSG_PUBLISH, 3, KRP_ST_OK, 0);
	memcpy(m->key.gid, p->id->route.addr.addr.ibaddr.sgid.raw, sizeof(m->key.gid));
	m->key.service = krp_cpu_to_le16((__u16)(KRP_SERVICE_USER_MIN + p->nr));
	bn_value(p->nr, &m->value);
	bn_send(p, BN_PUBLISH);
}

static void bn_read_root(struct bn_peer *p, const struct krp_welcome *m)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->out, .length = sizeof(struct krp_root) };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };

	bn_renew_every_ns = krp_le32_to_cpu(m->lease_ms) / 3 * 1000000ULL;
	wr.wr.rdma.remote_addr = krp_le64_to_cpu(m->root.addr);
	wr.wr.rdma.rkey = krp_le32_to_cpu(m->root.rkey);
	p->step = BN_ROOT;
	bn_post(p, &sge, &wr);
}

static void bn_received(struct bn_peer *p, unsigned int bytes)
{
	const struct krp_msg_hdr *hdr = (const void *)p->in;
	unsigned int status = krp_msg_check(p->in, bytes, 0);

	if (!status)
		status = krp_le16_to_cpu(hdr->status);
	if (status)
		bn_fail(p, krp_msg_name(hdr->type), krp_status_text(status));
	switch (p->step) {
	case BN_HELLO:
		krp_msg_init(p->out, KRP_MSG_AUTH, 2, KRP_ST_OK, 0);
		bn_send(p, BN_AUTH);
		break;
	case BN_AUTH:
		bn_read_root(p, (const void *)p->in);
		break;
	case BN_PUBLISH:
		bn_attached++;
		bn_samples_add(&bn_took, bn_now_ns() - p->begin_ns);
		bn_rest(p);
		break;
	case BN_RENEW:
		bn_renewals++;
		bn_rest(p);
		break;
	default:
		bn_fail(p, krp_msg_name(hdr->type), "nothing was asked");
	}
	bn_post_recv(p);
}

static void bn_completed(const struct ibv_wc *wc)
{
	struct bn_peer *p = &bn_peers[wc->wr_id];

	if (wc->status == IBV_WC_WR_FLUSH_ERR && p->step < BN_READY)
		return; /* of a connection that broke; its event tells */
	if (wc->status != IBV_WC_SUCCESS)
		bn_fail(p, "completion", ibv_wc_status_str(wc->status));
	if (wc->opcode == IBV_WC_RECV) {
		bn_received(p, wc->byte_len);
	} else if (wc->opcode == IBV_WC_RDMA_READ) {
		if (!krp_root_valid((const void *)p->out))
			bn_fail(p, "READ", "this is not a root");
		bn_send_publish(p);
	}
}

static void bn_poll_completions(void)
{
	struct ibv_wc wc[BN_BATCH];
	struct ibv_cq *cq;
	void *arg;
	int i, nr;

	if (!ibv_get_cq_event(bn_completions, &cq, &arg)) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	while ((nr = ibv_poll_cq(bn_cq, BN_BATCH, wc)) > 0)
		for (i = 0; i < nr; i++)
			bn_completed(&wc[i]);
}

/* ---- the connection ---- */

static void bn_nonblocking(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		bn_die("fcntl");
}

/* What all clients have in common, made with the first. */
static void bn_resources(struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;
	uint64_t depth = 3ULL * bn_nr;
	struct ibv_mr *mr;

	if (ibv_query_device(id->verbs, &attr))
		bn_die("ibv_query_device");
	if (depth > (uint64_t)attr.max_cqe)
		depth = (uint64_t)attr.max_cqe;
	bn_completions = ibv_create_comp_channel(id->verbs);
	if (!bn_completions)
		bn_die("completion channel");
	bn_nonblocking(bn_completions->fd);
	bn_cq = ibv_create_cq(id->verbs, (int)depth, NULL, bn_completions, 0);
	mr = ibv_reg_mr(id->pd, bn_peers, bn_nr * sizeof(*bn_peers), IBV_ACCESS_LOCAL_WRITE);
	if (!bn_cq || !mr || ibv_req_notify_cq(bn_cq, 0))
		bn_die("completion queue and memory");
	bn_lkey = mr->lkey;
}

static void bn_connect_peer(struct bn_peer *p)
{
	struct rdma_conn_param param = {
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!bn_cq)
		bn_resources(p->id);
	attr.send_cq = bn_cq;
	attr.recv_cq = bn_cq;
	if (rdma_create_qp(p->id, NULL, &attr))
		bn_fail(p, "queue pair", strerror(errno));
	bn_post_recv(p);
	if (rdma_connect(p->id, &param))
		bn_fail(p, "rdma_connect", strerror(errno));
}

static void bn_begin(struct bn_peer *p)
{
	p->step = BN_CONNECTING;
	if (rdma_create_id(bn_channel, &p->id, p, RDMA_PS_TCP))
		bn_fail(p, "rdma_create_id", strerror(errno));
	if (rdma_resolve_addr(p->id, NULL, bn_address->ai_dst_addr, BN_STEP_MS))
		bn_fail(p, "rdma_resolve_addr", strerror(errno));
}

/* A connection is gone before the client was attached. */
static void bn_begin_again(struct bn_peer *p)
{
	bn_again++;
	if (p->id->qp)
		rdma_destroy_qp(p->id);
	rdma_destroy_id(p->id);
	bn_begin(p);
}

static void bn_cm_events(void)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(bn_channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct bn_peer *p = event->id->context;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
			if (rdma_resolve_route(p->id, BN_STEP_MS))
				bn_fail(p, "rdma_resolve_route", strerror(errno));
		} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
			bn_connect_peer(p);
		} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
			bn_send_hello(p);
		} else if (p->step < BN_READY) {
			bn_begin_again(p);
		} else {
			bn_fail(p, "connection", rdma_event_str(type));
		}
	}
}

/* ---- the loop ---- */

static void bn_renew_due(void)
{
	uint64_t now_ns = bn_now_ns();

	while (bn_ready && bn_ready->renew_ns <= now_ns) {
		struct bn_peer *p = bn_ready;

		bn_ready = p->next;
		if (!bn_ready)
			bn_ready_end = &bn_ready;
		krp_msg_init(p->out, KRP_MSG_RENEW, 4, KRP_ST_OK, 0);
		bn_send(p, BN_RENEW);
	}
}

static void bn_start(struct bn_peer *p)
{
	p->begin_ns = bn_now_ns();
	bn_begin(p);
}

static void bn_report(uint64_t begin_ns)
{
	printf("{\"attached\": %u, \"again\": %" PRIu64 ", \"renewals\": %" PRIu64
	       ", \"ms\": %" PRIu64 "}\n",
	       bn_attached, bn_again, bn_renewals, (bn_now_ns() - begin_ns) / 1000000);
	fflush(stdout);
}

static void bn_loop(void)
{
	uint64_t begin_ns = bn_now_ns(), told_ns = begin_ns;
	bool holding = false;

	for (;;) {
		struct pollfd fds[2] = { { .fd = bn_channel->fd, .events = POLLIN },
					 { .fd = -1, .events = POLLIN } };

		while (bn_begun < bn_nr && bn_begun - bn_attached < BN_WINDOW)
			bn_start(&bn_peers[bn_begun++]);
		if (bn_completions)
			fds[1].fd = bn_completions->fd;
		if (poll(fds, 2, 20) < 0)
			bn_die("poll");
		bn_cm_events();
		if (bn_completions)
			bn_poll_completions();
		bn_renew_due();
		if (bn_attached == bn_nr && !holding) {
			holding = true;
			bn_report(begin_ns);
			bn_samples_print(&bn_took, "krcore", "attach", 0, 0);
			printf("holding\n");
		}
		if (bn_now_ns() - told_ns >= BN_SECOND_NS) {
			told_ns = bn_now_ns();
			bn_report(begin_ns);
		}
	}
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	uint32_t i;

	if (argc != 4) {
		fprintf(stderr, "usage: %s HOST PORT CLIENTS\n", argv[0]);
		return 2;
	}
	bn_nr = (uint32_t)bn_number(argv[3], 1, BN_SERVICES, "CLIENTS");
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &bn_address))
		bn_die(argv[1]);
	bn_channel = rdma_create_event_channel();
	if (!bn_channel)
		bn_die("rdma_cm (is there an RDMA device?)");
	bn_nonblocking(bn_channel->fd);
	bn_peers = calloc(bn_nr, sizeof(*bn_peers));
	if (!bn_peers || bn_samples_init(&bn_took, bn_nr))
		bn_die("memory");
	for (i = 0; i < bn_nr; i++)
		bn_peers[i].nr = i;
	bn_loop();
}
