// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A node whose directory lies: a DC target with a directory of its own, whose entries allow what
 * its NIC then refuses; but for the last one, which is true.
 *
 * usage: liar ADDRESS GENERATION
 *
 * ADDRESS is that of the port. Says how krcore-metactl is told of it, `dctn N dc_key N mrdir_addr N
 * mrdir_rkey N`, then waits to be killed. Entry i of LIAR_ENTRIES has the token LIAR_TOKEN +
 * i * LIAR_NEXT: another slot, and another proof. What the true one allows is the directory.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "proto/krp_ioctl.h"
#include "proto/krp_mrdir.h"

#define LIAR_ENTRIES 64
#define LIAR_TOKEN 0x10000ULL
#define LIAR_NEXT 0x10001ULL
#define LIAR_DC_KEY 0x11a7ULL
#define LIAR_BYTES (LIAR_ENTRIES * sizeof(struct krp_mrdir_entry))

static void liar_die(const char *what)
{
	perror(what);
	exit(1);
}

/* The GID of this IPv4 address for RoCE v2, by its index. */
static int liar_gid_index(struct ibv_context *ctx, const char *address)
{
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entries[64];
	ssize_t nr, i;

	if (inet_pton(AF_INET, address, gid + 12) != 1)
		liar_die(address);
	nr = ibv_query_gid_table(ctx, entries, 64, 0);
	for (i = 0; i < nr; i++)
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entries[i].gid.raw, gid, sizeof(gid)))
			return (int)entries[i].gid_index;
	fprintf(stderr, "no GID of %s\n", address);
	exit(1);
}

static struct ibv_qp *liar_target(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = LIAR_DC_KEY },
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	attr.srq = ibv_create_srq(pd, &srq);
	return attr.srq ? mlx5dv_create_qp(ctx, &attr, &dv) : NULL;
}

static int liar_ready(struct ibv_qp *qp, int gid_index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return -1;
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.min_rnr_timer = 12;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU);
}

/* Each entry is sealed, LIVE, and of this generation; only, no memory has that key, but for the last. */
static void liar_fill(struct krp_mrdir_entry *entries, uint32_t rkey, uint64_t generation)
{
	uint64_t i;

	for (i = 0; i < LIAR_ENTRIES; i++) {
		bool is_true = i == LIAR_ENTRIES - 1;

		entries[i] = (struct krp_mrdir_entry){
			.token = krp_cpu_to_le64(LIAR_TOKEN + i * LIAR_NEXT),
			.addr = krp_cpu_to_le64(is_true ? (uintptr_t)entries : 0x1000),
			.length = krp_cpu_to_le64(is_true ? LIAR_BYTES : 1 << 20),
			.rkey = krp_cpu_to_le32(is_true ? rkey : rkey ^ 0x5a00),
			.access = KRP_ACCESS_REMOTE_READ,
			.state = KRP_MRDIR_LIVE,
			.lease_ms = krp_cpu_to_le32(KRP_MRDIR_LEASE_MS_MAX),
			.margin_ms = krp_cpu_to_le32(is_true ? KRP_MRDIR_MARGIN_MS_MAX
							     : KRP_MRDIR_MARGIN_MS_MIN),
			.generation = krp_cpu_to_le64(generation),
		};
		krp_mrdir_seal(&entries[i]);
	}
}

int main(int argc, char **argv)
{
	struct krp_mrdir_entry *entries = aligned_alloc(4096, LIAR_BYTES);
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp *qp = cq ? liar_target(ctx, pd, cq) : NULL;
	struct ibv_mr *mr;

	if (argc != 3 || !entries)
		return 64;
	if (!qp || liar_ready(qp, liar_gid_index(ctx, argv[1])))
		liar_die("no target");
	mr = ibv_reg_mr(pd, entries, LIAR_BYTES, IBV_ACCESS_REMOTE_READ);
	if (!mr)
		liar_die("no memory");
	liar_fill(entries, mr->rkey, strtoull(argv[2], NULL, 0));
	printf("dctn %u dc_key %llu mrdir_addr %" PRIuPTR " mrdir_rkey %u\n", qp->qp_num,
	       LIAR_DC_KEY, (uintptr_t)entries, mr->rkey);
	fflush(stdout);
	pause();
	return 0;
}
