// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the records of this port and what each server knows of them.
 *
 * A record is remembered until it is withdrawn, and told to every server at each
 * attach; a withdrawn one until all servers know, or until no lease can hold it any
 * more. Requests to a server arrive in order and each carries the version it speaks of,
 * so that a late answer to an older version says nothing of the newer.
 * Locking: meta.lock held, but in the functions of meta/meta.h, which take it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/slab.h>

#include "base/log.h"
#include "meta/meta_priv.h"

/* How long it is tried to withdraw what another client has left; no lease of theirs is over. */
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

/* The record in this version, or NULL: it is not there any more, or has changed. */
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

/* Free a withdrawn record if no server has to be told any more. */
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
 * The next record that a server is to be told of, or NULL. It is the last one afterwards, so
 * that one that changes all the time keeps no other from its turn; but the node's own is first.
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

	/* changed since: another request is under way or due */
	if (!rec || rec->at[s->index] != KRC_META_AT_SENT || withdraw != (rec->gone || s->leaving))
		return;
	/* nothing of ours is left there either if it is unknown or another's */
	if (withdraw && (err == -ENOENT || err == -EEXIST))
		err = 0;
	/* no word of another address counts there: nobody renews it, its lease ends it */
	if (withdraw && rec->adopted && err == -EPERM)
		err = 0;
	rec->at[s->index] = err ? KRC_META_AT_REFUSED : KRC_META_AT_ACKED;
	if (err && rec->err[s->index] != err) { /* it is asked again and again */
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
 * A server says that a record is gone. If it is ours and not withdrawn, somebody else has: a
 * lease that ran out, or a late word of another port of this node. It is published again.
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

/* Set what a server knows of all records for which it is one of @from (a bit mask). */
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

/* How many records that are not withdrawn stand so with a server. */
u32 krc_meta_records_count(const struct krc_meta_session *s, enum krc_meta_at at)
{
	const struct krc_meta_record *rec;
	u32 nr = 0;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records, link)
		nr += !rec->gone && rec->at[s->index] == at;
	return nr;
}

/* Forget withdrawn records that no lease can hold any more. */
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

/* A record has changed: every server is to be told. */
static void krc_meta_record_changed(struct krc_meta *meta, struct krc_meta_record *rec)
{
	struct krc_meta_session *s;
	u32 i;

	lockdep_assert_held(&meta->lock);
	rec->version = ++meta->version;
	krc_meta_for_each(meta, s, i) {
		/* one that never heard of the record need not hear that it is gone */
		if (rec->gone && (rec->at[i] == KRC_META_AT_NEVER ||
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

/* A server was added: it is to be told of all records. */
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

/* Whether a server may still have a record that it was told to forget. */
static bool krc_meta_record_open(const struct krc_meta_record *rec,
				 const struct krc_meta_session *s)
{
	return rec->at[s->index] != KRC_META_AT_NEVER && rec->at[s->index] != KRC_META_AT_ACKED;
}

/* Somebody else is to withdraw it, maybe from another address: with our token. */
static void krc_meta_record_orphan(struct krc_meta_record *rec, const struct krc_meta_session *s)
{
	struct krc_meta_token *token = &rec->token[s->index];

	rec->orphaned = true;
	if (rec->adopted)
		return; /* it has that of who was at its address */
	token->incarnation = s->incarnation;
	memcpy(token->bytes, s->token, sizeof(token->bytes));
}

/* What shows a server that a record was published from where its GID was; zero if nothing. */
void krc_meta_record_token(const struct krc_meta_record *rec, u64 incarnation, u8 *ret_token)
{
	u32 i;

	memset(ret_token, 0, KRP_TOKEN_BYTES);
	for (i = 0; i < KRC_META_SERVERS_MAX; i++)
		if (incarnation && rec->token[i].incarnation == incarnation)
			memcpy(ret_token, rec->token[i].bytes, KRP_TOKEN_BYTES);
}

/* A server was taken off. At the end of the client krc_meta_take_orphans() is next. */
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

/* Have a record withdrawn that a client before this one could not withdraw. */
static void krc_meta_orphan_adopt(struct krc_meta *meta, struct krc_meta_record *rec)
{
	struct krc_meta_session *s;
	u32 i;

	lockdep_assert_held(&meta->lock);
	rec->adopted = true;
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
		/* answers that are under way are of a version nobody has any more */
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

/* Whether a server has answered all there was to be said. */
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

/* How long a lease may hold a record at some server after it is withdrawn. */
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

/* The refusal of a server; @all: only if every one has refused. Return: 0 if there is none. */
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

/* Return: -EAGAIN as long as nothing is decided. @last: the time is over. */
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
		if (rec->at[i] == KRC_META_AT_ACKED && !s->leaving) /* or it is the withdrawal */
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
