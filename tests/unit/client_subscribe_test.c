// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a subscriber is told when a server is lost: client/lib/subscribe.c, without any thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/lib/lib.h"

#define SERVERS 3
#define LOST 1

static struct krcore_ctx ctx;
static struct krl_server servers[SERVERS];
static struct krcore_event told;
static unsigned int told_nr;

static void note(void *arg, const struct krcore_event *event)
{
	assert_ptr_equal(arg, &told);
	told = *event;
	told_nr++;
}

/* One server is closing after it was attached, and the others are attached; all subscribed to. */
static int setup(void **state)
{
	unsigned int i;

	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(servers, 0, sizeof(servers));
	memset(&told, 0xff, sizeof(told));
	told_nr = 0;
	pthread_mutex_init(&ctx.sub_lock, NULL);
	ctx.sub_fn = note;
	ctx.sub_arg = &told;
	ctx.servers = servers;
	ctx.servers_nr = SERVERS;
	for (i = 0; i < SERVERS; i++) {
		servers[i].ctx = &ctx;
		servers[i].index = i;
		servers[i].s.state = KRP_SESSION_READY;
		servers[i].s.sub.want = 1;
	}
	servers[LOST].s.state = KRP_SESSION_CLOSING;
	servers[LOST].s.was_ready = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pthread_mutex_destroy(&ctx.sub_lock);
	return 0;
}

static void lost(unsigned int events)
{
	krl_event_lost(&servers[LOST]);
	krl_events_deliver(&ctx);
	assert_int_equal(told_nr, events);
	krl_events_deliver(&ctx); /* each is told once */
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
	servers[LOST].s.was_ready = 0;
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
		CASE(test_a_lost_server_is_a_resync), CASE(test_there_is_nothing_better),
		CASE(test_it_was_not_attached),	      CASE(test_we_have_ended_it),
		CASE(test_nobody_subscribes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
