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

/* All stalls were charged until then. */
static void krc_test_charged_until(struct krc_test *t, unsigned long at)
{
	struct krc_isolation *isolation = &t->pool->isolation;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t->flow); i++)
		if (t->flow[i]->flow.standing)
			krc_test_before(&t->flow[i]->flow.standing->stalls, at);
	for (i = 0; i < KRC_ISOLATION_PAYERS; i++)
		krc_test_before(&isolation->payers[i].stalls, at);
}

/* What is in the hardware of a channel has been there for so long, since all stalls before. */
static void krc_test_stand(struct krc_test *t, u32 index, u32 ms)
{
	struct krc_channel *ch = krc_test_channel(t, index);

	spin_lock_bh(&ch->lock);
	ch->progress = jiffies - msecs_to_jiffies(ms);
	krc_test_charged_until(t, ch->progress);
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
	krc_stalls_charge(&stalls, jiffies - 1000 * HZ, 150 + KRC_STALLS_MOST_MS);
	most = msecs_to_jiffies(150 + KRC_STALLS_MOST_MS) * KRC_STALLS_SHARE;
	KUNIT_EXPECT_TRUE(test, time_in_range(stalls.good_at, before + most, jiffies + most));
	KUNIT_EXPECT_TRUE(test, krc_stalls_overdrawn(&stalls, 150));
	good_at = stalls.good_at;
	krc_stalls_charge(&stalls, jiffies - 1000 * HZ, 150 + KRC_STALLS_SLOW_MS);
	KUNIT_EXPECT_EQ(test, stalls.good_at, good_at); /* what counts less takes nothing back */
	before = jiffies;
	krc_stalls_init(&stalls); /* what does not count as slowness counts when it is a stall */
	krc_stalls_charge(&stalls, before - took, 50);
	krc_stalls_charge(&stalls, before - took, 5000);
	krc_test_expect_good(test, &stalls, before, took + msecs_to_jiffies(50));
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
		krc_test_stand(t, 0, KRC_TEST_LONG_AGO_MS);
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

/* The work item of a channel is not scheduled. */
static void krc_test_nobody_looks(struct krc_test *t, struct krc_channel *ch)
{
	cancel_delayed_work_sync(&ch->lease.expiry);
	spin_lock_bh(&ch->lock);
	ch->window.soon = false;
	ch->window.sample.slow = false;
	spin_unlock_bh(&ch->lock);
}

/* Nor is a lease that ends in the hardware, if something has completed just now. */
static void krc_test_leases_that_end(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *flow = t->flow[0];
	u32 busy;

	krc_test_lease(flow, 60000, 60000);
	for (busy = 0; busy < 2; busy++) {
		krc_test_nobody_looks(t, krc_test_channel(t, 0));
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
			 KRC_PAYER_STALLS_MS); /* is not on the account of its payer any more */
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

/* ---- what is slow, but in time */

/* The first channel completes slowly: its limit is what that leaves. */
static void krc_test_narrow(struct krc_test *t)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	cancel_delayed_work_sync(&t->pool->watchdog); /* which would widen it while it is idle */
	spin_lock_bh(&ch->lock);
	ch->window.limit = KRC_WINDOW_MIN;
	spin_unlock_bh(&ch->lock);
}

/**
 * struct krc_test_seen - What is seen at a look of the first channel.
 * @ms: since the last sample; nothing was charged since.
 * @stands: jiffies since something completed; 0: just now, however long this takes.
 * @done: segments that have completed since the last sample.
 * @dry: it was empty meanwhile.
 */
struct krc_test_seen {
	u32 ms;
	unsigned long stands;
	u32 done;
	bool dry;
};

static void krc_test_sample(struct krc_test *t, const struct krc_test_seen *seen)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	spin_lock_bh(&ch->lock);
	ch->window.sample.at = jiffies - msecs_to_jiffies(seen->ms);
	ch->window.sample.head = ch->head - seen->done;
	ch->busy = ch->window.sample.at - !seen->dry;
	krc_test_charged_until(t, ch->window.sample.at);
	ch->progress = seen->stands ? jiffies - seen->stands : jiffies + 60 * HZ;
	krc_isolation_sample(ch);
	ch->progress = jiffies;
	spin_unlock_bh(&ch->lock);
}

/* Until its target is isolated, and for some time. */
static void krc_test_found_slow(struct krc_test *t)
{
	const struct krc_test_seen slow = { .ms = KRC_ISOLATION_SAMPLE_MS };
	u32 ms;

	krc_test_narrow(t);
	for (ms = 0; ms < 2 * KRC_TARGET_STALLS_MS; ms += KRC_ISOLATION_SAMPLE_MS) {
		if (ms < KRC_TARGET_STALLS_MS / 2)
			KUNIT_EXPECT_FALSE(t->test, krc_isolation_any(&t->pool->isolation));
		krc_test_sample(t, &slow);
	}
	KUNIT_EXPECT_TRUE(t->test, krc_isolation_any(&t->pool->isolation));
}

/* Whether a look at the first channel charges whom it is at. */
static bool krc_test_is_charged(struct krc_test *t, struct krc_test_seen seen)
{
	krc_test_sample(t, &seen);
	return krc_test_charged(t);
}

/* What slows it down is charged: not what is there when it was slow before, or has little to do. */
static void krc_test_who_is_slow_is_charged(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_test_seen slow = { .ms = 50 }, quick = { .ms = 50, .done = 500 },
				   dry = { .ms = 50, .dry = true },
				   stands = { .ms = 50, .dry = true, .stands = HZ / 20 + 2 };
	struct krc_test_flow *flow = t->flow[0];

	KUNIT_EXPECT_FALSE(test, krc_test_is_charged(t, slow)); /* it is idle */
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_TRUE(test, krc_test_is_charged(t, slow));
	KUNIT_EXPECT_TRUE(test, krc_test_is_charged(t, stands));
	KUNIT_EXPECT_FALSE(test, krc_test_is_charged(t, quick));
	KUNIT_EXPECT_FALSE(test, krc_test_is_charged(t, dry));
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_flow_drain(&flow->flow);
}

/* Its payer has others as well: it pays until the target is known for it, and no longer. */
static void krc_test_its_payer_pays_once(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_test_seen slow = { .ms = KRC_ISOLATION_SAMPLE_MS };
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_target(t, bad, 0);
	u32 ms;

	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 1, KRP_OP_READ, 8), 0);
	krc_test_narrow(t);
	for (ms = 0; ms < 2 * KRC_PAYER_STALLS_MS; ms += KRC_ISOLATION_SAMPLE_MS)
		krc_test_sample(t, &slow);
	KUNIT_EXPECT_TRUE(test, krc_flow_isolated(&bad->flow));
	KUNIT_EXPECT_FALSE(test, krc_flow_isolated(&good->flow));
	KUNIT_EXPECT_TRUE(test, krc_stalls_owed(&t->pool->isolation.payers[0].stalls));
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_flow_drain(&bad->flow);
	krc_standing_put(target);
}

/* However long ago it was sampled last. */
static void krc_test_a_sample_is_bounded(struct kunit *test)
{
	struct krc_test *t = test->priv;
	const struct krc_test_seen slow = { .ms = 60000 };
	unsigned long before = jiffies;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_narrow(t);
	krc_test_sample(t, &slow);
	KUNIT_EXPECT_PTR_EQ(test, t->pool->isolation.payers[0].payer, (const void *)t);
	krc_test_expect_good(test, &t->pool->isolation.payers[0].stalls, before,
			     msecs_to_jiffies(KRC_ISOLATION_SAMPLE_MS));
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_flow_drain(&t->flow[0]->flow);
}

/* What takes long for its bytes is not. */
static void krc_test_bytes_may_take_long(struct kunit *test)
{
	struct krc_test *t = test->priv;
	unsigned long worth =
		KRC_SEGMENT_BYTES * (u64)msecs_to_jiffies(KRC_WINDOW_MS) / KRC_WINDOW_BYTES;
	const struct krc_test_seen slow = { .ms = 10 }, some = { .ms = 50, .done = 2 },
				   stands = { .ms = 50,
					      .dry = true,
					      .stands = worth + msecs_to_jiffies(KRC_SLOW_MS) },
				   longer = { .ms = 50,
					      .dry = true,
					      .stands = worth + HZ / 20 + 2 };
	struct krc_test_flow *flow = t->flow[0];
	bool always = true;
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, KRC_SEGMENT_BYTES), 0);
	krc_test_narrow(t);
	for (i = 0; i < 3; i++) /* a tick may come while it is asked */
		always &= krc_test_is_charged(t, slow);
	KUNIT_EXPECT_FALSE(test, always);
	for (i = 0, always = true; i < 3; i++)
		always &= krc_test_is_charged(t, stands);
	KUNIT_EXPECT_FALSE(test, always);
	KUNIT_EXPECT_TRUE(test, krc_test_is_charged(t, longer));
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_flow_drain(&flow->flow);
	KUNIT_ASSERT_EQ(test, krc_test_submit(flow, 1, KRP_OP_READ, 200 << 10), 0);
	for (i = 0, always = true; i < 3; i++)
		always &= krc_test_is_charged(t, some); /* 12 MB a second; half of 20 may be */
	KUNIT_EXPECT_FALSE(test, always);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_flow_drain(&flow->flow);
}

/* Have the work item of the first channel look. */
static void krc_test_look_now(struct krc_test *t)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	mod_delayed_work(t->pool->wq, &ch->lease.expiry, 0);
	flush_delayed_work(&ch->lease.expiry);
}

static bool krc_test_is_evicted(struct krc_test *t)
{
	struct krc_channel *ch = krc_test_channel(t, 0);
	bool evicted;

	spin_lock_bh(&ch->lock);
	evicted = !list_empty(&ch->evicted);
	spin_unlock_bh(&ch->lock);
	return evicted;
}

/*
 * A flow that never rests is isolated for being slow, and evicted with four requests in the hardware of
 * 40; a good one waits behind it with ten.
 */
static struct krc_standing *krc_test_evict(struct krc_test *t, struct krc_test_flow *bad,
					   struct krc_test_flow *good)
{
	struct krc_standing *target = krc_test_target(t, bad, 0);

	good->flow.payer = good;
	krc_test_narrow(t);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(bad, 40, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(good, 10, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(t->test, krc_fake_pending(t->fake, 0), KRC_WINDOW_MIN);
	krc_test_found_slow(t);
	krc_test_look_now(t);
	KUNIT_EXPECT_TRUE(t->test, krc_test_is_evicted(t));
	KUNIT_EXPECT_EQ(t->test, krc_flow_index(&bad->flow), 0U);
	return target;
}

/* All requests of a flow succeed in order, on an isolated channel. */
static void krc_test_goes_on(struct krc_test *t, struct krc_test_flow *flow)
{
	krc_test_wait(t->test, READ_ONCE(flow->flow.channel) != krc_test_channel(t, 0));
	flow->index = krc_flow_index(&flow->flow);
	KUNIT_EXPECT_EQ(t->test, (int)krc_test_kind(t, flow), KRC_CHANNEL_ISOLATED);
	krc_test_wait(t->test, (krc_fake_complete(t->fake, flow->index, KRC_TEST_DEPTH),
				READ_ONCE(flow->done) == flow->submitted));
	krc_flow_drain(&flow->flow);
	krc_test_expect(t, flow, 0, flow->submitted, 0);
}

/* It moves without a reset, when none of it is in the hardware, while others stay and go on. */
static void krc_test_the_slow_are_evicted(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);
	struct krc_pool_stats stats;
	bool isolated;
	u32 at;

	KUNIT_EXPECT_TRUE(test, krc_flow_where(&bad->flow, &at, &isolated) && !isolated && !at);
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 2, KRP_OP_READ, 8), 0); /* those wait as well */
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 3), 3U);
	krc_test_wait(test, READ_ONCE(bad->done) == 3);
	krc_test_look_now(t);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&bad->flow), 0U); /* one is there still */
	krc_test_finish(t, good, 10);
	krc_test_expect(t, good, 0, 10, 0);
	krc_test_goes_on(t, bad);
	KUNIT_EXPECT_FALSE(test, krc_test_is_evicted(t));
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 0U);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.isolated, 1ULL);
	KUNIT_EXPECT_TRUE(test, krc_flow_where(&bad->flow, &at, &isolated) && isolated && at);
	KUNIT_EXPECT_TRUE(test, krc_flow_where(&good->flow, &at, &isolated) && !isolated && !at);
	krc_test_asked(t, good, KRC_CHANNEL_SHARED);
	krc_standing_put(target);
}

/* The channel that its flow is to leave, and how often that was put off. */
static struct krc_channel *krc_test_leaves;
static u32 krc_test_put_off;

/* As krc_test_done(); and somebody expels what is evicted just now. */
static void krc_test_done_as_it_leaves(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	krc_test_done(flow, reqs, nr);
	local_bh_disable();
	if (krc_flow_evict_one(krc_test_leaves) == -EAGAIN)
		WRITE_ONCE(krc_test_put_off, krc_test_put_off + 1);
	local_bh_enable();
}

/* Not while an outcome of it is being told, though nothing of it is in the hardware any more. */
static void krc_test_not_while_it_is_told(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);

	krc_test_leaves = krc_test_channel(t, 0);
	krc_test_put_off = 0;
	bad->flow.done = krc_test_done_as_it_leaves;
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, KRC_WINDOW_MIN), KRC_WINDOW_MIN);
	krc_test_goes_on(t, bad);
	KUNIT_EXPECT_EQ(test, krc_test_put_off, 1U);
	krc_test_finish(t, good, 10);
	krc_test_expect(t, good, 0, 10, 0);
	krc_standing_put(target);
}

/* Nor is anything lost or done twice when the channel is reset meanwhile. */
static void krc_test_evicted_and_reset(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);

	krc_fake_fatal(t->fake, 0);
	krc_test_goes_on(t, bad);
	krc_test_finish(t, good, 10);
	krc_test_expect(t, good, 0, 10, 0);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 1U);
	krc_standing_put(target);
}

/* What it had not posted ends when it is cancelled, and only that. */
static void krc_test_evicted_and_cancelled(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);

	krc_flow_cancel(&bad->flow);
	KUNIT_EXPECT_FALSE(test, krc_test_is_evicted(t));
	krc_test_finish(t, good, 10);
	krc_flow_drain(&bad->flow);
	krc_test_expect(t, bad, 0, 4, 0);
	krc_test_expect(t, bad, 4, 40, -ECANCELED);
	krc_flow_restart(&bad->flow);
	krc_standing_put(target);
}

/* All of it ends when the device goes. */
static void krc_test_evicted_and_stopped(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);

	krc_pool_stop(t->pool);
	krc_flow_drain(&bad->flow);
	krc_flow_drain(&good->flow);
	krc_test_expect(t, bad, 0, 40, -ENODEV);
	krc_test_expect(t, good, 0, 10, -ENODEV);
	krc_standing_put(target);
}

/* It goes on also if it is made good before; and with no channel for it left it stays. */
static void krc_test_evicted_for_nothing(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);
	struct krc_channel *ch;
	u32 i;

	target->stalls.good_at = jiffies;
	krc_test_finish(t, bad, 40);
	krc_test_expect(t, bad, 0, 40, 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&bad->flow), 0U);
	krc_test_finish(t, good, 10);
	krc_flow_drain(&bad->flow);
	krc_flow_drain(&good->flow);
	for (i = 0; i < KRC_POOL_ISOLATED; i++) {
		ch = krc_test_channel(t, 1 + KRC_POOL_APART + i);
		KUNIT_ASSERT_EQ(test, (int)ch->kind, KRC_CHANNEL_ISOLATED);
		WRITE_ONCE(ch->state, KRC_CHANNEL_DEAD);
	}
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 40, KRP_OP_READ, 8), 0);
	krc_standing_stalled(target, jiffies - 60 * HZ, KRC_STALLS_MOST_MS);
	KUNIT_EXPECT_TRUE(test, krc_flow_isolated(&bad->flow));
	krc_test_look_now(t);
	KUNIT_EXPECT_FALSE(test, krc_test_is_evicted(t));
	krc_test_finish(t, bad, 80);
	krc_test_expect(t, bad, 40, 80, 0);
	WRITE_ONCE(ch->state, KRC_CHANNEL_READY);
	krc_standing_put(target);
}

/* All of it is in the hardware whenever somebody looks: then its next request waits, and it leaves. */
static void krc_test_nothing_of_it_waits(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0];
	struct krc_standing *target = krc_test_target(t, bad, 0);

	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 2, KRP_OP_READ, 8), 0);
	krc_test_found_slow(t);
	krc_test_look_now(t);
	KUNIT_EXPECT_FALSE(test, krc_test_is_evicted(t));
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_test_wait(test, READ_ONCE(bad->done) == 1);
	krc_test_nobody_looks(t, krc_test_channel(t, 0));
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_TRUE(test, krc_test_is_evicted(t));
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 1U);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_test_goes_on(t, bad); /* by itself: the work item was scheduled */
	KUNIT_EXPECT_FALSE(test, krc_test_is_evicted(t));

	/* and back, when it is made good */
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 2, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, (int)krc_test_kind(t, bad), KRC_CHANNEL_ISOLATED);
	target->stalls.good_at = jiffies;
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, bad->index), 2U);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, bad->index, 2), 2U);
	krc_test_wait(test, READ_ONCE(bad->flow.channel) == krc_test_channel(t, 0));
	krc_test_finish(t, bad, 6);
	krc_test_expect(t, bad, 0, 6, 0);
	krc_standing_put(target);
}

/* Others of the same payer have its turn; those behind it are evicted as well. */
static void krc_test_flows_of_one_payer(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1], *more = t->flow[2];
	struct krc_standing *target = krc_test_target(t, bad, 0);

	more->flow.standing = target;
	krc_test_narrow(t);
	KUNIT_ASSERT_EQ(test, krc_test_submit(bad, 20, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(good, 10, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(more, 10, KRP_OP_READ, 8), 0);
	krc_test_found_slow(t);
	krc_test_look_now(t);
	krc_test_finish(t, good, 10);
	krc_test_expect(t, good, 0, 10, 0);
	KUNIT_EXPECT_EQ(test, krc_flow_index(&good->flow), 0U);
	krc_test_goes_on(t, bad);
	krc_test_goes_on(t, more);
	krc_test_asked(t, good, KRC_CHANNEL_SHARED);
	krc_standing_put(target);
}

/* What goes on all the time comes back when all is made good. */
static void krc_test_made_good_it_comes_back(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);
	struct krc_channel *ch;

	krc_test_finish(t, good, 10);
	krc_test_wait(test, READ_ONCE(bad->flow.channel) != krc_test_channel(t, 0));
	ch = krc_test_channel(t, krc_flow_index(&bad->flow));
	krc_test_wait(test, krc_fake_pending(t->fake, ch->index) == KRC_TEST_DEPTH);
	target->stalls.good_at = jiffies;
	mod_delayed_work(t->pool->wq, &ch->lease.expiry, 0);
	flush_delayed_work(&ch->lease.expiry);
	krc_test_wait(test, (krc_fake_complete(t->fake, ch->index, 1),
			     READ_ONCE(bad->flow.channel) == krc_test_channel(t, 0)));
	krc_test_finish(t, bad, 40);
	krc_flow_drain(&bad->flow);
	krc_test_expect(t, bad, 0, 40, 0);
	krc_standing_put(target);
}

/* A channel that is removed has them move as others do. */
static void krc_test_evicted_and_removed(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_flow *bad = t->flow[0], *good = t->flow[1];
	struct krc_standing *target = krc_test_evict(t, bad, good);

	KUNIT_ASSERT_FALSE(test, IS_ERR(krc_pool_add(t->pool, KRC_CHANNEL_SHARED)));
	t->fake->at_once = true;
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH), 4U);
	KUNIT_EXPECT_EQ(test, krc_pool_remove(t->pool, krc_test_channel(t, 0)), 0);
	krc_flow_drain(&bad->flow);
	krc_flow_drain(&good->flow);
	krc_test_expect(t, bad, 0, 40, 0);
	krc_test_expect(t, good, 0, 10, 0);
	krc_standing_put(target);
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
						   KUNIT_CASE(krc_test_who_is_slow_is_charged),
						   KUNIT_CASE(krc_test_its_payer_pays_once),
						   KUNIT_CASE(krc_test_a_sample_is_bounded),
						   KUNIT_CASE(krc_test_bytes_may_take_long),
						   KUNIT_CASE(krc_test_the_slow_are_evicted),
						   KUNIT_CASE(krc_test_not_while_it_is_told),
						   KUNIT_CASE(krc_test_evicted_and_reset),
						   KUNIT_CASE(krc_test_evicted_and_cancelled),
						   KUNIT_CASE(krc_test_evicted_and_stopped),
						   KUNIT_CASE(krc_test_evicted_for_nothing),
						   KUNIT_CASE(krc_test_nothing_of_it_waits),
						   KUNIT_CASE(krc_test_flows_of_one_payer),
						   KUNIT_CASE(krc_test_made_good_it_comes_back),
						   KUNIT_CASE(krc_test_evicted_and_removed),
						   {} };

static struct kunit_suite krc_isolation_suite = {
	.name = "krcore_isolation",
	.init = krc_test_isolation_init,
	.exit = krc_test_exit,
	.test_cases = krc_isolation_cases,
};
kunit_test_suite(krc_isolation_suite);
