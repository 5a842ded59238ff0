// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the state machine of a session: states, failures, pauses, timers.
 *
 * krc_meta_session_to() alone changes a state, and lists the legal transitions. A failure may
 * be detected anywhere, also in softirq: it is recorded with its reason and queues the
 * session's work item, which alone takes the connection down and tries again later, with
 * doubling pauses and jitter.
 * Locking: the work item holds no lock while it creates and destroys; meta.lock otherwise.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/log.h"
#include "meta/meta_priv.h"

/* Change the state of a session; no other function does. Context: the work item. */
void krc_meta_session_to(struct krc_meta_session *s, enum krc_meta_state state)
{
	static const unsigned int from[KRC_META_STATES] = {
		[KRC_META_DOWN] = BIT(KRC_META_CLOSING),
		[KRC_META_RESOLVING] = BIT(KRC_META_DOWN),
		[KRC_META_CONNECTING] = BIT(KRC_META_RESOLVING),
		[KRC_META_HELLO] = BIT(KRC_META_CONNECTING),
		[KRC_META_READY] = BIT(KRC_META_HELLO),
		[KRC_META_CLOSING] = BIT(KRC_META_RESOLVING) | BIT(KRC_META_CONNECTING) |
				     BIT(KRC_META_HELLO) | BIT(KRC_META_READY),
	};

	lockdep_assert_held(&s->meta->lock);
	WARN_ON_ONCE(!(from[state] & BIT(s->state)));
	s->state = state;
	if (state != KRC_META_DOWN && state != KRC_META_READY)
		s->deadline = jiffies + msecs_to_jiffies(krc_meta_timeout_ms(s->meta));
	wake_up_all(&s->meta->wait);
}

/* Run the work item now. Context: any. */
void krc_meta_session_kick(struct krc_meta_session *s)
{
	mod_delayed_work(s->meta->wq, &s->work, 0);
}

static __printf(3, 0) void krc_meta_session_failed(struct krc_meta_session *s, int err,
						   const char *fmt, va_list args)
{
	lockdep_assert_held(&s->meta->lock);
	if (s->failed || s->state == KRC_META_DOWN || s->state == KRC_META_CLOSING)
		return; /* the first failure counts */
	s->failed = true;
	s->error = err;
	vsnprintf(s->reason, sizeof(s->reason), fmt, args);
	if (s->state == KRC_META_READY)
		krc_meta_blamed(s);
	if (s->conn) {
		WRITE_ONCE(s->conn->broken, true);
		wake_up_all(&s->conn->read_wait);
	}
	krc_meta_session_kick(s);
}

/* Locks: meta.lock. Have the connection taken down. @fmt: reason, for diagnostics. */
void krc_meta_session_fail_locked(struct krc_meta_session *s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	krc_meta_session_failed(s, err, fmt, args);
	va_end(args);
}

/* The same without the lock. Context: any but hard interrupts, meta.lock not held. */
void krc_meta_session_fail(struct krc_meta_session *s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	spin_lock_bh(&s->meta->lock);
	krc_meta_session_failed(s, err, fmt, args);
	spin_unlock_bh(&s->meta->lock);
	va_end(args);
}

/* Doubling pauses in jiffies with 25 % jitter either way, so that nodes don't reconnect at once. */
static unsigned long krc_meta_session_pause(const struct krc_meta_session *s)
{
	const struct krc_meta_conf *conf = &s->meta->conf;
	u64 ms = (u64)max(READ_ONCE(conf->reconnect_min_ms), 1U) << min(s->fails, 20U);

	ms = min_t(u64, ms, max(READ_ONCE(conf->reconnect_max_ms), 1U));
	ms = ms - ms / 4 + get_random_u32() % (ms / 2 + 1);
	return msecs_to_jiffies(ms);
}

/*
 * Whether an ending session was READY long enough to reset the back-off. If not, it is a
 * failure too: two clients of one owner and generation evict each other on every attach.
 */
static bool krc_meta_session_lasted(const struct krc_meta_session *s)
{
	u32 most_ms = READ_ONCE(s->meta->conf.reconnect_max_ms);

	return time_after_eq(jiffies, s->ready_at + msecs_to_jiffies(most_ms));
}

/* Log why a server is not attached; the same reason only once in a row. */
static void krc_meta_session_log(struct krc_meta_session *s, bool was_ready)
{
	if (s->ended || (!was_ready && !strcmp(s->logged, s->reason)))
		return;
	strscpy(s->logged, s->reason, sizeof(s->logged));
	if (was_ready)
		krc_port_warn_limited(s->meta->ibdev, s->meta->port, "lost %s: %s\n", s->conf.name,
				      s->reason);
	else
		krc_port_info_limited(s->meta->ibdev, s->meta->port, "%s cannot be attached: %s\n",
				      s->conf.name, s->reason);
}

static bool krc_meta_session_unused(struct krc_meta_session *s, const struct krc_meta_conn *conn)
{
	bool unused;

	spin_lock_bh(&s->meta->lock);
	unused = !conn->users;
	spin_unlock_bh(&s->meta->lock);
	return unused;
}

/*
 * Locks: meta.lock. An attached session has ended, and its server may have hung for a while:
 * the cache may hold outdated records READ there, which other servers had notified as
 * changed. So empty it if another server is ready; else keep it, as there is nothing better,
 * until the next attach empties it.
 */
static void krc_meta_session_lost(struct krc_meta_session *s)
{
	struct krc_meta_session *other;
	u32 i;

	lockdep_assert_held(&s->meta->lock);
	krc_meta_for_each(s->meta, other, i)
		if (other != s && other->state == KRC_META_READY && !other->failed) {
			krc_meta_resync(s);
			return;
		}
}

/* Take the connection down, from any state. Context: the work item. */
static void krc_meta_session_close(struct krc_meta_session *s)
{
	struct krc_meta *meta = s->meta;
	struct krc_meta_conn *conn = s->conn;
	bool was_ready;

	spin_lock_bh(&meta->lock);
	was_ready = s->state == KRC_META_READY;
	krc_meta_session_to(s, KRC_META_CLOSING);
	krc_meta_requests_fail(s, -ENOTCONN);
	spin_unlock_bh(&meta->lock);

	if (conn) {
		krc_meta_reads_stop(conn);
		krc_meta_conn_stop(conn);
		krc_meta_reads_end(conn);
		/* look-ups do not block on @conn any more, so this is short */
		wait_event(meta->wait, krc_meta_session_unused(s, conn));
		krc_meta_conn_free(conn);
	}

	spin_lock_bh(&meta->lock);
	s->conn = NULL;
	s->events = 0;
	s->failed = false;
	krc_meta_session_to(s, KRC_META_DOWN);
	if (was_ready)
		krc_meta_session_lost(s);
	if (was_ready && krc_meta_session_lasted(s))
		s->fails = 0;
	s->next_at = jiffies + krc_meta_session_pause(s);
	s->fails++;
	spin_unlock_bh(&meta->lock);
	krc_meta_session_log(s, was_ready);
}

/* The handshake is complete: publish, subscribe, renew. Context: the work item. */
void krc_meta_session_ready(struct krc_meta_session *s, const struct krp_welcome *welcome)
{
	struct krc_meta_conn *conn = s->conn;
	struct krc_meta *meta = s->meta;
	u32 settling_ms = le32_to_cpu(welcome->settling_ms);
	bool fresh;

	spin_lock_bh(&meta->lock);
	if (s->failed || s->leaving) {
		spin_unlock_bh(&meta->lock);
		return;
	}
	fresh = s->incarnation != conn->incarnation;
	s->lease_ms = le32_to_cpu(welcome->lease_ms);
	s->rate_max = le32_to_cpu(welcome->rate_max);
	s->credits = min_t(u32, le16_to_cpu(welcome->credits), KRC_META_SENDS);
	s->features = le64_to_cpu(conn->challenge.features);
	s->incarnation = conn->incarnation;
	memcpy(s->token, welcome->token, sizeof(s->token));
	s->settle_until = jiffies + msecs_to_jiffies(settling_ms);
	s->settling = settling_ms;
	s->still = false;
	s->ready_at = jiffies;
	s->error = 0;
	s->reason[0] = '\0';
	s->logged[0] = '\0';
	s->attaches++;
	s->acked_at = jiffies;
	s->renew_at = jiffies;
	s->pace_nr = 0;
	s->subscribe_due = s->features & KRP_FEATURE_NOTIFY;
	krc_meta_records_mark(s, (u32)~BIT(KRC_META_AT_NEVER), KRC_META_AT_DIRTY);
	krc_meta_session_to(s, KRC_META_READY);
	if (fresh || !s->subscribe_due)
		krc_cache_doubt_all(meta->cache);
	krc_meta_pump(s);
	spin_unlock_bh(&meta->lock);
	krc_port_info_limited(meta->ibdev, meta->port, "attached to %s\n", s->conf.name);
}

static unsigned long krc_meta_renew_jiffies(const struct krc_meta_session *s)
{
	u32 ms = min_t(u32, s->lease_ms / 3, KRC_META_RENEW_MAX_MS);

	return msecs_to_jiffies(max(ms, 100U)); /* whatever lease the server granted */
}

/* Timers of an attached session. Context: the work item. */
static void krc_meta_session_timers(struct krc_meta_session *s)
{
	struct krc_meta *meta = s->meta;
	unsigned long sent_at;

	spin_lock_bh(&meta->lock);
	if (krc_meta_requests_oldest(s, &sent_at) &&
	    time_after(jiffies, sent_at + msecs_to_jiffies(krc_meta_timeout_ms(meta)))) {
		krc_meta_session_fail_locked(s, -ETIMEDOUT, "no answer to a request for %u ms",
					     krc_meta_timeout_ms(meta));
	} else if (time_after_eq(jiffies, s->renew_at)) {
		s->renew_at = jiffies + krc_meta_renew_jiffies(s);
		s->renew_due = true;
		krc_meta_records_mark(s, BIT(KRC_META_AT_REFUSED), KRC_META_AT_DIRTY);
		krc_meta_records_expire(meta);
	}
	krc_meta_pump(s);
	spin_unlock_bh(&meta->lock);
}

static void krc_meta_sooner(unsigned long *at, unsigned long than)
{
	if (time_before(than, *at))
		*at = than;
}

/* Jiffies when the work item is to run again without an event. Locks: meta.lock. */
static unsigned long krc_meta_session_next(const struct krc_meta_session *s)
{
	unsigned long at, sent_at;

	lockdep_assert_held(&s->meta->lock);
	switch (s->state) {
	case KRC_META_DOWN:
		return s->next_at;
	case KRC_META_READY:
		at = s->renew_at;
		if (krc_meta_requests_oldest(s, &sent_at))
			krc_meta_sooner(
				&at, sent_at + 1 + msecs_to_jiffies(krc_meta_timeout_ms(s->meta)));
		if (s->paced && time_after(s->pace_from + HZ / 10 + 1, jiffies))
			krc_meta_sooner(&at, s->pace_from + HZ / 10 + 1);
		return at;
	default:
		return s->deadline;
	}
}

static void krc_meta_session_rearm(struct krc_meta_session *s)
{
	struct krc_meta *meta = s->meta;
	unsigned long at;

	spin_lock_bh(&meta->lock);
	/* without a device the work item has nothing to do any more */
	if (!s->ended && !(meta->dead && s->state == KRC_META_DOWN)) {
		at = krc_meta_session_next(s);
		/* no-op if a kick has queued it meanwhile */
		queue_delayed_work(meta->wq, &s->work, time_after(at, jiffies) ? at - jiffies : 0);
	}
	spin_unlock_bh(&meta->lock);
}

/* One step of a session that has not failed. Context: the work item. */
static void krc_meta_session_step(struct krc_meta_session *s, u32 events)
{
	switch (s->state) {
	case KRC_META_DOWN:
		if (!READ_ONCE(s->meta->dead) && time_after_eq(jiffies, s->next_at))
			krc_meta_attach_begin(s);
		break;
	case KRC_META_READY:
		krc_meta_session_timers(s);
		break;
	default:
		krc_meta_attach_step(s, events);
		break;
	}
}

static void krc_meta_session_work(struct work_struct *work)
{
	struct krc_meta_session *s =
		container_of(to_delayed_work(work), struct krc_meta_session, work);
	struct krc_meta *meta = s->meta;
	bool failed, ended;
	u32 events;

	spin_lock_bh(&meta->lock);
	events = s->events;
	s->events = 0;
	if (s->conn && READ_ONCE(s->conn->fault))
		krc_meta_session_fail_locked(s, -EIO, "queue pair failed");
	failed = s->failed;
	ended = s->ended;
	spin_unlock_bh(&meta->lock);
	if (s->state != KRC_META_DOWN && (failed || ended))
		krc_meta_session_close(s);
	else if (!ended)
		krc_meta_session_step(s, events);
	krc_meta_session_rearm(s);
}

/* A session with conf->servers[@server], not started. Return: or ERR_PTR(-ENOMEM). */
struct krc_meta_session *krc_meta_session_new(struct krc_meta *meta,
					      const struct krc_meta_conf *conf, u32 server,
					      struct krc_meta_ring *ring)
{
	struct krc_meta_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return ERR_PTR(-ENOMEM);
	s->ring = krc_meta_ring_get(ring);
	s->meta = meta;
	s->conf = conf->servers[server];
	s->conf.name[sizeof(s->conf.name) - 1] = '\0';
	s->state = KRC_META_DOWN;
	s->next_at = jiffies;
	INIT_LIST_HEAD(&s->asks);
	INIT_DELAYED_WORK(&s->work, krc_meta_session_work);
	return s;
}

/* Free a session that has ended or was never started. */
void krc_meta_session_free(struct krc_meta_session *s)
{
	WARN_ON(s->conn || s->state != KRC_META_DOWN);
	krc_meta_ring_put(s->ring);
	kfree(s);
}
