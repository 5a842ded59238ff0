// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory node of bench_race: one table, open to clients by krcore, plain verbs and rdma_cm.
 *
 *	bench_race_server ADDRESS VERBS_PORT CM_PORT MIB RECORDS
 *
 * It fills the table in its own memory, registers that three times and publishes it, says
 * "serving", and works no more but for those that connect by verbs and rdma_cm.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/queue.h>
#include <krcore/race.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/race_kv.h"
#include "bench/serve.h"
#include "bench/way.h"

#define BN_GROUPS 64
#define BN_DEPTH 14
#define BN_LEASE_MS 600000

/**
 * struct bn_place - Where a server listens, and what it serves.
 * @host: address.
 * @port: number as text.
 * @memory: table.
 * @bytes: its size.
 */
struct bn_place {
	const char *host, *port;
	void *memory;
	size_t bytes;
};

static void *bn_verbs_thread(void *arg)
{
	const struct bn_place *at = arg;

	bn_serve_verbs(at->host, at->port, at->memory, at->bytes);
}

static void bn_fill_table(void *memory, size_t bytes, uint64_t records)
{
	struct kr_client *c;

	if (kr_format(memory, bytes, BN_GROUPS, BN_DEPTH, 88172645463325252ULL, BN_LEASE_MS) ||
	    kr_client_new(bn_local_open(memory, bytes), &c)) {
		fprintf(stderr, "%zu MiB: no table\n", bytes >> 20);
		exit(1);
	}
	bn_kv_fill(c, records);
	kr_client_free(c);
}

static void bn_publish_table(const char *host, void *memory, size_t bytes)
{
	struct krcore_region_ref ref;
	struct krcore_value value;
	struct krcore_node *node;
	struct krcore_key key;
	struct krcore_ctx *ctx;
	struct krcore_mr mr;

	if (krcore_node_open(NULL, &node))
		bn_krcore_die("krcore_node_open");
	if (krcore_mr_reg(node, memory, bytes,
			  KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ |
				  KRCORE_ACCESS_REMOTE_WRITE | KRCORE_ACCESS_REMOTE_ATOMIC,
			  &mr))
		bn_krcore_die("krcore_mr_reg");
	krcore_region_ref_of(&mr, &ref);
	krcore_region_encode(&ref, &value);
	if (krcore_key_from_text(host, KRCORE_RACE_SERVICE, &key) || krcore_open(NULL, &ctx) ||
	    krcore_publish(ctx, &key, &value) < 0)
		bn_krcore_die("publishing");
}

int main(int argc, char **argv)
{
	static struct bn_place place;
	pthread_t thread;

	if (argc != 6) {
		fprintf(stderr, "usage: %s ADDRESS VERBS_PORT CM_PORT MIB RECORDS\n", argv[0]);
		return 2;
	}
	place.host = argv[1];
	place.port = argv[2];
	place.bytes = bn_number(argv[4], 1, 65536, "MIB") << 20;
	place.memory = bn_memory(place.bytes);
	bn_fill_table(place.memory, place.bytes, bn_number(argv[5], 1, 1ULL << 30, "RECORDS"));
	bn_publish_table(place.host, place.memory, place.bytes);
	printf("serving\n");
	if (pthread_create(&thread, NULL, bn_verbs_thread, &place))
		bn_die("thread");
	bn_serve_cm(place.host, argv[3], place.memory, place.bytes);
}
