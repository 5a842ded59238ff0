// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One attached MetaServer: its states, failures and timers.
 *
 * Only krl_server_to() changes a state; it has the table of legal transitions. Any
 * thread may see a failure: it moves the queue pair to the error state, which ends
 * every READ in flight, and wakes the context's thread. Only that thread takes the
 * connection down; it tries again later, with doubling pauses and jitter.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/choose.h"
#include "client/lib/lib.h"

#define KRL_NAME_POLL_MS 1000 /* upper bound for the interval that c-ares asks for */
#define KRL_NAME_KEEP_NS 30000000000ULL /* addresses older than this are resolved again */

int krl_server_init(struct krl_server *srv, struct krcore_ctx *ctx, unsigned int index)
{
	memset(srv, 0, sizeof(*srv));
	srv->ctx = ctx;
	srv->index = index;
	srv->ep = &ctx->config.endpoints[index];
	srv->todo_tail = &srv->todo;
	return -pthread_mutex_init(&srv->io, NULL);
}

void krl_server_fini(struct krl_server *srv)
{
	krl_resolve_drop(srv);
	krl_load_drop(&srv->load);
	krl_map_free(srv->map);
	pthread_mutex_destroy(&srv->io);
}

/*
 * How long a READ may take before its server counts as dead: a quarter of the
 * time-out, so that a look-up has time for others. The transport's own retries
 * are set to fit into it.
 */
uint64_t krl_server_patience_ns(const struct krl_server *srv)
{
	return srv->ctx->config.timeout_ms * 1000000ULL / 4;
}

static void krl_server_failed(struct krl_server *srv, int err, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

static void krl_server_failed(struct krl_server *srv, int err, const char *format, va_list args)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct krl_conn *conn = srv->conn;

	if (atomic_load(&srv->failed))
		return; /* the first cause counts */
	atomic_store(&srv->failed, true);
	srv->last_error = err;
	vsnprintf(srv->error_text, sizeof(srv->error_text), format, args);
	atomic_store(&srv->up, false);
	if (conn) {
		atomic_store(&conn->broken, err);
		if (conn->id && conn->id->qp)
			ibv_modify_qp(conn->id->qp, &attr, IBV_QP_STATE);
	}
	krl_loop_wake(srv->ctx);
}

void krl_server_fail_locked(struct krl_server *srv, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	krl_server_failed(srv, err, format, args);
	va_end(args);
}

/*
 * Locks: ctx.lock. The one place where a server changes its state. An impossible step is a
 * bug of this library, which is loaded into programs that are not ours: it costs the
 * connection, which is made anew from KRL_DOWN, and says so.
 */
bool krl_server_to(struct krl_server *srv, enum krl_state state)
{
	static const unsigned int from[] = {
		[KRL_DOWN] = ~(1U << KRL_DOWN),
		[KRL_NAME] = 1U << KRL_DOWN,
		[KRL_ADDR] = 1U << KRL_DOWN | 1U << KRL_NAME,
		[KRL_ROUTE] = 1U << KRL_ADDR,
		[KRL_CONNECT] = 1U << KRL_ROUTE,
		[KRL_HELLO] = 1U << KRL_CONNECT,
		[KRL_AUTH] = 1U << KRL_HELLO,
		[KRL_LOAD] = 1U << KRL_AUTH,
		[KRL_UP] = 1U << KRL_LOAD,
	};

	if (!(from[state] & (1U << srv->state))) {
		krl_server_fail_locked(
			srv, -EPROTO,
			"%s: a bug of libkrcore: from state %d to %d; connecting anew",
			srv->ep->text, srv->state, state);
		return false;
	}
	srv->state = state;
	if (state == KRL_UP) {
		srv->tried = true;
		pthread_cond_broadcast(&srv->ctx->cond);
	} else if (state != KRL_DOWN) {
		srv->deadline_ns = krl_now_ns() + srv->ctx->config.timeout_ms * 1000000ULL;
	}
	return true;
}

void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&srv->ctx->lock);
	krl_server_failed(srv, err, format, args);
	pthread_mutex_unlock(&srv->ctx->lock);
	va_end(args);
}

/* Doubling pauses with a quarter of jitter either way, so that clients spread. */
static uint64_t krl_server_pause_ns(const struct krl_server *srv)
{
	const struct krl_config *config = &srv->ctx->config;
	unsigned int shift = srv->fails < 20 ? srv->fails : 20;
	uint64_t ns = ((uint64_t)config->reconnect_min_ms * 1000000ULL) << shift;
	uint64_t most = config->reconnect_max_ms * 1000000ULL;
	uint16_t dice = 0;

	if (ns > most)
		ns = most;
	if (kru_random(&dice, sizeof(dice)))
		dice = (uint16_t)krl_now_ns();
	return ns - ns / 4 + (ns / 2) * dice / 65536;
}

/* Context: the thread, no lock held. Take a broken connection down. */
void krl_server_down(struct krl_server *srv)
{
	struct krcore_ctx *ctx = srv->ctx;
	struct krl_conn *conn;
	uint64_t now_ns;

	pthread_mutex_lock(&srv->io);
	pthread_mutex_lock(&ctx->lock);
	now_ns = krl_now_ns();
	conn = srv->conn;
	srv->conn = NULL;
	atomic_store(&srv->up, false);
	krl_map_free(srv->map);
	srv->map = NULL;
	krl_load_drop(&srv->load);
	krl_resolve_drop(srv);
	krl_store_set_all(&ctx->store, srv->index, 1U << KRL_AT_SENT, KRL_AT_DIRTY);
	srv->subscribed = false;
	srv->renew_due = false;
	srv->subscribe_due = false;
	srv->paced = false;
	if (srv->state == KRL_UP)
		srv->fails = krl_fails_at_end(srv->fails, now_ns - srv->up_ns,
					      ctx->config.reconnect_max_ms);
	srv->retry_at_ns = now_ns + krl_server_pause_ns(srv);
	srv->fails++;
	if (srv->state != KRL_DOWN)
		krl_server_to(srv, KRL_DOWN);
	srv->tried = true;
	atomic_store(&srv->failed, false);
	krl_request_fail_all(srv, -ENOTCONN);
	pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&srv->io);
	krl_conn_free(conn);
}

/* Context: the thread, no lock held; the load is complete. */
void krl_server_up(struct krl_server *srv)
{
	struct krcore_ctx *ctx = srv->ctx;
	uint64_t incarnation = srv->load.incarnation;
	bool fresh = srv->incarnation != incarnation;

	pthread_mutex_lock(&srv->io);
	pthread_mutex_lock(&ctx->lock);
	krp_pulse_start(&srv->pulse, srv->load.heartbeat, krl_now_ns() / 1000000);
	atomic_store(&srv->still, false);
	srv->map = krl_load_take(&srv->load);
	srv->records = srv->map->records;
	srv->incarnation = incarnation;
	srv->last_error = 0;
	srv->error_text[0] = '\0';
	srv->acked_ns = krl_now_ns();
	srv->up_ns = srv->acked_ns;
	krl_count(&srv->n.attaches, 1);
	if (krl_server_to(srv, KRL_UP)) {
		atomic_store(&srv->up, true);
		srv->subscribe_due = ctx->subscribed && (srv->features & KRP_FEATURE_NOTIFY);
		krl_publish_attached(srv, fresh);
	}
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&srv->io);
}

/* Locks: ctx.lock. Timers of an attached server. */
static void krl_server_up_timers(struct krl_server *srv, uint64_t now_ns)
{
	uint64_t oldest_ns = krl_request_oldest_ns(srv);

	if (oldest_ns && now_ns > oldest_ns + srv->ctx->config.timeout_ms * 1000000ULL) {
		krl_server_fail_locked(srv, -ETIMEDOUT, "%s: no answer to a request for %u ms",
				       srv->ep->text, srv->ctx->config.timeout_ms);
		return;
	}
	if (now_ns >= srv->renew_at_ns) {
		uint32_t ms = srv->lease_ms / 3;

		if (ms > KRL_RENEW_MAX_MS)
			ms = KRL_RENEW_MAX_MS;
		srv->renew_at_ns = now_ns + (ms ? ms : 1) * 1000000ULL;
		srv->renew_due = true;
		krl_store_set_all(&srv->ctx->store, srv->index, 1U << KRL_AT_REFUSED, KRL_AT_DIRTY);
		krl_store_expire(&srv->ctx->store, now_ns);
	}
	krl_request_pump(srv);
}

static uint64_t krl_server_up_next(const struct krl_server *srv)
{
	uint64_t oldest_ns = krl_request_oldest_ns(srv);
	uint64_t next_ns = srv->renew_at_ns;

	if (oldest_ns) {
		oldest_ns += srv->ctx->config.timeout_ms * 1000000ULL + 1000000;
		if (oldest_ns < next_ns)
			next_ns = oldest_ns;
	}
	if (srv->paced && srv->pace_from_ns + 100000000ULL < next_ns)
		next_ns = srv->pace_from_ns + 100000000ULL;
	return next_ns;
}

/* While attaching: the deadline of the step, or when the name service is to be polled. */
static uint64_t krl_server_step_next(struct krl_server *srv, uint64_t now_ns)
{
	uint64_t next_ns = srv->deadline_ns;

	if (srv->resolve)
		next_ns = now_ns +
			  (uint64_t)kru_lookup_wait_ms(srv->resolve, KRL_NAME_POLL_MS) * 1000000;
	return next_ns < srv->deadline_ns ? next_ns : srv->deadline_ns;
}

/* What a state waits for, for diagnostics. */
static const char *krl_server_step(enum krl_state state)
{
	static const char *const steps[] = {
		[KRL_DOWN] = "waiting",
		[KRL_NAME] = "resolving its name",
		[KRL_ADDR] = "finding its address",
		[KRL_ROUTE] = "finding a route",
		[KRL_CONNECT] = "connecting",
		[KRL_HELLO] = "the answer to HELLO",
		[KRL_AUTH] = "the answer to AUTH",
		[KRL_LOAD] = "reading root and directory",
		[KRL_UP] = "nothing",
	};

	return steps[state];
}

/*
 * Context: the thread, no lock held. Do what is due.
 * Return: when to call again, in ns.
 */
uint64_t krl_server_timers(struct krl_server *srv, uint64_t now_ns)
{
	uint64_t next_ns;
	int err;

	if (srv->state == KRL_NAME && krl_resolve_poll(srv, &err)) {
		if (err)
			krl_server_fail(srv, err == -EAGAIN ? -EHOSTUNREACH : err,
					"%s: name cannot be resolved", srv->ep->text);
		else
			krl_attach_named(srv);
	}
	if (srv->state == KRL_DOWN && now_ns >= srv->retry_at_ns) {
		if (srv->addrs_nr && now_ns < srv->named_ns + KRL_NAME_KEEP_NS)
			krl_attach_named(srv);
		else
			krl_attach_begin(srv);
	} else if (srv->state != KRL_DOWN && srv->state != KRL_UP && now_ns >= srv->deadline_ns) {
		krl_server_fail(srv, -ETIMEDOUT, "%s: %s took more than %u ms", srv->ep->text,
				krl_server_step(srv->state), srv->ctx->config.timeout_ms);
	}

	pthread_mutex_lock(&srv->ctx->lock);
	if (srv->state == KRL_UP && atomic_load(&srv->up))
		krl_server_up_timers(srv, now_ns);
	if (srv->state == KRL_DOWN)
		next_ns = srv->retry_at_ns;
	else if (srv->state == KRL_UP)
		next_ns = krl_server_up_next(srv);
	else
		next_ns = krl_server_step_next(srv, now_ns);
	pthread_mutex_unlock(&srv->ctx->lock);
	return next_ns;
}
