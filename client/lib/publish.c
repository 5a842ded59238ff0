// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Publishing and withdrawing, as callers see it. What is sent to whom and when is up to
 * proto/krp_records.h and proto/krp_session.h.
 *
 * A call changes the record, which lets every attached server be told at once, and waits for
 * all of them within its time-out; those that are not attached are told when they are. Several
 * threads may change a record at once: each waits until its version, or a later one, is
 * answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/lib.h"

#define KRL_CHAINS_MIN 16

/**
 * struct krl_told - What has become of a change at a server.
 * @attaches: krp_session.attaches when it was told; 0: it was not attached.
 * @ask: WITHDRAW of a record that is none of ours.
 * @err: %-EINPROGRESS; then 0, its answer, %-ENOTCONN or %-ETIMEDOUT.
 */
struct krl_told {
	uint64_t attaches;
	struct krp_ask ask;
	int err;
};

int krl_records_init(struct krcore_ctx *ctx)
{
	struct krp_record **chains = calloc(KRL_CHAINS_MIN, sizeof(struct krp_record *));

	if (!chains)
		return -ENOMEM;
	krp_publisher_init(&ctx->pub, chains, KRL_CHAINS_MIN, ctx->config.endpoints_nr);
	return 0;
}

void krl_records_fini(struct krcore_ctx *ctx)
{
	struct krp_publisher *pub = &ctx->pub;
	struct krp_record *rec;

	if (!pub->chains)
		return;
	while (!krp_list_empty(&pub->records))
		krp_record_drop(pub, krp_entry(pub->records.next, struct krp_record, link));
	while ((rec = krp_records_trash(pub)))
		free(rec);
	free(pub->chains);
	pub->chains = NULL;
}

/* Locks: ctx.lock. A record with a name: that there is, or a new one. Return: NULL: no memory. */
static struct krp_record *krl_record_get(struct krcore_ctx *ctx, const struct krp_key *key)
{
	struct krp_publisher *pub = &ctx->pub;
	struct krp_record *rec = krp_record_find(pub, key);
	struct krp_record **more;

	if (rec)
		return rec;
	rec = calloc(1, krp_record_bytes(pub->servers_nr));
	if (!rec)
		return NULL;
	/* without more chains it is only slower */
	more = pub->nr < pub->chains_nr ? NULL
					: calloc(2 * pub->chains_nr, sizeof(struct krp_record *));
	if (more)
		free(krp_publisher_rehash(pub, more, 2 * pub->chains_nr));
	rec->key = *key;
	krp_record_link(pub, rec);
	return rec;
}

/* Locks: ctx.lock. Note which servers are attached now. Return: how many. */
static unsigned int krl_told_begin(struct krcore_ctx *ctx, struct krl_told *told)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ctx->servers_nr; i++) {
		const struct krp_session *s = &ctx->servers[i].s;

		told[i].attaches = s->state == KRP_SESSION_READY ? s->attaches : 0;
		told[i].err = told[i].attaches ? -EINPROGRESS : -ENOTCONN;
		nr += told[i].attaches > 0;
	}
	return nr;
}

/* Locks: ctx.lock. What has become of a version of a record at a server. */
static int krl_told_now(const struct krl_server *srv, const struct krl_told *told,
			const struct krp_record *rec, uint64_t version)
{
	const struct krp_record_at *at = &rec->at[srv->index];

	if (told->err != -EINPROGRESS)
		return told->err;
	if (at->answered >= version)
		return at->answer;
	if (srv->s.state != KRP_SESSION_READY || srv->s.attaches != told->attaches)
		return -ENOTCONN;
	/* it cannot have the record, so it needs no WITHDRAW */
	return rec->gone && at->state == KRP_AT_NEVER ? -ENOENT : -EINPROGRESS;
}

/* Locks: ctx.lock. Wait for all servers in @told; those that do not answer get -ETIMEDOUT. */
static void krl_told_wait(struct krcore_ctx *ctx, struct krl_told *told,
			  const struct krp_record *rec, uint64_t version, uint64_t deadline_ns)
{
	bool waits = true, late = false;
	unsigned int i;

	while (waits) {
		waits = false;
		for (i = 0; i < ctx->servers_nr; i++) {
			told[i].err = krl_told_now(&ctx->servers[i], &told[i], rec, version);
			if (late && told[i].err == -EINPROGRESS)
				told[i].err = -ETIMEDOUT;
			waits = waits || told[i].err == -EINPROGRESS;
		}
		late = waits && !krl_wait_until(ctx, deadline_ns);
	}
}

/* The most informative refusal of all servers; 0 if none refused. */
static int krl_publish_refusal(const struct krcore_ctx *ctx, const struct krl_told *told,
			       unsigned int *ret_server)
{
	static const int order[] = { -EEXIST, -ESTALE, -EPERM, -EDQUOT, -ENOSPC, -ENOMEM, -EBUSY };
	unsigned int i, o;

	for (o = 0; o <= sizeof(order) / sizeof(order[0]); o++)
		for (i = 0; i < ctx->servers_nr; i++) {
			int err = told[i].err;

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

static unsigned int krl_publish_acks(const struct krcore_ctx *ctx, const struct krl_told *told)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ctx->servers_nr; i++)
		nr += !told[i].err;
	return nr;
}

/**
 * struct krl_before - A record as it was.
 * @there: there was one.
 * @live: it was not withdrawn.
 * @value: its value.
 * @at: what each server knew, enum krp_at.
 */
struct krl_before {
	bool there;
	bool live;
	struct krp_value value;
	uint8_t at[KRP_PEERS_MAX];
};

/* Locks: ctx.lock. */
static void krl_before_note(struct krcore_ctx *ctx, const struct krp_key *key,
			    struct krl_before *before)
{
	const struct krp_record *rec = krp_record_find(&ctx->pub, key);
	unsigned int i;

	memset(before, 0, sizeof(*before));
	if (!rec)
		return;
	before->there = true;
	before->live = !rec->gone;
	before->value = rec->value;
	for (i = 0; i < ctx->servers_nr; i++)
		before->at[i] = rec->at[i].state == KRP_AT_SENT ? KRP_AT_DIRTY : rec->at[i].state;
}

/*
 * Locks: ctx.lock. No server acknowledged and one refused: go back to what was published
 * before. A server that did not answer may have accepted the new value, so it is told.
 */
static void krl_publish_undo(struct krcore_ctx *ctx, struct krp_record *rec, uint64_t version,
			     const struct krl_told *told, const struct krl_before *before)
{
	unsigned int i;

	if (rec->version != version)
		return; /* another thread has changed it since */
	if (before->live)
		krp_record_publish(&ctx->pub, rec, &before->value);
	else
		krp_record_withdraw(&ctx->pub, rec, krl_now_ns());
	for (i = 0; i < ctx->servers_nr; i++) {
		if (told[i].err == -ETIMEDOUT || told[i].err == -ENOTCONN)
			continue;
		rec->at[i].there = before->there;
		krp_record_set(&ctx->pub, rec, i, (enum krp_at)before->at[i]);
	}
	krl_sessions_run(ctx);
}

static int krl_publish_outcome(struct krcore_ctx *ctx, struct krp_record *rec, uint64_t version,
			       const struct krl_told *told, const struct krl_before *before)
{
	unsigned int acks = krl_publish_acks(ctx, told), at = 0;
	int err = krl_publish_refusal(ctx, told, &at);

	if (err) {
		krl_error(err, "%s refuses to publish: %s", ctx->servers[at].ep->text,
			  krl_publish_text(err));
		if (!acks)
			krl_publish_undo(ctx, rec, version, told, before);
	} else if (!acks) {
		err = krl_error(-EHOSTUNREACH,
				"no server has acknowledged it yet; it will be published later");
	}
	return acks ? (int)acks : err;
}

/* Locks: ctx.lock. */
static int krl_publish_wait(struct krcore_ctx *ctx, const struct krp_key *key,
			    const struct krp_value *value, struct krl_told *told)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL, version;
	struct krl_before before;
	struct krp_record *rec;
	int ret;

	krl_before_note(ctx, key, &before);
	rec = krl_record_get(ctx, key);
	if (!rec)
		return krl_error(-ENOMEM, "no memory");
	krp_record_pin(rec);
	krp_record_publish(&ctx->pub, rec, value);
	version = rec->version;
	krl_told_begin(ctx, told);
	krl_sessions_run(ctx);
	krl_told_wait(ctx, told, rec, version, deadline_ns);
	ret = krl_publish_outcome(ctx, rec, version, told, &before);
	krp_record_unpin(&ctx->pub, rec);
	krl_sessions_run(ctx);
	return ret;
}

int krl_direct_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		       const struct krcore_value *value)
{
	struct krp_value wire_value;
	struct krp_key wire_key;
	struct krl_told *told;
	int ret;

	ret = krl_value_to_wire(value, ctx->config.generation, &wire_value);
	if (ret)
		return ret;
	kru_key_to_wire(key, &wire_key);
	if (krp_is_zero(wire_key.gid, sizeof(wire_key.gid)))
		return krl_error(-EINVAL, "the GID of the key is zero");
	told = calloc(ctx->servers_nr, sizeof(*told));
	if (!told)
		return krl_error(-ENOMEM, "no memory");

	pthread_mutex_lock(&ctx->lock);
	ret = krl_publish_wait(ctx, &wire_key, &wire_value, told);
	pthread_mutex_unlock(&ctx->lock);
	free(told);
	return ret;
}

/*
 * The outcome of a withdrawal over all servers. @ours: it was published. @kept: it is remembered, as
 * it is also if it had been withdrawn before and a server was not told then.
 */
static int krl_withdraw_outcome(struct krcore_ctx *ctx, const struct krl_told *told,
				unsigned int asked, bool ours, bool kept)
{
	unsigned int i, at = 0, gone = 0, absent = 0, lost = 0;
	int err;

	for (i = 0; i < ctx->servers_nr; i++) {
		gone += !told[i].err;
		absent += told[i].err == -ENOENT;
		lost += told[i].err == -ETIMEDOUT;
	}
	if (!asked)
		return krl_error(-EHOSTUNREACH, "no server is attached; %s",
				 kept ? "each will be told when it is back"
				      : "the lease of the record runs out");
	err = krl_publish_refusal(ctx, told, &at);
	if (err && !gone)
		return krl_error(err, "%s refuses to withdraw: %s", ctx->servers[at].ep->text,
				 krl_publish_text(err));
	if (lost || !(gone + absent))
		return krl_error(-EHOSTUNREACH, "a server did not answer; %s",
				 kept ? "it will be told when it is back"
				      : "it may keep the record until its lease is over");
	if (!gone && !ours)
		return krl_error_const(-ENOENT, "no such record");
	return 0;
}

/* Locks: ctx.lock. Withdraw a record of ours, which may have been withdrawn already. */
static void krl_withdraw_own(struct krcore_ctx *ctx, struct krp_record *rec, struct krl_told *told,
			     uint64_t deadline_ns)
{
	uint64_t version;

	krp_record_pin(rec);
	krp_record_withdraw(&ctx->pub, rec, krl_now_ns());
	version = rec->version;
	krl_sessions_run(ctx);
	krl_told_wait(ctx, told, rec, version, deadline_ns);
	krp_record_unpin(&ctx->pub, rec);
	krl_sessions_run(ctx);
}

/* Locks: ctx.lock. Withdraw a record that this context has not published. */
static void krl_withdraw_other(struct krcore_ctx *ctx, const struct krp_key *key,
			       struct krl_told *told, uint64_t deadline_ns)
{
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++) {
		told[i].ask.type = KRP_MSG_WITHDRAW;
		told[i].ask.key = *key;
		krl_ask_begin(&ctx->servers[i], &told[i].ask);
	}
	for (i = 0; i < ctx->servers_nr; i++)
		told[i].err = krl_ask_end(&ctx->servers[i], &told[i].ask, deadline_ns);
}

int krl_direct_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key)
{
	uint64_t deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
	struct krl_told *told = calloc(ctx->servers_nr, sizeof(*told));
	struct krp_record *rec;
	struct krp_key wire;
	unsigned int asked;
	bool ours, kept;
	int ret;

	if (!told)
		return krl_error(-ENOMEM, "no memory");
	kru_key_to_wire(key, &wire);
	pthread_mutex_lock(&ctx->lock);
	rec = krp_record_find(&ctx->pub, &wire);
	kept = rec;
	ours = rec && !rec->gone;
	asked = krl_told_begin(ctx, told);
	if (rec)
		krl_withdraw_own(ctx, rec, told, deadline_ns);
	else
		krl_withdraw_other(ctx, &wire, told, deadline_ns);
	ret = krl_withdraw_outcome(ctx, told, asked, ours, kept);
	pthread_mutex_unlock(&ctx->lock);
	free(told);
	return ret;
}
