/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Histories of operations on the entries of a table, and whether they are linearizable.
 *
 * The algorithm is that of Wing and Gong ("Testing and verifying concurrent objects", JPDC '93)
 * with Lowe's memory of configurations ("Testing for linearizability", CCPE '17); Debian has no
 * library of it that is kept up. Operations of different keys are judged apart, which is enough:
 * linearizability is local (Herlihy and Wing, TOPLAS '90).
 */
#ifndef KRC_TESTS_RACE_HISTORY_H
#define KRC_TESTS_RACE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#define RH_OPS_MAX 4096
#define RH_KEY_OPS_MAX 64
#define RH_ABSENT 0

/** enum rh_kind - Kind of an operation. */
enum rh_kind {
	RH_GET,
	RH_PUT,
	RH_INSERT,
	RH_UPDATE,
	RH_DELETE,
};

/**
 * struct rh_op - An operation.
 * @kind: kind.
 * @key: of the entry.
 * @value: written; or found, RH_ABSENT if there was none.
 * @found: PUT: ignored; INSERT, UPDATE, DELETE: whether the key was there.
 * @pending: it is not known whether it was done: it can have been at any time after @start.
 * @start: time of the call.
 * @end: time of the return.
 */
struct rh_op {
	enum rh_kind kind;
	unsigned int key;
	uint64_t value;
	bool found, pending;
	uint64_t start, end;
};

/**
 * struct rh_history - What clients have seen.
 * @ops: operations.
 * @nr: how many.
 */
struct rh_history {
	struct rh_op ops[RH_OPS_MAX];
	unsigned int nr;
};

/**
 * rh_linearizable() - Whether there is an order that explains all results.
 * @h: history.
 * @ret_key: the key for which there is none.
 *
 * Each key has at most RH_KEY_OPS_MAX operations, and no value but 0 at the beginning.
 *
 * Return: true if there is one.
 */
bool rh_linearizable(const struct rh_history *h, unsigned int *ret_key);

#endif /* KRC_TESTS_RACE_HISTORY_H */
