/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registrations of one RDMA device: what device.c needs of memory.c.
 */
#ifndef MS_MEMORY_H
#define MS_MEMORY_H

#include "metaserver/server_priv.h"

/**
 * ms_memory_register() - Register memory and count it.
 * @dev: device.
 * @addr: where.
 * @bytes: how much.
 * @access: IBV_ACCESS_*.
 * @ret_mr: the registration; untouched on failure.
 *
 * Return: 0, or a negative errno: -ENOMEM is also what a low RLIMIT_MEMLOCK gives.
 */
int ms_memory_register(struct ms_device *dev, void *addr, size_t bytes, int access,
		       struct ibv_mr **ret_mr);

/** ms_memory_unregister() - Deregister. @dev: device. @mr: set to NULL; may be NULL. */
void ms_memory_unregister(struct ms_device *dev, struct ibv_mr **mr);

/**
 * ms_memory_open() - Make the table reachable on a device that is new.
 * @dev: device with its protection domain; ms_memory_close() on any outcome.
 *
 * Return: 0 or a negative errno.
 */
int ms_memory_open(struct ms_device *dev);

/** ms_memory_close() - Undo ms_memory_open(). @dev: device. */
void ms_memory_close(struct ms_device *dev);

#endif /* MS_MEMORY_H */
