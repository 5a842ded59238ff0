// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Functions of krcore.h that any context has: each context brings its own.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/base.h"
#include "client/lib/out.h"

int krl_options(const struct krcore_options *opts, struct krcore_options *ret_opts)
{
	static const struct krcore_options none = { .size = sizeof(none) };
	const uint8_t *bytes = (const uint8_t *)opts;
	size_t i;

	memset(ret_opts, 0, sizeof(*ret_opts));
	if (!opts)
		opts = &none;
	if (opts->size < offsetof(struct krcore_options, flags) + sizeof(opts->flags))
		return krl_error(
			-EINVAL,
			"options.size %zu is too small; it must be sizeof(struct krcore_options)",
			opts->size);
	for (i = sizeof(*opts); opts != &none && i < opts->size; i++)
		if (bytes[i])
			return krl_error(
				-EINVAL,
				"options have fields that this version of the library does not know");
	memcpy(ret_opts, opts, sizeof(*ret_opts));
	if (ret_opts->flags & ~(KRCORE_OPEN_NOWAIT | KRCORE_OPEN_DIRECT))
		return krl_error(-EINVAL, "options.flags 0x%x has unknown bits", ret_opts->flags);
	return 0;
}

void krcore_close(struct krcore_ctx *ctx)
{
	if (ctx)
		krl_ops_of(ctx)->close(ctx);
}

int krcore_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
		  struct krcore_value *ret_value, struct krcore_lookup_info *ret_info)
{
	int err = KRL_LOOKUP_INFO_CHECK(ret_info);

	return err ? err : krl_ops_of(ctx)->lookup(ctx, key, ret_value, ret_info);
}

int krcore_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		   const struct krcore_value *value)
{
	return krl_ops_of(ctx)->publish(ctx, key, value);
}

int krcore_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key)
{
	return krl_ops_of(ctx)->withdraw(ctx, key);
}

int krcore_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg)
{
	return krl_ops_of(ctx)->subscribe(ctx, fn, arg);
}

int krcore_servers(struct krcore_ctx *ctx, struct krcore_server_info *servers, unsigned int nr)
{
	int err = KRL_SERVER_INFO_CHECK(nr ? servers : NULL);

	return err ? err : krl_ops_of(ctx)->servers(ctx, servers, nr);
}

int krcore_stats(struct krcore_ctx *ctx, struct krcore_stats *ret_stats)
{
	int err = KRL_STATS_CHECK(ret_stats);
	struct krcore_stats stats;

	if (err)
		return err;
	krl_ops_of(ctx)->stats(ctx, &stats);
	krl_out_fill(ret_stats, &stats, sizeof(stats));
	return 0;
}
