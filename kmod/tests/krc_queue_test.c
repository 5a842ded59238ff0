// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the completion ring against a program that behaves and one that does not, and
 * the states of a queue; what a task that waits for its completions is told, how many may, and
 * what calls say if too many do; what a cached record in doubt is worth. Without a device.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/string.h>

#include "node/port.h"
#include "peer/lookup.h"
#include "peer/peer.h"
#include "pool/silence.h"
#include "krp_msg.h"
#include "user/after.h"
#include "user/chardev.h"
#include "user/lookup.h"
#include "user/post.h"
#include "user/queue.h"
#include "user/service.h"
#include "user/talk.h"
#include "user/wait.h"
#include "user/watch.h"
#include "fake_provider.h"
#include "krc_test_wait.h"

static int krc_ring_test_make(struct kunit *test, u32 entries, struct krc_ring **ret_ring)
{
	struct krc_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	spin_lock_init(&ring->lock);
	*ret_ring = ring;
	return krc_ring_create(ring, entries);
}

/* One reserved completion. */
static void krc_ring_test_complete(struct krc_ring *ring, u64 user_data)
{
	local_bh_disable();
	krc_ring_begin(ring);
	*krc_ring_entry(ring, 0) = (struct krp_cqe){ .user_data = user_data };
	krc_ring_end(ring, 1);
	local_bh_enable();
}

static void krc_test_ring_sizes(struct kunit *test)
{
	static const u32 bad[] = {
		0, 1, 8, 17, 100, KRP_RING_ENTRIES_MAX + 1, KRP_RING_ENTRIES_MAX * 2
	};
	struct krc_ring *ring;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, krc_ring_test_make(test, bad[i], &ring), -EINVAL);
	KUNIT_ASSERT_EQ(test, krc_ring_test_make(test, 64, &ring), 0);
	KUNIT_EXPECT_EQ(test, ring->shared->entries, 64);
	KUNIT_EXPECT_EQ(test, ring->shared->offset, sizeof(struct krp_ring));
	KUNIT_EXPECT_EQ(test, krc_ring_set_aside(ring, 60), 0);
	KUNIT_EXPECT_EQ(test, krc_ring_set_aside(ring, 5), -ENOSPC);
	KUNIT_EXPECT_EQ(test, krc_ring_set_aside(ring, 4), 0);
	krc_ring_give_back(ring, 60);
	KUNIT_EXPECT_EQ(test, krc_ring_set_aside(ring, 60), 0);
	krc_ring_destroy(ring);
}

static void krc_test_ring_never_overflows(struct kunit *test)
{
	struct krc_ring *ring;
	u32 round, i;

	KUNIT_ASSERT_EQ(test, krc_ring_test_make(test, 16, &ring), 0);
	ring->tail = U32_MAX - 20; /* the numbers wrap on the way */
	ring->head = ring->tail;
	atomic_set(&ring->claimed, ring->tail);
	ring->shared->tail = ring->tail;
	ring->shared->head = ring->tail;
	for (round = 0; round < 10; round++) {
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 10), 10);
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 10), 6);
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 1), 0);
		krc_ring_unreserve(ring, 2);
		for (i = 0; i < 14; i++)
			krc_ring_test_complete(ring, round * 14 + i);
		KUNIT_EXPECT_TRUE(test, krc_ring_pending(ring));
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 10), 2);
		krc_ring_unreserve(ring, 2);
		for (i = 0; i < 14; i++) {
			u32 at = ring->shared->head++ & 15;

			KUNIT_EXPECT_EQ(test, ring->cqes[at].user_data, round * 14 + i);
		}
		KUNIT_EXPECT_FALSE(test, krc_ring_pending(ring));
	}
	krc_ring_destroy(ring);
}

static void krc_test_ring_does_not_believe_a_wrong_head(struct kunit *test)
{
	static const u32 wrong[] = { 0, 3, 9, 1000, 0x80000000, U32_MAX };
	struct krc_ring *ring;
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_ring_test_make(test, 16, &ring), 0);
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 8), 8);
	for (i = 0; i < 8; i++)
		krc_ring_test_complete(ring, i);
	ring->shared->head = 4;
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 16), 12);
	krc_ring_unreserve(ring, 12);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		ring->shared->head = wrong[i];
		ring->shared->tail = wrong[i];
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 16), 12);
		krc_ring_unreserve(ring, 12);
		KUNIT_EXPECT_TRUE(test, krc_ring_pending(ring));
	}
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 1), 1);
	krc_ring_test_complete(ring, 8);
	KUNIT_EXPECT_EQ(test, ring->shared->tail, 9); /* it is written, not counted up */
	krc_ring_destroy(ring);
}

/* A head that was believed and is ahead of what is written: no other wrong one is, and it ends. */
static void krc_test_ring_forgets_a_head_that_cannot_be(struct kunit *test)
{
	static const u32 wrong[] = { 9, 12, 24, 25, 1000, 0x80000000 };
	struct krc_ring *ring;
	u32 i;

	KUNIT_ASSERT_EQ(test, krc_ring_test_make(test, 16, &ring), 0);
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 8), 8);
	for (i = 0; i < 8; i++)
		krc_ring_test_complete(ring, i);
	ring->head = 12;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		ring->shared->head = wrong[i];
		KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 16), 0);
		KUNIT_EXPECT_EQ(test, ring->head, 12);
	}
	ring->shared->head = 6;
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 16), 14);
	KUNIT_EXPECT_EQ(test, ring->head, 6);
	krc_ring_unreserve(ring, 14);
	ring->shared->head = 9;
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(ring, 16), 14);
	KUNIT_EXPECT_EQ(test, ring->head, 6);
	krc_ring_destroy(ring);
}

static int krc_test_ring_map(struct file *file, struct vm_area_struct *vma)
{
	return krc_ring_mmap(file->private_data, vma);
}

static const struct file_operations krc_test_ring_fops = { .mmap = krc_test_ring_map };

/* What is mapped without PROT_EXEC can't get it later. */
static void krc_test_ring_is_never_executable(struct kunit *test)
{
	struct vm_area_struct *vma;
	struct krc_ring *ring;
	unsigned long at;
	struct file *file;

	KUNIT_ASSERT_EQ(test, krc_ring_test_make(test, 16, &ring), 0);
	file = anon_inode_getfile("[krcore]", &krc_test_ring_fops, ring, O_RDWR);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, file);
	at = kunit_vm_mmap(test, file, 0, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	KUNIT_ASSERT_NE(test, at, 0UL);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(at));
	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, at);
	KUNIT_EXPECT_EQ(test, vma->vm_start, at);
	KUNIT_EXPECT_TRUE(test, vma->vm_flags & VM_MAYWRITE);
	KUNIT_EXPECT_FALSE(test, vma->vm_flags & VM_MAYEXEC);
	mmap_read_unlock(current->mm);
	KUNIT_EXPECT_TRUE(test, IS_ERR_VALUE(vm_mmap(file, 0, ring->bytes, PROT_READ | PROT_EXEC,
						     MAP_SHARED, 0)));
	KUNIT_EXPECT_EQ(test, vm_munmap(at, ring->bytes), 0);
	fput(file);
	krc_ring_destroy(ring);
}

static void krc_test_queue_states_follow_the_table(struct kunit *test)
{
	static const bool may[KRC_QUEUE_CLOSING + 1][KRC_QUEUE_CLOSING + 1] = {
		[KRP_QUEUE_IDLE] = { [KRP_QUEUE_CONNECTING] = 1,
				     [KRP_QUEUE_ERROR] = 1,
				     [KRC_QUEUE_CLOSING] = 1 },
		[KRP_QUEUE_CONNECTING] = { [KRP_QUEUE_READY] = 1,
					   [KRP_QUEUE_ERROR] = 1,
					   [KRC_QUEUE_CLOSING] = 1 },
		[KRP_QUEUE_READY] = { [KRP_QUEUE_ERROR] = 1, [KRC_QUEUE_CLOSING] = 1 },
		[KRP_QUEUE_ERROR] = { [KRP_QUEUE_CONNECTING] = 1, [KRC_QUEUE_CLOSING] = 1 },
	};
	struct krc_queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	u32 from, to;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	queue->ctx = kunit_kzalloc(test, sizeof(*queue->ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, queue->ctx);
	spin_lock_init(&queue->lock);
	for (from = 0; from <= KRC_QUEUE_CLOSING; from++)
		for (to = 0; to <= KRC_QUEUE_CLOSING; to++) {
			bool changed;

			queue->state = from;
			queue->error = from == KRP_QUEUE_ERROR ? -EIO : 0;
			changed = krc_queue_set_state(queue, to, -ETIMEDOUT);
			KUNIT_EXPECT_EQ(test, changed, may[from][to]);
			KUNIT_EXPECT_EQ(test, queue->state, changed ? to : from);
			if (changed)
				KUNIT_EXPECT_EQ(test, queue->error,
						to == KRP_QUEUE_ERROR ? -ETIMEDOUT : 0);
			else if (from == KRP_QUEUE_ERROR)
				KUNIT_EXPECT_EQ(test, queue->error, -EIO); /* the first stays */
		}
}

/* A record in doubt is the answer only if no server that should know says otherwise. */
static void krc_test_a_record_in_doubt(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(0, KRC_MISS_PROVED), 0);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ENOENT, KRC_MISS_PROVED), -ENOENT);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ENOENT, KRC_MISS_LIKELY), -ENOENT);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ENOENT, KRC_MISS_WEAK), 1);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ENOTCONN, KRC_MISS_PROVED), 1);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ETIMEDOUT, KRC_MISS_PROVED), 1);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-EINTR, KRC_MISS_PROVED), -EINTR);
	KUNIT_EXPECT_EQ(test, krc_lookup_judge(-ESHUTDOWN, KRC_MISS_PROVED), -ESHUTDOWN);
}

/* What a queue with one request under way is made of. */
struct krc_test_queue {
	struct krc_context ctx;
	struct krc_peer peer;
	struct krc_mr mr;
	struct krc_queue queue;
};

static struct krc_test_queue *krc_test_queue_new(struct kunit *test)
{
	struct krc_test_queue *q = kunit_kzalloc(test, struct_size(q, queue.reqs, 2), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, q);
	q->ctx.user = krc_user_get_current();
	KUNIT_ASSERT_NOT_NULL(test, q->ctx.user);
	spin_lock_init(&q->ctx.ring.lock);
	init_waitqueue_head(&q->ctx.wait);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&q->ctx.ring, 16), 0);
	q->peer.standing = krc_standing_get(NULL, &q->peer.address, 0x1000, 1);
	KUNIT_ASSERT_NOT_NULL(test, q->peer.standing);
	kref_init(&q->mr.ref);
	krc_mr_get(&q->mr, 1);
	spin_lock_init(&q->queue.lock);
	INIT_LIST_HEAD(&q->queue.afters);
	q->queue.ctx = &q->ctx;
	q->queue.peer = &q->peer;
	q->queue.depth = 1;
	q->queue.posted = 1;
	q->queue.reqs[0].req.flow = &q->queue.flow;
	q->queue.reqs[0].mr = &q->mr;
	q->queue.reqs[0].req.wr.length = 8;
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(&q->ctx.ring, 1), 1U);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(q->ctx.user, 1), 1U);
	return q;
}

#define KRC_TEST_NUMBERS 20

/* What was found before is found again, until its number is erased; numbers share places. */
static void krc_test_what_was_found_is_found_until_erased(struct kunit *test)
{
	struct krc_quick quick[8] = {};
	int objects[KRC_TEST_NUMBERS + 1];
	struct xarray xa;
	unsigned long i;

	xa_init(&xa);
	for (i = 1; i <= KRC_TEST_NUMBERS; i++)
		KUNIT_ASSERT_EQ(test, xa_err(xa_store(&xa, i, &objects[i], GFP_KERNEL)), 0);
	xa_lock(&xa);
	KUNIT_EXPECT_NULL(test, krc_quick_find(&xa, quick, 8, 0));
	for (i = 2; i < 2 * KRC_TEST_NUMBERS; i++)
		KUNIT_EXPECT_PTR_EQ(test, krc_quick_find(&xa, quick, 8, i / 2),
				    (void *)&objects[i / 2]);
	xa_unlock(&xa);
	KUNIT_EXPECT_NULL(test, krc_quick_erase(&xa, quick, 8, 19, &objects[11]));
	KUNIT_EXPECT_PTR_EQ(test, krc_quick_erase(&xa, quick, 8, 19, NULL), (void *)&objects[19]);
	KUNIT_EXPECT_PTR_EQ(test, krc_quick_erase(&xa, quick, 8, 11, &objects[11]),
			    (void *)&objects[11]);
	KUNIT_EXPECT_NULL(test, krc_quick_erase(&xa, quick, 8, 11, NULL));
	xa_lock(&xa);
	KUNIT_EXPECT_NULL(test, krc_quick_find(&xa, quick, 8, 19));
	KUNIT_EXPECT_NULL(test, krc_quick_find(&xa, quick, 8, 11));
	KUNIT_EXPECT_PTR_EQ(test, krc_quick_find(&xa, quick, 8, 3), (void *)&objects[3]);
	KUNIT_EXPECT_NULL(test, krc_quick_find(&xa, quick, 8, 19));
	xa_unlock(&xa);
	xa_destroy(&xa);
}

/* What a task that is woken finds: how far the ring and the counts of the queue are. */
struct krc_test_woken {
	wait_queue_entry_t entry;
	struct krc_test_queue *q;
	u32 times;
	u32 tail;
	bool told;
};

static int krc_test_wake(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct krc_test_woken *woken = container_of(entry, struct krc_test_woken, entry);
	struct krc_posted posted = { .queue = &woken->q->queue, .until = 1 };

	woken->times++;
	woken->tail = READ_ONCE(woken->q->ctx.ring.shared->tail);
	woken->told = krc_posted_told(&posted);
	return 0;
}

static void krc_test_queue_end(struct krc_test_queue *q)
{
	krc_ring_destroy(&q->ctx.ring);
	krc_standing_put(q->peer.standing);
	krc_user_put(q->ctx.user);
}

/* The one request of a queue completes. */
static void krc_test_queue_complete(struct krc_test_queue *q)
{
	LIST_HEAD(reqs);

	list_add_tail(&q->queue.reqs[0].req.list, &reqs);
	local_bh_disable();
	krc_queue_done(&q->queue.flow, &reqs, 1);
	local_bh_enable();
}

/* A task that waits for what it posted is not let go before all of it is in the ring. */
static void krc_test_told_is_in_the_ring(struct kunit *test)
{
	struct krc_test_queue *q = krc_test_queue_new(test);
	struct krc_test_woken woken = { .q = q };
	struct krc_posted posted = { .queue = &q->queue, .until = 1 };

	init_waitqueue_func_entry(&woken.entry, krc_test_wake);
	add_wait_queue(&q->ctx.wait, &woken.entry);
	/* its request is free for the next poster, but the entry is not there yet */
	q->queue.completed = 1;
	KUNIT_EXPECT_FALSE(test, krc_posted_told(&posted));
	q->queue.completed = 0;

	krc_test_queue_complete(q);
	KUNIT_EXPECT_EQ(test, woken.times, 1U);
	KUNIT_EXPECT_EQ(test, woken.tail, 1U);
	KUNIT_EXPECT_TRUE(test, woken.told);
	KUNIT_EXPECT_EQ(test, krc_queue_completed(&q->queue), 1ULL);
	KUNIT_EXPECT_EQ(test, q->ctx.ring.cqes[0].bytes, 8U);
	remove_wait_queue(&q->ctx.wait, &woken.entry);
	krc_test_queue_end(q);
}

/* A target that answered before it did not is silent: outcomes count in their order. */
static void krc_test_an_answer_before_a_time_out(struct kunit *test)
{
	struct krc_test_queue *q = krc_test_queue_new(test);
	struct krc_queue_req *late = &q->queue.reqs[1];
	LIST_HEAD(reqs);

	late->req.flow = &q->queue.flow;
	late->mr = &q->mr;
	late->req.wr.length = 16;
	late->req.status = -ETIMEDOUT;
	late->req.fault = KRC_FAULT_TIMEOUT;
	krc_mr_get(&q->mr, 1);
	q->queue.state = KRP_QUEUE_ERROR;
	q->peer.outdated = true; /* what is known of it is forgotten already */
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(&q->ctx.ring, 1), 1U);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(q->ctx.user, 1), 1U);
	list_add_tail(&q->queue.reqs[0].req.list, &reqs);
	list_add_tail(&late->req.list, &reqs);
	local_bh_disable();
	krc_queue_done(&q->queue.flow, &reqs, 2);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(q->peer.standing), KRC_STANDING_SILENT);
	KUNIT_EXPECT_EQ(test, q->queue.bytes, 8ULL);
	KUNIT_EXPECT_EQ(test, q->queue.failed, 1ULL);
	KUNIT_EXPECT_EQ(test, kref_read(&q->mr.ref), 1U);
	krc_test_queue_end(q);
}

/* A connection of which only a message waits. */
struct krc_test_talk {
	struct krc_talk talk;
	u32 released;
};

static void krc_test_released(struct work_struct *work)
{
	struct krc_test_talk *t = container_of(work, struct krc_test_talk, talk.release);

	t->released++;
	krc_talk_put(&t->talk); /* never the last one */
}

/*
 * Messages that wait for requests of a queue: the completion tells those whose requests are done,
 * and says which of them are not to be sent; the others stay.
 */
static void krc_test_messages_wait_for_a_queue(struct kunit *test)
{
	/* until, krc_queue.failed when the waiting began, outcome */
	static const int cases[][3] = { { 1, 0, 0 }, { 1, 7, -ECANCELED }, { 2, 0, -EINPROGRESS } };
	struct krc_test_queue *q = krc_test_queue_new(test);
	struct krc_after after[ARRAY_SIZE(cases)];
	struct krc_test_talk *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	kref_init(&t->talk.ref);
	INIT_WORK(&t->talk.release, krc_test_released);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		after[i] = (struct krc_after){
			.queue = &q->queue,
			.talk = &t->talk,
			.until = cases[i][0],
			.failed = cases[i][1],
			.outcome = -EINPROGRESS,
		};
		list_add_tail(&after[i].list, &q->queue.afters);
		q->queue.nr_afters++;
	}
	krc_test_queue_complete(q);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, krc_after_outcome(&after[i]), cases[i][2]);
	KUNIT_EXPECT_EQ(test, q->queue.nr_afters, 1U);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&q->queue.afters));
	flush_workqueue(krc_renew_wq);
	KUNIT_EXPECT_GE(test, t->released, 1U);
	KUNIT_EXPECT_EQ(test, kref_read(&t->talk.ref), 1U);
	krc_test_queue_end(q);
}

/**
 * struct krc_test_sleepers - Many that sleep in one context.
 * @sleeper: the sleepers.
 * @entry: in the queue.
 * @here: how many were woken with bottom halves off.
 * @all: how many were woken.
 */
struct krc_test_sleepers {
	struct krc_test_sleeper {
		wait_queue_entry_t entry;
		struct krc_test_sleepers *all;
	} sleeper[KRP_SLEEPERS_MAX];
	u32 here;
	u32 all;
};

static int krc_test_count_woken(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct krc_test_sleepers *s = container_of(entry, struct krc_test_sleeper, entry)->all;

	s->here += !!softirq_count();
	s->all++;
	return 0;
}

static void krc_test_wake_sleepers(struct krc_context *ctx, struct krc_test_sleepers *s, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		s->sleeper[i].all = s;
		init_waitqueue_func_entry(&s->sleeper[i].entry, krc_test_count_woken);
		add_wait_queue(&ctx->wait, &s->sleeper[i].entry);
	}
	s->here = 0;
	s->all = 0;
	local_bh_disable();
	krc_wait_wake(ctx);
	local_bh_enable();
	flush_work(&ctx->wake);
	for (i = 0; i < nr; i++)
		remove_wait_queue(&ctx->wait, &s->sleeper[i].entry);
}

/* A program with hundreds of sleepers delays nobody whose completions are told behind its own. */
static void krc_test_many_sleepers(struct kunit *test)
{
	struct krc_test_sleepers *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct krc_context *ctx = krc_context_open();

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	krc_test_wake_sleepers(ctx, s, 2);
	KUNIT_EXPECT_EQ(test, s->here, 2U); /* as soon as can be */
	KUNIT_EXPECT_EQ(test, s->all, 2U);
	krc_test_wake_sleepers(ctx, s, KRP_SLEEPERS_MAX);
	KUNIT_EXPECT_EQ(test, s->here, 0U);
	KUNIT_EXPECT_EQ(test, s->all, (u32)KRP_SLEEPERS_MAX);
	krc_context_put(ctx);
}

static void krc_test_sleepers_are_bounded(struct kunit *test)
{
	struct krc_test_sleepers *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct krc_context *ctx = krc_context_open();
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	for (i = 0; i < KRP_SLEEPERS_MAX; i++) {
		KUNIT_EXPECT_TRUE(test, krc_wait_room(&ctx->wait));
		init_waitqueue_func_entry(&s->sleeper[i].entry, krc_test_count_woken);
		add_wait_queue(&ctx->wait, &s->sleeper[i].entry);
	}
	KUNIT_EXPECT_FALSE(test, krc_wait_room(&ctx->wait));
	KUNIT_EXPECT_TRUE(test, krc_wait_room(&ctx->changed));
	for (i = 0; i < KRP_SLEEPERS_MAX; i++)
		remove_wait_queue(&ctx->wait, &s->sleeper[i].entry);
	KUNIT_EXPECT_TRUE(test, krc_wait_room(&ctx->wait));
	krc_context_put(ctx);
}

/**
 * struct krc_test_call - Calls of a task in a context that has a port but no device.
 * @ctx: context, which follows changes, and has read those of before.
 * @port: its port, which nobody may enter.
 * @file: its file.
 * @table: what it polls with.
 * @asked: wait queues that poll(2) was put into.
 */
struct krc_test_call {
	struct krc_context *ctx;
	struct krc_port port;
	struct file file;
	poll_table table;
	u32 asked;
};

static void krc_test_count_asked(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	container_of(table, struct krc_test_call, table)->asked++;
}

static struct krc_test_call *krc_test_call_new(struct kunit *test)
{
	struct krc_test_call *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);
	struct krp_event event;

	KUNIT_ASSERT_NOT_NULL(test, call);
	call->ctx = krc_context_open();
	KUNIT_ASSERT_FALSE(test, IS_ERR(call->ctx));
	KUNIT_ASSERT_EQ(test, krc_rail_init(&call->port.rail, NULL), 0);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&call->ctx->ring, 16), 0);
	call->ctx->port = &call->port;
	krc_rail_kill(&call->port.rail);
	call->file.private_data = call->ctx;
	init_poll_funcptr(&call->table, krc_test_count_asked);
	krc_changes_follow(&call->ctx->follower);
	krc_context_follows(call->ctx, true);
	KUNIT_EXPECT_EQ(test, krc_changes_take(&call->ctx->follower, &event, 1), 1U);
	return call;
}

static void krc_test_call_end(struct krc_test_call *call)
{
	krc_watch_end(call->ctx);
	call->ctx->port = NULL;
	krc_context_put(call->ctx);
	krc_rail_wait_idle(&call->port.rail);
	krc_rail_fini(&call->port.rail);
}

/* What each call says: WAIT, read(2) that blocks and one that does not, poll(2) that waits or not. */
static void krc_test_calls(struct kunit *test, struct krc_test_call *call, int wait, int read,
			   __poll_t poll)
{
	struct krp_wait arg = { .timeout_ms = 1 };
	size_t bytes = sizeof(struct krp_event);

	KUNIT_EXPECT_EQ(test, krc_ioc_wait(call->ctx, &arg), wait);
	if (read)
		KUNIT_EXPECT_EQ(test, krc_watch_read(call->ctx, NULL, bytes, false), read);
	KUNIT_EXPECT_EQ(test, krc_watch_read(call->ctx, NULL, bytes, true), -EAGAIN);
	call->asked = 0;
	KUNIT_EXPECT_EQ(test, (u32)krc_chardev_poll(&call->file, &call->table), (u32)poll);
	KUNIT_EXPECT_EQ(test, call->asked, poll ? 0U : 2U); /* for completions and changes */
	KUNIT_EXPECT_EQ(test, (u32)krc_chardev_poll(&call->file, NULL), 0U);
}

/* With 256 sleepers a call says so and does not sleep; with one fewer it may. */
static void krc_test_calls_beside_many_sleepers(struct kunit *test)
{
	struct krc_test_sleepers *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct krc_test_call *call = krc_test_call_new(test);
	wait_queue_head_t *full;
	u32 i, n;

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (n = 0; n < 2; n++) {
		full = n ? &call->ctx->changed : &call->ctx->wait;
		for (i = 0; i < KRP_SLEEPERS_MAX; i++) {
			init_waitqueue_func_entry(&s->sleeper[i].entry, krc_test_count_woken);
			add_wait_queue(full, &s->sleeper[i].entry);
		}
		krc_test_calls(test, call, n ? -ETIMEDOUT : -EBUSY, n ? -EBUSY : 0, EPOLLERR);
		remove_wait_queue(full, &s->sleeper[0].entry);
		krc_test_calls(test, call, -ETIMEDOUT, 0, 0);
		for (i = 1; i < KRP_SLEEPERS_MAX; i++)
			remove_wait_queue(full, &s->sleeper[i].entry);
	}
	krc_test_call_end(call);
}

/* CONNECT on a port that is dying: a queue stays as it was, and none is made. */
static void krc_test_connect_on_a_dying_port(struct kunit *test)
{
	struct krp_connect connect = { .service = 300, .timeout_ms = 1 };
	struct krp_queue_create create = { .depth = 8 };
	struct krp_queue_query query = {};
	struct krc_context *ctx = krc_context_open();
	struct krc_port *port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, port);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	KUNIT_ASSERT_EQ(test, krc_rail_init(&port->rail, NULL), 0);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&ctx->ring, 16), 0);
	ctx->port = port;
	KUNIT_ASSERT_EQ(test, krc_ioc_queue_create(ctx, &create), 0);
	krc_rail_kill(&port->rail);

	connect.queue = create.queue;
	KUNIT_EXPECT_EQ(test, krc_ioc_connect(ctx, &connect), -ENODEV);
	query.queue = create.queue;
	KUNIT_EXPECT_EQ(test, krc_ioc_queue_query(ctx, &query), 0);
	KUNIT_EXPECT_EQ(test, query.state, (u32)KRP_QUEUE_IDLE);
	KUNIT_EXPECT_EQ(test, query.error, 0);
	connect = (struct krp_connect){
		.service = 300, .timeout_ms = 1, .flags = KRP_CONNECT_CREATE, .depth = 8
	};
	KUNIT_EXPECT_EQ(test, krc_ioc_connect(ctx, &connect), -ENODEV);
	KUNIT_EXPECT_EQ(test, ctx->ring.set_aside, 8U);
	KUNIT_EXPECT_EQ(test, krc_ioc_queue_create(ctx, &create), -ENODEV);
	KUNIT_EXPECT_EQ(test, ctx->ring.set_aside, 8U);

	krc_queue_close_all(ctx);
	KUNIT_EXPECT_EQ(test, ctx->ring.set_aside, 0U);
	KUNIT_EXPECT_EQ(test, kref_read(&ctx->ref), 1U);
	ctx->port = NULL;
	krc_context_put(ctx);
	krc_rail_wait_idle(&port->rail);
	krc_rail_fini(&port->rail);
}

/* The port of a context is gone: whatever it asks for, it has to be opened anew. */
static void krc_test_a_context_whose_port_is_gone(struct kunit *test)
{
	struct krp_bind bind = { .service = 300, .timeout_ms = 1 };
	struct krp_record_publish publish = { .service = 300, .timeout_ms = 1 };
	struct krp_record_lookup lookup = { .timeout_ms = 1 };
	struct krp_queue_create create = { .depth = 8 };
	struct krp_wait wait = { .timeout_ms = KRP_WAIT_FOREVER };
	struct krc_context *ctx = krc_context_open();
	struct krc_port *port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, port);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx));
	KUNIT_ASSERT_EQ(test, krc_rail_init(&port->rail, NULL), 0);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&ctx->ring, 16), 0);
	ctx->port = port;
	krc_rail_kill(&port->rail);
	ctx->dead = true; /* as krc_pool_watch.stopped does */

	KUNIT_EXPECT_EQ(test, krc_ioc_queue_create(ctx, &create), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_ioc_bind(ctx, &bind), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_ioc_publish(ctx, &publish), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_ioc_lookup(ctx, &lookup), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_ioc_wait(ctx, &wait), -ENODEV);
	/* nothing is left of any of it */
	bind.flags = KRP_BIND_UNDO;
	KUNIT_EXPECT_EQ(test, krc_ioc_bind(ctx, &bind), -ENOENT);
	KUNIT_EXPECT_EQ(test, kref_read(&ctx->ref), 1U);

	ctx->port = NULL;
	krc_context_put(ctx);
	krc_rail_wait_idle(&port->rail);
	krc_rail_fini(&port->rail);
}

/* A connect of a queue that has failed, by another thread. */
struct krc_test_reconnect {
	struct work_struct work;
	struct krc_context *ctx;
	struct krp_connect connect;
	int err;
};

static void krc_test_reconnect(struct work_struct *work)
{
	struct krc_test_reconnect *r = container_of(work, struct krc_test_reconnect, work);

	r->err = krc_ioc_connect(r->ctx, &r->connect);
}

/* A port on a NIC in memory, and a context on it. */
struct krc_test_world_of_queues {
	struct krc_fake *fake;
	struct krc_port port;
	struct krc_peer peer;
	struct krc_context *ctx;
	struct krc_queue *queue;
};

static struct krc_test_world_of_queues *krc_test_queues_new(struct kunit *test)
{
	struct krc_test_world_of_queues *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct krp_queue_create create = { .depth = 8 };
	struct krp_value value = { .kind = KRP_KIND_DCT };

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->fake = krc_fake_create();
	w->ctx = krc_context_open();
	KUNIT_ASSERT_NOT_NULL(test, w->fake);
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->ctx));
	KUNIT_ASSERT_EQ(test, krc_rail_init(&w->port.rail, NULL), 0);
	w->port.rail.ops = &krc_fake_ops;
	w->port.rail.hw = krc_fake_hw(w->fake);
	w->port.pool = krc_pool_create(&w->port.rail, 1, 16);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, w->port.pool);
	w->peer.users = 2; /* it is not the last one's to free */
	w->peer.remote = krc_remote_create(&w->port.rail, w->port.pool, &value, &w->peer.address);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, w->peer.remote);
	w->peer.standing = krc_remote_standing(w->peer.remote);
	KUNIT_ASSERT_EQ(test, krc_ring_create(&w->ctx->ring, 16), 0);
	w->ctx->port = &w->port;
	KUNIT_ASSERT_EQ(test, krc_ioc_queue_create(w->ctx, &create), 0);
	w->queue = krc_queue_get(w->ctx, create.queue);
	KUNIT_ASSERT_NOT_NULL(test, w->queue);
	w->queue->peer = &w->peer;
	return w;
}

static void krc_test_queues_end(struct krc_test_world_of_queues *w)
{
	krc_queue_close_all(w->ctx);
	krc_queue_put(w->queue);
	w->ctx->port = NULL;
	krc_context_put(w->ctx);
	krc_remote_put(w->peer.remote);
	krc_rail_kill(&w->port.rail);
	krc_pool_stop(w->port.pool);
	krc_rail_wait_idle(&w->port.rail);
	krc_pool_destroy(w->port.pool);
	krc_rail_fini(&w->port.rail);
	krc_fake_destroy(w->fake);
}

/* One thread connects a queue that has failed, another closes it, and may still use its peer. */
static void krc_test_a_close_beside_a_connect(struct kunit *test)
{
	struct krc_test_world_of_queues *w = krc_test_queues_new(test);
	struct krc_queue *queue = w->queue;
	struct krc_test_reconnect r = {
		.ctx = w->ctx,
		.connect = { .queue = queue->id, .service = 300, .timeout_ms = 1 },
	};

	krc_queue_set_state(queue, KRP_QUEUE_ERROR, -EIO);
	atomic_set(&queue->flow.outstanding, 1); /* a request that has not ended */
	INIT_WORK_ONSTACK(&r.work, krc_test_reconnect);
	schedule_work(&r.work);
	krc_test_wait(test, READ_ONCE(queue->flow.failed)); /* it waits for the request */
	krc_queue_set_state(queue, KRC_QUEUE_CLOSING, 0);
	atomic_set(&queue->flow.outstanding, 0);
	wake_up_var(&queue->flow.outstanding);
	flush_work(&r.work);
	destroy_work_on_stack(&r.work);
	KUNIT_EXPECT_EQ(test, r.err, -ECANCELED);
	KUNIT_EXPECT_PTR_EQ(test, queue->peer, &w->peer);
	KUNIT_EXPECT_EQ(test, w->peer.users, 2U);
	krc_test_queues_end(w);
	KUNIT_EXPECT_EQ(test, w->peer.users, 1U);
}

/* Submit a request whose lease is over. */
static void krc_test_submit_lapsed(struct kunit *test, struct krc_test_world_of_queues *w,
				   struct krc_mr *mr)
{
	struct krc_queue *queue = w->queue;
	struct krc_queue_req *qr = &queue->reqs[0];
	LIST_HEAD(reqs);

	kref_init(&mr->ref);
	krc_mr_get(mr, 1);
	KUNIT_EXPECT_EQ(test, krc_ring_reserve(&w->ctx->ring, 1), 1U);
	KUNIT_EXPECT_EQ(test, krc_charge_requests(w->ctx->user, 1), 1U);
	qr->mr = mr;
	qr->token = 0; /* nobody's: no READ is needed to know that */
	qr->req.wr = (struct krc_hw_wr){ .address = &w->peer.address,
					 .length = 8,
					 .opcode = KRP_OP_READ };
	qr->req.leased = true;
	qr->req.until = jiffies - 1;
	list_add_tail(&qr->req.list, &reqs);
	queue->posted = 1;
	KUNIT_EXPECT_EQ(test, krc_flow_submit(&queue->flow, &reqs, NULL), 0);
}

/* It is seen to while a poster has the queue, perhaps for long. */
static void krc_test_a_renewal_beside_a_poster(struct kunit *test)
{
	struct krc_test_world_of_queues *w = krc_test_queues_new(test);
	struct krc_queue *queue = w->queue;
	struct krc_mr mr = {};

	krc_queue_set_state(queue, KRP_QUEUE_CONNECTING, 0);
	krc_queue_set_state(queue, KRP_QUEUE_READY, 0);
	mutex_lock(&queue->post);
	krc_test_submit_lapsed(test, w, &mr);
	krc_test_wait(test, krc_queue_completed(queue) == 1);
	mutex_unlock(&queue->post);
	krc_test_wait(test, krc_queue_completed(queue) == 1);
	KUNIT_EXPECT_EQ(test, queue->error, -EBADR);
	KUNIT_EXPECT_EQ(test, w->ctx->ring.cqes[0].status, -EBADR);
	krc_test_queues_end(w);
	KUNIT_EXPECT_EQ(test, kref_read(&mr.ref), 1U);
}

/* What put the queue into ERROR was told of a request behind it, if of any: it is told of this one. */
static void krc_test_a_renewal_of_a_queue_in_error(struct kunit *test)
{
	struct krc_test_world_of_queues *w = krc_test_queues_new(test);
	struct krc_queue *queue = w->queue;
	struct krc_mr mr = {};

	krc_queue_set_state(queue, KRP_QUEUE_ERROR, -ETIMEDOUT);
	krc_test_submit_lapsed(test, w, &mr);
	krc_test_wait(test, krc_queue_completed(queue) == 1);
	KUNIT_EXPECT_EQ(test, w->ctx->ring.cqes[0].status, -ETIMEDOUT);
	krc_test_queues_end(w);
	KUNIT_EXPECT_EQ(test, kref_read(&mr.ref), 1U);
}

static struct kunit_case krc_queue_cases[] = {
	KUNIT_CASE(krc_test_ring_sizes),
	KUNIT_CASE(krc_test_ring_never_overflows),
	KUNIT_CASE(krc_test_ring_does_not_believe_a_wrong_head),
	KUNIT_CASE(krc_test_ring_forgets_a_head_that_cannot_be),
	KUNIT_CASE(krc_test_ring_is_never_executable),
	KUNIT_CASE(krc_test_queue_states_follow_the_table),
	KUNIT_CASE(krc_test_a_record_in_doubt),
	KUNIT_CASE(krc_test_told_is_in_the_ring),
	KUNIT_CASE(krc_test_an_answer_before_a_time_out),
	KUNIT_CASE(krc_test_what_was_found_is_found_until_erased),
	KUNIT_CASE(krc_test_messages_wait_for_a_queue),
	KUNIT_CASE(krc_test_many_sleepers),
	KUNIT_CASE(krc_test_sleepers_are_bounded),
	KUNIT_CASE(krc_test_calls_beside_many_sleepers),
	KUNIT_CASE(krc_test_connect_on_a_dying_port),
	KUNIT_CASE(krc_test_a_context_whose_port_is_gone),
	KUNIT_CASE(krc_test_a_close_beside_a_connect),
	KUNIT_CASE(krc_test_a_renewal_beside_a_poster),
	KUNIT_CASE(krc_test_a_renewal_of_a_queue_in_error),
	{}
};

static struct kunit_suite krc_queue_suite = {
	.name = "krcore_queue",
	.test_cases = krc_queue_cases,
};
kunit_test_suite(krc_queue_suite);
