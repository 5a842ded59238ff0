// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checks of `doctor`: each function examines one thing and reports what is
 * wrong, why it matters and what to do. Pure: only the probe is read here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/metactl/judge.h"
#include "common/auth.h"

#define MC_MEMLOCK_BASE (1ULL << 20) /* queues and buffers of a context */
#define MC_CLOCK_SLACK_NS 2000000000ULL
#define MC_TICKS_PER_LEASE 10
#define MC_SLOW_RTT_NS 10000000ULL

static void mc_check_config(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	size_t i;

	for (i = 0; i < p->conf_errors_nr; i++) {
		bool missing = p->conf_error == -ENOENT;

		mc_about(j, missing && !p->conf_needed ? MC_CHECK_WARN : MC_CHECK_FAIL, "%s",
			 p->conf_file);
		mc_cause(j, "%s", p->conf_errors[i]);
		if (missing)
			mc_remedy(j,
				  "create it with metaservers = ... below [node]; krcore.conf(5)");
		else if (p->conf_error == -EACCES)
			mc_remedy(j, "make it readable for this user: chmod a+r %s", p->conf_file);
		else
			mc_remedy(j, "correct the line; krcore-metactl config check %s",
				  p->conf_file);
		mc_say(j);
	}
	if (!p->conf_errors_nr) {
		mc_about(j, MC_CHECK_OK, "%s", p->conf_file);
		mc_cause(j, "no errors");
		mc_say(j);
	}
}

static void mc_check_module(struct mc_judge *j, const char *module, bool works, const char *what)
{
	mc_about(j, works ? MC_CHECK_OK : MC_CHECK_FAIL, "%s", module);
	if (works) {
		mc_cause(j, "%s is there", what);
	} else {
		mc_cause(j, "%s is not there: the kernel module is not loaded", what);
		mc_remedy(j, "modprobe %s; the package rdma-core loads it at boot", module);
	}
	mc_say(j);
}

static void mc_check_modules(struct mc_judge *j)
{
	mc_check_module(j, "ib_uverbs", j->probe->class_verbs, "user-space verbs");
	mc_check_module(j, "rdma_ucm", j->probe->class_cm, "user-space connection manager");
}

static void mc_check_node(struct mc_judge *j, const struct mc_device_node *node)
{
	mc_about(j, node->error ? MC_CHECK_FAIL : MC_CHECK_OK, "%s", node->path);
	if (!node->error) {
		mc_cause(j, "can be opened");
	} else if (node->error == -ENOENT) {
		mc_cause(j, "does not exist");
		mc_remedy(j, "udev should make it; in a container, pass /dev/infiniband in");
	} else if (node->error == -EACCES || node->error == -EPERM) {
		mc_cause(j, "may not be opened by this user (%s)", strerror(-node->error));
		mc_remedy(j, "its mode should be 0666, or join its group; a device cgroup "
			     "(DeviceAllow=) may also forbid it");
	} else {
		mc_cause(j, "cannot be opened (%s)", strerror(-node->error));
		mc_remedy(j, "see the kernel log: dmesg");
	}
	mc_say(j);
}

static void mc_check_nodes(struct mc_judge *j)
{
	size_t i;

	for (i = 0; i < j->probe->nodes_nr; i++)
		mc_check_node(j, &j->probe->nodes[i]);
}

static void mc_check_devices(struct mc_judge *j)
{
	size_t nr = j->probe->rdma.devices_nr;

	mc_about(j, nr ? MC_CHECK_OK : MC_CHECK_FAIL, "%s", "RDMA devices");
	if (nr) {
		mc_cause(j, "%zu found", nr);
	} else {
		mc_cause(j, "there is none");
		mc_remedy(j, "load the driver of the NIC (such as mlx5_ib); without an RDMA NIC: "
			     "rdma link add rxe0 type rxe netdev INTERFACE");
	}
	mc_say(j);
}

static bool mc_port_active(const struct mc_port *port)
{
	return !strcmp(port->state, "ACTIVE");
}

static size_t mc_ports_active(const struct mc_rdma *rdma)
{
	size_t i, nr = 0;

	for (i = 0; i < rdma->ports_nr; i++)
		nr += mc_port_active(&rdma->ports[i]);
	return nr;
}

static void mc_check_port(struct mc_judge *j, const struct mc_port *port, bool others)
{
	bool ethernet = !strcmp(port->link, "Ethernet");
	bool up = mc_port_active(port);

	mc_about(j,
		 up	  ? MC_CHECK_OK
		 : others ? MC_CHECK_WARN
			  : MC_CHECK_FAIL,
		 "%s/%u", port->device, port->number);
	mc_cause(j, "port is %s%s%s%s", *port->state ? port->state : "in an unknown state",
		 *port->phys_state ? " (" : "", port->phys_state, *port->phys_state ? ")" : "");
	if (up)
		;
	else if (ethernet)
		mc_remedy(j,
			  "bring its network device up (ip link set DEV up) and check the cable");
	else if (!strcmp(port->state, "INIT"))
		mc_remedy(j,
			  "the link works but no subnet manager has configured it: start opensm");
	else
		mc_remedy(j, "check the cable and the switch");
	mc_say(j);
}

static void mc_check_ports(struct mc_judge *j)
{
	const struct mc_rdma *rdma = &j->probe->rdma;
	bool others = mc_ports_active(rdma) > 0;
	size_t i;

	for (i = 0; i < rdma->ports_nr; i++)
		mc_check_port(j, &rdma->ports[i], others);
	if (rdma->devices_nr && !rdma->ports_nr) {
		mc_about(j, MC_CHECK_FAIL, "%s", "ports");
		mc_cause(j, "no device has a port");
		mc_remedy(j, "see the kernel log: dmesg");
		mc_say(j);
	}
}

static bool mc_link_local(const struct mc_gid *gid)
{
	return gid->gid[0] == 0xfe && (gid->gid[1] & 0xc0) == 0x80;
}

static void mc_check_gids_of(struct mc_judge *j, const struct mc_port *port, bool others)
{
	bool ethernet = !strcmp(port->link, "Ethernet");
	size_t i, routable = 0;

	for (i = 0; i < port->gids_nr; i++)
		routable += !mc_link_local(&port->gids[i]);
	mc_about(j, MC_CHECK_OK, "%s/%u", port->device, port->number);
	if (!port->gids_nr) {
		j->finding.verdict = others ? MC_CHECK_WARN : MC_CHECK_FAIL;
		mc_cause(j, "the GID table is empty");
		mc_remedy(j, "%s",
			  ethernet ? "give its network device an address: ip address add "
				     "ADDRESS/LEN dev DEV"
				   : "the subnet manager assigns GIDs: is it running?");
	} else if (ethernet && !routable) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j, "%zu GIDs, all link-local", port->gids_nr);
		mc_remedy(j, "rdma_cm uses the GID of an IP address: give its network device one");
	} else {
		mc_cause(j, "%zu GIDs", port->gids_nr);
	}
	mc_say(j);
}

static void mc_check_gids(struct mc_judge *j)
{
	const struct mc_rdma *rdma = &j->probe->rdma;
	size_t i, with = 0;

	for (i = 0; i < rdma->ports_nr; i++)
		with += mc_port_active(&rdma->ports[i]) && rdma->ports[i].gids_nr;
	for (i = 0; i < rdma->ports_nr; i++)
		if (mc_port_active(&rdma->ports[i]))
			mc_check_gids_of(j, &rdma->ports[i], with > 0);
}

/* Locked memory of a context: its buffers and a copy of the largest directory, twice at growth. */
static uint64_t mc_memlock_need(const struct mc_probe *p)
{
	uint64_t need, most = 0;
	size_t i;

	for (i = 0; i < p->servers_nr; i++) {
		need = p->servers[i].depth < 32 ? 2 * (8ULL << p->servers[i].depth) : 0;
		most = need > most ? need : most;
	}
	return MC_MEMLOCK_BASE + most;
}

static void mc_check_memlock(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	uint64_t need = mc_memlock_need(p);

	mc_about(j, MC_CHECK_OK, "%s", "RLIMIT_MEMLOCK");
	if (p->memlock_free || p->memlock_bytes == UINT64_MAX) {
		mc_cause(j, "%s", p->memlock_free ? "does not bind this user" : "unlimited");
		mc_say(j);
		return;
	}
	mc_cause(j, "%" PRIu64 " KiB, and a context needs %" PRIu64 " KiB", p->memlock_bytes >> 10,
		 need >> 10);
	if (p->memlock_bytes < 4 * need) {
		j->finding.verdict = p->memlock_bytes < need ? MC_CHECK_FAIL : MC_CHECK_WARN;
		mc_remedy(j, "raise it: ulimit -l, LimitMEMLOCK= of the unit, or memlock in "
			     "/etc/security/limits.conf");
	}
	mc_say(j);
}

static void mc_check_key(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;

	mc_about(j, MC_CHECK_OK, "%s", *p->key_file ? p->key_file : "cluster key");
	if (!*p->key_file || (p->key_error == -ENOENT && p->key_default)) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j, "no cluster key: anyone on the fabric can read and publish");
		mc_remedy(j, "krcore-metactl key new on one machine, the same file on all others, "
			     "and require_auth = yes");
	} else if (!p->key_error) {
		mc_cause(j, "is readable and well-formed");
	} else {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "cannot be used (%s)", kru_keys_error(p->key_error));
		if (p->key_error == -ENOENT)
			mc_remedy(j, "copy it from a MetaServer, or correct key_file below [node]");
		else if (p->key_error == -EACCES)
			mc_remedy(j, "run as root, or join the group of the file (krcore)");
		else if (p->key_error == -ENXIO)
			mc_remedy(j, "run this with the key: systemd-run --pty "
				     "--property=LoadCredential=NAME:FILE krcore-metactl doctor");
		else if (p->key_error == -EPERM)
			mc_remedy(j,
				  "its mode %04o lets others read or write it: chmod 0640 %s, and "
				  "make a new key if they may have read it",
				  p->key_mode, p->key_file);
		else
			mc_remedy(j, "it must have a line of 32 to 128 hexadecimal digits for each "
				     "key, as krcore-metactl key new makes it");
	}
	mc_say(j);
}

static void mc_rdma_netdevs(const struct mc_rdma *rdma, char *buf, size_t bytes)
{
	size_t i, k, len = 0;

	*buf = '\0';
	for (i = 0; i < rdma->ports_nr; i++)
		for (k = 0; k < rdma->ports[i].gids_nr; k++) {
			const char *name = rdma->ports[i].gids[k].netdev;

			if (!*name || strstr(buf, name) || len + strlen(name) + 3 > bytes)
				continue;
			len += (size_t)snprintf(buf + len, bytes - len, "%s%s", len ? ", " : "",
						name);
		}
}

static void mc_check_endpoint(struct mc_judge *j, const struct mc_endpoint *e)
{
	char names[128];

	mc_about(j, MC_CHECK_OK, "%s", e->address);
	mc_rdma_netdevs(&j->probe->rdma, names, sizeof(names));
	if (e->route_error) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "no route to %s (%s)", e->host, strerror(-e->route_error));
		mc_remedy(j, "give a port an address in its subnet, or add a route");
	} else if (!e->rdma) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "the route to %s leaves from %s by %s, which no RDMA port uses",
			 e->host, e->source, *e->netdev ? e->netdev : "an unknown device");
		mc_remedy(j, "wrong subnet: name the server by an address that is reached by %s",
			  *names ? names : "an RDMA device");
	} else {
		mc_cause(j, "%s is reached from %s by %s", e->host, e->source, e->netdev);
	}
	mc_say(j);
}

static void mc_check_routes(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	size_t i;

	mc_about(j, MC_CHECK_FAIL, "%s", *p->servers_text ? p->servers_text : "metaservers");
	if (*p->servers_why) {
		mc_cause(j, "%s", p->servers_why);
		mc_remedy(j, "write host[:port][/priority], ... or srv:NAME; krcore.conf(5)");
		mc_say(j);
	} else if (!*p->servers_text) {
		mc_cause(j, "no MetaServer is configured");
		mc_remedy(j, "set metaservers below [node] of %s, or use -S", p->conf_file);
		mc_say(j);
	} else if (p->resolve_error) {
		mc_cause(j, "no address found (%s)",
			 p->resolve_error == -ENOENT ? "no such name"
						     : strerror(-p->resolve_error));
		mc_remedy(
			j,
			"check the spelling: getent -s files hosts NAME || getent -s dns hosts NAME");
		mc_say(j);
	}
	for (i = 0; i < p->endpoints_nr; i++)
		mc_check_endpoint(j, &p->endpoints[i]);
}

static const char *mc_attach_remedy(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
	case -EKEYREJECTED:
		return "the keys differ, or only one side has one: copy the cluster key of the "
		       "server here, or remove both";
	case -ECONNREFUSED:
		return "nothing accepts connections there: systemctl status krcore-metaserver on "
		       "the server, and compare its port";
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "is the host up, and may UDP port 4791 (RoCE v2) pass? ping it, then rping";
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EOPNOTSUPP:
		return "versions of krcore differ: compare krcore-metactl --version on both";
	case -ENOMEM:
		return "no memory to register: see RLIMIT_MEMLOCK";
	case -ESHUTDOWN:
		return "it comes back when its operator is done (krcore-metactl server undrain "
		       "there); the other servers do meanwhile";
	case -EUSERS:
	case -EBUSY:
		return "the server is at a limit: clients_max or rate_max of its krcore.conf";
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return "no RDMA device serves the route to it";
	default:
		return "see the log of the server: journalctl -u krcore-metaserver";
	}
}

static void mc_check_server(struct mc_judge *j, const struct krcore_server_info *s)
{
	mc_about(j, MC_CHECK_OK, "%s", s->address);
	if (s->state == KRCORE_SERVER_UP) {
		mc_cause(j, "attached, %" PRIu64 " records, a READ takes %" PRIu64 " us",
			 s->records, s->rtt_ns / 1000);
		if (s->rtt_ns > MC_SLOW_RTT_NS) {
			j->finding.verdict = MC_CHECK_WARN;
			mc_remedy(j,
				  "that is slow: is it another site, or is the link overloaded?");
		}
	} else if (s->last_error) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "not attached: %s",
			 *s->error_text ? s->error_text : strerror(-s->last_error));
		mc_remedy(j, "%s", mc_attach_remedy(s->last_error));
	} else {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "no answer within %u ms", j->probe->timeout_ms);
		mc_remedy(j, "%s", mc_attach_remedy(-ETIMEDOUT));
	}
	mc_say(j);
}

static void mc_check_attach(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	size_t i;

	if (p->open_error) {
		mc_about(j, MC_CHECK_FAIL, "%s", "libkrcore");
		mc_cause(j, "%s", *p->open_text ? p->open_text : strerror(-p->open_error));
		mc_remedy(j, "%s",
			  p->open_error == -EINVAL || p->open_error == -ENOENT
				  ? "correct the configuration as said above"
				  : mc_attach_remedy(p->open_error));
		mc_say(j);
	}
	for (i = 0; i < p->servers_nr; i++)
		mc_check_server(j, &p->servers[i]);
}

static uint64_t mc_slowest_ns(const struct mc_probe *p)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < p->servers_nr; i++)
		if (p->servers[i].rtt_ns > most)
			most = p->servers[i].rtt_ns;
	return most;
}

/* A lease is renewed after a fraction of it: a tick and a round trip must be small against that. */
static void mc_check_lease(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	uint64_t rtt_ms = mc_slowest_ns(p) / 1000000;

	mc_about(j, MC_CHECK_OK, "%u ms", p->lease_ms);
	mc_cause(j, "tick %u ms, round trip %" PRIu64 " ms", p->tick_ms, rtt_ms);
	if (p->lease_ms < MC_TICKS_PER_LEASE * (uint64_t)p->tick_ms) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j,
			 "the lease is less than %d ticks of %u ms: it may expire between two "
			 "renewals",
			 MC_TICKS_PER_LEASE, p->tick_ms);
		mc_remedy(j, "raise lease_ms or lower tick_ms");
	} else if (rtt_ms * 4 > p->lease_ms) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "a round trip takes %" PRIu64 " ms: renewals come too late", rtt_ms);
		mc_remedy(j, "raise lease_ms to at least %" PRIu64, rtt_ms * 10);
	} else if (p->reconnect_max_ms > p->lease_ms) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j,
			 "reconnect_max_ms is %u: after a break the records may expire before "
			 "the next try",
			 p->reconnect_max_ms);
		mc_remedy(j, "set reconnect_max_ms below a third of the lease");
	} else if (p->lease_ms / 3 > p->idle_ms) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j, "renewals every %u ms are rarer than idle_timeout_ms %u",
			 p->lease_ms / 3, p->idle_ms);
		mc_remedy(j, "raise idle_timeout_ms above the lease");
	} else if (p->node_timeout_ms > p->lease_ms) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j,
			 "timeout_ms %u is longer than the lease: a lost renewal is noticed too "
			 "late",
			 p->node_timeout_ms);
		mc_remedy(j, "set timeout_ms below a third of the lease");
	}
	mc_say(j);
}

/* Leases run on the server's own clock; the wall clock matters as boot generation. */
static void mc_check_clock(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;

	mc_about(j, MC_CHECK_OK, "%s", "wall clock");
	if (p->published_ns > p->now_ns + MC_CLOCK_SLACK_NS) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j,
			 "it is %" PRIu64 " s behind a record already published for %s: what this "
			 "node publishes is refused as stale",
			 (p->published_ns - p->now_ns) / 1000000000, p->published_gid);
		mc_remedy(j,
			  "set the clock (timedatectl), or let the lease of that record run out");
	} else if (p->now_ns < p->built_ns) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j, "it is set to a time before this program was made: the boot generation "
			    "of this node will not grow");
		mc_remedy(j, "set the clock: timedatectl set-ntp true");
	} else {
		mc_cause(j, "boot generations grow");
	}
	mc_say(j);
}

static void mc_check_kernel_port(struct mc_judge *j, const struct mc_module_port *port, bool others)
{
	mc_about(j, MC_CHECK_OK, "%s/%u", port->device, port->number);
	if (!port->up) {
		j->finding.verdict = others ? MC_CHECK_WARN : MC_CHECK_FAIL;
		mc_cause(j, "no queues over this port: it is %s%s%s", port->state,
			 *port->reason ? ": " : "", port->reason);
		mc_remedy(j, "queues need a NIC with DC (ConnectX-4 or later) whose port has link "
			     "and GID; look-ups and records work without");
	} else if (!port->sessions) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "the module was given no MetaServer");
		mc_remedy(j, "set metaservers below [node] of krcore.conf, then krcore-metactl "
			     "node up");
	} else if (!port->ready) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "none of the module's %u MetaServers is ready: %s", port->sessions,
			 port->session);
		mc_remedy(j, "see the findings of server and key; krcore-metactl node show");
	} else if (port->ready < port->sessions) {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(j, "%u of the module's %u MetaServers are not ready: %s",
			 port->sessions - port->ready, port->sessions, port->session);
		mc_remedy(j, "see the findings of server; krcore-metactl node show");
	} else {
		mc_cause(j, "is up, its %u MetaServers are ready", port->sessions);
	}
	mc_say(j);
}

/* The module and its node; ports only if there is something to report about them. */
static void mc_check_kernel_node(struct mc_judge *j)
{
	const struct mc_module_probe *m = &j->probe->module;
	enum mc_verdict bad = m->enabled ? MC_CHECK_FAIL : MC_CHECK_WARN;

	mc_about(j, MC_CHECK_OK, "%s", "krcore");
	if (!m->loaded && !m->enabled) {
		mc_cause(j, "is not loaded, and krcore-node.service is not enabled: no queues on "
			    "this node, which look-ups and records do not need");
	} else if (!m->loaded) {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "is not loaded, but krcore-node.service is enabled");
		mc_remedy(j, "modprobe krcore; systemctl status krcore-node; is krcore-dkms "
			     "installed and built for this kernel (dkms status)?");
	} else if (m->error) {
		j->finding.verdict = bad;
		mc_cause(j, "does not answer: %s", m->text);
		mc_remedy(j, "ask it in the initial network namespace; versions of module and "
			     "tools must fit");
	} else if (!m->up) {
		j->finding.verdict = bad;
		mc_cause(j, "is loaded, but the node is down");
		mc_remedy(j, "systemctl start krcore-node, or krcore-metactl node up");
	} else {
		mc_cause(j, "is loaded, and the node is up");
	}
	mc_say(j);
}

static void mc_check_kernel_device(struct mc_judge *j)
{
	const struct mc_device_node *device = &j->probe->module.device;

	mc_about(j, MC_CHECK_OK, "%s", device->path);
	if (!device->error) {
		mc_cause(j, "can be opened");
	} else {
		j->finding.verdict = MC_CHECK_FAIL;
		mc_cause(j, "cannot be opened (%s)", strerror(-device->error));
		mc_remedy(j, device->error == -ENOENT
				     ? "udev should make it; in a container, pass it in"
				     : "its mode should be 0666: is the udev rule of krcore-node "
				       "installed? A device cgroup (DeviceAllow=) may forbid it");
	}
	mc_say(j);
}

static void mc_check_kernel(struct mc_judge *j)
{
	const struct mc_module_probe *m = &j->probe->module;
	size_t i, up = 0;

	mc_check_kernel_node(j);
	if (!m->loaded)
		return;
	mc_check_kernel_device(j);
	for (i = 0; i < m->ports_nr; i++)
		up += m->ports[i].up;
	for (i = 0; m->up && i < m->ports_nr; i++)
		mc_check_kernel_port(j, &m->ports[i], up > 0);
	if (m->up && !m->ports_nr) {
		mc_about(j, MC_CHECK_FAIL, "%s", "ports");
		mc_cause(j, "the module has no RDMA port");
		mc_remedy(j, "load the driver of the NIC (mlx5_ib); does device below [node] name "
			     "one that exists?");
		mc_say(j);
	}
}

unsigned int mc_check_all(const struct mc_probe *probe, mc_finding_fn *fn, void *arg)
{
	static const struct {
		const char *check;
		void (*run)(struct mc_judge *j);
	} checks[] = {
		{ "config", mc_check_config },
		{ "driver", mc_check_driver },
		{ "signature", mc_check_signature },
		{ "module", mc_check_modules },
		{ "devnode", mc_check_nodes },
		{ "device", mc_check_devices },
		{ "port", mc_check_ports },
		{ "gid", mc_check_gids },
		{ "fabric", mc_check_fabric },
		{ "memlock", mc_check_memlock },
		{ "key", mc_check_key },
		{ "route", mc_check_routes },
		{ "server", mc_check_attach },
		{ "record", mc_check_records },
		{ "lease", mc_check_lease },
		{ "clock", mc_check_clock },
		{ "kernel", mc_check_kernel },
	};
	struct mc_judge j = { .probe = probe, .fn = fn, .arg = arg };
	size_t i;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		j.check = checks[i].check;
		checks[i].run(&j);
	}
	return j.failed;
}
