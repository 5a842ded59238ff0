// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All that a process needs before its first byte, in one call.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/base.h"
#include "client/lib/node.h"
#include "client/lib/out.h"
#include "common/gid.h"

#define KRL_START_DEPTH 64 /* its ring is one page */
#define KRL_START_TIMEOUT_MS 5000

static int krl_start_options(const struct krcore_start_options *opts,
			     struct krcore_start_options *ret_all)
{
	if (opts->size != sizeof(*ret_all))
		return krl_error(-EINVAL, "options of %zu bytes are not of this version",
				 opts->size);
	*ret_all = *opts;
	if (opts->nr > KRCORE_POST_MAX || (opts->nr && !opts->wrs))
		return krl_error(-EINVAL, "%u requests: at most %u, and not without an array",
				 opts->nr, KRCORE_POST_MAX);
	if (opts->record > UINT16_MAX)
		return krl_error(-EINVAL, "record %u is no service", opts->record);
	if (!ret_all->depth)
		ret_all->depth = KRL_START_DEPTH;
	if (!ret_all->timeout_ms)
		ret_all->timeout_ms = KRL_START_TIMEOUT_MS;
	return 0;
}

/* Options of the node, with a ring that is no larger than the queue needs. */
static int krl_start_node(const struct krcore_start_options *opts, struct krcore_node **ret_node)
{
	struct krcore_node_options node = { .size = sizeof(node) };

	if (opts->node) {
		if (opts->node->size < sizeof(node.size) || opts->node->size > sizeof(node))
			return krcore_node_open(opts->node, ret_node); /* says what is wrong */
		memcpy(&node, opts->node, opts->node->size);
		node.size = sizeof(node);
	}
	if (!node.ring_entries && opts->depth <= KRCORE_QUEUE_DEPTH_MAX)
		for (node.ring_entries = KRP_RING_ENTRIES_MIN; node.ring_entries < opts->depth;)
			node.ring_entries *= 2;
	return krcore_node_open(&node, ret_node);
}

/* The region that the peer has published. */
static int krl_start_lookup(const struct krcore_start_options *opts, struct krcore_started *made)
{
	struct krp_record_lookup arg = {
		.service = (uint16_t)opts->record,
		.flags = opts->flags & KRCORE_CONNECT_FRESH ? KRP_LOOKUP_FRESH : 0,
		.timeout_ms = opts->timeout_ms,
	};
	struct krcore_value value = { .kind = KRCORE_KIND_RAW };
	char text[KRU_GID_TEXT];
	int err;

	memcpy(arg.gid, opts->peer.gid, sizeof(arg.gid));
	err = krl_node_call(made->node, KRP_IOC_LOOKUP, &arg);
	made->reads = arg.reads;
	if (err)
		return krl_error(err, "looking up %s service %u: %s",
				 kru_gid_format(opts->peer.gid, text), opts->record,
				 strerror(-err));
	value.kind = arg.kind;
	value.raw_len = arg.raw_len;
	memcpy(value.raw, arg.raw, sizeof(arg.raw));
	return krcore_region_decode(&value, &made->remote);
}

/* Let requests use the regions that the call has found and made; post them. */
static int krl_start_post(const struct krcore_start_options *opts, struct krcore_started *made)
{
	int error, taken;
	uint32_t i;

	for (i = 0; i < opts->nr; i++) {
		struct krcore_wr *wr = &opts->wrs[i];

		if (!wr->local_mr)
			wr->local_mr = made->mr.handle;
		if (opts->record && !wr->remote_token) {
			wr->remote_token = made->remote.token;
			wr->remote_addr += made->remote.addr;
		}
	}
	taken = krcore_post_wait(made->node, made->queue, opts->wrs, opts->nr, &error);
	if (taken < 0)
		return taken;
	made->taken = (uint32_t)taken;
	made->error = error;
	return 0;
}

/* All behind the opening of the node. */
static int krl_start_rest(const struct krcore_start_options *opts, struct krcore_started *made)
{
	struct krcore_connect_info info = { .size = sizeof(info) };
	int err = opts->record ? krl_start_lookup(opts, made) : 0;

	if (!err)
		err = krcore_mr_reg(made->node, opts->memory, opts->length, opts->access,
				    &made->mr);
	if (!err)
		err = krcore_queue_open(made->node, opts->depth, &opts->peer, opts->timeout_ms,
					opts->flags, &made->queue, &info);
	made->generation = info.generation;
	made->reads += info.reads;
	if (!err && opts->nr)
		err = krl_start_post(opts, made);
	return err;
}

int krcore_start(const struct krcore_start_options *opts, struct krcore_started *ret_started)
{
	struct krcore_started made = { .size = sizeof(made) };
	struct krcore_start_options all = { .size = sizeof(all) };
	int err = KRL_STARTED_CHECK(ret_started);

	if (!err)
		err = krl_start_options(opts, &all);
	if (!err)
		err = krl_start_node(&all, &made.node);
	if (err)
		return err;
	err = krl_start_rest(&all, &made);
	if (err) {
		krcore_node_close(made.node);
		return err;
	}
	krl_out_fill(ret_started, &made, sizeof(made));
	return 0;
}
