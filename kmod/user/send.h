/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: messages that programs send, from the call to the completion; and READs of those that peers
 * have announced.
 */
#ifndef KRC_SEND_H
#define KRC_SEND_H

#include <linux/kref.h>

#include "user/talk.h"

struct krc_after;
struct krc_mr;

/**
 * struct krc_send - A message under way.
 * @ref: its end, and a task that cancels it.
 * @list: entry in krc_talk.larges, if it is announced.
 * @talk: connection; counted until the end.
 * @out: the message, freed with this.
 * @mr: announced: its region, counted until the end; else NULL.
 * @after: what it waits for before it is sent, or NULL.
 * @user_data: returned in the completion.
 * @cancelled: it was asked back.
 */
struct krc_send {
	struct kref ref;
	struct list_head list;
	struct krc_talk *talk;
	struct krc_out *out;
	struct krc_mr *mr;
	struct krc_after *after;
	u64 user_data;
	bool cancelled;
};

/**
 * krc_send_first() - Make the message that opens a connection.
 * @talk: connection, krc_talk.depth set.
 * @user: address of a struct krp_send_wr of the program.
 *
 * Context: may sleep.
 * Return: it, for krc_stream_connect() or krc_send_undo(); or ERR_PTR: -EFAULT, -EINVAL, -EMSGSIZE,
 * -ENOMEM, the errors of krc_talk_reserve().
 */
struct krc_send *krc_send_first(struct krc_talk *talk, u64 user);

/**
 * krc_send_undo() - Undo krc_send_first(): the message was not taken.
 * @snd: it.
 *
 * Context: may sleep.
 */
void krc_send_undo(struct krc_send *snd);

/**
 * krc_send_held() - Send what does not wait for a queue any more, in order.
 * @talk: connection, krc_talk.control held.
 *
 * Context: may sleep.
 */
void krc_send_held(struct krc_talk *talk);

/**
 * krc_send_drop_held() - End the messages that wait, with -ECANCELED.
 * @talk: connection, krc_talk.control held.
 *
 * Context: may sleep.
 */
void krc_send_drop_held(struct krc_talk *talk);

/**
 * krc_ioc_send() - KRP_IOC_SEND: send messages.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h; out: taken, error.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h; then nothing was taken.
 */
int krc_ioc_send(struct krc_context *ctx, struct krp_send *arg);

/**
 * krc_ioc_cancel() - KRP_IOC_CANCEL: ask for announced messages back.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_cancel(struct krc_context *ctx, struct krp_cancel *arg);

/**
 * krc_ioc_large() - KRP_IOC_LARGE: fetch or discard a message that a peer has announced.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_large(struct krc_context *ctx, struct krp_large *arg);

#endif /* KRC_SEND_H */
