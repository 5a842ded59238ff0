// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krp_load.h in front of a server that is wrong in one thing at a time: roots,
 * segments and directories made by hand, READs that are copies of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/krp_load.h"
#include "tests/unit/exact_map.h"

#define INCARNATION 0x1122334455667788ULL
#define ROOT_AT 0x1000ULL
#define SEGMENTS_AT 0x20000ULL
#define DIR_AT 0x40000ULL
#define ROOT_RKEY 1U
#define SEGMENTS_RKEY 2U
#define DIR_RKEY 3U
#define SEGMENTS 20U
#define DEPTH 6U
#define DEPTH_MAX 8U
#define CHUNK 128U

/* A server's memory, and how it misbehaves. */
static struct {
	struct krp_root root;
	struct krp_segment segments[SEGMENTS + 8];
	struct krp_dir_entry dir[1 << DEPTH_MAX];
	/* called with each READ's bytes; may change them, or the server */
	void (*meddle)(const struct krp_read *read, void *bytes);
	unsigned int meddle_left;
	unsigned int reads;
	unsigned int gives;
} sv;

static void sign_root(void)
{
	sv.root.sum = krp_cpu_to_le64(krp_root_sum(&sv.root));
}

static void sign_segment(unsigned int nr)
{
	sv.segments[nr].check =
		krp_cpu_to_le32(krp_segment_check(&sv.segments[nr], nr, INCARNATION));
}

static int setup(void **state)
{
	unsigned int i;

	(void)state;
	memset(&sv, 0, sizeof(sv));
	sv.root.magic = krp_cpu_to_le64(KRP_ROOT_MAGIC);
	sv.root.version = krp_cpu_to_le16(KRP_TABLE_VERSION);
	sv.root.bytes = krp_cpu_to_le16(sizeof(sv.root));
	sv.root.log2_segment_pages = 4;
	sv.root.depth = DEPTH;
	sv.root.incarnation = krp_cpu_to_le64(INCARNATION);
	sv.root.salt = krp_cpu_to_le64(77);
	sv.root.dir_addr = krp_cpu_to_le64(DIR_AT);
	sv.root.dir_rkey = krp_cpu_to_le32(DIR_RKEY);
	sv.root.segments_nr = krp_cpu_to_le32(SEGMENTS);
	sv.root.segments_addr = krp_cpu_to_le64(SEGMENTS_AT);
	sv.root.segments_rkey = krp_cpu_to_le32(SEGMENTS_RKEY);
	sv.root.epoch = krp_cpu_to_le32(5);
	sv.root.records = krp_cpu_to_le64(321);
	sign_root();
	for (i = 0; i < SEGMENTS + 8; i++) {
		sv.segments[i].addr = krp_cpu_to_le64((i + 1ULL) << 30);
		sv.segments[i].rkey = krp_cpu_to_le32(100 + i);
		sign_segment(i);
	}
	for (i = 0; i < 1 << DEPTH_MAX; i++)
		sv.dir[i].page = krp_cpu_to_le32(i);
	return 0;
}

/* A READ that leaves the server's memory would break a real connection: it ends the test. */
static void do_read(const struct krp_read *read, void *bytes)
{
	const void *from;
	uint64_t at, size;

	sv.reads++;
	if (read->rkey == ROOT_RKEY) {
		from = &sv.root;
		at = read->addr - ROOT_AT;
		size = sizeof(sv.root);
	} else if (read->rkey == SEGMENTS_RKEY) {
		from = sv.segments;
		at = read->addr - SEGMENTS_AT;
		size = krp_le32_to_cpu(sv.root.segments_nr) * sizeof(sv.segments[0]);
	} else {
		assert_int_equal(read->rkey, DIR_RKEY);
		from = sv.dir;
		at = read->addr - DIR_AT;
		size = sizeof(sv.dir[0]) << sv.root.depth;
	}
	assert_true(read->bytes > 0 && read->bytes <= CHUNK);
	assert_true(at <= size && size - at >= read->bytes);
	memcpy(bytes, (const uint8_t *)from + at, read->bytes);
	if (sv.meddle && sv.meddle_left) {
		sv.meddle_left--;
		sv.meddle(read, bytes);
	}
}

static struct krp_map *make_map(const struct krp_map *want)
{
	struct krp_map *map = exact_map_new(want->segments_nr, want->depth);

	assert_non_null(map);
	sv.gives++;
	return map;
}

static int run(const struct krp_map *old, struct krp_map **ret_map)
{
	uint8_t bytes[CHUNK] __attribute__((aligned(8)));
	struct krp_load load;
	struct krp_read read;
	int step = 0;

	sv.reads = 0;
	sv.gives = 0;
	krp_load_start(&load, ROOT_AT, ROOT_RKEY, INCARNATION, CHUNK, DEPTH_MAX, old);
	while (step >= 0 && krp_load_next(&load, &read)) {
		assert_true(sv.reads < 10000);
		do_read(&read, bytes);
		step = krp_load_feed(&load, bytes);
		if (step == KRP_LOAD_MEMORY)
			exact_map_free(krp_load_give(&load, make_map(&load.want)));
	}
	if (step < 0)
		exact_map_free(krp_load_take(&load));
	else
		*ret_map = krp_load_take(&load);
	assert_null(krp_load_take(&load));
	assert_int_equal(krp_load_next(&load, &read), 0);
	assert_int_equal(krp_load_feed(&load, bytes), -EPROTO);
	return step < 0 ? step : 0;
}

static void check_map(const struct krp_map *map)
{
	assert_int_equal(map->depth, sv.root.depth);
	assert_int_equal(map->segments_nr, krp_le32_to_cpu(sv.root.segments_nr));
	assert_int_equal(map->incarnation, INCARNATION);
	assert_memory_equal(map->segments, sv.segments, map->segments_nr * sizeof(*map->segments));
}

/* A load that goes well. */
static struct krp_map *loaded(const struct krp_map *old)
{
	struct krp_map *map = NULL;

	assert_int_equal(run(old, &map), 0);
	if (!map)
		abort(); /* so that an analyser knows, too */
	return map;
}

static void check_loads(const struct krp_map *old)
{
	struct krp_map *map = loaded(old);

	check_map(map);
	if (!old)
		assert_memory_equal(map->dir, sv.dir, sizeof(*map->dir) << map->depth);
	exact_map_free(map);
}

static void check_refused(int wanted, unsigned int reads)
{
	struct krp_map *map = NULL;

	assert_int_equal(run(NULL, &map), wanted);
	assert_null(map);
	assert_int_equal(sv.reads, reads);
}

static void test_whole(void **state)
{
	(void)state;
	check_loads(NULL);
	/* 1 root, 20 segments of 16 bytes, 64 entries of 8 bytes, in READs of 128 */
	assert_int_equal(sv.reads, 1 + 3 + 4);
	assert_int_equal(sv.gives, 1);
}

static void test_smallest(void **state)
{
	(void)state;
	sv.root.depth = 0;
	sv.root.segments_nr = krp_cpu_to_le32(1);
	sign_root();
	check_loads(NULL);
	assert_int_equal(sv.reads, 3);
}

/* One field of the root at a time, signed, so that only its own check can refuse it. */
static void test_roots_out_of_range(void **state)
{
	static const struct {
		size_t at, bytes;
		uint64_t value;
	} bad[] = {
		{ offsetof(struct krp_root, magic), 8, KRP_ROOT_MAGIC ^ 1 },
		{ offsetof(struct krp_root, magic), 8, 0 },
		{ offsetof(struct krp_root, version), 2, KRP_TABLE_VERSION + 1 },
		{ offsetof(struct krp_root, bytes), 2, sizeof(struct krp_root) + 8 },
		{ offsetof(struct krp_root, bytes), 2, 0 },
		{ offsetof(struct krp_root, depth), 1, KRP_DEPTH_MAX + 1 },
		{ offsetof(struct krp_root, depth), 1, 255 },
		{ offsetof(struct krp_root, log2_segment_pages), 1,
		  KRP_LOG2_SEGMENT_PAGES_MAX + 1 },
		{ offsetof(struct krp_root, segments_nr), 4, 0 },
		{ offsetof(struct krp_root, segments_nr), 4, KRP_SEGMENTS_MAX + 1 },
		{ offsetof(struct krp_root, segments_nr), 4, ~0U },
		{ offsetof(struct krp_root, incarnation), 8, 0 },
		{ offsetof(struct krp_root, dir_addr), 8, 0 },
		{ offsetof(struct krp_root, segments_addr), 8, 0 },
		{ offsetof(struct krp_root, rsvd), 1, 1 },
		{ offsetof(struct krp_root, rsvd2) + 35, 1, 0x80 },
	};
	const struct krp_root good = sv.root;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		__le64 value = krp_cpu_to_le64(bad[i].value);

		sv.root = good;
		memcpy((uint8_t *)&sv.root + bad[i].at, &value, bad[i].bytes);
		sign_root();
		check_refused(-EPROTO, KRP_LOAD_TRIES);
		assert_int_equal(sv.gives, 0);
	}
	sv.root = good;
	check_loads(NULL);
}

static void test_every_bit_of_the_root_counts(void **state)
{
	unsigned int bit;

	(void)state;
	for (bit = 0; bit < 8 * sizeof(sv.root); bit++) {
		((uint8_t *)&sv.root)[bit / 8] ^= 1U << bit % 8;
		check_refused(-EPROTO, KRP_LOAD_TRIES);
		((uint8_t *)&sv.root)[bit / 8] ^= 1U << bit % 8;
	}
}

static void test_another_incarnation(void **state)
{
	(void)state;
	sv.root.incarnation = krp_cpu_to_le64(INCARNATION + 1);
	sign_root();
	check_refused(-ESTALE, 1);
}

/* What the format allows and this reader has no memory for is refused before it is made. */
static void test_too_deep(void **state)
{
	(void)state;
	sv.root.depth = DEPTH_MAX + 1;
	sign_root();
	check_refused(-E2BIG, 1);
	assert_int_equal(sv.gives, 0);
	sv.root.depth = DEPTH_MAX;
	sign_root();
	check_loads(NULL);
}

static void tear_root(const struct krp_read *read, void *bytes)
{
	if (read->rkey == ROOT_RKEY)
		((struct krp_root *)bytes)->salt ^= krp_cpu_to_le64(1);
}

static void tear_last_segment(const struct krp_read *read, void *bytes)
{
	struct krp_segment *segments = bytes;

	if (read->rkey == SEGMENTS_RKEY)
		segments[read->bytes / sizeof(*segments) - 1].rkey ^= krp_cpu_to_le32(1);
}

static void tear_first_segment(const struct krp_read *read, void *bytes)
{
	if (read->rkey == SEGMENTS_RKEY)
		((struct krp_segment *)bytes)->addr ^= krp_cpu_to_le64(1ULL << 40);
}

/* The second half of a directory that is being given up. */
static void move_dir(const struct krp_read *read, void *bytes)
{
	if (read->rkey == DIR_RKEY)
		memset((uint8_t *)bytes + read->bytes - 8, 0xff, 8);
}

static void test_what_is_torn_is_read_again(void **state)
{
	void (*const meddles[])(const struct krp_read *, void *) = { tear_root, tear_last_segment,
								     tear_first_segment };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(meddles) / sizeof(meddles[0]); i++) {
		sv.meddle = meddles[i];
		sv.meddle_left = KRP_LOAD_TRIES - 1;
		check_loads(NULL);
		assert_int_equal(sv.gives, 1);
	}
}

static void test_torn_for_ever(void **state)
{
	(void)state;
	sv.meddle_left = ~0U;
	sv.meddle = tear_root;
	check_refused(-EPROTO, KRP_LOAD_TRIES);
	sv.meddle = tear_first_segment; /* no READ of one brings anything */
	check_refused(-EPROTO, 1 + KRP_LOAD_TRIES);
	sv.meddle = move_dir; /* from the root again each time */
	check_refused(-EPROTO, KRP_LOAD_TRIES * (1 + 3 + 1));
	assert_int_equal(sv.gives, KRP_LOAD_TRIES);
}

static void test_segments_that_are_no_good(void **state)
{
	struct krp_segment good;

	(void)state;
	good = sv.segments[3];
	sv.segments[3].addr = 0; /* and signed: not there yet */
	sign_segment(3);
	check_refused(-EPROTO, 1 + KRP_LOAD_TRIES);
	sv.segments[3] = sv.segments[4]; /* whole, but that of another place */
	check_refused(-EPROTO, 1 + KRP_LOAD_TRIES);
	sv.segments[3] = good;
	sv.segments[3].check = krp_cpu_to_le32(
		krp_segment_check(&sv.segments[3], 3, INCARNATION + 1)); /* of another one */
	check_refused(-EPROTO, 1 + KRP_LOAD_TRIES);
	sv.segments[3] = good;
	check_loads(NULL);
}

/* The directory doubles, and grows segments, while it is being read. */
static void grow(const struct krp_read *read, void *bytes)
{
	if (read->rkey != DIR_RKEY) {
		sv.meddle_left++; /* not yet */
		return;
	}
	sv.root.depth++;
	sv.root.segments_nr = krp_cpu_to_le32(SEGMENTS + 8);
	sign_root();
	memset(bytes, 0xff, read->bytes);
}

static void test_a_directory_that_moves(void **state)
{
	(void)state;
	sv.meddle = grow;
	sv.meddle_left = 1;
	check_loads(NULL);
	assert_int_equal(sv.root.depth, DEPTH + 1);
	assert_int_equal(sv.gives, 2); /* and the first came back: no leak */
}

static void test_goes_on_from_an_older_copy(void **state)
{
	struct krp_map *old, *map;
	unsigned int i;

	(void)state;
	old = loaded(NULL);
	check_loads(old);
	assert_int_equal(sv.reads, 1);

	sv.root.depth = DEPTH + 2;
	sv.root.segments_nr = krp_cpu_to_le32(SEGMENTS + 8);
	sign_root();
	map = loaded(old);
	assert_int_equal(sv.reads, 1 + 1);
	check_map(map);
	for (i = 0; i < 1U << map->depth; i++)
		assert_memory_equal(&map->dir[i], &old->dir[i >> 2], sizeof(map->dir[i]));
	exact_map_free(map);
	exact_map_free(old);
}

/* What an older copy cannot be the beginning of is read anew. */
static void test_older_copies_of_no_use(void **state)
{
	struct krp_map *old, *map;
	uint64_t incarnation;

	(void)state;
	old = loaded(NULL);

	incarnation = old->incarnation;
	old->incarnation++;
	map = loaded(old);
	assert_int_equal(sv.reads, 1 + 3 + 4);
	exact_map_free(map);
	old->incarnation = incarnation;

	old->segments_addr++;
	map = loaded(old);
	assert_int_equal(sv.reads, 1 + 3);
	exact_map_free(map);
	old->segments_addr--;

	sv.root.depth = DEPTH - 1; /* no server does: the copy is not cut to fit */
	sv.root.segments_nr = krp_cpu_to_le32(SEGMENTS - 1);
	sign_root();
	map = loaded(old);
	assert_int_equal(sv.reads, 1 + 3 + 2);
	check_map(map);
	exact_map_free(map);
	exact_map_free(old);
}

/* A caller without memory may try again: nothing is half done. */
static void test_no_memory_at_first(void **state)
{
	uint8_t bytes[CHUNK] __attribute__((aligned(8)));
	struct krp_load load;
	struct krp_read read;
	unsigned int i;

	(void)state;
	krp_load_start(&load, ROOT_AT, ROOT_RKEY, INCARNATION, CHUNK, DEPTH_MAX, NULL);
	for (i = 0; i < 3; i++) {
		assert_int_equal(krp_load_next(&load, &read), 1);
		assert_int_equal(read.rkey, ROOT_RKEY);
		do_read(&read, bytes);
		assert_int_equal(krp_load_feed(&load, bytes), KRP_LOAD_MEMORY);
		assert_int_equal(load.want.segments_nr, SEGMENTS);
		assert_int_equal(load.want.depth, DEPTH);
		assert_int_equal(load.records, 321);
	}
	assert_null(krp_load_take(&load));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_whole, setup),
		cmocka_unit_test_setup(test_smallest, setup),
		cmocka_unit_test_setup(test_roots_out_of_range, setup),
		cmocka_unit_test_setup(test_every_bit_of_the_root_counts, setup),
		cmocka_unit_test_setup(test_another_incarnation, setup),
		cmocka_unit_test_setup(test_too_deep, setup),
		cmocka_unit_test_setup(test_what_is_torn_is_read_again, setup),
		cmocka_unit_test_setup(test_torn_for_ever, setup),
		cmocka_unit_test_setup(test_segments_that_are_no_good, setup),
		cmocka_unit_test_setup(test_a_directory_that_moves, setup),
		cmocka_unit_test_setup(test_goes_on_from_an_older_copy, setup),
		cmocka_unit_test_setup(test_older_copies_of_no_use, setup),
		cmocka_unit_test_setup(test_no_memory_at_first, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
