// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: looking records up, and what a cached one in doubt is worth; see peer/lookup.h.
 * Locking: none of its own.
 */
#include "meta/cache.h"
#include "node/port.h"
#include "peer/lookup.h"

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
static noinline int krc_lookup_ask(struct krc_port *port, const void *payer,
				   const struct krp_key *key, bool stale, u32 timeout_ms,
				   struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt)
{
	enum krc_miss miss = KRC_MISS_PROVED;
	struct krp_value cached;
	int err;

	if (stale)
		cached = *ret_value;
	err = krc_meta_lookup(port->meta, payer, key, timeout_ms, ret_value, ret_reads, &miss);
	if (stale)
		err = krc_lookup_judge(err, miss);
	if (err == 1)
		*ret_value = cached;
	else if (stale && err == -ENOENT)
		krc_cache_forget(port->cache, key, le64_to_cpu(cached.generation));
	if (ret_doubt && (err == 1 || (err == -ENOENT && miss != KRC_MISS_PROVED)))
		*ret_doubt = true;
	return err;
}

int krc_lookup(struct krc_port *port, const void *payer, const struct krp_key *key, bool fresh,
	       u32 timeout_ms, struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt)
{
	int err = fresh ? -ENOENT : krc_cache_get(port->cache, key, ret_value);

	*ret_reads = 0;
	if (!err)
		return 1;
	return krc_lookup_ask(port, payer, key, err == -ESTALE, timeout_ms, ret_value, ret_reads,
			      ret_doubt);
}
