/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the set of a client's sessions: switching to a configuration, and stopping.
 * Locking: every function may be called from several threads concurrently; those that say "may sleep"
 * need process context.
 */
#ifndef KRC_META_SERVERS_H
#define KRC_META_SERVERS_H

#include <linux/types.h>

struct krc_meta;
struct krc_meta_conf;
struct krc_meta_plan;

/**
 * krc_meta_stop() - Withdraw (waiting at most 1 s), end all sessions, and let every present
 * and later call return -ESHUTDOWN at once.
 * @meta: client; stays valid until krc_meta_destroy().
 *
 * Context: may sleep.
 */
void krc_meta_stop(struct krc_meta *meta);

/**
 * krc_meta_plan() - Allocate all that a new configuration needs; nothing changes yet.
 * @meta: client.
 * @conf: configuration; same generation as at krc_meta_create().
 *
 * Context: may sleep.
 * Return: the plan, for krc_meta_switch() or krc_meta_plan_free(), or an ERR_PTR as
 * krc_meta_create().
 */
struct krc_meta_plan *krc_meta_plan(struct krc_meta *meta, const struct krc_meta_conf *conf);

/**
 * krc_meta_plan_free() - Free a plan that was not switched to.
 * @plan: plan or NULL.
 *
 * Context: may sleep.
 */
void krc_meta_plan_free(struct krc_meta_plan *plan);

/**
 * krc_meta_switch() - Switch to a new configuration while the client is in use.
 * @meta: client.
 * @conf: configuration that the plan was made from; copied.
 * @plan: plan; consumed.
 *
 * Context: may sleep.
 * Servers of both configurations keep their session, unless owner, name or lease change, or
 * keys appear where there were none or vanish; changed keys count from the next handshake
 * on. Our records are withdrawn from each dropped server, within at most 1 s. Cannot fail.
 */
void krc_meta_switch(struct krc_meta *meta, const struct krc_meta_conf *conf,
		     struct krc_meta_plan *plan);

/**
 * krc_meta_reconfigure() - krc_meta_plan() and krc_meta_switch() in one.
 * @meta: client.
 * @conf: configuration; copied. Same generation as at krc_meta_create().
 *
 * Context: may sleep.
 * Return: 0, or an errno as krc_meta_create(); then nothing has changed.
 */
int krc_meta_reconfigure(struct krc_meta *meta, const struct krc_meta_conf *conf);

#endif /* KRC_META_SERVERS_H */
