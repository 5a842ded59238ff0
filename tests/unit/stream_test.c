// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine of one connection between two nodes (proto/krp_stream.h), case by case: what each
 * costs in packets, what is refused, when it gives memory back, and when it gives up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/message_world.h"

static const struct mw_plan quiet = {
	.delay_us = 1, .window = 8, .pool = 1000, .shut_first = 2, .blow_state = MW_NEVER
};

/* So many messages of a plan as @end hands in from now on. */
static void talk(struct mw_world *w, struct mw_end *e, uint32_t messages)
{
	struct mw_way *way = &w->conn[e->conn].way[e->side];

	free(way->state);
	way->state = calloc(1, messages + 1ULL);
	assert_non_null(way->state);
	way->total = messages;
	mw_pull(w, e);
	mw_run(w, w->now_ns + 100 * MW_MS);
}

static void end_well(struct mw_world *w)
{
	assert_null(w->broken);
	mw_free(w);
}

static void test_ranges_of_the_configuration(void **state)
{
	struct krp_stream_conf good = { .retry_ns = 1,
					.retry_max_ns = 1,
					.msgs = 1,
					.units = KRP_MESSAGE_UNITS_MAX,
					.lease_ms = 200,
					.margin_ms = 300 },
			       bad;
	struct krp_stream_slot slot[4];
	struct krp_stream s;

	(void)state;
	assert_int_equal(krp_stream_init(&s, &good, slot, 4), 0);
	assert_int_equal(krp_stream_init(&s, &good, slot, 2), -EINVAL);
	assert_int_equal(krp_stream_init(&s, &good, slot, 12), -EINVAL);
#define REFUSES(field, value) \
	(bad = good, bad.field = value, \
	 assert_int_equal(krp_stream_init(&s, &bad, slot, 4), -EINVAL))
	REFUSES(retry_ns, 0);
	REFUSES(retry_max_ns, 0);
	REFUSES(retry_max_ns, KRP_STREAM_PAUSE_MAX_NS + 1);
	REFUSES(ack_ns, KRP_STREAM_PAUSE_MAX_NS + 1);
	REFUSES(idle_ns, KRP_STREAM_IDLE_MAX_NS + 1);
	REFUSES(linger_ns, KRP_STREAM_PAUSE_MAX_NS + 1);
	REFUSES(msgs, 0);
	REFUSES(msgs, KRP_STREAM_WINDOW_MAX + 1);
	REFUSES(units, KRP_MESSAGE_UNITS_MAX - 1);
	REFUSES(units, KRP_STREAM_WINDOW_MAX * KRP_MESSAGE_UNITS_MAX + 1);
	REFUSES(lease_ms, KRP_MRDIR_LEASE_MS_MIN - 1);
	REFUSES(margin_ms, KRP_MRDIR_MARGIN_MS_MAX + 1);
}

/* The one function by which states change knows these ways and no others. */
static void test_ways_between_states(void **state)
{
	static const char *const ways[KRP_STREAM_STATES] = {
		/* to: NEW OPENING OFFERED OPEN SHUT PEER_SHUT CLOSING LINGER DEAD GONE */
		[KRP_STREAM_NEW] = ".oo.......",     [KRP_STREAM_OPENING] = "...o....o.",
		[KRP_STREAM_OFFERED] = "...o....o.", [KRP_STREAM_OPEN] = "....oo..o.",
		[KRP_STREAM_SHUT] = "......o.o.",    [KRP_STREAM_PEER_SHUT] = "......o.o.",
		[KRP_STREAM_CLOSING] = ".......oo.", [KRP_STREAM_LINGER] = ".........o",
		[KRP_STREAM_DEAD] = ".........o",    [KRP_STREAM_GONE] = "..........",
	};
	struct krp_stream s = { .state = 0 };
	unsigned int from, to;

	(void)state;
	for (from = 0; from < KRP_STREAM_STATES; from++)
		for (to = 0; to < KRP_STREAM_STATES; to++) {
			s.state = (__u8)from;
			assert_int_equal(krp_stream_enter(&s, (enum krp_stream_state)to),
					 ways[from][to] == 'o');
			assert_int_equal(s.state, ways[from][to] == 'o' ? to : from);
		}
}

static void test_first_contact_costs_a_round_trip_once(void **state)
{
	struct mw_plan plan = quiet;
	struct mw_world *w;

	(void)state;
	plan.messages = 1;
	plan.first = true;
	w = mw_new(&plan, 2, 1);
	mw_open(w, 0, 1);
	mw_run(w, 10000 * MW_MS);
	assert_null(mw_judge(w));
	assert_int_equal(w->packets[KRP_MESSAGE_OPEN], 2);
	assert_int_equal(w->packets[KRP_MESSAGE_CHALLENGE], 1);
	mw_open(w, 0, 1);
	mw_run(w, 20000 * MW_MS);
	assert_null(mw_judge(w));
	assert_int_equal(w->packets[KRP_MESSAGE_OPEN], 3);
	assert_int_equal(w->packets[KRP_MESSAGE_CHALLENGE], 1);
	assert_int_equal(w->packets[KRP_MESSAGE_ACCEPT], 2);
	/* another generation of the receiver has another secret */
	mw_reboot(w, 1);
	mw_open(w, 0, 1);
	mw_run(w, 30000 * MW_MS);
	assert_int_equal(w->packets[KRP_MESSAGE_CHALLENGE], 2);
	end_well(w);
}

static void test_what_messages_cost(void **state)
{
	struct mw_plan plan = quiet;
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&plan, &a, &b);

	(void)state;
	talk(w, a, 1);
	assert_int_equal(w->packets[KRP_MESSAGE_DATA], 1);
	assert_int_equal(w->packets[KRP_MESSAGE_CREDIT], 1); /* the ack, which has no company */
	assert_int_equal(w->sent_packets, 2);
	assert_int_equal(w->conn[0].way[0].ended, 1);
	end_well(w);

	/* 60 more: acknowledged by the quarter of a window */
	w = mw_opened(&plan, &a, &b);
	talk(w, a, 60);
	assert_int_equal(w->packets[KRP_MESSAGE_DATA], 60);
	assert_in_range(w->packets[KRP_MESSAGE_CREDIT], 60 / 8, 60 / 2);
	assert_int_equal(w->packets[KRP_MESSAGE_PROBE], 0);
	end_well(w);

	/* large: ANNOUNCE, one READ, DONE; then what says that DONE has come */
	plan.large_every = 1;
	w = mw_opened(&plan, &a, &b);
	w->conn[0].way[0].handed = 1; /* number 0 is never large */
	w->conn[0].way[0].delivered = 1;
	w->conn[0].way[0].ended = 1;
	b->consumed = 1;
	talk(w, a, 2);
	assert_int_equal(w->packets[KRP_MESSAGE_ANNOUNCE], 1);
	assert_int_equal(w->packets[KRP_MESSAGE_DONE], 1);
	assert_int_equal(w->reads, 1);
	assert_int_equal(w->packets[KRP_MESSAGE_CREDIT], 1);
	assert_int_equal(w->sent_packets, 3);
	assert_int_equal(krp_stream_holds(&a->s) + krp_stream_fetches(&b->s), 0);
	end_well(w);
}

static void test_what_send_refuses(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .length = KRP_MESSAGE_DATA_MAX + 1 };
	struct krp_stream fresh;

	(void)state;
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EMSGSIZE);
	req.large = 1;
	req.addr = -0x10ULL;
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EMSGSIZE);
	req.addr = 0;
	req.length = 0;
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EMSGSIZE);
	req.length = KRP_MESSAGE_LARGE_MAX + 1;
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EMSGSIZE);
	req.large = 0;
	req.length = 1;
	assert_int_equal(krp_stream_init(&fresh, &w->conf, a->slot, MW_SLOTS), 0);
	assert_int_equal(krp_stream_send(&fresh, w->now_ns, &req), -ENOTCONN);
	assert_int_equal(krp_stream_shut(&fresh, w->now_ns), -ENOTCONN);
	assert_int_equal(krp_stream_accept(&a->s, NULL, 0), -EINVAL);
	assert_int_equal(krp_stream_cancel(&a->s, w->now_ns, 5), -ENOENT);
	assert_int_equal(krp_stream_fetch(&a->s, w->now_ns, 5), -ENOENT);
	assert_int_equal(krp_stream_fetched(&a->s, 5, 0), -ENOENT);
	assert_int_equal(krp_stream_shut(&a->s, w->now_ns), 0);
	assert_int_equal(krp_stream_shut(&a->s, w->now_ns), -EALREADY);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EPIPE);
	mw_free(w);
}

static void test_notification_waits_for_writes(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .notify = 1, .imm = 7 };
	struct krp_stream_todo todo;

	(void)state;
	krp_stream_write_begin(&a->s);
	krp_stream_write_begin(&a->s);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EAGAIN);
	krp_stream_write_end(&a->s);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EAGAIN);
	req.notify = 0; /* what need not wait goes ahead */
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
	req.notify = 1;
	krp_stream_write_end(&a->s);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.flags & KRP_MESSAGE_NOTIFY, 0);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.flags & KRP_MESSAGE_NOTIFY, KRP_MESSAGE_NOTIFY);
	mw_free(w);
}

/* A receiver that reads nothing fills its window and no more, and PROBEs become rare. */
static void test_window_that_is_full(void **state)
{
	struct mw_plan plan = quiet;
	struct mw_end *a, *b;
	struct mw_world *w;

	(void)state;
	plan.stop_ms = 60000;
	w = mw_opened(&plan, &a, &b);
	talk(w, a, 30);
	assert_int_equal(w->conn[0].way[0].delivered, plan.window);
	assert_int_equal(w->conn[0].way[0].ended, plan.window);
	w->packets[KRP_MESSAGE_PROBE] = 0;
	mw_run(w, w->now_ns + 10000 * MW_MS);
	assert_in_range(w->packets[KRP_MESSAGE_PROBE], 10, 60);
	w->plan.stop_ms = 0;
	mw_pull(w, b);
	mw_run(w, w->now_ns + 100 * MW_MS);
	assert_int_equal(w->conn[0].way[0].delivered, 30);
	/* a budget of 0 stops it, and its end lets it go on */
	krp_stream_budget(&b->s, 0, 0);
	talk(w, b, 0);
	w->conn[0].way[0].total = 60;
	free(w->conn[0].way[0].state);
	w->conn[0].way[0].state = calloc(1, 61);
	mw_pull(w, a);
	mw_run(w, w->now_ns + 1000 * MW_MS);
	/* less than a quarter of the window may not have been told */
	assert_in_range(w->conn[0].way[0].delivered, 30 + plan.window - plan.window / 4,
			30 + plan.window);
	krp_stream_budget(&b->s, 3, 1);
	mw_pull(w, b);
	mw_run(w, w->now_ns + 1000 * MW_MS);
	assert_int_equal(w->conn[0].way[0].delivered, 60);
	end_well(w);
}

/* What has one wrong field of those that say whose it is changes nothing. */
static void test_foreign_headers(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .length = 3 };
	struct krp_stream_todo good, bad;
	struct krp_stream before;
	unsigned int i;

	(void)state;
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &good), KRP_STREAM_SEND);
	for (i = 0; i < 5; i++) {
		bad = good;
		if (i == 0)
			bad.packet.tag ^= krp_cpu_to_le64(1);
		if (i == 1)
			bad.packet.tag = krp_cpu_to_le64(b->s.peer_tag);
		if (i == 2)
			bad.packet.src ^= krp_cpu_to_le32(1);
		if (i == 3)
			bad.packet.generation ^= krp_cpu_to_le64(4);
		if (i == 4)
			bad.packet.ack = krp_cpu_to_le64(b->s.tx.high + 1);
		before = b->s;
		assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &bad.packet, 1),
				 KRP_STREAM_DROPPED);
		assert_int_equal(b->s.dropped.foreign, before.dropped.foreign + 1);
		assert_int_equal(b->s.rx.expect, before.rx.expect);
		assert_int_equal(b->s.rx.msgs, before.rx.msgs);
		assert_int_equal(b->s.state, KRP_STREAM_OPEN);
	}
	assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &good.packet, 1),
			 KRP_STREAM_MESSAGE);
	assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &good.packet, 1),
			 KRP_STREAM_DROPPED);
	mw_free(w);
}

/* A peer that sends more than it was granted has broken a rule, and is told. */
static void test_peer_that_breaks_a_rule(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .length = 1 };
	struct krp_stream_todo todo;
	unsigned int i;

	(void)state;
	w->conn[0].unlucky = true;
	a->s.tx.msgs_max += 5;
	for (i = 0; i < quiet.window + 1; i++) {
		assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
		assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
		assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &todo.packet, 1),
				 i < quiet.window ? KRP_STREAM_MESSAGE : KRP_STREAM_DROPPED);
	}
	assert_int_equal(b->s.state, KRP_STREAM_DEAD);
	assert_int_equal(b->s.error, -EPROTO);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_REFUSE);
	assert_int_equal(krp_le32_to_cpu(todo.packet.imm), KRP_REFUSE_BROKEN);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &todo.packet, 1);
	assert_int_equal(a->s.error, -EPROTO);
	mw_free(w);
}

/* One large message that is announced and not fetched. */
static struct mw_world *announced(struct mw_end **ret_a, struct mw_end **ret_b, __u64 *ret_seq)
{
	struct mw_world *w = mw_opened(&quiet, ret_a, ret_b);
	struct krp_stream_req req = { .cookie = 5, .large = 1, .length = 9999, .addr = 4096 };
	struct krp_stream_todo todo;

	w->conn[0].unlucky = true;
	assert_int_equal(krp_stream_send(&(*ret_a)->s, w->now_ns, &req), 0);
	assert_int_equal(krp_stream_next(&(*ret_a)->s, w->now_ns, &todo), KRP_STREAM_SEND);
	*ret_seq = krp_le64_to_cpu(todo.packet.seq);
	assert_int_equal(krp_stream_received(&(*ret_b)->s, w->now_ns, w->now_ns, &todo.packet, 1),
			 KRP_STREAM_ANNOUNCED);
	return w;
}

static void test_memory_is_held_until_no_read_can_come(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	__u64 seq, dead_ns;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	/* the peer is unreachable: lease, and twice the margin, after the last packet to it */
	krp_stream_lost(&a->s, w->now_ns, -ETIMEDOUT, 0);
	dead_ns = a->s.time.posted_ns + (200 + 2 * 300) * MW_MS;
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, dead_ns);
	assert_int_equal(krp_stream_next(&a->s, dead_ns - 1, &todo), KRP_STREAM_WAIT);
	assert_int_equal(krp_stream_next(&a->s, dead_ns, &todo), KRP_STREAM_RELEASE);
	assert_int_equal(todo.err, -ETIMEDOUT);
	assert_int_equal(todo.cookie, 5);
	assert_int_equal(krp_stream_next(&a->s, dead_ns, &todo), KRP_STREAM_FORGET);
	mw_free(w);

	/* another generation of the peer READs nothing of the old one's */
	w = announced(&a, &b, &seq);
	krp_stream_lost(&a->s, w->now_ns, -ECONNRESET, w->node[1].generation);
	assert_int_equal(a->s.state, KRP_STREAM_OPEN); /* the same one */
	krp_stream_lost(&a->s, w->now_ns, -ECONNRESET, w->node[1].generation + 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_RELEASE);
	mw_free(w);
}

static void test_fetch_only_within_the_lease(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	__u64 seq, late_ns;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	late_ns = w->now_ns + 200 * MW_MS;
	assert_int_equal(krp_stream_fetch(&b->s, late_ns, seq), 0);
	assert_int_equal(krp_stream_fetch(&b->s, late_ns + 1, seq), -EAGAIN);
	mw_mutant = "read after the lease";
	assert_int_equal(krp_stream_fetch(&b->s, late_ns + 1, seq), 0);
	mw_mutant = NULL;
	assert_int_equal(krp_stream_next(&b->s, late_ns + 1, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_PROBE);
	krp_stream_received(&a->s, late_ns + 1, late_ns + 1, &todo.packet, 1);
	while (krp_stream_next(&a->s, late_ns + 1, &todo) != KRP_STREAM_SEND)
		assert_int_not_equal(todo.what, KRP_STREAM_WAIT);
	/* it had come before the caller looked: the lease counts from then */
	krp_stream_received(&b->s, late_ns + 150 * MW_MS, late_ns + 2, &todo.packet, 1);
	assert_int_equal(krp_stream_fetch(&b->s, late_ns + 150 * MW_MS, seq), 0);
	assert_int_equal(krp_stream_fetch(&b->s, late_ns + 201 * MW_MS, seq), -EAGAIN);
	mw_free(w);
}

static void test_cancel(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	__u64 seq;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	assert_int_equal(krp_stream_cancel(&a->s, w->now_ns, 5), 0);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_CANCEL);
	assert_int_equal(krp_stream_holds(&a->s), 1);
	krp_stream_received(&b->s, w->now_ns, w->now_ns, &todo.packet, 1);
	assert_int_equal(krp_stream_fetch(&b->s, w->now_ns, seq), -ENOENT);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_WITHDRAWN);
	assert_int_equal(todo.number, seq);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_DONE);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &todo.packet, 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_RELEASE);
	assert_int_equal(todo.err, -ECANCELED);
	mw_free(w);
}

/* DONE that comes again is counted and answered: the first answer may be late. */
static void test_done_that_comes_again(void **state)
{
	struct krp_stream_todo done, todo;
	struct mw_end *a, *b;
	__u64 seq;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	assert_int_equal(krp_stream_fetch(&b->s, w->now_ns, seq), 0);
	krp_stream_fetched(&b->s, seq, 0);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &done), KRP_STREAM_SEND);
	assert_int_equal(done.packet.type, KRP_MESSAGE_DONE);
	/* once, until the peer is asked */
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_true(todo.until_ns >= w->now_ns + w->conf.retry_ns);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &done.packet, 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_RELEASE);
	assert_int_equal(a->s.dropped.repeats, 0);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &done.packet, 1);
	assert_int_equal(a->s.dropped.repeats, 1);
	do
		assert_int_not_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	while (todo.what != KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_CREDIT);
	krp_stream_received(&b->s, w->now_ns, w->now_ns, &todo.packet, 1);
	assert_int_equal(krp_stream_fetches(&b->s), 0);
	mw_free(w);
}

static void test_silence(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .cookie = 0, .length = 1 };
	struct krp_stream_todo todo;
	__u64 now_ns = w->now_ns;
	unsigned int probes = 0;

	(void)state;
	w->conf.silence_ns = 3000 * MW_MS;
	assert_int_equal(krp_stream_send(&a->s, now_ns, &req), 0);
	while (krp_stream_next(&a->s, now_ns, &todo) != KRP_STREAM_DIED) {
		probes += todo.what == KRP_STREAM_SEND && todo.packet.type == KRP_MESSAGE_PROBE;
		if (todo.what == KRP_STREAM_COMPLETE)
			assert_int_equal(todo.err, -ETIMEDOUT);
		if (todo.what == KRP_STREAM_WAIT)
			now_ns = todo.until_ns;
		assert_true(now_ns < w->now_ns + 4000 * MW_MS);
	}
	assert_int_equal(todo.err, -ETIMEDOUT);
	assert_in_range(probes, 10, 30);
	mw_free(w);
}

/* An end that has no room to post is told of all else; it gives up no peer that it can't ask. */
static void test_end_without_room(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .cookie = 5, .length = 3 };
	struct krp_stream_todo todo;
	__u64 now_ns = w->now_ns;

	(void)state;
	assert_int_equal(krp_stream_send(&a->s, now_ns, &req), 0);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	assert_true(todo.until_ns == KRP_STREAM_FOREVER_NS);
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_SEND);
	krp_stream_received(&b->s, now_ns, now_ns, &todo.packet, 1);
	while (krp_stream_next(&b->s, now_ns, &todo) != KRP_STREAM_SEND)
		now_ns = todo.until_ns;
	krp_stream_received(&a->s, now_ns, now_ns, &todo.packet, 1);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_COMPLETE);
	assert_int_equal(todo.cookie, 5);
	assert_int_equal(todo.err, 0);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(krp_stream_send(&a->s, now_ns, &req), 0);
	do { /* until it asks, and is not heard */
		assert_true(krp_stream_next(&a->s, now_ns, &todo) <= KRP_STREAM_SEND);
		now_ns = todo.what == KRP_STREAM_WAIT ? todo.until_ns : now_ns;
	} while (!a->s.time.asked_ns);
	now_ns += w->conf.silence_ns + 60000 * MW_MS;
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(krp_stream_tell(&a->s, now_ns + 60000 * MW_MS, &todo), KRP_STREAM_WAIT);
	now_ns += 60000 * MW_MS;
	krp_stream_abort(&a->s, now_ns, KRP_REFUSE_ABORT);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_COMPLETE);
	assert_int_equal(todo.err, -ECONNABORTED);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_WAIT); /* owes REFUSE */
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_REFUSE);
	assert_int_equal(krp_stream_tell(&a->s, now_ns, &todo), KRP_STREAM_FORGET);
	mw_free(w);
}

/* An opener gives up before the other end forgets that it knows the OPEN. */
static void test_opener_gives_up(void **state)
{
	struct mw_plan plan = quiet;
	struct mw_world *w;
	struct mw_end *e;
	uint64_t opens;

	(void)state;
	plan.lose_every = 1; /* all */
	w = mw_new(&plan, 2, 1);
	w->conn[0].unlucky = true;
	w->conf.silence_ns = 0;
	e = mw_open(w, 0, 1);
	w->conn[0].unlucky = true;
	mw_run(w, w->now_ns + (KRP_MESSAGE_OPEN_MS - 1) * MW_MS);
	assert_int_equal(e->s.state, KRP_STREAM_OPENING);
	assert_in_range(w->packets[KRP_MESSAGE_OPEN], 40, 70);
	opens = w->packets[KRP_MESSAGE_OPEN];
	mw_run(w, w->now_ns + MW_MS);
	assert_int_equal(e->s.state, KRP_STREAM_OPENING); /* an answer may be here already */
	mw_run(w, w->now_ns + 3 * MW_MS);
	assert_int_equal(w->packets[KRP_MESSAGE_OPEN], opens);
	assert_int_equal(e->s.error, -ETIMEDOUT);
	assert_false(e->used);
	end_well(w);
}

/* An acceptor's large message, announced; then its program is killed, and REFUSE is pulled. */
static struct mw_world *killed(struct mw_end **ret_b, struct krp_message *ret_open)
{
	struct mw_plan plan = quiet;
	struct krp_stream_req req = { .cookie = 5, .large = 1, .length = 9999, .addr = 4096 };
	struct krp_stream_todo todo;
	struct mw_end *a;
	struct mw_world *w = mw_opened(&plan, &a, ret_b);

	memset(ret_open, 0, sizeof(*ret_open));
	w->conn[0].unlucky = true;
	assert_int_equal(krp_stream_send(&(*ret_b)->s, w->now_ns, &req), 0);
	assert_int_equal(krp_stream_next(&(*ret_b)->s, w->now_ns, &todo), KRP_STREAM_SEND);
	krp_stream_abort(&(*ret_b)->s, w->now_ns, KRP_REFUSE_ABORT);
	assert_int_equal(krp_stream_next(&(*ret_b)->s, w->now_ns, &todo), KRP_STREAM_DIED);
	return w;
}

/* When the memory of @s is released, if its opener sends its OPEN again and again. */
static __u64 released_after(struct mw_world *w, struct krp_stream *s, unsigned int *ret_refusals)
{
	struct krp_stream_todo todo = { .what = KRP_STREAM_WAIT };
	__u64 now_ns = w->now_ns;

	*ret_refusals = 0;
	while (todo.what != KRP_STREAM_RELEASE && now_ns < w->now_ns + 40000 * MW_MS) {
		if (krp_stream_next(s, now_ns, &todo) == KRP_STREAM_WAIT) {
			now_ns += 100 * MW_MS;
			krp_stream_again(s, now_ns);
		}
		*ret_refusals += todo.what == KRP_STREAM_SEND;
	}
	return now_ns - w->now_ns;
}

static void test_peer_that_insists_holds_no_memory(void **state)
{
	struct krp_message open;
	struct mw_end *b;
	struct mw_world *w = killed(&b, &open);
	unsigned int refusals;

	(void)state;
	assert_int_equal(released_after(w, &b->s, &refusals), 800 * MW_MS);
	assert_in_range(refusals, 5, 10);
	mw_free(w);
	w = killed(&b, &open);
	mw_mutant = "refuse holds"; /* until an opener cannot be honest any more */
	assert_in_range(released_after(w, &b->s, &refusals), 19000 * MW_MS, 21000 * MW_MS);
	mw_mutant = NULL;
	mw_free(w);
	/* it is answered for as long as an opener may repeat */
	w = killed(&b, &open);
	b->s.time.since_ns = w->now_ns - KRP_STREAM_KNOWN_NS;
	released_after(w, &b->s, &refusals);
	assert_int_equal(refusals, 1);
	mw_free(w);
}

/* A pass known and an OPEN on its way; stops where the program has to decide. */
static struct mw_world *offered(struct mw_end **ret_a, struct mw_end **ret_b, uint64_t decide_ms)
{
	struct mw_plan plan = quiet;
	struct mw_world *w = mw_opened(&plan, ret_a, ret_b);

	w->decide_ns = decide_ms * MW_MS;
	*ret_a = mw_open(w, 0, 1);
	mw_run(w, w->now_ns + 5 * MW_MS);
	*ret_b = mw_peer(w, *ret_a);
	assert_non_null(*ret_b);
	assert_int_equal((*ret_b)->s.state, KRP_STREAM_OFFERED);
	return w;
}

static void test_program_that_takes_its_time(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = offered(&a, &b, 4000);

	(void)state;
	/* twice the silence: the other end answers, so it is not dead */
	assert_int_equal(w->conf.silence_ns, 2000 * MW_MS);
	mw_run(w, w->now_ns + 5000 * MW_MS);
	assert_int_equal(a->s.state, KRP_STREAM_OPEN);
	assert_int_equal(b->s.state, KRP_STREAM_OPEN);
	assert_in_range(w->packets[KRP_MESSAGE_CHALLENGE], 10, 30);
	assert_int_equal(b->s.confirmed, 1);
	end_well(w);
}

static void test_offer_without_an_opener(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	struct mw_world *w = offered(&a, &b, 60000);
	struct krp_stream *s = &b->s;
	__u64 over_ns = s->time.since_ns + KRP_STREAM_OPEN_NS;

	(void)state;
	assert_int_equal(krp_stream_next(s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, over_ns);
	assert_int_equal(krp_stream_next(s, over_ns - 1, &todo), KRP_STREAM_WAIT);
	assert_int_equal(krp_stream_next(s, over_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(todo.err, -ETIMEDOUT);
	assert_int_equal(krp_stream_next(s, over_ns, &todo), KRP_STREAM_FORGET);
	assert_int_equal(todo.until_ns, s->time.since_ns + KRP_STREAM_KNOWN_NS);
	assert_int_equal(todo.number, KRP_REFUSE_ABORT);
	assert_int_equal(krp_stream_accept(s, "", 0), -ETIMEDOUT);
	mw_free(w);
}

/* ACCEPT is lost, and the opener goes: the other end asks, and comes to an end. */
static void test_accepted_and_not_confirmed(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	struct mw_world *w = offered(&a, &b, 60000);
	struct krp_stream *s = &b->s;
	__u64 now_ns = w->now_ns;
	unsigned int accepts = 0;

	(void)state;
	assert_int_equal(krp_stream_accept(s, "x", 1), 0);
	while (krp_stream_next(s, now_ns, &todo) != KRP_STREAM_DIED) {
		assert_int_not_equal(todo.what, KRP_STREAM_FORGET);
		if (todo.what == KRP_STREAM_SEND)
			assert_int_equal(todo.packet.type, KRP_MESSAGE_ACCEPT);
		accepts += todo.what == KRP_STREAM_SEND;
		if (todo.what == KRP_STREAM_WAIT)
			now_ns = todo.until_ns;
		assert_true(now_ns < w->now_ns + 3000 * MW_MS);
	}
	assert_int_equal(todo.err, -ETIMEDOUT);
	assert_in_range(accepts, 8, 30);
	mw_free(w);

	/* it waits no longer than an opener lives, even if silence is no reason to die */
	w = offered(&a, &b, 60000);
	w->conf.silence_ns = 0;
	now_ns = w->now_ns;
	assert_int_equal(krp_stream_accept(&b->s, "x", 1), 0);
	while (krp_stream_next(&b->s, now_ns, &todo) != KRP_STREAM_DIED) {
		if (todo.what == KRP_STREAM_WAIT)
			now_ns = todo.until_ns;
		assert_true(now_ns < w->now_ns + 11000 * MW_MS);
	}
	mw_free(w);
}

/* ACCEPT that comes again is answered: the first answer may be lost. */
static void test_accept_that_comes_again(void **state)
{
	struct krp_stream_todo accept, todo;
	struct mw_end *a, *b;
	struct mw_world *w = offered(&a, &b, 60000);

	(void)state;
	assert_int_equal(krp_stream_accept(&b->s, "x", 1), 0);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &accept), KRP_STREAM_SEND);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &accept.packet, 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_OPENED);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &accept.packet, 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.type, KRP_MESSAGE_CREDIT);
	krp_stream_received(&b->s, w->now_ns, w->now_ns, &todo.packet, 1);
	assert_int_equal(b->s.confirmed, 1);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, KRP_STREAM_FOREVER_NS); /* an idle server costs nothing */
	mw_free(w);
}

static void refusal(const struct mw_end *to, __u32 status, struct krp_message *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->magic = krp_cpu_to_le16(KRP_MESSAGE_MAGIC);
	ret->version = KRP_MESSAGE_VERSION;
	ret->type = KRP_MESSAGE_REFUSE;
	ret->tag = krp_cpu_to_le64(to->s.tag);
	ret->src = krp_cpu_to_le32(to->s.dst);
	ret->generation = krp_cpu_to_le64(to->s.peer_generation);
	ret->imm = krp_cpu_to_le32(status);
}

/* Whatever a peer says, an error is none that means "wait". */
static void test_what_a_refusal_ends(void **state)
{
	struct krp_stream_req req = { .length = 1 };
	struct krp_message m;
	struct mw_end *a, *b;
	struct mw_world *w;
	__u32 status;
	int live;

	(void)state;
	for (status = 1; status <= KRP_REFUSE_LAST; status++)
		for (live = 0; live < 2; live++) {
			w = live ? mw_opened(&quiet, &a, &b) : offered(&a, &b, 60000);
			w->conn[a->conn].unlucky = true;
			refusal(a, status, &m);
			assert_int_equal(krp_message_check(&m, sizeof(m)), KRP_MESSAGE_OK);
			krp_stream_received(&a->s, w->now_ns, w->now_ns, &m, 1);
			if (live && status < KRP_REFUSE_UNKNOWN) {
				/* it answers an OPEN, and ACCEPT has overtaken it */
				assert_int_equal(a->s.state, KRP_STREAM_OPEN);
				assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
			} else {
				assert_int_equal(a->s.state, KRP_STREAM_DEAD);
				assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req),
						 krp_refuse_errno(status));
				mw_pull(w, a);
				assert_int_equal(a->s.state, KRP_STREAM_GONE);
				assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req),
						 krp_refuse_errno(status));
				assert_int_not_equal(a->s.error, -EAGAIN);
			}
			mw_free(w);
		}
}

/* A peer that says of itself to be another generation may READ on: memory stays until it cannot. */
static void test_only_the_table_says_that_a_generation_is_over(void **state)
{
	struct krp_stream_todo todo;
	struct krp_message m;
	struct mw_end *a, *b;
	__u64 seq, dead_ns;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	refusal(a, KRP_REFUSE_UNKNOWN, &m);
	m.tag = krp_cpu_to_le64(a->s.peer_tag);
	m.flags = KRP_MESSAGE_ECHO;
	m.generation = krp_cpu_to_le64(a->s.peer_generation + 1);
	dead_ns = a->s.time.posted_ns + 800 * MW_MS;
	krp_stream_received(&a->s, w->now_ns, w->now_ns, &m, 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, dead_ns);
	/* the table knows it */
	krp_stream_lost(&a->s, w->now_ns, -ECONNRESET, w->node[1].generation);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	krp_stream_lost(&a->s, w->now_ns, -ECONNRESET, w->node[1].generation + 1);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_RELEASE);
	mw_free(w);
}

/* What is posted late counts from when it was posted. */
static void test_packet_that_is_posted_late(void **state)
{
	struct krp_stream_todo todo, late;
	struct mw_end *a, *b;
	__u64 seq, now_ns;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	now_ns = w->now_ns + MW_MS;
	a->s.owe.probe = 1;
	assert_int_equal(krp_stream_next(&a->s, now_ns, &late), KRP_STREAM_SEND);
	krp_stream_post_begin(&a->s, &late.packet);
	krp_stream_abort(&a->s, now_ns, KRP_REFUSE_ABORT);
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_DIED);
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_SEND);
	krp_stream_post_begin(&a->s, &todo.packet); /* REFUSE, which nobody waits for */
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, KRP_STREAM_FOREVER_NS);
	now_ns += 5000 * MW_MS;
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	krp_stream_post_end(&a->s, now_ns, &late.packet);
	assert_int_equal(krp_stream_next(&a->s, now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, now_ns + 800 * MW_MS);
	assert_int_equal(krp_stream_next(&a->s, now_ns + 800 * MW_MS, &todo), KRP_STREAM_RELEASE);
	mw_free(w);
}

/* A caller that has stood still finds the answer in its receive queue, after the clock. */
static void test_death_by_the_clock_takes_two_looks(void **state)
{
	struct krp_stream_todo probe, todo;
	struct mw_end *a, *b;
	__u64 seq, now_ns;
	struct mw_world *w = announced(&a, &b, &seq);

	(void)state;
	now_ns = w->now_ns + 10 * MW_MS;
	assert_int_equal(krp_stream_next(&a->s, now_ns, &probe), KRP_STREAM_SEND);
	assert_int_equal(probe.packet.type, KRP_MESSAGE_PROBE);
	now_ns += 5000 * MW_MS;
	while (krp_stream_next(&a->s, now_ns, &todo) == KRP_STREAM_SEND)
		;
	assert_int_equal(todo.what, KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, now_ns + w->conf.retry_ns);
	assert_int_equal(a->s.state, KRP_STREAM_OPEN);
	krp_stream_received(&b->s, now_ns, now_ns, &probe.packet, 1);
	while (krp_stream_next(&b->s, now_ns, &todo) != KRP_STREAM_SEND)
		assert_int_not_equal(todo.what, KRP_STREAM_WAIT);
	krp_stream_received(&a->s, now_ns, now_ns, &todo.packet, 1);
	while (krp_stream_next(&a->s, now_ns + 3 * MW_MS, &todo) == KRP_STREAM_SEND)
		;
	assert_int_equal(a->s.state, KRP_STREAM_OPEN);
	mw_free(w);
}

/* A peer that has had all, and has forgotten, ends CLOSING well. */
static void test_peer_that_has_forgotten(void **state)
{
	struct krp_stream_todo todo;
	struct krp_message m;
	struct mw_end *a, *b;
	__u64 seq;
	struct mw_world *w = announced(&a, &b, &seq);
	struct krp_stream *s = &b->s;

	(void)state;
	assert_int_equal(krp_stream_fetch(s, w->now_ns, seq), 0);
	assert_int_equal(krp_stream_fetched(s, seq, 0), 0);
	s->state = KRP_STREAM_CLOSING; /* CLOSE has gone both ways, and is acknowledged */
	while (krp_stream_next(s, w->now_ns, &todo) == KRP_STREAM_SEND)
		;
	assert_int_equal(s->tx.una, s->tx.next);
	assert_int_equal(krp_stream_fetches(s), 1);
	refusal(b, KRP_REFUSE_UNKNOWN, &m);
	m.tag = krp_cpu_to_le64(s->peer_tag);
	m.flags = KRP_MESSAGE_ECHO;
	krp_stream_received(s, w->now_ns, w->now_ns, &m, 1);
	krp_stream_next(s, w->now_ns, &todo);
	assert_int_equal(s->state, KRP_STREAM_LINGER);
	assert_int_equal(s->error, 0);
	mw_free(w);
}

/* What this end waits for itself is no reason to ask the peer. */
static void test_no_question_for_what_is_ours(void **state)
{
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_req req = { .notify = 1 };
	struct krp_stream_todo todo;

	(void)state;
	krp_stream_write_begin(&a->s);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -EAGAIN);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &todo), KRP_STREAM_WAIT);
	assert_int_equal(todo.until_ns, KRP_STREAM_FOREVER_NS);
	mw_free(w);
}

/* The answer that was lost is given again, as it was. */
static void test_refusal_that_is_repeated(void **state)
{
	struct krp_stream_todo todo;
	struct mw_end *a, *b;
	struct mw_world *w = offered(&a, &b, 60000);
	unsigned int i;

	(void)state;
	b->s.fetch[0].state = KRP_FETCH_READING; /* keeps it from being over */
	krp_stream_abort(&b->s, w->now_ns, KRP_REFUSE_PROGRAM);
	for (i = 0; i < 3; i++) {
		while (krp_stream_next(&b->s, w->now_ns, &todo) != KRP_STREAM_SEND)
			assert_int_not_equal(todo.what, KRP_STREAM_WAIT);
		assert_int_equal(krp_le32_to_cpu(todo.packet.imm), KRP_REFUSE_PROGRAM);
		krp_stream_again(&b->s, w->now_ns);
	}
	b->s.fetch[0].state = KRP_FETCH_FREE;
	while (krp_stream_next(&b->s, w->now_ns, &todo) != KRP_STREAM_FORGET)
		assert_int_not_equal(todo.what, KRP_STREAM_WAIT);
	assert_int_equal(todo.number, KRP_REFUSE_PROGRAM);
	mw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_of_the_configuration),
		cmocka_unit_test(test_ways_between_states),
		cmocka_unit_test(test_first_contact_costs_a_round_trip_once),
		cmocka_unit_test(test_what_messages_cost),
		cmocka_unit_test(test_what_send_refuses),
		cmocka_unit_test(test_notification_waits_for_writes),
		cmocka_unit_test(test_window_that_is_full),
		cmocka_unit_test(test_foreign_headers),
		cmocka_unit_test(test_peer_that_breaks_a_rule),
		cmocka_unit_test(test_memory_is_held_until_no_read_can_come),
		cmocka_unit_test(test_fetch_only_within_the_lease),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_done_that_comes_again),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_end_without_room),
		cmocka_unit_test(test_opener_gives_up),
		cmocka_unit_test(test_peer_that_insists_holds_no_memory),
		cmocka_unit_test(test_program_that_takes_its_time),
		cmocka_unit_test(test_offer_without_an_opener),
		cmocka_unit_test(test_accepted_and_not_confirmed),
		cmocka_unit_test(test_accept_that_comes_again),
		cmocka_unit_test(test_what_a_refusal_ends),
		cmocka_unit_test(test_only_the_table_says_that_a_generation_is_over),
		cmocka_unit_test(test_packet_that_is_posted_late),
		cmocka_unit_test(test_death_by_the_clock_takes_two_looks),
		cmocka_unit_test(test_peer_that_has_forgotten),
		cmocka_unit_test(test_no_question_for_what_is_ours),
		cmocka_unit_test(test_refusal_that_is_repeated),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
