// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-race: serve a table, and use one from the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include <krcore/krcore.h>

#include "race/tool/tool.h"

static const struct kru_tool kt_tool = {
	"krcore-race",
	"usage: krcore-race [OPTION]... serve              serve a table until interrupted\n"
	"       krcore-race [OPTION]... get SERVER KEY\n"
	"       krcore-race [OPTION]... put SERVER KEY VALUE   (VALUE -: from standard input)\n"
	"       krcore-race [OPTION]... insert SERVER KEY VALUE\n"
	"       krcore-race [OPTION]... update SERVER KEY VALUE\n"
	"       krcore-race [OPTION]... del SERVER KEY\n"
	"       krcore-race [OPTION]... scan SERVER        all entries, as load reads them\n"
	"       krcore-race [OPTION]... load SERVER [FILE] put entries, a line each: KEY TAB VALUE\n"
	"       krcore-race [OPTION]... check SERVER       READ all of it, and judge it\n"
	"\n"
	"  -s, --service NUMBER  of the table, 256 to 65535 (7233)\n"
	"  -p, --port NUMBER     RDMA port of this node, from 1\n"
	"  -m, --memory MIB      serve: memory, 1 to 65536 (64)\n"
	"  -g, --groups NUMBER   serve: groups of buckets in a subtable, 1 to 256 (64 or more)\n"
	"  -d, --depth NUMBER    serve: how often a subtable is split, 1 to 16 (14 or more)\n"
	"  -l, --lease SECONDS   serve: lease of clients that write, 1 to 3600 (30)\n"
	"  -r, --reclaim         check: take back what dead clients hold\n"
	"  -v, --verbose         say on standard error what it took\n"
	"  -V, --version, -h, --help\n",
};

static const struct option kt_options[] = {
	{ "service", required_argument, NULL, 's' },
	{ "port", required_argument, NULL, 'p' },
	{ "memory", required_argument, NULL, 'm' },
	{ "groups", required_argument, NULL, 'g' },
	{ "depth", required_argument, NULL, 'd' },
	{ "lease", required_argument, NULL, 'l' },
	{ "reclaim", no_argument, NULL, 'r' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/**
 * struct kt_command - A command.
 * @command: name and number of arguments.
 * @run: function. Return: exit status.
 */
struct kt_command {
	struct kru_command command;
	int (*run)(struct kt_args *args);
};

static const struct kt_command kt_commands[] = {
	{ { "serve", 0, 0 }, kt_serve },   { { "get", 2, 2 }, kt_get },
	{ { "put", 3, 3 }, kt_put },	   { { "insert", 3, 3 }, kt_insert },
	{ { "update", 3, 3 }, kt_update }, { { "del", 2, 2 }, kt_del },
	{ { "scan", 1, 1 }, kt_scan },	   { { "load", 1, 2 }, kt_load },
	{ { "check", 1, 1 }, kt_check },
};

int kt_fail(const char *what, int err)
{
	fprintf(stderr, "krcore-race: %s: %s\n", what, krcore_race_strerror(err));
	return err == -ENOENT || err == -EEXIST ? KT_NOT_THERE : KT_FAILED;
}

int kt_fail_to_begin(const char *what, int err)
{
	const char *more = krcore_error_text(); /* of the first call that failed, or "" */

	fprintf(stderr, "krcore-race: %s: %s%s%s%s\n", what, krcore_race_strerror(err),
		*more ? " (" : "", more, *more ? ")" : "");
	return KT_FAILED;
}

static uint32_t kt_number(unsigned long min, unsigned long max, const char *name)
{
	return kru_option_number(&kt_tool, name, optarg, min, max);
}

static void kt_option(struct kt_args *args, int option)
{
	switch (option) {
	case 's':
		args->service = (uint16_t)kt_number(256, 65535, "service");
		return;
	case 'p':
		args->port = kt_number(1, 65535, "port");
		return;
	case 'm':
		args->memory_mib = kt_number(1, 65536, "memory");
		return;
	case 'g':
		args->groups = kt_number(1, 256, "groups");
		return;
	case 'd':
		args->depth = kt_number(1, 16, "depth");
		return;
	case 'l':
		args->lease_ms = kt_number(1, 3600, "lease") * 1000;
		return;
	case 'r':
		args->reclaim = true;
		return;
	case 'v':
		args->verbose = true;
		return;
	default:
		kru_option_end(&kt_tool, option);
	}
}

int main(int argc, char **argv)
{
	struct kt_args args = { .service = KRCORE_RACE_SERVICE, .memory_mib = 64 };
	const struct kt_command *command;
	int option;

	while ((option = getopt_long(argc, argv, "+s:p:m:g:d:l:rvVh", kt_options, NULL)) >= 0)
		kt_option(&args, option);
	if (optind == argc)
		kru_option_end(&kt_tool, '?');
	args.argc = argc - optind - 1;
	args.argv = argv + optind + 1;
	command = kru_command_find(&kt_tool, kt_commands,
				   sizeof(kt_commands) / sizeof(kt_commands[0]),
				   sizeof(kt_commands[0]), argv[optind], args.argc);
	return command ? command->run(&args) : KT_USAGE;
}
