/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what user/service.c shows to its KUnit suite: a service of a context.
 * Locking: see user/service.c.
 */
#ifndef KRC_SERVICE_PRIV_H
#define KRC_SERVICE_PRIV_H

#include <linux/list.h>

#include "base/limits.h"
#include "krp_table.h"
#include "user/service.h"

/**
 * struct krc_service - A service of a context.
 * @list: entry in krc_services.
 * @ctx: context that owns it.
 * @charge: charge for it.
 * @service: number.
 * @settled: no call is publishing it, so it may be withdrawn or replaced.
 * @value: the value published.
 */
struct krc_service {
	struct list_head list;
	struct krc_context *ctx;
	struct krc_charge charge;
	u16 service;
	bool settled;
	struct krp_value value;
};

/**
 * krc_service_begin() - Charge and list a service of a context, not settled and without value.
 * @ctx: context, set up.
 * @number: number of the service.
 *
 * Context: may sleep; the process that is charged.
 * Return: the service, or ERR_PTR: -EADDRINUSE, -ENOMEM, the errors of krc_charge_share().
 */
struct krc_service *krc_service_begin(struct krc_context *ctx, u16 number);

#endif /* KRC_SERVICE_PRIV_H */
