// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * cluster: all MetaServers in one view, the records in which they differ, and when the next
 * one may be restarted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/metactl/diff.h"
#include "client/metactl/node.h"
#include "client/metactl/record.h"

#define MC_SETTLED_POLL_MS 250
#define MC_SETTLED_SECONDS 300 /* ten times the usual time of a server to settle */

/* A look-up of a record that cannot exist: a miss makes libkrcore READ the root. */
static void mc_look(struct mc *mc, unsigned int server)
{
	struct krcore_key key = { .service = 65535 };

	memset(key.gid, 0xff, sizeof(key.gid));
	krcore_lookup_at(mc->krcore, server, &key, NULL, NULL);
}

/* How many servers are attached and settled, of all. */
static int mc_settled(struct mc *mc, struct krcore_server_info *servers, int nr)
{
	int i, well = 0;

	for (i = 0; i < nr; i++)
		mc_look(mc, (unsigned int)i);
	krcore_servers(mc->krcore, servers, (unsigned int)nr);
	for (i = 0; i < nr; i++)
		well += servers[i].state == KRCORE_SERVER_UP && !servers[i].settling_ms;
	return well;
}

/* Show the servers, and free them. @how: how those are that do not serve well. */
static int mc_cluster_show(struct mc *mc, struct krcore_server_info *servers, int nr, int well,
			   const char *how)
{
	mc_out_table(mc->out, MC_TABLE, NULL);
	mc_put_servers(mc, servers, nr);
	free(servers);
	return well == nr ? MC_OK
			  : mc_error(mc, "%d of %d MetaServers are %s attached and settled",
				     nr - well, nr, how);
}

static int mc_cluster_status(struct mc *mc)
{
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT };
	struct krcore_server_info *servers;
	int nr;

	if (mc_attach(mc, &opts))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	return mc_cluster_show(mc, servers, nr, mc_settled(mc, servers, nr), "not");
}

/* A rolling restart uses this to wait between two servers. */
static int mc_wait_settled(struct mc *mc)
{
	const struct timespec pause = { .tv_nsec = MC_SETTLED_POLL_MS * 1000000L };
	uint64_t until_ns = mc_now_ns() + mc_number(mc, "seconds", MC_SETTLED_SECONDS) * 1000000000;
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT };
	struct krcore_server_info *servers;
	int nr, well;

	if (mc_attach(mc, &opts))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	mc_catch_signals();
	while ((well = mc_settled(mc, servers, nr)) < nr && !mc_stopping() &&
	       mc_now_ns() < until_ns)
		nanosleep(&pause, NULL);
	return mc_cluster_show(mc, servers, nr, well, "still not");
}

struct mc_diff_walk {
	struct mc_diff *diff;
	unsigned int server;
	int err;
};

static bool mc_diff_record(void *arg, const struct krcore_key *key,
			   const struct krcore_value *value)
{
	struct mc_diff_walk *walk = arg;

	walk->err = mc_diff_add(walk->diff, walk->server, key, value);
	return !walk->err && !mc_stopping();
}

static int mc_diff_read(struct mc *mc, struct mc_diff *diff, unsigned int server,
			const struct krcore_server_info *info)
{
	struct mc_diff_walk walk = { .diff = diff, .server = server };
	struct krcore_check check = { .size = sizeof(check) };
	const char *unseen;
	int ret;

	if (info->state != KRCORE_SERVER_UP || server >= MC_DIFF_SERVERS_MAX)
		return mc_error(mc, "%s is not attached: %s", info->address, info->error_text);
	ret = krcore_walk(mc->krcore, server, mc_diff_record, &walk, &check);
	if (walk.err)
		return mc_error(mc, "no memory");
	if (ret)
		return mc_error(mc, "%s: %s", info->address, krcore_error_text());
	unseen = mc_diff_unseen(&check);
	if (!check.bad && !check.directory_errors) /* then what the buckets have can be compared */
		diff->servers |= 1ULL << server;
	return unseen ? mc_error(mc, "%s: %s", info->address, unseen) : MC_OK;
}

/* The tables were read one after the other: look up again, and report what still differs. */
static bool mc_diff_still(struct mc *mc, struct mc_diff *diff, struct mc_diff_row *row)
{
	struct krcore_value first = { 0 }, value;
	uint64_t left, have = 0;
	bool differs = false;
	int ret;

	for (left = diff->servers; left; left &= left - 1) {
		unsigned int server = (unsigned int)__builtin_ctzll(left);

		ret = krcore_lookup_at(mc->krcore, server, &row->key, &value, NULL);
		if (ret)
			continue;
		if (have)
			differs |= !mc_values_equal(&first, &value) ||
				   first.generation != value.generation;
		else
			first = value;
		have |= 1ULL << server;
	}
	row->have = have;
	row->differs = differs;
	return differs || (have && have != diff->servers);
}

static void mc_diff_put(struct mc *mc, const struct mc_diff_row *row, uint64_t missing)
{
	char address[128], all[512] = "";
	size_t used = 0;

	for (; missing; missing &= missing - 1) {
		mc_address_of(mc, (unsigned int)__builtin_ctzll(missing), address, sizeof(address));
		if (used < sizeof(all))
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
						 used ? ", " : "", address);
	}
	mc_row(mc->out);
	mc_put_key(mc, &row->key);
	mc_put_text(mc->out, "verdict", MC_BAD, *all ? "missing" : "differs");
	mc_put_text(mc->out, "missing_at", 0, *all ? all : NULL);
}

int mc_table_diff(struct mc *mc)
{
	struct krcore_server_info *servers;
	struct mc_diff diff = { 0 };
	struct mc_diff_row row;
	int i, nr, ret = MC_OK;
	uint64_t found = 0;

	if (mc_attach(mc, NULL))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	mc_catch_signals();
	for (i = 0; i < nr; i++)
		if (mc_diff_read(mc, &diff, (unsigned int)i, &servers[i]))
			ret = MC_FAILED;
	free(servers);
	mc_out_table(mc->out, MC_TABLE, NULL);
	while (!mc_stopping() && mc_diff_next(&diff, &row)) {
		if (!mc_diff_still(mc, &diff, &row))
			continue;
		mc_diff_put(mc, &row, diff.servers & ~row.have);
		found++;
	}
	mc_diff_free(&diff);
	if (found)
		return mc_error(mc, "%llu records are not alike at all servers",
				(unsigned long long)found);
	return ret;
}

static const struct mc_param mc_wait_params[] = {
	{ "seconds", MC_NUMBER, 0, 1, 86400, "give up after so long; 300 if left out" },
	{ 0 },
};

static const struct mc_command mc_cluster_commands[] = {
	{ "status", mc_cluster_status, NULL, 0,
	  "All MetaServers side by side; exit code 1 if one is not attached and settled" },
	{ "wait", mc_wait_settled, mc_wait_params, 0,
	  "Wait until all MetaServers are attached and settled: then the next may be restarted" },
	{ 0 },
};

const struct mc_object mc_object_cluster = {
	.name = "cluster",
	.help = "all MetaServers in one view",
	.commands = mc_cluster_commands,
};
