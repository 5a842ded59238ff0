/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the GID table of a RoCE port and the network header a UD receiver
 * sees in front of its data.
 */
#ifndef CX_ROCE_H
#define CX_ROCE_H

#include "types.h"

#define CX_GRH_BYTES 40

/**
 * enum cx_l3 - How a receive completion names the network layer.
 * @CX_L3_ROCE_V1: RoCE v1; also InfiniBand.
 * @CX_L3_IPV6: RoCE v2 over IPv6.
 * @CX_L3_IPV4: RoCE v2 over IPv4.
 */
enum cx_l3 {
	CX_L3_ROCE_V1 = 0,
	CX_L3_IPV6 = 1,
	CX_L3_IPV4 = 2,
};

/**
 * struct cx_gid - An entry of the GID table.
 * @valid: there is a GID, other than zero.
 * @gid: GID; an IPv4-mapped address for IPv4.
 * @mac: link address that packets from it have.
 * @version: 0: RoCE v1, 2: RoCE v2.
 * @ipv4: RoCE v2 over IPv4, not IPv6.
 * @raw: as the driver gave it, for queries.
 */
struct cx_gid {
	bool valid;
	u8 gid[16];
	u8 mac[6];
	u8 version;
	bool ipv4;
	u8 raw[32];
};

struct cx_pkt;

/**
 * cx_gid_source() - Put the sender's address into a packet.
 * @dev: device.
 * @index: source GID index of the queue or address vector.
 * @pkt: packet to fill.
 *
 * Return: the link address to send from, NULL if the table has no such GID.
 */
const u8 *cx_gid_source(struct cx_dev *dev, u32 index, struct cx_pkt *pkt);

/**
 * cx_gid_has_mac() - Whether an entry of the GID table belongs to a link address.
 * @dev: device.
 * @mac: link address, 6 bytes.
 *
 * Return: true if one does.
 */
bool cx_gid_has_mac(const struct cx_dev *dev, const u8 *mac);

/**
 * cx_gid_accept() - Whether a packet is for one of our addresses, by the same network layer.
 * @dev: device.
 * @pkt: packet.
 *
 * Return: true if it is.
 */
bool cx_gid_accept(struct cx_dev *dev, const struct cx_pkt *pkt);

/**
 * cx_grh_build() - The first 40 bytes of a UD receive buffer.
 * @pkt: packet received.
 * @grh: 40 bytes; an IPv4 header stands in the last 20 of them.
 */
void cx_grh_build(const struct cx_pkt *pkt, u8 *grh);

#endif
