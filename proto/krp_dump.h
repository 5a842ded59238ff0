/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * A raw dump: the bytes of a MetaServer's table as READs brought them, in a
 * file. Normative.
 *
 * It is made by `krcore-metactl table dump --raw FILE` and allows anybody to
 * look at a table without our code: with krp_table.h it has all that a
 * reader has. All numbers are little-endian.
 *
 * LAYOUT
 *   head     struct krp_dump_head.
 *   parts    each a struct krp_dump_part and the bytes it announces, one behind
 *            the other, in this order:
 *            KRP_DUMP_ROOT       the root, once.
 *            KRP_DUMP_SEGMENTS   the array of segments, once.
 *            KRP_DUMP_DIRECTORY  entries from @first on; together all of them.
 *            KRP_DUMP_PAGES      pages from number @first on. A page that is in
 *                                no part was zero in all its bytes.
 *            KRP_DUMP_END        nothing; a file without it was not finished.
 *
 * WHAT IT SAYS
 *   Nothing in it was judged, apart from root and segments, which are needed to
 *   read on. The server went on meanwhile, so each bucket is of a time of its
 *   own: a bucket may be torn, and an entry of the directory may name a page
 *   that was split later. Of a table at rest it is the whole truth.
 */
#ifndef KRP_DUMP_H
#define KRP_DUMP_H

#include "krp_table.h"

#define KRP_DUMP_MAGIC 0x31504d554443524bULL /* "KRCDUMP1" */
#define KRP_DUMP_VERSION 1

/* krp_dump_part.kind */
#define KRP_DUMP_END 0
#define KRP_DUMP_ROOT 1
#define KRP_DUMP_SEGMENTS 2
#define KRP_DUMP_DIRECTORY 3
#define KRP_DUMP_PAGES 4

/**
 * struct krp_dump_head - Begin of the file.
 * @magic: KRP_DUMP_MAGIC.
 * @version: KRP_DUMP_VERSION.
 * @rsvd: zero.
 * @incarnation: of the server that was read.
 */
struct krp_dump_head {
	__le64 magic;
	__le32 version;
	__le32 rsvd;
	__le64 incarnation;
};

/**
 * struct krp_dump_part - What comes next in the file.
 * @kind: KRP_DUMP_*.
 * @rsvd: zero.
 * @first: number of the first entry or page; else 0.
 * @bytes: bytes that follow this structure.
 */
struct krp_dump_part {
	__le32 kind;
	__le32 rsvd;
	__le64 first;
	__le64 bytes;
};

KRP_STATIC_ASSERT(sizeof(struct krp_dump_head) == 24, "krp_dump_head");
KRP_STATIC_ASSERT(sizeof(struct krp_dump_part) == 24, "krp_dump_part");

#endif /* KRP_DUMP_H */
