// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Requests to an attached server: credits, pacing, answers, waiting.
 *
 * A slot is a credit of the server together with a registered buffer. Callers'
 * requests wait in a queue for a slot; the requests of the context's thread (renew,
 * subscribe, republish) use the memory in the slot, krl_slot.own. The number of a
 * request includes its slot, so that no search is needed when its answer arrives.
 *
 * Locks: ctx.lock held in every function of this file.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/lib/lib.h"

#define KRL_PACE_NS 100000000ULL /* messages are counted over 100 ms */

/* Return: a free slot, or -1 if the server has given no more credits. */
static int krl_request_free_slot(const struct krl_server *srv)
{
	unsigned int i;

	for (i = 0; i < srv->slots_nr && srv->busy_nr < srv->slots_nr; i++)
		if (!srv->slot[i].busy)
			return (int)i;
	return -1;
}

/* Stay a tenth below the rate at which the server would end the session. */
static bool krl_request_paced(struct krl_server *srv)
{
	uint64_t most = (uint64_t)srv->rate_max * 9 / 100;
	uint64_t now_ns = krl_now_ns();

	if (now_ns - srv->pace_from_ns >= KRL_PACE_NS) {
		srv->pace_from_ns = now_ns;
		srv->pace_nr = 0;
	}
	srv->paced = srv->rate_max && srv->pace_nr >= (most ? most : 1);
	return srv->paced;
}

static void krl_request_build(void *buf, const struct krl_req *req, uint32_t xid)
{
	struct krp_publish *publish = buf;
	struct krp_withdraw *withdraw = buf;
	struct krp_lookup_msg *lookup = buf;
	struct krp_subscribe *subscribe = buf;

	krp_msg_init(buf, req->type, xid, KRP_ST_OK, 0);
	switch (req->type) {
	case KRP_MSG_PUBLISH:
		publish->key = req->key;
		publish->value = req->value;
		break;
	case KRP_MSG_WITHDRAW:
		withdraw->key = req->key;
		break;
	case KRP_MSG_LOOKUP:
		lookup->key = req->key;
		break;
	case KRP_MSG_SUBSCRIBE:
		subscribe->flags = req->flags;
		break;
	default:
		break;
	}
}

static int krl_request_send(struct krl_server *srv, unsigned int nr, struct krl_req *req)
{
	struct krl_slot *slot = &srv->slot[nr];
	int err;

	/* completions of SENDs are reaped by look-ups; if none is running, do it here */
	if (!pthread_mutex_trylock(&srv->io)) {
		krl_conn_drain(srv->conn);
		pthread_mutex_unlock(&srv->io);
	}
	slot->xid = ++srv->xid * KRL_SLOTS + nr;
	if (!slot->xid)
		slot->xid = ++srv->xid * KRL_SLOTS + nr;
	krl_request_build(srv->conn->mem->send[nr], req, slot->xid);
	err = krl_conn_send(srv->conn, nr);
	if (err) {
		krl_server_fail_locked(srv, err, "%s: sending %s failed (%s)", srv->ep->text,
				       krp_msg_name(req->type), strerror(-err));
		return err;
	}
	slot->req = req;
	slot->busy = true;
	slot->sent_ns = krl_now_ns();
	srv->busy_nr++;
	srv->pace_nr++;
	if (req->type == KRP_MSG_PUBLISH || req->type == KRP_MSG_WITHDRAW)
		srv->changes++;
	return 0;
}

/* The next request that no caller waits for. Return: true if @req was filled. */
static bool krl_request_own(struct krl_server *srv, struct krl_req *req)
{
	bool found = true;

	memset(req, 0, sizeof(*req));
	if (srv->renew_due) {
		srv->renew_due = false;
		req->type = KRP_MSG_RENEW;
		req->mark = srv->changes;
	} else if (srv->subscribe_due) {
		srv->subscribe_due = false;
		req->type = KRP_MSG_SUBSCRIBE;
		req->flags = srv->ctx->subscribed ? KRP_SUBSCRIBE_ALL : 0;
	} else {
		krl_publish_next(srv, req, &found);
	}
	return found;
}

/* Send what waits, as far as credits and pace allow. */
void krl_request_pump(struct krl_server *srv)
{
	struct krl_req *req;
	int nr;

	while (srv->state == KRL_UP && !atomic_load(&srv->failed)) {
		nr = krl_request_free_slot(srv);
		if (nr < 0 || krl_request_paced(srv))
			return;
		if (srv->todo && !srv->renew_due) {
			req = srv->todo;
			srv->todo = req->next;
			if (!srv->todo)
				srv->todo_tail = &srv->todo;
			if (krl_request_send(srv, (unsigned int)nr, req)) {
				req->err = -ENOTCONN;
				req->done = true;
				pthread_cond_broadcast(&srv->ctx->cond);
			}
			continue;
		}
		req = &srv->slot[nr].own;
		if (!krl_request_own(srv, req))
			return;
		krl_request_send(srv, (unsigned int)nr, req);
	}
}

/* Return: 0, or -ENOTCONN if the server is not attached. */
int krl_request_add(struct krl_server *srv, struct krl_req *req)
{
	req->next = NULL;
	req->done = false;
	if (srv->state != KRL_UP || atomic_load(&srv->failed))
		return -ENOTCONN;
	*srv->todo_tail = req;
	srv->todo_tail = &req->next;
	krl_request_pump(srv);
	if (srv->todo)
		krl_loop_wake(srv->ctx); /* the thread sends it when credits and rate allow */
	return 0;
}

static void krl_request_finish(struct krl_server *srv, struct krl_req *req)
{
	struct krcore_ctx *ctx = srv->ctx;

	switch (req->type) {
	case KRP_MSG_PUBLISH:
	case KRP_MSG_WITHDRAW:
		krl_publish_answered(srv, req);
		break;
	case KRP_MSG_RENEW:
		krl_publish_renewed(srv, req);
		break;
	case KRP_MSG_SUBSCRIBE:
		srv->subscribed = !req->err && (req->flags & KRP_SUBSCRIBE_ALL);
		srv->notify_seq = 0;
		if (srv->subscribed)
			krl_event_add(srv, KRCORE_EVENT_RESYNC, NULL, 0);
		break;
	default:
		break;
	}
	req->done = true;
	pthread_cond_broadcast(&ctx->cond);
}

/* An answer has arrived; the message is well formed. */
void krl_request_answer(struct krl_server *srv, const struct krp_msg_hdr *msg)
{
	const struct krp_ack *ack = (const struct krp_ack *)msg;
	unsigned int status = krp_le16_to_cpu(msg->status);
	uint32_t xid = krp_le32_to_cpu(msg->xid);
	struct krl_slot *slot = &srv->slot[xid % KRL_SLOTS];
	struct krl_req *req = slot->req;

	if (status == KRP_ST_SHUTDOWN) {
		krl_server_fail_locked(srv, -ESHUTDOWN, "%s: server is shutting down",
				       srv->ep->text);
		return;
	}
	if (!slot->busy || slot->xid != xid ||
	    (req && (req->type == KRP_MSG_LOOKUP) != (msg->type == KRP_MSG_VALUE))) {
		krl_server_fail_locked(srv, -EPROTO, "%s: %s answers nothing that was asked",
				       srv->ep->text, krp_msg_name(msg->type));
		return;
	}
	atomic_store_explicit(&srv->still, false, memory_order_relaxed);
	slot->busy = false;
	slot->req = NULL;
	srv->busy_nr--;
	if (req) {
		req->err = krp_status_errno(status);
		if (req->type == KRP_MSG_LOOKUP)
			req->value = ((const struct krp_value_msg *)msg)->value;
		else
			req->records = krp_le32_to_cpu(ack->records);
		krl_request_finish(srv, req);
	}
	krl_request_pump(srv);
}

/* The connection is gone: no request will be answered any more. */
void krl_request_fail_all(struct krl_server *srv, int err)
{
	unsigned int i;

	for (i = 0; i < KRL_SLOTS; i++) {
		struct krl_slot *slot = &srv->slot[i];

		if (slot->req) {
			slot->req->err = err;
			slot->req->done = true;
		}
		slot->req = NULL;
		slot->busy = false;
	}
	srv->busy_nr = 0;
	while (srv->todo) {
		struct krl_req *req = srv->todo;

		srv->todo = req->next;
		req->err = err;
		req->done = true;
	}
	srv->todo_tail = &srv->todo;
	pthread_cond_broadcast(&srv->ctx->cond);
}

/* Detach a request whose caller gives up. */
static void krl_request_abandon(struct krcore_ctx *ctx, struct krl_req *req)
{
	unsigned int i, j;

	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];
		struct krl_req **at = &srv->todo;

		for (j = 0; j < KRL_SLOTS; j++)
			if (srv->slot[j].req == req)
				srv->slot[j].req = NULL;
		while (*at && *at != req)
			at = &(*at)->next;
		if (*at) {
			*at = req->next;
			if (!*at)
				srv->todo_tail = at;
		}
	}
	req->err = -ETIMEDOUT;
	req->done = true;
}

/*
 * Wait until requests are done; those that are not by the deadline get
 * -ETIMEDOUT. Return: 0, or -ETIMEDOUT if there were such.
 */
int krl_request_wait(struct krcore_ctx *ctx, struct krl_req *reqs, unsigned int nr,
		     uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline_ns / 1000000000ULL),
		.tv_nsec = (long)(deadline_ns % 1000000000ULL),
	};
	unsigned int i = 0;
	int ret = 0;

	while (i < nr) {
		if (reqs[i].done) {
			i++;
		} else if (pthread_cond_timedwait(&ctx->cond, &ctx->lock, &until) == ETIMEDOUT) {
			ret = -ETIMEDOUT;
			break;
		}
	}
	for (; i < nr; i++)
		if (!reqs[i].done)
			krl_request_abandon(ctx, &reqs[i]);
	return ret;
}

/* When the oldest unanswered request was sent; 0 if there is none. */
uint64_t krl_request_oldest_ns(const struct krl_server *srv)
{
	uint64_t oldest_ns = 0;
	unsigned int i;

	for (i = 0; i < srv->slots_nr && srv->busy_nr; i++)
		if (srv->slot[i].busy && (!oldest_ns || srv->slot[i].sent_ns < oldest_ns))
			oldest_ns = srv->slot[i].sent_ns;
	return oldest_ns;
}
