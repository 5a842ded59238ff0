// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: READs of the module itself on a NIC in memory: who may have slots, where targets are
 * asked that have not proved themselves, what is remembered of those that are silent, and
 * that peers come and go without it.
 */
#include "mem/remote.h"
#include "meta/cache.h"
#include "peer/peer.h"
#include "pool/silence.h"
#include "krc_pool_test.h"

#define KRC_TEST_ASKS 64

/* Users that pay; only their addresses matter. */
static const u8 krc_test_payer[5];

/* A READ that counts. */
struct krc_test_ask {
	struct krc_read read;
	int err;
	u32 dones;
	u8 byte;
};

/* A target, and READs of it. */
struct krc_test_target {
	struct krc_standing *standing;
	struct krc_test_ask asks[KRC_TEST_ASKS];
};

static bool krc_test_asked(struct krc_read *read, int err, const void *bytes)
{
	struct krc_test_ask *ask = container_of(read, struct krc_test_ask, read);

	ask->err = err;
	ask->byte = err ? 0 : *(const u8 *)bytes;
	WRITE_ONCE(ask->dones, ask->dones + 1);
	return false;
}

static struct krc_test_target *krc_test_target(struct krc_test *t, u8 name)
{
	struct krc_hw_address address = { .opaque = { name } };
	struct krc_test_target *target = kunit_kzalloc(t->test, sizeof(*target), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(t->test, target);
	target->standing = krc_standing_get(&t->port.rail, &address, 0x1000, 0x77);
	KUNIT_ASSERT_NOT_NULL(t->test, target->standing);
	return target;
}

/* Which initiator the @i-th READ of a target is on, or what krc_pool_read() says. */
static int krc_test_ask(struct krc_test *t, struct krc_test_target *target, u32 i, u32 payer)
{
	struct krc_test_ask *ask = &target->asks[i];
	u32 index;
	int err;

	ask->dones = 0;
	ask->read = (struct krc_read){
		.standing = target->standing,
		.payer = &krc_test_payer[payer],
		.remote_addr = 0x1000 + i,
		.rkey = 0x77,
		.bytes = 64,
		.done = krc_test_asked,
	};
	err = krc_pool_read(t->pool, &ask->read, &index);
	return err ?: (int)index;
}

#define KRC_TEST_WAITS ((int)KRC_READ_WAITS)

/*
 * Have a READ that is in the hardware look as if it had been there for long: if it gets no answer,
 * the pause before the target is asked again is as long, and is not over before this looks.
 */
static void krc_test_begun_before(struct krc_test_ask *ask, u32 ms)
{
	ask->read.start = jiffies - msecs_to_jiffies(ms);
}

static u32 krc_test_ended(struct krc_test_target *target, int err)
{
	u32 i, n = 0;

	for (i = 0; i < KRC_TEST_ASKS; i++)
		n += READ_ONCE(target->asks[i].dones) == 1 && target->asks[i].err == err;
	return n;
}

/* Whatever is on the first initiators is done; more may come. Return: true. */
static bool krc_test_completed(struct krc_test *t, u32 initiators, u32 nr)
{
	u32 i;

	for (i = 0; i < initiators; i++)
		krc_fake_complete(t->fake, i, nr);
	return true;
}

static bool krc_test_idle(struct krc_test *t, u32 index)
{
	return READ_ONCE(krc_test_channel(t, index)->state) == KRC_CHANNEL_READY &&
	       !krc_fake_pending(t->fake, index);
}

static void krc_test_prove(struct krc_test *t, struct krc_test_target *target)
{
	int index = krc_test_ask(t, target, 0, 0);

	KUNIT_ASSERT_GE(t->test, index, (int)krc_test_shared(t));
	KUNIT_EXPECT_EQ(t->test, krc_fake_complete(t->fake, index, 1), 1);
	krc_test_wait(t->test, READ_ONCE(target->asks[0].dones) == 1);
	KUNIT_EXPECT_EQ(t->test, target->asks[0].err, 0);
	KUNIT_EXPECT_EQ(t->test, (int)krc_standing_now(target->standing), KRC_STANDING_PROVEN);
}

static void krc_test_a_target_proves_itself_apart(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1);

	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(target->standing), KRC_STANDING_NEW);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 1, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 2, 0), KRC_TEST_WAITS);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 3, 1), KRC_TEST_WAITS);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 1), 1);
	/* with the first answer the others go where all go */
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 1, 9), 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 2);
	KUNIT_EXPECT_EQ(test, target->asks[1].byte, 1);
	krc_fake_complete(t->fake, 0, 2);
	krc_test_wait(test, krc_test_ended(target, 0) == 3);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 4, 0), 0);
	krc_fake_complete(t->fake, 0, 1);
	krc_test_wait(test, krc_test_ended(target, 0) == 4);

	/* an answer of long ago proves nothing */
	target->standing->answered = jiffies - msecs_to_jiffies(KRC_PROVEN_MS) - 2;
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 5, 0), 1);
	krc_fake_complete(t->fake, 1, 1);
	krc_test_wait(test, krc_test_ended(target, 0) == 5);
	krc_standing_put(target->standing);
}

/* 64 READs that never end, and one of somebody else to somebody else. */
static void krc_test_one_silent_target_stops_nobody(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *a = krc_test_target(t, 1), *b = krc_test_target(t, 2);
	u32 i;

	for (i = 0; i < KRC_TEST_ASKS; i++)
		KUNIT_EXPECT_GE(test, krc_test_ask(t, a, i, 0), KRC_TEST_WAITS);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 1), 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, b, 0, 1), 2);
	krc_fake_complete(t->fake, 2, 1);
	krc_test_wait(test, krc_test_ended(b, 0) == 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, b, 1, 0), 0); /* nor its own other READs */
	krc_fake_complete(t->fake, 0, 1);
	krc_test_wait(test, krc_test_ended(b, 0) == 2);

	/* silence is found out once, for all of them */
	krc_test_begun_before(&a->asks[0], KRC_BACKOFF_MAX_MS);
	krc_fake_fail(t->fake, 1, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, krc_test_ended(a, -ETIMEDOUT) == KRC_TEST_ASKS);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(a->standing), KRC_STANDING_SILENT);
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 0U);
	krc_standing_put(a->standing);
	krc_standing_put(b->standing);
}

/* Whom the next one is to be, for an ask that ends as if it had been freed. */
static struct {
	struct krc_test *t;
	struct krc_test_target *target;
} krc_test_next;

static bool krc_test_freed(struct krc_read *read, int err, const void *bytes)
{
	memset(read, 0x5a, sizeof(*read));
	krc_test_ask(krc_test_next.t, krc_test_next.target, 2, 1);
	return false;
}

/* What asks a target is its owner's at its end: the next one does not look at it. */
static void krc_test_a_probe_that_is_freed(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1);
	u32 index;

	krc_test_next.t = t;
	krc_test_next.target = target;
	target->asks[1].read = (struct krc_read){
		.standing = target->standing,
		.payer = &krc_test_payer[0],
		.remote_addr = 0x1000,
		.rkey = 0x77,
		.bytes = 64,
		.done = krc_test_freed,
	};
	KUNIT_ASSERT_EQ(test, krc_pool_read(t->pool, &target->asks[1].read, &index), 0);
	KUNIT_EXPECT_EQ(test, index, 1);
	krc_test_begun_before(&target->asks[1], KRC_BACKOFF_MAX_MS);
	krc_fake_fail(t->fake, 1, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(target->asks[2].dones) == 1);
	KUNIT_EXPECT_EQ(test, target->asks[2].err, -ETIMEDOUT);
	krc_standing_put(target->standing);
}

/* A READ is to be posted again, but its target has not answered meanwhile: it is asked apart. */
static void krc_test_proofs_wear_off_in_the_hardware(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1);

	krc_test_prove(t, target);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 1, 0), 0);
	target->standing->answered = jiffies - msecs_to_jiffies(KRC_PROVEN_MS) - 2;
	krc_fake_fatal(t->fake, 0);
	krc_test_wait(test, krc_fake_pending(t->fake, 1) == 1);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 0), 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(target->asks[1].dones), 0U);
	krc_fake_complete(t->fake, 1, 1);
	krc_test_wait(test, READ_ONCE(target->asks[1].dones) == 1);
	KUNIT_EXPECT_EQ(test, target->asks[1].err, 0);
	krc_standing_put(target->standing);
}

/* The same with targets that had proved themselves before. */
static void krc_test_a_payer_has_his_share_of_cells(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *a, *b;
	u32 i, under_way = 0;

	krc_test_restart(t, 3);
	a = krc_test_target(t, 1);
	b = krc_test_target(t, 2);
	krc_test_prove(t, a);
	krc_test_prove(t, b);
	for (i = 0; i < KRC_TEST_ASKS; i++)
		under_way += krc_test_ask(t, a, i, 0) != KRC_TEST_WAITS;
	KUNIT_EXPECT_EQ(test, under_way, 16U);
	KUNIT_EXPECT_NE(test, krc_test_ask(t, b, 1, 1), KRC_TEST_WAITS);
	/* also apart, where they go if a pause of this machine wears the proofs off */
	krc_test_wait(test, krc_test_completed(t, KRC_FAKE_INITIATORS, 9) &&
				    krc_test_ended(a, 0) == KRC_TEST_ASKS &&
				    krc_test_ended(b, 0) == 2);
	krc_standing_put(a->standing);
	krc_standing_put(b->standing);
}

static void krc_test_no_cell_is_no_silence(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target[6];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(target); i++)
		target[i] = krc_test_target(t, i + 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[0], 0, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[1], 0, 0), KRC_TEST_WAITS); /* its share */
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[2], 0, 1), 2);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[3], 0, 2), 3);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[4], 0, 0), KRC_TEST_WAITS);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[5], 0, 3), KRC_TEST_WAITS);
	/* a payer asks a target itself for which another payer waits far behind */
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target[4], 1, 4), KRC_TEST_WAITS);
	msleep(300);
	for (i = 0; i < ARRAY_SIZE(target); i++) {
		KUNIT_EXPECT_EQ(test, krc_test_ended(target[i], 0), 0U);
		KUNIT_EXPECT_EQ(test, (int)krc_standing_now(target[i]->standing), KRC_STANDING_NEW);
	}
	krc_fake_fail(t->fake, 2, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, krc_test_ended(target[2], -ETIMEDOUT) == 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 2) == 1); /* that of the next payer */
	krc_fake_complete(t->fake, 2, 1);
	krc_test_wait(test, krc_test_ended(target[5], 0) == 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 2) == 1); /* and that of the last */
	krc_fake_complete(t->fake, 2, 1);
	krc_test_wait(test, READ_ONCE(target[4]->asks[1].dones) == 1);
	KUNIT_EXPECT_EQ(test, krc_test_ended(target[1], 0), 0U);
	krc_test_wait(test,
		      krc_test_completed(t, 4, 1) &&
			      krc_test_ended(target[1], 0) + krc_test_ended(target[4], 0) == 3);
	for (i = 0; i < ARRAY_SIZE(target); i++)
		krc_standing_put(target[i]->standing);
}

static void krc_test_who_was_silent_is_left_alone(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1), *other = krc_test_target(t, 2);

	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 0, 0), 1);
	krc_test_begun_before(&target->asks[0], 2000);
	krc_fake_fail(t->fake, 1, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, krc_test_ended(target, -ETIMEDOUT) == 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 1, 1), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, target->asks[1].dones, 0U);
	krc_test_wait(test, krc_test_idle(t, 1));
	krc_test_wait(test, krc_standing_due(target->standing));
	/* then in quarantine, so that new targets do not wait for known ones */
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 2, 1), 4);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, other, 0, 1), 1);
	krc_fake_complete(t->fake, 1, 1);
	krc_test_wait(test, krc_test_ended(other, 0) == 1);
	krc_fake_complete(t->fake, 4, 1);
	krc_test_wait(test, krc_test_ended(target, 0) == 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 3, 1), 0);

	/* a refusal of the directory costs others as much as silence */
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_wait(test, krc_test_ended(target, -EREMOTEIO) == 1);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(target->standing), KRC_STANDING_SILENT);
	krc_standing_put(target->standing);
	krc_standing_put(other->standing);
}

/* A READ that is flushed behind a neighbour's fault is not posted to a target silent by now. */
static void krc_test_no_second_stall_by_replay(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1);

	krc_test_prove(t, target);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 2, 0), 0);
	krc_standing_suspect(target->standing);
	krc_fake_fail(t->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, krc_test_ended(target, -ETIMEDOUT) == 2);
	krc_test_wait(test, krc_test_idle(t, 0));
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->resets, 1U);
	krc_standing_put(target->standing);
}

static void krc_test_nobody_wants_it_any_more(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *target = krc_test_target(t, 1);

	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 0, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 1, 0), KRC_TEST_WAITS);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, target, 2, 1), KRC_TEST_WAITS);
	KUNIT_EXPECT_TRUE(test, krc_pool_unread(t->pool, &target->asks[1].read));
	KUNIT_EXPECT_FALSE(test, krc_pool_unread(t->pool, &target->asks[1].read));
	KUNIT_EXPECT_FALSE(test, krc_pool_unread(t->pool, &target->asks[0].read));
	krc_fake_complete(t->fake, 1, 1);
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 1);
	krc_fake_complete(t->fake, 0, 9);
	krc_test_wait(test, krc_test_ended(target, 0) == 2);
	KUNIT_EXPECT_EQ(test, target->asks[1].dones, 0U);
	krc_standing_put(target->standing);
}

static void krc_test_the_end_of_reads(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *a = krc_test_target(t, 1), *b = krc_test_target(t, 2);
	struct krc_test_target *c = krc_test_target(t, 3);
	u32 i;

	krc_test_prove(t, c);
	for (i = 0; i < KRC_TEST_ASKS; i++) {
		KUNIT_EXPECT_GE(test, krc_test_ask(t, a, i, 0), KRC_TEST_WAITS);
		KUNIT_EXPECT_GE(test, krc_test_ask(t, b, i, 0), KRC_TEST_WAITS);
		KUNIT_EXPECT_GE(test, krc_test_ask(t, c, i, 1), KRC_TEST_WAITS);
	}
	krc_pool_stop(t->pool);
	KUNIT_EXPECT_EQ(test, krc_test_ended(a, -ENODEV), KRC_TEST_ASKS);
	KUNIT_EXPECT_EQ(test, krc_test_ended(b, -ENODEV), KRC_TEST_ASKS);
	KUNIT_EXPECT_EQ(test, krc_test_ended(c, -ENODEV), KRC_TEST_ASKS);
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, a, 0, 0), -ENODEV);
	krc_standing_put(a->standing);
	krc_standing_put(b->standing);
	krc_standing_put(c->standing);
}

/* ---- peers */

/* A port that peers can count. */
static void krc_test_port(struct krc_test *t)
{
	KUNIT_ASSERT_EQ(t->test, krc_rail_init(&t->port.rail, NULL), 0);
	t->port.pool = t->pool;
	t->port.cache = krc_node_cache();
}

static void krc_test_port_end(struct krc_test *t)
{
	krc_peers_drop(&t->port.rail);
	KUNIT_EXPECT_EQ(t->test, kref_read(&t->port.rail.ref), 1U);
	krc_rail_fini(&t->port.rail);
}

static struct krc_peer *krc_test_peer(struct krc_test *t, u16 service, u32 dctn, bool fresh)
{
	struct krp_key key = { .gid = { 0xfe, 0x80, 1 }, .service = cpu_to_le16(service) };
	struct krp_value value = { .kind = KRP_KIND_DCT,
				   .generation = cpu_to_le64(7),
				   .dct = { .dctn = cpu_to_le32(dctn),
					    .mtu = 5,
					    .port = 1,
					    .mrdir_addr = cpu_to_le64(0x1000),
					    .mrdir_rkey = cpu_to_le32(0x100) } };
	struct krc_peer *peer = krc_peer_get(&t->port, &key, &value, fresh);

	KUNIT_ASSERT_FALSE(t->test, IS_ERR(peer));
	return peer;
}

static void krc_test_silence_outlives_peers(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_peer *peer;
	u32 i;

	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	krc_peer_suspect(peer, KRC_FAULT_TIMEOUT, 0);
	krc_peer_put(peer);
	for (i = 0; i < 600; i++) /* services of a node that is well */
		krc_peer_put(krc_test_peer(t, 1000 + i, 78, false));
	peer = krc_test_peer(t, 1, 77, false);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(peer->standing), KRC_STANDING_SILENT);
	krc_peer_put(peer);
	peer = krc_test_peer(t, 2, 77, true); /* another name of it, and fresh */
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(peer->standing), KRC_STANDING_SILENT);
	krc_peer_put(peer);
	peer = krc_test_peer(t, 1000, 78, false);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(peer->standing), KRC_STANDING_NEW);
	krc_peer_put(peer);
	krc_test_port_end(t);
}

static void krc_test_fresh_does_not_multiply(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_peer *first, *peer, *later;
	u32 i;

	krc_test_port(t);
	first = krc_test_peer(t, 1, 77, true);
	for (i = 0; i < 64; i++) {
		first->made = jiffies + 10 * HZ; /* just now, however long this takes */
		peer = krc_test_peer(t, 1, 77, true);
		KUNIT_EXPECT_PTR_EQ(test, peer, first);
	}
	KUNIT_EXPECT_EQ(test, first->users, 65U);
	first->made = jiffies - msecs_to_jiffies(1000);
	later = krc_test_peer(t, 1, 77, true);
	KUNIT_EXPECT_PTR_NE(test, later, first);
	KUNIT_EXPECT_PTR_EQ(test, later->standing, first->standing);
	/* the old one is out of the way of look-ups */
	KUNIT_EXPECT_TRUE(test, hlist_unhashed(&first->node));
	for (i = 0; i < 65; i++)
		krc_peer_put(first);
	krc_peer_put(later);
	krc_test_port_end(t);
}

#define KRC_TEST_PEERS 100

/* What a walk has shown. */
struct krc_test_shown {
	u8 times[KRC_TEST_PEERS];
	u32 left; /* before one is refused */
};

static int krc_test_shows(const struct krc_peer_info *info, void *arg)
{
	struct krc_test_shown *shown = arg;

	if (!shown->left)
		return 1;
	shown->left--;
	if (info->service >= 1 && info->service <= KRC_TEST_PEERS)
		shown->times[info->service - 1]++;
	return 0;
}

/* A list of peers goes on with the one that was refused, and shows each once. */
static void krc_test_a_walk_of_peers(struct kunit *test)
{
	struct krc_test_shown shown = {};
	struct krc_peer *peer[KRC_TEST_PEERS];
	struct krc_test *t = test->priv;
	struct krc_peer_at at = {};
	u32 i;

	krc_test_port(t);
	for (i = 0; i < KRC_TEST_PEERS; i++)
		peer[i] = krc_test_peer(t, (u16)(1 + i), 77, false);
	for (i = 0; i < 2; i++) { /* outdated, and out of the table */
		krc_peer_suspect(peer[i], KRC_FAULT_TIMEOUT, 0);
		krc_peer_put(krc_test_peer(t, (u16)(1 + i), 77, false)); /* in no use */
	}
	for (i = 0; i <= KRC_TEST_PEERS; i++) {
		shown.left = 1;
		krc_peer_walk(&at, krc_test_shows, &shown);
	}
	KUNIT_EXPECT_EQ(test, shown.left, 1U); /* there is no more */
	for (i = 0; i < KRC_TEST_PEERS; i++) {
		KUNIT_EXPECT_EQ(test, (u32)shown.times[i], 1U);
		krc_peer_put(peer[i]);
	}
	krc_test_port_end(t);
}

/* How a peer is reached is found out anew when it did not answer; once for each fault. */
static void krc_test_an_address_is_asked_for_anew(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_peer *peer, *next;

	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	next = krc_test_peer(t, 1, 77, false);
	KUNIT_EXPECT_PTR_EQ(test, next, peer);
	krc_peer_put(next);
	krc_peer_suspect(peer, KRC_FAULT_ACCESS, 0); /* it is there */
	next = krc_test_peer(t, 1, 77, false);
	KUNIT_EXPECT_PTR_EQ(test, next, peer);
	krc_peer_put(next);
	krc_peer_suspect(peer, KRC_FAULT_TIMEOUT, 0);
	t->fake->router = 9; /* another MAC */
	next = krc_test_peer(t, 1, 77, false);
	KUNIT_EXPECT_PTR_NE(test, next, peer);
	KUNIT_EXPECT_NE(test, memcmp(&next->address, &peer->address, sizeof(peer->address)), 0);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(next->standing), KRC_STANDING_NEW);
	krc_peer_put(peer);
	krc_peer_put(next);
	krc_test_port_end(t);
}

/*
 * One fault fails many requests to a peer: what the node remembers of it is invalidated once. The
 * cache remembers few invalidations, so look-ups of others would not be cached any more.
 */
static void krc_test_a_fault_of_many_forgets_once(struct kunit *test)
{
	struct krp_key other = { .gid = { 0xfe, 0x80, 2 }, .service = cpu_to_le16(9) };
	struct krp_value value = { .kind = KRP_KIND_RAW, .generation = cpu_to_le64(1) };
	struct krc_cache *cache = krc_node_cache();
	u64 epoch = krc_cache_epoch(cache);
	struct krc_test *t = test->priv;
	struct krc_peer *peer, *next;
	u32 i;

	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	for (i = 0; i < KRC_TEST_REQS; i++)
		krc_peer_suspect(peer, i % 2 ? KRC_FAULT_TARGET : KRC_FAULT_TIMEOUT, 0);
	KUNIT_EXPECT_EQ(test, krc_cache_epoch(cache), epoch + 1);
	/* that of another peer had begun before */
	KUNIT_EXPECT_EQ(test, krc_cache_put(cache, &other, &value, epoch), 0);
	krc_cache_forget(cache, &other, 1);
	/* a caller that comes again and finds it silent again says so, once more */
	next = krc_test_peer(t, 1, 77, false);
	KUNIT_EXPECT_PTR_NE(test, next, peer);
	epoch = krc_cache_epoch(cache);
	krc_peer_suspect(peer, KRC_FAULT_TIMEOUT, 0);
	KUNIT_EXPECT_EQ(test, krc_cache_epoch(cache), epoch);
	krc_peer_suspect(next, KRC_FAULT_TIMEOUT, 0);
	KUNIT_EXPECT_EQ(test, krc_cache_epoch(cache), epoch + 1);
	krc_peer_put(peer);
	krc_peer_put(next);
	krc_test_port_end(t);
}

/* A queue fails with its one request. */
static void krc_test_fails(struct krc_test *t, struct krc_test_flow *flow, struct krc_peer *peer)
{
	krc_test_wait(t->test, READ_ONCE(flow->done) == 1);
	krc_test_expect(t, flow, 0, 1, -EREMCHG);
	krc_peer_suspect(peer, flow->reqs[0].req.fault, 0);
}

/*
 * A peer that lets a WRITE wait for longer than its lease is asked apart; another one, to
 * which requests waited behind that, is not. One answer, and it is back, without a pause; but
 * it has one the next time.
 */
static void krc_test_a_write_that_expires_is_silence(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_test_target *asked = kunit_kzalloc(test, sizeof(*asked), GFP_KERNEL);
	struct krc_peer *peer[2];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, asked);
	krc_test_port(t);
	for (i = 0; i < 2; i++) {
		peer[i] = krc_test_peer(t, 1 + i, 77 + i, false);
		krc_standing_answered(peer[i]->standing);
		t->flow[i]->address = peer[i]->address;
		krc_test_lease(t->flow[i], 100000, 100000);
		KUNIT_ASSERT_EQ(test, krc_test_submit(t->flow[i], 1 + 2 * i, KRP_OP_WRITE, 8), 0);
	}
	krc_test_wait(test, krc_fake_pending(t->fake, 0) == 4);
	krc_test_lapse(t, 0, false);
	krc_test_fails(t, t->flow[0], peer[0]);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(peer[0]->standing->state), KRC_STANDING_NEW);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(peer[0]->outdated));
	krc_test_finish(t, t->flow[1], 3);
	krc_test_expect(t, t->flow[1], 0, 3, 0);
	for (i = 0; i < 3; i++)
		krc_peer_suspect(peer[1], t->flow[1]->reqs[i].req.fault, 0);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(peer[1]->standing->state), KRC_STANDING_PROVEN);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(peer[1]->outdated));
	KUNIT_EXPECT_EQ(test, t->fake->ini[0]->log_nr, 3ULL);

	asked->standing = peer[0]->standing;
	KUNIT_EXPECT_EQ(test, krc_test_ask(t, asked, 0, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_fake_complete(t->fake, 1, 1), 1U);
	krc_test_wait(test, READ_ONCE(asked->asks[0].dones) == 1);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(peer[0]->standing->state), KRC_STANDING_PROVEN);
	asked->standing->expired = jiffies + 60 * HZ; /* just now, however long this takes */
	krc_peer_suspect(peer[0], KRC_FAULT_EXPIRED, 0);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(peer[0]->standing->state), KRC_STANDING_SILENT);
	for (i = 0; i < 2; i++)
		krc_peer_put(peer[i]);
	krc_test_port_end(t);
}

/* ---- references */

/* Somebody who waits for an entry of a directory. */
struct krc_test_waiter {
	struct krc_remote_wait wait;
	u32 told;
	int err;
};

static void krc_test_told(struct krc_remote_wait *wait, int err)
{
	struct krc_test_waiter *waiter = container_of(wait, struct krc_test_waiter, wait);

	waiter->err = err;
	WRITE_ONCE(waiter->told, waiter->told + 1);
}

static void krc_test_waiters_share_a_read(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u64 token = 1ULL << KRP_MRDIR_LOG2_MAX | 1;
	struct krc_test_waiter waiter[3] = {};
	struct krc_grant grant = {};
	struct krc_remote *remote;
	struct krc_peer *peer;
	u32 i;

	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	remote = peer->remote;
	for (i = 0; i < 3; i++) {
		krc_remote_wait_init(&waiter[i].wait, &krc_test_payer[i], krc_test_told);
		KUNIT_EXPECT_EQ(test,
				krc_remote_get(remote, token, 0, 8, 0, &grant, &waiter[i].wait),
				-EINPROGRESS);
	}
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 1), 1);
	krc_remote_unwait(remote, &waiter[1].wait);
	/* what the NIC brings is not whole, however often: no directory */
	krc_test_wait(test, ({
			      krc_fake_complete(t->fake, 1, 1);
			      READ_ONCE(waiter[2].told) == 1;
		      }));
	KUNIT_EXPECT_EQ(test, t->fake->ini[1]->log_nr, 16ULL);
	KUNIT_EXPECT_EQ(test, waiter[0].told, 1U);
	KUNIT_EXPECT_EQ(test, waiter[0].err, -EBADR);
	KUNIT_EXPECT_EQ(test, waiter[1].told, 0U);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 0U);

	/* one that nobody waits for any more does not stay behind */
	peer->standing->answered = jiffies - 2 * msecs_to_jiffies(KRC_PROVEN_MS);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token, 0, 8, 0, &grant, &waiter[0].wait),
			-EINPROGRESS);
	KUNIT_EXPECT_EQ(test, krc_remote_get(remote, token * 2, 0, 8, 0, &grant, &waiter[1].wait),
			-EINPROGRESS);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 2U);
	krc_remote_unwait(remote, &waiter[1].wait);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 1U);
	krc_remote_unwait(remote, &waiter[0].wait); /* but this has begun */
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 1U);
	krc_peer_put(peer);
	krc_peers_drop(&t->port.rail); /* nor need the peer wait for it */
	krc_pool_stop(t->pool);
	krc_test_port_end(t);
}

/* The entry of the region that has @token, as its owner writes it. */
static void krc_test_entry(struct krp_mrdir_entry *entry, u64 token)
{
	*entry = (struct krp_mrdir_entry){
		.token = cpu_to_le64(token),
		.addr = cpu_to_le64(4096),
		.length = cpu_to_le64(64),
		.rkey = cpu_to_le32(token),
		.access = KRP_ACCESS_REMOTE_READ,
		.state = KRP_MRDIR_LIVE,
		.lease_ms = cpu_to_le32(KRP_MRDIR_LEASE_MS_MAX),
		.margin_ms = cpu_to_le32(KRP_MRDIR_MARGIN_MS_MIN),
		.generation = cpu_to_le64(7),
	};
	krp_mrdir_seal(entry);
}

/* READ an entry of the directory by way of @channel. */
static void krc_test_learn(struct krc_test *t, struct krc_remote *remote, u64 token, u32 channel)
{
	struct krc_test_waiter waiter = {};
	struct krc_grant grant = {};

	krc_remote_wait_init(&waiter.wait, &krc_test_payer[0], krc_test_told);
	KUNIT_ASSERT_EQ(t->test,
			krc_remote_get(remote, token, 4096, 8, KRP_ACCESS_REMOTE_READ, &grant,
				       &waiter.wait),
			-EINPROGRESS);
	krc_test_wait(t->test, ({
			      krc_fake_complete(t->fake, channel, 1);
			      READ_ONCE(waiter.told) == 1;
		      }));
	KUNIT_EXPECT_EQ(t->test, waiter.err, 0);
}

/* A refusal costs the reference that was refused, and no program another one. */
static void krc_test_a_refusal_is_of_one_reference(struct kunit *test)
{
	u64 token[2] = { 1ULL << KRP_MRDIR_LOG2_MAX, 2ULL << KRP_MRDIR_LOG2_MAX | 1 };
	struct krc_test *t = test->priv;
	struct krp_mrdir_entry *far = kunit_kcalloc(test, 2, sizeof(*far), GFP_KERNEL);
	struct krc_grant grant = {};
	struct krc_peer *peer, *same;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, far);
	krc_test_entry(&far[0], token[0]);
	krc_test_entry(&far[1], token[1]);
	t->fake->far = far;
	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	krc_test_learn(t, peer->remote, token[0], 1);
	krc_test_learn(t, peer->remote, token[1], 0);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(peer->remote), 2U);

	krc_peer_suspect(peer, KRC_FAULT_ACCESS, token[0]);
	KUNIT_EXPECT_EQ(test, krc_remote_regions(peer->remote), 1U);
	KUNIT_EXPECT_EQ(test,
			krc_remote_get(peer->remote, token[1], 4096, 8, KRP_ACCESS_REMOTE_READ,
				       &grant, NULL),
			0);
	KUNIT_EXPECT_EQ(test, grant.rkey, (u32)token[1]);
	KUNIT_EXPECT_EQ(test, grant.stay, msecs_to_jiffies(KRP_MRDIR_MARGIN_MS_MIN / 2));
	KUNIT_EXPECT_EQ(test,
			krc_remote_get(peer->remote, token[0], 4096, 8, KRP_ACCESS_REMOTE_READ,
				       &grant, NULL),
			-EAGAIN);
	same = krc_test_peer(t, 1, 77, false); /* nor does anybody look it up again */
	KUNIT_EXPECT_PTR_EQ(test, same, peer);
	krc_peer_put(same);
	for (i = 1; i <= KRC_REFUSED_FREE; i++) { /* too many of them cost all */
		KUNIT_EXPECT_EQ(test, krc_remote_regions(peer->remote), 1U);
		krc_peer_suspect(peer, KRC_FAULT_ACCESS, token[0]);
	}
	KUNIT_EXPECT_EQ(test, krc_remote_regions(peer->remote), 0U);
	krc_peer_put(peer);
	krc_peers_drop(&t->port.rail);
	krc_test_port_end(t);
}

/* Somebody wants an entry of a peer's directory that has to be READ. */
static void krc_test_wants(struct kunit *test, struct krc_peer *peer, u64 token, u32 payer,
			   struct krc_test_waiter *waiter)
{
	struct krc_grant grant = {};

	krc_remote_wait_init(&waiter->wait, &krc_test_payer[payer], krc_test_told);
	KUNIT_EXPECT_EQ(test, krc_remote_get(peer->remote, token, 0, 8, 0, &grant, &waiter->wait),
			-EINPROGRESS);
}

/* A payer that asks many peers first is not in the way of others that want what it wants last. */
static void krc_test_an_entry_waits_in_the_shortest_line(struct kunit *test)
{
	struct krc_test *t = test->priv;
	u64 token = 1ULL << KRP_MRDIR_LOG2_MAX | 1;
	struct krc_test_waiter waiter[7] = {};
	struct krc_peer *peer[4];
	u32 i;

	krc_test_port(t);
	for (i = 0; i < ARRAY_SIZE(peer); i++) {
		peer[i] = krc_test_peer(t, 1 + i, 77 + i, false);
		krc_test_wants(test, peer[i], token, 0, &waiter[i]);
	}
	krc_test_wants(test, peer[3], token * 2, 0, &waiter[4]); /* waits for the other entry */
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 1), 1);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(t->fake, 2), 0);

	krc_test_wants(test, peer[2], token, 1, &waiter[5]);
	krc_test_wait(test, krc_fake_pending(t->fake, 2) == 1);
	krc_test_wants(test, peer[3], token * 2, 2, &waiter[6]);
	krc_test_wait(test, krc_fake_pending(t->fake, 3) == 1);
	/* torn, however often: no directory; the line of the first payer has not moved */
	krc_test_wait(test, ({
			      krc_fake_complete(t->fake, 2, 1);
			      krc_fake_complete(t->fake, 3, 1);
			      READ_ONCE(waiter[5].told) && READ_ONCE(waiter[6].told);
		      }));
	KUNIT_EXPECT_EQ(test, waiter[0].told + waiter[1].told, 0U);
	KUNIT_EXPECT_EQ(test, waiter[2].told, 1U);
	KUNIT_EXPECT_EQ(test, waiter[4].told, 1U);
	for (i = 0; i < ARRAY_SIZE(waiter); i++)
		krc_test_wait(test, krc_test_completed(t, 4, 1) && READ_ONCE(waiter[i].told) == 1);
	for (i = 0; i < ARRAY_SIZE(peer); i++)
		krc_peer_put(peer[i]);
	krc_test_port_end(t);
}

#define KRC_TEST_REGIONS 60

/* The cache of a peer grows while its entries are being READ: each of them is found again. */
static void krc_test_many_regions_are_found(struct kunit *test)
{
	u64 token = 1ULL << KRP_MRDIR_LOG2_MAX | 1;
	struct krc_test *t = test->priv;
	struct krc_test_waiter *first, *second;
	struct krc_grant grant = {};
	struct krc_remote *remote;
	struct krc_peer *peer;
	u32 i;

	first = kunit_kcalloc(test, KRC_TEST_REGIONS, sizeof(*first), GFP_KERNEL);
	second = kunit_kcalloc(test, KRC_TEST_REGIONS, sizeof(*second), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, first && second);
	krc_test_port(t);
	peer = krc_test_peer(t, 1, 77, false);
	remote = peer->remote;
	for (i = 0; i < KRC_TEST_REGIONS; i++) {
		krc_remote_wait_init(&first[i].wait, &krc_test_payer[0], krc_test_told);
		KUNIT_EXPECT_EQ(test,
				krc_remote_get(remote, token + i, 0, 8, 0, &grant, &first[i].wait),
				-EINPROGRESS);
		KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), i + 1);
	}
	for (i = 0; i < KRC_TEST_REGIONS; i++) {
		krc_remote_wait_init(&second[i].wait, &krc_test_payer[1], krc_test_told);
		KUNIT_EXPECT_EQ(test,
				krc_remote_get(remote, token + i, 0, 8, 0, &grant, &second[i].wait),
				-EINPROGRESS);
	}
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), (u32)KRC_TEST_REGIONS);
	for (i = 0; i < KRC_TEST_REGIONS; i++) {
		krc_remote_unwait(remote, &first[i].wait);
		krc_remote_unwait(remote, &second[i].wait);
	}
	KUNIT_EXPECT_EQ(test, krc_remote_regions(remote), 1U); /* whose READ has begun */
	krc_peer_put(peer);
	krc_peers_drop(&t->port.rail);
	krc_pool_stop(t->pool);
	krc_test_port_end(t);
}

static struct kunit_case krc_silence_cases[] = {
	KUNIT_CASE(krc_test_a_refusal_is_of_one_reference),
	KUNIT_CASE(krc_test_a_target_proves_itself_apart),
	KUNIT_CASE(krc_test_one_silent_target_stops_nobody),
	KUNIT_CASE(krc_test_a_probe_that_is_freed),
	KUNIT_CASE(krc_test_proofs_wear_off_in_the_hardware),
	KUNIT_CASE(krc_test_a_payer_has_his_share_of_cells),
	KUNIT_CASE(krc_test_no_cell_is_no_silence),
	KUNIT_CASE(krc_test_who_was_silent_is_left_alone),
	KUNIT_CASE(krc_test_no_second_stall_by_replay),
	KUNIT_CASE(krc_test_nobody_wants_it_any_more),
	KUNIT_CASE(krc_test_the_end_of_reads),
	KUNIT_CASE(krc_test_silence_outlives_peers),
	KUNIT_CASE(krc_test_fresh_does_not_multiply),
	KUNIT_CASE(krc_test_a_walk_of_peers),
	KUNIT_CASE(krc_test_an_address_is_asked_for_anew),
	KUNIT_CASE(krc_test_a_fault_of_many_forgets_once),
	KUNIT_CASE(krc_test_a_write_that_expires_is_silence),
	KUNIT_CASE(krc_test_waiters_share_a_read),
	KUNIT_CASE(krc_test_an_entry_waits_in_the_shortest_line),
	KUNIT_CASE(krc_test_many_regions_are_found),
	{}
};

static struct kunit_suite krc_silence_suite = {
	.name = "krcore_silence",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_silence_cases,
};
kunit_test_suite(krc_silence_suite);
