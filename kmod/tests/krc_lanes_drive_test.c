// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: how lanes are made between ports: packets that are lost, doubled, forged, late or too many,
 * both ends at once, generations of nodes, queue pairs that fail, bounds of a port, and its end.
 * drive.c, shake.c and connect.c run as they are, on devices in memory (krc_lane_net.h).
 * Locking: none; a test runs alone, beside the work items of its nodes.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "tests/krc_lane_net.h"
#include "tests/krc_test_wait.h"

#define KRC_TEST_BOUND 6
#define KRC_TEST_KEPT 2

static int krc_test_drive_init(struct kunit *test)
{
	struct krc_net *net = krc_net_create(test);

	test->priv = net;
	krc_net_up(net, 0);
	krc_net_up(net, 1);
	return 0;
}

static void krc_test_drive_exit(struct kunit *test)
{
	krc_net_destroy(test->priv);
}

static u32 krc_test_qpn(struct krc_net *net, u32 i)
{
	return net->holders[i].holder.qp->qp_num;
}

/* What becomes of all packets from now on. */
static void krc_test_fate(struct krc_net *net,
			  enum krc_net_fate (*fate)(struct krc_net *net,
						    const struct krp_lane_packet *p))
{
	spin_lock_bh(&net->lock);
	net->fate = fate;
	spin_unlock_bh(&net->lock);
}

static enum krc_net_fate krc_test_none_comes(struct krc_net *net, const struct krp_lane_packet *p)
{
	return KRC_NET_LOSE;
}

static enum krc_net_fate krc_test_requests_wait(struct krc_net *net,
						const struct krp_lane_packet *p)
{
	return p->type == KRP_LANE_REQUEST ? KRC_NET_HOLD : KRC_NET_PASS;
}

/* ---- the hand-shake */

static void krc_test_first_contact_is_one_round_trip(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 qpn;

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	KUNIT_EXPECT_EQ(test, krc_net_sent(net, KRP_LANE_CHALLENGE), 0);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), 1);
	krc_net_want(net, 1, 1, 0, 0); /* from the other end: it is there */
	krc_net_has(net, 1);
	KUNIT_EXPECT_PTR_EQ(test, &krc_net_joined(net, net->holders[0].holder.qp)->qp,
			    net->holders[1].holder.qp);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), 1);
	qpn = krc_test_qpn(net, 0);
	krc_net_give_back(net, 0, false);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	KUNIT_EXPECT_EQ(test, krc_test_qpn(net, 0), qpn); /* the same */
}

static void krc_test_a_packet_of_each_type_is_lost(struct kunit *test)
{
	static const u8 types[] = { KRP_LANE_REQUEST, KRP_LANE_ACCEPT, KRP_LANE_READY,
				    KRP_LANE_HEARD };
	struct krc_net *net = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		net->first[types[i]] = 2;
		krc_net_want(net, i, 0, 1, i);
		krc_net_has(net, i);
		krc_test_wait(test, !READ_ONCE(net->first[types[i]]));
		KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), i + 1);
		KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), i + 1);
	}
	for (i = 0; i < ARRAY_SIZE(types); i++)
		krc_net_give_back(net, i, false);
	net->first[KRP_LANE_CLOSE] = 3;
	net->first[KRP_LANE_CLOSED] = 3;
	krc_net_down(net, 0);
	krc_test_wait(test, !krc_net_active(net, 1));
	KUNIT_EXPECT_EQ(test, net->first[KRP_LANE_CLOSE], 0);
	KUNIT_EXPECT_EQ(test, net->first[KRP_LANE_CLOSED], 0);
}

static void krc_test_both_at_once(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 i;

	krc_test_fate(net, krc_test_requests_wait);
	krc_net_want(net, 0, 0, 1, 0);
	krc_test_wait(test, krc_net_sent(net, KRP_LANE_REQUEST));
	krc_net_want(net, 1, 1, 0, 0);
	krc_test_wait(test,
		      !memcmp(net->last[KRP_LANE_REQUEST].gid, net->at[1].gid, KRP_GID_BYTES));
	krc_test_fate(net, NULL);
	krc_net_let_go(net);
	krc_net_has(net, 0);
	krc_net_has(net, 1);
	KUNIT_EXPECT_PTR_EQ(test, &krc_net_joined(net, net->holders[0].holder.qp)->qp,
			    net->holders[1].holder.qp);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, krc_net_active(net, i), 1);
		KUNIT_EXPECT_EQ(test, net->at[i].lanes->table.made, 1);
		/* that of the lane, and those that wait in INIT */
		krc_test_wait(test, atomic_read(&net->at[i].lanes->qps) <= 1 + KRC_LANES_SPARE);
	}
}

/* A port made anew, in the same generation, asks; what this end has asked went to where it was. */
static void krc_test_both_at_once_by_an_old_record(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lane_peer old;

	krc_net_peer(net, 0, &old);
	old.ud_qpn += 1000;
	krc_net_want_peer(net, 1, 1, &old, 0);
	krc_test_wait(test, krc_net_sent(net, KRP_LANE_REQUEST));
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_has(net, 1);
	KUNIT_EXPECT_PTR_EQ(test, &krc_net_joined(net, net->holders[0].holder.qp)->qp,
			    net->holders[1].holder.qp);
	KUNIT_EXPECT_EQ(test, net->at[1].lanes->table.made, 1);
}

static void krc_test_without_keys_the_table_and_a_cookie_decide(struct kunit *test)
{
	struct krc_net *net = test->priv;

	net->at[0].key = 0;
	net->at[1].key = 0;
	net->at[1].knows = false;
	krc_net_want(net, 0, 0, 1, 0);
	/* the CHALLENGE goes by the record of the look-up; each REQUEST behind it needs one again */
	krc_test_wait(test, krc_net_sent(net, KRP_LANE_CHALLENGE));
	KUNIT_EXPECT_NE(test, net->at[1].lookups, 0);
	/* by a later look-up than the first, if so much time has gone by */
	KUNIT_EXPECT_TRUE(test, !krc_net_active(net, 1) || READ_ONCE(net->at[1].lookups) > 1);
	net->at[1].knows = true;
	krc_net_has(net, 0);
}

/* A REQUEST that nobody has judged by a key, since there was none when it came, does not get by without. */
static void krc_test_a_key_comes_during_a_look_up(struct kunit *test)
{
	struct krc_net *net = test->priv;

	net->at[0].key = 0;
	net->at[1].key = 0;
	net->at[1].knows = false;
	net->at[1].learns = 4711;
	krc_net_want(net, 0, 0, 1, 0);
	krc_test_wait(test, READ_ONCE(net->at[1].lookups));
	krc_test_wait(test,
		      READ_ONCE(net->at[1].lanes->shake.unproved) > 1); /* those that follow */
	KUNIT_EXPECT_EQ(test, krc_net_sent(net, KRP_LANE_CHALLENGE), 0);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), 0);
	net->at[1].learns = 0;
	WRITE_ONCE(net->at[1].key, 0);
	krc_net_has(net, 0);
}

static void krc_test_a_port_reaches_itself(struct kunit *test)
{
	struct krc_net *net = test->priv;

	krc_net_want(net, 0, 0, 0, 1);
	krc_net_has(net, 0);
	KUNIT_EXPECT_EQ(test, krc_net_sent(net, KRP_LANE_REQUEST), 0);
	krc_net_give_back(net, 0, true);
	krc_net_want(net, 0, 0, 0, 1);
	krc_net_has(net, 0);
}

/* ---- peers that are not what they were */

static void krc_test_a_silent_peer(struct kunit *test)
{
	struct krc_net *net = test->priv;

	krc_test_fate(net, krc_test_none_comes);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_loses(net, 0, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), 0);
	krc_test_fate(net, NULL);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
}

static void krc_test_a_record_of_another_generation(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lane_peer peer;
	u32 sent;

	krc_net_peer(net, 1, &peer);
	peer.generation = cpu_to_le64(le64_to_cpu(peer.generation) - 1);
	krc_net_want_peer(net, 0, 0, &peer, 0);
	krc_net_loses(net, 0, -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), 0);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	/* that it is over is known from the lane: nobody is asked */
	sent = krc_net_sent(net, KRP_LANE_REQUEST);
	krc_net_want_peer(net, 1, 0, &peer, 1);
	krc_net_loses(net, 1, -ESTALE);
	KUNIT_EXPECT_EQ(test, krc_net_sent(net, KRP_LANE_REQUEST), sent);
}

/* Node 1 goes without a word, and comes back in another generation. */
static void krc_test_comes_back(struct krc_net *net)
{
	krc_test_fate(net, krc_test_none_comes);
	krc_net_down(net, 1);
	krc_test_fate(net, NULL);
	krc_net_up(net, 1);
}

/* Three lanes, by holders 0 to 2, to an older generation of node 1; there is place for a fourth. */
static void krc_test_outlived(struct krc_net *net)
{
	static const u8 indexes[] = { 0, 1, KRC_LANE_MESSAGES };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(indexes); i++) {
		krc_net_want(net, i, 0, 1, indexes[i]);
		krc_net_has(net, i);
	}
	krc_test_comes_back(net);
}

static void krc_test_all_outlived_end(struct krc_net *net)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		krc_net_loses(net, i, -ECONNRESET);
		krc_net_give_back(net, i, true);
	}
	krc_test_wait(net->test, krc_net_active(net, 0) == krc_net_active(net, 1));
}

static void krc_test_a_peer_comes_back_in_another_generation(struct kunit *test)
{
	struct krc_net *net = test->priv;

	krc_test_outlived(net);
	/* by another lane it says itself that it has another generation */
	krc_net_want(net, 3, 1, 0, KRC_LANE_PROBES);
	krc_net_has(net, 3);
	krc_test_all_outlived_end(net);
}

/* A maker of a lane to the new generation hears of it in the hand-shake: all of the old one end. */
static void krc_test_a_new_generation_answers(struct kunit *test)
{
	struct krc_net *net = test->priv;

	krc_test_outlived(net);
	krc_net_want(net, 3, 0, 1, KRC_LANE_PROBES);
	krc_net_has(net, 3);
	krc_test_all_outlived_end(net);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), 1);
}

/* So does whoever asks for a lane to the old one. */
static void krc_test_a_new_generation_refuses(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lane_peer old, peer;

	krc_net_peer(net, 1, &old);
	krc_test_outlived(net);
	krc_net_peer(net, 1, &peer);
	peer.generation = old.generation;
	krc_net_want_peer(net, 3, 0, &peer, KRC_LANE_PROBES);
	krc_net_loses(net, 3, -ESTALE);
	krc_test_all_outlived_end(net);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), 0);
}

/* Without keys the table has to say so, too. */
static void krc_test_a_new_generation_without_keys(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 i;

	net->at[0].key = 0;
	net->at[1].key = 0;
	krc_test_outlived(net);
	WRITE_ONCE(net->at[0].knows, false);
	krc_net_want(net, 3, 0, 1, KRC_LANE_PROBES);
	krc_net_has(net, 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, READ_ONCE(net->holders[i].lost), 0);
	krc_net_give_back(net, 3, true);
	krc_test_wait(test, krc_net_active(net, 0) == 3);
	WRITE_ONCE(net->at[0].knows, true);
	krc_net_want(net, 3, 0, 1, KRC_LANE_PROBES);
	krc_net_has(net, 3);
	krc_test_all_outlived_end(net);
}

/* A record at the address of a node that says a later generation ends no lane to it. */
static void krc_test_a_record_is_wrong(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lane_peer peer;
	u32 i;

	krc_net_peer(net, 1, &peer);
	peer.generation = cpu_to_le64(le64_to_cpu(peer.generation) + 1);
	for (i = 0; i < KRP_LANE_INDEXES; i++) {
		krc_net_want(net, i, 0, 1, i);
		krc_net_has(net, i);
		krc_net_want_peer(net, 4, 0, &peer, i);
		if (i < KRC_LANE_PROBES) { /* there is place for one more: it asks, and is told */
			krc_net_loses(net, 4, -ESTALE);
		} else {
			msleep(50);
			KUNIT_EXPECT_EQ(test, net->holders[4].ready + net->holders[4].lost, 0);
			krc_net_give_back(net, 4, false);
		}
	}
	for (i = 0; i < KRP_LANE_INDEXES; i++) {
		KUNIT_EXPECT_EQ(test, net->holders[i].lost, 0);
		KUNIT_EXPECT_NOT_NULL(test, krc_net_joined(net, net->holders[i].holder.qp));
	}
}

/* ---- packets that nobody ought to believe */

static void krc_test_another_key_makes_no_lane(struct kunit *test)
{
	struct krc_net *net = test->priv;

	net->at[0].key++;
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_loses(net, 0, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, net->at[1].lanes->table.made, 0);
	KUNIT_EXPECT_NE(test, net->at[1].lanes->shake.unproved, 0);
	net->at[0].key--;
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
}

static void krc_test_what_was_recorded_does_nothing(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krp_lane_packet *heard = kunit_kzalloc(test, sizeof(net->last), GFP_KERNEL), p;
	u32 type;

	KUNIT_ASSERT_NOT_NULL(test, heard);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_give_back(net, 0, true);
	krc_test_wait(test, !krc_net_active(net, 0) && !krc_net_active(net, 1));
	memcpy(heard, net->last, sizeof(net->last));
	for (type = KRP_LANE_REQUEST; type < KRP_LANE_TYPES; type++) {
		p = heard[type];
		krc_net_send(net, 0, &p, sizeof(p));
		krc_net_send(net, 1, &p, sizeof(p));
		p.lane = cpu_to_le64(le64_to_cpu(p.lane) + 1); /* which the MAC does not allow */
		krc_net_send(net, 1, &p, sizeof(p));
	}
	krc_test_wait(test, READ_ONCE(net->at[1].lanes->shake.unproved));
	/* nothing is left of the lane but its number */
	krc_test_wait(test, krp_list_empty(&net->at[1].lanes->table.resting));
	krc_net_send(net, 1, &heard[KRP_LANE_REQUEST], sizeof(p));
	krc_test_wait(test, READ_ONCE(net->at[1].lanes->table.late) == 1);
	KUNIT_EXPECT_EQ(test, net->at[0].lanes->table.made, 1);
	KUNIT_EXPECT_EQ(test, net->at[1].lanes->table.made, 1);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
}

/* A REQUEST of nobody, which the key proves not. */
static void krc_test_forge(struct krc_net *net, u32 nr, struct krp_lane_packet *p)
{
	*p = net->last[KRP_LANE_REQUEST];
	p->gid[1] = 0x55;
	p->gid[2] = nr;
	p->nonce = cpu_to_le64(nr + 1);
	krc_net_sign(1, p);
}

static void krc_test_a_flood_does_not_keep_peers_away(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_shake *shake = &net->at[1].lanes->shake;
	struct krp_lane_packet p;
	u32 i, n;

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_want(net, 1, 0, 1, 1);
	for (i = 0; i < 400 && !READ_ONCE(net->holders[1].ready); i++) {
		/* all that may come in a second has come, again and again */
		shake->tokens = 0;
		shake->tokens_ns = ktime_get_ns();
		shake->known_tokens = KRC_SHAKE_PACKETS;
		for (n = 0; n < 16; n++) {
			krc_test_forge(net, i * 16 + n, &p);
			krc_net_send(net, 1, &p, sizeof(p));
		}
		usleep_range(5000, 6000);
	}
	KUNIT_EXPECT_NE(test, READ_ONCE(shake->dropped), 0);
	krc_net_has(net, 1);
	KUNIT_EXPECT_EQ(test, net->at[1].lanes->table.made, 2);
}

/* Send a packet to node 1 again and again, all in one second, in which so many may come. */
static void krc_test_repeat(struct krc_net *net, const struct krp_lane_packet *p, u32 nr,
			    u32 tokens)
{
	struct krc_lanes *lanes = net->at[1].lanes;
	u32 i, n, before;

	lanes->shake.tokens = tokens;
	lanes->shake.known_tokens = 0;
	for (i = 0; i < nr; i++) {
		lanes->shake.tokens_ns = ktime_get_ns();
		for (n = 0; n < 2 * KRC_LANES_MAX; n++)
			lanes->slots[n].heard_ns = lanes->shake.tokens_ns;
		before = READ_ONCE(net->at[1].taken);
		krc_net_send(net, 1, p, sizeof(*p));
		krc_test_wait(net->test, READ_ONCE(net->at[1].taken) != before);
		flush_delayed_work(&lanes->work);
	}
}

/* Whoever has seen a packet, and sends it again, or its nonce, has no more computed than others. */
static void krc_test_a_flood_of_what_was_seen(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_net_node *node = &net->at[1];
	struct krp_lane_packet p;
	u32 verified;

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_give_back(net, 0, true);
	krc_test_wait(test, !krc_net_active(net, 0) && !krc_net_active(net, 1));
	/* nothing is left of the lane but its number */
	krc_test_wait(test, krp_list_empty(&node->lanes->table.resting));
	verified = READ_ONCE(node->verified);
	p = net->last[KRP_LANE_REQUEST];
	krc_test_repeat(net, &p, 50, 10);
	KUNIT_EXPECT_EQ(test, READ_ONCE(node->verified), verified + 10);
	KUNIT_EXPECT_EQ(test, READ_ONCE(node->lanes->table.late), 10ULL);
	node->lanes->shake.tokens = KRC_SHAKE_PACKETS;
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_test_wait(test, krc_net_sent(net, KRP_LANE_HEARD) >= 4);
	verified = READ_ONCE(node->verified);
	p = net->last[KRP_LANE_REQUEST];
	p.mac[0] ^= 1; /* its nonce is that of a lane */
	krc_test_repeat(net, &p, 200, 10);
	KUNIT_EXPECT_GE(test, READ_ONCE(node->verified), verified + 10);
	KUNIT_EXPECT_LE(test, READ_ONCE(node->verified), verified + 10 + KRC_SHAKE_OF_LANE);
	krc_net_want(net, 1, 1, 0, 0); /* by the same lane, which is as it was */
	krc_net_has(net, 1);
	KUNIT_EXPECT_EQ(test, node->lanes->table.made, 2);
}

/* What came to the queue pair of hand-shakes is told. */
static void krc_test_what_comes_is_counted(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lanes *lanes = net->at[1].lanes;
	struct krc_lanes_stats stats;
	struct krp_lane_packet p;
	u32 i;

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_lanes_stats(lanes, &stats);
	KUNIT_EXPECT_EQ(test, stats.lanes, 1U);
	KUNIT_EXPECT_EQ(test, stats.made, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.malformed + stats.unproved + stats.dropped + stats.mends, 0ULL);
	for (i = 0; i < 3; i++) {
		p = net->last[KRP_LANE_REQUEST];
		krc_net_send(net, 1, &p, sizeof(p) - 1 - i);
		p.mac[i] ^= 1;
		krc_net_send(net, 1, &p, sizeof(p));
	}
	p.version++;
	krc_net_send(net, 1, &p, sizeof(p));
	krc_test_wait(test, READ_ONCE(lanes->shake.malformed) == 4 &&
				    READ_ONCE(lanes->shake.unproved) == 3);
	krc_lanes_stats(lanes, &stats);
	KUNIT_EXPECT_EQ(test, stats.malformed, 4ULL);
	KUNIT_EXPECT_EQ(test, stats.unproved, 3ULL);
	KUNIT_EXPECT_EQ(test, stats.lanes, 1U);
	KUNIT_EXPECT_EQ(test, stats.made, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.dropped + stats.mends + stats.late, 0ULL);
}

static void krc_test_the_queue_pair_of_hand_shakes_fails(struct kunit *test)
{
	struct krc_net *net = test->priv;
	static const u8 large[KRC_SHAKE_STRIDE];
	u32 i;

	for (i = 0; i < 3; i++) {
		krc_net_send(net, 1, large, sizeof(large));
		krc_net_want(net, i, 0, 1, i);
		krc_net_has(net, i);
		KUNIT_EXPECT_EQ(test, net->at[1].lanes->shake.mends, i + 1);
	}
	krc_net_send(net, 0, large, sizeof(large)); /* it is to speak, and cannot */
	krc_net_want(net, 3, 0, 1, 3);
	krc_net_has(net, 3);
}

/* ---- lanes that fail */

static void krc_test_a_lane_fails_under_requests(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 qpn, i;

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_want(net, 1, 1, 0, 0);
	krc_net_has(net, 1);
	for (i = 0; i < 4; i++) {
		qpn = krc_test_qpn(net, 0);
		krc_net_give_back(net, 0, true); /* and it executes nothing any more */
		KUNIT_EXPECT_NULL(test, krc_net_joined(net, net->holders[1].holder.qp));
		krc_net_loses(net, 1, -ECONNRESET);
		krc_net_give_back(net, 1, true);
		krc_net_want(net, 0, 0, 1, 0);
		krc_net_has(net, 0);
		KUNIT_EXPECT_NE(test, krc_test_qpn(net, 0), qpn);
		krc_net_want(net, 1, 1, 0, 0);
		krc_net_has(net, 1);
	}
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), 1);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), 1);
}

static void krc_test_the_device_says_that_a_queue_pair_is_broken(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct ib_event event = { .event = IB_EVENT_QP_FATAL };

	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	event.device = net->holders[0].holder.qp->device;
	event.element.qp = net->holders[0].holder.qp;
	event.element.qp->event_handler(&event, event.element.qp->qp_context);
	krc_net_loses(net, 0, -ECONNRESET);
	krc_net_give_back(net, 0, true);
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
}

/* A SEND that finds no receive buffer breaks its lane at both ends: that of messages alone. */
static void krc_test_messages_break_no_lane_of_data(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 i, qpn;

	for (i = 0; i < 2; i++) { /* both ends of a lane of either kind are in use */
		krc_net_want(net, i, i, !i, 0);
		krc_net_has(net, i);
		krc_net_want(net, 2 + i, i, !i, KRC_LANE_MESSAGES);
		krc_net_has(net, 2 + i);
	}
	qpn = krc_test_qpn(net, 0);
	krc_net_give_back(net, 2, true);
	krc_net_loses(net, 3, -ECONNRESET);
	krc_net_give_back(net, 3, true);
	krc_net_want(net, 2, 0, 1, KRC_LANE_MESSAGES); /* none of data, though one were there */
	krc_net_has(net, 2);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, net->holders[i].lost, 0);
		KUNIT_EXPECT_NOT_NULL(test, krc_net_joined(net, net->holders[i].holder.qp));
	}
	KUNIT_EXPECT_EQ(test, krc_test_qpn(net, 0), qpn);
	krc_net_give_back(net, 0, false);
	krc_net_want(net, 4, 0, 1, KRC_LANE_MESSAGES); /* which holder 2 has */
	msleep(50);
	KUNIT_EXPECT_EQ(test, net->holders[4].ready, 0);
	krc_net_give_back(net, 2, false);
	krc_net_has(net, 4);
}

/* ---- bounds */

static void krc_test_bound(struct krc_net *net, u32 at)
{
	struct krc_lanes *lanes = net->at[at].lanes;

	spin_lock_bh(&lanes->lock);
	lanes->table.conf.max = KRC_TEST_BOUND;
	lanes->table.peers.limit = KRC_TEST_BOUND - KRC_TEST_KEPT;
	spin_unlock_bh(&lanes->lock);
}

static bool krc_test_is_there(struct krc_net *net, u32 from, u32 to, u32 index)
{
	struct krc_lanes *lanes = net->at[from].lanes;
	bool there;

	spin_lock_bh(&lanes->lock);
	there = krp_lanes_find(&lanes->table, net->at[to].gid, index);
	spin_unlock_bh(&lanes->lock);
	return there;
}

/* Lanes of node 0, as many as there may be: four to node 1, the others to node 2. */
static void krc_test_fill(struct krc_net *net)
{
	u32 i;

	krc_net_up(net, 2);
	krc_net_up(net, 3);
	krc_test_bound(net, 0);
	for (i = 0; i < KRC_TEST_BOUND; i++) {
		krc_net_want(net, i, 0, 1 + i / KRP_LANE_INDEXES, i % KRP_LANE_INDEXES);
		krc_net_has(net, i);
	}
}

static void krc_test_the_least_recently_used_one_goes(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 i;

	krc_test_fill(net);
	for (i = 0; i < KRC_TEST_BOUND; i++)
		krc_net_give_back(net, i, false);
	krc_net_want(net, 0, 0, 1, 0); /* once more */
	krc_net_has(net, 0);
	krc_net_give_back(net, 0, false);
	msleep(20);
	krc_net_want(net, 6, 0, 3, 0);
	krc_net_has(net, 6);
	for (i = 0; i < KRC_TEST_BOUND; i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    krc_test_is_there(net, 0, 1 + i / KRP_LANE_INDEXES,
						      i % KRP_LANE_INDEXES),
				    i != 1, "%u", i);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND);
	KUNIT_EXPECT_EQ(test, net->at[0].lanes->table.closed, 1);
	krc_test_wait(test, krc_net_active(net, 1) == 3); /* the peer knows */
}

static void krc_test_a_port_has_so_many_lanes(struct kunit *test)
{
	struct krc_net *net = test->priv;

	krc_test_fill(net); /* and all are in use */
	krc_net_want(net, 6, 0, 3, 0);
	krc_net_loses(net, 6, -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND);
	krc_net_want(net, 6, 0, 3, 0);
	msleep(50);
	krc_net_give_back(net, 3, false); /* before it has waited too long */
	krc_net_has(net, 6);
	KUNIT_EXPECT_FALSE(test, krc_test_is_there(net, 0, 1, 3));
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND);
}

static void krc_test_peers_do_not_get_all_of_them(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_lanes *lanes = net->at[1].lanes;
	u32 i;

	krc_net_up(net, 2);
	krc_net_up(net, 3);
	krc_test_bound(net, 1);
	for (i = 0; i < 4; i++) {
		krc_net_want(net, i, 0, 1, i);
		krc_net_has(net, i);
	}
	for (i = 0; i < KRC_TEST_KEPT; i++) { /* those are the node's own */
		krc_net_want(net, 4 + i, 1, 2, i);
		krc_net_has(net, 4 + i);
	}
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), KRC_TEST_BOUND);
	msleep(20);
	krc_net_want(net, 6, 3, 1, 0); /* one that node 1 does not use itself has to go */
	krc_test_wait(test, krc_lanes_wanted(net->at[0].lanes, &net->holders[0].holder) ==
				    KRC_LANE_WISH_NOW);
	krc_net_give_back(net, 0, false);
	krc_net_has(net, 6);
	KUNIT_EXPECT_EQ(test, lanes->table.peers.nr, KRC_TEST_BOUND - KRC_TEST_KEPT);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 1), KRC_TEST_BOUND);
	for (i = 0; i < KRC_TEST_KEPT; i++)
		KUNIT_EXPECT_EQ(test, net->holders[4 + i].lost, 0);
}

/* ---- payers */

/* @i wants a lane on the account of @who, and gets it, or not. */
static bool krc_test_gets(struct krc_net *net, u32 i, const void *who, u32 to, u32 index)
{
	net->holders[i].holder.payer = who;
	krc_net_want(net, i, 0, to, index);
	krc_test_wait(net->test,
		      READ_ONCE(net->holders[i].ready) || READ_ONCE(net->holders[i].lost));
	if (!net->holders[i].ready)
		KUNIT_EXPECT_EQ(net->test, net->holders[i].err, -EBUSY);
	return net->holders[i].ready;
}

static void krc_test_one_user_does_not_get_all(struct kunit *test)
{
	struct krc_net *net = test->priv;
	const struct krp_lanes *table;
	static const char who[4];
	u32 i;

	krc_net_up(net, 2);
	krc_net_up(net, 3);
	krc_test_bound(net, 0);
	table = &net->at[0].lanes->table;
	for (i = 0; i < KRC_TEST_BOUND / 2; i++)
		KUNIT_EXPECT_TRUE(test, krc_test_gets(net, i, &who[0], 1, i));
	KUNIT_EXPECT_FALSE(test, krc_test_gets(net, 3, &who[0], 2, 0)); /* half of them */
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND / 2);
	KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 3, &who[1], 2, 0));
	KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 4, &who[1], 2, 1));
	KUNIT_EXPECT_FALSE(test, krc_test_gets(net, 5, &who[1], 2, 2)); /* a third */
	KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 5, &who[2], 2, 2)); /* what was left */
	KUNIT_EXPECT_FALSE(test, krc_test_gets(net, 6, &who[3], 3, 0)); /* all are in use */
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND);
	krc_test_wait(test, net->at[0].lanes->payers_nr == 3); /* it has nothing */
	/* of those who have more, the one with the most closes one, not who has one */
	krc_net_give_back(net, 0, false);
	krc_net_give_back(net, 5, false);
	msleep(20);
	KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 6, &who[3], 3, 0));
	KUNIT_EXPECT_FALSE(test, krc_test_is_there(net, 0, 1, 0));
	KUNIT_EXPECT_TRUE(test, krc_test_is_there(net, 0, 2, 2));
	KUNIT_EXPECT_EQ(test, table->closed, 1);
}

/* A user who goes from peer to peer closes own lanes. */
static void krc_test_a_user_of_many_peers(struct kunit *test)
{
	struct krc_net *net = test->priv;
	static const char who[2];
	u32 i, most = 0;

	krc_net_up(net, 2);
	krc_net_up(net, 3);
	krc_net_up(net, 4);
	krc_test_bound(net, 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, krc_test_gets(net, i, &who[0], 1, i));
	for (i = 0; i < 2; i++)
		krc_net_give_back(net, i, false); /* it does not use them now */
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 2, &who[1], 2 + i % 3,
						      i % 2 ? 0 : KRC_LANE_MESSAGES));
		krc_net_give_back(net, 2, false);
		most = max(most, krc_net_active(net, 0));
		usleep_range(12000, 14000); /* longer than a lane must rest before it is closed */
	}
	KUNIT_EXPECT_LE(test, most, (u32)KRC_TEST_BOUND);
	KUNIT_EXPECT_NE(test, net->at[0].lanes->table.closed, 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, krc_test_is_there(net, 0, 1, i));
}

static int krc_test_count_user(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	++*(u32 *)arg;
	return 0;
}

/* How many users there are. */
static u32 krc_test_users(void)
{
	u32 nr = 0;

	krc_limits_walk(0, krc_test_count_user, &nr);
	return nr;
}

/* A user of this name opens something. Return: on whose account lanes are made then. */
static const void *krc_test_comes(struct kunit *test, const char *name,
				  struct krc_charge *ret_charge)
{
	struct krc_user *user = krc_user_get_named(name);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, user);
	err = krc_charge(user, KRC_RES_CONTEXT, ret_charge);
	krc_user_put(user);
	KUNIT_ASSERT_EQ(test, err, 0);
	return krc_charge_payer(ret_charge);
}

/* A user who goes and comes back has the lanes that were made before; nobody else has them. */
static void krc_test_a_payer_is_counted(struct kunit *test)
{
	struct krc_net *net = test->priv;
	struct krc_charge charge = {}, other = {};
	u32 i, users = krc_test_users();
	const void *who;

	krc_net_up(net, 2);
	krc_test_bound(net, 0);
	who = krc_test_comes(test, "lanes", &charge);
	for (i = 0; i < KRC_TEST_BOUND / 2; i++)
		KUNIT_EXPECT_TRUE(test, krc_test_gets(net, i, who, 1, i));
	for (i = 0; i < KRC_TEST_BOUND / 2; i++)
		krc_net_give_back(net, i, false);
	krc_uncharge(&charge);
	KUNIT_EXPECT_PTR_NE(test, krc_test_comes(test, "others", &other), who);
	KUNIT_EXPECT_PTR_EQ(test, krc_test_comes(test, "lanes", &charge), who);
	msleep(20); /* longer than a lane must rest before it is closed */
	KUNIT_EXPECT_TRUE(test, krc_test_gets(net, 3, who, 2, 0));
	KUNIT_EXPECT_EQ(test, net->at[0].lanes->payers_nr, 1);
	KUNIT_EXPECT_EQ(test, krc_net_active(net, 0), KRC_TEST_BOUND / 2);
	KUNIT_EXPECT_EQ(test, net->at[0].lanes->table.closed, 1);
	krc_uncharge(&charge);
	krc_uncharge(&other);
	KUNIT_EXPECT_EQ(test, krc_test_users(), users + 1);
	krc_net_give_back(net, 3, false);
	krc_net_down(net, 0);
	KUNIT_EXPECT_EQ(test, krc_test_users(), users);
}

/* ---- everything at once */

/* Whoever wants a lane has one or is told, whatever becomes of packets. */
static void krc_test_a_bad_network(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 round, i;

	krc_net_up(net, 2);
	net->odds = 4;
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 6; i++)
			krc_net_want(net, i, i % 3, (i + 1 + round % 2) % 3,
				     (round + i / 3) % KRC_LANE_MESSAGES);
		for (i = 0; i < 6; i++)
			krc_test_wait(test, READ_ONCE(net->holders[i].ready) ||
						    READ_ONCE(net->holders[i].lost));
		for (i = 0; i < 6; i++)
			krc_net_give_back(net, i, (round + i) % 5 == 0);
	}
	KUNIT_EXPECT_NE(test, net->lost, 0);
}

static void krc_test_a_port_ends_in_the_middle(struct kunit *test)
{
	struct krc_net *net = test->priv;
	u32 round, i, told;

	krc_net_up(net, 2);
	net->odds = 4;
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 12; i++)
			krc_net_want(net, i, i % 3, (i + 1) % 3, i % KRP_LANE_INDEXES);
		usleep_range(200 + 4000 * round, 300 + 4000 * round);
		krc_net_down(net, 0);
		for (i = 0; i < 12; i += 3) { /* those of the node that is gone */
			told = net->holders[i].ready + net->holders[i].lost;
			KUNIT_EXPECT_NE(test, net->holders[i].lost, 0);
			KUNIT_EXPECT_NE(test, told, 0);
			memset(&net->holders[i].holder.state, 0, sizeof(u8));
			net->holders[i].holder.slot = NULL;
			net->holders[i].holder.qp = NULL;
		}
		for (i = 0; i < 12; i++)
			if (i % 3)
				krc_net_give_back(net, i, false);
		krc_net_up(net, 0);
	}
	net->odds = 0;
	krc_net_want(net, 0, 0, 1, 0);
	krc_net_has(net, 0);
	krc_net_want(net, 1, 1, 2, 0);
	krc_net_has(net, 1);
}

static struct kunit_case krc_lanes_drive_cases[] = {
	KUNIT_CASE(krc_test_first_contact_is_one_round_trip),
	KUNIT_CASE(krc_test_a_packet_of_each_type_is_lost),
	KUNIT_CASE(krc_test_both_at_once),
	KUNIT_CASE(krc_test_both_at_once_by_an_old_record),
	KUNIT_CASE(krc_test_without_keys_the_table_and_a_cookie_decide),
	KUNIT_CASE(krc_test_a_key_comes_during_a_look_up),
	KUNIT_CASE(krc_test_a_port_reaches_itself),
	KUNIT_CASE(krc_test_a_silent_peer),
	KUNIT_CASE(krc_test_a_record_of_another_generation),
	KUNIT_CASE(krc_test_a_peer_comes_back_in_another_generation),
	KUNIT_CASE(krc_test_a_new_generation_answers),
	KUNIT_CASE(krc_test_a_new_generation_refuses),
	KUNIT_CASE(krc_test_a_new_generation_without_keys),
	KUNIT_CASE(krc_test_a_record_is_wrong),
	KUNIT_CASE(krc_test_another_key_makes_no_lane),
	KUNIT_CASE(krc_test_what_was_recorded_does_nothing),
	KUNIT_CASE(krc_test_a_flood_does_not_keep_peers_away),
	KUNIT_CASE(krc_test_a_flood_of_what_was_seen),
	KUNIT_CASE(krc_test_what_comes_is_counted),
	KUNIT_CASE(krc_test_the_queue_pair_of_hand_shakes_fails),
	KUNIT_CASE(krc_test_a_lane_fails_under_requests),
	KUNIT_CASE(krc_test_the_device_says_that_a_queue_pair_is_broken),
	KUNIT_CASE(krc_test_messages_break_no_lane_of_data),
	KUNIT_CASE(krc_test_the_least_recently_used_one_goes),
	KUNIT_CASE(krc_test_a_port_has_so_many_lanes),
	KUNIT_CASE(krc_test_peers_do_not_get_all_of_them),
	KUNIT_CASE(krc_test_one_user_does_not_get_all),
	KUNIT_CASE(krc_test_a_user_of_many_peers),
	KUNIT_CASE(krc_test_a_payer_is_counted),
	KUNIT_CASE(krc_test_a_bad_network),
	KUNIT_CASE(krc_test_a_port_ends_in_the_middle),
	{}
};

static struct kunit_suite krc_lanes_drive_suite = {
	.name = "krcore_lanes_drive",
	.init = krc_test_drive_init,
	.exit = krc_test_drive_exit,
	.test_cases = krc_lanes_drive_cases,
};
kunit_test_suite(krc_lanes_drive_suite);
