/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the node: its configuration, and the creation and end of its devices and ports.
 *
 * A usable port has a target (published under its GID), a pool of initiators, a
 * memory-region directory and a MetaServer client. Ports are created by ib_client.add or
 * `node up`, end with ib_client.remove or `node down`, and are replaced when their GID, LID
 * or MAC changes or their MTU becomes smaller.
 *
 * Locking: krc_node.lock (mutex) serialises configuration and devices; neither the data path
 * nor a system call of a program takes it.
 */
#ifndef KRC_NODE_H
#define KRC_NODE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "hw/provider.h"
#include "meta/meta.h"

struct krc_cache;

/**
 * struct krc_node_conf - The whole configuration of `krcore-metactl node up`.
 * @meta: MetaServers, identity, key.
 * @pool_initiators: initiators of a port; 0: one for each CPU, but 4 to 16.
 * @pool_depth: depth of an initiator in requests; the hardware's maximum bounds it.
 * @ack_timeout: an initiator waits 4.096 us * 2^@ack_timeout for an answer.
 * @margin_ms: milliseconds for which the key of a region outlives the leases of peers.
 * @fabric: traffic class, service level, MTU and partition of the packets.
 * @cache_entries: capacity of the metadata cache.
 * @queues_per_user: limit of queues.
 * @requests_per_user: limit of outstanding requests.
 * @mrs_per_user: limit of memory regions.
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
 * enum krc_port_state - State of a port, for diagnostics.
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
 * struct krc_port_info - One port, for diagnostics.
 * @device: name of the RDMA device.
 * @num: port number, from 1.
 * @state: enum krc_port_state.
 * @reason: why it is not up, else empty.
 * @provider: name of the provider, empty if none.
 * @gid: GID it is published by; zero if there is none.
 * @value: the published record (dc_key is zeroed here).
 * @initiators: initiators in the pool.
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

/**
 * krc_node_init() - Make the node's cache and register for RDMA devices.
 *
 * Context: module init, may sleep.
 * Return: 0, -ENOMEM, or what ib_register_client() returns; then nothing is left.
 */
int krc_node_init(void);

/**
 * krc_node_exit() - End all ports, wait for them, and give the cache back.
 *
 * Context: module exit, may sleep.
 */
void krc_node_exit(void);

/**
 * krc_node_up() - Configure or reconfigure the node.
 * @conf: configuration; copied.
 *
 * A node that is up keeps its ports and queues if only the MetaServers, the cache or limits
 * changed; any other change ends them: queues go to ERROR with -ENODEV.
 * Context: may sleep; waits for ports that end, unless the caller is killed.
 * Return: 0; -ENOMEM or the error of krc_meta_plan(), and nothing has changed.
 */
int krc_node_up(const struct krc_node_conf *conf);

/**
 * krc_node_down() - Withdraw and close all ports.
 *
 * Open queues go to ERROR with -ENODEV. Peers may access regions until their leases end.
 * Context: may sleep; waits for those leases, unless the caller is killed.
 * Return: 0, or -EALREADY if the node is down.
 */
int krc_node_down(void);

/**
 * krc_node_is_up() - Whether the node is configured.
 * @ret_conf: its configuration if it is, with the keys wiped; else untouched. May be NULL.
 *
 * Context: may sleep; while the node is configured only SIGKILL ends that.
 * Return: 1 if it is, 0 if not, -EINTR: the caller is being killed.
 */
int krc_node_is_up(struct krc_node_conf *ret_conf);

/**
 * krc_node_port_info() - Describe the i-th port, usable or not.
 * @i: from 0.
 * @ret_info: out.
 *
 * Context: may sleep, as krc_node_is_up().
 * Return: 0, -ENOENT or -EINTR.
 */
int krc_node_port_info(u32 i, struct krc_port_info *ret_info);

/**
 * krc_node_meta_info() - Describe MetaServer session @server of the i-th port.
 * @i: from 0, as krc_node_port_info() counts.
 * @server: from 0.
 * @ret_info: out.
 *
 * Context: may sleep, as krc_node_is_up().
 * Return: 0, -ENOENT (no such port or session, or the port is not up) or -EINTR.
 */
int krc_node_meta_info(u32 i, u32 server, struct krc_meta_info *ret_info);

/**
 * krc_node_cache() - The node's metadata cache, which lives as long as the module.
 *
 * Context: any, between krc_node_init() and krc_node_exit().
 * Return: the cache.
 */
struct krc_cache *krc_node_cache(void);

#endif /* KRC_NODE_H */
