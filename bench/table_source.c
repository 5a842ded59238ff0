// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A MetaServer whose table is full from the start: the daemon that is measured
 * copies it (copy_from), which brings a million records in a fraction of the
 * time that as many publications take in an emulated guest.
 *
 *	bench_table_source ADDRESS PORT RECORDS
 *
 * It is the serving half of krcore-metaserver with records put into its ledger
 * before it begins. One thread. It says "ready" and runs until it is ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "metaserver/server_priv.h"

#define BN_LEASE_MS 3600000

static void bn_report(void *arg, const char *file, unsigned int line, const char *text)
{
	(void)arg;
	fprintf(stderr, "%s:%u: %s\n", file, line, text);
}

static void bn_set(struct kru_conf *conf, const char *key, const char *value)
{
	char text[512];

	snprintf(text, sizeof(text), "metaserver.%s=%s", key, value);
	if (kru_conf_set(conf, text, bn_report, NULL))
		exit(2);
}

static void bn_import(struct ms_server *srv, uint64_t records)
{
	struct krp_value value;
	struct krp_key key;
	uint64_t nr;
	int err;

	for (nr = 0; nr < records; nr++) {
		bn_key(nr, &key);
		bn_value(nr, &value);
		err = ms_ledger_import(srv->hub.ledger, ms_now(srv), &key, &value, BN_LEASE_MS);
		if (err != 1) {
			fprintf(stderr, "record %llu: %s\n", (unsigned long long)nr,
				strerror(-err));
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	struct ms_server *srv;
	struct ev_loop *loop;
	struct kru_conf conf;
	uint64_t records;
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT RECORDS\n", argv[0]);
		return 2;
	}
	records = bn_number(argv[3], 1, 1ULL << 26, "RECORDS");
	kru_conf_defaults(&conf);
	bn_set(&conf, "listen", argv[1]);
	bn_set(&conf, "port", argv[2]);
	bn_set(&conf, "key_file", "");
	bn_set(&conf, "lease_ms", "3600000");
	bn_set(&conf, "memory_max_mib", "4096");
	loop = ev_default_loop(EVFLAG_AUTO);
	err = loop ? ms_server_new(loop, &conf, &srv) : -ENOMEM;
	if (err) {
		fprintf(stderr, "no server: %s\n", strerror(-err));
		return 1;
	}
	bn_import(srv, records);
	err = ms_server_start(srv);
	if (err) {
		fprintf(stderr, "cannot use RDMA: %s\n", strerror(-err));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	ev_run(loop, 0);
	return 0;
}
