/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How a network device treats priorities: which of them are lossless (PFC), and which
 * one a DSCP belongs to (IEEE 802.1Qaz, as dcb-pfc(8) and dcb-app(8) show it). Asked by
 * rtnetlink, which needs no privilege. Plain values, no state: any thread.
 */
#ifndef MC_DCB_H
#define MC_DCB_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

#define MC_DSCP_NR 64

/**
 * struct mc_dcb - Priorities of a network device.
 * @netdev: its name.
 * @error: negative errno of asking; %-EOPNOTSUPP if the driver has no such thing.
 * @pfc: bit mask of the priorities that are lossless.
 * @by_dscp: the DSCP of a packet decides on its priority.
 * @priority: priority of each DSCP, if @by_dscp.
 */
struct mc_dcb {
	char netdev[IF_NAMESIZE];
	int error;
	uint8_t pfc;
	bool by_dscp;
	uint8_t priority[MC_DSCP_NR];
};

/**
 * mc_dcb_ask() - Ask the kernel about a network device.
 * @netdev: its name.
 * @ret_dcb: filled, also on failure.
 */
void mc_dcb_ask(const char *netdev, struct mc_dcb *ret_dcb);

/**
 * mc_dcb_take() - Evaluate a message of the answer.
 * @nlh: RTM_GETDCB message, checked for its length.
 * @dcb: filled as far as the message goes.
 */
void mc_dcb_take(const struct nlmsghdr *nlh, struct mc_dcb *dcb);

#endif /* MC_DCB_H */
