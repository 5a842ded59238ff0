// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lanes by proto/krp_lanes.h come up at both ends or at none, nothing is posted to what is not
 * connected, nothing is reset that is in use, a REQUEST makes one lane at most, and all comes to
 * an end: through loss, duplicates, packets that overtake each other, both ports at once, new
 * generations of either, queue pairs that fail, tables that forget, a host that sends again what it
 * has seen, and one that forges. Faults that are planted are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/lane_world.h"

#define MUTANT_SEEDS 60

/* what a run begins with; tests change a copy */
static const struct lw_plan plain = {
	.ports = 3, .keys = true, .delay_us = 50, .make = 4, .post = 2, .close = 60
};

static uint64_t up, crossed, refused, challenged, replayed, closed, late;

static const char *run(const struct lw_plan *plan, uint64_t seed, uint64_t ms)
{
	static char why[200];
	struct lw_world *w = lw_new(plan, seed);
	const char *broken;
	uint32_t i;

	lw_run(w, ms);
	broken = lw_judge(w);
	up += w->up;
	crossed += w->crossed;
	refused += w->refused;
	challenged += w->challenged;
	replayed += w->replayed;
	for (i = 0; i < plan->ports; i++) {
		closed += w->port[i].t.closed;
		late += w->port[i].t.late;
	}
	snprintf(why, sizeof(why), "seed %llu: %s", (unsigned long long)seed, broken ? broken : "");
	lw_free(w);
	return broken ? why : NULL;
}

static void run_well(const struct lw_plan *plan, uint64_t seed, uint64_t ms)
{
	const char *broken = run(plan, seed, ms);

	if (broken)
		fail_msg("%s", broken);
}

static int begin(void **state)
{
	(void)state;
	up = crossed = refused = challenged = replayed = closed = late = 0;
	return 0;
}

static void test_lanes_come_and_go(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 10; seed++)
		run_well(&plain, seed, 500);
	assert_true(up > 300);
	assert_int_equal(challenged, 0); /* with a key one round trip is enough */
}

static void test_loss_duplicates_disorder(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 24; seed++) {
		plan.lose = seed % 3 ? 2 + seed % 7 : 0;
		plan.twice = seed % 2 ? 2 : 0;
		plan.delay_us = 50 + 1000 * (seed % 5);
		run_well(&plan, seed, 400);
	}
	assert_true(up > 500);
}

static void test_both_at_once(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.pairs_only = true;
	plan.make = 1;
	plan.close = 20;
	for (seed = 0; seed < 24; seed++) {
		plan.delay_us = 500 + 300 * (seed % 9);
		plan.lose = seed % 3 ? 0 : 5;
		run_well(&plan, seed, 400);
	}
	assert_true(crossed > 100);
	assert_true(up > 500);
}

static void test_new_generations_and_failures(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 24; seed++) {
		plan.reboot = 200 + 100 * (seed % 7);
		plan.break_lane = seed % 2 ? 30 : 0;
		plan.refuse_connect = seed % 3 ? 10 : 0;
		plan.stale = seed % 4 ? 0 : 4;
		plan.lose = seed % 5 ? 0 : 6;
		run_well(&plan, seed, 400);
	}
	assert_true(refused > 10);
	assert_true(up > 500);
}

/* More peers than a table remembers, and more lanes than it has. */
static void test_tables_that_are_full(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.ports = LW_PORTS_MAX;
	plan.make = 1;
	plan.close = 0;
	for (seed = 0; seed < 10; seed++) {
		plan.lose = seed % 2 ? 10 : 0;
		run_well(&plan, seed, 1500);
	}
	assert_true(closed > 100);
	assert_true(challenged > 10);
}

static void test_a_host_that_replays(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.replay = 1;
	for (seed = 0; seed < 20; seed++) {
		plan.ports = seed % 2 ? LW_PORTS_MAX : 3;
		plan.keys = seed % 4 < 3;
		plan.reboot = seed % 3 ? 0 : 500;
		plan.delay_us = seed % 5 ? 50 : 3000;
		run_well(&plan, seed, 700);
	}
	assert_true(replayed > 100000);
	assert_true(late > 100);
	assert_true(up > 500);
}

static void test_a_host_that_forges(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.forge = 1;
	for (seed = 0; seed < 10; seed++) {
		plan.keys = seed % 2;
		run_well(&plan, seed, 500);
	}
	assert_true(up > 300);
}

/* Without a key each REQUEST carries a cookie. */
static void test_without_keys(void **state)
{
	struct lw_plan plan = plain;
	unsigned int seed;

	(void)state;
	plan.keys = false;
	for (seed = 0; seed < 12; seed++) {
		plan.lose = seed % 3 ? 0 : 5;
		plan.reboot = seed % 2 ? 500 : 0;
		run_well(&plan, seed, 400);
	}
	assert_true(up > 500 && challenged > up / 4);
}

/* planted faults */

static void mutant_plan(struct lw_plan *plan, uint64_t seed)
{
	*plan = plain;
	plan->ports = seed % 2 ? LW_PORTS_MAX : 3;
	plan->keys = seed % 5 > 0;
	plan->make = seed % 3 ? 1 : 4;
	plan->delay_us = seed % 3 ? 50 : 3000;
	plan->lose = seed % 4 ? 0 : 8;
	plan->replay = seed % 2;
	plan->pairs_only = seed % 6 == 2;
	plan->reboot = seed % 7 == 6 ? 500 : 0;
}

static void test_mutants(void **state)
{
	static const char *const faults[] = {
		"spent is not said",	    "posts before READY",
		"numbers do not rest",	    "closed before drained",
		"forgets and forgets that", "forgets and takes old cookies",
		"takes late requests",	    "takes older generations",
	};
	struct lw_plan plan;
	uint64_t seed;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const char *broken = NULL;

		lw_mutant = faults[i];
		for (seed = 0; !broken && seed < MUTANT_SEEDS; seed++) {
			mutant_plan(&plan, seed);
			broken = run(&plan, seed, 600);
		}
		lw_mutant = NULL;
		if (!broken)
			fail_msg("\"%s\" is not found in %u runs", faults[i], MUTANT_SEEDS);
		printf("%s: %s\n", faults[i], broken);
	}
	for (seed = 0; seed < MUTANT_SEEDS; seed++) {
		mutant_plan(&plan, seed);
		run_well(&plan, seed, 600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lanes_come_and_go, begin),
		cmocka_unit_test_setup(test_loss_duplicates_disorder, begin),
		cmocka_unit_test_setup(test_both_at_once, begin),
		cmocka_unit_test_setup(test_new_generations_and_failures, begin),
		cmocka_unit_test_setup(test_tables_that_are_full, begin),
		cmocka_unit_test_setup(test_a_host_that_replays, begin),
		cmocka_unit_test_setup(test_a_host_that_forges, begin),
		cmocka_unit_test_setup(test_without_keys, begin),
		cmocka_unit_test_setup(test_mutants, begin),
	};

	return cmocka_run_group_tests_name("lane_property", tests, NULL, NULL);
}
