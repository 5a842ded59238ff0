/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of libkrcore-queue: what all of it uses, and what libkrcore uses of it.
 *
 * libkrcore-queue needs the C library alone. It has queues, and contexts of krcore.h that the
 * module of this node serves; libkrcore adds contexts that are attached to MetaServers. What
 * libkrcore calls here is exported with the version KRCORE_PRIVATE, which programs do not
 * use: both libraries are of the same version always.
 */
#ifndef KRL_BASE_H
#define KRL_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/include/krcore/krcore.h"
#include "proto/krp_table.h"

/**
 * struct krl_ops - What a kind of context does for the functions of krcore.h.
 * @direct: the context is libkrcore's struct krcore_ctx.
 * @close: see krcore_close(); the context is not NULL.
 * @lookup: see krcore_lookup(); the size of the last argument is checked.
 * @publish: see krcore_publish().
 * @withdraw: see krcore_withdraw().
 * @subscribe: see krcore_subscribe().
 * @servers: see krcore_servers(); the size of the first element is checked.
 * @stats: fill all fields of this version but size.
 */
struct krl_ops {
	bool direct;
	void (*close)(struct krcore_ctx *ctx);
	int (*lookup)(struct krcore_ctx *ctx, const struct krcore_key *key,
		      struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);
	int (*publish)(struct krcore_ctx *ctx, const struct krcore_key *key,
		       const struct krcore_value *value);
	int (*withdraw)(struct krcore_ctx *ctx, const struct krcore_key *key);
	int (*subscribe)(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg);
	int (*servers)(struct krcore_ctx *ctx, struct krcore_server_info *servers, unsigned int nr);
	void (*stats)(struct krcore_ctx *ctx, struct krcore_stats *ret_stats);
};

/**
 * struct krl_head - First member of a context of either kind.
 * @ops: functions of its kind.
 */
struct krl_head {
	const struct krl_ops *ops;
};

/** krl_ops_of() - The functions of a context's kind. @ctx: context. Return: them. */
static inline const struct krl_ops *krl_ops_of(const struct krcore_ctx *ctx)
{
	return ((const struct krl_head *)ctx)->ops;
}

/** struct krl_counters - Statistics, relaxed atomics; see struct krcore_stats. */
struct krl_counters {
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;
	_Atomic uint64_t misses_overruled;
	_Atomic uint64_t errors;
	_Atomic uint64_t reads;
	_Atomic uint64_t torn;
	_Atomic uint64_t stale;
	_Atomic uint64_t fallbacks;
	_Atomic uint64_t failovers;
	_Atomic uint64_t attaches;
	_Atomic uint64_t publishes;
	_Atomic uint64_t renewals;
	_Atomic uint64_t notifications;
};

/**
 * krl_count() - Add to a counter of statistics.
 * @counter: counter.
 * @by: how much; 0 costs no atomic operation.
 *
 * Any thread, any lock: relaxed, orders nothing.
 */
static inline void krl_count(_Atomic uint64_t *counter, uint64_t by)
{
	if (by)
		atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

#pragma GCC visibility push(default)

/* error.c: any thread */

/**
 * krl_error() - Set the calling thread's error text, for krcore_error_text().
 * @err: negative errno.
 * @format: of printf(); a text beyond 511 bytes is cut.
 *
 * Any thread.
 * Return: @err.
 */
int krl_error(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * krl_error_const() - Set the calling thread's error text without formatting: for paths that fail
 * often.
 * @err: negative errno.
 * @text: kept by pointer: of static lifetime.
 *
 * Any thread.
 * Return: @err.
 */
int krl_error_const(int err, const char *text);

/* convert.c: any thread */

/**
 * krl_value_to_wire() - Check a caller's value and convert it.
 * @value: value; its kind and the ranges of that kind's fields are checked.
 * @generation: boot generation that the record carries.
 * @ret_wire: out: the value; unspecified on failure.
 *
 * Any thread.
 * Return: 0, or -EINVAL with the error text set.
 */
int krl_value_to_wire(const struct krcore_value *value, uint64_t generation,
		      struct krp_value *ret_wire);

/**
 * krl_value_from_wire() - Check a server's value and convert it.
 * @wire: value as READ or received; not trusted.
 * @ret_value: out: the value; untouched on failure.
 *
 * Any thread.
 * Return: 0, or -EPROTO with the error text set.
 */
int krl_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value);

/* ctx.c: any thread */

/**
 * krl_options() - Copy options of any version of the structure.
 * @opts: options with their size, or NULL: all defaults.
 * @ret_opts: out: options of this version; fields that the caller's version lacks are zero.
 *
 * Any thread.
 * Return: 0, or -EINVAL with the error text set: size too small, unknown flags, or a field that is
 * not zero and not known to this version.
 */
int krl_options(const struct krcore_options *opts, struct krcore_options *ret_opts);

#pragma GCC visibility pop

#endif /* KRL_BASE_H */
