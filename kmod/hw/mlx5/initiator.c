// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: DC initiators (DCIs): creation, transitions to RTS and back, posting and polling.
 * Values are those of mlx5_ib (create_dci(), __mlx5_ib_modify_qp()).
 *
 * The completion queue has an entry for each request, so it cannot overflow. The last request
 * before a doorbell is signaled, so each unsignaled one has a later completion that stands for
 * it. After a reset the numbers of the send queue start at 0 again; those of the completion
 * queue continue.
 * Locking: none of its own. The caller serialises post, ring, poll and arm of an initiator, and calls
 * none of them while it is halted but not restarted, except poll (hw/provider.h).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/mlx5/mlx5.h"
#include "hw/route.h"

#include <linux/mlx5/doorbell.h> /* needs the headers above */

#define KRC_MLX5_LOG_BLOCK 6
#define KRC_MLX5_LOG_ACK_REQ_FREQ 8
#define KRC_MLX5_RETRIES 7
#define KRC_MLX5_SPORT_BITS 14 /* the other two bits are fixed: RoCE uses 49152 and up */
/*
 * 7 would retry forever and stall the initiator. SENDs meet RNR, whose sender comes again, and what a
 * peer puts off, which counts as unanswered.
 */
#define KRC_MLX5_RNR_RETRIES 6

static int krc_mlx5_dci_command(struct krc_hw_initiator *ini)
{
	u32 out[MLX5_ST_SZ_DW(create_qp_out)] = {};
	struct krc_hw *hw = ini->hw;
	int inlen, err;
	void *qpc;
	u32 *in;

	inlen = MLX5_ST_SZ_BYTES(create_qp_in) +
		MLX5_FLD_SZ_BYTES(create_qp_in, pas[0]) * ini->sq.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	MLX5_SET(create_qp_in, in, opcode, MLX5_CMD_OP_CREATE_QP);
	qpc = MLX5_ADDR_OF(create_qp_in, in, qpc);
	MLX5_SET(qpc, qpc, st, MLX5_QP_ST_DCI);
	MLX5_SET(qpc, qpc, pm_state, MLX5_QP_PM_MIGRATED);
	MLX5_SET(qpc, qpc, pd, hw->pdn);
	MLX5_SET(qpc, qpc, uar_page, ini->bell.page);
	MLX5_SET(qpc, qpc, log_page_size, krc_mlx5_ring_page_shift(&ini->sq));
	MLX5_SET(qpc, qpc, ts_format, mlx5_get_qp_default_ts(hw->mdev));
	MLX5_SET(qpc, qpc, rq_type, MLX5_SRQ_RQ);
	MLX5_SET(qpc, qpc, log_sq_size, ilog2((ini->mask + 1) * KRC_MLX5_WR_BLOCKS));
	/* no streams, so one target at a time: krc_channel_in_doubt() relies on it */
	MLX5_SET(qpc, qpc, log_num_dci_stream_channels, 0);
	MLX5_SET(qpc, qpc, xrcd, hw->xrcdn);
	MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, hw->rmp.rmpn);
	MLX5_SET(qpc, qpc, cqn_snd, ini->cq.mcq.cqn);
	MLX5_SET(qpc, qpc, cqn_rcv, ini->cq.mcq.cqn);
	MLX5_SET64(qpc, qpc, dbr_addr, ini->sq.db.dma);
	if (MLX5_CAP_GEN(hw->mdev, cqe_version) == KRC_MLX5_CQE_V1)
		MLX5_SET(qpc, qpc, user_index, KRC_MLX5_USER_INDEX);
	mlx5_fill_page_frag_array(&ini->sq.buf, MLX5_ADDR_OF(create_qp_in, in, pas));
	err = mlx5_cmd_exec(hw->mdev, in, inlen, out, sizeof(out));
	kvfree(in);
	if (!err)
		ini->qpn = MLX5_GET(create_qp_out, out, qpn);
	return err;
}

/* ---- states */

/* The three transitions have the same layout up to the context. */
static void krc_mlx5_qpc_common(struct krc_hw_initiator *ini, u32 *in, u16 opcode)
{
	void *qpc = MLX5_ADDR_OF(rst2init_qp_in, in, qpc);

	memset(in, 0, MLX5_ST_SZ_BYTES(rst2init_qp_in));
	MLX5_SET(rst2init_qp_in, in, opcode, opcode);
	MLX5_SET(rst2init_qp_in, in, qpn, ini->qpn);
	MLX5_SET(qpc, qpc, st, MLX5_QP_ST_DCI);
	MLX5_SET(qpc, qpc, pm_state, MLX5_QP_PM_MIGRATED);
	MLX5_SET(qpc, qpc, pd, ini->hw->pdn);
	MLX5_SET(qpc, qpc, log_ack_req_freq, KRC_MLX5_LOG_ACK_REQ_FREQ);
}

void krc_mlx5_path_fill(void *path, const struct krc_hw *hw, u32 num, u16 gid_index)
{
	const struct krc_mlx5_port *port = &hw->ports[num];

	MLX5_SET(ads, path, vhca_port_num, num);
	MLX5_SET(ads, path, pkey_index, port->pkey_index);
	if (!hw->roce) {
		MLX5_SET(ads, path, sl, port->fabric.sl);
		return;
	}
	MLX5_SET(ads, path, src_addr_index, gid_index);
	MLX5_SET(ads, path, hop_limit, KRC_MLX5_HOP_LIMIT);
	/* each request has them as well; here, too, as mlx5_ib does it */
	MLX5_SET(ads, path, eth_prio, port->fabric.sl & 7);
	MLX5_SET(ads, path, dscp, port->fabric.traffic_class >> 2);
	MLX5_SET(ads, path, tclass, port->fabric.traffic_class);
}

static void krc_mlx5_qpc_rtr(struct krc_hw_initiator *ini, u32 *in)
{
	void *qpc = MLX5_ADDR_OF(init2rtr_qp_in, in, qpc);

	MLX5_SET(qpc, qpc, mtu, ini->mtu);
	MLX5_SET(qpc, qpc, log_msg_max, MLX5_CAP_GEN(ini->hw->mdev, log_max_msg));
	/* the destination comes with each request; the source is the same for all of them */
	krc_mlx5_path_fill(MLX5_ADDR_OF(qpc, qpc, primary_address_path), ini->hw, ini->port,
			   ini->gid_index);
}

static void krc_mlx5_qpc_rts(struct krc_hw_initiator *ini, u32 *in)
{
	void *qpc = MLX5_ADDR_OF(rtr2rts_qp_in, in, qpc);

	MLX5_SET(qpc, qpc, log_sra_max, ini->hw->log_rd_atomic);
	MLX5_SET(qpc, qpc, retry_count, KRC_MLX5_RETRIES);
	MLX5_SET(qpc, qpc, rnr_retry, KRC_MLX5_RNR_RETRIES);
	MLX5_SET(ads, MLX5_ADDR_OF(qpc, qpc, primary_address_path), ack_timeout, ini->ack_timeout);
}

/* From RESET to RTS. No optional parameters: mlx5_ib's table has no row for DCIs. */
static int krc_mlx5_dci_start(struct krc_hw_initiator *ini)
{
	u32 in[MLX5_ST_SZ_DW(rst2init_qp_in)], out[MLX5_ST_SZ_DW(rst2init_qp_out)];
	void *qpc = MLX5_ADDR_OF(rst2init_qp_in, in, qpc);
	void *path = MLX5_ADDR_OF(qpc, qpc, primary_address_path);
	struct krc_mlx5_port *port = &ini->hw->ports[ini->port];
	struct mlx5_core_dev *mdev = ini->hw->mdev;
	struct ib_port_attr attr;
	int err;
	u8 mtu;

	err = ib_query_port(ini->hw->ibdev, ini->port, &attr);
	if (err)
		return err;
	/* never above the first value: krc_mlx5_address() refused smaller targets by it */
	mtu = krc_route_mtu(&port->fabric, attr.active_mtu);
	ini->mtu = ini->mtu ? min(ini->mtu, mtu) : mtu;
	WRITE_ONCE(port->mtu, ini->mtu);
	krc_mlx5_qpc_common(ini, in, MLX5_CMD_OP_RST2INIT_QP);
	MLX5_SET(ads, path, vhca_port_num, ini->port);
	MLX5_SET(ads, path, pkey_index, port->pkey_index);
	err = mlx5_cmd_exec(mdev, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	krc_mlx5_qpc_common(ini, in, MLX5_CMD_OP_INIT2RTR_QP);
	krc_mlx5_qpc_rtr(ini, in);
	err = mlx5_cmd_exec(mdev, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	krc_mlx5_qpc_common(ini, in, MLX5_CMD_OP_RTR2RTS_QP);
	krc_mlx5_qpc_rts(ini, in);
	return mlx5_cmd_exec(mdev, in, sizeof(in), out, sizeof(out));
}

/* Drop all requests and completions. The queue is in RESET: the device adds none. */
static void krc_mlx5_forget(struct krc_hw_initiator *ini)
{
	while (krc_mlx5_cq_next(&ini->cq))
		;
	mlx5_cq_set_ci(&ini->cq.mcq);
	ini->head = 0;
	ini->tail = 0;
	ini->rung = 0;
	ini->sq.db.db[MLX5_SND_DBR] = 0;
}

int krc_mlx5_initiator_halt(struct krc_hw_initiator *ini)
{
	WRITE_ONCE(ini->ready, false);
	return krc_mlx5_simple(ini->hw, MLX5_CMD_OP_2RST_QP, ini->qpn);
}

int krc_mlx5_initiator_restart(struct krc_hw_initiator *ini)
{
	int err;

	krc_mlx5_forget(ini);
	err = krc_mlx5_dci_start(ini);
	if (err)
		return err;
	WRITE_ONCE(ini->ready, true);
	return 0;
}

/* ---- create and destroy */

static void krc_mlx5_on_completion(struct mlx5_core_cq *mcq, struct mlx5_eqe *eqe)
{
	struct krc_hw_initiator *ini = container_of(mcq, struct krc_hw_initiator, cq.mcq);

	ini->hw->events->completion(ini->owner);
}

/* the completion queue is in error, which only a bug here can cause */
static void krc_mlx5_on_cq_error(struct mlx5_core_cq *mcq, enum mlx5_event event)
{
	struct krc_hw_initiator *ini = container_of(mcq, struct krc_hw_initiator, cq.mcq);

	krc_port_err_limited(ini->hw->ibdev, ini->port, "CQ 0x%x: event %d\n", mcq->cqn, event);
	ini->hw->events->initiator_fatal(ini->owner);
}

static int krc_mlx5_initiator_memory(struct krc_hw_initiator *ini)
{
	u32 log_size = ilog2(ini->mask + 1);
	int err;

	ini->cookies = kvcalloc(ini->mask + 1, sizeof(*ini->cookies), GFP_KERNEL);
	if (!ini->cookies)
		return -ENOMEM;
	err = krc_mlx5_ring_create(ini->hw, &ini->sq, KRC_MLX5_LOG_BLOCK,
				   log_size + ilog2(KRC_MLX5_WR_BLOCKS));
	if (err)
		kvfree(ini->cookies);
	return err;
}

__be16 krc_mlx5_sport(u32 qpn)
{
	return cpu_to_be16(hash_32(qpn, KRC_MLX5_SPORT_BITS));
}

static int krc_mlx5_initiator_objects(struct krc_hw_initiator *ini, u32 vector)
{
	struct krc_hw *hw = ini->hw;
	int err, gone;

	err = krc_mlx5_cq_create(hw, &ini->cq, ilog2(ini->mask + 1), vector);
	if (err)
		return err;
	err = krc_mlx5_dci_command(ini);
	if (err)
		goto err_cq;
	err = krc_mlx5_dci_start(ini);
	if (err)
		goto err_qp;
	err = xa_err(xa_store_irq(&hw->initiators, ini->qpn, ini, GFP_KERNEL));
	if (err)
		goto err_qp;
	if (hw->roce)
		ini->sport = krc_mlx5_sport(ini->qpn);
	ini->ready = true;
	return 0;

err_qp:
	gone = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_QP, ini->qpn);
	/* nothing was sent, so it accesses nothing, unless another rings its page */
	if (!krc_mlx5_released(hw, gone, "DCI", ini->qpn))
		krc_mlx5_bell_leak(&ini->bell);
err_cq:
	krc_mlx5_cq_destroy(hw, &ini->cq);
	return err;
}

struct krc_hw_initiator *krc_mlx5_initiator_create(struct krc_hw *hw, u32 port, u16 gid_index,
						   const struct krc_hw_send *send)
{
	struct krc_hw_initiator *ini;
	int err;

	if (!send->depth || send->depth > hw->attr.initiator_depth_max ||
	    !rdma_is_port_valid(hw->ibdev, port) || port > KRC_MLX5_PORTS_MAX)
		return ERR_PTR(-EINVAL);
	ini = kzalloc(sizeof(*ini), GFP_KERNEL);
	if (!ini)
		return ERR_PTR(-ENOMEM);
	ini->hw = hw;
	ini->owner = send->owner;
	ini->port = port;
	ini->gid_index = gid_index;
	ini->depth = send->depth;
	ini->ack_timeout = send->ack_timeout;
	ini->mask = roundup_pow_of_two(send->depth) - 1;
	ini->cq.mcq.comp = krc_mlx5_on_completion;
	ini->cq.mcq.event = krc_mlx5_on_cq_error;
	err = krc_mlx5_initiator_memory(ini);
	if (err)
		goto err_free;
	krc_mlx5_bell_create(hw, &ini->bell);
	err = krc_mlx5_initiator_objects(ini, send->vector);
	if (err)
		goto err_bell;
	return ini;

err_bell:
	krc_mlx5_bell_destroy(hw, &ini->bell);
	krc_mlx5_ring_destroy(hw, &ini->sq);
	kvfree(ini->cookies);
err_free:
	kfree(ini);
	return ERR_PTR(err);
}

void krc_mlx5_initiator_destroy(struct krc_hw_initiator *ini)
{
	struct krc_hw *hw = ini->hw;
	int err;

	WRITE_ONCE(ini->ready, false);
	xa_erase_irq(&hw->initiators, ini->qpn);
	krc_mlx5_simple(hw, MLX5_CMD_OP_2RST_QP, ini->qpn);
	err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_QP, ini->qpn);
	if (krc_mlx5_released(hw, err, "DCI", ini->qpn)) {
		krc_mlx5_ring_destroy(hw, &ini->sq);
		krc_mlx5_bell_destroy(hw, &ini->bell);
	}
	krc_mlx5_cq_destroy(hw, &ini->cq);
	kvfree(ini->cookies);
	kfree(ini);
}

/* ---- requests; krc_mlx5_post() is in wqe.c, the doorbell in doorbell.c */

static bool krc_mlx5_poll_one(struct krc_hw_initiator *ini, struct krc_wc *wc)
{
	struct mlx5_cqe64 *cqe = krc_mlx5_cq_next(&ini->cq);
	u32 passed;

	if (!cqe)
		return false;
	krc_mlx5_fault(cqe, wc);
	passed = (be16_to_cpu(cqe->wqe_counter) / KRC_MLX5_WR_BLOCKS - ini->tail) & ini->mask;
	if (unlikely(passed >= ini->rung - ini->tail)) {
		krc_port_err_limited(ini->hw->ibdev, ini->port,
				     "DCI 0x%x: completion of block %u, awaited %u\n", ini->qpn,
				     be16_to_cpu(cqe->wqe_counter),
				     (ini->tail & ini->mask) * KRC_MLX5_WR_BLOCKS);
		wc->fault = KRC_FAULT_FATAL;
		passed = 0;
	}
	ini->tail += passed;
	wc->cookie = ini->cookies[ini->tail++ & ini->mask];
	return true;
}

int krc_mlx5_poll(struct krc_hw_initiator *ini, struct krc_wc *wc, int max)
{
	int n = 0;

	while (n < max && ini->tail != ini->rung && krc_mlx5_poll_one(ini, &wc[n]))
		n++;
	if (n)
		mlx5_cq_set_ci(&ini->cq.mcq);
	return n;
}

void krc_mlx5_arm(struct krc_hw_initiator *ini)
{
	mlx5_cq_arm(&ini->cq.mcq, MLX5_CQ_DB_REQ_NOT, ini->hw->uar->map, ini->cq.mcq.cons_index);
}
