/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the node: its configuration, its devices and ports, and their lives.
 *
 * A port that can be used has a target (published under its GID), a pool of
 * initiators, a memory-region directory and a MetaServer client. Ports come with
 * ib_client.add or with `node up`, go with ib_client.remove or `node down`, and are
 * made anew when their GID, LID or MAC changes or their MTU becomes smaller.
 *
 * Locking: krc_node.lock (mutex) serialises configuration and devices; it is never
 * taken in the data path, nor by calls of programs.
 */
#ifndef KRC_NODE_H
#define KRC_NODE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "hw/provider.h"
#include "meta/meta.h"

struct krc_cache;

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

struct krc_port;

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

#endif /* KRC_NODE_H */
