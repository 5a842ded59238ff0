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
#include "tests/unit/wrap_now.h"

#define SERVERS 3 /* there is a third only where a test says so */
#define TIMEOUT_MS 1500 /* a quarter of it is for a busy machine */
#define SECOND_NS 1000000000ULL

/**
 * struct place - A server as a look-up sees it.
 * @table: its table.
 * @conn: its connection.
 * @broken: READs fail.
 * @torn: each READ of a bucket meets a writer.
 * @reads: READs that were posted.
 */
struct place {
	struct tf_server table;
	struct krl_conn conn;
	bool broken;
	bool torn;
	unsigned int reads;
};

static struct place places[SERVERS];
static struct krp_ask asked; /* by message; type 0: nothing was */
static int answer; /* to such a request */
static struct krl_endpoint endpoints[SERVERS];
static struct krl_server servers[SERVERS];
static const struct krl_ops ops = { .direct = true, .lookup = krl_direct_lookup };
static struct krcore_ctx ctx;
static uint64_t read_timeout_ns;
static bool settles_over; /* while a READ is under way */
static unsigned int attached_at; /* with this call of krl_now_ns(), from 1 */
static const struct krcore_key key = { .gid = { 0xfe, 0x80, 1 }, .service = 7 };

/* ---- time and transport ---- */

/* Another thread attaches the first server, which settles, while its time is judged. */
uint64_t __wrap_krl_now_ns(void)
{
	uint64_t now_ns = __real_krl_now_ns();

	if (attached_at && !--attached_at)
		atomic_store(&servers[0].settle_until_ns, now_ns + SECOND_NS);
	return now_ns;
}

int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to)
{
	struct place *p = places;

	while (&p->conn != conn)
		p++;
	assert_int_equal(nr, 1);
	p->reads++;
	if (settles_over)
		atomic_store(&servers[p - places].settle_until_ns, 1);
	if (p->broken)
		return -EIO;
	memcpy(to, (const void *)(uintptr_t)reads->addr, reads->bytes);
	if (p->torn && reads->bytes == KRP_BUCKET_BYTES)
		((uint8_t *)to)[KRP_BUCKET_BYTES / 2] ^= 1;
	return 0;
}

int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t timeout_ns)
{
	(void)conn;
	(void)nr;
	(void)timeout_ns;
	return 0;
}

uint64_t krl_server_read_timeout_ns(const struct krl_server *srv)
{
	(void)srv;
	return read_timeout_ns;
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

int krl_ask_begin(struct krl_server *srv, struct krp_ask *ask)
{
	assert_int_equal(ask->type, KRP_MSG_LOOKUP);
	if (srv->s.state != KRP_SESSION_READY || !(srv->s.features & KRP_FEATURE_LOOKUP))
		return -ENOTCONN;
	asked = *ask;
	return 0;
}

int krl_ask_end(struct krl_server *srv, struct krp_ask *ask, uint64_t deadline_ns)
{
	(void)srv;
	assert_int_equal(ask->type, asked.type);
	assert_true(deadline_ns > krl_now_ns() && deadline_ns <= krl_now_ns() + read_timeout_ns);
	ask->err = answer;
	ask->value.generation = krp_cpu_to_le64(1);
	ask->value.kind = KRP_KIND_RAW;
	ask->value.len = 1;
	ask->value.raw[0] = 77;
	return answer;
}

/* ---- the servers ---- */

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
	servers[i].root_addr = (uintptr_t)&t->root;
	krp_pulse_start(&servers[i].pulse, load.heartbeat, krl_now_ns() / 1000000);
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
	static const char *const names[SERVERS] = { "first", "second", "third" };
	pthread_condattr_t attr;
	unsigned int i;

	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	ctx.head.ops = &ops;
	memset(servers, 0, sizeof(servers));
	memset(places, 0, sizeof(places));
	ctx.servers = servers;
	ctx.servers_nr = 2;
	read_timeout_ns = SECOND_NS;
	settles_over = false;
	attached_at = 0;
	memset(&asked, 0, sizeof(asked));
	answer = 0;
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
		endpoints[i].priority = (uint16_t)i; /* asked in this order if all else is equal */
		srv->ep = &endpoints[i];
		srv->conn = &places[i].conn;
		srv->tried = true;
		strcpy(endpoints[i].text, names[i]);
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
	info.size = sizeof(info);
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

/* whose misses were overruled */
static void overruled(uint64_t first, uint64_t second)
{
	assert_int_equal(servers[0].n.misses_overruled, first);
	assert_int_equal(servers[1].n.misses_overruled, second);
}

static void test_a_settled_miss_is_overruled(void **state)
{
	(void)state;
	hold(1);
	expect(0, 1, 0, 1, 1);
	overruled(1, 0);
}

static void test_two_misses_are_believed(void **state)
{
	(void)state;
	expect(-ENOENT, 0, 0, 1, 1);
	overruled(0, 0);
}

static void test_two_misses_are_enough(void **state)
{
	(void)state;
	ctx.servers_nr = 3;
	hold(2);
	expect(-ENOENT, 0, 0, 1, 1);
	assert_int_equal(places[2].reads, 0);
}

static void test_a_broken_server_has_no_opinion(void **state)
{
	(void)state;
	ctx.servers_nr = 3;
	places[1].broken = true;
	expect(-ENOENT, 0, 0, 1, 1);
	assert_int_equal(places[2].reads, 1);
}

static void test_a_server_that_is_alone_is_believed(void **state)
{
	(void)state;
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 0, 1, 0);
}

static void test_a_hit_asks_nobody_else(void **state)
{
	(void)state;
	hold(0);
	hold(1);
	expect(0, 0, 0, 1, 0);
	overruled(0, 0);
}

/* The first server has shorter READs and the same priority, and failed so long ago. */
static void failed(uint64_t ago_ns)
{
	hold(0);
	hold(1);
	endpoints[1].priority = endpoints[0].priority;
	atomic_store(&servers[0].rtt_ns, 1000);
	atomic_store(&servers[1].rtt_ns, 2000);
	atomic_store(&servers[0].blame_ns, krl_now_ns() - ago_ns);
	atomic_store(&servers[0].blame, KRP_BLAME);
}

static void test_a_server_that_failed_of_late_is_asked_last(void **state)
{
	(void)state;
	failed(3 * KRP_BLAME_NS);
	expect(0, 1, 0, 0, 1);
}

static void test_a_failure_is_forgotten(void **state)
{
	(void)state;
	failed(5 * KRP_BLAME_NS); /* halved so often */
	expect(0, 0, 0, 1, 0);
}

static void test_a_server_that_has_settled_is_believed(void **state)
{
	(void)state;
	settles_in(0, -1);
	expect(-ENOENT, 0, 0, 1, 1);
	assert_int_equal(servers[0].settle_until_ns, 0);
}

/* It was settling when its table was READ. */
static void test_a_miss_is_as_old_as_its_read(void **state)
{
	(void)state;
	settles_in(0, 9 * SECOND_NS);
	atomic_store(&servers[1].up, false);
	settles_over = true;
	expect(-ENOENT, 0, 1, 1, 0);
}

static void test_an_attach_while_a_server_is_chosen(void **state)
{
	(void)state;
	hold(0);
	atomic_store(&servers[1].up, false);
	settles_in(0, -1);
	attached_at = 1;
	expect(0, 0, 0, 1, 0);
	assert_true(servers[0].settle_until_ns > krl_now_ns());
}

static void test_a_settling_server_is_asked_last(void **state)
{
	(void)state;
	hold(0);
	hold(1);
	settles_in(0, SECOND_NS);
	expect(0, 1, 0, 0, 1);
}

static void test_a_settling_server_overrules_too(void **state)
{
	(void)state;
	hold(0);
	settles_in(0, SECOND_NS);
	expect(0, 0, 0, 1, 1);
	overruled(0, 1);
}

static void test_one_settled_miss_of_two_is_enough(void **state)
{
	(void)state;
	settles_in(0, SECOND_NS);
	expect(-ENOENT, 1, 0, 1, 1);
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
	overruled(0, 0); /* it claimed nothing */
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

static void test_a_second_opinion_is_waited_for(void **state)
{
	pthread_t thread;

	(void)state;
	hold(1);
	atomic_store(&servers[1].up, false);
	servers[1].tried = false;
	assert_int_equal(pthread_create(&thread, NULL, bring_up, NULL), 0);
	expect(0, 1, 0, 1, 1);
	overruled(1, 0);
	pthread_join(thread, NULL);
}

static void test_but_not_for_long(void **state)
{
	uint64_t begin_ns = krl_now_ns(), ns;

	(void)state;
	read_timeout_ns = TIMEOUT_MS * 1000000ULL / 4;
	atomic_store(&servers[1].up, false);
	servers[1].tried = false;
	expect(-ENOENT, 0, 0, 1, 0);
	ns = krl_now_ns() - begin_ns;
	assert_true(ns >= read_timeout_ns && ns < TIMEOUT_MS * 1000000ULL);
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
	struct krcore_lookup_info info = { .size = sizeof(info) };

	(void)state;
	settles_in(0, SECOND_NS);
	assert_int_equal(krcore_lookup_at(&ctx, 0, &key, NULL, &info), -ENOENT);
	assert_int_equal(info.settling, 1);
	assert_int_equal(krcore_lookup_at(&ctx, 1, &key, NULL, &info), -ENOENT);
	assert_int_equal(info.settling, 0);
}

/* ---- a server whose process hangs ---- */

/* The server's clock says this now; its NIC answers READs whether it goes or not. */
static void beats(unsigned int i, uint64_t heartbeat, uint32_t settling_ms)
{
	struct krp_root *root = &places[i].table.root;

	root->heartbeat = krp_cpu_to_le64(heartbeat);
	root->settling_ms = krp_cpu_to_le32(settling_ms);
	root->sum = krp_cpu_to_le64(krp_root_sum(root));
}

/* The last look at the root was so long ago, when it said this. */
static void looked(unsigned int i, uint64_t ago_ms, uint64_t heartbeat)
{
	krp_pulse_start(&servers[i].pulse, heartbeat, krl_now_ns() / 1000000 - ago_ms);
}

static void test_a_living_server_is_believed(void **state)
{
	(void)state;
	looked(0, 5000, 70000);
	beats(0, 74700, 0); /* it may be late by half a second */
	expect(-ENOENT, 0, 0, 2, 1); /* a look at the root */
	places[0].reads = 0;
	servers[0].n.misses = 0;
	expect(-ENOENT, 0, 0, 1, 2); /* which is good for a while */
}

static void test_a_hung_server_is_not_believed(void **state)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;

	(void)state;
	ctx.servers_nr = 3;
	hold(2);
	looked(0, 5000, 70000);
	beats(0, 70100, 0);
	settles_in(1, 9 * SECOND_NS);
	settles_in(2, 9 * SECOND_NS);
	assert_int_equal(krcore_lookup(&ctx, &key, &value, &info), 0);
	assert_int_equal(info.server, 2);
	overruled(0, 0); /* nobody claimed to know */
	assert_true(servers[0].still);
}

static void test_a_hung_server_is_asked_last(void **state)
{
	(void)state;
	hold(0);
	hold(1);
	atomic_store(&servers[0].still, true);
	expect(0, 1, 0, 0, 1);
}

static void test_a_hung_server_alone(void **state)
{
	(void)state;
	atomic_store(&servers[1].up, false);
	looked(0, 60000, 70000);
	beats(0, 128900, 0); /* it has stood still for a second only */
	expect(-ENOENT, 0, 1, 2, 0);
	assert_non_null(strstr(krcore_error_text(), "first stands still"));
}

static void test_a_hung_server_that_goes_on(void **state)
{
	(void)state;
	atomic_store(&servers[0].still, true);
	looked(0, 3000, 70000);
	beats(0, 73000, 0);
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 0, 2, 0);
	assert_false(servers[0].still);
}

static void test_a_look_says_how_it_settles(void **state)
{
	(void)state;
	looked(0, 3000, 70000);
	beats(0, 73000, 5000); /* publishers have come since: it takes longer */
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 1, 2, 0);
}

/* A look within the last second said 1 ms more; since then a publisher has come. */
static void test_settling_may_have_been_extended(void **state)
{
	(void)state;
	looked(0, 10, 70000);
	krp_pulse_settling(&servers[0].pulse);
	beats(0, 70010, 5000);
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 1, 2, 0);
	assert_true(servers[0].settle_until_ns > krl_now_ns() + SECOND_NS);
}

/* A message that it had sent before it hung was received since. */
static void test_a_hung_server_whose_message_comes_late(void **state)
{
	(void)state;
	looked(0, 300, 70000);
	servers[0].pulse.still = 1;
	beats(0, 70000, 0);
	atomic_store(&servers[1].up, false);
	expect(-ENOENT, 0, 1, 2, 0);
	assert_true(servers[0].still);
}

/* Looks that follow each other closely see it hang, too. */
static void test_many_looks_at_a_hung_server(void **state)
{
	struct krp_pulse p;
	uint64_t ms;

	(void)state;
	krp_pulse_start(&p, 70000, 1000);
	krp_pulse_settling(&p);
	beats(0, 70000, 1);
	for (ms = 1000; ms < 1000 + KRP_PULSE_MS; ms += 100) {
		assert_int_equal(krp_pulse_due(&p, ms), 1);
		assert_int_equal(krp_pulse_feed(&p, &places[0].table.root,
						servers[0].map->map.incarnation, ms),
				 0);
		assert_int_equal(p.still, 0);
	}
	assert_int_equal(
		krp_pulse_feed(&p, &places[0].table.root, servers[0].map->map.incarnation, ms), 0);
	assert_int_equal(p.still, 1);
}

static void test_a_server_without_a_heartbeat(void **state)
{
	(void)state;
	looked(0, 60000, 0);
	expect(-ENOENT, 0, 0, 1, 1);
}

static void test_a_root_that_cannot_be_read(void **state)
{
	(void)state;
	looked(0, 3000, 70000);
	beats(0, 73000, 0);
	/* torn each time: somebody writes it */
	places[0].table.root.incarnation ^= krp_cpu_to_le64(1);
	expect(-ENOENT, 0, 0, 5, 1);
	servers[0].n.misses = 0;
	beats(0, 73000, 0); /* whole, but of another incarnation */
	places[0].reads = places[1].reads = 0;
	expect(-ENOENT, 1, 0, 2, 1);
	assert_false(servers[0].up);
}

static void test_a_failed_read_is_no_miss(void **state)
{
	(void)state;
	hold(1);
	places[0].broken = true;
	expect(0, 1, 0, 1, 1);
	assert_int_equal(servers[0].n.failovers, 1);
}

/* ---- a table that changes faster than it is read ---- */

/* A look-up at the first server, all of whose READs are torn. Return: as the look-up. */
static int look_up_torn(uint64_t features, int err, struct krcore_value *value)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	int ret;

	ctx.servers_nr = 1;
	hold(0);
	places[0].torn = true;
	servers[0].s.state = KRP_SESSION_READY;
	servers[0].s.features = features;
	answer = err;
	ret = krcore_lookup_at(&ctx, 0, &key, value, &info);
	assert_int_equal(places[0].reads, KRP_LOOKUP_READS_MAX);
	assert_int_equal(servers[0].n.reads, KRP_LOOKUP_READS_MAX);
	assert_int_equal(servers[0].n.fallbacks, 1);
	assert_true(servers[0].n.torn > KRP_LOOKUP_READS_MAX / 2);
	if (!ret || ret == -ENOENT) {
		assert_int_equal(info.reads, KRP_LOOKUP_READS_MAX);
		assert_int_equal(info.fallback, 1);
	}
	return ret;
}

static void test_who_reads_in_vain_asks_by_message(void **state)
{
	struct krcore_value value;

	(void)state;
	assert_int_equal(look_up_torn(KRP_FEATURE_LOOKUP, 0, &value), 0);
	assert_memory_equal(asked.key.gid, key.gid, sizeof(key.gid));
	assert_int_equal(krp_le16_to_cpu(asked.key.service), key.service);
	assert_int_equal(value.raw[0], 77);
	assert_int_equal(servers[0].n.hits, 1);
}

static void test_a_message_may_say_that_there_is_none(void **state)
{
	struct krcore_value value = { .raw = { 99 } };

	(void)state;
	assert_int_equal(look_up_torn(KRP_FEATURE_LOOKUP, -ENOENT, &value), -ENOENT);
	assert_int_equal(value.raw[0], 99);
	assert_int_equal(servers[0].n.misses, 1);
}

static void test_no_answer_to_the_message(void **state)
{
	(void)state;
	assert_int_equal(look_up_torn(KRP_FEATURE_LOOKUP, -ETIMEDOUT, NULL), -ENOTCONN);
	assert_int_equal(servers[0].n.errors, 1);
}

static void test_a_server_that_takes_no_such_messages(void **state)
{
	(void)state;
	assert_int_equal(look_up_torn(KRP_FEATURE_NOTIFY, 0, NULL), -ENOTCONN);
	assert_int_equal(asked.type, 0);
}

static void test_in_vain_at_one_server_the_next_is_read(void **state)
{
	(void)state;
	hold(0);
	hold(1);
	places[0].torn = true;
	expect(0, 1, 0, KRP_LOOKUP_READS_MAX, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_settled_miss_is_overruled),
		CASE(test_two_misses_are_believed),
		CASE(test_two_misses_are_enough),
		CASE(test_a_broken_server_has_no_opinion),
		CASE(test_a_server_that_is_alone_is_believed),
		CASE(test_a_hit_asks_nobody_else),
		CASE(test_a_server_that_failed_of_late_is_asked_last),
		CASE(test_a_failure_is_forgotten),
		CASE(test_a_server_that_has_settled_is_believed),
		CASE(test_a_miss_is_as_old_as_its_read),
		CASE(test_an_attach_while_a_server_is_chosen),
		CASE(test_a_settling_server_is_asked_last),
		CASE(test_a_settling_server_overrules_too),
		CASE(test_one_settled_miss_of_two_is_enough),
		CASE(test_a_hit_of_a_settling_server_counts),
		CASE(test_a_settling_miss_goes_on_to_the_next),
		CASE(test_all_settle_and_none_has_it),
		CASE(test_the_other_cannot_be_asked),
		CASE(test_the_other_is_known_to_be_down),
		CASE(test_the_other_is_being_attached),
		CASE(test_a_second_opinion_is_waited_for),
		CASE(test_but_not_for_long),
		CASE(test_the_other_is_never_attached),
		CASE(test_one_server_only),
		CASE(test_a_living_server_is_believed),
		CASE(test_a_hung_server_is_not_believed),
		CASE(test_a_hung_server_is_asked_last),
		CASE(test_a_hung_server_alone),
		CASE(test_a_hung_server_that_goes_on),
		CASE(test_a_look_says_how_it_settles),
		CASE(test_settling_may_have_been_extended),
		CASE(test_a_hung_server_whose_message_comes_late),
		CASE(test_many_looks_at_a_hung_server),
		CASE(test_a_server_without_a_heartbeat),
		CASE(test_a_root_that_cannot_be_read),
		CASE(test_a_failed_read_is_no_miss),
		CASE(test_who_reads_in_vain_asks_by_message),
		CASE(test_a_message_may_say_that_there_is_none),
		CASE(test_no_answer_to_the_message),
		CASE(test_a_server_that_takes_no_such_messages),
		CASE(test_in_vain_at_one_server_the_next_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
