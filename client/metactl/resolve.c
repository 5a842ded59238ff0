// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * resolve: look a record up as a program would, by one-sided READ; compare it
 * with what the servers say by message; repeat it and show latencies. Idea: the
 * resolve, verify and count of ib_acme(1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/percentile.h"
#include "client/metactl/record.h"

#define MC_COUNT_MAX 10000000
#define MC_VERIFY_TRIES 3

struct mc_tally {
	uint64_t hits;
	uint64_t misses;
	uint64_t errors;
	struct krcore_lookup_info sum;
	uint64_t *took_ns;
	uint64_t nr;
};

/* Servers said that there is no such record, and another had it. */
static void mc_put_overruled(struct mc *mc)
{
	struct krcore_stats stats = { .size = sizeof(stats) };

	krcore_stats(mc->krcore, &stats);
	mc_put_number(mc->out, "misses_overruled", stats.misses_overruled ? MC_BAD : MC_DETAIL,
		      stats.misses_overruled);
}

static int mc_resolve_once(struct mc *mc, const struct krcore_key *key)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;
	uint64_t took_ns;
	char address[128];
	int ret;

	took_ns = mc_now_ns();
	ret = krcore_lookup(mc->krcore, key, &value, &info);
	took_ns = mc_now_ns() - took_ns;
	if (ret && ret != -ENOENT)
		return mc_error(mc, "%s", krcore_error_text());
	mc_address_of(mc, info.server, address, sizeof(address));
	mc_out_table(mc->out, MC_BLOCK, "lookup");
	mc_row(mc->out);
	mc_put_key(mc, key);
	mc_put_bool(mc->out, "found", ret ? MC_BAD : MC_GOOD, !ret);
	mc_put_value(mc, ret ? NULL : &value);
	mc_put_number(mc->out, "server", MC_DETAIL, info.server);
	mc_put_text(mc->out, "address", 0, address);
	mc_put_number(mc->out, "reads", 0, info.reads);
	mc_put_number(mc->out, "torn", MC_DETAIL, info.torn);
	mc_put_number(mc->out, "stale", MC_DETAIL, info.stale);
	mc_put_bool(mc->out, "by_message", MC_DETAIL, info.fallback);
	mc_put_bool(mc->out, "settling", MC_DETAIL, info.settling);
	mc_put_bool(mc->out, "unconfirmed", info.unconfirmed ? MC_BAD : MC_DETAIL,
		    info.unconfirmed);
	mc_put_overruled(mc);
	mc_put_number(mc->out, "took_ns", 0, took_ns);
	return ret ? mc_error(mc, "%s", krcore_error_text()) : MC_OK;
}

static void mc_count(struct mc *mc, const struct krcore_key *key, uint64_t count,
		     struct mc_tally *t)
{
	struct krcore_lookup_info info;
	uint64_t start, end;
	int ret;

	start = mc_now_ns();
	while (t->nr < count && !mc_stopping()) {
		info = (struct krcore_lookup_info){ .size = sizeof(info) };
		ret = krcore_lookup(mc->krcore, key, NULL, &info);
		end = mc_now_ns();
		t->took_ns[t->nr++] = end - start;
		start = end;
		t->hits += !ret;
		t->misses += ret == -ENOENT;
		t->errors += ret && ret != -ENOENT;
		t->sum.reads += info.reads;
		t->sum.torn += info.torn;
		t->sum.stale += info.stale;
		t->sum.fallback += info.fallback;
	}
}

static void mc_put_tally(struct mc *mc, const struct krcore_key *key, struct mc_tally *t)
{
	struct mc_out *out = mc->out;

	mc_samples_sort(t->took_ns, t->nr);
	mc_out_table(out, MC_BLOCK, "latency");
	mc_row(out);
	mc_put_key(mc, key);
	mc_put_number(out, "lookups", 0, t->nr);
	mc_put_number(out, "hits", 0, t->hits);
	mc_put_number(out, "misses", 0, t->misses);
	mc_put_overruled(mc);
	mc_put_number(out, "errors", t->errors ? MC_BAD : 0, t->errors);
	mc_put_number(out, "reads", 0, t->sum.reads);
	mc_put_number(out, "reads_per_1000_lookups", 0, (uint64_t)t->sum.reads * 1000 / t->nr);
	mc_put_number(out, "torn", 0, t->sum.torn);
	mc_put_number(out, "stale", 0, t->sum.stale);
	mc_put_number(out, "by_message", 0, t->sum.fallback);
	mc_put_number(out, "min_ns", 0, t->took_ns[0]);
	mc_put_number(out, "p50_ns", 0, mc_percentile(t->took_ns, t->nr, 500));
	mc_put_number(out, "p99_ns", 0, mc_percentile(t->took_ns, t->nr, 990));
	mc_put_number(out, "p999_ns", 0, mc_percentile(t->took_ns, t->nr, 999));
	mc_put_number(out, "max_ns", 0, t->took_ns[t->nr - 1]);
}

static int mc_resolve_count(struct mc *mc, const struct krcore_key *key, uint64_t count)
{
	struct mc_tally t = { 0 };
	int ret = MC_OK;

	t.took_ns = calloc(count, sizeof(*t.took_ns));
	if (!t.took_ns)
		return mc_error(mc, "no memory for %llu samples", (unsigned long long)count);
	mc_catch_signals();
	mc_count(mc, key, count, &t);
	if (t.nr)
		mc_put_tally(mc, key, &t);
	free(t.took_ns);
	if (t.errors)
		ret = mc_error(mc, "%llu look-ups failed: %s", (unsigned long long)t.errors,
			       krcore_error_text());
	else if (t.misses)
		ret = mc_error(mc, "%llu look-ups found no record", (unsigned long long)t.misses);
	return ret;
}

static const char *mc_answer(int ret)
{
	return !ret ? "hit" : ret == -ENOENT ? "miss" : "error";
}

/* The record may change between the two answers: differing ones are asked for again. */
static bool mc_agree(struct mc *mc, unsigned int server, const struct krcore_key *key,
		     int *ret_read, int *ret_message)
{
	struct krcore_value by_read, by_message;
	unsigned int i;

	for (i = 0; i < MC_VERIFY_TRIES; i++) {
		*ret_read = krcore_lookup_at(mc->krcore, server, key, &by_read, NULL);
		*ret_message = krcore_lookup_by_message(mc->krcore, server, key, &by_message);
		if (*ret_read == *ret_message &&
		    (*ret_read ? *ret_read == -ENOENT : mc_values_equal(&by_read, &by_message)))
			return true;
		if ((*ret_read && *ret_read != -ENOENT) ||
		    (*ret_message && *ret_message != -ENOENT))
			return false;
	}
	return false;
}

static int mc_resolve_verify(struct mc *mc, const struct krcore_key *key)
{
	struct krcore_server_info *servers;
	int i, nr, by_read, by_message, ret = MC_OK;
	bool agree;

	nr = mc_servers_wait(mc, &servers);
	if (nr < 0)
		return mc_error(mc, "no memory");
	mc_out_table(mc->out, MC_TABLE, "verify");
	for (i = 0; i < nr; i++) {
		if (servers[i].state != KRCORE_SERVER_UP)
			continue;
		agree = mc_agree(mc, (unsigned int)i, key, &by_read, &by_message);
		mc_row(mc->out);
		mc_put_number(mc->out, "server", 0, (uint64_t)i);
		mc_put_text(mc->out, "address", 0, servers[i].address);
		mc_put_text(mc->out, "read", 0, mc_answer(by_read));
		mc_put_text(mc->out, "message", 0, mc_answer(by_message));
		mc_put_text(mc->out, "verdict", agree ? MC_GOOD : MC_BAD,
			    agree ? "agree" : "differ");
		if (!agree)
			ret = mc_error(mc, "%s: READ and message differ", servers[i].address);
	}
	free(servers);
	return ret;
}

static int mc_resolve(struct mc *mc)
{
	const struct mc_value *count = mc_get(mc, "count");
	struct krcore_key key;
	int ret, verified = MC_OK;

	mc_key_of(mc, &key);
	if (mc_attach(mc, NULL))
		return MC_FAILED;
	if (count)
		ret = mc_resolve_count(mc, &key, count->number);
	else
		ret = mc_resolve_once(mc, &key);
	if (mc_get(mc, "verify"))
		verified = mc_resolve_verify(mc, &key);
	return ret ? ret : verified;
}

static const struct mc_param mc_resolve_params[] = {
	{ "gid", MC_GID, MC_POSITIONAL | MC_REQUIRED, 0, 0,
	  "GID, address or host name of the peer" },
	{ "service", MC_NUMBER, 0, 0, 65535,
	  "which record of the peer; 0, its DC target, if left out" },
	{ "verify", MC_FLAG, 0, 0, 0, "compare with what each server says by message" },
	{ "count", MC_NUMBER, 0, 1, MC_COUNT_MAX, "look up so often and show latencies" },
	{ 0 },
};

static const struct mc_command mc_resolve_commands[] = {
	{ "", mc_resolve, mc_resolve_params, 0, "Look a record up by one-sided READ" },
	{ 0 },
};

const struct mc_object mc_object_resolve = {
	.name = "resolve",
	.help = "look a record up over RDMA, verify it, measure it",
	.commands = mc_resolve_commands,
};
