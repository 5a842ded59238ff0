// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the memory of this port's records, what callers say of them, and the hand-over of
 * orphans between the ports of a node. What servers know of records, and when they are told,
 * is proto/krp_records.h.
 * Locking: meta.lock held where meta/meta_priv.h says so; the functions of meta/record.h take it.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "meta/meta_priv.h"

struct krp_record *krc_meta_record_find(struct krc_meta *meta, u16 service)
{
	struct krp_key key = { .service = cpu_to_le16(service) };

	lockdep_assert_held(&meta->lock);
	memcpy(key.gid, meta->gid.raw, sizeof(key.gid));
	return krp_record_find(&meta->pub, &key);
}

void krc_meta_records_trash(struct krc_meta *meta)
{
	struct krp_record *rec;

	lockdep_assert_held(&meta->lock);
	while ((rec = krp_records_trash(&meta->pub)))
		kfree(rec);
}

void krc_meta_records_free(struct krc_meta *meta)
{
	krc_meta_drop_orphans(&meta->pub.records);
	krc_meta_drop_orphans(&meta->pub.trash);
}

void krc_meta_take_orphans(struct krc_meta *meta, struct krp_list *left)
{
	spin_lock_bh(&meta->lock);
	WARN_ON_ONCE(!meta->closing);
	krp_records_take_orphans(&meta->pub, left);
	spin_unlock_bh(&meta->lock);
}

void krc_meta_adopt_orphans(struct krc_meta *meta, struct krp_list *left, bool own)
{
	struct krp_list *l, *next;

	spin_lock_bh(&meta->lock);
	for (l = left->next; l != left; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);

		next = l->next;
		if (own && memcmp(rec->key.gid, meta->gid.raw, sizeof(rec->key.gid)))
			continue;
		krp_list_del(l);
		krp_record_adopt(&meta->pub, rec, krc_meta_now_ns(meta));
	}
	krc_meta_sessions_run(meta);
	spin_unlock_bh(&meta->lock);
}

void krc_meta_release_orphans(struct krc_meta *meta, const union ib_gid *gid, struct krp_list *left)
{
	spin_lock_bh(&meta->lock);
	krp_records_release(&meta->pub, gid->raw, left);
	spin_unlock_bh(&meta->lock);
}

void krc_meta_drop_orphans(struct krp_list *left)
{
	while (!krp_list_empty(left)) {
		struct krp_record *rec = krp_entry(left->next, struct krp_record, link);

		krp_list_del(&rec->link);
		kfree(rec);
	}
}

int krc_meta_publish(struct krc_meta *meta, u16 service, const struct krp_value *value)
{
	struct krp_record *fresh, *rec;
	struct krp_value own = *value;
	int err = 0;

	own.generation = cpu_to_le64(meta->conf.generation);
	if (!krp_value_valid(&own))
		return -EINVAL;
	fresh = kzalloc(krp_record_bytes(KRC_META_SERVERS_MAX), GFP_KERNEL_ACCOUNT);
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
		krp_record_link(&meta->pub, rec);
	}
	krp_record_publish(&meta->pub, rec, &own);
	krc_meta_sessions_run(meta);
out:
	spin_unlock_bh(&meta->lock);
	kfree(fresh);
	return err;
}

void krc_meta_withdraw(struct krc_meta *meta, u16 service)
{
	struct krp_record *rec;

	spin_lock_bh(&meta->lock);
	rec = krc_meta_record_find(meta, service);
	if (rec && !rec->gone && !meta->closing) {
		krp_record_withdraw(&meta->pub, rec, krc_meta_now_ns(meta));
		krc_meta_sessions_run(meta);
	}
	spin_unlock_bh(&meta->lock);
	wake_up_all(&meta->wait);
}

/* The first refusal; @all: only if every server has refused. Return: 0 if there is none. */
static int krc_meta_refusal(const struct krc_meta *meta, const struct krp_record *rec, bool all)
{
	const struct krc_meta_session *s;
	int err = 0;
	u32 i;

	lockdep_assert_held(&meta->lock);
	krc_meta_for_each(meta, s, i) {
		if (all && !rec->at[i].err)
			return 0;
		if (!err)
			err = rec->at[i].err;
	}
	return err;
}

/* Outcome of krc_meta_published(); -EAGAIN: still open. @last: the timeout has expired. */
static int krc_meta_published_state(struct krc_meta *meta, u16 service, bool last)
{
	const struct krc_meta_session *s;
	const struct krp_record *rec;
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
		if (rec->at[i].state == KRP_AT_ACKED && !s->krp.peer.leaving) /* not a WITHDRAW */
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
