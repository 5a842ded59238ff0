/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Making and changing the file of the cluster keys. A file is replaced as a whole, so
 * that no reader ever sees half of one; owner, group and mode stay.
 */
#ifndef MC_KEY_FILE_H
#define MC_KEY_FILE_H

#include <sys/types.h>

#include "common/auth.h"

/**
 * mc_key_file_new() - Make a key file with one random key of 32 bytes.
 * @path: its name; its folder is there.
 * @group: group that may read it, or (gid_t)-1 for that of the process.
 *
 * Return: 0; %-EEXIST if there is such a file; or a negative errno of the file system.
 */
int mc_key_file_new(const char *path, gid_t group);

/**
 * mc_key_file_add() - Append a random key: accepted from now on, not used.
 * @path: key file.
 *
 * Return: 0, %-E2BIG if it is full, or an error of kru_keys_load() or the file system.
 */
int mc_key_file_add(const char *path);

/**
 * mc_key_file_use() - Put the last key first: used from now on; all stay accepted.
 * @path: key file.
 *
 * Return: 0, %-ENOKEY if there is one key only, or an error of kru_keys_load() or the
 * file system.
 */
int mc_key_file_use(const char *path);

/**
 * mc_key_file_drop() - Take out all keys but the first.
 * @path: key file.
 *
 * Return: as mc_key_file_use().
 */
int mc_key_file_drop(const char *path);

#endif /* MC_KEY_FILE_H */
