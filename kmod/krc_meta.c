// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the client of a port as its callers see it: begin and end, look-ups over the
 * servers in order, how the sessions are.
 * Locking: meta.lock for all that is shared; see krc_meta_priv.h.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "krc_meta_priv.h"

/* A call that waits begins. Return: 0, or -ESHUTDOWN. */
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

/* It is over. */
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
	wait_event(meta->wait, krc_meta_unused(meta)); /* every wait has been ended */
	if (meta->wq)
		destroy_workqueue(meta->wq);
	krc_meta_records_free(meta);
	kfree(meta);
}

/* Locks: meta.lock. A miss at a server that has just restarted proves little. */
static bool krc_meta_settling(struct krc_meta_session *s)
{
	if (s->settling && time_after_eq(jiffies, s->settle_until))
		s->settling = false;
	return s->settling;
}

/* Whether @a is to be asked before @b: settled ones, then priority, then failures. */
static bool krc_meta_better(struct krc_meta_session *a, struct krc_meta_session *b)
{
	if (krc_meta_settling(a) != krc_meta_settling(b))
		return krc_meta_settling(b);
	if (a->conf.priority != b->conf.priority)
		return a->conf.priority < b->conf.priority;
	return a->failures < b->failures;
}

/*
 * The best server that is ready and not in @tried; a count in conn.users is taken.
 * Return: NULL if there is none.
 */
static struct krc_meta_session *krc_meta_choose(struct krc_meta *meta, unsigned long tried,
						struct krc_meta_conn **ret_conn, bool *ret_settling)
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
		*ret_settling = krc_meta_settling(best);
		best->conn->users++;
		best->lookups++;
	}
	spin_unlock_bh(&meta->lock);
	return best;
}

/* Give the count back; count what it came to. */
static void krc_meta_chosen_done(struct krc_meta_session *s, struct krc_meta_conn *conn, int step,
				 u32 reads)
{
	struct krc_meta *meta = s->meta;

	spin_lock_bh(&meta->lock);
	s->reads += reads;
	if (step == KRP_STEP_MISS)
		s->misses++;
	else if (step < 0 && step != -EINTR)
		s->failures++;
	if (!--conn->users)
		wake_up_all(&meta->wait); /* under the lock: both may be gone right after */
	spin_unlock_bh(&meta->lock);
}

/* Ask one server. Return: as krc_meta_read_lookup(). */
static int krc_meta_lookup_one(struct krc_meta_session *s, struct krc_meta_conn *conn,
			       const struct krp_key *key, unsigned long deadline,
			       struct krp_value *ret_value, u32 *reads)
{
	u32 before = *reads;
	int step;

	step = krc_meta_read_lookup(conn, key, deadline, ret_value, reads);
	if (step == -EAGAIN) {
		unsigned long patience = krc_meta_patience(s->meta);
		long left = deadline - jiffies;

		step = krc_meta_ask(s, conn, key, clamp_t(long, left, 0, patience), ret_value);
	}
	if (step == KRP_STEP_HIT && !krp_value_valid(ret_value))
		step = -EPROTO;
	krc_meta_chosen_done(s, conn, step, *reads - before);
	return step;
}

static int krc_meta_lookup_all(struct krc_meta *meta, const struct krp_key *key,
			       unsigned long deadline, struct krp_value *ret_value, u32 *reads)
{
	struct krc_meta_session *s;
	struct krc_meta_conn *conn;
	bool settling, missed = false;
	unsigned long tried = 0;
	int step;

	for (;;) {
		s = krc_meta_choose(meta, tried, &conn, &settling);
		if (!s && READ_ONCE(meta->closing))
			return -ESHUTDOWN;
		if (!s)
			return missed ? -ENOENT : -ENOTCONN;
		tried |= BIT(s->index);
		step = krc_meta_lookup_one(s, conn, key, deadline, ret_value, reads);
		if (step == KRP_STEP_HIT)
			return 0;
		if (step == KRP_STEP_MISS && !settling)
			return -ENOENT;
		if (step == KRP_STEP_MISS)
			missed = true;
		if (step == -EINTR)
			return step;
		if (READ_ONCE(meta->closing))
			return -ESHUTDOWN;
		if (time_after_eq(jiffies, deadline))
			return -ETIMEDOUT;
	}
}

int krc_meta_lookup(struct krc_meta *meta, const struct krp_key *key, u32 timeout_ms,
		    struct krp_value *ret_value, u32 *ret_reads)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	u64 epoch = krc_cache_epoch(meta->cache);
	struct krp_value value;
	u32 reads = 0;
	int err;

	if (krp_is_zero(key->gid, sizeof(key->gid)))
		return -EINVAL;
	err = krc_meta_enter(meta);
	if (err)
		return err;
	err = krc_meta_lookup_all(meta, key, deadline, &value, &reads);
	krc_meta_leave(meta);
	if (ret_reads && (!err || err == -ENOENT))
		*ret_reads = reads;
	if (err)
		return err;
	krc_cache_put(meta->cache, key, &value, epoch); /* if not, it is just not remembered */
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
