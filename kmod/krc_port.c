// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: bringing one port up and taking it down.
 *
 * A port dies in this order: nobody enters any more; the MetaServer client withdraws and
 * its callers are woken; the pool completes all requests and wakes its waiters; when the
 * last user has left, the peers that were kept go, and the parts.
 * Locking: krc_node's lock around both; see krc_node.h for users of a port.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "krc_mr.h"
#include "krc_peer.h"
#include "krc_pool.h"
#include "krc_port.h"

#define KRC_PORT_INITIATORS_MIN 4
#define KRC_PORT_INITIATORS_MAX 16
#define KRC_PORT_REGIONS_MAX 4096
#define KRC_PORT_KILL_WARN_MS 30000

static void krc_port_unused(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct krc_port, users)->idle);
}

static void krc_port_free(struct kref *ref)
{
	struct krc_port *port = container_of(ref, struct krc_port, ref);

	percpu_ref_exit(&port->users);
	kfree(port);
}

void krc_port_put(struct krc_port *port)
{
	kref_put(&port->ref, krc_port_free);
}

int krc_port_pick_gid(struct ib_device *ibdev, u32 num, union ib_gid *ret_gid, u16 *ret_index)
{
	bool ethernet = rdma_port_get_link_layer(ibdev, num) == IB_LINK_LAYER_ETHERNET;
	int best = -1, i;

	for (i = 0; i < ibdev->port_data[num].immutable.gid_tbl_len; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(ibdev, num, i);
		bool usable, ipv4;

		if (IS_ERR(attr))
			continue;
		ipv4 = ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw);
		usable = !ethernet || (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
				       !rdma_link_local_addr((struct in6_addr *)attr->gid.raw));
		if (usable && (best < 0 || ipv4)) {
			best = i;
			*ret_gid = attr->gid;
			*ret_index = i;
		}
		rdma_put_gid_attr(attr);
		if (usable && (ipv4 || !ethernet))
			break;
	}
	return best < 0 ? -EADDRNOTAVAIL : 0;
}

static u32 krc_port_initiators(const struct krc_node_conf *conf)
{
	if (conf->pool_initiators)
		return conf->pool_initiators;
	return clamp_t(u32, num_online_cpus(), KRC_PORT_INITIATORS_MIN, KRC_PORT_INITIATORS_MAX);
}

static void krc_port_publish_value(struct krc_port *port)
{
	struct ib_port_attr attr = {};

	port->value.kind = KRP_KIND_DCT;
	port->value.dct.port = port->num;
	if (!ib_query_port(port->ibdev, port->num, &attr) && attr.active_mtu)
		port->value.dct.mtu = attr.active_mtu;
}

static int krc_port_build(struct krc_port *port, const struct krc_node_conf *conf)
{
	u32 depth = min(conf->pool_depth, port->attr.initiator_depth_max);
	int err;

	port->target = port->ops->target_create(port->hw, port->num, port->gid_index, port->dc_key,
						&port->value);
	if (IS_ERR(port->target))
		return PTR_ERR(port->target);
	port->mrdir = krc_mrdir_create(port, KRC_PORT_REGIONS_MAX, &port->value);
	if (IS_ERR(port->mrdir)) {
		err = PTR_ERR(port->mrdir);
		goto err_target;
	}
	port->pool = krc_pool_create(port, krc_port_initiators(conf), depth);
	if (IS_ERR(port->pool)) {
		err = PTR_ERR(port->pool);
		goto err_mrdir;
	}
	port->meta =
		krc_meta_create(port->ibdev, port->num, &port->gid, &conf->meta, krc_node_cache());
	if (IS_ERR(port->meta)) {
		err = PTR_ERR(port->meta);
		goto err_pool;
	}
	krc_port_publish_value(port);
	err = krc_meta_publish(port->meta, KRP_SERVICE_NODE, &port->value);
	if (err)
		goto err_meta;
	return 0;

err_meta:
	krc_meta_destroy(port->meta);
err_pool:
	krc_pool_stop(port->pool);
	krc_pool_destroy(port->pool);
err_mrdir:
	krc_mrdir_destroy(port->mrdir);
err_target:
	port->ops->target_destroy(port->target);
	return err;
}

struct krc_port *krc_port_create(struct ib_device *ibdev, const struct krc_provider_ops *ops,
				 struct krc_hw *hw, const struct krc_hw_attr *attr, u32 num,
				 const union ib_gid *gid, u16 gid_index,
				 const struct krc_node_conf *conf)
{
	struct krc_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int err;

	if (!port)
		return ERR_PTR(-ENOMEM);
	err = percpu_ref_init(&port->users, krc_port_unused, 0, GFP_KERNEL);
	if (err) {
		kfree(port);
		return ERR_PTR(err);
	}
	kref_init(&port->ref);
	init_completion(&port->idle);
	port->ibdev = ibdev;
	port->ops = ops;
	port->hw = hw;
	port->attr = *attr;
	port->num = num;
	port->gid = *gid;
	port->gid_index = gid_index;
	port->dc_key = get_random_u64();
	port->generation = conf->meta.generation;
	err = krc_port_build(port, conf);
	if (err) {
		krc_port_put(port);
		return ERR_PTR(err);
	}
	return port;
}

static void krc_port_wait_idle(struct krc_port *port)
{
	unsigned long limit = msecs_to_jiffies(KRC_PORT_KILL_WARN_MS);

	while (!wait_for_completion_timeout(&port->idle, limit))
		pr_warn("%s/%u: still in use %u s after its end\n", dev_name(&port->ibdev->dev),
			port->num, KRC_PORT_KILL_WARN_MS / 1000);
}

void krc_port_kill(struct krc_port *port, struct list_head *left)
{
	percpu_ref_kill(&port->users);
	krc_meta_stop(port->meta);
	krc_meta_leave_records(port->meta, left);
	krc_pool_stop(port->pool);
	krc_port_wait_idle(port);
	krc_peers_drop(port);
	krc_meta_destroy(port->meta);
	krc_mrdir_destroy(port->mrdir);
	krc_pool_destroy(port->pool);
	port->ops->target_destroy(port->target);
	krc_port_put(port);
}
