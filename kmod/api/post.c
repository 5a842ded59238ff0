// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: requests of clients in the kernel: check, charge, submit to the pool, call back.
 *
 * A request is taken in any context, so nothing waits here. It is pending first, in the order of
 * posting, and one at a time gives what is pending to the flow (krc_api_run()). A request whose
 * remote reference is not cached has a key that is over: krc_api_check() holds the flow for it, as for
 * one that has waited too long, and the work item READs the peer's directory.
 *
 * Callbacks post, and a submit may dispatch other queues' completions, whose callbacks post: so that
 * the stack does not grow with that, a CPU that is in callbacks submits for the outermost queue
 * alone, when its callbacks have returned; other queues are left to their work items.
 * Locking: see api/api_priv.h.
 */
#include <linux/bottom_half.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>

#include "api/api_priv.h"
#include "krp_ioctl.h"
#include "node/port.h"
#include "peer/peer.h"
#include "peer/request.h"
#include "pool/silence.h"

static_assert((int)KRCORE_READ == KRP_OP_READ && (int)KRCORE_WRITE == KRP_OP_WRITE);
static_assert((int)KRCORE_CMP_SWAP == KRP_OP_CMP_SWAP);
static_assert((int)KRCORE_FETCH_ADD == KRP_OP_FETCH_ADD);
static_assert(KRCORE_FENCE == KRP_WR_FENCE && KRCORE_IDEMPOTENT == KRP_WR_IDEMPOTENT);
static_assert(KRCORE_LENGTH_MAX == KRP_LENGTH_MAX);

/* The outermost queue whose callbacks a CPU is in, and that it submits for after them; or NULL. */
static DEFINE_PER_CPU(struct krcore_queue *, krc_api_inside);

static struct krc_api_req *krc_api_of(struct krc_req *req)
{
	return container_of(req, struct krc_api_req, req);
}

/* ---- taking */

/* Check what does not depend on the peer. */
static int krc_op_check(const struct krcore_queue *queue, const struct krcore_op *op)
{
	int err;

	if (op->flags & ~(u32)(KRCORE_FENCE | KRCORE_IDEMPOTENT) || !op->done || !op->region ||
	    op->region->client != queue->client)
		return -EINVAL;
	err = krc_request_check(op->opcode, op->length, op->remote, op->flags & KRCORE_IDEMPOTENT,
				queue->client->port->rail.attr.atomics);
	return err
		       ?: krc_mr_check(op->region->mr, op->offset, op->length,
				       op->opcode != KRCORE_WRITE);
}

static void krc_api_grant(struct krc_api_req *ar, const struct krc_grant *grant)
{
	ar->req.wr.rkey = grant->rkey;
	ar->req.until = grant->until;
	ar->req.stay = grant->stay;
}

/* Get the remote key of a request if it is cached; else it is to be renewed before it begins. */
static int krc_api_refer(struct krcore_queue *queue, struct krc_api_req *ar)
{
	const struct krc_hw_wr *wr = &ar->req.wr;
	int err;

	lockdep_assert_held(&queue->lock);
	krc_grant_refresh(&queue->grant, &queue->forgets, queue->peer->remote);
	err = krc_remote_get(queue->peer->remote, ar->token, wr->remote_addr, wr->length,
			     ar->access, &queue->grant, NULL);
	if (!err)
		krc_api_grant(ar, &queue->grant);
	else if (err == -EAGAIN)
		ar->req.until = jiffies - 1;
	return err == -EAGAIN ? 0 : err;
}

static void krc_api_fill(struct krc_api_req *ar, const struct krcore_op *op)
{
	struct krcore_queue *queue = ar->queue;

	ar->mr = op->region->mr;
	ar->token = op->token;
	ar->access = krc_request_access(op->opcode);
	ar->status = 0;
	ar->done = op->done;
	ar->arg = op->arg;
	ar->req.flow = &queue->flow;
	ar->req.idempotent = op->flags & KRCORE_IDEMPOTENT;
	ar->req.leased = true;
	ar->req.stay = 0;
	ar->req.wr = (struct krc_hw_wr){
		.address = &queue->peer->address,
		.remote_addr = op->remote,
		.local_addr = op->offset,
		.compare_add = op->compare_add,
		.swap = op->swap,
		.lkey = ar->mr->key.lkey,
		.length = op->length,
		.opcode = op->opcode,
		.fence = op->flags & KRCORE_FENCE,
	};
}

/* Why a queue takes nothing, or 0. */
static int krc_api_takes(const struct krcore_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	switch (queue->state) {
	case KRC_API_READY:
		return list_empty(&queue->free) ? -EAGAIN : 0;
	case KRC_API_ERROR:
		return queue->error == -ENODEV ? -ENODEV : -ENOTCONN;
	default:
		return -ESHUTDOWN;
	}
}

/* Make an operation a pending request. Context: port entered. */
static int krc_api_take(struct krcore_queue *queue, const struct krcore_op *op)
{
	struct krc_user *user = queue->client->user;
	struct krc_api_req *ar;
	int err;

	lockdep_assert_held(&queue->lock);
	err = krc_api_takes(queue);
	if (err)
		return err;
	if (!krc_charge_requests(user, 1))
		return -EDQUOT;
	ar = list_first_entry(&queue->free, struct krc_api_req, order);
	krc_api_fill(ar, op);
	err = krc_api_refer(queue, ar);
	if (err) {
		krc_uncharge_requests(user, 1);
		return err;
	}
	krc_mr_get(ar->mr, 1);
	list_move_tail(&ar->order, &queue->taken);
	list_add_tail(&ar->req.list, &queue->pending);
	queue->busy++;
	return 0;
}

int krcore_post(struct krcore_queue *queue, const struct krcore_op *op)
{
	struct krc_port *port = queue->client->port;
	struct krcore_queue *inside;
	int err = krc_op_check(queue, op);

	if (err)
		return err;
	if (!krc_port_enter(port))
		return -ENODEV;
	spin_lock_bh(&queue->lock);
	err = krc_api_take(queue, op);
	spin_unlock_bh(&queue->lock);
	krc_port_exit(port);
	if (err)
		return err;
	local_bh_disable();
	inside = this_cpu_read(krc_api_inside);
	if (!inside)
		krc_api_run(queue);
	else if (inside != queue) /* else it is run behind the callbacks */
		queue_work(krc_api_wq, &queue->work);
	local_bh_enable();
	return 0;
}
EXPORT_SYMBOL_GPL(krcore_post);

/* ---- telling */

/* Give a request back, before its callback, which may post. Return: what to call. */
static struct krc_api_req krc_api_return(struct krc_api_req *ar)
{
	struct krcore_queue *queue = ar->queue;
	struct krc_api_req ended = *ar;

	krc_mr_put(ar->mr, 1);
	krc_uncharge_requests(queue->client->user, 1);
	spin_lock_bh(&queue->lock);
	if (queue->held == ar)
		queue->held = NULL;
	list_move(&ar->order, &queue->free);
	spin_unlock_bh(&queue->lock);
	return ended;
}

/* Call back for requests that have ended, in order. Context: bottom halves off. */
static void krc_api_tell(struct krcore_queue *queue, struct list_head *reqs)
{
	struct krc_req *req, *next;
	u32 told = 0;

	lockdep_assert(softirq_count());
	list_for_each_entry_safe(req, next, reqs, list) {
		struct krc_api_req ended;

		list_del_init(&req->list);
		ended = krc_api_return(krc_api_of(req));
		ended.done(queue, ended.arg, ended.status);
		told++;
	}
	spin_lock_bh(&queue->lock);
	queue->busy -= told;
	if (!queue->busy && queue->state == KRC_API_CLOSING)
		wake_up(&queue->idle);
	spin_unlock_bh(&queue->lock);
}

/* ---- submitting */

/*
 * Take what is to be done next with pending requests. Return: whether there is something; @*ret_ready:
 * they are to be submitted; else to be ended, which has to wait until the flow has none before them.
 */
static bool krc_api_take_pending(struct krcore_queue *queue, struct list_head *reqs,
				 bool *ret_ready)
{
	struct krc_req *req;

	lockdep_assert_held(&queue->lock);
	*ret_ready = queue->state == KRC_API_READY;
	if (list_empty(&queue->pending) || (!*ret_ready && queue->submitted))
		return false;
	list_splice_tail_init(&queue->pending, reqs);
	if (*ret_ready)
		list_for_each_entry(req, reqs, list)
			queue->submitted++;
	return true;
}

/* Submit requests; if that fails, so does the queue, and they are pending again, to be ended. */
static void krc_api_submit(struct krcore_queue *queue, struct list_head *reqs)
{
	struct krc_port *port = queue->client->port;
	struct krc_req *req;
	int err = -ENODEV;

	if (krc_port_enter(port)) {
		err = krc_flow_submit(&queue->flow, reqs, NULL);
		krc_port_exit(port);
	}
	if (!err)
		return;
	krc_api_set_state(queue, KRC_API_ERROR, err);
	spin_lock_bh(&queue->lock);
	list_for_each_entry(req, reqs, list) {
		if (err != -ENOTCONN) /* that is of the request that failed the flow */
			krc_api_of(req)->status = err;
		queue->submitted--;
	}
	list_splice_init(reqs, &queue->pending);
	spin_unlock_bh(&queue->lock);
}

/* End requests that the flow never had. */
static void krc_api_cancel(struct krcore_queue *queue, struct list_head *reqs)
{
	struct krc_req *req;
	bool outermost;

	list_for_each_entry(req, reqs, list)
		krc_api_of(req)->status = krc_api_of(req)->status ?: -ECANCELED;
	local_bh_disable();
	outermost = !this_cpu_read(krc_api_inside);
	if (outermost)
		this_cpu_write(krc_api_inside, queue);
	krc_api_tell(queue, reqs);
	if (outermost)
		this_cpu_write(krc_api_inside, NULL);
	local_bh_enable();
}

void krc_api_run(struct krcore_queue *queue)
{
	u32 rounds = 0;
	bool ready;
	LIST_HEAD(reqs);

	spin_lock_bh(&queue->lock);
	if (queue->running)
		goto out;
	queue->running = true;
	while (krc_api_take_pending(queue, &reqs, &ready)) {
		spin_unlock_bh(&queue->lock);
		if (ready)
			krc_api_submit(queue, &reqs);
		else
			krc_api_cancel(queue, &reqs);
		spin_lock_bh(&queue->lock);
		if (++rounds == KRC_API_ROUNDS) {
			if (!list_empty(&queue->pending))
				queue_work(krc_api_wq, &queue->work);
			break;
		}
	}
	queue->running = false;
out:
	spin_unlock_bh(&queue->lock);
}

/* A failed request fails its queue; the first error is kept. */
static void krc_api_outcomes(struct krcore_queue *queue, const struct list_head *reqs)
{
	bool answered = false;
	struct krc_req *req;

	list_for_each_entry(req, reqs, list) {
		krc_api_of(req)->status = req->status;
		if (!req->status) {
			if (!answered)
				krc_standing_answered(queue->peer->standing);
			answered = true;
			continue;
		}
		krc_api_set_state(queue, KRC_API_ERROR, req->status);
		krc_peer_suspect(queue->peer, req->fault, krc_api_of(req)->token);
	}
}

void krc_api_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krcore_queue *queue = container_of(flow, struct krcore_queue, flow);
	bool outermost = !this_cpu_read(krc_api_inside);
	bool more;

	krc_api_outcomes(queue, reqs);
	spin_lock_bh(&queue->lock);
	queue->submitted -= nr;
	spin_unlock_bh(&queue->lock);
	if (outermost)
		this_cpu_write(krc_api_inside, queue);
	krc_api_tell(queue, reqs);
	if (outermost) {
		krc_api_run(queue);
		this_cpu_write(krc_api_inside, NULL);
		return;
	}
	spin_lock_bh(&queue->lock);
	more = !list_empty(&queue->pending);
	spin_unlock_bh(&queue->lock);
	if (more)
		queue_work(krc_api_wq, &queue->work);
}

/* ---- renewing */

int krc_api_check(struct krc_req *req)
{
	struct krc_api_req *ar = krc_api_of(req);

	/* asked when the lease is over (krc_flow.lapses): a renewal that failed has left it so */
	if (ar->status)
		return ar->status;
	/* no check for an unresponsive peer: it grants no leases, and the present ones soon end */
	if (time_before_eq(jiffies, req->until))
		return 0;
	WRITE_ONCE(ar->queue->held, ar);
	queue_work(krc_api_wq, &ar->queue->work);
	return -EAGAIN;
}

/* krc_remote_wait.ready of a held queue: have the work item go on. */
static void krc_api_answered(struct krc_remote_wait *wait, int err)
{
	struct krcore_queue *queue = container_of(wait, struct krcore_queue, wait);

	WRITE_ONCE(queue->answer, err);
	queue_work(krc_api_wq, &queue->work);
}

/* The READ of the peer's directory failed with @err: its record may be stale. */
static void krc_api_unanswered(struct krcore_queue *queue, int err)
{
	if (err != -EREMOTEIO && err != -ETIMEDOUT)
		return;
	krc_peer_disbelieve(queue->peer);
	krc_api_set_state(queue, KRC_API_ERROR, err);
}

/* Ask for the key of the held request @ar, of which @of is a copy. Return: as krc_remote_get(). */
static int krc_api_ask(struct krcore_queue *queue, const struct krc_api_req *of,
		       struct krc_grant *grant)
{
	const struct krc_hw_wr *wr = &of->req.wr;
	int err = xchg(&queue->answer, 0);

	if (err) {
		krc_api_unanswered(queue, err);
		return err;
	}
	return krc_remote_get(queue->peer->remote, of->token, wr->remote_addr, wr->length,
			      of->access, grant, &queue->wait);
}

/*
 * Put the answer into the held request @ar, unless it has ended meanwhile, and what it allows into
 * those behind it, which are not in the hardware either.
 */
static void krc_api_renewed(struct krcore_queue *queue, struct krc_api_req *ar, int err,
			    const struct krc_grant *grant)
{
	struct krc_api_req *next = ar;

	lockdep_assert_held(&queue->lock);
	if (queue->held != ar)
		return;
	queue->held = NULL;
	ar->status = err;
	if (err)
		return;
	list_for_each_entry_from(next, &queue->taken, order) {
		const struct krc_hw_wr *wr = &next->req.wr;

		if (krc_grant_holds(grant, next->token) &&
		    !krc_grant_check(grant, wr->remote_addr, wr->length, next->access)) {
			krc_api_grant(next, grant);
			next->status = 0; /* as krc_queue_renew_behind() */
		}
	}
}

/*
 * Renew the key of the request that the flow is held for. A held request can't end but with its flow,
 * after which the queue takes none, so @held is the same request again if it is the same address.
 * Context: port entered. Return: whether the flow may go on.
 */
static bool krc_api_renew(struct krcore_queue *queue)
{
	struct krc_grant grant = {};
	struct krc_api_req *held, copy;
	int err;

	if (!list_empty_careful(&queue->wait.list))
		return false; /* the READ is still in flight */
	spin_lock_bh(&queue->lock);
	held = READ_ONCE(queue->held);
	if (held)
		copy = *held;
	err = queue->state == KRC_API_READY ? 0 : -ECANCELED;
	spin_unlock_bh(&queue->lock);
	if (!held)
		return false;
	err = err ?: krc_api_ask(queue, &copy, &grant);
	if (err == -EINPROGRESS)
		return false;
	spin_lock_bh(&queue->lock);
	krc_api_renewed(queue, held, err, &grant);
	spin_unlock_bh(&queue->lock);
	return true;
}

static void krc_api_work(struct work_struct *work)
{
	struct krcore_queue *queue = container_of(work, struct krcore_queue, work);
	struct krc_port *port = queue->client->port;

	if (krc_port_enter(port)) {
		if (krc_api_renew(queue))
			krc_flow_resume(&queue->flow);
		krc_port_exit(port);
	}
	krc_api_run(queue);
}

void krc_api_work_init(struct krcore_queue *queue)
{
	INIT_WORK(&queue->work, krc_api_work);
	krc_remote_wait_init(&queue->wait, krc_charge_payer(&queue->client->charge),
			     krc_api_answered);
}

void krc_api_work_stop(struct krcore_queue *queue)
{
	cancel_work_sync(&queue->work); /* nothing is taken: it starts no more READs */
	krc_remote_unwait(queue->peer->remote, &queue->wait);
	cancel_work_sync(&queue->work);
}
