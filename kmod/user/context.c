// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: contexts: setup, memory regions, release, and their statistics.
 *
 * The last close withdraws services at once and leaves the rest to a work item: requests
 * in the hardware keep their regions, and so their pages, until the hardware is done with
 * them, however the process ended.
 * Locking: see user/queue.h. The spinlock of krc_contexts keeps the contexts in it from being
 * freed; it is held for one context at a time, so that a walk delays neither an open nor a close.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "mem/region.h"
#include "node/device.h"
#include "node/port.h"
#include "user/context.h"
#include "user/mailbox.h"
#include "user/queue.h"
#include "user/service.h"
#include "user/show.h"
#include "user/wait.h"
#include "user/watch.h"

/*
 * A number of krc_context.queues that stays reserved. It keeps the first node of the xarray while
 * programs open and close one queue after another; that node is allocated and freed each time
 * otherwise, a tenth of the price of a connect. A program that closes this number gets -ENOENT
 * and loses no more than that.
 */
#define KRC_QUEUE_KEEPER (XA_CHUNK_SIZE - 1)

DEFINE_PER_CPU(struct krc_counts, krc_counts);
struct workqueue_struct *krc_context_wq;
struct workqueue_struct *krc_renew_wq;

#define KRC_WALK_QUEUES 64 /* queues of a context that a walk shows without a break */

#define KRC_FOLLOWS XA_MARK_0

static DEFINE_XARRAY(krc_contexts); /* all contexts by number; KRC_FOLLOWS: krc_context_follows() */
static atomic64_t krc_contexts_made;

struct krc_port *krc_context_port(struct krc_context *ctx)
{
	/* Pairs with krc_context_setup(): a reader that sees the port sees the ring. */
	return smp_load_acquire(&ctx->port);
}

static void krc_context_free(struct kref *ref)
{
	struct krc_context *ctx = container_of(ref, struct krc_context, ref);

	xa_erase(&krc_contexts, ctx->id);
	this_cpu_dec(krc_counts.contexts);
	krc_mailbox_free(ctx);
	krc_ring_destroy(&ctx->ring);
	if (ctx->port)
		krc_port_put(ctx->port);
	krc_uncharge(&ctx->charge);
	krc_user_put(ctx->user);
	put_pid(ctx->pid);
	xa_destroy(&ctx->queues);
	xa_destroy(&ctx->regions);
	mutex_destroy(&ctx->lock);
	kfree(ctx);
}

void krc_context_put(struct krc_context *ctx)
{
	kref_put(&ctx->ref, krc_context_free);
}

/* Unregister from the pool; if the port is already dying, wait for its callback. */
static void krc_context_unwatch(struct krc_context *ctx)
{
	if (krc_port_enter(ctx->port)) {
		krc_pool_unwatch(ctx->port->pool, &ctx->watch);
		krc_port_exit(ctx->port);
	} else {
		wait_for_completion(&ctx->watch.gone);
	}
}

/* A region has left its context. */
static void krc_mr_uncount(const struct krc_mr *mr)
{
	this_cpu_dec(krc_counts.mrs);
	this_cpu_sub(krc_counts.pinned_bytes, mr->length);
}

/* Take a handle from its region. Return: the region, or NULL: it names none. */
static struct krc_mr *krc_context_take_mr(struct krc_context *ctx, u32 handle)
{
	return krc_quick_erase(&ctx->regions, ctx->regions_quick, KRC_REGIONS_QUICK, handle, NULL);
}

static void krc_context_release(struct work_struct *work)
{
	struct krc_context *ctx = container_of(work, struct krc_context, release);
	unsigned long handle;
	struct krc_mr *mr;

	krc_mailbox_end(ctx);
	krc_queue_close_all(ctx);
	xa_for_each(&ctx->regions, handle, mr) {
		krc_context_take_mr(ctx, handle);
		krc_mr_uncount(mr);
		krc_mr_dereg(&mr, 1, false);
	}
	krc_context_unwatch(ctx);
	krc_wait_end(ctx);
	krc_context_put(ctx);
}

struct krc_context *krc_context_open(void)
{
	struct krc_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->user = krc_user_get_current();
	if (!ctx->user)
		goto err_ctx;
	err = krc_charge(ctx->user, KRC_RES_CONTEXT, &ctx->charge);
	if (err)
		goto err_user;
	kref_init(&ctx->ref);
	mutex_init(&ctx->lock);
	spin_lock_init(&ctx->ring.lock);
	krc_wait_init(ctx);
	init_waitqueue_head(&ctx->changed);
	xa_init_flags(&ctx->queues, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->regions, XA_FLAGS_ALLOC1);
	INIT_WORK(&ctx->release, krc_context_release);
	ctx->pid = get_pid(task_tgid(current));
	ctx->uid = current_uid();
	get_task_comm(ctx->comm, current);
	ctx->id = atomic64_inc_return(&krc_contexts_made);
	err = xa_insert(&krc_contexts, ctx->id, ctx, GFP_KERNEL);
	if (err)
		goto err_charge;
	this_cpu_inc(krc_counts.contexts);
	return ctx;

err_charge:
	put_pid(ctx->pid);
	krc_uncharge(&ctx->charge);
err_user:
	krc_user_put(ctx->user);
err_ctx:
	kfree(ctx);
	return ERR_PTR(err);
}

void krc_context_close(struct krc_context *ctx)
{
	if (!krc_context_port(ctx)) {
		krc_context_put(ctx);
		return;
	}
	krc_bind_undo_all(ctx);
	krc_watch_end(ctx);
	queue_work(krc_context_wq, &ctx->release);
}

/* krc_pool_watch.stopped: the port is gone, and all its requests have completed. */
static void krc_context_port_stopped(struct krc_pool_watch *watch)
{
	struct krc_context *ctx = container_of(watch, struct krc_context, watch);

	krc_queue_fail_all(ctx, -ENODEV);
	WRITE_ONCE(ctx->dead, true);
	krc_posted_end(ctx, -ENODEV);
	wake_up_poll(&ctx->wait, EPOLLIN | EPOLLERR);
	krc_context_changed(ctx);
}

/* Look up the port that a program names by number or GID. Return: it, counted, or NULL. */
static struct krc_port *krc_setup_port(const struct krp_setup *arg)
{
	return arg->flags & KRP_SETUP_GID ? krc_port_by_gid(arg->gid) : krc_port_first(arg->port);
}

static bool krc_setup_valid(const struct krp_setup *arg)
{
	if (arg->flags & ~(u32)KRP_SETUP_GID)
		return false;
	return arg->flags ? !arg->port : krp_is_zero(arg->gid, sizeof(arg->gid));
}

/* On success, the context owns the caller's reference to @port. */
static int krc_context_setup(struct krc_context *ctx, struct krc_port *port, u32 entries)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = xa_reserve(&ctx->queues, KRC_QUEUE_KEEPER, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = krc_ring_create(&ctx->ring, entries);
	if (err)
		return err;
	ctx->watch.stopped = krc_context_port_stopped;
	err = -ENODEV;
	if (krc_port_enter(port)) {
		err = krc_pool_watch(port->pool, &ctx->watch);
		krc_port_exit(port);
	}
	if (err) {
		krc_ring_destroy(&ctx->ring);
		return err;
	}
	/* Pairs with krc_context_port(). */
	smp_store_release(&ctx->port, port);
	return 0;
}

int krc_ioc_setup(struct krc_context *ctx, struct krp_setup *arg)
{
	struct krc_port *port;
	int err;

	if (arg->abi != KRP_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (!krc_setup_valid(arg))
		return -EINVAL;
	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	err = -EBUSY;
	if (ctx->port)
		goto out;
	port = krc_setup_port(arg);
	err = -ENODEV;
	if (!port)
		goto out;
	err = krc_context_setup(ctx, port, arg->ring_entries);
	if (err)
		krc_port_put(port);
	else
		arg->map_bytes = ctx->ring.bytes;
out:
	mutex_unlock(&ctx->lock);
	return err;
}

int krc_ioc_query(struct krc_context *ctx, struct krp_query *arg)
{
	*arg = (struct krp_query){
		.abi = KRP_ABI_VERSION,
		.ports = krc_port_count(),
		.ring_entries_max = KRP_RING_ENTRIES_MAX,
		.queue_depth_max = KRP_QUEUE_DEPTH_MAX,
		.post_max = KRP_POST_MAX,
	};
	krc_limits_get(&arg->queues_max, &arg->mrs_max, &arg->requests_max);
	return 0;
}

int krc_ioc_port(struct krc_context *ctx, struct krp_port_info *arg)
{
	u32 index = arg->index;
	struct krc_port *port;
	int err = -ENODEV;

	if (index)
		port = krc_port_first(index);
	else
		port = krc_context_port(ctx);
	if (!port)
		return index ? -ENOENT : -EINVAL;
	if (!index)
		krc_port_get(port);
	if (krc_port_enter(port)) {
		*arg = (struct krp_port_info){
			.index = index,
			.flags = port->value.dct.flags,
			.port_num = port->rail.num,
			.mtu = port->value.dct.mtu,
		};
		memcpy(arg->gid, port->rail.gid.raw, sizeof(arg->gid));
		strscpy(arg->device, dev_name(&port->rail.ibdev->dev), sizeof(arg->device));
		krc_port_exit(port);
		err = 0;
	}
	krc_port_put(port);
	return err;
}

struct krc_mr *krc_context_mr(struct krc_context *ctx, u32 handle)
{
	struct krc_mr *mr;

	xa_lock(&ctx->regions);
	mr = krc_quick_find(&ctx->regions, ctx->regions_quick, KRC_REGIONS_QUICK, handle);
	if (mr)
		krc_mr_get(mr, 1);
	xa_unlock(&ctx->regions);
	return mr;
}

struct krc_mr *krc_context_mr_into(struct krc_context *ctx, u32 handle, u64 addr, u32 length)
{
	struct krc_mr *mr = krc_context_mr(ctx, handle);
	int err = mr ? krc_mr_check(mr, addr, length, true) : -ENOENT;

	if (!err)
		return mr;
	if (mr)
		krc_mr_put(mr, 1);
	return ERR_PTR(err);
}

int krc_ioc_mr_reg(struct krc_context *ctx, struct krp_mr_reg *arg)
{
	struct krc_port *port = krc_context_port(ctx);
	struct krc_mr *mr;
	int err;

	if (!port)
		return -EBADFD;
	if (arg->rsvd || arg->access & ~(KRP_ACCESS_ALL | KRP_ACCESS_MESSAGE))
		return -EINVAL;
	mr = krc_mr_reg(port->mrdir, ctx->user, arg);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	err = xa_alloc(&ctx->regions, &arg->handle, mr, XA_LIMIT(1, INT_MAX), GFP_KERNEL_ACCOUNT);
	if (err) {
		krc_mr_dereg(&mr, 1, false);
		return err;
	}
	/* another task may have deregistered it by now */
	this_cpu_inc(krc_counts.mrs);
	this_cpu_add(krc_counts.pinned_bytes, arg->length);
	return 0;
}

int krc_ioc_mr_dereg(struct krc_context *ctx, struct krp_mr_dereg *arg)
{
	struct krc_mr *mr;

	if (arg->rsvd)
		return -EINVAL;
	mr = krc_context_take_mr(ctx, arg->handle);
	if (!mr)
		return -ENOENT;
	krc_mr_uncount(mr);
	krc_posted_withdraw(ctx, mr);
	krc_mr_dereg(&mr, 1, true);
	return 0;
}

/* Erase handles and collect their regions, up to the first that names none. Return: how many. */
static u32 krc_context_take_mrs(struct krc_context *ctx, const u32 *handles, u32 count,
				struct krc_mr **mrs)
{
	u32 i;

	for (i = 0; i < count; i++) {
		mrs[i] = krc_context_take_mr(ctx, handles[i]);
		if (!mrs[i])
			break;
		krc_mr_uncount(mrs[i]);
		krc_posted_withdraw(ctx, mrs[i]);
		cond_resched();
	}
	return i;
}

int krc_ioc_mr_dereg_many(struct krc_context *ctx, struct krp_mr_dereg_many *arg)
{
	struct krc_mr **mrs;
	u32 *handles;
	int err = 0;

	if (!arg->count || arg->count > KRP_MR_DEREG_MAX || arg->done)
		return -EINVAL;
	handles = vmemdup_user(u64_to_user_ptr(arg->handles), arg->count * sizeof(*handles));
	if (IS_ERR(handles))
		return PTR_ERR(handles);
	mrs = kvcalloc(arg->count, sizeof(*mrs), GFP_KERNEL_ACCOUNT);
	if (!mrs) {
		err = -ENOMEM;
		goto out;
	}
	arg->done = krc_context_take_mrs(ctx, handles, arg->count, mrs);
	krc_mr_dereg(mrs, arg->done, true);
	err = arg->done ? 0 : -ENOENT;
	kvfree(mrs);
out:
	kvfree(handles);
	return err;
}

/*
 * Find the next context with mark @filter, or XA_PRESENT, from number *@id on, of user @uid unless
 * that is NULL. Return: it, counted, and its number in @id; or NULL.
 */
static struct krc_context *krc_context_next(unsigned long *id, xa_mark_t filter, const kuid_t *uid)
{
	struct krc_context *ctx;
	bool found;

	for (;; ++*id) {
		xa_lock(&krc_contexts);
		ctx = xa_find(&krc_contexts, id, ULONG_MAX, filter);
		found = ctx && (!uid || uid_eq(ctx->uid, *uid)) && kref_get_unless_zero(&ctx->ref);
		xa_unlock(&krc_contexts);
		if (!ctx || found)
			return ctx;
		cond_resched();
	}
}

void krc_context_walk(struct krc_queue_at *at, const kuid_t *uid,
		      int (*some)(struct krc_context *ctx, struct krc_queue_at *at, void *arg),
		      void *arg)
{
	unsigned long begun = at->context;
	struct krc_context *ctx;
	int more = 0;

	while ((ctx = krc_context_next(&at->context, XA_PRESENT, uid))) {
		if (at->context != begun)
			at->queue = 0;
		do {
			more = some(ctx, at, arg);
			cond_resched();
		} while (more > 0);
		krc_context_put(ctx);
		if (more < 0)
			return;
		begun = ++at->context;
		at->queue = 0;
	}
}

/* Argument of krc_queue_walk_some(): whom queues are shown to. */
struct krc_queue_show {
	int (*fn)(const struct krc_queue_info *info, void *arg);
	void *arg;
};

static int krc_queue_walk_some(struct krc_context *ctx, struct krc_queue_at *at, void *arg)
{
	const struct krc_queue_show *show = arg;
	struct krc_queue_info info;
	struct krc_queue *queue;
	unsigned long id;
	u32 shown = 0;
	int ret = 0;

	xa_lock(&ctx->queues);
	xa_for_each_start(&ctx->queues, id, queue, at->queue) {
		at->queue = id;
		ret = 1;
		if (shown++ == KRC_WALK_QUEUES)
			break;
		krc_queue_describe(queue, &info);
		ret = show->fn(&info, show->arg) ? -1 : 0;
		if (ret)
			break;
	}
	xa_unlock(&ctx->queues);
	return ret;
}

void krc_queue_walk(struct krc_queue_at *at, const kuid_t *uid,
		    int (*fn)(const struct krc_queue_info *info, void *arg), void *arg)
{
	struct krc_queue_show show = { .fn = fn, .arg = arg };

	krc_context_walk(at, uid, krc_queue_walk_some, &show);
}

void krc_context_follows(struct krc_context *ctx, bool on)
{
	if (on)
		xa_set_mark(&krc_contexts, ctx->id, KRC_FOLLOWS);
	else
		xa_clear_mark(&krc_contexts, ctx->id, KRC_FOLLOWS);
}

void krc_context_changed(struct krc_context *ctx)
{
	wake_up_interruptible_poll(&ctx->changed, EPOLLPRI | EPOLLERR);
}

void krc_contexts_changed(void)
{
	struct krc_context *ctx;
	unsigned long id = 0;

	while ((ctx = krc_context_next(&id, KRC_FOLLOWS, NULL))) {
		krc_context_changed(ctx);
		krc_context_put(ctx);
		cond_resched();
		id++;
	}
}

/* A sum of per-CPU counts that go up and down: those of one CPU may be seen before another's. */
static u64 krc_counted(u64 sum)
{
	return (s64)sum < 0 ? 0 : sum;
}

void krc_context_stats(struct krc_context_stats *ret_stats)
{
	struct krc_context_stats sum = {};
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct krc_counts *counts = per_cpu_ptr(&krc_counts, cpu);

		sum.contexts += counts->contexts;
		sum.queues += counts->queues;
		sum.mrs += counts->mrs;
		sum.pinned_bytes += counts->pinned_bytes;
		sum.connects += counts->connects;
		sum.connects_cached += counts->connects_cached;
		sum.connects_failed += counts->connects_failed;
		sum.posts += counts->posts;
		sum.requests += counts->requests;
		sum.completions += counts->completions;
		sum.errors += counts->errors;
	}
	sum.contexts = krc_counted(sum.contexts);
	sum.queues = krc_counted(sum.queues);
	sum.mrs = krc_counted(sum.mrs);
	sum.pinned_bytes = krc_counted(sum.pinned_bytes);
	*ret_stats = sum;
}
