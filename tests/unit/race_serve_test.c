// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Serving a table at a node with several ports: the region is at the port whose GID the record
 * has; and what a table is like if nobody has said so. libkrcore is played.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <krcore/queue.h>
#include <krcore/race.h>

#include "race/lib/layout.h"
#include "tests/unit/wrap_serve.h"

#define PORTS 3

static unsigned int ports; /* their GIDs end in 1, 2, 3 */
static bool up[PORTS + 1];
static bool renumbered; /* since the node was opened: the second is the first */
static unsigned int nodes; /* open */
static unsigned int registered; /* at the port with this GID */
static unsigned int published; /* under this GID */
static uint8_t node_gid; /* of the node that was opened last */
static const void *region; /* that was registered last */

/* Without a GID it is at the first port that is up, or else at the first: as the module does. */
int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node)
{
	unsigned int i;

	node_gid = opts->gid[15];
	if (!node_gid)
		node_gid = (uint8_t)opts->port;
	if (node_gid > ports)
		return -ENODEV;
	for (i = 1; !node_gid && i <= ports; i++)
		node_gid = up[i] ? (uint8_t)i : 0;
	node_gid = node_gid ? node_gid : 1;
	nodes++;
	*ret_node = (struct krcore_node *)&nodes;
	return 0;
}

void __wrap_krcore_node_close(struct krcore_node *node)
{
	nodes -= node != NULL;
}

int __wrap_krcore_node_port(struct krcore_node *node, uint32_t index,
			    struct krcore_port_info *ret_info)
{
	assert_non_null(node);
	if (index > ports)
		return -ENOENT;
	memset(ret_info->gid, 0, sizeof(ret_info->gid));
	if (!index) /* the node's own, whatever its number is by now */
		index = node_gid;
	else if (renumbered)
		index = index % ports + 1;
	ret_info->gid[15] = (uint8_t)index;
	return 0;
}

int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr)
{
	(void)access;
	assert_non_null(node);
	registered = node_gid;
	region = addr;
	ret_mr->addr = (uintptr_t)addr;
	ret_mr->length = length;
	return 0;
}

int __wrap_krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx)
{
	(void)opts;
	*ret_ctx = (struct krcore_ctx *)&ports;
	return 0;
}

void __wrap_krcore_close(struct krcore_ctx *ctx)
{
	assert_non_null(ctx);
}

int __wrap_krcore_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
			  const struct krcore_value *value)
{
	(void)ctx;
	(void)value;
	published = key->gid[15];
	return 1;
}

int __wrap_krcore_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key)
{
	(void)ctx;
	assert_int_equal(key->gid[15], published);
	return 0;
}

/* Serve so much memory. Return: how many slots the table may have. */
static uint64_t slots_of(uint64_t bytes, uint32_t groups, uint32_t depth)
{
	struct krcore_race_server_options opts = {
		.size = sizeof(opts),
		.bytes = bytes,
		.groups = groups,
		.depth_max = depth,
	};
	struct krcore_race_server *server;
	struct kr_header header;

	assert_int_equal(krcore_race_serve(&opts, &server), 0);
	memcpy(&header, region, sizeof(header));
	krcore_race_server_close(server);
	return 21ULL * header.groups << header.depth_max;
}

/* A table has slots for as much as its memory holds, if nobody has said how many. */
static void test_slots_of_a_large_table(void **state)
{
	(void)state;
	ports = PORTS;
	renumbered = false;
	assert_int_equal(slots_of(64ULL << 20, 0, 0), 1344ULL << 14);
	assert_true(slots_of(4ULL << 30, 0, 0) >= (4ULL << 30) / 128);
	assert_int_equal(slots_of(4ULL << 30, 2, 3), 42ULL << 3);
	assert_int_equal(slots_of(4ULL << 30, 64, 14), 1344ULL << 14);
}

/* Serve at a port, or 0. Return: the GID of region and record, or negative errno. */
static int serve(uint32_t port)
{
	struct krcore_race_server_options opts = {
		.size = sizeof(opts),
		.bytes = 1 << 20,
		.port = port,
	};
	struct krcore_race_server *server;
	int err;

	registered = 0;
	published = 0;
	err = krcore_race_serve(&opts, &server);
	if (!err) {
		assert_int_equal(registered, published);
		assert_int_equal(nodes, 1);
		krcore_race_server_close(server);
	}
	assert_int_equal(nodes, 0);
	return err ? err : (int)published;
}

static void test_the_first_that_is_up(void **state)
{
	(void)state;
	ports = PORTS;
	renumbered = false;
	memset(up, 0, sizeof(up));
	assert_int_equal(serve(0), 1); /* none is: it waits for the link of the first */
	up[3] = true;
	assert_int_equal(serve(0), 3);
	up[2] = true;
	assert_int_equal(serve(0), 2);
	up[1] = true;
	assert_int_equal(serve(0), 1);
}

static void test_one_that_is_asked_for(void **state)
{
	(void)state;
	ports = PORTS;
	memset(up, 0, sizeof(up));
	up[1] = true;
	assert_int_equal(serve(2), 2);
	assert_int_equal(serve(4), -ENODEV);
}

static void test_ports_are_renumbered(void **state)
{
	(void)state;
	ports = PORTS;
	memset(up, 0, sizeof(up));
	renumbered = true;
	assert_int_equal(serve(2), 2);
	up[1] = true;
	assert_int_equal(serve(0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_that_is_up),
		cmocka_unit_test(test_one_that_is_asked_for),
		cmocka_unit_test(test_ports_are_renumbered),
		cmocka_unit_test(test_slots_of_a_large_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
