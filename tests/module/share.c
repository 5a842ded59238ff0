// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What share of an initiator a queue has: the module promises turns of equal cost, the bytes
 * of a request and a constant. Some queues have large READs waiting, and one has small ones.
 * Nothing is timed: completions of one initiator come in the order in which it was given the
 * requests, so their order in the ring is the order of the turns. It is for a node with one
 * shared initiator.
 */
#include <stdlib.h>
#include <stdio.h>

#include "tests/module/dev.h"

#define OTHERS 3 /* queues with large READs */
#define OTHERS_EACH 24 /* more than are done before the small ones */
#define LARGE (256U << 10)
#define SMALL 64U
#define SMALLS 256U
#define COST (4U << 10) /* of a request, beside its bytes */
#define TURN (LARGE + COST) /* what a queue may post in its turn */
#define TURNS ((SMALLS * (SMALL + COST) + TURN - 1) / TURN)
/*
 * Between the first and the last small READ each other queue has a turn behind each turn of
 * this one but the last. A turn more or less is allowed: one may begin in the middle.
 */
#define LEAST ((TURNS - 2) * OTHERS)
#define MOST ((TURNS + 1) * OTHERS)

#define ROUNDS 5
#define TRIES 40

struct share {
	struct dev dev;
	const struct dev_peer *peer;
	struct dev_region local;
	uint32_t others[OTHERS], mine;
	unsigned int bad; /* completions with an error, posts that were not taken */
};

static void post_all(struct share *s, uint32_t queue, unsigned int count, uint32_t length)
{
	struct krp_wr wrs[SMALLS];
	unsigned int i;

	for (i = 0; i < count; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &s->local, 0, s->peer->ro, s->peer->ro_addr, length);
	s->bad += dev_post(&s->dev, queue, wrs, count, NULL) != (int)count;
}

/*
 * Return: how many large READs were done between the first and the last small one, or -1 if
 * there was an end of them, so that nobody had to take turns.
 */
static int between(struct share *s)
{
	unsigned int small = 0, large = 0, first = 0;
	struct krp_cqe cqe;

	while (small < SMALLS && dev_reap(&s->dev, &cqe, DEV_TIMEOUT_MS)) {
		s->bad += cqe.status != 0;
		if (cqe.queue != s->mine)
			large++;
		else if (!small++)
			first = large;
	}
	s->bad += small != SMALLS;
	return large < OTHERS * OTHERS_EACH ? (int)(large - first) : -1;
}

static int one_round(struct share *s)
{
	struct krp_cqe cqe;
	int i, ret;

	for (i = 0; i < OTHERS; i++)
		s->others[i] = dev_connected_or_die(&s->dev, OTHERS_EACH, s->peer);
	s->mine = dev_connected_or_die(&s->dev, SMALLS, s->peer);
	for (i = 0; i < OTHERS; i++)
		post_all(s, s->others[i], OTHERS_EACH, LARGE);
	post_all(s, s->mine, SMALLS, SMALL);
	ret = between(s);
	for (i = 0; i < OTHERS; i++)
		dev_queue_close(&s->dev, s->others[i]);
	dev_queue_close(&s->dev, s->mine);
	while (dev_reap(&s->dev, &cqe, 0)) /* those that were cancelled */
		;
	return ret;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void share(const struct dev_peer *peer)
{
	struct share s = { .peer = peer };
	int seen[ROUNDS], tries, rounds = 0;

	dev_open_or_die(&s.dev, 512);
	dev_region_or_die(&s.dev, LARGE, KRP_ACCESS_LOCAL_WRITE, &s.local);
	for (tries = 0; rounds < ROUNDS && tries < TRIES && !s.bad; tries++) {
		int large = one_round(&s);

		if (large >= 0)
			seen[rounds++] = large;
	}
	dev_close(&s.dev);
	tap_equal("all is taken and done", s.bad, 0);
	tap(rounds == ROUNDS, "all have requests waiting all the time", "%d of %d rounds, %d tries",
	    rounds, ROUNDS, tries);
	if (rounds != ROUNDS)
		return;
	/* a lease that ends in a round makes one wait while others go on: so the median */
	qsort(seen, ROUNDS, sizeof(*seen), by_number);
	printf("# of large READs among %u small ones: %d, %d to %d; %u by equal turns\n", SMALLS,
	       seen[ROUNDS / 2], seen[0], seen[ROUNDS - 1], (TURNS - 1) * OTHERS);
	tap(seen[ROUNDS / 2] >= (int)LEAST && seen[ROUNDS / 2] <= (int)MOST,
	    "small and large ones take turns of the same cost", "%d large ones, not %u to %u",
	    seen[ROUNDS / 2], LEAST, MOST);
}
