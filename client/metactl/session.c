// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* session: who is connected to the daemon on this machine. */
#include "client/metactl/local.h"

static int mc_session_list(struct mc *mc)
{
	static const char *const keys[] = { "id",	"name",	  "address", "state", "records",
					    "messages", "age_ms", "idle_ms", NULL };
	int ret;

	ret = mc_local_must(mc);
	if (ret)
		return ret;
	return mc_local_rows(mc, "sessions", NULL, keys, mc_number(mc, "count", 0));
}

static const struct mc_param mc_session_params[] = {
	{ "count", MC_NUMBER, 0, 1, UINT32_MAX, "at most so many" },
	{ 0 },
};

static const struct mc_command mc_session_commands[] = {
	{ "list", mc_session_list, mc_session_params, 0, "Connections, oldest first" },
	{ 0 },
};

const struct mc_object mc_object_session = {
	.name = "session",
	.help = "connections of the daemon on this machine",
	.commands = mc_session_commands,
};
