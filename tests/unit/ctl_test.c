// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Framing and client of the control socket, against a peer that follows a
 * script: every reply it may give, and every way it may fail to.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/ctl.h"

static char dir[] = "/tmp/krcore-ctl-XXXXXX";
static char path[64];

/**
 * struct ctl_peer - A daemon that follows a script.
 * @fd: listening socket.
 * @thread: its thread.
 * @replies: what to answer to one request after the other, then NULL.
 * @linger: keep the connection open at the end until the client closes.
 * @requests: what it was sent, one after the other.
 */
struct ctl_peer {
	int fd;
	pthread_t thread;
	const char *const *replies;
	bool linger;
	char requests[4096];
};

static void *peer_run(void *arg)
{
	struct ctl_peer *peer = arg;
	int fd = accept(peer->fd, NULL, NULL);
	size_t used = 0;
	ssize_t got;

	if (fd < 0)
		return NULL;
	for (int i = 0; peer->replies[i]; i++) {
		do {
			got = read(fd, peer->requests + used, sizeof(peer->requests) - 1 - used);
			used += got > 0 ? (size_t)got : 0;
		} while (got > 0 && peer->requests[used - 1] != '\n');
		if (send(fd, peer->replies[i], strlen(peer->replies[i]), MSG_NOSIGNAL) < 0)
			break;
	}
	while (peer->linger && read(fd, peer->requests, 1) > 0)
		;
	close(fd);
	return NULL;
}

static void peer_start(struct ctl_peer *peer, const char *const *replies, bool linger)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	*peer = (struct ctl_peer){ .replies = replies, .linger = linger };
	strcpy(addr.sun_path, path);
	unlink(path);
	peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(peer->fd >= 0);
	assert_int_equal(bind(peer->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(peer->fd, 1), 0);
	assert_int_equal(pthread_create(&peer->thread, NULL, peer_run, peer), 0);
}

static void peer_stop(struct ctl_peer *peer, struct kru_ctl *ctl)
{
	kru_ctl_close(ctl);
	assert_int_equal(pthread_join(peer->thread, NULL), 0);
	close(peer->fd);
}

static void test_lines(void **state)
{
	struct kru_lines lines;
	const char *line = NULL;
	size_t bytes = 0;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(kru_lines_init(&lines, 8), 0);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), -EAGAIN);
	assert_int_equal(write(fds[1], "ab\n\ncdefghi", 11), 11);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 8);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 1);
	assert_int_equal(bytes, 2);
	assert_memory_equal(line, "ab", 2);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 1);
	assert_int_equal(bytes, 0);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 0);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 3);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 0);
	/* Seven bytes and a newline are the most that fits. */
	assert_int_equal(write(fds[1], "\nx", 2), 2);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 1);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 1);
	assert_int_equal(bytes, 7);
	assert_memory_equal(line, "cdefghi", 7);
	assert_int_equal(write(fds[1], "1234567\n", 8), 8);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 8);
	assert_int_equal(kru_lines_next(&lines, &line, &bytes), 0);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), -EMSGSIZE);
	close(fds[1]);
	kru_lines_done(&lines);
	assert_int_equal(kru_lines_init(&lines, 8), 0);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 1);
	assert_int_equal(kru_lines_fill(&lines, fds[0]), 0);
	close(fds[0]);
	kru_lines_done(&lines);
}

static void test_nobody_there(void **state)
{
	struct kru_ctl *ctl = NULL;
	char longest[200];

	(void)state;
	unlink(path);
	assert_int_equal(kru_ctl_open(path, 1000, &ctl), -ENOENT);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(kru_ctl_open(longest, 1000, &ctl), -ENAMETOOLONG);
	assert_null(ctl);
}

static void test_call(void **state)
{
	static const char *const replies[] = {
		"{\"ok\":true,\"result\":[{\"a\":1}]}\n",
		"{\"ok\":false,\"error\":\"no such record\",\"code\":-2}\n",
		"{\"ok\":false,\"code\":5}\n",
		NULL,
	};
	json_t *args = json_pack("{s:i}", "service", 3), *reply = NULL;
	struct kru_ctl *ctl = NULL;
	struct ctl_peer peer;

	(void)state;
	peer_start(&peer, replies, false);
	assert_int_equal(kru_ctl_open(path, 5000, &ctl), 0);
	assert_int_equal(kru_ctl_call(ctl, "record_get", args, &reply), 0);
	assert_int_equal(json_array_size(json_object_get(reply, "result")), 1);
	json_decref(reply);
	reply = NULL;
	assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -ENOENT);
	assert_string_equal(kru_ctl_error(ctl), "no such record");
	assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -EPROTO);
	assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -ECONNRESET);
	assert_null(reply);
	peer_stop(&peer, ctl);
	assert_string_equal(peer.requests, "{\"command\":\"record_get\",\"args\":{\"service\":3}}\n"
					   "{\"command\":\"status\"}\n{\"command\":\"status\"}\n");
	json_decref(args);
}

static bool count_items(void *arg, json_t *item)
{
	int *sum = arg;

	*sum += (int)json_integer_value(json_object_get(item, "n"));
	return *sum < 100;
}

static void test_pages(void **state)
{
	static const char *const replies[] = {
		"{\"ok\":true,\"result\":[{\"n\":1},{\"n\":2}],\"next\":7}\n",
		"{\"ok\":true,\"result\":[],\"next\":9}\n",
		"{\"ok\":true,\"result\":[{\"n\":3}]}\n",
		"{\"ok\":true,\"result\":[{\"n\":100},{\"n\":1}],\"next\":1}\n",
		NULL,
	};
	struct kru_ctl *ctl = NULL;
	struct ctl_peer peer;
	int sum = 0;

	(void)state;
	peer_start(&peer, replies, false);
	assert_int_equal(kru_ctl_open(path, 5000, &ctl), 0);
	assert_int_equal(kru_ctl_each(ctl, "records", NULL, count_items, &sum), 0);
	assert_int_equal(sum, 6);
	assert_int_equal(kru_ctl_each(ctl, "records", NULL, count_items, &sum), 0);
	assert_int_equal(sum, 106);
	peer_stop(&peer, ctl);
	assert_string_equal(peer.requests, "{\"command\":\"records\"}\n"
					   "{\"command\":\"records\",\"args\":{\"from\":7}}\n"
					   "{\"command\":\"records\",\"args\":{\"from\":9}}\n"
					   "{\"command\":\"records\"}\n");
}

static void test_bad_replies(void **state)
{
	static const char *const bad[] = { "nonsense\n",   "[]\n",
					   "\n",	   "{}\n",
					   "{\"ok\":1}\n", "{\"ok\":true,\"ok\":false}\n",
					   "\xff\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *const replies[] = { bad[i], NULL };
		struct kru_ctl *ctl = NULL;
		json_t *reply = NULL;
		struct ctl_peer peer;

		peer_start(&peer, replies, false);
		assert_int_equal(kru_ctl_open(path, 5000, &ctl), 0);
		assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -EPROTO);
		assert_true(*kru_ctl_error(ctl));
		assert_null(reply);
		peer_stop(&peer, ctl);
	}
}

static void test_silence(void **state)
{
	static const char *const replies[] = { "{\"ok\":tr", NULL };
	struct kru_ctl *ctl = NULL;
	json_t *reply = NULL;
	struct ctl_peer peer;

	(void)state;
	peer_start(&peer, replies, true);
	assert_int_equal(kru_ctl_open(path, 100, &ctl), 0);
	assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -ETIMEDOUT);
	assert_int_equal(kru_ctl_read(ctl, 10, &reply), -ETIMEDOUT);
	assert_null(reply);
	peer_stop(&peer, ctl);
}

static void test_too_long(void **state)
{
	static const char *const none[] = { NULL };
	char *huge = calloc(1, KRU_CTL_REPLY_BYTES + 1);
	const char *const replies[] = { huge, NULL };
	struct kru_ctl *ctl = NULL;
	json_t *args, *reply = NULL;
	struct ctl_peer peer;

	(void)state;
	assert_non_null(huge);
	memset(huge, 'x', KRU_CTL_REPLY_BYTES);
	peer_start(&peer, replies, false);
	assert_int_equal(kru_ctl_open(path, 5000, &ctl), 0);
	assert_int_equal(kru_ctl_call(ctl, "status", NULL, &reply), -EMSGSIZE);
	peer_stop(&peer, ctl);

	huge[KRU_CTL_REQUEST_BYTES] = '\0';
	args = json_pack("{s:s}", "gid", huge);
	peer_start(&peer, none, true);
	assert_int_equal(kru_ctl_open(path, 5000, &ctl), 0);
	assert_int_equal(kru_ctl_call(ctl, "status", args, &reply), -EMSGSIZE);
	peer_stop(&peer, ctl);
	json_decref(args);
	free(huge);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", dir);
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	    cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_call),	    cmocka_unit_test(test_pages),
		cmocka_unit_test(test_bad_replies), cmocka_unit_test(test_silence),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
