// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The server of a table: memory, registered and published. Nothing of it runs for clients.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <krcore/queue.h>
#include <krcore/race.h>

#include "race/lib/layout.h"

#define KR_BYTES_MIN (1ULL << 20)
#define KR_GROUPS 64
#define KR_DEPTH 14
#define KR_ENTRY_BYTES 128 /* of memory a slot: more of them are not needed */
#define KR_LEASE_MS 30000

/**
 * struct krcore_race_server - A table that is served.
 * @node: of this program.
 * @ctx: keeps the record.
 * @memory: the table.
 * @bytes: its size.
 * @mr: its region.
 * @key: of its record.
 */
struct krcore_race_server {
	struct krcore_node *node;
	struct krcore_ctx *ctx;
	void *memory;
	size_t bytes;
	struct krcore_mr mr;
	struct krcore_key key;
};

/* So many groups and splits that slots do not run out before memory does, if it can be. */
static void kr_shape(const struct krcore_race_server_options *opts, uint32_t *ret_groups,
		     uint32_t *ret_depth)
{
	uint32_t groups = opts->groups ? opts->groups : KR_GROUPS;
	uint32_t depth = opts->depth_max ? opts->depth_max : KR_DEPTH;
	uint64_t slots = opts->bytes / KR_ENTRY_BYTES;

	while (!opts->depth_max && depth < KR_DEPTH_MAX && (21ULL * groups << depth) < slots)
		depth++;
	while (!opts->groups && groups < KR_GROUPS_MAX && (21ULL * groups << depth) < slots)
		groups *= 2;
	*ret_groups = groups;
	*ret_depth = depth;
}

static int kr_serve_memory(struct krcore_race_server *s,
			   const struct krcore_race_server_options *opts)
{
	uint32_t groups, depth;
	uint32_t lease_ms = opts->lease_ms ? opts->lease_ms : KR_LEASE_MS;
	uint64_t seed;

	kr_shape(opts, &groups, &depth);
	s->bytes = (size_t)opts->bytes;
	s->memory =
		mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return -ENOMEM;
	}
	(void)madvise(s->memory, s->bytes, MADV_HUGEPAGE); /* fewer entries for the NIC; no need */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	return kr_format(s->memory, s->bytes, groups, depth, seed, lease_ms);
}

static int kr_serve_publish(struct krcore_race_server *s, uint16_t service, const uint8_t *gid)
{
	struct krcore_region_ref ref;
	struct krcore_value value;
	int err;

	err = krcore_open(NULL, &s->ctx);
	if (err)
		return err;
	memcpy(s->key.gid, gid, sizeof(s->key.gid));
	s->key.service = service;
	krcore_region_ref_of(&s->mr, &ref);
	krcore_region_encode(&ref, &value);
	err = krcore_publish(s->ctx, &s->key, &value);
	return err < 0 ? err : 0;
}

int krcore_race_serve(const struct krcore_race_server_options *opts,
		      struct krcore_race_server **ret_server)
{
	struct krcore_node_options node = {
		.size = sizeof(node),
		.ring_entries = 16,
		.port = opts->port,
	};
	struct krcore_port_info port = { .size = sizeof(port) };
	uint16_t service = opts->service ? opts->service : KRCORE_RACE_SERVICE;
	struct krcore_race_server *s;
	int err;

	if (opts->size < sizeof(*opts) || opts->bytes < KR_BYTES_MIN ||
	    opts->bytes > KR_BYTES_MAX || opts->bytes > SIZE_MAX ||
	    service < KRCORE_SERVICE_USER_MIN || opts->groups > KR_GROUPS_MAX ||
	    opts->depth_max > KR_DEPTH_MAX ||
	    (opts->lease_ms && (opts->lease_ms < 1000 || opts->lease_ms > KR_LEASE_MAX_MS)))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = kr_serve_memory(s, opts);
	if (!err)
		err = krcore_node_open(&node, &s->node);
	if (!err) /* the region's, however ports are numbered by now */
		err = krcore_node_port(s->node, 0, &port);
	if (!err)
		err = krcore_mr_reg(s->node, s->memory, s->bytes,
				    KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ |
					    KRCORE_ACCESS_REMOTE_WRITE |
					    KRCORE_ACCESS_REMOTE_ATOMIC,
				    &s->mr);
	if (!err)
		err = kr_serve_publish(s, service, port.gid);
	if (err) {
		krcore_race_server_close(s);
		return err;
	}
	*ret_server = s;
	return 0;
}

void krcore_race_server_close(struct krcore_race_server *server)
{
	if (!server)
		return;
	if (server->ctx) {
		krcore_withdraw(server->ctx, &server->key);
		krcore_close(server->ctx);
	}
	krcore_node_close(server->node);
	if (server->memory)
		munmap(server->memory, server->bytes);
	free(server);
}
