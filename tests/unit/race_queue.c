// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Queues of libkrcore, played: see race_queue.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/race_queue.h"
#include "tests/unit/wrap_poll.h"
#include "tests/unit/wrap_queue.h"

struct rq_queue rq;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	(void)clock;
	rq.ms++; /* so that whoever looks again and again comes to an end */
	ret_now->tv_sec = (time_t)(rq.ms / 1000);
	ret_now->tv_nsec = (long)(rq.ms % 1000 * 1000000);
	return 0;
}

void rq_begin(uint64_t bytes)
{
	rq = (struct rq_queue){ .memory = calloc(1, bytes), .bytes = bytes };
	assert_non_null(rq.memory);
}

void rq_end(void)
{
	assert_int_equal(rq.nodes, 0);
	free(rq.memory);
	rq.memory = NULL;
}

static struct krcore_node *rq_node(void)
{
	return (struct krcore_node *)&rq;
}

static struct krcore_mr rq_region(void *addr, size_t length, uint32_t access)
{
	struct krcore_mr *mr = &rq.regions[rq.nr_regions];

	assert_true(rq.nr_regions < RQ_REGIONS);
	*mr = (struct krcore_mr){
		.addr = (uintptr_t)addr,
		.length = length,
		.handle = RQ_HANDLE + rq.nr_regions++,
		.access = access,
	};
	return *mr;
}

int __wrap_krcore_start(const struct krcore_start_options *opts, struct krcore_started *ret_started)
{
	bool fresh = opts->flags & KRCORE_CONNECT_FRESH || !rq.remembered;

	rq.starts++;
	rq.start = *opts;
	rq.node = *opts->node;
	assert_int_equal(rq.nodes, 0); /* what failed before is closed by now */
	if (rq.start_err)
		return rq.start_err;
	rq.nodes = 1;
	rq.queue = RQ_QUEUE;
	rq.failed = false;
	*ret_started = (struct krcore_started){
		.size = sizeof(*ret_started),
		.node = rq_node(),
		.mr = rq_region(opts->memory, opts->length, opts->access),
		.remote = { RQ_ADDR, rq.bytes, fresh ? RQ_TOKEN : rq.remembered },
		.queue = rq.queue,
		.reads = fresh ? 2 : 0,
	};
	return 0;
}

void __wrap_krcore_node_close(struct krcore_node *node)
{
	assert_ptr_equal(node, rq_node());
	assert_int_equal(rq.nodes, 1);
	assert_int_equal(rq.nr_regions, 0); /* whose memory may still be written when it is freed */
	rq.nodes = 0;
}

int __wrap_krcore_queue_close(struct krcore_node *node, uint32_t queue)
{
	assert_ptr_equal(node, rq_node());
	assert_true(queue && queue == rq.queue);
	rq.queue = 0;
	rq.visible = rq.nr_wcs;
	rq.stuck = 0;
	return 0;
}

int __wrap_krcore_mr_dereg_many(struct krcore_node *node, const struct krcore_mr *mrs,
				unsigned int nr)
{
	unsigned int i;

	assert_ptr_equal(node, rq_node());
	assert_int_equal(nr, rq.nr_regions);
	for (i = 0; i < nr; i++)
		assert_int_equal(mrs[i].handle, RQ_HANDLE + i);
	rq.nr_regions = 0;
	return (int)nr;
}

int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr)
{
	assert_ptr_equal(node, rq_node());
	rq.regs++;
	if (!rq.reg_err)
		*ret_mr = rq_region(addr, length, access);
	return rq.reg_err;
}

int __wrap_krcore_queue_open(struct krcore_node *node, uint32_t depth,
			     const struct krcore_key *peer, uint32_t timeout_ms, uint32_t flags,
			     uint32_t *ret_queue, struct krcore_connect_info *ret_info)
{
	(void)ret_info;
	assert_ptr_equal(node, rq_node());
	assert_int_equal(rq.queue, 0);
	assert_int_equal(depth, rq.start.depth);
	assert_int_equal(flags, 0);
	rq.opens++;
	rq.peer = *peer;
	rq.timeout_ms = timeout_ms;
	if (rq.connect_err)
		return rq.connect_err;
	rq.failed = false;
	rq.queue = RQ_QUEUE + rq.opens;
	*ret_queue = rq.queue;
	return 0;
}

int __wrap_krcore_queue_connect(struct krcore_node *node, uint32_t queue,
				const struct krcore_key *key, uint32_t timeout_ms, uint32_t flags,
				struct krcore_connect_info *ret_info)
{
	(void)ret_info;
	assert_ptr_equal(node, rq_node());
	assert_true(queue && queue == rq.queue);
	assert_int_equal(flags, 0);
	rq.connects++;
	rq.peer = *key;
	rq.timeout_ms = timeout_ms;
	if (rq.connect_err)
		return rq.connect_err;
	if (!rq.failed)
		return -EISCONN;
	rq.failed = false;
	return 0;
}

static void rq_do(const struct krcore_wr *wr)
{
	uint8_t *remote = rq.memory + (wr->remote_addr - RQ_ADDR);
	void *local = (void *)(uintptr_t)wr->local_addr;
	uint64_t word;

	switch (wr->opcode) {
	case KRCORE_OP_READ:
		memcpy(local, remote, wr->length);
		return;
	case KRCORE_OP_WRITE:
		memcpy(remote, local, wr->length);
		return;
	default:
		memcpy(&word, remote, sizeof(word));
		memcpy(local, &word, sizeof(word));
		if (wr->opcode == KRCORE_OP_FETCH_ADD)
			word += wr->compare_add;
		else if (word == wr->compare_add)
			word = wr->swap;
		memcpy(remote, &word, sizeof(word));
	}
}

/* A request is what the module takes: in a region of this node, and in that of the peer. */
static void rq_check(const struct krcore_wr *wr)
{
	const struct krcore_mr *mr = &rq.regions[wr->local_mr - RQ_HANDLE];

	assert_in_range(wr->local_mr, RQ_HANDLE, RQ_HANDLE + rq.nr_regions - 1);
	assert_in_range(wr->local_addr, mr->addr, mr->addr + mr->length - wr->length);
	assert_true(mr->access & KRCORE_ACCESS_LOCAL_WRITE);
	assert_in_range(wr->remote_addr, RQ_ADDR, RQ_ADDR + rq.bytes - wr->length);
	if (wr->opcode == KRCORE_OP_CMP_SWAP || wr->opcode == KRCORE_OP_FETCH_ADD) {
		assert_int_equal(wr->length, 8);
		assert_int_equal(wr->remote_addr % 8, 0);
	}
}

static int rq_one(const struct krcore_wr *wr)
{
	if (rq.requests < RQ_LOG)
		rq.log[rq.requests] = *wr;
	rq.requests++;
	if (rq.stuck_at && rq.requests >= rq.stuck_at)
		rq.stuck++;
	if (rq.failed || rq.stuck)
		return -ECANCELED;
	if (rq.requests != rq.fail_at && wr->remote_token == RQ_TOKEN) {
		rq_do(wr);
		return 0;
	}
	rq.failed = true;
	if (wr->remote_token != RQ_TOKEN)
		return -EREMOTEIO;
	if (rq.fail_done)
		rq_do(wr);
	return rq.fail_status;
}

int __wrap_krcore_post_wait(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
			    unsigned int nr, int *ret_error)
{
	unsigned int most = rq.take && rq.take < nr ? rq.take : nr, taken;

	assert_ptr_equal(node, rq_node());
	assert_true(queue && queue == rq.queue);
	assert_null(ret_error);
	assert_in_range(nr, 1, RQ_LOG);
	assert_int_equal(rq.nr_wcs, 0); /* all completions were taken */
	rq.posts++;
	rq.ms += rq.post_ms;
	if (rq.failed)
		return -ENOTCONN;
	if (wrs->remote_token != RQ_TOKEN && !rq.late_refusal)
		return -EBADR;
	for (taken = 0; taken < most && rq.requests + 1 != rq.refuse_at; taken++) {
		rq_check(&wrs[taken]);
		rq.wcs[rq.nr_wcs++] = (struct krcore_wc){
			.user_data = wrs[taken].user_data,
			.status = rq_one(&wrs[taken]),
			.queue = rq.queue,
			.opcode = wrs[taken].opcode,
		};
	}
	rq.visible = rq.late ? 0 : rq.nr_wcs - rq.stuck;
	if (taken)
		return (int)taken;
	rq.refuse_at = 0;
	return rq.refuse_err;
}

int __wrap_krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr)
{
	unsigned int taken = nr < rq.visible ? nr : rq.visible;

	assert_ptr_equal(node, rq_node());
	if (rq.poll_err)
		return rq.poll_err;
	memcpy(wcs, rq.wcs, taken * sizeof(*wcs));
	rq.nr_wcs -= taken;
	rq.visible -= taken;
	memmove(rq.wcs, rq.wcs + taken, rq.nr_wcs * sizeof(*wcs));
	return (int)taken;
}

int __wrap_krcore_wait(struct krcore_node *node, int timeout_ms)
{
	assert_ptr_equal(node, rq_node());
	assert_true(timeout_ms > 0);
	assert_true(rq.nr_wcs > rq.visible); /* it would last for ever */
	rq.waited++;
	if (rq.waits && *rq.waits)
		return *rq.waits++;
	if (rq.nr_wcs - rq.visible == rq.stuck) {
		rq.ms += (unsigned int)timeout_ms;
		assert_true(rq.ms < RQ_LATE_MS);
		return -ETIMEDOUT;
	}
	rq.visible++;
	return 0;
}
