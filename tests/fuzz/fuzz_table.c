// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table's writer with a reader beside it: the input is a list of changes.
 *
 * After each change the reader, whose map is as old as the input lets it be,
 * must find what a plain array says. Small segments and a shallow directory
 * make splits, doublings and the refusals at the bounds happen all the time;
 * a refused change must leave the table as it was. Half of the keys are twins of some few,
 * with the very same hashes: these find room only aside, from where the reader has them by
 * asking the writer.
 */
#include <errno.h>

#include "metaserver/table.h"
#include "proto/krp_lookup.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/table_fixture.h"

#define FZ_KEYS 512
#define FZ_SEGMENTS 4
#define FZ_DEPTH 5
#define FZ_STEPS_MAX 4096
#define FZ_TWINS 16 /* of one hash */
#define FZ_ASIDES 100

struct fz_model {
	struct ms_table *t;
	struct krp_map map;
	struct krp_dir_entry dir[1 << FZ_DEPTH];
	struct krp_segment segments[FZ_SEGMENTS];
	__u8 value[FZ_KEYS]; /* 0: not in the table */
	unsigned int records;
};

static int fz_segment_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	(void)arg;
	FZ_ASSERT(nr < FZ_SEGMENTS && addr && !(bytes % KRP_PAGE_BYTES));
	return 0;
}

static int fz_dir_add(void *arg, void *addr, size_t bytes)
{
	(void)arg;
	FZ_ASSERT(addr && bytes <= sizeof(struct krp_dir_entry) << FZ_DEPTH);
	return 0;
}

static void fz_root_changed(void *arg)
{
	(void)arg;
}

static const struct ms_table_ops fz_ops = { .segment_add = fz_segment_add,
					    .dir_add = fz_dir_add,
					    .root_changed = fz_root_changed };

/* What a reader does with the root: the addresses here are the writer's own. */
static void fz_refresh(struct fz_model *m)
{
	struct ms_table_geometry geo;
	unsigned int i;
	size_t bytes;

	ms_table_geometry(m->t, &geo);
	FZ_ASSERT(geo.depth <= FZ_DEPTH && geo.segments_nr <= FZ_SEGMENTS);
	FZ_ASSERT(geo.dir_bytes == sizeof(struct krp_dir_entry) << geo.depth);
	memcpy(m->dir, geo.dir, geo.dir_bytes);
	m->map.dir = m->dir;
	m->map.dir_addr = (uintptr_t)geo.dir;
	m->map.depth = (__u8)geo.depth;
	m->map.segments = m->segments;
	m->map.segments_nr = geo.segments_nr;
	m->map.log2_segment_pages = (__u8)ms_table_config(m->t)->log2_segment_pages;
	m->map.incarnation = ms_table_config(m->t)->incarnation;
	m->map.salt = ms_table_config(m->t)->salt;
	for (i = 0; i < geo.segments_nr; i++)
		m->segments[i].addr = krp_cpu_to_le64((uintptr_t)ms_table_segment(m->t, i, &bytes));
}

static void fz_plain_key(struct krp_key *key, unsigned int nr)
{
	memset(key, 0, sizeof(*key));
	key->gid[0] = 0xfe;
	key->gid[14] = (__u8)(nr >> 8);
	key->gid[15] = (__u8)nr;
}

static void fz_key(const struct fz_model *m, struct krp_key *key, unsigned int nr)
{
	struct krp_key of;

	fz_plain_key(&of, nr - nr % FZ_TWINS);
	if (nr < FZ_KEYS / 2)
		fz_plain_key(key, nr);
	else
		tf_twin(key, &of, m->map.salt, (__u16)nr);
}

/* What a LOOKUP message brings. */
static unsigned int fz_ask(const struct fz_model *m, const struct krp_key *key)
{
	struct krp_value value;

	return ms_table_get(m->t, key, &value, NULL) ? 0 : value.raw[0];
}

/* Look a key up as a reader does. Return its value, 0 on a miss. */
static unsigned int fz_lookup(struct fz_model *m, unsigned int nr)
{
	struct krp_value value = { 0 };
	struct krp_lookup l;
	struct krp_read read;
	struct krp_key key;
	int step;

	fz_key(m, &key, nr);
	krp_lookup_start(&l, &m->map, &key);
	for (;;) {
		step = krp_lookup_next(&l, &m->map, &read);
		FZ_ASSERT(step >= 0);
		if (step == KRP_STEP_READ)
			step = krp_lookup_feed(&l, &m->map, (const void *)(uintptr_t)read.addr,
					       &value);
		if (step == -EAGAIN)
			return fz_ask(m, &key);
		FZ_ASSERT(step >= 0);
		if (step == KRP_STEP_MISS)
			return 0;
		if (step == KRP_STEP_HIT)
			return value.raw[0];
		if (step == KRP_STEP_ROOT)
			fz_refresh(m);
	}
}

static void fz_put(struct fz_model *m, unsigned int nr, __u8 what)
{
	struct krp_value value = { 0 };
	struct krp_key key;
	int err;

	fz_key(m, &key, nr);
	value.generation = krp_cpu_to_le64(1);
	value.kind = KRP_KIND_RAW;
	value.len = 1;
	value.raw[0] = what ? what : 1;
	err = ms_table_put(m->t, &key, &value, nr);
	FZ_ASSERT(err == -ENOSPC || err == !!m->value[nr]);
	if (err == -ENOSPC) {
		FZ_ASSERT(!m->value[nr]);
		return;
	}
	m->records += !err;
	m->value[nr] = value.raw[0];
}

static void fz_del(struct fz_model *m, unsigned int nr)
{
	struct krp_key key;
	int err;

	fz_key(m, &key, nr);
	err = ms_table_del(m->t, &key);
	FZ_ASSERT(err == (m->value[nr] ? 0 : -ENOENT));
	m->records -= !err;
	m->value[nr] = 0;
}

static void fz_check_writer(const struct fz_model *m, unsigned int nr)
{
	struct ms_table_stats stats;
	struct krp_value value = { 0 };
	struct krp_key key;
	__u64 cookie = 0;
	int err;

	fz_key(m, &key, nr);
	err = ms_table_get(m->t, &key, &value, &cookie);
	FZ_ASSERT(err == (m->value[nr] ? 0 : -ENOENT));
	FZ_ASSERT(err || (value.raw[0] == m->value[nr] && cookie == nr));
	ms_table_stats(m->t, &stats);
	FZ_ASSERT(stats.records == m->records && stats.aside <= FZ_ASIDES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fz_model model;
	struct ms_table_config config = { .log2_segment_pages = 2,
					  .segments_max = FZ_SEGMENTS,
					  .depth_max = FZ_DEPTH,
					  .asides_max = FZ_ASIDES };
	struct fz_stream in = { data, size };
	struct fz_model *m = &model;
	unsigned int nr, steps = 0;

	memset(m, 0, sizeof(*m));
	config.salt = fz_byte(&in);
	config.incarnation = 1 + config.salt;
	FZ_ASSERT(!ms_table_new(&config, &fz_ops, m, &m->t));
	fz_refresh(m);
	while (in.size && steps++ < FZ_STEPS_MAX) {
		__u8 op = fz_byte(&in);

		nr = (fz_byte(&in) | (op & 1) << 8) % FZ_KEYS;
		switch (op >> 5) {
		case 0:
			fz_del(m, nr);
			break;
		case 1: /* many at once, so that short inputs get far */
			for (unsigned int i = 0; i < 32; i++)
				fz_del(m, (nr + i) % FZ_KEYS);
			break;
		case 2:
			for (unsigned int i = 0; i < 32; i++)
				fz_put(m, (nr + i) % FZ_KEYS, op);
			break;
		case 3:
			fz_refresh(m);
			break;
		default:
			fz_put(m, nr, op);
			break;
		}
		fz_check_writer(m, nr);
		FZ_ASSERT(fz_lookup(m, nr) == m->value[nr]);
	}
	for (nr = 0; nr < FZ_KEYS; nr++)
		FZ_ASSERT(fz_lookup(m, nr) == m->value[nr]);
	ms_table_free(m->t);
	return 0;
}
