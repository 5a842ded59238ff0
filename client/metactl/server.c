// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* server: the daemon on this machine: its devices and listeners, reload. */
#include "client/metactl/local.h"

static int mc_server_rows(struct mc *mc, const char *command, const char *const *keys)
{
	int ret;

	ret = mc_local_must(mc);
	return ret ? ret : mc_local_rows(mc, command, NULL, keys, 0);
}

static int mc_server_devices(struct mc *mc)
{
	return mc_server_rows(mc, "devices", NULL);
}

static int mc_server_listeners(struct mc *mc)
{
	return mc_server_rows(mc, "listeners", NULL);
}

static int mc_server_reload(struct mc *mc)
{
	return mc_server_rows(mc, "reload", NULL);
}

static const struct mc_command mc_server_commands[] = {
	{ "devices", mc_server_devices, NULL, 0, "RDMA ports, and whether it serves on them" },
	{ "listeners", mc_server_listeners, NULL, 0, "Where it listens or waits to" },
	{ "reload", mc_server_reload, NULL, 0,
	  "Read the configuration again; shows what changed and what needs a restart. A bad file "
	  "is refused and changes nothing" },
	{ 0 },
};

const struct mc_object mc_object_server = {
	.name = "server",
	.help = "the daemon on this machine: devices, listeners, reload",
	.commands = mc_server_commands,
};
