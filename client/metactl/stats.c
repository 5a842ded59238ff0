// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * stats: counters of the daemon on this machine, of a context of libkrcore, or of the
 * kernel module (module_show.c).
 */
#include <stdlib.h>

#include "client/metactl/local.h"
#include "client/metactl/module.h"
#include "client/metactl/node.h"

static void mc_put_stats(struct mc_out *out, const struct krcore_stats *s)
{
	const struct {
		const char *key;
		uint64_t value;
	} cells[] = {
		{ "lookups", s->lookups },     { "hits", s->hits },
		{ "misses", s->misses },       { "misses_overruled", s->misses_overruled },
		{ "errors", s->errors },       { "reads", s->reads },
		{ "torn", s->torn },	       { "stale", s->stale },
		{ "fallbacks", s->fallbacks }, { "failovers", s->failovers },
		{ "attaches", s->attaches },   { "publishes", s->publishes },
		{ "renewals", s->renewals },   { "notifications", s->notifications },
	};
	size_t i;

	mc_row(out);
	for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		mc_put_number(out, cells[i].key, 0, cells[i].value);
}

static int mc_stats(struct mc *mc)
{
	struct krcore_server_info *servers;
	struct krcore_stats stats = { .size = sizeof(stats) };
	int nr;

	if (mc_is_local(mc)) {
		mc_out_table(mc->out, MC_BLOCK, NULL);
		return mc_local_rows(mc, "stats", NULL, NULL, 0);
	}
	if (mc_attach(mc, NULL))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	krcore_stats(mc->krcore, &stats);
	mc_out_table(mc->out, MC_BLOCK, "context");
	mc_put_stats(mc->out, &stats);
	mc_out_table(mc->out, MC_TABLE, "server");
	mc_put_servers(mc, servers, nr);
	free(servers);
	return MC_OK;
}

static bool mc_prometheus_text(void *arg, json_t *item)
{
	const char *text = json_string_value(json_object_get(item, "text"));

	if (text)
		fputs(text, arg);
	return true;
}

/* The text format has line ends, so as text it is written as it is. */
static int mc_stats_prometheus(struct mc *mc)
{
	int ret;

	ret = mc_local_must(mc);
	if (ret)
		return ret;
	if (mc->json)
		return mc_local_rows(mc, "metrics", NULL, NULL, 0);
	return mc_local_each(mc, "metrics", NULL, mc_prometheus_text, stdout);
}

static const struct mc_command mc_stats_commands[] = {
	{ "show", mc_stats, NULL, 0,
	  "Counters of the daemon on this machine; without one, or with -S, those of an attachment" },
	{ "node", mc_module_stats, NULL, 0,
	  "Counters of the kernel module: queues, cache, initiators, users" },
	{ "prometheus", mc_stats_prometheus, NULL, 0,
	  "The daemon's metrics in the text format of Prometheus" },
	{ 0 },
};

const struct mc_object mc_object_stats = {
	.name = "stats",
	.help = "counters",
	.commands = mc_stats_commands,
};
