/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what a record says of a port's address, and the Ethernet address that packets to a peer
 * go to. Both are the same for all providers.
 */
#ifndef KRC_ROUTE_H
#define KRC_ROUTE_H

#include "hw/provider.h"

/**
 * krc_route_mtu() - Packet size for a port: the active MTU, or less if so configured.
 * @fabric: packet settings of the port.
 * @active: the port's active MTU, enum ib_mtu.
 *
 * Context: any.
 * Return: enum ib_mtu.
 */
u8 krc_route_mtu(const struct krc_hw_fabric *fabric, u8 active);

/**
 * krc_route_own_address() - Fill in the address of a port.
 * @ibdev: device.
 * @port: port of it, which the caller has checked.
 * @gid_index: index of its GID.
 * @fabric: packet settings of the port.
 * @value: out: lid, mac, mtu, sl, port and flags; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0, %-EINVAL (the device does not answer for it), %-ENETUNREACH (no GID there, or no LID
 * yet).
 */
int krc_route_own_address(struct ib_device *ibdev, u32 port, u16 gid_index,
			  const struct krc_hw_fabric *fabric, struct krp_value *value);

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
