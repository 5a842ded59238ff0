/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: waiting for completions, awake and asleep.
 */
#ifndef KRC_WAIT_H
#define KRC_WAIT_H

#include "krp_ioctl.h"

struct krc_context;
struct krc_queue;

/**
 * struct krc_posted - What was posted with KRP_POST_WAIT.
 * @queue: where.
 * @index: initiator; krc_pool_poll_begin() has been called for it.
 * @until: what krc_queue.told says when the ring has all of it.
 */
struct krc_posted {
	struct krc_queue *queue;
	u32 index;
	u64 until;
};

/* Wait awake for it. Context: may sleep, inside krc_port_enter(). */
void krc_wait_posted(struct krc_posted *posted);

/* KRP_IOC_WAIT. Context: may sleep. Return: 0 or what krp_ioctl.h says. */
int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg);

#endif /* KRC_WAIT_H */
