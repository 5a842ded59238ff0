/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the services and records that a context publishes, until it ends.
 */
#ifndef KRC_SERVICE_H
#define KRC_SERVICE_H

#include "krp_ioctl.h"

struct krc_context;

/**
 * krc_ioc_bind() - KRP_IOC_BIND: publish the port's own record under a service number, or undo
 * that.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Waits until one MetaServer has the record, and for the user's turn if it publishes too often.
 * Context: may sleep.
 * Return: 0, -EBADFD (no port), -EINVAL (service, flags, reserved field, timeout), -EADDRINUSE,
 * -EDQUOT, -ENOSPC (services of the node), -ENOMEM, -ENODEV, -EBUSY (another thread is at it, or
 * the user's turn comes too late), -ERESTARTSYS, an error of krc_meta_publish() or
 * krc_meta_published(); with KRP_BIND_UNDO -ENOENT (not bound by this context). On an error nothing
 * stays bound.
 */
int krc_ioc_bind(struct krc_context *ctx, struct krp_bind *arg);

/**
 * krc_ioc_publish() - KRP_IOC_PUBLISH: publish bytes of the program under a service number, or
 * replace them.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Waits as krc_ioc_bind() does.
 * Context: may sleep.
 * Return: 0 or an error as krc_ioc_bind(); -EADDRINUSE also if this context has bound the number.
 * On an error the record published before is published again.
 */
int krc_ioc_publish(struct krc_context *ctx, struct krp_record_publish *arg);

/**
 * krc_bind_undo_all() - Withdraw all services of a context.
 * @ctx: context.
 *
 * Does not wait for the MetaServers. Context: may sleep.
 */
void krc_bind_undo_all(struct krc_context *ctx);

#endif /* KRC_SERVICE_H */
