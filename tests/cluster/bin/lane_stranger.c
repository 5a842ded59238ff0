// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Somebody at the hand-shake of lanes (proto/krp_lane.h) who makes none: it records what two nodes
 * say, or says something itself, over a UD queue pair of any RDMA device.
 *
 * usage: lane_stranger record
 *        lane_stranger send DEVICE ROUNDS < PACKETS
 *
 * A packet is a line "ADDRESS QPN QKEY BYTES": the IPv4 address and the queue pair that it is for,
 * the Q_Key, and what it says; all but the address in hex. `record` is for root; it says "ready",
 * and then each packet of the length of a lane's that comes to this machine or leaves it, until it
 * is killed. `send` sends all packets so many times, and says "sent N".
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <linux/if_packet.h>

#include "proto/krp_lane.h"

#define ROCE_PORT 4791
#define BTH_BYTES 12 /* opcode at 0, queue pair at 5, and in front of DETH, whose Q_Key is at 0 */
#define DETH_BYTES 8
#define ICRC_BYTES 4
#define OPCODE_UD_SEND 0x64
#define PACKET_BYTES_MAX 1024 /* a UD message in the MTU of a common network */
#define PACKETS_MAX 4096
#define SENDS 64

struct stranger_packet {
	struct in_addr to;
	uint32_t qpn;
	uint32_t qkey;
	uint32_t bytes;
	struct ibv_ah *ah;
	uint8_t *data;
};

static uint32_t stranger_number(const uint8_t *bytes, unsigned int nr)
{
	uint32_t number = 0;

	while (nr--)
		number = number << 8 | *bytes++;
	return number;
}

/* ---- record */

static void stranger_show(const uint8_t *frame, size_t bytes)
{
	const struct iphdr *ip = (const void *)frame;
	size_t head = bytes < sizeof(*ip) ? 0 : ip->ihl * 4U;
	const struct udphdr *udp = (const void *)(frame + head);
	const uint8_t *bth = frame + head + sizeof(*udp), *data = bth + BTH_BYTES + DETH_BYTES;
	char to[INET_ADDRSTRLEN];
	unsigned int i;

	if (head < sizeof(*ip) || ip->version != 4 || ip->protocol != IPPROTO_UDP ||
	    bytes != (size_t)(data - frame) + KRP_LANE_BYTES + ICRC_BYTES ||
	    ntohs(udp->dest) != ROCE_PORT || bth[0] != OPCODE_UD_SEND)
		return;
	printf("%s %x %x ", inet_ntop(AF_INET, &ip->daddr, to, sizeof(to)),
	       stranger_number(bth + 5, 3), stranger_number(bth + BTH_BYTES, 4));
	for (i = 0; i < KRP_LANE_BYTES; i++)
		printf("%02x", data[i]);
	printf("\n");
	fflush(stdout);
}

static int stranger_record(void)
{
	_Alignas(8) uint8_t frame[2048];
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	ssize_t got;

	if (fd < 0) {
		perror("AF_PACKET");
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while ((got = recv(fd, frame, sizeof(frame), 0)) > 0)
		stranger_show(frame, (size_t)got);
	perror("recv");
	return 1;
}

/* ---- send */

struct stranger {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t gid_index;
	uint8_t *memory;
	struct stranger_packet packets[PACKETS_MAX];
	unsigned int nr;
};

/* Return: 0, or -1: not such a line, or there are too many. */
static int stranger_parse(struct stranger *s, char *line)
{
	struct stranger_packet *p = &s->packets[s->nr];
	char *word = strtok(line, " \n"), *qpn = strtok(NULL, " \n"), *qkey = strtok(NULL, " \n");
	char *hex = strtok(NULL, " \n");
	unsigned int byte;

	if (!hex || s->nr == PACKETS_MAX || strlen(hex) > 2 * PACKET_BYTES_MAX ||
	    inet_pton(AF_INET, word, &p->to) != 1)
		return -1;
	p->qpn = (uint32_t)strtoul(qpn, NULL, 16);
	p->qkey = (uint32_t)strtoul(qkey, NULL, 16);
	p->data = s->memory + (size_t)s->nr * PACKET_BYTES_MAX;
	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		p->data[p->bytes++] = (uint8_t)byte;
	s->nr++;
	return 0;
}

static struct ibv_context *stranger_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;

	for (d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	return NULL;
}

/* The place of an IPv4 address for RoCE v2. Return: 0 or -1. */
static int stranger_gid(struct stranger *s)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	unsigned int i;

	for (i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(s->context, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, mapped, sizeof(mapped)))
			continue;
		s->gid_index = (uint8_t)i;
		return 0;
	}
	return -1;
}

static int stranger_queue_pair(struct stranger *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	s->pd = ibv_alloc_pd(s->context);
	s->cq = s->pd ? ibv_create_cq(s->context, SENDS, NULL, NULL, 0) : NULL;
	s->mr = s->cq ? ibv_reg_mr(s->pd, s->memory, (size_t)PACKETS_MAX * PACKET_BYTES_MAX, 0)
		      : NULL;
	if (!s->mr)
		return -1;
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	init.cap.max_send_wr = SENDS;
	init.cap.max_recv_wr = 1;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
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

static struct ibv_ah *stranger_way(struct stranger *s, const struct stranger_packet *p)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	attr.grh.sgid_index = s->gid_index;
	attr.grh.hop_limit = 64;
	attr.grh.dgid.raw[10] = 0xff;
	attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.grh.dgid.raw + 12, &p->to, sizeof(p->to));
	return ibv_create_ah(s->pd, &attr);
}

/* Send a packet, and wait until it has gone. Return: 0 or -1. */
static int stranger_say(struct stranger *s, const struct stranger_packet *p)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->data,
			       .length = p->bytes,
			       .lkey = s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;
	int nr;

	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = p->qpn;
	wr.wr.ud.remote_qkey = p->qkey;
	if (ibv_post_send(s->qp, &wr, &bad))
		return -1;
	while (!(nr = ibv_poll_cq(s->cq, 1, &wc)))
		;
	return nr > 0 && wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

static int stranger_send(struct stranger *s, const char *device, unsigned int rounds)
{
	static char line[2 * PACKET_BYTES_MAX + 64];
	unsigned int i, sent = 0;

	while (fgets(line, sizeof(line), stdin))
		if (stranger_parse(s, line))
			return 2;
	s->context = stranger_device(device);
	if (!s->context || stranger_gid(s) || stranger_queue_pair(s)) {
		perror(device);
		return 1;
	}
	for (i = 0; i < s->nr; i++) {
		s->packets[i].ah = stranger_way(s, &s->packets[i]);
		if (!s->packets[i].ah) {
			perror("address");
			return 1;
		}
	}
	for (; rounds; rounds--)
		for (i = 0; i < s->nr; i++, sent++)
			if (stranger_say(s, &s->packets[i])) {
				perror("send");
				return 1;
			}
	printf("sent %u\n", sent);
	return 0;
}

int main(int argc, char **argv)
{
	struct stranger *s;

	if (argc == 2 && !strcmp(argv[1], "record"))
		return stranger_record();
	if (argc != 4 || strcmp(argv[1], "send"))
		return 2;
	s = calloc(1, sizeof(*s));
	if (!s || posix_memalign((void **)&s->memory, 4096, (size_t)PACKETS_MAX * PACKET_BYTES_MAX))
		return 2;
	return stranger_send(s, argv[2], (unsigned int)strtoul(argv[3], NULL, 10));
}
