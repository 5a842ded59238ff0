// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: which servers a client has sessions with: taking a configuration, ending
 * sessions, the end of all.
 *
 * A new configuration keeps the sessions with servers that are in both, unless it
 * changes what a session says of itself (owner, name, key, lease): then all begin anew.
 * A server that is left is told to withdraw this port's records.
 * Locking: conf_mutex around each change; meta.lock inside.
 */
#include <linux/err.h>
#include <linux/slab.h>

#include "krc_meta_priv.h"

static bool krc_meta_all_quiet(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *s;
	bool quiet = true;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i)
		if ((which & BIT(i)) && s->state == KRC_META_READY && !s->failed &&
		    !krc_meta_records_quiet(s))
			quiet = false;
	quiet = quiet || meta->dead;
	spin_unlock_bh(&meta->lock);
	return quiet;
}

/* Have the servers in @which forget our records; wait for them, not long. */
static void krc_meta_leave_servers(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *s;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (!(which & BIT(i)))
			continue;
		s->leaving = true;
		/* also what it has not been told last: it may know an older value */
		krc_meta_records_mark(s, (u32)~BIT(KRC_META_AT_NEVER), KRC_META_AT_DIRTY);
		krc_meta_pump(s);
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
		if ((which & BIT(i)) && s->state != KRC_META_DOWN)
			down = false;
	spin_unlock_bh(&meta->lock);
	return down;
}

/*
 * End the sessions in @which. Locks: conf_mutex. Context: may sleep.
 *
 * Each is waited for until it is down: a flush does not do, as events of the connection
 * may move the queued work item behind it. What has ended and is down stays down and has
 * no connection whose events could queue the work item; once nobody finds it either, a
 * run that is left has nothing to do.
 */
static void krc_meta_end(struct krc_meta *meta, unsigned long which)
{
	struct krc_meta_session *gone[KRC_META_SERVERS_MAX], *s;
	u32 i, nr = 0, stay = 0;

	lockdep_assert_held(&meta->conf_mutex);
	if (!which)
		return;
	krc_meta_leave_servers(meta, which);
	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (!(which & BIT(i)))
			continue;
		s->ended = true;
		krc_meta_session_fail_locked(s, -ESHUTDOWN, "going away");
		krc_meta_session_kick(s);
		gone[nr++] = s;
	}
	spin_unlock_bh(&meta->lock);
	wait_event(meta->wait, krc_meta_all_down(meta, which));
	spin_lock_bh(&meta->lock);
	for (i = 0; i < nr; i++) {
		krc_meta_records_left(gone[i]);
		meta->sessions[gone[i]->index] = NULL;
	}
	for (i = 0; i < meta->order_nr; i++)
		if (!(which & BIT(meta->order[i]->index)))
			meta->order[stay++] = meta->order[i];
	meta->order_nr = stay;
	spin_unlock_bh(&meta->lock);
	for (i = 0; i < nr; i++) {
		cancel_delayed_work_sync(&gone[i]->work);
		krc_meta_session_free(gone[i]);
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

/* Whether a session may go on under another configuration. */
static bool krc_meta_same(const struct krc_meta_session *s, const struct krc_meta_server_conf *conf)
{
	return !strncmp(s->conf.name, conf->name, sizeof(conf->name)) &&
	       !memcmp(&s->conf.addr, &conf->addr, sizeof(conf->addr));
}

/*
 * Find or make a session for each server of a configuration. Locks: conf_mutex, so that
 * the sessions stay. @ret_keep: those that go on. Return: 0, or a negative errno.
 */
static int krc_meta_gather(struct krc_meta *meta, const struct krc_meta_conf *conf, bool anew,
			   struct krc_meta_session **list, u32 nr, unsigned long *ret_keep)
{
	u32 i, j;

	lockdep_assert_held(&meta->conf_mutex);
	for (i = 0; i < nr; i++) {
		struct krc_meta_session *s = NULL;

		for (j = 0; j < meta->order_nr && !anew && !s; j++)
			if (!(*ret_keep & BIT(meta->order[j]->index)) &&
			    krc_meta_same(meta->order[j], &conf->servers[i]))
				s = meta->order[j];
		if (s) {
			*ret_keep |= BIT(s->index);
		} else {
			s = krc_meta_session_new(meta, conf, i);
			if (IS_ERR(s))
				return PTR_ERR(s);
			s->index = KRC_META_SERVERS_MAX; /* not yet among them */
		}
		list[i] = s;
	}
	return 0;
}

static bool krc_meta_differs(const struct krc_meta *meta, const struct krc_meta_conf *conf,
			     const u8 *key_mac)
{
	return memcmp(meta->conf.owner, conf->owner, sizeof(conf->owner)) ||
	       memcmp(meta->conf.name, conf->name, sizeof(conf->name)) ||
	       memcmp(meta->key_mac, key_mac, sizeof(meta->key_mac)) ||
	       meta->conf.lease_ms != conf->lease_ms;
}

/* Give a new session a place, and begin. */
static void krc_meta_join(struct krc_meta *meta, struct krc_meta_session *s)
{
	u32 i = 0;

	lockdep_assert_held(&meta->lock);
	while (meta->sessions[i])
		i++; /* there are as many places as servers */
	s->index = i;
	meta->sessions[i] = s;
	krc_meta_records_joined(s);
	krc_meta_session_kick(s);
}

/*
 * Locks: conf_mutex. The old sessions that do not go on have ended; those that do may be
 * reading what is the same in both.
 */
static void krc_meta_adopt(struct krc_meta *meta, const struct krc_meta_conf *conf,
			   const u8 *key_mac, struct krc_meta_session **list, u32 nr)
{
	u32 i;

	spin_lock_bh(&meta->lock);
	memcpy(meta->conf.owner, conf->owner, sizeof(meta->conf.owner));
	memcpy(meta->conf.name, conf->name, sizeof(meta->conf.name));
	memcpy(meta->key_mac, key_mac, sizeof(meta->key_mac));
	meta->conf.lease_ms = conf->lease_ms;
	WRITE_ONCE(meta->conf.timeout_ms, conf->timeout_ms);
	WRITE_ONCE(meta->conf.reconnect_min_ms, conf->reconnect_min_ms);
	WRITE_ONCE(meta->conf.reconnect_max_ms, conf->reconnect_max_ms);
	for (i = 0; i < nr; i++) {
		list[i]->conf.priority = conf->servers[i].priority;
		if (list[i]->index == KRC_META_SERVERS_MAX)
			krc_meta_join(meta, list[i]);
		meta->order[i] = list[i];
	}
	meta->order_nr = nr;
	spin_unlock_bh(&meta->lock);
}

int krc_meta_reconfigure(struct krc_meta *meta, const struct krc_meta_conf *conf)
{
	u32 i, nr = min_t(u32, conf->servers_nr, KRC_META_SERVERS_MAX);
	struct krc_meta_session *list[KRC_META_SERVERS_MAX] = {};
	u8 key_mac[KRP_MAC_BYTES];
	unsigned long keep = 0;
	int err;

	err = krc_meta_auth_print(conf, key_mac);
	if (err)
		return err;
	mutex_lock(&meta->conf_mutex);
	if (meta->closing)
		goto out;
	err = krc_meta_gather(meta, conf, krc_meta_differs(meta, conf, key_mac), list, nr, &keep);
	if (err)
		goto err_list;
	krc_meta_end(meta, krc_meta_present(meta) & ~keep);
	krc_meta_adopt(meta, conf, key_mac, list, nr);
out:
	mutex_unlock(&meta->conf_mutex);
	return 0;

err_list:
	for (i = 0; i < nr; i++)
		if (list[i] && list[i]->index == KRC_META_SERVERS_MAX)
			krc_meta_session_free(list[i]);
	mutex_unlock(&meta->conf_mutex);
	return err;
}
