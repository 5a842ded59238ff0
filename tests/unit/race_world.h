/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A memory node and clients of krcore-race in one process, for tests: a transport over plain
 * memory whose clients are coroutines. Which client does its next request is drawn from a seed, so
 * that a run can be had again. READs and WRITEs are done in pieces of words. Clients die, and
 * requests get an unknown outcome, where a test says so; of a WRITE a part may be done then.
 */
#ifndef KRC_TESTS_RACE_WORLD_H
#define KRC_TESTS_RACE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "race/lib/client.h"

#define RW_CLIENTS 6
#define RW_HASH_SEED 4711 /* of the table */
#define RW_PIECES 8
#define RW_REPLAY_STEPS 60 /* of the others, at most, before a WRITE is replayed */
#define RW_NEVER UINT64_MAX

struct rw_world;
struct rw_client;

/** typedef rw_meddle_fn - What a stranger does to the table before a request. @client: whose. */
typedef void rw_meddle_fn(struct rw_client *client);

/**
 * struct rw_client - A client.
 * @t: its transport.
 * @world: where it lives.
 * @c: the code under test; NULL before and after.
 * @run: what it does, as a coroutine.
 * @arg: argument of @run.
 * @index: which client.
 * @requests: requests so far.
 * @dies_at: it is dead from this request on.
 * @unknown_at: this request gets an unknown outcome.
 * @unknown_done: whether it is done nevertheless.
 * @done: whether the last request of unknown outcome was done.
 * @unknown_odds: one of so many requests gets one, 0 for none.
 * @lapses_at: before this request @lapse is called, and it is not done.
 * @lapse: what the world does meanwhile.
 * @refuses: whatever is no READ is not done, and takes too long.
 * @meddle: if not NULL, called before each request: what a stranger does to the table.
 * @replays: mutant: a WRITE is done again before its batch completes.
 * @ready: it is a coroutine that has not ended.
 * @pieces: memory of its requests.
 * @nr_pieces: how many.
 * @context: of the coroutine.
 * @stack: of the coroutine.
 */
struct rw_client {
	struct kr_transport t;
	struct rw_world *world;
	struct kr_client *c;
	void (*run)(struct rw_client *client);
	void *arg;
	unsigned int index;
	uint64_t requests, dies_at, unknown_at;
	bool unknown_done, done;
	unsigned int unknown_odds;
	uint64_t lapses_at;
	void (*lapse)(struct rw_client *client);
	rw_meddle_fn *meddle;
	bool refuses, replays, ready;
	void *pieces[RW_PIECES];
	unsigned int nr_pieces;
	ucontext_t context;
	uint8_t *stack;
};

/**
 * struct rw_world - A memory node and its clients.
 * @memory: of the node.
 * @bytes: of it.
 * @random: state of the generator.
 * @steps: requests and pauses of all clients so far; also the clock, in ms.
 * @clients: they.
 * @now: the coroutine that runs, or NULL.
 * @home: context of the scheduler.
 * @burst: the client that runs for a while, and for how long.
 * @burst_left: steps.
 */
struct rw_world {
	uint8_t *memory;
	uint64_t bytes, random, steps;
	struct rw_client clients[RW_CLIENTS];
	struct rw_client *now;
	ucontext_t home;
	unsigned int burst, burst_left;
};

/**
 * rw_new() - An empty table.
 * @bytes: as kr_format().
 * @groups: as kr_format().
 * @depth_max: as kr_format().
 * @seed: of the draws.
 *
 * Return: it.
 */
struct rw_world *rw_new(uint64_t bytes, uint32_t groups, uint32_t depth_max, uint64_t seed);

/** rw_lease() - Give the table another lease, for clients that attach later. @w: world. @ms: it. */
void rw_lease(struct rw_world *w, uint32_t ms);

/** rw_free() - End a world and its clients. @w: world. */
void rw_free(struct rw_world *w);

/**
 * rw_open() - Attach client @i.
 * @w: world.
 * @i: its place in @w.
 *
 * Return: the code under test; the test fails if it cannot.
 */
struct kr_client *rw_open(struct rw_world *w, unsigned int i);

/** rw_transport() - A new transport for client @i. @w: world. Return: it. */
struct kr_transport *rw_transport(struct rw_world *w, unsigned int i);

/** rw_close() - Detach client @i, if it is attached. @w: world. */
void rw_close(struct rw_world *w, unsigned int i);

/** rw_spawn() - Make client @i a coroutine. @w: world. @run: what it does. @arg: its argument. */
void rw_spawn(struct rw_world *w, unsigned int i, void (*run)(struct rw_client *client), void *arg);

/**
 * rw_run() - Let all coroutines run, a request at a time in drawn order.
 * @w: world.
 *
 * Return: false if they do not come to an end.
 */
bool rw_run(struct rw_world *w);

/** rw_step() - Let coroutine @i do @nr requests or pauses, or end. @w: world. */
void rw_step(struct rw_world *w, unsigned int i, unsigned int nr);

/**
 * rw_put() - kr_modify() of a key that is a string.
 * @c: client.
 * @mode: how.
 * @key: key.
 * @value: value.
 * @bytes: its length.
 *
 * Return: as kr_modify().
 */
int rw_put(struct kr_client *c, enum kr_mode mode, const char *key, const void *value,
	   size_t bytes);

/**
 * rw_get() - The value of a key.
 * @c: client.
 * @key: it.
 * @ret_value: value.
 *
 * Return: its length, -ENOENT if the table has none, or a negative errno of kr_find().
 */
long rw_get(struct kr_client *c, const char *key, const void **ret_value);

/** rw_count_entry() - Count an entry; a kr_entry_fn. @arg: unsigned int. @block: it. Return: 0. */
int rw_count_entry(void *arg, const struct kr_block *block);

/** rw_entries() - Walk the table. @c: client. Return: number of entries, or UINT_MAX: it failed. */
unsigned int rw_entries(struct kr_client *c);

/**
 * rw_orphans() - Chunks whose owner has no word: what a dead client had, and nobody has reclaimed.
 * @w: world.
 *
 * Return: number of chunks.
 */
unsigned int rw_orphans(const struct rw_world *w);

/** rw_draw() - A number below @below. @w: world. Return: it. */
uint32_t rw_draw(struct rw_world *w, uint32_t below);

#endif /* KRC_TESTS_RACE_WORLD_H */
