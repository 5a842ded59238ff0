/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the physical port: address, link state, MTU; and the vport that
 * stands for it.
 */
#ifndef CX_PORT_H
#define CX_PORT_H

#include "types.h"

#define CX_GUID_PREFIX 0x0002c90300000000ull
#define CX_GID_PREFIX 0xfe80000000000000ull
#define CX_NR_PKEYS 128 /* what pkey_table_size 0 says */
#define CX_PKEYS_DEFAULT "ffff"
#define CX_PKEY_INDEX_ALL 0xffff /* in QUERY_HCA_VPORT_PKEY */
#define CX_PKEY_INDEX_ANY 0x10000 /* none that a queue could have */

struct cx_pkt;

enum {
	CX_REG_PMTU = 0x5003,
	CX_REG_PTYS = 0x5004,
	CX_REG_PAOS = 0x5006,
	CX_REG_PFCC = 0x5007,
	CX_REG_PPCNT = 0x5008,
	CX_REG_PVLC = 0x500f,
	CX_REG_NODE_DESC = 0x6001,
	CX_REG_HOST_ENDIANNESS = 0x7004,
};

/* op_mod of ACCESS_REG; 0 is a write */
#define CX_ACCESS_READ 1

/**
 * struct cx_port - The port, and the vport of the function.
 * @mac: link address; on InfiniBand, the LID in it.
 * @lid: LID, on InfiniBand.
 * @guid: of port, node and system.
 * @cable: set by the outside: is the link there.
 * @admin_up: set by the driver.
 * @mtu: of the port as the driver set it, bytes; kept only.
 * @active: last state told to the driver.
 * @vport_mtu: of the vport as the driver set it, bytes; kept only.
 * @roce_en: the driver has switched RoCE on; kept only.
 * @arm_change: the driver wants events of the vport; kept only: it gets them anyway.
 * @pause_tx: asked for; nothing here ever needs a pause.
 * @pause_rx: likewise.
 * @promisc: 4: all unicast, 2: all multicast, 1: all; any of them lets all frames through.
 * @nr_mc: entries of @mc.
 * @mc: multicast addresses the driver wants; kept only: all multicast is received.
 * @pkey: the partitions the port is in; 0 where none is.
 */
struct cx_port {
	u8 mac[6];
	u16 lid;
	u64 guid;
	bool cable;
	bool admin_up;
	u16 mtu;
	bool active;
	u16 vport_mtu;
	bool roce_en;
	bool arm_change;
	bool pause_tx;
	bool pause_rx;
	u8 promisc;
	u32 nr_mc;
	u8 mc[64][6];
	u16 pkey[CX_NR_PKEYS];
};

/**
 * cx_port_set_pkeys() - Say which partitions the port is in.
 * @dev: device.
 * @keys: P_Keys as hexadecimal numbers joined by ':', in the order of the table.
 *
 * Return: 0, or -EINVAL with the old table kept.
 */
int cx_port_set_pkeys(struct cx_dev *dev, const char *keys);

/**
 * cx_port_pkey() - P_Key at a place of the port's table.
 * @dev: device.
 * @index: place, as queue pairs and targets name it.
 *
 * Return: the key; 0, which is none, where the table has none.
 */
u16 cx_port_pkey(const struct cx_dev *dev, u32 index);

/**
 * cx_port_admits() - Whether a request may reach the queue that it is for: by its partition, and
 * by its network header where the port requires one.
 * @dev: device.
 * @pkey_index: where the queue's P_Key is in the port's table; CX_PKEY_INDEX_ANY for a queue
 *		of all partitions that the port is in.
 * @p: packet.
 *
 * One that may not is counted. Answers need not be asked for: what lets a request through lets
 * its answer through as well.
 *
 * Return: true if it may.
 */
bool cx_port_admits(struct cx_dev *dev, u32 pkey_index, const struct cx_pkt *p);

/**
 * cx_port_init() - Bring the port up, with the addresses of the device's properties.
 * @dev: device.
 */
void cx_port_init(struct cx_dev *dev);

/**
 * cx_port_up() - Whether the link is up.
 * @dev: device.
 *
 * Return: true if there is a cable and the driver wants it up.
 */
bool cx_port_up(const struct cx_dev *dev);

/**
 * cx_port_update() - Tell the driver if the state of the link has changed.
 * @dev: device.
 */
void cx_port_update(struct cx_dev *dev);

#endif
