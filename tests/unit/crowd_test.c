// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keys that were chosen to crowd others out of a table (metaserver/table.c, aside.h): every
 * record is found, by a READ or by asking, no READ ever proves a miss that is none, few
 * keys do not make the directory large, and what was aside comes back when there is room.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/table_fixture.h"

#define SALT 42
#define VICTIM 1000000

static const struct ms_table_config config = {
	.incarnation = 0x1122334455667788ULL,
	.salt = SALT,
	.log2_segment_pages = 5,
	.segments_max = 64,
	.depth_max = 22,
	.asides_max = 4096,
	.secret = 4711,
};

static struct tf_server server; /* large: holds every segment a table may have */
static struct tf_reader reader;

static void open_table(const struct ms_table_config *c)
{
	assert_int_equal(tf_server_init(&server, c), 0);
	memset(&reader, 0, sizeof(reader));
	assert_int_equal(tf_reader_attach(&reader, &server), 0);
}

static void close_table(void)
{
	assert_int_equal(reader.bad_reads, 0);
	tf_reader_detach(&reader);
	tf_server_exit(&server);
}

static struct ms_table_stats stats_now(void)
{
	struct ms_table_stats stats;

	ms_table_stats(server.table, &stats);
	return stats;
}

static unsigned int depth_now(void)
{
	struct ms_table_geometry geo;

	ms_table_geometry(server.table, &geo);
	return geo.depth;
}

static int put_key(const struct krp_key *key, __u64 id, __u32 version)
{
	struct krp_value value;

	tf_value(&value, id, version);
	return ms_table_put(server.table, key, &value, id);
}

static int put(__u64 id, __u32 version)
{
	struct krp_key key;

	tf_key(&key, id);
	return put_key(&key, id, version);
}

/* Key @nr of those that have the hash of key @of; 0 is key @of itself. */
static void twin(struct krp_key *key, __u64 of, unsigned int nr)
{
	struct krp_key first;

	tf_key(&first, of);
	*key = first;
	if (nr)
		tf_twin(key, &first, SALT, (__u16)(1000 + nr));
}

/* Return: what the READs of a look-up say; -EAGAIN: ask. */
static int by_read(const struct krp_key *key, __u64 id, __u32 version)
{
	struct krp_value value;
	int step = tf_lookup(&reader, key, &value);

	if (step == KRP_STEP_HIT)
		assert_int_equal(tf_value_version(&value, id), version);
	return step;
}

/* As a reader does it: READ, and ask if that proves nothing. Return: whether READs found it. */
static bool must_find(const struct krp_key *key, __u64 id, __u32 version)
{
	int step = by_read(key, id, version);
	struct krp_value value;

	if (step == KRP_STEP_HIT)
		return true;
	assert_int_equal(step, -EAGAIN);
	assert_int_equal(ms_table_get(server.table, key, &value, NULL), 0);
	assert_int_equal(tf_value_version(&value, id), version);
	return false;
}

static void must_not_find(const struct krp_key *key)
{
	int step = by_read(key, 0, 0);

	assert_true(step == KRP_STEP_MISS || step == -EAGAIN);
	assert_int_equal(ms_table_get(server.table, key, NULL, NULL), -ENOENT);
}

static void test_a_twin_has_the_same_hash(void **state)
{
	struct krp_key first, key;
	unsigned int i;

	(void)state;
	tf_key(&first, VICTIM);
	for (i = 1; i < 100; i++) {
		twin(&key, VICTIM, i);
		assert_true(krp_key_hash(&key, SALT) == krp_key_hash(&first, SALT));
		assert_true(memcmp(&key, &first, sizeof(key)) != 0);
		assert_memory_equal(key.gid, first.gid, 8); /* in one's own /64 */
	}
}

/* Three keys with the victim's own hash are enough to fill its bucket, whatever the seed. */
static void test_three_twins_do_not_keep_a_victim_out(void **state)
{
	struct krp_key key, other;
	__u64 cookie = 0;
	unsigned int i;

	(void)state;
	open_table(&config);
	for (i = 1; i <= 3; i++) {
		twin(&key, VICTIM, i);
		assert_int_equal(put_key(&key, i, 1), 0);
		assert_int_equal(by_read(&key, i, 1), KRP_STEP_HIT);
	}
	twin(&other, VICTIM, 9);
	assert_int_equal(by_read(&other, 0, 0), KRP_STEP_MISS);

	tf_key(&key, VICTIM);
	assert_int_equal(put(VICTIM, 5), 0);
	assert_int_equal(depth_now(), 0);
	assert_int_equal(stats_now().records, 4);
	assert_int_equal(stats_now().aside, 1);
	assert_int_equal(stats_now().crowded, 1);
	assert_false(must_find(&key, VICTIM, 5));
	assert_int_equal(by_read(&other, 0, 0), -EAGAIN);
	must_not_find(&other);

	assert_int_equal(put(VICTIM, 6), 1);
	assert_false(must_find(&key, VICTIM, 6));
	assert_int_equal(ms_table_set_cookie(server.table, &key, 77), 0);
	assert_int_equal(ms_table_get(server.table, &key, NULL, &cookie), 0);
	assert_int_equal(cookie, 77);

	/* one of the crowd goes: there is room, and no bucket says otherwise any more */
	twin(&other, VICTIM, 2);
	assert_int_equal(ms_table_del(server.table, &other), 0);
	assert_true(must_find(&key, VICTIM, 6));
	assert_int_equal(ms_table_get(server.table, &key, NULL, &cookie), 0);
	assert_int_equal(cookie, 77);
	assert_int_equal(by_read(&other, 0, 0), KRP_STEP_MISS);
	assert_int_equal(stats_now().aside, 0);
	close_table();
}

static void test_what_is_aside_is_withdrawn(void **state)
{
	struct krp_key key;
	unsigned int i;

	(void)state;
	open_table(&config);
	for (i = 0; i < 6; i++) {
		twin(&key, VICTIM, i);
		assert_int_equal(put_key(&key, i, 1), 0);
	}
	assert_int_equal(stats_now().aside, 3);
	for (i = 5; i >= 3; i--) {
		twin(&key, VICTIM, i);
		assert_false(must_find(&key, i, 1));
		assert_int_equal(ms_table_del(server.table, &key), 0);
		assert_int_equal(ms_table_del(server.table, &key), -ENOENT);
		must_not_find(&key);
	}
	assert_int_equal(by_read(&key, 0, 0), KRP_STEP_MISS); /* by a READ alone */
	assert_int_equal(stats_now().aside, 0);
	assert_int_equal(stats_now().records, 3);
	close_table();
}

/* The next key, from *@id on, that shares the top bits of the victim's hash. */
static void crowd_key(struct krp_key *key, __u64 *id, unsigned int bits)
{
	struct krp_key victim;
	__u64 hash;

	tf_key(&victim, VICTIM);
	hash = krp_key_hash(&victim, SALT);
	do
		tf_key(key, ++*id);
	while (krp_hash_prefix(krp_key_hash(key, SALT), bits) != krp_hash_prefix(hash, bits));
}

#define CROWD 60
#define CROWD_BITS 16

/* Others than twins: a seed can part them, but no page holds so many. */
static void test_a_crowded_prefix_keeps_nobody_out(void **state)
{
	__u64 ids[CROWD], id = VICTIM, other;
	unsigned int i, by_reads = 0;
	struct krp_key key;

	(void)state;
	open_table(&config);
	for (other = 0; other < 1000; other++)
		assert_int_equal(put(other, 1), 0);
	for (i = 0; i < CROWD; i++) {
		crowd_key(&key, &id, CROWD_BITS);
		ids[i] = id;
		assert_int_equal(put_key(&key, id, 1), 0);
	}
	assert_int_equal(put(VICTIM, 3), 0);
	assert_true(depth_now() <= 10); /* of 1061 records */
	assert_true(stats_now().aside >= CROWD + 1 - KRP_PAGE_RECORDS);
	assert_true(stats_now().crowded >= stats_now().aside); /* with those that lost a place */
	tf_key(&key, VICTIM);
	must_find(&key, VICTIM, 3);
	for (i = 0; i < CROWD; i++) {
		tf_key(&key, ids[i]);
		by_reads += must_find(&key, ids[i], 1);
	}
	assert_true(by_reads >= KRP_PAGE_RECORDS / 2); /* the page is used all the same */
	for (other = 0, by_reads = 0; other < 1000; other++) {
		tf_key(&key, other);
		by_reads += must_find(&key, other, 1);
	}
	assert_true(by_reads >= 990); /* neighbours in the crowd's page, at most */

	/* all of the crowd goes, and with it the last trace of it */
	for (i = 0; i < CROWD; i++) {
		tf_key(&key, ids[i]);
		assert_int_equal(ms_table_del(server.table, &key), 0);
	}
	assert_int_equal(stats_now().aside, 0);
	tf_key(&key, VICTIM);
	assert_true(must_find(&key, VICTIM, 3));
	tf_key(&key, ids[0]);
	assert_int_equal(by_read(&key, 0, 0), KRP_STEP_MISS);
	close_table();
}

/* 25 keys that share 16 bits once made a directory of 2^16 entries and more. */
static void test_few_keys_do_not_make_a_large_directory(void **state)
{
	__u64 id = VICTIM;
	struct krp_key key;
	unsigned int i;

	(void)state;
	open_table(&config);
	for (i = 1; i <= 63; i++) {
		crowd_key(&key, &id, CROWD_BITS);
		assert_int_equal(put_key(&key, id, 1), 0);
		assert_true(1U << depth_now() <= i);
	}
	assert_true(stats_now().pages_used <= 8);
	close_table();
}

/* What had no room in a small table has room when that has grown and it is published again. */
static void test_they_come_back_when_the_table_has_grown(void **state)
{
	__u64 ids[CROWD], id = VICTIM, other;
	struct krp_key key;
	unsigned int i, turn;

	(void)state;
	open_table(&config);
	for (i = 0; i < CROWD; i++) {
		crowd_key(&key, &id, 8); /* 8 bits alike, and the next four or so are not */
		ids[i] = id;
		assert_int_equal(put_key(&key, id, 1), 0);
	}
	assert_true(stats_now().aside >= CROWD - KRP_PAGE_RECORDS);
	for (other = 0; other < 5000; other++)
		assert_int_equal(put(other, 1), 0);
	for (turn = 2; turn < 8; turn++)
		for (i = 0; i < CROWD; i++)
			assert_int_equal(put(ids[i], turn), 1);
	assert_int_equal(stats_now().aside, 0);
	for (i = 0; i < CROWD; i++) {
		tf_key(&key, ids[i]);
		assert_true(must_find(&key, ids[i], 7));
	}
	close_table();
}

/* A long queue for one bucket does not keep out those who want another. */
static void test_all_that_are_aside_get_their_turn(void **state)
{
	__u64 id = VICTIM;
	struct krp_key key, twin_of_other;
	unsigned int i;

	(void)state;
	open_table(&config);
	for (i = 0; i < 60; i++) {
		twin(&key, VICTIM, i);
		assert_int_equal(put_key(&key, i, 1), 0);
	}
	crowd_key(&key, &id, CROWD_BITS); /* of the same page */
	for (i = 1; i <= 3; i++) {
		twin(&twin_of_other, id, i);
		assert_int_equal(put_key(&twin_of_other, 100 + i, 1), 0);
	}
	assert_int_equal(put_key(&key, id, 1), 0);
	assert_false(must_find(&key, id, 1));
	assert_int_equal(ms_table_del(server.table, &twin_of_other), 0);
	for (i = 0; i < 60; i++) {
		twin(&twin_of_other, VICTIM, i);
		assert_int_equal(put_key(&twin_of_other, i, 2), 1);
	}
	assert_true(must_find(&key, id, 1));
	assert_int_equal(stats_now().aside, 57);
	close_table();
}

static __u64 fingerprint(void)
{
	struct ms_table_stats stats = stats_now();
	struct ms_table_geometry geo;
	size_t bytes;
	__u64 sum;
	unsigned int i;

	stats.fruitless = 0; /* an attempt counts, and changes nothing */
	ms_table_geometry(server.table, &geo);
	sum = krp_xxh64(&stats, sizeof(stats), geo.depth);
	sum = krp_xxh64(geo.dir, geo.dir_bytes, sum);
	for (i = 0; i < geo.segments_nr; i++) {
		void *seg = ms_table_segment(server.table, i, &bytes);

		sum = krp_xxh64(seg, bytes, sum);
	}
	return sum;
}

static void test_no_room_aside_refuses_and_leaves_all_as_it_was(void **state)
{
	struct ms_table_config c = config;
	struct krp_key key;
	unsigned int i;
	__u64 before;

	(void)state;
	c.asides_max = 20;
	open_table(&c);
	for (i = 0; i < 23; i++) {
		twin(&key, VICTIM, i);
		assert_int_equal(put_key(&key, i, 1), 0);
	}
	twin(&key, VICTIM, 23);
	before = fingerprint();
	assert_int_equal(put_key(&key, 23, 1), -ENOSPC);
	assert_true(fingerprint() == before);
	must_not_find(&key);
	for (i = 0; i < 23; i++) {
		twin(&key, VICTIM, i);
		must_find(&key, i, 1);
		assert_int_equal(put_key(&key, i, 2), 1);
	}
	assert_int_equal(put(7, 1), 0); /* nobody else is refused */
	close_table();
}

/* The next service of a GID whose key shares the top bits of the victim's hash. */
static void crowd_service(struct krp_key *key, unsigned int bits)
{
	struct krp_key victim;
	__u32 want;

	tf_key(&victim, VICTIM);
	want = krp_hash_prefix(krp_key_hash(&victim, SALT), bits);
	do
		key->service = krp_cpu_to_le16((__u16)(krp_le16_to_cpu(key->service) + 1));
	while (krp_hash_prefix(krp_key_hash(key, SALT), bits) != want);
}

/* One address that chooses its keys leaves room aside for the record that they crowd out. */
static void test_an_address_has_its_share_of_what_is_aside(void **state)
{
	struct krp_key key = { .gid = { 0xfd, [15] = 1 } }, victim;
	struct ms_table_config c = config;
	unsigned int i, put_nr = 0;
	__u64 before;

	(void)state;
	c.asides_max = 640;
	open_table(&c);
	do
		crowd_service(&key, 8);
	while (!put_key(&key, put_nr, 1) && ++put_nr < 200);
	assert_int_equal(stats_now().aside, 10); /* 9 are a 64th of the 631 others */
	assert_true(put_nr <= KRP_PAGE_RECORDS + 10);
	before = fingerprint();
	assert_int_equal(put_key(&key, 7, 1), -ENOSPC);
	assert_true(fingerprint() == before);
	must_not_find(&key);

	assert_int_equal(put(VICTIM, 3), 0);
	tf_key(&victim, VICTIM);
	must_find(&victim, VICTIM, 3);

	/* what is withdrawn gives its place back */
	assert_int_equal(put_key(&key, 7, 1), -ENOSPC);
	for (i = 0, key.service = 0; i < put_nr; i++) {
		crowd_service(&key, 8);
		assert_int_equal(ms_table_del(server.table, &key), 0);
	}
	assert_int_equal(stats_now().aside, 0);
	for (i = 0, key.service = 0; i < put_nr - 1; i++) { /* the victim is in a bucket now */
		crowd_service(&key, 8);
		assert_int_equal(put_key(&key, i, 1), 0);
	}
	assert_int_equal(stats_now().aside, 10);
	close_table();
}

static unsigned int told;
static struct krp_key told_of;

static void note_crowded(void *arg, const struct krp_key *key)
{
	(void)arg;
	told++;
	told_of = *key;
}

static int nothing_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	(void)arg;
	(void)nr;
	(void)addr;
	(void)bytes;
	return 0;
}

static int nothing_dir(void *arg, void *addr, size_t bytes)
{
	return nothing_add(arg, 0, addr, bytes);
}

static void nothing_root(void *arg)
{
	(void)arg;
}

static void test_the_owner_is_told(void **state)
{
	static const struct ms_table_ops ops = { .segment_add = nothing_add,
						 .dir_add = nothing_dir,
						 .root_changed = nothing_root,
						 .crowded = note_crowded };
	struct krp_key key;
	unsigned int i;

	(void)state;
	assert_int_equal(ms_table_new(&config, &ops, NULL, &server.table), 0);
	told = 0;
	for (i = 0; i < 5; i++) {
		assert_int_equal(told, i > 3 ? i - 3 : 0);
		twin(&key, VICTIM, i);
		assert_int_equal(put_key(&key, i, 1), 0);
	}
	assert_int_equal(told, 2);
	assert_memory_equal(&told_of, &key, sizeof(key));
	ms_table_free(server.table);
}

#define GROUPS 40
#define TWINS 25
#define IDS (GROUPS * TWINS + 2000) /* and some that are nobody's twins */

static void model_key(struct krp_key *key, unsigned int id)
{
	if (id < GROUPS * TWINS)
		twin(key, VICTIM + id % GROUPS, id / GROUPS);
	else
		tf_key(key, id);
}

static bool count_visit(void *arg, const struct krp_key *key, const struct krp_value *value,
			__u64 cookie)
{
	__u8 *seen = arg;
	struct krp_key want;

	model_key(&want, (unsigned int)cookie);
	assert_memory_equal(key, &want, sizeof(want));
	assert_true(tf_value_version(value, cookie) >= 0);
	seen[cookie]++;
	return false; /* page by page */
}

/* All is as the model says, to a reader, to a client that asks, and to one that visits. */
static void check_model(const __u32 *model)
{
	static __u8 seen[IDS];
	unsigned int id, page = 0, records = 0;
	struct krp_key key;

	memset(seen, 0, sizeof(seen));
	do
		page = ms_table_each(server.table, page, count_visit, seen);
	while (page);
	for (id = 0; id < IDS; id++) {
		model_key(&key, id);
		if (model[id])
			must_find(&key, id, model[id]);
		else
			must_not_find(&key);
		assert_int_equal(seen[id], !!model[id]);
		records += !!model[id];
	}
	assert_int_equal(stats_now().records, records);
}

static void test_random_operations_match_a_model(void **state)
{
	static __u32 model[IDS]; /* version, 0 = absent */
	unsigned int step, id, asides = 0;
	struct krp_key key;
	__u64 rnd = 7;

	(void)state;
	memset(model, 0, sizeof(model));
	open_table(&config);
	for (step = 1; step <= 40000; step++) {
		/* the share of deletions swings, so that crowds come and go */
		unsigned int dels = step / 5000 % 2 ? 80 : 20;

		rnd = krp_mix64(rnd + step);
		id = (unsigned int)(rnd % IDS);
		model_key(&key, id);
		if ((rnd >> 40) % 100 < dels) {
			assert_int_equal(ms_table_del(server.table, &key), model[id] ? 0 : -ENOENT);
			model[id] = 0;
			must_not_find(&key);
		} else {
			assert_int_equal(put_key(&key, id, step), !!model[id]);
			model[id] = step;
			must_find(&key, id, step);
		}
		asides = stats_now().aside > asides ? (unsigned int)stats_now().aside : asides;
		if (step % 5000 == 0)
			check_model(model);
	}
	assert_true(asides > 100);
	assert_true(stats_now().merges > 20);
	for (id = 0; id < IDS; id++) {
		model_key(&key, id);
		assert_int_equal(ms_table_del(server.table, &key), model[id] ? 0 : -ENOENT);
		model[id] = 0;
	}
	assert_int_equal(stats_now().aside, 0);
	assert_true(stats_now().pages_used <= 4);
	for (id = 0; id < IDS; id++) {
		model_key(&key, id);
		assert_int_equal(by_read(&key, 0, 0), KRP_STEP_MISS);
	}
	close_table();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_twin_has_the_same_hash),
		cmocka_unit_test(test_three_twins_do_not_keep_a_victim_out),
		cmocka_unit_test(test_what_is_aside_is_withdrawn),
		cmocka_unit_test(test_a_crowded_prefix_keeps_nobody_out),
		cmocka_unit_test(test_few_keys_do_not_make_a_large_directory),
		cmocka_unit_test(test_they_come_back_when_the_table_has_grown),
		cmocka_unit_test(test_all_that_are_aside_get_their_turn),
		cmocka_unit_test(test_no_room_aside_refuses_and_leaves_all_as_it_was),
		cmocka_unit_test(test_an_address_has_its_share_of_what_is_aside),
		cmocka_unit_test(test_the_owner_is_told),
		cmocka_unit_test(test_random_operations_match_a_model),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
