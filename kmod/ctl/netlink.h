/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the generic netlink family "krcore" (proto/krp_genl.h): configuration comes in
 * by ctl/netlink.c, sight goes out by ctl/show.c. It calls the node, the contexts and the
 * limits, and nobody calls it but the module's init and exit.
 * Locking: none of its own but for the last generation; commands run in parallel, and
 * what they call has locks.
 */
#ifndef KRC_NETLINK_H
#define KRC_NETLINK_H

#include <net/genetlink.h>

extern struct genl_family krc_nl_family;

/**
 * krc_nl_init() - Register the family; commands may come at once.
 *
 * Context: may sleep.
 * Return: 0, or a negative errno of genl_register_family().
 */
int krc_nl_init(void);

/**
 * krc_nl_exit() - Take the family back; no command runs when it returns.
 *
 * Context: may sleep.
 */
void krc_nl_exit(void);

/* ctl/show.c: one for each command that only looks. */
int krc_nl_node_get(struct sk_buff *skb, struct genl_info *info);
int krc_nl_stats_get(struct sk_buff *skb, struct genl_info *info);
int krc_nl_port_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_server_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_user_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_queue_dump(struct sk_buff *skb, struct netlink_callback *cb);
int krc_nl_own_start(struct netlink_callback *cb);

#endif /* KRC_NETLINK_H */
