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

/* of KRP_OP_* and KRC_HW_SEND */
static const u8 krc_mlx5_opcodes[] = {
	[KRP_OP_READ] = MLX5_OPCODE_RDMA_READ,	   [KRP_OP_WRITE] = MLX5_OPCODE_RDMA_WRITE,
	[KRP_OP_CMP_SWAP] = MLX5_OPCODE_ATOMIC_CS, [KRP_OP_FETCH_ADD] = MLX5_OPCODE_ATOMIC_FA,
	[KRC_HW_SEND] = MLX5_OPCODE_SEND,
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

/* Write the local address. Return: what is behind it. */
static __always_inline void *krc_mlx5_wqe_local(void *at, const struct krc_hw_wr *wr)
{
	struct mlx5_wqe_data_seg *data = at;

	data->byte_count = cpu_to_be32(wr->length);
	data->lkey = cpu_to_be32(wr->lkey);
	data->addr = cpu_to_be64(wr->local_addr);
	return data + 1;
}

/* Write the second block of a request that is not plain. Return: bytes of the request. */
static noinline u32 krc_mlx5_wqe_other(void *second, const struct krc_hw_wr *wr)
{
	void *at = second;

	if (wr->opcode != KRC_HW_SEND)
		at = krc_mlx5_wqe_atomic(krc_mlx5_wqe_remote(at, wr), wr);
	return MLX5_SEND_WQE_BB + (krc_mlx5_wqe_local(at, wr) - second);
}

/* Second word of a control segment: of which initiator a request is, and its length. */
static __always_inline __be32 krc_mlx5_qpn_ds(const struct krc_hw_initiator *ini, u32 bytes)
{
	return cpu_to_be32(ini->qpn << 8 | KRC_MLX5_DS(bytes));
}

/* That of a READ or a WRITE. */
static __always_inline __be32 krc_mlx5_plain_ds(const struct krc_hw_initiator *ini)
{
	return krc_mlx5_qpn_ds(ini, MLX5_SEND_WQE_BB + sizeof(struct mlx5_wqe_raddr_seg) +
					    sizeof(struct mlx5_wqe_data_seg));
}

/* Write request number @at to its two blocks at @ctrl. @plain_ds: krc_mlx5_plain_ds(). */
static __always_inline void krc_mlx5_wqe_fill(const struct krc_hw_initiator *ini, u32 at,
					      struct mlx5_wqe_ctrl_seg *ctrl, __be32 plain_ds,
					      const struct krc_hw_wr *wr)
{
	struct mlx5_wqe_datagram_seg *to = (void *)(ctrl + 1);
	void *second = to + 1; /* a fragment is a page, and holds both blocks */
	u8 opcode = wr->opcode;

	BUILD_BUG_ON(PAGE_SIZE % (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB));
	BUILD_BUG_ON(sizeof(*ctrl) + sizeof(*to) != MLX5_SEND_WQE_BB);
	BUILD_BUG_ON(sizeof(*to) > sizeof(wr->address->opaque));
	memcpy(to, wr->address->opaque, sizeof(*to));
	to->av.udp_sport ^= ini->sport; /* spreads initiators over paths and bonds */
	if (likely(krc_mlx5_is_plain(opcode))) {
		krc_mlx5_wqe_local(krc_mlx5_wqe_remote(second, wr), wr);
		ctrl->qpn_ds = plain_ds;
	} else {
		ctrl->qpn_ds = krc_mlx5_qpn_ds(ini, krc_mlx5_wqe_other(second, wr));
	}
	memset(&ctrl->trailer, 0, sizeof(ctrl->trailer));
	ctrl->opmod_idx_opcode =
		cpu_to_be32((u32)(u16)(at * KRC_MLX5_WR_BLOCKS) << 8 | krc_mlx5_opcodes[opcode]);
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
	krc_mlx5_wqe_fill(ini, ini->head, krc_mlx5_wqe_at(ini, ini->head), krc_mlx5_plain_ds(ini),
			  wr);
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
	u32 first = ini->head, at = first, mask = ini->mask, room = ini->depth - (at - ini->tail);
	/* entries lie side by side, but for the first of a page or queue: @at & @side is 0 */
	u32 side = mask & (ini->sq.fbc.frag_sz_m1 / KRC_MLX5_WR_BLOCKS);
	bool ready = READ_ONCE(ini->ready);
	u32 end = first + (ready ? min(nr, room) : 0);
	struct mlx5_wqe_ctrl_seg *ctrl = krc_mlx5_wqe_at(ini, at);
	__be32 plain_ds = krc_mlx5_plain_ds(ini);
	const struct krc_hw *hw = ini->hw;
	u64 *cookies = ini->cookies;

	for (; at != end && !krc_mlx5_wr_judge(hw, wr); wr = wr->next) {
		krc_mlx5_wqe_fill(ini, at, ctrl, plain_ds, wr);
		cookies[at & mask] = wr->cookie;
		ctrl = (void *)ctrl + KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB;
		if (unlikely(!(++at & side)))
			ctrl = krc_mlx5_wqe_at(ini, at);
	}
	ini->head = at;
	if (at != first)
		return at - first;
	return krc_mlx5_wr_judge(hw, wr) ?: (ready ? -ENOSPC : -EIO);
}

int krc_mlx5_post(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr)
{
	int n = krc_mlx5_post_many(ini, wr, 1);

	return n < 0 ? n : 0;
}
