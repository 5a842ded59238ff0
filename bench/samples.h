/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Latencies and their quantiles, for the programs of bench/.
 *
 * One thread. All samples are kept, so that a quantile is one of them.
 */
#ifndef BN_SAMPLES_H
#define BN_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct bn_samples - Samples of one system in one case.
 * @ns: the samples.
 * @nr: how many there are.
 * @max: room for how many.
 */
struct bn_samples {
	uint64_t *ns;
	size_t nr;
	size_t max;
};

/**
 * bn_now_ns() - Monotonic clock.
 *
 * Return: ns.
 */
uint64_t bn_now_ns(void);

/**
 * bn_samples_init() - Allocate memory for the samples.
 * @s: samples.
 * @max: how many at most, not 0.
 *
 * Return: 0, or -ENOMEM.
 */
int bn_samples_init(struct bn_samples *s, size_t max);

/** bn_samples_add() - Add one; ignored if all memory is used. @s: samples. @ns: sample. */
void bn_samples_add(struct bn_samples *s, uint64_t ns);

/**
 * bn_samples_print() - Write them as one JSON object on a line of stdout, and forget them.
 * @s: samples; sorted and emptied.
 * @system: what was measured.
 * @what: the case.
 * @reads: READs they took together; 0 to say nothing of READs.
 * @lost: requests that had to be repeated.
 */
void bn_samples_print(struct bn_samples *s, const char *system, const char *what, uint64_t reads,
		      uint64_t lost);

/**
 * bn_gate() - Let the driver note the server's processor time at the right moment.
 * @what: "begin" before the samples are taken, "end" after.
 *
 * With BN_GATE=PATH in the environment: prints that the gate is reached, and
 * waits until there is a file PATH.@what.
 */
void bn_gate(const char *what);

/** bn_samples_done() - Give the memory back. @s: samples. */
void bn_samples_done(struct bn_samples *s);

#endif /* BN_SAMPLES_H */
