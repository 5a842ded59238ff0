// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: KRP_IOC_RECV. A letter leaves the inbox when the program has it: what can't be copied is put
 * back. That a connection was accepted, or has died, is no letter of the inbox, since it must not
 * fail for lack of memory; it is made one here. It is told that a connection was accepted before
 * anything else of it, and that it has died when all else was taken.
 * Locking: krc_mailbox.take; not held while waiting.
 */
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "base/spin.h"
#include "message/connect.h"
#include "user/recv.h"
#include "user/talk.h"
#include "user/wait.h"

#define KRC_RECV_ALIGN 8 /* of krp_letter.offset */

/* Copy a letter and its bytes to the program. Return: 0, -EMSGSIZE, -EFAULT; then it has none. */
static int krc_recv_put(struct krp_recv *arg, struct krp_letter *letter, const void *bytes,
			u32 length)
{
	struct krp_letter __user *to = u64_to_user_ptr(arg->letters);
	u32 offset = ALIGN(arg->used, KRC_RECV_ALIGN);

	if (offset > arg->bytes || length > arg->bytes - offset) {
		if (!arg->taken)
			arg->used = length;
		return -EMSGSIZE;
	}
	if (!(letter->flags & KRP_LETTER_POSTED))
		letter->offset = offset;
	letter->bytes = length;
	if (copy_to_user(u64_to_user_ptr(arg->buffer + offset), bytes, length) ||
	    copy_to_user(to + arg->taken, letter, sizeof(*letter)))
		return -EFAULT;
	arg->used = offset + length;
	arg->taken++;
	return 0;
}

/* ---- what is no letter of the inbox */

/* Take the first connection with something to tell. Return: it, counted; or NULL. */
static struct krc_talk *krc_recv_news(struct krc_mailbox *box)
{
	struct krc_talk *talk;

	lockdep_assert_held(&box->take);
	spin_lock(&box->lock);
	talk = list_first_entry_or_null(&box->news, struct krc_talk, list);
	if (talk)
		kref_get(&talk->ref);
	spin_unlock(&box->lock);
	return talk;
}

/* The program knows. */
static void krc_recv_told(struct krc_talk *talk, struct krc_stream *stream, u32 news)
{
	spin_lock(&talk->box->lock);
	talk->told |= news;
	talk->news &= ~news;
	list_del_init(&talk->list);
	spin_unlock(&talk->box->lock);
	krc_talk_settle(talk, stream); /* it may have died, too */
}

/* Tell that a connection was accepted, or has died. Return: 0, or why it could not be. */
static int krc_recv_tell(struct krp_recv *arg, struct krc_talk *talk, struct krc_stream *stream,
			 u32 news, int err)
{
	struct krp_letter letter = { .connection = talk->id };
	struct krp_letter_peer peer = {};

	if (news == KRC_NEWS_DIED) {
		letter.kind = KRP_LETTER_DIED;
		letter.status = err;
		err = krc_recv_put(arg, &letter, NULL, 0);
	} else {
		letter.kind = KRP_LETTER_OPENED;
		krc_talk_peer(stream, &peer);
		err = krc_recv_put(arg, &letter, &peer, sizeof(peer));
	}
	if (!err)
		krc_recv_told(talk, stream, news);
	return err;
}

/* Tell what is due of a connection in the list of news. Return: as krc_recv_tell(), or -EAGAIN. */
static int krc_recv_tell_due(struct krc_talk *talk, struct krp_recv *arg)
{
	struct krc_stream *stream = READ_ONCE(talk->stream);
	u32 news;
	int died;

	lockdep_assert_held(&talk->box->take);
	if (!stream)
		return -EAGAIN; /* the call that made it has not returned yet */
	spin_lock(&talk->box->lock);
	news = krc_talk_due(talk, stream);
	died = talk->err;
	spin_unlock(&talk->box->lock);
	if (news)
		return krc_recv_tell(arg, talk, stream, news, died);
	krc_recv_told(talk, stream, 0);
	return 0;
}

/* Tell what is to be told now of all connections. Return: 0, or why it could not be. */
static int krc_recv_tell_all(struct krc_mailbox *box, struct krp_recv *arg)
{
	struct krc_talk *talk;
	int err = 0;

	while (!err && arg->taken < arg->count && (talk = krc_recv_news(box))) {
		err = krc_recv_tell_due(talk, arg);
		krc_talk_put(talk);
	}
	return err;
}

/* ---- letters */

static int krc_recv_offer(struct krc_mailbox *box, struct krp_recv *arg, struct krc_letter *from)
{
	struct krp_letter letter = { .kind = KRP_LETTER_OFFER };
	struct krp_letter_peer peer = {};
	struct krc_talk *talk;
	int err;

	talk = krc_talk_make(box);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	letter.connection = talk->id;
	krc_talk_peer(from->stream, &peer);
	err = krc_recv_put(arg, &letter, &peer, sizeof(peer));
	if (err)
		krc_talk_unmake(talk);
	else
		krc_talk_offer(talk, from);
	return err;
}

/* A letter of a connection. Return: 0: the program has it, or it was dropped; else an error. */
static int krc_recv_letter(struct krp_recv *arg, struct krc_letter *from)
{
	static const u8 kinds[] = {
		[KRC_LETTER_MESSAGE] = KRP_LETTER_MESSAGE,
		[KRC_LETTER_LARGE] = KRP_LETTER_LARGE,
		[KRC_LETTER_ENDED] = KRP_LETTER_ENDED,
	};
	struct krc_talk *talk = krc_stream_owner(from->stream);
	struct krp_letter letter = {
		.seq = from->seq,
		.connection = talk->id,
		.length = from->length,
		.imm = from->imm,
		.offset = from->offset,
		.kind = kinds[from->kind],
		.flags = (from->notify ? KRP_LETTER_AFTER : 0) |
			 (from->posted ? KRP_LETTER_POSTED : 0),
	};
	u32 length = from->kind == KRC_LETTER_MESSAGE ? from->length : 0;
	struct krc_stream *stream = READ_ONCE(talk->stream);
	struct krc_stream_peer peer;
	int err = stream ? 0 : -EAGAIN; /* see krc_recv_tell_due() */

	krc_stream_peer(from->stream, &peer);
	if (!err && peer.opener && !(READ_ONCE(talk->told) & KRC_NEWS_OPENED))
		err = krc_recv_tell(arg, talk, from->stream, KRC_NEWS_OPENED, 0);
	if (!err && arg->taken == arg->count)
		err = -EMSGSIZE;
	if (!err && !(READ_ONCE(talk->told) & KRC_NEWS_DIED))
		err = krc_recv_put(arg, &letter, from->bytes, length);
	if (err)
		return err;
	krc_letter_free(from);
	krc_talk_settle(talk, stream);
	return 0;
}

/* A letter stays: put it back, for whichever thread comes. */
static void krc_recv_untake(struct krc_mailbox *box, struct krc_letter *letter, int err)
{
	krc_inbox_untake(&box->inbox, letter);
	if (err != -EAGAIN) /* others may have looked meanwhile, and sleep */
		krc_wait_wake(box->ctx);
}

/* Take what is there and fits. Return: 0; or why no more, if that is not that there is no more. */
static int krc_recv_take(struct krc_mailbox *box, struct krp_recv *arg)
{
	struct krc_letter *letter;
	int err = krc_recv_tell_all(box, arg);

	lockdep_assert_held(&box->take);
	while (!err && arg->taken < arg->count && (letter = krc_inbox_take(&box->inbox))) {
		if (letter->kind == KRC_LETTER_OFFER)
			err = krc_recv_offer(box, arg, letter);
		else
			err = krc_recv_letter(arg, letter);
		if (err)
			krc_recv_untake(box, letter, err);
		else if (fatal_signal_pending(current))
			break;
	}
	return err ?: krc_recv_tell_all(box, arg);
}

/* ---- waiting */

static bool krc_recv_over(struct krc_mailbox *box)
{
	return krc_mailbox_pending(box) || READ_ONCE(box->ctx->dead);
}

static bool krc_recv_poll(void *arg)
{
	return krc_recv_over(arg);
}

/* Wait until there is something. @timeout: jiffies. Return: those left, from 1; or an error. */
static long krc_recv_wait(struct krc_mailbox *box, long timeout)
{
	struct krc_context *ctx = box->ctx;
	long left;

	if (timeout && !krc_recv_over(box))
		krc_spin(krc_recv_poll, box);
	if (!krc_recv_over(box) && timeout && !krc_wait_room(&ctx->wait))
		return -EBUSY;
	left = wait_event_interruptible_timeout(ctx->wait, krc_recv_over(box), timeout);
	if (krc_mailbox_pending(box))
		return max(left, 1L);
	if (left < 0)
		return -EINTR; /* as KRP_IOC_WAIT */
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	return left ?: timeout ? -ETIMEDOUT : -EAGAIN;
}

int krc_ioc_recv(struct krc_context *ctx, struct krp_recv *arg)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	bool once = !arg->timeout_ms;
	long left;
	int err;

	if (!box)
		return -EBADFD;
	if (!arg->count || arg->count > KRP_RECV_MAX || arg->flags || arg->taken || arg->used)
		return -EINVAL;
	left = arg->timeout_ms == KRP_WAIT_FOREVER ? MAX_SCHEDULE_TIMEOUT
						   : msecs_to_jiffies(arg->timeout_ms);
	do {
		left = krc_recv_wait(box, left);
		if (left < 0)
			return left;
		if (mutex_lock_interruptible(&box->take))
			return -EINTR;
		err = krc_recv_take(box, arg);
		mutex_unlock(&box->take);
		if (!arg->taken && (!err || err == -EAGAIN)) {
			if (once)
				return -EAGAIN;
			if (signal_pending(current))
				return -EINTR;
			/* another thread was faster, or is about to give a connection its number */
			err = -EAGAIN;
			cond_resched();
		}
	} while (!arg->taken && err == -EAGAIN);
	return arg->taken ? 0 : err;
}
