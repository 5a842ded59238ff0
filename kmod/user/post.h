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

/* KRP_IOC_POST. Context: may sleep. Return: 0 or an errno of krp_ioctl.h. */
int krc_ioc_post(struct krc_context *ctx, struct krp_post *arg);
/* krc_flow.done of queues; same context */
void krc_queue_done(struct krc_flow *flow, struct list_head *reqs, u32 nr);
int krc_queue_check(struct krc_req *req); /* krc_flow.check of queues; same context and return */

/* Set up and stop krc_queue.renew; to stop it, nothing may be outstanding. Context: may sleep. */
void krc_queue_renew_init(struct krc_queue *queue);
void krc_queue_renew_stop(struct krc_queue *queue);

#endif /* KRC_POST_H */
