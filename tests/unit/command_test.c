// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What command lines of tools have in common: numbers that are none, or out of range, end the
 * process with a message and its status for usage; commands are found by name and number of
 * arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/command.h"

static const struct kru_tool tool = { "a-tool", "usage: a-tool [OPTION]...\n" };

/* What a process says, and the status it ends with. */
struct ended {
	char text[256];
	int status;
};

/* Run a function in a process of its own. */
static struct ended run(void (*function)(const void *arg), const void *arg)
{
	struct ended ret = { .status = -1 };
	size_t len = 0;
	ssize_t got;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		function(arg);
		_exit(99); /* it has come back */
	}
	close(ends[1]);
	while ((got = read(ends[0], ret.text + len, sizeof(ret.text) - 1 - len)) > 0)
		len += (size_t)got;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &ret.status, 0), pid);
	ret.status = WIFEXITED(ret.status) ? WEXITSTATUS(ret.status) : -1;
	return ret;
}

static void parse(const void *text)
{
	kru_option_number(&tool, "number", text, 2, UINT32_MAX);
}

static void end(const void *option)
{
	kru_option_end(&tool, *(const int *)option);
}

static void test_numbers(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"1",
		"-2",
		"+5",
		" 5",
		"5 ",
		"x",
		"5x",
		"0x5",
		"5.",
		"4294967296",
		"18446744073709551621",
		"-18446744073709551611",
	};
	char text[96];
	size_t i;

	(void)state;
	assert_int_equal(kru_option_number(&tool, "number", "2", 2, 9), 2);
	assert_int_equal(kru_option_number(&tool, "number", "9", 2, 9), 9);
	assert_int_equal(kru_option_number(&tool, "number", "010", 2, 10), 10);
	assert_int_equal(kru_option_number(&tool, "number", "4294967295", 2, UINT32_MAX),
			 UINT32_MAX);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ended ended = run(parse, bad[i]);

		snprintf(text, sizeof(text),
			 "a-tool: --number: '%s' is not a number from 2 to 4294967295\n", bad[i]);
		assert_string_equal(ended.text, text);
		assert_int_equal(ended.status, KRU_USAGE);
	}
}

static void test_ends(void **state)
{
	static const int options[] = { 'V', 'h', '?' };
	struct ended ended[3];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		ended[i] = run(end, &options[i]);
	assert_string_equal(ended[0].text, "a-tool " KRC_VERSION "\n");
	assert_int_equal(ended[0].status, 0);
	assert_string_equal(ended[1].text, tool.text);
	assert_int_equal(ended[1].status, 0);
	assert_string_equal(ended[2].text, tool.text);
	assert_int_equal(ended[2].status, KRU_USAGE);
}

struct own {
	struct kru_command command;
	int number;
};

static const struct own commands[] = { { { "get", 1, 1 }, 5 }, { { "getall", 0, 2 }, 6 } };

static const struct own *find(const char *name, int argc)
{
	return kru_command_find(&tool, commands, 2, sizeof(commands[0]), name, argc);
}

static void find_all(const void *arg)
{
	(void)arg;
	if (!find("get", 0) && !find("get", 2) && !find("getall", 3) && !find("ge", 1) &&
	    !find("", 0))
		_exit(0);
}

static void test_commands(void **state)
{
	struct ended ended = run(find_all, NULL);

	(void)state;
	assert_int_equal(find("get", 1)->number, 5);
	assert_int_equal(find("getall", 0)->number, 6);
	assert_int_equal(find("getall", 2)->number, 6);
	assert_int_equal(ended.status, 0);
	assert_string_equal(ended.text, "a-tool: get: wrong number of arguments; see --help\n"
					"a-tool: get: wrong number of arguments; see --help\n"
					"a-tool: getall: wrong number of arguments; see --help\n"
					"a-tool: there is no command 'ge'; see --help\n"
					"a-tool: there is no command ''; see --help\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
