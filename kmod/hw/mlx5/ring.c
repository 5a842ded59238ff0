// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: memory of queues and their doorbell records, from mlx5_core's own allocators:
 * fragments of a page each, so no large contiguous memory is needed.
 */
#include "hw/mlx5/mlx5.h"

int krc_mlx5_ring_create(struct krc_hw *hw, struct krc_mlx5_ring *ring, u32 log_stride,
			 u32 log_size)
{
	int node = hw->mdev->priv.numa_node;
	int bytes = max_t(int, PAGE_SIZE, 1 << (log_stride + log_size));
	int err;

	err = mlx5_db_alloc_node(hw->mdev, &ring->db, node);
	if (err)
		return err;
	err = mlx5_frag_buf_alloc_node(hw->mdev, bytes, &ring->buf, node);
	if (err) {
		mlx5_db_free(hw->mdev, &ring->db);
		return err;
	}
	mlx5_init_fbc(ring->buf.frags, log_stride, log_size, &ring->fbc);
	return 0;
}

void krc_mlx5_ring_destroy(struct krc_hw *hw, struct krc_mlx5_ring *ring)
{
	mlx5_frag_buf_free(hw->mdev, &ring->buf);
	mlx5_db_free(hw->mdev, &ring->db);
}
