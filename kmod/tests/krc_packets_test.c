// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: packets of messages from a flow to a receive buffer, on a NIC in memory: what arrives,
 * when they are sent again, and that channels of messages are theirs alone.
 * Locking: a test runs alone; done() counts in the packets it owns.
 */
#include "krc_pool_test.h"
#include "krp_message.h"
#include "pool/packets.h"

#define KRC_TEST_PACKETS 8
#define KRC_TEST_BUFFERS 4
#define KRC_TEST_MARGIN_MS 60000
#define KRC_TEST_MARGIN_SHORT_MS 400
#define KRC_TEST_SENDS 2 /* flows */

/**
 * struct krc_test_sends - A flow of packets that counts.
 * @flow: the flow.
 * @to: target.
 * @done: packets that are done.
 * @status: of each, in the order of done().
 * @fault: likewise.
 */
struct krc_test_sends {
	struct krc_flow flow;
	struct krc_hw_address to;
	u32 done;
	int status[16];
	enum krc_fault fault[16];
};

/**
 * struct krc_test_messages - What a test has besides a pool.
 * @pool: pool, NIC and rail; the test's priv, so first.
 * @packets: to be sent.
 * @buffers: to be received into.
 * @target: target with KRC_TEST_BUFFERS buffers, none of them posted.
 * @channel: number of the channel of messages.
 * @sends: flows to @target.
 * @received: upcalls.
 */
struct krc_test_messages {
	struct krc_test pool;
	struct krc_packets *packets;
	struct krc_packets *buffers;
	struct krc_hw_target *target;
	u32 channel;
	struct krc_test_sends sends[KRC_TEST_SENDS];
	u32 received;
};

static void krc_test_sent(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_test_sends *s = container_of(flow, struct krc_test_sends, flow);
	struct krc_req *req, *tmp;

	list_for_each_entry_safe(req, tmp, reqs, list) {
		struct krc_packet *packet = container_of(req, struct krc_packet, req);

		list_del_init(&req->list);
		s->status[s->done % ARRAY_SIZE(s->status)] = req->status;
		s->fault[s->done % ARRAY_SIZE(s->fault)] = req->fault;
		krc_packet_put(packet);
		WRITE_ONCE(s->done, s->done + 1);
	}
}

static void krc_test_received(void *owner)
{
	struct krc_test_messages *m = owner;

	WRITE_ONCE(m->received, m->received + 1);
}

static const struct krc_hw_events krc_test_message_events = { .received = krc_test_received };

static struct krc_test_messages *krc_test_m(struct kunit *test)
{
	return container_of(test->priv, struct krc_test_messages, pool);
}

/* Send a packet of @bytes that are all @fill. Return: 0 or the error of krc_flow_submit(). */
static int krc_test_send_until(struct krc_test_messages *m, u32 from, u8 fill, u32 bytes,
			       unsigned long until)
{
	struct krc_packet *packet = krc_packet_get(m->packets);
	LIST_HEAD(reqs);
	int err;

	if (!packet)
		return -ENOBUFS;
	memset(packet->data, fill, bytes);
	krc_packet_send(packet, &m->sends[from].to, bytes, until);
	list_add_tail(&packet->req.list, &reqs);
	err = krc_flow_submit(&m->sends[from].flow, &reqs, NULL);
	if (err)
		krc_packet_put(packet);
	return err;
}

static int krc_test_send(struct krc_test_messages *m, u32 from, u8 fill, u32 bytes)
{
	return krc_test_send_until(m, from, fill, bytes, jiffies + HZ * 60);
}

static void krc_test_post(struct krc_test_messages *m, u32 buffers)
{
	while (buffers--) {
		struct krc_packet *packet = krc_packet_get(m->buffers);

		KUNIT_ASSERT_NOT_NULL(m->pool.test, packet);
		KUNIT_ASSERT_EQ(m->pool.test, krc_packet_post(packet, m->target), 0);
	}
	krc_fake_ops.recv_ring(m->target);
}

/* Expect the next message: @bytes that are all @fill. */
static void krc_test_arrived(struct krc_test_messages *m, u8 fill, u32 bytes)
{
	struct kunit *test = m->pool.test;
	struct krc_packet *packet;
	struct krc_recv_wc wc;

	KUNIT_ASSERT_EQ(test, krc_fake_ops.recv_poll(m->target, &wc, 1), 1);
	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, wc.bytes, bytes);
	packet = krc_packet_at(m->buffers, wc.cookie);
	KUNIT_ASSERT_NOT_NULL(test, packet);
	krc_packet_received(packet, wc.bytes);
	KUNIT_EXPECT_NULL(test, memchr_inv(packet->data, fill, bytes));
	krc_packet_put(packet);
}

static bool krc_test_nothing_arrived(struct krc_test_messages *m)
{
	struct krc_recv_wc wc;

	return !krc_fake_ops.recv_poll(m->target, &wc, 1);
}

static u32 krc_test_pending(struct krc_test_messages *m)
{
	return krc_fake_pending(m->pool.fake, m->channel);
}

static u32 krc_test_carry_out(struct krc_test_messages *m)
{
	return krc_fake_complete(m->pool.fake, m->channel, KRC_TEST_DEPTH);
}

/* Carry out what is there. Return: whether so many packets of a flow are done. */
static bool krc_test_sent_all(struct krc_test_messages *m, u32 from, u32 done)
{
	krc_test_carry_out(m);
	return READ_ONCE(m->sends[from].done) == done;
}

/* ---- what a test begins and ends with */

static void krc_test_sends_init(struct krc_test_messages *m, const struct krp_value *value)
{
	static const union ib_gid gid;
	u32 i;

	for (i = 0; i < KRC_TEST_SENDS; i++) {
		struct krc_test_sends *s = &m->sends[i];

		krc_flow_init(&s->flow, m->pool.pool, krc_test_sent, NULL);
		s->flow.kind = KRC_CHANNEL_MESSAGE;
		krc_fake_ops.address(krc_fake_hw(m->pool.fake), 1, 0, &gid, value, &s->to);
	}
}

static int krc_test_messages_init(struct kunit *test)
{
	struct krc_test_messages *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	const struct krc_hw_receive receive = { .depth = KRC_TEST_BUFFERS, .owner = m };
	struct krp_value value = {};
	struct krc_test *t;
	struct krc_fake *fake = krc_fake_create();

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_NOT_NULL(test, fake);
	t = &m->pool;
	test->priv = t;
	t->test = test;
	t->fake = fake;
	fake->events = &krc_test_message_events;
	t->port.rail.margin_ms = KRC_TEST_MARGIN_MS;
	KUNIT_ASSERT_EQ(test, krc_test_start(t, 1), 0);
	m->channel = 1 + KRC_POOL_OTHERS;
	KUNIT_ASSERT_EQ(test, krc_pool_enable_messages(t->pool, 1), 0);
	m->packets = krc_packets_create(&t->port.rail, KRC_TEST_PACKETS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->packets));
	m->buffers = krc_packets_create(&t->port.rail, KRC_TEST_BUFFERS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->buffers));
	m->target = krc_fake_ops.target_create(krc_fake_hw(t->fake), 1, 0, 1, &receive, &value);
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->target));
	krc_test_sends_init(m, &value);
	return 0;
}

static void krc_test_messages_exit(struct kunit *test)
{
	struct krc_test_messages *m = test->priv ? krc_test_m(test) : NULL;
	u32 i;

	if (!m)
		return;
	if (!IS_ERR_OR_NULL(m->pool.pool))
		krc_pool_stop(m->pool.pool);
	for (i = 0; i < KRC_TEST_SENDS; i++)
		krc_flow_release(&m->sends[i].flow);
	if (!IS_ERR_OR_NULL(m->target))
		krc_fake_ops.target_destroy(m->target);
	if (!IS_ERR_OR_NULL(m->buffers))
		krc_packets_destroy(m->buffers);
	if (!IS_ERR_OR_NULL(m->packets)) {
		KUNIT_EXPECT_EQ(test, krc_packets_free(m->packets), KRC_TEST_PACKETS);
		krc_packets_destroy(m->packets);
	}
	krc_test_exit(test);
}

/* ---- packets */

static void krc_test_packets_are_counted(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_packet *packet[KRC_TEST_PACKETS];
	u32 i;

	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_packets_create(&m->pool.port.rail, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_packets_create(&m->pool.port.rail, U32_MAX)), -EINVAL);
	for (i = 0; i < KRC_TEST_PACKETS; i++) {
		packet[i] = krc_packet_get(m->packets);
		KUNIT_ASSERT_NOT_NULL(test, packet[i]);
		KUNIT_EXPECT_PTR_EQ(test, krc_packet_at(m->packets, packet[i]->index), packet[i]);
		memset(packet[i]->data, i, KRP_MESSAGE_PACKET_MAX);
	}
	KUNIT_EXPECT_NULL(test, krc_packet_get(m->packets));
	KUNIT_EXPECT_NULL(test, krc_packet_at(m->packets, KRC_TEST_PACKETS));
	KUNIT_EXPECT_NULL(test, krc_packet_at(m->packets, U64_MAX));
	KUNIT_EXPECT_EQ(test, krc_packets_free(m->packets), 0U);
	for (i = 0; i < KRC_TEST_PACKETS; i++) {
		KUNIT_EXPECT_NULL(test, memchr_inv(packet[i]->data, i, KRP_MESSAGE_PACKET_MAX));
		krc_packet_put(packet[i]);
	}
}

/* A user alone gets half of them, the next one half of the rest, and one that has none the last one. */
static void krc_test_packets_are_shared(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_packet *packet, *first = NULL;
	u32 taken[3] = {}, i;
	LIST_HEAD(got);

	for (i = 0; i < 2; i++)
		while (!IS_ERR_OR_NULL(packet = krc_packet_get_of(m->packets, &taken[i]))) {
			first = first ?: packet;
			list_add_tail(&packet->list, &got);
			KUNIT_EXPECT_LE(test, taken[i], krc_packets_free(m->packets) + 1);
		}
	KUNIT_EXPECT_EQ(test, taken[0], KRC_TEST_PACKETS / 2U);
	KUNIT_EXPECT_EQ(test, taken[1], KRC_TEST_PACKETS / 4U);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_packet_get_of(m->packets, &taken[0])), -EDQUOT);
	while ((packet = krc_packet_get(m->packets)))
		list_add_tail(&packet->list, &got);
	KUNIT_EXPECT_NULL(test, krc_packet_get_of(m->packets, &taken[2]));
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_packet_get_of(m->packets, &taken[1])), -EDQUOT);
	list_del(&first->list);
	krc_packet_put(first);
	KUNIT_EXPECT_EQ(test, taken[0], KRC_TEST_PACKETS / 2U - 1);
	packet = krc_packet_get_of(m->packets, &taken[2]);
	KUNIT_ASSERT_NOT_NULL(test, packet);
	list_add(&packet->list, &got);
	while ((packet = list_first_entry_or_null(&got, struct krc_packet, list))) {
		list_del(&packet->list);
		krc_packet_put(packet);
	}
	KUNIT_EXPECT_EQ(test, taken[0] + taken[1] + taken[2], 0U);
	KUNIT_EXPECT_EQ(test, krc_packets_free(m->packets), (u32)KRC_TEST_PACKETS);
}

static void krc_test_no_more_buffers_than_the_depth(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_packet *packet;

	krc_test_post(m, KRC_TEST_BUFFERS);
	packet = krc_packet_get(m->packets);
	KUNIT_ASSERT_NOT_NULL(test, packet);
	KUNIT_EXPECT_EQ(test, krc_packet_post(packet, m->target), -ENOSPC);
	krc_packet_put(packet);
}

/* ---- what arrives */

/* What the pool tells the provider that each of its initiators is for. */
static void krc_test_the_provider_knows_what_for(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	u32 i, seen[KRC_HW_MESSAGES + 1] = {};
	const struct krc_channels *all;

	rcu_read_lock();
	all = krc_pool_channels(m->pool.pool);
	for (i = 0; i < all->nr; i++) {
		const struct krc_channel *ch = all->at[i];
		enum krc_hw_use use = m->pool.fake->ini[ch->index]->use;

		seen[use]++;
		KUNIT_EXPECT_EQ(test, use == KRC_HW_MESSAGES, ch->kind == KRC_CHANNEL_MESSAGE);
		KUNIT_EXPECT_EQ(test, use == KRC_HW_PROBE, ch->kind == KRC_CHANNEL_PROBATION);
	}
	rcu_read_unlock();
	for (i = 0; i < ARRAY_SIZE(seen); i++)
		KUNIT_EXPECT_NE_MSG(test, seen[i], 0, "%u", i);
}

static void krc_test_messages_arrive_in_order(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	u32 round, i;

	for (round = 0; round < 3; round++) {
		krc_test_post(m, KRC_TEST_BUFFERS);
		krc_fake_ops.recv_arm(m->target);
		for (i = 0; i < KRC_TEST_BUFFERS; i++)
			KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 10 * round + i, 1 + 1000 * i), 0);
		KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), KRC_TEST_BUFFERS);
		krc_test_wait(test, READ_ONCE(m->sends[0].done) == (round + 1) * KRC_TEST_BUFFERS);
		KUNIT_EXPECT_EQ(test, m->received, round + 1); /* armed once, told once */
		for (i = 0; i < KRC_TEST_BUFFERS; i++)
			krc_test_arrived(m, 10 * round + i, 1 + 1000 * i);
		KUNIT_EXPECT_TRUE(test, krc_test_nothing_arrived(m));
	}
	for (i = 0; i < 3 * KRC_TEST_BUFFERS; i++)
		KUNIT_EXPECT_EQ(test, m->sends[0].status[i], 0);
}

static void krc_test_the_largest_packet(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);

	krc_test_post(m, 1);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 0xa5, KRP_MESSAGE_PACKET_MAX), 0);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_arrived(m, 0xa5, KRP_MESSAGE_PACKET_MAX);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
}

/* Messages and READs have channels of their own, both ways. */
static void krc_test_channels_of_their_own(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_test_flow *read = kunit_kzalloc(test, sizeof(*read), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, read);
	krc_flow_init(&read->flow, m->pool.pool, krc_test_done, krc_test_check);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	KUNIT_ASSERT_EQ(test, krc_test_submit(read, 4, KRP_OP_READ, 64), 0);
	KUNIT_EXPECT_EQ(test, krc_test_pending(m), 1U);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(m->pool.fake, 0), 4U);
	/* a receiver without buffers resets the one and leaves the other alone */
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
	KUNIT_EXPECT_EQ(test, krc_fake_pending(m->pool.fake, 0), 4U);
	krc_fake_complete(m->pool.fake, 0, 4);
	krc_test_wait(test, READ_ONCE(read->done) == 4);
	krc_test_expect(&m->pool, read, 0, 4, 0);
	KUNIT_EXPECT_EQ(test, m->pool.fake->ini[0]->resets, 0U);
	krc_flow_release(&read->flow);
}

static void krc_test_as_many_channels_as_asked_for(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	const struct krc_channels *all;
	u32 shared = krc_test_shared(&m->pool);

	KUNIT_EXPECT_EQ(test, krc_pool_enable_messages(m->pool.pool, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_pool_enable_messages(m->pool.pool, 2), 0);
	rcu_read_lock();
	all = krc_pool_channels(m->pool.pool);
	KUNIT_EXPECT_EQ(test, krc_channels_of(all, KRC_CHANNEL_MESSAGE), 3U);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, krc_test_shared(&m->pool), shared);
	krc_pool_stop(m->pool.pool);
	KUNIT_EXPECT_EQ(test, krc_pool_enable_messages(m->pool.pool, 1), -ENODEV);
}

/* ---- what does not */

/* No buffer: the peer is told to be busy, and others behind it are sent all the same. */
static void krc_test_a_busy_peer(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_pool_stats stats;

	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 1, 2, 64), 0);
	krc_fake_complete(m->pool.fake, m->channel, 1);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -EAGAIN);
	KUNIT_EXPECT_EQ(test, (u32)m->sends[0].fault[0], (u32)KRC_FAULT_BUSY);
	KUNIT_EXPECT_EQ(test, krc_test_send(m, 0, 3, 64), -ENOTCONN);
	krc_test_wait(test, krc_test_pending(m) == 1);
	krc_test_post(m, 2);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_arrived(m, 2, 64);
	/* and the first one may come again */
	krc_flow_drain(&m->sends[0].flow);
	krc_flow_restart(&m->sends[0].flow);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 4, 64), 0);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_arrived(m, 4, 64);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 2 && READ_ONCE(m->sends[1].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[1].status[0], 0);
	krc_pool_stats(m->pool.pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.busy, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.replayed, 1ULL);
	KUNIT_EXPECT_EQ(test, stats.unknown, 0ULL);
}

/* A message that is longer than the buffer is refused; the buffer comes back with a fault. */
static void krc_test_a_buffer_that_is_too_small(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_packet *buffer = krc_packet_get(m->buffers);
	struct krc_recv_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, buffer);
	krc_packet_send(buffer, &m->sends[0].to, 1, 0); /* for its address */
	KUNIT_ASSERT_EQ(test,
			krc_fake_ops.recv_post(m->target, buffer->index, buffer->req.wr.local_addr,
					       buffer->req.wr.lkey, 63),
			0);
	krc_fake_ops.recv_ring(m->target);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -EREMOTEIO);
	KUNIT_ASSERT_EQ(test, krc_fake_ops.recv_poll(m->target, &wc, 1), 1);
	KUNIT_EXPECT_EQ(test, (u32)wc.fault, (u32)KRC_FAULT_LOCAL);
	KUNIT_EXPECT_EQ(test, wc.cookie, (u64)buffer->index);
	krc_packet_put(buffer);
}

/* A reset after an answer was lost: sent again, whoever's reset it is, and never in doubt. */
static void krc_test_a_lost_answer(struct kunit *test, bool fatal)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_pool_stats stats;

	krc_test_post(m, 4);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 2, 64), 0);
	KUNIT_ASSERT_TRUE(test, krc_fake_arrive(m->pool.fake, m->channel));
	if (fatal)
		krc_fake_fatal(m->pool.fake, m->channel);
	else
		krc_fake_stray(m->pool.fake, m->channel);
	krc_test_wait(test, m->pool.fake->ini[m->channel]->resets == 1 && krc_test_pending(m) == 2);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 2U);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 2);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], 0);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[1], 0);
	krc_test_arrived(m, 1, 64);
	krc_test_arrived(m, 1, 64); /* the double */
	krc_test_arrived(m, 2, 64);
	KUNIT_EXPECT_TRUE(test, krc_test_nothing_arrived(m));
	krc_pool_stats(m->pool.pool, &stats);
	KUNIT_EXPECT_EQ(test, stats.unknown, 0ULL);
}

static void krc_test_sent_again_after_a_fatal_event(struct kunit *test)
{
	krc_test_a_lost_answer(test, true);
}

static void krc_test_sent_again_after_a_stray(struct kunit *test)
{
	krc_test_a_lost_answer(test, false);
}

/* Another peer's timeout does not end a message, not even one that is behind it. */
static void krc_test_behind_a_dead_peer(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);

	krc_test_post(m, 1);
	m->sends[0].to.opaque[sizeof(union ib_gid)] ^= 0x80; /* a target that is not there */
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 1, 2, 64), 0);
	krc_fake_complete(m->pool.fake, m->channel, 1);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1 && krc_test_pending(m) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 1U);
	krc_test_wait(test, READ_ONCE(m->sends[1].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[1].status[0], 0);
	krc_test_arrived(m, 2, 64);
}

/* ---- time */

/* What may not be sent any more is not. */
static void krc_test_too_late_to_send(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);

	krc_test_post(m, 1);
	KUNIT_ASSERT_EQ(test, krc_test_send_until(m, 0, 1, 64, jiffies - 1), 0);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -ETIME);
	KUNIT_EXPECT_EQ(test, krc_test_carry_out(m), 0U);
	KUNIT_EXPECT_TRUE(test, krc_test_nothing_arrived(m));
}

/* A SEND that the hardware holds for too long is taken back, posted again, and given up. */
static void krc_test_held_by_the_hardware(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);
	struct krc_pool_stats stats;

	m->pool.port.rail.margin_ms = KRC_TEST_MARGIN_SHORT_MS;
	krc_test_post(m, 1);
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	/* this one is not to be given up, too, while the machine stands still */
	m->pool.port.rail.margin_ms = KRC_TEST_MARGIN_MS;
	KUNIT_ASSERT_EQ(test, krc_test_send(m, 1, 2, 64), 0);
	krc_test_wait(test, READ_ONCE(m->sends[0].done) == 1);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -ETIMEDOUT);
	krc_pool_stats(m->pool.pool, &stats);
	KUNIT_EXPECT_GE(test, stats.expired, (u64)KRC_EXPIRIES_MAX);
	KUNIT_EXPECT_TRUE(test, krc_test_nothing_arrived(m));
	/* the other one is still to be sent */
	krc_test_wait(test, krc_test_sent_all(m, 1, 1));
	KUNIT_EXPECT_EQ(test, m->sends[1].status[0], 0);
	krc_test_arrived(m, 2, 64);
}

/* What the hardware has not sent at the end of the pool has an outcome that is known. */
static void krc_test_the_end_of_the_pool(struct kunit *test)
{
	struct krc_test_messages *m = krc_test_m(test);

	KUNIT_ASSERT_EQ(test, krc_test_send(m, 0, 1, 64), 0);
	krc_pool_stop(m->pool.pool);
	KUNIT_EXPECT_EQ(test, m->sends[0].done, 1U);
	KUNIT_EXPECT_EQ(test, m->sends[0].status[0], -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_send(m, 1, 2, 64), -ENODEV);
}

static struct kunit_case krc_packets_cases[] = {
	KUNIT_CASE(krc_test_packets_are_counted),
	KUNIT_CASE(krc_test_packets_are_shared),
	KUNIT_CASE(krc_test_no_more_buffers_than_the_depth),
	KUNIT_CASE(krc_test_the_provider_knows_what_for),
	KUNIT_CASE(krc_test_messages_arrive_in_order),
	KUNIT_CASE(krc_test_the_largest_packet),
	KUNIT_CASE(krc_test_channels_of_their_own),
	KUNIT_CASE(krc_test_as_many_channels_as_asked_for),
	KUNIT_CASE(krc_test_a_busy_peer),
	KUNIT_CASE(krc_test_a_buffer_that_is_too_small),
	KUNIT_CASE(krc_test_sent_again_after_a_fatal_event),
	KUNIT_CASE(krc_test_sent_again_after_a_stray),
	KUNIT_CASE(krc_test_behind_a_dead_peer),
	KUNIT_CASE(krc_test_too_late_to_send),
	KUNIT_CASE(krc_test_held_by_the_hardware),
	KUNIT_CASE(krc_test_the_end_of_the_pool),
	{}
};

static struct kunit_suite krc_packets_suite = {
	.name = "krcore_packets",
	.init = krc_test_messages_init,
	.exit = krc_test_messages_exit,
	.test_cases = krc_packets_cases,
};

kunit_test_suites(&krc_packets_suite);
