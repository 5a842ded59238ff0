/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the KUnit suites of the MetaServer client share: a session between the machine of
 * proto/krp_session.h and a NIC in memory, which keeps what is sent. The test plays the server, and
 * is the work item.
 * Locking: a test runs alone; meta.lock where the client would have it.
 */
#ifndef KRC_SESSION_TEST_H
#define KRC_SESSION_TEST_H

#include <kunit/test.h>

#include "krp_session.h"
#include "meta/meta_priv.h"

#define KRC_TEST_SERVICE 300
#define KRC_TEST_SLOTS 4
#define KRC_TEST_POSTS 16

/**
 * struct krc_test_post - What the NIC was given.
 * @cqe: completion; NULL once it was said.
 * @bytes: length.
 * @msg: message.
 */
struct krc_test_post {
	struct ib_cqe *cqe;
	u32 bytes;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];
};

/**
 * struct krc_test_link - A session with a server that the test plays.
 * @ibdev: NIC in memory.
 * @qp: queue pair.
 * @cq: completion queue.
 * @pd: protection domain.
 * @id: connection.
 * @meta: client.
 * @s: its session.
 * @conn: what the driver has of the connection.
 * @posts: messages, the oldest first.
 * @posts_nr: length of @posts.
 * @refuse: what posting returns; 0: it works.
 * @read: READ that was posted last; NULL once it was completed.
 */
struct krc_test_link {
	struct ib_device ibdev;
	struct ib_qp qp;
	struct ib_cq cq;
	struct ib_pd pd;
	struct rdma_cm_id id;
	struct krc_meta meta;
	struct krc_meta_session s;
	struct krc_meta_conn *conn;
	struct krc_test_post posts[KRC_TEST_POSTS];
	u32 posts_nr;
	int refuse;
	struct ib_cqe *read;
};

/**
 * krc_link_unhex() - Make bytes of hex.
 * @test: test.
 * @text: hex digits, which may have spaces.
 * @buf: out.
 * @max: length of @buf; more fails the test.
 *
 * Context: test.
 * Return: how many bytes.
 */
u32 krc_link_unhex(struct kunit *test, const char *text, void *buf, size_t max);

/**
 * krc_link_complete() - The NIC has sent a message, and does not need the buffer any more.
 * @l: session.
 * @i: which of @l->posts; nothing happens if it was said before.
 *
 * Context: test.
 */
void krc_link_complete(struct krc_test_link *l, u32 i);

/**
 * krc_link_take() - Complete and take the oldest message.
 * @l: session.
 * @ret: out: KRP_MSG_BYTES_MAX.
 *
 * Context: test.
 * Return: its length in bytes; 0: there is none.
 */
u32 krc_link_take(struct krc_test_link *l, void *ret);

/**
 * krc_link_work() - What the work item would do, until there is nothing.
 * @test: test.
 * @l: session.
 *
 * Context: test.
 * Return: BIT(KRP_DO_CLOSE), which is not done, or 0.
 */
u32 krc_link_work(struct kunit *test, struct krc_test_link *l);

/**
 * krc_link_conn() - Make a connection, with the parts that the driver touches.
 * @test: test.
 * @l: session; its conn is set, and that of the session is not.
 *
 * Context: test.
 */
void krc_link_conn(struct kunit *test, struct krc_test_link *l);

/**
 * krc_link_new() - Make a client with a session that is not started.
 * @test: test.
 * @slots: requests under way at most, at least 2.
 *
 * Context: test.
 * Return: it, for krc_link_free().
 */
struct krc_test_link *krc_link_new(struct kunit *test, u32 slots);

/**
 * krc_link_start() - Start the session.
 * @l: session.
 *
 * Context: test.
 */
void krc_link_start(struct krc_test_link *l);

/**
 * krc_link_ready() - krc_link_new() with KRC_TEST_SLOTS, and have the session attached.
 * @test: test.
 *
 * Context: test.
 * Return: a session that is ready and has no request under way, for krc_link_free().
 */
struct krc_test_link *krc_link_ready(struct kunit *test);

/**
 * krc_link_unplug() - Take from a connection what is the NIC's, which is none: so it can end.
 * @conn: connection.
 *
 * Context: test.
 */
void krc_link_unplug(struct krc_meta_conn *conn);

/**
 * krc_link_free() - End a session.
 * @l: session; without conn, if the test has ended that.
 *
 * Context: test.
 */
void krc_link_free(struct krc_test_link *l);

/**
 * krc_link_publish() - Publish a record.
 * @test: test.
 * @l: session.
 * @service: its service.
 *
 * Context: test.
 */
void krc_link_publish(struct kunit *test, struct krc_test_link *l, u16 service);

/**
 * krc_link_lines() - Play the transcript: give the server's words, compare the driver's.
 * @test: test.
 * @l: session.
 * @from: first line, from 1.
 * @to: last line.
 *
 * Context: test.
 */
void krc_link_lines(struct kunit *test, struct krc_test_link *l, u32 from, u32 to);

#endif /* KRC_SESSION_TEST_H */
