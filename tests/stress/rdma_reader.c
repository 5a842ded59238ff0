// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Look-ups over real RDMA READs against writers at full rate, with values that
 * can be verified. Exits 1 if a single look-up was wrong.
 *
 *	rdma_reader write --servers LIST --gid GID ...	on the machine that has GID
 *	rdma_reader read  --servers LIST --gid GID ...	on any other, at the same time
 *	rdma_reader both  ...				in one process
 *
 * Nothing passes between writers and readers but the table. Writer w changes its
 * keys in a fixed order: its operation i concerns key i % keys in round i / keys,
 * and publishes version (round + 1), or withdraws in every fourth round. After
 * each STRIDE operations it publishes how many are acknowledged. A reader reads
 * that number, looks a key up, reads the number again, and so knows which rounds
 * the answer may come from:
 *	wrong      a value that is not the one of its key and version
 *	false_miss no record where no withdrawal can have been under way
 *	ghost      a record whose withdrawal was acknowledged before
 *	backwards  a version older than one acknowledged, or seen, before
 *	early      a version that was not yet published
 *	phantom    a record that nobody ever published
 * Permanent keys are found always, absent ones never.
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/include/krcore/krcore.h"
#include "common/gid.h"
#include "proto/krp_hash.h"

#define STRIDE 16
#define THREADS_MAX 8
#define KEYS_MAX 4096
#define SERVICE_PROGRESS 0x0100 /* one a writer */
#define SERVICE_CHANGING 0x1000 /* keys of writer 0, then of writer 1 */
#define SERVICE_PERMANENT 0xa000
#define SERVICE_ABSENT 0xe000

enum {
	MODE_WRITE = 1,
	MODE_READ = 2,
	MODE_BOTH = 3
};

static struct {
	int mode;
	const char *servers;
	const char *key_file;
	uint8_t gid[KRCORE_GID_BYTES];
	unsigned int keys;
	unsigned int permanent;
	unsigned int seconds;
	unsigned int writers;
	unsigned int readers;
	unsigned int acks;
	unsigned int timeout_ms;
} opt = {
	.keys = 64, .permanent = 64, .seconds = 10, .writers = 2, .readers = 2, .timeout_ms = 20000
};

static struct {
	_Atomic uint64_t lookups, operations, unanswered, refused;
	_Atomic uint64_t wrong, false_miss, ghost, backwards, early, phantom;
} n;

static _Atomic bool stop;

/* SIGTERM ends a run before its time. */
static void on_term(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static void complain(const char *what, unsigned int service, uint64_t a, uint64_t b, uint64_t c)
{
	static _Atomic unsigned int lines;

	if (atomic_fetch_add(&lines, 1) < 20)
		fprintf(stderr, "%s: service 0x%04x, %llu %llu %llu\n", what, service,
			(unsigned long long)a, (unsigned long long)b, (unsigned long long)c);
}

static struct krcore_key key_of(unsigned int service)
{
	struct krcore_key key = { .service = (uint16_t)service };

	memcpy(key.gid, opt.gid, sizeof(key.gid));
	return key;
}

/* Every byte of a value depends on its key and version. */
static void fill(struct krcore_value *value, unsigned int service, uint64_t version)
{
	uint64_t seed = krp_mix64(service * KRP_GOLDEN ^ version);
	unsigned int i;

	memset(value, 0, sizeof(*value));
	value->kind = KRCORE_KIND_RAW;
	value->raw_len = KRCORE_RAW_BYTES;
	memcpy(value->raw, &version, sizeof(version));
	for (i = sizeof(version); i < KRCORE_RAW_BYTES; i++)
		value->raw[i] = (uint8_t)krp_mix64(seed + i);
}

/* Return: true and the version, if the value is the one of its key and version. */
static bool verify(const struct krcore_value *value, unsigned int service, uint64_t *ret_version)
{
	struct krcore_value want;
	uint64_t version;

	memcpy(&version, value->raw, sizeof(version));
	fill(&want, service, version);
	*ret_version = version;
	return value->kind == want.kind && value->raw_len == want.raw_len &&
	       !memcmp(value->raw, want.raw, sizeof(want.raw));
}

static bool withdraws(unsigned int key, uint64_t round)
{
	return round && (round + key) % 4 == 3;
}

/* Rounds of a key that are over once @operations are. */
static uint64_t rounds_of(unsigned int key, uint64_t operations)
{
	return operations / opt.keys + (operations % opt.keys > key);
}

static struct krcore_ctx *open_context(uint64_t salt)
{
	struct krcore_options options = {
		.size = sizeof(options),
		.servers = opt.servers,
		.key_file = opt.key_file,
		.timeout_ms = opt.timeout_ms,
		.flags = KRCORE_OPEN_DIRECT,
	};
	struct krcore_ctx *ctx;

	/* one owner a context: each counts its own records */
	if (salt) {
		memcpy(options.owner, opt.gid + 8, 8);
		memcpy(options.owner + 8, &salt, sizeof(salt));
	}
	if (krcore_open(&options, &ctx)) {
		fprintf(stderr, "rdma_reader: %s\n", krcore_error_text());
		exit(1);
	}
	return ctx;
}

/* Why the library could not do better, for whoever reads the log. */
static void show_servers(struct krcore_ctx *ctx)
{
	struct krcore_server_info info[8] = { { .size = sizeof(*info) } };
	int i, nr = krcore_servers(ctx, info, 8);

	for (i = 0; i < nr && i < 8; i++)
		fprintf(stderr, "rdma_reader: %s: state %u, attached %llu times, %s\n",
			info[i].address, info[i].state, (unsigned long long)info[i].attaches,
			info[i].last_error ? info[i].error_text : "no error");
}

/* A publication or withdrawal that counts: every server has it. */
static void change(struct krcore_ctx *ctx, unsigned int service, uint64_t version)
{
	struct krcore_key key = key_of(service);
	struct krcore_value value;
	int ret;

	fill(&value, service, version);
	ret = version ? krcore_publish(ctx, &key, &value) : krcore_withdraw(ctx, &key);
	atomic_fetch_add(&n.operations, 1);
	if (ret < 0 || (version && opt.acks && (unsigned int)ret != opt.acks)) {
		atomic_fetch_add(&n.refused, 1);
		fprintf(stderr, "rdma_reader: service 0x%04x: %s\n", service,
			ret < 0 ? krcore_error_text() : "not every server has it");
		show_servers(ctx);
		atomic_store(&stop, true);
	}
}

static void nap(void)
{
	struct timespec pause = { .tv_nsec = 20000000 };

	nanosleep(&pause, NULL);
}

/* krcore_open() waits for one server; the others may take a little longer. */
static void wait_for_servers(struct krcore_ctx *ctx)
{
	struct krcore_server_info info[64] = { { .size = sizeof(*info) } };
	unsigned int up, tries;
	int i, nr;

	for (tries = 0; tries < 1000; tries++) {
		nr = krcore_servers(ctx, info, 64);
		for (i = 0, up = 0; i < nr && i < 64; i++)
			up += info[i].state == KRCORE_SERVER_UP;
		if (up >= opt.acks)
			return;
		nap();
	}
}

static void *writer(void *arg)
{
	unsigned int w = (unsigned int)(uintptr_t)arg, i;
	struct krcore_ctx *ctx = open_context(w + 1);
	uint64_t op;

	wait_for_servers(ctx);
	if (!w)
		for (i = 0; i < opt.permanent && !atomic_load(&stop); i++)
			change(ctx, SERVICE_PERMANENT + i, i + 1);
	for (op = 0; !atomic_load(&stop); op++) {
		unsigned int key = (unsigned int)(op % opt.keys);
		uint64_t round = op / opt.keys;

		if (!(op % STRIDE))
			change(ctx, SERVICE_PROGRESS + w, op + 1);
		change(ctx, SERVICE_CHANGING + w * opt.keys + key,
		       withdraws(key, round) ? 0 : round + 1);
	}
	krcore_close(ctx);
	return NULL;
}

/* Return: 0 and the number, or -1. */
static int progress(struct krcore_ctx *ctx, unsigned int server, unsigned int w, uint64_t *ret_ops)
{
	struct krcore_key key = key_of(SERVICE_PROGRESS + w);
	struct krcore_value value;
	uint64_t version;

	if (krcore_lookup_at(ctx, server, &key, &value, NULL))
		return -1;
	if (!verify(&value, key.service, &version)) {
		atomic_fetch_add(&n.wrong, 1);
		complain("wrong progress", key.service, version, 0, 0);
		return -1;
	}
	*ret_ops = version - 1;
	return 0;
}

/*
 * Judge the answer for a changing key. @before: rounds surely over when the
 * look-up began; @after: rounds that may have begun when it ended; @seen:
 * newest version this reader has seen.
 */
static void judge(unsigned int service, unsigned int key, uint64_t before, uint64_t after, int err,
		  const struct krcore_value *value, uint64_t *seen)
{
	uint64_t version, round;
	bool allowed = !before; /* nothing published yet */

	if (err == -ENOENT) {
		for (round = before ? before - 1 : 0; round < after && !allowed; round++)
			allowed = withdraws(key, round);
		if (!allowed) {
			atomic_fetch_add(&n.false_miss, 1);
			complain("false miss", service, before, after, *seen);
		}
		return;
	}
	if (!verify(value, service, &version)) {
		atomic_fetch_add(&n.wrong, 1);
		complain("wrong value", service, version, before, after);
		return;
	}
	if (version < before && before && withdraws(key, before - 1)) {
		atomic_fetch_add(&n.ghost, 1);
		complain("ghost", service, version, before, after);
	} else if (version < before || version < *seen) {
		atomic_fetch_add(&n.backwards, 1);
		complain("backwards", service, version, before, *seen);
	} else if (version > after) {
		atomic_fetch_add(&n.early, 1);
		complain("early", service, version, before, after);
	} else {
		*seen = version;
	}
}

static void read_changing(struct krcore_ctx *ctx, unsigned int server, unsigned int w,
			  unsigned int key, uint64_t *seen)
{
	unsigned int service = SERVICE_CHANGING + w * opt.keys + key;
	struct krcore_key name = key_of(service);
	uint64_t before_ops, after_ops;
	struct krcore_value value;
	int err;

	if (progress(ctx, server, w, &before_ops)) {
		atomic_fetch_add(&n.unanswered, 1);
		return;
	}
	err = krcore_lookup_at(ctx, server, &name, &value, NULL);
	if ((err && err != -ENOENT) || progress(ctx, server, w, &after_ops)) {
		atomic_fetch_add(&n.unanswered, 1);
		return;
	}
	atomic_fetch_add(&n.lookups, 3);
	/* the next number comes only after STRIDE more, one of them under way */
	judge(service, key, rounds_of(key, before_ops), rounds_of(key, after_ops + STRIDE + 1), err,
	      &value, seen);
}

static void read_constant(struct krcore_ctx *ctx, unsigned int server, uint64_t dice)
{
	unsigned int i = (unsigned int)(dice % opt.permanent);
	struct krcore_key there = key_of(SERVICE_PERMANENT + i);
	struct krcore_key absent = key_of(SERVICE_ABSENT + (unsigned int)(dice >> 32) % 0x1000);
	struct krcore_value value;
	uint64_t version;
	int err;

	err = krcore_lookup_at(ctx, server, &there, &value, NULL);
	if (err == -ENOENT) {
		atomic_fetch_add(&n.false_miss, 1);
		complain("false miss of a permanent key", there.service, 0, 0, 0);
	} else if (err) {
		atomic_fetch_add(&n.unanswered, 1);
	} else if (!verify(&value, there.service, &version) || version != i + 1) {
		atomic_fetch_add(&n.wrong, 1);
		complain("wrong permanent value", there.service, version, i + 1, 0);
	}
	err = krcore_lookup_at(ctx, server, &absent, &value, NULL);
	if (!err) {
		atomic_fetch_add(&n.phantom, 1);
		complain("phantom", absent.service, 0, 0, 0);
	} else if (err != -ENOENT) {
		atomic_fetch_add(&n.unanswered, 1);
	}
	atomic_fetch_add(&n.lookups, 2);
}

/* Writers may start after readers: wait until all have published their number. */
static bool wait_for_writers(struct krcore_ctx *ctx, unsigned int servers)
{
	unsigned int w, s, tries;
	uint64_t ops;

	for (w = 0; w < opt.writers; w++)
		for (s = 0; s < servers; s++)
			for (tries = 0; progress(ctx, s, w, &ops) || ops < opt.keys; tries++) {
				if (tries > 3000 || atomic_load(&stop))
					return false;
				nap();
			}
	return true;
}

static void *reader(void *arg)
{
	uint64_t(*seen)[THREADS_MAX][KEYS_MAX] = calloc(64, sizeof(*seen));
	uint64_t dice = krp_mix64((uint64_t)(uintptr_t)arg + 1);
	struct krcore_ctx *ctx = open_context(0);
	unsigned int servers = (unsigned int)krcore_servers(ctx, NULL, 0);

	if (!seen || !wait_for_writers(ctx, servers)) {
		fprintf(stderr, "rdma_reader: the writers have not begun, or died\n");
		atomic_fetch_add(&n.unanswered, 1);
		atomic_store(&stop, true);
	}
	while (!atomic_load(&stop)) {
		unsigned int server, w, key;

		dice = krp_mix64(dice + KRP_GOLDEN);
		server = (unsigned int)(dice >> 8) % servers;
		w = (unsigned int)(dice >> 24) % opt.writers;
		key = (unsigned int)(dice >> 40) % opt.keys;
		read_changing(ctx, server, w, key, &seen[server][w][key]);
		read_constant(ctx, server, dice);
	}
	krcore_close(ctx);
	free(seen);
	return NULL;
}

static int report(void)
{
	uint64_t bad = n.wrong + n.false_miss + n.ghost + n.backwards + n.early + n.phantom +
		       n.unanswered + n.refused;

	printf("{\"lookups\": %llu, \"operations\": %llu, \"wrong\": %llu, \"false_miss\": %llu, "
	       "\"ghost\": %llu, \"backwards\": %llu, \"early\": %llu, \"phantom\": %llu, "
	       "\"unanswered\": %llu, \"refused\": %llu}\n",
	       (unsigned long long)n.lookups, (unsigned long long)n.operations,
	       (unsigned long long)n.wrong, (unsigned long long)n.false_miss,
	       (unsigned long long)n.ghost, (unsigned long long)n.backwards,
	       (unsigned long long)n.early, (unsigned long long)n.phantom,
	       (unsigned long long)n.unanswered, (unsigned long long)n.refused);
	/* a run that did nothing has shown nothing */
	if ((opt.mode & MODE_READ) && !n.lookups)
		return 1;
	if ((opt.mode & MODE_WRITE) && !n.operations)
		return 1;
	return bad ? 1 : 0;
}

static const struct argp_option options[] = {
	{ "servers", 's', "LIST", 0, "MetaServers, as in krcore.conf(5)", 0 },
	{ "key-file", 'K', "FILE", 0, "cluster key; none if not given", 0 },
	{ "gid", 'g', "GID", 0, "GID of the keys: the writer's own", 0 },
	{ "keys", 'k', "N", 0, "changing keys a writer, 64", 0 },
	{ "permanent", 'p', "N", 0, "permanent keys, 64", 0 },
	{ "seconds", 't', "S", 0, "how long, 10", 0 },
	{ "writers", 'w', "N", 0, "writing threads, the same for both roles, 2", 0 },
	{ "readers", 'r', "N", 0, "reading threads, 2", 0 },
	{ "acks", 'a', "N", 0, "servers that must acknowledge; any number if not given", 0 },
	{ "timeout-ms", 'T', "MS", 0, "time-out of the library, 20000", 0 },
	{ 0 },
};

static unsigned int number(struct argp_state *state, const char *text, unsigned int most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || !value || value > most)
		argp_error(state, "'%s' is not a number from 1 to %u", text, most);
	return (unsigned int)value;
}

static error_t parse(int option, char *arg, struct argp_state *state)
{
	switch (option) {
	case 's':
		opt.servers = arg;
		return 0;
	case 'K':
		opt.key_file = arg;
		return 0;
	case 'g':
		if (kru_gid_parse(arg, opt.gid))
			argp_error(state, "'%s' is not a GID", arg);
		return 0;
	case 'k':
		opt.keys = number(state, arg, KEYS_MAX);
		return 0;
	case 'p':
		opt.permanent = number(state, arg, 0x1000);
		return 0;
	case 't':
		opt.seconds = number(state, arg, 86400);
		return 0;
	case 'w':
		opt.writers = number(state, arg, THREADS_MAX);
		return 0;
	case 'r':
		opt.readers = number(state, arg, THREADS_MAX);
		return 0;
	case 'a':
		opt.acks = number(state, arg, 64);
		return 0;
	case 'T':
		opt.timeout_ms = number(state, arg, 600000);
		return 0;
	case ARGP_KEY_ARG:
		opt.mode = !strcmp(arg, "write")  ? MODE_WRITE
			   : !strcmp(arg, "read") ? MODE_READ
			   : !strcmp(arg, "both") ? MODE_BOTH
						  : 0;
		if (!opt.mode || state->arg_num)
			argp_error(state, "give one of write, read, both");
		return 0;
	case ARGP_KEY_END:
		if (!opt.mode || !opt.servers || krp_is_zero(opt.gid, sizeof(opt.gid)))
			argp_error(state, "a mode, --servers and --gid are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	const struct argp argp = { options,
				   parse,
				   "write|read|both",
				   "Verify look-ups over RDMA against writers at full rate.",
				   NULL,
				   NULL,
				   NULL };
	pthread_t threads[2 * THREADS_MAX];
	unsigned int i, nr = 0, tenth;
	struct timespec pause = { .tv_nsec = 100000000 };

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!opt.key_file)
		opt.key_file = "";
	signal(SIGTERM, on_term);
	for (i = 0; (opt.mode & MODE_WRITE) && i < opt.writers; i++)
		if (pthread_create(&threads[nr++], NULL, writer, (void *)(uintptr_t)i))
			return 1;
	for (i = 0; (opt.mode & MODE_READ) && i < opt.readers; i++)
		if (pthread_create(&threads[nr++], NULL, reader, (void *)(uintptr_t)i))
			return 1;
	for (tenth = 0; tenth < 10 * opt.seconds && !atomic_load(&stop); tenth++)
		nanosleep(&pause, NULL);
	atomic_store(&stop, true);
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return report();
}
