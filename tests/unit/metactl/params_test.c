// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Words of the command line: abbreviations, ranges, what is refused and how it
 * is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/metactl/metactl.h"
#include "table.h"

static struct mc mc;
static char words[256];

static int parse(const char *line)
{
	char *argv[32], *save, *word;
	int argc = 0;

	memset(&mc, 0, sizeof(mc));
	table_error[0] = '\0';
	snprintf(words, sizeof(words), "%s", line);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return mc_parse(&mc, argc, argv);
}

#define assert_refused(line, part) \
	do { \
		assert_int_equal(parse(line), MC_USAGE); \
		assert_non_null(strstr(table_error, part)); \
	} while (0)

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(""), MC_OK);
	assert_string_equal(mc.object->name, "thing");
	assert_string_equal(mc.command->name, "list");
	assert_null(mc_get(&mc, "count"));
	assert_int_equal(mc_number(&mc, "count", 7), 7);
}

static void test_abbreviations(void **state)
{
	(void)state;
	assert_int_equal(parse("t"), MC_OK);
	assert_int_equal(parse("th c"), MC_OK);
	assert_string_equal(mc.command->name, "check");
	assert_int_equal(parse("find 10.0.0.1 text x"), MC_OK);
	assert_string_equal(mc.object->name, "find");
	assert_int_equal(parse("t list se 4 co 3"), MC_USAGE);
	assert_int_equal(parse("t list se 4 cou 3"), MC_OK);
	assert_int_equal(mc_number(&mc, "service", 0), 4);
	assert_int_equal(mc_number(&mc, "count", 0), 3);
	assert_int_equal(parse("t list --service 5 --cou 2"), MC_OK);
	assert_int_equal(mc_number(&mc, "service", 0), 5);
	assert_int_equal(mc_number(&mc, "count", 0), 2);
}

static void test_words_that_are_refused(void **state)
{
	(void)state;
	assert_refused("nothing", "unknown object 'nothing'");
	assert_refused("fi", "ambiguous object 'fi'");
	assert_refused("t lis", "ambiguous command 'lis'");
	assert_refused("t x", "unknown command 'x'");
	assert_refused("t list what", "unknown word 'what'");
	assert_refused("t list --what", "unknown word '--what'");
	assert_refused("t list --", "unknown word '--'");
	assert_refused("t list c 3", "ambiguous word 'c'");
	assert_refused("t list count", "'count' needs a value");
	assert_refused("t list count 3 count 4", "'count' is given twice");
	assert_refused("t list cold cold", "'cold' is given twice");
	assert_refused("t lisp x", "unknown word 'x'");
	assert_refused("find", "gid is missing");
	assert_refused("find 10.0.0.1", "text with its value is missing");
	assert_refused("t check a b", "unknown word 'b'");
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(parse("t list count 100"), MC_OK);
	assert_int_equal(parse("t list count 0x10"), MC_OK);
	assert_int_equal(mc_number(&mc, "count", 0), 16);
	assert_int_equal(parse("t list all 18446744073709551615"), MC_OK);
	assert_true(mc_number(&mc, "all", 0) == UINT64_MAX);
	assert_refused("t list all 18446744073709551616", "all '18446744073709551616'");
	assert_refused("t list count 0", "from 1 to 100");
	assert_refused("t list count 101", "from 1 to 100");
	assert_refused("t list count 5x", "count '5x'");
	assert_refused("t list count -5", "count '-5'");
	assert_refused("t list count +5", "count '+5'");
	assert_refused("t list count 0x", "count '0x'");
}

static void test_hex(void **state)
{
	const struct mc_value *v;

	(void)state;
	assert_int_equal(parse("t list bytes 00fF"), MC_OK);
	v = mc_get(&mc, "bytes");
	assert_int_equal(v->bytes_nr, 2);
	assert_memory_equal(v->bytes, "\x00\xff", 2);
	assert_int_equal(parse("t list bytes 01:02:0a:0B"), MC_OK);
	assert_memory_equal(mc_get(&mc, "bytes")->bytes, "\x01\x02\x0a\x0b", 4);
	assert_refused("t list bytes 00", "2 to 4 bytes");
	assert_refused("t list bytes 0001020304", "2 to 4 bytes");
	assert_refused("t list bytes 001", "2 to 4 bytes");
	assert_refused("t list bytes 00:", "2 to 4 bytes");
	assert_refused("t list bytes :0011", "2 to 4 bytes");
	assert_refused("t list bytes 00gg", "2 to 4 bytes");
	assert_refused("t list bytes 00::11", "2 to 4 bytes");
}

static void test_gids(void **state)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const uint8_t loop4[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	static const uint8_t loop6[16] = { [15] = 1 };
	const struct mc_value *v;

	(void)state;
	assert_int_equal(parse("find 10.0.0.1 text x"), MC_OK);
	assert_memory_equal(mc_get(&mc, "gid")->bytes, v4, 16);
	assert_int_equal(parse("find ::ffff:10.0.0.1 text x"), MC_OK);
	assert_memory_equal(mc_get(&mc, "gid")->bytes, v4, 16);
	assert_int_equal(parse("find fe80::1 text x verify"), MC_OK);
	assert_non_null(mc_get(&mc, "verify"));
	assert_int_equal(parse("find localhost text x"), MC_OK);
	v = mc_get(&mc, "gid");
	assert_true(!memcmp(v->bytes, loop4, 16) || !memcmp(v->bytes, loop6, 16));
	assert_refused("find fe80:: text x y", "unknown word 'y'");
	assert_refused("find fe80::g text x", "gid 'fe80::g'");
	assert_refused("find -x text x", "gid '-x'");
	/* the C library would take each of these for an address that was not meant */
	assert_refused("find 1.2.3 text x", "gid '1.2.3' is neither");
	assert_refused("find 127.1 text x", "gid '127.1' is neither");
	assert_refused("find 0x7f.1 text x", "gid '0x7f.1' is neither");
	assert_refused("find 1.2.3.4.5 text x", "gid '1.2.3.4.5' is neither");
	assert_refused("find verify", "gid 'verify'");
}

static void test_optional_place(void **state)
{
	(void)state;
	assert_int_equal(parse("t check /etc/x running"), MC_OK);
	assert_string_equal(mc_text(&mc, "file"), "/etc/x");
	assert_int_equal(parse("t check running"), MC_OK);
	assert_null(mc_text(&mc, "file"));
	assert_non_null(mc_get(&mc, "running"));
}

static void test_help_anywhere(void **state)
{
	(void)state;
	assert_int_equal(parse("help"), MC_HELP);
	assert_null(mc.object);
	assert_int_equal(parse("find help"), MC_HELP);
	assert_string_equal(mc.object->name, "find");
	assert_int_equal(parse("t list help"), MC_HELP);
	assert_int_equal(parse("t help"), MC_HELP);
	assert_refused("t helping", "unknown command 'helping'");
}

static void test_completion_tables(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	(void)state;
	mc_print_completion(file);
	fclose(file);
	assert_non_null(strstr(text, "objects=\"thing find findings\""));
	assert_non_null(strstr(text, "options=\"--json -j\""));
	assert_non_null(strstr(text, "[thing]=\"list lisp check\""));
	assert_non_null(strstr(text, "[find]=\"\""));
	assert_non_null(strstr(text, "[\"find \"]=\"@gid/G verify/F text/T\""));
	assert_non_null(
		strstr(text, "[\"thing list\"]=\"count/N cold/F service/N bytes/H all/N\""));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_abbreviations),
		cmocka_unit_test(test_words_that_are_refused),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_hex),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_optional_place),
		cmocka_unit_test(test_help_anywhere),
		cmocka_unit_test(test_completion_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
