// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Loading root, segments and directory from a real table, with READs that are
 * copies and can be spoilt on their way.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/lib/load.h"
#include "tests/unit/table_fixture.h"

#define RKEY_ROOT 5000 /* unlike those of directories and segments */
#define CHUNK 256

static struct tf_server server;
static unsigned int reads;

/* Called with each READ's bytes; may change them. */
typedef void spoil_fn(const struct krp_read *read, uint8_t *bytes);

static int drive(struct krp_load *load, spoil_fn *spoil)
{
	uint8_t bytes[CHUNK] __attribute__((aligned(8)));
	struct krp_read read;
	int err = 0;

	reads = 0;
	while (!err && krp_load_next(load, &read)) {
		assert_true(read.bytes > 0 && read.bytes <= sizeof(bytes));
		assert_true(++reads < 100000);
		memcpy(bytes, (const void *)(uintptr_t)read.addr, read.bytes);
		if (spoil)
			spoil(&read, bytes);
		err = krl_load_feed(load, bytes);
	}
	return err;
}

static void begin(struct krp_load *load, const struct krl_map *old)
{
	krl_load_start(load, (uintptr_t)&server.root, RKEY_ROOT,
		       ms_table_config(server.table)->incarnation, CHUNK, old);
}

static void add_records(unsigned int from, unsigned int to)
{
	struct krp_value value;
	struct krp_key key;
	unsigned int i;

	for (i = from; i < to; i++) {
		tf_key(&key, i);
		tf_value(&value, i, 1);
		assert_true(ms_table_put(server.table, &key, &value, 0) >= 0);
	}
}

static int setup(void **state)
{
	const struct ms_table_config config = {
		.incarnation = 0x1122334455667788,
		.salt = 99,
		.log2_segment_pages = 4,
		.segments_max = 512,
		.depth_max = 20,
	};

	(void)state;
	return tf_server_init(&server, &config);
}

static int teardown(void **state)
{
	(void)state;
	tf_server_exit(&server);
	return 0;
}

static void check_map(const struct krl_map *map)
{
	struct ms_table_geometry geo;

	ms_table_geometry(server.table, &geo);
	assert_int_equal(map->map.depth, geo.depth);
	assert_int_equal(map->map.segments_nr, geo.segments_nr);
	assert_memory_equal(map->map.dir, geo.dir, geo.dir_bytes);
	assert_memory_equal(map->map.segments, server.segments,
			    geo.segments_nr * sizeof(struct krp_segment));
}

static void test_load(void **state)
{
	struct krp_load load;
	struct krl_map *map;

	(void)state;
	add_records(0, 5000);
	begin(&load, NULL);
	assert_int_equal(drive(&load, NULL), 0);
	map = krl_load_take(&load);
	check_map(map);
	assert_true(map->map.depth >= 8);
	assert_true(map->map.segments_nr > CHUNK / sizeof(struct krp_segment));
	krl_map_free(map);
	krl_load_drop(&load);
}

/* A deeper directory costs the root and the new segments, no bulk READ. */
static void test_refresh_reads_only_what_is_new(void **state)
{
	struct krl_map *old, *map;
	struct krp_load load;
	unsigned int i;

	(void)state;
	add_records(0, 3000);
	begin(&load, NULL);
	assert_int_equal(drive(&load, NULL), 0);
	old = krl_load_take(&load);

	add_records(3000, 9000);
	begin(&load, old);
	assert_int_equal(drive(&load, NULL), 0);
	map = krl_load_take(&load);
	assert_true(map->map.depth > old->map.depth);
	assert_int_equal(load.bytes,
			 sizeof(struct krp_root) + (map->map.segments_nr - old->map.segments_nr) *
							   sizeof(struct krp_segment));
	assert_memory_equal(map->map.segments, server.segments,
			    map->map.segments_nr * sizeof(struct krp_segment));
	for (i = 0; i < 1U << map->map.depth; i++)
		assert_memory_equal(&map->map.dir[i],
				    &old->map.dir[i >> (map->map.depth - old->map.depth)],
				    sizeof(struct krp_dir_entry));
	krl_map_free(old);
	krl_map_free(map);
}

static unsigned int spoil_left;

static void spoil_root(const struct krp_read *read, uint8_t *bytes)
{
	if (read->rkey == RKEY_ROOT && spoil_left && spoil_left--)
		bytes[20] ^= 1;
}

static void spoil_segment(const struct krp_read *read, uint8_t *bytes)
{
	if (read->rkey == TF_SEGMENTS_RKEY && spoil_left && spoil_left--)
		bytes[read->bytes - 8] ^= 1; /* the last one's rkey: those before it stand */
}

static void test_torn_bytes_are_read_again(void **state)
{
	spoil_fn *const spoils[] = { spoil_root, spoil_segment };
	struct krp_load load;
	struct krl_map *map;
	unsigned int i;

	(void)state;
	add_records(0, 2000);
	for (i = 0; i < 2; i++) {
		spoil_left = 5;
		begin(&load, NULL);
		assert_int_equal(drive(&load, spoils[i]), 0);
		assert_int_equal(spoil_left, 0);
		map = krl_load_take(&load);
		check_map(map);
		krl_map_free(map);

		spoil_left = ~0U;
		begin(&load, NULL);
		assert_int_equal(drive(&load, spoils[i]), -EPROTO);
		krl_load_drop(&load);
	}
}

static void test_another_incarnation(void **state)
{
	struct krp_load load;

	(void)state;
	krl_load_start(&load, (uintptr_t)&server.root, RKEY_ROOT, 12345, CHUNK, NULL);
	assert_int_equal(drive(&load, NULL), -ESTALE);
	krl_load_drop(&load);
}

/* The table grows under the load: the directory being read is given up. */
static void grow_once(const struct krp_read *read, uint8_t *bytes)
{
	if (read->rkey == RKEY_ROOT || read->rkey == TF_SEGMENTS_RKEY || !spoil_left)
		return;
	spoil_left--;
	add_records(1000, 8000);
	memcpy(bytes, (const void *)(uintptr_t)read->addr, read->bytes);
}

static void test_directory_that_moves_is_read_from_its_new_place(void **state)
{
	struct krp_load load;
	struct krl_map *map;

	(void)state;
	add_records(0, 1000);
	spoil_left = 1;
	begin(&load, NULL);
	assert_int_equal(drive(&load, grow_once), 0);
	assert_int_equal(spoil_left, 0);
	assert_true(load.tries > 0);
	map = krl_load_take(&load);
	check_map(map);
	krl_map_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_load, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refresh_reads_only_what_is_new, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_torn_bytes_are_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_incarnation, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_directory_that_moves_is_read_from_its_new_place, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
