// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The daemon on this machine, by its control socket: see local.h.
 */
#include <errno.h>
#include <string.h>

#include "client/metactl/local.h"

struct mc_rows {
	struct mc *mc;
	const char *const *keys;
	uint64_t left;
	bool bounded;
};

static const char *mc_open_hint(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "; does krcore-metaserver run here? Use -S for another machine";
	case -EACCES:
		return "; only root and group krcore may use it";
	default:
		return "";
	}
}

int mc_local_open(struct mc *mc, struct kru_ctl **ret_ctl)
{
	int ret;

	ret = kru_ctl_open(mc_socket(mc), mc->timeout_ms, ret_ctl);
	if (!ret)
		return MC_OK;
	return mc_error(mc, "control socket %s: %s%s", mc_socket(mc), strerror(-ret),
			mc_open_hint(ret));
}

int mc_local_each(struct mc *mc, const char *command, json_t *args,
		  bool (*fn)(void *arg, json_t *item), void *arg)
{
	struct kru_ctl *ctl;
	int ret;

	ret = mc_local_open(mc, &ctl);
	if (ret) {
		json_decref(args);
		return ret;
	}
	ret = kru_ctl_each(ctl, command, args, fn, arg);
	if (ret)
		mc_error(mc, "%s", kru_ctl_error(ctl));
	json_decref(args);
	kru_ctl_close(ctl);
	return ret ? MC_FAILED : MC_OK;
}

static bool mc_local_row(void *arg, json_t *item)
{
	struct mc_rows *rows = arg;

	mc_row(rows->mc->out);
	mc_put_object(rows->mc->out, item, rows->keys);
	return !rows->bounded || --rows->left;
}

int mc_local_rows(struct mc *mc, const char *command, json_t *args, const char *const *keys,
		  uint64_t max)
{
	struct mc_rows rows = { .mc = mc, .keys = keys, .left = max, .bounded = max > 0 };

	return mc_local_each(mc, command, args, mc_local_row, &rows);
}

int mc_local_must(struct mc *mc)
{
	if (!mc->servers)
		return MC_OK;
	mc_error(mc, "-S does not go with this: it asks the daemon on this machine");
	return MC_USAGE;
}
