/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the generic netlink family reports: node, ports, MetaServers, counters, and what users
 * hold. Callbacks of its operations (ctl/netlink.c).
 * Locking: as ctl/netlink.h.
 */
#ifndef KRC_CTL_SHOW_H
#define KRC_CTL_SHOW_H

#include <net/genetlink.h>

/**
 * krc_nl_node_get() - Answer with the state of the node: genl_ops.doit.
 * @skb: the request.
 * @info: its attributes.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_nl_node_get(struct sk_buff *skb, struct genl_info *info);

/**
 * krc_nl_stats_get() - Answer with the counters of the module: genl_ops.doit.
 * @skb: the request.
 * @info: its attributes.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_nl_stats_get(struct sk_buff *skb, struct genl_info *info);

/**
 * krc_nl_port_dump() - List the ports: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_port_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_server_dump() - List the MetaServers of each port: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_server_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_peer_dump() - List the peers, of the caller or of all: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_user_dump() - List the users and what they hold, the caller or all: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_user_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_queue_dump() - List the queues, of the caller or of all: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_queue_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_conn_dump() - List the connections, of the caller or of all: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_conn_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_messages_dump() - List the counters of messages of each port: genl_ops.dumpit.
 * @skb: answer to fill.
 * @cb: state of the dump.
 *
 * Context: may sleep.
 * Return: bytes in @skb, 0 at the end, or a negative errno.
 */
int krc_nl_messages_dump(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * krc_nl_own_start() - Note for a dump the user that asks, and whether it has CAP_NET_ADMIN:
 *	genl_ops.start.
 * @cb: state of the dump.
 *
 * Context: process, of the caller.
 * Return: 0.
 */
int krc_nl_own_start(struct netlink_callback *cb);

#endif /* KRC_CTL_SHOW_H */
