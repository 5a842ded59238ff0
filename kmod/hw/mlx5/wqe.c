// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the WQE format: requests as the device reads them, and whether it can execute them.
 *
 * A request is a control segment (16 bytes), the address vector (48), the remote address (16),
 * for atomics the operands (16), and one data segment (16): 96 or 112 bytes, so two
 * basic blocks. A SEND has no remote address: 80 bytes, in two blocks as well. The layout is that
 * of libmlx5 for DC.
 */
#include "hw/mlx5/mlx5.h"

#define KRC_MLX5_DS(bytes) ((bytes) / 16)

static const u8 krc_mlx5_opcodes[] = {
	/* of KRP_OP_* */
	[KRP_OP_READ] = MLX5_OPCODE_RDMA_READ,
	[KRP_OP_WRITE] = MLX5_OPCODE_RDMA_WRITE,
	[KRP_OP_CMP_SWAP] = MLX5_OPCODE_ATOMIC_CS,
	[KRP_OP_FETCH_ADD] = MLX5_OPCODE_ATOMIC_FA,
};

static void *krc_mlx5_wqe_atomic(void *at, const struct krc_hw_wr *wr)
{
	struct mlx5_wqe_atomic_seg *a = at;

	if (wr->opcode == KRP_OP_CMP_SWAP) {
		a->swap_add = cpu_to_be64(wr->swap);
		a->compare = cpu_to_be64(wr->compare_add);
	} else {
		a->swap_add = cpu_to_be64(wr->compare_add);
		a->compare = 0;
	}
	return a + 1;
}

/*
 * Write what stands between address and data. Return: where the data segment is; *@ret_opcode: what
 * the device calls the operation.
 */
static __always_inline void *krc_mlx5_wqe_remote(void *at, const struct krc_hw_wr *wr,
						 u8 *ret_opcode)
{
	struct mlx5_wqe_raddr_seg *remote = at;

	if (unlikely(wr->opcode == KRC_HW_SEND)) {
		*ret_opcode = MLX5_OPCODE_SEND;
		return at;
	}
	*ret_opcode = krc_mlx5_opcodes[wr->opcode];
	remote->raddr = cpu_to_be64(wr->remote_addr);
	remote->rkey = cpu_to_be32(wr->rkey);
	remote->reserved = 0;
	return unlikely(krc_mlx5_is_atomic(wr->opcode)) ? krc_mlx5_wqe_atomic(remote + 1, wr)
							: remote + 1;
}

static __always_inline void krc_mlx5_wqe_fill(struct krc_hw_initiator *ini,
					      const struct krc_hw_wr *wr)
{
	u32 at = ini->head, block = (at & ini->mask) * KRC_MLX5_WR_BLOCKS;
	struct mlx5_wqe_ctrl_seg *ctrl = krc_mlx5_ring_entry(&ini->sq, block);
	struct mlx5_wqe_datagram_seg *to = (void *)(ctrl + 1);
	void *second = to + 1; /* a fragment is a page, and holds both blocks */
	struct mlx5_wqe_data_seg *data;
	u8 opcode;
	u32 bytes;

	BUILD_BUG_ON(PAGE_SIZE % (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB));
	BUILD_BUG_ON(sizeof(*ctrl) + sizeof(*to) != MLX5_SEND_WQE_BB);
	BUILD_BUG_ON(sizeof(*to) > sizeof(wr->address->opaque));
	memcpy(to, wr->address->opaque, sizeof(*to));
	to->av.udp_sport ^= ini->sport; /* spreads initiators over paths and bonds */
	data = krc_mlx5_wqe_remote(second, wr, &opcode);
	data->byte_count = cpu_to_be32(wr->length);
	data->lkey = cpu_to_be32(wr->lkey);
	data->addr = cpu_to_be64(wr->local_addr);
	bytes = MLX5_SEND_WQE_BB + ((void *)(data + 1) - second);

	memset(ctrl, 0, sizeof(*ctrl));
	ctrl->opmod_idx_opcode = cpu_to_be32((u32)(u16)(at * KRC_MLX5_WR_BLOCKS) << 8 | opcode);
	ctrl->qpn_ds = cpu_to_be32(ini->qpn << 8 | KRC_MLX5_DS(bytes));
	ctrl->fm_ce_se = (wr->unsignaled ? 0 : MLX5_WQE_CTRL_CQ_UPDATE) |
			 (wr->fence ? MLX5_FENCE_MODE_FENCE : 0);
}

void krc_mlx5_wqe_write(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr)
{
	krc_mlx5_wqe_fill(ini, wr);
}

static __always_inline int krc_mlx5_wr_judge(const struct krc_hw *hw, const struct krc_hw_wr *wr)
{
	if (wr->opcode != KRC_HW_SEND &&
	    (wr->opcode < KRP_OP_READ || wr->opcode > KRP_OP_FETCH_ADD))
		return -EINVAL;
	/* the hardware takes 0 as 2 GiB */
	if (!wr->length || wr->length > hw->attr.length_max)
		return -EINVAL;
	if (krc_mlx5_is_atomic(wr->opcode) &&
	    (!hw->attr.atomics || wr->length != sizeof(u64) || wr->remote_addr % sizeof(u64)))
		return -EINVAL;
	return 0;
}

int krc_mlx5_wr_check(const struct krc_hw *hw, const struct krc_hw_wr *wr)
{
	return krc_mlx5_wr_judge(hw, wr);
}

int krc_mlx5_post(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr)
{
	int err = krc_mlx5_wr_judge(ini->hw, wr);

	if (err)
		return err;
	if (!READ_ONCE(ini->ready))
		return -EIO;
	if (ini->head - ini->tail >= ini->depth)
		return -ENOSPC;
	krc_mlx5_wqe_fill(ini, wr);
	ini->cookies[ini->head & ini->mask] = wr->cookie;
	ini->head++;
	return 0;
}
