// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A table with a reader beside it, without RDMA: see table_fixture.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/table_fixture.h"

static __u64 tf_mix(__u64 id, __u64 salt)
{
	return krp_mix64(id * KRP_GOLDEN + salt);
}

/* ---- server ---- */

static int tf_segment_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	struct tf_server *s = arg;
	struct krp_segment seg = { .addr = krp_cpu_to_le64((__u64)(uintptr_t)addr) };

	(void)bytes;
	if (s->fail)
		return s->fail;
	seg.rkey = krp_cpu_to_le32((__u32)tf_mix(nr, 1));
	seg.check = krp_cpu_to_le32(
		krp_segment_check(&seg, nr, ms_table_config(s->table)->incarnation));
	s->segments[nr] = seg;
	return 0;
}

static int tf_dir_add(void *arg, void *addr, size_t bytes)
{
	struct tf_server *s = arg;

	if (s->fail)
		return s->fail;
	s->dir_addr[s->dirs_nr] = addr;
	s->dir_bytes[s->dirs_nr++] = bytes;
	return 0;
}

static void tf_root_changed(void *arg)
{
	struct tf_server *s = arg;
	struct krp_root root;
	const __u64 *from = (const __u64 *)(const void *)&root;
	__u64 *to = (__u64 *)(void *)&s->root;
	unsigned int i;

	ms_table_fill_root(s->table, &root);
	for (i = 0; i < s->dirs_nr; i++)
		if (root.dir_addr == krp_cpu_to_le64((__u64)(uintptr_t)s->dir_addr[i]))
			root.dir_rkey = krp_cpu_to_le32(i + 1);
	root.segments_addr = krp_cpu_to_le64((__u64)(uintptr_t)s->segments);
	root.segments_rkey = krp_cpu_to_le32(TF_SEGMENTS_RKEY);
	root.epoch = krp_cpu_to_le32(++s->epoch);
	root.sum = krp_cpu_to_le64(krp_root_sum(&root));
	for (i = 0; i < sizeof(root) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static const struct ms_table_ops tf_ops = {
	.segment_add = tf_segment_add,
	.dir_add = tf_dir_add,
	.root_changed = tf_root_changed,
};

int tf_server_init(struct tf_server *s, const struct ms_table_config *config)
{
	struct ms_table_geometry geo;
	unsigned int i;
	size_t bytes;
	int err;

	memset(s, 0, sizeof(*s));
	err = ms_table_new(config, &tf_ops, s, &s->table);
	if (err < 0)
		return err;
	ms_table_geometry(s->table, &geo);
	for (i = 0; i < geo.segments_nr; i++)
		tf_segment_add(s, i, ms_table_segment(s->table, i, &bytes), bytes);
	tf_dir_add(s, geo.dir, geo.dir_bytes);
	tf_root_changed(s);
	return 0;
}

void tf_server_exit(struct tf_server *s)
{
	ms_table_free(s->table);
}

/* ---- reader ---- */

static void tf_memcpy(void *to, const void *from, size_t bytes, void *arg)
{
	(void)arg;
	memcpy(to, from, bytes);
}

static bool tf_within(__u64 addr, __u64 bytes, __u64 from, __u64 size)
{
	return addr >= from && bytes <= size && addr - from <= size - bytes;
}

/* Whether a NIC would answer: is this memory announced under that key? */
static bool tf_reachable(const struct tf_server *s, const struct krp_read *read)
{
	size_t seg_bytes = (size_t)KRP_PAGE_BYTES << ms_table_config(s->table)->log2_segment_pages;
	unsigned int i;

	if (read->rkey == TF_SEGMENTS_RKEY)
		return tf_within(read->addr, read->bytes, (__u64)(uintptr_t)s->segments,
				 sizeof(s->segments));
	if (read->rkey && read->rkey <= TF_DIRS_MAX)
		return tf_within(read->addr, read->bytes,
				 (__u64)(uintptr_t)s->dir_addr[read->rkey - 1],
				 s->dir_bytes[read->rkey - 1]);
	for (i = 0; i < ms_table_config(s->table)->segments_max; i++)
		if (krp_le32_to_cpu(s->segments[i].rkey) == read->rkey)
			return tf_within(read->addr, read->bytes,
					 krp_le64_to_cpu(s->segments[i].addr), seg_bytes);
	return false;
}

static int tf_read(struct tf_reader *r, const struct krp_read *read, void *to)
{
	r->reads++;
	if (!tf_reachable(r->server, read)) {
		r->bad_reads++;
		return -EFAULT;
	}
	r->copy(to, (const void *)(uintptr_t)read->addr, read->bytes, r->copy_arg);
	return 0;
}

static int tf_segments_refresh(struct tf_reader *r)
{
	struct krp_read read = { .addr = r->map.segments_addr,
				 .rkey = r->map.segments_rkey,
				 .bytes = r->map.segments_nr * sizeof(*r->map.segments) };
	unsigned int i, tries;
	bool whole = false;
	int err;

	for (tries = 0; tries < 100 && !whole; tries++) {
		err = tf_read(r, &read, r->map.segments);
		if (err < 0)
			return err;
		whole = true;
		for (i = 0; i < r->map.segments_nr; i++)
			whole &= krp_le32_to_cpu(r->map.segments[i].check) ==
				 krp_segment_check(&r->map.segments[i], i, r->map.incarnation);
	}
	return whole ? 0 : -EAGAIN;
}

static int tf_root_refresh(struct tf_reader *r)
{
	unsigned int depth = r->map.depth, tries;
	struct krp_dir_entry *dir;
	struct krp_root root;

	for (tries = 0; tries < 1000; tries++) {
		r->copy(&root, &r->server->root, sizeof(root), r->copy_arg);
		if (krp_root_valid(&root))
			break;
	}
	if (tries == 1000)
		return -EAGAIN;
	r->roots++;
	krp_map_adopt(&r->map, &root);
	if (r->map.depth > depth) {
		dir = malloc(sizeof(*dir) << r->map.depth);
		if (!dir)
			return -ENOMEM;
		krp_dir_expand(dir, r->map.depth, r->map.dir, depth);
		free(r->map.dir);
		r->map.dir = dir;
	}
	return tf_segments_refresh(r);
}

int tf_reader_attach(struct tf_reader *r, const struct tf_server *s)
{
	tf_copy_fn *copy = r->copy ? r->copy : tf_memcpy;
	void *copy_arg = r->copy_arg;

	memset(r, 0, sizeof(*r));
	r->server = s;
	r->copy = copy;
	r->copy_arg = copy_arg;
	r->map.segments = calloc(KRP_SEGMENTS_MAX, sizeof(*r->map.segments));
	r->map.dir = calloc(1, sizeof(*r->map.dir)); /* wrong, to be repaired on the way */
	if (!r->map.segments || !r->map.dir)
		return -ENOMEM;
	return tf_root_refresh(r);
}

void tf_reader_detach(struct tf_reader *r)
{
	free(r->map.segments);
	free(r->map.dir);
	r->map.segments = NULL;
	r->map.dir = NULL;
}

int tf_lookup(struct tf_reader *r, const struct krp_key *key, struct krp_value *ret_value)
{
	__u64 buf[KRP_BUCKET_BYTES / sizeof(__u64)];
	struct krp_lookup l;
	struct krp_read read;
	int step, err;

	krp_lookup_start(&l, &r->map, key);
	for (;;) {
		step = krp_lookup_next(&l, &r->map, &read);
		if (step == KRP_STEP_READ) {
			err = tf_read(r, &read, buf);
			if (err < 0)
				return err;
			step = krp_lookup_feed(&l, &r->map, buf, ret_value);
		}
		if (step == KRP_STEP_ROOT) {
			err = tf_root_refresh(r);
			if (err < 0)
				return err;
		} else if (step != KRP_STEP_READ) {
			return step;
		}
	}
}

/* ---- keys and values that can be recognised ---- */

void tf_key(struct krp_key *key, __u64 id)
{
	__u64 a = tf_mix(id, 11), b = tf_mix(id, 22);

	memcpy(key->gid, &a, sizeof(a));
	memcpy(key->gid + sizeof(a), &b, sizeof(b));
	key->service = krp_cpu_to_le16((__u16)id);
}

/*
 * XXH64 of 18 bytes: each step is a bijection of its state, and of the word that it takes.
 * So whoever knows the salt can go back from the wanted end, and solve for one word.
 */
#define TF_P1 0x9e3779b185ebca87ULL
#define TF_P2 0xc2b2ae3d27d4eb4fULL
#define TF_P4 0x85ebca77c2b2ae63ULL
#define TF_P5 0x27d4eb2f165667c5ULL

static __u64 tf_rotate(__u64 x, unsigned int left)
{
	return x << left | x >> (64 - left);
}

static __u64 tf_inverse(__u64 odd)
{
	__u64 x = odd;
	unsigned int i;

	for (i = 0; i < 6; i++)
		x *= 2 - odd * x; /* Newton: each turn doubles the bits that are right */
	return x;
}

static __u64 tf_word_step(__u64 h, __u64 word)
{
	return tf_rotate(h ^ tf_rotate(word * TF_P2, 31) * TF_P1, 27) * TF_P1 + TF_P4;
}

static __u64 tf_byte_step(__u64 h, __u8 byte)
{
	return tf_rotate(h ^ byte * TF_P5, 11) * TF_P1;
}

static __u64 tf_byte_back(__u64 h, __u8 byte)
{
	return tf_rotate(h * tf_inverse(TF_P1), 64 - 11) ^ byte * TF_P5;
}

void tf_twin(struct krp_key *key, const struct krp_key *of, __u64 salt, __u16 service)
{
	__u64 begin = salt + TF_P5 + sizeof(*of), h;
	__le64 word[2];
	const __u8 *last = (const __u8 *)&of->service;

	memcpy(word, of->gid, sizeof(word));
	begin = tf_word_step(begin, krp_le64_to_cpu(word[0]));
	h = tf_word_step(begin, krp_le64_to_cpu(word[1]));
	h = tf_byte_step(tf_byte_step(h, last[0]), last[1]);

	*key = *of;
	key->service = krp_cpu_to_le16(service);
	last = (const __u8 *)&key->service;
	h = tf_byte_back(tf_byte_back(h, last[1]), last[0]);
	h = tf_rotate((h - TF_P4) * tf_inverse(TF_P1), 64 - 27) ^ begin;
	word[1] = krp_cpu_to_le64(tf_rotate(h * tf_inverse(TF_P1), 64 - 31) * tf_inverse(TF_P2));
	memcpy(key->gid + sizeof(word[0]), &word[1], sizeof(word[1]));
}

void tf_value(struct krp_value *value, __u64 id, __u32 version)
{
	__u64 word;
	unsigned int i;

	memset(value, 0, sizeof(*value));
	value->generation = krp_cpu_to_le64(1);
	value->kind = KRP_KIND_RAW;
	value->len = KRP_RAW_BYTES;
	memcpy(value->raw, &version, sizeof(version));
	for (i = sizeof(version); i + sizeof(word) <= KRP_RAW_BYTES; i += sizeof(word)) {
		word = tf_mix(id ^ (__u64)version << 32, i);
		memcpy(value->raw + i, &word, sizeof(word));
	}
}

long long tf_value_version(const struct krp_value *value, __u64 id)
{
	struct krp_value want;
	__u32 version;

	memcpy(&version, value->raw, sizeof(version));
	tf_value(&want, id, version);
	return memcmp(&want, value, sizeof(want)) ? -1 : (long long)version;
}
