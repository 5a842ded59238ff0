// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Notification of subscribers about changed records: see changes.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/changes.h"
#include "proto/krp_hash.h"

int ms_changes_init(struct ms_changes *c, uint64_t salt, uint64_t now_ms)
{
	unsigned int i;

	memset(c, 0, sizeof(*c));
	TAILQ_INIT(&c->active);
	c->salt = salt;
	for (i = 0; i < MS_BUDGETS; i++) {
		STAILQ_INIT(&c->budgets[i].waiting);
		c->budgets[i].tokens = 1000ULL * MS_BUDGET_BURST;
		c->budgets[i].tokens_ms = now_ms;
	}
	c->ring = calloc(MS_CHANGES_MAX, sizeof(*c->ring));
	return c->ring ? 0 : -ENOMEM;
}

static struct ms_budget *ms_budget_of(struct ms_changes *c, const struct krp_key *key)
{
	return &c->budgets[krp_xxh64(key->gid, sizeof(key->gid), c->salt) % MS_BUDGETS];
}

static struct ms_pending **ms_pending_link(struct ms_changes *c, const struct krp_key *key)
{
	struct ms_pending **link =
		&c->pending[krp_xxh64(key, sizeof(*key), c->salt) % MS_CHANGES_HASH];

	while (*link && memcmp(&(*link)->change.key, key, sizeof(*key)))
		link = &(*link)->chain;
	return link;
}

/* Take the oldest note of a budget out. Return: the note, to be freed. */
static struct ms_pending *ms_pending_pop(struct ms_changes *c, struct ms_budget *b)
{
	struct ms_pending *p = STAILQ_FIRST(&b->waiting);

	STAILQ_REMOVE_HEAD(&b->waiting, fifo);
	*ms_pending_link(c, &p->change.key) = p->chain;
	c->pending_nr--;
	if (STAILQ_EMPTY(&b->waiting))
		TAILQ_REMOVE(&c->active, b, active);
	return p;
}

static void ms_changes_drop(struct ms_changes *c)
{
	struct ms_budget *b;

	while ((b = TAILQ_FIRST(&c->active)))
		free(ms_pending_pop(c, b));
}

void ms_changes_free(struct ms_changes *c)
{
	if (!c->ring)
		return;
	ms_changes_drop(c);
	free(c->ring);
	c->ring = NULL;
}

/* A change was lost: all subscribers are told to forget all records. */
static void ms_changes_lost(struct ms_changes *c)
{
	ms_changes_drop(c);
	c->head++;
	c->floor = c->head;
}

void ms_changes_note(struct ms_changes *c, unsigned int event, const struct krp_key *key,
		     uint64_t generation)
{
	struct ms_pending **link = ms_pending_link(c, key), *p = *link;
	struct ms_budget *b;

	c->noted++;
	c->merged += p != NULL;
	if (!p) {
		p = c->pending_nr < MS_CHANGES_PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;
		if (!p) {
			ms_changes_lost(c);
			return;
		}
		p->change.key = *key;
		*link = p;
		c->pending_nr++;
		b = ms_budget_of(c, key);
		if (STAILQ_EMPTY(&b->waiting))
			TAILQ_INSERT_TAIL(&c->active, b, active);
		STAILQ_INSERT_TAIL(&b->waiting, p, fifo);
	}
	p->change.event = (__u8)event;
	p->change.generation = krp_cpu_to_le64(generation);
}

static void ms_budget_refill(struct ms_budget *b, uint64_t now_ms)
{
	b->tokens += (now_ms - b->tokens_ms) * MS_BUDGET_RATE;
	b->tokens_ms = now_ms;
	if (b->tokens > 1000ULL * MS_BUDGET_BURST)
		b->tokens = 1000ULL * MS_BUDGET_BURST;
}

bool ms_changes_seal(struct ms_changes *c, uint64_t now_ms)
{
	struct ms_budget *b, *next;

	for (b = TAILQ_FIRST(&c->active); b; b = next) {
		next = TAILQ_NEXT(b, active);
		ms_budget_refill(b, now_ms);
		for (; b->tokens >= 1000 && !STAILQ_EMPTY(&b->waiting); b->tokens -= 1000) {
			struct ms_pending *p = ms_pending_pop(c, b);

			c->ring[c->head++ % MS_CHANGES_MAX] = p->change;
			free(p);
		}
	}
	if (c->head > MS_CHANGES_MAX && c->floor < c->head - MS_CHANGES_MAX)
		c->floor = c->head - MS_CHANGES_MAX;
	return !TAILQ_EMPTY(&c->active);
}

unsigned int ms_changes_take(const struct ms_changes *c, uint64_t place, struct krp_change *to,
			     uint64_t *ret_place)
{
	unsigned int nr = 0;

	if (place < c->floor) {
		memset(to, 0, sizeof(*to));
		to->event = KRP_EVENT_RESYNC;
		*ret_place = c->head;
		return 1;
	}
	while (nr < KRP_NOTIFY_CHANGES && place < c->head)
		to[nr++] = c->ring[place++ % MS_CHANGES_MAX];
	*ret_place = place;
	return nr;
}
