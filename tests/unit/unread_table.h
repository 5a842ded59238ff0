/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations of a table that nobody reads, for tests of what is above it. No
 * threads.
 */
#ifndef UNREAD_TABLE_H
#define UNREAD_TABLE_H

#include <errno.h>
#include <stdbool.h>

#include "metaserver/table.h"

/**
 * struct ut_memory - The argument of the operations; NULL does as well.
 * @refuse_segments: no segment but the first can be had.
 */
struct ut_memory {
	bool refuse_segments;
};

/**
 * ut_segment_add() - ms_table_ops.segment_add: register nothing.
 * @arg: struct ut_memory or NULL.
 * @nr: number of the segment.
 * @addr: not used.
 * @bytes: not used.
 *
 * Return: 0; -EIO for all but the first, if they are to be refused.
 */
static inline int ut_segment_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	const struct ut_memory *memory = arg;

	(void)addr;
	(void)bytes;
	return nr && memory && memory->refuse_segments ? -EIO : 0;
}

/**
 * ut_dir_add() - ms_table_ops.dir_add: register nothing.
 * @arg: not used.
 * @addr: not used.
 * @bytes: not used.
 *
 * Return: 0.
 */
static inline int ut_dir_add(void *arg, void *addr, size_t bytes)
{
	(void)arg;
	(void)addr;
	(void)bytes;
	return 0;
}

/**
 * ut_root_changed() - ms_table_ops.root_changed: nobody is told.
 * @arg: not used.
 */
static inline void ut_root_changed(void *arg)
{
	(void)arg;
}

static const struct ms_table_ops ut_table_ops = { .segment_add = ut_segment_add,
						  .dir_add = ut_dir_add,
						  .root_changed = ut_root_changed };

#endif /* UNREAD_TABLE_H */
