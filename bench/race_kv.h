/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker's store, for bench_race: the table of krcore-race by one of several networks, or Redis.
 *
 * Above the transport table (race/lib/transport.h) all that work on the table run the same code,
 * on the same table in the same memory. Records are those of keys.h: a key of 18 bytes and a value
 * of 56. An instance belongs to one thread. Whatever fails says so and ends the program.
 */
#ifndef BN_RACE_KV_H
#define BN_RACE_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "race/lib/client.h"

#define BN_KV_MAX 8 /* systems of a run */

/**
 * struct bn_kv_target - A system, and where it is.
 * @system: krcore; krcore_lookup, which uses nothing that the node knows of the peer; verbs_rc,
 *	rdma_cm, redis.
 * @target: krcore's: ADDRESS; the others: ADDRESS,PORT.
 */
struct bn_kv_target {
	const char *system;
	const char *target;
};

struct bn_kv;

/** bn_kv_target() - Take SYSTEM=TARGET apart, or end. @text: it; changed. @ret: filled. */
void bn_kv_target(char *text, struct bn_kv_target *ret);

/** bn_kv_open() - Connect, with nothing made before. @target: to what. Return: an instance. */
struct bn_kv *bn_kv_open(const struct bn_kv_target *target);

/** bn_kv_get() - Look a record up, which must be there. @kv: instance. @nr: its number. */
void bn_kv_get(struct bn_kv *kv, uint64_t nr);

/** bn_kv_put() - Replace the value of a record. @kv: instance. @nr: its number. */
void bn_kv_put(struct bn_kv *kv, uint64_t nr);

/** bn_kv_stats() - Counters of the table's client. @kv: instance. Return: them; NULL for Redis. */
const struct kr_stats *bn_kv_stats(const struct bn_kv *kv);

/** bn_kv_close() - Disconnect. @kv: instance. */
void bn_kv_close(struct bn_kv *kv);

/**
 * bn_rc_open() - The transport over an RC queue pair that is made for it.
 * @target: ADDRESS,PORT of bn_serve_cm() or bn_serve_verbs().
 * @cm: connect by rdma_cm; else by plain verbs, with numbers exchanged over TCP.
 *
 * After a failure it does not connect again: nothing fails in a bench.
 *
 * Return: it.
 */
struct kr_transport *bn_rc_open(const char *target, bool cm);

/**
 * bn_local_open() - The transport within a process, for filling a table before it is served; one
 * at a time.
 * @memory: the table.
 * @bytes: its size.
 *
 * Return: it.
 */
struct kr_transport *bn_local_open(void *memory, size_t bytes);

/** bn_kv_fill() - Insert records 0 to @nr - 1 into a table. @c: client. */
void bn_kv_fill(struct kr_client *c, uint64_t nr);

#endif /* BN_RACE_KV_H */
