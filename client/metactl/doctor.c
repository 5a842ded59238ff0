// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * doctor: look at everything that a look-up needs and say what is wrong, why,
 * and what to do. Gathered by probe.c, and here over RDMA; judged by checks.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/metactl.h"
#include "client/metactl/probe.h"
#include "common/gid.h"

struct mc_doctor {
	struct mc *mc;
	bool all;
};

static void mc_show_finding(void *arg, const struct mc_finding *f)
{
	static const char *const words[] = { "OK", "WARN", "FAIL" };
	static const unsigned int colours[] = { MC_GOOD, MC_WARN, MC_BAD };
	const struct mc_doctor *d = arg;
	struct mc_out *out = d->mc->out;

	if (!d->all && f->verdict == MC_CHECK_OK)
		return;
	mc_row(out);
	mc_put_text(out, "verdict", colours[f->verdict], words[f->verdict]);
	mc_put_text(out, "check", 0, f->check);
	mc_put_text(out, "subject", 0, f->subject);
	mc_put_text(out, "cause", 0, f->cause);
	mc_put_text(out, "remedy", MC_BELOW, *f->remedy ? f->remedy : NULL);
}

/* The newest generation under which one of our own GIDs is known. */
static void mc_probe_published(struct mc *mc, struct mc_probe *probe)
{
	struct krcore_key key = { .service = KRCORE_SERVICE_NODE };
	struct krcore_value value;
	size_t i, k;

	for (i = 0; i < probe->rdma.ports_nr; i++)
		for (k = 0; k < probe->rdma.ports[i].gids_nr; k++) {
			memcpy(key.gid, probe->rdma.ports[i].gids[k].gid, sizeof(key.gid));
			if (krcore_lookup(mc->krcore, &key, &value, NULL) ||
			    value.generation <= probe->published_ns)
				continue;
			probe->published_ns = value.generation;
			kru_gid_format(key.gid, probe->published_gid);
		}
}

/* Attach to the MetaServers, and look for records of our own. */
static void mc_probe_attach(struct mc *mc, struct mc_probe *probe)
{
	struct krcore_options opts = { .flags = KRCORE_OPEN_NOWAIT };
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
			mc_probe_published(mc, probe);
			return;
		}
}

static int mc_doctor(struct mc *mc)
{
	static const struct mc_places places = { .sysfs = MC_SYSFS, .dev = "/dev/infiniband" };
	struct mc_doctor d = { .mc = mc, .all = !mc_get(mc, "problems") };
	struct mc_probe *probe;
	unsigned int failed;

	probe = calloc(1, sizeof(*probe));
	if (!probe || mc_probe_host(&places, probe)) {
		mc_probe_free(probe);
		return mc_error(mc, "no memory");
	}
	mc_probe_config(mc->config ? mc->config : MC_CONFIG_FILE, mc->servers, probe);
	mc_probe_routes(&places, mc->timeout_ms, probe);
	mc_probe_attach(mc, probe);

	mc_out_table(mc->out, MC_TABLE, NULL);
	failed = mc_check_all(probe, mc_show_finding, &d);
	mc_probe_free(probe);
	return failed ? MC_FAILED : MC_OK;
}

static const struct mc_param mc_doctor_params[] = {
	{ "problems", MC_FLAG, 0, 0, 0, "show only what is not well" },
	{ 0 },
};

static const struct mc_command mc_doctor_commands[] = {
	{ "", mc_doctor, mc_doctor_params, 0,
	  "Check devices, ports, GIDs, limits, keys, routes, servers, leases and clock; exit code 1 if "
	  "something fails" },
	{ 0 },
};

const struct mc_object mc_object_doctor = {
	.name = "doctor",
	.help = "find out what is wrong, and what to do",
	.commands = mc_doctor_commands,
};
