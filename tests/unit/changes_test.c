// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What subscribers are told, and what that costs: a change costs nothing for each
 * of them, a chatty address does not push others out, and nobody is told to forget
 * everything because somebody else takes no messages.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/session.h"

#define TEN_THOUSAND 10000U

/* A subscriber that counts. */
struct changes_reader {
	struct ms_session s;
	unsigned int room;
	unsigned int messages;
	unsigned int changes;
	unsigned int resyncs;
	struct krp_change last;
};

struct changes_fixture {
	struct ms_hub hub;
	struct changes_reader *reader;
	unsigned int nr;
	uint64_t now;
};

static int ch_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	const struct krp_notify *m = msg;
	struct changes_reader *r = arg;

	assert_true(notify);
	assert_int_equal(krp_msg_check(msg, bytes, 0), KRP_ST_OK);
	assert_int_equal(krp_le64_to_cpu(m->seq), r->messages + 1);
	if (!r->room)
		return -ENOBUFS;
	r->room--;
	r->messages++;
	if (m->change[0].event == KRP_EVENT_RESYNC)
		r->resyncs++;
	else
		r->changes += m->nr;
	r->last = m->change[m->nr - 1];
	return 0;
}

static const struct ms_session_ops ch_ops = { .send = ch_send };

static int setup(void **state)
{
	struct changes_fixture *fx = calloc(1, sizeof(*fx));

	fx->now = 5000;
	fx->hub.incarnation = 7;
	assert_int_equal(ms_hub_init(&fx->hub, 99, fx->now), 0);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct changes_fixture *fx = *state;

	ms_hub_fini(&fx->hub);
	free(fx->reader);
	free(fx);
	return 0;
}

/* Sessions that have subscribed; the protocol up to there is session_test's. */
static void subscribe(struct changes_fixture *fx, unsigned int nr, unsigned int room)
{
	unsigned int i;

	fx->nr = nr;
	fx->reader = calloc(nr, sizeof(*fx->reader));
	for (i = 0; i < nr; i++) {
		struct ms_session *s = &fx->reader[i].s;

		fx->reader[i].room = room;
		s->hub = &fx->hub;
		s->ops = &ch_ops;
		s->arg = &fx->reader[i];
		s->subscribed = true;
		s->place = fx->hub.changes.head;
		s->next = fx->hub.subscribers;
		fx->hub.subscribers = s;
	}
}

static struct krp_key key_of(unsigned int gid, unsigned int service)
{
	struct krp_key key = { .service = krp_cpu_to_le16((__u16)service) };

	memcpy(key.gid, &gid, sizeof(gid));
	key.gid[15] = 1;
	return key;
}

static void change(struct changes_fixture *fx, unsigned int gid, unsigned int service,
		   uint64_t generation)
{
	struct krp_key key = key_of(gid, service);

	ms_hub_notify(&fx->hub, KRP_EVENT_CHANGED, &key, generation);
}

/* Everything that may be told now. Return: something waits for a budget. */
static bool tell(struct changes_fixture *fx)
{
	bool more = ms_hub_seal(&fx->hub, fx->now);

	while (ms_hub_tell(&fx->hub, 512))
		;
	return more;
}

static void test_cost_of_a_change(void **state)
{
	const uint64_t changes = 1000,
		       each = (changes + KRP_NOTIFY_CHANGES - 1) / KRP_NOTIFY_CHANGES;
	struct changes_fixture *fx = *state;
	unsigned int i;

	subscribe(fx, TEN_THOUSAND, UINT32_MAX);
	for (i = 0; i < changes; i++)
		change(fx, i, 0, 1);
	/* nothing was done for any subscriber yet */
	assert_int_equal(fx->hub.stats.tell_work, 0);
	assert_int_equal(fx->hub.stats.notifies_sent, 0);
	assert_false(tell(fx));
	assert_int_equal(fx->hub.stats.notifies_sent, TEN_THOUSAND * each);
	assert_int_equal(fx->hub.stats.tell_work, TEN_THOUSAND * (each + 1));
	for (i = 0; i < fx->nr; i++)
		assert_int_equal(fx->reader[i].changes, changes);
	printf("%u subscribers, %lu changes in 20 ms: %.1f messages a change, %.4f of one for each "
	       "subscriber\n",
	       TEN_THOUSAND, (unsigned long)changes,
	       (double)fx->hub.stats.notifies_sent / (double)changes,
	       (double)each / (double)changes);
}

/* A turn of the loop does a bounded amount of it, and the last of the list has its turn. */
static void test_rounds(void **state)
{
	enum {
		BUDGET = 256
	};
	struct changes_fixture *fx = *state;
	unsigned int i, turns;

	subscribe(fx, 1000, UINT32_MAX);
	for (turns = 0; turns < 100; turns++) {
		uint64_t before = fx->hub.stats.tell_work;

		change(fx, turns, 0, 1);
		ms_hub_seal(&fx->hub, fx->now);
		ms_hub_tell(&fx->hub, BUDGET);
		/* the last one of a turn may be behind by all that there was */
		assert_in_range(fx->hub.stats.tell_work - before, 1,
				BUDGET + 1 + turns / KRP_NOTIFY_CHANGES + 1);
	}
	for (i = 0; i < fx->nr; i++)
		assert_true(fx->reader[i].changes);
	assert_false(tell(fx));
	for (i = 0; i < fx->nr; i++)
		assert_int_equal(fx->reader[i].changes, 100);
}

static void test_one_key_is_one_note(void **state)
{
	struct changes_fixture *fx = *state;
	unsigned int i;

	subscribe(fx, 1, UINT32_MAX);
	for (i = 1; i <= 20000; i++)
		change(fx, 1, 5, i);
	assert_false(tell(fx));
	assert_int_equal(fx->reader[0].messages, 1);
	assert_int_equal(fx->reader[0].changes, 1);
	assert_int_equal(krp_le64_to_cpu(fx->reader[0].last.generation), 20000);
	assert_int_equal(fx->hub.changes.merged, 19999);
}

/* 512 subscribers that died with all buffers are nobody else's trouble. */
static void test_the_dead_harm_nobody(void **state)
{
	struct changes_fixture *fx = *state;
	unsigned int i, turn;

	subscribe(fx, 600, 0);
	fx->reader[0].room = UINT32_MAX;
	for (turn = 0; turn < 60; turn++) {
		for (i = 0; i < 1000; i++)
			change(fx, i, turn, 1);
		assert_false(tell(fx));
		fx->now += 10000;
	}
	assert_int_equal(fx->reader[0].changes, 60000);
	assert_int_equal(fx->hub.stats.resyncs, 0);
	/* and those that were only slow have missed nothing */
	fx->reader[1].room = UINT32_MAX;
	ms_session_room(&fx->reader[1].s);
	assert_int_equal(fx->reader[1].changes, 60000);
	assert_int_equal(fx->hub.stats.resyncs, 0);
	/* one that is behind by the whole ring is told to forget, once */
	for (i = 0; i < 6000; i++)
		change(fx, i, 100, 1);
	assert_false(tell(fx));
	fx->reader[2].room = UINT32_MAX;
	ms_session_room(&fx->reader[2].s);
	assert_int_equal(fx->reader[2].resyncs, 1);
	assert_int_equal(fx->reader[2].changes, 0);
	assert_int_equal(fx->hub.stats.resyncs, 1);
	assert_int_equal(fx->hub.stats.notifies_dropped, 66000);
}

/* A program that binds and unbinds 20000 times a second, over all services it may. */
static void test_a_chatty_address(void **state)
{
	struct changes_fixture *fx = *state;
	unsigned int i, turn, service = 0, seconds = 10;

	subscribe(fx, 2, UINT32_MAX);
	for (turn = 0; turn < 50 * seconds; turn++, fx->now += 20) {
		for (i = 0; i < 400; i++)
			change(fx, 1, service++ % 60000, turn + 1);
		change(fx, 2, turn, 1); /* somebody else, now and then */
		tell(fx);
		assert_int_equal(fx->reader[0].last.event, KRP_EVENT_CHANGED);
	}
	assert_int_equal(fx->hub.stats.resyncs, 0);
	assert_in_range(fx->reader[0].changes, 50 * seconds,
			50 * seconds + MS_BUDGET_BURST + MS_BUDGET_RATE * seconds);
	/* nothing is lost of it: in the end all keys have been told, as they are */
	for (turn = 0; tell(fx); turn++) {
		fx->now += 20000;
		assert_true(turn < 1000);
	}
	assert_int_equal(fx->hub.changes.pending_nr, 0);
	assert_true(fx->reader[0].changes >= 60000 + 50 * seconds);
	assert_int_equal(fx->reader[0].changes, fx->reader[1].changes);
}

/* More keys than there is room for: everybody forgets everything, and it goes on. */
static void test_too_many_at_once(void **state)
{
	struct changes_fixture *fx = *state;
	unsigned int i;

	subscribe(fx, 1, UINT32_MAX);
	for (i = 0; i < MS_CHANGES_PENDING_MAX + 1; i++)
		change(fx, i, 0, 1);
	assert_int_equal(fx->hub.changes.pending_nr, 0);
	assert_false(tell(fx));
	assert_int_equal(fx->reader[0].resyncs, 1);
	change(fx, 1, 0, 2);
	assert_false(tell(fx));
	assert_int_equal(fx->reader[0].changes, 1);
	assert_int_equal(fx->reader[0].resyncs, 1);
}

/* Nobody has subscribed: nothing is kept. */
static void test_nobody_listens(void **state)
{
	struct changes_fixture *fx = *state;

	change(fx, 1, 0, 1);
	assert_int_equal(fx->hub.changes.noted, 0);
	assert_false(tell(fx));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_cost_of_a_change),	CASE(test_rounds),
		CASE(test_one_key_is_one_note), CASE(test_the_dead_harm_nobody),
		CASE(test_a_chatty_address),	CASE(test_too_many_at_once),
		CASE(test_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
