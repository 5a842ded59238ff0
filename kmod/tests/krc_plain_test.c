// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: requests that the pool posts, and completes, several at a time: of flows without check(),
 * or whose check() has nothing to say while a lease holds (krc_flow.lapses). What they share with
 * all others is tested with flows that are asked for each segment, in the other suites of the pool.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"

static int krc_test_plain_init(struct kunit *test)
{
	int err = krc_test_init(test);
	struct krc_test *t = test->priv;
	int i;

	for (i = 0; !err && i < ARRAY_SIZE(t->flow); i++)
		t->flow[i]->flow.check = NULL;
	return err;
}

/* No request of a flow is left in a list of it. */
static void krc_test_expect_empty(struct krc_test *t, struct krc_test_flow *flow)
{
	krc_flow_drain(&flow->flow);
	KUNIT_EXPECT_TRUE(t->test, list_empty(&flow->flow.waiting));
	KUNIT_EXPECT_TRUE(t->test, list_empty(&flow->flow.replay));
	KUNIT_EXPECT_TRUE(t->test, list_empty(&flow->flow.flight));
	KUNIT_EXPECT_EQ(t->test, flow->flow.posted, 0U);
}

/* Small ones and large ones, more than the hardware holds, of several flows. */
static void krc_test_plain_ones_keep_their_order(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;
	u32 i, j;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[i], 10, KRP_OP_READ, 8), 0);
		KUNIT_ASSERT_EQ(
			test,
			krc_test_submit(t->flow[i], 1, KRP_OP_WRITE, 3 * KRC_SEGMENT_BYTES - 8), 0);
		for (j = 0; j < 19; j++)
			KUNIT_ASSERT_EQ(test,
					krc_test_submit(t->flow[i], 1, KRP_OP_READ,
							KRC_UNSIGNALED_BYTES - 9 + j),
					0);
	}
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, 0)->tail - krc_test_channel(t, 0)->head,
			(u32)KRC_TEST_DEPTH);
	for (i = 0; i < 3; i++)
		krc_test_finish(t, t->flow[i], 30);
	for (i = 0; i < 3; i++) {
		krc_test_expect_empty(t, t->flow[i]);
		krc_test_expect(t, t->flow[i], 0, 30, 0);
		KUNIT_EXPECT_EQ(test, t->flow[i]->mixed, 0U);
	}
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.posted, 3 * 32ULL);
	KUNIT_EXPECT_EQ(test, stats.completed, 3 * 30ULL);
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, 0)->bytes, 0U);
}

/* A fault ends its flow; requests of another one that were flushed are posted again, in order. */
static void krc_test_plain_ones_are_replayed(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 6, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 6, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 30, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 2), 2U);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 36);
	krc_test_expect(t, t->flow[0], 0, 2, 0);
	krc_test_expect(t, t->flow[0], 2, 3, -EREMOTEIO);
	krc_test_expect(t, t->flow[0], 3, 36, -ECANCELED);
	krc_test_finish(t, t->flow[1], 6);
	krc_test_expect(t, t->flow[1], 0, 6, 0);
	krc_test_expect_empty(t, t->flow[0]);
	krc_test_expect_empty(t, t->flow[1]);
}

/* What the provider does not take fails, and those behind it; what it took before is in order. */
static void krc_test_plain_ones_that_are_refused(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_READ, 8), 0);
	t->fake->post_error = -EINVAL;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_READ, 8), 0);
	t->fake->post_error = 0;
	krc_test_finish(t, t->flow[0], 6);
	krc_test_expect(t, t->flow[0], 0, 3, 0);
	krc_test_expect(t, t->flow[0], 3, 4, -EIO);
	krc_test_expect(t, t->flow[0], 4, 6, -ECANCELED);
	krc_test_expect_empty(t, t->flow[0]);
}

/* The provider takes some of those that are posted together: the next fails, or they wait. */
static void krc_test_plain_ones_that_are_taken_in_part(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_pool_stats stats;

	t->fake->post_good = 2;
	t->fake->post_error = -EINVAL;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 5, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 2U);
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, 0)->bytes, 16U);
	krc_test_finish(t, t->flow[0], 5);
	krc_test_expect(t, t->flow[0], 0, 2, 0);
	krc_test_expect(t, t->flow[0], 2, 3, -EIO);
	krc_test_expect(t, t->flow[0], 3, 5, -ECANCELED);
	krc_test_expect_empty(t, t->flow[0]);

	t->fake->post_good = 3;
	t->fake->post_error = -ENOSPC;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 5, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[1]->flow.posted, 3U);
	KUNIT_EXPECT_FALSE(test, t->flow[1]->reqs[3].req.begun);
	t->fake->post_error = 0;
	krc_test_finish(t, t->flow[1], 5);
	krc_test_expect(t, t->flow[1], 0, 5, 0);
	krc_test_expect_empty(t, t->flow[1]);
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, 0)->bytes, 0U);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.posted, 7ULL);
}

/* A flow that lapses is not asked while a lease holds, and is when it is over. */
static void krc_test_what_lapses_is_asked_in_the_end(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	flow->flow.check = krc_test_check;
	flow->flow.lapses = true;
	krc_test_lease(flow, 100000, 100000);
	flow->check = -EBADR;
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 4, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 2 * KRC_SEGMENT_BYTES), 0);
	krc_test_finish(t, flow, 5);
	krc_test_expect(t, flow, 0, 5, 0);

	/* the first is in time, the second is not: it waits for its owner */
	flow->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 2, KRP_OP_READ, 8), 0);
	flow->reqs[6].req.until = jiffies - 1;
	krc_test_finish(t, flow, 6);
	krc_test_expect(t, flow, 5, 6, 0);
	KUNIT_EXPECT_TRUE(test, flow->flow.held);
	KUNIT_EXPECT_EQ(test, READ_ONCE(flow->done), 6U);
	flow->reqs[6].req.until = jiffies + HZ * 100;
	krc_flow_resume(&flow->flow);
	krc_test_finish(t, flow, 7);
	krc_test_expect(t, flow, 6, 7, 0);

	/* of a flow that is not leased it is asked in any case */
	flow->leased = false;
	flow->check = -EBADR;
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
	krc_test_wait(test, READ_ONCE(flow->done) == 8);
	krc_test_expect(t, flow, 7, 8, -EBADR);
	krc_test_expect_empty(t, flow);
}

/* The device goes away under requests that wait, and under some that are in the hardware. */
static void krc_test_plain_ones_at_the_end(struct kunit *test)
{
	struct krc_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 50, KRP_OP_WRITE, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 5, KRP_OP_READ, 8), 0);
	krc_pool_stop(t->pool);
	krc_test_expect(t, t->flow[0], 0, KRC_TEST_DEPTH, -EREMCHG);
	krc_test_expect(t, t->flow[0], KRC_TEST_DEPTH, 50, -ENODEV);
	krc_test_expect(t, t->flow[1], 0, 5, -ENODEV);
	krc_test_expect_empty(t, t->flow[0]);
	krc_test_expect_empty(t, t->flow[1]);
}

/* The NIC fails under five WRITEs, @fatal: and says so; it flushes with one completion for all. */
static void krc_test_flush(struct krc_test *t, struct krc_test_flow *flow, bool fatal)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 5, KRP_OP_WRITE, 8), 0);
	krc_test_wait(t->test, krc_fake_pending(t->fake, 0) == 5);
	KUNIT_EXPECT_TRUE(t->test, flow->reqs[0].req.wr.unsignaled);
	spin_lock_bh(&ch->lock); /* so that no recovery comes between */
	if (fatal)
		krc_fake_fatal(t->fake, 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_FLUSHED);
	spin_unlock_bh(&ch->lock);
	krc_test_wait(t->test, READ_ONCE(flow->done) == 5);
	krc_test_expect(t, flow, 0, 5, -EREMCHG);
	KUNIT_EXPECT_EQ(t->test, t->fake->ini[0]->log_nr, 0);
}

/* Where no request has failed nothing is done that a NIC passes over as it flushes. */
static void krc_test_flushed_first(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->fake->sparse = true;
	t->fake->mean = true;
	krc_test_flush(t, t->flow[0], false);
	krc_test_flush(t, t->flow[1], true);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 5, KRP_OP_READ, 8), 0);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 5);
	krc_fake_fail(t->fake, 0, KRC_FAULT_FLUSHED);
	krc_test_finish(t, t->flow[2], 5);
	krc_test_expect(t, t->flow[2], 0, 5, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 5);
}

/* A NIC that fails like this after a lease has ended had come to whichever target. */
static void krc_test_behind_a_lease(struct krc_test *t, enum krc_fault fault)
{
	struct krc_channel *ch = krc_test_channel(t, 0);
	struct kunit *test = t->test;
	int i;

	for (i = 1; i < 3; i++)
		KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[i], 1, KRP_OP_WRITE, 8), 0);
	spin_lock_bh(&ch->lock);
	krc_channel_fault(ch, KRC_FAULT_EXPIRED, NULL);
	krc_fake_fail(t->fake, 0, fault);
	spin_unlock_bh(&ch->lock);
	for (i = 1; i < 3; i++) {
		krc_test_finish(t, t->flow[i], 1);
		krc_test_expect(t, t->flow[i], 0, 1, -EREMCHG);
	}
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 0);
}

/* All are in doubt then. */
static void krc_test_flushed_behind_a_lease(struct kunit *test)
{
	krc_test_behind_a_lease(test->priv, KRC_FAULT_FLUSHED);
}

static void krc_test_fatal_behind_a_lease(struct kunit *test)
{
	krc_test_behind_a_lease(test->priv, KRC_FAULT_FATAL);
}

/* ---- leases that end in the hardware, and whose target is to blame */

/* Requests of @flow, with leases that end when the test says so. */
static void krc_test_leased(struct krc_test *t, struct krc_test_flow *flow, u32 count, u8 opcode)
{
	krc_test_lease(flow, 100000, 100000);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, count, opcode, 8), 0);
}

static void krc_test_expect_faults(struct krc_test *t, struct krc_test_flow *flow,
				   enum krc_fault first, enum krc_fault second)
{
	KUNIT_EXPECT_EQ(t->test, (int)flow->reqs[0].req.fault, (int)first);
	KUNIT_EXPECT_EQ(t->test, (int)flow->reqs[1].req.fault, (int)second);
}

static const struct {
	u8 opcode;
	bool busy;
	bool unsent;
	enum krc_fault fault;
} krc_test_lapses[] = {
	{ KRP_OP_WRITE, false, false, KRC_FAULT_EXPIRED },
	{ KRP_OP_FETCH_ADD, false, false, KRC_FAULT_EXPIRED },
	{ KRP_OP_WRITE, true, false, KRC_FAULT_FLUSHED },
	{ KRP_OP_WRITE, false, true, KRC_FAULT_FLUSHED },
};

/* The oldest says so, if the hardware was at it for long; that it may have been done, in any case. */
static void krc_test_whom_a_lease_names(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 i;

	BUILD_BUG_ON(ARRAY_SIZE(krc_test_lapses) > ARRAY_SIZE(t->flow));
	for (i = 0; i < ARRAY_SIZE(krc_test_lapses); i++) {
		t->fake->unsent = krc_test_lapses[i].unsent;
		krc_test_leased(t, t->flow[i], 2, krc_test_lapses[i].opcode);
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 2);
		krc_test_lapse(t, 0, krc_test_lapses[i].busy);
		krc_test_wait(test, READ_ONCE(t->flow[i]->done) == 2);
		krc_test_expect(t, t->flow[i], 0, 2, -EREMCHG);
		krc_test_expect_faults(t, t->flow[i], krc_test_lapses[i].fault, KRC_FAULT_NONE);
	}
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 0);
}

/* A WRITE that waits for another target is not to blame, whosever lease ends; it is for its own. */
static void krc_test_behind_another_silence(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 i;

	krc_test_leased(t, t->flow[0], 1, KRP_OP_READ);
	krc_test_leased(t, t->flow[1], 2, KRP_OP_WRITE);
	krc_test_leased(t, t->flow[2], 2, KRP_OP_FETCH_ADD);
	for (i = 1; i < KRC_EXPIRIES_MAX; i++) {
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 5);
		krc_test_lapse(t, i, false);
		krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == i);
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 5);
		krc_test_expect_faults(t, t->flow[1], KRC_FAULT_NONE, KRC_FAULT_NONE);
	}
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 1);
	krc_test_expect(t, t->flow[0], 0, 1, 0);
	krc_test_lapse(t, 0, false); /* now it is the oldest */
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 2);
	krc_test_expect(t, t->flow[1], 0, 2, -EREMCHG);
	krc_test_expect_faults(t, t->flow[1], KRC_FAULT_EXPIRED, KRC_FAULT_NONE);
	krc_test_finish(t, t->flow[2], 2);
	krc_test_expect(t, t->flow[2], 0, 2, 0);
	krc_test_expect_faults(t, t->flow[2], KRC_FAULT_NONE, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 3);
}

/* What others complete does not keep a READ from its end. */
static void krc_test_reads_expire_beside_progress(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 i;

	krc_test_leased(t, t->flow[0], 1, KRP_OP_READ);
	for (i = 1; i <= KRC_EXPIRIES_MAX; i++) {
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
		krc_test_lapse(t, 0, true);
		krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == i);
	}
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 1);
	krc_test_expect(t, t->flow[0], 0, 1, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, (int)t->flow[0]->reqs[0].req.fault, (int)KRC_FAULT_TIMEOUT);
}

static struct kunit_case krc_plain_cases[] = { KUNIT_CASE(krc_test_plain_ones_keep_their_order),
					       KUNIT_CASE(krc_test_plain_ones_are_replayed),
					       KUNIT_CASE(krc_test_plain_ones_that_are_refused),
					       KUNIT_CASE(
						       krc_test_plain_ones_that_are_taken_in_part),
					       KUNIT_CASE(krc_test_what_lapses_is_asked_in_the_end),
					       KUNIT_CASE(krc_test_plain_ones_at_the_end),
					       KUNIT_CASE(krc_test_flushed_first),
					       KUNIT_CASE(krc_test_flushed_behind_a_lease),
					       KUNIT_CASE(krc_test_fatal_behind_a_lease),
					       KUNIT_CASE(krc_test_whom_a_lease_names),
					       KUNIT_CASE(krc_test_behind_another_silence),
					       KUNIT_CASE(krc_test_reads_expire_beside_progress),
					       {} };

static struct kunit_suite krc_plain_suite = {
	.name = "krcore_plain",
	.init = krc_test_plain_init,
	.exit = krc_test_exit,
	.test_cases = krc_plain_cases,
};
kunit_test_suite(krc_plain_suite);
