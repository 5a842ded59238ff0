/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The directory of memory regions of a node, as peers READ it. Normative.
 *
 * WHAT IT IS
 *   An array of 64-byte entries in the memory of a node's module, at
 *   krp_value.dct.mrdir_addr with krp_value.dct.mrdir_rkey. A token, which a
 *   program hands to its peers, names an entry by its low KRP_MRDIR_LOG2_MAX bits
 *   and proves itself by the others, which are random. The peer's module READs the
 *   entry (one READ) before it posts a request that names the token, and refuses
 *   what the entry does not allow: so a bad reference never reaches the hardware.
 *
 * READER
 *   Accepts an entry if its sum is right, its state is LIVE and its token is the
 *   one asked for. It may go on using it for lease_ms after the moment at which it
 *   STARTED the READ, and not longer. A wrong sum is a torn READ: try again.
 *
 * OWNER
 *   To take a region away it rewrites the entry as FREE, waits lease_ms and a
 *   margin, and only then destroys the key. A slot is used again with a new token.
 *
 * Note: Source - leases after Gray and Cheriton (SOSP '89); the sum after the
 * buckets in krp_table.h.
 */
#ifndef KRP_MRDIR_H
#define KRP_MRDIR_H

#include "krp_endian.h"
#include "krp_hash.h"
#include "krp_table.h"

#define KRP_MRDIR_LOG2_MAX 16 /* slots: at most 65536 */
#define KRP_MRDIR_ENTRY_BYTES 64
#define KRP_MRDIR_LEASE_MS 200
#define KRP_MRDIR_LEASE_MS_MAX 10000

/* krp_mrdir_entry.state */
#define KRP_MRDIR_FREE 0
#define KRP_MRDIR_LIVE 1

/**
 * struct krp_mrdir_entry - One region.
 * @sum: krp_mrdir_sum() over all that follows.
 * @token: name of the region; low KRP_MRDIR_LOG2_MAX bits are the slot.
 * @addr: address of its first byte, as its owner sees it and as requests name it.
 * @length: bytes.
 * @rkey: remote key of the hardware.
 * @access: KRP_ACCESS_*.
 * @state: KRP_MRDIR_*.
 * @rsvd: zero.
 * @lease_ms: how long a reader may use the entry.
 * @rsvd2: zero.
 * @generation: boot generation of the node.
 * @rsvd3: zero.
 */
struct krp_mrdir_entry {
	__le64 sum;
	__le64 token;
	__le64 addr;
	__le64 length;
	__le32 rkey;
	__u8 access;
	__u8 state;
	__u8 rsvd[2];
	__le32 lease_ms;
	__u8 rsvd2[4];
	__le64 generation;
	__u8 rsvd3[8];
};

KRP_STATIC_ASSERT(sizeof(struct krp_mrdir_entry) == KRP_MRDIR_ENTRY_BYTES, "krp_mrdir_entry");

/**
 * krp_mrdir_sum() - Checksum of an entry.
 * @entry: the entry; its sum is not read.
 *
 * Context: any.
 * Return: XXH64 of all bytes behind sum, seeded with KRP_ROOT_MAGIC.
 */
static inline __u64 krp_mrdir_sum(const struct krp_mrdir_entry *entry)
{
	return krp_xxh64((const __u8 *)entry + 8, sizeof(*entry) - 8, KRP_ROOT_MAGIC);
}

/**
 * krp_mrdir_slot() - Which entry a token names.
 * @token: token.
 *
 * Context: any.
 * Return: index, 0 to (1 << KRP_MRDIR_LOG2_MAX) - 1.
 */
static inline __u32 krp_mrdir_slot(__u64 token)
{
	return (__u32)(token & ((1U << KRP_MRDIR_LOG2_MAX) - 1));
}

/**
 * enum krp_mrdir_verdict - What the bytes of an entry say about a token.
 * @KRP_MRDIR_HIT: the entry is whole and is that token's.
 * @KRP_MRDIR_NONE: whole, but the region is not there (any more).
 * @KRP_MRDIR_TORN: not whole: READ again.
 */
enum krp_mrdir_verdict {
	KRP_MRDIR_HIT,
	KRP_MRDIR_NONE,
	KRP_MRDIR_TORN,
};

/**
 * krp_mrdir_check() - Whether bytes from the network are the entry of a token.
 * @entry: bytes as READ; never trusted.
 * @token: token wanted, not 0.
 *
 * Context: any.
 * Return: enum krp_mrdir_verdict.
 */
static inline enum krp_mrdir_verdict krp_mrdir_check(const struct krp_mrdir_entry *entry,
						     __u64 token)
{
	if (krp_le64_to_cpu(entry->sum) != krp_mrdir_sum(entry))
		return KRP_MRDIR_TORN;
	if (entry->state != KRP_MRDIR_LIVE || krp_le64_to_cpu(entry->token) != token ||
	    !krp_is_zero(entry->rsvd, sizeof(entry->rsvd)) ||
	    !krp_is_zero(entry->rsvd2, sizeof(entry->rsvd2)) ||
	    !krp_is_zero(entry->rsvd3, sizeof(entry->rsvd3)) || !entry->length ||
	    krp_le64_to_cpu(entry->addr) + krp_le64_to_cpu(entry->length) <
		    krp_le64_to_cpu(entry->addr) ||
	    !krp_le32_to_cpu(entry->lease_ms) ||
	    krp_le32_to_cpu(entry->lease_ms) > KRP_MRDIR_LEASE_MS_MAX)
		return KRP_MRDIR_NONE;
	return KRP_MRDIR_HIT;
}

#endif /* KRP_MRDIR_H */
