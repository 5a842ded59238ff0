/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Placement of the records of a page, or of two: in which pages, with which seeds.
 *
 * Pure: the table (table.c) gathers the records, and carries the plan out.
 */
#ifndef MS_PLAN_H
#define MS_PLAN_H

#include <stddef.h>

#include "metaserver/aside.h"

#define MS_PLAN_PAGES_MAX 64
#define MS_PLAN_RECORDS_MAX (2 * KRP_PAGE_RECORDS)
#define MS_NO_PAGE 0xffffffffU

/**
 * struct ms_dir - Memory of a directory.
 * @entries: entries.
 * @bytes: their size.
 */
struct ms_dir {
	struct krp_dir_entry *entries;
	size_t bytes;
};

/**
 * struct ms_leaf - A page to be made: records that share a prefix.
 * @records: first of a run.
 * @nr: how many of them find a place in the page.
 * @spare: how many find none; they follow those.
 * @aside: ring of records kept aside that the plan did not consider.
 * @prefix: of all.
 * @page: page, or MS_NO_PAGE.
 * @seed: seed of the page.
 * @depth: bits of @prefix.
 */
struct ms_leaf {
	struct ms_record *records;
	unsigned int nr;
	unsigned int spare;
	__u32 aside;
	__u32 prefix;
	__u32 page;
	__u16 seed;
	__u8 depth;
};

/**
 * struct ms_plan - A planned change of pages.
 * @records: all records.
 * @records_nr: how many.
 * @asides: those of the records that are kept aside.
 * @asides_nr: how many.
 * @leaves: pages to be.
 * @leaves_nr: how many.
 * @limit: depth that no leaf exceeds.
 * @depth: of the deepest leaf.
 * @old_pages: pages whose records these are.
 * @old_pages_nr: how many.
 * @grown: new directory, if one is needed.
 */
struct ms_plan {
	struct ms_record records[MS_PLAN_RECORDS_MAX];
	unsigned int records_nr;
	__u32 asides[KRP_PAGE_RECORDS];
	unsigned int asides_nr;
	struct ms_leaf leaves[MS_PLAN_PAGES_MAX];
	unsigned int leaves_nr;
	unsigned int limit;
	unsigned int depth;
	__u32 old_pages[2];
	unsigned int old_pages_nr;
	struct ms_dir grown;
};

/** ms_plan_init() - A plan without records. @plan: set up. @limit: depth of a leaf at most. */
void ms_plan_init(struct ms_plan *plan, unsigned int limit);

/**
 * ms_plan_place() - Find pages for the records of a plan.
 * @plan: with its records; gets its leaves.
 * @prefix: that all share.
 * @depth: bits of it.
 *
 * Return: how many records find no place.
 */
unsigned int ms_plan_place(struct ms_plan *plan, __u32 prefix, unsigned int depth);

#endif /* MS_PLAN_H */
