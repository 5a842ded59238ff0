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
 * krc_lookup() - Look up the record of a key.
 * @port: port, entered; its MetaServer sessions are used.
 * @key: GID and service of the record.
 * @fresh: skip the node's cache.
 * @timeout_ms: limit of the look-up in milliseconds.
 * @ret_value: out: value.
 * @ret_reads: out: READs of a MetaServer that were needed; 0 from the cache.
 * @ret_doubt: out with -ENOENT, else untouched: the miss is not proved; may be NULL.
 *
 * Context: may sleep, killable.
 * Return: 0; 1 if the cache had it; or the error of krc_meta_lookup().
 */
int krc_lookup(struct krc_port *port, const struct krp_key *key, bool fresh, u32 timeout_ms,
	       struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt);

/**
 * krc_ioc_lookup() - KRP_IOC_LOOKUP.
 * @ctx: context.
 * @arg: in and out, as in krp_ioctl.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl.h.
 */
int krc_ioc_lookup(struct krc_context *ctx, struct krp_record_lookup *arg);

#endif /* KRC_LOOKUP_H */
