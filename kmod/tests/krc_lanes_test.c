// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: who holds a lane: in which order, what becomes of those who wait, that upcalls do not nest,
 * and that a lane that somebody has broken goes to nobody.
 *
 * There is no device: the machine of each lane has been made, and its queue pair is never posted to.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "hw/verbs/lanes_priv.h"

#define KRC_TEST_HOLDERS 20
#define KRC_TEST_GENERATION 7

/**
 * struct krc_test_holder - Somebody who wants a lane.
 * @holder: lanes know the holder by it.
 * @all: the world.
 * @passes: it gives the lane back in its upcall.
 * @ready: how often it was given the lane.
 * @lost: what it was told last, or 0.
 */
struct krc_test_holder {
	struct krc_lane_holder holder;
	struct krc_test_lanes *all;
	bool passes;
	u32 ready;
	int lost;
};

/**
 * struct krc_test_lanes - Lanes of a port.
 * @lanes: them.
 * @e: machine of the lane that everybody wants.
 * @slot: that lane.
 * @qp: its queue pair.
 * @ibqp: likewise.
 * @peer: whom it reaches.
 * @at: everybody.
 * @order: numbers of those who were given it, in order.
 * @given: how many.
 * @turn: of the last hold.
 * @woken: the work item was.
 * @depth: upcalls that have not returned.
 * @deepest: most of them at once.
 */
struct krc_test_lanes {
	struct krc_lanes lanes;
	struct krp_lanes_entry *e;
	struct krc_lane_slot *slot;
	struct krc_lane_qp qp;
	struct ib_qp ibqp;
	struct krc_lane_peer peer;
	struct krc_test_holder at[KRC_TEST_HOLDERS];
	u32 order[2 * KRC_TEST_HOLDERS];
	u32 given;
	u32 turn;
	bool woken;
	u32 depth;
	u32 deepest;
};

static void krc_test_ready(struct krc_lane_holder *holder, u32 turn)
{
	struct krc_test_holder *h = container_of(holder, struct krc_test_holder, holder);
	struct krc_test_lanes *all = h->all;

	all->deepest = max(all->deepest, ++all->depth);
	h->ready++;
	if (all->given < ARRAY_SIZE(all->order))
		all->order[all->given++] = h - all->at;
	if (h->passes)
		krc_lanes_release(&all->lanes, holder, false);
	all->depth--;
}

static void krc_test_lost(struct krc_lane_holder *holder, u32 turn, int err)
{
	container_of(holder, struct krc_test_holder, holder)->lost = err;
}

static void krc_test_woken(struct work_struct *work)
{
	struct krc_lanes *lanes = container_of(to_delayed_work(work), struct krc_lanes, work);

	container_of(lanes, struct krc_test_lanes, lanes)->woken = true;
}

static const struct krp_lanes_conf krc_test_conf = {
	.lane = { .retry_ns = 1,
		  .retry_max_ns = 1,
		  .drain_ns = 1,
		  .rest_ns = KRP_LANE_REST_MS * KRP_LANE_NS_PER_MS,
		  .tries = 1 },
	.max = KRC_LANES_MAX,
	.of_pair = KRP_LANE_INDEXES,
	.half_max = 1,
};

/* A lane in the table, which nobody has, and which is not open. */
static void krc_test_make(struct kunit *test, struct krc_test_lanes *all)
{
	struct krp_value value = { .generation = cpu_to_le64(3), .kind = KRP_KIND_LANE };
	struct krp_lane_ports ports = { .generation = 3,
					.peer_generation = KRC_TEST_GENERATION,
					.mtu = 3,
					.max_rd_atomic = 1 };
	const struct krp_lane_end own = { .qpn = 9 };

	value.dct.ud_qpn = cpu_to_le32(5);
	value.dct.mtu = 3;
	value.dct.port = 1;
	all->peer.gid[0] = 0xfe;
	all->peer.gid[15] = 2;
	all->peer.generation = cpu_to_le64(KRC_TEST_GENERATION);
	memcpy(ports.gid, all->lanes.services.gid.raw, KRP_GID_BYTES);
	memcpy(ports.peer_gid, all->peer.gid, KRP_GID_BYTES);
	all->e = krp_lanes_make(&all->lanes.table, &all->lanes.users, &ports, &own, 1, &value, 1);
	KUNIT_ASSERT_NOT_NULL(test, all->e);
	all->slot = krc_lane_slot_of(&all->lanes, all->e);
	all->qp.qp = &all->ibqp;
	all->slot->own = &all->qp;
}

static void krc_test_open(struct krc_test_lanes *all)
{
	spin_lock_bh(&all->lanes.lock);
	krc_lane_enter(all->slot, KRC_SLOT_OPEN);
	krc_lane_offer(&all->lanes, all->slot);
	spin_unlock_bh(&all->lanes.lock);
	krc_lanes_call(&all->lanes);
}

static int krc_test_lanes_init(struct kunit *test)
{
	struct krc_test_lanes *all = kvzalloc(sizeof(*all), GFP_KERNEL);
	struct krp_lanes_memory mem = { .chains_nr = KRC_LANES_CHAINS,
					.known_nr = KRC_LANES_KNOWN };
	struct krc_lanes *lanes = &all->lanes;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, all);
	test->priv = all;
	mem.entry = kvcalloc(2 * KRC_LANES_MAX, sizeof(*mem.entry), GFP_KERNEL);
	mem.chains = kvcalloc(KRC_LANES_CHAINS, sizeof(*mem.chains), GFP_KERNEL);
	mem.known = kvcalloc(KRC_LANES_KNOWN, sizeof(*mem.known), GFP_KERNEL);
	lanes->slots = kvcalloc(2 * KRC_LANES_MAX, sizeof(*lanes->slots), GFP_KERNEL);
	lanes->wq = alloc_ordered_workqueue("krc_test_lanes", 0);
	KUNIT_ASSERT_TRUE(test, mem.entry && mem.chains && mem.known && lanes->slots && lanes->wq);
	spin_lock_init(&lanes->lock);
	INIT_LIST_HEAD(&lanes->waiting);
	INIT_LIST_HEAD(&lanes->calls);
	init_waitqueue_head(&lanes->wait);
	INIT_DELAYED_WORK(&lanes->work, krc_test_woken);
	lanes->services.generation = 3;
	lanes->services.gid.raw[0] = 0xfe;
	lanes->services.gid.raw[15] = 1;
	KUNIT_ASSERT_EQ(test,
			krp_lanes_init(&lanes->table, &krc_test_conf, &mem, lanes->services.gid.raw,
				       3, 1),
			0);
	krp_lanes_payer_init(&lanes->table, &lanes->users, KRC_LANES_MAX);
	for (i = 0; i < 2 * KRC_LANES_MAX; i++)
		lanes->slots[i].e = &mem.entry[i];
	for (i = 0; i < KRC_TEST_HOLDERS; i++) {
		all->at[i].all = all;
		all->at[i].holder.ready = krc_test_ready;
		all->at[i].holder.lost = krc_test_lost;
	}
	lanes->started = true;
	krc_test_make(test, all);
	return 0;
}

static void krc_test_lanes_exit(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	cancel_delayed_work_sync(&all->lanes.work);
	destroy_workqueue(all->lanes.wq);
	kvfree(all->lanes.slots);
	kvfree(all->lanes.table.mem.known);
	kvfree(all->lanes.table.mem.chains);
	kvfree(all->lanes.table.mem.entry);
	kvfree(all);
}

static void krc_test_want(struct krc_test_lanes *all, u32 i)
{
	krc_lanes_hold(&all->lanes, &all->peer, 0, ++all->turn, &all->at[i].holder);
}

static void krc_test_first_come_first_served(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;
	u32 i;

	for (i = 0; i < 3; i++)
		krc_test_want(all, i);
	KUNIT_EXPECT_EQ(test, all->given, 0); /* it is not open */
	krc_test_open(all);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, all->given, i + 1);
		KUNIT_EXPECT_EQ(test, all->order[i], i);
		KUNIT_EXPECT_PTR_EQ(test, all->at[i].holder.qp, &all->ibqp);
		KUNIT_EXPECT_EQ(test, all->e->busy, 1);
		KUNIT_EXPECT_EQ(test, krc_lanes_wanted(&all->lanes, &all->at[i].holder),
				i < 2 ? KRC_LANE_WISH_SOON : KRC_LANE_WISH_NONE);
		krc_lanes_release(&all->lanes, &all->at[i].holder, false);
	}
	KUNIT_EXPECT_EQ(test, all->e->busy, 0);
	krc_test_want(all, 0); /* nobody has it: at once */
	KUNIT_EXPECT_EQ(test, all->given, 4);
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
}

static void krc_test_upcalls_do_not_nest(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;
	u32 i;

	for (i = 0; i < KRC_TEST_HOLDERS; i++) {
		all->at[i].passes = true;
		krc_test_want(all, i);
	}
	krc_test_open(all);
	KUNIT_EXPECT_EQ(test, all->given, KRC_TEST_HOLDERS);
	KUNIT_EXPECT_EQ(test, all->deepest, 1);
	KUNIT_EXPECT_NULL(test, all->slot->holder);
}

static void krc_test_broken_lane_goes_to_nobody(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all);
	krc_test_want(all, 0);
	krc_test_want(all, 1);
	KUNIT_ASSERT_EQ(test, all->given, 1);
	krc_lanes_release(&all->lanes, &all->at[0].holder, true);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	KUNIT_EXPECT_EQ(test, all->slot->state, KRC_SLOT_BROKEN);
	KUNIT_EXPECT_PTR_EQ(test, all->slot->breaker, &all->at[0].holder);
	krc_test_want(all, 2);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	krc_lanes_release(&all->lanes, &all->at[1].holder, false);
	krc_lanes_release(&all->lanes, &all->at[2].holder, false);
	KUNIT_EXPECT_TRUE(test, list_empty(&all->lanes.waiting));
}

static void krc_test_who_loses_wants_nothing(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;
	struct krc_lanes *lanes = &all->lanes;

	krc_test_want(all, 0);
	spin_lock_bh(&lanes->lock);
	krc_lane_lose(lanes, &all->at[0].holder, -ETIMEDOUT);
	spin_unlock_bh(&lanes->lock);
	krc_lanes_call(lanes);
	KUNIT_EXPECT_EQ(test, all->at[0].lost, -ETIMEDOUT);
	krc_lanes_release(lanes, &all->at[0].holder, false); /* of nothing */
	krc_test_open(all);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	krc_test_want(all, 0);
	KUNIT_ASSERT_EQ(test, all->given, 1);
	all->at[0].lost = 0;
	spin_lock_bh(&lanes->lock);
	krc_lane_lose(lanes, &all->at[0].holder, -ECONNRESET);
	krc_lane_lose(lanes, &all->at[0].holder, -ESTALE);
	spin_unlock_bh(&lanes->lock);
	krc_lanes_call(lanes);
	KUNIT_EXPECT_EQ(test, all->at[0].lost, -ECONNRESET); /* once */
	KUNIT_EXPECT_PTR_EQ(test, all->slot->holder, &all->at[0].holder); /* until it says so */
	krc_lanes_release(lanes, &all->at[0].holder, false);
	KUNIT_EXPECT_NULL(test, all->slot->holder);
}

static void krc_test_any_lane_to_the_port_will_do(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all);
	krc_lanes_hold(&all->lanes, &all->peer, 1, ++all->turn, &all->at[0].holder);
	KUNIT_EXPECT_EQ(test, all->given, 1); /* there is none of index 1 */
	krc_lanes_hold(&all->lanes, &all->peer, 2, ++all->turn, &all->at[1].holder);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	flush_delayed_work(&all->lanes.work);
	KUNIT_EXPECT_TRUE(test, all->woken); /* which has one made */
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
	KUNIT_EXPECT_EQ(test, all->given, 2);
	krc_lanes_release(&all->lanes, &all->at[1].holder, false);
}

static void krc_test_messages_have_a_lane_of_their_own(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all); /* one for data */
	krc_lanes_hold(&all->lanes, &all->peer, KRC_LANE_MESSAGES, ++all->turn, &all->at[0].holder);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	KUNIT_EXPECT_EQ(test, all->at[0].holder.state, KRC_HOLD_WAITS);
	krc_test_want(all, 1);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	KUNIT_EXPECT_EQ(test, krc_lanes_wanted(&all->lanes, &all->at[1].holder),
			KRC_LANE_WISH_NONE);
	krc_lanes_release(&all->lanes, &all->at[1].holder, false);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
	all->e->lane.ports.index = KRC_LANE_MESSAGES; /* as if it were one for messages */
	krc_test_want(all, 1);
	KUNIT_EXPECT_EQ(test, all->given, 1);
	krc_lanes_hold(&all->lanes, &all->peer, KRC_LANE_MESSAGES, ++all->turn, &all->at[0].holder);
	KUNIT_EXPECT_EQ(test, all->given, 2);
	KUNIT_EXPECT_EQ(test, all->order[1], 0);
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
	KUNIT_EXPECT_EQ(test, all->given, 2);
	krc_lanes_release(&all->lanes, &all->at[1].holder, false);
}

static void krc_test_a_lane_that_ends_is_wanted_now(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all);
	krc_test_want(all, 0);
	KUNIT_ASSERT_EQ(test, all->given, 1);
	spin_lock_bh(&all->lanes.lock);
	krc_lane_enter(all->slot, KRC_SLOT_STOPPING);
	spin_unlock_bh(&all->lanes.lock);
	KUNIT_EXPECT_EQ(test, krc_lanes_wanted(&all->lanes, &all->at[0].holder), KRC_LANE_WISH_NOW);
	krc_test_want(all, 1);
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
	KUNIT_EXPECT_EQ(test, all->given, 1); /* nobody gets it any more */
	krc_lanes_release(&all->lanes, &all->at[1].holder, false);
}

static void krc_test_a_lane_is_lost_before_it_was_told(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;
	struct krc_lanes *lanes = &all->lanes;

	krc_test_want(all, 0);
	lanes->runs = true; /* somebody else makes the upcalls, and is slow */
	krc_test_open(all);
	KUNIT_ASSERT_PTR_EQ(test, all->slot->holder, &all->at[0].holder);
	spin_lock_bh(&lanes->lock);
	krc_lane_lose(lanes, &all->at[0].holder, -ECONNRESET);
	spin_unlock_bh(&lanes->lock);
	lanes->runs = false;
	krc_lanes_call(lanes);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	KUNIT_EXPECT_EQ(test, all->at[0].lost, -ECONNRESET);
	KUNIT_EXPECT_NULL(test, all->slot->holder);
	krc_test_want(all, 0); /* it has nothing, and wants again */
	KUNIT_EXPECT_EQ(test, all->given, 1);
	krc_lanes_release(lanes, &all->at[0].holder, false);
}

static void krc_test_a_released_holder_is_not_called(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;
	struct krc_lanes *lanes = &all->lanes;

	krc_test_want(all, 0);
	lanes->runs = true; /* somebody else makes the upcalls, and is slow */
	krc_test_open(all);
	KUNIT_EXPECT_EQ(test, all->at[0].holder.call, 1);
	krc_lanes_release(lanes, &all->at[0].holder, false);
	lanes->runs = false;
	krc_lanes_call(lanes);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	KUNIT_EXPECT_NULL(test, all->slot->holder);
}

static void krc_test_another_generation_gets_nothing(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all);
	all->peer.generation = cpu_to_le64(KRC_TEST_GENERATION + 1);
	krc_test_want(all, 0);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	KUNIT_EXPECT_EQ(test, all->at[0].holder.state, KRC_HOLD_WAITS);
	krc_lanes_release(&all->lanes, &all->at[0].holder, false);
}

static void krc_test_lanes_that_end_give_nothing(struct kunit *test)
{
	struct krc_test_lanes *all = test->priv;

	krc_test_open(all);
	all->lanes.stopping = true;
	krc_test_want(all, 0);
	KUNIT_EXPECT_EQ(test, all->given, 0);
	KUNIT_EXPECT_EQ(test, all->at[0].lost, -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, all->at[0].holder.state, KRC_HOLD_NONE);
}

static void krc_test_ways_of_a_slot(struct kunit *test)
{
	struct krc_lane_slot slot = { .state = KRC_SLOT_OPEN };

	KUNIT_EXPECT_FALSE(test, krc_lane_enter(&slot, KRC_SLOT_SHUT));
	KUNIT_EXPECT_TRUE(test, krc_lane_enter(&slot, KRC_SLOT_BROKEN));
	KUNIT_EXPECT_FALSE(test, krc_lane_enter(&slot, KRC_SLOT_OPEN));
	KUNIT_EXPECT_FALSE(test, krc_lane_enter(&slot, KRC_SLOT_SHUT));
	KUNIT_EXPECT_TRUE(test, krc_lane_enter(&slot, KRC_SLOT_RESETTING));
	KUNIT_EXPECT_FALSE(test, krc_lane_enter(&slot, KRC_SLOT_BROKEN));
	KUNIT_EXPECT_TRUE(test, krc_lane_enter(&slot, KRC_SLOT_SHUT));
}

static struct kunit_case krc_lanes_cases[] = {
	KUNIT_CASE(krc_test_first_come_first_served),
	KUNIT_CASE(krc_test_upcalls_do_not_nest),
	KUNIT_CASE(krc_test_broken_lane_goes_to_nobody),
	KUNIT_CASE(krc_test_who_loses_wants_nothing),
	KUNIT_CASE(krc_test_a_released_holder_is_not_called),
	KUNIT_CASE(krc_test_any_lane_to_the_port_will_do),
	KUNIT_CASE(krc_test_messages_have_a_lane_of_their_own),
	KUNIT_CASE(krc_test_a_lane_that_ends_is_wanted_now),
	KUNIT_CASE(krc_test_a_lane_is_lost_before_it_was_told),
	KUNIT_CASE(krc_test_another_generation_gets_nothing),
	KUNIT_CASE(krc_test_lanes_that_end_give_nothing),
	KUNIT_CASE(krc_test_ways_of_a_slot),
	{}
};

static struct kunit_suite krc_lanes_suite = {
	.name = "krcore_lanes",
	.init = krc_test_lanes_init,
	.exit = krc_test_lanes_exit,
	.test_cases = krc_lanes_cases,
};
kunit_test_suite(krc_lanes_suite);
