/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The transport over queues of libkrcore.
 */
#ifndef KR_KRCORE_H
#define KR_KRCORE_H

#include <krcore/queue.h>

#include "race/lib/transport.h"

/**
 * kr_krcore_open() - Find a table and connect to its node, with one krcore_start().
 * @server: address or host name.
 * @service: service of the table's record.
 * @port: RDMA port of this node, as in struct krcore_node_options.
 * @timeout_ms: bound of a look-up; 0 means 5000.
 * @flags: KRCORE_CONNECT_*.
 * @ret_reads: READs of a MetaServer that connecting took.
 * @ret: transport.
 *
 * Return: 0 or negative errno.
 */
int kr_krcore_open(const char *server, uint16_t service, uint32_t port, uint32_t timeout_ms,
		   uint32_t flags, uint32_t *ret_reads, struct kr_transport **ret);

#endif /* KR_KRCORE_H */
