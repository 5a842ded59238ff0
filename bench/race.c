// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Workers of a key-value store: how soon they work, and how fast.
 *
 *	bench_race startup SAMPLES RECORDS SYSTEM=TARGET...
 *	bench_race ycsb A|B|C|F|U OPERATIONS RECORDS SYSTEM=TARGET...
 *	bench_race spike ...			see race_spike.c
 *
 * Systems are those of race_kv.h; they are taken in turns. startup: a process is forked that has
 * nothing but this program's pages; it connects and looks one record up. Times from before fork(),
 * in ns: until it runs (`fork`), until it is attached (`connect`), until it has its first answer
 * (`startup`). ycsb: one worker, one operation at a time.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/meter.h"
#include "bench/race.h"
#include "bench/samples.h"

#define BN_THETA 0.99
#define BN_TURN 20 /* operations of a system before the next one's */
#define BN_WARM 40
#define BN_QUIET_US 20000 /* for what the last worker leaves behind at the server */

void bn_zipf_init(struct bn_zipf *z, uint64_t records)
{
	double two = 1 + pow(0.5, BN_THETA);
	uint64_t i;

	z->records = records;
	z->zeta = 0;
	for (i = 1; i <= records; i++)
		z->zeta += 1 / pow((double)i, BN_THETA);
	z->alpha = 1 / (1 - BN_THETA);
	z->eta = (1 - pow(2.0 / (double)records, 1 - BN_THETA)) / (1 - two / z->zeta);
}

uint64_t bn_zipf_next(const struct bn_zipf *z, uint64_t *random)
{
	double u = (double)(bn_random(random) >> 11) / (double)(1ULL << 53), uz = u * z->zeta;
	uint64_t rank;

	if (uz < 1)
		rank = 0;
	else if (uz < 1 + pow(0.5, BN_THETA))
		rank = 1;
	else
		rank = (uint64_t)((double)z->records * pow(z->eta * u - z->eta + 1, z->alpha));
	return krp_mix64(rank) % z->records;
}

/* Updates of a hundred operations. */
static unsigned int bn_ycsb_percent(char workload)
{
	switch (workload) {
	case 'B':
		return 5;
	case 'C':
		return 0;
	case 'U':
		return 100;
	default:
		return 50;
	}
}

void bn_ycsb_draw(char workload, const struct bn_zipf *z, uint64_t *random, struct bn_ycsb_op *ret)
{
	ret->nr = bn_zipf_next(z, random);
	ret->put = (bn_random(random) >> 33) % 100 < bn_ycsb_percent(workload);
	ret->get = !ret->put || workload == 'F';
}

void bn_ycsb_do(struct bn_kv *kv, const struct bn_ycsb_op *op)
{
	if (op->get)
		bn_kv_get(kv, op->nr);
	if (op->put)
		bn_kv_put(kv, op->nr);
}

/**
 * struct bn_moments - When a worker was how far; it writes, its parent reads.
 * @runs: it runs.
 * @attached: it is connected and knows the table.
 * @answered: it has its first answer.
 */
struct bn_moments {
	uint64_t runs, attached, answered;
};

/**
 * struct bn_startup - What a system's workers took.
 * @to: which.
 * @fork: until they run.
 * @connect: until they are attached.
 * @whole: until the first answer.
 * @first_ns: of the first of all, which is in no sample.
 */
struct bn_startup {
	struct bn_kv_target to;
	struct bn_samples fork, connect, whole;
	uint64_t first_ns;
};

static void bn_worker(const struct bn_kv_target *to, uint64_t nr, struct bn_moments *m)
{
	struct bn_kv *kv;

	m->runs = bn_now_ns();
	kv = bn_kv_open(to);
	m->attached = bn_now_ns();
	bn_kv_get(kv, nr);
	m->answered = bn_now_ns();
	BN_MARK(END);
	_exit(0);
}

static void bn_start_one(struct bn_startup *s, uint64_t nr, struct bn_moments *m)
{
	uint64_t begin;
	int status;
	pid_t pid;

	memset(m, 0, sizeof(*m));
	usleep(BN_QUIET_US);
	begin = bn_now_ns();
	BN_MARK(BEGIN); /* it ends in the new process */
	pid = fork();
	if (pid < 0)
		bn_die("fork");
	if (!pid)
		bn_worker(&s->to, nr, m);
	if (waitpid(pid, &status, 0) != pid || status || !m->answered) {
		fprintf(stderr, "%s: a worker failed\n", s->to.system);
		exit(1);
	}
	if (!s->first_ns) {
		s->first_ns = m->answered - begin;
		return;
	}
	bn_samples_add(&s->fork, m->runs - begin);
	bn_samples_add(&s->connect, m->attached - begin);
	bn_samples_add(&s->whole, m->answered - begin);
}

static void bn_startup(uint64_t samples, uint64_t records, char **words, int nr)
{
	struct bn_moments *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static struct bn_startup s[BN_KV_MAX];
	uint64_t random = 88172645463325252ULL, i;
	int j;

	if (m == MAP_FAILED)
		bn_die("memory");
	for (j = 0; j < nr; j++) {
		bn_kv_target(words[j], &s[j].to);
		if (bn_samples_init(&s[j].fork, samples) ||
		    bn_samples_init(&s[j].connect, samples) ||
		    bn_samples_init(&s[j].whole, samples))
			bn_die("memory");
	}
	for (i = 0; i <= samples; i++)
		for (j = 0; j < nr; j++)
			bn_start_one(&s[j], bn_random(&random) % records, m);
	for (j = 0; j < nr; j++) {
		printf("{\"system\": \"%s\", \"case\": \"first\", \"ns\": %" PRIu64 "}\n",
		       s[j].to.system, s[j].first_ns);
		bn_samples_print(&s[j].fork, s[j].to.system, "fork", 0, 0);
		bn_samples_print(&s[j].connect, s[j].to.system, "connect", 0, 0);
		bn_samples_print(&s[j].whole, s[j].to.system, "startup", 0, 0);
	}
}

/**
 * struct bn_ycsb - A system's worker.
 * @to: which.
 * @kv: its store.
 * @random: what it draws.
 * @took: its operations.
 * @before: its counters when the first of them began.
 */
struct bn_ycsb {
	struct bn_kv_target to;
	struct bn_kv *kv;
	uint64_t random;
	struct bn_samples took;
	struct kr_stats before;
};

static void bn_ycsb_turn(struct bn_ycsb *y, char workload, const struct bn_zipf *z, uint64_t nr)
{
	struct bn_ycsb_op op;
	uint64_t begin;

	while (nr--) {
		bn_ycsb_draw(workload, z, &y->random, &op);
		begin = bn_now_ns();
		BN_MARK(BEGIN);
		bn_ycsb_do(y->kv, &op);
		BN_MARK(END);
		bn_samples_add(&y->took, bn_now_ns() - begin);
	}
}

static void bn_ycsb_begin(struct bn_ycsb *y, char *word, char workload, const struct bn_zipf *z,
			  uint64_t operations)
{
	struct bn_ycsb_op op;
	unsigned int i;

	bn_kv_target(word, &y->to);
	if (bn_samples_init(&y->took, operations))
		bn_die("memory");
	y->random = 88172645463325252ULL;
	y->kv = bn_kv_open(&y->to);
	bn_kv_put(y->kv, 0); /* a client that writes registers once */
	for (i = 0; i < BN_WARM; i++) {
		bn_ycsb_draw(workload, z, &y->random, &op);
		bn_ycsb_do(y->kv, &op);
	}
	if (bn_kv_stats(y->kv))
		y->before = *bn_kv_stats(y->kv);
}

static void bn_ycsb_end(struct bn_ycsb *y, const char *workload)
{
	const struct kr_stats *after = bn_kv_stats(y->kv);

	if (after)
		printf("{\"system\": \"%s\", \"case\": \"counts\", \"searches\": %" PRIu64
		       ", \"search_reads\": %" PRIu64 ", \"retries\": %" PRIu64 "}\n",
		       y->to.system, after->searches - y->before.searches,
		       after->search_reads - y->before.search_reads,
		       after->retries - y->before.retries);
	bn_samples_print(&y->took, y->to.system, workload, 0, 0);
	bn_samples_done(&y->took);
	bn_kv_close(y->kv);
}

static void bn_ycsb(const char *workload, uint64_t operations, uint64_t records, char **words,
		    int nr)
{
	static struct bn_ycsb y[BN_KV_MAX];
	uint64_t done, turn;
	struct bn_zipf z;
	int j;

	bn_zipf_init(&z, records);
	for (j = 0; j < nr; j++)
		bn_ycsb_begin(&y[j], words[j], *workload, &z, operations);
	for (done = 0; done < operations; done += turn) {
		turn = operations - done < BN_TURN ? operations - done : BN_TURN;
		for (j = 0; j < nr; j++)
			bn_ycsb_turn(&y[j], *workload, &z, turn);
	}
	for (j = 0; j < nr; j++)
		bn_ycsb_end(&y[j], workload);
}

int main(int argc, char **argv)
{
	const int systems = argc - 5;

	if (argc > 4 && argc - 4 <= BN_KV_MAX && !strcmp(argv[1], "startup")) {
		bn_startup(bn_number(argv[2], 1, 1000000, "SAMPLES"),
			   bn_number(argv[3], 2, 1ULL << 30, "RECORDS"), argv + 4, argc - 4);
		return 0;
	}
	if (systems > 0 && systems <= BN_KV_MAX && !strcmp(argv[1], "ycsb") &&
	    strlen(argv[2]) == 1 && strchr("ABCFU", *argv[2])) {
		bn_ycsb(argv[2], bn_number(argv[3], 1, 100000000, "OPERATIONS"),
			bn_number(argv[4], 2, 1ULL << 30, "RECORDS"), argv + 5, systems);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "spike") && bn_spike(argc - 2, argv + 2) == 0)
		return 0;
	fprintf(stderr,
		"usage: %s startup SAMPLES RECORDS SYSTEM=TARGET...\n"
		"       %s ycsb A|B|C|F|U OPERATIONS RECORDS SYSTEM=TARGET...\n"
		"       %s spike SYSTEM=TARGET RECORDS INTERVAL_MS FIRST MORE MORE SECONDS SECONDS "
		"SECONDS\n",
		argv[0], argv[0], argv[0]);
	return 2;
}
