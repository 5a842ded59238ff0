// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Contexts attached to MetaServers: opening and closing them, and what can be asked of one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/lib/lib.h"
#include "client/lib/out.h"

/* What all sessions of a context have in common. */
static void krl_ctx_conf(struct krcore_ctx *ctx)
{
	const struct krl_config *config = &ctx->config;

	ctx->conf = (struct krp_session_conf){
		.generation = config->generation,
		.features = KRP_FEATURES_PROGRAM,
		.lease_ms = config->lease_ms,
		.timeout_ms = config->timeout_ms,
		.reconnect_min_ms = config->reconnect_min_ms,
		.reconnect_max_ms = config->reconnect_max_ms,
		.slots = KRL_SLOTS,
	};
	memcpy(ctx->conf.owner, config->owner, sizeof(ctx->conf.owner));
	memcpy(ctx->conf.name, config->name, sizeof(ctx->conf.name));
}

int krl_ctx_servers(struct krcore_ctx *ctx)
{
	unsigned int i;

	krl_ctx_conf(ctx);
	ctx->servers = calloc(ctx->config.endpoints_nr, sizeof(*ctx->servers));
	if (!ctx->servers || krl_records_init(ctx))
		return krl_error(-ENOMEM, "no memory");
	for (i = 0; i < ctx->config.endpoints_nr; i++) {
		int err = krl_server_init(&ctx->servers[i], ctx, i);

		if (err)
			return krl_error(err, "no memory");
		ctx->servers_nr++;
	}
	return 0;
}

static void krl_ctx_locks(struct krcore_ctx *ctx)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->sub_lock, NULL);
	ctx->epoll_fd = -1;
	ctx->wake_fd = -1;
}

/* Is an error permanent, so that trying again is useless? A wrong key is. */
static bool krl_ctx_final(int err)
{
	return err == -EACCES || err == -ENODEV || err == -EPROTONOSUPPORT;
}

/*
 * Locks: ctx.lock. Whether krcore_open() can return. Return: 1 a server is attached, 0 not
 * yet, or a negative errno if all servers failed permanently.
 */
static int krl_ctx_ready(const struct krcore_ctx *ctx)
{
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		if (ctx->servers[i].s.state == KRP_SESSION_READY)
			return 1;
	for (i = 0; i < ctx->servers_nr; i++)
		if (!ctx->servers[i].tried || !krl_ctx_final(ctx->servers[i].last_error))
			return 0;
	return ctx->servers[0].last_error;
}

static int krl_ctx_wait(struct krcore_ctx *ctx)
{
	uint64_t until_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000ULL),
		.tv_nsec = (long)(until_ns % 1000000000ULL),
	};
	const char *text;
	int ready;

	pthread_mutex_lock(&ctx->lock);
	while (!(ready = krl_ctx_ready(ctx)))
		if (pthread_cond_timedwait(&ctx->cond, &ctx->lock, &until) == ETIMEDOUT)
			break;
	if (ready <= 0) {
		text = ctx->servers[0].error_text;
		ready = krl_error(ready ? ready : -EHOSTUNREACH, "%s%s",
				  *text ? text : "no server answered in time",
				  ctx->servers_nr > 1 ? " (and the others neither)" : "");
	}
	pthread_mutex_unlock(&ctx->lock);
	return ready < 0 ? ready : 0;
}

static void krl_direct_close(struct krcore_ctx *ctx)
{
	unsigned int i;

	krl_loop_stop(ctx);
	krl_records_fini(ctx);
	for (i = 0; i < ctx->servers_nr; i++)
		krl_server_fini(&ctx->servers[i]);
	free(ctx->servers);
	krl_srv_fini(ctx);
	krl_config_free(&ctx->config);
	pthread_mutex_destroy(&ctx->sub_lock);
	pthread_mutex_destroy(&ctx->lock);
	pthread_cond_destroy(&ctx->cond);
	free(ctx);
}

/* Locks: ctx.lock. */
static void krl_ctx_server_info(const struct krl_server *srv, struct krcore_server_info *info)
{
	uint64_t until_ns = atomic_load(&srv->settle_until_ns), now_ns = krl_now_ns();

	memset(info, 0, sizeof(*info));
	snprintf(info->address, sizeof(info->address), "%s", srv->ep->text);
	snprintf(info->error_text, sizeof(info->error_text), "%s", srv->error_text);
	info->priority = srv->ep->priority;
	info->last_error = srv->last_error;
	info->rtt_ns = atomic_load(&srv->rtt_ns);
	info->attaches = atomic_load(&srv->n.attaches);
	if (srv->s.state == KRP_SESSION_READY) {
		info->state = KRCORE_SERVER_UP;
		info->incarnation = srv->s.incarnation;
		info->records = srv->records;
		info->depth = srv->map->map.depth;
		if (until_ns > now_ns)
			info->settling_ms = (uint32_t)((until_ns - now_ns) / 1000000) + 1;
	} else if (srv->s.state == KRP_SESSION_DOWN || srv->s.state == KRP_SESSION_CLOSING) {
		info->state = KRCORE_SERVER_DOWN;
	} else {
		info->state = KRCORE_SERVER_CONNECTING;
	}
}

static int krl_direct_servers(struct krcore_ctx *ctx, struct krcore_server_info *servers,
			      unsigned int nr)
{
	size_t stride = servers && nr ? servers->size : 0;
	struct krcore_server_info info;
	unsigned int i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; stride && i < nr && i < ctx->servers_nr; i++) {
		void *at = (char *)servers + i * stride;

		memcpy(at, &stride, sizeof(stride));
		krl_ctx_server_info(&ctx->servers[i], &info);
		krl_out_fill(at, &info, sizeof(info));
	}
	pthread_mutex_unlock(&ctx->lock);
	return (int)ctx->servers_nr;
}

static void krl_direct_stats(struct krcore_ctx *ctx, struct krcore_stats *ret_stats)
{
	struct krcore_stats stats = { 0 };
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++) {
		const struct krl_counters *n = &ctx->servers[i].n;

		stats.hits += atomic_load(&n->hits);
		stats.misses += atomic_load(&n->misses);
		stats.misses_overruled += atomic_load(&n->misses_overruled);
		stats.errors += atomic_load(&n->errors);
		stats.reads += atomic_load(&n->reads);
		stats.torn += atomic_load(&n->torn);
		stats.stale += atomic_load(&n->stale);
		stats.fallbacks += atomic_load(&n->fallbacks);
		stats.failovers += atomic_load(&n->failovers);
		stats.attaches += atomic_load(&n->attaches);
		stats.publishes += atomic_load(&n->publishes);
		stats.renewals += atomic_load(&n->renewals);
		stats.notifications += atomic_load(&n->notifications);
	}
	stats.lookups = stats.hits + stats.misses + stats.errors;
	*ret_stats = stats;
}

const struct krl_ops krl_direct_ops = {
	.direct = true,
	.close = krl_direct_close,
	.lookup = krl_direct_lookup,
	.publish = krl_direct_publish,
	.withdraw = krl_direct_withdraw,
	.subscribe = krl_direct_subscribe,
	.servers = krl_direct_servers,
	.stats = krl_direct_stats,
};

int krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx)
{
	struct krcore_options all;
	struct krcore_ctx *ctx;
	int err;

	err = krl_options(opts, &all);
	if (err)
		return err;
	if (krl_module_wanted(&all) && !krl_module_open(&all, ret_ctx))
		return 0;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return krl_error(-ENOMEM, "no memory");
	ctx->head.ops = &krl_direct_ops;
	err = krl_config_load(&all, &ctx->config);
	if (err) {
		free(ctx);
		return err;
	}
	krl_ctx_locks(ctx);
	err = krl_ctx_servers(ctx);
	if (!err)
		err = krl_loop_start(ctx);
	if (!err && !ctx->config.nowait)
		err = krl_ctx_wait(ctx);
	if (err) {
		krl_direct_close(ctx);
		return err;
	}
	*ret_ctx = ctx;
	return 0;
}
