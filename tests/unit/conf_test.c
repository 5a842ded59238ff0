// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The configuration: every key from its text and back, every error reported
 * with its line, nothing changed by what is refused, and the shipped file.
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

#include "common/conf.h"

#define REPORTS_MAX 32

static struct {
	unsigned int nr;
	unsigned int line[REPORTS_MAX];
	char text[REPORTS_MAX][512];
} reports;

static void report(void *arg, const char *file, unsigned int line, const char *text)
{
	assert_ptr_equal(arg, &reports);
	assert_non_null(file);
	assert_true(reports.nr < REPORTS_MAX);
	reports.line[reports.nr] = line;
	snprintf(reports.text[reports.nr++], sizeof(reports.text[0]), "%s", text);
}

static int parse(const char *text, struct kru_conf *conf)
{
	reports.nr = 0;
	return kru_conf_parse("test.conf", text, strlen(text), conf, report, &reports);
}

static int set(const char *assignment, struct kru_conf *conf)
{
	reports.nr = 0;
	return kru_conf_set(conf, assignment, report, &reports);
}

static void test_defaults(void **state)
{
	struct kru_conf conf;

	(void)state;
	kru_conf_defaults(&conf);
	assert_string_equal(conf.ms.listen, "*");
	assert_int_equal(conf.ms.port, 18600);
	assert_int_equal(conf.ms.require_auth, KRU_AUTH_AUTO);
	assert_int_equal(conf.ms.log_level, KRU_LOG_INFO);
	assert_int_equal(conf.ms.lease_ms, 30000);
	assert_false(conf.ms.publish_any_gid);
	assert_string_equal(conf.node.metaservers, "");
	assert_int_equal(conf.node.reconnect_max_ms, 10000);
	reports.nr = 0;
	assert_int_equal(kru_conf_check(&conf, "defaults", report, &reports), 0);
	assert_int_equal(reports.nr, 0);
}

static void test_values(void **state)
{
	struct kru_conf conf;

	(void)state;
	kru_conf_defaults(&conf);
	assert_int_equal(parse("\xef\xbb\xbf# byte order mark\r\n"
			       "[metaserver]\r\n"
			       "port = 7 ; why not\r\n"
			       "lease_ms=2 min\n"
			       "lease_min_ms = 4s\n"
			       "publish_any_gid = yes\n"
			       "require_auth = no\n"
			       "segment_kib = 2MiB\n"
			       "memory_max_mib = 2 GiB\n"
			       "key_file =\n"
			       "listen = 192.0.2.1,\n"
			       "\t[2001:db8::1]\n"
			       "; a comment between\n"
			       "\tdev:rxe0 ; and one behind\n"
			       "\n"
			       "[node]\n"
			       "metaservers = a.example/1, 192.0.2.2:5, [2001:db8::2]:6/2",
			       &conf),
			 0);
	assert_int_equal(conf.ms.port, 7);
	assert_int_equal(conf.ms.lease_ms, 120000);
	assert_int_equal(conf.ms.lease_min_ms, 4000);
	assert_true(conf.ms.publish_any_gid);
	assert_int_equal(conf.ms.require_auth, KRU_AUTH_NO);
	assert_int_equal(conf.ms.segment_kib, 2048);
	assert_int_equal(conf.ms.memory_max_mib, 2048);
	assert_string_equal(conf.ms.key_file, "");
	assert_string_equal(conf.ms.listen, "192.0.2.1,[2001:db8::1],dev:rxe0");
	assert_string_equal(conf.node.metaservers, "a.example/1,192.0.2.2:5,[2001:db8::2]:6/2");
	assert_int_equal(conf.origin[KRU_CONF_KEY_ms_port], KRU_CONF_FROM_FILE);
	assert_int_equal(conf.origin[KRU_CONF_KEY_ms_credits], KRU_CONF_DEFAULT);
}

/* A line for each of expected_errors[]. */
static const char all_errors[] = "x = 1\n"
				 "[metaserver\n"
				 "[foo]\n"
				 "a = 1\n"
				 "[metaserver]\n"
				 "port = 99999\n"
				 "port = 3\n"
				 "lease_ms = 999\n"
				 "lease_min_ms = 1parsec\n"
				 "novalue\n"
				 "log_level = loud\n"
				 "zork = 1\n"
				 "\t12\n"
				 "segment_kib = 65\n"
				 "publish_any_gid = maybe\n"
				 "key_file = relative/path\n"
				 "listen = *, 192.0.2.1\n"
				 "metrics_listen = localhost:1\n"
				 "control_socket =\n"
				 "clients_max = -1\n"
				 "credits = 0x10\n"
				 "copy_from = host/3\n"
				 "[node] x\n"
				 "[node]\n"
				 "port = 1\n"
				 "metaservers = a, , b\n"
				 "gid = nonsense\n"
				 "device = mlx5_0, mlx5_1\n";

static const struct {
	unsigned int line;
	const char *part;
} expected_errors[] = {
	{ 1, "before the first section" },
	{ 2, "section without ']'" },
	{ 3, "unknown section '[foo]'" },
	{ 6, "'99999' is out of range, 1 to 65535" },
	{ 7, "given before in line 6" },
	{ 8, "out of range, 1000 to 3600000 ms" },
	{ 9, "unknown unit; units are ms, s, min, h" },
	{ 10, "neither 'key = value' nor '[section]'" },
	{ 11, "'loud' is not one of err|warning|notice|info|debug" },
	{ 12, "unknown key 'zork' in [metaserver]" },
	{ 13, "an indented line goes on with the list above" },
	{ 14, "65 is not a power of two" },
	{ 15, "'maybe' is not one of no|yes" },
	{ 16, "'relative/path' is neither an absolute path nor credential:NAME" },
	{ 17, "'*' must stand alone" },
	{ 18, "'localhost' is not a numeric address" },
	{ 19, "may not be empty" },
	{ 20, "'-1' is not a number" },
	{ 21, "'0x10' has an unknown unit" },
	{ 22, "neither srv: nor a priority" },
	{ 23, "text after the section" },
	{ 24, "unknown key 'port' in [node]" },
	{ 25, "an entry is empty" },
	{ 26, "neither a GID nor an IP address" },
	{ 27, "'mlx5_0, mlx5_1' is no name of an RDMA device" },
};

static void test_all_errors_at_once(void **state)
{
	struct kru_conf conf, before;

	(void)state;
	kru_conf_defaults(&conf);
	before = conf;
	assert_int_equal(parse(all_errors, &conf), -EINVAL);
	/* Lines 23 on are one further: the bad section is followed by a good one. */
	assert_int_equal(reports.nr, sizeof(expected_errors) / sizeof(*expected_errors));
	for (unsigned int i = 0; i < reports.nr; i++) {
		assert_int_equal(reports.line[i],
				 expected_errors[i].line + (expected_errors[i].line > 23));
		if (!strstr(reports.text[i], expected_errors[i].part))
			fail_msg("'%s' lacks '%s'", reports.text[i], expected_errors[i].part);
	}
	assert_memory_equal(&conf, &before, sizeof(conf));
}

static void test_lines_inih_would_cut(void **state)
{
	char text[1024] = "[node]\nmetaservers = ";
	struct kru_conf conf, before;
	size_t used = strlen(text);

	(void)state;
	kru_conf_defaults(&conf);
	before = conf;
	memset(text + used, 'a', 300);
	assert_int_equal(parse(text, &conf), -EINVAL);
	assert_int_equal(reports.nr, 1);
	assert_int_equal(reports.line[0], 2);
	assert_non_null(strstr(reports.text[0], "longer than"));

	reports.nr = 0;
	assert_int_equal(kru_conf_parse("test.conf", "[node]\0\n[ms]\n", 13, &conf, report,
					&reports),
			 -EINVAL);
	assert_int_equal(reports.nr, 2);
	assert_non_null(strstr(reports.text[0], "zero byte"));
	assert_memory_equal(&conf, &before, sizeof(conf));
}

static void test_file_limits(void **state)
{
	char *text = calloc(1, KRU_CONF_BYTES_MAX + 1);
	struct kru_conf conf;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', KRU_CONF_BYTES_MAX + 1);
	kru_conf_defaults(&conf);
	reports.nr = 0;
	assert_int_equal(kru_conf_parse("t", text, KRU_CONF_BYTES_MAX + 1, &conf, report, &reports),
			 -EFBIG);
	assert_int_equal(kru_conf_parse("t", text, KRU_CONF_BYTES_MAX, &conf, report, &reports), 0);
	assert_int_equal(reports.nr, 1);
	free(text);
	assert_int_equal(kru_conf_load("/nonexistent/krcore.conf", &conf, report, &reports),
			 -ENOENT);
	assert_int_equal(kru_conf_load("/", &conf, report, &reports), -EISDIR);
	assert_int_equal(reports.nr, 3);
}

static void test_precedence(void **state)
{
	struct kru_conf conf;

	(void)state;
	kru_conf_defaults(&conf);
	assert_int_equal(set("metaserver.port=5", &conf), 0);
	assert_int_equal(parse("[metaserver]\nport = 6\ncredits = 7\n", &conf), 0);
	assert_int_equal(conf.ms.port, 5);
	assert_int_equal(conf.ms.credits, 7);
	assert_int_equal(set("metaserver.credits=8", &conf), 0);
	assert_int_equal(conf.ms.credits, 8);
	assert_int_equal(set("metaserver.port=9", &conf), 0);
	assert_int_equal(conf.ms.port, 9);
	assert_int_equal(conf.origin[KRU_CONF_KEY_ms_port], KRU_CONF_COMMAND_LINE);
	/* Overridden, but still wrong. */
	assert_int_equal(parse("[metaserver]\nport = x\n", &conf), -EINVAL);
}

static void test_bad_assignments(void **state)
{
	static const char *const bad[] = {
		"",
		"port=1",
		"metaserver.port",
		"metaserver.=1",
		".port=1",
		"ms.port=1",
		"metaserver.port=",
		"metaserver.port=0",
		"a=b.c",
		"metaserver.key_file=/a\nb",
		"metaserver.key_file=/a;b",
	};
	struct kru_conf conf, before;
	char *huge = calloc(1, 5000);

	(void)state;
	kru_conf_defaults(&conf);
	before = conf;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(set(bad[i], &conf), -EINVAL);
		assert_int_equal(reports.nr, 1);
	}
	assert_non_null(huge);
	memset(huge, 'a', 4999);
	assert_int_equal(set(huge, &conf), -EINVAL);
	free(huge);
	assert_memory_equal(&conf, &before, sizeof(conf));
}

static void test_keys_that_do_not_fit(void **state)
{
	struct kru_conf conf;

	(void)state;
	kru_conf_defaults(&conf);
	assert_int_equal(parse("[metaserver]\nlease_ms = 2s\nmemory_max_mib = 8\n"
			       "segment_kib = 8192\n[node]\nreconnect_min_ms = 20s\n",
			       &conf),
			 0);
	assert_int_equal(kru_conf_check(&conf, "t", report, &reports), -EINVAL);
	assert_int_equal(reports.nr, 3);
	assert_non_null(strstr(reports.text[0], "lease_ms"));
	assert_non_null(strstr(reports.text[1], "segment_kib"));
	assert_non_null(strstr(reports.text[2], "reconnect_min_ms"));
	assert_int_equal(reports.line[0], 2);
	assert_int_equal(reports.line[1], 4);
	assert_int_equal(reports.line[2], 6);

	/* the key that is set at all is named, with its line or the command line */
	kru_conf_defaults(&conf);
	assert_int_equal(parse("[metaserver]\n\n\nlease_max_ms = 4s\n", &conf), 0);
	assert_int_equal(kru_conf_check(&conf, "t", report, &reports), -EINVAL);
	assert_non_null(strstr(reports.text[0], "lease_ms: 30000 is not between"));
	assert_int_equal(reports.line[0], 4);
	assert_int_equal(set("metaserver.lease_max_ms=5s", &conf), 0);
	assert_int_equal(kru_conf_check(&conf, "t", report, &reports), -EINVAL);
	assert_int_equal(reports.line[0], 0);
}

/* Return: line of the only warning, 0 if there is none. */
static unsigned int advised(const char *text, __u64 ram_bytes, const char *part)
{
	struct kru_conf conf;

	kru_conf_defaults(&conf);
	assert_int_equal(parse(text, &conf), 0);
	assert_int_equal(kru_conf_check(&conf, "t", report, &reports), 0);
	kru_conf_advise(&conf, "t", ram_bytes, report, &reports);
	if (!reports.nr)
		return 0;
	assert_int_equal(reports.nr, 1);
	assert_non_null(strstr(reports.text[0], part));
	return reports.line[0];
}

static void test_advice(void **state)
{
	static const char crowd[] = "[metaserver]\nclients_max = 100000\ncredits = 256\n";
	static const char large[] = "[metaserver]\n\nmemory_max_mib = 8 GiB\n";
	const __u64 gib = 1 << 30;

	(void)state;
	/* the defaults, on the smallest machine and on one whose memory is not known */
	assert_int_equal(advised("", 1, ""), 0);
	assert_int_equal(advised("", 0, ""), 0);
	/* 100000 clients of 48 KiB and 1024 entries of 64 bytes, and the table of 1 GiB */
	assert_int_equal(advised(crowd, 100000ULL * (112 << 10) + gib, "clients_max"), 0);
	assert_int_equal(advised(crowd, 100000ULL * (112 << 10) + gib - 1, "clients_max"), 2);
	assert_non_null(strstr(reports.text[0], "may need 11961 MiB"));
	assert_int_equal(advised(crowd, 0, ""), 0);
	assert_int_equal(advised(large, 9 * gib, ""), 0);
	assert_int_equal(advised(large, 8 * gib, "memory_max_mib = 8192"), 3);
	assert_int_equal(advised("[metaserver]\ncredits = 32\nsrq_depth = 64\n", 0, ""), 0);
	assert_int_equal(advised("[metaserver]\nsrq_depth = 64\ncredits = 33\n", 0, "credits"), 3);
	assert_int_equal(advised("[metaserver]\nlease_ms = 10s\n", 0, ""), 0);
	assert_int_equal(advised("[metaserver]\nlease_ms = 9s\n", 0, "reconnect_max_ms"), 2);
	assert_int_equal(advised("[node]\nreconnect_max_ms = 31s\n", 0, "lease_ms"), 2);
	assert_int_equal(advised("[metaserver]\nsegment_kib = 64 MiB\n", 0, ""), 0);
	assert_int_equal(advised("[metaserver]\nsegment_kib = 128 MiB\n", 0, "all clients wait"),
			 2);
}

/* A server that cuts nodes off before they say something again: they come back for ever. */
static void test_idle_timeout_that_cuts_everybody(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		/* a node may ask for lease_max_ms, and be late once */
		{ "[metaserver]\nidle_timeout_ms = 30000\n", -EINVAL },
		{ "[metaserver]\nidle_timeout_ms = 30001\n", 0 },
		{ "[metaserver]\nlease_ms = 3s\nidle_timeout_ms = 30000\n", -EINVAL },
		{ "[metaserver]\nlease_max_ms = 30s\nidle_timeout_ms = 20000\n", -EINVAL },
		{ "[metaserver]\nlease_max_ms = 30s\nidle_timeout_ms = 20001\n", 0 },
		{ "[metaserver]\nlease_ms = 3s\nlease_max_ms = 3s\nidle_timeout_ms = 2001\n", 0 },
	};
	struct kru_conf conf;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kru_conf_defaults(&conf);
		assert_int_equal(parse(cases[i].text, &conf), 0);
		assert_int_equal(kru_conf_check(&conf, "t", report, &reports), cases[i].err);
		if (cases[i].err)
			assert_non_null(strstr(reports.text[0], "idle_timeout_ms"));
		memset(&reports, 0, sizeof(reports));
	}
}

static char merged[1024];

static void note_change(void *arg, const struct kru_conf_item *item)
{
	size_t used = strlen(merged);

	(void)arg;
	snprintf(merged + used, sizeof(merged) - used, "%s.%s:%s>%s:%d ", item->section, item->key,
		 item->before, item->value, item->reloadable);
}

static void test_merge(void **state)
{
	struct kru_conf conf, fresh;

	(void)state;
	kru_conf_defaults(&conf);
	kru_conf_defaults(&fresh);
	assert_int_equal(parse("[metaserver]\nport = 6\nlease_ms = 5s\nlog_level = debug\n"
			       "[node]\nlease_ms = 9\n",
			       &fresh),
			 0);
	assert_int_equal(kru_conf_merge(&conf, &fresh, KRU_CONF_SECTION_ms, note_change, NULL), 2);
	assert_string_equal(merged, "metaserver.port:18600>6:0 metaserver.lease_ms:30000>5000:1 "
				    "metaserver.log_level:info>debug:1 ");
	assert_int_equal(conf.ms.port, 18600);
	assert_int_equal(conf.ms.lease_ms, 5000);
	assert_int_equal(conf.ms.log_level, KRU_LOG_DEBUG);
	assert_int_equal(conf.node.lease_ms, 9);
	assert_int_equal(conf.origin[KRU_CONF_KEY_ms_port], KRU_CONF_DEFAULT);
}

static char *print(const struct kru_conf *conf)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	kru_conf_print(conf, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

/* Writing and reading again must change no value, whatever it is. */
static void test_print_and_parse(void **state)
{
	struct kru_conf conf, again;
	char *text;

	(void)state;
	kru_conf_defaults(&conf);
	assert_int_equal(set("metaserver.lease_ms=4s", &conf), 0);
	assert_int_equal(set("metaserver.require_auth=no", &conf), 0);
	assert_int_equal(set("metaserver.key_file=", &conf), 0);
	assert_int_equal(set("node.metaservers=srv:_krcore._tcp.example", &conf), 0);
	text = print(&conf);
	kru_conf_defaults(&again);
	assert_int_equal(parse(text, &again), 0);
	free(text);
	assert_memory_equal(&conf.ms, &again.ms, sizeof(conf.ms));
	assert_memory_equal(&conf.node, &again.node, sizeof(conf.node));
}

/* Lines have a limit; a list takes as many as it needs, one value the one it has. */
static void test_print_long_values(void **state)
{
	struct kru_conf conf, again;
	char name[KRU_CONF_PART_MAX + 2] = "", list[2000] = "node.metaservers=", *text;
	char path[256] = "node.key_file=/";
	size_t used = strlen(list);

	(void)state;
	kru_conf_defaults(&conf);
	for (unsigned int i = 0; i < KRU_CONF_PART_MAX; i++)
		name[i] = i % 60 == 59 ? '.' : 'a';
	name[KRU_CONF_PART_MAX - 1] = 'a';
	for (int i = 0; i < 8; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? " , " : "",
					 name + i * (i < 7 ? 1 : 20));
	assert_int_equal(set(list, &conf), 0);
	memset(path + strlen(path), 'k', KRU_CONF_PART_MAX - 1);
	assert_int_equal(set(path, &conf), 0);
	text = print(&conf);
	kru_conf_defaults(&again);
	assert_int_equal(parse(text, &again), 0);
	assert_memory_equal(&conf.node, &again.node, sizeof(conf.node));
	free(text);

	strcat(path, "k");
	assert_int_equal(set(path, &conf), -EINVAL);
	assert_non_null(strstr(reports.text[0], "node.key_file: is longer than 180 characters"));
	strcat(name, "a");
	snprintf(list, sizeof(list), "node.metaservers=a.example,%s", name);
	assert_int_equal(set(list, &conf), -EINVAL);
	assert_non_null(
		strstr(reports.text[0], "node.metaservers: a part is longer than 180 characters"));
	assert_memory_equal(&conf.node, &again.node, sizeof(conf.node));
}

/*
 * The file that ships is what the table says, and insists on authentication:
 * `krcore-metaserver --print -o metaserver.require_auth=yes -o node.require_auth=yes`.
 */
static void test_shipped_file(void **state)
{
	struct kru_conf conf, defaults;
	char *expected, *shipped;
	FILE *file;
	size_t len;

	(void)state;
	kru_conf_defaults(&defaults);
	assert_int_equal(kru_conf_set(&defaults, "metaserver.require_auth=yes", report, &reports),
			 0);
	assert_int_equal(kru_conf_set(&defaults, "node.require_auth=yes", report, &reports), 0);
	expected = print(&defaults);
	shipped = calloc(1, KRU_CONF_BYTES_MAX);
	assert_non_null(shipped);
	file = fopen(KRCORE_CONF, "r");
	assert_non_null(file);
	len = fread(shipped, 1, KRU_CONF_BYTES_MAX - 1, file);
	fclose(file);
	assert_true(len > 0);
	assert_string_equal(shipped, expected);

	/* And with every key switched on it still reads, to the same values. */
	for (char *p = shipped; (p = strstr(p, "\n#")) != NULL; p++)
		if (p[2] != ' ')
			memmove(p + 1, p + 2, strlen(p + 2) + 1);
	kru_conf_defaults(&conf);
	assert_int_equal(parse(shipped, &conf), 0);
	assert_memory_equal(&conf.ms, &defaults.ms, sizeof(conf.ms));
	assert_memory_equal(&conf.node, &defaults.node, sizeof(conf.node));
	for (unsigned int i = 0; i < KRU_CONF_KEYS; i++)
		assert_int_equal(conf.origin[i], KRU_CONF_FROM_FILE);
	free(expected);
	free(shipped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_all_errors_at_once),
		cmocka_unit_test(test_lines_inih_would_cut),
		cmocka_unit_test(test_file_limits),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_bad_assignments),
		cmocka_unit_test(test_keys_that_do_not_fit),
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_idle_timeout_that_cuts_everybody),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_print_and_parse),
		cmocka_unit_test(test_print_long_values),
		cmocka_unit_test(test_shipped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
