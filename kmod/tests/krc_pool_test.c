// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the pool on a NIC in memory (fake_provider.h): credits, parts, turns, dispatch,
 * faults and replay, recovery and the end.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"

static void krc_test_never_more_than_the_depth(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 100, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), KRC_TEST_DEPTH);
	krc_test_finish(t, t->flow[0], 100);
	krc_test_expect(t, t->flow[0], 0, 100, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->post_max, KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 100);
}

static void krc_test_large_requests_go_in_parts(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 parts = DIV_ROUND_UP(5000000, KRC_SEGMENT_BYTES), i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_WRITE, 5000000), 0);
	KUNIT_EXPECT_EQ(test, t->flow[0]->done, 0);
	krc_test_finish(t, t->flow[0], 1);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, parts);
	for (i = 0; i < parts; i++)
		KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log[i], (u64)i * KRC_SEGMENT_BYTES);
	KUNIT_EXPECT_LE(test, t->fake->ini[0]->bytes_max, KRC_WINDOW_BYTES);
}

static void krc_test_a_flood_lets_others_through(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 i, parts = 0;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 200, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 8, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[1], 8);
	for (i = 0; t->fake->ini[0]->log[i] >> 56 == 0; i++)
		parts++;
	/* What stood in the hardware, and one turn. */
	KUNIT_EXPECT_LE(test, parts, KRC_TEST_DEPTH + 2);
	krc_test_finish(t, t->flow[0], 200);
	krc_test_expect(t, t->flow[0], 0, 200, 0);
}

static void krc_test_turns_are_by_bytes(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 small = KRC_SEGMENT_BYTES / 10, i, first = 0, second = 0;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 32, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 250, KRP_OP_READ, small), 0);
	krc_test_finish(t, t->flow[0], 20);
	for (i = KRC_TEST_DEPTH; i < t->fake->ini[0]->log_nr; i++)
		if (t->fake->ini[0]->log[i] >> 56)
			second += small + KRC_COST_BYTES;
		else
			first += KRC_SEGMENT_BYTES + KRC_COST_BYTES;
	/* Equal but for a turn of each and the window. */
	KUNIT_EXPECT_LE(test, abs((int)(first - second)), 4 * KRC_QUANTUM_BYTES);
	krc_test_finish(t, t->flow[1], 250);
	krc_test_finish(t, t->flow[0], 32);
}

static void krc_test_a_fault_is_its_flows_alone(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 3, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 30, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 20, KRP_OP_READ, 300000), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 32);
	krc_test_expect(t, t->flow[0], 0, 1, 0);
	krc_test_expect(t, t->flow[0], 1, 2, -EREMOTEIO);
	krc_test_expect(t, t->flow[0], 2, 32, -ECANCELED);
	krc_test_finish(t, t->flow[1], 23);
	krc_test_expect(t, t->flow[1], 0, 23, 0);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), -ENOTCONN);
	krc_flow_drain(&t->flow[0]->flow);
	krc_flow_restart(&t->flow[0]->flow);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[0], 33);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.faults, 1);
	KUNIT_EXPECT_EQ(test, stats.recoveries, 1);
	KUNIT_EXPECT_EQ(test, stats.completed, 32 + 23 + 1);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 1);
}

/* Of a burst only some requests ask for a completion, and each stands for those before. */
static void krc_test_unsignaled_requests(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_hw_wr *wrs = t->fake->ini[0]->wrs;
	u32 i;

	t->fake->sparse = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 11, KRP_OP_READ, 8), 0);
	for (i = 0; i < 11; i++)
		KUNIT_EXPECT_EQ(test, wrs[i].unsignaled, i != KRC_UNSIGNALED_MAX - 1 && i != 10);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, KRC_UNSIGNALED_MAX - 1),
			KRC_UNSIGNALED_MAX - 1);
	krc_pool_poll(t->pool, 0);
	KUNIT_EXPECT_EQ(test, t->flow[0]->done, 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == KRC_UNSIGNALED_MAX);
	krc_test_finish(t, t->flow[0], 11);
	krc_test_expect(t, t->flow[0], 0, 11, 0);

	/* parts that take long are each progress */
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_READ, KRC_UNSIGNALED_BYTES), 0);
	KUNIT_EXPECT_FALSE(test, wrs[11].unsignaled || wrs[12].unsignaled);
	krc_test_finish(t, t->flow[1], 2);
}

static void krc_test_a_fault_behind_unsignaled_ones(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->fake->sparse = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 6, KRP_OP_FETCH_ADD, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 5, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 3), 3);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 6);
	krc_test_expect(t, t->flow[0], 0, 3, 0);
	krc_test_expect(t, t->flow[0], 3, 4, -EREMOTEIO);
	krc_test_expect(t, t->flow[0], 4, 6, -ECANCELED);
	krc_test_finish(t, t->flow[1], 5);
	krc_test_expect(t, t->flow[1], 0, 5, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 3 + 5);
}

/* Nobody's completion stands for another flow's requests. */
static void krc_test_a_flow_ends_its_turn_aloud(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_hw_wr *wrs = t->fake->ini[0]->wrs;
	u32 large = KRC_SEGMENT_BYTES - 5 * (KRC_COST_BYTES + 8);

	t->fake->sparse = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, large), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 12, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 3, KRP_OP_READ, 8), 0);
	krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == KRC_TEST_DEPTH);
	/* a large one and five small ones are flow 0's turn, then it is flow 1's */
	KUNIT_EXPECT_EQ(test, wrs[5].remote_addr >> 56, 0U);
	KUNIT_EXPECT_EQ(test, wrs[6].remote_addr >> 56, 1U);
	KUNIT_EXPECT_FALSE(test, wrs[0].unsignaled);
	KUNIT_EXPECT_TRUE(test, wrs[4].unsignaled);
	KUNIT_EXPECT_FALSE(test, wrs[5].unsignaled);
	KUNIT_EXPECT_TRUE(test, wrs[6].unsignaled);
	KUNIT_EXPECT_FALSE(test, wrs[8].unsignaled);
	krc_test_finish(t, t->flow[0], 13);
	krc_test_finish(t, t->flow[1], 3);
	krc_test_expect(t, t->flow[0], 0, 13, 0);
	krc_test_expect(t, t->flow[1], 0, 3, 0);
}

/* What is held or wrong behind an unsignaled request does not keep that one waiting. */
static void krc_test_unsignaled_before_what_does_not_come(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);

	t->fake->sparse = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	t->flow[0]->reqs[1].req.status = -EBADR; /* found while it waits */
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 2);
	KUNIT_EXPECT_FALSE(test, ch->slots[0].unsignaled);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2);
	krc_test_expect(t, t->flow[0], 0, 1, 0);
	krc_test_expect(t, t->flow[0], 1, 2, -EBADR);
	krc_test_finish(t, t->flow[1], 1);
}

/* Behind a fault nothing has succeeded, even if the hardware passes over what it flushes. */
static void krc_test_what_is_passed_over_behind_a_fault(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->fake->sparse = true;
	t->fake->mean = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 5, KRP_OP_WRITE, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_finish(t, t->flow[1], 5);
	krc_test_expect(t, t->flow[1], 0, 5, 0);
	krc_test_expect(t, t->flow[0], 0, 1, -EREMOTEIO);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 5);
}

static void krc_test_a_silent_peer_is_silent_to_all(struct kunit *test)
{
	struct krc_test *t = test->priv;
	int i;

	/* 0, 1 and 3 ask the same peer, 2 asks another. */
	for (i = 1; i < 4; i += 2)
		t->flow[i]->address = t->flow[0]->address;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1);
	msleep(2 * KRC_SILENT_MS);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_READ, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2 && READ_ONCE(t->flow[1]->done) == 2);
	for (i = 0; i < 2; i++)
		krc_test_expect(t, t->flow[i], 0, 1, -ETIMEDOUT);
	krc_test_expect(t, t->flow[0], 1, 2, -ECANCELED);
	krc_test_expect(t, t->flow[1], 1, 2, -EREMCHG);
	krc_test_finish(t, t->flow[2], 2);
	krc_test_finish(t, t->flow[3], 1);
	krc_test_expect(t, t->flow[2], 0, 2, 0);
	krc_test_expect(t, t->flow[3], 0, 1, 0);
}

/*
 * The way to a peer is given up under requests: what may be done twice is done again, other
 * requests to that peer are in doubt, those to another one are done once.
 */
static void krc_test_a_way_that_is_lost(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->flow[1]->address = t->flow[0]->address;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_WRITE, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_LOST);
	krc_test_finish(t, t->flow[0], 2);
	krc_test_finish(t, t->flow[2], 1);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 1);
	krc_test_expect(t, t->flow[0], 0, 2, 0);
	krc_test_expect(t, t->flow[1], 0, 1, -EREMCHG);
	krc_test_expect(t, t->flow[2], 0, 1, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 3);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_WRITE, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_LOST);
	krc_test_wait(test, READ_ONCE(t->flow[3]->done) == 1);
	krc_test_expect(t, t->flow[3], 0, 1, -EREMCHG);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 3);
}

/* A flow that is set apart stalls no other, and works. */
static void krc_test_apart(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 apart = krc_test_shared(t);

	t->flow[0]->flow.kind = KRC_CHANNEL_PROBATION;
	t->flow[1]->flow.kind = KRC_CHANNEL_PROBATION;
	t->flow[1]->flow.nth = 1;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 3, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, apart), 2);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, apart + 1), 1);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[2]->flow), 0);
	krc_test_finish(t, t->flow[2], 3); /* nothing was answered apart */
	krc_test_expect(t, t->flow[2], 0, 3, 0);

	t->fake->reset_error = -EIO;
	krc_fake_fail(t->fake, apart, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(krc_test_channel(t, apart)->state) == KRC_CHANNEL_DEAD);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2);
	krc_test_expect(t, t->flow[0], 0, 1, -ETIMEDOUT);
	krc_test_expect(t, t->flow[0], 1, 2, -ECANCELED);
	krc_flow_drain(&t->flow[0]->flow);
	krc_flow_restart(&t->flow[0]->flow);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[0]->flow), apart + 1);
	t->fake->reset_error = 0;
	krc_fake_complete(t->fake, apart + 1, 2);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 3);
	krc_test_expect(t, t->flow[0], 2, 3, 0);
}

/* A flow that begins while an initiator is busy, or makes no progress, goes to the next. */
static void krc_test_a_burst_is_spread(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 first, second;

	krc_test_restart(t, 3);
	migrate_disable(); /* it begins with the processor's own */
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[0], KRC_LOAD_BUSY, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	first = krc_flow_index(&t->flow[0]->flow);
	second = krc_flow_index(&t->flow[1]->flow);
	KUNIT_EXPECT_EQ(test, second, (first + 1) % 3);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, first, 100), KRC_LOAD_BUSY);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == KRC_LOAD_BUSY);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[2]->flow), first);
	msleep(2 * KRC_SLOW_MS);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[3]->flow), (first + 2) % 3);
	/* what is outstanding keeps its place, and its order */
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[2]->flow), first);
	/* and a flow to the same silent peer joins the one that waits for it */
	t->flow[0]->address = t->flow[1]->address;
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[0]->flow), second);
	migrate_enable();
	krc_test_finish(t, t->flow[0], KRC_LOAD_BUSY + 1);
	krc_test_finish(t, t->flow[2], 2);
	krc_test_finish(t, t->flow[3], 1);
}

static void krc_test_a_part_that_fails_ends_its_request(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_WRITE, 5000000), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 3), 3);
	krc_fake_fail(t->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 3);
	krc_test_expect(t, t->flow[0], 0, 1, -ETIMEDOUT);
	krc_test_expect(t, t->flow[0], 1, 3, -ECANCELED);
}

static void krc_test_replay_goes_on_where_it_was(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 bytes = 12 * KRC_SEGMENT_BYTES - 70000;
	u64 i, at = 0;

	t->flow[0]->idempotent = true;
	t->flow[1]->idempotent = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_WRITE, bytes), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 6), 6);
	/* Nobody's fault, and nobody knows what was executed: it may be executed twice here. */
	krc_fake_fatal(t->fake, 0);
	krc_test_finish(t, t->flow[0], 2);
	krc_test_finish(t, t->flow[1], 2);
	krc_test_expect(t, t->flow[0], 0, 2, 0);
	for (i = 0; i < t->fake->ini[0]->log_nr; i++) {
		u64 addr = t->fake->ini[0]->log[i];

		if (addr >> 56)
			continue;
		KUNIT_EXPECT_EQ(test, addr, ((at / 12) << 32) + at % 12 * KRC_SEGMENT_BYTES);
		at++;
	}
	KUNIT_EXPECT_EQ(test, at, 24); /* no part twice */
}

/*
 * A fault of flow 0, and what becomes of a request of another flow behind it: it is executed
 * once by the NIC, or not again.
 */
static void krc_test_behind(struct krc_test *t, u8 opcode, u8 culprit, enum krc_fault fault,
			    bool same_target, int expected)
{
	struct krc_test_flow *flow = t->flow[1];
	u64 executed = t->fake->ini[0]->log_nr;
	unsigned long posted;

	krc_test_wait(t->test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	flow->address.opaque[0] = same_target ? t->flow[0]->address.opaque[0] : 77;
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[0], 1, culprit, 8), 0);
	/* one that is as old has the same silent peer, if this stands still for KRC_SILENT_MS */
	posted = jiffies;
	krc_test_wait(t->test, time_after(jiffies, posted));
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 1, opcode, 8), 0);
	krc_fake_fail(t->fake, 0, fault);
	if (!expected)
		krc_test_finish(t, flow, flow->submitted);
	krc_test_wait(t->test, READ_ONCE(flow->done) == flow->submitted);
	KUNIT_EXPECT_EQ(t->test, flow->reqs[flow->submitted - 1].status, expected);
	KUNIT_EXPECT_EQ(t->test, flow->reqs[flow->submitted - 1].dones, 1);
	krc_test_finish(t, t->flow[0], t->flow[0]->submitted);
	executed += !expected + (fault == KRC_FAULT_FATAL && culprit == KRP_OP_READ);
	KUNIT_EXPECT_EQ(t->test, t->fake->ini[0]->log_nr, executed);
	krc_flow_drain(&flow->flow);
	krc_flow_drain(&t->flow[0]->flow);
	krc_flow_restart(&flow->flow);
	krc_flow_restart(&t->flow[0]->flow);
}

static void krc_test_done_once_or_in_doubt(struct krc_test *t, u8 opcode)
{
	struct krc_pool_stats stats;

	krc_test_behind(t, opcode, KRP_OP_WRITE, KRC_FAULT_ACCESS, true, 0);
	krc_test_behind(t, opcode, KRP_OP_CMP_SWAP, KRC_FAULT_TARGET, true, 0);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_ACCESS, true, -EREMCHG);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_TARGET, true, -EREMCHG);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_ACCESS, false, 0);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_TIMEOUT, true, -EREMCHG);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_TIMEOUT, false, 0);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_BUSY, true, -EREMCHG);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_BUSY, false, 0);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_LOCAL, true, -EREMCHG);
	krc_test_behind(t, opcode, KRP_OP_READ, KRC_FAULT_FATAL, false, -EREMCHG);
	/* and why, the counters say */
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(t->test, stats.recoveries, 11);
	KUNIT_EXPECT_EQ(t->test, stats.refused_reads, 3);
	KUNIT_EXPECT_EQ(t->test, stats.timeouts, 4);
	KUNIT_EXPECT_EQ(t->test, stats.expired, 0);
}

/* What is on its way to the same target through another router may have been executed, too. */
static void krc_test_another_way_is_the_same_target(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->flow[1]->address = t->flow[0]->address;
	t->flow[1]->address.opaque[sizeof(t->flow[1]->address.opaque) - 1] = 1;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_WRITE, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 1);
	krc_test_expect(t, t->flow[1], 0, 1, -EREMCHG);
	krc_test_finish(t, t->flow[2], 1);
	krc_test_expect(t, t->flow[2], 0, 1, 0);
}

static void krc_test_atomics_are_done_once_or_in_doubt(struct kunit *test)
{
	krc_test_done_once_or_in_doubt(test->priv, KRP_OP_FETCH_ADD);
}

static void krc_test_writes_are_done_once_or_in_doubt(struct kunit *test)
{
	krc_test_done_once_or_in_doubt(test->priv, KRP_OP_WRITE);
}

/* READs change nothing, and some WRITEs may be done twice: their owner says so. */
static void krc_test_what_may_be_done_twice_is_done_again(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_behind(t, KRP_OP_READ, KRP_OP_READ, KRC_FAULT_TIMEOUT, true, 0);
	krc_test_behind(t, KRP_OP_READ, KRP_OP_READ, KRC_FAULT_FATAL, false, 0);
	t->flow[1]->idempotent = true;
	krc_test_behind(t, KRP_OP_WRITE, KRP_OP_READ, KRC_FAULT_ACCESS, true, 0);
	krc_test_behind(t, KRP_OP_WRITE, KRP_OP_READ, KRC_FAULT_TIMEOUT, true, 0);
	krc_test_behind(t, KRP_OP_WRITE, KRP_OP_READ, KRC_FAULT_FATAL, false, 0);
}

/* -ECANCELED means that it was not done: of what was under way nobody can say so. */
static void krc_test_what_is_behind_one_in_doubt(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_CMP_SWAP, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 30, KRP_OP_WRITE, 8), 0);
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1);
	krc_test_finish(t, t->flow[0], 34);
	krc_test_expect(t, t->flow[0], 0, 3, 0);
	krc_test_expect(t, t->flow[0], 3, KRC_TEST_DEPTH, -EREMCHG);
	krc_test_expect(t, t->flow[0], KRC_TEST_DEPTH, 34, -ECANCELED);
}

/* The same where the flow's own request failed, or the flow was cancelled. */
static void krc_test_cancelled_means_not_done(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 20, KRP_OP_WRITE, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(flow->done) == 20);
	krc_test_expect(t, flow, 0, 1, -ETIMEDOUT);
	krc_test_expect(t, flow, 1, KRC_TEST_DEPTH, -EREMCHG);
	krc_test_expect(t, flow, KRC_TEST_DEPTH, 20, -ECANCELED);

	krc_test_wait(test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 20, KRP_OP_WRITE, 8), 0);
	krc_flow_cancel(&t->flow[1]->flow);
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 20);
	krc_test_expect(t, t->flow[1], 0, KRC_TEST_DEPTH, -EREMCHG);
	krc_test_expect(t, t->flow[1], KRC_TEST_DEPTH, 20, -ECANCELED);

	/* nor was one done of which a part is */
	krc_test_wait(test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 2, KRP_OP_WRITE, 12 * KRC_SEGMENT_BYTES),
			0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 2), 2);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == KRC_WINDOW_BYTES / KRC_SEGMENT_BYTES);
	krc_flow_cancel(&t->flow[2]->flow);
	krc_test_finish(t, t->flow[2], 2);
	krc_test_expect(t, t->flow[2], 0, 1, -EREMCHG);
	krc_test_expect(t, t->flow[2], 1, 2, -ECANCELED);
}

/* What completes while the initiator is halted has completed, and is not in doubt. */
static void krc_test_a_halt_forgets_no_completion(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->fake->late = 4;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_FETCH_ADD, 8), 0);
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 2);
	krc_test_expect(t, t->flow[0], 0, 3, 0);
	krc_test_expect(t, t->flow[1], 0, 1, 0);
	krc_test_expect(t, t->flow[1], 1, 2, -EREMCHG);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 4);
}

/* What is in the hardware at the end of its lease, and a while longer, is taken back. */
static void krc_test_a_lease_bounds_the_stay(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;
	int i;

	/* long enough that a guest which stands still for a while has all of it posted in time */
	for (i = 0; i < 3; i += 2) {
		krc_test_lease(t->flow[i], 1500, 1500);
		t->flow[i]->lets = 2;
		t->flow[i]->check = -EAGAIN; /* then their leases have ended */
	}
	t->flow[3]->address = t->flow[1]->address;
	/* the hardware is at flow 1's target; flow 3 has the same, flows 0 and 2 others */
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 2, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 6);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
	krc_test_wait(test, READ_ONCE(t->flow[3]->done) == 1);
	krc_test_expect(t, t->flow[3], 0, 1, -EREMCHG);
	krc_test_finish(t, t->flow[1], 1);
	krc_test_expect(t, t->flow[1], 0, 1, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[0]->done) + READ_ONCE(t->flow[2]->done), 0);
	/* they were not begun, and are done with leases that are new */
	for (i = 0; i < 3; i += 2) {
		t->flow[i]->reqs[0].req.leased = false;
		t->flow[i]->reqs[1].req.leased = false;
		WRITE_ONCE(t->flow[i]->check, 0);
		krc_flow_resume(&t->flow[i]->flow);
		krc_test_finish(t, t->flow[i], 2);
		krc_test_expect(t, t->flow[i], 0, 2, 0);
	}
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 5);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.expired, 1);
	KUNIT_EXPECT_EQ(test, stats.recoveries, 1);
}

/* The lease of @flow's two requests ends; then they get a new one. */
static void krc_test_expire(struct krc_test *t, struct krc_test_flow *flow, u32 resets)
{
	krc_test_wait(t->test, READ_ONCE(t->fake->ini[0]->resets) == resets);
	krc_test_wait(t->test, READ_ONCE(flow->flow.held));
	flow->reqs[0].req.until = jiffies + msecs_to_jiffies(flow->lease_ms);
	flow->reqs[1].req.until = flow->reqs[0].req.until;
	flow->lets = 2;
	krc_flow_resume(&flow->flow);
}

/*
 * What the fabric never answers, while it delivers what renews the lease, is not done again for
 * ever: the third lease that ends without progress is as a time-out.
 */
static void krc_test_leases_end_without_progress(struct krc_test *t, u8 opcode)
{
	struct krc_test_flow *flow = t->flow[0];
	struct krc_pool_stats stats;

	krc_test_lease(flow, 400, 100);
	flow->idempotent = opcode == KRP_OP_WRITE;
	flow->lets = 2;
	flow->check = -EAGAIN;
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 2, opcode, 8), 0);
	krc_test_expire(t, flow, 1);
	krc_test_expire(t, flow, 2);
	krc_test_wait(t->test, READ_ONCE(flow->done) == 2);
	krc_test_expect(t, flow, 0, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(t->test, flow->reqs[0].req.fault, KRC_FAULT_TIMEOUT);
	krc_test_expect(t, flow, 1, 2, opcode == KRP_OP_READ ? -ECANCELED : -EREMCHG);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(t->test, stats.expired, 3);
	KUNIT_EXPECT_EQ(t->test, t->fake->ini[0]->log_nr, 0);
}

static void krc_test_reads_expire_without_progress(struct kunit *test)
{
	krc_test_leases_end_without_progress(test->priv, KRP_OP_READ);
}

static void krc_test_writes_expire_without_progress(struct kunit *test)
{
	krc_test_leases_end_without_progress(test->priv, KRP_OP_WRITE);
}

/*
 * As long as what is posted completes in time, nothing is reset. A request has 4 s, of which it
 * needs 115 ms: a guest that stands still between two lines of this has not missed a lease. All
 * together take longer than one of them has, so a bound that is not moved on is found.
 */
static void krc_test_leases_that_are_kept(struct kunit *test)
{
	struct krc_test *t = test->priv;
	int i;

	krc_test_lease(t->flow[0], 3800, 200);
	for (i = 1; i <= 40; i++) {
		KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_WRITE, 8), 0);
		usleep_range(110000, 120000);
		krc_test_finish(t, t->flow[0], i);
	}
	msleep(4200);
	krc_test_expect(t, t->flow[0], 0, 40, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 0);
}

/* A request with a lease does not stand behind one that the hardware has been at for long. */
static void krc_test_nothing_leased_behind_an_old_one(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_lease(t->flow[1], 10000, 1500);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 3);
	msleep(2000);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 3);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 3);
	krc_test_finish(t, t->flow[0], 2);
	krc_test_finish(t, t->flow[1], 2);
	krc_test_expect(t, t->flow[1], 0, 2, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 0);
}

/* A CPU that was away between the check of the lease and the doorbell does not ring. */
static void krc_test_a_late_doorbell_is_not_rung(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_lease(t->flow[0], 0, 60000);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_WRITE, 8), 0);
	WRITE_ONCE(t->flow[0]->check, -EAGAIN);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_WRITE, 8), 0);
	t->flow[0]->reqs[0].req.until = jiffies - 2;
	t->flow[0]->lets = 2;
	WRITE_ONCE(t->flow[0]->check, -EBADR); /* when it is checked again */
	krc_flow_resume(&t->flow[0]->flow);
	KUNIT_EXPECT_LE(test, krc_fake_pending(t->fake, 0), 1U); /* 0: it was reset already */
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2);
	krc_test_expect(t, t->flow[0], 0, 1, -EBADR);
	krc_test_expect(t, t->flow[0], 1, 2, -ECANCELED);
	/* that of flow 1 the hardware knew */
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 1);
	krc_test_expect(t, t->flow[1], 0, 1, -EREMCHG);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 0);
}

static void krc_test_cancel_keeps_the_order(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 50, KRP_OP_READ, 8), 0);
	krc_flow_cancel(&t->flow[0]->flow);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[0]->done), 0);
	krc_test_finish(t, t->flow[0], 50);
	krc_test_expect(t, t->flow[0], 0, KRC_TEST_DEPTH, 0);
	krc_test_expect(t, t->flow[0], KRC_TEST_DEPTH, 50, -ECANCELED);
	krc_flow_drain(&t->flow[0]->flow);
}

static void krc_test_the_end_does_not_need_the_hardware(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->flow[1]->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 50, KRP_OP_FETCH_ADD, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 5, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 2, KRP_OP_WRITE, 5000000), 0);
	krc_pool_stop(t->pool);
	krc_test_expect(t, t->flow[0], 0, KRC_TEST_DEPTH, -EREMCHG);
	krc_test_expect(t, t->flow[0], KRC_TEST_DEPTH, 50, -ENODEV);
	krc_test_expect(t, t->flow[1], 0, 5, -ENODEV);
	krc_test_expect(t, t->flow[2], 0, 2, -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_READ, 8), -ENODEV);
	krc_flow_drain(&t->flow[0]->flow);
	krc_pool_stop(t->pool);
}

static void krc_test_a_dead_initiator_answers(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;

	t->fake->reset_error = -EIO;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 40, KRP_OP_READ, 8), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 40);
	krc_test_expect(t, t->flow[0], 0, 1, -EREMOTEIO);
	krc_test_expect(t, t->flow[1], 0, 40, -EIO);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.dead, 1);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), -EIO);
	t->fake->reset_error = 0;
	mod_delayed_work(t->pool->wq, &krc_test_channel(t, 0)->failure.recover, 0);
	krc_test_wait(test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[2], 1);
}

static void krc_test_the_watchdog_finds_what_stands_still(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->fake->mute = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 4, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 2), 2);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2); /* a lost interrupt */
	spin_lock_bh(&krc_test_channel(t, 0)->lock);
	krc_test_channel(t, 0)->progress = jiffies - msecs_to_jiffies(KRC_STUCK_MS) - 1;
	spin_unlock_bh(&krc_test_channel(t, 0)->lock);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1); /* stuck hardware */
	t->fake->mute = false;
	krc_test_finish(t, t->flow[0], 4);
	krc_test_expect(t, t->flow[0], 0, 4, 0);
}

/* The softirq that was to see it had just looked: the next poll sees it. */
static void krc_test_a_fatal_event_is_not_lost(struct kunit *test)
{
	struct krc_test *t = test->priv;

	set_bit(0, &krc_test_channel(t, 0)->failure.fatal);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1); /* the watchdog */
	krc_test_wait(test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	set_bit(0, &krc_test_channel(t, 0)->failure.fatal);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 4, KRP_OP_READ, 8), 0);
	/* it may be reset, and ready, before this looks */
	KUNIT_EXPECT_FALSE(test, test_bit(0, &krc_test_channel(t, 0)->failure.fatal));
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 2);
	krc_test_finish(t, t->flow[0], 4);
	krc_test_expect(t, t->flow[0], 0, 4, 0);
}

static void krc_test_a_stray_completion_is_nobodys(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;

	/* while nothing is under way nobody looks: it is found with the next request */
	krc_fake_stray(t->fake, 0);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[0], 4, KRP_OP_READ, 8), 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1);
	krc_test_finish(t, t->flow[0], 4);
	krc_test_expect(t, t->flow[0], 0, 4, 0);

	/* else at once */
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[1], 4, KRP_OP_READ, 8), 0);
	krc_fake_stray(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 2);
	krc_test_wait(test, READ_ONCE(krc_test_channel(t, 0)->state) == KRC_CHANNEL_READY);
	krc_test_finish(t, t->flow[1], 4);
	krc_test_expect(t, t->flow[1], 0, 4, 0);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.strays, 2);
}

/* Whether the first initiator has something to do that can fail. */
static bool krc_test_rung(struct krc_test *t)
{
	struct krc_fake_initiator *ini = t->fake->ini[0];
	bool rung;

	spin_lock_bh(&ini->lock);
	rung = !ini->failed && ini->done != ini->rung;
	spin_unlock_bh(&ini->lock);
	return rung;
}

static void krc_test_resets_that_help_nobody_end(struct kunit *test)
{
	struct krc_test *t = test->priv;
	int i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 4, KRP_OP_READ, 8), 0);
	for (i = 0; i < 2 * KRC_FRUITLESS_MAX && !READ_ONCE(t->flow[0]->done); i++) {
		krc_fake_fail(t->fake, 0, KRC_FAULT_FATAL);
		krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) > i);
		/* it can fail again when the card has what is done again */
		krc_test_wait(test, krc_test_rung(t) || READ_ONCE(t->flow[0]->done) == 4);
	}
	KUNIT_EXPECT_EQ(test, i, KRC_FRUITLESS_MAX);
	krc_test_expect(t, t->flow[0], 0, 4, -EIO);
}

static void krc_test_states_follow_the_table(struct kunit *test)
{
	static const bool may[KRC_CHANNEL_STATES][KRC_CHANNEL_STATES] = {
		[KRC_CHANNEL_READY] = { [KRC_CHANNEL_FAILED] = 1,
					[KRC_CHANNEL_LEAVING] = 1,
					[KRC_CHANNEL_STOPPED] = 1 },
		[KRC_CHANNEL_LEAVING] = { [KRC_CHANNEL_FAILED] = 1, [KRC_CHANNEL_STOPPED] = 1 },
		[KRC_CHANNEL_FAILED] = { [KRC_CHANNEL_RESETTING] = 1, [KRC_CHANNEL_STOPPED] = 1 },
		[KRC_CHANNEL_RESETTING] = { [KRC_CHANNEL_READY] = 1,
					    [KRC_CHANNEL_DEAD] = 1,
					    [KRC_CHANNEL_STOPPED] = 1 },
		[KRC_CHANNEL_DEAD] = { [KRC_CHANNEL_RESETTING] = 1, [KRC_CHANNEL_STOPPED] = 1 },
	};
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	u32 from, to;

	for (from = 0; from < KRC_CHANNEL_STATES; from++)
		for (to = 0; to < KRC_CHANNEL_STATES; to++) {
			bool changed;

			spin_lock_bh(&ch->lock);
			ch->state = from;
			changed = krc_channel_set_state(ch, to);
			KUNIT_EXPECT_EQ(test, ch->state, changed ? to : from);
			ch->state = KRC_CHANNEL_READY;
			spin_unlock_bh(&ch->lock);
			KUNIT_EXPECT_EQ(test, changed, may[from][to]);
		}
}

#define KRC_TEST_CROWD (KRC_DISPATCH_MAX + 4)

/* A task that tells of what others have done stops at a bound, and a softirq goes on. */
static void krc_test_a_dispatcher_works_for_a_bounded_number(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	struct krc_test_flow *flows =
		kunit_kcalloc(test, KRC_TEST_CROWD, sizeof(*flows), GFP_KERNEL);
	u32 done = 0, i;

	BUILD_BUG_ON(KRC_TELL_MAX > KRC_TEST_REQS);
	KUNIT_ASSERT_NOT_NULL(test, flows);
	spin_lock_bh(&ch->lock);
	WRITE_ONCE(ch->dispatching, true); /* somebody else does it, and is away */
	spin_unlock_bh(&ch->lock);
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		flows[i].check = -EAGAIN;
		krc_flow_init(&flows[i].flow, t->pool, krc_test_done, krc_test_check);
		KUNIT_EXPECT_EQ(test, krc_test_submit(&flows[i], KRC_TELL_MAX, KRP_OP_READ, 8), 0);
		krc_flow_cancel(&flows[i].flow);
		KUNIT_EXPECT_EQ(test, READ_ONCE(flows[i].done), 0U);
	}
	spin_lock_bh(&ch->lock);
	WRITE_ONCE(ch->dispatching, false);
	krc_channel_dispatch(ch);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		done += READ_ONCE(flows[i].done);
	spin_unlock_bh(&ch->lock);
	KUNIT_EXPECT_EQ(test, done, (u32)KRC_DISPATCH_MAX * KRC_TELL_MAX);
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		krc_test_wait(test, READ_ONCE(flows[i].done) == KRC_TELL_MAX);
		krc_test_expect(t, &flows[i], 0, KRC_TELL_MAX, -ECANCELED);
		krc_flow_drain(&flows[i].flow);
		krc_flow_release(&flows[i].flow);
	}
}

static struct kunit_case krc_pool_cases[] = {
	KUNIT_CASE(krc_test_never_more_than_the_depth),
	KUNIT_CASE(krc_test_large_requests_go_in_parts),
	KUNIT_CASE(krc_test_a_flood_lets_others_through),
	KUNIT_CASE(krc_test_turns_are_by_bytes),
	KUNIT_CASE(krc_test_a_fault_is_its_flows_alone),
	KUNIT_CASE(krc_test_a_dispatcher_works_for_a_bounded_number),
	KUNIT_CASE(krc_test_unsignaled_requests),
	KUNIT_CASE(krc_test_a_fault_behind_unsignaled_ones),
	KUNIT_CASE(krc_test_a_flow_ends_its_turn_aloud),
	KUNIT_CASE(krc_test_unsignaled_before_what_does_not_come),
	KUNIT_CASE(krc_test_what_is_passed_over_behind_a_fault),
	KUNIT_CASE(krc_test_a_silent_peer_is_silent_to_all),
	KUNIT_CASE(krc_test_apart),
	KUNIT_CASE(krc_test_a_way_that_is_lost),
	KUNIT_CASE(krc_test_a_burst_is_spread),
	KUNIT_CASE(krc_test_a_part_that_fails_ends_its_request),
	KUNIT_CASE(krc_test_replay_goes_on_where_it_was),
	KUNIT_CASE(krc_test_another_way_is_the_same_target),
	KUNIT_CASE(krc_test_atomics_are_done_once_or_in_doubt),
	KUNIT_CASE(krc_test_writes_are_done_once_or_in_doubt),
	KUNIT_CASE(krc_test_what_may_be_done_twice_is_done_again),
	KUNIT_CASE(krc_test_what_is_behind_one_in_doubt),
	KUNIT_CASE(krc_test_cancelled_means_not_done),
	KUNIT_CASE(krc_test_a_halt_forgets_no_completion),
	KUNIT_CASE(krc_test_a_lease_bounds_the_stay),
	KUNIT_CASE(krc_test_reads_expire_without_progress),
	KUNIT_CASE(krc_test_writes_expire_without_progress),
	KUNIT_CASE(krc_test_leases_that_are_kept),
	KUNIT_CASE(krc_test_nothing_leased_behind_an_old_one),
	KUNIT_CASE(krc_test_a_late_doorbell_is_not_rung),
	KUNIT_CASE(krc_test_cancel_keeps_the_order),
	KUNIT_CASE(krc_test_the_end_does_not_need_the_hardware),
	KUNIT_CASE(krc_test_a_dead_initiator_answers),
	KUNIT_CASE(krc_test_the_watchdog_finds_what_stands_still),
	KUNIT_CASE(krc_test_a_fatal_event_is_not_lost),
	KUNIT_CASE(krc_test_a_stray_completion_is_nobodys),
	KUNIT_CASE(krc_test_resets_that_help_nobody_end),
	KUNIT_CASE(krc_test_states_follow_the_table),
	{}
};

static struct kunit_suite krc_pool_suite = {
	.name = "krcore_pool",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_pool_cases,
};
kunit_test_suite(krc_pool_suite);
