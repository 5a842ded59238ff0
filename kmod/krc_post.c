// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the way of a request of a program: checked, charged, handed to the pool,
 * completed into the ring.
 *
 * The key of a remote region may be posted only until krc_queue_req.until. A request that
 * waited longer, behind other queues or a recovery, is held back by krc_queue_check(), and
 * a work item checks the reference again; only if it does not hold any more does the
 * request fail, with the error that posting would have given.
 * Locking: see krc_queue.h. Requests are used in turn, since a queue completes in order.
 */
#include <linux/jiffies.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "krc_mr.h"
#include "krc_node.h"
#include "krc_peer.h"
#include "krc_queue.h"

#define KRC_COPY_BATCH 8 /* requests copied at once */
#define KRC_PAGED_OUT 1 /* for an errno: the requests have to be brought into memory (again) */
#define KRC_PAGED_OUT_MAX 64 /* times, in one call */

static u32 krc_wr_access(u8 opcode)
{
	switch (opcode) {
	case KRP_OP_READ:
		return KRP_ACCESS_REMOTE_READ;
	case KRP_OP_WRITE:
		return KRP_ACCESS_REMOTE_WRITE;
	default:
		return KRP_ACCESS_REMOTE_ATOMIC;
	}
}

/* What can be said of a request without looking at memory regions. */
static int krc_wr_check(const struct krp_wr *wr, const struct krc_port *port)
{
	if (wr->opcode < KRP_OP_READ || wr->opcode > KRP_OP_FETCH_ADD ||
	    wr->flags & ~KRP_WR_FENCE || !krp_is_zero(wr->rsvd, sizeof(wr->rsvd)) || !wr->length ||
	    wr->length > KRP_LENGTH_MAX)
		return -EINVAL;
	if (wr->opcode == KRP_OP_READ || wr->opcode == KRP_OP_WRITE)
		return 0;
	if (wr->length != sizeof(u64) || wr->remote_addr % sizeof(u64))
		return -EINVAL;
	return port->attr.atomics ? 0 : -EOPNOTSUPP;
}

/* The peer's key for a request; asks the peer if it must. @grant: see krc_remote_get(). */
static int krc_req_refer(struct krc_queue *queue, struct krc_queue_req *qr, struct krc_grant *grant)
{
	struct krc_peer *peer = queue->peer;
	struct krc_hw_wr *wr = &qr->req.wr;
	int err;

	lockdep_assert_held(&queue->post);
	err = krc_remote_get(peer->remote, qr->token, wr->remote_addr, wr->length, qr->access,
			     KRC_REMOTE_TIMEOUT_MS, grant);
	if (!err) {
		wr->rkey = grant->rkey;
		qr->until = grant->until;
	}
	if (err == -EREMOTEIO || err == -ETIMEDOUT) {
		/* It does not even answer where its memory is: the record is old. */
		krc_peer_suspect(peer, KRC_FAULT_TARGET);
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, err);
	}
	return err;
}

/**
 * struct krc_batch - What requests of one call share with those before them.
 * @grant: the peer's region, if it was one.
 * @handle: the program's region.
 * @mr: that region, counted by a request before; NULL: there was none.
 */
struct krc_batch {
	struct krc_grant grant;
	u32 handle;
	struct krc_mr *mr;
};

/* The region of a request, counted, or NULL. */
static struct krc_mr *krc_batch_mr(struct krc_batch *batch, struct krc_context *ctx, u32 handle)
{
	if (batch->mr && batch->handle == handle) {
		krc_mr_get(batch->mr);
		return batch->mr;
	}
	return krc_context_mr(ctx, handle);
}

/* Turn what a program asks for into a request, with its region counted. */
static int krc_req_prepare(struct krc_queue *queue, struct krc_queue_req *qr,
			   const struct krp_wr *wr, struct krc_batch *batch)
{
	struct krc_context *ctx = queue->ctx;
	int err = krc_wr_check(wr, ctx->port);

	if (err)
		return err;
	qr->mr = krc_batch_mr(batch, ctx, wr->local_mr);
	if (!qr->mr)
		return -ENOENT;
	err = krc_mr_check(qr->mr, wr->local_addr, wr->length, wr->opcode != KRP_OP_WRITE);
	if (err)
		goto err_mr;
	qr->user_data = wr->user_data;
	qr->token = wr->remote_token;
	qr->access = krc_wr_access(wr->opcode);
	qr->error = 0;
	qr->req.flow = &queue->flow;
	qr->req.wr = (struct krc_hw_wr){
		.address = &queue->peer->address,
		.remote_addr = wr->remote_addr,
		.local_addr = wr->local_addr,
		.compare_add = wr->compare_add,
		.swap = wr->swap,
		.lkey = qr->mr->key.lkey,
		.length = wr->length,
		.opcode = wr->opcode,
		.fence = wr->flags & KRP_WR_FENCE,
	};
	err = krc_req_refer(queue, qr, &batch->grant);
	if (err)
		goto err_mr;
	batch->handle = wr->local_mr;
	batch->mr = qr->mr;
	return 0;

err_mr:
	krc_mr_put(qr->mr);
	return err;
}

static struct krc_queue_req *krc_queue_req_at(struct krc_queue *queue, u64 number)
{
	return &queue->reqs[number % queue->depth];
}

/*
 * Prepare up to @count requests. Return: how many; *@ret_error says why not more. Pages that
 * are not there are not waited for, the port is entered: see krc_post_readable().
 */
static u32 krc_post_prepare(struct krc_queue *queue, const struct krp_post *arg, u32 count,
			    struct list_head *reqs, int *ret_error)
{
	const struct krp_wr __user *user = u64_to_user_ptr(arg->wrs);
	struct krp_wr wrs[KRC_COPY_BATCH];
	struct krc_batch batch = {};
	u32 i;

	for (i = 0; i < count; i++) {
		struct krc_queue_req *qr = krc_queue_req_at(queue, queue->posted + i);
		u32 some = min_t(u32, count - i, KRC_COPY_BATCH);
		int err;

		if (i % KRC_COPY_BATCH == 0 &&
		    copy_from_user_nofault(wrs, user + i, some * sizeof(*wrs)))
			err = KRC_PAGED_OUT;
		else
			err = krc_req_prepare(queue, qr, &wrs[i % KRC_COPY_BATCH], &batch);
		if (err) {
			*ret_error = err;
			break;
		}
		list_add_tail(&qr->req.list, reqs);
	}
	return i;
}

/*
 * Room in the queue, the ring, and the user's limit. Return: for how many; *@ret_error says
 * why not for more.
 */
static u32 krc_post_reserve(struct krc_queue *queue, u32 count, int *ret_error)
{
	u64 busy = queue->posted - krc_queue_completed(queue);
	u32 room, charged;

	lockdep_assert_held(&queue->post);
	room = krc_ring_promise(&queue->ctx->ring, min_t(u32, count, queue->depth - busy));
	charged = krc_charge_requests(queue->ctx->user, room);
	krc_ring_unpromise(&queue->ctx->ring, room - charged);
	if (charged < room)
		*ret_error = -EDQUOT;
	else
		*ret_error = room < count ? -EAGAIN : 0;
	return charged;
}

static void krc_post_unreserve(struct krc_queue *queue, u32 count)
{
	if (!count)
		return;
	krc_uncharge_requests(queue->ctx->user, count);
	krc_ring_unpromise(&queue->ctx->ring, count);
}

/*
 * With the port entered, for the first @count requests. *@ret_posted is set if something was
 * taken.
 */
static int krc_post_entered(struct krc_queue *queue, struct krp_post *arg, u32 count,
			    struct krc_posted *ret_posted)
{
	struct krc_req *req, *tmp;
	LIST_HEAD(reqs);
	u32 room, taken;
	int err;

	lockdep_assert_held(&queue->post);
	if (!count)
		return -EFAULT;
	room = krc_post_reserve(queue, count, &err);
	taken = krc_post_prepare(queue, arg, room, &reqs, &err);
	krc_post_unreserve(queue, room - taken);
	if (!taken)
		return err;
	if (err == KRC_PAGED_OUT)
		err = -EAGAIN;
	else if (!err && count < arg->count)
		err = -EFAULT;
	queue->posted += taken;
	arg->taken = taken;
	arg->error = err;
	queue->flow.awake = arg->flags & KRP_POST_WAIT;
	queue->flow.quarantined = krc_remote_silent(queue->peer->remote);
	err = krc_flow_submit(&queue->flow, &reqs);
	if (!err) {
		ret_posted->queue = queue;
		ret_posted->index = krc_flow_index(&queue->flow);
		ret_posted->until = queue->posted;
		WRITE_ONCE(queue->ctx->posted_to, ret_posted->index);
		return 0;
	}
	queue->posted -= taken;
	list_for_each_entry_safe(req, tmp, &reqs, list) {
		list_del_init(&req->list);
		krc_mr_put(container_of(req, struct krc_queue_req, req)->mr);
	}
	krc_post_unreserve(queue, taken);
	return err;
}

static int krc_queue_post(struct krc_queue *queue, struct krp_post *arg, u32 count)
{
	struct krc_port *port = queue->ctx->port;
	struct krc_posted posted;
	bool entered, ready;
	int err = -ENOTCONN;

	if (mutex_lock_interruptible(&queue->post))
		return -ERESTARTSYS;
	ready = READ_ONCE(queue->state) == KRP_QUEUE_READY;
	entered = ready && krc_port_enter(port);
	if (entered)
		err = krc_post_entered(queue, arg, count, &posted);
	else if (ready)
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, -ENODEV);
	mutex_unlock(&queue->post);
	if (!entered)
		return err;
	if (!err && arg->flags & KRP_POST_WAIT)
		krc_wait_posted(&posted);
	krc_port_exit(port);
	return err;
}

/*
 * How many of the requests are in memory, after they were brought there. How long that takes
 * is up to who serves the pages, which may be a program: nothing is held meanwhile.
 */
static u32 krc_post_readable(const struct krp_post *arg)
{
	size_t bytes = arg->count * sizeof(struct krp_wr);

	return (bytes - fault_in_readable(u64_to_user_ptr(arg->wrs), bytes)) /
	       sizeof(struct krp_wr);
}

int krc_ioc_post(struct krc_context *ctx, struct krp_post *arg)
{
	int err = KRC_PAGED_OUT, tries;
	struct krc_queue *queue;

	if (!arg->count || arg->count > KRP_POST_MAX || arg->flags & ~KRP_POST_WAIT || arg->rsvd)
		return -EINVAL;
	queue = krc_queue_get(ctx, arg->queue);
	if (!queue)
		return -ENOENT;
	arg->taken = 0;
	arg->error = 0;
	for (tries = 0; err == KRC_PAGED_OUT && tries < KRC_PAGED_OUT_MAX; tries++)
		err = krc_queue_post(queue, arg, krc_post_readable(arg));
	if (err == KRC_PAGED_OUT)
		err = -EFAULT;
	krc_queue_put(queue);
	this_cpu_inc(krc_counts.posts);
	if (!err)
		this_cpu_add(krc_counts.requests, arg->taken);
	return err;
}

int krc_queue_check(struct krc_req *req)
{
	struct krc_queue_req *qr = container_of(req, struct krc_queue_req, req);

	if (qr->error)
		return qr->error;
	if (time_before_eq(jiffies, qr->until))
		return 0;
	queue_work(krc_renew_wq, &qr->queue->renew);
	return -EAGAIN;
}

/*
 * The flow is held, so nobody reads the keys of what waits; those of what is posted are
 * read again only when it is replayed, which does not happen while the flow is held.
 */
static void krc_queue_renew_keys(struct krc_queue *queue)
{
	u64 at = krc_queue_completed(queue);
	struct krc_grant grant = {};
	int err = 0;

	lockdep_assert_held(&queue->post);
	for (; at != queue->posted; at++) {
		struct krc_queue_req *qr = krc_queue_req_at(queue, at);

		if (READ_ONCE(queue->state) == KRP_QUEUE_READY)
			err = krc_req_refer(queue, qr, &grant);
		else if (!err)
			err = -ECANCELED;
		qr->error = err;
	}
}

void krc_queue_renew(struct work_struct *work)
{
	struct krc_queue *queue = container_of(work, struct krc_queue, renew);
	struct krc_port *port = queue->ctx->port;

	mutex_lock(&queue->post);
	if (krc_port_enter(port)) {
		krc_queue_renew_keys(queue);
		krc_flow_resume(&queue->flow);
		krc_port_exit(port);
	}
	mutex_unlock(&queue->post);
}

/* A request failed: so did its queue. The first error counts. */
static void krc_queue_failed(struct krc_queue *queue, const struct krc_req *req)
{
	this_cpu_inc(krc_counts.errors);
	queue->failed++;
	krc_queue_set_state(queue, KRP_QUEUE_ERROR, req->status);
	krc_peer_suspect(queue->peer, req->fault);
}

void krc_queue_done(struct krc_req *req)
{
	struct krc_queue_req *qr = container_of(req, struct krc_queue_req, req);
	struct krc_queue *queue = qr->queue;
	struct krc_context *ctx = queue->ctx;
	struct krp_cqe cqe = {
		.user_data = qr->user_data,
		.status = req->status,
		.bytes = req->status ? 0 : req->wr.length,
		.queue = queue->id,
		.opcode = req->wr.opcode,
	};

	this_cpu_inc(krc_counts.completions);
	if (req->status)
		krc_queue_failed(queue, req);
	else
		krc_remote_set_silent(queue->peer->remote, false);
	queue->bytes += cqe.bytes;
	krc_mr_put(qr->mr);
	krc_uncharge_requests(ctx->user, 1);
	/* From here on a poster may use qr again. Pairs with krc_queue_completed(). */
	smp_store_release(&queue->completed, queue->completed + 1);
	krc_ring_complete(&ctx->ring, &cqe);
	if (wq_has_sleeper(&ctx->wait))
		wake_up_interruptible_poll(&ctx->wait, EPOLLIN | EPOLLRDNORM);
}
