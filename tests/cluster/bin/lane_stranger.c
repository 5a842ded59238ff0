// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A stranger at the queue pair by which ports make lanes (proto/krp_lane.h): what anybody can send
 * there who can read the table.
 *
 * usage: lane_stranger GID-INDEX KIND COUNT ADDRESS QPN QKEY GENERATION [ADDRESS QPN QKEY GENERATION]
 *
 * The first port is the one that is bothered. KIND is what it is sent:
 *   long     more bytes than a packet has
 *   junk     as many bytes as a packet has, and no packet
 *   request  REQUESTs in the name of the second port, each for another lane, without key or cookie
 *   ready    READYs in its name, of lanes that there are not
 * It says "sent N" when it has sent them, or "sent N of COUNT: reason".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "proto/krp_lane.h"

#define LONG_BYTES 300
#define POLLS 10000000

struct stranger_port {
	__u8 gid[KRP_GID_BYTES];
	__u32 qpn;
	__u32 qkey;
	__u64 generation;
};

struct stranger {
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	__u8 bytes[512];
};

static int stranger_device(struct stranger *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return -1;
	s->device = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!s->device)
		return -1;
	s->pd = ibv_alloc_pd(s->device);
	s->cq = ibv_create_cq(s->device, 16, NULL, NULL, 0);
	if (!s->pd || !s->cq)
		return -1;
	s->mr = ibv_reg_mr(s->pd, s->bytes, sizeof(s->bytes), IBV_ACCESS_LOCAL_WRITE);
	return s->mr ? 0 : -1;
}

static int stranger_queue(struct stranger *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp || ibv_modify_qp(s->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -1;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -1 : 0;
}

static int stranger_way(struct stranger *s, const struct stranger_port *to, int gid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	memcpy(attr.grh.dgid.raw, to->gid, sizeof(to->gid));
	attr.grh.sgid_index = (__u8)gid_index;
	attr.grh.hop_limit = 64;
	s->ah = ibv_create_ah(s->pd, &attr);
	return s->ah ? 0 : -1;
}

/* Return: 0, or what has become of it. */
static int stranger_send(struct stranger *s, const struct stranger_port *to, __u32 bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->bytes, .length = bytes, .lkey = s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	unsigned int i;

	wr.wr.ud.ah = s->ah;
	wr.wr.ud.remote_qpn = to->qpn;
	wr.wr.ud.remote_qkey = to->qkey;
	if (ibv_post_send(s->qp, &wr, &bad))
		return IBV_WC_GENERAL_ERR;
	for (i = 0; i < POLLS && !ibv_poll_cq(s->cq, 1, &wc); i++)
		;
	return wc.status;
}

/* A packet that is right but for its proof. */
static __u32 stranger_packet(struct stranger *s, const struct stranger_port *to,
			     const struct stranger_port *name, unsigned int type, __u64 number)
{
	struct krp_lane_packet *p = (struct krp_lane_packet *)(void *)s->bytes;

	memset(p, 0, sizeof(*p));
	p->magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p->version = KRP_LANE_VERSION;
	p->type = (__u8)type;
	p->flags = KRP_LANE_REQUESTER;
	p->index = number % KRP_LANE_INDEXES;
	p->lane = krp_cpu_to_le64((1ULL << 62) + number);
	p->nonce = krp_cpu_to_le64(number + 1);
	p->generation = krp_cpu_to_le64(name->generation);
	p->peer_generation = krp_cpu_to_le64(to->generation);
	memcpy(p->gid, name->gid, sizeof(p->gid));
	memcpy(p->peer_gid, to->gid, sizeof(p->peer_gid));
	if (type != KRP_LANE_REQUEST)
		return sizeof(*p);
	p->mtu = 3;
	p->max_rd_atomic = 1;
	p->qpn = krp_cpu_to_le32(666);
	p->value.generation = p->generation;
	p->value.kind = KRP_KIND_LANE;
	p->value.dct.ud_qpn = krp_cpu_to_le32(name->qpn);
	p->value.dct.ud_qkey = krp_cpu_to_le32(name->qkey);
	p->value.dct.mtu = 3;
	p->value.dct.port = 1;
	p->value.dct.flags = KRP_DCT_ETHERNET;
	return sizeof(*p);
}

static __u32 stranger_fill(struct stranger *s, const char *kind, const struct stranger_port *to,
			   const struct stranger_port *name, __u64 number)
{
	if (!strcmp(kind, "request"))
		return stranger_packet(s, to, name, KRP_LANE_REQUEST, number);
	if (!strcmp(kind, "ready"))
		return stranger_packet(s, to, name, KRP_LANE_READY, number);
	memset(s->bytes, 0xa5, sizeof(s->bytes));
	return !strcmp(kind, "long") ? LONG_BYTES : KRP_LANE_BYTES;
}

static int stranger_parse(char **words, struct stranger_port *ret)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(ret->gid, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, words[0], ret->gid + sizeof(mapped)) != 1)
		return -1;
	ret->qpn = (__u32)strtoul(words[1], NULL, 0);
	ret->qkey = (__u32)strtoul(words[2], NULL, 0);
	ret->generation = strtoull(words[3], NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct stranger_port to, name = { .generation = 1 };
	static struct stranger s;
	unsigned long i, count;
	int status = 0;

	if (argc < 8 || stranger_parse(argv + 4, &to) ||
	    (argc >= 12 && stranger_parse(argv + 8, &name))) {
		fprintf(stderr, "usage: see the head of tests/cluster/bin/lane_stranger.c\n");
		return 64;
	}
	count = strtoul(argv[3], NULL, 0);
	if (stranger_device(&s) || stranger_queue(&s) || stranger_way(&s, &to, atoi(argv[1]))) {
		perror("no queue pair");
		return 1;
	}
	for (i = 0; i < count && !status; i++)
		status = stranger_send(&s, &to, stranger_fill(&s, argv[2], &to, &name, i));
	if (status)
		printf("sent %lu of %lu: %s\n", i - 1, count, ibv_wc_status_str(status));
	else
		printf("sent %lu\n", i);
	return status ? 1 : 0;
}
