// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: whose the packets are that a port has for sending, and who waits for one.
 *
 * A user may have no more of them than are free, so one alone has half, two have a third each, and one who
 * comes finds some, however many streams others have (the dynamic thresholds of Choudhury and Hahne, 1998,
 * for the buffers of a switch). Nothing is set aside for users that might come. What is offered and not
 * accepted is one user more, the port itself.
 *
 * A stream that was refused for its share waits with those of the same share: packets of that are under
 * way, and each that comes back lets one go on. One that was refused because none is free waits with all
 * others that were.
 * Locking: krc_messages.lock for the table and both kinds of lists.
 */
#include <linux/hash.h>
#include <linux/slab.h>

#include "message/message_priv.h"

#define KRC_SHARE_TRIES 8

/* The share of a payer, or NULL. */
static struct krc_tx_share *krc_tx_share_find(struct krc_messages *m, const void *payer)
{
	struct krc_tx_share *share;

	lockdep_assert_held(&m->lock);
	hash_for_each_possible(m->shares, share, node, (unsigned long)payer)
		if (share->payer == payer)
			return share;
	return NULL;
}

struct krc_tx_share *krc_tx_share_get(struct krc_messages *m, const void *payer)
{
	struct krc_tx_share *share, *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);

	if (!new)
		return NULL;
	spin_lock_bh(&m->lock);
	share = krc_tx_share_find(m, payer);
	if (!share) {
		share = new;
		new = NULL;
		share->payer = payer;
		INIT_LIST_HEAD(&share->thirsty);
		hash_add(m->shares, &share->node, (unsigned long)payer);
	}
	share->streams++;
	spin_unlock_bh(&m->lock);
	kfree(new);
	return share;
}

void krc_tx_share_put(struct krc_messages *m, struct krc_tx_share *share)
{
	if (!share || share == &m->share)
		return;
	spin_lock_bh(&m->lock);
	if (--share->streams) {
		spin_unlock_bh(&m->lock);
		return;
	}
	hash_del(&share->node);
	spin_unlock_bh(&m->lock);
	WARN_ON(share->taken || !list_empty(&share->thirsty));
	kfree(share);
}

void krc_tx_share_join(struct krc_stream *st, struct krc_tx_share *share)
{
	bool waited;

	lockdep_assert_held(&st->lock);
	spin_lock(&st->m->lock);
	waited = !list_empty(&st->thirst);
	list_del_init(&st->thirst); /* whoever has called asks again */
	WRITE_ONCE(st->share, share);
	spin_unlock(&st->m->lock);
	if (waited)
		krc_stream_put(st);
}

/*
 * Have a stream wait for a packet. @over: it was refused for its share. One that waits already keeps its
 * place: it asks whenever something comes for it, and others would be served first each time.
 */
static void krc_tx_share_wait(struct krc_stream *st, bool over)
{
	struct krc_messages *m = st->m;
	bool waits;

	spin_lock(&m->lock);
	waits = !list_empty(&st->thirst);
	if (!waits || st->thirst_over != over)
		list_move_tail(&st->thirst, over ? &st->share->thirsty : &m->thirsty);
	st->thirst_over = over;
	if (!waits)
		krc_stream_get(st);
	spin_unlock(&m->lock);
}

/* A stream has got a packet: it waits no more, so a wake is not spent on it. */
static void krc_tx_share_leave(struct krc_stream *st)
{
	bool waited;

	if (list_empty_careful(&st->thirst)) /* only its own lock lets it in */
		return;
	spin_lock(&st->m->lock);
	waited = !list_empty(&st->thirst);
	list_del_init(&st->thirst);
	spin_unlock(&st->m->lock);
	if (waited)
		krc_stream_put(st);
}

/* Take the first stream of a list. Return: it, counted; or NULL. */
static struct krc_stream *krc_tx_share_next(struct krc_messages *m, struct list_head *thirsty)
{
	struct krc_stream *st;

	if (list_empty_careful(thirsty))
		return NULL;
	spin_lock_bh(&m->lock);
	st = list_first_entry_or_null(thirsty, struct krc_stream, thirst);
	if (st)
		list_del_init(&st->thirst);
	spin_unlock_bh(&m->lock);
	return st;
}

static void krc_tx_share_drink(struct krc_messages *m, struct list_head *thirsty)
{
	struct krc_stream *st = krc_tx_share_next(m, thirsty);

	if (!st)
		return;
	krc_stream_kick(st);
	krc_stream_put(st);
}

void krc_tx_share_pass(struct krc_messages *m)
{
	if (krc_packets_free(m->tx))
		krc_tx_share_drink(m, &m->thirsty);
}

struct krc_packet *krc_tx_share_packet(struct krc_stream *st)
{
	struct krc_packet *packet = krc_packet_get_of(st->m->tx, &st->share->taken), *before;
	u32 tries;

	lockdep_assert_held(&st->lock);
	for (tries = 0; IS_ERR_OR_NULL(packet) && tries < KRC_SHARE_TRIES; tries++) {
		before = packet;
		krc_tx_share_wait(st, IS_ERR(packet));
		packet = krc_packet_get_of(st->m->tx, &st->share->taken);
		if (packet == before) {
			krc_tx_share_pass(st->m);
			return NULL; /* who puts the next one sees that it waits */
		}
	}
	if (!IS_ERR_OR_NULL(packet)) {
		krc_tx_share_leave(st);
		return packet;
	}
	krc_stream_kick(st); /* others were quicker each time */
	return NULL;
}

void krc_streams_drink(struct krc_messages *m, struct krc_tx_share *share)
{
	krc_tx_share_drink(m, &m->thirsty);
	krc_tx_share_drink(m, &m->share.thirsty);
	if (share && share != &m->share)
		krc_tx_share_drink(m, &share->thirsty);
}

/* Those of a list wait no more. */
static void krc_tx_share_forget(struct krc_messages *m, struct list_head *thirsty)
{
	struct krc_stream *st;

	while ((st = krc_tx_share_next(m, thirsty)))
		krc_stream_put(st);
}

/* Take a stream that waits with those of its share. Return: it, counted; or NULL. */
static struct krc_stream *krc_tx_share_any(struct krc_messages *m)
{
	struct krc_stream *st = NULL;
	struct krc_tx_share *share;
	u32 bucket;

	spin_lock_bh(&m->lock);
	hash_for_each(m->shares, bucket, share, node) {
		if (!st)
			st = list_first_entry_or_null(&share->thirsty, struct krc_stream, thirst);
	}
	if (st)
		list_del_init(&st->thirst);
	spin_unlock_bh(&m->lock);
	return st;
}

void krc_streams_forget(struct krc_messages *m)
{
	struct krc_stream *st;

	krc_tx_share_forget(m, &m->thirsty);
	krc_tx_share_forget(m, &m->share.thirsty);
	while ((st = krc_tx_share_any(m)))
		krc_stream_put(st);
}
