// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A client of krcore-race in front of a hostile memory node: any words anywhere in a table.
 *
 * A checksum cannot be guessed, so a bit of the input has the harness seal the header and the block
 * that was changed. Whatever comes, the client reads and writes within its own memory and
 * ends, and what it hands out has lengths within the limits. It also reclaims what words of owners
 * and clients say, which are the node's as well.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/race_world.h"

#define FZ_BYTES (3 * KR_CHUNK_BYTES)
#define FZ_KEYS 12
#define FZ_PATCHES 64
#define FZ_LEASE_MS \
	1000 /* what comes from the node may be 50 days: only the wait is shorter here */

/* how the harness helps the input along */
#define FZ_SEAL 0x01
#define FZ_WORD_OF_OURS 0x02

static struct rw_world *fz_world;
static uint8_t *fz_template;
static uint64_t fz_places[4 * FZ_KEYS]; /* three for each key, then others */
static unsigned int fz_nr_places;

static void fz_note(uint64_t at)
{
	if (fz_nr_places < 4 * FZ_KEYS)
		fz_places[fz_nr_places++] = at;
}

/* Another client, which dies: there is something to reclaim. */
static void fz_dies(void)
{
	struct kr_client *c = rw_open(fz_world, 2);

	FZ_ASSERT(!kr_modify(c, KR_PUT, "m", 1, "value", 5));
	FZ_ASSERT(!kr_modify(c, KR_PUT, "m", 1, "other", 5));
	fz_note(c->header.clients + c->id * 8ULL);
	fz_note(c->header.owners);
	fz_note(c->header.owners + 8);
	fz_world->clients[2].dies_at = 1;
	rw_close(fz_world, 2);
}

/* A table with a few entries, and where words of interest are in it; once. */
static void fz_make(void)
{
	struct kr_client *c;
	struct kr_place p;
	char key[2] = "a";
	unsigned int i;

	fz_world = rw_new(FZ_BYTES, 1, 2, 1);
	c = rw_open(fz_world, 0);
	for (i = 0; i < FZ_KEYS; i++) {
		key[0] = (char)('a' + i);
		FZ_ASSERT(!kr_modify(c, KR_PUT, key, 1, "value", 5));
		FZ_ASSERT(!kr_find(c, key, 1, &p) && p.slot_at);
		fz_note(p.slot_at);
		fz_note(kr_slot_at(p.slot));
		fz_note(kr_slot_at(p.slot) + 16);
	}
	fz_note(c->header.dir + 8);
	rw_close(fz_world, 0);
	fz_dies();
	fz_template = malloc(FZ_BYTES);
	FZ_ASSERT(fz_template);
	memcpy(fz_template, fz_world->memory, FZ_BYTES);
}

static void fz_patch(struct fz_stream *in, uint8_t help)
{
	uint64_t at, word;
	uint16_t where;

	fz_take(in, &where, sizeof(where));
	fz_take(in, &word, sizeof(word));
	at = help & FZ_WORD_OF_OURS ? fz_places[where % fz_nr_places]
				    : where * 8ULL % (FZ_BYTES - 8);
	memcpy(fz_world->memory + at, &word, sizeof(word));
}

/* Make the checksums fit what is there now. */
static void fz_seal(void)
{
	struct kr_header *h = (struct kr_header *)fz_world->memory;
	struct kr_block *block;
	unsigned int i;

	h->sum = krp_xxh64(h, offsetof(struct kr_header, sum), KR_MAGIC);
	for (i = 1; i < 3 * FZ_KEYS; i += 3) {
		block = (struct kr_block *)(fz_world->memory + fz_places[i]);
		if ((uint64_t)block->key_bytes + block->value_bytes + sizeof(*block) <=
		    FZ_BYTES - fz_places[i])
			block->sum = kr_block_sum(block);
	}
}

static int fz_entry(void *arg, const struct kr_block *block)
{
	(void)arg;
	FZ_ASSERT(block->key_bytes && block->key_bytes <= KR_KEY_MAX);
	FZ_ASSERT(block->value_bytes <= KR_VALUE_MAX);
	return 0;
}

static void fz_use(struct kr_client *c)
{
	struct kr_report report = { 0 };
	struct kr_place p;

	c->random = 1;
	if (!kr_find(c, "a", 1, &p) && p.slot_at)
		fz_entry(NULL, c->found);
	(void)kr_walk(c, fz_entry, NULL);
	(void)kr_modify(c, KR_PUT, "a", 1, "other", 5);
	(void)kr_modify(c, KR_INSERT, "z", 1, "other", 5);
	(void)kr_modify(c, KR_DELETE, "b", 1, NULL, 0);
	if (c->header.lease_ms > FZ_LEASE_MS)
		c->header.lease_ms = FZ_LEASE_MS;
	(void)kr_check(c, true, &report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_stream in = { data, size };
	struct kr_client *c;
	uint8_t help;
	unsigned int i;

	if (!fz_world)
		fz_make();
	memcpy(fz_world->memory, fz_template, FZ_BYTES);
	for (i = 0; i < FZ_PATCHES && in.size; i++) {
		help = fz_byte(&in);
		fz_patch(&in, help);
		if (help & FZ_SEAL)
			fz_seal();
	}
	if (!kr_client_new(rw_transport(fz_world, 1), &c)) {
		fz_use(c);
		kr_client_free(c);
	}
	return 0;
}
