// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Transports of bench_race that are not krcore's: an RC queue pair, and plain memory.
 *
 * A batch is one list of requests with one doorbell, and asks for a completion of its last request
 * only, as a program does it that has a queue pair of its own.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/race_kv.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_MRS_MAX 8
#define BN_READS 16 /* outstanding on a connection */
#define BN_PAGE 4096

/**
 * struct bn_rc - A queue pair of one's own.
 * @t: what the client sees.
 * @verbs: device.
 * @pd: domain.
 * @cq: completions.
 * @qp: queue pair.
 * @id: of rdma_cm, or NULL.
 * @fd: TCP connection, or -1.
 * @to: address of the server.
 * @region: what it says of its memory by rdma_cm.
 * @addr: of the table.
 * @rkey: of the table.
 * @mrs: our regions.
 * @nr_mrs: how many.
 * @broken: a request has failed.
 */
struct bn_rc {
	struct kr_transport t;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct rdma_cm_id *id;
	int fd;
	struct sockaddr_in to;
	struct bn_region region;
	uint64_t addr;
	uint32_t rkey;
	struct ibv_mr *mrs[BN_MRS_MAX];
	unsigned int nr_mrs;
	bool broken;
};

static struct bn_rc *bn_rc_of(struct kr_transport *t)
{
	return (struct bn_rc *)((char *)t - offsetof(struct bn_rc, t));
}

static uint32_t bn_rc_lkey(const struct bn_rc *rc, const void *local)
{
	unsigned int i;

	for (i = 0; i + 1 < rc->nr_mrs; i++)
		if ((uintptr_t)local - (uintptr_t)rc->mrs[i]->addr < rc->mrs[i]->length)
			break;
	return rc->mrs[i]->lkey;
}

static void bn_rc_wr(const struct bn_rc *rc, const struct kr_req *req, struct ibv_sge *sge,
		     struct ibv_send_wr *wr)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[KR_READ] = IBV_WR_RDMA_READ,
		[KR_WRITE] = IBV_WR_RDMA_WRITE,
		[KR_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[KR_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	sge->addr = (uintptr_t)req->local;
	sge->length = req->length;
	sge->lkey = bn_rc_lkey(rc, req->local);
	memset(wr, 0, sizeof(*wr));
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->opcode = opcodes[req->op];
	if (req->op == KR_READ || req->op == KR_WRITE) {
		wr->wr.rdma.remote_addr = rc->addr + req->remote;
		wr->wr.rdma.rkey = rc->rkey;
		return;
	}
	wr->wr.atomic.remote_addr = rc->addr + req->remote;
	wr->wr.atomic.rkey = rc->rkey;
	wr->wr.atomic.compare_add = req->compare;
	wr->wr.atomic.swap = req->swap;
}

static int bn_rc_submit(struct kr_transport *t, struct kr_req *reqs, unsigned int nr)
{
	struct ibv_send_wr wrs[KR_BATCH_MAX], *bad;
	struct ibv_sge sges[KR_BATCH_MAX];
	struct bn_rc *rc = bn_rc_of(t);
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		reqs[i].status = rc->broken ? -ECANCELED : 0;
		bn_rc_wr(rc, &reqs[i], &sges[i], &wrs[i]);
		wrs[i].next = i + 1 < nr ? &wrs[i + 1] : NULL;
	}
	if (rc->broken)
		return -ENOTCONN;
	wrs[nr - 1].send_flags = IBV_SEND_SIGNALED;
	if (!ibv_post_send(rc->qp, wrs, &bad)) {
		bn_settle();
		if (bn_poll_any(rc->cq, &wc) == IBV_WC_SUCCESS)
			return 0;
	}
	rc->broken = true;
	for (i = 0; i < nr; i++)
		reqs[i].status = -EREMCHG; /* which were done is not asked for */
	return -EREMCHG;
}

static void *bn_rc_memory(struct kr_transport *t, size_t bytes)
{
	size_t room = (bytes + BN_PAGE - 1) / BN_PAGE * BN_PAGE;
	struct bn_rc *rc = bn_rc_of(t);
	struct ibv_mr *mr;
	void *memory;

	if (rc->nr_mrs == BN_MRS_MAX)
		return NULL;
	memory = aligned_alloc(BN_PAGE, room);
	if (!memory)
		return NULL;
	memset(memory, 0, room);
	mr = ibv_reg_mr(rc->pd, memory, room, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		free(memory);
		return NULL;
	}
	rc->mrs[rc->nr_mrs++] = mr;
	return memory;
}

static uint64_t bn_now_ms(struct kr_transport *t)
{
	(void)t;
	return bn_now_ns() / 1000000;
}

static void bn_pause(struct kr_transport *t, unsigned int ms)
{
	(void)t;
	if (ms)
		usleep(ms * 1000);
	else
		sched_yield();
}

static void bn_rc_close(struct kr_transport *t)
{
	struct bn_rc *rc = bn_rc_of(t);
	unsigned int i;

	if (rc->id) {
		rdma_disconnect(rc->id);
		rdma_destroy_qp(rc->id);
	} else {
		ibv_destroy_qp(rc->qp);
	}
	for (i = 0; i < rc->nr_mrs; i++) {
		void *memory = rc->mrs[i]->addr;

		ibv_dereg_mr(rc->mrs[i]);
		free(memory);
	}
	ibv_destroy_cq(rc->cq);
	ibv_dealloc_pd(rc->pd);
	if (rc->id)
		bn_leave(rc->id);
	else
		ibv_close_device(rc->verbs);
	if (rc->fd >= 0)
		close(rc->fd);
	free(rc);
}

static const struct kr_transport_ops bn_rc_ops = {
	.submit = bn_rc_submit,
	.memory = bn_rc_memory,
	.now_ms = bn_now_ms,
	.pause = bn_pause,
	.close = bn_rc_close,
};

/* Domain, completion queue and queue pair on the device that is open. */
static void bn_rc_resources(struct bn_rc *rc)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = KR_BATCH_MAX,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	rc->pd = ibv_alloc_pd(rc->verbs);
	rc->cq = ibv_create_cq(rc->verbs, KR_BATCH_MAX, NULL, NULL, 0);
	if (!rc->pd || !rc->cq)
		bn_die("protection domain or completion queue");
	attr.send_cq = rc->cq;
	attr.recv_cq = rc->cq;
	if (rc->id) {
		if (rdma_create_qp(rc->id, rc->pd, &attr))
			bn_die("rdma_create_qp");
		rc->qp = rc->id->qp;
		return;
	}
	rc->qp = ibv_create_qp(rc->pd, &attr);
	if (!rc->qp)
		bn_die("queue pair");
}

static void bn_rc_verbs(struct bn_rc *rc, const char *target)
{
	struct bn_hello peer;

	bn_verbs_address(target, &rc->to);
	rc->verbs = bn_verbs_device();
	bn_rc_resources(rc);
	rc->fd = bn_verbs_reach(&rc->to, rc->qp, &peer);
	rc->addr = be64toh(peer.addr);
	rc->rkey = be32toh(peer.rkey);
	rc->t.bytes = (uint64_t)be32toh(peer.mib) << 20;
}

static void bn_rc_cm(struct bn_rc *rc, const char *target)
{
	char *fields[2];

	bn_target_split(target, fields, 2);
	rc->id = bn_resolve(fields[0], fields[1], RDMA_PS_TCP);
	rc->verbs = rc->id->verbs;
	bn_rc_resources(rc);
	bn_connect(rc->id, BN_READS, NULL, &rc->region, sizeof(rc->region));
	rc->addr = be64toh(rc->region.addr);
	rc->rkey = be32toh(rc->region.rkey);
	rc->t.bytes = (uint64_t)be32toh(rc->region.mib) << 20;
}

struct kr_transport *bn_rc_open(const char *target, bool cm)
{
	struct bn_rc *rc = calloc(1, sizeof(*rc));

	if (!rc)
		bn_die("memory");
	rc->t.ops = &bn_rc_ops;
	rc->fd = -1;
	if (cm)
		bn_rc_cm(rc, target);
	else
		bn_rc_verbs(rc, target);
	return &rc->t;
}

/**
 * struct bn_local - Plain memory of this process, which nobody else works on yet.
 * @t: what the client sees.
 * @memory: the table.
 * @pieces: memory for requests.
 * @nr: how many.
 */
struct bn_local {
	struct kr_transport t;
	char *memory;
	void *pieces[BN_MRS_MAX];
	unsigned int nr;
};

static struct bn_local *bn_local_of(struct kr_transport *t)
{
	return (struct bn_local *)((char *)t - offsetof(struct bn_local, t));
}

static void bn_local_atomic(uint64_t *word, const struct kr_req *req)
{
	uint64_t *old = req->local;

	*old = *word;
	if (req->op == KR_ADD)
		*word += req->compare;
	else if (*word == req->compare)
		*word = req->swap;
}

static int bn_local_submit(struct kr_transport *t, struct kr_req *reqs, unsigned int nr)
{
	struct bn_local *local = bn_local_of(t);
	unsigned int i;

	for (i = 0; i < nr; i++) {
		char *at = local->memory + reqs[i].remote;

		reqs[i].status = 0;
		if (reqs[i].op == KR_READ)
			memcpy(reqs[i].local, at, reqs[i].length);
		else if (reqs[i].op == KR_WRITE)
			memcpy(at, reqs[i].local, reqs[i].length);
		else
			bn_local_atomic((uint64_t *)at, &reqs[i]);
	}
	return 0;
}

static void *bn_local_memory(struct kr_transport *t, size_t bytes)
{
	struct bn_local *local = bn_local_of(t);
	void *piece = local->nr < BN_MRS_MAX ? calloc(1, bytes) : NULL;

	if (piece)
		local->pieces[local->nr++] = piece;
	return piece;
}

static void bn_local_close(struct kr_transport *t)
{
	struct bn_local *local = bn_local_of(t);

	while (local->nr)
		free(local->pieces[--local->nr]);
}

static const struct kr_transport_ops bn_local_ops = {
	.submit = bn_local_submit,
	.memory = bn_local_memory,
	.now_ms = bn_now_ms,
	.pause = bn_pause,
	.close = bn_local_close,
};

struct kr_transport *bn_local_open(void *memory, size_t bytes)
{
	static struct bn_local local = { .t = { .ops = &bn_local_ops } };

	local.t.bytes = bytes;
	local.memory = memory;
	return &local.t;
}
