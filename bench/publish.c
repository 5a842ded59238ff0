// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Publishes many records, or measures single publications.
 *
 *	bench_publish -s METASERVER[:PORT] [-k KEY_FILE] -r RECORDS [-f FROM] fill
 *	bench_publish -s METASERVER[:PORT] [-k KEY_FILE] -f FROM -n SAMPLES latency
 *
 * `fill` is run while the server is down: the library keeps the records and,
 * once the server is up, publishes them as fast as its credits let it, which is
 * also what happens after a restart. It says "stored", then every 100 ms how
 * far it is, then "filled", and stays so that the lease is renewed. `latency`
 * publishes one record after the other and withdraws them again, each waited
 * for. One thread beside the library's. Times in ns.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/client.h"
#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "client/include/krcore/krcore.h"

#define BN_LEASE_MS 10000 /* so that those of `fill` run out soon after it has ended */

static void bn_record(uint64_t nr, struct krcore_key *ret_key, struct krcore_value *ret_value)
{
	struct krp_key wire;

	bn_key(nr, &wire);
	memcpy(ret_key->gid, wire.gid, sizeof(ret_key->gid));
	ret_key->service = BN_SERVICE;
	memset(ret_value, 0, sizeof(*ret_value));
	ret_value->kind = KRCORE_KIND_RAW;
	ret_value->raw_len = sizeof(nr);
	memcpy(ret_value->raw, &nr, sizeof(nr));
}

static void bn_fill(const struct bn_client *o)
{
	struct krcore_ctx *ctx =
		bn_client_open(o, "bench_publish", 1, BN_LEASE_MS, KRCORE_OPEN_NOWAIT);
	struct krcore_stats stats = { .size = sizeof(stats) };
	struct krcore_value value;
	struct krcore_key key;
	uint64_t nr;
	int err;

	for (nr = 0; nr < o->records; nr++) {
		bn_record(o->from + nr, &key, &value);
		err = krcore_publish(ctx, &key, &value);
		if (err < 0 && err != -EHOSTUNREACH) {
			fprintf(stderr, "publish: %s (%s)\n", krcore_error_text(), strerror(-err));
			exit(1);
		}
	}
	printf("{\"stored\": %" PRIu64 "}\n", o->records);
	fflush(stdout);
	while (stats.publishes < o->records) {
		usleep(100000);
		krcore_stats(ctx, &stats);
		printf("{\"at\": %" PRIu64 ", \"published\": %" PRIu64 "}\n", bn_now_ns(),
		       stats.publishes);
		fflush(stdout);
	}
	printf("{\"filled\": %" PRIu64 "}\n", stats.publishes);
	fflush(stdout);
	for (;;)
		pause();
}

static void bn_latency(const struct bn_client *o)
{
	struct krcore_ctx *ctx = bn_client_open(o, "bench_publish", 2, 0, 0);
	struct bn_samples puts, dels;
	struct krcore_value value;
	struct krcore_key key;
	uint64_t i, begin_ns;
	int err;

	if (bn_samples_init(&puts, o->samples) || bn_samples_init(&dels, o->samples))
		bn_die("memory");
	for (i = 0; i < o->samples; i++) {
		bn_record(o->from + i, &key, &value);
		begin_ns = bn_now_ns();
		err = krcore_publish(ctx, &key, &value);
		if (err < 1) {
			fprintf(stderr, "publish: %s (%s)\n", krcore_error_text(), strerror(-err));
			exit(1);
		}
		bn_samples_add(&puts, bn_now_ns() - begin_ns);
	}
	for (i = 0; i < o->samples; i++) {
		bn_record(o->from + i, &key, &value);
		begin_ns = bn_now_ns();
		err = krcore_withdraw(ctx, &key);
		if (err) {
			fprintf(stderr, "withdraw: %s (%s)\n", krcore_error_text(), strerror(-err));
			exit(1);
		}
		bn_samples_add(&dels, bn_now_ns() - begin_ns);
	}
	bn_samples_print(&puts, "krcore", "publish", 0, 0);
	bn_samples_print(&dels, "krcore", "withdraw", 0, 0);
	bn_samples_done(&puts);
	bn_samples_done(&dels);
	krcore_close(ctx);
}

int main(int argc, char **argv)
{
	struct bn_client o;

	bn_client_options(
		argc, argv, "rnf",
		"-s SERVER [-k KEY_FILE] [-r RECORDS] [-n SAMPLES] [-f FROM] fill|latency", &o);
	if (!strcmp(o.what, "fill")) {
		bn_fill(&o);
	} else if (!strcmp(o.what, "latency")) {
		bn_latency(&o);
	} else {
		fprintf(stderr, "'%s': not fill or latency\n", o.what);
		return 2;
	}
	return 0;
}
