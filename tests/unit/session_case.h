/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One client with one server of session_world.h, for tests of its session: what each test
 * begins and ends with, and how it attaches. Included by one file of each test program.
 */
#ifndef KRC_TEST_SESSION_CASE_H
#define KRC_TEST_SESSION_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/session_world.h"

#define SERVICE 300

static struct wd_world world;
static struct wd_world *const w = &world;
static struct wd_client *const c = &world.client[0];
static struct krp_session *const s = &world.client[0].s[0];

/**
 * begin() - Begin a case: one server, no client. The setup of cmocka.
 * @state: not used.
 *
 * Return: 0.
 */
static inline int begin(void **state)
{
	(void)state;
	wd_begin(w, 1, 1);
	return 0;
}

/**
 * end() - End a case. The teardown of cmocka.
 * @state: not used.
 *
 * Return: 0.
 */
static inline int end(void **state)
{
	(void)state;
	wd_end(w);
	return 0;
}

/**
 * now_ns() - Read the world's clock.
 *
 * Return: the time in ns.
 */
static inline uint64_t now_ns(void)
{
	return w->now_ms * KRP_NS_PER_MS;
}

/**
 * attach() - Start the client, and let it attach.
 */
static inline void attach(void)
{
	wd_client_start(w, 0, 7);
	wd_settle(w);
	assert_int_equal(s->state, KRP_SESSION_READY);
}

/**
 * say() - Have the server say something to the client's session.
 * @msg: bytes, valid or not.
 * @bytes: how many.
 */
static inline void say(const void *msg, unsigned int bytes)
{
	krp_session_received(s, now_ns(), msg, bytes);
	wd_pull(w, 0, 0);
}

#endif
