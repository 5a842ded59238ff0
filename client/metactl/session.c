// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* session: list the clients that are connected to the daemon on this machine; disconnect some. */
#include <stdio.h>

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

/* A value of the command as the protocol wants it: lower-case digits. */
static void mc_kill_hex(const struct mc_value *value, const char *name, json_t *args)
{
	char text[2 * MC_BYTES_MAX + 1] = "";
	size_t i;

	if (!value)
		return;
	for (i = 0; i < value->bytes_nr; i++)
		snprintf(text + 2 * i, 3, "%02x", value->bytes[i]);
	json_object_set_new(args, name, json_string(text));
}

static int mc_session_kill(struct mc *mc)
{
	json_t *args;
	int ret;

	if (!!mc_get(mc, "id") + !!mc_get(mc, "owner") + !!mc_get(mc, "key") != 1) {
		mc_error(mc, "kill: one of id, owner and key is needed");
		return MC_USAGE;
	}
	ret = mc_local_must(mc);
	if (ret)
		return ret;
	args = json_object();
	if (!args)
		return mc_error(mc, "no memory");
	if (mc_get(mc, "id"))
		json_object_set_new(args, "id", json_integer((json_int_t)mc_number(mc, "id", 0)));
	mc_kill_hex(mc_get(mc, "owner"), "owner", args);
	mc_kill_hex(mc_get(mc, "key"), "key", args);
	return mc_local_rows(mc, "session_kill", args, NULL, 0);
}

static const struct mc_param mc_kill_params[] = {
	{ "id", MC_NUMBER, 0, 0, INT64_MAX, "the session of this number" },
	{ "owner", MC_HEX, 0, 16, 16, "all sessions of this owner" },
	{ "key", MC_HEX, 0, 4, 4, "all that have proved the cluster key of this id" },
	{ 0 },
};

static const struct mc_param mc_session_params[] = {
	{ "count", MC_NUMBER, 0, 1, UINT32_MAX, "at most so many" },
	{ 0 },
};

/* The first is the default of "session" alone: it must only show, never disconnect. */
static const struct mc_command mc_session_commands[] = {
	{ "list", mc_session_list, mc_session_params, 0, "Connections, oldest first" },
	{ "kill", mc_session_kill, mc_kill_params, 0,
	  "Disconnect clients; one whose key is accepted comes back" },
	{ 0 },
};

const struct mc_object mc_object_session = {
	.name = "session",
	.help = "connections of the daemon on this machine",
	.commands = mc_session_commands,
};
