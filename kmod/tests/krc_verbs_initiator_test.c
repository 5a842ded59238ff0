// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: an initiator of NICs without DC: which lane it asks for and when, what it posts there, and
 * what it tells of that. Lanes, queue pair and completion queue are the test's, in memory: a
 * lane is given when the test says so, and a request completes when it says so.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>
#include <linux/delay.h>

#include "hw/verbs/verbs.h"
#include "krc_test_wait.h"

#define KRC_TEST_DEPTH 64
#define KRC_TEST_POSTS 512

/**
 * struct krc_test_sent - A request on the lane.
 * @wr_id: its name.
 * @opcode: enum ib_wr_opcode.
 * @flags: IB_SEND_*.
 * @remote_addr: of it.
 */
struct krc_test_sent {
	u64 wr_id;
	u32 opcode;
	u32 flags;
	u64 remote_addr;
};

/**
 * struct krc_test_verbs - A device, its lanes, and an initiator.
 * @test: test.
 * @v: device of the provider.
 * @ibdev: its functions.
 * @target: of its port.
 * @cq: of the target.
 * @qp: of whatever lane.
 * @ini: initiator.
 * @holder: that waits for a lane, or has it; NULL: none.
 * @turn: of its hold.
 * @peer: whom it wants to reach, by the last byte of the GID.
 * @holds: lanes it asked for.
 * @releases: lanes it gave back.
 * @breaks: of these, broken ones.
 * @given: @holder has the lane.
 * @at_once: who asks gets the lane before hold() returns.
 * @wish: when the lane is to be given back.
 * @refused: errno of a post.
 * @bytes: of a request; 0: 8.
 * @opcode: of a request.
 * @sent: requests on lanes.
 * @sent_nr: how many.
 * @wcs: completions not taken.
 * @wcs_nr: how many.
 * @payer: on whose account it posts.
 * @told: upcalls.
 */
struct krc_test_verbs {
	struct kunit *test;
	struct krc_verbs v;
	struct ib_device *ibdev;
	struct krc_verbs_target target;
	struct ib_cq cq;
	struct ib_qp qp;
	struct krc_hw_initiator *ini;
	struct krc_lane_holder *holder;
	u32 turn;
	u8 peer;
	u32 holds;
	u32 releases;
	u32 breaks;
	bool given;
	bool at_once;
	enum krc_lane_wish wish;
	int refused;
	u32 bytes;
	u8 opcode;
	struct krc_test_sent sent[KRC_TEST_POSTS];
	u32 sent_nr;
	struct ib_wc wcs[KRC_TEST_POSTS];
	u32 wcs_nr;
	const void *payer;
	u32 told;
};

static struct krc_test_verbs *krc_test_world; /* the device's functions have no other way to it */

/* ---- the device */

static int krc_test_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_send_wr **bad_wr)
{
	struct krc_test_verbs *w = krc_test_world;
	bool atomic = wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
		      wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;

	if (w->refused)
		return w->refused;
	KUNIT_ASSERT_LT(w->test, w->sent_nr, (u32)KRC_TEST_POSTS);
	KUNIT_EXPECT_TRUE(w->test, w->given);
	w->sent[w->sent_nr++] = (struct krc_test_sent){
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.remote_addr = atomic ? atomic_wr(wr)->remote_addr : rdma_wr(wr)->remote_addr,
	};
	return 0;
}

static int krc_test_poll_cq(struct ib_cq *cq, int max, struct ib_wc *wc)
{
	struct krc_test_verbs *w = krc_test_world;
	u32 n = min_t(u32, max, w->wcs_nr);

	memcpy(wc, w->wcs, n * sizeof(*wc));
	w->wcs_nr -= n;
	memmove(w->wcs, w->wcs + n, w->wcs_nr * sizeof(*wc));
	return n;
}

/* The @nth request that was ever sent completes. */
static void krc_test_end(struct krc_test_verbs *w, u32 nth, enum ib_wc_status status)
{
	w->wcs[w->wcs_nr++] =
		(struct ib_wc){ .wr_id = w->sent[nth].wr_id, .status = status, .qp = &w->qp };
}

/* ---- lanes */

static void krc_test_hold(struct krc_lanes *lanes, const struct krc_lane_peer *peer, u32 index,
			  u32 turn, struct krc_lane_holder *holder)
{
	struct krc_test_verbs *w = krc_test_world;

	KUNIT_EXPECT_NULL(w->test, w->holder);
	w->holder = holder;
	w->turn = turn;
	w->peer = peer->gid[KRP_GID_BYTES - 1];
	w->holds++;
	if (!w->at_once)
		return;
	w->given = true;
	holder->qp = &w->qp;
	holder->ready(holder, turn);
}

static void krc_test_release(struct krc_lanes *lanes, struct krc_lane_holder *holder, bool broken)
{
	struct krc_test_verbs *w = krc_test_world;

	w->releases += !!w->holder;
	w->breaks += w->holder && broken;
	w->holder = NULL;
	w->given = false;
}

static enum krc_lane_wish krc_test_wanted(struct krc_lanes *lanes,
					  const struct krc_lane_holder *holder)
{
	return krc_test_world->wish;
}

static void krc_test_sync(struct krc_lanes *lanes, struct krc_lane_holder *holder)
{
}

static const struct krc_verbs_lane_calls krc_test_calls = {
	.hold = krc_test_hold,
	.release = krc_test_release,
	.wanted = krc_test_wanted,
	.sync = krc_test_sync,
};

static void krc_test_give(struct krc_test_verbs *w)
{
	KUNIT_ASSERT_NOT_NULL(w->test, w->holder);
	w->given = true;
	w->holder->qp = &w->qp;
	w->holder->ready(w->holder, w->turn);
}

static void krc_test_lose(struct krc_test_verbs *w, int err)
{
	struct krc_lane_holder *holder = w->holder;

	KUNIT_ASSERT_NOT_NULL(w->test, holder);
	if (!w->given)
		w->holder = NULL;
	holder->lost(holder, w->turn, err);
}

/* ---- the world */

static void krc_test_completion(void *owner)
{
	((struct krc_test_verbs *)owner)->told++;
}

static const void *krc_test_payer(void *owner)
{
	return ((struct krc_test_verbs *)owner)->payer;
}

static const struct krc_hw_events krc_test_events = { .completion = krc_test_completion,
						      .payer = krc_test_payer };

static struct krc_hw_initiator *krc_test_initiator(struct krc_test_verbs *w, u32 port, u32 depth,
						   enum krc_hw_use use)
{
	const struct krc_hw_send send = { .depth = depth, .use = use, .owner = w };

	return krc_verbs_initiator_create((struct krc_hw *)&w->v, port, 0, &send);
}

static struct krc_test_verbs *krc_test_make(struct kunit *test, u32 depth)
{
	struct krc_test_verbs *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->ibdev = kunit_kzalloc(test, sizeof(*w->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->ibdev);
	krc_test_world = w;
	w->test = test;
	w->opcode = KRP_OP_READ;
	w->ibdev->ops.post_send = krc_test_post_send;
	w->ibdev->ops.poll_cq = krc_test_poll_cq;
	w->ibdev->phys_port_cnt = 1;
	w->cq.device = w->ibdev;
	w->cq.cqe = 2 * KRC_VERBS_SEND_DEPTH;
	w->qp.device = w->ibdev;
	w->v.ibdev = w->ibdev;
	w->v.events = &krc_test_events;
	w->v.attr = (struct krc_hw_attr){ .initiator_depth_max = KRC_TEST_DEPTH,
					  .length_max = 1 << 20,
					  .atomics = true };
	w->v.ports[1].target = &w->target;
	w->target.hw = &w->v;
	w->target.port = 1;
	w->target.calls = &krc_test_calls;
	w->target.send_cq = &w->cq;
	spin_lock_init(&w->target.cq_lock);
	xa_init_flags(&w->target.initiators, XA_FLAGS_ALLOC1);
	w->ini = krc_test_initiator(w, 1, depth, KRC_HW_DATA);
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->ini));
	return w;
}

static int krc_test_init(struct kunit *test)
{
	test->priv = krc_test_make(test, KRC_TEST_DEPTH);
	return 0;
}

static void krc_test_exit(struct kunit *test)
{
	struct krc_test_verbs *w = krc_test_world;

	if (!w)
		return;
	krc_verbs_initiator_destroy(w->ini);
	KUNIT_EXPECT_NULL(test, w->holder);
	KUNIT_EXPECT_TRUE(test, xa_empty(&w->target.initiators));
	xa_destroy(&w->target.initiators);
	krc_test_world = NULL;
}

/* Append a request for a peer. */
static int krc_test_post(struct krc_test_verbs *w, u8 peer, u64 cookie, bool unsignaled)
{
	struct krc_lane_peer to = { .generation = cpu_to_le64(7) };
	struct krc_hw_wr wr = { .cookie = cookie,
				.address = (struct krc_hw_address *)&to,
				.remote_addr = cookie,
				.length = w->bytes ?: 8,
				.opcode = w->opcode,
				.unsignaled = unsignaled };

	to.gid[KRP_GID_BYTES - 1] = peer;
	return krc_verbs_post(w->ini, &wr);
}

/* Append @nr of them, with cookies from @cookie on, and ring. */
static void krc_test_go(struct krc_test_verbs *w, u8 peer, u64 cookie, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(w->test, krc_test_post(w, peer, cookie + i, false), 0);
	krc_verbs_ring(w->ini);
}

/* The next outcome is this one. */
static void krc_test_expect(struct krc_test_verbs *w, u64 cookie, enum krc_fault fault)
{
	struct krc_wc wc = {};

	KUNIT_ASSERT_EQ(w->test, krc_verbs_poll(w->ini, &wc, 1), 1);
	KUNIT_EXPECT_EQ(w->test, wc.cookie, cookie);
	KUNIT_EXPECT_EQ(w->test, (u32)wc.fault, (u32)fault);
}

static void krc_test_expect_none(struct krc_test_verbs *w)
{
	struct krc_wc wc;

	KUNIT_EXPECT_EQ(w->test, krc_verbs_poll(w->ini, &wc, 1), 0);
}

/* ---- cases */

/* The second target is not begun before all to the first have completed. */
static void krc_test_one_target_at_a_time(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	krc_test_go(w, 1, 10, 2);
	krc_test_go(w, 2, 20, 1);
	KUNIT_EXPECT_EQ(test, w->holds, 1U);
	KUNIT_EXPECT_EQ(test, w->peer, 1);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 0U);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 2U);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->holds, 1U);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_test_expect(w, 11, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->breaks, 0U);
	KUNIT_EXPECT_EQ(test, w->holds, 2U);
	KUNIT_EXPECT_EQ(test, w->peer, 2);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 3U);
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect(w, 20, KRC_FAULT_NONE);
	krc_test_expect_none(w);
	KUNIT_EXPECT_EQ(test, w->releases, 2U); /* nobody keeps a lane that needs none */
	KUNIT_EXPECT_NULL(test, w->holder);
}

/* A lane is made on the account of the request that needs it, not of those that are posted later. */
static void krc_test_whose_account(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->payer = test;
	krc_test_go(w, 1, 10, 1);
	w->payer = w;
	krc_test_go(w, 2, 20, 1);
	KUNIT_EXPECT_PTR_EQ(test, w->holder->payer, (const void *)test);
	krc_test_give(w);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->peer, 2);
	KUNIT_EXPECT_PTR_EQ(test, w->holder->payer, (const void *)w);
}

/* A lane that is given before the call returns, for many targets: nothing nests or is forgotten. */
static void krc_test_lanes_at_once(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	u32 i;

	w->at_once = true;
	for (i = 0; i < KRC_TEST_DEPTH; i++)
		KUNIT_ASSERT_EQ(test, krc_test_post(w, i % 3, i, false), 0);
	KUNIT_EXPECT_EQ(test, krc_test_post(w, 1, 99, false), -ENOSPC);
	krc_verbs_ring(w->ini);
	for (i = 0; i < KRC_TEST_DEPTH; i++) {
		KUNIT_ASSERT_EQ(test, w->sent_nr, i + 1);
		KUNIT_EXPECT_EQ(test, w->sent[i].remote_addr, (u64)i);
		krc_test_end(w, i, IB_WC_SUCCESS);
		krc_test_expect(w, i, KRC_FAULT_NONE);
	}
	KUNIT_EXPECT_EQ(test, w->holds, (u32)KRC_TEST_DEPTH);
	KUNIT_EXPECT_EQ(test, w->releases, (u32)KRC_TEST_DEPTH);
}

/* Unsignaled ones are told by the next that is told; the last of what is rung is signaled. */
static void krc_test_unsignaled(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	u32 i;

	w->at_once = true;
	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_EQ(test, krc_test_post(w, 1, i, i != 1), 0);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 0U); /* not before the doorbell */
	krc_verbs_ring(w->ini);
	KUNIT_ASSERT_EQ(test, w->sent_nr, 5U);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, !!(w->sent[i].flags & IB_SEND_SIGNALED), i == 1 || i == 4);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_test_end(w, 4, IB_WC_SUCCESS);
	krc_test_expect(w, 1, KRC_FAULT_NONE);
	krc_test_expect(w, 4, KRC_FAULT_NONE);
	krc_test_expect_none(w);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	for (i = 5; i < 7; i++)
		KUNIT_ASSERT_EQ(test, krc_test_post(w, 1, i, i == 5), 0);
	krc_verbs_ring(w->ini);
	krc_test_end(w, 6, IB_WC_WR_FLUSH_ERR); /* 5 has no entry, and was not done */
	krc_test_expect(w, 5, KRC_FAULT_LOST);
	krc_test_expect(w, 6, KRC_FAULT_FLUSHED);
}

/* The last to a target is signaled, or nobody knew when the next can begin; it is not told for that. */
static void krc_test_unsignaled_before_another_target(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	u32 i;

	w->at_once = true;
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, krc_test_post(w, 1, i, true), 0);
	krc_test_go(w, 2, 3, 1);
	KUNIT_ASSERT_EQ(test, w->sent_nr, 3U);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, !!(w->sent[i].flags & IB_SEND_SIGNALED), i == 2);
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect_none(w);
	KUNIT_ASSERT_EQ(test, w->sent_nr, 4U);
	KUNIT_EXPECT_EQ(test, w->peer, 2);
	krc_test_end(w, 3, IB_WC_SUCCESS);
	krc_test_expect(w, 3, KRC_FAULT_NONE);
	krc_test_expect_none(w);
}

/* Behind a failure nothing is executed until it was halted and restarted. */
static void krc_test_a_failure(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	krc_test_go(w, 1, 10, 3);
	krc_test_go(w, 2, 20, 1);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_end(w, 1, IB_WC_REM_ACCESS_ERR);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	krc_test_expect(w, 11, KRC_FAULT_ACCESS);
	krc_test_expect_none(w); /* the device may still write to the memory of the third */
	krc_test_end(w, 2, IB_WC_WR_FLUSH_ERR);
	krc_test_expect(w, 12, KRC_FAULT_FLUSHED);
	krc_test_expect(w, 20, KRC_FAULT_FLUSHED);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
	krc_test_go(w, 2, 30, 1);
	krc_test_expect(w, 30, KRC_FAULT_FLUSHED);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 3U);
	KUNIT_EXPECT_EQ(test, w->holds, 1U);
	KUNIT_EXPECT_EQ(test, krc_verbs_initiator_halt(w->ini), 0);
	KUNIT_EXPECT_EQ(test, krc_test_post(w, 2, 40, false), -EIO);
	KUNIT_EXPECT_EQ(test, krc_verbs_initiator_restart(w->ini), 0);
	krc_test_go(w, 2, 50, 1);
	KUNIT_EXPECT_EQ(test, w->holds, 2U);
	krc_test_end(w, 3, IB_WC_SUCCESS);
	krc_test_expect(w, 50, KRC_FAULT_NONE);
	krc_test_expect_none(w);
}

static const struct {
	enum ib_wc_status status;
	enum krc_fault fault;
} krc_test_faults[] = {
	{ IB_WC_LOC_QP_OP_ERR, KRC_FAULT_LOST },
	{ IB_WC_LOC_PROT_ERR, KRC_FAULT_LOCAL },
	{ IB_WC_LOC_LEN_ERR, KRC_FAULT_LOCAL },
	{ IB_WC_REM_INV_REQ_ERR, KRC_FAULT_ACCESS },
	{ IB_WC_REM_OP_ERR, KRC_FAULT_ACCESS },
	{ IB_WC_RETRY_EXC_ERR, KRC_FAULT_TIMEOUT },
	{ IB_WC_RNR_RETRY_EXC_ERR, KRC_FAULT_LOST }, /* it needs no buffer */
	{ IB_WC_REM_ABORT_ERR, KRC_FAULT_TARGET },
	{ IB_WC_FATAL_ERR, KRC_FAULT_FATAL },
	{ IB_WC_GENERAL_ERR, KRC_FAULT_FATAL },
	{ IB_WC_INV_EECN_ERR, KRC_FAULT_FATAL },
	/* the lane was lost under it: whether it was executed is unknown */
	{ IB_WC_WR_FLUSH_ERR, KRC_FAULT_LOST },
};

static void krc_test_what_statuses_mean(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	u32 i;

	w->at_once = true;
	for (i = 0; i < ARRAY_SIZE(krc_test_faults); i++) {
		krc_test_go(w, 1, i, 1);
		krc_test_end(w, i, krc_test_faults[i].status);
		krc_test_expect(w, i, krc_test_faults[i].fault);
		krc_verbs_initiator_halt(w->ini);
		krc_verbs_initiator_restart(w->ini);
	}
	w->opcode = KRC_HW_SEND;
	krc_test_go(w, 1, i, 1);
	krc_test_end(w, i, IB_WC_RNR_RETRY_EXC_ERR);
	krc_test_expect(w, i, KRC_FAULT_BUSY);
}

/* There is no lane: the first request fails, the rest is flushed, as behind any failure. */
static void krc_test_no_lane(struct kunit *test)
{
	static const struct {
		int err;
		enum krc_fault fault;
	} why[] = { { -ETIMEDOUT, KRC_FAULT_TIMEOUT },
		    { -ESTALE, KRC_FAULT_TARGET },
		    { -ESHUTDOWN, KRC_FAULT_FATAL } };
	struct krc_test_verbs *w = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		krc_test_go(w, 1, 10, 2);
		krc_test_lose(w, why[i].err);
		krc_test_expect(w, 10, why[i].fault);
		krc_test_expect(w, 11, KRC_FAULT_FLUSHED);
		KUNIT_EXPECT_NULL(test, w->holder);
		krc_verbs_initiator_halt(w->ini);
		krc_verbs_initiator_restart(w->ini);
	}
	KUNIT_EXPECT_EQ(test, w->sent_nr, 0U);
}

/* There is no room for a lane: it asks again, and gives up in the end. */
static void krc_test_no_room(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	struct krc_wc wc;
	u32 rounds = 0;

	krc_test_go(w, 1, 10, 1);
	while (!krc_verbs_poll(w->ini, &wc, 1)) {
		krc_test_until_late(READ_ONCE(w->holder));
		KUNIT_ASSERT_LT(test, rounds++, 100U);
		krc_test_lose(w, rounds % 2 ? -EBUSY : -ECONNRESET);
	}
	KUNIT_EXPECT_EQ(test, wc.cookie, 10ULL);
	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_TIMEOUT);
	KUNIT_EXPECT_GT(test, rounds, 10U);
	/* that is nothing to other targets, nor to the same one later */
	for (rounds = 0; rounds < 2; rounds++) {
		krc_verbs_initiator_halt(w->ini);
		krc_verbs_initiator_restart(w->ini);
		krc_test_go(w, 1 + rounds, 20, 1);
		krc_test_lose(w, -EBUSY);
		krc_test_expect_none(w);
	}
}

/* A peer that never says yes or no keeps other targets waiting for a bounded time. */
static void krc_test_no_answer(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	unsigned long began = jiffies;
	struct krc_wc wc = {};
	u32 waits;

	krc_test_go(w, 1, 10, 1);
	krc_test_go(w, 2, 20, 1);
	for (waits = 0; !krc_verbs_poll(w->ini, &wc, 1) && waits < 1000; waits++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test,
			  time_after_eq(jiffies, began + msecs_to_jiffies(KRC_VERBS_TIMEOUT_MS)));
	KUNIT_EXPECT_EQ(test, wc.cookie, 10ULL);
	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_TIMEOUT);
	krc_test_expect(w, 20, KRC_FAULT_FLUSHED);
	KUNIT_EXPECT_NULL(test, w->holder);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->breaks, 0U);
}

/* A lane is lost with requests on it: the oldest is in doubt, what was not sent is flushed. */
static void krc_test_a_lane_is_lost(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	krc_test_go(w, 1, 10, 2);
	krc_test_lose(w, -ECONNRESET);
	krc_test_go(w, 1, 12, 1);
	krc_test_expect_none(w); /* the device may still write to their memory */
	KUNIT_EXPECT_EQ(test, w->sent_nr, 2U);
	krc_test_end(w, 0, IB_WC_WR_FLUSH_ERR);
	krc_test_end(w, 1, IB_WC_WR_FLUSH_ERR);
	krc_test_expect(w, 10, KRC_FAULT_LOST);
	krc_test_expect(w, 11, KRC_FAULT_FLUSHED);
	krc_test_expect(w, 12, KRC_FAULT_FLUSHED);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
}

/* A lane is lost whose requests have all succeeded: another one is asked for. */
static void krc_test_a_lane_is_lost_in_time(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	krc_test_go(w, 1, 10, 1);
	krc_test_go(w, 2, 20, 1);
	krc_test_lose(w, -ECONNRESET);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	krc_test_until_late(READ_ONCE(w->sent_nr) >= 2);
	KUNIT_ASSERT_EQ(test, w->sent_nr, 2U);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_test_expect(w, 20, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
	/* and with nothing more to do it asks for none */
	krc_test_go(w, 1, 30, 1);
	krc_test_lose(w, -ECONNRESET);
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect(w, 30, KRC_FAULT_NONE);
	KUNIT_EXPECT_NULL(test, w->holder);
	krc_test_go(w, 1, 40, 1);
	krc_test_end(w, 3, IB_WC_SUCCESS);
	krc_test_expect(w, 40, KRC_FAULT_NONE);
}

/* Upcalls that come late, when the lane was given back and another one is asked for, are nothing. */
static void krc_test_late_upcalls(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	struct krc_lane_holder *holder;
	u32 first;

	krc_test_go(w, 1, 10, 1);
	krc_test_go(w, 2, 20, 1);
	first = w->turn;
	krc_test_give(w);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->peer, 2);
	holder = w->holder;
	holder->lost(holder, first, -ECONNRESET);
	holder->lost(holder, first, -ESHUTDOWN);
	holder->ready(holder, first);
	krc_test_expect_none(w);
	KUNIT_EXPECT_EQ(test, w->holds, 2U);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 1U);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 2U);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_test_expect(w, 20, KRC_FAULT_NONE);
	/* nor is one of the lane that was given back last */
	holder->lost(holder, w->turn, -ESTALE);
	krc_test_go(w, 2, 30, 1);
	KUNIT_EXPECT_EQ(test, w->holds, 3U);
	krc_test_give(w);
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect(w, 30, KRC_FAULT_NONE);
}

/* The lane takes no request: what is sent is waited for, then another lane is asked for. */
static void krc_test_a_post_is_refused(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	w->refused = -EINVAL;
	krc_test_go(w, 1, 10, 1);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
	w->refused = 0;
	krc_test_until_late(READ_ONCE(w->sent_nr));
	KUNIT_ASSERT_EQ(test, w->sent_nr, 1U);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
}

/* No lane takes a request: it is at fault itself, which is found with a few lanes. */
static void krc_test_a_request_is_refused(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	struct krc_wc wc = {};

	w->at_once = true;
	w->refused = -EINVAL;
	krc_test_go(w, 1, 10, 2);
	krc_test_until_late(krc_verbs_poll(w->ini, &wc, 1));
	KUNIT_EXPECT_EQ(test, wc.cookie, 10ULL);
	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_LOCAL);
	krc_test_expect(w, 11, KRC_FAULT_FLUSHED);
	KUNIT_EXPECT_EQ(test, w->holds, 3U);
	KUNIT_EXPECT_EQ(test, w->breaks, 3U);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 0U);
}

/* What has been executed until a halt is told, what is flushed by it is not; nothing comes later. */
static void krc_test_a_halt(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	krc_test_go(w, 1, 10, 3);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_end(w, 1, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, krc_verbs_initiator_halt(w->ini), 0);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
	KUNIT_EXPECT_TRUE(test, krc_verbs_initiator_began(w->ini));
	krc_test_end(w, 2, IB_WC_SUCCESS); /* late */
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	krc_test_expect_none(w);
	KUNIT_EXPECT_EQ(test, krc_verbs_initiator_restart(w->ini), 0);
	krc_test_go(w, 1, 20, 3);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 6U);
	krc_test_end(w, 1, IB_WC_WR_FLUSH_ERR); /* of before: of no request that there is */
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect_none(w);
	krc_test_end(w, 3, IB_WC_SUCCESS);
	krc_test_expect(w, 20, KRC_FAULT_NONE);
	krc_test_end(w, 5, IB_WC_SUCCESS);
	krc_test_expect(w, 21, KRC_FAULT_NONE);
	krc_test_expect(w, 22, KRC_FAULT_NONE);
}

/* A halt while it waits for a lane, with requests that were never sent. */
static void krc_test_a_halt_without_lane(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	krc_test_go(w, 1, 10, 1);
	krc_verbs_initiator_halt(w->ini);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->breaks, 0U);
	KUNIT_EXPECT_FALSE(test, krc_verbs_initiator_began(w->ini));
	krc_test_expect_none(w);
	krc_verbs_initiator_restart(w->ini);
	krc_test_expect_none(w);
	KUNIT_EXPECT_EQ(test, w->holds, 1U);
}

/* A halt right behind a failure, before the lane was given back: nobody else gets that lane. */
static void krc_test_a_halt_behind_a_failure(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	struct krc_verbs_initiator *ini = krc_verbs_initiator_of(w->ini);
	struct ib_wc wc = { .status = IB_WC_RETRY_EXC_ERR };

	w->at_once = true;
	krc_test_go(w, 1, 10, 1);
	krc_verbs_completed(ini, ini->done, &wc);
	KUNIT_EXPECT_EQ(test, w->releases, 0U);
	krc_verbs_initiator_halt(w->ini);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->breaks, 1U);
	krc_test_expect(w, 10, KRC_FAULT_TIMEOUT);
}

/* If others wait for the lane it is given back, and asked for again, every so many requests. */
static void krc_test_turns(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->wish = KRC_LANE_WISH_SOON;
	krc_test_go(w, 1, 0, KRC_VERBS_QUOTA + 2);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, KRC_VERBS_QUOTA);
	KUNIT_EXPECT_TRUE(test, w->sent[KRC_VERBS_QUOTA - 1].flags & IB_SEND_SIGNALED);
	krc_test_end(w, KRC_VERBS_QUOTA - 2, IB_WC_SUCCESS);
	krc_test_expect(w, 0, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->sent_nr, KRC_VERBS_QUOTA);
	KUNIT_EXPECT_EQ(test, w->releases, 0U);
	krc_test_end(w, KRC_VERBS_QUOTA - 1, IB_WC_SUCCESS);
	krc_test_expect(w, 1, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->holds, 2U);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, KRC_VERBS_QUOTA + 2);
}

/* The lane ends: nothing more is sent there, and it is given back when what was sent has completed. */
static void krc_test_a_lane_that_ends(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	krc_test_go(w, 1, 10, 2);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 2U);
	w->wish = KRC_LANE_WISH_NOW;
	krc_test_go(w, 1, 12, 1);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->releases, 0U);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_test_expect(w, 11, KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 2U);
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	KUNIT_EXPECT_EQ(test, w->breaks, 0U);
	KUNIT_EXPECT_EQ(test, w->holds, 2U);
	w->wish = KRC_LANE_WISH_NONE;
	krc_test_give(w);
	krc_test_end(w, 2, IB_WC_SUCCESS);
	krc_test_expect(w, 12, KRC_FAULT_NONE);
}

/* Large requests have their turn by bytes. */
static void krc_test_turns_of_large_ones(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	u32 i;

	w->wish = KRC_LANE_WISH_SOON;
	w->bytes = KRC_VERBS_QUOTA_BYTES / 4;
	krc_test_go(w, 1, 0, 6);
	krc_test_give(w);
	KUNIT_ASSERT_EQ(test, w->sent_nr, 4U);
	for (i = 0; i < 4; i++) {
		krc_test_end(w, i, IB_WC_SUCCESS);
		krc_test_expect(w, i, KRC_FAULT_NONE);
	}
	KUNIT_EXPECT_EQ(test, w->releases, 1U);
	krc_test_give(w);
	KUNIT_EXPECT_EQ(test, w->sent_nr, 6U);
}

/* An upcall for each request of one, when there is something; none without. */
static void krc_test_upcalls(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;

	w->at_once = true;
	krc_test_go(w, 1, 10, 2);
	krc_test_end(w, 0, IB_WC_SUCCESS);
	krc_verbs_cq_flush(&w->target);
	KUNIT_EXPECT_EQ(test, w->told, 0U);
	krc_test_expect(w, 10, KRC_FAULT_NONE);
	krc_verbs_arm(w->ini);
	KUNIT_EXPECT_EQ(test, w->told, 0U);
	krc_test_end(w, 1, IB_WC_SUCCESS);
	krc_verbs_cq_flush(&w->target);
	KUNIT_EXPECT_EQ(test, w->told, 1U);
	krc_verbs_cq_flush(&w->target);
	KUNIT_EXPECT_EQ(test, w->told, 1U);
	krc_test_expect(w, 11, KRC_FAULT_NONE);
	/* also of what never was on a lane */
	w->at_once = false;
	krc_test_go(w, 1, 20, 1);
	krc_verbs_arm(w->ini);
	krc_test_lose(w, -ESTALE);
	KUNIT_EXPECT_EQ(test, w->told, 2U);
}

/* What the device is asked for, and what never comes to it. */
static void krc_test_requests(struct kunit *test)
{
	static const struct {
		u8 opcode;
		enum ib_wr_opcode is;
	} ops[] = { { KRP_OP_READ, IB_WR_RDMA_READ },
		    { KRP_OP_WRITE, IB_WR_RDMA_WRITE },
		    { KRP_OP_CMP_SWAP, IB_WR_ATOMIC_CMP_AND_SWP },
		    { KRP_OP_FETCH_ADD, IB_WR_ATOMIC_FETCH_AND_ADD },
		    { KRC_HW_SEND, IB_WR_SEND } };
	struct krc_test_verbs *w = test->priv;
	struct krc_lane_peer to = { .generation = cpu_to_le64(7) };
	struct krc_hw_wr wr = { .address = (struct krc_hw_address *)&to, .length = 8 }, bad;
	u32 i;

	w->at_once = true;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		wr.opcode = ops[i].opcode;
		wr.fence = i % 2;
		KUNIT_ASSERT_EQ(test, krc_verbs_post(w->ini, &wr), 0);
		krc_verbs_ring(w->ini);
		KUNIT_ASSERT_EQ(test, w->sent_nr, i + 1);
		KUNIT_EXPECT_EQ(test, w->sent[i].opcode, (u32)ops[i].is);
		KUNIT_EXPECT_EQ(test, !!(w->sent[i].flags & IB_SEND_FENCE), i % 2);
	}
	bad = wr;
	bad.opcode = KRP_OP_FETCH_ADD + 1;
	KUNIT_EXPECT_EQ(test, krc_verbs_post(w->ini, &bad), -EINVAL);
	bad = wr;
	bad.length = 0;
	KUNIT_EXPECT_EQ(test, krc_verbs_post(w->ini, &bad), -EINVAL);
	bad.length = (1 << 20) + 1;
	KUNIT_EXPECT_EQ(test, krc_verbs_post(w->ini, &bad), -EINVAL);
	bad = wr;
	bad.opcode = KRP_OP_CMP_SWAP;
	bad.length = 16;
	KUNIT_EXPECT_EQ(test, krc_verbs_post(w->ini, &bad), -EINVAL);
	bad.length = 8;
	bad.remote_addr = 4;
	KUNIT_EXPECT_EQ(test, krc_verbs_post(w->ini, &bad), -EINVAL);
}

/* What an initiator is for says which lane it has made, however deep it is. */
static void krc_test_apart(struct kunit *test)
{
	static const u32 depths[] = { 1, 16, KRC_TEST_DEPTH };
	struct krc_test_verbs *w = test->priv;
	struct krc_hw_initiator *ini;
	enum krc_hw_use use;
	u32 i, index;

	for (use = KRC_HW_DATA; use <= KRC_HW_MESSAGES; use++) {
		for (i = 0; i < ARRAY_SIZE(depths); i++) {
			ini = krc_test_initiator(w, 1, depths[i], use);
			KUNIT_ASSERT_FALSE(test, IS_ERR(ini));
			index = krc_verbs_initiator_of(ini)->index;
			KUNIT_EXPECT_EQ(test, index == KRC_LANE_MESSAGES, use == KRC_HW_MESSAGES);
			KUNIT_EXPECT_EQ(test, index == KRC_LANE_PROBES, use == KRC_HW_PROBE);
			KUNIT_EXPECT_LT(test, index, (u32)KRP_LANE_INDEXES);
			krc_verbs_initiator_destroy(ini);
		}
	}
}

static void krc_test_as_many_as_the_queue_has_room_for(struct kunit *test)
{
	struct krc_test_verbs *w = test->priv;
	struct krc_hw_initiator *second, *bad;

	second = krc_test_initiator(w, 1, 16, KRC_HW_DATA);
	KUNIT_ASSERT_FALSE(test, IS_ERR(second));
	bad = krc_test_initiator(w, 1, 1, KRC_HW_DATA);
	KUNIT_EXPECT_EQ(test, PTR_ERR(bad), -ENOSPC);
	krc_verbs_initiator_destroy(second);
	second = krc_test_initiator(w, 1, 1, KRC_HW_DATA);
	KUNIT_ASSERT_FALSE(test, IS_ERR(second));
	krc_verbs_initiator_destroy(second);
	bad = krc_test_initiator(w, 1, 0, KRC_HW_DATA);
	KUNIT_EXPECT_EQ(test, PTR_ERR(bad), -EINVAL);
	bad = krc_test_initiator(w, 1, KRC_TEST_DEPTH + 1, KRC_HW_DATA);
	KUNIT_EXPECT_EQ(test, PTR_ERR(bad), -EINVAL);
	bad = krc_test_initiator(w, 2, 1, KRC_HW_DATA);
	KUNIT_EXPECT_EQ(test, PTR_ERR(bad), -EINVAL);
}

/* ---- names of keys */

/* A name recurs only after all others of its index, or when the index has rested. */
static void krc_test_names_rest(struct kunit *test)
{
	time64_t now_s = 1000;
	struct krc_rests r;
	u32 i, key;

	krc_rests_init(&r);
	KUNIT_EXPECT_EQ(test, krc_rests_variant(&r, 5, now_s, 0x77), 0x77);
	key = 5 << 8 | 0x77;
	for (i = 0; i < 256; i++) {
		KUNIT_ASSERT_EQ(test, krc_rests_begin(&r, key), 0);
		krc_rests_end(&r, key, true, now_s);
		key = 5 << 8 | krc_rests_variant(&r, 5, now_s, 0x11);
		KUNIT_ASSERT_EQ(test, key & 0xff, (0x77 + i + 1) & 0xff);
	}
	/* nobody knew it: it may be that again */
	KUNIT_ASSERT_EQ(test, krc_rests_begin(&r, key), 0);
	krc_rests_end(&r, key, false, now_s);
	KUNIT_EXPECT_EQ(test, krc_rests_variant(&r, 5, now_s, 0x11), key & 0xff);
	/* a key that was not recorded is no matter */
	krc_rests_end(&r, 6 << 8, true, now_s);
	KUNIT_EXPECT_EQ(test, krc_rests_variant(&r, 6, now_s, 0x11), 0x11);
	KUNIT_EXPECT_EQ(test, krc_rests_variant(&r, 5, now_s + 1000000, 0x11), 0x11);
	krc_rests_fini(&r);
}

static struct kunit_case krc_verbs_initiator_cases[] = {
	KUNIT_CASE(krc_test_one_target_at_a_time),
	KUNIT_CASE(krc_test_whose_account),
	KUNIT_CASE(krc_test_lanes_at_once),
	KUNIT_CASE(krc_test_unsignaled),
	KUNIT_CASE(krc_test_unsignaled_before_another_target),
	KUNIT_CASE(krc_test_a_failure),
	KUNIT_CASE(krc_test_what_statuses_mean),
	KUNIT_CASE(krc_test_no_lane),
	KUNIT_CASE(krc_test_no_room),
	KUNIT_CASE(krc_test_no_answer),
	KUNIT_CASE(krc_test_a_lane_is_lost),
	KUNIT_CASE(krc_test_a_lane_is_lost_in_time),
	KUNIT_CASE(krc_test_a_post_is_refused),
	KUNIT_CASE(krc_test_a_request_is_refused),
	KUNIT_CASE(krc_test_late_upcalls),
	KUNIT_CASE(krc_test_a_halt),
	KUNIT_CASE(krc_test_a_halt_without_lane),
	KUNIT_CASE(krc_test_a_halt_behind_a_failure),
	KUNIT_CASE(krc_test_turns),
	KUNIT_CASE(krc_test_a_lane_that_ends),
	KUNIT_CASE(krc_test_turns_of_large_ones),
	KUNIT_CASE(krc_test_upcalls),
	KUNIT_CASE(krc_test_requests),
	KUNIT_CASE(krc_test_apart),
	KUNIT_CASE(krc_test_as_many_as_the_queue_has_room_for),
	KUNIT_CASE(krc_test_names_rest),
	{}
};

static struct kunit_suite krc_verbs_initiator_suite = {
	.name = "krcore_verbs_initiator",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_verbs_initiator_cases,
};
kunit_test_suites(&krc_verbs_initiator_suite);
