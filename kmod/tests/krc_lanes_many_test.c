// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the lanes of one port among 1000 nodes that come and go, by simulation of its table
 * (krp_lanes.h) with the bounds of a port, in a time of the test's own: packets arrive, get
 * lost, and nodes end without a word and come back in another generation.
 *
 * The hub's own users ask for lanes to nodes that are drawn, and nodes ask the hub for some. At all
 * times the bounds hold and the counts are those of what there is; what closes is the least recently
 * used; and everybody who asks again and again has a lane in the end.
 * Locking: none; a test runs alone.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "hw/verbs/lanes_priv.h"
#include "krp_hash.h"

#define KRC_MANY_NODES 1000
#define KRC_MANY_LANES 4 /* of a node, which reaches nobody but the hub */
#define KRC_MANY_KNOWN 4
#define KRC_MANY_USERS 3
#define KRC_MANY_FLIGHT 2048 /* packets under way, a power of two */
#define KRC_MANY_STEP_NS (1000 * NSEC_PER_USEC)
#define KRC_MANY_STEPS 60000
#define KRC_MANY_EVENT_STEPS 40 /* between two that want something */
#define KRC_MANY_ALONE_STEPS 8000 /* one user is alone for so long */
#define KRC_MANY_TURN 4 /* steps in which each node is looked after once */
#define KRC_MANY_USE_STEPS 20 /* a lane is used for so long */
#define KRC_MANY_STARVED_STEPS 10000 /* steps after which somebody starves */

/**
 * struct krc_many_node - A node that the hub may have lanes to.
 * @t: its table.
 * @entry: its entries.
 * @chains: its chains.
 * @known: what it remembers.
 * @users: payer of its own lanes.
 * @gid: of its port.
 * @generation: of the node.
 * @wants: step since which it asks the hub for a lane; 0: it does not.
 * @wanted: step since which a user of the hub wants a lane to it; 0: nobody does.
 * @user: that user.
 * @waits: entry of krc_many.waiting, while @wanted.
 * @back: step at which what uses the hub's lane ends; 0: nothing does.
 * @has: the hub's entry that is in use for it.
 */
struct krc_many_node {
	struct krp_lanes t;
	struct krp_lanes_entry entry[2 * KRC_MANY_LANES];
	struct krp_lanes_entry *chains[1];
	struct krp_lanes_known known[KRC_MANY_KNOWN];
	struct krp_lanes_payer users;
	u8 gid[KRP_GID_BYTES];
	u64 generation;
	u32 wants;
	u32 wanted;
	u32 user;
	struct krp_list waits;
	u32 back;
	struct krp_lanes_entry *has;
};

/**
 * struct krc_many - The hub and all others.
 * @test: the test.
 * @hub: table of the hub, with the bounds of a port.
 * @mem: its memory.
 * @users: its users.
 * @gid: of its port.
 * @node: the others.
 * @waiting: nodes that users of the hub want lanes to, first come first.
 * @flight: packets under way, first come first.
 * @head: packets that were sent.
 * @tail: packets that have come.
 * @now_ns: time.
 * @step: steps of it.
 * @qpn: of the next queue pair.
 * @seed: of what is drawn.
 * @calm: nothing is lost, and nobody goes, any more.
 * @asked: how often somebody began to want a lane.
 * @served: how often somebody has got one.
 * @longest: steps that somebody waited at most.
 * @most: lanes at once.
 * @gone: generations that have ended.
 * @alone: lanes that the first user had at most.
 */
struct krc_many {
	struct kunit *test;
	struct krp_lanes hub;
	struct krp_lanes_memory mem;
	struct krp_lanes_payer users[KRC_MANY_USERS];
	u8 gid[KRP_GID_BYTES];
	struct krc_many_node *node;
	struct krp_list waiting;
	struct krp_lane_packet *flight;
	u32 head;
	u32 tail;
	u64 now_ns;
	u32 step;
	u32 qpn;
	u64 seed;
	bool calm;
	u32 asked;
	u32 served;
	u32 longest;
	u32 most;
	u32 gone;
	u32 alone;
};

static u32 krc_many_draw(struct krc_many *m, u32 below)
{
	m->seed += KRP_GOLDEN;
	return krp_mix64(m->seed) % below;
}

static struct krc_many_node *krc_many_of(struct krc_many *m, const u8 *gid)
{
	u32 i = gid[14] << 8 | gid[15];

	return i ? &m->node[i - 1] : NULL; /* 0 is the hub */
}

static struct krp_lane_end krc_many_end(struct krc_many *m)
{
	return (struct krp_lane_end){ .qpn = 2 + m->qpn++ % 0xfffff0,
				      .psn = krc_many_draw(m, 1 << 24) };
}

static struct krp_value krc_many_record(u64 generation)
{
	struct krp_value value = { .generation = cpu_to_le64(generation), .kind = KRP_KIND_LANE };

	value.dct.ud_qpn = cpu_to_le32(5);
	value.dct.mtu = 4;
	value.dct.port = 1;
	return value;
}

/* ---- tables */

static void krc_many_node_up(struct krc_many *m, struct krc_many_node *n)
{
	struct krp_lanes_conf conf = krc_lanes_conf;
	const struct krp_lanes_memory mem = { .entry = n->entry,
					      .chains = n->chains,
					      .known = n->known,
					      .chains_nr = 1,
					      .known_nr = KRC_MANY_KNOWN };

	conf.max = KRC_MANY_LANES;
	conf.reserved = 1;
	n->generation++;
	KUNIT_ASSERT_EQ(m->test, krp_lanes_init(&n->t, &conf, &mem, n->gid, n->generation, 1), 0);
	krp_lanes_payer_init(&n->t, &n->users, KRC_MANY_LANES);
	n->wants = 0;
}

/* What the table of the hub says of itself is what is in it. */
static void krc_many_count(struct krc_many *m)
{
	u32 place[3] = {}, half = 0, peers = 0, users = 0, i;

	for (i = 0; i < 2 * KRC_LANES_MAX; i++) {
		const struct krp_lanes_entry *e = &m->mem.entry[i];

		place[e->place]++;
		half += e->half;
		peers += e->payer == &m->hub.peers;
		users += e->payer && e->payer != &m->hub.peers;
	}
	KUNIT_EXPECT_EQ(m->test, place[KRP_LANES_ACTIVE], m->hub.active);
	KUNIT_EXPECT_EQ(m->test, half, m->hub.half);
	KUNIT_EXPECT_EQ(m->test, peers, m->hub.peers.nr);
	for (i = 0; i < KRC_MANY_USERS; i++) {
		users -= m->users[i].nr;
		KUNIT_EXPECT_LE(m->test, m->users[i].nr, m->users[i].limit);
	}
	KUNIT_EXPECT_EQ(m->test, users, 0);
	KUNIT_EXPECT_EQ(m->test, peers + m->users[0].nr + m->users[1].nr + m->users[2].nr,
			m->hub.active);
	m->alone = max(m->alone, m->users[0].nr);
	KUNIT_EXPECT_LE(m->test, m->hub.active, (u32)KRC_LANES_MAX);
	KUNIT_EXPECT_LE(m->test, m->hub.peers.nr, (u32)KRC_LANES_MAX - KRC_LANES_RESERVED);
	KUNIT_EXPECT_LE(m->test, m->hub.half, 2 * krc_lanes_conf.half_max);
	m->most = max(m->most, m->hub.active);
}

/* ---- what ends say */

static void krc_many_say(struct krc_many *m, const struct krp_lane_packet *p)
{
	if ((!m->calm && !krc_many_draw(m, 20)) || m->head - m->tail == KRC_MANY_FLIGHT)
		return;
	m->flight[m->head++ % KRC_MANY_FLIGHT] = *p;
}

/* Pull a machine; its queue pair does at once what it is told. */
static void krc_many_pull(struct krc_many *m, struct krp_lanes *t, struct krp_lanes_entry *e)
{
	struct krp_lane_todo todo;
	u32 i;

	for (i = 0; i < 64 && e->place != KRP_LANES_FREE; i++) {
		switch (krp_lane_next(&e->lane, m->now_ns, &todo)) {
		case KRP_LANE_SEND:
			krc_many_say(m, &todo.packet);
			break;
		case KRP_LANE_CONNECT:
			krp_lane_connected(&e->lane, m->now_ns, 0);
			break;
		case KRP_LANE_STOP:
			if (!e->busy)
				krp_lane_drained(&e->lane, m->now_ns);
			break;
		case KRP_LANE_RESET:
			krp_lane_reset(&e->lane, m->now_ns);
			break;
		case KRP_LANE_WAIT:
		case KRP_LANE_FORGET:
			krp_lanes_settle(t, e);
			return;
		default:
			break;
		}
		KUNIT_EXPECT_NULL(m->test, krp_lane_wrong(&e->lane));
	}
}

/* Which lane of the payers the next one to be closed must be: computed apart from the table's lists. */
static bool krc_many_is_oldest(struct krc_many *m, const struct krp_lanes_entry *victim)
{
	u32 i;

	for (i = 0; i < 2 * KRC_LANES_MAX; i++) {
		const struct krp_lanes_entry *e = &m->mem.entry[i];

		if (e != victim && e->place == KRP_LANES_ACTIVE && e->payer == victim->payer &&
		    krp_lanes_evictable(&m->hub, e, m->now_ns) && e->used_ns < victim->used_ns)
			return false;
	}
	return true;
}

static void krc_many_answer(struct krc_many *m, struct krp_lanes *t,
			    const struct krp_lane_packet *p, u32 type, u32 status)
{
	struct krp_lane_packet answer;

	krp_lanes_answer(p, type, t->generation, &answer);
	answer.status = cpu_to_le32(status);
	if (type == KRP_LANE_CHALLENGE) {
		answer.stamp = cpu_to_le64(m->now_ns / KRP_LANE_NS_PER_MS);
		answer.proof = answer.stamp;
	}
	krc_many_say(m, &answer);
}

static void krc_many_request(struct krc_many *m, struct krp_lanes *t,
			     const struct krp_lane_packet *p)
{
	struct krp_lanes_facts facts = { .proof = le64_to_cpu(p->stamp) ?: 1, .proved = 1 };
	struct krp_lane_ports ports = { .mtu = 4, .max_rd_atomic = 16 };
	struct krp_lane_end own = krc_many_end(m);
	struct krp_lanes_entry *pull, *e = NULL;
	enum krp_lanes_verdict verdict;
	u32 status = 0;

	verdict = krp_lanes_judge(t, m->now_ns, p, &facts, &status, &pull);
	if (pull) {
		if (t == &m->hub)
			KUNIT_EXPECT_TRUE(m->test, krc_many_is_oldest(m, pull));
		krc_many_pull(m, t, pull);
	}
	switch (verdict) {
	case KRP_LANES_AGAIN:
		e = krp_lanes_received(t, m->now_ns, p);
		break;
	case KRP_LANES_CHALLENGE:
		krc_many_answer(m, t, p, KRP_LANE_CHALLENGE, 0);
		break;
	case KRP_LANES_REFUSE:
		krc_many_answer(m, t, p, KRP_LANE_REFUSE, status);
		break;
	case KRP_LANES_REPLACE:
		while ((e = krp_lanes_replace(t, p->gid, le64_to_cpu(p->generation), p->index)))
			krc_many_pull(m, t, e);
		break;
	case KRP_LANES_ACCEPT:
		e = krp_lanes_accept(t, m->now_ns, p, &ports, &own);
		break;
	default:
		break;
	}
	if (e)
		krc_many_pull(m, t, e);
}

static void krc_many_take(struct krc_many *m, const struct krp_lane_packet *p)
{
	struct krc_many_node *n = krc_many_of(m, p->peer_gid);
	struct krp_lanes *t = n ? &n->t : &m->hub;
	struct krp_lane_packet answer;
	struct krp_lanes_entry *e;

	if (p->type == KRP_LANE_REQUEST) {
		krc_many_request(m, t, p);
		return;
	}
	e = krp_lanes_received(t, m->now_ns, p);
	if (e)
		krc_many_pull(m, t, e);
	else if (krp_lanes_unknown(t, p, &answer))
		krc_many_say(m, &answer);
}

/* ---- who wants lanes */

/* Ask for a lane. Return: whether one is being made. */
static bool krc_many_make(struct krc_many *m, struct krp_lanes *t, struct krp_lanes_payer *payer,
			  const u8 *gid, u64 generation, u32 index)
{
	struct krp_value value = krc_many_record(t->generation);
	struct krp_lane_ports ports = { .generation = t->generation,
					.peer_generation = generation,
					.index = index,
					.mtu = 4,
					.max_rd_atomic = 16 };
	struct krp_lane_end own = krc_many_end(m);
	struct krp_lanes_entry *e = NULL, *victim;

	memcpy(ports.gid, t->gid, KRP_GID_BYTES);
	memcpy(ports.peer_gid, gid, KRP_GID_BYTES);
	if (!krp_lanes_room(t, payer, m->now_ns, &victim))
		e = krp_lanes_make(t, payer, &ports, &own, 1 + krc_many_draw(m, U32_MAX), &value,
				   m->now_ns);
	if (victim) {
		if (t == &m->hub)
			KUNIT_EXPECT_TRUE(m->test, krc_many_is_oldest(m, victim));
		krc_many_pull(m, t, victim);
	}
	if (e)
		krc_many_pull(m, t, e);
	return e;
}

static void krc_many_served(struct krc_many *m, u32 *since)
{
	m->longest = max(m->longest, m->step - *since);
	m->served++;
	*since = 0;
}

/* A user of the hub wants a lane to a node, uses it for a while, and gives it back. */
static void krc_many_hub_wants(struct krc_many *m, struct krc_many_node *n)
{
	struct krp_lanes_entry *e = krp_lanes_find(&m->hub, n->gid, 0), *old;

	if (e && e->lane.ports.peer_generation < n->generation) { /* it has heard of another one */
		while ((old = krp_lanes_replace(&m->hub, n->gid, n->generation, KRP_LANE_INDEXES)))
			krc_many_pull(m, &m->hub, old);
		return;
	}
	if (!e) {
		krc_many_make(m, &m->hub, &m->users[n->user], n->gid, n->generation, 0);
	} else if (e->lane.state == KRP_LANE_UP) {
		krp_lanes_use(e, m->now_ns);
		n->has = e;
		n->back = m->step + KRC_MANY_USE_STEPS;
		krp_list_del(&n->waits);
		krc_many_served(m, &n->wanted);
	}
}

static void krc_many_node_wants(struct krc_many *m, struct krc_many_node *n)
{
	struct krp_lanes_entry *e = krp_lanes_find(&n->t, m->gid, 1);

	if (!e)
		krc_many_make(m, &n->t, &n->users, m->gid, m->hub.generation, 1);
	else if (e->lane.state == KRP_LANE_UP)
		krc_many_served(m, &n->wants);
}

static void krc_many_give_back(struct krc_many *m, struct krc_many_node *n)
{
	struct krp_lanes_entry *e = n->has;

	n->has = NULL;
	n->back = 0;
	krp_lanes_unuse(e, m->now_ns);
	if (!e->busy)
		krp_lane_drained(&e->lane, m->now_ns);
	krc_many_pull(m, &m->hub, e);
}

/* ---- time */

static void krc_many_work_node(struct krc_many *m, struct krc_many_node *n)
{
	u32 i;

	if (n->back && m->step >= n->back)
		krc_many_give_back(m, n);
	if (n->wants)
		krc_many_node_wants(m, n);
	for (i = 0; i < ARRAY_SIZE(n->entry); i++) /* those that rest, too */
		if (n->entry[i].place != KRP_LANES_FREE)
			krc_many_pull(m, &n->t, &n->entry[i]);
}

/* As the work item of a port goes through those who wait. */
static void krc_many_work_hub(struct krc_many *m)
{
	struct krp_list *at, *next;

	for (at = m->waiting.next; at != &m->waiting; at = next) {
		next = at->next;
		krc_many_hub_wants(m, krp_entry(at, struct krc_many_node, waits));
	}
}

/* Somebody wants something, or a node goes and comes back in another generation. */
static void krc_many_events(struct krc_many *m)
{
	struct krc_many_node *n = &m->node[krc_many_draw(m, KRC_MANY_NODES)];

	if (!n->wanted && !n->back) {
		n->wanted = m->step;
		krp_list_add(&n->waits, &m->waiting);
		/* most are of one user, who wants to reach everybody */
		n->user = m->step < KRC_MANY_ALONE_STEPS || krc_many_draw(m, 8)
				  ? 0
				  : 1 + krc_many_draw(m, KRC_MANY_USERS - 1);
		m->asked++;
	}
	n = &m->node[krc_many_draw(m, KRC_MANY_NODES)];
	if (m->step >= KRC_MANY_ALONE_STEPS && !n->wants) {
		n->wants = m->step;
		m->asked++;
	}
	n = &m->node[krc_many_draw(m, KRC_MANY_NODES)];
	if (!krc_many_draw(m, 8)) {
		if (n->wants)
			m->asked--; /* nobody is there who could be served */
		krc_many_node_up(m, n);
		m->gone++;
	}
}

static void krc_many_tick(struct krc_many *m)
{
	struct krp_lanes_entry *e;
	u32 i, end = m->head;

	m->step++;
	m->now_ns += KRC_MANY_STEP_NS;
	for (; m->tail != end; m->tail++) {
		struct krp_lane_packet p = m->flight[m->tail % KRC_MANY_FLIGHT];

		krc_many_take(m, &p);
	}
	if (!m->calm && !(m->step % KRC_MANY_EVENT_STEPS))
		krc_many_events(m);
	for (i = m->step % KRC_MANY_TURN; i < KRC_MANY_NODES; i += KRC_MANY_TURN)
		krc_many_work_node(m, &m->node[i]);
	for (i = m->step % KRC_MANY_TURN; i < 2 * KRC_LANES_MAX; i += KRC_MANY_TURN)
		if (m->mem.entry[i].place != KRP_LANES_FREE)
			krc_many_pull(m, &m->hub, &m->mem.entry[i]);
	if (!(m->step % KRC_MANY_TURN))
		krc_many_work_hub(m);
	e = krp_lanes_idle(&m->hub, m->now_ns);
	if (e)
		krc_many_pull(m, &m->hub, e);
	if (!(m->step % 64))
		krc_many_count(m);
}

/* ---- the world */

static int krc_many_init(struct kunit *test)
{
	struct krc_many *m = kvzalloc(sizeof(*m), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	test->priv = m;
	m->test = test;
	m->now_ns = 1000 * NSEC_PER_SEC;
	m->mem.chains_nr = KRC_LANES_CHAINS;
	m->mem.known_nr = KRC_LANES_KNOWN;
	m->mem.entry = kvcalloc(2 * KRC_LANES_MAX, sizeof(*m->mem.entry), GFP_KERNEL);
	m->mem.chains = kvcalloc(KRC_LANES_CHAINS, sizeof(*m->mem.chains), GFP_KERNEL);
	m->mem.known = kvcalloc(KRC_LANES_KNOWN, sizeof(*m->mem.known), GFP_KERNEL);
	m->node = kvcalloc(KRC_MANY_NODES, sizeof(*m->node), GFP_KERNEL);
	m->flight = kvcalloc(KRC_MANY_FLIGHT, sizeof(*m->flight), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test,
			  m->mem.entry && m->mem.chains && m->mem.known && m->node && m->flight);
	m->gid[0] = 0xfe;
	krp_list_init(&m->waiting);
	KUNIT_ASSERT_EQ(test, krp_lanes_init(&m->hub, &krc_lanes_conf, &m->mem, m->gid, 7, 3), 0);
	for (i = 0; i < KRC_MANY_USERS; i++)
		krp_lanes_payer_init(&m->hub, &m->users[i], KRC_LANES_MAX / 2);
	for (i = 0; i < KRC_MANY_NODES; i++) {
		m->node[i].gid[0] = 0xfe;
		m->node[i].gid[14] = (i + 1) >> 8;
		m->node[i].gid[15] = (i + 1) & 0xff;
		krc_many_node_up(m, &m->node[i]);
	}
	return 0;
}

static void krc_many_exit(struct kunit *test)
{
	struct krc_many *m = test->priv;

	kvfree(m->flight);
	kvfree(m->node);
	kvfree(m->mem.known);
	kvfree(m->mem.chains);
	kvfree(m->mem.entry);
	kvfree(m);
}

static void krc_test_nodes_that_come_and_go(struct kunit *test)
{
	struct krc_many *m = test->priv;
	u32 i, left = 0;

	while (m->step < KRC_MANY_STEPS)
		krc_many_tick(m);
	m->calm = true; /* nobody comes any more: who still waits is served */
	while (m->step < KRC_MANY_STEPS + KRC_MANY_STARVED_STEPS && m->served < m->asked)
		krc_many_tick(m);
	krc_many_count(m);
	for (i = 0; i < KRC_MANY_NODES; i++)
		left += !!m->node[i].wants + !!m->node[i].wanted;
	kunit_info(test,
		   "%u asked, %u served, %u gone, at most %u lanes and %u steps, %llu closed\n",
		   m->asked, m->served, m->gone, m->most, m->longest, m->hub.closed);
	KUNIT_EXPECT_EQ(test, left, 0);
	KUNIT_EXPECT_EQ(test, m->served, m->asked);
	KUNIT_EXPECT_EQ(test, m->most, (u32)KRC_LANES_MAX); /* the bound was reached */
	KUNIT_EXPECT_EQ(test, m->alone, m->users[0].limit); /* and that of a user */
	KUNIT_EXPECT_LT(test, m->longest, (u32)KRC_MANY_STARVED_STEPS);
	KUNIT_EXPECT_GT(test, m->hub.closed, 300ULL);
	KUNIT_EXPECT_GT(test, m->gone, 100U);
	for (i = 0; i < KRC_MANY_USERS; i++)
		KUNIT_EXPECT_NE(test, m->users[i].nr, 0);
}

static struct kunit_case krc_lanes_many_cases[] = { KUNIT_CASE(krc_test_nodes_that_come_and_go),
						    {} };

static struct kunit_suite krc_lanes_many_suite = {
	.name = "krcore_lanes_many",
	.init = krc_many_init,
	.exit = krc_many_exit,
	.test_cases = krc_lanes_many_cases,
};
kunit_test_suite(krc_lanes_many_suite);
