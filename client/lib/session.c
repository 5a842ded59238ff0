// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The driver of the sessions: what proto/krp_session.h says is to be done is done here.
 *
 * krl_session_run() pulls; any thread may, with ctx.lock held. It sends, and says what has
 * ended; what must not be done under the lock, or is the context's thread's alone (connecting,
 * proofs, loading, taking a connection down), it leaves to that thread as a duty. Any thread
 * may see a failure: it moves the queue pair to the error state, which ends every READ in
 * flight, and wakes the context's thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/lib/lib.h"
#include "proto/krp_session.h"

#define KRL_NAME_POLL_MS 1000 /* upper bound for the interval that c-ares asks for */
#define KRL_DUTY(what) (1U << (what))

int krl_server_init(struct krl_server *srv, struct krcore_ctx *ctx, unsigned int index)
{
	memset(srv, 0, sizeof(*srv));
	srv->ctx = ctx;
	srv->index = index;
	srv->ep = &ctx->config.endpoints[index];
	krp_session_init(&srv->s, &ctx->pub, index, &ctx->conf);
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
uint64_t krl_server_read_timeout_ns(const struct krl_server *srv)
{
	return srv->ctx->config.timeout_ms * 1000000ULL / 4;
}

enum krp_session_state krl_server_state(struct krl_server *srv)
{
	enum krp_session_state state;

	pthread_mutex_lock(&srv->ctx->lock);
	state = (enum krp_session_state)srv->s.state;
	pthread_mutex_unlock(&srv->ctx->lock);
	return state;
}

/* ---- what is to be done; ctx.lock is held ---- */

/* A text that is cut if it is too long. */
static void krl_session_text(struct krl_server *srv, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void krl_session_text(struct krl_server *srv, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(srv->error_text, sizeof(srv->error_text), format, args);
	va_end(args);
}

/* READs in flight end, and none begins. */
static void krl_session_broken(struct krl_server *srv)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct krl_conn *conn = srv->conn;

	srv->last_error = srv->s.failure.error;
	krl_session_text(srv, "%s: %s", srv->ep->text, srv->s.failure.reason);
	atomic_store(&srv->failed, true);
	atomic_store(&srv->up, false);
	if (!conn)
		return;
	atomic_store(&conn->broken, srv->s.failure.error);
	if (conn->id && conn->id->qp)
		ibv_modify_qp(conn->id->qp, &attr, IBV_QP_STATE);
}

static void krl_session_up(struct krl_server *srv)
{
	srv->last_error = 0;
	srv->error_text[0] = '\0';
	srv->tried = true;
	krl_count(&srv->n.attaches, 1);
	atomic_store(&srv->up, true);
	pthread_cond_broadcast(&srv->ctx->cond);
}

static void krl_session_send(struct krl_server *srv, const struct krp_todo *todo)
{
	struct krp_session *s = &srv->s;
	char why[KRP_REASON_BYTES];
	int err;

	/* completions of SENDs are reaped by look-ups; if none is running, do it here */
	if (s->state == KRP_SESSION_READY && !pthread_mutex_trylock(&srv->io)) {
		krl_conn_drain(srv->conn);
		pthread_mutex_unlock(&srv->io);
	}
	memcpy(srv->conn->mem->send[todo->slot], todo->msg, todo->bytes);
	err = krl_conn_send(srv->conn, todo->slot);
	if (!err) {
		/* when its answer has come, the NIC does not need the buffer any more */
		krp_session_sent(s, todo->slot);
		return;
	}
	snprintf(why, sizeof(why), "sending %s failed (%s)", krp_msg_name(todo->type),
		 strerror(-err));
	krp_session_lost(s, krl_now_ns(), err, why);
}

static void krl_session_done(struct krl_server *srv, const struct krp_todo *todo)
{
	if (!todo->ask && todo->type == KRP_MSG_PUBLISH && !todo->err)
		krl_count(&srv->n.publishes, 1);
	else if (todo->type == KRP_MSG_RENEW && (!todo->err || todo->err == -ENOENT))
		krl_count(&srv->n.renewals, 1);
	pthread_cond_broadcast(&srv->ctx->cond);
}

static void krl_session_do(struct krl_server *srv, const struct krp_todo *todo)
{
	switch (todo->what) {
	case KRP_DO_SEND:
		krl_session_send(srv, todo);
		break;
	case KRP_DO_UP:
		krl_session_up(srv);
		break;
	case KRP_DO_CHANGE:
		krl_event_add(srv, todo->event, todo->event == KRP_EVENT_RESYNC ? NULL : &todo->key,
			      todo->generation);
		break;
	case KRP_DO_DONE:
		krl_session_done(srv, todo);
		break;
	case KRP_DO_CLOSE:
		krl_session_broken(srv);
		srv->duties = KRL_DUTY(KRP_DO_CLOSE);
		break;
	case KRP_DO_CONNECT:
	case KRP_DO_PROVE:
	case KRP_DO_VERIFY:
	case KRP_DO_LOAD:
		srv->duties |= KRL_DUTY(todo->what);
		break;
	case KRP_DO_WAIT:
		break;
	}
}

/* Locks: ctx.lock. The session's failures, for look-ups; none, which costs them no clock, once they
 * have worn off.
 */
static void krl_session_tell_blame(struct krl_server *srv)
{
	const struct krp_session *s = &srv->s;
	uint32_t blame = s->failure.blame;

	if (blame && !krp_session_blame(s, krl_now_ns()))
		blame = 0;
	atomic_store_explicit(&srv->blame_ns, s->failure.blame_ns, memory_order_relaxed);
	atomic_store_explicit(&srv->blame, blame, memory_order_release);
}

void krl_session_run(struct krl_server *srv)
{
	struct krp_session *s = &srv->s;
	struct krp_record *rec;
	struct krp_todo todo;

	while (krp_session_next(s, krl_now_ns(), &todo) != KRP_DO_WAIT)
		krl_session_do(srv, &todo);
	while ((rec = krp_records_trash(&srv->ctx->pub)))
		free(rec);
	atomic_store_explicit(&srv->still, s->still, memory_order_relaxed);
	atomic_store_explicit(&srv->settle_until_ns, s->settle_ns, memory_order_relaxed);
	krl_session_tell_blame(srv);
	if (srv->duties || todo.until_ns < srv->armed_ns)
		krl_loop_wake(srv->ctx);
	srv->until_ns = todo.until_ns;
}

void krl_sessions_run(struct krcore_ctx *ctx)
{
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		krl_session_run(&ctx->servers[i]);
}

/* ---- what happens ---- */

void krl_session_connected(struct krl_server *srv, const struct krp_link *link, const __u8 *nonce,
			   const __u8 *key_id)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_connected(&srv->s, krl_now_ns(), link, nonce, key_id);
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
}

void krl_session_prove(struct krl_server *srv, int err, const __u8 *mac)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_prove(&srv->s, krl_now_ns(), err, mac);
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
}

void krl_session_verify(struct krl_server *srv, const __u8 *mac)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_verify(&srv->s, krl_now_ns(), mac);
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
}

int krl_session_subscribe(struct krl_server *srv, bool on)
{
	return krp_session_subscribe(&srv->s, on);
}

static void krl_server_lost(struct krl_server *srv, int err, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

static void krl_server_lost(struct krl_server *srv, int err, const char *format, va_list args)
{
	char why[KRP_REASON_BYTES];

	vsnprintf(why, sizeof(why), format, args);
	krp_session_lost(&srv->s, krl_now_ns(), err, why);
	krl_session_run(srv);
}

void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&srv->ctx->lock);
	krl_server_lost(srv, err, format, args);
	pthread_mutex_unlock(&srv->ctx->lock);
	va_end(args);
}

void krl_server_step(struct krl_server *srv, const char *what)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_step(&srv->s, krl_now_ns(), what);
	pthread_mutex_unlock(&srv->ctx->lock);
}

void krl_server_received(struct krl_server *srv, const void *buf, unsigned int bytes)
{
	const struct krp_msg_hdr *hdr = buf;

	pthread_mutex_lock(&srv->ctx->lock);
	if (bytes >= sizeof(*hdr) && hdr->type == KRP_MSG_NOTIFY)
		krl_count(&srv->n.notifications, 1);
	krp_session_received(&srv->s, krl_now_ns(), buf, bytes);
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
}

void krl_server_up(struct krl_server *srv)
{
	struct krcore_ctx *ctx = srv->ctx;

	pthread_mutex_lock(&srv->io);
	pthread_mutex_lock(&ctx->lock);
	krp_pulse_start(&srv->pulse, srv->load.heartbeat, krl_now_ns() / 1000000);
	if (srv->s.attach.welcome.settling_ms)
		krp_pulse_settling(&srv->pulse);
	srv->map = krl_load_take(&srv->load);
	srv->records = srv->map->records;
	krp_session_loaded(&srv->s, krl_now_ns(), 0);
	krl_session_run(srv);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&srv->io);
}

void krl_server_down(struct krl_server *srv)
{
	struct krcore_ctx *ctx = srv->ctx;
	struct krl_conn *conn;
	uint32_t dice = 0;

	if (kru_random(&dice, sizeof(dice)))
		dice = (uint32_t)krl_now_ns();
	pthread_mutex_lock(&srv->io);
	pthread_mutex_lock(&ctx->lock);
	conn = srv->conn;
	srv->conn = NULL;
	atomic_store(&srv->up, false);
	krl_map_free(srv->map);
	srv->map = NULL;
	krl_load_drop(&srv->load);
	krl_resolve_drop(srv);
	srv->tried = true;
	srv->duties = 0;
	atomic_store(&srv->failed, false);
	krl_event_lost(srv);
	krp_session_closed(&srv->s, krl_now_ns(), dice);
	pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&srv->io);
	krl_events_deliver(ctx);
	krl_conn_free(conn);
}

void krl_server_end(struct krl_server *srv)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_end(&srv->s, krl_now_ns());
	krl_session_run(srv);
	pthread_mutex_unlock(&srv->ctx->lock);
	krl_server_down(srv);
}

/* ---- the context's thread ---- */

/* Take what is to be done by the thread, and when to come back. */
static unsigned int krl_server_duties(struct krl_server *srv)
{
	unsigned int duties;

	pthread_mutex_lock(&srv->ctx->lock);
	krl_session_run(srv);
	duties = srv->duties;
	srv->duties = 0;
	srv->armed_ns = srv->until_ns;
	pthread_mutex_unlock(&srv->ctx->lock);
	return duties;
}

static void krl_server_duty(struct krl_server *srv, unsigned int duties)
{
	if (duties & KRL_DUTY(KRP_DO_CLOSE))
		krl_server_down(srv);
	else if (duties & KRL_DUTY(KRP_DO_CONNECT))
		krl_connect_begin(srv);
	else if (duties & KRL_DUTY(KRP_DO_PROVE))
		krl_connect_prove(srv);
	else if (duties & KRL_DUTY(KRP_DO_VERIFY))
		krl_connect_verify(srv);
	else if (duties & KRL_DUTY(KRP_DO_LOAD))
		krl_connect_load(srv);
}

uint64_t krl_server_timers(struct krl_server *srv, uint64_t now_ns)
{
	uint64_t next_ns;
	unsigned int duties;
	int err;

	if (srv->resolve && krl_resolve_poll(srv, &err)) {
		if (err)
			krl_server_fail(srv, err == -EAGAIN ? -EHOSTUNREACH : err,
					"name cannot be resolved");
		else
			krl_connect_named(srv);
	}
	while ((duties = krl_server_duties(srv)))
		krl_server_duty(srv, duties);
	if (!srv->resolve)
		return srv->armed_ns;
	next_ns = now_ns + (uint64_t)kru_lookup_wait_ms(srv->resolve, KRL_NAME_POLL_MS) * 1000000;
	return next_ns < srv->armed_ns ? next_ns : srv->armed_ns;
}

/* ---- questions; ctx.lock is held ---- */

bool krl_wait_until(struct krcore_ctx *ctx, uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline_ns / 1000000000ULL),
		.tv_nsec = (long)(deadline_ns % 1000000000ULL),
	};

	return pthread_cond_timedwait(&ctx->cond, &ctx->lock, &until) != ETIMEDOUT;
}

int krl_ask_begin(struct krl_server *srv, struct krp_ask *ask)
{
	int err = krp_session_ask(&srv->s, ask);

	if (!err)
		krl_session_run(srv);
	return err;
}

int krl_ask_end(struct krl_server *srv, struct krp_ask *ask, uint64_t deadline_ns)
{
	while (ask->err == -EINPROGRESS)
		if (!krl_wait_until(srv->ctx, deadline_ns))
			break;
	krp_session_give_up(&srv->s, ask);
	return ask->err;
}
