/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: connections of programs: their numbers and states, who they are with, their end.
 *
 * A connection keeps its number until its last message and READ have completed, which may be after
 * the program has ended it. Locking: krc_talk.control, see user/mailbox.h for the others.
 */
#ifndef KRC_TALK_H
#define KRC_TALK_H

#include <linux/kref.h>
#include <linux/workqueue.h>

#include "user/mailbox.h"

/**
 * enum krc_talk_state - State of a connection. No program knows the first and the last one.
 * @KRC_TALK_MAKING: being opened or offered.
 * @KRC_TALK_OFFERED: a peer has opened it; krc_talk.offer.
 * @KRC_TALK_OPEN: krc_talk.stream; it may have died.
 * @KRC_TALK_CLOSED: its program has ended it.
 */
enum krc_talk_state {
	KRC_TALK_MAKING,
	KRC_TALK_OFFERED,
	KRC_TALK_OPEN,
	KRC_TALK_CLOSED,
};

/* krc_talk.news and .told: what is told by letters that are made when they are taken */
#define KRC_NEWS_OPENED 0x1
#define KRC_NEWS_DIED 0x2

/**
 * struct krc_talk - A connection.
 * @ref: its number, each call that uses it, each message and READ under way.
 * @box: mailbox of its context, which is counted.
 * @id: its number.
 * @charge: charge for it; none while it is an offer.
 * @control: guards what follows, up to @depth.
 * @state: changed by krc_talk_set_state() only; read without the lock by krc_talk_get().
 * @offer: OFFERED: the letter.
 * @stream: OPEN: its stream, else NULL. Changed with krc_mailbox.take held, too, or once, when
 *	nobody else can end it; taken away under krc_mailbox.lock, before it is ended.
 * @shut: it sends no more.
 * @held: krc_out.list of messages that wait for a queue (KRP_SEND_AFTER), and of those behind them.
 * @depth: messages and READs that may be under way.
 * @release: krc_talk_release(); counts the connection while it is queued.
 * @due: what one of @held waits for has ended; set without the lock.
 * @list: entry in krc_mailbox.news, if krc_talk_due(); guarded by krc_mailbox.lock, as is all
 *	below.
 * @news: KRC_NEWS_* to be told.
 * @told: those that were.
 * @err: of what it has died.
 * @busy: messages and READs under way.
 * @larges: struct krc_send of announced messages under way.
 * @placed: posted buffers that its messages go to; under krc_mailbox_posted.lock, as is:
 * @placed_bytes: bytes of these buffers that they take up.
 */
struct krc_talk {
	struct kref ref;
	struct krc_mailbox *box;
	u32 id;
	struct krc_charge charge;
	struct mutex control;
	u32 state;
	struct krc_letter *offer;
	struct krc_stream *stream;
	bool shut;
	struct list_head held;
	u32 depth;
	struct work_struct release;
	bool due;
	struct list_head list;
	u32 news;
	u32 told;
	int err;
	u32 busy;
	struct list_head larges;
	u32 placed;
	u64 placed_bytes;
};

/**
 * krc_ioc_open() - KRP_IOC_OPEN: open a connection.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h; out: connection, reads, generation.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h; then there is no connection.
 */
int krc_ioc_open(struct krc_context *ctx, struct krp_open *arg);

/**
 * krc_ioc_accept() - KRP_IOC_ACCEPT: accept or refuse a connection.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_accept(struct krc_context *ctx, struct krp_accept *arg);

/**
 * krc_ioc_shut() - KRP_IOC_SHUT: end a connection or one direction of it.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_shut(struct krc_context *ctx, struct krp_shut *arg);

/**
 * krc_ioc_conn_query() - KRP_IOC_CONN_QUERY: tell how a connection is.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_conn_query(struct krc_context *ctx, struct krp_conn_query *arg);

/**
 * krc_talk_make() - Make a connection with a number, which no program can name yet.
 * @box: mailbox.
 *
 * Context: may sleep.
 * Return: it, counted twice: by its state, until it is closed, and for the caller, who gives it to
 * krc_talk_offer() or krc_talk_unmake() if it is for an offer, with krc_mailbox.take held; or
 * ERR_PTR: -ENOMEM, -EBUSY (no number is free).
 */
struct krc_talk *krc_talk_make(struct krc_mailbox *box);

/**
 * krc_talk_offer() - Let the program name a connection that was made for an offer.
 * @talk: connection; the caller's count is dropped.
 * @offer: letter, which is the connection's from here on.
 *
 * Context: may sleep.
 */
void krc_talk_offer(struct krc_talk *talk, struct krc_letter *offer);

/**
 * krc_talk_unmake() - Undo krc_talk_make().
 * @talk: connection.
 *
 * Context: may sleep.
 */
void krc_talk_unmake(struct krc_talk *talk);

/**
 * krc_talk_close() - The program is done with a connection: its number is not its own any more.
 * @talk: connection, krc_talk.control held; not closed yet.
 * @abort: see krc_stream_close(). An offer is refused.
 *
 * Context: may sleep.
 */
void krc_talk_close(struct krc_talk *talk, bool abort);

/**
 * krc_talk_enter() - Find a connection by number, and lock it.
 * @ctx: context.
 * @id: number.
 *
 * Context: may sleep.
 * Return: it, OFFERED or OPEN, for krc_talk_leave(); or ERR_PTR: -EBADFD (no mailbox), -ENOENT,
 * -EINTR.
 */
struct krc_talk *krc_talk_enter(struct krc_context *ctx, u32 id);

/**
 * krc_talk_leave() - Undo krc_talk_enter(), and send what has come due meanwhile.
 * @talk: connection.
 *
 * Context: may sleep.
 */
void krc_talk_leave(struct krc_talk *talk);

/**
 * krc_talk_put() - Drop a reference; the last one frees the connection and its number.
 * @talk: connection.
 *
 * Context: may sleep; the context may be freed, if the caller does not hold it.
 */
void krc_talk_put(struct krc_talk *talk);

/**
 * krc_talk_peer() - Whom a stream is connected to, as programs are told.
 * @stream: stream.
 * @ret_peer: out.
 *
 * Context: not in interrupts.
 */
void krc_talk_peer(struct krc_stream *stream, struct krp_letter_peer *ret_peer);

/**
 * krc_talk_due() - Which of its news a connection tells now.
 * @talk: connection, krc_mailbox.lock held.
 * @stream: its stream.
 *
 * That it has died is told when all letters that came before have been freed. Context: process.
 * Return: KRC_NEWS_OPENED, KRC_NEWS_DIED, or 0: none yet.
 */
u32 krc_talk_due(const struct krc_talk *talk, struct krc_stream *stream);

/**
 * krc_talk_settle() - A letter was freed, or there are news: list the connection if some are due.
 * @talk: connection, which is not closed, krc_mailbox.lock not held.
 * @stream: its stream.
 *
 * So whoever takes letters looks at none that has nothing to tell. Context: process.
 */
void krc_talk_settle(struct krc_talk *talk, struct krc_stream *stream);

/**
 * krc_talk_end_all() - Abort all connections of a mailbox.
 * @box: mailbox of a context that no other thread uses.
 *
 * Context: may sleep.
 */
void krc_talk_end_all(struct krc_mailbox *box);

/**
 * krc_talk_release() - A queue that a message waits for has completed: have it sent.
 * @talk: connection; the message counts it.
 *
 * By a work item, which waits for nobody, since it stands before those of other programs: a task
 * that has krc_talk.control does it instead when it leaves.
 * Context: any.
 */
void krc_talk_release(struct krc_talk *talk);

/**
 * krc_talk_reserve() - Reserve what a message or READ needs, with a reference to its connection.
 * @talk: connection that the caller has a reference to.
 *
 * Context: not in interrupts.
 * Return: 0, for krc_talk_unreserve() or krc_talk_complete(); -EAGAIN (as much as may be is under
 * way, or the ring is full), -EDQUOT (limit of requests).
 */
int krc_talk_reserve(struct krc_talk *talk);

/**
 * krc_talk_unreserve() - Undo krc_talk_reserve().
 * @talk: connection.
 *
 * Context: may sleep.
 */
void krc_talk_unreserve(struct krc_talk *talk);

/**
 * krc_talk_complete() - Tell a program that a message or READ has ended; ends its reservation.
 * @talk: connection, not to be used by the caller any more.
 * @cqe: the completion, but for its queue.
 *
 * Context: may sleep.
 */
void krc_talk_complete(struct krc_talk *talk, struct krp_cqe *cqe);

#endif /* KRC_TALK_H */
