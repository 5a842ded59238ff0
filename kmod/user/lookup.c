// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: looking records up for programs; see user/lookup.h.
 *
 * A program gets the bytes that another program published. Of a DC target it learns only that
 * the target exists: the keys give access to every region of that node and stay in the kernel.
 * Locking: none of its own.
 */
#include <linux/string.h>

#include "meta/cache.h"
#include "node/port.h"
#include "user/context.h"
#include "user/lookup.h"

int krc_lookup_judge(int err, enum krc_miss miss)
{
	switch (err) {
	case -ENOENT:
		return miss == KRC_MISS_WEAK ? 1 : err;
	case -ENOTCONN:
	case -ETIMEDOUT:
		return 1;
	default:
		return err;
	}
}

/*
 * Ask the MetaServers. @stale: @ret_value holds the cached record, which is in doubt. Apart from
 * krc_lookup(), so that a hit does not pay for the stack that is cleared here.
 */
static noinline int krc_lookup_ask(struct krc_context *ctx, const struct krp_key *key, bool stale,
				   u32 timeout_ms, struct krp_value *ret_value, u32 *ret_reads,
				   bool *ret_doubt)
{
	enum krc_miss miss = KRC_MISS_PROVED;
	struct krp_value cached;
	int err;

	if (stale)
		cached = *ret_value;
	err = krc_meta_lookup(krc_context_port(ctx)->meta, krc_charge_payer(&ctx->charge), key,
			      timeout_ms, ret_value, ret_reads, &miss);
	if (stale)
		err = krc_lookup_judge(err, miss);
	if (err == 1)
		*ret_value = cached;
	else if (stale && err == -ENOENT)
		krc_cache_forget(krc_node_cache(), key, le64_to_cpu(cached.generation));
	if (ret_doubt && (err == 1 || (err == -ENOENT && miss != KRC_MISS_PROVED)))
		*ret_doubt = true;
	return err;
}

int krc_lookup(struct krc_context *ctx, const struct krp_key *key, bool fresh, u32 timeout_ms,
	       struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt)
{
	int err = fresh ? -ENOENT : krc_cache_get(krc_node_cache(), key, ret_value);

	*ret_reads = 0;
	if (!err)
		return 1;
	return krc_lookup_ask(ctx, key, err == -ESTALE, timeout_ms, ret_value, ret_reads,
			      ret_doubt);
}

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
	err = krc_lookup(ctx, &key, arg->flags & KRP_LOOKUP_FRESH, arg->timeout_ms, &value,
			 &arg->reads, &doubt);
	krc_port_exit(port);
	if (doubt)
		arg->answer = KRP_LOOKUP_DOUBT;
	if (err < 0)
		return err;
	krc_lookup_tell(&value, arg);
	return 0;
}
