// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: posting the requests of programs: check, charge, submit to the pool, complete into
 * the ring.
 *
 * The key of a remote region may be posted only until krc_req.until. krc_queue_check() holds
 * back a request that waited longer, behind other queues or a recovery, and a work item renews
 * the reference; the request fails only if the reference is no longer valid, with the error
 * that posting would have given. A peer may take any time to answer, so the work item does not
 * wait for it but is queued again by the answer, and a poster waits with no lock held. Nor does
 * it wait for a poster: a task may be preempted for as long as its user likes, with
 * krc_queue.post, and a few hundred of them would keep the work items of everybody waiting.
 * Locking: see user/queue.h. krc_queue.reqs is used as a ring, since a queue completes in order.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/spin.h"
#include "mem/region.h"
#include "mem/remote.h"
#include "node/port.h"
#include "peer/peer.h"
#include "peer/request.h"
#include "pool/read.h"
#include "pool/silence.h"
#include "user/after.h"
#include "user/post.h"
#include "user/queue.h"
#include "user/wait.h"

#define KRC_COPY_BATCH 12 /* requests copied from the program at once, to the stack */
#define KRC_NEED_FAULT_IN 1 /* internal, positive: the program's pages have to be faulted in */
#define KRC_PAGED_OUT_MAX 64 /* attempts to fault in the pages of one part of a call */

/* The word of the opcode without it: the flags, and above them what is to be zero. */
static u64 krc_wr_flags(const struct krp_wr *wr)
{
	BUILD_BUG_ON(offsetof(struct krp_wr, opcode) % sizeof(u64));
	BUILD_BUG_ON(offsetof(struct krp_wr, flags) != offsetof(struct krp_wr, opcode) + 1);
	BUILD_BUG_ON(offsetofend(struct krp_wr, rsvd) != offsetof(struct krp_wr, opcode) + 8);
	return le64_to_cpup((const __le64 *)&wr->opcode) >> 8;
}

/*
 * Check what does not depend on memory regions. @flags: krc_wr_flags(). @atomics: the port has
 * them. Return: 0, -EINVAL, -EOPNOTSUPP (no atomics).
 */
static int krc_wr_check(const struct krp_wr *wr, u64 flags, bool atomics)
{
	if (flags & ~(u64)(KRP_WR_FENCE | KRP_WR_IDEMPOTENT))
		return -EINVAL;
	return krc_request_check(wr->opcode, wr->length, wr->remote_addr, flags & KRP_WR_IDEMPOTENT,
				 atomics);
}

/* Put what a grant allows into a request that it has been checked for. */
static void krc_req_grant(struct krc_queue_req *qr, const struct krc_grant *grant)
{
	qr->req.wr.rkey = grant->rkey;
	qr->req.leased = true;
	qr->req.until = grant->until;
	qr->req.stay = grant->stay;
}

/*
 * Get the remote key of a request: by @grant, that of an earlier request, if it is for the same
 * region. The queue keeps its peer meanwhile, as below. @wait and return: see krc_remote_get().
 */
static int krc_req_refer(struct krc_queue *queue, struct krc_queue_req *qr, struct krc_grant *grant,
			 struct krc_remote_wait *wait)
{
	const struct krc_hw_wr *wr = &qr->req.wr;
	u32 access = krc_request_access(wr->opcode);
	int err;

	if (krc_grant_holds(grant, qr->token))
		err = krc_grant_check(grant, wr->remote_addr, wr->length, access);
	else
		err = krc_remote_get(queue->peer->remote, qr->token, wr->remote_addr, wr->length,
				     access, grant, wait);
	if (!err)
		krc_req_grant(qr, grant);
	if (err == -ETIMEDOUT) /* the peer is unresponsive and not to be asked for a while */
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, err);
	return err;
}

/* The READ of the peer's directory failed with @err: its record may be stale. */
static void krc_queue_unanswered(struct krc_queue *queue, int err)
{
	if (err != -EREMOTEIO && err != -ETIMEDOUT)
		return;
	krc_peer_disbelieve(queue->peer);
	krc_queue_set_state(queue, KRP_QUEUE_ERROR, err);
}

/**
 * struct krc_question - A poster's READ of a peer's directory, for a reference not cached.
 * @wait: waiter for that READ.
 * @remote: the peer's regions, counted; NULL: no READ was started, and nothing else is set.
 * @over: completed when the READ has ended.
 * @err: its result.
 */
struct krc_question {
	struct krc_remote_wait wait;
	struct krc_remote *remote;
	struct completion over;
	int err;
};

static void krc_question_answered(struct krc_remote_wait *wait, int err)
{
	struct krc_question *question = container_of(wait, struct krc_question, wait);

	question->err = err;
	complete(&question->over);
}

static void krc_question_init(struct krc_question *question, const struct krc_queue *queue)
{
	krc_remote_wait_init(&question->wait, krc_charge_payer(&queue->ctx->charge),
			     krc_question_answered);
	init_completion(&question->over);
	question->err = 0;
}

/* Argument of krc_question_poll(). */
struct krc_asker {
	struct krc_question *question;
	struct krc_pool *pool;
};

static bool krc_question_poll(void *arg)
{
	const struct krc_asker *asker = arg;
	u32 index = asker->question->wait.index;

	if (!completion_done(&asker->question->over) && index != KRC_READ_WAITS)
		krc_pool_poll(asker->pool, index);
	return completion_done(&asker->question->over);
}

/*
 * Wait for the READ of the directory and drop question->remote. Context: port entered, no lock
 * held. Return: the result; -EINTR (killed); -EBUSY (timeout, no fault of the peer).
 */
static int krc_question_wait(struct krc_question *question, struct krc_queue *queue)
{
	struct krc_asker asker = { .question = question, .pool = queue->ctx->port->pool };
	long left = msecs_to_jiffies(KRC_REMOTE_TIMEOUT_MS);

	if (!krc_spin(krc_question_poll, &asker))
		left = wait_for_completion_killable_timeout(&question->over, left);
	krc_remote_unwait(question->remote, &question->wait);
	krc_remote_put(question->remote);
	if (left <= 0 && !completion_done(&question->over))
		return left ? -EINTR : -EBUSY;
	return question->err;
}

/**
 * struct krc_batch - What the requests of a call have in common with those before them.
 * @to: address of the queue's peer.
 * @atomics: the port has atomics.
 * @grant: remote region, that of the queue; token 0: none yet.
 * @question: started for a remote reference that is not cached.
 * @mr: local region of the last request, counted once by its look-up; NULL: none yet.
 * @handle: its handle.
 * @uses: requests with @mr that krc_batch_settle() counts, all at once.
 * @next: where the next request goes.
 * @end: behind the last place.
 */
struct krc_batch {
	const struct krc_hw_address *to;
	bool atomics;
	struct krc_grant *grant;
	struct krc_question *question;
	struct krc_mr *mr;
	u32 handle;
	u32 uses;
	struct krc_queue_req *next;
	const struct krc_queue_req *end;
};

/* No more requests with the present local region: each of them counts it from here on. */
static void krc_batch_settle(struct krc_batch *batch)
{
	if (!batch->mr)
		return;
	if (!batch->uses)
		krc_mr_put(batch->mr, 1);
	else if (batch->uses > 1)
		krc_mr_get(batch->mr, batch->uses - 1);
	batch->mr = NULL;
	batch->uses = 0;
}

/* Look up another local region. Return: 0, -ENOENT. */
static int krc_batch_region(struct krc_batch *batch, struct krc_context *ctx, u32 handle)
{
	krc_batch_settle(batch);
	batch->mr = krc_context_mr(ctx, handle);
	batch->handle = handle;
	return batch->mr ? 0 : -ENOENT;
}

/* Get the remote key of a request that the queue's grant is not for. Return: krc_remote_get(). */
static int krc_batch_refer(struct krc_batch *batch, struct krc_queue *queue,
			   struct krc_queue_req *qr)
{
	struct krc_question *question = batch->question;
	int err;

	lockdep_assert_held(&queue->post);
	krc_question_init(question, queue);
	err = krc_req_refer(queue, qr, batch->grant, &question->wait);
	if (err == -EINPROGRESS) {
		question->remote = queue->peer->remote;
		krc_remote_hold(question->remote);
	}
	return err;
}

/* Fill in what does not come from the remote region. @flags: KRP_WR_*. */
static void krc_req_fill(struct krc_queue *queue, struct krc_queue_req *qr, const struct krp_wr *wr,
			 u32 flags, const struct krc_batch *batch)
{
	struct krc_hw_wr *hw = &qr->req.wr;

	qr->mr = batch->mr;
	qr->user_data = wr->user_data;
	qr->token = wr->remote_token;
	qr->error = 0;
	krc_req_renew(&qr->req, &queue->flow);
	qr->req.idempotent = flags & KRP_WR_IDEMPOTENT;
	hw->address = batch->to;
	hw->remote_addr = wr->remote_addr;
	hw->local_addr = wr->local_addr;
	hw->compare_add = wr->compare_add;
	hw->swap = wr->swap;
	hw->lkey = batch->mr->key.lkey;
	hw->length = wr->length;
	hw->opcode = wr->opcode;
	hw->fence = flags & KRP_WR_FENCE;
}

/* Turn a program's request into @qr. On success @batch counts its local region for it. */
static int krc_req_prepare(struct krc_queue *queue, struct krc_queue_req *qr,
			   const struct krp_wr *wr, struct krc_batch *batch)
{
	u64 flags = krc_wr_flags(wr);
	int err = krc_wr_check(wr, flags, batch->atomics);

	if (!err && unlikely(!batch->mr || batch->handle != wr->local_mr))
		err = krc_batch_region(batch, queue->ctx, wr->local_mr);
	if (!err)
		err = krc_mr_check(batch->mr, wr->local_addr, wr->length,
				   wr->opcode != KRP_OP_WRITE);
	if (err)
		return err;
	krc_req_fill(queue, qr, wr, flags, batch);
	if (likely(krc_grant_holds(batch->grant, wr->remote_token) &&
		   !krc_grant_check(batch->grant, wr->remote_addr, wr->length,
				    krc_request_access(wr->opcode))))
		krc_req_grant(qr, batch->grant);
	else
		err = krc_batch_refer(batch, queue, qr);
	batch->uses += !err;
	return err;
}

static struct krc_queue_req *krc_queue_req_at(struct krc_queue *queue, u64 number)
{
	return &queue->reqs[number % queue->depth];
}

/* The grant of the last call, unless something of the peer was forgotten since. */
static struct krc_grant *krc_queue_grant(struct krc_queue *queue)
{
	lockdep_assert_held(&queue->post);
	krc_grant_refresh(&queue->grant, &queue->forgets, queue->peer->remote);
	return &queue->grant;
}

/* Prepare requests that have been copied. Return: how many; *@ret_error says why not more. */
static u32 krc_post_prepare_copied(struct krc_queue *queue, const struct krp_wr *wrs, u32 count,
				   struct krc_batch *batch, struct list_head *reqs, int *ret_error)
{
	const struct krp_wr *wr = wrs, *end = wrs + count;
	struct krc_queue_req *qr = batch->next;
	struct krc_req *last = krc_reqs_open(reqs);

	for (; wr != end; wr++) {
		int err = krc_req_prepare(queue, qr, wr, batch);

		if (err) {
			*ret_error = err;
			break;
		}
		last = krc_reqs_add(last, &qr->req);
		if (++qr == batch->end)
			qr = queue->reqs;
	}
	krc_reqs_close(reqs, last);
	batch->next = qr;
	return wr - wrs;
}

/*
 * Copy requests, KRC_COPY_BATCH at most, without faulting pages in. By words and in line: a call of
 * copy_from_user() for a length that is not known looks over the stack first. Return: whether all
 * are there.
 */
static __always_inline bool krc_post_copy(struct krp_wr *wrs, const struct krp_wr __user *user,
					  u32 count)
{
	const u64 __user *from = (const u64 __user *)user;
	u64 *to = (u64 *)wrs, *end = (u64 *)(wrs + count);
	bool whole = false;

	BUILD_BUG_ON(sizeof(*wrs) != 8 * sizeof(*to));
	pagefault_disable();
	if (!user_read_access_begin(user, count * sizeof(*wrs)))
		goto out;
	for (; to != end; to += 8, from += 8) {
		unsafe_get_user(to[0], from, fault);
		unsafe_get_user(to[1], from + 1, fault);
		unsafe_get_user(to[2], from + 2, fault);
		unsafe_get_user(to[3], from + 3, fault);
		unsafe_get_user(to[4], from + 4, fault);
		unsafe_get_user(to[5], from + 5, fault);
		unsafe_get_user(to[6], from + 6, fault);
		unsafe_get_user(to[7], from + 7, fault);
	}
	whole = true;
fault:
	user_read_access_end();
out:
	pagefault_enable();
	return whole;
}

/*
 * Prepare up to @count requests. Return: how many; *@ret_error says why not more. Does not fault
 * pages in, because the port is entered: see krc_post_readable().
 */
static u32 krc_post_prepare(struct krc_queue *queue, const struct krp_post *arg, u32 count,
			    struct krc_question *question, struct list_head *reqs, int *ret_error)
{
	const struct krp_wr __user *user = u64_to_user_ptr(arg->wrs);
	struct krc_batch batch = {
		.to = &queue->peer->address,
		.atomics = queue->ctx->port->rail.attr.atomics,
		.grant = krc_queue_grant(queue),
		.question = question,
		.next = krc_queue_req_at(queue, queue->posted),
		.end = queue->reqs + queue->depth,
	};
	struct krp_wr wrs[KRC_COPY_BATCH] krc_uninitialized;
	u32 done = 0, some, n;

	while (done < count) {
		some = min_t(u32, count - done, KRC_COPY_BATCH);
		if (!krc_post_copy(wrs, user + done, some)) {
			*ret_error = KRC_NEED_FAULT_IN;
			break;
		}
		n = krc_post_prepare_copied(queue, wrs, some, &batch, reqs, ret_error);
		done += n;
		if (n < some)
			break;
	}
	krc_batch_settle(&batch);
	return done;
}

/*
 * Reserve capacity in the queue, the ring and the user's limit. Return: for how many requests;
 * *@ret_error says why not for more: -EAGAIN (queue or ring full), -EDQUOT (limit), else 0.
 */
static u32 krc_post_reserve(struct krc_queue *queue, u32 count, int *ret_error)
{
	u64 busy = queue->posted - krc_queue_completed(queue);
	u32 room, charged;

	lockdep_assert_held(&queue->post);
	room = krc_ring_reserve(&queue->ctx->ring, min_t(u32, count, queue->depth - busy));
	charged = krc_charge_requests(queue->ctx->user, room);
	*ret_error = room < count ? -EAGAIN : 0;
	if (charged < room) {
		krc_ring_unreserve(&queue->ctx->ring, room - charged);
		*ret_error = -EDQUOT;
	}
	return charged;
}

static void krc_post_unreserve(struct krc_queue *queue, u32 count)
{
	if (!count)
		return;
	krc_uncharge_requests(queue->ctx->user, count);
	krc_ring_unreserve(&queue->ctx->ring, count);
}

/* Give up prepared requests that no flow has taken, and what was reserved for them. */
static void krc_post_undo(struct krc_queue *queue, struct list_head *reqs, u32 count)
{
	struct krc_req *req, *tmp;

	lockdep_assert_held(&queue->post);
	list_for_each_entry_safe(req, tmp, reqs, list) {
		list_del_init(&req->list);
		krc_mr_put(container_of(req, struct krc_queue_req, req)->mr, 1);
	}
	krc_post_unreserve(queue, count);
}

/* Submit the prepared requests. Return: 0; or the pool's error, and none was taken. */
static int krc_post_submit(struct krc_queue *queue, struct list_head *reqs, u32 taken, bool polls,
			   struct krc_posted *ret_posted)
{
	int err;

	lockdep_assert_held(&queue->post);
	queue->posted += taken;
	queue->flow.polled = polls;
	err = krc_flow_submit_many(&queue->flow, reqs, taken, &ret_posted->index);
	if (!err) {
		ret_posted->queue = queue;
		ret_posted->until = queue->posted;
		WRITE_ONCE(queue->ctx->posted_to, ret_posted->index);
		return 0;
	}
	queue->posted -= taken;
	krc_post_undo(queue, reqs, taken);
	return err;
}

/*
 * Post up to @count requests with the port entered. Return: 0 if some were taken, with *@ret_posted
 * set; else an errno or KRC_NEED_FAULT_IN: all are to be faulted in, if they were not (@faulted).
 * With 0, KRP_POST_WAIT and no @question->remote, the caller has to call krc_wait_posted().
 */
static int krc_post_on_port(struct krc_queue *queue, struct krp_post *arg, u32 count, bool faulted,
			    struct krc_question *question, struct krc_posted *ret_posted)
{
	bool polls = arg->flags & KRP_POST_WAIT;
	LIST_HEAD(reqs);
	u32 room, taken;
	int err, error;

	lockdep_assert_held(&queue->post);
	if (!count)
		return -EFAULT;
	room = krc_post_reserve(queue, count, &error);
	taken = krc_post_prepare(queue, arg, room, question, &reqs, &error);
	krc_post_unreserve(queue, room - taken);
	if (!taken)
		return error;
	if (error == KRC_NEED_FAULT_IN && !faulted) {
		krc_post_undo(queue, &reqs, taken);
		return error;
	}
	if (error == KRC_NEED_FAULT_IN)
		error = -EAGAIN;
	else if (!error && count < arg->count)
		error = -EFAULT;
	err = krc_post_submit(queue, &reqs, taken, polls && !question->remote, ret_posted);
	if (err)
		return err;
	arg->taken = taken;
	arg->error = error;
	return 0;
}

/* Wait for the READ that the other requests need. Context: port entered. Return: 0, errno. */
static int krc_post_ask(struct krc_queue *queue, struct krc_question *question)
{
	struct krc_remote *remote = question->remote; /* uncounted from here on: only compared */
	int err = krc_question_wait(question, queue);

	if (!err)
		return 0;
	mutex_lock(&queue->post);
	if (queue->peer && queue->peer->remote == remote)
		krc_queue_unanswered(queue, err);
	mutex_unlock(&queue->post);
	return err;
}

/*
 * Post the first @count requests of @arg, which were @faulted in or are taken to be there. Return:
 * 0, with arg->taken and arg->error, or an errno, or KRC_NEED_FAULT_IN. -EINPROGRESS in either: a
 * directory was READ, call again for the rest.
 */
static int krc_queue_post(struct krc_queue *queue, struct krp_post *arg, u32 count, bool faulted)
{
	struct krc_port *port = queue->ctx->port;
	struct krc_question question krc_uninitialized; /* set if it is asked: see there */
	struct krc_posted posted;
	bool entered, ready;
	int err = -ENOTCONN, answer = 0;

	question.remote = NULL;
	if (mutex_lock_interruptible(&queue->post))
		return -ERESTARTSYS;
	ready = READ_ONCE(queue->state) == KRP_QUEUE_READY;
	entered = ready && krc_port_enter(port);
	if (entered)
		err = krc_post_on_port(queue, arg, count, faulted, &question, &posted);
	else if (ready)
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, -ENODEV);
	mutex_unlock(&queue->post);
	if (!entered)
		return err;
	if (question.remote)
		answer = krc_post_ask(queue, &question);
	else if (!err && arg->flags & KRP_POST_WAIT)
		krc_wait_posted(&posted);
	krc_port_exit(port);
	if (answer && err == -EINPROGRESS)
		err = answer;
	else if (answer && !err)
		arg->error = answer;
	return err;
}

/*
 * Fault in the requests of @arg. Return: how many are readable. A program may serve the page
 * faults (userfaultfd) and take any time, so no lock is held and no port entered.
 */
static u32 krc_post_readable(const struct krp_post *arg)
{
	size_t bytes = arg->count * sizeof(struct krp_wr);

	return (bytes - fault_in_readable(u64_to_user_ptr(arg->wrs), bytes)) /
	       sizeof(struct krp_wr);
}

/*
 * Post one part of a call. Its pages are nearly always there, since the program has just written
 * them: they are faulted in only if they could not be copied, and again while they are evicted
 * before they could be.
 */
static int krc_post_part(struct krc_queue *queue, struct krp_post *arg)
{
	int err, tries;

	arg->taken = 0;
	arg->error = 0;
	err = krc_queue_post(queue, arg, arg->count, false);
	for (tries = 0; err == KRC_NEED_FAULT_IN && tries < KRC_PAGED_OUT_MAX; tries++)
		err = krc_queue_post(queue, arg, krc_post_readable(arg), true);
	return err == KRC_NEED_FAULT_IN ? -EFAULT : err;
}

/*
 * The first part of a call, with what @err and @arg say of it, ended where a peer's directory had
 * to be READ: post the others, too, until @limit.
 */
static int krc_post_rest(struct krc_queue *queue, struct krp_post *arg, int err,
			 unsigned long limit)
{
	struct krp_post part = *arg;

	arg->taken = 0;
	for (;;) {
		if (!err) {
			arg->taken += part.taken;
			part.wrs += (u64)part.taken * sizeof(struct krp_wr);
			part.count -= part.taken;
			err = part.error;
		}
		if (err != -EINPROGRESS || !part.count || time_after_eq(jiffies, limit))
			break;
		err = krc_post_part(queue, &part);
	}
	if (err == -EINPROGRESS)
		err = -EBUSY;
	if (!arg->taken)
		return err;
	arg->error = err == -ERESTARTSYS ? -EINTR : err;
	return 0;
}

/* Post a call in parts: a part ends where a peer's directory had to be READ. */
static int krc_post_all(struct krc_queue *queue, struct krp_post *arg)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_REMOTE_TIMEOUT_MS);
	int err = krc_post_part(queue, arg);

	if (likely((err ?: arg->error) != -EINPROGRESS))
		return err;
	return krc_post_rest(queue, arg, err, limit);
}

int krc_ioc_post(struct krc_context *ctx, struct krp_post *arg)
{
	struct krc_queue *queue;
	int err;

	if (!arg->count || arg->count > KRP_POST_MAX || arg->flags & ~KRP_POST_WAIT || arg->rsvd)
		return -EINVAL;
	queue = krc_queue_get(ctx, arg->queue);
	if (!queue)
		return -ENOENT;
	err = krc_post_all(queue, arg);
	krc_queue_put(queue);
	this_cpu_inc(krc_counts.posts);
	if (!err)
		this_cpu_add(krc_counts.requests, arg->taken);
	return err;
}

int krc_queue_check(struct krc_req *req)
{
	struct krc_queue_req *qr = container_of(req, struct krc_queue_req, req);
	struct krc_queue *queue = container_of(req->flow, struct krc_queue, flow);

	/* asked when the lease is over (krc_flow.lapses): a renewal that failed has left it so */
	if (qr->error)
		return qr->error;
	/* no check for an unresponsive peer: it grants no leases, and the present ones soon end */
	if (time_before_eq(jiffies, req->until))
		return 0;
	WRITE_ONCE(queue->held, qr);
	queue_work(krc_renew_wq, &queue->renew);
	return -EAGAIN;
}

/* krc_remote_wait.ready of a held queue: have the renew work go on. */
static void krc_queue_answered(struct krc_remote_wait *wait, int err)
{
	struct krc_queue *queue = container_of(wait, struct krc_queue, wait);

	queue->answer = err;
	queue_work(krc_renew_wq, &queue->renew);
}

/*
 * What ends a request that needs a new key: the error of its queue, of which none of those before it
 * may have been told yet. Return: also 0: the queue is READY.
 */
static int krc_queue_trouble(struct krc_queue *queue)
{
	int err = 0;

	spin_lock_bh(&queue->lock);
	if (queue->state != KRP_QUEUE_READY)
		err = queue->error ?: -ECANCELED;
	spin_unlock_bh(&queue->lock);
	return err;
}

/* Renew the key of a queued request. @at_once: it is the held one, for which a READ may start. */
static int krc_queue_renew_key(struct krc_queue *queue, struct krc_queue_req *qr,
			       struct krc_grant *grant, bool at_once)
{
	int err = xchg(&queue->answer, 0), trouble = krc_queue_trouble(queue);

	if (trouble)
		return trouble;
	if (err) {
		krc_queue_unanswered(queue, err);
		return err;
	}
	return krc_req_refer(queue, qr, grant, at_once ? &queue->wait : NULL);
}

/*
 * The requests behind the held one get new keys from the cache, up to the first that needs a READ
 * or fails; krc_queue_check() holds that one later.
 */
static void krc_queue_renew_behind(struct krc_queue *queue, const struct krc_queue_req *held,
				   struct krc_grant *grant)
{
	u64 at = krc_queue_completed(queue);

	lockdep_assert_held(&queue->post);
	while (at != queue->posted && krc_queue_req_at(queue, at) != held)
		at++; /* already in the hardware */
	while (at != queue->posted && ++at != queue->posted) {
		struct krc_queue_req *qr = krc_queue_req_at(queue, at);

		if (krc_queue_renew_key(queue, qr, grant, false))
			break;
		qr->error = 0; /* of a refusal, before a reset brought back one before it */
	}
}

/*
 * Renew the keys of queued requests; the flow is held, so the pool does not read them. The held
 * request gets a new key or an error. It is nobody else's, and the queue keeps its peer, until this
 * work item has ended or was cancelled; a poster is not waited for, who may not run for long, since
 * works of other programs are behind this one. Return: true if the flow may be resumed.
 */
static bool krc_queue_renew_keys(struct krc_queue *queue)
{
	struct krc_queue_req *held = READ_ONCE(queue->held);
	struct krc_grant grant = {};
	int err;

	if (!list_empty_careful(&queue->wait.list))
		return false; /* the READ is still in flight */
	err = krc_queue_renew_key(queue, held, &grant, true);
	if (err == -EINPROGRESS)
		return false;
	held->error = err;
	if (!err && mutex_trylock(&queue->post)) {
		krc_queue_renew_behind(queue, held, &grant);
		mutex_unlock(&queue->post);
	}
	return true;
}

static void krc_queue_renew(struct work_struct *work)
{
	struct krc_queue *queue = container_of(work, struct krc_queue, renew);
	struct krc_port *port = queue->ctx->port;

	if (krc_port_enter(port)) {
		if (krc_queue_renew_keys(queue))
			krc_flow_resume(&queue->flow);
		krc_port_exit(port);
	}
}

void krc_queue_renew_init(struct krc_queue *queue)
{
	INIT_WORK(&queue->renew, krc_queue_renew);
	krc_remote_wait_init(&queue->wait, krc_charge_payer(&queue->ctx->charge),
			     krc_queue_answered);
}

void krc_queue_renew_stop(struct krc_queue *queue)
{
	cancel_work_sync(&queue->renew); /* nothing is outstanding: it starts no more READs */
	if (queue->peer)
		krc_remote_unwait(queue->peer->remote, &queue->wait);
	cancel_work_sync(&queue->renew);
	queue->answer = 0;
}

/* A failed request puts its queue into ERROR, before it is counted; the first error is kept. */
static void krc_queue_failed(struct krc_queue *queue, const struct krc_req *req)
{
	this_cpu_inc(krc_counts.errors);
	krc_queue_set_state(queue, KRP_QUEUE_ERROR, req->status);
	WRITE_ONCE(queue->failed, queue->failed + 1);
	krc_peer_suspect(queue->peer, req->fault,
			 container_of(req, struct krc_queue_req, req)->token);
}

/*
 * Some of the requests failed. In their order, for a target that has answered before it did not is
 * silent. Return: how many bytes were not transferred.
 */
static noinline u64 krc_queue_failures(struct krc_queue *queue, const struct list_head *reqs)
{
	const struct krc_req *req;
	bool answered = false;
	u64 bytes = 0;

	list_for_each_entry(req, reqs, list) {
		if (req->status) {
			krc_queue_failed(queue, req);
			bytes += req->wr.length;
		} else if (!answered) {
			krc_standing_answered(queue->peer->standing);
			answered = true;
		}
	}
	return bytes;
}

/* Outcomes of the requests, oldest first: of the queue, its peer and its regions. */
static void krc_queue_outcomes(struct krc_queue *queue, const struct list_head *reqs, u32 nr)
{
	const struct krc_req *req = list_first_entry(reqs, struct krc_req, list);
	struct krc_mr *mr = container_of(req, struct krc_queue_req, req)->mr;
	u32 left = nr, counted = nr; /* with this request; from where on @mr is used */
	u64 bytes = 0;
	int failed = 0;

	for (; left; left--, req = list_next_entry(req, list)) {
		struct krc_mr *next = container_of(req, struct krc_queue_req, req)->mr;

		failed |= req->status;
		bytes += req->wr.length;
		if (likely(next == mr))
			continue;
		krc_mr_put(mr, counted - left);
		mr = next;
		counted = left;
	}
	krc_mr_put(mr, counted);
	if (unlikely(failed))
		bytes -= krc_queue_failures(queue, reqs);
	else
		krc_standing_answered(queue->peer->standing);
	queue->bytes += bytes;
	krc_uncharge_requests(queue->ctx->user, nr);
	this_cpu_add(krc_counts.completions, nr);
}

void krc_queue_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_queue *queue = container_of(flow, struct krc_queue, flow);
	struct krc_context *ctx = queue->ctx;
	struct krc_ring_at at;
	u32 id = queue->id;
	struct krc_req *req;

	krc_queue_outcomes(queue, reqs, nr);
	krc_ring_begin(&ctx->ring);
	at = krc_ring_at(&ctx->ring);
	/* they stay linked to each other: whoever posts one again only adds it to a list */
	list_for_each_entry(req, reqs, list) {
		int status = req->status;

		*krc_ring_next(&at) = (struct krp_cqe){
			.user_data = container_of(req, struct krc_queue_req, req)->user_data,
			.status = status,
			.bytes = status ? 0 : req->wr.length,
			.queue = id,
			.opcode = req->wr.opcode,
		};
	}
	/* From here on a poster may reuse them. Pairs with krc_queue_completed(). */
	smp_store_release(&queue->completed, queue->completed + nr);
	krc_ring_end(&ctx->ring, nr);
	/* Pairs with krc_posted_told(): a task that sees it finds the entries in the ring. */
	smp_store_release(&queue->told, queue->completed);
	krc_wait_wake(ctx); /* with a full barrier, as krc_after_told() needs */
	if (unlikely(!list_empty_careful(&queue->afters)))
		krc_after_told(queue);
}
