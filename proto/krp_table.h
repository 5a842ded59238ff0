/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The table of a MetaServer, as a remote reader sees it. Normative.
 *
 * WHAT IT IS
 *   A hash table from a key (16-byte GID, 16-bit service) to a value of 56
 *   bytes, kept by one writer in memory that readers reach with RDMA READ and
 *   nothing else. All numbers are little-endian.
 *   Pads: the writer puts zeros into all of them, and into the slots of a LIVE
 *   bucket behind its `count`. A reader refuses a root or a bucket whose pads
 *   are not zero, for a later version may give them a meaning; it does not look
 *   at slots behind `count`, which the sum covers, nor at krp_dir_entry.rsvd, as
 *   an entry is a hint. A page that was never used is zero in all its bytes: so
 *   its sums do not hold.
 *
 * LAYOUT
 *   root        128 bytes, one a device (remote keys differ by device). It is written
 *               again all the time, with the server's clock: see krp_pulse.h.
 *   segments    an array of struct krp_segment: where the pages are. A segment
 *               holds 1 << root.log2_segment_pages pages and is never moved or
 *               unregistered while the incarnation lives; new ones are appended.
 *               Page n is page n % (pages of a segment) of segment n / (pages of
 *               a segment).
 *   directory   1 << root.depth entries of 8 bytes, indexed by the top `depth`
 *               bits of the hash of a key: which page, and its seed. When it
 *               doubles, a new array is published in the root and every entry
 *               of the old one becomes KRP_DIR_MOVED; the old array stays
 *               registered, so that a late READ of it is answered.
 *   page        2 KiB: eight buckets. All keys of a page share the top
 *               `bucket.depth` bits of their hash.
 *   bucket      256 bytes, so one READ within one path MTU: 32 bytes of header
 *               and three records. It is self-certifying: it carries all that a
 *               reader needs to know that these bytes are whole, current and
 *               the only place where its key can be.
 *
 * ADDRESS OF A KEY
 *   hash   = XXH64(key as 18 bytes: GID, then service little-endian; seed root.salt)
 *            XXH64 is that of krp_hash.h
 *   entry  = directory[top root.depth bits of hash, as a number]; the top 0 bits
 *            are 0, so a directory of depth 0 has one entry
 *   index  = krp_mix64(hash ^ (entry.seed + 1) * KRP_GOLDEN) >> 61
 *   bucket = page entry.page, bucket index
 *   The writer picks, for each page, a seed with which no bucket gets more than
 *   three keys; if 1024 seeds do not serve, it splits the page.
 *   Keys that share all bits of the hash that a directory may have, or all bits of it,
 *   cannot be parted so, and anybody that knows the salt can choose such keys. A record that
 *   finds no room for this reason is kept aside: the server has it and gives it to a LOOKUP
 *   message (krp_msg.h), no bucket has it, and every bucket of its page says so with
 *   KRP_BUCKET_CROWDED.
 *   A directory has at most as many entries as the table has, or had, records, and one at
 *   least.
 *
 * WHAT A READER MUST CHECK (krp_bucket_verdict())
 *   1. sum      XXH64 of bytes 8..255, seeded with incarnation and bucket
 *               number: the bytes are one whole write of this very bucket in
 *               this incarnation of the server. A READ promises no order in which it
 *               samples memory, so versions at both ends would prove nothing
 *               (Ziegler et al., PACMMOD 2023); a sum over all bytes does.
 *   2. state    LIVE, pads zero, at most three records.
 *   3. prefix   the top `depth` bits of the hash are those of the bucket.
 *   4. index    under the seed in the bucket, the key belongs here.
 *   If all hold and the key is in the bucket, that is a hit. If it is not, and the bucket
 *   is not CROWDED, it is not in the table: a definite miss from one READ. In a CROWDED
 *   bucket the READ proves nothing: the reader asks this server by a LOOKUP message and
 *   takes its answer, hit or miss. A reader that cannot, for want of KRP_FEATURE_LOOKUP, has
 *   no answer of this server.
 *   If 1 fails the bytes are torn or foreign: READ again.
 *   If another fails the cached directory entry is old: READ the entry (8
 *   bytes) and try again. A stale or torn entry costs a READ, never an answer.
 *   A reader that does not know KRP_BUCKET_CROWDED takes it for a pad: check 2 fails, again
 *   and again, until it has spent its READs and asks by message, too.
 *
 * WHAT THE WRITER MUST DO
 *   A change that fits a bucket rewrites it in place. Otherwise: write the new
 *   page or pages LIVE, publish their directory entries, rewrite the eight old
 *   buckets with state FREE, and only then acknowledge. Freed pages may be used
 *   again at once: no reader can mistake one, by 1, 3 and 4. A record is kept aside when
 *   all buckets of its page are CROWDED, which they stay until the last one of the page is
 *   gone or in a bucket.
 *   So: after an acknowledged change no READ that starts later returns what was
 *   before it; before the acknowledgement either may be seen.
 *
 * HOW FAR A REMOTE KEY REACHES
 *   The keys of the root and of the array of segments may be one key, which then
 *   covers both and what is between and behind them, up to an array of
 *   KRP_SEGMENTS_MAX. Any key may reach to the end of a 4-KiB page that it
 *   begins or ends in. So a writer registers memory that begins and ends at such
 *   a page and that holds nothing but the table; what is not named there is
 *   zero. A reader stays within what is named all the same.
 *
 * Note: Source - self-certifying buckets after Pilaf (ATC '13) and RACE (ATC
 * '21); per-page seeds after perfect hashing (FKS); extendible hashing by Fagin
 * et al. (TODS '79).
 */
#ifndef KRP_TABLE_H
#define KRP_TABLE_H

#include "krp_endian.h"
#include "krp_hash.h"

#define KRP_TABLE_VERSION 2
#define KRP_ROOT_MAGIC 0x31544f4f5243524bULL /* "KRCROOT1" */

#define KRP_GID_BYTES 16
#define KRP_VALUE_BYTES 56
#define KRP_RAW_BYTES 46 /* payload of a KRP_KIND_RAW value */
#define KRP_BUCKET_BYTES 256
#define KRP_BUCKET_RECORDS 3
#define KRP_PAGE_BUCKETS 8
#define KRP_PAGE_BYTES (KRP_BUCKET_BYTES * KRP_PAGE_BUCKETS)
#define KRP_PAGE_RECORDS (KRP_BUCKET_RECORDS * KRP_PAGE_BUCKETS)
#define KRP_SEED_TRIES 1024
#define KRP_DEPTH_MAX 26 /* 512 MiB of directory */
#define KRP_SEGMENTS_MAX 4096
#define KRP_LOG2_SEGMENT_PAGES_MAX 20 /* 2 GiB */
#define KRP_SETTLING_MS_MAX 86400000U /* a day */
#define KRP_DIR_MOVED 0xffffffffffffffffULL

/* krp_bucket.state */
#define KRP_STATE_FREE 0
#define KRP_STATE_LIVE 1

/* krp_bucket.flags */
#define KRP_BUCKET_CROWDED 0x01 /* records of this page are kept aside: ask by message */
#define KRP_BUCKET_FLAGS_ALL 0x01

/* krp_value.kind */
#define KRP_KIND_DCT 1
#define KRP_KIND_RAW 2
#define KRP_KIND_LANE 3

/* krp_value.dct.flags */
#define KRP_DCT_ETHERNET 0x01 /* RoCE: mac is valid; else InfiniBand: lid is */
#define KRP_DCT_FLAGS_ALL 0x01

/* Well-known services. Numbers below KRP_SERVICE_USER_MIN belong to krcore itself. */
#define KRP_SERVICE_NODE 0 /* the node: how its port is reached */
#define KRP_SERVICE_USER_MIN 256

/**
 * struct krp_key - Name of a record.
 * @gid: GID of the node's port, network order as verbs print it.
 * @service: which of the node's records; KRP_SERVICE_NODE is the node itself.
 *
 * 18 bytes without a hole, so that it can be hashed as it is.
 */
struct krp_key {
	__u8 gid[KRP_GID_BYTES];
	__le16 service;
} __attribute__((packed)); /* 18 bytes: the hash and the wire must see no tail pad */

/**
 * struct krp_value - What a key leads to.
 * @generation: boot generation of the owner; a larger one is newer.
 * @kind: KRP_KIND_*.
 * @len: bytes of @raw in use (KRP_KIND_RAW), else 0.
 * @dct: for KRP_KIND_DCT and KRP_KIND_LANE.
 * @dct.lid: local identifier of the port (InfiniBand). With KRP_DCT_ETHERNET it means
 *	nothing: a publisher puts 0 there, and nobody looks at it.
 * @dct.dctn: DC target number, 24 bits; 0 in KRP_KIND_LANE.
 * @dct.dc_key: DC access key; likewise.
 * @dct.mrdir_addr: address of the node's memory-region directory.
 * @dct.mrdir_rkey: its remote key.
 * @dct.ud_qpn: UD queue pair to which the hand-shake of lanes is said (krp_lane.h), 24 bits;
 *	0: this port makes no lanes, which KRP_KIND_LANE does not say.
 * @dct.ud_qkey: its Q_Key.
 * @dct.mac: Ethernet address of the port, its octets in the order in which they are sent
 *	and printed. It saves a neighbour look-up. Without KRP_DCT_ETHERNET it means nothing:
 *	a publisher puts zeros there, and nobody looks at it.
 * @dct.mtu: path MTU as enum ib_mtu, 1 (256) to 5 (4096).
 * @dct.sl: service level, 0 to 15.
 * @dct.port: port number on the node, from 1.
 * @dct.flags: KRP_DCT_*.
 * @dct.max_rd_atomic: READs and atomics the target, or a lane, takes at once.
 * @dct.rsvd: zero.
 * @raw: for KRP_KIND_RAW: any bytes; those past @len are zero.
 *
 * The first 12 bytes that matter to a peer are the paper's: DCT number and key.
 *
 * KRP_KIND_LANE is the node of a port without DC: a peer makes a lane to it. A node
 * with DC and lanes publishes KRP_KIND_DCT with a @dct.ud_qpn, so each record says all ways to
 * its port, and one READ is enough for each of them. Software from before KRP_KIND_LANE refuses
 * the kind as one that it does not know: a server at PUBLISH (KRP_ST_MALFORMED), a reader when
 * it has found the record, which is an error and no miss. None takes it for a DC target.
 */
struct krp_value {
	__le64 generation;
	__u8 kind;
	__u8 len;
	union {
		struct {
			__le16 lid;
			__le32 dctn;
			__le64 dc_key;
			__le64 mrdir_addr;
			__le32 mrdir_rkey;
			__le32 ud_qpn;
			__le32 ud_qkey;
			__u8 mac[6];
			__u8 mtu;
			__u8 sl;
			__u8 port;
			__u8 flags;
			__u8 max_rd_atomic;
			__u8 rsvd;
		} __attribute__((packed, aligned(2))) dct; /* fields keep their natural offsets */
		__u8 raw[KRP_RAW_BYTES];
	};
};

/**
 * struct krp_bucket - The unit of a look-up: one READ.
 * @sum: krp_bucket_sum() over all that follows.
 * @incarnation: of the server that wrote it.
 * @prefix: top @depth bits of the hash of every key that can be here.
 * @seed: seed of the page.
 * @depth: bits of @prefix, 0 to KRP_DEPTH_MAX.
 * @index: which bucket of its page, 0 to 7.
 * @seq: counts the writes of this bucket; wraps.
 * @count: records in use, 0 to 3.
 * @state: KRP_STATE_*.
 * @flags: KRP_BUCKET_*.
 * @rsvd: zero.
 * @gid: first halves of the keys.
 * @value: the values.
 * @service: second halves of the keys.
 * @rsvd2: zero.
 */
struct krp_bucket {
	__le64 sum;
	__le64 incarnation;
	__le32 prefix;
	__le16 seed;
	__u8 depth;
	__u8 index;
	__le32 seq;
	__u8 count;
	__u8 state;
	__u8 flags;
	__u8 rsvd;
	__u8 gid[KRP_BUCKET_RECORDS][KRP_GID_BYTES];
	struct krp_value value[KRP_BUCKET_RECORDS];
	__le16 service[KRP_BUCKET_RECORDS];
	__u8 rsvd2[2];
};

/**
 * struct krp_dir_entry - One entry of the directory.
 * @page: page number, over all segments.
 * @seed: its seed when the entry was written.
 * @depth: bits that all keys of the page share; at most root.depth.
 * @rsvd: zero; a look-up does not look at it, a check of the writer may.
 *
 * A hint: nothing is decided by it, see the checks above.
 */
struct krp_dir_entry {
	__le32 page;
	__le16 seed;
	__u8 depth;
	__u8 rsvd;
};

/**
 * struct krp_segment - Where one run of pages is.
 * @addr: virtual address for READs.
 * @rkey: remote key on this device.
 * @check: krp_segment_check(), so that a torn entry is not used: a READ with a
 *	wrong key would cost the reader its connection.
 */
struct krp_segment {
	__le64 addr;
	__le32 rkey;
	__le32 check;
};

/**
 * struct krp_root - Where the table is, in one READ.
 * @magic: KRP_ROOT_MAGIC.
 * @version: KRP_TABLE_VERSION.
 * @bytes: size of this structure.
 * @log2_segment_pages: log2 of the pages of a segment.
 * @depth: log2 of the entries of the directory.
 * @rsvd: zero.
 * @incarnation: random, new with every start of the server.
 * @salt: seed of the hash of keys, random.
 * @dir_addr: address of the directory.
 * @dir_rkey: its remote key.
 * @segments_nr: segments in use.
 * @segments_addr: address of the array of struct krp_segment.
 * @segments_rkey: its remote key.
 * @epoch: counts the changes of what lies before it and of the directory.
 * @records: records in the table when the root was written; a hint.
 * @heartbeat: ms of a clock of the server that never goes back, when the root was
 *	written, which is at least every KRP_BEAT_MS: see krp_pulse.h. 0 if it does not say.
 * @settling_ms: for how long from then publishers may still be on their way back, as in
 *	struct krp_welcome, at most KRP_SETTLING_MS_MAX; 0: settled.
 * @rsvd2: zero.
 * @sum: krp_root_sum() over all before it.
 */
struct krp_root {
	__le64 magic;
	__le16 version;
	__le16 bytes;
	__u8 log2_segment_pages;
	__u8 depth;
	__u8 rsvd[2];
	__le64 incarnation;
	__le64 salt;
	__le64 dir_addr;
	__le32 dir_rkey;
	__le32 segments_nr;
	__le64 segments_addr;
	__le32 segments_rkey;
	__le32 epoch;
	__le64 records;
	__le64 heartbeat;
	__le32 settling_ms;
	__u8 rsvd2[36];
	__le64 sum;
};

KRP_STATIC_ASSERT(sizeof(struct krp_key) == 18, "krp_key is hashed as 18 bytes");
KRP_STATIC_ASSERT(sizeof(struct krp_value) == KRP_VALUE_BYTES, "krp_value");
KRP_STATIC_ASSERT(offsetof(struct krp_value, dct.lid) == 10, "krp_value.lid");
KRP_STATIC_ASSERT(offsetof(struct krp_value, dct.dctn) == 12, "krp_value.dctn");
KRP_STATIC_ASSERT(offsetof(struct krp_value, dct.dc_key) == 16, "krp_value.dc_key");
KRP_STATIC_ASSERT(offsetof(struct krp_value, dct.mrdir_addr) == 24, "krp_value.mrdir_addr");
KRP_STATIC_ASSERT(offsetof(struct krp_value, dct.mac) == 44, "krp_value.mac");
KRP_STATIC_ASSERT(offsetof(struct krp_value, raw) == 10, "krp_value.raw");
KRP_STATIC_ASSERT(sizeof(struct krp_bucket) == KRP_BUCKET_BYTES, "krp_bucket is one READ");
KRP_STATIC_ASSERT(offsetof(struct krp_bucket, flags) == 30, "krp_bucket.flags");
KRP_STATIC_ASSERT(offsetof(struct krp_bucket, gid) == 32, "krp_bucket.gid");
KRP_STATIC_ASSERT(offsetof(struct krp_bucket, value) == 80, "krp_bucket.value");
KRP_STATIC_ASSERT(offsetof(struct krp_bucket, service) == 248, "krp_bucket.service");
KRP_STATIC_ASSERT(sizeof(struct krp_dir_entry) == 8, "krp_dir_entry");
KRP_STATIC_ASSERT(sizeof(struct krp_segment) == 16, "krp_segment");
KRP_STATIC_ASSERT(sizeof(struct krp_root) == 128, "krp_root");
KRP_STATIC_ASSERT(offsetof(struct krp_root, incarnation) == 16, "krp_root.incarnation");
KRP_STATIC_ASSERT(offsetof(struct krp_root, heartbeat) == 72, "krp_root.heartbeat");
KRP_STATIC_ASSERT(offsetof(struct krp_root, settling_ms) == 80, "krp_root.settling_ms");
KRP_STATIC_ASSERT(offsetof(struct krp_root, sum) == 120, "krp_root.sum");

/**
 * enum krp_verdict - What the bytes of a bucket say about a key.
 * @KRP_HIT: the key is there and its value was copied out.
 * @KRP_MISS: the key is not in the table.
 * @KRP_TORN: the bytes are torn or those of another bucket: READ them again.
 * @KRP_STALE: a whole bucket, but not the key's: the directory entry is old.
 * @KRP_ASIDE: the key is not there, but may be kept aside: ask the server by message.
 */
enum krp_verdict {
	KRP_HIT,
	KRP_MISS,
	KRP_TORN,
	KRP_STALE,
	KRP_ASIDE,
};

/**
 * krp_key_hash() - Hash of a key.
 * @key: the key.
 * @salt: krp_root.salt, in host order.
 *
 * Context: any.
 * Return: 64-bit hash; its top bits choose the page.
 */
static inline __u64 krp_key_hash(const struct krp_key *key, __u64 salt)
{
	return krp_xxh64(key, sizeof(*key), salt);
}

/**
 * krp_hash_prefix() - The top bits of a hash.
 * @hash: krp_key_hash().
 * @depth: how many bits, 0 to KRP_DEPTH_MAX.
 *
 * Context: any.
 * Return: the bits, right-aligned: index into a directory of that depth.
 */
static inline __u32 krp_hash_prefix(__u64 hash, unsigned int depth)
{
	return depth ? (__u32)(hash >> (64 - depth)) : 0;
}

/**
 * krp_bucket_index() - Which bucket of a page a key belongs to.
 * @hash: krp_key_hash().
 * @seed: seed of the page.
 *
 * Context: any.
 * Return: 0 to KRP_PAGE_BUCKETS - 1.
 */
static inline unsigned int krp_bucket_index(__u64 hash, __u16 seed)
{
	return (unsigned int)(krp_mix64(hash ^ (seed + 1ULL) * KRP_GOLDEN) >> 61);
}

/**
 * krp_bucket_sum() - Checksum of a bucket.
 * @b: the bucket.
 * @incarnation: of the server, host order.
 * @page: page number, over all segments.
 * @index: bucket of the page.
 *
 * Context: any.
 * Return: the sum that a whole bucket of that place and incarnation carries.
 */
static inline __u64 krp_bucket_sum(const struct krp_bucket *b, __u64 incarnation, __u32 page,
				   unsigned int index)
{
	__u64 place = ((__u64)page * KRP_PAGE_BUCKETS + index + 1) * KRP_GOLDEN;

	return krp_xxh64((const __u8 *)b + sizeof(b->sum), sizeof(*b) - sizeof(b->sum),
			 incarnation ^ place);
}

/**
 * krp_bucket_whole() - Whether the bytes are one whole write of that bucket.
 * @b: bytes as a READ brought them.
 * @incarnation: of the server the reader is attached to.
 * @page: page they were read from.
 * @index: bucket they were read from.
 *
 * Context: any.
 * Return: 1 if the sum holds, else 0.
 */
static inline int krp_bucket_whole(const struct krp_bucket *b, __u64 incarnation, __u32 page,
				   unsigned int index)
{
	return krp_le64_to_cpu(b->sum) == krp_bucket_sum(b, incarnation, page, index);
}

/**
 * krp_bucket_sane() - Whether a whole bucket is well formed.
 * @b: a bucket for which krp_bucket_whole() held.
 *
 * Context: any.
 * Return: 1 if every field is in its range, every pad is zero and every flag known, else 0.
 */
static inline int krp_bucket_sane(const struct krp_bucket *b)
{
	return b->depth <= KRP_DEPTH_MAX && b->index < KRP_PAGE_BUCKETS &&
	       b->count <= KRP_BUCKET_RECORDS && b->state <= KRP_STATE_LIVE &&
	       !(b->flags & ~KRP_BUCKET_FLAGS_ALL) && !b->rsvd &&
	       krp_is_zero(b->rsvd2, sizeof(b->rsvd2)) && !(krp_le32_to_cpu(b->prefix) >> b->depth);
}

/**
 * krp_bucket_find() - Position of a key in a bucket.
 * @b: bucket, whole and sane.
 * @key: key sought.
 *
 * Context: any.
 * Return: 0 to count - 1, or -1 if it is not there.
 */
static inline int krp_bucket_find(const struct krp_bucket *b, const struct krp_key *key)
{
	int i;

	for (i = 0; i < b->count && i < KRP_BUCKET_RECORDS; i++)
		if (b->service[i] == key->service && !memcmp(b->gid[i], key->gid, KRP_GID_BYTES))
			return i;
	return -1;
}

/**
 * krp_bucket_verdict() - The reader's test: what do these bytes say of a key?
 * @b: 256 bytes as a READ brought them; never trusted.
 * @incarnation: of the server the reader is attached to.
 * @page: page the READ addressed.
 * @index: bucket the READ addressed, 0 to 7.
 * @hash: krp_key_hash() of @key.
 * @key: key sought.
 * @ret_value: the value on KRP_HIT; untouched otherwise. May be NULL.
 *
 * Context: any; takes no lock, does not sleep.
 * Return: enum krp_verdict.
 */
static inline enum krp_verdict krp_bucket_verdict(const struct krp_bucket *b, __u64 incarnation,
						  __u32 page, unsigned int index, __u64 hash,
						  const struct krp_key *key,
						  struct krp_value *ret_value)
{
	int at;

#ifdef KRP_WITHOUT_CHECKSUM /* only the control run of the torn-read stress defines it */
	(void)page;
#else
	if (!krp_bucket_whole(b, incarnation, page, index))
		return KRP_TORN;
#endif
	if (!krp_bucket_sane(b) || b->state != KRP_STATE_LIVE || b->index != index ||
	    krp_le64_to_cpu(b->incarnation) != incarnation ||
	    krp_le32_to_cpu(b->prefix) != krp_hash_prefix(hash, b->depth) ||
	    krp_bucket_index(hash, krp_le16_to_cpu(b->seed)) != index)
		return KRP_STALE;

	at = krp_bucket_find(b, key);
	if (at < 0)
		return b->flags & KRP_BUCKET_CROWDED ? KRP_ASIDE : KRP_MISS;
	if (ret_value)
		*ret_value = b->value[at];
	return KRP_HIT;
}

/**
 * krp_segment_check() - Check word of a segment entry.
 * @seg: the entry; its check field does not count.
 * @nr: its position in the array.
 * @incarnation: of the server.
 *
 * Context: any.
 * Return: the word, host order.
 */
static inline __u32 krp_segment_check(const struct krp_segment *seg, __u32 nr, __u64 incarnation)
{
	return (__u32)krp_xxh64(seg, offsetof(struct krp_segment, check),
				incarnation ^ (nr + 1ULL) * KRP_GOLDEN);
}

/**
 * krp_root_sum() - Checksum of a root.
 * @root: the root; its sum field does not count.
 *
 * Context: any.
 * Return: the sum, host order.
 */
static inline __u64 krp_root_sum(const struct krp_root *root)
{
	return krp_xxh64(root, offsetof(struct krp_root, sum), KRP_ROOT_MAGIC);
}

/**
 * krp_root_valid() - Whether a root as READ can be used.
 * @root: bytes as a READ brought them; never trusted.
 *
 * Context: any.
 * Return: 1 if whole, of a known version and within all limits, else 0.
 */
static inline int krp_root_valid(const struct krp_root *root)
{
	return krp_le64_to_cpu(root->magic) == KRP_ROOT_MAGIC &&
	       krp_le64_to_cpu(root->sum) == krp_root_sum(root) &&
	       krp_le16_to_cpu(root->version) == KRP_TABLE_VERSION &&
	       krp_le16_to_cpu(root->bytes) == sizeof(*root) && root->depth <= KRP_DEPTH_MAX &&
	       root->log2_segment_pages <= KRP_LOG2_SEGMENT_PAGES_MAX &&
	       krp_le32_to_cpu(root->segments_nr) <= KRP_SEGMENTS_MAX &&
	       krp_le32_to_cpu(root->segments_nr) > 0 && root->incarnation && root->dir_addr &&
	       krp_le32_to_cpu(root->settling_ms) <= KRP_SETTLING_MS_MAX && root->segments_addr &&
	       krp_is_zero(root->rsvd, sizeof(root->rsvd)) &&
	       krp_is_zero(root->rsvd2, sizeof(root->rsvd2));
}

/** krp_kind_port() - Whether a value of a kind says how to reach a port: krp_value.dct counts.
 * @kind: KRP_KIND_*. Context: any. Return: 1 or 0.
 */
static inline int krp_kind_port(unsigned int kind)
{
	return kind == KRP_KIND_DCT || kind == KRP_KIND_LANE;
}

/** krp_value_port_valid() - Whether what a value says of a port is in its ranges. @v: of such a
 * kind. Context: any. Return: 1 or 0.
 */
static inline int krp_value_port_valid(const struct krp_value *v)
{
	return !v->len && !v->dct.rsvd && v->dct.mtu >= 1 && v->dct.mtu <= 5 && v->dct.sl <= 15 &&
	       v->dct.port >= 1 && !(v->dct.flags & ~KRP_DCT_FLAGS_ALL) &&
	       !(krp_le32_to_cpu(v->dct.dctn) >> 24) && !(krp_le32_to_cpu(v->dct.ud_qpn) >> 24);
}

/**
 * krp_value_valid() - Whether a value may be published.
 * @v: the value; never trusted.
 *
 * Context: any.
 * Return: 1 if kind, ranges and pads are as struct krp_value says, else 0.
 */
static inline int krp_value_valid(const struct krp_value *v)
{
	if (!v->generation)
		return 0;
	switch (v->kind) {
	case KRP_KIND_RAW:
		return v->len <= KRP_RAW_BYTES &&
		       krp_is_zero(v->raw + v->len, KRP_RAW_BYTES - v->len);
	case KRP_KIND_DCT:
		return krp_value_port_valid(v);
	case KRP_KIND_LANE:
		return krp_value_port_valid(v) && !v->dct.dctn && !v->dct.dc_key && v->dct.ud_qpn;
	default:
		return 0;
	}
}

#endif /* KRP_TABLE_H */
