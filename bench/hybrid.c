// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * READs of 8 bytes from several peers in one order or another: what a DC initiator pays for a
 * change of its target shows in the counters of the card, which ./run bench hybrid reads.
 *
 *	bench_hybrid sorted|alternating|in_turn QUEUES BATCH ROUNDS TARGET...
 *
 * One program with QUEUES queues to each target. A round posts BATCH requests to each queue, with
 * one call a queue: those of the first target before those of the second (sorted, AAABBB), or one
 * queue of each target after the other (alternating, ABABAB); and then waits for all of them.
 * in_turn is alternating, but waits after each call: nothing of two targets is ever outstanding.
 * TARGET is PEER,ADDR,LENGTH,TOKEN as for bench_connect, see way.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_HYBRID_BYTES 8
#define BN_HYBRID_MEMORY 4096
#define BN_HYBRID_TARGETS 8
#define BN_HYBRID_QUEUES 32
#define BN_HYBRID_BATCH 32

/* Queues of a target. */
struct bn_hybrid_target {
	uint32_t queue[BN_HYBRID_QUEUES];
	struct krcore_wr wrs[BN_HYBRID_BATCH];
};

/* All of it. */
struct bn_hybrid {
	struct krcore_node *node;
	struct krcore_mr mr;
	char memory[BN_HYBRID_MEMORY] __attribute__((aligned(BN_HYBRID_MEMORY)));
	unsigned int targets;
	unsigned int queues; /* of each target */
	unsigned int batch;
	struct bn_hybrid_target target[BN_HYBRID_TARGETS];
};

static struct bn_hybrid bn_hybrid;

static void bn_hybrid_aim(struct bn_hybrid *h, struct bn_hybrid_target *t, const char *target)
{
	struct krcore_region_ref ref;
	struct krcore_key peer;
	char *fields[4];
	unsigned int i;

	bn_target_split(target, fields, 4);
	ref.addr = bn_number(fields[1], 0, UINT64_MAX, "ADDR");
	ref.length = bn_number(fields[2], BN_HYBRID_BYTES, UINT64_MAX, "LENGTH");
	ref.token = bn_number(fields[3], 0, UINT64_MAX, "TOKEN");
	if (krcore_key_from_text(fields[0], KRCORE_SERVICE_NODE, &peer))
		bn_krcore_die(fields[0]);
	for (i = 0; i < h->queues; i++)
		if (krcore_queue_open(h->node, h->batch, &peer, 0, 0, &t->queue[i], NULL))
			bn_krcore_die("krcore_queue_open");
	for (i = 0; i < h->batch; i++)
		krcore_wr_read(&t->wrs[i], &h->mr, h->memory, BN_HYBRID_BYTES, &ref, 0, i);
}

static void bn_hybrid_open(struct bn_hybrid *h, char *const *targets)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .ring_entries = 16 };
	unsigned int i;

	while (opts.ring_entries < h->targets * h->queues * h->batch)
		opts.ring_entries *= 2;
	if (krcore_node_open(&opts, &h->node))
		bn_krcore_die("krcore_node_open");
	if (krcore_mr_reg(h->node, h->memory, BN_HYBRID_MEMORY, KRCORE_ACCESS_LOCAL_WRITE, &h->mr))
		bn_krcore_die("krcore_mr_reg");
	for (i = 0; i < h->targets; i++)
		bn_hybrid_aim(h, &h->target[i], targets[i]);
}

/* Wait for so many completions. */
static void bn_hybrid_wait(struct bn_hybrid *h, unsigned int left)
{
	struct krcore_wc wcs[BN_HYBRID_BATCH];
	unsigned int nr, i;

	for (; left; left -= nr) {
		nr = bn_krcore_next(h->node, wcs, BN_HYBRID_BATCH);
		for (i = 0; i < nr; i++) {
			if (!wcs[i].status)
				continue;
			fprintf(stderr, "completion: %s\n", strerror(-wcs[i].status));
			exit(1);
		}
	}
}

/* A call for one queue of a target. */
static void bn_hybrid_post(struct bn_hybrid *h, unsigned int target, unsigned int queue, int wait)
{
	struct bn_hybrid_target *t = &h->target[target];
	unsigned int done = 0;

	while (done < h->batch) {
		int taken =
			krcore_post(h->node, t->queue[queue], t->wrs + done, h->batch - done, NULL);

		if (taken < 0)
			bn_krcore_die("krcore_post");
		done += (unsigned int)taken;
	}
	if (wait)
		bn_hybrid_wait(h, h->batch);
}

static void bn_hybrid_round(struct bn_hybrid *h, int sorted, int wait)
{
	unsigned int outer, inner;
	unsigned int outers = sorted ? h->targets : h->queues;
	unsigned int inners = sorted ? h->queues : h->targets;

	for (outer = 0; outer < outers; outer++)
		for (inner = 0; inner < inners; inner++)
			bn_hybrid_post(h, sorted ? outer : inner, sorted ? inner : outer, wait);
	if (!wait)
		bn_hybrid_wait(h, h->targets * h->queues * h->batch);
}

int main(int argc, char **argv)
{
	struct bn_hybrid *h = &bn_hybrid;
	uint64_t rounds, i;
	int sorted, wait;

	if (argc < 6 || argc > 5 + BN_HYBRID_TARGETS) {
		fprintf(stderr,
			"usage: %s sorted|alternating|in_turn QUEUES BATCH ROUNDS TARGET...\n",
			argv[0]);
		return 2;
	}
	sorted = !strcmp(argv[1], "sorted");
	wait = !strcmp(argv[1], "in_turn");
	if (!sorted && !wait && strcmp(argv[1], "alternating")) {
		fprintf(stderr, "'%s': not sorted, alternating or in_turn\n", argv[1]);
		return 2;
	}
	h->queues = (unsigned int)bn_number(argv[2], 1, BN_HYBRID_QUEUES, "QUEUES");
	h->batch = (unsigned int)bn_number(argv[3], 1, BN_HYBRID_BATCH, "BATCH");
	rounds = bn_number(argv[4], 1, UINT32_MAX, "ROUNDS");
	h->targets = (unsigned int)argc - 5;
	bn_hybrid_open(h, argv + 5);
	for (i = 0; i < rounds; i++)
		bn_hybrid_round(h, sorted, wait);
	printf("{\"system\": \"krcore\", \"case\": \"%s\", \"n\": %" PRIu64 "}\n", argv[1],
	       rounds * h->targets * h->queues * h->batch);
	krcore_node_close(h->node);
	return 0;
}
