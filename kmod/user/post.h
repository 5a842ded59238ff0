/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: posting the requests of programs, from the ioctl to the completion.
 */
#ifndef KRC_POST_H
#define KRC_POST_H

#include "krp_ioctl.h"

struct krc_context;
struct krc_flow;
struct krc_queue;
struct krc_req;

/**
 * krc_ioc_post() - KRP_IOC_POST: post requests of a program to a queue.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; out: taken, from 1 when 0 is returned. The caller copies it back.
 *
 * May wait for the peer's memory directory, and with KRP_POST_WAIT busy-polls for the completions.
 * Context: may sleep.
 * Return: 0, -EINVAL (fields of @arg or of the first request), -ENOENT (no such queue or region),
 * -EFAULT, -ENOTCONN (not READY), -EAGAIN (queue or completion ring full), or another errno that
 * krp_ioctl.h lists for it; then nothing was taken.
 */
int krc_ioc_post(struct krc_context *ctx, struct krp_post *arg);

/**
 * krc_queue_done() - Complete requests of a queue: krc_flow.done of queues.
 * @flow: krc_queue.flow.
 * @reqs: requests that ended together, in order.
 * @nr: how many, from 1.
 *
 * Writes their completions into the ring, puts the queue into ERROR if one failed, and wakes
 * waiters. Context: as krc_flow.done.
 */
void krc_queue_done(struct krc_flow *flow, struct list_head *reqs, u32 nr);

/**
 * krc_queue_check() - Check that a request may be posted now: krc_flow.check of queues, asked when
 * the lease of the request is over.
 * @req: request of a queue.
 *
 * Context: as krc_flow.check.
 * Return: 0; -EAGAIN: its lease is over, the renew work goes on; or the error with which that work
 * failed it.
 */
int krc_queue_check(struct krc_req *req);

/**
 * krc_queue_renew_init() - Set up krc_queue.renew and its wait for the peer's directory.
 * @queue: queue that is being made; charged.
 *
 * Context: any.
 */
void krc_queue_renew_init(struct krc_queue *queue);

/**
 * krc_queue_renew_stop() - Stop krc_queue.renew: it is not queued, and no READ will queue it.
 * @queue: queue with nothing outstanding, whose peer nobody takes away meanwhile.
 *
 * Context: may sleep.
 */
void krc_queue_renew_stop(struct krc_queue *queue);

#endif /* KRC_POST_H */
