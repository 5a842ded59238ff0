// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Look-ups through libkrcore, and between them, in blocks, raw READs of as many
 * bytes: what drifts in the machine drifts for both.
 *
 *	bench_lookup -s METASERVER[:PORT] [-k KEY_FILE] -r RECORDS -c hit|miss|cold|attach
 *		-n SAMPLES [-p HOST:PORT of bench_read_server]
 *
 * `cold` forgets the directory entry of the key first, by way of the library's
 * insides, as if it had never been read. `attach` opens a context for each
 * sample: connection, proof, root, directory, first look-up. One thread beside
 * the library's own. Prints one JSON object a line, times in ns.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client.h"
#include "bench/keys.h"
#include "bench/link.h"
#include "bench/samples.h"
#include "client/lib/lib.h"

#define BN_BLOCK 20
#define BN_WARM 50

enum bn_case {
	BN_HIT,
	BN_MISS,
	BN_COLD,
	BN_ATTACH,
	BN_CASES
};

static const char *const bn_case_names[BN_CASES] = { "hit", "miss", "cold", "attach" };

/**
 * struct bn_raw - The peer: READs of a bucket's size from plain memory.
 * @id: connection, NULL if there is no peer.
 * @mr: where READs arrive.
 * @buf: the same.
 * @region: what may be read.
 */
struct bn_raw {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t buf[KRP_BUCKET_BYTES];
	struct bn_region region;
};

static void bn_raw_open(struct bn_raw *raw, const char *peer)
{
	char host[256];
	const char *colon = strrchr(peer, ':');

	if (!colon || colon - peer >= (ptrdiff_t)sizeof(host)) {
		fprintf(stderr, "%s: not HOST:PORT\n", peer);
		exit(2);
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - peer), peer);
	raw->id = bn_resolve(host, colon + 1, RDMA_PS_TCP);
	bn_queue_pair(raw->id, IBV_QPT_RC);
	raw->mr = ibv_reg_mr(raw->id->pd, raw->buf, sizeof(raw->buf), IBV_ACCESS_LOCAL_WRITE);
	if (!raw->mr)
		bn_die("registering memory");
	bn_connect(raw->id, 1, NULL, &raw->region, sizeof(raw->region));
	raw->region.addr = be64toh(raw->region.addr);
	raw->region.rkey = be32toh(raw->region.rkey);
	raw->region.mib = be32toh(raw->region.mib);
}

static void bn_raw_read(struct bn_raw *raw, uint64_t *random)
{
	uint64_t places = ((uint64_t)raw->region.mib << 20) / KRP_BUCKET_BYTES;

	bn_read(raw->id->qp, raw->mr, raw->buf, sizeof(raw->buf),
		raw->region.addr + bn_random(random) % places * KRP_BUCKET_BYTES, raw->region.rkey);
}

static void bn_raw_close(struct bn_raw *raw)
{
	rdma_disconnect(raw->id);
	rdma_destroy_qp(raw->id);
	ibv_dereg_mr(raw->mr);
	rdma_destroy_id(raw->id);
}

/* Forget what is known of the key's place, as if its entry had never been read. */
static void bn_forget(struct krcore_ctx *ctx, const struct krp_key *key)
{
	struct krl_server *srv = &ctx->servers[0];
	struct krp_map *map;

	pthread_mutex_lock(&srv->io);
	map = &srv->map->map;
	memset(&map->dir[krp_hash_prefix(krp_key_hash(key, map->salt), map->depth)], 0xff,
	       sizeof(*map->dir));
	pthread_mutex_unlock(&srv->io);
}

/* One look-up; ends the program if the answer is not the right one. Return: READs. */
static uint32_t bn_lookup(struct krcore_ctx *ctx, enum bn_case what, uint64_t nr)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;
	struct krcore_key key;
	struct krp_key wire;
	int err;

	bn_key(nr, &wire);
	memcpy(key.gid, wire.gid, sizeof(key.gid));
	key.service = BN_SERVICE;
	err = krcore_lookup(ctx, &key, &value, &info);
	if (err != (what == BN_MISS ? -ENOENT : 0)) {
		fprintf(stderr, "look-up: %d (%s)\n", err, krcore_error_text());
		exit(1);
	}
	if (!err && (value.raw_len != sizeof(nr) || memcmp(value.raw, &nr, sizeof(nr)))) {
		fprintf(stderr, "look-up: not the value that was published\n");
		exit(1);
	}
	return info.reads;
}

static void bn_measure_attach(const struct bn_client *o)
{
	uint64_t i, begin_ns, reads = 0;
	struct bn_samples ours;

	if (bn_samples_init(&ours, o->samples))
		bn_die("memory");
	for (i = 0; i < o->samples; i++) {
		struct krcore_ctx *ctx;

		begin_ns = bn_now_ns();
		ctx = bn_client_open(o, "bench_lookup", 0, 0, 0);
		reads += bn_lookup(ctx, BN_ATTACH, i % o->records);
		bn_samples_add(&ours, bn_now_ns() - begin_ns);
		krcore_close(ctx);
	}
	bn_samples_print(&ours, "krcore", "attach", reads, 0);
	bn_samples_done(&ours);
}

/* Which record to look up next. */
static uint64_t bn_case_nr(enum bn_case what, uint64_t records, uint64_t *random)
{
	return bn_random(random) % records + (what == BN_MISS ? BN_ABSENT : 0);
}

/* A block of look-ups. Return: READs they took. */
static uint64_t bn_block(struct krcore_ctx *ctx, enum bn_case what, uint64_t records,
			 uint64_t *random, struct bn_samples *to)
{
	uint64_t nr, begin_ns, reads = 0;
	struct krp_key key;
	unsigned int i;

	for (i = 0; i < BN_BLOCK; i++) {
		nr = bn_case_nr(what, records, random);
		bn_key(nr, &key);
		if (what == BN_COLD)
			bn_forget(ctx, &key);
		begin_ns = bn_now_ns();
		reads += bn_lookup(ctx, what, nr);
		bn_samples_add(to, bn_now_ns() - begin_ns);
	}
	return reads;
}

static void bn_measure(const struct bn_client *o, enum bn_case what)
{
	struct bn_samples ours, peers;
	struct bn_raw raw = { 0 };
	uint64_t random = 88172645463325252ULL, reads = 0, begin_ns;
	struct krcore_ctx *ctx = bn_client_open(o, "bench_lookup", 0, 0, 0);
	unsigned int i;

	if (bn_samples_init(&ours, o->samples) || bn_samples_init(&peers, o->samples))
		bn_die("memory");
	if (o->peer)
		bn_raw_open(&raw, o->peer);
	for (i = 0; i < BN_WARM; i++) {
		bn_lookup(ctx, what, bn_case_nr(what, o->records, &random));
		if (raw.id)
			bn_raw_read(&raw, &random);
	}
	bn_gate("begin");
	while (ours.nr < ours.max) {
		reads += bn_block(ctx, what, o->records, &random, &ours);
		for (i = 0; raw.id && i < BN_BLOCK; i++) {
			begin_ns = bn_now_ns();
			bn_raw_read(&raw, &random);
			bn_samples_add(&peers, bn_now_ns() - begin_ns);
		}
	}
	bn_gate("end");
	bn_samples_print(&ours, "krcore", bn_case_names[what], reads, 0);
	if (raw.id) {
		bn_samples_print(&peers, "raw_read", bn_case_names[what], peers.nr, 0);
		bn_raw_close(&raw);
	}
	bn_samples_done(&ours);
	bn_samples_done(&peers);
	krcore_close(ctx);
}

static enum bn_case bn_case_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < BN_CASES; i++)
		if (!strcmp(name, bn_case_names[i]))
			return (enum bn_case)i;
	fprintf(stderr, "'%s': not hit, miss, cold or attach\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct bn_client o;
	enum bn_case what;

	bn_client_options(
		argc, argv, "prnc",
		"-s SERVER [-k KEY_FILE] [-p HOST:PORT] [-r RECORDS] [-n SAMPLES] -c CASE", &o);
	what = bn_case_of(o.what);
	if (what == BN_ATTACH) {
		bn_measure_attach(&o);
		return 0;
	}
	o.samples = (o.samples + BN_BLOCK - 1) / BN_BLOCK * BN_BLOCK; /* whole blocks */
	bn_measure(&o, what);
	return 0;
}
