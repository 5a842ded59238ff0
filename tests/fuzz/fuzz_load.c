// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader that attaches to a hostile server: krp_load.h fed with any bytes.
 *
 * The input decides what each READ of root, segments and directory brings, and
 * whether there is an older copy to go on from. A bit of the input has the
 * harness sign what it made up, as a real server could. Whatever comes, the
 * load must end within its bounds, READ only inside of what a valid root named,
 * believe no segment whose check fails, and write only to the memory it asked
 * for (of just that size, so a sanitizer guards its end).
 */
#include "proto/krp_load.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_map.h"

#define FZ_DEPTH_MAX 7
#define FZ_CHUNK 128
#define FZ_ROOT_AT 0x1000
#define FZ_ROOT_RKEY 1
/* every READ that brings something, once more after each that brings nothing */
#define FZ_READS_MAX (KRP_LOAD_TRIES * (2 + KRP_SEGMENTS_MAX + (1 << FZ_DEPTH_MAX)))

/* how the harness helps the input along, bits of a byte of it */
#define FZ_OWN_INCARNATION 0x01
#define FZ_SMALL 0x02
#define FZ_SANE 0x04
#define FZ_SIGNED 0x08
#define FZ_MOVED 0x10
#define FZ_WHERE_IT_WAS 0x20

struct fz_reader {
	struct fz_stream in;
	struct krp_load load;
	unsigned int gives;
};

static struct krp_map *fz_map(__u32 segments_nr, unsigned int depth)
{
	struct krp_map *map;

	FZ_ASSERT(segments_nr); /* a valid root has a segment */
	map = exact_map_new(segments_nr, depth);
	FZ_ASSERT(map);
	return map;
}

/* A copy such as an earlier load of this server would have made. */
static struct krp_map *fz_old(struct fz_reader *r, __u64 incarnation)
{
	__u8 help = fz_byte(&r->in);
	struct krp_map *map;
	__u32 i, nr;
	__u8 depth;

	if (!(help & FZ_SANE))
		return NULL;
	nr = 1 + fz_byte(&r->in) % 16;
	depth = fz_byte(&r->in) % (FZ_DEPTH_MAX + 1);
	map = fz_map(nr, depth);
	map->segments_nr = nr;
	map->depth = depth;
	map->incarnation = incarnation + !(help & FZ_OWN_INCARNATION);
	map->segments_addr = FZ_ROOT_AT;
	for (i = 0; i < map->segments_nr; i++) {
		map->segments[i].addr = krp_cpu_to_le64(i + 1);
		map->segments[i].rkey = krp_cpu_to_le32(i);
		map->segments[i].check =
			krp_cpu_to_le32(krp_segment_check(&map->segments[i], i, incarnation));
	}
	fz_take(&r->in, map->dir, sizeof(*map->dir) << map->depth);
	return map;
}

static void fz_root(struct fz_reader *r, struct krp_root *root)
{
	__u8 help = fz_byte(&r->in);

	fz_take(&r->in, root, sizeof(*root));
	if (help & FZ_OWN_INCARNATION)
		root->incarnation = krp_cpu_to_le64(r->load.incarnation);
	if (help & FZ_SMALL) {
		root->depth %= FZ_DEPTH_MAX + 1;
		root->log2_segment_pages %= KRP_LOG2_SEGMENT_PAGES_MAX + 1;
		root->segments_nr = krp_cpu_to_le32(krp_le32_to_cpu(root->segments_nr) % 32);
	}
	if (help & FZ_SANE) {
		root->magic = krp_cpu_to_le64(KRP_ROOT_MAGIC);
		root->version = krp_cpu_to_le16(KRP_TABLE_VERSION);
		root->bytes = krp_cpu_to_le16(sizeof(*root));
		memset(root->rsvd, 0, sizeof(root->rsvd));
		memset(root->rsvd2, 0, sizeof(root->rsvd2));
	}
	if (help & FZ_WHERE_IT_WAS)
		root->segments_addr = krp_cpu_to_le64(FZ_ROOT_AT);
	if (help & FZ_SIGNED)
		root->sum = krp_cpu_to_le64(krp_root_sum(root));
}

static void fz_segments(struct fz_reader *r, struct krp_segment *segments, __u32 nr)
{
	__u8 help = fz_byte(&r->in);
	__u32 i, at;

	fz_take(&r->in, segments, nr * sizeof(*segments));
	for (i = 0; i < nr; i++) {
		at = (__u32)r->load.at + i;
		if (help & FZ_SANE)
			segments[i].addr |= krp_cpu_to_le64(1);
		if (help & FZ_SIGNED)
			segments[i].check = krp_cpu_to_le32(
				krp_segment_check(&segments[i], at, r->load.incarnation));
	}
}

static void fz_dir(struct fz_reader *r, struct krp_dir_entry *entries, __u32 nr)
{
	__u8 help = fz_byte(&r->in);

	fz_take(&r->in, entries, nr * sizeof(*entries));
	if (help & FZ_MOVED)
		memset(&entries[help % nr], 0xff, sizeof(*entries));
}

/* A READ stays inside of what the root named, and makes progress if it is believed. */
static void fz_check_read(const struct fz_reader *r, const struct krp_read *read)
{
	const struct krp_map *map = r->load.map;
	__u64 at;

	FZ_ASSERT(read->bytes && read->bytes <= FZ_CHUNK);
	switch (r->load.stage) {
	case KRP_LOAD_ROOT:
		FZ_ASSERT(read->addr == FZ_ROOT_AT && read->rkey == FZ_ROOT_RKEY);
		FZ_ASSERT(read->bytes == sizeof(struct krp_root));
		return;
	case KRP_LOAD_SEGMENTS:
		at = read->addr - map->segments_addr;
		FZ_ASSERT(read->rkey == map->segments_rkey && !(at % sizeof(struct krp_segment)));
		FZ_ASSERT(at + read->bytes <= map->segments_nr * sizeof(struct krp_segment));
		return;
	case KRP_LOAD_DIR:
		at = read->addr - map->dir_addr;
		FZ_ASSERT(read->rkey == map->dir_rkey && !(at % sizeof(struct krp_dir_entry)));
		FZ_ASSERT(at + read->bytes <= sizeof(struct krp_dir_entry) << map->depth);
		return;
	case KRP_LOAD_DONE:
		FZ_ASSERT(0);
	}
}

/* One READ and what the load makes of it. */
static int fz_read(struct fz_reader *r, const struct krp_read *read)
{
	enum krp_load_stage stage = r->load.stage;
	__u32 tries = r->load.tries;
	__u64 at = r->load.at;
	void *bytes = malloc(read->bytes);
	int step;

	FZ_ASSERT(bytes);
	fz_check_read(r, read);
	if (stage == KRP_LOAD_ROOT)
		fz_root(r, bytes);
	else if (stage == KRP_LOAD_SEGMENTS)
		fz_segments(r, bytes, read->bytes / sizeof(struct krp_segment));
	else
		fz_dir(r, bytes, read->bytes / sizeof(struct krp_dir_entry));
	step = krp_load_feed(&r->load, bytes);
	FZ_ASSERT(step <= 0 || (step == KRP_LOAD_MEMORY && stage == KRP_LOAD_ROOT));
	FZ_ASSERT(step || r->load.tries == tries + 1 || r->load.stage != stage ||
		  r->load.at > at); /* else it would go on for ever */
	if (step == KRP_LOAD_MEMORY) {
		FZ_ASSERT(krp_root_valid(bytes));
		FZ_ASSERT(r->load.want.depth <= FZ_DEPTH_MAX);
		FZ_ASSERT(r->load.want.segments_nr <= KRP_SEGMENTS_MAX);
		FZ_ASSERT(r->load.want.incarnation == r->load.incarnation);
		FZ_ASSERT(++r->gives <= KRP_LOAD_TRIES);
		exact_map_free(krp_load_give(&r->load,
					     fz_map(r->load.want.segments_nr, r->load.want.depth)));
	}
	free(bytes);
	return step;
}

/* A complete map: all of it written, each segment proven, no entry of a directory given up. */
static void fz_check_map(const struct krp_map *map, const struct krp_map *old)
{
	__u32 i;

	FZ_ASSERT(map && map->segments_nr);
	for (i = 0; i < map->segments_nr; i++) {
		FZ_ASSERT(map->segments[i].addr);
		FZ_ASSERT(krp_le32_to_cpu(map->segments[i].check) ==
			  krp_segment_check(&map->segments[i], i, map->incarnation));
	}
	for (i = 0; i < 1U << map->depth; i++)
		FZ_ASSERT(old || !krp_dir_entry_moved(&map->dir[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_reader r = { .in = { data, size } };
	struct krp_read read = { 0 };
	unsigned int reads = 0;
	struct krp_map *old;
	__u64 incarnation;
	int step = 0;

	fz_take(&r.in, &incarnation, sizeof(incarnation));
	old = fz_old(&r, incarnation);
	krp_load_start(&r.load, FZ_ROOT_AT, FZ_ROOT_RKEY, incarnation, FZ_CHUNK, FZ_DEPTH_MAX, old);
	while (step >= 0 && krp_load_next(&r.load, &read)) {
		FZ_ASSERT(++reads <= FZ_READS_MAX);
		step = fz_read(&r, &read);
	}
	if (step >= 0)
		fz_check_map(r.load.map, old);
	else
		FZ_ASSERT(step == -EPROTO || step == -ESTALE || step == -E2BIG);
	exact_map_free(krp_load_take(&r.load));
	exact_map_free(old);
	return 0;
}
