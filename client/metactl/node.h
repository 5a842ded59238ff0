/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rows about MetaServers, shared by node and status. Threads: one.
 */
#ifndef MC_NODE_H
#define MC_NODE_H

#include "client/metactl/metactl.h"

/**
 * mc_put_servers() - A row a MetaServer.
 * @mc: run; the table is begun.
 * @servers: array of @nr.
 * @nr: its length.
 */
void mc_put_servers(struct mc *mc, const struct krcore_server_info *servers, int nr);

#endif /* MC_NODE_H */
