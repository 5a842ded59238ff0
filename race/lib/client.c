// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A client: attaching to a table, and the requests that all operations use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "race/lib/client.h"

#define KR_READ_TRIES 8
#define KR_TIMEOUT_TRIES 2
#define KR_FIRST_BYTES (sizeof(struct kr_header) + KR_DIR_FIRST * sizeof(uint64_t))

uint64_t kr_random(struct kr_client *c)
{
	c->random = krp_mix64(c->random + KRP_GOLDEN);
	return c->random;
}

void kr_pause(struct kr_client *c, unsigned int attempt)
{
	uint64_t random = kr_random(c);

	c->stats.retries++;
	if (attempt < 2)
		c->t->ops->pause(c->t, 0);
	else
		c->t->ops->pause(c->t, (unsigned int)(random % (attempt < 6 ? attempt : 6)));
}

unsigned int kr_tries(int status)
{
	switch (status) {
	case -ECANCELED:
	case -EREMCHG:
	case -EIO:
	case -EBUSY:
	case -EINTR:
		return KR_READ_TRIES;
	case -ETIMEDOUT: /* a peer that is gone is not waited for too often */
	case -ENETUNREACH:
	case -ESHUTDOWN:
	case -ENOTCONN:
		return KR_TIMEOUT_TRIES;
	default:
		return 0;
	}
}

bool kr_passing(int status)
{
	return kr_tries(status) != 0;
}

int kr_reads(struct kr_client *c, struct kr_req *reqs, unsigned int nr)
{
	unsigned int attempt;
	int err;

	for (attempt = 0;; attempt++) {
		err = c->t->ops->submit(c->t, reqs, nr);
		if (!err || attempt >= kr_tries(err))
			return err;
		kr_pause(c, attempt);
	}
}

int kr_read(struct kr_client *c, uint64_t at, void *local, uint32_t bytes)
{
	struct kr_req req = { .op = KR_READ, .length = bytes, .remote = at, .local = local };

	return kr_reads(c, &req, 1);
}

int kr_cas(struct kr_client *c, uint64_t at, uint64_t old, uint64_t new, uint64_t *ret)
{
	struct kr_req req = { .op = KR_CAS, .length = 8, .remote = at, .compare = old, .swap = new };
	unsigned int attempt;
	int err;

	for (attempt = 0;; attempt++) {
		req.local = c->words;
		err = c->t->ops->submit(c->t, &req, 1);
		if (!err) {
			*ret = c->words[0];
			return *ret == old;
		}
		if (attempt >= kr_tries(err))
			return err;
		kr_pause(c, attempt);
		if (err == -ECANCELED)
			continue;
		c->stats.unknown++;
		err = kr_read(c, at, c->words, 8);
		if (err)
			return err;
		*ret = c->words[0];
		if (*ret != old)
			return *ret == new ? 2 : 0;
	}
}

int kr_add(struct kr_client *c, uint64_t at, uint64_t more, uint64_t *ret)
{
	struct kr_req req = { .op = KR_ADD, .length = 8, .remote = at, .compare = more };
	unsigned int attempt;
	int err;

	for (attempt = 0;; attempt++) {
		req.local = c->words + KR_AT_ADD;
		err = c->t->ops->submit(c->t, &req, 1);
		if (!err) {
			*ret = c->words[KR_AT_ADD];
			return 0;
		}
		if (attempt >= kr_tries(err))
			return err;
		kr_pause(c, attempt);
	}
}

int kr_room(struct kr_client *c, struct kr_block **buffer, uint32_t *room, uint32_t bytes)
{
	void *more;

	if (bytes <= *room)
		return 0;
	more = c->t->ops->memory(c->t, KR_BLOCK_MAX);
	if (!more)
		return -ENOMEM;
	*buffer = more;
	*room = KR_BLOCK_MAX;
	return 0;
}

int kr_work(struct kr_client *c)
{
	if (!c->work)
		c->work = c->t->ops->memory(c->t, KR_CHUNK_BYTES);
	return c->work ? 0 : -ENOMEM;
}

int kr_read_work(struct kr_client *c, uint64_t at, uint32_t bytes)
{
	int err = kr_work(c);

	return err ? err : kr_read(c, at, c->work, bytes);
}

/* Words of the trie that were READ: only what says "split" is kept. */
static int kr_dir_keep(struct kr_client *c, uint32_t from, const uint64_t *words, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if ((words[i] & KR_DIR_KIND) != KR_DIR_SPLIT)
			continue;
		if (!kr_pair_check(&c->header, words[i]) || from + i >= 1U << c->header.depth_max)
			return -EBADMSG;
		c->dir[from + i] = words[i];
	}
	return 0;
}

int kr_dir_refresh(struct kr_client *c, uint32_t node, bool *ret_split)
{
	uint64_t *word = c->words;
	int err;

	err = kr_read(c, c->header.dir + node * 8ULL, word, 8);
	if (!err)
		err = kr_dir_keep(c, node, word, 1);
	*ret_split = (c->dir[node] & KR_DIR_KIND) == KR_DIR_SPLIT;
	return err;
}

/* What of the trie has not come with the header, as deep as it says that the trie is. */
static int kr_dir_rest(struct kr_client *c)
{
	uint64_t words = 1ULL << c->header.depth_max, at, nr;
	int err;

	if (c->header.depth < c->header.depth_max)
		words = 1ULL << c->header.depth;
	for (at = KR_DIR_FIRST; at < words; at += nr) {
		nr = words - at;
		if (nr > KR_CHUNK_BYTES / 8)
			nr = KR_CHUNK_BYTES / 8;
		err = kr_read_work(c, c->header.dir + at * 8, (uint32_t)nr * 8);
		if (!err)
			err = kr_dir_keep(c, (uint32_t)at, (uint64_t *)c->work, (uint32_t)nr);
		if (err)
			return err;
	}
	return 0;
}

/* Header and trie: one READ, unless the trie is deep. */
static int kr_attach(struct kr_client *c, uint8_t *first)
{
	uint32_t nr = KR_DIR_FIRST, bytes = KR_FIRST_BYTES;
	int err;

	if (c->t->bytes < bytes)
		return -EPROTO;
	err = kr_read(c, 0, first, bytes);
	if (err)
		return err;
	memcpy(&c->header, first, sizeof(c->header));
	err = kr_header_check(&c->header, c->t->bytes);
	if (err)
		return err;
	c->dir = calloc(2ULL << c->header.depth_max, sizeof(*c->dir));
	c->mine = calloc(1, c->header.nr_chunks);
	if (!c->dir || !c->mine)
		return -ENOMEM;
	if (nr > 1U << c->header.depth_max)
		nr = 1U << c->header.depth_max; /* what lies behind is no node that can be split */
	err = kr_dir_keep(c, 0, (uint64_t *)(first + sizeof(c->header)), nr);
	return err ? err : kr_dir_rest(c);
}

int kr_client_new(struct kr_transport *t, struct kr_client **ret)
{
	struct kr_client *c = calloc(1, sizeof(*c));
	uint8_t *memory;
	int err;

	if (!c) {
		t->ops->close(t);
		return -ENOMEM;
	}
	c->t = t;
	c->random = t->ops->now_ms(t) ^ (uintptr_t)c;
	memory = t->ops->memory(t, KR_CLIENT_BYTES);
	if (!memory) {
		kr_client_free(c);
		return -ENOMEM;
	}
	c->words = (uint64_t *)memory;
	c->combined = (uint64_t *)(memory + 2048);
	c->found = (struct kr_block *)(memory + 4096);
	c->own = (struct kr_block *)(memory + 4096 + KR_SMALL_BYTES);
	c->found_bytes = KR_SMALL_BYTES;
	c->own_bytes = KR_SMALL_BYTES;
	err = kr_attach(c, (uint8_t *)c->found);
	if (err) {
		kr_client_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void kr_client_free(struct kr_client *c)
{
	unsigned int i;

	if (!c)
		return;
	if (c->dir)
		kr_leave(c);
	for (i = 0; i < KR_CLASSES; i++)
		free(c->heaps[i].free);
	free(c->dir);
	free(c->mine);
	c->t->ops->close(c->t);
	free(c);
}
