// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * status: overall state of the daemon on this machine if there is one, else of the
 * MetaServers as this node reaches them.
 */
#include <stdlib.h>

#include "client/metactl/local.h"
#include "client/metactl/node.h"

static int mc_status(struct mc *mc)
{
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT };
	struct krcore_server_info *servers;
	int i, nr, up = 0;

	if (mc_is_local(mc)) {
		mc_out_table(mc->out, MC_BLOCK, NULL);
		return mc_local_rows(mc, "status", NULL, NULL, 0);
	}
	if (mc_attach(mc, &opts))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	mc_out_table(mc->out, MC_TABLE, NULL);
	mc_put_servers(mc, servers, nr);
	for (i = 0; i < nr; i++)
		up += servers[i].state == KRCORE_SERVER_UP;
	free(servers);
	return up ? MC_OK : mc_error(mc, "no MetaServer is attached; see krcore-metactl doctor");
}

static const struct mc_command mc_status_commands[] = {
	{ "show", mc_status, NULL, 0,
	  "The daemon on this machine; without one, or with -S, the MetaServers over RDMA" },
	{ 0 },
};

const struct mc_object mc_object_status = {
	.name = "status",
	.help = "how is it? (the default)",
	.commands = mc_status_commands,
};
