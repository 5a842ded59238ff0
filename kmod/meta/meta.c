// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the public face of a port's client: create and destroy, look-ups over the servers in
 * order of preference, state of the sessions.
 * Locking: meta.lock for all that is shared; see meta/meta_priv.h.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "meta/meta_priv.h"

/* Begin a call that may sleep. Return: 0, or -ESHUTDOWN. */
int krc_meta_enter(struct krc_meta *meta)
{
	int err = -ESHUTDOWN;

	spin_lock_bh(&meta->lock);
	if (!meta->closing) {
		meta->users++;
		err = 0;
	}
	spin_unlock_bh(&meta->lock);
	return err;
}

/* End such a call. */
void krc_meta_leave(struct krc_meta *meta)
{
	spin_lock_bh(&meta->lock);
	if (!--meta->users)
		wake_up_all(&meta->wait); /* under the lock: @meta may be gone right after */
	spin_unlock_bh(&meta->lock);
}

static bool krc_meta_unused(struct krc_meta *meta)
{
	bool unused;

	spin_lock_bh(&meta->lock);
	unused = !meta->users;
	spin_unlock_bh(&meta->lock);
	return unused;
}

struct krc_meta *krc_meta_create(struct ib_device *ibdev, u32 port, const union ib_gid *gid,
				 const struct krc_meta_conf *conf, struct krc_cache *cache)
{
	struct krc_meta *meta = kzalloc(sizeof(*meta), GFP_KERNEL);
	int err;

	if (!meta)
		return ERR_PTR(-ENOMEM);
	meta->ibdev = ibdev;
	meta->port = port;
	meta->gid = *gid;
	meta->cache = cache;
	meta->conf.generation = conf->generation;
	spin_lock_init(&meta->lock);
	mutex_init(&meta->conf_mutex);
	init_waitqueue_head(&meta->wait);
	INIT_LIST_HEAD(&meta->records);
	meta->wq = alloc_workqueue("krc_meta-%s-%u", WQ_UNBOUND, 0, dev_name(&ibdev->dev), port);
	err = meta->wq ? krc_meta_reconfigure(meta, conf) : -ENOMEM;
	if (err) {
		krc_meta_destroy(meta);
		return ERR_PTR(err);
	}
	return meta;
}

void krc_meta_destroy(struct krc_meta *meta)
{
	krc_meta_stop(meta);
	wait_event(meta->wait, krc_meta_unused(meta)); /* krc_meta_stop() has ended every wait */
	if (meta->wq)
		destroy_workqueue(meta->wq);
	krc_meta_records_free(meta);
	kfree(meta);
}

/* Locks: meta.lock. Whether a server restarted recently or hangs: its misses prove little. */
static bool krc_meta_doubtful(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	if (s->settling && time_after_eq(jiffies, s->settle_until))
		s->settling = false;
	return s->settling || s->still;
}

/* Locks: meta.lock. Take over the heartbeat of a READ of the root. */
static void krc_meta_pulse(struct krc_meta_session *s, const struct krp_pulse *pulse)
{
	lockdep_assert_held(&s->meta->lock);
	s->still = pulse->still;
	s->settling = pulse->settling_ms;
	s->settle_until = jiffies + msecs_to_jiffies(pulse->settling_ms);
}

/* Whether to ask @a before @b: doubtful servers last, then priority, then recent failures. */
static bool krc_meta_better(struct krc_meta_session *a, struct krc_meta_session *b)
{
	if (krc_meta_doubtful(a) != krc_meta_doubtful(b))
		return krc_meta_doubtful(b);
	if (a->conf.priority != b->conf.priority)
		return a->conf.priority < b->conf.priority;
	return krc_meta_blame(a) < krc_meta_blame(b);
}

/*
 * The best server that is ready and not in @tried; takes a count in conn.users.
 * Return: NULL if there is none.
 */
static struct krc_meta_session *krc_meta_choose(struct krc_meta *meta, unsigned long tried,
						struct krc_meta_conn **ret_conn)
{
	struct krc_meta_session *s, *best = NULL;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (s->state != KRC_META_READY || s->failed || s->leaving || (tried & BIT(i)))
			continue;
		if (!best || krc_meta_better(s, best))
			best = s;
	}
	if (best) {
		*ret_conn = best->conn;
		best->conn->users++;
		best->lookups++;
	}
	spin_unlock_bh(&meta->lock);
	return best;
}

/*
 * Drop the count in conn.users, and count the outcome. @pulse: new heartbeat, or NULL.
 * Return: true if a miss of this server proves little.
 */
static bool krc_meta_chosen_done(struct krc_meta_session *s, struct krc_meta_conn *conn, int step,
				 u32 reads, const struct krp_pulse *pulse)
{
	struct krc_meta *meta = s->meta;
	bool doubtful;

	spin_lock_bh(&meta->lock);
	if (pulse && s->conn == conn)
		krc_meta_pulse(s, pulse);
	doubtful = krc_meta_doubtful(s);
	s->reads += reads;
	if (step == KRP_STEP_MISS)
		s->misses++;
	else if (step < 0 && step != -EINTR)
		krc_meta_blamed(s);
	if (!--conn->users)
		wake_up_all(&meta->wait); /* under the lock: both may be gone right after */
	spin_unlock_bh(&meta->lock);
	return doubtful;
}

/*
 * Ask one server. @ret_doubtful: a miss of it proves little.
 * Return: as krc_meta_read_lookup().
 */
static int krc_meta_lookup_one(struct krc_meta_session *s, struct krc_meta_conn *conn,
			       const struct krp_key *key, unsigned long deadline,
			       struct krp_value *ret_value, u32 *reads, bool *ret_doubtful)
{
	unsigned long patience = krc_meta_patience(s->meta);
	bool hurried = time_before(deadline, jiffies + patience);
	struct krp_pulse pulse;
	u32 before = *reads;
	int step, verdict, looked = 0;

	step = krc_meta_read_lookup(conn, key, deadline, ret_value, reads);
	if (step == KRP_STEP_MISS)
		looked = krc_meta_read_pulse(conn, deadline, reads, &pulse);
	if (looked < 0)
		step = looked;
	if (step == -EAGAIN) {
		long left = deadline - jiffies;

		step = krc_meta_ask(s, conn, key, clamp_t(long, left, 0, patience), ret_value);
	}
	if (step == KRP_STEP_HIT && !krp_value_valid(ret_value))
		step = -EPROTO;
	/* not the server's fault if the caller allowed less than a READ timeout */
	verdict = hurried && step == -ETIMEDOUT ? -EINTR : step;
	*ret_doubtful =
		krc_meta_chosen_done(s, conn, verdict, *reads - before, looked > 0 ? &pulse : NULL);
	return step;
}

/* A server has a record that the servers in @proved missed: count that. */
static void krc_meta_overrule(struct krc_meta *meta, unsigned long proved)
{
	struct krc_meta_session *s;
	u32 i;

	if (!proved)
		return;
	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i)
		if (proved & BIT(i))
			s->misses_overruled++;
	spin_unlock_bh(&meta->lock);
}

/*
 * What it says that the servers in @missed do not have a record; @proved: those of them that
 * should. The one server that has it may be configured but unreachable.
 */
static enum krc_miss krc_meta_weigh(struct krc_meta *meta, unsigned long missed,
				    unsigned long proved)
{
	u32 nr = hweight_long(missed);

	if (!proved)
		return KRC_MISS_WEAK;
	if (nr < KRC_META_OPINIONS && nr < READ_ONCE(meta->order_nr))
		return KRC_MISS_LIKELY;
	return KRC_MISS_PROVED;
}

/*
 * Bit masks by index: @tried: servers asked; @missed: those that do not have the record;
 * @proved: those of @missed that should have it if it existed, since they neither settle nor
 * hang. A record is published once one server has it, so one miss alone proves nothing.
 */
static int krc_meta_lookup_all(struct krc_meta *meta, const struct krp_key *key,
			       unsigned long deadline, struct krp_value *ret_value, u32 *reads,
			       enum krc_miss *ret_miss)
{
	unsigned long tried = 0, missed = 0, proved = 0;
	struct krc_meta_session *s;
	struct krc_meta_conn *conn;
	bool doubtful;
	u32 index;
	int step;

	for (;;) {
		s = krc_meta_choose(meta, tried, &conn);
		if (!s && READ_ONCE(meta->closing))
			return -ESHUTDOWN;
		if (!s)
			return missed ? -ENOENT : -ENOTCONN;
		index = s->index; /* @s may be freed afterwards */
		tried |= BIT(index);
		step = krc_meta_lookup_one(s, conn, key, deadline, ret_value, reads, &doubtful);
		if (step == KRP_STEP_HIT) {
			krc_meta_overrule(meta, proved);
			return 0;
		}
		if (step == KRP_STEP_MISS) {
			missed |= BIT(index);
			proved |= doubtful ? 0 : BIT(index);
		}
		*ret_miss = krc_meta_weigh(meta, missed, proved);
		if (proved && hweight_long(missed) >= KRC_META_OPINIONS)
			return -ENOENT;
		if (step == -EINTR)
			return step;
		if (READ_ONCE(meta->closing))
			return -ESHUTDOWN;
		if (time_after_eq(jiffies, deadline))
			return -ETIMEDOUT;
	}
}

int krc_meta_lookup(struct krc_meta *meta, const struct krp_key *key, u32 timeout_ms,
		    struct krp_value *ret_value, u32 *ret_reads, enum krc_miss *ret_miss)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	u64 epoch = krc_cache_epoch(meta->cache);
	struct krp_value value;
	enum krc_miss miss = KRC_MISS_PROVED;
	u32 reads = 0;
	int err;

	if (krp_is_zero(key->gid, sizeof(key->gid)))
		return -EINVAL;
	err = krc_meta_enter(meta);
	if (err)
		return err;
	err = krc_meta_lookup_all(meta, key, deadline, &value, &reads, &miss);
	krc_meta_leave(meta);
	if (ret_reads && (!err || err == -ENOENT))
		*ret_reads = reads;
	if (ret_miss && err == -ENOENT)
		*ret_miss = miss;
	if (err)
		return err;
	krc_cache_put(meta->cache, key, &value, epoch); /* on failure it is just not cached */
	*ret_value = value;
	return 0;
}

int krc_meta_info(struct krc_meta *meta, u32 i, struct krc_meta_info *ret_info)
{
	struct krc_meta_session *s;

	spin_lock_bh(&meta->lock);
	if (i >= meta->order_nr) {
		spin_unlock_bh(&meta->lock);
		return -ENOENT;
	}
	s = meta->order[i];
	memset(ret_info, 0, sizeof(*ret_info));
	memcpy(ret_info->name, s->conf.name, sizeof(ret_info->name));
	ret_info->addr = s->conf.addr;
	ret_info->priority = s->conf.priority;
	ret_info->state = s->state;
	ret_info->error = s->error;
	memcpy(ret_info->reason, s->reason, sizeof(ret_info->reason));
	ret_info->incarnation = s->incarnation;
	ret_info->lease_ms = s->lease_ms;
	if (s->state == KRC_META_READY)
		ret_info->published = krc_meta_records_count(s, KRC_META_AT_ACKED);
	ret_info->attaches = s->attaches;
	ret_info->lookups = s->lookups;
	ret_info->reads = s->reads;
	ret_info->misses = s->misses;
	ret_info->misses_overruled = s->misses_overruled;
	ret_info->failures = s->failures;
	if (s->state == KRC_META_DOWN && !meta->dead && time_after(s->next_at, jiffies))
		ret_info->next_try_ms = jiffies_to_msecs(s->next_at - jiffies);
	spin_unlock_bh(&meta->lock);
	return 0;
}

const char *krc_meta_state_name(u8 state)
{
	static const char *const names[KRC_META_STATES] = {
		[KRC_META_DOWN] = "down",
		[KRC_META_RESOLVING] = "resolving",
		[KRC_META_CONNECTING] = "connecting",
		[KRC_META_HELLO] = "hello",
		[KRC_META_READY] = "ready",
		[KRC_META_CLOSING] = "closing",
	};

	return state < KRC_META_STATES ? names[state] : "unknown";
}
