// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * rdma_cm for the programs of bench/: see link.h.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/meter.h"
#include "bench/samples.h"

#define BN_STEP_MS 5000
#define BN_DEPTH 64
#define BN_SPINS 1024 /* polls between two looks at the clock, as in libkrcore */

static struct rdma_cm_id *bn_id(enum rdma_port_space ps)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, ps))
		bn_die("rdma_cm (is there an RDMA device?)");
	return id;
}

static struct rdma_addrinfo *bn_address(const char *host, const char *port, enum rdma_port_space ps,
					int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = (int)ps, .ai_flags = flags };
	struct rdma_addrinfo *address;

	if (rdma_getaddrinfo(host, port, &hints, &address))
		bn_die(host);
	return address;
}

struct rdma_cm_id *bn_listen(const char *host, const char *port, enum rdma_port_space ps)
{
	struct rdma_addrinfo *address = bn_address(host, port, ps, RAI_PASSIVE);
	struct rdma_cm_id *id = bn_id(ps);

	if (rdma_bind_addr(id, address->ai_src_addr))
		bn_die("bind");
	if (!id->verbs) {
		fprintf(stderr, "%s: not the address of an RDMA port\n", host);
		exit(1);
	}
	if (rdma_listen(id, 8))
		bn_die("listen");
	rdma_freeaddrinfo(address);
	return id;
}

/* Wait for the one event that must come now. The caller acknowledges it. */
static struct rdma_cm_event *bn_event(struct rdma_cm_id *id, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(id->channel, &event))
		bn_die("rdma_get_cm_event");
	if (event->event != want) {
		fprintf(stderr, "%s instead of %s (status %d)\n", rdma_event_str(event->event),
			rdma_event_str(want), event->status);
		exit(1);
	}
	return event;
}

struct rdma_cm_id *bn_resolve(const char *host, const char *port, enum rdma_port_space ps)
{
	struct rdma_addrinfo *address = bn_address(host, port, ps, 0);
	struct rdma_cm_id *id = bn_id(ps);

	if (rdma_resolve_addr(id, NULL, address->ai_dst_addr, BN_STEP_MS))
		bn_die("rdma_resolve_addr");
	rdma_ack_cm_event(bn_event(id, RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(id, BN_STEP_MS))
		bn_die("rdma_resolve_route");
	rdma_ack_cm_event(bn_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	rdma_freeaddrinfo(address);
	return id;
}

void bn_connect(struct rdma_cm_id *id, uint8_t depth, struct rdma_ud_param *ret_param, void *data,
		unsigned int bytes)
{
	struct rdma_conn_param param = {
		.responder_resources = depth,
		.initiator_depth = depth,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;
	const struct rdma_ud_param *ud;

	if (rdma_connect(id, &param))
		bn_die("rdma_connect");
	event = bn_event(id, RDMA_CM_EVENT_ESTABLISHED);
	ud = &event->param.ud;
	if (ret_param)
		*ret_param = *ud;
	else if (data && event->param.conn.private_data_len >= bytes)
		memcpy(data, event->param.conn.private_data, bytes);
	rdma_ack_cm_event(event);
}

void bn_queue_pair(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.cap = { .max_send_wr = BN_DEPTH,
			 .max_recv_wr = BN_DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 0,
	};

	attr.send_cq = ibv_create_cq(id->verbs, 2 * BN_DEPTH, NULL, NULL, 0);
	attr.recv_cq = ibv_create_cq(id->verbs, 2 * BN_DEPTH, NULL, NULL, 0);
	if (!attr.send_cq || !attr.recv_cq)
		bn_die("completion queue");
	if (rdma_create_qp(id, NULL, &attr))
		bn_die("queue pair");
}

void bn_wc_check(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

/* Return: 1 with a completion, 0 if there was none in time. */
static int bn_poll_for(struct ibv_cq *cq, struct ibv_wc *ret_wc, uint64_t timeout_ns)
{
	uint64_t begin_ns = timeout_ns ? bn_now_ns() : 0;
	unsigned int spins = 0;
	int nr;

	for (;;) {
		BN_MARK(TRY);
		nr = ibv_poll_cq(cq, 1, ret_wc);
		if (nr < 0)
			bn_die("ibv_poll_cq");
		if (nr)
			return 1;
		if (++spins % BN_SPINS == 0) {
			if (timeout_ns && bn_now_ns() - begin_ns > timeout_ns)
				return 0;
			sched_yield(); /* a software NIC may need this CPU */
		}
		BN_MARK(VAIN);
	}
}

int bn_poll(struct ibv_cq *cq, struct ibv_wc *ret_wc, uint64_t timeout_ns)
{
	int got = bn_poll_for(cq, ret_wc, timeout_ns);

	if (got)
		bn_wc_check(ret_wc);
	return got;
}

enum ibv_wc_status bn_poll_any(struct ibv_cq *cq, struct ibv_wc *ret_wc)
{
	bn_poll_for(cq, ret_wc, 0);
	return ret_wc->status;
}

void bn_leave(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

void bn_settle(void)
{
	static const char *text;
	static bool known;

	BN_MARK(PAUSE);
	if (!known)
		text = getenv("BN_SETTLE_US");
	known = true;
	if (text)
		usleep((useconds_t)bn_number(text, 0, 1000000, "BN_SETTLE_US"));
	BN_MARK(RESUME);
}

void bn_read(struct ibv_qp *qp, const struct ibv_mr *mr, void *to, uint32_t bytes, uint64_t addr,
	     uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)to, .length = bytes, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	if (ibv_post_send(qp, &wr, &bad))
		bn_die("ibv_post_send");
	bn_poll(qp->send_cq, &wc, 0);
}
