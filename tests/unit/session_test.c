// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The protocol core: messages and their order, limits, notifications. */
#include "tests/unit/session_fixture.h"

static void test_nothing_is_answered_after_close(void **state)
{
	struct fixture *fx = *state;
	struct krp_renew m;

	attach(fx);
	ms_session_shut(&fx->s, "test");
	krp_msg_init(&m, KRP_MSG_RENEW, 3, 0, 0);
	give(fx, &m);
	assert_int_equal(fx->sent_nr, 2);
	ms_session_shut(&fx->s, "again");
	assert_int_equal(fx->closed, 1);
	assert_string_equal(fx->why, "test");
}

/* Each type in each state where it may not come: answered, closed, no effect. */
static void test_messages_out_of_turn(void **state)
{
	static const unsigned int types[] = {
		KRP_MSG_HELLO, KRP_MSG_AUTH, KRP_MSG_PUBLISH,	KRP_MSG_WITHDRAW,
		KRP_MSG_RENEW, KRP_MSG_ROOT, KRP_MSG_SUBSCRIBE, KRP_MSG_LOOKUP,
	};
	struct fixture *fx = *state;
	union {
		struct krp_msg_hdr hdr;
		struct krp_hello hello;
		struct krp_publish publish;
		__u8 bytes[KRP_MSG_BYTES_MAX];
	} m;
	struct ms_table_stats ts;
	unsigned int i, at;

	for (at = MS_STATE_HELLO; at <= MS_STATE_READY; at++) {
		for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			if (types[i] == KRP_MSG_HELLO  ? at == MS_STATE_HELLO
			    : types[i] == KRP_MSG_AUTH ? at == MS_STATE_CHALLENGE
						       : at == MS_STATE_READY)
				continue;
			fx_session(fx);
			if (at == MS_STATE_CHALLENGE)
				say_hello(fx);
			if (at == MS_STATE_READY)
				attach(fx);
			krp_msg_init(&m, types[i], 55, 0, 0);
			if (types[i] == KRP_MSG_HELLO)
				make_hello(&m.hello);
			if (types[i] == KRP_MSG_PUBLISH)
				make_publish(&m.publish, 1, 1);
			give(fx, &m);
			assert_int_equal(last_status(fx), KRP_ST_STATE);
			assert_int_equal(fx->closed, 1);
			assert_int_equal(fx->opened, at == MS_STATE_READY);
		}
	}
	ms_table_stats(fx->hub.table, &ts);
	assert_int_equal(ts.records, 0);
}

static void test_malformed(void **state)
{
	struct fixture *fx = *state;
	struct krp_publish m;
	struct ms_table_stats ts;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		fx_session(fx);
		attach(fx);
		make_publish(&m, 1, 1);
		if (i == 0)
			m.rsvd[5] = 1;
		else if (i == 1)
			m.value.kind = 99;
		else if (i == 2)
			m.value.raw[45] = 1; /* behind len */
		else if (i == 3)
			m.hdr.rsvd2[0] = 1;
		else if (i == 4)
			m.hdr.type = KRP_MSG_ACK;
		else if (i == 5)
			m.hdr.magic = 0;
		else if (i == 6)
			m.value.generation = krp_cpu_to_le64(78); /* not that of HELLO */
		if (i == 7)
			ms_session_receive(&fx->s, &m, sizeof(m) - 8, fx->now);
		else
			give(fx, &m);
		assert_int_equal(last_status(fx), KRP_ST_MALFORMED);
		assert_int_equal(fx->closed, 1);
	}
	ms_table_stats(fx->hub.table, &ts);
	assert_int_equal(ts.records, 0);
	assert_int_equal(fx->hub.stats.messages_in[0], 7);
}

/* A type that there is not, in each state: an ACK says so, and it is over. */
static void test_a_type_that_nobody_knows(void **state)
{
	static const unsigned int types[] = { 0, KRP_MSG_TYPES, 255 };
	struct fixture *fx = *state;
	unsigned int i, at;
	struct krp_renew m;

	for (at = MS_STATE_HELLO; at <= MS_STATE_READY; at++) {
		for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			fx_session(fx);
			if (at == MS_STATE_CHALLENGE)
				say_hello(fx);
			if (at == MS_STATE_READY)
				attach(fx);
			krp_msg_init(&m, KRP_MSG_RENEW, 0x12345 + i, 0, 0);
			m.hdr.type = (__u8)types[i];
			give(fx, &m);
			assert_int_equal(fx->sent_nr, at - MS_STATE_HELLO + 1);
			assert_answer(fx, KRP_MSG_ACK, 0x12345 + i, KRP_ST_MALFORMED);
			assert_int_equal(fx->closed, 1);
			assert_int_equal(fx->s.state, MS_STATE_CLOSING);
		}
	}
}

static void test_too_short_for_a_header(void **state)
{
	struct fixture *fx = *state;
	__u64 bytes[4] = { 0 };

	ms_session_receive(&fx->s, bytes, 3, fx->now);
	assert_answer(fx, KRP_MSG_ACK, 0, KRP_ST_MALFORMED);
	assert_int_equal(fx->closed, 1);
}

static void test_versions(void **state)
{
	struct fixture *fx = *state;

	/* a later protocol whose sender speaks ours too */
	make_hello(&fx->hello);
	fx->hello.hdr.version = KRP_MSG_VERSION + 1;
	fx->hello.version_max = KRP_MSG_VERSION + 1;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_OK);
	assert_int_equal(fx->sent[0].hdr.version, KRP_MSG_VERSION);

	/* one that does not: told in its own version */
	fx_session(fx);
	fx->hello.version_min = KRP_MSG_VERSION + 1;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION);
	assert_int_equal(fx->sent[0].hdr.version, KRP_MSG_VERSION + 1);
	assert_int_equal(fx->closed, 1);

	/* our header, but a range that leaves us out */
	fx_session(fx);
	fx->hello.hdr.version = KRP_MSG_VERSION;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION);

	/* a header that is not the highest of the range */
	fx_session(fx);
	make_hello(&fx->hello);
	fx->hello.version_max = KRP_MSG_VERSION + 1;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_MALFORMED);
}

/* The first version had a shorter HELLO: its client reads why it is refused. */
static void test_a_client_of_version_1(void **state)
{
	struct fixture *fx = *state;
	__u64 bytes[184 / 8];

	make_hello(&fx->hello);
	fx->hello.version_min = fx->hello.version_max = fx->hello.hdr.version = 1;
	fx->hello.hdr.bytes = krp_cpu_to_le16(sizeof(bytes));
	memcpy(bytes, &fx->hello, sizeof(bytes));
	ms_session_receive(&fx->s, bytes, sizeof(bytes), fx->now);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION);
	assert_int_equal(fx->sent[0].hdr.version, 1);
	assert_int_equal(krp_le16_to_cpu(fx->sent[0].hdr.bytes), 80);
	assert_int_equal(fx->closed, 1);
}

static void test_leases_are_clamped(void **state)
{
	static const struct {
		uint32_t wish;
		uint32_t got;
	} cases[] = {
		{ 0, 30000 }, { 1, 3000 }, { 3000, 3000 }, { 9999, 9999 }, { 0xffffffff, 300000 }
	};
	struct fixture *fx = *state;
	struct krp_auth a;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fx_session(fx);
		make_hello(&fx->hello);
		fx->hello.lease_ms = krp_cpu_to_le32(cases[i].wish);
		give(fx, &fx->hello);
		make_auth(fx, &a);
		give(fx, &a);
		assert_int_equal(krp_le32_to_cpu(fx->sent[1].welcome.lease_ms), cases[i].got);
	}
}

/* A client of a server that has just begun is told so, until that is over. */
static void test_settling_is_told(void **state)
{
	static const struct {
		uint64_t settled_ms;
		uint64_t now_ms;
		uint32_t told_ms;
	} cases[] = { { 0, 500000, 0 },	     { 530000, 500000, 30000 },
		      { 530000, 529999, 1 }, { 530000, 530000, 0 },
		      { 530000, 900000, 0 }, { UINT64_MAX, 900000, KRP_SETTLING_MS_MAX } };
	struct fixture *fx = *state;
	const struct krp_welcome *w = &fx->sent[1].welcome;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fx->hub.settle.until_ms = cases[i].settled_ms;
		fx->now = cases[i].now_ms;
		fx_session(fx);
		attach(fx);
		assert_int_equal(krp_le32_to_cpu(w->settling_ms), cases[i].told_ms);
		assert_int_equal(krp_msg_check(w, sizeof(*w), 0), KRP_ST_OK);
		assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), cases[i].told_ms);
	}
}

static void publish_one(struct fixture *fx, unsigned int service)
{
	struct krp_publish m;

	make_publish(&m, service, service);
	give(fx, &m);
}

/* A site of which not all have come back settles longer, but not for ever. */
static void test_settling_grows_while_publishers_come(void **state)
{
	struct fixture *fx = *state;
	struct ms_settle *s = &fx->hub.settle;
	uint64_t from_ms = fx->now;

	ms_settle_begin(s, from_ms, 30000, 10000);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 30000);
	fx->now = from_ms + 15000;
	attach(fx);
	publish_one(fx, 1);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 15000); /* long enough */
	fx->now = from_ms + 29000;
	publish_one(fx, 2);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 1000); /* it was here before */
	fx_session(fx);
	attach(fx);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 1000); /* it publishes nothing */
	publish_one(fx, 3);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 10000);
	fx->now = from_ms + 38999;
	fx_session(fx);
	attach(fx);
	publish_one(fx, 4);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 10000);
	s->until_ms = from_ms + 119000;
	fx->now = from_ms + 118000;
	fx_session(fx);
	attach(fx);
	publish_one(fx, 5);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 2000);
	fx->now = from_ms + 120000;
	fx_session(fx);
	attach(fx);
	publish_one(fx, 6);
	assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), 0); /* over is over */
}

static void test_requests(void **state)
{
	struct fixture *fx = *state;
	struct krp_withdraw wd;
	struct krp_lookup_msg lk;
	struct krp_root_get rg;
	struct krp_publish m;
	struct krp_renew rn;

	attach(fx);
	make_publish(&m, 1, 42);
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 101, KRP_ST_OK);
	assert_int_equal(krp_le32_to_cpu(fx->sent[2].ack.records), 1);
	assert_int_equal(krp_le32_to_cpu(fx->sent[2].ack.lease_ms), 30000);

	fx->now += 1000;
	krp_msg_init(&lk, KRP_MSG_LOOKUP, 9, 0, 0);
	lk.key = m.key;
	give(fx, &lk);
	assert_answer(fx, KRP_MSG_VALUE, 9, KRP_ST_OK);
	assert_memory_equal(&fx->sent[3].value.value, &m.value, sizeof(m.value));

	krp_msg_init(&rn, KRP_MSG_RENEW, 10, 0, 0);
	give(fx, &rn);
	assert_answer(fx, KRP_MSG_ACK, 10, KRP_ST_OK);
	assert_int_equal(krp_le32_to_cpu(fx->sent[4].ack.records), 1);

	krp_msg_init(&rg, KRP_MSG_ROOT, 11, 0, 0);
	give(fx, &rg);
	assert_answer(fx, KRP_MSG_ROOT_REPLY, 11, KRP_ST_OK);
	assert_int_equal(krp_le32_to_cpu(fx->sent[5].root.root.rkey), 5);

	krp_msg_init(&wd, KRP_MSG_WITHDRAW, 12, 0, 0);
	wd.key = m.key;
	fx->now += 500;
	give(fx, &wd);
	assert_answer(fx, KRP_MSG_ACK, 12, KRP_ST_OK);
	assert_int_equal(krp_le32_to_cpu(fx->sent[6].ack.records), 0);
	give(fx, &wd);
	assert_answer(fx, KRP_MSG_ACK, 12, KRP_ST_NOT_FOUND);
	give(fx, &lk);
	assert_answer(fx, KRP_MSG_VALUE, 9, KRP_ST_NOT_FOUND);
	assert_int_equal(fx->closed, 0);
	assert_int_equal(fx->hub.stats.published, 1);
	assert_int_equal(fx->hub.stats.withdrawn, 1);
	assert_int_equal(fx->hub.stats.results[KRP_ST_NOT_FOUND], 1);
}

static void test_limit_of_records(void **state)
{
	struct fixture *fx = *state;
	struct krp_publish m;
	unsigned int i;

	attach(fx);
	for (i = 0; i < 10; i++) { /* 0 is the port's record, which does not count */
		make_publish(&m, i, i);
		give(fx, &m);
		assert_int_equal(last_status(fx), i < 9 ? KRP_ST_OK : KRP_ST_LIMIT_RECORDS);
	}
	assert_int_equal(fx->closed, 0);
}

static void test_rate(void **state)
{
	struct fixture *fx = *state;
	struct krp_renew m;
	unsigned int i;

	attach(fx);
	krp_msg_init(&m, KRP_MSG_RENEW, 1, 0, 0);
	for (i = 0; i < 100000; i++) { /* at the rate, for ever */
		fx->now += 1;
		fx->sent_nr = 2;
		give(fx, &m);
		assert_int_equal(last_status(fx), KRP_ST_OK);
	}
	for (i = 0; i < 2000 && !fx->closed; i++) { /* and all at once */
		fx->sent_nr = 2;
		give(fx, &m);
	}
	assert_in_range(i, 990, 1001);
	assert_int_equal(last_status(fx), KRP_ST_LIMIT_RATE);
}

/* Fill a page with keys of which no plan parts one: @m's key finds no room then. */
static void crowd_page(struct fixture *fx, struct krp_publish *m)
{
	unsigned int service = KRP_SERVICE_USER_MIN;
	uint64_t hash;

	make_publish(m, service, 1);
	hash = krp_key_hash(&m->key, FX_SALT);
	while (!ms_table_put(fx->hub.table, &m->key, &m->value, 0))
		do
			make_publish(m, ++service, 1);
		while (krp_key_hash(&m->key, FX_SALT) >> 56 != hash >> 56);
}

/* Whoever makes the server plan in vain, with each message, is cut off sooner. */
static void test_fruitless_plans_have_their_price(void **state)
{
	struct fixture *fx = *state;
	struct krp_publish m;
	unsigned int i;

	attach(fx);
	crowd_page(fx, &m);
	for (i = 0; i < 2000 && !fx->closed; i++) {
		fx->sent_nr = 2;
		give(fx, &m);
		assert_int_equal(last_status(fx),
				 fx->closed ? KRP_ST_LIMIT_RATE : KRP_ST_TABLE_FULL);
	}
	assert_in_range(i, 1000 / (1 + MS_FRUITLESS_TOKENS), 1000 / MS_FRUITLESS_TOKENS + 2);
}

static void test_client_that_takes_no_answers(void **state)
{
	struct fixture *fx = *state;
	struct krp_renew m;

	attach(fx);
	fx->send_error = -EPROTO;
	krp_msg_init(&m, KRP_MSG_RENEW, 1, 0, 0);
	give(fx, &m);
	assert_int_equal(fx->closed, 1);
}

static void test_reads_that_cannot_be_opened(void **state)
{
	struct fixture *fx = *state;
	struct krp_auth a;

	say_hello(fx);
	make_auth(fx, &a);
	fx->open_error = -ENOMEM;
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_NO_MEMORY);
	assert_int_equal(fx->closed, 1);
}

static void test_too_many_from_its_address(void **state)
{
	struct fixture *fx = *state;
	struct krp_auth a;

	say_hello(fx);
	make_auth(fx, &a);
	fx->open_error = -EUSERS;
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_LIMIT_CLIENTS);
	assert_int_equal(fx->closed, 1);
	assert_int_equal(fx->hub.stats.sessions, 0);
}

static void tell(struct fixture *fx)
{
	assert_false(ms_hub_seal(&fx->hub, fx->now));
	assert_false(ms_hub_tell(&fx->hub, 100));
}

static const struct krp_key noted = { .gid = { 1 } }; /* the record whose changes are notified */

/* Another client publishes the record, with a value of so many bytes. */
static void publish_noted(struct fixture *fx, __u8 len)
{
	struct krp_value v = { .generation = krp_cpu_to_le64(3), .kind = KRP_KIND_RAW, .len = len };
	struct ms_claim other = { .owner = { 4 }, .generation = 3, .lease_ms = 3000 };

	assert_int_equal(ms_ledger_publish(fx->hub.ledger, fx->now, &other, &noted, &v), KRP_ST_OK);
}

static void subscribe(struct fixture *fx, unsigned int flags)
{
	struct krp_subscribe m;

	krp_msg_init(&m, KRP_MSG_SUBSCRIBE, 20, 0, 0);
	m.flags = flags;
	give(fx, &m);
}

static void notify_at_once(struct fixture *fx)
{
	const struct krp_notify *n = &fx->sent[0].notify;

	fx->sent_nr = 0;
	publish_noted(fx, 0);
	assert_int_equal(fx->sent_nr, 0); /* a change alone makes no messages */
	tell(fx);
	assert_answer(fx, KRP_MSG_NOTIFY, 0, KRP_ST_OK);
	assert_int_equal(n->nr, 1);
	assert_int_equal(n->change[0].event, KRP_EVENT_CHANGED);
	assert_int_equal(krp_le64_to_cpu(n->seq), 1);
	assert_memory_equal(&n->change[0].key, &noted, sizeof(noted));
}

/* A slow client is told when it has room; of one record as it is then. */
static void notify_when_there_is_room(struct fixture *fx)
{
	const struct krp_notify *n = &fx->sent[0].notify;
	unsigned int i;

	fx->notify_room = 0;
	fx->sent_nr = 0;
	for (i = 0; i < 5; i++)
		publish_noted(fx, (__u8)(i + 1));
	tell(fx);
	assert_int_equal(ms_ledger_remove(fx->hub.ledger, &noted), 0);
	tell(fx);
	assert_int_equal(fx->sent_nr, 0);
	fx->notify_room = 1;
	ms_session_room(&fx->s);
	assert_int_equal(fx->sent_nr, 1);
	assert_int_equal(n->nr, 2);
	assert_int_equal(n->change[0].event, KRP_EVENT_CHANGED);
	assert_int_equal(n->change[1].event, KRP_EVENT_GONE);
	assert_int_equal(krp_le64_to_cpu(n->seq), 2);
	assert_int_equal(fx->hub.stats.notifies_dropped, 0);
}

/* A client that is too far behind is told so, once, before anything else. */
static void notify_that_too_much_was_missed(struct fixture *fx)
{
	fx->hub.changes.head += MS_CHANGES_MAX + 1;
	tell(fx);
	fx->notify_room = 1;
	ms_session_room(&fx->s);
	assert_int_equal(fx->sent_nr, 2);
	assert_int_equal(fx->sent[1].notify.nr, 1);
	assert_int_equal(fx->sent[1].notify.change[0].event, KRP_EVENT_RESYNC);
	assert_int_equal(krp_le64_to_cpu(fx->sent[1].notify.seq), 3);
	assert_int_equal(fx->hub.stats.notifies_dropped, MS_CHANGES_MAX + 1);
	assert_int_equal(fx->hub.stats.resyncs, 1);
}

static void test_notifications(void **state)
{
	struct fixture *fx = *state;

	attach(fx);
	subscribe(fx, KRP_SUBSCRIBE_ALL);
	assert_answer(fx, KRP_MSG_ACK, 20, KRP_ST_OK);
	subscribe(fx, KRP_SUBSCRIBE_ALL); /* again: still once on the list */
	assert_int_equal(fx->hub.stats.subscribers, 1);
	notify_at_once(fx);
	notify_when_there_is_room(fx);
	notify_that_too_much_was_missed(fx);
	subscribe(fx, 0);
	assert_int_equal(fx->hub.stats.subscribers, 0);
	ms_session_room(&fx->s);
	assert_int_equal(fx->sent_nr, 3);
}

static void test_features_not_agreed(void **state)
{
	struct fixture *fx = *state;
	struct krp_lookup_msg lk;
	struct krp_subscribe sub;
	struct krp_auth a;

	make_hello(&fx->hello);
	fx->hello.features = 0;
	give(fx, &fx->hello);
	make_auth(fx, &a);
	give(fx, &a);
	krp_msg_init(&lk, KRP_MSG_LOOKUP, 5, 0, 0);
	give(fx, &lk);
	assert_answer(fx, KRP_MSG_VALUE, 5, KRP_ST_STATE);
	krp_msg_init(&sub, KRP_MSG_SUBSCRIBE, 6, 0, 0);
	sub.flags = KRP_SUBSCRIBE_ALL;
	give(fx, &sub);
	assert_answer(fx, KRP_MSG_ACK, 6, KRP_ST_STATE);
	assert_int_equal(fx->hub.stats.subscribers, 0);
	assert_int_equal(fx->closed, 0);
}

static void test_time_outs(void **state)
{
	struct fixture *fx = *state;
	struct krp_renew m;
	unsigned int i;

	ms_session_check(&fx->s, fx->now + MS_HANDSHAKE_MS - 1);
	assert_int_equal(fx->closed, 0);
	ms_session_check(&fx->s, fx->now + MS_HANDSHAKE_MS);
	assert_int_equal(fx->closed, 1);

	fx_session(fx);
	fx->now += MS_HANDSHAKE_MS - 1;
	say_hello(fx); /* saying something does not buy more time */
	ms_session_check(&fx->s, fx->now + 1);
	assert_int_equal(fx->closed, 1);

	fx_session(fx);
	attach(fx);
	krp_msg_init(&m, KRP_MSG_RENEW, 1, 0, 0);
	for (i = 0; i < 10; i++) {
		fx->now += 29999;
		ms_session_check(&fx->s, fx->now);
		give(fx, &m);
	}
	assert_int_equal(fx->closed, 0);
	fx->hub.limits.idle_timeout_ms = 29999; /* the lease is 30000 */
	ms_session_check(&fx->s, fx->now + 29998);
	assert_int_equal(fx->closed, 0);
	ms_session_check(&fx->s, fx->now + 29999);
	assert_int_equal(fx->closed, 1);
	assert_int_equal(fx->hub.stats.sessions_timed_out, 3);
}

static void test_over_limit_and_draining(void **state)
{
	struct fixture *fx = *state;
	struct krp_renew m;
	struct krp_auth a;

	fx->hub.stats.sessions++; /* somebody else is in already */
	say_hello(fx);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_LIMIT_CLIENTS);
	assert_int_equal(fx->closed, 1);

	fx_session(fx);
	fx->hub.stats.sessions--;
	say_hello(fx);
	fx->hub.stats.sessions++; /* or comes in between */
	make_auth(fx, &a);
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_LIMIT_CLIENTS);
	assert_int_equal(fx->opened, 0);
	fx->hub.stats.sessions--;

	fx_session(fx);
	attach(fx);
	fx->hub.draining = true;
	krp_msg_init(&m, KRP_MSG_RENEW, 4, 0, 0);
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 4, KRP_ST_SHUTDOWN);
	assert_int_equal(fx->closed, 1);

	fx_session(fx);
	say_hello(fx);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_SHUTDOWN);
}

/* Random bytes, and good messages with random damage: never more than an answer. */
static void test_random_messages(void **state)
{
	struct fixture *fx = *state;
	union {
		struct krp_msg_hdr hdr;
		struct krp_publish publish;
		__u8 bytes[KRP_MSG_BYTES_MAX];
	} m;
	unsigned int i, j, len;

	srand(7);
	for (i = 0; i < 200000; i++) {
		if (fx->s.state == MS_STATE_CLOSING || fx->sent_nr > SENT_MAX - 8) {
			fx_session(fx);
			if (rand() % 4)
				attach(fx);
		}
		fx->now++;
		len = (unsigned int)rand() % (KRP_MSG_BYTES_MAX + 1);
		for (j = 0; j < sizeof(m); j++)
			m.bytes[j] = (__u8)rand();
		if (rand() % 4) {
			j = (unsigned int)rand() % KRP_MSG_TYPES;
			if (krp_msg_bytes(j))
				krp_msg_init(&m, j, i, 0, 0);
			if (j == KRP_MSG_PUBLISH)
				make_publish(&m.publish, (unsigned int)rand() % 20, i);
			len = krp_msg_bytes(j);
			if (len && rand() % 2)
				m.bytes[(unsigned int)rand() % len] = (__u8)rand();
		}
		j = fx->sent_nr;
		ms_session_receive(&fx->s, &m, len, fx->now);
		assert_in_range(fx->sent_nr - j, 1, 2);
		assert_true(fx->s.state != MS_STATE_READY || fx->opened);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_nothing_is_answered_after_close),
		CASE(test_messages_out_of_turn),
		CASE(test_malformed),
		CASE(test_a_type_that_nobody_knows),
		CASE(test_too_short_for_a_header),
		CASE(test_versions),
		CASE(test_a_client_of_version_1),
		CASE(test_leases_are_clamped),
		CASE(test_settling_is_told),
		CASE(test_settling_grows_while_publishers_come),
		CASE(test_requests),
		CASE(test_limit_of_records),
		CASE(test_rate),
		CASE(test_fruitless_plans_have_their_price),
		CASE(test_client_that_takes_no_answers),
		CASE(test_reads_that_cannot_be_opened),
		CASE(test_too_many_from_its_address),
		CASE(test_notifications),
		CASE(test_features_not_agreed),
		CASE(test_time_outs),
		CASE(test_over_limit_and_draining),
		CASE(test_random_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
