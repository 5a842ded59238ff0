// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All lanes of a port (proto/krp_lanes.h), rule by rule: what a REQUEST is answered, who gets a
 * lane, whose is closed, what is remembered of peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/lane_world.h"

#define MS LW_MS
#define NODES 1000

static __u64 now_ns;
static struct krp_lane_todo todo;

#define LANES 8

static struct krp_lanes_conf table_conf = { .idle_min_ns = 10 * MS,
					    .idle_ns = 60000 * MS,
					    .max = LANES,
					    .reserved = 2,
					    .of_pair = 2,
					    .half_max = 2 };
static struct krp_lanes_entry entries[2 * LANES];
static struct krp_lanes_entry *chains[16];
static struct krp_lanes_known known[KRP_LANES_WAYS];
static struct krp_lanes t;
static struct krp_lanes_payer user[3];
static struct krp_lanes_facts facts;
static __u32 status;

static int begin(void **state)
{
	static const __u8 gid[KRP_GID_BYTES] = { 0xfe, [8] = 0x80 };
	struct krp_lanes_memory mem = { .entry = entries,
					.chains = chains,
					.known = known,
					.chains_nr = 16,
					.known_nr = KRP_LANES_WAYS };
	unsigned int i;

	(void)state;
	now_ns = 100000 * MS;
	table_conf.lane = lw_conf;
	assert_int_equal(krp_lanes_init(&t, &table_conf, &mem, gid, 6, 1), 0);
	for (i = 0; i < 3; i++)
		krp_lanes_payer_init(&t, &user[i], 6);
	facts = (struct krp_lanes_facts){ .proof = 99, .proved = 1 };
	return 0;
}

static void set_gid(__u8 *gid, unsigned int nr)
{
	memset(gid, 0, KRP_GID_BYTES);
	gid[0] = 0xfe;
	gid[8] = 0x90;
	gid[14] = (__u8)(nr >> 8);
	gid[15] = (__u8)nr;
}

/* Pull an entry; what it sends is of no interest. Its commands are done at once. */
static void pull(struct krp_lanes_entry *e)
{
	enum krp_lane_do what;

	for (;;) {
		what = krp_lane_next(&e->lane, now_ns, &todo);
		if (what == KRP_LANE_CONNECT)
			krp_lane_connected(&e->lane, now_ns, 0);
		else if (what == KRP_LANE_STOP && !e->busy)
			krp_lane_drained(&e->lane, now_ns);
		else if (what == KRP_LANE_RESET)
			krp_lane_reset(&e->lane, now_ns);
		else if (what == KRP_LANE_WAIT || what == KRP_LANE_FORGET)
			break;
		assert_null(krp_lane_wrong(&e->lane));
	}
	krp_lanes_settle(&t, e);
}

/* What the peer of an entry says. */
static void peer_says(struct krp_lanes_entry *e, unsigned int type)
{
	struct krp_lane_packet p;

	memset(&p, 0, sizeof(p));
	p.magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p.version = KRP_LANE_VERSION;
	p.type = (__u8)type;
	p.flags = !e->lane.requester;
	p.index = e->lane.ports.index;
	p.lane = krp_cpu_to_le64(e->lane.number);
	p.nonce = krp_cpu_to_le64(e->lane.nonce);
	p.generation = krp_cpu_to_le64(e->lane.ports.peer_generation);
	p.peer_generation = krp_cpu_to_le64(6);
	memcpy(p.gid, e->lane.ports.peer_gid, KRP_GID_BYTES);
	memcpy(p.peer_gid, t.gid, KRP_GID_BYTES);
	if (type == KRP_LANE_ACCEPT) {
		p.mtu = 1;
		p.max_rd_atomic = 1;
		p.qpn = krp_cpu_to_le32(5);
	}
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_OK);
	assert_ptr_equal(krp_lanes_received(&t, now_ns, &p), e);
	pull(e);
}

/* A user makes a lane to a node. Return: what krp_lanes_room() says. */
static int make(struct krp_lanes_payer *payer, unsigned int node)
{
	struct krp_lane_ports ports = lw_ports_b;
	struct krp_value value = lw_record(6);
	struct krp_lanes_entry *e, *closed;
	int err = krp_lanes_room(&t, payer, now_ns, &closed);

	if (closed) {
		pull(closed);
		if (closed->lane.state == KRP_LANE_ENDING)
			peer_says(closed, KRP_LANE_CLOSED);
	}
	if (err)
		return err;
	memcpy(ports.gid, t.gid, sizeof(ports.gid));
	set_gid(ports.peer_gid, node);
	ports.index = 0;
	e = krp_lanes_make(&t, payer, &ports, &lw_own_b, 1 + node, &value, now_ns);
	assert_non_null(e);
	pull(e);
	peer_says(e, KRP_LANE_ACCEPT);
	peer_says(e, KRP_LANE_READY);
	peer_says(e, KRP_LANE_HEARD);
	assert_int_equal(e->lane.state, KRP_LANE_UP);
	return 0;
}

static struct krp_lanes_entry *lane_to(unsigned int node)
{
	__u8 gid[KRP_GID_BYTES];

	set_gid(gid, node);
	return krp_lanes_find(&t, gid, 0);
}

static struct krp_lane_packet request_of(unsigned int node, __u64 number)
{
	struct krp_lane_packet p;

	memset(&p, 0, sizeof(p));
	p.magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p.version = KRP_LANE_VERSION;
	p.type = KRP_LANE_REQUEST;
	p.flags = KRP_LANE_REQUESTER;
	p.mtu = 5;
	p.max_rd_atomic = 1;
	p.lane = krp_cpu_to_le64(number);
	p.nonce = krp_cpu_to_le64(1000 + number);
	p.generation = krp_cpu_to_le64(20);
	p.peer_generation = krp_cpu_to_le64(6);
	set_gid(p.gid, node);
	memcpy(p.peer_gid, t.gid, KRP_GID_BYTES);
	p.qpn = krp_cpu_to_le32(5);
	p.value = lw_record(20);
	return p;
}

static enum krp_lanes_verdict judge(const struct krp_lane_packet *p)
{
	struct krp_lanes_entry *closed;
	enum krp_lanes_verdict verdict;

	assert_int_equal(krp_lane_check(p, sizeof(*p)), KRP_LANE_OK);
	verdict = krp_lanes_judge(&t, now_ns, p, &facts, &status, &closed);
	if (closed) {
		pull(closed);
		peer_says(closed, KRP_LANE_CLOSED);
	}
	return verdict;
}

static struct krp_lanes_entry *accept_it(const struct krp_lane_packet *p)
{
	struct krp_lane_ports ports = { .mtu = 3, .max_rd_atomic = 4 };
	struct krp_lanes_entry *e;

	assert_int_equal(judge(p), KRP_LANES_ACCEPT);
	e = krp_lanes_accept(&t, now_ns, p, &ports, &lw_own_b);
	assert_non_null(e);
	pull(e);
	return e;
}

static void with_cookie(struct krp_lane_packet *p, __u64 ms, __u64 proof)
{
	p->stamp = krp_cpu_to_le64(ms);
	p->proof = krp_cpu_to_le64(proof);
}

/* A lane that a node has requested is UP. */
static struct krp_lanes_entry *peer_makes(unsigned int node, __u64 number)
{
	struct krp_lane_packet p = request_of(node, number);
	struct krp_lanes_entry *e;

	if (judge(&p) == KRP_LANES_CHALLENGE) {
		now_ns += 2 * MS;
		with_cookie(&p, now_ns / MS, 99);
	}
	e = accept_it(&p);
	peer_says(e, KRP_LANE_READY);
	peer_says(e, KRP_LANE_HEARD);
	assert_int_equal(e->lane.state, KRP_LANE_UP);
	return e;
}

static void gone(struct krp_lanes_entry *e)
{
	krp_lane_failed(&e->lane, -EIO);
	pull(e);
	assert_int_equal(e->place, KRP_LANES_RESTING);
}

static void test_requests_that_are_refused(void **state)
{
	struct krp_lane_packet p = request_of(1, 1);

	(void)state;
	p.peer_generation = krp_cpu_to_le64(5);
	assert_int_equal(judge(&p), KRP_LANES_REFUSE);
	assert_int_equal(status, KRP_LANE_STALE);
	p = request_of(1, 1);
	p.index = 2;
	assert_int_equal(judge(&p), KRP_LANES_REFUSE);
	assert_int_equal(status, KRP_LANE_INDEX);
	p = request_of(1, 1);
	t.shut = 1;
	assert_int_equal(judge(&p), KRP_LANES_REFUSE);
	assert_int_equal(status, KRP_LANE_SHUT);
	assert_int_equal(make(&user[0], 3), -ESHUTDOWN);
	assert_int_equal(t.active, 0);
}

static void test_a_request_makes_one_lane(void **state)
{
	struct krp_lane_packet p = request_of(1, 5), q;
	struct krp_lanes_entry *e;

	(void)state;
	e = accept_it(&p);
	assert_int_equal(judge(&p), KRP_LANES_AGAIN);
	gone(e);
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* its lane rests */
	now_ns += 1000 * MS;
	pull(e);
	assert_int_equal(e->place, KRP_LANES_FREE);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	assert_int_equal(t.late, 1);
	q = request_of(1, 4);
	assert_int_equal(judge(&q), KRP_LANES_DROP);
	q.index = 1; /* each index has its numbers */
	assert_int_equal(judge(&q), KRP_LANES_ACCEPT);
	q = request_of(1, 6);
	assert_int_equal(judge(&q), KRP_LANES_ACCEPT);
}

static void test_generations(void **state)
{
	struct krp_lane_packet p = request_of(1, 5);
	struct krp_lanes_entry *e = accept_it(&p), *f;
	struct krp_value newer = lw_record(30);

	(void)state;
	p = request_of(1, 9);
	assert_int_equal(judge(&p), KRP_LANES_REPLACE); /* it has lost its end */
	p.generation = krp_cpu_to_le64(19);
	p.value = lw_record(19);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	p = request_of(1, 1);
	p.generation = krp_cpu_to_le64(21);
	p.value = lw_record(21);
	p.index = 1; /* whatever the index */
	assert_int_equal(judge(&p), KRP_LANES_REPLACE);
	facts.record = &newer;
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* the table knows a newer one */
	facts.record = NULL;
	f = krp_lanes_replace(&t, p.gid, 21, 1);
	assert_ptr_equal(f, e);
	pull(e);
	assert_null(krp_lanes_replace(&t, p.gid, 21, 1));
	assert_int_equal(e->lane.error, -ECONNRESET);
	e = accept_it(&p);
	assert_int_equal(e->lane.ports.peer_generation, 21);
	p = request_of(1, 100);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
}

/* A new generation ends lanes to older ones, and no REQUEST of this port to it. */
static void test_a_request_to_a_new_generation_stays(void **state)
{
	struct krp_lane_ports ports = lw_ports_b;
	struct krp_lane_packet p = request_of(1, 1);
	struct krp_value value = lw_record(6);
	struct krp_lanes_entry *old = peer_makes(1, 1), *e;

	(void)state;
	memcpy(ports.gid, t.gid, sizeof(ports.gid));
	memcpy(ports.peer_gid, p.gid, sizeof(ports.peer_gid));
	ports.peer_generation = 21;
	e = krp_lanes_make(&t, &user[0], &ports, &lw_own_b, 5, &value, now_ns);
	assert_non_null(e);
	pull(e);
	p.generation = krp_cpu_to_le64(21);
	p.value = lw_record(21);
	p.index = 1;
	assert_int_equal(judge(&p), KRP_LANES_REPLACE);
	assert_ptr_equal(krp_lanes_replace(&t, p.gid, 21, 1), old);
	pull(old);
	assert_null(krp_lanes_replace(&t, p.gid, 21, 1));
	assert_int_equal(e->lane.state, KRP_LANE_ASKING);
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* this port's counts */
}

/* A record may speak of a generation that there is not: who asks by it hears the true one. */
static void test_a_record_makes_no_generation(void **state)
{
	struct krp_lane_ports ports = lw_ports_b;
	struct krp_lane_packet p = request_of(1, 1);
	struct krp_value value = lw_record(6);
	struct krp_lanes_entry *asks, *e;

	(void)state;
	memcpy(ports.gid, t.gid, sizeof(ports.gid));
	memcpy(ports.peer_gid, p.gid, sizeof(ports.peer_gid));
	ports.peer_generation = 21;
	ports.index = 0;
	asks = krp_lanes_make(&t, &user[0], &ports, &lw_own_b, 5, &value, now_ns);
	assert_non_null(asks);
	pull(asks);
	assert_int_equal(judge(&p),
			 KRP_LANES_DROP); /* of that index there is one, to the wrong generation */
	p.index = 1;
	e = accept_it(&p);
	assert_int_equal(e->lane.ports.peer_generation, 20);
	assert_int_equal(asks->lane.state, KRP_LANE_ASKING);
	peer_says(asks, KRP_LANE_ACCEPT); /* there is, after all */
	p = request_of(1, 2);
	p.index = 1;
	assert_int_equal(judge(&p), KRP_LANES_DROP);
}

static void test_cookies_without_keys(void **state)
{
	struct krp_lane_packet p = request_of(1, 1);
	struct krp_value record = lw_record(20);
	__u64 now_ms = now_ns / MS;

	(void)state;
	facts.proved = 0;
	assert_int_equal(judge(&p), KRP_LANES_LOOK_UP);
	facts.fresh = 1;
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* there is no such node */
	facts.record = &record;
	record.generation = krp_cpu_to_le64(19);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	record = lw_record(20);
	record.dct.ud_qpn = krp_cpu_to_le32(10);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	record = lw_record(20);
	record.kind = KRP_KIND_RAW;
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	facts.fresh = 0;
	assert_int_equal(judge(&p), KRP_LANES_LOOK_UP);
	record = lw_record(20);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, now_ms, 98);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, now_ms + 1, 99);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, now_ms - KRP_LANE_COOKIE_MS - 1, 99);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, now_ms - KRP_LANE_COOKIE_MS, 99);
	assert_int_equal(judge(&p), KRP_LANES_ACCEPT);
	assert_int_equal(t.active, 0); /* nothing was kept for any of these */
}

/* Half of a hand-shake is cheap to have begun: above some, a cookie; above twice as many, none. */
static void test_a_flood_of_requests(void **state)
{
	struct krp_lane_packet p;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		p = request_of(i, 1);
		if (i >= 2) {
			assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
			with_cookie(&p, now_ns / MS, 99);
		}
		accept_it(&p);
		assert_int_equal(t.half, i + 1);
	}
	p = request_of(5, 1);
	with_cookie(&p, now_ns / MS, 99);
	assert_int_equal(judge(&p), KRP_LANES_DROP);
	peer_says(lane_to(0), KRP_LANE_READY);
	assert_int_equal(t.half, 3);
	accept_it(&p);
	/* none says anything any more: all end by themselves */
	for (i = 0; i < 40; i++) {
		unsigned int k;

		now_ns += 100 * MS;
		for (k = 0; k < 2 * LANES; k++)
			if (entries[k].place != KRP_LANES_FREE)
				pull(&entries[k]);
	}
	assert_int_equal(t.half, 0);
	assert_int_equal(t.active, 1);
}

/* A port that has been forgotten needs a cookie that is younger than that. */
static void test_what_is_forgotten(void **state)
{
	struct krp_lane_packet p, q;
	unsigned int i;
	__u64 forgot_ms;

	(void)state;
	for (i = 0; i < KRP_LANES_WAYS; i++) {
		gone(peer_makes(i, 7));
		now_ns += MS;
	}
	assert_int_equal(t.forgot_ms, 0);
	gone(peer_makes(i, 7)); /* node 0 goes, as it was used least recently */
	assert_int_equal(t.forgot_ms, now_ns / MS + 1);
	p = request_of(1, 8);
	assert_int_equal(judge(&p), KRP_LANES_ACCEPT);
	p = request_of(0, 7); /* what a hostile host has seen */
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* its lane rests */
	forgot_ms = now_ns / MS + 1;
	now_ns += 2000 * MS;
	for (i = 0; i < 2 * LANES; i++)
		if (entries[i].place != KRP_LANES_FREE)
			pull(&entries[i]);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, forgot_ms, 99); /* or was given by */
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, forgot_ms + 1, 99);
	assert_int_equal(judge(&p), KRP_LANES_ACCEPT);
	/* that it is remembered for one index says nothing of the others */
	q = p;
	q.index = 1;
	accept_it(&q);
	p = request_of(0, 7);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
	with_cookie(&p, forgot_ms, 99);
	assert_int_equal(judge(&p), KRP_LANES_CHALLENGE);
}

static void test_answers_of_no_lane(void **state)
{
	static const unsigned int types[] = { KRP_LANE_CHALLENGE, KRP_LANE_REFUSE, KRP_LANE_HEARD,
					      KRP_LANE_CLOSED };
	struct krp_lane_packet p = request_of(1, 1), answer = { 0 };
	unsigned int i;

	(void)state;
	memset(&p.value, 0, sizeof(p.value));
	p.mtu = 0;
	p.max_rd_atomic = 0;
	p.qpn = 0;
	p.type = KRP_LANE_READY;
	assert_null(krp_lanes_received(&t, now_ns, &p));
	assert_int_equal(krp_lanes_unknown(&t, &p, &answer), 1);
	assert_int_equal(answer.type, KRP_LANE_CLOSE);
	assert_int_equal(krp_lane_check(&answer, sizeof(answer)), KRP_LANE_OK);
	assert_int_equal(krp_le64_to_cpu(answer.lane), krp_le64_to_cpu(p.lane));
	assert_int_equal(krp_le64_to_cpu(answer.nonce), krp_le64_to_cpu(p.nonce));
	assert_memory_equal(answer.peer_gid, p.gid, sizeof(p.gid));
	p.type = KRP_LANE_CLOSE;
	assert_int_equal(krp_lanes_unknown(&t, &p, &answer), 1);
	assert_int_equal(answer.type, KRP_LANE_CLOSED);
	for (i = 0; i < 4; i++) {
		p.type = (__u8)types[i];
		assert_int_equal(krp_lanes_unknown(&t, &p, &answer), 0);
	}
	p.type = KRP_LANE_CLOSE;
	p.peer_generation = krp_cpu_to_le64(5);
	assert_int_equal(krp_lanes_unknown(&t, &p, &answer), 0);
}

/* Whoever makes lanes to everywhere closes its own. */
static void test_a_user_cannot_have_all(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(make(&user[1], 1), 0);
	assert_int_equal(make(&user[1], 2), 0);
	for (i = 10; i < 16; i++)
		assert_int_equal(make(&user[0], i), 0);
	now_ns += 20 * MS;
	assert_int_equal(t.active, LANES);
	for (i = 100; i < 130; i++) {
		while (make(&user[0], i) == -EAGAIN)
			;
		now_ns += 500 * MS;
		assert_non_null(lane_to(1));
		assert_non_null(lane_to(2));
		assert_true(user[0].nr <= user[0].limit && t.active <= LANES);
		pull(&entries[i % (2 * LANES)]);
		for (unsigned int k = 0; k < 2 * LANES; k++)
			if (entries[k].place == KRP_LANES_RESTING)
				pull(&entries[k]);
	}
	/* others get an equal share of it, and take nothing from those with less */
	for (i = 0; i < 2; i++) {
		assert_int_equal(make(&user[2], 200 + i), -EAGAIN);
		assert_int_equal(make(&user[2], 200 + i), 0);
	}
	assert_int_equal(user[0].nr, 4);
	assert_int_equal(user[1].nr, 2);
	now_ns += 20 * MS;
	assert_int_equal(make(&user[1], 3), -EAGAIN);
	assert_int_equal(make(&user[1], 3), 0);
	assert_int_equal(user[0].nr, 3);
	now_ns += 20 * MS;
	assert_int_equal(make(&user[1], 4), -EAGAIN); /* all have about as many: its own goes */
	assert_int_equal(make(&user[1], 4), 0);
	assert_true(user[0].nr == 3 && user[1].nr == 3 && user[2].nr == 2);
}

static void test_what_is_in_use_is_not_closed(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		assert_int_equal(make(&user[0], i), 0);
	assert_int_equal(make(&user[0], 6), -EDQUOT); /* all were used just now */
	assert_int_equal(make(&user[1], 7), 0);
	assert_int_equal(make(&user[1], 8), 0);
	assert_int_equal(make(&user[2], 9), -EBUSY);
	now_ns += 10 * MS;
	for (i = 0; i < 6; i++)
		krp_lanes_use(lane_to(i), now_ns);
	now_ns += 10 * MS;
	krp_lanes_use(lane_to(7), now_ns);
	krp_lanes_use(lane_to(8), now_ns);
	now_ns += 10 * MS;
	assert_int_equal(make(&user[2], 9), -EBUSY);
	krp_lanes_unuse(lane_to(3), now_ns);
	assert_int_equal(make(&user[2], 9), -EBUSY);
	now_ns += 10 * MS;
	assert_int_equal(make(&user[2], 9), -EAGAIN);
	assert_null(lane_to(3));
	assert_int_equal(t.closed, 1);
}

/* What counts is when the last use ended: one that was in use for long is no old one. */
static void test_a_long_use(void **state)
{
	struct krp_lanes_entry *closed;
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		assert_int_equal(make(&user[0], i), 0);
	krp_lanes_use(lane_to(0), now_ns);
	for (i = 1; i < 6; i++) {
		now_ns += MS;
		krp_lanes_use(lane_to(i), now_ns);
		krp_lanes_unuse(lane_to(i), now_ns);
	}
	now_ns += MS;
	krp_lanes_unuse(lane_to(0), now_ns);
	now_ns += 10 * MS;
	assert_int_equal(krp_lanes_room(&t, &user[0], now_ns, &closed), -EAGAIN);
	assert_ptr_equal(closed, lane_to(1));
}

/* A payer waits for one close at a time, and is told when it is over. */
static void test_one_close_at_a_time(void **state)
{
	struct krp_lanes_entry *closed, *none;
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		assert_int_equal(make(&user[0], i), 0);
	now_ns += 10 * MS;
	assert_int_equal(krp_lanes_room(&t, &user[0], now_ns, &closed), -EAGAIN);
	assert_ptr_equal(closed, lane_to(0)); /* the least recently used one */
	assert_int_equal(krp_lanes_room(&t, &user[0], now_ns, &none), -EAGAIN);
	assert_null(none);
	pull(closed);
	peer_says(closed, KRP_LANE_CLOSED);
	assert_int_equal(user[0].closing, 0);
	assert_int_equal(make(&user[0], 9), 0);
	krp_lanes_use(lane_to(1), now_ns);
	krp_lanes_unuse(lane_to(1), now_ns);
	now_ns += 10 * MS;
	assert_int_equal(krp_lanes_room(&t, &user[0], now_ns, &closed), -EAGAIN);
	assert_ptr_equal(closed, lane_to(2));
	/* a payer that ends leaves its lanes to all, and waits for nothing any more */
	krp_lanes_payer_end(&t, &user[0]);
	assert_int_equal(t.peers.nr, 6);
	assert_null(closed->closer);
	pull(closed);
	peer_says(closed, KRP_LANE_CLOSED);
	assert_int_equal(t.peers.nr, 5);
}

/* Peers do not get what is reserved for this node; they are refused only if nothing can be closed. */
static void test_peers_leave_room(void **state)
{
	struct krp_lane_packet p;
	unsigned int i;

	(void)state;
	for (i = 0; i < LANES - 2; i++)
		peer_makes(i, 1);
	now_ns += 2 * MS;
	p = request_of(50, 1);
	with_cookie(&p, now_ns / MS, 99);
	assert_int_equal(judge(&p), KRP_LANES_REFUSE);
	assert_int_equal(status, KRP_LANE_BUSY);
	assert_int_equal(make(&user[0], 60), 0);
	assert_int_equal(make(&user[0], 61), 0);
	now_ns += 10 * MS;
	assert_int_equal(judge(&p), KRP_LANES_DROP); /* one is closed for it meanwhile */
	assert_null(lane_to(0));
	assert_int_equal(judge(&p), KRP_LANES_ACCEPT);
}

static void test_idle_lanes_are_closed(void **state)
{
	struct krp_lanes_entry *e;

	(void)state;
	assert_int_equal(make(&user[0], 1), 0);
	now_ns += MS;
	assert_int_equal(make(&user[1], 2), 0);
	now_ns += 60000 * MS - MS;
	e = krp_lanes_idle(&t, now_ns);
	assert_ptr_equal(e, lane_to(1));
	assert_null(krp_lanes_idle(&t, now_ns));
	krp_lanes_use(lane_to(2), now_ns);
	now_ns += 120000 * MS;
	assert_null(krp_lanes_idle(&t, now_ns));
	krp_lanes_unuse(lane_to(2), now_ns);
	assert_null(krp_lanes_idle(&t, now_ns));
	now_ns += 60000 * MS;
	assert_ptr_equal(krp_lanes_idle(&t, now_ns), lane_to(2));
}

static void test_ranges_of_a_table(void **state)
{
	struct krp_lanes_memory mem = t.mem;
	struct krp_lanes_conf c;
	struct krp_lanes other;

	(void)state;
#define REFUSE(change) \
	do { \
		c = table_conf; \
		mem = t.mem; \
		change; \
		assert_int_equal(krp_lanes_init(&other, &c, &mem, t.gid, 6, 1), -EINVAL); \
	} while (0)
	REFUSE(c.max = 0);
	REFUSE(c.max = KRP_LANES_MAX + 1);
	REFUSE(c.reserved = c.max);
	REFUSE(c.of_pair = 0);
	REFUSE(c.of_pair = KRP_LANE_INDEXES + 1);
	REFUSE(c.half_max = 0);
	REFUSE(mem.chains_nr = 0);
	REFUSE(mem.chains_nr = 12);
	REFUSE(mem.known_nr = 2);
	REFUSE(mem.known_nr = 6);
#undef REFUSE
	mem = t.mem;
	assert_int_equal(krp_lanes_init(&other, &table_conf, &mem, t.gid, 0, 1), -EINVAL);
}

/* A thousand nodes that come and go: bounds hold, and each that comes gets its lane in the end. */
static void test_a_thousand_nodes(void **state)
{
	unsigned int i, k, tries, refused = 0;

	(void)state;
	for (i = 0; i < NODES; i++) {
		struct krp_lane_packet p = request_of(i, 1 + i);

		for (tries = 0; tries < 200; tries++) {
			enum krp_lanes_verdict verdict;

			now_ns += 20 * MS;
			for (k = 0; k < 2 * LANES; k++)
				if (entries[k].place != KRP_LANES_FREE)
					pull(&entries[k]);
			with_cookie(&p, now_ns / MS, 99);
			verdict = judge(&p);
			assert_true(t.active <= LANES && t.peers.nr <= LANES - 2);
			refused += verdict != KRP_LANES_ACCEPT;
			if (verdict == KRP_LANES_ACCEPT)
				break;
		}
		assert_true(tries < 200);
		peer_makes(i, 1 + i);
	}
	assert_int_equal(t.made, NODES);
	assert_true(refused >= NODES - LANES);
}

/* Both ports at once: the REQUEST of the smaller GID counts, and nothing is waited for. */
static void test_both_ports_at_once(void **state)
{
	static const struct lw_plan plan = { .ports = 2, .keys = true, .delay_us = 500 };
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		struct lw_world *w = lw_new(&plan, seed);
		struct krp_lanes_entry *x, *y;

		w->port[0].t.number = 1000;
		assert_int_equal(lw_make(w, 0, 1, 0, 0), 0);
		assert_int_equal(lw_make(w, 1, 0, 0, 0), 0);
		lw_run(w, 12);
		x = lw_lane(w, 0, 1, 0);
		y = lw_lane(w, 1, 0, 0);
		assert_true(x->lane.state == KRP_LANE_UP && y->lane.state == KRP_LANE_UP);
		assert_int_equal(x->lane.number, 1001);
		assert_int_equal(y->lane.number, 1001);
		assert_true(x->lane.requester && !y->lane.requester);
		assert_int_equal(w->crossed, 1);
		assert_null(lw_judge(w));
		lw_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_requests_that_are_refused, begin),
		cmocka_unit_test_setup(test_a_request_makes_one_lane, begin),
		cmocka_unit_test_setup(test_generations, begin),
		cmocka_unit_test_setup(test_a_request_to_a_new_generation_stays, begin),
		cmocka_unit_test_setup(test_a_record_makes_no_generation, begin),
		cmocka_unit_test_setup(test_cookies_without_keys, begin),
		cmocka_unit_test_setup(test_a_flood_of_requests, begin),
		cmocka_unit_test_setup(test_what_is_forgotten, begin),
		cmocka_unit_test_setup(test_answers_of_no_lane, begin),
		cmocka_unit_test_setup(test_a_user_cannot_have_all, begin),
		cmocka_unit_test_setup(test_what_is_in_use_is_not_closed, begin),
		cmocka_unit_test_setup(test_a_long_use, begin),
		cmocka_unit_test_setup(test_one_close_at_a_time, begin),
		cmocka_unit_test_setup(test_peers_leave_room, begin),
		cmocka_unit_test_setup(test_idle_lanes_are_closed, begin),
		cmocka_unit_test_setup(test_ranges_of_a_table, begin),
		cmocka_unit_test_setup(test_a_thousand_nodes, begin),
		cmocka_unit_test(test_both_ports_at_once),
	};

	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
