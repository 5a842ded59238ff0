// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-metactl: look at MetaServers and their records, and find what is wrong.
 *
 * Here: the options, help and the exit code. The objects are listed in objects.c, and what a
 * command does is in the file of its object. Options may stand anywhere; "--" ends them.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/metactl/metactl.h"

struct mc_options {
	struct mc *mc;
	unsigned int out_flags;
	bool help;
	bool completion;
	char **words;
	int words_nr;
};

enum {
	MC_OPT_SHOW_KEYS = 0x100,
	MC_OPT_KEEP,
	MC_OPT_RAW,
	MC_OPT_COMPLETION
};

static const struct argp_option mc_argp_options[] = {
	{ "json", 'j', NULL, 0, "Write JSON: an array of flat objects", 0 },
	{ "pretty", 'p', NULL, 0, "Indent the JSON", 0 },
	{ "details", 'd', NULL, 0, "Show more columns", 0 },
	{ "oneline", 'o', NULL, 0, "Text: a row a line, each value after its key", 0 },
	{ "socket", 's', "PATH", 0, "Control socket of the daemon on this machine", 0 },
	{ "servers", 'S', "LIST", 0, "MetaServers instead of the configured ones, over RDMA", 0 },
	{ "config", 'c', "FILE", 0, "Configuration instead of " MC_CONFIG_FILE, 0 },
	{ "timeout", 't', "SEC", 0, "Wait at most so long for an answer (5)", 0 },
	{ "show-keys", MC_OPT_SHOW_KEYS, NULL, 0, "Show DC keys, remote keys and Q_Keys", 0 },
	{ "keep", MC_OPT_KEEP, NULL, 0, "record publish: stay, and keep the lease", 0 },
	{ "raw", MC_OPT_RAW, "FILE", 0, "table dump: the bytes as READ into this new file", 0 },
	{ "print-completion", MC_OPT_COMPLETION, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "help", 'h', NULL, 0, "Show this, or with an object its commands", -1 },
	{ "version", 'V', NULL, 0, "Show the version", -1 },
	{ 0 },
};

static void mc_timeout(struct argp_state *state, const char *text)
{
	struct mc_options *o = state->input;
	char *end;
	double sec = strtod(text, &end);

	if (end == text || *end || !(sec >= 0.1 && sec <= 600))
		argp_error(state, "time-out '%s' is no number of seconds from 0.1 to 600", text);
	o->mc->timeout_ms = (uint32_t)(sec * 1000);
}

static error_t mc_option(int key, char *arg, struct argp_state *state)
{
	struct mc_options *o = state->input;

	switch (key) {
	case 'j':
		o->mc->json = true;
		o->out_flags |= MC_OUT_JSON;
		return 0;
	case 'p':
		o->out_flags |= MC_OUT_PRETTY;
		return 0;
	case 'd':
		o->out_flags |= MC_OUT_DETAILS;
		return 0;
	case 'o':
		o->out_flags |= MC_OUT_ONELINE;
		return 0;
	case 's':
		o->mc->socket = arg;
		return 0;
	case 'S':
		o->mc->servers = arg;
		return 0;
	case 'c':
		o->mc->config = arg;
		return 0;
	case 't':
		mc_timeout(state, arg);
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case 'V':
		printf("krcore-metactl %s (libkrcore %s)\n", KRC_VERSION, krcore_version());
		exit(MC_OK);
	case MC_OPT_SHOW_KEYS:
		o->mc->show_keys = true;
		return 0;
	case MC_OPT_KEEP:
		o->mc->keep = true;
		return 0;
	case MC_OPT_RAW:
		o->mc->raw = arg;
		return 0;
	case MC_OPT_COMPLETION:
		o->completion = true;
		return 0;
	case ARGP_KEY_ARGS:
		o->words = state->argv + state->next;
		o->words_nr = state->argc - state->next;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp mc_argp = {
	.options = mc_argp_options,
	.parser = mc_option,
	.args_doc = "[OBJECT [COMMAND] [ARGUMENTS...]]",
	.doc = "Look at the MetaServers of a krcore cluster.",
};

void mc_print_options(FILE *file)
{
	const struct argp_option *o;

	for (o = mc_argp_options; o->name; o++) {
		if (o->flags & OPTION_HIDDEN)
			continue;
		fprintf(file, "%s--%s", o == mc_argp_options ? "" : " ", o->name);
		if (o->key < 0x80)
			fprintf(file, " -%c", o->key);
	}
}

static void mc_help_params(FILE *file, const struct mc_param *p)
{
	static const char *const takes[] = {
		[MC_NUMBER] = "N", [MC_GID] = "GID", [MC_TEXT] = "TEXT", [MC_FILE] = "FILE", [MC_HEX] = "HEX"
	};
	const char *open;

	for (; p && p->type != MC_NONE; p++) {
		open = p->flags & MC_REQUIRED ? "" : "[";
		fprintf(file, " %s", open);
		if (p->flags & MC_POSITIONAL)
			fputs(p->name, file);
		else
			fprintf(file, "%s%s%s", p->name, p->type == MC_FLAG ? "" : " ",
				p->type == MC_FLAG ? "" : takes[p->type]);
		fputs(*open ? "]" : "", file);
	}
}

static void mc_help_object(FILE *file, const struct mc_object *object)
{
	const struct mc_command *c;
	const struct mc_param *p;

	fprintf(file, "%s: %s\n", object->name, object->help);
	for (c = object->commands; c->name; c++) {
		fprintf(file, "\n  krcore-metactl %s%s%s", object->name, *c->name ? " " : "",
			c->name);
		mc_help_params(file, c->params);
		fprintf(file, "%s\n      %s\n", c->flags & MC_CAN_KEEP ? " [--keep]" : "", c->help);
		for (p = c->params; p && p->type != MC_NONE; p++)
			fprintf(file, "        %-14s %s\n", p->name, p->help);
	}
}

void mc_help(FILE *file, const struct mc_object *object)
{
	const struct mc_object *const *objects = mc_objects();
	const struct argp_option *o;
	unsigned int i;

	if (object) {
		mc_help_object(file, object);
		return;
	}
	fputs("Usage: krcore-metactl [OPTIONS] OBJECT { COMMAND | help }\n\nObjects:\n", file);
	for (i = 0; objects[i]; i++)
		fprintf(file, "  %-10s %s\n", objects[i]->name, objects[i]->help);
	fputs("\nOptions:\n", file);
	for (o = mc_argp_options; o->name; o++) {
		if (o->flags & OPTION_HIDDEN)
			continue;
		fputs("  ", file);
		if (o->key < 0x80)
			fprintf(file, "-%c, ", o->key);
		else
			fputs("    ", file);
		fprintf(file, "--%s %-*s %s\n", o->name, (int)(16 - strlen(o->name)),
			o->arg ? o->arg : "", o->doc);
	}
	fputs("\nWords may be shortened while they are unique. See krcore-metactl(8).\n", file);
}

static int mc_colour(struct mc *mc)
{
	const char *mode = getenv("KRCORE_COLOR_MODE");

	if (!mode || !*mode || !strcmp(mode, "auto"))
		return isatty(STDOUT_FILENO) ? 1 : 0;
	if (!strcmp(mode, "always"))
		return 1;
	if (!strcmp(mode, "never"))
		return 0;
	mc_error(mc, "KRCORE_COLOR_MODE '%s' is none of always, never, auto", mode);
	return -EINVAL;
}

static int mc_run(struct mc *mc, unsigned int out_flags)
{
	int ret, error;

	ret = mc_colour(mc);
	if (ret < 0)
		return MC_USAGE;
	if (ret)
		out_flags |= MC_OUT_COLOUR;
	if (mc->raw && (strcmp(mc->object->name, "table") || strcmp(mc->command->name, "dump"))) {
		mc_error(mc, "--raw belongs to table dump");
		return MC_USAGE;
	}
	if (mc->keep && !(mc->command->flags & MC_CAN_KEEP)) {
		mc_error(mc, "--keep belongs to record publish");
		return MC_USAGE;
	}
	if (mc_out_new(stdout, out_flags, &mc->out))
		return mc_error(mc, "no memory");

	ret = mc->command->run(mc);

	krcore_close(mc->krcore);
	error = mc_out_end(mc->out);
	if (error)
		return mc_error(mc, "cannot write the result: %s", strerror(-error));
	return ret;
}

int main(int argc, char **argv)
{
	struct mc mc = { .timeout_ms = MC_TIMEOUT_MS };
	struct mc_options options = { .mc = &mc };
	char name[] = "krcore-metactl";
	int ret;

	argv[0] = name;
	argp_err_exit_status = MC_USAGE;
	ret = argp_parse(&mc_argp, argc, argv, ARGP_NO_HELP, NULL, &options);
	if (ret) {
		mc_error(&mc, "%s", strerror(ret));
		return MC_FAILED;
	}
	if (options.completion) {
		mc_print_completion(stdout);
		return fflush(stdout) ? MC_FAILED : MC_OK;
	}
	ret = MC_HELP;
	if (!options.help || options.words_nr)
		ret = mc_parse(&mc, options.words_nr, options.words);
	if (ret == MC_USAGE && !options.help)
		return MC_USAGE;
	if (ret == MC_HELP || options.help) {
		mc_help(stdout, mc.object);
		return fflush(stdout) ? MC_FAILED : MC_OK;
	}
	return mc_run(&mc, options.out_flags);
}
