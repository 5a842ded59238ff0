// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Notifications: from the servers' messages to the subscriber's function.
 *
 * Events of a batch of messages, or of a server that is lost, are collected under ctx.lock and
 * delivered without it, under sub_lock alone: so the subscriber may call krcore_stats(),
 * and krcore_subscribe(NULL) returns only when the subscriber no longer runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/lib.h"

/* Locks: ctx.lock. */
void krl_event_add(struct krl_server *srv, uint32_t type, const struct krp_key *key,
		   uint64_t generation)
{
	struct krcore_ctx *ctx = srv->ctx;
	struct krcore_event *event = &ctx->events[ctx->events_nr];

	if (ctx->events_nr == KRL_EVENTS_MAX)
		return; /* not reached: a batch of messages makes fewer */
	ctx->events_nr++;
	memset(event, 0, sizeof(*event));
	event->type = type;
	event->server = srv->index;
	event->generation = generation;
	if (key)
		kru_key_from_wire(key, &event->key);
}

/* Locks: ctx.lock. */
static bool krl_other_ready(const struct krl_server *srv)
{
	const struct krcore_ctx *ctx = srv->ctx;
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		if (&ctx->servers[i] != srv && ctx->servers[i].s.state == KRP_SESSION_READY)
			return true;
	return false;
}

void krl_event_lost(struct krl_server *srv)
{
	const struct krp_session *s = &srv->s;

	if (s->state == KRP_SESSION_CLOSING && s->was_ready && !s->ended && s->sub.want &&
	    krl_other_ready(srv))
		krl_event_add(srv, KRCORE_EVENT_RESYNC, NULL, 0);
}

/* Context: the thread, no lock held. */
void krl_events_deliver(struct krcore_ctx *ctx)
{
	unsigned int i;

	if (!ctx->events_nr)
		return;
	pthread_mutex_lock(&ctx->sub_lock);
	for (i = 0; i < ctx->events_nr; i++)
		if (ctx->sub_fn)
			ctx->sub_fn(ctx->sub_arg, &ctx->events[i]);
	pthread_mutex_unlock(&ctx->sub_lock);
	ctx->events_nr = 0;
}

/* Locks: ctx.lock. Whether a server has answered SUBSCRIBE number @nr, or will not. */
static bool krl_subscribe_over(const struct krl_server *srv, uint64_t attaches, uint64_t nr)
{
	return srv->s.sub.done >= nr || srv->s.attaches != attaches ||
	       srv->s.state != KRP_SESSION_READY;
}

/*
 * Locks: ctx.lock. Tell all servers of the subscription or its end, and wait for their answers.
 * Return: servers that took it.
 */
static unsigned int krl_subscribe_all(struct krcore_ctx *ctx, bool on)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	uint64_t nr[KRP_PEERS_MAX], attaches[KRP_PEERS_MAX];
	const unsigned int servers_nr = ctx->servers_nr;
	unsigned int i, took = 0;

	for (i = 0; i < servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];

		attaches[i] = krl_session_subscribe(srv, on) ? UINT64_MAX : srv->s.attaches;
		nr[i] = srv->s.sub.nr;
	}
	krl_sessions_run(ctx);
	for (i = 0; i < servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];

		while (attaches[i] != UINT64_MAX && !krl_subscribe_over(srv, attaches[i], nr[i]))
			if (!krl_wait_until(ctx, deadline_ns))
				break;
		took += attaches[i] != UINT64_MAX && srv->s.sub.done >= nr[i] && !srv->s.sub.err;
	}
	return took;
}

int krl_direct_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg)
{
	unsigned int nr;

	pthread_mutex_lock(&ctx->sub_lock);
	ctx->sub_fn = fn;
	ctx->sub_arg = arg;
	pthread_mutex_unlock(&ctx->sub_lock);

	pthread_mutex_lock(&ctx->lock);
	nr = krl_subscribe_all(ctx, fn);
	pthread_mutex_unlock(&ctx->lock);
	if (!nr && fn)
		return krl_error(-EHOSTUNREACH,
				 "no server takes subscriptions now; it is subscribed to later");
	return 0;
}
