// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A connection on which nothing is said (MEMORY and TIME in proto/krp_stream.h): its machine has little
 * memory, and its peer is asked now and then.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/message_world.h"

static const struct mw_plan quiet = {
	.delay_us = 1, .window = 16, .pool = 1000, .shut_first = 2, .blow_state = MW_NEVER
};

/* Hand in messages from number @seq on, until there is no slot. Return: the next number. */
static uint64_t say_until_cramped(struct mw_world *w, struct mw_end *e, uint64_t seq)
{
	for (; !krp_stream_cramped(&e->s); seq++) {
		const struct krp_stream_req req = { .cookie = seq, .imm = 100 + (uint32_t)seq };

		assert_int_equal(krp_stream_send(&e->s, w->now_ns, &req), 0);
	}
	return seq;
}

/* Messages stay where their slots go, and go nowhere where they have no room. */
static void test_slots_that_move(void **state)
{
	struct krp_stream_slot few[KRP_STREAM_SLOTS_MIN], many[8];
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);
	struct krp_stream_todo todo;
	uint64_t seq;

	(void)state;
	assert_int_equal(krp_stream_move(&a->s, few, KRP_STREAM_SLOTS_MIN / 2), -EINVAL);
	assert_int_equal(krp_stream_move(&a->s, many, 6), -EINVAL);
	assert_int_equal(krp_stream_move(&a->s, few, KRP_STREAM_SLOTS_MIN), 0);
	seq = say_until_cramped(w, a, 0);
	assert_int_equal(seq, KRP_STREAM_SLOTS_MIN - KRP_STREAM_RESERVED);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &(struct krp_stream_req){ 0 }), -EAGAIN);
	assert_int_equal(krp_stream_move(&a->s, many, 8), 0);
	memset(few, 0xff, sizeof(few));
	seq = say_until_cramped(w, a, seq);
	assert_int_equal(seq, 8 - KRP_STREAM_RESERVED);
	assert_int_equal(krp_stream_move(&a->s, few, KRP_STREAM_SLOTS_MIN), -EBUSY);
	for (seq = 0; krp_stream_next(&a->s, w->now_ns, &todo) == KRP_STREAM_SEND; seq++)
		assert_int_equal(krp_le32_to_cpu(todo.packet.imm), 100 + seq);
	assert_int_equal(seq, 8 - KRP_STREAM_RESERVED);
	mw_free(w);
}

/* Large messages need memory of both ends; without it they change nothing. */
static void test_large_ones_without_memory(void **state)
{
	const struct krp_stream_req req = { .large = 1, .length = 5000, .addr = 4096 };
	struct krp_stream_large memory[2];
	struct krp_stream_todo announce, todo;
	struct mw_end *a, *b;
	struct mw_world *w = mw_opened(&quiet, &a, &b);

	(void)state;
	assert_int_equal(krp_stream_take_large(&a->s), 1);
	assert_int_equal(krp_stream_take_large(&b->s), 1);
	assert_int_equal(krp_stream_take_large(&b->s), 0);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), -ENOBUFS);
	assert_int_equal(a->s.tx.next, a->s.tx.told);
	krp_stream_give_large(&a->s, &memory[0]);
	assert_int_equal(krp_stream_send(&a->s, w->now_ns, &req), 0);
	assert_int_equal(krp_stream_take_large(&a->s), 0);
	assert_int_equal(krp_stream_next(&a->s, w->now_ns, &announce), KRP_STREAM_SEND);
	assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &announce.packet, 1),
			 KRP_STREAM_DROPPED);
	assert_int_equal(b->s.dropped.busy, 1);
	assert_int_equal(krp_stream_next(&b->s, w->now_ns, &todo), KRP_STREAM_SEND);
	assert_int_equal(todo.packet.flags & KRP_MESSAGE_BUSY, KRP_MESSAGE_BUSY);
	while (krp_stream_next(&b->s, w->now_ns, &todo) != KRP_STREAM_WAIT)
		;
	krp_stream_give_large(&b->s, &memory[1]);
	assert_int_equal(krp_stream_received(&b->s, w->now_ns, w->now_ns, &announce.packet, 1),
			 KRP_STREAM_ANNOUNCED);
	assert_int_equal(krp_stream_take_large(&b->s), 0);
	mw_free(w);
}

/* A peer of which nothing is awaited is asked now and then, by one of the two; no more than that. */
static void test_idle_peer_is_asked(void **state)
{
	struct mw_plan plan = quiet;
	struct mw_end *a, *b;
	struct mw_world *w;

	(void)state;
	plan.idle_ms = 1000;
	w = mw_opened(&plan, &a, &b);
	mw_run(w, w->now_ns + 10500 * MW_MS);
	assert_in_range(w->packets[KRP_MESSAGE_PROBE], 9, 12);
	assert_in_range(w->packets[KRP_MESSAGE_CREDIT], 9, 12);
	assert_int_equal(w->sent_packets,
			 w->packets[KRP_MESSAGE_PROBE] + w->packets[KRP_MESSAGE_CREDIT]);
	assert_null(w->broken);
	mw_free(w);
}

/* One that has gone without a word is noticed: @there: its node answers for it. */
static void idle_peer_goes(bool there)
{
	struct mw_plan plan = quiet;
	struct mw_end *a, *b;
	struct mw_world *w;
	uint64_t limit_ns;

	plan.idle_ms = 1000;
	w = mw_opened(&plan, &a, &b);
	w->plan.lose_every = 1;
	mw_kill(w, b);
	assert_false(b->used);
	w->plan.lose_every = there ? 0 : 1;
	limit_ns = w->now_ns + 1300 * MW_MS + (there ? 0 : 2 * w->conf.silence_ns);
	while (a->used && w->now_ns < limit_ns)
		mw_run(w, w->now_ns + MW_MS);
	assert_false(a->used);
	mw_free(w);
}

static void test_idle_peer_that_goes(void **state)
{
	(void)state;
	idle_peer_goes(true);
	idle_peer_goes(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_that_move),
		cmocka_unit_test(test_large_ones_without_memory),
		cmocka_unit_test(test_idle_peer_is_asked),
		cmocka_unit_test(test_idle_peer_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
