// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: how the device is told of requests: the registers that initiators ring, and BlueFlame.
 *
 * Where the device and the processor can, an initiator has a register of its own that is mapped
 * write-combining, and a request that was posted alone is written into it whole: the device
 * need not fetch it, which is a way over PCIe and back. If the writes are not combined after all,
 * the device takes the first 8 bytes for a doorbell and fetches the request: nothing but time is
 * lost. It is one of the registers that libmlx5 pushes into, too, and mlx5_core tests: not of those
 * that the driver calls fast. Of several requests the device is only told, as they are fetched together.
 * Otherwise all initiators share the register of a page that is not cached.
 * Source: libmlx5, post_send_db().
 */
#include <linux/io.h>
#include <linux/moduleparam.h>

#include "base/compat.h"
#include "hw/mlx5/mlx5.h"

#include <linux/mlx5/doorbell.h> /* needs the headers above */

/* initiators may share a doorbell register, so it must be written by one 64-bit store */
static_assert(BITS_PER_LONG == 64);

#define KRC_MLX5_PUSH_BYTES (KRC_MLX5_WR_BLOCKS * MLX5_SEND_WQE_BB)

static bool krc_blueflame = true;
module_param_named(blueflame, krc_blueflame, bool, 0644);
MODULE_PARM_DESC(blueflame, "Write single requests into the device, where it can (default: Y)");

static bool krc_mlx5_can_push(struct krc_hw *hw)
{
	struct mlx5_core_dev *mdev = hw->mdev;

	return READ_ONCE(krc_blueflame) && MLX5_CAP_GEN(mdev, bf) &&
	       BIT(MLX5_CAP_GEN(mdev, log_bf_reg_size)) >= 2 * KRC_MLX5_PUSH_BYTES &&
	       krc_compat_writes_combine(mdev);
}

void krc_mlx5_bell_create(struct krc_hw *hw, struct krc_mlx5_bell *bell)
{
	bell->map = hw->uar->map + MLX5_BF_OFFSET;
	bell->page = hw->uar->index;
	if (!krc_mlx5_can_push(hw) || mlx5_alloc_bfreg(hw->mdev, &bell->reg, true, false))
		return;
	if (!bell->reg.wc) {
		mlx5_free_bfreg(hw->mdev, &bell->reg);
		return;
	}
	bell->map = bell->reg.map;
	bell->page = bell->reg.index;
	bell->half = BIT(MLX5_CAP_GEN(hw->mdev, log_bf_reg_size)) / 2;
}

void krc_mlx5_bell_destroy(struct krc_hw *hw, struct krc_mlx5_bell *bell)
{
	if (bell->half)
		mlx5_free_bfreg(hw->mdev, &bell->reg);
}

/* Write a request to a register. On x86 in line: there the kernel's function is a slow loop. */
static __always_inline void krc_mlx5_push(void __iomem *to, const u64 *request)
{
#ifdef CONFIG_X86_64
	const u64 *end = request + KRC_MLX5_PUSH_BYTES / sizeof(u64);

	for (; request != end; request += 8, to += 8 * sizeof(u64)) {
		__raw_writeq(request[0], to);
		__raw_writeq(request[1], to + 8);
		__raw_writeq(request[2], to + 16);
		__raw_writeq(request[3], to + 24);
		__raw_writeq(request[4], to + 32);
		__raw_writeq(request[5], to + 40);
		__raw_writeq(request[6], to + 48);
		__raw_writeq(request[7], to + 56);
	}
#else
	__iowrite64_copy(to, request, KRC_MLX5_PUSH_BYTES / sizeof(u64));
#endif
}

void krc_mlx5_bell_ring(struct krc_mlx5_bell *bell, const void *request, bool alone)
{
	void __iomem *at = bell->map + bell->at;

	if (!bell->half) {
		mlx5_write64((__be32 *)request, at);
		return;
	}
	if (alone)
		krc_mlx5_push(at, request);
	else
		mlx5_write64((__be32 *)request, at);
	wmb(); /* what is combined is sent now, and before the next request */
	bell->at ^= bell->half;
}

void krc_mlx5_ring_doorbell(struct krc_hw_initiator *ini)
{
	struct mlx5_wqe_ctrl_seg *ctrl;
	u32 nr = ini->head - ini->rung;

	if (!READ_ONCE(ini->ready) || !nr)
		return;
	ctrl = krc_mlx5_ring_entry(&ini->sq, ((ini->head - 1) & ini->mask) * KRC_MLX5_WR_BLOCKS);
	ctrl->fm_ce_se |= MLX5_WQE_CTRL_CQ_UPDATE;
	dma_wmb(); /* requests before the doorbell record */
	ini->sq.db.db[MLX5_SND_DBR] = cpu_to_be32((u16)(ini->head * KRC_MLX5_WR_BLOCKS));
	wmb(); /* doorbell record before the doorbell */
	krc_mlx5_bell_ring(&ini->bell, ctrl, nr == 1);
	ini->rung = ini->head;
}
