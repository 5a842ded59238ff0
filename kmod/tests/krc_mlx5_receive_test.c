// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the receive pool of a target of mlx5 as the device sees it: the list of its entries
 * while buffers complete in any order, what a completion means, and the request of a SEND.
 * The device's part is done by the test, in memory.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>

#include "hw/mlx5/mlx5.h"

#define KRC_TEST_ENTRIES 8
#define KRC_TEST_DEPTH 5
#define KRC_TEST_ROUNDS 200

/**
 * struct krc_test_rmp - A target and what the device knows of it.
 * @test: test.
 * @hw: device; length_max alone is set.
 * @target: target.
 * @rq: its receives.
 * @db: doorbell records: of buffers, and of completions.
 * @next: entry that the device takes next.
 * @taken: buffers taken by the device; wraps.
 * @made: completions made.
 */
struct krc_test_rmp {
	struct kunit *test;
	struct krc_hw hw;
	struct krc_hw_target target;
	struct krc_mlx5_receive rq;
	__be32 db[2];
	u16 next;
	u32 taken;
	u32 made;
};

static void krc_test_ring(struct kunit *test, struct krc_mlx5_ring *ring, u32 log_stride)
{
	struct mlx5_buf_list *frag = kunit_kzalloc(test, sizeof(*frag), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, frag);
	frag->buf = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, frag->buf);
	mlx5_init_fbc(frag, log_stride, ilog2(KRC_TEST_ENTRIES), &ring->fbc);
}

static struct krc_test_rmp *krc_test_rmp_make(struct kunit *test)
{
	struct krc_test_rmp *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct krc_mlx5_receive *rq;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	t->hw.attr.length_max = 1 << 20;
	t->target.hw = &t->hw;
	t->target.receive = &t->rq;
	rq = &t->rq;
	rq->hw = &t->hw;
	rq->depth = KRC_TEST_DEPTH;
	rq->mask = KRC_TEST_ENTRIES - 1;
	rq->tail = rq->mask;
	rq->cookies = kunit_kcalloc(test, KRC_TEST_ENTRIES, sizeof(*rq->cookies), GFP_KERNEL);
	rq->busy = kunit_kzalloc(test, sizeof(*rq->busy), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rq->cookies);
	KUNIT_ASSERT_NOT_NULL(test, rq->busy);
	krc_test_ring(test, &rq->rmp.ring, ilog2(32));
	krc_test_ring(test, &rq->cq.ring, ilog2(64));
	rq->rmp.ring.db.db = &t->db[0];
	rq->cq.mcq.set_ci_db = &t->db[1];
	rq->cq.log_size = ilog2(KRC_TEST_ENTRIES);
	for (i = 0; i < KRC_TEST_ENTRIES; i++) {
		struct mlx5_wqe_srq_next_seg *next = krc_mlx5_ring_entry(&rq->rmp.ring, i);
		struct mlx5_cqe64 *cqe = krc_mlx5_ring_entry(&rq->cq.ring, i);

		next->next_wqe_index = cpu_to_be16((i + 1) % KRC_TEST_ENTRIES);
		cqe->op_own = MLX5_CQE_INVALID << 4 | MLX5_CQE_OWNER_MASK;
	}
	return t;
}

/* The device takes the next buffer. Return: its entry; -1: none was posted. */
static int krc_test_take(struct krc_test_rmp *t, struct mlx5_wqe_data_seg *ret_data)
{
	struct mlx5_wqe_srq_next_seg *next;
	int at = t->next;

	if (t->taken == be32_to_cpu(t->db[0]))
		return -1;
	next = krc_mlx5_ring_entry(&t->rq.rmp.ring, at);
	*ret_data = *(struct mlx5_wqe_data_seg *)(next + 1);
	t->next = be16_to_cpu(next->next_wqe_index);
	t->taken++;
	return at;
}

/* The device completes a buffer. */
static void krc_test_complete(struct krc_test_rmp *t, u16 at, u8 opcode, u32 bytes, u8 syndrome)
{
	struct mlx5_cqe64 *cqe =
		krc_mlx5_ring_entry(&t->rq.cq.ring, t->made & (KRC_TEST_ENTRIES - 1));

	memset(cqe, 0, sizeof(*cqe));
	cqe->byte_cnt = cpu_to_be32(bytes);
	cqe->wqe_counter = cpu_to_be16(at);
	if (opcode == MLX5_CQE_RESP_ERR)
		((struct mlx5_err_cqe *)cqe)->syndrome = syndrome;
	cqe->op_own = opcode << 4 | !!(t->made & KRC_TEST_ENTRIES);
	t->made++;
}

/*
 * Buffers come back in another order than they were taken, round by round, and none is lost; one is
 * filled only in the end, and its entry serves no other until then.
 */
static void krc_test_buffers_in_any_order(struct kunit *test)
{
	struct krc_test_rmp *t = krc_test_rmp_make(test);
	u64 cookie = 1000, first = cookie;
	struct mlx5_wqe_data_seg data;
	struct krc_recv_wc wc[KRC_TEST_DEPTH + 1];
	int at[KRC_TEST_DEPTH], n, i, round, last;

	KUNIT_ASSERT_EQ(test, krc_mlx5_recv_post(&t->target, 1, 64, 7, 96), 0);
	krc_mlx5_recv_ring(&t->target);
	last = krc_test_take(t, &data);
	KUNIT_ASSERT_GE(test, last, 0);
	for (round = 0; round < KRC_TEST_ROUNDS; round++) {
		n = 1 + round % (KRC_TEST_DEPTH - 1);
		for (i = 0; i < n; i++, cookie++)
			KUNIT_ASSERT_EQ(test,
					krc_mlx5_recv_post(&t->target, cookie, 64 * cookie, 7, 96),
					0);
		KUNIT_ASSERT_EQ(test, krc_test_take(t, &data), -1); /* before the doorbell */
		krc_mlx5_recv_ring(&t->target);
		for (i = 0; i < n; i++) {
			at[i] = krc_test_take(t, &data);
			KUNIT_ASSERT_GE(test, at[i], 0);
			KUNIT_ASSERT_NE(test, at[i], last);
			KUNIT_EXPECT_EQ(test, be64_to_cpu(data.addr), 64 * (first + i));
			KUNIT_EXPECT_EQ(test, be32_to_cpu(data.lkey), 7U);
			KUNIT_EXPECT_EQ(test, be32_to_cpu(data.byte_count), 96U);
		}
		KUNIT_ASSERT_EQ(test, krc_test_take(t, &data), -1);
		for (i = 0; i < n; i++) {
			int of = (i + round) % n;

			krc_test_complete(t, at[of], MLX5_CQE_RESP_SEND, 10 + of, 0);
		}
		KUNIT_ASSERT_EQ(test, krc_mlx5_recv_poll(&t->target, wc, KRC_TEST_DEPTH + 1), n);
		for (i = 0; i < n; i++) {
			int of = (i + round) % n;

			KUNIT_EXPECT_EQ(test, wc[i].cookie, first + of);
			KUNIT_EXPECT_EQ(test, wc[i].bytes, 10U + of);
			KUNIT_EXPECT_EQ(test, (u32)wc[i].fault, (u32)KRC_FAULT_NONE);
		}
		KUNIT_EXPECT_EQ(test, be32_to_cpu(t->db[1]), t->made);
		first = cookie;
	}
	krc_test_complete(t, last, MLX5_CQE_RESP_SEND, 96, 0);
	KUNIT_ASSERT_EQ(test, krc_mlx5_recv_poll(&t->target, wc, KRC_TEST_DEPTH), 1);
	KUNIT_EXPECT_EQ(test, wc[0].cookie, 1ULL);
	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_poll(&t->target, wc, 1), 0);
}

static void krc_test_what_is_not_posted(struct kunit *test)
{
	struct krc_test_rmp *t = krc_test_rmp_make(test);
	u32 i;

	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_post(&t->target, 1, 64, 7, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_post(&t->target, 1, 64, 7, (1 << 20) + 1), -EINVAL);
	for (i = 0; i < KRC_TEST_DEPTH; i++)
		KUNIT_EXPECT_EQ(test, krc_mlx5_recv_post(&t->target, i, 64, 7, 1 << 20), 0);
	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_post(&t->target, i, 64, 7, 64), -ENOSPC);
	t->target.receive = NULL;
	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_post(&t->target, 1, 64, 7, 64), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_mlx5_recv_poll(&t->target, NULL, 0), 0);
	krc_mlx5_recv_ring(&t->target);
	krc_mlx5_recv_arm(&t->target);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(t->db[0]), 0U);
}

/* A completion that brings nothing says why, and gives the buffer back. */
static void krc_test_what_a_completion_means(struct kunit *test)
{
	static const struct {
		u8 opcode;
		u8 syndrome;
		enum krc_fault fault;
	} cases[] = {
		{ MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, KRC_FAULT_LOCAL },
		{ MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, KRC_FAULT_LOCAL },
		{ MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, KRC_FAULT_FATAL },
		{ MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, KRC_FAULT_FATAL },
		{ MLX5_CQE_RESP_SEND_IMM, 0, KRC_FAULT_FATAL },
		{ MLX5_CQE_RESP_WR_IMM, 0, KRC_FAULT_FATAL },
	};
	struct krc_test_rmp *t = krc_test_rmp_make(test);
	struct mlx5_wqe_data_seg data;
	struct krc_recv_wc wc;
	u32 i;
	int at;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_ASSERT_EQ(test, krc_mlx5_recv_post(&t->target, 50 + i, 64, 7, 96), 0);
		krc_mlx5_recv_ring(&t->target);
		at = krc_test_take(t, &data);
		KUNIT_ASSERT_GE(test, at, 0);
		krc_test_complete(t, at, cases[i].opcode, 33, cases[i].syndrome);
		KUNIT_ASSERT_EQ(test, krc_mlx5_recv_poll(&t->target, &wc, 1), 1);
		KUNIT_EXPECT_EQ_MSG(test, (u32)wc.fault, (u32)cases[i].fault, "case %u", i);
		KUNIT_EXPECT_EQ(test, wc.bytes, 0U);
		KUNIT_EXPECT_EQ(test, wc.cookie, 50ULL + i);
		KUNIT_EXPECT_EQ(test, wc.syndrome, cases[i].syndrome);
	}
	KUNIT_EXPECT_EQ(test, t->rq.used, 0U);
}

/* Address, and behind it the data segment at once: five units of 16 bytes. */
static void krc_test_the_request_of_a_send(struct kunit *test)
{
	struct krc_hw_initiator *ini = kunit_kzalloc(test, sizeof(*ini), GFP_KERNEL);
	struct krc_hw_address address = { .opaque = { [11] = 0x2b } };
	const struct krc_hw_wr wr = {
		.address = &address,
		.remote_addr = U64_MAX,
		.local_addr = 0x123456789aULL,
		.rkey = U32_MAX,
		.lkey = 0x77,
		.length = 4096,
		.opcode = KRC_HW_SEND,
	};
	struct krc_hw *hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct mlx5_wqe_data_seg *data;

	KUNIT_ASSERT_NOT_NULL(test, ini);
	KUNIT_ASSERT_NOT_NULL(test, hw);
	hw->attr.length_max = 4096;
	KUNIT_EXPECT_EQ(test, krc_mlx5_wr_check(hw, &wr), 0);
	hw->attr.length_max = 4095;
	KUNIT_EXPECT_EQ(test, krc_mlx5_wr_check(hw, &wr), -EINVAL);
	krc_test_ring(test, &ini->sq, ilog2(MLX5_SEND_WQE_BB));
	ini->mask = KRC_TEST_ENTRIES / KRC_MLX5_WR_BLOCKS - 1;
	ini->head = 1;
	ini->qpn = 0x4a;
	krc_mlx5_wqe_write(ini, &wr);
	ctrl = krc_mlx5_ring_entry(&ini->sq, 2);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->opmod_idx_opcode), 2U << 8 | MLX5_OPCODE_SEND);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->qpn_ds), 0x4aU << 8 | 5);
	KUNIT_EXPECT_EQ(test, ctrl->fm_ce_se, MLX5_WQE_CTRL_CQ_UPDATE);
	KUNIT_EXPECT_EQ(test, ((u8 *)(ctrl + 1))[11], 0x2b);
	data = krc_mlx5_ring_entry(&ini->sq, 3);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(data->byte_count), 4096U);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(data->lkey), 0x77U);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(data->addr), 0x123456789aULL);
}

static struct kunit_case krc_mlx5_receive_cases[] = { KUNIT_CASE(krc_test_buffers_in_any_order),
						      KUNIT_CASE(krc_test_what_is_not_posted),
						      KUNIT_CASE(krc_test_what_a_completion_means),
						      KUNIT_CASE(krc_test_the_request_of_a_send),
						      {} };

static struct kunit_suite krc_mlx5_receive_suite = {
	.name = "krcore_mlx5_receive",
	.test_cases = krc_mlx5_receive_cases,
};
kunit_test_suites(&krc_mlx5_receive_suite);
