// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every step from one state of a server to another: those that are legal happen, each other
 * one costs the connection and not the program, and changes nothing else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/lib/lib.h"

static struct krl_endpoint endpoint = { .text = "meta" };
static struct krcore_ctx ctx = {
	.config = { .endpoints = &endpoint, .endpoints_nr = 1, .timeout_ms = 100 },
};

/* As the handshake of proto/krp_msg.h has it; a connection may end in each step. */
static bool legal(enum krl_state from, enum krl_state to)
{
	if (to == KRL_DOWN)
		return from != KRL_DOWN;
	return to == from + 1 || (from == KRL_DOWN && to == KRL_ADDR); /* an address has no name */
}

static void step(enum krl_state from, enum krl_state to)
{
	struct krl_server srv;
	bool done;

	assert_int_equal(krl_server_init(&srv, &ctx, 0), 0);
	srv.state = from;
	pthread_mutex_lock(&ctx.lock);
	done = krl_server_to(&srv, to);
	pthread_mutex_unlock(&ctx.lock);
	assert_int_equal(done, legal(from, to));
	assert_int_equal(srv.state, done ? to : from);
	assert_int_equal(atomic_load(&srv.failed), !done);
	assert_int_equal(srv.last_error, done ? 0 : -EPROTO);
	assert_true(done == !strstr(srv.error_text, "a bug of libkrcore"));
	assert_int_equal(srv.tried, done && to == KRL_UP);
	assert_int_equal(srv.deadline_ns != 0, done && to != KRL_UP && to != KRL_DOWN);
	krl_server_fini(&srv);
}

static void test_every_step(void **state)
{
	(void)state;
	for (int from = KRL_DOWN; from <= KRL_UP; from++) {
		for (int to = KRL_DOWN; to <= KRL_UP; to++)
			step(from, to);
	}
}

/* What the thread does then: the server is down, and has a time to be tried again. */
static void test_it_begins_anew(void **state)
{
	struct krl_server srv;

	(void)state;
	krl_store_init(&ctx.store, 1);
	assert_int_equal(krl_server_init(&srv, &ctx, 0), 0);
	srv.state = KRL_HELLO;
	pthread_mutex_lock(&ctx.lock);
	assert_false(krl_server_to(&srv, KRL_UP));
	pthread_mutex_unlock(&ctx.lock);
	assert_false(atomic_load(&srv.up));
	krl_server_down(&srv);
	assert_int_equal(srv.state, KRL_DOWN);
	assert_false(atomic_load(&srv.failed));
	assert_int_equal(srv.fails, 1);
	assert_true(srv.retry_at_ns > 0);
	krl_server_fini(&srv);
	krl_store_fini(&ctx.store);
}

static int context_begin(void **state)
{
	(void)state;
	ctx.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return ctx.wake_fd < 0 || pthread_mutex_init(&ctx.lock, NULL) ||
	       pthread_cond_init(&ctx.cond, NULL);
}

static int context_end(void **state)
{
	(void)state;
	pthread_cond_destroy(&ctx.cond);
	pthread_mutex_destroy(&ctx.lock);
	return close(ctx.wake_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_step),
		cmocka_unit_test(test_it_begins_anew),
	};

	return cmocka_run_group_tests(tests, context_begin, context_end);
}
