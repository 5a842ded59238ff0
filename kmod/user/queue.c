// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: queues: creation, states, connect and close.
 *
 * Connecting takes the peer's record from the node's cache or a MetaServer and gives the
 * queue a peer; nothing is sent to the peer. Closing erases the number first, so that no call
 * finds the queue, then cancels queued requests and drains posted ones.
 * Locking: see user/queue.h.
 */
#include <linux/pid.h>
#include <linux/slab.h>

#include "base/trace.h"
#include "node/port.h"
#include "peer/lookup.h"
#include "peer/peer.h"
#include "user/post.h"
#include "user/queue.h"
#include "user/show.h"

/* For each state, a mask of the states that may follow it. */
static const u8 krc_queue_next[KRC_QUEUE_CLOSING + 1] = {
	[KRP_QUEUE_IDLE] = BIT(KRP_QUEUE_CONNECTING) | BIT(KRP_QUEUE_ERROR) |
			   BIT(KRC_QUEUE_CLOSING),
	[KRP_QUEUE_CONNECTING] = BIT(KRP_QUEUE_READY) | BIT(KRP_QUEUE_ERROR) |
				 BIT(KRC_QUEUE_CLOSING),
	[KRP_QUEUE_READY] = BIT(KRP_QUEUE_ERROR) | BIT(KRC_QUEUE_CLOSING),
	[KRP_QUEUE_ERROR] = BIT(KRP_QUEUE_CONNECTING) | BIT(KRC_QUEUE_CLOSING),
};

bool krc_queue_set_state(struct krc_queue *queue, u32 state, int error)
{
	u32 from;
	bool may;

	spin_lock_bh(&queue->lock);
	from = queue->state;
	may = krc_queue_next[from] & BIT(state);
	if (may) {
		WRITE_ONCE(queue->state, state);
		queue->error = state == KRP_QUEUE_ERROR ? error : 0;
	}
	spin_unlock_bh(&queue->lock);
	if (may)
		trace_krc_queue_state(&queue->ctx->port->rail, queue->ctx->id, queue->id, from,
				      state, error);
	return may;
}

static void krc_queue_free(struct kref *ref)
{
	struct krc_queue *queue = container_of(ref, struct krc_queue, ref);

	WARN_ON(!list_empty(&queue->afters));
	krc_flow_release(&queue->flow);
	krc_peer_put(queue->peer);
	krc_uncharge(&queue->charge);
	krc_context_put(queue->ctx);
	mutex_destroy(&queue->post);
	mutex_destroy(&queue->control);
	kvfree(queue);
}

void krc_queue_put(struct krc_queue *queue)
{
	kref_put(&queue->ref, krc_queue_free);
}

struct krc_queue *krc_queue_get(struct krc_context *ctx, u32 id)
{
	struct krc_queue *queue;

	xa_lock(&ctx->queues);
	queue = krc_quick_find(&ctx->queues, ctx->queues_quick, KRC_QUEUES_QUICK, id);
	if (queue)
		kref_get(&queue->ref);
	xa_unlock(&ctx->queues);
	return queue;
}

/* Take a number from its queue, if that is @only or @only is NULL. Return: the queue, or NULL. */
static struct krc_queue *krc_queue_unname(struct krc_context *ctx, u32 id,
					  const struct krc_queue *only)
{
	return krc_quick_erase(&ctx->queues, ctx->queues_quick, KRC_QUEUES_QUICK, id, only);
}

/* Accept no more requests and cancel the queued ones. */
static void krc_queue_close_begin(struct krc_queue *queue)
{
	struct krc_port *port = queue->ctx->port;

	krc_queue_set_state(queue, KRC_QUEUE_CLOSING, 0);
	mutex_lock(&queue->post); /* wait for a poster */
	if (krc_port_enter(port)) {
		krc_flow_cancel(&queue->flow);
		krc_port_exit(port);
	}
	mutex_unlock(&queue->post);
}

/* Drain the requests; release the entries in the ring and the reference of the number. */
static void krc_queue_close_end(struct krc_queue *queue)
{
	krc_flow_drain(&queue->flow);
	krc_queue_renew_stop(queue);
	krc_ring_give_back(&queue->ctx->ring, queue->depth);
	krc_queue_put(queue);
}

static void krc_queue_closer(struct work_struct *work)
{
	krc_queue_close_end(container_of(work, struct krc_queue, closer));
}

static struct krc_queue *krc_queue_alloc(struct krc_context *ctx, u32 depth)
{
	struct krc_queue *queue = kvzalloc(struct_size(queue, reqs, depth), GFP_KERNEL_ACCOUNT);

	if (!queue)
		return NULL;
	kref_init(&queue->ref);
	queue->ctx = ctx;
	queue->depth = depth;
	queue->state = KRP_QUEUE_IDLE;
	mutex_init(&queue->control);
	mutex_init(&queue->post);
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->afters);
	krc_queue_renew_init(queue);
	INIT_WORK(&queue->closer, krc_queue_closer);
	return queue;
}

/*
 * Make a queue with its number. Return: it, counted for the caller too, since another thread may
 * guess the number and close it; or ERR_PTR.
 */
static struct krc_queue *krc_queue_create(struct krc_context *ctx, u32 depth)
{
	struct krc_port *port = krc_context_port(ctx);
	struct krc_queue *queue;
	int err;

	if (!port)
		return ERR_PTR(-EBADFD);
	if (!depth || depth > KRP_QUEUE_DEPTH_MAX)
		return ERR_PTR(-EINVAL);
	queue = krc_queue_alloc(ctx, depth);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	err = krc_charge(ctx->user, KRC_RES_QUEUE, &queue->charge);
	if (err)
		goto err_queue;
	err = krc_ring_set_aside(&ctx->ring, depth);
	if (err)
		goto err_charge;
	if (!krc_port_enter(port)) {
		err = -ENODEV;
		goto err_aside;
	}
	krc_flow_init(&queue->flow, port->pool, krc_queue_done, krc_queue_check);
	queue->flow.payer = krc_charge_payer(&ctx->charge);
	queue->flow.lapses = true; /* see krc_queue_check() */
	krc_port_exit(port);
	kref_get(&ctx->ref);
	kref_get(&queue->ref);
	err = xa_alloc(&ctx->queues, &queue->id, queue, XA_LIMIT(1, INT_MAX), GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_ctx;
	this_cpu_inc(krc_counts.queues);
	return queue;

err_ctx:
	krc_context_put(ctx);
err_aside:
	krc_ring_give_back(&ctx->ring, depth);
err_charge:
	krc_uncharge(&queue->charge);
err_queue:
	kvfree(queue);
	return ERR_PTR(err);
}

int krc_ioc_queue_create(struct krc_context *ctx, struct krp_queue_create *arg)
{
	struct krc_queue *queue;

	if (arg->flags || arg->rsvd)
		return -EINVAL;
	queue = krc_queue_create(ctx, arg->depth);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	arg->queue = queue->id;
	krc_queue_put(queue);
	return 0;
}

/* Close a queue whose number is already erased from krc_context.queues. */
static void krc_queue_close(struct krc_queue *queue)
{
	this_cpu_dec(krc_counts.queues);
	krc_queue_close_begin(queue);
	if (krc_flow_drain_killable(&queue->flow))
		queue_work(krc_context_wq, &queue->closer); /* the caller was killed */
	else
		krc_queue_close_end(queue);
}

int krc_ioc_queue_close(struct krc_context *ctx, struct krp_queue_close *arg)
{
	struct krc_queue *queue;

	if (arg->rsvd)
		return -EINVAL;
	queue = krc_queue_unname(ctx, arg->queue, NULL);
	if (!queue)
		return -ENOENT;
	krc_queue_close(queue);
	return 0;
}

void krc_queue_close_all(struct krc_context *ctx)
{
	struct krc_queue *queue;
	unsigned long id;

	xa_for_each(&ctx->queues, id, queue)
		krc_queue_close_begin(queue);
	xa_for_each(&ctx->queues, id, queue) {
		krc_queue_unname(ctx, id, queue);
		this_cpu_dec(krc_counts.queues);
		krc_queue_close_end(queue);
	}
}

void krc_queue_fail_all(struct krc_context *ctx, int error)
{
	struct krc_queue *queue;
	unsigned long id;

	xa_lock(&ctx->queues);
	xa_for_each(&ctx->queues, id, queue)
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, error);
	xa_unlock(&ctx->queues);
}

/* Look up a peer's record in the cache or at a MetaServer, and count hits of the cache. */
static int krc_queue_lookup(struct krc_context *ctx, const struct krp_key *key,
			    struct krp_connect *arg, struct krp_value *ret_value)
{
	int ret = krc_lookup(ctx->port, krc_charge_payer(&ctx->charge), key,
			     arg->flags & KRP_CONNECT_FRESH, arg->timeout_ms, ret_value,
			     &arg->reads, NULL);

	if (ret > 0)
		this_cpu_inc(krc_counts.connects_cached);
	return min(ret, 0);
}

/*
 * Take the peer away from a queue with nothing outstanding, unless it is being closed: the
 * closer uses the peer without a lock once it has had @post (krc_queue_renew_stop()). Return: the
 * peer, counted, or NULL: there was none; or ERR_PTR(-ECANCELED).
 */
static struct krc_peer *krc_queue_take_peer(struct krc_queue *queue)
{
	struct krc_peer *old = ERR_PTR(-ECANCELED);

	mutex_lock(&queue->post);
	if (READ_ONCE(queue->state) != KRC_QUEUE_CLOSING) {
		krc_flow_restart(&queue->flow);
		old = queue->peer;
		WRITE_ONCE(queue->peer, NULL);
		queue->flow.standing = NULL;
	}
	mutex_unlock(&queue->post);
	return old;
}

/*
 * Detach from the old peer: cancel queued requests, drain posted ones. ERROR keeps new posts
 * out. @post is not held while draining, which the hardware may take long for. Return: 0, or the
 * error of krc_flow_drain_killable() or krc_queue_take_peer().
 */
static int krc_queue_detach(struct krc_queue *queue)
{
	struct krc_peer *old;
	int err;

	lockdep_assert_held(&queue->control);
	mutex_lock(&queue->post); /* wait for a poster */
	krc_flow_cancel(&queue->flow);
	mutex_unlock(&queue->post);
	err = krc_flow_drain_killable(&queue->flow);
	if (err)
		return err;
	krc_queue_renew_stop(queue);
	old = krc_queue_take_peer(queue);
	if (IS_ERR(old))
		return PTR_ERR(old);
	krc_peer_put(old);
	return 0;
}

/* Nobody posts before @post is free; and a queue that is being closed gets no peer, see above. */
static int krc_queue_attach(struct krc_queue *queue, struct krc_peer *peer)
{
	int err = 0;

	mutex_lock(&queue->post);
	if (krc_queue_set_state(queue, KRP_QUEUE_READY, 0)) {
		queue->grant.token = 0;
		queue->flow.standing = peer->standing;
		WRITE_ONCE(queue->peer, peer);
	} else {
		/* the port died, or it was closed */
		err = READ_ONCE(queue->state) == KRP_QUEUE_ERROR ? -ENODEV : -ECANCELED;
	}
	mutex_unlock(&queue->post);
	return err;
}

/* Look up and attach the peer. Context: port entered, queue in CONNECTING. */
static int krc_queue_connect(struct krc_queue *queue, struct krp_connect *arg)
{
	struct krc_port *port = queue->ctx->port;
	struct krp_key key = { .service = cpu_to_le16(arg->service) };
	struct krp_value value;
	struct krc_peer *peer;
	int err;

	memcpy(key.gid, arg->gid, sizeof(key.gid));
	err = krc_queue_lookup(queue->ctx, &key, arg, &value);
	if (err)
		return err;
	peer = krc_peer_get(port, &key, &value, arg->flags & KRP_CONNECT_FRESH);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	err = krc_queue_attach(queue, peer);
	if (err)
		krc_peer_put(peer);
	else
		arg->generation = le64_to_cpu(value.generation);
	return err;
}

static int krc_queue_connect_on_port(struct krc_queue *queue, struct krp_connect *arg)
{
	u32 state = READ_ONCE(queue->state);
	int err;

	lockdep_assert_held(&queue->control); /* no other thread makes it READY meanwhile */
	if (state == KRP_QUEUE_READY)
		return -EISCONN;
	if (state == KRC_QUEUE_CLOSING)
		return -ENOENT;
	/* Drain in ERROR: in CONNECTING, a failing request would put the queue into ERROR. */
	if (state == KRP_QUEUE_ERROR) {
		err = krc_queue_detach(queue);
		if (err)
			return err;
	}
	if (!krc_queue_set_state(queue, KRP_QUEUE_CONNECTING, 0))
		return -ECANCELED; /* closed meanwhile */
	err = krc_queue_connect(queue, arg);
	if (err)
		krc_queue_set_state(queue, KRP_QUEUE_ERROR, err);
	this_cpu_inc(krc_counts.connects);
	if (err)
		this_cpu_inc(krc_counts.connects_failed);
	trace_krc_connect(&queue->ctx->port->rail, queue->ctx->id, queue->id, arg->gid,
			  arg->service, arg->reads, err);
	return err;
}

static int krc_connect_check(const struct krp_connect *arg)
{
	bool create = arg->flags & KRP_CONNECT_CREATE;

	if (arg->flags & ~(KRP_CONNECT_FRESH | KRP_CONNECT_CREATE) || arg->rsvd)
		return -EINVAL;
	if (!arg->timeout_ms || arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX)
		return -EINVAL;
	return (create ? arg->queue : arg->depth) ? -EINVAL : 0;
}

static struct krc_queue *krc_connect_queue(struct krc_context *ctx, const struct krp_connect *arg)
{
	if (arg->flags & KRP_CONNECT_CREATE)
		return krc_queue_create(ctx, arg->depth);
	return krc_queue_get(ctx, arg->queue) ?: ERR_PTR(-ENOENT);
}

int krc_ioc_connect(struct krc_context *ctx, struct krp_connect *arg)
{
	struct krc_queue *queue;
	int err;

	err = krc_connect_check(arg);
	if (err)
		return err;
	queue = krc_connect_queue(ctx, arg);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	err = mutex_lock_interruptible(&queue->control);
	if (err)
		goto out;
	if (krc_port_enter(ctx->port)) {
		err = krc_queue_connect_on_port(queue, arg);
		krc_port_exit(ctx->port);
	} else {
		err = -ENODEV;
	}
	mutex_unlock(&queue->control);
out:
	if (err && arg->flags & KRP_CONNECT_CREATE && krc_queue_unname(ctx, queue->id, queue))
		krc_queue_close(queue);
	arg->queue = queue->id;
	krc_queue_put(queue);
	return err;
}

int krc_ioc_queue_query(struct krc_context *ctx, struct krp_queue_query *arg)
{
	struct krc_queue *queue;

	if (arg->rsvd)
		return -EINVAL;
	queue = krc_queue_get(ctx, arg->queue);
	if (!queue)
		return -ENOENT;
	mutex_lock(&queue->post);
	arg->completed = krc_queue_completed(queue);
	arg->posted = queue->posted;
	arg->outstanding = arg->posted - arg->completed;
	mutex_unlock(&queue->post);
	spin_lock_bh(&queue->lock);
	arg->state = queue->state;
	arg->error = queue->error;
	spin_unlock_bh(&queue->lock);
	krc_queue_put(queue);
	if (arg->state >= KRP_QUEUE_STATES)
		return -ENOENT; /* being closed by another thread */
	return 0;
}

void krc_queue_describe(struct krc_queue *queue, struct krc_queue_info *ret_info)
{
	const struct krc_context *ctx = queue->ctx;
	const struct krc_peer *peer;

	*ret_info = (struct krc_queue_info){
		.context = ctx->id,
		.queue = queue->id,
		.pid = pid_vnr(ctx->pid),
		.uid = ctx->uid,
		.state = READ_ONCE(queue->state),
		.error = READ_ONCE(queue->error),
		.depth = queue->depth,
		.completed = krc_queue_completed(queue),
		.posted = READ_ONCE(queue->posted),
		.failed = READ_ONCE(queue->failed),
		.bytes = READ_ONCE(queue->bytes),
	};
	strscpy(ret_info->comm, ctx->comm, sizeof(ret_info->comm));
	ret_info->placed = krc_flow_where(&queue->flow, &ret_info->initiator, &ret_info->isolated);
	ret_info->outstanding = ret_info->posted - ret_info->completed;
	rcu_read_lock();
	peer = READ_ONCE(queue->peer);
	if (peer) {
		memcpy(ret_info->gid, peer->key.gid, sizeof(ret_info->gid));
		ret_info->service = le16_to_cpu(peer->key.service);
		ret_info->generation = le64_to_cpu(peer->value.generation);
	}
	rcu_read_unlock();
}
