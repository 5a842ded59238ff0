// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table in memory: geometry, checks of what was READ, and how an empty one is made.
 */
#include <errno.h>
#include <string.h>

#include "race/lib/layout.h"

static const uint16_t kr_units[KR_CLASSES] = {
	1,  2,	3,   4,	  6,   8,   12,	 16,  24,   32,	  48,
	64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2052,
};

uint32_t kr_combined(uint32_t groups, uint64_t hash, unsigned int which)
{
	uint32_t mains = 2 * groups;
	uint32_t first = (hash >> 16 & 0xffff) % mains;
	uint32_t main = first;

	if (which)
		main = (first + 1 + (hash >> 32 & 0xffff) % (mains - 1)) % mains;
	return main / 2 * KR_GROUP_BYTES + main % 2 * KR_UNIT;
}

uint32_t kr_class_bytes(unsigned int class)
{
	return kr_units[class] * KR_UNIT;
}

unsigned int kr_class_of(uint32_t bytes)
{
	unsigned int class = 0;

	while (class < KR_CLASSES - 1 && kr_class_bytes(class) < bytes)
		class += 1;
	return class;
}

uint32_t kr_class_blocks(unsigned int class)
{
	return KR_CHUNK_BYTES / kr_class_bytes(class);
}

uint64_t kr_block_sum(const struct kr_block *block)
{
	uint64_t seed = block->life & KR_IDENTITY_MASK;

	seed = krp_xxh64(&block->hash, offsetof(struct kr_block, sum) - sizeof(block->life), seed);
	return krp_xxh64(block + 1, (uint64_t)block->key_bytes + block->value_bytes, seed);
}

enum kr_verdict kr_block_check(const struct kr_block *block, uint64_t slot, uint64_t hash,
			       const void *key, uint32_t key_bytes)
{
	uint32_t room = kr_class_bytes(kr_slot_class(slot)) - (uint32_t)sizeof(*block);

	if ((block->life & KR_TAG_MASK) != kr_slot_tag(slot) || !block->key_bytes ||
	    block->key_bytes > KR_KEY_MAX || block->value_bytes > KR_VALUE_MAX ||
	    block->key_bytes + block->value_bytes > room ||
	    kr_hash_fp(block->hash) != kr_slot_fp(slot) || block->sum != kr_block_sum(block))
		return KR_CHANGED;
	if (!key)
		return KR_HIT;
	if (block->hash != hash || block->key_bytes != key_bytes ||
	    memcmp(block + 1, key, key_bytes) != 0)
		return KR_OTHER;
	return KR_HIT;
}

bool kr_slot_check(const struct kr_header *header, uint64_t slot)
{
	uint64_t at = kr_slot_at(slot);
	uint32_t bytes;

	if (kr_slot_class(slot) >= KR_CLASSES || at < header->chunks)
		return false;
	bytes = kr_class_bytes(kr_slot_class(slot));
	at = (at - header->chunks) % KR_CHUNK_BYTES;
	return kr_slot_at(slot) + bytes <=
		       header->chunks + (uint64_t)header->nr_chunks * KR_CHUNK_BYTES &&
	       at % bytes == 0 && at / bytes < kr_class_blocks(kr_slot_class(slot));
}

bool kr_pair_check(const struct kr_header *header, uint64_t word)
{
	uint64_t at = word & ~(uint64_t)KR_DIR_KIND;
	uint64_t end = header->chunks + (uint64_t)header->nr_chunks * KR_CHUNK_BYTES;

	return at % KR_UNIT == 0 && at >= header->chunks && at < end &&
	       end - at >= 2 * kr_subtable_bytes(header->groups);
}

/* Where things are, from the numbers that the caller has checked. Return: the end. */
static uint64_t kr_place_all(struct kr_header *h)
{
	uint64_t at = sizeof(*h);

	h->dir = at;
	at += 16ULL << h->depth_max;
	h->clients = at;
	at += 8ULL * h->nr_clients;
	h->owners = at;
	at += 8ULL * h->nr_chunks;
	at = (at + KR_UNIT - 1) / KR_UNIT * KR_UNIT;
	h->root = at;
	at += kr_subtable_bytes(h->groups);
	h->chunks = at;
	return at + (uint64_t)h->nr_chunks * KR_CHUNK_BYTES;
}

static uint64_t kr_header_sum(const struct kr_header *header)
{
	return krp_xxh64(header, offsetof(struct kr_header, sum), KR_MAGIC);
}

int kr_header_check(const struct kr_header *header, uint64_t bytes)
{
	struct kr_header want = *header;

	if (header->magic == __builtin_bswap64(KR_MAGIC))
		return -EPROTONOSUPPORT;
	if (header->magic != KR_MAGIC)
		return -EPROTO;
	if (header->version != KR_VERSION)
		return -EPROTONOSUPPORT;
	if (header->sum != kr_header_sum(header))
		return -EBADMSG;
	if (!header->groups || header->groups > KR_GROUPS_MAX || header->depth_max > KR_DEPTH_MAX ||
	    header->bytes > bytes || header->nr_clients != KR_CLIENTS || !header->nr_chunks ||
	    !header->lease_ms || header->lease_ms > KR_LEASE_MAX_MS ||
	    header->bytes > KR_BYTES_MAX || kr_place_all(&want) > header->bytes ||
	    want.dir != header->dir || want.clients != header->clients ||
	    want.owners != header->owners || want.root != header->root ||
	    want.chunks != header->chunks)
		return -EBADMSG;
	return 0;
}

int kr_format(void *memory, uint64_t bytes, uint32_t groups, uint32_t depth_max, uint64_t seed,
	      uint32_t lease_ms)
{
	struct kr_header *h = memory;
	uint64_t *words, i;

	if (!groups || groups > KR_GROUPS_MAX || depth_max > KR_DEPTH_MAX || bytes > KR_BYTES_MAX ||
	    !lease_ms || lease_ms > KR_LEASE_MAX_MS)
		return -EINVAL;
	memset(h, 0, sizeof(*h));
	h->version = KR_VERSION;
	h->groups = groups;
	h->bytes = bytes;
	h->seed = seed;
	h->depth_max = depth_max;
	h->lease_ms = lease_ms;
	h->nr_clients = KR_CLIENTS;
	h->nr_chunks = (uint32_t)(bytes / KR_CHUNK_BYTES);
	while (h->nr_chunks && kr_place_all(h) > bytes)
		h->nr_chunks--;
	if (h->nr_chunks < 2)
		return -ENOSPC;
	h->next_client = 1;
	words = (uint64_t *)((uint8_t *)memory + h->root);
	for (i = 0; i < kr_subtable_bytes(groups) / KR_UNIT; i++)
		words[i * 8] = kr_bucket_head(1);
	h->magic = KR_MAGIC;
	h->sum = kr_header_sum(h);
	return 0;
}
