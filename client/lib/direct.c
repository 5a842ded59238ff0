// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What all of libkrcore uses: the clock, and whether a context is of its kind.
 */
#include <time.h>

#include "client/lib/lib.h"

uint64_t krl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

bool krl_is_direct(const struct krcore_ctx *ctx, const char *what)
{
	if (krl_ops_of(ctx)->direct)
		return true;
	krl_module_cannot(what);
	return false;
}
