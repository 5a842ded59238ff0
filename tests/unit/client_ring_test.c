// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The program's end of a completion ring: order, the end of the array, counters
 * that wrap at 32 bits, nonsense in the shared page, and many threads that take
 * from one ring while it is filled: each completion to exactly one of them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/lib/ring.h"

#define ENTRIES 16U

struct page {
	struct krp_ring ring;
	struct krp_cqe cqes[ENTRIES];
};

static void page_init(struct page *page, uint32_t start)
{
	memset(page, 0, sizeof(*page));
	page->ring.head = start;
	page->ring.tail = start;
	page->ring.entries = ENTRIES;
	page->ring.offset = offsetof(struct page, cqes);
}

/* What the module does: the entry first, then tail. */
static void page_push(struct page *page, uint64_t user_data)
{
	uint32_t tail = page->ring.tail;
	uint64_t *to = (uint64_t *)(void *)&page->cqes[tail & (ENTRIES - 1)];
	union {
		struct krp_cqe cqe;
		uint64_t words[sizeof(struct krp_cqe) / sizeof(uint64_t)];
	} entry = { .words = { 0 } };
	size_t i;

	entry.cqe.user_data = user_data;
	entry.cqe.status = -(int32_t)(user_data % 3);
	entry.cqe.bytes = (uint32_t)user_data + 1;
	entry.cqe.queue = (uint32_t)user_data + 2;
	entry.cqe.opcode = KRP_OP_WRITE;
	/* in words, as the kernel's stores are: see krl_ring_words() */
	for (i = 0; i < sizeof(entry) / sizeof(*to); i++)
		__atomic_store_n(&to[i], entry.words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&page->ring.tail, tail + 1, __ATOMIC_RELEASE);
}

static void check_wc(const struct krcore_wc *wc, uint64_t user_data)
{
	assert_int_equal(wc->user_data, user_data);
	assert_int_equal(wc->status, -(int32_t)(user_data % 3));
	assert_int_equal(wc->bytes, (uint32_t)user_data + 1);
	assert_int_equal(wc->queue, (uint32_t)user_data + 2);
	assert_int_equal(wc->opcode, KRCORE_OP_WRITE);
}

static void test_order(void **state)
{
	struct krcore_wc wcs[ENTRIES];
	struct krl_ring ring;
	struct page page;
	uint64_t i;

	(void)state;
	page_init(&page, 0);
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), ENTRIES), 0);
	assert_int_equal(krl_ring_ready(&ring), 0);
	assert_int_equal(krl_ring_take(&ring, wcs, ENTRIES), 0);
	for (i = 0; i < 5; i++)
		page_push(&page, i);
	assert_int_equal(krl_ring_ready(&ring), 1);
	assert_int_equal(krl_ring_take(&ring, wcs, 3), 3);
	assert_int_equal(page.ring.head, 3);
	assert_int_equal(krl_ring_take(&ring, wcs + 3, ENTRIES), 2);
	for (i = 0; i < 5; i++)
		check_wc(&wcs[i], i);
	assert_int_equal(krl_ring_take(&ring, wcs, 0), 0);
	assert_int_equal(krl_ring_ready(&ring), 0);
}

/* A full ring over the end of the array, with counters that wrap meanwhile. */
static void test_wrap(void **state)
{
	uint32_t start = UINT32_MAX - ENTRIES / 2 - 2;
	struct krcore_wc wcs[ENTRIES + 1];
	struct krl_ring ring;
	struct page page;
	uint64_t i, turn;

	(void)state;
	page_init(&page, start);
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), ENTRIES), 0);
	for (turn = 0; turn < 4; turn++) {
		for (i = 0; i < ENTRIES; i++)
			page_push(&page, 100 * turn + i);
		memset(wcs, 0xee, sizeof(wcs));
		assert_int_equal(krl_ring_take(&ring, wcs, ENTRIES + 1), ENTRIES);
		for (i = 0; i < ENTRIES; i++)
			check_wc(&wcs[i], 100 * turn + i);
		assert_int_equal(wcs[ENTRIES].user_data, 0xeeeeeeeeeeeeeeeeULL);
	}
	assert_int_equal(page.ring.head, (uint32_t)(start + 4 * ENTRIES));
}

static void test_nonsense(void **state)
{
	struct krl_ring ring = { .mask = 77 }, good;
	struct krcore_wc wc;
	struct page page;

	(void)state;
	page_init(&page, 0);
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page) - 1, ENTRIES), -EPROTO);
	assert_int_equal(krl_ring_init(&ring, &page, 64, ENTRIES), -EPROTO);
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), 2 * ENTRIES), -EPROTO);
	page.ring.entries = 15;
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), 15), -EPROTO);
	page.ring.entries = 0;
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), 0), -EPROTO);
	page.ring.entries = ENTRIES;
	page.ring.offset = 64;
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), ENTRIES), -EPROTO);
	page.ring.offset = sizeof(page.ring) + 4;
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), ENTRIES), -EPROTO);
	page.ring.offset = UINT32_MAX & ~7U;
	assert_int_equal(krl_ring_init(&ring, &page, sizeof(page), ENTRIES), -EPROTO);
	assert_int_equal(ring.mask, 77);

	page.ring.offset = offsetof(struct page, cqes);
	assert_int_equal(krl_ring_init(&good, &page, sizeof(page), ENTRIES), 0);
	page.ring.tail = ENTRIES + 1;
	assert_int_equal(krl_ring_take(&good, &wc, 1), -EPROTO);
	assert_int_equal(page.ring.head, 0);
}

#define THREADS 3
#define PER_RUN 200000U

struct race {
	struct page page;
	struct krl_ring ring;
	uint8_t *seen;
	uint32_t taken;
	int failed;
};

static void *race_take(void *arg)
{
	struct race *race = arg;
	struct krcore_wc wcs[5];
	uint64_t last = 0;
	int i, nr;

	while (__atomic_load_n(&race->taken, __ATOMIC_RELAXED) < PER_RUN) {
		nr = krl_ring_take(&race->ring, wcs, 5);
		if (nr < 0)
			goto wrong;
		for (i = 0; i < nr; i++) {
			uint64_t at = wcs[i].user_data;

			if (at <= last || at > PER_RUN || wcs[i].bytes != (uint32_t)at + 1 ||
			    __atomic_exchange_n(&race->seen[at - 1], 1, __ATOMIC_RELAXED))
				goto wrong;
			last = at;
		}
		__atomic_fetch_add(&race->taken, (uint32_t)nr, __ATOMIC_RELAXED);
		if (!nr)
			sched_yield();
	}
	return NULL;
wrong:
	__atomic_store_n(&race->failed, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&race->taken, PER_RUN, __ATOMIC_RELAXED);
	return NULL;
}

static void test_threads(void **state)
{
	struct race *race = calloc(1, sizeof(*race));
	pthread_t threads[THREADS];
	uint64_t next = 1;
	int i;

	(void)state;
	assert_non_null(race);
	race->seen = calloc(PER_RUN, 1);
	assert_non_null(race->seen);
	page_init(&race->page, UINT32_MAX - PER_RUN / 2);
	assert_int_equal(krl_ring_init(&race->ring, &race->page, sizeof(race->page), ENTRIES), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race_take, race), 0);
	while (next <= PER_RUN && !__atomic_load_n(&race->failed, __ATOMIC_RELAXED)) {
		uint32_t head = __atomic_load_n(&race->page.ring.head, __ATOMIC_ACQUIRE);

		if (race->page.ring.tail - head < ENTRIES)
			page_push(&race->page, next++);
		else
			sched_yield();
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(race->failed, 0);
	for (i = 0; i < (int)PER_RUN; i++)
		assert_int_equal(race->seen[i], 1);
	free(race->seen);
	free(race);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
