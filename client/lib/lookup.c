// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Look-ups: proto/krp_lookup.h driven by READs, over the servers in order.
 *
 * The common case takes one uncontended lock, one hash, one READ and one check of
 * the bytes. No memory is allocated; there is no system call, unless the NIC's driver
 * makes one for a doorbell; the clock is read once in KRL_SAMPLE look-ups, and in each while
 * a server is settling or has failed of late.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/lib/lib.h"
#include "client/lib/out.h"

#define KRL_SAMPLE 16 /* one READ in this many is timed */
#define KRL_OPINIONS 2 /* this many servers must miss before a record counts as absent */

/*
 * Whether a server is settling at *@now_ns: publishers may still be coming back. 0 there: now, and the
 * clock is read into it if that is needed.
 */
static bool krl_lookup_settles_at(struct krl_server *srv, uint64_t *now_ns)
{
	uint64_t until_ns = atomic_load_explicit(&srv->settle_until_ns, memory_order_relaxed);

	if (!until_ns)
		return false;
	*now_ns = *now_ns ? *now_ns : krl_now_ns();
	if (*now_ns < until_ns)
		return true;
	/* not what another thread has put there since */
	atomic_compare_exchange_strong(&srv->settle_until_ns, &until_ns, 0);
	return false;
}

/* Score of a server's recent failures; the clock as above. */
static uint32_t krl_lookup_blame(const struct krl_server *srv, uint64_t *now_ns)
{
	uint32_t blame = atomic_load_explicit(&srv->blame, memory_order_acquire);
	uint64_t since_ns = atomic_load_explicit(&srv->blame_ns, memory_order_relaxed);

	if (!blame)
		return 0;
	*now_ns = *now_ns ? *now_ns : krl_now_ns();
	return krp_blame_after(blame, *now_ns > since_ns ? *now_ns - since_ns : 0);
}

/* Which server to ask next, of those whose bit in @tried is clear; -1 if none. */
static int krl_lookup_choose(struct krcore_ctx *ctx, uint64_t tried)
{
	struct krp_candidate best = { 0 };
	uint64_t now_ns = 0;
	unsigned int i;
	int at = -1;

	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];
		struct krp_candidate c = {
			.priority = srv->ep->priority,
			.rtt_ns = atomic_load_explicit(&srv->rtt_ns, memory_order_relaxed),
			.doubtful = atomic_load_explicit(&srv->still, memory_order_relaxed),
		};

		if (!atomic_load_explicit(&srv->up, memory_order_acquire) || (tried & (1ULL << i)))
			continue;
		c.doubtful |= krl_lookup_settles_at(srv, &now_ns);
		c.blame = krl_lookup_blame(srv, &now_ns);
		if (at < 0 || krp_better(&c, &best)) {
			best = c;
			at = (int)i;
		}
	}
	return at;
}

/* Locks: server.io. One READ of a look-up. */
static int krl_lookup_read(struct krl_server *srv, const struct krp_read *read)
{
	struct krl_conn *conn = srv->conn;
	uint64_t begin_ns = 0, ns;
	int err;

	if (!(srv->lookups++ % KRL_SAMPLE))
		begin_ns = krl_now_ns();
	err = krl_conn_post_reads(conn, read, 1, conn->mem->bucket);
	if (!err)
		err = krl_conn_wait_reads(conn, 1, krl_server_read_timeout_ns(srv));
	if (err) {
		krl_server_fail(srv, err, "a READ of the table failed (%s)", strerror(-err));
		return -ENOTCONN;
	}
	if (begin_ns) {
		ns = atomic_load_explicit(&srv->rtt_ns, memory_order_relaxed);
		ns = krl_smooth(ns, krl_now_ns() - begin_ns);
		atomic_store_explicit(&srv->rtt_ns, ns, memory_order_relaxed);
	}
	return 0;
}

/* Count why the READ of a bucket gave no answer. */
static void krl_lookup_note(const struct krp_lookup *l, unsigned int torn_before, bool of_entry,
			    struct krcore_lookup_info *info)
{
	if (of_entry)
		return;
	if (l->torn > torn_before)
		info->torn++;
	else
		info->stale++;
}

/* Locks: server.io. Return: KRP_STEP_HIT or _MISS, -EAGAIN, -ENOMEM, or -ENOTCONN. */
static int krl_lookup_steps(struct krl_server *srv, const struct krp_key *key,
			    struct krp_value *value, struct krcore_lookup_info *info)
{
	struct krp_lookup l;
	struct krp_read read;
	int step;

	krp_lookup_start(&l, &srv->map->map, key);
	for (;;) {
		step = krp_lookup_next(&l, &srv->map->map, &read);
		if (step == KRP_STEP_READ) {
			unsigned int torn = l.torn;
			bool of_entry = l.want_entry;

			info->reads++;
			step = krl_lookup_read(srv, &read);
			if (step < 0)
				return step;
			step = krp_lookup_feed(&l, &srv->map->map, srv->conn->mem->bucket, value);
			if (step == KRP_STEP_HIT || step == KRP_STEP_MISS || step < 0)
				return step;
			krl_lookup_note(&l, torn, of_entry, info);
		}
		if (step < 0)
			return step;
		if (step == KRP_STEP_ROOT) {
			step = krl_map_refresh(srv, &info->reads);
			if (step < 0)
				return step == -ENOMEM ? step : -ENOTCONN;
		}
	}
}

/* Look up by message: for a table that changes faster than READs, and a record kept aside. */
static int krl_lookup_ask(struct krl_server *srv, const struct krp_key *key,
			  struct krp_value *value)
{
	struct krcore_ctx *ctx = srv->ctx;
	struct krp_ask ask = { .type = KRP_MSG_LOOKUP, .key = *key };
	int err;

	pthread_mutex_lock(&ctx->lock);
	err = krl_ask_begin(srv, &ask);
	if (!err)
		err = krl_ask_end(srv, &ask, krl_now_ns() + krl_server_read_timeout_ns(srv));
	pthread_mutex_unlock(&ctx->lock);
	if (err == -ENOENT)
		return KRP_STEP_MISS;
	if (err)
		return -ENOTCONN;
	*value = ask.value;
	return KRP_STEP_HIT;
}

/* Whether a server is settling now. */
static bool krl_lookup_settling(struct krl_server *srv)
{
	uint64_t now_ns = 0;

	return krl_lookup_settles_at(srv, &now_ns);
}

/*
 * On a miss info->settling says whether it proves nothing: the server was settling before the
 * READ, however long ago that is by now, or is, or its process hangs.
 * Return: 0, -ENOENT, -ENOTCONN, -ENOMEM or -EPROTO.
 */
static int krl_lookup_server(struct krl_server *srv, const struct krp_key *key,
			     struct krcore_value *ret_value, struct krcore_lookup_info *info)
{
	struct krcore_lookup_info before = *info;
	struct krcore_value value;
	struct krp_value wire;
	bool settling;
	int step, err;

	info->settling = 0;
	pthread_mutex_lock(&srv->io);
	settling = krl_lookup_settling(srv);
	if (atomic_load_explicit(&srv->up, memory_order_acquire))
		step = krl_lookup_steps(srv, key, &wire, info);
	else
		step = -ENOTCONN;
	if (step == KRP_STEP_MISS && krl_pulse_look(srv, &info->reads))
		step = -ENOTCONN;
	pthread_mutex_unlock(&srv->io);
	if (step == -EAGAIN) {
		info->fallback = 1;
		krl_count(&srv->n.fallbacks, 1);
		step = krl_lookup_ask(srv, key, &wire);
	}
	krl_count(&srv->n.reads, info->reads - before.reads);
	krl_count(&srv->n.torn, info->torn - before.torn);
	krl_count(&srv->n.stale, info->stale - before.stale);

	info->server = srv->index;
	if (step == KRP_STEP_MISS) {
		info->settling = settling || krl_lookup_settling(srv) ||
				 atomic_load_explicit(&srv->still, memory_order_relaxed);
		return krl_error_const(-ENOENT, "no such record");
	}
	if (step < 0)
		return step;
	err = krl_value_from_wire(&wire, &value);
	if (err)
		return err;
	if (ret_value)
		*ret_value = value;
	return 0;
}

/* Count the outcome of a look-up. */
static void krl_lookup_count(struct krl_server *srv, int err)
{
	if (!err)
		krl_count(&srv->n.hits, 1);
	else if (err == -ENOENT)
		krl_count(&srv->n.misses, 1);
	else
		krl_count(&srv->n.errors, 1);
}

/**
 * struct krl_asking - Progress of a look-up over the servers; the masks have a bit a server.
 * @tried: servers that were asked.
 * @missed: of these, those that do not have the record.
 * @proved: of these, those that would have it if it existed: neither settling nor hanging.
 * @told: the server whose miss is reported to the caller, one of @proved if there is one.
 * @deadline_ns: when to give up; 0 as long as the first answer may suffice.
 */
struct krl_asking {
	uint64_t tried;
	uint64_t missed;
	uint64_t proved;
	unsigned int told;
	uint64_t deadline_ns;
};

/* A server does not have the record. @proved: and would have it if it existed. */
static void krl_asking_missed(struct krl_asking *a, const struct krl_server *srv, bool proved)
{
	if (!a->proved)
		a->told = srv->index;
	a->missed |= 1ULL << srv->index;
	if (proved)
		a->proved |= 1ULL << srv->index;
}

/*
 * Whether enough servers have missed to call the record absent. A record counts as published
 * when one server has accepted it, so the miss of a single other server proves nothing.
 */
static bool krl_asking_over(const struct krl_asking *a)
{
	return a->proved && __builtin_popcountll(a->missed) >= KRL_OPINIONS;
}

/* A server has the record: count the misses of the others that seemed to be proof. */
static void krl_asking_overruled(const struct krl_asking *a, struct krcore_ctx *ctx)
{
	uint64_t left;

	for (left = a->proved; left; left &= left - 1)
		krl_count(&ctx->servers[__builtin_ctzll(left)].n.misses_overruled, 1);
}

/* Locks: ctx.lock. Is a server, but those in @tried, being attached for the first time? */
static bool krl_lookup_new(const struct krcore_ctx *ctx, uint64_t tried)
{
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		if (!ctx->servers[i].tried && !(tried & (1ULL << i)))
			return true;
	return false;
}

/*
 * No server but those in @tried is attached: block until one is, or until the deadline.
 * If @tried is not empty, wait only for servers being attached for the first time.
 * Return: true if one is attached.
 */
static bool krl_lookup_wait(struct krcore_ctx *ctx, uint64_t tried, uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline_ns / 1000000000ULL),
		.tv_nsec = (long)(deadline_ns % 1000000000ULL),
	};
	bool up;

	pthread_mutex_lock(&ctx->lock);
	while (!(up = krl_lookup_choose(ctx, tried) >= 0))
		if ((tried && !krl_lookup_new(ctx, tried)) ||
		    pthread_cond_timedwait(&ctx->cond, &ctx->lock, &until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&ctx->lock);
	return up;
}

/*
 * Ask one server, the best of those that were not asked yet.
 * Return: true if @ret_err is the outcome of the look-up.
 */
static bool krl_lookup_ask_one(struct krl_server *srv, const struct krp_key *key,
			       struct krcore_value *ret_value, struct krcore_lookup_info *info,
			       struct krl_asking *a, int *ret_err)
{
	*ret_err = krl_lookup_server(srv, key, ret_value, info);
	if (!*ret_err) {
		krl_asking_overruled(a, srv->ctx);
		return true;
	}
	a->tried |= 1ULL << srv->index;
	if (*ret_err == -ENOENT)
		krl_asking_missed(a, srv, !info->settling);
	else
		krl_count(&srv->n.failovers, 1);
	return krl_asking_over(a);
}

/* All attached servers were asked: until when to wait for another one. */
static uint64_t krl_lookup_until_ns(struct krcore_ctx *ctx, const struct krl_asking *a)
{
	uint64_t soon_ns;

	if (!a->proved)
		return a->deadline_ns;
	/* don't wait longer for a second opinion than for the answer of one server */
	soon_ns = krl_now_ns() + krl_server_read_timeout_ns(&ctx->servers[a->told]);
	return soon_ns < a->deadline_ns ? soon_ns : a->deadline_ns;
}

/*
 * Ask one server after the other until one has the record or two have not.
 * Return: as krl_lookup_server(), of the server asked last.
 */
static int krl_lookup_servers(struct krcore_ctx *ctx, const struct krp_key *key,
			      struct krcore_value *ret_value, struct krcore_lookup_info *info,
			      struct krl_asking *a)
{
	int at, err = -ENOTCONN;

	for (;;) {
		at = krl_lookup_choose(ctx, a->tried);
		if (at >= 0 && krl_lookup_ask_one(&ctx->servers[at], key, ret_value, info, a, &err))
			return err;
		if (!a->deadline_ns)
			a->deadline_ns = krl_now_ns() + ctx->config.timeout_ms * 1000000ULL;
		if (at < 0) {
			if (!a->missed)
				a->tried = 0;
			if ((err != -ENOTCONN && !a->missed) ||
			    !krl_lookup_wait(ctx, a->tried, krl_lookup_until_ns(ctx, a)))
				return err;
		}
		if (krl_now_ns() >= a->deadline_ns)
			return err;
	}
}

/* No server has the record, as far as they could be asked. */
static int krl_lookup_missed(struct krcore_ctx *ctx, const struct krl_asking *a,
			     struct krcore_lookup_info *info)
{
	const struct krl_server *srv = &ctx->servers[a->told];

	info->server = a->told;
	info->settling = !a->proved;
	if (a->proved)
		return krl_error_const(-ENOENT, "no such record");
	if (atomic_load(&srv->still))
		return krl_error(-ENOENT,
				 "no such record, but the table of %s stands still: its "
				 "process hangs",
				 srv->ep->text);
	return krl_error(-ENOENT,
			 "no such record, but %s was restarted and its publishers "
			 "may not have come back yet",
			 srv->ep->text);
}

int krl_direct_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
		      struct krcore_value *ret_value, struct krcore_lookup_info *ret_info)
{
	struct krcore_lookup_info info = { 0 };
	struct krl_asking asking = { 0 };
	struct krp_key wire;
	int err;

	kru_key_to_wire(key, &wire);
	err = krl_lookup_servers(ctx, &wire, ret_value, &info, &asking);
	if (asking.missed && (err == -ENOENT || err == -ENOTCONN))
		err = krl_lookup_missed(ctx, &asking, &info);
	krl_lookup_count(&ctx->servers[info.server], err);
	if (err == -ENOTCONN)
		return krl_error(-EHOSTUNREACH, "no server answered within %u ms",
				 ctx->config.timeout_ms);
	krl_out_fill(ret_info, &info, sizeof(info));
	return err;
}

int krcore_lookup_at(struct krcore_ctx *ctx, unsigned int server, const struct krcore_key *key,
		     struct krcore_value *ret_value, struct krcore_lookup_info *ret_info)
{
	struct krcore_lookup_info info = { 0 };
	struct krp_key wire;
	int err = KRL_LOOKUP_INFO_CHECK(ret_info);

	if (err)
		return err;
	if (!krl_is_direct(ctx, "asking one server"))
		return -EOPNOTSUPP;
	if (server >= ctx->servers_nr)
		return krl_error(-EINVAL, "there is no server %u, only %u", server,
				 ctx->servers_nr);
	kru_key_to_wire(key, &wire);
	err = krl_lookup_server(&ctx->servers[server], &wire, ret_value, &info);
	krl_lookup_count(&ctx->servers[server], err);
	if (err == -ENOTCONN)
		return krl_error(err, "%s is not attached", ctx->servers[server].ep->text);
	if (!err || err == -ENOENT)
		krl_out_fill(ret_info, &info, sizeof(info));
	return err;
}

int krcore_lookup_by_message(struct krcore_ctx *ctx, unsigned int server,
			     const struct krcore_key *key, struct krcore_value *ret_value)
{
	struct krcore_value value;
	struct krp_value wire;
	struct krp_key name;
	int step, err;

	if (!krl_is_direct(ctx, "asking one server"))
		return -EOPNOTSUPP;
	if (server >= ctx->servers_nr)
		return krl_error(-EINVAL, "there is no server %u, only %u", server,
				 ctx->servers_nr);
	kru_key_to_wire(key, &name);
	step = krl_lookup_ask(&ctx->servers[server], &name, &wire);
	if (step == KRP_STEP_MISS)
		return krl_error_const(-ENOENT, "no such record");
	if (step < 0)
		return krl_error(step, "%s did not answer by message",
				 ctx->servers[server].ep->text);
	err = krl_value_from_wire(&wire, &value);
	if (err)
		return err;
	if (ret_value)
		*ret_value = value;
	return 0;
}
