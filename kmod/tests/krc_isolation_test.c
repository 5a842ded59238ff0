// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: whose requests go through the channels of the isolated, by the stalls that were charged to
 * their targets and payers. A stall here is a time that is written, not waited for.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"
#include "pool/isolation.h"

#define KRC_TEST_HALF_MS (KRC_TARGET_STALLS_MS * 7 / 10) /* twice is too often, for 8 s */

static int krc_test_isolation_init(struct kunit *test)
{
	struct krc_test *t;
	int i, err = krc_test_init(test);

	t = test->priv;
	for (i = 0; !err && i < ARRAY_SIZE(t->flow); i++)
		t->flow[i]->flow.payer = t; /* one, if a test says nothing else */
	return err;
}

static struct krc_standing *krc_test_target(struct krc_test *t, struct krc_test_flow *flow, u8 nth)
{
	struct krc_standing *target;

	flow->address.opaque[1] = nth;
	target = krc_standing_get(&t->port.rail, &flow->address, 0x1000, 0x77);
	KUNIT_ASSERT_NOT_NULL(t->test, target);
	flow->flow.standing = target;
	return target;
}

static enum krc_channel_kind krc_test_kind(struct krc_test *t, const struct krc_test_flow *flow)
{
	return krc_test_channel(t, flow->index)->kind;
}

static void krc_test_before(struct krc_stalls *stalls, unsigned long at)
{
	stalls->first = at;
	stalls->last = at;
}

/* What is in the hardware of a channel has been there for so long, since all stalls before. */
static void krc_test_stand(struct krc_test *t, u32 index, u32 ms)
{
	struct krc_channel *ch = krc_test_channel(t, index);
	struct krc_isolation *isolation = &t->pool->isolation;
	u32 i;

	spin_lock_bh(&ch->lock);
	ch->progress = jiffies - msecs_to_jiffies(ms);
	for (i = 0; i < ARRAY_SIZE(t->flow); i++)
		if (t->flow[i]->flow.standing)
			krc_test_before(&t->flow[i]->flow.standing->stalls, ch->progress);
	for (i = 0; i < KRC_ISOLATION_PAYERS; i++)
		krc_test_before(&isolation->payers[i].stalls, ch->progress);
	spin_unlock_bh(&ch->lock);
}

/* And then its oldest request fails. */
static void krc_test_stall(struct krc_test *t, u32 index, u32 ms)
{
	krc_test_stand(t, index, ms);
	krc_fake_fail(t->fake, index, KRC_FAULT_TIMEOUT);
}

/* A READ of a flow stalls the channel that it is on, and times out. */
static void krc_test_stalled(struct krc_test *t, struct krc_test_flow *flow, u32 ms)
{
	u32 nth = flow->submitted;

	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
	krc_test_wait(t->test,
		      krc_fake_pending(t->fake, flow->index) == 1); /* it may be reset yet */
	krc_test_stall(t, flow->index, ms);
	krc_flow_drain(&flow->flow);
	krc_test_expect(t, flow, nth, nth + 1, -ETIMEDOUT);
	krc_flow_restart(&flow->flow);
}

/* A READ of a flow succeeds, on a channel of that kind. */
static void krc_test_asked(struct krc_test *t, struct krc_test_flow *flow,
			   enum krc_channel_kind kind)
{
	u32 nth = flow->submitted;

	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(t->test, (int)krc_test_kind(t, flow), (int)kind);
	krc_test_wait(t->test, krc_fake_complete(t->fake, flow->index, 1));
	krc_flow_drain(&flow->flow);
	krc_test_expect(t, flow, nth, nth + 1, 0);
}

/* As if the present stall had begun so many jiffies ago, and charged since @before. */
static void krc_test_expect_good(struct kunit *test, const struct krc_stalls *stalls,
				 unsigned long before, unsigned long took)
{
	KUNIT_EXPECT_TRUE(test,
			  time_in_range(stalls->good_at, before + took * KRC_STALLS_SHARE,
					jiffies + (jiffies - before + took) * KRC_STALLS_SHARE));
}

static void krc_test_stalls_are_made_good(struct kunit *test)
{
	unsigned long before = jiffies, took = msecs_to_jiffies(100), most, good_at, last;
	struct krc_stalls stalls;

	krc_stalls_init(&stalls);
	KUNIT_EXPECT_FALSE(test, krc_stalls_owed(&stalls));
	KUNIT_EXPECT_FALSE(test, krc_stalls_overdrawn(&stalls, 0));
	krc_stalls_charge(&stalls, before - took, 150);
	krc_test_expect_good(test, &stalls, before, took);
	KUNIT_EXPECT_FALSE(test, krc_stalls_overdrawn(&stalls, 10000));
	good_at = stalls.good_at;
	last = stalls.last;
	krc_stalls_charge(&stalls, before - took, 150); /* the same time, of another channel */
	KUNIT_EXPECT_LE(test, stalls.good_at - good_at, (jiffies - last) * KRC_STALLS_SHARE);

	before = jiffies;
	krc_stalls_init(&stalls);
	krc_stalls_charge(&stalls, before, 150); /* a short one, while a long one goes on */
	krc_stalls_charge(&stalls, before - took, 150);
	krc_test_expect_good(test, &stalls, before, took);

	before = jiffies;
	krc_stalls_init(&stalls);
	krc_stalls_charge(&stalls, jiffies - 1000 * HZ, 150);
	most = msecs_to_jiffies(150 + KRC_STALLS_MOST_MS) * KRC_STALLS_SHARE;
	KUNIT_EXPECT_TRUE(test, time_in_range(stalls.good_at, before + most, jiffies + most));
	KUNIT_EXPECT_TRUE(test, krc_stalls_overdrawn(&stalls, 150));
	krc_stalls_init(&stalls);
	stalls.good_at = jiffies - HZ; /* what was long ago is not saved up */
	before = jiffies;
	krc_stalls_charge(&stalls, before - took, 150);
	krc_test_expect_good(test, &stalls, before, took);
}

/* The payer of the only account owes something; it is made good then. */
static bool krc_test_charged(struct krc_test *t)
{
	struct krc_stalls *stalls = &t->pool->isolation.payers[0].stalls;
	bool owed = t->pool->isolation.payers[0].payer && krc_stalls_owed(stalls);

	stalls->good_at = jiffies;
	return owed;
}

/* A request that stalls a channel is charged however that ends, but not for what went wrong here. */
static void krc_test_however_it_ends(struct kunit *test)
{
	static const enum krc_fault faults[] = { KRC_FAULT_TIMEOUT, KRC_FAULT_ACCESS,
						 KRC_FAULT_TARGET, KRC_FAULT_BUSY,
						 KRC_FAULT_LOCAL };
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
		krc_test_stand(t, 0, 500);
		krc_fake_fail(t->fake, 0, faults[i]);
		krc_flow_drain(&flow->flow);
		krc_flow_restart(&flow->flow);
		KUNIT_EXPECT_EQ_MSG(test, krc_test_charged(t), faults[i] != KRC_FAULT_LOCAL, "%d",
				    (int)faults[i]);
	}
}

/* A way that is lost is charged if nothing had come over it for long; at once it broke on this side. */
static void krc_test_a_way_is_lost(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	struct krc_channel *ch = krc_test_channel(t, 0);
	u32 late;

	for (late = 0; late < 2; late++) {
		KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
		krc_test_stand(t, 0, KRC_SILENT_MS);
		spin_lock_bh(&ch->lock);
		if (!late)
			ch->progress = jiffies + 60 * HZ; /* just now, however long this takes */
		spin_unlock_bh(&ch->lock);
		krc_fake_fail(t->fake, 0, KRC_FAULT_LOST);
		krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == late + 1);
		krc_test_wait(test, krc_fake_complete(t->fake, 0, 1) == 1);
		krc_flow_drain(&flow->flow);
		KUNIT_EXPECT_EQ(test, krc_test_charged(t), !!late);
	}
	krc_test_expect(t, flow, 0, 2, 0);
}

/* Nor is a lease that ends in the hardware, if something has completed just now. */
static void krc_test_leases_that_end(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	u32 busy;

	krc_test_lease(flow, 60000, 60000);
	for (busy = 0; busy < 2; busy++) {
		KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_WRITE, 8), 0);
		krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
		krc_test_stand(t, 0, 500);
		krc_test_lapse(t, 0, busy);
		krc_test_wait(test, READ_ONCE(t->fake->ini[0]->resets) == busy + 1);
		krc_flow_drain(&flow->flow);
		krc_flow_restart(&flow->flow);
		KUNIT_EXPECT_EQ(test, krc_test_charged(t), !busy);
	}
}

/* Others are asked as ever, also by the same payer; and it itself is when all is made good. */
static void krc_test_a_target_is_asked_apart(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1], *none = t->flow[2];
	struct krc_standing *target = krc_test_target(t, bad, 0),
			    *other = krc_test_target(t, good, 0);

	krc_test_stalled(t, bad, KRC_TEST_HALF_MS);
	krc_test_asked(t, bad, KRC_CHANNEL_SHARED); /* that is free */
	KUNIT_EXPECT_FALSE(test, krc_isolation_any(&t->pool->isolation));
	krc_test_stalled(t, bad, KRC_TEST_HALF_MS);
	krc_test_asked(t, bad, KRC_CHANNEL_ISOLATED);
	krc_test_asked(t, good, KRC_CHANNEL_SHARED);
	krc_test_asked(t, none, KRC_CHANNEL_SHARED); /* its target is not known */
	krc_test_stalled(t, bad,
			 KRC_PAYER_STALLS_MS); /* is not on the account of its payer there */
	KUNIT_EXPECT_EQ(test, (int)krc_test_kind(t, bad), KRC_CHANNEL_ISOLATED);
	krc_test_asked(t, none, KRC_CHANNEL_SHARED);
	target->stalls.good_at = jiffies;
	krc_test_asked(t, bad, KRC_CHANNEL_SHARED);
	KUNIT_EXPECT_TRUE(test, krc_isolation_any(&t->pool->isolation));
	t->pool->isolation.until = jiffies;
	krc_test_asked(t, bad, KRC_CHANNEL_SHARED);
	KUNIT_EXPECT_FALSE(test, krc_isolation_any(&t->pool->isolation));
	krc_standing_put(other);
	krc_standing_put(target);
}

/* It is known for what it was by whoever asks it next, as long as its stalls are not made good. */
static void krc_test_a_target_is_remembered(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0];
	struct krc_standing *target = krc_test_target(t, bad, 0);

	krc_test_stalled(t, bad, 2 * KRC_TEST_HALF_MS);
	krc_standing_prove(target);
	bad->flow.standing = NULL;
	krc_standing_put(target);
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 1U);
	bad->flow.payer = test; /* another one */
	KUNIT_EXPECT_PTR_EQ(test, krc_test_target(t, bad, 0), target);
	krc_test_asked(t, bad, KRC_CHANNEL_ISOLATED);
	target->stalls.good_at = jiffies;
	krc_standing_put(target);
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 0U);
}

/* None of its targets stalls too often. */
static void krc_test_a_payer_with_many_targets(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 each = KRC_TARGET_STALLS_MS * 9 / 10, nr = KRC_PAYER_STALLS_MS / each + 2, i;
	struct krc_test_flow *bad = t->flow[0], *same = t->flow[1], *other = t->flow[2];
	struct krc_standing *target[16];

	KUNIT_ASSERT_LE(test, nr, (u32)ARRAY_SIZE(target));
	other->flow.payer = other;
	for (i = 0; i < nr; i++) {
		if (i < nr - 2)
			krc_test_asked(t, same, KRC_CHANNEL_SHARED);
		target[i] = krc_test_target(t, bad, i);
		krc_test_stalled(t, bad, each);
	}
	krc_test_asked(t, same, KRC_CHANNEL_ISOLATED);
	other->flow.standing = target[0];
	krc_test_asked(t, other, KRC_CHANNEL_SHARED);
	same->flow.bill = other; /* as a READ of the module: on the account of another one */
	krc_test_asked(t, same, KRC_CHANNEL_SHARED);
	other->flow.bill = t;
	krc_test_asked(t, other, KRC_CHANNEL_ISOLATED);
	for (i = 0; i < nr; i++)
		krc_standing_put(target[i]);
}

/*
 * Flows that have requests outstanding all the time, more than the hardware holds: they move with
 * these after the reset, also one that is held, and no request is lost, done twice or out of order.
 */
static void krc_test_what_never_rests_moves(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *busy = t->flow[1], *good = t->flow[2],
			     *held = t->flow[3];
	struct krc_standing *target = krc_test_target(t, bad, 0);

	good->flow.payer = good;
	busy->flow.standing = target;
	held->flow.standing = target;
	held->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 1, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(busy, 6, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(held, 2, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(good, 30, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(busy, 30, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_TRUE(test, held->flow.held);
	krc_test_stall(t, 0, 2 * KRC_TEST_HALF_MS);
	krc_test_wait(test, READ_ONCE(busy->flow.channel) != krc_test_channel(t, 0));
	krc_test_wait(test, READ_ONCE(held->flow.channel) != krc_test_channel(t, 0));
	krc_test_expect(t, bad, 0, 1, -ETIMEDOUT);
	krc_test_finish(t, good, 30); /* the shared channel alone works */
	krc_test_expect(t, good, 0, 30, 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&good->flow), 0U);
	KUNIT_EXPECT_EQ(test, busy->done, 0U);

	busy->index = krc_flow_index(&busy->flow);
	held->index = krc_flow_index(&held->flow);
	KUNIT_EXPECT_EQ(test, (int)krc_test_kind(t, busy), KRC_CHANNEL_ISOLATED);
	KUNIT_EXPECT_EQ(test, (int)krc_test_kind(t, held), KRC_CHANNEL_ISOLATED);
	KUNIT_ASSERT_EQ(test, krc_test_submit(busy, 4, KRP_OP_READ, 8), 0);
	krc_test_wait(test,
		      (krc_fake_complete(t->fake, busy->index, 4), READ_ONCE(busy->done) == 40));
	krc_test_expect(t, busy, 0, 40, 0);
	KUNIT_EXPECT_TRUE(test, held->flow.held);
	WRITE_ONCE(held->check, 0);
	krc_flow_resume(&held->flow);
	krc_test_wait(test,
		      (krc_fake_complete(t->fake, held->index, 2), READ_ONCE(held->done) == 2));
	krc_test_expect(t, held, 0, 2, 0);
	krc_standing_put(target);
}

/* Nobody fails for being isolated, not even while those channels can't be reset. */
static void krc_test_without_channels_of_their_own(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0];
	struct krc_standing *target = krc_test_target(t, bad, 0);
	struct krc_channel *ch;
	u32 i;

	krc_test_stalled(t, bad, 2 * KRC_TEST_HALF_MS);
	for (i = 0; i < KRC_POOL_ISOLATED; i++) {
		ch = krc_test_channel(t, 1 + KRC_POOL_APART + i);
		KUNIT_ASSERT_EQ(test, (int)ch->kind, KRC_CHANNEL_ISOLATED);
		WRITE_ONCE(ch->state, KRC_CHANNEL_DEAD);
	}
	krc_test_asked(t, bad, KRC_CHANNEL_SHARED);
	WRITE_ONCE(ch->state, KRC_CHANNEL_READY);
	krc_test_asked(t, bad, KRC_CHANNEL_ISOLATED);
	krc_standing_put(target);
}

static bool krc_test_read_done(struct krc_read *read, int err, const void *bytes)
{
	read->bytes = 0; /* it is over; nobody else looks at it */
	return false;
}

static struct krc_channel *krc_test_read_begin(struct krc_test *t, struct krc_read *read)
{
	u32 index;

	read->done = krc_test_read_done;
	read->bytes = 8;
	KUNIT_ASSERT_EQ(t->test, krc_pool_read(t->pool, read, &index), 0);
	KUNIT_ASSERT_NE(t->test, index, KRC_READ_WAITS);
	return krc_test_channel(t, index);
}

/* What the module asks a target itself stalls as well, on the account of the READ's payer. */
static void krc_test_reads_of_the_module(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *target = krc_test_target(t, t->flow[0], 0);
	struct krc_read read = { .standing = target, .payer = t };
	struct krc_channel *ch;

	krc_standing_prove(target);
	ch = krc_test_read_begin(t, &read);
	KUNIT_EXPECT_EQ(test, (int)ch->kind, KRC_CHANNEL_SHARED);
	krc_test_stall(t, ch->index, 2 * KRC_TEST_HALF_MS);
	krc_test_wait(test, !READ_ONCE(read.bytes));
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(target), KRC_STANDING_SILENT);
	krc_standing_prove(target);
	ch = krc_test_read_begin(t, &read);
	KUNIT_EXPECT_EQ(test, (int)ch->kind, KRC_CHANNEL_ISOLATED);
	krc_test_wait(test, krc_fake_complete(t->fake, ch->index, 1));
	krc_test_wait(test, !READ_ONCE(read.bytes));
	KUNIT_EXPECT_PTR_EQ(test, t->pool->isolation.payers[0].payer, (const void *)t);
	KUNIT_EXPECT_TRUE(test, krc_stalls_owed(&t->pool->isolation.payers[0].stalls));
	krc_standing_put(target);
}

static void krc_test_charge(struct krc_channel *ch, struct krc_flow *flow, u32 ms)
{
	spin_lock_bh(&ch->lock);
	ch->progress = jiffies - msecs_to_jiffies(ms);
	krc_isolation_charge(ch, flow);
	spin_unlock_bh(&ch->lock);
}

/* More payers than there is room for: that which is made good first is forgotten. */
static void krc_test_the_least_is_forgotten(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	struct krc_isolation *isolation = &t->pool->isolation;
	struct krc_flow *flow = &t->flow[0]->flow;
	u32 i;

	for (i = 0; i < KRC_ISOLATION_PAYERS; i++) {
		flow->payer = &isolation->payers[i];
		krc_test_charge(ch, flow, i == 5 ? 40 : 400);
	}
	flow->payer = t;
	krc_test_charge(ch, flow, 100);
	for (i = 0; i < KRC_ISOLATION_PAYERS; i++)
		KUNIT_EXPECT_PTR_EQ(test, isolation->payers[i].payer,
				    i == 5 ? (const void *)t : &isolation->payers[i]);
}

/* Where nobody waits who is not alike, stalls cost nothing. */
static void krc_test_some_channels_do_not_count(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_channels *all;
	u32 i, counted = 0;

	KUNIT_ASSERT_EQ(test, krc_pool_enable_messages(t->pool, 1), 0);
	rcu_read_lock();
	all = krc_pool_channels(t->pool);
	for (i = 0; i < all->nr; i++) {
		struct krc_channel *ch = all->at[i];

		t->flow[0]->flow.payer = ch;
		krc_test_charge(ch, &t->flow[0]->flow, 100);
		if (counted == KRC_ISOLATION_PAYERS || !t->pool->isolation.payers[counted].payer)
			continue;
		counted++;
		KUNIT_EXPECT_TRUE(test, ch->kind == KRC_CHANNEL_SHARED ||
						ch->kind == KRC_CHANNEL_ISOLATED);
	}
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, counted, 1 + KRC_POOL_ISOLATED);
}

static struct kunit_case krc_isolation_cases[] = { KUNIT_CASE(krc_test_stalls_are_made_good),
						   KUNIT_CASE(krc_test_however_it_ends),
						   KUNIT_CASE(krc_test_a_way_is_lost),
						   KUNIT_CASE(krc_test_leases_that_end),
						   KUNIT_CASE(krc_test_a_target_is_asked_apart),
						   KUNIT_CASE(krc_test_a_target_is_remembered),
						   KUNIT_CASE(krc_test_a_payer_with_many_targets),
						   KUNIT_CASE(krc_test_what_never_rests_moves),
						   KUNIT_CASE(
							   krc_test_without_channels_of_their_own),
						   KUNIT_CASE(krc_test_reads_of_the_module),
						   KUNIT_CASE(krc_test_the_least_is_forgotten),
						   KUNIT_CASE(krc_test_some_channels_do_not_count),
						   {} };

static struct kunit_suite krc_isolation_suite = {
	.name = "krcore_isolation",
	.init = krc_test_isolation_init,
	.exit = krc_test_exit,
	.test_cases = krc_isolation_cases,
};
kunit_test_suite(krc_isolation_suite);
