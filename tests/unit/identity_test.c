// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Identity over boots: the same at each call, another for another label or machine,
 * never the machine id itself; a file that is none is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/identity.h"

#define ID "0123456789abcdef0123456789ABCDEF"

static char path[] = "/tmp/krcore-identity-XXXXXX";

static void write_id(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void test_stable(void **state)
{
	/* printf LABEL | openssl dgst -sha256 -mac HMAC -macopt key:ID */
	static const __u8 wanted[KRP_OWNER_BYTES] = { 0x27, 0x42, 0xb7, 0x40, 0x17, 0x1e,
						      0x09, 0x24, 0xc7, 0x81, 0xc1, 0x01,
						      0x35, 0xbf, 0xb1, 0x2c };
	__u8 a[KRP_OWNER_BYTES], b[KRP_OWNER_BYTES];

	(void)state;
	write_id(ID "\n");
	assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, a), 0);
	assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, b), 0);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_equal(a, wanted, sizeof(a));
	write_id(ID); /* the end of line is optional */
	assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, b), 0);
	assert_memory_equal(a, b, sizeof(a));
}

static void test_distinct(void **state)
{
	__u8 a[KRP_OWNER_BYTES], b[KRP_OWNER_BYTES];

	(void)state;
	write_id(ID "\n");
	assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, a), 0);
	assert_int_equal(kru_identity(path, "krcore owner v1", b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	write_id("1" ID "\n");
	assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "", "uninitialized\n", "0123456789abcdef\n",
					   "0123456789abcdef0123456789abcdeg\n" };
	__u8 owner[KRP_OWNER_BYTES] = { 7 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_id(bad[i]);
		assert_int_equal(kru_identity(path, KRU_OWNER_MODULE, owner), -EINVAL);
	}
	assert_int_equal(kru_identity("/nonexistent", KRU_OWNER_MODULE, owner), -ENOENT);
	assert_int_equal(kru_identity("/", KRU_OWNER_MODULE, owner), -EISDIR);
	assert_int_equal(owner[0], 7);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stable),
		cmocka_unit_test(test_distinct),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
