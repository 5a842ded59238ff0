// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function of ./run bench handoff that gives data away by plain verbs: the taker opens the
 * device, registers memory, makes a completion queue and an RC queue pair, exchanges numbers over
 * TCP with the maker, which makes a queue pair too, and READs.
 *
 * What the maker can have before somebody wants the data it has: device, keys, completion queue.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/handoff_peer.h"
#include "bench/keys.h"
#include "bench/link.h"
#include "bench/way.h"
#include "handoff/lib/function.h"

/**
 * struct bn_side - What a process has of verbs.
 * @verbs: device; NULL until it is needed.
 * @pd: protection domain.
 * @cq: completion queue.
 * @gid_index: of our GID.
 * @hello: what we tell a peer, but for the queue pair.
 */
struct bn_side {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	unsigned int gid_index;
	struct bn_hello hello;
};

static struct bn_side bn_side;
static struct bn_store_room bn_out, bn_in;
static struct ibv_mr *bn_out_mr, *bn_in_mr;
static struct ibv_qp *bn_qp;
static char bn_to[KH_WORD_BYTES];

static void bn_open(void)
{
	struct ibv_port_attr port;

	if (bn_side.verbs)
		return;
	bn_side.verbs = bn_verbs_device();
	bn_side.pd = ibv_alloc_pd(bn_side.verbs);
	bn_side.cq = ibv_create_cq(bn_side.verbs, 64, NULL, NULL, 0);
	if (!bn_side.pd || !bn_side.cq || ibv_query_port(bn_side.verbs, 1, &port))
		bn_die("device");
	bn_side.gid_index = bn_verbs_gid(bn_side.verbs, bn_side.hello.gid);
	bn_side.hello.psn = htobe32(1);
	bn_side.hello.mtu = htobe32((uint32_t)port.active_mtu);
}

static struct ibv_qp *bn_pair(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = bn_side.cq,
		.recv_cq = bn_side.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(bn_side.pd, &attr);

	if (!qp)
		bn_die("queue pair");
	return qp;
}

/* One taker. */
static void bn_give(int fd)
{
	struct bn_hello hello = bn_side.hello, peer;
	struct ibv_qp *qp;

	if (recv(fd, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer)) {
		qp = bn_pair();
		hello.qpn = htobe32(qp->qp_num);
		bn_verbs_connect(qp, bn_side.gid_index, 1, &peer);
		if (!bn_peer_put(fd, &hello, sizeof(hello)))
			while (read(fd, &peer, sizeof(peer)) > 0)
				;
		ibv_destroy_qp(qp);
	}
	close(fd);
}

static uint8_t *bn_out_room(void *state, size_t bytes)
{
	(void)state;
	if (bn_out_mr && ibv_dereg_mr(bn_out_mr))
		bn_die("taking memory back");
	bn_out_mr = NULL;
	bn_room(&bn_out, bytes);
	return bn_out.at;
}

static int bn_offer(void *state, char *ret_word)
{
	char where[64];

	(void)state;
	bn_open();
	bn_out_mr = ibv_reg_mr(bn_side.pd, bn_out.at, bn_out.bytes, IBV_ACCESS_REMOTE_READ);
	if (!bn_out_mr)
		bn_die("registering memory");
	bn_peer_serve(bn_give, where);
	snprintf(ret_word, KH_WORD_BYTES, "%s/%zu/%" PRIuPTR "/%" PRIu32, where, bn_out.bytes,
		 (uintptr_t)bn_out.at, bn_out_mr->rkey);
	return 0;
}

static void bn_connect_to(const char *where)
{
	struct bn_hello hello, peer;
	int fd;

	bn_qp = bn_pair();
	hello = bn_side.hello;
	hello.qpn = htobe32(bn_qp->qp_num);
	fd = bn_peer_connect(where);
	if (bn_peer_put(fd, &hello, sizeof(hello)))
		bn_die("exchange of numbers");
	bn_peer_get(fd, &peer, sizeof(peer));
	bn_verbs_connect(bn_qp, bn_side.gid_index, 1, &peer);
	/* the maker's queue pair lives as long as this connection: until we end */
	snprintf(bn_to, sizeof(bn_to), "%s", where);
}

static int bn_take(void *state, const char *word, struct kh_taken *ret_taken)
{
	uint64_t began = kh_now(), connected, addr;
	char where[KH_WORD_BYTES], *next;
	uint32_t rkey;
	size_t bytes;

	(void)state;
	snprintf(where, sizeof(where), "%s", word);
	next = strchr(where, '/');
	if (!next)
		bn_die("no reference");
	*next++ = '\0';
	bytes = strtoul(next, &next, 10);
	addr = strtoull(next + (*next == '/'), &next, 10);
	rkey = (uint32_t)strtoul(next + (*next == '/'), NULL, 10);
	bn_open();
	if (bn_in.room < bytes && bn_in_mr) {
		ibv_dereg_mr(bn_in_mr);
		bn_in_mr = NULL;
	}
	bn_room(&bn_in, bytes);
	if (!bn_in_mr)
		bn_in_mr = ibv_reg_mr(bn_side.pd, bn_in.at, bn_in.room, IBV_ACCESS_LOCAL_WRITE);
	if (!bn_in_mr)
		bn_die("registering memory");
	if (strcmp(bn_to, where) != 0)
		bn_connect_to(where);
	connected = kh_now();
	bn_read(bn_qp, bn_in_mr, bn_in.at, (uint32_t)bytes, addr, rkey);
	*ret_taken = (struct kh_taken){ bn_in.at, bytes, connected - began, kh_now() - connected };
	return 0;
}

int main(void)
{
	static const struct kh_ops ops = { bn_out_room, bn_offer, bn_take, bn_peer_release,
					   bn_peer_why };

	return kh_function_run(&ops, NULL);
}
