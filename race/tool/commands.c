// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The commands of krcore-race.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "race/tool/tool.h"

static int kt_fail_to_serve(const struct krcore_race_server_options *opts, int err)
{
	struct rlimit locked;

	if (err == -ENOSPC) {
		fprintf(stderr,
			"krcore-race: serving: %" PRIu64
			" MiB do not hold a table of such groups and depth\n",
			opts->bytes >> 20);
		return KT_FAILED;
	}
	if (err != -ENOMEM || getrlimit(RLIMIT_MEMLOCK, &locked) || locked.rlim_cur >= opts->bytes)
		return kt_fail_to_begin("serving", err);
	fprintf(stderr,
		"krcore-race: serving: %" PRIu64
		" bytes are to be locked, RLIMIT_MEMLOCK is %llu\n",
		opts->bytes, (unsigned long long)locked.rlim_cur);
	return KT_FAILED;
}

int kt_serve(struct kt_args *args)
{
	struct krcore_race_server_options opts = {
		.size = sizeof(opts),
		.bytes = (uint64_t)args->memory_mib << 20,
		.service = args->service,
		.port = args->port,
		.groups = args->groups,
		.depth_max = args->depth,
		.lease_ms = args->lease_ms,
	};
	struct krcore_race_server *server;
	sigset_t signals;
	int err, got;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* before a thread is made */
	err = krcore_race_serve(&opts, &server);
	if (err)
		return kt_fail_to_serve(&opts, err);
	printf("serving %" PRIu32 " MiB as service %u; interrupt to end\n", args->memory_mib,
	       args->service);
	fflush(stdout);
	sigwait(&signals, &got);
	krcore_race_server_close(server);
	return 0;
}

/* Attach to the table of the first argument. Return: 0, or an exit status after saying why. */
static int kt_open(struct kt_args *args, struct krcore_race **ret)
{
	struct krcore_race_options opts = {
		.size = sizeof(opts),
		.server = args->argv[0],
		.service = args->service,
		.port = args->port,
	};
	int err = krcore_race_open(&opts, ret);

	if (!err)
		return 0;
	return kt_fail_to_begin(args->argv[0], err);
}

static int kt_close(struct kt_args *args, struct krcore_race *race, int status)
{
	struct krcore_race_stats s = { .size = sizeof(s) };

	krcore_race_stats(race, &s);
	krcore_race_close(race);
	if (args->verbose)
		fprintf(stderr,
			"connect_reads %" PRIu64 " searches %" PRIu64 " search_reads %" PRIu64
			" splits %" PRIu64 " unknown %" PRIu64 " retries %" PRIu64 "\n",
			s.connect_reads, s.searches, s.search_reads, s.splits, s.unknown,
			s.retries);
	if (fflush(stdout) || ferror(stdout)) {
		perror("krcore-race: standard output");
		return KT_FAILED;
	}
	return status;
}

int kt_get(struct kt_args *args)
{
	static char value[KRCORE_RACE_VALUE_MAX];
	struct krcore_race *race;
	const char *key = args->argv[1];
	size_t bytes;
	int err, status;

	status = kt_open(args, &race);
	if (status)
		return status;
	err = krcore_race_get(race, key, strlen(key), value, sizeof(value), &bytes);
	if (err)
		status = kt_fail(key, err);
	else
		fwrite(value, 1, bytes, stdout);
	if (!err && bytes && value[bytes - 1] != '\n')
		putchar('\n');
	return kt_close(args, race, status);
}

/* The value of the command line. Return: length, or minus an exit status after saying why. */
static long kt_value(struct kt_args *args, char *value)
{
	const char *text = args->argv[2];
	size_t bytes = strlen(text);

	if (!strcmp(text, "-"))
		bytes = fread(value, 1, KRCORE_RACE_VALUE_MAX + 1, stdin);
	else if (bytes <= KRCORE_RACE_VALUE_MAX)
		memcpy(value, text, bytes);
	if (ferror(stdin)) {
		perror("krcore-race: reading the value");
		return -KT_FAILED;
	}
	if (bytes <= KRCORE_RACE_VALUE_MAX)
		return (long)bytes;
	fprintf(stderr, "krcore-race: the value is longer than %d bytes\n", KRCORE_RACE_VALUE_MAX);
	return -KT_USAGE;
}

typedef int kt_change_fn(struct krcore_race *race, const void *key, size_t key_bytes,
			 const void *value, size_t value_bytes);

static int kt_change(struct kt_args *args, kt_change_fn *change)
{
	static char value[KRCORE_RACE_VALUE_MAX + 1];
	const char *key = args->argv[1];
	struct krcore_race *race;
	int err, status;
	long bytes;

	bytes = kt_value(args, value);
	if (bytes < 0)
		return (int)-bytes;
	status = kt_open(args, &race);
	if (status)
		return status;
	err = change(race, key, strlen(key), value, (size_t)bytes);
	return kt_close(args, race, err ? kt_fail(key, err) : 0);
}

int kt_put(struct kt_args *args)
{
	return kt_change(args, krcore_race_put);
}

int kt_insert(struct kt_args *args)
{
	return kt_change(args, krcore_race_insert);
}

int kt_update(struct kt_args *args)
{
	return kt_change(args, krcore_race_update);
}

int kt_del(struct kt_args *args)
{
	const char *key = args->argv[1];
	struct krcore_race *race;
	int err, status;

	status = kt_open(args, &race);
	if (status)
		return status;
	err = krcore_race_del(race, key, strlen(key));
	return kt_close(args, race, err ? kt_fail(key, err) : 0);
}

static int kt_print_entry(void *arg, const void *key, size_t key_bytes, const void *value,
			  size_t value_bytes)
{
	(void)arg;
	kt_escape(key, key_bytes);
	putchar('\t');
	kt_escape(value, value_bytes);
	putchar('\n');
	return ferror(stdout) ? 1 : 0;
}

int kt_scan(struct kt_args *args)
{
	struct krcore_race *race;
	int err, status;

	status = kt_open(args, &race);
	if (status)
		return status;
	err = krcore_race_scan(race, kt_print_entry, NULL);
	return kt_close(args, race, err < 0 ? kt_fail("scan", err) : err);
}

/* Put the entry of a line. Return: 0 or an exit status. */
static int kt_load_line(struct krcore_race *race, char *line, size_t nr, unsigned long number)
{
	char *tab = memchr(line, '\t', nr);
	long key_bytes, value_bytes;
	char where[32];
	int err;

	snprintf(where, sizeof(where), "line %lu", number);
	key_bytes = tab ? kt_unescape(line, (size_t)(tab - line)) : -1;
	value_bytes = tab ? kt_unescape(tab + 1, nr - (size_t)(tab + 1 - line)) : -1;
	if (key_bytes < 0 || value_bytes < 0) {
		fprintf(stderr, "krcore-race: %s: not KEY TAB VALUE, as scan prints it\n", where);
		return KT_FAILED;
	}
	err = krcore_race_put(race, line, (size_t)key_bytes, tab + 1, (size_t)value_bytes);
	return err ? kt_fail(where, err) : 0;
}

int kt_load(struct kt_args *args)
{
	const bool named = args->argc > 1;
	FILE *file = named ? fopen(args->argv[1], "re") : stdin;
	struct krcore_race *race;
	unsigned long number = 0;
	char *line = NULL;
	size_t room = 0;
	int status;
	ssize_t nr;

	if (!file) {
		fprintf(stderr, "krcore-race: %s: %s\n", args->argv[1], strerror(errno));
		return KT_FAILED;
	}
	status = kt_open(args, &race);
	if (status)
		goto out;
	while (!status && (nr = getline(&line, &room, file)) > 0) {
		if (line[nr - 1] == '\n')
			nr--;
		status = kt_load_line(race, line, (size_t)nr, ++number);
	}
	if (!status && ferror(file)) {
		perror("krcore-race: reading");
		status = KT_FAILED;
	}
	if (!status)
		printf("%lu entries\n", number);
	status = kt_close(args, race, status);
	free(line);
out:
	if (named)
		fclose(file);
	return status;
}

int kt_check(struct kt_args *args)
{
	struct krcore_race_report r = { .size = sizeof(r) };
	struct krcore_race *race;
	int err, status;

	status = kt_open(args, &race);
	if (status)
		return status;
	err = krcore_race_check(race, args->reclaim ? KRCORE_RACE_RECLAIM : 0, &r);
	if (err)
		return kt_close(args, race, kt_fail("check", err));
	printf("entries %" PRIu64 "\ndamaged %" PRIu64 "\ntentative %" PRIu64 "\ntombs %" PRIu64
	       "\nslots %" PRIu64 "\nsubtables %" PRIu64 "\ndepth %" PRIu64 "\nchunks %" PRIu64
	       "\nchunks_used %" PRIu64 "\nclients %" PRIu64 "\n",
	       r.entries, r.damaged, r.tentative, r.tombs, r.slots, r.subtables, r.depth, r.chunks,
	       r.chunks_used, r.clients);
	if (args->reclaim)
		printf("dead %" PRIu64 "\nreclaimed %" PRIu64 "\n", r.dead, r.reclaimed);
	return kt_close(args, race, r.damaged ? KT_FAILED : 0);
}
