// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reads single keys from Redis or etcd, one request at a time, or fills them.
 *
 *	bench_tcp_get redis|etcd HOST PORT RECORDS SAMPLES hit|miss
 *	bench_tcp_get redis|etcd HOST PORT RECORDS 0 fill
 *
 * One thread, one connection, as tcp.h says. Prints one JSON object, times in
 * ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "bench/tcp.h"

#define BN_WARM 50

static void bn_fill(const struct bn_store *store, struct bn_tcp *t, uint64_t records)
{
	unsigned int nr, ahead = 0;
	uint64_t from;

	for (from = 0; from < records; from += nr) {
		nr = store->puts_max;
		if (nr > records - from)
			nr = (unsigned int)(records - from);
		store->send_puts(t, from, nr);
		if (++ahead == store->ahead_max) {
			store->wait(t);
			ahead--;
		}
	}
	while (ahead--)
		store->wait(t);
}

static void bn_get(const struct bn_store *store, struct bn_tcp *t, uint64_t nr)
{
	char key[BN_TEXT_BYTES];

	store->send_get(t, key, bn_key_text(nr, key));
	if (store->wait(t) != (nr < BN_ABSENT))
		bn_tcp_fail(t, "not the right answer");
}

static void bn_measure(const struct bn_store *store, struct bn_tcp *t, uint64_t records,
		       uint64_t samples, const char *what)
{
	uint64_t i, begin_ns, random = 88172645463325252ULL;
	uint64_t from = strcmp(what, "miss") ? 0 : BN_ABSENT;
	struct bn_samples took;

	if (bn_samples_init(&took, samples))
		bn_die("memory");
	for (i = 0; i < BN_WARM; i++)
		bn_get(store, t, from + bn_random(&random) % records);
	bn_gate("begin");
	for (i = 0; i < samples; i++) {
		uint64_t nr = from + bn_random(&random) % records;

		begin_ns = bn_now_ns();
		bn_get(store, t, nr);
		bn_samples_add(&took, bn_now_ns() - begin_ns);
	}
	bn_gate("end");
	bn_samples_print(&took, store->name, what, 0, 0);
	bn_samples_done(&took);
}

int main(int argc, char **argv)
{
	const struct bn_store *store;
	static struct bn_tcp t;
	uint64_t records, samples;

	if (argc != 7) {
		fprintf(stderr, "usage: %s redis|etcd HOST PORT RECORDS SAMPLES hit|miss|fill\n",
			argv[0]);
		return 2;
	}
	store = strcmp(argv[1], "etcd") ? &bn_redis : &bn_etcd;
	if (strcmp(argv[1], store->name)) {
		fprintf(stderr, "'%s': not redis or etcd\n", argv[1]);
		return 2;
	}
	records = bn_number(argv[4], 1, 1ULL << 32, "RECORDS");
	samples = bn_number(argv[5], 0, 10000000, "SAMPLES");
	bn_tcp_open(&t, argv[2], argv[3]);
	store->open(&t);
	if (!strcmp(argv[6], "fill"))
		bn_fill(store, &t, records);
	else if (samples && (!strcmp(argv[6], "hit") || !strcmp(argv[6], "miss")))
		bn_measure(store, &t, records, samples, argv[6]);
	else
		bn_tcp_fail(&t, "nothing to do");
	bn_tcp_close(&t);
	return 0;
}
