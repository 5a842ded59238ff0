// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The wire format against its golden vectors, and each check of a receiver
 * against the message that breaks just that rule.
 *
 * `proto_test --write` prints the vectors as this build encodes them; a change
 * of proto/vectors/ is a change of the protocol.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth.h"
#include "proto/krp_lookup.h"
#include "proto/krp_msg.h"
#include "tests/unit/vectors.h"

#define INCARNATION 0x0123456789abcdefULL
#define SALT 0xfedcba9876543210ULL

static const struct krp_key sample_key = {
	.gid = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56 },
};

static void sample_value(struct krp_value *v)
{
	static const __u8 mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };

	memset(v, 0, sizeof(*v));
	v->generation = krp_cpu_to_le64(0x1112131415161718ULL);
	v->kind = KRP_KIND_DCT;
	v->dct.lid = krp_cpu_to_le16(0x2122);
	v->dct.dctn = krp_cpu_to_le32(0x313233);
	v->dct.dc_key = krp_cpu_to_le64(0x4142434445464748ULL);
	v->dct.mrdir_addr = krp_cpu_to_le64(0x5152535455565758ULL);
	v->dct.mrdir_rkey = krp_cpu_to_le32(0x61626364);
	v->dct.ud_qpn = krp_cpu_to_le32(0x717273);
	v->dct.ud_qkey = krp_cpu_to_le32(0x81828384);
	memcpy(v->dct.mac, mac, sizeof(mac));
	v->dct.mtu = 3;
	v->dct.sl = 5;
	v->dct.port = 1;
	v->dct.flags = KRP_DCT_ETHERNET;
	v->dct.max_rd_atomic = 16;
}

/* A port without DC. */
static void sample_lane(struct krp_value *v)
{
	sample_value(v);
	v->kind = KRP_KIND_LANE;
	v->dct.dctn = 0;
	v->dct.dc_key = 0;
}

static void sample_raw(struct krp_value *v)
{
	memset(v, 0, sizeof(*v));
	v->generation = krp_cpu_to_le64(7);
	v->kind = KRP_KIND_RAW;
	v->len = 5;
	memcpy(v->raw, "hello", 5);
}

static void sample_bucket(struct krp_bucket *b)
{
	__u64 hash = krp_key_hash(&sample_key, SALT);
	__u16 seed = 513;

	memset(b, 0, sizeof(*b));
	b->incarnation = krp_cpu_to_le64(INCARNATION);
	b->depth = 9;
	b->prefix = krp_cpu_to_le32(krp_hash_prefix(hash, b->depth));
	b->seed = krp_cpu_to_le16(seed);
	b->index = (__u8)krp_bucket_index(hash, seed);
	b->seq = krp_cpu_to_le32(99);
	b->count = 1;
	b->state = KRP_STATE_LIVE;
	memcpy(b->gid[0], sample_key.gid, sizeof(b->gid[0]));
	b->service[0] = sample_key.service;
	sample_value(&b->value[0]);
	b->sum = krp_cpu_to_le64(krp_bucket_sum(b, INCARNATION, 12345, b->index));
}

/* The key's own bucket in a page of which records are kept aside. */
static void sample_crowded(struct krp_bucket *b)
{
	sample_bucket(b);
	memset(b->gid, 0, sizeof(b->gid));
	memset(b->value, 0, sizeof(b->value));
	b->service[0] = 0;
	b->count = 0;
	b->flags = KRP_BUCKET_CROWDED;
	b->sum = krp_cpu_to_le64(krp_bucket_sum(b, INCARNATION, 12345, b->index));
}

static void sample_root(struct krp_root *r)
{
	memset(r, 0, sizeof(*r));
	r->magic = krp_cpu_to_le64(KRP_ROOT_MAGIC);
	r->version = krp_cpu_to_le16(KRP_TABLE_VERSION);
	r->bytes = krp_cpu_to_le16(sizeof(*r));
	r->log2_segment_pages = 11;
	r->depth = 9;
	r->incarnation = krp_cpu_to_le64(INCARNATION);
	r->salt = krp_cpu_to_le64(SALT);
	r->dir_addr = krp_cpu_to_le64(0x7f0000001000ULL);
	r->dir_rkey = krp_cpu_to_le32(0x1001);
	r->segments_nr = krp_cpu_to_le32(3);
	r->segments_addr = krp_cpu_to_le64(0x7f0000002000ULL);
	r->segments_rkey = krp_cpu_to_le32(0x1002);
	r->epoch = krp_cpu_to_le32(4);
	r->records = krp_cpu_to_le64(4321);
	r->heartbeat = krp_cpu_to_le64(0x0102030405060708ULL);
	r->settling_ms = krp_cpu_to_le32(29000);
	r->sum = krp_cpu_to_le64(krp_root_sum(r));
}

static void sample_segment(struct krp_segment *s)
{
	s->addr = krp_cpu_to_le64(0x7f0000400000ULL);
	s->rkey = krp_cpu_to_le32(0x1003);
	s->check = krp_cpu_to_le32(krp_segment_check(s, 2, INCARNATION));
}

/* What the proofs of the vectors are made with. */
static const struct kru_key auth_key = { .len = 16,
					 .bytes = { 0x5a, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
						    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
						    0xff } };

static void sample_key_id(__u8 *ret_id)
{
	kru_key_id(&auth_key, ret_id);
}

static void sample_link(struct krp_link *link)
{
	memset(link, 0, sizeof(*link));
	memcpy(link->client_gid, sample_key.gid, sizeof(link->client_gid));
	memcpy(link->server_gid, sample_key.gid, sizeof(link->server_gid));
	link->server_gid[15] ^= 0xff;
	link->client_qpn = krp_cpu_to_le32(0x010203);
	link->server_qpn = krp_cpu_to_le32(0x0a0b0c);
}

/* A well-formed message of each type. */
static void sample_hello(struct krp_hello *m)
{
	unsigned int i;

	m->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
	m->generation = krp_cpu_to_le64(0x1112131415161718ULL);
	memset(m->owner, 0xa1, sizeof(m->owner));
	memcpy(m->gid, sample_key.gid, sizeof(m->gid));
	for (i = 0; i < sizeof(m->nonce); i++)
		m->nonce[i] = (__u8)i;
	m->lease_ms = krp_cpu_to_le32(30000);
	m->version_min = KRP_MSG_VERSION;
	m->version_max = KRP_MSG_VERSION;
	strcpy((char *)m->name, "node1");
	sample_key_id(m->key_id);
}

static void sample_challenge(struct krp_challenge *m)
{
	unsigned int i;

	m->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
	for (i = 0; i < sizeof(m->nonce); i++)
		m->nonce[i] = (__u8)(0x80 + i);
	m->flags = KRP_CHALLENGE_AUTH;
	sample_key_id(m->key_id);
}

static void sample_welcome(struct krp_welcome *m)
{
	memset(m->mac, 0xc3, sizeof(m->mac));
	m->root.addr = krp_cpu_to_le64(0x7f0000003000ULL);
	m->root.rkey = krp_cpu_to_le32(0x1004);
	m->root.bytes = krp_cpu_to_le32(sizeof(struct krp_root));
	m->lease_ms = krp_cpu_to_le32(30000);
	m->tick_ms = krp_cpu_to_le32(100);
	m->records_max = krp_cpu_to_le32(1024);
	m->rate_max = krp_cpu_to_le32(20000);
	m->credits = krp_cpu_to_le16(16);
	m->settling_ms = krp_cpu_to_le32(9000);
	memset(m->token, 0xd4, sizeof(m->token));
}

static void sample_notify(struct krp_notify *m)
{
	m->seq = krp_cpu_to_le64(1);
	m->nr = 2;
	m->change[0].key = sample_key;
	m->change[0].event = KRP_EVENT_CHANGED;
	m->change[0].generation = krp_cpu_to_le64(0x1112131415161718ULL);
	m->change[1].key = sample_key;
	m->change[1].key.service = krp_cpu_to_le16(7);
	m->change[1].event = KRP_EVENT_GONE;
	m->change[1].generation = krp_cpu_to_le64(0x2122232425262728ULL);
}

static unsigned int sample_msg(unsigned int type, void *msg)
{
	int to_server = type != KRP_MSG_CHALLENGE && type != KRP_MSG_WELCOME && type < KRP_MSG_ACK;

	krp_msg_init(msg, type, type == KRP_MSG_NOTIFY ? 0 : 0x01020304, KRP_ST_OK,
		     to_server ? 0 : INCARNATION);
	if (type == KRP_MSG_HELLO) {
		sample_hello(msg);
	} else if (type == KRP_MSG_CHALLENGE) {
		sample_challenge(msg);
	} else if (type == KRP_MSG_AUTH) {
		memset(((struct krp_auth *)msg)->mac, 0xb2, KRP_MAC_BYTES);
	} else if (type == KRP_MSG_WELCOME) {
		sample_welcome(msg);
	} else if (type == KRP_MSG_PUBLISH) {
		((struct krp_publish *)msg)->key = sample_key;
		sample_value(&((struct krp_publish *)msg)->value);
	} else if (type == KRP_MSG_WITHDRAW) {
		((struct krp_withdraw *)msg)->key = sample_key;
		memset(((struct krp_withdraw *)msg)->token, 0xd4, KRP_TOKEN_BYTES);
	} else if (type == KRP_MSG_SUBSCRIBE) {
		((struct krp_subscribe *)msg)->flags = KRP_SUBSCRIBE_ALL;
	} else if (type == KRP_MSG_LOOKUP) {
		((struct krp_lookup_msg *)msg)->key = sample_key;
	} else if (type == KRP_MSG_ACK) {
		((struct krp_ack *)msg)->lease_ms = krp_cpu_to_le32(29999);
		((struct krp_ack *)msg)->records = krp_cpu_to_le32(2);
	} else if (type == KRP_MSG_ROOT_REPLY) {
		((struct krp_root_reply *)msg)->root.addr = krp_cpu_to_le64(0x7f0000003000ULL);
		((struct krp_root_reply *)msg)->root.rkey = krp_cpu_to_le32(0x1004);
		((struct krp_root_reply *)msg)->root.bytes = krp_cpu_to_le32(128);
	} else if (type == KRP_MSG_VALUE) {
		sample_value(&((struct krp_value_msg *)msg)->value);
	} else if (type == KRP_MSG_NOTIFY) {
		sample_notify(msg);
	}
	return krp_msg_bytes(type);
}

static int is_to_server(unsigned int type)
{
	return type != KRP_MSG_CHALLENGE && type != KRP_MSG_WELCOME && type < KRP_MSG_ACK;
}

/* ---- vectors ---- */

static void check_vector(const char *file, const char *name, const void *bytes, unsigned int nr)
{
	unsigned char want[VECTOR_BYTES_MAX];

	assert_int_equal(vector_load(file, name, want), nr);
	assert_memory_equal(bytes, want, nr);
}

static void test_hash_vectors(void **state)
{
	__le64 v;

	(void)state;
	/* XXH64 of nothing with seed 0, as its specification lists it */
	assert_true(krp_xxh64("", 0, 0) == 0xef46db3751d8e999ULL);
	v = krp_cpu_to_le64(krp_key_hash(&sample_key, SALT));
	check_vector("hash.txt", "key_hash", &v, sizeof(v));
	v = krp_cpu_to_le64(krp_mix64(1));
	check_vector("hash.txt", "mix64_of_1", &v, sizeof(v));
	v = krp_cpu_to_le64(krp_bucket_index(krp_key_hash(&sample_key, SALT), 513));
	check_vector("hash.txt", "bucket_index", &v, sizeof(v));
}

/* Each byte of a region counts, and none beside it, at any address and of any length. */
static void test_is_zero(void **state)
{
	__u8 buf[64];
	unsigned int from, bytes, at;

	(void)state;
	for (from = 1; from < 10; from++) {
		for (bytes = 0; bytes < 40; bytes++) {
			memset(buf, 0xff, sizeof(buf));
			memset(buf + from, 0, bytes);
			assert_true(krp_is_zero(buf + from, bytes));
			for (at = from; at < from + bytes; at++) {
				buf[at] = 0x80;
				assert_false(krp_is_zero(buf + from, bytes));
				buf[at] = 0;
			}
		}
	}
}

static void test_table_vectors(void **state)
{
	struct krp_segment seg;
	struct krp_bucket b;
	struct krp_value v;
	struct krp_root r;

	(void)state;
	sample_value(&v);
	check_vector("table.txt", "value_dct", &v, sizeof(v));
	sample_raw(&v);
	check_vector("table.txt", "value_raw", &v, sizeof(v));
	sample_lane(&v);
	check_vector("table.txt", "value_lane", &v, sizeof(v));
	sample_bucket(&b);
	check_vector("table.txt", "bucket", &b, sizeof(b));
	sample_crowded(&b);
	check_vector("table.txt", "crowded", &b, sizeof(b));
	sample_segment(&seg);
	check_vector("table.txt", "segment", &seg, sizeof(seg));
	sample_root(&r);
	check_vector("table.txt", "root", &r, sizeof(r));
}

static void test_message_vectors(void **state)
{
	__u64 msg[KRP_MSG_BYTES_MAX / sizeof(__u64)];
	unsigned int type;

	(void)state;
	for (type = KRP_MSG_HELLO; type < KRP_MSG_TYPES; type++) {
		unsigned int bytes = sample_msg(type, msg);

		check_vector("msg.txt", krp_msg_name(type), msg, bytes);
	}
}

/* The messages are those of msg.txt, but for the mac of WELCOME, which counts as zero. */
static void sample_proofs(struct krp_link *ret_link, __u8 *ret_client, __u8 *ret_server)
{
	__u64 hello[KRP_MSG_BYTES_MAX / 8], challenge[KRP_MSG_BYTES_MAX / 8];
	__u64 welcome[KRP_MSG_BYTES_MAX / 8];
	struct kru_handshake shake = { ret_link, (void *)hello, (void *)challenge };

	sample_link(ret_link);
	sample_msg(KRP_MSG_HELLO, hello);
	sample_msg(KRP_MSG_CHALLENGE, challenge);
	sample_msg(KRP_MSG_WELCOME, welcome);
	kru_auth_client(&auth_key, &shake, ret_client);
	kru_auth_server(&auth_key, &shake, (void *)welcome, ret_server);
}

static void test_auth_vectors(void **state)
{
	__u8 client[KRP_MAC_BYTES], server[KRP_MAC_BYTES], id[KRP_KEY_ID_BYTES];
	struct krp_link link;

	(void)state;
	sample_key_id(id);
	sample_proofs(&link, client, server);
	check_vector("auth.txt", "key", auth_key.bytes, (unsigned int)auth_key.len);
	check_vector("auth.txt", "key_id", id, sizeof(id));
	check_vector("auth.txt", "link", &link, sizeof(link));
	check_vector("auth.txt", "client", client, sizeof(client));
	check_vector("auth.txt", "server", server, sizeof(server));
}

/* ---- what a reader must refuse ---- */

static enum krp_verdict verdict(const struct krp_bucket *b, struct krp_value *ret)
{
	__u64 hash = krp_key_hash(&sample_key, SALT);

	return krp_bucket_verdict(b, INCARNATION, 12345, krp_bucket_index(hash, 513), hash,
				  &sample_key, ret);
}

static void test_bucket_any_flipped_bit_is_torn(void **state)
{
	struct krp_value got;
	struct krp_bucket b;
	unsigned int bit;

	(void)state;
	sample_bucket(&b);
	assert_int_equal(verdict(&b, &got), KRP_HIT);
	memset(&got, 0x77, sizeof(got));
	for (bit = 0; bit < 8 * sizeof(b); bit++) {
		((__u8 *)&b)[bit / 8] ^= (__u8)(1 << bit % 8);
		assert_int_equal(verdict(&b, &got), KRP_TORN);
		((__u8 *)&b)[bit / 8] ^= (__u8)(1 << bit % 8);
	}
	assert_int_equal(got.kind, 0x77); /* untouched */
}

static void test_bucket_of_another_place_or_incarnation_is_refused(void **state)
{
	__u64 hash = krp_key_hash(&sample_key, SALT);
	unsigned int index = krp_bucket_index(hash, 513);
	struct krp_bucket b;

	(void)state;
	sample_bucket(&b);
	assert_int_equal(krp_bucket_verdict(&b, INCARNATION, 12346, index, hash, &sample_key, NULL),
			 KRP_TORN);
	assert_int_equal(krp_bucket_verdict(&b, INCARNATION + 1, 12345, index, hash, &sample_key,
					    NULL),
			 KRP_TORN);
	assert_int_equal(krp_bucket_verdict(&b, INCARNATION, 12345, index ^ 1, hash, &sample_key,
					    NULL),
			 KRP_TORN);
}

static void reseal(struct krp_bucket *b)
{
	__u64 hash = krp_key_hash(&sample_key, SALT);

	b->sum =
		krp_cpu_to_le64(krp_bucket_sum(b, INCARNATION, 12345, krp_bucket_index(hash, 513)));
}

static void test_whole_bucket_that_is_not_the_keys_is_stale(void **state)
{
	struct krp_bucket good, b;

	(void)state;
	sample_bucket(&good);
#define STALE_IF(change) \
	do { \
		b = good; \
		change; \
		reseal(&b); \
		assert_int_equal(verdict(&b, NULL), KRP_STALE); \
	} while (0)
	STALE_IF(b.state = KRP_STATE_FREE);
	STALE_IF(b.state = 2);
	STALE_IF(b.count = KRP_BUCKET_RECORDS + 1);
	STALE_IF(b.depth = KRP_DEPTH_MAX + 1);
	STALE_IF(b.prefix ^= krp_cpu_to_le32(1));
	STALE_IF(b.index ^= 1);
	STALE_IF(b.incarnation = krp_cpu_to_le64(INCARNATION + 1));
	STALE_IF(b.flags = KRP_BUCKET_FLAGS_ALL + 1);
	STALE_IF(b.flags = 0x80 | KRP_BUCKET_CROWDED);
	STALE_IF(b.rsvd = 1);
	STALE_IF(b.rsvd2[1] = 1);
#undef STALE_IF
	b = good;
	b.service[0] = krp_cpu_to_le16(1);
	reseal(&b);
	assert_int_equal(verdict(&b, NULL), KRP_MISS);
	b = good;
	b.count = 0;
	reseal(&b);
	assert_int_equal(verdict(&b, NULL), KRP_MISS);
}

/* What is in a crowded bucket is a hit; what is not is no miss. */
static void test_crowded_bucket_proves_no_miss(void **state)
{
	struct krp_value value;
	struct krp_bucket b;

	(void)state;
	memset(&value, 0x77, sizeof(value));
	sample_crowded(&b);
	assert_int_equal(verdict(&b, &value), KRP_ASIDE);
	assert_int_equal(value.kind, 0x77); /* untouched */
	sample_bucket(&b);
	b.flags = KRP_BUCKET_CROWDED;
	reseal(&b);
	assert_int_equal(verdict(&b, &value), KRP_HIT);
	b.service[0] = krp_cpu_to_le16(1);
	reseal(&b);
	assert_int_equal(verdict(&b, NULL), KRP_ASIDE);
	b.prefix ^= krp_cpu_to_le32(1); /* of a page that is not the key's it says nothing */
	reseal(&b);
	assert_int_equal(verdict(&b, NULL), KRP_STALE);
}

static void test_root_checks(void **state)
{
	struct krp_root good, r;

	(void)state;
	sample_root(&good);
	assert_true(krp_root_valid(&good));
#define BAD_IF(change) \
	do { \
		r = good; \
		change; \
		r.sum = krp_cpu_to_le64(krp_root_sum(&r)); \
		assert_false(krp_root_valid(&r)); \
	} while (0)
	BAD_IF(r.magic ^= krp_cpu_to_le64(1));
	BAD_IF(r.version = krp_cpu_to_le16(KRP_TABLE_VERSION + 1));
	BAD_IF(r.version = krp_cpu_to_le16(1));
	BAD_IF(r.bytes = krp_cpu_to_le16(64));
	BAD_IF(r.depth = KRP_DEPTH_MAX + 1);
	BAD_IF(r.log2_segment_pages = KRP_LOG2_SEGMENT_PAGES_MAX + 1);
	BAD_IF(r.segments_nr = krp_cpu_to_le32(KRP_SEGMENTS_MAX + 1));
	BAD_IF(r.segments_nr = 0);
	BAD_IF(r.incarnation = 0);
	BAD_IF(r.dir_addr = 0);
	BAD_IF(r.segments_addr = 0);
	BAD_IF(r.rsvd[1] = 1);
	BAD_IF(r.settling_ms = krp_cpu_to_le32(KRP_SETTLING_MS_MAX + 1));
	BAD_IF(r.rsvd2[0] = 1);
	BAD_IF(r.rsvd2[35] = 1);
#undef BAD_IF
	r = good;
	r.records ^= krp_cpu_to_le64(1);
	assert_false(krp_root_valid(&r)); /* sum */
}

static void test_value_checks(void **state)
{
	struct krp_value good, v;

	(void)state;
	sample_value(&good);
	assert_true(krp_value_valid(&good));
#define BAD_IF(change) \
	do { \
		v = good; \
		change; \
		assert_false(krp_value_valid(&v)); \
	} while (0)
	BAD_IF(v.generation = 0);
	BAD_IF(v.kind = 0);
	BAD_IF(v.kind = 4);
	BAD_IF(v.kind = KRP_KIND_LANE); /* with the number and key of a DC target */
	BAD_IF(v.len = 1);
	BAD_IF(v.dct.rsvd = 1);
	BAD_IF(v.dct.mtu = 0);
	BAD_IF(v.dct.mtu = 6);
	BAD_IF(v.dct.sl = 16);
	BAD_IF(v.dct.port = 0);
	BAD_IF(v.dct.flags = 2);
	BAD_IF(v.dct.dctn = krp_cpu_to_le32(1 << 24));
	BAD_IF(v.dct.ud_qpn = krp_cpu_to_le32(1 << 24));
	sample_lane(&good);
	assert_true(krp_value_valid(&good));
	BAD_IF(v.dct.dctn = krp_cpu_to_le32(1));
	BAD_IF(v.dct.dc_key = krp_cpu_to_le64(1));
	BAD_IF(v.dct.ud_qpn = 0);
	BAD_IF(v.dct.ud_qpn = krp_cpu_to_le32(1 << 24));
	BAD_IF(v.dct.mtu = 6);
	BAD_IF(v.len = 1);
	BAD_IF(v.generation = 0);
	sample_raw(&good);
	assert_true(krp_value_valid(&good));
	BAD_IF(v.len = KRP_RAW_BYTES + 1);
	BAD_IF(v.len = 4); /* the fifth byte is then a pad that is not zero */
#undef BAD_IF
}

/* ---- what a receiver of messages must refuse ---- */

static void test_each_message_passes_in_its_direction_only(void **state)
{
	__u64 msg[KRP_MSG_BYTES_MAX / sizeof(__u64)];
	unsigned int type, bytes;

	(void)state;
	for (type = KRP_MSG_HELLO; type < KRP_MSG_TYPES; type++) {
		bytes = sample_msg(type, msg);
		assert_int_equal(krp_msg_check(msg, bytes, is_to_server(type)), KRP_ST_OK);
		assert_int_equal(krp_msg_check(msg, bytes, !is_to_server(type)), KRP_ST_MALFORMED);
	}
}

static void test_message_header_checks(void **state)
{
	__u64 good[KRP_MSG_BYTES_MAX / 8], msg[KRP_MSG_BYTES_MAX / 8];
	struct krp_msg_hdr *hdr = (void *)msg;
	unsigned int type, bytes;

	(void)state;
	for (type = KRP_MSG_HELLO; type < KRP_MSG_TYPES; type++) {
		bytes = sample_msg(type, good);
#define BAD_IF(change, status) \
	do { \
		memcpy(msg, good, sizeof(msg)); \
		change; \
		assert_int_equal(krp_msg_check(msg, bytes, is_to_server(type)), status); \
	} while (0)
		BAD_IF(hdr->magic ^= krp_cpu_to_le32(1), KRP_ST_MALFORMED);
		/* HELLO is judged by its range, and then its header by that */
		BAD_IF(hdr->version++, type == KRP_MSG_HELLO ? KRP_ST_MALFORMED : KRP_ST_VERSION);
		BAD_IF(hdr->type = KRP_MSG_TYPES, KRP_ST_MALFORMED);
		BAD_IF(hdr->type = 0, KRP_ST_MALFORMED);
		BAD_IF(hdr->bytes ^= krp_cpu_to_le16(8), KRP_ST_MALFORMED);
		BAD_IF(hdr->rsvd[1] = 1, KRP_ST_MALFORMED);
		BAD_IF(hdr->rsvd2[7] = 1, KRP_ST_MALFORMED);
		BAD_IF(hdr->status = krp_cpu_to_le16(KRP_ST_CODES), KRP_ST_MALFORMED);
		if (is_to_server(type)) {
			BAD_IF(hdr->status = krp_cpu_to_le16(1), KRP_ST_MALFORMED);
			BAD_IF(hdr->incarnation = krp_cpu_to_le64(1), KRP_ST_MALFORMED);
		}
#undef BAD_IF
		memcpy(msg, good, sizeof(msg));
		assert_int_equal(krp_msg_check(msg, bytes - 1, is_to_server(type)),
				 KRP_ST_MALFORMED);
		assert_int_equal(krp_msg_check(msg, bytes + 1, is_to_server(type)),
				 KRP_ST_MALFORMED);
		assert_int_equal(krp_msg_check(msg, 31, is_to_server(type)), KRP_ST_MALFORMED);
		assert_int_equal(krp_msg_check(msg, 0, is_to_server(type)), KRP_ST_MALFORMED);
	}
}

/* HELLO says which versions its sender speaks; a refusal for the version is readable in any. */
static void test_message_versions(void **state)
{
	__u64 msg[KRP_MSG_BYTES_MAX / 8] = { 0 };
	struct krp_hello *hello = (void *)msg;
	struct krp_msg_hdr *hdr = (void *)msg;
	unsigned int bytes = sample_msg(KRP_MSG_HELLO, msg);

	(void)state;
	hdr->version = hello->version_max = KRP_MSG_VERSION + 5;
	assert_int_equal(krp_msg_check(msg, bytes, 1), KRP_ST_OK);
	hello->version_min = KRP_MSG_VERSION + 1;
	assert_int_equal(krp_msg_check(msg, bytes, 1), KRP_ST_VERSION);
	hdr->version = hello->version_max = hello->version_min = KRP_MSG_VERSION - 1;
	assert_int_equal(krp_msg_check(msg, bytes, 1), KRP_ST_VERSION);
	/* one of another length: whatever it is, it is not ours */
	assert_int_equal(krp_msg_check(msg, 184, 1), KRP_ST_VERSION);

	krp_msg_init(msg, KRP_MSG_CHALLENGE, 1, KRP_ST_VERSION, INCARNATION);
	hdr->version = KRP_MSG_VERSION + 1;
	assert_int_equal(krp_msg_check(msg, sizeof(struct krp_challenge), 0), KRP_ST_OK);
	hdr->status = krp_cpu_to_le16(KRP_ST_AUTH);
	assert_int_equal(krp_msg_check(msg, sizeof(struct krp_challenge), 0), KRP_ST_VERSION);
}

static void test_message_body_checks(void **state)
{
	__u64 good[KRP_MSG_BYTES_MAX / 8], msg[KRP_MSG_BYTES_MAX / 8];

	(void)state;
#define BAD_IF(TYPE, strct, change) \
	do { \
		unsigned int bytes = sample_msg(TYPE, good); \
		struct strct *m = memcpy(msg, good, sizeof(msg)); \
		change; \
		assert_int_equal(krp_msg_check(msg, bytes, is_to_server(TYPE)), KRP_ST_MALFORMED); \
	} while (0)
	BAD_IF(KRP_MSG_HELLO, krp_hello, m->generation = 0);
	BAD_IF(KRP_MSG_HELLO, krp_hello, memset(m->owner, 0, sizeof(m->owner)));
	BAD_IF(KRP_MSG_HELLO, krp_hello, memset(m->gid, 0, sizeof(m->gid)));
	BAD_IF(KRP_MSG_HELLO, krp_hello, memset(m->name, 'x', sizeof(m->name)));
	BAD_IF(KRP_MSG_HELLO, krp_hello, m->rsvd[0] = 1);
	BAD_IF(KRP_MSG_HELLO, krp_hello, m->rsvd2[3] = 1);
	BAD_IF(KRP_MSG_HELLO, krp_hello, m->version_max++);
	BAD_IF(KRP_MSG_CHALLENGE, krp_challenge, m->flags = 2);
	BAD_IF(KRP_MSG_CHALLENGE, krp_challenge, m->flags = 0); /* a key, but no proof */
	BAD_IF(KRP_MSG_CHALLENGE, krp_challenge, m->rsvd[2] = 1);
	BAD_IF(KRP_MSG_CHALLENGE, krp_challenge, m->hdr.status = krp_cpu_to_le16(KRP_ST_AUTH));
	BAD_IF(KRP_MSG_WELCOME, krp_welcome, m->credits = 0);
	BAD_IF(KRP_MSG_WELCOME, krp_welcome, m->lease_ms = krp_cpu_to_le32(KRP_LEASE_MS_MIN - 1));
	BAD_IF(KRP_MSG_WELCOME, krp_welcome, m->lease_ms = krp_cpu_to_le32(KRP_LEASE_MS_MAX + 1));
	BAD_IF(KRP_MSG_WELCOME, krp_welcome, m->rsvd[1] = 1);
	BAD_IF(KRP_MSG_WELCOME, krp_welcome,
	       m->settling_ms = krp_cpu_to_le32(KRP_SETTLING_MS_MAX + 1));
	BAD_IF(KRP_MSG_PUBLISH, krp_publish, m->rsvd[5] = 1);
	BAD_IF(KRP_MSG_PUBLISH, krp_publish, m->value.kind = 9);
	BAD_IF(KRP_MSG_PUBLISH, krp_publish, memset(m->key.gid, 0, sizeof(m->key.gid)));
	BAD_IF(KRP_MSG_WITHDRAW, krp_withdraw, m->rsvd[0] = 1);
	BAD_IF(KRP_MSG_SUBSCRIBE, krp_subscribe, m->flags = 2);
	BAD_IF(KRP_MSG_SUBSCRIBE, krp_subscribe, m->rsvd[0] = 1);
	BAD_IF(KRP_MSG_LOOKUP, krp_lookup_msg, m->rsvd[0] = 1);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->nr = 0);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->nr = 1); /* the second is not zero */
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->nr = 3); /* the third has no event */
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->nr = KRP_NOTIFY_CHANGES + 1);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->rsvd[6] = 1);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->change[1].event = 0);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->change[1].event = 4);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->change[1].event = KRP_EVENT_RESYNC);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->change[1].rsvd[4] = 1);
	BAD_IF(KRP_MSG_NOTIFY, krp_notify, m->change[5].key.gid[0] = 1);
#undef BAD_IF
}

static void test_status_texts_and_errnos(void **state)
{
	unsigned int i, j;

	(void)state;
	assert_int_equal(krp_status_errno(KRP_ST_OK), 0);
	for (i = 1; i < KRP_ST_CODES; i++) {
		assert_true(krp_status_errno(i) < 0);
		for (j = 0; j < i; j++)
			assert_string_not_equal(krp_status_text(i), krp_status_text(j));
	}
	assert_string_equal(krp_status_text(KRP_ST_CODES), "unknown status");
	assert_string_equal(krp_msg_name(KRP_MSG_TYPES), "unknown");
}

/* ---- printing the vectors ---- */

static void print_hex(const char *name, const void *bytes, unsigned int nr)
{
	const unsigned char *b = bytes;
	unsigned int i;

	printf("%s:", name);
	for (i = 0; i < nr; i++)
		printf("%s%02x", i % 8 ? "" : " ", b[i]);
	printf("\n");
}

static void print_number(const char *name, __u64 number)
{
	__le64 word = krp_cpu_to_le64(number);

	print_hex(name, &word, sizeof(word));
}

static int write_vectors(const char *file)
{
	__u8 client[KRP_MAC_BYTES], server[KRP_MAC_BYTES], id[KRP_KEY_ID_BYTES];
	__u64 msg[KRP_MSG_BYTES_MAX / 8];
	struct krp_segment seg;
	struct krp_link link;
	struct krp_bucket b;
	struct krp_value v;
	unsigned int type;
	struct krp_root r;
	__le64 word;

	printf("# SPDX-%s: (GPL-2.0-only WITH Linux-syscall-note) OR MIT\n", "License-Identifier");
	printf("# Golden vectors, see tests/unit/proto_test.c for the fields behind them.\n");
	if (!strcmp(file, "hash.txt")) {
		print_hex("key", &sample_key, sizeof(sample_key));
		print_number("salt", SALT);
		print_number("seed", 513);
		word = krp_cpu_to_le64(krp_key_hash(&sample_key, SALT));
		print_hex("key_hash", &word, sizeof(word));
		word = krp_cpu_to_le64(krp_mix64(1));
		print_hex("mix64_of_1", &word, sizeof(word));
		word = krp_cpu_to_le64(krp_bucket_index(krp_key_hash(&sample_key, SALT), 513));
		print_hex("bucket_index", &word, sizeof(word));
	} else if (!strcmp(file, "table.txt")) {
		print_number("incarnation", INCARNATION);
		print_number("page", 12345);
		print_number("segment_nr", 2);
		sample_value(&v);
		print_hex("value_dct", &v, sizeof(v));
		sample_raw(&v);
		print_hex("value_raw", &v, sizeof(v));
		sample_lane(&v);
		print_hex("value_lane", &v, sizeof(v));
		sample_bucket(&b);
		print_hex("bucket", &b, sizeof(b));
		sample_crowded(&b);
		print_hex("crowded", &b, sizeof(b));
		sample_segment(&seg);
		print_hex("segment", &seg, sizeof(seg));
		sample_root(&r);
		print_hex("root", &r, sizeof(r));
	} else if (!strcmp(file, "msg.txt")) {
		for (type = KRP_MSG_HELLO; type < KRP_MSG_TYPES; type++)
			print_hex(krp_msg_name(type), msg, sample_msg(type, msg));
	} else if (!strcmp(file, "auth.txt")) {
		sample_key_id(id);
		sample_proofs(&link, client, server);
		printf("# Over HELLO, CHALLENGE and WELCOME of msg.txt.\n");
		print_hex("key", auth_key.bytes, (unsigned int)auth_key.len);
		print_hex("key_id", id, sizeof(id));
		print_hex("link", &link, sizeof(link));
		print_hex("client", client, sizeof(client));
		print_hex("server", server, sizeof(server));
	} else {
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_zero),
		cmocka_unit_test(test_hash_vectors),
		cmocka_unit_test(test_table_vectors),
		cmocka_unit_test(test_message_vectors),
		cmocka_unit_test(test_auth_vectors),
		cmocka_unit_test(test_bucket_any_flipped_bit_is_torn),
		cmocka_unit_test(test_bucket_of_another_place_or_incarnation_is_refused),
		cmocka_unit_test(test_whole_bucket_that_is_not_the_keys_is_stale),
		cmocka_unit_test(test_crowded_bucket_proves_no_miss),
		cmocka_unit_test(test_root_checks),
		cmocka_unit_test(test_value_checks),
		cmocka_unit_test(test_each_message_passes_in_its_direction_only),
		cmocka_unit_test(test_message_header_checks),
		cmocka_unit_test(test_message_versions),
		cmocka_unit_test(test_message_body_checks),
		cmocka_unit_test(test_status_texts_and_errnos),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_vectors(argv[2]);
	return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
