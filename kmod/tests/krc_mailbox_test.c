// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what programs see of messages, from the calls down: kmod/user/mailbox.c, talk.c, send.c and
 * recv.c, with memory of a program, on the second of two ports with a NIC in memory each. The first
 * port has streams without programs, which do what a test says.
 * Locking: a test runs alone.
 */
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "krc_stream_test.h"
#include "node/port.h"
#include "user/after.h"
#include "user/context.h"
#include "user/queue.h"
#include "user/recv.h"
#include "user/send.h"
#include "user/talk.h"
#include "user/wait.h"

#define KRC_TEST_PAGES 2 /* of an inbox */
#define KRC_TEST_DEPTH 4 /* messages under way */
#define KRC_TEST_LETTERS 16
#define KRC_TEST_BUFFER 8192

/**
 * struct krc_test_box - A program with a mailbox.
 * @w: ports; the first member, since it is what other code finds in test->priv.
 * @port: as contexts know the second one.
 * @ctx: context, NULL: closed.
 * @user: memory of the program: letters, then their bytes.
 * @letter: the letters that were taken last.
 * @bytes: their bytes.
 * @woken: how often sleepers of the context were woken.
 * @sleeper: one.
 */
struct krc_test_box {
	struct krc_test_world w;
	struct krc_port port;
	struct krc_context *ctx;
	unsigned long user;
	struct krp_letter letter[KRC_TEST_LETTERS];
	u8 bytes[KRC_TEST_BUFFER];
	u32 woken;
	wait_queue_entry_t sleeper;
};

static struct krc_test_box *krc_test_box_of(struct kunit *test)
{
	return container_of((struct krc_test_world *)test->priv, struct krc_test_box, w);
}

/* ---- the program */

static void krc_test_port_release(struct krc_rail *rail)
{
	krc_rail_fini(rail);
}

/* krc_pool_watch.stopped, as kmod/user/context.c has it. */
static void krc_test_stopped(struct krc_pool_watch *watch)
{
	struct krc_context *ctx = container_of(watch, struct krc_context, watch);

	WRITE_ONCE(ctx->dead, true);
}

static int krc_test_woken(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	container_of(entry, struct krc_test_box, sleeper)->woken++;
	return 0;
}

static void krc_test_inbox(struct krc_test_box *b, u32 pages, u32 depth, int err)
{
	struct krp_inbox arg = { .bytes = pages * KRP_INBOX_BYTES_MIN, .depth = depth };

	KUNIT_ASSERT_EQ(b->w.test, krc_ioc_inbox(b->ctx, &arg), err);
}

static int krc_test_box_make(struct kunit *test)
{
	struct krc_test_box *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	krc_test_world_set(test, &b->w);
	b->user = kunit_vm_mmap(test, NULL, 0, 2 * KRC_TEST_BUFFER, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, b->user, 0UL);
	KUNIT_ASSERT_EQ(test, krc_rail_init(&b->port.rail, krc_test_port_release), 0);
	b->port.messages = b->w.side[1].messages;
	b->port.pool = b->w.side[1].pool;
	b->ctx = krc_context_open();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b->ctx);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&b->ctx->ring, 64), 0);
	b->ctx->watch.stopped = krc_test_stopped;
	KUNIT_ASSERT_EQ(test, krc_pool_watch(b->port.pool, &b->ctx->watch), 0);
	krc_rail_get(&b->port.rail);
	smp_store_release(&b->ctx->port, &b->port); /* pairs with krc_context_port() */
	init_waitqueue_func_entry(&b->sleeper, krc_test_woken);
	add_wait_queue(&b->ctx->wait, &b->sleeper);
	return 0;
}

/* The program ends; what it had is given back. */
static void krc_test_box_close(struct krc_test_box *b)
{
	u32 i;

	if (IS_ERR_OR_NULL(b->ctx))
		return;
	remove_wait_queue(&b->ctx->wait, &b->sleeper);
	krc_context_close(b->ctx);
	b->ctx = NULL;
	for (i = 0; i < KRC_TEST_LIMIT_MS && kref_read(&b->port.rail.ref) > 1; i++) {
		krc_test_move(&b->w);
		usleep_range(1000, 1100);
	}
	KUNIT_EXPECT_EQ(b->w.test, kref_read(&b->port.rail.ref), 1U);
}

static void krc_test_box_end(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);

	b->w.stuck = false;
	krc_test_box_close(b);
	krc_test_world_end(test);
	krc_rail_put(&b->port.rail);
}

/* The port of the program ends. */
static void krc_test_box_port_ends(struct krc_test_box *b)
{
	krc_rail_kill(&b->port.rail);
	krc_test_side_end(&b->w.side[1]);
	krc_rail_wait_idle(&b->port.rail);
}

/* ---- its calls */

static int krc_test_take(struct krc_test_box *b, u32 count, u32 bytes, u32 *ret_used)
{
	struct krp_recv arg = { .letters = b->user,
				.buffer = b->user + KRC_TEST_BUFFER,
				.count = count,
				.bytes = bytes };
	int err = krc_ioc_recv(b->ctx, &arg);

	if (ret_used)
		*ret_used = arg.used;
	if (err)
		return err;
	KUNIT_ASSERT_EQ(b->w.test,
			copy_from_user(b->letter, u64_to_user_ptr(arg.letters), sizeof(b->letter)),
			0UL);
	KUNIT_ASSERT_EQ(b->w.test, copy_from_user(b->bytes, u64_to_user_ptr(arg.buffer), arg.used),
			0UL);
	return arg.taken;
}

/* Take one letter, waiting for it. Return: it. */
static const struct krp_letter *krc_test_next(struct krc_test_box *b, u8 kind)
{
	krc_test_until(&b->w, krc_mailbox_pending(krc_mailbox_of(b->ctx)));
	KUNIT_ASSERT_EQ(b->w.test, krc_test_take(b, 1, KRC_TEST_BUFFER, NULL), 1);
	KUNIT_ASSERT_EQ(b->w.test, b->letter[0].kind, kind);
	return &b->letter[0];
}

static int krc_test_take_offer(struct krc_test_box *b, u32 connection)
{
	struct krp_accept arg = { .connection = connection, .depth = KRC_TEST_DEPTH };

	return krc_ioc_accept(b->ctx, &arg);
}

static int krc_test_shut(struct krc_test_box *b, u32 connection, u32 how)
{
	struct krp_shut arg = { .connection = connection, .how = how };

	return krc_ioc_shut(b->ctx, &arg);
}

static struct krc_listener *krc_test_hear(struct krc_test_box *b, u32 backlog)
{
	return krc_mailbox_listen(b->ctx, KRC_TEST_SERVICE, backlog);
}

/* Have the program connected to a stream of the first port. Return: number of the connection. */
static u32 krc_test_joined(struct krc_test_box *b, struct krc_test_program *a)
{
	u32 opened = a->opened, id;

	krc_test_connect(&b->w, a, NULL);
	id = krc_test_next(b, KRP_LETTER_OFFER)->connection;
	KUNIT_ASSERT_EQ(b->w.test, krc_test_take_offer(b, id), 0);
	krc_test_until(&b->w, READ_ONCE(a->opened) > opened);
	return id;
}

/*
 * An inbox, a service that is listened to, and a connection, whose number is set in *@ret_id if
 * that is not NULL. Return: the listener.
 */
static struct krc_listener *krc_test_talking(struct krc_test_box *b, struct krc_test_program *a,
					     u32 backlog, u32 *ret_id)
{
	struct krc_listener *l;
	u32 id;

	krc_test_inbox(b, KRC_TEST_PAGES, KRC_TEST_DEPTH, 0);
	l = krc_test_hear(b, backlog);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(b->w.test, l);
	id = krc_test_joined(b, a);
	if (ret_id)
		*ret_id = id;
	return l;
}

/* What connection @id says of itself. */
static struct krp_conn_query krc_test_query(struct krc_test_box *b, u32 id)
{
	struct krp_conn_query query = { .connection = id };

	KUNIT_EXPECT_EQ(b->w.test, krc_ioc_conn_query(b->ctx, &query), 0);
	return query;
}

static int krc_test_send(struct krc_test_box *b, u32 id, u32 count)
{
	struct krp_send_wr wr = { .connection = id, .addr = b->user, .length = 4 };
	struct krp_send arg = { .wrs = b->user + 64, .count = count };
	u32 i;

	for (i = 0; i < count; i++)
		KUNIT_ASSERT_EQ(b->w.test,
				copy_to_user(u64_to_user_ptr(arg.wrs + i * sizeof(wr)), &wr,
					     sizeof(wr)),
				0UL);
	return krc_ioc_send(b->ctx, &arg) ?: arg.taken;
}

/* ---- what is received */

/* That the peer has sent all is told before that it has gone, also if it went at once. */
static void krc_test_the_end_is_told_before_the_death(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_listener *l;
	u32 id;

	l = krc_test_talking(b, a, 1, &id);
	krc_test_say(a, 2, 40);
	KUNIT_EXPECT_EQ(test, krc_stream_shut(a->stream), 0);
	krc_test_until(&b->w, READ_ONCE(a->done) == 2);
	krc_test_next(b, KRP_LETTER_MESSAGE);
	krc_test_next(b, KRP_LETTER_MESSAGE);
	krc_test_until(&b->w, krc_mailbox_pending(krc_mailbox_of(b->ctx)));
	krc_test_close(a, true);
	krc_test_until(&b->w, krc_test_query(b, id).state == KRP_CONN_DEAD);
	krc_test_until(&b->w, !READ_ONCE(b->w.side[1].messages->streams_nr)); /* all is told */
	KUNIT_EXPECT_EQ(test, krc_test_take(b, KRC_TEST_LETTERS, KRC_TEST_BUFFER, NULL), 2);
	KUNIT_EXPECT_EQ(test, b->letter[0].kind, KRP_LETTER_ENDED);
	KUNIT_EXPECT_EQ(test, b->letter[1].kind, KRP_LETTER_DIED);
	KUNIT_EXPECT_EQ(test, b->letter[1].status, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, krc_test_take(b, KRC_TEST_LETTERS, KRC_TEST_BUFFER, NULL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_CLOSE), 0);
	krc_mailbox_unlisten(l);
}

/* A connection that has died with letters of its own is not looked at when others are taken. */
static void krc_test_the_dead_wait_for_their_letters(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_mailbox *box;
	struct krc_listener *l;

	l = krc_test_talking(b, a, 1, NULL);
	krc_test_say(a, 2, 40);
	krc_test_until(&b->w, READ_ONCE(a->done) == 2);
	krc_test_close(a, true);
	krc_test_until(&b->w, !READ_ONCE(b->w.side[1].messages->streams_nr));
	box = krc_mailbox_of(b->ctx);
	KUNIT_EXPECT_TRUE(test, list_empty(&box->news));
	krc_test_next(b, KRP_LETTER_MESSAGE);
	KUNIT_EXPECT_TRUE(test, list_empty(&box->news));
	krc_test_next(b, KRP_LETTER_MESSAGE);
	KUNIT_EXPECT_FALSE(test, list_empty(&box->news));
	krc_test_next(b, KRP_LETTER_DIED);
	krc_mailbox_unlisten(l);
}

/* A letter without room stays, says how much it needs, and another thread is told of it. */
static void krc_test_what_does_not_fit_stays(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_listener *l;
	u32 used, id;

	l = krc_test_talking(b, a, 1, &id);
	krc_test_say(a, 1, 40);
	krc_test_until(&b->w, READ_ONCE(a->done) == 1);
	krc_test_quiet(&b->w); /* that it has come was told */
	b->woken = 0;
	KUNIT_EXPECT_EQ(test, krc_test_take(b, 1, 39, &used), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, used, 40U);
	KUNIT_EXPECT_EQ(test, b->woken, 1U);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).backlog, 1U);
	KUNIT_EXPECT_EQ(test, krc_test_take(b, 1, 40, &used), 1);
	KUNIT_EXPECT_EQ(test, b->letter[0].length, 40U);
	KUNIT_EXPECT_EQ(test, b->letter[0].connection, id);
	KUNIT_EXPECT_EQ(test, b->bytes[39], 0);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).backlog, 0U);
	krc_mailbox_unlisten(l);
}

/* A task that waits takes nothing of what has come for others: it might get no processor. */
static void krc_test_a_waiter_holds_nothing_of_others(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_messages *m = b->w.side[1].messages;
	struct krp_wait wait = { .timeout_ms = 20, .flags = KRP_WAIT_LETTERS };
	struct krc_listener *l;
	u64 packets;

	l = krc_test_talking(b, a, 1, NULL);
	flush_work(&m->receive.work);
	m->receive.deaf = true; /* the work item comes late */
	packets = atomic64_read(&m->count[KRC_COUNT_PACKETS]);
	krc_test_say(a, 1, 40);
	krc_test_move(&b->w);
	KUNIT_EXPECT_EQ(test, krc_test_take(b, 1, KRC_TEST_BUFFER, NULL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, krc_ioc_wait(b->ctx, &wait), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&m->count[KRC_COUNT_PACKETS]), packets);
	m->receive.deaf = false;
	krc_messages_on_received(m);
	krc_test_next(b, KRP_LETTER_MESSAGE);
	krc_mailbox_unlisten(l);
}

/* ---- what a program may have */

/* Offers that wait are bounded by the inbox, also if the program listens anew again and again. */
static void krc_test_offers_are_bounded(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_listener *l, *more;
	u32 id;

	krc_test_inbox(b, KRC_TEST_PAGES, KRC_TEST_DEPTH, 0);
	KUNIT_EXPECT_PTR_EQ(test, krc_test_hear(b, KRC_TEST_PAGES + 1),
			    (struct krc_listener *)ERR_PTR(-ENOSPC));
	l = krc_test_hear(b, KRC_TEST_PAGES);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, l);
	krc_test_connect(&b->w, a, NULL);
	id = krc_test_next(b, KRP_LETTER_OFFER)->connection;
	krc_mailbox_unlisten(l);
	more = krc_test_hear(b, 1); /* the offer is still there */
	KUNIT_EXPECT_PTR_EQ(test, more, (struct krc_listener *)ERR_PTR(-ENOSPC));
	if (!IS_ERR(more))
		krc_mailbox_unlisten(more);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_CLOSE), 0);
	l = krc_test_hear(b, KRC_TEST_PAGES);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, l);
	krc_test_until(&b->w, READ_ONCE(a->died));
	KUNIT_EXPECT_EQ(test, a->err, -ECONNREFUSED);
	krc_mailbox_unlisten(l);
}

static void krc_test_an_inbox_is_made_once(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_user *user = b->ctx->user;
	struct krp_inbox odd = { .bytes = KRP_INBOX_BYTES_MIN + 1, .depth = 1 };
	struct krc_messages *m = b->port.messages;

	KUNIT_EXPECT_EQ(test, krc_ioc_inbox(b->ctx, &odd), -EINVAL);
	krc_test_inbox(b, 0, 1, -EINVAL);
	krc_test_inbox(b, 1, 0, -EINVAL);
	krc_test_inbox(b, 1, 65, -ENOSPC); /* the ring has 64 */
	b->port.messages = NULL;
	krc_test_inbox(b, 1, 1, -EOPNOTSUPP);
	b->port.messages = m;
	KUNIT_ASSERT_EQ(test, krc_charge_inbox(user, KRC_INBOX_PAGES_USER - 1), 0);
	krc_test_inbox(b, 2, 1, -EDQUOT);
	KUNIT_EXPECT_PTR_EQ(test, krc_mailbox_of(b->ctx), (struct krc_mailbox *)NULL);
	krc_test_inbox(b, 1, 64, 0); /* what was refused has taken nothing */
	krc_test_inbox(b, 1, 1, -EALREADY);
	krc_uncharge_inbox(user, KRC_INBOX_PAGES_USER - 1);
}

/* As many messages are under way as was said, and what is beyond that is refused whole. */
static void krc_test_depth_is_kept(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = &b->w.side[0].end[0];
	struct krc_listener *l;
	u32 id;

	krc_test_inbox(b, KRC_TEST_PAGES, KRC_TEST_DEPTH, 0);
	KUNIT_EXPECT_EQ(test, krc_test_send(b, 1, 1), -ENOENT);
	l = krc_test_hear(b, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, l);
	krc_test_connect(&b->w, a, NULL);
	id = krc_test_next(b, KRP_LETTER_OFFER)->connection;
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 1), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_SEND), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).state, KRP_CONN_OFFERED);
	KUNIT_EXPECT_EQ(test, krc_test_take_offer(b, id), 0);
	KUNIT_EXPECT_EQ(test, krc_test_take_offer(b, id), -EISCONN);
	krc_test_until(&b->w, READ_ONCE(a->opened));
	b->w.stuck = true;
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, KRC_TEST_DEPTH + 2), KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).outstanding, (u32)KRC_TEST_DEPTH);
	b->w.stuck = false;
	krc_test_until(&b->w, b->ctx->ring.tail == KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[0].status, 0);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[0].queue, id);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).outstanding, 0U);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_SEND), 0);
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 1), -EPIPE);
	krc_mailbox_unlisten(l);
}

/* A queue of the program with one request under way, as far as messages know. */
static struct krc_queue *krc_test_busy_queue(struct krc_test_box *b)
{
	struct krp_queue_create arg = { .depth = 1 };
	struct krc_queue *queue;

	KUNIT_ASSERT_EQ(b->w.test, krc_ioc_queue_create(b->ctx, &arg), 0);
	queue = krc_queue_get(b->ctx, arg.queue);
	KUNIT_ASSERT_NOT_NULL(b->w.test, queue);
	queue->posted = 1;
	return queue;
}

/* Its request completes, with an error if @failed. */
static void krc_test_queue_tells(struct krc_queue *queue, bool failed)
{
	queue->failed += failed;
	smp_store_release(&queue->completed, queue->posted); /* pairs with krc_queue_completed() */
	local_bh_disable();
	krc_after_told(queue);
	local_bh_enable();
}

/* KRP_IOC_SEND with KRP_SEND_AFTER. */
static int krc_test_send_after(struct krc_test_box *b, u32 id, const struct krc_queue *queue)
{
	struct krp_send_wr wr = { .connection = id, .flags = KRP_SEND_AFTER, .queue = queue->id };
	struct krp_send arg = { .wrs = b->user + 64, .count = 1 };

	KUNIT_ASSERT_EQ(b->w.test, copy_to_user(u64_to_user_ptr(arg.wrs), &wr, sizeof(wr)), 0UL);
	return krc_ioc_send(b->ctx, &arg) ?: arg.taken;
}

/*
 * What waits for a queue is sent when that has completed, with what stands behind it; the work item
 * waits for no task of the program, which does it instead.
 */
static void krc_test_a_message_waits_for_a_queue(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_listener *l;
	struct krc_queue *queue;
	struct krc_talk *talk;
	u32 id;

	l = krc_test_talking(b, &b->w.side[0].end[0], 1, &id);
	queue = krc_test_busy_queue(b);
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), 1);
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 1), 1);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_SEND), -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_CLOSE), -EBUSY);
	talk = krc_talk_enter(b->ctx, id);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, talk);
	krc_test_queue_tells(queue, false);
	flush_workqueue(krc_renew_wq);
	KUNIT_EXPECT_FALSE(test, list_empty(&talk->held));
	krc_talk_leave(talk);
	krc_test_until(&b->w, b->ctx->ring.tail == 2);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[0].status, 0);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).sent, 2ULL);
	/* and one of which a request fails, after one that has nothing to wait for */
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), 1);
	krc_test_until(&b->w, b->ctx->ring.tail == 3);
	queue->posted = 2;
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), 1);
	krc_test_queue_tells(queue, true);
	krc_test_until(&b->w, b->ctx->ring.tail == 4);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[3].status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).sent, 3ULL);
	/* one that still waits goes with its connection */
	queue->posted = 3;
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), 1);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, id, KRP_SHUT_ABORT), 0);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[4].status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, queue->nr_afters, 0U);
	queue->completed = queue->posted;
	krc_queue_put(queue);
	krc_mailbox_unlisten(l);
}

/* As many wait for a queue as may, and none for one that has failed or is not there. */
static void krc_test_who_may_wait_for_a_queue(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_queue *queue, nobody = { .id = 4711 };
	struct krc_listener *l;
	u32 id;

	l = krc_test_talking(b, &b->w.side[0].end[0], 1, &id);
	queue = krc_test_busy_queue(b);
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, &nobody), -ENOENT);
	queue->nr_afters = KRP_SEND_AFTER_MAX;
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), -EAGAIN);
	queue->nr_afters = 0;
	KUNIT_EXPECT_TRUE(test, krc_queue_set_state(queue, KRP_QUEUE_ERROR, -EIO));
	KUNIT_EXPECT_EQ(test, krc_test_send_after(b, id, queue), -ECANCELED);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, id).outstanding, 0U);
	queue->completed = queue->posted;
	krc_queue_put(queue);
	krc_mailbox_unlisten(l);
}

/* ---- the port ends */

/* With an offer and a connection: each is told in its way, and all is given back. */
static void krc_test_the_port_ends_under_a_program(struct kunit *test)
{
	struct krc_test_box *b = krc_test_box_of(test);
	struct krc_test_program *a = b->w.side[0].end;
	struct krc_listener *l;
	u32 id, offer;

	l = krc_test_talking(b, &a[0], 2, &id);
	krc_test_connect(&b->w, &a[1], NULL);
	offer = krc_test_next(b, KRP_LETTER_OFFER)->connection;
	b->w.stuck = true;
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 2), 2);
	krc_test_box_port_ends(b);
	/* a work item that was at it tells of it */
	krc_test_until(&b->w, READ_ONCE(b->ctx->ring.tail) == 2);
	KUNIT_EXPECT_EQ(test, b->ctx->ring.cqes[1].status, -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_next(b, KRP_LETTER_DIED)->status, -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_take(b, 1, KRC_TEST_BUFFER, NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_send(b, id, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_take_offer(b, offer), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_query(b, offer).state, KRP_CONN_OFFERED);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, offer, KRP_SHUT_ABORT), 0);
	KUNIT_EXPECT_EQ(test, krc_test_shut(b, offer, KRP_SHUT_ABORT), -ENOENT);
	krc_mailbox_unlisten(l);
}

static struct kunit_case krc_mailbox_cases[] = {
	KUNIT_CASE(krc_test_the_end_is_told_before_the_death),
	KUNIT_CASE(krc_test_the_dead_wait_for_their_letters),
	KUNIT_CASE(krc_test_what_does_not_fit_stays),
	KUNIT_CASE(krc_test_a_waiter_holds_nothing_of_others),
	KUNIT_CASE(krc_test_offers_are_bounded),
	KUNIT_CASE(krc_test_an_inbox_is_made_once),
	KUNIT_CASE(krc_test_depth_is_kept),
	KUNIT_CASE(krc_test_a_message_waits_for_a_queue),
	KUNIT_CASE(krc_test_who_may_wait_for_a_queue),
	KUNIT_CASE(krc_test_the_port_ends_under_a_program),
	{}
};

static struct kunit_suite krc_mailbox_suite = {
	.name = "krcore_mailbox",
	.init = krc_test_box_make,
	.exit = krc_test_box_end,
	.test_cases = krc_mailbox_cases,
};

kunit_test_suite(krc_mailbox_suite);
