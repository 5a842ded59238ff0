// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Percentiles by nearest rank: see percentile.h. */
#include <stdlib.h>

#include "client/metactl/percentile.h"

static int mc_by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void mc_samples_sort(uint64_t *samples, size_t nr)
{
	qsort(samples, nr, sizeof(*samples), mc_by_size);
}

uint64_t mc_percentile(const uint64_t *samples, size_t nr, unsigned int permille)
{
	size_t rank = (nr * permille + 999) / 1000;

	return samples[(rank ? rank : 1) - 1];
}
