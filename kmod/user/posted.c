// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: buffers that programs have posted for large messages before these come: KRP_IOC_POST_RECV.
 *
 * A buffer waits in the list of its mailbox. When a message is announced that fits, its stream gets
 * one of its slots (krc_inbox.place), and READs the message to it. A buffer for one message
 * completes with that. One for several (libfabric's FI_MULTI_RECV) gives away what is left of it,
 * until it is full or taken back: it is closed then, leaves the list, and completes behind the last
 * of its messages.
 * Work for all programs looks for a place, with locks held: so it looks at few buffers, and all
 * that a buffer may need, memory and completions, it has from when it was posted on.
 * Locking: see user/posted.h.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/region.h"
#include "message/connect.h"
#include "message/large.h"
#include "user/posted.h"
#include "user/talk.h"

/**
 * struct krc_posted_slot - A message that goes to a buffer.
 * @large: its READ.
 * @buffer: buffer.
 * @talk: its connection, counted; NULL when the message has ended.
 * @offset: where it is in the buffer.
 * @takes: bytes of the buffer that it takes up.
 */
struct krc_posted_slot {
	struct krc_large large;
	struct krc_posted_buffer *buffer;
	struct krc_talk *talk;
	u32 offset;
	u32 takes;
};

/**
 * struct krc_posted_buffer - A buffer.
 * @list: entry of krc_mailbox_posted.waiting, or of those that are being completed; then free.
 * @box: mailbox; its context is counted.
 * @mr: its region; counted.
 * @user_data: returned in the completions, and in letters.
 * @addr: its first byte.
 * @length: bytes.
 * @least: see krp_post_recv.
 * @messages: how many it takes.
 * @taken: messages that it has taken. This and what is below: under krc_mailbox_posted.lock.
 * @used: bytes that these took up.
 * @under_way: those of them that have not ended.
 * @closed: it takes no more.
 * @err: status of its own completion.
 * @slots: @messages of them; the first @taken are or were used.
 */
struct krc_posted_buffer {
	struct list_head list;
	struct krc_mailbox *box;
	struct krc_mr *mr;
	u64 user_data;
	u64 addr;
	u32 length;
	u32 least;
	u32 messages;
	u32 taken;
	u32 used;
	u32 under_way;
	bool closed;
	int err;
	struct krc_posted_slot slots[];
};

/* ---- completions */

/* How many a buffer has: one for several messages has one of its own, behind theirs. */
static u32 krc_posted_due(u32 messages)
{
	return messages > 1 ? messages + 1 : 1;
}

static u32 krc_posted_most(const struct krc_mailbox *box)
{
	return clamp(box->depth / 2, 1U, (u32)KRP_RECV_POSTED_MAX);
}

/* Tell the program: with a completion that is due no more. */
static void krc_posted_tell(struct krc_mailbox *box, const struct krp_cqe *cqe)
{
	spin_lock_bh(&box->posted.lock);
	box->posted.nr--;
	spin_unlock_bh(&box->posted.lock);
	krc_mailbox_unbegin(box, 1); /* a program that sees the completion may post */
	krc_mailbox_complete(box, cqe);
}

/* A buffer that is closed, and to which no message goes, is lent no more. @cqe: its last one. */
static void krc_posted_complete(struct krc_posted_buffer *posted, const struct krp_cqe *cqe)
{
	struct krc_mailbox *box = posted->box;
	struct krc_context *ctx = box->ctx;
	u32 unused = posted->messages > 1 ? posted->messages - posted->taken : 0;

	spin_lock_bh(&box->posted.lock);
	box->posted.nr -= unused;
	box->posted.buffers--;
	box->posted.bytes -= posted->length;
	spin_unlock_bh(&box->posted.lock);
	krc_mailbox_unreserve(box, unused);
	krc_mailbox_unbegin(box, unused);
	/* before the program is told that it may deregister the region */
	krc_mr_put(posted->mr, 1);
	kvfree(posted);
	krc_posted_tell(box, cqe);
	krc_context_put(ctx);
}

/* The same for one that no completion of a message has been kept for. */
static void krc_posted_complete_own(struct krc_posted_buffer *posted)
{
	const struct krp_cqe cqe = {
		.user_data = posted->user_data,
		.status = posted->err,
		.bytes = posted->used,
		.opcode = KRP_OP_RECV,
	};

	krc_posted_complete(posted, &cqe);
}

/* Whether messages of a connection go to a buffer. */
static bool krc_posted_has(const struct krc_posted_buffer *posted, const struct krc_talk *talk)
{
	u32 i;

	lockdep_assert_held(&posted->box->posted.lock);
	for (i = 0; i < posted->taken; i++)
		if (posted->slots[i].talk == talk)
			return true;
	return false;
}

/* A message has ended, and is under way no more. Return: whether its buffer completes. */
static bool krc_posted_leave(struct krc_posted_slot *slot)
{
	struct krc_posted_buffer *posted = slot->buffer;
	struct krc_mailbox *box = posted->box;
	struct krc_talk *talk = slot->talk;
	bool last;

	spin_lock_bh(&box->posted.lock);
	slot->talk = NULL;
	if (!krc_posted_has(posted, talk))
		talk->placed--;
	talk->placed_bytes -= slot->takes;
	posted->under_way--;
	last = posted->closed && !posted->under_way;
	spin_unlock_bh(&box->posted.lock);
	return last;
}

/* krc_large.end: the READ of a message is not under way any more. */
static void krc_posted_read(struct krc_large *large, int err)
{
	struct krc_posted_slot *slot = container_of(large, struct krc_posted_slot, large);
	struct krc_posted_buffer *posted = slot->buffer;
	struct krc_talk *talk = slot->talk;
	bool several = posted->messages > 1;
	const struct krp_cqe cqe = {
		.user_data = posted->user_data,
		.status = err,
		.bytes = err ? 0 : large->length,
		.queue = talk->id,
		.opcode = KRP_OP_RECV,
		.flags = several ? KRP_CQE_MORE : 0,
		.offset = slot->offset,
	};

	if (several) /* before another message's end completes the buffer */
		krc_posted_tell(posted->box, &cqe);
	if (!krc_posted_leave(slot))
		posted = NULL; /* whoever is last frees it, with the slot */
	krc_talk_put(talk);
	if (posted && several)
		krc_posted_complete_own(posted);
	else if (posted)
		krc_posted_complete(posted, &cqe);
}

/* ---- a message comes */

/* Bytes of a buffer that a message takes up. */
static u32 krc_posted_takes(const struct krc_posted_buffer *posted, u32 length)
{
	u32 left = posted->length - posted->used;

	return posted->messages == 1 ? left : min_t(u32, ALIGN(length, KRP_RECV_ALIGN), left);
}

/*
 * Whether a connection may have a place. Where there are others, its messages are in half of the
 * buffers at most, since they keep these from completing, and take up half of the bytes.
 */
static bool krc_posted_allowed(const struct krc_posted_buffer *posted, const struct krc_talk *talk,
			       u32 length)
{
	const struct krc_mailbox *box = posted->box;
	u64 bytes = talk->placed_bytes + krc_posted_takes(posted, length);

	lockdep_assert_held(&box->posted.lock);
	if (READ_ONCE(box->inbox.streams) <= 1 || (posted->messages == 1 && !talk->placed))
		return true;
	if (bytes > box->posted.bytes / 2)
		return false;
	return talk->placed < max(box->posted.buffers / 2, 1U) || krc_posted_has(posted, talk);
}

/*
 * Return: the first buffer with a place, of those that are looked at; or NULL. One that had a place
 * once, and has too few bytes left, goes behind the others, so that these are looked at.
 */
static struct krc_posted_buffer *krc_posted_find(struct krc_mailbox *box,
						 const struct krc_talk *talk, u32 length)
{
	struct krc_posted_buffer *posted, *next;
	u32 looks = 0;

	lockdep_assert_held(&box->posted.lock);
	list_for_each_entry_safe(posted, next, &box->posted.waiting, list) {
		if (looks++ == KRP_RECV_LOOKS)
			break;
		if (posted->length - posted->used < length) {
			if (posted->length >= length)
				list_move_tail(&posted->list, &box->posted.waiting);
		} else if (krc_posted_allowed(posted, talk, length)) {
			return posted;
		}
	}
	return NULL;
}

static void krc_posted_close(struct krc_posted_buffer *posted)
{
	lockdep_assert_held(&posted->box->posted.lock);
	posted->closed = true;
	list_del_init(&posted->list);
}

/* The next slot of a buffer, which has a place for so many bytes. */
static struct krc_posted_slot *krc_posted_take(struct krc_posted_buffer *posted,
					       struct krc_talk *talk, u32 length)
{
	struct krc_posted_slot *slot = &posted->slots[posted->taken];

	lockdep_assert_held(&posted->box->posted.lock);
	talk->placed += !krc_posted_has(posted, talk);
	posted->taken++;
	slot->buffer = posted;
	slot->talk = talk;
	slot->offset = posted->used;
	slot->takes = krc_posted_takes(posted, length);
	slot->large.local_addr = posted->addr + slot->offset;
	slot->large.lkey = posted->mr->key.lkey;
	slot->large.end = krc_posted_read;
	posted->used += slot->takes;
	posted->under_way++;
	talk->placed_bytes += slot->takes;
	if (posted->taken == posted->messages || posted->length - posted->used < posted->least)
		krc_posted_close(posted);
	return slot;
}

/* krc_inbox.place */
static struct krc_large *krc_posted_place(struct krc_inbox *inbox, struct krc_letter *letter)
{
	struct krc_mailbox *box = container_of(inbox, struct krc_mailbox, inbox);
	struct krc_talk *talk = krc_stream_owner(letter->stream);
	struct krc_posted_slot *slot = NULL;
	struct krc_posted_buffer *posted;

	spin_lock(&box->posted.lock);
	posted = krc_posted_find(box, talk, letter->length);
	if (posted) {
		kref_get(&talk->ref);
		slot = krc_posted_take(posted, talk, letter->length);
		letter->seq = posted->user_data;
		letter->offset = slot->offset;
	}
	spin_unlock(&box->posted.lock);
	return slot ? &slot->large : NULL;
}

void krc_posted_init(struct krc_mailbox *box)
{
	spin_lock_init(&box->posted.lock);
	INIT_LIST_HEAD(&box->posted.waiting);
	box->inbox.place = krc_posted_place;
}

/* ---- posting */

/* Count completions that are to come. Return: whether there may be as many. */
static bool krc_posted_begin(struct krc_mailbox *box, u32 due)
{
	bool room;

	spin_lock_bh(&box->posted.lock);
	room = box->posted.nr + due <= krc_posted_most(box);
	box->posted.nr += room ? due : 0;
	spin_unlock_bh(&box->posted.lock);
	return room;
}

static int krc_posted_reserve(struct krc_mailbox *box, u32 due)
{
	int err = -EAGAIN;

	if (!krc_posted_begin(box, due))
		return err;
	if (krc_mailbox_begin(box, due)) {
		err = krc_mailbox_reserve(box, due);
		if (!err)
			return 0;
		krc_mailbox_unbegin(box, due);
	}
	spin_lock_bh(&box->posted.lock);
	box->posted.nr -= due;
	spin_unlock_bh(&box->posted.lock);
	return err;
}

/* Make a buffer. Return: it, with reservations; or ERR_PTR. */
static struct krc_posted_buffer *krc_posted_new(struct krc_mailbox *box,
						const struct krp_post_recv *arg)
{
	struct krc_mr *mr = krc_context_mr_into(box->ctx, arg->mr, arg->addr, arg->length);
	struct krc_posted_buffer *posted;
	int err = -ENOMEM;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	posted = kvzalloc(struct_size(posted, slots, arg->messages), GFP_KERNEL_ACCOUNT);
	if (!posted)
		goto err_mr;
	err = krc_posted_reserve(box, krc_posted_due(arg->messages));
	if (err)
		goto err_mr;
	kref_get(&box->ctx->ref);
	posted->box = box;
	posted->mr = mr;
	posted->user_data = arg->user_data;
	posted->addr = arg->addr;
	posted->length = arg->length;
	posted->least = max(arg->least, 1U);
	posted->messages = arg->messages;
	return posted;

err_mr:
	kvfree(posted);
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
	struct krc_mr *mr;

	if (IS_ERR(posted))
		return PTR_ERR(posted);
	mr = posted->mr;
	krc_mr_get(mr, 1); /* the buffer may complete at once */
	spin_lock_bh(&box->posted.lock);
	box->posted.buffers++;
	box->posted.bytes += posted->length;
	list_add_tail(&posted->list, &box->posted.waiting);
	spin_unlock_bh(&box->posted.lock);
	/* another thread that deregisters it may have looked before the buffer was in the list */
	if (!krc_posted_registered(ctx, arg->mr, mr))
		krc_posted_withdraw(ctx, mr);
	if (READ_ONCE(ctx->dead)) /* likewise, the end of the port */
		krc_posted_end(ctx, -ENODEV);
	krc_mr_put(mr, 1);
	return 0;
}

/* ---- taking back */

/*
 * Take buffers back: those in @mr unless that is NULL, those with *@user_data unless that is.
 * Return: how many.
 */
static u32 krc_posted_cancel(struct krc_mailbox *box, const struct krc_mr *mr, const u64 *user_data,
			     int err)
{
	struct krc_posted_buffer *posted, *next;
	LIST_HEAD(idle);
	u32 nr = 0;

	spin_lock_bh(&box->posted.lock);
	list_for_each_entry_safe(posted, next, &box->posted.waiting, list) {
		if ((mr && posted->mr != mr) || (user_data && posted->user_data != *user_data))
			continue;
		posted->err = err;
		krc_posted_close(posted);
		if (!posted->under_way)
			list_add_tail(&posted->list, &idle);
		nr++;
	}
	spin_unlock_bh(&box->posted.lock);
	list_for_each_entry_safe(posted, next, &idle, list) {
		list_del_init(&posted->list);
		krc_posted_complete_own(posted);
	}
	return nr;
}

/* Whether an argument that posts a buffer makes sense. */
static bool krc_posted_sane(const struct krc_mailbox *box, const struct krp_post_recv *arg)
{
	return arg->length && arg->length <= KRP_SEND_LARGE_MAX && arg->messages &&
	       arg->messages <= KRP_RECV_MESSAGES_MAX && arg->least <= arg->length &&
	       !(arg->messages == 1 && arg->least) &&
	       krc_posted_due(arg->messages) <= krc_posted_most(box);
}

int krc_ioc_post_recv(struct krc_context *ctx, struct krp_post_recv *arg)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);

	if (!box)
		return -EBADFD;
	if (arg->flags & ~(u32)KRP_RECV_CANCEL || arg->rsvd)
		return -EINVAL;
	if (arg->flags & KRP_RECV_CANCEL) {
		if (arg->addr || arg->mr || arg->length || arg->messages || arg->least)
			return -EINVAL;
		return krc_posted_cancel(box, NULL, &arg->user_data, -ECANCELED) ? 0 : -ENOENT;
	}
	if (!krc_posted_sane(box, arg))
		return -EINVAL;
	if (READ_ONCE(ctx->dead))
		return -ENODEV;
	return krc_posted_post(ctx, box, arg);
}

void krc_posted_withdraw(struct krc_context *ctx, const struct krc_mr *mr)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);

	if (box)
		krc_posted_cancel(box, mr, NULL, -ECANCELED);
}

void krc_posted_end(struct krc_context *ctx, int err)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);

	if (box)
		krc_posted_cancel(box, NULL, NULL, err);
}
