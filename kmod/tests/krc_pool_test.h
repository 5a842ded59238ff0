/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the KUnit suites of the pool share: a pool on a NIC in memory, flows that count, and
 * a test's begin and end.
 * Locking: a test runs alone; done() counts in the requests it owns.
 */
#ifndef KRC_POOL_TEST_H
#define KRC_POOL_TEST_H

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "pool/pool_priv.h"
#include "node/port.h"
#include "pool/silence.h"
#include "fake_provider.h"
#include "krc_test_wait.h"
#include "krp_ioctl.h"

#define KRC_TEST_DEPTH 16
#define KRC_TEST_REQS 256
#define KRC_TEST_LONG_AGO_MS (10 * KRC_SILENT_MS) /* its charge is made good in 5 s */

/**
 * struct krc_test_req - A request that counts its completions.
 * @req: the request.
 * @dones: times it was completed since it was submitted.
 * @order: when, among those of its flow, from 0.
 * @status: what it completed with.
 */
struct krc_test_req {
	struct krc_req req;
	u32 dones;
	u32 order;
	int status;
};

/**
 * struct krc_test_flow - A flow with its requests.
 * @flow: the flow.
 * @address: target of its requests; the first byte tells flows apart.
 * @reqs: its requests, by number modulo KRC_TEST_REQS.
 * @index: channel that the last requests were submitted to.
 * @submitted: requests submitted.
 * @done: requests completed.
 * @most: most requests that were told together.
 * @mixed: times they were told with a wrong number, or with those of another flow.
 * @check: what check() says.
 * @lets: before that, it lets so many through.
 * @idempotent: of what is submitted from now on, as are those that follow.
 * @leased: see struct krc_req.
 * @lease_ms: from submit to krc_req.until.
 * @stay_ms: krc_req.stay.
 */
struct krc_test_flow {
	struct krc_flow flow;
	struct krc_hw_address address;
	struct krc_test_req reqs[KRC_TEST_REQS];
	u32 index;
	u32 submitted;
	u32 done;
	u32 most;
	u32 mixed;
	int check;
	u32 lets;
	bool idempotent;
	bool leased;
	u32 lease_ms;
	u32 stay_ms;
};

/**
 * struct krc_test - What a test has.
 * @test: the KUnit test.
 * @fake: NIC.
 * @port: port; its rail alone is set.
 * @pool: pool, on the rail.
 * @flow: flows.
 */
struct krc_test {
	struct kunit *test;
	struct krc_fake *fake;
	struct krc_port port;
	struct krc_pool *pool;
	struct krc_test_flow *flow[4];
};

/**
 * krc_test_done() - Note the outcomes of requests: krc_flow.done of a test's flows.
 * @pool_flow: krc_test_flow.flow.
 * @reqs: requests, in order.
 * @nr: how many.
 */
static inline void krc_test_done(struct krc_flow *pool_flow, struct list_head *reqs, u32 nr)
{
	struct krc_test_flow *flow = container_of(pool_flow, struct krc_test_flow, flow);
	struct krc_req *req, *tmp;

	flow->most = max(flow->most, nr);
	list_for_each_entry_safe(req, tmp, reqs, list) {
		struct krc_test_req *tr = container_of(req, struct krc_test_req, req);

		list_del_init(&req->list);
		flow->mixed += req->flow != pool_flow;
		tr->status = req->status;
		tr->order = flow->done;
		tr->dones++;
		nr--;
		WRITE_ONCE(flow->done, flow->done + 1);
	}
	flow->mixed += nr != 0;
}

/**
 * krc_test_check() - Say what the flow's test wants to be said: krc_flow.check of a test's flows.
 * @req: request of such a flow.
 *
 * Return: 0 for the first krc_test_flow.lets, then krc_test_flow.check.
 */
static inline int krc_test_check(struct krc_req *req)
{
	struct krc_test_flow *flow = container_of(req->flow, struct krc_test_flow, flow);

	if (!flow->lets)
		return READ_ONCE(flow->check);
	flow->lets--; /* under the lock of the channel */
	return 0;
}

/**
 * krc_test_start() - Make the pool of a test.
 * @t: test with its NIC.
 * @initiators: shared channels.
 *
 * Return: 0 or the error of krc_pool_create().
 */
static inline int krc_test_start(struct krc_test *t, u32 initiators)
{
	t->port.rail.ops = &krc_fake_ops;
	t->port.rail.hw = krc_fake_hw(t->fake);
	t->port.rail.num = 1;
	t->pool = krc_pool_create(&t->port.rail, initiators, KRC_TEST_DEPTH);
	return PTR_ERR_OR_ZERO(t->pool);
}

/**
 * krc_test_flows() - Set up all flows of a test on its pool.
 * @t: test.
 */
static inline void krc_test_flows(struct krc_test *t)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow); i++) {
		t->flow[i]->address.opaque[0] = i;
		krc_flow_init(&t->flow[i]->flow, t->pool, krc_test_done, krc_test_check);
	}
}

/**
 * krc_test_release() - Release all flows of a test, which are drained.
 * @t: test.
 */
static inline void krc_test_release(struct krc_test *t)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow) && t->flow[i]; i++)
		krc_flow_release(&t->flow[i]->flow);
}

/**
 * krc_test_channel() - Find a channel of a test's pool.
 * @t: test, which removes no channel meanwhile.
 * @index: number.
 *
 * Return: the channel, not counted; NULL: there is none.
 */
static inline struct krc_channel *krc_test_channel(struct krc_test *t, u32 index)
{
	struct krc_channel *ch;

	rcu_read_lock();
	ch = krc_pool_find(t->pool, index);
	rcu_read_unlock();
	return ch;
}

/**
 * krc_test_shared() - Count the shared channels of a test's pool.
 * @t: test.
 *
 * Return: their number.
 */
static inline u32 krc_test_shared(struct krc_test *t)
{
	struct krc_pool_stats stats;

	krc_pool_stats(t->pool, &stats);
	return stats.initiators;
}

/**
 * krc_test_restart() - Replace the pool of a test by one with another number of shared channels.
 * @t: test; its flows begin anew.
 * @initiators: shared channels.
 */
static inline void krc_test_restart(struct krc_test *t, u32 initiators)
{
	krc_pool_stop(t->pool);
	krc_test_release(t);
	krc_pool_destroy(t->pool);
	KUNIT_ASSERT_EQ(t->test, krc_test_start(t, initiators), 0);
	krc_test_flows(t);
}

/**
 * krc_test_init() - Begin a test: NIC, flows, and a pool with one shared channel.
 * @test: the KUnit test; its priv becomes the struct krc_test.
 *
 * Return: 0; a failed assertion ends the test.
 */
static inline int krc_test_init(struct kunit *test)
{
	struct krc_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->test = test;
	t->fake = krc_fake_create();
	KUNIT_ASSERT_NOT_NULL(test, t->fake);
	for (i = 0; i < ARRAY_SIZE(t->flow); i++) {
		t->flow[i] = kunit_kzalloc(test, sizeof(*t->flow[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, t->flow[i]);
	}
	KUNIT_ASSERT_EQ(test, krc_test_start(t, 1), 0);
	krc_test_flows(t);
	return 0;
}

/**
 * krc_test_exit() - End a test: stop and free all that krc_test_init() made.
 * @test: the KUnit test, also if krc_test_init() got no further than a part of it.
 */
static inline void krc_test_exit(struct kunit *test)
{
	struct krc_test *t = test->priv;

	if (!t || !t->fake)
		return;
	if (!IS_ERR_OR_NULL(t->pool)) {
		krc_pool_stop(t->pool);
		krc_test_release(t);
		krc_pool_destroy(t->pool);
	}
	krc_silence_drop(&t->port.rail);
	krc_fake_destroy(t->fake);
}

/**
 * krc_test_submit() - Submit requests.
 * @flow: flow.
 * @count: how many, so that at most KRC_TEST_REQS are outstanding.
 * @opcode: KRP_OP_*.
 * @length: bytes of each.
 *
 * Return: 0 or the error of krc_flow_submit(): then none counts as submitted.
 */
static inline int krc_test_submit(struct krc_test_flow *flow, u32 count, u8 opcode, u32 length)
{
	LIST_HEAD(reqs);
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		u32 at = flow->submitted + i;
		struct krc_test_req *tr = &flow->reqs[at % KRC_TEST_REQS];

		tr->dones = 0;
		tr->req.flow = &flow->flow;
		tr->req.idempotent = flow->idempotent;
		tr->req.leased = flow->leased;
		tr->req.until = jiffies + msecs_to_jiffies(flow->lease_ms);
		tr->req.stay = msecs_to_jiffies(flow->stay_ms);
		tr->req.wr = (struct krc_hw_wr){
			.address = &flow->address,
			.remote_addr = ((u64)flow->address.opaque[0] << 56) + ((u64)at << 32),
			.length = length,
			.opcode = opcode,
		};
		list_add_tail(&tr->req.list, &reqs);
	}
	err = krc_flow_submit(&flow->flow, &reqs, &flow->index);
	if (!err)
		flow->submitted += count;
	return err;
}

/**
 * krc_test_lease() - Have what a flow submits from now on be leased.
 * @flow: flow.
 * @lease_ms: for how long, from when it is submitted.
 * @stay_ms: how long it may stay in the hardware after that.
 */
static inline void krc_test_lease(struct krc_test_flow *flow, u32 lease_ms, u32 stay_ms)
{
	flow->leased = true;
	flow->lease_ms = lease_ms;
	flow->stay_ms = stay_ms;
}

/**
 * krc_test_lapse() - Have the lease of a request end that is in the hardware.
 * @t: test.
 * @nth: which one of the first channel, from the oldest, 0; it is leased.
 * @busy: something has completed just now, however long this takes; else long ago.
 */
static inline void krc_test_lapse(struct krc_test *t, u32 nth, bool busy)
{
	struct krc_channel *ch = krc_test_channel(t, 0);

	spin_lock_bh(&ch->lock);
	KUNIT_EXPECT_LT(t->test, nth, ch->tail - ch->head);
	ch->progress = busy ? jiffies + 60 * HZ : jiffies - msecs_to_jiffies(KRC_TEST_LONG_AGO_MS);
	ch->slots[(ch->head + nth) & ch->mask].expires = jiffies;
	ch->window.sample.at = jiffies + 60 * HZ; /* its look charges nothing */
	mod_delayed_work(t->pool->wq, &ch->lease.expiry, 0);
	spin_unlock_bh(&ch->lock);
}

/**
 * krc_test_finish() - Let the NIC carry out everything until a flow has so many completions, and
 * expect them in time.
 * @t: test.
 * @flow: flow.
 * @done: completions since the flow was set up; a few more may come.
 */
static inline void krc_test_finish(struct krc_test *t, struct krc_test_flow *flow, u32 done)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS);
	u32 i, shared = krc_test_shared(t);

	while (READ_ONCE(flow->done) < done && time_before(jiffies, limit)) {
		for (i = 0; i < shared; i++)
			krc_fake_complete(t->fake, i, KRC_TEST_DEPTH);
		usleep_range(50, 100);
	}
	KUNIT_EXPECT_GE(t->test, READ_ONCE(flow->done), done);
	KUNIT_EXPECT_LE(t->test, READ_ONCE(flow->done), flow->submitted);
}

/**
 * krc_test_expect() - Expect that requests are done once each, in order, with a status.
 * @t: test.
 * @flow: flow.
 * @from: first request.
 * @to: behind the last one.
 * @status: 0 or a negative errno.
 */
static inline void krc_test_expect(struct krc_test *t, struct krc_test_flow *flow, u32 from, u32 to,
				   int status)
{
	u32 i;

	for (i = from; i < to; i++) {
		KUNIT_EXPECT_EQ(t->test, flow->reqs[i].dones, 1);
		KUNIT_EXPECT_EQ(t->test, flow->reqs[i].order, i);
		KUNIT_EXPECT_EQ(t->test, flow->reqs[i].status, status);
	}
}

#endif /* KRC_POOL_TEST_H */
