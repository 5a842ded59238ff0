// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: who polls a channel, and when an interrupt or a timer is asked for.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>

#include "base/spin.h"
#include "krc_pool_test.h"

/* Whether @ch asked for an interrupt, or awaits its timer. */
static bool krc_test_armed(struct krc_channel *ch, bool *ret_lingering)
{
	bool armed;

	spin_lock_bh(&ch->lock);
	armed = ch->arming.armed;
	*ret_lingering = ch->arming.lingering;
	spin_unlock_bh(&ch->lock);
	return armed;
}

/* A poller is not interrupted; a sleeper is, at once. */
static void krc_test_interrupts_spare_who_polls(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	bool lingering;

	if (preempt_model_preemptible())
		kunit_skip(test, "a kernel that preempts its tasks asks in any case");
	t->flow[0]->flow.polled = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_FALSE(test, krc_test_armed(ch, &lingering));
	KUNIT_EXPECT_FALSE(test, lingering);
	krc_pool_poll_end(t->pool, 0, false);
	KUNIT_EXPECT_TRUE(test, krc_test_armed(ch, &lingering));
	KUNIT_EXPECT_FALSE(test, lingering);
	KUNIT_EXPECT_EQ(test, ch->arming.polled_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 1);
}

/* The pool remembers when a poller left that may be back, and what it polled in passing. */
static void krc_test_who_polled_is_remembered(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u64 begin_ns = ktime_get_ns();
	struct krc_channel *ch;
	u32 at, idle;

	krc_test_restart(t, 3);
	t->flow[0]->flow.polled = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	at = krc_flow_index(&t->flow[0]->flow);
	idle = (at + 1) % 3;
	ch = krc_test_channel(t, at);
	krc_pool_poll_nearby(t->pool, idle);
	KUNIT_EXPECT_EQ(test, ch->arming.polled_ns, 0ULL); /* somebody is at it */
	krc_pool_poll_end(t->pool, at, false);
	KUNIT_EXPECT_EQ(test, ch->arming.polled_ns, 0ULL);
	krc_pool_poll_nearby(t->pool, idle);
	KUNIT_EXPECT_GE(test, ch->arming.polled_ns, begin_ns);
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, (at + 2) % 3)->arming.polled_ns,
			0ULL); /* empty */
	KUNIT_EXPECT_EQ(test, krc_test_channel(t, idle)->arming.polled_ns, 0ULL);
	krc_pool_poll_begin(t->pool, idle);
	krc_pool_poll_end(t->pool, idle, true);
	KUNIT_EXPECT_GE(test, krc_test_channel(t, idle)->arming.polled_ns, begin_ns);
	krc_test_finish(t, t->flow[0], 1);
}

/* A poller that finds what it wants has left with that, and not before. */
static void krc_test_a_poller_leaves_with_what_it_wants(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	u64 begin_ns = ktime_get_ns(), told = 0;

	t->flow[0]->flow.polled = true;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_FALSE(test, krc_pool_poll_until(t->pool, 0, &told, 1));
	KUNIT_EXPECT_EQ(test, ch->arming.pollers, 1U);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	KUNIT_EXPECT_FALSE(test, krc_pool_poll_until(t->pool, 0, &told, 1));
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[0]->done), 1U);
	KUNIT_EXPECT_EQ(test, ch->arming.pollers, 1U);
	KUNIT_EXPECT_EQ(test, ch->arming.polled_ns, 0ULL);
	told = 1; /* by somebody else: nothing is in the hardware */
	KUNIT_EXPECT_TRUE(test, krc_pool_poll_until(t->pool, 0, &told, 1));
	KUNIT_EXPECT_EQ(test, ch->arming.pollers, 0U);
	KUNIT_EXPECT_GE(test, ch->arming.polled_ns, begin_ns);

	/* and with something in the hardware, which is asked for an interrupt then */
	ch->arming.polled_ns = 0;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_TRUE(test, krc_pool_poll_until(t->pool, 0, &told, 1));
	KUNIT_EXPECT_EQ(test, ch->arming.pollers, 0U);
	KUNIT_EXPECT_GE(test, ch->arming.polled_ns, begin_ns);
	krc_test_finish(t, t->flow[0], 2);
}

/* A task that posts soon after it has polled counts as a poller; a later one does not. */
static void krc_test_who_posts_in_time_stays(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	u64 polled_ns;
	u32 tries;

	if (!krc_spin_linger_ns())
		kunit_skip(test, "a kernel without timers for that");
	spin_lock_bh(&ch->lock);
	for (tries = 0; tries < 1000; tries++) { /* the guest may be away for longer */
		polled_ns = ktime_get_ns();
		ch->arming.polled_ns = polled_ns;
		krc_channel_note_poller(ch);
		if (ch->arming.polled_ns > polled_ns)
			break;
	}
	KUNIT_EXPECT_LT(test, tries, 1000U);
	polled_ns = ktime_get_ns() - krc_spin_linger_ns();
	ch->arming.polled_ns = polled_ns;
	krc_channel_note_poller(ch);
	KUNIT_EXPECT_EQ(test, ch->arming.polled_ns, polled_ns);
	spin_unlock_bh(&ch->lock);
}

/* Expect that @ch awaits its timer, unless this guest was away until that. */
static void krc_test_expect_lingering(struct kunit *test, struct krc_channel *ch, u64 until_ns)
{
	bool lingering, armed = krc_test_armed(ch, &lingering);

	KUNIT_EXPECT_TRUE(test, (lingering && !armed) || ktime_get_ns() >= until_ns);
}

/* If the poller is not back, a timer finds what completed, and asks for an interrupt. */
static void krc_test_a_timer_stands_for_who_lingers(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	u64 until_ns = ktime_get_ns() + 600 * NSEC_PER_MSEC;
	bool lingering;

	if (!krc_spin_linger_ns())
		kunit_skip(test, "a kernel without timers for that");
	/* stopped in the future: late enough for a slow guest, but before the watchdog looks */
	WRITE_ONCE(ch->arming.polled_ns, until_ns);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 2, KRP_OP_READ, KRC_UNSIGNALED_BYTES), 0);
	krc_test_expect_lingering(test, ch, until_ns);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	KUNIT_EXPECT_TRUE(test, !READ_ONCE(t->flow[0]->done) || ktime_get_ns() >= until_ns);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 1);
	KUNIT_EXPECT_TRUE(test, krc_test_armed(ch, &lingering));
	KUNIT_EXPECT_FALSE(test, lingering);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 2);
}

/* A burst of two. Return: the timer was to come at the second one, and not: this guest was away. */
static bool krc_test_burst(struct krc_test *t, struct krc_channel *ch, u64 *ret_until_ns)
{
	u64 until_ns = ktime_get_ns() + 300 * NSEC_PER_MSEC;

	WRITE_ONCE(ch->arming.polled_ns, until_ns);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_expect_lingering(t->test, ch, until_ns);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	*ret_until_ns = until_ns;
	return READ_ONCE(ch->arming.again) || ktime_get_ns() < until_ns;
}

/* A task that submits before the timer reads no clock: the timer defers the interrupt once more. */
static void krc_test_a_burst_lingers_once_more(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_channel *ch = krc_test_channel(t, 0);
	u32 tries = 1;
	u64 until_ns;
	bool lingering;

	if (!krc_spin_linger_ns())
		kunit_skip(test, "a kernel without timers for that");
	while (!krc_test_burst(t, ch, &until_ns) && tries < 3) {
		krc_test_finish(t, t->flow[0], 2 * tries++);
		krc_flow_drain(&t->flow[0]->flow);
	}
	krc_test_wait(test, READ_ONCE(ch->arming.polled_ns) > until_ns);
	krc_test_wait(test, krc_test_armed(ch, &lingering));
	KUNIT_EXPECT_FALSE(test, lingering);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(ch->arming.again));
	krc_test_finish(t, t->flow[0], 2 * tries);
}

/* The pool may stop while the timer is to come. */
static void krc_test_the_end_of_who_lingers(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u64 until_ns = ktime_get_ns() + 300 * NSEC_PER_MSEC;

	if (!krc_spin_linger_ns())
		kunit_skip(test, "a kernel without timers for that");
	WRITE_ONCE(krc_test_channel(t, 0)->arming.polled_ns, until_ns);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 1, KRP_OP_READ, 8), 0);
	krc_test_expect_lingering(test, krc_test_channel(t, 0), until_ns);
	krc_test_restart(t, 1);
	KUNIT_EXPECT_EQ(test, t->flow[0]->reqs[0].status, -ENODEV);
	msleep(400); /* the timer would find a pool that is not there */
}

/* An owner that takes long to be told, and somebody who wants to know of the end. */
struct krc_test_slow {
	struct krc_flow flow;
	struct krc_req req;
	struct krc_hw_address address;
	struct krc_pool_watch watch;
	struct completion over;
	bool begun;
	bool told;
	bool told_at_end;
};

static void krc_test_slow_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_test_slow *slow = container_of(flow, struct krc_test_slow, flow);

	list_del_init(&slow->req.list);
	WRITE_ONCE(slow->begun, true);
	mdelay(300);
	WRITE_ONCE(slow->told, true);
}

static void krc_test_slow_stopped(struct krc_pool_watch *watch)
{
	struct krc_test_slow *slow = container_of(watch, struct krc_test_slow, watch);

	slow->told_at_end = READ_ONCE(slow->told);
}

static int krc_test_slow_poll(void *arg)
{
	struct krc_test_slow *slow = arg;

	krc_pool_poll(slow->flow.pool, 0);
	complete(&slow->over);
	return 0;
}

/* A watch is told of the end after all requests, also by another processor. */
static void krc_test_the_end_waits_for_who_tells(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_slow *slow = kunit_kzalloc(test, sizeof(*slow), GFP_KERNEL);
	unsigned int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct task_struct *poller;
	LIST_HEAD(reqs);

	if (other >= nr_cpu_ids)
		kunit_skip(test, "there is one processor");
	KUNIT_ASSERT_NOT_NULL(test, slow);
	t->fake->mute = true; /* no interrupt, but the poller, finds it */
	krc_flow_init(&slow->flow, t->pool, krc_test_slow_done, NULL);
	init_completion(&slow->over);
	slow->watch.stopped = krc_test_slow_stopped;
	KUNIT_ASSERT_EQ(test, krc_pool_watch(t->pool, &slow->watch), 0);
	slow->req.wr =
		(struct krc_hw_wr){ .address = &slow->address, .length = 8, .opcode = KRP_OP_READ };
	list_add_tail(&slow->req.list, &reqs);
	KUNIT_ASSERT_EQ(test, krc_flow_submit(&slow->flow, &reqs, NULL), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 0, 1), 1U);
	poller = kthread_create(krc_test_slow_poll, slow, "krc_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(poller));
	kthread_bind(poller, other);
	wake_up_process(poller);
	krc_test_wait(test, READ_ONCE(slow->begun));
	krc_pool_stop(t->pool);
	KUNIT_EXPECT_TRUE(test, slow->told_at_end);
	wait_for_completion(&slow->over);
	krc_flow_release(&slow->flow);
}

static struct kunit_case krc_pollers_cases[] = {
	KUNIT_CASE(krc_test_interrupts_spare_who_polls),
	KUNIT_CASE(krc_test_who_polled_is_remembered),
	KUNIT_CASE(krc_test_a_poller_leaves_with_what_it_wants),
	KUNIT_CASE(krc_test_who_posts_in_time_stays),
	KUNIT_CASE(krc_test_a_timer_stands_for_who_lingers),
	KUNIT_CASE(krc_test_a_burst_lingers_once_more),
	KUNIT_CASE(krc_test_the_end_of_who_lingers),
	KUNIT_CASE(krc_test_the_end_waits_for_who_tells),
	{}
};

static struct kunit_suite krc_pollers_suite = {
	.name = "krcore_pollers",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_pollers_cases,
};
kunit_test_suite(krc_pollers_suite);
