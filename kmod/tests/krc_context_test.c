// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: walks over the queues and connections of all contexts, in parts between which contexts and
 * queues go, counts of contexts, and those that wait for changed records. Without a device.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "krp_msg.h"
#include "user/context.h"
#include "user/queue.h"
#include "user/show.h"
#include "user/talk.h"
#include "user/watch.h"

#define KRC_TEST_UID 54322 /* no other test opens a context as this user */
#define KRC_TEST_QUEUES 100
#define KRC_TEST_TALKS 5

/**
 * struct krc_test_walked - What a walk has shown.
 * @room: how many more are taken.
 * @nr: how many were shown so far.
 * @context: context of the last one.
 * @queue: number of the last one.
 * @disorder: those that did not come behind the one before.
 */
struct krc_test_walked {
	u32 room;
	u32 nr;
	u64 context;
	u32 queue;
	u32 disorder;
};

static int krc_test_show(const struct krc_queue_info *info, void *arg)
{
	struct krc_test_walked *walked = arg;

	if (!walked->room)
		return 1;
	walked->room--;
	walked->nr++;
	walked->disorder += info->context < walked->context ||
			    (info->context == walked->context && info->queue <= walked->queue);
	walked->context = info->context;
	walked->queue = info->queue;
	return 0;
}

/* A context with queues that can be shown, and nothing else. */
static struct krc_context *krc_test_open(struct kunit *test, u32 queues)
{
	struct krc_context *ctx = krc_context_open();
	struct krc_queue *queue;

	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	for (; queues; queues--) {
		queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, queue);
		queue->ctx = ctx;
		KUNIT_ASSERT_EQ(test,
				xa_alloc(&ctx->queues, &queue->id, queue, XA_LIMIT(1, INT_MAX),
					 GFP_KERNEL),
				0);
	}
	return ctx;
}

/* The context is gone; its queues, which are the test's, are not shown any more. */
static void krc_test_shut(struct krc_context *ctx)
{
	struct krc_queue *queue;
	unsigned long id;

	xa_for_each(&ctx->queues, id, queue)
		xa_erase(&ctx->queues, id);
	krc_context_close(ctx);
}

static void krc_test_a_walk_goes_on_where_it_was(struct kunit *test)
{
	struct krc_context *large = krc_test_open(test, KRC_TEST_QUEUES);
	struct krc_context *none = krc_test_open(test, 0);
	struct krc_context *small = krc_test_open(test, 3);
	struct krc_test_walked walked = { .room = 40 };
	struct krc_queue_at at = {};

	krc_queue_walk(&at, NULL, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 40U);
	KUNIT_EXPECT_EQ(test, walked.queue, 40U);
	/* the next one is closed; then more are shown than without a break */
	xa_erase(&large->queues, 41);
	walked.room = 50;
	krc_queue_walk(&at, NULL, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 90U);
	KUNIT_EXPECT_EQ(test, walked.queue, 91U);
	/* the whole context is closed: the next one is shown from its first queue on */
	krc_test_shut(large);
	walked.room = U32_MAX;
	krc_queue_walk(&at, NULL, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 93U);
	KUNIT_EXPECT_EQ(test, walked.context, small->id);
	KUNIT_EXPECT_EQ(test, walked.disorder, 0U);
	krc_queue_walk(&at, NULL, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 93U);
	/* and one opened meanwhile from its first on, too */
	large = krc_test_open(test, 1);
	krc_queue_walk(&at, NULL, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 94U);
	krc_test_shut(large);
	krc_test_shut(none);
	krc_test_shut(small);
}

static void krc_test_a_walk_is_of_one_user(struct kunit *test)
{
	struct krc_test_walked walked = { .room = U32_MAX };
	struct krc_context *other = krc_test_open(test, 3), *own;
	struct cred *cred = prepare_creds();
	kuid_t uid = KUIDT_INIT(KRC_TEST_UID);
	struct krc_queue_at at = {};
	const struct cred *before;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = uid;
	before = override_creds(cred);
	put_cred(cred);
	own = krc_test_open(test, KRC_TEST_QUEUES);
	revert_creds(before);
	krc_queue_walk(&at, &uid, krc_test_show, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, (u32)KRC_TEST_QUEUES);
	KUNIT_EXPECT_EQ(test, walked.context, own->id);
	krc_test_shut(own);
	krc_test_shut(other);
}

static int krc_test_show_pid(const struct krc_queue_info *info, void *arg)
{
	*(pid_t *)arg = info->pid;
	return 0;
}

/* Processes are named as in the namespace of the one that asks, and not if they have no name there. */
static void krc_test_a_walk_names_what_its_caller_sees(struct kunit *test)
{
	struct krc_context *ctx = krc_test_open(test, 1);
	struct pid_namespace *inner = kunit_kzalloc(test, sizeof(*inner), GFP_KERNEL);
	struct pid *pid = kunit_kzalloc(test, struct_size(pid, numbers, 2), GFP_KERNEL);
	struct pid *own = current->thread_pid;
	struct krc_queue_at at = {};
	pid_t seen = -1;

	KUNIT_ASSERT_NOT_NULL(test, inner);
	KUNIT_ASSERT_NOT_NULL(test, pid);
	krc_queue_walk(&at, NULL, krc_test_show_pid, &seen);
	KUNIT_EXPECT_EQ(test, seen, task_tgid_nr(current));

	/* a task of a container */
	inner->level = 1;
	pid->level = 1;
	pid->numbers[0] = own->numbers[0];
	pid->numbers[1] = (struct upid){ .nr = 7, .ns = inner };
	current->thread_pid = pid;
	at = (struct krc_queue_at){};
	krc_queue_walk(&at, NULL, krc_test_show_pid, &seen);
	current->thread_pid = own;
	KUNIT_EXPECT_EQ(test, seen, 0);
	krc_test_shut(ctx);
}

static int krc_test_show_talk(const struct krc_talk_info *info, void *arg)
{
	struct krc_test_walked *walked = arg;

	if (!walked->room)
		return 1;
	walked->room--;
	walked->nr++;
	walked->disorder += info->how.connection <= walked->queue ||
			    info->how.state != KRP_CONN_OFFERED || info->depth ||
			    !krp_is_zero(&info->how.peer, sizeof(info->how.peer));
	walked->context = info->context;
	walked->queue = info->how.connection;
	return 0;
}

/* A context with a mailbox in which connections can have numbers, and nothing else. */
static struct krc_context *krc_test_open_box(struct kunit *test, struct krc_mailbox *box)
{
	struct krc_context *ctx = krc_test_open(test, 0);

	box->ctx = ctx;
	mutex_init(&box->take);
	xa_init_flags(&box->talks, XA_FLAGS_ALLOC1);
	spin_lock_init(&box->lock);
	INIT_LIST_HEAD(&box->news);
	ctx->mailbox = box;
	return ctx;
}

/* Its letter is the test's. */
static void krc_test_close_talk(struct krc_talk *talk)
{
	kref_get(&talk->ref);
	mutex_lock(&talk->control);
	talk->offer = NULL;
	krc_talk_close(talk, true);
	krc_talk_leave(talk);
}

/*
 * Connections that are offered are shown, in parts, and none that is being made or was closed; and
 * nobody waits for a program that has locked one.
 */
static void krc_test_a_walk_of_connections(struct kunit *test)
{
	struct krc_mailbox *box = kunit_kzalloc(test, sizeof(*box), GFP_KERNEL);
	struct krc_letter *letter = kunit_kzalloc(test, sizeof(*letter), GFP_KERNEL);
	struct krc_test_walked walked = { .room = 2 };
	struct krc_talk *talk[KRC_TEST_TALKS];
	struct krc_queue_at at = {};
	struct krc_context *ctx;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, box);
	KUNIT_ASSERT_NOT_NULL(test, letter);
	ctx = krc_test_open_box(test, box);
	for (i = 0; i < KRC_TEST_TALKS; i++) {
		talk[i] = krc_talk_make(box);
		KUNIT_ASSERT_FALSE(test, IS_ERR(talk[i]));
		if (i)
			krc_talk_offer(talk[i], letter);
	}
	krc_talk_walk(&at, NULL, krc_test_show_talk, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 2U);
	KUNIT_EXPECT_EQ(test, walked.queue, talk[2]->id);
	KUNIT_EXPECT_EQ(test, walked.context, ctx->id);
	krc_test_close_talk(talk[3]);
	walked.room = U32_MAX;
	mutex_lock(&talk[4]->control);
	krc_talk_walk(&at, NULL, krc_test_show_talk, &walked);
	KUNIT_EXPECT_EQ(test, walked.nr, 3U);
	KUNIT_EXPECT_EQ(test, walked.queue, talk[4]->id);
	KUNIT_EXPECT_EQ(test, walked.disorder, 0U);
	mutex_unlock(&talk[4]->control);
	krc_talk_unmake(talk[0]);
	krc_test_close_talk(talk[1]);
	krc_test_close_talk(talk[2]);
	krc_test_close_talk(talk[4]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&box->talks));
	ctx->mailbox = NULL;
	krc_test_shut(ctx);
}

static void krc_test_contexts_are_counted(struct kunit *test)
{
	struct krc_context_stats before, stats;
	struct krc_context *ctx[2];

	krc_context_stats(&before);
	ctx[0] = krc_test_open(test, 0);
	ctx[1] = krc_test_open(test, 0);
	krc_context_stats(&stats);
	KUNIT_EXPECT_EQ(test, stats.contexts, before.contexts + 2);
	KUNIT_EXPECT_EQ(test, stats.queues, before.queues);
	KUNIT_EXPECT_NE(test, ctx[0]->id, ctx[1]->id);
	krc_test_shut(ctx[0]);
	krc_test_shut(ctx[1]);
	krc_context_stats(&stats);
	KUNIT_EXPECT_EQ(test, stats.contexts, before.contexts);
}

/**
 * struct krc_test_poller - A task that polls for changes.
 * @table: what it polls with.
 * @head: the wait queue that it is in.
 * @entry: its entry there.
 * @woken: how often it was woken.
 */
struct krc_test_poller {
	poll_table table;
	wait_queue_head_t *head;
	struct wait_queue_entry entry;
	u32 woken;
};

static int krc_test_woken(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct krc_test_poller *poller = container_of(entry, struct krc_test_poller, entry);

	WRITE_ONCE(poller->woken, poller->woken + 1);
	return 0;
}

static void krc_test_queued(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct krc_test_poller *poller = container_of(table, struct krc_test_poller, table);

	poller->head = head;
	init_waitqueue_func_entry(&poller->entry, krc_test_woken);
	add_wait_queue(head, &poller->entry);
}

/* A context that watches, and a task that polls for what it has not read yet. */
static struct krc_context *krc_test_follow(struct kunit *test, struct krc_test_poller *poller)
{
	struct krc_context *ctx = krc_test_open(test, 0);
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	struct krp_event event;

	KUNIT_ASSERT_NOT_NULL(test, file);
	krc_changes_follow(&ctx->follower);
	krc_context_follows(ctx, true);
	KUNIT_EXPECT_EQ(test, krc_changes_take(&ctx->follower, &event, 1), 1U);
	init_poll_funcptr(&poller->table, krc_test_queued);
	KUNIT_EXPECT_EQ(test, (u32)krc_watch_poll(ctx, file, &poller->table), 0U);
	KUNIT_ASSERT_NOT_NULL(test, poller->head);
	return ctx;
}

/* A change reaches all that wait for one, and none of them waits where the log wakes. */
static void krc_test_changes_are_passed_on(struct kunit *test)
{
	struct krp_key key = { .gid = { 0xfe, 0x80, 1 }, .service = cpu_to_le16(300) };
	struct krc_test_poller poller[3] = {};
	struct krc_context *ctx[3];
	u32 i, tries;

	for (i = 0; i < ARRAY_SIZE(ctx); i++) {
		ctx[i] = krc_test_follow(test, &poller[i]);
		KUNIT_EXPECT_PTR_NE(test, poller[i].head, &krc_changes_wait);
	}
	krc_watch_end(ctx[1]);
	krc_changes_add(KRP_EVENT_CHANGED, &key, 1);
	for (tries = 0; tries < 20000 && !READ_ONCE(poller[2].woken); tries++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(poller[0].woken), 1U);
	KUNIT_EXPECT_EQ(test, READ_ONCE(poller[1].woken), 0U);
	KUNIT_EXPECT_EQ(test, READ_ONCE(poller[2].woken), 1U);
	KUNIT_EXPECT_TRUE(test, krc_changes_pending(&ctx[0]->follower));
	KUNIT_EXPECT_FALSE(test, krc_changes_pending(&ctx[1]->follower));
	for (i = 0; i < ARRAY_SIZE(ctx); i++) {
		remove_wait_queue(poller[i].head, &poller[i].entry);
		krc_watch_end(ctx[i]);
		krc_test_shut(ctx[i]);
	}
}

/* A payer is found by its key as long as it has a context, or somebody counts it, and then no more. */
static void krc_test_a_payer_is_found(struct kunit *test)
{
	struct krc_user *root = krc_user_get_current(), *user = krc_user_get_named("found");
	struct krc_charge charge[2] = {};
	struct krc_payer payer;
	const void *key;
	u32 i;

	KUNIT_ASSERT_TRUE(test, root && user);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, krc_charge(root, KRC_RES_CONTEXT, &charge[i]), 0);
		if (!charge[i].cgroup) { /* without the controller: something else stands for it */
			charge[i].cgroup = (struct rdma_cgroup *)test;
			krc_payer_list(&charge[i]);
		}
	}
	key = krc_charge_payer(&charge[0]);
	KUNIT_EXPECT_PTR_EQ(test, key, (const void *)charge[0].cgroup);
	KUNIT_EXPECT_FALSE(test, krc_payer_find(&key, &payer));
	KUNIT_EXPECT_NULL(test, payer.user);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, krc_payer_find(key, &payer));
		KUNIT_EXPECT_PTR_EQ(test, payer.user, root);
		KUNIT_EXPECT_PTR_EQ(test, payer.cgroup, charge[1].cgroup);
		krc_payer_put(&payer);
		krc_uncharge(&charge[i]);
	}
	KUNIT_EXPECT_FALSE(test, krc_payer_find(key, &payer));
	KUNIT_EXPECT_TRUE(test, krc_payer_find(user, &payer));
	KUNIT_EXPECT_PTR_EQ(test, payer.user, user);
	KUNIT_EXPECT_NULL(test, payer.cgroup);
	krc_user_put(user);
	key = user;
	krc_payer_put(&payer); /* it was the last one */
	KUNIT_EXPECT_FALSE(test, krc_payer_find(key, &payer));
	krc_user_put(root);
}

/* A context that was not noted, for lack of memory, takes nothing from those of its payer that were. */
static void krc_test_a_payer_that_was_not_noted(struct kunit *test)
{
	struct krc_user *root = krc_user_get_current();
	struct krc_charge charge[2] = {};
	struct krc_payer payer;
	const void *key;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, root);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, krc_charge(root, KRC_RES_CONTEXT, &charge[i]), 0);
		if (!charge[i].cgroup) { /* without the controller: something else stands for it */
			charge[i].cgroup = (struct rdma_cgroup *)test;
			krc_payer_list(&charge[i]);
		}
		if (!i) /* as if there had been no memory */
			krc_payer_unlist(&charge[0]);
	}
	key = krc_charge_payer(&charge[1]);
	krc_uncharge(&charge[0]);
	KUNIT_EXPECT_TRUE(test, krc_payer_find(key, &payer));
	krc_payer_put(&payer);
	krc_uncharge(&charge[1]);
	KUNIT_EXPECT_FALSE(test, krc_payer_find(key, &payer));
	krc_user_put(root);
}

static struct kunit_case krc_context_cases[] = {
	KUNIT_CASE(krc_test_a_walk_goes_on_where_it_was),
	KUNIT_CASE(krc_test_a_walk_is_of_one_user),
	KUNIT_CASE(krc_test_a_walk_names_what_its_caller_sees),
	KUNIT_CASE(krc_test_a_walk_of_connections),
	KUNIT_CASE(krc_test_contexts_are_counted),
	KUNIT_CASE(krc_test_changes_are_passed_on),
	KUNIT_CASE(krc_test_a_payer_is_found),
	KUNIT_CASE(krc_test_a_payer_that_was_not_noted),
	{}
};

static struct kunit_suite krc_context_suite = {
	.name = "krcore_context",
	.test_cases = krc_context_cases,
};
kunit_test_suite(krc_context_suite);
