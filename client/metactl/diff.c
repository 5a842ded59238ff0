// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records in which servers differ: see diff.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/diff.h"
#include "client/wire.h"
#include "proto/krp_hash.h"

const char *mc_diff_unseen(const struct krcore_check *check)
{
	if (check->bad || check->directory_errors)
		return "the table is damaged, see krcore-metactl table check";
	if (check->crowded)
		return "its table has crowded pages; the records that it keeps aside are in no "
		       "bucket, and are not compared";
	return NULL;
}

int mc_diff_add(struct mc_diff *diff, unsigned int server, const struct krcore_key *key,
		const struct krcore_value *value)
{
	struct krp_value wire;

	if (diff->nr == diff->room) {
		size_t room = diff->room ? 2 * diff->room : 1024;
		struct mc_diff_entry *more = realloc(diff->entries, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		diff->entries = more;
		diff->room = room;
	}
	memset(&wire, 0, sizeof(wire));
	kru_value_to_wire(value, value->generation, &wire);
	diff->entries[diff->nr++] = (struct mc_diff_entry){
		.key = *key, .print = krp_xxh64(&wire, sizeof(wire), 0), .server = server
	};
	return 0;
}

static int mc_diff_keys(const struct krcore_key *a, const struct krcore_key *b)
{
	int order = memcmp(a->gid, b->gid, sizeof(a->gid));

	return order ? order : (a->service > b->service) - (a->service < b->service);
}

static int mc_diff_order(const void *a, const void *b)
{
	const struct mc_diff_entry *one = a, *other = b;

	return mc_diff_keys(&one->key, &other->key);
}

bool mc_diff_next(struct mc_diff *diff, struct mc_diff_row *ret_row)
{
	const struct mc_diff_entry *first, *e;

	if (!diff->sorted && diff->nr)
		qsort(diff->entries, diff->nr, sizeof(*diff->entries), mc_diff_order);
	diff->sorted = true;
	while (diff->at < diff->nr) {
		first = &diff->entries[diff->at];
		*ret_row = (struct mc_diff_row){ .key = first->key };
		for (; diff->at < diff->nr; diff->at++) {
			e = &diff->entries[diff->at];
			if (mc_diff_keys(&e->key, &first->key))
				break;
			ret_row->have |= 1ULL << e->server;
			ret_row->differs |= e->print != first->print;
		}
		if (ret_row->differs || ret_row->have != diff->servers)
			return true;
	}
	return false;
}

void mc_diff_free(struct mc_diff *diff)
{
	free(diff->entries);
	memset(diff, 0, sizeof(*diff));
}
