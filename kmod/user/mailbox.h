/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the mailbox of a context: its inbox, the numbers of its connections, and how much of what
 * they send and fetch may be under way.
 *
 * Locking: krc_mailbox.take (one task at a time takes letters, or ends a connection, whose letters
 * leave the inbox then), inside krc_talk.control; krc_mailbox.lock inside both. No call of
 * message/message.h but krc_stream_peer() and krc_stream_stats() is made under the spinlock, whose
 * upcalls take it.
 */
#ifndef KRC_MAILBOX_H
#define KRC_MAILBOX_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "message/inbox.h"
#include "user/context.h"
#include "user/posted.h"

struct krc_talk;

/**
 * struct krc_mailbox - The mailbox of a context.
 * @ctx: the context, which has it until it is freed.
 * @inbox: letters.
 * @pages: size of @inbox, in KRP_INBOX_BYTES_MIN; what is charged.
 * @take: see above.
 * @talks: struct krc_talk by number.
 * @next: where the search for a free number begins; under the lock of @talks.
 * @lock: guards all below, and what struct krc_talk says.
 * @news: talks with something to tell now that is no letter, see krc_talk.news.
 * @depth: messages and READs that may be under way.
 * @busy: those that are, and completions that posted buffers may have.
 * @backlog: offers that may wait, of all services that are listened to, and of those that were
 *	until the last of their offers is answered; at most @pages.
 * @posted: buffers for large messages; has a lock of its own.
 */
struct krc_mailbox {
	struct krc_context *ctx;
	struct krc_inbox inbox;
	u32 pages;
	struct mutex take;
	struct xarray talks;
	u32 next;
	spinlock_t lock; /* see above */
	struct list_head news;
	u32 depth;
	u32 busy;
	u32 backlog;
	struct krc_mailbox_posted posted;
};

/**
 * krc_ioc_inbox() - KRP_IOC_INBOX: make the mailbox of a context.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h; on an error nothing has changed.
 */
int krc_ioc_inbox(struct krc_context *ctx, struct krp_inbox *arg);

/**
 * krc_mailbox_of() - Get the mailbox of a context.
 * @ctx: context.
 *
 * Context: any.
 * Return: it, as long as @ctx; NULL: there is none yet.
 */
struct krc_mailbox *krc_mailbox_of(struct krc_context *ctx);

/**
 * krc_mailbox_pending() - Whether something can be taken.
 * @box: mailbox, or NULL.
 *
 * Context: not in interrupts.
 * Return: true if KRP_IOC_RECV would find something.
 */
bool krc_mailbox_pending(struct krc_mailbox *box);

/**
 * krc_mailbox_listen() - Have connections to a service offered to a context.
 * @ctx: context; its port is entered.
 * @service: number, which is the context's.
 * @backlog: how many may wait, 1 to KRP_BACKLOG_MAX.
 *
 * Context: may sleep.
 * Return: the listener, or ERR_PTR: -EBADFD (no mailbox), -ENOSPC (no room in it), and the errors
 * of krc_listen().
 */
struct krc_listener *krc_mailbox_listen(struct krc_context *ctx, u16 service, u32 backlog);

/**
 * krc_mailbox_unlisten() - Undo krc_mailbox_listen().
 * @listener: listener; freed. NULL is allowed.
 *
 * Its places in the mailbox become free when its last offer is answered, or it would be a way to
 * have any number of offers. Context: may sleep; the port need not be entered.
 */
void krc_mailbox_unlisten(struct krc_listener *listener);

/**
 * krc_mailbox_begin() - Count what is to be under way.
 * @box: mailbox.
 * @nr: so many completions are to come.
 *
 * Context: not in interrupts.
 * Return: whether as much may be; then krc_mailbox_unbegin() ends it.
 */
bool krc_mailbox_begin(struct krc_mailbox *box, u32 nr);

/**
 * krc_mailbox_unbegin() - Some of what krc_mailbox_begin() has counted is not under way any more.
 * @box: mailbox.
 * @nr: how many.
 *
 * Context: not in interrupts.
 */
void krc_mailbox_unbegin(struct krc_mailbox *box, u32 nr);

/**
 * krc_mailbox_reserve() - Reserve what is under way needs: completions, a charge for each.
 * @box: mailbox, which has counted them.
 * @nr: how many.
 *
 * Context: not in interrupts.
 * Return: 0, -EAGAIN (the ring is full), -EDQUOT (limit of requests).
 */
int krc_mailbox_reserve(struct krc_mailbox *box, u32 nr);

/**
 * krc_mailbox_unreserve() - Undo krc_mailbox_reserve().
 * @box: mailbox.
 * @nr: for so many of them.
 *
 * Context: not in interrupts.
 */
void krc_mailbox_unreserve(struct krc_mailbox *box, u32 nr);

/**
 * krc_mailbox_complete() - Tell the program of a context that something has ended.
 * @box: mailbox, which has krc_mailbox_reserve()d the completion.
 * @cqe: it.
 *
 * Its charge is given back first. Context: not in interrupts.
 */
void krc_mailbox_complete(struct krc_mailbox *box, const struct krp_cqe *cqe);

/**
 * krc_mailbox_end() - Abort all connections of a context, and refuse what is offered.
 * @ctx: context that no other thread uses, without listeners.
 *
 * What a peer may still READ ends later, and keeps the context. Context: may sleep.
 */
void krc_mailbox_end(struct krc_context *ctx);

/**
 * krc_mailbox_free() - Free the mailbox of a context.
 * @ctx: context that has no connection any more.
 *
 * Context: may sleep.
 */
void krc_mailbox_free(struct krc_context *ctx);

#endif /* KRC_MAILBOX_H */
