// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * node: this node's view: the kernel module (module_show.c, module_up.c), MetaServers
 * as libkrcore sees them, RDMA devices, ports and GIDs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/module.h"
#include "client/metactl/node.h"
#include "client/metactl/sysfs.h"
#include "common/gid.h"

void mc_put_servers(struct mc *mc, const struct krcore_server_info *servers, int nr)
{
	struct mc_out *out = mc->out;
	int i;

	for (i = 0; i < nr; i++) {
		const struct krcore_server_info *s = &servers[i];
		bool up = s->state == KRCORE_SERVER_UP;

		mc_row(out);
		mc_put_number(out, "server", 0, (uint64_t)i);
		mc_put_text(out, "address", 0, s->address);
		mc_put_text(out, "state", up ? MC_GOOD : MC_BAD, mc_server_state(s->state));
		mc_put_number(out, "priority", 0, s->priority);
		mc_put_number(out, "records", 0, s->records);
		mc_put_number(out, "settling_ms", MC_DETAIL, s->settling_ms);
		mc_put_number(out, "rtt_ns", 0, s->rtt_ns);
		mc_put_number(out, "attaches", MC_DETAIL, s->attaches);
		mc_put_number(out, "depth", MC_DETAIL, s->depth);
		mc_put_format(out, "incarnation", MC_DETAIL, "%016" PRIx64, s->incarnation);
		mc_put_signed(out, "last_errno", MC_DETAIL, s->last_error);
		mc_put_text(out, "last_error", MC_BELOW, s->last_error ? s->error_text : NULL);
	}
}

static void mc_put_ports(struct mc *mc, const struct mc_rdma *rdma)
{
	struct mc_out *out = mc->out;
	size_t i;

	mc_out_table(out, MC_TABLE, "port");
	for (i = 0; i < rdma->ports_nr; i++) {
		const struct mc_port *p = &rdma->ports[i];

		mc_row(out);
		mc_put_text(out, "device", 0, p->device);
		mc_put_number(out, "port", 0, p->number);
		mc_put_text(out, "state", strcmp(p->state, "ACTIVE") ? MC_BAD : MC_GOOD, p->state);
		mc_put_text(out, "phys_state", 0, p->phys_state);
		mc_put_text(out, "link", 0, p->link);
		mc_put_text(out, "rate", 0, p->rate);
		mc_put_number(out, "lid", MC_DETAIL, p->lid);
		mc_put_number(out, "gids", 0, p->gids_nr);
	}
}

static void mc_put_gids(struct mc *mc, const struct mc_rdma *rdma)
{
	struct mc_out *out = mc->out;
	char text[KRU_GID_TEXT];
	size_t i, k;

	mc_out_table(out, MC_TABLE, "gid");
	for (i = 0; i < rdma->ports_nr; i++)
		for (k = 0; k < rdma->ports[i].gids_nr; k++) {
			const struct mc_gid *g = &rdma->ports[i].gids[k];

			mc_row(out);
			mc_put_text(out, "device", 0, rdma->ports[i].device);
			mc_put_number(out, "port", 0, rdma->ports[i].number);
			mc_put_number(out, "index", 0, g->index);
			mc_put_text(out, "gid", 0, kru_gid_format(g->gid, text));
			mc_put_text(out, "gid_type", 0, *g->type ? g->type : NULL);
			mc_put_text(out, "netdev", 0, *g->netdev ? g->netdev : NULL);
		}
}

static int mc_node_servers(struct mc *mc)
{
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT };
	struct krcore_server_info *servers;
	int i, nr, up = 0;

	if (mc_attach(mc, &opts))
		return MC_FAILED;
	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	mc_out_table(mc->out, MC_TABLE, "server");
	mc_put_servers(mc, servers, nr);
	for (i = 0; i < nr; i++)
		up += servers[i].state == KRCORE_SERVER_UP;
	free(servers);
	return up ? MC_OK : mc_error(mc, "no MetaServer is attached; see krcore-metactl doctor");
}

static int mc_node_show(struct mc *mc)
{
	struct mc_rdma rdma;
	int ret, module;

	module = mc_module_show(mc);
	ret = mc_node_servers(mc);
	ret = ret ? ret : module;
	if (mc_rdma_scan(MC_SYSFS, &rdma))
		return mc_error(mc, "no memory");
	mc_put_ports(mc, &rdma);
	mc_put_gids(mc, &rdma);
	mc_rdma_free(&rdma);
	return ret;
}

static const struct mc_command mc_node_commands[] = {
	{ "show", mc_node_show, NULL, 0,
	  "The kernel module, its ports and its MetaServers; those of libkrcore; RDMA ports and GIDs" },
	{ "up", mc_module_up, NULL, 0,
	  "Configure the kernel module from krcore.conf, or configure it anew" },
	{ "refresh", mc_module_refresh, NULL, 0,
	  "Ask for the names of the MetaServers again, and tell the kernel module if one has moved" },
	{ "down", mc_module_down, NULL, 0,
	  "Withdraw what the kernel module has published, and close all its queues" },
	{ 0 },
};

const struct mc_object mc_object_node = {
	.name = "node",
	.help = "this node: kernel module, MetaServers, RDMA ports and GIDs",
	.commands = mc_node_commands,
};
