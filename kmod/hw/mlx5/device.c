// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: opening and closing a device, its protection domain, doorbell page and XRC
 * domain, and the events that mlx5_core forwards.
 *
 * mlx5_core_dev is found as the driver data of the ib_device's parent, a PCI function
 * (physical or virtual) that mlx5_core drives. Lifetime: between ib_client.add and
 * ib_client.remove, which comes before the function goes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mlx5/vport.h>
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/log.h"
#include "hw/mlx5/mlx5.h"
#include "krp_ioctl.h"

#define KRC_MLX5_LOG_RMP_EMPTY 4 /* entries of the pool that nothing is posted to */

/* ---- events */

static void krc_mlx5_target_drained(struct krc_hw *hw, u32 dctn)
{
	struct krc_hw_target *target;
	unsigned long flags;

	xa_lock_irqsave(&hw->targets, flags);
	target = xa_load(&hw->targets, dctn);
	if (target)
		complete(&target->drained);
	xa_unlock_irqrestore(&hw->targets, flags);
}

static void krc_mlx5_initiator_failed(struct krc_hw *hw, u32 qpn, unsigned long event)
{
	struct krc_hw_initiator *ini;
	unsigned long flags;

	xa_lock_irqsave(&hw->initiators, flags);
	ini = xa_load(&hw->initiators, qpn);
	if (ini) {
		krc_port_err_limited(hw->ibdev, ini->port, "DCI 0x%x: event %lu\n", qpn, event);
		hw->events->initiator_fatal(ini->owner);
	}
	xa_unlock_irqrestore(&hw->initiators, flags);
}

static int krc_mlx5_on_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct krc_hw *hw = container_of(nb, struct krc_hw, nb);
	struct mlx5_eqe *eqe = data;

	switch (event) {
	case MLX5_EVENT_TYPE_DCT_DRAINED:
		krc_mlx5_target_drained(hw, be32_to_cpu(eqe->data.dct.dctn) & 0xffffff);
		break;
	case MLX5_EVENT_TYPE_WQ_CATAS_ERROR:
	case MLX5_EVENT_TYPE_WQ_INVAL_REQ_ERROR:
	case MLX5_EVENT_TYPE_WQ_ACCESS_ERROR:
		if (eqe->data.qp_srq.type == MLX5_EVENT_QUEUE_TYPE_QP)
			krc_mlx5_initiator_failed(
				hw, be32_to_cpu(eqe->data.qp_srq.qp_srq_n) & 0xffffff, event);
		break;
	case MLX5_EVENT_TYPE_SRQ_CATAS_ERROR:
		krc_mlx5_receive_failed(hw, be32_to_cpu(eqe->data.qp_srq.qp_srq_n) & 0xffffff,
					event);
		break;
	case MLX5_DEV_EVENT_SYS_ERROR:
		hw->events->device_fatal(hw->owner);
		break;
	}
	return NOTIFY_OK;
}

/* ---- capabilities */

static bool krc_mlx5_match(struct ib_device *ibdev)
{
	struct device *parent = ibdev->dev.parent;

	/* the second is a sub-function: matched here, and refused with a reason in open() */
	return parent && parent->driver &&
	       (!strcmp(parent->driver->name, "mlx5_core") ||
		!strncmp(parent->driver->name, "mlx5_core.", strlen("mlx5_core.")));
}

static const char *krc_mlx5_obstacle(struct ib_device *ibdev)
{
	struct mlx5_core_dev *mdev;

	if (!dev_is_pci(ibdev->dev.parent))
		return "no DC: sub-functions are not supported";
	mdev = pci_get_drvdata(to_pci_dev(ibdev->dev.parent));
	if (!mdev || mdev->state != MLX5_DEVICE_STATE_UP)
		return "device is not up";
	if (!MLX5_CAP_GEN(mdev, dct))
		return "no DC: HCA capability dct is 0";
	if (!MLX5_CAP_GEN(mdev, xrc))
		return "no DC: HCA capability xrc is 0";
	if (mdev->issi != 1)
		return "no DC: firmware interface is too old (ISSI is not 1)";
	if (mlx5_lag_is_active(mdev) && !MLX5_CAP_GEN(mdev, lag_dct))
		return "no DC: ports are bonded and HCA capability lag_dct is 0";
	return NULL;
}

/* as get_atomic_mode() of mlx5_ib; 0 without the 8-byte atomics that krcore offers */
static u8 krc_mlx5_atomic_mode(struct mlx5_core_dev *mdev)
{
	u32 ops = MLX5_CAP_ATOMIC(mdev, atomic_operations);
	u32 sizes = MLX5_CAP_ATOMIC(mdev, atomic_size_dc) & 0x1ff;
	u32 both = MLX5_ATOMIC_OPS_CMP_SWAP | MLX5_ATOMIC_OPS_FETCH_ADD;
	u32 extended = MLX5_ATOMIC_OPS_EXTENDED_CMP_SWAP | MLX5_ATOMIC_OPS_EXTENDED_FETCH_ADD;

	/* without that endianness mode the result would not be in the host's byte order */
	if (!MLX5_CAP_GEN(mdev, atomic) || (ops & both) != both || !(sizes & sizeof(u64)) ||
	    !MLX5_CAP_ATOMIC(mdev, atomic_req_8B_endianness_mode))
		return 0;
	if (ops & extended)
		return max_t(u32, __fls(sizes), MLX5_ATOMIC_MODE_8B);
	return MLX5_ATOMIC_MODE_IB_COMP;
}

static void krc_mlx5_attributes(struct krc_hw *hw)
{
	struct mlx5_core_dev *mdev = hw->mdev;
	u32 depth = 1U << MLX5_CAP_GEN(mdev, log_max_qp_sz);

	hw->roce = rdma_port_get_link_layer(hw->ibdev, 1) == IB_LINK_LAYER_ETHERNET;
	hw->atomic_mode = krc_mlx5_atomic_mode(mdev);
	hw->log_rd_atomic = min3((u32)MLX5_CAP_GEN(mdev, log_max_ra_req_dc),
				 (u32)MLX5_CAP_GEN(mdev, log_max_ra_res_dc),
				 (u32)KRC_MLX5_LOG_RD_ATOMIC_MAX);
	hw->attr = (struct krc_hw_attr){
		.initiator_depth_max = min_t(u32, depth / KRC_MLX5_WR_BLOCKS, KRC_MLX5_DEPTH_MAX),
		.length_max = min_t(u32, 1U << MLX5_CAP_GEN(mdev, log_max_msg), KRP_LENGTH_MAX),
		/* an entry of a receive pool stays free; entries are named by 16 bits */
		.recv_depth_max = min_t(u32, (1U << MLX5_CAP_GEN(mdev, log_max_srq_sz)) - 1,
					KRC_MLX5_RECV_DEPTH_MAX),
		.max_rd_atomic = 1U << hw->log_rd_atomic,
		.atomics = hw->atomic_mode,
		.ports = min_t(u32, hw->ibdev->phys_port_cnt, KRC_MLX5_PORTS_MAX),
	};
}

/* ---- objects that all targets and initiators share */

static int krc_mlx5_xrcd_create(struct krc_hw *hw)
{
	u32 in[MLX5_ST_SZ_DW(alloc_xrcd_in)] = {}, out[MLX5_ST_SZ_DW(alloc_xrcd_out)] = {};
	int err;

	MLX5_SET(alloc_xrcd_in, in, opcode, MLX5_CMD_OP_ALLOC_XRCD);
	err = mlx5_cmd_exec(hw->mdev, in, sizeof(in), out, sizeof(out));
	if (!err)
		hw->xrcdn = MLX5_GET(alloc_xrcd_out, out, xrcd);
	return err;
}

static int krc_mlx5_objects_create(struct krc_hw *hw, const char **ret_what)
{
	int err;

	*ret_what = "address handles";
	hw->pd = ib_alloc_pd(hw->ibdev, 0);
	if (IS_ERR(hw->pd))
		return PTR_ERR(hw->pd);
	*ret_what = "doorbell page";
	hw->uar = mlx5_get_uars_page(hw->mdev);
	if (IS_ERR(hw->uar)) {
		err = PTR_ERR(hw->uar);
		goto err_ib_pd;
	}
	*ret_what = "protection domain";
	err = mlx5_core_alloc_pd(hw->mdev, &hw->pdn);
	if (err)
		goto err_uar;
	*ret_what = "XRC domain";
	err = krc_mlx5_xrcd_create(hw);
	if (err)
		goto err_pd;
	*ret_what = "completion queue";
	err = krc_mlx5_cq_create(hw, &hw->rcq, 1, 0);
	if (err)
		goto err_xrcd;
	*ret_what = "receive pool";
	err = krc_mlx5_rmp_create(hw, &hw->rmp, KRC_MLX5_LOG_RMP_EMPTY);
	if (err)
		goto err_cq;
	return 0;

err_cq:
	krc_mlx5_cq_destroy(hw, &hw->rcq);
err_xrcd:
	krc_mlx5_simple(hw, MLX5_CMD_OP_DEALLOC_XRCD, hw->xrcdn);
err_pd:
	mlx5_core_dealloc_pd(hw->mdev, hw->pdn);
err_uar:
	mlx5_put_uars_page(hw->mdev, hw->uar);
err_ib_pd:
	ib_dealloc_pd(hw->pd);
	return err;
}

static void krc_mlx5_free(struct krc_hw *hw)
{
	if (hw->key_wq)
		destroy_workqueue(hw->key_wq);
	krc_rests_fini(&hw->resting);
	kfree(hw);
}

static void krc_mlx5_close(struct krc_hw *hw)
{
	WARN_ON(!xa_empty(&hw->targets) || !xa_empty(&hw->initiators));
	krc_mlx5_rmp_destroy(hw, &hw->rmp);
	krc_mlx5_cq_destroy(hw, &hw->rcq);
	krc_mlx5_simple(hw, MLX5_CMD_OP_DEALLOC_XRCD, hw->xrcdn);
	mlx5_core_dealloc_pd(hw->mdev, hw->pdn);
	mlx5_put_uars_page(hw->mdev, hw->uar);
	ib_dealloc_pd(hw->pd);
	mlx5_notifier_unregister(hw->mdev, &hw->nb);
	xa_destroy(&hw->targets);
	xa_destroy(&hw->initiators);
	krc_mlx5_free(hw);
}

static struct krc_hw *krc_mlx5_open(struct ib_device *ibdev, const struct krc_hw_events *events,
				    void *device_owner, struct krc_hw_attr *ret_attr, char *reason)
{
	const char *what = krc_mlx5_obstacle(ibdev);
	struct krc_hw *hw;
	int err;

	if (what) {
		strscpy(reason, what, KRC_REASON_BYTES);
		return ERR_PTR(-EOPNOTSUPP);
	}
	hw = kzalloc(sizeof(*hw), GFP_KERNEL);
	if (!hw) {
		strscpy(reason, "out of memory", KRC_REASON_BYTES);
		return ERR_PTR(-ENOMEM);
	}
	hw->ibdev = ibdev;
	hw->mdev = pci_get_drvdata(to_pci_dev(ibdev->dev.parent));
	hw->events = events;
	hw->owner = device_owner;
	hw->nb.notifier_call = krc_mlx5_on_event;
	xa_init_flags(&hw->targets, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hw->initiators, XA_FLAGS_LOCK_IRQ);
	krc_rests_init(&hw->resting);
	atomic_set(&hw->key_variant, get_random_u32());
	hw->key_pages_max = KRC_MLX5_KEY_PAGES;
	hw->key_wq = alloc_workqueue("krcore_key", WQ_UNBOUND, KRC_MLX5_KEY_TURNS);
	krc_turns_init(&hw->key_turns, KRC_MLX5_KEY_TURNS, hw->key_wq);
	krc_mlx5_attributes(hw);
	what = "a workqueue";
	err = hw->key_wq ? krc_mlx5_objects_create(hw, &what) : -ENOMEM;
	if (err) {
		snprintf(reason, KRC_REASON_BYTES, "cannot make %s (error %d)", what, err);
		krc_mlx5_free(hw);
		return ERR_PTR(err);
	}
	mlx5_notifier_register(hw->mdev, &hw->nb);
	if (krc_mlx5_is_down(hw)) { /* it may have failed before the notifier was registered */
		krc_mlx5_close(hw);
		strscpy(reason, "device is in an internal error", KRC_REASON_BYTES);
		return ERR_PTR(-EIO);
	}
	*ret_attr = hw->attr;
	return hw;
}

static struct device *krc_mlx5_dma_device(struct krc_hw *hw)
{
	return hw->mdev->device;
}

const struct krc_provider_ops krc_mlx5_ops = {
	.name = "mlx5-dc",
	.match = krc_mlx5_match,
	.open = krc_mlx5_open,
	.close = krc_mlx5_close,
	.port_setup = krc_mlx5_port_setup,
	.port_settled = krc_mlx5_port_settled,
	.target_create = krc_mlx5_target_create,
	.target_destroy = krc_mlx5_target_destroy,
	.recv_post = krc_mlx5_recv_post,
	.recv_ring = krc_mlx5_recv_ring,
	.recv_poll = krc_mlx5_recv_poll,
	.recv_arm = krc_mlx5_recv_arm,
	.initiator_create = krc_mlx5_initiator_create,
	.initiator_destroy = krc_mlx5_initiator_destroy,
	.initiator_halt = krc_mlx5_initiator_halt,
	.initiator_restart = krc_mlx5_initiator_restart,
	.own_address = krc_mlx5_own_address,
	.address = krc_mlx5_address,
	.same_target = krc_mlx5_same_target,
	.post = krc_mlx5_post,
	.post_many = krc_mlx5_post_many,
	.ring = krc_mlx5_ring_doorbell,
	.poll = krc_mlx5_poll,
	.arm = krc_mlx5_arm,
	.key_umem = krc_mlx5_key_umem,
	.key_dma = krc_mlx5_key_dma,
	.key_pages = krc_mlx5_key_pages,
	.key_destroy = krc_mlx5_key_destroy,
	.dma_device = krc_mlx5_dma_device,
	.is_down = krc_mlx5_is_down,
};
