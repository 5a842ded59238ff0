// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Strangers at the door of a MetaServer: connections without the cluster key,
 * which send messages that nobody asked for, all at once.
 *
 * usage: stranger SERVER CONNECTIONS MESSAGES BUFFERS
 *
 * Opens the connections and says "ready N", N of them being open. At SIGUSR1
 * it sends the messages on each, and says "delivered N": as many found a receive
 * buffer before there were none for TIMEOUT_S, or all BUFFERS. While the daemon
 * is stopped that is how many buffers its NIC has. Then it waits to be killed.
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "proto/krp_msg.h"

#define PORT "18600"
#define MESSAGES_MAX 1024
#define TIMEOUT_S 8

static unsigned int messages;
static struct addrinfo *server;

static struct rdma_cm_id *stranger_open(void)
{
	/* without end: whoever finds no buffer waits for one */
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct rdma_cm_id *id;

	attr.cap.max_send_wr = messages;
	attr.cap.max_recv_wr = 4;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (rdma_resolve_addr(id, NULL, server->ai_addr, 3000) || rdma_resolve_route(id, 3000) ||
	    rdma_create_qp(id, NULL, &attr) || rdma_connect(id, &param)) {
		fprintf(stderr, "%s\n", strerror(errno));
		rdma_destroy_ep(id);
		return NULL;
	}
	return id;
}

/* A request of a client that is attached, which this one is not. */
static void stranger_send(struct rdma_cm_id *id)
{
	struct ibv_mr *mr;
	struct krp_renew *m = aligned_alloc(4096, 4096);
	unsigned int i;

	krp_msg_init(m, KRP_MSG_RENEW, 1, 0, 0);
	mr = rdma_reg_msgs(id, m, sizeof(*m));
	for (i = 0; mr && i < messages; i++)
		if (rdma_post_send(id, NULL, m, sizeof(*m), mr, 0))
			return;
}

static unsigned int stranger_delivered(struct rdma_cm_id **ids, unsigned int nr,
				       unsigned int buffers)
{
	unsigned int i, before, delivered = 0;
	time_t last = time(NULL);
	struct ibv_wc wc;

	while (delivered < buffers && time(NULL) < last + TIMEOUT_S) {
		before = delivered;
		for (i = 0; i < nr; i++)
			while (ibv_poll_cq(ids[i]->send_cq, 1, &wc) > 0)
				delivered += wc.status == IBV_WC_SUCCESS;
		if (delivered > before)
			last = time(NULL);
	}
	return delivered;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	unsigned int i, want, open = 0, buffers;
	struct rdma_cm_id **ids;
	sigset_t go;
	int got;

	if (argc != 5 || getaddrinfo(argv[1], PORT, &hints, &server))
		return 2;
	want = (unsigned int)atoi(argv[2]);
	messages = (unsigned int)atoi(argv[3]);
	buffers = (unsigned int)atoi(argv[4]);
	if (!messages || messages > MESSAGES_MAX)
		return 2;
	ids = calloc(want + 1, sizeof(struct rdma_cm_id *));
	if (!ids)
		return 2;
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	for (i = 0; i < want; i++) {
		ids[open] = stranger_open();
		open += ids[open] != NULL;
	}
	printf("ready %u\n", open);
	fflush(stdout);
	sigwait(&go, &got);
	for (i = 0; i < open; i++)
		stranger_send(ids[i]);
	printf("delivered %u\n", stranger_delivered(ids, open, buffers));
	fflush(stdout);
	for (;;)
		sigwait(&go, &got);
}
