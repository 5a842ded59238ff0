// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: buffers that programs have posted for large messages before these come: KRP_IOC_POST_RECV.
 *
 * A buffer waits in the list of its mailbox. When a message is announced that fits, its stream gets
 * it (krc_inbox.place), and READs the message to it; at the end of that READ the buffer completes.
 * Work for all programs looks for a place, with locks held: so it looks at few buffers, and a list
 * has no more than KRP_RECV_POSTED_MAX.
 * Locking: see user/posted.h.
 */
#include <linux/slab.h>

#include "mem/region.h"
#include "message/connect.h"
#include "message/large.h"
#include "user/posted.h"
#include "user/talk.h"

/**
 * struct krc_posted_buffer - A buffer.
 * @large: READ of the message that goes to it.
 * @list: entry of krc_mailbox_posted.waiting, then free.
 * @box: mailbox; its context is counted.
 * @talk: connection whose message goes to it, counted; NULL: none does.
 * @mr: its region; counted.
 * @user_data: returned in the completion, and in the letter.
 * @length: bytes.
 */
struct krc_posted_buffer {
	struct krc_large large;
	struct list_head list;
	struct krc_mailbox *box;
	struct krc_talk *talk;
	struct krc_mr *mr;
	u64 user_data;
	u32 length;
};

/* A buffer that is in no list is not lent any more; the program is told. */
static void krc_posted_complete(struct krc_posted_buffer *posted, int err)
{
	struct krc_mailbox *box = posted->box;
	struct krc_talk *talk = posted->talk;
	struct krc_context *ctx = box->ctx;
	struct krp_cqe cqe = {
		.user_data = posted->user_data,
		.status = err,
		.bytes = err ? 0 : posted->large.length,
		.queue = talk ? talk->id : 0,
		.opcode = KRP_OP_RECV,
	};

	spin_lock_bh(&box->posted.lock);
	box->posted.nr--;
	if (talk)
		talk->placed--;
	spin_unlock_bh(&box->posted.lock);
	/* before the program is told that it may deregister the region */
	krc_mr_put(posted->mr, 1);
	kfree(posted);
	krc_uncharge_requests(ctx->user, 1);
	krc_mailbox_unbegin(box); /* a program that sees the completion may send */
	krc_mailbox_complete(box, &cqe);
	if (talk)
		krc_talk_put(talk);
	krc_context_put(ctx);
}

/* ---- a message comes */

/* krc_large.end: its READ is not under way any more. */
static void krc_posted_read(struct krc_large *large, int err)
{
	krc_posted_complete(container_of(large, struct krc_posted_buffer, large), err);
}

/* Whether a connection may have one more buffer: with others it shares them. */
static bool krc_posted_allowed(const struct krc_mailbox *box, const struct krc_talk *talk)
{
	lockdep_assert_held(&box->posted.lock);
	return READ_ONCE(box->inbox.streams) <= 1 || talk->placed < max(box->posted.nr / 2, 1U);
}

/* Return: the first buffer that is large enough, of those that are looked at; or NULL. */
static struct krc_posted_buffer *krc_posted_find(const struct krc_mailbox *box, u32 length)
{
	struct krc_posted_buffer *posted;
	u32 looks = 0;

	lockdep_assert_held(&box->posted.lock);
	list_for_each_entry(posted, &box->posted.waiting, list) {
		if (looks++ == KRP_RECV_LOOKS)
			break;
		if (posted->length >= length)
			return posted;
	}
	return NULL;
}

/* krc_inbox.place */
static struct krc_large *krc_posted_place(struct krc_inbox *inbox, struct krc_stream *stream,
					  u32 length, u64 *ret_name)
{
	struct krc_mailbox *box = container_of(inbox, struct krc_mailbox, inbox);
	struct krc_talk *talk = krc_stream_owner(stream);
	struct krc_posted_buffer *posted = NULL;

	spin_lock(&box->posted.lock);
	if (krc_posted_allowed(box, talk))
		posted = krc_posted_find(box, length);
	if (posted) {
		list_del_init(&posted->list);
		kref_get(&talk->ref);
		posted->talk = talk;
		talk->placed++;
		*ret_name = posted->user_data;
	}
	spin_unlock(&box->posted.lock);
	return posted ? &posted->large : NULL;
}

void krc_posted_init(struct krc_mailbox *box)
{
	spin_lock_init(&box->posted.lock);
	INIT_LIST_HEAD(&box->posted.waiting);
	box->inbox.place = krc_posted_place;
}

/* ---- posting */

/* Count a buffer. Return: whether as many may be posted. */
static bool krc_posted_begin(struct krc_mailbox *box)
{
	u32 most = clamp(box->depth / 2, 1U, (u32)KRP_RECV_POSTED_MAX);
	bool room;

	spin_lock_bh(&box->posted.lock);
	room = box->posted.nr < most;
	box->posted.nr += room;
	spin_unlock_bh(&box->posted.lock);
	return room;
}

static int krc_posted_reserve(struct krc_mailbox *box)
{
	int err = -EAGAIN;

	if (!krc_posted_begin(box))
		return err;
	if (krc_mailbox_begin(box)) {
		err = krc_mailbox_reserve(box);
		if (!err)
			return 0;
		krc_mailbox_unbegin(box);
	}
	spin_lock_bh(&box->posted.lock);
	box->posted.nr--;
	spin_unlock_bh(&box->posted.lock);
	return err;
}

/* Make a buffer. Return: it, with a reservation; or ERR_PTR. */
static struct krc_posted_buffer *krc_posted_new(struct krc_mailbox *box,
						const struct krp_post_recv *arg)
{
	struct krc_mr *mr = krc_context_mr_into(box->ctx, arg->mr, arg->addr, arg->length);
	struct krc_posted_buffer *posted;
	int err = -ENOMEM;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	posted = kzalloc(sizeof(*posted), GFP_KERNEL_ACCOUNT);
	if (!posted)
		goto err_mr;
	err = krc_posted_reserve(box);
	if (err)
		goto err_mr;
	kref_get(&box->ctx->ref);
	posted->box = box;
	posted->mr = mr;
	posted->user_data = arg->user_data;
	posted->length = arg->length;
	posted->large.local_addr = arg->addr;
	posted->large.lkey = mr->key.lkey;
	posted->large.end = krc_posted_read;
	return posted;

err_mr:
	kfree(posted);
	krc_mr_put(mr, 1);
	return ERR_PTR(err);
}

/* Whether a handle still names a region. */
static bool krc_posted_registered(struct krc_context *ctx, u32 handle, const struct krc_mr *mr)
{
	struct krc_mr *now = krc_context_mr(ctx, handle);

	if (now)
		krc_mr_put(now, 1);
	return now == mr;
}

static int krc_posted_post(struct krc_context *ctx, struct krc_mailbox *box,
			   const struct krp_post_recv *arg)
{
	struct krc_posted_buffer *posted = krc_posted_new(box, arg);
	const struct krc_mr *mr;

	if (IS_ERR(posted))
		return PTR_ERR(posted);
	mr = posted->mr;
	spin_lock_bh(&box->posted.lock);
	list_add_tail(&posted->list, &box->posted.waiting);
	spin_unlock_bh(&box->posted.lock);
	/* another thread that deregisters it may have looked before the buffer was in the list */
	if (!krc_posted_registered(ctx, arg->mr, mr))
		krc_posted_withdraw(ctx, mr);
	return 0;
}

/* ---- taking back */

/* Take buffers back: those in @mr unless that is NULL, those with *@user_data unless that is. */
static u32 krc_posted_cancel(struct krc_mailbox *box, const struct krc_mr *mr, const u64 *user_data)
{
	struct krc_posted_buffer *posted, *next;
	LIST_HEAD(taken);
	u32 nr = 0;

	spin_lock_bh(&box->posted.lock);
	list_for_each_entry_safe(posted, next, &box->posted.waiting, list)
		if ((!mr || posted->mr == mr) && (!user_data || posted->user_data == *user_data))
			list_move_tail(&posted->list, &taken);
	spin_unlock_bh(&box->posted.lock);
	list_for_each_entry_safe(posted, next, &taken, list) {
		list_del_init(&posted->list);
		krc_posted_complete(posted, -ECANCELED);
		nr++;
	}
	return nr;
}

int krc_ioc_post_recv(struct krc_context *ctx, struct krp_post_recv *arg)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	bool cancel = arg->flags & KRP_RECV_CANCEL;

	if (!box)
		return -EBADFD;
	if (arg->flags & ~(u32)KRP_RECV_CANCEL || arg->rsvd || arg->length > KRP_SEND_LARGE_MAX)
		return -EINVAL;
	if (cancel ? arg->addr || arg->mr || arg->length : !arg->length)
		return -EINVAL;
	if (cancel)
		return krc_posted_cancel(box, NULL, &arg->user_data) ? 0 : -ENOENT;
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	return krc_posted_post(ctx, box, arg);
}

void krc_posted_withdraw(struct krc_context *ctx, const struct krc_mr *mr)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);

	if (box)
		krc_posted_cancel(box, mr, NULL);
}

void krc_posted_end(struct krc_mailbox *box)
{
	krc_posted_cancel(box, NULL, NULL);
}
