// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The bytes of a whole table, as proto/krp_dump.h puts them into a file.
 *
 * Only root and segments are checked, since without them no address is known: the reader of
 * the dump wants to check the other bytes itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/bulk.h"
#include "proto/krp_dump.h"

#define KRL_DUMP_TRIES 16 /* a root that changes between two READs is rare */

/**
 * struct krl_dump - A dump in progress.
 * @bulk: its READs.
 * @map: root, segments and directory of the READs' beginning.
 * @buf: KRL_BOUNCE_BYTES.
 * @fn: gets the bytes of the file.
 * @arg: its first argument.
 */
struct krl_dump {
	struct krl_bulk bulk;
	struct krl_map *map;
	uint8_t *buf;
	krcore_bytes_fn *fn;
	void *arg;
};

/* Return: 0, or -ECANCELED. */
static int krl_dump_give(struct krl_dump *d, const void *bytes, size_t nr)
{
	return !nr || d->fn(d->arg, bytes, nr) ? 0 : -ECANCELED;
}

static int krl_dump_part(struct krl_dump *d, uint32_t kind, uint64_t first, const void *bytes,
			 size_t nr)
{
	struct krp_dump_part part = {
		.kind = krp_cpu_to_le32(kind),
		.first = krp_cpu_to_le64(first),
		.bytes = krp_cpu_to_le64(nr),
	};
	int err = krl_dump_give(d, &part, sizeof(part));

	return err ? err : krl_dump_give(d, bytes, nr);
}

/* READ a root, and the map that it is of. */
static int krl_dump_root(struct krl_dump *d, struct krp_root *ret_root)
{
	struct krp_read read = { d->bulk.root_addr, d->bulk.root_rkey, sizeof(*ret_root) };
	unsigned int tries;
	int err;

	for (tries = 0; tries < KRL_DUMP_TRIES; tries++) {
		krl_map_free(d->map);
		d->map = NULL;
		err = krl_bulk_map(&d->bulk, d->buf, &d->map);
		if (!err)
			err = krl_bulk_read(&d->bulk, &read, 1, ret_root);
		if (err)
			return err;
		if (krp_root_valid(ret_root) && ret_root->depth == d->map->map.depth &&
		    krp_le32_to_cpu(ret_root->segments_nr) == d->map->map.segments_nr)
			return 0;
	}
	return -ENOTCONN;
}

static int krl_dump_head(struct krl_dump *d)
{
	struct krp_dump_head head = {
		.magic = krp_cpu_to_le64(KRP_DUMP_MAGIC),
		.version = krp_cpu_to_le32(KRP_DUMP_VERSION),
		.incarnation = krp_cpu_to_le64(d->bulk.incarnation),
	};
	struct krp_root root;
	int err = krl_dump_root(d, &root);

	if (!err)
		err = krl_dump_give(d, &head, sizeof(head));
	if (!err)
		err = krl_dump_part(d, KRP_DUMP_ROOT, 0, &root, sizeof(root));
	if (!err)
		err = krl_dump_part(d, KRP_DUMP_SEGMENTS, 0, d->map->map.segments,
				    d->map->map.segments_nr * sizeof(struct krp_segment));
	return err;
}

static int krl_dump_directory(struct krl_dump *d)
{
	const struct krp_map *map = &d->map->map;
	uint64_t bytes = sizeof(struct krp_dir_entry) << map->depth, at;
	int err;

	for (at = 0; at < bytes; at += KRL_BOUNCE_BYTES) {
		uint64_t left = bytes - at;
		struct krp_read read = {
			.addr = map->dir_addr + at,
			.rkey = map->dir_rkey,
			.bytes = left < KRL_BOUNCE_BYTES ? (uint32_t)left : KRL_BOUNCE_BYTES,
		};

		err = krl_bulk_read(&d->bulk, &read, 1, d->buf);
		if (!err)
			err = krl_dump_part(d, KRP_DUMP_DIRECTORY,
					    at / sizeof(struct krp_dir_entry), d->buf, read.bytes);
		if (err)
			return err;
	}
	return 0;
}

/* Write pages that were READ in one batch; each that is not all zero is a part of the file. */
static int krl_dump_pages(struct krl_dump *d, uint64_t first, unsigned int nr)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		const uint8_t *page = d->buf + (size_t)i * KRP_PAGE_BYTES;

		if (!krp_is_zero(page, KRP_PAGE_BYTES))
			err = krl_dump_part(d, KRP_DUMP_PAGES, first + i, page, KRP_PAGE_BYTES);
	}
	return err;
}

static int krl_dump_segment(struct krl_dump *d, uint32_t nr)
{
	const struct krp_map *map = &d->map->map;
	const struct krp_segment *seg = &map->segments[nr];
	uint64_t pages = 1ULL << map->log2_segment_pages, at;
	int err;

	for (at = 0; at < pages; at += KRL_WALK_PAGES) {
		uint64_t left = pages - at;
		unsigned int some = left < KRL_WALK_PAGES ? (unsigned int)left : KRL_WALK_PAGES;
		struct krp_read read = {
			.addr = krp_le64_to_cpu(seg->addr) + at * KRP_PAGE_BYTES,
			.rkey = krp_le32_to_cpu(seg->rkey),
			.bytes = some * KRP_PAGE_BYTES,
		};

		err = krl_bulk_read(&d->bulk, &read, 1, d->buf);
		if (!err)
			err = krl_dump_pages(d, nr * pages + at, some);
		if (err)
			return err;
	}
	return 0;
}

static int krl_dump_all(struct krl_dump *d)
{
	uint32_t i;
	int err = krl_dump_head(d);

	if (!err)
		err = krl_dump_directory(d);
	for (i = 0; !err && i < d->map->map.segments_nr; i++)
		err = krl_dump_segment(d, i);
	return err ? err : krl_dump_part(d, KRP_DUMP_END, 0, NULL, 0);
}

int krcore_dump(struct krcore_ctx *ctx, unsigned int server, krcore_bytes_fn *fn, void *arg)
{
	struct krl_dump d = { .fn = fn, .arg = arg };
	int err;

	if (!krl_is_direct(ctx, "reading a whole table"))
		return -EOPNOTSUPP;
	if (server >= ctx->servers_nr)
		return krl_error(-EINVAL, "there is no server %u, only %u", server,
				 ctx->servers_nr);
	d.buf = malloc(KRL_BOUNCE_BYTES);
	if (!d.buf)
		return krl_error(-ENOMEM, "no memory");
	err = krl_bulk_begin(&d.bulk, &ctx->servers[server]);
	if (!err)
		err = krl_dump_all(&d);
	krl_map_free(d.map);
	free(d.buf);
	switch (err) {
	case 0:
		return 0;
	case -ECANCELED:
		return krl_error_const(err, "the dump was ended by its caller");
	case -ENOMEM:
		return krl_error_const(err, "no memory");
	default:
		return krl_error(-ENOTCONN, "%s is not attached, or broke on the way",
				 d.bulk.srv->ep->text);
	}
}
