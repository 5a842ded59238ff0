// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* server: the daemon on this machine: its devices and listeners, reload, drain. */
#include <time.h>

#include "client/metactl/local.h"

#define MC_DRAIN_SECONDS 10 /* twice the daemon's time-out for a client that does not answer */
#define MC_DRAIN_POLL_MS 100

static const char *const mc_drain_keys[] = { "state", "serving", "sessions", "records", NULL };

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

static int mc_server_undrain(struct mc *mc)
{
	return mc_server_rows(mc, "undrain", mc_drain_keys);
}

static bool mc_drain_keep(void *arg, json_t *item)
{
	json_t **kept = arg;

	*kept = json_incref(item);
	return false;
}

/* Ask, and keep the row of the answer. Return: MC_OK, or MC_FAILED after a message. */
static int mc_drain_ask(struct mc *mc, const char *command, json_t **ret_row)
{
	int ret;

	*ret_row = NULL;
	ret = mc_local_each(mc, command, NULL, mc_drain_keep, ret_row);
	if (!ret && !*ret_row)
		ret = mc_error(mc, "the daemon does not say how it is");
	return ret;
}

/* The operator may reboot next: return only when the clients have gone. */
static int mc_server_drain(struct mc *mc)
{
	const struct timespec pause = { .tv_nsec = MC_DRAIN_POLL_MS * 1000000L };
	uint64_t until_ns = mc_now_ns() + mc_number(mc, "seconds", MC_DRAIN_SECONDS) * 1000000000;
	json_int_t left;
	json_t *row;
	int ret;

	ret = mc_local_must(mc);
	if (ret)
		return ret;
	mc_catch_signals();
	ret = mc_drain_ask(mc, "drain", &row);
	for (;;) {
		json_decref(row);
		if (!ret)
			ret = mc_drain_ask(mc, "status", &row);
		if (ret)
			return ret;
		left = json_integer_value(json_object_get(row, "sessions"));
		if (!left || mc_stopping() || mc_now_ns() >= until_ns)
			break;
		nanosleep(&pause, NULL);
	}
	mc_row(mc->out);
	mc_put_object(mc->out, row, mc_drain_keys);
	json_decref(row);
	return left ? mc_error(mc, "%lld clients are still there", (long long)left) : MC_OK;
}

static const struct mc_param mc_drain_params[] = {
	{ "seconds", MC_NUMBER, 0, 1, 86400, "wait so long for the clients to go; 10 if left out" },
	{ 0 },
};

static const struct mc_command mc_server_commands[] = {
	{ "devices", mc_server_devices, NULL, 0, "RDMA ports, and whether it serves on them" },
	{ "drain", mc_server_drain, mc_drain_params, 0,
	  "Send all clients to the other servers and keep them off, until undrain or a restart; "
	  "returns when they have gone" },
	{ "listeners", mc_server_listeners, NULL, 0, "Where it listens or waits to" },
	{ "reload", mc_server_reload, NULL, 0,
	  "Read the configuration again; shows what changed and what needs a restart. A bad file "
	  "is refused and changes nothing" },
	{ "undrain", mc_server_undrain, NULL, 0, "Let clients come again" },
	{ 0 },
};

const struct mc_object mc_object_server = {
	.name = "server",
	.help = "the daemon on this machine: devices, listeners, reload, drain",
	.commands = mc_server_commands,
};
