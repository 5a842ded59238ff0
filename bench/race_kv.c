// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A worker's store: see race_kv.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/race.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/race_kv.h"
#include "bench/tcp.h"
#include "bench/way.h"
#include "race/lib/krcore.h"

/**
 * struct bn_kv - An instance.
 * @c: client of the table, or NULL.
 * @tcp: connection to Redis, or NULL.
 */
struct bn_kv {
	struct kr_client *c;
	struct bn_tcp *tcp;
};

static const char *const bn_kv_systems[] = { "krcore", "krcore_lookup", "verbs_rc", "rdma_cm",
					     "redis" };

static void bn_kv_check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	exit(1);
}

void bn_kv_target(char *text, struct bn_kv_target *ret)
{
	char *sign = strchr(text, '=');
	size_t i;

	if (sign)
		*sign = '\0';
	for (i = 0; sign && i < sizeof(bn_kv_systems) / sizeof(bn_kv_systems[0]); i++) {
		if (strcmp(text, bn_kv_systems[i]) != 0)
			continue;
		ret->system = bn_kv_systems[i];
		ret->target = sign + 1;
		return;
	}
	fprintf(stderr,
		"'%s': not SYSTEM=TARGET of krcore, krcore_lookup, verbs_rc, rdma_cm or redis\n",
		text);
	exit(2);
}

static struct bn_tcp *bn_kv_redis(const char *target)
{
	struct bn_tcp *tcp = calloc(1, sizeof(*tcp));
	char *fields[2];

	if (!tcp)
		bn_die("memory");
	bn_target_split(target, fields, 2);
	bn_tcp_open(tcp, fields[0], fields[1]);
	bn_redis.open(tcp);
	return tcp;
}

struct bn_kv *bn_kv_open(const struct bn_kv_target *target)
{
	struct bn_kv *kv = calloc(1, sizeof(*kv));
	struct kr_transport *t;
	uint32_t reads;

	if (!kv)
		bn_die("memory");
	if (!strcmp(target->system, "redis")) {
		kv->tcp = bn_kv_redis(target->target);
		return kv;
	}
	if (!strncmp(target->system, "krcore", strlen("krcore")))
		bn_kv_check(kr_krcore_open(target->target, KRCORE_RACE_SERVICE, 0, 0,
					   strcmp(target->system, "krcore") ? KRCORE_CONNECT_FRESH
									    : 0,
					   &reads, &t),
			    "connecting");
	else
		t = bn_rc_open(target->target, !strcmp(target->system, "rdma_cm"));
	bn_kv_check(kr_client_new(t, &kv->c), "attaching");
	return kv;
}

void bn_kv_get(struct bn_kv *kv, uint64_t nr)
{
	char key[BN_TEXT_BYTES];
	unsigned int bytes = bn_key_text(nr, key);
	struct kr_place p;

	if (kv->tcp) {
		bn_redis.send_get(kv->tcp, key, bytes);
		if (!bn_redis.wait(kv->tcp))
			bn_tcp_fail(kv->tcp, "a record is not there");
		return;
	}
	bn_kv_check(kr_find(kv->c, key, bytes, &p), "get");
	if (!p.slot_at || kv->c->found->value_bytes != BN_TCP_VALUE_BYTES)
		bn_kv_check(-ENOENT, "get");
}

void bn_kv_put(struct bn_kv *kv, uint64_t nr)
{
	char key[BN_TEXT_BYTES], value[BN_TCP_VALUE_BYTES];
	unsigned int bytes;

	if (kv->tcp) {
		bn_redis.send_puts(kv->tcp, nr, 1);
		bn_redis.wait(kv->tcp);
		return;
	}
	bytes = bn_tcp_record(nr, key, value);
	bn_kv_check(kr_modify(kv->c, KR_PUT, key, bytes, value, sizeof(value)), "put");
}

const struct kr_stats *bn_kv_stats(const struct bn_kv *kv)
{
	return kv->c ? &kv->c->stats : NULL;
}

void bn_kv_close(struct bn_kv *kv)
{
	kr_client_free(kv->c);
	if (kv->tcp)
		bn_tcp_close(kv->tcp);
	free(kv->tcp);
	free(kv);
}

void bn_kv_fill(struct kr_client *c, uint64_t nr)
{
	char key[BN_TEXT_BYTES], value[BN_TCP_VALUE_BYTES];
	unsigned int bytes;
	uint64_t i;

	for (i = 0; i < nr; i++) {
		bytes = bn_tcp_record(i, key, value);
		bn_kv_check(kr_modify(c, KR_INSERT, key, bytes, value, sizeof(value)), "filling");
	}
}
