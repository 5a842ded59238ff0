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

struct krp_record_lookup;

#pragma GCC visibility push(default)

/**
 * krl_module_wanted() - Whether options allow the module to do the work.
 * @opts: options of this version.
 *
 * Return: false if they name a configuration, servers, a key, an identity or a lease, or
 * have KRCORE_OPEN_DIRECT: these need a session of the context's own.
 */
bool krl_module_wanted(const struct krcore_options *opts);

/**
 * krl_module_open() - Make a context that the module of this node serves.
 * @opts: options of this version.
 * @ret_ctx: out: the context, for krcore_close(), which withdraws its records.
 *
 * Return: 0; -ENODEV: there is no module, or it has no port that is up; or another
 * negative errno.
 */
int krl_module_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx);

/**
 * krl_module_info() - What a look-up by the module cost, and how far its miss is proof.
 * @arg: the module's answer.
 * @err: 0 or -ENOENT.
 * @ret_info: out: cost and proof.
 */
void krl_module_info(const struct krp_record_lookup *arg, int err,
		     struct krcore_lookup_info *ret_info);

/**
 * krl_module_cannot() - Set the error text for what only a session of its own can do.
 * @what: what was asked for, human-readable.
 *
 * Return: -EOPNOTSUPP.
 */
int krl_module_cannot(const char *what);

#pragma GCC visibility pop

#endif /* KRL_BY_MODULE_H */
