// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A node with an inbox: see box.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/box.h"
#include "bench/keys.h"
#include "bench/serve.h"
#include "bench/way.h"

#define BN_BOX_RING 16384

void bn_box_open(struct bn_box *box, bool serves)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .ring_entries = BN_BOX_RING };

	memset(box, 0, sizeof(*box));
	box->serves = serves;
	box->buffer = bn_memory(BN_BOX_BUFFER);
	box->memory = bn_memory(BN_BOX_MEMORY);
	if (krcore_node_open(&opts, &box->node))
		bn_krcore_die("krcore_node_open");
	if (krcore_inbox_create(box->node, 0, BN_BOX_DEPTH))
		bn_krcore_die("krcore_inbox_create");
	if (krcore_mr_reg(box->node, box->memory, BN_BOX_MEMORY,
			  KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_MESSAGE, &box->mr))
		bn_krcore_die("krcore_mr_reg");
}

unsigned int bn_box_take(struct bn_box *box, unsigned int most, int timeout_ms)
{
	int nr = krcore_recv(box->node, box->letters, most, box->buffer, BN_BOX_BUFFER, timeout_ms);

	if (nr == -ETIMEDOUT)
		return 0;
	if (nr < 0)
		bn_krcore_die("krcore_recv");
	return (unsigned int)nr;
}

/* @nr: what krcore_poll() has returned. */
static unsigned int bn_box_check(struct bn_box *box, const struct krcore_wc *wcs, int nr)
{
	int i;

	if (nr < 0)
		bn_krcore_die("krcore_poll");
	for (i = 0; i < nr; i++) {
		if (!wcs[i].status || (box->serves && wcs[i].status == -ECONNRESET))
			continue;
		fprintf(stderr, "completion: %s\n", strerror(-wcs[i].status));
		exit(1);
	}
	box->under_way -= (uint64_t)nr;
	return (unsigned int)nr;
}

unsigned int bn_box_done(struct bn_box *box)
{
	struct krcore_wc wcs[BN_BOX_LETTERS];

	return bn_box_check(box, wcs, krcore_poll(box->node, wcs, BN_BOX_LETTERS));
}

unsigned int bn_box_wait(struct bn_box *box)
{
	struct krcore_wc wcs[BN_BOX_LETTERS];

	return bn_box_check(box, wcs, (int)bn_krcore_next(box->node, wcs, BN_BOX_LETTERS));
}

void bn_box_send(struct bn_box *box, const struct krcore_send_wr *wrs, unsigned int nr)
{
	while (nr) {
		int taken = krcore_send_many(box->node, wrs, nr, NULL);

		if (taken == -EAGAIN) {
			bn_box_wait(box);
			continue;
		}
		if (box->serves && (taken == -ECONNRESET || taken == -ENOENT))
			taken = 1; /* its peer has ended */
		else if (taken < 0)
			bn_krcore_die("krcore_send_many");
		else
			box->under_way += (uint64_t)taken;
		wrs += taken;
		nr -= (unsigned int)taken;
	}
}
