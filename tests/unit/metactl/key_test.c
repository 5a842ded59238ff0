// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The key file as krcore-metactl key makes and changes it: what is in it at each step of
 * a rotation, its mode, and that a refusal leaves it alone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/metactl/key_file.h"

static char folder[] = "/tmp/krcore-keys-XXXXXX", path[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/cluster.key", folder);
	assert_int_equal(mc_key_file_new(path, (gid_t)-1), 0);
	return 0;
}

/* Nothing is left beside the file. */
static int teardown(void **state)
{
	(void)state;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

static void test_new(void **state)
{
	struct kru_keys keys, again;
	struct stat st;

	(void)state;
	assert_int_equal(kru_keys_load(path, &keys), 0);
	assert_int_equal(keys.nr, 1);
	assert_int_equal(keys.key[0].len, 32);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);

	assert_int_equal(mc_key_file_new(path, (gid_t)-1), -EEXIST);
	assert_int_equal(kru_keys_load(path, &again), 0);
	assert_memory_equal(&keys, &again, sizeof(keys));
	assert_int_equal(mc_key_file_new("/nonexistent/cluster.key", (gid_t)-1), -ENOENT);
}

/* In each step the key that was used before is accepted still, and the next already is. */
static void test_rotation(void **state)
{
	struct kru_keys first, both, turned, last;
	struct stat st;

	(void)state;
	assert_int_equal(kru_keys_load(path, &first), 0);
	assert_int_equal(mc_key_file_use(path), -ENOKEY);
	assert_int_equal(mc_key_file_drop(path), -ENOKEY);
	assert_int_equal(chmod(path, 0600), 0);

	assert_int_equal(mc_key_file_add(path), 0);
	assert_int_equal(kru_keys_load(path, &both), 0);
	assert_int_equal(both.nr, 2);
	assert_memory_equal(&both.key[0], &first.key[0], sizeof(first.key[0]));

	assert_int_equal(mc_key_file_use(path), 0);
	assert_int_equal(kru_keys_load(path, &turned), 0);
	assert_int_equal(turned.nr, 2);
	assert_memory_equal(&turned.key[0], &both.key[1], sizeof(both.key[1]));
	assert_memory_equal(&turned.key[1], &both.key[0], sizeof(both.key[0]));

	assert_int_equal(mc_key_file_drop(path), 0);
	assert_int_equal(kru_keys_load(path, &last), 0);
	assert_int_equal(last.nr, 1);
	assert_memory_equal(&last.key[0], &both.key[1], sizeof(both.key[1]));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_a_full_file(void **state)
{
	struct kru_keys keys;
	unsigned int i;

	(void)state;
	for (i = 1; i < KRU_KEYS_MAX; i++)
		assert_int_equal(mc_key_file_add(path), 0);
	assert_int_equal(mc_key_file_add(path), -E2BIG);
	assert_int_equal(kru_keys_load(path, &keys), 0);
	assert_int_equal(keys.nr, KRU_KEYS_MAX);
}

static void test_a_bad_file_stays_as_it_is(void **state)
{
	struct stat before, after;
	FILE *file;

	(void)state;
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("rubbish\n", file);
	fclose(file);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(mc_key_file_add(path), -EINVAL);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_new),
		CASE(test_rotation),
		CASE(test_a_full_file),
		CASE(test_a_bad_file_stays_as_it_is),
	};

	return cmocka_run_group_tests_name("metactl key", tests, NULL, NULL);
}
