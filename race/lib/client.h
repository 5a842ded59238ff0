/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A client of a table: the algorithm, over any transport. See layout.h for what it does to the
 * table.
 *
 *	find.c		look a key up
 *	modify.c	insert, update, delete
 *	split.c		split a subtable
 *	writer.c	be a client that writes
 *	alloc.c		memory for blocks and subtables
 *	walk.c		all entries
 *	check.c		check and reclaim
 *
 * A client belongs to one thread. Nothing here knows time or network but by the transport.
 */
#ifndef KR_CLIENT_H
#define KR_CLIENT_H

#include "race/lib/layout.h"
#include "race/lib/transport.h"

#define KR_DIR_FIRST 480 /* words of the trie that come with the header */
#define KR_SMALL_BYTES 4096 /* largest block for which the first buffers suffice */
#define KR_FREES_MAX 16
#define KR_CLIENT_BYTES (4096 + 2 * KR_SMALL_BYTES) /* memory that each client takes */

/**
 * struct kr_free_block - A block that is free.
 * @at: offset.
 * @tag: of its last identity.
 */
struct kr_free_block {
	uint64_t at;
	uint32_t tag;
};

/**
 * enum kr_words - Which of a client's words (kr_client.words) who uses, so that what one
 * has READ outlives what it calls.
 * @KR_AT_ONE: kr_read() and kr_cas() of one word.
 * @KR_AT_RESOLVE: the outcome of a change, two.
 * @KR_AT_CHANGE: a change's own atomics, eight.
 * @KR_AT_ADD: counters.
 * @KR_AT_FREES: blocks given back with a change, KR_FREES_MAX.
 * @KR_AT_BATCH: batches, KR_BATCH_MAX.
 */
enum kr_words {
	KR_AT_ONE = 0,
	KR_AT_RESOLVE = 8,
	KR_AT_CHANGE = 16,
	KR_AT_ADD = 40,
	KR_AT_FREES = 48,
	KR_AT_BATCH = 64,
};

/**
 * struct kr_heap - What a client has of a class.
 * @free: free blocks, the one that was freed first comes first.
 * @first: index of that.
 * @nr: index behind the last.
 * @room: of @free.
 * @next: never used yet, up to @end.
 * @end: end of the chunk.
 * @chunk: chunk that is searched next for blocks that others have freed.
 */
struct kr_heap {
	struct kr_free_block *free;
	uint32_t first, nr, room;
	uint64_t next, end;
	uint32_t chunk;
};

/**
 * struct kr_stats - What a client has done.
 * @searches: look-ups of a key.
 * @search_reads: READs for them.
 * @splits: subtables split.
 * @unknown: atomics of unknown outcome that were resolved.
 * @aborted: tentative slots of others that were made empty.
 * @retries: operations begun again.
 * @collected: blocks that others had freed.
 * @removed: entries deleted without memory for a tomb.
 */
struct kr_stats {
	uint64_t searches, search_reads, splits, unknown, aborted, retries, collected, removed;
};

/**
 * struct kr_client - A client.
 * @t: transport; belongs to the client.
 * @header: of the table, checked.
 * @dir: copy of the trie; words that are not split may be old.
 * @words: results of atomics, in the transport's memory.
 * @combined: two combined buckets, in the transport's memory.
 * @found: a block that was READ, in the transport's memory.
 * @own: a block to be written, in the transport's memory.
 * @found_bytes: room at @found.
 * @own_bytes: room at @own.
 * @work: KR_CHUNK_BYTES of the transport's memory, or NULL so far.
 * @id: as a writer, 0 if it is none yet.
 * @count: identities used.
 * @beat: word of the client.
 * @beat_ms: when it was last changed.
 * @crowded: it found the words of all clients taken.
 * @mine: for each chunk class + 1 if it is this client's, else 0.
 * @heaps: for each class.
 * @pair: next subtables in a chunk of ours.
 * @pair_end: end of that chunk.
 * @frees: blocks that are to be made KR_FREED.
 * @nr_frees: how many.
 * @random: for kr_random().
 * @stats: counters.
 * @no_reread: for tests: leave out the step that makes an insertion safe.
 * @no_mark: for tests: do not make the life of an old block KR_COMMITTED.
 */
struct kr_client {
	struct kr_transport *t;
	struct kr_header header;
	uint64_t *dir;
	uint64_t *words;
	uint64_t *combined;
	struct kr_block *found, *own;
	uint32_t found_bytes, own_bytes;
	uint8_t *work;
	uint32_t id, count;
	uint64_t beat, beat_ms;
	bool crowded;
	uint8_t *mine;
	struct kr_heap heaps[KR_CLASSES];
	uint64_t pair, pair_end;
	uint64_t frees[KR_FREES_MAX][2];
	unsigned int nr_frees;
	uint64_t random;
	struct kr_stats stats;
	bool no_reread, no_mark;
};

/**
 * struct kr_place - Where the table has a key, or could have it.
 * @hash: of the key.
 * @node: leaf of the trie.
 * @table: its subtable.
 * @at: its combined buckets.
 * @slot_at: offset of the slot that has the key; 0 if none has.
 * @slot: its word.
 * @life: of its block, which is in kr_client.found.
 * @frozen: a slot of the buckets is frozen.
 */
struct kr_place {
	uint64_t hash;
	uint32_t node;
	uint64_t table;
	uint64_t at[2];
	uint64_t slot_at, slot, life;
	bool frozen;
};

/** enum kr_mode - What a modification wants. */
enum kr_mode {
	KR_PUT, /* insert or replace */
	KR_INSERT, /* -EEXIST if it is there */
	KR_UPDATE, /* -ENOENT if it is not there */
	KR_DELETE, /* the same */
};

/**
 * kr_client_new() - Attach to a table.
 * @t: transport; closed on failure, too.
 * @ret: client.
 *
 * Return: 0 or negative errno.
 */
int kr_client_new(struct kr_transport *t, struct kr_client **ret);

/** kr_client_free() - End a client, which may be NULL, and its transport. @c: client. */
void kr_client_free(struct kr_client *c);

/**
 * kr_tries() - How often a request is tried that fails so.
 * @status: of a request.
 *
 * Return: the number; 0: it does not help.
 */
unsigned int kr_tries(int status);

/**
 * kr_passing() - Whether the same request may succeed after a failure: the transport connects again.
 * @status: of a request, or of a batch.
 *
 * Return: true if it may.
 */
bool kr_passing(int status);

/** kr_random() - Draw a number. @c: client. Return: it. */
uint64_t kr_random(struct kr_client *c);

/** kr_pause() - Wait a little before another attempt. @c: client. @attempt: which, from 0. */
void kr_pause(struct kr_client *c, unsigned int attempt);

/**
 * kr_room() - See that a buffer holds enough.
 * @c: client.
 * @buffer: it.
 * @room: its size.
 * @bytes: wanted.
 *
 * Return: 0 or -ENOMEM.
 */
int kr_room(struct kr_client *c, struct kr_block **buffer, uint32_t *room, uint32_t bytes);

/** kr_work() - See that kr_client.work is there. @c: client. Return: 0 or -ENOMEM. */
int kr_work(struct kr_client *c);

/**
 * kr_read_work() - READ one piece into kr_client.work.
 * @c: client.
 * @at: where.
 * @bytes: how many, at most KR_CHUNK_BYTES.
 *
 * Return: 0 or negative errno.
 */
int kr_read_work(struct kr_client *c, uint64_t at, uint32_t bytes);

/**
 * kr_reads() - Do a batch of READs, again after a failure that may pass.
 * @c: client.
 * @reqs: they.
 * @nr: they.
 *
 * Return: 0 or negative errno.
 */
int kr_reads(struct kr_client *c, struct kr_req *reqs, unsigned int nr);

/**
 * kr_read() - READ one piece.
 * @c: client.
 * @at: where.
 * @local: to.
 * @bytes: how many.
 *
 * Return: 0 or negative errno.
 */
int kr_read(struct kr_client *c, uint64_t at, void *local, uint32_t bytes);

/**
 * kr_cas() - CAS, again until its outcome is known.
 * @c: client.
 * @at: where.
 * @old: word expected.
 * @new: word to be put there.
 * @ret: what was there before, or what is there now.
 *
 * Return: 1: done; 2: @new is there, and it may be that another client has put it there; 0:
 * another word was there; or negative errno.
 */
int kr_cas(struct kr_client *c, uint64_t at, uint64_t old, uint64_t new, uint64_t *ret);

/**
 * kr_add() - FETCH_ADD, again after a failure that may pass: so what is unknown is added twice, or
 * more often, for numbers of which some may be left out.
 * @c: client.
 * @at: where.
 * @more: what is added.
 * @ret: what was there before.
 *
 * Return: 0 or negative errno.
 */
int kr_add(struct kr_client *c, uint64_t at, uint64_t more, uint64_t *ret);

/**
 * kr_locate() - Find the leaf of a hash in the copy of the trie.
 * @c: client.
 * @p: place with hash.
 */
void kr_locate(const struct kr_client *c, struct kr_place *p);

/**
 * kr_dir_refresh() - READ the word of a node.
 * @c: client.
 * @node: node.
 * @ret_split: whether it is split.
 *
 * Return: 0 or negative errno.
 */
int kr_dir_refresh(struct kr_client *c, uint32_t node, bool *ret_split);

/**
 * kr_buckets() - Fill in the READs of both combined buckets.
 * @c: client.
 * @p: place.
 * @reqs: two.
 */
void kr_buckets(struct kr_client *c, const struct kr_place *p, struct kr_req *reqs);

/**
 * kr_buckets_check() - Judge combined buckets that were READ.
 * @c: client.
 * @p: place; @frozen is set.
 *
 * Return: 0 or -EBADMSG.
 */
int kr_buckets_check(struct kr_client *c, struct kr_place *p);

/**
 * kr_bucket_slot() - A slot of the combined buckets that were READ.
 * @c: client.
 * @p: place.
 * @i: from 0 to KR_SLOTS - 1.
 * @ret_at: its offset.
 *
 * Return: its word; @ret_at is 0 if it is the same slot as an earlier one.
 */
uint64_t kr_bucket_slot(const struct kr_client *c, const struct kr_place *p, unsigned int i,
			uint64_t *ret_at);

#define KR_SLOTS 28

/**
 * kr_find() - Look a key up.
 * @c: client.
 * @key: key.
 * @key_bytes: its length.
 * @p: filled; the block is in kr_client.found.
 *
 * Return: 0, and @slot_at is 0 if it is not there; or negative errno.
 */
int kr_find(struct kr_client *c, const void *key, uint32_t key_bytes, struct kr_place *p);

/**
 * kr_find_block() - READ the block of a slot and judge it.
 * @c: client; the block is in @found.
 * @key: key looked for.
 * @key_bytes: its length.
 * @hash: its hash.
 * @slot: word of the slot, checked.
 *
 * Return: enum kr_verdict, or negative errno.
 */
int kr_find_block(struct kr_client *c, const void *key, uint32_t key_bytes, uint64_t hash,
		  uint64_t slot);

/**
 * kr_modify() - Change an entry.
 * @c: client.
 * @mode: how.
 * @key: key.
 * @key_bytes: its length, 1 to KR_KEY_MAX.
 * @value: value.
 * @value_bytes: its length.
 *
 * A deletion needs no memory: a full memory node can be emptied, but for a subtable whose split was
 * begun and not ended.
 *
 * Return: 0; -EEXIST, -ENOENT: see @mode; -ENOSPC: the memory node is full; -EUSERS: as many clients
 * write as can; -EREMCHG: the network failed, and it is not known whether it was done; other negative
 * errno: it was not done.
 */
int kr_modify(struct kr_client *c, enum kr_mode mode, const void *key, uint32_t key_bytes,
	      const void *value, uint32_t value_bytes);

/**
 * kr_split() - Split the subtable of a leaf, or help whoever does.
 * @c: client.
 * @p: place in it.
 *
 * Return: 0 or negative errno.
 */
int kr_split(struct kr_client *c, const struct kr_place *p);

/**
 * kr_writer() - Be a client that writes, and prove to be alive.
 * @c: client.
 *
 * It may use kr_client.work if it is a writer anew, under another id.
 *
 * Return: 0; -EUSERS: as many write as can; or another negative errno.
 */
int kr_writer(struct kr_client *c);

/**
 * kr_beat() - Change the word of a client that writes, unless that was done within KR_BEAT_MS.
 * @c: client.
 *
 * Whoever takes us for dead sets just this word to 0: as long as it is there, all that we have is
 * ours, for another lease at least.
 *
 * Return: 1; 0: another took us for dead; or negative errno.
 */
int kr_beat(struct kr_client *c);

/** kr_unregister() - End to be a client that writes; what fails is left to reclaim. @c: client. */
void kr_unregister(struct kr_client *c);

/** kr_forget() - What was a client's belongs to whoever reclaims it. @c: client. */
void kr_forget(struct kr_client *c);

/**
 * kr_alloc() - Take a block.
 * @c: client.
 * @class: class.
 * @ret: it.
 *
 * Return: 0; -ENOSPC: all that it has searched is full; or another negative errno.
 */
int kr_alloc(struct kr_client *c, unsigned int class, struct kr_free_block *ret);

/**
 * kr_release() - Give a block back that was never put into the table.
 * @c: client.
 * @class: class.
 * @block: it.
 *
 * Return: 0 or -ENOMEM: it is lost.
 */
int kr_release(struct kr_client *c, unsigned int class, const struct kr_free_block *block);

/**
 * kr_free() - Give a block back that this client has replaced.
 * @c: client.
 * @slot: its word.
 * @life: its identity.
 */
void kr_free(struct kr_client *c, uint64_t slot, uint64_t life);

/**
 * kr_frees() - Fill in requests for what was given back.
 * @c: client.
 * @reqs: room for KR_FREES_MAX.
 *
 * Return: how many.
 */
unsigned int kr_frees(struct kr_client *c, struct kr_req *reqs);

/**
 * kr_alloc_pair() - Take memory for two subtables.
 * @c: client.
 * @ret: offset.
 *
 * Return: 0 or negative errno.
 */
int kr_alloc_pair(struct kr_client *c, uint64_t *ret);

/**
 * kr_give_chunk() - Make a chunk of ours nobody's.
 * @c: client.
 * @chunk: it.
 * @class: of its blocks, or KR_CLASS_SUBTABLES.
 * @room: whether something in it is free, or may be.
 *
 * Return: 0, also if it is another's already; or negative errno.
 */
int kr_give_chunk(struct kr_client *c, uint32_t chunk, unsigned int class, bool room);

/** kr_leave() - Give back all that a client has; what fails is left to reclaim. @c: client. */
void kr_leave(struct kr_client *c);

/** typedef kr_entry_fn - Called for each entry. @arg: caller's. @block: it. Return: 0 to go on. */
typedef int kr_entry_fn(void *arg, const struct kr_block *block);

/**
 * kr_walk() - All entries, in no order.
 * @c: client.
 * @fn: called for each; what it returns ends the walk if it is not 0.
 * @arg: its argument.
 *
 * An entry that is there all the time comes once; one that changes meanwhile may come or not. One
 * that is damaged is passed over; damage of the table itself ends the walk.
 *
 * Return: 0; -EBADMSG: damage of either kind; another negative errno, or what @fn returned.
 */
int kr_walk(struct kr_client *c, kr_entry_fn *fn, void *arg);

/**
 * struct kr_report - What kr_check() found.
 * @subtables: leaves.
 * @depth: of the deepest.
 * @slots: in them.
 * @entries: sound ones.
 * @damaged: slots whose block is not what they say.
 * @tentative: slots of insertions under way, or of dead clients.
 * @tombs: slots of deletions under way, or of dead clients.
 * @chunks_used: chunks that are not free.
 * @clients: words of clients that are not 0.
 * @dead: clients found dead.
 * @reclaimed: blocks freed that they had.
 */
struct kr_report {
	uint64_t subtables, depth, slots, entries, damaged, tentative, tombs, chunks_used, clients,
		dead, reclaimed;
};

/**
 * kr_leaves() - Every subtable in use.
 * @c: client.
 * @fn: called for each with its words as they were READ; ends it if it does not return 0.
 * @arg: its argument.
 *
 * Return: 0, negative errno, or what @fn returned.
 */
int kr_leaves(struct kr_client *c,
	      int (*fn)(struct kr_client *c, uint32_t node, uint64_t table, const uint64_t *words,
			void *arg),
	      void *arg);

/**
 * kr_walk_entry() - READ the block of slot @word of a leaf until both fit.
 * @c: client.
 * @node: it.
 * @table: it.
 * @word: it.
 * @slot: it.
 *
 * Return: KR_HIT: it is in kr_client.found; KR_OTHER: no entry; or negative errno.
 */
int kr_walk_entry(struct kr_client *c, uint32_t node, uint64_t table, uint32_t word, uint64_t slot);

/**
 * kr_check() - READ the whole table and judge it.
 * @c: client.
 * @reclaim: free what dead clients hold; waits for a lease, or two.
 * @report: filled; all zero before.
 *
 * Return: 0 or negative errno.
 */
int kr_check(struct kr_client *c, bool reclaim, struct kr_report *report);

#endif /* KR_CLIENT_H */
