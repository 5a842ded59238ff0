// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How long it takes to go on when the process that lends the memory has ended.
 *
 *	bench_recover WAY TARGET
 *
 * WAY is krcore or rdma_cm; TARGET as for bench_connect, see way.h. READs one at a time until
 * one fails, then waits at gate `failed` of bn_gate(), whose file has the target of the process
 * that was started in the place of the first, and connects to that. Prints
 *	failed_ns	what the READ took that failed
 *	again_ns	from there to the first byte of the new process; the gate is left out
 * The queue or the queue pair is new; what connections share was made before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_FAIL_NS 120000000000ULL /* a READ must have failed by then */
#define BN_TARGET_BYTES 256

/* READ until one fails. Return: what that one took, in ns. */
static uint64_t bn_until_failed(const struct bn_way *ops, void *way)
{
	uint64_t end_ns = bn_now_ns() + BN_FAIL_NS, begin_ns;

	do {
		begin_ns = bn_now_ns();
		if (ops->attempt(way))
			return bn_now_ns() - begin_ns;
	} while (begin_ns < end_ns);
	fprintf(stderr, "no READ has failed\n");
	exit(1);
}

/* Wait for the new process. */
static void bn_new_target(char *target)
{
	const char *gate = getenv("BN_GATE");
	char name[256];
	FILE *file;

	if (!gate) {
		fprintf(stderr, "BN_GATE is not set\n");
		exit(2);
	}
	bn_gate("failed");
	snprintf(name, sizeof(name), "%s.failed", gate);
	file = fopen(name, "re");
	if (!file || !fgets(target, BN_TARGET_BYTES, file))
		bn_die(name);
	fclose(file);
	target[strcspn(target, "\n")] = '\0';
}

int main(int argc, char **argv)
{
	const struct bn_way *ops = argc == 3 ? bn_way_find(argv[1]) : NULL;
	uint64_t failed_ns, begin_ns;
	char target[BN_TARGET_BYTES];
	void *way;

	if (!ops || !ops->attempt) {
		fprintf(stderr, "usage: %s krcore|rdma_cm TARGET\n", argv[0]);
		return 2;
	}
	way = ops->open(argv[2]);
	ops->connect(way, BN_WAY_FRESH);
	ops->read(way);
	printf("reading\n");
	fflush(stdout);
	failed_ns = bn_until_failed(ops, way);
	bn_new_target(target);
	ops->aim(way, target);
	begin_ns = bn_now_ns();
	ops->close(way);
	ops->connect(way, 0);
	ops->read(way);
	printf("{\"system\": \"%s\", \"case\": \"recovery\", \"n\": 1, \"failed_ns\": %" PRIu64
	       ", \"again_ns\": %" PRIu64 "}\n",
	       ops->name, failed_ns, bn_now_ns() - begin_ns);
	ops->close(way);
	ops->done(way);
	return 0;
}
