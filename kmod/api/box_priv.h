/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the files of this folder share of messages: the box of a client, its listeners and
 * connections. What they promise their users stands in include/krcore/kernel.h.
 *
 * What message/message.h tells is noted in the box, and its work item tells the client, one thing at a
 * time, so that a callback that sleeps keeps nobody else waiting. An object is closed in this order:
 * nothing more of it is noted or told (closed, under krc_api_box.lock); a callback that is under way
 * returns (krc_box_wait()); its stream or listener ends; and then it is freed.
 *
 * Locking, from the outside in: krc_api_box.gate (mutex; what is to be told is chosen, and a new
 * connection gets its stream), krc_api_box.lock (spinlock; all else, inside it krc_inbox.lock and
 * krc_stream.lock). Neither is held over a callback of the client, nor the latter over a call of
 * message/message.h but krc_inbox_take(), krc_stream_owner(), krc_stream_peer(), krc_stream_stats().
 */
#ifndef KRC_API_BOX_PRIV_H
#define KRC_API_BOX_PRIV_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "api/api_priv.h"
#include "message/inbox.h"
#include "message/large.h"

struct krc_service;

/**
 * struct krc_api_box - The messages of a client.
 * @ref: its client, and each connection until its last message has ended.
 * @client: its client.
 * @inbox: letters of connections.
 * @pages: size of @inbox, in KRCORE_INBOX_MIN; what is charged.
 * @work: work item that tells the client.
 * @gate: see above.
 * @lock: guards all below, and what structs krcore_listener and krcore_conn say.
 * @stopped: the client is being closed: nothing more is told.
 * @backlog: offers that may wait, of all listeners, and of those that were until the last of their offers
 *	is answered; at most @pages.
 * @listeners: listeners.
 * @conns: connections, by their numbers: a list of them goes on at any, without those before it.
 * @numbered: how many there have been.
 * @sent: messages that have ended, and whose done() is to be called.
 * @news: connections with something to tell that is no letter, see krcore_conn.news.
 * @offering: listeners that have offers.
 * @source: which of these is looked at first, next time.
 * @turn: odd: a callback is under way; counts their beginnings and ends.
 * @teller: the task that is in it, or NULL.
 * @telling: the connection or listener that it is of; only compared.
 * @told: woken when @turn becomes even.
 */
struct krc_api_box {
	struct kref ref;
	struct krcore_client *client;
	struct krc_inbox inbox;
	u32 pages;
	struct work_struct work;
	struct mutex gate;
	spinlock_t lock; /* see above */
	bool stopped;
	u32 backlog;
	struct list_head listeners;
	struct rb_root conns;
	u32 numbered;
	struct list_head sent;
	struct list_head news;
	struct list_head offering;
	u32 source;
	u32 turn;
	struct task_struct *teller;
	const void *telling;
	wait_queue_head_t told;
};

/**
 * struct krcore_listener - A listener.
 * @ref: the client's, and the box's while it tells of an offer.
 * @box: its box.
 * @list: entry in krc_api_box.listeners.
 * @service: what is published; NULL: nothing, yet or by a test.
 * @offers: its offers.
 * @backlog: how many may wait.
 * @listener: as the port has it.
 * @offering: entry in krc_api_box.offering.
 * @closed: nothing more is told.
 * @offered: as in struct krcore_listen_conf.
 * @arg: for @offered.
 */
struct krcore_listener {
	struct kref ref;
	struct krc_api_box *box;
	struct list_head list;
	struct krc_service *service;
	struct krc_inbox offers;
	u32 backlog;
	struct krc_listener *listener;
	struct list_head offering;
	bool closed;
	void (*offered)(struct krcore_offer *offer, const struct krcore_peer *peer, void *arg);
	void *arg;
};

/**
 * struct krcore_offer - An offer that the client is told of; on the stack of whoever tells.
 * @box: box of the listener.
 * @letter: it; NULL: it was accepted.
 */
struct krcore_offer {
	struct krc_api_box *box;
	struct krc_letter *letter;
};

/* krcore_conn.news and .told: what is told that is no letter */
#define KRC_CONN_OPENED 0x1
#define KRC_CONN_DIED 0x2

/**
 * struct krcore_conn - A connection.
 * @ref: the client's, that of whoever tells, and each message under way.
 * @box: its box; counted.
 * @node: entry in krc_api_box.conns, until it is closed.
 * @list: entry of a list of krc_box_end().
 * @number: from 1, never used again by this client.
 * @charge: charge for it.
 * @stream: its stream, until it is closed.
 * @ops: callbacks.
 * @arg: for @ops.
 * @depth: messages that may be under way.
 * @closed: nothing more is told or taken.
 * @peer: whom it was with, once it is closed.
 * @newsy: entry in krc_api_box.news, if krc_conn_due().
 * @news: KRC_CONN_* to be told.
 * @told: those that were.
 * @err: of what it has died.
 * @sends: messages and READs that were taken and whose done() was not called.
 * @busy: how many.
 * @held: krc_letter.list of letters that the client has.
 * @held_nr: how many.
 */
struct krcore_conn {
	struct kref ref;
	struct krc_api_box *box;
	struct rb_node node;
	struct list_head list;
	u32 number;
	struct krc_charge charge;
	struct krc_stream *stream;
	const struct krcore_conn_ops *ops;
	void *arg;
	u32 depth;
	bool closed;
	struct krcore_peer peer;
	struct list_head newsy;
	u32 news;
	u32 told;
	int err;
	struct list_head sends;
	u32 busy;
	struct list_head held;
	u32 held_nr;
};

/**
 * struct krc_api_send - A message under way, or a READ of one.
 * @list: entry in krcore_conn.sends.
 * @sent: entry in krc_api_box.sent, once it has ended.
 * @conn: its connection, counted.
 * @out: the message; NULL: it is krc_api_fetch.send.
 * @mr: region that it uses, counted until it has ended; or NULL.
 * @ended: krc_out.end or krc_large.end was called.
 * @err: with this.
 * @orphan: its connection was closed, and done() called.
 * @done: as in struct krcore_send.
 * @arg: for @done.
 */
struct krc_api_send {
	struct list_head list;
	struct list_head sent;
	struct krcore_conn *conn;
	struct krc_out *out;
	struct krc_mr *mr;
	bool ended;
	int err;
	bool orphan;
	void (*done)(struct krcore_conn *conn, void *arg, int status);
	void *arg;
};

/**
 * struct krc_api_fetch - A READ of a large message.
 * @send: what it has in common with a message; first.
 * @large: the READ.
 */
struct krc_api_fetch {
	struct krc_api_send send;
	struct krc_large large;
};

/**
 * enum krc_box_what - What a client is to be told next.
 * @KRC_BOX_SENT: a message that it sent, or a READ, has ended.
 * @KRC_BOX_NEWS: a connection was accepted, or has died.
 * @KRC_BOX_LETTER: a letter of a connection.
 * @KRC_BOX_OFFER: an offer of a listener.
 * @KRC_BOX_SOURCES: how many of these krc_box_next() looks at.
 */
enum krc_box_what {
	KRC_BOX_SENT,
	KRC_BOX_NEWS,
	KRC_BOX_LETTER,
	KRC_BOX_OFFER,
	KRC_BOX_SOURCES,
};

/**
 * struct krc_box_item - One thing to tell.
 * @what: enum krc_box_what.
 * @conn: connection that it is of, counted; OFFER: NULL.
 * @send: SENT: what has ended, in no list any more.
 * @news: NEWS: KRC_CONN_OPENED or KRC_CONN_DIED.
 * @letter: LETTER: it; in krcore_conn.held if krc_conn_keeps(). OFFER: the offer.
 * @stale: LETTER: the connection is closed, and not told.
 * @listener: OFFER: its listener, counted.
 */
struct krc_box_item {
	enum krc_box_what what;
	struct krcore_conn *conn;
	struct krc_api_send *send;
	u32 news;
	struct krc_letter *letter;
	bool stale;
	struct krcore_listener *listener;
};

extern struct workqueue_struct *krc_api_box_wq; /* its items wait as long as callbacks sleep */

/**
 * krc_box_make() - Give a new client messages.
 * @client: client with port and user; its box is set.
 * @bytes: size of the inbox.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL (@bytes), -EOPNOTSUPP (the port receives no messages), -EDQUOT, -ENOMEM, -ENODEV.
 */
int krc_box_make(struct krcore_client *client, u32 bytes);

/**
 * krc_box_end() - Close listeners and connections of a client, and its box.
 * @client: client that is being closed; no-op without a box.
 *
 * Context: may sleep; no callback.
 */
void krc_box_end(struct krcore_client *client);

/**
 * krc_box_put() - Drop a reference.
 * @box: box.
 *
 * Context: may sleep.
 */
void krc_box_put(struct krc_api_box *box);

/**
 * krc_box_kick() - There is something to tell.
 * @box: box, locked.
 *
 * Context: process.
 */
void krc_box_kick(struct krc_api_box *box);

/**
 * krc_box_wait() - Wait for the callback that is under way if it is of this object, unless this task is
 * in it: those of others may be waiting for this task.
 * @box: box, not locked.
 * @object: connection or listener, which is closed: no other callback of it begins.
 *
 * Context: may sleep.
 */
void krc_box_wait(struct krc_api_box *box, const void *object);

/**
 * krc_box_peer() - Whom a stream is with, as clients are told.
 * @stream: stream.
 * @ret_peer: out.
 *
 * Context: process.
 */
void krc_box_peer(struct krc_stream *stream, struct krcore_peer *ret_peer);

/**
 * krc_box_enlist() - A connection has its stream: its client has it from now on.
 * @conn: connection without number.
 *
 * Context: process.
 */
void krc_box_enlist(struct krcore_conn *conn);

/**
 * krc_box_walk() - Show the connections of a client, as krc_conn_walk().
 * @box: box of a client that is not being closed.
 * @at: in: the first one; out: that which @fn refused, if it has.
 * @fn: see krc_conn_walk().
 * @arg: for @fn.
 *
 * Context: process.
 * Return: whether @fn has refused one.
 */
bool krc_box_walk(struct krc_api_box *box, struct krc_conn_at *at,
		  int (*fn)(const struct krc_conn_info *info, void *arg), void *arg);

/**
 * krc_conn_put() - Drop a reference.
 * @conn: connection.
 *
 * Context: may sleep.
 */
void krc_conn_put(struct krcore_conn *conn);

/**
 * krc_conn_stop() - The first half of krcore_conn_close(): nothing more is told, its stream ends, and each
 * message under way gets its done().
 * @conn: connection, not closed. Its list entry is free then, its letters are still there.
 * @abort: as in krcore_conn_close().
 *
 * Context: may sleep.
 */
void krc_conn_stop(struct krcore_conn *conn, bool abort);

/**
 * krc_conn_finish() - The second half: free the letters that the client has, and the connection.
 * @conn: connection, stopped.
 *
 * Context: may sleep.
 */
void krc_conn_finish(struct krcore_conn *conn);

/**
 * krc_conn_due() - Which of its news a connection tells now.
 * @conn: connection, not closed, krc_api_box.lock held.
 * @stream: its stream.
 *
 * That it has died is told when the client was told of all else. Context: process.
 * Return: KRC_CONN_OPENED, KRC_CONN_DIED, or 0: none yet.
 */
u32 krc_conn_due(const struct krcore_conn *conn, struct krc_stream *stream);

/**
 * krc_conn_settle() - Something was told of a connection, or there are news: list it if some are due.
 * @conn: connection that the caller has a reference to; no-op if it is closed.
 * @stream: its stream.
 *
 * Context: process; krc_api_box.lock not held.
 */
void krc_conn_settle(struct krcore_conn *conn, struct krc_stream *stream);

/**
 * krc_conn_keeps() - Whether a letter is the client's until it frees it.
 * @conn: connection.
 * @letter: letter of it.
 *
 * Context: any.
 * Return: whether: a message, also a large one if the client wants such.
 */
bool krc_conn_keeps(const struct krcore_conn *conn, const struct krc_letter *letter);

/**
 * krc_send_make() - Make a message of a client.
 * @client: client.
 * @from: as krcore_send() has it, not checked; copied.
 *
 * Context: may sleep.
 * Return: it, without connection, for krc_send_join() or krc_send_free(); or ERR_PTR: -EINVAL, -EMSGSIZE,
 * -EACCES, -ERANGE, -ENOMEM.
 */
struct krc_api_send *krc_send_make(struct krcore_client *client, const struct krcore_send *from);

/**
 * krc_send_free() - Free what has no connection.
 * @send: message or READ; not under way.
 *
 * Context: any.
 */
void krc_send_free(struct krc_api_send *send);

/**
 * krc_send_join() - Give a message or READ its connection, with a place in its depth, and charge it.
 * @send: it, without connection.
 * @conn: connection.
 *
 * Context: process; krc_api_box.lock not held.
 * Return: 0; or -EDQUOT, -ESHUTDOWN, -EAGAIN: see krcore_send(); then it has none.
 */
int krc_send_join(struct krc_api_send *send, struct krcore_conn *conn);

/**
 * krc_send_unjoin() - The stream has not taken a message or READ: undo krc_send_join(), and free it.
 * @send: it; no done() is called. Its stream is not closed meanwhile, see kernel.h.
 *
 * Context: may sleep; krc_api_box.lock not held.
 */
void krc_send_unjoin(struct krc_api_send *send);

/**
 * krc_send_drop() - The last of a message or READ that has ended, and whose done() was called.
 * @send: it, in no list.
 *
 * Context: may sleep.
 */
void krc_send_drop(struct krc_api_send *send);

/**
 * krc_fetch_forget() - A letter is freed: of its large message nothing more will be fetched.
 * @conn: its connection, not closed.
 * @letter: letter, still there; no-op unless it is of a large message.
 *
 * What was not fetched is discarded; a READ that is under way is the last one.
 * Context: may sleep; krc_api_box.lock not held.
 */
void krc_fetch_forget(struct krcore_conn *conn, const struct krc_letter *letter);

/**
 * krc_conn_tell() - Tell the client of a connection what is new.
 * @item: item that is not an OFFER.
 *
 * Context: may sleep; the work item of the box.
 */
void krc_conn_tell(const struct krc_box_item *item);

/**
 * krc_listener_make() - Have connections to a service offered to a client.
 * @client: client with a box.
 * @conf: as krcore_listen() has it; valid.
 *
 * Nothing is published. Context: may sleep.
 * Return: the listener, for krcore_listener_close(); or ERR_PTR: -ENOSPC (no room in the box), -ENODEV
 * (the port has gone), the errors of krc_listen().
 */
struct krcore_listener *krc_listener_make(struct krcore_client *client,
					  const struct krcore_listen_conf *conf);

/**
 * krc_listener_drop() - Drop a reference to a listener.
 * @listener: listener.
 *
 * Context: may sleep.
 */
void krc_listener_drop(struct krcore_listener *listener);

/**
 * krc_listener_tell() - Tell a client of an offer; what it does not accept is refused.
 * @item: OFFER.
 *
 * Context: may sleep; the work item of the box.
 */
void krc_listener_tell(const struct krc_box_item *item);

#endif /* KRC_API_BOX_PRIV_H */
