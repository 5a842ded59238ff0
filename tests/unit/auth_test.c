// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Key files, and GIDs as people write them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth.h"
#include "common/gid.h"

static char path[] = "/tmp/krcore-key-XXXXXX";

static int load(const char *text, mode_t mode, struct kru_keys *keys)
{
	int fd, err;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	err = kru_keys_load(path, keys);
	unlink(path);
	return err;
}

#define KEY_A "000102030405060708090a0b0c0d0e0F"
#define KEY_B "000102030405060708090a0b0c0d0e0f0011"

static void test_good_keys(void **state)
{
	struct kru_keys keys;

	(void)state;
	assert_int_equal(load(KEY_A "\n", 0600, &keys), 0);
	assert_int_equal(keys.nr, 1);
	assert_int_equal(keys.key[0].len, 16);
	assert_int_equal(keys.key[0].bytes[15], 15);
	assert_int_equal(load(" " KEY_B " \n\n", 0640, &keys), 0);
	assert_int_equal(keys.key[0].len, 18);
}

static void test_several_keys(void **state)
{
	__u8 id[KRP_KEY_ID_BYTES];
	struct kru_keys keys;

	(void)state;
	assert_int_equal(load("# new since autumn\n" KEY_B "\n\n\t" KEY_A, 0600, &keys), 0);
	assert_int_equal(keys.nr, 2);
	assert_int_equal(keys.key[0].len, 18);
	assert_int_equal(keys.key[1].len, 16);
	kru_key_id(&keys.key[1], id);
	/* printf 000102030405060708090a0b0c0d0e0f | xxd -r -p | sha256sum */
	assert_memory_equal(id, "\xbe\x45\xcb\x26", sizeof(id));
	assert_ptr_equal(kru_keys_find(&keys, id), &keys.key[1]);
	id[0]++;
	assert_null(kru_keys_find(&keys, id));
}

static void test_bad_keys_leave_the_old_one(void **state)
{
	static const char too_long[] =
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000";
	static const char *const bad[] = {
		"",
		"# no key\n",
		"00",
		"000102030405060708090a0b0c0d0e0",
		"not a key at all, but long enough....",
		"000102030405060708090a0b0c0d0e0g",
		"0001020304050607 08090a0b0c0d0e0f00",
		(KEY_A "\n00\n"),
		(KEY_A "\n" KEY_A "\n"),
		too_long,
	};
	struct kru_keys keys = { .nr = 77 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(load(bad[i], 0600, &keys), -EINVAL);
	assert_int_equal(load(KEY_A, 0644, &keys), -EPERM);
	assert_int_equal(load(KEY_A, 0660, &keys), -EPERM);
	assert_int_equal(kru_keys_load("/nonexistent/key", &keys), -ENOENT);
	assert_int_equal(kru_keys_load("/", &keys), -EINVAL);
	assert_int_equal(keys.nr, 77);
}

static void test_a_credential(void **state)
{
	static char folder[] = "/tmp/krcore-credentials-XXXXXX";
	struct kru_keys keys = { .nr = 77 };
	char name[64];
	int fd;

	(void)state;
	assert_string_equal(kru_key_credential("credential:cluster"), "cluster");
	assert_null(kru_key_credential("/etc/krcore/credential:cluster"));
	unsetenv("CREDENTIALS_DIRECTORY");
	assert_int_equal(kru_keys_load("credential:cluster", &keys), -ENXIO);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
	/* not -ENOENT, which may mean that there is to be no authentication */
	assert_int_equal(kru_keys_load("credential:cluster", &keys), -ENXIO);
	assert_int_equal(keys.nr, 77);
	snprintf(name, sizeof(name), "%s/cluster", folder);
	fd = open(name, O_CREAT | O_WRONLY, 0400);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, KEY_A, strlen(KEY_A)), strlen(KEY_A));
	close(fd);
	assert_int_equal(kru_keys_load("credential:cluster", &keys), 0);
	assert_int_equal(keys.nr, 1);
	assert_int_equal(kru_keys_load("credential:other", &keys), -ENXIO);
	unlink(name);
	rmdir(folder);
	unsetenv("CREDENTIALS_DIRECTORY");
}

static void test_too_many_keys(void **state)
{
	struct kru_keys keys = { .nr = 77 };
	char text[(KRU_KEYS_MAX + 1) * 33 + 1] = "";
	unsigned int i;

	(void)state;
	for (i = 0; i <= KRU_KEYS_MAX; i++)
		sprintf(text + i * 33, "%032x\n", i);
	assert_int_equal(load(text, 0600, &keys), -E2BIG);
	assert_int_equal(keys.nr, 77);
	text[KRU_KEYS_MAX * 33] = '\0';
	assert_int_equal(load(text, 0600, &keys), 0);
	assert_int_equal(keys.nr, KRU_KEYS_MAX);
}

static void test_a_long_file_is_not_cut(void **state)
{
	struct kru_keys keys = { .nr = 77 };
	char text[5000];

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text, "000102030405060708090a0b0c0d0e0f", 32);
	strcpy(text + sizeof(text) - 2, "g");
	assert_int_equal(load(text, 0600, &keys), -EINVAL);
	assert_int_equal(keys.nr, 77);
}

static void test_macs_compare(void **state)
{
	__u8 a[KRP_MAC_BYTES] = { 1 }, b[KRP_MAC_BYTES] = { 1 };

	(void)state;
	assert_true(kru_secret_equal(a, b, sizeof(a)));
	b[KRP_MAC_BYTES - 1] = 1;
	assert_false(kru_secret_equal(a, b, sizeof(a)));
}

static void test_random_is_not_constant(void **state)
{
	__u64 a = 0, b = 0;

	(void)state;
	assert_int_equal(kru_random(&a, sizeof(a)), 0);
	assert_int_equal(kru_random(&b, sizeof(b)), 0);
	assert_true(a != b);
}

static void test_gids(void **state)
{
	__u8 gid[KRP_GID_BYTES], again[KRP_GID_BYTES];
	char text[KRU_GID_TEXT];

	(void)state;
	assert_int_equal(kru_gid_parse("192.0.2.7", gid), 0);
	assert_string_equal(kru_gid_format(gid, text), "192.0.2.7");
	assert_int_equal(kru_gid_parse("::ffff:192.0.2.7", again), 0);
	assert_memory_equal(gid, again, sizeof(gid));
	assert_int_equal(kru_gid_parse("fe80:0000:0000:0000:5054:00ff:fe12:3456", gid), 0);
	assert_string_equal(kru_gid_format(gid, text), "fe80::5054:ff:fe12:3456");
	memset(gid, 9, sizeof(gid));
	assert_int_equal(kru_gid_parse("", gid), -EINVAL);
	assert_int_equal(kru_gid_parse("fe80::1::2", gid), -EINVAL);
	assert_int_equal(kru_gid_parse("192.0.2", gid), -EINVAL);
	assert_int_equal(kru_gid_parse("node1", gid), -EINVAL);
	assert_int_equal(gid[0], 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_keys),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_a_credential),
		cmocka_unit_test(test_too_many_keys),
		cmocka_unit_test(test_bad_keys_leave_the_old_one),
		cmocka_unit_test(test_a_long_file_is_not_cut),
		cmocka_unit_test(test_macs_compare),
		cmocka_unit_test(test_random_is_not_constant),
		cmocka_unit_test(test_gids),
	};

	return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
