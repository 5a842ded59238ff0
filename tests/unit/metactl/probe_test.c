// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What `doctor` gathers: from real files, limits and routes of this machine, in
 * places of the test's own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "client/metactl/probe.h"
#include "scratch.h"

static char dev[64];
static char krcore[64];
static char units[64];
static char modules[64];
static struct mc_places places = {
	.sysfs = scratch_root, .dev = dev, .krcore = krcore, .units = units, .modules = modules
};
static struct mc_probe *p;

static int setup(void **state)
{
	if (scratch_begin(state))
		return -1;
	snprintf(dev, sizeof(dev), "%s/dev", scratch_root);
	snprintf(krcore, sizeof(krcore), "%s/dev/krcore", scratch_root);
	snprintf(units, sizeof(units), "%s/units", scratch_root);
	snprintf(modules, sizeof(modules), "%s/modules", scratch_root);
	p = calloc(1, sizeof(*p));
	return p ? 0 : -1;
}

static int teardown(void **state)
{
	mc_probe_free(p);
	return scratch_end(state);
}

static void test_bare_machine(void **state)
{
	(void)state;
	assert_int_equal(mc_probe_host(&places, p), 0);
	assert_false(p->class_verbs);
	assert_false(p->class_cm);
	assert_int_equal(p->nodes_nr, 0);
	assert_int_equal(p->rdma.devices_nr, 0);
	assert_true(p->now_ns > p->built_ns);
}

static void test_device_nodes(void **state)
{
	(void)state;
	scratch_put("class/infiniband_verbs/uverbs0/dev", "231:192\n", 0644);
	scratch_put("class/infiniband_verbs/abi_version", "6\n", 0644);
	scratch_put("class/misc/rdma_cm/dev", "10:58\n", 0644);
	scratch_put("dev/uverbs0", "", 0666);
	assert_int_equal(mc_probe_host(&places, p), 0);
	assert_true(p->class_verbs);
	assert_true(p->class_cm);
	assert_int_equal(p->nodes_nr, 2);
	assert_non_null(strstr(p->nodes[0].path, "/dev/rdma_cm"));
	assert_int_equal(p->nodes[0].error, -ENOENT);
	assert_non_null(strstr(p->nodes[1].path, "/dev/uverbs0"));
	assert_int_equal(p->nodes[1].error, 0);
}

static void test_kernel_module(void **state)
{
	(void)state;
	mc_probe_module(&places, p);
	assert_false(p->module.loaded);
	assert_false(p->module.enabled);
	scratch_put("units/rdma-hw.target.wants/krcore-node.service", "", 0644);
	scratch_put("module/krcore/refcnt", "0\n", 0644);
	mc_probe_module(&places, p);
	assert_true(p->module.loaded);
	assert_true(p->module.enabled);
	assert_string_equal(p->module.device.path, krcore);
	assert_int_equal(p->module.device.error, -ENOENT);
	scratch_put("dev/krcore", "", 0666);
	mc_probe_module(&places, p);
	assert_int_equal(p->module.device.error, 0);
}

static void test_memlock_is_the_limit_in_force(void **state)
{
	struct rlimit old, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low = old;
	low.rlim_cur = 65536;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	assert_int_equal(mc_probe_host(&places, p), 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
	assert_int_equal(p->memlock_bytes, 65536);
}

static void test_configuration(void **state)
{
	char text[512], key[256];

	(void)state;
	snprintf(key, sizeof(key), "%s",
		 scratch_put("cluster.key", "00112233445566778899aabbccddeeff\n", 0640));
	snprintf(text, sizeof(text),
		 "[metaserver]\ntick_ms = 50\n[node]\nmetaservers = 127.0.0.1\nkey_file = %s\n"
		 "lease_ms = 1\ntraffic_class = 106\n",
		 key);
	mc_probe_config(scratch_put("krcore.conf", text, 0644), NULL, p);
	assert_int_equal(p->conf_error, 0);
	assert_int_equal(p->conf_errors_nr, 0);
	assert_true(p->conf_needed);
	assert_string_equal(p->servers_text, "127.0.0.1");
	assert_string_equal(p->key_file, key);
	assert_false(p->key_default);
	assert_int_equal(p->key_error, 0);
	assert_int_equal(p->key_mode, 0640);
	assert_int_equal(p->tick_ms, 50);
	assert_int_equal(p->traffic_class, 106);
	assert_int_equal(p->lease_ms, 3000); /* the server's least */
}

static void test_configuration_with_errors(void **state)
{
	char key[256], text[512];

	(void)state;
	mc_probe_config(scratch_put("krcore.conf", "[node]\nport = 1\ntimeout_ms = x\n", 0644),
			"a,b", p);
	assert_int_equal(p->conf_error, -EINVAL);
	assert_int_equal(p->conf_errors_nr, 2);
	assert_non_null(strstr(p->conf_errors[0], "krcore.conf:2: "));
	assert_non_null(strstr(p->conf_errors[1], "krcore.conf:3: "));
	assert_false(p->conf_needed);
	assert_string_equal(p->servers_text, "a,b");

	memset(p, 0, sizeof(*p));
	snprintf(key, sizeof(key), "%s",
		 scratch_put("open.key", "00112233445566778899aabbccddeeff\n", 0644));
	snprintf(text, sizeof(text), "[node]\nkey_file = %s\n", key);
	mc_probe_config(scratch_put("krcore.conf", text, 0644), NULL, p);
	assert_int_equal(p->key_error, -EPERM);
	assert_int_equal(p->key_mode, 0644);

	memset(p, 0, sizeof(*p));
	mc_probe_config("/nonexistent/krcore.conf", NULL, p);
	assert_int_equal(p->conf_error, -ENOENT);
	assert_int_equal(p->conf_errors_nr, 1);
	assert_true(p->key_default);
}

static void test_routes(void **state)
{
	(void)state;
	strcpy(p->servers_text, "127.0.0.1:1/5, 127.0.0.2");
	mc_probe_routes(&places, 2000, p);
	assert_int_equal(p->resolve_error, 0);
	assert_int_equal(p->endpoints_nr, 2);
	assert_string_equal(p->endpoints[0].address, "127.0.0.1:1");
	assert_string_equal(p->endpoints[0].host, "127.0.0.1");
	assert_int_equal(p->endpoints[0].route_error, 0);
	assert_string_equal(p->endpoints[0].source, "127.0.0.1");
	assert_string_equal(p->endpoints[0].netdev, "lo");
	assert_false(p->endpoints[0].rdma);
	assert_string_equal(p->endpoints[1].address, "127.0.0.2:18600");
}

static void test_routes_by_an_rdma_port(void **state)
{
	(void)state;
	scratch_put("class/infiniband/rxe0/ports/1/gids/0", "::ffff:127.0.0.1\n", 0644);
	scratch_put("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "lo\n", 0644);
	assert_int_equal(mc_probe_host(&places, p), 0);
	strcpy(p->servers_text, "127.0.0.1");
	mc_probe_routes(&places, 2000, p);
	assert_int_equal(p->endpoints_nr, 1);
	assert_true(p->endpoints[0].rdma);
}

static void test_lists_without_addresses(void **state)
{
	(void)state;
	strcpy(p->servers_text, "127.0.0.1:99999");
	mc_probe_routes(&places, 2000, p);
	assert_int_equal(p->endpoints_nr, 0);
	assert_true(*p->servers_why);

	memset(p, 0, sizeof(*p));
	mc_probe_routes(&places, 2000, p);
	assert_int_equal(p->endpoints_nr, 0);
	assert_int_equal(p->resolve_error, 0);
}

static void test_drivers(void **state)
{
	(void)state;
	scratch_put("module/mlx5_core/taint", "\n", 0644);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.driver, "");
	assert_false(p->system.driver_ofed);
	scratch_put("module/mlx5_core/taint", "OE\n", 0644);
	scratch_put("module/mlx5_core/version", "5.8-1.0.1\n", 0644);
	scratch_put("module/mlx_compat/refcnt", "3\n", 0644);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.driver, "mlx5_core");
	assert_string_equal(p->system.driver_version, "5.8-1.0.1");
	assert_true(p->system.driver_ofed);
}

static void test_what_demands_a_signature(void **state)
{
	static const char name[] =
		"firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	FILE *f;

	(void)state;
	scratch_put("kernel/security/lockdown", "[none] integrity confidentiality\n", 0644);
	scratch_put("module/module/parameters/sig_enforce", "N\n", 0644);
	f = fopen(scratch_put(name, "", 0644), "w");
	assert_non_null(f);
	fwrite("\6\0\0\0\0", 1, 5, f);
	fclose(f);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.must_sign, "");
	scratch_put("module/module/parameters/sig_enforce", "Y\n", 0644);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.must_sign, "module.sig_enforce is on");
	scratch_put("kernel/security/lockdown", "none [integrity] confidentiality\n", 0644);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.must_sign, "the kernel is locked down");
	f = fopen(scratch_put(name, "", 0644), "w");
	assert_non_null(f);
	fwrite("\6\0\0\0\1", 1, 5, f);
	fclose(f);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.must_sign, "Secure Boot is on");
}

/* This program is the module: all that is asked of it is this section, and its end. */
__attribute__((section(".modinfo"), used)) static const char modinfo[] = "license=GPL";

static void put_module(const char *name, bool with_signature)
{
	/* struct module_signature of the kernel: a key named by one byte, a signature of one */
	static const char signature[] = "SKs\1\4\1\1\1\0\0\0\0\0\0\1~Module signature appended~\n";
	static char bytes[65536];
	FILE *from = fopen("/proc/self/exe", "re"), *to = fopen(scratch_put(name, "", 0644), "we");
	size_t nr;

	assert_true(from && to);
	while ((nr = fread(bytes, 1, sizeof(bytes), from)))
		assert_int_equal(fwrite(bytes, 1, nr, to), nr);
	if (with_signature)
		fwrite(signature, 1, sizeof(signature) - 1, to);
	fclose(from);
	fclose(to);
}

static void test_module_file(void **state)
{
	struct utsname kernel;
	char name[256];

	(void)state;
	assert_string_equal(modinfo, "license=GPL");
	assert_int_equal(uname(&kernel), 0);
	mc_probe_system(&places, p);
	assert_string_equal(p->system.module_path, "");

	snprintf(name, sizeof(name), "modules/%s/updates/dkms/krcore.ko", kernel.release);
	scratch_put(name, "this is no module", 0644);
	mc_probe_system(&places, p);
	assert_non_null(strstr(p->system.module_path, "updates/dkms/krcore.ko"));
	assert_int_equal(p->system.module_signed, MC_SIGNED_UNKNOWN);

	put_module(name, false);
	mc_probe_system(&places, p);
	assert_int_equal(p->system.module_signed, MC_SIGNED_NO);
	put_module(name, true);
	mc_probe_system(&places, p);
	assert_int_equal(p->system.module_signed, MC_SIGNED_YES);
}

static void test_classes_of_network_devices(void **state)
{
	(void)state;
	scratch_put("class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n", 0644);
	scratch_put("class/infiniband/rxe0/ports/1/gids/0", "::ffff:127.0.0.1\n", 0644);
	scratch_put("class/infiniband/rxe0/ports/1/gids/1", "::ffff:127.0.0.2\n", 0644);
	scratch_put("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "lo\n", 0644);
	scratch_put("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1", "lo\n", 0644);
	assert_int_equal(mc_probe_host(&places, p), 0);
	mc_probe_system(&places, p);
	assert_int_equal(p->classes_nr, 1);
	assert_string_equal(p->classes[0].netdev, "lo");
	assert_int_equal(p->classes[0].error, -EOPNOTSUPP); /* the kernel's own answer */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_bare_machine),
		CASE(test_device_nodes),
		CASE(test_kernel_module),
		CASE(test_memlock_is_the_limit_in_force),
		CASE(test_configuration),
		CASE(test_configuration_with_errors),
		CASE(test_routes),
		CASE(test_routes_by_an_rdma_port),
		CASE(test_lists_without_addresses),
		CASE(test_drivers),
		CASE(test_what_demands_a_signature),
		CASE(test_module_file),
		CASE(test_classes_of_network_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
