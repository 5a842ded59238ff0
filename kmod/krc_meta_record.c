// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the records of this port and what each server knows of them.
 *
 * A record is remembered until it is withdrawn, and told to every server at each
 * attach; a withdrawn one until all servers know, or until no lease can hold it any
 * more. Requests to a server arrive in order and each carries the version it speaks of,
 * so that a late answer to an older version says nothing of the newer.
 * Locking: meta.lock held, but in the functions of krc_meta.h, which take it.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "krc_meta_priv.h"

struct krc_meta_record *krc_meta_record_find(struct krc_meta *meta, u16 service)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&meta->lock);
	list_for_each_entry(rec, &meta->records,
			    link) if (rec->key.service == cpu_to_le16(service)) return rec;
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
	for (i = 0; i < meta->sessions_nr; i++)
		if (rec->at[i] == KRC_META_AT_DIRTY || rec->at[i] == KRC_META_AT_SENT)
			return;
	krc_meta_record_drop(rec);
}

/* The next record that a server is to be told of, or NULL. */
struct krc_meta_record *krc_meta_record_dirty(struct krc_meta_session *s)
{
	struct krc_meta_record *rec;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry(rec, &s->meta->records,
			    link) if (rec->at[s->index] == KRC_META_AT_DIRTY) return rec;
	s->dirty = false;
	return NULL;
}

/* A server has answered PUBLISH or WITHDRAW. */
void krc_meta_record_answered(struct krc_meta_session *s, const struct krc_meta_send *send, int err)
{
	struct krc_meta *meta = s->meta;
	struct krc_meta_record *rec = krc_meta_record_find(meta, send->service);
	bool withdraw = send->type == KRP_MSG_WITHDRAW;

	if (!rec || rec->version != send->version)
		return; /* changed since: another request is under way or due */
	/* nothing of ours is left there either if it is unknown or another's */
	if (withdraw && (err == -ENOENT || err == -EEXIST))
		err = 0;
	rec->at[s->index] = err ? KRC_META_AT_REFUSED : KRC_META_AT_ACKED;
	if (err && rec->err[s->index] != err)
		pr_warn_ratelimited("%s refuses record %pI6c service %u (%d)\n", s->conf.name,
				    rec->key.gid, send->service, err);
	rec->err[s->index] = err;
	if (err)
		s->failures++;
	krc_meta_record_settled(meta, rec);
	wake_up_all(&meta->wait);
}

/* Set what a server knows of all records for which it is one of @from (a bit mask). */
void krc_meta_records_mark(struct krc_meta_session *s, unsigned int from, enum krc_meta_at to)
{
	struct krc_meta_record *rec, *next;

	lockdep_assert_held(&s->meta->lock);
	list_for_each_entry_safe(rec, next, &s->meta->records, link)
	{
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
	list_for_each_entry_safe(rec, next, &meta->records,
				 link) if (rec->gone && time_after(jiffies, rec->forget_at))
		krc_meta_record_drop(rec);
}

void krc_meta_records_free(struct krc_meta *meta)
{
	struct krc_meta_record *rec, *next;

	list_for_each_entry_safe(rec, next, &meta->records, link) krc_meta_record_drop(rec);
}

/* A record has changed: every server is to be told. */
static void krc_meta_record_changed(struct krc_meta *meta, struct krc_meta_record *rec)
{
	u32 i;

	lockdep_assert_held(&meta->lock);
	rec->version = ++meta->version;
	for (i = 0; i < meta->sessions_nr; i++) {
		struct krc_meta_session *s = &meta->sessions[i];

		/* one that never heard of the record need not hear that it is gone */
		if (rec->gone && rec->at[i] == KRC_META_AT_NEVER)
			continue;
		if (rec->gone && rec->at[i] == KRC_META_AT_DIRTY && !s->incarnation) {
			rec->at[i] = KRC_META_AT_NEVER;
			continue;
		}
		rec->at[i] = KRC_META_AT_DIRTY;
		rec->err[i] = 0;
		s->dirty = true;
		krc_meta_pump(s);
	}
}

int krc_meta_publish(struct krc_meta *meta, u16 service, const struct krp_value *value)
{
	struct krc_meta_record *fresh, *rec;
	struct krp_value own = *value;

	own.generation = cpu_to_le64(meta->conf.generation);
	if (!krp_value_valid(&own))
		return -EINVAL;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;
	memcpy(fresh->key.gid, meta->gid.raw, sizeof(fresh->key.gid));
	fresh->key.service = cpu_to_le16(service);
	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (!rec) {
		rec = fresh;
		fresh = NULL;
		list_add_tail(&rec->link, &meta->records);
	}
	rec->value = own;
	rec->gone = false;
	krc_meta_record_changed(meta, rec);
	spin_unlock_bh(&meta->lock);
	kfree(fresh);
	return 0;
}

/* Locks: meta.lock. */
static void krc_meta_record_withdraw(struct krc_meta *meta, struct krc_meta_record *rec)
{
	u32 i, lease_ms = 0;

	for (i = 0; i < meta->sessions_nr; i++)
		lease_ms = max(lease_ms, meta->sessions[i].lease_ms);
	rec->gone = true;
	rec->forget_at = jiffies + 2 * msecs_to_jiffies(lease_ms) + HZ;
	krc_meta_record_changed(meta, rec);
	krc_meta_record_settled(meta, rec);
}

void krc_meta_withdraw(struct krc_meta *meta, u16 service)
{
	struct krc_meta_record *rec;

	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (rec && !rec->gone)
		krc_meta_record_withdraw(meta, rec);
	spin_unlock_bh(&meta->lock);
	wake_up_all(&meta->wait);
}

/* Locks: meta.lock. Whether no attached server has to be told anything any more. */
static bool krc_meta_records_quiet(const struct krc_meta *meta)
{
	const struct krc_meta_record *rec;
	u32 i;

	list_for_each_entry(rec, &meta->records,
			    link) for (i = 0; i < meta->sessions_nr;
				       i++) if (meta->sessions[i].state == KRC_META_READY &&
						!meta->sessions[i].failed &&
						(rec->at[i] == KRC_META_AT_DIRTY ||
						 rec->at[i] == KRC_META_AT_SENT)) return false;
	return true;
}

static bool krc_meta_withdrawn(struct krc_meta *meta)
{
	bool quiet;

	spin_lock_bh(&meta->lock);
	quiet = meta->dead || krc_meta_records_quiet(meta);
	spin_unlock_bh(&meta->lock);
	return quiet;
}

/* The end: withdraw all and wait for the servers, not long. Context: may sleep. */
void krc_meta_records_withdraw(struct krc_meta *meta)
{
	struct krc_meta_record *rec, *next;

	spin_lock_bh(&meta->lock);
	list_for_each_entry_safe(rec, next, &meta->records, link) if (!rec->gone)
		krc_meta_record_withdraw(meta, rec);
	spin_unlock_bh(&meta->lock);
	wait_event_timeout(meta->wait, krc_meta_withdrawn(meta),
			   msecs_to_jiffies(KRC_META_WITHDRAW_MS));
}

/* The refusal of a server; @all: only if every one has refused. Return: 0 if there is none. */
static int krc_meta_refusal(const struct krc_meta *meta, const struct krc_meta_record *rec,
			    bool all)
{
	int err = 0;
	u32 i;

	for (i = 0; i < meta->sessions_nr; i++) {
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
	struct krc_meta_record *rec;
	int err;
	u32 i;

	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (!rec || rec->gone || meta->closing) {
		err = -ENOENT;
		goto out;
	}
	err = krc_meta_refusal(meta, rec, !last) ?: (last ? -ETIMEDOUT : -EAGAIN);
	for (i = 0; i < meta->sessions_nr; i++)
		if (rec->at[i] == KRC_META_AT_ACKED)
			err = 0;
out:
	spin_unlock_bh(&meta->lock);
	return err;
}

int krc_meta_published(struct krc_meta *meta, u16 service, u32 timeout_ms)
{
	int err = -EAGAIN;
	long left;

	if (krc_meta_enter(meta))
		return -ENOENT;
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
