// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the records of this port and what each server knows of them.
 *
 * A record is kept until it is withdrawn, and published to every server at each attach; a
 * withdrawn one is kept until all servers have answered or any lease of it has run out.
 * Requests to a server arrive in order, and each is remembered with the version of its
 * record, so that a late answer for an older version does not count for a newer one.
 * Locking: meta.lock held, except in the functions of meta/meta.h, which take it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "base/log.h"
#include "meta/meta_priv.h"

/*
 * How long to retry withdrawing an orphaned record: its lease never expires while another
 * session of its owner renews it.
 */
#define KRC_META_ADOPTED_S 3600

static struct krc_meta_record *krc_meta_record_named(struct krc_meta *meta,
						     const struct krp_key *key)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&meta->lock);
	list_for_each_entry(rec, &meta->records, link)
		if (!memcmp(&rec->key, key, sizeof(*key)))
			return rec;
	return NULL;
}

struct krc_meta_record *krc_meta_record_find(struct krc_meta *meta, u16 service)
{
	struct krp_key key = { .service = cpu_to_le16(service) };

	memcpy(key.gid, meta->gid.raw, sizeof(key.gid));
	return krc_meta_record_named(meta, &key);
}

/* The record with this version; NULL: it has changed or is gone. */
static struct krc_meta_record *krc_meta_record_version(struct krc_meta *meta, u64 version)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&meta->lock);
	list_for_each_entry(rec, &meta->records, link)
		if (rec->version == version)
			return rec;
	return NULL;
}

static void krc_meta_record_drop(struct krc_meta_record *rec)
{
	list_del(&rec->link);
	kfree(rec);
}

/* Free a withdrawn record if no WITHDRAW is due or unanswered. */
static void krc_meta_record_settled(struct krc_meta *meta, struct krc_meta_record *rec)
{
	u32 i;

	lockdep_assert_held(&meta->lock);
	if (!rec->gone)
		return;
	for (i = 0; i < KRC_META_SERVERS_MAX; i++)
		if (rec->at[i] == KRC_META_AT_DIRTY || rec->at[i] == KRC_META_AT_SENT)
			return;
	krc_meta_record_drop(rec);
}

/*
 * The next record to send to a server, or NULL. It moves to the end of the list, so that a
 * record that changes constantly does not starve others; only the node's own stays in place.
 */
struct krc_meta_record *krc_meta_record_dirty(struct krc_meta_session *s)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records, link) {
		if (rec->at[s->index] != KRC_META_AT_DIRTY)
			continue;
		if (le16_to_cpu(rec->key.service) != KRP_SERVICE_NODE)
			list_move_tail(&rec->link, &s->meta->records);
		return rec;
	}
	s->dirty = false;
	return NULL;
}

/* A server has answered PUBLISH or WITHDRAW. */
void krc_meta_record_answered(struct krc_meta_session *s, const struct krc_meta_send *send, int err)
{
	struct krc_meta *meta = s->meta;
	struct krc_meta_record *rec = krc_meta_record_version(meta, send->version);
	bool withdraw = send->type == KRP_MSG_WITHDRAW;

	/* changed since: a newer request is in flight or due */
	if (!rec || rec->at[s->index] != KRC_META_AT_SENT || withdraw != (rec->gone || s->leaving))
		return;
	/* unknown there, or of another owner: the server has none of ours either */
	if (withdraw && (err == -ENOENT || err == -EEXIST))
		err = 0;
	/* the server takes none from another address; not renewed, the record's lease ends it */
	if (withdraw && rec->adopted && err == -EPERM)
		err = 0;
	rec->at[s->index] = err ? KRC_META_AT_REFUSED : KRC_META_AT_ACKED;
	if (err && rec->err[s->index] != err) { /* each renewal retries: log a refusal once */
		krc_port_warn_limited(meta->ibdev, meta->port,
				      "%s refuses record %pI6c service %u (%d)\n", s->conf.name,
				      rec->key.gid, send->service, err);
		s->failures++;
	}
	rec->err[s->index] = err;
	krc_meta_record_settled(meta, rec);
	wake_up_all(&meta->wait);
}

/*
 * A server reports that a record is gone. If it is ours and not withdrawn, its lease ran out
 * or another port of this node withdrew it late: publish it again.
 */
void krc_meta_record_lost(struct krc_meta_session *s, const struct krp_key *key, u64 generation)
{
	struct krc_meta_record *rec = krc_meta_record_named(s->meta, key);

	if (!rec || rec->gone || s->leaving || rec->at[s->index] != KRC_META_AT_ACKED ||
	    le64_to_cpu(rec->value.generation) != generation)
		return;
	rec->at[s->index] = KRC_META_AT_DIRTY;
	s->dirty = true;
	krc_meta_pump(s);
}

/* Set all records whose state at a server is in @from (a bit mask) to @to. */
void krc_meta_records_mark(struct krc_meta_session *s, unsigned int from, enum krc_meta_at to)
{
	struct krc_meta_record *rec, *next;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry_safe(rec, next, &s->meta->records, link) {
		if (!(from & BIT(rec->at[s->index])))
			continue;
		rec->at[s->index] = to;
		if (to == KRC_META_AT_DIRTY)
			s->dirty = true;
	}
}

/* Number of records, not withdrawn, in state @at at a server. */
u32 krc_meta_records_count(const struct krc_meta_session *s, enum krc_meta_at at)
{
	const struct krc_meta_record *rec;
	u32 nr = 0;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records, link)
		nr += !rec->gone && rec->at[s->index] == at;
	return nr;
}

/* Free withdrawn records whose leases have run out. */
void krc_meta_records_expire(struct krc_meta *meta)
{
	struct krc_meta_record *rec, *next;

	lockdep_assert_held(&meta->lock);
	list_for_each_entry_safe(rec, next, &meta->records, link)
		if (rec->gone && time_after(jiffies, rec->forget_at))
			krc_meta_record_drop(rec);
}

void krc_meta_records_free(struct krc_meta *meta)
{
	krc_meta_drop_orphans(&meta->records);
}

/* A record has changed: send it to every server. */
static void krc_meta_record_changed(struct krc_meta *meta, struct krc_meta_record *rec)
{
	struct krc_meta_session *s;
	u32 i;

	lockdep_assert_held(&meta->lock);
	rec->version = ++meta->version;
	krc_meta_for_each(meta, s, i) {
		/* a server that never got the record needs no WITHDRAW */
		if (rec->gone && !rec->inherited &&
		    (rec->at[i] == KRC_META_AT_NEVER ||
		     (rec->at[i] == KRC_META_AT_DIRTY && !s->incarnation))) {
			rec->at[i] = KRC_META_AT_NEVER;
			continue;
		}
		rec->at[i] = KRC_META_AT_DIRTY;
		rec->err[i] = 0;
		s->dirty = true;
		krc_meta_pump(s);
	}
}

/* A server was added: it is to get all records, and the WITHDRAWs of adopted ones. */
void krc_meta_records_joined(struct krc_meta_session *s)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records, link) {
		rec->at[s->index] = rec->gone && !rec->adopted ? KRC_META_AT_NEVER
							       : KRC_META_AT_DIRTY;
		rec->err[s->index] = 0;
	}
	s->dirty = true;
}

/* Whether a server has not confirmed the withdrawal of a record. */
static bool krc_meta_record_open(const struct krc_meta_record *rec,
				 const struct krc_meta_session *s)
{
	return rec->at[s->index] != KRC_META_AT_NEVER && rec->at[s->index] != KRC_META_AT_ACKED;
}

/* Another client is to withdraw it, maybe from another address: store our token for it. */
static void krc_meta_record_orphan(struct krc_meta_record *rec, const struct krc_meta_session *s)
{
	struct krc_meta_token *token = &rec->token[s->index];

	rec->orphaned = true;
	if (rec->adopted)
		return; /* keep the token of the client that published it */
	token->incarnation = s->incarnation;
	memcpy(token->bytes, s->token, sizeof(token->bytes));
}

/* Token that permits withdrawing a record from another address; zeroes if there is none. */
void krc_meta_record_token(const struct krc_meta_record *rec, u64 incarnation, u8 *ret_token)
{
	u32 i;

	memset(ret_token, 0, KRP_TOKEN_BYTES);
	for (i = 0; i < KRC_META_SERVERS_MAX; i++)
		if (incarnation && rec->token[i].incarnation == incarnation)
			memcpy(ret_token, rec->token[i].bytes, KRP_TOKEN_BYTES);
}

/* A server was removed. If the client is closing, krc_meta_take_orphans() follows. */
void krc_meta_records_left(struct krc_meta_session *s)
{
	struct krc_meta_record *rec, *next;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry_safe(rec, next, &s->meta->records, link) {
		if (s->meta->closing && krc_meta_record_open(rec, s))
			krc_meta_record_orphan(rec, s);
		rec->at[s->index] = KRC_META_AT_NEVER;
		rec->err[s->index] = 0;
		if (!s->meta->closing)
			krc_meta_record_settled(s->meta, rec);
	}
}

void krc_meta_take_orphans(struct krc_meta *meta, struct list_head *left)
{
	struct krc_meta_record *rec, *next;

	spin_lock_bh(&meta->lock);
	WARN_ON_ONCE(!meta->closing);
	list_for_each_entry_safe(rec, next, &meta->records, link)
		if (rec->orphaned)
			list_move_tail(&rec->link, left);
	spin_unlock_bh(&meta->lock);
}

/* Start withdrawing an orphaned record at every server. */
static void krc_meta_orphan_adopt(struct krc_meta *meta, struct krc_meta_record *rec)
{
	struct krc_meta_session *s;
	u32 i;

	lockdep_assert_held(&meta->lock);
	rec->adopted = true;
	rec->inherited = true;
	rec->gone = true;
	rec->orphaned = false;
	rec->version = ++meta->version;
	rec->forget_at = jiffies + KRC_META_ADOPTED_S * HZ;
	list_add_tail(&rec->link, &meta->records);
	krc_meta_for_each(meta, s, i) {
		rec->at[i] = KRC_META_AT_DIRTY;
		rec->err[i] = 0;
		s->dirty = true;
		krc_meta_pump(s);
	}
}

void krc_meta_adopt_orphans(struct krc_meta *meta, struct list_head *left, bool own)
{
	struct krc_meta_record *rec, *next, *old;

	spin_lock_bh(&meta->lock);
	list_for_each_entry_safe(rec, next, left, link) {
		if (own && memcmp(rec->key.gid, meta->gid.raw, sizeof(rec->key.gid)))
			continue;
		list_del(&rec->link);
		old = krc_meta_record_named(meta, &rec->key);
		if (old && !old->gone) {
			kfree(rec); /* published again since */
			continue;
		}
		if (old)
			krc_meta_record_drop(old);
		krc_meta_orphan_adopt(meta, rec);
	}
	spin_unlock_bh(&meta->lock);
}

void krc_meta_release_orphans(struct krc_meta *meta, const union ib_gid *gid,
			      struct list_head *left)
{
	struct krc_meta_record *rec, *next;

	spin_lock_bh(&meta->lock);
	list_for_each_entry_safe(rec, next, &meta->records, link) {
		if (!rec->adopted || memcmp(rec->key.gid, gid->raw, sizeof(rec->key.gid)))
			continue;
		/* answers still to come match no version any more */
		memset(rec->at, KRC_META_AT_NEVER, sizeof(rec->at));
		list_move_tail(&rec->link, left);
	}
	spin_unlock_bh(&meta->lock);
}

void krc_meta_drop_orphans(struct list_head *left)
{
	struct krc_meta_record *rec, *next;

	list_for_each_entry_safe(rec, next, left, link)
		krc_meta_record_drop(rec);
}

/* Whether a server has answered every PUBLISH and WITHDRAW. */
bool krc_meta_records_quiet(const struct krc_meta_session *s)
{
	const struct krc_meta_record *rec;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records, link)
		if (rec->at[s->index] == KRC_META_AT_DIRTY || rec->at[s->index] == KRC_META_AT_SENT)
			return false;
	return true;
}

int krc_meta_publish(struct krc_meta *meta, u16 service, const struct krp_value *value)
{
	struct krc_meta_record *fresh, *rec;
	struct krp_value own = *value;
	int err = 0;

	own.generation = cpu_to_le64(meta->conf.generation);
	if (!krp_value_valid(&own))
		return -EINVAL;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;
	memcpy(fresh->key.gid, meta->gid.raw, sizeof(fresh->key.gid));
	fresh->key.service = cpu_to_le16(service);
	spin_lock_bh(&meta->lock);
	if (meta->closing) {
		err = -ESHUTDOWN;
		goto out;
	}
	rec = krc_meta_record_find(meta, service);
	if (!rec) {
		rec = fresh;
		fresh = NULL;
		list_add_tail(&rec->link, &meta->records);
	}
	rec->value = own;
	rec->gone = false;
	rec->adopted = false;
	krc_meta_record_changed(meta, rec);
out:
	spin_unlock_bh(&meta->lock);
	kfree(fresh);
	return err;
}

/* How long a server may keep a withdrawn record: twice the longest lease, and a second. */
static unsigned long krc_meta_lease_jiffies(const struct krc_meta *meta)
{
	const struct krc_meta_session *s;
	u32 i, lease_ms = 0;

	lockdep_assert_held(&meta->lock);
	krc_meta_for_each(meta, s, i)
		lease_ms = max(lease_ms, s->lease_ms);
	return 2 * msecs_to_jiffies(lease_ms) + HZ;
}

void krc_meta_withdraw(struct krc_meta *meta, u16 service)
{
	struct krc_meta_record *rec;

	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (rec && !rec->gone && !meta->closing) {
		rec->gone = true;
		rec->forget_at = jiffies + krc_meta_lease_jiffies(meta);
		krc_meta_record_changed(meta, rec);
		krc_meta_record_settled(meta, rec);
	}
	spin_unlock_bh(&meta->lock);
	wake_up_all(&meta->wait);
}

/* The first refusal; @all: only if every server has refused. Return: 0 if there is none. */
static int krc_meta_refusal(const struct krc_meta *meta, const struct krc_meta_record *rec,
			    bool all)
{
	const struct krc_meta_session *s;
	int err = 0;
	u32 i;

	lockdep_assert_held(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (all && !rec->err[i])
			return 0;
		if (!err)
			err = rec->err[i];
	}
	return err;
}

/* Outcome of krc_meta_published(); -EAGAIN: still open. @last: the timeout has expired. */
static int krc_meta_published_state(struct krc_meta *meta, u16 service, bool last)
{
	const struct krc_meta_session *s;
	struct krc_meta_record *rec;
	int err;
	u32 i;

	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (meta->closing || !rec || rec->gone) {
		err = meta->closing ? -ESHUTDOWN : -ENOENT;
		goto out;
	}
	err = krc_meta_refusal(meta, rec, !last) ?: (last ? -ETIMEDOUT : -EAGAIN);
	krc_meta_for_each(meta, s, i)
		if (rec->at[i] == KRC_META_AT_ACKED && !s->leaving) /* not a WITHDRAW */
			err = 0;
out:
	spin_unlock_bh(&meta->lock);
	return err;
}

int krc_meta_published(struct krc_meta *meta, u16 service, u32 timeout_ms)
{
	long left;
	int err;

	err = krc_meta_enter(meta);
	if (err)
		return err;
	left = wait_event_interruptible_timeout(
		meta->wait, (err = krc_meta_published_state(meta, service, false)) != -EAGAIN,
		msecs_to_jiffies(timeout_ms));
	if (left < 0)
		err = left;
	else if (err == -EAGAIN)
		err = krc_meta_published_state(meta, service, true);
	krc_meta_leave(meta);
	return err;
}
