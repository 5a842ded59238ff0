// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines between caller, runner and function of krcore-handoff, and the frame of a function:
 * what it answers, when it takes an offer back, and that it ends with its caller.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "handoff/lib/function.h"
#include "proto/krp_hash.h"

static void test_start(void **state)
{
	static const char *const bad[] = {
		"",
		"start",
		"start ",
		"start  a",
		" start a",
		"start A",
		"start -a",
		"start a/b",
		"start ..",
		"start a ",
		"stop a",
		"start a\tb",
		"start a\x7f",
		"start a 1 2 3 4 5 6 7 8 9",
		"start abcdefghijklmnopqrstuvwxyz0123456", /* 33 */
	};
	struct kh_start start;
	size_t i;

	(void)state;
	assert_int_equal(kh_start_parse("start a", &start), 0);
	assert_string_equal(start.name, "a");
	assert_int_equal(start.argc, 0);
	assert_int_equal(kh_start_parse("start my_own-1 x=/y 2 3 4 5 6 7 8", &start), 0);
	assert_string_equal(start.name, "my_own-1");
	assert_int_equal(start.argc, 8);
	assert_string_equal(start.argv[0], "x=/y");
	assert_string_equal(start.argv[7], "8");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kh_start_parse(bad[i], &start), -EINVAL);
}

static void test_command(void **state)
{
	static const char *const good[] = { "make 1 0", "make 1073741824 18446744073709551615",
					    "take x", "pass 0a0b", "free" };
	static const char *const bad[] = {
		"",	     "make",	  "make 0 1",	"make 1073741825 1",
		"make 01 1", "make -1 1", "make 1 1 1", "make 1 18446744073709551616",
		"take",	     "take a b",  "free a",	"FREE",
		"free ",
	};
	struct kh_command command = { .bytes = 7 };
	char line[KH_LINE_BYTES], longest[KH_LINE_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kh_command_parse(bad[i], &command), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "take ", 5);
	longest[5 + KH_WORD_BYTES] = '\0';
	assert_int_equal(kh_command_parse(longest, &command), -EINVAL);
	assert_int_equal(command.bytes, 7);
	longest[5 + KH_WORD_BYTES - 1] = '\0';
	assert_int_equal(kh_command_parse(longest, &command), 0);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(kh_command_parse(good[i], &command), 0);
		assert_int_equal(kh_command_format(&command, line), strlen(good[i]) + 1);
		assert_memory_equal(line, good[i], strlen(good[i]));
	}
}

static void test_reply(void **state)
{
	static const char *const good[] = {
		"offer 0a4d0015 9216 12345", "took 9216 12345 1 22 333", "freed", "lapsed",
		"fail because of that",
	};
	static const char *const bad[] = {
		"",
		"offer",
		"offer a 0 1",
		"offer a 1",
		"offer a 1 1 1",
		"took 1 1 1 1",
		"took 1 1 1 1 x",
		"freed now",
		"fail",
		"fail ",
		"fail a\nb",
		"something",
		"offer a 1073741825 1",
	};
	struct kh_reply reply = { .bytes = 7 };
	char line[KH_LINE_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kh_reply_parse(bad[i], &reply), -EINVAL);
	assert_int_equal(reply.bytes, 7);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(kh_reply_parse(good[i], &reply), 0);
		assert_int_equal(kh_reply_format(&reply, line), strlen(good[i]) + 1);
		assert_memory_equal(line, good[i], strlen(good[i]));
	}
	assert_int_equal(reply.kind, KH_FAIL);
	assert_string_equal(reply.text, "because of that");
}

/* Whatever a function says of a failure, its caller gets one line that it can read. */
static void test_fail_text(void **state)
{
	static const char *const texts[][2] = {
		{ "", "fail ?\n" },	      { " ", "fail ?\n" },    { " a", "fail a\n" },
		{ "a \n b\t", "fail a b\n" }, { "\x80", "fail ?\n" }, { "a", "fail a\n" },
	};
	struct kh_reply reply = { .kind = KH_FAIL };
	char line[KH_LINE_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		strcpy(reply.text, texts[i][0]);
		assert_int_equal(kh_reply_format(&reply, line), strlen(texts[i][1]));
		assert_string_equal(line, texts[i][1]);
	}
	memset(reply.text, 'x', sizeof(reply.text) - 1);
	reply.text[sizeof(reply.text) - 1] = '\0';
	assert_int_equal(kh_reply_format(&reply, line), KH_LINE_BYTES - 1);
}

static void test_hex(void **state)
{
	uint8_t bytes[3] = { 0x00, 0x9a, 0xff };
	char word[7];

	(void)state;
	kh_hex_format(bytes, 3, word);
	assert_string_equal(word, "009aff");
	kh_hex_format(bytes, 0, word);
	assert_string_equal(word, "");
	kh_hex_format(bytes, 3, word);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(kh_hex_parse(word, bytes, 3), 3);
	assert_int_equal(bytes[2], 0xff);
	assert_int_equal(kh_hex_parse(word, bytes, 2), -EINVAL);
	assert_int_equal(kh_hex_parse("", bytes, 3), 0);
	assert_int_equal(kh_hex_parse("0", bytes, 3), -EINVAL);
	assert_int_equal(kh_hex_parse("0A", bytes, 3), -EINVAL);
	assert_int_equal(kh_hex_parse("0g", bytes, 3), -EINVAL);
}

/* -- the frame: a function whose data never leave its process ----------------------- */

#define TEST_ROOM 4096

static uint8_t test_data[TEST_ROOM], test_stored[TEST_ROOM];
static size_t test_bytes;
static int test_standing; /* offers, for the exit status */
static int test_held; /* memory of an offer, as well */

#define TEST_NO_OFFER 13 /* bytes that cannot be offered */

static uint8_t *test_room(void *state, size_t bytes)
{
	(void)state;
	test_standing = 0;
	test_bytes = bytes;
	test_held = 1;
	return bytes <= TEST_ROOM ? test_data : NULL;
}

static int test_offer(void *state, char *ret_word)
{
	(void)state;
	if (test_bytes == TEST_NO_OFFER)
		return -ENOMEM;
	strcpy(ret_word, "here");
	memcpy(test_stored, test_data, test_bytes);
	test_standing = 1;
	return 0;
}

static int test_take(void *state, const char *word, struct kh_taken *ret_taken)
{
	(void)state;
	if (strcmp(word, "here") != 0 || !test_standing)
		return -ENOENT;
	*ret_taken = (struct kh_taken){ test_stored, test_bytes, 11, 22 };
	return 0;
}

static void test_release(void *state)
{
	(void)state;
	test_standing = 0;
	test_held = 0;
}

static const char *test_why(void *state)
{
	(void)state;
	return test_held ? "held" : "not\nthere";
}

static const struct kh_ops test_ops = { test_room, test_offer, test_take, test_release, test_why };

/** struct test_function - One that runs in a child. @pid: child. @fd: connection to it. */
struct test_function {
	pid_t pid;
	int fd;
};

static void test_say(const struct test_function *f, const char *text)
{
	assert_int_equal(send(f->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A function that finds this when it starts, however short its time is. */
static struct test_function test_begin_with(const char *lease, const char *first)
{
	struct test_function f;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	f.fd = fds[0];
	test_say(&f, first);
	f.pid = fork();
	assert_true(f.pid >= 0);
	if (!f.pid) {
		char born[32];

		snprintf(born, sizeof(born), "%llu", (unsigned long long)kh_now() - 1000);
		setenv(KH_ENV_BORN, born, 1);
		setenv(KH_ENV_LEASE, lease, 1);
		dup2(fds[1], 0);
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		_exit(kh_function_run(&test_ops, NULL) ? 1 : 2 * test_standing);
	}
	close(fds[1]);
	return f;
}

static struct test_function test_begin(const char *lease)
{
	return test_begin_with(lease, "");
}

/* The next line, parsed. */
static struct kh_reply test_hear(const struct test_function *f)
{
	char line[KH_LINE_BYTES];
	struct kh_reply reply;
	size_t len = 0;

	do
		assert_int_equal(read(f->fd, &line[len], 1), 1);
	while (line[len++] != '\n' && len < sizeof(line));
	line[len - 1] = '\0';
	assert_int_equal(kh_reply_parse(line, &reply), 0);
	return reply;
}

/* It ends with its caller, and nothing stands any more. */
static void test_end(const struct test_function *f)
{
	char c;
	int status;

	shutdown(f->fd, SHUT_WR);
	assert_int_equal(read(f->fd, &c, 1), 0);
	close(f->fd);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_int_equal(status, 0);
}

static void test_function(void **state)
{
	struct test_function f = test_begin("60000");
	struct kh_reply offer, took, again;
	char line[2 * KH_LINE_BYTES];

	(void)state;
	test_say(&f, "make 1001 5\n");
	offer = test_hear(&f);
	assert_int_equal(offer.kind, KH_OFFER);
	assert_int_equal(offer.bytes, 1001);
	assert_string_equal(offer.text, "here");
	/* in two pieces, and two at once */
	test_say(&f, "ta");
	test_say(&f, "ke here\npass here\n");
	took = test_hear(&f);
	assert_int_equal(took.kind, KH_TOOK);
	assert_int_equal(took.bytes, 1001);
	assert_true(took.sum == offer.sum);
	assert_int_equal(took.start_ns, 0); /* not its first command */
	assert_int_equal(took.connect_ns, 11);
	assert_int_equal(took.read_ns, 22);
	assert_int_equal(test_hear(&f).kind, KH_TOOK);
	again = test_hear(&f);
	assert_int_equal(again.kind, KH_OFFER);
	assert_true(again.sum != offer.sum);
	test_say(&f, "free\ntake here\nmake 4097 1\nnonsense\n");
	assert_int_equal(test_hear(&f).kind, KH_FREED);
	assert_string_equal(test_hear(&f).text, "not there");
	assert_string_equal(test_hear(&f).text, "held");
	assert_int_equal(test_hear(&f).kind, KH_FAIL);
	memset(line, 'x', sizeof(line));
	line[KH_LINE_BYTES] = '\0';
	test_say(&f, line);
	assert_int_equal(test_hear(&f).kind, KH_FAIL);
	test_say(&f, "make 8 1\n");
	assert_int_equal(test_hear(&f).kind, KH_OFFER);
	test_end(&f); /* with an offer that stands */
}

/* The same seed, the same data; the sum is that of the data. */
static void test_content(void **state)
{
	struct test_function f = test_begin("60000");
	struct kh_reply first, second, third;
	const uint8_t none[64] = { 0 };

	(void)state;
	test_say(&f, "make 64 9\nmake 64 9\nmake 64 11\n");
	first = test_hear(&f);
	second = test_hear(&f);
	third = test_hear(&f);
	assert_true(first.sum == second.sum);
	assert_true(first.sum != third.sum);
	assert_true(first.sum != krp_xxh64(none, sizeof(none), 0));
	test_end(&f);
}

static void test_first_command(void **state)
{
	struct test_function f = test_begin("60000");

	(void)state;
	test_say(&f, "take there\nmake 8 1\ntake here\n");
	assert_int_equal(test_hear(&f).kind, KH_FAIL);
	assert_int_equal(test_hear(&f).kind, KH_OFFER);
	assert_int_equal(test_hear(&f).start_ns, 0);
	test_end(&f);
}

static void test_lease(void **state)
{
	struct test_function f = test_begin("20");

	(void)state;
	test_say(&f, "make 8 1\n");
	assert_int_equal(test_hear(&f).kind, KH_OFFER);
	assert_int_equal(test_hear(&f).kind, KH_LAPSED); /* without a word of ours */
	test_say(&f, "take here\nfree\n");
	assert_int_equal(test_hear(&f).kind, KH_FAIL);
	assert_int_equal(test_hear(&f).kind, KH_FREED);
	test_end(&f);
}

/* What cannot be offered is not kept either: no lease would ever end it. */
static void test_failed_offer(void **state)
{
	static const char *const makes[] = { "make 13 1\n", "make 4097 1\n" };
	struct test_function f = test_begin("60000");
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
		test_say(&f, makes[i]);
		assert_string_equal(test_hear(&f).text, "held"); /* when it failed */
		test_say(&f, "take it\n");
		assert_string_equal(test_hear(&f).text, "not there");
	}
	test_end(&f);
}

/* Wait until a function ends by itself. */
static void test_ends(const struct test_function *f)
{
	int status, i;

	for (i = 0; i < 6000; i++) {
		if (waitpid(f->pid, &status, WNOHANG) == f->pid) {
			assert_int_equal(status, 0);
			close(f->fd);
			return;
		}
		usleep(10000);
	}
	kill(f->pid, SIGKILL);
	fail_msg("it does not end");
}

/* It does not wait for ever for a caller that says nothing, unless others may want its data. */
static void test_idle(void **state)
{
	struct test_function f;
	unsigned int i;

	(void)state;
	setenv(KH_ENV_IDLE, "20", 1);
	f = test_begin("60000");
	test_ends(&f);
	f = test_begin_with("60000", "make 8 1\n");
	assert_int_equal(test_hear(&f).kind, KH_OFFER);
	usleep(200000);
	test_say(&f, "take here\nfree\n");
	assert_int_equal(test_hear(&f).kind, KH_TOOK);
	assert_int_equal(test_hear(&f).kind, KH_FREED);
	test_ends(&f);
	/* bytes that are no line are nothing */
	f = test_begin("60000");
	for (i = 0; i < KH_LINE_BYTES / 2 && send(f.fd, "x", 1, MSG_NOSIGNAL) == 1; i++)
		usleep(5000);
	assert_true(i < KH_LINE_BYTES / 2);
	test_ends(&f);
	unsetenv(KH_ENV_IDLE);
}

/* A caller that does not read: the lease ends all the same. */
static void test_caller_that_does_not_read(void **state)
{
	struct test_function f = test_begin("300");
	static const char take[] = "take here\n";
	int i;

	(void)state;
	test_say(&f, "make 8 1\n");
	for (i = 0; i < 100000; i++)
		if (send(f.fd, take, strlen(take), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno != EAGAIN)
				break;
			usleep(1000);
		}
	test_ends(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),	cmocka_unit_test(test_command),
		cmocka_unit_test(test_reply),	cmocka_unit_test(test_fail_text),
		cmocka_unit_test(test_hex),	cmocka_unit_test(test_function),
		cmocka_unit_test(test_content), cmocka_unit_test(test_first_command),
		cmocka_unit_test(test_lease),	cmocka_unit_test(test_failed_offer),
		cmocka_unit_test(test_idle),	cmocka_unit_test(test_caller_that_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
