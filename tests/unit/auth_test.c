// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Key files, and GIDs as people write them.
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

#include "common/auth.h"
#include "common/gid.h"

static char path[] = "/tmp/krcore-key-XXXXXX";

static int load(const char *text, mode_t mode, struct kru_key *key)
{
	int fd, err;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	err = kru_key_load(path, key);
	unlink(path);
	return err;
}

static void test_good_keys(void **state)
{
	struct kru_key key;

	(void)state;
	assert_int_equal(load("000102030405060708090a0b0c0d0e0F\n", 0600, &key), 0);
	assert_int_equal(key.len, 16);
	assert_int_equal(key.bytes[15], 15);
	assert_int_equal(load(" 000102030405060708090a0b0c0d0e0f0011 \n\n", 0640, &key), 0);
	assert_int_equal(key.len, 18);
}

static void test_bad_keys_leave_the_old_one(void **state)
{
	static const char *const bad[] = {
		"",
		"00",
		"000102030405060708090a0b0c0d0e0",
		"not a key at all, but long enough....",
		"000102030405060708090a0b0c0d0e0g",
		"0001020304050607 08090a0b0c0d0e0f00",
		("00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		 "00000000000000000000000000000000000000000000000000"),
	};
	struct kru_key key = { .len = 77 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(load(bad[i], 0600, &key), -EINVAL);
	assert_int_equal(load("000102030405060708090a0b0c0d0e0f", 0644, &key), -EPERM);
	assert_int_equal(load("000102030405060708090a0b0c0d0e0f", 0660, &key), -EPERM);
	assert_int_equal(kru_key_load("/nonexistent/key", &key), -ENOENT);
	assert_int_equal(kru_key_load("/", &key), -EINVAL);
	assert_int_equal(key.len, 77);
}

static void test_a_long_file_is_not_cut(void **state)
{
	struct kru_key key = { .len = 77 };
	char text[400];

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text, "000102030405060708090a0b0c0d0e0f", 32);
	strcpy(text + sizeof(text) - 2, "g");
	assert_int_equal(load(text, 0600, &key), -EINVAL);
	assert_int_equal(key.len, 77);
}

static void test_macs_compare(void **state)
{
	__u8 a[KRP_MAC_BYTES] = { 1 }, b[KRP_MAC_BYTES] = { 1 };

	(void)state;
	assert_true(kru_mac_equal(a, b));
	b[KRP_MAC_BYTES - 1] = 1;
	assert_false(kru_mac_equal(a, b));
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
		cmocka_unit_test(test_bad_keys_leave_the_old_one),
		cmocka_unit_test(test_a_long_file_is_not_cut),
		cmocka_unit_test(test_macs_compare),
		cmocka_unit_test(test_random_is_not_constant),
		cmocka_unit_test(test_gids),
	};

	return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
