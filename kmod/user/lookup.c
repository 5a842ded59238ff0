// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: looking records up for programs; see user/lookup.h.
 *
 * A program gets the bytes that another program published. Of a DC target it learns only that
 * the target exists: the keys give access to every region of that node and stay in the kernel.
 * Locking: none of its own.
 */
#include <linux/string.h>

#include "node/port.h"
#include "peer/lookup.h"
#include "user/context.h"
#include "user/lookup.h"

static void krc_lookup_tell(const struct krp_value *value, struct krp_record_lookup *arg)
{
	arg->generation = le64_to_cpu(value->generation);
	arg->kind = value->kind;
	if (value->kind != KRP_KIND_RAW)
		return;
	arg->raw_len = value->len;
	memcpy(arg->raw, value->raw, sizeof(arg->raw));
}

int krc_ioc_lookup(struct krc_context *ctx, struct krp_record_lookup *arg)
{
	struct krp_key key = { .service = cpu_to_le16(arg->service) };
	struct krc_port *port = krc_context_port(ctx);
	struct krp_value value;
	bool doubt = false;
	int err;

	if (arg->flags & ~KRP_LOOKUP_FRESH || arg->answer || arg->kind || arg->raw_len ||
	    !krp_is_zero(arg->raw, sizeof(arg->raw)))
		return -EINVAL;
	if (!arg->timeout_ms || arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX)
		return -EINVAL;
	if (!port)
		return -EBADFD;
	memcpy(key.gid, arg->gid, sizeof(key.gid));
	if (!krc_port_enter(port))
		return -ENODEV;
	err = krc_lookup(port, krc_charge_payer(&ctx->charge), &key, arg->flags & KRP_LOOKUP_FRESH,
			 arg->timeout_ms, &value, &arg->reads, &doubt);
	krc_port_exit(port);
	if (doubt)
		arg->answer = KRP_LOOKUP_DOUBT;
	if (err < 0)
		return err;
	krc_lookup_tell(&value, arg);
	return 0;
}
