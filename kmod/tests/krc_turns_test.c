// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: turns by payers: what is next, what is left by a task that is killed while it waits, and
 * that neither a task that does not run nor a payer with many has the turns of others.
 * Locking: a test runs alone; what it starts notes its number under a lock of its own.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/turns.h"
#include "krc_test_wait.h"

#define KRC_TEST_TASKS 6
#define KRC_TEST_ACCOUNTS 3

/**
 * struct krc_test_turns - Turns, and tasks that wait for them.
 * @turns: turns.
 * @lock: for @order and @nr.
 * @order: numbers of the tasks, in the order in which they had their turns.
 * @nr: how many had.
 * @open: by account: what is done on it ends only then.
 * @task: the tasks.
 */
struct krc_test_turns {
	struct krc_turns turns;
	spinlock_t lock;
	u32 order[KRC_TEST_TASKS];
	u32 nr;
	struct completion open[KRC_TEST_ACCOUNTS];
	struct krc_test_task {
		struct krc_test_turns *all;
		struct task_struct *thread;
		u8 account;
		bool killed;
		int err;
	} task[KRC_TEST_TASKS];
};

/* On the stack of its task. @by: who has done it. */
struct krc_test_turn {
	struct krc_turn turn;
	struct krc_test_task *task;
	struct task_struct *by;
};

/* Users that pay; only their addresses matter. */
static const u8 krc_test_account[KRC_TEST_ACCOUNTS];

static void krc_test_run(struct krc_turn *turn)
{
	struct krc_test_turn *t = container_of(turn, struct krc_test_turn, turn);
	struct krc_test_turns *all = t->task->all;

	t->by = current;
	spin_lock(&all->lock);
	all->order[all->nr++] = t->task - all->task;
	spin_unlock(&all->lock);
	wait_for_completion(&all->open[t->task->account]);
}

static int krc_test_task(void *arg)
{
	struct krc_test_task *task = arg;
	struct krc_test_turn t = { .task = task };

	if (task->killed)
		allow_signal(SIGKILL);
	krc_turn_begin(&task->all->turns, &t.turn, &krc_test_account[task->account], krc_test_run);
	task->err = krc_turn_wait(&t.turn, task->killed);
	while (!kthread_should_stop()) {
		if (task->killed)
			flush_signals(current);
		schedule_timeout_interruptible(1);
	}
	return 0;
}

/* Wait until so many wait, and so many have begun. */
static void krc_test_waits(struct kunit *test, struct krc_test_turns *all, u32 waiting, u32 begun)
{
	krc_test_until_late(READ_ONCE(all->turns.line.waiting) == waiting &&
			    READ_ONCE(all->nr) == begun);
	KUNIT_EXPECT_EQ(test, READ_ONCE(all->turns.line.waiting), waiting);
	KUNIT_EXPECT_EQ(test, READ_ONCE(all->nr), begun);
}

/* A task comes; after it so many wait, and so many have begun. */
static void krc_test_come(struct kunit *test, struct krc_test_turns *all, u32 i, u8 account,
			  bool killed, u32 waiting, u32 begun)
{
	struct krc_test_task *task = &all->task[i];

	task->all = all;
	task->account = account;
	task->killed = killed;
	task->thread = kthread_run(krc_test_task, task, "krc_turn_%u", i);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task->thread));
	krc_test_waits(test, all, waiting, begun);
}

static struct krc_test_turns *krc_test_turns_new(struct kunit *test, u32 nr)
{
	struct krc_test_turns *all = kunit_kzalloc(test, sizeof(*all), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, all);
	spin_lock_init(&all->lock);
	for (i = 0; i < KRC_TEST_ACCOUNTS; i++)
		init_completion(&all->open[i]);
	krc_turns_init(&all->turns, nr, alloc_workqueue("krc_turns_test", WQ_UNBOUND, 0));
	KUNIT_ASSERT_NOT_NULL(test, all->turns.wq);
	return all;
}

/* Tasks of these accounts come one after the other; the first has the only turn. */
static struct krc_test_turns *krc_test_tasks(struct kunit *test, const u8 *accounts, u32 killed)
{
	struct krc_test_turns *all = krc_test_turns_new(test, 1);
	u32 i;

	for (i = 0; i < KRC_TEST_TASKS; i++)
		krc_test_come(test, all, i, accounts[i], i == killed, i, 1);
	return all;
}

/* All turns end: @nr tasks have theirs, in this order, and nothing is left. */
static void krc_test_taken(struct kunit *test, struct krc_test_turns *all, const u32 *order, u32 nr)
{
	u32 i;

	for (i = 0; i < KRC_TEST_ACCOUNTS; i++)
		complete_all(&all->open[i]);
	krc_test_waits(test, all, 0, nr);
	for (i = 0; i < KRC_TEST_TASKS; i++)
		if (all->task[i].thread)
			kthread_stop(all->task[i].thread);
	destroy_workqueue(all->turns.wq);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, all->order[i], order[i]);
	KUNIT_EXPECT_EQ(test, all->turns.free, all->turns.nr);
	KUNIT_EXPECT_TRUE(test, list_empty(&all->turns.running));
	KUNIT_EXPECT_TRUE(test, list_empty(&all->turns.line.heads));
}

static void krc_test_turns_are_of_payers(struct kunit *test)
{
	static const u8 accounts[] = { 2, 0, 0, 0, 1, 2 };
	static const u32 order[] = { 0, 1, 4, 5, 2, 3 };

	krc_test_taken(test, krc_test_tasks(test, accounts, U32_MAX), order, ARRAY_SIZE(order));
}

static void krc_test_the_first_of_a_payer_is_killed(struct kunit *test)
{
	static const u8 accounts[] = { 2, 0, 0, 1, 1, 0 };
	static const u32 order[] = { 0, 2, 3, 5, 4 };
	struct krc_test_turns *all = krc_test_tasks(test, accounts, 1);

	send_sig(SIGKILL, all->task[1].thread, 1);
	krc_test_waits(test, all, KRC_TEST_TASKS - 2, 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, all->task[1].err, -EINTR);
}

static void krc_test_one_behind_it_is_killed(struct kunit *test)
{
	static const u8 accounts[] = { 2, 0, 0, 1, 1, 0 };
	static const u32 order[] = { 0, 1, 3, 5, 4 };
	struct krc_test_turns *all = krc_test_tasks(test, accounts, 2);

	send_sig(SIGKILL, all->task[2].thread, 1);
	krc_test_waits(test, all, KRC_TEST_TASKS - 2, 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, all->task[2].err, -EINTR);
}

/* What has begun is done, and its task waits for that: it uses what is the task's. */
static void krc_test_what_has_begun_is_not_taken_back(struct kunit *test)
{
	static const u8 accounts[] = { 2, 0, 0, 1, 1, 0 };
	static const u32 order[] = { 0, 1, 3, 2, 4, 5 };
	struct krc_test_turns *all = krc_test_tasks(test, accounts, 0);

	send_sig(SIGKILL, all->task[0].thread, 1);
	msleep(20);
	krc_test_waits(test, all, KRC_TEST_TASKS - 1, 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, all->task[0].err, 0);
}

/* Of three turns a payer has two at most: another one's task does not wait for any of it. */
static void krc_test_no_payer_has_all_turns(struct kunit *test)
{
	static const u32 order[] = { 0, 1, 4, 5, 2, 3 };
	struct krc_test_turns *all = krc_test_turns_new(test, 3);
	u32 i;

	complete_all(&all->open[1]);
	complete_all(&all->open[2]);
	for (i = 0; i < 4; i++)
		krc_test_come(test, all, i, 0, false, i < 2 ? 0 : i - 1, min(i + 1, 2U));
	krc_test_come(test, all, 4, 1, false, 2, 3);
	krc_test_come(test, all, 5, 2, false, 2, 4);
	krc_test_wait(test, READ_ONCE(all->turns.free) == 1); /* behind what it has noted */
	complete_all(&all->open[0]);
	krc_test_waits(test, all, 0, ARRAY_SIZE(order));
	if (all->order[4] > all->order[5]) /* both are begun at once, by two work items */
		swap(all->order[4], all->order[5]);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
}

/*
 * A task that does not run any more once it is in line, as one of a throttled cgroup, has its turn
 * without it, and the next one's begins.
 */
static void krc_test_a_task_need_not_run_in_its_turn(struct kunit *test)
{
	static const u32 order[] = { 0, 1 };
	struct krc_test_turns *all = krc_test_turns_new(test, 1);
	struct krc_test_turn t = { .task = &all->task[0] };

	all->task[0].all = all;
	krc_turn_begin(&all->turns, &t.turn, &krc_test_account[0], krc_test_run);
	krc_test_come(test, all, 1, 1, false, 1, 1);
	complete_all(&all->open[0]);
	krc_test_waits(test, all, 0, 2);
	KUNIT_EXPECT_EQ(test, krc_turn_wait(&t.turn, true), 0);
	KUNIT_EXPECT_PTR_NE(test, t.by, current);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
}

/**
 * struct krc_test_left - What no task waits for; freed when it is over.
 * @turn: its turn.
 * @all: where.
 * @nr: its number.
 */
struct krc_test_left {
	struct krc_turn turn;
	struct krc_test_turns *all;
	u32 nr;
};

static void krc_test_left_run(struct krc_turn *turn)
{
	struct krc_test_left *left = container_of(turn, struct krc_test_left, turn);

	spin_lock(&left->all->lock);
	left->all->order[left->all->nr++] = left->nr;
	spin_unlock(&left->all->lock);
	if (!left->nr)
		wait_for_completion(&left->all->open[0]);
}

static void krc_test_left_over(struct krc_turn *turn)
{
	kfree(container_of(turn, struct krc_test_left, turn));
}

/* What no task waits for has its turns by payers, too, and is not touched behind its end. */
static void krc_test_turns_that_no_task_waits_for(struct kunit *test)
{
	static const u8 accounts[] = { 0, 0, 0, 1 };
	static const u32 order[] = { 0, 1, 3, 2 };
	struct krc_test_turns *all = krc_test_turns_new(test, 1);
	struct krc_test_left *left;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(accounts); i++) {
		left = kzalloc(sizeof(*left), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, left);
		left->all = all;
		left->nr = i;
		krc_turn_queue(&all->turns, &left->turn, &krc_test_account[accounts[i]],
			       krc_test_left_run, krc_test_left_over);
	}
	krc_test_waits(test, all, ARRAY_SIZE(accounts) - 1, 1);
	krc_test_taken(test, all, order, ARRAY_SIZE(order));
}

static struct kunit_case krc_turns_cases[] = { KUNIT_CASE(krc_test_turns_are_of_payers),
					       KUNIT_CASE(krc_test_the_first_of_a_payer_is_killed),
					       KUNIT_CASE(krc_test_one_behind_it_is_killed),
					       KUNIT_CASE(
						       krc_test_what_has_begun_is_not_taken_back),
					       KUNIT_CASE(krc_test_no_payer_has_all_turns),
					       KUNIT_CASE(krc_test_turns_that_no_task_waits_for),
					       KUNIT_CASE(krc_test_a_task_need_not_run_in_its_turn),
					       {} };

static struct kunit_suite krc_turns_suite = {
	.name = "krcore_turns",
	.test_cases = krc_turns_cases,
};
kunit_test_suite(krc_turns_suite);
