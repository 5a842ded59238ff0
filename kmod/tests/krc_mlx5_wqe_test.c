// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: addresses in requests of mlx5 as they are written: what initiators to the same target
 * differ in, route headers of InfiniBand, and a port's partition. Without a device.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>

#include "hw/mlx5/mlx5.h"
#include "krp_ioctl.h"

#define KRC_TEST_SLOTS 4
#define KRC_TEST_BYTES (KRC_TEST_SLOTS * KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB)
#define KRC_TEST_INITIATORS 64
#define KRC_TEST_PORT_MIN 0xc000 /* RoCE v2: the source ports of sending queues */

/* An initiator with nothing but its send queue. */
static struct krc_hw_initiator *krc_test_initiator(struct kunit *test, u32 qpn, __be16 sport)
{
	struct krc_hw_initiator *ini = kunit_kzalloc(test, sizeof(*ini), GFP_KERNEL);
	struct mlx5_buf_list *frag = kunit_kzalloc(test, sizeof(*frag), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ini);
	KUNIT_ASSERT_NOT_NULL(test, frag);
	frag->buf = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, frag->buf);
	mlx5_init_fbc(frag, ilog2(MLX5_SEND_WQE_BB), ilog2(KRC_TEST_BYTES / MLX5_SEND_WQE_BB),
		      &ini->sq.fbc);
	ini->mask = KRC_TEST_SLOTS - 1;
	ini->qpn = qpn;
	ini->sport = sport;
	return ini;
}

/* The address that a request of an initiator carries. */
static struct mlx5_av krc_test_av(struct krc_hw_initiator *ini, const struct mlx5_av *av)
{
	struct mlx5_wqe_datagram_seg to = { .av = *av };
	struct krc_hw_address address = {};
	struct mlx5_wqe_ctrl_seg *ctrl = krc_mlx5_ring_entry(&ini->sq, 0);
	struct krc_hw_wr wr = {
		.address = &address,
		.length = 64,
		.opcode = KRP_OP_READ,
	};

	memcpy(address.opaque, &to, sizeof(to));
	krc_mlx5_wqe_write(ini, &wr);
	return ((struct mlx5_wqe_datagram_seg *)(ctrl + 1))->av;
}

/* Switches and bonds spread packets by the port, which is all that differs. */
static void krc_test_initiators_have_ports_of_their_own(struct kunit *test)
{
	struct mlx5_av av = { .udp_sport = cpu_to_be16(0xd234), .tclass = 106, .hop_limit = 64 };
	u16 ports[KRC_TEST_INITIATORS];
	u32 i, j, same = 0;

	for (i = 0; i < KRC_TEST_INITIATORS; i++) {
		u32 qpn = 0x4a + i;
		struct krc_hw_initiator *ini = krc_test_initiator(test, qpn, krc_mlx5_sport(qpn));
		struct mlx5_av sent = krc_test_av(ini, &av);

		ports[i] = be16_to_cpu(sent.udp_sport);
		KUNIT_EXPECT_GE(test, ports[i], KRC_TEST_PORT_MIN);
		sent.udp_sport = av.udp_sport;
		KUNIT_EXPECT_EQ(test, memcmp(&sent, &av, sizeof(av)), 0);
		for (j = 0; j < i; j++)
			same += ports[i] == ports[j];
	}
	KUNIT_EXPECT_EQ(test, same, 0U);
}

/* InfiniBand has no such port: the address is sent as it is. */
static void krc_test_an_address_of_infiniband_stays(struct kunit *test)
{
	struct krc_hw_initiator *ini = krc_test_initiator(test, 0x4a, 0);
	struct mlx5_av av = { .rlid = cpu_to_be16(7), .stat_rate_sl = 3 }, sent;

	sent = krc_test_av(ini, &av);
	KUNIT_EXPECT_EQ(test, memcmp(&sent, &av, sizeof(av)), 0);
}

/* A peer behind a virtual port is named by GID, with the class and level of the settings. */
static void krc_test_the_route_header_of_infiniband(struct kunit *test)
{
	static const struct krc_hw_fabric fabric = { .traffic_class = 106, .sl = 5 };
	static const union ib_gid gid = { .raw = { 0xfe, 0x80, [15] = 9 } };
	struct mlx5_av av = {};

	krc_mlx5_av_ib_fill(&av, &fabric, 0x1234, 3, NULL);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(av.rlid), 0x1234);
	KUNIT_EXPECT_EQ(test, av.stat_rate_sl, 5);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(av.grh_gid_fl), 0U);
	KUNIT_EXPECT_EQ(test, av.hop_limit, 0);

	krc_mlx5_av_ib_fill(&av, &fabric, 0x1234, 3, &gid);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(av.rlid), 0x1234);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(av.grh_gid_fl), BIT(30) | 3U << 20);
	KUNIT_EXPECT_EQ(test, av.tclass, 106);
	KUNIT_EXPECT_EQ(test, av.hop_limit, KRC_MLX5_HOP_LIMIT);
	KUNIT_EXPECT_EQ(test, memcmp(av.rgid, gid.raw, sizeof(gid.raw)), 0);
}

/* The path of an initiator has the settings of its port, and of no other: partition, class, level. */
static void krc_test_the_path_has_the_ports_settings(struct kunit *test)
{
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	u32 path[MLX5_ST_SZ_DW(ads)] = {};

	KUNIT_ASSERT_NOT_NULL(test, hw);
	hw->ports[1] =
		(struct krc_mlx5_port){ .fabric = { .traffic_class = 106, .sl = 3, .pkey = 0x8001 },
					.pkey_index = 5 };
	hw->ports[2] = (struct krc_mlx5_port){ .fabric = { .sl = 12 }, .pkey_index = 7 };
	hw->roce = true;
	krc_mlx5_path_fill(path, hw, 1, 4);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, vhca_port_num), 1U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, pkey_index), 5U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, src_addr_index), 4U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, eth_prio), 3U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, dscp), 26U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, tclass), 106U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, sl), 0U);

	memset(path, 0, sizeof(path));
	hw->roce = false;
	krc_mlx5_path_fill(path, hw, 2, 4);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, vhca_port_num), 2U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, pkey_index), 7U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, sl), 12U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, src_addr_index), 0U);
	KUNIT_EXPECT_EQ(test, MLX5_GET(ads, path, dscp), 0U);
}

/* As ib_core's struct ib_pkey_cache, which is in no header. */
struct krc_test_pkeys {
	int table_len;
	u16 table[];
};

/* A table of partitions in place of ib_core's. */
static void krc_test_partitions(struct kunit *test, struct ib_device *ibdev, const u16 *pkeys,
				u32 nr)
{
	struct krc_test_pkeys *cache =
		kunit_kzalloc(test, struct_size(cache, table, nr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cache);
	cache->table_len = nr;
	memcpy(cache->table, pkeys, nr * sizeof(*pkeys));
	ibdev->port_data[1].cache.pkey = (struct ib_pkey_cache *)cache;
}

/* An administrator moves the partition in the port's table, and takes it out. */
static void krc_test_a_partition_that_moves(struct kunit *test)
{
	static const u16 first[] = { 0xffff, 0x8001 }, moved[] = { 0xffff, 0x8007, 0x8001 },
			 gone[] = { 0xffff };
	struct krc_hw_fabric fabric = { .pkey = 0x8001 };
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hw);
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	rwlock_init(&ibdev->cache_lock);
	ibdev->port_data = kunit_kcalloc(test, 2, sizeof(*ibdev->port_data), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev->port_data);
	hw->ibdev = ibdev;
	krc_test_partitions(test, ibdev, first, ARRAY_SIZE(first));
	KUNIT_EXPECT_EQ(test, krc_mlx5_port_setup(hw, 1, &fabric), 0);
	KUNIT_EXPECT_EQ(test, hw->ports[1].pkey_index, 1);
	KUNIT_EXPECT_TRUE(test, krc_mlx5_port_settled(hw, 1));
	krc_test_partitions(test, ibdev, moved, ARRAY_SIZE(moved));
	KUNIT_EXPECT_FALSE(test, krc_mlx5_port_settled(hw, 1));
	KUNIT_EXPECT_EQ(test, krc_mlx5_port_setup(hw, 1, &fabric), 0);
	KUNIT_EXPECT_EQ(test, hw->ports[1].pkey_index, 2);
	KUNIT_EXPECT_TRUE(test, krc_mlx5_port_settled(hw, 1));
	krc_test_partitions(test, ibdev, gone, ARRAY_SIZE(gone));
	KUNIT_EXPECT_FALSE(test, krc_mlx5_port_settled(hw, 1));
	KUNIT_EXPECT_EQ(test, krc_mlx5_port_setup(hw, 1, &fabric), -ENOENT);
	hw->roce = true; /* there are no partitions */
	KUNIT_EXPECT_TRUE(test, krc_mlx5_port_settled(hw, 1));
}

/* What a record may say, by the first thing that is wrong with it. */
struct krc_test_record {
	u8 kind;
	u32 dctn;
	u8 flags;
	u8 max_rd_atomic;
	u8 mtu;
	u16 lid;
	u32 port; /* of ours */
	int err;
};

static const struct krc_test_record krc_test_records[] = {
	{ KRP_KIND_RAW, 0, 0, 0, 0, 0, 1, -EINVAL },
	{ KRP_KIND_DCT, 0, 0, 16, 3, 7, 1, -EINVAL }, /* no target */
	{ KRP_KIND_DCT, 0x123, 0, 16, 3, 7, 2, -EINVAL }, /* no port of ours */
	{ KRP_KIND_DCT, 0x123, KRP_DCT_ETHERNET, 16, 3, 7, 1, -EAFNOSUPPORT },
	{ KRP_KIND_DCT, 0x123, 0, 8, 3, 7, 1, -EINVAL }, /* fewer READs than we send */
	{ KRP_KIND_DCT, 0x123, 0, 16, 2, 7, 1, -ENETUNREACH }, /* smaller packets than ours */
	{ KRP_KIND_DCT, 0x123, 0, 16, 3, 0, 1, -EINVAL }, /* no LID */
};

/* Why there is no way to a record, on InfiniBand. */
static void krc_test_no_way_to_a_record(struct kunit *test)
{
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	struct krc_hw_address address;
	union ib_gid gid = {};
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, hw);
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 1;
	hw->ibdev = ibdev;
	hw->log_rd_atomic = 4;
	hw->ports[1].mtu = 3;
	for (i = 0; i < ARRAY_SIZE(krc_test_records); i++) {
		const struct krc_test_record *r = &krc_test_records[i];
		struct krp_value value = {
			.generation = cpu_to_le64(1),
			.kind = r->kind,
			.dct = { .dctn = cpu_to_le32(r->dctn),
				 .flags = r->flags,
				 .max_rd_atomic = r->max_rd_atomic,
				 .mtu = r->mtu,
				 .lid = cpu_to_le16(r->lid),
				 .port = 1 },
		};

		KUNIT_EXPECT_EQ_MSG(test, krc_mlx5_address(hw, r->port, 0, &gid, &value, &address),
				    r->err, "record %u", i);
	}
}

/* The MTU that counts is that of the port's own initiators: one refuses what another takes. */
static void krc_test_each_port_has_its_mtu(struct kunit *test)
{
	static const struct {
		u8 first, second; /* MTU of ports 1 and 2 */
		u32 taken; /* the port that goes on to the LID, which is missing */
	} cases[] = { { 3, 5, 1 }, { 5, 3, 2 } };
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	const struct krp_value value = {
		.generation = cpu_to_le64(1),
		.kind = KRP_KIND_DCT,
		.dct = { .dctn = cpu_to_le32(0x123), .max_rd_atomic = 16, .mtu = 4, .port = 1 },
	};
	struct krc_hw_address address;
	union ib_gid gid = {};
	u32 i, port;

	KUNIT_ASSERT_NOT_NULL(test, hw);
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->phys_port_cnt = 2;
	hw->ibdev = ibdev;
	hw->log_rd_atomic = 4;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		hw->ports[1].mtu = cases[i].first;
		hw->ports[2].mtu = cases[i].second;
		for (port = 1; port <= 2; port++) {
			bool taken = port == cases[i].taken;

			KUNIT_EXPECT_EQ_MSG(test,
					    krc_mlx5_address(hw, port, 0, &gid, &value, &address),
					    taken ? -EINVAL : -ENETUNREACH, "port %u", port);
		}
	}
}

/* Of requests that are posted together those before the first bad one are appended, in order. */
static void krc_test_requests_are_posted_together(struct kunit *test)
{
	struct krc_hw_initiator *ini = krc_test_initiator(test, 0x4a, 0);
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct krc_hw_address address = {};
	struct krc_hw_wr wrs[KRC_TEST_SLOTS + 1] = {};
	u64 cookies[KRC_TEST_SLOTS] = {};
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, hw);
	hw->attr.length_max = 1 << 20;
	ini->hw = hw;
	ini->depth = KRC_TEST_SLOTS;
	ini->cookies = cookies;
	ini->ready = true;
	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		wrs[i].address = &address;
		wrs[i].opcode = KRP_OP_READ;
		wrs[i].length = 8;
		wrs[i].cookie = 100 + i;
		wrs[i].remote_addr = i;
		if (i)
			wrs[i - 1].next = &wrs[i];
	}
	wrs[2].length = 0;
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs, 4), 2);
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs + 2, 2), -EINVAL);
	wrs[2].length = 8;
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs + 2, 3), 2); /* there is no more room */
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs + 4, 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, ini->head, (u32)KRC_TEST_SLOTS);
	for (i = 0; i < KRC_TEST_SLOTS; i++) {
		struct mlx5_wqe_ctrl_seg *ctrl =
			krc_mlx5_ring_entry(&ini->sq, i * KRC_MLX5_WR_BLOCKS);
		struct mlx5_wqe_raddr_seg *remote = (void *)ctrl + MLX5_SEND_WQE_BB;

		KUNIT_EXPECT_EQ(test, cookies[i], 100ULL + i);
		KUNIT_EXPECT_EQ(test, be64_to_cpu(remote->raddr), (u64)i);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->opmod_idx_opcode) >> 8,
				i * KRC_MLX5_WR_BLOCKS);
	}
	/* a run goes on at the first entry, behind the last one, and behind the last number of all */
	ini->head = U32_MAX;
	ini->tail = U32_MAX;
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs, KRC_TEST_SLOTS), KRC_TEST_SLOTS);
	KUNIT_EXPECT_EQ(test, ini->head, KRC_TEST_SLOTS - 1U);
	for (i = 0; i < KRC_TEST_SLOTS; i++) {
		u32 at = (i + KRC_TEST_SLOTS - 1) % KRC_TEST_SLOTS;
		struct mlx5_wqe_ctrl_seg *ctrl =
			krc_mlx5_ring_entry(&ini->sq, at * KRC_MLX5_WR_BLOCKS);
		struct mlx5_wqe_raddr_seg *remote = (void *)ctrl + MLX5_SEND_WQE_BB;

		KUNIT_EXPECT_EQ(test, cookies[at], 100ULL + i);
		KUNIT_EXPECT_EQ(test, be64_to_cpu(remote->raddr), (u64)i);
	}
	ini->tail = 1;
	ini->ready = false;
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs, 1), -EIO);
	KUNIT_EXPECT_EQ(test, krc_mlx5_post(ini, wrs), -EIO);
}

#define KRC_TEST_HALF 256
#define KRC_TEST_PUSHED (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB)

/* An initiator with three requests written, and @page in place of the device's registers. */
static struct krc_hw_initiator *krc_test_bell(struct kunit *test, u8 *page)
{
	struct krc_hw_initiator *ini = krc_test_initiator(test, 0x4a, 0);
	struct krc_hw_address address = {};
	struct krc_hw_wr wr = {
		.address = &address, .length = 8, .opcode = KRP_OP_READ, .unsignaled = true
	};

	if (IS_ENABLED(CONFIG_INDIRECT_IOMEM))
		kunit_skip(test, "registers of this kernel are not memory");
	ini->sq.db.db = kunit_kzalloc(test, 2 * sizeof(__be32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ini->sq.db.db);
	ini->bell.map = (void __iomem __force *)page;
	ini->ready = true;
	for (; ini->head != 3; ini->head++) {
		wr.remote_addr = ini->head;
		krc_mlx5_wqe_write(ini, &wr);
	}
	ini->head = 0;
	return ini;
}

/* How many bytes of a register are as those of a request; the others must be 0. */
static u32 krc_test_pushed(struct kunit *test, const u8 *at, const void *request)
{
	u32 i, n = 0;

	while (n < KRC_TEST_PUSHED && at[n] == ((const u8 *)request)[n])
		n++;
	for (i = n; i < KRC_TEST_HALF; i++)
		KUNIT_EXPECT_EQ(test, at[i], 0);
	return n;
}

/* A request alone is pushed, in turns into two halves; of several only the doorbell is rung. */
static void krc_test_a_request_alone_is_pushed(struct kunit *test)
{
	u8 *page = kunit_kzalloc(test, 2 * KRC_TEST_HALF, GFP_KERNEL);
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct krc_hw_initiator *ini;

	KUNIT_ASSERT_NOT_NULL(test, page);
	ini = krc_test_bell(test, page);
	ini->bell.half = KRC_TEST_HALF;
	ini->head = 1;
	krc_mlx5_ring_doorbell(ini);
	ctrl = krc_mlx5_ring_entry(&ini->sq, 0);
	KUNIT_EXPECT_EQ(test, krc_test_pushed(test, page, ctrl), (u32)KRC_TEST_PUSHED);
	KUNIT_EXPECT_TRUE(test, ctrl->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ini->sq.db.db[MLX5_SND_DBR]), KRC_MLX5_WR_BLOCKS);
	krc_mlx5_ring_doorbell(ini); /* there is nothing new */
	KUNIT_EXPECT_EQ(test, ini->bell.at, KRC_TEST_HALF);
	memset(page, 0, KRC_TEST_HALF);
	ini->head = 3; /* two more, as krc_mlx5_post_many() leaves them */
	krc_mlx5_ring_doorbell(ini);
	KUNIT_EXPECT_NULL(test, memchr_inv(page, 0, KRC_TEST_HALF));
	ctrl = krc_mlx5_ring_entry(&ini->sq, 2 * KRC_MLX5_WR_BLOCKS);
	KUNIT_EXPECT_EQ(test, memcmp(page + KRC_TEST_HALF, ctrl, sizeof(u64)), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(page + KRC_TEST_HALF + sizeof(u64), 0,
					   KRC_TEST_HALF - sizeof(u64)));
	KUNIT_EXPECT_EQ(test, ini->bell.at, 0U);
}

/* A register that others ring as well gets nothing but doorbells, always at its beginning. */
static void krc_test_a_shared_register_is_rung(struct kunit *test)
{
	u8 *page = kunit_kzalloc(test, 2 * KRC_TEST_HALF, GFP_KERNEL);
	struct krc_hw_initiator *ini;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	ini = krc_test_bell(test, page);
	for (i = 0; i < 2; i++) {
		struct mlx5_wqe_ctrl_seg *ctrl =
			krc_mlx5_ring_entry(&ini->sq, i * KRC_MLX5_WR_BLOCKS);

		ini->head = i + 1;
		krc_mlx5_ring_doorbell(ini);
		KUNIT_EXPECT_EQ(test, memcmp(page, ctrl, sizeof(u64)), 0);
		KUNIT_EXPECT_NULL(test, memchr_inv(page + sizeof(u64), 0,
						   2 * KRC_TEST_HALF - sizeof(u64)));
	}
	ini->head = 3;
	ini->ready = false; /* while it is halted nothing is rung */
	memset(page, 0, sizeof(u64));
	krc_mlx5_ring_doorbell(ini);
	KUNIT_EXPECT_NULL(test, memchr_inv(page, 0, sizeof(u64)));
}

/* A queue of two pages, which need not be neighbours: each request is where its number says. */
static void krc_test_requests_lie_in_pages(struct kunit *test)
{
	enum {
		SLOTS = 2 * PAGE_SIZE / (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB),
		FIRST = 17
	};
	struct krc_hw_initiator *ini = krc_test_initiator(test, 0x4a, 0);
	struct krc_hw_wr *wrs = kunit_kcalloc(test, SLOTS, sizeof(*wrs), GFP_KERNEL);
	struct mlx5_buf_list *frags = kunit_kcalloc(test, 2, sizeof(*frags), GFP_KERNEL);
	char *memory = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct krc_hw_address address = {};
	u32 i;

	KUNIT_ASSERT_TRUE(test, wrs && frags && memory && hw);
	frags[0].buf = memory + 3 * PAGE_SIZE;
	frags[1].buf = memory;
	mlx5_init_fbc(frags, ilog2(MLX5_SEND_WQE_BB), ilog2(SLOTS * KRC_MLX5_WR_BLOCKS),
		      &ini->sq.fbc);
	hw->attr.length_max = 1 << 20;
	ini->hw = hw;
	ini->depth = SLOTS;
	ini->mask = SLOTS - 1;
	ini->cookies = kunit_kcalloc(test, SLOTS, sizeof(*ini->cookies), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ini->cookies);
	ini->ready = true;
	ini->head = FIRST;
	ini->tail = FIRST;
	for (i = 0; i < SLOTS; i++)
		wrs[i] = (struct krc_hw_wr){ .cookie = i,
					     .address = &address,
					     .remote_addr = FIRST + i,
					     .length = 8,
					     .opcode = KRP_OP_READ,
					     .next = i + 1 < SLOTS ? &wrs[i + 1] : NULL };
	KUNIT_EXPECT_EQ(test, krc_mlx5_post_many(ini, wrs, SLOTS), (int)SLOTS);
	for (i = 0; i < SLOTS; i++) {
		u32 at = (FIRST + i) % SLOTS, page = at / (SLOTS / 2);
		char *entry = (char *)frags[page].buf +
			      at % (SLOTS / 2) * KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB;
		struct mlx5_wqe_raddr_seg *remote = (void *)(entry + MLX5_SEND_WQE_BB);

		KUNIT_EXPECT_EQ(test, be64_to_cpu(remote->raddr), (u64)FIRST + i);
		KUNIT_EXPECT_EQ(test, ini->cookies[at], (u64)i);
	}
	for (i = PAGE_SIZE; i < 3 * PAGE_SIZE; i++) /* between the pages, and behind the second */
		KUNIT_ASSERT_EQ(test, memory[i], 0);
}

/* A request as the device reads it: word by word, for each operation. */
static void krc_test_every_operation(struct kunit *test)
{
	static const struct {
		u8 opcode, device, units;
		u64 first, second; /* of an atomic, behind the remote address */
	} ops[] = {
		{ KRP_OP_READ, MLX5_OPCODE_RDMA_READ, 6 },
		{ KRP_OP_WRITE, MLX5_OPCODE_RDMA_WRITE, 6 },
		{ KRP_OP_CMP_SWAP, MLX5_OPCODE_ATOMIC_CS, 7, 22, 11 },
		{ KRP_OP_FETCH_ADD, MLX5_OPCODE_ATOMIC_FA, 7, 11, 0 },
		{ KRC_HW_SEND, MLX5_OPCODE_SEND, 5 },
	};
	struct krc_hw_initiator *ini = krc_test_initiator(test, 0x4a, 0);
	const __be32 *word = krc_mlx5_ring_entry(&ini->sq, 2 * KRC_MLX5_WR_BLOCKS);
	struct krc_hw_address address = {};
	u32 i;

	ini->head = KRC_TEST_SLOTS + 2;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		bool fence = i & 1, send = ops[i].opcode == KRC_HW_SEND;
		u32 at = MLX5_SEND_WQE_BB / sizeof(*word), data = ops[i].units * 4 - 4;
		struct krc_hw_wr wr = {
			.address = &address,
			.remote_addr = 0x123456789abcdef0,
			.local_addr = 0x0fedcba987654321,
			.compare_add = 11,
			.swap = 22,
			.rkey = 0x11223344,
			.lkey = 0x55667788,
			.length = 8,
			.opcode = ops[i].opcode,
			.fence = fence,
			.unsignaled = !fence,
		};

		memset((void *)word, 0xff, KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB);
		krc_mlx5_wqe_write(ini, &wr);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[0]),
				(KRC_TEST_SLOTS + 2) * KRC_MLX5_WR_BLOCKS << 8 | ops[i].device);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[1]), 0x4a00U | ops[i].units);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[2]),
				fence ? MLX5_FENCE_MODE_FENCE | MLX5_WQE_CTRL_CQ_UPDATE : 0U);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[3]), 0U);
		if (!send) {
			KUNIT_EXPECT_EQ(test, be64_to_cpup((void *)&word[at]), wr.remote_addr);
			KUNIT_EXPECT_EQ(test, be32_to_cpu(word[at + 2]), wr.rkey);
			KUNIT_EXPECT_EQ(test, be32_to_cpu(word[at + 3]), 0U);
		}
		if (ops[i].first) {
			KUNIT_EXPECT_EQ(test, be64_to_cpup((void *)&word[at + 4]), ops[i].first);
			KUNIT_EXPECT_EQ(test, be64_to_cpup((void *)&word[at + 6]), ops[i].second);
		}
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[data]), 8U);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(word[data + 1]), wr.lkey);
		KUNIT_EXPECT_EQ(test, be64_to_cpup((void *)&word[data + 2]), wr.local_addr);
	}
}

static struct kunit_case krc_mlx5_wqe_cases[] = {
	KUNIT_CASE(krc_test_every_operation),
	KUNIT_CASE(krc_test_requests_are_posted_together),
	KUNIT_CASE(krc_test_requests_lie_in_pages),
	KUNIT_CASE(krc_test_a_request_alone_is_pushed),
	KUNIT_CASE(krc_test_a_shared_register_is_rung),
	KUNIT_CASE(krc_test_initiators_have_ports_of_their_own),
	KUNIT_CASE(krc_test_an_address_of_infiniband_stays),
	KUNIT_CASE(krc_test_the_route_header_of_infiniband),
	KUNIT_CASE(krc_test_the_path_has_the_ports_settings),
	KUNIT_CASE(krc_test_a_partition_that_moves),
	KUNIT_CASE(krc_test_no_way_to_a_record),
	KUNIT_CASE(krc_test_each_port_has_its_mtu),
	{}
};

static struct kunit_suite krc_mlx5_wqe_suite = {
	.name = "krcore_mlx5_wqe",
	.test_cases = krc_mlx5_wqe_cases,
};
kunit_test_suite(krc_mlx5_wqe_suite);
