// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Publishing, withdrawing, and keeping records published.
 *
 * A change is sent to every attached server at once; the call waits for all of them
 * within its time-out. The store remembers what each server knows, and the context's
 * thread tells the others when they are attached again: krl_publish_next() returns one
 * record after another as credits allow. Requests to a server arrive in order, and
 * each is queued under ctx.lock, so all servers end with the same version.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/lib.h"

/* A server has answered PUBLISH or WITHDRAW. Locks: ctx.lock. */
void krl_publish_answered(struct krl_server *srv, const struct krl_req *req)
{
	struct krl_store *store = &srv->ctx->store;
	struct krl_record *rec = krl_store_find(store, &req->key);
	bool withdraw = req->type == KRP_MSG_WITHDRAW;

	if (!req->err) {
		srv->acked_ns = krl_now_ns();
		if (!withdraw)
			krl_count(&srv->n.publishes, 1);
	}
	if (!rec || rec->version != req->version)
		return; /* changed since: another request is in flight or due */
	/* -ENOENT, -EEXIST: the server has no such record, or another owner's: withdrawn too */
	if (!req->err || (withdraw && (req->err == -ENOENT || req->err == -EEXIST)))
		krl_store_set(store, rec, srv->index, KRL_AT_ACKED);
	else
		krl_store_set(store, rec, srv->index, KRL_AT_REFUSED);
	krl_store_settled(store, rec);
}

/* The next record that is dirty at a server. Locks: ctx.lock. */
void krl_publish_next(struct krl_server *srv, struct krl_req *req, bool *ret_found)
{
	struct krl_record *rec = krl_store_dirty(&srv->ctx->store, srv->index, &srv->cursor);

	*ret_found = rec;
	if (!rec)
		return;
	req->type = rec->gone ? KRP_MSG_WITHDRAW : KRP_MSG_PUBLISH;
	req->key = rec->key;
	req->value = rec->value;
	req->version = rec->version;
	krl_store_set(&srv->ctx->store, rec, srv->index, KRL_AT_SENT);
}

/* A server was attached; @fresh: for the first time, or with a new incarnation. Locks: ctx.lock. */
void krl_publish_attached(struct krl_server *srv, bool fresh)
{
	if (fresh)
		krl_store_set_all(&srv->ctx->store, srv->index, ~0U, KRL_AT_DIRTY);
	srv->renew_at_ns = 0;
}

/*
 * A server has answered RENEW. If it has fewer records than it acknowledged,
 * our lease ran out there meanwhile. The count is comparable only if no record
 * changed while the RENEW was in flight. Locks: ctx.lock.
 */
void krl_publish_renewed(struct krl_server *srv, const struct krl_req *req)
{
	struct krl_store *store = &srv->ctx->store;
	uint64_t now_ns = krl_now_ns();
	bool late = now_ns - srv->acked_ns > srv->lease_ms * 1000000ULL;

	if (req->err && req->err != -ENOENT)
		return;
	krl_count(&srv->n.renewals, 1);
	srv->acked_ns = now_ns;
	if (late || req->err ||
	    (req->mark == srv->changes && !krl_store_live(store, srv->index, KRL_AT_SENT) &&
	     req->records < krl_store_live(store, srv->index, KRL_AT_ACKED)))
		krl_store_set_all(store, srv->index, 1U << KRL_AT_ACKED, KRL_AT_DIRTY);
}

/* When every lease that could still hold a withdrawn record is over. */
static uint64_t krl_publish_forget_ns(const struct krcore_ctx *ctx)
{
	uint64_t lease_ms = 0;
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		if (ctx->servers[i].lease_ms > lease_ms)
			lease_ms = ctx->servers[i].lease_ms;
	return krl_now_ns() + 2 * lease_ms * 1000000ULL;
}

static struct krl_req *krl_publish_reqs(struct krcore_ctx *ctx)
{
	return calloc(ctx->servers_nr, sizeof(struct krl_req));
}

/* Tell every attached server of a record. Return: how many were asked. */
static unsigned int krl_publish_ask(struct krcore_ctx *ctx, struct krl_req *reqs, uint8_t type,
				    const struct krp_key *key, struct krl_record *rec)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_req *req = &reqs[i];
		enum krl_at before = rec ? rec->at[i] : KRL_AT_DIRTY;

		req->type = type;
		req->key = *key;
		if (rec) {
			req->value = rec->value;
			req->version = rec->version;
			krl_store_set(&ctx->store, rec, i, KRL_AT_SENT);
		}
		if (!krl_request_add(&ctx->servers[i], req)) {
			nr++;
			continue;
		}
		req->err = -ENOTCONN;
		req->done = true;
		if (rec)
			krl_store_set(&ctx->store, rec, i, before);
	}
	return nr;
}

/* The most informative refusal of all servers; 0 if none refused. */
static int krl_publish_refusal(const struct krcore_ctx *ctx, const struct krl_req *reqs,
			       unsigned int *ret_server)
{
	static const int order[] = { -EEXIST, -ESTALE, -EPERM, -EDQUOT, -ENOSPC, -ENOMEM, -EBUSY };
	unsigned int i, o;

	for (o = 0; o <= sizeof(order) / sizeof(order[0]); o++)
		for (i = 0; i < ctx->servers_nr; i++) {
			int err = reqs[i].err;

			if (!err || err == -ENOTCONN || err == -ETIMEDOUT || err == -ENOENT)
				continue;
			if (o < sizeof(order) / sizeof(order[0]) && err != order[o])
				continue;
			*ret_server = i;
			return err;
		}
	return 0;
}

static const char *krl_publish_text(int err)
{
	unsigned int status;

	for (status = 0; status < KRP_ST_CODES; status++)
		if (krp_status_errno(status) == err)
			return krp_status_text(status);
	return "refused";
}

static unsigned int krl_publish_acks(const struct krcore_ctx *ctx, const struct krl_req *reqs)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ctx->servers_nr; i++)
		nr += !reqs[i].err;
	return nr;
}

/*
 * No server acknowledged and one refused: go back to what was published before. A
 * server that did not answer may have accepted the new value, so the old one is
 * sent to it again. Locks: ctx.lock.
 */
static void krl_publish_undo(struct krcore_ctx *ctx, const struct krl_req *reqs,
			     const struct krl_record *before)
{
	struct krl_record *rec = krl_store_find(&ctx->store, &reqs[0].key);
	unsigned int i;

	if (!rec || rec->version != reqs[0].version)
		return; /* another thread has published it since */
	if (before && !before->gone)
		rec = krl_store_put(&ctx->store, &before->key, &before->value);
	else
		krl_store_gone(&ctx->store, rec, krl_publish_forget_ns(ctx));
	for (i = 0; i < ctx->servers_nr; i++) {
		bool unknown = reqs[i].err == -ETIMEDOUT || reqs[i].err == -ENOTCONN;

		if (!ctx->servers[i].incarnation && rec->gone)
			krl_store_set(&ctx->store, rec, i, KRL_AT_ACKED);
		else if (!unknown)
			krl_store_set(&ctx->store, rec, i, before ? before->at[i] : KRL_AT_ACKED);
	}
	krl_store_settled(&ctx->store, rec);
	krl_loop_wake(ctx);
}

/* Locks: ctx.lock. A copy of a record as it is now; NULL if there is none. */
static int krl_publish_before(struct krcore_ctx *ctx, const struct krp_key *key,
			      struct krl_record **ret_copy)
{
	const struct krl_record *rec = krl_store_find(&ctx->store, key);
	size_t bytes = sizeof(*rec) + ctx->servers_nr;
	unsigned int i;

	*ret_copy = NULL;
	if (!rec)
		return 0;
	*ret_copy = malloc(bytes);
	if (!*ret_copy)
		return -ENOMEM;
	memcpy(*ret_copy, rec, bytes);
	for (i = 0; i < ctx->servers_nr; i++)
		if (rec->at[i] == KRL_AT_SENT)
			(*ret_copy)->at[i] = KRL_AT_DIRTY;
	return 0;
}

static int krl_publish_wait(struct krcore_ctx *ctx, const struct krp_key *key,
			    const struct krp_value *value, struct krl_req *reqs)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	struct krl_record *rec, *before;
	unsigned int acks, at = 0;
	int err;

	err = krl_publish_before(ctx, key, &before);
	if (err)
		return krl_error(err, "no memory");
	rec = krl_store_put(&ctx->store, key, value);
	if (!rec) {
		free(before);
		return krl_error(-ENOMEM, "no memory");
	}
	if (krl_publish_ask(ctx, reqs, KRP_MSG_PUBLISH, key, rec))
		krl_request_wait(ctx, reqs, ctx->servers_nr, deadline_ns);

	acks = krl_publish_acks(ctx, reqs);
	err = krl_publish_refusal(ctx, reqs, &at);
	if (err) {
		krl_error(err, "%s refuses to publish: %s", ctx->servers[at].ep->text,
			  krl_publish_text(err));
		if (!acks)
			krl_publish_undo(ctx, reqs, before);
	} else if (!acks) {
		err = krl_error(-EHOSTUNREACH,
				"no server has acknowledged it yet; it will be published later");
	}
	free(before);
	return acks ? (int)acks : err;
}

int krl_direct_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		       const struct krcore_value *value)
{
	struct krp_value wire_value;
	struct krp_key wire_key;
	struct krl_req *reqs;
	int ret;

	ret = krl_value_to_wire(value, ctx->config.generation, &wire_value);
	if (ret)
		return ret;
	kru_key_to_wire(key, &wire_key);
	if (krp_is_zero(wire_key.gid, sizeof(wire_key.gid)))
		return krl_error(-EINVAL, "the GID of the key is zero");
	reqs = krl_publish_reqs(ctx);
	if (!reqs)
		return krl_error(-ENOMEM, "no memory");

	pthread_mutex_lock(&ctx->lock);
	ret = krl_publish_wait(ctx, &wire_key, &wire_value, reqs);
	pthread_mutex_unlock(&ctx->lock);
	free(reqs);
	return ret;
}

/* The outcome of a withdrawal over all servers. */
static int krl_withdraw_outcome(struct krcore_ctx *ctx, const struct krl_req *reqs,
				unsigned int asked, bool ours)
{
	unsigned int i, at = 0, gone = 0, absent = 0, lost = 0;
	int err;

	for (i = 0; i < ctx->servers_nr; i++) {
		gone += !reqs[i].err;
		absent += reqs[i].err == -ENOENT;
		lost += reqs[i].err == -ETIMEDOUT;
	}
	if (!asked)
		return krl_error(-EHOSTUNREACH,
				 "no server is attached; the lease of the record runs out");
	err = krl_publish_refusal(ctx, reqs, &at);
	if (err && !gone)
		return krl_error(err, "%s refuses to withdraw: %s", ctx->servers[at].ep->text,
				 krl_publish_text(err));
	if (lost || !(gone + absent))
		return krl_error(-EHOSTUNREACH,
				 "a server did not answer; it will be told when it is back");
	if (!gone && !ours)
		return krl_error_const(-ENOENT, "no such record");
	return 0;
}

int krl_direct_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	struct krl_record *rec;
	struct krl_req *reqs;
	struct krp_key wire;
	unsigned int i, asked;
	bool ours;
	int ret;

	kru_key_to_wire(key, &wire);
	reqs = krl_publish_reqs(ctx);
	if (!reqs)
		return krl_error(-ENOMEM, "no memory");

	pthread_mutex_lock(&ctx->lock);
	rec = krl_store_find(&ctx->store, &wire);
	ours = rec && !rec->gone;
	if (rec) {
		krl_store_gone(&ctx->store, rec, krl_publish_forget_ns(ctx));
		for (i = 0; i < ctx->servers_nr; i++)
			if (!ctx->servers[i].incarnation) /* never attached */
				krl_store_set(&ctx->store, rec, i, KRL_AT_ACKED);
	}
	asked = krl_publish_ask(ctx, reqs, KRP_MSG_WITHDRAW, &wire, rec);
	if (asked)
		krl_request_wait(ctx, reqs, ctx->servers_nr, deadline_ns);
	ret = krl_withdraw_outcome(ctx, reqs, asked, ours);
	pthread_mutex_unlock(&ctx->lock);
	free(reqs);
	return ret;
}
