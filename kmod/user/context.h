/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a context, which is an open file: its port, its regions, whom it is charged to.
 * Locking: see user/queue.h.
 */
#ifndef KRC_CONTEXT_H
#define KRC_CONTEXT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "base/limits.h"
#include "krp_ioctl.h"
#include "meta/changes.h"
#include "pool/pool.h"
#include "user/ring.h"

struct krc_mr;
struct krc_port;

/**
 * struct krc_context - An open file.
 * @ref: the file, and each queue.
 * @list: in the list of all contexts.
 * @id: number, never used again.
 * @pid: who opened it.
 * @uid: its user.
 * @comm: its name.
 * @user: whom all is charged to.
 * @charge: the context itself.
 * @lock: setup.
 * @port: port, counted; NULL before setup; set once, with release.
 * @dead: the port is gone.
 * @watch: tells about that.
 * @ring: completions.
 * @posted_to: index of the initiator that was posted to last; a hint.
 * @wait: who waits for them.
 * @queues: by number.
 * @regions: by handle; struct krc_mr.
 * @follower: its place in the log of changed records, under @lock.
 * @release: work item that gives all back after the last close.
 */
struct krc_context {
	struct kref ref;
	struct list_head list;
	u64 id;
	pid_t pid;
	kuid_t uid;
	char comm[16];
	struct krc_user *user;
	struct krc_charge charge;
	struct mutex lock;
	struct krc_port *port;
	bool dead;
	struct krc_pool_watch watch;
	struct krc_ring ring;
	u32 posted_to;
	wait_queue_head_t wait;
	struct xarray queues;
	struct xarray regions;
	struct krc_follower follower;
	struct work_struct release;
};

/* What all contexts have done, by processor. */
struct krc_counts {
	u64 connects;
	u64 connects_cached;
	u64 connects_failed;
	u64 posts;
	u64 requests;
	u64 completions;
	u64 errors;
};

DECLARE_PER_CPU(struct krc_counts, krc_counts);
extern struct workqueue_struct *krc_context_wq; /* closed contexts and queues end here */
extern struct workqueue_struct *krc_renew_wq; /* old references are asked for anew here */

/* A context for the calling process. Return: it, or ERR_PTR(-ENOMEM, -EDQUOT). */
struct krc_context *krc_context_open(void);

/* The file is closed. Requests under way end in the background. */
void krc_context_close(struct krc_context *ctx);
void krc_context_put(struct krc_context *ctx);

/* The ioctls, by name. Context: may sleep. Return: 0 or what krp_ioctl.h says. */
int krc_ioc_query(struct krc_context *ctx, struct krp_query *arg);
int krc_ioc_port(struct krc_context *ctx, struct krp_port_info *arg);
int krc_ioc_setup(struct krc_context *ctx, struct krp_setup *arg);
int krc_ioc_mr_reg(struct krc_context *ctx, struct krp_mr_reg *arg);
int krc_ioc_mr_dereg(struct krc_context *ctx, struct krp_mr_dereg *arg);
int krc_ioc_mr_dereg_many(struct krc_context *ctx, struct krp_mr_dereg_many *arg);

/**
 * krc_context_port() - The port of a context that was set up.
 * @ctx: context.
 *
 * Context: any.
 * Return: the port, or NULL.
 */
struct krc_port *krc_context_port(struct krc_context *ctx);

/**
 * krc_context_mr() - The region a handle names.
 * @ctx: context.
 * @handle: handle.
 *
 * Context: may not be called in interrupts.
 * Return: the region, counted, or NULL.
 */
struct krc_mr *krc_context_mr(struct krc_context *ctx, u32 handle);

#endif /* KRC_CONTEXT_H */
