// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What functions of krcore-handoff run in, as far as that needs no rights: with --bare, what is
 * refused before there is a process, and what a runner does to its own cgroup, which is played.
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/runner/runner.h"
#include "tests/unit/wrap_box.h"

#define ROOT "/sys/fs/cgroup"
#define ABOVE "../../.." /* of ROOT */

static char folder[] = "/tmp/handoff-box-XXXXXX";
static bool cgroups; /* folders that are made are cgroups, and the one above is the runner's */
static char controls[128]; /* what was written to cgroup.subtree_control of that */
static pid_t orphans; /* process whose children do not go on before it has ended, or 0 */

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

/* As if it were root. */
uid_t __wrap_geteuid(void)
{
	return 0;
}

int __wrap_statfs(const char *path, struct statfs *ret_fs)
{
	assert_string_equal(path, ROOT);
	*ret_fs = (struct statfs){ .f_type = 0x63677270 };
	return 0;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char line[64];

	if (strcmp(path, "/proc/self/cgroup"))
		return __real_fopen(path, mode);
	snprintf(line, sizeof(line), "0::/" ABOVE "%s\n", folder);
	return fmemopen(line, strlen(line), mode);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	static const char *const names[] = { "cgroup.subtree_control", "cgroup.procs" };
	char file[KH_PATH_BYTES + 32];
	int err = __real_mkdir(path, mode), fd;
	size_t i;

	for (i = 0; cgroups && i < 2; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	return err;
}

int __wrap_rmdir(const char *path)
{
	static const char *const names[] = { "cgroup.subtree_control", "cgroup.procs" };
	char file[KH_PATH_BYTES + 32];
	size_t i;

	for (i = 0; cgroups && i < 2; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		unlink(file);
	}
	return __real_rmdir(path);
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
	char link[32], path[KH_PATH_BYTES] = "", own[KH_PATH_BYTES];
	const char *text = data;
	size_t len = strlen(controls);

	if (!cgroups || !bytes || (*text != '+' && *text != '-'))
		return __real_write(fd, data, bytes);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	snprintf(own, sizeof(own), "%s/cgroup.subtree_control", folder);
	if (!strcmp(path, own))
		snprintf(controls + len, sizeof(controls) - len, "%.*s ", (int)bytes, text);
	return (ssize_t)bytes;
}

int __wrap_prctl(int option, ...)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned long value;
	va_list list;
	int i;

	va_start(list, option);
	value = va_arg(list, unsigned long);
	va_end(list);
	for (i = 0; option == PR_SET_PDEATHSIG && getppid() == orphans && i < 30000; i++)
		nanosleep(&pause, NULL);
	return __real_prctl(option, value, 0, 0, 0);
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

/* A runner that is killed between making a process and what binds that to it leaves no function. */
static void test_runner_ends_first(void **state)
{
	const struct kh_args args = { .directory = folder, .bare = true, .user = "root" };
	struct kh_box box = { .args = &args };
	const struct kh_start start = { .name = "late" };
	char cgroup[KH_PATH_BYTES], text[16];
	int fds[2], status;
	pid_t runner;

	(void)state;
	function("late", "#!/bin/sh\necho late\n", 0755);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	runner = fork();
	if (!runner) {
		orphans = getpid();
		_exit(kh_box_start(&box, &start, fds[1], cgroup) > 0 ? 0 : 1);
	}
	close(fds[1]);
	assert_int_equal(waitpid(runner, &status, 0), runner);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
	no_function("late");
}

/* A runner in a cgroup with so many controllers for others. Return: what it writes there. */
static const char *controlled(const char *before, uint32_t memory_max_mib)
{
	char *words[] = { (char[]){ "127.0.0.1" }, NULL };
	const struct kh_args args = { .directory = folder,
				      .user = "root",
				      .gid = "::ffff:192.0.2.1",
				      .memory_max_mib = memory_max_mib,
				      .argv = words };
	struct kh_box box = { .args = &args };

	controls[0] = '\0';
	function("cgroup.subtree_control", before, 0600);
	function("cgroup.procs", "", 0600);
	cgroups = true;
	assert_int_equal(kh_box_init(&box), 0);
	kh_box_done(&box);
	cgroups = false;
	assert_int_equal(access(box.cgroups, F_OK), -1);
	no_function("cgroup.subtree_control");
	no_function("cgroup.procs");
	return controls;
}

/* What its cgroup has had before is still there when it ends: others may need it. */
static void test_controllers_of_others(void **state)
{
	(void)state;
	if (access(ROOT "/" ABOVE "/tmp", F_OK))
		skip();
	assert_string_equal(controlled("", 64), "+pids +memory -pids -memory ");
	assert_string_equal(controlled("cpu io\n", 0), "+pids -pids ");
	assert_string_equal(controlled("cpu pids\n", 64), "+memory -memory ");
	assert_string_equal(controlled("cpu memory pids\n", 64), "");
	assert_string_equal(controlled("hugetlb rpids memory.x\n", 0), "+pids -pids ");
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
		cmocka_unit_test(test_runner_ends_first),
		cmocka_unit_test(test_controllers_of_others),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
