// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what a port has room for: neither a user nor a stranger takes all of it, or makes the way to it
 * longer for others.
 * Locking: a test runs alone.
 */
#include "krc_stream_test.h"

#define KRC_TEST_TAGS 8

/* Chains of streams that OPENs have made which are not empty. */
static u32 krc_test_chains(struct krc_messages *m)
{
	u32 i, chains = 0;

	spin_lock_bh(&m->lock);
	for (i = 0; i < HASH_SIZE(m->opens); i++)
		chains += !hlist_empty(&m->opens[i]);
	spin_unlock_bh(&m->lock);
	return chains;
}

/* Whoever knows the hash does not choose tags that all lie in one chain. */
static void krc_test_tags_that_meet(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[1].messages;
	struct krc_test_open packet;
	u64 tag;
	u32 nr;

	krc_test_listen(w, 4 * KRC_TEST_TAGS); /* of which no node gets more than half */
	krc_test_pair(w, 0);
	packet = krc_test_open_again(w, &w->side[0].end[0]);
	for (tag = 1, nr = 0; nr < KRC_TEST_TAGS; tag++) {
		if (hash_64(tag, HASH_BITS(m->opens)))
			continue;
		packet.open.tag = cpu_to_le64(tag);
		krc_test_forge(w, &packet, sizeof(packet));
		nr++;
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(m->streams_nr), 1U + KRC_TEST_TAGS);
	KUNIT_EXPECT_GT(test, krc_test_chains(m), 1U + KRC_TEST_TAGS / 4);
}

/* ---- users */

#define KRC_TEST_FREE 100 /* of what a port has, while a user has the rest */

/* Open a connection for a program of the first port. Return: as krc_stream_connect(). */
static struct krc_stream *krc_test_open_for(struct krc_test_world *w, struct krc_test_program *end,
					    const struct krc_stream_ops *ops, u16 service)
{
	struct krc_stream_conf conf = { .inbox = &end->inbox, .ops = ops, .owner = end };

	return krc_stream_connect(w->side[0].messages, &w->side[1].rail.gid, service,
				  &w->side[1].value, &conf, NULL);
}

/* A user who has most streams of a port, most of them perhaps closed, gets no more; others do. */
static void krc_test_a_user_leaves_streams(struct kunit *test)
{
	const u32 many = KRC_MESSAGES_STREAMS - KRC_TEST_FREE;
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[0].messages;
	struct krc_test_program *a = w->side[0].end;
	struct krc_tx_share *share;
	struct krc_stream *st;

	krc_test_pair(w, 0);
	share = a[0].stream->share;
	KUNIT_EXPECT_EQ(test, share->streams, 1U);
	m->streams_nr += many; /* as if there were as many */
	share->streams += many;
	st = krc_test_open_for(w, &a[0], a[0].stream->ops, KRC_TEST_SERVICE + 1);
	KUNIT_EXPECT_PTR_EQ(test, st, ERR_PTR(-EDQUOT));
	if (!IS_ERR(st))
		krc_stream_close(st, true);
	krc_test_pair(w, 1);
	m->streams_nr -= many;
	share->streams -= many;
	KUNIT_EXPECT_EQ(test, share->streams, 1U);
	st = krc_test_open_for(w, &a[0], a[0].stream->ops, KRC_TEST_SERVICE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, st);
	KUNIT_EXPECT_EQ(test, share->streams, 2U);
	krc_stream_close(st, true);
	krc_test_until(w, READ_ONCE(share->streams) == 1);
}

/* A user whose short connections have to be known again gets no more opened; others do. */
static void krc_test_a_user_leaves_tombstones(struct kunit *test)
{
	const u32 many = KRC_TOMBSTONES - KRC_TEST_FREE;
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[1].messages;
	struct krc_test_program *a = w->side[0].end;
	const struct krc_stream_ops *ops;
	struct krc_listener *other;
	struct krc_tx_share *share;
	struct krc_stream *st;

	krc_test_pair(w, 0);
	ops = a[0].stream->ops;
	share = w->side[1].listener->share;
	krc_test_close(&w->side[1].end[0], true);
	krc_test_until(w, !READ_ONCE(m->streams_nr));
	KUNIT_EXPECT_EQ(test, share->tombstones, 1U);
	KUNIT_EXPECT_EQ(test, m->known.tombstones_nr, 1U);
	m->known.tombstones_nr += many; /* as if there were as many */
	share->tombstones += many;
	krc_test_connect(w, &a[1], NULL);
	krc_test_until(w, READ_ONCE(a[1].died) || atomic_read(&w->side[1].listener->waiting));
	KUNIT_EXPECT_EQ(test, a[1].err, -EBUSY);
	krc_inbox_init(&w->side[1].end[1].inbox, KRP_MESSAGE_UNITS_MAX,
		       w->side[1].end[2].inbox.arrived);
	other = krc_listen(m, KRC_TEST_SERVICE + 1, 1, &w->side[1].end[1].inbox, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, other);
	st = krc_test_open_for(w, &a[0], ops, KRC_TEST_SERVICE + 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, st);
	krc_test_until(w, READ_ONCE(w->side[1].end[1].inbox.nr));
	m->known.tombstones_nr -= many;
	share->tombstones -= many;
	krc_stream_close(st, true);
	krc_unlisten(other);
	krc_inbox_end(&w->side[1].end[1].inbox);
}

/* ---- strangers */

/* Answers wait until a target was asked. Neither those to one nor those to many keep all places. */
static void krc_test_answers_leave_places(struct kunit *test)
{
	struct krc_standing *target[KRC_ANSWERS + 1] = {}, *proven;
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[0].messages;
	const struct krc_hw_address *to;
	struct krp_message head;
	u32 i, n;

	krc_test_pair(w, 0);
	krc_test_quiet(w);
	to = &w->side[0].end[0].stream->address;
	head = krc_test_header(w);
	head.tag = cpu_to_le64(99); /* nobody's */
	w->stuck = true;
	for (i = 0; i < ARRAY_SIZE(target); i++) {
		target[i] = krc_standing_get(&w->side[0].rail, to, 1 + i, 1);
		KUNIT_ASSERT_NOT_NULL(test, target[i]);
	}
	for (n = 0; n < KRC_ANSWERS; n++)
		krc_answer_send(m, to, target[0], &head, NULL, 0);
	KUNIT_EXPECT_EQ(test, krc_test_answering(m), (u32)KRC_ANSWERS_OF_ONE);
	for (i = 1; i < KRC_ANSWERS; i++)
		krc_answer_send(m, to, target[i], &head, NULL, 0);
	KUNIT_EXPECT_EQ(test, krc_test_answering(m), (u32)KRC_ANSWERS_ASKED);
	proven = target[KRC_ANSWERS];
	krc_standing_prove(proven);
	krc_answer_send(m, to, proven, &head, NULL, 0);
	KUNIT_EXPECT_EQ(test, krc_test_answering(m), KRC_ANSWERS_ASKED + 1U);
	w->stuck = false;
	krc_test_until(w, !krc_test_answering(m));
	for (i = 0; i < ARRAY_SIZE(target); i++)
		krc_standing_put(target[i]);
}

/* What comes for a stream that is no more is answered to whom it had, and its number rests a while. */
static void krc_test_a_number_rests(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_messages *m = w->side[1].messages;
	struct krp_message right, wrong;
	s64 posted;
	u32 number;

	krc_test_pair(w, 0);
	number = w->side[1].end[0].stream->number;
	right = krc_test_header(w);
	wrong = right;
	wrong.tag ^= cpu_to_le64(1); /* of whoever had the number before, or of a stranger */
	krc_test_close(&w->side[1].end[0], true);
	krc_test_until(w, !READ_ONCE(m->streams_nr));
	krc_test_quiet(w);
	posted = atomic64_read(&m->count[KRC_COUNT_POSTED]);
	krc_test_forge(w, &wrong, sizeof(wrong));
	krc_test_quiet(w);
	KUNIT_EXPECT_EQ(test, atomic64_read(&m->count[KRC_COUNT_POSTED]), posted);
	krc_test_forge(w, &right, sizeof(right));
	krc_test_until(w, atomic64_read(&m->count[KRC_COUNT_POSTED]) == posted + 1);
	krc_test_pair(w, 1);
	KUNIT_EXPECT_NE(test, w->side[1].end[1].stream->number, number);
}

/* ---- who is kept from a processor */

#define KRC_TEST_LOOKS 12 /* more than a payer may have */

/* A user whose peers are silent, while look-ups take long, keeps few work items that others need. */
static void krc_test_a_user_leaves_work_items(struct kunit *test)
{
	struct krc_stream *st[KRC_TEST_LOOKS] = {};
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	struct krc_tx_share *share;
	u32 i;

	krc_test_pair(w, 0);
	krc_test_quiet(w);
	share = a->stream->share;
	w->stuck = true;
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		st[i] = krc_test_open_for(w, a, a->stream->ops, KRC_TEST_SERVICE + 1);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, st[i]);
	}
	WRITE_ONCE(w->blocked, true);
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		set_bit(KRC_STREAM_DOUBT, &st[i]->run.flags);
		krc_stream_kick(st[i]);
	}
	krc_test_until(w, READ_ONCE(share->looks));
	msleep(50); /* as long as all of them would need */
	KUNIT_EXPECT_GT(test, READ_ONCE(share->looks), 0U);
	KUNIT_EXPECT_LE(test, READ_ONCE(share->looks), KRC_TEST_LOOKS * 3 / 4U);
	WRITE_ONCE(w->blocked, false);
	krc_test_until(w, !READ_ONCE(share->looks));
	w->stuck = false;
	for (i = 0; i < ARRAY_SIZE(st); i++)
		krc_stream_close(st[i], true);
}

static void krc_test_sleeps(struct work_struct *work)
{
	while (READ_ONCE(krc_test_world_now->blocked))
		usleep_range(1000, 1100);
}

static void krc_test_listens(struct work_struct *work)
{
	krc_test_listen(krc_test_world_now, 4);
}

/* The lock of OPENs is taken by work items of the receive queue, and by no task that listens. */
static void krc_test_a_listener_holds_up_no_open(struct kunit *test)
{
	static struct work_struct sleeper, listens; /* outlive a failed assertion */
	struct krc_test_world *w = test->priv;

	workqueue_set_max_active(krc_messages_rx_wq, 1);
	WRITE_ONCE(w->blocked, true);
	INIT_WORK(&sleeper, krc_test_sleeps);
	INIT_WORK(&listens, krc_test_listens);
	queue_work(krc_messages_rx_wq, &sleeper);
	queue_work(system_unbound_wq, &listens);
	msleep(50); /* as long as a task would need */
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].messages->listeners_nr), 0U);
	WRITE_ONCE(w->blocked, false);
	flush_work(&listens);
	flush_work(&sleeper);
	workqueue_set_max_active(krc_messages_rx_wq, WQ_DFL_ACTIVE);
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].messages->listeners_nr), 1U);
}

static struct kunit_case krc_room_cases[] = { KUNIT_CASE(krc_test_tags_that_meet),
					      KUNIT_CASE(krc_test_a_user_leaves_streams),
					      KUNIT_CASE(krc_test_a_user_leaves_tombstones),
					      KUNIT_CASE(krc_test_answers_leave_places),
					      KUNIT_CASE(krc_test_a_number_rests),
					      KUNIT_CASE(krc_test_a_user_leaves_work_items),
					      KUNIT_CASE(krc_test_a_listener_holds_up_no_open),
					      {} };

static struct kunit_suite krc_room_suite = {
	.name = "krcore_room",
	.init = krc_test_world_make,
	.exit = krc_test_world_end,
	.test_cases = krc_room_cases,
};
kunit_test_suite(krc_room_suite);
