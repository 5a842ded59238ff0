/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a context, which is an open file: its port, its regions, the user it is charged to.
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
 * @ref: held by the file and by each queue.
 * @list: entry in the list of all contexts.
 * @id: number, never used again.
 * @pid: process that opened it.
 * @uid: user of that process.
 * @comm: name of that process.
 * @user: account that everything of the context is charged to.
 * @charge: charge for the context itself.
 * @lock: serialises setup; protects @follower.
 * @port: port, counted; NULL before setup; set once, with release.
 * @dead: the port is gone.
 * @watch: callback that sets @dead when the pool of @port has stopped.
 * @ring: completions.
 * @posted_to: index of the channel last posted to; a hint.
 * @wait: tasks that wait for completions.
 * @queues: struct krc_queue by number.
 * @regions: struct krc_mr by handle.
 * @follower: position in the log of changed records, under @lock.
 * @release: work item that frees everything after the last close.
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

/* What all contexts have done, per CPU. */
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
extern struct workqueue_struct *krc_context_wq; /* releases closed contexts and queues */
extern struct workqueue_struct *krc_renew_wq; /* renews expired references to remote regions */

/* Make a context for the caller. Context: may sleep. Return: it, or ERR_PTR(-ENOMEM, -EDQUOT). */
struct krc_context *krc_context_open(void);

/*
 * End a context when its file is closed. Services are withdrawn at once; a work item drains
 * the requests in flight and drops the file's reference. Context: may sleep.
 */
void krc_context_close(struct krc_context *ctx);

/* Drop a reference; the last one frees the context. Context: may sleep. */
void krc_context_put(struct krc_context *ctx);

/* One function for each ioctl. Context: may sleep. Return: 0 or an errno of krp_ioctl.h. */
int krc_ioc_query(struct krc_context *ctx, struct krp_query *arg);
int krc_ioc_port(struct krc_context *ctx, struct krp_port_info *arg);
int krc_ioc_setup(struct krc_context *ctx, struct krp_setup *arg);
int krc_ioc_mr_reg(struct krc_context *ctx, struct krp_mr_reg *arg);
int krc_ioc_mr_dereg(struct krc_context *ctx, struct krp_mr_dereg *arg);
int krc_ioc_mr_dereg_many(struct krc_context *ctx, struct krp_mr_dereg_many *arg);

/**
 * krc_context_port() - Get the port of a context.
 * @ctx: context.
 *
 * Context: any.
 * Return: the port, not counted for the caller; NULL before setup.
 */
struct krc_port *krc_context_port(struct krc_context *ctx);

/**
 * krc_context_mr() - Get the region of a handle.
 * @ctx: context.
 * @handle: what KRP_IOC_MR_REG returned.
 *
 * Context: not in interrupts.
 * Return: the region, counted, or NULL.
 */
struct krc_mr *krc_context_mr(struct krc_context *ctx, u32 handle);

#endif /* KRC_CONTEXT_H */
