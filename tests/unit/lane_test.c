// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The hand-shake of lanes on the wire: golden vectors of each type with their proofs, each rule
 * against the packet that breaks just that one, and each length.
 *
 * `lane_test --write` prints proto/vectors/lane.txt as this build encodes it. With --judge it
 * reads packets, a line of hexadecimal digits each, and prints what is wrong with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nettle/hmac.h>

#include "common/auth.h"
#include "proto/krp_lane.h"
#include "tests/unit/vectors.h"

static const struct kru_key lane_key = { .len = 16,
					 .bytes = { 0x5a, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
						    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
						    0xff } };

static const __u8 gids[2][KRP_GID_BYTES] = {
	{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56 },
	{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0xa9 },
};

/* The record of a port without DC. */
static void sample_value(struct krp_value *v)
{
	static const __u8 mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

	memset(v, 0, sizeof(*v));
	v->generation = krp_cpu_to_le64(0x1112131415161718ULL);
	v->kind = KRP_KIND_LANE;
	v->dct.mrdir_addr = krp_cpu_to_le64(0x5152535455565758ULL);
	v->dct.mrdir_rkey = krp_cpu_to_le32(0x61626364);
	v->dct.ud_qpn = krp_cpu_to_le32(0x717273);
	v->dct.ud_qkey = krp_cpu_to_le32(0x81828384);
	memcpy(v->dct.mac, mac, sizeof(mac));
	v->dct.mtu = 3;
	v->dct.port = 1;
	v->dct.flags = KRP_DCT_ETHERNET;
	v->dct.max_rd_atomic = 16;
}

static void prove(struct krp_lane_packet *p)
{
	struct hmac_sha256_ctx ctx;

	kru_key_id(&lane_key, p->key_id);
	memset(p->mac, 0, sizeof(p->mac));
	hmac_sha256_set_key(&ctx, lane_key.len, lane_key.bytes);
	hmac_sha256_update(&ctx, strlen(KRP_LABEL_LANE), (const uint8_t *)KRP_LABEL_LANE);
	hmac_sha256_update(&ctx, sizeof(*p), (const uint8_t *)p);
	hmac_sha256_digest(&ctx, KRP_MAC_BYTES, p->mac);
}

/* What only some types have. */
static void sample_rest(struct krp_lane_packet *p)
{
	if (krp_lane_offers(p->type)) {
		p->mtu = p->type == KRP_LANE_REQUEST ? 5 : 3;
		p->max_rd_atomic = 16;
		p->qpn = krp_cpu_to_le32(0x212223);
		p->psn = krp_cpu_to_le32(0xc1c2c3);
	}
	if (p->type <= KRP_LANE_CHALLENGE) {
		p->stamp = krp_cpu_to_le64(0x9192939495969798ULL);
		p->proof = krp_cpu_to_le64(0xa1a2a3a4a5a6a7a8ULL);
	}
	if (p->type == KRP_LANE_REQUEST)
		sample_value(&p->value);
	else if (p->type == KRP_LANE_ACCEPT)
		p->spent = krp_cpu_to_le64(0xb1b2b3b4b5b6b7b8ULL);
	else if (p->type == KRP_LANE_REFUSE)
		p->status = krp_cpu_to_le32(KRP_LANE_BUSY);
}

/* A packet of a type with something in each field that may have it. */
static void sample(struct krp_lane_packet *p, unsigned int type)
{
	int requester = type != KRP_LANE_CLOSED && krp_lane_flags_valid(type, KRP_LANE_REQUESTER);

	memset(p, 0, sizeof(*p));
	p->magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p->version = KRP_LANE_VERSION;
	p->type = (__u8)type;
	p->flags = requester ? KRP_LANE_REQUESTER : 0;
	p->index = 1;
	p->lane = krp_cpu_to_le64(0x0102030405060708ULL);
	p->nonce = krp_cpu_to_le64(0x0203040506070809ULL);
	p->generation = krp_cpu_to_le64(requester ? 0x1112131415161718ULL : 0x3132333435363738ULL);
	p->peer_generation =
		krp_cpu_to_le64(requester ? 0x3132333435363738ULL : 0x1112131415161718ULL);
	memcpy(p->gid, gids[!requester], sizeof(p->gid));
	memcpy(p->peer_gid, gids[requester], sizeof(p->peer_gid));
	sample_rest(p);
	prove(p);
}

static void test_vectors(void **state)
{
	unsigned char want[VECTOR_BYTES_MAX];
	struct krp_lane_packet p;
	unsigned int type;

	(void)state;
	for (type = 1; type < KRP_LANE_TYPES; type++) {
		sample(&p, type);
		assert_int_equal(vector_load("lane.txt", krp_lane_name(type), want), sizeof(p));
		assert_memory_equal(&p, want, sizeof(p));
		assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_OK);
	}
	assert_int_equal(vector_load("lane.txt", "key", want), lane_key.len);
	assert_memory_equal(lane_key.bytes, want, lane_key.len);
}

static void test_each_length(void **state)
{
	__u64 bytes[2 * KRP_LANE_BYTES / sizeof(__u64)] = { 0 };
	unsigned int type;
	__u32 i;

	(void)state;
	for (type = 1; type < KRP_LANE_TYPES; type++) {
		sample((struct krp_lane_packet *)bytes, type);
		for (i = 0; i < sizeof(bytes); i++)
			if (i != KRP_LANE_BYTES)
				assert_int_equal(krp_lane_check(bytes, i), KRP_LANE_BAD_BYTES);
	}
}

static enum krp_lane_field with(unsigned int type, size_t at, __u64 value, unsigned int bytes)
{
	struct krp_lane_packet p;
	__le64 le = krp_cpu_to_le64(value);

	sample(&p, type);
	memcpy((__u8 *)&p + at, &le, bytes);
	return krp_lane_check(&p, sizeof(p));
}

#define WITH(type, field, value) \
	with(KRP_LANE_##type, offsetof(struct krp_lane_packet, field), value, \
	     sizeof(((struct krp_lane_packet *)NULL)->field))
#define BREAKS(type, field, value, name) \
	assert_int_equal(WITH(type, field, value), KRP_LANE_BAD_##name)
#define HOLDS(type, field, value) assert_int_equal(WITH(type, field, value), KRP_LANE_OK)

static void test_rules_of_the_head(void **state)
{
	(void)state;
	BREAKS(REQUEST, magic, 0x584b, MAGIC);
	BREAKS(REQUEST, version, 2, VERSION);
	BREAKS(REQUEST, type, 0, TYPE);
	BREAKS(REQUEST, type, KRP_LANE_TYPES, TYPE);
	BREAKS(REQUEST, flags, 0, FLAGS);
	BREAKS(CHALLENGE, flags, KRP_LANE_REQUESTER, FLAGS);
	BREAKS(ACCEPT, flags, KRP_LANE_REQUESTER, FLAGS);
	BREAKS(REFUSE, flags, KRP_LANE_REQUESTER, FLAGS);
	BREAKS(READY, flags, 2, FLAGS);
	HOLDS(READY, flags, 0);
	HOLDS(HEARD, flags, KRP_LANE_REQUESTER);
	HOLDS(CLOSED, flags, KRP_LANE_REQUESTER);
	BREAKS(CLOSE, index, KRP_LANE_INDEXES, INDEX);
	HOLDS(CLOSE, index, KRP_LANE_INDEXES - 1);
	BREAKS(REQUEST, mtu, 0, MTU);
	BREAKS(ACCEPT, mtu, 6, MTU);
	BREAKS(READY, mtu, 1, MTU);
	BREAKS(REQUEST, max_rd_atomic, 0, RD_ATOMIC);
	BREAKS(REFUSE, max_rd_atomic, 1, RD_ATOMIC);
	BREAKS(READY, lane, 0, LANE);
	BREAKS(CLOSED, nonce, 0, NONCE);
	BREAKS(HEARD, generation, 0, GENERATION);
	BREAKS(CHALLENGE, peer_generation, 0, GENERATION);
	BREAKS(CLOSE, gid[15], 0xa9, GID); /* then both are the same */
}

static void test_gids_that_are_none(void **state)
{
	struct krp_lane_packet p;

	(void)state;
	sample(&p, KRP_LANE_REQUEST);
	memset(p.gid, 0, sizeof(p.gid));
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_BAD_GID);
	sample(&p, KRP_LANE_REQUEST);
	memset(p.peer_gid, 0, sizeof(p.peer_gid));
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_BAD_GID);
}

static void test_rules_of_the_rest(void **state)
{
	(void)state;
	BREAKS(REQUEST, qpn, 1, QPN);
	BREAKS(ACCEPT, qpn, 0xffffff, QPN);
	BREAKS(READY, qpn, 2, QPN);
	HOLDS(ACCEPT, qpn, 0xfffffe);
	HOLDS(ACCEPT, qpn, 2);
	BREAKS(REQUEST, psn, 1 << 24, PSN);
	BREAKS(CLOSE, psn, 1, PSN);
	HOLDS(REQUEST, psn, 0);
	BREAKS(REQUEST, spent, 1, SPENT);
	BREAKS(REFUSE, spent, 1, SPENT);
	HOLDS(ACCEPT, spent, 0);
	BREAKS(REQUEST, stamp, 0, COOKIE);
	BREAKS(REQUEST, proof, 0, COOKIE);
	BREAKS(CHALLENGE, stamp, 0, COOKIE);
	BREAKS(ACCEPT, stamp, 1, COOKIE);
	BREAKS(CLOSE, proof, 1, COOKIE);
	BREAKS(REQUEST, value.kind, KRP_KIND_RAW, VALUE);
	BREAKS(REQUEST, value.dct.dctn, 1, VALUE);
	BREAKS(REQUEST, value.dct.ud_qpn, 0, VALUE);
	BREAKS(REQUEST, value.dct.mtu, 6, VALUE);
	BREAKS(REQUEST, value.generation, 5, VALUE);
	BREAKS(ACCEPT, value.kind, KRP_KIND_LANE, VALUE);
	BREAKS(READY, value.dct.rsvd, 1, VALUE);
	HOLDS(REQUEST, value.kind, KRP_KIND_DCT);
	BREAKS(REFUSE, status, 0, STATUS);
	BREAKS(REFUSE, status, KRP_LANE_CODES, STATUS);
	BREAKS(ACCEPT, status, KRP_LANE_BUSY, STATUS);
	HOLDS(REFUSE, status, KRP_LANE_SHUT);
	BREAKS(READY, key_id, 0, MAC);
}

/* A REQUEST has a cookie, or none; a DC target that makes no lanes has no business here. */
static void test_cookies_and_records(void **state)
{
	struct krp_lane_packet p;

	(void)state;
	sample(&p, KRP_LANE_REQUEST);
	p.stamp = 0;
	p.proof = 0;
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_OK);
	sample(&p, KRP_LANE_CHALLENGE);
	p.stamp = 0;
	p.proof = 0;
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_BAD_COOKIE);
	sample(&p, KRP_LANE_REQUEST);
	p.value.kind = KRP_KIND_DCT;
	p.value.dct.ud_qpn = 0;
	assert_true(krp_value_valid(&p.value));
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_BAD_VALUE);
	sample(&p, KRP_LANE_REQUEST);
	p.value.kind = KRP_KIND_RAW;
	p.value.len = KRP_RAW_BYTES;
	assert_true(krp_value_valid(&p.value));
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_BAD_VALUE);
	sample(&p, KRP_LANE_READY);
	memset(p.key_id, 0, sizeof(p.key_id));
	memset(p.mac, 0, sizeof(p.mac));
	assert_int_equal(krp_lane_check(&p, sizeof(p)), KRP_LANE_OK);
}

static void test_names(void **state)
{
	static const int codes[KRP_LANE_CODES] = { -EPROTO, -ESTALE, -EBUSY, -ENOSPC, -ESHUTDOWN };
	unsigned int i, j;

	(void)state;
	for (i = 0; i < KRP_LANE_FIELDS; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(krp_lane_field_name(i), krp_lane_field_name(j));
	assert_string_equal(krp_lane_field_name(KRP_LANE_BAD_MAC), "mac");
	assert_string_equal(krp_lane_field_name(KRP_LANE_BAD_GID), "gid");
	assert_string_equal(krp_lane_field_name(KRP_LANE_FIELDS), "unknown");
	assert_string_equal(krp_lane_name(KRP_LANE_CLOSED), "CLOSED");
	assert_string_equal(krp_lane_name(KRP_LANE_TYPES), "unknown");
	for (i = 0; i < KRP_LANE_CODES; i++)
		assert_int_equal(krp_lane_errno(i), codes[i]);
	assert_int_equal(krp_lane_errno(KRP_LANE_CODES), -EPROTO);
}

/* --write and --judge */

static void print_hex(const char *name, const void *bytes, size_t nr)
{
	size_t i;

	printf("%s:", name);
	for (i = 0; i < nr; i++)
		printf("%s%02x", i % 8 ? "" : " ", ((const __u8 *)bytes)[i]);
	printf("\n");
}

#define NUMBER(p, field) (unsigned long long)krp_le64_to_cpu((p)->field)

/* The fields that a vector was made of, but for bytes. */
static void print_fields(const struct krp_lane_packet *p)
{
	printf("#= %s version=%u type=%u flags=%u index=%u mtu=%u max_rd_atomic=%u lane=%llu "
	       "nonce=%llu generation=%llu peer_generation=%llu qpn=%u psn=%u spent=%llu "
	       "stamp=%llu proof=%llu status=%u\n",
	       krp_lane_name(p->type), p->version, p->type, p->flags, p->index, p->mtu,
	       p->max_rd_atomic, NUMBER(p, lane), NUMBER(p, nonce), NUMBER(p, generation),
	       NUMBER(p, peer_generation), krp_le32_to_cpu(p->qpn), krp_le32_to_cpu(p->psn),
	       NUMBER(p, spent), NUMBER(p, stamp), NUMBER(p, proof), krp_le32_to_cpu(p->status));
}

static int write_vectors(void)
{
	struct krp_lane_packet p;
	unsigned int type;

	printf("# SPDX-%s: (GPL-2.0-only WITH Linux-syscall-note) OR MIT\n", "License-Identifier");
	printf("# Golden vectors of proto/krp_lane.h: the cluster key, and of each packet its numbers "
	       "and its bytes.\n# tests/unit/lane_test.c has the fields that are bytes.\n");
	print_hex("key", lane_key.bytes, lane_key.len);
	for (type = 1; type < KRP_LANE_TYPES; type++) {
		sample(&p, type);
		print_fields(&p);
		print_hex(krp_lane_name(type), &p, sizeof(p));
	}
	return 0;
}

static int judge(void)
{
	static char line[4 * KRP_LANE_BYTES + 64];
	__u64 bytes[2 * KRP_LANE_BYTES / sizeof(__u64)];
	unsigned int byte;
	size_t i, nr;

	while (fgets(line, sizeof(line), stdin)) {
		nr = strspn(line, "0123456789abcdef") / 2;
		if (nr > sizeof(bytes))
			return 1;
		for (i = 0; i < nr; i++) {
			if (sscanf(line + 2 * i, "%2x", &byte) != 1)
				return 1;
			((__u8 *)bytes)[i] = (__u8)byte;
		}
		puts(krp_lane_field_name(krp_lane_check(bytes, (__u32)nr)));
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_each_length),
		cmocka_unit_test(test_rules_of_the_head),
		cmocka_unit_test(test_gids_that_are_none),
		cmocka_unit_test(test_rules_of_the_rest),
		cmocka_unit_test(test_cookies_and_records),
		cmocka_unit_test(test_names),
	};

	if (argc == 2 && !strcmp(argv[1], "--write"))
		return write_vectors();
	if (argc == 2 && !strcmp(argv[1], "--judge"))
		return judge();
	return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
