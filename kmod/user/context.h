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
#include "user/quick.h"
#include "user/ring.h"

/* How many are found without a walk, powers of two; see user/quick.h. */
#define KRC_QUEUES_QUICK 32
#define KRC_REGIONS_QUICK 8

struct krc_mailbox;
struct krc_mr;
struct krc_port;
struct krc_queue_at;

/**
 * struct krc_context - An open file.
 * @ref: held by the file and by each queue.
 * @id: number, never used again; it names the context in the table of all contexts.
 * @pid: process that opened it, counted; each namespace has a number of its own for it.
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
 * @wake: work item that wakes them when they are many; see user/wait.c.
 * @changed: tasks that wait for changed records.
 * @queues: struct krc_queue by number.
 * @regions: struct krc_mr by handle.
 * @queues_quick: those of @queues that were found last, under its lock.
 * @regions_quick: likewise.
 * @mailbox: messages; NULL before KRP_IOC_INBOX; set once, with release, under @lock.
 * @follower: position in the log of changed records, under @lock.
 * @release: work item that frees everything after the last close.
 */
struct krc_context {
	struct kref ref;
	u64 id;
	struct pid *pid;
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
	struct work_struct wake;
	wait_queue_head_t changed;
	struct xarray queues;
	struct xarray regions;
	struct krc_quick queues_quick[KRC_QUEUES_QUICK];
	struct krc_quick regions_quick[KRC_REGIONS_QUICK];
	struct krc_mailbox *mailbox;
	struct krc_follower follower;
	struct work_struct release;
};

/**
 * struct krc_counts - What all contexts hold and have done, per CPU; only sums over all CPUs mean
 * something.
 * @contexts: contexts.
 * @queues: queues that programs can name.
 * @mrs: memory regions that programs can name.
 * @pinned_bytes: their sizes, added up.
 * @connects: KRP_IOC_CONNECT that got as far as a look-up.
 * @connects_cached: of them, those answered by the node's cache.
 * @connects_failed: of them, those that failed.
 * @posts: KRP_IOC_POST calls on a queue that exists, failed ones included.
 * @requests: requests that those took.
 * @completions: requests completed.
 * @errors: of them, those with an error.
 */
struct krc_counts {
	u64 contexts;
	u64 queues;
	u64 mrs;
	u64 pinned_bytes;
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
extern struct workqueue_struct *krc_renew_wq; /* what waits for queues: see user/post.c and talk.h */

/**
 * krc_context_open() - Make a context for the calling process, charged to its user.
 *
 * It has one reference, for krc_context_close(). Context: may sleep.
 * Return: it, or ERR_PTR: -ENOMEM, or -EDQUOT (limit of contexts).
 */
struct krc_context *krc_context_open(void);

/**
 * krc_context_close() - End a context when its file is closed.
 * @ctx: context; no other thread uses it.
 *
 * Its services are withdrawn at once. A work item closes the queues, waits for the requests in the
 * hardware, deregisters the regions and drops the file's reference; without a port it is dropped
 * here.
 * Context: may sleep.
 */
void krc_context_close(struct krc_context *ctx);

/**
 * krc_context_put() - Drop a reference; the last one frees the context.
 * @ctx: context.
 *
 * Context: may sleep.
 */
void krc_context_put(struct krc_context *ctx);

/**
 * krc_context_walk() - Walk over what all contexts have, in the order of their numbers.
 * @at: in: where it begins; out: where the next walk goes on.
 * @uid: only contexts of this user's processes; the locks of others are not taken. NULL: all.
 * @some: called for a context: shows some of what it has, from at->queue on, and moves that to
 *	the first that was not shown; 0: there are no more, 1: there are, -1: the walk ends there.
 * @arg: for @some.
 *
 * Nobody waits for the whole of a walk: it breaks off between two calls of @some.
 * Context: may sleep.
 */
void krc_context_walk(struct krc_queue_at *at, const kuid_t *uid,
		      int (*some)(struct krc_context *ctx, struct krc_queue_at *at, void *arg),
		      void *arg);

/**
 * krc_context_follows() - Note whether krc_contexts_changed() is for a context.
 * @ctx: context.
 * @on: it is.
 *
 * Context: may sleep.
 */
void krc_context_follows(struct krc_context *ctx, bool on);

/**
 * krc_context_changed() - Wake the tasks that wait for changed records in one context.
 * @ctx: context.
 *
 * Context: any.
 */
void krc_context_changed(struct krc_context *ctx);

/**
 * krc_contexts_changed() - The same in each context that follows changes, one after the other.
 *
 * Context: may sleep.
 */
void krc_contexts_changed(void);

/**
 * krc_ioc_query() - KRP_IOC_QUERY: tell limits and versions.
 * @ctx: context, with or without a port.
 * @arg: out: all of it, as in krp_ioctl.h.
 *
 * Context: may sleep.
 * Return: 0.
 */
int krc_ioc_query(struct krc_context *ctx, struct krp_query *arg);

/**
 * krc_ioc_port() - KRP_IOC_PORT: describe a port of the node.
 * @ctx: context, with or without a port.
 * @arg: in: index, from 1, or 0 for that of @ctx; out: the rest, as in krp_ioctl.h.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (@arg->index is 0, and @ctx has no port), -ENOENT (no such port), -ENODEV
 * (it is dying).
 */
int krc_ioc_port(struct krc_context *ctx, struct krp_port_info *arg);

/**
 * krc_ioc_setup() - KRP_IOC_SETUP: bind a context to a port, and make its completion ring.
 * @ctx: context without a port.
 * @arg: as in krp_ioctl.h; out: map_bytes.
 *
 * Context: may sleep.
 * Return: 0, -EPROTONOSUPPORT (version), -EINVAL (flags, fields or entries of the ring), -EBUSY
 * (has a port), -ENODEV (no such port, or it is dying), -ENOMEM, -ERESTARTSYS. On an error the
 * context is as before.
 */
int krc_ioc_setup(struct krc_context *ctx, struct krp_setup *arg);

/**
 * krc_ioc_mr_reg() - KRP_IOC_MR_REG: register memory of the caller.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; out: handle and token.
 *
 * Context: may sleep.
 * Return: 0, -EBADFD (no port), -EINVAL (reserved field, access bits, and what krc_mr_reg() finds),
 * -ENOMEM, -EBUSY (no handle is free), or another error of krc_mr_reg().
 */
int krc_ioc_mr_reg(struct krc_context *ctx, struct krp_mr_reg *arg);

/**
 * krc_ioc_mr_dereg() - KRP_IOC_MR_DEREG: deregister a region; its memory stays pinned until its
 * last request is done.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Waits until no peer can access the region any more; see krc_mr_dereg().
 * Context: may sleep.
 * Return: 0, -EINVAL (reserved field), -ENOENT (no such handle).
 */
int krc_ioc_mr_dereg(struct krc_context *ctx, struct krp_mr_dereg *arg);

/**
 * krc_ioc_mr_dereg_many() - KRP_IOC_MR_DEREG_MANY: deregister regions with one wait.
 * @ctx: context.
 * @arg: as in krp_ioctl.h; out: done, how many of the handles, from the first.
 *
 * Context: may sleep.
 * Return: 0 (also if a later handle names none: done says so), -EINVAL (count, or done not 0),
 * -EFAULT, -ENOMEM, -ENOENT (the first handle names none).
 */
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

/**
 * krc_context_mr_into() - Get the region that the bytes of a message are to be READ into.
 * @ctx: context.
 * @handle: what KRP_IOC_MR_REG returned.
 * @addr: where they go.
 * @length: how many.
 *
 * Context: not in interrupts.
 * Return: the region, counted; or ERR_PTR: -ENOENT, -ERANGE (outside the region), -EACCES.
 */
struct krc_mr *krc_context_mr_into(struct krc_context *ctx, u32 handle, u64 addr, u32 length);

#endif /* KRC_CONTEXT_H */
