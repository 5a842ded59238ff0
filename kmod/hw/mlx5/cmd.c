// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: commands of which only an object's number is told, and what their failure means: whether
 * the device still works, and whether it may still write to an object's memory.
 * Locking: none of its own.
 */
#include <linux/delay.h>
#include <linux/pci.h>

#include "hw/mlx5/mlx5.h"

#define KRC_MLX5_SIMPLE_TRIES 50
#define KRC_MLX5_SIMPLE_PAUSE_MS 20

bool krc_mlx5_is_down(const struct krc_hw *hw)
{
	return hw->mdev->state == MLX5_DEVICE_STATE_INTERNAL_ERROR ||
	       pci_channel_offline(hw->mdev->pdev);
}

int krc_mlx5_simple(struct krc_hw *hw, u16 opcode, u32 id)
{
	u32 in[MLX5_ST_SZ_DW(destroy_qp_in)] = {}, out[MLX5_ST_SZ_DW(destroy_qp_out)] = {};
	int err, tries = KRC_MLX5_SIMPLE_TRIES;

	/* all these commands have their object's number in the same place */
	MLX5_SET(destroy_qp_in, in, opcode, opcode);
	MLX5_SET(destroy_qp_in, in, qpn, id);
	for (;;) {
		err = mlx5_cmd_exec(hw->mdev, in, sizeof(in), out, sizeof(out));
		if (err != -ENOMEM || !--tries)
			return err;
		msleep(KRC_MLX5_SIMPLE_PAUSE_MS); /* releasing must not fail for lack of memory */
	}
}

bool krc_mlx5_released(struct krc_hw *hw, int err, const char *what, u32 id)
{
	if (!err || krc_mlx5_is_down(hw))
		return true;
	ibdev_err(hw->ibdev, "krcore: %s 0x%x was not destroyed (%d), its memory is not freed\n",
		  what, id, err);
	return false;
}
