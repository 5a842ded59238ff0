/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The directory of memory regions of a node, as peers READ it. Normative.
 *
 * WHAT IT IS
 *   An array of KRP_MRDIR_SLOTS entries of 64 bytes in the memory of a node's
 *   module, at krp_value.dct.mrdir_addr with krp_value.dct.mrdir_rkey; a record
 *   in which mrdir_rkey or mrdir_addr is 0 leads to none. A token, which a
 *   program hands to its peers, names an entry by its low KRP_MRDIR_LOG2_MAX bits
 *   and proves itself by the others, which are random. The peer's module READs the
 *   entry (one READ) before it posts a request that names the token, and refuses
 *   what the entry does not allow: so a bad reference never reaches the hardware.
 *
 * SIZE
 *   Every directory has KRP_MRDIR_SLOTS entries that can be READ, whether its owner
 *   uses all of them or not. The record does not say how many there are, and a
 *   READ past the end would be refused by the owner's NIC, at the cost of all who
 *   share the reader's send queue. So a reader refuses, without a READ, a token
 *   that names a slot from KRP_MRDIR_SLOTS on (krp_mrdir_token_valid()). A directory
 *   does not grow: readers would have to learn of its new size before they may use it.
 *
 * READER
 *   Accepts an entry if its sum is right, its state is LIVE, its token is the
 *   one asked for and its generation is that of the record that led here. It may
 *   go on using it for lease_ms after the moment at which it STARTED the READ, and
 *   not longer: within that time it hands a request to its NIC. Within margin_ms
 *   more the request has left the NIC: a reader takes back what is still there, at
 *   half of that time, so that the rest is for its own delays. A wrong sum is a
 *   torn READ: try again, but not for ever.
 *
 * OWNER
 *   To take a region away it rewrites the entry as FREE, waits lease_ms and
 *   margin_ms, and only then destroys the key. The margin is for requests that a
 *   reader posted at the end of its lease and that are still on their way, and for
 *   clocks that do not run alike. A reader that stood still meanwhile, with its
 *   clock, may come later all the same: so the same key is not given to another
 *   region for as long as the owner can, KRP_MRDIR_REST_MS at least, and what comes
 *   late is refused. A slot is used again with a new token; that may
 *   be as soon as its entry has been rewritten. An entry never used is FREE with a
 *   right sum, so that it is an answer and not a torn READ.
 *
 * Note: Source - leases after Gray and Cheriton (SOSP '89); the sum after the
 * buckets in krp_table.h.
 */
#ifndef KRP_MRDIR_H
#define KRP_MRDIR_H

#include "krp_endian.h"
#include "krp_hash.h"
#include "krp_table.h"

#define KRP_MRDIR_LOG2_MAX 16 /* bits of a token that name the slot */
#define KRP_MRDIR_SLOTS 32768U /* entries of every directory, 2 MiB */
#define KRP_MRDIR_ENTRY_BYTES 64
#define KRP_MRDIR_LEASE_MS 200
#define KRP_MRDIR_LEASE_MS_MIN 50 /* less would be over before it can be used */
#define KRP_MRDIR_LEASE_MS_MAX 10000
#define KRP_MRDIR_MARGIN_MS_MIN 100
#define KRP_MRDIR_MARGIN_MS_MAX 10000
#define KRP_MRDIR_REST_MS 75000

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
 * @lease_ms: how long a reader may use the entry, KRP_MRDIR_LEASE_MS_MIN to _MAX.
 * @margin_ms: how long a request may be on its way beyond that, KRP_MRDIR_MARGIN_MS_MIN to
 *	_MAX.
 * @generation: boot generation of the node.
 * @rsvd2: zero.
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
	__le32 margin_ms;
	__le64 generation;
	__u8 rsvd2[8];
};

KRP_STATIC_ASSERT(sizeof(struct krp_mrdir_entry) == KRP_MRDIR_ENTRY_BYTES, "krp_mrdir_entry");
KRP_STATIC_ASSERT(KRP_MRDIR_SLOTS <= 1U << KRP_MRDIR_LOG2_MAX, "KRP_MRDIR_SLOTS");

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
 * krp_mrdir_seal() - Give an entry the sum of its bytes.
 * @entry: entry, complete but for its sum.
 *
 * Context: any.
 */
static inline void krp_mrdir_seal(struct krp_mrdir_entry *entry)
{
	entry->sum = krp_cpu_to_le64(krp_mrdir_sum(entry));
}

/**
 * krp_mrdir_slot() - Which entry a token names.
 * @token: token.
 *
 * Context: any.
 * Return: index, 0 to (1 << KRP_MRDIR_LOG2_MAX) - 1; below KRP_MRDIR_SLOTS if
 * krp_mrdir_token_valid().
 */
static inline __u32 krp_mrdir_slot(__u64 token)
{
	return (__u32)(token & ((1U << KRP_MRDIR_LOG2_MAX) - 1));
}

/**
 * krp_mrdir_token_valid() - Whether a number can be a token at all.
 * @token: number from anywhere.
 *
 * What this refuses must not be looked for: its slot may lie outside of the peer's
 * directory.
 *
 * Context: any.
 * Return: 1 if it names a slot that every directory has and its random part is
 * not 0, else 0.
 */
static inline int krp_mrdir_token_valid(__u64 token)
{
	return krp_mrdir_slot(token) < KRP_MRDIR_SLOTS && token >> KRP_MRDIR_LOG2_MAX;
}

/**
 * krp_mrdir_inside() - Whether a piece of memory lies inside of a region.
 * @base: first byte of the region.
 * @size: bytes of the region; @base + @size does not wrap.
 * @addr: first byte of the piece.
 * @length: bytes of the piece.
 *
 * Modulo 2^64, what comes before @base is @size or more behind it, so two comparisons are enough:
 * this is on the way of each request, twice. Context: any.
 * Return: 1 if it does, 0 if not or if it is empty; sums that wrap are not inside.
 */
static inline int krp_mrdir_inside(__u64 base, __u64 size, __u64 addr, __u64 length)
{
	return length - 1 < size && addr - base <= size - length;
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
	    !krp_is_zero(entry->rsvd2, sizeof(entry->rsvd2)) || !entry->length ||
	    /* krp_mrdir_inside() relies on it */
	    krp_le64_to_cpu(entry->addr) + krp_le64_to_cpu(entry->length) <
		    krp_le64_to_cpu(entry->addr) ||
	    krp_le32_to_cpu(entry->lease_ms) < KRP_MRDIR_LEASE_MS_MIN ||
	    krp_le32_to_cpu(entry->lease_ms) > KRP_MRDIR_LEASE_MS_MAX ||
	    krp_le32_to_cpu(entry->margin_ms) < KRP_MRDIR_MARGIN_MS_MIN ||
	    krp_le32_to_cpu(entry->margin_ms) > KRP_MRDIR_MARGIN_MS_MAX)
		return KRP_MRDIR_NONE;
	return KRP_MRDIR_HIT;
}

#endif /* KRP_MRDIR_H */
