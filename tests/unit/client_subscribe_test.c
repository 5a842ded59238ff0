// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a subscriber is told when a server fails and is taken down, and what look-ups know of it
 * then: client/lib/session.c and subscribe.c, called as the context's thread calls them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/client_ctx.h"

#define LOST 1

static struct krcore_event told;
static unsigned int told_nr;

static void note(void *arg, const struct krcore_event *event)
{
	assert_ptr_equal(arg, &told);
	told = *event;
	told_nr++;
}

/* All servers are attached, and subscribed to. */
static int setup(void **state)
{
	unsigned int i;

	(void)state;
	client_ctx_init();
	memset(&told, 0xff, sizeof(told));
	told_nr = 0;
	ctx.sub_fn = note;
	ctx.sub_arg = &told;
	for (i = 0; i < SERVERS; i++) {
		servers[i].s.state = KRP_SESSION_READY;
		servers[i].s.sub.want = 1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	client_ctx_fini();
	return 0;
}

/* One of them fails and is taken down, which the subscriber is told so often. */
static void lost(unsigned int events)
{
	krl_server_fail(&servers[LOST], -EIO, "test");
	assert_int_equal(told_nr, 0);
	krl_server_down(&servers[LOST]);
	assert_int_equal(servers[LOST].s.state, KRP_SESSION_DOWN);
	assert_int_equal(told_nr, events);
	krl_server_down(&servers[LOST]); /* it was lost before */
	assert_int_equal(told_nr, events);
}

static void test_a_lost_server_is_a_resync(void **state)
{
	static const struct krcore_key none;

	(void)state;
	servers[0].s.state = KRP_SESSION_DOWN;
	lost(1);
	assert_int_equal(told.type, KRCORE_EVENT_RESYNC);
	assert_int_equal(told.server, LOST);
	assert_memory_equal(&told.key, &none, sizeof(none));
	assert_int_equal(told.generation, 0);
}

static void test_look_ups_know_that_it_failed(void **state)
{
	(void)state;
	lost(1);
	assert_int_equal(atomic_load(&servers[LOST].blame), KRP_BLAME);
	assert_int_equal(atomic_load(&servers[LOST].blame_ns), servers[LOST].s.failure.blame_ns);
	assert_int_equal(atomic_load(&servers[0].blame), 0);
	servers[LOST].s.failure.blame_ns -= 5 * KRP_BLAME_NS;
	pthread_mutex_lock(&ctx.lock);
	krl_session_run(&servers[LOST]);
	pthread_mutex_unlock(&ctx.lock);
	assert_int_equal(atomic_load(&servers[LOST].blame), 0);
}

static void test_there_is_nothing_better(void **state)
{
	(void)state;
	servers[0].s.state = KRP_SESSION_DOWN;
	servers[2].s.state = KRP_SESSION_LOAD;
	lost(0);
}

static void test_it_was_not_attached(void **state)
{
	(void)state;
	servers[LOST].s.state = KRP_SESSION_LOAD;
	lost(0);
}

static void test_we_have_ended_it(void **state)
{
	(void)state;
	servers[LOST].s.ended = 1;
	lost(0);
}

static void test_nobody_subscribes(void **state)
{
	(void)state;
	servers[LOST].s.sub.want = 0;
	lost(0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_lost_server_is_a_resync), CASE(test_look_ups_know_that_it_failed),
		CASE(test_there_is_nothing_better),   CASE(test_it_was_not_attached),
		CASE(test_we_have_ended_it),	      CASE(test_nobody_subscribes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
