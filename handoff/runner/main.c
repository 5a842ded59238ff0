// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-handoff: run functions, and hand data from one to the next.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handoff/runner/runner.h"

static const struct kru_tool kh_tool = {
	"krcore-handoff",
	"usage: krcore-handoff [OPTION]... serve ADDRESS[:PORT]         run functions for callers\n"
	"       krcore-handoff [OPTION]... chain BYTES NODE NODE...     each hands data to the next\n"
	"       krcore-handoff [OPTION]... spread BYTES NODE NODE...    the first to all others\n"
	"\n"
	"NODE is ADDRESS[:PORT] or NAME[:PORT] of a runner; the port is 7234 if it is not given.\n"
	"\n"
	"serve:\n"
	"  -d, --directory PATH  where functions are (" KH_FUNCTIONS ")\n"
	"  -l, --lease SECONDS   how long an offer of data stands, 1 to 3600 (30)\n"
	"  -m, --memory MIB      memory that a function may lock, 1 to 65536 (256)\n"
	"  -M, --memory-max MIB  memory of a function's cgroup, 1 to 65536; 0: no limit\n"
	"                        (64 more than it may lock)\n"
	"  -n, --most NUMBER     functions at once, 1 to 1024 (128)\n"
	"  -a, --share NUMBER    of these, for callers of one address, 1 to 1024 (half)\n"
	"  -i, --idle SECONDS    how long a function waits for its caller, 1 to 3600 (60)\n"
	"  -u, --user NAME       user that functions are run as (nobody)\n"
	"  -g, --gid GID         RDMA port for functions (the first that is up)\n"
	"  -s, --share-net       functions see the network\n"
	"  -b, --bare            no cgroup, namespaces or other user: processes only\n"
	"chain, spread:\n"
	"  -f, --function NAME   which function (bytes)\n"
	"  -t, --times NUMBER    how often, 1 to 1000000 (1)\n"
	"  -w, --warm            functions stay from one time to the next\n"
	"  -p, --parallel NUMBER callers at once, 1 to 64 (1)\n"
	"  -r, --retries NUMBER  how often a lost function is started again, 0 to 10 (1)\n"
	"  -T, --timeout SECONDS how long a connection, or an answer, may take, 1 to 3600 (30)\n"
	"  -j, --json            one JSON object a line\n"
	"  -V, --version, -h, --help\n",
};

static const struct option kh_options[] = {
	{ "directory", required_argument, NULL, 'd' },
	{ "lease", required_argument, NULL, 'l' },
	{ "memory", required_argument, NULL, 'm' },
	{ "memory-max", required_argument, NULL, 'M' },
	{ "most", required_argument, NULL, 'n' },
	{ "share", required_argument, NULL, 'a' },
	{ "idle", required_argument, NULL, 'i' },
	{ "user", required_argument, NULL, 'u' },
	{ "gid", required_argument, NULL, 'g' },
	{ "share-net", no_argument, NULL, 's' },
	{ "bare", no_argument, NULL, 'b' },
	{ "function", required_argument, NULL, 'f' },
	{ "times", required_argument, NULL, 't' },
	{ "warm", no_argument, NULL, 'w' },
	{ "parallel", required_argument, NULL, 'p' },
	{ "retries", required_argument, NULL, 'r' },
	{ "timeout", required_argument, NULL, 'T' },
	{ "json", no_argument, NULL, 'j' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/**
 * struct kh_command_name - A command.
 * @command: name and number of arguments.
 * @run: function. Return: exit status.
 */
struct kh_command_name {
	struct kru_command command;
	int (*run)(struct kh_args *args);
};

static const struct kh_command_name kh_commands[] = {
	{ { "serve", 1, 1 }, kh_serve },
	{ { "chain", 3, KH_NODES_MAX + 1 }, kh_chain },
	{ { "spread", 3, KH_NODES_MAX + 1 }, kh_spread },
};

int kh_fail(const char *what)
{
	fprintf(stderr, "krcore-handoff: %s: %s\n", what, strerror(errno));
	return KH_FAILED;
}

static uint32_t kh_number(unsigned long min, unsigned long max, const char *name)
{
	return kru_option_number(&kh_tool, name, optarg, min, max);
}

static void kh_number_option(struct kh_args *args, int option)
{
	switch (option) {
	case 'l':
		args->lease_ms = kh_number(1, 3600, "lease") * 1000;
		return;
	case 'm':
		args->memory_mib = kh_number(1, 65536, "memory");
		return;
	case 'M':
		args->memory_max_mib = kh_number(0, 65536, "memory-max");
		return;
	case 'n':
		args->most = kh_number(1, KH_FUNCTIONS_MAX, "most");
		return;
	case 'a':
		args->share = kh_number(1, KH_FUNCTIONS_MAX, "share");
		return;
	case 'i':
		args->idle_ms = kh_number(1, 3600, "idle") * 1000;
		return;
	case 't':
		args->times = kh_number(1, 1000000, "times");
		return;
	case 'p':
		args->parallel = kh_number(1, KH_PARALLEL_MAX, "parallel");
		return;
	case 'r':
		args->retries = kh_number(0, 10, "retries");
		return;
	default:
		args->timeout_ms = kh_number(1, 3600, "timeout") * 1000;
	}
}

static void kh_option(struct kh_args *args, int option)
{
	switch (option) {
	case 'd':
		args->directory = optarg;
		return;
	case 'u':
		args->user = optarg;
		return;
	case 'g':
		args->gid = optarg;
		return;
	case 's':
		args->share_net = true;
		return;
	case 'b':
		args->bare = true;
		return;
	case 'f':
		args->function = optarg;
		return;
	case 'w':
		args->warm = true;
		return;
	case 'j':
		args->json = true;
		return;
	case 'V':
	case 'h':
	case '?':
		kru_option_end(&kh_tool, option);
	default:
		kh_number_option(args, option);
	}
}

static int kh_run(struct kh_args *args, const char *name)
{
	struct kh_start start;
	const struct kh_command_name *command;
	char line[KH_LINE_BYTES];

	if (snprintf(line, sizeof(line), "start %s", args->function) >= (int)sizeof(line) ||
	    kh_start_parse(line, &start)) {
		fprintf(stderr, "krcore-handoff: '%s' is no name of a function\n", args->function);
		return KH_USAGE;
	}
	command = kru_command_find(&kh_tool, kh_commands,
				   sizeof(kh_commands) / sizeof(kh_commands[0]),
				   sizeof(kh_commands[0]), name, args->argc);
	return command ? command->run(args) : KH_USAGE;
}

int main(int argc, char **argv)
{
	struct kh_args args = {
		.function = "bytes",
		.times = 1,
		.parallel = 1,
		.retries = 1,
		.timeout_ms = 30000,
		.directory = KH_FUNCTIONS,
		.user = "nobody",
		.lease_ms = 30000,
		.memory_mib = 256,
		.memory_max_mib = KH_BY_OTHERS,
		.idle_ms = 60000,
		.most = 128,
		.share = KH_BY_OTHERS,
	};
	int option;

	while ((option = getopt_long(argc, argv, "+d:l:m:M:n:a:i:u:g:sbf:t:wp:r:T:jVh", kh_options,
				     NULL)) >= 0)
		kh_option(&args, option);
	if (args.memory_max_mib == KH_BY_OTHERS)
		args.memory_max_mib = args.bare ? 0 : args.memory_mib + KH_MEMORY_MORE_MIB;
	if (args.share == KH_BY_OTHERS)
		args.share = (args.most + 1) / 2;
	if (optind == argc)
		kru_option_end(&kh_tool, '?');
	args.argc = argc - optind - 1;
	args.argv = argv + optind + 1;
	return kh_run(&args, argv[optind]);
}
