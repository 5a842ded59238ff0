// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The runner of krcore-handoff, and a caller's connection to one, over loopback: what callers that
 * ask for too much, or for nothing, cost others. What functions run in is played: each is a process
 * that says what it hears.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/runner/link.h"
#include "handoff/runner/runner.h"
#include "tests/unit/wrap_runner.h"

#define SLOW_US 300000 /* long for a loop that does not wait */
#define STRANGER(nr) (INADDR_LOOPBACK + 0x10000U * (nr)) /* addresses that are played */
#define OWN(nr) (INADDR_LOOPBACK + 0x800000U + 0x10000U * (nr))
#define TURNS_MAX 100 /* of the runner's loop in that time */
#define GONE 200 /* callers that have gone: fewer than may wait to be accepted */

/** struct test_shared - With runners. @turns: of their loops. @no_files: they can accept nothing. */
struct test_shared {
	atomic_uint turns;
	atomic_bool no_files;
};

static struct test_shared *shared;

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	atomic_fetch_add(&shared->turns, 1);
	return __real_poll(fds, nr, timeout);
}

/* What a caller at such an address of loopback is to the runner. */
static const struct {
	uint32_t at;
	int family;
	const char *played;
} callers[] = {
	{ STRANGER(1), AF_INET, "192.0.2.1" },
	{ STRANGER(2), AF_INET, "192.0.2.2" },
	{ STRANGER(3), AF_INET6, "::ffff:192.0.2.3" },
	{ STRANGER(4), AF_INET6, "2001:db8:0:1::4" },
	{ STRANGER(5), AF_INET6, "2001:db8:0:1::5" }, /* of one network */
	{ STRANGER(6), AF_INET6, "2001:db8:0:2::6" }, /* of one that the node is in */
	{ OWN(1), AF_INET6, "::1" },
	{ OWN(2), AF_INET6, "::ffff:127.0.0.9" },
	{ OWN(3), AF_INET, "198.51.100.1" },
	{ OWN(4), AF_INET6, "::ffff:198.51.100.1" },
	{ OWN(5), AF_INET6, "2001:db8:0:2::7" },
};

static void play(int family, const char *text, struct sockaddr_storage *ret_addr)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret_addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_addr;

	*ret_addr = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
	assert_int_equal(inet_pton(family, text,
				   family == AF_INET ? (void *)&v4->sin_addr
						     : (void *)&v6->sin6_addr),
			 1);
}

int __wrap_accept4(int listener, struct sockaddr *addr, socklen_t *len, int flags)
{
	const struct sockaddr_in *from = (const struct sockaddr_in *)addr;
	int fd = -1;
	size_t i;

	errno = EMFILE;
	if (!atomic_load(&shared->no_files))
		fd = __real_accept4(listener, addr, len, flags);
	for (i = 0; fd >= 0 && i < sizeof(callers) / sizeof(callers[0]); i++)
		if (ntohl(from->sin_addr.s_addr) == callers[i].at) {
			play(callers[i].family, callers[i].played, (struct sockaddr_storage *)addr);
			break;
		}
	return fd;
}

/* The node has two addresses beside that of loopback, and a device without any. */
int __wrap_getifaddrs(struct ifaddrs **ret_all)
{
	static struct sockaddr_storage addrs[2];
	static struct ifaddrs all[3] = {
		{ .ifa_next = &all[1] },
		{ .ifa_next = &all[2], .ifa_addr = (struct sockaddr *)&addrs[0] },
		{ .ifa_addr = (struct sockaddr *)&addrs[1] },
	};

	play(AF_INET, "198.51.100.1", &addrs[0]);
	play(AF_INET6, "2001:db8:0:2::7", &addrs[1]);
	*ret_all = all;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all)
{
	(void)all;
}

int kh_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return KH_FAILED;
}

int kh_box_init(struct kh_box *box)
{
	(void)box;
	return 0;
}

void kh_box_done(struct kh_box *box)
{
	(void)box;
}

pid_t kh_box_start(struct kh_box *box, const struct kh_start *start, int fd, char *ret_cgroup)
{
	char heard[64];
	ssize_t got;
	int other;
	pid_t pid = fork();

	(void)box;
	*ret_cgroup = '\0';
	if (pid)
		return pid;
	for (other = 3; other < 64; other++) /* as execve() would */
		if (other != fd)
			close(other);
	if (write(fd, start->name, strlen(start->name)) < 0)
		_exit(1);
	while ((got = read(fd, heard, sizeof(heard))) > 0)
		if (write(fd, heard, (size_t)got) != got)
			_exit(1);
	_exit(0);
}

void kh_box_kill(pid_t pid, const char *cgroup)
{
	(void)cgroup;
	kill(pid, SIGKILL);
}

void kh_box_end(const char *cgroup)
{
	(void)cgroup;
}

/** struct test_runner - A runner. @pid: its process. @to: its address. */
struct test_runner {
	pid_t pid;
	struct sockaddr_in to;
};

/* A socket at an address of loopback, which listens if @backlog is not negative. */
static int bound(uint32_t address, int backlog, struct sockaddr_in *ret_at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*ret_at);

	*ret_at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)ret_at, sizeof(*ret_at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_at, &len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

/* Connect from an address of loopback. */
static int from(const struct test_runner *runner, uint32_t address)
{
	struct sockaddr_in at;
	struct timeval most = { .tv_sec = 60 };
	int i, fd = bound(address, -1, &at);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	for (i = 0; i < 6000; i++) {
		if (!connect(fd, (const struct sockaddr *)&runner->to, sizeof(runner->to)))
			return fd;
		usleep(10000);
	}
	fail_msg("no runner");
	return -1;
}

static void over(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, 0), 0);
	close(fd);
}

/* A runner of at most so many functions and, if not 0, at first so many descriptors. */
static struct test_runner begin(unsigned int most, unsigned int share, unsigned int files)
{
	struct rlimit limit = { 0, 0 };
	struct test_runner runner;
	char text[32], *words[] = { text, NULL };
	struct kh_args args = { .directory = "/", .most = most, .share = share, .argv = words };
	int fd;

	close(bound(INADDR_LOOPBACK, -1, &runner.to));
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(runner.to.sin_port));
	runner.pid = fork();
	assert_true(runner.pid >= 0);
	if (!runner.pid) {
		if (files && !getrlimit(RLIMIT_NOFILE, &limit)) {
			limit.rlim_cur = files;
			setrlimit(RLIMIT_NOFILE, &limit);
		}
		_exit(kh_serve(&args));
	}
	fd = from(&runner, INADDR_LOOPBACK); /* it is there */
	shutdown(fd, SHUT_WR);
	over(fd); /* and has no caller */
	return runner;
}

static void end(const struct test_runner *runner)
{
	int status;

	kill(runner->pid, SIGTERM);
	assert_int_equal(waitpid(runner->pid, &status, 0), runner->pid);
	assert_int_equal(status, 0);
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* The next bytes are these. */
static void hear(int fd, const char *text)
{
	char heard[128] = "";
	size_t len = strlen(text);

	assert_true(len < sizeof(heard));
	assert_int_equal(recv(fd, heard, len, MSG_WAITALL), (ssize_t)len);
	assert_string_equal(heard, text);
}

static void slowly(void)
{
	unsigned int before = atomic_load(&shared->turns);

	usleep(SLOW_US);
	assert_in_range(atomic_load(&shared->turns) - before, 0, TURNS_MAX);
}

/* A first line that is not whole makes no work, and is one when the rest comes. */
static void test_first_line_in_pieces(void **state)
{
	struct test_runner runner = begin(4, 4, 0);
	int fd = from(&runner, INADDR_LOOPBACK);

	(void)state;
	say(fd, "sta");
	slowly();
	say(fd, "rt cat");
	slowly();
	say(fd, "\nfree\nta");
	hear(fd, "catfree\nta");
	say(fd, "ke\n");
	hear(fd, "ke\n");
	shutdown(fd, SHUT_WR);
	over(fd);
	end(&runner);
}

static void test_bad_first_lines(void **state)
{
	struct test_runner runner = begin(4, 4, 0);
	char line[KH_LINE_BYTES + 1];
	int fd = from(&runner, INADDR_LOOPBACK);

	(void)state;
	say(fd, "s"); /* and no more will come */
	shutdown(fd, SHUT_WR);
	over(fd);
	fd = from(&runner, INADDR_LOOPBACK);
	memset(line, 'x', sizeof(line));
	line[KH_LINE_BYTES] = '\0';
	say(fd, line + 100);
	slowly();
	say(fd, line + KH_LINE_BYTES - 100);
	hear(fd, "fail the line is too long\n");
	over(fd);
	fd = from(&runner, INADDR_LOOPBACK);
	say(fd, "\n");
	hear(fd, "fail not 'start NAME ARGUMENT...'\n");
	over(fd);
	end(&runner);
}

/* Callers of one address leave places to others, however they hold theirs. */
static void test_share_of_an_address(void **state)
{
	struct test_runner runner = begin(3, 2, 0);
	int fds[2], fd;

	(void)state;
	fds[0] = from(&runner, STRANGER(1));
	fds[1] = from(&runner, STRANGER(1));
	say(fds[0], "start a\n");
	hear(fds[0], "a"); /* the other one says nothing */
	fd = from(&runner, STRANGER(1));
	hear(fd, "fail as many functions run for this address as --share allows\n");
	over(fd);
	fd = from(&runner, STRANGER(2));
	say(fd, "start b\n");
	hear(fd, "b");
	close(from(&runner, STRANGER(3))); /* refused: all places are taken */
	close(fds[1]);
	shutdown(fds[0], SHUT_WR);
	over(fds[0]);
	fds[0] = from(&runner, STRANGER(1));
	say(fds[0], "start c\n");
	hear(fds[0], "c");
	close(fds[0]);
	close(fd);
	end(&runner);
}

/* A share of one: whether the second caller has it. */
static void share_of(uint32_t first, uint32_t second, bool same)
{
	struct test_runner runner = begin(3, 1, 0);
	int holder = from(&runner, first), fd;

	say(holder, "start f\n");
	hear(holder, "f");
	fd = from(&runner, second);
	if (same) {
		hear(fd, "fail as many functions run for this address as --share allows\n");
		over(fd);
	} else {
		say(fd, "start g\n");
		hear(fd, "g");
		close(fd);
	}
	close(holder);
	end(&runner);
}

/* All addresses of this node are one, and those of an IPv6 network that is not its own. */
static void test_addresses_that_are_one(void **state)
{
	uint32_t i;

	(void)state;
	share_of(INADDR_LOOPBACK + 1, INADDR_LOOPBACK + 2, true);
	for (i = 1; i <= 5; i++)
		share_of(INADDR_LOOPBACK, OWN(i), true);
	share_of(STRANGER(4), STRANGER(5), true);
	share_of(STRANGER(1), STRANGER(3), false);
	share_of(STRANGER(4), STRANGER(6), false);
	share_of(OWN(5), STRANGER(6), false);
}

/* Callers that are gone before they are refused fill no log, and take nothing from others. */
static void test_callers_that_do_not_hear(void **state)
{
	const struct linger reset = { .l_onoff = 1 };
	int log = memfd_create("stderr", MFD_CLOEXEC), before = dup(STDERR_FILENO), holder, fd, i;
	struct test_runner runner;
	int status;

	(void)state;
	assert_true(log >= 0 && before >= 0 && dup2(log, STDERR_FILENO) >= 0);
	runner = begin(2, 1, 0);
	dup2(before, STDERR_FILENO);
	close(before);
	holder = from(&runner, INADDR_LOOPBACK);
	say(holder, "start cat\n");
	hear(holder, "cat");
	kill(runner.pid, SIGSTOP); /* until all have gone */
	assert_int_equal(waitpid(runner.pid, &status, WUNTRACED), runner.pid);
	for (i = 0; i < GONE; i++) {
		fd = from(&runner, INADDR_LOOPBACK);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
	}
	kill(runner.pid, SIGCONT);
	say(holder, "free\n");
	hear(holder, "free\n");
	fd = from(&runner, INADDR_LOOPBACK); /* behind all of them */
	hear(fd, "fail as many functions run for this address as --share allows\n");
	over(fd);
	say(holder, "free\n");
	hear(holder, "free\n");
	assert_int_equal(lseek(log, 0, SEEK_END), 0);
	close(log);
	close(holder);
	end(&runner);
}

/* Connections that cannot be accepted wait; so does the runner. */
static void test_no_descriptors(void **state)
{
	struct test_runner runner = begin(4, 4, 0);
	int fd;

	(void)state;
	atomic_store(&shared->no_files, true);
	fd = from(&runner, INADDR_LOOPBACK);
	slowly();
	atomic_store(&shared->no_files, false);
	say(fd, "start d\n");
	hear(fd, "d");
	close(fd);
	end(&runner);
}

/* The limit of descriptors follows --most, or the runner says that it cannot. */
static void test_descriptors_for_most(void **state)
{
	const struct rlimit low = { 70, 70 };
	char *words[] = { (char[]){ "127.0.0.1:1" }, NULL };
	struct kh_args args = { .directory = "/", .most = 64, .share = 64, .argv = words };
	struct test_runner runner = begin(64, 64, 40);
	int fd = from(&runner, INADDR_LOOPBACK), status;
	pid_t pid;

	(void)state;
	say(fd, "start e\n");
	hear(fd, "e");
	close(fd);
	end(&runner);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setrlimit(RLIMIT_NOFILE, &low) ||
		    (!geteuid() && (setgid(65534) || setuid(65534))))
			_exit(99);
		_exit(kh_serve(&args));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), KH_FAILED);
}

static void nothing(int signal)
{
	(void)signal;
}

/* A caller has an answer in time, or knows that there is none: from connecting on. */
static void test_caller_waits_so_long(void **state)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	struct sigaction restart = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	const struct kh_command command = { .verb = KH_FREE };
	struct kh_link link = { .function = "a", .timeout_ms = 300, .fd = -1 };
	struct sockaddr_in at;
	struct test_runner full = { 0 };
	int listener = bound(INADDR_LOOPBACK, 0, &at), fds[8], i;
	struct kh_reply reply;
	char node[32];

	(void)state;
	snprintf(node, sizeof(node), "127.0.0.1:%u", ntohs(at.sin_port));
	link.node = node;
	alarm(60); /* it would wait for minutes */
	assert_int_equal(kh_link_tell(&link, &command), 0);
	assert_int_equal(sigaction(SIGALRM, &restart, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0); /* while it waits */
	assert_int_equal(kh_link_hear(&link, KH_FREED, &reply), -EIO);
	assert_string_equal(link.why, "no answer in time");
	kh_link_close(&link);
	signal(SIGALRM, SIG_DFL);
	alarm(60);
	/* as many as nobody accepts: the next one hears nothing */
	full.to = at;
	for (i = 0; i < 8; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fds[i], (const struct sockaddr *)&full.to, sizeof(full.to));
	}
	assert_int_equal(kh_link_tell(&link, &command), -EIO);
	assert_string_equal(link.why, "connecting to its runner: Connection timed out");
	for (i = 0; i < 8; i++)
		close(fds[i]);
	close(listener);
	alarm(0);
}

/*
 * A line that comes together with the signal that ends the runner starts nothing: it would be waited
 * for until its caller goes. All others that have said nothing yet are told, too.
 */
static void test_nothing_begins_at_the_end(void **state)
{
	struct test_runner runner = begin(4, 4, 0);
	int busy = from(&runner, INADDR_LOOPBACK), late = from(&runner, INADDR_LOOPBACK);
	int silent = from(&runner, INADDR_LOOPBACK), status;

	(void)state;
	say(busy, "start cat\n");
	hear(busy, "cat");
	slowly(); /* the runner knows all three */
	kill(runner.pid, SIGSTOP);
	assert_int_equal(waitpid(runner.pid, &status, WUNTRACED), runner.pid);
	say(late, "start cat\n");
	kill(runner.pid, SIGTERM);
	kill(runner.pid, SIGCONT);
	hear(late, "fail the runner ends\n");
	hear(silent, "fail the runner ends\n");
	assert_int_equal(waitpid(runner.pid, &status, 0), runner.pid);
	assert_int_equal(status, 0);
	close(busy);
	close(late);
	close(silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_line_in_pieces),
		cmocka_unit_test(test_bad_first_lines),
		cmocka_unit_test(test_share_of_an_address),
		cmocka_unit_test(test_addresses_that_are_one),
		cmocka_unit_test(test_callers_that_do_not_hear),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_descriptors_for_most),
		cmocka_unit_test(test_caller_waits_so_long),
		cmocka_unit_test(test_nothing_begins_at_the_end),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
