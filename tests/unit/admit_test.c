// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Clients of a full server: those that were there before attach at once, all others as soon
 * as one has missed a renewal. Sessions without transport, ledger
 * only where a message needs it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/session.h"

#define CLIENTS 8
#define LEASE_MS 30000

struct admit_client {
	struct ms_session s;
	bool there;
	unsigned int closed;
	unsigned int status; /* of the last message */
	unsigned int type;
	bool at_limit; /* its address has as many clients as it may */
};

struct admit_fixture {
	struct ms_hub hub;
	struct admit_client client[CLIENTS];
	uint64_t now;
};

static int ad_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	const struct krp_msg_hdr *hdr = msg;
	struct admit_client *c = arg;

	(void)bytes;
	(void)notify;
	c->status = krp_le16_to_cpu(hdr->status);
	c->type = hdr->type;
	return 0;
}

static int ad_open_reads(void *arg)
{
	const struct admit_client *c = arg;

	return c->at_limit ? -EUSERS : 0;
}

static bool ad_at_limit(void *arg)
{
	const struct admit_client *c = arg;

	return c->at_limit;
}

static void ad_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	memset(ret_root, 0, sizeof(*ret_root));
}

static void ad_close(void *arg, const char *why)
{
	struct admit_client *c = arg;

	assert_non_null(why);
	c->closed++;
}

static const struct ms_session_ops ad_ops = { ad_send, ad_open_reads, ad_root, ad_close,
					      ad_at_limit };

static int setup(void **state)
{
	struct admit_fixture *fx = calloc(1, sizeof(*fx));

	fx->now = 1000000;
	fx->hub.incarnation = 7;
	fx->hub.limits = (struct ms_limits){ .lease_ms = LEASE_MS,
					     .lease_min_ms = 1000,
					     .lease_max_ms = 300000,
					     .clients_max = 3,
					     .rate_max = 1000,
					     .credits = 16,
					     .idle_timeout_ms = 60000 };
	assert_int_equal(ms_hub_init(&fx->hub, 3, fx->now), 0);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct admit_fixture *fx = *state;
	unsigned int i;

	for (i = 0; i < CLIENTS; i++)
		if (fx->client[i].there)
			ms_session_fini(&fx->client[i].s);
	assert_int_equal(fx->hub.stats.sessions, 0);
	assert_true(TAILQ_EMPTY(&fx->hub.roll.silent));
	for (i = 0; i < MS_ADMIT_HASH; i++)
		assert_null(fx->hub.roll.twins[i]);
	ms_hub_fini(&fx->hub);
	free(fx);
	return 0;
}

static void give(struct admit_fixture *fx, unsigned int nr, const void *msg)
{
	const struct krp_msg_hdr *hdr = msg;

	ms_session_receive(&fx->client[nr].s, msg, krp_le16_to_cpu(hdr->bytes), fx->now);
}

static void connect_client(struct admit_fixture *fx, unsigned int nr, uint8_t gid, uint64_t via)
{
	const struct krp_link from = { .client_gid = { 0xfe, 0x80, [15] = gid } };
	struct admit_client *c = &fx->client[nr];

	c->there = true;
	ms_session_init(&c->s, &fx->hub, &ad_ops, c, &from, true, fx->now);
	c->s.via = via;
}

/* Return: the status of the last answer. */
static unsigned int attach_as(struct admit_fixture *fx, unsigned int nr, uint8_t owner,
			      uint64_t generation)
{
	struct admit_client *c = &fx->client[nr];
	struct krp_hello h;
	struct krp_auth a;

	krp_msg_init(&h, KRP_MSG_HELLO, 1, 0, 0);
	h.generation = krp_cpu_to_le64(generation);
	h.owner[0] = owner;
	memcpy(h.gid, c->s.gid, sizeof(h.gid));
	h.version_min = KRP_MSG_VERSION;
	h.version_max = KRP_MSG_VERSION;
	give(fx, nr, &h);
	if (c->status)
		return c->status;
	krp_msg_init(&a, KRP_MSG_AUTH, 2, 0, 0);
	give(fx, nr, &a);
	assert_int_equal(c->type, KRP_MSG_WELCOME);
	return c->status;
}

static unsigned int attach(struct admit_fixture *fx, unsigned int nr, uint8_t owner,
			   uint64_t generation)
{
	connect_client(fx, nr, owner, 1);
	return attach_as(fx, nr, owner, generation);
}

static void fill(struct admit_fixture *fx)
{
	uint8_t i;

	for (i = 0; i < 3; i++)
		assert_int_equal(attach(fx, i, (uint8_t)(i + 1), 10), KRP_ST_OK);
	assert_int_equal(fx->hub.stats.sessions, 3);
}

static void test_a_returning_client_replaces_its_session(void **state)
{
	struct admit_fixture *fx = *state;

	fill(fx);
	assert_int_equal(attach(fx, 3, 2, 10), KRP_ST_OK);
	assert_int_equal(fx->client[1].closed, 1);
	assert_int_equal(fx->client[0].closed + fx->client[2].closed + fx->client[3].closed, 0);
	assert_int_equal(fx->hub.stats.sessions, 3);
	assert_int_equal(fx->hub.roll.replaced, 1);
	/* and so for ever, also where there is room */
	fx->hub.limits.clients_max = 10;
	assert_int_equal(attach(fx, 4, 2, 10), KRP_ST_OK);
	assert_int_equal(fx->client[3].closed, 1);
	assert_int_equal(fx->hub.stats.sessions, 3);
}

static void test_others_are_not_replaced(void **state)
{
	struct admit_fixture *fx = *state;

	fill(fx);
	assert_int_equal(attach(fx, 3, 9, 10), KRP_ST_LIMIT_CLIENTS); /* another owner */
	assert_int_equal(attach(fx, 4, 2, 11), KRP_ST_LIMIT_CLIENTS); /* another program of it */
	connect_client(fx, 5, 7, 1);
	assert_int_equal(attach_as(fx, 5, 2, 10), KRP_ST_LIMIT_CLIENTS); /* its other port */
	connect_client(fx, 6, 2, 2);
	assert_int_equal(attach_as(fx, 6, 2, 10), KRP_ST_LIMIT_CLIENTS); /* our other address */
	assert_int_equal(fx->hub.roll.replaced, 0);
	assert_int_equal(fx->hub.stats.sessions, 3);
}

/* A client that its address would not let in puts nobody out. */
static void test_a_client_that_is_refused_replaces_nobody(void **state)
{
	struct admit_fixture *fx = *state;

	fill(fx);
	fx->now += 59000; /* all are overdue */
	connect_client(fx, 3, 9, 1);
	fx->client[3].at_limit = true;
	assert_int_equal(attach_as(fx, 3, 9, 10), KRP_ST_LIMIT_CLIENTS);
	assert_int_equal(fx->client[0].closed + fx->client[1].closed + fx->client[2].closed, 0);
	assert_int_equal(fx->hub.roll.replaced, 0);
	/* one that may come in does */
	assert_int_equal(attach(fx, 4, 8, 10), KRP_ST_OK);
	assert_int_equal(fx->client[0].closed, 1);
}

/* A client that only says that it is at a GID does not throw out the one that is there. */
static void test_a_gid_that_is_only_said_replaces_nothing(void **state)
{
	struct admit_fixture *fx = *state;

	fill(fx);
	connect_client(fx, 3, 2, 1);
	fx->client[3].s.gid_known = false;
	assert_int_equal(attach_as(fx, 3, 2, 10), KRP_ST_LIMIT_CLIENTS);
	fx->hub.limits.clients_max = 10;
	connect_client(fx, 4, 2, 1);
	fx->client[4].s.gid_known = false;
	assert_int_equal(attach_as(fx, 4, 2, 10), KRP_ST_OK);
	assert_int_equal(fx->client[1].closed, 0);
	assert_int_equal(fx->hub.roll.replaced, 0);
	/* but its own old session it does replace */
	connect_client(fx, 5, 2, 1);
	fx->client[5].s.gid_known = false;
	assert_int_equal(attach_as(fx, 5, 2, 10), KRP_ST_OK);
	assert_int_equal(fx->client[4].closed, 1);
}

/* HELLO proves nothing: only AUTH closes the old session. */
static void test_hello_alone_replaces_nothing(void **state)
{
	struct admit_fixture *fx = *state;
	struct krp_auth wrong;
	struct krp_hello h;

	fill(fx);
	connect_client(fx, 3, 2, 1);
	krp_msg_init(&h, KRP_MSG_HELLO, 1, 0, 0);
	h.generation = krp_cpu_to_le64(10);
	h.owner[0] = 2;
	memcpy(h.gid, fx->client[3].s.gid, sizeof(h.gid));
	h.version_min = KRP_MSG_VERSION;
	h.version_max = KRP_MSG_VERSION;
	give(fx, 3, &h);
	assert_int_equal(fx->client[3].status, KRP_ST_OK);
	assert_int_equal(fx->client[1].closed, 0);
	krp_msg_init(&wrong, KRP_MSG_AUTH, 2, 0, 0);
	wrong.mac[0] = 1;
	give(fx, 3, &wrong);
	assert_int_equal(fx->client[3].status, KRP_ST_AUTH);
	assert_int_equal(fx->client[1].closed, 0);
}

/* After a power cut everybody comes back as another generation, within some seconds. */
static void test_the_most_silent_makes_room(void **state)
{
	struct admit_fixture *fx = *state;
	struct krp_root_get m;

	fill(fx);
	fx->now += LEASE_MS / 2;
	assert_int_equal(attach(fx, 3, 9, 10), KRP_ST_LIMIT_CLIENTS);
	ms_session_fini(&fx->client[3].s);
	krp_msg_init(&m, KRP_MSG_ROOT, 3, 0, 0); /* a sign of life */
	give(fx, 0, &m);
	assert_int_equal(fx->client[0].closed, 0);
	fx->now += 1;
	assert_int_equal(attach(fx, 3, 9, 10), KRP_ST_OK);
	assert_int_equal(attach(fx, 4, 8, 10), KRP_ST_OK);
	assert_int_equal(fx->client[1].closed, 1);
	assert_int_equal(fx->client[2].closed, 1);
	assert_int_equal(fx->client[0].closed, 0);
	assert_int_equal(attach(fx, 5, 7, 10), KRP_ST_LIMIT_CLIENTS); /* nobody is silent now */
}

/* A client with a long lease says nothing for 15 s, however short the timeout of the server. */
static void test_who_renews_in_time_keeps_its_place(void **state)
{
	struct admit_fixture *fx = *state;

	fx->hub.limits.lease_ms = 300000;
	fx->hub.limits.idle_timeout_ms = 16000;
	fill(fx);
	fx->now += 15000;
	assert_int_equal(attach(fx, 3, 9, 10), KRP_ST_LIMIT_CLIENTS);
	ms_session_fini(&fx->client[3].s);
	fx->now += 1;
	assert_int_equal(attach(fx, 3, 9, 10), KRP_ST_OK);
	assert_int_equal(fx->client[0].closed, 1);
}

static void test_silence_is_bounded_by_the_lease(void **state)
{
	struct admit_fixture *fx = *state;

	fill(fx);
	ms_session_check(&fx->client[0].s, fx->now + LEASE_MS - 1);
	assert_int_equal(fx->client[0].closed, 0);
	ms_session_check(&fx->client[0].s, fx->now + LEASE_MS);
	assert_int_equal(fx->client[0].closed, 1);
	assert_int_equal(fx->hub.stats.sessions_timed_out, 1);
	/* a short lease buys some seconds nevertheless: a pause is no death */
	fx->client[1].s.claim.lease_ms = 1000;
	ms_session_check(&fx->client[1].s, fx->now + MS_IDLE_MIN_MS - 1);
	assert_int_equal(fx->client[1].closed, 0);
}

/* The cost of a client that comes back does not grow with those that are there. */
static void test_many_owners(void **state)
{
	enum {
		MANY = 20000
	};
	struct admit_fixture *fx = *state;
	struct ms_session *s = calloc(MANY, sizeof(*s));
	unsigned int i, chain, longest = 0;

	fx->hub.limits.clients_max = MANY;
	for (i = 0; i < MANY; i++) {
		s[i].hub = &fx->hub;
		memcpy(s[i].claim.owner, &i, sizeof(i));
		ms_roll_add(&s[i]);
	}
	for (i = 0; i < MS_ADMIT_HASH; i++) {
		struct ms_session *at = fx->hub.roll.twins[i];

		for (chain = 0; at; at = at->twin)
			chain++;
		longest = chain > longest ? chain : longest;
	}
	assert_true(longest < 32);
	for (i = 0; i < MANY; i++)
		ms_roll_remove(&s[i]);
	free(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_returning_client_replaces_its_session),
		CASE(test_others_are_not_replaced),
		CASE(test_a_client_that_is_refused_replaces_nobody),
		CASE(test_a_gid_that_is_only_said_replaces_nothing),
		CASE(test_hello_alone_replaces_nothing),
		CASE(test_the_most_silent_makes_room),
		CASE(test_who_renews_in_time_keeps_its_place),
		CASE(test_silence_is_bounded_by_the_lease),
		CASE(test_many_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
