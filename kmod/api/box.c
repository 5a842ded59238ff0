// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the messages of a client in the kernel: its inbox, and the work item that tells it what is new.
 *
 * Each of the sources of what is new has its turn, so that none starves: a peer that sends without pause
 * keeps no offer and no done() waiting for more than one callback of another kind.
 * Locking: see api/box_priv.h.
 */
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "api/box_priv.h"
#include "krp_ioctl_message.h"
#include "krp_message.h"
#include "message/connect.h"
#include "node/port.h"

static_assert(KRCORE_MESSAGE_MAX == KRP_MESSAGE_DATA_MAX);
static_assert(KRCORE_USER_MAX == KRP_MESSAGE_USER_MAX);
static_assert(KRCORE_SERVICE_MIN == KRP_SERVICE_USER_MIN);
static_assert(KRCORE_BACKLOG_MAX == KRP_BACKLOG_MAX);
static_assert(KRCORE_DEPTH_MAX == KRP_CONN_DEPTH_MAX);
static_assert(KRCORE_INBOX_MIN == KRP_INBOX_BYTES_MIN && KRCORE_INBOX_MAX == KRP_INBOX_BYTES_MAX);

#define KRC_BOX_WALK 64 /* connections that are shown under one hold of the lock */
#define KRC_BOX_ROUNDS 64 /* callbacks before the work items of others have their turn */

struct workqueue_struct *krc_api_box_wq;

void krc_box_kick(struct krc_api_box *box)
{
	lockdep_assert_held(&box->lock);
	if (!box->stopped)
		queue_work(krc_api_box_wq, &box->work);
}

void krc_box_peer(struct krc_stream *stream, struct krcore_peer *ret_peer)
{
	struct krc_stream_peer peer;

	krc_stream_peer(stream, &peer);
	*ret_peer = (struct krcore_peer){
		.generation = peer.generation,
		.conn = peer.queue,
		.service = peer.service,
		.user_len = peer.user_len,
	};
	memcpy(ret_peer->gid, peer.gid, sizeof(ret_peer->gid));
	memcpy(ret_peer->user, peer.user, peer.user_len);
}

/* krc_inbox.arrived: letters are there. */
static void krc_box_arrived(struct krc_inbox *inbox)
{
	struct krc_api_box *box = container_of(inbox, struct krc_api_box, inbox);

	spin_lock(&box->lock);
	krc_box_kick(box);
	spin_unlock(&box->lock);
}

/* ---- connections by number */

static bool krc_box_before(struct rb_node *node, const struct rb_node *than)
{
	return rb_entry(node, struct krcore_conn, node)->number <
	       rb_entry(than, struct krcore_conn, node)->number;
}

void krc_box_enlist(struct krcore_conn *conn)
{
	struct krc_api_box *box = conn->box;

	spin_lock(&box->lock);
	conn->number = ++box->numbered;
	rb_add(&conn->node, &box->conns, krc_box_before);
	spin_unlock(&box->lock);
}

/* The first connection with this number or a higher one, or NULL. */
static struct krcore_conn *krc_box_from(struct krc_api_box *box, u32 number)
{
	struct rb_node *node = box->conns.rb_node;
	struct krcore_conn *conn, *from = NULL;

	lockdep_assert_held(&box->lock);
	while (node) {
		conn = rb_entry(node, struct krcore_conn, node);
		if (conn->number >= number)
			from = conn;
		node = conn->number >= number ? node->rb_left : node->rb_right;
	}
	return from;
}

/* ---- what is next */

static bool krc_box_next_sent(struct krc_api_box *box, struct krc_box_item *item)
{
	struct krc_api_send *send = list_first_entry_or_null(&box->sent, struct krc_api_send, sent);

	if (!send)
		return false;
	list_del_init(&send->sent);
	list_del_init(&send->list);
	send->conn->busy--; /* a done() may send again */
	item->send = send;
	item->conn = send->conn;
	return true;
}

static bool krc_box_next_news(struct krc_api_box *box, struct krc_box_item *item)
{
	struct krcore_conn *conn = list_first_entry_or_null(&box->news, struct krcore_conn, newsy);

	if (!conn)
		return false;
	list_del_init(&conn->newsy);
	item->news = krc_conn_due(conn, conn->stream);
	if (!item->news)
		return false; /* the task that has made it so will settle it */
	conn->news &= ~item->news;
	conn->told |= item->news;
	item->conn = conn;
	return true;
}

static bool krc_box_next_letter(struct krc_api_box *box, struct krc_box_item *item)
{
	struct krc_letter *letter = krc_inbox_take(&box->inbox);
	struct krcore_conn *conn;

	if (!letter)
		return false;
	conn = krc_stream_owner(letter->stream);
	item->letter = letter;
	item->conn = conn;
	item->stale = conn->closed;
	if (krc_conn_keeps(conn, letter) && !conn->closed) {
		list_add_tail(&letter->list, &conn->held);
		conn->held_nr++;
	}
	return true;
}

static bool krc_box_next_offer(struct krc_api_box *box, struct krc_box_item *item)
{
	struct krcore_listener *listener =
		list_first_entry_or_null(&box->offering, struct krcore_listener, offering);

	if (!listener)
		return false;
	item->letter = krc_inbox_take(&listener->offers);
	if (!item->letter) {
		list_del_init(&listener->offering);
		return false;
	}
	list_move_tail(&listener->offering, &box->offering);
	kref_get(&listener->ref);
	item->listener = listener;
	return true;
}

static bool (*const krc_box_sources[])(struct krc_api_box *box, struct krc_box_item *item) = {
	[KRC_BOX_SENT] = krc_box_next_sent,
	[KRC_BOX_NEWS] = krc_box_next_news,
	[KRC_BOX_LETTER] = krc_box_next_letter,
	[KRC_BOX_OFFER] = krc_box_next_offer,
};

static bool krc_box_has(struct krc_api_box *box)
{
	lockdep_assert_held(&box->lock);
	return !list_empty(&box->sent) || !list_empty(&box->news) || READ_ONCE(box->inbox.nr) ||
	       !list_empty(&box->offering);
}

/* Choose what is to be told next, and begin a callback. Return: whether there is something. */
static bool krc_box_next(struct krc_api_box *box, struct krc_box_item *item)
{
	bool found = false;
	u32 i;

	*item = (struct krc_box_item){};
	mutex_lock(&box->gate);
	spin_lock(&box->lock);
	for (i = 0; i < KRC_BOX_SOURCES && !found && !box->stopped; i++) {
		item->what = (box->source + i) % KRC_BOX_SOURCES;
		found = krc_box_sources[item->what](box, item);
	}
	if (found) {
		box->source = (item->what + 1) % KRC_BOX_SOURCES;
		box->turn++;
		box->teller = current;
		box->telling = item->conn ? (void *)item->conn : (void *)item->listener;
		if (item->conn)
			kref_get(&item->conn->ref);
	}
	spin_unlock(&box->lock);
	mutex_unlock(&box->gate);
	return found;
}

static void krc_box_told(struct krc_api_box *box)
{
	spin_lock(&box->lock);
	box->turn++;
	box->teller = NULL;
	box->telling = NULL;
	spin_unlock(&box->lock);
	wake_up_all(&box->told);
}

static void krc_box_work(struct work_struct *work)
{
	struct krc_api_box *box = container_of(work, struct krc_api_box, work);
	struct krc_box_item item;
	u32 round;

	for (round = 0; round < KRC_BOX_ROUNDS && krc_box_next(box, &item); round++) {
		if (item.what == KRC_BOX_OFFER)
			krc_listener_tell(&item);
		else
			krc_conn_tell(&item);
		krc_box_told(box);
		if (item.conn)
			krc_conn_put(item.conn);
	}
	spin_lock(&box->lock);
	if (krc_box_has(box))
		krc_box_kick(box);
	spin_unlock(&box->lock);
}

static bool krc_box_has_turned(struct krc_api_box *box, u32 turn)
{
	bool turned;

	spin_lock(&box->lock); /* behind the one that wakes */
	turned = box->turn != turn;
	spin_unlock(&box->lock);
	return turned;
}

void krc_box_wait(struct krc_api_box *box, const void *object)
{
	bool wait;
	u32 turn;

	spin_lock(&box->lock);
	turn = box->turn;
	wait = turn & 1 && box->teller != current && box->telling == object;
	spin_unlock(&box->lock);
	if (wait)
		wait_event(box->told, krc_box_has_turned(box, turn));
}

/* ---- diagnostics */

static void krc_box_describe(const struct krcore_conn *conn, struct krc_conn_info *ret_info)
{
	const struct krcore_client *client = conn->box->client;
	struct krc_stream_stats stats;
	struct krc_stream_peer peer;

	lockdep_assert_held(&conn->box->lock);
	krc_stream_stats(conn->stream, &stats);
	krc_stream_peer(conn->stream, &peer);
	*ret_info = (struct krc_conn_info){
		.client = client->number,
		.depth = conn->depth,
		.where = krc_stream_where(conn->stream),
		.how = { .connection = conn->number,
			 .state = peer.queue ? KRP_CONN_OPEN : KRP_CONN_OPENING,
			 .error = peer.err,
			 .outstanding = conn->busy,
			 .sent = stats.sent,
			 .received = stats.received,
			 .waiting = stats.waiting,
			 .unacked = stats.unacked,
			 .window = stats.window,
			 .backlog = stats.backlog,
			 .repeats = stats.repeats,
			 .gaps = stats.gaps,
			 .busy = stats.busy,
			 .foreign = stats.foreign },
	};
	if (peer.err)
		ret_info->how.state = KRP_CONN_DEAD;
	strscpy(ret_info->name, client->name, sizeof(ret_info->name));
	memcpy(ret_info->how.peer.gid, peer.gid, sizeof(peer.gid));
	ret_info->how.peer.service = peer.service;
	ret_info->how.peer.generation = peer.generation;
}

/* Show some. Return: 0: there are no more; 1: there may be; -1: @fn has refused one. */
static int krc_box_walk_some(struct krc_api_box *box, struct krc_conn_at *at,
			     int (*fn)(const struct krc_conn_info *info, void *arg), void *arg)
{
	struct krcore_conn *conn;
	struct krc_conn_info info;
	u32 shown;
	int ret = 1;

	spin_lock(&box->lock); /* those who bring messages wait for it */
	for (shown = 0; ret > 0 && shown < KRC_BOX_WALK; shown++) {
		conn = krc_box_from(box, at->conn);
		ret = conn ? 1 : 0;
		if (conn) {
			at->conn = conn->number;
			krc_box_describe(conn, &info);
			if (fn(&info, arg))
				ret = -1;
			else
				at->conn++;
		}
	}
	spin_unlock(&box->lock);
	return ret;
}

bool krc_box_walk(struct krc_api_box *box, struct krc_conn_at *at,
		  int (*fn)(const struct krc_conn_info *info, void *arg), void *arg)
{
	int more;

	do {
		more = krc_box_walk_some(box, at, fn, arg);
		cond_resched();
	} while (more > 0);
	return more < 0;
}

/* ---- beginning and end */

int krc_box_make(struct krcore_client *client, u32 bytes)
{
	struct krc_api_box *box;
	int err;

	if (bytes < KRCORE_INBOX_MIN || bytes > KRCORE_INBOX_MAX || bytes % KRCORE_INBOX_MIN)
		return -EINVAL;
	err = krc_port_messages_possible(client->port);
	if (err)
		return err;
	box = kzalloc(sizeof(*box), GFP_KERNEL);
	if (!box)
		return -ENOMEM;
	box->pages = bytes / KRCORE_INBOX_MIN;
	err = krc_charge_inbox(client->user, box->pages);
	if (err) {
		kfree(box);
		return err;
	}
	kref_init(&box->ref);
	box->client = client;
	krc_inbox_init(&box->inbox, bytes / KRP_MESSAGE_UNIT, krc_box_arrived);
	box->inbox.charge = &client->charge;
	INIT_WORK(&box->work, krc_box_work);
	mutex_init(&box->gate);
	spin_lock_init(&box->lock);
	INIT_LIST_HEAD(&box->listeners);
	box->conns = RB_ROOT;
	INIT_LIST_HEAD(&box->sent);
	INIT_LIST_HEAD(&box->news);
	INIT_LIST_HEAD(&box->offering);
	init_waitqueue_head(&box->told);
	client->box = box;
	return 0;
}

static void krc_box_free(struct kref *ref)
{
	struct krc_api_box *box = container_of(ref, struct krc_api_box, ref);

	mutex_destroy(&box->gate);
	kfree(box);
}

void krc_box_put(struct krc_api_box *box)
{
	kref_put(&box->ref, krc_box_free);
}

static struct krcore_listener *krc_box_listener(struct krc_api_box *box)
{
	struct krcore_listener *listener;

	spin_lock(&box->lock);
	listener = list_first_entry_or_null(&box->listeners, struct krcore_listener, list);
	spin_unlock(&box->lock);
	return listener;
}

static struct krcore_conn *krc_box_conn(struct krc_api_box *box)
{
	struct krcore_conn *conn;

	spin_lock(&box->lock);
	conn = krc_box_from(box, 0);
	spin_unlock(&box->lock);
	return conn;
}

void krc_box_end(struct krcore_client *client)
{
	struct krc_api_box *box = client->box;
	struct krcore_listener *listener;
	struct krcore_conn *conn, *next;
	LIST_HEAD(stopped);

	if (!box)
		return;
	spin_lock(&box->lock);
	box->stopped = true;
	spin_unlock(&box->lock);
	cancel_work_sync(&box->work); /* the last callback may have closed some */
	while ((listener = krc_box_listener(box)))
		krcore_listener_close(listener);
	/* what one connection has received may be freed in a done() of another */
	while ((conn = krc_box_conn(box))) {
		krc_conn_stop(conn, true);
		list_add_tail(&conn->list, &stopped);
	}
	list_for_each_entry_safe(conn, next, &stopped, list) {
		list_del(&conn->list);
		krc_conn_finish(conn);
	}
	WARN_ON(box->inbox.nr || box->inbox.streams || box->backlog || !list_empty(&box->sent));
	krc_uncharge_inbox(client->user, box->pages);
	client->box = NULL;
	krc_box_put(box);
}
