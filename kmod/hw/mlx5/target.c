// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: DC targets (DCTs). Values are those of mlx5_ib (create_dct(), mlx5_ib_modify_dct()).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/mlx5/mlx5.h"

#define KRC_MLX5_RNR_TIMER 12 /* 0.64 ms, InfiniBand encoding */
#define KRC_MLX5_DRAIN_MS 10000
#define KRC_MLX5_DRAIN_POLL_MS 100

/* Physical port of a target: on a bond, targets are spread over its ports in turn. */
static u32 krc_mlx5_target_port(struct krc_hw *hw, u32 port)
{
	if (!mlx5_lag_is_active(hw->mdev))
		return port;
	return (u32)atomic_inc_return(&hw->lag_port) %
		       max_t(u32, MLX5_CAP_GEN(hw->mdev, num_lag_ports), 1) +
	       1;
}

static int krc_mlx5_target_command(struct krc_hw_target *target, u16 gid_index, u64 dc_key,
				   const struct krp_value *value)
{
	u32 in[MLX5_ST_SZ_DW(create_dct_in)] = {}, out[MLX5_ST_SZ_DW(create_dct_out)] = {};
	void *dctc = MLX5_ADDR_OF(create_dct_in, in, dct_context_entry);
	struct krc_mlx5_receive *rq = target->receive;
	struct krc_hw *hw = target->hw;
	u32 port = target->port;
	int err;

	MLX5_SET(create_dct_in, in, opcode, MLX5_CMD_OP_CREATE_DCT);
	MLX5_SET(dctc, dctc, pd, hw->pdn);
	MLX5_SET(dctc, dctc, srqn_xrqn, rq ? rq->rmp.rmpn : hw->rmp.rmpn);
	MLX5_SET(dctc, dctc, cqn, rq ? rq->cq.mcq.cqn : hw->rcq.mcq.cqn);
	MLX5_SET64(dctc, dctc, dc_access_key, dc_key);
	if (MLX5_CAP_GEN(hw->mdev, cqe_version) == KRC_MLX5_CQE_V1)
		MLX5_SET(dctc, dctc, user_index, KRC_MLX5_USER_INDEX);
	MLX5_SET(dctc, dctc, rre, 1);
	MLX5_SET(dctc, dctc, rwe, 1);
	if (hw->attr.atomics) {
		MLX5_SET(dctc, dctc, rae, 1);
		MLX5_SET(dctc, dctc, atomic_mode, hw->atomic_mode);
	}
	MLX5_SET(dctc, dctc, port, krc_mlx5_target_port(hw, port));
	MLX5_SET(dctc, dctc, min_rnr_nak, KRC_MLX5_RNR_TIMER);
	MLX5_SET(dctc, dctc, mtu, value->dct.mtu);
	MLX5_SET(dctc, dctc, my_addr_index, gid_index);
	MLX5_SET(dctc, dctc, pkey_index, hw->ports[port].pkey_index);
	if (hw->roce || rdma_is_grh_required(hw->ibdev, port)) {
		MLX5_SET(dctc, dctc, hop_limit, KRC_MLX5_HOP_LIMIT);
		MLX5_SET(dctc, dctc, tclass, hw->ports[port].fabric.traffic_class);
	}
	if (hw->roce)
		MLX5_SET(dctc, dctc, eth_prio, value->dct.sl & 7);
	err = mlx5_cmd_exec(hw->mdev, in, sizeof(in), out, sizeof(out));
	if (!err)
		target->dctn = MLX5_GET(create_dct_out, out, dctn);
	return err;
}

struct krc_hw_target *krc_mlx5_target_create(struct krc_hw *hw, u32 port, u16 gid_index, u64 dc_key,
					     const struct krc_hw_receive *receive,
					     struct krp_value *value)
{
	struct krc_hw_target *target;
	struct krp_value v = *value;
	int err;

	err = krc_mlx5_own_address(hw, port, gid_index, &v);
	if (err)
		return ERR_PTR(err);
	target = kzalloc(sizeof(*target), GFP_KERNEL);
	if (!target)
		return ERR_PTR(-ENOMEM);
	target->hw = hw;
	target->port = port;
	init_completion(&target->drained);
	if (receive && receive->depth) {
		target->receive = krc_mlx5_receive_create(hw, port, receive);
		if (IS_ERR(target->receive)) {
			err = PTR_ERR(target->receive);
			goto err_free;
		}
	}
	err = krc_mlx5_target_command(target, gid_index, dc_key, &v);
	if (err)
		goto err_receive;
	err = xa_err(xa_store_irq(&hw->targets, target->dctn, target, GFP_KERNEL));
	if (err)
		goto err_table;
	v.kind = KRP_KIND_DCT;
	v.len = 0;
	v.dct.dctn = cpu_to_le32(target->dctn);
	v.dct.dc_key = cpu_to_le64(dc_key);
	v.dct.max_rd_atomic = 1 << hw->log_rd_atomic;
	*value = v;
	return target;

err_table: /* no peer knows its number, so it drains at once; the event finds no entry: sleep */
	krc_mlx5_simple(hw, MLX5_CMD_OP_DRAIN_DCT, target->dctn);
	msleep(KRC_MLX5_DRAIN_POLL_MS);
	krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_DCT, target->dctn);
err_receive:
	if (target->receive)
		krc_mlx5_receive_destroy(target->receive);
err_free:
	kfree(target);
	return ERR_PTR(err);
}

void krc_mlx5_target_destroy(struct krc_hw_target *target)
{
	struct krc_hw *hw = target->hw;
	int err, left_ms = KRC_MLX5_DRAIN_MS;

	err = krc_mlx5_simple(hw, MLX5_CMD_OP_DRAIN_DCT, target->dctn);
	while (!err && left_ms > 0 && !krc_mlx5_is_down(hw)) {
		if (wait_for_completion_timeout(&target->drained,
						msecs_to_jiffies(KRC_MLX5_DRAIN_POLL_MS)))
			break;
		left_ms -= KRC_MLX5_DRAIN_POLL_MS;
	}
	if (left_ms <= 0)
		krc_port_warn(hw->ibdev, target->port, "target 0x%x did not drain within %d ms\n",
			      target->dctn, KRC_MLX5_DRAIN_MS);
	xa_erase_irq(&hw->targets, target->dctn);
	err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_DCT, target->dctn);
	krc_mlx5_released(hw, err, "DCT", target->dctn); /* only logs: a DCT has no memory here */
	if (target->receive)
		krc_mlx5_receive_destroy(target->receive);
	kfree(target);
}
