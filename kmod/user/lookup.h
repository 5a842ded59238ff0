/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: looking records up for programs.
 */
#ifndef KRC_LOOKUP_H
#define KRC_LOOKUP_H

#include "krp_ioctl.h"

struct krc_context;

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
