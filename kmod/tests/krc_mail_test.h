/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the KUnit suites of messages of other modules share: a client on the second of two ports, and what
 * it was told.
 * Locking: a test runs alone; callbacks of a client come one after the other.
 */
#ifndef KRC_MAIL_TEST_H
#define KRC_MAIL_TEST_H

#include <linux/completion.h>

#include "api/box_priv.h"
#include "krc_stream_test.h"
#include "node/port.h"

#define KRC_TEST_MAIL_PAGES 2 /* of the inbox */
#define KRC_TEST_MAIL_HELD 256 /* letters that a client can keep */
#define KRC_TEST_MAIL_ORDER 2 /* pages of a region: half of it is the client's, half its peer's */
#define KRC_TEST_MAIL_LARGE (PAGE_SIZE << (KRC_TEST_MAIL_ORDER - 1)) /* bytes of a half */

/**
 * struct krc_test_mail - A client.
 * @w: ports; the first member, since it is what other code finds in test->priv.
 * @port: as the client knows the second one.
 * @client: client, NULL: closed.
 * @listener: its listener, or NULL.
 * @conn: the connection that was accepted or opened last, or NULL: it was closed.
 * @ops: callbacks of connections.
 * @memory: of @region, and of the peer.
 * @region: region of the client, of which no directory knows.
 * @mr: it.
 * @refuse: offers are not accepted.
 * @echo: messages are sent back, and kept until that has ended.
 * @keep: messages are kept.
 * @closing: the connection is closed when a message comes, or when it is opened.
 * @block: offered() and opened() wait for @unblock.
 * @inside: it does.
 * @unblock: see @block.
 * @offered: callbacks, as are those up to @died.
 * @opened: likewise.
 * @received: likewise.
 * @ended: likewise.
 * @died: likewise.
 * @err: what @died said.
 * @order: what was told, one letter each.
 * @done: messages that have ended.
 * @failed: of these, with an error.
 * @status: that of the last one.
 * @disorder: those that were not behind the one before.
 * @barred: those that a close told of, when nothing else could be done with their connection.
 * @peer: whom the last offer was of.
 * @kept: letters that the client has.
 * @kept_nr: how many.
 */
struct krc_test_mail {
	struct krc_test_world w;
	struct krc_port port;
	struct krcore_client *client;
	struct krcore_listener *listener;
	struct krcore_conn *conn;
	struct krcore_conn_ops ops;
	u8 *memory;
	struct krcore_region region;
	struct krc_mr mr;
	bool refuse;
	bool echo;
	bool keep;
	bool closing;
	bool block;
	bool inside;
	struct completion unblock;
	u32 offered;
	u32 opened;
	u32 received;
	u32 ended;
	u32 died;
	int err;
	char order[16];
	u32 done;
	u32 failed;
	int status;
	u32 disorder;
	u32 barred;
	struct krcore_peer peer;
	struct krcore_letter *kept[KRC_TEST_MAIL_HELD];
	u32 kept_nr;
};

/**
 * krc_test_mail_of() - The client of a test.
 * @test: the KUnit test, whose krc_test_mail_init() has run.
 *
 * Return: it.
 */
static inline struct krc_test_mail *krc_test_mail_of(struct kunit *test)
{
	return container_of((struct krc_test_world *)test->priv, struct krc_test_mail, w);
}

/**
 * krc_test_mail_init() - Begin: both ports are up, and the client is open.
 * @test: the KUnit test; its priv becomes the world.
 *
 * Return: 0; a failed assertion ends the test.
 */
int krc_test_mail_init(struct kunit *test);

/**
 * krc_test_mail_exit() - End: all is closed, and nothing is left.
 * @test: the KUnit test.
 */
void krc_test_mail_exit(struct kunit *test);

/**
 * krc_test_mail_joined() - Have the client connected to a stream of the first port.
 * @t: client; krc_test_mail.conn is the connection.
 * @a: program of the first port.
 */
void krc_test_mail_joined(struct krc_test_mail *t, struct krc_test_program *a);

/**
 * krc_test_mail_done() - A message or READ has ended: krcore_send.done, krcore_fetch.done.
 * @conn: connection.
 * @arg: its number, from 0.
 * @status: how.
 */
void krc_test_mail_done(struct krcore_conn *conn, void *arg, int status);

#endif /* KRC_MAIL_TEST_H */
