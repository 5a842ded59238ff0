/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A context that has no session of its own: the node's module looks up, publishes and
 * watches for it (RECORDS in proto/krp_ioctl.h). It needs neither the cluster key nor a
 * queue pair, and shares the node's cache.
 *
 * THREADS
 *   One of its own, from the first publication or subscription on: it publishes the records
 *   again when the node's port comes back, and calls the subscriber.
 */
#ifndef KRL_BY_MODULE_H
#define KRL_BY_MODULE_H

#include <stdbool.h>

#include "client/include/krcore/krcore.h"

struct krl_module;
struct krp_record_lookup;

/**
 * krl_module_wanted() - Whether options allow the module to do the work.
 * @opts: options of this version.
 *
 * Return: false if they name a configuration, servers, a key, an identity or a lease, or
 * have KRCORE_OPEN_DIRECT: these need a session of the context's own.
 */
bool krl_module_wanted(const struct krcore_options *opts);

/**
 * krl_module_open() - Use the module of this node.
 * @opts: options of this version.
 * @ret_module: out: the module, for krl_module_close().
 *
 * Return: 0; -ENODEV: there is no module, or it has no port that is up; or another
 * negative errno.
 */
int krl_module_open(const struct krcore_options *opts, struct krl_module **ret_module);

/**
 * krl_module_close() - Undo krl_module_open(); its records are withdrawn.
 * @module: module.
 */
void krl_module_close(struct krl_module *module);

/**
 * krl_module_info() - What a look-up by the module cost, and how far its miss is proof.
 * @arg: the module's answer.
 * @err: 0 or -ENOENT.
 * @ret_info: out: cost and proof.
 */
void krl_module_info(const struct krp_record_lookup *arg, int err,
		     struct krcore_lookup_info *ret_info);

/* These five are the functions of krcore.h of the same names: any thread, the same returns. */

/* See krcore_lookup(). */
int krl_module_lookup(struct krl_module *module, const struct krcore_key *key,
		      struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);

/* See krcore_publish(). */
int krl_module_publish(struct krl_module *module, const struct krcore_key *key,
		       const struct krcore_value *value);

/* See krcore_withdraw(); -ENOENT also for a record that another context publishes. */
int krl_module_withdraw(struct krl_module *module, const struct krcore_key *key);

/* See krcore_subscribe(); fails only if the thread cannot be started. */
int krl_module_subscribe(struct krl_module *module, krcore_event_fn *fn, void *arg);

/* See krcore_stats(); counters that the module path does not have are 0. */
void krl_module_stats(struct krl_module *module, struct krcore_stats *ret_stats);

/**
 * krl_module_cannot() - Set the error text for what only a session of its own can do.
 * @what: what was asked for, human-readable.
 *
 * Return: -EOPNOTSUPP.
 */
int krl_module_cannot(const char *what);

#endif /* KRL_BY_MODULE_H */
