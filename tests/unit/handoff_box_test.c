// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What functions of krcore-handoff run in, as far as that needs no rights: with --bare, and what
 * is refused before there is a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/runner/runner.h"

static char folder[] = "/tmp/handoff-box-XXXXXX";

int kh_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return KH_FAILED;
}

static void path_of(const char *name, char *ret_path)
{
	snprintf(ret_path, KH_PATH_BYTES, "%s/%s", folder, name);
}

/* A function, of so many rights. */
static void function(const char *name, const char *text, mode_t mode)
{
	char path[KH_PATH_BYTES];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void no_function(const char *name)
{
	char path[KH_PATH_BYTES];

	path_of(name, path);
	assert_int_equal(unlink(path), 0);
}

/* What cannot be executed costs no cgroup. */
static void test_nothing_to_execute(void **state)
{
	const struct kh_args args = { .directory = folder };
	struct kh_box box = { .args = &args };
	struct kh_start start = { .name = "nosuch" };
	char cgroup[KH_PATH_BYTES] = "x";

	(void)state;
	path_of("cgroups", box.cgroups);
	assert_int_equal(mkdir(box.cgroups, 0700), 0);
	assert_int_equal(kh_box_start(&box, &start, STDIN_FILENO, cgroup), -ENOENT);
	assert_string_equal(cgroup, "");
	function("text", "#!/bin/sh\n", 0644);
	start.name = "text";
	assert_int_equal(kh_box_start(&box, &start, STDIN_FILENO, cgroup), -EACCES);
	assert_int_equal(box.count, 0); /* none of them was made */
	assert_int_equal(rmdir(box.cgroups), 0);
	no_function("text");
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_execute),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
