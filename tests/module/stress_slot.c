// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: local memory of a worker. Two arenas, each a region with large and
 * small slots; a request has a slot, in which its bytes begin at any address and have
 * guards on both sides.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/module/stress.h"

#define ST_GUARD 0xee
#define ST_SKEW 16U
#define ST_SLOT_EXTRA (2 * ST_GUARD_BYTES + ST_SKEW)
#define ST_LARGE_STRIDE (ST_BANK_BYTES + ST_SLOT_EXTRA)
#define ST_SMALL_STRIDE (ST_SMALL_BYTES + ST_SLOT_EXTRA)
#define ST_ARENA_BYTES \
	((size_t)ST_LARGE_SLOTS * ST_LARGE_STRIDE + (size_t)ST_SMALL_SLOTS * ST_SMALL_STRIDE)

static int st_arena_register(struct st_self *self, struct st_arena *arena)
{
	/* one in four is open to peers, which makes taking it back another affair */
	uint32_t access = KRCORE_ACCESS_LOCAL_WRITE |
			  (st_random(&self->random, 4) ? 0 : KRCORE_ACCESS_REMOTE_READ);

	return krcore_mr_reg(self->node, arena->mem, arena->bytes, access, &arena->mr);
}

int st_arena_open(struct st_self *self, struct st_arena *arena)
{
	arena->bytes = ST_ARENA_BYTES;
	arena->mem = mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (arena->mem == MAP_FAILED)
		return -ENOMEM;
	return st_arena_register(self, arena);
}

void st_arena_renew(struct st_self *self, struct st_arena *arena)
{
	struct st_counts *counts = &self->worker->counts;
	int err = krcore_mr_dereg(self->node, &arena->mr);

	if (err)
		st_violation(counts, "worker %u: taking a region back: %s", self->number,
			     strerror(-err));
	err = krcore_mr_dereg(self->node, &arena->mr);
	if (err != -ENOENT)
		st_violation(counts, "worker %u: taking a region back twice gave %d", self->number,
			     err);
	err = st_arena_register(self, arena);
	if (err)
		st_violation(counts, "worker %u: registering again: %s", self->number,
			     strerror(-err));
	counts->regions++;
}

int st_sink_open(struct st_self *self)
{
	static uint8_t sink[ST_BANK_BYTES + 2 * ST_GUARD_BYTES];

	memset(sink, ST_GUARD, sizeof(sink));
	self->sink = sink;
	return krcore_mr_reg(self->node, sink, sizeof(sink), KRCORE_ACCESS_LOCAL_WRITE,
			     &self->sink_mr);
}

static uint8_t *st_slot_base(struct st_arena *arena, int slot)
{
	if (slot < ST_LARGE_SLOTS)
		return arena->mem + (size_t)slot * ST_LARGE_STRIDE;
	return arena->mem + (size_t)ST_LARGE_SLOTS * ST_LARGE_STRIDE +
	       (size_t)(slot - ST_LARGE_SLOTS) * ST_SMALL_STRIDE;
}

static int st_slot_find(const struct st_arena *arena, uint32_t length)
{
	int first = length > ST_SMALL_BYTES ? 0 : ST_LARGE_SLOTS;
	int end = length > ST_SMALL_BYTES ? ST_LARGE_SLOTS : ST_SLOTS;

	for (; first < end; first++)
		if (!arena->busy[first])
			return first;
	return -1;
}

int st_slot_get(struct st_self *self, uint32_t length, uint8_t **ret_at)
{
	unsigned int start = (unsigned int)st_random(&self->random, ST_ARENAS), i;
	/* an atomic's old value is looked at where it is */
	uint32_t skew = length == 8 ? 0 : (uint32_t)st_random(&self->random, ST_SKEW);

	for (i = 0; i < ST_ARENAS; i++) {
		unsigned int nr = (start + i) % ST_ARENAS;
		struct st_arena *arena = &self->arenas[nr];
		int slot = st_slot_find(arena, length);
		uint8_t *base;

		if (slot < 0)
			continue;
		arena->busy[slot] = true;
		base = st_slot_base(arena, slot);
		memset(base, ST_GUARD, ST_GUARD_BYTES + skew);
		*ret_at = base + ST_GUARD_BYTES + skew;
		memset(*ret_at + length, ST_GUARD, ST_GUARD_BYTES);
		return (int)nr * ST_SLOTS + slot;
	}
	return -1;
}

void st_slot_put(struct st_self *self, int slot)
{
	self->arenas[slot / ST_SLOTS].busy[slot % ST_SLOTS] = false;
}

const struct krcore_mr *st_slot_mr(const struct st_self *self, int slot)
{
	return &self->arenas[slot / ST_SLOTS].mr;
}

bool st_slot_touched(const uint8_t *at, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < ST_GUARD_BYTES; i++)
		if (at[-1 - (int)i] != ST_GUARD || at[length + i] != ST_GUARD)
			return true;
	return false;
}
