/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The records of a table that are kept aside: those for which no bucket can have room,
 * because too many keys share their hash (proto/krp_table.h, KRP_BUCKET_CROWDED).
 *
 * The table has one set of them. An entry is found by its key, through a hash with a secret
 * seed: a client that chooses keys to crowd a page of the table cannot crowd this hash, too.
 * The entries of a page form a ring, whose head is in the page's data.
 *
 * A GID may have at most a part of what is still free, and one. So one address that chooses its
 * keys takes a small part of them, each further one less, and there is room for
 * the record that they crowd out until some ten thousand addresses do so.
 *
 * Locking: none, as table.h.
 */
#ifndef MS_ASIDE_H
#define MS_ASIDE_H

#include <stddef.h>

#include "proto/krp_table.h"

#define MS_ASIDE_NIL 0xffffffffU
#define MS_ASIDE_GIDS 4096U /* counters, each of the GIDs that share a hash */
#define MS_ASIDE_SHARE 64U /* a GID may have this part of what is free, and one */

/**
 * struct ms_record - A record with what its writer knows of it.
 * @key: name.
 * @value: value.
 * @order: in a plan (plan.h): how many were gathered before it.
 * @cookie: the caller's.
 * @hash: krp_key_hash() of @key.
 */
struct ms_record {
	struct krp_key key;
	struct krp_value value;
	__u8 order;
	__u64 cookie;
	__u64 hash;
};

/**
 * struct ms_aside - A record kept aside.
 * @record: the record.
 * @chain: next of the same hash chain.
 * @next: next of its page; next unused entry.
 * @prev: previous of its page.
 */
struct ms_aside {
	struct ms_record record;
	__u32 chain;
	__u32 next;
	__u32 prev;
};

/**
 * struct ms_asides - All of a table.
 * @entries: the array.
 * @heads: of the hash chains, as many as @room, which is a power of two or 0.
 * @room: length of both.
 * @nr: entries in use.
 * @max: at most so many.
 * @unused: first unused entry.
 * @secret: seed of the hashes.
 * @of_gid: entries in use by hash of the key's GID.
 */
struct ms_asides {
	struct ms_aside *entries;
	__u32 *heads;
	__u32 room;
	__u32 nr;
	__u32 max;
	__u32 unused;
	__u64 secret;
	__u32 of_gid[MS_ASIDE_GIDS];
};

/** ms_asides_init() - Set up an empty set. @a: set up. @max: at most so many. @secret: random. */
void ms_asides_init(struct ms_asides *a, __u32 max, __u64 secret);

/** ms_asides_free() - Free all memory. @a: as ms_asides_init() or zero left it. */
void ms_asides_free(struct ms_asides *a);

/** ms_asides_bytes() - Memory in use. @a: of a table. Return: bytes. */
size_t ms_asides_bytes(const struct ms_asides *a);

/**
 * ms_asides_reserve() - Reserve memory for one more entry.
 * @a: of a table.
 * @key: its key, not there yet.
 *
 * Return:
 * * 0 - ms_asides_add() cannot fail.
 * * %-ENOSPC - there are as many as there may be, at all or of the key's GID.
 * * %-ENOMEM - no memory.
 */
int ms_asides_reserve(struct ms_asides *a, const struct krp_key *key);

/** ms_asides_find() - Find a key. @a: of a table. @key: it. Return: entry or MS_ASIDE_NIL. */
__u32 ms_asides_find(const struct ms_asides *a, const struct krp_key *key);

/**
 * ms_asides_add() - Add a record that is not there yet, after ms_asides_reserve().
 * @a: of a table.
 * @ring: head of its page's ring; becomes the record if there was none.
 * @record: it; copied.
 */
void ms_asides_add(struct ms_asides *a, __u32 *ring, const struct ms_record *record);

/**
 * ms_asides_del() - Take an entry out.
 * @a: of a table.
 * @ring: head of its page's ring.
 * @nr: entry.
 */
void ms_asides_del(struct ms_asides *a, __u32 *ring, __u32 nr);

/**
 * ms_asides_move() - Move an entry to another page.
 * @a: of a table.
 * @from: head of the ring that it is in.
 * @to: head of the ring that it shall be in.
 * @nr: entry.
 */
void ms_asides_move(struct ms_asides *a, __u32 *from, __u32 *to, __u32 nr);

#endif /* MS_ASIDE_H */
