/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkrcore-race: a key-value store in the memory of a node, over the queues of libkrcore.
 *
 * A server registers memory, publishes where it is, and sleeps. Clients search and change the
 * table by one-sided READs, WRITEs and atomics: no process on the server runs for them. All that
 * a new client needs is one look-up of the node and one of the table.
 *
 * Each operation is atomic and takes effect at one moment between its call and its return, for
 * all clients of the table, also while the table grows. A client that dies, at whatever moment,
 * leaves the table sound and nobody waiting. Memory that it held comes back by krcore_race_check().
 * Nothing is kept when the server ends.
 *
 * Threads: a struct krcore_race belongs to one thread at a time; threads that work at once open one
 * each. Errors are negative errno values; krcore_race_strerror() says what they mean here. The
 * library never prints, never exits, and has no threads.
 */
#ifndef KRCORE_RACE_H
#define KRCORE_RACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define KRCORE_RACE_SERVICE 7233 /* service of the table's record if none is given */
#define KRCORE_RACE_KEY_MAX 65536
#define KRCORE_RACE_VALUE_MAX 65536
#define KRCORE_RACE_WRITERS_MAX 4096 /* clients that can write at the same time */

struct krcore_race;
struct krcore_race_server;

/**
 * struct krcore_race_options - Which table to attach to.
 * @size: sizeof(struct krcore_race_options); lets later versions add fields.
 * @server: address, GID or host name of the memory node, as krcore_key_from_text() takes it.
 * @service: service of the table's record; 0 means KRCORE_RACE_SERVICE.
 * @port: RDMA port of this node, as in struct krcore_node_options.
 * @timeout_ms: bound of a look-up; 1 to 60000; 0 means 5000.
 */
struct krcore_race_options {
	size_t size;
	const char *server;
	uint16_t service;
	uint32_t port;
	uint32_t timeout_ms;
};

/**
 * struct krcore_race_server_options - How to serve a table.
 * @size: sizeof(struct krcore_race_server_options); lets later versions add fields.
 * @bytes: memory, at least 1 MiB and at most 64 GiB; it is locked.
 * @service: service of the table's record, from 256; 0 means KRCORE_RACE_SERVICE.
 * @port: RDMA port of this node, as in struct krcore_node_options.
 * @groups: groups of buckets in a subtable, 1 to 256; 0 means 64 (1344 slots), and
 *   up to 256 where @bytes need them.
 * @depth_max: how often a subtable is split at most, 1 to 16; 0 means 14, and up to 16 where
 *   @bytes need them. The table has at most 21 * groups * 2^depth slots.
 * @lease_ms: after so much silence a client that writes may be taken for dead, 1000 to
 *	3600000; 0 means 30000.
 */
struct krcore_race_server_options {
	size_t size;
	uint64_t bytes;
	uint16_t service;
	uint32_t port;
	uint32_t groups;
	uint32_t depth_max;
	uint32_t lease_ms;
};

/**
 * struct krcore_race_stats - What a client has done so far.
 * @size: sizeof(struct krcore_race_stats), set by the caller; lets later versions add fields.
 * @searches: look-ups of a key, those of changes included.
 * @search_reads: READs for them.
 * @splits: subtables split by this client.
 * @unknown: requests that reported -EREMCHG or the like and were resolved by reading.
 * @retries: attempts after which it had to look again.
 * @connect_reads: READs of a MetaServer that connecting took: for the table and for its node; 0 if
 *	this node knew both.
 */
struct krcore_race_stats {
	size_t size;
	uint64_t searches;
	uint64_t search_reads;
	uint64_t splits;
	uint64_t unknown;
	uint64_t retries;
	uint64_t connect_reads;
};

/* krcore_race_check() flags */
#define KRCORE_RACE_RECLAIM 0x1 /* take back what dead clients hold */

/**
 * struct krcore_race_report - What krcore_race_check() found.
 * @size: sizeof(struct krcore_race_report), set by the caller; lets later versions add fields.
 * @subtables: leaves of the trie.
 * @depth: of the deepest.
 * @slots: in them.
 * @entries: slots with an entry; all their blocks are sound.
 * @damaged: slots whose block is not what the slot says.
 * @tentative: slots of insertions that have not ended, or never will.
 * @tombs: slots of deletions that have not been tidied up.
 * @chunks: pieces of memory (256 KiB) there are.
 * @chunks_used: of which clients have taken so many.
 * @clients: clients that write.
 * @dead: of which so many were found dead (KRCORE_RACE_RECLAIM).
 * @reclaimed: blocks that they held and that can be used again.
 */
struct krcore_race_report {
	size_t size;
	uint64_t subtables;
	uint64_t depth;
	uint64_t slots;
	uint64_t entries;
	uint64_t damaged;
	uint64_t tentative;
	uint64_t tombs;
	uint64_t chunks;
	uint64_t chunks_used;
	uint64_t clients;
	uint64_t dead;
	uint64_t reclaimed;
};

/**
 * krcore_race_open() - Attach to a table.
 * @opts: which.
 * @ret_race: client; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option is out of its range.
 * * %-ENOENT - there is no such node or table, or the kernel module is not loaded.
 * * %-EPROTO - the record or the memory is not that of a table.
 * * %-EPROTONOSUPPORT - the table has another version.
 * * %-EBADMSG - the table is damaged.
 * * %-ENOMEM - no memory, or RLIMIT_MEMLOCK.
 * * others as krcore_start() returns them.
 */
int krcore_race_open(const struct krcore_race_options *opts, struct krcore_race **ret_race);

/**
 * krcore_race_close() - Detach, and free the client.
 * @race: client or NULL.
 */
void krcore_race_close(struct krcore_race *race);

/**
 * krcore_race_get() - Look a key up.
 * @race: client.
 * @key: key.
 * @key_bytes: its length, 1 to KRCORE_RACE_KEY_MAX.
 * @value: where the value goes.
 * @room: bytes there.
 * @ret_bytes: length of the value; also set with -ENOBUFS.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - there is no such key.
 * * %-ENOBUFS - the value is longer than @room; @value is untouched.
 * * %-EINVAL - the length of the key is out of its range.
 * * %-EBADMSG - the table is damaged.
 * * %-EBUSY - it changed all the time.
 * * %-ENOMEM - no memory.
 * * others as krcore_wc.status, krcore_post() and krcore_queue_connect() return them: the memory
 *   node cannot be reached, or (%-EBADR) does not have this table any more.
 */
int krcore_race_get(struct krcore_race *race, const void *key, size_t key_bytes, void *value,
		    size_t room, size_t *ret_bytes);

/**
 * krcore_race_put() - Insert an entry, or replace its value.
 * @race: client.
 * @key: key.
 * @key_bytes: its length, 1 to KRCORE_RACE_KEY_MAX.
 * @value: value.
 * @value_bytes: its length, 0 to KRCORE_RACE_VALUE_MAX.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - a length is out of its range.
 * * %-ENOSPC - the memory node is full, as far as a search of 256 chunks tells, or has no room for
 *   another client that writes, or the table cannot be split any more (@depth_max).
 * * %-EUSERS - KRCORE_RACE_WRITERS_MAX clients write already, killed ones among them until
 *   krcore_race_check() reclaims; it was not done.
 * * %-EREMCHG - the memory node cannot be reached any more: it was done or not.
 * * %-EBADMSG, %-EBUSY, %-ENOMEM, others - as krcore_race_get(): it was not done.
 */
int krcore_race_put(struct krcore_race *race, const void *key, size_t key_bytes, const void *value,
		    size_t value_bytes);

/**
 * krcore_race_insert() - Insert an entry that is not there.
 * @race: client.
 * @key: key.
 * @key_bytes: its length.
 * @value: value.
 * @value_bytes: its length.
 *
 * Return: as krcore_race_put(), or
 * * %-EEXIST - the key is there; nothing was changed.
 */
int krcore_race_insert(struct krcore_race *race, const void *key, size_t key_bytes,
		       const void *value, size_t value_bytes);

/**
 * krcore_race_update() - Replace the value of an entry that is there.
 * @race: client.
 * @key: key.
 * @key_bytes: its length.
 * @value: value.
 * @value_bytes: its length.
 *
 * Return: as krcore_race_put(), or
 * * %-ENOENT - there is no such key; nothing was changed.
 */
int krcore_race_update(struct krcore_race *race, const void *key, size_t key_bytes,
		       const void *value, size_t value_bytes);

/**
 * krcore_race_del() - Delete an entry.
 * @race: client.
 * @key: key.
 * @key_bytes: its length.
 *
 * Needs no memory of the node, but for an entry in a part of the table that another client has begun
 * to split, and does not end soon, for instance because it has died. The memory goes back to the client
 * whose it is.
 *
 * Return: as krcore_race_put(), or
 * * %-ENOENT - there is no such key; nothing was changed.
 * * %-EREMCHG - also: the network failed while the memory node was full: it was done or not.
 */
int krcore_race_del(struct krcore_race *race, const void *key, size_t key_bytes);

/**
 * typedef krcore_race_entry_fn - Called for each entry.
 * @arg: caller's.
 * @key: key.
 * @key_bytes: its length.
 * @value: value.
 * @value_bytes: its length.
 *
 * Must not use the client that is scanning.
 * Return: 0 to go on; any other number ends the scan, which returns it.
 */
typedef int krcore_race_entry_fn(void *arg, const void *key, size_t key_bytes, const void *value,
				 size_t value_bytes);

/**
 * krcore_race_scan() - All entries, in no order.
 * @race: client.
 * @fn: called for each.
 * @arg: its argument.
 *
 * It is no snapshot: entries that change meanwhile may be missed, or come as they were or are. A
 * damaged entry is passed over, and told by %-EBADMSG at the end; where the table itself is damaged
 * the scan ends at once with that.
 *
 * Return: 0; what @fn returned; or as krcore_race_get().
 */
int krcore_race_scan(struct krcore_race *race, krcore_race_entry_fn *fn, void *arg);

/**
 * krcore_race_check() - READ the whole table and judge it.
 * @race: client.
 * @flags: KRCORE_RACE_RECLAIM or 0.
 * @ret_report: filled; @size must be set. Untouched on failure.
 *
 * With KRCORE_RACE_RECLAIM it takes a lease of the table and a second; if dead clients held memory
 * as long again, but 76 seconds at least, so that nothing they have posted is under way any more.
 * It becomes a client that writes, then. A client that has stood still for all of that time, its
 * process stopped or the virtual machine that it is in, and goes on afterwards, can damage entries:
 * end such clients before.
 *
 * Return:
 * * 0 - done; the report says what was found.
 * * %-EINVAL - unknown flags, or @size is 0.
 * * %-EUSERS - to reclaim: as krcore_race_put().
 * * others as krcore_race_get().
 */
int krcore_race_check(struct krcore_race *race, uint32_t flags,
		      struct krcore_race_report *ret_report);

/**
 * krcore_race_stats() - What a client has done so far.
 * @race: client.
 * @ret_stats: filled; @size must be set.
 */
void krcore_race_stats(const struct krcore_race *race, struct krcore_race_stats *ret_stats);

/**
 * krcore_race_strerror() - What an error of this library means.
 * @err: negative errno.
 *
 * Return: text, without a full stop; never NULL.
 */
const char *krcore_race_strerror(int err);

/**
 * krcore_race_serve() - Make an empty table and publish it.
 * @opts: how.
 * @ret_server: server; untouched on failure. It needs no processor any more.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option is out of its range.
 * * %-ENOSPC - so few bytes do not hold a table of such groups and depth.
 * * %-ENOMEM - no memory, or RLIMIT_MEMLOCK.
 * * %-E2BIG - more memory than a region of this device has: 1 GiB on one without DC.
 * * others as krcore_node_open(), krcore_mr_reg() and krcore_publish() return them.
 */
int krcore_race_serve(const struct krcore_race_server_options *opts,
		      struct krcore_race_server **ret_server);

/**
 * krcore_race_server_close() - Withdraw a table, and free it.
 * @server: server or NULL.
 */
void krcore_race_server_close(struct krcore_race_server *server);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* KRCORE_RACE_H */
