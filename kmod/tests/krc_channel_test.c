// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: channels that join and leave a pool while flows use it, and all that the pool does at once,
 * from several threads, on a NIC in memory (fake_provider.h).
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include <linux/kthread.h>
#include <linux/prandom.h>

#include "krc_pool_test.h"
#include "pool/silence.h"

/* With one shared channel its number is 0, and those of probation follow. */
#define KRC_TEST_ADDED (1 + KRC_POOL_OTHERS)

/* Flows choose a channel that was added, and those on others stay there. */
static void krc_test_a_channel_joins(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], KRC_LOAD_BUSY, KRP_OP_READ, 8), 0);
	ch = krc_pool_add(t->pool, KRC_CHANNEL_SHARED);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ch));
	KUNIT_EXPECT_EQ(test, ch->index, KRC_TEST_ADDED);
	KUNIT_EXPECT_PTR_EQ(test, krc_test_channel(t, KRC_TEST_ADDED), ch);
	KUNIT_EXPECT_EQ(test, krc_test_shared(t), 2U);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[0]->index, 0U);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 3, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[1]->index, KRC_TEST_ADDED);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, KRC_TEST_ADDED, 3), 3U);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 3);
	krc_test_expect(t, t->flow[1], 0, 3, 0);
	krc_test_finish(t, t->flow[0], KRC_LOAD_BUSY + 1);
	krc_test_expect(t, t->flow[0], 0, KRC_LOAD_BUSY + 1, 0);
}

/* A task that removes a channel, and waits for it. */
struct krc_test_remover {
	struct krc_pool *pool;
	struct krc_channel *ch;
	struct completion over;
	int err;
};

static int krc_test_remove(void *arg)
{
	struct krc_test_remover *remover = arg;

	remover->err = krc_pool_remove(remover->pool, remover->ch);
	complete(&remover->over);
	return 0;
}

static void krc_test_remover_start(struct krc_test *t, struct krc_test_remover *remover,
				   struct krc_channel *ch)
{
	remover->pool = t->pool;
	remover->ch = ch;
	init_completion(&remover->over);
	KUNIT_ASSERT_FALSE(t->test, IS_ERR(kthread_run(krc_test_remove, remover, "krc_test")));
}

/*
 * Two shared channels, and @nr requests of flow 0 on the first of them, of which some are in its
 * hardware and the others wait; that channel.
 */
static struct krc_channel *krc_test_leaver(struct krc_test *t, u32 nr)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[0], nr, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(t->test, t->flow[0]->index, 0U);
	KUNIT_ASSERT_FALSE(t->test, IS_ERR(krc_pool_add(t->pool, KRC_CHANNEL_SHARED)));
	return ch;
}

/* What is in the hardware completes there; what waits moves, held flows too; all of it in order. */
static void krc_test_a_channel_leaves(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_remover remover = {};
	struct krc_pool_stats before, after;
	struct krc_channel *ch;

	t->flow[1]->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[1]->index, 0U);
	ch = krc_test_leaver(t, 40);
	krc_test_remover_start(t, &remover, ch);
	krc_test_wait(test, READ_ONCE(ch->state) == KRC_CHANNEL_LEAVING);
	KUNIT_EXPECT_EQ(test, krc_test_shared(t), 1U);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[2], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[2]->index, KRC_TEST_ADDED);
	/* a flow with requests outstanding keeps its place meanwhile, and so its order */
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(test, t->flow[0]->index, 0U);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH - 1),
			KRC_TEST_DEPTH - 1);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == KRC_TEST_DEPTH - 1);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 1U); /* nothing more was posted */
	KUNIT_EXPECT_FALSE(test, completion_done(&remover.over));
	krc_pool_stats(t->pool, &before);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	wait_for_completion(&remover.over);
	KUNIT_EXPECT_EQ(test, remover.err, 0);
	KUNIT_EXPECT_NULL(test, t->fake->ini[0]);
	KUNIT_EXPECT_NULL(test, krc_test_channel(t, 0));
	KUNIT_EXPECT_EQ(test, krc_flow_index(&t->flow[0]->flow), KRC_TEST_ADDED);
	krc_pool_stats(t->pool, &after);
	KUNIT_EXPECT_GE(test, after.posted, before.posted);
	KUNIT_EXPECT_EQ(test, after.completed, before.completed + 1);
	krc_test_wait(test, (krc_fake_complete(t->fake, KRC_TEST_ADDED, KRC_TEST_DEPTH),
			     READ_ONCE(t->flow[0]->done) == 41));
	krc_test_expect(t, t->flow[0], 0, 41, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[1]->done), 0U);
	t->flow[1]->check = 0;
	krc_flow_resume(&t->flow[1]->flow);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, KRC_TEST_ADDED, 10), 2U);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 2);
	krc_test_expect(t, t->flow[1], 0, 2, 0);
}

/* A fault meanwhile is the failed flow's alone, and a reset is waited for. */
static void krc_test_a_channel_fails_while_it_leaves(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_remover remover = {};
	struct krc_channel *ch;

	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 2, KRP_OP_READ, 8), 0);
	ch = krc_test_leaver(t, 40);
	krc_test_remover_start(t, &remover, ch);
	krc_test_wait(test, READ_ONCE(ch->state) == KRC_CHANNEL_LEAVING);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 2);
	krc_test_expect(t, t->flow[1], 0, 1, -EREMOTEIO);
	krc_test_expect(t, t->flow[1], 1, 2, -ECANCELED);
	krc_test_wait(test, (krc_fake_complete(t->fake, 0, KRC_TEST_DEPTH),
			     krc_fake_complete(t->fake, KRC_TEST_ADDED, KRC_TEST_DEPTH),
			     READ_ONCE(t->flow[0]->done) == 40));
	krc_test_expect(t, t->flow[0], 0, 40, 0);
	wait_for_completion(&remover.over);
	KUNIT_EXPECT_EQ(test, remover.err, 0);
	KUNIT_EXPECT_NULL(test, t->fake->ini[0]);
}

/* The last channel of a kind stays; a poller keeps one; a hint of one that left finds another. */
static void krc_test_what_keeps_a_channel(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_remover remover = {};
	struct krc_channel *ch = krc_test_channel(t, 0);

	KUNIT_EXPECT_EQ(test, krc_pool_remove(t->pool, ch), -EBUSY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(krc_pool_add(t->pool, KRC_CHANNEL_SHARED)));
	KUNIT_EXPECT_EQ(test, krc_pool_poll_begin(t->pool, 0), 0U);
	krc_test_remover_start(t, &remover, ch);
	krc_test_wait(test, READ_ONCE(ch->state) == KRC_CHANNEL_LEAVING);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, completion_done(&remover.over));
	krc_pool_poll_end(t->pool, 0, true);
	wait_for_completion(&remover.over);
	KUNIT_EXPECT_EQ(test, remover.err, 0);
	krc_pool_poll(t->pool, 0);
	krc_pool_poll_nearby(t->pool, 0);
	KUNIT_EXPECT_EQ(test, krc_pool_poll_begin(t->pool, 0), KRC_TEST_ADDED);
	krc_pool_poll_end(t->pool, KRC_TEST_ADDED, false);
	/* its number is free again */
	ch = krc_pool_add(t->pool, KRC_CHANNEL_SHARED);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ch));
	KUNIT_EXPECT_EQ(test, ch->index, 0U);
}

/* The pool stops while a channel leaves: all requests end, and the remover returns. */
static void krc_test_the_end_of_a_channel_that_leaves(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_remover remover = {};
	struct krc_channel *ch = krc_test_leaver(t, 40);

	krc_test_remover_start(t, &remover, ch);
	krc_test_wait(test, READ_ONCE(ch->state) == KRC_CHANNEL_LEAVING);
	krc_pool_stop(t->pool);
	wait_for_completion(&remover.over);
	KUNIT_EXPECT_EQ(test, remover.err, 0);
	krc_test_expect(t, t->flow[0], 0, 40, -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_pool_add(t->pool, KRC_CHANNEL_SHARED)), -ENODEV);
}

/* ---- all at once */

/* A NIC that works and fails by chance. */
struct krc_test_storm {
	struct krc_test *t;
	const u32 *initiators; /* which of them have something to do */
	u32 nr;
	bool stop;
	struct completion over;
};

static int krc_test_nic(void *arg)
{
	static const enum krc_fault faults[] = { KRC_FAULT_ACCESS, KRC_FAULT_TIMEOUT,
						 KRC_FAULT_TARGET, KRC_FAULT_LOCAL };
	struct krc_test_storm *storm = arg;
	struct krc_fake *fake = storm->t->fake;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 4711);
	while (!READ_ONCE(storm->stop)) {
		u32 r = prandom_u32_state(&rnd);
		u32 i = storm->initiators[r % storm->nr];

		if (r >> 8 & 31)
			krc_fake_complete(fake, i, r >> 16 & 7);
		else if (r >> 16 & 3)
			krc_fake_fail(fake, i, faults[r >> 24 & 3]);
		else
			krc_fake_fatal(fake, i);
		if (!(r >> 20 & 7))
			usleep_range(1, 20);
		else
			cond_resched();
	}
	complete(&storm->over);
	return 0;
}

/* One owner of a flow: submits, cancels, restarts, and counts. */
struct krc_test_owner {
	struct krc_test_flow *flow;
	struct kunit *test;
	u32 rounds;
	u32 wrong;
	struct completion over;
};

static void krc_test_own_round(struct krc_test_owner *owner, struct rnd_state *rnd)
{
	static const u8 opcodes[] = { KRP_OP_READ, KRP_OP_WRITE, KRP_OP_FETCH_ADD, KRP_OP_READ };
	struct krc_test_flow *flow = owner->flow;
	u32 count = 1 + prandom_u32_state(rnd) % 40, i, taken = 0;
	bool bad = false;

	flow->submitted = 0;
	flow->done = 0;
	/* with and without what is asked for each segment; there are no requests now */
	flow->flow.check = prandom_u32_state(rnd) & 1 ? krc_test_check : NULL;
	for (i = 0; i < count; i++) {
		u32 r = prandom_u32_state(rnd);
		u8 opcode = opcodes[r & 3];
		u32 length = opcode == KRP_OP_FETCH_ADD ? 8 : r >> 8 & 1 ? r >> 12 : 64;

		flow->flow.polled = r >> 30 & 1;
		if (krc_test_submit(flow, 1, opcode, length ? length : 1))
			break;
		taken++;
		if (flow->flow.polled) {
			krc_pool_poll_nearby(flow->flow.pool, flow->index);
			krc_pool_poll_end(flow->flow.pool, flow->index, r >> 29 & 1);
		}
	}
	if (prandom_u32_state(rnd) % 8 == 0)
		krc_flow_cancel(&flow->flow);
	krc_flow_drain(&flow->flow);
	krc_flow_restart(&flow->flow);
	owner->wrong += flow->done != taken || flow->mixed;
	for (i = 0; i < taken; i++) {
		owner->wrong += flow->reqs[i].dones != 1 || flow->reqs[i].order != i;
		owner->wrong += bad && !flow->reqs[i].status; /* nothing succeeds behind a fault */
		bad = bad || flow->reqs[i].status;
	}
}

static int krc_test_own(void *arg)
{
	struct krc_test_owner *owner = arg;
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, owner->flow->address.opaque[0] + 1);
	for (i = 0; i < owner->rounds; i++)
		krc_test_own_round(owner, &rnd);
	complete(&owner->over);
	return 0;
}

static void krc_test_owners_start(struct krc_test *t, struct krc_test_owner *owner, u32 rounds)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow); i++) {
		owner[i].flow = t->flow[i];
		owner[i].rounds = rounds;
		init_completion(&owner[i].over);
		KUNIT_ASSERT_FALSE(t->test,
				   IS_ERR(kthread_run(krc_test_own, &owner[i], "krc_test")));
	}
}

static void krc_test_owners_wait(struct krc_test *t, struct krc_test_owner *owner)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow); i++) {
		wait_for_completion(&owner[i].over);
		KUNIT_EXPECT_EQ(t->test, owner[i].wrong, 0);
	}
}

static void krc_test_storm_start(struct krc_test *t, struct krc_test_storm *storm)
{
	init_completion(&storm->over);
	KUNIT_ASSERT_FALSE(t->test, IS_ERR(kthread_run(krc_test_nic, storm, "krc_test")));
}

static void krc_test_storm_over(struct krc_test *t, struct krc_test_storm *storm)
{
	struct krc_pool_stats stats;

	WRITE_ONCE(storm->stop, true);
	wait_for_completion(&storm->over);
	krc_pool_stats(t->pool, &stats);
	KUNIT_EXPECT_EQ(t->test, stats.outstanding, 0);
	KUNIT_EXPECT_GT(t->test, stats.recoveries, 10);
	KUNIT_EXPECT_GT(t->test, stats.replayed, 10);
	kunit_info(t->test,
		   "posted %llu completed %llu recoveries %llu replayed %llu in doubt %llu\n",
		   stats.posted, stats.completed, stats.recoveries, stats.replayed, stats.unknown);
}

static void krc_test_exactly_once_in_a_storm(struct kunit *test)
{
	static const u32 initiators[] = { 0, 1 };
	struct krc_test *t = test->priv;
	struct krc_test_storm storm = { .t = t, .initiators = initiators, .nr = 2 };
	struct krc_test_owner owner[ARRAY_SIZE(t->flow)] = {};
	int i;

	t->fake->sparse = true;
	krc_test_restart(t, 2);
	krc_test_storm_start(t, &storm);
	krc_test_owners_start(t, owner, 400);
	krc_test_owners_wait(t, owner);
	for (i = 0; i < ARRAY_SIZE(t->flow); i++)
		KUNIT_EXPECT_GT(test, t->flow[i]->most, 1);
	krc_test_storm_over(t, &storm);
}

/* The same while channels join and leave: requests are still done once, and in order. */
static void krc_test_channels_change_in_a_storm(struct kunit *test)
{
	static const u32 initiators[] = { 0, 1, 2 + KRC_POOL_OTHERS };
	struct krc_test *t = test->priv;
	struct krc_test_storm storm = { .t = t, .initiators = initiators, .nr = 3 };
	struct krc_test_owner owner[ARRAY_SIZE(t->flow)] = {};
	u32 changes, more = 0;

	t->fake->sparse = true;
	krc_test_restart(t, 2);
	krc_test_storm_start(t, &storm);
	krc_test_owners_start(t, owner, 200);
	for (changes = 0; changes < 60; changes++) {
		struct krc_channel *ch = krc_pool_add(t->pool, KRC_CHANNEL_SHARED);

		KUNIT_ASSERT_FALSE(test, IS_ERR(ch));
		more += ch->index == initiators[2];
		ch = krc_test_channel(t, initiators[changes % 3]);
		KUNIT_EXPECT_EQ(test, krc_pool_remove(t->pool, ch), 0);
	}
	krc_test_owners_wait(t, owner);
	krc_test_storm_over(t, &storm);
	KUNIT_EXPECT_GT(test, more, 10U);
	KUNIT_EXPECT_EQ(test, krc_test_shared(t), 2U);
}

/* What others have posted to a target is not posted again once it is barred, nor is anything new. */
static void krc_test_a_barred_target_is_not_asked(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *s = krc_standing_get(t->pool->rail, &t->flow[0]->address, 0x1000, 1);
	u64 executed;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < 3; i++) {
		t->flow[i]->address = t->flow[0]->address;
		t->flow[i]->flow.standing = s;
		KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[i], 2, KRP_OP_READ, 8), 0);
	}
	while (!krc_standing_refused(s))
		;
	s->retry_at += msecs_to_jiffies(KRC_REFUSED_MS); /* longer than this takes */
	executed = t->fake->ini[0]->log_nr;
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	for (i = 0; i < 3; i++)
		krc_test_wait(test, READ_ONCE(t->flow[i]->done) == 2);
	krc_test_expect(t, t->flow[0], 0, 1, -EREMOTEIO);
	krc_test_expect(t, t->flow[0], 1, 2, -ECANCELED);
	for (i = 1; i < 3; i++) {
		krc_test_expect(t, t->flow[i], 0, 1, -ETIMEDOUT);
		krc_test_expect(t, t->flow[i], 1, 2, -ECANCELED);
	}
	krc_flow_drain(&t->flow[1]->flow);
	krc_flow_restart(&t->flow[1]->flow);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 1, KRP_OP_READ, 8), 0);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 3);
	krc_test_expect(t, t->flow[1], 2, 3, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, executed);
	krc_test_wait(test, krc_test_channel(t, 0)->state == KRC_CHANNEL_READY);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 1U);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[3], 1, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[3], 1); /* another target */
	krc_test_expect(t, t->flow[3], 0, 1, 0);
	krc_standing_put(s);
	krc_silence_drop(t->pool->rail);
}

static struct kunit_case krc_channel_cases[] = {
	KUNIT_CASE(krc_test_a_channel_joins),
	KUNIT_CASE(krc_test_a_channel_leaves),
	KUNIT_CASE(krc_test_a_channel_fails_while_it_leaves),
	KUNIT_CASE(krc_test_what_keeps_a_channel),
	KUNIT_CASE(krc_test_the_end_of_a_channel_that_leaves),
	KUNIT_CASE(krc_test_exactly_once_in_a_storm),
	KUNIT_CASE(krc_test_channels_change_in_a_storm),
	KUNIT_CASE(krc_test_a_barred_target_is_not_asked),
	{}
};

static struct kunit_suite krc_channel_suite = {
	.name = "krcore_channel",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_channel_cases,
};
kunit_test_suite(krc_channel_suite);
