// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: changes of target of a channel, on a NIC in memory (fake_provider.h): which are counted,
 * and which are saved by the choice of a channel and of the flow that is next. Stickiness is on in
 * each case, unless that says otherwise, and off when it ends.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"

#define KRC_TEST_MANY 6 /* flows besides those of every test, to targets 1 and 2 in turn */

/* Changes of target that the pool of a test has counted. */
static u64 krc_test_changes(struct krc_test *t)
{
	struct krc_pool_stats stats;

	krc_pool_stats(t->pool, &stats);
	return stats.target_changes;
}

/*
 * Have all channels of a pool look as if something had completed just now, however long that took
 * here: none is stalled, and the target of each counts.
 */
static void krc_test_fresh(struct krc_test *t)
{
	u32 i, shared = krc_test_shared(t);

	for (i = 0; i < shared; i++)
		WRITE_ONCE(krc_test_channel(t, i)->progress, jiffies + 10 * HZ);
}

/* Requests of a flow, which the NIC carries out at once: the channel is idle before and after. */
static void krc_test_alone(struct krc_test *t, struct krc_test_flow *flow, u32 count)
{
	krc_test_fresh(t);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, count, KRP_OP_READ, 8), 0);
	krc_test_finish(t, flow, flow->submitted);
	krc_flow_drain(&flow->flow);
}

/* One after the other, and with others in the hardware: each change, and nothing else. */
static void krc_test_changes_are_counted(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_alone(t, t->flow[0], 3);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 0U);
	krc_test_alone(t, t->flow[1], 2);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 1U);
	krc_test_alone(t, t->flow[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 2U);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 2, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 4U);
	krc_test_finish(t, t->flow[2], 2);
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, 0)->stats.target_changes, 4U);
}

/* Other address vectors, also by another router, are no change if the target is the same. */
static void krc_test_another_way_is_no_change(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->flow[1]->address = t->flow[0]->address;
	t->flow[2]->address = t->flow[0]->address;
	t->flow[2]->address.opaque[sizeof(t->flow[2]->address.opaque) - 1] = 1;
	krc_test_alone(t, t->flow[0], 1);
	krc_test_alone(t, t->flow[1], 1);
	krc_test_alone(t, t->flow[2], 1);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 0U);
	krc_test_finish(t, t->flow[1], 2);
}

/* Where the address vector of a peer was, there may be that of another one when the first is idle. */
static void krc_test_another_target_at_its_place(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_alone(t, t->flow[0], 1);
	t->flow[0]->address.opaque[0] = 77;
	krc_test_alone(t, t->flow[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 1U);
	/* the last bytes that count are looked at like the first */
	t->flow[0]->address.opaque[sizeof(t->flow[0]->address.opaque) - 2] = 1;
	krc_test_alone(t, t->flow[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 2U);
}

/* A reset forgets the target: a connection is made for the next request, whatever it is for. */
static void krc_test_a_reset_forgets_the_target(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_alone(t, t->flow[0], 1);
	krc_test_alone(t, t->flow[1], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 1U);
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1 &&
				    READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	krc_test_alone(t, t->flow[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 1U);
	krc_test_alone(t, t->flow[1], 1);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 2U);
}

/* What a channel has counted stays counted when it is removed. */
static void krc_test_changes_of_a_channel_that_left(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_alone(t, t->flow[0], 1);
	krc_test_alone(t, t->flow[1], 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(krc_pool_add(t->pool, KRC_CHANNEL_SHARED)));
	KUNIT_EXPECT_EQ(test, krc_pool_remove(t->pool, krc_test_channel(t, 0)), 0);
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 1U);
}

/* ---- the channel of a target */

/* Requests to two peers in turn, one at a time, and how many changes of target that were. */
static u64 krc_test_in_turn(struct krc_test *t, u32 rounds)
{
	u64 before = krc_test_changes(t);

	while (rounds--) {
		krc_test_alone(t, t->flow[0], 1);
		krc_test_alone(t, t->flow[1], 1);
	}
	return krc_test_changes(t) - before;
}

/* Two peers in turn have a channel each, and nothing changes; without stickiness all does. */
static void krc_test_a_target_keeps_its_channel(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_restart(t, 3);
	migrate_disable(); /* it begins with the processor's own */
	KUNIT_EXPECT_EQ(test, krc_test_in_turn(t, 5), 0U);
	KUNIT_EXPECT_EQ(test, t->flow[1]->index, (t->flow[0]->index + 1) % 3);
	WRITE_ONCE(krc_sticky, false);
	KUNIT_EXPECT_EQ(test, krc_test_in_turn(t, 5), 9U);
	KUNIT_EXPECT_EQ(test, t->flow[1]->index, t->flow[0]->index);
	migrate_enable();
}

/* With one peer, known by several address vectors, all is on the processor's own channel. */
static void krc_test_one_peer_has_one_channel(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 own, i;

	krc_test_restart(t, 3);
	t->flow[1]->address = t->flow[0]->address;
	t->flow[2]->address = t->flow[0]->address;
	migrate_disable();
	krc_test_alone(t, t->flow[0], 1);
	own = t->flow[0]->index;
	for (i = 0; i < 6; i++) {
		krc_test_alone(t, t->flow[i % 3], 1 + i);
		KUNIT_EXPECT_EQ(test, t->flow[i % 3]->index, own);
	}
	migrate_enable();
	KUNIT_EXPECT_EQ(test, krc_test_changes(t), 0U);
}

/* A channel that is busy, or stalled, is nobody's for its target alone. */
static void krc_test_a_busy_channel_is_not_kept(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 first, second;

	krc_test_restart(t, 3);
	t->flow[2]->address = t->flow[1]->address;
	migrate_disable();
	krc_test_alone(t, t->flow[0], 1);
	first = t->flow[0]->index;
	krc_test_fresh(t);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	second = t->flow[1]->index;
	KUNIT_EXPECT_NE(test, second, first);
	krc_test_fresh(t);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[2]->index, second);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_LOAD_BUSY, KRP_OP_READ, 8), 0);
	krc_fake_complete(t->fake, second, 2);
	krc_test_wait(test, READ_ONCE(t->flow[2]->done) == 1);
	krc_flow_drain(&t->flow[2]->flow);
	/* it has the target and too much to do: to the third, which has none */
	krc_test_fresh(t);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[2]->index, 3U - first - second);
	migrate_enable();
	krc_test_finish(t, t->flow[1], KRC_LOAD_BUSY + 1);
	krc_test_finish(t, t->flow[2], 2);
}

/* A flow to a silent peer joins the channel that is stalled on it, also where others are idle. */
static void krc_test_a_silent_peer_stalls_one_channel(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_restart(t, 3);
	t->flow[2]->address = t->flow[1]->address;
	t->flow[3]->address = t->flow[0]->address;
	migrate_disable();
	krc_test_alone(t, t->flow[0], 1);
	krc_test_fresh(t);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_NE(test, t->flow[1]->index, t->flow[0]->index);
	WRITE_ONCE(krc_test_channel(t, t->flow[1]->index)->progress, jiffies);
	msleep(2 * KRC_SLOW_MS);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[2]->index, t->flow[1]->index);
	/* and one to another peer does not */
	krc_test_alone(t, t->flow[3], 1);
	KUNIT_EXPECT_EQ(test, t->flow[3]->index, t->flow[0]->index);
	migrate_enable();
	krc_test_finish(t, t->flow[2], 1);
}

/* ---- the next flow of a channel */

/*
 * More flows, to targets 1 and 2 in turn, with requests that wait behind a full channel; one payer
 * has all of them, or each is its own.
 */
static struct krc_test_flow *krc_test_many(struct krc_test *t, bool one_payer, u32 count,
					   u32 length)
{
	struct krc_test_flow *many =
		kunit_kcalloc(t->test, KRC_TEST_MANY, sizeof(*many), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(t->test, many);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[0], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	for (i = 0; i < KRC_TEST_MANY; i++) {
		many[i].address.opaque[0] = 1 + i % 2;
		krc_flow_init(&many[i].flow, t->pool, krc_test_done, krc_test_check);
		many[i].flow.payer = one_payer ? many : &many[i];
		KUNIT_ASSERT_EQ(t->test, krc_test_submit(&many[i], count, KRP_OP_READ, length), 0);
	}
	return many;
}

/* Have all of it carried out. Return: changes of target from the first of them on. */
static u64 krc_test_many_end(struct krc_test *t, struct krc_test_flow *many)
{
	u32 i;

	for (i = 0; i < KRC_TEST_MANY; i++) {
		krc_test_finish(t, &many[i], many[i].submitted);
		krc_test_expect(t, &many[i], 0, many[i].submitted, 0);
		krc_flow_drain(&many[i].flow);
		krc_flow_release(&many[i].flow);
	}
	return krc_test_changes(t) - 1;
}

/* How many requests the NIC carried out for a target before those of another began. */
static u32 krc_test_before(struct krc_test *t, u8 target, u8 other)
{
	const struct krc_fake_initiator *ini = t->fake->ini[0];
	u32 nr = 0;
	u64 i;

	for (i = 0; i < ini->log_nr && ini->log[i] >> 56 != other; i++)
		nr += ini->log[i] >> 56 == target;
	return nr;
}

/* ABABAB of one payer's queues becomes AAABBB, and of queues of different payers, too. */
static void krc_test_flows_are_sorted_by_target(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, true, 3, 8)), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_before(t, 1, 2), 9U);
	krc_test_restart(t, 1);
	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, false, 3, 8)), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_before(t, 1, 2), 9U);
	WRITE_ONCE(krc_sticky, false);
	krc_test_restart(t, 1);
	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, true, 3, 8)), 5U);
	krc_test_restart(t, 1);
	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, false, 3, 8)), 5U);
}

/* When a run has had its quota, the flow that waits longest is next: each has 16, the quota 32. */
static void krc_test_a_quota_ends_a_run(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, true, KRC_STICK_QUOTA / 2, 8)),
			3U);
	KUNIT_EXPECT_EQ(test, krc_test_before(t, 1, 2), KRC_STICK_QUOTA);
	krc_test_restart(t, 1);
	KUNIT_EXPECT_EQ(test, krc_test_many_end(t, krc_test_many(t, false, KRC_STICK_QUOTA / 2, 8)),
			3U);
	KUNIT_EXPECT_EQ(test, krc_test_before(t, 1, 2), KRC_STICK_QUOTA);
}

#define KRC_TEST_ROUNDS 20

/* Three flows that always have more, each segment a turn; only the second is for another target. */
static void krc_test_rounds(struct krc_test *t, bool one_payer)
{
	u32 i;

	t->flow[2]->address = t->flow[0]->address;
	for (i = 0; i < 3; i++)
		t->flow[i]->flow.payer = one_payer ? t : (void *)t->flow[i];
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[3], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	for (i = 0; i < 3; i++) {
		u32 count = i == 1 ? KRC_TEST_ROUNDS : 2 * KRC_TEST_ROUNDS;

		KUNIT_ASSERT_EQ(t->test,
				krc_test_submit(t->flow[i], count, KRP_OP_READ, KRC_SEGMENT_BYTES),
				0);
	}
	krc_test_finish(t, t->flow[1], t->flow[1]->submitted);
	/* one turn each until then, and what was in the hardware behind the last one */
	for (i = 0; i < 3; i += 2) {
		KUNIT_EXPECT_LE(t->test, t->flow[i]->submitted - t->flow[i]->done,
				KRC_TEST_ROUNDS + 1U);
		KUNIT_EXPECT_GE(t->test, t->flow[i]->submitted - t->flow[i]->done,
				KRC_TEST_ROUNDS - KRC_TEST_DEPTH);
	}
	krc_test_finish(t, t->flow[0], t->flow[0]->submitted);
	krc_test_finish(t, t->flow[2], t->flow[2]->submitted);
}

/* A flow has its turn in each round, however long a run to the target of others might go on. */
static void krc_test_nobody_is_passed_over_twice(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_rounds(t, true);
	krc_test_restart(t, 1);
	krc_test_rounds(t, false);
}

/* Flows to one target, with and without stickiness. Return: what the NIC carried out, in order. */
static u64 *krc_test_order(struct krc_test *t, bool sticky, u64 *ret_nr)
{
	u64 *log = kunit_kcalloc(t->test, KRC_FAKE_LOG, sizeof(*log), GFP_KERNEL);
	struct krc_test_flow *many;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(t->test, log);
	WRITE_ONCE(krc_sticky, sticky);
	krc_test_restart(t, 1);
	many = krc_test_many(t, true, 0, 8);
	for (i = 0; i < KRC_TEST_MANY; i++) {
		many[i].address.opaque[0] = 1;
		many[i].submitted = 40 * i; /* tells them apart in the log */
		many[i].done = 40 * i;
		KUNIT_ASSERT_EQ(t->test, krc_test_submit(&many[i], 30 + i, KRP_OP_READ, 8), 0);
	}
	for (i = 0; i < KRC_TEST_MANY; i++) {
		krc_test_finish(t, &many[i], many[i].submitted);
		krc_flow_drain(&many[i].flow);
		krc_flow_release(&many[i].flow);
	}
	*ret_nr = t->fake->ini[0]->log_nr;
	memcpy(log, t->fake->ini[0]->log, sizeof(t->fake->ini[0]->log));
	return log;
}

/* With one target the order is what it is without stickiness, request by request. */
static void krc_test_one_target_changes_no_order(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u64 nr, again;
	u64 *without = krc_test_order(t, false, &nr), *with = krc_test_order(t, true, &again);
	u64 i;

	KUNIT_EXPECT_EQ(test, nr, KRC_TEST_DEPTH + KRC_TEST_MANY * 30U + 15U);
	KUNIT_EXPECT_EQ(test, again, nr);
	/* the first ones are those of flow 0, whose numbers go on */
	for (i = KRC_TEST_DEPTH; i < nr; i++)
		KUNIT_EXPECT_EQ(test, with[i], without[i]);
}

static int krc_test_sticky_init(struct kunit *test)
{
	WRITE_ONCE(krc_sticky, true);
	return krc_test_init(test);
}

static void krc_test_sticky_exit(struct kunit *test)
{
	krc_test_exit(test);
	WRITE_ONCE(krc_sticky, false);
}

static struct kunit_case krc_targets_cases[] = {
	KUNIT_CASE(krc_test_changes_are_counted),
	KUNIT_CASE(krc_test_another_way_is_no_change),
	KUNIT_CASE(krc_test_another_target_at_its_place),
	KUNIT_CASE(krc_test_a_reset_forgets_the_target),
	KUNIT_CASE(krc_test_changes_of_a_channel_that_left),
	KUNIT_CASE(krc_test_a_target_keeps_its_channel),
	KUNIT_CASE(krc_test_one_peer_has_one_channel),
	KUNIT_CASE(krc_test_a_busy_channel_is_not_kept),
	KUNIT_CASE(krc_test_a_silent_peer_stalls_one_channel),
	KUNIT_CASE(krc_test_flows_are_sorted_by_target),
	KUNIT_CASE(krc_test_a_quota_ends_a_run),
	KUNIT_CASE(krc_test_nobody_is_passed_over_twice),
	KUNIT_CASE(krc_test_one_target_changes_no_order),
	{}
};

static struct kunit_suite krc_targets_suite = {
	.name = "krcore_targets",
	.init = krc_test_sticky_init,
	.exit = krc_test_sticky_exit,
	.test_cases = krc_targets_cases,
};
kunit_test_suite(krc_targets_suite);
