// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fills a table with the daemon's own code and writes it to standard output as a raw dump
 * (proto/krp_dump.h), for the decoder that shares no code with it.
 *
 * usage: table_image RECORDS REMOVED TWINS
 *	RECORDS keys are put in, TWINS whose hash is that of the last of them, and the first
 *	REMOVED keys are taken out. Each key is shown on standard error: "in" or "out", GID,
 *	service, and the value that it had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/krp_dump.h"
#include "tests/unit/table_fixture.h"

static void image_put(const void *bytes, size_t nr)
{
	if (nr && fwrite(bytes, nr, 1, stdout) != 1)
		exit(1);
}

static void image_part(uint32_t kind, uint64_t first, const void *bytes, size_t nr)
{
	struct krp_dump_part part = {
		.kind = krp_cpu_to_le32(kind),
		.first = krp_cpu_to_le64(first),
		.bytes = krp_cpu_to_le64(nr),
	};

	image_put(&part, sizeof(part));
	image_put(bytes, nr);
}

static void image_pages(struct ms_table *table, unsigned int segment)
{
	size_t bytes, at;
	const char *pages = ms_table_segment(table, segment, &bytes);

	for (at = 0; at < bytes; at += KRP_PAGE_BYTES)
		if (!krp_is_zero(pages + at, KRP_PAGE_BYTES))
			image_part(KRP_DUMP_PAGES,
				   ((uint64_t)segment * bytes + at) / KRP_PAGE_BYTES, pages + at,
				   KRP_PAGE_BYTES);
}

static void image_write(struct tf_server *server)
{
	struct krp_dump_head head = {
		.magic = krp_cpu_to_le64(KRP_DUMP_MAGIC),
		.version = krp_cpu_to_le32(KRP_DUMP_VERSION),
		.incarnation = server->root.incarnation,
	};
	struct ms_table_geometry geo;
	unsigned int i;

	ms_table_geometry(server->table, &geo);
	image_put(&head, sizeof(head));
	image_part(KRP_DUMP_ROOT, 0, &server->root, sizeof(server->root));
	image_part(KRP_DUMP_SEGMENTS, 0, server->segments,
		   geo.segments_nr * sizeof(struct krp_segment));
	image_part(KRP_DUMP_DIRECTORY, 0, geo.dir, geo.dir_bytes);
	for (i = 0; i < geo.segments_nr; i++)
		image_pages(server->table, i);
	image_part(KRP_DUMP_END, 0, NULL, 0);
}

static void image_show(const char *where, const struct krp_key *key, const struct krp_value *value)
{
	const unsigned char *bytes = (const unsigned char *)value;
	unsigned int i;

	fprintf(stderr, "%s ", where);
	for (i = 0; i < KRP_GID_BYTES; i++)
		fprintf(stderr, "%02x", key->gid[i]);
	fprintf(stderr, " %u ", krp_le16_to_cpu(key->service));
	for (i = 0; i < sizeof(*value); i++)
		fprintf(stderr, "%02x", bytes[i]);
	fprintf(stderr, "\n");
}

/* Those from @records on are twins of the last before. */
static void image_key(struct krp_key *key, unsigned long id, unsigned long records, __u64 salt)
{
	struct krp_key of;

	tf_key(key, id);
	tf_key(&of, records - 1);
	if (id >= records)
		tf_twin(key, &of, salt, (__u16)(1000 + id));
}

int main(int argc, char **argv)
{
	unsigned long records = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long removed = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long twins = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	const struct ms_table_config config = {
		.incarnation = 0x0123456789abcdefULL,
		.salt = 0xfedcba9876543210ULL,
		.log2_segment_pages = 3,
		.segments_max = KRP_SEGMENTS_MAX,
		.depth_max = 20,
		.asides_max = 100,
	};
	static struct tf_server server;
	struct krp_value value;
	struct krp_key key;
	unsigned long id;

	if (tf_server_init(&server, &config))
		return 1;
	for (id = 0; id < records + twins; id++) {
		image_key(&key, id, records, config.salt);
		tf_value(&value, id, 1);
		if (ms_table_put(server.table, &key, &value, 0) < 0)
			return 1;
	}
	for (id = 0; id < removed; id++) {
		tf_key(&key, id);
		if (ms_table_del(server.table, &key))
			return 1;
	}
	for (id = 0; id < records + twins; id++) {
		image_key(&key, id, records, config.salt);
		tf_value(&value, id, 1);
		image_show(id < removed ? "out" : "in", &key, &value);
	}
	image_write(&server);
	tf_server_exit(&server);
	return 0;
}
