// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: sending the messages of programs, and fetching those that are large.
 *
 * What is copied is charged to the memory cgroup of the program, and bounded by its limit of
 * requests. A region is counted as long as a peer may READ it.
 * Locking: see user/mailbox.h.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "mem/region.h"
#include "message/connect.h"
#include "message/large.h"
#include "user/after.h"
#include "user/send.h"

#define KRC_SEND_BATCH 8 /* struct krp_send_wr copied from the program at once */

/**
 * struct krc_fetch - A READ of a large message.
 * @large: the READ.
 * @talk: connection; counted until the end.
 * @mr: where the bytes go; likewise.
 * @user_data: returned in the completion.
 */
struct krc_fetch {
	struct krc_large large;
	struct krc_talk *talk;
	struct krc_mr *mr;
	u64 user_data;
};

static void krc_send_free(struct kref *ref)
{
	struct krc_send *snd = container_of(ref, struct krc_send, ref);

	krc_out_free(snd->out);
	if (snd->mr)
		krc_mr_put(snd->mr, 1);
	krc_after_end(snd->after);
	kfree(snd);
}

static void krc_send_put(struct krc_send *snd)
{
	kref_put(&snd->ref, krc_send_free);
}

/* krc_out.end: it is not under way any more. */
static void krc_send_end(struct krc_out *out, int err)
{
	struct krc_send *snd = out->owner;
	struct krc_talk *talk = snd->talk;
	struct krp_cqe cqe = {
		.user_data = snd->user_data,
		.status = err,
		.bytes = err ? 0 : out->length,
		.opcode = KRP_OP_SEND,
	};

	spin_lock(&talk->box->lock);
	list_del_init(&snd->list);
	spin_unlock(&talk->box->lock);
	krc_send_put(snd); /* before the program is told that it may deregister the region */
	krc_talk_complete(talk, &cqe);
}

/* Fill a message that is copied. Return: it, or ERR_PTR. */
static struct krc_out *krc_send_copy(const struct krp_send_wr *wr)
{
	struct krc_out *out;

	if (wr->length > KRP_SEND_COPY_MAX)
		return ERR_PTR(-EMSGSIZE);
	out = krc_out_alloc(wr->length, GFP_KERNEL_ACCOUNT);
	if (!out)
		return ERR_PTR(-ENOMEM);
	if (!copy_from_user(out->bytes, u64_to_user_ptr(wr->addr), wr->length))
		return out;
	krc_out_free(out);
	return ERR_PTR(-EFAULT);
}

/* Make a message that is announced. Return: it, with *@ret_mr counted; or ERR_PTR. */
static struct krc_out *krc_send_announce(struct krc_context *ctx, const struct krp_send_wr *wr,
					 struct krc_mr **ret_mr)
{
	struct krc_out *out;
	struct krc_mr *mr;
	int err;

	if (!wr->length || wr->length > KRP_SEND_LARGE_MAX)
		return ERR_PTR(-EMSGSIZE);
	mr = krc_context_mr(ctx, wr->mr);
	if (!mr)
		return ERR_PTR(-ENOENT);
	err = mr->access & KRP_ACCESS_MESSAGE ? krc_mr_check(mr, wr->addr, wr->length, false)
					      : -EACCES;
	out = err ? ERR_PTR(err) : krc_out_alloc(0, GFP_KERNEL_ACCOUNT) ?: ERR_PTR(-ENOMEM);
	if (IS_ERR(out)) {
		krc_mr_put(mr, 1);
		return out;
	}
	out->large = true;
	out->length = wr->length;
	out->addr = wr->addr;
	out->rkey = mr->key.rkey;
	*ret_mr = mr;
	return out;
}

/* Whether flags, and what depends on them, are as they may be. */
static bool krc_send_flags_valid(const struct krp_send_wr *wr)
{
	bool after = wr->flags & KRP_SEND_AFTER;

	if (wr->flags & ~(u32)(KRP_SEND_HURRY | KRP_SEND_AFTER) ||
	    !krp_is_zero(wr->rsvd, sizeof(wr->rsvd)))
		return false;
	return after ? !wr->mr : !wr->queue;
}

/* Make a message of a program, without a connection. Return: it, or ERR_PTR. */
static struct krc_send *krc_send_new(struct krc_context *ctx, const struct krp_send_wr *wr)
{
	struct krc_send *snd;
	struct krc_out *out;

	if (!krc_send_flags_valid(wr))
		return ERR_PTR(-EINVAL);
	snd = kzalloc(sizeof(*snd), GFP_KERNEL_ACCOUNT);
	if (!snd)
		return ERR_PTR(-ENOMEM);
	kref_init(&snd->ref);
	INIT_LIST_HEAD(&snd->list);
	out = wr->mr ? krc_send_announce(ctx, wr, &snd->mr) : krc_send_copy(wr);
	if (IS_ERR(out)) {
		krc_send_put(snd);
		return ERR_CAST(out);
	}
	out->owner = snd;
	out->end = krc_send_end;
	out->imm = wr->imm;
	out->hurry = wr->flags & KRP_SEND_HURRY;
	out->notify = wr->flags & KRP_SEND_AFTER;
	snd->out = out;
	snd->user_data = wr->user_data;
	return snd;
}

/* Give a message its connection, with a reservation. Return: 0, or an error; then not. */
static int krc_send_join(struct krc_send *snd, struct krc_talk *talk)
{
	int err = krc_talk_reserve(talk);

	if (err)
		return err;
	snd->talk = talk;
	if (snd->mr) {
		spin_lock(&talk->box->lock);
		list_add_tail(&snd->list, &talk->larges);
		spin_unlock(&talk->box->lock);
	}
	return 0;
}

void krc_send_undo(struct krc_send *snd)
{
	struct krc_talk *talk = snd->talk;

	if (talk) {
		spin_lock(&talk->box->lock);
		list_del_init(&snd->list);
		spin_unlock(&talk->box->lock);
		krc_talk_unreserve(talk);
	}
	krc_send_put(snd);
}

struct krc_send *krc_send_first(struct krc_talk *talk, u64 user)
{
	struct krp_send_wr wr;
	struct krc_send *snd;
	int err;

	if (copy_from_user(&wr, u64_to_user_ptr(user), sizeof(wr)))
		return ERR_PTR(-EFAULT);
	if (wr.mr || wr.connection || wr.flags & KRP_SEND_AFTER)
		return ERR_PTR(-EINVAL);
	if (wr.length > KRP_OPEN_FIRST_MAX)
		return ERR_PTR(-EMSGSIZE);
	snd = krc_send_new(talk->box->ctx, &wr);
	if (IS_ERR(snd))
		return snd;
	err = krc_send_join(snd, talk);
	if (!err)
		return snd;
	krc_send_undo(snd);
	return ERR_PTR(err);
}

/* Hand a message to its stream, or have it wait. Return: 0, or an error; then it is the caller's. */
static int krc_send_hand_in(struct krc_talk *talk, struct krc_send *snd,
			    const struct krp_send_wr *wr)
{
	struct krc_after *after = NULL;

	lockdep_assert_held(&talk->control);
	if (wr->flags & KRP_SEND_AFTER)
		after = krc_after_begin(talk, wr->queue);
	if (IS_ERR(after))
		return PTR_ERR(after);
	snd->after = after;
	if (!after && list_empty(&talk->held))
		return krc_stream_send(talk->stream, snd->out);
	if (talk->shut)
		return -EPIPE;
	list_add_tail(&snd->out->list, &talk->held);
	krc_send_held(talk); /* the queue may have been quicker */
	return 0;
}

void krc_send_held(struct krc_talk *talk)
{
	struct krc_out *out;

	lockdep_assert_held(&talk->control);
	while ((out = list_first_entry_or_null(&talk->held, struct krc_out, list))) {
		struct krc_send *snd = out->owner;
		int err = krc_after_outcome(snd->after);

		if (err == -EINPROGRESS)
			return;
		list_del_init(&out->list);
		if (!err)
			err = krc_stream_send(talk->stream, out);
		if (err)
			out->end(out, err);
	}
}

void krc_send_drop_held(struct krc_talk *talk)
{
	struct krc_out *out, *tmp;

	lockdep_assert_held(&talk->control);
	list_for_each_entry_safe(out, tmp, &talk->held, list) {
		list_del_init(&out->list);
		out->end(out, -ECANCELED);
	}
}

static int krc_send_one(struct krc_context *ctx, const struct krp_send_wr *wr)
{
	struct krc_send *snd = krc_send_new(ctx, wr);
	struct krc_talk *talk;
	int err;

	if (IS_ERR(snd))
		return PTR_ERR(snd);
	talk = krc_talk_enter(ctx, wr->connection);
	if (IS_ERR(talk)) {
		krc_send_put(snd);
		return PTR_ERR(talk);
	}
	err = talk->stream ? krc_send_join(snd, talk) : -ENOTCONN;
	if (!err)
		err = krc_send_hand_in(talk, snd, wr);
	if (err)
		krc_send_undo(snd);
	krc_talk_leave(talk);
	return err;
}

int krc_ioc_send(struct krc_context *ctx, struct krp_send *arg)
{
	const struct krp_send_wr __user *user = u64_to_user_ptr(arg->wrs);
	struct krp_send_wr wrs[KRC_SEND_BATCH];
	int err = 0;
	u32 i;

	if (!krc_mailbox_of(ctx))
		return -EBADFD;
	if (!arg->count || arg->count > KRP_SEND_MAX || arg->taken || arg->error || arg->flags)
		return -EINVAL;
	for (i = 0; i < arg->count && !err; i += !err) {
		u32 some = min_t(u32, arg->count - i, KRC_SEND_BATCH);

		if (i % KRC_SEND_BATCH == 0 && copy_from_user(wrs, user + i, some * sizeof(*wrs)))
			err = -EFAULT;
		else
			err = krc_send_one(ctx, &wrs[i % KRC_SEND_BATCH]);
	}
	if (!i)
		return err;
	arg->taken = i;
	arg->error = err;
	return 0;
}

/* Choose a message that is to be cancelled. Return: it, counted; NULL: there is none any more. */
static struct krc_send *krc_cancel_next(struct krc_talk *talk, u64 user_data)
{
	struct krc_send *snd, *found = NULL;

	spin_lock(&talk->box->lock);
	list_for_each_entry(snd, &talk->larges, list) {
		if (snd->user_data != user_data || snd->cancelled)
			continue;
		snd->cancelled = true;
		kref_get(&snd->ref); /* so that no other message is at its address */
		found = snd;
		break;
	}
	spin_unlock(&talk->box->lock);
	return found;
}

int krc_ioc_cancel(struct krc_context *ctx, struct krp_cancel *arg)
{
	struct krc_talk *talk;
	struct krc_send *snd;
	int err = -ENOENT;

	if (arg->rsvd)
		return -EINVAL;
	talk = krc_talk_enter(ctx, arg->connection);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	while (talk->stream && (snd = krc_cancel_next(talk, arg->user_data))) {
		krc_stream_cancel(talk->stream, snd->out);
		krc_send_put(snd);
		err = 0;
	}
	krc_talk_leave(talk);
	return err;
}

/* ---- messages that peers have announced */

/* krc_large.end: a READ is not under way any more. */
static void krc_fetch_end(struct krc_large *large, int err)
{
	struct krc_fetch *fetch = container_of(large, struct krc_fetch, large);
	struct krc_talk *talk = fetch->talk;
	struct krp_cqe cqe = {
		.user_data = fetch->user_data,
		.status = err,
		.bytes = err ? 0 : large->length,
		.opcode = KRP_OP_FETCH,
	};

	krc_mr_put(fetch->mr, 1);
	kfree(fetch);
	krc_talk_complete(talk, &cqe);
}

/* Make a READ. Return: it, with a reservation; or ERR_PTR. */
static struct krc_fetch *krc_fetch_new(struct krc_talk *talk, const struct krp_large *arg)
{
	struct krc_mr *mr = krc_context_mr_into(talk->box->ctx, arg->mr, arg->addr, arg->length);
	struct krc_fetch *fetch;
	int err = -ENOMEM;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	fetch = kzalloc(sizeof(*fetch), GFP_KERNEL_ACCOUNT);
	if (!fetch)
		goto err_mr;
	err = krc_talk_reserve(talk);
	if (err)
		goto err_mr;
	fetch->talk = talk;
	fetch->mr = mr;
	fetch->user_data = arg->user_data;
	fetch->large.seq = arg->seq;
	fetch->large.offset = arg->offset;
	fetch->large.length = arg->length;
	fetch->large.local_addr = arg->addr;
	fetch->large.lkey = mr->key.lkey;
	fetch->large.keep = arg->flags & KRP_LARGE_KEEP;
	fetch->large.end = krc_fetch_end;
	return fetch;

err_mr:
	kfree(fetch);
	krc_mr_put(mr, 1);
	return ERR_PTR(err);
}

static int krc_talk_fetch(struct krc_talk *talk, const struct krp_large *arg)
{
	struct krc_fetch *fetch = krc_fetch_new(talk, arg);
	int err;

	lockdep_assert_held(&talk->control);
	if (IS_ERR(fetch))
		return PTR_ERR(fetch);
	err = krc_stream_fetch(talk->stream, &fetch->large);
	if (!err)
		return 0;
	krc_mr_put(fetch->mr, 1);
	kfree(fetch);
	krc_talk_unreserve(talk);
	return err;
}

int krc_ioc_large(struct krc_context *ctx, struct krp_large *arg)
{
	bool discard = arg->flags & KRP_LARGE_DISCARD;
	struct krc_talk *talk;
	int err = -ENOENT;

	if (arg->flags & ~(u32)(KRP_LARGE_KEEP | KRP_LARGE_DISCARD) ||
	    arg->offset > KRP_SEND_LARGE_MAX || arg->length > KRP_SEND_LARGE_MAX)
		return -EINVAL;
	if (discard ? arg->flags != KRP_LARGE_DISCARD || arg->user_data || arg->addr ||
			      arg->offset || arg->mr || arg->length
		    : !arg->length)
		return -EINVAL;
	talk = krc_talk_enter(ctx, arg->connection);
	if (IS_ERR(talk))
		return PTR_ERR(talk);
	if (talk->stream && discard)
		err = krc_stream_discard(talk->stream, arg->seq);
	else if (talk->stream)
		err = krc_talk_fetch(talk, arg);
	krc_talk_leave(talk);
	return err;
}
