// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: completion queues, and the meaning of error completions. After
 * drivers/infiniband/hw/mlx5/cq.c.
 */
#include <linux/interrupt.h>

#include "base/compat.h"
#include "hw/mlx5/mlx5.h"

#define KRC_MLX5_LOG_CQE 6

static int krc_mlx5_cq_command(struct krc_hw *hw, struct krc_mlx5_cq *cq, u32 vector)
{
	u32 out[MLX5_ST_SZ_DW(create_cq_out)] = {};
	int inlen, err, eqn;
	void *cqc;
	u32 *in;

	err = krc_compat_eqn(hw->mdev, vector % krc_compat_vectors(hw->mdev), &eqn);
	if (err)
		return err;
	inlen = MLX5_ST_SZ_BYTES(create_cq_in) +
		MLX5_FLD_SZ_BYTES(create_cq_in, pas[0]) * cq->ring.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	cqc = MLX5_ADDR_OF(create_cq_in, in, cq_context);
	MLX5_SET(cqc, cqc, log_cq_size, cq->log_size);
	MLX5_SET(cqc, cqc, log_page_size, krc_mlx5_ring_page_shift(&cq->ring));
	MLX5_SET(cqc, cqc, uar_page, hw->uar->index);
	MLX5_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
	MLX5_SET64(cqc, cqc, dbr_addr, cq->ring.db.dma);
	mlx5_fill_page_frag_array(&cq->ring.buf, MLX5_ADDR_OF(create_cq_in, in, pas));
	err = mlx5_core_create_cq(hw->mdev, &cq->mcq, in, inlen, out, sizeof(out));
	kvfree(in);
	return err;
}

int krc_mlx5_cq_create(struct krc_hw *hw, struct krc_mlx5_cq *cq, u32 log_size, u32 vector)
{
	u32 i;
	int err;

	err = krc_mlx5_ring_create(hw, &cq->ring, KRC_MLX5_LOG_CQE, log_size);
	if (err)
		return err;
	cq->log_size = log_size;
	for (i = 0; i < 1U << log_size; i++) {
		struct mlx5_cqe64 *cqe = krc_mlx5_ring_entry(&cq->ring, i);

		cqe->op_own = MLX5_CQE_INVALID << 4 | MLX5_CQE_OWNER_MASK;
	}
	cq->mcq.cqe_sz = 1 << KRC_MLX5_LOG_CQE;
	cq->mcq.set_ci_db = cq->ring.db.db;
	cq->mcq.arm_db = cq->ring.db.db + 1;
	err = krc_mlx5_cq_command(hw, cq, vector);
	if (err)
		krc_mlx5_ring_destroy(hw, &cq->ring);
	return err;
}

void krc_mlx5_cq_destroy(struct krc_hw *hw, struct krc_mlx5_cq *cq)
{
	int err = mlx5_core_destroy_cq(hw->mdev, &cq->mcq);

	if (err) {
		/* mlx5_core has removed it from the tables of the event queues all the same */
		synchronize_irq(cq->mcq.irqn);
		mlx5_cq_put(&cq->mcq);
		wait_for_completion(&cq->mcq.free);
		if (err == -ENOMEM)
			err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_CQ, cq->mcq.cqn);
	}
	if (krc_mlx5_released(hw, err, "CQ", cq->mcq.cqn))
		krc_mlx5_ring_destroy(hw, &cq->ring);
}

/* Vendor syndrome that real devices add to REMOTE_INVAL_REQ if the DC key was wrong; seen in
 * public reports of DC users beside "DCT access error" of the target.
 */
#define KRC_MLX5_VENDOR_DC_KEY 0x8a

static const struct krc_mlx5_syndrome {
	u8 syndrome;
	u8 fault;
} krc_mlx5_syndromes[] = {
	{ MLX5_CQE_SYNDROME_WR_FLUSH_ERR, KRC_FAULT_FLUSHED },
	/* a local fault */
	{ MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, KRC_FAULT_LOCAL },
	{ MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, KRC_FAULT_LOCAL },
	{ MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, KRC_FAULT_LOCAL },
	{ MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, KRC_FAULT_LOCAL },
	{ MLX5_CQE_SYNDROME_MW_BIND_ERR, KRC_FAULT_LOCAL },
	/* the target refused it */
	{ MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, KRC_FAULT_ACCESS },
	{ MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, KRC_FAULT_ACCESS },
	{ MLX5_CQE_SYNDROME_REMOTE_OP_ERR, KRC_FAULT_ACCESS },
	/* the target does not exist */
	{ MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, KRC_FAULT_TARGET },
	/* there was no buffer for a SEND; of other requests see krc_channel_fault_of() */
	{ MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, KRC_FAULT_BUSY },
	/* no response, or a malformed one */
	{ MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, KRC_FAULT_TIMEOUT },
	{ MLX5_CQE_SYNDROME_BAD_RESP_ERR, KRC_FAULT_TIMEOUT },
};

static enum krc_fault krc_mlx5_syndrome_fault(u8 syndrome, u8 vendor)
{
	u32 i;

	if (syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR && vendor == KRC_MLX5_VENDOR_DC_KEY)
		return KRC_FAULT_TARGET;
	for (i = 0; i < ARRAY_SIZE(krc_mlx5_syndromes); i++)
		if (krc_mlx5_syndromes[i].syndrome == syndrome)
			return krc_mlx5_syndromes[i].fault;
	return KRC_FAULT_FATAL;
}

void krc_mlx5_failed(const struct mlx5_cqe64 *cqe, struct krc_wc *wc)
{
	const struct mlx5_err_cqe *bad = (const struct mlx5_err_cqe *)cqe;

	wc->syndrome = bad->syndrome;
	wc->vendor = bad->vendor_err_synd;
	wc->fault = krc_mlx5_syndrome_fault(bad->syndrome, bad->vendor_err_synd);
}

void krc_mlx5_recv_fault(const struct mlx5_cqe64 *cqe, struct krc_recv_wc *wc)
{
	const struct mlx5_err_cqe *bad = (const struct mlx5_err_cqe *)cqe;

	*wc = (struct krc_recv_wc){ .fault = KRC_FAULT_NONE };
	if (cqe->op_own >> 4 == MLX5_CQE_RESP_SEND) {
		wc->bytes = be32_to_cpu(cqe->byte_cnt);
		return;
	}
	wc->fault = KRC_FAULT_FATAL; /* also of what nobody of ours sends, such as immediates */
	if (cqe->op_own >> 4 != MLX5_CQE_RESP_ERR)
		return;
	wc->syndrome = bad->syndrome;
	wc->vendor = bad->vendor_err_synd;
	if (krc_mlx5_syndrome_fault(bad->syndrome, bad->vendor_err_synd) == KRC_FAULT_LOCAL)
		wc->fault = KRC_FAULT_LOCAL;
}
