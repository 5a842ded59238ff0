// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The same rows as text and as JSON; percentiles; foreign bytes made harmless.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metactl/output.h"
#include "client/metactl/percentile.h"
#include "common/text.h"

static char *text;
static size_t text_bytes;
static FILE *file;

static struct mc_out *begin(unsigned int flags)
{
	struct mc_out *out = NULL;

	file = open_memstream(&text, &text_bytes);
	assert_non_null(file);
	assert_int_equal(mc_out_new(file, flags, &out), 0);
	return out;
}

static void end(struct mc_out *out)
{
	assert_int_equal(mc_out_end(out), 0);
	fclose(file);
}

static void done(void)
{
	free(text);
	text = NULL;
}

static void two_rows(struct mc_out *out)
{
	mc_row(out);
	mc_put_text(out, "name", 0, "a");
	mc_put_number(out, "age_ms", 0, 1500);
	mc_put_bool(out, "alive", MC_DETAIL, true);
	mc_row(out);
	mc_put_text(out, "name", 0, "longer");
	mc_put_number(out, "age_ms", MC_BAD, 7);
	mc_put_bool(out, "alive", MC_DETAIL, false);
}

static json_t *parsed(void)
{
	json_error_t error;
	json_t *array = json_loads(text, 0, &error);

	if (!array)
		print_error("%s: %s\n", error.text, text);
	assert_true(json_is_array(array));
	return array;
}

static void test_table(void **state)
{
	struct mc_out *out = begin(0);

	(void)state;
	two_rows(out);
	end(out);
	assert_string_equal(text, "name    age\n"
				  "a       1.50s\n"
				  "longer  7.00ms\n");
	done();
}

static void test_details_and_colour(void **state)
{
	struct mc_out *out = begin(MC_OUT_DETAILS | MC_OUT_COLOUR);

	(void)state;
	two_rows(out);
	end(out);
	assert_string_equal(text, "name    age     alive\n"
				  "a       1.50s   yes\n"
				  "longer  \033[31m7.00ms\033[0m  no\n");
	done();
}

static void test_oneline_has_whole_keys_and_plain_numbers(void **state)
{
	struct mc_out *out = begin(MC_OUT_ONELINE);

	(void)state;
	two_rows(out);
	end(out);
	assert_string_equal(text, "name a age_ms 1500\nname longer age_ms 7\n");
	done();
}

static void test_block(void **state)
{
	struct mc_out *out = begin(0);

	(void)state;
	mc_out_table(out, MC_BLOCK, NULL);
	two_rows(out);
	end(out);
	assert_string_equal(text, "name: a\nage:  1.50s\n\nname: longer\nage:  7.00ms\n");
	done();
}

static void test_tabs(void **state)
{
	struct mc_out *out = begin(0);

	(void)state;
	mc_out_table(out, MC_TABS, NULL);
	two_rows(out);
	mc_row(out);
	mc_put_text(out, "name", 0, "a\tb\nc");
	mc_put_text(out, "age_ms", 0, NULL);
	end(out);
	assert_string_equal(text, "a\t1500\t"
				  "yes\nlonger\t7\tno\na\\x09b\\x0ac\t-\n");
	done();
}

static void test_below(void **state)
{
	struct mc_out *out = begin(0);

	(void)state;
	mc_row(out);
	mc_put_text(out, "a", 0, "1");
	mc_put_text(out, "b", MC_BELOW, "why");
	mc_put_text(out, "c", 0, "3");
	mc_row(out);
	mc_put_text(out, "a", 0, "4");
	mc_put_text(out, "b", MC_BELOW, NULL);
	mc_put_text(out, "c", 0, "6");
	end(out);
	assert_string_equal(text, "a  c\n1  3\n    b: why\n4  6\n");
	done();
}

static void test_json(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON);
	json_t *array, *row;

	(void)state;
	two_rows(out);
	end(out);
	array = parsed();
	assert_int_equal(json_array_size(array), 2);
	row = json_array_get(array, 0);
	assert_int_equal(json_object_size(row), 3);
	assert_string_equal(json_string_value(json_object_get(row, "name")), "a");
	assert_int_equal(json_integer_value(json_object_get(row, "age_ms")), 1500);
	assert_true(json_is_true(json_object_get(row, "alive")));
	json_decref(array);
	done();
}

static void test_json_of_nothing_is_an_array(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON | MC_OUT_PRETTY);

	(void)state;
	end(out);
	assert_string_equal(text, "[]\n");
	done();
}

static void test_json_of_two_kinds(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON | MC_OUT_PRETTY);
	json_t *array;

	(void)state;
	mc_out_table(out, MC_TABLE, "cat");
	two_rows(out);
	mc_out_table(out, MC_BLOCK, "dog");
	two_rows(out);
	end(out);
	array = parsed();
	assert_int_equal(json_array_size(array), 4);
	assert_string_equal(json_string_value(json_object_get(json_array_get(array, 1), "type")),
			    "cat");
	assert_string_equal(json_string_value(json_object_get(json_array_get(array, 2), "type")),
			    "dog");
	json_decref(array);
	done();
}

static void test_limits_of_numbers(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON);
	json_t *array, *row;

	(void)state;
	mc_row(out);
	mc_put_number(out, "most", 0, UINT64_MAX);
	mc_put_signed(out, "least", 0, INT64_MIN);
	mc_put_text(out, "none", 0, NULL);
	end(out);
	array = parsed();
	row = json_array_get(array, 0);
	assert_true(json_integer_value(json_object_get(row, "most")) == INT64_MAX);
	assert_true(json_integer_value(json_object_get(row, "least")) == INT64_MIN);
	assert_true(json_is_null(json_object_get(row, "none")));
	json_decref(array);
	done();
}

static void test_foreign_bytes(void **state)
{
	static const struct {
		const char *in;
		const char *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac", "\xe2\x82\xac" },
		{ "\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7" },
		{ "\033[2J", "\\x1b[2J" },
		{ "a\x7f", "a\\x7f" },
		{ "\xc2\x9b", "\\xc2\\x9b" }, /* C1 control */
		{ "\xc0\xaf", "\\xc0\\xaf" }, /* too long a form */
		{ "\xe0\x80\xaf", "\\xe0\\x80\\xaf" }, /* the same */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "cut \xe2\x82", "cut \\xe2\\x82" },
		{ "\xff\xfe", "\\xff\\xfe" },
	};
	size_t i;
	char *safe;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		safe = kru_text_safe(cases[i].in, strlen(cases[i].in));
		assert_string_equal(safe, cases[i].out);
		free(safe);
	}
	safe = kru_text_safe("a\0b", 3);
	assert_string_equal(safe, "a\\x00b");
	free(safe);
}

static void test_values_that_came_as_json(void **state)
{
	static const char *const keys[] = { "b", "missing", NULL };
	struct mc_out *out = begin(MC_OUT_ONELINE | MC_OUT_DETAILS);
	json_t *o = json_pack("{s:i,s:s,s:[ss],s:{s:i},s:f,s:n,s:b}", "a", 1, "b", "two", "c", "x",
			      "y", "d", "e", 5, "f", 0.5, "g", "h", 1);

	(void)state;
	mc_row(out);
	mc_put_object(out, o, keys);
	end(out);
	assert_string_equal(text, "b two missing - a 1 c x,y d {\"e\":5} f 0.5 g - h yes\n");
	json_decref(o);
	done();
}

static void test_many_rows_stream_in_order(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON);
	struct mc_out *plain;
	json_t *array;
	char *line;
	int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		mc_row(out);
		mc_put_number(out, "i", 0, (uint64_t)i);
	}
	end(out);
	array = parsed();
	assert_int_equal(json_array_size(array), 2000);
	json_decref(array);
	done();

	plain = begin(0);
	for (i = 0; i < 2000; i++) {
		mc_row(plain);
		mc_put_number(plain, "i", 0, (uint64_t)i);
	}
	end(plain);
	line = strtok(text, "\n");
	assert_string_equal(line, "i");
	for (i = 0; i < 2000; i++) {
		line = strtok(NULL, "\n");
		assert_non_null(line);
		assert_int_equal(atoi(line), i);
	}
	done();
}

static void test_wide_rows(void **state)
{
	struct mc_out *out = begin(MC_OUT_JSON);
	json_t *array;
	char key[16];
	int i;

	(void)state;
	mc_row(out);
	for (i = 0; i < 500; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		mc_put_number(out, key, 0, (uint64_t)i);
	}
	end(out);
	array = parsed();
	assert_int_equal(json_object_size(json_array_get(array, 0)), 500);
	json_decref(array);
	done();
}

static void test_misuse_is_reported(void **state)
{
	struct mc_out *out = begin(0);
	int i;

	(void)state;
	mc_row(out);
	for (i = 0; i < 1025; i++)
		mc_put_number(out, "n", 0, 1);
	assert_int_equal(mc_out_end(out), -E2BIG);
	fclose(file);
	done();
}

static void test_full_disk_is_reported(void **state)
{
	struct mc_out *out = NULL;
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	if (!full)
		skip();
	assert_int_equal(mc_out_new(full, 0, &out), 0);
	two_rows(out);
	assert_int_equal(mc_out_end(out), -ENOSPC);
	fclose(full);
}

static void test_scales(void **state)
{
	static const struct {
		const char *key;
		uint64_t value;
		const char *text;
		size_t head;
	} cases[] = {
		{ "x_ns", 999, "999ns", 1 },
		{ "x_ns", 1500, "1.50us", 1 },
		{ "x_us", 1500, "1.50ms", 1 },
		{ "x_ms", 119000, "119.00s", 1 },
		{ "x_ms", 3723000, "1h02m03s", 1 },
		{ "x_ms", 90061000, "1d01h01m", 1 },
		{ "x_s", 1, "1.00s", 1 },
		{ "x_ms", UINT64_MAX, "18446744073709551615", 4 },
		{ "x_bytes", 1023, "1023B", 1 },
		{ "x_bytes", 1536, "1.5KiB", 1 },
		{ "x_bytes", 3ULL << 30, "3.0GiB", 1 },
		{ "started_unix_ms", 1795378053999, "2026-11-22T20:07:33Z", 7 },
		{ "unix_ms", 0, "1970-01-01T00:00:00Z", 4 },
		{ "reload_unix_s", 1, "1970-01-01T00:00:01Z", 6 },
		{ "munix_ms", 1000, "1.00s", 5 },
		{ "x", 5, "5", 1 },
		{ "_ms", 5, "5", 3 },
	};
	char buf[48];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(mc_scaled(cases[i].key, cases[i].value, buf, sizeof(buf)),
				 cases[i].head);
		assert_string_equal(buf, cases[i].text);
	}
}

static void test_percentiles(void **state)
{
	uint64_t s[1000];
	size_t i;

	(void)state;
	for (i = 0; i < 1000; i++)
		s[i] = 1000 - i;
	mc_samples_sort(s, 1000);
	assert_int_equal(mc_percentile(s, 1000, 500), 500);
	assert_int_equal(mc_percentile(s, 1000, 990), 990);
	assert_int_equal(mc_percentile(s, 1000, 999), 999);
	assert_int_equal(mc_percentile(s, 1000, 1000), 1000);
	assert_int_equal(mc_percentile(s, 1, 500), 1);
	assert_int_equal(mc_percentile(s, 1, 999), 1);
	assert_int_equal(mc_percentile(s, 3, 500), 2);
	assert_int_equal(mc_percentile(s, 4, 500), 2);
	assert_int_equal(mc_percentile(s, 100, 999), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_details_and_colour),
		cmocka_unit_test(test_oneline_has_whole_keys_and_plain_numbers),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_tabs),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_of_nothing_is_an_array),
		cmocka_unit_test(test_json_of_two_kinds),
		cmocka_unit_test(test_limits_of_numbers),
		cmocka_unit_test(test_foreign_bytes),
		cmocka_unit_test(test_values_that_came_as_json),
		cmocka_unit_test(test_many_rows_stream_in_order),
		cmocka_unit_test(test_wide_rows),
		cmocka_unit_test(test_misuse_is_reported),
		cmocka_unit_test(test_full_disk_is_reported),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
