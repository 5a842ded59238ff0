// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: turns by payers: which task is next, and what one leaves that is killed while it waits.
 * Locking: a test runs alone; what it starts notes its number while it has the only turn.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "base/turns.h"

#define KRC_TEST_TASKS 6
#define KRC_TEST_WAIT_MS 5000

/**
 * struct krc_test_turns - Turns, and tasks that wait for the only one.
 * @turns: turns.
 * @order: numbers of the tasks, in the order in which they had their turns.
 * @nr: how many had.
 * @task: the tasks.
 */
struct krc_test_turns {
	struct krc_turns turns;
	u32 order[KRC_TEST_TASKS];
	u32 nr;
	struct krc_test_turn {
		struct krc_test_turns *all;
		struct task_struct *thread;
		const void *payer;
		bool killed;
		int err;
	} task[KRC_TEST_TASKS];
};

/* Users that pay; only their addresses matter. */
static const u8 krc_test_account[3];

static int krc_test_turn(void *arg)
{
	struct krc_test_turn *task = arg;
	struct krc_test_turns *all = task->all;

	if (task->killed)
		allow_signal(SIGKILL);
	task->err = krc_turn_begin(&all->turns, task->payer, task->killed);
	if (!task->err) {
		all->order[all->nr++] = task - all->task;
		krc_turn_end(&all->turns);
	}
	while (!kthread_should_stop()) {
		if (task->killed)
			flush_signals(current);
		schedule_timeout_interruptible(1);
	}
	return 0;
}

static u32 krc_test_waiting(struct krc_test_turns *all)
{
	return READ_ONCE(all->turns.line.waiting);
}

/* Wait until so many tasks wait. */
static void krc_test_waits(struct kunit *test, struct krc_test_turns *all, u32 nr)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS);

	while (krc_test_waiting(all) != nr && time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(test, krc_test_waiting(all), nr);
}

/* Tasks of these payers come one after the other, while the test has the turn. */
static struct krc_test_turns *krc_test_tasks(struct kunit *test, const u8 *payers, u32 killed)
{
	struct krc_test_turns *all = kunit_kzalloc(test, sizeof(*all), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, all);
	krc_turns_init(&all->turns, 1);
	KUNIT_EXPECT_EQ(test, krc_turn_begin(&all->turns, NULL, false), 0);
	for (i = 0; i < KRC_TEST_TASKS; i++) {
		struct krc_test_turn *task = &all->task[i];

		task->all = all;
		task->payer = &krc_test_account[payers[i]];
		task->killed = i == killed;
		task->thread = kthread_run(krc_test_turn, task, "krc_turn_%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task->thread));
		krc_test_waits(test, all, i + 1);
	}
	return all;
}

/* The test gives the turn back: all have theirs, in this order. */
static void krc_test_taken(struct kunit *test, struct krc_test_turns *all, const u32 *order, u32 nr)
{
	u32 i;

	krc_turn_end(&all->turns);
	krc_test_waits(test, all, 0);
	for (i = 0; i < KRC_TEST_TASKS; i++)
		kthread_stop(all->task[i].thread);
	KUNIT_EXPECT_EQ(test, all->nr, nr);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, all->order[i], order[i]);
	KUNIT_EXPECT_EQ(test, all->turns.free, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&all->turns.line.heads));
}

static void krc_test_turns_are_of_payers(struct kunit *test)
{
	static const u8 payers[] = { 0, 0, 0, 0, 1, 2 };
	static const u32 order[] = { 0, 4, 5, 1, 2, 3 };

	krc_test_taken(test, krc_test_tasks(test, payers, U32_MAX), order, ARRAY_SIZE(order));
}

static void krc_test_the_first_of_a_payer_is_killed(struct kunit *test)
{
	static const u8 payers[] = { 0, 0, 0, 1, 1, 0 };
	static const u32 order[] = { 1, 3, 2, 4, 5 };
	struct krc_test_turns *all = krc_test_tasks(test, payers, 0);

	send_sig(SIGKILL, all->task[0].thread, 1);
	krc_test_waits(test, all, KRC_TEST_TASKS - 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, all->task[0].err, -EINTR);
}

static void krc_test_one_behind_it_is_killed(struct kunit *test)
{
	static const u8 payers[] = { 0, 0, 0, 1, 1, 0 };
	static const u32 order[] = { 0, 3, 2, 4, 5 };
	struct krc_test_turns *all = krc_test_tasks(test, payers, 1);

	send_sig(SIGKILL, all->task[1].thread, 1);
	krc_test_waits(test, all, KRC_TEST_TASKS - 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, all->task[1].err, -EINTR);
}

static struct kunit_case krc_turns_cases[] = { KUNIT_CASE(krc_test_turns_are_of_payers),
					       KUNIT_CASE(krc_test_the_first_of_a_payer_is_killed),
					       KUNIT_CASE(krc_test_one_behind_it_is_killed),
					       {} };

static struct kunit_suite krc_turns_suite = {
	.name = "krcore_turns",
	.test_cases = krc_turns_cases,
};
kunit_test_suite(krc_turns_suite);
