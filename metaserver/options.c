// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Command line of krcore-metaserver: see options.h.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "metaserver/options.h"

#define MS_OPT_PRINT 0x100

/* The C library looks it up by name. */
__attribute__((visibility("default")))
const char *argp_program_version = "krcore-metaserver " KRC_VERSION;

static const struct argp_option ms_argp_options[] = {
	{ "config", 'c', "FILE", 0, "Read FILE instead of " KRU_CONF_FILE, 0 },
	{ "option", 'o', "SECTION.KEY=VALUE", 0, "Set a key; wins over the file. May be repeated",
	  0 },
	{ "check", 'C', NULL, 0, "Check configuration and key file, then exit", 0 },
	{ "print", MS_OPT_PRINT, NULL, 0, "Print the effective configuration, then exit", 0 },
	{ "foreground", 'f', NULL, 0, "Stay in the foreground; always so", 0 },
	{ 0 },
};

static error_t ms_argp_parse(int key, char *arg, struct argp_state *state)
{
	struct ms_options *options = state->input;

	switch (key) {
	case 'c':
		options->config = arg;
		options->config_given = true;
		return 0;
	case 'o':
		if (options->set_nr == MS_OPTIONS_SET_MAX)
			argp_error(state, "more than %d options -o", MS_OPTIONS_SET_MAX);
		options->set[options->set_nr++] = arg;
		return 0;
	case 'C':
		options->check = true;
		return 0;
	case MS_OPT_PRINT:
		options->print = true;
		return 0;
	case 'f':
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void ms_options_parse(int argc, char **argv, struct ms_options *ret_options)
{
	static const struct argp argp = {
		.options = ms_argp_options,
		.parser = ms_argp_parse,
		.doc = "Keep the table of a krcore cluster, which its nodes read by RDMA.\v"
		       "SIGHUP reloads the configuration, SIGTERM lets clients go and exits, a "
		       "second SIGTERM exits at once. See krcore-metaserver(8) and krcore.conf(5).",
	};

	*ret_options = (struct ms_options){ .config = KRU_CONF_FILE };
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, ret_options);
}

int ms_options_load(const struct ms_options *options, struct kru_conf *ret_conf,
		    kru_conf_report_fn *report, void *arg)
{
	struct kru_conf conf;
	int err = 0;

	kru_conf_defaults(&conf);
	if (options->config_given || !access(options->config, F_OK) || errno != ENOENT)
		err = kru_conf_load(options->config, &conf, report, arg);
	/* Go on after an error: every one is to be reported at once. */
	for (unsigned int i = 0; i < options->set_nr; i++)
		if (kru_conf_set(&conf, options->set[i], report, arg) && !err)
			err = -EINVAL;
	if (!err)
		err = kru_conf_check(&conf, options->config, report, arg);
	if (!err)
		*ret_conf = conf;
	return err;
}

void ms_options_advise(const struct ms_options *options, const struct kru_conf *conf,
		       kru_conf_report_fn *report, void *arg)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	const char *key = conf->ms.key_file;
	char line[320];

	kru_conf_advise(conf, options->config,
			pages > 0 && page_bytes > 0 ? (__u64)pages * (__u64)page_bytes : 0, report,
			arg);
	if (conf->ms.require_auth != KRU_AUTH_NO || !*key || access(key, F_OK))
		return;
	snprintf(line, sizeof(line),
		 "metaserver.require_auth: no, although there is a cluster key, %s: every host of "
		 "the fabric may read the table and publish",
		 key);
	if (conf->origin[KRU_CONF_KEY_ms_require_auth] == KRU_CONF_COMMAND_LINE)
		report(arg, "command line", 0, line);
	else
		report(arg, options->config, conf->line[KRU_CONF_KEY_ms_require_auth], line);
}
