// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Notifications: from the servers' messages to the subscriber's function.
 *
 * Events of a batch of messages are collected under ctx.lock and delivered
 * without it, under sub_lock alone: so the subscriber may call krcore_stats(),
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

/* A NOTIFY has arrived; the message is well formed. Locks: ctx.lock. */
void krl_notify(struct krl_server *srv, const struct krp_notify *msg)
{
	uint64_t seq = krp_le64_to_cpu(msg->seq);
	unsigned int i;

	krl_count(&srv->n.notifications, 1);
	if (!srv->subscribed)
		return;
	/* counted per session: after another SUBSCRIBE it goes on where it was */
	if (srv->notify_seq && seq != srv->notify_seq + 1)
		krl_event_add(srv, KRCORE_EVENT_RESYNC, NULL, 0);
	srv->notify_seq = seq;
	for (i = 0; i < msg->nr; i++) {
		const struct krp_change *c = &msg->change[i];

		krl_event_add(srv, c->event, c->event == KRP_EVENT_RESYNC ? NULL : &c->key,
			      krp_le64_to_cpu(c->generation));
	}
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

/* Locks: ctx.lock. Return: servers that took the subscription or its end. */
static unsigned int krl_subscribe_all(struct krcore_ctx *ctx, struct krl_req *reqs, bool on)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	unsigned int i, nr = 0;

	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];

		reqs[i].type = KRP_MSG_SUBSCRIBE;
		reqs[i].flags = on ? KRP_SUBSCRIBE_ALL : 0;
		if (!(srv->features & KRP_FEATURE_NOTIFY) || krl_request_add(srv, &reqs[i])) {
			reqs[i].err = -ENOTCONN;
			reqs[i].done = true;
		}
	}
	krl_request_wait(ctx, reqs, ctx->servers_nr, deadline_ns);
	for (i = 0; i < ctx->servers_nr; i++)
		nr += !reqs[i].err;
	return nr;
}

int krl_direct_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg)
{
	struct krl_req *reqs;
	unsigned int nr;

	reqs = calloc(ctx->servers_nr, sizeof(*reqs));
	if (!reqs)
		return krl_error(-ENOMEM, "no memory");
	pthread_mutex_lock(&ctx->sub_lock);
	ctx->sub_fn = fn;
	ctx->sub_arg = arg;
	pthread_mutex_unlock(&ctx->sub_lock);

	pthread_mutex_lock(&ctx->lock);
	ctx->subscribed = fn;
	nr = krl_subscribe_all(ctx, reqs, fn);
	pthread_mutex_unlock(&ctx->lock);
	free(reqs);
	if (!nr && fn)
		return krl_error(-EHOSTUNREACH,
				 "no server takes subscriptions now; it is subscribed to later");
	return 0;
}
