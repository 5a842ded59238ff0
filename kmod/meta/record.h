/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what callers say of this port's records: publish, withdraw, and the hand-over of orphans.
 * Locking: every function may be called from several threads concurrently; those that say "may sleep"
 * need process context.
 */
#ifndef KRC_META_RECORD_H
#define KRC_META_RECORD_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "krp_records.h"
#include "krp_table.h"

struct krc_meta;

/**
 * krc_meta_publish() - Publish a record at every server, now and after each attach, until
 * it is withdrawn.
 * @meta: client.
 * @service: service; the GID is the client's.
 * @value: value; copied, with the generation of the configuration.
 *
 * Publishing the same service again replaces the value.
 * Context: may sleep.
 * Return: 0, -ENOMEM, -EINVAL (invalid value), or -ESHUTDOWN.
 */
int krc_meta_publish(struct krc_meta *meta, u16 service, const struct krp_value *value);

/**
 * krc_meta_take_orphans() - Take the records that a client could not withdraw.
 * @meta: client, after krc_meta_stop().
 * @left: the orphaned records are moved to this list.
 *
 * A port that lost its address reaches no server any more. Where servers let any address publish
 * (publish_any_gid) another port withdraws them at once; elsewhere their lease ends them, unless a
 * port has the address again and extends it.
 * Context: any.
 */
void krc_meta_take_orphans(struct krc_meta *meta, struct krp_list *left);

/**
 * krc_meta_adopt_orphans() - Withdraw orphaned records of other clients of this node.
 * @meta: client.
 * @left: orphaned records; adopted ones are removed from the list. A record that @meta
 *	publishes itself is not withdrawn, only removed from the list.
 * @own: adopt only records of @meta's own GID.
 *
 * Context: any.
 */
void krc_meta_adopt_orphans(struct krc_meta *meta, struct krp_list *left, bool own);

/**
 * krc_meta_release_orphans() - Hand adopted records of one GID back to the caller.
 * @meta: client.
 * @gid: GID; the port that owns it now is about to publish, and handles them from here on.
 * @left: the records are moved to this list.
 *
 * Context: any.
 */
void krc_meta_release_orphans(struct krc_meta *meta, const union ib_gid *gid,
			      struct krp_list *left);

/**
 * krc_meta_drop_orphans() - Free orphaned records.
 * @left: orphaned records; empty afterwards.
 *
 * Context: any.
 */
void krc_meta_drop_orphans(struct krp_list *left);

/**
 * krc_meta_published() - Wait until at least one server has acknowledged a record.
 * @meta: client.
 * @service: service.
 * @timeout_ms: longest wait.
 *
 * Context: may sleep, interruptible.
 * Return: 0, -ENOENT (not published by us), -ETIMEDOUT, -ERESTARTSYS, -ESHUTDOWN, or the
 * refusal of a server (krp_status_errno()): at once if all refused, at the timeout if any did.
 */
int krc_meta_published(struct krc_meta *meta, u16 service, u32 timeout_ms);

/**
 * krc_meta_withdraw() - Withdraw a record from every server.
 * @meta: client.
 * @service: service.
 *
 * Context: may sleep; does not wait for the servers.
 */
void krc_meta_withdraw(struct krc_meta *meta, u16 service);

#endif /* KRC_META_RECORD_H */
