// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: whose the packets are that a port has for sending, and who waits for one; and whose its streams
 * are, and those that it has to know again.
 *
 * A user may have no more of them than are free, so one alone has half, two have a third each, and one who
 * comes finds some, however many streams others have (the dynamic thresholds of Choudhury and Hahne, 1998,
 * for the buffers of a switch). Nothing is set aside for users that might come. What is offered and not
 * accepted is one user more, the port itself.
 *
 * A stream that was refused for its share waits with those of the same share, and one that was refused
 * because none is free with all others that were. When packets come back one of the latter is called, and
 * one of a share that may have more by now, also if they were of another one. Whoever is called calls
 * the next ones when it has all that it wants or may have, as long as packets are free.
 *
 * A stream outlives the connection of its program, which is charged no more then: by the seconds in which a
 * peer may repeat what it has sent, or is still to hear it. One that was opened by a peer is known again for
 * some more, and nothing of that may be forgotten early. So of both a user has no more than KRC_SHARE_TIMES
 * what is free: one who opens and closes as fast as it can leaves a part to others.
 * Locking: krc_messages.lock for the table and both kinds of lists.
 */
#include <linux/hash.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "message/message_priv.h"

#define KRC_SHARE_TRIES 8
#define KRC_SHARE_LOOKS 8
#define KRC_SHARE_TIMES 4 /* one user alone gets four fifths, two get four ninths each */

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

struct krc_tx_share *krc_tx_share_get(struct krc_messages *m, const struct krc_inbox *inbox)
{
	const void *payer = inbox->charge ? krc_charge_payer(inbox->charge) : inbox;
	struct krc_tx_share *share, *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);

	if (!new)
		return NULL;
	spin_lock_bh(&m->lock);
	share = krc_tx_share_find(m, payer);
	if (!share) {
		share = new;
		new = NULL;
		share->payer = payer;
		if (inbox->charge)
			krc_payer_get(inbox->charge, &share->counted);
		INIT_LIST_HEAD(&share->thirsty);
		INIT_LIST_HEAD(&share->over);
		hash_add(m->shares, &share->node, (unsigned long)payer);
	}
	share->refs++;
	spin_unlock_bh(&m->lock);
	kfree(new);
	return share;
}

void krc_tx_share_hold(struct krc_messages *m, struct krc_tx_share *share)
{
	spin_lock_bh(&m->lock);
	share->refs++;
	spin_unlock_bh(&m->lock);
}

void krc_tx_share_put(struct krc_messages *m, struct krc_tx_share *share)
{
	if (!share || share == &m->share)
		return;
	spin_lock_bh(&m->lock);
	if (--share->refs) {
		spin_unlock_bh(&m->lock);
		return;
	}
	hash_del(&share->node);
	spin_unlock_bh(&m->lock);
	WARN_ON(share->taken || share->streams || share->tombstones ||
		!list_empty(&share->thirsty) || !list_empty(&share->over));
	krc_payer_put(&share->counted);
	kfree(share);
}

/* A stream waits no more. */
static void krc_tx_share_unlist(struct krc_stream *st)
{
	lockdep_assert_held(&st->m->lock);
	list_del_init(&st->thirsty.at);
	if (list_empty(&st->share->thirsty))
		list_del_init(&st->share->over);
}

bool krc_tx_share_room(const struct krc_messages *m, const struct krc_tx_share *share, bool known)
{
	u32 streams = KRC_MESSAGES_STREAMS - min_t(u32, m->streams_nr, KRC_MESSAGES_STREAMS);
	u32 tombstones = KRC_TOMBSTONES - min_t(u32, m->known.tombstones_nr, KRC_TOMBSTONES);

	lockdep_assert_held(&m->lock);
	return share->streams < KRC_SHARE_TIMES * streams &&
	       (!known || share->tombstones < KRC_SHARE_TIMES * tombstones);
}

struct krc_tx_share *krc_tx_share_look(struct krc_stream *st)
{
	struct krc_messages *m = st->m;
	struct krc_tx_share *share;

	spin_lock_bh(&m->lock);
	share = st->share;
	if (share->looks < KRC_SHARE_LOOKS) {
		share->looks++;
		share->refs += share != &m->share;
	} else {
		share = NULL;
	}
	spin_unlock_bh(&m->lock);
	return share;
}

void krc_tx_share_looked(struct krc_messages *m, struct krc_tx_share *share)
{
	spin_lock_bh(&m->lock);
	share->looks--;
	spin_unlock_bh(&m->lock);
	krc_tx_share_put(m, share);
}

void krc_tx_share_join(struct krc_stream *st, struct krc_tx_share *share)
{
	bool waited;

	lockdep_assert_held(&st->lock);
	spin_lock(&st->m->lock);
	waited = !list_empty(&st->thirsty.at);
	krc_tx_share_unlist(st); /* whoever has called asks again */
	st->share->streams -= st->tabled;
	share->streams += st->tabled;
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
	waits = !list_empty(&st->thirsty.at);
	if (!waits || st->thirsty.over != over) {
		krc_tx_share_unlist(st);
		list_add_tail(&st->thirsty.at, over ? &st->share->thirsty : &m->thirsty);
		if (over && list_empty(&st->share->over))
			list_add_tail(&st->share->over, &m->over);
	}
	st->thirsty.over = over;
	if (!waits)
		krc_stream_get(st);
	spin_unlock(&m->lock);
}

/* A stream has got a packet: it waits no more, so a wake is not spent on it. */
static void krc_tx_share_leave(struct krc_stream *st)
{
	bool waited;

	if (list_empty_careful(&st->thirsty.at)) /* only its own lock lets it in */
		return;
	spin_lock(&st->m->lock);
	waited = !list_empty(&st->thirsty.at);
	krc_tx_share_unlist(st);
	spin_unlock(&st->m->lock);
	if (waited)
		krc_stream_put(st);
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
			krc_streams_drink(st->m); /* it may have been called in place of another */
			return NULL; /* the task that puts the next one sees that it waits */
		}
	}
	if (!IS_ERR_OR_NULL(packet)) {
		krc_tx_share_leave(st);
		return packet;
	}
	krc_stream_kick(st); /* others were quicker each time */
	return NULL;
}

/* Take the first stream that waits until any packet is free. Return: it, counted; or NULL. */
static struct krc_stream *krc_tx_share_first(struct krc_messages *m)
{
	struct krc_stream *st;

	if (list_empty_careful(&m->thirsty))
		return NULL;
	spin_lock_bh(&m->lock);
	st = list_first_entry_or_null(&m->thirsty, struct krc_stream, thirsty.at);
	if (st)
		krc_tx_share_unlist(st);
	spin_unlock_bh(&m->lock);
	return st;
}

/*
 * Take a stream of a share that has fewer than @below packets, of each share in turn. Shares that have as
 * many are no more than there are packets for. Return: it, counted; or NULL.
 */
static struct krc_stream *krc_tx_share_below(struct krc_messages *m, u32 below)
{
	u32 looks = KRC_MESSAGES_TX / below + 1;
	struct krc_stream *st = NULL;
	struct krc_tx_share *share;

	if (list_empty_careful(&m->over))
		return NULL;
	spin_lock_bh(&m->lock);
	list_for_each_entry(share, &m->over, over) {
		if (READ_ONCE(share->taken) < below) {
			st = list_first_entry(&share->thirsty, struct krc_stream, thirsty.at);
			break;
		}
		if (!--looks)
			break;
	}
	if (st) {
		list_move_tail(&share->over, &m->over);
		krc_tx_share_unlist(st);
	}
	spin_unlock_bh(&m->lock);
	return st;
}

static void krc_tx_share_call(struct krc_stream *st)
{
	if (!st)
		return;
	krc_stream_kick(st);
	krc_stream_put(st);
}

void krc_streams_drink(struct krc_messages *m)
{
	u32 free = 0;

	rcu_read_lock(); /* against krc_messages_stop(), behind which @tx goes */
	if (!READ_ONCE(m->stopped))
		free = krc_packets_free(m->tx);
	rcu_read_unlock();
	if (!free)
		return; /* the user of the last one calls others when it is back */
	krc_tx_share_call(krc_tx_share_first(m));
	krc_tx_share_call(krc_tx_share_below(m, free));
}

void krc_streams_forget(struct krc_messages *m)
{
	struct krc_stream *st;

	while ((st = krc_tx_share_first(m) ?: krc_tx_share_below(m, U32_MAX)))
		krc_stream_put(st);
}
