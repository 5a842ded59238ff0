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

/* Whether a request is a READ or a WRITE, as nearly all are. */
static __always_inline bool krc_mlx5_is_plain(u8 opcode)
{
	return opcode == KRP_OP_READ || opcode == KRP_OP_WRITE;
}

/* Write the remote address. Return: what is behind it. */
static __always_inline void *krc_mlx5_wqe_remote(void *at, const struct krc_hw_wr *wr)
{
	struct mlx5_wqe_raddr_seg *remote = at;

	remote->raddr = cpu_to_be64(wr->remote_addr);
	remote->rkey = cpu_to_be32(wr->rkey);
	remote->reserved = 0;
	return remote + 1;
}

/* What stands between address and data of a request that is not plain. Return: what is behind it. */
static noinline void *krc_mlx5_wqe_other(void *at, const struct krc_hw_wr *wr)
{
	if (wr->opcode == KRC_HW_SEND)
		return at;
	return krc_mlx5_wqe_atomic(krc_mlx5_wqe_remote(at, wr), wr);
}

/* Write request number @at to its two blocks at @ctrl. */
static __always_inline void krc_mlx5_wqe_fill(const struct krc_hw_initiator *ini, u32 at,
					      struct mlx5_wqe_ctrl_seg *ctrl,
					      const struct krc_hw_wr *wr)
{
	struct mlx5_wqe_datagram_seg *to = (void *)(ctrl + 1);
	void *second = to + 1; /* a fragment is a page, and holds both blocks */
	struct mlx5_wqe_data_seg *data;
	u32 units, opcode;

	BUILD_BUG_ON(PAGE_SIZE % (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB));
	BUILD_BUG_ON(sizeof(*ctrl) + sizeof(*to) != MLX5_SEND_WQE_BB);
	BUILD_BUG_ON(sizeof(*to) > sizeof(wr->address->opaque));
	memcpy(to, wr->address->opaque, sizeof(*to));
	to->av.udp_sport ^= ini->sport; /* spreads initiators over paths and bonds */
	if (likely(krc_mlx5_is_plain(wr->opcode))) {
		data = krc_mlx5_wqe_remote(second, wr);
		opcode = krc_mlx5_opcodes[wr->opcode];
		units = KRC_MLX5_DS(MLX5_SEND_WQE_BB + sizeof(struct mlx5_wqe_raddr_seg) +
				    sizeof(*data));
	} else {
		data = krc_mlx5_wqe_other(second, wr);
		opcode = wr->opcode == KRC_HW_SEND ? MLX5_OPCODE_SEND
						   : krc_mlx5_opcodes[wr->opcode];
		units = KRC_MLX5_DS(MLX5_SEND_WQE_BB + ((void *)(data + 1) - second));
	}
	data->byte_count = cpu_to_be32(wr->length);
	data->lkey = cpu_to_be32(wr->lkey);
	data->addr = cpu_to_be64(wr->local_addr);

	memset(&ctrl->trailer, 0, sizeof(ctrl->trailer));
	ctrl->opmod_idx_opcode = cpu_to_be32((u32)(u16)(at * KRC_MLX5_WR_BLOCKS) << 8 | opcode);
	ctrl->qpn_ds = cpu_to_be32(ini->qpn << 8 | units);
	ctrl->fm_ce_se = (wr->unsignaled ? 0 : MLX5_WQE_CTRL_CQ_UPDATE) |
			 (wr->fence ? MLX5_FENCE_MODE_FENCE : 0);
}

static __always_inline struct mlx5_wqe_ctrl_seg *krc_mlx5_wqe_at(struct krc_hw_initiator *ini,
								 u32 at)
{
	return krc_mlx5_ring_entry(&ini->sq, (at & ini->mask) * KRC_MLX5_WR_BLOCKS);
}

void krc_mlx5_wqe_write(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr)
{
	krc_mlx5_wqe_fill(ini, ini->head, krc_mlx5_wqe_at(ini, ini->head), wr);
}

static __always_inline int krc_mlx5_wr_judge(const struct krc_hw *hw, const struct krc_hw_wr *wr)
{
	/* the hardware takes 0 as 2 GiB */
	if (!wr->length || wr->length > hw->attr.length_max)
		return -EINVAL;
	if (likely(krc_mlx5_is_plain(wr->opcode)) || wr->opcode == KRC_HW_SEND)
		return 0;
	if (!krc_mlx5_is_atomic(wr->opcode) || !hw->attr.atomics || wr->length != sizeof(u64) ||
	    wr->remote_addr % sizeof(u64))
		return -EINVAL;
	return 0;
}

int krc_mlx5_wr_check(const struct krc_hw *hw, const struct krc_hw_wr *wr)
{
	return krc_mlx5_wr_judge(hw, wr);
}

int krc_mlx5_post_many(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr, u32 nr)
{
	u32 at = ini->head, mask = ini->mask, room = ini->depth - (at - ini->tail), n;
	const struct krc_hw *hw = ini->hw;
	bool ready = READ_ONCE(ini->ready);
	u64 *cookies = ini->cookies;
	int err = 0;

	for (n = 0; n < nr; n++, at++, wr = wr->next) {
		err = krc_mlx5_wr_judge(hw, wr);
		if (!err && unlikely(!ready))
			err = -EIO;
		if (!err && unlikely(n >= room))
			err = -ENOSPC;
		if (unlikely(err))
			break;
		krc_mlx5_wqe_fill(ini, at, krc_mlx5_wqe_at(ini, at), wr);
		cookies[at & mask] = wr->cookie;
	}
	ini->head = at;
	return n ?: err;
}

int krc_mlx5_post(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr)
{
	int n = krc_mlx5_post_many(ini, wr, 1);

	return n < 0 ? n : 0;
}
