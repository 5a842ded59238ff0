// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The protocol core over a transport that only keeps what it is told, with a
 * real ledger and table behind it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/session.h"
#include "tests/unit/unread_table.h"

#define INCARNATION 0x1122334455667788ULL
#define SENT_MAX 64

struct fixture {
	struct ms_hub hub;
	struct ms_session s;
	uint64_t now;
	union {
		struct krp_msg_hdr hdr;
		struct krp_ack ack;
		struct krp_challenge challenge;
		struct krp_welcome welcome;
		struct krp_value_msg value;
		struct krp_root_reply root;
		struct krp_notify notify;
		__u8 bytes[KRP_MSG_BYTES_MAX];
	} sent[SENT_MAX];
	unsigned int sent_nr;
	unsigned int opened;
	unsigned int closed;
	const char *why;
	int send_error;
	unsigned int notify_room;
	int open_error;
	struct krp_hello hello;
};

static const uint8_t my_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 7 };

static int fx_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	struct fixture *fx = arg;

	if (notify && !fx->notify_room)
		return -ENOBUFS;
	if (fx->send_error)
		return fx->send_error;
	assert_true(fx->sent_nr < SENT_MAX);
	/* what a server says must be well formed too */
	assert_int_equal(krp_msg_check(msg, bytes, 0), KRP_ST_OK);
	fx->notify_room -= notify;
	memcpy(fx->sent[fx->sent_nr++].bytes, msg, bytes);
	return 0;
}

static int fx_open_reads(void *arg)
{
	struct fixture *fx = arg;

	fx->opened++;
	return fx->open_error;
}

static void fx_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	ret_root->addr = krp_cpu_to_le64(0x1000);
	ret_root->rkey = krp_cpu_to_le32(5);
	ret_root->bytes = krp_cpu_to_le32(sizeof(struct krp_root));
}

static void fx_close(void *arg, const char *why)
{
	struct fixture *fx = arg;

	fx->closed++;
	fx->why = why;
}

static const struct ms_session_ops fx_session_ops = { fx_send, fx_open_reads, fx_root, fx_close };

static void fx_changed(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why)
{
	struct fixture *fx = arg;

	(void)why;
	ms_hub_notify(&fx->hub, event, key, generation);
}

static const struct ms_ledger_ops fx_ledger_ops = { fx_changed };

static void fx_session(struct fixture *fx)
{
	if (fx->s.hub)
		ms_session_fini(&fx->s);
	ms_session_init(&fx->s, &fx->hub, &fx_session_ops, fx, my_gid, fx->now);
	fx->sent_nr = 0;
	fx->opened = 0;
	fx->closed = 0;
	fx->notify_room = 1000;
	fx->send_error = 0;
	fx->open_error = 0;
}

static int setup(void **state)
{
	struct ms_table_config tc = { .incarnation = INCARNATION,
				      .salt = 5,
				      .log2_segment_pages = 4,
				      .segments_max = 16,
				      .depth_max = 8 };
	struct ms_ledger_config lc = { .tick_ms = 100, .records_max = 8, .salt = 9 };
	struct fixture *fx = calloc(1, sizeof(*fx));

	fx->now = 500000;
	fx->hub.incarnation = INCARNATION;
	fx->hub.limits = (struct ms_limits){ .lease_ms = 30000,
					     .lease_min_ms = 3000,
					     .lease_max_ms = 300000,
					     .tick_ms = 100,
					     .records_max = 8,
					     .clients_max = 1,
					     .rate_max = 1000,
					     .credits = 16,
					     .idle_timeout_ms = 60000 };
	fx->hub.auth = true;
	fx->hub.key.len = 32;
	memset(fx->hub.key.bytes, 0x5a, 32);
	assert_int_equal(ms_table_new(&tc, &ut_table_ops, NULL, &fx->hub.table), 0);
	assert_int_equal(
		ms_ledger_new(&lc, fx->hub.table, &fx_ledger_ops, fx, fx->now, &fx->hub.ledger), 0);
	fx_session(fx);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	ms_session_fini(&fx->s);
	assert_int_equal(fx->hub.stats.sessions, 0);
	assert_int_equal(fx->hub.stats.sessions_pending, 0);
	assert_int_equal(fx->hub.stats.subscribers, 0);
	assert_null(fx->hub.subscribers);
	ms_ledger_free(fx->hub.ledger);
	ms_table_free(fx->hub.table);
	free(fx);
	return 0;
}

static void give(struct fixture *fx, const void *msg)
{
	const struct krp_msg_hdr *hdr = msg;

	ms_session_receive(&fx->s, msg, krp_le16_to_cpu(hdr->bytes), fx->now);
}

static unsigned int last_status(const struct fixture *fx)
{
	assert_true(fx->sent_nr);
	return krp_le16_to_cpu(fx->sent[fx->sent_nr - 1].hdr.status);
}

static void assert_answer(const struct fixture *fx, unsigned int type, uint32_t xid,
			  unsigned int status)
{
	const struct krp_msg_hdr *hdr = &fx->sent[fx->sent_nr - 1].hdr;

	assert_true(fx->sent_nr);
	assert_int_equal(hdr->type, type);
	assert_int_equal(krp_le32_to_cpu(hdr->xid), xid);
	assert_int_equal(krp_le16_to_cpu(hdr->status), status);
	assert_int_equal(krp_le64_to_cpu(hdr->incarnation), INCARNATION);
	/* a refusal has an empty body */
	if (status)
		assert_true(krp_is_zero(hdr + 1, krp_msg_bytes(type) - sizeof(*hdr)));
}

static void make_hello(struct krp_hello *h)
{
	krp_msg_init(h, KRP_MSG_HELLO, 1, 0, 0);
	h->features = krp_cpu_to_le64(KRP_FEATURES_ALL | 1ULL << 40);
	h->generation = krp_cpu_to_le64(77);
	h->owner[0] = 9;
	memcpy(h->gid, my_gid, sizeof(h->gid));
	h->nonce[3] = 1;
	h->version_min = 1;
	h->version_max = 1;
	strcpy((char *)h->name, "node1");
}

static void make_auth(const struct fixture *fx, struct krp_auth *a)
{
	krp_msg_init(a, KRP_MSG_AUTH, 2, 0, 0);
	if (fx->hub.auth)
		kru_auth_mac(&fx->hub.key, KRP_LABEL_CLIENT, &fx->hello,
			     &fx->sent[fx->sent_nr - 1].challenge, a->mac);
}

static void say_hello(struct fixture *fx)
{
	make_hello(&fx->hello);
	give(fx, &fx->hello);
}

static void attach(struct fixture *fx)
{
	struct krp_auth a;

	say_hello(fx);
	make_auth(fx, &a);
	give(fx, &a);
	assert_int_equal(fx->s.state, MS_STATE_READY);
}

static void make_publish(struct krp_publish *m, unsigned int service, unsigned int payload)
{
	krp_msg_init(m, KRP_MSG_PUBLISH, 100 + service, 0, 0);
	memcpy(m->key.gid, my_gid, sizeof(my_gid));
	m->key.service = krp_cpu_to_le16((__u16)service);
	m->value.generation = krp_cpu_to_le64(77);
	m->value.kind = KRP_KIND_RAW;
	m->value.len = 4;
	memcpy(m->value.raw, &payload, 4);
}

static void test_handshake_with_key(void **state)
{
	struct fixture *fx = *state;
	struct krp_challenge challenge;
	struct krp_welcome *w;
	__u8 mac[KRP_MAC_BYTES];
	struct krp_auth a;

	say_hello(fx);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_OK);
	challenge = fx->sent[0].challenge;
	assert_int_equal(challenge.flags, KRP_CHALLENGE_AUTH);
	assert_int_equal(krp_le64_to_cpu(challenge.features), KRP_FEATURES_ALL);
	assert_false(krp_is_zero(challenge.nonce, sizeof(challenge.nonce)));
	assert_int_equal(fx->opened, 0);
	assert_int_equal(fx->hub.stats.sessions_pending, 1);

	make_auth(fx, &a);
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_OK);
	assert_int_equal(fx->opened, 1);
	w = &fx->sent[1].welcome;
	kru_auth_mac(&fx->hub.key, KRP_LABEL_SERVER, &fx->hello, &challenge, mac);
	assert_memory_equal(mac, w->mac, sizeof(mac));
	assert_int_equal(krp_le32_to_cpu(w->lease_ms), 30000);
	assert_int_equal(krp_le32_to_cpu(w->records_max), 8);
	assert_int_equal(krp_le16_to_cpu(w->credits), 16);
	assert_int_equal(krp_le64_to_cpu(w->root.addr), 0x1000);
	assert_int_equal(fx->hub.stats.sessions, 1);
	assert_int_equal(fx->hub.stats.sessions_pending, 0);
}

static void test_handshake_without_key(void **state)
{
	struct fixture *fx = *state;

	fx->hub.auth = false;
	attach(fx);
	assert_int_equal(fx->sent[0].challenge.flags, 0);
	assert_true(krp_is_zero(fx->sent[1].welcome.mac, KRP_MAC_BYTES));
	assert_int_equal(fx->opened, 1);
}

static void test_wrong_proofs(void **state)
{
	struct fixture *fx = *state;
	struct krp_auth a;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		fx_session(fx);
		fx->hub.auth = i != 3;
		say_hello(fx);
		make_auth(fx, &a);
		if (i == 0)
			a.mac[31] ^= 0x80;
		else if (i == 1)
			memset(a.mac, 0, sizeof(a.mac));
		else if (i == 2)
			fx->hub.auth = false; /* the key went in between */
		else
			a.mac[0] = 1; /* a proof where none was asked for */
		give(fx, &a);
		assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_AUTH);
		assert_int_equal(fx->opened, 0);
		assert_int_equal(fx->closed, 1);
		assert_int_equal(fx->s.state, MS_STATE_CLOSING);
		assert_int_equal(fx->hub.stats.auth_failures, i + 1);
		fx->hub.auth = true;
	}
}

static void test_proof_of_another_session(void **state)
{
	struct fixture *fx = *state;
	struct krp_auth a;

	say_hello(fx);
	make_auth(fx, &a);
	fx_session(fx);
	say_hello(fx); /* the same HELLO, another nonce of ours */
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_AUTH);
}

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
	fx->hello.hdr.version = 3;
	fx->hello.version_max = 3;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_OK);
	assert_int_equal(fx->sent[0].hdr.version, KRP_MSG_VERSION);

	/* one that does not */
	fx_session(fx);
	fx->hello.version_min = 2;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION);
	assert_int_equal(fx->closed, 1);

	/* our header, but a range that leaves us out */
	fx_session(fx);
	fx->hello.hdr.version = KRP_MSG_VERSION;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION);
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

/* Who attaches to a server that has just begun is told so, until that is over. */
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
		fx->hub.settled_ms = cases[i].settled_ms;
		fx->now = cases[i].now_ms;
		fx_session(fx);
		attach(fx);
		assert_int_equal(krp_le32_to_cpu(w->settling_ms), cases[i].told_ms);
		assert_int_equal(krp_msg_check(w, sizeof(*w), 0), KRP_ST_OK);
		assert_int_equal(ms_hub_settling_ms(&fx->hub, fx->now), cases[i].told_ms);
	}
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

static void test_foreign_gid(void **state)
{
	struct fixture *fx = *state;
	struct krp_publish m;

	attach(fx);
	make_publish(&m, 1, 1);
	m.key.gid[15]++;
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 101, KRP_ST_FOREIGN_GID);
	assert_int_equal(fx->closed, 0);
	assert_int_equal(ms_table_get(fx->hub.table, &m.key, NULL, NULL), -ENOENT);

	fx->hub.limits.publish_any_gid = true;
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 101, KRP_ST_OK);
}

static void test_limit_of_records(void **state)
{
	struct fixture *fx = *state;
	struct krp_publish m;
	unsigned int i;

	attach(fx);
	for (i = 0; i < 9; i++) {
		make_publish(&m, i, i);
		give(fx, &m);
		assert_int_equal(last_status(fx), i < 8 ? KRP_ST_OK : KRP_ST_LIMIT_RECORDS);
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

static void test_notifications(void **state)
{
	struct krp_value v = { .generation = krp_cpu_to_le64(3), .kind = KRP_KIND_RAW };
	struct fixture *fx = *state;
	struct ms_claim other = { .owner = { 4 }, .generation = 3, .lease_ms = 3000 };
	struct krp_subscribe m;
	struct krp_key key = { .gid = { 1 } };
	unsigned int i;

	attach(fx);
	krp_msg_init(&m, KRP_MSG_SUBSCRIBE, 20, 0, 0);
	m.flags = KRP_SUBSCRIBE_ALL;
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 20, KRP_ST_OK);
	give(fx, &m); /* again: still once on the list */
	assert_int_equal(fx->hub.stats.subscribers, 1);

	fx->sent_nr = 0;
	assert_int_equal(ms_ledger_publish(fx->hub.ledger, fx->now, &other, &key, &v), KRP_ST_OK);
	assert_answer(fx, KRP_MSG_NOTIFY, 0, KRP_ST_OK);
	assert_int_equal(fx->sent[0].notify.event, KRP_EVENT_CHANGED);
	assert_int_equal(krp_le64_to_cpu(fx->sent[0].notify.seq), 1);
	assert_memory_equal(&fx->sent[0].notify.key, &key, sizeof(key));

	/* a slow client: some are dropped, then RESYNC before anything else */
	fx->notify_room = 0;
	fx->sent_nr = 0;
	for (i = 0; i < 5; i++) {
		v.raw[0] = 0;
		v.len = (__u8)(i + 1);
		assert_int_equal(ms_ledger_publish(fx->hub.ledger, fx->now, &other, &key, &v), 0);
	}
	ms_session_room(&fx->s);
	assert_int_equal(fx->sent_nr, 0);
	assert_int_equal(fx->hub.stats.notifies_dropped, 5);
	fx->notify_room = 1;
	ms_session_room(&fx->s);
	assert_int_equal(fx->sent_nr, 1);
	assert_int_equal(fx->sent[0].notify.event, KRP_EVENT_RESYNC);
	assert_int_equal(krp_le64_to_cpu(fx->sent[0].notify.seq), 2);
	fx->notify_room = 1;
	assert_int_equal(ms_ledger_remove(fx->hub.ledger, &key), 0);
	assert_int_equal(fx->sent[1].notify.event, KRP_EVENT_GONE);
	assert_int_equal(krp_le64_to_cpu(fx->sent[1].notify.seq), 3);

	m.flags = 0;
	give(fx, &m);
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
		fx->now += 59999;
		ms_session_check(&fx->s, fx->now);
		give(fx, &m);
	}
	assert_int_equal(fx->closed, 0);
	ms_session_check(&fx->s, fx->now + 60000);
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_handshake_with_key),
		CASE(test_handshake_without_key),
		CASE(test_wrong_proofs),
		CASE(test_proof_of_another_session),
		CASE(test_nothing_is_answered_after_close),
		CASE(test_messages_out_of_turn),
		CASE(test_malformed),
		CASE(test_too_short_for_a_header),
		CASE(test_versions),
		CASE(test_leases_are_clamped),
		CASE(test_settling_is_told),
		CASE(test_requests),
		CASE(test_foreign_gid),
		CASE(test_limit_of_records),
		CASE(test_rate),
		CASE(test_client_that_takes_no_answers),
		CASE(test_reads_that_cannot_be_opened),
		CASE(test_notifications),
		CASE(test_features_not_agreed),
		CASE(test_time_outs),
		CASE(test_over_limit_and_draining),
		CASE(test_random_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
