/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the generic netlink family "krcore" (proto/krp_genl.h), by which configuration comes in;
 * what it reports is in ctl/show.h. It calls the node, the contexts and the limits; only the
 * module's init and exit call it.
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

#endif /* KRC_NETLINK_H */
