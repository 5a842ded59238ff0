// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * config: check a configuration file without a daemon, show the values in effect.
 */
#include <string.h>

#include "client/metactl/local.h"
#include "common/conf.h"

struct mc_config {
	struct mc *mc;
	unsigned int errors;
};

static const char *mc_config_file(const struct mc *mc)
{
	if (mc_text(mc, "file"))
		return mc_text(mc, "file");
	return mc->config ? mc->config : MC_CONFIG_FILE;
}

static void mc_config_error(void *arg, const char *file, unsigned int line, const char *text)
{
	struct mc_config *c = arg;

	c->errors++;
	mc_row(c->mc->out);
	mc_put_text(c->mc->out, "file", 0, file);
	mc_put_number(c->mc->out, "line", 0, line);
	mc_put_text(c->mc->out, "error", MC_BAD, text);
}

static int mc_config_check(struct mc *mc)
{
	struct mc_config c = { .mc = mc };
	struct kru_conf conf;
	int ret;

	kru_conf_defaults(&conf);
	ret = kru_conf_load(mc_config_file(mc), &conf, mc_config_error, &c);
	if (!ret)
		ret = kru_conf_check(&conf, mc_config_file(mc), mc_config_error, &c);
	if (!ret)
		return MC_OK;
	return mc_error(mc, "%s: %u error%s", mc_config_file(mc), c.errors,
			c.errors == 1 ? "" : "s");
}

static void mc_config_item(void *arg, const struct kru_conf_item *item)
{
	struct mc_config *c = arg;
	struct mc_out *out = c->mc->out;

	mc_row(out);
	mc_put_format(out, "key", 0, "%s.%s", item->section, item->key);
	mc_put_text(out, "value", 0, item->value);
	mc_put_text(out, "origin", item->origin == KRU_CONF_DEFAULT ? 0 : MC_GOOD,
		    kru_conf_origin_name(item->origin));
	mc_put_bool(out, "reloadable", 0, item->reloadable);
	mc_put_text(out, "default", MC_DETAIL, item->dflt);
	mc_put_text(out, "unit", MC_DETAIL, item->unit);
	mc_put_text(out, "range", MC_DETAIL, item->range);
	mc_put_text(out, "help", MC_DETAIL, item->help);
}

static void mc_config_stderr(void *arg, const char *file, unsigned int line, const char *text)
{
	if (line)
		mc_error(arg, "%s:%u: %s", file, line, text);
	else
		mc_error(arg, "%s: %s", file, text);
}

static int mc_config_show(struct mc *mc)
{
	static const char *const keys[] = { "key", "value", "origin", "reloadable", NULL };
	struct mc_config c = { .mc = mc };
	struct kru_conf conf;

	if (mc_get(mc, "running")) {
		if (mc_local_must(mc))
			return MC_USAGE;
		return mc_local_rows(mc, "config", NULL, keys, 0);
	}
	kru_conf_defaults(&conf);
	if (kru_conf_load(mc_config_file(mc), &conf, mc_config_stderr, mc))
		return MC_FAILED;
	kru_conf_each(&conf, mc_config_item, &c);
	return MC_OK;
}

static const struct mc_param mc_check_params[] = {
	{ "file", MC_FILE, MC_POSITIONAL, 0, 0, "file instead of that of -c" },
	{ 0 },
};

static const struct mc_param mc_show_params[] = {
	{ "file", MC_FILE, MC_POSITIONAL, 0, 0, "file instead of that of -c" },
	{ "running", MC_FLAG, 0, 0, 0, "what holds in the daemon on this machine" },
	{ 0 },
};

static const struct mc_command mc_config_commands[] = {
	{ "show", mc_config_show, mc_show_params, 0,
	  "Every key, its value and where it comes from" },
	{ "check", mc_config_check, mc_check_params, 0,
	  "Report all errors of a file, each with its line; exit code 1 if there are any" },
	{ 0 },
};

const struct mc_object mc_object_config = {
	.name = "config",
	.help = "check and show the configuration",
	.commands = mc_config_commands,
};
