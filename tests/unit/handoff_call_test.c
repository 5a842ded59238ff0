// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Callers of krcore-handoff, chain and spread, over loopback: what they take from functions, and
 * which address of a runner they find. Runners are played, each connection by a process that
 * answers as a function would, or not quite.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/lib/words.h"
#include "handoff/runner/link.h"
#include "handoff/runner/runner.h"
#include "tests/unit/wrap_getaddrinfo.h"

#define BYTES 100

/** struct test_played - One that is played. @pid: its process. @node: where it is. */
struct test_played {
	pid_t pid;
	char node[32];
};

int kh_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return KH_FAILED;
}

static struct sockaddr_in full; /* a listener that accepts nobody any more */
static bool several; /* names have several addresses, of which loopback's is the last */

/* As the library does, or with addresses before it of which none has a runner. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret_found)
{
	static struct sockaddr_in deaf;
	static struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	static struct addrinfo before[] = {
		{ .ai_family = AF_INET6, .ai_addr = (void *)&v6, .ai_addrlen = sizeof(v6) },
		{ .ai_family = AF_INET, .ai_addr = (void *)&deaf, .ai_addrlen = sizeof(deaf) },
	};
	int err = __real_getaddrinfo(host, port, hints, ret_found);

	if (err || !several)
		return err;
	v6.sin6_addr = in6addr_loopback;
	v6.sin6_port = ((struct sockaddr_in *)(void *)(*ret_found)->ai_addr)->sin_port;
	deaf = full;
	before[0].ai_next = &before[1];
	before[1].ai_next = *ret_found;
	*ret_found = before;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
	__real_freeaddrinfo(several ? found->ai_next->ai_next : found);
}

/* Answer one command; what is made, and what is passed on, has so many bytes. */
static void answer(FILE *to, const struct kh_command *command, uint64_t make, uint64_t pass)
{
	struct kh_reply offer = { .kind = KH_OFFER, .bytes = make, .text = "here" };
	struct kh_reply reply = { .kind = KH_TOOK, .bytes = BYTES };
	char line[KH_LINE_BYTES];

	if (command->verb == KH_FREE)
		reply.kind = KH_FREED;
	if (command->verb != KH_MAKE) {
		kh_reply_format(&reply, line);
		fputs(line, to);
	}
	if (command->verb == KH_PASS)
		offer.bytes = pass;
	if (command->verb == KH_MAKE || command->verb == KH_PASS) {
		kh_reply_format(&offer, line);
		fputs(line, to);
	}
	fflush(to);
}

static void function(int fd, uint64_t make, uint64_t pass)
{
	FILE *from = fdopen(fd, "r"), *to = fdopen(dup(fd), "w");
	struct kh_command command;
	struct kh_start start;
	char line[KH_LINE_BYTES];
	int lines = 0;

	while (from && to && fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = '\0';
		if (lines++ ? kh_command_parse(line, &command) : kh_start_parse(line, &start))
			break;
		if (lines > 1)
			answer(to, &command, make, pass);
	}
}

static struct test_played begin(uint64_t make, uint64_t pass)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	socklen_t len = sizeof(at);
	struct test_played runner;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(listen(listener, 8), 0);
	snprintf(runner.node, sizeof(runner.node), "127.0.0.1:%u", ntohs(at.sin_port));
	runner.pid = fork();
	assert_true(runner.pid >= 0);
	if (!runner.pid) {
		signal(SIGCHLD, SIG_IGN);
		while ((fd = accept(listener, NULL, NULL)) >= 0) {
			if (!fork()) {
				close(listener);
				function(fd, make, pass);
				_exit(0);
			}
			close(fd);
		}
		_exit(1);
	}
	close(listener);
	return runner;
}

static void end(const struct test_played *runner)
{
	kill(runner->pid, SIGKILL);
	assert_int_equal(waitpid(runner->pid, NULL, 0), runner->pid);
}

/* Run a command in a process of its own. Return: its status; *@ret_said what it said of errors. */
static int call(int (*command)(struct kh_args *args), char *first, char *second, char *third,
		char ret_said[512])
{
	char *words[] = { (char[]){ "100" }, first, second, third };
	struct kh_args args = { .function = "f",
				.times = 1,
				.parallel = 1,
				.timeout_ms = 30000,
				.argc = 4,
				.argv = words };
	int log = memfd_create("stderr", MFD_CLOEXEC), status;
	pid_t pid = fork();
	ssize_t got;

	assert_true(log >= 0 && pid >= 0);
	if (!pid) {
		dup2(log, STDERR_FILENO);
		exit(command(&args));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	got = pread(log, ret_said, 511, 0);
	assert_true(got >= 0);
	ret_said[got] = '\0';
	close(log);
	return WEXITSTATUS(status);
}

/* An offer of another length than was asked for is none. */
static void test_length_of_an_offer(void **state)
{
	struct test_played good = begin(BYTES, BYTES), make = begin(BYTES - 1, BYTES);
	struct test_played pass = begin(BYTES, BYTES + 1);
	char said[512], expected[128];

	(void)state;
	assert_int_equal(call(kh_chain, good.node, good.node, good.node, said), 0);
	assert_string_equal(said, "");
	assert_int_equal(call(kh_spread, good.node, pass.node, make.node, said), 0);
	snprintf(expected, sizeof(expected), "krcore-handoff: %s: it offers 99 bytes, not 100\n",
		 make.node);
	assert_int_equal(call(kh_chain, make.node, good.node, good.node, said), KH_FAILED);
	assert_string_equal(said, expected);
	assert_int_equal(call(kh_spread, make.node, good.node, good.node, said), KH_FAILED);
	assert_string_equal(said, expected);
	snprintf(expected, sizeof(expected), "krcore-handoff: %s: it offers 101 bytes, not 100\n",
		 pass.node);
	assert_int_equal(call(kh_chain, good.node, pass.node, good.node, said), KH_FAILED);
	assert_string_equal(said, expected);
	end(&good);
	end(&make);
	end(&pass);
}

/* A name has several addresses, and a runner at the last: one refuses before, and one is deaf. */
static void test_addresses_of_a_name(void **state)
{
	struct test_played runner = begin(BYTES, BYTES);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[8], i;
	const struct kh_command command = { .verb = KH_FREE };
	struct kh_link link = { .function = "f", .timeout_ms = 1000, .fd = -1 };
	socklen_t len = sizeof(full);
	struct kh_reply reply;

	(void)state;
	full = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(listener, (struct sockaddr *)&full, sizeof(full)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&full, &len), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (i = 0; i < 8; i++) { /* as many as nobody accepts: the next one hears nothing */
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fds[i], (const struct sockaddr *)&full, sizeof(full));
	}
	several = true;
	link.node = runner.node;
	assert_int_equal(kh_link_tell(&link, &command), 0);
	link.timeout_ms = 30000;
	assert_int_equal(kh_link_hear(&link, KH_FREED, &reply), 0);
	kh_link_close(&link);
	end(&runner); /* what the last one says is what is told */
	link.timeout_ms = 1000;
	assert_int_equal(kh_link_tell(&link, &command), -EIO);
	assert_string_equal(link.why, "connecting to its runner: Connection refused");
	several = false;
	for (i = 0; i < 8; i++)
		close(fds[i]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length_of_an_offer),
		cmocka_unit_test(test_addresses_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
