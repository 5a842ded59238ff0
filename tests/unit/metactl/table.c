// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A small command table with each kind of parameter, and an error sink.
 */
#include <stdarg.h>
#include <stdio.h>

#include "client/metactl/metactl.h"
#include "table.h"

char table_error[512];

static int table_run(struct mc *mc)
{
	(void)mc;
	return MC_OK;
}

static const struct mc_param list_params[] = {
	{ "count", MC_NUMBER, 0, 1, 100, "" },	    { "cold", MC_FLAG, 0, 0, 0, "" },
	{ "service", MC_NUMBER, 0, 0, 65535, "" },  { "bytes", MC_HEX, 0, 2, 4, "" },
	{ "all", MC_NUMBER, 0, 0, UINT64_MAX, "" }, { 0 },
};

static const struct mc_param find_params[] = {
	{ "gid", MC_GID, MC_POSITIONAL | MC_REQUIRED, 0, 0, "" },
	{ "verify", MC_FLAG, 0, 0, 0, "" },
	{ "text", MC_TEXT, MC_REQUIRED, 0, 0, "" },
	{ 0 },
};

static const struct mc_param check_params[] = {
	{ "file", MC_FILE, MC_POSITIONAL, 0, 0, "" },
	{ "running", MC_FLAG, 0, 0, 0, "" },
	{ 0 },
};

static const struct mc_command thing_commands[] = {
	{ "list", table_run, list_params, 0, "" },
	{ "lisp", table_run, NULL, 0, "" },
	{ "check", table_run, check_params, 0, "" },
	{ 0 },
};

static const struct mc_command find_commands[] = {
	{ "", table_run, find_params, 0, "" },
	{ 0 },
};

static const struct mc_object thing = { "thing", "", thing_commands };
static const struct mc_object find = { "find", "", find_commands };
static const struct mc_object findings = { "findings", "", thing_commands };

const struct mc_object *const *mc_objects(void)
{
	static const struct mc_object *const objects[] = { &thing, &find, &findings, NULL };

	return objects;
}

void mc_print_options(FILE *file)
{
	fputs("--json -j", file);
}

int mc_error(struct mc *mc, const char *format, ...)
{
	va_list ap;

	(void)mc;
	va_start(ap, format);
	vsnprintf(table_error, sizeof(table_error), format, ap);
	va_end(ap);
	return MC_FAILED;
}
