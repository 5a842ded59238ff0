// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What comes before a connection between two nodes (proto/krp_listen.h), case by case: whom a
 * listener believes, what it answers, and what a flood of OPENs leaves to others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/message_world.h"

static const struct mw_plan quiet = {
	.delay_us = 1, .window = 8, .pool = 1000, .shut_first = 2, .blow_state = MW_NEVER
};

/* Whom a listener believes. */
static void test_whom_a_listener_believes(void **state)
{
	struct {
		struct krp_message m;
		struct krp_message_open open;
	} p = { .m = { .type = KRP_MESSAGE_OPEN } };
	struct krp_value record = { .generation = krp_cpu_to_le64(9), .kind = KRP_KIND_DCT };
	struct krp_listen_facts facts = { .pass = 77, .generation = 5, .service = 1, .room = 1 };
	__u32 status = 0;

	(void)state;
	record.dct.dctn = krp_cpu_to_le32(4);
	record.dct.dc_key = krp_cpu_to_le64(6);
	p.open.value = record;
	p.open.peer_generation = krp_cpu_to_le64(5);
#define JUDGE() krp_listen_judge(&p.m, &facts, &status)
	assert_int_equal(JUDGE(), KRP_LISTEN_LOOK_UP);
	facts.fresh = 1;
	assert_int_equal(JUDGE(), KRP_LISTEN_DROP); /* there is no such node */
	facts.record = &record;
	assert_int_equal(JUDGE(), KRP_LISTEN_CHALLENGE);
	p.open.pass = krp_cpu_to_le64(77);
	assert_int_equal(JUDGE(), KRP_LISTEN_OFFER);
	record.dct.dc_key = krp_cpu_to_le64(7);
	assert_int_equal(JUDGE(), KRP_LISTEN_DROP); /* it is not the node that it says */
	facts.fresh = 0;
	assert_int_equal(JUDGE(), KRP_LISTEN_LOOK_UP); /* or what is cached is old */
	record.dct.dc_key = krp_cpu_to_le64(6);
	record.dct.ud_qpn = krp_cpu_to_le32(8);
	assert_int_equal(JUDGE(), KRP_LISTEN_LOOK_UP); /* of a port that has been made anew */
	record.dct.ud_qpn = 0;
	record.kind = KRP_KIND_LANE;
	assert_int_equal(JUDGE(), KRP_LISTEN_LOOK_UP);
	p.open.value.kind = KRP_KIND_LANE;
	assert_int_equal(JUDGE(), KRP_LISTEN_OFFER);
	record.kind = p.open.value.kind = KRP_KIND_DCT;
	facts.room = 0;
	assert_int_equal(JUDGE(), KRP_LISTEN_REFUSE);
	assert_int_equal(status, KRP_REFUSE_BACKLOG);
	facts.service = 0;
	assert_int_equal(JUDGE(), KRP_LISTEN_REFUSE);
	assert_int_equal(status, KRP_REFUSE_SERVICE);
	facts.buried = 1;
	assert_int_equal(JUDGE(), KRP_LISTEN_REFUSE);
	assert_int_equal(status, KRP_REFUSE_ABORT);
	p.open.peer_generation = krp_cpu_to_le64(4);
	assert_int_equal(JUDGE(), KRP_LISTEN_REFUSE);
	assert_int_equal(status, KRP_REFUSE_STALE);
	p.open.peer_generation = krp_cpu_to_le64(5);
	p.open.pass = 0; /* then nothing else is said */
	assert_int_equal(JUDGE(), KRP_LISTEN_CHALLENGE);
}

static void test_unknown_queues(void **state)
{
	struct krp_message m = { .type = KRP_MESSAGE_DATA };
	struct krp_stream_todo answer;

	(void)state;
	m.tag = krp_cpu_to_le64(3);
	m.src = krp_cpu_to_le32(1);
	m.dst = krp_cpu_to_le32(2);
	assert_int_equal(krp_listen_unknown(&m, 8, &answer.packet), 1);
	assert_int_equal(krp_message_check(&answer.packet, KRP_MESSAGE_BYTES), KRP_MESSAGE_OK);
	assert_int_equal(krp_le64_to_cpu(answer.packet.tag), 3);
	assert_int_equal(krp_le32_to_cpu(answer.packet.dst), 1);
	assert_int_equal(answer.packet.flags, KRP_MESSAGE_ECHO);
	m.type = KRP_MESSAGE_REFUSE;
	assert_int_equal(krp_listen_unknown(&m, 8, &answer.packet), 0);
	m.type = KRP_MESSAGE_CHALLENGE;
	assert_int_equal(krp_listen_unknown(&m, 8, &answer.packet), 0);
}

/* A few nodes do not fill a backlog. */
static void test_room_in_a_backlog(void **state)
{
	uint32_t of[4] = { 0 }, waiting = 0, turn, node;

	(void)state;
	assert_int_equal(krp_listen_room(1, 0, 0), 1);
	assert_int_equal(krp_listen_room(1, 1, 0), 0);
	assert_int_equal(krp_listen_room(0, 0, 0), 0);
	for (turn = 0; turn < 400; turn++) {
		node = turn % 3;
		if (!krp_listen_room(128, waiting, of[node]))
			continue;
		of[node]++;
		waiting++;
	}
	assert_in_range(waiting, 90, 100);
	while (krp_listen_room(128, waiting, of[3])) {
		of[3]++;
		waiting++;
	}
	assert_in_range(of[3], 14, 20); /* half of what is left */
	assert_true(waiting < 128);
}

/* Look-ups: one a GID, few at once, some of them for those that are known, and a memory. */
static void test_look_ups(void **state)
{
	struct krp_listen_lookups lookups = { .seed = 7, .max = 8 };
	__u8 gid[40][KRP_GID_BYTES] = { { 0 } };
	unsigned int i, nr = 0;

	(void)state;
	for (i = 0; i < 40; i++) {
		gid[i][0] = (__u8)(i + 1);
		nr += (unsigned int)krp_listen_look_begin(&lookups, gid[i], 0);
		assert_int_equal(krp_listen_look_begin(&lookups, gid[i], 0), 0);
		assert_int_equal(krp_listen_fresh(&lookups, 0, gid[i]), 0);
	}
	assert_int_equal(nr, 6);
	for (i = 0; i < 40 && lookups.busy < 8; i++)
		nr += (unsigned int)krp_listen_look_begin(&lookups, gid[i], 1);
	assert_int_equal(nr, 8);

	memset(&lookups, 0, sizeof(lookups));
	lookups.max = 1;
	assert_int_equal(krp_listen_look_begin(&lookups, gid[0], 0), 1);
	krp_listen_look_end(&lookups, 5 * MW_MS, gid[0], 0);
	assert_int_equal(lookups.busy + lookups.strange, 0);
	assert_int_equal(krp_listen_fresh(&lookups, 104 * MW_MS, gid[0]), 1);
	assert_int_equal(krp_listen_fresh(&lookups, 104 * MW_MS, gid[1]), 0);
	assert_int_equal(krp_listen_fresh(&lookups, 105 * MW_MS, gid[0]), 0);
	assert_int_equal(krp_listen_look_begin(&lookups, gid[0], 0), 1);
	krp_listen_look_end(&lookups, 0, gid[0], -ENOENT);
	assert_int_equal(krp_listen_fresh(&lookups, 999 * MW_MS, gid[0]), 1);
	assert_int_equal(krp_listen_look_begin(&lookups, gid[0], 0), 1);
	krp_listen_look_end(&lookups, 0, gid[0], -ETIMEDOUT);
	assert_int_equal(krp_listen_fresh(&lookups, 1, gid[0]), 0);
}

/* Whether a first contact is made while somebody floods with OPENs in another node's name. */
static bool opens_beside_a_flood(void)
{
	struct mw_plan plan = quiet;
	struct mw_world *w;
	struct mw_event *ev = calloc(1, sizeof(*ev));
	struct mw_end *a;
	unsigned int i;
	bool opens;

	assert_non_null(ev);
	plan.stays = true;
	plan.look_us = 2000;
	w = mw_new(&plan, 3, 1);
	ev->to = 1;
	ev->bytes = sizeof(ev->packet) + sizeof(ev->body.open);
	ev->packet.type = KRP_MESSAGE_OPEN;
	memcpy(ev->body.open.gid, w->node[2].gid, KRP_GID_BYTES);
	ev->body.open.value.generation = krp_cpu_to_le64(99);
	for (i = 0; i < 8; i++)
		mw_arrive(w, ev);
	a = mw_open(w, 0, 1);
	for (i = 0; i < 10000 && a->s.state == KRP_STREAM_OPENING; i++) {
		mw_run(w, w->now_ns + 100 * MW_US);
		mw_arrive(w, ev);
		mw_arrive(w, ev);
	}
	opens = a->s.state == KRP_STREAM_OPEN;
	assert_true(w->look_ups > 1);
	mw_free(w);
	free(ev);
	return opens;
}

static void test_first_contact_beside_a_flood(void **state)
{
	(void)state;
	assert_true(opens_beside_a_flood());
	mw_mutant = "look up again";
	assert_false(opens_beside_a_flood());
	mw_mutant = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whom_a_listener_believes),
		cmocka_unit_test(test_unknown_queues),
		cmocka_unit_test(test_room_in_a_backlog),
		cmocka_unit_test(test_look_ups),
		cmocka_unit_test(test_first_contact_beside_a_flood),
	};

	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
