// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what the module makes of bytes from the network. Hashes, table and proofs
 * against the golden vectors of user space (lines of proto/vectors), and the loading of
 * a table's map from a pretended server.
 * Part of krcore_test.ko, which holds what it tests and needs no krcore.ko.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "meta/auth.c"
#include "meta/map.c"

#define KRC_TEST_INCARNATION 0x0123456789abcdefULL
#define KRC_TEST_SALT 0xfedcba9876543210ULL
#define KRC_TEST_PAGE 12345
#define KRC_TEST_SEED 513

/* proto/vectors/hash.txt */
static const char krc_vector_key_hash[] = "9c13cf3d0d94abf9";
static const char krc_vector_mix64[] = "e5050b101d169256";

/* proto/vectors/table.txt: what is not zero of "bucket" and "crowded", "segment", "root" */
static const char krc_vector_value[] =
	"1817161514131211 0100222133323100 4847464544434241 5857565554535251 6463626173727100 8483828152540012 3456030501011000";
static const char krc_vector_bucket[] =
	"119759571602f0eb efcdab8967452301 f301000001020907 6300000001010000 fe80000000000000 505400fffe123456";
static const char krc_vector_crowded[] =
	"c8ba5785c8d4c533 efcdab8967452301 f301000001020907 6300000000010100";
static const char krc_vector_segment[] = "00004000007f0000 031000006040ce9c";
static const char krc_vector_root[] =
	"4b5243524f4f5431 020080000b090000 efcdab8967452301 1032547698badcfe 00100000007f0000 0110000003000000 00200000007f0000 0210000004000000 e110000000000000 0807060504030201 4871000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 4d73b07d7c24c597";

/* proto/vectors/msg.txt, without the zeros at the end; proto/vectors/auth.txt */
static const char krc_vector_hello[] =
	"4b52434d0201c000 0403020100000000 0000000000000000 0000000000000000 0700000000000000 1817161514131211 a1a1a1a1a1a1a1a1 a1a1a1a1a1a1a1a1 fe80000000000000 505400fffe123456 0001020304050607 08090a0b0c0d0e0f 1011121314151617 18191a1b1c1d1e1f 3075000002020000 6e6f646531000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 745d0d2100000000";
static const char krc_vector_challenge[] =
	"4b52434d02025000 0403020100000000 efcdab8967452301 0000000000000000 0700000000000000 8081828384858687 88898a8b8c8d8e8f 9091929394959697 98999a9b9c9d9e9f 01000000745d0d21";
static const char krc_vector_welcome[] =
	"4b52434d02047800 0403020100000000 efcdab8967452301 0000000000000000 c3c3c3c3c3c3c3c3 c3c3c3c3c3c3c3c3 c3c3c3c3c3c3c3c3 c3c3c3c3c3c3c3c3 00300000007f0000 0410000080000000 3075000064000000 00040000204e0000 1000000028230000 d4d4d4d4d4d4d4d4 d4d4d4d4d4d4d4d4";
static const char krc_vector_key[] = "5a11223344556677 8899aabbccddeeff";
static const char krc_vector_key_id[] = "745d0d21";
static const char krc_vector_link[] =
	"fe80000000000000 505400fffe123456 fe80000000000000 505400fffe1234a9 030201000c0b0a00";
static const char krc_vector_client[] =
	"dfc4900b1d427886 c9e45712567f0108 9326bb03965067dd 2b6c25634266f384";
static const char krc_vector_server[] =
	"3e21ef24984efce6 665aaa91d59669e3 b51029dea9f7bda8 faa71b040f0409b4";

/* Bytes of a vector; those it does not name are zero. */
static void krc_test_decode(struct kunit *test, const char *text, void *buf, size_t bytes)
{
	u8 *to = buf;
	size_t nr = 0;

	memset(buf, 0, bytes);
	for (; *text; text += 2) {
		if (*text == ' ')
			text++;
		KUNIT_ASSERT_LT(test, nr, bytes);
		KUNIT_ASSERT_EQ(test, hex2bin(&to[nr++], text, 1), 0);
	}
}

static void krc_test_sample_key(struct krp_key *key)
{
	static const u8 gid[KRP_GID_BYTES] = { 0xfe, 0x80, 0, 0,    0,	  0,	0,    0,
					       0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56 };

	memset(key, 0, sizeof(*key));
	memcpy(key->gid, gid, sizeof(gid));
}

static void krc_test_hashes(struct kunit *test)
{
	struct krp_key key;
	__le64 wanted;

	krc_test_sample_key(&key);
	krc_test_decode(test, krc_vector_key_hash, &wanted, sizeof(wanted));
	KUNIT_EXPECT_EQ(test, krp_key_hash(&key, KRC_TEST_SALT), le64_to_cpu(wanted));
	krc_test_decode(test, krc_vector_mix64, &wanted, sizeof(wanted));
	KUNIT_EXPECT_EQ(test, krp_mix64(1), le64_to_cpu(wanted));
	KUNIT_EXPECT_EQ(test, krp_bucket_index(krp_key_hash(&key, KRC_TEST_SALT), KRC_TEST_SEED),
			7U);
}

static enum krp_verdict krc_test_verdict(const struct krp_bucket *b, u64 incarnation,
					 struct krp_value *ret_value)
{
	struct krp_key key;
	u64 hash;

	krc_test_sample_key(&key);
	hash = krp_key_hash(&key, KRC_TEST_SALT);
	return krp_bucket_verdict(b, incarnation, KRC_TEST_PAGE,
				  krp_bucket_index(hash, KRC_TEST_SEED), hash, &key, ret_value);
}

static void krc_test_bucket(struct kunit *test)
{
	struct krp_value value, wanted;
	struct krp_bucket b;
	unsigned int bit;

	krc_test_decode(test, krc_vector_bucket, &b, sizeof(b));
	krc_test_decode(test, krc_vector_value, &wanted, sizeof(wanted));
	b.value[0] = wanted;
	KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION, &value), KRP_HIT);
	KUNIT_EXPECT_EQ(test, memcmp(&value, &wanted, sizeof(value)), 0);
	KUNIT_EXPECT_TRUE(test, krp_value_valid(&value));
	KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION + 1, NULL), KRP_TORN);
	for (bit = 0; bit < 8 * sizeof(b); bit++) {
		((u8 *)&b)[bit / 8] ^= BIT(bit % 8);
		KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION, NULL), KRP_TORN);
		((u8 *)&b)[bit / 8] ^= BIT(bit % 8);
	}
}

/* A page of which records are kept aside: a hit is a hit, a miss is a question. */
static void krc_test_crowded(struct kunit *test)
{
	struct krp_dir_entry entry = { .seed = cpu_to_le16(KRC_TEST_SEED) };
	struct krp_segment segment = {};
	struct krp_map map = { .incarnation = KRC_TEST_INCARNATION,
			       .salt = KRC_TEST_SALT,
			       .segments_nr = 1,
			       .log2_segment_pages = KRP_LOG2_SEGMENT_PAGES_MAX,
			       .dir = &entry,
			       .segments = &segment };
	struct krp_value value = { .kind = 0x77 };
	struct krp_lookup lookup;
	struct krp_bucket b;
	struct krp_read read;
	struct krp_key key;

	entry.page = cpu_to_le32(KRC_TEST_PAGE);
	krc_test_sample_key(&key);
	krc_test_decode(test, krc_vector_crowded, &b, sizeof(b));
	KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION, &value), KRP_ASIDE);
	krp_lookup_start(&lookup, &map, &key);
	KUNIT_ASSERT_EQ(test, krp_lookup_next(&lookup, &map, &read), (int)KRP_STEP_READ);
	KUNIT_EXPECT_EQ(test, krp_lookup_feed(&lookup, &map, &b, &value), -EAGAIN);
	KUNIT_EXPECT_EQ(test, (u32)value.kind, 0x77U);

	krc_test_decode(test, krc_vector_bucket, &b, sizeof(b));
	b.flags = KRP_BUCKET_CROWDED;
	b.sum = cpu_to_le64(krp_bucket_sum(&b, KRC_TEST_INCARNATION, KRC_TEST_PAGE, b.index));
	KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION, NULL), KRP_HIT);
	b.flags = KRP_BUCKET_FLAGS_ALL + 1; /* of a later version: no answer */
	b.sum = cpu_to_le64(krp_bucket_sum(&b, KRC_TEST_INCARNATION, KRC_TEST_PAGE, b.index));
	KUNIT_EXPECT_EQ(test, krc_test_verdict(&b, KRC_TEST_INCARNATION, NULL), KRP_STALE);
}

static void krc_test_root_and_segment(struct kunit *test)
{
	struct krp_segment segment;
	struct krp_root root;

	krc_test_decode(test, krc_vector_root, &root, sizeof(root));
	KUNIT_EXPECT_TRUE(test, krp_root_valid(&root));
	root.depth ^= 1;
	KUNIT_EXPECT_FALSE(test, krp_root_valid(&root));
	krc_test_decode(test, krc_vector_segment, &segment, sizeof(segment));
	KUNIT_EXPECT_EQ(test, krp_segment_check(&segment, 2, KRC_TEST_INCARNATION),
			le32_to_cpu(segment.check));
}

/* The messages of a handshake, as the vectors have them. */
static void krc_test_handshake(struct kunit *test, struct krp_session *s,
			       struct krp_welcome *welcome)
{
	krc_test_decode(test, krc_vector_link, &s->attach.link, sizeof(s->attach.link));
	krc_test_decode(test, krc_vector_hello, &s->attach.hello, sizeof(s->attach.hello));
	krc_test_decode(test, krc_vector_challenge, &s->attach.challenge,
			sizeof(s->attach.challenge));
	krc_test_decode(test, krc_vector_welcome, welcome, sizeof(*welcome));
	KUNIT_EXPECT_EQ(test, krp_msg_check(&s->attach.hello, sizeof(s->attach.hello), 1),
			(unsigned int)KRP_ST_OK);
	KUNIT_EXPECT_EQ(test, krp_msg_check(&s->attach.challenge, sizeof(s->attach.challenge), 0),
			(unsigned int)KRP_ST_OK);
	KUNIT_EXPECT_EQ(test, krp_msg_check(welcome, sizeof(*welcome), 0), (unsigned int)KRP_ST_OK);
}

/* Neither the connection nor what WELCOME says can be another. */
static void krc_test_forgeries(struct kunit *test, struct crypto_shash *hmac, struct krp_session *s,
			       struct krp_welcome *welcome, const u8 *wanted)
{
	u8 mac[KRP_MAC_BYTES];

	welcome->root.addr ^= 1;
	KUNIT_EXPECT_EQ(test, krc_meta_auth_mac(hmac, s, welcome, mac), 0);
	KUNIT_EXPECT_NE(test, memcmp(mac, wanted, sizeof(mac)), 0);
	welcome->root.addr ^= 1;
	s->attach.link.server_qpn ^= 1;
	KUNIT_EXPECT_EQ(test, krc_meta_auth_mac(hmac, s, welcome, mac), 0);
	KUNIT_EXPECT_NE(test, memcmp(mac, wanted, sizeof(mac)), 0);
	s->attach.link.server_qpn ^= 1;
}

static void krc_test_proofs(struct kunit *test)
{
	struct krp_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct krc_meta_conf *conf = kunit_kzalloc(test, sizeof(*conf), GFP_KERNEL);
	u8 mac[KRP_MAC_BYTES], wanted[KRP_MAC_BYTES], id[KRP_KEY_ID_BYTES];
	struct krc_meta_ring *ring;
	struct crypto_shash *hmac;
	struct krp_welcome welcome;

	KUNIT_ASSERT_TRUE(test, s && conf);
	krc_test_handshake(test, s, &welcome);
	KUNIT_EXPECT_EQ(test, krc_meta_ring_new(conf, &ring), 0);
	KUNIT_EXPECT_TRUE(test, !ring);

	/* the key of the vectors is the second of two */
	conf->keys[0].len = 32;
	conf->keys[1].len = 16;
	conf->keys_nr = 2;
	krc_test_decode(test, krc_vector_key, conf->keys[1].bytes, 16);
	krc_test_decode(test, krc_vector_key_id, id, sizeof(id));
	KUNIT_ASSERT_EQ(test, krc_meta_ring_new(conf, &ring), 0);
	hmac = krc_meta_ring_find(ring, id);
	KUNIT_ASSERT_TRUE(test, hmac && hmac == ring->hmac[1]);
	krc_test_decode(test, krc_vector_client, wanted, sizeof(wanted));
	KUNIT_EXPECT_EQ(test, krc_meta_auth_mac(hmac, s, NULL, mac), 0);
	KUNIT_EXPECT_EQ(test, memcmp(mac, wanted, sizeof(mac)), 0);
	krc_test_decode(test, krc_vector_server, wanted, sizeof(wanted));
	KUNIT_EXPECT_EQ(test, krc_meta_auth_mac(hmac, s, &welcome, mac), 0);
	KUNIT_EXPECT_EQ(test, memcmp(mac, wanted, sizeof(mac)), 0);
	krc_test_forgeries(test, hmac, s, &welcome, wanted);

	id[0] ^= 1;
	KUNIT_EXPECT_TRUE(test, !krc_meta_ring_find(ring, id));
	krc_meta_ring_put(ring);
}

#define KRC_TEST_BASE 0x10000ULL
#define KRC_TEST_SEGMENTS_AT 0x20000ULL
#define KRC_TEST_DIR_AT 0x30000ULL

/**
 * struct krc_test_server - A server's memory.
 * @root: at KRC_TEST_BASE.
 * @segment: at KRC_TEST_SEGMENTS_AT.
 * @dir: at KRC_TEST_DIR_AT.
 * @reads: READs done.
 */
struct krc_test_server {
	struct krp_root root;
	struct krp_segment segment[3];
	struct krp_dir_entry dir[64];
	u32 reads;
};

static void krc_test_server_root(struct krc_test_server *server, u8 depth)
{
	struct krp_root *root = &server->root;

	memset(root, 0, sizeof(*root));
	root->magic = cpu_to_le64(KRP_ROOT_MAGIC);
	root->version = cpu_to_le16(KRP_TABLE_VERSION);
	root->bytes = cpu_to_le16(sizeof(*root));
	root->log2_segment_pages = 4;
	root->depth = depth;
	root->incarnation = cpu_to_le64(KRC_TEST_INCARNATION);
	root->dir_addr = cpu_to_le64(KRC_TEST_DIR_AT);
	root->segments_nr = cpu_to_le32(ARRAY_SIZE(server->segment));
	root->segments_addr = cpu_to_le64(KRC_TEST_SEGMENTS_AT);
	root->sum = cpu_to_le64(krp_root_sum(root));
}

static struct krc_test_server *krc_test_server(struct kunit *test, u8 depth)
{
	struct krc_test_server *server = kunit_kzalloc(test, sizeof(*server), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, server);
	krc_test_server_root(server, depth);
	for (i = 0; i < ARRAY_SIZE(server->segment); i++) {
		struct krp_segment *segment = &server->segment[i];

		segment->addr = cpu_to_le64(0x100000 * (i + 1));
		segment->rkey = cpu_to_le32(i + 1);
		segment->check = cpu_to_le32(krp_segment_check(segment, i, KRC_TEST_INCARNATION));
	}
	for (i = 0; i < ARRAY_SIZE(server->dir); i++)
		server->dir[i].page = cpu_to_le32(i % 48);
	return server;
}

static const void *krc_test_memory(struct kunit *test, struct krc_test_server *server,
				   const struct krp_read *read)
{
	const void *base = &server->root;
	u64 at = read->addr - KRC_TEST_BASE, size = sizeof(server->root);

	if (read->addr >= KRC_TEST_DIR_AT) {
		base = server->dir;
		at = read->addr - KRC_TEST_DIR_AT;
		size = sizeof(server->dir);
	} else if (read->addr >= KRC_TEST_SEGMENTS_AT) {
		base = server->segment;
		at = read->addr - KRC_TEST_SEGMENTS_AT;
		size = sizeof(server->segment);
	}
	server->reads++;
	KUNIT_ASSERT_LE(test, at + read->bytes, size);
	return base + at;
}

static int krc_test_load(struct kunit *test, struct krc_test_server *server,
			 const struct krp_map *old, struct krp_map **ret_map)
{
	struct krp_load load;
	struct krp_read read;
	int err = 0;

	server->reads = 0;
	krp_load_start(&load, KRC_TEST_BASE, 0, KRC_TEST_INCARNATION, 128, KRC_META_DEPTH_MAX, old);
	while (!err && krp_load_next(&load, &read))
		err = krc_meta_load_feed(&load, krc_test_memory(test, server, &read));
	if (err)
		krc_meta_map_free(krp_load_take(&load));
	else
		*ret_map = krp_load_take(&load);
	return err;
}

static void krc_test_map(struct kunit *test)
{
	struct krc_test_server *server = krc_test_server(test, 5);
	struct krp_map *map, *deeper;

	KUNIT_ASSERT_EQ(test, krc_test_load(test, server, NULL, &map), 0);
	KUNIT_EXPECT_EQ(test, server->reads, 1U + 1U + 2U); /* 256 bytes of directory */
	KUNIT_EXPECT_EQ(test, memcmp(map->dir, server->dir, 32 * sizeof(*map->dir)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(map->segments, server->segment, sizeof(server->segment)), 0);

	krc_test_server_root(server, 6);
	KUNIT_ASSERT_EQ(test, krc_test_load(test, server, map, &deeper), 0);
	KUNIT_EXPECT_EQ(test, server->reads, 1U); /* the rest is made of the old one */
	KUNIT_EXPECT_EQ(test, (u32)deeper->depth, 6U);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(deeper->dir[63].page), 31U);
	krc_meta_map_free(map);
	krc_meta_map_free(deeper);
}

static void krc_test_map_refused(struct kunit *test)
{
	struct krc_test_server *server = krc_test_server(test, 5);
	struct krp_map *map;

	server->segment[1].rkey ^= cpu_to_le32(1); /* stays torn */
	KUNIT_EXPECT_EQ(test, krc_test_load(test, server, NULL, &map), -EPROTO);
	server->segment[1].rkey ^= cpu_to_le32(1);
	memset(&server->dir[3], 0xff, sizeof(server->dir[3])); /* moved, and never arrives */
	KUNIT_EXPECT_EQ(test, krc_test_load(test, server, NULL, &map), -EPROTO);
	krc_test_server_root(server, KRC_META_DEPTH_MAX + 1);
	KUNIT_EXPECT_EQ(test, krc_test_load(test, server, NULL, &map), -E2BIG);
	server->root.sum ^= cpu_to_le64(1);
	KUNIT_EXPECT_EQ(test, krc_test_load(test, server, NULL, &map), -EPROTO);
	krc_test_server_root(server, 5);
	server->root.incarnation = cpu_to_le64(77);
	server->root.sum = cpu_to_le64(krp_root_sum(&server->root));
	KUNIT_EXPECT_EQ(test, krc_test_load(test, server, NULL, &map), -ESTALE);
}

static struct kunit_case krc_proto_cases[] = {
	KUNIT_CASE(krc_test_hashes),	  KUNIT_CASE(krc_test_bucket),
	KUNIT_CASE(krc_test_crowded),	  KUNIT_CASE(krc_test_root_and_segment),
	KUNIT_CASE(krc_test_proofs),	  KUNIT_CASE(krc_test_map),
	KUNIT_CASE(krc_test_map_refused), {}
};

static struct kunit_suite krc_proto_suite = {
	.name = "krcore_proto",
	.test_cases = krc_proto_cases,
};

kunit_test_suites(&krc_proto_suite);
