// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what a port knows beyond its streams: passes, streams that are over and may be asked for,
 * and the packets that no stream sends.
 * Locking: krc_messages.lock, inside of which nothing is taken but the lock of standings.
 */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "krp_mrdir.h"
#include "message/message_priv.h"
#include "pool/pool.h"

/* ---- passes */

u64 krc_pass_of(const struct krc_messages *m, const u8 *gid, u64 generation)
{
	u64 half[2];

	memcpy(half, gid, sizeof(half));
	return siphash_3u64(half[0], half[1], generation, &m->secret) ?: 1;
}

static u32 krc_pass_hash(const u8 *gid)
{
	return jhash(gid, KRP_GID_BYTES, 0);
}

static struct krc_pass *krc_pass_find(struct krc_messages *m, const u8 *gid)
{
	struct krc_pass *pass;

	lockdep_assert_held(&m->lock);
	hash_for_each_possible(m->known.passes, pass, node, krc_pass_hash(gid))
		if (!memcmp(pass->gid, gid, sizeof(pass->gid)))
			return pass;
	return NULL;
}

u64 krc_pass_get(struct krc_messages *m, const u8 *gid, u64 generation)
{
	const struct krc_pass *pass;
	u64 ret = 0;

	spin_lock_bh(&m->lock);
	pass = krc_pass_find(m, gid);
	if (pass && pass->generation == generation)
		ret = pass->pass;
	spin_unlock_bh(&m->lock);
	return ret;
}

void krc_pass_keep(struct krc_messages *m, const u8 *gid, u64 generation, u64 number)
{
	struct krc_pass *pass, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *old = NULL;

	spin_lock_bh(&m->lock);
	pass = krc_pass_find(m, gid);
	if (!pass && fresh) {
		pass = fresh;
		fresh = NULL;
		memcpy(pass->gid, gid, sizeof(pass->gid));
		hash_add(m->known.passes, &pass->node, krc_pass_hash(gid));
		list_add_tail(&pass->list, &m->known.passes_old);
		if (++m->known.passes_nr > KRC_PASSES) {
			old = list_first_entry(&m->known.passes_old, struct krc_pass, list);
			hash_del(&old->node);
			list_del(&old->list);
			m->known.passes_nr--;
		}
	}
	if (pass) { /* without memory the peer asks again */
		pass->generation = generation;
		pass->pass = number;
	}
	spin_unlock_bh(&m->lock);
	kfree(fresh);
	kfree(old);
}

/* ---- tombstones */

static void krc_tombstone_free(struct krc_messages *m, struct krc_tombstone *tombstone)
{
	if (!tombstone)
		return;
	krc_standing_put(tombstone->standing);
	krc_tx_share_put(m, tombstone->share);
	kfree(tombstone);
}

/* Give a tombstone its place. Return: NULL; or the tombstone: there is no place for it. */
static struct krc_tombstone *krc_tombstone_add(struct krc_messages *m,
					       struct krc_tombstone *tombstone)
{
	spin_lock_bh(&m->lock);
	/*
	 * What this node itself has opened only spares its peer the wait until it finds it silent:
	 * a program that opens and aborts as fast as it can takes no place of those that OPENs need.
	 */
	if (!tombstone->open_tag && m->known.opened_nr >= KRC_TOMBSTONES_OPENED) {
		spin_unlock_bh(&m->lock);
		return tombstone;
	}
	if (tombstone->open_tag) {
		hash_add(m->known.tombstones, &tombstone->node,
			 krc_open_key(m, tombstone->open_tag));
		m->known.tombstones_nr++;
		tombstone->share->tombstones++;
	} else {
		m->known.opened_nr++;
	}
	hash_add(m->known.by_number, &tombstone->by_number, tombstone->number);
	list_add_tail(&tombstone->list, &m->known.tombstones_old);
	spin_unlock_bh(&m->lock);
	return NULL;
}

void krc_tombstone_make(struct krc_stream *st, u64 until_ns)
{
	struct krc_messages *m = st->m;
	struct krc_tombstone *tombstone = st->end.tombstone;

	krc_tombstones_free(m, false);
	if (!tombstone)
		return;
	st->end.tombstone = NULL;
	memcpy(tombstone->gid, st->value_gid, sizeof(tombstone->gid));
	if (!st->s.opener) {
		tombstone->open_tag = le64_to_cpu(st->s.open.tag);
		tombstone->open_src = st->s.dst;
	}
	tombstone->number = st->number;
	tombstone->tag = st->s.tag;
	tombstone->address = st->address;
	krc_standing_hold(st->proof.standing);
	tombstone->standing = st->proof.standing;
	tombstone->status = st->end.forget_status ?: KRP_REFUSE_ABORT;
	tombstone->until_ns = until_ns;
	krc_tombstone_free(m, krc_tombstone_add(m, tombstone));
}

/* The oldest tombstone if its time is over, taken out; else NULL. Those behind it may stay longer. */
static struct krc_tombstone *krc_tombstone_over(struct krc_messages *m, u64 now_ns, bool all)
{
	struct krc_tombstone *tombstone;

	spin_lock_bh(&m->lock);
	tombstone = list_first_entry_or_null(&m->known.tombstones_old, struct krc_tombstone, list);
	if (tombstone && !all && now_ns < tombstone->until_ns)
		tombstone = NULL;
	if (tombstone) {
		if (tombstone->open_tag) {
			hash_del(&tombstone->node);
			m->known.tombstones_nr--;
			tombstone->share->tombstones--;
		} else {
			m->known.opened_nr--;
		}
		hash_del(&tombstone->by_number);
		list_del(&tombstone->list);
	}
	spin_unlock_bh(&m->lock);
	return tombstone;
}

void krc_tombstones_free(struct krc_messages *m, bool all)
{
	u64 now_ns = ktime_get_ns();
	struct krc_tombstone *tombstone;

	while ((tombstone = krc_tombstone_over(m, now_ns, all)))
		krc_tombstone_free(m, tombstone);
}

void krc_unknown_came(struct krc_messages *m, const struct krp_message *packet)
{
	u32 number = le32_to_cpu(packet->dst);
	struct krc_standing *standing = NULL;
	const struct krc_tombstone *tombstone;
	struct krc_hw_address to;
	struct krp_message head;

	krc_message_count(m, KRC_COUNT_UNKNOWN);
	spin_lock_bh(&m->lock);
	hash_for_each_possible(m->known.by_number, tombstone, by_number, number) {
		if (tombstone->number != number || tombstone->tag != le64_to_cpu(packet->tag))
			continue;
		to = tombstone->address;
		standing = tombstone->standing;
		krc_standing_hold(standing);
		break;
	}
	spin_unlock_bh(&m->lock);
	if (!standing)
		return;
	if (krp_listen_unknown(packet, m->rail->generation, &head))
		krc_answer_send(m, &to, standing, &head, NULL, 0);
	krc_standing_put(standing);
}

/* ---- answers */

/* An answer is sent, or is not going to be: its place is free. */
static void krc_answer_end(struct krc_answer *answer)
{
	struct krc_messages *m = answer->messages;
	struct krc_standing *standing = answer->standing;

	if (answer->packet)
		krc_packet_put(answer->packet);
	answer->packet = NULL;
	spin_lock_bh(&m->lock);
	answer->standing = NULL;
	answer->busy = false;
	spin_unlock_bh(&m->lock);
	krc_streams_drink(m);
	krc_standing_put(standing);
}

static void krc_answer_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_answer *answer = container_of(flow, struct krc_answer, flow);
	struct krc_req *req = &answer->packet->req;

	list_del_init(&req->list);
	krc_standing_outcome(answer->standing, req);
	if (req->status)
		krc_message_count(answer->messages, KRC_COUNT_FAILED);
	krc_answer_end(answer);
}

static void krc_answer_post(struct krc_answer *answer)
{
	struct krc_messages *m = answer->messages;
	struct krc_req *req = &answer->packet->req;
	LIST_HEAD(reqs);
	int err = -ENODEV;

	req->until = jiffies + msecs_to_jiffies(m->rail->margin_ms / 2);
	list_add_tail(&req->list, &reqs);
	if (krc_rail_enter(m->rail)) {
		if (answer->flow.failed)
			krc_flow_restart(&answer->flow);
		err = krc_flow_submit(&answer->flow, &reqs, NULL);
		krc_rail_exit(m->rail);
	}
	if (!err) {
		krc_message_count(m, KRC_COUNT_POSTED);
		return;
	}
	list_del_init(&req->list);
	krc_answer_end(answer);
}

/* The target was asked. */
static void krc_answer_work(struct work_struct *work)
{
	struct krc_answer *answer = container_of(work, struct krc_answer, work);

	if (krc_standing_now(answer->standing) == KRC_STANDING_PROVEN)
		krc_answer_post(answer);
	else
		krc_answer_end(answer);
}

/* krc_read.done */
static bool krc_answer_asked(struct krc_read *read, int err, const void *bytes)
{
	struct krc_answer *answer = container_of(read, struct krc_answer, read);

	queue_work(krc_messages_wq, &answer->work);
	return false;
}

/* Ask a target that has not answered lately, before it is sent something; see prove.c. */
static void krc_answer_ask(struct krc_answer *answer)
{
	struct krc_messages *m = answer->messages;
	int err = -ENODEV;
	u32 index;

	answer->read = (struct krc_read){
		.standing = answer->standing,
		.payer = m,
		.remote_addr = answer->standing->key.mrdir_addr,
		.rkey = answer->standing->key.mrdir_rkey,
		.bytes = KRP_MRDIR_ENTRY_BYTES,
		.done = krc_answer_asked,
	};
	if (krc_rail_enter(m->rail)) {
		err = krc_pool_read(m->pool, &answer->read, &index);
		krc_rail_exit(m->rail);
	}
	if (err)
		krc_answer_end(answer);
}

/*
 * Whether an answer may wait until its target was asked: that may take as long as the retries of the
 * hardware, and whoever is to be answered sends its OPENs again and again.
 */
static bool krc_answer_may_ask(const struct krc_messages *m, const struct krc_standing *standing)
{
	u32 i, asked = 0, same = 0;

	lockdep_assert_held(&m->lock);
	for (i = 0; i < KRC_ANSWERS; i++) {
		if (!m->answers[i].busy || !m->answers[i].asks)
			continue;
		same += m->answers[i].standing == standing;
		asked++;
	}
	return asked < KRC_ANSWERS_ASKED && same < KRC_ANSWERS_OF_ONE;
}

/* The first place for an answer that is free, or NULL. */
static struct krc_answer *krc_answer_free(struct krc_messages *m)
{
	u32 i;

	lockdep_assert_held(&m->lock);
	for (i = 0; i < KRC_ANSWERS; i++)
		/* the pool counts it until done() has returned */
		if (!m->answers[i].busy && !atomic_read_acquire(&m->answers[i].flow.outstanding))
			return &m->answers[i];
	return NULL;
}

/* Take a place for an answer. Return: it, with @standing counted; or NULL: there is none for it. */
static struct krc_answer *krc_answer_take(struct krc_messages *m, struct krc_standing *standing)
{
	bool asks = krc_standing_now(standing) != KRC_STANDING_PROVEN;
	struct krc_answer *answer = NULL;

	spin_lock_bh(&m->lock);
	if (!m->stopped && (!asks || krc_answer_may_ask(m, standing)))
		answer = krc_answer_free(m);
	if (answer) {
		answer->busy = true;
		answer->asks = asks;
		answer->standing = standing;
		krc_standing_hold(standing);
	}
	spin_unlock_bh(&m->lock);
	return answer;
}

void krc_answer_send(struct krc_messages *m, const struct krc_hw_address *to,
		     struct krc_standing *standing, const struct krp_message *head,
		     const void *body, u32 body_bytes)
{
	struct krc_answer *answer = krc_answer_take(m, standing);
	struct krc_packet *packet;

	if (!answer)
		return;
	answer->packet = krc_packet_get(m->tx);
	packet = answer->packet;
	if (!packet) {
		krc_answer_end(answer);
		return;
	}
	memcpy(packet->data, head, sizeof(*head));
	if (body_bytes)
		memcpy(packet->data + sizeof(*head), body, body_bytes);
	krc_packet_send(packet, to, sizeof(*head) + body_bytes, 0); /* krc_answer_post() says */
	if (answer->asks)
		krc_answer_ask(answer);
	else
		krc_answer_post(answer);
}

void krc_answers_init(struct krc_messages *m)
{
	u32 i;

	for (i = 0; i < KRC_ANSWERS; i++) {
		m->answers[i].messages = m;
		krc_flow_init(&m->answers[i].flow, m->pool, krc_answer_done, NULL);
		m->answers[i].flow.kind = KRC_CHANNEL_MESSAGE;
		INIT_WORK(&m->answers[i].work, krc_answer_work);
	}
}

void krc_answers_end(struct krc_messages *m)
{
	u32 i;

	for (i = 0; i < KRC_ANSWERS && m->answers[i].messages; i++) {
		/* the READ has been done, since the pool is stopped, and nothing more is posted */
		flush_work(&m->answers[i].work);
		krc_flow_drain(&m->answers[i].flow);
		krc_flow_release(&m->answers[i].flow);
	}
}
