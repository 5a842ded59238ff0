// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which client may attach, and to which one a record belongs: proofs, keys, GIDs, owners. */
#include "tests/unit/session_fixture.h"

static void test_handshake_with_key(void **state)
{
	struct fixture *fx = *state;
	struct krp_challenge challenge;
	struct kru_handshake shake = { &my_link, &fx->hello, &challenge };
	struct krp_welcome *w;
	__u8 mac[KRP_MAC_BYTES], id[KRP_KEY_ID_BYTES];
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
	kru_key_id(&fx->hub.keys.key[0], id);
	assert_memory_equal(challenge.key_id, id, sizeof(id));
	kru_auth_server(&fx->hub.keys.key[0], &shake, w, mac);
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

/*
 * A host without the key passes on what a client says that has connected to it: the
 * client's proof is for another connection, whichever end of it differs.
 */
static void test_a_relayed_proof_is_refused(void **state)
{
	struct fixture *fx = *state;
	struct krp_link link;
	struct krp_auth a;
	unsigned int i;

	for (i = 0; i <= 4; i++) {
		struct kru_handshake shake = { &link, &fx->hello, &fx->sent[0].challenge };

		fx_session(fx);
		say_hello(fx);
		link = my_link;
		if (i == 0)
			link.client_gid[15]++;
		else if (i == 1)
			link.server_gid[15]++;
		else if (i == 2)
			link.client_qpn ^= krp_cpu_to_le32(1);
		else if (i == 3)
			link.server_qpn ^= krp_cpu_to_le32(1);
		krp_msg_init(&a, KRP_MSG_AUTH, 2, 0, 0);
		kru_auth_client(&fx->hub.keys.key[0], &shake, a.mac);
		give(fx, &a);
		assert_answer(fx, KRP_MSG_WELCOME, 2, i == 4 ? KRP_ST_OK : KRP_ST_AUTH);
		assert_int_equal(fx->opened, i == 4);
	}
}

/* A client that sees itself at another GID than we do has an attacker in between. */
static void test_hello_from_elsewhere(void **state)
{
	struct fixture *fx = *state;

	make_hello(&fx->hello);
	fx->hello.gid[15]++;
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_FOREIGN_GID);
	assert_int_equal(fx->closed, 1);

	fx->hub.limits.publish_any_gid = true; /* is about records */
	fx_session(fx);
	give(fx, &fx->hello);
	assert_answer(fx, KRP_MSG_CHALLENGE, 1, KRP_ST_FOREIGN_GID);
}

/* No byte of WELCOME can be another than the server's. */
static void test_the_proof_covers_welcome(void **state)
{
	struct fixture *fx = *state;
	struct krp_challenge challenge;
	struct kru_handshake shake = { &my_link, &fx->hello, &challenge };
	__u8 mac[KRP_MAC_BYTES];
	struct krp_welcome w;
	struct krp_auth a;
	unsigned int i;

	say_hello(fx);
	challenge = fx->sent[0].challenge;
	make_auth(fx, &a);
	give(fx, &a);
	for (i = 0; i < sizeof(w); i++) {
		w = fx->sent[1].welcome;
		if (i < offsetof(struct krp_welcome, mac) ||
		    i >= offsetof(struct krp_welcome, mac) + sizeof(w.mac))
			((__u8 *)&w)[i] ^= 1;
		else
			w.mac[i - offsetof(struct krp_welcome, mac)] ^= 1;
		kru_auth_server(&fx->hub.keys.key[0], &shake, &w, mac);
		assert_false(kru_secret_equal(mac, w.mac, sizeof(mac)));
	}
}

/* Both ends may have several keys; the one that both have is found. */
static void test_keys_are_chosen(void **state)
{
	static const struct {
		int named; /* index of the key that HELLO names; -1: none, 9: a stranger's */
		unsigned int chosen;
	} cases[] = { { 0, 0 }, { 1, 1 }, { -1, 0 }, { 9, 0 } };
	struct fixture *fx = *state;
	struct kru_key stranger = { .len = 16 };
	__u8 id[KRP_KEY_ID_BYTES];
	struct krp_auth a;
	unsigned int i;

	fx->hub.keys.nr = 2;
	fx->hub.keys.key[1].len = 64;
	memset(fx->hub.keys.key[1].bytes, 0xa5, 64);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fx_session(fx);
		make_hello(&fx->hello);
		if (cases[i].named >= 0)
			kru_key_id(cases[i].named == 9 ? &stranger
						       : &fx->hub.keys.key[cases[i].named],
				   fx->hello.key_id);
		give(fx, &fx->hello);
		kru_key_id(&fx->hub.keys.key[cases[i].chosen], id);
		assert_memory_equal(fx->sent[0].challenge.key_id, id, sizeof(id));
		make_auth(fx, &a);
		give(fx, &a);
		assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_OK);
	}

	/* the key that was chosen goes before the proof comes */
	fx_session(fx);
	make_hello(&fx->hello);
	kru_key_id(&fx->hub.keys.key[1], fx->hello.key_id);
	give(fx, &fx->hello);
	make_auth(fx, &a);
	fx->hub.keys.nr = 1;
	give(fx, &a);
	assert_answer(fx, KRP_MSG_WELCOME, 2, KRP_ST_AUTH);
}

/* A client that attached without a key may not go on once there is one. */
static void test_the_first_key_ends_who_proved_none(void **state)
{
	struct fixture *fx = *state;
	struct kru_keys keys = fx->hub.keys, none = { .nr = 0 };

	assert_int_equal(ms_hub_set_keys(&fx->hub, &none), 0);
	assert_false(fx->hub.auth);
	attach(fx);
	assert_int_equal(fx->closed, 0);
	assert_int_equal(ms_hub_set_keys(&fx->hub, &keys), 1);
	assert_int_equal(fx->s.state, MS_STATE_CLOSING);
	assert_int_equal(fx->closed, 1);
	assert_int_equal(fx->hub.stats.sessions, 0);

	/* a client that has proved one stays, also when another key takes the place of that one */
	fx_session(fx);
	attach(fx);
	assert_true(fx->s.auth);
	keys.key[0].bytes[0] ^= 1;
	assert_int_equal(ms_hub_set_keys(&fx->hub, &keys), 0);
	assert_int_equal(fx->s.state, MS_STATE_READY);
	assert_int_equal(fx->closed, 0);
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

static void renew(struct fixture *fx)
{
	struct krp_renew m;

	krp_msg_init(&m, KRP_MSG_RENEW, 10, 0, 0);
	give(fx, &m);
	assert_answer(fx, KRP_MSG_ACK, 10, KRP_ST_OK);
}

static unsigned int withdraw(struct fixture *fx, const struct krp_key *key, const __u8 *token)
{
	struct krp_withdraw m;

	krp_msg_init(&m, KRP_MSG_WITHDRAW, 12, 0, 0);
	m.key = *key;
	if (token)
		memcpy(m.token, token, sizeof(m.token));
	give(fx, &m);
	return last_status(fx);
}

static uint64_t lease_left(struct fixture *fx, const struct krp_key *key)
{
	struct ms_ledger_record rec;

	assert_int_equal(ms_ledger_get(fx->hub.ledger, fx->now, key, &rec), 0);
	return rec.lease_left_ms;
}

/* A stranger's HELLO has a node's owner and generation: nothing of the node is the stranger's. */
static void test_an_owner_is_not_what_is_claimed(void **state)
{
	struct fixture *fx = *state;
	__u8 guess[KRP_TOKEN_BYTES];
	struct krp_publish m, own;
	unsigned int i;

	attach(fx);
	memcpy(guess, fx->sent[1].welcome.token, sizeof(guess));
	assert_false(krp_is_zero(guess, sizeof(guess)));
	guess[15] ^= 1;
	make_publish(&m, 300, 1);
	give(fx, &m);
	assert_int_equal(last_status(fx), KRP_ST_OK);

	fx->now += 10000;
	for (i = 0; i < 2; i++) {
		fx_session_at(fx, other_gid, true);
		make_hello(&fx->hello);
		memcpy(fx->hello.gid, other_gid, sizeof(fx->hello.gid));
		fx->hello.generation = krp_cpu_to_le64(i ? UINT64_MAX : 77);
		give(fx, &fx->hello);
		prove(fx);
		assert_int_equal(withdraw(fx, &m.key, NULL), KRP_ST_FOREIGN_GID);
		assert_int_equal(withdraw(fx, &m.key, guess), KRP_ST_FOREIGN_GID);
		/* nor the token of the stranger's address */
		assert_int_equal(withdraw(fx, &m.key, fx->sent[1].welcome.token),
				 KRP_ST_FOREIGN_GID);
		renew(fx);
		assert_int_equal(lease_left(fx, &m.key), 20000);
		/* a record of the stranger does not mix with the node's */
		make_publish(&own, 301, 1);
		memcpy(own.key.gid, other_gid, sizeof(own.key.gid));
		own.value.generation = fx->hello.generation;
		give(fx, &own);
		assert_int_equal(last_status(fx), KRP_ST_OK);
		assert_int_equal(krp_le32_to_cpu(fx->sent[fx->sent_nr - 1].ack.records), 1);
		assert_int_equal(lease_left(fx, &m.key), 20000);
	}

	/* its owner goes on as if nothing had been */
	fx_session(fx);
	attach(fx);
	renew(fx);
	assert_int_equal(lease_left(fx, &m.key), 30000);
	assert_int_equal(withdraw(fx, &m.key, NULL), KRP_ST_OK);
}

/* A node that has lost an address withdraws from another what it has published there. */
static void test_a_token_withdraws_from_elsewhere(void **state)
{
	struct fixture *fx = *state;
	__u8 token[KRP_TOKEN_BYTES];
	struct krp_publish m;

	attach(fx);
	memcpy(token, fx->sent[1].welcome.token, sizeof(token));
	make_publish(&m, 300, 1);
	give(fx, &m);

	fx_session_at(fx, other_gid, true);
	attach(fx);
	assert_int_equal(withdraw(fx, &m.key, token), KRP_ST_OK);
	assert_int_equal(withdraw(fx, &m.key, token), KRP_ST_NOT_FOUND);

	/* the same token with another owner is none */
	fx_session(fx);
	attach(fx);
	give(fx, &m);
	fx_session_at(fx, other_gid, true);
	make_hello(&fx->hello);
	memcpy(fx->hello.gid, other_gid, sizeof(fx->hello.gid));
	fx->hello.owner[0]++;
	give(fx, &fx->hello);
	prove(fx);
	assert_int_equal(withdraw(fx, &m.key, token), KRP_ST_FOREIGN_GID);
}

/* Without a global route header the GID is only what the client has said. */
static void test_a_gid_that_is_only_said(void **state)
{
	struct fixture *fx = *state;
	struct krp_lookup_msg lk;
	struct krp_publish m;

	attach(fx);
	make_publish(&m, 300, 1);
	give(fx, &m);
	assert_int_equal(last_status(fx), KRP_ST_OK);
	fx->now += 10000;

	fx_session_at(fx, my_gid, false);
	attach(fx);
	assert_true(krp_is_zero(fx->sent[1].welcome.token, KRP_TOKEN_BYTES));
	give(fx, &m);
	assert_int_equal(last_status(fx), KRP_ST_FOREIGN_GID);
	assert_int_equal(withdraw(fx, &m.key, NULL), KRP_ST_FOREIGN_GID);
	assert_int_equal(withdraw(fx, &m.key, fx->sent[1].welcome.token), KRP_ST_FOREIGN_GID);
	renew(fx);
	assert_int_equal(lease_left(fx, &m.key), 20000);
	krp_msg_init(&lk, KRP_MSG_LOOKUP, 9, 0, 0);
	lk.key = m.key;
	give(fx, &lk);
	assert_int_equal(last_status(fx), KRP_ST_OK);
	assert_int_equal(fx->closed, 0);
}

/* The node's own services are its module's, which says so. */
static void test_services_of_the_node(void **state)
{
	static const unsigned int services[] = { 0, 255, 256 };
	struct fixture *fx = *state;
	struct krp_publish m;
	struct krp_auth a;
	unsigned int i, node;

	for (node = 0; node < 2; node++) {
		fx_session(fx);
		make_hello(&fx->hello);
		if (!node)
			fx->hello.features = krp_cpu_to_le64(KRP_FEATURES_PROGRAM);
		give(fx, &fx->hello);
		make_auth(fx, &a);
		give(fx, &a);
		for (i = 0; i < 3; i++) {
			make_publish(&m, services[i], 1);
			give(fx, &m);
			assert_int_equal(last_status(fx),
					 node || i == 2 ? KRP_ST_OK : KRP_ST_RESERVED);
		}
		assert_int_equal(fx->closed, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_handshake_with_key),
		CASE(test_handshake_without_key),
		CASE(test_wrong_proofs),
		CASE(test_proof_of_another_session),
		CASE(test_a_relayed_proof_is_refused),
		CASE(test_hello_from_elsewhere),
		CASE(test_the_proof_covers_welcome),
		CASE(test_keys_are_chosen),
		CASE(test_the_first_key_ends_who_proved_none),
		CASE(test_foreign_gid),
		CASE(test_an_owner_is_not_what_is_claimed),
		CASE(test_a_token_withdraws_from_elsewhere),
		CASE(test_a_gid_that_is_only_said),
		CASE(test_services_of_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
