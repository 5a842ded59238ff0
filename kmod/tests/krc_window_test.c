// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: how many segments of a channel the hardware has, by how fast they complete. The time between
 * looks is written, not waited for.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"
#include "pool/window.h"

#define KRC_TEST_LONG_MS 30000 /* in which a few completions are slow */

static int krc_test_window_init(struct kunit *test)
{
	int err = krc_test_init(test);
	struct krc_test *t = test->priv;

	if (!err)
		cancel_delayed_work_sync(&t->pool->watchdog); /* which looks, too */
	return err;
}

/*
 * Look, as if the last look had been so long ago, and the last completion just now, or 60 s ago.
 * Return: the limit.
 */
static u32 krc_test_look(struct krc_test *t, u32 index, u32 ms, bool stalled)
{
	struct krc_channel *ch = krc_test_channel(t, index);
	unsigned long now;
	u32 limit;

	spin_lock_bh(&ch->lock);
	krc_channel_poll(ch, ch->depth);
	now = jiffies;
	ch->window.looked = now - msecs_to_jiffies(ms);
	ch->progress = now - (stalled ? 60 * HZ : 0);
	krc_window_look(ch);
	limit = ch->window.limit;
	ch->progress = jiffies;
	krc_channel_run(ch, KRC_POLL_BATCH);
	spin_unlock_bh(&ch->lock);
	return limit;
}

/* Have so many requests of the first channel complete, and expect so many in the hardware then. */
static void krc_test_some(struct krc_test *t, u32 complete, u32 pending)
{
	if (complete)
		KUNIT_EXPECT_EQ(t->test, krc_fake_complete(t->fake, 0, complete), complete);
	krc_test_wait(t->test, krc_fake_pending(t->fake, 0) == pending);
}

/* Let all requests of a flow succeed, whatever channel they are on. */
static void krc_test_all(struct krc_test *t, struct krc_test_flow *flow)
{
	krc_test_wait(t->test, !krc_fake_complete(t->fake, flow->index, KRC_TEST_DEPTH) &&
				       READ_ONCE(flow->done) == flow->submitted);
	krc_flow_drain(&flow->flow);
	krc_test_expect(t, flow, 0, flow->submitted, 0);
}

/* The first channel is full of requests of a flow, 40 in all; its limit is KRC_WINDOW_MIN. */
static void krc_test_narrowed(struct krc_test *t, struct krc_test_flow *flow)
{
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 40, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(t->test, krc_test_look(t, 0, 0, false), (u32)KRC_TEST_DEPTH);
	krc_test_some(t, 1, KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(t->test, krc_test_look(t, 0, KRC_TEST_LONG_MS, false), KRC_WINDOW_MIN);
}

static void krc_test_what_is_slow_narrows_it(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	u32 limit;

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 40, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, 0, false), (u32)KRC_TEST_DEPTH);
	krc_test_some(t, 5, KRC_TEST_DEPTH);
	limit = krc_test_look(t, 0, KRC_WINDOW_MS / 2, false);
	KUNIT_EXPECT_EQ(test, (unsigned long)limit,
			5 * msecs_to_jiffies(KRC_WINDOW_MS) / msecs_to_jiffies(KRC_WINDOW_MS / 2));
	/* what is there stays, and nothing is posted beside it */
	krc_test_some(t, 0, KRC_TEST_DEPTH);
	krc_test_some(t, KRC_TEST_DEPTH - limit, limit);
	krc_test_some(t, 1, limit);
	krc_test_all(t, flow);
}

/* Never less than a few, however slow it is; a flow that submits at once gets no more either. */
static void krc_test_a_few_are_always_there(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0], *other = t->flow[1];

	krc_test_narrowed(t, flow);
	krc_test_all(t, flow);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 20, KRP_OP_READ, 8), 0);
	krc_test_some(t, 0, KRC_WINDOW_MIN);
	KUNIT_ASSERT_EQ(test, krc_test_submit(other, 1, KRP_OP_READ, 8), 0);
	krc_test_some(t, 0, KRC_WINDOW_MIN);
	krc_test_all(t, flow);
	krc_test_all(t, other);
}

/* How many of what was posted to the first channel last, as many as fill it, are unsignaled. */
static u32 krc_test_unsignaled(struct krc_test *t)
{
	u32 i, count = 0;

	for (i = 0; i < KRC_TEST_DEPTH; i++)
		count += t->fake->ini[0]->wrs[i].unsignaled;
	return count;
}

/* Submit and complete so many at a time, until the first channel was full once. */
static void krc_test_in_turns(struct krc_test *t, struct krc_test_flow *flow, u32 turn)
{
	u32 i;

	for (i = 0; i < KRC_TEST_DEPTH / turn; i++) {
		KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, turn, KRP_OP_READ, 8), 0);
		krc_test_all(t, flow);
	}
}

/* Look and be quick until the limit of the first channel is so much. */
static void krc_test_widen(struct krc_test *t, struct krc_test_flow *flow, u32 limit)
{
	u32 looks;

	for (looks = 0; looks < KRC_TEST_DEPTH; looks++) {
		if (krc_test_look(t, 0, KRC_WINDOW_LOOK_MS, false) >= limit)
			return;
		krc_test_in_turns(t, flow, KRC_WINDOW_MIN);
	}
	KUNIT_FAIL(t->test, "it is not %u after %u looks", limit, looks);
}

/*
 * Few share a completion where they are slow: it would come late, and the time until then be taken
 * for a stall. With the whole depth again as many as before.
 */
static void krc_test_the_slow_are_signaled(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	krc_test_narrowed(t, flow);
	krc_test_all(t, flow);
	krc_test_in_turns(t, flow, KRC_WINDOW_MIN);
	KUNIT_EXPECT_EQ(test, krc_test_unsignaled(t), 0U);
	krc_test_widen(t, flow, KRC_TEST_DEPTH / 2);
	krc_test_in_turns(t, flow, KRC_WINDOW_MIN);
	KUNIT_EXPECT_EQ(test, krc_test_unsignaled(t), (u32)KRC_TEST_DEPTH / 2);
	krc_test_widen(t, flow, KRC_TEST_DEPTH);
	krc_test_in_turns(t, flow, KRC_TEST_DEPTH);
	KUNIT_EXPECT_GE(test, krc_test_unsignaled(t), KRC_TEST_DEPTH - 3U);
}

/* Nor does a flow that submits while more is there than may be, and nobody waits. */
static void krc_test_more_is_there_than_may_be(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0], *plain = t->flow[1];

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, KRC_TEST_DEPTH + 1, KRP_OP_READ, 8), 0);
	krc_test_look(t, 0, 0, false);
	krc_test_some(t, 1, KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, KRC_TEST_LONG_MS, false), KRC_WINDOW_MIN);
	krc_test_some(t, KRC_TEST_DEPTH / 2, KRC_TEST_DEPTH / 2);
	plain->flow.check = NULL;
	KUNIT_ASSERT_EQ(test, krc_test_submit(plain, 5, KRP_OP_READ, 8), 0);
	krc_test_some(t, 0, KRC_TEST_DEPTH / 2);
	krc_test_all(t, plain);
	krc_test_all(t, flow);
}

/* It may have run dry between two looks: then the limit grows, slowly. */
static void krc_test_what_is_quick_widens_it(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	u32 last = KRC_WINDOW_MIN, looks;

	krc_test_narrowed(t, flow);
	krc_test_all(t, flow);
	for (looks = 0; last < KRC_TEST_DEPTH; looks++) {
		last = min(last + last / 8 + 1, (u32)KRC_TEST_DEPTH);
		KUNIT_ASSERT_EQ(test, krc_test_look(t, 0, KRC_WINDOW_LOOK_MS, false), last);
		KUNIT_ASSERT_EQ(test, krc_test_submit(flow, last + 1, KRP_OP_READ, 8), 0);
		krc_test_some(t, 0, last);
		krc_test_all(t, flow);
	}
	KUNIT_EXPECT_GT(test, looks, 5U);
}

/* Nor does it grow while what completes does not need it. */
static void krc_test_what_is_enough_stays(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	krc_test_narrowed(t, flow);
	krc_test_all(t, flow);
	krc_test_look(t, 0, KRC_TEST_LONG_MS, false);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, KRC_WINDOW_MIN, KRP_OP_READ, 8), 0);
	krc_test_all(t, flow);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, 2 * KRC_WINDOW_MS, false), KRC_WINDOW_MIN);
	KUNIT_EXPECT_GT(test, krc_test_look(t, 0, 2 * KRC_WINDOW_MS, false), KRC_WINDOW_MIN);
}

/* Whether the last look of the first channel was long ago. */
static bool krc_test_looked_long_ago(struct krc_test *t)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	return time_before(ch->window.looked, jiffies - msecs_to_jiffies(KRC_TEST_LONG_MS / 2));
}

/* A channel that stands still is not slow; but what completes later may stand for the time before. */
static void krc_test_no_verdict(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 40, KRP_OP_READ, 8), 0);
	krc_test_look(t, 0, 0, false);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, KRC_TEST_LONG_MS, false), (u32)KRC_TEST_DEPTH);
	KUNIT_EXPECT_TRUE(test, krc_test_looked_long_ago(t));
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, KRC_TEST_LONG_MS, true), (u32)KRC_TEST_DEPTH);
	KUNIT_EXPECT_FALSE(test, krc_test_looked_long_ago(t));
	/* nor does a look right after one say anything */
	krc_test_some(t, 1, KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, 0, false), (u32)KRC_TEST_DEPTH);
	krc_test_all(t, flow);
}

/* How fast it was before a reset says nothing: the limit stays. */
static void krc_test_a_reset_begins_anew(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	struct krc_channel *ch = krc_test_channel(t, 0);

	krc_test_narrowed(t, flow);
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == 1);
	krc_test_some(t, 0, KRC_WINDOW_MIN);
	krc_test_wait(test, READ_ONCE(ch->state) == KRC_CHANNEL_READY);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, KRC_WINDOW_LOOK_MS, false), KRC_WINDOW_MIN);
	krc_test_all(t, flow);
}

/* A lease ends in the hardware behind others, of which some have completed, slowly. */
static void krc_test_behind(struct krc_test *t, u32 resets)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	krc_test_wait(t->test, READ_ONCE(ch->state) == KRC_CHANNEL_READY &&
				       krc_fake_complete(t->fake, 0, 1) == 1);
	spin_lock_bh(&ch->lock);
	ch->window.looked = jiffies - msecs_to_jiffies(KRC_TEST_LONG_MS);
	spin_unlock_bh(&ch->lock);
	krc_test_lapse(t, 1, true);
	krc_test_wait(t->test, READ_ONCE(t->fake->ini[0]->resets) == resets);
}

/* A flow that fills the queue of a slow target does not cost others a reset for each lease. */
static void krc_test_leases_end_behind_it(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *slow = t->flow[0], *other = t->flow[1];

	krc_test_lease(slow, 60000, 60000);
	krc_test_lease(other, 60000, 60000);
	KUNIT_ASSERT_EQ(test, krc_test_submit(slow, 40, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(other, 2, KRP_OP_READ, 8), 0);
	krc_test_behind(t, 1);
	krc_test_behind(t, 2);
	krc_test_some(t, 0, KRC_WINDOW_MIN);
	krc_test_finish(t, slow, 40);
	krc_test_all(t, slow);
	krc_test_all(t, other);
}

/* Channels that are not for all keep their depth. */
static void krc_test_others_keep_their_depth(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];

	flow->flow.kind = KRC_CHANNEL_PROBATION;
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 20, KRP_OP_READ, 8), 0);
	krc_test_look(t, flow->index, 0, false);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, flow->index, 1), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, flow->index, KRC_TEST_LONG_MS, false),
			(u32)KRC_TEST_DEPTH);
	krc_test_all(t, flow);
}

/* Where segments are slow a turn is short: others come soon, and small ones cost what large ones do. */
static void krc_test_turns_are_of_time(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *a = t->flow[0], *b = t->flow[1], *large = t->flow[2];
	u32 count[3] = {};
	u64 i, from;

	krc_test_narrowed(t, a);
	KUNIT_ASSERT_EQ(test, krc_test_submit(b, 8, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(large, 1, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	from = t->fake->ini[0]->log_nr + KRC_TEST_DEPTH; /* behind what is there */
	krc_test_finish(t, b, 8);
	for (i = from; i < from + 8; i++)
		count[min_t(u64, t->fake->ini[0]->log[i] >> 56, 2)]++;
	KUNIT_EXPECT_GE(test, count[0], 2U);
	KUNIT_EXPECT_GE(test, count[1], 2U);
	KUNIT_EXPECT_GE(test, count[2], 1U);
	krc_test_finish(t, large, 1);
	krc_test_all(t, a);
}

/* But what takes long for its bytes costs those. */
static void krc_test_turns_are_of_bytes(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	struct krc_channel *ch = krc_test_channel(t, 0);

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 20, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	krc_test_look(t, 0, 0, false);
	krc_test_some(t, 1, KRC_WINDOW_BYTES / KRC_SEGMENT_BYTES);
	KUNIT_EXPECT_EQ(test, krc_test_look(t, 0, KRC_TEST_LONG_MS, false), KRC_WINDOW_MIN);
	KUNIT_EXPECT_EQ(test, ch->window.cost, KRC_COST_BYTES);
	krc_test_all(t, flow);
}

/* Nor are the large requests of a payer passed over, who has small ones all the time. */
static void krc_test_large_ones_get_through(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *small = t->flow[0], *large = t->flow[1];

	small->flow.payer = t;
	large->flow.payer = t;
	krc_test_narrowed(t, small);
	KUNIT_ASSERT_EQ(test, krc_test_submit(small, 100, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(large, 2, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	krc_test_wait(test, krc_fake_complete(t->fake, 0, 1) && READ_ONCE(large->done) == 2);
	KUNIT_EXPECT_LT(test, READ_ONCE(small->done), 60U);
	krc_test_all(t, small);
}

/* What waits for a slow queue waits long: a flow that may choose takes another channel. */
static void krc_test_a_narrow_one_is_loaded(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);

	KUNIT_EXPECT_EQ(test, krc_channel_load(ch), 0U);
	krc_test_narrowed(t, t->flow[0]);
	krc_test_some(t, KRC_TEST_DEPTH - 2, KRC_WINDOW_MIN);
	spin_lock_bh(&ch->lock);
	ch->progress = jiffies + 60 * HZ; /* just now, however long this takes */
	spin_unlock_bh(&ch->lock);
	KUNIT_EXPECT_EQ(test, krc_channel_load(ch), (u32)KRC_TEST_DEPTH);
	krc_test_all(t, t->flow[0]);
	KUNIT_EXPECT_EQ(test, krc_channel_load(ch), 0U);
}

/* The last look of the first channel was long ago, and the last completion then. */
static void krc_test_last_look(struct krc_test *t, unsigned long progress)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	spin_lock_bh(&ch->lock);
	ch->window.looked = jiffies - 60 * HZ;
	ch->progress = progress;
	spin_unlock_bh(&ch->lock);
}

/* The work item of the leases looks: soon while a channel is full or limited, else in its time. */
static void krc_test_leases_are_looked_after(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	struct krc_channel *ch = krc_test_channel(t, 0);
	unsigned long soon = msecs_to_jiffies(KRC_WINDOW_LOOK_MS), far = 60 * HZ;

	krc_test_lease(flow, 60000, 60000);
	spin_lock_bh(&ch->lock);
	KUNIT_EXPECT_EQ(test, krc_window_next(ch, far), far);
	spin_unlock_bh(&ch->lock);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, KRC_TEST_DEPTH - 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(ch->window.soon));
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 20, KRP_OP_READ, 8), 0);
	spin_lock_bh(&ch->lock);
	KUNIT_EXPECT_TRUE(test, ch->window.soon);
	KUNIT_EXPECT_TRUE(test, time_before_eq(ch->lease.expiry.timer.expires, jiffies + soon));
	KUNIT_EXPECT_LE(test, krc_window_next(ch, far), soon);
	KUNIT_EXPECT_LE(test, krc_window_next(ch, soon / 2), soon / 2);
	ch->window.due = jiffies + 60 * HZ;
	KUNIT_EXPECT_EQ(test, krc_window_next(ch, soon / 2), soon / 2);
	ch->window.due = jiffies; /* no lease puts it off */
	KUNIT_EXPECT_EQ(test, krc_window_next(ch, far), 0UL);
	ch->window.due = jiffies + soon;
	spin_unlock_bh(&ch->lock);
	krc_test_last_look(t, jiffies + 60 * HZ);
	mod_delayed_work(t->pool->wq, &ch->lease.expiry, 0);
	flush_delayed_work(&ch->lease.expiry);
	KUNIT_EXPECT_TRUE(test,
			  krc_test_looked_long_ago(t)); /* what completes next counts from it */
	krc_test_last_look(t, jiffies - 60 * HZ);
	krc_test_wait(test, !krc_test_looked_long_ago(t));
	krc_test_all(t, flow);
}

/* Nobody posts any more: the watchdog finds that it is idle. */
static void krc_test_the_idle_are_looked_at(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);

	krc_test_narrowed(t, t->flow[0]);
	krc_test_all(t, t->flow[0]);
	mod_delayed_work(t->pool->wq, &t->pool->watchdog, 0);
	krc_test_wait(test, READ_ONCE(ch->window.limit) > KRC_WINDOW_MIN);
}

static struct kunit_case krc_window_cases[] = { KUNIT_CASE(krc_test_what_is_slow_narrows_it),
						KUNIT_CASE(krc_test_a_few_are_always_there),
						KUNIT_CASE(krc_test_the_slow_are_signaled),
						KUNIT_CASE(krc_test_more_is_there_than_may_be),
						KUNIT_CASE(krc_test_what_is_quick_widens_it),
						KUNIT_CASE(krc_test_what_is_enough_stays),
						KUNIT_CASE(krc_test_no_verdict),
						KUNIT_CASE(krc_test_a_reset_begins_anew),
						KUNIT_CASE(krc_test_leases_end_behind_it),
						KUNIT_CASE(krc_test_others_keep_their_depth),
						KUNIT_CASE(krc_test_turns_are_of_time),
						KUNIT_CASE(krc_test_turns_are_of_bytes),
						KUNIT_CASE(krc_test_large_ones_get_through),
						KUNIT_CASE(krc_test_a_narrow_one_is_loaded),
						KUNIT_CASE(krc_test_leases_are_looked_after),
						KUNIT_CASE(krc_test_the_idle_are_looked_at),
						{} };

static struct kunit_suite krc_window_suite = {
	.name = "krcore_window",
	.init = krc_test_window_init,
	.exit = krc_test_exit,
	.test_cases = krc_window_cases,
};

kunit_test_suite(krc_window_suite);
