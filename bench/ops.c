// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Operations beside connects and requests, marked for ./run bench cost.
 *
 *	bench_ops krcore|verbs register|deregister BYTES ROUNDS
 *	bench_ops krcore|verbs poll ROUNDS
 *	bench_ops krcore_module lookup|publish ADDRESS ROUNDS
 *
 * register: memory that is there, open to peers; of more than 2 MiB the same 2 MiB again and
 * again, so that a guest need not have as much. deregister: of memory that is not open to peers,
 * since krcore waits with others until no peer can hold a valid reference. poll: of a
 * completion queue, or ring, with nothing in it. lookup: a record of ADDRESS's node, by way of
 * /dev/krcore, from the node's cache; publish: a raw record under ADDRESS, one of ours, another
 * value each time, until it is acknowledged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <krcore/krcore.h>
#include <krcore/queue.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/meter.h"
#include "bench/way.h"

#define BN_SERVICE_OPS 4243
#define BN_SPAN (2UL << 20) /* bytes of memory that are repeated for more */

/* Registers memory, and undoes it; state is the system's. */
struct bn_registrar {
	const char *name;
	void *(*open)(void);
	void (*reg)(void *state, void *memory, size_t bytes, int remote);
	void (*dereg)(void *state);
	void (*poll)(void *state);
};

struct bn_ops_krcore {
	struct krcore_node *node;
	struct krcore_mr mr;
};

static void *bn_ops_krcore_open(void)
{
	struct bn_ops_krcore *k = calloc(1, sizeof(*k));

	if (!k)
		bn_die("memory");
	if (krcore_node_open(NULL, &k->node))
		bn_krcore_die("krcore_node_open");
	return k;
}

static void bn_ops_krcore_reg(void *state, void *memory, size_t bytes, int remote)
{
	struct bn_ops_krcore *k = state;
	uint32_t access = KRCORE_ACCESS_LOCAL_WRITE;

	if (remote)
		access |= KRCORE_ACCESS_REMOTE_READ | KRCORE_ACCESS_REMOTE_WRITE;
	if (krcore_mr_reg(k->node, memory, bytes, access, &k->mr))
		bn_krcore_die("krcore_mr_reg");
}

static void bn_ops_krcore_dereg(void *state)
{
	struct bn_ops_krcore *k = state;

	if (krcore_mr_dereg(k->node, &k->mr))
		bn_krcore_die("krcore_mr_dereg");
}

static void bn_ops_krcore_poll(void *state)
{
	struct bn_ops_krcore *k = state;
	struct krcore_wc wc;

	if (krcore_poll(k->node, &wc, 1))
		bn_krcore_die("krcore_poll");
}

struct bn_ops_verbs {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static void *bn_ops_verbs_open(void)
{
	struct bn_ops_verbs *v = calloc(1, sizeof(*v));
	struct ibv_context *verbs = bn_verbs_device();

	if (!v)
		bn_die("memory");
	v->pd = ibv_alloc_pd(verbs);
	v->cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
	if (!v->pd || !v->cq)
		bn_die("protection domain or completion queue");
	return v;
}

static void bn_ops_verbs_reg(void *state, void *memory, size_t bytes, int remote)
{
	struct bn_ops_verbs *v = state;
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (remote)
		access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	v->mr = ibv_reg_mr(v->pd, memory, bytes, access);
	if (!v->mr)
		bn_die("ibv_reg_mr");
}

static void bn_ops_verbs_dereg(void *state)
{
	struct bn_ops_verbs *v = state;

	if (ibv_dereg_mr(v->mr))
		bn_die("ibv_dereg_mr");
}

static void bn_ops_verbs_poll(void *state)
{
	struct bn_ops_verbs *v = state;
	struct ibv_wc wc;

	if (ibv_poll_cq(v->cq, 1, &wc))
		bn_die("ibv_poll_cq");
}

static const struct bn_registrar bn_registrars[] = {
	{ "krcore", bn_ops_krcore_open, bn_ops_krcore_reg, bn_ops_krcore_dereg,
	  bn_ops_krcore_poll },
	{ "verbs", bn_ops_verbs_open, bn_ops_verbs_reg, bn_ops_verbs_dereg, bn_ops_verbs_poll },
};

static const struct bn_registrar *bn_registrar_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(bn_registrars) / sizeof(bn_registrars[0]); i++)
		if (!strcmp(bn_registrars[i].name, name))
			return &bn_registrars[i];
	return NULL;
}

/* Memory that is all there. */
static void *bn_ops_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		bn_die("memory");
	return memory;
}

/* The same, of BN_SPAN, in the place of each BN_SPAN of as many bytes. */
static void *bn_ops_repeated(size_t bytes)
{
	int fd = memfd_create("bench_ops", MFD_CLOEXEC);
	uint8_t *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	if (fd < 0 || ftruncate(fd, BN_SPAN) || memory == MAP_FAILED)
		bn_die("memory");
	for (at = 0; at < bytes; at += BN_SPAN)
		if (mmap(memory + at, BN_SPAN, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			bn_die("memory");
	close(fd);
	return memory;
}

static void *bn_ops_region(size_t bytes)
{
	return bytes > BN_SPAN && !(bytes % BN_SPAN) ? bn_ops_repeated(bytes)
						     : bn_ops_memory(bytes);
}

static void bn_register(const struct bn_registrar *r, size_t bytes, uint64_t rounds)
{
	void *state = r->open(), *memory = bn_ops_region(bytes);

	for (; rounds; rounds--) {
		BN_MARK(BEGIN);
		r->reg(state, memory, bytes, 1);
		BN_MARK(END);
		r->dereg(state);
	}
}

static void bn_deregister(const struct bn_registrar *r, size_t bytes, uint64_t rounds)
{
	void *state = r->open(), *memory = bn_ops_region(bytes);

	for (; rounds; rounds--) {
		r->reg(state, memory, bytes, 0);
		BN_MARK(BEGIN);
		r->dereg(state);
		BN_MARK(END);
	}
}

static void bn_poll_nothing(const struct bn_registrar *r, uint64_t rounds)
{
	void *state = r->open();

	for (; rounds; rounds--) {
		BN_MARK(BEGIN);
		r->poll(state);
		BN_MARK(END);
	}
}

static struct krcore_ctx *bn_ops_context(const char *address, uint16_t service,
					 struct krcore_key *ret_key)
{
	struct krcore_options opts = { .size = sizeof(opts), .name = "bench_ops" };
	struct krcore_ctx *ctx;

	if (krcore_key_from_text(address, service, ret_key))
		bn_krcore_die(address);
	if (krcore_open(&opts, &ctx))
		bn_krcore_die("krcore_open");
	return ctx;
}

static void bn_lookup(const char *address, uint64_t rounds)
{
	struct krcore_key key;
	struct krcore_ctx *ctx = bn_ops_context(address, KRCORE_SERVICE_NODE, &key);
	struct krcore_value value;

	for (; rounds; rounds--) {
		BN_MARK(BEGIN);
		if (krcore_lookup(ctx, &key, &value, NULL))
			bn_krcore_die("krcore_lookup");
		BN_MARK(END);
	}
	krcore_close(ctx);
}

static void bn_publish(const char *address, uint64_t rounds)
{
	struct krcore_value value = { .kind = KRCORE_KIND_RAW, .raw_len = sizeof(rounds) };
	struct krcore_key key;
	struct krcore_ctx *ctx = bn_ops_context(address, BN_SERVICE_OPS, &key);

	for (; rounds; rounds--) {
		memcpy(value.raw, &rounds, sizeof(rounds));
		BN_MARK(BEGIN);
		if (krcore_publish(ctx, &key, &value) < 0)
			bn_krcore_die("krcore_publish");
		BN_MARK(END);
	}
	krcore_close(ctx);
}

static int bn_usage(const char *program)
{
	fprintf(stderr,
		"usage: %s krcore|verbs register|deregister BYTES ROUNDS\n"
		"       %s krcore|verbs poll ROUNDS\n"
		"       %s krcore_module lookup|publish ADDRESS ROUNDS\n",
		program, program, program);
	return 2;
}

int main(int argc, char **argv)
{
	const struct bn_registrar *r = argc > 1 ? bn_registrar_find(argv[1]) : NULL;
	uint64_t rounds = argc > 3 ? bn_number(argv[argc - 1], 1, 10000000, "ROUNDS") : 0;
	int module = argc == 5 && !strcmp(argv[1], "krcore_module");

	if (r && argc == 5 && !strcmp(argv[2], "register"))
		bn_register(r, bn_number(argv[3], 1, 1 << 30, "BYTES"), rounds);
	else if (r && argc == 5 && !strcmp(argv[2], "deregister"))
		bn_deregister(r, bn_number(argv[3], 1, 1 << 30, "BYTES"), rounds);
	else if (r && argc == 4 && !strcmp(argv[2], "poll"))
		bn_poll_nothing(r, rounds);
	else if (module && !strcmp(argv[2], "lookup"))
		bn_lookup(argv[3], rounds);
	else if (module && !strcmp(argv[2], "publish"))
		bn_publish(argv[3], rounds);
	else
		return bn_usage(argv[0]);
	return 0;
}
