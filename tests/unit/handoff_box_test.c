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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/runner/runner.h"
#include "tests/unit/wrap_box.h"

static char folder[] = "/tmp/handoff-box-XXXXXX";

int kh_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return KH_FAILED;
}

/* A container that knows nothing of clone3(). */
long __wrap_syscall(long number, ...)
{
	va_list list;
	long args[3];
	size_t i;

	va_start(list, number);
	for (i = 0; i < 3; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_clone3)
		return __real_syscall(number, args[0], args[1], args[2]);
	errno = ENOSYS;
	return -1;
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

/* All that a function says, and that it ends well. */
static void said(const char *name, char *ret_text, size_t most)
{
	char *words[] = { (char[]){ "127.0.0.1" }, NULL };
	const struct kh_args args = {
		.directory = folder, .bare = true, .user = "root", .memory_mib = 1, .argv = words
	};
	struct kh_box box = { .args = &args };
	const struct kh_start start = { .name = name };
	char cgroup[KH_PATH_BYTES];
	size_t len = 0;
	ssize_t got;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = kh_box_start(&box, &start, fds[1], cgroup);
	assert_true(pid > 0);
	assert_string_equal(cgroup, "");
	close(fds[1]);
	while (len < most - 1 && (got = read(fds[0], ret_text + len, most - 1 - len)) > 0)
		len += (size_t)got;
	ret_text[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* With --bare a function needs nothing that a container may refuse. */
static void test_bare(void **state)
{
	char text[256];

	(void)state;
	function(
		"look",
		"#!/bin/sh\necho $KRCORE_HANDOFF_LEASE_MS $(pwd) $(cat /proc/self/oom_score_adj)\n",
		0755);
	said("look", text, sizeof(text));
	assert_string_equal(text, "0 / 1000\n"); /* the first to end when memory is short */
	no_function("look");
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
		cmocka_unit_test(test_bare),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
