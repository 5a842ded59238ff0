// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: DC from user space through unmodified libmlx5, between two nodes: an
 * oracle for the model and, later, for kernel DC. The server makes two DC
 * targets and says over TCP where they are; the client does every operation,
 * changes targets, and makes each mistake that DC has a name for.
 *
 * usage: dc_user server PORT GID-INDEX
 *        dc_user client PORT GID-INDEX ADDRESS
 * GID-INDEX -1 addresses by LID (InfiniBand without a global route header).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#define DC_KEY 0x1234567890abcdefULL
#define BUF_BYTES 65536
#define NR_TARGETS 2
#define ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct target_info {
	uint32_t dctn[NR_TARGETS];
	uint32_t rkey;
	uint64_t addr;
	uint16_t lid;
	union ibv_gid gid;
};

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *buf;
	int gid_index;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct target_info peer;
	uint64_t wr_id;
};

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", strerror(errno));
	exit(1);
}

#define CHECK(x) \
	do { \
		if (!(x)) \
			die("%s", #x); \
	} while (0)

static void node_open(struct node *n, int gid_index)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 1 } };
	struct ibv_device **list;
	int nr;

	list = ibv_get_device_list(&nr);
	CHECK(list && nr > 0);
	n->ctx = ibv_open_device(list[0]);
	CHECK(n->ctx);
	n->gid_index = gid_index;
	CHECK(!ibv_query_port(n->ctx, 1, &n->port));
	CHECK(!ibv_query_gid(n->ctx, 1, gid_index < 0 ? 0 : gid_index, &n->gid));
	n->pd = ibv_alloc_pd(n->ctx);
	CHECK(n->pd);
	n->cq = ibv_create_cq(n->ctx, 256, NULL, NULL, 0);
	CHECK(n->cq);
	n->srq = ibv_create_srq(n->pd, &srq);
	CHECK(n->srq);
	n->buf = aligned_alloc(4096, BUF_BYTES);
	CHECK(n->buf);
	memset(n->buf, 0, BUF_BYTES);
	n->mr = ibv_reg_mr(n->pd, n->buf, BUF_BYTES, ACCESS);
	CHECK(n->mr);
	ibv_free_device_list(list);
}

static struct ibv_ah_attr node_ah_attr(const struct node *n, uint16_t lid, const union ibv_gid *gid)
{
	struct ibv_ah_attr a = { .dlid = lid, .port_num = 1 };

	if (n->gid_index >= 0) {
		a.is_global = 1;
		a.grh.dgid = *gid;
		a.grh.sgid_index = n->gid_index;
		a.grh.hop_limit = 64;
	}
	return a;
}

static struct ibv_qp *make_dct(struct node *n)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = n->cq,
		.recv_cq = n->cq,
		.pd = n->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.srq = n->srq,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY },
	};
	struct ibv_qp_attr m = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};
	struct ibv_qp *qp = mlx5dv_create_qp(n->ctx, &attr, &dv);

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &m,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	m.qp_state = IBV_QPS_RTR;
	m.path_mtu = IBV_MTU_1024;
	m.min_rnr_timer = 12;
	m.ah_attr = node_ah_attr(n, n->port.lid, &n->gid);
	CHECK(!ibv_modify_qp(qp, &m,
			     IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU));
	return qp;
}

static void dci_connect(struct node *n)
{
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(!ibv_modify_qp(n->qp, &m, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT));
	m.qp_state = IBV_QPS_RTR;
	m.path_mtu = IBV_MTU_1024;
	m.ah_attr = node_ah_attr(n, n->port.lid, &n->gid);
	CHECK(!ibv_modify_qp(n->qp, &m, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV));
	m.qp_state = IBV_QPS_RTS;
	m.timeout = 14;
	m.retry_cnt = 7;
	m.rnr_retry = 7;
	m.max_rd_atomic = 4;
	CHECK(!ibv_modify_qp(n->qp, &m,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_dci(struct node *n)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = n->cq,
		.recv_cq = n->cq,
		.pd = n->pd,
		.cap = { .max_send_wr = 64, .max_send_sge = 2, .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	n->qp = mlx5dv_create_qp(n->ctx, &attr, &dv);
	CHECK(n->qp);
	dci_connect(n);
}

/* back to work after an error completion */
static void dci_recover(struct node *n)
{
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_RESET };

	CHECK(!ibv_modify_qp(n->qp, &m, IBV_QP_STATE));
	dci_connect(n);
}

struct op {
	enum ibv_wr_opcode code;
	int target;
	uint32_t off, bytes;
	uint32_t imm;
	uint64_t swap_add, compare;
	uint64_t key;
	uint32_t dctn, rkey; /* 0: the right ones */
};

static void post(struct node *n, const struct op *o)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(n->qp);
	uint64_t raddr = n->peer.addr + o->off;
	uint32_t rkey = o->rkey ? o->rkey : n->peer.rkey;

	ibv_wr_start(q);
	q->wr_id = ++n->wr_id;
	q->wr_flags = IBV_SEND_SIGNALED;
	switch (o->code) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(q, rkey, raddr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(q, rkey, raddr, htonl(o->imm));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(q, rkey, raddr);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(q);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(q, htonl(o->imm));
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(q, rkey, raddr, o->swap_add);
		break;
	default:
		ibv_wr_atomic_cmp_swp(q, rkey, raddr, o->compare, o->swap_add);
		break;
	}
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(q), n->ah,
			      o->dctn ? o->dctn : n->peer.dctn[o->target],
			      o->key ? o->key : DC_KEY);
	ibv_wr_set_sge(q, n->mr->lkey, (uintptr_t)n->buf + o->off, o->bytes);
	CHECK(!ibv_wr_complete(q));
}

static struct ibv_wc wait_wc(struct node *n)
{
	struct ibv_wc wc;
	int nr, spins = 0;

	while (!(nr = ibv_poll_cq(n->cq, 1, &wc))) {
		if (spins++ > 30000)
			die("no completion");
		usleep(1000);
	}
	CHECK(nr == 1);
	return wc;
}

static void expect(struct node *n, const char *what, const struct op *o, enum ibv_wc_status want)
{
	struct ibv_wc wc;

	post(n, o);
	wc = wait_wc(n);
	printf("%-34s %s\n", what, ibv_wc_status_str(wc.status));
	fflush(stdout);
	if (wc.status != want || wc.wr_id != n->wr_id)
		die("%s: status %d, wanted %d", what, wc.status, want);
	if (want != IBV_WC_SUCCESS)
		dci_recover(n);
}

static int tcp_server(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0), s;

	CHECK(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(fd, (void *)&a, sizeof(a)) && !listen(fd, 1));
	s = accept(fd, NULL, NULL);
	CHECK(s >= 0);
	close(fd);
	return s;
}

static int tcp_client(const char *host, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int i, fd;

	CHECK(inet_pton(AF_INET, host, &a.sin_addr) == 1);
	for (i = 0; i < 100; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (void *)&a, sizeof(a)))
			return fd;
		close(fd);
		usleep(100000);
	}
	die("cannot connect to %s", host);
	return -1;
}

static void sync_byte(int fd, bool send)
{
	char c = 'x';

	CHECK((send ? write(fd, &c, 1) : read(fd, &c, 1)) == 1);
}

static void expect_recv(struct node *n, enum ibv_wc_opcode op, uint32_t bytes, uint32_t imm)
{
	struct ibv_wc wc = wait_wc(n);

	if (wc.status || wc.opcode != op || wc.byte_len != bytes ||
	    (imm && ntohl(wc.imm_data) != imm))
		die("receive: status %d opcode %d bytes %u", wc.status, wc.opcode, wc.byte_len);
	printf("received %u bytes, opcode %d\n", wc.byte_len, wc.opcode);
}

static void server(struct node *n, int port)
{
	struct target_info me = {
		.rkey = n->mr->rkey, .addr = (uintptr_t)n->buf, .lid = n->port.lid, .gid = n->gid
	};
	struct ibv_qp *dct[NR_TARGETS];
	struct ibv_recv_wr *bad;
	int i, fd;

	for (i = 0; i < NR_TARGETS; i++) {
		dct[i] = make_dct(n);
		me.dctn[i] = dct[i]->qp_num;
	}
	for (i = 0; i < 8; i++) {
		struct ibv_sge sge = { (uintptr_t)n->buf + 32768 + 1024 * i, 1024, n->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		CHECK(!ibv_post_srq_recv(n->srq, &wr, &bad));
	}
	fd = tcp_server(port);
	CHECK(write(fd, &me, sizeof(me)) == sizeof(me));
	expect_recv(n, IBV_WC_RECV, 100, 0);
	expect_recv(n, IBV_WC_RECV, 200, 0x1234);
	expect_recv(n, IBV_WC_RECV_RDMA_WITH_IMM, 300, 0x5678);
	sync_byte(fd, false);
	CHECK(*(uint64_t *)(n->buf + 4096) == 42);
	for (i = 0; i < NR_TARGETS; i++)
		CHECK(!ibv_destroy_qp(dct[i]));
	printf("targets drained and destroyed\n");
	sync_byte(fd, true);
}

static void operations(struct node *n)
{
	uint64_t *word = (uint64_t *)(n->buf + 4096);
	uint32_t i;

	expect(n, "SEND", &(struct op){ IBV_WR_SEND, .bytes = 100 }, IBV_WC_SUCCESS);
	expect(n, "SEND_IMM", &(struct op){ IBV_WR_SEND_WITH_IMM, .bytes = 200, .imm = 0x1234 },
	       IBV_WC_SUCCESS);
	expect(n, "WRITE_IMM to target 1",
	       &(struct op){ IBV_WR_RDMA_WRITE_WITH_IMM, .target = 1, .off = 8192, .bytes = 300,
			     .imm = 0x5678 },
	       IBV_WC_SUCCESS);
	for (i = 0; i < 16384; i++)
		n->buf[8192 + i] = i * 7 + i / 256;
	expect(n, "WRITE 16384", &(struct op){ IBV_WR_RDMA_WRITE, .off = 8192, .bytes = 16384 },
	       IBV_WC_SUCCESS);
	memset(n->buf + 8192, 0, 16384);
	expect(n, "READ 16384", &(struct op){ IBV_WR_RDMA_READ, .off = 8192, .bytes = 16384 },
	       IBV_WC_SUCCESS);
	for (i = 0; i < 16384; i++) {
		if (n->buf[8192 + i] != (uint8_t)(i * 7 + i / 256))
			die("byte %u differs", i);
	}
	expect(n, "FETCH_ADD",
	       &(struct op){ IBV_WR_ATOMIC_FETCH_AND_ADD, .off = 4096, .bytes = 8, .swap_add = 41 },
	       IBV_WC_SUCCESS);
	CHECK(*word == 0);
	expect(n, "CMP_SWAP",
	       &(struct op){ IBV_WR_ATOMIC_CMP_AND_SWP, .off = 4096, .bytes = 8, .compare = 41,
			     .swap_add = 42 },
	       IBV_WC_SUCCESS);
	CHECK(*word == 41);
}

static void changes(struct node *n)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 32; i++)
		post(n, &(struct op){ IBV_WR_RDMA_READ, .target = i / 4 % 2, .off = 8192,
				      .bytes = 64 });
	/* with completions in the old buffer, and more to come */
	CHECK(!ibv_resize_cq(n->cq, 1024));
	for (i = 0; i < 32; i++) {
		wc = wait_wc(n);
		if (wc.status)
			die("change of target: status %d", wc.status);
	}
	printf("%-34s ok\n", "32 READs, target changed, CQ resized");
}

static void mistakes(struct node *n)
{
	expect(n, "wrong rkey",
	       &(struct op){ IBV_WR_RDMA_READ, .bytes = 8, .rkey = n->peer.rkey + 1 },
	       IBV_WC_REM_ACCESS_ERR);
	expect(n, "range too long",
	       &(struct op){ IBV_WR_RDMA_WRITE, .off = BUF_BYTES - 8, .bytes = 8,
			     .rkey = n->peer.rkey ^ 0x100 },
	       IBV_WC_REM_ACCESS_ERR);
	expect(n, "wrong DC key", &(struct op){ IBV_WR_RDMA_READ, .bytes = 8, .key = 1 },
	       IBV_WC_RETRY_EXC_ERR);
	expect(n, "wrong DCT number", &(struct op){ IBV_WR_RDMA_READ, .bytes = 8, .dctn = 0x3fff },
	       IBV_WC_RETRY_EXC_ERR);
	expect(n, "right again", &(struct op){ IBV_WR_RDMA_READ, .bytes = 8 }, IBV_WC_SUCCESS);
}

static void client(struct node *n, int port, const char *host)
{
	struct ibv_ah_attr attr;
	int fd = tcp_client(host, port);

	CHECK(recv(fd, &n->peer, sizeof(n->peer), MSG_WAITALL) == sizeof(n->peer));
	attr = node_ah_attr(n, n->peer.lid, &n->peer.gid);
	n->ah = ibv_create_ah(n->pd, &attr);
	CHECK(n->ah);
	make_dci(n);
	operations(n);
	changes(n);
	mistakes(n);
	sync_byte(fd, true);
	sync_byte(fd, false);
	CHECK(!ibv_destroy_qp(n->qp));
	printf("dc_user: done\n");
}

int main(int argc, char **argv)
{
	struct node n = { 0 };

	if (argc < 4 || (strcmp(argv[1], "server") && argc < 5)) {
		fprintf(stderr, "usage: %s server|client PORT GID-INDEX [ADDRESS]\n", argv[0]);
		return 2;
	}
	node_open(&n, atoi(argv[3]));
	if (!strcmp(argv[1], "server"))
		server(&n, atoi(argv[2]));
	else
		client(&n, atoi(argv[2]), argv[4]);
	return 0;
}
