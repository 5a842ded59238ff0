// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Servers of RC connections: see serve.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/serve.h"
#include "bench/way.h"

#define BN_BACKLOG 1024
#define BN_READS 16 /* outstanding on a connection */

static const int bn_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

void *bn_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		bn_die("memory");
	return memory;
}

/* One completion queue for all: nothing comes there but errors. */
static void bn_accept(struct rdma_cm_id *id, struct ibv_cq *cq, const struct bn_region *region)
{
	struct rdma_conn_param param = {
		.private_data = region,
		.private_data_len = sizeof(*region),
		.responder_resources = BN_READS,
		.initiator_depth = BN_READS,
		.rnr_retry_count = 7,
	};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, NULL, &attr))
		bn_die("rdma_create_qp");
	if (rdma_accept(id, &param))
		bn_die("rdma_accept");
}

static struct sockaddr_in bn_address(const char *host, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons((uint16_t)bn_number(port, 1, 65535, "PORT"));
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		bn_die(host);
	return at;
}

/* As bn_listen(), for many that come at once. */
static struct rdma_cm_id *bn_wait_for_peers(const char *host, const char *port)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in at = bn_address(host, port);
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		bn_die("rdma_cm (is there an RDMA device?)");
	if (rdma_bind_addr(id, (struct sockaddr *)&at) || !id->verbs)
		bn_die("not the address of an RDMA port");
	if (rdma_listen(id, BN_BACKLOG))
		bn_die("listen");
	return id;
}

void bn_serve_cm(const char *host, const char *port, void *memory, size_t bytes)
{
	struct rdma_cm_id *id = bn_wait_for_peers(host, port);
	struct rdma_cm_event *event;
	struct bn_region region;
	struct ibv_cq *cq;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(id->pd, memory, bytes, bn_access);
	cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	if (!mr || !cq)
		bn_die("registering memory");
	region.addr = htobe64((uintptr_t)mr->addr);
	region.rkey = htobe32(mr->rkey);
	region.mib = htobe32((uint32_t)(bytes >> 20));
	printf("ready\n");
	fflush(stdout);
	while (!rdma_get_cm_event(id->channel, &event)) {
		struct rdma_cm_id *peer = event->id;
		enum rdma_cm_event_type type = event->event;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			bn_accept(peer, cq, &region);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(peer);
			rdma_destroy_qp(peer);
			rdma_destroy_id(peer);
		}
	}
	bn_die("rdma_get_cm_event");
}

/* What connections of plain verbs share. */
struct bn_plain {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct bn_hello hello;
	unsigned int gid_index;
};

static struct bn_plain bn_plain;

static void *bn_plain_peer(void *arg)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = bn_plain.cq,
		.recv_cq = bn_plain.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct bn_hello hello = bn_plain.hello, peer;
	int fd = (int)(intptr_t)arg;
	struct ibv_qp *qp;

	if (recv(fd, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		goto out;
	qp = ibv_create_qp(bn_plain.pd, &attr);
	if (!qp)
		bn_die("queue pair");
	hello.qpn = htobe32(qp->qp_num);
	bn_verbs_connect(qp, bn_plain.gid_index, be32toh(hello.psn), &peer);
	if (write(fd, &hello, sizeof(hello)) == sizeof(hello))
		while (read(fd, &peer, sizeof(peer)) > 0)
			;
	ibv_destroy_qp(qp);
out:
	close(fd);
	return NULL;
}

static void bn_plain_open(void *memory, size_t bytes)
{
	struct ibv_port_attr port;
	struct ibv_mr *mr;

	bn_plain.verbs = bn_verbs_device();
	bn_plain.pd = ibv_alloc_pd(bn_plain.verbs);
	bn_plain.cq = ibv_create_cq(bn_plain.verbs, 64, NULL, NULL, 0);
	if (!bn_plain.pd || !bn_plain.cq || ibv_query_port(bn_plain.verbs, 1, &port))
		bn_die("device");
	mr = ibv_reg_mr(bn_plain.pd, memory, bytes, bn_access);
	if (!mr)
		bn_die("registering memory");
	bn_plain.gid_index = bn_verbs_gid(bn_plain.verbs, bn_plain.hello.gid);
	bn_plain.hello.addr = htobe64((uintptr_t)mr->addr);
	bn_plain.hello.rkey = htobe32(mr->rkey);
	bn_plain.hello.psn = htobe32(1);
	bn_plain.hello.mib = htobe32((uint32_t)(bytes >> 20));
	bn_plain.hello.mtu = htobe32((uint32_t)port.active_mtu);
}

int bn_tcp_listen(const char *host, const char *port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in at = bn_address(host, port);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, BN_BACKLOG))
		bn_die("listen");
	return fd;
}

int bn_tcp_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;

	if (fd < 0)
		bn_die("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void bn_serve_verbs(const char *host, const char *port, void *memory, size_t bytes)
{
	int fd = bn_tcp_listen(host, port);

	bn_plain_open(memory, bytes);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int peer = bn_tcp_accept(fd);
		pthread_t thread;

		if (pthread_create(&thread, NULL, bn_plain_peer, (void *)(intptr_t)peer))
			bn_die("thread");
		pthread_detach(thread);
	}
}
