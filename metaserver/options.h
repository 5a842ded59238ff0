/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Command line of krcore-metaserver, by argp. What the configuration says is
 * not repeated as options: -o sets any of its keys.
 */
#ifndef MS_OPTIONS_H
#define MS_OPTIONS_H

#include <stdbool.h>

#include "common/conf.h"

#define MS_OPTIONS_SET_MAX 64

/**
 * struct ms_options - The command line.
 * @config: file to read.
 * @config_given: it was named, so it must exist.
 * @check: check the configuration and exit.
 * @print: print the effective configuration and exit.
 * @set: assignments of -o, in order.
 * @set_nr: how many.
 */
struct ms_options {
	const char *config;
	bool config_given;
	bool check;
	bool print;
	const char *set[MS_OPTIONS_SET_MAX];
	unsigned int set_nr;
};

/**
 * ms_options_parse() - Read the command line.
 * @argc: of main().
 * @argv: of main(); must stay.
 * @ret_options: filled.
 *
 * Exits with 0 after --help and --version, with 2 after a usage error.
 */
void ms_options_parse(int argc, char **argv, struct ms_options *ret_options);

/**
 * ms_options_load() - Load the configuration from command line and file.
 * @options: command line.
 * @ret_conf: the configuration; untouched on failure.
 * @report: called for every error.
 * @arg: its first argument.
 *
 * Return: 0, or the negative errno of kru_conf_load(); -EINVAL if errors were
 * reported.
 */
int ms_options_load(const struct ms_options *options, struct kru_conf *ret_conf,
		    kru_conf_report_fn *report, void *arg);

/**
 * ms_options_advise() - Warn about a configuration that is valid.
 * @options: command line.
 * @conf: configuration of ms_options_load().
 * @report: called for every warning.
 * @arg: its first argument.
 *
 * See kru_conf_advise(); also warns of a key file that is not used.
 */
void ms_options_advise(const struct ms_options *options, const struct kru_conf *conf,
		       kru_conf_report_fn *report, void *arg);

#endif /* MS_OPTIONS_H */
