/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A table in the memory of a node: what clients READ, WRITE and change by atomics. This
 * comment is normative.
 *
 * The idea is that of RACE hashing (Zuo et al., USENIX ATC '21): clients do all the work, the
 * memory node does none. Differences: an insertion is announced by a tentative slot, as in FASTER
 * (Chandramouli et al., SIGMOD '18), so that a key never is in the table twice; a split is
 * committed by one word of a trie, so that it needs no lock; and a block says whether it has ever
 * been in the table, so that a client that does not know what became of its atomic finds out.
 *
 * All is in one region. Offsets count from its first byte. Words have 8 bytes, are aligned, and in
 * the byte order of the memory node, which clients must share (the magic shows it).
 *
 * Header: struct kr_header at 0. Behind it at `dir` the trie, at `clients` a word for each client
 * that writes, at `owners` one for each chunk, at `root` the first subtable, at `chunks` chunks of
 * KR_CHUNK_BYTES, from which blocks and subtables come.
 *
 * Hash: XXH64 of the key with the seed of the header. Bits 0 to 15 lead through the trie, bits 16
 * to 31 and 32 to 47 choose two buckets, bits 48 to 63 are the fingerprint.
 *
 * Trie: word N of `dir`, from 1, is that of node N; its children are 2N and 2N+1. At depth D, bit
 * D of the hash chooses. A word is
 *   0                  the node is a leaf: it has a subtable;
 *   client << 2 | 1    the same, and that client is splitting it (advice only: anybody may
 *                      replace it by its own, at any time);
 *   offset | 2         split for good: the subtables of its children are at this offset, one
 *                      behind the other.
 * A subtable that was split is never changed or used again: a client with an old copy of the
 * trie finds all its slots frozen, READs the word of the node, and goes on.
 *
 * Subtable: `groups` groups of three buckets of 64 bytes: main, overflow, main. A combined bucket
 * is a main bucket and the overflow bucket beside it, 128 bytes in sequence. A bucket is its head
 * (kr_bucket_head() of its node) and seven slots. A key is in one of the slots of its two combined
 * buckets.
 *
 * Slot: a word, from the highest bit: state (2), frozen (1), class (5), fingerprint (16), tag
 * (10), offset of the block / 64 (30). States: KR_EMPTY (then all the rest but frozen is 0),
 * KR_TENTATIVE (no entry: a client is about to insert one; anybody may replace it by empty),
 * KR_LIVE (an entry), KR_TOMB (no entry: the block says which client has deleted it).
 * A frozen slot is never changed.
 *
 * Block: struct kr_block, then key and value. Its class says how many bytes are READ. The tag is
 * the lowest 10 bits of its identity, and rises when the memory is used again, so that no two
 * entries of one slot have the same word unless the memory was used 1024 times in between.
 * `life`: state (2), client (26), count (26), tag (10); all but the state is the identity. States:
 * KR_NEW, KR_COMMITTED, KR_FREED. Whoever replaces a slot that is KR_LIVE or KR_TOMB first makes
 * the `life` of its block KR_COMMITTED; but not of a tomb of its own, of which it knows that it is
 * there. So a client that does not know whether its own slot word was put in place READs the slot and
 * then `life`: it was, if the word is there, or `life` has its identity and is not KR_NEW any more.
 * Whoever has replaced it makes it KR_FREED afterwards, from when on it belongs to the owner of its
 * chunk; the owner uses it again at once, and makes it KR_FREED when it ends.
 *
 * Insertion: WRITE the block; CAS of an empty slot to KR_TENTATIVE; READ both combined buckets
 * again; if another slot has the key: take back, or else if it is tentative with the same
 * fingerprint: make it empty; CAS to KR_LIVE. Of two clients at least one sees the other's.
 * Update and deletion: WRITE the block, make `life` of the old one KR_COMMITTED, CAS of the slot.
 * A client that finds no memory for the block of a tomb makes the slot empty instead; then it may
 * not find out whether it was its own CAS that did so, and the old block stays KR_COMMITTED.
 * Split: freeze each slot (tentative ones become empty), WRITE two subtables with the same slots
 * where bit D of the hash is 0 or 1, without tombs, CAS of the node's word. A tomb's block is free once
 * its slot is frozen: who has put it there uses it again. A slot whose block is
 * not what it says is in both: the damage stays where look-ups find it.
 *
 * Clients: word `id % nr_clients` is id << 32 | beat. A client that writes takes an id from
 * `next_client` and changes the beat at least each KR_BEAT_MS while it works. If it does not for
 * `lease_ms`, another may set the word to 0. A chunk whose owner has no word is a dead client's: a
 * lease after that was seen, any client may make it its own, and free what no slot has.
 * Owners: the word of a chunk is 0 (free), client << 8 | class + 1, or KR_OWNER_NOBODY | class + 1:
 * no client's, and each free block in it that is known is KR_FREED or has a `life` of 0 (never
 * used); one that is not known is found when the chunk is a dead client's. With KR_OWNER_FULL none was
 * known when it became nobody's: it is not searched as long as there are others. In a chunk
 * with subtables, class KR_CLASS_SUBTABLES, those whose first word is 0 behind the last are free.
 */
#ifndef KR_LAYOUT_H
#define KR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/krp_hash.h"

#define KR_MAGIC 0x313045434152524bULL /* "KRRACE01", little-endian */
#define KR_VERSION 1
#define KR_UNIT 64
#define KR_CHUNK_BYTES 262144
#define KR_BYTES_MAX (1ULL << 36)
#define KR_KEY_MAX 65536
#define KR_VALUE_MAX 65536
#define KR_DEPTH_MAX 16
#define KR_GROUPS_MAX 256
#define KR_GROUP_BYTES 192
#define KR_COMBINED_BYTES 128
#define KR_COMBINED_WORDS 16
#define KR_BEAT_MS 1000
#define KR_LEASE_MAX_MS 3600000
#define KR_CLIENTS 4096
#define KR_CLASSES 22
#define KR_CLASS_SUBTABLES 31 /* of a chunk: it has subtables */
#define KR_OWNER_NOBODY (1ULL << 63)
#define KR_OWNER_FULL (1ULL << 62) /* with KR_OWNER_NOBODY alone */
#define KR_CLIENT_MAX 0x3ffffffU /* 26 bits */
#define KR_COUNT_MAX 0x3ffffffU /* the same */

/**
 * struct kr_header - The beginning of the region.
 * @magic: KR_MAGIC.
 * @version: KR_VERSION.
 * @groups: of a subtable, 1 to KR_GROUPS_MAX.
 * @bytes: of the region.
 * @seed: of the hash.
 * @dir: offset of the trie.
 * @clients: offset of the words of clients.
 * @owners: offset of the words of chunks.
 * @root: offset of the subtable of node 1.
 * @chunks: offset of the first chunk.
 * @nr_chunks: how many.
 * @nr_clients: words of clients.
 * @depth_max: depth of a leaf that is not split any more, at most KR_DEPTH_MAX.
 * @lease_ms: see above.
 * @sum: XXH64 of all before it.
 * @rsvd: zero.
 * @next_chunk: the chunk to try next; changed by FETCH_ADD.
 * @next_client: the id to take next; changed by FETCH_ADD.
 * @depth: a leaf was at this depth (a hint).
 * @left: chunks that are nobody's and not full (a hint); changed by FETCH_ADD.
 * @rsvd2: zero.
 */
struct kr_header {
	uint64_t magic;
	uint32_t version;
	uint32_t groups;
	uint64_t bytes;
	uint64_t seed;
	uint64_t dir;
	uint64_t clients;
	uint64_t owners;
	uint64_t root;
	uint64_t chunks;
	uint32_t nr_chunks;
	uint32_t nr_clients;
	uint32_t depth_max;
	uint32_t lease_ms;
	uint64_t sum;
	uint64_t rsvd[4];
	uint64_t next_chunk;
	uint64_t next_client;
	uint64_t depth;
	uint64_t left;
	uint64_t rsvd2[12];
};

_Static_assert(sizeof(struct kr_header) == 256, "layout");
_Static_assert(offsetof(struct kr_header, next_chunk) == 128, "layout");

/**
 * struct kr_block - The beginning of a block.
 * @life: state and identity, see above.
 * @hash: of the key.
 * @key_bytes: length of the key, 1 to KR_KEY_MAX.
 * @value_bytes: length of the value, at most KR_VALUE_MAX; 0 in a tomb.
 * @sum: kr_block_sum().
 */
struct kr_block {
	uint64_t life;
	uint64_t hash;
	uint32_t key_bytes;
	uint32_t value_bytes;
	uint64_t sum;
};

#define KR_BLOCK_MAX (2052 * KR_UNIT)

/** enum kr_state - Of a slot; see above. */
enum kr_state {
	KR_EMPTY = 0,
	KR_TENTATIVE = 1,
	KR_LIVE = 2,
	KR_TOMB = 3,
};

/** enum kr_life - State of a block; see above. */
enum kr_life {
	KR_NEW = 0,
	KR_COMMITTED = 1,
	KR_FREED = 2,
};

#define KR_FROZEN (1ULL << 61)
#define KR_TAG_MASK 0x3ffU
#define KR_IDENTITY_MASK ((1ULL << 62) - 1)

/* words of the trie */
#define KR_DIR_CLAIM 1
#define KR_DIR_SPLIT 2
#define KR_DIR_KIND 3

/** kr_slot() - Make the word of a slot. @state, @class, @fp, @tag, @at: its parts. Return: it. */
static inline uint64_t kr_slot(enum kr_state state, unsigned int class, unsigned int fp,
			       unsigned int tag, uint64_t at)
{
	return (uint64_t)state << 62 | (uint64_t) class << 56 | (uint64_t)fp << 40 |
	       (uint64_t)(tag & KR_TAG_MASK) << 30 | at / KR_UNIT;
}

/** kr_slot_state() - State of a slot. @slot: word. Return: it. */
static inline enum kr_state kr_slot_state(uint64_t slot)
{
	return (enum kr_state)(slot >> 62);
}

/**
 * kr_slot_with() - The same slot in another state, not frozen.
 * @slot: word.
 * @state: state.
 *
 * Return: it.
 */
static inline uint64_t kr_slot_with(uint64_t slot, enum kr_state state)
{
	return (slot & ((1ULL << 61) - 1)) | (uint64_t)state << 62;
}

/**
 * kr_slot_class() - Class of the block of a slot.
 * @slot: word.
 *
 * Return: it; may be out of range.
 */
static inline unsigned int kr_slot_class(uint64_t slot)
{
	return slot >> 56 & 31;
}

/** kr_slot_fp() - Fingerprint of a slot. @slot: word. Return: it. */
static inline unsigned int kr_slot_fp(uint64_t slot)
{
	return slot >> 40 & 0xffff;
}

/** kr_slot_tag() - Tag of a slot. @slot: word. Return: it. */
static inline unsigned int kr_slot_tag(uint64_t slot)
{
	return slot >> 30 & KR_TAG_MASK;
}

/** kr_slot_at() - Offset of the block of a slot. @slot: word. Return: it; may be out of range. */
static inline uint64_t kr_slot_at(uint64_t slot)
{
	return (slot & 0x3fffffff) * KR_UNIT;
}

/** kr_hash_fp() - Fingerprint of a key. @hash: of the key. Return: it. */
static inline unsigned int kr_hash_fp(uint64_t hash)
{
	return hash >> 48 & 0xffff;
}

/** kr_life() - Make `life` of a block. @state: state. @identity: identity. Return: it. */
static inline uint64_t kr_life(enum kr_life state, uint64_t identity)
{
	return (uint64_t)state << 62 | (identity & KR_IDENTITY_MASK);
}

/** kr_identity() - Make an identity. @client, @count, @tag: its parts. Return: it. */
static inline uint64_t kr_identity(uint32_t client, uint32_t count, unsigned int tag)
{
	return (uint64_t)(client & KR_CLIENT_MAX) << 36 | (uint64_t)(count & KR_COUNT_MAX) << 10 |
	       (tag & KR_TAG_MASK);
}

/** kr_identity_client() - Client of an identity. @identity: it. Return: id of the client. */
static inline uint32_t kr_identity_client(uint64_t identity)
{
	return (uint32_t)(identity >> 36 & KR_CLIENT_MAX);
}

/** kr_bucket_head() - Head of the buckets of a node. @node: of the trie. Return: it. */
static inline uint64_t kr_bucket_head(uint32_t node)
{
	return 0x5243424bULL << 32 | node;
}

/** kr_subtable_bytes() - Size of a subtable. @groups: header's. Return: bytes. */
static inline uint32_t kr_subtable_bytes(uint32_t groups)
{
	return groups * KR_GROUP_BYTES;
}

/**
 * kr_combined() - Where a combined bucket of a key is.
 * @groups: header's.
 * @hash: of the key.
 * @which: 0 or 1; the two are never the same main bucket.
 *
 * Return: offset from the subtable.
 */
uint32_t kr_combined(uint32_t groups, uint64_t hash, unsigned int which);

/** kr_class_bytes() - Size of the blocks of a class. @class: below KR_CLASSES. Return: bytes. */
uint32_t kr_class_bytes(unsigned int class);

/** kr_class_of() - The smallest class for a block. @bytes: at most KR_BLOCK_MAX. Return: it. */
unsigned int kr_class_of(uint32_t bytes);

/** kr_class_blocks() - Blocks in a chunk. @class: below KR_CLASSES. Return: how many. */
uint32_t kr_class_blocks(unsigned int class);

/** kr_block_sum() - Checksum of a block. @block: with key and value behind it. Return: it. */
uint64_t kr_block_sum(const struct kr_block *block);

/** enum kr_verdict - What a block that was READ is; see kr_block_check(). */
enum kr_verdict {
	KR_HIT, /* the entry of this key */
	KR_OTHER, /* a sound entry of another key */
	KR_CHANGED, /* not what the slot said: it has changed since, or is damaged */
};

/**
 * kr_block_check() - Judge bytes that were READ as the block of a slot.
 * @block: the bytes, as many as the slot's class says.
 * @slot: word of the slot; its class is below KR_CLASSES.
 * @hash: of the key looked for.
 * @key: the key looked for; NULL: any, @hash is ignored.
 * @key_bytes: its length.
 *
 * On KR_HIT and KR_OTHER, key and value are within the class.
 *
 * Return: verdict.
 */
enum kr_verdict kr_block_check(const struct kr_block *block, uint64_t slot, uint64_t hash,
			       const void *key, uint32_t key_bytes);

/**
 * kr_slot_check() - Whether a slot can be followed.
 * @header: checked header.
 * @slot: word that is not empty.
 *
 * Return: true if its class is known and its block within the region's chunks.
 */
bool kr_slot_check(const struct kr_header *header, uint64_t slot);

/**
 * kr_pair_check() - Whether a word of the trie that says "split" can be followed.
 * @header: checked header.
 * @word: word.
 *
 * Return: true if both subtables are within the region's chunks.
 */
bool kr_pair_check(const struct kr_header *header, uint64_t word);

/**
 * kr_header_check() - Judge a header that was READ.
 * @header: header.
 * @bytes: of the region, as its reference says.
 *
 * Return: 0; -EPROTO if it is not one; -EPROTONOSUPPORT if it is of another version or byte order;
 * -EBADMSG if it is damaged.
 */
int kr_header_check(const struct kr_header *header, uint64_t bytes);

/**
 * kr_format() - Make an empty table.
 * @memory: region, 64-byte aligned, all zero.
 * @bytes: its size, at most KR_BYTES_MAX.
 * @groups: of a subtable, 1 to KR_GROUPS_MAX.
 * @depth_max: 0 to KR_DEPTH_MAX.
 * @seed: of the hash.
 * @lease_ms: lease of clients, 1 to KR_LEASE_MAX_MS.
 *
 * Return: 0; -EINVAL if a number is out of its range; -ENOSPC if there is no room for two chunks.
 */
int kr_format(void *memory, uint64_t bytes, uint32_t groups, uint32_t depth_max, uint64_t seed,
	      uint32_t lease_ms);

#endif /* KR_LAYOUT_H */
