// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: tasks that look up over a session with a MetaServer: who gets a READ slot that many wait
 * for (meta/read.c, meta/table.c), who is blamed for what, what a connection of before may still
 * do, what a miss is worth whose server settles, and which READ is followed by a question
 * (meta/meta.c). NIC and server are those of krc_session_test.h.
 * Linked into krcore.ko.
 */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "krc_session_test.h"
#include "krc_test_wait.h"

#define KRC_TEST_READERS 4
#define KRC_TEST_LONG_MS (3600 * 1000)

/* ---- tasks that look up */

/**
 * struct krc_test_reader - A task that asks the server.
 * @l: session.
 * @thread: the task.
 * @payer: on whose account.
 * @timeout_ms: how long it waits.
 * @err: what came of it, once @ended.
 * @ended: its place among those that have ended, from 1; 0: it has not.
 * @value: the record's value, if there is one.
 * @miss: what a miss is worth.
 */
struct krc_test_reader {
	struct krc_test_link *l;
	struct task_struct *thread;
	const void *payer;
	u32 timeout_ms;
	int err;
	u32 ended;
	struct krp_value value;
	enum krc_miss miss;
};

static atomic_t krc_test_ended;

static void krc_test_reader_end(struct krc_test_reader *reader, int err)
{
	reader->err = err;
	WRITE_ONCE(reader->ended, atomic_inc_return(&krc_test_ended));
	while (!kthread_should_stop()) {
		flush_signals(current);
		schedule_timeout_interruptible(1);
	}
}

/* READ the root, which is torn if the test puts none there: nothing is learnt from it then. */
static int krc_test_reads(void *arg)
{
	struct krc_test_reader *reader = arg;
	struct krc_meta_query q = { .payer = reader->payer,
				    .deadline = jiffies + msecs_to_jiffies(reader->timeout_ms) };
	struct krp_pulse pulse;

	allow_signal(SIGKILL);
	krc_test_reader_end(reader, krc_meta_table_pulse(reader->l->conn, &q, &pulse));
	return 0;
}

static const struct krp_key krc_test_key = { .gid = { 0xfe, 0x80 }, .service = cpu_to_le16(1) };

static int krc_test_asks(void *arg)
{
	struct krc_test_reader *reader = arg;

	allow_signal(SIGKILL);
	krc_test_reader_end(reader, krc_meta_lookup(&reader->l->meta, reader->payer, &krc_test_key,
						    reader->timeout_ms, &reader->value, NULL,
						    &reader->miss));
	return 0;
}

static void krc_test_reader_begin(struct kunit *test, struct krc_test_link *l,
				  struct krc_test_reader *reader, int (*does)(void *arg))
{
	reader->l = l;
	reader->thread = kthread_run(does, reader, "krc_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(reader->thread));
}

/* A session whose READ slots are all in use, so that tasks wait for one. */
static struct krc_test_link *krc_test_no_slot(struct kunit *test)
{
	struct krc_test_link *l = krc_link_new(test, KRC_TEST_SLOTS);
	struct krc_meta_conn *conn = l->conn;
	u32 i;

	krc_link_start(l);
	krp_pulse_start(&conn->table.pulse, 1, 0);
	krp_pulse_settling(&conn->table.pulse);
	for (i = 0; i < KRC_META_READS; i++)
		conn->slots.at[i].posted = true;
	atomic_set(&krc_test_ended, 0);
	return l;
}

/* The NIC has done the READ that was posted last. */
static void krc_test_read_ends(struct krc_test_link *l, enum ib_wc_status status)
{
	struct ib_wc wc = { .wr_cqe = l->read, .status = status };

	WRITE_ONCE(l->read, NULL);
	wc.wr_cqe->done(&l->cq, &wc);
}

static void krc_test_read_done(struct krc_test_link *l)
{
	krc_test_read_ends(l, IB_WC_SUCCESS);
}

/* The NIC has done a READ in the first slot, for which nobody waits any more. */
static void krc_test_slot_free(struct krc_test_link *l)
{
	atomic_inc(&l->conn->posted);
	l->read = &l->conn->slots.at[0].cqe;
	krc_test_read_done(l);
}

/* Nobody waits, nothing is posted, and of the slots only the first is free. */
static void krc_test_only_one_is_free(struct kunit *test, struct krc_test_link *l)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, l->conn->slots.line.waiting, 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&l->conn->slots.line.heads));
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->posted), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->send_cq.unpolled), 0);
	for (i = 0; i < KRC_META_READS; i++) {
		KUNIT_EXPECT_EQ(test, l->conn->slots.at[i].posted, i != 0);
		KUNIT_EXPECT_FALSE(test, l->conn->slots.at[i].blocked);
		KUNIT_EXPECT_NULL(test, l->conn->slots.at[i].fetch);
	}
}

/* A payer with many tasks that wait for a slot delays another one by one of them. */
static void krc_test_slots_are_shared_by_payers(struct kunit *test)
{
	static const u8 payers[KRC_TEST_READERS] = { 0, 0, 0, 1 };
	static const u32 place[KRC_TEST_READERS] = { 1, 3, 4, 2 };
	struct krc_test_reader reader[KRC_TEST_READERS] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < KRC_TEST_READERS; i++) {
		reader[i].payer = &payers[payers[i] * 3];
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
		krc_test_wait(test, READ_ONCE(l->conn->slots.line.waiting) == i + 1);
	}
	krc_test_slot_free(l);
	for (i = 1; i <= KRC_TEST_READERS; i++) {
		krc_test_wait(test, READ_ONCE(l->read));
		if (!l->read)
			break;
		krc_test_read_done(l);
		krc_test_wait(test, atomic_read(&krc_test_ended) == i);
	}
	for (i = 0; i < KRC_TEST_READERS; i++) {
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].ended, place[i]);
		KUNIT_EXPECT_EQ(test, reader[i].err, 0);
	}
	krc_test_only_one_is_free(test, l);
	krc_link_free(l);
}

/*
 * What waits for a slot is posted by the NIC's word alone, and a READ that is over has none: no
 * task need run for that, also if each of them is preempted all the while.
 */
static void krc_test_slots_need_no_task(struct kunit *test)
{
	struct krc_test_reader reader[KRC_TEST_READERS] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < KRC_TEST_READERS; i++) {
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
	}
	krc_test_wait(test, READ_ONCE(l->conn->slots.line.waiting) == KRC_TEST_READERS);
	/* nor does a task that polls for its own READ: the queue is armed for those that wait */
	krc_test_wait(test, atomic_read(&l->conn->send_cq.unpolled) == KRC_TEST_READERS);
	krc_test_slot_free(l);
	for (i = 0; i < KRC_TEST_READERS; i++) {
		KUNIT_ASSERT_NOT_NULL(test, l->read); /* and no task was waited for */
		krc_test_read_done(l);
	}
	krc_test_only_one_is_free(test, l);
	for (i = 0; i < KRC_TEST_READERS; i++) {
		krc_test_wait(test, READ_ONCE(reader[i].ended));
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].err, 0);
	}
	krc_link_free(l);
}

/* A task that gives up its wait for a slot, or has one when it is killed, leaves nothing behind. */
static void krc_test_a_wait_for_a_slot_that_ends(struct kunit *test)
{
	struct krc_test_reader reader[3] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		reader[i].timeout_ms = i == 1 ? 1 : KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
	}
	krc_test_wait(test,
		      READ_ONCE(l->conn->slots.line.waiting) == 2 && READ_ONCE(reader[1].ended));
	KUNIT_EXPECT_EQ(test, reader[1].err, -ETIME);
	send_sig(SIGKILL, reader[0].thread, 1);
	krc_test_wait(test, READ_ONCE(reader[0].ended));
	KUNIT_EXPECT_EQ(test, reader[0].err, -EINTR);
	KUNIT_EXPECT_EQ(test, l->conn->slots.line.waiting, 1U);
	KUNIT_EXPECT_NULL(test, l->read);
	krc_test_slot_free(l);
	send_sig(SIGKILL, reader[2].thread, 1);
	krc_test_wait(test, READ_ONCE(reader[2].ended));
	KUNIT_EXPECT_EQ(test, reader[2].err, -EINTR);
	if (l->read) /* it was posted, and is the NIC's */
		krc_test_read_done(l);
	for (i = 0; i < ARRAY_SIZE(reader); i++)
		kthread_stop(reader[i].thread);
	krc_test_only_one_is_free(test, l);
	krc_link_free(l);
}

/* With the connection each wait for one of its slots ends. */
static void krc_test_no_slot_will_come(struct kunit *test)
{
	struct krc_test_reader reader[2] = {};
	struct krc_test_link *l = krc_test_no_slot(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_reads);
	}
	krc_test_wait(test, READ_ONCE(l->conn->slots.line.waiting) == ARRAY_SIZE(reader));
	krc_meta_reads_stop(l->conn);
	krc_test_slot_free(l);
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		krc_test_wait(test, READ_ONCE(reader[i].ended));
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].err, -ENOTCONN);
	}
	krc_test_only_one_is_free(test, l);
	krc_link_free(l);
}

/* ---- silence */

/* A table of one page that is never READ, whose look-ups are READs. */
static void krc_test_map(struct kunit *test, struct krc_test_link *l)
{
	struct krp_map *map = kzalloc(sizeof(*map), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, map);
	map->dir = kvzalloc(sizeof(*map->dir), GFP_KERNEL);
	map->segments = kvzalloc(sizeof(*map->segments), GFP_KERNEL);
	map->segments_nr = 1;
	l->conn->table.map = map;
	l->conn->table.loads = 1;
	KUNIT_ASSERT_TRUE(test, map->dir && map->segments);
}

/* A look-up of a task, for @timeout_ms. Return: what came of it. */
static int krc_test_looked_up(struct kunit *test, struct krc_test_link *l, u32 timeout_ms)
{
	struct krc_test_reader reader = { .timeout_ms = timeout_ms };

	krc_test_reader_begin(test, l, &reader, krc_test_asks);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	return reader.err;
}

/* One whose server has half a second to answer a READ or a question. */
static struct krc_test_link *krc_test_hurried(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);

	WRITE_ONCE(l->meta.conf.timeout_ms, 2000);
	return l;
}

/* No READ and no question of the task gets its turn: that says nothing about the server. */
static void krc_test_who_waits_its_turn_blames_nobody(struct kunit *test)
{
	struct krc_test_link *l = krc_test_hurried(test);
	u32 i;

	l->s.krp.slots.credits = 0;
	KUNIT_EXPECT_EQ(test, krc_test_looked_up(test, l, KRC_TEST_LONG_MS),
			-ENOTCONN); /* there is no other server */
	KUNIT_EXPECT_EQ(test, l->posts_nr, 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	krc_test_map(test, l);
	for (i = 0; i < KRC_META_READS; i++)
		l->conn->slots.at[i].posted = true;
	KUNIT_EXPECT_EQ(test, krc_test_looked_up(test, l, 700), -ETIMEDOUT);
	KUNIT_EXPECT_NULL(test, l->read);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	krc_link_free(l);
}

/* A question, and then a READ, that the server does not answer. */
static void krc_test_who_is_silent_is_blamed(struct kunit *test)
{
	struct krc_test_link *l = krc_test_hurried(test);

	KUNIT_EXPECT_EQ(test, krc_test_looked_up(test, l, KRC_TEST_LONG_MS), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, l->posts_nr, 1U);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, (u32)KRP_BLAME);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	krc_link_complete(l, 0);
	krc_test_map(test, l);
	KUNIT_EXPECT_EQ(test, krc_test_looked_up(test, l, KRC_TEST_LONG_MS), -ENOTCONN);
	KUNIT_ASSERT_NOT_NULL(test, l->read);
	KUNIT_EXPECT_GT(test, l->s.krp.failure.blame, (u32)KRP_BLAME);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ETIMEDOUT);
	KUNIT_EXPECT_STREQ(test, l->s.krp.failure.reason, "a READ got no answer");
	krc_test_read_done(l);
	KUNIT_EXPECT_EQ(test, atomic_read(&l->conn->posted), 0);
	krc_link_free(l);
}

/* ---- loads of the map */

/*
 * A silent server stops the load of a newer map, for which two tasks wait: each waits as long as it
 * may, and neither for the other.
 */
static void krc_test_a_load_blocks_nobody(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_test_reader reader[2] = { { .timeout_ms = KRC_TEST_LONG_MS },
					     { .timeout_ms = 20 } };
	struct krc_meta_conn *conn = l->conn;
	u32 i;

	krc_test_map(test, l);
	conn->table.map->segments_nr = 0; /* the directory names one that is newer than the map */
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		krc_test_reader_begin(test, l, &reader[i], krc_test_asks);
		krc_test_wait(test, READ_ONCE(l->read));
	}
	krc_test_wait(test, READ_ONCE(reader[1].ended));
	KUNIT_EXPECT_EQ(test, reader[1].err, -ETIMEDOUT);
	KUNIT_EXPECT_PTR_EQ(test, l->read, &conn->slots.at[KRC_META_READS].cqe);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->posted), 1);
	send_sig(SIGKILL, reader[0].thread, 1);
	krc_test_wait(test, READ_ONCE(reader[0].ended));
	KUNIT_EXPECT_EQ(test, reader[0].err, -EINTR);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	krc_test_read_ends(l, IB_WC_WR_FLUSH_ERR);
	krc_test_wait(test, READ_ONCE(conn->table.loads) == 2);
	for (i = 0; i < ARRAY_SIZE(reader); i++)
		kthread_stop(reader[i].thread);
	flush_workqueue(l->meta.wq);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1U);
	krc_link_free(l);
}

/* The root of a table of one page. */
static void krc_test_root(struct krp_root *root, u64 incarnation)
{
	root->magic = cpu_to_le64(KRP_ROOT_MAGIC);
	root->version = cpu_to_le16(KRP_TABLE_VERSION);
	root->bytes = cpu_to_le16(sizeof(*root));
	root->incarnation = cpu_to_le64(incarnation);
	root->dir_addr = cpu_to_le64(1);
	root->segments_addr = cpu_to_le64(1);
	root->segments_nr = cpu_to_le32(1);
	root->sum = cpu_to_le64(krp_root_sum(root));
}

/* A root of another incarnation proves nothing of a miss: it ends the session. */
static void krc_test_a_pulse_of_another_incarnation(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_test_reader reader = { .timeout_ms = KRC_TEST_LONG_MS };
	struct krc_meta_conn *conn = l->conn;

	krp_pulse_start(&conn->table.pulse, 1, 0);
	krp_pulse_settling(&conn->table.pulse);
	krc_test_root(conn->slots.at[0].data, conn->incarnation + 1);
	krc_test_reader_begin(test, l, &reader, krc_test_reads);
	krc_test_wait(test, READ_ONCE(l->read));
	KUNIT_ASSERT_PTR_EQ(test, l->read, &conn->slots.at[0].cqe);
	krc_test_read_done(l);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	KUNIT_EXPECT_EQ(test, reader.err, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_CLOSING);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ESTALE);
	krc_link_free(l);
}

/* How many tasks wait. */
static u32 krc_test_waiting(struct wait_queue_head *wait)
{
	struct list_head *at;
	u32 nr = 0;

	spin_lock_irq(&wait->lock);
	list_for_each(at, &wait->head) nr++;
	spin_unlock_irq(&wait->lock);
	return nr;
}

/* What a load brings is for all that wait for it: another incarnation's root ends the session. */
static void krc_test_a_load_is_for_all(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_test_reader reader[2] = { { .timeout_ms = KRC_TEST_LONG_MS },
					     { .timeout_ms = KRC_TEST_LONG_MS } };
	struct krc_meta_conn *conn = l->conn;
	u32 i;

	krc_test_map(test, l);
	conn->table.map->segments_nr = 0;
	krc_test_root(conn->slots.at[KRC_META_READS].data, conn->incarnation + 1);
	for (i = 0; i < ARRAY_SIZE(reader); i++)
		krc_test_reader_begin(test, l, &reader[i], krc_test_asks);
	krc_test_wait(test, krc_test_waiting(&conn->table.wait) == 2 && READ_ONCE(l->read));
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 4U);
	krc_test_read_done(l);
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		krc_test_wait(test, READ_ONCE(reader[i].ended));
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].err, -ENOTCONN);
	}
	flush_workqueue(l->meta.wq);
	KUNIT_EXPECT_EQ(test, conn->table.loads, 2U);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, -ESTALE);
	KUNIT_EXPECT_STREQ(test, l->s.krp.failure.reason, "the root cannot be read again");
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1U);
	krc_link_free(l);
}

/* ---- connections of before */

/* A task whose look-up has a READ under way. */
static void krc_test_reads_on(struct kunit *test, struct krc_test_link *l,
			      struct krc_test_reader *reader)
{
	reader->timeout_ms = KRC_TEST_LONG_MS;
	krc_test_map(test, l);
	krc_test_reader_begin(test, l, reader, krc_test_asks);
	krc_test_wait(test, READ_ONCE(l->conn->slots.at[0].blocked)); /* it polls no more */
	KUNIT_ASSERT_NOT_NULL(test, l->read);
}

/* A READ over a connection fails when the session has another one: that is not to blame. */
static void krc_test_a_fault_of_before(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_meta_conn *before = l->conn;
	struct krc_test_reader reader = {};

	krc_test_reads_on(test, l, &reader);
	krc_link_conn(test, l);
	spin_lock_bh(&l->meta.lock);
	l->s.conn = l->conn;
	spin_unlock_bh(&l->meta.lock);
	krc_test_read_ends(l, IB_WC_RETRY_EXC_ERR);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	KUNIT_EXPECT_EQ(test, reader.err, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_READY);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.error, 0);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	KUNIT_EXPECT_FALSE(test, l->conn->broken);
	krc_link_unplug(before);
	KUNIT_EXPECT_EQ(test, kref_read(&before->ref), 1U);
	krc_meta_conn_put(before);
	krc_link_free(l);
}

/* A connection is taken down also if a task that looks up does not run: here, a reference. */
static void krc_test_an_end_waits_for_no_task(struct kunit *test)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_meta_conn *conn = l->conn;
	struct krc_test_reader reader = {};

	/* the session is not tried again meanwhile, however long this takes */
	WRITE_ONCE(l->meta.conf.reconnect_max_ms, KRC_TEST_LONG_MS);
	WRITE_ONCE(l->meta.conf.reconnect_min_ms, KRC_TEST_LONG_MS);
	krc_test_reads_on(test, l, &reader);
	kref_get(&conn->ref);
	krc_meta_session_fail(&l->s, -EIO, "of the test");
	KUNIT_EXPECT_EQ(test, krc_link_work(test, l), (u32)BIT(KRP_DO_CLOSE));
	krc_link_unplug(conn);
	l->conn = NULL;
	krc_meta_session_close(&l->s);
	KUNIT_EXPECT_NULL(test, l->s.conn);
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_DOWN);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	KUNIT_EXPECT_EQ(test, reader.err, -ENOTCONN);
	krc_test_read_done(l); /* later than the end of the queue pair */
	krc_meta_conn_fail(conn, -EIO, "a READ of before");
	KUNIT_EXPECT_EQ(test, l->s.krp.state, KRP_SESSION_DOWN);
	KUNIT_EXPECT_STREQ(test, l->s.krp.failure.reason, "of the test");
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1U);
	krc_meta_conn_put(conn);
	KUNIT_EXPECT_EQ(test, kref_read(&l->s.ref), 1U);
	krc_link_free(l);
}

/* ---- misses */

/* The server's answer to the oldest question: @value; NULL: there is no such record. */
static void krc_test_answers(struct krc_test_link *l, const struct krp_value *value)
{
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)l->posts[0].msg;
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];

	krp_msg_init(msg, KRP_MSG_VALUE, le32_to_cpu(hdr->xid),
		     value ? KRP_ST_OK : KRP_ST_NOT_FOUND, l->s.krp.incarnation);
	if (value)
		((struct krp_value_msg *)msg)->value = *value;
	krc_meta_message(l->conn, msg, sizeof(struct krp_value_msg));
}

/* What a miss of the only server is worth that settles until @before, and then until @after. */
static enum krc_miss krc_test_missed(struct kunit *test, u64 before, u64 after, bool still)
{
	struct krc_test_link *l = krc_link_ready(test);
	struct krc_test_reader reader = { .timeout_ms = KRC_TEST_LONG_MS };

	l->s.krp.settle_ns = before;
	l->s.krp.still = still;
	krc_test_reader_begin(test, l, &reader, krc_test_asks);
	krc_test_wait(test, READ_ONCE(l->posts_nr) == 1);
	spin_lock_bh(&l->meta.lock);
	l->s.krp.settle_ns = after;
	l->s.krp.still = false;
	spin_unlock_bh(&l->meta.lock);
	krc_test_answers(l, NULL);
	krc_test_wait(test, READ_ONCE(reader.ended));
	kthread_stop(reader.thread);
	KUNIT_EXPECT_EQ(test, reader.err, -ENOENT);
	krc_link_complete(l, 0);
	krc_link_free(l);
	return reader.miss;
}

/* Settling that ended while a miss was on its way has not ended for that miss. */
static void krc_test_a_miss_of_who_settled(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 0, 0, false), KRC_MISS_PROVED);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 1, 1, false), KRC_MISS_PROVED);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, KRP_FOREVER_NS, 1, false), KRC_MISS_WEAK);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 1, KRP_FOREVER_NS, false), KRC_MISS_WEAK);
	KUNIT_EXPECT_EQ(test, krc_test_missed(test, 0, 0, true), KRC_MISS_WEAK);
}

/* ---- records kept aside */

/* The bucket of krc_test_key in the table of krc_test_map(): empty, and crowded. */
static void krc_test_crowded_bucket(struct krp_bucket *b)
{
	memset(b, 0, sizeof(*b));
	b->index = krp_bucket_index(krp_key_hash(&krc_test_key, 0), 0);
	b->state = KRP_STATE_LIVE;
	b->flags = KRP_BUCKET_CROWDED;
	b->sum = cpu_to_le64(krp_bucket_sum(b, 0, 0, b->index));
}

/*
 * A READ brings a crowded bucket without the record: the server is asked by message, and answers
 * with @value. Return: what came of it.
 */
static int krc_test_asked_aside(struct kunit *test, const struct krp_value *value,
				struct krc_test_reader *reader)
{
	struct krc_test_link *l = krc_link_ready(test);
	const struct krp_lookup_msg *question = (const struct krp_lookup_msg *)l->posts[0].msg;

	krc_test_map(test, l);
	krc_test_crowded_bucket(l->conn->slots.at[0].data);
	reader->timeout_ms = KRC_TEST_LONG_MS;
	krc_test_reader_begin(test, l, reader, krc_test_asks);
	krc_test_wait(test, READ_ONCE(l->read));
	KUNIT_EXPECT_EQ(test, l->posts_nr, 0U); /* the READ comes first */
	krc_test_read_done(l);
	krc_test_wait(test, READ_ONCE(l->posts_nr) == 1);
	KUNIT_EXPECT_EQ(test, question->hdr.type, KRP_MSG_LOOKUP);
	KUNIT_EXPECT_EQ(test, memcmp(&question->key, &krc_test_key, sizeof(krc_test_key)), 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(reader->ended), 0U); /* the READ alone proves nothing */
	krc_test_answers(l, value);
	krc_test_wait(test, READ_ONCE(reader->ended));
	kthread_stop(reader->thread);
	KUNIT_EXPECT_NULL(test, l->read); /* the root is not READ for this miss */
	KUNIT_EXPECT_EQ(test, l->s.reads, 1ULL);
	KUNIT_EXPECT_EQ(test, l->s.misses, value ? 0ULL : 1ULL);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	krc_link_complete(l, 0);
	krc_link_free(l);
	return reader->err;
}

/* What the message says is the look-up's answer, hit and miss. */
static void krc_test_a_crowded_bucket(struct kunit *test)
{
	struct krp_value value = {
		.generation = cpu_to_le64(7), .kind = KRP_KIND_RAW, .len = 1, .raw = { 0x55 }
	};
	struct krc_test_reader hit = {}, miss = {};

	KUNIT_EXPECT_EQ(test, krc_test_asked_aside(test, &value, &hit), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&hit.value, &value, sizeof(value)), 0);
	KUNIT_EXPECT_EQ(test, krc_test_asked_aside(test, NULL, &miss), -ENOENT);
	KUNIT_EXPECT_EQ(test, miss.miss, KRC_MISS_PROVED);
}

/* ---- questions */

/* A session that may have one question under way, and tasks that ask, on these accounts. */
static struct krc_test_link *krc_test_askers(struct kunit *test, struct krc_test_reader *reader,
					     const u8 *const *payer, u32 nr)
{
	struct krc_test_link *l = krc_link_ready(test);
	u32 i;

	l->s.krp.slots.credits = 1;
	atomic_set(&krc_test_ended, 0);
	for (i = 0; i < nr; i++) {
		reader[i].payer = payer[i];
		reader[i].timeout_ms = KRC_TEST_LONG_MS;
		krc_test_reader_begin(test, l, &reader[i], krc_test_asks);
		/* of those that are not sent, one is put to the session */
		if (i > 1)
			krc_test_wait(test, READ_ONCE(l->s.asks.waiting) == i - 1);
		else
			krc_test_wait(test, READ_ONCE(l->posts_nr) == 1 &&
						    krp_list_empty(&l->s.krp.asks) == !i);
	}
	return l;
}

/* A payer with many questions delays another one by two: that under way, and one that is put. */
static void krc_test_questions_are_shared_by_payers(struct kunit *test)
{
	static const u8 payers[2];
	const u8 *const payer[] = { &payers[0], &payers[0], &payers[0], &payers[0], &payers[1] };
	static const u32 place[] = { 1, 2, 3, 5, 4 };
	struct krc_test_reader reader[ARRAY_SIZE(payer)] = {};
	struct krc_test_link *l = krc_test_askers(test, reader, payer, ARRAY_SIZE(payer));
	u64 msg[KRP_MSG_BYTES_MAX / sizeof(u64)];
	u32 i;

	for (i = 1; i <= ARRAY_SIZE(reader); i++) {
		KUNIT_ASSERT_EQ(test, l->posts_nr, 1U);
		krc_test_answers(l, NULL);
		krc_test_wait(test, atomic_read(&krc_test_ended) == i);
		krc_link_take(l, msg);
	}
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		kthread_stop(reader[i].thread);
		KUNIT_EXPECT_EQ(test, reader[i].err, -ENOENT);
		KUNIT_EXPECT_EQ(test, reader[i].ended, place[i]);
	}
	KUNIT_EXPECT_EQ(test, l->s.asks.waiting, 0U);
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	krc_link_free(l);
}

/* Tasks are killed with a question in the line, put, and sent; those that stay end with the rest. */
static void krc_test_questions_that_end(struct kunit *test)
{
	static const u32 killed[] = { 3, 1, 0 };
	const u8 *const payer[KRC_TEST_READERS + 1] = {};
	struct krc_test_reader reader[KRC_TEST_READERS + 1] = {};
	struct krc_test_link *l = krc_test_askers(test, reader, payer, ARRAY_SIZE(payer));
	u32 i;

	for (i = 0; i < ARRAY_SIZE(killed); i++) {
		struct krc_test_reader *one = &reader[killed[i]];

		send_sig(SIGKILL, one->thread, 1);
		krc_test_wait(test, READ_ONCE(one->ended));
		KUNIT_EXPECT_EQ(test, one->err, -EINTR);
	}
	KUNIT_EXPECT_EQ(test, l->posts_nr, 1U); /* what was sent is not taken back */
	KUNIT_EXPECT_EQ(test, l->s.asks.waiting, 1U); /* and one has the place of that put */
	KUNIT_EXPECT_FALSE(test, krp_list_empty(&l->s.krp.asks));
	KUNIT_EXPECT_EQ(test, l->s.krp.failure.blame, 0U);
	krc_meta_session_fail(&l->s, -EIO, "of the test");
	for (i = 0; i < ARRAY_SIZE(reader); i++) {
		krc_test_wait(test, READ_ONCE(reader[i].ended));
		kthread_stop(reader[i].thread);
	}
	KUNIT_EXPECT_EQ(test, reader[2].err, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, reader[4].err, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, l->s.asks.waiting, 0U);
	KUNIT_EXPECT_TRUE(test, krp_list_empty(&l->s.krp.asks));
	krc_link_complete(l, 0);
	krc_link_free(l);
}

static struct kunit_case krc_lookups_cases[] = {
	KUNIT_CASE(krc_test_slots_are_shared_by_payers),
	KUNIT_CASE(krc_test_slots_need_no_task),
	KUNIT_CASE(krc_test_a_wait_for_a_slot_that_ends),
	KUNIT_CASE(krc_test_who_waits_its_turn_blames_nobody),
	KUNIT_CASE(krc_test_who_is_silent_is_blamed),
	KUNIT_CASE(krc_test_no_slot_will_come),
	KUNIT_CASE(krc_test_a_load_blocks_nobody),
	KUNIT_CASE(krc_test_a_load_is_for_all),
	KUNIT_CASE(krc_test_a_pulse_of_another_incarnation),
	KUNIT_CASE(krc_test_a_fault_of_before),
	KUNIT_CASE(krc_test_an_end_waits_for_no_task),
	KUNIT_CASE(krc_test_a_miss_of_who_settled),
	KUNIT_CASE(krc_test_a_crowded_bucket),
	KUNIT_CASE(krc_test_questions_are_shared_by_payers),
	KUNIT_CASE(krc_test_questions_that_end),
	{}
};

static struct kunit_suite krc_lookups_suite = {
	.name = "krcore_lookups",
	.test_cases = krc_lookups_cases,
};

kunit_test_suites(&krc_lookups_suite);
