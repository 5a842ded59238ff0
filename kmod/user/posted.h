/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: buffers that programs have posted for large messages before these come.
 *
 * Locking: krc_mailbox_posted.lock, inside krc_stream.lock; nothing is taken inside of it.
 */
#ifndef KRC_POSTED_H
#define KRC_POSTED_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct krc_context;
struct krc_mailbox;
struct krc_mr;
struct krp_post_recv;

/**
 * struct krc_mailbox_posted - Buffers of a mailbox; embedded in it.
 * @lock: guards all below, and krc_talk.placed.
 * @waiting: struct krc_posted_buffer that take messages, in the order they were posted, but for
 *	those that had too few bytes left for one.
 * @nr: completions that are to come, of buffers and of messages that go to them.
 * @buffers: those that have not completed.
 * @bytes: theirs.
 */
struct krc_mailbox_posted {
	spinlock_t lock; /* see above */
	struct list_head waiting;
	u32 nr;
	u32 buffers;
	u64 bytes;
};

/**
 * krc_posted_init() - Begin without buffers, and have messages READ to those that will be there.
 * @box: mailbox that is being made, with its inbox.
 *
 * Context: nobody else uses it yet.
 */
void krc_posted_init(struct krc_mailbox *box);

/**
 * krc_ioc_post_recv() - KRP_IOC_POST_RECV: lend a buffer, or take buffers back.
 * @ctx: context.
 * @arg: as in krp_ioctl_message.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl_message.h.
 */
int krc_ioc_post_recv(struct krc_context *ctx, struct krp_post_recv *arg);

/**
 * krc_posted_withdraw() - Take back the buffers in a region that is about to be deregistered.
 * @ctx: context.
 * @mr: region, whose handle names it no more.
 *
 * Those to which messages go are in use until these have ended. Context: may sleep.
 */
void krc_posted_withdraw(struct krc_context *ctx, const struct krc_mr *mr);

/**
 * krc_posted_end() - Take back all buffers of a context that ends, or whose port has.
 * @ctx: context; no other thread uses it, or krc_context.dead is set.
 * @err: status of their completions.
 *
 * Context: may sleep.
 */
void krc_posted_end(struct krc_context *ctx, int err);

#endif /* KRC_POSTED_H */
