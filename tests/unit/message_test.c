// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages between nodes on the wire: golden vectors of each type, each rule against the packet
 * that breaks just that one, and each length.
 *
 * `message_test --write` prints proto/vectors/message.txt as this build encodes it. With --judge
 * it reads packets, a line of hexadecimal digits each, and prints what is wrong with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/krp_message.h"
#include "tests/unit/vectors.h"

#define PAYLOAD "what a program sends"
#define VECTOR_LANE "OPENLANE"

struct packet {
	struct krp_message m;
	union {
		struct krp_message_open open;
		struct krp_message_accept accept;
		struct krp_message_challenge challenge;
		struct krp_message_announce announce;
		struct krp_message_ref ref;
		__u8 bytes[KRP_MESSAGE_PACKET_MAX - KRP_MESSAGE_BYTES];
	} body;
};

static void sample_value(struct krp_value *v)
{
	static const __u8 mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

	memset(v, 0, sizeof(*v));
	v->generation = krp_cpu_to_le64(0x1112131415161718ULL);
	v->kind = KRP_KIND_DCT;
	v->dct.dctn = krp_cpu_to_le32(0x313233);
	v->dct.dc_key = krp_cpu_to_le64(0x4142434445464748ULL);
	v->dct.mrdir_addr = krp_cpu_to_le64(0x5152535455565758ULL);
	v->dct.mrdir_rkey = krp_cpu_to_le32(0x61626364);
	memcpy(v->dct.mac, mac, sizeof(mac));
	v->dct.mtu = 5;
	v->dct.port = 1;
	v->dct.flags = KRP_DCT_ETHERNET;
	v->dct.max_rd_atomic = 16;
}

static void sample_open(struct packet *p)
{
	static const __u8 gid[KRP_GID_BYTES] = { 0xfe, 0x80, 0, 0,    0,    0,	  0,	0,
						 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56 };

	p->m.tag = 0;
	p->m.held = 0;
	p->m.seq = krp_cpu_to_le64(1);
	p->m.ack = krp_cpu_to_le64(1);
	p->m.dst = krp_cpu_to_le32(300);
	p->m.flags = KRP_MESSAGE_PAYLOAD;
	memcpy(p->body.open.gid, gid, sizeof(gid));
	sample_value(&p->body.open.value);
	p->body.open.tag = krp_cpu_to_le64(0x7172737475767778ULL);
	p->body.open.pass = krp_cpu_to_le64(0x8182838485868788ULL);
	p->body.open.peer_generation = krp_cpu_to_le64(0x9192939495969798ULL);
	p->body.open.user_len = 5;
	memcpy(p->body.open.user, "hello", 5);
}

static void sample_body(struct packet *p)
{
	switch (p->m.type) {
	case KRP_MESSAGE_OPEN:
		sample_open(p);
		break;
	case KRP_MESSAGE_ANNOUNCE:
		p->m.length = krp_cpu_to_le32(0x123456);
		p->body.announce.addr = krp_cpu_to_le64(0x7f0123456001ULL);
		p->body.announce.rkey = krp_cpu_to_le32(0x21222324);
		p->body.announce.slot = 3;
		p->body.announce.lease_ms = krp_cpu_to_le32(KRP_MRDIR_LEASE_MS);
		p->body.announce.margin_ms = krp_cpu_to_le32(300);
		break;
	case KRP_MESSAGE_ACCEPT:
		p->body.accept.tag = krp_cpu_to_le64(0xa1a2a3a4a5a6a7a8ULL);
		p->body.accept.user_len = 2;
		memcpy(p->body.accept.user, "ok", 2);
		break;
	case KRP_MESSAGE_CHALLENGE:
		p->body.challenge.pass = krp_cpu_to_le64(0x8182838485868788ULL);
		break;
	case KRP_MESSAGE_DONE:
	case KRP_MESSAGE_CANCEL:
		p->body.ref.seq = krp_cpu_to_le64(0x0203040506070809ULL);
		break;
	default:
		break;
	}
}

/* A packet of a type with something in each field that may have it. Return: bytes. */
static __u32 sample(struct packet *p, unsigned int type)
{
	int says = type == KRP_MESSAGE_OPEN || type == KRP_MESSAGE_DATA;
	__u32 length = (__u32)strlen(PAYLOAD);

	memset(p, 0, sizeof(*p));
	p->m.magic = krp_cpu_to_le16(KRP_MESSAGE_MAGIC);
	p->m.version = KRP_MESSAGE_VERSION;
	p->m.type = (__u8)type;
	p->m.flags = (__u8)krp_message_flags(type);
	p->m.tag = krp_cpu_to_le64(0x0102030405060708ULL);
	p->m.src = krp_cpu_to_le32(0x01020304);
	p->m.dst = krp_cpu_to_le32(0x05060708);
	p->m.generation = krp_cpu_to_le64(0x1112131415161718ULL);
	if (!krp_message_bare(type)) {
		p->m.held = krp_cpu_to_le16(0x8001);
		p->m.seq = krp_cpu_to_le64(0x0203040506070809ULL);
		p->m.ack = krp_cpu_to_le64(0x030405060708090aULL);
		p->m.msgs = krp_cpu_to_le32(0xfffffff8);
		p->m.units = krp_cpu_to_le32(0xc1c2c3c4);
	}
	if (says || type == KRP_MESSAGE_ANNOUNCE)
		p->m.imm = krp_cpu_to_le32(0xd1d2d3d4);
	if (type == KRP_MESSAGE_DONE)
		p->m.imm = krp_cpu_to_le32(KRP_REFUSE_FAULT);
	if (type == KRP_MESSAGE_REFUSE)
		p->m.imm = krp_cpu_to_le32(KRP_REFUSE_UNKNOWN);
	sample_body(p);
	if (!says)
		return (__u32)sizeof(p->m) + krp_message_body(type);
	p->m.length = krp_cpu_to_le32(length);
	memcpy(p->body.bytes + krp_message_body(type), PAYLOAD, length);
	return (__u32)sizeof(p->m) + krp_message_body(type) + length;
}

/* OPEN of a node whose port has no DC. Return: bytes. */
static __u32 sample_lane(struct packet *p)
{
	__u32 bytes = sample(p, KRP_MESSAGE_OPEN);

	p->body.open.value.kind = KRP_KIND_LANE;
	p->body.open.value.dct.dctn = 0;
	p->body.open.value.dct.dc_key = 0;
	p->body.open.value.dct.ud_qpn = krp_cpu_to_le32(0x414243);
	p->body.open.value.dct.ud_qkey = krp_cpu_to_le32(0x44454647);
	return bytes;
}

static void test_vectors(void **state)
{
	unsigned char want[VECTOR_BYTES_MAX];
	struct packet p;
	unsigned int type;
	__u32 bytes;

	(void)state;
	for (type = 1; type < KRP_MESSAGE_TYPES; type++) {
		bytes = sample(&p, type);
		assert_int_equal(vector_load("message.txt", krp_message_name(type), want), bytes);
		assert_memory_equal(&p, want, bytes);
		assert_int_equal(krp_message_check(&p, bytes), KRP_MESSAGE_OK);
	}
	bytes = sample_lane(&p);
	assert_int_equal(vector_load("message.txt", VECTOR_LANE, want), bytes);
	assert_memory_equal(&p, want, bytes);
	assert_int_equal(krp_message_check(&p, bytes), KRP_MESSAGE_OK);
	p.body.open.value.dct.ud_qpn = 0;
	assert_int_equal(krp_message_check(&p, bytes), KRP_MESSAGE_BAD_VALUE);
}

static void test_each_length(void **state)
{
	struct packet p;
	unsigned int type;
	__u32 bytes, i;

	(void)state;
	for (type = 1; type < KRP_MESSAGE_TYPES; type++) {
		bytes = sample(&p, type);
		for (i = 0; i < KRP_MESSAGE_PACKET_MAX; i++)
			if (i != bytes)
				assert_int_equal(krp_message_check(&p, i), KRP_MESSAGE_BAD_BYTES);
	}
}

static enum krp_message_field with(unsigned int type, size_t at, __u64 value, unsigned int bytes)
{
	struct packet p;
	__u32 length = sample(&p, type);
	__le64 le = krp_cpu_to_le64(value);

	memcpy((__u8 *)&p + at, &le, bytes);
	return krp_message_check(&p, length);
}

#define WITH(type, field, value) \
	with(KRP_MESSAGE_##type, offsetof(struct packet, field), value, \
	     sizeof(((struct packet *)NULL)->field))
#define BREAKS(type, field, value, name) \
	assert_int_equal(WITH(type, field, value), KRP_MESSAGE_BAD_##name)
#define HOLDS(type, field, value) assert_int_equal(WITH(type, field, value), KRP_MESSAGE_OK)

static void test_rules_of_the_header(void **state)
{
	(void)state;
	BREAKS(DATA, m.magic, 0x4d43, MAGIC);
	BREAKS(DATA, m.version, 2, VERSION);
	BREAKS(DATA, m.type, 0, TYPE);
	BREAKS(DATA, m.type, KRP_MESSAGE_TYPES, TYPE);
	BREAKS(DATA, m.flags, KRP_MESSAGE_PAYLOAD, FLAGS);
	BREAKS(CLOSE, m.flags, KRP_MESSAGE_HURRY, FLAGS);
	BREAKS(REFUSE, m.flags, 0x40, FLAGS);
	BREAKS(DATA, m.rsvd, 1, RSVD);
	BREAKS(OPEN, m.held, 1, HELD);
	BREAKS(CHALLENGE, m.held, 1, HELD);
	BREAKS(OPEN, m.tag, 1, TAG);
	BREAKS(DATA, m.tag, 0, TAG);
	BREAKS(OPEN, m.dst, KRP_SERVICE_USER_MIN - 1, DST);
	BREAKS(OPEN, m.dst, 0x10000, DST);
	HOLDS(OPEN, m.dst, 0xffff);
	HOLDS(DATA, m.dst, 0);
	BREAKS(DATA, m.generation, 0, GENERATION);
	BREAKS(OPEN, m.seq, 2, SEQ);
	BREAKS(DATA, m.seq, 0, SEQ);
	BREAKS(PROBE, m.seq, 1ULL << 62, SEQ);
	HOLDS(PROBE, m.seq, (1ULL << 62) - 1);
	BREAKS(CHALLENGE, m.seq, 1, SEQ);
	BREAKS(OPEN, m.ack, 2, ACK);
	BREAKS(DATA, m.ack, 0, ACK);
	BREAKS(DATA, m.ack, 1ULL << 63, ACK);
	BREAKS(REFUSE, m.ack, 1, ACK);
	BREAKS(REFUSE, m.msgs, 1, GRANT);
	BREAKS(CHALLENGE, m.units, 1, GRANT);
	BREAKS(DATA, m.length, KRP_MESSAGE_DATA_MAX + 1, LENGTH);
	BREAKS(OPEN, m.length, KRP_MESSAGE_FIRST_MAX + 1, LENGTH);
	BREAKS(OPEN, m.flags, 0, LENGTH); /* bytes, but no message */
	BREAKS(ANNOUNCE, m.length, 0, LENGTH);
	BREAKS(ANNOUNCE, m.length, KRP_MESSAGE_LARGE_MAX + 1ULL, LENGTH);
	HOLDS(ANNOUNCE, m.length, KRP_MESSAGE_LARGE_MAX);
	BREAKS(CLOSE, m.length, 1, LENGTH);
	BREAKS(CREDIT, m.imm, 1, IMM);
	BREAKS(REFUSE, m.imm, 0, IMM);
	BREAKS(REFUSE, m.imm, KRP_REFUSE_CODES, IMM);
	BREAKS(REFUSE, m.imm, KRP_REFUSE_CANCELLED, IMM); /* that is DONE's */
	BREAKS(REFUSE, m.imm, KRP_REFUSE_FAULT, IMM);
	HOLDS(REFUSE, m.imm, KRP_REFUSE_BROKEN);
	BREAKS(DONE, m.imm, KRP_REFUSE_CODES, IMM);
	BREAKS(DONE, m.imm, KRP_REFUSE_SERVICE, IMM);
	BREAKS(DONE, m.imm, KRP_REFUSE_BACKLOG, IMM);
	BREAKS(DONE, m.imm, KRP_REFUSE_BROKEN, IMM);
	HOLDS(DONE, m.imm, KRP_REFUSE_CANCELLED);
	HOLDS(DONE, m.imm, 0);
}

static void test_rules_of_the_bodies(void **state)
{
	(void)state;
	BREAKS(OPEN, body.open.tag, 0, TAG);
	BREAKS(OPEN, body.open.value.kind, KRP_KIND_RAW, VALUE);
	BREAKS(OPEN, body.open.value.dct.mtu, 6, VALUE);
	BREAKS(OPEN, body.open.value.generation, 5, GENERATION);
	BREAKS(OPEN, body.open.peer_generation, 0, GENERATION);
	BREAKS(OPEN, body.open.rsvd[6], 1, RSVD);
	BREAKS(OPEN, body.open.user_len, KRP_MESSAGE_USER_MAX + 1, USER);
	BREAKS(OPEN, body.open.user_len, 4, RSVD);
	HOLDS(OPEN, body.open.user_len, KRP_MESSAGE_USER_MAX);
	HOLDS(OPEN, body.open.pass, 0);
	BREAKS(ACCEPT, body.accept.tag, 0, TAG);
	BREAKS(ACCEPT, body.accept.rsvd[0], 1, RSVD);
	BREAKS(ACCEPT, body.accept.user_len, 33, USER);
	BREAKS(ACCEPT, body.accept.user[31], 1, RSVD);
	BREAKS(CHALLENGE, body.challenge.pass, 0, PASS);
	BREAKS(ANNOUNCE, body.announce.addr, -0x1000ULL, ADDR);
	BREAKS(ANNOUNCE, body.announce.slot, KRP_MESSAGE_ANNOUNCED_MAX, SLOT);
	BREAKS(ANNOUNCE, body.announce.rsvd[2], 1, RSVD);
	BREAKS(ANNOUNCE, body.announce.lease_ms, KRP_MRDIR_LEASE_MS_MIN - 1, LEASE);
	BREAKS(ANNOUNCE, body.announce.lease_ms, KRP_MRDIR_LEASE_MS_MAX + 1, LEASE);
	BREAKS(ANNOUNCE, body.announce.margin_ms, KRP_MRDIR_MARGIN_MS_MIN - 1, LEASE);
	BREAKS(ANNOUNCE, body.announce.margin_ms, KRP_MRDIR_MARGIN_MS_MAX + 1, LEASE);
	BREAKS(DONE, body.ref.seq, 0, SEQ);
	BREAKS(CANCEL, body.ref.seq, 0, SEQ);
}

static void test_units(void **state)
{
	(void)state;
	assert_int_equal(krp_message_units(KRP_MESSAGE_DATA, 0), 1);
	assert_int_equal(krp_message_units(KRP_MESSAGE_DATA, 64), 1);
	assert_int_equal(krp_message_units(KRP_MESSAGE_DATA, 65), 2);
	assert_int_equal(krp_message_units(KRP_MESSAGE_DATA, KRP_MESSAGE_DATA_MAX),
			 KRP_MESSAGE_UNITS_MAX);
	assert_int_equal(krp_message_units(KRP_MESSAGE_ANNOUNCE, KRP_MESSAGE_LARGE_MAX), 1);
}

static void test_names(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < KRP_MESSAGE_FIELDS; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(krp_message_field_name(i),
						krp_message_field_name(j));
	assert_string_equal(krp_message_field_name(KRP_MESSAGE_BAD_LEASE), "lease");
	assert_string_equal(krp_message_field_name(KRP_MESSAGE_BAD_HELD), "held");
	assert_string_equal(krp_message_field_name(KRP_MESSAGE_BAD_LENGTH), "length");
	assert_string_equal(krp_message_field_name(KRP_MESSAGE_FIELDS), "unknown");
	assert_string_equal(krp_message_name(KRP_MESSAGE_REFUSE), "REFUSE");
	assert_string_equal(krp_message_name(KRP_MESSAGE_TYPES), "unknown");
	assert_int_equal(krp_refuse_errno(0), 0);
	for (i = 1; i < KRP_REFUSE_CODES; i++)
		assert_true(krp_refuse_errno(i) < 0 && krp_refuse_errno(i) != -EAGAIN);
	assert_int_equal(krp_refuse_errno(KRP_REFUSE_CODES), -EPROTO);
}

/* --write and --judge */

/* The fields of a header that its vector was made of. */
static void print_fields(const struct krp_message *m)
{
	printf("#= %s version=%u type=%u flags=%u held=%u tag=%llu src=%u dst=%u generation=%llu "
	       "seq=%llu ack=%llu msgs=%u units=%u length=%u imm=%u\n",
	       krp_message_name(m->type), m->version, m->type, m->flags, krp_le16_to_cpu(m->held),
	       (unsigned long long)krp_le64_to_cpu(m->tag), krp_le32_to_cpu(m->src),
	       krp_le32_to_cpu(m->dst), (unsigned long long)krp_le64_to_cpu(m->generation),
	       (unsigned long long)krp_le64_to_cpu(m->seq),
	       (unsigned long long)krp_le64_to_cpu(m->ack), krp_le32_to_cpu(m->msgs),
	       krp_le32_to_cpu(m->units), krp_le32_to_cpu(m->length), krp_le32_to_cpu(m->imm));
}

static void print_bytes(const char *name, const struct packet *p, __u32 bytes)
{
	__u32 i;

	printf("%s:", name);
	for (i = 0; i < bytes; i++)
		printf("%s%02x", i % 8 ? "" : " ", ((const __u8 *)p)[i]);
	printf("\n");
}

static int write_vectors(void)
{
	struct packet p;
	unsigned int type;
	__u32 bytes;

	printf("# SPDX-%s: (GPL-2.0-only WITH Linux-syscall-note) OR MIT\n", "License-Identifier");
	printf("# Golden vectors of proto/krp_message.h: the header's fields, then the bytes.\n"
	       "# tests/unit/message_test.c has the fields of the bodies.\n");
	for (type = 1; type < KRP_MESSAGE_TYPES; type++) {
		bytes = sample(&p, type);
		print_fields(&p.m);
		print_bytes(krp_message_name(type), &p, bytes);
	}
	print_bytes(VECTOR_LANE, &p, sample_lane(&p));
	return 0;
}

static int judge(void)
{
	static char line[2 * KRP_MESSAGE_PACKET_MAX + 64];
	static struct packet p;
	unsigned int byte;
	size_t i, nr;

	while (fgets(line, sizeof(line), stdin)) {
		nr = strspn(line, "0123456789abcdef") / 2;
		if (nr > sizeof(p))
			return 1;
		for (i = 0; i < nr; i++) {
			if (sscanf(line + 2 * i, "%2x", &byte) != 1)
				return 1;
			((__u8 *)&p)[i] = (__u8)byte;
		}
		puts(krp_message_field_name(krp_message_check(&p, (__u32)nr)));
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_each_length),
		cmocka_unit_test(test_rules_of_the_header),
		cmocka_unit_test(test_rules_of_the_bodies),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_names),
	};

	if (argc == 2 && !strcmp(argv[1], "--write"))
		return write_vectors();
	if (argc == 2 && !strcmp(argv[1], "--judge"))
		return judge();
	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
