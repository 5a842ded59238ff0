// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What readers can reach of a MetaServer: each registration that a remote key is given out for
 * begins at a page, is the table's own memory, grants READ and nothing else, and holds zeros
 * where the table names nothing, also as the table grows. A device that cannot register a
 * piece leaves nothing of it behind; one of several that fails for good is given up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/memory.h"
#include "tests/unit/wrap_memory.h"

#define REGIONS_MAX 64
#define RECORDS 20000U
#define PAGE 4096U

static struct {
	struct ev_loop *loop;
	struct ms_server *srv;
	struct ms_device *dev;
	struct ibv_pd *faulty; /* registrations in it fail with EIO; NULL: of no device */
	struct ibv_mr mr[REGIONS_MAX];
	bool used[REGIONS_MAX];
	unsigned int nr, most;
	unsigned int fail_at; /* this registration fails; 0: none does */
} fx;

static struct ibv_mr *reg(const struct ibv_pd *pd, void *addr, size_t bytes, unsigned int access)
{
	unsigned int i = 0;

	if (fx.faulty && pd == fx.faulty) {
		errno = EIO;
		return NULL;
	}
	if (fx.fail_at && !--fx.fail_at) {
		errno = ENOMEM;
		return NULL;
	}
	assert_int_equal(access, IBV_ACCESS_REMOTE_READ);
	while (fx.used[i])
		assert_true(++i < REGIONS_MAX);
	fx.used[i] = true;
	fx.most = ++fx.nr > fx.most ? fx.nr : fx.most;
	fx.mr[i] = (struct ibv_mr){ .addr = addr, .length = bytes, .rkey = i + 1 };
	return &fx.mr[i];
}

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
	return reg(pd, addr, bytes, (unsigned int)access);
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
				       unsigned int access)
{
	assert_int_equal(iova, (uintptr_t)addr);
	return reg(pd, addr, bytes, access);
}

int __wrap_ibv_dereg_mr(struct ibv_mr *mr)
{
	assert_true(fx.used[mr - fx.mr]);
	fx.used[mr - fx.mr] = false;
	fx.nr--;
	return 0;
}

static int setup(void **state)
{
	struct kru_conf conf;

	(void)state;
	memset(&fx, 0, sizeof(fx));
	kru_conf_defaults(&conf);
	conf.ms.key_file[0] = '\0';
	conf.ms.segment_kib = 64;
	fx.loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(fx.loop);
	assert_int_equal(ms_server_new(fx.loop, &conf, &fx.srv), 0);
	fx.dev = calloc(1, sizeof(*fx.dev));
	assert_non_null(fx.dev);
	fx.dev->srv = fx.srv;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx.srv->devices = NULL;
	ms_memory_close(fx.dev);
	assert_int_equal(fx.nr, 0);
	assert_int_equal(fx.dev->memory.bytes, 0);
	free(fx.dev);
	ms_server_free(fx.srv);
	ev_loop_destroy(fx.loop);
	return 0;
}

static int put(unsigned int nr)
{
	struct krp_value value = { .kind = KRP_KIND_RAW, .len = 1, .raw = { 1 } };
	struct krp_key key = { .gid = { 0xfd }, .service = krp_cpu_to_le16(300) };

	memcpy(&key.gid[8], &nr, sizeof(nr));
	return ms_table_put(fx.srv->hub.table, &key, &value, 0);
}

/* Whether a registration is exactly some memory of the table. */
static bool of_the_table(const struct ibv_mr *mr)
{
	struct ms_table_geometry geo;
	unsigned int nr;
	size_t bytes;

	ms_table_geometry(fx.srv->hub.table, &geo);
	if (mr->addr == geo.dir)
		return mr->length == geo.dir_bytes;
	for (nr = 0; nr < geo.segments_nr; nr++)
		if (mr->addr == ms_table_segment(fx.srv->hub.table, nr, &bytes))
			return mr->length == bytes;
	return false;
}

/* Bytes from @from to @to of some memory are zero. */
static void assert_zero(const void *mem, size_t from, size_t to)
{
	for (; from < to; from++)
		assert_int_equal(((const uint8_t *)mem)[from], 0);
}

/* Return: how many registrations are neither the root nor of the table. */
static unsigned int judge(void)
{
	unsigned int i, others = 0;

	for (i = 0; i < REGIONS_MAX; i++) {
		const struct ibv_mr *mr = &fx.mr[i];

		if (!fx.used[i])
			continue;
		assert_int_equal((uintptr_t)mr->addr % PAGE, 0);
		/* to the end of the page that it ends in */
		assert_zero(mr->addr, mr->length, (mr->length + PAGE - 1) / PAGE * PAGE);
		if (mr == fx.dev->memory.root_mr)
			continue;
		others += !of_the_table(mr);
	}
	return others;
}

static void test_keys_reach_the_table_and_no_more(void **state)
{
	size_t array = PAGE + KRP_SEGMENTS_MAX * sizeof(struct krp_segment);
	struct ms_table_geometry geo;
	unsigned int nr;

	(void)state;
	assert_int_equal(ms_memory_open(fx.dev), 0);
	assert_int_equal(judge(), 0);
	fx.srv->devices = fx.dev;
	for (nr = 0; nr < RECORDS; nr++)
		assert_true(put(nr) >= 0);
	ms_table_geometry(fx.srv->hub.table, &geo);
	assert_true(geo.segments_nr > 4 && geo.depth > 4);
	/* directories that readers may still READ stay, but are no larger than they were */
	assert_true(judge() <= geo.depth);
	assert_int_equal(fx.dev->memory.root_mr->length, array);
	assert_ptr_equal(fx.dev->memory.root_mr->addr, fx.dev->memory.root);
	assert_zero(fx.dev->memory.root, sizeof(struct krp_root), PAGE);
	assert_zero(fx.dev->memory.root, PAGE + geo.segments_nr * sizeof(struct krp_segment),
		    array);
}

/* Whichever piece cannot be registered: the record is refused, and what was there is reachable. */
static void test_a_piece_that_cannot_be_registered(void **state)
{
	unsigned int nr, refused = 0, before;
	int err;

	(void)state;
	assert_int_equal(ms_memory_open(fx.dev), 0);
	fx.srv->devices = fx.dev;
	for (nr = 0; nr < RECORDS / 4; nr++) {
		before = fx.nr;
		fx.fail_at = 1;
		err = put(nr);
		if (err < 0) {
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(fx.nr, before);
			refused++;
			err = put(nr);
		}
		fx.fail_at = 0;
		assert_true(err >= 0);
	}
	assert_true(refused > 4);
	assert_false(fx.dev->broken);
}

/* The table grows without a device that fails, but not without the last one that works. */
static void test_a_device_that_is_broken(void **state)
{
	struct ibv_pd pd[2];
	struct ms_device *second = calloc(1, sizeof(*second));
	unsigned int nr = 0, held;
	struct krp_root root;
	uint64_t bytes;

	(void)state;
	assert_non_null(second);
	second->srv = fx.srv;
	fx.dev->pd = &pd[0];
	second->pd = &pd[1];
	assert_int_equal(ms_memory_open(fx.dev), 0);
	assert_int_equal(ms_memory_open(second), 0);
	fx.srv->devices = fx.dev;
	fx.dev->next = second;
	fx.faulty = second->pd;
	bytes = second->memory.bytes;
	while (nr < RECORDS / 4)
		assert_true(put(nr++) >= 0);
	assert_true(second->broken);
	assert_false(fx.dev->broken);
	assert_int_equal(second->memory.bytes, bytes);
	assert_true(fx.dev->memory.bytes > bytes);
	memcpy(&root, second->memory.root, sizeof(root)); /* of a table that it still has */
	ms_device_beat(fx.srv);
	assert_memory_equal(&root, second->memory.root, sizeof(root));

	fx.faulty = fx.dev->pd;
	bytes = fx.dev->memory.bytes;
	held = fx.nr;
	while (put(nr) >= 0)
		assert_true(++nr < RECORDS);
	assert_int_equal(put(nr), -EIO);
	assert_false(fx.dev->broken);
	assert_int_equal(fx.dev->memory.bytes, bytes);
	assert_int_equal(fx.nr, held);
	fx.faulty = NULL;
	assert_true(put(nr) >= 0);
	assert_true(second->broken);
	ms_memory_close(second);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys_reach_the_table_and_no_more, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_piece_that_cannot_be_registered, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_device_that_is_broken, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
