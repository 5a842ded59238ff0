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
#include "krp_ioctl.h"

#define KRC_TEST_DEPTH 16
#define KRC_TEST_REQS 256
#define KRC_TEST_WAIT_MS 5000

/* A request that counts its completions. */
struct krc_test_req {
	struct krc_req req;
	u32 dones;
	u32 order; /* when, among those of its flow */
	int status;
};

/* A flow with its requests. */
struct krc_test_flow {
	struct krc_flow flow;
	struct krc_hw_address address;
	struct krc_test_req reqs[KRC_TEST_REQS];
	u32 index; /* channel that the last requests were submitted to */
	u32 submitted;
	u32 done;
	u32 most; /* that were told together */
	u32 mixed; /* told with a wrong number, or with those of another flow */
	int check; /* what check() says */
	bool idempotent; /* of what is submitted, as those that follow */
	bool leased;
	u32 lease_ms;
	u32 stay_ms;
};

/* What a test has. */
struct krc_test {
	struct kunit *test;
	struct krc_fake *fake;
	struct krc_port port;
	struct krc_pool *pool;
	struct krc_test_flow *flow[4];
};

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

static inline int krc_test_check(struct krc_req *req)
{
	return READ_ONCE(container_of(req->flow, struct krc_test_flow, flow)->check);
}

static inline int krc_test_start(struct krc_test *t, u32 initiators)
{
	t->port.rail.ops = &krc_fake_ops;
	t->port.rail.hw = krc_fake_hw(t->fake);
	t->port.rail.num = 1;
	t->pool = krc_pool_create(&t->port.rail, initiators, KRC_TEST_DEPTH);
	return PTR_ERR_OR_ZERO(t->pool);
}

static inline void krc_test_flows(struct krc_test *t)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow); i++) {
		t->flow[i]->address.opaque[0] = i;
		krc_flow_init(&t->flow[i]->flow, t->pool, krc_test_done, krc_test_check);
	}
}

/* The flows are not used any more. */
static inline void krc_test_release(struct krc_test *t)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(t->flow) && t->flow[i]; i++)
		krc_flow_release(&t->flow[i]->flow);
}

/* A channel of the pool, which nobody removes meanwhile. */
static inline struct krc_channel *krc_test_channel(struct krc_test *t, u32 index)
{
	struct krc_channel *ch;

	rcu_read_lock();
	ch = krc_pool_find(t->pool, index);
	rcu_read_unlock();
	return ch;
}

/* How many shared channels there are. */
static inline u32 krc_test_shared(struct krc_test *t)
{
	struct krc_pool_stats stats;

	krc_pool_stats(t->pool, &stats);
	return stats.initiators;
}

/* The same with another number of initiators. */
static inline void krc_test_restart(struct krc_test *t, u32 initiators)
{
	krc_pool_stop(t->pool);
	krc_test_release(t);
	krc_pool_destroy(t->pool);
	KUNIT_ASSERT_EQ(t->test, krc_test_start(t, initiators), 0);
	krc_test_flows(t);
}

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

/* Submit @count requests of @length bytes. */
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

/* Wait until a condition holds. */
#define krc_test_wait(test, cond) \
	do { \
		unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS); \
		while (!(cond) && time_before(jiffies, limit)) \
			usleep_range(100, 200); \
		KUNIT_EXPECT_TRUE(test, cond); \
	} while (0)

/* Let the NIC carry out everything until the flow has @done completions, or a few more. */
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

/* Requests @from to @to - 1 are done once, in order, with @status. */
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
