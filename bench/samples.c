// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Latencies and their quantiles: see samples.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/samples.h"

uint64_t bn_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int bn_samples_init(struct bn_samples *s, size_t max)
{
	s->ns = calloc(max, sizeof(*s->ns));
	s->nr = 0;
	s->max = max;
	return s->ns ? 0 : -ENOMEM;
}

void bn_samples_add(struct bn_samples *s, uint64_t ns)
{
	if (s->nr < s->max)
		s->ns[s->nr++] = ns;
}

static int bn_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest rank. */
static uint64_t bn_quantile(const struct bn_samples *s, unsigned int permille)
{
	size_t rank = (s->nr * permille + 999) / 1000;

	return s->nr ? s->ns[rank ? rank - 1 : 0] : 0;
}

void bn_samples_print(struct bn_samples *s, const char *system, const char *what, uint64_t reads,
		      uint64_t lost)
{
	uint64_t sum = 0;
	size_t i;

	qsort(s->ns, s->nr, sizeof(*s->ns), bn_compare);
	for (i = 0; i < s->nr; i++)
		sum += s->ns[i];
	printf("{\"system\": \"%s\", \"case\": \"%s\", \"n\": %zu, \"p50\": %" PRIu64
	       ", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64 ", \"mean\": %" PRIu64,
	       system, what, s->nr, bn_quantile(s, 500), bn_quantile(s, 990), bn_quantile(s, 999),
	       s->nr ? sum / s->nr : 0);
	if (reads)
		printf(", \"reads\": %" PRIu64, reads);
	printf(", \"lost\": %" PRIu64 "}\n", lost);
	fflush(stdout);
	s->nr = 0;
}

void bn_gate(const char *what)
{
	const char *path = getenv("BN_GATE");
	char name[256];

	if (!path)
		return;
	snprintf(name, sizeof(name), "%s.%s", path, what);
	printf("gate %s\n", what);
	fflush(stdout);
	while (access(name, F_OK))
		usleep(20000);
}

void bn_samples_done(struct bn_samples *s)
{
	free(s->ns);
	s->ns = NULL;
	s->nr = 0;
	s->max = 0;
}
