// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the public face of a port's client: create and destroy, look-ups over the servers in
 * order of preference, state of the sessions.
 * Locking: meta.lock for all that is shared; see meta/meta_priv.h.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "meta/meta_priv.h"

static_assert(sizeof_field(struct krc_meta_info, reason) == KRP_REASON_BYTES);

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
	meta->conf.features = KRP_FEATURES_ALL;
	meta->conf.slots = KRC_META_SENDS;
	spin_lock_init(&meta->lock);
	mutex_init(&meta->conf_mutex);
	init_waitqueue_head(&meta->wait);
	krp_publisher_init(&meta->pub, meta->chains, KRC_META_CHAINS, KRC_META_SERVERS_MAX);
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
	krc_meta_ring_put(meta->ring);
	kfree(meta);
}

/* Whether to ask @a before @b. Locks: meta.lock. The time of a READ is not measured here. */
static bool krc_meta_better(const struct krc_meta_session *a, const struct krc_meta_session *b)
{
	u64 now_ns = krc_meta_now_ns(a->meta);
	struct krp_candidate first = { .doubtful = krp_session_doubtful(&a->krp, now_ns),
				       .priority = a->conf.priority,
				       .blame = krp_session_blame(&a->krp, now_ns) };
	struct krp_candidate second = { .doubtful = krp_session_doubtful(&b->krp, now_ns),
					.priority = b->conf.priority,
					.blame = krp_session_blame(&b->krp, now_ns) };

	return krp_better(&first, &second);
}

/* Whether a miss of a server would prove little now. Locks: meta.lock. */
static bool krc_meta_doubts(const struct krc_meta_session *s)
{
	if (likely(!s->krp.settle_ns && !s->krp.still))
		return false; /* and no clock is read */
	return krp_session_doubtful(&s->krp, krc_meta_now_ns(s->meta));
}

/*
 * The best server that is ready and not in @tried; takes a reference to its connection.
 * @ret_doubtful: a miss of it will prove little, however long the READ takes: what is READ may be
 * as old as this.
 * Return: NULL if there is none.
 */
static struct krc_meta_session *krc_meta_choose(struct krc_meta *meta, unsigned long tried,
						struct krc_meta_conn **ret_conn, bool *ret_doubtful)
{
	struct krc_meta_session *s, *best = NULL;
	u32 i;

	spin_lock_bh(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (s->krp.state != KRP_SESSION_READY || s->krp.peer.leaving || (tried & BIT(i)))
			continue;
		if (!best || krc_meta_better(s, best))
			best = s;
	}
	if (best) {
		*ret_conn = best->conn;
		kref_get(&best->conn->ref);
		best->lookups++;
		*ret_doubtful = krc_meta_doubts(best);
	}
	spin_unlock_bh(&meta->lock);
	return best;
}

/*
 * Count the outcome, and drop the reference to the connection. A session that has another one by
 * now is not judged by it. @pulse: new heartbeat, or NULL.
 * Return: true if a miss of this server proves little.
 */
static bool krc_meta_chosen_done(struct krc_meta_session *s, struct krc_meta_conn *conn, int step,
				 u32 reads, const struct krp_pulse *pulse)
{
	struct krc_meta *meta = s->meta;
	bool doubtful = false, present;
	u64 now_ns;

	spin_lock_bh(&meta->lock);
	now_ns = step == KRP_STEP_HIT ? 0 : krc_meta_now_ns(meta); /* a hit needs no clock */
	present = s->conn == conn;
	if (pulse && present)
		krp_session_pulse(&s->krp, now_ns, pulse->still, pulse->settling_ms);
	s->reads += reads;
	if (step == KRP_STEP_MISS) {
		doubtful = !present || krp_session_doubtful(&s->krp, now_ns);
		s->misses++;
	} else if (step < 0 && step != -EINTR && present) {
		krp_session_blamed(&s->krp, now_ns);
	}
	spin_unlock_bh(&meta->lock);
	krc_meta_conn_put(conn); /* both may be gone right after */
	return doubtful;
}

/*
 * Ask one server. @doubtful: of krc_meta_choose(); or out: a miss of it proves little after all.
 * Return: as krc_meta_table_lookup().
 */
static int krc_meta_lookup_one(struct krc_meta_session *s, struct krc_meta_conn *conn,
			       struct krc_meta_query *q, bool *doubtful)
{
	struct krp_pulse pulse;
	u32 before = q->reads;
	int step, verdict, looked = 0;

	step = krc_meta_table_lookup(conn, q);
	if (step == KRP_STEP_MISS)
		looked = krc_meta_table_pulse(conn, q, &pulse);
	if (looked < 0)
		step = looked;
	if (step == -EAGAIN)
		step = krc_meta_ask(s, conn, q);
	if (step == KRP_STEP_HIT && !krp_value_valid(q->value))
		step = -EPROTO;
	/* not the server's fault if the caller's time was over before the server had its own */
	verdict = step == -ETIME ? -EINTR : step;
	if (krc_meta_chosen_done(s, conn, verdict, q->reads - before, looked > 0 ? &pulse : NULL))
		*doubtful = true;
	return step == -ETIME ? -ETIMEDOUT : step;
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
static int krc_meta_lookup_all(struct krc_meta *meta, struct krc_meta_query *q,
			       enum krc_miss *ret_miss)
{
	unsigned long tried = 0, missed = 0, proved = 0;
	struct krc_meta_session *s;
	struct krc_meta_conn *conn;
	bool doubtful;
	u32 index;
	int step;

	for (;;) {
		s = krc_meta_choose(meta, tried, &conn, &doubtful);
		if (!s && READ_ONCE(meta->closing))
			return -ESHUTDOWN;
		if (!s)
			return missed ? -ENOENT : -ENOTCONN;
		index = s->index; /* @s may be freed afterwards */
		tried |= BIT(index);
		step = krc_meta_lookup_one(s, conn, q, &doubtful);
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
		if (time_after_eq(jiffies, q->deadline))
			return -ETIMEDOUT;
	}
}

int krc_meta_lookup(struct krc_meta *meta, const void *payer, const struct krp_key *key,
		    u32 timeout_ms, struct krp_value *ret_value, u32 *ret_reads,
		    enum krc_miss *ret_miss)
{
	u64 epoch = krc_cache_epoch(meta->cache);
	struct krp_value value;
	struct krc_meta_query q = { .key = key,
				    .payer = payer,
				    .deadline = jiffies + msecs_to_jiffies(timeout_ms),
				    .value = &value };
	enum krc_miss miss = KRC_MISS_PROVED;
	int err;

	if (krp_is_zero(key->gid, sizeof(key->gid)))
		return -EINVAL;
	err = krc_meta_enter(meta);
	if (err)
		return err;
	err = krc_meta_lookup_all(meta, &q, &miss);
	krc_meta_leave(meta);
	if (ret_reads && (!err || err == -ENOENT))
		*ret_reads = q.reads;
	if (ret_miss && err == -ENOENT)
		*ret_miss = miss;
	if (err)
		return err;
	krc_cache_put(meta->cache, key, &value, epoch); /* on failure it is just not cached */
	*ret_value = value;
	return 0;
}

/* The state of a session as people see it. Locks: meta.lock. */
static u8 krc_meta_state_of(const struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	switch (s->krp.state) {
	case KRP_SESSION_DOWN:
		return KRC_META_DOWN;
	case KRP_SESSION_CONNECTING:
		return s->routed ? KRC_META_CONNECTING : KRC_META_RESOLVING;
	case KRP_SESSION_READY:
		return KRC_META_READY;
	case KRP_SESSION_CLOSING:
		return KRC_META_CLOSING;
	default:
		return KRC_META_HELLO;
	}
}

/* Locks: meta.lock. */
static void krc_meta_info_fill(const struct krc_meta_session *s, struct krc_meta_info *info)
{
	const struct krp_session *krp = &s->krp;
	u64 now_ns = krc_meta_now_ns(s->meta);

	memcpy(info->name, s->conf.name, sizeof(info->name));
	info->addr = s->conf.addr;
	info->priority = s->conf.priority;
	info->state = krc_meta_state_of(s);
	info->error = krp->failure.error;
	strscpy(info->reason, krp->failure.reason, sizeof(info->reason));
	info->incarnation = krp->peer.incarnation;
	info->lease_ms = krp->peer.lease_ms;
	if (krp->state == KRP_SESSION_READY)
		info->published = krp->peer.live[KRP_AT_ACKED];
	info->attaches = krp->attaches;
	info->lookups = s->lookups;
	info->reads = s->reads;
	info->misses = s->misses;
	info->misses_overruled = s->misses_overruled;
	info->failures = krp->failure.nr;
	if (krp->state == KRP_SESSION_DOWN && !krp->ended && krp->failure.retry_ns > now_ns)
		info->next_try_ms = div_u64(krp->failure.retry_ns - now_ns, NSEC_PER_MSEC);
}

int krc_meta_info(struct krc_meta *meta, u32 i, struct krc_meta_info *ret_info)
{
	int err = -ENOENT;

	memset(ret_info, 0, sizeof(*ret_info));
	spin_lock_bh(&meta->lock);
	if (i < meta->order_nr) {
		krc_meta_info_fill(meta->order[i], ret_info);
		err = 0;
	}
	spin_unlock_bh(&meta->lock);
	return err;
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
