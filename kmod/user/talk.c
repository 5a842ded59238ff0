// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: connections of programs; see user/talk.h.
 *
 * What comes on a connection is in the inbox of its mailbox, and names its stream, whose owner is
 * the connection. A connection is ended with krc_mailbox.take held, so a task that takes letters
 * never has one of a connection that is no more.
 * Locking: see user/mailbox.h.
 */
#include <linux/pid.h>
#include <linux/slab.h>

#include "message/connect.h"
#include "node/port.h"
#include "peer/lookup.h"
#include "user/send.h"
#include "user/show.h"
#include "user/talk.h"
#include "user/wait.h"

/* For each state, a mask of the states that may follow it. */
static const u8 krc_talk_next[] = {
	[KRC_TALK_MAKING] = BIT(KRC_TALK_OFFERED) | BIT(KRC_TALK_OPEN) | BIT(KRC_TALK_CLOSED),
	[KRC_TALK_OFFERED] = BIT(KRC_TALK_OPEN) | BIT(KRC_TALK_CLOSED),
	[KRC_TALK_OPEN] = BIT(KRC_TALK_CLOSED),
	[KRC_TALK_CLOSED] = 0,
};

static void krc_talk_set_state(struct krc_talk *talk, enum krc_talk_state state)
{
	lockdep_assert_held(&talk->control);
	WARN_ON(!(krc_talk_next[talk->state] & BIT(state)));
	WRITE_ONCE(talk->state, state);
}

static void krc_talk_free(struct kref *ref)
{
	struct krc_talk *talk = container_of(ref, struct krc_talk, ref);
	struct krc_context *ctx = talk->box->ctx;

	WARN_ON(talk->busy || talk->placed || talk->placed_bytes || talk->stream || talk->offer ||
		!list_empty(&talk->list) || !list_empty(&talk->held));
	xa_erase(&talk->box->talks, talk->id);
	krc_uncharge(&talk->charge);
	mutex_destroy(&talk->control);
	kfree(talk);
	krc_context_put(ctx);
}

void krc_talk_put(struct krc_talk *talk)
{
	kref_put(&talk->ref, krc_talk_free);
}

static void krc_talk_released(struct work_struct *work)
{
	struct krc_talk *talk = container_of(work, struct krc_talk, release);

	/* Pairs with krc_talk_leave(): the holder of the lock sees @due, or this gets the lock. */
	smp_mb();
	if (mutex_trylock(&talk->control))
		krc_talk_leave(talk);
	else
		krc_talk_put(talk);
}

void krc_talk_release(struct krc_talk *talk)
{
	WRITE_ONCE(talk->due, true);
	kref_get(&talk->ref);
	if (!queue_work(krc_renew_wq, &talk->release))
		krc_talk_put(talk); /* not the last one: that of the message is there */
}

struct krc_talk *krc_talk_make(struct krc_mailbox *box)
{
	struct krc_talk *talk = kzalloc(sizeof(*talk), GFP_KERNEL_ACCOUNT);
	int err;

	if (!talk)
		return ERR_PTR(-ENOMEM);
	kref_init(&talk->ref);
	kref_get(&talk->ref);
	talk->box = box;
	mutex_init(&talk->control);
	INIT_LIST_HEAD(&talk->held);
	INIT_WORK(&talk->release, krc_talk_released);
	INIT_LIST_HEAD(&talk->list);
	INIT_LIST_HEAD(&talk->larges);
	err = xa_alloc_cyclic(&box->talks, &talk->id, talk, XA_LIMIT(1, INT_MAX), &box->next,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		kfree(talk);
		return ERR_PTR(err);
	}
	kref_get(&box->ctx->ref);
	return talk;
}

/* Return: a connection that a program may name, counted; or NULL. */
static struct krc_talk *krc_talk_get(struct krc_mailbox *box, u32 id)
{
	struct krc_talk *talk;
	u32 state;

	xa_lock(&box->talks);
	talk = xa_load(&box->talks, id);
	state = talk ? READ_ONCE(talk->state) : KRC_TALK_CLOSED;
	if (state == KRC_TALK_MAKING || state == KRC_TALK_CLOSED ||
	    !kref_get_unless_zero(&talk->ref))
		talk = NULL;
	xa_unlock(&box->talks);
	return talk;
}

struct krc_talk *krc_talk_enter(struct krc_context *ctx, u32 id)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	struct krc_talk *talk;
	int err = -ENOENT;

	if (!box)
		return ERR_PTR(-EBADFD);
	talk = krc_talk_get(box, id);
	if (!talk)
		return ERR_PTR(err);
	if (mutex_lock_interruptible(&talk->control))
		err = -EINTR;
	else if (talk->state == KRC_TALK_CLOSED)
		mutex_unlock(&talk->control);
	else
		return talk;
	krc_talk_put(talk);
	return ERR_PTR(err);
}

void krc_talk_leave(struct krc_talk *talk)
{
	do {
		if (READ_ONCE(talk->due)) {
			WRITE_ONCE(talk->due, false);
			krc_send_held(talk);
		}
		mutex_unlock(&talk->control);
		smp_mb(); /* pairs with krc_talk_released() */
	} while (READ_ONCE(talk->due) && mutex_trylock(&talk->control));
	krc_talk_put(talk);
}

/* ---- upcalls */

u32 krc_talk_due(const struct krc_talk *talk, struct krc_stream *stream)
{
	struct krc_stream_stats stats;

	lockdep_assert_held(&talk->box->lock);
	if (talk->news & KRC_NEWS_OPENED)
		return KRC_NEWS_OPENED;
	krc_stream_stats(stream, &stats);
	return stats.backlog || stats.ending ? 0 : talk->news & KRC_NEWS_DIED;
}

void krc_talk_settle(struct krc_talk *talk, struct krc_stream *stream)
{
	struct krc_mailbox *box = talk->box;

	spin_lock(&box->lock);
	if (talk->news && list_empty(&talk->list) && krc_talk_due(talk, stream))
		list_add_tail(&talk->list, &box->news);
	spin_unlock(&box->lock);
}

/* There is something to tell of a connection. */
static void krc_talk_news(struct krc_stream *stream, u32 news, int err)
{
	struct krc_talk *talk = krc_stream_owner(stream);
	struct krc_mailbox *box = talk->box;

	spin_lock(&box->lock);
	talk->news |= news & ~talk->told;
	talk->err = err ?: talk->err;
	spin_unlock(&box->lock);
	krc_talk_settle(talk, stream);
	krc_wait_wake(box->ctx);
}

static void krc_talk_opened(struct krc_stream *stream)
{
	krc_talk_news(stream, KRC_NEWS_OPENED, 0);
}

/* Nothing is to be told: the program that fetches the message is told then. */
static void krc_talk_withdrawn(struct krc_stream *stream, u64 seq)
{
}

static void krc_talk_died(struct krc_stream *stream, int err)
{
	struct krc_talk *talk = krc_stream_owner(stream);

	krc_port_disbelieve(talk->box->ctx->port, stream, err);
	krc_talk_news(stream, KRC_NEWS_DIED, err);
}

static const struct krc_stream_ops krc_talk_ops = {
	.opened = krc_talk_opened,
	.withdrawn = krc_talk_withdrawn,
	.died = krc_talk_died,
};

/* ---- what is under way */

/* Count a message or READ. Return: whether as many may be under way. */
static bool krc_talk_begin(struct krc_talk *talk)
{
	struct krc_mailbox *box = talk->box;
	bool room;

	spin_lock(&box->lock);
	room = box->busy < box->depth && talk->busy < talk->depth;
	box->busy += room;
	talk->busy += room;
	spin_unlock(&box->lock);
	if (room)
		kref_get(&talk->ref);
	return room;
}

static void krc_talk_finish(struct krc_talk *talk)
{
	spin_lock(&talk->box->lock);
	talk->box->busy--;
	talk->busy--;
	spin_unlock(&talk->box->lock);
}

int krc_talk_reserve(struct krc_talk *talk)
{
	int err;

	if (!krc_talk_begin(talk))
		return -EAGAIN;
	err = krc_mailbox_reserve(talk->box, 1);
	if (!err)
		return 0;
	krc_talk_finish(talk);
	krc_talk_put(talk);
	return err;
}

void krc_talk_unreserve(struct krc_talk *talk)
{
	krc_mailbox_unreserve(talk->box, 1);
	krc_talk_finish(talk);
	krc_talk_put(talk);
}

void krc_talk_complete(struct krc_talk *talk, struct krp_cqe *cqe)
{
	struct krc_mailbox *box = talk->box;

	cqe->queue = talk->id;
	krc_talk_finish(talk); /* a program that sees the completion may send */
	krc_mailbox_complete(box, cqe);
	krc_talk_put(talk);
}

/* ---- beginning */

static int krc_talk_user_check(const u8 *user, u32 len)
{
	if (len > KRP_OPEN_USER_MAX)
		return -EINVAL;
	return krp_is_zero(user + len, KRP_OPEN_USER_MAX - len) ? 0 : -EINVAL;
}

/* What the stream of a connection is to know. @user: of the caller's argument. */
static struct krc_stream_conf krc_talk_conf(struct krc_talk *talk, const u8 *user, u32 user_len)
{
	return (struct krc_stream_conf){
		.inbox = &talk->box->inbox,
		.ops = &krc_talk_ops,
		.owner = talk,
		.user = user,
		.user_len = user_len,
	};
}

/* Look the service up and open its connection. Context: port entered, talk->control held. */
static int krc_talk_connect(struct krc_talk *talk, struct krp_open *arg, struct krc_out *first)
{
	struct krc_context *ctx = talk->box->ctx;
	struct krp_key key = { .service = cpu_to_le16(arg->service) };
	const struct krc_stream_conf conf = krc_talk_conf(talk, arg->user, arg->user_len);
	struct krc_stream *stream;
	struct krp_value value;
	int err;

	lockdep_assert_held(&talk->control);
	memcpy(key.gid, arg->gid, sizeof(key.gid));
	err = krc_lookup(ctx->port, krc_charge_payer(&ctx->charge), &key,
			 arg->flags & KRP_OPEN_FRESH, arg->timeout_ms, &value, &arg->reads, NULL);
	if (err < 0)
		return err;
	if (!krp_value_valid(&value) || !krp_kind_port(value.kind))
		return -EPROTO;
	stream = krc_stream_connect(ctx->port->messages, (const union ib_gid *)arg->gid,
				    arg->service, &value, &conf, first);
	if (IS_ERR(stream))
		return PTR_ERR(stream);
	WRITE_ONCE(talk->stream, stream);
	krc_talk_set_state(talk, KRC_TALK_OPEN);
	arg->connection = talk->id;
	arg->generation = le64_to_cpu(value.generation);
	return 0;
}

static int krc_talk_open(struct krc_talk *talk, struct krp_open *arg)
{
	struct krc_context *ctx = talk->box->ctx;
	struct krc_send *first = NULL;
	int err = 0;

	lockdep_assert_held(&talk->control);
	talk->depth = arg->depth;
	if (arg->first)
		first = krc_send_first(talk, arg->first);
	if (IS_ERR(first))
		return PTR_ERR(first);
	if (krc_port_enter(ctx->port)) {
		err = krc_talk_connect(talk, arg, first ? first->out : NULL);
		krc_port_exit(ctx->port);
	} else {
		err = -ENODEV;
	}
	if (err && first)
		krc_send_undo(first);
	return err;
}

int krc_ioc_open(struct krc_context *ctx, struct krp_open *arg)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	struct krc_talk *talk;
	int err;

	if (!box)
		return -EBADFD;
	if (arg->connection || arg->flags & ~(u32)KRP_OPEN_FRESH || arg->rsvd ||
	    arg->service < KRP_SERVICE_USER_MIN || !arg->timeout_ms ||
	    arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX || !arg->depth ||
	    arg->depth > KRP_CONN_DEPTH_MAX || arg->rsvd2 ||
	    krc_talk_user_check(arg->user, arg->user_len))
		return -EINVAL;
	talk = krc_talk_make(box);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	mutex_lock(&talk->control);
	err = krc_charge(ctx->user, KRC_RES_QUEUE, &talk->charge);
	if (!err)
		err = krc_talk_open(talk, arg);
	if (err)
		krc_talk_close(talk, true);
	krc_talk_leave(talk);
	return err;
}

void krc_talk_offer(struct krc_talk *talk, struct krc_letter *offer)
{
	/* nobody else can hold it before */
	mutex_lock_nested(&talk->control, SINGLE_DEPTH_NESTING);
	talk->offer = offer;
	krc_talk_set_state(talk, KRC_TALK_OFFERED);
	mutex_unlock(&talk->control);
	krc_talk_put(talk);
}

void krc_talk_unmake(struct krc_talk *talk)
{
	mutex_lock_nested(&talk->control, SINGLE_DEPTH_NESTING);
	krc_talk_set_state(talk, KRC_TALK_CLOSED);
	mutex_unlock(&talk->control);
	krc_talk_put(talk);
	krc_talk_put(talk);
}

static int krc_talk_accept(struct krc_talk *talk, const struct krp_accept *arg)
{
	const struct krc_stream_conf conf = krc_talk_conf(talk, arg->user, arg->user_len);
	struct krc_stream *stream;
	int err;

	lockdep_assert_held(&talk->control);
	err = krc_charge(talk->box->ctx->user, KRC_RES_QUEUE, &talk->charge);
	if (err)
		return err;
	stream = krc_stream_accept(talk->offer, &conf);
	if (IS_ERR(stream)) {
		krc_uncharge(&talk->charge);
		return PTR_ERR(stream);
	}
	talk->offer = NULL;
	talk->depth = arg->depth;
	WRITE_ONCE(talk->stream, stream);
	krc_talk_set_state(talk, KRC_TALK_OPEN);
	return 0;
}

int krc_ioc_accept(struct krc_context *ctx, struct krp_accept *arg)
{
	bool refuse = arg->flags & KRP_ACCEPT_REFUSE;
	struct krc_talk *talk;
	int err = 0;

	if (arg->flags & ~(u32)KRP_ACCEPT_REFUSE || arg->rsvd2 ||
	    !krp_is_zero(arg->rsvd, sizeof(arg->rsvd)) ||
	    krc_talk_user_check(arg->user, arg->user_len) || arg->depth > KRP_CONN_DEPTH_MAX)
		return -EINVAL;
	if (refuse ? arg->depth || arg->user_len : !arg->depth)
		return -EINVAL;
	talk = krc_talk_enter(ctx, arg->connection);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	if (talk->state != KRC_TALK_OFFERED)
		err = -EISCONN;
	else if (refuse)
		krc_talk_close(talk, true);
	else
		err = krc_talk_accept(talk, arg);
	krc_talk_leave(talk);
	return err;
}

/* ---- diagnostics */

void krc_talk_peer(struct krc_stream *stream, struct krp_letter_peer *ret_peer)
{
	struct krc_stream_peer peer;

	krc_stream_peer(stream, &peer);
	*ret_peer = (struct krp_letter_peer){
		.generation = peer.generation,
		.queue = peer.queue,
		.service = peer.service,
		.user_len = peer.user_len,
	};
	memcpy(ret_peer->gid, peer.gid, sizeof(ret_peer->gid));
	memcpy(ret_peer->user, peer.user, peer.user_len);
}

/* @stream: of @talk, which does not end it meanwhile. */
static void krc_talk_describe(const struct krc_talk *talk, struct krc_stream *stream, bool offered,
			      struct krp_conn_query *arg)
{
	struct krc_stream_stats stats;
	struct krc_stream_peer peer;

	krc_stream_peer(stream, &peer);
	krc_stream_stats(stream, &stats);
	krc_talk_peer(stream, &arg->peer);
	if (offered)
		arg->state = KRP_CONN_OFFERED;
	else if (peer.err)
		arg->state = KRP_CONN_DEAD;
	else
		arg->state = peer.queue ? KRP_CONN_OPEN : KRP_CONN_OPENING;
	arg->error = offered ? 0 : peer.err;
	arg->outstanding = READ_ONCE(talk->busy);
	arg->sent = stats.sent;
	arg->received = stats.received;
	arg->waiting = stats.waiting;
	arg->unacked = stats.unacked;
	arg->window = stats.window;
	arg->backlog = stats.backlog;
	arg->repeats = stats.repeats;
	arg->gaps = stats.gaps;
	arg->busy = stats.busy;
	arg->foreign = stats.foreign;
}

int krc_ioc_conn_query(struct krc_context *ctx, struct krp_conn_query *arg)
{
	u32 id = arg->connection;
	struct krc_talk *talk;

	arg->connection = 0;
	if (!krp_is_zero(arg, sizeof(*arg)))
		return -EINVAL;
	talk = krc_talk_enter(ctx, id);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	arg->connection = id;
	lockdep_assert_held(&talk->control);
	if (talk->offer)
		krc_talk_describe(talk, talk->offer->stream, true, arg);
	else
		krc_talk_describe(talk, talk->stream, false, arg);
	krc_talk_leave(talk);
	return 0;
}

/*
 * Describe a connection without krc_talk.control and krc_mailbox.take, which are held while the
 * memory of a program is read. Return: whether there is something to show.
 */
static bool krc_talk_show(struct krc_talk *talk, struct krc_talk_info *ret_info)
{
	const struct krc_context *ctx = talk->box->ctx;
	bool offered = READ_ONCE(talk->state) == KRC_TALK_OFFERED;
	struct krc_stream *stream;

	*ret_info = (struct krc_talk_info){
		.context = ctx->id,
		.pid = pid_vnr(ctx->pid),
		.uid = ctx->uid,
		.how = { .connection = talk->id, .state = KRP_CONN_OFFERED },
	};
	strscpy(ret_info->comm, ctx->comm, sizeof(ret_info->comm));
	spin_lock(&talk->box->lock);
	stream = READ_ONCE(talk->stream); /* ended after krc_talk_close() has taken it away here */
	if (stream) {
		ret_info->depth = READ_ONCE(talk->depth);
		ret_info->where = krc_stream_where(stream);
		krc_talk_describe(talk, stream, false, &ret_info->how);
	}
	spin_unlock(&talk->box->lock);
	return stream || offered;
}

/* Argument of krc_talk_walk_some(): whom connections are shown to. */
struct krc_talk_shown {
	int (*fn)(const struct krc_talk_info *info, void *arg);
	void *arg;
};

/* All connections of a context. Each is counted while it is shown, and nothing is locked. */
static int krc_talk_walk_some(struct krc_context *ctx, struct krc_queue_at *at, void *arg)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	const struct krc_talk_shown *shown = arg;
	struct krc_talk_info info;
	struct krc_talk *talk;
	unsigned long id;
	int ret = 0;

	if (!box)
		return 0;
	xa_for_each_start(&box->talks, id, talk, at->queue) {
		at->queue = id;
		talk = krc_talk_get(box, id);
		if (!talk)
			continue;
		if (krc_talk_show(talk, &info) && shown->fn(&info, shown->arg))
			ret = -1;
		krc_talk_put(talk);
		if (ret)
			break;
		cond_resched();
	}
	return ret;
}

void krc_talk_walk(struct krc_queue_at *at, const kuid_t *uid,
		   int (*fn)(const struct krc_talk_info *info, void *arg), void *arg)
{
	struct krc_talk_shown shown = { .fn = fn, .arg = arg };

	krc_context_walk(at, uid, krc_talk_walk_some, &shown);
}

/* ---- end */

void krc_talk_close(struct krc_talk *talk, bool abort)
{
	struct krc_mailbox *box = talk->box;
	struct krc_stream *stream = talk->stream;
	struct krc_letter *offer = talk->offer;

	lockdep_assert_held(&talk->control);
	krc_talk_set_state(talk, KRC_TALK_CLOSED);
	talk->offer = NULL;
	krc_send_drop_held(talk);
	if (offer)
		krc_stream_refuse(offer, KRP_REFUSE_PROGRAM);
	mutex_lock(&box->take);
	spin_lock(&box->lock);
	WRITE_ONCE(talk->stream, NULL);
	spin_unlock(&box->lock);
	if (stream)
		krc_stream_close(stream, abort);
	spin_lock(&box->lock);
	list_del_init(&talk->list);
	spin_unlock(&box->lock);
	mutex_unlock(&box->take);
	krc_talk_put(talk);
}

int krc_ioc_shut(struct krc_context *ctx, struct krp_shut *arg)
{
	struct krc_talk *talk;
	int err = 0;

	if (arg->how < KRP_SHUT_SEND || arg->how > KRP_SHUT_ABORT)
		return -EINVAL;
	talk = krc_talk_enter(ctx, arg->connection);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	if (arg->how != KRP_SHUT_ABORT && !list_empty(&talk->held))
		err = -EBUSY;
	else if (arg->how != KRP_SHUT_SEND)
		krc_talk_close(talk, arg->how == KRP_SHUT_ABORT);
	else
		err = talk->stream ? krc_stream_shut(talk->stream) : -ENOTCONN;
	if (!err && arg->how == KRP_SHUT_SEND)
		talk->shut = true;
	krc_talk_leave(talk);
	return err;
}

void krc_talk_end_all(struct krc_mailbox *box)
{
	struct krc_talk *talk;
	unsigned long id;

	xa_for_each(&box->talks, id, talk) {
		/* the last reference may go while this one is looked at */
		talk = krc_talk_get(box, id);
		if (!talk)
			continue;
		mutex_lock(&talk->control);
		krc_talk_close(talk, true);
		krc_talk_leave(talk);
		cond_resched();
	}
}
