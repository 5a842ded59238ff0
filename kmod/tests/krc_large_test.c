// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: large messages between two ports: announced, READ where the receiver wants them,
 * discarded, taken back, and what becomes of the memory when an end goes away.
 * Locking: a test runs alone.
 */
#include <linux/gfp.h>

#include "krc_stream_test.h"
#include "krc_test_wait.h"
#include "krp_ioctl.h"

#define KRC_TEST_LARGE_ORDER 3
#define KRC_TEST_LARGE (PAGE_SIZE << KRC_TEST_LARGE_ORDER)
#define KRC_TEST_IOVA 0x10000000ULL

/**
 * struct krc_test_memory - Registered memory.
 * @bytes: the memory.
 * @key: its key.
 */
struct krc_test_memory {
	u8 *bytes;
	struct krc_hw_key key;
};

/**
 * struct krc_test_fetch - A READ of a large message by a program.
 * @large: the READ; first.
 * @end: program.
 */
struct krc_test_fetch {
	struct krc_large large;
	struct krc_test_program *end;
};

/**
 * struct krc_test_large - What a test has: two programs that are connected, each with memory.
 * @w: the ports.
 * @a: sender.
 * @b: receiver.
 * @from: memory of @a.
 * @to: memory of @b.
 * @fetch: READ of @b.
 */
struct krc_test_large {
	struct krc_test_world *w;
	struct krc_test_program *a;
	struct krc_test_program *b;
	struct krc_test_memory from;
	struct krc_test_memory to;
	struct krc_test_fetch fetch;
};

static struct krc_test_large krc_test_large_now; /* tests run alone, and priv is the world's */

static void krc_test_memory_make(struct kunit *test, struct krc_test_memory *memory)
{
	dma_addr_t pages[1 << KRC_TEST_LARGE_ORDER];
	u32 i;

	memory->bytes = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, KRC_TEST_LARGE_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, memory->bytes);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = virt_to_phys(memory->bytes) + i * PAGE_SIZE;
	KUNIT_ASSERT_EQ(test,
			krc_fake_ops.key_pages(NULL, pages, ARRAY_SIZE(pages), KRC_TEST_IOVA,
					       KRP_ACCESS_LOCAL_WRITE, &memory->key),
			0);
}

static void krc_test_memory_free(struct krc_test_memory *memory)
{
	if (!memory->bytes)
		return;
	krc_fake_ops.key_destroy(NULL, &memory->key);
	free_pages((unsigned long)memory->bytes, KRC_TEST_LARGE_ORDER);
	memory->bytes = NULL;
}

static int krc_test_large_init(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	u32 i;
	int err;

	memset(t, 0, sizeof(*t));
	err = krc_test_world_make(test);
	if (err)
		return err;
	t->w = test->priv;
	/* so long that it does not end while this machine stands still */
	for (i = 0; i < KRC_TEST_PORTS; i++) {
		t->w->side[i].messages->conf.lease_ms = KRP_MRDIR_LEASE_MS_MAX;
		t->w->side[i].messages->conf.margin_ms = KRP_MRDIR_MARGIN_MS_MIN;
	}
	t->a = &t->w->side[0].end[0];
	t->b = &t->w->side[1].end[0];
	krc_test_memory_make(test, &t->from);
	krc_test_memory_make(test, &t->to);
	for (i = 0; i < KRC_TEST_LARGE; i++)
		t->from.bytes[i] = i * 7 + (i >> 8);
	krc_test_pair(t->w, 0);
	return 0;
}

static void krc_test_large_exit(struct kunit *test)
{
	krc_test_world_end(test);
	krc_test_memory_free(&krc_test_large_now.from);
	krc_test_memory_free(&krc_test_large_now.to);
}

/* Announce all of the sender's memory, and wait until the receiver knows. Return: the message. */
static struct krc_out *krc_test_announce(struct krc_test_large *t)
{
	struct krc_out *out = krc_test_message(t->a, 4);

	out->large = true;
	out->length = KRC_TEST_LARGE;
	out->addr = KRC_TEST_IOVA;
	out->rkey = t->from.key.rkey;
	KUNIT_ASSERT_EQ(t->w->test, krc_stream_send(t->a->stream, out), 0);
	krc_test_until(t->w, (krc_test_read(t->b), t->b->large));
	KUNIT_EXPECT_EQ(t->w->test, t->b->large->length, (u32)KRC_TEST_LARGE);
	return out;
}

static void krc_test_fetch_end(struct krc_large *large, int err)
{
	struct krc_test_program *end = container_of(large, struct krc_test_fetch, large)->end;

	end->fetch_err = err;
	WRITE_ONCE(end->fetched, end->fetched + 1);
}

/* READ a part of the message to the same place of the receiver's memory. Return: as the call. */
static int krc_test_fetch_part(struct krc_test_large *t, u32 offset, u32 length, bool keep)
{
	t->fetch.end = t->b;
	t->fetch.large = (struct krc_large){ .seq = t->b->large->seq,
					     .offset = offset,
					     .length = length,
					     .local_addr = KRC_TEST_IOVA + offset,
					     .lkey = t->to.key.lkey,
					     .keep = keep,
					     .end = krc_test_fetch_end };
	return krc_stream_fetch(t->b->stream, &t->fetch.large);
}

/* READ all of it, until both ends know what has come of the @nr-th one. */
static void krc_test_fetch_all(struct krc_test_large *t, u32 nr)
{
	KUNIT_EXPECT_EQ(t->w->test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == nr && READ_ONCE(t->a->done) == nr);
}

/* The second message comes, whatever became of the first. */
static void krc_test_goes_on(struct krc_test_large *t)
{
	krc_letter_free(t->b->large);
	t->b->large = NULL;
	krc_test_announce(t);
	krc_test_fetch_all(t, 2);
	KUNIT_EXPECT_EQ(t->w->test, t->b->fetch_err, 0);
}

/* So many READs of the first message have no answer. */
static void krc_test_fetch_unanswered(struct krc_test_large *t, u32 reads)
{
	krc_test_announce(t);
	t->w->side[1].unanswered = reads;
	krc_test_fetch_all(t, 1);
}

static void krc_test_is_fetched(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	KUNIT_EXPECT_NULL(test, t->a->stream->large);
	krc_test_announce(t);
	KUNIT_EXPECT_NOT_NULL(test, t->a->stream->large);
	KUNIT_EXPECT_NOT_NULL(test, t->b->stream->large);
	KUNIT_EXPECT_EQ(test, t->a->done, 0U);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE + 1, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	/* READs of a user share its turns with all else that it posts */
	KUNIT_EXPECT_PTR_EQ(test, t->fetch.large.flow.payer, (const void *)&t->b->inbox);
	KUNIT_EXPECT_EQ(test, krc_stream_discard(t->b->stream, t->b->large->seq), -EBUSY);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) && READ_ONCE(t->a->done));
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, 0);
	KUNIT_EXPECT_EQ(test, t->a->failed, 0U);
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, KRC_TEST_LARGE), 0);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, 1, false), -ENOENT);
	krc_test_quiet(t->w);
	KUNIT_EXPECT_NULL(test, t->a->stream->large);
	KUNIT_EXPECT_NULL(test, t->b->stream->large);
}

/* It may be fetched in parts; the sender holds it until the last one. */
static void krc_test_in_parts(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_announce(t);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, 1000, true), 0);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == 1);
	KUNIT_EXPECT_EQ(test, t->a->done, 0U);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 1000, 3000, false), 0);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == 2 && READ_ONCE(t->a->done));
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, 4000), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(t->to.bytes + 4000, 0, KRC_TEST_LARGE - 4000));
}

static void krc_test_is_discarded(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_announce(t);
	KUNIT_EXPECT_EQ(test, krc_stream_discard(t->b->stream, t->b->large->seq), 0);
	KUNIT_EXPECT_EQ(test, krc_stream_discard(t->b->stream, t->b->large->seq), -ENOENT);
	krc_test_until(t->w, READ_ONCE(t->a->done));
	KUNIT_EXPECT_EQ(test, t->a->last, -ENOMSG);
}

static void krc_test_is_taken_back(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	struct krc_out *out = krc_test_announce(t);

	KUNIT_EXPECT_EQ(test, krc_stream_cancel(t->a->stream, out), 0);
	/* the sender may be told before the receiver is */
	krc_test_until(t->w, READ_ONCE(t->a->done) && READ_ONCE(t->b->withdrawn));
	KUNIT_EXPECT_EQ(test, t->a->last, -ECANCELED);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->b->withdrawn), 1U);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, 1, false), -ENOENT);
	KUNIT_EXPECT_EQ(test, krc_stream_cancel(t->a->stream, out), -ENOENT);
}

/* A READ is refused by the sender's NIC: that message ends. @nr: READs that have ended then. */
static void krc_test_refused_once(struct krc_test_large *t, u32 nr)
{
	struct krc_test_side *side = &t->w->side[1];
	struct kunit *test = t->w->test;
	u32 i;

	krc_test_announce(t);
	t->w->stuck = true;
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		if (krc_test_reads_on(side, i))
			krc_fake_fail(side->fake, i, KRC_FAULT_ACCESS);
	t->w->stuck = false;
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == nr && READ_ONCE(t->a->done) == nr);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, -EREMOTEIO);
	KUNIT_EXPECT_EQ(test, t->a->last, -EFAULT);
}

/* The stream goes on. */
static void krc_test_read_fails(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_refused_once(t, 1);
	krc_test_goes_on(t);
}

static u32 krc_test_resets(struct krc_test_side *side)
{
	u32 i, resets = 0;

	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		resets += side->fake->ini[i] ? side->fake->ini[i]->resets : 0;
	return resets;
}

/*
 * One whose READs are refused again and again costs all who use the channel a reset each time: soon
 * it is READ no more.
 */
static void krc_test_peer_refuses(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	struct krc_standing *s = t->b->stream->proof.standing;
	u32 i, resets = KRC_REFUSED_FREE + 1;

	for (i = 0; i <= KRC_REFUSED_FREE; i++) {
		KUNIT_EXPECT_FALSE(test, krc_standing_barred(s));
		krc_test_refused_once(t, i + 1);
		krc_letter_free(t->b->large);
		t->b->large = NULL;
	}
	krc_test_until(t->w, krc_test_resets(&t->w->side[1]) == resets);
	krc_test_announce(t);
	/* it was barred; and is again, for longer than this test takes */
	KUNIT_EXPECT_TRUE(test, krc_standing_refused(s));
	s->retry_at += msecs_to_jiffies(KRC_REFUSED_MS);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == KRC_REFUSED_FREE + 2);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, -EREMOTEIO);
	KUNIT_EXPECT_EQ(test, krc_test_resets(&t->w->side[1]), resets);
}

/* Return: requests that the NIC of a port has, but for those of messages. */
static u32 krc_test_reads(struct krc_test_side *side)
{
	return krc_fake_pending(side->fake, 0);
}

/* There is no answer, a few times: the READ is done again, and nobody is told. */
static void krc_test_read_is_done_again(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_fetch_unanswered(t, KRC_LARGE_TRIES);
	KUNIT_EXPECT_EQ(test, t->w->side[1].unanswered, 0U);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, 0);
	KUNIT_EXPECT_EQ(test, t->a->failed, 0U);
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, KRC_TEST_LARGE), 0);
}

/* There never is one, though the peer is heard: that message ends, the connection goes on. */
static void krc_test_read_is_given_up(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_fetch_unanswered(t, U32_MAX);
	KUNIT_EXPECT_EQ(test, U32_MAX - t->w->side[1].unanswered, (u32)KRC_LARGE_TRIES + 1);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, t->a->last, -EFAULT);
	t->w->side[1].unanswered = 0;
	krc_test_goes_on(t);
}

#define KRC_TEST_SILENCE_MS 300

/* A READ that has had no answer is held until the peer is heard; nothing is heard from here on. */
static void krc_test_hold_a_read(struct krc_test_large *t)
{
	struct krc_test_side *side = &t->w->side[1];
	struct kunit *test = t->w->test;

	krc_test_announce(t);
	t->w->stuck = true;
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	KUNIT_EXPECT_EQ(test, krc_test_reads(side), 1U);
	krc_fake_fail(side->fake, 0, KRC_FAULT_TIMEOUT);
	krc_test_wait(test, READ_ONCE(t->b->stream->proof.reads_held) || krc_test_reads(side));
	KUNIT_EXPECT_EQ(test, krc_test_reads(side), 0U);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->b->fetched), 0U);
}

/* A peer that has not answered is not READ before it is heard, and its READ ends with it. */
static void krc_test_read_waits_for_the_peer(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_hold_a_read(t);
	t->w->side[1].messages->conf.silence_ns = KRC_TEST_SILENCE_MS * (u64)NSEC_PER_MSEC;
	krc_test_wait(test, READ_ONCE(t->b->died) && READ_ONCE(t->b->fetched));
	KUNIT_EXPECT_EQ(test, t->b->err, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, -ETIMEDOUT);
	t->w->stuck = false;
}

/*
 * The sender's program has ended meanwhile: the READ has the error of the connection. If all this
 * takes long the sender has asked before that: the READ would go on if its questions were heard.
 */
static void krc_test_read_ends_with_the_connection(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_hold_a_read(t);
	t->w->only = KRP_MESSAGE_REFUSE;
	krc_test_close(t->a, true);
	t->w->stuck = false;
	krc_test_until(t->w, READ_ONCE(t->b->died) && READ_ONCE(t->b->fetched));
	KUNIT_EXPECT_EQ(test, t->b->err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, -ECONNRESET);
}

#define KRC_TEST_LEASE_MS 500 /* also a slow machine asks the peer, and begins the READ, in that */

/* When the peer has not been heard for longer than its lease, it is asked before it is READ. */
static void krc_test_lease_is_kept(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	t->w->side[0].messages->conf.lease_ms = KRC_TEST_LEASE_MS;
	krc_test_announce(t);
	t->w->stuck = true;
	msleep(2 * KRC_TEST_LEASE_MS);
	KUNIT_EXPECT_EQ(test, krc_test_fetch_part(t, 0, KRC_TEST_LARGE, false), 0);
	KUNIT_EXPECT_EQ(test, krc_test_reads(&t->w->side[1]), 0U);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(t->b->stream->proof.reads_held));
	t->w->stuck = false;
	krc_test_until(t->w, READ_ONCE(t->b->fetched) && READ_ONCE(t->a->done));
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, 0);
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, KRC_TEST_LARGE), 0);
}

/* The receiver is closed: what it has not fetched is discarded. */
static void krc_test_receiver_closes(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_announce(t);
	krc_test_close(t->b, false);
	krc_test_until(t->w, READ_ONCE(t->a->done));
	KUNIT_EXPECT_EQ(test, t->a->last, -ENOMSG);
}

/* The connection dies: the memory is held until no READ can come any more, then given back. */
static void krc_test_memory_is_held(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	struct krc_stream *st = t->a->stream;

	t->w->side[0].messages->conf.lease_ms = KRP_MRDIR_LEASE_MS_MIN;
	krc_test_announce(t);
	krc_test_close(t->b, true);
	krc_test_until(t->w, READ_ONCE(t->a->died));
	KUNIT_EXPECT_EQ(test, t->a->err, -ECONNRESET);
	krc_test_until(t->w, READ_ONCE(t->a->done));
	KUNIT_EXPECT_GE(test, ktime_get_ns(),
			st->s.time.posted_ns + (u64)NSEC_PER_MSEC * (KRP_MRDIR_LEASE_MS_MIN +
								     2 * KRP_MRDIR_MARGIN_MS_MIN));
	KUNIT_EXPECT_EQ(test, t->a->last, -ECONNRESET);
}

/* The port of the sender ends: there is no target to READ from, so the memory is free. */
static void krc_test_sender_ends(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	u64 begun_ns;

	krc_test_announce(t);
	begun_ns = ktime_get_ns();
	krc_test_side_end(&t->w->side[0]);
	krc_test_until(t->w, READ_ONCE(t->a->done)); /* a work item that was at it tells of it */
	KUNIT_EXPECT_LT(test, ktime_get_ns(),
			begun_ns + (u64)NSEC_PER_MSEC * KRP_MRDIR_LEASE_MS_MAX);
	KUNIT_EXPECT_EQ(test, t->a->done, 1U);
	KUNIT_EXPECT_EQ(test, t->a->last, -ENODEV);
}

/* ---- a place that the program has posted */

static struct krc_test_large *krc_test_places; /* whose place is free, or NULL */

/* krc_inbox.place */
static struct krc_large *krc_test_place(struct krc_inbox *inbox, struct krc_letter *letter)
{
	struct krc_test_large *t = krc_test_places;

	if (!t || letter->length > KRC_TEST_LARGE)
		return NULL;
	krc_test_places = NULL;
	t->fetch.end = t->b;
	t->fetch.large = (struct krc_large){ .local_addr = KRC_TEST_IOVA,
					     .lkey = t->to.key.lkey,
					     .end = krc_test_fetch_end };
	letter->seq = 77;
	return &t->fetch.large;
}

static void krc_test_post_place(struct krc_test_large *t)
{
	krc_test_places = t;
	t->b->inbox.place = krc_test_place;
}

/* The first message goes to the place, before the program has seen it; the second is fetched. */
static void krc_test_goes_to_a_place(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_post_place(t);
	krc_test_announce(t);
	KUNIT_EXPECT_TRUE(test, t->b->large->posted);
	KUNIT_EXPECT_EQ(test, t->b->large->seq, 77ULL);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == 1 && READ_ONCE(t->a->done) == 1);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, 0);
	KUNIT_EXPECT_EQ(test, t->a->failed, 0U);
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, KRC_TEST_LARGE), 0);
	krc_test_goes_on(t);
	KUNIT_EXPECT_FALSE(test, t->b->large->posted);
}

/* Its READ has no answer at first: it is done again, to the same place. */
static void krc_test_place_is_read_again(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;

	krc_test_post_place(t);
	t->w->side[1].unanswered = 2;
	krc_test_announce(t);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == 1 && READ_ONCE(t->a->done) == 1);
	KUNIT_EXPECT_EQ(test, t->b->fetch_err, 0);
	KUNIT_EXPECT_EQ(test, memcmp(t->to.bytes, t->from.bytes, KRC_TEST_LARGE), 0);
	krc_test_goes_on(t);
}

/* The program closes before it has seen that a message goes to its place: the place comes back. */
static void krc_test_place_comes_back_at_the_end(struct kunit *test)
{
	struct krc_test_large *t = &krc_test_large_now;
	struct krc_out *out = krc_test_message(t->a, 4);

	krc_test_post_place(t);
	t->w->side[1].unanswered = U32_MAX; /* so that the READ is under way still */
	out->large = true;
	out->length = KRC_TEST_LARGE;
	out->addr = KRC_TEST_IOVA;
	out->rkey = t->from.key.rkey;
	KUNIT_ASSERT_EQ(test, krc_stream_send(t->a->stream, out), 0);
	krc_test_until(t->w, !READ_ONCE(krc_test_places));
	krc_test_close(t->b, true);
	krc_test_until(t->w, READ_ONCE(t->b->fetched) == 1 && READ_ONCE(t->a->done) == 1);
	KUNIT_EXPECT_NE(test, t->b->fetch_err, 0);
}

static struct kunit_case krc_large_cases[] = { KUNIT_CASE(krc_test_is_fetched),
					       KUNIT_CASE(krc_test_in_parts),
					       KUNIT_CASE(krc_test_is_discarded),
					       KUNIT_CASE(krc_test_is_taken_back),
					       KUNIT_CASE(krc_test_read_fails),
					       KUNIT_CASE(krc_test_peer_refuses),
					       KUNIT_CASE(krc_test_lease_is_kept),
					       KUNIT_CASE(krc_test_receiver_closes),
					       KUNIT_CASE(krc_test_memory_is_held),
					       KUNIT_CASE(krc_test_sender_ends),
					       KUNIT_CASE(krc_test_read_is_done_again),
					       KUNIT_CASE(krc_test_read_is_given_up),
					       KUNIT_CASE(krc_test_read_waits_for_the_peer),
					       KUNIT_CASE(krc_test_read_ends_with_the_connection),
					       KUNIT_CASE(krc_test_goes_to_a_place),
					       KUNIT_CASE(krc_test_place_is_read_again),
					       KUNIT_CASE(krc_test_place_comes_back_at_the_end),
					       {} };

static struct kunit_suite krc_large_suite = {
	.name = "krcore_large",
	.init = krc_test_large_init,
	.exit = krc_test_large_exit,
	.test_cases = krc_large_cases,
};

kunit_test_suite(krc_large_suite);
