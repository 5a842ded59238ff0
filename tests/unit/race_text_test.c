// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-race's text form of keys and values: nothing in it is a command to a terminal, and it
 * gives the same bytes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "race/tool/tool.h"

/* What kt_escape() prints, for free(). */
static char *escaped(const void *bytes, size_t nr)
{
	FILE *out = stdout;
	size_t printed;
	char *text;

	stdout = open_memstream(&text, &printed);
	assert_non_null(stdout);
	kt_escape(bytes, nr);
	fclose(stdout);
	stdout = out;
	return text;
}

static void expect(const void *bytes, size_t nr, const char *want)
{
	char *text = escaped(bytes, nr);

	assert_string_equal(text, want);
	assert_int_equal(kt_unescape(text, strlen(text)), nr);
	assert_memory_equal(text, bytes, nr);
	free(text);
}

#define EXPECT(bytes, want) expect(bytes, sizeof(bytes) - 1, want)

static void test_text(void **state)
{
	(void)state;
	EXPECT("", "");
	EXPECT("key", "key");
	EXPECT("a\tb\nc\\d", "a\\tb\\nc\\\\d");
	EXPECT("\t\t", "\\t\\t");
	EXPECT("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"); /* 0x9f as a part of a letter */
}

/* ESC, DEL, and the controls of U+0080 to U+009F, which xterm obeys as UTF-8 and as bytes. */
static void test_controls(void **state)
{
	(void)state;
	EXPECT("\033[31m\177\0", "\\x1b[31m\\x7f\\x00");
	EXPECT("\xc2\x9b"
	       "31m",
	       "\\xc2\\x9b31m");
	EXPECT("\x9b"
	       "31m",
	       "\\x9b31m");
	EXPECT("\xc3\xbc\x9b", "\xc3\xbc\\x9b");
	EXPECT("\xc2\xa0", "\xc2\xa0");
}

static void test_each_pair_of_bytes(void **state)
{
	uint8_t bytes[2];
	unsigned int i;
	char *text;

	(void)state;
	for (i = 0; i < 0x10000; i++) {
		bytes[0] = (uint8_t)(i >> 8);
		bytes[1] = (uint8_t)i;
		text = escaped(bytes, 2);
		assert_null(strpbrk(text, "\t\n\033\177"));
		assert_int_equal(kt_unescape(text, strlen(text)), 2);
		assert_memory_equal(text, bytes, 2);
		free(text);
	}
}

static void test_not_what_is_printed(void **state)
{
	static const char *const bad[] = { "\\", "\\y", "\\x", "\\x1", "\\x1g", "\\X1f" };
	char text[8];
	unsigned int i;
	size_t nr;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nr = strlen(bad[i]);
		memcpy(text, bad[i], nr);
		assert_int_equal(kt_unescape(text, nr), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_each_pair_of_bytes),
		cmocka_unit_test(test_not_what_is_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
