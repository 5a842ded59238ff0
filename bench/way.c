// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore's way to a connection, and what the ways share: see way.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/way.h"

#define BN_PAGE 4096

/* An instance: one node context, one queue at a time. */
struct bn_krcore {
	struct krcore_node *node;
	struct krcore_mr mr;
	struct krcore_key peer;
	struct krcore_region_ref ref;
	uint32_t queue;
	void *memory;
};

void bn_krcore_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, krcore_error_text());
	exit(1);
}

void bn_target_split(const char *target, char **fields, unsigned int nr)
{
	char *rest = strdup(target);
	unsigned int i;

	for (i = 0; rest && i < nr; i++)
		fields[i] = strsep(&rest, ",");
	if (i == nr && !rest)
		return;
	fprintf(stderr, "target '%s': not %u fields\n", target, nr);
	exit(2);
}

unsigned int bn_krcore_next(struct krcore_node *node, struct krcore_wc *wcs, unsigned int max)
{
	int nr;

	while (!(nr = krcore_poll(node, wcs, max)))
		if (krcore_wait(node, 10000))
			bn_krcore_die("krcore_wait");
	if (nr < 0)
		bn_krcore_die("krcore_poll");
	return (unsigned int)nr;
}

static void bn_krcore_aim(void *arg, const char *target)
{
	struct bn_krcore *way = arg;
	char *fields[4];

	bn_target_split(target, fields, 4);
	way->ref.addr = bn_number(fields[1], 0, UINT64_MAX, "ADDR");
	way->ref.length = bn_number(fields[2], 1, UINT64_MAX, "LENGTH");
	way->ref.token = bn_number(fields[3], 0, UINT64_MAX, "TOKEN");
	if (krcore_key_from_text(fields[0], KRCORE_SERVICE_NODE, &way->peer))
		bn_krcore_die(fields[0]);
}

static void *bn_krcore_open(const char *target)
{
	struct bn_krcore *way = calloc(1, sizeof(*way));

	if (!way)
		bn_die("memory");
	bn_krcore_aim(way, target);
	way->memory = aligned_alloc(BN_PAGE, BN_PAGE);
	if (!way->memory)
		bn_die("memory");
	memset(way->memory, 0, BN_PAGE);
	if (krcore_node_open(NULL, &way->node))
		bn_krcore_die("krcore_node_open");
	if (krcore_mr_reg(way->node, way->memory, BN_PAGE, KRCORE_ACCESS_LOCAL_WRITE, &way->mr))
		bn_krcore_die("krcore_mr_reg");
	return way;
}

static void bn_krcore_connect(void *arg, unsigned int flags)
{
	struct bn_krcore *way = arg;

	if (krcore_queue_open(way->node, 1, &way->peer, 0,
			      flags & BN_WAY_FRESH ? KRCORE_CONNECT_FRESH : 0, &way->queue, NULL))
		bn_krcore_die("krcore_queue_open");
}

static int bn_krcore_attempt(void *arg)
{
	struct bn_krcore *way = arg;
	struct krcore_wr wr;
	struct krcore_wc wc;
	int taken;

	krcore_wr_read(&wr, &way->mr, way->memory, BN_READ_BYTES, &way->ref, 0, 1);
	taken = krcore_post_wait(way->node, way->queue, &wr, 1, NULL);
	if (taken != 1)
		return taken;
	bn_krcore_next(way->node, &wc, 1);
	return wc.status;
}

static void bn_krcore_read(void *arg)
{
	int err = bn_krcore_attempt(arg);

	if (!err)
		return;
	fprintf(stderr, "READ: %s\n", strerror(-err));
	exit(1);
}

static void bn_krcore_close(void *arg)
{
	struct bn_krcore *way = arg;

	if (krcore_queue_close(way->node, way->queue))
		bn_krcore_die("krcore_queue_close");
}

static void bn_krcore_done(void *arg)
{
	struct bn_krcore *way = arg;

	krcore_node_close(way->node);
	free(way->memory);
	free(way);
}

const struct bn_way bn_way_krcore = {
	.name = "krcore",
	.open = bn_krcore_open,
	.connect = bn_krcore_connect,
	.read = bn_krcore_read,
	.attempt = bn_krcore_attempt,
	.aim = bn_krcore_aim,
	.close = bn_krcore_close,
	.done = bn_krcore_done,
};

const struct bn_way *bn_way_find(const char *name)
{
	const struct bn_way *const ways[] = { &bn_way_krcore, &bn_way_cm, &bn_way_verbs };
	unsigned int i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i]->name, name))
			return ways[i];
	return NULL;
}
