// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading a whole table and verifying every bucket.
 *
 * The walk has its own copy of the directory and goes through it in order, in
 * batches of pages. If a page contradicts its entry, the entry is READ again. If
 * the entry has changed, the page was split or rebuilt meanwhile; since entries are
 * in the order of the hash, going on behind the range that was really covered misses
 * nothing. If the entry is the same and the page still contradicts it, the table is
 * corrupt.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/lib/bulk.h"
#include "client/lib/out.h"

#define KRL_WALK_TRIES 32
#define KRL_WALK_END (1ULL << KRP_DEPTH_MAX)

/**
 * struct krl_walk - A walk in progress.
 * @bulk: its READs.
 * @map: the walk's own map.
 * @loads: how often the map was READ.
 * @pages: a batch of pages.
 * @fn: called for each record.
 * @arg: its first argument.
 * @check: outcome so far.
 */
struct krl_walk {
	struct krl_bulk bulk;
	struct krl_map *map;
	unsigned int loads;
	uint8_t *pages;
	krcore_record_fn *fn;
	void *arg;
	struct krcore_check check;
};

/* READ root, segments and directory again. */
static int krl_walk_load(struct krl_walk *w)
{
	struct krl_map *map;
	int err = krl_bulk_map(&w->bulk, w->pages, &map);

	if (err)
		return err;
	krl_map_free(w->map);
	w->map = map;
	w->check.depth = map->map.depth;
	w->loads++;
	return 0;
}

static bool krl_walk_entry_sane(const struct krl_walk *w, const struct krp_dir_entry *e)
{
	const struct krp_map *map = &w->map->map;

	return e->depth <= map->depth && !e->rsvd &&
	       krp_le32_to_cpu(e->page) >> map->log2_segment_pages < map->segments_nr;
}

/*
 * Positions of the walk are counted in entries of the deepest directory possible,
 * so that they stay valid when the directory changes its depth.
 */
static uint64_t krl_walk_index(const struct krl_walk *w, uint64_t pos)
{
	return pos >> (KRP_DEPTH_MAX - w->map->map.depth);
}

static const struct krp_dir_entry *krl_walk_at(const struct krl_walk *w, uint64_t pos)
{
	return &w->map->map.dir[krl_walk_index(w, pos)];
}

/* The first position behind the range that the page of an entry covers. */
static uint64_t krl_walk_behind(const struct krl_walk *w, uint64_t pos)
{
	uint64_t span = 1ULL << (KRP_DEPTH_MAX - krl_walk_at(w, pos)->depth);

	return (pos & ~(span - 1)) + span;
}

/* Where to go on after a page that was READ again; its entry may be invalid. */
static uint64_t krl_walk_skip(const struct krl_walk *w, uint64_t pos)
{
	if (krl_walk_entry_sane(w, krl_walk_at(w, pos)))
		return krl_walk_behind(w, pos);
	return pos + (1ULL << (KRP_DEPTH_MAX - w->map->map.depth));
}

static void krl_walk_page_read(const struct krl_walk *w, uint64_t pos, unsigned int bucket,
			       uint32_t bytes, struct krp_read *ret_read)
{
	const struct krp_map *map = &w->map->map;
	uint32_t page = krp_le32_to_cpu(krl_walk_at(w, pos)->page);
	const struct krp_segment *seg = &map->segments[page >> map->log2_segment_pages];

	page &= (1U << map->log2_segment_pages) - 1;
	ret_read->addr = krp_le64_to_cpu(seg->addr) + (uint64_t)page * KRP_PAGE_BYTES +
			 (uint64_t)bucket * KRP_BUCKET_BYTES;
	ret_read->rkey = krp_le32_to_cpu(seg->rkey);
	ret_read->bytes = bytes;
}

/* Is this bucket, whose sum is right, the one that the directory entry names? */
static bool krl_walk_promised(const struct krl_walk *w, uint64_t pos, const struct krp_bucket *b,
			      unsigned int index)
{
	const struct krp_dir_entry *e = krl_walk_at(w, pos);

	return b->state == KRP_STATE_LIVE && b->index == index && b->depth == e->depth &&
	       b->seed == e->seed && krp_le64_to_cpu(b->incarnation) == w->bulk.incarnation &&
	       krp_le32_to_cpu(b->prefix) == pos >> (KRP_DEPTH_MAX - e->depth);
}

/* READ one bucket again until it is whole. Return: 1 whole, 0 not, or -ENOTCONN. */
static int krl_walk_whole(struct krl_walk *w, uint64_t pos, unsigned int index,
			  struct krp_bucket *b)
{
	uint32_t page = krp_le32_to_cpu(krl_walk_at(w, pos)->page);
	struct krp_read read;
	unsigned int tries;
	int err;

	for (tries = 0; !krp_bucket_whole(b, w->bulk.incarnation, page, index); tries++) {
		if (tries == KRL_WALK_TRIES)
			return 0;
		w->check.torn++;
		krl_walk_page_read(w, pos, index, KRP_BUCKET_BYTES, &read);
		err = krl_bulk_read(&w->bulk, &read, 1, b);
		if (err)
			return err;
	}
	return 1;
}

enum krl_page {
	KRL_PAGE_GOOD,
	KRL_PAGE_UNPROVED,
	KRL_PAGE_OTHER
};

/* Return: enum krl_page, or -ENOTCONN. */
static int krl_walk_judge(struct krl_walk *w, uint64_t pos, struct krp_bucket *buckets)
{
	unsigned int i;
	int whole;

	for (i = 0; i < KRP_PAGE_BUCKETS; i++) {
		whole = krl_walk_whole(w, pos, i, &buckets[i]);
		if (whole < 0)
			return whole;
		if (!whole)
			return KRL_PAGE_UNPROVED;
		if (!krp_bucket_sane(&buckets[i]) || !krl_walk_promised(w, pos, &buckets[i], i))
			return KRL_PAGE_OTHER;
	}
	return KRL_PAGE_GOOD;
}

/* Show the records of a good page. Return: 0, or -ECANCELED. */
static int krl_walk_show(struct krl_walk *w, const struct krp_bucket *buckets)
{
	struct krcore_value value;
	struct krcore_key key;
	unsigned int i, j;

	w->check.pages++;
	w->check.buckets += KRP_PAGE_BUCKETS;
	w->check.crowded += !!(buckets[0].flags & KRP_BUCKET_CROWDED); /* as in all of a page */
	for (i = 0; i < KRP_PAGE_BUCKETS; i++)
		for (j = 0; j < buckets[i].count; j++) {
			struct krp_key wire = { .service = buckets[i].service[j] };
			uint64_t hash;

			memcpy(wire.gid, buckets[i].gid[j], sizeof(wire.gid));
			hash = krp_key_hash(&wire, w->map->map.salt);
			if (krp_hash_prefix(hash, buckets[i].depth) !=
				    krp_le32_to_cpu(buckets[i].prefix) ||
			    krp_bucket_index(hash, krp_le16_to_cpu(buckets[i].seed)) != i ||
			    krl_value_from_wire(&buckets[i].value[j], &value)) {
				w->check.bad++;
				continue;
			}
			w->check.records++;
			kru_key_from_wire(&wire, &key);
			if (w->fn && !w->fn(w->arg, &key, &value))
				return -ECANCELED;
		}
	return 0;
}

/*
 * READ an entry again.
 * Return: 1 it has changed or the whole map was READ anew, 0 not, or an errno.
 */
static int krl_walk_entry(struct krl_walk *w, uint64_t pos)
{
	struct krp_map *map = &w->map->map;
	uint64_t at = krl_walk_index(w, pos);
	struct krp_read read = { map->dir_addr + at * sizeof(struct krp_dir_entry), map->dir_rkey,
				 sizeof(struct krp_dir_entry) };
	struct krp_dir_entry e;
	int err;

	err = krl_bulk_read(&w->bulk, &read, 1, &e);
	if (err)
		return err;
	if (krp_dir_entry_moved(&e) || !krl_walk_entry_sane(w, &e)) {
		err = krl_walk_load(w);
		return err ? err : 1;
	}
	if (memcmp(&e, &map->dir[at], sizeof(e)) == 0)
		return 0;
	map->dir[at] = e;
	return 1;
}

/*
 * A page contradicts its entry: READ entry and page again until they agree, or until
 * the entry does not change while the page still contradicts it.
 */
static int krl_walk_again(struct krl_walk *w, uint64_t pos, struct krp_bucket *buckets)
{
	unsigned int tries, same = 0;
	int page = KRL_PAGE_OTHER, changed, err;
	struct krp_read read;

	w->check.moved++;
	for (tries = 0; tries < 8 * KRL_WALK_TRIES && same < KRL_WALK_TRIES; tries++) {
		changed = krl_walk_entry(w, pos);
		if (changed < 0)
			return changed;
		same = changed ? 0 : same + 1;
		if (!krl_walk_entry_sane(w, krl_walk_at(w, pos)))
			continue;
		krl_walk_page_read(w, pos, 0, KRP_PAGE_BYTES, &read);
		err = krl_bulk_read(&w->bulk, &read, 1, buckets);
		if (err)
			return err;
		page = krl_walk_judge(w, pos, buckets);
		if (page < 0)
			return page;
		if (page == KRL_PAGE_GOOD)
			return krl_walk_show(w, buckets);
	}
	if (page == KRL_PAGE_OTHER)
		w->check.directory_errors++;
	else
		w->check.bad++;
	return 0;
}

/* Collect the next pages and READ them in one batch. Return: how many, or an errno. */
static int krl_walk_batch(struct krl_walk *w, uint64_t pos, uint64_t *places)
{
	struct krp_read reads[KRL_WALK_PAGES];
	unsigned int nr = 0;
	int err;

	while (pos < KRL_WALK_END && nr < KRL_WALK_PAGES &&
	       krl_walk_entry_sane(w, krl_walk_at(w, pos))) {
		places[nr] = pos;
		krl_walk_page_read(w, pos, 0, KRP_PAGE_BYTES, &reads[nr++]);
		pos = krl_walk_behind(w, pos);
	}
	if (!nr)
		return 0;
	err = krl_bulk_read(&w->bulk, reads, nr, w->pages);
	return err ? err : (int)nr;
}

/*
 * All entries of a page's range must be equal. One that was changed meanwhile is no
 * error: its page was seen as it was before.
 */
static int krl_walk_range(struct krl_walk *w, uint64_t pos, uint64_t end)
{
	struct krp_dir_entry first = *krl_walk_at(w, pos);

	while (pos < end) {
		if (memcmp(krl_walk_at(w, pos), &first, sizeof(first)) != 0) {
			int changed = krl_walk_entry(w, pos);

			if (changed)
				return changed < 0 ? changed : 0;
			w->check.directory_errors++;
		}
		pos += 1ULL << (KRP_DEPTH_MAX - w->map->map.depth);
	}
	return 0;
}

/*
 * One page of a batch. @ret_pos: where to go on.
 * Return: 1 it was what its entry said, 0 not, or a negative errno.
 */
static int krl_walk_page(struct krl_walk *w, uint64_t pos, struct krp_bucket *buckets,
			 uint64_t *ret_pos)
{
	int err, page = krl_walk_judge(w, pos, buckets);

	if (page < 0)
		return page;
	if (page != KRL_PAGE_GOOD) {
		err = krl_walk_again(w, pos, buckets);
		*ret_pos = krl_walk_skip(w, pos);
		return err;
	}
	*ret_pos = krl_walk_behind(w, pos);
	err = krl_walk_show(w, buckets);
	if (!err)
		err = krl_walk_range(w, pos, *ret_pos);
	return err ? err : 1;
}

/* An entry that is invalid: READ it again, and count an error if it still is. */
static int krl_walk_senseless(struct krl_walk *w, uint64_t *pos)
{
	int err = krl_walk_again(w, *pos, (struct krp_bucket *)w->pages);

	*pos = krl_walk_skip(w, *pos);
	return err;
}

static int krl_walk_all(struct krl_walk *w)
{
	uint64_t places[KRL_WALK_PAGES], pos = 0;
	int i, nr, good;

	while (pos < KRL_WALK_END) {
		unsigned int loads = w->loads;

		nr = krl_walk_batch(w, pos, places);
		if (!nr)
			nr = krl_walk_senseless(w, &pos);
		if (nr < 0)
			return nr;
		for (i = 0, good = 1; i < nr && good && loads == w->loads; i++) {
			void *page = w->pages + (size_t)i * KRP_PAGE_BYTES;

			good = krl_walk_page(w, places[i], page, &pos);
			if (good < 0)
				return good;
		}
	}
	return 0;
}

int krcore_walk(struct krcore_ctx *ctx, unsigned int server, krcore_record_fn *fn, void *arg,
		struct krcore_check *ret_check)
{
	struct krl_walk w = { .fn = fn, .arg = arg };
	int err = KRL_CHECK_CHECK(ret_check);

	if (err)
		return err;
	if (!krl_is_direct(ctx, "reading a whole table"))
		return -EOPNOTSUPP;
	if (server >= ctx->servers_nr)
		return krl_error(-EINVAL, "there is no server %u, only %u", server,
				 ctx->servers_nr);
	w.pages = malloc(KRL_BOUNCE_BYTES);
	if (!w.pages)
		return krl_error(-ENOMEM, "no memory");
	err = krl_bulk_begin(&w.bulk, &ctx->servers[server]);
	if (!err)
		err = krl_walk_load(&w);
	if (!err)
		err = krl_walk_all(&w);
	krl_map_free(w.map);
	free(w.pages);
	w.check.bytes = w.bulk.bytes;
	if (!err)
		krl_out_fill(ret_check, &w.check, sizeof(w.check));
	switch (err) {
	case 0:
		return 0;
	case -ECANCELED:
		return krl_error_const(err, "the walk was ended by its caller");
	case -ENOMEM:
		return krl_error_const(err, "no memory");
	default:
		return krl_error(-ENOTCONN, "%s is not attached, or broke on the way",
				 w.bulk.srv->ep->text);
	}
}
