// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Placement of records in pages: see plan.h.
 */
#include <stdbool.h>
#include <string.h>

#include "metaserver/plan.h"

#define MS_SEED_TRIES_CROWDED 64 /* if some record finds no place with any seed */

void ms_plan_init(struct ms_plan *plan, unsigned int limit)
{
	plan->records_nr = 0;
	plan->asides_nr = 0;
	plan->leaves_nr = 0;
	plan->limit = limit;
	plan->depth = 0;
	plan->old_pages_nr = 0;
	plan->grown = (struct ms_dir){ 0 };
}

static bool ms_seed_fits(const struct ms_record *records, unsigned int nr, __u16 seed)
{
	__u8 count[KRP_PAGE_BUCKETS] = { 0 };
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (++count[krp_bucket_index(records[i].hash, seed)] > KRP_BUCKET_RECORDS)
			return false;
	return true;
}

static bool ms_seed_find(const struct ms_record *records, unsigned int nr, __u16 *ret_seed)
{
	unsigned int seed;

	if (nr > KRP_PAGE_RECORDS)
		return false;
	for (seed = 0; seed < KRP_SEED_TRIES; seed++) {
		if (ms_seed_fits(records, nr, (__u16)seed)) {
			*ret_seed = (__u16)seed;
			return true;
		}
	}
	return false;
}

/* How many records find no place in a page of that seed. */
static unsigned int ms_seed_spare(const struct ms_record *records, unsigned int nr, __u16 seed)
{
	__u8 count[KRP_PAGE_BUCKETS] = { 0 };
	unsigned int i, spare = 0;

	for (i = 0; i < nr; i++)
		spare += ++count[krp_bucket_index(records[i].hash, seed)] > KRP_BUCKET_RECORDS;
	return spare;
}

/* The best of some seeds. Return: how many records find no place. */
static unsigned int ms_seed_best(const struct ms_record *records, unsigned int nr, __u16 *ret_seed)
{
	unsigned int seed, spare, best = nr + 1;

	for (seed = 0; seed < MS_SEED_TRIES_CROWDED; seed++) {
		spare = ms_seed_spare(records, nr, (__u16)seed);
		if (spare < best) {
			best = spare;
			*ret_seed = (__u16)seed;
		}
	}
	return best;
}

/* Take a record forward to `to`; those between keep their order. */
static void ms_record_forward(struct ms_record *records, unsigned int from, unsigned int to)
{
	struct ms_record tmp = records[from];

	memmove(&records[to + 1], &records[to], (from - to) * sizeof(*records));
	records[to] = tmp;
}

static void ms_records_sort(struct ms_record *records, unsigned int nr)
{
	unsigned int i, to;

	for (i = 1; i < nr; i++) {
		for (to = i; to && records[to - 1].order > records[i].order;)
			to--;
		ms_record_forward(records, i, to);
	}
}

/*
 * Move the records that find no place behind the others. Where there is not room for all, the
 * records that were gathered first keep it: those that have a place already.
 */
static void ms_records_spare(struct ms_record *records, unsigned int nr, __u16 seed)
{
	__u8 count[KRP_PAGE_BUCKETS] = { 0 };
	unsigned int i, kept = 0;

	ms_records_sort(records, nr);
	for (i = 0; i < nr; i++) {
		unsigned int index = krp_bucket_index(records[i].hash, seed);

		if (count[index] < KRP_BUCKET_RECORDS) {
			count[index]++;
			ms_record_forward(records, i, kept++);
		}
	}
}

/* Sort records by one bit of their hash. Return: how many have it clear; they come first. */
static unsigned int ms_records_part(struct ms_record *records, unsigned int nr, unsigned int bit)
{
	unsigned int lo = 0, i;

	for (i = 0; i < nr; i++)
		if (!(records[i].hash >> bit & 1))
			ms_record_forward(records, i, lo++);
	return lo;
}

/* What one page can hold of some records. */
struct ms_fit {
	unsigned int spare; /* how many find no room */
	__u16 seed; /* with this one */
};

static struct ms_fit ms_fit_find(const struct ms_record *records, unsigned int nr)
{
	struct ms_fit fit = { 0 };

	if (!ms_seed_find(records, nr, &fit.seed))
		fit.spare = ms_seed_best(records, nr, &fit.seed);
	return fit;
}

/* Return: how many find no room, or MS_PLAN_RECORDS_MAX + 1: that would be too many pages. */
static unsigned int ms_plan_leaf(struct ms_plan *plan, struct ms_record *records, unsigned int nr,
				 const struct ms_fit *fit, __u32 prefix, unsigned int depth)
{
	if (plan->leaves_nr == MS_PLAN_PAGES_MAX)
		return MS_PLAN_RECORDS_MAX + 1;
	plan->leaves[plan->leaves_nr++] = (struct ms_leaf){ .records = records,
							    .nr = nr - fit->spare,
							    .spare = fit->spare,
							    .aside = MS_ASIDE_NIL,
							    .prefix = prefix,
							    .page = MS_NO_PAGE,
							    .seed = fit->seed,
							    .depth = (__u8)depth };
	return fit->spare;
}

/*
 * Find pages for the records of one prefix: one page if some seed serves, else
 * the pages of both halves. An empty half gets a page too: every directory
 * entry must lead to a bucket that proves the miss. Halves that hold no
 * more records than one page are not worth their pages.
 *
 * Recursion is bounded by plan.limit. @known: what one page can hold of them, if that has
 * been found out already: a bit that all records share parts none. Return: how many find no
 * room.
 */
static unsigned int ms_plan_records(struct ms_plan *plan, struct ms_record *records,
				    unsigned int nr, const struct ms_fit *known, __u32 prefix,
				    unsigned int depth)
{
	struct ms_fit fit = known ? *known : ms_fit_find(records, nr);
	unsigned int first = plan->leaves_nr, lo, both;

	if (fit.spare && depth < plan->limit) {
		lo = ms_records_part(records, nr, 63 - depth);
		both = ms_plan_records(plan, records, lo, lo == nr ? &fit : NULL, prefix << 1,
				       depth + 1);
		both += ms_plan_records(plan, records + lo, nr - lo, lo ? NULL : &fit,
					prefix << 1 | 1, depth + 1);
		if (both < fit.spare)
			return both;
		plan->leaves_nr = first;
	}
	if (fit.spare)
		ms_records_spare(records, nr, fit.seed);
	return ms_plan_leaf(plan, records, nr, &fit, prefix, depth);
}

unsigned int ms_plan_place(struct ms_plan *plan, __u32 prefix, unsigned int depth)
{
	unsigned int i, spare;

	for (i = 0; i < plan->records_nr; i++)
		plan->records[i].order = (__u8)i;
	spare = ms_plan_records(plan, plan->records, plan->records_nr, NULL, prefix, depth);
	for (i = 0; i < plan->leaves_nr; i++)
		if (plan->depth < plan->leaves[i].depth)
			plan->depth = plan->leaves[i].depth;
	return spare;
}
