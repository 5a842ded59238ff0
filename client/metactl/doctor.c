// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * doctor: examine everything that a look-up needs and report what is wrong, why, and
 * what to do. probe.c gathers the facts, this file those over RDMA; checks.c checks them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>

#include "client/metactl/metactl.h"
#include "client/metactl/module.h"
#include "client/metactl/probe.h"
#include "common/gid.h"

struct mc_doctor {
	struct mc *mc;
	enum mc_verdict shown;
};

static void mc_show_finding(void *arg, const struct mc_finding *f)
{
	static const char *const words[] = { "OK", "WARN", "FAIL" };
	static const unsigned int colours[] = { MC_GOOD, MC_WARN, MC_BAD };
	const struct mc_doctor *d = arg;
	struct mc_out *out = d->mc->out;

	if (f->verdict != d->shown)
		return;
	mc_row(out);
	mc_put_text(out, "verdict", colours[f->verdict], words[f->verdict]);
	mc_put_text(out, "check", 0, f->check);
	mc_put_text(out, "subject", 0, f->subject);
	mc_put_text(out, "cause", 0, f->cause);
	mc_put_text(out, "remedy", MC_BELOW, *f->remedy ? f->remedy : NULL);
}

/* Look up the record of a GID of this machine at each of the servers separately. */
static void mc_probe_record(struct mc *mc, struct mc_probe *probe, const uint8_t *gid)
{
	struct krcore_key key = { .service = KRCORE_SERVICE_NODE };
	struct mc_record_probe *record;
	struct krcore_value value;
	size_t i;
	int ret;

	if (probe->records_nr == MC_ENDPOINTS_MAX)
		return;
	record = &probe->records[probe->records_nr++];
	memcpy(key.gid, gid, sizeof(key.gid));
	kru_gid_format(gid, record->gid);
	for (i = 0; i < probe->module.ports_nr; i++)
		record->expected |= !strcmp(probe->module.ports[i].gid, record->gid);
	for (i = 0; i < probe->servers_nr && i < 64; i++) {
		ret = krcore_lookup_at(mc->krcore, (unsigned int)i, &key, &value, NULL);
		if (!ret || ret == -ENOENT)
			record->asked |= 1ULL << i;
		if (ret)
			continue;
		record->have |= 1ULL << i;
		if (value.generation > probe->published_ns) {
			probe->published_ns = value.generation;
			memcpy(probe->published_gid, record->gid, sizeof(record->gid));
		}
	}
}

static void mc_probe_records(struct mc *mc, struct mc_probe *probe)
{
	size_t i, k;

	for (i = 0; i < probe->rdma.ports_nr; i++)
		for (k = 0; k < probe->rdma.ports[i].gids_nr; k++)
			mc_probe_record(mc, probe, probe->rdma.ports[i].gids[k].gid);
	/* a miss makes libkrcore READ the root, which says whether the server has settled */
	krcore_servers(mc->krcore, probe->servers, (unsigned int)probe->servers_nr);
}

/* Attach to the MetaServers, and look for records of our own. */
static void mc_probe_attach(struct mc *mc, struct mc_probe *probe)
{
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT | KRCORE_OPEN_DIRECT };
	size_t i;
	int nr;

	probe->timeout_ms = mc->timeout_ms;
	opts.size = sizeof(opts);
	opts.config_file = mc->config;
	opts.servers = mc->servers;
	opts.timeout_ms = mc->timeout_ms;
	probe->open_error = krcore_open(&opts, &mc->krcore);
	if (probe->open_error) {
		snprintf(probe->open_text, sizeof(probe->open_text), "%s", krcore_error_text());
		return;
	}
	nr = mc_servers_wait(mc, &probe->servers);
	if (nr < 0)
		return;
	probe->servers_nr = (size_t)nr;
	for (i = 0; i < probe->servers_nr; i++)
		if (probe->servers[i].state == KRCORE_SERVER_UP) {
			mc_probe_records(mc, probe);
			return;
		}
}

static void mc_probe_node_get(void *arg, const struct nlmsghdr *nlh)
{
	struct mc_module_probe *m = arg;

	m->up = mc_module_u32(nlh, KRP_GENL_A_NODE_UP);
}

static void mc_probe_port_gid(const struct nlmsghdr *nlh, struct mc_module_port *port)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == KRP_GENL_A_PORT_GID &&
		    mnl_attr_get_payload_len(attr) == 16)
			kru_gid_format(mnl_attr_get_payload(attr), port->gid);
}

static void mc_probe_port_get(void *arg, const struct nlmsghdr *nlh)
{
	uint32_t state = mc_module_u32(nlh, KRP_GENL_A_PORT_STATE);
	struct mc_module_probe *m = arg;
	struct mc_module_port *port = &m->ports[m->ports_nr];

	if (m->ports_nr == MC_NODES_MAX)
		return;
	snprintf(port->device, sizeof(port->device), "%s",
		 mc_module_text(nlh, KRP_GENL_A_PORT_DEVICE));
	port->number = mc_module_u32(nlh, KRP_GENL_A_PORT_NUM);
	port->up = state == KRP_GENL_PORT_UP;
	mc_probe_port_gid(nlh, port);
	port->state = mc_module_state(MC_SET_PORT, state);
	snprintf(port->reason, sizeof(port->reason), "%s",
		 mc_module_text(nlh, KRP_GENL_A_PORT_REASON));
	m->ports_nr++;
}

static void mc_probe_server_get(void *arg, const struct nlmsghdr *nlh)
{
	const char *device = mc_module_text(nlh, KRP_GENL_A_SERVER_DEVICE);
	uint32_t number = mc_module_u32(nlh, KRP_GENL_A_SERVER_DEVICE_PORT);
	uint32_t state = mc_module_u32(nlh, KRP_GENL_A_SERVER_STATE);
	struct mc_module_probe *m = arg;
	struct mc_module_port *port;
	size_t i;

	for (i = 0; i < m->ports_nr; i++) {
		port = &m->ports[i];
		if (port->number != number || strcmp(port->device, device) != 0)
			continue;
		port->sessions++;
		port->ready += state == KRP_GENL_SERVER_READY;
		if (state != KRP_GENL_SERVER_READY)
			snprintf(port->session, sizeof(port->session), "%.80s is %s: %.120s",
				 mc_module_text(nlh, KRP_GENL_A_SERVER_NAME),
				 mc_module_state(MC_SET_SERVER, state),
				 mc_module_text(nlh, KRP_GENL_A_SERVER_REASON));
	}
}

/* Get the state of the kernel module. */
static void mc_probe_genl(struct mc_module_probe *m)
{
	static const struct {
		uint8_t cmd;
		uint16_t flags;
		mc_genl_fn *fn;
	} asked[] = {
		{ KRP_GENL_CMD_NODE_GET, 0, mc_probe_node_get },
		{ KRP_GENL_CMD_PORT_GET, NLM_F_DUMP, mc_probe_port_get },
		{ KRP_GENL_CMD_SERVER_GET, NLM_F_DUMP, mc_probe_server_get },
	};
	struct mc_genl *genl;
	size_t i;

	m->error = mc_genl_open(&genl);
	if (m->error) {
		snprintf(m->text, sizeof(m->text), "%s", mc_module_missing(m->error));
		return;
	}
	for (i = 0; i < sizeof(asked) / sizeof(asked[0]) && !m->error; i++) {
		mc_genl_request(genl, asked[i].cmd, asked[i].flags);
		m->error = mc_genl_run(genl, asked[i].fn, m);
	}
	if (m->error)
		snprintf(m->text, sizeof(m->text), "%s", mc_genl_error(genl));
	mc_genl_close(genl);
}

/* Problems first, so that good findings do not hide them. */
static unsigned int mc_doctor_show(struct mc *mc, const struct mc_probe *probe)
{
	struct mc_doctor d = { .mc = mc };
	unsigned int failed;

	mc_out_table(mc->out, MC_TABLE, NULL);
	d.shown = MC_CHECK_FAIL;
	failed = mc_check_all(probe, mc_show_finding, &d);
	d.shown = MC_CHECK_WARN;
	mc_check_all(probe, mc_show_finding, &d);
	if (!mc_get(mc, "problems")) {
		d.shown = MC_CHECK_OK;
		mc_check_all(probe, mc_show_finding, &d);
	}
	return failed;
}

static int mc_doctor(struct mc *mc)
{
	static const struct mc_places places = { .sysfs = MC_SYSFS,
						 .dev = "/dev/infiniband",
						 .krcore = "/dev/krcore",
						 .units = "/etc/systemd/system",
						 .modules = "/lib/modules" };
	struct mc_probe *probe;
	unsigned int failed;

	probe = calloc(1, sizeof(*probe));
	if (!probe || mc_probe_host(&places, probe)) {
		mc_probe_free(probe);
		return mc_error(mc, "no memory");
	}
	mc_probe_system(&places, probe);
	mc_probe_module(&places, probe);
	if (probe->module.loaded)
		mc_probe_genl(&probe->module);
	mc_probe_config(mc->config ? mc->config : MC_CONFIG_FILE, mc->servers, probe);
	mc_probe_routes(&places, mc->timeout_ms, probe);
	mc_probe_attach(mc, probe);

	failed = mc_doctor_show(mc, probe);
	mc_probe_free(probe);
	return failed ? MC_FAILED : MC_OK;
}

static const struct mc_param mc_doctor_params[] = {
	{ "problems", MC_FLAG, 0, 0, 0, "show only what is not well" },
	{ 0 },
};

static const struct mc_command mc_doctor_commands[] = {
	{ "", mc_doctor, mc_doctor_params, 0,
	  "Check devices, ports, GIDs, limits, keys, routes, servers, records, leases, clock, the "
	  "network's classes and the kernel module; problems first; exit code 1 if something "
	  "fails" },
	{ 0 },
};

const struct mc_object mc_object_doctor = {
	.name = "doctor",
	.help = "find out what is wrong, and what to do",
	.commands = mc_doctor_commands,
};
