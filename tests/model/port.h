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
 */
struct cx_port {
	u8 mac[6];
	u16 lid;
	u64 guid;
	bool cable; /* set by the outside: is the link there */
	bool admin_up; /* set by the driver */
	u16 mtu;
	bool active; /* last state told to the driver */
	u16 vport_mtu;
	bool roce_en;
	bool arm_change;
	bool pause_tx; /* asked for; nothing here ever needs a pause */
	bool pause_rx;
	u8 promisc;
	u32 nr_mc;
	u8 mc[64][6];
};

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
