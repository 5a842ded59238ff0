// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading RDMA ports and GIDs, from trees made like the kernel's sysfs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metactl/sysfs.h"
#include "scratch.h"

static void put(const char *name, const char *text)
{
	char line[128];

	snprintf(line, sizeof(line), "%s\n", text);
	scratch_put(name, line, 0644);
}

static void put_rxe(void)
{
	put("class/infiniband/rxe0/ports/1/state", "4: ACTIVE");
	put("class/infiniband/rxe0/ports/1/phys_state", "5: LinkUp");
	put("class/infiniband/rxe0/ports/1/link_layer", "Ethernet");
	put("class/infiniband/rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
	put("class/infiniband/rxe0/ports/1/lid", "0x0");
	put("class/infiniband/rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:c0a8:4d01");
	put("class/infiniband/rxe0/ports/1/gids/0", "fe80:0000:0000:0000:5054:00ff:fe00:0001");
	put("class/infiniband/rxe0/ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000");
	put("class/infiniband/rxe0/ports/1/gids/3", "fe80:0000:0000:0000:0000:0000:0000:0000");
	put("class/infiniband/rxe0/ports/1/gids/4", "garbage");
	put("class/infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2");
	put("class/infiniband/rxe0/ports/1/gid_attrs/types/1", "RoCE v2");
	put("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0");
	put("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1", "eth0");
}

static void test_nothing(void **state)
{
	struct mc_rdma rdma = { .devices_nr = 9 };

	(void)state;
	assert_int_equal(mc_rdma_scan(scratch_root, &rdma), 0);
	assert_int_equal(rdma.devices_nr, 0);
	assert_int_equal(rdma.ports_nr, 0);
	mc_rdma_free(&rdma);
}

static void test_soft_roce(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 192, 168, 77, 1 };
	struct mc_rdma rdma;

	(void)state;
	put_rxe();
	assert_int_equal(mc_rdma_scan(scratch_root, &rdma), 0);
	assert_int_equal(rdma.devices_nr, 1);
	assert_int_equal(rdma.ports_nr, 1);
	assert_string_equal(rdma.ports[0].device, "rxe0");
	assert_int_equal(rdma.ports[0].number, 1);
	assert_string_equal(rdma.ports[0].state, "ACTIVE");
	assert_string_equal(rdma.ports[0].phys_state, "LinkUp");
	assert_string_equal(rdma.ports[0].link, "Ethernet");
	assert_int_equal(rdma.ports[0].gids_nr, 2);
	assert_int_equal(rdma.ports[0].gids[0].index, 0);
	assert_int_equal(rdma.ports[0].gids[1].index, 1);
	assert_memory_equal(rdma.ports[0].gids[1].gid, gid, 16);
	assert_string_equal(rdma.ports[0].gids[1].netdev, "eth0");
	assert_string_equal(rdma.ports[0].gids[1].type, "RoCE v2");
	assert_true(mc_rdma_on_netdev(scratch_root, &rdma, "eth0"));
	assert_false(mc_rdma_on_netdev(scratch_root, &rdma, "eth1"));
	mc_rdma_free(&rdma);
	assert_int_equal(rdma.ports_nr, 0);
}

static void test_several_devices_are_sorted(void **state)
{
	struct mc_rdma rdma;

	(void)state;
	put("class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
	put("class/infiniband/mlx5_0/ports/2/state", "2: INIT");
	put("class/infiniband/mlx5_0/ports/2/lid", "0x1f");
	put("class/infiniband/mlx5_0/ports/1/state", "weird");
	put("class/infiniband/bare/node_guid", "0");
	assert_int_equal(mc_rdma_scan(scratch_root, &rdma), 0);
	assert_int_equal(rdma.devices_nr, 3);
	assert_int_equal(rdma.ports_nr, 3);
	assert_string_equal(rdma.ports[0].device, "mlx5_0");
	assert_int_equal(rdma.ports[0].number, 1);
	assert_string_equal(rdma.ports[0].state, "weird");
	assert_int_equal(rdma.ports[1].number, 2);
	assert_string_equal(rdma.ports[1].state, "INIT");
	assert_int_equal(rdma.ports[1].lid, 0x1f);
	assert_string_equal(rdma.ports[2].device, "mlx5_1");
	assert_int_equal(rdma.ports[2].gids_nr, 0);
	mc_rdma_free(&rdma);
}

static void test_ipoib_is_an_rdma_netdev(void **state)
{
	struct mc_rdma rdma = { 0 };

	(void)state;
	put("class/net/ib0/type", "32");
	put("class/net/eth0/type", "1");
	assert_true(mc_rdma_on_netdev(scratch_root, &rdma, "ib0"));
	assert_false(mc_rdma_on_netdev(scratch_root, &rdma, "eth0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, scratch_begin, scratch_end),
		cmocka_unit_test_setup_teardown(test_soft_roce, scratch_begin, scratch_end),
		cmocka_unit_test_setup_teardown(test_several_devices_are_sorted, scratch_begin,
						scratch_end),
		cmocka_unit_test_setup_teardown(test_ipoib_is_an_rdma_netdev, scratch_begin,
						scratch_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
