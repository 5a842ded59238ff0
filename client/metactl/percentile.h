/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Percentiles of a set of samples, by nearest rank. No state: any thread. */
#ifndef MC_PERCENTILE_H
#define MC_PERCENTILE_H

#include <stddef.h>
#include <stdint.h>

/** mc_samples_sort() - Prepare for mc_percentile(). @samples: sorted in place. @nr: how many. */
void mc_samples_sort(uint64_t *samples, size_t nr);

/**
 * mc_percentile() - The least sample that so many are not above.
 * @samples: sorted.
 * @nr: how many, not 0.
 * @permille: 1 to 1000: 500 is the median, 999 p99.9.
 *
 * Return: the sample of rank ceil(@nr * @permille / 1000).
 */
uint64_t mc_percentile(const uint64_t *samples, size_t nr, unsigned int permille);

#endif /* MC_PERCENTILE_H */
