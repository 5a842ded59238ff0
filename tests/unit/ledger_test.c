// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ledger over a real table: each rule of ownership by name, expiry and its
 * lag, bounded sweeps, and random operations beside a naive model that keeps
 * every record in a plain array.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/ledger.h"
#include "tests/unit/table_fixture.h"
#include "tests/unit/unread_table.h"

#define TICK_MS 100U
#define LEASE_MS 3000U
#define RECORDS_MAX 64U
#define FIRST KRP_SERVICE_USER_MIN /* service of a program */

struct ledger_fixture {
	struct ms_table *table;
	struct ms_ledger *l;
	uint64_t events;
	uint64_t gone;
	struct ut_memory memory;
	uint64_t now;
};

static void fx_changed(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why)
{
	struct ledger_fixture *fx = arg;

	assert_true(generation);
	assert_non_null(why);
	fx->events++;
	if (event == KRP_EVENT_GONE) {
		fx->gone++;
		assert_int_equal(ms_table_get(fx->table, key, NULL, NULL), -ENOENT);
	} else {
		assert_int_equal(event, KRP_EVENT_CHANGED);
		assert_int_equal(ms_table_get(fx->table, key, NULL, NULL), 0);
	}
}

static const struct ms_ledger_ops fx_ops = { fx_changed };

static void fx_open(struct ledger_fixture *fx, unsigned int segments_max, unsigned int depth_max)
{
	struct ms_table_config tc = { .incarnation = 77,
				      .salt = 5,
				      .log2_segment_pages = 4,
				      .segments_max = segments_max,
				      .depth_max = depth_max,
				      .asides_max = 16 };
	struct ms_ledger_config lc = { .tick_ms = TICK_MS, .records_max = RECORDS_MAX, .salt = 9 };

	memset(fx, 0, sizeof(*fx));
	fx->now = 1000000;
	assert_int_equal(ms_table_new(&tc, &ut_table_ops, &fx->memory, &fx->table), 0);
	assert_int_equal(ms_ledger_new(&lc, fx->table, &fx_ops, fx, fx->now, &fx->l), 0);
}

static void fx_close(struct ledger_fixture *fx)
{
	ms_ledger_free(fx->l);
	ms_table_free(fx->table);
}

static struct ms_claim claim(unsigned int owner, uint64_t generation)
{
	struct ms_claim who = { .generation = generation, .lease_ms = LEASE_MS };

	who.owner[0] = 1;
	who.owner[15] = (uint8_t)owner;
	return who;
}

static struct krp_key key_of(unsigned int node, unsigned int service)
{
	struct krp_key key = { .service = krp_cpu_to_le16((uint16_t)service) };

	key.gid[0] = 0xfe;
	key.gid[14] = (uint8_t)(node >> 8);
	key.gid[15] = (uint8_t)node;
	return key;
}

static struct krp_value value_of(uint64_t generation, unsigned int payload)
{
	struct krp_value v = { .generation = krp_cpu_to_le64(generation),
			       .kind = KRP_KIND_RAW,
			       .len = 4 };

	memcpy(v.raw, &payload, sizeof(payload));
	return v;
}

static unsigned int publish(struct ledger_fixture *fx, const struct ms_claim *who,
			    struct krp_key key, unsigned int payload)
{
	struct krp_value v = value_of(who->generation, payload);

	return ms_ledger_publish(fx->l, fx->now, who, &key, &v);
}

static unsigned int withdraw(struct ledger_fixture *fx, const struct ms_claim *who,
			     struct krp_key key)
{
	return ms_ledger_withdraw(fx->l, fx->now, who, &key);
}

static int payload_at(struct ledger_fixture *fx, struct krp_key key)
{
	struct krp_value v;
	int payload;

	if (ms_table_get(fx->table, &key, &v, NULL))
		return -1;
	memcpy(&payload, v.raw, sizeof(payload));
	return payload;
}

static void sweep(struct ledger_fixture *fx)
{
	while (ms_ledger_sweep(fx->l, fx->now, 1000))
		;
}

static struct krp_key twin_of(struct ledger_fixture *fx, struct krp_key of, unsigned int nr)
{
	struct krp_key key;

	tf_twin(&key, &of, ms_table_config(fx->table)->salt, (uint16_t)(1000 + nr));
	return key;
}

static uint64_t aside(struct ledger_fixture *fx)
{
	struct ms_table_stats stats;

	ms_table_stats(fx->table, &stats);
	return stats.aside;
}

/*
 * Six records of one owner have the hash of another's. All are found, owners and leases are
 * those of records that are in a bucket, and those come back when the six are gone.
 */
static void test_crowded_out(void **state)
{
	struct ms_claim crowd = claim(1, 3), victim = claim(2, 3);
	struct krp_key key = key_of(7, 300);
	struct ms_ledger_record rec;
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 4, 8);
	for (i = 0; i < 6; i++)
		assert_int_equal(publish(&fx, &crowd, twin_of(&fx, key, i), i), KRP_ST_OK);
	fx.now += LEASE_MS / 2;
	assert_int_equal(publish(&fx, &victim, key, 77), KRP_ST_OK);
	assert_int_equal(aside(&fx), 4);
	assert_int_equal(payload_at(&fx, key), 77);
	assert_int_equal(ms_ledger_get(fx.l, fx.now, &key, &rec), 0);
	assert_int_equal(rec.lease_left_ms, LEASE_MS);
	assert_int_equal(publish(&fx, &crowd, key, 1), KRP_ST_NOT_OWNER);
	assert_int_equal(withdraw(&fx, &crowd, key), KRP_ST_NOT_OWNER);
	assert_int_equal(withdraw(&fx, &crowd, twin_of(&fx, key, 1)), KRP_ST_OK);
	assert_int_equal(withdraw(&fx, &crowd, twin_of(&fx, key, 5)), KRP_ST_OK);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &crowd, NULL), 4);
	assert_int_equal(aside(&fx), 2);

	fx.now += LEASE_MS / 2 + TICK_MS; /* the crowd's lease is over */
	sweep(&fx);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &crowd, NULL), 0);
	assert_int_equal(aside(&fx), 0);
	assert_int_equal(payload_at(&fx, key), 77);
	assert_int_equal(withdraw(&fx, &victim, key), KRP_ST_OK);
	assert_int_equal(payload_at(&fx, key), -1);
	fx_close(&fx);
}

static void test_same_owner_is_idempotent(void **state)
{
	struct ms_claim a = claim(1, 10);
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 1), KRP_ST_OK);
	assert_int_equal(fx.events, 1);
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 1), KRP_ST_OK);
	assert_int_equal(fx.events, 1); /* nothing has changed, nobody is told */
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 2), KRP_ST_OK);
	assert_int_equal(fx.events, 2);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 2);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), 1);
	fx_close(&fx);
}

static void test_generations(void **state)
{
	struct ms_claim old = claim(1, 10), new = claim(1, 11);
	struct ms_ledger_stats st;
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &old, key_of(1, 0), 1), KRP_ST_OK);
	assert_int_equal(publish(&fx, &old, key_of(1, 1), 2), KRP_ST_OK);
	assert_int_equal(publish(&fx, &new, key_of(1, 0), 3), KRP_ST_OK);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 3);
	assert_int_equal(publish(&fx, &old, key_of(1, 0), 4), KRP_ST_STALE_GENERATION);
	assert_int_equal(withdraw(&fx, &old, key_of(1, 0)), KRP_ST_STALE_GENERATION);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 3);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &old, NULL), 1);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &new, NULL), 1);
	ms_ledger_stats(fx.l, &st);
	assert_int_equal(st.taken_over, 1);
	assert_int_equal(st.owners, 2);

	/* what the older one left goes with its lease, what the newer one has stays */
	fx.now += LEASE_MS - TICK_MS;
	ms_ledger_renew(fx.l, fx.now, &new);
	fx.now += TICK_MS;
	sweep(&fx);
	assert_int_equal(payload_at(&fx, key_of(1, 1)), -1);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 3);

	/* and an older one does not overwrite even when the newer one's lease has lapsed */
	fx.now += LEASE_MS;
	assert_int_equal(publish(&fx, &old, key_of(1, 0), 4), KRP_ST_STALE_GENERATION);
	fx_close(&fx);
}

static void test_newer_generation_withdraws(void **state)
{
	struct ms_claim old = claim(1, 10), new = claim(1, 11);
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &old, key_of(1, 0), 1), KRP_ST_OK);
	assert_int_equal(withdraw(&fx, &new, key_of(1, 0)), KRP_ST_OK);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), -1);
	assert_int_equal(withdraw(&fx, &new, key_of(1, 0)), KRP_ST_NOT_FOUND);
	fx_close(&fx);
}

/* The same identity at another GID is another owner: what it does is not done to this. */
static void test_the_same_identity_elsewhere(void **state)
{
	struct ms_claim a = claim(1, 10), b = claim(1, 11), any = claim(1, 12);
	struct krp_key key = key_of(1, 0), other = key_of(2, 0);
	struct ms_ledger_record rec;
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	a.gid[15] = 1;
	b.gid[15] = 2;
	assert_int_equal(publish(&fx, &a, key, 1), KRP_ST_OK);
	fx.now += LEASE_MS / 2;
	b.generation = 10;
	ms_ledger_renew(fx.l, fx.now, &b);
	assert_int_equal(ms_ledger_get(fx.l, fx.now, &key, &rec), 0);
	assert_int_equal(rec.lease_left_ms, LEASE_MS - LEASE_MS / 2);
	assert_int_equal(publish(&fx, &b, other, 2), KRP_ST_OK);
	assert_int_equal(ms_ledger_get(fx.l, fx.now, &key, &rec), 0);
	assert_int_equal(rec.lease_left_ms, LEASE_MS - LEASE_MS / 2);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), 1);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &b, NULL), 1);
	b.generation = UINT64_MAX;
	assert_int_equal(publish(&fx, &b, key, 2), KRP_ST_NOT_OWNER);
	assert_int_equal(withdraw(&fx, &b, key), KRP_ST_NOT_OWNER);
	assert_int_equal(payload_at(&fx, key), 1);

	/* where GIDs do not count, the identity does */
	assert_int_equal(publish(&fx, &any, key, 3), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key, 4), KRP_ST_STALE_GENERATION);
	fx_close(&fx);
}

static void test_other_owner(void **state)
{
	struct ms_claim a = claim(1, 10), b = claim(2, 99);
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 1), KRP_ST_OK);
	assert_int_equal(publish(&fx, &b, key_of(1, 0), 2), KRP_ST_NOT_OWNER);
	assert_int_equal(withdraw(&fx, &b, key_of(1, 0)), KRP_ST_NOT_OWNER);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 1);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &b, NULL), 0);

	/* one ms before the lease runs out, and then */
	fx.now += LEASE_MS - 1;
	assert_int_equal(publish(&fx, &b, key_of(1, 0), 2), KRP_ST_NOT_OWNER);
	fx.now++;
	assert_int_equal(withdraw(&fx, &b, key_of(1, 0)), KRP_ST_NOT_OWNER);
	assert_int_equal(publish(&fx, &b, key_of(1, 0), 2), KRP_ST_OK);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 2);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), 0);
	sweep(&fx);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), 2);
	fx_close(&fx);
}

/* What programs publish does not keep a port from coming back, nor ports one another for ever. */
static void test_a_ports_record_has_room_beside_services(void **state)
{
	struct ms_claim a = claim(1, 10);
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 8, 8);
	for (i = 0; i < RECORDS_MAX; i++)
		assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_LIMIT_RECORDS);
	for (i = 1; i <= 64; i++)
		assert_int_equal(publish(&fx, &a, key_of(i, KRP_SERVICE_NODE), i), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(i, KRP_SERVICE_NODE), i), KRP_ST_LIMIT_RECORDS);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), RECORDS_MAX + 64);
	fx_close(&fx);
}

/* The same the other way round: a port is there before its programs, and after them. */
static void test_services_have_room_beside_records_of_ports(void **state)
{
	struct ms_claim a = claim(1, 10);
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 8, 8);
	for (i = 1; i <= 2; i++)
		assert_int_equal(publish(&fx, &a, key_of(i, KRP_SERVICE_NODE), i), KRP_ST_OK);
	for (i = 0; i < RECORDS_MAX; i++)
		assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_LIMIT_RECORDS);
	assert_int_equal(withdraw(&fx, &a, key_of(2, KRP_SERVICE_NODE)), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_LIMIT_RECORDS);
	assert_int_equal(withdraw(&fx, &a, key_of(1, FIRST)), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(2, KRP_SERVICE_NODE), 2), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST), 0), KRP_ST_LIMIT_RECORDS);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), RECORDS_MAX + 2);
	fx_close(&fx);
}

static void test_limits_leave_state_alone(void **state)
{
	struct ms_claim a = claim(1, 10), b = claim(2, 10);
	struct ms_ledger_stats before, after;
	struct ledger_fixture fx;
	unsigned int i, n;

	(void)state;
	fx_open(&fx, 1, 8);
	for (i = 0; i < RECORDS_MAX; i++)
		assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_LIMIT_RECORDS);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + 5), 500), KRP_ST_OK); /* not new */
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), RECORDS_MAX);
	assert_int_equal(withdraw(&fx, &a, key_of(1, FIRST + 9)), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(1, FIRST + i), i), KRP_ST_OK);

	/* fill the one segment with owners of one record each, then one more */
	for (n = 0; n < 1000; n++) {
		b.owner[1] = (uint8_t)n;
		b.owner[2] = (uint8_t)(n >> 8);
		ms_ledger_stats(fx.l, &before);
		i = publish(&fx, &b, key_of(2, n), n);
		if (i)
			break;
	}
	assert_in_range(n, 50, 999);
	assert_int_equal(i, KRP_ST_TABLE_FULL);
	ms_ledger_stats(fx.l, &after);
	assert_int_equal(after.owners, before.owners);
	assert_int_equal(after.published_new, before.published_new);
	assert_int_equal(payload_at(&fx, key_of(2, n)), -1);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &b, NULL), 0);
	fx_close(&fx);
}

static void test_device_failure_leaves_state_alone(void **state)
{
	struct ms_claim a = claim(1, 10);
	struct ledger_fixture fx;
	unsigned int i, status = 0;

	(void)state;
	fx_open(&fx, 64, 10);
	ms_ledger_set_records_max(fx.l, 100000);
	fx.memory.refuse_segments = true;
	for (i = 0; i < 5000 && !status; i++)
		status = publish(&fx, &a, key_of(i, i), i);
	assert_int_equal(status, KRP_ST_NO_MEMORY);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), i - 1);
	fx.memory.refuse_segments = false;
	assert_int_equal(publish(&fx, &a, key_of(i - 1, i - 1), i), KRP_ST_OK);
	fx_close(&fx);
}

static void test_expiry_order_and_lag(void **state)
{
	enum {
		OWNERS = 300
	};
	uint64_t deadline[OWNERS];
	struct ms_claim who;
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 16, 8);
	for (i = 0; i < OWNERS; i++) {
		who = claim(i & 0xff, 10 + i);
		/* up to three turns of the wheel, at odd times */
		who.lease_ms = 1000 + (i * 7919 * 131) % (3 * 4096 * TICK_MS);
		deadline[i] = fx.now + who.lease_ms;
		assert_int_equal(publish(&fx, &who, key_of(i, 0), i), KRP_ST_OK);
	}
	while (fx.gone < OWNERS) {
		fx.now += 37;
		sweep(&fx);
		for (i = 0; i < OWNERS; i++) {
			bool there = payload_at(&fx, key_of(i, 0)) >= 0;

			if (fx.now < deadline[i])
				assert_true(there);
			if (fx.now >= deadline[i] + TICK_MS)
				assert_false(there);
		}
		if (fx.now > 1000000 + 4ULL * 4096 * TICK_MS)
			fail_msg("%u records never expired", OWNERS - (unsigned int)fx.gone);
	}
	fx_close(&fx);
}

static void test_renewal_moves_the_deadline(void **state)
{
	struct ms_claim a = claim(1, 10), shorter = a;
	struct ledger_fixture fx;
	int i;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 1), KRP_ST_OK);
	for (i = 0; i < 50; i++) {
		fx.now += LEASE_MS - 1;
		sweep(&fx);
		assert_int_equal(payload_at(&fx, key_of(1, 0)), 1);
		ms_ledger_renew(fx.l, fx.now, &a);
	}
	/* a shorter lease is honoured too, though the wheel had a later slot */
	shorter.lease_ms = TICK_MS;
	ms_ledger_renew(fx.l, fx.now, &shorter);
	fx.now += 2 * TICK_MS;
	sweep(&fx);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), -1);
	fx_close(&fx);
}

static void test_long_pause(void **state)
{
	struct ms_claim a = claim(1, 10);
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	assert_int_equal(publish(&fx, &a, key_of(1, 0), 1), KRP_ST_OK);
	fx.now += 100ULL * 4096 * TICK_MS + 3;
	sweep(&fx);
	assert_int_equal(payload_at(&fx, key_of(1, 0)), -1);
	fx_close(&fx);
}

static void test_sweep_is_bounded(void **state)
{
	struct ms_claim a = claim(1, 10), b = claim(2, 10);
	struct ledger_fixture fx;
	uint64_t gone;
	unsigned int i, turns = 0;
	bool more;

	(void)state;
	fx_open(&fx, 64, 12);
	ms_ledger_set_records_max(fx.l, 10000);
	for (i = 0; i < 2000; i++)
		assert_int_equal(publish(&fx, &a, key_of(i, 1), i), KRP_ST_OK);
	fx.now += LEASE_MS + TICK_MS;
	more = ms_ledger_sweep(fx.l, fx.now, 7);
	assert_true(more);

	/* while it goes on: others take over, and the owner itself begins anew */
	assert_int_equal(publish(&fx, &b, key_of(3, 1), 3333), KRP_ST_OK);
	assert_int_equal(publish(&fx, &a, key_of(4, 1), 4444), KRP_ST_OK);
	assert_int_equal(ms_ledger_count(fx.l, fx.now, &a, NULL), 1);
	for (; more; turns++) {
		gone = fx.gone;
		more = ms_ledger_sweep(fx.l, fx.now, 7);
		assert_in_range(fx.gone - gone, 0, 7);
		assert_true(turns < 1000);
	}
	assert_int_equal(fx.gone, 1998);
	assert_int_equal(payload_at(&fx, key_of(3, 1)), 3333);
	assert_int_equal(payload_at(&fx, key_of(4, 1)), 4444);
	fx_close(&fx);
}

static void test_import(void **state)
{
	struct ms_claim a = claim(1, 10), b = claim(2, 20);
	struct krp_value v = value_of(15, 1), bad = v;
	struct krp_key key = key_of(1, 0), other = key_of(1, 1);
	struct ms_ledger_record rec;
	struct ledger_fixture fx;

	(void)state;
	fx_open(&fx, 8, 8);
	bad.kind = 77;
	assert_int_equal(ms_ledger_import(fx.l, fx.now, &key, &bad, LEASE_MS), -EINVAL);
	assert_int_equal(fx.events, 0);
	assert_int_equal(ms_ledger_import(fx.l, fx.now, &key, &v, LEASE_MS), 1);
	assert_int_equal(ms_ledger_import(fx.l, fx.now, &other, &v, LEASE_MS), 1);
	assert_int_equal(ms_ledger_import(fx.l, fx.now, &other, &v, LEASE_MS), 0);
	assert_int_equal(ms_ledger_get(fx.l, fx.now, &key, &rec), 0);
	assert_true(rec.imported);
	assert_int_equal(rec.generation, 15);
	assert_int_equal(rec.lease_left_ms, LEASE_MS);

	assert_int_equal(publish(&fx, &a, key, 2), KRP_ST_STALE_GENERATION);
	assert_int_equal(publish(&fx, &b, key, 2), KRP_ST_OK);
	assert_int_equal(ms_ledger_get(fx.l, fx.now, &key, &rec), 0);
	assert_false(rec.imported);
	assert_int_equal(ms_ledger_import(fx.l, fx.now, &key, &v, LEASE_MS), 0);
	assert_int_equal(payload_at(&fx, key), 2);

	assert_int_equal(withdraw(&fx, &a, other), KRP_ST_STALE_GENERATION);
	fx.now += LEASE_MS - 1;
	ms_ledger_renew(fx.l, fx.now, &b);
	fx.now += TICK_MS;
	sweep(&fx);
	assert_int_equal(payload_at(&fx, other), -1);
	assert_int_equal(payload_at(&fx, key), 2);
	fx_close(&fx);
}

/* Until somebody can come and take them over, copied records stay; all or none are used. */
static void test_import_is_kept_or_dropped(void **state)
{
	struct ms_claim b = claim(2, 20);
	struct krp_value v = value_of(15, 1);
	struct ms_ledger_stats stats;
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 8, 8);
	ms_ledger_import_keep(fx.l, fx.now, LEASE_MS); /* nothing to keep */
	assert_int_equal(ms_ledger_import_drop(fx.l), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(ms_ledger_import(fx.l, fx.now,
						  &(struct krp_key){ .gid = { 1, (__u8)i } }, &v,
						  LEASE_MS),
				 1);
	for (i = 0; i < 10; i++) {
		fx.now += LEASE_MS - TICK_MS;
		ms_ledger_import_keep(fx.l, fx.now, LEASE_MS);
		sweep(&fx);
	}
	assert_int_equal(fx.gone, 0);
	assert_int_equal(publish(&fx, &b, (struct krp_key){ .gid = { 1, 7 } }, 2), KRP_ST_OK);
	assert_int_equal(ms_ledger_import_drop(fx.l), 99);
	assert_int_equal(fx.gone, 99);
	assert_int_equal(payload_at(&fx, (struct krp_key){ .gid = { 1, 7 } }), 2);
	ms_ledger_stats(fx.l, &stats);
	assert_int_equal(stats.owners, 1);
	assert_int_equal(stats.expired, 0);
	fx_close(&fx);
}

static bool count_record(void *arg, const struct ms_ledger_record *rec)
{
	unsigned int *left = arg;

	assert_int_equal(rec->generation, 10);
	return --*left;
}

static void test_each_goes_on_where_it_stopped(void **state)
{
	struct ms_claim who;
	unsigned int i, left, seen = 0;
	struct ledger_fixture fx;
	uint64_t from = 0;

	(void)state;
	fx_open(&fx, 16, 8);
	for (i = 0; i < 100; i++) {
		who = claim(i % 7, 10);
		assert_int_equal(publish(&fx, &who, key_of(i, 0), i), KRP_ST_OK);
	}
	do {
		left = 9;
		from = ms_ledger_each(fx.l, fx.now, from, count_record, &left);
		seen += 9 - left;
	} while (from);
	assert_int_equal(seen, 100);
	fx_close(&fx);
}

/* The naive model: each record in a plain array, each lease too. */
enum {
	MODEL_KEYS = 200,
	MODEL_OWNERS = 6,
	MODEL_GENERATIONS = 3
};

struct ledger_model {
	struct {
		int owner; /* -1: none, MODEL_OWNERS: imported */
		int generation;
		unsigned int payload;
	} rec[MODEL_KEYS];
	uint64_t deadline[MODEL_OWNERS + 1][MODEL_GENERATIONS];
	unsigned int records_max;
};

static uint64_t *model_deadline(struct ledger_model *m, int owner, int generation)
{
	return &m->deadline[owner][owner == MODEL_OWNERS ? 0 : generation];
}

static unsigned int model_count(const struct ledger_model *m, int owner, int generation)
{
	unsigned int i, n = 0;

	for (i = 0; i < MODEL_KEYS; i++)
		n += m->rec[i].owner == owner && m->rec[i].generation == generation;
	return n;
}

static unsigned int model_judge(struct ledger_model *m, uint64_t now, int i, int owner,
				int generation)
{
	if (m->rec[i].owner == MODEL_OWNERS || m->rec[i].owner == owner)
		return generation >= m->rec[i].generation ? KRP_ST_OK : KRP_ST_STALE_GENERATION;
	if (now >= *model_deadline(m, m->rec[i].owner, m->rec[i].generation))
		return KRP_ST_OK;
	return KRP_ST_NOT_OWNER;
}

static unsigned int model_publish(struct ledger_model *m, uint64_t now, int i, int owner,
				  int generation, unsigned int payload)
{
	unsigned int status = KRP_ST_OK;

	if (m->rec[i].owner >= 0)
		status = model_judge(m, now, i, owner, generation);
	if (status)
		return status;
	if ((m->rec[i].owner != owner || m->rec[i].generation != generation) &&
	    model_count(m, owner, generation) >= m->records_max)
		return KRP_ST_LIMIT_RECORDS;
	m->rec[i].owner = owner;
	m->rec[i].generation = generation;
	m->rec[i].payload = payload;
	*model_deadline(m, owner, generation) = now + LEASE_MS;
	return KRP_ST_OK;
}

static unsigned int model_withdraw(struct ledger_model *m, uint64_t now, int i, int owner,
				   int generation)
{
	unsigned int status;

	if (m->rec[i].owner < 0)
		return KRP_ST_NOT_FOUND;
	status = model_judge(m, now, i, owner, generation);
	if (!status && m->rec[i].owner != MODEL_OWNERS && m->rec[i].owner != owner)
		status = KRP_ST_NOT_OWNER;
	if (!status)
		m->rec[i].owner = -1;
	return status;
}

static void model_sweep(struct ledger_model *m, uint64_t now)
{
	int i;

	for (i = 0; i < MODEL_KEYS; i++)
		if (m->rec[i].owner >= 0 &&
		    now >= *model_deadline(m, m->rec[i].owner, m->rec[i].generation))
			m->rec[i].owner = -1;
}

static void model_compare(struct ledger_model *m, struct ledger_fixture *fx)
{
	struct ms_ledger_record rec;
	uint64_t deadline;
	struct krp_key key;
	int i;

	for (i = 0; i < MODEL_KEYS; i++) {
		key = key_of((unsigned int)i, 3);
		if (m->rec[i].owner < 0) {
			assert_int_equal(ms_ledger_get(fx->l, fx->now, &key, &rec), -ENOENT);
			continue;
		}
		assert_int_equal(ms_ledger_get(fx->l, fx->now, &key, &rec), 0);
		assert_int_equal(payload_at(fx, key), m->rec[i].payload);
		assert_int_equal(rec.generation, 10 + m->rec[i].generation);
		assert_int_equal(rec.imported, m->rec[i].owner == MODEL_OWNERS);
		deadline = *model_deadline(m, m->rec[i].owner, m->rec[i].generation);
		assert_int_equal(rec.lease_left_ms, deadline > fx->now ? deadline - fx->now : 0);
	}
}

/* One random operation on both; times are whole ticks, so expiry is exact. */
static void model_step(struct ledger_model *m, struct ledger_fixture *fx, unsigned int turn)
{
	int i = (int)((unsigned int)rand() % MODEL_KEYS);
	int owner = (int)((unsigned int)rand() % MODEL_OWNERS);
	int generation = (int)((unsigned int)rand() % MODEL_GENERATIONS);
	struct ms_claim who = claim((unsigned int)owner, 10 + (unsigned int)generation);
	struct krp_key key = key_of((unsigned int)i, 3);
	struct krp_value v = value_of(10 + (unsigned int)generation, turn);
	unsigned int what = (unsigned int)rand() % 100;
	int took;

	if (what < 55) {
		assert_int_equal(publish(fx, &who, key, turn),
				 model_publish(m, fx->now, i, owner, generation, turn));
	} else if (what < 70) {
		assert_int_equal(withdraw(fx, &who, key),
				 model_withdraw(m, fx->now, i, owner, generation));
	} else if (what < 80) {
		ms_ledger_renew(fx->l, fx->now, &who);
		if (model_count(m, owner, generation))
			*model_deadline(m, owner, generation) = fx->now + LEASE_MS;
		assert_int_equal(ms_ledger_count(fx->l, fx->now, &who, NULL),
				 model_count(m, owner, generation));
	} else if (what < 84) {
		took = m->rec[i].owner < 0 ||
		       (m->rec[i].owner == MODEL_OWNERS && generation > m->rec[i].generation);
		assert_int_equal(ms_ledger_import(fx->l, fx->now, &key, &v, LEASE_MS), took);
		if (took) {
			m->rec[i].owner = MODEL_OWNERS;
			m->rec[i].generation = generation;
			m->rec[i].payload = turn;
			*model_deadline(m, MODEL_OWNERS, 0) = fx->now + LEASE_MS;
		}
	} else if (what < 86) {
		assert_int_equal(ms_ledger_remove(fx->l, &key), m->rec[i].owner < 0 ? -ENOENT : 0);
		m->rec[i].owner = -1;
	} else if (what < 95) {
		fx->now += TICK_MS * ((unsigned int)rand() % 8);
		sweep(fx);
		model_sweep(m, fx->now);
	} else {
		fx->now += TICK_MS; /* time passes and nobody sweeps */
	}
}

static void test_random_operations_against_model(void **state)
{
	struct ms_ledger_stats st;
	struct ms_table_stats ts;
	struct ledger_fixture fx;
	struct ledger_model m = { 0 };
	unsigned int turn, i, n = 0;

	(void)state;
	fx_open(&fx, 64, 10);
	srand(20240611);
	m.records_max = 40;
	ms_ledger_set_records_max(fx.l, m.records_max);
	for (i = 0; i < MODEL_KEYS; i++)
		m.rec[i].owner = -1;
	for (turn = 1; turn <= 200000; turn++) {
		model_step(&m, &fx, turn);
		if (turn % 64 == 0)
			model_compare(&m, &fx);
	}
	for (i = 0; i < MODEL_KEYS; i++)
		n += m.rec[i].owner >= 0;
	ms_table_stats(fx.table, &ts);
	assert_int_equal(ts.records, n);

	/* when all have gone, nothing is left behind */
	fx.now += 10 * LEASE_MS;
	sweep(&fx);
	ms_ledger_stats(fx.l, &st);
	ms_table_stats(fx.table, &ts);
	assert_int_equal(st.owners, 0);
	assert_int_equal(ts.records, 0);
	fx_close(&fx);
}

static void test_many_owners(void **state)
{
	enum {
		OWNERS = 20000
	};
	struct ms_claim who = claim(0, 10);
	struct ms_ledger_stats st;
	struct ledger_fixture fx;
	unsigned int i;

	(void)state;
	fx_open(&fx, 1024, 14);
	for (i = 0; i < OWNERS; i++) {
		memcpy(who.owner, &i, sizeof(i));
		assert_int_equal(publish(&fx, &who, key_of(i & 0xffff, i >> 16), i), KRP_ST_OK);
	}
	ms_ledger_stats(fx.l, &st);
	assert_int_equal(st.owners, OWNERS);
	for (i = 0; i < OWNERS; i++) {
		memcpy(who.owner, &i, sizeof(i));
		assert_int_equal(ms_ledger_count(fx.l, fx.now, &who, NULL), 1);
	}
	fx.now += LEASE_MS + TICK_MS;
	sweep(&fx);
	assert_int_equal(fx.gone, OWNERS);
	fx_close(&fx);
}

static void test_bad_config(void **state)
{
	struct ms_ledger_config lc = { .tick_ms = 0, .records_max = 1 };
	struct ms_ledger *l = (struct ms_ledger *)state;

	assert_int_equal(ms_ledger_new(&lc, NULL, &fx_ops, NULL, 0, &l), -EINVAL);
	assert_ptr_equal(l, state);
	ms_ledger_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowded_out),
		cmocka_unit_test(test_same_owner_is_idempotent),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_newer_generation_withdraws),
		cmocka_unit_test(test_the_same_identity_elsewhere),
		cmocka_unit_test(test_other_owner),
		cmocka_unit_test(test_a_ports_record_has_room_beside_services),
		cmocka_unit_test(test_services_have_room_beside_records_of_ports),
		cmocka_unit_test(test_limits_leave_state_alone),
		cmocka_unit_test(test_device_failure_leaves_state_alone),
		cmocka_unit_test(test_expiry_order_and_lag),
		cmocka_unit_test(test_renewal_moves_the_deadline),
		cmocka_unit_test(test_long_pause),
		cmocka_unit_test(test_sweep_is_bounded),
		cmocka_unit_test(test_import),
		cmocka_unit_test(test_import_is_kept_or_dropped),
		cmocka_unit_test(test_each_goes_on_where_it_stopped),
		cmocka_unit_test(test_random_operations_against_model),
		cmocka_unit_test(test_many_owners),
		cmocka_unit_test(test_bad_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
