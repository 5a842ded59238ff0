/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of bench_race.
 */
#ifndef BN_RACE_H
#define BN_RACE_H

#include <stdint.h>

#include "bench/race_kv.h"

/**
 * struct bn_zipf - Numbers with Zipf's distribution, scrambled, as YCSB draws them.
 * @records: from 0 to this less one.
 * @zeta: sum of 1 / i^theta.
 * @alpha: see bn_zipf_next().
 * @eta: see bn_zipf_next().
 */
struct bn_zipf {
	uint64_t records;
	double zeta, alpha, eta;
};

/** bn_zipf_init() - Prepare. @z: filled. @records: how many, from 2. */
void bn_zipf_init(struct bn_zipf *z, uint64_t records);

/**
 * bn_zipf_next() - Draw (Gray et al., SIGMOD '94; theta is 0.99).
 * @z: distribution.
 * @random: state of bn_random().
 *
 * Return: number of a record.
 */
uint64_t bn_zipf_next(const struct bn_zipf *z, uint64_t *random);

/**
 * struct bn_ycsb_op - An operation of a workload.
 * @nr: record.
 * @get: look it up.
 * @put: then change it.
 */
struct bn_ycsb_op {
	uint64_t nr;
	bool get, put;
};

/**
 * bn_ycsb_draw() - Draw an operation of a workload.
 * @workload: A: half are updates; B: one of twenty; C: none; F: half read, then update; U: all
 *	are updates.
 * @z: which record.
 * @random: state of bn_random().
 * @ret: filled.
 */
void bn_ycsb_draw(char workload, const struct bn_zipf *z, uint64_t *random, struct bn_ycsb_op *ret);

/** bn_ycsb_do() - Do an operation. @kv: store. @op: it. */
void bn_ycsb_do(struct bn_kv *kv, const struct bn_ycsb_op *op);

/**
 * bn_spike() - bench_race spike; see race_spike.c.
 * @argc: arguments behind the word.
 * @argv: they.
 *
 * Return: exit status; 2 if the arguments are not what it takes.
 */
int bn_spike(int argc, char **argv);

#endif /* BN_RACE_H */
