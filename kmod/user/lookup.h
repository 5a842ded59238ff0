/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: finding a record for a program: the node's cache first, then a MetaServer.
 */
#ifndef KRC_LOOKUP_H
#define KRC_LOOKUP_H

#include <linux/types.h>

#include "krp_ioctl.h"
#include "krp_table.h"

struct krc_context;
struct krc_port;

/**
 * krc_lookup() - The record of a key.
 * @port: port, entered; its sessions are used.
 * @key: name.
 * @fresh: do not ask the cache.
 * @timeout_ms: at most so long.
 * @ret_value: out: value.
 * @ret_reads: out: READs of a MetaServer that it took.
 * @ret_doubt: out with -ENOENT, else untouched: the miss is not proved; may be NULL.
 *
 * Context: may sleep, killable.
 * Return: 0; 1 from the cache; or the error of krc_meta_lookup().
 */
int krc_lookup(struct krc_port *port, const struct krp_key *key, bool fresh, u32 timeout_ms,
	       struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt);

/**
 * krc_ioc_lookup() - KRP_IOC_LOOKUP.
 * @ctx: context.
 * @arg: question, then answer.
 *
 * Context: may sleep.
 * Return: 0 or what krp_ioctl.h says.
 */
int krc_ioc_lookup(struct krc_context *ctx, struct krp_record_lookup *arg);

#endif /* KRC_LOOKUP_H */
