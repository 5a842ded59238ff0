// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What libkrcore-race shows to clients: arguments are checked here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/race.h>

#include "race/lib/client.h"
#include "race/lib/krcore.h"

_Static_assert(KRCORE_RACE_WRITERS_MAX == KR_CLIENTS && KRCORE_RACE_KEY_MAX == KR_KEY_MAX &&
		       KRCORE_RACE_VALUE_MAX == KR_VALUE_MAX,
	       "what the header promises is what the table has");

/**
 * struct krcore_race - A client.
 * @c: the client.
 * @connect_reads: READs of a MetaServer that connecting took.
 */
struct krcore_race {
	struct kr_client *c;
	uint32_t connect_reads;
};

/**
 * struct kr_scan - A scan: calls the caller's function.
 * @fn: function.
 * @arg: its argument.
 */
struct kr_scan {
	krcore_race_entry_fn *fn;
	void *arg;
};

static int kr_race_attach(const struct krcore_race_options *opts, uint32_t flags,
			  struct krcore_race *race)
{
	uint16_t service = opts->service ? opts->service : KRCORE_RACE_SERVICE;
	struct kr_transport *t;
	int err = kr_krcore_open(opts->server, service, opts->port, opts->timeout_ms, flags,
				 &race->connect_reads, &t);

	return err ? err : kr_client_new(t, &race->c);
}

int krcore_race_open(const struct krcore_race_options *opts, struct krcore_race **ret_race)
{
	struct krcore_race *race;
	int err;

	if (opts->size < sizeof(*opts) || !opts->server || opts->timeout_ms > 60000)
		return -EINVAL;
	race = calloc(1, sizeof(*race));
	if (!race)
		return -ENOMEM;
	err = kr_race_attach(opts, 0, race);
	if (err == -EBADR || err == -EREMOTEIO) /* what this node remembers may be an old table */
		err = kr_race_attach(opts, KRCORE_CONNECT_FRESH, race);
	if (err) {
		free(race);
		return err;
	}
	*ret_race = race;
	return 0;
}

void krcore_race_close(struct krcore_race *race)
{
	if (!race)
		return;
	kr_client_free(race->c);
	free(race);
}

int krcore_race_get(struct krcore_race *race, const void *key, size_t key_bytes, void *value,
		    size_t room, size_t *ret_bytes)
{
	const struct kr_block *block;
	struct kr_place p;
	int err;

	if (!key_bytes || key_bytes > KR_KEY_MAX)
		return -EINVAL;
	err = kr_find(race->c, key, (uint32_t)key_bytes, &p);
	if (err)
		return err;
	if (!p.slot_at)
		return -ENOENT;
	block = race->c->found;
	*ret_bytes = block->value_bytes;
	if (block->value_bytes > room)
		return -ENOBUFS;
	if (block->value_bytes)
		memcpy(value, (const uint8_t *)(block + 1) + key_bytes, block->value_bytes);
	return 0;
}

static int kr_change(struct krcore_race *race, enum kr_mode mode, const void *key, size_t key_bytes,
		     const void *value, size_t value_bytes)
{
	if (!key_bytes || key_bytes > KR_KEY_MAX || value_bytes > KR_VALUE_MAX)
		return -EINVAL;
	return kr_modify(race->c, mode, key, (uint32_t)key_bytes, value, (uint32_t)value_bytes);
}

int krcore_race_put(struct krcore_race *race, const void *key, size_t key_bytes, const void *value,
		    size_t value_bytes)
{
	return kr_change(race, KR_PUT, key, key_bytes, value, value_bytes);
}

int krcore_race_insert(struct krcore_race *race, const void *key, size_t key_bytes,
		       const void *value, size_t value_bytes)
{
	return kr_change(race, KR_INSERT, key, key_bytes, value, value_bytes);
}

int krcore_race_update(struct krcore_race *race, const void *key, size_t key_bytes,
		       const void *value, size_t value_bytes)
{
	return kr_change(race, KR_UPDATE, key, key_bytes, value, value_bytes);
}

int krcore_race_del(struct krcore_race *race, const void *key, size_t key_bytes)
{
	return kr_change(race, KR_DELETE, key, key_bytes, NULL, 0);
}

static int kr_scan_entry(void *arg, const struct kr_block *block)
{
	const struct kr_scan *scan = arg;
	const uint8_t *key = (const uint8_t *)(block + 1);

	return scan->fn(scan->arg, key, block->key_bytes, key + block->key_bytes,
			block->value_bytes);
}

int krcore_race_scan(struct krcore_race *race, krcore_race_entry_fn *fn, void *arg)
{
	struct kr_scan scan = { fn, arg };

	return kr_walk(race->c, kr_scan_entry, &scan);
}

int krcore_race_check(struct krcore_race *race, uint32_t flags,
		      struct krcore_race_report *ret_report)
{
	struct kr_report report = { 0 };
	struct krcore_race_report out = { 0 };
	int err;

	if (flags & ~(uint32_t)KRCORE_RACE_RECLAIM || !ret_report->size)
		return -EINVAL;
	err = kr_check(race->c, flags & KRCORE_RACE_RECLAIM, &report);
	if (err)
		return err;
	out.size = ret_report->size < sizeof(out) ? ret_report->size : sizeof(out);
	out.subtables = report.subtables;
	out.depth = report.depth;
	out.slots = report.slots;
	out.entries = report.entries;
	out.damaged = report.damaged;
	out.tentative = report.tentative;
	out.tombs = report.tombs;
	out.chunks = race->c->header.nr_chunks;
	out.chunks_used = report.chunks_used;
	out.clients = report.clients;
	out.dead = report.dead;
	out.reclaimed = report.reclaimed;
	memcpy(ret_report, &out, out.size);
	return 0;
}

void krcore_race_stats(const struct krcore_race *race, struct krcore_race_stats *ret_stats)
{
	const struct kr_stats *s = &race->c->stats;
	struct krcore_race_stats out = {
		.size = ret_stats->size < sizeof(out) ? ret_stats->size : sizeof(out),
		.searches = s->searches,
		.search_reads = s->search_reads,
		.splits = s->splits,
		.unknown = s->unknown,
		.retries = s->retries,
		.connect_reads = race->connect_reads,
	};

	memcpy(ret_stats, &out, out.size);
}

const char *krcore_race_strerror(int err)
{
	switch (err) {
	case 0:
		return "success";
	case -ENOENT:
		return "there is no such key, table or node";
	case -EEXIST:
		return "the key is there already";
	case -ENOSPC:
		return "the memory node is full, or its table cannot grow further";
	case -EUSERS:
		return "as many clients write as can, killed ones among them";
	case -EREMCHG:
		return "the connection to the memory node failed: it was done or not";
	case -EBADMSG:
		return "the table is damaged";
	case -EBADR:
	case -EREMOTEIO:
		return "the memory node does not have this table any more";
	case -EPROTO:
		return "the record or the memory is not that of a table";
	case -EPROTONOSUPPORT:
		return "the table has another version";
	case -ENOBUFS:
		return "the value is longer than the room for it";
	case -EINVAL:
		return "a length or an option is out of its range";
	case -E2BIG:
		return "the network card takes no region of so much memory";
	default:
		return strerrordesc_np(-err) ? strerrordesc_np(-err) : "unknown error";
	}
}
