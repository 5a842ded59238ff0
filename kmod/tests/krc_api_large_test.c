// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: large messages of other modules of the kernel (kmod/api/send.c): those of a peer are READ into a
 * region of the client, in parts, or discarded; those of the client are READ out of one.
 * Locking: a test runs alone.
 */
#include <linux/gfp.h>

#include "krc_mail_test.h"
#include "krp_ioctl.h"

/* krcore_conn_ops.announced: the letter is kept. */
static void krc_test_mail_announced(struct krcore_conn *conn, struct krcore_letter *letter,
				    const struct krcore_message *message, void *arg)
{
	struct krc_test_mail *t = arg;

	KUNIT_EXPECT_NULL(t->w.test, message->bytes);
	KUNIT_EXPECT_EQ(t->w.test, message->length, (u32)KRC_TEST_MAIL_LARGE);
	t->kept[t->kept_nr] = letter;
	WRITE_ONCE(t->kept_nr, t->kept_nr + 1);
}

/* Make the region. */
static void krc_test_mail_region(struct krc_test_mail *t, u32 access)
{
	dma_addr_t pages[1 << KRC_TEST_MAIL_ORDER];
	u32 i;

	t->memory = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, KRC_TEST_MAIL_ORDER);
	KUNIT_ASSERT_NOT_NULL(t->w.test, t->memory);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = virt_to_phys(t->memory) + i * PAGE_SIZE;
	KUNIT_ASSERT_EQ(t->w.test,
			krc_fake_ops.key_pages(NULL, pages, ARRAY_SIZE(pages), 0,
					       KRP_ACCESS_LOCAL_WRITE, &t->mr.key),
			0);
	kref_init(&t->mr.ref);
	t->mr.length = KRC_TEST_MAIL_LARGE;
	t->mr.access = access;
	t->region.client = t->client;
	t->region.mr = &t->mr;
	for (i = 0; i < 2 * KRC_TEST_MAIL_LARGE; i++)
		t->memory[i] = i * 7 + (i >> 8);
	for (i = 0; i < KRC_TEST_PORTS; i++) /* no lease ends while this machine stands still */
		t->w.side[i].messages->conf.lease_ms = KRP_MRDIR_LEASE_MS_MAX;
}

/* Have the peer announce its half, and the client told of that. */
static void krc_test_mail_offered_large(struct krc_test_mail *t, struct krc_test_program *a)
{
	struct krc_out *out = krc_test_message(a, 4);
	u32 before = t->kept_nr;

	out->large = true;
	out->length = KRC_TEST_MAIL_LARGE;
	out->addr = KRC_TEST_MAIL_LARGE;
	out->rkey = t->mr.key.rkey;
	KUNIT_ASSERT_EQ(t->w.test, krc_stream_send(a->stream, out), 0);
	krc_test_until(&t->w, READ_ONCE(t->kept_nr) > before);
}

/* A client that takes large messages, and one that was announced. */
static struct krcore_letter *krc_test_mail_takes(struct krc_test_mail *t)
{
	t->ops.announced = krc_test_mail_announced;
	krc_test_mail_joined(t, &t->w.side[0].end[0]);
	krc_test_mail_region(t, KRP_ACCESS_LOCAL_WRITE);
	krc_test_mail_offered_large(t, &t->w.side[0].end[0]);
	return t->kept[0];
}

/* In two parts, without a copy; and what is not for it is refused. */
static void krc_test_mail_fetches(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_fetch fetch = { .region = &t->region, .length = PAGE_SIZE, .keep = true };
	struct krc_test_program *a = &t->w.side[0].end[0];
	struct krcore_letter *letter = krc_test_mail_takes(t);

	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -EINVAL); /* no done() */
	fetch.done = krc_test_mail_done;
	fetch.from = KRC_TEST_MAIL_LARGE;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -EINVAL);
	fetch.from = 0;
	fetch.offset = KRC_TEST_MAIL_LARGE;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -ERANGE);
	fetch.offset = 0;
	t->mr.access = 0;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -EACCES);
	t->mr.access = KRP_ACCESS_LOCAL_WRITE;
	t->region.client = NULL;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -EINVAL);
	t->region.client = t->client;
	KUNIT_EXPECT_EQ(test, t->conn->busy, 0U);
	t->w.stuck = true;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), 0);
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -EBUSY);
	t->w.stuck = false;
	krc_test_until(&t->w, READ_ONCE(t->done) == 1);
	KUNIT_EXPECT_EQ(test, a->done, 0U);
	fetch = (struct krcore_fetch){ .region = &t->region,
				       .offset = PAGE_SIZE,
				       .from = PAGE_SIZE,
				       .length = KRC_TEST_MAIL_LARGE - PAGE_SIZE,
				       .done = krc_test_mail_done,
				       .arg = (void *)1 };
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), 0);
	krc_test_until(&t->w, READ_ONCE(t->done) == 2 && READ_ONCE(a->done));
	KUNIT_EXPECT_EQ(test, t->failed + t->disorder + a->failed, 0U);
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), -ENOENT);
	KUNIT_EXPECT_EQ(test,
			memcmp(t->memory, t->memory + KRC_TEST_MAIL_LARGE, KRC_TEST_MAIL_LARGE), 0);
	krcore_letter_free(letter);
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 1U);
}

/* What was not fetched is discarded with its letter; a READ that is under way is the last one. */
static void krc_test_mail_discards(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	const struct krcore_fetch fetch = {
		.region = &t->region, .length = PAGE_SIZE, .keep = true, .done = krc_test_mail_done
	};
	struct krc_test_program *a = &t->w.side[0].end[0];

	krcore_letter_free(krc_test_mail_takes(t));
	krc_test_until(&t->w, READ_ONCE(a->done) == 1);
	KUNIT_EXPECT_EQ(test, a->last, -ENOMSG);
	krc_test_mail_offered_large(t, a);
	t->w.stuck = true;
	KUNIT_EXPECT_EQ(test, krcore_fetch(t->kept[1], &fetch), 0);
	krcore_letter_free(t->kept[1]);
	KUNIT_EXPECT_EQ(test, t->done, 0U);
	t->w.stuck = false;
	krc_test_until(&t->w, READ_ONCE(t->done) == 1 && READ_ONCE(a->done) == 2);
	KUNIT_EXPECT_EQ(test, t->status, 0);
	KUNIT_EXPECT_EQ(test, a->failed, 1U);
}

/* Let the lease of what the first port has announced be over, and the time that READs may take. */
static void krc_test_mail_lease_ends(struct krc_test_mail *t, struct krc_test_program *a)
{
	spin_lock_bh(&a->stream->lock);
	t->w.side[0].messages->conf.lease_ms = KRP_MRDIR_LEASE_MS_MIN;
	t->w.side[0].messages->conf.margin_ms = KRP_MRDIR_MARGIN_MS_MIN;
	spin_unlock_bh(&a->stream->lock);
	krc_stream_kick(a->stream);
	krc_test_until(&t->w, READ_ONCE(a->done));
}

/*
 * A close tells of a READ that is under way; the region is in use until that is over. The peer hears of it
 * at once, and has its memory back when its lease is over.
 */
static void krc_test_mail_close_under_a_fetch(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	const struct krcore_fetch fetch = { .region = &t->region,
					    .length = PAGE_SIZE,
					    .done = krc_test_mail_done };
	struct krcore_letter *letter = krc_test_mail_takes(t);
	struct krc_test_program *a = &t->w.side[0].end[0];

	t->w.stuck = true;
	KUNIT_EXPECT_EQ(test, krcore_fetch(letter, &fetch), 0);
	krcore_conn_close(t->conn, true);
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 2U);
	t->w.stuck = false;
	krc_test_until(&t->w, READ_ONCE(a->died) && kref_read(&t->mr.ref) == 1);
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	KUNIT_EXPECT_EQ(test, a->err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, a->done, 0U); /* nothing tells it that the READ is over */
	krc_test_mail_lease_ends(t, a);
	KUNIT_EXPECT_EQ(test, a->last, -ECONNRESET);
}

/* The other way round: memory of the client is announced, and is its own again when it was READ. */
static void krc_test_mail_announces(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_send send = { .region = &t->region,
				    .length = KRC_TEST_MAIL_LARGE,
				    .imm = 7,
				    .done = krc_test_mail_done };
	struct krc_test_program *a = &t->w.side[0].end[0];

	krc_test_mail_joined(t, a);
	krc_test_mail_region(t, KRP_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EACCES);
	t->mr.access = KRP_ACCESS_MESSAGE;
	send.bytes = t->memory;
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EINVAL);
	send.bytes = NULL;
	send.length = 0;
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EMSGSIZE);
	send.length = KRC_TEST_MAIL_LARGE;
	send.offset = 1;
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -ERANGE);
	send.offset = 0;
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 1U);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), 0);
	krc_test_until(&t->w, (krc_test_read(a), a->large));
	KUNIT_EXPECT_EQ(test, a->large->length, (u32)KRC_TEST_MAIL_LARGE);
	KUNIT_EXPECT_EQ(test, a->large->imm, 7U);
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 2U);
	KUNIT_EXPECT_EQ(test, t->done, 0U);
	KUNIT_EXPECT_EQ(test, krc_stream_discard(a->stream, a->large->seq), 0);
	krc_test_until(&t->w, READ_ONCE(t->done) == 1);
	KUNIT_EXPECT_EQ(test, t->status, -ENOMSG);
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 1U);
}

static struct kunit_case krc_api_large_cases[] = {
	KUNIT_CASE(krc_test_mail_fetches),
	KUNIT_CASE(krc_test_mail_discards),
	KUNIT_CASE(krc_test_mail_close_under_a_fetch),
	KUNIT_CASE(krc_test_mail_announces),
	{},
};

static struct kunit_suite krc_api_large_suite = {
	.name = "krcore_api_large",
	.init = krc_test_mail_init,
	.exit = krc_test_mail_exit,
	.test_cases = krc_api_large_cases,
};

kunit_test_suite(krc_api_large_suite);
