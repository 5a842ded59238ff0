// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The library's sessions with the server's: attached, of another version, subscribed with
 * notifications that are lost, and used by many threads while the connection breaks.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/client_net.h"

static void key_of(struct krcore_key *key, uint16_t service)
{
	memset(key, 0, sizeof(*key));
	memcpy(key->gid, net_gid, sizeof(key->gid));
	key->service = service;
}

static int publish(uint16_t service, uint8_t byte)
{
	struct krcore_value value = { .kind = KRCORE_KIND_RAW, .raw_len = 1, .raw = { byte } };
	struct krcore_key key;

	key_of(&key, service);
	return krcore_publish(&net_ctx, &key, &value);
}

static void test_attached(void **state)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;
	struct krcore_key key;

	(void)state;
	net_wait(KRP_SESSION_READY, 0);
	assert_int_equal(publish(300, 5), 1);
	key_of(&key, 300);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, &info), 0);
	assert_int_equal(info.fallback, 0);
	assert_int_equal(value.raw[0], 5);
	memset(&value, 0, sizeof(value));
	assert_int_equal(krcore_lookup_by_message(&net_ctx, 0, &key, &value), 0);
	assert_int_equal(value.raw[0], 5);
	key.service = 301;
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, NULL), -ENOENT);
	assert_int_equal(krcore_lookup_by_message(&net_ctx, 0, &key, &value), -ENOENT);
}

/* Records whose keys have the hash of this one, put in by others. */
static void crowd(const struct krcore_key *key, unsigned int from, unsigned int to)
{
	struct krp_value value = { .generation = krp_cpu_to_le64(1), .kind = KRP_KIND_RAW };
	struct krp_key wire, twin;
	unsigned int i;

	kru_key_to_wire(key, &wire);
	pthread_mutex_lock(&net.lock);
	for (i = from; i < to; i++) {
		tf_twin(&twin, &wire, ms_table_config(net.tf.table)->salt, (__u16)(1000 + i));
		assert_int_equal(ms_table_put(net.tf.table, &twin, &value, 0), 0);
	}
	pthread_mutex_unlock(&net.lock);
}

/* A record that is kept aside is published, found, changed and withdrawn as any other. */
static void test_crowded_out(void **state)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;
	struct krcore_check check = { .size = sizeof(check) };
	struct krcore_key key;

	(void)state;
	net_wait(KRP_SESSION_READY, 0);
	key_of(&key, 300);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, &info), -ENOENT);
	crowd(&key, 0, KRP_BUCKET_RECORDS);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, &info), -ENOENT);
	assert_int_equal(net_ctx.servers->n.fallbacks, 0);
	assert_int_equal(publish(300, 5), 1);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, &info), 0);
	assert_int_equal(info.fallback, 1);
	assert_int_equal(info.reads, 1);
	assert_int_equal(info.stale, 0);
	assert_int_equal(value.raw[0], 5);
	assert_int_equal(publish(300, 6), 1);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, NULL), 0);
	assert_int_equal(value.raw[0], 6);
	assert_int_equal(krcore_walk(&net_ctx, 0, NULL, NULL, &check), 0);
	assert_int_equal(check.crowded, 1);
	assert_int_equal(check.bad + check.directory_errors, 0);
	assert_int_equal(check.records, KRP_BUCKET_RECORDS);
	crowd(&key, 3, 4); /* so that there is one aside when this one goes */
	assert_int_equal(krcore_withdraw(&net_ctx, &key), 0);
	assert_int_equal(krcore_lookup(&net_ctx, &key, &value, &info), -ENOENT);
	assert_int_equal(info.fallback, 1);
}

/* ---- other versions ---- */

static void fails_for_the_version(const char *text)
{
	net_wait(KRP_SESSION_DOWN, -EPROTONOSUPPORT);
	if (!strstr(net_ctx.servers->error_text, text))
		fail_msg("'%s' does not say '%s'", net_ctx.servers->error_text, text);
}

/* The server's own refusal of a client that only speaks another version. */
static void refuse_as_client_of(const struct krp_hello *hello, uint8_t version)
{
	struct krp_hello other = *hello;

	other.hdr.version = other.version_min = other.version_max = version;
	ms_session_receive(&net.session, &other, sizeof(other), net.now_ms);
	assert_int_equal(net.session.state, MS_STATE_CLOSING);
}

static void as_older_client(const struct krp_hello *hello)
{
	refuse_as_client_of(hello, KRP_MSG_VERSION - 1);
}

static void as_newer_client(const struct krp_hello *hello)
{
	refuse_as_client_of(hello, KRP_MSG_VERSION + 1);
}

/* What a server of version 1 makes of a HELLO that is longer than its own. */
static void as_server_of_version_1(const struct krp_hello *hello)
{
	struct krp_challenge answer;

	krp_msg_init(&answer, KRP_MSG_CHALLENGE, krp_le32_to_cpu(hello->hdr.xid), KRP_ST_VERSION,
		     100);
	answer.hdr.version = 1;
	net_frame(&answer, sizeof(answer));
}

/* Something that does not even answer as it should. */
static void as_strange_server(const struct krp_hello *hello)
{
	struct krp_challenge answer;

	krp_msg_init(&answer, KRP_MSG_CHALLENGE, krp_le32_to_cpu(hello->hdr.xid), KRP_ST_OK, 100);
	answer.hdr.version = KRP_MSG_VERSION + 7;
	net_frame(&answer, sizeof(answer));
}

static void other_version(void (*answer)(const struct krp_hello *), const char *text)
{
	net_wait(KRP_SESSION_READY, 0);
	pthread_mutex_lock(&net.lock);
	net.answer = answer;
	pthread_mutex_unlock(&net.lock);
	net_break();
	fails_for_the_version(text);
}

static void test_older_client(void **state)
{
	(void)state;
	other_version(as_older_client, "meta: server refuses HELLO: protocol version");
}

static void test_newer_client(void **state)
{
	(void)state;
	other_version(as_newer_client, "meta: server refuses HELLO: protocol version");
}

static void test_server_of_version_1(void **state)
{
	(void)state;
	other_version(as_server_of_version_1, "meta: server refuses HELLO: protocol version");
}

static void test_strange_server(void **state)
{
	(void)state;
	other_version(as_strange_server, "meta: server sent a message of another protocol version");
}

/* ---- subscriptions ---- */

#define TOLD_MAX 64

static struct {
	pthread_mutex_t lock;
	struct krcore_event events[TOLD_MAX];
	unsigned int nr;
} told;

static void tell(void *arg, const struct krcore_event *event)
{
	(void)arg;
	pthread_mutex_lock(&told.lock);
	if (told.nr < TOLD_MAX)
		told.events[told.nr++] = *event;
	pthread_mutex_unlock(&told.lock);
}

/* Exactly these have been told since the last time; 0 is RESYNC, else a service. */
static void expect_told(unsigned int nr, const uint16_t *services)
{
	uint64_t until_ns = krl_now_ns() + NET_TIMEOUT_MS * 1000000ULL;
	const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned int i, there;

	do {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&told.lock);
		there = told.nr;
		pthread_mutex_unlock(&told.lock);
	} while (there < nr && krl_now_ns() < until_ns);
	pthread_mutex_lock(&told.lock);
	assert_int_equal(told.nr, nr);
	for (i = 0; i < nr; i++) {
		assert_int_equal(told.events[i].type,
				 services[i] ? KRCORE_EVENT_CHANGED : KRCORE_EVENT_RESYNC);
		assert_int_equal(told.events[i].key.service, services[i]);
		assert_int_equal(told.events[i].generation, services[i] ? 3 : 0);
		assert_int_equal(told.events[i].server, 0);
	}
	told.nr = 0;
	pthread_mutex_unlock(&told.lock);
}

#define EXPECT_TOLD(...) \
	expect_told(sizeof((const uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t), \
		    (const uint16_t[]){ __VA_ARGS__ })

static void subscribed(void)
{
	net_wait(KRP_SESSION_READY, 0);
	told.nr = 0;
	assert_int_equal(krcore_subscribe(&net_ctx, tell, NULL), 0);
	EXPECT_TOLD(0);
}

static void test_changes_are_told(void **state)
{
	(void)state;
	subscribed();
	net_change(501);
	EXPECT_TOLD(501);
	net_change(502);
	EXPECT_TOLD(502);
	assert_int_equal(krcore_subscribe(&net_ctx, NULL, NULL), 0);
	net_change(503);
	net_wait(KRP_SESSION_READY, 0);
	assert_int_equal(told.nr, 0);
}

static void test_a_lost_notification_is_a_resync(void **state)
{
	(void)state;
	subscribed();
	net_change(501);
	EXPECT_TOLD(501);
	pthread_mutex_lock(&net.lock);
	net.lose_notifies = 1;
	pthread_mutex_unlock(&net.lock);
	net_change(502); /* nobody hears of it, until the next one has a number too many */
	net_change(503);
	EXPECT_TOLD(0, 503);
}

static void test_a_server_that_could_not_tell_says_resync(void **state)
{
	unsigned int i;

	(void)state;
	subscribed();
	pthread_mutex_lock(&net.lock);
	net.notify_room = 0;
	pthread_mutex_unlock(&net.lock);
	for (i = 0; i <= MS_CHANGES_MAX; i++) /* more than it keeps */
		net_change(501);
	pthread_mutex_lock(&net.lock);
	net.notify_room = 100;
	pthread_mutex_unlock(&net.lock);
	net_change(502);
	EXPECT_TOLD(0);
	net_change(503);
	EXPECT_TOLD(503);
	assert_int_equal(net.hub.stats.resyncs, 1);
}

static void test_attached_again_is_a_resync(void **state)
{
	(void)state;
	subscribed();
	net_break();
	EXPECT_TOLD(0);
	net_change(501);
	EXPECT_TOLD(501);
}

/* ---- threads ---- */

#define THREADS 6
#define TURNS 300
#define BREAKS 20

static _Atomic unsigned int wrong, hits;

/* Whatever is asked is answered rightly, or the connection broke meanwhile. */
static void one_turn(unsigned int me, unsigned int turn)
{
	struct krcore_server_info info[2] = { { .size = sizeof(*info) } };
	struct krcore_value value;
	struct krcore_stats stats = { .size = sizeof(stats) };
	struct krcore_key key;
	int err;

	key_of(&key, 400);
	switch ((me + turn) % 4) {
	case 0:
		err = krcore_lookup(&net_ctx, &key, &value, NULL);
		wrong += err && err != -EHOSTUNREACH;
		break;
	case 1:
		err = krcore_lookup_by_message(&net_ctx, 0, &key, &value);
		wrong += err && err != -ENOTCONN;
		break;
	case 2:
		err = publish((uint16_t)(401 + me), (uint8_t)turn);
		wrong += err != 1 && err != -EHOSTUNREACH;
		return;
	default:
		krcore_stats(&net_ctx, &stats);
		krcore_servers(&net_ctx, info, 2);
		if (turn % 16 == me)
			krcore_subscribe(&net_ctx, turn % 32 < 16 ? tell : NULL, NULL);
		return;
	}
	hits += !err;
	wrong += !err && (value.raw_len != 1 || value.raw[0] != 42);
}

static void *many_turns(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg, i;

	for (i = 0; i < TURNS; i++)
		one_turn(me, i);
	return NULL;
}

static void test_threads(void **state)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	pthread_t threads[THREADS];
	unsigned int i;

	(void)state;
	wrong = hits = 0;
	net_wait(KRP_SESSION_READY, 0);
	assert_int_equal(publish(400, 42), 1);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, many_turns, (void *)(uintptr_t)i), 0);
	for (i = 0; i < BREAKS; i++) {
		nanosleep(&pause, NULL);
		net_break();
		net_change(501);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(hits > TURNS);
	net_wait(KRP_SESSION_READY, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_attached),
		CASE(test_crowded_out),
		CASE(test_older_client),
		CASE(test_newer_client),
		CASE(test_server_of_version_1),
		CASE(test_strange_server),
		CASE(test_changes_are_told),
		CASE(test_a_lost_notification_is_a_resync),
		CASE(test_a_server_that_could_not_tell_says_resync),
		CASE(test_attached_again_is_a_resync),
		CASE(test_threads),
	};

	pthread_mutex_init(&told.lock, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
