// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: turns of a channel by payers: a payer with many flows beside one with a single flow, and
 * what becomes of the others when a flow leaves that stands for its payer.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"

#define KRC_TEST_CROWD 6 /* flows of one payer, with addresses from 1 */
#define KRC_TEST_SMALLS (KRC_QUANTUM_BYTES / KRC_COST_BYTES) /* small requests of one turn */

/* The flows of one payer, on the pool of a test; what it has of its own are other payers. */
static struct krc_test_flow *krc_test_crowd(struct krc_test *t)
{
	struct krc_test_flow *crowd =
		kunit_kcalloc(t->test, KRC_TEST_CROWD, sizeof(*crowd), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(t->test, crowd);
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		crowd[i].address.opaque[0] = 1 + i;
		krc_flow_init(&crowd[i].flow, t->pool, krc_test_done, krc_test_check);
		crowd[i].flow.payer = crowd;
	}
	return crowd;
}

/* End the flows of a crowd, whatever they still have. */
static void krc_test_crowd_end(struct krc_test *t, struct krc_test_flow *crowd)
{
	u32 i;

	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_flow_cancel(&crowd[i].flow);
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		krc_test_finish(t, &crowd[i], crowd[i].submitted);
		krc_flow_drain(&crowd[i].flow);
		krc_flow_release(&crowd[i].flow);
	}
}

/* Requests of each flow of a crowd. */
static void krc_test_crowd_submit(struct krc_test *t, struct krc_test_flow *crowd, u32 count,
				  u32 length)
{
	u32 i;

	for (i = 0; i < KRC_TEST_CROWD; i++)
		KUNIT_EXPECT_EQ(t->test, krc_test_submit(&crowd[i], count, KRP_OP_READ, length), 0);
}

/* Count what the NIC carried out for flows by the first byte of their address, from @from on. */
static void krc_test_carried(struct krc_test *t, u64 from, u32 ret_count[1 + KRC_TEST_CROWD])
{
	const struct krc_fake_initiator *ini = t->fake->ini[0];
	u64 i;

	memset(ret_count, 0, (1 + KRC_TEST_CROWD) * sizeof(*ret_count));
	for (i = from; i < ini->log_nr; i++)
		ret_count[min_t(u64, ini->log[i] >> 56, KRC_TEST_CROWD)]++;
}

/* One flow has as many bytes as all those of another payer together, which are equal themselves. */
static void krc_test_turns_are_by_payer(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	u32 count[1 + KRC_TEST_CROWD], all = 0, least = U32_MAX, most = 0, i;

	krc_test_crowd_submit(t, crowd, 40, KRC_SEGMENT_BYTES);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 60, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	krc_test_finish(t, t->flow[0], 60);
	krc_test_carried(t, KRC_WINDOW_BYTES / KRC_SEGMENT_BYTES, count);
	for (i = 1; i <= KRC_TEST_CROWD; i++) {
		all += count[i];
		least = min(least, count[i]);
		most = max(most, count[i]);
	}
	KUNIT_EXPECT_EQ(test, count[0], 60U);
	KUNIT_EXPECT_LE(test, abs((int)(all - count[0])), KRC_TEST_DEPTH);
	KUNIT_EXPECT_LE(test, most - least, 2U);
	krc_test_crowd_end(t, crowd);
}

/* What a flow leaves of its payer's turn is for the next one, and no turn is added to it. */
static void krc_test_a_turn_is_shared(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	u32 count[1 + KRC_TEST_CROWD];
	u64 i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	krc_test_crowd_submit(t, crowd, 30, 8);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[0], 1);
	for (i = KRC_TEST_DEPTH; t->fake->ini[0]->log[i] >> 56; i++)
		;
	KUNIT_EXPECT_LE(test, i - KRC_TEST_DEPTH, (u64)KRC_TEST_SMALLS);
	krc_test_carried(t, KRC_TEST_DEPTH, count);
	KUNIT_EXPECT_EQ(test, count[1], 30U);
	KUNIT_EXPECT_EQ(test, count[2], 30U);
	KUNIT_EXPECT_GT(test, count[3], 0U);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_test_finish(t, &crowd[i], 30);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_test_expect(t, &crowd[i], 0, 30, 0);
	krc_test_crowd_end(t, crowd);
}

/* What is too large for the rest of a turn has the next one of its payer, before other flows. */
static void krc_test_a_large_request_is_not_passed_over(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	u32 i, of_others = 0;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(&crowd[1], 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(&crowd[0], 1, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	for (i = 2; i < KRC_TEST_CROWD; i++)
		KUNIT_EXPECT_EQ(test, krc_test_submit(&crowd[i], 100, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 40, KRP_OP_READ, 8), 0);
	krc_test_finish(t, &crowd[0], 1);
	for (i = KRC_TEST_DEPTH; t->fake->ini[0]->log[i] >> 56 != 1; i++)
		of_others += t->fake->ini[0]->log[i] >> 56 > 2;
	KUNIT_EXPECT_EQ(test, of_others, 0U);
	KUNIT_EXPECT_EQ(test, i, KRC_TEST_DEPTH + 1U + 40U);
	krc_test_crowd_end(t, crowd);
	krc_test_finish(t, t->flow[0], 40);
}

/* The first of a payer is cancelled, then one behind it: the others go on, each request once. */
static void krc_test_the_first_leaves(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	krc_test_crowd_submit(t, crowd, 20, 8);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 20, KRP_OP_READ, 8), 0);
	krc_flow_cancel(&crowd[0].flow);
	krc_flow_cancel(&crowd[3].flow);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_test_finish(t, &crowd[i], 20);
	krc_test_finish(t, t->flow[0], 20);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_test_expect(t, &crowd[i], 0, 20, i == 0 || i == 3 ? -ECANCELED : 0);
	krc_test_expect(t, t->flow[0], 0, 20, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&krc_test_channel(t, 0)->turn));
	krc_test_crowd_end(t, crowd);
}

/* A flow that is held gives its place away, and has it again before the others of its payer. */
static void krc_test_the_first_is_held(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	const struct krc_fake_initiator *ini = t->fake->ini[0];
	u32 segments = KRC_WINDOW_BYTES / KRC_SEGMENT_BYTES;

	crowd[0].check = -EAGAIN;
	krc_test_crowd_submit(t, crowd, 8, KRC_SEGMENT_BYTES);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 8, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), segments);
	crowd[0].check = 0;
	krc_flow_resume(&crowd[0].flow);
	krc_fake_complete(t->fake, 0, segments);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == segments);
	krc_fake_complete(t->fake, 0, segments);
	/* its turn comes with the next of its payer, and is one, after which it is flow 0's */
	KUNIT_EXPECT_EQ(test, ini->log[segments] >> 56, 1U);
	KUNIT_EXPECT_EQ(test, ini->log[segments + 1] >> 56, 0U);
	krc_test_crowd_end(t, crowd);
	krc_test_finish(t, t->flow[0], 8);
	krc_test_expect(t, &crowd[0], 0, 1, 0);
}

/* Nor does it come last because others have left too little of the turn for what it has. */
static void krc_test_the_rest_of_a_turn_is_too_little(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	const struct krc_fake_initiator *ini = t->fake->ini[0];

	crowd[0].check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(&crowd[0], 1, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(&crowd[1], 60, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), (u32)KRC_TEST_DEPTH);
	crowd[0].check = 0;
	krc_flow_resume(&crowd[0].flow);
	krc_test_finish(t, &crowd[0], 1);
	KUNIT_EXPECT_EQ(test, ini->log[KRC_TEST_DEPTH] >> 56, 1U);
	krc_test_finish(t, &crowd[1], 60);
	krc_test_crowd_end(t, crowd);
}

/* All of a payer's flows end with their channel, not only the one that stands for it. */
static void krc_test_all_of_a_payer_end(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	krc_test_crowd_submit(t, crowd, 20, 8);
	t->fake->reset_error = -EIO;
	krc_fake_fatal(t->fake, 0);
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		krc_test_wait(test, READ_ONCE(crowd[i].done) == 20);
		krc_test_expect(t, &crowd[i], 0, 20, -EIO);
	}
	t->fake->reset_error = 0;
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		krc_flow_drain(&crowd[i].flow);
		krc_flow_release(&crowd[i].flow);
	}
}

/* When a channel is removed, those behind the first of a payer move like it. */
static void krc_test_all_of_a_payer_move(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *crowd = krc_test_crowd(t);
	struct krc_channel *ch = krc_test_channel(t, 0), *other;
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], KRC_TEST_DEPTH, KRP_OP_READ, 8), 0);
	krc_test_crowd_submit(t, crowd, 20, 8);
	other = krc_pool_add(t->pool, KRC_CHANNEL_SHARED);
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	spin_lock_bh(&ch->lock);
	krc_channel_set_state(ch, KRC_CHANNEL_LEAVING);
	spin_unlock_bh(&ch->lock);
	krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, krc_pool_remove(t->pool, ch), 0);
	for (i = 0; i < KRC_TEST_CROWD; i++)
		krc_test_wait(test, (krc_fake_complete(t->fake, other->index, KRC_TEST_DEPTH),
				     READ_ONCE(crowd[i].done) == 20));
	for (i = 0; i < KRC_TEST_CROWD; i++) {
		krc_test_expect(t, &crowd[i], 0, 20, 0);
		krc_flow_drain(&crowd[i].flow);
		krc_flow_release(&crowd[i].flow);
	}
}

/* What the provider hears of the account that a request is on. */
static void krc_test_the_provider_hears_of_the_payer(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_fake_initiator *ini = t->fake->ini[0];

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_PTR_EQ(test, ini->payer, t->flow[0]->flow.payer);
	t->flow[1]->flow.payer = test;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 2 * KRC_SEGMENT_BYTES),
			0);
	KUNIT_EXPECT_PTR_EQ(test, ini->payer, (const void *)test);
	t->flow[0]->flow.bill = ini; /* its turns are its own still */
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[0], 2);
	krc_test_finish(t, t->flow[1], 1);
	KUNIT_EXPECT_PTR_EQ(test, ini->payer, (const void *)ini);
}

static struct kunit_case krc_payers_cases[] = {
	KUNIT_CASE(krc_test_the_provider_hears_of_the_payer),
	KUNIT_CASE(krc_test_turns_are_by_payer),
	KUNIT_CASE(krc_test_a_turn_is_shared),
	KUNIT_CASE(krc_test_a_large_request_is_not_passed_over),
	KUNIT_CASE(krc_test_the_first_leaves),
	KUNIT_CASE(krc_test_the_first_is_held),
	KUNIT_CASE(krc_test_the_rest_of_a_turn_is_too_little),
	KUNIT_CASE(krc_test_all_of_a_payer_end),
	KUNIT_CASE(krc_test_all_of_a_payer_move),
	{}
};

static struct kunit_suite krc_payers_suite = {
	.name = "krcore_payers",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_payers_cases,
};
kunit_test_suite(krc_payers_suite);
