// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages by proto/krp_stream.h arrive exactly once and in order, and everything comes to an
 * end: through loss of every k-th packet, duplicates, packets that overtake each other, resets of
 * initiators, death and return of either end in each state, receivers that stop, receive
 * buffers that run out, and 200 senders to one. Faults that are planted are found.
 *
 * KRC_STREAM_MESSAGES: how many numbered messages go each way in the longest run, 60000 when not said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/message_world.h"

#define MUTANT_SEEDS 200
#define EVENTS_MAX 3000000
#define MESSAGES 60000 /* each way, where nothing else is said */

/* what a run begins with; tests change a copy */
static const struct mw_plan plain = { .messages = 400,
				      .first = true,
				      .delay_us = 20,
				      .window = 16,
				      .pool = 100000,
				      .shut_first = 2,
				      .blow_state = MW_NEVER,
				      .thrifty = true };

static uint64_t messages; /* that all runs have delivered */
static uint64_t events_max = EVENTS_MAX; /* of a run that comes to no end */

static const char *run(const struct mw_plan *plan, uint64_t seed)
{
	static char why[200];
	struct mw_world *w = mw_new(plan, 2, seed);
	const char *broken;
	uint64_t ms;

	mw_open(w, 0, 1);
	for (ms = 1000; !w->broken && w->heap_nr && w->events < events_max; ms += 1000)
		mw_run(w, ms * MW_MS);
	broken = mw_judge(w);
	messages += w->conn[0].way[0].delivered + w->conn[0].way[1].delivered;
	snprintf(why, sizeof(why), "seed %llu: %s", (unsigned long long)seed, broken ? broken : "");
	mw_free(w);
	return broken ? why : NULL;
}

static void run_well(const struct mw_plan *plan, uint64_t seed)
{
	const char *broken = run(plan, seed);

	if (broken)
		fail_msg("%s", broken);
}

/*
 * Loss, repetition, disorder, large ones, resets of initiators, windows that change and receive buffers
 * that run out, all in one run.
 */
static void test_many_numbered_messages(void **state)
{
	const char *said = getenv("KRC_STREAM_MESSAGES");
	struct mw_plan plan = plain;

	(void)state;
	plan.messages = said ? (uint32_t)strtoul(said, NULL, 10) : MESSAGES;
	assert_true(plan.messages > 0);
	plan.lose_every = 200;
	plan.double_every = 150;
	plan.large_every = 50;
	plan.delay_us = 40;
	plan.reset_us = 20000;
	plan.budget_us = 5000;
	plan.pool = 64;
	plan.slow_us = 5;
	events_max = (uint64_t)EVENTS_MAX * (1 + plan.messages / MESSAGES);
	messages = 0;
	run_well(&plan, 1);
	events_max = EVENTS_MAX;
	assert_int_equal(messages, 2ULL * plan.messages);
}

static void test_loss_of_every_kth(void **state)
{
	static const uint32_t odds[] = { 2, 3, 4, 5, 7, 10, 20, 50, 100 };
	struct mw_plan plan = plain;
	unsigned int i, seed;

	(void)state;
	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		for (seed = 0; seed < 10; seed++) {
			plan.lose_every = odds[i];
			plan.large_every = seed % 2 ? 5 : 0;
			plan.first = seed % 3;
			plan.thrifty = seed % 2;
			run_well(&plan, seed);
		}
}

static void test_duplicates_and_disorder(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		plan.double_every = 2 + seed % 5;
		plan.delay_us = 1 + 40 * (seed % 4);
		plan.large_every = seed % 3 ? 7 : 0;
		plan.cancel_every = seed % 2 ? 3 : 0;
		run_well(&plan, seed);
	}
}

static void test_resets_of_initiators(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		plan.reset_us = 20 + 100 * seed;
		plan.large_every = seed % 2 ? 6 : 0;
		plan.lose_every = seed % 4 ? 0 : 30;
		run_well(&plan, seed);
	}
}

/* Each state, each blow, each side, early and late. */
static void test_blows_in_each_state(void **state)
{
	static const enum mw_blow blows[] = { MW_RESET, MW_KILL, MW_REBOOT };
	struct mw_plan plan = plain;
	unsigned int i, nr = 0;

	(void)state;
	plan.messages = 120;
	plan.large_every = 8;
	plan.cancel_every = 5;
	plan.double_every = 10;
	for (i = 0; i < 3 * 2 * KRP_STREAM_STATES * 4; i++) {
		plan.blow = blows[i % 3];
		plan.blow_side = i / 3 % 2;
		plan.blow_state = (uint8_t)(i / 6 % KRP_STREAM_STATES);
		plan.blow_after = i / 6 / KRP_STREAM_STATES * 40;
		plan.shut_first = i % 5 % 3;
		plan.lose_every = i % 7 ? 0 : 20;
		run_well(&plan, i);
		nr++;
	}
	assert_int_equal(nr, 240);
}

static void test_halves_close_in_any_order(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.messages = 60;
	for (seed = 0; seed < 60; seed++) {
		plan.shut_first = seed % 3;
		plan.large_every = seed % 2 ? 4 : 0;
		plan.lose_every = seed % 4 ? 5 : 0;
		plan.slow_us = seed % 5 ? 0 : 300;
		run_well(&plan, seed);
	}
}

static void test_receiver_that_stops(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.stop_ms = 3000;
	for (seed = 0; seed < 20; seed++) {
		plan.lose_every = seed % 2 ? 4 : 0;
		plan.large_every = seed % 3 ? 0 : 5;
		run_well(&plan, seed);
	}
}

static void test_buffers_that_run_out(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.slow_us = 50;
	for (seed = 0; seed < 20; seed++) {
		plan.pool = 1 + seed % 7;
		plan.lose_every = seed % 3 ? 0 : 10;
		run_well(&plan, seed);
	}
}

static void test_budgets_that_change(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.budget_us = 400;
	for (seed = 0; seed < 30; seed++) {
		plan.large_every = seed % 2 ? 5 : 0;
		plan.lose_every = seed % 3 ? 0 : 10;
		run_well(&plan, seed);
	}
}

/* Two programs that read nothing before their own large messages have ended do not hang. */
static void test_selfish_programs(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.selfish = true;
	for (seed = 0; seed < 30; seed++) {
		plan.large_every = 3 + seed % 10;
		plan.window = 2 + seed % 7;
		plan.lose_every = seed % 3 ? 0 : 10;
		run_well(&plan, seed);
	}
}

static void test_refusals(void **state)
{
	struct mw_plan plan = plain;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		plan.refuse = seed % 2;
		plan.no_room = !plan.refuse;
		plan.lose_every = seed % 4 ? 0 : 3;
		run_well(&plan, seed);
	}
}

/*
 * A caller that stands still between pull and doorbell: nothing is READ that was given back, though
 * what it posts late begins a lease at the peer.
 */
static void stall_plan(struct mw_plan *plan, uint64_t seed)
{
	*plan = plain;
	plan->messages = 60;
	plan->large_every = 2;
	plan->lose_every = 4;
	plan->stall_every = 1 + seed % 2;
	plan->stall_ms = 1800;
	plan->blow = MW_KILL;
	plan->blow_state = KRP_STREAM_OPEN;
	plan->blow_after = seed % 7;
}

static void test_posts_that_are_late(void **state)
{
	struct mw_plan plan;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 100; seed++) {
		stall_plan(&plan, seed);
		run_well(&plan, seed);
	}
}

/* The end of one program while the other's has not decided, or is idle, is the end of both. */
static void test_openers_that_go(void **state)
{
	struct mw_plan plan = plain;
	struct mw_world *w;
	unsigned int seed;
	struct mw_end *e;
	uint64_t ms;

	(void)state;
	plan.messages = 0;
	plan.stays = true;
	plan.idle_ms = 3000;
	for (seed = 0; seed < 300; seed++) {
		plan.lose_every = seed % 3 ? 3 : 0;
		plan.delay_us = 1 + seed % 60 * 20;
		w = mw_new(&plan, 2, seed);
		e = mw_open(w, 0, 1);
		mw_run(w, w->now_ns + 10 * MW_US * seed);
		if (e->used)
			mw_kill(w, e);
		for (ms = 1000; !w->broken && w->heap_nr && ms < 60000; ms += 1000)
			mw_run(w, ms * MW_MS);
		if (mw_judge(w))
			fail_msg("seed %u: %s", seed, w->broken);
		mw_free(w);
	}
}

/* 200 senders, one receiver that is slow, and buffers for a few of them. */
static void test_200_to_1(void **state)
{
	struct mw_plan plan = plain;
	struct mw_world *w;
	uint32_t i, least = UINT32_MAX;

	(void)state;
	plan.messages = 50;
	plan.large_every = 10;
	plan.pool = 256;
	plan.slow_us = 20;
	plan.window = 8;
	w = mw_new(&plan, 201, 7);
	for (i = 1; i <= 200; i++)
		mw_open(w, i, 0);
	for (i = 1001; !w->broken && w->heap_nr && i < 60000; i++)
		mw_run(w, i * MW_MS);
	assert_null(mw_judge(w));
	for (i = 0; i < 200; i++)
		if (w->conn[i].way[0].delivered < least)
			least = w->conn[i].way[0].delivered;
	assert_int_equal(least, 50);
	mw_free(w);
}

/* planted faults */

/* What reaches a fault: a plan that has something of everything. */
static void mutant_plan(struct mw_plan *plan, uint64_t seed)
{
	*plan = plain;
	plan->messages = 150;
	plan->lose_every = seed % 3 ? 12 : 0;
	plan->double_every = seed % 2 ? 4 : 0;
	plan->large_every = seed % 4 && seed % 11 ? 6 : 0;
	plan->cancel_every = seed % 5 ? 3 : 0;
	plan->selfish = seed % 7 == 1;
	plan->thrifty = seed % 4 > 1;
	plan->window = 4 + (uint32_t)seed % 13;
	plan->pool = seed % 6 || plan->selfish ? 100000 : 3;
	plan->slow_us = seed % 6 ? 0 : 60;
	plan->deaf_ms = seed % 11 ? 0 : 50;
	plan->reset_us = seed % 8 ? 0 : 300;
	if (seed % 9 != 4)
		return;
	plan->blow = seed % 2 ? MW_KILL : MW_REBOOT;
	plan->blow_side = 1;
	plan->blow_state = KRP_STREAM_OPEN;
}

static void test_mutants(void **state)
{
	static const char *const faults[] = {
		"jump a gap",	  "take a repetition",	     "keep a credit",
		"do not repeat",  "release at cancel",	     "acknowledge ahead",
		"busy is taken",  "done waits for a window", "open for another generation",
		"forget at once", "move no message",
	};
	struct mw_plan plan;
	uint64_t seed;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const char *broken = NULL;

		mw_mutant = faults[i];
		for (seed = 0; !broken && seed < MUTANT_SEEDS; seed++) {
			mutant_plan(&plan, seed);
			broken = run(&plan, seed);
		}
		mw_mutant = NULL;
		if (!broken)
			fail_msg("\"%s\" is not found in %u runs", faults[i], MUTANT_SEEDS);
		printf("%s: %s\n", faults[i], broken);
	}
	for (seed = 0; seed < MUTANT_SEEDS; seed++) {
		mutant_plan(&plan, seed);
		run_well(&plan, seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_numbered_messages),
		cmocka_unit_test(test_loss_of_every_kth),
		cmocka_unit_test(test_duplicates_and_disorder),
		cmocka_unit_test(test_resets_of_initiators),
		cmocka_unit_test(test_blows_in_each_state),
		cmocka_unit_test(test_halves_close_in_any_order),
		cmocka_unit_test(test_receiver_that_stops),
		cmocka_unit_test(test_buffers_that_run_out),
		cmocka_unit_test(test_budgets_that_change),
		cmocka_unit_test(test_selfish_programs),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_posts_that_are_late),
		cmocka_unit_test(test_openers_that_go),
		cmocka_unit_test(test_200_to_1),
		cmocka_unit_test(test_mutants),
	};

	return cmocka_run_group_tests_name("stream_property", tests, NULL, NULL);
}
