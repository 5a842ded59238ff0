// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The lock of the stress of queues, with clients that are threads and a peer that is memory:
 * requests that fail as krcore(4) says are no trouble, and each thing that it says does not
 * happen is found.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/module/stress_lock.h"
#include "tests/unit/wrap_queue.h"

#define CLIENTS 4
#define FAILS_OF 24 /* one request in so many fails */
#define LATE_MAX 64
#define LATE_POSTS 20 /* after so many others, what was late is done */
#define NODE_WCS 16
#define WAY_US 100 /* to the peer */
#define FIND_MS 60000 /* for what is wrong to be found; a second is much */

/* What is wrong with the peer. */
enum fault {
	NOTHING,
	LATE, /* what has failed is done all the same, later */
	TWICE, /* an atomic is done twice */
	CANCELLED, /* what is cancelled has been done */
	BACKWARDS, /* the last request of some is done first */
	CARELESS, /* nothing, and nothing fails: the clients are */
};

struct krcore_node {
	bool connected;
	unsigned int head, tail;
	struct krcore_wc wcs[NODE_WCS];
};

struct late {
	struct krcore_wr wr;
	uint64_t value; /* of a WRITE of a word */
	uint64_t due;
};

static struct {
	pthread_mutex_t lock;
	enum fault fault;
	uint64_t random;
	uint64_t posts;
	uint64_t block[ST_LOCK_WORDS];
	struct late late[LATE_MAX];
	unsigned int nr_late;
} peer;

int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node)
{
	assert_null(opts);
	*ret_node = calloc(1, sizeof(**ret_node));
	return *ret_node ? 0 : -ENOMEM;
}

void __wrap_krcore_node_close(struct krcore_node *node)
{
	free(node);
}

int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr)
{
	(void)node;
	*ret_mr = (struct krcore_mr){
		.addr = (uintptr_t)addr,
		.length = length,
		.handle = 1,
		.access = access,
	};
	return 0;
}

int __wrap_krcore_queue_create(struct krcore_node *node, uint32_t depth, uint32_t *ret_queue)
{
	(void)node;
	assert_true(depth <= NODE_WCS);
	*ret_queue = 1;
	return 0;
}

int __wrap_krcore_queue_connect(struct krcore_node *node, uint32_t queue,
				const struct krcore_key *key, uint32_t timeout_ms, uint32_t flags,
				struct krcore_connect_info *ret_info)
{
	(void)queue;
	(void)key;
	(void)timeout_ms;
	(void)flags;
	(void)ret_info;
	if (node->connected)
		return -EISCONN;
	node->connected = true;
	return 0;
}

/* the peer, locked */

static uint64_t *peer_word(const struct krcore_wr *wr)
{
	uint64_t at = wr->remote_addr - ST_LOCK_OFFSET;

	assert_true(at + wr->length <= sizeof(peer.block) && !(at % 8));
	return peer.block + at / 8;
}

/* Do @bytes of a request, all of it or less. */
static void peer_do(const struct krcore_wr *wr, size_t bytes)
{
	void *local = (void *)(uintptr_t)wr->local_addr;
	uint64_t *word = peer_word(wr), old = *word;

	if (wr->opcode == KRCORE_OP_READ) {
		memcpy(local, word, bytes);
	} else if (wr->opcode == KRCORE_OP_WRITE) {
		memcpy(word, local, bytes);
	} else {
		if (old == wr->compare_add)
			*word = wr->swap;
		memcpy(local, &old, sizeof(old));
	}
}

static void peer_late_put(const struct krcore_wr *wr)
{
	struct late *late = &peer.late[peer.nr_late];

	if (peer.nr_late == LATE_MAX || wr->opcode == KRCORE_OP_READ || wr->length != 8)
		return;
	late->wr = *wr;
	memcpy(&late->value, (void *)(uintptr_t)wr->local_addr, 8);
	late->due = peer.posts + LATE_POSTS;
	peer.nr_late++;
}

static void peer_late_do(void)
{
	uint64_t scratch;
	unsigned int i;

	for (i = 0; i < peer.nr_late; i++) {
		struct late *late = &peer.late[i];

		if (late->due > peer.posts)
			continue;
		scratch = late->value;
		late->wr.local_addr = (uintptr_t)&scratch;
		peer_do(&late->wr, 8);
		*late = peer.late[--peer.nr_late];
		i--;
	}
}

/* One request that is to fail. Return: what with. */
static int peer_fail(const struct krcore_wr *wr)
{
	static const int errors[] = { -ETIMEDOUT, -EREMCHG, -ENODEV, -ETIMEDOUT };
	int error = errors[st_random(&peer.random, 4)];
	uint64_t kind = st_random(&peer.random, 3);

	if (error == -EREMCHG && wr->opcode == KRCORE_OP_READ)
		error = -ETIMEDOUT;
	if (kind == 0)
		peer_do(wr, wr->length);
	else if (kind == 1 && wr->opcode == KRCORE_OP_WRITE)
		peer_do(wr, 8 * st_random(&peer.random, wr->length / 8));
	else if (peer.fault == LATE)
		peer_late_put(wr);
	return error;
}

/* Return: status. */
static int peer_ask(const struct krcore_wr *wr, int error)
{
	int status = 0;

	pthread_mutex_lock(&peer.lock);
	peer.posts++;
	peer_late_do();
	if (error) {
		status = error == -ENODEV ? -ENODEV : -ECANCELED;
		if (peer.fault == CANCELLED && status == -ECANCELED)
			peer_do(wr, wr->length);
	} else if (peer.fault != CARELESS && !st_random(&peer.random, FAILS_OF)) {
		status = peer_fail(wr);
	} else {
		peer_do(wr, wr->length);
		if (peer.fault == TWICE && wr->opcode == KRCORE_OP_CMP_SWAP)
			peer_do(wr, wr->length);
	}
	pthread_mutex_unlock(&peer.lock);
	return status;
}

int __wrap_krcore_post(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		       unsigned int nr, int *ret_error)
{
	bool backwards = peer.fault == BACKWARDS && nr > 1;
	unsigned int i;
	int error = 0;

	if (!node->connected)
		return -ENOTCONN;
	assert_true(node->head == node->tail && nr <= NODE_WCS);
	usleep(WAY_US);
	if (backwards) {
		pthread_mutex_lock(&peer.lock);
		peer_do(&wrs[nr - 1], wrs[nr - 1].length);
		pthread_mutex_unlock(&peer.lock);
		usleep(2000);
	}
	node->head = 0;
	for (i = 0; i < nr; i++) {
		int status = backwards && i == nr - 1 && !error ? 0 : peer_ask(&wrs[i], error);

		node->wcs[i] = (struct krcore_wc){
			.user_data = wrs[i].user_data,
			.status = status,
			.bytes = status ? 0 : wrs[i].length,
			.queue = queue,
			.opcode = wrs[i].opcode,
		};
		error = error ? error : status;
	}
	node->tail = nr;
	node->connected = !error;
	*ret_error = 0;
	return (int)nr;
}

int __wrap_krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr)
{
	assert_int_equal(nr, 1);
	if (node->head == node->tail)
		return 0;
	*wcs = node->wcs[node->head++];
	return 1;
}

int __wrap_krcore_wait(struct krcore_node *node, int timeout_ms)
{
	(void)timeout_ms;
	return node->head == node->tail ? -ETIMEDOUT : 0;
}

/* runs */

struct lock_client {
	pthread_t thread;
	struct st_lock_run *run;
	unsigned int number;
};

static void *client_thread(void *arg)
{
	struct lock_client *client = arg;

	st_lock_client(client->run, client->number);
	return NULL;
}

/* Sums of all clients but in @last, which is the greatest. */
static struct st_lock_counts go(enum fault fault, unsigned int ms)
{
	static struct st_lock_run run;
	struct lock_client clients[CLIENTS];
	struct st_lock_counts sum = { 0 };
	unsigned int i;

	peer.fault = fault;
	peer.nr_late = 0;
	memset(peer.block, 0, sizeof(peer.block));
	run = (struct st_lock_run){
		.peer.region.length = ST_REGION_BYTES,
		.seed = 1,
		.end_ms = st_now_ms() + ms,
		.first = 1,
		.pause_us = 50,
		.careless = fault == CARELESS,
	};
	for (i = 0; i < CLIENTS; i++) {
		clients[i] = (struct lock_client){ .run = &run, .number = i };
		assert_int_equal(
			pthread_create(&clients[i].thread, NULL, client_thread, &clients[i]), 0);
	}
	for (i = 0; i < CLIENTS; i++) {
		const struct st_lock_counts *c = &run.counts[i];

		pthread_join(clients[i].thread, NULL);
		sum.taken += c->taken;
		sum.doubted += c->doubted;
		sum.doubted_gives += c->doubted_gives;
		sum.done += c->done;
		sum.undone += c->undone;
		sum.opens += c->opens;
		sum.violations += c->violations;
		sum.last = c->last > sum.last ? c->last : sum.last;
	}
	return sum;
}

static void test_requests_may_fail(void **state)
{
	struct st_lock_counts sum;
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++) { /* until all has happened, on a machine that has little time */
		sum = go(NOTHING, 2000);
		assert_int_equal(sum.violations, 0);
		if (sum.doubted && sum.doubted_gives && sum.done && sum.undone)
			break;
	}
	assert_true(sum.taken > 20);
	assert_true(sum.doubted && sum.doubted_gives && sum.done && sum.undone);
	assert_true(sum.opens > CLIENTS);
	/* each time that the lock was owned has been counted, once */
	assert_int_equal(sum.taken, sum.last);
	assert_int_equal(peer.block[ST_LOCK_COUNT], sum.last);
	assert_int_equal(peer.block[ST_LOCK_OWNER], 0);
}

static void test_what_comes_late_is_found(void **state)
{
	(void)state;
	assert_true(go(LATE, FIND_MS).violations);
}

static void test_an_atomic_done_twice_is_found(void **state)
{
	(void)state;
	assert_true(go(TWICE, FIND_MS).violations);
}

static void test_what_is_done_and_cancelled_is_found(void **state)
{
	(void)state;
	assert_true(go(CANCELLED, FIND_MS).violations);
}

static void test_another_order_is_found(void **state)
{
	(void)state;
	assert_true(go(BACKWARDS, FIND_MS).violations);
}

static void test_two_owners_are_found(void **state)
{
	(void)state;
	assert_true(go(CARELESS, FIND_MS).violations);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_may_fail),
		cmocka_unit_test(test_what_comes_late_is_found),
		cmocka_unit_test(test_an_atomic_done_twice_is_found),
		cmocka_unit_test(test_what_is_done_and_cancelled_is_found),
		cmocka_unit_test(test_another_order_is_found),
		cmocka_unit_test(test_two_owners_are_found),
	};

	return pthread_mutex_init(&peer.lock, NULL) || cmocka_run_group_tests(tests, NULL, NULL);
}
