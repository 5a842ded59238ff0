/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the node: its configuration, its devices and ports, and their lives.
 *
 * A port that can be used has a target (published under its GID), a pool of
 * initiators, a memory-region directory and a MetaServer client. Ports come with
 * ib_client.add or with `node up`, go with ib_client.remove or `node down`, and are
 * made anew when their GID, LID or MAC changes or their MTU becomes smaller.
 *
 * Lifetime: struct krc_port is counted (krc_port_get/put); what it points to lives
 * only while the port is alive. Whoever uses pool, mrdir, meta, hw or the address of a
 * port does so between krc_port_enter() and krc_port_exit(), which are short or end
 * soon after the port has begun to die (krc_port.dying is set, then waiters of the
 * pool and of the MetaServer client are woken with an error).
 * Locking: krc_node.lock (mutex) serialises configuration and devices; it is never
 * taken in the data path, nor by calls of programs.
 */
#ifndef KRC_NODE_H
#define KRC_NODE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/percpu-refcount.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "meta/meta.h"
#include "hw/provider.h"

struct krc_cache;
struct krc_mrdir;
struct krc_pool;

/**
 * struct krc_node_conf - What `krcore-metactl node up` brings, as a whole.
 * @meta: MetaServers, identity, key.
 * @pool_initiators: initiators of a port; 0 takes one a CPU, 4 to 16.
 * @pool_depth: requests of an initiator.
 * @ack_timeout: of initiators: they wait 4.096 us * 2^@ack_timeout for an answer.
 * @margin_ms: how long the key of a region outlives the leases of peers.
 * @fabric: what the network wants of packets.
 * @cache_entries: bound of the metadata cache.
 * @queues_per_user: limit.
 * @requests_per_user: limit.
 * @mrs_per_user: limit.
 * @device: use only this RDMA device; empty means all.
 */
struct krc_node_conf {
	struct krc_meta_conf meta;
	u32 pool_initiators;
	u32 pool_depth;
	u32 ack_timeout;
	u32 margin_ms;
	struct krc_hw_fabric fabric;
	u32 cache_entries;
	u32 queues_per_user;
	u32 requests_per_user;
	u32 mrs_per_user;
	char device[IB_DEVICE_NAME_MAX];
};

/**
 * struct krc_port - One RDMA port of the node.
 * @ref: memory.
 * @users: krc_port_enter(); killed when the port dies.
 * @idle: completed when the last of them has left.
 * @ibdev: device.
 * @ops: provider.
 * @hw: open device.
 * @attr: what it can do.
 * @num: port number of the device, from 1.
 * @segment_max: most bytes in a row that the device takes as one.
 * @sgid_attr: entry of the device's table that the GID is in, counted: as long as targets and
 *	initiators name its index, nobody else's address gets it.
 * @gid: published GID.
 * @gid_index: its index.
 * @dc_key: secret of the target, random.
 * @value: the record that is published for KRP_SERVICE_NODE.
 * @target: DC target.
 * @pool: initiators.
 * @mrdir: memory regions open to peers.
 * @meta: MetaServer client.
 * @generation: boot generation it was made under.
 * @ack_timeout: as in struct krc_node_conf.
 * @margin_ms: as there.
 */
struct krc_port {
	struct kref ref;
	struct percpu_ref users;
	struct completion idle;
	struct ib_device *ibdev;
	const struct krc_provider_ops *ops;
	struct krc_hw *hw;
	struct krc_hw_attr attr;
	u32 num;
	unsigned int segment_max;
	const struct ib_gid_attr *sgid_attr;
	union ib_gid gid;
	u16 gid_index;
	u64 dc_key;
	struct krp_value value;
	struct krc_hw_target *target;
	struct krc_pool *pool;
	struct krc_mrdir *mrdir;
	struct krc_meta *meta;
	u64 generation;
	u32 ack_timeout;
	u32 margin_ms;
};

/**
 * enum krc_port_state - For people: how a port is.
 * @KRC_PORT_UNUSABLE: not open; the reason says why.
 * @KRC_PORT_DOWN: open, but has no GID, no link or no target.
 * @KRC_PORT_UP: target published, connections work.
 */
enum krc_port_state {
	KRC_PORT_UNUSABLE,
	KRC_PORT_DOWN,
	KRC_PORT_UP,
};

/**
 * struct krc_port_info - One port, for people.
 * @device: name.
 * @num: port.
 * @state: enum krc_port_state.
 * @reason: why it is not up, else empty.
 * @provider: name of the provider, empty if none.
 * @gid: GID.
 * @value: what is published (dc_key is zeroed here).
 * @initiators: in the pool.
 * @recoveries: initiators recovered so far.
 */
struct krc_port_info {
	char device[IB_DEVICE_NAME_MAX];
	u32 num;
	u8 state;
	char reason[KRC_REASON_BYTES];
	const char *provider;
	union ib_gid gid;
	struct krp_value value;
	u32 initiators;
	u64 recoveries;
};

int krc_node_init(void);
void krc_node_exit(void);

/**
 * krc_node_up() - Configure the node, or configure it anew.
 * @conf: configuration; copied.
 *
 * A node that is up keeps its ports and queues if only the MetaServers, the cache or limits
 * changed; other pools or another device end them: queues go to ERROR with -ENODEV.
 * Context: may sleep; waits for ports that end, unless it is killed.
 * Return: 0, -ENOMEM, or what krc_meta_plan() says of a port that refuses: nothing has changed.
 */
int krc_node_up(const struct krc_node_conf *conf);

/**
 * krc_node_down() - Withdraw and close all ports.
 *
 * Open queues go to ERROR with -ENODEV. Peers may use what they were told of memory until
 * their lease of it ends. Context: may sleep; waits for that, unless it is killed.
 * Return: 0, or -EALREADY if it is down.
 */
int krc_node_down(void);

/* Whether the node is up, and with which generation and name. Context: may sleep. */
bool krc_node_is_up(struct krc_node_conf *ret_conf);

/**
 * krc_node_port_info() - The i-th port, usable or not.
 * @i: from 0.
 * @ret_info: out.
 *
 * Context: may sleep.
 * Return: 0 or -ENOENT.
 */
int krc_node_port_info(u32 i, struct krc_port_info *ret_info);

/**
 * krc_node_meta_info() - Session @server of the i-th port that is up.
 * @i: from 0, as krc_node_port_info() counts.
 * @server: from 0.
 * @ret_info: out.
 *
 * Context: may sleep.
 * Return: 0 or -ENOENT.
 */
int krc_node_meta_info(u32 i, u32 server, struct krc_meta_info *ret_info);

/* The node's metadata cache; lives as long as the module. */
struct krc_cache *krc_node_cache(void);

/**
 * krc_port_first() - The @index-th port that is up and that the calling process may use,
 *	counted from 1.
 * @index: as above; a port whose link has gone down since counts. 0: the first whose link
 *	is up, or else the first.
 *
 * Context: process; waits for nobody.
 * Return: the port with a reference, or NULL.
 */
struct krc_port *krc_port_first(u32 index);

/**
 * krc_port_by_gid() - The port that is up by this GID.
 * @gid: GID, KRP_GID_BYTES.
 *
 * Context: process; waits for nobody.
 * Return: the port with a reference, or NULL.
 */
struct krc_port *krc_port_by_gid(const u8 *gid);

/* How many of them there are. Context: process; waits for nobody. */
u32 krc_port_count(void);

static inline struct krc_port *krc_port_get(struct krc_port *port)
{
	kref_get(&port->ref);
	return port;
}

void krc_port_put(struct krc_port *port);

/* Begin to use what a port points to; false if it is dead or dying. Any context. */
static inline bool krc_port_enter(struct krc_port *port)
{
	return percpu_ref_tryget_live(&port->users);
}

/* End of the use. Any context. */
static inline void krc_port_exit(struct krc_port *port)
{
	percpu_ref_put(&port->users);
}

#endif /* KRC_NODE_H */
