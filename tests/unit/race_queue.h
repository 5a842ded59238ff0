/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What of libkrcore a client of a table calls, played over memory of this process, for tests that
 * are linked with --wrap of it, and of the clock: one node, one queue, one region of a peer, RQ_PEER. Requests are
 * done when they are posted; a test says which of them is refused or fails, and how completions
 * come.
 */
#ifndef KRC_TESTS_UNIT_RACE_QUEUE_H
#define KRC_TESTS_UNIT_RACE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <krcore/queue.h>

#define RQ_PEER "192.0.2.7"
#define RQ_QUEUE 5 /* the first; the next ones follow */
#define RQ_ADDR 0x7700000000ULL /* of the region, as its owner sees it */
#define RQ_TOKEN 0x123400000001ULL
#define RQ_OLD_TOKEN 0x123300000001ULL /* of a region that the peer does not have any more */
#define RQ_HANDLE 40 /* of the first region here; the next ones follow */
#define RQ_REGIONS 16
#define RQ_LOG 64
#define RQ_LATE_MS 3600000 /* a wait in vain that ends later than that would never end */

/**
 * struct rq_queue - What a test says, and what it sees.
 * @memory: the peer's region.
 * @bytes: its size.
 * @remembered: the node remembers a region with this token; 0: it looks it up.
 * @start_err: krcore_start() fails so.
 * @reg_err: krcore_mr_reg() fails so.
 * @connect_err: krcore_queue_connect() fails so.
 * @take: so many requests of a post are taken at most; 0: all.
 * @refuse_at: the request, from 1, that is not taken, once, with @refuse_err.
 * @refuse_err: see there.
 * @fail_at: the request that fails with @fail_status, and so does its queue.
 * @fail_status: see there.
 * @fail_done: it is done nevertheless.
 * @late_refusal: a peer's old token is noticed by the peer, not by this node.
 * @poll_err: krcore_poll() fails so.
 * @late: a completion comes with a krcore_wait() each.
 * @stuck_at: from this request on none begins before its queue is closed; 0: all do.
 * @post_ms: how long each krcore_post_wait() lasts.
 * @waits: what the next calls of krcore_wait() return, up to a 0.
 * @starts: calls of krcore_start().
 * @regs: calls of krcore_mr_reg().
 * @opens: calls of krcore_queue_open().
 * @connects: calls of krcore_queue_connect().
 * @posts: calls of krcore_post_wait().
 * @waited: calls of krcore_wait().
 * @nodes: open ones.
 * @requests: taken so far.
 * @ms: what all clocks say; they go on by 1 when they are looked at, and by waiting.
 * @queue: number of the queue, 0 if it is closed.
 * @failed: it is in error.
 * @start: options of the last krcore_start().
 * @node: those of its node.
 * @peer: to whom it was connected last.
 * @timeout_ms: with which bound.
 * @log: the first requests that were taken.
 * @regions: of this node.
 * @nr_regions: how many.
 * @wcs: completions that were not taken yet.
 * @nr_wcs: how many.
 * @stuck: how many of them are of requests that have not begun.
 * @visible: how many krcore_poll() finds.
 */
struct rq_queue {
	uint8_t *memory;
	uint64_t bytes;
	uint64_t remembered;
	int start_err, reg_err, connect_err;
	unsigned int take;
	unsigned int refuse_at;
	int refuse_err;
	unsigned int fail_at;
	int fail_status;
	bool fail_done, late_refusal;
	int poll_err;
	bool late;
	unsigned int stuck_at, post_ms;
	const int *waits;
	unsigned int starts, regs, opens, connects, posts, waited, nodes, requests;
	uint64_t ms;
	uint32_t queue;
	bool failed;
	struct krcore_start_options start;
	struct krcore_node_options node;
	struct krcore_key peer;
	uint32_t timeout_ms;
	struct krcore_wr log[RQ_LOG];
	struct krcore_mr regions[RQ_REGIONS];
	unsigned int nr_regions;
	struct krcore_wc wcs[RQ_LOG];
	unsigned int nr_wcs, stuck, visible;
};

extern struct rq_queue rq;

/** rq_begin() - A peer whose region is all zero. @bytes: its size. */
void rq_begin(uint64_t bytes);

/** rq_end() - End it. No node is open any more. */
void rq_end(void);

#endif /* KRC_TESTS_UNIT_RACE_QUEUE_H */
