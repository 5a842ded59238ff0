// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: receive pools (RMPs): the empty one that a device's initiators and its targets without
 * receives name, and those of targets that take messages, with their completion queue. After
 * srq.c and srq_cmd.c of mlx5_ib.
 *
 * The entries of a pool form a list that the device follows: each names the next one. The driver
 * takes entries for new buffers at its head, in the order of the list, and puts those that have
 * completed, in any order, behind its tail. An entry remains free, so that head and tail
 * never meet.
 * Locking: none of its own; hw/provider.h says what the caller serialises.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/mlx5/mlx5.h"

#include <linux/mlx5/doorbell.h> /* needs the headers above */

#define KRC_MLX5_LOG_RMP_STRIDE 5 /* link and one data segment */

int krc_mlx5_rmp_create(struct krc_hw *hw, struct krc_mlx5_rmp *rmp, u32 log_size)
{
	u32 out[MLX5_ST_SZ_DW(create_rmp_out)] = {};
	u32 mask = (1 << log_size) - 1, i;
	int inlen, err;
	void *rmpc, *wq;
	u32 *in;

	err = krc_mlx5_ring_create(hw, &rmp->ring, KRC_MLX5_LOG_RMP_STRIDE, log_size);
	if (err)
		return err;
	for (i = 0; i <= mask; i++) {
		struct mlx5_wqe_srq_next_seg *next = krc_mlx5_ring_entry(&rmp->ring, i);

		next->next_wqe_index = cpu_to_be16((i + 1) & mask);
	}
	inlen = MLX5_ST_SZ_BYTES(create_rmp_in) +
		MLX5_FLD_SZ_BYTES(create_rmp_in, ctx.wq.pas[0]) * rmp->ring.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in) {
		err = -ENOMEM;
		goto err_ring;
	}
	MLX5_SET(create_rmp_in, in, opcode, MLX5_CMD_OP_CREATE_RMP);
	rmpc = MLX5_ADDR_OF(create_rmp_in, in, ctx);
	wq = MLX5_ADDR_OF(rmpc, rmpc, wq);
	MLX5_SET(rmpc, rmpc, state, MLX5_RMPC_STATE_RDY);
	MLX5_SET(wq, wq, pd, hw->pdn);
	MLX5_SET(wq, wq, log_wq_stride, KRC_MLX5_LOG_RMP_STRIDE);
	MLX5_SET(wq, wq, log_wq_sz, log_size);
	MLX5_SET(wq, wq, log_wq_pg_sz, krc_mlx5_ring_page_shift(&rmp->ring));
	MLX5_SET64(wq, wq, dbr_addr, rmp->ring.db.dma);
	mlx5_fill_page_frag_array(&rmp->ring.buf, MLX5_ADDR_OF(wq, wq, pas));
	err = mlx5_cmd_exec(hw->mdev, in, inlen, out, sizeof(out));
	kvfree(in);
	if (err)
		goto err_ring;
	rmp->rmpn = MLX5_GET(create_rmp_out, out, rmpn);
	return 0;

err_ring:
	krc_mlx5_ring_destroy(hw, &rmp->ring);
	return err;
}

void krc_mlx5_rmp_destroy(struct krc_hw *hw, struct krc_mlx5_rmp *rmp)
{
	int err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_RMP, rmp->rmpn);

	if (krc_mlx5_released(hw, err, "RMP", rmp->rmpn))
		krc_mlx5_ring_destroy(hw, &rmp->ring);
}

/* ---- receives of a target */

static void krc_mlx5_on_receive(struct mlx5_core_cq *mcq, struct mlx5_eqe *eqe)
{
	struct krc_mlx5_receive *rq = container_of(mcq, struct krc_mlx5_receive, cq.mcq);

	rq->hw->events->received(rq->owner);
}

/* the completion queue is in error, which only a bug here can cause */
static void krc_mlx5_on_receive_error(struct mlx5_core_cq *mcq, enum mlx5_event event)
{
	struct krc_mlx5_receive *rq = container_of(mcq, struct krc_mlx5_receive, cq.mcq);

	krc_port_err_limited(rq->hw->ibdev, rq->port, "CQ 0x%x: event %d\n", mcq->cqn, event);
	rq->hw->events->receive_fatal(rq->owner);
}

static int krc_mlx5_receive_objects(struct krc_mlx5_receive *rq, u32 vector)
{
	u32 log_size = ilog2(rq->mask + 1);
	int err;

	rq->cookies = kvcalloc(rq->mask + 1, sizeof(*rq->cookies), GFP_KERNEL);
	rq->busy = bitmap_zalloc(rq->mask + 1, GFP_KERNEL);
	if (!rq->cookies || !rq->busy)
		return -ENOMEM;
	err = krc_mlx5_cq_create(rq->hw, &rq->cq, log_size, vector);
	if (err)
		return err;
	err = krc_mlx5_rmp_create(rq->hw, &rq->rmp, log_size);
	if (err)
		krc_mlx5_cq_destroy(rq->hw, &rq->cq);
	return err;
}

static void krc_mlx5_receive_free(struct krc_mlx5_receive *rq)
{
	bitmap_free(rq->busy);
	kvfree(rq->cookies);
	kfree(rq);
}

struct krc_mlx5_receive *krc_mlx5_receive_create(struct krc_hw *hw, u32 port,
						 const struct krc_hw_receive *receive)
{
	struct krc_mlx5_receive *rq;
	int err;

	if (receive->depth > hw->attr.recv_depth_max)
		return ERR_PTR(-EINVAL);
	rq = kzalloc(sizeof(*rq), GFP_KERNEL);
	if (!rq)
		return ERR_PTR(-ENOMEM);
	rq->hw = hw;
	rq->owner = receive->owner;
	rq->port = port;
	rq->depth = receive->depth;
	rq->mask = roundup_pow_of_two(receive->depth + 1) - 1;
	rq->tail = rq->mask;
	rq->cq.mcq.comp = krc_mlx5_on_receive;
	rq->cq.mcq.event = krc_mlx5_on_receive_error;
	err = krc_mlx5_receive_objects(rq, receive->vector);
	if (err) {
		krc_mlx5_receive_free(rq);
		return ERR_PTR(err);
	}
	return rq;
}

void krc_mlx5_receive_destroy(struct krc_mlx5_receive *rq)
{
	krc_mlx5_rmp_destroy(rq->hw, &rq->rmp);
	krc_mlx5_cq_destroy(rq->hw, &rq->cq);
	krc_mlx5_receive_free(rq);
}

void krc_mlx5_receive_failed(struct krc_hw *hw, u32 rmpn, unsigned long event)
{
	struct krc_hw_target *target;
	unsigned long flags, i;

	xa_lock_irqsave(&hw->targets, flags);
	xa_for_each(&hw->targets, i, target) {
		if (!target->receive || target->receive->rmp.rmpn != rmpn)
			continue;
		krc_port_err_limited(hw->ibdev, target->port, "RMP 0x%x: event %lu\n", rmpn, event);
		hw->events->receive_fatal(target->receive->owner);
	}
	xa_unlock_irqrestore(&hw->targets, flags);
}

int krc_mlx5_recv_post(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
		       u32 bytes)
{
	struct krc_mlx5_receive *rq = target->receive;
	struct mlx5_wqe_srq_next_seg *next;
	struct mlx5_wqe_data_seg *data;

	if (!rq || !bytes || bytes > target->hw->attr.length_max)
		return -EINVAL;
	if (rq->used == rq->depth)
		return -ENOSPC;
	next = krc_mlx5_ring_entry(&rq->rmp.ring, rq->head);
	data = (void *)(next + 1);
	data->byte_count = cpu_to_be32(bytes);
	data->lkey = cpu_to_be32(lkey);
	data->addr = cpu_to_be64(local_addr);
	rq->cookies[rq->head] = cookie;
	__set_bit(rq->head, rq->busy);
	rq->head = be16_to_cpu(next->next_wqe_index);
	rq->used++;
	rq->posted++;
	return 0;
}

void krc_mlx5_recv_ring(struct krc_hw_target *target)
{
	struct krc_mlx5_receive *rq = target->receive;

	if (!rq)
		return;
	dma_wmb(); /* entries before the doorbell record */
	*rq->rmp.ring.db.db = cpu_to_be32(rq->posted);
}

/* The entry of a completion is free again: put it behind the tail of the list. */
static void krc_mlx5_receive_release(struct krc_mlx5_receive *rq, u16 at)
{
	struct mlx5_wqe_srq_next_seg *last = krc_mlx5_ring_entry(&rq->rmp.ring, rq->tail);

	last->next_wqe_index = cpu_to_be16(at);
	rq->tail = at;
	__clear_bit(at, rq->busy);
	rq->used--;
}

/* Return: whether there was a completion; @wc is filled unless it is of no posted buffer. */
static bool krc_mlx5_recv_one(struct krc_mlx5_receive *rq, struct krc_recv_wc *wc, int *ret_n)
{
	struct mlx5_cqe64 *cqe = krc_mlx5_cq_next(&rq->cq);
	u16 at;

	if (!cqe)
		return false;
	at = be16_to_cpu(cqe->wqe_counter);
	if (unlikely(at > rq->mask || !test_bit(at, rq->busy))) {
		krc_port_err_limited(rq->hw->ibdev, rq->port,
				     "RMP 0x%x: completion of entry %u, which is free\n",
				     rq->rmp.rmpn, at);
		return true;
	}
	krc_mlx5_recv_fault(cqe, wc);
	wc->cookie = rq->cookies[at];
	krc_mlx5_receive_release(rq, at);
	(*ret_n)++;
	return true;
}

int krc_mlx5_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max)
{
	struct krc_mlx5_receive *rq = target->receive;
	int n = 0;

	if (!rq || max <= 0 || !krc_mlx5_recv_one(rq, wc, &n))
		return 0;
	while (n < max && krc_mlx5_recv_one(rq, &wc[n], &n))
		;
	mlx5_cq_set_ci(&rq->cq.mcq);
	return n;
}

void krc_mlx5_recv_arm(struct krc_hw_target *target)
{
	struct krc_mlx5_receive *rq = target->receive;

	if (rq)
		mlx5_cq_arm(&rq->cq.mcq, MLX5_CQ_DB_REQ_NOT, rq->hw->uar->map,
			    rq->cq.mcq.cons_index);
}
