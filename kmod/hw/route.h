/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the Ethernet address that packets to a peer go to.
 */
#ifndef KRC_ROUTE_H
#define KRC_ROUTE_H

#include <rdma/ib_verbs.h>

/**
 * krc_route_mac() - The MAC that packets to a peer need.
 * @pd: protection domain of the device.
 * @port: port (RoCE).
 * @gid_index: of its GID.
 * @gid: GID of the peer.
 * @known: MAC of its record; zero: unknown.
 * @ret_mac: out.
 *
 * Context: may sleep, not long.
 * Return: 0 or %-ENETUNREACH.
 */
int krc_route_mac(struct ib_pd *pd, u32 port, u16 gid_index, const union ib_gid *gid,
		  const u8 *known, u8 *ret_mac);

#endif /* KRC_ROUTE_H */
