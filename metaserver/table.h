/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The writer's side of the table that proto/krp_table.h describes.
 *
 * Owns the memory of segments and directories and decides where each record
 * lies. It knows nothing of RDMA, owners or leases: the callbacks of struct
 * ms_table_ops make its memory reachable, and each record carries a 64-bit cookie
 * for the caller.
 *
 * Locking: none. One thread calls all functions; only READs of a NIC, or of a test
 * that simulates one, access the memory concurrently.
 *
 * A change that fails leaves the table as it was.
 */
#ifndef MS_TABLE_H
#define MS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/krp_table.h"

struct ms_table;

/**
 * struct ms_table_ops - Callbacks of the table, about its memory.
 * @segment_add: a segment was allocated: make it reachable and enter it into
 *	the arrays of struct krp_segment that readers see. Called before any
 *	directory entry names one of its pages. Return 0, or a negative errno,
 *	which makes the change fail.
 * @dir_add: memory for a new directory was allocated: make it reachable.
 *	ms_table_geometry() still gives the old one. Return as above.
 * @root_changed: depth, directory or number of segments has changed: rewrite
 *	the roots. After this the table no longer uses the old directory.
 * @crowded: a record was put aside, since too many keys share its hash; NULL if
 *	not wanted. It must not change the table.
 *
 * Memory once announced stays allocated until ms_table_free(), unless the
 * operation failed: it must leave nothing behind then, and may be called again
 * with the same memory. None is called from ms_table_new(): what the table
 * begins with is returned by ms_table_geometry() and ms_table_segment().
 */
struct ms_table_ops {
	int (*segment_add)(void *arg, unsigned int nr, void *addr, size_t bytes);
	int (*dir_add)(void *arg, void *addr, size_t bytes);
	void (*root_changed)(void *arg);
	void (*crowded)(void *arg, const struct krp_key *key);
};

/**
 * struct ms_table_config - Bounds of a table.
 * @incarnation: of the server, not zero.
 * @salt: seed of the hash of keys.
 * @log2_segment_pages: pages of a segment, 1 to KRP_LOG2_SEGMENT_PAGES_MAX.
 * @segments_max: segments at most, 1 to KRP_SEGMENTS_MAX: bounds the memory.
 * @depth_max: depth of the directory at most, 0 to KRP_DEPTH_MAX. It has at most as many
 *	entries as there are records besides.
 * @asides_max: records kept aside at most.
 * @secret: seed of what finds the records kept aside; readers must not know it.
 */
struct ms_table_config {
	__u64 incarnation;
	__u64 salt;
	unsigned int log2_segment_pages;
	unsigned int segments_max;
	unsigned int depth_max;
	__u32 asides_max;
	__u64 secret;
};

/**
 * struct ms_table_geometry - Geometry of the table, for the root.
 * @dir: the directory.
 * @dir_bytes: its size.
 * @depth: log2 of its entries.
 * @segments_nr: segments in use.
 */
struct ms_table_geometry {
	void *dir;
	size_t dir_bytes;
	unsigned int depth;
	unsigned int segments_nr;
};

/**
 * struct ms_table_stats - Counters and sizes, all since ms_table_new().
 * @records: records now.
 * @aside: of these, records kept aside.
 * @crowded: times that a record was put aside.
 * @fruitless: plans of a crowded page that brought no more records into buckets.
 * @pages_used: pages that hold records now.
 * @pages_free: pages of the segments that hold none.
 * @bucket_writes: buckets written.
 * @reseeds: pages rebuilt under a new seed.
 * @splits: pages split in two.
 * @merges: pairs of pages joined.
 * @doublings: doublings of the directory.
 * @shared_bytes: memory that readers can reach: segments and directories.
 * @private_bytes: the writer's own book-keeping.
 */
struct ms_table_stats {
	__u64 records;
	__u64 aside;
	__u64 crowded;
	__u64 fruitless;
	__u64 pages_used;
	__u64 pages_free;
	__u64 bucket_writes;
	__u64 reseeds;
	__u64 splits;
	__u64 merges;
	__u64 doublings;
	__u64 shared_bytes;
	__u64 private_bytes;
};

/**
 * ms_table_new() - Make an empty table: one segment, a directory of one entry.
 * @config: bounds; copied.
 * @ops: callbacks for what is added later; must outlive the table.
 * @arg: first argument of @ops.
 * @ret_table: the table; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - a bound is out of its range.
 * * %-ENOMEM - no memory.
 */
int ms_table_new(const struct ms_table_config *config, const struct ms_table_ops *ops, void *arg,
		 struct ms_table **ret_table);

/**
 * ms_table_free() - Free all memory.
 * @t: table or NULL. Its memory must not be reachable for any reader any more.
 */
void ms_table_free(struct ms_table *t);

/**
 * ms_table_put() - Insert or replace a record.
 * @t: table.
 * @key: name.
 * @value: value, copied as it is; krp_value_valid() is the caller's business.
 * @cookie: caller's, kept beside the record, invisible to readers.
 *
 * When it returns, every READ that starts later sees the record, or a crowded bucket: then
 * only ms_table_get() can tell.
 *
 * Return:
 * * 0 - inserted.
 * * 1 - replaced; the old cookie is gone.
 * * %-ENOSPC - segments_max is reached, or asides_max.
 * * %-ENOMEM - no memory.
 * * what segment_add() or dir_add() returned.
 */
int ms_table_put(struct ms_table *t, const struct krp_key *key, const struct krp_value *value,
		 __u64 cookie);

/**
 * ms_table_get() - Find a record.
 * @t: table.
 * @key: name.
 * @ret_value: its value, or NULL; untouched on failure.
 * @ret_cookie: its cookie, or NULL; untouched on failure.
 *
 * Return: 0, or -ENOENT.
 */
int ms_table_get(const struct ms_table *t, const struct krp_key *key, struct krp_value *ret_value,
		 __u64 *ret_cookie);

/**
 * ms_table_set_cookie() - Change the cookie of a record; readers see nothing.
 * @t: table.
 * @key: name.
 * @cookie: new cookie.
 *
 * Return: 0, or -ENOENT.
 */
int ms_table_set_cookie(struct ms_table *t, const struct krp_key *key, __u64 cookie);

/**
 * ms_table_del() - Take a record out.
 * @t: table.
 * @key: name.
 *
 * When it returns, no READ that starts later finds the record.
 *
 * Return: 0, or -ENOENT.
 */
int ms_table_del(struct ms_table *t, const struct krp_key *key);

/**
 * typedef ms_table_visit_fn - Called for a record.
 * @arg: as given to ms_table_each().
 * @key: name.
 * @value: value.
 * @cookie: cookie.
 *
 * It must not change the table.
 *
 * Return: true to go on, false to stop after the records of this page.
 */
typedef bool ms_table_visit_fn(void *arg, const struct krp_key *key, const struct krp_value *value,
			       __u64 cookie);

/**
 * ms_table_each() - Visit every record once, in no order.
 * @t: table.
 * @from_page: page to begin with; 0 for all. For visits in pieces.
 * @visit: function.
 * @arg: its first argument.
 *
 * Return: the page to go on from if @visit stopped, or 0 at the end.
 */
unsigned int ms_table_each(const struct ms_table *t, unsigned int from_page,
			   ms_table_visit_fn *visit, void *arg);

/** ms_table_geometry() - Current geometry, for the root. @t: table. @ret_geo: filled. */
void ms_table_geometry(const struct ms_table *t, struct ms_table_geometry *ret_geo);

/**
 * ms_table_segment() - Where a segment is.
 * @t: table.
 * @nr: less than geometry.segments_nr, or, inside segment_add(), the number of the new one.
 * @ret_bytes: its size.
 *
 * Return: its address.
 */
void *ms_table_segment(const struct ms_table *t, unsigned int nr, size_t *ret_bytes);

/** ms_table_config() - The bounds. @t: table. Return: the table's own copy. */
const struct ms_table_config *ms_table_config(const struct ms_table *t);

/** ms_table_stats() - Counters and sizes. @t: table. @ret_stats: filled. */
void ms_table_stats(const struct ms_table *t, struct ms_table_stats *ret_stats);

/** ms_table_fruitless() - The counter of that name. @t: table. Return: it. */
__u64 ms_table_fruitless(const struct ms_table *t);

/**
 * ms_table_fill_root() - Write the fields of a root that do not differ by device.
 * @t: table.
 * @root: all but rkeys, addresses of device memory, epoch and sum are filled.
 */
void ms_table_fill_root(const struct ms_table *t, struct krp_root *root);

#endif /* MS_TABLE_H */
