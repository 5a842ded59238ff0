// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One end of a lane (proto/krp_lane_end.h), rule by rule: what is said when, how often, what is
 * dropped, and how it ends.
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

static const struct krp_lane_ports ports_a = { .gid = { 0xfe, [15] = 1 },
					       .peer_gid = { 0xfe, [15] = 2 },
					       .generation = 5,
					       .peer_generation = 6,
					       .index = 1,
					       .mtu = 5,
					       .max_rd_atomic = 8 };
static const struct krp_lane_end own_a = { .qpn = 70, .psn = 700 };

static __u64 now_ns;
static struct krp_lane a, b;
static struct krp_lane_todo todo;

static void says(struct krp_lane *l, enum krp_lane_do what)
{
	assert_int_equal(krp_lane_next(l, now_ns, &todo), what);
	assert_null(krp_lane_wrong(l));
}

/* The machine sends a packet of a type, and nothing else. */
static struct krp_lane_packet sends(struct krp_lane *l, unsigned int type)
{
	says(l, KRP_LANE_SEND);
	assert_string_equal(krp_lane_name(todo.packet.type), krp_lane_name(type));
	assert_int_equal(krp_lane_check(&todo.packet, sizeof(todo.packet)), KRP_LANE_OK);
	return todo.packet;
}

static void gets(struct krp_lane *l, struct krp_lane_packet p)
{
	assert_int_equal(krp_lane_received(l, now_ns, &p), 1);
}

static struct krp_lane_packet request(void)
{
	struct krp_value value = lw_record(5);

	now_ns = 1000 * MS;
	assert_int_equal(krp_lane_init(&a, &lw_conf, &ports_a, &own_a), 0);
	assert_int_equal(krp_lane_init(&b, &lw_conf, &lw_ports_b, &lw_own_b), 0);
	assert_int_equal(krp_lane_request(&a, now_ns, 77, 7777, &value), 0);
	return sends(&a, KRP_LANE_REQUEST);
}

/* Both ends are UP, and have heard so. */
static void come_up(void)
{
	struct krp_lane_packet p = request();

	assert_int_equal(krp_lane_accept(&b, &p, 0), 0);
	gets(&a, sends(&b, KRP_LANE_ACCEPT));
	says(&b, KRP_LANE_CONNECT);
	says(&a, KRP_LANE_CONNECT);
	krp_lane_connected(&b, now_ns, 0);
	krp_lane_connected(&a, now_ns, 0);
	gets(&a, sends(&b, KRP_LANE_READY));
	gets(&b, sends(&a, KRP_LANE_HEARD));
	says(&a, KRP_LANE_POST);
	gets(&b, sends(&a, KRP_LANE_READY));
	gets(&a, sends(&b, KRP_LANE_HEARD));
	says(&b, KRP_LANE_POST);
	says(&a, KRP_LANE_WAIT);
	says(&b, KRP_LANE_WAIT);
	assert_true(a.state == KRP_LANE_UP && b.state == KRP_LANE_UP);
	assert_int_equal(todo.until_ns, KRP_LANE_FOREVER_NS);
}

static void test_hand_shake(void **state)
{
	(void)state;
	come_up();
	assert_int_equal(a.peer.qpn, 80);
	assert_int_equal(a.peer.psn, 800);
	assert_int_equal(b.peer.qpn, 70);
	assert_true(a.own.mtu == 3 && a.peer.mtu == 3 && b.own.mtu == 3);
	assert_int_equal(a.peer.max_rd_atomic, 16);
	assert_int_equal(b.peer.max_rd_atomic, 8);
}

/* An end that is connected before the peer's READY posts nothing; one that is later, at once. */
static void test_nobody_posts_too_early(void **state)
{
	struct krp_lane_packet p = request(), ready;

	(void)state;
	krp_lane_accept(&b, &p, 0);
	gets(&a, sends(&b, KRP_LANE_ACCEPT));
	says(&a, KRP_LANE_CONNECT);
	says(&b, KRP_LANE_CONNECT);
	krp_lane_connected(&a, now_ns, 0);
	ready = sends(&a, KRP_LANE_READY);
	says(&a, KRP_LANE_WAIT);
	assert_int_equal(a.state, KRP_LANE_LISTENING);
	gets(&b, ready);
	sends(&b, KRP_LANE_HEARD);
	says(&b, KRP_LANE_WAIT);
	assert_int_equal(b.state, KRP_LANE_CONNECTING);
	krp_lane_connected(&b, now_ns, 0);
	says(&b, KRP_LANE_POST);
	gets(&a, sends(&b, KRP_LANE_READY));
	sends(&a, KRP_LANE_HEARD);
	says(&a, KRP_LANE_POST);
}

static void test_what_is_not_answered_is_repeated_and_given_up(void **state)
{
	static const unsigned int pauses[] = { 1, 2, 4, 4 };
	struct krp_lane_packet first = request(), p;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		says(&a, KRP_LANE_WAIT);
		assert_int_equal(todo.until_ns, now_ns + pauses[i] * MS);
		now_ns = todo.until_ns;
		if (i == 3)
			break;
		p = sends(&a, KRP_LANE_REQUEST);
		assert_memory_equal(&p, &first, sizeof(p));
	}
	sends(&a, KRP_LANE_CLOSE); /* it may have been accepted */
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, -ETIMEDOUT);
	krp_lane_reset(&a, now_ns);
	says(&a, KRP_LANE_WAIT);
	assert_int_equal(todo.until_ns, now_ns + 1000 * MS);
	now_ns += 1000 * MS;
	says(&a, KRP_LANE_FORGET);
}

/* A caller that stood still for a minute says it again, and is answered. */
static void test_a_caller_that_stands_still(void **state)
{
	struct krp_lane_packet p = request();

	(void)state;
	krp_lane_accept(&b, &p, 0);
	p = sends(&b, KRP_LANE_ACCEPT);
	now_ns += 60000 * MS;
	sends(&a, KRP_LANE_REQUEST);
	gets(&a, p);
	says(&a, KRP_LANE_CONNECT);
}

static void test_a_request_that_comes_again(void **state)
{
	struct krp_lane_packet p = request(), first;

	(void)state;
	krp_lane_accept(&b, &p, 41);
	first = sends(&b, KRP_LANE_ACCEPT);
	assert_int_equal(krp_le64_to_cpu(first.spent), 41);
	says(&b, KRP_LANE_CONNECT);
	gets(&b, p);
	p = sends(&b, KRP_LANE_ACCEPT);
	assert_memory_equal(&p, &first, sizeof(p));
	says(&b, KRP_LANE_WAIT);
	gets(&a, p);
	gets(&a, p); /* nor does ACCEPT that comes again connect it twice */
	says(&a, KRP_LANE_CONNECT);
	says(&a, KRP_LANE_WAIT);
}

static struct krp_lane_packet challenge(const struct krp_lane_packet *p, __u64 stamp)
{
	struct krp_lane_packet answer;

	krp_lanes_answer(p, KRP_LANE_CHALLENGE, 6, &answer);
	answer.stamp = krp_cpu_to_le64(stamp);
	answer.proof = krp_cpu_to_le64(stamp + 1);
	assert_int_equal(krp_lane_check(&answer, sizeof(answer)), KRP_LANE_OK);
	return answer;
}

static void test_cookies(void **state)
{
	struct krp_lane_packet p = request();
	unsigned int i;

	(void)state;
	gets(&a, challenge(&p, 100));
	p = sends(&a, KRP_LANE_REQUEST);
	assert_int_equal(krp_le64_to_cpu(p.stamp), 100);
	assert_int_equal(krp_le64_to_cpu(p.proof), 101);
	gets(&a, challenge(&p, 100)); /* the same, and an older one */
	gets(&a, challenge(&p, 99));
	says(&a, KRP_LANE_WAIT);
	for (i = 1; i < 20; i++)
		gets(&a, challenge(&p, 100 + i));
	assert_int_equal(a.passes, KRP_LANE_PASSES_MAX);
}

static void test_refusals(void **state)
{
	struct krp_lane_packet p, answer;
	unsigned int status;

	(void)state;
	for (status = 1; status < KRP_LANE_CODES; status++) {
		p = request();
		krp_lanes_answer(&p, KRP_LANE_REFUSE, status == KRP_LANE_STALE ? 8 : 6, &answer);
		answer.status = krp_cpu_to_le32(status);
		gets(&a, answer);
		says(&a, KRP_LANE_RESET);
		assert_int_equal(todo.err, krp_lane_errno(status));
		assert_int_equal(a.other_generation, status == KRP_LANE_STALE ? 8 : 0);
	}
	p = request();
	krp_lanes_answer(&p, KRP_LANE_REFUSE, 6, &answer);
	answer.status = krp_cpu_to_le32(KRP_LANE_STALE); /* from the generation that was asked */
	assert_int_equal(krp_lane_received(&a, now_ns, &answer), 0);
	p = request();
	krp_lane_accept(&b, &p, 0);
	answer = sends(&b, KRP_LANE_ACCEPT);
	b.own.mtu = 5;
	a.own.mtu = 1;
	gets(&a, answer); /* more than was asked for */
	sends(&a, KRP_LANE_CLOSE);
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, -EPROTO);
}

static void test_close(void **state)
{
	struct krp_lane_packet p;

	(void)state;
	come_up();
	assert_int_equal(krp_lane_close(&a, now_ns), 1);
	assert_int_equal(krp_lane_close(&a, now_ns), 0);
	says(&a, KRP_LANE_STOP);
	says(&a, KRP_LANE_WAIT); /* nothing is said before nothing is outstanding */
	krp_lane_drained(&a, now_ns);
	p = sends(&a, KRP_LANE_CLOSE);
	gets(&b, p);
	says(&b, KRP_LANE_STOP);
	gets(&b, p);
	says(&b, KRP_LANE_WAIT);
	krp_lane_drained(&b, now_ns);
	gets(&a, sends(&b, KRP_LANE_CLOSED));
	says(&b, KRP_LANE_RESET);
	assert_int_equal(todo.err, 0);
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, 0);
	krp_lane_reset(&b, now_ns);
	gets(&b, p); /* CLOSED may have been lost */
	sends(&b, KRP_LANE_CLOSED);
	says(&b, KRP_LANE_WAIT);
}

static void test_both_close(void **state)
{
	struct krp_lane_packet of_a, of_b;

	(void)state;
	come_up();
	krp_lane_close(&a, now_ns);
	krp_lane_close(&b, now_ns);
	says(&a, KRP_LANE_STOP);
	says(&b, KRP_LANE_STOP);
	krp_lane_drained(&a, now_ns);
	krp_lane_drained(&b, now_ns);
	of_a = sends(&a, KRP_LANE_CLOSE);
	of_b = sends(&b, KRP_LANE_CLOSE);
	gets(&a, of_b);
	gets(&b, of_a);
	sends(&a, KRP_LANE_CLOSED);
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, 0);
	sends(&b, KRP_LANE_CLOSED);
	says(&b, KRP_LANE_RESET);
}

/* What does not drain in time is given up; what has ended says so to a peer that missed it. */
static void test_ends_that_are_not_orderly(void **state)
{
	struct krp_lane_packet p;

	(void)state;
	come_up();
	krp_lane_close(&a, now_ns);
	says(&a, KRP_LANE_STOP);
	says(&a, KRP_LANE_WAIT);
	assert_int_equal(todo.until_ns, now_ns + 100 * MS);
	now_ns = todo.until_ns;
	gets(&b, sends(&a, KRP_LANE_CLOSE));
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, -ETIMEDOUT);
	says(&b, KRP_LANE_STOP);
	come_up();
	krp_lane_failed(&a, -EIO);
	sends(&a, KRP_LANE_CLOSE);
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, -EIO);
	krp_lane_failed(&b, -ECONNRESET); /* that one is gone, and needs no CLOSE */
	says(&b, KRP_LANE_RESET);
	p = request();
	krp_lane_accept(&b, &p, 0);
	gets(&a, sends(&b, KRP_LANE_ACCEPT));
	says(&a, KRP_LANE_CONNECT);
	krp_lane_connected(&a, now_ns, -EIO);
	gets(&b, sends(&a, KRP_LANE_CLOSE));
	says(&a, KRP_LANE_RESET);
	krp_lane_reset(&a, now_ns);
	says(&b, KRP_LANE_STOP);
	krp_lane_drained(&b, now_ns);
	sends(&b, KRP_LANE_CLOSED);
	p = b.ports.index ? todo.packet : p;
	p.type = KRP_LANE_READY;
	gets(&a, p);
	sends(&a, KRP_LANE_CLOSE);
}

/* An end that gives up what is not answered tells the peer, which may have accepted it. */
static void test_close_before_accept(void **state)
{
	struct krp_lane_packet p = request();

	(void)state;
	krp_lane_accept(&b, &p, 0);
	p = sends(&b, KRP_LANE_ACCEPT);
	says(&b, KRP_LANE_CONNECT);
	assert_int_equal(krp_lane_close(&a, now_ns), 1);
	gets(&b, sends(&a, KRP_LANE_CLOSE));
	gets(&a, p);
	says(&a, KRP_LANE_WAIT);
	says(&b, KRP_LANE_STOP);
	krp_lane_connected(&b, now_ns, 0);
	krp_lane_drained(&b, now_ns);
	gets(&a, sends(&b, KRP_LANE_CLOSED));
	says(&a, KRP_LANE_RESET);
	assert_int_equal(todo.err, 0);
}

static void test_foreign_packets(void **state)
{
	struct krp_lane_packet good, p;
	struct krp_lane before;
	unsigned int i;

	(void)state;
	come_up();
	krp_lane_close(&b, now_ns);
	says(&b, KRP_LANE_STOP);
	krp_lane_drained(&b, now_ns);
	good = sends(&b, KRP_LANE_CLOSE);
	for (i = 0; i < 8; i++) {
		p = good;
		p.gid[3] ^= i == 0;
		p.peer_gid[3] ^= i == 1;
		p.generation ^= krp_cpu_to_le64(i == 2);
		p.peer_generation ^= krp_cpu_to_le64(i == 3);
		p.lane ^= krp_cpu_to_le64(i == 4);
		p.nonce ^= krp_cpu_to_le64(i == 5);
		p.index ^= i == 6;
		p.flags ^= i == 7;
		before = a;
		assert_int_equal(krp_lane_received(&a, now_ns, &p), 0);
		before.foreign++;
		assert_memory_equal(&a, &before, sizeof(a));
	}
	gets(&a, good);
	says(&a, KRP_LANE_STOP);
}

static void test_ranges(void **state)
{
	static struct krp_lane_conf c; /* the end keeps its address */
	struct krp_lane_ports p;
	struct krp_lane_end e;
	struct krp_value v = lw_record(5);

	(void)state;
#define REFUSE(change) \
	do { \
		c = lw_conf; \
		p = ports_a; \
		e = own_a; \
		change; \
		assert_int_equal(krp_lane_init(&a, &c, &p, &e), -EINVAL); \
	} while (0)
	REFUSE(c.retry_ns = 0);
	REFUSE(c.retry_max_ns = c.retry_ns - 1);
	REFUSE(c.retry_max_ns = KRP_LANE_PAUSE_MAX_NS + 1);
	REFUSE(c.tries = 0);
	REFUSE(c.tries = KRP_LANE_TRIES_MAX + 1);
	REFUSE(c.drain_ns = 0);
	REFUSE(c.drain_ns = KRP_LANE_PAUSE_MAX_NS + 1);
	REFUSE(c.rest_ns = KRP_LANE_REST_MS * MS - 1);
	REFUSE(c.rest_ns = KRP_LANE_PAUSE_MAX_NS + 1);
	REFUSE(p.generation = 0);
	REFUSE(p.peer_generation = 0);
	REFUSE(p.index = KRP_LANE_INDEXES);
	REFUSE(p.mtu = 0);
	REFUSE(p.mtu = 6);
	REFUSE(p.max_rd_atomic = 0);
	REFUSE(memcpy(p.peer_gid, p.gid, sizeof(p.gid)));
	REFUSE(memset(p.gid, 0, sizeof(p.gid)));
	REFUSE(memset(p.peer_gid, 0, sizeof(p.gid)));
	REFUSE(e.qpn = 1);
	REFUSE(e.qpn = 0xffffff);
	REFUSE(e.psn = 1 << 24);
#undef REFUSE
	assert_int_equal(krp_lane_init(&a, &lw_conf, &ports_a, &own_a), 0);
	assert_int_equal(krp_lane_request(&a, 0, 0, 1, &v), -EINVAL);
	assert_int_equal(krp_lane_request(&a, 0, 1, 0, &v), -EINVAL);
	v.dct.ud_qpn = 0;
	assert_int_equal(krp_lane_request(&a, 0, 1, 1, &v), -EINVAL);
	v = lw_record(6);
	assert_int_equal(krp_lane_request(&a, 0, 1, 1, &v), -EINVAL);
	assert_int_equal(krp_lane_close(&a, 0), 0);
	v = lw_record(5);
	assert_int_equal(krp_lane_request(&a, 0, 1, 1, &v), 0);
	assert_int_equal(krp_lane_request(&a, 0, 2, 1, &v), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hand_shake),
		cmocka_unit_test(test_nobody_posts_too_early),
		cmocka_unit_test(test_what_is_not_answered_is_repeated_and_given_up),
		cmocka_unit_test(test_a_caller_that_stands_still),
		cmocka_unit_test(test_a_request_that_comes_again),
		cmocka_unit_test(test_cookies),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_both_close),
		cmocka_unit_test(test_ends_that_are_not_orderly),
		cmocka_unit_test(test_close_before_accept),
		cmocka_unit_test(test_foreign_packets),
		cmocka_unit_test(test_ranges),
	};

	return cmocka_run_group_tests_name("lane_end", tests, NULL, NULL);
}
