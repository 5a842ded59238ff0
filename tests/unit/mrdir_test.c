// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Entries of a memory directory: the golden vectors, each check of a reader against the
 * entry that breaks just that rule, and references at the edges of a region. Also that
 * /dev/krcore looks alike to 32-bit and 64-bit programs.
 *
 * `mrdir_test --write` prints proto/vectors/mrdir.txt as this build encodes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/krp_ioctl.h"
#include "proto/krp_ioctl_message.h"
#include "proto/krp_mrdir.h"
#include "tests/unit/vectors.h"

#define TOKEN 0xc0ffee0123450007ULL /* slot 7 */

static void sample_entry(struct krp_mrdir_entry *e)
{
	memset(e, 0, sizeof(*e));
	e->token = krp_cpu_to_le64(TOKEN);
	e->addr = krp_cpu_to_le64(0x7f0123456001ULL);
	e->length = krp_cpu_to_le64(0x10000);
	e->rkey = krp_cpu_to_le32(0x31323300);
	e->access = KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_REMOTE_READ | KRP_ACCESS_REMOTE_WRITE;
	e->state = KRP_MRDIR_LIVE;
	e->lease_ms = krp_cpu_to_le32(KRP_MRDIR_LEASE_MS);
	e->margin_ms = krp_cpu_to_le32(300);
	e->generation = krp_cpu_to_le64(0x1112131415161718ULL);
	krp_mrdir_seal(e);
}

static void sample_free(struct krp_mrdir_entry *e)
{
	memset(e, 0, sizeof(*e));
	krp_mrdir_seal(e);
}

static void test_vectors(void **state)
{
	unsigned char want[VECTOR_BYTES_MAX];
	struct krp_mrdir_entry e;

	(void)state;
	sample_entry(&e);
	assert_int_equal(vector_load("mrdir.txt", "live", want), sizeof(e));
	assert_memory_equal(&e, want, sizeof(e));
	sample_free(&e);
	assert_int_equal(vector_load("mrdir.txt", "free", want), sizeof(e));
	assert_memory_equal(&e, want, sizeof(e));
}

static void test_whole_entry_is_its_tokens_only(void **state)
{
	struct krp_mrdir_entry e;

	(void)state;
	sample_entry(&e);
	assert_int_equal(krp_mrdir_check(&e, TOKEN), KRP_MRDIR_HIT);
	assert_int_equal(krp_mrdir_check(&e, TOKEN ^ 1), KRP_MRDIR_NONE); /* other slot */
	assert_int_equal(krp_mrdir_check(&e, TOKEN ^ 1ULL << 63), KRP_MRDIR_NONE); /* old token */
	assert_int_equal(krp_mrdir_check(&e, 0), KRP_MRDIR_NONE);
	sample_free(&e);
	assert_int_equal(krp_mrdir_check(&e, TOKEN), KRP_MRDIR_NONE);
	assert_int_equal(krp_mrdir_check(&e, 0), KRP_MRDIR_NONE);
}

static void test_any_flipped_bit_is_torn(void **state)
{
	struct krp_mrdir_entry e;
	unsigned int bit;

	(void)state;
	sample_entry(&e);
	for (bit = 0; bit < 8 * sizeof(e); bit++) {
		((__u8 *)&e)[bit / 8] ^= (__u8)(1 << bit % 8);
		assert_int_equal(krp_mrdir_check(&e, TOKEN), KRP_MRDIR_TORN);
		((__u8 *)&e)[bit / 8] ^= (__u8)(1 << bit % 8);
	}
	assert_int_equal(krp_mrdir_check(&e, TOKEN), KRP_MRDIR_HIT);
}

/* A READ samples memory in any order: every mixture of two entries, by 8 bytes. */
static void test_mixture_of_two_entries_is_torn(void **state)
{
	struct krp_mrdir_entry a, b, mix;
	unsigned int mask, i;

	(void)state;
	sample_entry(&a);
	b = a;
	b.token = krp_cpu_to_le64(0xabcdef9876540007ULL);
	b.addr = krp_cpu_to_le64(0x560000000000ULL);
	b.length = krp_cpu_to_le64(64);
	b.rkey = krp_cpu_to_le32(0x91929300);
	b.access = KRP_ACCESS_REMOTE_READ;
	b.generation = krp_cpu_to_le64(0x1112131415161719ULL);
	krp_mrdir_seal(&b);
	for (mask = 0; mask < 1U << sizeof(mix) / 8; mask++) {
		for (i = 0; i < sizeof(mix) / 8; i++)
			memcpy((__u8 *)&mix + 8 * i, (__u8 *)(mask >> i & 1 ? &b : &a) + 8 * i, 8);
		if (!memcmp(&mix, &a, sizeof(mix)) || !memcmp(&mix, &b, sizeof(mix)))
			assert_int_not_equal(krp_mrdir_check(&mix, TOKEN), KRP_MRDIR_TORN);
		else
			assert_int_equal(krp_mrdir_check(&mix, TOKEN), KRP_MRDIR_TORN);
	}
}

/* A rule, and how to break it. */
static void expect_none(void (*spoil)(struct krp_mrdir_entry *e), const char *rule)
{
	struct krp_mrdir_entry e;

	sample_entry(&e);
	spoil(&e);
	krp_mrdir_seal(&e);
	if (krp_mrdir_check(&e, TOKEN) != KRP_MRDIR_NONE)
		fail_msg("accepted although %s", rule);
}

static void spoil_state(struct krp_mrdir_entry *e)
{
	e->state = KRP_MRDIR_LIVE + 1;
}

static void spoil_pad(struct krp_mrdir_entry *e)
{
	e->rsvd[1] = 1;
}

static void spoil_pad2(struct krp_mrdir_entry *e)
{
	e->rsvd2[7] = 1;
}

static void spoil_length(struct krp_mrdir_entry *e)
{
	e->length = 0;
}

static void spoil_end(struct krp_mrdir_entry *e)
{
	e->addr = krp_cpu_to_le64(-0x10000ULL);
}

static void spoil_margin_min(struct krp_mrdir_entry *e)
{
	e->margin_ms = krp_cpu_to_le32(KRP_MRDIR_MARGIN_MS_MIN - 1);
}

static void spoil_margin_max(struct krp_mrdir_entry *e)
{
	e->margin_ms = krp_cpu_to_le32(KRP_MRDIR_MARGIN_MS_MAX + 1);
}

static void spoil_lease(struct krp_mrdir_entry *e)
{
	e->lease_ms = 0;
}

static void spoil_lease_min(struct krp_mrdir_entry *e)
{
	e->lease_ms = krp_cpu_to_le32(KRP_MRDIR_LEASE_MS_MIN - 1);
}

static void spoil_lease_max(struct krp_mrdir_entry *e)
{
	e->lease_ms = krp_cpu_to_le32(KRP_MRDIR_LEASE_MS_MAX + 1);
}

static void test_whole_entry_that_breaks_a_rule_is_none(void **state)
{
	(void)state;
	expect_none(spoil_state, "its state is unknown");
	expect_none(spoil_pad, "rsvd is not zero");
	expect_none(spoil_pad2, "rsvd2 is not zero");
	expect_none(spoil_length, "it is empty");
	expect_none(spoil_end, "it wraps");
	expect_none(spoil_lease, "it has no lease");
	expect_none(spoil_lease_min, "its lease is too short");
	expect_none(spoil_lease_max, "its lease is too long");
	expect_none(spoil_margin_min, "its margin is too short");
	expect_none(spoil_margin_max, "its margin is too long");
}

static void test_tokens(void **state)
{
	(void)state;
	assert_int_equal(krp_mrdir_slot(TOKEN), 7);
	assert_true(krp_mrdir_token_valid(TOKEN));
	assert_true(krp_mrdir_token_valid(1ULL << KRP_MRDIR_LOG2_MAX | (KRP_MRDIR_SLOTS - 1)));
	assert_false(krp_mrdir_token_valid(1ULL << KRP_MRDIR_LOG2_MAX | KRP_MRDIR_SLOTS));
	assert_false(krp_mrdir_token_valid(TOKEN | 0xffff));
	assert_false(krp_mrdir_token_valid(0));
	assert_false(krp_mrdir_token_valid(7)); /* nothing random in it */
}

static void test_inside(void **state)
{
	const __u64 base = 0x7f0000000001ULL, size = 4096;

	(void)state;
	assert_true(krp_mrdir_inside(base, size, base, 1));
	assert_true(krp_mrdir_inside(base, size, base, size));
	assert_true(krp_mrdir_inside(base, size, base + size - 1, 1));
	assert_false(krp_mrdir_inside(base, size, base, 0));
	assert_false(krp_mrdir_inside(base, size, base - 1, 1));
	assert_false(krp_mrdir_inside(base, size, base - 1, 2));
	assert_false(krp_mrdir_inside(base, size, base + size, 1));
	assert_false(krp_mrdir_inside(base, size, base + 1, size));
	assert_false(krp_mrdir_inside(base, size, base, size + 1));
	assert_false(krp_mrdir_inside(base, size, base, UINT64_MAX));
	assert_false(krp_mrdir_inside(base, size, UINT64_MAX, 2)); /* wraps into nothing */
	assert_false(krp_mrdir_inside(base, size, UINT64_MAX, base + 2)); /* wraps into it */
	assert_true(krp_mrdir_inside(UINT64_MAX - 8, 8, UINT64_MAX - 1, 1));
	assert_false(krp_mrdir_inside(UINT64_MAX - 8, 8, UINT64_MAX, 1));
	assert_true(krp_mrdir_inside(0, UINT64_MAX, 0, UINT64_MAX));
	assert_false(krp_mrdir_inside(0, UINT64_MAX, 1, UINT64_MAX));
	assert_false(krp_mrdir_inside(0, UINT64_MAX, UINT64_MAX, 1));
	assert_false(krp_mrdir_inside(0, 0, 0, 1));
}

/*
 * No field of the interface may depend on the size of a pointer or on what 64-bit
 * numbers are aligned to: every 8-byte field lies at a multiple of 8 as it is, and
 * every size is one. (Compiled with -m32 too: see CMakeLists.txt.)
 */
KRP_STATIC_ASSERT(offsetof(struct krp_setup, map_bytes) == 16, "krp_setup");
KRP_STATIC_ASSERT(offsetof(struct krp_mr_reg, token) == 24, "krp_mr_reg");
KRP_STATIC_ASSERT(offsetof(struct krp_connect, generation) == 40, "krp_connect");
KRP_STATIC_ASSERT(offsetof(struct krp_queue_query, posted) == 16, "krp_queue_query");
KRP_STATIC_ASSERT(offsetof(struct krp_bind, backlog) == 8, "krp_bind");
KRP_STATIC_ASSERT(offsetof(struct krp_bind, rsvd) == 12, "krp_bind");
KRP_STATIC_ASSERT(offsetof(struct krp_wr, compare_add) == 48, "krp_wr");
KRP_STATIC_ASSERT(offsetof(struct krp_wr, swap) == 56, "krp_wr");
KRP_STATIC_ASSERT(offsetof(struct krp_cqe, opcode) == 20, "krp_cqe");
KRP_STATIC_ASSERT(offsetof(struct krp_cqe, offset) == 24, "krp_cqe");
KRP_STATIC_ASSERT(offsetof(struct krp_ring, tail) == 64, "krp_ring"); /* a line of its own */
KRP_STATIC_ASSERT(KRP_IOC_QUERY == 0x8040b700U, "KRP_IOC_QUERY");
KRP_STATIC_ASSERT(KRP_IOC_SETUP == 0xc028b701U, "KRP_IOC_SETUP");
KRP_STATIC_ASSERT(KRP_IOC_PORT == 0xc070b702U, "KRP_IOC_PORT");
KRP_STATIC_ASSERT(KRP_IOC_MR_REG == 0xc028b703U, "KRP_IOC_MR_REG");
KRP_STATIC_ASSERT(KRP_IOC_MR_DEREG == 0x4008b704U, "KRP_IOC_MR_DEREG");
KRP_STATIC_ASSERT(KRP_IOC_QUEUE_CREATE == 0xc010b705U, "KRP_IOC_QUEUE_CREATE");
KRP_STATIC_ASSERT(KRP_IOC_CONNECT == 0xc030b706U, "KRP_IOC_CONNECT");
KRP_STATIC_ASSERT(KRP_IOC_QUEUE_QUERY == 0xc028b707U, "KRP_IOC_QUEUE_QUERY");
KRP_STATIC_ASSERT(KRP_IOC_QUEUE_CLOSE == 0x4008b708U, "KRP_IOC_QUEUE_CLOSE");
KRP_STATIC_ASSERT(KRP_IOC_BIND == 0x4010b709U, "KRP_IOC_BIND");
KRP_STATIC_ASSERT(KRP_IOC_POST == 0xc020b70aU, "KRP_IOC_POST");
KRP_STATIC_ASSERT(KRP_IOC_WAIT == 0x4008b70bU, "KRP_IOC_WAIT");
KRP_STATIC_ASSERT(KRP_IOC_MR_DEREG_MANY == 0xc010b70cU, "KRP_IOC_MR_DEREG_MANY");
KRP_STATIC_ASSERT(offsetof(struct krp_setup, gid) == 24, "krp_setup");

/* Messages, krp_ioctl_message.h: last fields, and those behind a field of another size. */
KRP_STATIC_ASSERT(offsetof(struct krp_inbox, rsvd) == 12, "krp_inbox");
KRP_STATIC_ASSERT(offsetof(struct krp_open, service) == 24, "krp_open");
KRP_STATIC_ASSERT(offsetof(struct krp_open, timeout_ms) == 28, "krp_open");
KRP_STATIC_ASSERT(offsetof(struct krp_open, rsvd2) == 40, "krp_open");
KRP_STATIC_ASSERT(offsetof(struct krp_open, first) == 56, "krp_open");
KRP_STATIC_ASSERT(offsetof(struct krp_open, user) == 64, "krp_open");
KRP_STATIC_ASSERT(offsetof(struct krp_accept, user_len) == 16, "krp_accept");
KRP_STATIC_ASSERT(offsetof(struct krp_accept, user) == 24, "krp_accept");
KRP_STATIC_ASSERT(offsetof(struct krp_send_wr, connection) == 16, "krp_send_wr");
KRP_STATIC_ASSERT(offsetof(struct krp_send_wr, flags) == 32, "krp_send_wr");
KRP_STATIC_ASSERT(offsetof(struct krp_send, error) == 16, "krp_send");
KRP_STATIC_ASSERT(offsetof(struct krp_letter, status) == 12, "krp_letter");
KRP_STATIC_ASSERT(offsetof(struct krp_letter, kind) == 32, "krp_letter");
KRP_STATIC_ASSERT(offsetof(struct krp_letter_peer, queue) == 24, "krp_letter_peer");
KRP_STATIC_ASSERT(offsetof(struct krp_letter_peer, user) == 32, "krp_letter_peer");
KRP_STATIC_ASSERT(offsetof(struct krp_recv, count) == 16, "krp_recv");
KRP_STATIC_ASSERT(offsetof(struct krp_recv, used) == 36, "krp_recv");
KRP_STATIC_ASSERT(offsetof(struct krp_large, user_data) == 16, "krp_large");
KRP_STATIC_ASSERT(offsetof(struct krp_large, length) == 44, "krp_large");
KRP_STATIC_ASSERT(offsetof(struct krp_cancel, connection) == 8, "krp_cancel");
KRP_STATIC_ASSERT(offsetof(struct krp_shut, how) == 4, "krp_shut");
KRP_STATIC_ASSERT(offsetof(struct krp_conn_query, peer) == 16, "krp_conn_query");
KRP_STATIC_ASSERT(offsetof(struct krp_conn_query, sent) == 80, "krp_conn_query");
KRP_STATIC_ASSERT(offsetof(struct krp_conn_query, foreign) == 124, "krp_conn_query");
KRP_STATIC_ASSERT(offsetof(struct krp_post_recv, mr) == 16, "krp_post_recv");
KRP_STATIC_ASSERT(offsetof(struct krp_post_recv, messages) == 24, "krp_post_recv");
KRP_STATIC_ASSERT(offsetof(struct krp_post_recv, flags) == 32, "krp_post_recv");

KRP_STATIC_ASSERT(KRP_IOC_INBOX == 0x4010b718U, "KRP_IOC_INBOX");
KRP_STATIC_ASSERT(KRP_IOC_OPEN == 0xc060b719U, "KRP_IOC_OPEN");
KRP_STATIC_ASSERT(KRP_IOC_ACCEPT == 0x4038b71aU, "KRP_IOC_ACCEPT");
KRP_STATIC_ASSERT(KRP_IOC_SEND == 0xc018b71bU, "KRP_IOC_SEND");
KRP_STATIC_ASSERT(KRP_IOC_RECV == 0xc028b71cU, "KRP_IOC_RECV");
KRP_STATIC_ASSERT(KRP_IOC_LARGE == 0x4030b71dU, "KRP_IOC_LARGE");
KRP_STATIC_ASSERT(KRP_IOC_CANCEL == 0x4010b71eU, "KRP_IOC_CANCEL");
KRP_STATIC_ASSERT(KRP_IOC_SHUT == 0x4008b71fU, "KRP_IOC_SHUT");
KRP_STATIC_ASSERT(KRP_IOC_CONN_QUERY == 0xc080b720U, "KRP_IOC_CONN_QUERY");
KRP_STATIC_ASSERT(KRP_IOC_POST_RECV == 0x4028b721U, "KRP_IOC_POST_RECV");

static void print_entry(const char *name, const struct krp_mrdir_entry *e)
{
	const unsigned char *b = (const unsigned char *)e;
	unsigned int i;

	printf("%s:", name);
	for (i = 0; i < sizeof(*e); i++)
		printf("%s%02x", i % 8 ? "" : " ", b[i]);
	printf("\n");
}

static int write_vectors(void)
{
	struct krp_mrdir_entry e;

	printf("# SPDX-%s: (GPL-2.0-only WITH Linux-syscall-note) OR MIT\n", "License-Identifier");
	printf("# Golden vectors, see tests/unit/mrdir_test.c for the fields behind them.\n");
	sample_entry(&e);
	print_entry("live", &e);
	sample_free(&e);
	print_entry("free", &e);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_whole_entry_is_its_tokens_only),
		cmocka_unit_test(test_any_flipped_bit_is_torn),
		cmocka_unit_test(test_mixture_of_two_entries_is_torn),
		cmocka_unit_test(test_whole_entry_that_breaks_a_rule_is_none),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_inside),
	};

	if (argc == 2 && !strcmp(argv[1], "--write"))
		return write_vectors();
	return cmocka_run_group_tests_name("mrdir", tests, NULL, NULL);
}
