// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: messages of an attached session: credits, pacing, answers, notifications.
 *
 * Each credit of the server is a send slot with a buffer. A slot is free again when the
 * answer has arrived and the SEND has completed. The number of a request includes its slot,
 * so that no search is needed for an answer.
 * Locking: meta.lock held, except in krc_meta_message() and krc_meta_ask(), which take it.
 */
#include <linux/jiffies.h>

#include "meta/changes.h"
#include "meta/meta_priv.h"

#define KRC_META_PACE (HZ / 10 ?: 1) /* interval of rate limiting, jiffies */

static struct krc_meta_send *krc_meta_free_slot(struct krc_meta_session *s)
{
	unsigned int i;

	for (i = 0; i < KRC_META_SENDS && s->busy_nr < s->credits; i++)
		if (!s->conn->send[i].busy && !s->conn->send[i].posted)
			return &s->conn->send[i];
	return NULL;
}

/* Stay 10 % below the rate above which the server closes the session. */
static bool krc_meta_paced(struct krc_meta_session *s)
{
	u64 most = max_t(u64, (u64)s->rate_max * 9 / 100, 1);
	bool before = s->paced;

	if (time_after_eq(jiffies, s->pace_from + KRC_META_PACE)) {
		s->pace_from = jiffies;
		s->pace_nr = 0;
	}
	s->paced = s->rate_max && s->pace_nr >= most;
	if (s->paced && !before)
		krc_meta_session_kick(s); /* sets the timer for the next interval */
	return s->paced;
}

/* Build PUBLISH of a record's present value, or WITHDRAW. */
static void krc_meta_fill_record(struct krc_meta_session *s, struct krc_meta_send *send,
				 struct krc_meta_record *rec)
{
	void *buf = krc_meta_conn_message(s->conn, send);
	struct krp_publish *publish = buf;
	struct krp_withdraw *withdraw = buf;

	lockdep_assert_held(&s->meta->lock);
	send->type = rec->gone || s->leaving ? KRP_MSG_WITHDRAW : KRP_MSG_PUBLISH;
	send->service = le16_to_cpu(rec->key.service);
	send->version = rec->version;
	s->changes++;
	rec->at[s->index] = KRC_META_AT_SENT;
	krp_msg_init(buf, send->type, 0, KRP_ST_OK, 0);
	if (send->type == KRP_MSG_WITHDRAW) {
		withdraw->key = rec->key;
		krc_meta_record_token(rec, s->conn->incarnation, withdraw->token);
	} else {
		publish->key = rec->key;
		publish->value = rec->value;
	}
}

/* Number a slot's message and send it. */
static void krc_meta_send_slot(struct krc_meta_session *s, struct krc_meta_send *send)
{
	struct krp_msg_hdr *hdr = krc_meta_conn_message(s->conn, send);
	int err;

	do {
		send->xid = ++s->xid * KRC_META_SENDS + (u32)(send - s->conn->send);
	} while (!send->xid);
	hdr->xid = cpu_to_le32(send->xid);
	err = krc_meta_conn_send(s->conn, send);
	if (err) {
		krc_meta_session_fail_locked(s, err, "sending %s failed", krp_msg_name(hdr->type));
		return;
	}
	send->busy = true;
	send->sent_at = jiffies;
	s->pace_nr++;
	if (!s->busy_nr++)
		krc_meta_session_kick(s); /* sets the timer for the answer */
}

/* Ask the server for the key of the look-up that has waited the longest. */
static void krc_meta_fill_ask(struct krc_meta_session *s, struct krc_meta_send *send)
{
	void *buf = krc_meta_conn_message(s->conn, send);

	lockdep_assert_held(&s->meta->lock);
	send->ask = list_first_entry(&s->asks, struct krc_meta_ask, link);
	list_del_init(&send->ask->link);
	send->type = KRP_MSG_LOOKUP;
	krp_msg_init(buf, send->type, 0, KRP_ST_OK, 0);
	((struct krp_lookup_msg *)buf)->key = send->ask->key;
}

/* Build the next message that is due. Return: false if there is none. */
static bool krc_meta_fill_slot(struct krc_meta_session *s, struct krc_meta_send *send)
{
	void *buf = krc_meta_conn_message(s->conn, send);
	struct krc_meta_record *rec = NULL;

	send->ask = NULL;
	if (s->renew_due) {
		s->renew_due = false;
		send->mark = s->changes;
		send->type = KRP_MSG_RENEW;
		krp_msg_init(buf, send->type, 0, KRP_ST_OK, 0);
		return true;
	}
	if (s->subscribe_due) {
		s->subscribe_due = false;
		send->type = KRP_MSG_SUBSCRIBE;
		krp_msg_init(buf, send->type, 0, KRP_ST_OK, 0);
		((struct krp_subscribe *)buf)->flags = KRP_SUBSCRIBE_ALL;
		return true;
	}
	/* in turn, since programs may ask without end, and records are what peers wait for */
	if (list_empty(&s->asks) || (s->asked_last && s->dirty))
		rec = krc_meta_record_dirty(s);
	s->asked_last = !rec && !list_empty(&s->asks);
	if (s->asked_last)
		krc_meta_fill_ask(s, send);
	else if (rec)
		krc_meta_fill_record(s, send, rec);
	return rec || s->asked_last;
}

static bool krc_meta_pump_idle(const struct krc_meta_session *s)
{
	return !s->renew_due && !s->subscribe_due && !s->dirty && list_empty(&s->asks);
}

/* Send what is due, as far as credits and rate limit allow. */
void krc_meta_pump(struct krc_meta_session *s)
{
	struct krc_meta_send *send;

	lockdep_assert_held(&s->meta->lock);
	while (s->state == KRC_META_READY && !s->failed && !krc_meta_pump_idle(s)) {
		send = krc_meta_free_slot(s);
		if (!send || krc_meta_paced(s) || !krc_meta_fill_slot(s, send))
			return;
		krc_meta_send_slot(s, send);
	}
}

static void krc_meta_ask_finish(struct krc_meta_ask *ask, int err)
{
	ask->err = err;
	complete(&ask->done);
}

/*
 * The server has answered RENEW. If it has fewer records than it has acknowledged, our lease
 * ran out there meanwhile. The count is comparable only if no PUBLISH or WITHDRAW was in
 * flight with RENEW.
 */
static void krc_meta_renewed(struct krc_meta_session *s, const struct krc_meta_send *send, int err,
			     u32 records)
{
	bool late = time_after(jiffies, s->acked_at + msecs_to_jiffies(s->lease_ms));
	bool fewer;

	if (err && err != -ENOENT)
		return;
	fewer = send->mark == s->changes && !krc_meta_records_count(s, KRC_META_AT_SENT) &&
		records < krc_meta_records_count(s, KRC_META_AT_ACKED);
	s->acked_at = jiffies;
	if (late || err || fewer)
		krc_meta_records_mark(s, BIT(KRC_META_AT_ACKED), KRC_META_AT_DIRTY);
}

/* Changes may have been missed: doubt what is cached, and tell followers to resync. */
void krc_meta_resync(struct krc_meta_session *s)
{
	lockdep_assert_held(&s->meta->lock);
	krc_cache_doubt_all(s->meta->cache);
	krc_changes_add(KRP_EVENT_RESYNC, NULL, 0);
}

static void krc_meta_subscribed(struct krc_meta_session *s, int err)
{
	s->subscribed = !err;
	s->notify_seq = 0;
	/* changes before the subscription were not notified */
	krc_meta_resync(s);
}

static void krc_meta_answer(struct krc_meta_session *s, const struct krp_msg_hdr *hdr)
{
	u32 xid = le32_to_cpu(hdr->xid);
	struct krc_meta_send *send = &s->conn->send[xid % KRC_META_SENDS];
	unsigned int status = le16_to_cpu(hdr->status);
	int err = krp_status_errno(status);
	u8 expected = send->type == KRP_MSG_LOOKUP ? KRP_MSG_VALUE : KRP_MSG_ACK;

	if (status == KRP_ST_SHUTDOWN) {
		krc_meta_session_fail_locked(s, err, "server is shutting down");
		return;
	}
	if (!send->busy || send->xid != xid || hdr->type != expected) {
		krc_meta_session_fail_locked(s, -EPROTO, "%s answers nothing that was asked",
					     krp_msg_name(hdr->type));
		return;
	}
	send->busy = false;
	s->busy_nr--;
	switch (send->type) {
	case KRP_MSG_PUBLISH:
	case KRP_MSG_WITHDRAW:
		if (!err)
			s->acked_at = jiffies;
		krc_meta_record_answered(s, send, err);
		break;
	case KRP_MSG_RENEW:
		krc_meta_renewed(s, send, err, le32_to_cpu(((const struct krp_ack *)hdr)->records));
		break;
	case KRP_MSG_SUBSCRIBE:
		krc_meta_subscribed(s, err);
		break;
	case KRP_MSG_LOOKUP:
		if (!send->ask)
			break; /* it gave up */
		if (!err)
			send->ask->value = ((const struct krp_value_msg *)hdr)->value;
		krc_meta_ask_finish(send->ask, err);
		send->ask = NULL;
		break;
	}
	krc_meta_pump(s);
}

static void krc_meta_changed(struct krc_meta_session *s, const struct krp_change *change)
{
	u64 generation = le64_to_cpu(change->generation);

	lockdep_assert_held(&s->meta->lock);
	if (change->event == KRP_EVENT_RESYNC) {
		krc_meta_resync(s);
		return;
	}
	krc_cache_forget(s->meta->cache, &change->key, generation);
	krc_changes_add(change->event, &change->key, generation);
	if (change->event == KRP_EVENT_GONE)
		krc_meta_record_lost(s, &change->key, generation);
}

static void krc_meta_notify(struct krc_meta_session *s, const struct krp_notify *msg)
{
	u64 seq = le64_to_cpu(msg->seq);
	unsigned int i;

	lockdep_assert_held(&s->meta->lock);
	if (!s->subscribed)
		return;
	if (s->notify_seq && seq != s->notify_seq + 1)
		krc_meta_resync(s);
	for (i = 0; i < msg->nr; i++)
		krc_meta_changed(s, &msg->change[i]);
	s->notify_seq = seq;
}

/* Hand a message of the handshake to the work item, one at a time. */
static void krc_meta_message_early(struct krc_meta_conn *conn, const struct krp_msg_hdr *hdr,
				   u32 bytes)
{
	struct krc_meta_session *s = conn->s;
	unsigned int status = le16_to_cpu(hdr->status);

	/* record the refusal now: the server closes the connection next, without a reason */
	if (status) {
		krc_meta_session_fail_locked(s, krp_status_errno(status), "%s",
					     krp_status_text(status));
		return;
	}
	if (s->state != KRC_META_HELLO || conn->inbox_full) {
		krc_meta_session_fail_locked(s, -EPROTO, "unexpected %s during the handshake",
					     krp_msg_name(hdr->type));
		return;
	}
	memcpy(conn->inbox, hdr, bytes);
	conn->inbox_full = true;
	s->events |= KRC_META_EV_MESSAGE;
	krc_meta_session_kick(s);
}

/* Handle a received message; @bytes are not checked yet. Context: softirq. */
void krc_meta_message(struct krc_meta_conn *conn, const void *msg, u32 bytes)
{
	struct krc_meta_session *s = conn->s;
	const struct krp_msg_hdr *hdr = msg;
	unsigned int status = krp_msg_check(msg, bytes, 0);

	spin_lock_bh(&s->meta->lock);
	if (s->conn != conn || s->failed || s->state == KRC_META_CLOSING)
		goto out;
	if (status)
		krc_meta_session_fail_locked(s, -EPROTO, "message of the server: %s",
					     krp_status_text(status));
	else if (s->state != KRC_META_READY)
		krc_meta_message_early(conn, hdr, bytes);
	else if (le64_to_cpu(hdr->incarnation) != conn->incarnation)
		krc_meta_session_fail_locked(s, -EPROTO, "%s of another incarnation",
					     krp_msg_name(hdr->type));
	else if (hdr->type == KRP_MSG_NOTIFY)
		krc_meta_notify(s, msg);
	else
		krc_meta_answer(s, hdr);
	s->still = false; /* a server that sends is alive */
out:
	spin_unlock_bh(&s->meta->lock);
}

/* Fail all requests: the connection is going away. */
void krc_meta_requests_fail(struct krc_meta_session *s, int err)
{
	struct krc_meta_ask *ask, *next;
	unsigned int i;

	lockdep_assert_held(&s->meta->lock);
	for (i = 0; s->conn && i < KRC_META_SENDS; i++) {
		struct krc_meta_send *send = &s->conn->send[i];

		if (send->ask)
			krc_meta_ask_finish(send->ask, err);
		send->ask = NULL;
		send->busy = false;
	}
	s->busy_nr = 0;
	list_for_each_entry_safe(ask, next, &s->asks, link) {
		list_del_init(&ask->link);
		krc_meta_ask_finish(ask, err);
	}
	s->renew_due = false;
	s->subscribe_due = false;
	s->subscribed = false;
	krc_meta_records_mark(s, BIT(KRC_META_AT_SENT), KRC_META_AT_DIRTY);
}

/* When the oldest request without an answer was sent. Return: false if there is none. */
bool krc_meta_requests_oldest(const struct krc_meta_session *s, unsigned long *ret_at)
{
	bool found = false;
	unsigned int i;

	lockdep_assert_held(&s->meta->lock);
	for (i = 0; i < KRC_META_SENDS && s->busy_nr; i++) {
		const struct krc_meta_send *send = &s->conn->send[i];

		if (!send->busy || (found && time_after_eq(send->sent_at, *ret_at)))
			continue;
		*ret_at = send->sent_at;
		found = true;
	}
	return found;
}

/* The task stops waiting for a LOOKUP. */
static void krc_meta_ask_abandon(struct krc_meta_session *s, struct krc_meta_conn *conn,
				 struct krc_meta_ask *ask)
{
	unsigned int i;

	lockdep_assert_held(&s->meta->lock);
	if (ask->err != -EINPROGRESS)
		return; /* answered just now */
	list_del_init(&ask->link);
	for (i = 0; i < KRC_META_SENDS; i++)
		if (conn->send[i].ask == ask)
			conn->send[i].ask = NULL;
	ask->err = -ETIMEDOUT;
}

/*
 * Ask a server by message: the fallback for a table that changes too fast or is too large to
 * be READ. The caller holds a count in conn.users. @timeout: jiffies.
 * Return: KRP_STEP_HIT, KRP_STEP_MISS, -ENOTCONN, -ETIMEDOUT, -EINTR.
 */
int krc_meta_ask(struct krc_meta_session *s, struct krc_meta_conn *conn, const struct krp_key *key,
		 unsigned long timeout, struct krp_value *ret_value)
{
	struct krc_meta_ask ask = { .key = *key, .err = -EINPROGRESS };
	long left = 0;

	ask.done = COMPLETION_INITIALIZER_ONSTACK(ask.done);
	INIT_LIST_HEAD(&ask.link);
	spin_lock_bh(&s->meta->lock);
	if (s->conn != conn || s->state != KRC_META_READY || s->failed ||
	    !(s->features & KRP_FEATURE_LOOKUP)) {
		spin_unlock_bh(&s->meta->lock);
		return -ENOTCONN;
	}
	list_add_tail(&ask.link, &s->asks);
	krc_meta_pump(s);
	spin_unlock_bh(&s->meta->lock);

	left = wait_for_completion_killable_timeout(&ask.done, timeout);
	spin_lock_bh(&s->meta->lock);
	krc_meta_ask_abandon(s, conn, &ask);
	spin_unlock_bh(&s->meta->lock);
	if (ask.err == -ETIMEDOUT && left < 0)
		return -EINTR;
	if (ask.err == -ENOENT)
		return KRP_STEP_MISS;
	if (ask.err)
		return ask.err == -ETIMEDOUT ? -ETIMEDOUT : -ENOTCONN;
	*ret_value = ask.value;
	return KRP_STEP_HIT;
}
