/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: giving programs the letters that have come.
 */
#ifndef KRC_RECV_H
#define KRC_RECV_H

#include "user/mailbox.h"

/**
 * krc_ioc_recv() - KRP_IOC_RECV: take letters.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h; out: taken, and used, also with -EMSGSIZE.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h; then none was taken.
 */
int krc_ioc_recv(struct krc_context *ctx, struct krp_recv *arg);

#endif /* KRC_RECV_H */
