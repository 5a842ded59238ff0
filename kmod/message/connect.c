// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what the owner of a stream does with it: connect, accept, send, shut, close; and diagnostics.
 * Locking: see message_priv.h.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "message/message_priv.h"

/* Return: whether a configuration is one. */
static bool krc_stream_conf_ok(const struct krc_stream_conf *conf)
{
	return conf->inbox && conf->ops && conf->user_len <= KRP_MESSAGE_USER_MAX;
}

/* On whose account the packets of a stream are. Return: the share, counted; NULL: no memory. */
static struct krc_tx_share *krc_stream_share(struct krc_messages *m,
					     const struct krc_stream_conf *conf)
{
	return krc_tx_share_get(m, conf->inbox);
}

/* The owner takes a stream, locked. */
static void krc_stream_own(struct krc_stream *st, const struct krc_stream_conf *conf,
			   struct krc_tx_share *share)
{
	krc_tx_share_join(st, share);
	st->inbox = conf->inbox;
	st->ops = conf->ops;
	st->owner = conf->owner;
	krc_inbox_join(st->inbox);
}

static void krc_stream_open(struct krc_stream *st, const struct krp_value *value,
			    const struct krc_stream_conf *conf, struct krp_message_open *ret_open)
{
	struct krc_messages *m = st->m;
	u64 generation = le64_to_cpu(value->generation), tag;

	do
		tag = get_random_u64();
	while (!tag);
	memset(ret_open, 0, sizeof(*ret_open));
	memcpy(ret_open->gid, m->rail->gid.raw, sizeof(ret_open->gid));
	ret_open->value = m->value;
	ret_open->tag = cpu_to_le64(tag);
	ret_open->pass = cpu_to_le64(krc_pass_get(m, st->value_gid, generation));
	ret_open->peer_generation = value->generation;
	ret_open->user_len = conf->user_len;
	if (conf->user_len)
		memcpy(ret_open->user, conf->user, conf->user_len);
}

/* Say OPEN to the machine, stream locked. Return: 0, or the error of krp_stream_connect(). */
static int krc_stream_begin(struct krc_stream *st, const struct krp_message_open *open,
			    struct krc_out *first)
{
	struct krp_stream_req req = {};
	int err;

	if (first) {
		req.cookie = (uintptr_t)first;
		req.length = first->length;
		req.imm = first->imm;
		req.hurry = first->hurry;
	}
	err = krp_stream_connect(&st->s, ktime_get_ns(), st->number, st->service, open,
				 first ? &req : NULL);
	if (err || !first)
		return err;
	list_add_tail(&first->list, &st->out.sending);
	st->out.sent++;
	return 0;
}

struct krc_stream *krc_stream_connect(struct krc_messages *m, const union ib_gid *gid, u16 service,
				      const struct krp_value *value,
				      const struct krc_stream_conf *conf, struct krc_out *first)
{
	struct krp_message_open open;
	struct krc_tx_share *share;
	struct krc_stream *st;
	int err = -ENOMEM;

	if (!krc_stream_conf_ok(conf) || service < KRP_SERVICE_USER_MIN ||
	    !krp_value_valid(value) || !krp_kind_port(value->kind) || !value->generation)
		return ERR_PTR(-EINVAL);
	if (first && (first->large || first->length > KRP_MESSAGE_FIRST_MAX))
		return ERR_PTR(-EMSGSIZE);
	st = krc_stream_new(m, gid->raw, value, conf->inbox->memcg);
	if (IS_ERR(st))
		return st;
	st->service = service;
	krc_stream_open(st, value, conf, &open);
	share = krc_stream_share(m, conf);
	if (!share)
		goto err_stream;
	err = krc_stream_table(st, share);
	if (err)
		goto err_share;
	spin_lock_bh(&st->lock);
	err = krc_stream_begin(st, &open, first);
	if (!err) {
		krc_stream_own(st, conf, share);
		if (READ_ONCE(m->stopped)) /* krc_messages_stop() was too early for it */
			krp_stream_lost(&st->s, ktime_get_ns(), -ENODEV, 0);
		krc_stream_pull(st);
	}
	spin_unlock_bh(&st->lock);
	if (err)
		goto err_table;
	krc_stream_run(st);
	return st;

err_table:
	krc_stream_untable(st);
err_share:
	krc_tx_share_put(m, share);
err_stream:
	krc_stream_put(st);
	return ERR_PTR(err);
}

struct krc_stream *krc_stream_accept(struct krc_letter *offer, const struct krc_stream_conf *conf)
{
	struct krc_stream *st = offer->stream;
	struct krc_listener *listener;
	struct krc_tx_share *share;
	int err;

	if (!krc_stream_conf_ok(conf))
		return ERR_PTR(-EINVAL);
	share = krc_stream_share(st->m, conf);
	if (!share)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&st->lock);
	err = krp_stream_accept(&st->s, conf->user, conf->user_len);
	if (err) {
		spin_unlock_bh(&st->lock);
		krc_tx_share_put(st->m, share);
		return ERR_PTR(err);
	}
	listener = krc_offer_end(st);
	krc_stream_own(st, conf, share);
	if (st->in.first) {
		krc_inbox_put(st->inbox, st->in.first);
		st->in.first = NULL;
		st->in.received++;
		st->in.backlog++;
		st->run.events |= KRC_EVENT_LETTER;
	}
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_listener_put(listener);
	kfree(offer); /* its reference is the owner's from here on */
	krc_stream_run(st);
	return st;
}

void krc_stream_refuse(struct krc_letter *offer, u32 status)
{
	struct krc_stream *st = offer->stream;
	struct krc_listener *listener;
	struct krc_letter *first;

	spin_lock_bh(&st->lock);
	listener = krc_offer_end(st);
	first = st->in.first;
	st->in.first = NULL;
	krp_stream_abort(&st->s, ktime_get_ns(), status);
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_letter_drop(first);
	krc_listener_put(listener);
	krc_stream_run(st);
	krc_letter_drop(offer);
}

/* Whether an out may be handed in, stream locked. Return: 0, or why not. */
static int krc_stream_may(const struct krc_stream *st, const struct krc_out *out)
{
	if (st->s.error)
		return st->s.error;
	if (st->end.closed || st->end.shut)
		return -EPIPE;
	if (out->large)
		return !out->length || out->length > KRP_MESSAGE_LARGE_MAX ||
				       out->addr + out->length < out->addr
			       ? -EMSGSIZE
			       : 0;
	return out->length > KRP_MESSAGE_DATA_MAX ? -EMSGSIZE : 0;
}

int krc_stream_send(struct krc_stream *st, struct krc_out *out)
{
	int err;

	spin_lock_bh(&st->lock);
	err = krc_stream_may(st, out);
	if (!err && out->large && !krc_stream_lend_large(st))
		err = -ENOMEM;
	if (!err) {
		krc_stream_get(st); /* whoever is told of its end may close the stream */
		list_add_tail(&out->list, &st->out.waiting);
		st->out.waiting_nr++;
		krc_stream_pull(st);
	}
	spin_unlock_bh(&st->lock);
	if (err)
		return err;
	krc_stream_run(st);
	krc_stream_put(st);
	return 0;
}

/* Take back an out that the machine has not got. Return: whether it was one. */
static bool krc_stream_unsend(struct krc_stream *st, const struct krc_out *out)
{
	struct krc_out *at;

	list_for_each_entry(at, &st->out.waiting, list) {
		if (at != out)
			continue;
		at->err = -ECANCELED;
		list_move_tail(&at->list, &st->out.ended);
		st->out.waiting_nr--;
		return true;
	}
	return false;
}

int krc_stream_cancel(struct krc_stream *st, struct krc_out *out)
{
	int err = 0;

	spin_lock_bh(&st->lock);
	if (!krc_stream_unsend(st, out))
		err = krp_stream_cancel(&st->s, ktime_get_ns(), (uintptr_t)out);
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	return err;
}

int krc_stream_shut(struct krc_stream *st)
{
	int err = 0;

	spin_lock_bh(&st->lock);
	if (st->s.error)
		err = st->s.error;
	else if (st->end.shut)
		err = -EALREADY;
	st->end.shut = true;
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	return err;
}

void krc_stream_close(struct krc_stream *st, bool abort)
{
	struct krc_letter *letter, *next;
	struct krc_inbox *inbox;
	u64 now_ns = ktime_get_ns();
	LIST_HEAD(letters);

	spin_lock_bh(&st->lock);
	inbox = st->inbox;
	st->end.closed = true;
	st->end.shut = true;
	st->inbox = NULL;
	st->ops = NULL;
	krc_inbox_leave(inbox, st, &letters);
	krc_large_unwant(st);
	if (abort)
		krp_stream_abort(&st->s, now_ns, KRP_REFUSE_ABORT);
	else
		st->end.orphan_ns = now_ns + (u64)KRC_ORPHAN_MS * NSEC_PER_MSEC;
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	wait_var_event(&st->run.task,
		       !READ_ONCE(st->run.task) || READ_ONCE(st->run.task) == current);
	list_for_each_entry_safe(letter, next, &letters, list) {
		list_del_init(&letter->list);
		krc_letter_free(letter);
	}
	krc_stream_put(st);
}

void *krc_stream_owner(const struct krc_stream *st)
{
	return st->owner;
}

void krc_stream_peer(struct krc_stream *st, struct krc_stream_peer *ret_peer)
{
	memset(ret_peer, 0, sizeof(*ret_peer));
	memcpy(ret_peer->gid, st->value_gid, sizeof(ret_peer->gid));
	ret_peer->service = st->service;
	spin_lock_bh(&st->lock);
	ret_peer->generation = st->s.peer_generation;
	ret_peer->opener = st->s.opener;
	ret_peer->state = st->s.state;
	ret_peer->err = st->s.error;
	if (!st->s.opener) {
		ret_peer->queue = st->s.dst;
		ret_peer->user_len = st->s.open.user_len;
		memcpy(ret_peer->user, st->s.open.user, sizeof(ret_peer->user));
	} else if (st->s.confirmed) {
		ret_peer->queue = st->s.dst;
		ret_peer->user_len = st->s.accept.user_len;
		memcpy(ret_peer->user, st->s.accept.user, sizeof(ret_peer->user));
	}
	spin_unlock_bh(&st->lock);
}

void krc_stream_stats(struct krc_stream *st, struct krc_stream_stats *ret_stats)
{
	spin_lock_bh(&st->lock);
	*ret_stats = (struct krc_stream_stats){
		.sent = st->out.sent,
		.received = st->in.received,
		.waiting = st->out.waiting_nr,
		.unacked = st->s.tx.next - st->s.tx.una,
		.window = st->s.tx.msgs_max - st->s.tx.msgs,
		.backlog = st->in.backlog,
		.ending = READ_ONCE(st->end.ending),
		.repeats = st->s.dropped.repeats,
		.gaps = st->s.dropped.gaps,
		.busy = st->s.dropped.busy,
		.foreign = st->s.dropped.foreign,
	};
	spin_unlock_bh(&st->lock);
}

struct krc_stream_where krc_stream_where(const struct krc_stream *st)
{
	struct krc_stream_where where = { .placed = false };
	bool isolated; /* no channel of messages is */

	where.placed = krc_flow_where(&st->flow, &where.initiator, &isolated);
	return where;
}
