/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * RDMA devices, ports and GIDs as the kernel shows them in sysfs.
 *
 * Read here and not by verbs, so that a diagnosis works where verbs do not, and
 * on a copied tree in tests. Plain values, no state: any thread.
 */
#ifndef MC_SYSFS_H
#define MC_SYSFS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_SYSFS "/sys"
#define MC_NAME_BYTES 64

/**
 * struct mc_gid - An entry of a port's GID table that is in use.
 * @index: its place in the table.
 * @gid: the GID, network order.
 * @type: "RoCE v1", "RoCE v2" or "IB/RoCE v1"; "" if unknown.
 * @netdev: network device it belongs to, "" if none.
 */
struct mc_gid {
	unsigned int index;
	uint8_t gid[16];
	char type[24];
	char netdev[IF_NAMESIZE];
};

/**
 * struct mc_port - A port of a device.
 * @device: name of its device.
 * @number: from 1.
 * @state: "ACTIVE", "DOWN", "INIT", "ARMED" or "".
 * @phys_state: "LinkUp", "Disabled", "Polling" ... or "".
 * @link: "Ethernet" or "InfiniBand".
 * @rate: as the kernel writes it, such as "100 Gb/sec (4X EDR)".
 * @lid: InfiniBand LID.
 * @gids: GIDs in use.
 * @gids_nr: how many.
 */
struct mc_port {
	char device[MC_NAME_BYTES];
	unsigned int number;
	char state[16];
	char phys_state[24];
	char link[16];
	char rate[40];
	unsigned int lid;
	struct mc_gid *gids;
	size_t gids_nr;
};

/**
 * struct mc_rdma - All ports of this machine.
 * @ports: sorted by device and number.
 * @ports_nr: how many.
 * @devices_nr: devices, also those without a port.
 */
struct mc_rdma {
	struct mc_port *ports;
	size_t ports_nr;
	size_t devices_nr;
};

/**
 * mc_rdma_scan() - Read all devices.
 * @sysfs: where sysfs is: MC_SYSFS.
 * @ret_rdma: filled; empty if there is nothing. mc_rdma_free() it.
 *
 * Return: 0, or -ENOMEM.
 */
int mc_rdma_scan(const char *sysfs, struct mc_rdma *ret_rdma);

/** mc_rdma_free() - Free what mc_rdma_scan() filled. @rdma: filled, or all zero. */
void mc_rdma_free(struct mc_rdma *rdma);

/**
 * mc_rdma_on_netdev() - Whether an RDMA port uses a network device.
 * @sysfs: where sysfs is.
 * @rdma: what mc_rdma_scan() found.
 * @netdev: name of the network device.
 *
 * A GID of a port names it, or it is an IPoIB device.
 *
 * Return: true if so.
 */
bool mc_rdma_on_netdev(const char *sysfs, const struct mc_rdma *rdma, const char *netdev);

/**
 * mc_sysfs_line() - First line of a small file.
 * @buf: where to; "" on failure.
 * @bytes: its size.
 * @format: its path, as printf().
 *
 * Return: 0, or the negative errno of open() or read().
 */
int mc_sysfs_line(char *buf, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** mc_sysfs_has() - Whether a path exists. @format: as printf(). Return: true if it does. */
bool mc_sysfs_has(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* MC_SYSFS_H */
