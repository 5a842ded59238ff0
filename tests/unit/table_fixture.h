/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A table with a reader beside it, without RDMA: a "READ" is a copy from the
 * table's own memory, refused unless it lies in memory that was announced under
 * the key it names. Used by the unit tests of the table and by the torn-read
 * stress, which brings its own way of copying.
 */
#ifndef TABLE_FIXTURE_H
#define TABLE_FIXTURE_H

#include <stdbool.h>

#include "metaserver/table.h"
#include "proto/krp_lookup.h"

#define TF_DIRS_MAX (KRP_DEPTH_MAX + 2)
#define TF_SEGMENTS_RKEY 1000 /* directories have their position + 1 */

/* Copies @bytes from the table's memory, as a NIC would. */
typedef void tf_copy_fn(void *to, const void *from, size_t bytes, void *arg);

/**
 * struct tf_server - The server's side: announced memory and the root.
 * @table: the table.
 * @root: as readers see it; rewritten under @root_lock.
 * @segments: as readers see them.
 * @dir_addr: directories announced, newest last.
 * @dir_bytes: their sizes.
 * @dirs_nr: how many; their rkey is their position + 1.
 * @epoch: changes of @root so far.
 * @fail: operations of the table fail with this error if not zero.
 */
struct tf_server {
	struct ms_table *table;
	struct krp_root root;
	struct krp_segment segments[KRP_SEGMENTS_MAX];
	const void *dir_addr[TF_DIRS_MAX];
	size_t dir_bytes[TF_DIRS_MAX];
	unsigned int dirs_nr;
	unsigned int epoch;
	int fail;
};

/**
 * struct tf_reader - The reader's side.
 * @server: whom it reads.
 * @map: its copy.
 * @copy: how it reads; NULL means memcpy.
 * @copy_arg: last argument of @copy.
 * @reads: READs done.
 * @roots: roots read.
 * @bad_reads: READs outside announced memory: must stay 0.
 */
struct tf_reader {
	const struct tf_server *server;
	struct krp_map map;
	tf_copy_fn *copy;
	void *copy_arg;
	unsigned long reads;
	unsigned long roots;
	unsigned long bad_reads;
};

int tf_server_init(struct tf_server *s, const struct ms_table_config *config);
void tf_server_exit(struct tf_server *s);
int tf_reader_attach(struct tf_reader *r, const struct tf_server *s);
void tf_reader_detach(struct tf_reader *r);

/* Return: KRP_STEP_HIT, KRP_STEP_MISS, or a negative errno. */
int tf_lookup(struct tf_reader *r, const struct krp_key *key, struct krp_value *ret_value);

void tf_key(struct krp_key *key, __u64 id);
/* The key of that service, in the /64 of another, that has the other's very hash. */
void tf_twin(struct krp_key *key, const struct krp_key *of, __u64 salt, __u16 service);
void tf_value(struct krp_value *value, __u64 id, __u32 version);
/* Return: the version in a value of @id, or -1 if it is not a value of @id. */
long long tf_value_version(const struct krp_value *value, __u64 id);

#endif /* TABLE_FIXTURE_H */
