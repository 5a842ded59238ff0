// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * key: make the cluster key, show its id, change it while the cluster works.
 */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/key_file.h"
#include "client/metactl/metactl.h"
#include "common/conf.h"

#define MC_KEY_GROUP "krcore"

/* Errors of the configuration are ignored here: other commands report them. */
static void mc_key_ignore(void *arg, const char *file, unsigned int line, const char *text)
{
	(void)arg;
	(void)file;
	(void)line;
	(void)text;
}

/* The key file of the configuration, as far as that can be read. @conf: memory for it. */
static const char *mc_key_path(struct mc *mc, struct kru_conf *conf)
{
	if (mc_text(mc, "file"))
		return mc_text(mc, "file");
	kru_conf_defaults(conf);
	kru_conf_load(mc->config ? mc->config : MC_CONFIG_FILE, conf, mc_key_ignore, NULL);
	return conf->node.key_file;
}

static int mc_key_say(struct mc *mc, const char *path, int err)
{
	switch (err) {
	case 0:
		return MC_OK;
	case -EEXIST:
		return mc_error(mc, "%s is there already; krcore-metactl key rotate changes it",
				path);
	case -ENOKEY:
		return mc_error(mc, "%s: one key only; krcore-metactl key rotate add comes first",
				path);
	default:
		return mc_error(mc, "key file '%s': %s", path, kru_keys_error(err));
	}
}

/* Ids of the keys, which do not reveal them, in their order. */
static int mc_key_show(struct mc *mc, const char *path)
{
	__u8 id[KRP_KEY_ID_BYTES];
	struct kru_keys keys;
	unsigned int i;
	int err = kru_keys_load(path, &keys);

	if (err)
		return mc_key_say(mc, path, err);
	for (i = 0; i < keys.nr; i++) {
		kru_key_id(&keys.key[i], id);
		mc_row(mc->out);
		mc_put_format(mc->out, "key", 0, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
		mc_put_text(mc->out, "use", i ? 0 : MC_GOOD, i ? "accepted" : "used");
		mc_put_text(mc->out, "file", MC_DETAIL, path);
	}
	kru_keys_wipe(&keys);
	return MC_OK;
}

/* Do something to the key file, then show what is in it. @change: may be NULL. */
static int mc_key_do(struct mc *mc, int (*change)(const char *path))
{
	struct kru_conf *conf = malloc(sizeof(*conf));
	const char *path;
	int ret = MC_OK;

	if (!conf)
		return mc_error(mc, "no memory");
	path = mc_key_path(mc, conf);
	if (!*path)
		ret = mc_error(mc, "key_file below [node] is empty: name a file");
	else if (change && kru_key_credential(path))
		ret = mc_error(mc, "key_file below [node] is a credential: name the file that it "
				   "is made from");
	else if (change)
		ret = mc_key_say(mc, path, change(path));
	if (!ret)
		ret = mc_key_show(mc, path);
	free(conf);
	return ret;
}

static int mc_key_make(const char *path)
{
	const struct group *group = getgrnam(MC_KEY_GROUP);

	return mc_key_file_new(path, group ? group->gr_gid : (gid_t)-1);
}

static int mc_key_new(struct mc *mc)
{
	return mc_key_do(mc, mc_key_make);
}

static int mc_key_id(struct mc *mc)
{
	return mc_key_do(mc, NULL);
}

static int mc_key_rotate(struct mc *mc)
{
	const char *step = mc_text(mc, "STEP");

	if (!strcmp(step, "add"))
		return mc_key_do(mc, mc_key_file_add);
	if (!strcmp(step, "use"))
		return mc_key_do(mc, mc_key_file_use);
	if (!strcmp(step, "drop"))
		return mc_key_do(mc, mc_key_file_drop);
	mc_error(mc, "rotate: '%s' is none of add, use, drop", step);
	return MC_USAGE;
}

static const struct mc_param mc_key_params[] = {
	{ "file", MC_FILE, 0, 0, 0, "key file; key_file below [node] if left out" },
	{ 0 },
};

static const struct mc_param mc_rotate_params[] = {
	{ "STEP", MC_TEXT, MC_POSITIONAL | MC_REQUIRED, 0, 0,
	  "add: append a new key; use: put the last key first; drop: leave the first alone" },
	{ "file", MC_FILE, 0, 0, 0, "key file; key_file below [node] if left out" },
	{ 0 },
};

static const struct mc_command mc_key_commands[] = {
	{ "id", mc_key_id, mc_key_params, 0, "Names of the keys, the one that is used first" },
	{ "new", mc_key_new, mc_key_params, 0,
	  "Make a key file, readable by root and group krcore; never replaces one" },
	{ "rotate", mc_key_rotate, mc_rotate_params, 0,
	  "Change the key step by step: after each, the same file to all machines" },
	{ 0 },
};

const struct mc_object mc_object_key = {
	.name = "key",
	.help = "the cluster key: make it, name it, change it",
	.commands = mc_key_commands,
};
