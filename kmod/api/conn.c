// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: connections of clients in the kernel: their beginning, what has come, their end.
 *
 * A letter is the client's from its callback to krcore_letter_free(), which gives the peer credit again,
 * so a client that can't go on holds its peers back and nobody else. That of a large message is, too, if
 * the client wants such; else the message is discarded when its letter comes, and the peer gets its memory
 * back.
 * Locking: see api/box_priv.h.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>

#include "api/box_priv.h"
#include "krp_table.h"
#include "message/connect.h"
#include "node/port.h"
#include "peer/lookup.h"

static void krc_conn_free(struct kref *ref)
{
	struct krcore_conn *conn = container_of(ref, struct krcore_conn, ref);
	struct krc_api_box *box = conn->box;

	WARN_ON(conn->stream || conn->busy || conn->held_nr || !list_empty(&conn->newsy));
	krc_uncharge(&conn->charge);
	kfree(conn);
	krc_box_put(box);
}

void krc_conn_put(struct krcore_conn *conn)
{
	kref_put(&conn->ref, krc_conn_free);
}

/* ---- upcalls */

u32 krc_conn_due(const struct krcore_conn *conn, struct krc_stream *stream)
{
	struct krc_stream_stats stats;

	lockdep_assert_held(&conn->box->lock);
	if (conn->news & KRC_CONN_OPENED)
		return KRC_CONN_OPENED;
	if (!(conn->news & KRC_CONN_DIED) || conn->busy)
		return 0;
	krc_stream_stats(stream, &stats);
	return stats.backlog > conn->held_nr || stats.ending ? 0 : KRC_CONN_DIED;
}

void krc_conn_settle(struct krcore_conn *conn, struct krc_stream *stream)
{
	struct krc_api_box *box = conn->box;

	spin_lock(&box->lock);
	if (!conn->closed && list_empty(&conn->newsy) && krc_conn_due(conn, stream)) {
		list_add_tail(&conn->newsy, &box->news);
		krc_box_kick(box);
	}
	spin_unlock(&box->lock);
}

/* There is something to tell of a connection. */
static void krc_conn_news(struct krc_stream *stream, u32 news, int err)
{
	struct krcore_conn *conn = krc_stream_owner(stream);

	spin_lock(&conn->box->lock);
	conn->news |= news & ~conn->told;
	conn->err = err ?: conn->err;
	spin_unlock(&conn->box->lock);
	krc_conn_settle(conn, stream);
}

static void krc_conn_opened(struct krc_stream *stream)
{
	krc_conn_news(stream, KRC_CONN_OPENED, 0);
}

/* Nothing is to be told: a client that fetches the message is told then. */
static void krc_conn_withdrawn(struct krc_stream *stream, u64 seq)
{
}

static void krc_conn_died(struct krc_stream *stream, int err)
{
	struct krcore_conn *conn = krc_stream_owner(stream);

	krc_port_disbelieve(conn->box->client->port, stream, err);
	krc_conn_news(stream, KRC_CONN_DIED, err);
}

static const struct krc_stream_ops krc_conn_stream_ops = {
	.opened = krc_conn_opened,
	.withdrawn = krc_conn_withdrawn,
	.died = krc_conn_died,
};

/* ---- telling */

static void krc_conn_tell_sent(const struct krc_box_item *item)
{
	struct krc_api_send *send = item->send;

	send->done(item->conn, send->arg, send->err);
	krc_send_drop(send);
}

static void krc_conn_tell_news(const struct krc_box_item *item)
{
	struct krcore_conn *conn = item->conn;

	if (item->news == KRC_CONN_DIED)
		conn->ops->died(conn, conn->err, conn->arg);
	else if (conn->ops->opened)
		conn->ops->opened(conn, conn->arg);
}

/* A connection that this end has opened was accepted, if anything comes on it: that is told first. */
static void krc_conn_open_first(struct krcore_conn *conn, struct krc_stream *stream)
{
	struct krc_stream_peer peer;
	bool tell;

	krc_stream_peer(stream, &peer);
	spin_lock(&conn->box->lock);
	tell = peer.opener && !conn->closed && !(conn->told & KRC_CONN_OPENED);
	if (tell) {
		conn->told |= KRC_CONN_OPENED;
		conn->news &= ~KRC_CONN_OPENED;
	}
	spin_unlock(&conn->box->lock);
	if (tell && conn->ops->opened)
		conn->ops->opened(conn, conn->arg);
}

bool krc_conn_keeps(const struct krcore_conn *conn, const struct krc_letter *letter)
{
	return letter->kind == KRC_LETTER_MESSAGE ||
	       (letter->kind == KRC_LETTER_LARGE && conn->ops->announced);
}

/* The letter is in krcore_conn.held, and @conn not closed by this task. */
static void krc_conn_tell_message(struct krcore_conn *conn, struct krc_letter *letter)
{
	bool large = letter->kind == KRC_LETTER_LARGE;
	const struct krcore_message message = {
		.bytes = large ? NULL : letter->bytes,
		.length = letter->length,
		.imm = letter->imm,
		.after = letter->notify,
	};

	(large ? conn->ops->announced : conn->ops->received)(conn, (struct krcore_letter *)letter,
							     &message, conn->arg);
}

static void krc_conn_tell_letter(const struct krc_box_item *item)
{
	struct krcore_conn *conn = item->conn;
	struct krc_letter *letter = item->letter;
	bool keeps = krc_conn_keeps(conn, letter);

	if (item->stale) {
		krc_letter_free(letter);
		return;
	}
	krc_conn_open_first(conn, letter->stream);
	if (keeps) {
		/* opened() may have closed it, and the letter with it */
		if (!READ_ONCE(conn->closed))
			krc_conn_tell_message(conn, letter);
		return;
	}
	if (letter->kind == KRC_LETTER_LARGE)
		krc_stream_discard(letter->stream, letter->seq);
	else if (conn->ops->ended && !READ_ONCE(conn->closed))
		conn->ops->ended(conn, conn->arg);
	krc_letter_free(letter);
}

void krc_conn_tell(const struct krc_box_item *item)
{
	struct krcore_conn *conn = item->conn;

	if (item->what == KRC_BOX_SENT)
		krc_conn_tell_sent(item);
	else if (item->what == KRC_BOX_NEWS)
		krc_conn_tell_news(item);
	else
		krc_conn_tell_letter(item);
	krc_conn_settle(conn, conn->stream);
}

void krcore_letter_free(struct krcore_letter *from)
{
	struct krc_letter *letter = (struct krc_letter *)from;
	struct krc_stream *stream = letter->stream;
	struct krcore_conn *conn = krc_stream_owner(stream);

	might_sleep();
	spin_lock(&conn->box->lock);
	list_del_init(&letter->list);
	conn->held_nr--;
	spin_unlock(&conn->box->lock);
	krc_fetch_forget(conn, letter);
	krc_letter_free(letter);
	krc_conn_settle(conn, stream);
}
EXPORT_SYMBOL_GPL(krcore_letter_free);

/* ---- beginning */

/* Make a connection without stream. Return: it, or ERR_PTR: -EINVAL, -EDQUOT, -ENOMEM. */
static struct krcore_conn *krc_conn_new(struct krc_api_box *box,
					const struct krcore_conn_conf *conf)
{
	struct krcore_conn *conn;
	int err;

	if (!conf->ops || !conf->ops->received || !conf->ops->died || !conf->depth ||
	    conf->depth > KRCORE_DEPTH_MAX || conf->user_len > KRCORE_USER_MAX ||
	    (conf->user_len && !conf->user))
		return ERR_PTR(-EINVAL);
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	err = krc_charge(box->client->user, KRC_RES_QUEUE, &conn->charge);
	if (err) {
		kfree(conn);
		return ERR_PTR(err);
	}
	kref_init(&conn->ref);
	kref_get(&box->ref);
	conn->box = box;
	conn->ops = conf->ops;
	conn->arg = conf->arg;
	conn->depth = conf->depth;
	INIT_LIST_HEAD(&conn->list);
	INIT_LIST_HEAD(&conn->newsy);
	INIT_LIST_HEAD(&conn->sends);
	INIT_LIST_HEAD(&conn->held);
	return conn;
}

/* What the stream of a connection is to know. */
static struct krc_stream_conf krc_conn_stream_conf(struct krcore_conn *conn,
						   const struct krcore_conn_conf *conf)
{
	return (struct krc_stream_conf){
		.inbox = &conn->box->inbox,
		.ops = &krc_conn_stream_ops,
		.owner = conn,
		.user = conf->user,
		.user_len = conf->user_len,
	};
}

/* A connection has its stream: the client has it. */
static void krc_conn_enlist(struct krcore_conn *conn, struct krc_stream *stream)
{
	conn->stream = stream;
	krc_box_enlist(conn);
}

struct krcore_conn *krcore_accept(struct krcore_offer *offer, const struct krcore_conn_conf *conf)
{
	struct krc_stream_conf stream_conf;
	struct krc_stream *stream;
	struct krcore_conn *conn;

	might_sleep();
	if (WARN_ON_ONCE(READ_ONCE(offer->box->teller) != current))
		return ERR_PTR(-EINVAL);
	if (!offer->letter)
		return ERR_PTR(-EALREADY);
	conn = krc_conn_new(offer->box, conf);
	if (IS_ERR(conn))
		return conn;
	stream_conf = krc_conn_stream_conf(conn, conf);
	stream = krc_stream_accept(offer->letter, &stream_conf);
	if (IS_ERR(stream)) {
		krc_conn_put(conn);
		return ERR_CAST(stream);
	}
	offer->letter = NULL;
	krc_conn_enlist(conn, stream);
	return conn;
}
EXPORT_SYMBOL_GPL(krcore_accept);

/* Look the service up. Context: port entered. Return: 0, or an error. */
static int krc_conn_look_up(struct krcore_client *client, const struct krcore_connect_conf *to,
			    struct krp_value *ret_value)
{
	struct krp_key key = { .service = cpu_to_le16(to->service) };
	u32 reads;
	int err;

	memcpy(key.gid, to->gid, sizeof(key.gid));
	err = krc_lookup(client->port, krc_charge_payer(&client->charge), &key, false,
			 to->timeout_ms, ret_value, &reads, NULL);
	if (err < 0)
		return err;
	return krp_value_valid(ret_value) && krp_kind_port(ret_value->kind) ? 0 : -EPROTO;
}

/*
 * Give a new connection its stream, and its first message, if there is one. Context: port entered.
 * Return: 0, or an error.
 */
static int krc_conn_begin(struct krcore_conn *conn, const struct krcore_connect_conf *to,
			  const struct krcore_conn_conf *conf, struct krc_api_send *first)
{
	struct krc_stream_conf stream_conf = krc_conn_stream_conf(conn, conf);
	struct krcore_client *client = conn->box->client;
	struct krc_stream *stream;
	struct krp_value value;
	union ib_gid gid;
	int err;

	err = krc_conn_look_up(client, to, &value);
	if (err)
		return err;
	memcpy(gid.raw, to->gid, sizeof(gid.raw));
	mutex_lock(&conn->box->gate); /* nothing of it is told before it has its stream */
	stream = krc_stream_connect(client->port->messages, &gid, to->service, &value, &stream_conf,
				    first ? first->out : NULL);
	if (!IS_ERR(stream))
		krc_conn_enlist(conn, stream);
	mutex_unlock(&conn->box->gate);
	return PTR_ERR_OR_ZERO(stream);
}

/* Make the first message of a connection. Return: it, NULL: there is none, or ERR_PTR. */
static struct krc_api_send *krc_conn_first(struct krcore_conn *conn, const struct krcore_send *from)
{
	struct krc_api_send *send;
	int err;

	if (!from)
		return NULL;
	if (from->region)
		return ERR_PTR(-EINVAL);
	if (from->length > KRCORE_FIRST_MAX)
		return ERR_PTR(-EMSGSIZE);
	send = krc_send_make(conn->box->client, from);
	if (IS_ERR(send))
		return send;
	err = krc_send_join(send, conn);
	if (!err)
		return send;
	krc_send_free(send);
	return ERR_PTR(err);
}

struct krcore_conn *krcore_connect(struct krcore_client *client,
				   const struct krcore_connect_conf *to,
				   const struct krcore_conn_conf *conf)
{
	struct krc_api_send *first;
	struct krcore_conn *conn;
	int err = -ENODEV;

	might_sleep();
	if (to->service < KRCORE_SERVICE_MIN || !to->timeout_ms ||
	    to->timeout_ms > KRCORE_TIMEOUT_MS_MAX)
		return ERR_PTR(-EINVAL);
	if (!client->box)
		return ERR_PTR(-EBADFD);
	conn = krc_conn_new(client->box, conf);
	if (IS_ERR(conn))
		return conn;
	first = krc_conn_first(conn, to->first);
	if (IS_ERR(first)) {
		krc_conn_put(conn);
		return ERR_CAST(first);
	}
	if (krc_port_enter(client->port)) {
		err = krc_conn_begin(conn, to, conf, first);
		krc_port_exit(client->port);
	}
	if (!err)
		return conn;
	if (first)
		krc_send_unjoin(first);
	krc_conn_put(conn);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(krcore_connect);

/* ---- end */

int krcore_conn_shut(struct krcore_conn *conn)
{
	might_sleep();
	if (READ_ONCE(conn->closed))
		return -ESHUTDOWN;
	return krc_stream_shut(conn->stream);
}
EXPORT_SYMBOL_GPL(krcore_conn_shut);

void krcore_conn_peer(struct krcore_conn *conn, struct krcore_peer *ret_peer)
{
	if (READ_ONCE(conn->closed))
		*ret_peer = conn->peer; /* in a done() of its end, its stream may have gone */
	else
		krc_box_peer(conn->stream, ret_peer);
}
EXPORT_SYMBOL_GPL(krcore_conn_peer);

/* Nothing more of a connection is told or taken. */
static void krc_conn_bar(struct krcore_conn *conn)
{
	struct krc_api_send *send;

	krc_box_peer(conn->stream, &conn->peer);
	spin_lock(&conn->box->lock);
	WARN_ON_ONCE(conn->closed); /* closed twice */
	WRITE_ONCE(conn->closed, true);
	rb_erase(&conn->node, &conn->box->conns);
	list_del_init(&conn->newsy);
	list_for_each_entry(send, &conn->sends, list)
		list_del_init(&send->sent);
	spin_unlock(&conn->box->lock);
}

/*
 * Call done() of a message of a closed connection: whatever has become of it, so that a module knows this
 * call for one that it has made itself. Return: whether there was one.
 */
static bool krc_conn_cancel_one(struct krcore_conn *conn)
{
	struct krc_api_send *send, copy;

	spin_lock(&conn->box->lock);
	send = list_first_entry_or_null(&conn->sends, struct krc_api_send, list);
	if (send) {
		list_del(&send->list);
		conn->busy--;
		send->orphan = true;
		copy = *send;
	}
	spin_unlock(&conn->box->lock);
	if (!send)
		return false;
	copy.done(conn, copy.arg, -ECANCELED);
	if (copy.ended)
		krc_send_drop(send); /* else it is by krc_send_ended() */
	return true;
}

/* Free the letters that the client has. */
static void krc_conn_unhold(struct krcore_conn *conn)
{
	struct krc_letter *letter;

	for (;;) {
		spin_lock(&conn->box->lock);
		letter = list_first_entry_or_null(&conn->held, struct krc_letter, list);
		if (letter) {
			list_del_init(&letter->list);
			conn->held_nr--;
		}
		spin_unlock(&conn->box->lock);
		if (!letter)
			return;
		krc_letter_free(letter);
	}
}

void krc_conn_stop(struct krcore_conn *conn, bool abort)
{
	krc_conn_bar(conn);
	krc_box_wait(conn->box, conn);
	krc_stream_close(conn->stream, abort);
	while (krc_conn_cancel_one(conn))
		;
}

void krc_conn_finish(struct krcore_conn *conn)
{
	krc_conn_unhold(conn);
	conn->stream = NULL;
	krc_conn_put(conn);
}

void krcore_conn_close(struct krcore_conn *conn, bool abort)
{
	might_sleep();
	krc_conn_stop(conn, abort);
	krc_conn_finish(conn);
}
EXPORT_SYMBOL_GPL(krcore_conn_close);
