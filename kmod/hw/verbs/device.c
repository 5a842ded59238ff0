// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: which devices are driven by the kernel's verbs, opening and closing them, and what they say
 * of themselves.
 *
 * A driver is in the table when its source was read for what is relied on here:
 *   - queue pairs of the kernel: RC, and UD for the hand-shake; a shared receive queue;
 *   - fast registration of as many pages as the table says (key.c).
 * rxe (6.1 and 6.12): both. It names 512 pages for fast registration, but its lists are as long as
 * asked for (rxe_mr_init_fast()); those of 6.12 are one allocation of 16 bytes a page, which is
 * 4 MiB at most.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "base/log.h"
#include "hw/verbs/verbs.h"

static bool krc_verbs_wanted;
module_param_named(lanes, krc_verbs_wanted, bool, 0444);
MODULE_PARM_DESC(lanes, "Use NICs without DC, by reliable connections that programs share");

static const struct krc_verbs_driver krc_verbs_drivers[] = {
	{ .id = RDMA_DRIVER_RXE, .key_pages = 1U << 18 },
};

static const struct krc_verbs_driver *krc_verbs_driver_of(const struct ib_device *ibdev)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(krc_verbs_drivers); i++)
		if (ibdev->ops.driver_id == krc_verbs_drivers[i].id)
			return &krc_verbs_drivers[i];
	return NULL;
}

bool krc_verbs_is_port(const struct krc_verbs *v, u32 port)
{
	return rdma_is_port_valid(v->ibdev, port) && port <= KRC_VERBS_PORTS_MAX;
}

static bool krc_verbs_match(struct ib_device *ibdev)
{
	return krc_verbs_wanted; /* open() says which driver it does not know */
}

static const char *krc_verbs_obstacle(struct ib_device *ibdev)
{
	const struct ib_device_attr *attr = &ibdev->attrs;

	if (!krc_verbs_driver_of(ibdev))
		return "no lanes: krcore does not know the driver of this NIC";
	if (!(attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "no lanes: the device has no fast registration of memory";
	if (attr->max_srq_wr < 1 || attr->max_qp_wr < KRC_VERBS_SEND_DEPTH)
		return "no lanes: the queues of the device are too short";
	return NULL;
}

static void krc_verbs_attributes(struct krc_verbs *v)
{
	const struct ib_device_attr *attr = &v->ibdev->attrs;
	struct ib_port_attr port = {};
	u32 length = KRP_LENGTH_MAX;

	if (!ib_query_port(v->ibdev, 1, &port) && port.max_msg_sz)
		length = min_t(u32, length, port.max_msg_sz);
	v->roce = rdma_port_get_link_layer(v->ibdev, 1) == IB_LINK_LAYER_ETHERNET;
	v->attr = (struct krc_hw_attr){
		.initiator_depth_max = KRC_VERBS_DEPTH_MAX,
		.length_max = length,
		.recv_depth_max = min_t(u32, attr->max_srq_wr, KRC_VERBS_RECV_DEPTH_MAX),
		.max_rd_atomic = clamp_t(u32, min(attr->max_qp_rd_atom, attr->max_qp_init_rd_atom),
					 1, KRC_VERBS_RD_ATOMIC_MAX),
		.atomics = attr->atomic_cap != IB_ATOMIC_NONE,
		.ports = min_t(u32, v->ibdev->phys_port_cnt, KRC_VERBS_PORTS_MAX),
	};
}

static void krc_verbs_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct krc_verbs *v = container_of(handler, struct krc_verbs, handler);

	if (event->event != IB_EVENT_DEVICE_FATAL)
		return;
	WRITE_ONCE(v->fatal, true);
	v->events->device_fatal(v->owner);
}

static void krc_verbs_close(struct krc_hw *hw)
{
	struct krc_verbs *v = krc_verbs_of(hw);

	ib_unregister_event_handler(&v->handler);
	krc_verbs_keys_fini(v);
	ib_dealloc_pd(v->pd);
	kfree(v);
}

/* Make what all targets, initiators and keys share. */
static int krc_verbs_objects_create(struct krc_verbs *v)
{
	int err;

	v->pd = ib_alloc_pd(v->ibdev, 0);
	if (IS_ERR(v->pd))
		return PTR_ERR(v->pd);
	err = krc_verbs_keys_init(v);
	if (err) {
		krc_verbs_keys_fini(v);
		ib_dealloc_pd(v->pd);
	}
	return err;
}

static struct krc_hw *krc_verbs_open(struct ib_device *ibdev, const struct krc_hw_events *events,
				     void *device_owner, struct krc_hw_attr *ret_attr, char *reason)
{
	const char *what = krc_verbs_obstacle(ibdev);
	struct krc_verbs *v;
	int err;

	if (what) {
		strscpy(reason, what, KRC_REASON_BYTES);
		return ERR_PTR(-EOPNOTSUPP);
	}
	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v) {
		strscpy(reason, "out of memory", KRC_REASON_BYTES);
		return ERR_PTR(-ENOMEM);
	}
	v->ibdev = ibdev;
	v->events = events;
	v->owner = device_owner;
	v->driver = krc_verbs_driver_of(ibdev);
	krc_verbs_attributes(v);
	err = krc_verbs_objects_create(v);
	if (err) {
		snprintf(reason, KRC_REASON_BYTES, "cannot make a protection domain (error %d)",
			 err);
		kfree(v);
		return ERR_PTR(err);
	}
	INIT_IB_EVENT_HANDLER(&v->handler, ibdev, krc_verbs_on_event);
	ib_register_event_handler(&v->handler);
	*ret_attr = v->attr;
	return (struct krc_hw *)v;
}

/* NULL: DMA addresses are addresses of the kernel (ib_uses_virt_dma()); see hw/dma.h. */
static struct device *krc_verbs_dma_device(struct krc_hw *hw)
{
	struct krc_verbs *v = krc_verbs_of(hw);

	return v->ibdev->dma_device;
}

static bool krc_verbs_is_down(const struct krc_hw *hw)
{
	struct krc_verbs *v = krc_verbs_of(hw);

	return READ_ONCE(v->fatal);
}

const struct krc_provider_ops krc_verbs_ops = {
	.name = "verbs-rc",
	.match = krc_verbs_match,
	.open = krc_verbs_open,
	.close = krc_verbs_close,
	.port_setup = krc_verbs_port_setup,
	.port_settled = krc_verbs_port_settled,
	.target_create = krc_verbs_target_create,
	.target_destroy = krc_verbs_target_destroy,
	.lanes_start = krc_verbs_lanes_start,
	.lanes_stop = krc_verbs_lanes_stop,
	.lanes_stats = krc_verbs_lanes_stats,
	.recv_post = krc_verbs_recv_post,
	.recv_ring = krc_verbs_recv_ring,
	.recv_poll = krc_verbs_recv_poll,
	.recv_arm = krc_verbs_recv_arm,
	.initiator_create = krc_verbs_initiator_create,
	.initiator_destroy = krc_verbs_initiator_destroy,
	.initiator_halt = krc_verbs_initiator_halt,
	.initiator_began = krc_verbs_initiator_began,
	.initiator_restart = krc_verbs_initiator_restart,
	.own_address = krc_verbs_own_address,
	.address = krc_verbs_address,
	.same_target = krc_verbs_same_target,
	.post = krc_verbs_post,
	.ring = krc_verbs_ring,
	.poll = krc_verbs_poll,
	.arm = krc_verbs_arm,
	.key_umem = krc_verbs_key_umem,
	.key_dma = krc_verbs_key_dma,
	.key_pages = krc_verbs_key_pages,
	.key_destroy = krc_verbs_key_destroy,
	.dma_device = krc_verbs_dma_device,
	.is_down = krc_verbs_is_down,
};
