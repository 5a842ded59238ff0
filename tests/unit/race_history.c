// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether a history is linearizable: see race_history.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/krp_hash.h"
#include "tests/unit/race_history.h"

#define RH_SEEN_BITS 16

/**
 * struct rh_search - A search for an order of the operations of one key.
 * @ops: they.
 * @nr: how many.
 * @seen: configurations from which no order was found: a hash table that forgets.
 */
struct rh_search {
	struct rh_op ops[RH_KEY_OPS_MAX];
	unsigned int nr;
	struct {
		uint64_t done, value;
		bool used;
	} seen[1 << RH_SEEN_BITS];
};

/* What an operation makes of a value. Return: whether its result fits. */
static bool rh_apply(const struct rh_op *op, uint64_t *value)
{
	bool found = *value != RH_ABSENT;

	switch (op->kind) {
	case RH_GET:
		return op->pending || op->value == *value;
	case RH_PUT:
		*value = op->value;
		return true;
	case RH_INSERT:
		if (!found)
			*value = op->value;
		break;
	case RH_UPDATE:
		if (found)
			*value = op->value;
		break;
	case RH_DELETE:
		*value = RH_ABSENT;
		break;
	}
	return op->pending || op->found == found;
}

static bool rh_seen(struct rh_search *s, uint64_t done, uint64_t value)
{
	uint64_t at = krp_mix64(done ^ krp_mix64(value)) >> (64 - RH_SEEN_BITS);

	if (s->seen[at].used && s->seen[at].done == done && s->seen[at].value == value)
		return true;
	s->seen[at].used = true;
	s->seen[at].done = done;
	s->seen[at].value = value;
	return false;
}

/* Whether the operations that are not in @done can follow. */
static bool rh_search(struct rh_search *s, uint64_t done, uint64_t value)
{
	uint64_t first = UINT64_MAX, next;
	bool all = true;
	unsigned int i;

	for (i = 0; i < s->nr; i++) {
		if (done >> i & 1 || s->ops[i].pending)
			continue;
		all = false;
		if (s->ops[i].end < first)
			first = s->ops[i].end;
	}
	if (all)
		return true; /* what is pending need not have been done */
	if (rh_seen(s, done, value))
		return false;
	for (i = 0; i < s->nr; i++) {
		if (done >> i & 1 || s->ops[i].start > first)
			continue; /* another had returned before it was called */
		next = value;
		if (rh_apply(&s->ops[i], &next) && rh_search(s, done | 1ULL << i, next))
			return true;
	}
	return false;
}

static bool rh_key(struct rh_search *s, const struct rh_history *h, unsigned int key)
{
	unsigned int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < h->nr; i++) {
		if (h->ops[i].key != key)
			continue;
		if (s->nr == RH_KEY_OPS_MAX) {
			fprintf(stderr, "key %u has too many operations\n", key);
			abort();
		}
		s->ops[s->nr++] = h->ops[i];
	}
	return rh_search(s, 0, RH_ABSENT);
}

bool rh_linearizable(const struct rh_history *h, unsigned int *ret_key)
{
	struct rh_search *s = malloc(sizeof(*s));
	unsigned int i, j;
	bool good = true;

	if (!s)
		abort();
	for (i = 0; i < h->nr && good; i++) {
		for (j = 0; j < i && h->ops[j].key != h->ops[i].key; j++)
			;
		if (j < i)
			continue; /* that key has been judged */
		good = rh_key(s, h, h->ops[i].key);
		*ret_key = h->ops[i].key;
	}
	free(s);
	return good;
}
