// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * To be a client that writes: an id that nobody has had before, and a word that says who lives.
 */
#include <errno.h>

#include "race/lib/client.h"

#define KR_COLLISIONS 8 /* ids whose word is taken, before all words are READ */
#define KR_REGISTER_TRIES 64

static uint64_t kr_client_at(const struct kr_client *c, uint32_t id)
{
	return c->header.clients + id % c->header.nr_clients * 8ULL;
}

/*
 * Take an id, @ahead of those that were taken. Return: 1; 0: the client that has its word lives;
 * -EUSERS: all ids have been taken; or another negative errno.
 */
static int kr_take_id(struct kr_client *c, uint32_t ahead)
{
	uint64_t id, was, word, now;
	int got;

	got = kr_add(c, offsetof(struct kr_header, next_client), ahead, &id);
	if (got)
		return got;
	id += ahead - 1;
	if (!id || id > KR_CLIENT_MAX)
		return -EUSERS;
	word = id << 32 | 1;
	now = c->t->ops->now_ms(c->t);
	got = kr_cas(c, kr_client_at(c, (uint32_t)id), 0, word, &was);
	if (got <= 0)
		return got;
	c->id = (uint32_t)id;
	c->count = 0;
	c->beat = word;
	c->beat_ms = now;
	return 1;
}

/*
 * READ all words. Return: how far ahead the first id is whose word is free, 1 for the next one; 0: all
 * are others'; or negative errno.
 */
static int kr_ahead(struct kr_client *c)
{
	uint32_t nr = c->header.nr_clients, i;
	uint64_t next;
	int err;

	err = kr_read_work(c, c->header.clients, nr * 8);
	if (!err)
		err = kr_read(c, offsetof(struct kr_header, next_client), &c->words[KR_AT_ADD], 8);
	if (err)
		return err;
	next = c->words[KR_AT_ADD];
	for (i = 0; i < nr; i++)
		if (!((const uint64_t *)c->work)[(next + i) % nr])
			return (int)i + 1;
	return 0;
}

/*
 * Take an id: the next one, and after some collisions one whose word is free. Ids are not used twice,
 * so whoever finds no word takes none; and begins there when it is asked again.
 * Return: 0; -EUSERS: all words are others', or all ids have been taken; -EBUSY: others were faster
 * all the time; or another negative errno.
 */
static int kr_register(struct kr_client *c)
{
	unsigned int tries;
	int ahead = 1, got;

	for (tries = 0; tries < KR_REGISTER_TRIES; tries++) {
		if (c->crowded || tries >= KR_COLLISIONS) {
			ahead = kr_ahead(c);
			c->crowded = !ahead;
			if (ahead <= 0)
				return ahead ? ahead : -EUSERS;
		}
		got = kr_take_id(c, (uint32_t)ahead);
		if (got)
			return got < 0 ? got : 0;
	}
	return -EBUSY;
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
