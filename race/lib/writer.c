// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * To be a client that writes: an id that nobody has had before, and a word that says who lives.
 */
#include <errno.h>

#include "race/lib/client.h"

static uint64_t kr_client_at(const struct kr_client *c, uint32_t id)
{
	return c->header.clients + id % c->header.nr_clients * 8ULL;
}

/*
 * Take an id. The word of one that lives is skipped.
 * Return: 0; -EUSERS: all words are others', or all ids have been taken; or another errno.
 */
static int kr_register(struct kr_client *c)
{
	uint64_t id, was, word, now;
	unsigned int tries;
	int got;

	for (tries = 0; tries < c->header.nr_clients; tries++) {
		got = kr_add(c, offsetof(struct kr_header, next_client), 1, &id);
		if (got)
			return got;
		if (!id || id > KR_CLIENT_MAX)
			return -EUSERS;
		word = id << 32 | 1;
		now = c->t->ops->now_ms(c->t);
		got = kr_cas(c, kr_client_at(c, (uint32_t)id), 0, word, &was);
		if (got < 0)
			return got;
		if (!got)
			continue;
		c->id = (uint32_t)id;
		c->count = 0;
		c->beat = word;
		c->beat_ms = now;
		return 0;
	}
	return -EUSERS;
}

int kr_beat(struct kr_client *c)
{
	uint64_t now = c->t->ops->now_ms(c->t), next, was;
	int got;

	if (now - c->beat_ms < KR_BEAT_MS)
		return 1;
	next = (c->beat & ~0xffffffffULL) | (uint32_t)((uint32_t)c->beat + 1);
	got = kr_cas(c, kr_client_at(c, c->id), c->beat, next, &was);
	if (!got && was == next)
		got = 1; /* it was done when an earlier call failed */
	if (got > 0) {
		c->beat = next;
		c->beat_ms = now;
	}
	return got;
}

int kr_writer(struct kr_client *c)
{
	int got;

	if (c->id && c->count < KR_COUNT_MAX) {
		got = kr_beat(c);
		if (got)
			return got < 0 ? got : 0;
	}
	if (c->id)
		kr_forget(c);
	c->id = 0;
	return kr_register(c);
}

void kr_unregister(struct kr_client *c)
{
	uint64_t was;

	(void)kr_cas(c, kr_client_at(c, c->id), c->beat, 0, &was);
}
