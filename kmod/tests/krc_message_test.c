// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: messages between nodes as this kernel compiles them. Packets against the golden vectors
 * of user space (lines of proto/vectors/message.txt), and a connection from OPEN to its end
 * between two machines (proto/krp_stream.h). The module does not send messages yet.
 * Part of krcore_test.ko.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "krp_listen.h"

#define KRC_TEST_SLOTS 8
#define KRC_TEST_STEPS 200

/* proto/vectors/message.txt */
static const char krc_vector_open[] =
	"4b58010101000000 0000000000000000 040302012c010000 1817161514131211 0100000000000000 0100000000000000 f8ffffffc4c3c2c1 14000000d4d3d2d1 fe80000000000000 505400fffe123456 1817161514131211 0100000033323100 4847464544434241 5857565554535251 6463626100000000 0000000052540012 3456050001011000 7877767574737271 8887868584838281 9897969594939291 0500000000000000 68656c6c6f000000 0000000000000000 0000000000000000 0000000000000000 7768617420612070 726f6772616d2073 656e6473";
static const char krc_vector_openlane[] =
	"4b58010101000000 0000000000000000 040302012c010000 1817161514131211 0100000000000000 0100000000000000 f8ffffffc4c3c2c1 14000000d4d3d2d1 fe80000000000000 505400fffe123456 1817161514131211 0300000000000000 0000000000000000 5857565554535251 6463626143424100 4746454452540012 3456050001011000 7877767574737271 8887868584838281 9897969594939291 0500000000000000 68656c6c6f000000 0000000000000000 0000000000000000 0000000000000000 7768617420612070 726f6772616d2073 656e6473";
static const char krc_vector_data[] =
	"4b58010206000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 14000000d4d3d2d1 7768617420612070 726f6772616d2073 656e6473";
static const char krc_vector_announce[] =
	"4b58010304000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 56341200d4d3d2d1 01604523017f0000 2423222103000000 c80000002c010000";
static const char krc_vector_close[] =
	"4b58010400000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 0000000000000000";
static const char krc_vector_accept[] =
	"4b58010500000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 0000000000000000 a8a7a6a5a4a3a2a1 0200000000000000 6f6b000000000000 0000000000000000 0000000000000000 0000000000000000";
static const char krc_vector_done[] =
	"4b58010600000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 000000000a000000 0908070605040302";
static const char krc_vector_cancel[] =
	"4b58010700000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 0000000000000000 0908070605040302";
static const char krc_vector_challenge[] =
	"4b58010800000000 0807060504030201 0403020108070605 1817161514131211 0000000000000000 0000000000000000 0000000000000000 0000000000000000 8887868584838281";
static const char krc_vector_credit[] =
	"4b58010918000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 0000000000000000";
static const char krc_vector_probe[] =
	"4b58010a00000180 0807060504030201 0403020108070605 1817161514131211 0908070605040302 0a09080706050403 f8ffffffc4c3c2c1 0000000000000000";
static const char krc_vector_refuse[] =
	"4b58010b20000000 0807060504030201 0403020108070605 1817161514131211 0000000000000000 0000000000000000 0000000000000000 0000000005000000";

static const struct {
	const char *vector;
	unsigned int type;
} krc_test_packets[] = {
	{ krc_vector_open, KRP_MESSAGE_OPEN },
	{ krc_vector_openlane, KRP_MESSAGE_OPEN },
	{ krc_vector_data, KRP_MESSAGE_DATA },
	{ krc_vector_announce, KRP_MESSAGE_ANNOUNCE },
	{ krc_vector_close, KRP_MESSAGE_CLOSE },
	{ krc_vector_accept, KRP_MESSAGE_ACCEPT },
	{ krc_vector_done, KRP_MESSAGE_DONE },
	{ krc_vector_cancel, KRP_MESSAGE_CANCEL },
	{ krc_vector_challenge, KRP_MESSAGE_CHALLENGE },
	{ krc_vector_credit, KRP_MESSAGE_CREDIT },
	{ krc_vector_probe, KRP_MESSAGE_PROBE },
	{ krc_vector_refuse, KRP_MESSAGE_REFUSE },
};

struct krc_test_packet {
	struct krp_message m;
	u8 rest[256];
};

struct krc_test_end {
	struct krp_stream s;
	struct krp_stream_slot slot[KRC_TEST_SLOTS];
	struct krp_stream_large large;
	unsigned int came, ended, released, died, forgotten;
	u64 announced;
};

static const struct krp_stream_conf krc_test_conf = { .retry_ns = NSEC_PER_MSEC,
						      .retry_max_ns = 100 * NSEC_PER_MSEC,
						      .ack_ns = NSEC_PER_MSEC,
						      .linger_ns = 400 * NSEC_PER_MSEC,
						      .msgs = 4,
						      .units = KRP_MESSAGE_UNITS_MAX,
						      .lease_ms = 200,
						      .margin_ms = 300 };

static u32 krc_test_decode_packet(struct kunit *test, const char *text,
				  struct krc_test_packet *packet)
{
	u8 *to = (u8 *)packet;
	u32 nr = 0;

	memset(packet, 0, sizeof(*packet));
	for (; *text; text += 2) {
		if (*text == ' ')
			text++;
		KUNIT_ASSERT_LT(test, (size_t)nr, sizeof(*packet));
		KUNIT_ASSERT_EQ(test, hex2bin(&to[nr++], text, 1), 0);
	}
	return nr;
}

static void krc_test_packets_are_right(struct kunit *test)
{
	struct krc_test_packet *packet = kunit_kzalloc(test, sizeof(*packet), GFP_KERNEL);
	u32 bytes, nr, types = 0;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, packet);
	for (i = 0; i < ARRAY_SIZE(krc_test_packets); i++) {
		types |= BIT(krc_test_packets[i].type);
		bytes = krc_test_decode_packet(test, krc_test_packets[i].vector, packet);
		KUNIT_EXPECT_EQ(test, (unsigned int)packet->m.type, krc_test_packets[i].type);
		KUNIT_EXPECT_EQ(test, krp_message_check(packet, bytes), KRP_MESSAGE_OK);
		for (nr = 0; nr < bytes; nr++)
			KUNIT_EXPECT_EQ(test, krp_message_check(packet, nr), KRP_MESSAGE_BAD_BYTES);
		packet->m.version++;
		KUNIT_EXPECT_EQ(test, krp_message_check(packet, bytes), KRP_MESSAGE_BAD_VERSION);
	}
	KUNIT_EXPECT_EQ(test, hweight32(types), KRP_MESSAGE_TYPES - 1U); /* each has one at least */
}

/* Take what an end says, and give what it sends to the other one. Returns 0 when it waits. */
static int krc_test_step(struct kunit *test, struct krc_test_end *from, struct krc_test_end *to,
			 u64 *now_ns)
{
	struct krp_stream_todo *todo = kunit_kzalloc(test, sizeof(*todo), GFP_KERNEL);
	enum krp_stream_verdict verdict;
	int what;

	KUNIT_ASSERT_NOT_NULL(test, todo);
	what = krp_stream_next(&from->s, *now_ns, todo);
	from->ended += what == KRP_STREAM_COMPLETE && !todo->err;
	from->released += what == KRP_STREAM_RELEASE && !todo->err;
	from->died += what == KRP_STREAM_DIED;
	from->forgotten += what == KRP_STREAM_FORGET;
	KUNIT_EXPECT_PTR_EQ(test, krp_stream_wrong(&from->s), (const char *)NULL);
	if (what == KRP_STREAM_SEND) {
		KUNIT_EXPECT_EQ(test, krp_message_check(&todo->packet, todo->bytes + todo->payload),
				KRP_MESSAGE_OK);
		if (todo->packet.type == KRP_MESSAGE_OPEN) {
			krp_stream_offer(&to->s, *now_ns, *now_ns, &todo->packet, 2, 22);
			krp_stream_accept(&to->s, "ok", 2);
			verdict = KRP_STREAM_DROPPED;
		} else {
			verdict = krp_stream_received(&to->s, *now_ns, *now_ns, &todo->packet, 1);
		}
		to->came += verdict != KRP_STREAM_DROPPED;
		if (verdict != KRP_STREAM_DROPPED)
			krp_stream_consumed(&to->s, 1, 1);
		if (verdict == KRP_STREAM_ANNOUNCED)
			to->announced = krp_le64_to_cpu(todo->packet.seq);
	}
	kunit_kfree(test, todo);
	return what != KRP_STREAM_WAIT;
}

static void krc_test_talk(struct kunit *test, struct krc_test_end *a, struct krc_test_end *b,
			  u64 *now_ns)
{
	unsigned int i;

	for (i = 0; i < KRC_TEST_STEPS; i++) {
		/* one packet at a time: an end is asked until it waits before the next one comes */
		while (krc_test_step(test, a, b, now_ns))
			while (krc_test_step(test, b, a, now_ns))
				;
		if (!krc_test_step(test, b, a, now_ns))
			*now_ns += 10 * NSEC_PER_MSEC;
	}
}

static void krc_test_connection(struct kunit *test)
{
	struct krc_test_end *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct krc_test_end *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	struct krp_stream_req req = { .length = 5, .cookie = 1 };
	struct krp_message_open open = { .tag = krp_cpu_to_le64(11) };
	u64 now_ns = NSEC_PER_SEC;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	open.value.kind = KRP_KIND_DCT;
	open.value.dct.mtu = 5;
	open.value.dct.port = 1;
	open.value.generation = krp_cpu_to_le64(5);
	open.peer_generation = krp_cpu_to_le64(6);
	KUNIT_ASSERT_EQ(test, krp_stream_init(&a->s, &krc_test_conf, a->slot, KRC_TEST_SLOTS), 0);
	KUNIT_ASSERT_EQ(test, krp_stream_init(&b->s, &krc_test_conf, b->slot, KRC_TEST_SLOTS), 0);
	krp_stream_give_large(&a->s, &a->large);
	krp_stream_give_large(&b->s, &b->large);
	KUNIT_ASSERT_EQ(test, krp_stream_connect(&a->s, now_ns, 1, 300, &open, NULL), 0);
	krc_test_talk(test, a, b, &now_ns);
	KUNIT_ASSERT_EQ(test, (int)a->s.state, KRP_STREAM_OPEN);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_EQ(test, krp_stream_send(&a->s, now_ns, &req), 0);
		krp_stream_replay(&a->s);
		krc_test_talk(test, a, b, &now_ns);
	}
	req.large = 1;
	KUNIT_EXPECT_EQ(test, krp_stream_send(&a->s, now_ns, &req), 0);
	while (krc_test_step(test, a, b, &now_ns))
		;
	KUNIT_EXPECT_EQ(test, krp_stream_fetch(&b->s, now_ns, b->announced), 0);
	KUNIT_EXPECT_EQ(test, krp_stream_fetched(&b->s, b->announced, 0), 0);
	krc_test_talk(test, a, b, &now_ns);
	KUNIT_EXPECT_EQ(test, b->came, 21U);
	KUNIT_EXPECT_EQ(test, a->ended, 20U);
	KUNIT_EXPECT_EQ(test, a->released, 1U);
	KUNIT_EXPECT_EQ(test, krp_stream_shut(&a->s, now_ns), 0);
	KUNIT_EXPECT_EQ(test, krp_stream_shut(&b->s, now_ns), 0);
	krc_test_talk(test, a, b, &now_ns);
	KUNIT_EXPECT_EQ(test, a->forgotten + b->forgotten, 2U);
	KUNIT_EXPECT_EQ(test, a->died + b->died, 0U);
}

static struct kunit_case krc_message_cases[] = { KUNIT_CASE(krc_test_packets_are_right),
						 KUNIT_CASE(krc_test_connection),
						 {} };

static struct kunit_suite krc_message_suite = {
	.name = "krcore_message",
	.test_cases = krc_message_cases,
};

kunit_test_suites(&krc_message_suite);
