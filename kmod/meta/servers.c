// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the set of a client's sessions: switching to a configuration, ending sessions,
 * stopping the client.
 *
 * A new configuration keeps the sessions with servers that are in both, unless owner, name or
 * lease change, which HELLO carries, or keys appear where there were none or vanish: then all
 * sessions are replaced. Changed keys count from a session's next handshake on, so that the
 * cluster's key can be changed in operation.
 * This port's records are withdrawn from a dropped server.
 * All that may fail is done before anything changes: a plan has a new session for each
 * server, even for those whose present session will be kept.
 * Locking: conf_mutex around each change; meta.lock inside.
 */
#include <linux/err.h>
#include <linux/slab.h>

#include "meta/meta_priv.h"

/**
 * struct krc_meta_plan - What switching to a configuration needs.
 * @session: by server: a session, not started; NULL once it is used.
 * @nr: number of servers.
 * @ring: cluster keys; NULL without any.
 */
struct krc_meta_plan {
	struct krc_meta_session *session[KRC_META_SERVERS_MAX];
	u32 nr;
	struct krc_meta_ring *ring;
};

static bool krc_meta_all_quiet(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *s;
	bool quiet = true;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i)
		if ((which & BIT(i)) && !krc_meta_session_left(s))
			quiet = false;
	quiet = quiet || meta->dead;
	spin_unlock_bh(&meta->lock);
	return quiet;
}

/* Withdraw our records from the servers in @which; waits at most KRC_META_WITHDRAW_MS. */
static void krc_meta_withdraw_from(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *s;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (!(which & BIT(i)))
			continue;
		krc_meta_session_leave(s);
	}
	spin_unlock_bh(&meta->lock);
	wait_event_timeout(meta->wait, krc_meta_all_quiet(meta, which),
			   msecs_to_jiffies(KRC_META_WITHDRAW_MS));
}

static bool krc_meta_all_down(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *s;
	bool down = true;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i)
		if ((which & BIT(i)) && s->krp.state != KRP_SESSION_DOWN)
			down = false;
	spin_unlock_bh(&meta->lock);
	return down;
}

/*
 * End the sessions in @which. Locks: conf_mutex. Context: may sleep.
 *
 * Waits until each session is DOWN: flushing the work item would not do, since events of the
 * connection may queue it again. An ended session that is DOWN stays DOWN and has no
 * connection whose events could queue the work item; once it can't be found in @meta either,
 * a run that is still queued does nothing. Look-ups may still have it, and its last connection.
 */
static void krc_meta_end(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *gone[KRC_META_SERVERS_MAX], *s;
	u32 i, nr = 0, stay = 0;

	lockdep_assert_held(&meta->conf_mutex);
	if (!which)
		return;
	krc_meta_withdraw_from(meta, which);
	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (!(which & BIT(i)))
			continue;
		krc_meta_session_end(s);
		gone[nr++] = s;
	}
	spin_unlock_bh(&meta->lock);
	wait_event(meta->wait, krc_meta_all_down(meta, which));
	spin_lock_bh(&meta->lock);
	for (i = 0; i < nr; i++) {
		krp_records_leave(&meta->pub, gone[i]->index, meta->closing);
		meta->sessions[gone[i]->index] = NULL;
	}
	krc_meta_records_trash(meta);
	for (i = 0; i < meta->order_nr; i++)
		if (!(which & BIT(meta->order[i]->index)))
			meta->order[stay++] = meta->order[i];
	meta->order_nr = stay;
	spin_unlock_bh(&meta->lock);
	for (i = 0; i < nr; i++) {
		cancel_delayed_work_sync(&gone[i]->work);
		krc_meta_session_put(gone[i]);
	}
}

static unsigned long krc_meta_present(struct krc_meta *meta)
{
	struct krc_meta_session *s;
	unsigned long which = 0;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i)
		which |= BIT(i);
	spin_unlock_bh(&meta->lock);
	return which;
}

void krc_meta_stop(struct krc_meta *meta)
{
	mutex_lock(&meta->conf_mutex);
	spin_lock_bh(&meta->lock);
	meta->closing = true;
	spin_unlock_bh(&meta->lock);
	wake_up_all(&meta->wait);
	krc_meta_end(meta, krc_meta_present(meta));
	mutex_unlock(&meta->conf_mutex);
}

/* Whether a session is with the server of @conf: same name and address. */
static bool krc_meta_same(const struct krc_meta_session *s, const struct krc_meta_server_conf *conf)
{
	return !strncmp(s->conf.name, conf->name, sizeof(conf->name)) &&
	       !memcmp(&s->conf.addr, &conf->addr, sizeof(conf->addr));
}

/* The present session with a server, not in @taken, or NULL. Locks: conf_mutex. */
static struct krc_meta_session *krc_meta_session_with(struct krc_meta *meta,
						      const struct krc_meta_server_conf *conf,
						      unsigned long taken)
{
	u32 i;

	lockdep_assert_held(&meta->conf_mutex);
	for (i = 0; i < meta->order_nr; i++)
		if (!(taken & BIT(meta->order[i]->index)) && krc_meta_same(meta->order[i], conf))
			return meta->order[i];
	return NULL;
}

/*
 * @list: out: the session for each server of a configuration: the present one, or the plan's.
 * @anew: keep none. Locks: conf_mutex, so that the sessions stay. Return: bit mask of the
 * sessions kept.
 */
static unsigned long krc_meta_gather(struct krc_meta *meta, const struct krc_meta_conf *conf,
				     bool anew, struct krc_meta_plan *plan,
				     struct krc_meta_session **list)
{
	struct krc_meta_session *s;
	unsigned long keep = 0;
	u32 i;

	lockdep_assert_held(&meta->conf_mutex);
	for (i = 0; i < plan->nr; i++) {
		s = anew ? NULL : krc_meta_session_with(meta, &conf->servers[i], keep);
		if (s) {
			keep |= BIT(s->index);
		} else {
			s = plan->session[i];
			plan->session[i] = NULL;
		}
		list[i] = s;
	}
	return keep;
}

static bool krc_meta_differs(const struct krc_meta *meta, const struct krc_meta_conf *conf)
{
	return memcmp(meta->conf.owner, conf->owner, sizeof(conf->owner)) ||
	       strncmp((const char *)meta->conf.name, conf->name, sizeof(conf->name)) ||
	       meta->auth != (conf->keys_nr > 0) || meta->conf.lease_ms != conf->lease_ms;
}

/* Give a new session an index, and start it. */
static void krc_meta_join(struct krc_meta *meta, struct krc_meta_session *s)
{
	u32 i = 0;

	lockdep_assert_held(&meta->lock);
	while (meta->sessions[i])
		i++; /* there is an index for every server */
	s->index = i;
	meta->sessions[i] = s;
	krc_meta_session_start(s);
}

/*
 * Take over the configuration and the sessions in @list. Locks: conf_mutex. Sessions that are
 * not kept have ended; kept ones may concurrently read owner, name and lease, which then do
 * not change.
 */
static void krc_meta_adopt(struct krc_meta *meta, const struct krc_meta_conf *conf,
			   struct krc_meta_plan *plan, struct krc_meta_session **list)
{
	struct krc_meta_ring *before[KRC_META_SERVERS_MAX], *ring;
	u32 i;

	spin_lock_bh(&meta->lock);
	memcpy(meta->conf.owner, conf->owner, sizeof(meta->conf.owner));
	strscpy_pad((char *)meta->conf.name, conf->name, sizeof(meta->conf.name));
	meta->auth = plan->ring;
	ring = meta->ring;
	meta->ring = krc_meta_ring_get(plan->ring);
	meta->conf.lease_ms = conf->lease_ms;
	WRITE_ONCE(meta->conf.timeout_ms, conf->timeout_ms);
	WRITE_ONCE(meta->conf.reconnect_min_ms, conf->reconnect_min_ms);
	WRITE_ONCE(meta->conf.reconnect_max_ms, conf->reconnect_max_ms);
	for (i = 0; i < plan->nr; i++) {
		before[i] = list[i]->ring;
		list[i]->ring = krc_meta_ring_get(plan->ring);
		list[i]->conf.priority = conf->servers[i].priority;
		if (list[i]->index == KRC_META_SERVERS_MAX)
			krc_meta_join(meta, list[i]);
		meta->order[i] = list[i];
	}
	meta->order_nr = plan->nr;
	spin_unlock_bh(&meta->lock);
	for (i = 0; i < plan->nr; i++)
		krc_meta_ring_put(before[i]);
	krc_meta_ring_put(ring);
}

struct krc_meta_plan *krc_meta_plan(struct krc_meta *meta, const struct krc_meta_conf *conf)
{
	struct krc_meta_plan *plan = kzalloc(sizeof(*plan), GFP_KERNEL);
	u32 nr = min_t(u32, conf->servers_nr, KRC_META_SERVERS_MAX);
	int err;

	if (!plan)
		return ERR_PTR(-ENOMEM);
	err = krc_meta_ring_new(conf, &plan->ring);
	while (!err && plan->nr < nr) {
		struct krc_meta_session *s = krc_meta_session_new(meta, conf, plan->nr, plan->ring);

		if (IS_ERR(s)) {
			err = PTR_ERR(s);
			break;
		}
		plan->session[plan->nr++] = s;
	}
	if (!err)
		return plan;
	krc_meta_plan_free(plan);
	return ERR_PTR(err);
}

void krc_meta_plan_free(struct krc_meta_plan *plan)
{
	u32 i;

	if (!plan)
		return;
	for (i = 0; i < plan->nr; i++)
		if (plan->session[i])
			krc_meta_session_put(plan->session[i]);
	krc_meta_ring_put(plan->ring);
	kfree(plan);
}

void krc_meta_switch(struct krc_meta *meta, const struct krc_meta_conf *conf,
		     struct krc_meta_plan *plan)
{
	struct krc_meta_session *list[KRC_META_SERVERS_MAX];
	unsigned long keep;
	bool anew;

	mutex_lock(&meta->conf_mutex);
	if (!meta->closing) {
		anew = krc_meta_differs(meta, conf);
		keep = krc_meta_gather(meta, conf, anew, plan, list);
		krc_meta_end(meta, krc_meta_present(meta) & ~keep);
		krc_meta_adopt(meta, conf, plan, list);
	}
	mutex_unlock(&meta->conf_mutex);
	krc_meta_plan_free(plan);
}

int krc_meta_reconfigure(struct krc_meta *meta, const struct krc_meta_conf *conf)
{
	struct krc_meta_plan *plan = krc_meta_plan(meta, conf);

	if (IS_ERR(plan))
		return PTR_ERR(plan);
	krc_meta_switch(meta, conf, plan);
	return 0;
}
