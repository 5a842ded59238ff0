// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The client's session of proto/krp_session.h with the daemon's session, ledger and table, by
 * a simulated clock: handshake, credits, rate, hostile servers, the end, the choice of a server.
 * Leases and records: krp_lease_test.c.
 */
#include "tests/unit/session_case.h"

/* ---- handshake ---- */

static void test_attach_without_key(void **state)
{
	(void)state;
	attach();
	assert_int_equal(s->failure.error, 0);
	assert_int_equal(s->attaches, 1);
	assert_int_equal(s->fresh, 1);
	assert_int_equal(s->peer.lease_ms, 3000);
	assert_int_equal(s->slots.credits, 8); /* of the server's 16, as many as we have buffers */
	assert_int_equal(c->ups, 1);
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	assert_int_equal(wd_find(w, 0, SERVICE)->at[0].state, KRP_AT_ACKED);
}

static void test_attach_with_key(void **state)
{
	(void)state;
	w->auth = true;
	wd_server_start(w, 0);
	attach();
	assert_int_equal(w->server[0].hub.stats.auth_failures, 0);
	w->auth = false;
}

static void test_keys_that_do_not_fit(void **state)
{
	(void)state;
	w->auth = true;
	wd_server_start(w, 0);
	wd_client_start(w, 0, 7);
	c->keys.nr = 0; /* it is asked for with HELLO on its way */
	wd_settle(w);
	assert_int_equal(s->failure.error, -EACCES);
	assert_non_null(strstr(s->failure.reason, "server has cluster key"));
	wd_run(w, 200);
	assert_non_null(strstr(s->failure.reason, "server demands a cluster key, we have none"));

	w->auth = false;
	c->keys = w->server[0].hub.keys;
	wd_server_start(w, 0);
	wd_run(w, 400);
	assert_int_equal(s->failure.error, -EACCES);
	assert_non_null(strstr(s->failure.reason, "we have a cluster key, this server has none"));
	assert_int_equal(s->attaches, 0);
}

/* A server that passes on the messages of another connection, or guesses. */
static void test_proof_that_does_not_hold(void **state)
{
	(void)state;
	w->auth = true;
	wd_server_start(w, 0);
	wd_client_start(w, 0, 7);
	c->conn[0].ms.link.server_qpn = krp_cpu_to_le32(1);
	wd_settle(w);
	assert_int_equal(s->attaches, 0);
	assert_non_null(strstr(s->failure.reason, "server refuses AUTH: authentication failed"));

	wd_run(w, 200);
	assert_int_equal(s->state, KRP_SESSION_READY);
	wd_break(w, 0, 0);
	while (s->state != KRP_SESSION_HELLO) {
		w->now_ms += WD_STEP_MS;
		wd_pull(w, 0, 0);
	}
	s->attach.link.client_qpn ^= krp_cpu_to_le32(1); /* as a relay would have it */
	w->server[0].hub.auth = false;
	wd_settle(w);
	assert_int_not_equal(s->state, KRP_SESSION_READY);
	w->auth = false;
}

static void test_server_proof_is_compared(void **state)
{
	__u8 mac[KRP_MAC_BYTES] = { 0 };
	unsigned int i;

	(void)state;
	attach();
	for (i = 0; i < KRP_MAC_BYTES; i++) {
		s->state = KRP_SESSION_VERIFY;
		memcpy(mac, s->attach.welcome.mac, sizeof(mac));
		mac[i] ^= 1;
		krp_session_verify(s, now_ns(), mac);
		assert_int_equal(s->state, KRP_SESSION_CLOSING);
		assert_int_equal(s->failure.error, -EACCES);
	}
	s->state = KRP_SESSION_VERIFY;
	krp_session_verify(s, now_ns(), s->attach.welcome.mac);
	assert_int_equal(s->state, KRP_SESSION_LOAD);
	krp_session_lost(s, now_ns(), -EIO, "test");
}

static void test_each_step_has_its_time(void **state)
{
	(void)state;
	wd_client_start(w, 0, 7);
	c->conn[0].mute = true;
	wd_run(w, WD_TIMEOUT_MS - WD_STEP_MS);
	assert_int_equal(s->state, KRP_SESSION_HELLO);
	wd_run(w, WD_STEP_MS);
	assert_int_equal(s->failure.error, -ETIMEDOUT);
	assert_string_equal(s->failure.reason, "the answer to HELLO took more than 500 ms");
	c->conn[0].mute = false;
	wd_run(w, 500);
	assert_int_equal(s->state, KRP_SESSION_READY);
}

/* How long a state lasts in which the caller announces one more READ after half of the time. */
static void lasts(enum krp_session_state state, bool announced, const char *why)
{
	const __u64 whole = krp_session_timeout_ns(s), half = whole / 2, begun = now_ns();
	const __u64 most = announced ? half + whole : whole;
	struct krp_todo todo;

	s->step = "the first";
	krp_session_enter(s, begun, state, KRP_DO_WAIT);
	krp_session_step(s, begun + half, "a READ");
	assert_int_equal(krp_session_next(s, begun + most - 1, &todo), KRP_DO_WAIT);
	assert_int_equal(todo.until_ns, begun + most);
	assert_int_equal(s->state, state);
	assert_int_equal(krp_session_next(s, begun + most, &todo), KRP_DO_CLOSE);
	assert_int_equal(s->failure.error, -ETIMEDOUT);
	assert_string_equal(s->failure.reason, why);
}

/* A handshake of many READs may take longer than one of them; nothing else may. */
static void test_announced_steps_have_their_own(void **state)
{
	(void)state;
	attach();
	lasts(KRP_SESSION_CONNECTING, true, "a READ took more than 500 ms");
	lasts(KRP_SESSION_HELLO, false, "the answer to HELLO took more than 500 ms");
	lasts(KRP_SESSION_PROVE, false, "our proof took more than 500 ms");
	lasts(KRP_SESSION_AUTH, false, "the answer to AUTH took more than 500 ms");
	lasts(KRP_SESSION_VERIFY, false, "the server's proof took more than 500 ms");
	lasts(KRP_SESSION_LOAD, true, "a READ took more than 500 ms");
	s->state = KRP_SESSION_LOAD;
	krp_session_lost(s, now_ns(), -EIO, "test");
}

/* What does not belong to the state changes nothing. */
static void test_calls_out_of_turn(void **state)
{
	struct krp_link link = { .client_qpn = krp_cpu_to_le32(1) };
	__u8 nonce[KRP_NONCE_BYTES] = { 0 };

	(void)state;
	attach();
	krp_session_connected(s, now_ns(), &link, nonce, NULL);
	krp_session_prove(s, now_ns(), -EIO, NULL);
	krp_session_verify(s, now_ns(), NULL);
	krp_session_loaded(s, now_ns(), -EIO);
	krp_session_closed(s, now_ns(), 0);
	krp_session_sent(s, 7);
	assert_int_equal(s->state, KRP_SESSION_READY);
	assert_int_equal(s->failure.error, 0);
	krp_session_lost(s, now_ns(), -EIO, "first");
	krp_session_lost(s, now_ns(), -ENODEV, "second");
	assert_string_equal(s->failure.reason, "first");
	wd_pull(w, 0, 0);
	assert_int_equal(s->state, KRP_SESSION_DOWN);
	krp_session_lost(s, now_ns(), -ENODEV, "third");
	assert_int_equal(s->failure.error, -EIO);
}

static void test_back_off(void **state)
{
	uint64_t began_ms = w->now_ms;
	unsigned int tries = 0;

	(void)state;
	w->server[0].reachable = false;
	wd_client_start(w, 0, 7);
	while (w->now_ms < began_ms + 10000) {
		wd_run(w, WD_STEP_MS);
		assert_true(s->failure.retry_ns - now_ns() <= 500 * KRP_NS_PER_MS);
		if (s->failure.in_a_row > tries)
			tries = s->failure.in_a_row;
	}
	assert_in_range(tries, 20, 40); /* every 300 to 500 ms */
	w->server[0].reachable = true;
	wd_run(w, 500);
	assert_int_equal(s->state, KRP_SESSION_READY);
	wd_break(w, 0, 0);
	assert_int_equal(s->failure.in_a_row, tries + 1); /* it did not last */
	wd_run(w, 1500);
	wd_break(w, 0, 0);
	assert_int_equal(s->failure.in_a_row, 1);
}

/* ---- requests ---- */

static void test_one_credit(void **state)
{
	struct krp_ask ask[3];
	unsigned int i;

	(void)state;
	w->limits.credits = 1;
	wd_server_start(w, 0);
	c->buffers_late = false;
	attach();
	c->conn[0].mute = true;
	for (i = 0; i < 3; i++) {
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
		ask[i] = (struct krp_ask){ .type = KRP_MSG_LOOKUP,
					   .key = wd_find(w, 0, SERVICE)->key };
		assert_int_equal(krp_session_ask(s, &ask[i]), 0);
	}
	wd_run(w, 100);
	assert_int_equal(s->slots.busy_nr, 1);
	c->conn[0].mute = false;
	wd_run(w, 100);
	for (i = 0; i < 3; i++) {
		assert_int_equal(wd_at(w, 0, 0, (uint16_t)(SERVICE + i)), i);
		assert_true(ask[i].err == 0 || ask[i].err == -ENOENT);
	}
	assert_int_equal(c->done, 3);
	assert_int_equal(w->server[0].hub.stats.answers[KRP_ST_LIMIT_RATE], 0);
}

/* Neither questions nor records starve the others. */
static void test_questions_and_records_in_turn(void **state)
{
	struct krp_ask ask[4];
	unsigned int i, publishes;

	(void)state;
	w->limits.credits = 1;
	wd_server_start(w, 0);
	attach();
	c->conn[0].mute = true;
	wd_run(w, 100);
	for (i = 0; i < 4; i++) {
		ask[i] = (struct krp_ask){ .type = KRP_MSG_LOOKUP };
		assert_int_equal(krp_session_ask(s, &ask[i]), 0);
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
	}
	publishes = c->sent[0][KRP_MSG_PUBLISH] + c->sent[0][KRP_MSG_LOOKUP];
	c->conn[0].mute = false;
	wd_settle(w);
	assert_int_equal(c->sent[0][KRP_MSG_PUBLISH], 4);
	assert_int_equal(c->sent[0][KRP_MSG_LOOKUP], 4);
	assert_true(publishes <= 1);
}

static void test_buffers_that_come_back_late(void **state)
{
	unsigned int i;

	(void)state;
	attach();
	c->buffers_late = true;
	for (i = 0; i < 40; i++)
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
	wd_settle(w);
	assert_true(wd_count(w, 0) <= 8);
	wd_run(w, 200);
	assert_int_equal(wd_count(w, 0), 40);
}

static void rate(uint32_t rate_max, unsigned int records, uint64_t within_ms)
{
	uint64_t began_ms = w->now_ms;
	unsigned int i;

	w->limits.rate_max = rate_max;
	wd_server_start(w, 0);
	wd_client_start(w, 0, 7);
	wd_run(w, WD_STEP_MS);
	for (i = 0; i < records; i++)
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
	while (wd_count(w, 0) < records && w->now_ms < began_ms + within_ms)
		wd_run(w, WD_STEP_MS);
	assert_int_equal(wd_count(w, 0), records);
	assert_int_equal(s->attaches, 1);
	assert_int_equal(w->server[0].hub.stats.answers[KRP_ST_LIMIT_RATE], 0);
	wd_client_stop(w, 0, true, NULL);
}

static void test_rate(void **state)
{
	(void)state;
	rate(100, 64, 1000);
	rate(30, 30, 1500);
	rate(3, 6, 4000);
	rate(2, 4, 8000);
}

static void test_question_given_up(void **state)
{
	struct krp_ask ask = { .type = KRP_MSG_LOOKUP }, waits = { .type = KRP_MSG_LOOKUP };

	(void)state;
	w->limits.credits = 1;
	wd_server_start(w, 0);
	attach();
	c->conn[0].mute = true;
	assert_int_equal(krp_session_ask(s, &ask), 0);
	wd_pull(w, 0, 0);
	assert_int_equal(krp_session_ask(s, &waits), 0);
	wd_pull(w, 0, 0);
	assert_int_equal(ask.err, -EINPROGRESS);
	krp_session_give_up(s, &waits);
	krp_session_give_up(s, &ask);
	assert_int_equal(ask.err, -ETIMEDOUT);
	assert_int_equal(waits.err, -ETIMEDOUT);
	c->conn[0].mute = false;
	wd_settle(w);
	assert_int_equal(s->state, KRP_SESSION_READY);
	assert_int_equal(s->slots.busy_nr, 0);
	assert_int_equal(c->done, 0);
}

static void test_questions_end_with_the_connection(void **state)
{
	struct krp_ask sent = { .type = KRP_MSG_LOOKUP }, waits = { .type = KRP_MSG_WITHDRAW };

	(void)state;
	w->limits.credits = 1;
	wd_server_start(w, 0);
	attach();
	c->conn[0].mute = true;
	krp_session_ask(s, &sent);
	wd_pull(w, 0, 0);
	krp_session_ask(s, &waits);
	wd_break(w, 0, 0);
	assert_int_equal(sent.err, -ENOTCONN);
	assert_int_equal(waits.err, -ENOTCONN);
	assert_int_equal(c->done, 2);
	assert_int_equal(krp_session_ask(s, &sent), -ENOTCONN);
}

static void test_silent_server(void **state)
{
	(void)state;
	attach();
	c->conn[0].mute = true;
	wd_publish(w, 0, SERVICE, 1);
	wd_run(w, WD_TIMEOUT_MS);
	assert_int_equal(s->state, KRP_SESSION_READY);
	wd_run(w, 2 * WD_STEP_MS);
	assert_int_equal(s->failure.error, -ETIMEDOUT);
	assert_string_equal(s->failure.reason, "no answer to a request for 500 ms");
	assert_int_equal(wd_find(w, 0, SERVICE)->at[0].state, KRP_AT_DIRTY);
}

/* ---- hostile and broken servers ---- */

static void expect_closed(int err, const char *reason)
{
	assert_int_equal(s->state, KRP_SESSION_DOWN);
	assert_int_equal(s->failure.error, err);
	assert_string_equal(s->failure.reason, reason);
	wd_run(w, 1000);
	assert_int_equal(s->state, KRP_SESSION_READY);
	wd_settle(w);
}

static void test_answers_to_nothing(void **state)
{
	__u64 incarnation = w->server[0].hub.incarnation;
	struct krp_ask ask = { .type = KRP_MSG_LOOKUP };
	struct krp_value_msg value;
	struct krp_notify notify;
	struct krp_ack ack;
	__u32 xid;

	(void)state;
	attach();
	krp_msg_init(&ack, KRP_MSG_ACK, 12345, KRP_ST_OK, incarnation);
	say(&ack, sizeof(ack));
	expect_closed(-EPROTO, "ACK answers nothing that was asked");
	krp_msg_init(&ack, KRP_MSG_ACK, 1, KRP_ST_OK, incarnation + 1);
	say(&ack, sizeof(ack));
	expect_closed(-ESTALE, "ACK of another incarnation");
	krp_msg_init(&ack, KRP_MSG_ACK, 0, KRP_ST_SHUTDOWN, incarnation);
	say(&ack, sizeof(ack));
	expect_closed(-ESHUTDOWN, "server is shutting down");
	say(&ack, sizeof(ack) - 1);
	expect_closed(-EPROTO, "server sent a malformed message");
	krp_msg_init(&notify, KRP_MSG_NOTIFY, 0, KRP_ST_OK, incarnation);
	notify.hdr.version = KRP_MSG_VERSION + 1;
	say(&notify, sizeof(notify));
	expect_closed(-EPROTONOSUPPORT, "server sent a message of another protocol version");

	/* of the wrong type, also if nobody waits any more */
	c->conn[0].mute = true;
	krp_session_ask(s, &ask);
	wd_pull(w, 0, 0);
	krp_session_give_up(s, &ask);
	xid = krp_entry(s->slots.busy.next, struct krp_slot, link)->xid;
	krp_msg_init(&ack, KRP_MSG_ACK, xid, KRP_ST_OK, incarnation);
	say(&ack, sizeof(ack));
	c->conn[0].mute = false;
	expect_closed(-EPROTO, "ACK answers nothing that was asked");

	c->conn[0].mute = true;
	krp_session_ask(s, &ask);
	wd_pull(w, 0, 0);
	xid = krp_entry(s->slots.busy.next, struct krp_slot, link)->xid;
	krp_msg_init(&value, KRP_MSG_VALUE, xid, KRP_ST_OK, incarnation);
	value.value.kind = 0xee;
	say(&value, sizeof(value));
	c->conn[0].mute = false;
	expect_closed(-EPROTO, "VALUE has no valid value");
	assert_int_equal(ask.err, -ENOTCONN);
}

static void test_handshake_out_of_turn(void **state)
{
	struct krp_welcome welcome;

	(void)state;
	krp_msg_init(&welcome, KRP_MSG_WELCOME, 2, KRP_ST_OK, w->server[0].hub.incarnation);
	welcome.credits = krp_cpu_to_le16(1);
	welcome.lease_ms = krp_cpu_to_le32(KRP_LEASE_MS_MIN);
	wd_client_start(w, 0, 7);
	say(&welcome, sizeof(welcome));
	expect_closed(-EPROTO, "unexpected WELCOME during the handshake");
	wd_break(w, 0, 0);
	while (s->state != KRP_SESSION_HELLO) {
		w->now_ms += WD_STEP_MS;
		wd_pull(w, 0, 0);
	}
	w->server[0].hub.draining = true;
	wd_settle(w);
	assert_int_equal(s->failure.error, -ESHUTDOWN);
	assert_string_equal(s->failure.reason, "server refuses HELLO: server is shutting down");
	w->server[0].hub.draining = false;
}

/* ---- the end, and the choice of a server ---- */

static void test_leave(void **state)
{
	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_publish(w, 0, SERVICE + 1, 6);
	wd_settle(w);
	wd_client_stop(w, 0, false, NULL);
	assert_int_equal(wd_count(w, 0), 0);
	assert_int_equal(s->ended, 1);
	assert_int_equal(s->failure.error, -ESHUTDOWN);
}

static void test_blame_wears_off(void **state)
{
	struct krp_session *a = &w->client[0].s[0];
	__u32 one;

	(void)state;
	wd_client_start(w, 0, 7);
	krp_session_blamed(a, 0);
	one = krp_session_blame(a, 0);
	assert_int_equal(one, KRP_BLAME);
	assert_int_equal(krp_session_blame(a, KRP_BLAME_NS), one / 2);
	assert_int_equal(krp_session_blame(a, 10 * KRP_BLAME_NS), 0);
	for (one = 0; one < 100000; one++)
		krp_session_blamed(a, 0);
	assert_int_equal(krp_session_blame(a, 0), 1U << 20);
	assert_int_equal(a->failure.nr, 100001);
	krp_session_retry(a, 0); /* it is another server now */
	assert_int_equal(krp_session_blame(a, 0), 0);
}

static void test_better(void **state)
{
	struct krp_candidate a = { 0 }, b = { 0 };

	(void)state;
	assert_false(krp_better(&a, &b));
	b.rtt_ns = 7; /* a known time before an unknown one */
	assert_true(krp_better(&b, &a));
	a.rtt_ns = 5;
	assert_true(krp_better(&a, &b));
	a.blame = 1;
	assert_true(krp_better(&b, &a));
	a.blame = 0;
	a.priority = 2;
	assert_true(krp_better(&b, &a));
	b.priority = 3;
	assert_true(krp_better(&a, &b));
	a.doubtful = 1;
	assert_true(krp_better(&b, &a));
	assert_false(krp_better(&a, &b));
}

/* The time for a neighbour's address is the session's, but not if that is long. */
static void test_addresses_are_asked_for_anew(void **state)
{
	(void)state;
	assert_int_equal(krp_addr_ms(100), 100);
	assert_int_equal(krp_addr_ms(KRP_ADDR_MS_MAX), KRP_ADDR_MS_MAX);
	assert_int_equal(krp_addr_ms(600000), KRP_ADDR_MS_MAX);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	static const struct CMUnitTest tests[] = {
		CASE(test_attach_without_key),
		CASE(test_attach_with_key),
		CASE(test_keys_that_do_not_fit),
		CASE(test_proof_that_does_not_hold),
		CASE(test_server_proof_is_compared),
		CASE(test_each_step_has_its_time),
		CASE(test_announced_steps_have_their_own),
		CASE(test_calls_out_of_turn),
		CASE(test_back_off),
		CASE(test_one_credit),
		CASE(test_questions_and_records_in_turn),
		CASE(test_buffers_that_come_back_late),
		CASE(test_rate),
		CASE(test_question_given_up),
		CASE(test_questions_end_with_the_connection),
		CASE(test_silent_server),
		CASE(test_answers_to_nothing),
		CASE(test_handshake_out_of_turn),
		CASE(test_leave),
		CASE(test_blame_wears_off),
		CASE(test_better),
		CASE(test_addresses_are_asked_for_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
