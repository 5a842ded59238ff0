// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the driver of a session: what proto/krp_session.h says is to be done is done here, or
 * by the work item.
 *
 * krc_meta_session_run() pulls, in any context that may take meta.lock. What sleeps becomes a
 * duty of the session's work item, one in each run. A failure may be detected anywhere, also
 * in softirq: from then on no READ is posted, and the work item takes the connection down.
 *
 * krp_session_next() says when the clock has something to do next; the work item is queued for
 * then if it is not queued for earlier.
 * Locking: the work item holds no lock while it creates and destroys; meta.lock otherwise.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/log.h"
#include "krp_session.h"
#include "meta/changes.h"
#include "meta/meta_priv.h"

/* ---- what is to be done; meta.lock is held ---- */

void krc_meta_session_kick(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	s->armed_ns = 0;
	mod_delayed_work(s->meta->wq, &s->work, 0);
}

/* Changes may have been missed: doubt what is cached, and tell followers to resync. */
static void krc_meta_resync(struct krc_meta *meta)
{
	lockdep_assert_held(&meta->lock);
	krc_cache_doubt_all(meta->cache);
	krc_changes_add(KRP_EVENT_RESYNC, NULL, 0);
}

static void krc_meta_session_change(struct krc_meta_session *s, const struct krp_todo *todo)
{
	lockdep_assert_held(&s->meta->lock);
	if (todo->event == KRP_EVENT_RESYNC) {
		krc_meta_resync(s->meta);
		return;
	}
	krc_cache_forget(s->meta->cache, &todo->key, todo->generation);
	krc_changes_add(todo->event, &todo->key, todo->generation);
}

static void krc_meta_session_done(struct krc_meta_session *s, const struct krp_todo *todo)
{
	lockdep_assert_held(&s->meta->lock);
	if (todo->ask) {
		complete(&container_of(todo->ask, struct krc_meta_ask, krp)->done);
		return;
	}
	if (todo->refusal)
		krc_port_warn_limited(s->meta->ibdev, s->meta->port,
				      "%s refuses record %pI6c service %u (%d)\n", s->conf.name,
				      todo->key.gid, le16_to_cpu(todo->key.service), todo->err);
	wake_up_all(&s->meta->wait);
}

static void krc_meta_session_send(struct krc_meta_session *s, const struct krp_todo *todo)
{
	char why[KRP_REASON_BYTES];
	int err;

	lockdep_assert_held(&s->meta->lock);
	err = krc_meta_conn_send(s->conn, todo->slot, todo->msg, todo->bytes);
	if (!err)
		return;
	krp_session_sent(&s->krp, todo->slot);
	snprintf(why, sizeof(why), "sending %s failed (%d)", krp_msg_name(todo->type), err);
	krp_session_lost(&s->krp, krc_meta_now_ns(s->meta), err, why);
}

/* Attached: what is cached may be of the server's last incarnation, or nobody says what changes. */
static void krc_meta_session_up(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	if (s->krp.fresh || !(s->krp.features & KRP_FEATURE_NOTIFY))
		krc_cache_doubt_all(s->meta->cache);
	wake_up_all(&s->meta->wait);
}

/* No READ is posted any more; the work item does the rest. */
static void krc_meta_session_broken(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	s->duties = BIT(KRP_DO_CLOSE);
	/* the work item wakes those that wait for a slot */
	if (s->conn)
		WRITE_ONCE(s->conn->broken, true);
	wake_up_all(&s->meta->wait);
}

static void krc_meta_session_do(struct krc_meta_session *s, const struct krp_todo *todo)
{
	lockdep_assert_held(&s->meta->lock);
	switch (todo->what) {
	case KRP_DO_SEND:
		krc_meta_session_send(s, todo);
		break;
	case KRP_DO_UP:
		krc_meta_session_up(s);
		break;
	case KRP_DO_CHANGE:
		krc_meta_session_change(s, todo);
		break;
	case KRP_DO_DONE:
		krc_meta_session_done(s, todo);
		break;
	case KRP_DO_CLOSE:
		krc_meta_session_broken(s);
		break;
	case KRP_DO_CONNECT:
	case KRP_DO_PROVE:
	case KRP_DO_VERIFY:
	case KRP_DO_LOAD:
		s->duties |= BIT(todo->what);
		break;
	case KRP_DO_WAIT:
		break;
	}
}

/* Have the work item run at @until_ns, unless it runs earlier. */
static void krc_meta_session_arm(struct krc_meta_session *s, u64 until_ns)
{
	u64 now_ns = krc_meta_now_ns(s->meta);

	if (s->duties && s->armed_ns) {
		krc_meta_session_kick(s);
		return;
	}
	if (until_ns >= s->armed_ns)
		return;
	s->armed_ns = until_ns;
	mod_delayed_work(s->meta->wq, &s->work,
			 until_ns > now_ns ? nsecs_to_jiffies(until_ns - now_ns) + 1 : 0);
	/* krc_meta_qp_event() takes no lock: its kick may have come just before */
	if (s->conn && READ_ONCE(s->conn->fault))
		krc_meta_session_kick(s);
}

/*
 * Put the question whose turn it is, while the session has none to send: it sends questions in the
 * order in which they are put. Without an attached server, all that wait end.
 */
static void krc_meta_asks_put(struct krc_meta_session *s)
{
	struct krc_line_waiter *next;
	struct krc_meta_ask *ask;

	lockdep_assert_held(&s->meta->lock);
	while (krp_list_empty(&s->krp.asks)) {
		next = krc_line_next(&s->asks);
		if (likely(!next))
			return;
		complete(&next->given);
		ask = container_of(next, struct krc_meta_ask, place);
		if (krp_session_ask(&s->krp, &ask->krp))
			complete(&ask->done);
	}
}

/*
 * Bounded: a turn sends no more than there are credits, and says what has ended or changed
 * since the last one.
 */
void krc_meta_session_run(struct krc_meta_session *s)
{
	struct krp_todo todo;

	lockdep_assert_held(&s->meta->lock);
	for (;;) {
		krc_meta_asks_put(s);
		if (krp_session_next(&s->krp, krc_meta_now_ns(s->meta), &todo) == KRP_DO_WAIT)
			break;
		krc_meta_session_do(s, &todo);
	}
	krc_meta_records_trash(s->meta);
	krc_meta_session_arm(s, todo.until_ns);
}

void krc_meta_sessions_run(struct krc_meta *meta)
{
	struct krc_meta_session *s;
	u32 i;

	krc_meta_for_each(meta, s, i)
		krc_meta_session_run(s);
	krc_meta_records_trash(meta); /* also without any server */
}

/* ---- what happens ---- */

static __printf(3, 0) void krc_meta_session_failed(struct krc_meta_session *s, int err,
						   const char *fmt, va_list args)
{
	char why[KRP_REASON_BYTES];

	lockdep_assert_held(&s->meta->lock);
	vsnprintf(why, sizeof(why), fmt, args);
	krp_session_lost(&s->krp, krc_meta_now_ns(s->meta), err, why);
	krc_meta_session_run(s);
}

void krc_meta_session_fail_locked(struct krc_meta_session *s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	krc_meta_session_failed(s, err, fmt, args);
	va_end(args);
}

void krc_meta_session_fail(struct krc_meta_session *s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	spin_lock_bh(&s->meta->lock);
	krc_meta_session_failed(s, err, fmt, args);
	spin_unlock_bh(&s->meta->lock);
	va_end(args);
}

void krc_meta_conn_fail(struct krc_meta_conn *conn, int err, const char *fmt, ...)
{
	struct krc_meta_session *s = conn->s;
	va_list args;

	va_start(args, fmt);
	spin_lock_bh(&s->meta->lock);
	if (s->conn == conn)
		krc_meta_session_failed(s, err, fmt, args);
	spin_unlock_bh(&s->meta->lock);
	va_end(args);
}

void krc_meta_conn_step(struct krc_meta_conn *conn, const char *what)
{
	struct krc_meta_session *s = conn->s;

	spin_lock_bh(&s->meta->lock);
	if (s->conn == conn)
		krp_session_step(&s->krp, krc_meta_now_ns(s->meta), what);
	spin_unlock_bh(&s->meta->lock);
}

void krc_meta_session_sent(struct krc_meta_session *s, u32 slot)
{
	lockdep_assert_held(&s->meta->lock);
	krp_session_sent(&s->krp, slot);
	krc_meta_session_run(s);
}

void krc_meta_session_connected(struct krc_meta_session *s, const struct krp_link *link,
				const u8 *nonce, const u8 *key_id)
{
	spin_lock_bh(&s->meta->lock);
	krp_session_connected(&s->krp, krc_meta_now_ns(s->meta), link, nonce, key_id);
	krc_meta_session_run(s);
	spin_unlock_bh(&s->meta->lock);
}

void krc_meta_session_prove(struct krc_meta_session *s, int err, const u8 *mac)
{
	spin_lock_bh(&s->meta->lock);
	krp_session_prove(&s->krp, krc_meta_now_ns(s->meta), err, mac);
	krc_meta_session_run(s);
	spin_unlock_bh(&s->meta->lock);
}

void krc_meta_session_verify(struct krc_meta_session *s, const u8 *mac)
{
	spin_lock_bh(&s->meta->lock);
	krp_session_verify(&s->krp, krc_meta_now_ns(s->meta), mac);
	krc_meta_session_run(s);
	spin_unlock_bh(&s->meta->lock);
}

void krc_meta_session_loaded(struct krc_meta_conn *conn, int err)
{
	struct krc_meta_session *s = conn->s;
	struct krc_meta *meta = s->meta;
	bool ready = false;

	spin_lock_bh(&meta->lock);
	if (s->conn == conn) {
		krp_session_loaded(&s->krp, krc_meta_now_ns(meta), err);
		ready = s->krp.state == KRP_SESSION_READY;
		krc_meta_session_run(s);
	}
	if (ready)
		s->logged[0] = '\0';
	spin_unlock_bh(&meta->lock);
	if (ready)
		krc_port_info_limited(meta->ibdev, meta->port, "attached to %s\n", s->conf.name);
}

void krc_meta_session_end(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	krp_session_end(&s->krp, krc_meta_now_ns(s->meta));
	krc_meta_session_run(s);
}

void krc_meta_session_start(struct krc_meta_session *s)
{
	struct krc_meta *meta = s->meta;

	lockdep_assert_held(&meta->lock);
	krp_session_init(&s->krp, &meta->pub, s->index, &meta->conf);
	krp_session_subscribe(&s->krp, 1);
	if (meta->dead)
		krp_session_end(&s->krp, krc_meta_now_ns(meta));
	krc_meta_session_run(s);
}

void krc_meta_session_leave(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	krp_session_leave(&s->krp);
	krc_meta_session_run(s);
}

bool krc_meta_session_left(const struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	return krp_session_left(&s->krp);
}

void krc_meta_message(struct krc_meta_conn *conn, const void *msg, u32 bytes)
{
	struct krc_meta_session *s = conn->s;

	spin_lock_bh(&s->meta->lock);
	if (s->conn == conn) {
		krp_session_received(&s->krp, krc_meta_now_ns(s->meta), msg, bytes);
		krc_meta_session_run(s);
	}
	spin_unlock_bh(&s->meta->lock);
}

/* ---- the work item ---- */

/* Log why a server is not attached; the same reason only once in a row. */
static void krc_meta_session_log(struct krc_meta_session *s, bool was_ready, const char *reason)
{
	bool known;

	spin_lock_bh(&s->meta->lock);
	known = !was_ready && !strcmp(s->logged, reason);
	strscpy(s->logged, reason, sizeof(s->logged));
	spin_unlock_bh(&s->meta->lock);
	if (known)
		return;
	if (was_ready)
		krc_port_warn_limited(s->meta->ibdev, s->meta->port, "lost %s: %s\n", s->conf.name,
				      reason);
	else
		krc_port_info_limited(s->meta->ibdev, s->meta->port, "%s cannot be attached: %s\n",
				      s->conf.name, reason);
}

/*
 * An attached session has ended, and its server may have hung for a while: the cache may hold
 * outdated records READ there, which other servers had notified as changed. So doubt it if
 * another server is ready; else keep it, as there is nothing better, until the next attach.
 */
static void krc_meta_session_gone(struct krc_meta_session *s)
{
	struct krc_meta_session *other;
	u32 i;

	lockdep_assert_held(&s->meta->lock);
	krc_meta_for_each(s->meta, other, i)
		if (other != s && other->krp.state == KRP_SESSION_READY) {
			krc_meta_resync(s->meta);
			return;
		}
}

/*
 * Do KRP_DO_CLOSE. It waits for no task: one that looks up may not run for long, but learns that its
 * READ is over from what is on its own stack, and has a reference to the connection's memory.
 */
void krc_meta_session_close(struct krc_meta_session *s)
{
	struct krc_meta *meta = s->meta;
	struct krc_meta_conn *conn = s->conn;
	char reason[KRP_REASON_BYTES];
	bool was_ready, quiet;

	if (conn) {
		krc_meta_reads_stop(conn);
		krc_meta_conn_stop(conn);
		krc_meta_reads_end(conn);
		krc_meta_conn_end(conn);
	}

	spin_lock_bh(&meta->lock);
	s->conn = NULL;
	s->events = 0;
	s->duties = 0;
	s->routed = false;
	was_ready = s->krp.was_ready;
	quiet = s->krp.ended && s->krp.failure.error == -ESHUTDOWN;
	strscpy(reason, s->krp.failure.reason, sizeof(reason));
	krp_session_closed(&s->krp, krc_meta_now_ns(meta), get_random_u32());
	if (was_ready)
		krc_meta_session_gone(s);
	krc_meta_session_run(s);
	wake_up_all(&meta->wait);
	spin_unlock_bh(&meta->lock);
	/* krc_meta_end() waits for the work item before it drops @s */
	if (!quiet)
		krc_meta_session_log(s, was_ready, reason);
	if (conn)
		krc_meta_conn_put(conn);
}

/* What the work item is to do: a duty, which has queued it again, or what rdma_cm has said. */
static u32 krc_meta_session_take(struct krc_meta_session *s, u32 *ret_events)
{
	u32 duties;

	spin_lock_bh(&s->meta->lock);
	s->armed_ns = KRP_FOREVER_NS;
	if (s->conn && READ_ONCE(s->conn->fault))
		krc_meta_session_fail_locked(s, -EIO, "queue pair failed");
	else
		krc_meta_session_run(s);
	duties = s->duties;
	*ret_events = duties ? 0 : s->events;
	s->duties = 0;
	s->events &= ~*ret_events;
	spin_unlock_bh(&s->meta->lock);
	return duties;
}

static void krc_meta_session_work(struct work_struct *work)
{
	struct krc_meta_session *s =
		container_of(to_delayed_work(work), struct krc_meta_session, work);
	u32 events, duties = krc_meta_session_take(s, &events);

	if (duties & BIT(KRP_DO_CLOSE))
		krc_meta_session_close(s);
	else if (duties & BIT(KRP_DO_CONNECT))
		krc_meta_attach_begin(s);
	else if (duties & BIT(KRP_DO_PROVE))
		krc_meta_attach_prove(s);
	else if (duties & BIT(KRP_DO_VERIFY))
		krc_meta_attach_verify(s);
	else if (duties & BIT(KRP_DO_LOAD))
		krc_meta_attach_load(s);
	else if (events)
		krc_meta_attach_step(s, events);
}

struct krc_meta_session *krc_meta_session_new(struct krc_meta *meta,
					      const struct krc_meta_conf *conf, u32 server,
					      struct krc_meta_ring *ring)
{
	struct krc_meta_session *s = kvzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return ERR_PTR(-ENOMEM);
	kref_init(&s->ref);
	s->ring = krc_meta_ring_get(ring);
	s->meta = meta;
	s->index = KRC_META_SERVERS_MAX;
	s->conf = conf->servers[server];
	s->conf.name[sizeof(s->conf.name) - 1] = '\0';
	s->armed_ns = KRP_FOREVER_NS;
	krc_line_init(&s->asks);
	INIT_DELAYED_WORK(&s->work, krc_meta_session_work);
	return s;
}

static void krc_meta_session_free(struct kref *ref)
{
	struct krc_meta_session *s = container_of(ref, struct krc_meta_session, ref);

	WARN_ON(s->conn || s->krp.state != KRP_SESSION_DOWN);
	krc_meta_ring_put(s->ring);
	kvfree(s);
}

void krc_meta_session_put(struct krc_meta_session *s)
{
	kref_put(&s->ref, krc_meta_session_free);
}

/* ---- questions ---- */

/*
 * How long to wait yet: for the server's turn to be asked, from @begun on, and then for its answer.
 * @silent: out: with 0: it was asked, and does not answer. Return: jiffies, or 0.
 */
static unsigned long krc_meta_ask_left(struct krc_meta_session *s, const struct krc_meta_ask *ask,
				       unsigned long begun, unsigned long deadline, bool *silent)
{
	unsigned long timeout = krc_meta_read_timeout(s->meta);
	u64 passed = jiffies - begun;
	bool asked;
	long left;

	spin_lock_bh(&s->meta->lock);
	asked = ask->krp.slot;
	if (asked)
		passed = nsecs_to_jiffies(krc_meta_now_ns(s->meta) -
					  s->krp.slots.at[ask->krp.slot - 1].sent_ns);
	spin_unlock_bh(&s->meta->lock);
	left = timeout - min_t(u64, passed, timeout);
	*silent = asked && !left;
	return max(min_t(long, left, deadline - jiffies), 0L);
}

/* Wait for the answer. Return: what it is to be called if there is none. */
static int krc_meta_ask_wait(struct krc_meta_session *s, struct krc_meta_ask *ask,
			     unsigned long deadline)
{
	unsigned long left, begun = jiffies;
	bool silent;
	long ret;

	while ((left = krc_meta_ask_left(s, ask, begun, deadline, &silent))) {
		ret = wait_for_completion_killable_timeout(&ask->done, left);
		if (ret)
			return ret < 0 ? -EINTR : 0;
	}
	return silent ? -ETIMEDOUT : -ETIME;
}

/*
 * Nobody waits for an answer any more. The next question takes the place of one that was put, but
 * not sent.
 */
static void krc_meta_ask_end(struct krc_meta_session *s, const struct krc_meta_conn *conn,
			     struct krc_meta_ask *ask)
{
	spin_lock_bh(&s->meta->lock);
	if (krc_line_leave(&s->asks, &ask->place))
		ask->krp.err = -ETIMEDOUT;
	else
		krp_session_give_up(&s->krp, &ask->krp);
	if (s->conn == conn)
		krc_meta_session_run(s);
	spin_unlock_bh(&s->meta->lock);
}

int krc_meta_ask(struct krc_meta_session *s, struct krc_meta_conn *conn, struct krc_meta_query *q)
{
	struct krc_meta_ask ask = { .krp = { .key = *q->key, .type = KRP_MSG_LOOKUP } };
	bool present;
	int err;

	ask.done = COMPLETION_INITIALIZER_ONSTACK(ask.done);
	spin_lock_bh(&s->meta->lock);
	present = s->conn == conn;
	if (present) {
		krc_line_add(&s->asks, &ask.place, q->payer);
		krc_meta_session_run(s);
	}
	spin_unlock_bh(&s->meta->lock);
	if (!present)
		return -ENOTCONN;

	err = krc_meta_ask_wait(s, &ask, q->deadline);
	krc_meta_ask_end(s, conn, &ask);
	if (ask.krp.err == -ETIMEDOUT && err)
		return err;
	if (ask.krp.err == -ENOENT)
		return KRP_STEP_MISS;
	if (ask.krp.err)
		return ask.krp.err == -ETIMEDOUT ? -ETIMEDOUT : -ENOTCONN;
	*q->value = ask.krp.value;
	return KRP_STEP_HIT;
}
