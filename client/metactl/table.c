// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * table: read a MetaServer's whole table over RDMA and verify or show it.
 *
 * Bulk READs by krcore_walk(): the server's processor has no part in it, so it
 * works, and tells the truth, also when the daemon there hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/record.h"

static int mc_table_one(struct mc *mc, unsigned int server, const struct krcore_server_info *info)
{
	struct krcore_check c = { .size = sizeof(c) };
	uint64_t start = mc_now_ns();
	bool well;
	int ret;

	ret = krcore_walk(mc->krcore, server, NULL, NULL, &c);
	if (ret)
		return mc_error(mc, "%s: %s", info->address,
				*krcore_error_text() ? krcore_error_text() : strerror(-ret));
	well = !c.bad && !c.directory_errors;
	mc_row(mc->out);
	mc_put_number(mc->out, "server", 0, server);
	mc_put_text(mc->out, "address", 0, info->address);
	mc_put_text(mc->out, "verdict", well ? MC_GOOD : MC_BAD, well ? "ok" : "damaged");
	mc_put_number(mc->out, "records", 0, c.records);
	mc_put_number(mc->out, "pages", 0, c.pages);
	mc_put_number(mc->out, "buckets", 0, c.buckets);
	mc_put_number(mc->out, "bad", c.bad ? MC_BAD : 0, c.bad);
	mc_put_number(mc->out, "directory_errors", c.directory_errors ? MC_BAD : 0,
		      c.directory_errors);
	mc_put_number(mc->out, "torn", 0, c.torn);
	mc_put_number(mc->out, "moved", 0, c.moved);
	mc_put_number(mc->out, "crowded", c.crowded ? MC_WARN : 0, c.crowded);
	mc_put_number(mc->out, "depth", MC_DETAIL, c.depth);
	mc_put_number(mc->out, "read_bytes", MC_DETAIL, c.bytes);
	mc_put_number(mc->out, "took_ns", MC_DETAIL, mc_now_ns() - start);
	mc_put_format(mc->out, "incarnation", MC_DETAIL, "%016llx",
		      (unsigned long long)info->incarnation);
	return well ? MC_OK : MC_FAILED;
}

static int mc_table_check(struct mc *mc)
{
	const struct mc_value *wish = mc_get(mc, "server");
	struct krcore_server_info *servers;
	int i, nr, ret = MC_OK;
	bool any = false;

	if (mc_attach(mc, NULL))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	for (i = 0; i < nr; i++) {
		if (wish && wish->number != (uint64_t)i)
			continue;
		any = true;
		if (servers[i].state != KRCORE_SERVER_UP)
			ret = mc_error(mc, "%s is not attached: %s", servers[i].address,
				       servers[i].error_text);
		else if (mc_table_one(mc, (unsigned int)i, &servers[i]))
			ret = MC_FAILED;
	}
	free(servers);
	if (!any)
		return mc_error(mc, "there is no such server; there are %d", nr);
	return ret;
}

static bool mc_dump_record(void *arg, const struct krcore_key *key,
			   const struct krcore_value *value)
{
	struct mc *mc = arg;

	mc_row(mc->out);
	mc_put_key(mc, key);
	mc_put_value(mc, value);
	return !mc_stopping();
}

static bool mc_dump_bytes(void *arg, const void *bytes, size_t nr)
{
	return !mc_stopping() && fwrite(bytes, 1, nr, arg) == nr;
}

/* Write the bytes into a file, which appears only when it is complete. */
static int mc_table_dump_raw(struct mc *mc, unsigned int server, const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* it has DC keys */
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int ret, err;

	if (!file)
		return mc_error(mc, "%s: %s", name, strerror(errno));
	errno = 0;
	ret = krcore_dump(mc->krcore, server, mc_dump_bytes, file);
	err = errno;
	if (fclose(file) && !ret) {
		err = errno;
		ret = -ECANCELED;
	}
	if (!ret)
		return MC_OK;
	remove(name);
	if (ret == -ECANCELED && !mc_stopping())
		return mc_error(mc, "%s: %s", name, strerror(err));
	if (ret == -ECANCELED)
		return mc_error(mc, "interrupted");
	return mc_error(mc, "%s", *krcore_error_text() ? krcore_error_text() : strerror(-ret));
}

static int mc_table_dump(struct mc *mc)
{
	const char *raw = mc->raw ? mc->raw : mc_text(mc, "raw");
	struct krcore_check check = { .size = sizeof(check) };
	int server, ret;

	if (mc_attach(mc, NULL))
		return MC_FAILED;
	server = mc_server_choose(mc);
	if (server < 0)
		return MC_FAILED;
	mc_catch_signals();
	if (raw)
		return mc_table_dump_raw(mc, (unsigned int)server, raw);
	mc_out_table(mc->out, MC_TABS, NULL);
	ret = krcore_walk(mc->krcore, (unsigned int)server, mc_dump_record, mc, &check);
	if (ret == -ECANCELED)
		return mc_error(mc, "interrupted");
	if (ret)
		return mc_error(mc, "%s",
				*krcore_error_text() ? krcore_error_text() : strerror(-ret));
	if (check.bad || check.directory_errors)
		return mc_error(mc, "%llu buckets are damaged, see krcore-metactl table check",
				(unsigned long long)check.bad + check.directory_errors);
	return MC_OK;
}

static const struct mc_param mc_table_params[] = {
	{ "server", MC_NUMBER, 0, 0, 63, "only this server, numbered as in node show" },
	{ 0 },
};

static const struct mc_param mc_dump_params[] = {
	{ "server", MC_NUMBER, 0, 0, 63, "only this server, numbered as in node show" },
	{ "raw", MC_FILE, 0, 0, 0, "the bytes as READ into this new file, instead of records" },
	{ 0 },
};

static const struct mc_command mc_table_commands[] = {
	{ "check", mc_table_check, mc_table_params, 0,
	  "READ every bucket of each MetaServer and verify it; exit code 1 if something is wrong" },
	{ "dump", mc_table_dump, mc_dump_params, 0,
	  "READ all records of one MetaServer: columns separated by TAB" },
	{ "diff", mc_table_diff, NULL, 0,
	  "READ the tables of all MetaServers and show what they do not have alike; exit code 1 if "
	  "there is something" },
	{ 0 },
};

const struct mc_object mc_object_table = {
	.name = "table",
	.help = "a MetaServer's table, read over RDMA",
	.commands = mc_table_commands,
};
