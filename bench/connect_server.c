// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What clients of bench_connect and bench_data connect to and READ or WRITE.
 *
 *	bench_connect_server krcore MIB
 *	bench_connect_server rdma_cm ADDRESS PORT MIB
 *	bench_connect_server verbs ADDRESS PORT MIB
 *
 * krcore prints where its memory is and sleeps; rdma_cm accepts connections in
 * one thread; verbs has a thread for each TCP connection, and the queue pair
 * lives as long as that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/serve.h"
#include "bench/way.h"

static void bn_serve_krcore(size_t bytes)
{
	struct krcore_node *node;
	struct krcore_mr mr;

	if (krcore_node_open(NULL, &node))
		bn_krcore_die("krcore_node_open");
	if (krcore_mr_reg(node, bn_memory(bytes), bytes,
			  KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ |
				  KRCORE_ACCESS_REMOTE_WRITE | KRCORE_ACCESS_REMOTE_ATOMIC,
			  &mr))
		bn_krcore_die("krcore_mr_reg");
	printf("ready %" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", mr.addr, mr.length, mr.token);
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	size_t bytes;

	if (argc < 3 || argc != (strcmp(argv[1], "krcore") ? 5 : 3) || !bn_way_find(argv[1])) {
		fprintf(stderr,
			"usage: %s krcore MIB\n"
			"       %s rdma_cm|verbs ADDRESS PORT MIB\n",
			argv[0], argv[0]);
		return 2;
	}
	bytes = bn_number(argv[argc - 1], 1, 1024, "MIB") << 20;
	if (!strcmp(argv[1], "krcore"))
		bn_serve_krcore(bytes);
	if (!strcmp(argv[1], "rdma_cm"))
		bn_serve_cm(argv[2], argv[3], bn_memory(bytes), bytes);
	bn_serve_verbs(argv[2], argv[3], bn_memory(bytes), bytes);
}
