// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: messages and peers that do not answer: they are asked on a channel set apart, and no message
 * is sent before.
 * Locking: a test runs alone.
 */
#include "krc_stream_test.h"
#include "pool/pool_priv.h"

#define KRC_TEST_SHARED 1 /* channels of a test's port */
#define KRC_TEST_FIRST_MESSAGE (KRC_TEST_SHARED + KRC_POOL_OTHERS)

/* Requests of a port that its hardware has, on channels of messages, or on those apart. */
static u32 krc_test_held_of(const struct krc_test_side *side, bool messages)
{
	u32 i = messages ? KRC_TEST_FIRST_MESSAGE : KRC_TEST_SHARED, sum = 0;
	u32 end = messages ? KRC_FAKE_INITIATORS : KRC_TEST_FIRST_MESSAGE;

	for (; i < end; i++)
		sum += krc_fake_pending(side->fake, i);
	return sum;
}

/* The same of the first port. */
static u32 krc_test_held(struct krc_test_world *w, bool messages)
{
	return krc_test_held_of(&w->side[0], messages);
}

static u32 krc_test_resets(struct krc_test_world *w)
{
	const struct krc_fake *fake = w->side[0].fake;
	u32 i, sum = 0;

	for (i = KRC_TEST_FIRST_MESSAGE; i < KRC_FAKE_INITIATORS; i++)
		sum += fake->ini[i] ? fake->ini[i]->resets : 0;
	return sum;
}

/* Wait until the peer is being asked; nothing is carried out. */
static void krc_test_asked(struct krc_test_world *w)
{
	w->stuck = true;
	krc_test_until(w, krc_test_held(w, false) == 1);
	KUNIT_EXPECT_EQ(w->test, krc_test_held(w, true), 0U);
}

/* The question is not answered. */
static void krc_test_unanswered(struct krc_test_world *w)
{
	u32 i;

	for (i = KRC_TEST_SHARED; i < KRC_TEST_FIRST_MESSAGE; i++)
		krc_fake_fail(w->side[0].fake, i, KRC_FAULT_TIMEOUT);
}

/* Nothing is sent to a peer that is not known, before it has answered. */
static void krc_test_asked_before_the_first_message(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];

	krc_test_listen(w, 4);
	w->stuck = true;
	krc_test_connect(w, a, krc_test_message(a, 4));
	krc_test_asked(w);
	w->stuck = false;
	krc_test_accept(w, &w->side[1].end[0]);
	krc_test_until(w, READ_ONCE(a->opened) && READ_ONCE(a->done) == 1);
	KUNIT_EXPECT_EQ(test, a->failed, 0U);
}

/* While messages go back and forth nobody asks; what is counted are READs on channels apart. */
static void krc_test_not_asked_while_it_answers(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	u64 asked = 0, before;
	u32 i, round;

	krc_test_pair(w, 0);
	for (i = KRC_TEST_SHARED; i < KRC_TEST_FIRST_MESSAGE; i++)
		asked += w->side[0].fake->ini[i]->log_nr;
	before = asked;
	KUNIT_EXPECT_GE(test, before, 1ULL);
	for (round = 1; round <= 20; round++) {
		krc_standing_answered(a->stream->proof.standing); /* however slow this machine is */
		krc_test_say(a, 1, 64);
		krc_test_until(w, (krc_test_read(b), b->next == round));
	}
	for (asked = 0, i = KRC_TEST_SHARED; i < KRC_TEST_FIRST_MESSAGE; i++)
		asked += w->side[0].fake->ini[i]->log_nr;
	KUNIT_EXPECT_LE(test, asked, before + 2);
}

/* A silent peer gets no message, costs the channel of messages nothing, and comes back. */
static void krc_test_a_silent_peer(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	u32 round;

	krc_test_pair(w, 0);
	krc_test_quiet(w); /* an ACCEPT that was repeated would be answered */
	krc_standing_suspect(a->stream->proof.standing);
	krc_test_say(a, 3, 64);
	for (round = 0; round < 2; round++) {
		krc_test_asked(w);
		krc_test_unanswered(w);
		/* the next READ may stand there before this looks */
		krc_test_until(w, READ_ONCE(a->stream->proof.standing->failures) > round);
	}
	KUNIT_EXPECT_EQ(test, krc_test_resets(w), 0U);
	KUNIT_EXPECT_EQ(test, a->died, 0U);
	w->stuck = false;
	krc_test_until(w, (krc_test_read(b), b->next == 3) && READ_ONCE(a->done) == 3);
	KUNIT_EXPECT_EQ(test, b->wrong + a->failed, 0U);
}

/* A SEND without an answer makes the peer silent; its own channel is the only one that was reset. */
static void krc_test_a_send_without_an_answer(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	u32 i;

	krc_test_pair(w, 0);
	krc_test_quiet(w);
	w->stuck = true;
	krc_standing_answered(a->stream->proof.standing);
	krc_test_say(a, 1, 64);
	krc_test_until(w, krc_test_held(w, true) >= 1);
	for (i = KRC_TEST_FIRST_MESSAGE; i < KRC_FAKE_INITIATORS; i++)
		krc_fake_fail(w->side[0].fake, i, KRC_FAULT_TIMEOUT);
	krc_test_until(w, krc_test_resets(w) == 1);
	krc_test_asked(w);
	KUNIT_EXPECT_EQ(test, (u32)READ_ONCE(a->stream->proof.standing->state),
			(u32)KRC_STANDING_SILENT);
	w->stuck = false;
	krc_test_until(w, (krc_test_read(b), b->next == 1) && READ_ONCE(a->done) == 1);
	KUNIT_EXPECT_EQ(test, b->wrong + a->failed, 0U);
}

/* Have the NIC of a port carry out what it has. */
static void krc_test_move_one(struct krc_test_side *side)
{
	u32 n;

	for (n = 0; n < KRC_FAKE_INITIATORS; n++)
		krc_fake_complete(side->fake, n, KRC_TEST_QUEUE);
}

/*
 * Whoever says to be a node that does not answer has nothing sent there: neither CHALLENGE nor REFUSE
 * waits in the channels of messages.
 */
static void krc_test_no_answer_to_a_silent_node(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	struct krc_test_side *side = &w->side[1];
	u32 i;

	krc_test_listen(w, 4);
	w->side[0].cached = true;
	w->stuck = true; /* but for the first port, which sends and hears nothing */
	krc_test_connect(w, a, NULL);
	krc_test_until(w, (krc_test_move_one(&w->side[0]),
			   atomic64_read(&side->messages->count[KRC_COUNT_CHALLENGES])));
	krc_test_until(w, krc_test_held_of(side, false) == 1);
	KUNIT_EXPECT_EQ(test, krc_test_held_of(side, true), 0U);
	for (i = KRC_TEST_SHARED; i < KRC_TEST_FIRST_MESSAGE; i++)
		krc_fake_fail(side->fake, i, KRC_FAULT_TIMEOUT);
	krc_test_until(w, !READ_ONCE(side->messages->answers[0].busy));
	KUNIT_EXPECT_EQ(test, krc_test_held_of(side, true), 0U);
	w->stuck = false;
	krc_test_accept(w, &side->end[0]); /* when it hears, it is answered */
	krc_test_until(w, READ_ONCE(a->opened));
}

/* The port ends while one that it is to answer is asked. */
static void krc_test_the_end_before_an_answer(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_side *side = &w->side[1];

	krc_test_listen(w, 4);
	w->side[0].cached = true;
	w->stuck = true;
	krc_test_connect(w, &w->side[0].end[0], NULL);
	krc_test_until(w, (krc_test_move_one(&w->side[0]), krc_test_held_of(side, false) == 1));
	krc_test_side_end(side);
	w->stuck = false;
}

/* The port ends while a peer is asked: all is told, and nothing is left. */
static void krc_test_the_end_while_asked(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];

	w->stuck = true;
	krc_test_connect(w, a, krc_test_message(a, 4));
	krc_test_asked(w);
	krc_test_side_end(&w->side[0]);
	krc_test_until(w, READ_ONCE(a->died)); /* a work item that was at it tells of it */
	KUNIT_EXPECT_EQ(test, a->died, 1U);
	KUNIT_EXPECT_EQ(test, a->done, 1U);
	KUNIT_EXPECT_EQ(test, a->last, -ENODEV);
}

/* Questions take their time, so a peer is not given up as soon as in other suites. */
static int krc_test_prove_make(struct kunit *test)
{
	int err = krc_test_world_make(test);
	struct krc_test_world *w = test->priv;

	w->side[0].messages->conf.silence_ns = KRC_TEST_LIMIT_MS * (u64)NSEC_PER_MSEC;
	return err;
}

static struct kunit_case krc_prove_cases[] = { KUNIT_CASE(krc_test_asked_before_the_first_message),
					       KUNIT_CASE(krc_test_not_asked_while_it_answers),
					       KUNIT_CASE(krc_test_a_silent_peer),
					       KUNIT_CASE(krc_test_a_send_without_an_answer),
					       KUNIT_CASE(krc_test_no_answer_to_a_silent_node),
					       KUNIT_CASE(krc_test_the_end_before_an_answer),
					       KUNIT_CASE(krc_test_the_end_while_asked),
					       {} };

static struct kunit_suite krc_prove_suite = {
	.name = "krcore_prove",
	.init = krc_test_prove_make,
	.exit = krc_test_world_end,
	.test_cases = krc_prove_cases,
};
kunit_test_suite(krc_prove_suite);
