// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages between programs, as the library asks the module for them: what each function puts into
 * its system call, what it makes of the answer, and what it refuses by itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "client/include/krcore/message.h"
#include "client/lib/node.h"
#include "proto/krp_ioctl.h"
#include "tests/unit/wrap_ioctl.h"

#define TEST_FD 7
#define TEST_ARG_MAX 256

/*
 * The module: what it was asked, the errno that it gives (0: none), and what it changes in the
 * argument before.
 */
static unsigned long test_request;
static union {
	uint8_t bytes[TEST_ARG_MAX];
	struct krp_inbox inbox;
	struct krp_bind bind;
	struct krp_open open;
	struct krp_accept accept;
	struct krp_send send;
	struct krp_recv recv;
	struct krp_large large;
	struct krp_cancel cancel;
	struct krp_shut shut;
	struct krp_post_recv post_recv;
	struct krp_wait wait;
} test_arg;
static int test_errno;
static void (*test_answer)(void *arg);
static unsigned int test_calls;

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	assert_int_equal(fd, TEST_FD);
	assert_true(_IOC_SIZE(request) <= sizeof(test_arg));
	test_request = request;
	memset(&test_arg, 0, sizeof(test_arg));
	memcpy(&test_arg, arg, _IOC_SIZE(request));
	test_calls++;
	if (test_answer)
		test_answer(arg);
	errno = test_errno;
	return test_errno ? -1 : 0;
}

static int test_begin(void **state)
{
	(void)state;
	test_request = 0;
	test_errno = 0;
	test_answer = NULL;
	test_calls = 0;
	return 0;
}

static struct krp_ring test_ring;
static struct krcore_node test_node = { .fd = TEST_FD, .ring = { .shared = &test_ring } };
static const struct krcore_key test_key = { .gid = { [10] = 0xff, [11] = 0xff, 10, 77, 0, 21 },
					    .service = 300 };

static void test_inbox_and_listen(void **state)
{
	(void)state;
	assert_int_equal(krcore_inbox_create(&test_node, 0, 0), 0);
	assert_int_equal(test_request, KRP_IOC_INBOX);
	assert_int_equal(test_arg.inbox.bytes, 1 << 20);
	assert_int_equal(test_arg.inbox.depth, 256);
	assert_int_equal(krcore_inbox_create(&test_node, 8192, 3), 0);
	assert_int_equal(test_arg.inbox.bytes, 8192);
	assert_int_equal(test_arg.inbox.depth, 3);

	assert_int_equal(krcore_listen(&test_node, 300, 0, 0), 0);
	assert_int_equal(test_request, KRP_IOC_BIND);
	assert_int_equal(test_arg.bind.service, 300);
	assert_int_equal(test_arg.bind.flags, KRP_BIND_LISTEN);
	assert_int_equal(test_arg.bind.backlog, 16);
	assert_int_equal(test_arg.bind.timeout_ms, 5000);
	assert_int_equal(krcore_listen(&test_node, 301, 9, 77), 0);
	assert_int_equal(test_arg.bind.backlog, 9);
	assert_int_equal(test_arg.bind.timeout_ms, 77);

	test_errno = EADDRINUSE;
	assert_int_equal(krcore_listen(&test_node, 301, 9, 77), -EADDRINUSE);
	assert_non_null(strstr(krcore_error_text(), "301"));
	/* a program that only binds does not listen */
	test_errno = 0;
	assert_int_equal(krcore_bind(&test_node, 300, 0), 0);
	assert_int_equal(test_arg.bind.flags, 0);
	assert_int_equal(test_arg.bind.backlog, 0);
}

static void test_opened(void *arg)
{
	((struct krp_open *)arg)->connection = 12;
}

static void test_connect(void **state)
{
	const struct krcore_send_wr first = { .length = 3 };
	struct krcore_connection_options opts = {
		.size = sizeof(opts),
		.user = "who",
		.user_len = 3,
		.depth = 5,
		.timeout_ms = 700,
		.flags = KRCORE_CONNECT_FRESH,
		.first = &first,
	};
	uint32_t connection = 99;

	(void)state;
	test_answer = test_opened;
	assert_int_equal(krcore_connect(&test_node, &test_key, NULL, &connection), 0);
	assert_int_equal(connection, 12);
	assert_int_equal(test_request, KRP_IOC_OPEN);
	assert_memory_equal(test_arg.open.gid, test_key.gid, sizeof(test_key.gid));
	assert_int_equal(test_arg.open.service, 300);
	assert_int_equal(test_arg.open.depth, 64);
	assert_int_equal(test_arg.open.timeout_ms, 5000);
	assert_int_equal(test_arg.open.first, 0);
	assert_int_equal(test_arg.open.user_len, 0);
	assert_int_equal(test_arg.open.connection, 0);

	assert_int_equal(krcore_connect(&test_node, &test_key, &opts, &connection), 0);
	assert_int_equal(test_arg.open.depth, 5);
	assert_int_equal(test_arg.open.timeout_ms, 700);
	assert_int_equal(test_arg.open.flags, KRP_OPEN_FRESH);
	assert_int_equal(test_arg.open.first, (uintptr_t)&first);
	assert_int_equal(test_arg.open.user_len, 3);
	assert_memory_equal(test_arg.open.user, "who\0", 4);

	test_errno = ENOENT;
	connection = 99;
	assert_int_equal(krcore_connect(&test_node, &test_key, &opts, &connection), -ENOENT);
	assert_int_equal(connection, 99);
	assert_non_null(strstr(krcore_error_text(), "10.77.0.21"));
}

static void test_options_refused(void **state)
{
	static const uint8_t user[KRCORE_USER_MAX + 1];
	struct krcore_connection_options opts = { .size = sizeof(opts), .user = user };
	uint32_t connection = 99;

	(void)state;
	opts.user_len = sizeof(user);
	assert_int_equal(krcore_connect(&test_node, &test_key, &opts, &connection), -EINVAL);
	assert_int_equal(krcore_accept(&test_node, 3, &opts), -EINVAL);
	opts.user_len = 1;
	opts.user = NULL;
	assert_int_equal(krcore_accept(&test_node, 3, &opts), -EINVAL);
	opts.user_len = 0;
	opts.size = sizeof(opts) + 1;
	assert_int_equal(krcore_accept(&test_node, 3, &opts), -EINVAL);
	opts.size = 0;
	assert_int_equal(krcore_connect(&test_node, &test_key, &opts, &connection), -EINVAL);
	assert_int_equal(test_calls, 0);
	assert_int_equal(connection, 99);
}

static void test_accept(void **state)
{
	const struct krcore_connection_options opts = {
		.size = sizeof(opts),
		.user = "yes",
		.user_len = 3,
		.depth = 9,
	};

	(void)state;
	assert_int_equal(krcore_accept(&test_node, 44, &opts), 0);
	assert_int_equal(test_request, KRP_IOC_ACCEPT);
	assert_int_equal(test_arg.accept.connection, 44);
	assert_int_equal(test_arg.accept.flags, 0);
	assert_int_equal(test_arg.accept.depth, 9);
	assert_int_equal(test_arg.accept.user_len, 3);
	assert_memory_equal(test_arg.accept.user, "yes\0", 4);
	/* the module wants all else to be zero */
	assert_int_equal(krcore_refuse(&test_node, 45), 0);
	assert_int_equal(test_arg.accept.connection, 45);
	assert_int_equal(test_arg.accept.flags, KRP_ACCEPT_REFUSE);
	assert_int_equal(test_arg.accept.depth, 0);
	test_errno = ENOENT;
	assert_int_equal(krcore_refuse(&test_node, 45), -ENOENT);
}

static struct krp_send_wr test_sent;

static void test_taken(void *arg)
{
	struct krp_send *send = arg;

	memcpy(&test_sent, (const void *)(uintptr_t)send->wrs, sizeof(test_sent));
	send->taken = 2;
	send->error = -EPIPE;
}

static void test_send(void **state)
{
	const struct krcore_mr mr = { .handle = 8 };
	struct krcore_send_wr wrs[3] = { { .imm = 5, .flags = KRCORE_SEND_HURRY } };
	char data[16];
	int error = 1;

	(void)state;
	test_answer = test_taken;
	assert_int_equal(krcore_send_many(&test_node, wrs, 3, &error), 2);
	assert_int_equal(error, -EPIPE);
	assert_int_equal(test_request, KRP_IOC_SEND);
	assert_int_equal(test_arg.send.count, 3);
	assert_int_equal(test_arg.send.wrs, (uintptr_t)wrs);
	assert_int_equal(test_sent.imm, 5);

	assert_int_equal(krcore_send(&test_node, 3, data, 16, 42), 0);
	assert_int_equal(test_arg.send.count, 1);
	assert_int_equal(test_sent.user_data, 42);
	assert_int_equal(test_sent.addr, (uintptr_t)data);
	assert_int_equal(test_sent.connection, 3);
	assert_int_equal(test_sent.mr, 0);
	assert_int_equal(test_sent.length, 16);

	assert_int_equal(krcore_send_large(&test_node, 3, &mr, data, 7, 43), 0);
	assert_int_equal(test_sent.mr, 8);
	assert_int_equal(test_sent.length, 7);
	test_calls = 0;
	/* its length would be cut */
	assert_int_equal(krcore_send(&test_node, 3, data, (1ULL << 32) + 1, 0), -EMSGSIZE);
	assert_int_equal(test_calls, 0);

	test_errno = EAGAIN;
	error = 1;
	assert_int_equal(krcore_send_many(&test_node, wrs, 1, &error), -EAGAIN);
	assert_int_equal(error, 1);
	assert_int_equal(krcore_send(&test_node, 3, data, 16, 42), -EAGAIN);
}

static void test_came(void *arg)
{
	((struct krp_recv *)arg)->taken = 4;
}

static void test_too_small(void *arg)
{
	((struct krp_recv *)arg)->used = 4000;
}

static void test_recv(void **state)
{
	struct krcore_letter letters[8];
	char buffer[100];

	(void)state;
	test_answer = test_came;
	assert_int_equal(krcore_recv(&test_node, letters, 8, buffer, sizeof(buffer), -1), 4);
	assert_int_equal(test_request, KRP_IOC_RECV);
	assert_int_equal(test_arg.recv.letters, (uintptr_t)letters);
	assert_int_equal(test_arg.recv.buffer, (uintptr_t)buffer);
	assert_int_equal(test_arg.recv.count, 8);
	assert_int_equal(test_arg.recv.bytes, 100);
	assert_int_equal(test_arg.recv.timeout_ms, KRP_WAIT_FOREVER);
	assert_int_equal(krcore_recv(&test_node, letters, 8, buffer, 1ULL << 40, 30), 4);
	assert_int_equal(test_arg.recv.bytes, UINT32_MAX);
	assert_int_equal(test_arg.recv.timeout_ms, 30);
	test_answer = NULL;
	test_errno = EAGAIN;
	assert_int_equal(krcore_recv(&test_node, letters, 8, buffer, sizeof(buffer), 0), 0);
	test_errno = ETIMEDOUT;
	assert_int_equal(krcore_recv(&test_node, letters, 8, buffer, sizeof(buffer), 5),
			 -ETIMEDOUT);
	test_errno = EMSGSIZE;
	test_answer = test_too_small;
	assert_int_equal(krcore_recv(&test_node, letters, 8, buffer, sizeof(buffer), 5), -EMSGSIZE);
	assert_non_null(strstr(krcore_error_text(), "4000"));
}

/* One wait for both; what the ring has needs no call. */
static void test_wait_any(void **state)
{
	(void)state;
	assert_int_equal(krcore_wait_any(&test_node, 30), 0);
	assert_int_equal(test_request, KRP_IOC_WAIT);
	assert_int_equal(test_arg.wait.flags, KRP_WAIT_LETTERS);
	assert_int_equal(test_arg.wait.timeout_ms, 30);
	assert_int_equal(krcore_wait(&test_node, -1), 0);
	assert_int_equal(test_arg.wait.flags, 0);
	assert_int_equal(test_arg.wait.timeout_ms, KRP_WAIT_FOREVER);
	test_errno = ETIMEDOUT;
	assert_int_equal(krcore_wait_any(&test_node, 0), -ETIMEDOUT);
	assert_non_null(strstr(krcore_error_text(), "letter"));
	test_errno = ENODEV;
	assert_int_equal(krcore_wait_any(&test_node, -1), -ENODEV);
	assert_int_equal(test_calls, 4);
	test_ring.tail = 1;
	assert_int_equal(krcore_wait_any(&test_node, -1), 0);
	assert_int_equal(test_calls, 4);
	test_ring.tail = 0;
}

static void test_letter_peer(void **state)
{
	struct krcore_letter letter = { .kind = KRCORE_LETTER_OFFER, .offset = 8, .bytes = 64 };
	struct krcore_peer peer = { .service = 1 }, want = { .service = 300, .generation = 77 };
	char buffer[8 + sizeof(peer)] = { 0 };

	(void)state;
	memcpy(buffer + 8, &want, sizeof(want));
	assert_int_equal(krcore_letter_peer(&letter, buffer, &peer), 0);
	assert_memory_equal(&peer, &want, sizeof(want));
	letter.kind = KRCORE_LETTER_OPENED;
	assert_int_equal(krcore_letter_peer(&letter, buffer, &peer), 0);
	letter.kind = KRCORE_LETTER_MESSAGE; /* of 64 bytes */
	peer.service = 1;
	assert_int_equal(krcore_letter_peer(&letter, buffer, &peer), -EINVAL);
	assert_int_equal(peer.service, 1);
}

static void test_large(void **state)
{
	const struct krcore_letter letter = {
		.kind = KRCORE_LETTER_LARGE, .connection = 5, .seq = 1ULL << 40, .length = 1000
	};
	const struct krcore_letter other = { .kind = KRCORE_LETTER_MESSAGE };
	const struct krcore_mr mr = { .handle = 8 };
	char place[64];

	(void)state;
	assert_int_equal(
		krcore_fetch(&test_node, &letter, 100, &mr, place, 64, KRCORE_FETCH_KEEP, 31), 0);
	assert_int_equal(test_request, KRP_IOC_LARGE);
	assert_int_equal(test_arg.large.seq, 1ULL << 40);
	assert_int_equal(test_arg.large.connection, 5);
	assert_int_equal(test_arg.large.flags, KRP_LARGE_KEEP);
	assert_int_equal(test_arg.large.user_data, 31);
	assert_int_equal(test_arg.large.addr, (uintptr_t)place);
	assert_int_equal(test_arg.large.offset, 100);
	assert_int_equal(test_arg.large.mr, 8);
	assert_int_equal(test_arg.large.length, 64);
	assert_int_equal(krcore_discard(&test_node, &letter), 0);
	assert_int_equal(test_arg.large.flags, KRP_LARGE_DISCARD);
	assert_int_equal(test_arg.large.seq, 1ULL << 40);
	assert_int_equal(test_arg.large.length, 0);
	test_calls = 0;
	assert_int_equal(krcore_fetch(&test_node, &letter, 0, &mr, place, 64, KRP_LARGE_DISCARD, 0),
			 -EINVAL);
	assert_int_equal(krcore_fetch(&test_node, &other, 0, &mr, place, 64, 0, 0), -EINVAL);
	assert_int_equal(krcore_discard(&test_node, &other), -EINVAL);
	assert_int_equal(test_calls, 0);
	test_errno = EBUSY;
	assert_int_equal(krcore_discard(&test_node, &letter), -EBUSY);
}

static void test_posted(void **state)
{
	const struct krcore_letter letter = {
		.kind = KRCORE_LETTER_LARGE, .flags = KRCORE_LETTER_POSTED, .seq = 9, .length = 64
	};
	const struct krcore_mr mr = { .handle = 8 };
	char place[64];

	(void)state;
	assert_int_equal(krcore_post_recv(&test_node, &mr, place, sizeof(place), 9), 0);
	assert_int_equal(test_request, KRP_IOC_POST_RECV);
	assert_int_equal(test_arg.post_recv.user_data, 9);
	assert_int_equal(test_arg.post_recv.addr, (uintptr_t)place);
	assert_int_equal(test_arg.post_recv.mr, 8);
	assert_int_equal(test_arg.post_recv.length, 64);
	assert_int_equal(test_arg.post_recv.messages, 1);
	assert_int_equal(test_arg.post_recv.least, 0);
	assert_int_equal(test_arg.post_recv.flags, 0);
	assert_int_equal(krcore_post_recv_multi(&test_node, &mr, place, sizeof(place), 4, 16, 9),
			 0);
	assert_int_equal(test_arg.post_recv.length, 64);
	assert_int_equal(test_arg.post_recv.messages, 4);
	assert_int_equal(test_arg.post_recv.least, 16);
	assert_int_equal(krcore_cancel_recv(&test_node, 9), 0);
	assert_int_equal(test_arg.post_recv.user_data, 9);
	assert_int_equal(test_arg.post_recv.flags, KRP_RECV_CANCEL);
	assert_int_equal(test_arg.post_recv.addr | test_arg.post_recv.mr, 0);
	/* its seq would name another message */
	test_calls = 0;
	assert_int_equal(krcore_fetch(&test_node, &letter, 0, &mr, place, 64, 0, 0), -EINVAL);
	assert_int_equal(krcore_discard(&test_node, &letter), -EINVAL);
	assert_int_equal(test_calls, 0);
	test_errno = EAGAIN;
	assert_int_equal(krcore_post_recv(&test_node, &mr, place, 64, 9), -EAGAIN);
	test_errno = ENOENT;
	assert_int_equal(krcore_cancel_recv(&test_node, 9), -ENOENT);
}

static void test_end(void **state)
{
	(void)state;
	assert_int_equal(krcore_cancel(&test_node, 5, 77), 0);
	assert_int_equal(test_request, KRP_IOC_CANCEL);
	assert_int_equal(test_arg.cancel.connection, 5);
	assert_int_equal(test_arg.cancel.user_data, 77);
	assert_int_equal(krcore_shutdown(&test_node, 5, KRCORE_SHUT_ABORT), 0);
	assert_int_equal(test_request, KRP_IOC_SHUT);
	assert_int_equal(test_arg.shut.connection, 5);
	assert_int_equal(test_arg.shut.how, KRP_SHUT_ABORT);
	test_errno = EALREADY;
	assert_int_equal(krcore_shutdown(&test_node, 5, KRCORE_SHUT_SEND), -EALREADY);
}

static void test_queried(void *arg)
{
	struct krp_conn_query *query = arg;

	query->state = KRP_CONN_OPEN;
	query->peer.service = 300;
	query->sent = 1ULL << 33;
	query->received = 6;
	query->waiting = 1;
	query->unacked = 2;
	query->window = 3;
	query->backlog = 4;
	query->foreign = 9;
}

static void test_query(void **state)
{
	struct krcore_connection_info info = { .size = 8 };

	(void)state;
	assert_int_equal(krcore_connection_query(&test_node, 5, &info), -EINVAL);
	assert_int_equal(test_calls, 0);
	info.size = sizeof(info);
	test_answer = test_queried;
	assert_int_equal(krcore_connection_query(&test_node, 5, &info), 0);
	assert_int_equal(info.size, sizeof(info));
	assert_int_equal(info.state, KRCORE_CONNECTION_OPEN);
	assert_int_equal(info.peer.service, 300);
	assert_int_equal(info.sent, 1ULL << 33);
	assert_int_equal(info.received, 6);
	assert_int_equal(info.waiting, 1);
	assert_int_equal(info.unacked, 2);
	assert_int_equal(info.window, 3);
	assert_int_equal(info.backlog, 4);
	assert_int_equal(info.foreign, 9);
	test_errno = ENOENT;
	info.received = 1;
	assert_int_equal(krcore_connection_query(&test_node, 5, &info), -ENOENT);
	assert_int_equal(info.received, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_inbox_and_listen, test_begin),
		cmocka_unit_test_setup(test_connect, test_begin),
		cmocka_unit_test_setup(test_options_refused, test_begin),
		cmocka_unit_test_setup(test_accept, test_begin),
		cmocka_unit_test_setup(test_send, test_begin),
		cmocka_unit_test_setup(test_recv, test_begin),
		cmocka_unit_test_setup(test_wait_any, test_begin),
		cmocka_unit_test_setup(test_letter_peer, test_begin),
		cmocka_unit_test_setup(test_large, test_begin),
		cmocka_unit_test_setup(test_posted, test_begin),
		cmocka_unit_test_setup(test_end, test_begin),
		cmocka_unit_test_setup(test_query, test_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
