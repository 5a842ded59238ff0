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
 * @waiting: struct krc_posted_buffer to which no message goes, in the order they were posted.
 * @nr: buffers that have not completed; those to which a message goes are among them.
 */
struct krc_mailbox_posted {
	spinlock_t lock; /* see above */
	struct list_head waiting;
	u32 nr;
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
 * Those to which a message goes are in use until that has ended. Context: may sleep.
 */
void krc_posted_withdraw(struct krc_context *ctx, const struct krc_mr *mr);

/**
 * krc_posted_end() - Take back all buffers of a mailbox.
 * @box: mailbox of a context that no other thread uses.
 *
 * Context: may sleep.
 */
void krc_posted_end(struct krc_mailbox *box);

#endif /* KRC_POSTED_H */
