// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues.
 *
 *   krc_stress serve [--seed N] [--seconds N] [--service N] [--spoil]
 *	Lend memory to PEERs elsewhere; prints "region TOKEN ADDR LENGTH". With --service
 *	that service is bound. With --spoil the memory changes by itself, which `run` must
 *	find.
 *   krc_stress run [--seed N] [--seconds N] [--processes N] [--no-kills] PEER...
 *	Random operations of many processes, some of which are killed; checks the content
 *	of all memory, and that each request completes once, in order. Standard input says
 *	what happens to PEERs, which are numbered from 0, and each line is repeated on
 *	standard output when it is known; only requests to those may fail, and only so:
 *	  cut N...	they cannot be reached from here
 *	  away N...	nor from anywhere, so that their records may run out
 *	  join N...	they can be reached again
 *	  dead N...	what lends their memory is about to die
 *	  back N TOKEN ADDR LENGTH
 *			and here it is again, with other memory
 *	Last a line of counts; status 1 if anything was not as it must be.
 *   krc_stress kill [--seed N] [--count N] [--processes N] PEER...
 *	Kill so many processes with requests under way, some at once.
 *   krc_stress lock [--seed N] [--seconds N] [--processes N] [--first N] [--careless] PEER
 *	Clients of a lock in the memory of PEER, which must not die. They are numbered from
 *	--first, 1 when not said; those on other nodes have other numbers. With --careless
 *	they take it as it must not be taken, which must be found. Last a line of counts;
 *	status 1 if two have ever owned the lock, or a request was not what it said.
 * `run` and `lock` end sooner at SIGTERM. PEER is ADDRESS[/SERVICE] TOKEN ADDR LENGTH; at most three.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/module/stress_lock.h"

#define ST_LOCK_PAUSE_US 20000 /* a node of two processors has other things to do as well */

struct st_options {
	uint64_t seed;
	unsigned int seconds, processes, count, service, first;
	bool kills, spoil, careless;
};

static unsigned int st_number(const char *text, unsigned int most, const char *name)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (end != text && !*end && value >= 1 && value <= most)
		return (unsigned int)value;
	fprintf(stderr, "krc_stress: %s: '%s' is not a number from 1 to %u\n", name, text, most);
	exit(64);
}

static int st_options(int argc, char **argv, struct st_options *ret)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "processes", required_argument, NULL, 'p' },
		{ "count", required_argument, NULL, 'c' },
		{ "service", required_argument, NULL, 'v' },
		{ "first", required_argument, NULL, 'f' },
		{ "careless", no_argument, NULL, 'l' },
		{ "no-kills", no_argument, NULL, 'k' },
		{ "spoil", no_argument, NULL, 'x' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			ret->seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			ret->seconds = st_number(optarg, 100000, "--seconds");
		else if (option == 'p')
			ret->processes = st_number(optarg, ST_WORKERS_MAX, "--processes");
		else if (option == 'c')
			ret->count = st_number(optarg, 1000000, "--count");
		else if (option == 'v')
			ret->service = st_number(optarg, UINT16_MAX, "--service");
		else if (option == 'f')
			ret->first = st_number(optarg, UINT16_MAX, "--first");
		else if (option == 'l')
			ret->careless = true;
		else if (option == 'k')
			ret->kills = false;
		else if (option == 'x')
			ret->spoil = true;
		else
			return -1;
	}
	return 0;
}

static int st_peer_parse(char **words, struct st_peer *ret_peer)
{
	unsigned int service = KRCORE_SERVICE_NODE;
	char *slash = strchr(words[0], '/');
	int err;

	if (slash) {
		*slash = '\0';
		service = st_number(slash + 1, UINT16_MAX, "PEER");
	}
	err = krcore_key_from_text(words[0], (uint16_t)service, &ret_peer->key);
	ret_peer->region.token = strtoull(words[1], NULL, 0);
	ret_peer->region.addr = strtoull(words[2], NULL, 0);
	ret_peer->region.length = strtoull(words[3], NULL, 0);
	if (!err && ret_peer->region.length == ST_REGION_BYTES)
		return 0;
	fprintf(stderr, "krc_stress: %s: not what `krc_stress serve` said\n", words[0]);
	return -1;
}

static void *st_share(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED) {
		perror("krc_stress: mmap");
		exit(1);
	}
	return mem;
}

static int st_lock_begin(const struct st_options *options, const struct st_peer *peer)
{
	struct st_lock_run *run = st_share(sizeof(*run));

	run->peer = *peer;
	run->seed = options->seed;
	run->first = options->first;
	run->pause_us = ST_LOCK_PAUSE_US;
	run->careless = options->careless;
	return st_lock(run, options->seconds, options->processes);
}

int main(int argc, char **argv)
{
	struct st_options options = {
		.seed = (uint64_t)time(NULL),
		.seconds = 60,
		.processes = 8,
		.count = 1000,
		.first = 1,
		.kills = true,
	};
	struct st_shared *shared = st_share(sizeof(*shared));

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (st_options(argc, argv, &options) || optind == argc)
		goto usage;
	if (!strcmp(argv[optind], "serve") && optind + 1 == argc)
		return st_serve(options.seconds, options.seed, (uint16_t)options.service,
				options.spoil);
	shared->seed = options.seed;
	shared->nr_workers = options.processes;
	for (int i = optind + 1; i + 4 <= argc && shared->nr_peers < ST_PEERS_MAX; i += 4)
		if (st_peer_parse(argv + i, &shared->peers[shared->nr_peers++]))
			return 64;
	if (!shared->nr_peers || (argc - optind - 1) % 4)
		goto usage;
	if (!strcmp(argv[optind], "run"))
		return st_run(shared, options.seconds, options.kills);
	if (!strcmp(argv[optind], "kill"))
		return st_kill(shared, options.count, options.processes);
	if (!strcmp(argv[optind], "lock") && shared->nr_peers == 1)
		return st_lock_begin(&options, &shared->peers[0]);
usage:
	fprintf(stderr, "usage: see the head of tests/module/krc_stress.c\n");
	return 64;
}
