// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The transport over queues: that it keeps what race/lib/transport.h promises, whatever a queue
 * takes, refuses and fails. The library's functions are played.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "race/lib/client.h"
#include "race/lib/krcore.h"
#include "tests/unit/race_queue.h"

#define BYTES 4096
#define NR 10
#define NOT_DONE (-ECANCELED)

static struct kr_transport *transport(void)
{
	struct kr_transport *t;
	uint32_t reads;

	assert_int_equal(kr_krcore_open(RQ_PEER, 4711, 0, 1234, 0, &reads, &t), 0);
	return t;
}

static void end(struct kr_transport *t)
{
	t->ops->close(t);
	rq_end();
}

/* WRITE words, one a request: request @i puts @first + @i into word @i. */
static void writes(uint64_t *local, uint64_t first, struct kr_req *reqs, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		local[i] = first + i;
		reqs[i] = (struct kr_req){
			.op = KR_WRITE, .length = 8, .remote = i * 8, .local = &local[i]
		};
	}
}

/* A new world, a transport, and WRITEs of the words 50, 51, ... in its memory. */
static struct kr_transport *begin_writes(struct kr_req *reqs, unsigned int nr)
{
	struct kr_transport *t;

	rq_begin(BYTES);
	t = transport();
	writes(t->ops->memory(t, nr * sizeof(uint64_t)), 50, reqs, nr);
	return t;
}

/* The first @done words are what writes() has put there, the others are 0. */
static void check_words(uint64_t first, unsigned int done)
{
	uint64_t word;
	unsigned int i;

	for (i = 0; i < NR; i++) {
		memcpy(&word, rq.memory + i * sizeof(word), sizeof(word));
		assert_int_equal(word, i < done ? first + i : 0);
	}
}

static void check_status(const struct kr_req *reqs, const int *want, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		assert_int_equal(reqs[i].status, want[i]);
}

static void test_open(void **state)
{
	struct krcore_key peer;
	struct kr_transport *t;
	uint32_t reads = 77;

	(void)state;
	assert_int_equal(krcore_key_from_text(RQ_PEER, KRCORE_SERVICE_NODE, &peer), 0);
	rq_begin(BYTES);
	rq.start_err = -ENETUNREACH;
	assert_int_equal(kr_krcore_open(RQ_PEER, 4711, 3, 1234, 0, &reads, &t), -ENETUNREACH);
	assert_int_equal(reads, 77);
	rq.start_err = 0;
	assert_int_equal(kr_krcore_open("192.0.2", 4711, 3, 1234, 0, &reads, &t), -EINVAL);
	assert_int_equal(rq.starts, 1);
	assert_int_equal(kr_krcore_open(RQ_PEER, 4711, 3, 1234, KRCORE_CONNECT_FRESH, &reads, &t),
			 0);
	assert_int_equal(reads, 2);
	assert_int_equal(t->bytes, BYTES);
	assert_int_equal(rq.start.record, 4711);
	assert_memory_equal(&rq.start.peer, &peer, sizeof(peer));
	assert_int_equal(rq.start.timeout_ms, 1234);
	assert_int_equal(rq.start.flags, KRCORE_CONNECT_FRESH);
	assert_true(rq.start.depth >= KR_BATCH_MAX); /* a batch fits in */
	assert_int_equal(rq.start.nr, 0);
	assert_int_equal(rq.node.port, 3);
	assert_int_equal(rq.connects, 0);
	end(t);
}

/* Each kind, with what the peer's region then has. */
static void test_kinds(void **state)
{
	struct kr_req reqs[4] = {
		{ .op = KR_WRITE, .length = 16, .remote = 32 },
		{ .op = KR_CAS, .length = 8, .remote = 32, .compare = 100, .swap = 200 },
		{ .op = KR_ADD, .length = 8, .remote = 40, .compare = 5 },
		{ .op = KR_READ, .length = 16, .remote = 32 },
	};
	static const uint8_t opcodes[] = { KRCORE_OP_WRITE, KRCORE_OP_CMP_SWAP, KRCORE_OP_FETCH_ADD,
					   KRCORE_OP_READ };
	static const uint64_t want[] = { 100, 11, 100, 0, 11, 0, 200, 16 };
	struct kr_transport *t;
	uint64_t *local;
	unsigned int i;

	(void)state;
	rq_begin(BYTES);
	t = transport();
	local = t->ops->memory(t, 4 * 16);
	local[0] = 100;
	local[1] = 11;
	for (i = 0; i < 4; i++)
		reqs[i].local = &local[2 * (size_t)i];
	assert_int_equal(t->ops->submit(t, reqs, 4), 0);
	assert_memory_equal(local, want, sizeof(want));
	assert_int_equal(rq.posts, 1);
	for (i = 0; i < 4; i++) {
		assert_int_equal(reqs[i].status, 0);
		assert_int_equal(rq.log[i].opcode, opcodes[i]);
		assert_int_equal(rq.log[i].flags, 0); /* a WRITE twice is not the same here */
		assert_int_equal(rq.log[i].remote_addr, RQ_ADDR + reqs[i].remote);
		assert_int_equal(rq.log[i].remote_token, RQ_TOKEN);
		assert_int_equal(rq.log[i].local_mr, RQ_HANDLE);
	}
	/* a word that is not the one expected stays */
	reqs[1].compare = 201;
	assert_int_equal(t->ops->submit(t, &reqs[1], 1), 0);
	assert_int_equal(local[2], 200);
	assert_memory_equal(rq.memory + 32, &local[2], sizeof(local[2]));
	assert_int_equal(rq.connects, 0);
	end(t);
}

/* What is not taken is posted again, in order, until all are done. */
static void test_taken_in_part(void **state)
{
	struct kr_req reqs[NR];
	struct kr_transport *t;
	unsigned int i;

	(void)state;
	t = begin_writes(reqs, NR);
	rq.take = 3;
	assert_int_equal(t->ops->submit(t, reqs, NR), 0);
	assert_int_equal(rq.posts, 4);
	assert_int_equal(rq.requests, NR);
	check_words(50, NR);
	for (i = 0; i < NR; i++) {
		assert_int_equal(reqs[i].status, 0);
		assert_int_equal(rq.log[i].remote_addr, RQ_ADDR + i * 8);
	}
	assert_int_equal(rq.connects, 0);
	end(t);
}

/* One fails: those before it are done, those after it are not, taken or not. */
static void test_one_fails(void **state)
{
	static const int want[] = { 0, 0, 0, -EREMCHG, NOT_DONE, NOT_DONE, NOT_DONE };
	struct kr_req reqs[7];
	struct kr_transport *t;
	unsigned int take;

	(void)state;
	for (take = 0; take < 5; take++) {
		t = begin_writes(reqs, 7);
		rq.take = take;
		rq.fail_at = 4;
		rq.fail_status = -EREMCHG;
		assert_int_equal(t->ops->submit(t, reqs, 7), -EREMCHG);
		check_status(reqs, want, 7);
		check_words(50, 3);
		/* nothing was posted after the failure was known */
		assert_int_equal(rq.posts, take ? (4 + take - 1) / take : 1);
		assert_int_equal(rq.connects, 0);
		end(t);
	}
}

/* One is refused: it and all after it are not done. */
static void test_one_is_refused(void **state)
{
	static const int some[] = { 0, 0, NOT_DONE, NOT_DONE };
	static const int none[] = { NOT_DONE, NOT_DONE, NOT_DONE, NOT_DONE };
	struct kr_req reqs[4];
	struct kr_transport *t;

	(void)state;
	t = begin_writes(reqs, 4);
	rq.refuse_at = 1;
	rq.refuse_err = -EDQUOT;
	assert_int_equal(t->ops->submit(t, reqs, 4), -EDQUOT);
	check_status(reqs, none, 4);
	check_words(0, 0);
	rq.refuse_at = 3;
	assert_int_equal(t->ops->submit(t, reqs, 4), -EDQUOT);
	check_status(reqs, some, 4);
	check_words(50, 2);
	/* the queue is as it was: connecting says so, and that is no failure */
	assert_int_equal(t->ops->submit(t, reqs, 4), 0);
	check_words(50, 4);
	assert_int_equal(rq.connects, 2);
	end(t);
}

/* The batch after a failure connects again, to the node of the table; the one after that does not. */
static void test_connects_again(void **state)
{
	struct krcore_key peer;
	struct kr_req reqs[3];
	struct kr_transport *t;

	(void)state;
	assert_int_equal(krcore_key_from_text(RQ_PEER, KRCORE_SERVICE_NODE, &peer), 0);
	t = begin_writes(reqs, 3);
	rq.fail_at = 1;
	rq.fail_status = -ETIMEDOUT;
	assert_int_equal(t->ops->submit(t, reqs, 3), -ETIMEDOUT);
	assert_int_equal(rq.connects, 0);
	assert_int_equal(t->ops->submit(t, reqs, 3), 0);
	assert_int_equal(rq.connects, 1);
	assert_memory_equal(&rq.peer, &peer, sizeof(peer));
	assert_int_equal(rq.timeout_ms, 1234);
	check_words(50, 3);
	assert_int_equal(t->ops->submit(t, reqs, 3), 0);
	assert_int_equal(rq.connects, 1);
	assert_int_equal(rq.posts, 3);
	end(t);
}

/* However long a look-up may take at first, a batch that connects again is over in late_ms. */
static void test_ends_in_time(void **state)
{
	struct kr_req req;
	struct kr_transport *t;
	uint32_t reads;

	(void)state;
	rq_begin(BYTES);
	assert_int_equal(kr_krcore_open(RQ_PEER, 4711, 0, 60000, 0, &reads, &t), 0);
	assert_int_equal(rq.start.timeout_ms, 60000);
	writes(t->ops->memory(t, 8), 50, &req, 1);
	rq.fail_at = 1;
	rq.fail_status = -ETIMEDOUT;
	assert_int_equal(t->ops->submit(t, &req, 1), -ETIMEDOUT);
	assert_int_equal(t->ops->submit(t, &req, 1), 0);
	assert_int_equal(rq.connects, 1);
	assert_in_range(rq.timeout_ms, 1, 5000);
	/* with the READ of the peer's directory, and what the NIC tries by itself */
	assert_true(t->late_ms >= rq.timeout_ms + 60000 + 9000);
	end(t);
}

/*
 * As long as it cannot be connected nothing is done, and each batch tries. That nobody knows the node
 * any more is no answer about a key.
 */
static void test_cannot_connect(void **state)
{
	static const int errs[] = { -ENETUNREACH, -ENOENT, -ENETUNREACH };
	static const int none[] = { NOT_DONE, NOT_DONE, NOT_DONE };
	struct kr_req reqs[3];
	struct kr_transport *t;
	unsigned int i;

	(void)state;
	t = begin_writes(reqs, 3);
	rq.fail_at = 1;
	rq.fail_status = -ETIMEDOUT;
	assert_int_equal(t->ops->submit(t, reqs, 3), -ETIMEDOUT);
	for (i = 1; i < 4; i++) {
		rq.connect_err = errs[i - 1];
		assert_int_equal(t->ops->submit(t, reqs, 3), -ENETUNREACH);
		check_status(reqs, none, 3);
		assert_int_equal(rq.connects, i);
	}
	assert_int_equal(rq.posts, 1);
	check_words(0, 0);
	rq.connect_err = 0;
	assert_int_equal(t->ops->submit(t, reqs, 3), 0);
	check_words(50, 3);
	end(t);
}

/* Completions that come one by one, with signals and long silence in between. */
static void test_late(void **state)
{
	static const int waits[] = { -EINTR, -ETIMEDOUT, -ETIMEDOUT, 0 };
	static const int want[] = { 0, 0, 0, -EREMCHG, NOT_DONE };
	struct kr_req reqs[5];
	struct kr_transport *t;

	(void)state;
	t = begin_writes(reqs, 5);
	rq.late = true;
	rq.waits = waits;
	assert_int_equal(t->ops->submit(t, reqs, 5), 0);
	assert_int_equal(rq.waited, 3 + 5);
	check_words(50, 5);
	rq.fail_at = rq.requests + 4;
	rq.fail_status = -EREMCHG;
	assert_int_equal(t->ops->submit(t, reqs, 5), -EREMCHG);
	check_status(reqs, want, 5);
	end(t);
}

/* The node fails while some are under way: these were done or not, the others were not. */
static void test_node_fails(void **state)
{
	static const int waits[] = { -ENODEV, 0 };
	static const int unknown[] = { -EREMCHG, -EREMCHG, NOT_DONE, NOT_DONE };
	struct kr_req reqs[4];
	struct kr_transport *t;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		t = begin_writes(reqs, 4);
		rq.take = 2;
		rq.late = true;
		if (i)
			rq.poll_err = -EPROTO;
		else
			rq.waits = waits;
		assert_int_equal(t->ops->submit(t, reqs, 4), i ? -EPROTO : -ENODEV);
		check_status(reqs, unknown, 4);
		assert_int_equal(rq.posts, 1);
		end(t);
	}
}

/*
 * What was taken and does not begin, because the peer does not answer or others are before it, is taken
 * back in time: with a connection of 5 s before, and 9 s of the NIC's own afterwards.
 */
static void test_some_never_begin(void **state)
{
	static const int want[] = { 0, 0, NOT_DONE, NOT_DONE };
	static const unsigned int post_ms[] = { 0, 60000 };
	struct kr_req reqs[4];
	struct kr_transport *t;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		t = begin_writes(reqs, 4);
		rq.stuck_at = 3;
		rq.post_ms = post_ms[i];
		assert_int_equal(t->ops->submit(t, reqs, 4), -ETIMEDOUT);
		assert_in_range(rq.ms, 30000, t->late_ms - 5000 - 9000);
		check_status(reqs, want, 4);
		check_words(50, 2);
		/* and the next batch has another queue, as soon as there can be one */
		rq.stuck_at = 0;
		rq.post_ms = 0;
		rq.connect_err = -ENOENT;
		assert_int_equal(t->ops->submit(t, reqs, 4), -ENETUNREACH);
		rq.connect_err = 0;
		assert_int_equal(t->ops->submit(t, reqs, 4), 0);
		check_words(50, 4);
		assert_int_equal(rq.opens, 2);
		assert_int_equal(rq.connects, 0);
		end(t);
	}
}

/* A queue that was closed in vain is not closed again. */
static void test_closes_once(void **state)
{
	struct kr_req req;
	struct kr_transport *t;

	(void)state;
	t = begin_writes(&req, 1);
	rq.stuck_at = 1;
	assert_int_equal(t->ops->submit(t, &req, 1), -ETIMEDOUT);
	assert_int_equal(rq.queue, 0);
	end(t);
	assert_int_equal(rq.opens, 0);
}

/* Requests in each piece of memory name its region; there are only so many. */
static void test_memory(void **state)
{
	static const size_t sizes[] = { KR_CLIENT_BYTES, 100, 4097, KR_CHUNK_BYTES };
	static const size_t rooms[] = { KR_CLIENT_BYTES, 4096, 8192, KR_CHUNK_BYTES };
	struct kr_req req = { .op = KR_WRITE, .length = 8 };
	struct kr_transport *t;
	uint8_t *piece;
	size_t i, k;

	(void)state;
	rq_begin(BYTES);
	t = transport();
	for (i = 0; i < 4; i++) {
		piece = t->ops->memory(t, sizes[i]);
		assert_non_null(piece);
		assert_int_equal(rq.regs, i); /* the first came with krcore_start() */
		assert_ptr_equal((uint8_t *)(uintptr_t)rq.regions[i].addr, piece);
		assert_int_equal(rq.regions[i].length, rooms[i]);
		assert_int_equal((uintptr_t)piece % 4096, 0);
		for (k = 0; k < rooms[i]; k++)
			assert_int_equal(piece[k], 0);
		memset(piece, 0xa5, rooms[i]);
	}
	for (i = 0; i < 4; i++) {
		piece = (uint8_t *)(uintptr_t)rq.regions[i].addr;
		for (k = 0; k < 2; k++) { /* both ends of it */
			req.local = piece + k * (rooms[i] - 8);
			assert_int_equal(t->ops->submit(t, &req, 1), 0);
			assert_int_equal(rq.log[2 * i + k].local_mr, RQ_HANDLE + i);
		}
	}
	while (t->ops->memory(t, 1))
		assert_in_range(rq.nr_regions, 1, 8);
	assert_int_equal(rq.nr_regions, 8);
	assert_int_equal(rq.regs, 7);
	end(t);
}

/* What is larger than the first piece does not use it up; what cannot be registered is no piece. */
static void test_memory_fails(void **state)
{
	struct kr_transport *t;
	uint8_t *piece;

	(void)state;
	rq_begin(BYTES);
	t = transport();
	piece = t->ops->memory(t, KR_CLIENT_BYTES + 1);
	assert_ptr_equal(piece, (uint8_t *)(uintptr_t)rq.regions[1].addr);
	assert_int_equal(rq.regs, 1);
	piece = t->ops->memory(t, 8);
	assert_ptr_equal(piece, (uint8_t *)(uintptr_t)rq.regions[0].addr);
	assert_int_equal(rq.regs, 1);
	rq.reg_err = -ENOMEM;
	assert_null(t->ops->memory(t, 8));
	rq.reg_err = 0;
	assert_non_null(t->ops->memory(t, 8));
	assert_int_equal(rq.nr_regions, 3);
	end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_taken_in_part),
		cmocka_unit_test(test_one_fails),
		cmocka_unit_test(test_one_is_refused),
		cmocka_unit_test(test_connects_again),
		cmocka_unit_test(test_ends_in_time),
		cmocka_unit_test(test_cannot_connect),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_node_fails),
		cmocka_unit_test(test_some_never_begin),
		cmocka_unit_test(test_closes_once),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
