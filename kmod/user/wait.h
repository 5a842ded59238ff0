/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: waiting for completions: busy-polling, then blocking.
 */
#ifndef KRC_WAIT_H
#define KRC_WAIT_H

#include "krp_ioctl.h"

struct krc_context;
struct krc_queue;

/**
 * struct krc_posted - Requests posted with KRP_POST_WAIT.
 * @queue: queue they were posted to.
 * @index: channel; the submit counted as krc_pool_poll_begin() for it (krc_flow.polled).
 * @until: value of krc_queue.told once all of them are in the ring.
 */
struct krc_posted {
	struct krc_queue *queue;
	u32 index;
	u64 until;
};

/*
 * Busy-poll for the completions of @posted, at most as long as krc_spin() allows. Context: may
 * sleep, inside krc_port_enter().
 */
void krc_wait_posted(struct krc_posted *posted);

/* KRP_IOC_WAIT. Context: may sleep. Return: 0 or an errno of krp_ioctl.h. */
int krc_ioc_wait(struct krc_context *ctx, struct krp_wait *arg);

#endif /* KRC_WAIT_H */
