// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader in front of a hostile server: krp_lookup.h driven with any bytes.
 *
 * The input decides the reader's map and what each READ brings: directory
 * entries, buckets, roots. A checksum cannot be guessed, so a bit of the input
 * has the harness complete and sign what it made up; such a server knows all
 * that a real one knows. Whatever it answers, the look-up must end within its
 * bounds, READ only inside of the segments and the directory it was told of,
 * and find nothing but its own key.
 */
#include "proto/krp_lookup.h"
#include "tests/fuzz/fuzz.h"

#define FZ_DEPTH_MAX 7
#define FZ_SEGMENTS_MAX 4
/* every READ, every root, and the turn that says so of each */
#define FZ_TURNS_MAX (KRP_LOOKUP_READS_MAX + 2 * KRP_LOOKUP_ROOTS_MAX + 1)

/* how the harness helps the input along, bits of a byte of it */
#define FZ_OWN_INCARNATION 0x01
#define FZ_OWN_PLACE 0x02
#define FZ_OWN_PREFIX 0x04
#define FZ_LIVE 0x08
#define FZ_SANE 0x10
#define FZ_OWN_KEY 0x20
#define FZ_SIGNED 0x40
#define FZ_MOVED 0x80

struct fz_lookup_reader {
	struct fz_stream in;
	struct krp_map map;
	struct krp_lookup l;
};

/* Take the server's word for segments and depth, within the harness's memory. */
static void fz_adopt(struct fz_lookup_reader *r, struct krp_root *root)
{
	struct krp_dir_entry *old = r->map.dir;
	unsigned int i, old_depth = r->map.depth;

	FZ_ASSERT(krp_root_valid(root));
	krp_map_adopt(&r->map, root);
	free(r->map.segments);
	r->map.segments = calloc(r->map.segments_nr, sizeof(*r->map.segments));
	r->map.dir = calloc(1UL << r->map.depth, sizeof(*r->map.dir));
	FZ_ASSERT(r->map.segments && r->map.dir);
	for (i = 0; i < r->map.segments_nr; i++) {
		r->map.segments[i].addr = krp_cpu_to_le64((i + 1ULL) << 40);
		r->map.segments[i].rkey = krp_cpu_to_le32(100 + i);
	}
	if (old && old_depth <= r->map.depth)
		krp_dir_expand(r->map.dir, r->map.depth, old, old_depth);
	else
		fz_take(&r->in, r->map.dir, sizeof(*r->map.dir) << r->map.depth);
	free(old);
}

/* A root from the input. Return whether a reader would adopt it. */
static int fz_root(struct fz_lookup_reader *r)
{
	struct krp_root root;
	__u8 help = fz_byte(&r->in);

	fz_take(&r->in, &root, sizeof(root));
	if (help & FZ_SANE) {
		root.magic = krp_cpu_to_le64(KRP_ROOT_MAGIC);
		root.version = krp_cpu_to_le16(KRP_TABLE_VERSION);
		root.bytes = krp_cpu_to_le16(sizeof(root));
		memset(root.rsvd, 0, sizeof(root.rsvd));
		memset(root.rsvd2, 0, sizeof(root.rsvd2));
	}
	if (help & FZ_SIGNED)
		root.sum = krp_cpu_to_le64(krp_root_sum(&root));
	if (!krp_root_valid(&root))
		return 0;
	FZ_ASSERT(root.depth <= KRP_DEPTH_MAX);
	FZ_ASSERT(krp_le32_to_cpu(root.segments_nr) <= KRP_SEGMENTS_MAX);
	FZ_ASSERT(root.log2_segment_pages <= KRP_LOG2_SEGMENT_PAGES_MAX);
	if (root.depth > FZ_DEPTH_MAX || krp_le32_to_cpu(root.segments_nr) > FZ_SEGMENTS_MAX)
		return 0;
	fz_adopt(r, &root);
	return 1;
}

/* A READ may go to the directory's entry or to a bucket of a known segment. */
static void fz_check_read(const struct fz_lookup_reader *r, const struct krp_read *read)
{
	__u64 at, segment_bytes = (__u64)KRP_PAGE_BYTES << r->map.log2_segment_pages;
	unsigned int i;

	if (read->bytes == sizeof(struct krp_dir_entry)) {
		at = read->addr - r->map.dir_addr;
		FZ_ASSERT(at < sizeof(struct krp_dir_entry) << r->map.depth && !(at % 8));
		FZ_ASSERT(read->rkey == r->map.dir_rkey);
		return;
	}
	FZ_ASSERT(read->bytes == KRP_BUCKET_BYTES);
	for (i = 0; i < r->map.segments_nr; i++) {
		at = read->addr - krp_le64_to_cpu(r->map.segments[i].addr);
		if (at < segment_bytes)
			break;
	}
	FZ_ASSERT(i < r->map.segments_nr && !(at % KRP_BUCKET_BYTES));
	FZ_ASSERT(read->rkey == krp_le32_to_cpu(r->map.segments[i].rkey));
	FZ_ASSERT(r->l.page == ((__u64)i << r->map.log2_segment_pages) + at / KRP_PAGE_BYTES);
	FZ_ASSERT(r->l.index == at % KRP_PAGE_BYTES / KRP_BUCKET_BYTES);
}

static void fz_bucket(struct fz_lookup_reader *r, struct krp_bucket *b)
{
	const struct krp_dir_entry *e = &r->map.dir[krp_hash_prefix(r->l.hash, r->map.depth)];
	__u8 help = fz_byte(&r->in);

	fz_take(&r->in, b, sizeof(*b));
	if (help & FZ_OWN_INCARNATION)
		b->incarnation = krp_cpu_to_le64(r->map.incarnation);
	if (help & FZ_SANE) {
		b->depth %= KRP_DEPTH_MAX + 1;
		b->count %= KRP_BUCKET_RECORDS + 1;
		b->flags &= KRP_BUCKET_FLAGS_ALL;
		b->rsvd = 0;
		memset(b->rsvd2, 0, sizeof(b->rsvd2));
	}
	if (help & FZ_OWN_PLACE) {
		b->index = r->l.index;
		b->seed = e->seed;
	}
	if (help & FZ_OWN_PREFIX)
		b->prefix = krp_cpu_to_le32(krp_hash_prefix(r->l.hash, b->depth % 32));
	if (help & FZ_LIVE)
		b->state = KRP_STATE_LIVE;
	if ((help & FZ_OWN_KEY) && b->count && b->count <= KRP_BUCKET_RECORDS) {
		memcpy(b->gid[b->count - 1], r->l.key.gid, KRP_GID_BYTES);
		b->service[b->count - 1] = r->l.key.service;
	}
	if (help & FZ_SIGNED)
		b->sum = krp_cpu_to_le64(
			krp_bucket_sum(b, r->map.incarnation, r->l.page, r->l.index));
}

/* The verdict again, by other means than the header's. */
static void fz_check_answer(const struct fz_lookup_reader *r, const struct krp_bucket *b, int step,
			    const struct krp_value *value, const struct krp_value *before)
{
	unsigned int i, at = KRP_BUCKET_RECORDS;

	FZ_ASSERT(krp_le64_to_cpu(b->sum) ==
		  krp_bucket_sum(b, r->map.incarnation, r->l.page, r->l.index));
	FZ_ASSERT(krp_le64_to_cpu(b->incarnation) == r->map.incarnation);
	FZ_ASSERT(b->state == KRP_STATE_LIVE && b->count <= KRP_BUCKET_RECORDS);
	FZ_ASSERT(b->depth <= KRP_DEPTH_MAX);
	FZ_ASSERT(!b->depth || r->l.hash >> (64 - b->depth) == krp_le32_to_cpu(b->prefix));
	for (i = b->count; i-- > 0;)
		if (!memcmp(b->gid[i], r->l.key.gid, KRP_GID_BYTES) &&
		    b->service[i] == r->l.key.service)
			at = i;
	FZ_ASSERT((step == KRP_STEP_HIT) == (at < KRP_BUCKET_RECORDS));
	if (step == KRP_STEP_HIT)
		FZ_ASSERT(!memcmp(value, &b->value[at], sizeof(*value)));
	else
		FZ_ASSERT(!memcmp(value, before, sizeof(*value)));
}

/* Only a bucket that says so, and has not the key, sends the reader to the server. */
static void fz_check_aside(const struct fz_lookup_reader *r, const struct krp_bucket *b)
{
	unsigned int i;

	FZ_ASSERT(krp_bucket_whole(b, r->map.incarnation, r->l.page, r->l.index));
	FZ_ASSERT(b->state == KRP_STATE_LIVE && b->flags == KRP_BUCKET_CROWDED);
	for (i = 0; i < b->count; i++)
		FZ_ASSERT(memcmp(b->gid[i], r->l.key.gid, KRP_GID_BYTES) ||
			  b->service[i] != r->l.key.service);
}

/* One READ and what the reader makes of it. */
static int fz_read(struct fz_lookup_reader *r, const struct krp_read *read)
{
	struct krp_value value, before;
	struct krp_dir_entry *e;
	struct krp_bucket *b;
	void *bytes;
	int step;

	fz_check_read(r, read);
	memset(&value, 0xa5, sizeof(value));
	before = value;
	bytes = malloc(read->bytes); /* of the READ's size: a sanitizer guards its end */
	FZ_ASSERT(bytes);
	b = bytes;
	e = bytes;
	if (read->bytes == KRP_BUCKET_BYTES) {
		fz_bucket(r, b);
	} else {
		if (fz_byte(&r->in) & FZ_MOVED)
			memset(e, 0xff, sizeof(*e));
		else
			fz_take(&r->in, e, sizeof(*e));
	}
	step = krp_lookup_feed(&r->l, &r->map, bytes, &value);
	if (step == KRP_STEP_HIT || step == KRP_STEP_MISS) {
		FZ_ASSERT(read->bytes == KRP_BUCKET_BYTES);
		fz_check_answer(r, b, step, &value, &before);
	} else {
		if (step == -EAGAIN && read->bytes == KRP_BUCKET_BYTES)
			fz_check_aside(r, b);
		FZ_ASSERT(!memcmp(&value, &before, sizeof(value)));
	}
	free(bytes);
	return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_lookup_reader r = { .in = { data, size } };
	struct krp_read read = { 0 };
	struct krp_key key;
	int step, turns = 0;

	fz_take(&r.in, &key, sizeof(key));
	if (!fz_root(&r))
		return 0;
	krp_lookup_start(&r.l, &r.map, &key);
	while ((step = krp_lookup_next(&r.l, &r.map, &read)) >= 0) {
		FZ_ASSERT(++turns <= FZ_TURNS_MAX);
		FZ_ASSERT(step == KRP_STEP_READ || step == KRP_STEP_ROOT);
		if (step == KRP_STEP_READ)
			step = fz_read(&r, &read);
		if (step == KRP_STEP_HIT || step == KRP_STEP_MISS || step < 0)
			break;
		if (step == KRP_STEP_ROOT) {
			__u64 incarnation = r.map.incarnation, salt = r.map.salt;

			if (!fz_root(&r))
				break; /* a reader drops such a server */
			if (r.map.incarnation != incarnation || r.map.salt != salt)
				break; /* and attaches again to one that restarted */
		}
	}
	FZ_ASSERT(step != -EAGAIN || r.l.reads <= KRP_LOOKUP_READS_MAX);
	FZ_ASSERT(r.l.reads <= KRP_LOOKUP_READS_MAX && r.l.roots <= KRP_LOOKUP_ROOTS_MAX);
	free(r.map.dir);
	free(r.map.segments);
	return 0;
}
