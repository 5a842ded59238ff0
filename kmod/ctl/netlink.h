/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the generic netlink family "krcore" (proto/krp_genl.h): ctl/netlink.c takes
 * configuration in, ctl/show.c reports state. It calls the node, the contexts and the limits;
 * only the module's init and exit call it.
 * Locking: commands run in parallel, and the functions called have locks of their own; only
 * node up has one here, krc_nl_lock (mutex), for the generation of the last start.
 */
#ifndef KRC_NETLINK_H
#define KRC_NETLINK_H

#include <net/genetlink.h>

extern struct genl_family krc_nl_family;

/**
 * krc_nl_init() - Register the family; commands may arrive before it returns.
 *
 * Context: may sleep.
 * Return: 0 or the error of genl_register_family().
 */
int krc_nl_init(void);

/**
 * krc_nl_exit() - Unregister the family; no command runs when it returns.
 *
 * Context: may sleep.
 */
void krc_nl_exit(void);

/* ctl/show.c: the read-only commands, as genl_ops.doit and .dumpit. Context: may sleep. */
int krc_nl_node_get(struct sk_buff *skb, struct genl_info *info);
int krc_nl_stats_get(struct sk_buff *skb, struct genl_info *info);
int krc_nl_port_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_server_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_user_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_queue_dump(struct sk_buff *skb, struct netlink_callback *cb);

/* genl_ops.start: note the caller's user and CAP_NET_ADMIN for the dump. Return: 0. */
int krc_nl_own_start(struct netlink_callback *cb);

#endif /* KRC_NETLINK_H */
