// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making and changing the file of the cluster keys: see key_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/metactl/key_file.h"

#define MC_KEY_BYTES 32
#define MC_KEY_LINE (2 * KRU_KEY_BYTES_MAX + 2)

static int mc_key_random(struct kru_key *key)
{
	key->len = MC_KEY_BYTES;
	return kru_random(key->bytes, MC_KEY_BYTES);
}

static int mc_key_write(int fd, const struct kru_keys *keys)
{
	char line[MC_KEY_LINE];
	unsigned int i;
	size_t k, len;
	int err = 0;

	for (i = 0; i < keys->nr && !err; i++) {
		for (k = 0, len = 0; k < keys->key[i].len; k++)
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x",
						keys->key[i].bytes[k]);
		line[len++] = '\n';
		if (write(fd, line, len) != (ssize_t)len)
			err = errno ? -errno : -EIO;
	}
	explicit_bzero(line, sizeof(line));
	return err ? err : fsync(fd) ? -errno : 0;
}

/* A file beside @path with these keys; @ret_name is to be freed, and unlinked. */
static int mc_key_temporary(const char *path, const struct kru_keys *keys, const struct stat *like,
			    char **ret_name)
{
	int fd, err;

	if (asprintf(ret_name, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(*ret_name, O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	if (!err && (fchown(fd, like->st_uid, like->st_gid) || fchmod(fd, like->st_mode & 07777)))
		err = -errno;
	if (!err)
		err = mc_key_write(fd, keys);
	if (err && fd >= 0)
		unlink(*ret_name);
	if (fd >= 0)
		close(fd);
	if (err)
		free(*ret_name);
	return err;
}

int mc_key_file_new(const char *path, gid_t group)
{
	struct stat like = { .st_uid = (uid_t)-1, .st_gid = group, .st_mode = 0640 };
	struct kru_keys keys = { .nr = 1 };
	char *name;
	int err;

	err = mc_key_random(&keys.key[0]);
	if (!err)
		err = mc_key_temporary(path, &keys, &like, &name);
	kru_keys_wipe(&keys);
	if (err)
		return err;
	if (link(name, path)) /* link(), unlike rename(), does not replace a file */
		err = -errno;
	unlink(name);
	free(name);
	return err;
}

static int mc_key_replace(const char *path, const struct kru_keys *keys)
{
	struct stat like;
	char *name;
	int err;

	if (stat(path, &like))
		return -errno;
	err = mc_key_temporary(path, keys, &like, &name);
	if (err)
		return err;
	if (rename(name, path)) {
		err = -errno;
		unlink(name);
	}
	free(name);
	return err;
}

/* Load, change, replace. */
static int mc_key_change(const char *path, int (*change)(struct kru_keys *keys))
{
	struct kru_keys keys;
	int err;

	err = kru_keys_load(path, &keys);
	if (err)
		return err;
	err = change(&keys);
	if (!err)
		err = mc_key_replace(path, &keys);
	kru_keys_wipe(&keys);
	return err;
}

static int mc_key_add(struct kru_keys *keys)
{
	return keys->nr == KRU_KEYS_MAX ? -E2BIG : mc_key_random(&keys->key[keys->nr++]);
}

static int mc_key_use(struct kru_keys *keys)
{
	struct kru_key last;

	if (keys->nr < 2)
		return -ENOKEY;
	last = keys->key[keys->nr - 1];
	memmove(&keys->key[1], &keys->key[0], (keys->nr - 1) * sizeof(last));
	keys->key[0] = last;
	explicit_bzero(&last, sizeof(last));
	return 0;
}

static int mc_key_drop(struct kru_keys *keys)
{
	if (keys->nr < 2)
		return -ENOKEY;
	keys->nr = 1;
	return 0;
}

int mc_key_file_add(const char *path)
{
	return mc_key_change(path, mc_key_add);
}

int mc_key_file_use(const char *path)
{
	return mc_key_change(path, mc_key_use);
}

int mc_key_file_drop(const char *path)
{
	return mc_key_change(path, mc_key_drop);
}
