// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The writer's side of the table: see table.h, and proto/krp_table.h for what
 * readers rely on.
 *
 * The records live only in the buckets that readers READ; beside them the
 * writer keeps a cookie a record and a few bytes a page. A change that does
 * not fit its bucket is planned first (struct ms_plan: which pages, with which
 * seeds), then given all memory it needs, and only then carried out, in steps
 * that cannot fail.
 *
 * Every reader knows the salt, so a client can choose keys that no seed and no depth can
 * separate. Such keys must not keep others out, nor make the directory large: its depth is
 * bounded by the number of records, and records that then find no place are kept aside
 * (aside.h). A page that has such records says so in all its buckets. A plan is carried out
 * only if it brings more records into buckets than are there, so it needs no memory aside.
 *
 * Locking: one thread, see table.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "metaserver/plan.h"
#include "metaserver/table.h"
#include "proto/krp_lookup.h"

/* A page is merged with its buddy when both together hold at most this many records. */
#define MS_MERGE_RECORDS (KRP_PAGE_RECORDS / 2)
#define MS_CROWDED 1 /* no plan brings more records into buckets */

/* What the writer knows of a page. */
struct ms_page {
	__u64 cookie[KRP_PAGE_BUCKETS][KRP_BUCKET_RECORDS];
	__u32 prefix;
	union {
		__u32 next_free; /* of a page that is not live */
		__u32 aside; /* of one that is: ring of its records aside */
	};
	__u16 seed;
	__u8 depth;
	__u8 count;
	bool live;
};

struct ms_segment {
	struct krp_bucket *buckets;
	struct ms_page *pages;
};

struct ms_table {
	struct ms_table_config config;
	const struct ms_table_ops *ops;
	void *arg;
	bool announce; /* false while ms_table_new() runs */
	struct ms_dir dir; /* the current one; the others wait for ms_table_free() */
	unsigned int depth;
	struct ms_dir old_dirs[KRP_DEPTH_MAX + 2];
	unsigned int old_dirs_nr;
	struct ms_segment *segments;
	unsigned int segments_nr;
	__u32 pages_nr; /* pages ever used */
	__u32 free_page; /* head of the list of pages given up */
	__u32 seq;
	struct ms_asides asides;
	struct ms_table_stats stats;
};

static size_t ms_segment_bytes(const struct ms_table *t)
{
	return (size_t)KRP_PAGE_BYTES << t->config.log2_segment_pages;
}

static struct ms_page *ms_page_get(const struct ms_table *t, __u32 page)
{
	unsigned int log2 = t->config.log2_segment_pages;

	return &t->segments[page >> log2].pages[page & ((1U << log2) - 1)];
}

static struct krp_bucket *ms_bucket_get(const struct ms_table *t, __u32 page, unsigned int index)
{
	unsigned int log2 = t->config.log2_segment_pages;
	size_t nr = (size_t)(page & ((1U << log2) - 1)) * KRP_PAGE_BUCKETS + index;

	return &t->segments[page >> log2].buckets[nr];
}

static __u32 ms_page_of_hash(const struct ms_table *t, __u64 hash)
{
	return krp_le32_to_cpu(t->dir.entries[krp_hash_prefix(hash, t->depth)].page);
}

/* ---- writing what readers see ---- */

/*
 * Readers may sample the bytes in any order while they are stored; whole
 * 64-bit stores and the sum are all that is promised.
 */
static void ms_store_words(void *to, const void *from, size_t bytes)
{
	const __u64 *src = from;
	__u64 *dst = to;
	size_t i;

	for (i = 0; i < bytes / sizeof(*dst); i++)
		__atomic_store_n(&dst[i], src[i], __ATOMIC_RELAXED);
}

/*
 * Order what was stored before whatever follows: another bucket, a directory
 * entry, an ack.
 */
static void ms_store_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void ms_store(void *to, const void *from, size_t bytes)
{
	ms_store_words(to, from, bytes);
	ms_store_fence();
}

static void ms_bucket_write(struct ms_table *t, __u32 page, unsigned int index,
			    struct krp_bucket *b)
{
	b->incarnation = krp_cpu_to_le64(t->config.incarnation);
	b->index = (__u8)index;
	b->seq = krp_cpu_to_le32(++t->seq);
	b->sum = krp_cpu_to_le64(krp_bucket_sum(b, t->config.incarnation, page, index));
	ms_store(ms_bucket_get(t, page, index), b, sizeof(*b));
	t->stats.bucket_writes++;
}

static void ms_dir_store(struct krp_dir_entry *to, const struct krp_dir_entry *e)
{
	ms_store(to, e, sizeof(*e));
}

static void ms_bucket_place(struct krp_bucket *b, unsigned int at, const struct krp_key *key,
			    const struct krp_value *value)
{
	memcpy(b->gid[at], key->gid, KRP_GID_BYTES);
	b->service[at] = key->service;
	b->value[at] = *value;
}

static __u8 ms_page_flags(const struct ms_page *p)
{
	return p->aside == MS_ASIDE_NIL ? 0 : KRP_BUCKET_CROWDED;
}

/* The ring of a page has got its first record, or has lost its last one. */
static void ms_page_mark(struct ms_table *t, __u32 page)
{
	unsigned int i;

	for (i = 0; i < KRP_PAGE_BUCKETS; i++) {
		struct krp_bucket b = *ms_bucket_get(t, page, i);

		b.flags = ms_page_flags(ms_page_get(t, page));
		ms_bucket_write(t, page, i, &b);
	}
}

static void ms_page_write(struct ms_table *t, const struct ms_leaf *leaf)
{
	struct krp_bucket buckets[KRP_PAGE_BUCKETS] = { 0 };
	struct ms_page *p = ms_page_get(t, leaf->page);
	unsigned int i, at;

	p->live = true;
	p->prefix = leaf->prefix;
	p->depth = leaf->depth;
	p->seed = leaf->seed;
	p->count = (__u8)leaf->nr;
	p->aside = leaf->aside;
	for (i = 0; i < leaf->nr; i++) {
		const struct ms_record *r = &leaf->records[i];
		unsigned int index = krp_bucket_index(r->hash, leaf->seed);

		at = buckets[index].count++;
		ms_bucket_place(&buckets[index], at, &r->key, &r->value);
		p->cookie[index][at] = r->cookie;
	}
	for (i = 0; i < KRP_PAGE_BUCKETS; i++) {
		buckets[i].state = KRP_STATE_LIVE;
		buckets[i].flags = ms_page_flags(p);
		buckets[i].prefix = krp_cpu_to_le32(leaf->prefix);
		buckets[i].depth = leaf->depth;
		buckets[i].seed = krp_cpu_to_le16(leaf->seed);
		ms_bucket_write(t, leaf->page, i, &buckets[i]);
	}
}

static void ms_page_release(struct ms_table *t, __u32 page)
{
	ms_page_get(t, page)->next_free = t->free_page;
	t->free_page = page;
	t->stats.pages_free++;
}

/* After this no reader accepts a bucket of the page, and it may be used again. */
static void ms_page_poison(struct ms_table *t, __u32 page)
{
	unsigned int i;

	for (i = 0; i < KRP_PAGE_BUCKETS; i++) {
		struct krp_bucket b = { .state = KRP_STATE_FREE };

		ms_bucket_write(t, page, i, &b);
	}
	ms_page_get(t, page)->live = false;
	t->stats.pages_used--;
	ms_page_release(t, page);
}

/* ---- memory ---- */

static void *ms_memory_get(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int ms_segment_grow(struct ms_table *t)
{
	struct ms_segment *seg = &t->segments[t->segments_nr];
	size_t bytes = ms_segment_bytes(t);
	size_t pages = (size_t)1 << t->config.log2_segment_pages;
	int err;

	if (t->segments_nr == t->config.segments_max)
		return -ENOSPC;
	if (!seg->buckets) { /* else left from a try that the owner refused */
		seg->buckets = ms_memory_get(bytes);
		if (!seg->buckets)
			return -ENOMEM;
		t->stats.shared_bytes += bytes;
	}
	if (!seg->pages) {
		seg->pages = calloc(pages, sizeof(*seg->pages));
		if (!seg->pages)
			return -ENOMEM;
		t->stats.private_bytes += pages * sizeof(*seg->pages);
	}
	err = t->announce ? t->ops->segment_add(t->arg, t->segments_nr, seg->buckets, bytes) : 0;
	if (err < 0)
		return err;
	t->segments_nr++;
	t->stats.pages_free += pages;
	if (t->announce)
		t->ops->root_changed(t->arg);
	return 0;
}

static int ms_page_alloc(struct ms_table *t, __u32 *ret_page)
{
	int err;

	if (t->free_page != MS_NO_PAGE) {
		*ret_page = t->free_page;
		t->free_page = ms_page_get(t, t->free_page)->next_free;
		t->stats.pages_free--;
		return 0;
	}
	if (t->pages_nr == (__u64)t->segments_nr << t->config.log2_segment_pages) {
		err = ms_segment_grow(t);
		if (err < 0)
			return err;
	}
	*ret_page = t->pages_nr++;
	t->stats.pages_free--;
	return 0;
}

static int ms_dir_grow(struct ms_table *t, unsigned int depth, struct ms_dir *ret_dir)
{
	struct ms_dir dir = { .bytes = sizeof(*dir.entries) << depth };
	int err;

	dir.entries = ms_memory_get(dir.bytes);
	if (!dir.entries)
		return -ENOMEM;
	err = t->announce ? t->ops->dir_add(t->arg, dir.entries, dir.bytes) : 0;
	if (err < 0) {
		munmap(dir.entries, dir.bytes);
		return err;
	}
	t->stats.shared_bytes += dir.bytes;
	*ret_dir = dir;
	return 0;
}

/* ---- plans ---- */

static void ms_plan_gather(const struct ms_table *t, struct ms_plan *plan, __u32 page)
{
	const struct ms_page *p = ms_page_get(t, page);
	unsigned int i, at;

	for (i = 0; i < KRP_PAGE_BUCKETS; i++) {
		const struct krp_bucket *b = ms_bucket_get(t, page, i);

		for (at = 0; at < b->count; at++) {
			struct ms_record *r = &plan->records[plan->records_nr++];

			memcpy(r->key.gid, b->gid[at], KRP_GID_BYTES);
			r->key.service = b->service[at];
			r->value = b->value[at];
			r->cookie = p->cookie[i][at];
			r->hash = krp_key_hash(&r->key, t->config.salt);
		}
	}
	plan->old_pages[plan->old_pages_nr++] = page;
}

/* Add some records aside of the page to the plan: they may find a place now. */
static void ms_plan_gather_asides(const struct ms_table *t, struct ms_plan *plan, __u32 page)
{
	__u32 head = ms_page_get(t, page)->aside, nr = head;

	if (nr == MS_ASIDE_NIL)
		return;
	do {
		if (plan->records_nr == MS_PLAN_RECORDS_MAX || plan->asides_nr == KRP_PAGE_RECORDS)
			return;
		plan->asides[plan->asides_nr++] = nr;
		plan->records[plan->records_nr++] = t->asides.entries[nr].record;
		nr = t->asides.entries[nr].next;
	} while (nr != head);
}

/* Get all memory a plan needs. On failure the pages taken go back. */
static int ms_plan_reserve(struct ms_table *t, struct ms_plan *plan)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < plan->leaves_nr && !err; i++)
		err = ms_page_alloc(t, &plan->leaves[i].page);
	if (!err && plan->depth > t->depth)
		err = ms_dir_grow(t, plan->depth, &plan->grown);
	for (i = 0; err && i < plan->leaves_nr; i++)
		if (plan->leaves[i].page != MS_NO_PAGE)
			ms_page_release(t, plan->leaves[i].page);
	return err;
}

static void ms_leaf_publish(struct krp_dir_entry *entries, unsigned int depth,
			    const struct ms_leaf *leaf)
{
	struct krp_dir_entry e = { .page = krp_cpu_to_le32(leaf->page),
				   .seed = krp_cpu_to_le16(leaf->seed),
				   .depth = leaf->depth };
	__u64 run = 1ULL << (depth - leaf->depth);
	__u64 from = leaf->prefix * run;
	__u64 i;

	for (i = 0; i < run; i++)
		ms_dir_store(&entries[from + i], &e);
}

/*
 * Make a grown directory the current one, and only then mark the old one as moved. Its entries
 * need no order among themselves, so one fence behind all of them does: each is one word, of
 * which a reader finds what it was or KRP_DIR_MOVED, and what it was is a hint like any other.
 * The fence is for what comes next, the old pages that are given up and the ack.
 */
static void ms_dir_switch(struct ms_table *t, struct ms_plan *plan)
{
	struct ms_dir old = t->dir;
	__u64 entries = old.bytes / sizeof(*old.entries);
	struct krp_dir_entry moved;
	__u64 i;

	t->stats.doublings += plan->depth - t->depth;
	t->dir = plan->grown;
	t->depth = plan->depth;
	t->ops->root_changed(t->arg);
	memset(&moved, 0xff, sizeof(moved)); /* KRP_DIR_MOVED */
	for (i = 0; i < entries; i++)
		ms_store_words(&old.entries[i], &moved, sizeof(moved));
	ms_store_fence();
	t->old_dirs[t->old_dirs_nr++] = old;
}

static struct ms_leaf *ms_plan_leaf_of(struct ms_plan *plan, __u64 hash)
{
	unsigned int i;

	for (i = 0; i < plan->leaves_nr - 1; i++)
		if (krp_hash_prefix(hash, plan->leaves[i].depth) == plan->leaves[i].prefix)
			break;
	return &plan->leaves[i];
}

/* A record is aside that was not. */
static void ms_table_crowded(struct ms_table *t, const struct krp_key *key)
{
	t->stats.crowded++;
	if (t->ops->crowded)
		t->ops->crowded(t->arg, key);
}

/* Those of a page to be that find no room there, and are not aside yet. */
static void ms_leaf_tell_crowded(struct ms_table *t, const struct ms_leaf *leaf)
{
	unsigned int i;

	for (i = 0; i < leaf->spare; i++) {
		const struct krp_key *key = &leaf->records[leaf->nr + i].key;

		if (ms_asides_find(&t->asides, key) == MS_ASIDE_NIL)
			ms_table_crowded(t, key);
	}
}

/*
 * Move the records aside of the old page to the new ones. No memory is needed: no more
 * records are aside than before, see ms_page_rebuild().
 */
static void ms_plan_hand_asides(struct ms_table *t, struct ms_plan *plan)
{
	__u32 *ring = &ms_page_get(t, plan->old_pages[0])->aside;
	unsigned int i, j;

	for (i = 0; i < plan->leaves_nr; i++)
		ms_leaf_tell_crowded(t, &plan->leaves[i]);
	for (i = 0; i < plan->asides_nr; i++)
		ms_asides_del(&t->asides, ring, plan->asides[i]);
	if (plan->leaves_nr == 1) {
		plan->leaves[0].aside = *ring;
		*ring = MS_ASIDE_NIL;
	}
	while (*ring != MS_ASIDE_NIL) {
		__u64 hash = t->asides.entries[*ring].record.hash;

		ms_asides_move(&t->asides, ring, &ms_plan_leaf_of(plan, hash)->aside, *ring);
	}
	for (i = 0; i < plan->leaves_nr; i++) {
		struct ms_leaf *leaf = &plan->leaves[i];

		for (j = 0; j < leaf->spare; j++)
			ms_asides_add(&t->asides, &leaf->aside, &leaf->records[leaf->nr + j]);
	}
}

/* Steps in the order proto/krp_table.h demands; none can fail. */
static void ms_plan_commit(struct ms_table *t, struct ms_plan *plan)
{
	unsigned int i;

	ms_plan_hand_asides(t, plan);
	for (i = 0; i < plan->leaves_nr; i++)
		ms_page_write(t, &plan->leaves[i]);
	t->stats.pages_used += plan->leaves_nr;

	if (plan->grown.entries) {
		krp_dir_expand(plan->grown.entries, plan->depth, t->dir.entries, t->depth);
		for (i = 0; i < plan->leaves_nr; i++)
			ms_leaf_publish(plan->grown.entries, plan->depth, &plan->leaves[i]);
		ms_dir_switch(t, plan);
	} else {
		for (i = 0; i < plan->leaves_nr; i++)
			ms_leaf_publish(t->dir.entries, t->depth, &plan->leaves[i]);
	}
	for (i = 0; i < plan->old_pages_nr; i++)
		ms_page_poison(t, plan->old_pages[i]);
}

static int ms_plan_run(struct ms_table *t, struct ms_plan *plan)
{
	int err = ms_plan_reserve(t, plan);
	if (err < 0)
		return err;
	ms_plan_commit(t, plan);
	return 0;
}

/*
 * How deep a page may be: the directory grows to one entry a record at most. So keys that
 * were not chosen to collide find no place only if some twenty share a prefix that one or
 * two share on average.
 */
static unsigned int ms_depth_limit(const struct ms_table *t, __u64 records)
{
	unsigned int limit = records ? 63U - (unsigned int)__builtin_clzll(records) : 0;

	if (limit < t->depth)
		limit = t->depth;
	return limit < t->config.depth_max ? limit : t->config.depth_max;
}

/*
 * The record does not fit the page, or some that are aside may fit: rebuild the page
 * under another seed, or split it.
 * Return: 0, MS_CROWDED: that does not help, or a negative errno. The record may be aside.
 */
static int ms_page_rebuild(struct ms_table *t, __u32 page, const struct ms_record *record)
{
	struct ms_page *p = ms_page_get(t, page);
	unsigned int spare, leaves;
	struct ms_plan plan;
	int err;

	ms_plan_init(&plan, ms_depth_limit(t, t->stats.records + !!record));
	ms_plan_gather(t, &plan, page);
	if (record)
		plan.records[plan.records_nr++] = *record;
	ms_plan_gather_asides(t, &plan, page);
	spare = ms_plan_place(&plan, p->prefix, p->depth);
	if (plan.records_nr - spare <= p->count) {
		if (plan.asides_nr) /* next time the others are tried */
			p->aside = t->asides.entries[plan.asides[plan.asides_nr - 1]].next;
		t->stats.fruitless++;
		return MS_CROWDED;
	}
	leaves = plan.leaves_nr;
	err = ms_plan_run(t, &plan);
	if (err < 0)
		return err;
	if (leaves == 1)
		t->stats.reseeds++;
	else
		t->stats.splits += leaves - 1;
	return 0;
}

/* Join a page with its buddy if both have become nearly empty. Failure does no harm. */
static void ms_page_underflow(struct ms_table *t, __u32 page)
{
	const struct ms_page *p = ms_page_get(t, page), *buddy;
	struct ms_plan plan;
	__u32 other;

	if (!p->depth || p->count > MS_MERGE_RECORDS)
		return;
	other = krp_le32_to_cpu(
		t->dir.entries[(__u64)(p->prefix ^ 1) << (t->depth - p->depth)].page);
	buddy = ms_page_get(t, other);
	if (buddy->depth != p->depth || p->count + buddy->count > MS_MERGE_RECORDS ||
	    buddy->aside != MS_ASIDE_NIL)
		return;
	ms_plan_init(&plan, p->depth - 1U);
	ms_plan_gather(t, &plan, page);
	ms_plan_gather(t, &plan, other);
	if (!ms_plan_place(&plan, p->prefix >> 1, p->depth - 1U) && !ms_plan_run(t, &plan))
		t->stats.merges++;
}

/* No bucket has room for the record. */
static int ms_page_put_aside(struct ms_table *t, __u32 page, const struct ms_record *record)
{
	struct ms_page *p = ms_page_get(t, page);
	bool first = p->aside == MS_ASIDE_NIL;
	int err = ms_asides_reserve(&t->asides, &record->key);

	if (err < 0)
		return err;
	ms_asides_add(&t->asides, &p->aside, record);
	if (first)
		ms_page_mark(t, page);
	return 0;
}

/* ---- interface of table.h ---- */

static int ms_table_first_page(struct ms_table *t)
{
	struct ms_leaf leaf = { .aside = MS_ASIDE_NIL };
	int err;

	err = ms_page_alloc(t, &leaf.page);
	if (err < 0)
		return err;
	err = ms_dir_grow(t, 0, &t->dir);
	if (err < 0)
		return err;
	ms_page_write(t, &leaf);
	t->stats.pages_used++;
	ms_leaf_publish(t->dir.entries, 0, &leaf);
	t->announce = true;
	return 0;
}

int ms_table_new(const struct ms_table_config *config, const struct ms_table_ops *ops, void *arg,
		 struct ms_table **ret_table)
{
	struct ms_table *t;
	int err;

	if (!config->incarnation || !config->log2_segment_pages ||
	    config->log2_segment_pages > KRP_LOG2_SEGMENT_PAGES_MAX || !config->segments_max ||
	    config->segments_max > KRP_SEGMENTS_MAX || config->depth_max > KRP_DEPTH_MAX)
		return -EINVAL;

	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->ops = ops;
	t->arg = arg;
	t->free_page = MS_NO_PAGE;
	ms_asides_init(&t->asides, config->asides_max, config->secret);
	t->stats.private_bytes = sizeof(*t) + config->segments_max * sizeof(*t->segments);
	t->segments = calloc(config->segments_max, sizeof(*t->segments));
	if (!t->segments) {
		err = -ENOMEM;
		goto err_free;
	}
	err = ms_table_first_page(t);
	if (err < 0)
		goto err_free;
	*ret_table = t;
	return 0;

err_free:
	ms_table_free(t);
	return err;
}

void ms_table_free(struct ms_table *t)
{
	unsigned int i;

	if (!t)
		return;
	for (i = 0; t->segments && i < t->config.segments_max && t->segments[i].buckets; i++) {
		munmap(t->segments[i].buckets, ms_segment_bytes(t));
		free(t->segments[i].pages);
	}
	for (i = 0; i < t->old_dirs_nr; i++)
		munmap(t->old_dirs[i].entries, t->old_dirs[i].bytes);
	if (t->dir.entries)
		munmap(t->dir.entries, t->dir.bytes);
	ms_asides_free(&t->asides);
	free(t->segments);
	free(t);
}

/* Where a key is: page, bucket, position; position -1 if it is not there, but may be aside. */
struct ms_place {
	__u64 hash;
	__u32 page;
	unsigned int index;
	int at;
	struct ms_aside *aside;
};

static void ms_table_locate(const struct ms_table *t, const struct krp_key *key,
			    struct ms_place *ret)
{
	ret->hash = krp_key_hash(key, t->config.salt);
	ret->page = ms_page_of_hash(t, ret->hash);
	ret->index = krp_bucket_index(ret->hash, ms_page_get(t, ret->page)->seed);
	ret->at = krp_bucket_find(ms_bucket_get(t, ret->page, ret->index), key);
	ret->aside = NULL;
	if (ret->at < 0 && ms_page_get(t, ret->page)->aside != MS_ASIDE_NIL) {
		__u32 nr = ms_asides_find(&t->asides, key);

		if (nr != MS_ASIDE_NIL)
			ret->aside = &t->asides.entries[nr];
	}
}

/* What belongs to a key that is there. */
static __u64 *ms_place_cookie(const struct ms_table *t, const struct ms_place *at)
{
	return at->aside ? &at->aside->record.cookie
			 : &ms_page_get(t, at->page)->cookie[at->index][at->at];
}

/* The key's bucket is full. */
static int ms_table_put_full(struct ms_table *t, __u32 page, const struct ms_record *record)
{
	int err = ms_page_rebuild(t, page, record);

	if (err == MS_CROWDED) {
		err = ms_page_put_aside(t, page, record);
		if (!err)
			ms_table_crowded(t, &record->key);
	}
	if (err < 0)
		return err;
	t->stats.records++;
	return 0;
}

/* The key is aside. Try to find a place for it, since the table may have grown. */
static void ms_table_replace_aside(struct ms_table *t, const struct ms_place *at,
				   const struct krp_value *value, __u64 cookie)
{
	at->aside->record.value = *value;
	at->aside->record.cookie = cookie;
	ms_page_rebuild(t, at->page, NULL); /* failure does no harm */
}

int ms_table_put(struct ms_table *t, const struct krp_key *key, const struct krp_value *value,
		 __u64 cookie)
{
	struct ms_record record;
	struct krp_bucket b;
	struct ms_place at;
	struct ms_page *p;
	bool replaced;

	ms_table_locate(t, key, &at);
	if (at.aside) {
		ms_table_replace_aside(t, &at, value, cookie);
		return 1;
	}
	p = ms_page_get(t, at.page);
	b = *ms_bucket_get(t, at.page, at.index);
	replaced = at.at >= 0;
	if (!replaced && b.count == KRP_BUCKET_RECORDS) {
		record = (struct ms_record){
			.key = *key, .value = *value, .cookie = cookie, .hash = at.hash
		};
		return ms_table_put_full(t, at.page, &record);
	}
	if (!replaced) {
		at.at = b.count++;
		p->count++;
		t->stats.records++;
	}
	ms_bucket_place(&b, (unsigned int)at.at, key, value);
	p->cookie[at.index][at.at] = cookie;
	ms_bucket_write(t, at.page, at.index, &b);
	return replaced;
}

int ms_table_get(const struct ms_table *t, const struct krp_key *key, struct krp_value *ret_value,
		 __u64 *ret_cookie)
{
	struct ms_place at;

	ms_table_locate(t, key, &at);
	if (at.at < 0 && !at.aside)
		return -ENOENT;
	if (ret_value)
		*ret_value = at.aside ? at.aside->record.value
				      : ms_bucket_get(t, at.page, at.index)->value[at.at];
	if (ret_cookie)
		*ret_cookie = *ms_place_cookie(t, &at);
	return 0;
}

int ms_table_set_cookie(struct ms_table *t, const struct krp_key *key, __u64 cookie)
{
	struct ms_place at;

	ms_table_locate(t, key, &at);
	if (at.at < 0 && !at.aside)
		return -ENOENT;
	*ms_place_cookie(t, &at) = cookie;
	return 0;
}

static void ms_table_del_aside(struct ms_table *t, const struct ms_place *at)
{
	__u32 *ring = &ms_page_get(t, at->page)->aside;

	ms_asides_del(&t->asides, ring, (__u32)(at->aside - t->asides.entries));
	t->stats.records--;
	if (*ring != MS_ASIDE_NIL)
		return;
	ms_page_mark(t, at->page);
	ms_page_underflow(t, at->page);
}

int ms_table_del(struct ms_table *t, const struct krp_key *key)
{
	static const struct krp_key no_key;
	static const struct krp_value no_value;
	struct krp_bucket b;
	struct ms_place at;
	struct ms_page *p;
	unsigned int last;

	ms_table_locate(t, key, &at);
	if (at.aside) {
		ms_table_del_aside(t, &at);
		return 0;
	}
	if (at.at < 0)
		return -ENOENT;
	p = ms_page_get(t, at.page);
	b = *ms_bucket_get(t, at.page, at.index);
	last = --b.count;
	if ((unsigned int)at.at != last) {
		memcpy(b.gid[at.at], b.gid[last], KRP_GID_BYTES);
		b.service[at.at] = b.service[last];
		b.value[at.at] = b.value[last];
		p->cookie[at.index][at.at] = p->cookie[at.index][last];
	}
	ms_bucket_place(&b, last, &no_key, &no_value);
	ms_bucket_write(t, at.page, at.index, &b);
	p->count--;
	t->stats.records--;
	if (p->aside == MS_ASIDE_NIL)
		ms_page_underflow(t, at.page);
	else
		ms_page_rebuild(t, at.page, NULL); /* failure does no harm */
	return 0;
}

/* Visit the records aside of a page. Return: whether to go on. */
static bool ms_page_each_aside(const struct ms_table *t, const struct ms_page *p,
			       ms_table_visit_fn *visit, void *arg)
{
	bool go_on = true;
	__u32 nr = p->aside;

	if (nr == MS_ASIDE_NIL)
		return true;
	do {
		const struct ms_record *r = &t->asides.entries[nr].record;

		go_on &= visit(arg, &r->key, &r->value, r->cookie);
		nr = t->asides.entries[nr].next;
	} while (nr != p->aside);
	return go_on;
}

unsigned int ms_table_each(const struct ms_table *t, unsigned int from_page,
			   ms_table_visit_fn *visit, void *arg)
{
	unsigned int i, at;
	bool go_on = true;
	__u32 page;

	for (page = from_page; page < t->pages_nr && go_on; page++) {
		const struct ms_page *p = ms_page_get(t, page);

		for (i = 0; p->live && i < KRP_PAGE_BUCKETS; i++) {
			const struct krp_bucket *b = ms_bucket_get(t, page, i);

			for (at = 0; at < b->count; at++) {
				struct krp_key key = { .service = b->service[at] };

				memcpy(key.gid, b->gid[at], KRP_GID_BYTES);
				go_on &= visit(arg, &key, &b->value[at], p->cookie[i][at]);
			}
		}
		if (p->live)
			go_on &= ms_page_each_aside(t, p, visit, arg);
	}
	return page < t->pages_nr ? page : 0;
}

void ms_table_geometry(const struct ms_table *t, struct ms_table_geometry *ret_geo)
{
	*ret_geo = (struct ms_table_geometry){ .dir = t->dir.entries,
					       .dir_bytes = t->dir.bytes,
					       .depth = t->depth,
					       .segments_nr = t->segments_nr };
}

void *ms_table_segment(const struct ms_table *t, unsigned int nr, size_t *ret_bytes)
{
	*ret_bytes = ms_segment_bytes(t);
	return t->segments[nr].buckets;
}

const struct ms_table_config *ms_table_config(const struct ms_table *t)
{
	return &t->config;
}

void ms_table_stats(const struct ms_table *t, struct ms_table_stats *ret_stats)
{
	*ret_stats = t->stats;
	ret_stats->aside = t->asides.nr;
	ret_stats->private_bytes += ms_asides_bytes(&t->asides);
}

__u64 ms_table_fruitless(const struct ms_table *t)
{
	return t->stats.fruitless;
}

void ms_table_fill_root(const struct ms_table *t, struct krp_root *root)
{
	memset(root, 0, sizeof(*root));
	root->magic = krp_cpu_to_le64(KRP_ROOT_MAGIC);
	root->version = krp_cpu_to_le16(KRP_TABLE_VERSION);
	root->bytes = krp_cpu_to_le16(sizeof(*root));
	root->log2_segment_pages = (__u8)t->config.log2_segment_pages;
	root->depth = (__u8)t->depth;
	root->incarnation = krp_cpu_to_le64(t->config.incarnation);
	root->salt = krp_cpu_to_le64(t->config.salt);
	root->dir_addr = krp_cpu_to_le64((__u64)(uintptr_t)t->dir.entries);
	root->segments_nr = krp_cpu_to_le32(t->segments_nr);
	root->records = krp_cpu_to_le64(t->stats.records);
}
