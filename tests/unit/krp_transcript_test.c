// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The golden transcript of a session, proto/vectors/session.txt: the client of
 * proto/krp_session.h is told what the server says in it, and must say the rest, byte by byte.
 *
 * It attaches with a key, renews, subscribes and publishes with two credits, is told that its
 * record is gone, publishes it again, asks for another and withdraws its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth.h"
#include "kmod/tests/krc_session_vectors.h"
#include "proto/krp_session.h"
#include "tests/unit/vectors.h"

#define SERVICE 300
#define NOW_NS (1000 * KRP_NS_PER_MS)

/* What the caller of the machine does before a line. */
enum before {
	NOTHING,
	ASK,
	WITHDRAW,
};

static const struct {
	const char *name;
	enum before before;
} lines[] = {
	{ "01_client_HELLO", NOTHING },	    { "02_server_CHALLENGE", NOTHING },
	{ "03_client_AUTH", NOTHING },	    { "04_server_WELCOME", NOTHING },
	{ "05_client_RENEW", NOTHING },	    { "06_client_SUBSCRIBE", NOTHING },
	{ "07_server_ACK", NOTHING },	    { "08_client_PUBLISH", NOTHING },
	{ "09_server_ACK", NOTHING },	    { "10_server_ACK", NOTHING },
	{ "11_server_NOTIFY", NOTHING },    { "12_server_NOTIFY", NOTHING },
	{ "13_client_PUBLISH", NOTHING },   { "14_server_ACK", NOTHING },
	{ "15_client_LOOKUP", ASK },	    { "16_server_VALUE", NOTHING },
	{ "17_client_WITHDRAW", WITHDRAW }, { "18_server_ACK", NOTHING },
};

static struct krp_session s;
static struct krp_publisher pub;
static struct krp_record *chains[4], *rec;
static struct krp_session_conf conf;
static struct krp_ask ask;
static struct kru_key key;
static unsigned int resyncs, changes, gone;

static void load(const char *file, const char *name, void *to, int bytes)
{
	unsigned char buf[VECTOR_BYTES_MAX];

	assert_int_equal(vector_load(file, name, buf), bytes);
	memcpy(to, buf, (size_t)bytes);
}

static void connected(void)
{
	__u8 nonce[KRP_NONCE_BYTES], id[KRP_KEY_ID_BYTES];
	struct krp_link link;
	unsigned int i;

	load("auth.txt", "link", &link, sizeof(link));
	for (i = 0; i < sizeof(nonce); i++)
		nonce[i] = (__u8)(0x10 + i);
	kru_key_id(&key, id);
	krp_session_connected(&s, NOW_NS, &link, nonce, id);
}

static void proof(bool server)
{
	struct kru_handshake shake = { &s.attach.link, &s.attach.hello, &s.attach.challenge };
	__u8 mac[KRP_MAC_BYTES];

	if (server) {
		kru_auth_server(&key, &shake, &s.attach.welcome, mac);
		krp_session_verify(&s, NOW_NS, mac);
	} else {
		kru_auth_client(&key, &shake, mac);
		krp_session_prove(&s, NOW_NS, 0, mac);
	}
}

/* Until there is a message, or nothing to do. */
static void pull(struct krp_todo *todo)
{
	for (;;) {
		switch (krp_session_next(&s, NOW_NS, todo)) {
		case KRP_DO_CONNECT:
			connected();
			break;
		case KRP_DO_PROVE:
		case KRP_DO_VERIFY:
			proof(todo->what == KRP_DO_VERIFY);
			break;
		case KRP_DO_LOAD:
			krp_session_loaded(&s, NOW_NS, 0);
			break;
		case KRP_DO_CHANGE:
			resyncs += todo->event == KRP_EVENT_RESYNC;
			changes += todo->event == KRP_EVENT_CHANGED;
			gone += todo->event == KRP_EVENT_GONE;
			break;
		case KRP_DO_UP:
		case KRP_DO_DONE:
			break;
		case KRP_DO_SEND:
			krp_session_sent(&s, todo->slot);
			return;
		case KRP_DO_CLOSE:
			fail_msg("it closes: %s", s.failure.reason);
			break;
		case KRP_DO_WAIT:
			return;
		}
	}
}

static void before(enum before what)
{
	if (what == ASK) {
		ask.type = KRP_MSG_LOOKUP;
		ask.key = rec->key;
		ask.key.service = krp_cpu_to_le16(SERVICE + 1);
		assert_int_equal(krp_session_ask(&s, &ask), 0);
	} else if (what == WITHDRAW) {
		krp_record_withdraw(&pub, rec, NOW_NS);
	}
}

static void begin(void)
{
	struct krp_value value = {
		.generation = krp_cpu_to_le64(7), .kind = KRP_KIND_RAW, .len = 1, .raw = { 42 }
	};
	struct krp_link link;
	unsigned int i;

	load("auth.txt", "link", &link, sizeof(link));
	load("auth.txt", "key", key.bytes, 16);
	key.len = 16;
	conf = (struct krp_session_conf){ .name = "node1",
					  .generation = 7,
					  .features = KRP_FEATURES_ALL,
					  .lease_ms = 3000,
					  .timeout_ms = 1000,
					  .slots = 4 };
	for (i = 0; i < sizeof(conf.owner); i++)
		conf.owner[i] = (__u8)i;
	krp_publisher_init(&pub, chains, 4, 1);
	krp_session_init(&s, &pub, 0, &conf);
	krp_session_subscribe(&s, 1);
	rec = calloc(1, krp_record_bytes(1));
	assert_non_null(rec);
	memcpy(rec->key.gid, link.client_gid, sizeof(rec->key.gid));
	rec->key.service = krp_cpu_to_le16(SERVICE);
	krp_record_link(&pub, rec);
	krp_record_publish(&pub, rec, &value);
}

static void play(unsigned int i)
{
	__u64 msg[KRP_MSG_BYTES_MAX / 8];
	unsigned char bytes[VECTOR_BYTES_MAX];
	struct krp_todo todo;
	int nr;

	before(lines[i].before);
	nr = vector_load("session.txt", lines[i].name, bytes);
	assert_in_range(nr, sizeof(struct krp_msg_hdr), sizeof(msg));
	memcpy(msg, bytes, (size_t)nr);
	pull(&todo);
	if (strstr(lines[i].name, "_server_")) {
		assert_int_equal(todo.what, KRP_DO_WAIT);
		krp_session_received(&s, NOW_NS, msg, (__u32)nr);
		return;
	}
	assert_int_equal(todo.what, KRP_DO_SEND);
	assert_int_equal(todo.bytes, nr);
	assert_memory_equal(todo.msg, msg, (size_t)nr);
}

static void test_transcript(void **state)
{
	struct krp_todo todo;
	unsigned int i;

	(void)state;
	begin();
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		play(i);
	pull(&todo);
	assert_int_equal(todo.what, KRP_DO_WAIT);
	assert_int_equal(resyncs, 1);
	assert_int_equal(changes, 1);
	assert_int_equal(gone, 1);
	assert_int_equal(ask.err, 0);
	assert_int_equal(ask.value.raw[0], 43);
	assert_ptr_equal(krp_records_trash(&pub), rec);
	assert_int_equal(pub.nr, 0);
	free(rec);
}

/* Return: bytes of hex, which may have spaces. */
static int unhex(const char *hex, unsigned char *to)
{
	unsigned int byte;
	int nr = 0;

	for (; *hex; hex += *hex == ' ' ? 1 : 2) {
		if (*hex == ' ')
			continue;
		if (sscanf(hex, "%2x", &byte) != 1)
			fail_msg("no byte in hex: %s", hex);
		to[nr++] = (unsigned char)byte;
	}
	return nr;
}

/* KUnit plays the same lines: its copy of them is equal. */
static void test_lines_of_kunit(void **state)
{
	const size_t nr = sizeof(krc_session_lines) / sizeof(krc_session_lines[0]);
	unsigned char wanted[VECTOR_BYTES_MAX], bytes[VECTOR_BYTES_MAX];
	size_t i;

	(void)state;
	assert_int_equal(vector_load("auth.txt", "key", wanted), unhex(krc_session_key, bytes));
	assert_memory_equal(bytes, wanted, 16);
	assert_int_equal(vector_load("auth.txt", "link", wanted), unhex(krc_session_link, bytes));
	assert_memory_equal(bytes, wanted, sizeof(struct krp_link));
	assert_int_equal(nr, sizeof(lines) / sizeof(lines[0]));
	for (i = 0; i < nr; i++) {
		int len = vector_load("session.txt", lines[i].name, wanted);

		assert_string_equal(krc_session_lines[i][0], lines[i].name);
		assert_int_equal(unhex(krc_session_lines[i][1], bytes), len);
		assert_memory_equal(bytes, wanted, (size_t)len);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transcript),
		cmocka_unit_test(test_lines_of_kunit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
