// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Serving a table at a node with several ports: the region is at the port whose GID the record
 * has. libkrcore is played.
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

#include "tests/unit/wrap_serve.h"

#define PORTS 3

static unsigned int ports; /* their GIDs end in 1, 2, 3 */
static bool up[PORTS + 1];
static bool renumbered; /* since the node was opened: the second is the first */
static unsigned int nodes; /* open */
static unsigned int registered; /* at the port with this GID */
static unsigned int published; /* under this GID */
static uint8_t node_gid; /* of the node that was opened last */

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
