// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: listeners, and what becomes of an OPEN: krp_listen.h decides, here are the facts it decides
 * by, and what it wants done.
 *
 * Records are looked up by a work item. Of how many GIDs at once, and when again, is up to struct
 * krp_listen_lookups: a flood of OPENs costs no more than that, and what is kept for GIDs that the node
 * knows it does not get.
 * Locking: krc_messages.asked.mutex from the judgement of an OPEN until its stream can be found, so
 * that one OPEN that comes twice makes one stream; and for krc_listener.inbox. No task of a program takes
 * it: what receives for everybody would wait for that to get a processor.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "message/message_priv.h"

/* ---- listeners */

static void krc_listener_free(struct kref *ref)
{
	struct krc_listener *listener = container_of(ref, struct krc_listener, ref);

	if (listener->home->unlistened)
		listener->home->unlistened(listener->home, listener->backlog);
	krc_tx_share_put(listener->messages, listener->share);
	krc_messages_put(listener->messages);
	kfree(listener);
}

void krc_listener_put(struct krc_listener *listener)
{
	if (listener)
		kref_put(&listener->ref, krc_listener_free);
}

/**
 * struct krc_listen_call - A change of the table of listeners, which a work item does.
 * @work: it.
 * @m: messages.
 * @listener: listener.
 * @err: its outcome.
 */
struct krc_listen_call {
	struct work_struct work;
	struct krc_messages *m;
	struct krc_listener *listener;
	int err;
};

static void krc_listen_begin(struct work_struct *work)
{
	struct krc_listen_call *call = container_of(work, struct krc_listen_call, work);
	struct krc_listener *listener = call->listener;
	struct krc_messages *m = call->m;

	mutex_lock(&m->asked.mutex);
	call->err = READ_ONCE(m->stopped)
			    ? -ENODEV
			    : xa_insert_bh(&m->listeners, listener->service, listener, GFP_KERNEL);
	if (!call->err) {
		kref_get(&m->ref);
		listener->messages = m;
		m->listeners_nr++;
	}
	mutex_unlock(&m->asked.mutex);
}

static void krc_listen_end(struct work_struct *work)
{
	struct krc_listen_call *call = container_of(work, struct krc_listen_call, work);
	struct krc_messages *m = call->m;

	mutex_lock(&m->asked.mutex);
	xa_erase_bh(&m->listeners, call->listener->service);
	m->listeners_nr--;
	call->listener->inbox = NULL;
	mutex_unlock(&m->asked.mutex);
}

/* Change the table. Return: 0, -ENODEV, -EBUSY, -ENOMEM. */
static int krc_listen_do(struct krc_messages *m, struct krc_listener *listener, work_func_t what)
{
	struct krc_listen_call call = { .m = m, .listener = listener };

	INIT_WORK_ONSTACK(&call.work, what);
	queue_work(krc_messages_rx_wq, &call.work);
	flush_work(&call.work);
	destroy_work_on_stack(&call.work);
	return call.err;
}

struct krc_listener *krc_listen(struct krc_messages *m, u16 service, u32 backlog,
				struct krc_inbox *inbox, void *owner)
{
	struct krc_listener *listener;
	int err;

	if (service < KRP_SERVICE_USER_MIN || !backlog || !inbox)
		return ERR_PTR(-EINVAL);
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	kref_init(&listener->ref);
	INIT_LIST_HEAD(&listener->offers);
	listener->service = service;
	listener->backlog = backlog;
	listener->inbox = inbox;
	listener->home = inbox;
	listener->owner = owner;
	listener->share = krc_tx_share_get(m, inbox);
	if (!listener->share) {
		kfree(listener);
		return ERR_PTR(-ENOMEM);
	}
	err = krc_listen_do(m, listener, krc_listen_begin);
	if (!err)
		return listener;
	krc_tx_share_put(m, listener->share);
	kfree(listener);
	return ERR_PTR(err == -EBUSY ? -EADDRINUSE : err);
}

void krc_unlisten(struct krc_listener *listener)
{
	krc_listen_do(listener->messages, listener, krc_listen_end);
	krc_listener_put(listener);
}

struct krc_listener *krc_offer_end(struct krc_stream *st)
{
	struct krc_listener *listener = st->listener;

	lockdep_assert_held(&st->lock);
	st->listener = NULL;
	if (!listener)
		return NULL;
	spin_lock(&st->m->lock);
	list_del_init(&st->offered);
	spin_unlock(&st->m->lock);
	atomic_dec(&listener->waiting);
	return listener;
}

/* ---- facts */

/* The stream that was made of an OPEN. Return: it, counted, or NULL. */
static struct krc_stream *krc_open_known(struct krc_messages *m, const struct krp_message *packet)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	u64 key = krc_open_key(m, le64_to_cpu(open->tag));
	struct krc_stream *st;

	spin_lock_bh(&m->lock);
	hash_for_each_possible(m->opens, st, hashed, key) {
		/* what is compared does not change once the stream is in the table */
		if (!krp_listen_same(&st->s, packet))
			continue;
		krc_stream_get(st);
		spin_unlock_bh(&m->lock);
		return st;
	}
	spin_unlock_bh(&m->lock);
	return NULL;
}

/* Whether a stream was made of an OPEN, and is over. Return: what is said of it, or 0. */
static u32 krc_open_buried(struct krc_messages *m, const struct krp_message *packet)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	u64 tag = le64_to_cpu(open->tag), key = krc_open_key(m, tag);
	const struct krc_tombstone *tombstone;
	u32 status = 0;

	spin_lock_bh(&m->lock);
	hash_for_each_possible(m->known.tombstones, tombstone, node, key)
		if (tombstone->open_tag == tag && tombstone->open_src == le32_to_cpu(packet->src) &&
		    !memcmp(tombstone->gid, open->gid, sizeof(open->gid)))
			status = tombstone->status;
	spin_unlock_bh(&m->lock);
	return status;
}

/* ---- what is done */

/* Make the letters of an offer: that there is one, and its first message. Return: 0 or -ENOMEM. */
static int krc_offer_letters(struct krc_stream *st, const struct krp_message *packet,
			     struct krc_letter **ret_offer)
{
	const void *bytes = (const u8 *)(packet + 1) + sizeof(struct krp_message_open);

	*ret_offer = krc_letter_new(st, KRC_LETTER_OFFER, NULL, NULL);
	if (!*ret_offer)
		return -ENOMEM;
	if (!(packet->flags & KRP_MESSAGE_PAYLOAD))
		return 0;
	st->in.first = krc_letter_new(st, KRC_LETTER_MESSAGE, packet, bytes);
	if (st->in.first)
		return 0;
	krc_letter_drop(*ret_offer);
	return -ENOMEM;
}

/* Make a stream of an OPEN and offer it. Nothing is done without memory: the opener comes again. */
static void krc_offer(struct krc_messages *m, struct krc_listener *listener,
		      const struct krp_message *packet, const struct krp_value *record,
		      u64 arrived_ns)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krc_stream *st = krc_stream_new(m, open->gid, record, listener->inbox->memcg);
	struct krc_letter *offer;
	u64 tag;

	lockdep_assert_held(&m->asked.mutex);
	if (IS_ERR(st)) {
		krc_message_count(m, KRC_COUNT_NO_MEMORY);
		return;
	}
	do
		tag = get_random_u64();
	while (!tag);
	st->service = listener->service;
	st->owner = listener->owner;
	if (krc_offer_letters(st, packet, &offer)) {
		krc_message_count(m, KRC_COUNT_NO_MEMORY);
		krc_stream_put(st);
		return;
	}
	if (krc_stream_table(st, NULL)) {
		krc_letter_drop(st->in.first);
		krc_letter_drop(offer);
		krc_stream_put(st);
		return;
	}
	kref_get(&listener->ref);
	atomic_inc(&listener->waiting);
	krc_tx_share_hold(m, listener->share);
	spin_lock_bh(&st->lock);
	st->listener = listener;
	st->end.tombstone->share = listener->share;
	krp_stream_offer(&st->s, ktime_get_ns(), arrived_ns, packet, st->number, tag);
	spin_lock(&m->lock);
	list_add_tail(&st->offered, &listener->offers);
	/* before its clock runs: what has ended takes it out again, and this task may stand still */
	hash_add(m->opens, &st->hashed, krc_open_key(m, le64_to_cpu(open->tag)));
	spin_unlock(&m->lock);
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_inbox_put(listener->inbox, offer);
	listener->inbox->arrived(listener->inbox);
	krc_stream_put(st);
}

static void krc_open_answer(struct krc_messages *m, const struct krp_message *packet,
			    const struct krp_value *record, enum krp_listen_verdict verdict,
			    u64 pass, u32 status)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krc_rail *rail = m->rail;
	struct krc_standing *standing;
	struct krp_message_challenge body;
	struct krc_hw_address to;
	struct krp_message head;

	if (rail->ops->address(rail->hw, rail->num, rail->gid_index,
			       (const union ib_gid *)open->gid, record, &to))
		return;
	standing = krc_standing_get(rail, &to, le64_to_cpu(record->dct.mrdir_addr),
				    le32_to_cpu(record->dct.mrdir_rkey));
	if (!standing)
		return;
	if (verdict == KRP_LISTEN_CHALLENGE) {
		krp_listen_challenge(packet, pass, rail->generation, &head, &body);
		krc_message_count(m, KRC_COUNT_CHALLENGES);
		krc_answer_send(m, &to, standing, &head, &body, sizeof(body));
	} else {
		krp_listen_refuse(packet, status, rail->generation, &head);
		krc_message_count(m, KRC_COUNT_REFUSALS);
		krc_answer_send(m, &to, standing, &head, NULL, 0);
	}
	krc_standing_put(standing);
}

/* Whether one more OPEN of a node may wait for the program, and be known again when it is over. */
static bool krc_listener_room(struct krc_listener *listener, const u8 *gid)
{
	struct krc_messages *m = listener->messages;
	const struct krc_stream *st;
	u32 of_node = 0;
	bool room;

	spin_lock_bh(&m->lock);
	list_for_each_entry(st, &listener->offers, offered)
		of_node += !memcmp(st->value_gid, gid, sizeof(st->value_gid));
	room = krc_tx_share_room(m, listener->share, true);
	spin_unlock_bh(&m->lock);
	return room &&
	       krp_listen_room(listener->backlog, (u32)atomic_read(&listener->waiting), of_node);
}

/* Do what krp_listen_judge() says, but for KRP_LISTEN_LOOK_UP. Return: what it says. */
static enum krp_listen_verdict krc_open_judge(struct krc_messages *m,
					      const struct krp_message *packet,
					      const struct krp_value *record, bool fresh,
					      u64 arrived_ns)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krc_listener *listener = xa_load(&m->listeners, le32_to_cpu(packet->dst));
	struct krp_listen_facts facts = {
		.record = record,
		.pass = krc_pass_of(m, open->gid, le64_to_cpu(packet->generation)),
		.generation = m->rail->generation,
		.fresh = fresh,
		.status = krc_open_buried(m, packet),
		.service = !!listener,
	};
	enum krp_listen_verdict verdict;
	u32 status = 0;

	lockdep_assert_held(&m->asked.mutex);
	facts.buried = !!facts.status;
	facts.room = listener && krc_listener_room(listener, open->gid);
	verdict = krp_listen_judge(packet, &facts, &status);
	if (verdict == KRP_LISTEN_OFFER)
		krc_offer(m, listener, packet, record, arrived_ns);
	else if (verdict == KRP_LISTEN_CHALLENGE || verdict == KRP_LISTEN_REFUSE)
		krc_open_answer(m, packet, record, verdict, facts.pass, status);
	else if (verdict == KRP_LISTEN_DROP)
		krc_message_count(m, KRC_COUNT_OPENS_DROPPED);
	return verdict;
}

/* The OPEN that a stream was made of has come again. @st: counted by the caller, or NULL. */
static void krc_open_again(struct krc_stream *st)
{
	if (!st)
		return;
	spin_lock_bh(&st->lock);
	krp_stream_again(&st->s, ktime_get_ns());
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	krc_stream_put(st);
}

/* Have the sender of an OPEN looked up. @known: its record is cached, and differs. */
static void krc_open_ask(struct krc_messages *m, const struct krp_message *packet, u32 bytes,
			 bool known, u64 arrived_ns)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krc_open_wait *wait;

	lockdep_assert_held(&m->asked.mutex);
	if (READ_ONCE(m->stopped) || !krp_listen_look_begin(&m->asked.lookups, open->gid, known)) {
		krc_message_count(m, KRC_COUNT_OPENS_DROPPED);
		return;
	}
	wait = kmalloc(sizeof(*wait) + bytes, GFP_KERNEL | __GFP_NOWARN);
	if (!wait) {
		krp_listen_look_end(&m->asked.lookups, 0, open->gid, -ENOMEM);
		krc_message_count(m, KRC_COUNT_OPENS_DROPPED);
		return;
	}
	wait->bytes = bytes;
	wait->arrived_ns = arrived_ns;
	memcpy(wait->packet, packet, bytes);
	list_add_tail(&wait->list, &m->asked.opens);
	queue_work(krc_messages_rx_wq, &m->asked.work);
}

void krc_open_came(struct krc_messages *m, const struct krp_message *packet, u32 bytes,
		   u64 arrived_ns)
{
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };
	struct krp_value record;
	struct krc_stream *st;
	bool cached, fresh;

	krc_tombstones_free(m, false);
	memcpy(key.gid, open->gid, sizeof(key.gid));
	mutex_lock(&m->asked.mutex);
	st = krc_open_known(m, packet);
	if (!st) {
		krc_message_count(m, KRC_COUNT_OPENS);
		cached = !m->records.cached(m->records.arg, &key, &record);
		fresh = krp_listen_fresh(&m->asked.lookups, ktime_get_ns(), open->gid);
		if (krc_open_judge(m, packet, cached ? &record : NULL, fresh, arrived_ns) ==
		    KRP_LISTEN_LOOK_UP)
			krc_open_ask(m, packet, bytes, cached, arrived_ns);
	}
	mutex_unlock(&m->asked.mutex);
	krc_open_again(st);
}

/* Look the sender of an OPEN up and judge again. */
static void krc_open_look_up(struct krc_messages *m, const struct krc_open_wait *wait)
{
	const struct krp_message *packet = (const struct krp_message *)wait->packet;
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };
	u64 now_ns = ktime_get_ns();
	struct krp_value record;
	struct krc_stream *st;
	int err;

	memcpy(key.gid, open->gid, sizeof(key.gid));
	err = m->records.lookup(m->records.arg, &key, &record);
	mutex_lock(&m->asked.mutex);
	krp_listen_look_end(&m->asked.lookups, now_ns, open->gid, err);
	st = krc_open_known(m, packet);
	if (!st)
		krc_open_judge(m, packet, err ? NULL : &record, true, wait->arrived_ns);
	mutex_unlock(&m->asked.mutex);
	krc_open_again(st);
}

/* An OPEN that waited for a look-up needs none. */
static void krc_open_unasked(struct krc_messages *m, const struct krc_open_wait *wait)
{
	const struct krp_message *packet = (const struct krp_message *)wait->packet;
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);

	lockdep_assert_held(&m->asked.mutex);
	krp_listen_look_end(&m->asked.lookups, 0, open->gid, -ECANCELED);
}

/*
 * Judge an OPEN that has waited by what the node knows now, perhaps by the look-up for another one.
 * Return: whether it is still to be looked up.
 */
static bool krc_open_waits(struct krc_messages *m, const struct krc_open_wait *wait)
{
	const struct krp_message *packet = (const struct krp_message *)wait->packet;
	const struct krp_message_open *open = (const struct krp_message_open *)(packet + 1);
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };
	bool waits = false, cached;
	struct krp_value record;
	struct krc_stream *st;

	memcpy(key.gid, open->gid, sizeof(key.gid));
	mutex_lock(&m->asked.mutex);
	st = krc_open_known(m, packet);
	if (!st) {
		cached = !m->records.cached(m->records.arg, &key, &record);
		waits = krc_open_judge(m, packet, cached ? &record : NULL, false,
				       wait->arrived_ns) == KRP_LISTEN_LOOK_UP;
	}
	if (!waits)
		krc_open_unasked(m, wait);
	mutex_unlock(&m->asked.mutex);
	krc_open_again(st);
	return waits;
}

static struct krc_open_wait *krc_open_next(struct krc_messages *m)
{
	struct krc_open_wait *wait;

	mutex_lock(&m->asked.mutex);
	wait = list_first_entry_or_null(&m->asked.opens, struct krc_open_wait, list);
	if (wait)
		list_del(&wait->list);
	mutex_unlock(&m->asked.mutex);
	return wait;
}

void krc_open_work(struct work_struct *work)
{
	struct krc_messages *m = container_of(work, struct krc_messages, asked.work);
	struct krc_open_wait *wait;

	while ((wait = krc_open_next(m))) {
		if (krc_rail_enter(m->rail)) {
			if (krc_open_waits(m, wait))
				krc_open_look_up(m, wait);
			krc_rail_exit(m->rail);
		}
		kfree(wait);
	}
}

void krc_opens_drop(struct krc_messages *m)
{
	struct krc_open_wait *wait;

	while ((wait = krc_open_next(m)))
		kfree(wait);
}
