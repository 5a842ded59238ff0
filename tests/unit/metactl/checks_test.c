// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The judgement of `doctor`: a healthy node passes, and each single thing that
 * is wrong with it is found, named, and comes with something to do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metactl/checks.h"

#define FINDINGS_MAX 64

static struct mc_gid gids[2];
static struct mc_port ports[2];
static struct krcore_server_info servers[2];
static struct mc_probe p;
static struct mc_finding found[FINDINGS_MAX];
static unsigned int found_nr;
static unsigned int failed;

/* A node on which all is well. */
static int healthy(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	memset(ports, 0, sizeof(ports));
	memset(servers, 0, sizeof(servers));
	gids[0] = (struct mc_gid){ .gid = { 0xfe, 0x80, [15] = 1 }, .netdev = "eth0" };
	gids[1] =
		(struct mc_gid){ .gid = { [10] = 0xff, 0xff, 192, 168, 77, 1 }, .netdev = "eth0" };
	ports[0] = (struct mc_port){ .device = "rxe0",
				     .number = 1,
				     .state = "ACTIVE",
				     .phys_state = "LinkUp",
				     .link = "Ethernet",
				     .gids = gids,
				     .gids_nr = 2 };
	servers[0] = (struct krcore_server_info){ .address = "192.168.77.2:18600",
						  .state = KRCORE_SERVER_UP,
						  .depth = 4,
						  .rtt_ns = 50000,
						  .records = 3 };
	p.rdma = (struct mc_rdma){ .ports = ports, .ports_nr = 1, .devices_nr = 1 };
	p.class_verbs = true;
	p.class_cm = true;
	p.nodes_nr = 2;
	strcpy(p.nodes[0].path, "/dev/infiniband/rdma_cm");
	strcpy(p.nodes[1].path, "/dev/infiniband/uverbs0");
	p.memlock_bytes = 64 << 20;
	strcpy(p.conf_file, "/etc/krcore.conf");
	p.conf_needed = true;
	strcpy(p.key_file, "/etc/krcore/cluster.key");
	p.key_default = true;
	p.key_mode = 0640;
	strcpy(p.servers_text, "ms1");
	p.endpoints_nr = 1;
	p.endpoints[0] = (struct mc_endpoint){ .host = "ms1",
					       .address = "192.168.77.2:18600",
					       .source = "192.168.77.1",
					       .netdev = "eth0",
					       .rdma = true };
	p.servers = servers;
	p.servers_nr = 1;
	p.timeout_ms = 5000;
	p.lease_ms = 30000;
	p.tick_ms = 100;
	p.idle_ms = 60000;
	p.node_timeout_ms = 5000;
	p.reconnect_max_ms = 10000;
	p.now_ns = 1800000000000000000ULL;
	p.built_ns = 1700000000000000000ULL;
	return 0;
}

static void keep(void *arg, const struct mc_finding *f)
{
	(void)arg;
	assert_true(found_nr < FINDINGS_MAX);
	assert_true(*f->subject && *f->cause);
	assert_int_equal(f->verdict == MC_CHECK_OK, !*f->remedy);
	found[found_nr++] = *f;
}

static void judge(void)
{
	found_nr = 0;
	failed = mc_check_all(&p, keep, NULL);
}

static bool says(const char *text, const char *part)
{
	return !part || strstr(text, part);
}

/* Exactly one finding is not well, and it is this. */
static void only(enum mc_verdict verdict, const char *check, const char *cause, const char *remedy)
{
	unsigned int i, hits = 0;

	judge();
	for (i = 0; i < found_nr; i++) {
		if (found[i].verdict == MC_CHECK_OK)
			continue;
		if (found[i].verdict != verdict || strcmp(found[i].check, check) != 0 ||
		    !says(found[i].cause, cause) || !says(found[i].remedy, remedy))
			print_error("unexpected: %s %s: %s; %s\n", found[i].check, found[i].subject,
				    found[i].cause, found[i].remedy);
		else
			hits++;
	}
	for (i = 0; i < found_nr; i++)
		hits += found[i].verdict != MC_CHECK_OK ? 100 : 0;
	assert_int_equal(hits, 101);
	assert_int_equal(failed, verdict == MC_CHECK_FAIL);
}

static void test_healthy(void **state)
{
	static const char *const checks[] = { "config", "driver", "signature", "module", "devnode",
					      "device", "port",	  "gid",       "fabric", "memlock",
					      "key",	"route",  "server",    "record", "lease",
					      "clock",	"kernel" };
	unsigned int i, k;

	(void)state;
	judge();
	assert_int_equal(failed, 0);
	for (i = 0; i < found_nr; i++)
		assert_int_equal(found[i].verdict, MC_CHECK_OK);
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		for (k = 0; k < found_nr && strcmp(found[k].check, checks[i]) != 0; k++)
			;
		assert_true(k < found_nr);
	}
}

static void test_config(void **state)
{
	(void)state;
	strcpy(p.conf_errors[0], "/etc/krcore.conf:7: unknown key 'prot'");
	p.conf_errors_nr = 1;
	p.conf_error = -EINVAL;
	only(MC_CHECK_FAIL, "config", ":7: unknown key", "correct the line");
	p.conf_error = -ENOENT;
	only(MC_CHECK_FAIL, "config", NULL, "create it");
	p.conf_needed = false;
	only(MC_CHECK_WARN, "config", NULL, "create it");
	p.conf_error = -EACCES;
	only(MC_CHECK_FAIL, "config", NULL, "chmod a+r /etc/krcore.conf");
}

static void test_modules(void **state)
{
	(void)state;
	p.class_verbs = false;
	only(MC_CHECK_FAIL, "module", "verbs is not there", "modprobe ib_uverbs");
	p.class_verbs = true;
	p.class_cm = false;
	only(MC_CHECK_FAIL, "module", "not there", "modprobe rdma_ucm");
}

static void test_device_nodes(void **state)
{
	(void)state;
	p.nodes[1].error = -ENOENT;
	only(MC_CHECK_FAIL, "devnode", "does not exist", "container");
	p.nodes[1].error = -EACCES;
	only(MC_CHECK_FAIL, "devnode", "Permission denied", "0666");
	p.nodes[1].error = -EPERM;
	only(MC_CHECK_FAIL, "devnode", "may not", "DeviceAllow");
	p.nodes[1].error = -EIO;
	only(MC_CHECK_FAIL, "devnode", "Input/output", "dmesg");
}

static void test_no_device(void **state)
{
	(void)state;
	p.rdma.devices_nr = 0;
	p.rdma.ports_nr = 0;
	only(MC_CHECK_FAIL, "device", "none", "rdma link add");
}

static void test_device_without_port(void **state)
{
	(void)state;
	p.rdma.ports_nr = 0;
	only(MC_CHECK_FAIL, "port", "no device has a port", NULL);
}

static void test_ports(void **state)
{
	(void)state;
	strcpy(ports[0].state, "DOWN");
	strcpy(ports[0].phys_state, "Disabled");
	only(MC_CHECK_FAIL, "port", "DOWN (Disabled)", "ip link set");
	strcpy(ports[0].link, "InfiniBand");
	only(MC_CHECK_FAIL, "port", "DOWN", "cable");
	strcpy(ports[0].state, "INIT");
	only(MC_CHECK_FAIL, "port", "INIT", "opensm");
	ports[0].state[0] = '\0';
	only(MC_CHECK_FAIL, "port", "unknown state", NULL);
	ports[1] = (struct mc_port){ .device = "rxe1",
				     .number = 1,
				     .state = "ACTIVE",
				     .link = "Ethernet",
				     .gids = gids,
				     .gids_nr = 2 };
	p.rdma.ports_nr = 2;
	only(MC_CHECK_WARN, "port", NULL, NULL);
}

static void test_gids(void **state)
{
	(void)state;
	ports[0].gids_nr = 0;
	only(MC_CHECK_FAIL, "gid", "GID table is empty", "ip address add");
	ports[0].gids_nr = 1;
	only(MC_CHECK_WARN, "gid", "link-local", "address");
	strcpy(ports[0].link, "InfiniBand");
	judge();
	assert_int_equal(failed, 0);
	ports[0].gids_nr = 0;
	only(MC_CHECK_FAIL, "gid", "GID table is empty", "subnet manager");
}

static void test_memlock(void **state)
{
	(void)state;
	p.memlock_bytes = 64 << 10;
	only(MC_CHECK_FAIL, "memlock", "64 KiB", "LimitMEMLOCK");
	p.memlock_bytes = 2 << 20;
	only(MC_CHECK_WARN, "memlock", "2048 KiB", "ulimit -l");
	servers[0].depth = 20;
	only(MC_CHECK_FAIL, "memlock", "needs 17408 KiB", NULL);
	p.memlock_free = true;
	judge();
	assert_int_equal(failed, 0);
	p.memlock_free = false;
	p.memlock_bytes = UINT64_MAX;
	judge();
	assert_int_equal(failed, 0);
}

static void test_key(void **state)
{
	(void)state;
	p.key_error = -ENOENT;
	only(MC_CHECK_WARN, "key", "no cluster key", "key new");
	p.key_default = false;
	only(MC_CHECK_FAIL, "key", "No such file", "copy it");
	p.key_error = -EACCES;
	only(MC_CHECK_FAIL, "key", "Permission", "krcore");
	p.key_error = -EPERM;
	p.key_mode = 0644;
	only(MC_CHECK_FAIL, "key", NULL, "mode 0644");
	p.key_error = -ENXIO;
	only(MC_CHECK_FAIL, "key", "no such credential", "systemd-run");
	p.key_error = -EINVAL;
	only(MC_CHECK_FAIL, "key", NULL, "hexadecimal");
	p.key_file[0] = '\0';
	p.key_error = 0;
	only(MC_CHECK_WARN, "key", "no cluster key", NULL);
}

static void test_routes(void **state)
{
	(void)state;
	p.endpoints[0].route_error = -ENETUNREACH;
	only(MC_CHECK_FAIL, "route", "no route to ms1", "add a route");
	p.endpoints[0].route_error = 0;
	p.endpoints[0].rdma = false;
	strcpy(p.endpoints[0].netdev, "wlan0");
	only(MC_CHECK_FAIL, "route", "by wlan0, which no RDMA port uses", "reached by eth0");
	p.endpoints_nr = 0;
	p.resolve_error = -ENOENT;
	only(MC_CHECK_FAIL, "route", "no such name", "getent -s files hosts");
	p.resolve_error = 0;
	strcpy(p.servers_why, "entry 2: port '0' is not from 1 to 65535");
	only(MC_CHECK_FAIL, "route", "entry 2", "srv:NAME");
	p.servers_why[0] = '\0';
	p.servers_text[0] = '\0';
	p.servers_nr = 0;
	only(MC_CHECK_FAIL, "route", "no MetaServer is configured", "-S");
}

static void down(int error, const char *text)
{
	servers[0].state = KRCORE_SERVER_DOWN;
	servers[0].last_error = error;
	snprintf(servers[0].error_text, sizeof(servers[0].error_text), "%s", text);
}

static void test_servers(void **state)
{
	(void)state;
	down(-EACCES, "the proof is wrong");
	only(MC_CHECK_FAIL, "server", "the proof is wrong", "keys differ");
	down(-ECONNREFUSED, "");
	only(MC_CHECK_FAIL, "server", "Connection refused", "systemctl status");
	down(-ETIMEDOUT, "connect");
	only(MC_CHECK_FAIL, "server", "connect", "UDP port 4791");
	down(-EPROTO, "x");
	only(MC_CHECK_FAIL, "server", NULL, "versions");
	down(-ESHUTDOWN, "server is drained by its operator");
	only(MC_CHECK_FAIL, "server", "drained", "server undrain");
	down(-EIO, "x");
	only(MC_CHECK_FAIL, "server", NULL, "journalctl");
	down(0, "");
	only(MC_CHECK_FAIL, "server", "no answer within 5000 ms", NULL);
	servers[0].state = KRCORE_SERVER_UP;
	servers[0].rtt_ns = 20000000;
	only(MC_CHECK_WARN, "server", "20000 us", "slow");
	servers[0].rtt_ns = 50000;
	p.open_error = -ENODEV;
	strcpy(p.open_text, "there is no RDMA device");
	p.servers_nr = 0;
	only(MC_CHECK_FAIL, "server", "no RDMA device", NULL);
}

static void test_second_server(void **state)
{
	(void)state;
	servers[1] = servers[0];
	servers[1].state = KRCORE_SERVER_DOWN;
	servers[1].last_error = -ECONNREFUSED;
	p.servers_nr = 2;
	only(MC_CHECK_FAIL, "server", "not attached", NULL);
}

static void test_lease(void **state)
{
	(void)state;
	p.tick_ms = 4000;
	only(MC_CHECK_FAIL, "lease", "10 ticks", "lower tick_ms");
	p.tick_ms = 100;
	p.lease_ms = 3000;
	p.reconnect_max_ms = 500;
	p.node_timeout_ms = 1000;
	servers[0].rtt_ns = 1000000000;
	judge();
	assert_int_equal(failed, 1); /* and a slow server, which is a warning */
	servers[0].rtt_ns = 50000;
	judge();
	assert_int_equal(failed, 0);
	p.reconnect_max_ms = 10000;
	only(MC_CHECK_WARN, "lease", "reconnect_max_ms is 10000", NULL);
	p.reconnect_max_ms = 500;
	p.node_timeout_ms = 5000;
	only(MC_CHECK_WARN, "lease", "timeout_ms 5000", NULL);
	p.node_timeout_ms = 1000;
	p.idle_ms = 900;
	only(MC_CHECK_WARN, "lease", "idle_timeout_ms 900", NULL);
}

static void test_clock(void **state)
{
	(void)state;
	strcpy(p.published_gid, "192.168.77.1");
	p.published_ns = p.now_ns + 1000000000;
	judge();
	assert_int_equal(failed, 0);
	p.published_ns = p.now_ns + 3600000000000ULL;
	only(MC_CHECK_FAIL, "clock", "3600 s behind a record already published for 192.168.77.1",
	     "timedatectl");
	p.published_ns = 0;
	p.now_ns = 1000;
	only(MC_CHECK_WARN, "clock", "before this program was made", "timedatectl");
}

#define CASE(name) cmocka_unit_test_setup(name, healthy)

/* The kernel module is up on a port with two MetaServers. */
static void node_up(void)
{
	struct mc_module_port *port = &p.module.ports[0];

	p.module = (struct mc_module_probe){ .loaded = true, .enabled = true, .up = true };
	strcpy(p.module.device.path, "/dev/krcore");
	p.module.ports_nr = 1;
	strcpy(port->device, "mlx5_0");
	port->number = 1;
	port->up = true;
	port->state = "up";
	port->ready = 2;
	port->sessions = 2;
}

static void test_kernel_module(void **state)
{
	(void)state;
	node_up();
	test_healthy(state);
	p.module = (struct mc_module_probe){ .enabled = true };
	only(MC_CHECK_FAIL, "kernel", "is not loaded", "modprobe krcore");
	node_up();
	p.module.up = false;
	only(MC_CHECK_FAIL, "kernel", "node is down", "node up");
	p.module.enabled = false;
	only(MC_CHECK_WARN, "kernel", "node is down", "node up");
	node_up();
	p.module.error = -EPROTO;
	strcpy(p.module.text, "odd");
	only(MC_CHECK_FAIL, "kernel", "does not answer: odd", NULL);
	node_up();
	p.module.device.error = -EACCES;
	only(MC_CHECK_FAIL, "kernel", "Permission denied", "udev rule");
	node_up();
	p.module.ports_nr = 0;
	only(MC_CHECK_FAIL, "kernel", "no RDMA port", "mlx5_ib");
}

static void test_kernel_ports(void **state)
{
	struct mc_module_port *port = &p.module.ports[0];

	(void)state;
	node_up();
	port->up = false;
	port->state = "unusable";
	strcpy(port->reason, "no DC: firmware");
	only(MC_CHECK_FAIL, "kernel", "unusable: no DC: firmware", "ConnectX");
	p.module.ports[1] = *port;
	p.module.ports[1].up = true;
	p.module.ports_nr = 2; /* another port works */
	only(MC_CHECK_WARN, "kernel", "unusable: no DC: firmware", "ConnectX");
	node_up();
	port->ready = 1;
	strcpy(port->session, "ms2 is down: no route");
	only(MC_CHECK_WARN, "kernel", "1 of the module's 2", "node show");
	port->ready = 0;
	only(MC_CHECK_FAIL, "kernel", "ms2 is down: no route", NULL);
	port->sessions = 0;
	only(MC_CHECK_FAIL, "kernel", "no MetaServer", "metaservers");
}

static void test_driver_from_outside_the_kernel(void **state)
{
	(void)state;
	strcpy(p.system.driver, "mlx5_core");
	strcpy(p.system.driver_version, "5.8-1.0.1");
	p.system.driver_ofed = true;
	p.module.enabled = false;
	only(MC_CHECK_WARN, "driver", "MLNX_OFED or DOCA-OFED is loaded, version 5.8-1.0.1",
	     "ofed_uninstall");
	p.system.driver_ofed = false;
	only(MC_CHECK_WARN, "driver", "built outside the kernel", "ofed_uninstall");
	p.module.enabled = true;
	judge();
	assert_int_equal(failed, 2); /* and that it is not loaded */
	node_up(); /* it was built against these */
	judge();
	assert_int_equal(failed, 0);
}

static void test_signature(void **state)
{
	(void)state;
	strcpy(p.system.module_path, "/lib/modules/6/updates/dkms/krcore.ko");
	p.system.module_signed = MC_SIGNED_NO;
	test_healthy(state);
	strcpy(p.system.must_sign, "Secure Boot is on");
	only(MC_CHECK_WARN, "signature", "Secure Boot is on, and the module is not signed",
	     "mokutil --import");
	p.module.enabled = true;
	judge();
	assert_int_equal(failed, 2); /* and that it is not loaded */
	p.module.enabled = false;
	p.system.module_signed = MC_SIGNED_YES;
	test_healthy(state);
	p.system.module_signed = MC_SIGNED_UNKNOWN;
	test_healthy(state);
	p.system.module_path[0] = '\0';
	p.system.module_signed = MC_SIGNED_NO;
	test_healthy(state);
}

static void test_fabric(void **state)
{
	struct mc_dcb *dcb = &p.classes[0];

	(void)state;
	strcpy(dcb->netdev, "eth0");
	p.classes_nr = 1;
	p.traffic_class = 2;
	test_healthy(state); /* nothing is lossless */
	dcb->pfc = 1 << 3;
	only(MC_CHECK_WARN, "fabric",
	     "lossless priorities are 3, but krcore's packets (traffic "
	     "class 2, DSCP 0) are of priority 0, since",
	     "set traffic_class");
	dcb->by_dscp = true;
	dcb->priority[26] = 3;
	dcb->pfc |= 1 << 4;
	only(MC_CHECK_WARN, "fabric",
	     "are 3, 4, but krcore's packets (traffic class 2, DSCP 0) "
	     "are of priority 0:",
	     NULL);
	p.traffic_class = 106;
	test_healthy(state);
	dcb->error = -EOPNOTSUPP;
	dcb->by_dscp = false;
	test_healthy(state);
}

static void test_own_record_at_every_server(void **state)
{
	struct mc_record_probe *r = &p.records[0];

	(void)state;
	servers[1] = servers[0];
	strcpy(servers[1].address, "192.168.77.3:18600");
	p.servers_nr = 2;
	p.records_nr = 1;
	strcpy(r->gid, "192.168.77.1");
	r->asked = 3;
	test_healthy(state); /* nobody has published it */
	r->have = 3;
	test_healthy(state);
	r->have = 1;
	only(MC_CHECK_FAIL, "record", "missing at 192.168.77.3:18600: clients",
	     "another of this node");
	servers[1].settling_ms = 5000;
	only(MC_CHECK_WARN, "record", "which settle", "cluster wait");
	servers[1].settling_ms = 0;
	r->have = 0;
	r->expected = true;
	only(MC_CHECK_FAIL, "record", "192.168.77.2:18600, 192.168.77.3:18600", "node show");
	r->asked = 0; /* no answer is no miss */
	test_healthy(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_healthy),
		CASE(test_config),
		CASE(test_modules),
		CASE(test_device_nodes),
		CASE(test_no_device),
		CASE(test_device_without_port),
		CASE(test_ports),
		CASE(test_gids),
		CASE(test_memlock),
		CASE(test_key),
		CASE(test_routes),
		CASE(test_servers),
		CASE(test_second_server),
		CASE(test_lease),
		CASE(test_clock),
		CASE(test_kernel_module),
		CASE(test_kernel_ports),
		CASE(test_driver_from_outside_the_kernel),
		CASE(test_signature),
		CASE(test_fabric),
		CASE(test_own_record_at_every_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
