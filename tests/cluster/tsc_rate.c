// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * tsc_rate.c - prints the rate of this machine's time stamp counter in kHz.
 *
 * An emulated guest reads this very counter, but measures its rate against emulated
 * timers; on a busy machine it is then wrong by per cents, and so is its clock. Here
 * each reading is bracketed by two of the system's clock, and the tightest of many
 * counts, so that being interrupted does no harm. One thread, a quarter of a second.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 2000
#define PAUSE_NS 250000000

struct reading {
	double ns;
	double ticks;
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static struct reading read_both(void)
{
	struct reading best = { 0, 0 };
	double before, after, tightest = 1e18;
	uint64_t ticks;
	int i;

	for (i = 0; i < TRIES; i++) {
		before = now_ns();
		ticks = __rdtsc();
		after = now_ns();
		if (after - before < tightest) {
			tightest = after - before;
			best.ns = (before + after) / 2;
			best.ticks = (double)ticks;
		}
	}
	return best;
}

int main(void)
{
	struct timespec pause = { 0, PAUSE_NS };
	struct reading first, second;

	first = read_both();
	nanosleep(&pause, NULL);
	second = read_both();
	printf("%.0f\n", (second.ticks - first.ticks) / (second.ns - first.ns) * 1e6);
	return 0;
}
