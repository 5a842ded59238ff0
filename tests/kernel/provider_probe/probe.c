// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the provider's test module: it opens the first device that the provider
 * knows, makes a target and an initiator, and says in "info" where they are.
 *
 * "info" of another node written to "go" runs the tests (probe_tests.c), "ADDRESS
 * BYTES" written to "umem" those of the writer's own memory, "loop" READs until the
 * device goes; "result" has the outcome.
 * Locking: the kernel's parameter lock serialises all of it but removal of the
 * device, which waits for the lock of this file.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/dma-mapping.h>
#include <rdma/ib_cache.h>

#include "probe.h"

#define PROBE_DC_KEY 0x1234567890abcdefULL

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "GID table index");
static ushort pkey = 0xffff;
module_param(pkey, ushort, 0444);
MODULE_PARM_DESC(pkey, "partition (InfiniBand)");

static struct probe *probe;
static DEFINE_MUTEX(probe_lock);
static char probe_reason[KRC_REASON_BYTES] = "no device";
static bool probe_stop;

/* ---- upcalls */

static void probe_completion(void *owner)
{
	struct probe *p = owner;

	atomic_inc(&p->upcalls);
	complete(&p->comp);
}

static void probe_fatal(void *owner)
{
	struct probe *p = owner;

	atomic_inc(&p->fatal);
	pr_warn("fatal\n");
}

static void probe_received(void *owner)
{
	struct probe *p = owner;

	atomic_inc(&p->receipts);
	mod_delayed_work(system_wq, &p->receive, 0);
}

static const struct krc_hw_events probe_events = {
	.completion = probe_completion,
	.initiator_fatal = probe_fatal,
	.received = probe_received,
	.receive_fatal = probe_fatal,
	.device_fatal = probe_fatal,
};

/* ---- parameters */

static int probe_info_get(char *buf, const struct kernel_param *kp)
{
	union ib_gid gid = {};
	int n = 0;

	mutex_lock(&probe_lock);
	if (!probe) {
		n = sysfs_emit(buf, "%s\n", probe_reason);
	} else {
		rdma_query_gid(probe->ibdev, 1, gid_index, &gid);
		n = sysfs_emit(buf, "%*phN %*phN %llx %x %x\n", (int)sizeof(probe->value),
			       &probe->value, 16, gid.raw, (u64)probe->dma, probe->key.rkey,
			       probe->ro_key.rkey);
	}
	mutex_unlock(&probe_lock);
	return n;
}

static int probe_result_get(char *buf, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&probe_lock);
	n = sysfs_emit(buf, "%s\n", probe ? probe->result : probe_reason);
	mutex_unlock(&probe_lock);
	return n;
}

static int probe_go_set(const char *val, const struct kernel_param *kp)
{
	char value[2 * sizeof(struct krp_value) + 1], gid[33];
	struct probe_peer peer = {};

	if (sscanf(val, "%112s %32s %llx %x %x", value, gid, &peer.addr, &peer.rkey,
		   &peer.ro_rkey) != 5 ||
	    hex2bin((u8 *)&peer.value, value, sizeof(peer.value)) ||
	    hex2bin(peer.gid.raw, gid, sizeof(peer.gid)))
		return -EINVAL;
	mutex_lock(&probe_lock);
	if (probe) {
		probe->peer = peer;
		probe_run(probe);
	}
	mutex_unlock(&probe_lock);
	return 0;
}

static int probe_umem_set(const char *val, const struct kernel_param *kp)
{
	u64 addr, bytes;
	u32 pages;

	if (sscanf(val, "%llu %llu %u", &addr, &bytes, &pages) != 3)
		return -EINVAL;
	mutex_lock(&probe_lock);
	if (probe)
		probe_umem(probe, addr, bytes, pages);
	mutex_unlock(&probe_lock);
	return 0;
}

/* traffic until something fails; then the way back, if the device lives */
static int probe_loop_set(const char *val, const struct kernel_param *kp)
{
	mutex_lock(&probe_lock);
	if (probe) {
		atomic_set(&probe->fatal, 0);
		probe_loop(probe, &probe_stop);
		atomic_set(&probe->fatal, 0);
	}
	mutex_unlock(&probe_lock);
	return 0;
}

static const struct kernel_param_ops probe_info_ops = { .get = probe_info_get };
static const struct kernel_param_ops probe_result_ops = { .get = probe_result_get };
static const struct kernel_param_ops probe_go_ops = { .set = probe_go_set };
static const struct kernel_param_ops probe_umem_ops = { .set = probe_umem_set };
static const struct kernel_param_ops probe_loop_ops = { .set = probe_loop_set };
module_param_cb(info, &probe_info_ops, NULL, 0444);
module_param_cb(result, &probe_result_ops, NULL, 0444);
module_param_cb(go, &probe_go_ops, NULL, 0200);
module_param_cb(umem, &probe_umem_ops, NULL, 0200);
module_param_cb(loop, &probe_loop_ops, NULL, 0200);

/* ---- life */

static void probe_close(struct probe *p)
{
	if (!IS_ERR_OR_NULL(p->ini))
		p->ops->initiator_destroy(p->ini);
	WRITE_ONCE(p->closing, true);
	cancel_delayed_work_sync(&p->receive);
	if (!IS_ERR_OR_NULL(p->target))
		p->ops->target_destroy(p->target); /* no upcall starts it again after this */
	cancel_delayed_work_sync(&p->receive);
	if (p->recv_key.lkey)
		p->ops->key_destroy(p->hw, &p->recv_key);
	if (p->recv)
		dma_free_coherent(p->ops->dma_device(p->hw), PROBE_BUFFERS * PROBE_MESSAGE, p->recv,
				  p->recv_dma);
	if (p->ro_key.lkey)
		p->ops->key_destroy(p->hw, &p->ro_key);
	if (p->key.lkey)
		p->ops->key_destroy(p->hw, &p->key);
	if (p->buf)
		dma_free_coherent(p->ops->dma_device(p->hw), PROBE_BYTES, p->buf, p->dma);
	p->ops->close(p->hw);
}

/* memory for messages; the target is made for as many as it has room for */
static int probe_buffers(struct probe *p)
{
	size_t bytes = PROBE_BUFFERS * PROBE_MESSAGE;

	bitmap_fill(p->free, PROBE_BUFFERS);
	p->recv = dma_alloc_coherent(p->ops->dma_device(p->hw), bytes, &p->recv_dma, GFP_KERNEL);
	if (!p->recv)
		return -ENOMEM;
	return p->ops->key_dma(p->hw, p->recv_dma, bytes, KRP_ACCESS_LOCAL_WRITE, &p->recv_key);
}

static int probe_objects(struct probe *p)
{
	/* such as a network with a class for RDMA has it; the golden comparison sees it again */
	const struct krc_hw_fabric fabric = { .traffic_class = 106, .pkey = pkey };
	const struct krc_hw_receive receive = { .depth = PROBE_BUFFERS, .owner = p };
	u32 all = p->attr.atomics ? KRP_ACCESS_ALL : KRP_ACCESS_ALL & ~KRP_ACCESS_REMOTE_ATOMIC;
	int err;

	p->buf = dma_alloc_coherent(p->ops->dma_device(p->hw), PROBE_BYTES, &p->dma, GFP_KERNEL);
	if (!p->buf)
		return -ENOMEM;
	err = p->ops->key_dma(p->hw, p->dma, PROBE_BYTES, all, &p->key);
	if (err)
		return err;
	err = p->ops->key_dma(p->hw, p->dma, PROBE_BYTES, KRP_ACCESS_REMOTE_READ, &p->ro_key);
	if (err)
		return err;
	err = probe_buffers(p);
	if (err)
		return err;
	p->value.generation = cpu_to_le64(1);
	err = p->ops->port_setup(p->hw, 1, &fabric);
	if (err)
		return err;
	p->target =
		p->ops->target_create(p->hw, 1, p->gid_index, PROBE_DC_KEY, &receive, &p->value);
	if (IS_ERR(p->target))
		return PTR_ERR(p->target);
	mod_delayed_work(system_wq, &p->receive, 0);
	p->ini = probe_initiator(p, 1, PROBE_DEPTH, 0);
	return PTR_ERR_OR_ZERO(p->ini);
}

static int probe_add(struct ib_device *ibdev)
{
	struct probe *p;
	int err;

	if (probe || !krc_mlx5_ops.match(ibdev))
		return -EOPNOTSUPP;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	p->ops = &krc_mlx5_ops;
	p->ibdev = ibdev;
	p->gid_index = gid_index;
	init_completion(&p->comp);
	INIT_DELAYED_WORK(&p->receive, probe_receive);
	strscpy(p->result, "not run", sizeof(p->result));
	p->hw = p->ops->open(ibdev, &probe_events, p, &p->attr, probe_reason);
	if (IS_ERR(p->hw)) {
		err = PTR_ERR(p->hw);
		pr_warn("%s: %s\n", dev_name(&ibdev->dev), probe_reason);
		kfree(p);
		return err;
	}
	pr_info("depth %u length %u rd_atomic %u atomics %d ports %u\n",
		p->attr.initiator_depth_max, p->attr.length_max, p->attr.max_rd_atomic,
		p->attr.atomics, p->attr.ports);
	err = probe_objects(p);
	if (err) {
		pr_err("cannot make objects (%d)\n", err);
		probe_close(p);
		kfree(p);
		return err;
	}
	mutex_lock(&probe_lock);
	probe = p;
	mutex_unlock(&probe_lock);
	return 0;
}

static void probe_remove(struct ib_device *ibdev, void *data)
{
	struct probe *p;

	WRITE_ONCE(probe_stop, true);
	mutex_lock(&probe_lock);
	p = probe && probe->ibdev == ibdev ? probe : NULL;
	if (p) {
		probe = NULL;
		strscpy(probe_reason, "removed", sizeof(probe_reason));
	}
	mutex_unlock(&probe_lock);
	WRITE_ONCE(probe_stop, false);
	if (!p)
		return;
	probe_close(p);
	kfree(p);
}

static struct ib_client probe_client = {
	.name = "krc_provider_probe",
	.add = probe_add,
	.remove = probe_remove,
};

static int __init probe_init(void)
{
	return ib_register_client(&probe_client);
}

static void __exit probe_exit(void)
{
	ib_unregister_client(&probe_client);
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("Test of a krcore provider");
MODULE_LICENSE("GPL");
