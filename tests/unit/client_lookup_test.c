// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which servers a look-up asks and when it believes that there is no record:
 * client/lib/lookup.c over real tables, with READs that are copies of memory.
 * What lookup.c calls of the transport is defined here instead.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "client/lib/lib.h"
#include "tests/unit/table_fixture.h"

#define SERVERS 2
#define TIMEOUT_MS 300
#define SECOND_NS 1000000000ULL

/**
 * struct place - A server as a look-up sees it.
 * @table: its table.
 * @conn: its connection.
 * @broken: READs fail.
 * @reads: READs that were posted.
 */
struct place {
	struct tf_server table;
	struct krl_conn conn;
	bool broken;
	unsigned int reads;
};

static struct place places[SERVERS];
static struct krl_server servers[SERVERS];
static struct krcore_ctx ctx;
static const struct krcore_key key = { .gid = { 0xfe, 0x80, 1 }, .service = 7 };

/* ---- the transport ---- */

int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to)
{
	struct place *p = &places[conn == &places[1].conn];

	assert_int_equal(nr, 1);
	p->reads++;
	if (p->broken)
		return -EIO;
	memcpy(to, (const void *)(uintptr_t)reads->addr, reads->bytes);
	return 0;
}

int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t patience_ns)
{
	(void)conn;
	(void)nr;
	(void)patience_ns;
	return 0;
}

uint64_t krl_server_patience_ns(const struct krl_server *srv)
{
	(void)srv;
	return SECOND_NS;
}

void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
{
	(void)err;
	(void)format;
	atomic_store(&srv->up, false);
}

int krl_map_refresh(struct krl_server *srv, uint32_t *reads)
{
	(void)srv;
	(void)reads;
	fail(); /* nothing here changes while it is read */
	return -EIO;
}

int krl_request_add(struct krl_server *srv, struct krl_req *req)
{
	(void)srv;
	(void)req;
	return -ENOTCONN;
}

int krl_request_wait(struct krcore_ctx *c, struct krl_req *reqs, unsigned int nr,
		     uint64_t deadline_ns)
{
	(void)c;
	(void)reqs;
	(void)nr;
	(void)deadline_ns;
	return -ETIMEDOUT;
}

/* ---- two servers ---- */

static void attach(unsigned int i)
{
	struct tf_server *t = &places[i].table;
	uint8_t bytes[KRL_BOUNCE_BYTES] __attribute__((aligned(8)));
	struct krp_load load;
	struct krp_read read;

	krl_load_start(&load, (uintptr_t)&t->root, 1, ms_table_config(t->table)->incarnation,
		       sizeof(bytes), NULL);
	while (krp_load_next(&load, &read)) {
		memcpy(bytes, (const void *)(uintptr_t)read.addr, read.bytes);
		assert_int_equal(krl_load_feed(&load, bytes), 0);
	}
	servers[i].map = krl_load_take(&load);
}

static void hold(unsigned int i)
{
	struct krp_value value = {
		.generation = krp_cpu_to_le64(1), .kind = KRP_KIND_RAW, .len = 1, .raw = { (__u8)i }
	};
	struct krp_key wire;

	kru_key_to_wire(&key, &wire);
	assert_int_equal(ms_table_put(places[i].table.table, &wire, &value, 0), 0);
}

static void settles_in(unsigned int i, int64_t ns)
{
	atomic_store(&servers[i].settle_until_ns, krl_now_ns() + (uint64_t)ns);
}

static int setup(void **state)
{
	struct ms_table_config config = {
		.salt = 99, .log2_segment_pages = 4, .segments_max = 16, .depth_max = 10
	};
	pthread_condattr_t attr;
	unsigned int i;

	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(servers, 0, sizeof(servers));
	memset(places, 0, sizeof(places));
	ctx.servers = servers;
	ctx.servers_nr = SERVERS;
	ctx.config.timeout_ms = TIMEOUT_MS;
	pthread_mutex_init(&ctx.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx.cond, &attr);
	for (i = 0; i < SERVERS; i++) {
		struct krl_server *srv = &servers[i];

		config.incarnation = 100 + i;
		assert_int_equal(tf_server_init(&places[i].table, &config), 0);
		places[i].conn.mem = calloc(1, sizeof(*places[i].conn.mem));
		pthread_mutex_init(&srv->io, NULL);
		srv->ctx = &ctx;
		srv->index = i;
		srv->ep.priority = i; /* asked in this order if all else is equal */
		srv->conn = &places[i].conn;
		srv->tried = true;
		strcpy(srv->ep.text, i ? "second" : "first");
		atomic_store(&srv->up, true);
		attach(i);
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < SERVERS; i++) {
		krl_map_free(servers[i].map);
		free(places[i].conn.mem);
		tf_server_exit(&places[i].table);
		pthread_mutex_destroy(&servers[i].io);
	}
	pthread_cond_destroy(&ctx.cond);
	pthread_mutex_destroy(&ctx.lock);
	return 0;
}

/* One look-up, and who was asked how often. */
static void expect(int err, unsigned int server, unsigned int settling, unsigned int first,
		   unsigned int second)
{
	struct krcore_lookup_info info;
	struct krcore_value value;

	memset(&info, 0xff, sizeof(info));
	assert_int_equal(krcore_lookup(&ctx, &key, &value, &info), err);
	assert_int_equal(info.server, server);
	assert_int_equal(info.settling, settling);
	assert_int_equal(places[0].reads, first);
	assert_int_equal(places[1].reads, second);
	if (!err)
		assert_int_equal(value.raw[0], server);
	assert_int_equal(servers[server].n.hits, !err);
	assert_int_equal(servers[!server].n.hits, 0);
	assert_int_equal(servers[0].n.misses + servers[1].n.misses, err == -ENOENT);
	assert_int_equal(servers[0].n.errors + servers[1].n.errors, 0);
}

/* ---- the cases ---- */

static void test_a_settled_server_is_believed(void **state)
{
	(void)state;
	hold(1);
	expect(-ENOENT, 0, 0, 1, 0);
}

static void test_a_server_that_has_settled_is_believed(void **state)
{
	(void)state;
	settles_in(0, -1);
	expect(-ENOENT, 0, 0, 1, 0);
	assert_int_equal(servers[0].settle_until_ns, 0);
}

static void test_a_settling_server_is_asked_last(void **state)
{
	(void)state;
	hold(0);
	hold(1);
	settles_in(0, SECOND_NS);
	expect(0, 1, 0, 0, 1);
}

static void test_a_settled_miss_is_the_last_word(void **state)
{
	(void)state;
	hold(0);
	settles_in(0, SECOND_NS);
	expect(-ENOENT, 1, 0, 0, 1);
}

static void test_a_hit_of_a_settling_server_counts(void **state)
{
	(void)state;
	hold(0);
	settles_in(0, SECOND_NS);
	settles_in(1, SECOND_NS);
	expect(0, 0, 0, 1, 0);
}

static void test_a_settling_miss_goes_on_to_the_next(void **state)
{
	(void)state;
	hold(1);
	settles_in(0, SECOND_NS);
	settles_in(1, SECOND_NS);
	expect(0, 1, 0, 1, 1);
}

static void test_all_settle_and_none_has_it(void **state)
{
	(void)state;
	settles_in(0, SECOND_NS);
	settles_in(1, SECOND_NS);
	expect(-ENOENT, 1, 1, 1, 1);
	assert_non_null(strstr(krcore_error_text(), "second was restarted"));
}

static void test_the_other_cannot_be_asked(void **state)
{
	(void)state;
	settles_in(0, SECOND_NS);
	settles_in(1, 2 * SECOND_NS);
	places[1].broken = true;
	expect(-ENOENT, 0, 1, 1, 1);
	assert_non_null(strstr(krcore_error_text(), "first was restarted"));
}

static void test_the_other_is_known_to_be_down(void **state)
{
	uint64_t begin_ns = krl_now_ns();

	(void)state;
	settles_in(0, SECOND_NS);
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 1, 1, 0);
	assert_true(krl_now_ns() - begin_ns < TIMEOUT_MS * 1000000ULL);
}

static void *bring_up(void *arg)
{
	struct timespec pause = { .tv_nsec = 50000000 };

	nanosleep(&pause, NULL);
	pthread_mutex_lock(&ctx.lock);
	servers[1].tried = true;
	atomic_store(&servers[1].up, true);
	pthread_cond_broadcast(&ctx.cond);
	pthread_mutex_unlock(&ctx.lock);
	return arg;
}

static void test_the_other_is_being_attached(void **state)
{
	pthread_t thread;

	(void)state;
	hold(1);
	settles_in(0, SECOND_NS);
	atomic_store(&servers[1].up, false);
	servers[1].tried = false;
	assert_int_equal(pthread_create(&thread, NULL, bring_up, NULL), 0);
	expect(0, 1, 0, 1, 1);
	pthread_join(thread, NULL);
}

static void test_the_other_is_never_attached(void **state)
{
	uint64_t begin_ns = krl_now_ns();

	(void)state;
	settles_in(0, SECOND_NS);
	atomic_store(&servers[1].up, false);
	servers[1].tried = false;
	expect(-ENOENT, 0, 1, 1, 0);
	assert_true(krl_now_ns() - begin_ns >= TIMEOUT_MS * 1000000ULL);
}

static void test_one_server_only(void **state)
{
	struct krcore_lookup_info info;

	(void)state;
	settles_in(0, SECOND_NS);
	assert_int_equal(krcore_lookup_at(&ctx, 0, &key, NULL, &info), -ENOENT);
	assert_int_equal(info.settling, 1);
	assert_int_equal(krcore_lookup_at(&ctx, 1, &key, NULL, &info), -ENOENT);
	assert_int_equal(info.settling, 0);
}

static void test_a_failed_read_is_no_miss(void **state)
{
	(void)state;
	hold(1);
	places[0].broken = true;
	expect(0, 1, 0, 1, 1);
	assert_int_equal(servers[0].n.failovers, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_settled_server_is_believed),
		CASE(test_a_server_that_has_settled_is_believed),
		CASE(test_a_settling_server_is_asked_last),
		CASE(test_a_settled_miss_is_the_last_word),
		CASE(test_a_hit_of_a_settling_server_counts),
		CASE(test_a_settling_miss_goes_on_to_the_next),
		CASE(test_all_settle_and_none_has_it),
		CASE(test_the_other_cannot_be_asked),
		CASE(test_the_other_is_known_to_be_down),
		CASE(test_the_other_is_being_attached),
		CASE(test_the_other_is_never_attached),
		CASE(test_one_server_only),
		CASE(test_a_failed_read_is_no_miss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
