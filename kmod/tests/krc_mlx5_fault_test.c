// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what an error completion of mlx5 means, syndrome by syndrome. What is done with the
 * fault, above all whether neighbours are done again, depends on nothing else.
 * Locking: none; entries of completion queues are memory of the test.
 */
#include <kunit/test.h>

#include "hw/mlx5/mlx5.h"

#define KRC_TEST_SYNDROME(name, fault_) \
	{ \
		.syndrome = MLX5_CQE_SYNDROME_##name, .fault = KRC_FAULT_##fault_ \
	}

/* All that the device may say; what it does not say in this list is FATAL. */
static const struct {
	u8 syndrome;
	enum krc_fault fault;
} krc_test_syndromes[] = {
	KRC_TEST_SYNDROME(LOCAL_LENGTH_ERR, LOCAL),
	KRC_TEST_SYNDROME(LOCAL_QP_OP_ERR, LOCAL),
	KRC_TEST_SYNDROME(LOCAL_PROT_ERR, LOCAL),
	KRC_TEST_SYNDROME(WR_FLUSH_ERR, FLUSHED),
	KRC_TEST_SYNDROME(MW_BIND_ERR, LOCAL),
	KRC_TEST_SYNDROME(BAD_RESP_ERR, TIMEOUT),
	KRC_TEST_SYNDROME(LOCAL_ACCESS_ERR, LOCAL),
	KRC_TEST_SYNDROME(REMOTE_INVAL_REQ_ERR, ACCESS),
	KRC_TEST_SYNDROME(REMOTE_ACCESS_ERR, ACCESS),
	KRC_TEST_SYNDROME(REMOTE_OP_ERR, ACCESS),
	KRC_TEST_SYNDROME(TRANSPORT_RETRY_EXC_ERR, TIMEOUT),
	KRC_TEST_SYNDROME(RNR_RETRY_EXC_ERR, BUSY),
	KRC_TEST_SYNDROME(REMOTE_ABORTED_ERR, TARGET),
};

static struct krc_wc krc_test_fault(u8 opcode, u8 syndrome, u8 vendor)
{
	struct mlx5_err_cqe cqe = {
		.syndrome = syndrome,
		.vendor_err_synd = vendor,
		.op_own = opcode << 4 | MLX5_CQE_OWNER_MASK,
	};
	struct krc_wc wc = { .fault = -1, .syndrome = 0xee, .vendor = 0xee };

	krc_mlx5_fault((const struct mlx5_cqe64 *)&cqe, &wc);
	return wc;
}

static enum krc_fault krc_test_wanted(u32 syndrome)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(krc_test_syndromes); i++)
		if (krc_test_syndromes[i].syndrome == syndrome)
			return krc_test_syndromes[i].fault;
	return KRC_FAULT_FATAL;
}

static void krc_test_every_syndrome(struct kunit *test)
{
	u32 syndrome;

	for (syndrome = 0; syndrome <= U8_MAX; syndrome++) {
		struct krc_wc wc = krc_test_fault(MLX5_CQE_REQ_ERR, syndrome, 0x11);

		KUNIT_EXPECT_EQ_MSG(test, (u32)wc.fault, (u32)krc_test_wanted(syndrome),
				    "syndrome %#x", syndrome);
		KUNIT_EXPECT_EQ(test, (u32)wc.syndrome, syndrome);
		KUNIT_EXPECT_EQ(test, wc.vendor, 0x11);
	}
}

/* A wrong DC key looks like an invalid request but for this byte; elsewhere that says nothing. */
static void krc_test_vendor_of_a_wrong_dc_key(struct kunit *test)
{
	u32 vendor, i;

	for (vendor = 0; vendor <= U8_MAX; vendor++) {
		struct krc_wc wc = krc_test_fault(MLX5_CQE_REQ_ERR,
						  MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, vendor);

		KUNIT_EXPECT_EQ_MSG(test, (u32)wc.fault,
				    (u32)(vendor == 0x8a ? KRC_FAULT_TARGET : KRC_FAULT_ACCESS),
				    "vendor %#x", vendor);
	}
	for (i = 0; i < ARRAY_SIZE(krc_test_syndromes); i++) {
		u8 syndrome = krc_test_syndromes[i].syndrome;
		struct krc_wc wc = krc_test_fault(MLX5_CQE_REQ_ERR, syndrome, 0x8a);

		if (syndrome != MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR)
			KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)krc_test_syndromes[i].fault);
	}
}

/* The bytes of a syndrome mean something else in the entry of a request that is done. */
static void krc_test_no_fault(struct kunit *test)
{
	struct krc_wc wc = krc_test_fault(MLX5_CQE_REQ, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x8a);

	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, wc.syndrome, 0);
	KUNIT_EXPECT_EQ(test, wc.vendor, 0);
}

static struct kunit_case krc_mlx5_fault_cases[] = { KUNIT_CASE(krc_test_every_syndrome),
						    KUNIT_CASE(krc_test_vendor_of_a_wrong_dc_key),
						    KUNIT_CASE(krc_test_no_fault),
						    {} };

static struct kunit_suite krc_mlx5_fault_suite = {
	.name = "krcore_mlx5_fault",
	.test_cases = krc_mlx5_fault_cases,
};

kunit_test_suites(&krc_mlx5_fault_suite);
