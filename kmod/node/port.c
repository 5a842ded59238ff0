// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: bringing one port up and taking it down.
 *
 * A port dies in this order: krc_port_enter() fails from now on; the MetaServer client
 * withdraws its records and wakes its callers; the directory offers no region any more; the
 * pool completes all requests and wakes its waiters; connections of programs fail; after the
 * last user has left, cached idle peers are freed; after the last lease of a region is over, the
 * target is destroyed, then the keys and the other parts. So no request of a peer that obeys its
 * leases meets a dead key.
 * Locking: krc_node's lock at creation, none at the end; see node/port.h for its users.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/log2.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "mem/directory.h"
#include "message/connect.h"
#include "message/message.h"
#include "meta/cache.h"
#include "meta/auth.h"
#include "meta/meta.h"
#include "meta/record.h"
#include "meta/servers.h"
#include "node/port.h"
#include "pool/pool.h"

#define KRC_PORT_LOOKUP_MS 1000 /* for the record of a node that opens a connection */
#define KRC_PORT_INITIATORS_MIN 4
#define KRC_PORT_INITIATORS_MAX 16

static void (*krc_port_ended)(struct krc_rail *rail);

void krc_port_on_end(void (*fn)(struct krc_rail *rail))
{
	krc_port_ended = fn;
}

static void krc_port_release(struct krc_rail *rail)
{
	struct krc_port *port = container_of(rail, struct krc_port, rail);

	if (port->mrdir)
		krc_mrdir_put(port->mrdir);
	krc_rail_fini(rail);
	kfree(port);
}

/*
 * Whether a network device is a port's own, or the bond that it is in. A device without hardware, such
 * as soft RoCE, has no parent, and what is stacked on a port has none either: it says which one is its
 * own.
 */
static bool krc_port_owns(const struct ib_device *ibdev, u32 num, const struct net_device *ndev)
{
	const struct device *parent = ibdev->dev.parent;

	return ndev == rcu_access_pointer(ibdev->port_data[num].netdev) ||
	       (parent && ndev->dev.parent == parent) || netif_is_lag_master(ndev);
}

/*
 * Rank the network device that owns a RoCE GID. 0: it is in another network namespace, where the
 * address may move or vanish without the node, or there is none; 1: it is stacked on the port,
 * such as a VLAN or a macvlan; 2: it is the port's own, or the bond that it is in.
 */
static u32 krc_port_gid_nearness(const struct ib_device *ibdev, u32 num,
				 const struct ib_gid_attr *attr)
{
	const struct net_device *ndev;
	u32 nearness = 0;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	if (ndev && net_eq(dev_net(ndev), &init_net))
		nearness = krc_port_owns(ibdev, num, ndev) ? 2 : 1;
	rcu_read_unlock();
	return nearness;
}

/* Rank a GID as the address of a port: higher is better; 0: unusable. */
static u32 krc_port_gid_rank(const struct ib_device *ibdev, u32 num, const struct ib_gid_attr *attr,
			     bool ethernet)
{
	const struct in6_addr *addr = (const struct in6_addr *)attr->gid.raw;
	u32 nearness;

	if (!ethernet)
		return 1;
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP ||
	    rdma_link_local_addr((struct in6_addr *)addr))
		return 0;
	nearness = krc_port_gid_nearness(ibdev, num, attr);
	return nearness ? 2 * nearness + ipv6_addr_v4mapped(addr) : 0;
}

const struct ib_gid_attr *krc_port_pick_gid(struct ib_device *ibdev, u32 num,
					    const struct ib_gid_attr *keep)
{
	bool ethernet = rdma_port_get_link_layer(ibdev, num) == IB_LINK_LAYER_ETHERNET;
	const struct ib_gid_attr *best = NULL, *attr;
	u32 best_rank = 0, rank;
	int i;

	for (i = 0; i < ibdev->port_data[num].immutable.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(ibdev, num, i);
		if (IS_ERR(attr))
			continue;
		rank = krc_port_gid_rank(ibdev, num, attr, ethernet);
		if (krc_port_gid_wins(rank, best_rank, attr == keep)) {
			best_rank = rank;
			swap(best, attr);
		}
		if (attr)
			rdma_put_gid_attr(attr);
	}
	return best ?: ERR_PTR(-EADDRNOTAVAIL);
}

static u32 krc_port_initiators(const struct krc_node_conf *conf)
{
	if (conf->pool_initiators)
		return conf->pool_initiators;
	return clamp_t(u32, num_online_cpus(), KRC_PORT_INITIATORS_MIN, KRC_PORT_INITIATORS_MAX);
}

static void krc_port_publish_value(struct krc_port *port)
{
	port->value.generation = cpu_to_le64(port->rail.generation);
	port->value.dct.port = port->rail.num;
}

/* krc_message_records.cached; one in doubt is to be READ again. */
static int krc_port_cached(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_port *port = arg;

	return krc_cache_get(port->cache, key, ret_value) ? -ENOENT : 0;
}

static int krc_port_lookup(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_port *port = arg;

	/* the port is a payer of its own: it is asked for what peers have sent */
	return krc_meta_lookup(port->meta, port, key, KRC_PORT_LOOKUP_MS, ret_value, NULL, NULL);
}

/* Make the target, with receives and messages if the device can. Return: 0 or an errno. */
static int krc_port_target(struct krc_port *port)
{
	const struct krc_message_records records = { .cached = krc_port_cached,
						     .lookup = krc_port_lookup,
						     .arg = port };
	struct krc_hw_receive receive = { .depth = krc_messages_depth(&port->rail) };
	struct krc_rail *rail = &port->rail;
	struct krc_messages *messages = NULL;

	if (receive.depth) {
		messages = krc_messages_create(rail, &records);
		if (IS_ERR(messages))
			return PTR_ERR(messages);
		receive.owner = messages;
	}
	port->target = rail->ops->target_create(rail->hw, rail->num, rail->gid_index, port->dc_key,
						&receive, &port->value);
	if (!IS_ERR(port->target)) {
		port->messages = messages;
		return 0;
	}
	if (messages)
		krc_messages_destroy(messages);
	return PTR_ERR(port->target);
}

/* Destroy the target, and messages, which have been stopped. */
static void krc_port_untarget(struct krc_port *port)
{
	port->rail.ops->target_destroy(port->target);
	if (port->messages)
		krc_messages_destroy(port->messages);
}

static bool krc_port_has_keys(void *arg)
{
	return krc_meta_lane_keys(((struct krc_port *)arg)->meta);
}

static int krc_port_sign(void *arg, const u8 *key_id, struct krp_lane_packet *packet)
{
	return krc_meta_lane_sign(((struct krc_port *)arg)->meta, key_id, packet);
}

static int krc_port_verify(void *arg, const struct krp_lane_packet *packet)
{
	return krc_meta_lane_verify(((struct krc_port *)arg)->meta, packet);
}

/* Make lanes, if the provider does. */
static int krc_port_lanes(struct krc_port *port)
{
	const struct krc_hw_lanes lanes = { .generation = port->rail.generation,
					    .gid = port->rail.gid,
					    .value = port->value,
					    .ack_timeout = port->rail.ack_timeout,
					    .cached = krc_port_cached,
					    .lookup = krc_port_lookup,
					    .has_keys = krc_port_has_keys,
					    .sign = krc_port_sign,
					    .verify = krc_port_verify,
					    .arg = port };

	return port->rail.ops->lanes_start ? port->rail.ops->lanes_start(port->target, &lanes) : 0;
}

/* End lanes: from now on no peer accesses memory by them. Before the MetaServer client ends. */
static void krc_port_unlane(struct krc_port *port)
{
	if (port->rail.ops->lanes_stop)
		port->rail.ops->lanes_stop(port->target);
}

static int krc_port_start(struct krc_port *port)
{
	int err;

	krc_port_publish_value(port);
	err = krc_port_lanes(port);
	if (err)
		return err;
	if (port->messages)
		err = krc_messages_start(port->messages, port->target, port->pool, &port->value);
	return err ?: krc_meta_publish(port->meta, KRP_SERVICE_NODE, &port->value);
}

static void krc_port_stop(struct krc_port *port)
{
	krc_pool_stop(port->pool);
	if (port->messages)
		krc_messages_stop(port->messages);
}

/* Make directory, pool and MetaServer client; what could not be made is NULL. Return: 0 or an errno. */
static int krc_port_parts(struct krc_port *port, const struct krc_node_conf *conf)
{
	struct krc_rail *rail = &port->rail;
	u32 depth = min(conf->pool_depth, rail->attr.initiator_depth_max);
	struct krc_mrdir *mrdir = krc_mrdir_create(rail, &port->value);
	struct krc_pool *pool;
	struct krc_meta *meta;

	if (IS_ERR(mrdir))
		return PTR_ERR(mrdir);
	port->mrdir = mrdir;
	pool = krc_pool_create(rail, krc_port_initiators(conf), depth);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	port->pool = pool;
	meta = krc_meta_create(rail->ibdev, rail->num, &rail->gid, &conf->meta, port->cache);
	if (IS_ERR(meta))
		return PTR_ERR(meta);
	port->meta = meta;
	return 0;
}

/* Destroy what there is of a port, which nobody uses any more, in the order of its end. */
static void krc_port_unbuild(struct krc_port *port)
{
	krc_port_unlane(port);
	if (port->meta)
		krc_meta_destroy(port->meta);
	krc_port_untarget(port);
	if (port->mrdir)
		krc_mrdir_end(port->mrdir);
	if (port->pool)
		krc_pool_destroy(port->pool);
}

static int krc_port_build(struct krc_port *port, const struct krc_node_conf *conf)
{
	struct krc_rail *rail = &port->rail;
	int err;

	err = rail->ops->port_setup(rail->hw, rail->num, &conf->fabric);
	if (err)
		return err;
	err = krc_port_target(port);
	if (err)
		return err;
	err = krc_port_parts(port, conf);
	if (!err)
		err = krc_port_start(port);
	if (!err)
		return 0;
	if (port->pool)
		krc_port_stop(port);
	krc_port_unbuild(port);
	return err;
}

struct krc_port *krc_port_create(struct ib_device *ibdev, const struct krc_provider_ops *ops,
				 struct krc_hw *hw, const struct krc_hw_attr *attr, u32 num,
				 const struct ib_gid_attr *sgid_attr,
				 const struct krc_node_conf *conf)
{
	struct krc_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int err;

	if (!port)
		return ERR_PTR(-ENOMEM);
	err = krc_rail_init(&port->rail, krc_port_release);
	if (err) {
		kfree(port);
		return ERR_PTR(err);
	}
	port->rail.ibdev = ibdev;
	strscpy(port->rail.device, dev_name(&ibdev->dev), sizeof(port->rail.device));
	port->rail.ops = ops;
	port->rail.hw = hw;
	port->rail.attr = *attr;
	port->rail.num = num;
	port->rail.segment_max = ib_dma_max_seg_size(ibdev);
	port->sgid_attr = sgid_attr;
	port->rail.gid = sgid_attr->gid;
	port->rail.gid_index = sgid_attr->index;
	port->dc_key = get_random_u64();
	port->cache = krc_node_cache();
	port->rail.generation = conf->meta.generation;
	port->rail.ack_timeout = conf->ack_timeout;
	port->rail.margin_ms = conf->margin_ms;
	err = krc_port_build(port, conf);
	if (err) {
		krc_port_put(port);
		return ERR_PTR(err);
	}
	rdma_hold_gid_attr(sgid_attr);
	return port;
}

void krc_port_kill(struct krc_port *port, struct krp_list *left)
{
	krc_rail_kill(&port->rail);
	krc_meta_stop(port->meta);
	krc_meta_take_orphans(port->meta, left);
	krc_mrdir_retire(port->mrdir);
	krc_port_stop(port);
	krc_rail_wait_idle(&port->rail);
	if (krc_port_ended)
		krc_port_ended(&port->rail);
	krc_mrdir_wait(port->mrdir);
	krc_port_unlane(port);
	krc_meta_destroy(port->meta);
	krc_port_untarget(port);
	krc_mrdir_end(port->mrdir);
	krc_pool_destroy(port->pool);
	rdma_put_gid_attr(port->sgid_attr);
	krc_port_put(port);
}

/* ---- messages */

int krc_port_messages_possible(struct krc_port *port)
{
	int err;

	if (!krc_port_enter(port))
		return -ENODEV;
	err = port->messages ? 0 : -EOPNOTSUPP;
	krc_port_exit(port);
	return err;
}

void krc_port_disbelieve(struct krc_port *port, struct krc_stream *stream, int err)
{
	struct krc_stream_peer peer;
	struct krp_key key = {};

	if (err != -ESTALE && err != -ETIMEDOUT && err != -ECONNREFUSED)
		return;
	krc_stream_peer(stream, &peer);
	memcpy(key.gid, peer.gid, sizeof(key.gid));
	key.service = cpu_to_le16(peer.service);
	krc_cache_forget(port->cache, &key, peer.generation);
}
