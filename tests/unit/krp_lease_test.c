// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a client keeps up at a server, by proto/krp_session.h and krp_records.h, with the daemon's
 * session, ledger and table and a simulated clock: leases, restarts, notifications, records,
 * orphans.
 */
#include "tests/unit/session_case.h"

/* ---- leases ---- */

static void test_renewed(void **state)
{
	unsigned int renewals;

	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_run(w, 20000);
	renewals = c->sent[0][KRP_MSG_RENEW];
	assert_in_range(renewals, 19, 21); /* at once, and each third of 3 s */
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	assert_int_equal(c->sent[0][KRP_MSG_PUBLISH], 1);
}

static void test_lease_bounds(void **state)
{
	(void)state;
	w->limits.lease_ms = w->limits.lease_max_ms = 6000000;
	wd_server_start(w, 0);
	attach();
	wd_run(w, 31000);
	assert_int_equal(c->sent[0][KRP_MSG_RENEW], 3); /* a silent session would be ended */
	wd_client_stop(w, 0, true, NULL);
	w->limits.lease_ms = w->limits.lease_min_ms = KRP_LEASE_MS_MIN;
	wd_server_start(w, 0);
	attach();
	wd_run(w, 1000);
	assert_in_range(c->sent[0][KRP_MSG_RENEW], 9, 12);
	assert_int_equal(c->sent[0][KRP_MSG_PUBLISH], 0);
}

/* The lease is over at the server: the count in the answer to RENEW tells. */
static void test_lease_run_out(void **state)
{
	struct krp_key key;

	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_publish(w, 0, SERVICE + 1, 6);
	wd_settle(w);
	key = wd_find(w, 0, SERVICE)->key;
	assert_int_equal(ms_ledger_remove(w->server[0].hub.ledger, &key), 0);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), -1);
	wd_run(w, 1100);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	assert_int_equal(wd_at(w, 0, 0, SERVICE + 1), 6);
	assert_int_equal(s->attaches, 1);
}

/* WITHDRAW does not extend the lease: an answer to RENEW that is late counts as one. */
static void test_withdraw_does_not_extend(void **state)
{
	uint64_t acked_ns;

	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	acked_ns = s->lease.acked_ns;
	wd_run(w, 500);
	wd_withdraw(w, 0, SERVICE);
	wd_settle(w);
	assert_int_equal(s->lease.acked_ns, acked_ns);
	wd_publish(w, 0, SERVICE, 6);
	wd_settle(w);
	assert_int_equal(s->lease.acked_ns, now_ns());
}

static void test_refused_is_tried_again(void **state)
{
	(void)state;
	w->limits.records_max = 1;
	wd_server_start(w, 0);
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	wd_publish(w, 0, SERVICE + 1, 6);
	wd_settle(w);
	assert_int_equal(wd_find(w, 0, SERVICE + 1)->at[0].state, KRP_AT_REFUSED);
	assert_int_equal(wd_find(w, 0, SERVICE + 1)->at[0].err, -EDQUOT);
	wd_run(w, 5000);
	assert_int_equal(c->refusals, 1); /* one word about it */
	wd_withdraw(w, 0, SERVICE);
	wd_run(w, 1100);
	assert_int_equal(wd_at(w, 0, 0, SERVICE + 1), 6);
	assert_int_equal(wd_find(w, 0, SERVICE + 1)->at[0].err, 0);
	assert_null(wd_find(w, 0, SERVICE)); /* forgotten once the server has confirmed */
}

/* ---- restart ---- */

static void test_restart(void **state)
{
	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	wd_server_start(w, 0);
	w->server[0].hub.settle.until_ms = w->now_ms + 2000;
	assert_int_equal(wd_count(w, 0), 0);
	wd_run(w, 200);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	assert_int_equal(s->fresh, 1);
	assert_int_equal(krp_session_doubtful(s, now_ns()), 1);
	wd_run(w, 2000);
	assert_int_equal(krp_session_doubtful(s, now_ns()), 0);
}

/* All is told again to the same incarnation, too: another may have taken it meanwhile. */
static void test_same_incarnation(void **state)
{
	struct krp_key key;

	(void)state;
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	key = wd_find(w, 0, SERVICE)->key;
	wd_break(w, 0, 0);
	ms_ledger_remove(w->server[0].hub.ledger, &key);
	wd_run(w, 200);
	assert_int_equal(s->fresh, 0);
	assert_int_equal(c->sent[0][KRP_MSG_PUBLISH], 2);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
}

static void test_hanging_server(void **state)
{
	(void)state;
	attach();
	krp_session_pulse(s, now_ns(), 1, 0);
	assert_int_equal(krp_session_doubtful(s, now_ns()), 1);
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w); /* it has answered */
	assert_int_equal(krp_session_doubtful(s, now_ns()), 0);
}

/* ---- notifications ---- */

static void subscribed(void)
{
	attach();
	assert_int_equal(krp_session_subscribe(s, 1), 0);
	wd_pull(w, 0, 0);
	wd_settle(w);
	assert_int_equal(s->sub.done, s->sub.nr);
	assert_int_equal(s->sub.err, 0);
	assert_int_equal(c->resyncs, 1);
	c->resyncs = 0;
}

static void change(uint16_t service)
{
	struct krp_key key = { .gid = { 0xfe }, .service = krp_cpu_to_le16(service) };

	ms_hub_notify(&w->server[0].hub, KRP_EVENT_CHANGED, &key, 3);
	wd_run(w, 50);
}

static void test_changes(void **state)
{
	(void)state;
	subscribed();
	change(501);
	change(502);
	assert_int_equal(c->changes, 2);
	c->conn[0].lose_notifies = 1;
	change(503);
	assert_int_equal(c->changes, 2);
	change(504);
	assert_int_equal(c->resyncs, 1); /* a gap */
	assert_int_equal(c->changes, 3);
	krp_session_subscribe(s, 0);
	wd_pull(w, 0, 0);
	wd_settle(w);
	change(505);
	assert_int_equal(c->changes, 3);
	assert_int_equal(c->resyncs, 1);
}

static void test_resync_of_the_server(void **state)
{
	struct krp_notify notify;

	(void)state;
	subscribed();
	krp_msg_init(&notify, KRP_MSG_NOTIFY, 0, KRP_ST_OK, w->server[0].hub.incarnation);
	notify.seq = krp_cpu_to_le64(1);
	notify.nr = 1;
	notify.change[0].event = KRP_EVENT_RESYNC;
	say(&notify, sizeof(notify));
	assert_int_equal(c->resyncs, 1);
	wd_break(w, 0, 0);
	wd_run(w, 200);
	assert_int_equal(c->resyncs, 2); /* subscribed to again */
}

/* No NOTIFY will come: what is cached cannot be trusted either. */
static void test_subscribe_refused(void **state)
{
	struct krp_ack ack;

	(void)state;
	attach();
	c->conn[0].mute = true;
	krp_session_subscribe(s, 1);
	wd_pull(w, 0, 0);
	krp_msg_init(&ack, KRP_MSG_ACK, krp_entry(s->slots.busy.next, struct krp_slot, link)->xid,
		     KRP_ST_NO_MEMORY, w->server[0].hub.incarnation);
	say(&ack, sizeof(ack));
	assert_int_equal(s->sub.err, -ENOMEM);
	assert_int_equal(s->sub.on, 0);
	assert_int_equal(c->resyncs, 1);
}

static void test_gone_is_published_again(void **state)
{
	struct krp_key key;

	(void)state;
	subscribed();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	key = wd_find(w, 0, SERVICE)->key;
	ms_ledger_remove(w->server[0].hub.ledger, &key);
	wd_run(w, 50);
	assert_int_equal(c->gone, 1);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	wd_withdraw(w, 0, SERVICE);
	wd_run(w, 50);
	assert_int_equal(c->gone, 2);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), -1);
}

/* Of another generation, of a record that is on its way, of one withdrawn: not ours to mend. */
static void test_gone_of_another(void **state)
{
	struct krp_record *rec;

	(void)state;
	attach();
	rec = wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	krp_records_lost(&c->pub, 0, &rec->key, WD_GENERATION - 1);
	assert_int_equal(rec->at[0].state, KRP_AT_ACKED);
	krp_records_lost(&c->pub, 0, &rec->key, WD_GENERATION);
	assert_int_equal(rec->at[0].state, KRP_AT_DIRTY);
	wd_pull(w, 0, 0);
	krp_records_lost(&c->pub, 0, &rec->key, WD_GENERATION);
	assert_int_equal(rec->at[0].state, KRP_AT_SENT);
	s->peer.leaving = 1;
	krp_record_set(&c->pub, rec, 0, KRP_AT_ACKED);
	krp_records_lost(&c->pub, 0, &rec->key, WD_GENERATION);
	assert_int_equal(rec->at[0].state, KRP_AT_ACKED);
	s->peer.leaving = 0;
	krp_record_set(&c->pub, rec, 0, KRP_AT_SENT);
	wd_settle(w);
}

/* ---- records ---- */

static void test_changes_overtake(void **state)
{
	struct krp_record *rec;

	(void)state;
	attach();
	c->conn[0].mute = true;
	rec = wd_publish(w, 0, SERVICE, 1);
	wd_publish(w, 0, SERVICE, 2);
	wd_withdraw(w, 0, SERVICE);
	wd_publish(w, 0, SERVICE, 3);
	assert_int_equal(rec->at[0].state, KRP_AT_SENT);
	c->conn[0].mute = false;
	wd_settle(w);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 3);
	assert_int_equal(rec->at[0].state, KRP_AT_ACKED);
	assert_int_equal(rec->at[0].answered, rec->version);
}

static void test_the_nodes_own_goes_first(void **state)
{
	unsigned int i;

	(void)state;
	attach();
	w->server[0].reachable = false;
	wd_break(w, 0, 0);
	for (i = 0; i < 20; i++)
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
	wd_publish(w, 0, KRP_SERVICE_NODE, 9);
	assert_ptr_equal(krp_records_dirty(&s->peer), wd_find(w, 0, KRP_SERVICE_NODE));
	w->server[0].reachable = true;
	wd_run(w, 500);
	assert_int_equal(wd_count(w, 0), 21);
}

/* A server that never was attached needs no WITHDRAW; another does, however long it takes. */
static void test_withdraw_while_away(void **state)
{
	(void)state;
	w->server[0].reachable = false;
	wd_client_start(w, 0, 7);
	wd_publish(w, 0, SERVICE, 5);
	wd_withdraw(w, 0, SERVICE);
	assert_null(wd_find(w, 0, SERVICE));

	w->server[0].reachable = true;
	wd_run(w, 500);
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	w->server[0].reachable = false;
	wd_break(w, 0, 0);
	wd_withdraw(w, 0, SERVICE);
	assert_int_equal(wd_find(w, 0, SERVICE)->gone, 1);
	wd_run(w, 1000);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	w->server[0].reachable = true;
	wd_run(w, 500);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), -1);
	assert_null(wd_find(w, 0, SERVICE));
}

/* A withdrawn record is forgotten when no lease can hold it any more, but for one in use. */
static void test_forgotten(void **state)
{
	struct krp_record *rec;

	(void)state;
	attach();
	rec = wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	c->conn[0].mute = true;
	krp_record_pin(rec);
	wd_withdraw(w, 0, SERVICE);
	krp_records_expire(&c->pub, now_ns() + 7001 * KRP_NS_PER_MS);
	assert_ptr_equal(wd_find(w, 0, SERVICE), rec);
	krp_record_unpin(&c->pub, rec);
	krp_records_expire(&c->pub, now_ns() + 6999 * KRP_NS_PER_MS);
	assert_ptr_equal(wd_find(w, 0, SERVICE), rec);
	krp_records_expire(&c->pub, now_ns() + 7001 * KRP_NS_PER_MS);
	assert_null(wd_find(w, 0, SERVICE));
	wd_pull(w, 0, 0);
	c->conn[0].mute = false;
	wd_settle(w); /* the answer finds no record */
	assert_int_equal(s->state, KRP_SESSION_READY);
}

static void test_hash_that_grows(void **state)
{
	static struct krp_record *more[64];
	unsigned int i;

	(void)state;
	attach();
	for (i = 0; i < 50; i++)
		wd_publish(w, 0, (uint16_t)(SERVICE + i), i);
	assert_ptr_equal(krp_publisher_rehash(&c->pub, more, 64), c->chains);
	for (i = 0; i < 50; i++)
		assert_non_null(wd_find(w, 0, (uint16_t)(SERVICE + i)));
	wd_run(w, 100);
	assert_int_equal(wd_count(w, 0), 50);
	assert_int_equal(c->pub.nr, 50);
}

/* ---- orphans ---- */

static void test_what_is_left_goes_on(void **state)
{
	struct wd_client *b = &w->client[1];
	struct krp_list left;

	(void)state;
	krp_list_init(&left);
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_publish(w, 0, SERVICE + 1, 6);
	wd_settle(w);
	w->server[0].reachable = false;
	wd_break(w, 0, 0);
	wd_client_stop(w, 0, false, &left);
	assert_false(krp_list_empty(&left));
	wd_client_start(w, 1, 8);
	wd_client_adopt(w, 1, &left, true);
	assert_false(krp_list_empty(&left)); /* not of its address */
	wd_client_adopt(w, 1, &left, false);
	assert_true(krp_list_empty(&left));
	assert_int_equal(b->pub.nr, 2);
	w->server[0].reachable = true;
	wd_run(w, 600);
	assert_int_equal(wd_count(w, 0), 0); /* by its token, from another address */
	assert_int_equal(b->pub.nr, 0);
}

static void test_an_address_that_is_back(void **state)
{
	struct krp_list left;
	unsigned int round;

	(void)state;
	krp_list_init(&left);
	wd_client_start(w, 1, 8);
	wd_publish(w, 1, SERVICE, 1);
	for (round = 0; round < 3; round++) {
		w->server[0].reachable = true;
		wd_client_start(w, 0, 7);
		wd_run(w, 600);
		wd_publish(w, 0, SERVICE, 2);
		wd_publish(w, 0, SERVICE + 1, 3);
		wd_settle(w);
		w->server[0].reachable = false;
		wd_break(w, 0, 0);
		wd_break(w, 1, 0);
		wd_client_stop(w, 0, true, &left);
		wd_client_adopt(w, 1, &left, false);
		/* the same as before, not one more */
		assert_int_equal(w->client[1].pub.nr, 3);
		wd_client_release(w, 1, w->client[1].gid, &left);
		assert_true(krp_list_empty(&left)); /* its own are not adopted */
		wd_client_release(w, 1, c->gid, &left);
		assert_int_equal(w->client[1].pub.nr, 1);
		wd_client_adopt(w, 1, &left, false);
	}
	wd_client_release(w, 1, c->gid, &left);
	wd_client_start(w, 0, 7);
	wd_publish(w, 0, SERVICE, 9);
	wd_client_adopt(w, 0, &left, true);
	assert_true(krp_list_empty(&left));
	assert_int_equal(c->pub.nr, 2); /* what it publishes, and one to withdraw */
	w->server[0].reachable = true;
	wd_run(w, 600);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 9);
	assert_int_equal(wd_at(w, 0, 0, SERVICE + 1), -1);
	assert_int_equal(wd_at(w, 0, 1, SERVICE), 1);
}

/* A server takes no WITHDRAW without a good token from another address: the lease ends it. */
static void test_orphan_that_nobody_can_withdraw(void **state)
{
	struct krp_list left;

	(void)state;
	krp_list_init(&left);
	attach();
	wd_publish(w, 0, SERVICE, 5);
	wd_settle(w);
	memset(s->peer.token, 0xee, sizeof(s->peer.token));
	w->server[0].reachable = false;
	wd_break(w, 0, 0);
	wd_client_stop(w, 0, true, &left);
	w->server[0].reachable = true;
	wd_client_start(w, 1, 8);
	wd_client_adopt(w, 1, &left, false);
	wd_run(w, 100);
	assert_int_equal(w->client[1].pub.nr, 0);
	assert_int_equal(wd_count(w, 0), 1);
	wd_run(w, 4000);
	assert_int_equal(wd_count(w, 0), 0);
}

static void test_a_server_is_taken_off(void **state)
{
	struct krp_record *rec;

	(void)state;
	attach();
	rec = wd_publish(w, 0, SERVICE, 5);
	wd_publish(w, 0, SERVICE + 1, 6);
	wd_settle(w);
	c->conn[0].mute = true;
	wd_withdraw(w, 0, SERVICE + 1);
	krp_session_end(s, now_ns());
	wd_pull(w, 0, 0);
	krp_records_leave(&c->pub, 0, 0);
	assert_null(wd_find(w, 0, SERVICE + 1));
	assert_int_equal(rec->orphaned, 0);
	assert_int_equal(rec->at[0].state, KRP_AT_NEVER);
	w->now_ms += 4000;
	krp_session_init(s, &c->pub, 0, &c->conf);
	c->conn[0].mute = false;
	wd_run(w, 100);
	assert_int_equal(wd_at(w, 0, 0, SERVICE), 5);
	assert_int_equal(wd_count(w, 0), 1);
}

/* A server that an earlier publisher told of a record is to hear that it is withdrawn. */
static void test_withdrawn_before_the_server_is_back(void **state)
{
	struct krp_list left;
	unsigned int adopted_first;

	(void)state;
	krp_list_init(&left);
	for (adopted_first = 0; adopted_first < 2; adopted_first++) {
		attach();
		wd_publish(w, 0, SERVICE, 5);
		wd_settle(w);
		w->server[0].reachable = false;
		wd_break(w, 0, 0);
		wd_client_stop(w, 0, true, &left);
		wd_client_start(w, 0, 7);
		if (adopted_first)
			wd_client_adopt(w, 0, &left, true);
		wd_publish(w, 0, SERVICE, 6);
		wd_client_adopt(w, 0, &left, true);
		wd_withdraw(w, 0, SERVICE);
		w->server[0].reachable = true;
		wd_run(w, 600);
		assert_int_equal(s->state, KRP_SESSION_READY);
		assert_int_equal(wd_at(w, 0, 0, SERVICE), -1);
		wd_client_stop(w, 0, true, NULL);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	static const struct CMUnitTest tests[] = {
		CASE(test_renewed),
		CASE(test_lease_bounds),
		CASE(test_lease_run_out),
		CASE(test_withdraw_does_not_extend),
		CASE(test_refused_is_tried_again),
		CASE(test_restart),
		CASE(test_same_incarnation),
		CASE(test_hanging_server),
		CASE(test_changes),
		CASE(test_resync_of_the_server),
		CASE(test_subscribe_refused),
		CASE(test_gone_is_published_again),
		CASE(test_gone_of_another),
		CASE(test_changes_overtake),
		CASE(test_the_nodes_own_goes_first),
		CASE(test_withdraw_while_away),
		CASE(test_forgotten),
		CASE(test_hash_that_grows),
		CASE(test_what_is_left_goes_on),
		CASE(test_an_address_that_is_back),
		CASE(test_orphan_that_nobody_can_withdraw),
		CASE(test_a_server_is_taken_off),
		CASE(test_withdrawn_before_the_server_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
