/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: finding a record for a program or for a client in the kernel: the node's cache first, then
 * a MetaServer.
 */
#ifndef KRC_PEER_LOOKUP_H
#define KRC_PEER_LOOKUP_H

#include <linux/types.h>

#include "krp_table.h"
#include "meta/meta.h"

struct krc_port;

/**
 * krc_lookup() - Look up the record of a key.
 * @port: port, entered: its MetaServer sessions are used.
 * @payer: who pays, see krc_charge_payer().
 * @key: GID and service of the record.
 * @fresh: skip the node's cache.
 * @timeout_ms: limit of the look-up in milliseconds.
 * @ret_value: out: value.
 * @ret_reads: out: READs of a MetaServer that were needed; 0 from the cache.
 * @ret_doubt: set with -ENOENT: the miss is not proved; with 1: the record is in doubt, and no
 *	server could confirm it. Else untouched; may be NULL.
 *
 * If notifications may have been missed, a cached record is in doubt, and the servers are asked.
 * If none can be asked, or all that answer settle or hang, it is the answer nevertheless: whoever
 * connects by it finds out by the first READ of the peer's directory whether it was right. A
 * server that should have the record and does not is believed.
 * Context: may sleep, killable.
 * Return: 0; 1 if the cache had it; or the error of krc_meta_lookup().
 */
int krc_lookup(struct krc_port *port, const void *payer, const struct krp_key *key, bool fresh,
	       u32 timeout_ms, struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt);

/**
 * krc_lookup_judge() - Whether a cached record in doubt is the answer.
 * @err: of krc_meta_lookup() for the same key.
 * @miss: with -ENOENT: what it is worth.
 *
 * Context: any.
 * Return: 1: the cached record is; else @err.
 */
int krc_lookup_judge(int err, enum krc_miss miss);

#endif /* KRC_PEER_LOOKUP_H */
