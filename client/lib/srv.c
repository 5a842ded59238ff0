// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A SRV name stands for the list of servers and is queried again when its answer expires:
 * a site moves a server by changing one DNS record, without restarting programs.
 *
 * The number of servers is fixed when the context is opened: a server that is no longer
 * named gives its place to a new one. New servers without a place are left out until the
 * next context is opened; if there are too few, the old server stays and is tried as usual.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/lib/lib.h"

#define KRL_SRV_AGAIN_MIN_S 5 /* also if the TTL is shorter */
#define KRL_SRV_AGAIN_MAX_S 3600
#define KRL_SRV_FAILED_S 30
#define KRL_SRV_POLL_MS 1000

static bool krl_srv_is(const struct krl_endpoint *ep, const struct kru_server *server)
{
	return ep->port == server->port && !strcasecmp(ep->host, server->host);
}

/*
 * Which server of an answer each server of the context becomes; -1: unchanged. Servers that
 * are still named keep their places.
 */
void krl_srv_match(const struct krcore_ctx *ctx, const struct kru_servers *fresh, int *ret_at)
{
	bool taken[KRU_SERVERS_MAX] = { false };
	unsigned int i, k;

	for (i = 0; i < ctx->servers_nr; i++) {
		ret_at[i] = -1;
		for (k = 0; k < fresh->nr && ret_at[i] < 0; k++)
			if (!taken[k] && krl_srv_is(ctx->servers[i].ep, &fresh->server[k]))
				ret_at[i] = (int)k;
		if (ret_at[i] >= 0)
			taken[ret_at[i]] = true;
	}
	for (i = 0; i < ctx->servers_nr; i++)
		for (k = 0; k < fresh->nr && ret_at[i] < 0; k++)
			if (!taken[k]) {
				ret_at[i] = (int)k;
				taken[k] = true;
			}
}

/* Give the place of a server to another one, which is attached at once. */
static void krl_srv_replace(struct krl_server *srv, const struct krl_endpoint *ep)
{
	krl_server_fail(srv, -ESTALE, "srv:%s names %s instead", srv->ctx->config.srv, ep->text);
	krl_server_down(srv);
	pthread_mutex_lock(&srv->ctx->lock);
	srv->ep = ep;
	srv->addrs_nr = 0;
	srv->addr_next = 0;
	srv->named_ns = 0;
	atomic_store(&srv->rtt_ns, 0);
	krp_session_retry(&srv->s, krl_now_ns());
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
}

static void krl_srv_apply(struct krcore_ctx *ctx, const struct kru_servers *fresh)
{
	int at[KRU_SERVERS_MAX];
	unsigned int i;

	krl_srv_match(ctx, fresh, at);
	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];
		const struct kru_server *server = at[i] < 0 ? NULL : &fresh->server[at[i]];
		struct krl_renamed *new;

		if (!server ||
		    (krl_srv_is(srv->ep, server) && srv->ep->priority == server->priority))
			continue;
		new = calloc(1, sizeof(*new));
		if (!new)
			return; /* the next answer will name it again */
		krl_endpoint_fill(server, &new->ep);
		new->older = ctx->srv.renamed;
		ctx->srv.renamed = new;
		if (krl_srv_is(srv->ep, server))
			srv->ep = &new->ep;
		else
			krl_srv_replace(srv, &new->ep);
	}
}

static uint64_t krl_srv_again_ns(uint32_t ttl_s)
{
	uint64_t s = ttl_s < KRL_SRV_AGAIN_MIN_S ? KRL_SRV_AGAIN_MIN_S : ttl_s;

	return (s < KRL_SRV_AGAIN_MAX_S ? s : KRL_SRV_AGAIN_MAX_S) * 1000000000ULL;
}

static void krl_srv_ask(struct krcore_ctx *ctx, uint64_t now_ns)
{
	struct krl_srv *s = &ctx->srv;

	s->ask_at_ns = now_ns + KRL_SRV_FAILED_S * 1000000000ULL;
	if (kru_lookup_start(ctx->config.srv, true, ctx->config.timeout_ms, &s->lookup))
		return;
	if (krl_resolve_watch(ctx, s->lookup)) {
		kru_lookup_drop(s->lookup);
		s->lookup = NULL;
	}
}

/* Without an answer the servers stay: an unreachable name server has no effect. */
static void krl_srv_answer(struct krcore_ctx *ctx, uint64_t now_ns)
{
	struct krl_srv *s = &ctx->srv;
	struct kru_servers *fresh = calloc(1, sizeof(*fresh));

	if (fresh && !kru_lookup_servers(s->lookup, fresh)) {
		s->ask_at_ns = now_ns + krl_srv_again_ns(fresh->ttl_s);
		kru_servers_order(fresh);
		krl_srv_apply(ctx, fresh);
	}
	free(fresh);
	kru_lookup_drop(s->lookup);
	s->lookup = NULL;
}

/*
 * Context: the thread, no lock held. Do what is due.
 * Return: when to call again, in ns.
 */
uint64_t krl_srv_timers(struct krcore_ctx *ctx, uint64_t now_ns)
{
	struct krl_srv *s = &ctx->srv;

	if (!*ctx->config.srv)
		return UINT64_MAX;
	if (!s->ask_at_ns)
		s->ask_at_ns = now_ns + krl_srv_again_ns(ctx->config.srv_ttl_s);
	if (s->lookup && kru_lookup_done(s->lookup))
		krl_srv_answer(ctx, now_ns);
	else if (!s->lookup && now_ns >= s->ask_at_ns)
		krl_srv_ask(ctx, now_ns);
	if (!s->lookup)
		return s->ask_at_ns;
	return now_ns + (uint64_t)kru_lookup_wait_ms(s->lookup, KRL_SRV_POLL_MS) * 1000000;
}

void krl_srv_fini(struct krcore_ctx *ctx)
{
	struct krl_renamed *i, *older;

	kru_lookup_drop(ctx->srv.lookup);
	for (i = ctx->srv.renamed; i; i = older) {
		older = i->older;
		free(i);
	}
}
