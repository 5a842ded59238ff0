/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the services and records that a context publishes, until it ends.
 */
#ifndef KRC_SERVICE_H
#define KRC_SERVICE_H

#include "krp_ioctl.h"

struct krc_context;

/* KRP_IOC_BIND, KRP_IOC_PUBLISH. Context: may sleep. Return: 0 or an errno of krp_ioctl.h. */
int krc_ioc_bind(struct krc_context *ctx, struct krp_bind *arg);
int krc_ioc_publish(struct krc_context *ctx, struct krp_record_publish *arg);

/* Withdraw all services of a context. Context: may sleep. */
void krc_bind_undo_all(struct krc_context *ctx);

#endif /* KRC_SERVICE_H */
