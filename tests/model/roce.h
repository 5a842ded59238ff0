/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the GID table of a RoCE port and the network header a UD receiver
 * sees in front of its data.
 */
#ifndef CX_ROCE_H
#define CX_ROCE_H

#include "types.h"

#define CX_GRH_BYTES 40

/* how a receive completion names the network layer */
enum cx_l3 {
	CX_L3_ROCE_V1 = 0, /* also InfiniBand */
	CX_L3_IPV6 = 1,
	CX_L3_IPV4 = 2,
};

struct cx_gid {
	bool valid;
	u8 gid[16];
	u8 mac[6];
	u8 version; /* 0: RoCE v1, 2: RoCE v2 */
	bool ipv4;
	u8 raw[32]; /* as the driver gave it */
};

struct cx_pkt;

const u8 *cx_gid_source(struct cx_dev *dev, u32 index, struct cx_pkt *pkt);
bool cx_gid_has_mac(const struct cx_dev *dev, const u8 *mac);
bool cx_gid_accept(struct cx_dev *dev, const struct cx_pkt *pkt);
void cx_grh_build(const struct cx_pkt *pkt, u8 *grh);

#endif
