/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Hashing and byte helpers, the same in the kernel and in user space.
 *
 * The hash is XXH64 as "xxHash fast digest algorithm" defines it (Collet,
 * doc/xxhash_spec.md in the sources of xxHash, 0.1.1 and later), with a seed of
 * 64 bits; numbers of a seed or a result are unsigned and wrap. XXH64 of no
 * bytes with seed 0 is 0xef46db3751d8e999. Both worlds ship it: lib/xxhash.c in the
 * kernel, <xxhash.h> of libxxhash in user space (inlined, no run-time
 * dependency). It is little-endian by definition, so the same bytes give the
 * same number everywhere. It is no MAC: what it protects against is torn and
 * misplaced bytes, not a hostile MetaServer.
 */
#ifndef KRP_HASH_H
#define KRP_HASH_H

#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/xxhash.h>
#include <linux/build_bug.h>
#define KRP_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#include <stddef.h>
#include <string.h>
/*
 * The inlined code must not be clever: on ARM it reads words through a packed union, and on
 * machines other than x86 and arm64 through a cast where they are aligned. Either breaks C's
 * rule of aliasing: gcc may then hash what was there before the caller's last stores.
 */
#ifndef XXH_FORCE_MEMORY_ACCESS
#define XXH_FORCE_MEMORY_ACCESS 0 /* memcpy() */
#endif
#ifndef XXH_FORCE_ALIGN_CHECK
#define XXH_FORCE_ALIGN_CHECK 0 /* one path, which does not cast */
#endif
#if XXH_FORCE_MEMORY_ACCESS != 0 || XXH_FORCE_ALIGN_CHECK != 0
#error "include krp_hash.h before xxhash.h: its way to read memory breaks the rule of aliasing"
#endif
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
#ifdef __cplusplus
#define KRP_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define KRP_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#endif

/* 2^64 divided by the golden ratio, odd: spreads small numbers over 64 bits. */
#define KRP_GOLDEN 0x9e3779b97f4a7c15ULL

/**
 * krp_xxh64() - XXH64 of a byte string.
 * @p: bytes; may be unaligned.
 * @bytes: how many.
 * @seed: seed.
 *
 * Context: any; takes no lock, does not sleep.
 * Return: the 64-bit hash.
 */
static inline __u64 krp_xxh64(const void *p, __u64 bytes, __u64 seed)
{
#ifdef __KERNEL__
	return xxh64(p, bytes, seed);
#else
	return XXH64(p, bytes, seed);
#endif
}

/**
 * krp_mix64() - Finaliser that makes each output bit depend on each input bit.
 * @x: any number.
 *
 * Context: any.
 * Return: a bijective scramble of @x.
 * Note: Source - splitmix64 (Steele, Lea, Flood, OOPSLA '14).
 */
static inline __u64 krp_mix64(__u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/**
 * krp_is_zero() - Whether all bytes of a region are zero.
 * @p: region; may be unaligned.
 * @bytes: its length; 0: it is.
 *
 * Pads and reserved fields must be zero on the wire; this is the test for it. For fields of the
 * hot path it takes words, so that a short constant length needs no loop.
 *
 * Context: any.
 * Return: 1 if all are zero, else 0.
 */
static inline int krp_is_zero(const void *p, __u64 bytes)
{
	const __u8 *b = (const __u8 *)p;
	__u64 any = 0, word;
	__u32 half;
	__u16 pair;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), b += sizeof(word)) {
		memcpy(&word, b, sizeof(word));
		any |= word;
	}
	if (bytes & sizeof(half)) {
		memcpy(&half, b, sizeof(half));
		any |= half;
		b += sizeof(half);
	}
	if (bytes & sizeof(pair)) {
		memcpy(&pair, b, sizeof(pair));
		any |= pair;
		b += sizeof(pair);
	}
	if (bytes & 1)
		any |= *b;
	return !any;
}

#endif /* KRP_HASH_H */
