// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: requests that the pool does not post, since krc_flow.check() holds or refuses them, and what
 * becomes of those before and behind them.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#include "krc_pool_test.h"

static void krc_test_check_holds_and_fails(struct kunit *test)
{
	struct krc_test *t = test->priv;

	t->flow[0]->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 3, KRP_OP_READ, 8), 0);
	krc_test_finish(t, t->flow[1], 3);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[0]->done), 0);
	WRITE_ONCE(t->flow[0]->check, 0);
	krc_flow_resume(&t->flow[0]->flow);
	krc_test_finish(t, t->flow[0], 3);
	krc_test_expect(t, t->flow[0], 0, 3, 0);

	t->flow[0]->check = -EBADR;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[0], 3, KRP_OP_READ, 8), 0);
	krc_test_wait(test, READ_ONCE(t->flow[0]->done) == 6);
	krc_test_expect(t, t->flow[0], 3, 4, -EBADR);
	krc_test_expect(t, t->flow[0], 4, 6, -ECANCELED);

	t->flow[1]->check = -EAGAIN;
	KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[1], 3, KRP_OP_READ, 8), 0);
	krc_flow_cancel(&t->flow[1]->flow);
	krc_test_wait(test, READ_ONCE(t->flow[1]->done) == 6);
	krc_test_expect(t, t->flow[1], 3, 6, -ECANCELED);
}

/* Two READs are in the hardware, and the third is refused; those behind it wait. */
static void krc_test_refuse_the_third(struct krc_test *t)
{
	struct krc_test_flow *flow = t->flow[0];
	u32 done = READ_ONCE(flow->done);

	flow->lets = 2;
	flow->check = -EBADR;
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 4, KRP_OP_READ, 8), 0);
	KUNIT_ASSERT_EQ(t->test, krc_test_submit(flow, 1, KRP_OP_READ, 8), 0);
	KUNIT_EXPECT_EQ(t->test, krc_fake_pending(t->fake, 0), 2);
	KUNIT_EXPECT_EQ(t->test, READ_ONCE(flow->done), done);
}

static void krc_test_those_before_a_refused_one_end_first(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u32 i;

	for (i = 0; i < 2; i++) {
		u32 first = t->flow[0]->done;

		krc_test_refuse_the_third(t);
		if (i) { /* nobody's fault: they are posted again */
			t->flow[0]->lets = 2;
			krc_fake_fatal(t->fake, 0);
		}
		krc_test_finish(t, t->flow[0], first + 5);
		krc_test_expect(t, t->flow[0], first, first + 2, 0);
		krc_test_expect(t, t->flow[0], first + 2, first + 3, -EBADR);
		krc_test_expect(t, t->flow[0], first + 3, first + 5, -ECANCELED);
		krc_flow_drain(&t->flow[0]->flow);
		krc_flow_restart(&t->flow[0]->flow);
	}
}

static void krc_test_a_refused_one_is_behind_a_failed_one(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_refuse_the_third(t);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_finish(t, t->flow[0], 5);
	krc_test_expect(t, t->flow[0], 0, 1, -EREMOTEIO);
	krc_test_expect(t, t->flow[0], 1, 5, -ECANCELED);
}

static void krc_test_a_refused_one_is_told_why_beside_a_cancel(struct kunit *test)
{
	struct krc_test *t = test->priv;

	krc_test_refuse_the_third(t);
	krc_flow_cancel(&t->flow[0]->flow);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->flow[0]->done), 0);
	krc_test_finish(t, t->flow[0], 5);
	krc_test_expect(t, t->flow[0], 0, 2, 0);
	krc_test_expect(t, t->flow[0], 2, 3, -EBADR);
	krc_test_expect(t, t->flow[0], 3, 5, -ECANCELED);
	krc_flow_drain(&t->flow[0]->flow);
}

static struct kunit_case krc_refused_cases[] = {
	KUNIT_CASE(krc_test_check_holds_and_fails),
	KUNIT_CASE(krc_test_those_before_a_refused_one_end_first),
	KUNIT_CASE(krc_test_a_refused_one_is_behind_a_failed_one),
	KUNIT_CASE(krc_test_a_refused_one_is_told_why_beside_a_cancel),
	{}
};

static struct kunit_suite krc_refused_suite = {
	.name = "krcore_refused",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_refused_cases,
};
kunit_test_suite(krc_refused_suite);
